/* Curves of any recording (recording.h): series at every tick, and sheets, reduced to few points. No value is
 * infinite. */
#include "recording.h"

#include "query/curves.h"
#include "text/series.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const metric[] = {"tree.cores", "proc.mem.pss_now", "proc.cpu.time", "proc.mem.rss",
	"net.rx.rate", "group.cores", "gpu.util", "perf.ipc", "cpu.busy", "energy.total", "own"};

static int take(void *arg, const struct buf *piece)
{
	(void)arg;
	(void)piece;
	return 0;
}

static void ask_series(const struct run *run, unsigned how)
{
	struct series_query q = {.metric = &metric[how % ARRAY_SIZE(metric)],
		.nr = 1,
		.rate = how & 16,
		.per_instance = how & 32,
		.group = how & 64 ? "a" : NULL};
	struct series_page page = {.form = how % 3, .per_instance = q.per_instance, .utf8 = true};
	struct series_taker taker = {.take = take};
	struct buf err;

	buf_init(&err, 1 << 16);
	series_pour(run, &q, &page, &taker, &err);
	buf_release(&err);
}

static void check_line(const struct curves_line *l, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (isinf(l->mean[i]) || isinf(l->low[i]) || isinf(l->high[i]))
			abort();
	if (isinf(l->average) || isinf(l->least) || isinf(l->most))
		abort();
}

static void ask_sheet(const struct run *run, unsigned how)
{
	const struct curves_process keep[] = {{0, 9}, {0, 10}, {1, 9}};
	struct curves_options o = {
		.from_s = NAN, .to_s = NAN, .points = 2 + how % 7, .keep = keep, .nr_keep = ARRAY_SIZE(keep)};
	struct curves_query q[6];
	struct curves *s = NULL;
	struct buf err;

	for (unsigned i = 0; i < ARRAY_SIZE(q); i++)
		q[i] = (struct curves_query){.metric = metric[(how + i) % ARRAY_SIZE(metric)],
			.per = (how / 16 + i) % 5,
			.rate = how & 1,
			.spread = how & 2};
	buf_init(&err, 1 << 16);
	if (curves_read(run, q, ARRAY_SIZE(q), &o, &s, &err) >= 0) {
		for (unsigned i = 0; i < ARRAY_SIZE(q); i++)
			curves_combine(s, i, how & 4);
		for (size_t i = 0; i < s->nr_lines; i++)
			check_line(&s->line[i], s->node[s->line[i].node].nr_times);
	}
	curves_free(s);
	buf_release(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct run *run = fuzz_run(data, size);

	if (!run)
		return 0;
	if (data[0] & 2)
		ask_series(run, data[0] / 2);
	else
		ask_sheet(run, data[0] / 2);
	return 0;
}
