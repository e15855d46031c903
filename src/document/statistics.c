#include "document/statistics.h"

#include "report/words.h"

#include <string.h>

void stats_csv(const struct stats *s, struct buf *out)
{
	static const char *const level[NR_STATS_LEVELS] = {"run", "node", "group", "user", "process"};

	buf_adds(out, "level,name,node");
	for (size_t i = 0; i < NR_STATS; i++)
		buf_addf(out, ",%s", stats_column[i].name);
	buf_addch(out, '\n');
	for (size_t l = 0; l < NR_STATS_LEVELS; l++) {
		for (size_t r = 0; r < s->nr[l]; r++) {
			const struct stats_row *row = &s->row[l][r];

			buf_addf(out, "%s,", level[l]);
			add_csv(out, row->name, strlen(row->name));
			if (l == STATS_NODE || l == STATS_PROCESS)
				buf_addf(out, ",%u", row->node);
			else
				buf_addch(out, ',');
			for (size_t i = 0; i < NR_STATS; i++) {
				buf_addch(out, ',');
				add_csv_number(out, row->value[i]);
			}
			buf_addch(out, '\n');
		}
	}
}
