/* Load averages (proc/loadavg) and pressure stall information (proc/pressure). Both are a handful of words in
 * a form of their own, so each has its own small parser; the rows say which word they are. */
#include "collect/keyed.h"

#include <string.h>

enum psi_file { CPU, MEMORY, IO, NR_PSI };

/* clang-format off */
#define WORD(n) {.arg = n}
#define PSI(f, line, word) {.source = f, .key = line, .arg = word}

static const struct metric load_metric[] = {
	{"load.1m",      "Threads running or waiting for a CPU or disk, averaged over a minute.", WORD(0), SCALE_CENTI, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "node.load", TIER_MEDIUM, false},
	{"load.5m",      "Threads running or waiting for a CPU or disk, averaged over five minutes.", WORD(1), SCALE_CENTI, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "node.load", TIER_MEDIUM, false},
	{"load.15m",     "Threads running or waiting for a CPU or disk, averaged over a quarter of an hour.", WORD(2), SCALE_CENTI, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "node.load", TIER_MEDIUM, false},
	{"load.running", "Threads that run or could run at this moment.", WORD(3), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"load.threads", "Threads of all processes that exist.", WORD(4), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
};

static const struct metric pressure_metric[] = {
	{"pressure.cpu.some",          "Time in which some task waited for a CPU.", PSI(CPU, "some", PSI_TOTAL), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.pressure", TIER_MEDIUM, false},
	{"pressure.cpu.some_avg10",    "The share of time, over ten seconds, in which some task waited for a CPU.", PSI(CPU, "some", PSI_AVG10), SCALE_PERCENT, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, NULL, TIER_MEDIUM, false},
	{"pressure.cpu.full",          "Time in which every task that had work waited for a CPU.", PSI(CPU, "full", PSI_TOTAL), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.pressure", TIER_MEDIUM, false},
	{"pressure.cpu.full_avg10",    "The share of time, over ten seconds, in which every task that had work waited for a CPU.", PSI(CPU, "full", PSI_AVG10), SCALE_PERCENT, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, NULL, TIER_MEDIUM, false},
	{"pressure.memory.some",       "Time in which some task waited for memory.", PSI(MEMORY, "some", PSI_TOTAL), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.pressure", TIER_MEDIUM, false},
	{"pressure.memory.some_avg10", "The share of time, over ten seconds, in which some task waited for memory.", PSI(MEMORY, "some", PSI_AVG10), SCALE_PERCENT, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, NULL, TIER_MEDIUM, false},
	{"pressure.memory.full",       "Time in which every task that had work waited for memory.", PSI(MEMORY, "full", PSI_TOTAL), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.pressure", TIER_MEDIUM, false},
	{"pressure.memory.full_avg10", "The share of time, over ten seconds, in which every task that had work waited for memory.", PSI(MEMORY, "full", PSI_AVG10), SCALE_PERCENT, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, NULL, TIER_MEDIUM, false},
	{"pressure.io.some",           "Time in which some task waited for a disk.", PSI(IO, "some", PSI_TOTAL), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.pressure", TIER_MEDIUM, false},
	{"pressure.io.some_avg10",     "The share of time, over ten seconds, in which some task waited for a disk.", PSI(IO, "some", PSI_AVG10), SCALE_PERCENT, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, NULL, TIER_MEDIUM, false},
	{"pressure.io.full",           "Time in which every task that had work waited for a disk.", PSI(IO, "full", PSI_TOTAL), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.pressure", TIER_MEDIUM, false},
	{"pressure.io.full_avg10",     "The share of time, over ten seconds, in which every task that had work waited for a disk.", PSI(IO, "full", PSI_AVG10), SCALE_PERCENT, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, NULL, TIER_MEDIUM, false},
};
/* clang-format on */

extern const struct collector collector_load, collector_pressure;

struct load {
	struct textfile file;
	uint32_t row;
};

/* "0.46 0.11 0.04 5/102 6571": three averages, running/existing, the last pid. False when it is not of that
 * form; words before the error are good. */
static unsigned parse_load(const char *text, size_t len, int64_t *word)
{
	const char *p = text, *end = text + len;
	unsigned nr;

	for (nr = 0; nr < ARRAY_SIZE(load_metric); nr++) {
		bool found = nr < 3 ? read_centi(&p, end, word + nr) : read_number(&p, end, word + nr);

		if (!found || p == end || *p++ != (nr == 3 ? '/' : ' '))
			break;
	}
	return nr;
}

static void fill_load(struct load *l, struct collect_context *ctx, size_t len)
{
	int64_t word[ARRAY_SIZE(load_metric)];
	unsigned nr = parse_load(l->file.text, len, word);

	for (size_t i = 0; i < ARRAY_SIZE(load_metric); i++) {
		int at = load_metric[i].at.arg;

		collect_put(ctx, l->row, i, at < (int)nr, at < (int)nr ? word[at] : 0);
	}
}

static int load_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(
		env, "proc/loadavg", (struct trouble){"proc/loadavg cannot be read", NULL}, reterr_why);
}

static int load_open(void *state, struct collect_context *ctx)
{
	struct load *l = state;
	int row, r = textfile_open(&l->file, ctx->env, "proc/loadavg", true);

	if (r < 0)
		return r;
	row = ctx->join(ctx, "node");
	if (row < 0)
		return row;
	l->row = (uint32_t)row;
	fill_load(l, ctx, strlen(l->file.text));
	collect_explain(ctx, &collector_load, 0, l->row);
	return 0;
}

static int load_sample(void *state, struct collect_context *ctx)
{
	struct load *l = state;
	ssize_t n = textfile_read(&l->file, ctx->env);

	if (n < 0) {
		collect_lost(ctx, l->row);
		return (int)n;
	}
	table_touch(ctx->table, l->row);
	fill_load(l, ctx, (size_t)n);
	return 0;
}

static void load_close(void *state, struct collect_context *ctx)
{
	textfile_close(&((struct load *)state)->file, ctx->env);
}

const struct collector collector_load = {
	.name = "load",
	.summary = "load averages of the node",
	.domain = DOMAIN_NODE,
	.metric = load_metric,
	.nr_metrics = ARRAY_SIZE(load_metric),
	.state_size = sizeof(struct load),
	.tier = TIER_MEDIUM,
	.probe = load_probe,
	.open = load_open,
	.sample = load_sample,
	.close = load_close,
};

static const char *const psi_path[NR_PSI] = {"proc/pressure/cpu", "proc/pressure/memory", "proc/pressure/io"};

struct pressure {
	struct textfile file[NR_PSI];
	bool wanted[NR_PSI];
	uint32_t row;
};

static void fill_pressure(struct pressure *s, struct collect_context *ctx, enum psi_file file, ssize_t len)
{
	const char *text = s->file[file].text;

	for (size_t i = 0; i < ARRAY_SIZE(pressure_metric); i++) {
		const struct metric_at *at = &pressure_metric[i].at;
		int64_t value = 0;
		bool known;

		if (at->source != (int16_t)file || ctx->map.col[i] < 0)
			continue;
		known = len > 0 && read_pressure(text, text + len, at->key, (enum psi_word)at->arg, &value);
		collect_put(ctx, s->row, i, known, value);
	}
}

/* A kernel that was built with it and booted without either has no folder, or answers EOPNOTSUPP. */
static int pressure_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, psi_path[CPU],
		(struct trouble){"the kernel was built or booted without pressure stall information",
			"boot with psi=1"},
		reterr_why);
}

static int pressure_open(void *state, struct collect_context *ctx)
{
	struct pressure *s = state;
	int row = ctx->join(ctx, "node"), r;

	if (row < 0)
		return row;
	s->row = (uint32_t)row;
	for (size_t i = 0; i < ARRAY_SIZE(pressure_metric); i++)
		if (ctx->map.col[i] >= 0)
			s->wanted[pressure_metric[i].at.source] = true;
	for (int file = 0; file < NR_PSI; file++) {
		if (!s->wanted[file])
			continue;
		r = textfile_open(&s->file[file], ctx->env, psi_path[file], true);
		if (r < 0)
			return r;
		fill_pressure(s, ctx, file, (ssize_t)strlen(s->file[file].text));
		collect_explain(ctx, &collector_pressure, file, s->row);
	}
	return 0;
}

static int pressure_sample(void *state, struct collect_context *ctx)
{
	struct pressure *s = state;
	int r = 0;

	table_touch(ctx->table, s->row);
	for (int file = 0; file < NR_PSI; file++) {
		ssize_t n;

		if (!s->wanted[file])
			continue;
		n = textfile_read(&s->file[file], ctx->env);
		fill_pressure(s, ctx, file, n);
		if (n < 0)
			r = (int)n;
	}
	return r;
}

static void pressure_close(void *state, struct collect_context *ctx)
{
	struct pressure *s = state;

	for (int file = 0; file < NR_PSI; file++)
		textfile_close(&s->file[file], ctx->env);
}

const struct collector collector_pressure = {
	.name = "pressure",
	.summary = "time lost waiting for CPU, memory and disks (PSI)",
	.domain = DOMAIN_NODE,
	.metric = pressure_metric,
	.nr_metrics = ARRAY_SIZE(pressure_metric),
	.state_size = sizeof(struct pressure),
	.tier = TIER_MEDIUM,
	.probe = pressure_probe,
	.open = pressure_open,
	.sample = pressure_sample,
	.close = pressure_close,
};
