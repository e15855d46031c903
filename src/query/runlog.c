/* The entries of the run log: see runlog.h. */
#include "query/runlog.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/speaker.h"
#include "query/walk.h"
#include "store/glance.h"

#include <stdio.h>
#include <string.h>

#define OPEN_MOST 256  /* phases at a time; as query/events.c has it */
#define NAME_MOST 500  /* of a phase, that matters */
#define DATA_MOST 1024 /* kept of what a phase's beginning tells */
#define ROWS_NAMED 256 /* of a set: names of later rows are not kept */
#define ROW_NAME 128
#define NEWS_NS (10 * NSEC_PER_SEC) /* what a counter says is told once in this time */

/* A counter that tells of something when it rises. */
struct counter_news {
	struct counter_watch watch;
	int64_t all;	 /* by how much it rose */
	int64_t sum;	 /* of that, not told yet */
	int64_t told_ns; /* when it was told last */
	bool told;
	double scale;
	char where[ROW_NAME];
	size_t where_len;
};

/* clang-format off */
static const struct {
	const char *metric, *event, *what;
	const char *key; /* of the amount */
} news_row[] = {
	{"cgroup.cpu.throttled",  "throttled", "CPU quota",           "seconds"},
	{"throttle.core",         "throttled", "CPU core slowed down", "times"},
	{"throttle.package",      "throttled", "CPU package slowed down", "times"},
	{"gpu.throttle.power",    "throttled", "GPU power limit",     "seconds"},
	{"gpu.throttle.thermal",  "throttled", "GPU temperature",     "seconds"},
	{"self.ticks.missed",     "missed",    NULL,                  "ticks"},
};
#define MISSED_ROW (ARRAY_SIZE(news_row) - 1)
/* clang-format on */

struct told_phase {
	int64_t start_ns;
	struct speaker speaker;
	size_t name_len, data_len;
	char name[NAME_MOST], data[DATA_MOST];
};

struct named_rows {
	uint32_t set;
	char name[ROWS_NAMED][ROW_NAME];
};

struct runlog {
	runlog_take *take;
	void *arg;
	struct meta meta, ending;
	int64_t start_wall_ns, last_ns, stopped_ns;
	bool started, stopped;
	const struct schema *schema;
	struct kills kills;
	struct counter_news news[ARRAY_SIZE(news_row)];
	struct named_rows *named; /* the sets of these counters, each once */
	size_t nr_named;
	unsigned nr_open;
	struct told_phase *open; /* OPEN_MOST */
	struct resources told;	 /* what marks say */
	struct resources resources;
	bool has_resources;
};

int runlog_new(runlog_take *take, void *arg, struct runlog **ret)
{
	struct runlog *log = calloc(1, sizeof(*log));

	if (log)
		log->open = calloc(OPEN_MOST, sizeof(*log->open));
	if (!log || !log->open) {
		free(log);
		return -ENOMEM;
	}
	log->take = take;
	log->arg = arg;
	*ret = log;
	return 0;
}

struct runlog *runlog_free(struct runlog *log)
{
	if (!log)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(news_row); i++)
		counter_watch_release(&log->news[i].watch);
	kills_release(&log->kills);
	meta_release(&log->meta);
	meta_release(&log->ending);
	free(log->named);
	free(log->open);
	free(log);
	return NULL;
}

/* ---- what is known of the recording ---- */

int runlog_meta(struct runlog *log, const struct pairs *meta)
{
	int r = meta_merge(&log->meta, meta);

	meta_num(&log->meta, "start_wall_ns", &log->start_wall_ns);
	return r == -ENOMEM ? r : 0;
}

static struct named_rows *named_rows(const struct runlog *log, uint32_t set)
{
	for (size_t i = 0; i < log->nr_named; i++)
		if (log->named[i].set == set)
			return &log->named[i];
	return NULL;
}

static int name_rows(struct runlog *log, const struct counter_watch *w)
{
	struct named_rows *more;

	if (w->set < 0 || named_rows(log, (uint32_t)w->set))
		return 0;
	more = ARRAY_ADD(log->named, log->nr_named);
	if (!more)
		return -ENOMEM;
	more->set = (uint32_t)w->set;
	return 0;
}

int runlog_bind(struct runlog *log, const struct schema *schema)
{
	int r;

	log->schema = schema;
	kills_bind(&log->kills, schema);
	r = name_rows(log, &log->kills.group);
	for (size_t i = 0; i < ARRAY_SIZE(news_row) && r >= 0; i++) {
		struct counter_news *n = &log->news[i];

		counter_watch_bind(&n->watch, schema, news_row[i].metric);
		n->scale = n->watch.set < 0 ? 1 : schema->set[n->watch.set].metric[n->watch.col].scale;
		r = name_rows(log, &n->watch);
	}
	return r;
}

void runlog_instance(struct runlog *log, uint32_t set, uint32_t row, const struct pairs *identity)
{
	struct named_rows *of = named_rows(log, set);
	const struct pair *name = of && row < ROWS_NAMED ? pairs_find(identity, "name") : NULL;
	size_t len = name ? MIN(name->len, (size_t)ROW_NAME - 1) : 0;

	if (!name)
		return;
	memcpy(of->name[row], name->value, len);
	of->name[row][len] = 0;
}

const struct meta *runlog_about(const struct runlog *log)
{
	return &log->meta;
}

const struct meta *runlog_ending(const struct runlog *log)
{
	return &log->ending;
}

const struct resources *runlog_resources(const struct runlog *log)
{
	return log->has_resources ? &log->resources : NULL;
}

int64_t runlog_wall(const struct runlog *log, int64_t time_ns)
{
	int64_t wall;

	return __builtin_add_overflow(log->start_wall_ns, time_ns, &wall) ? time_ns : wall;
}

/* ---- entries ---- */

static int give(struct runlog *log, const struct runlog_entry *entry)
{
	return log->take(log->arg, log, entry);
}

static int give_event(struct runlog *log, int64_t time_ns, const char *kind, const struct pairs *pairs)
{
	return give(log,
		&(struct runlog_entry){.kind = kind,
			.time_ns = time_ns,
			.name = kind,
			.name_len = strlen(kind),
			.pairs = pairs});
}

int runlog_start(struct runlog *log)
{
	if (log->started)
		return 0;
	log->started = true;
	return give_event(log, 0, "start", NULL);
}

static void entry_data(struct runlog_entry *e, unsigned i, const struct pairs *pairs)
{
	const struct pair *data = pairs_find(pairs, "data");

	e->data[i] = data ? data->value : NULL;
	e->data_len[i] = data ? data->len : 0;
}

static struct runlog_entry entry_of_job(const char *kind, int64_t time_ns, const struct pairs *pairs)
{
	const struct pair *name = pairs_find(pairs, "name");

	return (struct runlog_entry){.of_job = true,
		.kind = kind,
		.time_ns = time_ns,
		.name = name ? name->value : "",
		.name_len = name ? name->len : 0};
}

static void open_drop(struct runlog *log, unsigned i)
{
	memmove(log->open + i, log->open + i + 1, (log->nr_open - i - 1) * sizeof(log->open[0]));
	log->nr_open--;
}

static int give_phase(struct runlog *log, unsigned i, struct runlog_entry *e)
{
	struct told_phase *o = &log->open[i];
	int r;

	e->is_phase = true;
	e->time_ns = MAX(e->time_ns, o->start_ns);
	e->length_ns = e->time_ns - o->start_ns;
	e->data[0] = o->data;
	e->data_len[0] = o->data_len;
	r = give(log, e);
	open_drop(log, i);
	return r;
}

/* One that there is no room for ends with the recording, as its readers see it: the oldest. */
static int give_unfinished(struct runlog *log, unsigned i, int64_t time_ns)
{
	struct told_phase *o = &log->open[i];
	char name[NAME_MOST];
	struct runlog_entry e = {.of_job = true,
		.unfinished = true,
		.kind = "phase",
		.time_ns = time_ns,
		.name = name,
		.name_len = o->name_len};

	memcpy(name, o->name, o->name_len);
	return give_phase(log, i, &e);
}

static int phase_begin(struct runlog *log, int64_t time_ns, const struct pairs *pairs)
{
	const struct pair *name = pairs_find(pairs, "name"), *data = pairs_find(pairs, "data");
	int r = log->nr_open == OPEN_MOST ? give_unfinished(log, 0, time_ns) : 0;
	struct told_phase *o = &log->open[log->nr_open++];

	o->start_ns = told_ns(time_ns, pairs);
	o->speaker = speaker_in(pairs);
	o->name_len = name ? MIN(name->len, sizeof(o->name)) : 0;
	memcpy(o->name, name ? name->value : "", o->name_len);
	o->data_len = data && data->len <= sizeof(o->data) ? data->len : 0;
	memcpy(o->data, data ? data->value : "", o->data_len);
	return r;
}

/* Which open phase an end closes. OPEN_MOST: none. */
static unsigned phase_ended(
	const struct runlog *log, const struct runlog_entry *e, const struct speaker *speaker)
{
	size_t len = MIN(e->name_len, (size_t)NAME_MOST);
	unsigned found = OPEN_MOST, best = 0;

	for (unsigned i = log->nr_open; i-- > 0;) {
		const struct told_phase *o = &log->open[i];
		unsigned match = speaker_match(&o->speaker, speaker);

		if (match > best && o->name_len == len && !memcmp(o->name, e->name, len)) {
			best = match;
			found = i;
		}
	}
	return found;
}

static int phase_end(struct runlog *log, int64_t time_ns, const struct pairs *pairs)
{
	struct runlog_entry e = entry_of_job("phase", told_ns(time_ns, pairs), pairs);
	struct speaker speaker = speaker_in(pairs);
	unsigned i;

	entry_data(&e, 1, pairs);
	i = phase_ended(log, &e, &speaker);
	return i < OPEN_MOST ? give_phase(log, i, &e) : 0; /* one that never began is nothing */
}

static int mark(struct runlog *log, int64_t time_ns, const struct pairs *pairs)
{
	struct runlog_entry e = entry_of_job("mark", told_ns(time_ns, pairs), pairs);

	entry_data(&e, 0, pairs);
	resources_mark(&log->told, e.data[0] ? e.data[0] : "", e.data_len[0]);
	return give(log, &e);
}

/* Decimal, with the digits of a millisecond. */
static const char *in_seconds(char out[static 40], double seconds)
{
	snprintf(out, 40, "%.3f", seconds);
	return out;
}

static int continued(struct runlog *log, int64_t time_ns)
{
	struct pair memory[1];
	char numbers[8], text[40];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	if (log->stopped)
		pairs_str(&p, "seconds",
			in_seconds(text, (double)MAX(time_ns - log->stopped_ns, INT64_C(0)) / 1e9));
	log->stopped = false;
	return give_event(log, time_ns, "continued", &p);
}

int runlog_event(struct runlog *log, int64_t time_ns, const char *kind, const struct pairs *pairs)
{
	static const struct {
		const char *kind;
		int (*take)(struct runlog *log, int64_t time_ns, const struct pairs *pairs);
	} row[] = {{"phase.begin", phase_begin}, {"phase.end", phase_end}, {"mark", mark}};

	log->last_ns = MAX(log->last_ns, time_ns);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(kind, row[i].kind))
			return row[i].take(log, time_ns, pairs);
	if (!strcmp(kind, "unavailable")) /* told of metrics: nothing that happened */
		return 0;
	if (!strcmp(kind, "continued"))
		return continued(log, time_ns);
	if (!strcmp(kind, "stopped")) {
		log->stopped = true;
		log->stopped_ns = time_ns;
	}
	return give_event(log, time_ns, kind, pairs);
}

int runlog_lost(struct runlog *log, const char *reason)
{
	struct pair memory[1];
	char numbers[8];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_str(&p, "reason", reason ? reason : "damaged");
	return give_event(log, log->last_ns, "lost", &p);
}

/* ---- counters ---- */

static int give_kills(struct runlog *log, int64_t time_ns, int64_t kills, const char *where, size_t where_len)
{
	struct pair memory[2];
	char numbers[32];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_num(&p, "kills", kills);
	pairs_add(&p, "where", where, where_len);
	return give_event(log, time_ns, "oom", &p);
}

static int take_kills(struct runlog *log, const struct tick_view *view, int64_t time_ns)
{
	static const char outside[] = "this node, outside the groups that are watched";
	struct counter_rise in_group;
	int64_t in_node;
	int r = kills_tick(&log->kills, view, time_ns, &in_group, &in_node);

	if (r >= 0 && in_group.by)
		r = give_kills(log, time_ns, in_group.by, in_group.name ? in_group.name : "a control group",
			in_group.name ? in_group.name_len : strlen("a control group"));
	if (r >= 0 && in_node)
		r = give_kills(log, time_ns, in_node, outside, strlen(outside));
	return r;
}

static int tell_news(struct runlog *log, unsigned i, int64_t time_ns)
{
	struct counter_news *n = &log->news[i];
	struct pair memory[3];
	char numbers[32], text[40];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	if (news_row[i].what)
		pairs_str(&p, "what", news_row[i].what);
	if (news_row[i].what && n->where_len)
		pairs_add(&p, "where", n->where, n->where_len);
	if (!strcmp(news_row[i].key, "seconds"))
		pairs_str(&p, "seconds", in_seconds(text, (double)n->sum * n->scale));
	else
		pairs_num(&p, news_row[i].key, n->sum);
	n->sum = 0;
	n->told = true;
	n->told_ns = time_ns;
	return give_event(log, time_ns, news_row[i].event, &p);
}

static void news_add(struct counter_news *n, int64_t by)
{
	n->all = (int64_t)MIN((uint64_t)n->all + (uint64_t)by, (uint64_t)INT64_MAX);
	n->sum = (int64_t)MIN((uint64_t)n->sum + (uint64_t)by, (uint64_t)INT64_MAX);
}

/* The last tick is not always followed by a value of the counter: the end mark has it. */
static void missed_at_end(struct runlog *log)
{
	struct counter_news *n = &log->news[MISSED_ROW];
	int64_t missed = 0;

	if (meta_num(&log->ending, "missed", &missed) && missed > n->all)
		news_add(n, missed - n->all);
}

static int take_news(struct runlog *log, unsigned i, const struct tick_view *view, int64_t time_ns)
{
	struct counter_news *n = &log->news[i];
	struct counter_rise rise;
	int r = counter_watch_tick(&n->watch, view, false, &rise);

	if (r < 0)
		return r;
	if (rise.by) {
		news_add(n, rise.by);
		n->where_len = rise.name ? MIN(rise.name_len, sizeof(n->where)) : 0;
		memcpy(n->where, rise.name ? rise.name : "", n->where_len);
	}
	return n->sum && (!n->told || time_ns - n->told_ns >= NEWS_NS) ? tell_news(log, i, time_ns) : 0;
}

struct runlog_view {
	const struct runlog *log;
	struct table *(*table)(const void *arg, uint32_t set);
	const void *arg;
};

static struct table *view_table(const void *arg, uint32_t set)
{
	const struct runlog_view *v = arg;

	return v->table(v->arg, set);
}

static const char *view_name(const void *arg, uint32_t set, uint32_t row, size_t *ret_len)
{
	const struct runlog_view *v = arg;
	const struct named_rows *of = named_rows(v->log, set);
	const char *name = of && row < ROWS_NAMED && *of->name[row] ? of->name[row] : NULL;

	*ret_len = name ? strlen(name) : 0;
	return name;
}

int runlog_tick(struct runlog *log, int64_t time_ns, struct table *(*table)(const void *arg, uint32_t set),
	const void *arg)
{
	struct runlog_view mine = {log, table, arg};
	struct tick_view view = {log->schema, view_table, view_name, &mine};
	int r = take_kills(log, &view, time_ns);

	log->last_ns = MAX(log->last_ns, time_ns);
	for (unsigned i = 0; i < ARRAY_SIZE(news_row) && r >= 0; i++)
		r = take_news(log, i, &view, time_ns);
	return r;
}

int runlog_end(struct runlog *log, const struct pairs *ending, const struct resources *resources)
{
	int64_t end_ns = log->last_ns;
	int r = ending ? meta_merge(&log->ending, ending) : 0;

	if (r == -ENOMEM)
		return r;
	meta_num(&log->ending, "end_ns", &end_ns);
	r = runlog_start(log);
	missed_at_end(log);
	for (unsigned i = 0; i < ARRAY_SIZE(news_row) && r >= 0; i++)
		r = log->news[i].sum ? tell_news(log, i, end_ns) : 0;
	while (log->nr_open && r >= 0)
		r = give_unfinished(log, log->nr_open - 1, end_ns);
	log->has_resources = resources;
	log->resources = resources ? *resources : (struct resources){0};
	log->resources.jax_peak_mb = log->told.jax_peak_mb;
	return r < 0 || !ending ? r : give_event(log, end_ns, "end", NULL);
}

/* ---- from a recording ---- */

struct runlog_reading {
	struct walk_observer observer;
	struct runlog *log;
	struct walk *walk;
	char *path;
	bool ended, omits_resources;
};

/* The entry `start` has what is known at the end; the walk needs some of it before it has read that far. */
static int take_meta(void *arg, enum store_type type, const struct pairs *pairs)
{
	struct runlog_reading *r = arg;
	int e;

	pairs = clock_pairs(r->walk->clock, pairs);
	e = type == STORE_META ? runlog_meta(r->log, pairs) : 0;
	if (e >= 0 && type == STORE_META && meta_merge(&r->walk->meta, pairs) == -ENOMEM)
		e = -ENOMEM;
	return e;
}

static int read_resources(const char *path, struct resources *ret)
{
	struct run *run = NULL;
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = run_open(&path, 1, &run, &err);
	if (r >= 0)
		r = resources_read(run, ret, &err);
	run_close(run);
	buf_release(&err);
	return r;
}

static struct table *table_of_walk(const void *arg, uint32_t set)
{
	return walk_table(arg, set);
}

static int on_end(struct runlog_reading *r, const struct pairs *ending)
{
	struct resources resources;
	bool known = ending && !r->omits_resources && read_resources(r->path, &resources) >= 0;

	r->ended = true;
	return runlog_end(r->log, ending, known ? &resources : NULL);
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct runlog_reading *r = (struct runlog_reading *)o;

	switch (record->type) {
	case STORE_META:
		return runlog_meta(r->log, record->pairs);
	case STORE_SCHEMA:
		return runlog_bind(r->log, r->walk->schema);
	case STORE_INSTANCE:
		if (record->row != STORE_NO_ROW)
			runlog_instance(r->log, record->set, record->row, record->pairs);
		return 0;
	case STORE_EVENT:
		return runlog_event(r->log, record->time_ns, record->kind, record->pairs);
	case STORE_LOST:
		return runlog_lost(r->log, record->reason);
	case STORE_TICK:
		return runlog_tick(r->log, record->time_ns, table_of_walk, r->walk);
	case STORE_SUMMARY:
		return on_end(r, record->pairs);
	default:
		return 0;
	}
}

int runlog_open(const char *path, runlog_take *take, void *arg, struct runlog_reading **ret)
{
	struct runlog_reading *r = calloc(1, sizeof(*r));
	struct store_glance glance;
	int e = r && (r->path = strdup(path)) ? runlog_new(take, arg, &r->log) : -ENOMEM;

	if (e >= 0)
		e = walk_open_plain(path, &r->walk);
	if (e >= 0)
		e = store_glance(path, take_meta, r, &glance);
	if (e >= 0)
		e = runlog_bind(r->log, NULL);
	if (e < 0) {
		runlog_close(r);
		return e;
	}
	r->observer.record = observe;
	walk_observe(r->walk, &r->observer);
	*ret = r;
	return 0;
}

struct runlog_reading *runlog_close(struct runlog_reading *r)
{
	if (!r)
		return NULL;
	walk_close(r->walk);
	runlog_free(r->log);
	free(r->path);
	free(r);
	return NULL;
}

void runlog_omit_resources(struct runlog_reading *r)
{
	r->omits_resources = true;
}

int runlog_follow(struct runlog_reading *r)
{
	return walk_follow(r->walk, r->path);
}

bool runlog_complete(const struct runlog_reading *r)
{
	return r->ended && r->log->ending.nr;
}

int runlog_read(struct runlog_reading *r)
{
	int e = runlog_start(r->log);
	struct store_health health;

	while (e >= 0 && (e = walk_next(r->walk)) == 1)
		;
	if (e != 0 || r->ended)
		return e;
	store_health(r->walk->reader, &health);
	return health.writing ? 0 : on_end(r, NULL); /* its recorder is gone */
}
