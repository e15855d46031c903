/* One recording while it is read: see reading.h. */
#include "top/reading.h"

#include "base/owned.h"
#include "query/column.h"
#include "top/parts.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

struct reading_rows {
	struct column column[NR_OF_PROCESS_READ], gpu_column[NR_OF_GPU], busy, memory;
	struct rows of_process[NR_OF_PROCESS_READ], of_gpu[NR_OF_GPU], of_busy, of_memory;
	bool has[NR_OF_PROCESS_READ], has_gpu[NR_OF_GPU], has_busy, has_memory;
};

/* ---- who ---- */

static void who_drop(struct who *w)
{
	if (!w || --w->refs)
		return;
	free(w->name);
	free(w->command);
	free(w->user);
	free(w);
}

static int take_bytes(char **to, size_t *len, const struct pair *pair)
{
	char *copy;

	if (!pair)
		return 0;
	copy = malloc(pair->len + 1);
	if (!copy)
		return -ENOMEM;
	if (pair->len)
		memcpy(copy, pair->value, pair->len);
	copy[pair->len] = 0;
	free(*to);
	*to = copy;
	*len = pair->len;
	return 0;
}

static struct who *who_of(const struct top_reading *r, uint32_t id)
{
	uint32_t at = idmap_get(&r->who_by_id, id);

	return at == IDMAP_NONE ? NULL : r->who[at];
}

static struct who *who_new(struct top_reading *r, uint32_t id)
{
	uint32_t at = r->nr_who;
	struct who *w;

	if (ARRAY_ROOM(r->who, r->cap_who, r->nr_who + 1) < 0)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w || idmap_put(&r->who_by_id, id, at) < 0) {
		free(w);
		return NULL;
	}
	w->id = id;
	w->refs = 1;
	w->uid = -1;
	r->who[r->nr_who++] = w;
	return w;
}

/* It is not known any more; ticks that are kept may know it still. */
static void who_forget(struct top_reading *r, uint32_t id)
{
	uint32_t at = idmap_get(&r->who_by_id, id);

	if (at == IDMAP_NONE)
		return;
	who_drop(r->who[at]);
	idmap_remove(&r->who_by_id, id);
	r->who[at] = r->who[--r->nr_who];
	if (at < r->nr_who)
		idmap_put(&r->who_by_id, r->who[at]->id, at);
}

static int take_user(struct top_reading *r, struct who *w)
{
	const struct meta_item *name = w->uid >= 0 ? meta_user(&r->walk->meta, w->uid) : NULL;

	free(w->user);
	w->user = name ? strdup(name->value) : NULL;
	return name && !w->user ? -ENOMEM : 0;
}

static int on_instance(struct top_reading *r, const struct store_record *record)
{
	struct who *w = who_of(r, record->id);
	const struct pairs *p = record->pairs;
	int64_t number;

	if (record->row == STORE_NO_ROW && !w)
		return 0; /* it ends at once */
	if (!w)
		w = who_new(r, record->id);
	if (!w)
		return -ENOMEM;
	if (w->refs > 1) { /* what ticks before have shown stays as it was */
		struct who *old = w, *copy;

		who_forget(r, record->id);
		copy = who_new(r, record->id);
		if (!copy)
			return -ENOMEM;
		copy->pid = old->pid;
		copy->ppid = old->ppid;
		copy->uid = old->uid;
		copy->start_s = old->start_s;
		copy->late = old->late;
		w = copy;
		if (take_bytes(&w->name, &w->name_len,
			    old->name ? &(struct pair){.value = old->name, .len = old->name_len} : NULL) <
				0 ||
			take_bytes(&w->command, &w->command_len,
				old->command ? &(struct pair){.value = old->command, .len = old->command_len}
					     : NULL) < 0)
			return -ENOMEM;
	}
	pairs_get_num(p, "pid", &w->pid);
	pairs_get_num(p, "ppid", &w->ppid);
	pairs_get_num(p, "uid", &w->uid);
	if (pairs_get_num(p, "start_ns", &number))
		w->start_s = (double)number / 1e9;
	number = 0;
	w->late |= pairs_get_num(p, "late", &number) && number;
	if (take_bytes(&w->name, &w->name_len, pairs_find(p, "name")) < 0 ||
		take_bytes(&w->command, &w->command_len, pairs_find(p, "cmdline")) < 0)
		return -ENOMEM;
	if (w->command_len && !w->command[w->command_len - 1])
		w->command_len--;
	return take_user(r, w);
}

/* ---- tables of processes ---- */

static void snapshot_clear(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		who_drop(s->process[i].who);
	s->nr = 0;
	s->nr_gpus = 0;
}

/* What a table of that many takes decides how many of them are kept. */
static struct snapshot *snapshot_next(struct top_reading *r, uint32_t nr)
{
	size_t most = SNAPSHOT_BYTES / (sizeof(struct top_process) * MAX(nr, 1u));
	unsigned keep = (unsigned)MIN(MAX(most, (size_t)3), (size_t)SNAPSHOTS);
	struct snapshot *s;

	while (r->nr_snapshots >= keep) {
		unsigned oldest = (r->last_snapshot + SNAPSHOTS - r->nr_snapshots + 1) % SNAPSHOTS;

		s = &r->snapshot[oldest];
		snapshot_clear(s);
		if (keep < SNAPSHOTS) {
			free(s->process);
			s->process = NULL;
			s->cap = 0;
		}
		r->nr_snapshots--;
	}
	r->last_snapshot = (r->last_snapshot + 1) % SNAPSHOTS;
	s = &r->snapshot[r->last_snapshot];
	snapshot_clear(s);
	if (ARRAY_ROOM(s->process, s->cap, nr) < 0)
		return NULL;
	r->nr_snapshots++;
	return s;
}

static double row_value(const struct rows *rows, bool has, uint32_t row)
{
	return has && row < rows->cap ? rows->value[row] : NAN;
}

static struct top_process *in_snapshot(struct snapshot *s, uint32_t id, const struct idmap *at)
{
	uint32_t i = idmap_get(at, id);

	return i == IDMAP_NONE ? NULL : &s->process[i];
}

/* What processes have on GPUs goes to their rows. */
static void take_gpu_processes(struct top_reading *r, struct snapshot *s)
{
	const struct reading_rows *rows = r->rows;
	uint32_t set = r->walk->gpu_process_set >= 0 ? (uint32_t)r->walk->gpu_process_set : 0;
	struct idmap at = {0};

	if (r->walk->gpu_process_set < 0 || (!rows->has_busy && !rows->has_memory) ||
		!r->walk->set[set].nr_rows)
		return;
	for (uint32_t i = 0; i < s->nr; i++)
		if (idmap_put(&at, s->process[i].who->id, i) < 0)
			break;
	for (uint32_t row = 0; row < r->walk->set[set].nr_rows; row++) {
		uint32_t id = r->walk->set[set].id[row];
		const struct occupant *in = id == ROW_FREE ? NULL : walk_occupant(r->walk, set, row, id);
		struct top_process *p = in && in->process ? in_snapshot(s, in->process, &at) : NULL;
		const double add[] = {row_value(&rows->of_busy, rows->has_busy, row),
			row_value(&rows->of_memory, rows->has_memory, row)};

		for (unsigned k = 0; p && k < 2; k++) {
			double *sum = &p->value[OF_PROCESS_GPU + k];

			if (!isnan(add[k]))
				*sum = isnan(*sum) ? add[k] : *sum + add[k];
		}
	}
	idmap_release(&at);
}

static void take_gpus(struct top_reading *r, struct snapshot *s)
{
	const struct reading_rows *rows = r->rows;
	uint32_t set = rows->column[0].set;

	if (!rows->has_gpu[OF_GPU_UTIL] && !rows->has_gpu[OF_GPU_MEMORY])
		return;
	set = rows->gpu_column[rows->has_gpu[OF_GPU_UTIL] ? OF_GPU_UTIL : OF_GPU_MEMORY].set;
	for (uint32_t row = 0; row < r->walk->set[set].nr_rows && s->nr_gpus < TOP_GPUS_MOST; row++) {
		uint32_t id = r->walk->set[set].id[row];
		const struct occupant *in = id == ROW_FREE ? NULL : walk_occupant(r->walk, set, row, id);
		struct top_gpu *g = &s->gpu[s->nr_gpus];

		if (!in)
			continue;
		memset(g->name, 0, sizeof(g->name));
		memcpy(g->name, in->name, MIN(in->name_len, sizeof(g->name) - 1));
		for (unsigned i = 0; i < NR_OF_GPU; i++)
			g->value[i] = row_value(&rows->of_gpu[i], rows->has_gpu[i], row);
		s->nr_gpus++;
	}
}

static int take_snapshot(struct top_reading *r)
{
	uint32_t set = (uint32_t)r->walk->process_set;
	const struct walk_set *in = r->walk->process_set >= 0 ? &r->walk->set[set] : NULL;
	struct snapshot *s = snapshot_next(r, in ? in->nr_rows : 0);

	if (!s)
		return -ENOMEM;
	s->time_ns = r->walk->time_ns;
	for (uint32_t row = 0; in && row < in->nr_rows; row++) {
		uint32_t id = in->id[row];
		struct who *w = id == ROW_FREE ? NULL : who_of(r, id);
		const struct occupant *o = w ? walk_occupant(r->walk, set, row, id) : NULL;
		struct top_process *p = &s->process[s->nr];

		if (!w)
			continue;
		p->who = w;
		p->groups = o ? o->groups : 0;
		w->refs++;
		for (unsigned i = 0; i < NR_OF_PROCESS_READ; i++)
			p->value[i] = row_value(&r->rows->of_process[i], r->rows->has[i], row);
		p->value[OF_PROCESS_GPU] = p->value[OF_PROCESS_GPU_MEMORY] = NAN;
		s->nr++;
	}
	take_gpu_processes(r, s);
	take_gpus(r, s);
	return 0;
}

/* ---- as records come ---- */

static void take_ending(struct top_reading *r, const struct pairs *p)
{
	static const char *const peak[] = {"peak_pss_bytes", "peak_rss_bytes"};
	int64_t number;

	if (pairs_get_num(p, "exit_status", &number) && number >= 0 && number <= 0xffff)
		r->status = (int)number;
	for (size_t i = 0; i < ARRAY_SIZE(peak); i++)
		if (pairs_get_num(p, peak[i], &number) && number > 0)
			r->peak[i] = (double)number;
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct top_reading *r = (struct top_reading *)o;
	bool of_process = r->walk->process_set >= 0 && record->set == (uint32_t)r->walk->process_set;
	struct walk_observer *events = (struct walk_observer *)r->gathering;

	if (record->type == STORE_SUMMARY)
		take_ending(r, record->pairs);
	if (record->type == STORE_INSTANCE && of_process)
		return on_instance(r, record);
	if (record->type == STORE_GONE && of_process)
		who_forget(r, record->id);
	return events->record(events, record);
}

static int after_tick(struct walk_observer *o)
{
	struct top_reading *r = (struct top_reading *)o;
	struct reading_rows *rows = r->rows;
	int e = r->parts ? parts_tick(r->parts) : 0;

	if (!r->tables)
		return e;
	for (unsigned i = 0; i < NR_OF_PROCESS_READ && e >= 0; i++)
		if (rows->has[i])
			e = rows_tick(&rows->of_process[i], r->walk, ROWS_ALL);
	for (unsigned i = 0; i < NR_OF_GPU && e >= 0; i++)
		if (rows->has_gpu[i])
			e = rows_tick(&rows->of_gpu[i], r->walk, ROWS_ALL);
	if (e >= 0 && rows->has_busy)
		e = rows_tick(&rows->of_busy, r->walk, ROWS_ALL);
	if (e >= 0 && rows->has_memory)
		e = rows_tick(&rows->of_memory, r->walk, ROWS_ALL);
	if (e >= 0 && r->walk->time_ns >= r->tables_from_ns)
		e = take_snapshot(r);
	return e;
}

/* ---- opening ---- */

static bool bind_rows(struct column *c, struct rows *rows, const struct walk *walk, const char *metric)
{
	if (column_try(c, walk, metric, false) < 0 || c->at != AT_INSTANCE)
		return false;
	rows_init(rows, c);
	return true;
}

static int rows_open(struct top_reading *r)
{
	struct reading_rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	r->rows = rows;
	for (unsigned i = 0; i < NR_OF_PROCESS_READ; i++)
		rows->has[i] =
			bind_rows(&rows->column[i], &rows->of_process[i], r->walk, process_value_metric[i]);
	for (unsigned i = 0; i < NR_OF_GPU; i++)
		rows->has_gpu[i] =
			bind_rows(&rows->gpu_column[i], &rows->of_gpu[i], r->walk, gpu_value_metric[i]);
	rows->has_busy = bind_rows(&rows->busy, &rows->of_busy, r->walk, "gpu_process.busy_ratio");
	rows->has_memory = bind_rows(&rows->memory, &rows->of_memory, r->walk, "gpu_process.memory");
	return 0;
}

static void rows_close(struct reading_rows *rows)
{
	if (!rows)
		return;
	for (unsigned i = 0; i < NR_OF_PROCESS_READ; i++)
		rows_release(&rows->of_process[i]);
	for (unsigned i = 0; i < NR_OF_GPU; i++)
		rows_release(&rows->of_gpu[i]);
	rows_release(&rows->of_busy);
	rows_release(&rows->of_memory);
	free(rows);
}

/* Groups of a job and of tools are found in the course of it. */
static bool may_have_groups(const struct walk *walk)
{
	const char *target = meta_text(&walk->meta, "target");

	/* Of a single target there is one group, which is the whole. */
	return (walk->has_groups && !*target) || walk->group.nr > 1 || str_starts(target, "job") ||
		str_starts(target, "match:");
}

static int find_columns(struct top_reading *r)
{
	const struct series_column *column;
	size_t nr = series_columns(r->series, &column);

	for (size_t i = 0; i < nr; i++)
		for (unsigned v = 0; v < NR_TOP_VALUES; v++) {
			const char *name = r->group ? top_value_row[v].of_group : top_value_row[v].metric;

			if (name && !strcmp(column[i].name, name)) {
				r->of_column[i] = (enum top_value)v;
				r->has[v] = true;
			}
		}
	return 0;
}

static int series_begin(
	struct top_reading *r, const struct reading_options *o, bool whole, struct buf *reterr)
{
	const char *metric[NR_TOP_VALUES];
	struct series_query query = {
		.metric = metric, .if_known = true, .group = o->group, .whole = whole, .near = o->near};
	bool end = o->from_ns == INT64_MAX;
	int e;

	for (unsigned i = 0; i < NR_TOP_VALUES; i++) {
		metric[query.nr] = o->group ? top_value_row[i].of_group : top_value_row[i].metric;
		query.nr += metric[query.nr] != NULL;
	}
	e = series_open(r->path, &query, &r->series, reterr);
	if (e < 0)
		return e;
	r->walk = series_walk_of(r->series);
	find_columns(r);
	r->gathering = run_events_begin(&r->events, r->walk, 0, 0);
	e = !r->gathering ? -ENOMEM : r->tables ? rows_open(r) : 0;
	if (e >= 0 && r->wants_parts && may_have_groups(r->walk))
		e = parts_open(r->walk, &r->parts);
	if (e < 0)
		return e;
	r->observer.record = observe;
	r->observer.after_tick = after_tick;
	walk_observe(r->walk, &r->observer);
	if (!end && o->from_ns > 0)
		e = series_range(r->series, o->from_ns, INT64_MAX);
	if (e >= 0 && o->follow)
		e = series_follow(r->series, r->path, end);
	return e;
}

int reading_open(
	const char *path, const struct reading_options *options, struct top_reading **ret, struct buf *reterr)
{
	struct top_reading *r = calloc(1, sizeof(*r));
	int e = r ? 0 : -ENOMEM;

	if (e >= 0) {
		r->status = -1;
		r->peak[0] = r->peak[1] = NAN;
		r->path = strdup(path);
		r->group = options->group ? strdup(options->group) : NULL;
		r->tables = options->tables;
		r->wants_parts = options->parts;
		r->rests = options->rests;
		r->from_ns = options->from_ns;
		r->tables_from_ns = options->tables_from_ns;
		r->most_points = MAX(options->points, (size_t)16);
		e = r->path && (r->group || !options->group) ? 0 : -ENOMEM;
	}
	for (unsigned i = 0; e >= 0 && i < OVERVIEW; i++)
		r->overview[i] = (struct overview){NAN, NAN};
	if (e >= 0)
		e = series_begin(r, options, false, reterr);
	if (e < 0) {
		reading_close(r);
		return e;
	}
	*ret = r;
	return 0;
}

static void end_series(struct top_reading *r)
{
	run_events_end(r->gathering);
	r->gathering = NULL;
	rows_close(r->rows);
	r->rows = NULL;
	parts_close(r->parts);
	r->parts = NULL;
	r->series = series_close(r->series);
	r->walk = NULL;
	for (unsigned i = 0; i < SNAPSHOTS; i++)
		snapshot_clear(&r->snapshot[i]);
	r->nr_snapshots = 0;
	while (r->nr_who)
		who_drop(r->who[--r->nr_who]);
	idmap_clear(&r->who_by_id);
	for (size_t i = 0; i < r->events.nr_phases; i++)
		run_event_release(&r->events.phase[i]);
	for (size_t i = 0; i < r->events.nr_events; i++)
		run_event_release(&r->events.event[i]);
	free(r->events.phase);
	free(r->events.event);
	r->events = (struct run_events){0};
}

struct top_reading *reading_close(struct top_reading *r)
{
	if (!r)
		return NULL;
	end_series(r);
	for (unsigned i = 0; i < SNAPSHOTS; i++)
		free(r->snapshot[i].process);
	idmap_release(&r->who_by_id);
	free(r->who);
	free(r->point);
	free(r->path);
	free(r->group);
	free(r);
	return NULL;
}

/* ---- points ---- */

static void overview_add(struct top_reading *r, const struct top_point *p)
{
	double at = (double)p->time_ns / 1e9, memory = p->value[TOP_PSS];
	struct overview *o;

	if (r->from_ns || at < 0)
		return;
	if (isnan(memory))
		memory = p->value[TOP_RSS];
	if (!(r->overview_step_s > 0))
		r->overview_step_s = 0.1;
	while (at >= r->overview_step_s * OVERVIEW) { /* halves become one */
		for (unsigned i = 0; i < OVERVIEW; i++) {
			struct overview *a = &r->overview[2 * i % OVERVIEW], *b = a + 1;

			r->overview[i] = 2 * i < OVERVIEW
				? (struct overview){(float)known_max(a->cores, b->cores),
					  (float)known_max(a->memory, b->memory)}
				: (struct overview){NAN, NAN};
		}
		r->overview_step_s *= 2;
	}
	o = &r->overview[(unsigned)(at / r->overview_step_s) % OVERVIEW];
	o->cores = (float)known_max(o->cores, p->value[TOP_CORES]);
	o->memory = (float)known_max(o->memory, memory);
}

static struct top_point *point_new(struct top_reading *r)
{
	if (r->nr_points == r->cap_points && r->cap_points < r->most_points) {
		size_t cap = MIN(MAX(r->cap_points * 2, (size_t)64), r->most_points);
		struct top_point *more = reallocarray(r->point, cap, sizeof(*more));

		if (!more)
			return NULL;
		r->point = more; /* a ring turns only when it is full: it begins at 0 still */
		r->cap_points = cap;
	}
	if (r->nr_points == r->cap_points) {
		r->first_point = (r->first_point + 1) % r->cap_points;
		r->nr_points--;
	}
	return &r->point[(r->first_point + r->nr_points++) % r->cap_points];
}

static int take_point(struct top_reading *r, const struct series_point *from)
{
	const struct series_column *column;
	size_t nr = series_columns(r->series, &column);
	struct top_point *p = point_new(r);

	if (!p)
		return -ENOMEM;
	p->time_ns = from->time_ns;
	for (unsigned i = 0; i < NR_TOP_VALUES; i++)
		p->value[i] = NAN;
	for (size_t i = 0; i < nr; i++)
		p->value[r->of_column[i]] = from->value[i];
	r->ticks++;
	overview_add(r, p);
	return r->parts ? parts_take(r->parts, p - r->point, r->cap_points, from->time_ns) : 0;
}

/* What was passed over is needed after all. */
static int begin_again(struct top_reading *r)
{
	struct reading_options o = {.group = r->group, .from_ns = r->from_ns, .follow = true};
	struct buf err;
	int e;

	end_series(r);
	buf_init(&err, 4096);
	e = series_begin(r, &o, true, &err);
	buf_release(&err);
	return e;
}

int reading_step(struct top_reading *r)
{
	struct series_point point;
	int e;

	if (r->error < 0 || r->state == READING_ENDED)
		return r->error;
	e = series_next(r->series, &point);
	if (e == -EAGAIN) {
		e = begin_again(r);
		if (e >= 0)
			e = series_next(r->series, &point);
	}
	r->state = e == SERIES_WAIT ? READING_WAITS : e ? READING_ON : READING_ENDED;
	if (e == 1) {
		e = take_point(r, &point);
		r->error = MIN(e, 0);
		return e < 0 ? e : 1;
	}
	if (e == 0)
		r->complete = series_complete(r->series);
	if (e == 0 || (r->rests && e == SERIES_WAIT))
		walk_rest(r->walk);
	r->error = MIN(e, 0);
	return r->error;
}

const struct top_point *reading_point(const struct top_reading *r, size_t index)
{
	return index < r->nr_points ? &r->point[(r->first_point + index) % r->cap_points] : NULL;
}

double reading_value(const struct top_reading *r, size_t index, enum top_value which, int group)
{
	const struct top_point *p = reading_point(r, index);

	if (!p || (group >= 0 && !r->parts))
		return NAN;
	if (group >= 0)
		return parts_value(
			r->parts, p - r->point, (unsigned)group, which == TOP_PSS ? PART_MEMORY : PART_CORES);
	return which == TOP_PSS ? point_memory(p) : p->value[which];
}

size_t reading_index(const struct top_reading *r, int64_t time_ns)
{
	size_t low = 0, high = r->nr_points;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (reading_point(r, middle)->time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : r->nr_points;
}

const struct top_point *reading_at(const struct top_reading *r, int64_t time_ns)
{
	return reading_point(r, reading_index(r, time_ns));
}

const struct top_point *reading_last(const struct top_reading *r)
{
	return r->nr_points ? reading_point(r, r->nr_points - 1) : NULL;
}

const struct snapshot *reading_snapshot(const struct top_reading *r, int64_t time_ns)
{
	for (unsigned i = 0; i < r->nr_snapshots; i++) {
		const struct snapshot *s = &r->snapshot[(r->last_snapshot + SNAPSHOTS - i) % SNAPSHOTS];

		if (s->time_ns == time_ns)
			return s;
	}
	return NULL;
}

const struct meta *reading_meta(const struct top_reading *r)
{
	return &r->walk->meta;
}

/* Behind the others: the recording's own are found by their place. */
int reading_mark(struct top_reading *r, double time_s, const char *label)
{
	size_t nr = r->events.nr_events;
	struct run_event *more = reallocarray(r->events.event, nr + 1, sizeof(*more));
	struct buf shown;

	if (!more)
		return -ENOMEM;
	r->events.event = more;
	buf_init(&shown, 4096);
	escape_bytes(&shown, label, strlen(label));
	more[nr] = (struct run_event){.time_s = time_s, .end_s = NAN, .kind = strdup("mark")};
	more[nr].label = shown.err ? NULL : strdup((char *)shown.data);
	buf_release(&shown);
	if (!more[nr].kind || !more[nr].label) {
		run_event_release(&more[nr]);
		return -ENOMEM;
	}
	r->events.nr_events++;
	return 0;
}

double reading_share(const struct top_reading *r)
{
	struct stat st;

	if (r->state != READING_ON || stat(r->path, &st) < 0 || st.st_size <= 0)
		return 1;
	return MIN((double)store_reader_at(r->walk->reader) / (double)st.st_size, 1.0);
}

double reading_interval(const struct top_reading *r)
{
	int64_t ns = 0;

	meta_num(&r->walk->meta, "interval_ns", &ns);
	return ns > 0 ? (double)ns / 1e9 : 1;
}
