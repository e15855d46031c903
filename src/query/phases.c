/* Phases while a recording is read: edges are put in the order of their times, ticks wait until no edge can
 * come between them any more, and both are gone through together.
 *
 * They wait for HOLD_NS: a message of the job that waited for the recorder is told late, and what is read
 * every few seconds is known then, so that it is spread over the time in which it came about. */
#include "query/phases_internal.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/counters.h"
#include "query/events.h"
#include "query/gpus.h"
#include "query/live_processes.h"
#include "query/speaker.h"

#include <math.h>
#include <string.h>

#define HOLD_NS (6 * NSEC_PER_SEC)
#define SLOW_NS (5 * NSEC_PER_SEC)
#define TICKS_MOST 1024u  /* that wait */
#define TICKS_SILENT 16u  /* likewise, before the job told of a phase */
#define EDGES_SOON 4096	  /* so many edges do not wait any longer than they must */
#define EDGES_MOST 65536  /* more are not kept */
#define OPEN_MOST 256	  /* at once */
#define FOLDS_MOST 1024	  /* names */
#define SENDERS_MOST 4096 /* of which the ancestors are known */
#define ANCESTORS 12
#define NAME_MOST 500
/* A tick so soon after the end was taken because of it. */
#define EDGE_NS (20 * NSEC_PER_MSEC)
/* Start times of processes are whole ticks of the kernel's clock. */
#define START_TICK_NS (10 * NSEC_PER_MSEC)

struct tick {
	int64_t time_ns;
	double sum[NR_SUMS];
	double peak[NR_PEAKS];
};

struct edge {
	enum { EDGE_BEGIN, EDGE_END, EDGE_MARK } kind;
	int64_t time_ns;
	struct speaker speaker;
	uint64_t number; /* in the order of the recording */
	char *name;	 /* escaped */
	int64_t begun;	 /* EDGE_MARK: the process */
	double mark;
};

struct sender { /* a process that told of phases */
	int64_t pid;
	uint32_t id;	 /* of the process; 0: not known (yet) */
	int64_t gone_ns; /* INT64_MAX: it lives */
	int64_t ancestor[ANCESTORS];
	unsigned nr_ancestors;
};

struct open_phase {
	struct phase_span span;
	struct open_phase *around; /* NULL: none */
	double base[NR_SUMS];
	unsigned nr_ticks;
	struct phase_member {
		struct speaker speaker;
		bool in;
	} * member;
	size_t nr_members, nr_in;
};

struct phase_reading {
	struct walk_observer observer;
	struct ledger *ledger;
	int64_t offset_ns;
	size_t most;
	bool speaks, bound; /* the job told of a phase; causes are followed */

	struct tick *tick; /* a ring */
	uint32_t cap, first, nr_ticks;
	bool waits; /* the last of them lacks what the job used */
	bool any_tick;
	struct tick before; /* the last that is done with */
	struct {
		double value;
		int64_t time_ns;
	} moved[NR_SUMS];     /* of slow ones: when they grew last */
	bool slow[NR_SUMS];   /* read every few seconds */
	double held[NR_HELD]; /* at the last point; NAN: not known */
	uint32_t used_valid;
	struct growth cause[NR_CAUSES];

	struct edge *edge; /* by time */
	size_t nr_edges, edges_cap;
	uint64_t nr_told;
	bool unsorted;
	size_t nr_begins; /* that are among them, or were */
	struct sender *sender;
	size_t nr_senders;
	struct idmap by_pid;

	struct open_phase *open[OPEN_MOST];
	unsigned nr_open;
	uint64_t refused[OPEN_MOST]; /* names of phases that found no place and are not ended */
	unsigned nr_refused;
	struct fold_of_phases *fold;
	size_t nr_folds;
	struct phase_span *span;
	size_t nr_spans, left_out, ignored;
};

/* clang-format off */
static const struct {
	const char *metric;
	enum growth_of of;
} cause_row[NR_CAUSES] = {
	[CAUSE_CPU_GROUP]    = {"cgroup.pressure.cpu.some",    GROWTH_OWN},
	[CAUSE_CPU_NODE]     = {"pressure.cpu.some",           GROWTH_ADDED},
	[CAUSE_IO_GROUP]     = {"cgroup.pressure.io.some",     GROWTH_OWN},
	[CAUSE_IO_NODE]      = {"pressure.io.some",            GROWTH_ADDED},
	[CAUSE_MEMORY_GROUP] = {"cgroup.pressure.memory.some", GROWTH_OWN},
	[CAUSE_MEMORY_NODE]  = {"pressure.memory.some",        GROWTH_ADDED},
	[CAUSE_RUN_QUEUE]    = {"proc.sched.wait",             GROWTH_ADDED},
	[CAUSE_SWAP_IN]      = {"paging.swap_in",              GROWTH_ADDED},
	[CAUSE_THERMAL]      = {"throttle.package_time",       GROWTH_ADDED},
	[CAUSE_CLOCK]        = {"freq.current",                GROWTH_ADDED},
};
/* clang-format on */

/* ---- senders ---- */

/* The process and those above it, as far as they are recorded. */
static void sender_know(struct sender *s, const struct live_processes *l, uint32_t id, int64_t ppid)
{
	s->id = id;
	s->gone_ns = INT64_MAX;
	s->nr_ancestors = 0;
	while (ppid > 0 && s->nr_ancestors < ANCESTORS) {
		uint32_t above = idmap_get(&l->by_pid, (uint64_t)ppid);
		const struct live_process *p = above == IDMAP_NONE ? NULL : live_find(l, above);

		s->ancestor[s->nr_ancestors++] = ppid;
		ppid = p && p->ppid != (uint32_t)ppid ? (int64_t)p->ppid : 0;
	}
}

static struct sender *sender_of(const struct phase_reading *r, int64_t pid)
{
	uint32_t i = pid > 0 ? idmap_get(&r->by_pid, (uint64_t)pid) : IDMAP_NONE;

	return i == IDMAP_NONE ? NULL : &r->sender[i];
}

static int sender_add(struct phase_reading *r, int64_t pid)
{
	const struct live_processes *l = ledger_live(r->ledger);
	uint32_t id = pid > 0 ? idmap_get(&l->by_pid, (uint64_t)pid) : IDMAP_NONE;
	const struct live_process *p = id == IDMAP_NONE ? NULL : live_find(l, id);
	struct sender *s = sender_of(r, pid);

	if (pid <= 0 || (!s && r->nr_senders == SENDERS_MOST))
		return 0;
	if (!s) {
		s = ARRAY_ADD(r->sender, r->nr_senders);
		if (!s || idmap_put(&r->by_pid, (uint64_t)pid, (uint32_t)(r->nr_senders - 1)) < 0)
			return -ENOMEM;
		s->pid = pid;
		s->gone_ns = INT64_MAX;
	}
	if (p && s->id != p->id)
		sender_know(s, l, p->id, (int64_t)p->ppid);
	return 0;
}

static bool is_above(const struct sender *above, const struct sender *s)
{
	for (unsigned i = 0; i < s->nr_ancestors; i++)
		if (s->ancestor[i] == above->pid)
			return true;
	return false;
}

/* Both live at that time, and neither has started the other: what they tell is not nested. Of a process that
 * only told and ended, as those of a shell script, nothing like that is known. */
static bool are_apart(const struct phase_reading *r, const struct speaker *one, const struct speaker *other,
	int64_t time_ns)
{
	const struct sender *a = sender_of(r, one->pid), *b = sender_of(r, other->pid);

	if (a == b || one->parent || other->parent || !a || !b || !a->id || !b->id || a->gone_ns <= time_ns ||
		b->gone_ns <= time_ns)
		return false;
	return !is_above(a, b) && !is_above(b, a);
}

/* ---- edges ---- */

static int edge_add(struct phase_reading *r, const struct edge *e)
{
	if (r->nr_edges >= EDGES_MOST || ARRAY_ROOM(r->edge, r->edges_cap, r->nr_edges + 1) < 0)
		return r->nr_edges >= EDGES_MOST ? -ENOSPC : -ENOMEM;
	r->unsorted |= r->nr_edges && r->edge[r->nr_edges - 1].time_ns > e->time_ns;
	r->edge[r->nr_edges] = *e;
	r->edge[r->nr_edges++].number = r->nr_told++;
	return 0;
}

static int by_edge_time(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* A sender whose clock is wrong may end a phase before it began: it ends at once then. */
static void not_before_begin(const struct phase_reading *r, struct edge *end)
{
	for (size_t i = r->nr_edges, look = 64; i-- && look-- && r->edge[i].time_ns > end->time_ns;)
		if (r->edge[i].kind == EDGE_BEGIN && !strcmp(r->edge[i].name, end->name) &&
			speaker_match(&r->edge[i].speaker, &end->speaker) == SPEAKER_SAME)
			end->time_ns = r->edge[i].time_ns;
}

static int on_phase(struct phase_reading *r, const struct store_record *record, bool begins)
{
	const struct pair *name = pairs_find(record->pairs, "name");
	struct edge e = {.kind = begins ? EDGE_BEGIN : EDGE_END};
	struct buf text;
	int known;

	e.speaker = speaker_in(record->pairs);
	e.time_ns = told_ns(record->time_ns, record->pairs);
	buf_init(&text, 10 * NAME_MOST);
	if (name)
		escape_bytes(&text, name->value, MIN(name->len, (size_t)NAME_MOST));
	e.name = strdup((const char *)text.data);
	buf_release(&text);
	if (!e.name || sender_add(r, e.speaker.pid) < 0) {
		free(e.name);
		return -ENOMEM;
	}
	if (!begins)
		not_before_begin(r, &e);
	r->speaks = true;
	r->nr_begins += begins;
	known = edge_add(r, &e);
	if (known < 0)
		free(e.name);
	r->ignored += known == -ENOSPC && begins;
	return known == -ENOSPC ? 0 : known;
}

/* The largest memory that the process told at its end, if it is its own. */
static int on_gone(struct phase_reading *r, const struct store_record *record)
{
	const struct live_process *p = live_find(ledger_live(r->ledger), record->id);
	int64_t kib = 0, least = 0, most = 0;
	struct sender *s = p ? sender_of(r, (int64_t)p->pid) : NULL;
	int known;

	if (s && s->id == record->id)
		s->gone_ns = record->time_ns;
	pairs_get_num(record->pairs, "max_rss_kib", &kib);
	pairs_get_num(record->pairs, "max_rss_least", &least);
	pairs_get_num(record->pairs, "max_rss_most", &most);
	if (!r->nr_begins || !p || p->born_ns <= 0 || kib <= 0 || most)
		return 0;
	known = edge_add(r,
		&(struct edge){.kind = EDGE_MARK,
			.time_ns = MAX(record->time_ns, 0),
			.begun = p->born_ns,
			.mark = 1024.0 * (double)kib});
	return known == -ENOSPC ? 0 : known;
}

static void on_instance(struct phase_reading *r, const struct store_record *record)
{
	int64_t pid = 0, ppid = 0;
	struct sender *s;

	pairs_get_num(record->pairs, "pid", &pid);
	pairs_get_num(record->pairs, "ppid", &ppid);
	s = sender_of(r, pid);
	if (s && !s->id)
		sender_know(s, ledger_live(r->ledger), record->id, ppid);
}

/* ---- which sums are read seldom ---- */

static bool is_slow(const struct schema *schema, const char *metric)
{
	uint32_t set, col;

	return metric && schema_find(schema, metric, &set, &col) &&
		schema->set[set].metric[col].tier != TIER_TICK &&
		schema->set[set].metric[col].kind == KIND_COUNTER;
}

static void bind(struct phase_reading *r, const struct schema *schema)
{
	for (unsigned i = 0; i < NR_USED; i++)
		r->slow[SUM_USED + i] = is_slow(schema, quantity[i].metric);
	for (unsigned i = 0; i < NR_TOTALS; i++)
		r->slow[SUM_TOTAL + i] = is_slow(schema, total_metric(i));
	for (unsigned i = 0; i < NR_CAUSES; i++) {
		growth_bind(&r->cause[i], schema, cause_row[i].metric);
		r->slow[SUM_CAUSE + i] = is_slow(schema, cause_row[i].metric);
	}
	r->bound = true;
}

/* What may have held the job back is followed from its first phase on: of processes there may be many. */
static int on_tick(struct phase_reading *r)
{
	const struct walk *walk = ledger_walk(r->ledger);
	int known = 0;

	if (!walk->schema || !r->speaks)
		return 0;
	if (!r->bound)
		bind(r, walk->schema);
	for (unsigned i = 0; i < NR_CAUSES && known >= 0; i++)
		known = growth_tick(&r->cause[i], walk);
	return known;
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct phase_reading *r = (struct phase_reading *)o;

	switch (record->type) {
	case STORE_TICK:
		return on_tick(r);
	case STORE_EVENT:
		if (!strcmp(record->kind, "phase.begin"))
			return on_phase(r, record, true);
		return strcmp(record->kind, "phase.end") ? 0 : on_phase(r, record, false);
	case STORE_INSTANCE:
		if (r->nr_senders && live_is_of(ledger_live(r->ledger), record))
			on_instance(r, record);
		return 0;
	case STORE_GONE:
		return r->speaks && live_is_of(ledger_live(r->ledger), record) ? on_gone(r, record) : 0;
	default:
		return 0;
	}
}

/* ---- ticks ---- */

static struct tick *tick_at(const struct phase_reading *r, uint32_t i)
{
	return &r->tick[(r->first + i) & (r->cap - 1)];
}

static int ring_grow(struct phase_reading *r)
{
	uint32_t cap = r->cap ? 2 * r->cap : 16;
	struct tick *more = calloc(cap, sizeof(*more));

	if (!more)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->nr_ticks; i++)
		more[i] = *tick_at(r, i);
	free(r->tick);
	r->tick = more;
	r->cap = cap;
	r->first = 0;
	return 0;
}

static double device_memory(const struct gpu_track *d)
{
	if (d->use[0].has_memory)
		return d->use[0].memory_now;
	return d->course[COURSE_MEMORY_USED].known ? d->course[COURSE_MEMORY_USED].value : NAN;
}

static void gather_gpus(const struct gpus *g, struct tick *t)
{
	for (size_t i = 0; i < g->nr; i++) {
		const struct gpu_track *d = g->device[i];
		size_t slot = MIN(i, (size_t)GPU_SLOTS - 1);
		double *sum = &t->sum[SUM_SLOT + slot * NR_SLOT_SUMS], *peak = &t->peak[PEAK_SLOT + slot];
		double memory = device_memory(d);

		if (d->parent >= 0) /* its device has it */
			continue;
		sum[SLOT_UTIL] += d->course[COURSE_UTIL].integral;
		sum[SLOT_ELAPSED] += d->course[COURSE_UTIL].elapsed;
		sum[SLOT_METER] += d->course[COURSE_ENERGY].grown;
		sum[SLOT_POWER] += d->course[COURSE_POWER].integral;
		for (unsigned k = COURSE_THROTTLED_POWER; k <= COURSE_THROTTLED_RELIABILITY; k++)
			sum[SLOT_THROTTLED] += d->course[k].grown;
		if (!isnan(memory))
			*peak = isnan(*peak) ? memory : *peak + memory;
	}
}

static unsigned nr_events(const struct counters *c)
{
	return (unsigned)MIN(c->nr, (size_t)PHASE_EVENTS);
}

/* The tick at which the walk is: what the ledger knows of the node. Before the first nothing was counted. */
static int tick_push(struct phase_reading *r, int64_t time_ns, bool counted)
{
	const struct node_totals *totals = ledger_totals(r->ledger);
	const struct counters *counters = ledger_counters(r->ledger);
	struct tick *t;
	int64_t least;

	if (r->nr_ticks == r->cap && ring_grow(r) < 0)
		return -ENOMEM;
	least = r->nr_ticks ? tick_at(r, r->nr_ticks - 1)->time_ns : r->before.time_ns;
	t = tick_at(r, r->nr_ticks++);
	*t = (struct tick){.time_ns = MAX(time_ns, least)}; /* times of a forged file go back */
	for (unsigned i = 0; i < NR_PEAKS; i++)
		t->peak[i] = NAN;
	r->waits = true;
	if (!counted)
		return 0;
	for (unsigned i = 0; i < NR_TOTALS; i++)
		t->sum[SUM_TOTAL + i] =
			i == TOTAL_POWER ? totals->growth[i].integral : totals->growth[i].grown;
	for (unsigned i = 0; i < NR_CAUSES; i++)
		t->sum[SUM_CAUSE + i] = i == CAUSE_CLOCK ? r->cause[i].integral : r->cause[i].grown;
	if (r->cause[CAUSE_CLOCK].any)
		t->sum[SUM_CLOCK_S] = (double)t->time_ns / 1e9 - (double)r->cause[CAUSE_CLOCK].first_ns / 1e9;
	for (unsigned i = 0; i < nr_events(counters); i++)
		t->sum[SUM_EVENT + i] = counters->event[i].count.grown;
	gather_gpus(ledger_gpus(r->ledger), t);
	return 0;
}

/* What the job used and held: the point that belongs to the tick that waits. */
static void tick_fill(
	struct phase_reading *r, struct tick *t, const struct tick *last, const struct point *point)
{
	const struct amounts *job = &point->line[0];
	double seconds = MAX((double)(t->time_ns - last->time_ns) / 1e9, 0);

	for (unsigned i = 0; i < NR_USED; i++)
		t->sum[SUM_USED + i] =
			quantity[i].is_time ? (double)job->used[i] / 1e9 : (double)job->used[i];
	r->used_valid = job->used_valid;
	for (unsigned i = 0; i < NR_HELD; i++) {
		bool was_known = !isnan(r->held[i]);

		t->sum[SUM_HELD + i] = last->sum[SUM_HELD + i] + (was_known ? r->held[i] * seconds : 0);
		t->sum[SUM_KNOWN + i] = last->sum[SUM_KNOWN + i] + (was_known ? seconds : 0);
		r->held[i] = job->level_valid >> i & 1 ? (double)job->level[i] : NAN;
		t->peak[PEAK_HELD + i] = r->held[i];
	}
	if (job->has_between) {
		t->peak[PEAK_HELD + LEVEL_PROCESSES] =
			known_max(t->peak[PEAK_HELD + LEVEL_PROCESSES], (double)job->between.processes);
		t->peak[PEAK_HELD + LEVEL_THREADS] =
			known_max(t->peak[PEAK_HELD + LEVEL_THREADS], (double)job->between.threads);
	}
	r->waits = false;
}

/* What is read every few seconds grew since it was read before. */
static void spread_slow(struct phase_reading *r, unsigned sum)
{
	const struct tick *now = tick_at(r, r->nr_ticks - 1);
	double value = now->sum[sum], before = r->moved[sum].value;
	int64_t from = MAX(r->moved[sum].time_ns, now->time_ns - SLOW_NS);

	if (value == before)
		return;
	if (from < now->time_ns)
		for (uint32_t i = r->nr_ticks - 1; i-- && tick_at(r, i)->time_ns > from;) {
			struct tick *t = tick_at(r, i);

			t->sum[sum] = before +
				(value - before) * (double)(t->time_ns - from) /
					(double)(now->time_ns - from);
		}
	r->moved[sum].value = value;
	r->moved[sum].time_ns = now->time_ns;
}

/* ---- phases ---- */

static double interpolate(double a, double b, double share)
{
	return share <= 0 || isnan(b) ? a : share >= 1 || isnan(a) ? b : a + (b - a) * share;
}

/* The running sums at a time between the last tick that is done with and this one. */
static double share_of(const struct phase_reading *r, const struct tick *next, int64_t time_ns)
{
	int64_t from = r->before.time_ns;

	return next->time_ns > from ? (double)(time_ns - from) / (double)(next->time_ns - from) : 1;
}

static void sums_at(const struct phase_reading *r, const struct tick *next, int64_t time_ns, double *ret)
{
	double share = share_of(r, next, time_ns);

	for (unsigned i = 0; i < NR_SUMS; i++)
		ret[i] = interpolate(r->before.sum[i], next->sum[i], share);
}

static int fold_find(struct phase_reading *r, const char *name)
{
	struct fold_of_phases *f;
	struct buf key;
	uint64_t hash;
	size_t i = 0;

	buf_init(&key, 20 * NAME_MOST);
	phase_key(name, &key);
	hash = hash_bytes(key.data, key.len);
	while (i < r->nr_folds &&
		(r->fold[i].hash != hash || strcmp(r->fold[i].key, (const char *)key.data) != 0))
		i++;
	if (i < r->nr_folds || r->nr_folds == FOLDS_MOST) {
		buf_release(&key);
		return i < r->nr_folds ? (int)i : -ENOSPC;
	}
	f = ARRAY_ADD(r->fold, r->nr_folds);
	if (f) {
		f->name = strdup(name);
		f->key = strdup((const char *)key.data);
		f->hash = hash;
		f->parent = PARENT_NONE_YET;
		f->begin_ns = INT64_MAX;
		sums_clear(&f->of);
	}
	buf_release(&key);
	return f && f->name && f->key ? (int)i : -ENOMEM;
}

static bool is_member(const struct open_phase *o, int64_t pid)
{
	for (size_t i = 0; i < o->nr_members; i++)
		if (o->member[i].speaker.pid == pid)
			return true;
	return false;
}

static int member_add(struct open_phase *o, const struct edge *e)
{
	struct phase_member *m = ARRAY_ADD(o->member, o->nr_members);

	if (!m)
		return -ENOMEM;
	*m = (struct phase_member){e->speaker, true};
	o->nr_in++;
	o->span.senders = MAX(o->span.senders, (uint32_t)o->nr_in);
	return 0;
}

/* Another process tells the same at the same time. */
static struct open_phase *joined_by(const struct phase_reading *r, const struct edge *e)
{
	for (unsigned i = r->nr_open; i--;) {
		struct open_phase *o = r->open[i];

		if (strcmp(o->span.name, e->name) || is_member(o, e->speaker.pid) ||
			o->nr_members >= SENDERS_MOST)
			continue;
		for (size_t k = 0; k < o->nr_members; k++)
			if (o->member[k].in && are_apart(r, &o->member[k].speaker, &e->speaker, e->time_ns))
				return o;
	}
	return NULL;
}

static struct open_phase *around_of(const struct phase_reading *r, const struct edge *e)
{
	for (unsigned i = r->nr_open; i--;)
		for (size_t k = 0; k < r->open[i]->nr_members; k++)
			if (r->open[i]->member[k].in &&
				!are_apart(r, &r->open[i]->member[k].speaker, &e->speaker, e->time_ns))
				return r->open[i];
	return NULL;
}

static void open_free(struct open_phase *o)
{
	if (!o)
		return;
	free(o->span.name);
	free(o->member);
	free(o);
}

static void fold_begin(struct fold_of_phases *f, const struct open_phase *o)
{
	f->varied |= phase_numbers_differ(f->name, o->span.name);
	f->begin_ns = MIN(f->begin_ns, o->span.begin_ns);
	f->count++;
	if (f->nr_open++)
		return;
	f->since_ns = o->span.begin_ns;
	memcpy(f->base, o->base, sizeof(f->base));
}

/* No place: its end is not that of another one. */
static int phase_ignore(struct phase_reading *r, const struct edge *e)
{
	r->ignored++;
	if (r->nr_refused < ARRAY_SIZE(r->refused))
		r->refused[r->nr_refused++] = hash_bytes(e->name, strlen(e->name));
	return 0;
}

static int phase_begin(struct phase_reading *r, const struct edge *e, const struct tick *next)
{
	struct open_phase *o = joined_by(r, e);
	int fold;

	if (o)
		return member_add(o, e);
	fold = r->nr_open < OPEN_MOST ? fold_find(r, e->name) : -ENOSPC;
	if (fold < 0)
		return fold == -ENOSPC ? phase_ignore(r, e) : fold;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->around = around_of(r, e);
	o->span = (struct phase_span){.fold = (uint32_t)fold,
		.parent = -1,
		.name = strdup(e->name),
		.begin_ns = MAX(e->time_ns, r->before.time_ns)};
	sums_clear(&o->span.of);
	sums_at(r, next, o->span.begin_ns, o->base);
	edge_unsure(&o->span.of, r->before.sum, next->sum, share_of(r, next, o->span.begin_ns));
	if (!o->span.name || member_add(o, e) < 0) {
		open_free(o);
		return -ENOMEM;
	}
	fold_begin(&r->fold[fold], o);
	r->open[r->nr_open++] = o;
	return 0;
}

static void fold_take(struct phase_reading *r, const struct phase_span *s, const double *now)
{
	struct fold_of_phases *f = &r->fold[s->fold];

	f->end_ns = MAX(f->end_ns, s->end_ns);
	f->cut |= s->cut;
	f->brief += s->brief;
	f->senders = MAX(f->senders, s->senders);
	f->parent = f->parent == PARENT_NONE_YET || f->parent == s->parent ? s->parent : -1;
	raise_peaks(f->of.peak, s->of.peak);
	f->of.mark = known_max(f->of.mark, s->of.mark);
	for (unsigned i = 0; i < NR_UNSURE; i++)
		f->of.unsure[i] += s->of.unsure[i];
	if (--f->nr_open)
		return;
	for (unsigned i = 0; i < NR_SUMS; i++)
		f->of.sum[i] += now[i] - f->base[i];
	f->of.wall_ns += s->end_ns - f->since_ns;
}

static void take_peaks(struct open_phase *o, const struct tick *t)
{
	raise_peaks(o->span.of.peak, t->peak);
	o->nr_ticks++;
}

/* The phases that go on around others are theirs from now on. */
static void leave(struct phase_reading *r, unsigned at)
{
	struct open_phase *o = r->open[at];

	for (unsigned i = 0; i < r->nr_open; i++)
		if (r->open[i]->around == o)
			r->open[i]->around = o->around;
	memmove(r->open + at, r->open + at + 1, (r->nr_open - at - 1) * sizeof(r->open[0]));
	r->nr_open--;
}

static int phase_close(
	struct phase_reading *r, unsigned at, int64_t time_ns, const struct tick *next, bool cut)
{
	struct open_phase *o = r->open[at];
	struct phase_span *s = &o->span, *kept;
	double now[NR_SUMS];

	s->end_ns = MAX(MAX(time_ns, s->begin_ns), cut ? 0 : r->before.time_ns);
	s->cut = cut;
	if (!cut && next->time_ns - s->end_ns <= EDGE_NS)
		take_peaks(o, next);
	s->brief = o->nr_ticks < 2;
	edge_unsure(&s->of, r->before.sum, next->sum, share_of(r, next, s->end_ns));
	for (unsigned i = 0; !o->nr_ticks && i < NR_PEAKS; i++)
		s->of.peak[i] = interpolate(r->before.peak[i], next->peak[i], share_of(r, next, s->end_ns));
	sums_at(r, next, s->end_ns, now);
	for (unsigned i = 0; i < NR_SUMS; i++)
		s->of.sum[i] = now[i] - o->base[i];
	s->of.wall_ns = s->end_ns - s->begin_ns;
	s->parent = o->around && o->around->span.fold != s->fold ? (int)o->around->span.fold : -1;
	leave(r, at);
	fold_take(r, s, now);
	if (r->nr_spans >= r->most) {
		r->left_out++;
		open_free(o);
		return 0;
	}
	kept = ARRAY_ADD(r->span, r->nr_spans);
	if (kept) {
		*kept = *s;
		s->name = NULL;
	}
	open_free(o);
	return kept ? 0 : -ENOMEM;
}

/* Which of the open phases it ends, and whose part in that one; -1: none. */
static int find_open(const struct phase_reading *r, const struct edge *e, size_t *ret_member)
{
	unsigned best = 0;
	int found = -1;

	for (unsigned i = r->nr_open; i--;)
		for (size_t k = r->open[i]->nr_members; k--;) {
			const struct phase_member *m = &r->open[i]->member[k];
			unsigned match = m->in ? speaker_match(&m->speaker, &e->speaker) : 0;

			if (match <= best || strcmp(r->open[i]->span.name, e->name) != 0)
				continue;
			best = match;
			found = (int)i;
			*ret_member = k;
		}
	return found;
}

static bool was_refused(struct phase_reading *r, const struct edge *e)
{
	uint64_t hash = hash_bytes(e->name, strlen(e->name));

	for (unsigned i = r->nr_refused; i--;)
		if (r->refused[i] == hash) {
			r->refused[i] = r->refused[--r->nr_refused];
			return true;
		}
	return false;
}

static int phase_end(struct phase_reading *r, const struct edge *e, const struct tick *next)
{
	size_t m = 0;
	int at = was_refused(r, e) ? -1 : find_open(r, e, &m);
	struct open_phase *o = at < 0 ? NULL : r->open[at];

	if (!o)
		return 0;
	o->member[m].in = false;
	return --o->nr_in ? 0 : phase_close(r, (unsigned)at, e->time_ns, next, false);
}

/* The process began and ended in these phases. */
static void take_mark(struct phase_reading *r, const struct edge *e)
{
	for (unsigned i = 0; i < r->nr_open; i++)
		if (r->open[i]->span.begin_ns < e->begun + START_TICK_NS)
			r->open[i]->span.of.mark = known_max(r->open[i]->span.of.mark, e->mark);
}

/* Edges up to this tick, then the tick. */
static int pass(struct phase_reading *r, const struct tick *next)
{
	size_t done = 0;
	int known = 0;

	if (r->unsorted)
		qsort(r->edge, r->nr_edges, sizeof(*r->edge), by_edge_time);
	r->unsorted = false;
	for (; done < r->nr_edges && r->edge[done].time_ns <= next->time_ns && known >= 0; done++) {
		const struct edge *e = &r->edge[done];

		if (e->kind == EDGE_MARK)
			take_mark(r, e);
		else
			known = e->kind == EDGE_BEGIN ? phase_begin(r, e, next) : phase_end(r, e, next);
		free(e->name);
	}
	r->nr_edges -= done;
	if (done && r->nr_edges)
		memmove(r->edge, r->edge + done, r->nr_edges * sizeof(*r->edge));
	for (unsigned i = 0; i < r->nr_open; i++)
		take_peaks(r->open[i], next);
	r->before = *next;
	return known;
}

static int pass_first(struct phase_reading *r)
{
	struct tick *t = tick_at(r, 0);

	r->first = (r->first + 1) & (r->cap - 1);
	r->nr_ticks--;
	return pass(r, t);
}

static bool may_pass(const struct phase_reading *r)
{
	uint32_t ready = r->nr_ticks - r->waits;

	if (!ready)
		return false;
	return r->nr_ticks >= (r->speaks ? TICKS_MOST : TICKS_SILENT) || r->nr_edges > EDGES_SOON ||
		tick_at(r, r->nr_ticks - 1)->time_ns - tick_at(r, 0)->time_ns > HOLD_NS;
}

int phase_reading_point(struct phase_reading *r, const struct point *point)
{
	int64_t now_ns = ledger_walk(r->ledger)->time_ns;
	const struct tick *last;
	int known = 0;

	if (!r->waits)
		known = tick_push(r, point->time_ns, r->any_tick);
	if (known < 0)
		return known;
	r->any_tick = true;
	last = r->nr_ticks > 1 ? tick_at(r, r->nr_ticks - 2) : &r->before;
	tick_fill(r, tick_at(r, r->nr_ticks - 1), last, point);
	for (unsigned i = 0; r->bound && i < SUM_SLOT; i++)
		if (r->slow[i])
			spread_slow(r, i);
	if (now_ns > point->time_ns)
		known = tick_push(r, now_ns, true);
	while (known >= 0 && may_pass(r))
		known = pass_first(r);
	return known;
}

/* ---- begin and end ---- */

struct phase_reading *phase_reading_new(struct ledger *a, int64_t offset_ns, size_t most)
{
	struct phase_reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ledger = a;
	r->offset_ns = offset_ns;
	r->most = MIN(most, (size_t)MOMENTS_MOST);
	for (unsigned i = 0; i < NR_CAUSES; i++)
		growth_init(&r->cause[i], cause_row[i].of);
	for (unsigned i = 0; i < NR_HELD; i++)
		r->held[i] = NAN;
	for (unsigned i = 0; i < NR_PEAKS; i++)
		r->before.peak[i] = NAN;
	r->observer.record = observe;
	walk_observe(ledger_walk(a), &r->observer);
	return r;
}

/* The rest of the edges, and what is still open when the recording ends. */
static int read_out(struct phase_reading *r)
{
	struct tick *last;
	int64_t end_ns;
	int known = 0;

	while (r->nr_ticks && known >= 0)
		known = pass_first(r);
	last = malloc(sizeof(*last));
	if (!last || known < 0) {
		free(last);
		return known < 0 ? known : -ENOMEM;
	}
	end_ns = MAX(ledger_facts(r->ledger)->last_ns, r->before.time_ns);
	*last = r->before;
	last->time_ns = end_ns;
	meta_num(ledger_ending(r->ledger), "end_ns", &end_ns); /* as the length of the run has it */
	known = pass(r, last);
	while (r->nr_open && known >= 0)
		known = phase_close(r, r->nr_open - 1, end_ns, last, true);
	free(last);
	return known;
}

static bool is_of_job(const struct gpu_track *d)
{
	return !strcmp(meta_text(&d->about, "job"), "yes") || d->use[0].memory_peak > 0 ||
		d->use[0].busy_s > 0;
}

/* Where none is known as the job's, all that are not others' are looked at. */
static void know_gpus(const struct gpus *g, struct phase_known *k)
{
	uint32_t unclaimed = 0;

	for (size_t i = 0; i < g->nr; i++) {
		const struct gpu_track *d = g->device[i];
		uint32_t bit = UINT32_C(1) << MIN(i, (size_t)GPU_SLOTS - 1);

		if (d->parent >= 0 || !d->had_values)
			continue;
		k->slots |= is_of_job(d) ? bit : 0;
		unclaimed |= strcmp(meta_text(&d->about, "job"), "no") ? bit : 0;
		k->metered |= d->course[COURSE_ENERGY].grown > 0 ? bit : 0;
	}
	k->slots = k->slots ? k->slots : unclaimed;
}

static void know(const struct phase_reading *r, struct phase_known *k)
{
	const struct node_totals *totals = ledger_totals(r->ledger);
	const struct counters *counters = ledger_counters(r->ledger);

	*k = (struct phase_known){.used = r->used_valid,
		.nr_clocks = r->cause[CAUSE_CLOCK].nr_who + r->cause[CAUSE_CLOCK].more_who};
	for (unsigned i = 0; i < NR_TOTALS; i++)
		k->totals |= (uint32_t)totals->growth[i].any << i;
	for (unsigned i = 0; i < NR_CAUSES; i++)
		k->causes |= (uint32_t)r->cause[i].any << i;
	for (unsigned i = 0; i < nr_events(counters); i++) {
		k->events |= (uint32_t)counters->event[i].count.any << i;
		k->whole_events |= (uint32_t)(counters->event[i].unit == UNIT_COUNT) << i;
	}
	know_gpus(ledger_gpus(r->ledger), k);
}

static int name_events(const struct phase_reading *r, struct phases *p)
{
	const struct counters *counters = ledger_counters(r->ledger);

	for (unsigned i = 0; i < nr_events(counters); i++) {
		p->event[i] = strdup(counters->event[i].metric);
		if (!p->event[i])
			return -ENOMEM;
		p->nr_events++;
	}
	return 0;
}

int phase_reading_finish(struct phase_reading *r, struct phases **ret)
{
	struct phase_known k;
	struct phases *p;
	int known = read_out(r);

	*ret = NULL;
	if (known < 0 || (!r->nr_folds && !r->ignored))
		return known;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	know(r, &k);
	p->left_out = r->left_out;
	p->ignored = r->ignored;
	p->phase = calloc(r->nr_folds + 1, sizeof(*p->phase));
	p->repetition = calloc(r->nr_spans + 1, sizeof(*p->repetition));
	known = p->phase && p->repetition ? name_events(r, p) : -ENOMEM;
	for (size_t i = 0; i < r->nr_folds && known >= 0; i++)
		known = make_phase(&r->fold[i], r->offset_ns, &k, &p->phase[p->nr++]);
	for (size_t i = 0; i < r->nr_spans && known >= 0; i++)
		make_repetition(&r->span[i], r->offset_ns, &k, &p->repetition[p->nr_repetitions++]);
	if (known >= 0)
		known = phases_settle(p);
	if (known < 0) {
		phases_free(p);
		return known;
	}
	*ret = p;
	return 0;
}

struct phase_reading *phase_reading_free(struct phase_reading *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->nr_edges; i++)
		free(r->edge[i].name);
	for (unsigned i = 0; i < r->nr_open; i++)
		open_free(r->open[i]);
	for (size_t i = 0; i < r->nr_folds; i++) {
		free(r->fold[i].name);
		free(r->fold[i].key);
	}
	for (size_t i = 0; i < r->nr_spans; i++)
		free(r->span[i].name);
	for (unsigned i = 0; i < NR_CAUSES; i++)
		growth_release(&r->cause[i]);
	idmap_release(&r->by_pid);
	free(r->sender);
	free(r->edge);
	free(r->tick);
	free(r->fold);
	free(r->span);
	free(r);
	return NULL;
}
