/* The benchmark file of Snakemake: a row for each recording, as snakemake/benchmark.py writes it, as a table
 * with tabs or, where the file is called .jsonl, as a line of JSON. Their MB are MiB, mean_load is percent of
 * one core. Snakemake samples every 30 s; these are the sums and peaks of the whole run. What is not known is
 * NA, as there. */
#include "base/units.h"
#include "export/outlet.h"
#include "export/text.h"
#include "query/summary.h"

#include <math.h>
#include <string.h>

#define MIB (1.0 / (1 << 20))

/* clang-format off */
static const struct snakemake_column {
	const char *name;
	int figure;    /* -1: made of others */
	double factor; /* our unit x factor = theirs */
	int digits;    /* of the table */
} column[] = {
	{"s",         FIG_WALL,        1,   4},
	{"h:m:s",     -1,              0,   0},
	{"max_rss",   FIG_RSS,         MIB, 2},
	{"max_vms",   FIG_VMS,         MIB, 2},
	{"max_uss",   FIG_USS,         MIB, 2},
	{"max_pss",   FIG_PSS,         MIB, 2},
	{"io_in",     FIG_READ_BYTES,  MIB, 2},
	{"io_out",    FIG_WRITE_BYTES, MIB, 2},
	{"mean_load", -1,              100, 2},
	{"cpu_time",  FIG_CPU,         1,   2},
};
/* In the order of their names. */
static const unsigned char by_name[] = {9, 1, 6, 7, 5, 2, 4, 3, 8, 0};
/* clang-format on */

struct snakemake {
	const struct export_job *job;
};

static double figure_of(const struct summary *s, enum figure_id id)
{
	return has_figure(s, id) ? s->figure[id].value : NAN;
}

/* A process may have had more between two samples than all together at any of them. */
static double most_resident(const struct summary *s)
{
	double mark = figure_of(s, FIG_HWM), sampled = figure_of(s, FIG_RSS);

	return is_between_samples(mark, sampled) ? mark : sampled;
}

static double value_of(const struct summary *s, const struct snakemake_column *c)
{
	double v = c->figure == FIG_RSS ? most_resident(s)
		: c->figure >= 0	? figure_of(s, (enum figure_id)c->figure)
					: figure_of(s, FIG_CPU) / figure_of(s, FIG_WALL);

	return isfinite(v) ? v * c->factor : NAN;
}

/* "1 day, 2:03:04", as Python writes a time. */
static void add_hours(struct buf *out, const struct summary *s)
{
	double wall = figure_of(s, FIG_WALL);
	uint64_t left, days;

	if (!(wall >= 0 && wall < 1e15)) {
		buf_adds(out, "NA");
		return;
	}
	left = (uint64_t)wall;
	days = left / 86400;
	left %= 86400;
	if (days)
		buf_addf(out, "%llu day%s, ", (unsigned long long)days, days == 1 ? "" : "s");
	buf_addf(out, "%u:%02u:%02u", (unsigned)(left / 3600), (unsigned)(left / 60 % 60),
		(unsigned)(left % 60));
}

static void add_row(struct buf *out, const struct summary *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(column); i++) {
		double v = value_of(s, &column[i]);

		buf_adds(out, i ? "\t" : "");
		if (!column[i].factor)
			add_hours(out, s);
		else if (isnan(v))
			buf_adds(out, "NA");
		else
			buf_addf(out, "%.*f", column[i].digits, v);
	}
	buf_addch(out, '\n');
}

static void add_line(struct buf *out, const struct summary *s)
{
	char text[EXPORT_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(by_name); i++) {
		const struct snakemake_column *c = &column[by_name[i]];
		double v = value_of(s, c);

		buf_addf(out, "%s\"%s\": ", i ? ", " : "{", c->name);
		if (c->factor && !isnan(v)) {
			buf_add(out, text, format_real(text, v));
			continue;
		}
		buf_addch(out, '"');
		if (c->factor)
			buf_adds(out, "NA");
		else
			add_hours(out, s);
		buf_addch(out, '"');
	}
	buf_adds(out, "}\n");
}

static bool is_json(const struct export_job *job)
{
	size_t len = job->name ? strlen(job->name) : 0;

	return len > 6 && !strcmp(job->name + len - 6, ".jsonl");
}

static int snakemake_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	const struct tables_options *o = job->options;
	struct snakemake *m;

	if (o && (!isnan(o->from_s) || !isnan(o->to_s))) {
		buf_adds(reterr,
			"a benchmark is of the whole run: not of a part of it (--from, --until, --phase)");
		return -EINVAL;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->job = job;
	*ret = m;
	return 0;
}

/* All that it needs is the summary. */
static int snakemake_add(void *e, const struct data_table_batch *b)
{
	(void)e, (void)b;
	return 0;
}

static void snakemake_drop(void *e)
{
	free(e);
}

static int snakemake_close(void *e)
{
	const struct export_job *job = ((struct snakemake *)e)->job;
	const struct summary *s = job->summary;
	size_t nr = !s ? 0 : s->nr_nodes ? s->nr_nodes : 1;
	bool json = is_json(job);
	struct buf out;
	int r;

	buf_init(&out, SIZE_MAX / 2);
	for (size_t i = 0; !json && i < ARRAY_SIZE(column); i++)
		buf_addf(&out, "%s%c", column[i].name, i + 1 < ARRAY_SIZE(column) ? '\t' : '\n');
	for (size_t i = 0; i < nr; i++)
		(json ? add_line : add_row)(&out, s->nr_nodes ? &s->node[i] : s);
	r = out.err ? out.err : outlet_add(job->out, out.data, out.len);
	buf_release(&out);
	snakemake_drop(e);
	return r;
}

const struct exporter exporter_snakemake = {
	.name = "snakemake",
	.suffix = ".benchmark.tsv",
	.also = ".benchmark.txt,.benchmark.jsonl",
	.help = "the benchmark file of Snakemake: a row for each recording",
	.shape = EXPORT_ONE_FILE,
	.streams = true,
	.is_text = true,
	.wants_summary = true,
	.only_summary = true,
	.open = snakemake_open,
	.add = snakemake_add,
	.close = snakemake_close,
	.drop = snakemake_drop,
};
