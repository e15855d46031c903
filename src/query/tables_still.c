/* Tables that are not of time. What stands in them is read when they are reached, by those who know it. */
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
};

/* clang-format off */
#define TEXT(name, help)        {name, help, FIELD_TEXT, .scale = 1}
#define TIME(name, help)        {name, help, FIELD_TIME, .scale = 1}
#define FLAG(name, help)        {name, help, FIELD_FLAG, .scale = 1}
#define REAL(name, help, unit)  {name, help, FIELD_REAL, unit, .scale = 1, .kind = KIND_GAUGE}
#define INT(name, help, unit)   {name, help, FIELD_INT, unit, .scale = 1, .kind = KIND_GAUGE}

enum {
	PR_NUMBER, PR_HOST, PR_PID, PR_PPID, PR_UID, PR_NAME, PR_EXE, PR_COMMAND, PR_COMMAND_CUT, PR_GROUPS, PR_START, PR_END, PR_WALL,
	PR_ENDED, PR_HOW, PR_EXIT_CODE, PR_EXIT_SIGNAL, PR_LATE, PR_SAMPLED, PR_CPU, PR_USER, PR_SYSTEM, PR_RSS, PR_HWM, PR_PSS, PR_USS,
	PR_READ_BYTES, PR_WRITE_BYTES, PR_READ_CHARS, PR_WRITE_CHARS, PR_MINOR, PR_MAJOR, PR_THREADS, PR_FDS,
	PR_CPU_LEAST, PR_HWM_LEAST, PR_HWM_MOST, PR_RSS_BETWEEN, NR_PR
};

static const struct field process_field[NR_PR] = {
	[PR_NUMBER]      = INT("process", "Its number, which stands in the frames of time.", UNIT_COUNT),
	[PR_HOST]        = TEXT("host", "The node."),
	[PR_PID]         = INT("pid", "Its ID.", UNIT_CODE),
	[PR_PPID]        = INT("ppid", "Its parent's.", UNIT_CODE),
	[PR_UID]         = INT("uid", "The number of its user.", UNIT_CODE),
	[PR_NAME]        = TEXT("name", "As the kernel calls it."),
	[PR_EXE]         = TEXT("exe", "The program's file."),
	[PR_COMMAND]     = TEXT("command", "Its words, as a shell would take them."),
	[PR_COMMAND_CUT] = FLAG("command_cut", "There were more words than were recorded."),
	[PR_GROUPS]      = TEXT("groups", "Names of all groups it was ever in, with commas."),
	[PR_START]       = TIME("start", "When it began: UTC."),
	[PR_END]         = TIME("end", "When it ended: UTC."),
	[PR_WALL]        = REAL("wall", "How long it lived, or has lived to the end of the recording.", UNIT_SECONDS),
	[PR_ENDED]       = FLAG("ended", "It ended during the recording."),
	[PR_HOW]         = TEXT("how", "How that is known: reaped, exit-record, event, noticed, lost."),
	[PR_EXIT_CODE]   = INT("exit_code", "What it returned.", UNIT_CODE),
	[PR_EXIT_SIGNAL] = INT("exit_signal", "The signal that ended it.", UNIT_CODE),
	[PR_LATE]        = FLAG("late", "It lived before the recording: amounts are from then on."),
	[PR_SAMPLED]     = FLAG("sampled", "It was seen at a tick; else all that is known comes from its end."),
	[PR_CPU]         = REAL("cpu", "Its own CPU time.", UNIT_SECONDS),
	[PR_USER]        = REAL("user", "CPU time in user mode.", UNIT_SECONDS),
	[PR_SYSTEM]      = REAL("system", "CPU time in the kernel.", UNIT_SECONDS),
	[PR_RSS]         = INT("rss_peak", "Most resident memory that is known of it, at a tick or as the kernel kept it.", UNIT_BYTES),
	[PR_HWM]         = INT("hwm", "Most resident memory of its last program, as the kernel kept it.", UNIT_BYTES),
	[PR_PSS]         = INT("pss_peak", "Most memory with shared pages divided among who has them.", UNIT_BYTES),
	[PR_USS]         = INT("uss_peak", "Most memory that nobody shared.", UNIT_BYTES),
	[PR_READ_BYTES]  = INT("read_bytes", "Fetched from storage.", UNIT_BYTES),
	[PR_WRITE_BYTES] = INT("write_bytes", "Sent to storage.", UNIT_BYTES),
	[PR_READ_CHARS]  = INT("read_chars", "Read by system calls.", UNIT_BYTES),
	[PR_WRITE_CHARS] = INT("write_chars", "Written by system calls.", UNIT_BYTES),
	[PR_MINOR]       = INT("minor_faults", "Page faults without a disk.", UNIT_COUNT),
	[PR_MAJOR]       = INT("major_faults", "Page faults that waited for a disk.", UNIT_COUNT),
	[PR_THREADS]     = INT("threads_peak", "Most threads at a tick.", UNIT_COUNT),
	[PR_FDS]         = INT("fds_peak", "Most open descriptors at a tick.", UNIT_COUNT),
	[PR_CPU_LEAST]   = FLAG("cpu_lower_bound", "Its last moments are not in cpu."),
	[PR_HWM_LEAST]   = FLAG("hwm_lower_bound", "What it had after its last sample is not known."),
	[PR_HWM_MOST]    = FLAG("hwm_upper_bound", "hwm may be that of its starter, or of children that it waited for."),
	[PR_RSS_BETWEEN] = FLAG("rss_peak_between_samples", "No tick saw rss_peak."),
};

/* Those that are numbers in the table of processes. */
static const struct {
	uint32_t field;
	enum process_value value;
} process_number[] = {
	{PR_PID, PROCESS_PID}, {PR_PPID, PROCESS_PPID}, {PR_UID, PROCESS_UID}, {PR_WALL, PROCESS_WALL}, {PR_CPU, PROCESS_CPU},
	{PR_USER, PROCESS_USER}, {PR_SYSTEM, PROCESS_SYSTEM}, {PR_RSS, PROCESS_RSS}, {PR_HWM, PROCESS_HWM}, {PR_PSS, PROCESS_PSS},
	{PR_USS, PROCESS_USS}, {PR_READ_BYTES, PROCESS_READ_BYTES}, {PR_WRITE_BYTES, PROCESS_WRITE_BYTES},
	{PR_READ_CHARS, PROCESS_READ_CHARS}, {PR_WRITE_CHARS, PROCESS_WRITE_CHARS}, {PR_MINOR, PROCESS_MINOR},
	{PR_MAJOR, PROCESS_MAJOR}, {PR_THREADS, PROCESS_THREADS}, {PR_FDS, PROCESS_FDS},
};

enum { E_TIME, E_ELAPSED, E_END, E_LENGTH, E_HOST, E_KIND, E_LABEL, NR_E };

static const struct field event_field[NR_E] = {
	[E_TIME]    = TIME("time", "When: UTC."),
	[E_ELAPSED] = REAL("elapsed", "Time after the start of the run.", UNIT_SECONDS),
	[E_END]     = TIME("end", "When it was over: UTC."),
	[E_LENGTH]  = REAL("length", "How long it lasted.", UNIT_SECONDS),
	[E_HOST]    = TEXT("host", "The node."),
	[E_KIND]    = TEXT("kind", "phase, mark, stopped, signal, clock, backoff, lost, oom…"),
	[E_LABEL]   = TEXT("label", "What happened, for people."),
};

enum { M_FRAME, M_NAME, M_UNIT, M_PER_SECOND, M_KIND, M_FOLD, M_SCALE, M_RESAMPLE, M_HELP, M_AVAILABLE, M_WHY, NR_M };

static const struct field metric_field[NR_M] = {
	[M_FRAME]      = TEXT("frame", "The table it is a column of."),
	[M_NAME]       = TEXT("name", "The column."),
	[M_UNIT]       = TEXT("unit", "Its unit."),
	[M_PER_SECOND] = FLAG("per_second", "The unit is per second."),
	[M_KIND]       = TEXT("kind", "counter, gauge, peak, constant."),
	[M_FOLD]       = TEXT("fold", "How instances become one: sum, mean, max, none."),
	[M_SCALE]      = REAL("scale", "Value times this is the unit.", UNIT_COUNT),
	[M_RESAMPLE]   = TEXT("resample", "What of several ticks makes one row: mean, max, last."),
	[M_HELP]       = TEXT("help", "What it is."),
	[M_AVAILABLE]  = FLAG("available", "It could be read on some node; else it is no column."),
	[M_WHY]        = TEXT("why", "Why it could not be read."),
};

enum { K_RECORDING, K_HOST, K_KEY, K_VALUE, NR_K };

static const struct field meta_field[NR_K] = {
	[K_RECORDING] = INT("recording", "Which recording of the run, from 0.", UNIT_CODE),
	[K_HOST]      = TEXT("host", "The node."),
	[K_KEY]       = TEXT("key", "What is told."),
	[K_VALUE]     = TEXT("value", "As it was recorded."),
};

enum { S_HOST, S_NAME, S_VALUE, S_UNIT, S_WHY, NR_S };

static const struct field summary_field[NR_S] = {
	[S_HOST]  = TEXT("host", "The node; missing: the whole run."),
	[S_NAME]  = TEXT("name", "As in the summary for programs, levels parted by dots."),
	[S_VALUE] = REAL("value", "The figure.", UNIT_COUNT),
	[S_UNIT]  = TEXT("unit", "Its unit."),
	[S_WHY]   = TEXT("why", "Why there is no value."),
};

const struct still still_tables[NR_STILL] = {
	[STILL_PROCESSES] = {"processes", "Every process, however short it lived, with its end.", process_field, NR_PR},
	[STILL_EVENTS]    = {"events", "Phases of the job, and what happened.", event_field, NR_E},
	[STILL_METRICS]   = {"metrics", "Every column of every table: unit, kind, help.", metric_field, NR_M},
	[STILL_META]      = {"meta", "What the recordings say of themselves.", meta_field, NR_K},
	[STILL_SUMMARY]   = {"summary", "The run in numbers.", summary_field, NR_S},
};
/* clang-format on */

static int put_string(struct data_table_own *fr, uint32_t field, const char *text)
{
	return text ? data_table_put_bytes(fr, field, text, strlen(text)) : 0;
}

static int put_host(struct tables *f, struct data_table_own *fr, uint32_t field, size_t recording)
{
	fr->filling->recording[fr->filling->nr] = (uint32_t)recording;
	return put_string(fr, field, f->host[recording]);
}

/* ---- processes ---- */

/* Texts parted by NULs: words of a command, or names. */
static int put_list(struct data_table_own *fr, uint32_t field, const char *texts, size_t len, bool command)
{
	struct buf out;
	int r;

	if (!len)
		return 0;
	buf_init(&out, SIZE_MAX / 4);
	for (size_t from = 0; from <= len;) {
		size_t n = strnlen(texts + from, len - from);

		if (from)
			buf_addch(&out, command ? ' ' : ',');
		if (command)
			add_shell_word(&out, texts + from, n);
		else
			buf_add(&out, texts + from, n);
		from += n + 1;
	}
	r = out.err ? -ENOMEM : data_table_put_bytes(fr, field, out.data, out.len);
	buf_release(&out);
	return r;
}

/* Seconds after the start of a recording. */
static void put_moment(
	struct tables *f, struct data_table_own *fr, uint32_t field, int64_t start, double seconds)
{
	int64_t at;

	(void)f;
	if (start > 0 && fabs(seconds) < 9e9 && !__builtin_add_overflow(start, round_i64(seconds * 1e9), &at))
		data_table_put_integer(fr, field, at);
}

static void put_number(struct data_table_own *fr, uint32_t field, double value)
{
	if (fr->field[field].type == FIELD_REAL)
		data_table_put_real(fr, field, value);
	else if (fabs(value) < 9.2e18) /* not so of NAN */
		data_table_put_integer(fr, field, round_i64(value));
}

static int put_process(struct tables *f, struct data_table_own *fr, size_t number)
{
	const struct process_row *row = &f->processes->row[number];
	int64_t start = f->start_ns[row->node];
	int r = put_host(f, fr, PR_HOST, row->node);

	data_table_put_integer(fr, PR_NUMBER, (int64_t)number);
	for (size_t i = 0; i < ARRAY_SIZE(process_number); i++)
		put_number(fr, process_number[i].field, row->value[process_number[i].value]);
	put_moment(f, fr, PR_START, start, row->value[PROCESS_START]);
	if (row->ended)
		put_moment(f, fr, PR_END, start, row->value[PROCESS_END]);
	if (row->status >= 0 && WIFEXITED(row->status))
		data_table_put_integer(fr, PR_EXIT_CODE, WEXITSTATUS(row->status));
	if (row->status >= 0 && WIFSIGNALED(row->status))
		data_table_put_integer(fr, PR_EXIT_SIGNAL, WTERMSIG(row->status));
	data_table_put_flag(fr, PR_COMMAND_CUT, row->command_cut);
	data_table_put_flag(fr, PR_ENDED, row->ended);
	data_table_put_flag(fr, PR_LATE, row->late);
	data_table_put_flag(fr, PR_SAMPLED, row->sampled);
	data_table_put_flag(fr, PR_CPU_LEAST, row->cpu_least);
	data_table_put_flag(fr, PR_HWM_LEAST, row->hwm_least);
	data_table_put_flag(fr, PR_HWM_MOST, row->hwm_most);
	data_table_put_flag(fr, PR_RSS_BETWEEN, row->rss_between);
	if (r >= 0)
		r = data_table_put_bytes(fr, PR_NAME, row->name, row->name_len);
	if (r >= 0 && row->exe_len)
		r = data_table_put_bytes(fr, PR_EXE, row->exe, row->exe_len);
	if (r >= 0)
		r = put_list(fr, PR_COMMAND, row->command, row->command_len, true);
	if (r >= 0)
		r = put_list(fr, PR_GROUPS, row->groups, row->groups_len, false);
	return r < 0 || !row->how[0] ? r : put_string(fr, PR_HOW, row->how);
}

/* A row is put by `put`; 0 when it does not exist. */
static int put_rows(struct tables *f, struct data_table_own *fr, size_t nr,
	int (*put)(struct tables *f, struct data_table_own *fr, size_t row))
{
	int r = 0;

	for (uint32_t i = 0; i < DATA_TABLE_ROWS_MOST && f->still_row < nr && r >= 0; i++) {
		r = data_table_row(f, fr);
		if (r >= 0)
			r = put(f, fr, f->still_row++);
		if (r >= 0)
			data_table_row_end(f, fr);
	}
	return r < 0 ? r : f->still_row < nr;
}

/* ---- events ---- */

static const struct run_event *moment_next(struct still_data *d)
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

/* Reading them has a limit: that there were more is told by the last row. */
static int put_left_out(struct data_table_own *fr, size_t nr)
{
	char label[64];
	int r = data_table_put_text(fr, E_KIND, "left_out");

	snprintf(label, sizeof(label), "%zu more are left out", nr);
	return r < 0 ? r : data_table_put_text(fr, E_LABEL, label);
}

static int put_event(struct tables *f, struct data_table_own *fr, size_t row)
{
	const struct run_event *m = moment_next(f->still_data);
	int64_t start;
	int r;

	(void)row;
	if (!m)
		return put_left_out(fr, f->still_data->events->left_out);
	start = f->start_ns[m->node] > 0 ? f->first_ns : 0;
	r = put_host(f, fr, E_HOST, m->node);
	put_moment(f, fr, E_TIME, start, m->time_s);
	data_table_put_real(fr, E_ELAPSED, m->time_s);
	if (!isnan(m->end_s)) {
		put_moment(f, fr, E_END, start, m->end_s);
		data_table_put_real(fr, E_LENGTH, m->end_s - m->time_s);
	}
	if (r >= 0)
		r = data_table_put_text(fr, E_KIND, m->kind);
	return r < 0 ? r : data_table_put_text(fr, E_LABEL, m->label);
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
		free(list[i].kind);
		free(list[i].label);
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
	const struct still_data *d = f->still_data;
	int r = d->events ? 0 : events_read(f);

	if (r < 0)
		return r;
	return put_rows(
		f, fr, d->events->nr_phases + d->events->nr_events + (d->events->left_out > 0), put_event);
}

/* ---- metrics ---- */

static int put_column(
	struct data_table_own *fr, const char *table, const struct column_own *c, const struct field *field)
{
	int r = data_table_put_text(fr, M_FRAME, table);

	data_table_put_flag(fr, M_PER_SECOND, c->per_second);
	data_table_put_flag(fr, M_AVAILABLE, c->available);
	data_table_put_real(fr, M_SCALE, field ? field->scale : 1);
	if (r >= 0)
		r = data_table_put_text(fr, M_NAME, c->name);
	if (r >= 0)
		r = data_table_put_text(fr, M_UNIT, unit_name(c->unit));
	if (r >= 0)
		r = data_table_put_text(fr, M_KIND, kind_name(c->kind));
	if (r >= 0)
		r = data_table_put_text(fr, M_FOLD, fold_name(c->fold));
	if (r >= 0 && field)
		r = data_table_put_text(fr, M_RESAMPLE, field->resample);
	if (r >= 0)
		r = data_table_put_text(fr, M_HELP, c->help);
	return r < 0 || c->available ? r : data_table_put_text(fr, M_WHY, c->why);
}

static const struct data_table_own *data_table_at(const struct tables *f, size_t i)
{
	return i < f->nr ? &f->table[i] : &f->told[i - f->nr];
}

/* Fields of all tables of time, one after the other, then what could not be read. */
static int put_metric(struct tables *f, struct data_table_own *fr, size_t row)
{
	for (size_t i = 0; i < f->nr + f->nr_told; i++) {
		const struct data_table_own *of = data_table_at(f, i);
		size_t nr = of->still >= 0 ? 0 : of->nr - of->nr_keys;

		if (row < nr)
			return put_column(fr, of->face.name, &of->own[of->nr_keys + row],
				&of->field[of->nr_keys + row]);
		row -= nr;
	}
	return put_column(fr, f->absent[row].table, &f->absent[row].column, NULL);
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

static int put_meta(struct tables *f, struct data_table_own *fr, size_t row)
{
	struct still_data *d = f->still_data;
	const struct meta_item *item = &d->walk->meta.item[row];
	int r = put_host(f, fr, K_HOST, d->recording);

	data_table_put_integer(fr, K_RECORDING, (int64_t)d->recording);
	if (r >= 0)
		r = put_string(fr, K_KEY, item->key);
	return r < 0 ? r : data_table_put_bytes(fr, K_VALUE, item->value, item->len);
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
};

static int tell_figure(struct telling *t, const char *name, const char *unit, const struct figure *figure)
{
	int r = data_table_row(t->f, t->fr);

	if (r >= 0)
		r = put_string(t->fr, S_HOST, t->host);
	if (r >= 0)
		r = put_string(t->fr, S_NAME, name);
	if (r >= 0)
		r = put_string(t->fr, S_UNIT, unit);
	if (r < 0)
		return r;
	if (!figure->why)
		data_table_put_real(t->fr, S_VALUE, figure->value);
	else if (*figure->why)
		r = put_string(t->fr, S_WHY, figure->why);
	if (r >= 0)
		data_table_row_end(t->f, t->fr);
	return r;
}

static int tell_counters(struct telling *t, const struct summary *s, const char *before)
{
	int r = 0;

	for (size_t i = 0; i < s->nr_counters && r >= 0; i++) {
		const struct summary_counter *c = &s->counter[i];
		char unit[64], *name = NULL;

		snprintf(unit, sizeof(unit), "%s%s", unit_name(c->unit), c->per_second ? "/s" : "");
		r = asprintf(&name, "%sperf.%s", before, c->name) < 0 ? -ENOMEM
								      : tell_figure(t, name, unit, &c->value);
		free(name);
	}
	return r;
}

static int tell_gpu(struct telling *t, const struct summary_gpu *gpu, const char *before, bool of_group)
{
	int r = 0;

	for (unsigned i = 0; i < NR_GPU_FIGURES && r >= 0; i++) {
		const char *field = of_group ? summary_gpu_row[i].of_group : summary_gpu_row[i].name;
		const char *instance = gpu->text[GPU_TEXT_INSTANCE];
		char *name = NULL;

		if (!field)
			continue;
		r = asprintf(&name, "%sgpus.%s.%s", before, instance ? instance : "?", field) < 0
			? -ENOMEM
			: tell_figure(t, name, unit_of_name(field), &gpu->figure[i]);
		free(name);
	}
	return r;
}

/* `before` stands before the names: "groups.NAME.". */
static int tell_summary(struct telling *t, const struct summary *s, const char *before)
{
	int r = 0;

	for (unsigned i = 0; i < NR_FIGURES && r >= 0; i++) {
		const struct summary_row *row = &summary_row[i];
		char *name = NULL;

		if (s->name && !row->of_groups)
			continue;
		r = asprintf(&name, "%s%s%s%s", before, row->group ? row->group : "", row->group ? "." : "",
			    row->name) < 0
			? -ENOMEM
			: tell_figure(t, name, unit_of_name(row->name), &s->figure[i]);
		free(name);
	}
	if (r >= 0)
		r = tell_counters(t, s, before);
	for (size_t i = 0; i < s->nr_gpus && r >= 0; i++)
		r = tell_gpu(t, &s->gpu[i], before, s->name != NULL);
	for (size_t i = 0; i < s->nr_groups && r >= 0; i++) {
		char *name = NULL;

		r = asprintf(&name, "groups.%s.", s->group[i].name) < 0 ? -ENOMEM
									: tell_summary(t, &s->group[i], name);
		free(name);
	}
	return r;
}

/* The run, then its nodes, one at a time. */
static int summary_next(struct tables *f, struct data_table_own *fr)
{
	struct still_data *d = f->still_data;
	struct telling t = {.f = f, .fr = fr};
	const struct summary *all, *s;
	struct buf why;
	int r;

	if (!f->run->nr)
		return 0;
	buf_init(&why, 4096);
	r = tables_summary(f, &all, &why);
	buf_release(&why);
	if (r < 0)
		return r;
	s = d->part ? &all->node[d->part - 1] : all;
	t.host = d->part || !all->nr_nodes ? s->host : NULL;
	r = tell_summary(&t, s, "");
	return r < 0 ? r : d->part++ < all->nr_nodes;
}

/* ---- all of them ---- */

static int processes_next(struct tables *f, struct data_table_own *fr)
{
	return put_rows(f, fr, f->processes->nr, put_process);
}

int still_next(struct tables *f, struct data_table_own *fr)
{
	static int (*const next[NR_STILL])(struct tables * f, struct data_table_own * fr) = {
		processes_next, events_next, metrics_next, meta_next, summary_next};
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
