/* Tables that are not of time. Their contents are read when they are reached. */
#include "query/tables_internal.h"

#include "base/str.h"
#include "query/events.h"
#include "query/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct still_data {
	struct run_events *events;
	size_t phase, event; /* that were given */
	size_t recording;
	struct walk *walk; /* its metadata is being given */
	size_t part;	   /* of the summary */
	size_t node;	   /* whose phases are being given; 0: of the run */
};

/* clang-format off */
#define TEXT(name, help)        {name, help, FIELD_TEXT, .scale = 1}
#define TIME(name, help)        {name, help, FIELD_TIME, .scale = 1}
#define FLAG(name, help)        {name, help, FIELD_FLAG, .scale = 1}
#define REAL(name, help, unit)  {name, help, FIELD_REAL, unit, .scale = 1, .kind = KIND_GAUGE}
#define INT(name, help, unit)   {name, help, FIELD_INT, unit, .scale = 1, .kind = KIND_GAUGE}

#define HELP_PROCESS(heading, width, help) help
#define FIELD_OF_SECONDS REAL
#define FIELD_OF_BYTES INT
#define FIELD_OF_NUMBER INT
#define AMOUNT(id, name, unit, children, metric, ended, figure, stats, process) \
	IF_##process(FIELD_OF_##unit(name, HELP_##process, QUANTITY_UNIT_##unit),)
#define LEVEL(id, name, kind, metric, figure, stats, process) \
	IF_##process(INT(name "_peak", HELP_##process, QUANTITY_UNIT_##kind),)
#define HWM INT("hwm", "Most resident memory of its last program, as the kernel kept it.", UNIT_BYTES),

static const struct field process_field[] = {
	INT("process", "Its number, which stands in the tables of time.", UNIT_COUNT),
	TEXT("host", "The node."),
	INT("pid", "Its ID.", UNIT_CODE),
	INT("ppid", "Its parent's.", UNIT_CODE),
	INT("uid", "The number of its user.", UNIT_CODE),
	TEXT("name", "As the kernel calls it."),
	TEXT("exe", "The program's file."),
	TEXT("command", "Its words, as a shell would take them."),
	FLAG("command_cut", "There were more words than were recorded."),
	TEXT("groups", "Names of all groups it was ever in, with commas."),
	TIME("start", "When it began: UTC."),
	TIME("end", "When it ended: UTC."),
	REAL("wall", "How long it lived, or has lived to the end of the recording.", UNIT_SECONDS),
	FLAG("ended", "It ended during the recording."),
	TEXT("how", "How that is known: reaped, exit-record, event, noticed, lost."),
	INT("exit_code", "What it returned.", UNIT_CODE),
	INT("exit_signal", "The signal that ended it.", UNIT_CODE),
	FLAG("late", "It lived before the recording: amounts are from then on."),
	FLAG("sampled", "It was seen at a tick; else all that is known comes from its end."),
	PROCESS_QUANTITIES(AMOUNT, LEVEL, HWM)
	FLAG("cpu_lower_bound", "Its last moments are not in cpu."),
	FLAG("hwm_lower_bound", "What it had after its last sample is not known."),
	FLAG("hwm_upper_bound", "hwm may be that of its starter, or of children that it waited for."),
	FLAG("rss_peak_between_samples", "No tick saw rss_peak."),
};

static const struct field event_field[] = {
	TIME("time", "When: UTC."),
	REAL("elapsed", "Time after the start of the run.", UNIT_SECONDS),
	TIME("end", "When it was over: UTC."),
	REAL("length", "How long it lasted.", UNIT_SECONDS),
	TEXT("host", "The node."),
	TEXT("kind", "phase, mark, stopped, signal, clock, backoff, lost, oom…"),
	TEXT("label", "What happened, for people."),
	TEXT("data", "What a phase or a mark was told with: a JSON object of texts."),
};

static const struct field metric_field[] = {
	TEXT("frame", "The table it is a column of."),
	TEXT("name", "The column."),
	TEXT("unit", "Its unit."),
	FLAG("per_second", "The unit is per second."),
	TEXT("kind", "counter, gauge, peak, constant."),
	TEXT("fold", "How instances become one: sum, mean, max, none."),
	REAL("scale", "Value times this is the unit.", UNIT_COUNT),
	TEXT("resample", "What of several ticks makes one row: mean, max, last."),
	TEXT("help", "What it is."),
	FLAG("available", "It could be read on some node; else it is no column."),
	TEXT("why", "Why it could not be read."),
};

static const struct field meta_field[] = {
	INT("recording", "Which recording of the run, from 0.", UNIT_CODE),
	TEXT("host", "The node."),
	TEXT("key", "What is told."),
	TEXT("value", "As it was recorded."),
};

static const struct field summary_field[] = {
	TEXT("host", "The node; missing: the whole run."),
	TEXT("name", "As in the summary for programs, levels parted by dots."),
	REAL("value", "The figure.", UNIT_COUNT),
	TEXT("unit", "Its unit."),
	TEXT("why", "Why there is no value."),
};

#define PHASE_FIELD_SECONDS REAL
#define PHASE_FIELD_BYTES INT
#define PHASE_FIELD_NUMBER INT
#define PHASE_FIELD_COUNT INT
#define PHASE_FIELD_PLAIN REAL
#define PHASE_FIELD_JOULES REAL
#define PHASE_FIELD_HERTZ REAL
#define PHASE_UNIT_SECONDS UNIT_SECONDS
#define PHASE_UNIT_BYTES UNIT_BYTES
#define PHASE_UNIT_COUNT UNIT_COUNT
#define PHASE_UNIT_PLAIN UNIT_COUNT
#define PHASE_UNIT_JOULES UNIT_JOULES
#define PHASE_UNIT_HERTZ UNIT_HERTZ
#define HELP_STATS(title, help, ...) help
#define HELP_NO_STATS NULL
#define PHASE_VALUE(id, name, unit, join, title, help) PHASE_FIELD_##unit(name, help, PHASE_UNIT_##unit),
#define PHASE_AMOUNT(id, name, unit, children, metric, ended, figure, stats, process) \
	PHASE_FIELD_##unit(name QUANTITY_SUFFIX_##unit, HELP_##stats, QUANTITY_UNIT_##unit),
#define PHASE_LEVEL(id, name, kind, ...) \
	INT(name "_peak" QUANTITY_SUFFIX_##kind, PHASE_PEAK_HELP, QUANTITY_UNIT_##kind), \
	REAL(name "_mean" QUANTITY_SUFFIX_##kind, PHASE_MEAN_HELP, QUANTITY_UNIT_##kind),

static const struct field phase_field[] = {
	TEXT("level", "phase: all its repetitions; occurrence: one of them."),
	TEXT("host", "The node; missing: the whole run."),
	TEXT("recording", "The file, such as that of a rank; missing: the whole run."),
	TEXT("phase", "Its name: \"epoch\" of \"epoch 1\", \"epoch 2\"."),
	TEXT("name", "Of an occurrence: as it was told."),
	TEXT("parent", "The phase that it lies in."),
	INT("depth", "How many phases lie around it.", UNIT_COUNT),
	INT("number", "Of an occurrence: which one, from 1.", UNIT_CODE),
	INT("repetitions", "How many there are.", UNIT_COUNT),
	TIME("time", "When it began: UTC; of several the first."),
	REAL("elapsed", "The same after the start of the run.", UNIT_SECONDS),
	TIME("end", "When it was over: UTC; of several the last."),
	FLAG("ended", "The job ended it; else it was open when the recording ended."),
	FLAG("interpolated", "Fewer than two samples lie in it, or its edges between samples make it unsure by more than 5 %."),
	INT("nodes", "Nodes that told of it.", UNIT_COUNT),
	INT("processes", "Processes that told of it at the same time.", UNIT_COUNT),
	REAL("each_mean_s", "How long a repetition took, mean.", UNIT_SECONDS),
	REAL("each_sd_s", "The standard deviation of that.", UNIT_SECONDS),
	INT("slowest", "The repetition that took notably longer than the others.", UNIT_CODE),
	REAL("slower_percent", "By how much.", UNIT_COUNT),
	TEXT("slower_why", "Why, as far as is known."),
	PHASE_COLUMNS(PHASE_VALUE, PHASE_AMOUNT, PHASE_LEVEL)
};

const struct still still_tables[NR_STILL] = {
	[STILL_PROCESSES] = {"processes", "Every process, however short it lived, with its end.", process_field, ARRAY_SIZE(process_field)},
	[STILL_EVENTS]    = {"events", "Phases of the job, and what happened.", event_field, ARRAY_SIZE(event_field)},
	[STILL_METRICS]   = {"metrics", "Every column of every table: unit, kind, help.", metric_field, ARRAY_SIZE(metric_field)},
	[STILL_META]      = {"meta", "What the recordings say of themselves.", meta_field, ARRAY_SIZE(meta_field)},
	[STILL_SUMMARY]   = {"summary", "The run in numbers.", summary_field, ARRAY_SIZE(summary_field)},
	[STILL_PHASES]    = {"phases", "What was used and held in each phase of the job, and in each of its repetitions.", phase_field, ARRAY_SIZE(phase_field)},
};
/* clang-format on */

static void put_string(struct data_table_own *fr, const char *text)
{
	put_bytes(fr, text, text ? strlen(text) : 0);
}

static void put_host(struct tables *f, struct data_table_own *fr, size_t recording)
{
	fr->filling->recording[fr->filling->nr] = (uint32_t)recording;
	put_string(fr, f->host[recording]);
}

/* Seconds after `start`, which may not be known. */
static void put_time(struct data_table_own *fr, int64_t start, double seconds)
{
	int64_t at;

	if (start > 0 && fabs(seconds) < 9e9 && !__builtin_add_overflow(start, round_i64(seconds * 1e9), &at))
		put_integer(fr, at);
	else
		put_missing(fr);
}

/* ---- processes ---- */

/* Texts parted by NULs: words of a command, or names. */
static void put_list(struct data_table_own *fr, const char *texts, size_t len, bool command)
{
	struct buf out;

	buf_init(&out, SIZE_MAX / 4);
	for (size_t from = 0; len && from <= len;) {
		size_t n = strnlen(texts + from, len - from);

		if (from)
			buf_addch(&out, command ? ' ' : ',');
		if (command)
			add_shell_word(&out, texts + from, n);
		else
			buf_add(&out, texts + from, n);
		from += n + 1;
	}
	if (out.err)
		fr->err = -ENOMEM;
	put_bytes(fr, len ? out.data : NULL, out.len);
	buf_release(&out);
}

static void put_process(struct tables *f, struct data_table_own *fr, size_t number)
{
	const struct process_row *row = &f->processes->row[number];
	int64_t start = f->start_ns[row->node];
	bool known = row->status >= 0;

	put_integer(fr, (int64_t)number);
	put_host(f, fr, row->node);
	put_number(fr, row->value[PROCESS_PID]);
	put_number(fr, row->value[PROCESS_PPID]);
	put_number(fr, row->value[PROCESS_UID]);
	put_bytes(fr, row->name ? row->name : "", row->name_len);
	put_bytes(fr, row->exe_len ? row->exe : NULL, row->exe_len);
	put_list(fr, row->command, row->command_len, true);
	put_flag(fr, row->command_cut);
	put_list(fr, row->groups, row->groups_len, false);
	put_time(fr, start, row->value[PROCESS_START]);
	put_time(fr, row->ended ? start : 0, row->value[PROCESS_END]);
	put_number(fr, row->value[PROCESS_WALL]);
	put_flag(fr, row->ended);
	put_string(fr, row->how[0] ? row->how : NULL);
	put_number(fr, known && WIFEXITED(row->status) ? WEXITSTATUS(row->status) : NAN);
	put_number(fr, known && WIFSIGNALED(row->status) ? WTERMSIG(row->status) : NAN);
	put_flag(fr, row->late);
	put_flag(fr, row->sampled);
	for (unsigned i = PROCESS_CPU; i < NR_PROCESS_VALUES; i++)
		put_number(fr, row->value[i]);
	put_flag(fr, row->cpu_least);
	put_flag(fr, row->hwm_least);
	put_flag(fr, row->hwm_most);
	put_flag(fr, row->rss_between);
}

/* Up to a batch of rows, each put by `put`; 0 when there are no more. */
static int put_rows(struct tables *f, struct data_table_own *fr, size_t nr,
	void (*put)(struct tables *f, struct data_table_own *fr, size_t row))
{
	int r = 0;

	for (uint32_t i = 0; i < DATA_TABLE_ROWS_MOST && f->still_row < nr && r >= 0; i++) {
		r = data_table_row(fr);
		if (r < 0)
			return r;
		put(f, fr, f->still_row++);
		r = data_table_row_end(fr);
	}
	return r < 0 ? r : f->still_row < nr;
}

static int processes_next(struct tables *f, struct data_table_own *fr)
{
	int r = tables_tell(f);

	return r < 0 ? r : put_rows(f, fr, f->processes->nr, put_process);
}

/* ---- events ---- */

static const struct run_event *event_next(struct still_data *d)
{
	const struct run_events *m = d->events;
	const struct run_event *phase = d->phase < m->nr_phases ? &m->phase[d->phase] : NULL;
	const struct run_event *event = d->event < m->nr_events ? &m->event[d->event] : NULL;

	if (phase && (!event || phase->time_s <= event->time_s)) {
		d->phase++;
		return phase;
	}
	d->event++;
	return event;
}

/* Reading them has a limit: the last row says how many there were beyond it. */
static void put_event(struct tables *f, struct data_table_own *fr, size_t row)
{
	const struct run_event *m = event_next(f->still_data);
	char label[64];
	int64_t start;

	(void)row;
	if (!m) {
		for (unsigned i = 0; i < 5; i++) /* up to its kind */
			put_missing(fr);
		put_text(fr, "left_out");
		snprintf(label, sizeof(label), "%zu more are left out", f->still_data->events->left_out);
		put_text(fr, label);
		put_missing(fr);
		return;
	}
	start = f->start_ns[m->node] > 0 ? f->first_ns : 0;
	put_time(fr, start, m->time_s);
	put_real(fr, m->time_s);
	put_time(fr, start, m->end_s);
	put_real(fr, m->end_s - m->time_s);
	put_host(f, fr, m->node);
	put_text(fr, m->kind);
	put_text(fr, m->label);
	put_text(fr, m->data);
}

/* Leaves those that reach into the time that was asked for. */
static size_t run_events_cut(const struct tables *f, struct run_event *list, size_t nr)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		double end = isnan(list[i].end_s) ? list[i].time_s : list[i].end_s;

		if (!(list[i].time_s > f->to_s) && !(end < f->from_s)) {
			list[kept++] = list[i];
			continue;
		}
		run_event_release(&list[i]);
	}
	return kept;
}

static int events_read(struct tables *f)
{
	struct run_events *m = TAKE_PTR(f->events);
	struct buf why;
	int r = 0;

	buf_init(&why, 4096);
	if (!m)
		r = run_events_read(f->run, &m, &why);
	buf_release(&why);
	if (r < 0)
		return r;
	m->nr_phases = run_events_cut(f, m->phase, m->nr_phases);
	m->nr_events = run_events_cut(f, m->event, m->nr_events);
	f->still_data->events = m;
	return 0;
}

static int events_next(struct tables *f, struct data_table_own *fr)
{
	const struct run_events *m = f->still_data->events;
	int r = m ? 0 : events_read(f);

	m = f->still_data->events;
	return r < 0 ? r : put_rows(f, fr, m->nr_phases + m->nr_events + (m->left_out > 0), put_event);
}

/* ---- metrics ---- */

static void put_column(
	struct data_table_own *fr, const char *table, const struct column_own *c, const struct field *field)
{
	put_text(fr, table);
	put_text(fr, c->name);
	put_text(fr, unit_name(c->unit));
	put_flag(fr, c->per_second);
	put_text(fr, kind_name(c->kind));
	put_text(fr, fold_name(c->fold));
	put_real(fr, field ? field->scale : 1);
	put_text(fr, field ? field->resample : NULL);
	put_text(fr, c->help);
	put_flag(fr, c->available);
	put_text(fr, c->available ? NULL : c->why);
}

static const struct data_table_own *data_table_at(const struct tables *f, size_t i)
{
	return i < f->nr ? &f->table[i] : &f->told[i - f->nr];
}

/* Fields of all tables of time, one after the other, then what could not be read. */
static void put_metric(struct tables *f, struct data_table_own *fr, size_t row)
{
	for (size_t i = 0; i < f->nr + f->nr_told; i++) {
		const struct data_table_own *of = data_table_at(f, i);
		size_t nr = of->still >= 0 ? 0 : of->nr - of->nr_keys;

		if (row < nr)
			return put_column(fr, of->face.name, &of->own[of->nr_keys + row],
				&of->field[of->nr_keys + row]);
		row -= nr;
	}
	put_column(fr, f->absent[row].table, &f->absent[row].column, NULL);
}

static int metrics_next(struct tables *f, struct data_table_own *fr)
{
	size_t nr = f->nr_absent;

	for (size_t i = 0; i < f->nr + f->nr_told; i++)
		nr += data_table_at(f, i)->still >= 0
			? 0
			: data_table_at(f, i)->nr - data_table_at(f, i)->nr_keys;
	return put_rows(f, fr, nr, put_metric);
}

/* ---- metadata ---- */

static void put_meta(struct tables *f, struct data_table_own *fr, size_t row)
{
	const struct still_data *d = f->still_data;
	const struct meta_item *item = &d->walk->meta.item[row];

	put_integer(fr, (int64_t)d->recording);
	put_host(f, fr, d->recording);
	put_string(fr, item->key);
	put_bytes(fr, item->value, item->len);
}

static int meta_next(struct tables *f, struct data_table_own *fr)
{
	struct still_data *d = f->still_data;
	int r = 0;

	if (d->recording == f->run->nr)
		return 0;
	if (!d->walk)
		r = walk_open(f->run->path[d->recording], NULL, &d->walk);
	if (r >= 0)
		r = put_rows(f, fr, d->walk->meta.nr, put_meta);
	if (r)
		return r;
	d->walk = walk_close(d->walk);
	d->recording++;
	f->still_row = 0;
	return d->recording < f->run->nr;
}

/* ---- the summary ---- */

static const char *unit_of_name(const char *name)
{
	static const char *const unit[][2] = {{"_s", "seconds"}, {"_bytes", "bytes"}, {"_ratio", "ratio"},
		{"_percent", "percent"}, {"_per_s", NULL}, {"_watts", "watts"}, {"_joules", "joules"},
		{"_w", "watts"}, {"_j", "joules"}, {"_c", "celsius"}, {"_hz", "hertz"}, {"_cores", "count"}};
	size_t len = strlen(name);

	if (len > 12 && !strcmp(name + len - 12, "_bytes_per_s"))
		return "bytes/s";
	for (size_t i = 0; i < ARRAY_SIZE(unit); i++) {
		size_t n = strlen(unit[i][0]);

		if (len > n && !strcmp(name + len - n, unit[i][0]))
			return unit[i][1];
	}
	return "count";
}

struct telling { /* figures of a summary, one after the other */
	struct tables *f;
	struct data_table_own *fr;
	const char *host; /* NULL: of the run */
	struct buf name;  /* what stands before the names: "groups.NAME." */
};

static void name_cut(struct telling *t, size_t len)
{
	t->name.len = len;
	t->name.data[len] = 0;
}

/* The figure whose name was just added; then it is cut to what it was. `unit` NULL: as the name says. */
static int tell_figure(struct telling *t, size_t before, const struct figure *figure, const char *unit)
{
	const char *name = (const char *)t->name.data;
	int r = data_table_row(t->fr);

	if (r < 0 || t->name.err)
		return -ENOMEM;
	put_string(t->fr, t->host);
	put_string(t->fr, name);
	put_real(t->fr, figure->why ? NAN : figure->value);
	put_string(t->fr, unit ? unit : unit_of_name(name));
	put_string(t->fr, figure->why && *figure->why ? figure->why : NULL);
	name_cut(t, before);
	return data_table_row_end(t->fr);
}

static int tell_gpu(struct telling *t, size_t before, const struct summary_gpu *gpu, bool of_group)
{
	const char *instance = gpu->text[GPU_TEXT_INSTANCE];
	int r = 0;

	for (unsigned i = 0; i < NR_GPU_FIGURES && r >= 0; i++) {
		const char *field = of_group ? summary_gpu_row[i].of_group : summary_gpu_row[i].name;

		if (!field)
			continue;
		buf_addf(&t->name, "gpus.%s.%s", instance ? instance : "?", field);
		r = tell_figure(t, before, &gpu->figure[i], NULL);
	}
	return r;
}

static int tell_summary(struct telling *t, const struct summary *s)
{
	size_t before = t->name.len;
	char unit[64];
	int r = 0;

	for (unsigned i = 0; i < NR_FIGURES && r >= 0; i++) {
		const struct summary_row *row = &summary_row[i];

		if (s->name && !row->of_groups)
			continue;
		if (row->group)
			buf_addf(&t->name, "%s.", row->group);
		buf_adds(&t->name, row->name);
		r = tell_figure(t, before, &s->figure[i], NULL);
	}
	for (size_t i = 0; i < s->nr_counters && r >= 0; i++) {
		const struct summary_counter *c = &s->counter[i];

		snprintf(unit, sizeof(unit), "%s%s", unit_name(c->unit), c->per_second ? "/s" : "");
		buf_addf(&t->name, "perf.%s", c->name);
		r = tell_figure(t, before, &c->value, unit);
	}
	for (size_t i = 0; i < s->nr_gpus && r >= 0; i++)
		r = tell_gpu(t, before, &s->gpu[i], s->name != NULL);
	for (size_t i = 0; i < s->nr_groups && r >= 0; i++) {
		buf_addf(&t->name, "groups.%s.", s->group[i].name);
		r = tell_summary(t, &s->group[i]);
		name_cut(t, before);
	}
	return r;
}

/* The run, then its nodes, one at a time. */
static int summary_next(struct tables *f, struct data_table_own *fr)
{
	struct still_data *d = f->still_data;
	struct telling t = {.f = f, .fr = fr};
	const struct summary *all, *s;
	int r;

	if (!f->run->nr)
		return 0;
	buf_init(&t.name, SIZE_MAX / 4);
	r = tables_summary(f, &all, &t.name);
	buf_reset(&t.name);
	if (r >= 0) {
		s = d->part ? &all->node[d->part - 1] : all;
		t.host = d->part || !all->nr_nodes ? s->host : NULL;
		r = tell_summary(&t, s);
	}
	buf_release(&t.name);
	return r < 0 ? r : d->part++ < all->nr_nodes;
}

/* ---- phases ---- */

static double counted_in(const struct summary *s, const struct phase *p, const char *metric)
{
	for (size_t i = 0; i < s->nr_counters; i++)
		if (!strcmp(s->counter[i].name, metric + strlen("perf.")))
			return counter_in_phase(s, &s->counter[i], p);
	return NAN;
}

static void put_phase(
	struct tables *f, struct data_table_own *fr, const struct summary *s, const struct phase *p)
{
	const struct phases *all = s->phases;
	const struct phase *of = p->number ? &all->phase[p->fold] : p;
	int64_t start = f->first_ns == INT64_MAX ? 0 : f->first_ns;

	put_string(fr, p->number ? "occurrence" : "phase");
	put_string(fr, s->nr_nodes ? NULL : s->host);
	put_bytes(fr, s->nr_nodes ? NULL : s->path, strlen(s->path));
	put_string(fr, of->name);
	put_string(fr, p->number ? p->name : NULL);
	put_string(fr, of->parent < 0 ? NULL : all->phase[of->parent].name);
	put_integer(fr, of->depth);
	put_number(fr, p->number ? p->number : NAN);
	put_integer(fr, p->count);
	put_time(fr, start, p->begin_s);
	put_real(fr, p->begin_s);
	put_time(fr, start, p->end_s);
	put_flag(fr, !p->cut);
	put_flag(fr, p->interpolated);
	put_integer(fr, p->nodes);
	put_integer(fr, p->senders);
	put_real(fr, p->mean_s);
	put_real(fr, p->sd_s);
	put_number(fr, p->slowest ? p->slowest : NAN);
	put_real(fr, p->slowest ? 100 * p->slower : NAN);
	put_string(fr, p->slower_why);
	for (unsigned i = 0; i < NR_PHASE_VALUES; i++)
		put_number(fr, p->value[i]);
	for (size_t i = 0; i < f->nr_counted; i++)
		put_number(fr, counted_in(s, p, f->counted[i].name));
}

/* Those of a summary that reach into the time that was asked for: phases, then their repetitions. */
static int phases_part(struct tables *f, struct data_table_own *fr, const struct summary *s)
{
	const struct phases *all = s->phases;
	size_t nr = all ? all->nr + all->nr_repetitions : 0;
	int r = 0;

	for (uint32_t i = 0; i < DATA_TABLE_ROWS_MOST && f->still_row < nr && r >= 0; f->still_row++) {
		const struct phase *p = f->still_row < all->nr ? &all->phase[f->still_row]
							       : &all->repetition[f->still_row - all->nr];

		if (p->begin_s > f->to_s || p->end_s < f->from_s)
			continue;
		r = data_table_row(fr);
		if (r < 0)
			return r;
		put_phase(f, fr, s, p);
		r = data_table_row_end(fr);
		i++;
	}
	return r < 0 ? r : f->still_row < nr;
}

/* The run, then its nodes. */
static int phases_next(struct tables *f, struct data_table_own *fr)
{
	struct still_data *d = f->still_data;
	const struct summary *all;
	struct buf why;
	int r;

	if (!f->run->nr)
		return 0;
	buf_init(&why, 4096);
	r = tables_summary(f, &all, &why);
	buf_release(&why);
	if (r >= 0)
		r = phases_part(f, fr, d->node ? &all->node[d->node - 1] : all);
	if (r)
		return r;
	f->still_row = 0;
	return d->node++ < all->nr_nodes;
}

/* ---- all of them ---- */

int still_next(struct tables *f, struct data_table_own *fr)
{
	static int (*const next[NR_STILL])(struct tables * f, struct data_table_own * fr) = {
		processes_next, events_next, metrics_next, meta_next, summary_next, phases_next};
	int r;

	if (!f->still_data) {
		f->still_data = calloc(1, sizeof(*f->still_data));
		if (!f->still_data)
			return -ENOMEM;
	}
	r = next[fr->still](f, fr);
	if (!r)
		f->still_row = 0;
	return r;
}

void still_release(struct tables *f)
{
	struct still_data *d = f->still_data;

	if (!d)
		return;
	run_events_free(d->events);
	walk_close(d->walk);
	free(d);
}
