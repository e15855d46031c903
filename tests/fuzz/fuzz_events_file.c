/* The parser of event files on any text: what it takes has names and expressions that can be used, what it
 * does not has a line and a reason. */
#include "perf/groups.h"
#include "base/expr.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_group(const struct event_group *g)
{
	if (!g->name[0] || !g->help[0] || (!g->nr_events && !g->missing[0]))
		abort();
	for (unsigned i = 0; i < g->nr_events; i++)
		if (!g->event[i].name[0] || !g->event[i].code[0] ||
			g->event[i].of_package != (g->event[i].bytes > 0))
			abort();
	for (unsigned i = 0; i < g->nr_formulas; i++) {
		const char *why = NULL;
		struct expr e;
		size_t at;

		/* It may be wrong otherwise; whoever uses it is told. Names are of events. */
		if (expr_parse(&e, g->formula[i].expression, &why, &at) == 0)
			for (unsigned k = 0; k < e.nr_names; k++)
				if (strncmp(e.name[k], "perf.", 5))
					abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event_file f;
	unsigned line = 0;
	char err[64] = "";

	if (event_file_parse((const char *)data, size, &f, &line, err, sizeof(err)) < 0) {
		if (!line || !err[0] || f.group)
			abort();
		return 0;
	}
	if (!f.serves[0] || !f.nr_groups)
		abort();
	for (unsigned i = 0; i < f.nr_groups; i++)
		check_group(&f.group[i]);
	event_file_release(&f);
	return 0;
}
