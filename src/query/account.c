/* The tree's use of anything at time t is
 *
 *	T(t) = sum over the live processes of (own + waited-for children's) + what ended without a living heir
 *
 * and does not depend on anybody having been sampled in time: what a process used passes at its death to the
 * parent that waits for it, or to us. A process's io counters hold its waited-for children's already.
 *
 * Processes are read one after the other, so T can be wrong for one tick when a child dies in the middle:
 *read before its parent and reaped in between, it is counted twice; read after, not at all. Looking one tick
 *ahead settles both: T'(k) = max(T'(k-1), min(T(k), T(k+1))). So a point is given when the tick after it was
 *read.
 *
 * Where a control group was made for the job, the kernel's own total is taken for CPU time.
 *
 * Rejected: adding up rates of processes. It loses what happens between a process's last sample and its end,
 * which for a compiler run is most of it. */
#include "query/account.h"

#include "query/living.h"

#include <stdio.h>
#include <string.h>

enum single { /* values of which a recording has one: of the tree and of ourselves */
	ONE_PROCESSES,
	ONE_UNSAMPLED,
	ONE_UNKNOWN,
	ONE_MAX_RSS,
	ONE_DROPPED,
	ONE_CGROUP_USER,
	ONE_CGROUP_SYSTEM,
	ONE_CGROUP_CPU,
	ONE_CGROUP_PEAK,
	ONE_SELF_CPU,
	ONE_SELF_RSS,
	ONE_MISSED,
	ONE_LATE,
	ONE_SKIPPED,
	ONE_DEFERRED,
	ONE_BACKOFF,
	ONE_EVENTS_LOST,
	ONE_GONE, /* what ended: first of NR_GONE */
};

enum gone {
	GONE_USER,
	GONE_SYSTEM,
	GONE_MINOR,
	GONE_MAJOR,
	GONE_VOLUNTARY,
	GONE_INVOLUNTARY,
	GONE_READ_CHARS,
	GONE_WRITE_CHARS,
	GONE_READ_CALLS,
	GONE_WRITE_CALLS,
	GONE_READ_BYTES,
	GONE_WRITE_BYTES,
	NR_GONE
};

#define NR_SINGLES (ONE_GONE + NR_GONE)

/* clang-format off */
static const char *const single_metric[NR_SINGLES] = {
	[ONE_PROCESSES] = "tree.processes",
	[ONE_UNSAMPLED] = "tree.unsampled",
	[ONE_UNKNOWN] = "tree.unknown",
	[ONE_MAX_RSS] = "tree.gone.max_rss",
	[ONE_DROPPED] = "tree.dropped",
	[ONE_CGROUP_USER] = "tree.cgroup.user",
	[ONE_CGROUP_SYSTEM] = "tree.cgroup.system",
	[ONE_CGROUP_CPU] = "tree.cgroup.cpu",
	[ONE_CGROUP_PEAK] = "tree.cgroup.memory_peak",
	[ONE_SELF_CPU] = "self.cpu",
	[ONE_SELF_RSS] = "self.rss",
	[ONE_MISSED] = "self.ticks.missed",
	[ONE_LATE] = "self.ticks.late",
	[ONE_SKIPPED] = "self.ticks.skipped",
	[ONE_DEFERRED] = "self.smaps.deferred",
	[ONE_BACKOFF] = "self.backoff",
	[ONE_EVENTS_LOST] = "self.events_lost",
	[ONE_GONE + GONE_USER] = "tree.gone.user",
	[ONE_GONE + GONE_SYSTEM] = "tree.gone.system",
	[ONE_GONE + GONE_MINOR] = "tree.gone.minor_faults",
	[ONE_GONE + GONE_MAJOR] = "tree.gone.major_faults",
	[ONE_GONE + GONE_VOLUNTARY] = "tree.gone.voluntary",
	[ONE_GONE + GONE_INVOLUNTARY] = "tree.gone.involuntary",
	[ONE_GONE + GONE_READ_CHARS] = "tree.gone.read_chars",
	[ONE_GONE + GONE_WRITE_CHARS] = "tree.gone.write_chars",
	[ONE_GONE + GONE_READ_CALLS] = "tree.gone.read_calls",
	[ONE_GONE + GONE_WRITE_CALLS] = "tree.gone.write_calls",
	[ONE_GONE + GONE_READ_BYTES] = "tree.gone.read_bytes",
	[ONE_GONE + GONE_WRITE_BYTES] = "tree.gone.write_bytes",
};

#define P(x) (UINT32_C(1) << PART_##x)
#define G(x) (UINT32_C(1) << GONE_##x)

/* Which parts of the living and of the gone make up an amount. */
static const struct {
	uint32_t part, gone;
	unsigned own; /* the part without which it is not known */
} recipe[NR_USED] = {
	[USED_CPU]         = {P(CPU) | P(CHILD_USER) | P(CHILD_SYSTEM), G(USER) | G(SYSTEM), PART_CPU},
	[USED_USER]        = {P(USER) | P(CHILD_USER),       G(USER),        PART_USER},
	[USED_SYSTEM]      = {P(SYSTEM) | P(CHILD_SYSTEM),   G(SYSTEM),      PART_SYSTEM},
	[USED_MINOR]       = {P(MINOR) | P(CHILD_MINOR),     G(MINOR),       PART_MINOR},
	[USED_MAJOR]       = {P(MAJOR) | P(CHILD_MAJOR),     G(MAJOR),       PART_MAJOR},
	[USED_VOLUNTARY]   = {P(VOLUNTARY),                  G(VOLUNTARY),   PART_VOLUNTARY},
	[USED_INVOLUNTARY] = {P(INVOLUNTARY),                G(INVOLUNTARY), PART_INVOLUNTARY},
	[USED_READ_CHARS]  = {P(READ_CHARS),                 G(READ_CHARS),  PART_READ_CHARS},
	[USED_WRITE_CHARS] = {P(WRITE_CHARS),                G(WRITE_CHARS), PART_WRITE_CHARS},
	[USED_READ_CALLS]  = {P(READ_CALLS),                 G(READ_CALLS),  PART_READ_CALLS},
	[USED_WRITE_CALLS] = {P(WRITE_CALLS),                G(WRITE_CALLS), PART_WRITE_CALLS},
	[USED_READ_BYTES]  = {P(READ_BYTES),                 G(READ_BYTES),  PART_READ_BYTES},
	[USED_WRITE_BYTES] = {P(WRITE_BYTES),                G(WRITE_BYTES), PART_WRITE_BYTES},
};
#undef P
#undef G

static const unsigned level_column[NR_LEVELS] = {
	[LEVEL_RSS] = COL_RSS,
	[LEVEL_VMS] = COL_VMS,
	[LEVEL_SWAP] = COL_SWAP,
	[LEVEL_PSS] = COL_PSS,
	[LEVEL_USS] = COL_PRIVATE_DIRTY,
	[LEVEL_THREADS] = COL_THREADS,
	[LEVEL_FDS] = COL_FDS,
	[LEVEL_PROCESSES] = COL_RSS,
	[LEVEL_PSS_ESTIMATED] = COL_PSS,
	[LEVEL_USS_ESTIMATED] = COL_PRIVATE_DIRTY,
};
/* clang-format on */

struct account {
	struct store_reader *reader;
	struct meta meta, ending, why; /* why: by metric, as told while recording */
	struct living living;
	struct column single_column[NR_SINGLES];
	int64_t single[NR_SINGLES], single_offset[NR_SINGLES]; /* last value; what falls added up to */
	uint64_t single_seen;				       /* mask */
	struct account_facts facts;
	int64_t base[NR_USED]; /* used before the recording began */
	struct point waiting;  /* read, not yet given */
	bool has_waiting, gap, ended;
	int64_t given[NR_USED]; /* of the last point given */
	uint32_t given_valid;
};

int account_open(const char *path, struct account **ret)
{
	struct account *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	living_init(&a->living);
	for (unsigned i = 0; i < NR_SINGLES; i++)
		a->single_column[i].col = -1;
	r = store_open(path, &a->reader);
	if (r < 0) {
		free(a);
		return r;
	}
	*ret = a;
	return 0;
}

struct account *account_close(struct account *a)
{
	if (!a)
		return NULL;
	store_close(a->reader);
	living_release(&a->living);
	meta_release(&a->meta);
	meta_release(&a->ending);
	meta_release(&a->why);
	free(a);
	return NULL;
}

/* ---- values of which there is one ---- */

static bool has_single(const struct account *a, unsigned which)
{
	return a->single_seen >> which & 1;
}

static int64_t single_or(const struct account *a, unsigned which, int64_t otherwise)
{
	return has_single(a, which) ? a->single[which] : otherwise;
}

static bool single_read(struct account *a, unsigned which, int64_t *ret)
{
	const struct column *c = &a->single_column[which];
	struct table *t = c->col < 0 ? NULL : store_reader_table(a->reader, (uint32_t)c->set);

	for (uint32_t row = 0; t && row < t->nr_rows; row++)
		if (t->id[row] != ROW_FREE && t->valid[row] >> c->col & 1) {
			*ret = column_value(c, table_row(t, row)[c->col]);
			return true;
		}
	return false;
}

static void singles_read(struct account *a)
{
	for (unsigned i = 0; i < NR_SINGLES; i++) {
		int64_t v;

		if (!single_read(a, i, &v))
			continue;
		if (has_single(a, i) && v < a->single[i])
			a->single_offset[i] =
				(int64_t)((uint64_t)a->single_offset[i] + (uint64_t)(a->single[i] - v));
		a->single[i] = v;
		a->single_seen |= UINT64_C(1) << i;
	}
}

/* ---- points ---- */

static bool used_now(const struct account *a, unsigned used, int64_t *ret)
{
	const struct living *l = &a->living;
	uint64_t sum = 0;

	/* No process was ever read: only when none was sampled at all do the ended ones tell everything. */
	if (l->part_seen && !(l->part_seen >> recipe[used].own & 1))
		return false;
	for (unsigned i = 0; i < NR_GONE; i++) {
		if (!(recipe[used].gone >> i & 1))
			continue;
		if (!has_single(a, ONE_GONE + i))
			return false;
		sum += (uint64_t)a->single[ONE_GONE + i] + (uint64_t)a->single_offset[ONE_GONE + i];
	}
	for (unsigned i = 0; i < NR_PARTS; i++)
		if (recipe[used].part >> i & 1)
			sum += (uint64_t)l->part[i];
	*ret = (int64_t)sum;
	return true;
}

/* The kernel's own total where there is one. */
static bool cgroup_now(const struct account *a, unsigned used, int64_t *ret)
{
	static const unsigned from[] = {[USED_CPU] = ONE_CGROUP_CPU,
		[USED_USER] = ONE_CGROUP_USER,
		[USED_SYSTEM] = ONE_CGROUP_SYSTEM};

	if (used >= ARRAY_SIZE(from) || !has_single(a, ONE_CGROUP_CPU) || !has_single(a, from[used]))
		return false;
	*ret = (int64_t)((uint64_t)a->single[from[used]] + (uint64_t)a->single_offset[from[used]]);
	return true;
}

static void point_levels(struct account *a, struct point *p)
{
	const struct living *l = &a->living;
	uint64_t alive = MAX((uint64_t)l->nr_bound, (uint64_t)MAX(single_or(a, ONE_PROCESSES, 0), 0));

	for (unsigned i = 0; i < NR_LEVELS; i++) {
		/* With nobody alive any more it is zero; with somebody alive who cannot be read it is not
		 * known. */
		if (!l->level_nr[i] && (l->nr_bound || !(l->level_seen >> i & 1)))
			continue;
		p->level[i] = l->level[i];
		p->level_valid |= UINT32_C(1) << i;
	}
	if (l->set >= 0 || has_single(a, ONE_PROCESSES)) {
		p->level[LEVEL_PROCESSES] = (int64_t)alive;
		p->level_valid |= UINT32_C(1) << LEVEL_PROCESSES;
		a->facts.peak_processes = MAX(a->facts.peak_processes, alive);
	}
}

static void point_make(struct account *a, int64_t time_ns, struct point *ret)
{
	bool first = !a->facts.ticks;

	*ret = (struct point){.time_ns = time_ns, .first = first, .gap = a->gap};
	a->gap = false;
	if (a->living.set >= 0)
		living_tick(&a->living, store_reader_table(a->reader, (uint32_t)a->living.set));
	singles_read(a);
	for (unsigned i = 0; i < NR_USED; i++) {
		int64_t v;

		if (!cgroup_now(a, i, &v) && !used_now(a, i, &v))
			continue;
		if (first && a->facts.attached)
			a->base[i] = v;
		ret->used[i] = (int64_t)((uint64_t)v - (uint64_t)a->base[i]);
		ret->used_valid |= UINT32_C(1) << i;
	}
	point_levels(a, ret);
	if (first)
		living_start(&a->living, a->facts.attached);
	a->facts.ticks++;
}

/* The waiting point as it is to be given, in the light of the one after it (NULL: there is none). */
static void point_settle(struct account *a, const struct point *next, struct point *ret)
{
	struct point *p = &a->waiting;

	for (unsigned i = 0; i < NR_USED; i++) {
		uint32_t bit = UINT32_C(1) << i;

		if (!(p->used_valid & bit)) {
			/* What was used stays used. */
			p->used[i] = a->given[i];
			p->used_valid |= a->given_valid & bit;
			continue;
		}
		if (next && next->used_valid & bit)
			p->used[i] = MIN(p->used[i], next->used[i]);
		if (a->given_valid & bit)
			p->used[i] = MAX(p->used[i], a->given[i]);
		a->given[i] = p->used[i];
		a->given_valid |= bit;
	}
	*ret = *p;
}

/* ---- records ---- */

static void on_schema(struct account *a)
{
	const struct schema *schema = store_reader_schema(a->reader);

	living_bind(&a->living, schema);
	for (unsigned i = 0; i < NR_SINGLES; i++)
		a->single_column[i] = column_find(schema, single_metric[i]);
}

static bool pair_is(const struct pair *pair, const char *text)
{
	return pair && pair->len == strlen(text) && !memcmp(pair->value, text, pair->len);
}

static void on_gone(struct account *a, const struct store_record *record)
{
	const struct pair *how = pairs_find(record->pairs, "how");

	/* Reaped by us, by a living member, or told by the kernel with its account: else nobody saw the end.
	 */
	if (!pair_is(how, "reaped") && !pair_is(how, "exit-record") &&
		!living_has_parent(&a->living, record->id))
		a->facts.only_sampled++;
	living_gone(&a->living, record->id, record->pairs);
}

/* A metric turned out to be out of reach after the schema was written. */
static int on_unavailable(struct account *a, const struct pairs *pairs)
{
	const struct pair *metric = pairs_find(pairs, "metric"), *why = pairs_find(pairs, "why"), *remedy;
	struct pair memory;
	struct pairs reason;
	char name[64], text[1], whole[640];

	if (!metric || !why || !metric->len || metric->len >= sizeof(name))
		return 0;
	memcpy(name, metric->value, metric->len);
	name[metric->len] = 0;
	remedy = pairs_find(pairs, "remedy");
	snprintf(whole, sizeof(whole), "%.*s%s%.*s", (int)MIN(why->len, 300), why->value, remedy ? ": " : "",
		remedy ? (int)MIN(remedy->len, 300) : 0, remedy ? remedy->value : "");
	pairs_init(&reason, &memory, 1, text, sizeof(text));
	pairs_str(&reason, name, whole);
	return meta_merge(&a->why, &reason) == -ENOMEM ? -ENOMEM : 0;
}

static int on_event(struct account *a, const struct store_record *record)
{
	a->facts.clock_steps += !strcmp(record->kind, "clock");
	a->facts.stops += !strcmp(record->kind, "stopped");
	return strcmp(record->kind, "unavailable") ? 0 : on_unavailable(a, record->pairs);
}

static int on_record(struct account *a, const struct store_record *record)
{
	bool process = a->living.set >= 0 && record->set == (uint32_t)a->living.set;

	switch (record->type) {
	case STORE_META: {
		int r = meta_merge(&a->meta, record->pairs);

		a->facts.attached = !strcmp(meta_text(&a->meta, "mode"), "attach");
		return r == -ENOMEM ? r : 0;
	}
	case STORE_SCHEMA:
		on_schema(a);
		return 0;
	case STORE_INSTANCE:
		return process ? living_join(&a->living, record->row, record->id, record->pairs) : 0;
	case STORE_GONE:
		if (process)
			on_gone(a, record);
		return 0;
	case STORE_EVENT:
		return on_event(a, record);
	case STORE_LOST:
		living_lost(&a->living);
		a->gap = true;
		return 0;
	case STORE_SUMMARY:
		return meta_merge(&a->ending, record->pairs) == -ENOMEM ? -ENOMEM : 0;
	default:
		return 0;
	}
}

static int64_t ending_or(const struct account *a, const char *key, int64_t otherwise)
{
	meta_num(&a->ending, key, &otherwise);
	return otherwise;
}

static void account_finish(struct account *a)
{
	struct account_facts *f = &a->facts;
	struct store_health health;

	if (a->ended)
		return;
	a->ended = true;
	store_health(a->reader, &health);
	f->unfinished = (uint64_t)MAX(ending_or(a, "unfinished", a->living.nr_bound), 0);
	living_finish(&a->living);
	f->complete = health.complete;
	f->lost_bytes = health.lost_bytes;
	f->lost_places = health.damaged;
	f->tail_bytes = health.tail_bytes;
	f->seen = a->living.seen;
	f->unsampled = single_or(a, ONE_UNSAMPLED, -1);
	f->unknown = single_or(a, ONE_UNKNOWN, -1);
	f->observed_cpu_ns = a->living.observed_cpu_ns;
	f->max_hwm_bytes = MAX(a->living.max_hwm_bytes, single_or(a, ONE_MAX_RSS, -1));
	if (f->max_hwm_bytes >= 0)
		f->max_hwm_bytes = MAX(f->max_hwm_bytes, a->living.max_rss_bytes);
	f->cgroup_peak_bytes = single_or(a, ONE_CGROUP_PEAK, -1);
	f->self_cpu_ns = ending_or(a, "self_cpu_ns", single_or(a, ONE_SELF_CPU, -1));
	f->missed = ending_or(a, "missed", single_or(a, ONE_MISSED, -1));
	f->late = ending_or(a, "late", single_or(a, ONE_LATE, -1));
	f->skipped = ending_or(a, "skipped", single_or(a, ONE_SKIPPED, -1));
	f->deferred = single_or(a, ONE_DEFERRED, -1);
	f->events_lost = single_or(a, ONE_EVENTS_LOST, -1);
	f->dropped_ns = single_or(a, ONE_DROPPED, 0);
	f->sigchld_ignored = a->living.sigchld_ignored;
	f->io_unread = a->living.io_unread;
	f->pss_reads = a->living.pss_reads;
	f->has_cgroup = has_single(a, ONE_CGROUP_CPU);
	int64_t kib = ending_or(a, "self_peak_rss_kib", -1);
	f->self_rss_bytes = MAX(f->self_rss_bytes, kib > 0 && kib < INT64_MAX / 1024 ? kib * 1024 : -1);
}

/* Takes the tick in. True when that made the waiting point ready. */
static bool on_tick(struct account *a, int64_t time_ns, struct point *ret)
{
	struct point next;
	bool ready = a->has_waiting;

	point_make(a, time_ns, &next);
	a->facts.self_rss_bytes = MAX(a->facts.self_rss_bytes, single_or(a, ONE_SELF_RSS, -1));
	a->facts.backoff = MAX(a->facts.backoff, single_or(a, ONE_BACKOFF, -1));
	if (ready)
		point_settle(a, &next, ret);
	a->waiting = next;
	a->has_waiting = true;
	return ready;
}

int account_next(struct account *a, struct point *ret)
{
	struct store_record record;
	int r;

	while (!a->ended && (r = store_next(a->reader, &record)) != 0) {
		if (r < 0)
			return r;
		a->facts.last_ns = MAX(a->facts.last_ns, record.time_ns);
		if (record.type == STORE_TICK) {
			if (on_tick(a, record.time_ns, ret))
				return 1;
			continue;
		}
		r = on_record(a, &record);
		if (r < 0)
			return r;
	}
	account_finish(a);
	if (!a->has_waiting)
		return 0;
	point_settle(a, NULL, ret);
	a->has_waiting = false;
	return 1;
}

/* ---- answers ---- */

const struct account_facts *account_facts(const struct account *a)
{
	return &a->facts;
}

static bool has_helper(const struct account *a, const char *name)
{
	return strstr(meta_text(&a->meta, "helpers"), name) != NULL;
}

bool account_cpu_is_lower_bound(const struct account *a)
{
	if (a->facts.has_cgroup || has_helper(a, "taskstats"))
		return false;
	return a->facts.dropped_ns > 0 || a->facts.sigchld_ignored > 0;
}

enum cpu_source account_cpu_source(const struct account *a)
{
	if (a->facts.has_cgroup)
		return CPU_CGROUP;
	if (!(a->given_valid >> USED_CPU & 1))
		return CPU_UNKNOWN;
	/* In a tree that we started everyone is waited for by a member or by us. Of an attached one, the
	 * roots are waited for by strangers, and orphans go to init. */
	if (account_cpu_is_lower_bound(a) || (a->facts.attached && a->facts.only_sampled))
		return CPU_SAMPLES;
	return CPU_RUSAGE;
}

const struct meta *account_meta(const struct account *a)
{
	return &a->meta;
}

const struct meta *account_ending(const struct account *a)
{
	return &a->ending;
}

const struct schema *account_schema(const struct account *a)
{
	return store_reader_schema(a->reader);
}

const char *account_why(const struct account *a, const char *metric)
{
	const struct schema *schema = account_schema(a);
	uint32_t set, col;

	if (!schema)
		return "the recording ends before it says what it holds";
	if (!schema_find(schema, metric, &set, &col))
		return "not recorded";
	if (schema->set[set].metric[col].why)
		return schema->set[set].metric[col].why;
	if (meta_find(&a->why, metric))
		return meta_text(&a->why, metric);
	return a->facts.ticks ? "could not be read" : "no sample was taken";
}

const char *used_metric(enum used used)
{
	return process_column_metric(recipe[used].own);
}

const char *level_metric(enum level level)
{
	return process_column_metric(level_column[level]);
}
