/* The tables of a report. Each is a row of plan[]: whose statistics, and which columns; a column without a
 * single value is left out. Numbers of one column share one unit, which stands in its heading, so that they
 * can be compared by looking. */
#include "analysis/outline.h"

#include "base/owned.h"
#include "query/balance.h"
#include "text/phases.h"
#include "text/words.h"
#include "analysis/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROCESSES_SHOWN 20
#define ROWS_SHOWN 100 /* of groups, users and nodes */
#define PLAN_COLUMNS 20

/* ---- building ---- */

static struct text_table *outline_table(
	struct outline *o, const char *id, const char *title, size_t nr_columns, size_t max_rows)
{
	char *empty = outline_keep(o, "");
	struct text_table *t = ARRAY_ADD(o->table, o->nr_tables);

	if (!t) {
		o->kept.failed = true;
		return NULL;
	}
	*t = (struct text_table){.id = id,
		.title = title,
		.nr_columns = nr_columns,
		.nr_rows = max_rows,
		.column = calloc(MAX(nr_columns, 1), sizeof(*t->column)),
		.cell = calloc(MAX(nr_columns * max_rows, 1), sizeof(*t->cell))};
	if (!t->column || !t->cell) {
		free(t->column);
		free(t->cell);
		o->nr_tables--;
		o->kept.failed = true;
		return NULL;
	}
	for (size_t i = 0; i < nr_columns; i++)
		t->column[i].title = "";
	for (size_t i = 0; i < nr_columns * max_rows; i++)
		t->cell[i] = empty;
	return t;
}

static void set_cell(struct text_table *t, size_t row, size_t column, char *text)
{
	t->cell[row * t->nr_columns + column] = text;
}

/* A column of numbers before it is text. */
struct table_numbers {
	const char *title;
	enum metric_unit unit;
	bool per_second, whole, moment, percent;
	double length_s; /* of the run, for moments */
};

static const struct {
	double step;
	const char *const name[7];
} prefix[NR_UNITS] = {
	[UNIT_BYTES] = {1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}},
	[UNIT_JOULES] = {1000, {"J", "kJ", "MJ", "GJ", "TJ", "PJ", "EJ"}},
	[UNIT_WATTS] = {1000, {"W", "kW", "MW", "GW", "TW", "PW", "EW"}},
	[UNIT_HERTZ] = {1000, {"Hz", "kHz", "MHz", "GHz", "THz", "PHz", "EHz"}},
	[UNIT_FLOP] = {1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"}},
};

/* The unit in which the largest of the values is easy to read: what they are divided by, and its name. */
static double common_unit(const struct table_numbers *n, const double *value, size_t nr, char name[static 16])
{
	double most = 0, scale = 1;
	size_t step = 0;

	name[0] = 0;
	if (n->unit == UNIT_RATIO || n->percent) {
		snprintf(name, 16, "%%");
		return n->percent ? 1 : 0.01;
	}
	if (n->unit == UNIT_CELSIUS)
		snprintf(name, 16, "°C");
	if (n->unit >= NR_UNITS || !prefix[n->unit].step)
		return 1;
	for (size_t i = 0; i < nr; i++)
		most = isfinite(value[i]) ? MAX(most, fabs(value[i])) : most;
	while (most / scale >= prefix[n->unit].step * 0.9995 && step + 1 < ARRAY_SIZE(prefix[0].name)) {
		scale *= prefix[n->unit].step;
		step++;
	}
	snprintf(name, 16, "%s%s", prefix[n->unit].name[step], n->per_second ? "/s" : "");
	return scale;
}

static char *number_text(struct outline *o, const struct table_numbers *n, double value, double scale)
{
	char text[UNITS_SIZE];

	if (!isfinite(value))
		return outline_keep(o, "");
	if (n->moment)
		format_moment(text, value, n->length_s);
	else if (n->unit == UNIT_SECONDS)
		format_duration(text, value);
	else if (n->whole && n->unit == UNIT_COUNT)
		format_count(text, value);
	else
		format_number(text, value / scale);
	return outline_keep(o, text);
}

/* Statistics are named as within a sentence; in a table they begin one. */
static char *keep_title(struct outline *o, const char *title, const char *unit)
{
	char *text = *unit ? outline_keepf(o, "%s (%s)", title, unit) : outline_keep(o, title);

	if (*text >= 'a' && *text <= 'z')
		*text = (char)(*text - 'a' + 'A');
	return text;
}

static void set_column(struct outline *o, struct text_table *t, size_t column, const struct table_numbers *n,
	const double *value)
{
	char unit[16];
	double scale = common_unit(n, value, t->nr_rows, unit);

	t->column[column] = (struct text_column){.numbers = true, .title = keep_title(o, n->title, unit)};
	for (size_t i = 0; i < t->nr_rows; i++)
		set_cell(t, i, column, number_text(o, n, value[i], scale));
}

static double run_length(const struct analysis *s)
{
	return has_figure(s->summary, FIG_WALL) ? s->summary->figure[FIG_WALL].value : 0;
}

static struct table_numbers numbers_of(const struct analysis *s, enum stats_id id)
{
	const struct stats_column *c = &stats_column[id];

	return (struct table_numbers){.title = c->title,
		.unit = c->unit,
		.per_second = c->per_second,
		.whole = c->whole,
		.moment = c->moment,
		.length_s = run_length(s)};
}

/* ---- statistics, level by level ---- */

#define END NR_STATS

/* clang-format off */
static const struct table_plan {
	const char *id, *title, *first; /* title of the first column: whose they are */
	enum stats_level level;
	size_t least, most; /* rows: fewer say nothing new, more are left out */
	enum stats_id column[PLAN_COLUMNS];
} plan[] = {
	{"tools", "By tool", "Tool", STATS_GROUP, 1, ROWS_SHOWN,
		{STAT_INSTANCES, STAT_SAMPLES, STAT_DURATION, STAT_CPU, STAT_USER, STAT_SYSTEM, STAT_CORES_MEAN, STAT_CORES_PEAK,
		STAT_CORES_ONE_PEAK, STAT_MEMORY_PEAK, STAT_USS_ONE_PEAK, STAT_USS_PEAK, STAT_USS_MEAN, STAT_PSS_PEAK, STAT_RSS_PEAK, STAT_READ_CHARS, STAT_WRITE_CHARS,
		STAT_GPU_MEMORY_PEAK, END}},
	{"nodes", "By node", "Node", STATS_NODE, 2, ROWS_SHOWN,
		{STAT_INSTANCES, STAT_DURATION, STAT_CPU, STAT_CORES_MEAN, STAT_CORES_PEAK, STAT_MEMORY_PEAK, STAT_PSS_PEAK, STAT_RSS_PEAK,
		STAT_SWAP_PEAK, STAT_READ_BYTES, STAT_WRITE_BYTES, STAT_GPU_UTIL_MEAN, STAT_GPU_MEMORY_PEAK, STAT_ENERGY,
		STAT_NODE_CPU_USER_MEAN, STAT_NODE_CPU_IDLE_MEAN, END}},
	{"users", "By user", "User", STATS_USER, 2, ROWS_SHOWN,
		{STAT_INSTANCES, STAT_DURATION, STAT_CPU, STAT_CORES_MEAN, STAT_CORES_PEAK, STAT_MEMORY_PEAK, STAT_PSS_PEAK, STAT_RSS_PEAK,
		STAT_READ_CHARS, STAT_WRITE_CHARS, END}},
	{"processes", "By process", "Process", STATS_PROCESS, 1, PROCESSES_SHOWN,
		{STAT_DURATION, STAT_CPU, STAT_CORES_MEAN, STAT_CORES_PEAK, STAT_PSS_PEAK, STAT_USS_PEAK, STAT_RSS_PEAK,
		STAT_THREADS_PEAK, STAT_READ_CHARS, STAT_WRITE_CHARS, STAT_GPU_MEMORY_PEAK, END}},
};
/* clang-format on */

static int more_cpu(const void *a, const void *b)
{
	const struct stats_row *x = *(const struct stats_row *const *)a;
	const struct stats_row *y = *(const struct stats_row *const *)b;
	double p = isnan(x->value[STAT_CPU]) ? -1 : x->value[STAT_CPU];
	double q = isnan(y->value[STAT_CPU]) ? -1 : y->value[STAT_CPU];

	if (p != q)
		return p < q ? 1 : -1;
	return x < y ? -1 : 1;
}

static bool any_value(const struct stats_row *const *row, size_t nr, enum stats_id id)
{
	for (size_t i = 0; i < nr; i++)
		if (isfinite(row[i]->value[id]))
			return true;
	return false;
}

/* "python3 4711", and of several nodes the node. */
static char *row_name(
	struct outline *o, const struct analysis *s, const struct table_plan *p, const struct stats_row *row)
{
	const struct process_row *process;
	const char *host;

	if (p->level != STATS_PROCESS || row->process >= s->processes->nr)
		return outline_keep(o, row->name);
	process = &s->processes->row[row->process];
	host = row->node < s->stats->nr[STATS_NODE] ? s->stats->row[STATS_NODE][row->node].name : "";
	if (s->run->nr > 1)
		return outline_keepf(o, "%s %.0f on %s", row->name, process->value[PROCESS_PID], host);
	return outline_keepf(o, "%s %.0f", row->name, process->value[PROCESS_PID]);
}

static void fill_plan(struct outline *o, const struct analysis *s, const struct table_plan *p,
	const struct stats_row *const *row, size_t nr, size_t all)
{
	enum stats_id column[PLAN_COLUMNS];
	_cleanup_(freep) double *value = calloc(nr, sizeof(*value));
	struct text_table *t;
	char number[UNITS_SIZE];
	size_t nr_columns = 0;

	for (size_t i = 0; i < PLAN_COLUMNS && p->column[i] != END; i++)
		if (any_value(row, nr, p->column[i]))
			column[nr_columns++] = p->column[i];
	t = value ? outline_table(o, p->id, p->title, nr_columns + 1, nr) : NULL;
	if (!t) {
		o->kept.failed = true;
		return;
	}
	t->column[0].title = outline_keep(o, p->first);
	for (size_t i = 0; i < nr; i++)
		set_cell(t, i, 0, row_name(o, s, p, row[i]));
	for (size_t c = 0; c < nr_columns; c++) {
		struct table_numbers numbers = numbers_of(s, column[c]);

		for (size_t i = 0; i < nr; i++)
			value[i] = row[i]->value[column[c]];
		set_column(o, t, c + 1, &numbers, value);
	}
	if (all > nr)
		t->note = outline_keepf(
			o, "The %zu that used most CPU time, of %s.", nr, format_count(number, (double)all));
}

static void add_plan(struct outline *o, const struct analysis *s, const struct table_plan *p)
{
	size_t all = s->stats->nr[p->level];
	_cleanup_(freep) const struct stats_row **row = calloc(MAX(all, 1), sizeof(*row));

	if (!row) {
		o->kept.failed = true;
		return;
	}
	if (all < p->least)
		return;
	for (size_t i = 0; i < all; i++)
		row[i] = &s->stats->row[p->level][i];
	if (all > p->most || p->level == STATS_PROCESS)
		qsort(row, all, sizeof(*row), more_cpu);
	fill_plan(o, s, p, row, MIN(all, p->most), all);
}

/* ---- the run: what one row is too wide for ---- */

/* clang-format off */
static const struct {
	const char *name;
	enum stats_id column[7];
} view[] = {
	{"PSS: shared pages divided among those who share them", {STAT_PSS_MEAN, END, STAT_PSS_P95, STAT_PSS_PEAK, STAT_PSS_PEAK_AT, STAT_PSS_ONE_PEAK, STAT_PSS_PEAKS_SUM}},
	{"USS: private pages alone", {STAT_USS_MEAN, END, STAT_USS_P95, STAT_USS_PEAK, STAT_USS_PEAK_AT, STAT_USS_ONE_PEAK, STAT_USS_PEAKS_SUM}},
	{"RSS: shared pages counted in every process", {STAT_RSS_MEAN, STAT_RSS_P50, STAT_RSS_P95, STAT_RSS_PEAK, STAT_RSS_PEAK_AT, STAT_RSS_ONE_PEAK, STAT_RSS_PEAKS_SUM}},
};
/* clang-format on */

static void add_views(struct outline *o, const struct analysis *s)
{
	static const char *const title[] = {
		"Mean", "Median", "95 %", "Peak", "at", "Largest process", "Sum of peaks"};
	const struct stats_row *run = s->stats->nr[STATS_RUN] ? &s->stats->row[STATS_RUN][0] : NULL;
	struct text_table *t;

	if (!run || !any_value(&run, 1, STAT_RSS_PEAK))
		return;
	t = outline_table(
		o, "memory", "Memory, as it can be counted", 1 + ARRAY_SIZE(title), ARRAY_SIZE(view));
	if (!t)
		return;
	t->column[0].title = outline_keep(o, "View");
	for (size_t i = 0; i < ARRAY_SIZE(view); i++)
		set_cell(t, i, 0, outline_keep(o, view[i].name));
	for (size_t c = 0; c < ARRAY_SIZE(title); c++) {
		struct table_numbers numbers = numbers_of(s, view[ARRAY_SIZE(view) - 1].column[c]);
		double value[ARRAY_SIZE(view)];

		numbers.title = title[c];
		for (size_t i = 0; i < ARRAY_SIZE(view); i++)
			value[i] = view[i].column[c] == END ? NAN : run->value[view[i].column[c]];
		set_column(o, t, c + 1, &numbers, value);
	}
	t->note = outline_keep(o,
		"Peak is that of all processes at one sample; of the largest process RSS is the most that is "
		"known, between samples too. The sum of peaks adds what each process had at its own moment: "
		"it was never held at once.");
}

/* Everything else that is known of the run, one line each. */
static bool in_views(size_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(view); i++)
		for (size_t c = 0; c < ARRAY_SIZE(view[i].column); c++)
			if (view[i].column[c] == id)
				return true;
	return false;
}

static void add_run(struct outline *o, const struct analysis *s)
{
	const struct stats_row *run = s->stats->nr[STATS_RUN] ? &s->stats->row[STATS_RUN][0] : NULL;
	struct text_table *t;
	size_t nr = 0;

	for (size_t i = 0; run && i < NR_STATS; i++)
		nr += !in_views(i) && isfinite(run->value[i]);
	t = nr ? outline_table(o, "run", "The whole run", 2, nr) : NULL;
	if (!t)
		return;
	t->column[0].title = outline_keep(o, "Statistic");
	t->column[1] = (struct text_column){.title = outline_keep(o, "Value"), .numbers = true};
	nr = 0;
	for (size_t i = 0; i < NR_STATS; i++) {
		struct table_numbers numbers = numbers_of(s, (enum stats_id)i);
		char unit[16], *text;
		double scale;

		if (in_views(i) || !isfinite(run->value[i]))
			continue;
		scale = common_unit(&numbers, &run->value[i], 1, unit);
		text = number_text(o, &numbers, run->value[i], scale);
		set_cell(t, nr, 0, keep_title(o, stats_column[i].title, ""));
		set_cell(t, nr++, 1, *unit ? outline_keepf(o, "%s %s", text, unit) : text);
	}
}

/* ---- phases ---- */

static char *phases_title(struct outline *o, const char *title, bool first)
{
	return outline_keep(o,
		first				? "Phase"
			: !strcmp(title, "cpu") ? "CPU"
			: !*title		? "Remarks"
						: keep_title(o, title, ""));
}

/* The numbers of the summary's table; remarks without the brackets that part them from the numbers there. */
static void add_phases(struct outline *o, const struct analysis *s)
{
	struct text_table from, *t = NULL;
	int r = phases_table(s->summary->phases, ROWS_SHOWN, true, "\u00a0\u00a0\u00a0", &from);

	if (r >= 0)
		t = outline_table(o, "phases", "By phase", from.nr_columns, from.nr_rows);
	for (size_t c = 0; t && c < from.nr_columns; c++)
		t->column[c] = (struct text_column){.title = phases_title(o, from.column[c].title, !c),
			.numbers = from.column[c].numbers,
			.blank = from.column[c].blank,
			.prose = !*from.column[c].title};
	for (size_t i = 0; t && i < from.nr_rows * from.nr_columns; i++) {
		size_t len = strlen(from.cell[i]);
		bool remark = !*from.column[i % from.nr_columns].title && len > 1;

		t->cell[i] = outline_keepf(o, "%.*s", (int)(remark ? len - 2 : len), from.cell[i] + remark);
	}
	if (t && *from.note)
		t->note = outline_keepf(o, "%s.", from.note);
	o->has_phases = t != NULL;
	o->kept.failed |= !t;
	phases_table_free(&from);
}

/* ---- balance ---- */

static char *balance_name(struct outline *o, const struct balance_row *row)
{
	struct buf text;
	char *kept;

	if (!row->name)
		return outline_keepf(o, "the run, over %s", row->over);
	buf_init(&text, 4096);
	buf_addf(&text, "%s ", row->of);
	add_text(&text, row->name, strlen(row->name), LETTERS_UTF8);
	kept = outline_keep(o, (char *)text.data);
	buf_release(&text);
	return kept;
}

static char *on_text(struct outline *o, const char *name)
{
	struct buf text;
	char *kept;

	buf_init(&text, 4096);
	add_text(&text, name, strlen(name), LETTERS_UTF8);
	kept = outline_keep(o, (char *)text.data);
	buf_release(&text);
	return kept;
}

/* Mean over most; and which had least and most CPU time. */
static void add_balance(struct outline *o, const struct analysis *s)
{
	struct text_table *t;
	struct balance b;
	size_t nr;

	if (balance_make(s->summary, &b) < 0) {
		o->kept.failed = true;
		return;
	}
	nr = MIN(b.nr, (size_t)ROWS_SHOWN);
	t = nr ? outline_table(o, "balance", "Balance: mean over most, in %", NR_BALANCE + 3, nr) : NULL;
	if (t) {
		t->column[0].title = outline_keep(o, "Of");
		t->column[NR_BALANCE + 1].title = outline_keep(o, "Least CPU time");
		t->column[NR_BALANCE + 2].title = outline_keep(o, "Most CPU time");
		t->note = outline_keep(o,
			"100 means that all had the same. Where all wait for the one with most to do, it is "
			"the share of the time in which the others work.");
	}
	for (size_t i = 0; t && i < nr; i++) {
		const struct balance_value *cpu = &b.row[i].value[BALANCE_CPU];

		set_cell(t, i, 0, balance_name(o, &b.row[i]));
		if (cpu->nr >= 2) {
			set_cell(t, i, NR_BALANCE + 1, on_text(o, cpu->least_on));
			set_cell(t, i, NR_BALANCE + 2, on_text(o, cpu->most_on));
		}
	}
	for (unsigned k = 0; t && k < NR_BALANCE; k++) {
		t->column[k + 1] = (struct text_column){
			.title = keep_title(o, balance_column[k].title, ""), .numbers = true};
		for (size_t i = 0; i < nr; i++) {
			double ratio = balance_ratio(&b.row[i].value[k]);

			if (!isnan(ratio))
				set_cell(t, i, k + 1, outline_keepf(o, "%.0f", 100 * ratio));
		}
	}
	balance_release(&b);
}

/* ---- GPUs and counters ---- */

static void add_gpus(struct outline *o, const struct analysis *s)
{
	/* clang-format off */
	static const struct {
		enum gpu_figure_id id;
		struct table_numbers numbers;
	} column[] = {
		{GPU_FIG_UTIL_MEAN,     {.title = "Busy, mean", .percent = true}},
		{GPU_FIG_UTIL_MAX,      {.title = "Busy, max", .percent = true}},
		{GPU_FIG_JOB_UTIL_MEAN, {.title = "Busy for the job", .percent = true}},
		{GPU_FIG_MEM_UTIL_MEAN, {.title = "Memory busy, mean", .percent = true}},
		{GPU_FIG_MEM_UTIL_MAX,  {.title = "Memory busy, max", .percent = true}},
		{GPU_FIG_MEMORY_PEAK,   {.title = "Memory peak", .unit = UNIT_BYTES}},
		{GPU_FIG_MEMORY_TOTAL,  {.title = "Memory", .unit = UNIT_BYTES}},
		{GPU_FIG_POWER_MEAN,    {.title = "Power, mean", .unit = UNIT_WATTS}},
		{GPU_FIG_POWER_MAX,     {.title = "Power, max", .unit = UNIT_WATTS}},
		{GPU_FIG_ENERGY,        {.title = "Energy", .unit = UNIT_JOULES}},
	};
	/* clang-format on */
	size_t nr = MIN(s->summary->nr_gpus, (size_t)ROWS_SHOWN);
	struct text_table *t = nr ? outline_table(o, "gpus", "GPUs", 2 + ARRAY_SIZE(column), nr) : NULL;
	double value[ROWS_SHOWN];

	if (!t)
		return;
	t->column[0].title = outline_keep(o, "GPU");
	t->column[1].title = outline_keep(o, "Job's");
	for (size_t i = 0; i < nr; i++) {
		const struct summary_gpu *gpu = &s->summary->gpu[i];
		const char *name = gpu->text[GPU_TEXT_NAME], *instance = gpu->text[GPU_TEXT_INSTANCE];
		struct buf text;

		buf_init(&text, 1000);
		add_text(&text, instance ? instance : "", instance ? strlen(instance) : 0, LETTERS_UTF8);
		buf_addch(&text, ' ');
		add_text(&text, name ? name : "", name ? strlen(name) : 0, LETTERS_UTF8);
		set_cell(t, i, 0, outline_keep(o, (char *)text.data));
		set_cell(t, i, 1, outline_keep(o, gpu->text[GPU_TEXT_JOB] ? gpu->text[GPU_TEXT_JOB] : ""));
		buf_release(&text);
	}
	for (size_t c = 0; c < ARRAY_SIZE(column); c++) {
		for (size_t i = 0; i < nr; i++) {
			const struct figure *f = &s->summary->gpu[i].figure[column[c].id];

			value[i] = f->why ? NAN : f->value;
		}
		set_column(o, t, c + 2, &column[c].numbers, value);
	}
}

static void add_counters(struct outline *o, const struct analysis *s)
{
	size_t nr = 0;
	struct text_table *t;

	for (size_t i = 0; i < s->summary->nr_counters; i++)
		nr += !s->summary->counter[i].value.why;
	t = nr ? outline_table(o, "counters", "Hardware counters", 3, nr) : NULL;
	if (!t)
		return;
	t->column[0].title = outline_keep(o, "Counter");
	t->column[1] = (struct text_column){.title = outline_keep(o, "Value"), .numbers = true};
	t->column[2] =
		(struct text_column){.title = outline_keep(o, "Counted (% of the time)"), .numbers = true};
	nr = 0;
	for (size_t i = 0; i < s->summary->nr_counters; i++) {
		const struct summary_counter *counter = &s->summary->counter[i];
		char text[UNITS_SIZE];

		if (counter->value.why)
			continue;
		set_cell(t, nr, 0, outline_keep(o, counter->name));
		set_cell(t, nr, 1,
			outline_keep(o,
				format_value(
					text, counter->value.value, counter->unit, counter->per_second)));
		if (!counter->running_share.why)
			set_cell(t, nr, 2,
				outline_keep(o, format_number(text, 100 * counter->running_share.value)));
		nr++;
	}
}

void outline_tables(struct outline *o, const struct analysis *s)
{
	if (s->summary->phases && s->summary->phases->nr)
		add_phases(o, s);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(plan); i++)
		add_plan(o, s, &plan[i]);
	add_balance(o, s);
	add_views(o, s);
	add_gpus(o, s);
	add_plan(o, s, &plan[ARRAY_SIZE(plan) - 1]);
	add_counters(o, s);
	add_run(o, s);
}
