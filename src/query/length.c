/* How long a run is, without reading its ticks: see length.h. */
#include "query/length.h"

#include "query/align.h"
#include "query/walk.h"

#include <string.h>

/* Where the end mark does not say it, it is the time of the last record. */
static int length_of(struct walk *s, double *ret_s)
{
	struct store_record record;
	int64_t last_ns = 0, end_ns;
	int r = store_seek(s->reader, INT64_MAX);

	while (r >= 0 && (r = store_next(s->reader, &record)) > 0) {
		clock_record(s->clock, &record);
		last_ns = MAX(last_ns, record.time_ns);
		if (record.type == STORE_SUMMARY && pairs_get_num(record.pairs, "end_ns", &end_ns)) {
			last_ns = MAX(end_ns, 0);
			break;
		}
	}
	*ret_s = (double)last_ns / 1e9;
	return MIN(r, 0);
}

int run_length(const struct run *run, double *ret_s, struct buf *reterr)
{
	struct run_node *node = NULL;
	int r = run_align(run, &node, reterr);

	*ret_s = 0;
	for (size_t i = 0; i < run->nr && r >= 0; i++) {
		struct walk *s = NULL;
		double length_s = 0;

		r = walk_open(run->path[i], NULL, &s);
		if (r >= 0)
			r = length_of(s, &length_s);
		if (r < 0)
			buf_addf(reterr, "%s: %s", run->path[i], strerror(-r));
		*ret_s = MAX(*ret_s, run_node_offset_s(&node[i]) + length_s);
		walk_close(s);
	}
	run_align_free(node, run->nr);
	return r;
}
