/* Reading one recording. The store's reader keeps the cells; here is which instances they belong to. Which
 * rows moved is found once for all: touched rows are known to the tables, and which instances came or left is
 * seen by comparing the rows' ids, because after a gap there is no record of their end. */
#include "query/walk.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

/* So much is read before what is asked for, and at least four ticks of it: rates need the tick before, what
 * passes from an ended process to its parent takes another, and the node tells of processes that were killed
 * up to 15 s later than their control group. */
#define WARM_NS (20 * NSEC_PER_SEC)

/* ---- rows ---- */

static int set_reserve(const struct walk *s, struct walk_set *set, uint32_t nr)
{
	uint32_t cap = set->cap;

	if (nr <= cap)
		return 0;
	nr = MAX(nr + 16, cap * 2);
	if (ARRAY_RESIZE(set->instance, nr) < 0)
		return -ENOMEM;
	memset(set->instance + cap, 0, (nr - cap) * sizeof(*set->instance));
	if (s->plain) {
		set->cap = nr;
		return 0;
	}
	if (ARRAY_RESIZE(set->id, nr) < 0 || ARRAY_RESIZE(set->moved, nr) < 0 ||
		ARRAY_RESIZE(set->is_moved, nr) < 0 || ARRAY_RESIZE(set->cols, nr) < 0)
		return -ENOMEM;
	memset(set->id + cap, 0, (nr - cap) * sizeof(*set->id));
	memset(set->is_moved + cap, 0, nr - cap);
	memset(set->cols + cap, 0, (nr - cap) * sizeof(*set->cols));
	set->cap = nr;
	return 0;
}

static void row_moved(struct walk_set *set, uint32_t row, enum moved how)
{
	if (!set->moved) /* of a plain walk */
		return;
	if (set->is_moved[row] == MOVED_NOT)
		set->moved[set->nr_moved++] = row;
	set->is_moved[row] = (uint8_t)MAX(set->is_moved[row], how);
	if (how == MOVED_OCCUPANT)
		set->cols[row] = set->any_cols = UINT64_MAX;
}

static void rows_settle(struct walk_set *set)
{
	for (uint32_t i = 0; i < set->nr_moved; i++) {
		set->is_moved[set->moved[i]] = MOVED_NOT;
		set->cols[set->moved[i]] = 0;
	}
	set->nr_moved = 0;
	set->any_cols = 0;
	set->occupants_changed = false;
}

static void all_moved(struct walk *s)
{
	for (uint32_t i = 0; i < s->nr_sets; i++) {
		for (uint32_t row = 0; row < s->set[i].nr_rows; row++)
			row_moved(&s->set[i], row, MOVED_OCCUPANT);
		s->set[i].occupants_changed = true;
	}
}

/* Brings the occupants up to date with the table. */
static int set_tick(struct walk *s, uint32_t which)
{
	struct table *t = walk_table(s, which);
	struct walk_set *set = &s->set[which];
	uint32_t nr = MAX(t->nr_rows, set->nr_rows);
	int r = set_reserve(s, set, t->nr_rows);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		row_moved(set, t->touched[i], MOVED_CELLS);
		set->cols[t->touched[i]] |= t->changed[t->touched[i]];
		set->any_cols |= set->cols[t->touched[i]];
	}
	if (t->occupancy != set->occupancy)
		for (uint32_t row = 0; row < nr; row++) {
			uint32_t id = row < t->nr_rows ? t->id[row] : ROW_FREE;

			if (id == set->id[row])
				continue;
			set->id[row] = id;
			set->occupants_changed = true;
			row_moved(set, row, MOVED_OCCUPANT);
		}
	set->nr_rows = t->nr_rows;
	set->occupancy = t->occupancy;
	return 0;
}

/* ---- who they are ---- */

/* One on a GPU is in the groups of its process, wherever the process goes. */
static void follow_process(struct walk *s, const struct occupant *process)
{
	struct walk_set *on = s->gpu_process_set < 0 ? NULL : &s->set[s->gpu_process_set];

	for (uint32_t i = 0; on && i < on->cap; i++)
		if (on->instance[i].process == process->id && process->id &&
			on->instance[i].groups != process->groups) {
			on->instance[i].groups = process->groups;
			on->occupants_changed = true;
			row_moved(on, i, MOVED_OCCUPANT);
		}
}

static void take_process(const struct walk *s, const struct store_record *record, struct occupant *in)
{
	const struct walk_set *all = s->process_set < 0 ? NULL : &s->set[s->process_set];
	int64_t process = 0;

	pairs_get_num(record->pairs, "process", &process);
	in->process = process > 0 && process < UINT32_MAX ? (uint32_t)process : 0;
	in->groups = 0;
	for (uint32_t i = 0; all && i < all->cap; i++)
		if (all->instance[i].id == in->process && in->process) {
			in->groups = all->instance[i].groups;
			in->uid = all->instance[i].uid;
		}
}

/* The groups of a process; the group itself, and whether its members count without their children. */
static int take_groups(struct walk *s, const struct store_record *record, struct occupant *in)
{
	const struct pair *name = pairs_find(record->pairs, "name");
	uint64_t before = s->own;
	int g;

	if (!walk_is_of(s, (int)record->set, DOMAIN_GROUP))
		return groups_mask(&s->group, pairs_find(record->pairs, "groups"), &in->groups);
	g = name ? groups_index(&s->group, name->value, name->len) : -EINVAL;
	in->groups = g < 0 ? 0 : UINT64_C(1) << g;
	if (in->own)
		s->own |= in->groups;
	if (s->own != before)
		all_moved(s);
	return g == -ENOMEM ? g : 0;
}

static int take_text(char **to, const struct pair *text)
{
	free(*to);
	*to = text ? strndup(text->value, text->len) : NULL;
	return text && !*to ? -ENOMEM : 0;
}

/* Where an instance may have any name, it says nothing. */
static int take_texts(struct walk *s, const struct store_record *record, struct occupant *in)
{
	static const struct pair none = {.value = ""};
	bool process = walk_is_of_processes(s, (int)record->set);
	const struct pair *name = s->plain && process ? NULL : pairs_find(record->pairs, "name");
	const struct pair *source = process ? NULL : pairs_find(record->pairs, "source");

	if (!source && !process)
		source = pairs_find(record->pairs, "events");
	if (walk_is_of(s, (int)record->set, DOMAIN_GPU_PROCESS))
		source = pairs_find(record->pairs, "gpu");
	if (take_text(&in->name, name ? name : &none) < 0 || take_text(&in->source, source) < 0)
		return -ENOMEM;
	in->name_len = strlen(in->name);
	in->total = !process && !walk_is_of(s, (int)record->set, DOMAIN_GROUP) && !strcmp(in->name, "total");
	return 0;
}

/* What the record says of its instance, whether that has a row or not. */
static int take_said(struct walk *s, const struct store_record *record)
{
	int64_t late = 0, own = 0;
	struct occupant *in = &s->said;

	*in = (struct occupant){.id = record->id, .uid = -1};
	pairs_get_num(record->pairs, "late", &late);
	pairs_get_num(record->pairs, "pid", &in->pid);
	pairs_get_num(record->pairs, "uid", &in->uid);
	pairs_get_num(record->pairs, "own", &own);
	in->late = late != 0;
	in->own = own != 0;
	in->process = walk_is_of(s, (int)record->set, DOMAIN_PROCESS) ? record->id : 0;
	in->counted_elsewhere = pairs_find(record->pairs, "apart") != NULL;
	if (!walk_is_of(s, (int)record->set, DOMAIN_GPU_PROCESS))
		return take_groups(s, record, in);
	take_process(s, record, in);
	return 0;
}

static int name_columns(struct walk *s, const struct store_record *record)
{
	const struct pair *told =
		s->schema->set[record->set].nr_spare ? pairs_find(record->pairs, "told") : NULL;

	return told ? told_apply(told->value, told->len, s->reader, record->set) : 0;
}

static int on_instance(struct walk *s, const struct store_record *record)
{
	struct occupant *in, before;
	struct walk_set *set;
	bool process;

	if (record->set >= s->nr_sets)
		return 0;
	if (name_columns(s, record) < 0)
		return -ENOMEM;
	process = walk_is_of(s, (int)record->set, DOMAIN_PROCESS);
	if (take_said(s, record) < 0)
		return -ENOMEM;
	if (record->row == STORE_NO_ROW)
		return 0;
	set = &s->set[record->set];
	if (set_reserve(s, set, record->row + 1) < 0)
		return -ENOMEM;
	in = &set->instance[record->row];
	before = *in;
	*in = s->said;
	in->newborn =
		before.id == record->id ? before.newborn : process && !in->late && !record->again && !s->gap;
	in->name = before.name;
	in->source = before.source;
	set->occupants_changed = true;
	row_moved(set, record->row, MOVED_OCCUPANT);
	if (take_texts(s, record, in) < 0)
		return -ENOMEM;
	if (process)
		follow_process(s, in);
	return 0;
}

/* All begin anew: who sits where before and after need not be the same, although it looks so. */
static void on_lost(struct walk *s)
{
	s->gap = true;
	all_moved(s);
}

/* What may be used at one moment: a quota may be a part of a CPU. */
static void take_cpus(struct walk *s)
{
	struct table *t = s->cpus_set < 0 ? NULL : walk_table(s, (uint32_t)s->cpus_set);

	if (t && t->nr_rows && t->id[0] != ROW_FREE && t->valid[0] >> s->cpus_col & 1)
		s->cpus = ceil((double)table_row(t, 0)[s->cpus_col] *
			s->schema->set[s->cpus_set].metric[s->cpus_col].scale);
}

static int on_tick(struct walk *s, const struct store_record *record)
{
	int r = 0;

	s->time_ns = record->time_ns;
	s->at = record->at;
	s->in_tick = true;
	s->nr_ticks++;
	if (s->plain)
		return 1;
	take_cpus(s);
	for (uint32_t i = 0; i < s->nr_sets && r >= 0; i++)
		r = set_tick(s, i);
	return r < 0 ? r : 1;
}

static void tick_end(struct walk *s)
{
	if (!s->in_tick)
		return;
	for (uint32_t i = 0; !s->plain && i < s->nr_sets; i++) {
		rows_settle(&s->set[i]);
		s->set[i].last_ns = walk_time(s, i);
	}
	s->last_ns = s->time_ns;
	s->last_at = s->at;
	s->has_last = true;
	s->gap = s->in_tick = false;
}

static int observe(struct walk *s, const struct store_record *record)
{
	int r = 0;

	for (struct walk_observer *o = s->observer; o && r >= 0; o = o->next)
		r = o->record(o, record);
	for (struct walk_observer *o = s->observer; o && r >= 0 && record->type == STORE_TICK; o = o->next)
		r = o->after_tick ? o->after_tick(o) : 0;
	return r;
}

static void on_event(struct walk *s, const struct store_record *record)
{
	int64_t every;

	if (pairs_get_num(record->pairs, "clocks_every", &every) && every > 0)
		s->clock_turns = MAX(s->clock_turns, every);
}

/* At the end of what there is, of one that is followed: 1: read on, WALK_WAIT, 0: that is all. */
static int more(struct walk *s)
{
	int r = store_watch(&s->watch, s->reader);

	s->waits = r == WATCH_WAIT;
	return r == WATCH_MORE ? 1 : s->waits ? WALK_WAIT : r;
}

static int on_schema(struct walk *s)
{
	const struct meta_item *item = meta_find(&s->meta, "groups");
	uint32_t set, col = 0;
	uint64_t mask;
	int r;

	s->schema = store_reader_schema(s->reader);
	for (uint32_t i = 0; i < s->schema->nr_sets; i++)
		if (s->told.list && told_apply(s->told.list, s->told.len, s->reader, i) < 0)
			return -ENOMEM;
	s->set = calloc(MAX(s->schema->nr_sets, 1u), sizeof(*s->set));
	if (!s->set)
		return -ENOMEM;
	s->nr_sets = s->schema->nr_sets;
	s->cpus = INFINITY;
	s->cpus_set = schema_find(s->schema, "limit.cpus", &set, &col) ? (int)set : -1;
	s->cpus_col = (int)col;
	s->process_set = schema_find_domain(s->schema, DOMAIN_PROCESS);
	s->gpu_process_set = schema_find_domain(s->schema, DOMAIN_GPU_PROCESS);
	r = s->plain ? 0 : formulas_read(&s->formulas, &s->meta);
	if (r >= 0 && item && !s->plain)
		r = groups_mask(&s->group, &(struct pair){.value = item->value, .len = item->len}, &mask);
	return MIN(r, 0);
}

/* Of a plain walk nothing was read ahead. */
static int on_meta(struct walk *s, const struct pairs *pairs)
{
	uint64_t mask;

	if (meta_merge(&s->meta, pairs) == -ENOMEM)
		return -ENOMEM;
	return groups_mask(&s->group, pairs_find(pairs, "groups"), &mask);
}

static int take_record(struct walk *s, const struct store_record *record)
{
	switch (record->type) {
	case STORE_TICK:
		return on_tick(s, record);
	case STORE_INSTANCE:
		return on_instance(s, record);
	case STORE_LOST:
		on_lost(s);
		return 0;
	case STORE_EVENT:
		on_event(s, record);
		return 0;
	case STORE_SCHEMA:
		return s->schema ? 0 : on_schema(s);
	case STORE_META:
		return s->plain ? on_meta(s, record->pairs) : 0;
	default:
		return 0;
	}
}

/* ---- notes ---- */

/* Those of another recording are not looked at. By now it has said which it is. */
static void check_notes(struct walk *s)
{
	if (s->notes && !s->next_note &&
		!sidecar_is_of(s->notes, &s->meta, clock_own_start(s->clock, walk_start(s))))
		s->notes = sidecar_free(s->notes);
}

static int give_note(struct walk *s, const struct sidecar_note *n)
{
	struct pair memory[2];
	char numbers[8];
	struct pairs p;
	struct store_record record = {.type = STORE_EVENT,
		.time_ns = clock_time(s->clock, n->time_ns),
		.kind = note_kind_name[n->kind],
		.pairs = &p};
	int r;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_add(&p, "name", n->name, n->name_len);
	if (n->data_len)
		pairs_add(&p, "data", n->data, n->data_len);
	r = take_record(s, &record);
	return r < 0 ? r : observe(s, &record);
}

/* Those up to this time. */
static int give_notes(struct walk *s, int64_t until_ns)
{
	int r = 0;

	check_notes(s);
	while (s->notes && r >= 0 && s->next_note < s->notes->nr &&
		clock_time(s->clock, s->notes->note[s->next_note].time_ns) <= until_ns)
		r = give_note(s, &s->notes->note[s->next_note++]);
	return r;
}

static int notes_before(struct walk *s, const struct store_record *record)
{
	if (record->type == STORE_SUMMARY)
		return give_notes(s, INT64_MAX);
	return record->type == STORE_TICK || record->type == STORE_EVENT ? give_notes(s, record->time_ns) : 0;
}

static int read_on(struct walk *s)
{
	struct store_record record;
	int r;

	while ((s->schema || s->plain) && (r = store_next(s->reader, &record)) != 0) {
		if (r > 0)
			clock_record(s->clock, &record);
		if (r > 0 && s->notes)
			r = notes_before(s, &record);
		if (r >= 0)
			r = take_record(s, &record);
		if (r >= 0)
			r = observe(s, &record);
		if (r < 0)
			return r;
		if (record.type == STORE_TICK)
			return 1;
	}
	return 0;
}

/* ---- between two looks ---- */

#define WAKE_NS NSEC_PER_SEC /* it is opened at least so often, to see whether its recorder lives */

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

void walk_rest(struct walk *s)
{
	if (!s->follows || s->rests)
		return;
	tick_end(s);
	s->rests = store_rest(s->reader, !s->waits);
}

/* 1: it is open again; WALK_WAIT: there is nothing new; 0: it has ended; a negative errno. */
static int wake(struct walk *s)
{
	int64_t now = monotonic_ns();
	struct stat st;
	int r;

	if (!s->waits)
		return 0;
	if (now - s->looked_ns < WAKE_NS && stat(s->path, &st) == 0 &&
		(uint64_t)st.st_size == store_reader_seen(s->reader))
		return WALK_WAIT;
	s->looked_ns = now;
	r = store_wake(s->reader, s->path);
	s->rests = r < 0;
	return r < 0 ? r : 1;
}

int walk_next(struct walk *s)
{
	int r = s->rests ? wake(s) : 1;

	if (r != 1)
		return r;
	r = s->waits ? more(s) : 1;
	tick_end(s);
	while (r == 1) {
		r = read_on(s);
		if (r || !s->follows)
			break;
		r = more(s);
	}
	if (r == 0 && s->notes) /* at the end: what is left of them */
		r = MIN(give_notes(s, INT64_MAX), 0);
	return r;
}

/* ---- opening ---- */

/* Metadata may stand behind the schema, and is wanted before the first tick. A group may be found only in
 * the course of the recording: it is looked for to the end. */
static int read_ahead(struct walk *s, const char *path, const char *group)
{
	struct store_reader *reader = NULL;
	struct store_record record;
	bool ticked = false, found = !group;
	int r = store_open(path, &reader);

	if (r < 0)
		return r;
	while ((!ticked || !found) && (r = store_next(reader, &record)) > 0) {
		const struct pair *groups;

		clock_record(s->clock, &record);
		groups = record.pairs ? pairs_find(record.pairs, "groups") : NULL;
		ticked |= record.type == STORE_TICK;
		s->has_groups |= record.type == STORE_INSTANCE &&
			store_reader_schema(reader)->set[record.set].domain == DOMAIN_GROUP;
		found |= (record.type == STORE_META || record.type == STORE_INSTANCE) && group &&
			groups_hold(groups, group);
		if (record.type == STORE_META && meta_merge(&s->meta, record.pairs) == -ENOMEM) {
			r = -ENOMEM;
			break;
		}
		r = told_take(&s->told, &record);
		if (r < 0)
			break;
	}
	if (r >= 0 && ticked)
		r = told_find(&s->told, reader);
	store_close(reader);
	return r < 0 ? r : found ? 0 : -ENOENT;
}

int walk_open_plain(const char *path, struct walk **ret)
{
	struct walk *s = calloc(1, sizeof(*s));
	int r = s ? store_open(path, &s->reader) : -ENOMEM;

	if (r < 0) {
		walk_close(s);
		return r;
	}
	s->plain = true;
	s->process_set = s->gpu_process_set = -1;
	/* What is wrong with them is said by commands (sidecar_check()): here they are as good as none. */
	if (sidecar_read(path, &s->notes, NULL) == -ENOMEM || clock_open(path, &s->clock, NULL) < 0) {
		walk_close(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

int walk_open(const char *path, const char *group, struct walk **ret)
{
	struct walk *s = NULL;
	struct store_record record;
	int r = walk_open_plain(path, &s);

	if (r < 0)
		return r;
	s->plain = false;
	r = read_ahead(s, path, group);
	if (r >= 0 && meta_num(&s->meta, "interval_ns", &s->sliver_ns))
		s->sliver_ns = MAX(s->sliver_ns, 0) / 2;
	while (r >= 0 && !s->schema && (r = store_next(s->reader, &record)) > 0)
		if (record.type == STORE_SCHEMA)
			r = on_schema(s);
	if (r < 0) {
		walk_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

int walk_follow(struct walk *s, const char *path)
{
	int64_t flush_ns = 0, interval_ns = 0;
	struct utsname self;

	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	meta_num(&s->meta, "flush_ns", &flush_ns);
	meta_num(&s->meta, "interval_ns", &interval_ns);
	s->watch = (struct store_watch){.path = s->path,
		.flush_ns = MAX(MAX(flush_ns, interval_ns), NSEC_PER_SEC),
		.local = uname(&self) == 0 && !strcmp(self.nodename, meta_text(&s->meta, "host"))};
	s->follows = true;
	return 0;
}

int walk_seek(struct walk *s, int64_t time_ns)
{
	int64_t warm = MAX(WARM_NS, 8 * s->sliver_ns);
	int r = 1;

	if (time_ns == INT64_MAX)
		r = store_segment(s->reader, time_ns, &time_ns);
	else
		time_ns = clock_time_back(s->clock, time_ns);
	if (r > 0)
		r = store_seek(s->reader, MAX(time_ns, -INT64_MAX + warm) - warm);
	s->sought = r > 0;
	return MIN(r, 0);
}

struct walk *walk_close(struct walk *s)
{
	if (!s)
		return NULL;
	free(s->path);
	sidecar_free(s->notes);
	clock_close(s->clock);
	for (uint32_t i = 0; i < s->nr_sets; i++) {
		for (uint32_t j = 0; j < s->set[i].cap; j++) {
			free(s->set[i].instance[j].name);
			free(s->set[i].instance[j].source);
		}
		free(s->set[i].instance);
		free(s->set[i].id);
		free(s->set[i].moved);
		free(s->set[i].is_moved);
		free(s->set[i].cols);
	}
	free(s->set);
	groups_release(&s->group);
	told_release(&s->told);
	formulas_release(&s->formulas);
	meta_release(&s->meta);
	if (s->reader)
		store_close(s->reader);
	free(s);
	return NULL;
}

/* ---- asking ---- */

struct table *walk_table(const struct walk *s, uint32_t set)
{
	return store_reader_table(s->reader, set);
}

bool walk_is_of(const struct walk *s, int set, enum domain domain)
{
	return set >= 0 && s->schema->set[set].domain == domain;
}

bool walk_is_of_processes(const struct walk *s, int set)
{
	return walk_is_of(s, set, DOMAIN_PROCESS) || walk_is_of(s, set, DOMAIN_GPU_PROCESS);
}

int64_t walk_start(const struct walk *s)
{
	int64_t start = 0;

	meta_num(&s->meta, "start_wall_ns", &start);
	return start;
}

static struct table *view_table(const void *arg, uint32_t set)
{
	return walk_table(arg, set);
}

static const char *view_name(const void *arg, uint32_t set, uint32_t row, size_t *ret_len)
{
	const struct walk *s = arg;
	const struct occupant *in = walk_occupant(s, set, row, walk_table(s, set)->id[row]);

	*ret_len = in && in->name ? in->name_len : 0;
	return in ? in->name : NULL;
}

struct tick_view walk_view(const struct walk *s)
{
	return (struct tick_view){s->schema, view_table, view_name, s};
}

void walk_observe(struct walk *s, struct walk_observer *o)
{
	o->next = s->observer;
	s->observer = o;
}
