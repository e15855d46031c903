/* An observer of the walk over a recording: live_processes.c keeps the processes and the sums over them,
 * accounts.c makes amounts of the sums and of what ended (its comment has the arithmetic), totals.c adds up
 * the counters of the node.
 *
 * Where a control group was made for the job, the kernel's own total is taken for CPU time.
 *
 * Rejected: adding up rates of processes. It loses what happens between a process's last sample and its end,
 * which for a compiler run is most of it. */
#include "query/ledger.h"

#include "base/str.h"
#include "query/counters.h"
#include "query/event_words.h"
#include "query/gpus.h"
#include "query/accounts.h"
#include "query/totals.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum single { /* values of which a recording has one: of the tree and of ourselves */
	ONE_UNKNOWN,
	ONE_DROPPED,
	ONE_ASSUMED,
	ONE_ESCAPED,
	ONE_OUTSIDE,
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
	ONE_TURNS,
	ONE_CLOCK_TURNS,
	ONE_BACKOFF,
	ONE_EVENTS_LOST,
	ONE_RUNNING,
	NR_SINGLES
};

/* clang-format off */
static const char *const single_metric[NR_SINGLES] = {
	[ONE_UNKNOWN] = "tree.unknown",
	[ONE_DROPPED] = "tree.dropped",
	[ONE_ASSUMED] = "tree.assumed",
	[ONE_ESCAPED] = "tree.escaped",
	[ONE_OUTSIDE] = "tree.outside",
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
	[ONE_TURNS] = "self.reads.deferred",
	[ONE_CLOCK_TURNS] = "self.clocks.deferred",
	[ONE_BACKOFF] = "self.backoff",
	[ONE_EVENTS_LOST] = "self.events_lost",
	[ONE_RUNNING] = "load.running",
};
/* clang-format on */

struct ledger {
	struct walk_observer observer;
	struct walk *walk;
	struct meta ending, why; /* why: by metric, as told while recording */
	struct live_processes live;
	struct cell_column single_column[NR_SINGLES];
	struct counter_track single[NR_SINGLES];
	uint64_t single_seen; /* mask */
	struct ledger_facts facts;
	struct accounts accounts;
	struct node_totals totals;
	struct counters counters;
	struct gpus gpus;
	struct point waiting, ready; /* read, not yet to be given; to be given now */
	bool has_waiting, is_ready, ended;
	/* The job left the control group made for it; what its processes add up to is more than that has. */
	bool left, by_processes;
};

static int observe(struct walk_observer *o, const struct store_record *record);

int ledger_open(const char *path, struct ledger **ret)
{
	struct ledger *a = calloc(1, sizeof(*a));
	int r = a ? walk_open_plain(path, &a->walk) : -ENOMEM;

	if (r < 0) {
		free(a);
		return r;
	}
	a->observer.record = observe;
	walk_observe(a->walk, &a->observer);
	live_init(&a->live, a->walk);
	accounts_init(&a->accounts);
	totals_init(&a->totals);
	counters_init(&a->counters);
	gpus_init(&a->gpus);
	for (unsigned i = 0; i < NR_SINGLES; i++)
		a->single_column[i].col = -1;
	a->facts.self_rss_bytes = a->facts.backoff = a->facts.most_running = -1;
	*ret = a;
	return 0;
}

struct ledger *ledger_close(struct ledger *a)
{
	if (!a)
		return NULL;
	live_release(&a->live);
	accounts_release(&a->accounts);
	totals_release(&a->totals);
	counters_release(&a->counters);
	gpus_release(&a->gpus);
	meta_release(&a->ending);
	meta_release(&a->why);
	for (unsigned i = 0; i < a->facts.nr_left_out; i++)
		free(a->facts.left_out[i]);
	walk_close(a->walk);
	free(a);
	return NULL;
}

/* ---- values of which there is one ---- */

static bool has_single(const struct ledger *a, unsigned which)
{
	return a->single_seen >> which & 1;
}

static int64_t single_or(const struct ledger *a, unsigned which, int64_t otherwise)
{
	return has_single(a, which) ? a->single[which].last : otherwise;
}

static bool single_read(struct ledger *a, unsigned which, int64_t *ret)
{
	const struct cell_column *c = &a->single_column[which];
	struct table *t = c->col < 0 ? NULL : walk_table(a->walk, (uint32_t)c->set);

	for (uint32_t row = 0; t && row < t->nr_rows; row++)
		if (t->id[row] != ROW_FREE && t->valid[row] >> c->col & 1) {
			*ret = column_value(c, table_row(t, row)[c->col]);
			return true;
		}
	return false;
}

static void singles_read(struct ledger *a)
{
	for (unsigned i = 0; i < NR_SINGLES; i++) {
		int64_t v;

		if (!single_read(a, i, &v))
			continue;
		counter_take(&a->single[i], !has_single(a, i), v);
		a->single_seen |= UINT64_C(1) << i;
	}
}

/* ---- points ---- */

/* The kernel's own total of what `run` started, where there is one. */
static bool cgroup_now(const struct ledger *a, unsigned used, int64_t *ret)
{
	static const unsigned from[] = {[USED_CPU] = ONE_CGROUP_CPU,
		[USED_USER] = ONE_CGROUP_USER,
		[USED_SYSTEM] = ONE_CGROUP_SYSTEM};

	if (used >= ARRAY_SIZE(from) || !has_single(a, ONE_CGROUP_CPU) || !has_single(a, from[used]))
		return false;
	*ret = a->single[from[used]].sum;
	return true;
}

/* Of each process, while it lived. */
static bool is_read(const struct ledger *a, unsigned used)
{
	return a->live.at.column[used].col >= 0;
}

/* Where the processes themselves were not recorded, only those that we wait for tell what they used when they
 * end, and of bytes and calls not even they. */
static bool can_tell(const struct ledger *a, unsigned line, unsigned used)
{
	return is_read(a, used) ||
		(!a->facts.attached && line == (unsigned)a->accounts.command &&
			quantity[used].children != CHILDREN_WITHIN);
}

/* Processes that are outside the control group made for the job are seen when they are looked at; others show
 * in the sums. */
static void look_who_left(struct ledger *a)
{
	unsigned command = (unsigned)a->accounts.command;
	int64_t counted, added;

	a->left = single_or(a, ONE_OUTSIDE, 0) > 0; /* then nothing more is read of the group */
	a->by_processes = a->left;
	if (!cgroup_now(a, USED_CPU, &counted))
		return;
	if (!account_used(&a->accounts, &a->live, command, USED_CPU, &added))
		added = 0;
	a->left |= group_lacks_cpu(counted, added, !a->live.line[command].nr);
	a->by_processes = a->left && added > counted;
}

/* What the kernel counted replaces what the processes of the command add up to, in its own line and in the
 * whole, which may hold others beside it. */
static bool used_now(const struct ledger *a, unsigned line, unsigned used, int64_t *ret)
{
	unsigned command = (unsigned)a->accounts.command;
	int64_t counted, added, all;

	if (!can_tell(a, line, used))
		return false;
	if ((line && line != command) || a->by_processes || !cgroup_now(a, used, &counted))
		return (is_read(a, used) || !a->live.line[line].nr) &&
			account_used(&a->accounts, &a->live, line, used, ret);
	*ret = counted;
	if (!line && command && account_used(&a->accounts, &a->live, command, used, &added) &&
		account_used(&a->accounts, &a->live, 0, used, &all))
		*ret = wrap_add(wrap_sub(all, added), counted);
	return true;
}

static void account_make(struct ledger *a, unsigned line, bool first, struct amounts *ret)
{
	*ret = (struct amounts){0};
	for (unsigned i = 0; i < NR_USED; i++) {
		int64_t *base = &a->accounts.line[line].base[i], v;

		if (!used_now(a, line, i, &v))
			continue;
		/* Who ended before the first sample had lived before we came; of the living, each says
		 * itself. */
		if (first && a->facts.attached)
			*base = account_gone(&a->accounts, line, i);
		ret->used[i] = wrap_sub(v, *base);
		ret->used_valid |= UINT32_C(1) << i;
	}
	account_levels(&a->accounts, &a->live, line, ret);
	ret->has_between = a->live.at.is_read;
	ret->between = a->live.census.most[line];
}

/* The tick makes the waiting point ready, and waits itself. */
static int on_tick(struct ledger *a)
{
	bool first = !a->facts.ticks;
	unsigned nr = 1 + a->walk->group.nr;
	int r = totals_tick(&a->totals, a->walk);

	if (r >= 0)
		r = counters_tick(&a->counters, a->walk);
	live_tick(&a->live);
	gpus_tick(&a->gpus, &a->live);
	accounts_read(&a->accounts, a->walk);
	singles_read(a);
	look_who_left(a);
	a->is_ready = a->has_waiting;
	assert(nr >= a->waiting.nr_lines && nr <= ACCOUNTS_MOST);
	for (unsigned i = 0; i < nr; i++) {
		struct amounts next;

		account_make(a, i, first, &next);
		if (a->is_ready)
			account_settle(&a->accounts, i, &next);
		a->accounts.waiting[i] = next;
	}
	if (a->is_ready)
		accounts_share(&a->accounts, &a->live);
	a->facts.ticks++;
	a->facts.self_rss_bytes = MAX(a->facts.self_rss_bytes, single_or(a, ONE_SELF_RSS, -1));
	a->facts.backoff = MAX(a->facts.backoff, single_or(a, ONE_BACKOFF, -1));
	a->facts.most_running = MAX(a->facts.most_running, single_or(a, ONE_RUNNING, -1));
	a->ready = a->waiting;
	a->waiting = (struct point){
		.time_ns = a->walk->time_ns, .gap = a->walk->gap, .nr_lines = nr, .line = a->accounts.given};
	a->has_waiting = true;
	return r;
}

/* ---- records ---- */

static int on_schema(struct ledger *a)
{
	const struct schema *schema = a->walk->schema;

	live_bind(&a->live, schema);
	accounts_bind(&a->accounts, schema);
	totals_bind(&a->totals, schema);
	for (unsigned i = 0; i < NR_SINGLES; i++)
		a->single_column[i] = column_find(schema, single_metric[i]);
	gpus_bind(&a->gpus, schema);
	return counters_bind(&a->counters, schema);
}

/* A metric turned out to be out of reach after the schema was written. */
static int on_unavailable(struct ledger *a, const struct pairs *pairs)
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
	if (str_starts(name, "gpu.") && gpus_told(&a->gpus, whole) < 0)
		return -ENOMEM;
	return meta_merge(&a->why, &reason) == -ENOMEM ? -ENOMEM : 0;
}

static void on_gap(struct ledger *a, const struct pairs *pairs)
{
	int64_t ticks = 0;

	pairs_get_num(pairs, "ticks", &ticks);
	a->facts.gaps++;
	a->facts.gap_error = gap_error_of(pairs);
	a->facts.gap_ticks += (uint64_t)MAX(ticks, 0);
}

static int on_left_out(struct ledger *a, const struct store_record *record)
{
	struct ledger_facts *f = &a->facts;
	struct buf words;

	if (f->nr_left_out == LEFT_OUT_MOST)
		return 0;
	buf_init(&words, 8192);
	event_words(&words, record->kind, record->pairs);
	f->left_out[f->nr_left_out] = words.err ? NULL : strdup((const char *)words.data);
	buf_release(&words);
	if (!f->left_out[f->nr_left_out])
		return -ENOMEM;
	f->nr_left_out++;
	return 0;
}

static int on_event(struct ledger *a, const struct store_record *record)
{
	a->facts.clock_steps += !strcmp(record->kind, "clock");
	a->facts.stops += !strcmp(record->kind, "stopped");
	if (!strcmp(record->kind, "gap"))
		on_gap(a, record->pairs);
	if (is_left_out(record->kind))
		return on_left_out(a, record);
	return strcmp(record->kind, "unavailable") ? 0 : on_unavailable(a, record->pairs);
}

static void on_meta(struct ledger *a)
{
	a->facts.attached = !strcmp(meta_text(&a->walk->meta, "mode"), "attach");
	a->live.tells_ends = strstr(meta_text(&a->walk->meta, "helpers"), "connector") != NULL;
}

static int on_instance(struct ledger *a, const struct store_record *record)
{
	int r;

	if (live_is_of(&a->live, record))
		return live_join(&a->live, record);
	if (a->accounts.set >= 0 && record->set == (uint32_t)a->accounts.set)
		return accounts_instance(&a->accounts, a->walk, record);
	counters_instance(&a->counters, record);
	r = totals_instance(&a->totals, record);
	return r < 0 ? r : gpus_instance(&a->gpus, record);
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct ledger *a = (struct ledger *)o;

	a->facts.last_ns = MAX(a->facts.last_ns, record->time_ns);
	switch (record->type) {
	case STORE_TICK:
		return on_tick(a);
	case STORE_META:
		on_meta(a);
		return 0;
	case STORE_SCHEMA:
		return on_schema(a);
	case STORE_INSTANCE:
		return on_instance(a, record);
	case STORE_GONE:
		gpus_gone(&a->gpus, record);
		return live_is_of(&a->live, record)
			? live_gone(&a->live, record->id, record->time_ns, record->pairs)
			: 0;
	case STORE_EVENT:
		return on_event(a, record);
	case STORE_LOST:
		live_lost(&a->live);
		return 0;
	case STORE_SUMMARY:
		return meta_merge(&a->ending, record->pairs) == -ENOMEM ? -ENOMEM : 0;
	default:
		return 0;
	}
}

static int64_t ending_or(const struct ledger *a, const char *key, int64_t otherwise)
{
	meta_num(&a->ending, key, &otherwise);
	return otherwise;
}

static void ledger_finish(struct ledger *a)
{
	struct ledger_facts *f = &a->facts;
	struct store_health health;

	a->ended = true;
	store_health(a->walk->reader, &health);
	f->unfinished = (uint64_t)MAX(ending_or(a, "unfinished", a->live.line[0].nr), 0);
	f->others_hidden = ending_or(a, "others_hidden", 0) > 0;
	f->unasked = (uint64_t)MAX(ending_or(a, "unasked", 0), 0);
	live_finish(&a->live);
	f->complete = health.complete;
	f->writing = health.writing;
	f->end_missing = a->walk->gap || *meta_text(&a->ending, "write_error") || (f->gap_ticks && !f->ticks);
	f->lost_bytes = health.lost_bytes;
	f->lost_places = health.damaged;
	f->tail_bytes = health.tail_bytes;
	f->unknown = single_or(a, ONE_UNKNOWN, -1);
	f->groups_left_out = a->walk->group.left_out;
	f->cgroup_peak_bytes = single_or(a, ONE_CGROUP_PEAK, -1);
	f->self_cpu_ns = ending_or(a, "self_cpu_ns", single_or(a, ONE_SELF_CPU, -1));
	f->missed = ending_or(a, "missed", single_or(a, ONE_MISSED, -1));
	f->late = ending_or(a, "late", single_or(a, ONE_LATE, -1));
	f->skipped = ending_or(a, "skipped", single_or(a, ONE_SKIPPED, -1));
	f->deferred = single_or(a, ONE_DEFERRED, -1);
	f->turns = single_or(a, ONE_TURNS, -1);
	f->clock_turns = single_or(a, ONE_CLOCK_TURNS, -1);
	f->events_lost = single_or(a, ONE_EVENTS_LOST, -1);
	f->dropped_ns = single_or(a, ONE_DROPPED, 0);
	f->sigchld_ignored = a->live.sigchld_ignored;
	f->assumed = (uint64_t)MAX(single_or(a, ONE_ASSUMED, 0), 0);
	f->escaped = (uint64_t)MAX(single_or(a, ONE_ESCAPED, 0), 0);
	f->pss_reads = a->live.pss_reads;
	f->has_cgroup = has_single(a, ONE_CGROUP_CPU);
	int64_t kib = ending_or(a, "self_peak_rss_kib", -1);
	f->self_rss_bytes = MAX(f->self_rss_bytes, kib > 0 && kib < INT64_MAX / 1024 ? kib * 1024 : -1);
}

int ledger_next(struct ledger *a, struct point *ret)
{
	while (!a->ended) {
		int r = walk_next(a->walk);

		if (r < 0)
			return r;
		if (!r)
			ledger_finish(a);
		else if (a->is_ready) {
			*ret = a->ready;
			return 1;
		}
	}
	if (!a->has_waiting)
		return 0;
	for (unsigned i = 0; i < a->waiting.nr_lines; i++)
		account_settle(&a->accounts, i, NULL);
	accounts_share(&a->accounts, &a->live);
	*ret = a->waiting;
	a->has_waiting = false;
	return 1;
}

struct walk *ledger_walk(struct ledger *a)
{
	return a->walk;
}

struct live_processes *ledger_live(struct ledger *a)
{
	return &a->live;
}

/* ---- answers ---- */

const struct ledger_facts *ledger_facts(const struct ledger *a)
{
	return &a->facts;
}

/* Everybody in the line is the command's, of which the kernel has kept a total. */
static bool is_all_counted(const struct ledger *a, unsigned line)
{
	unsigned command = (unsigned)a->accounts.command;

	if (!a->facts.has_cgroup || a->left || (line && line != command))
		return false;
	return a->live.line[line].seen == a->live.line[command].seen;
}

static bool has_left(const struct ledger *a, unsigned line)
{
	return a->left && (!line || line == (unsigned)a->accounts.command);
}

/* Some may have lived and ended unseen: those that no member waited for, as daemons, are in no account. Of a
 * tree that we started they come to us. */
static bool may_lack_unseen(const struct ledger *a)
{
	return a->facts.attached && a->facts.unknown > 0;
}

static bool is_lower_bound(const struct ledger *a, unsigned line)
{
	const struct process_sums *sums = &a->live.line[line];
	/* Of the command that we started a member or we have it. */
	uint64_t ours = line || a->facts.attached ? 0 : a->live.line[a->accounts.command].only_sampled;

	/* The end mark has the CPU time of the whole. */
	if (a->facts.end_missing && (line || !meta_find(&a->ending, "cpu_ns")))
		return true;
	if (is_all_counted(a, line))
		return false;
	/* What strangers waited for is known as last sampled; of what escaped, or is in a part of the file
	 * that is lost, nothing is. */
	if (sums->only_sampled > ours || sums->uncounted || may_lack_unseen(a) || a->facts.escaped ||
		a->facts.lost_bytes || a->facts.lost_places)
		return true;
	return a->facts.dropped_ns > 0 || a->facts.sigchld_ignored > 0 ||
		(has_left(a, line) && !a->by_processes);
}

/* No control group counts what its processes read and write. */
static bool is_io_lower_bound(const struct ledger *a, unsigned line)
{
	const struct ledger_facts *f = &a->facts;

	return f->end_missing || may_lack_unseen(a) || a->live.line[line].io_unread ||
		a->live.line[line].uncounted || f->escaped || f->lost_bytes || f->lost_places ||
		f->dropped_ns > 0 || f->sigchld_ignored;
}

/* The largest memory of a process up to its end is known from its exit record or by waiting for it. */
static bool is_memory_lower_bound(const struct ledger *a, unsigned line)
{
	const struct ledger_facts *f = &a->facts;
	const struct process_sums *sums = &a->live.line[line];
	bool own = line && a->walk->own >> (line - 1) & 1;

	/* The end mark has the peaks of the whole, but not how well they are known. */
	if (f->end_missing && (line || f->attached || !meta_find(&a->ending, "peak_rss_bytes")))
		return true;
	if (sums->peak_unknown || f->escaped || f->lost_bytes || f->lost_places ||
		((f->attached || own) && f->unknown > 0))
		return true;
	/* It is not known of dropped children, and not yet of processes that still run. */
	return sums->peak_inherited && (f->dropped_ns > 0 || f->sigchld_ignored || f->unfinished);
}

static enum cpu_source cpu_source(const struct ledger *a, unsigned line)
{
	if (is_all_counted(a, line) || (has_left(a, line) && !a->by_processes))
		return CPU_CGROUP;
	if (!(a->accounts.given[line].used_valid >> USED_CPU & 1))
		return CPU_UNKNOWN;
	/* In a tree that we started everyone is waited for by a member or by us. Of an attached one, the
	 * roots are waited for by strangers, and orphans go to init; members of groups by those outside. */
	return is_lower_bound(a, line) ? CPU_SAMPLES : CPU_RUSAGE;
}

struct account_facts ledger_line(const struct ledger *a, unsigned line)
{
	const struct process_sums *sums = &a->live.line[line];
	const struct account *said = &a->accounts.line[line];
	int64_t gone_max = account_cell_or(said, ACCOUNT_MAX_RSS, -1); /* 0: of none that ended it is known */
	struct account_facts f = {.seen = sums->seen,
		.only_sampled = sums->only_sampled,
		.uncounted = sums->uncounted,
		.unsampled = account_cell_or(said, ACCOUNT_UNSAMPLED, -1),
		.cpu_ns = a->accounts.given[line].used_valid >> USED_CPU & 1
			? a->accounts.given[line].used[USED_CPU]
			: -1,
		.observed_cpu_ns = sums->observed_cpu_ns,
		.max_hwm_bytes = MAX(sums->max_hwm_bytes, gone_max > 0 ? gone_max : -1),
		.one_valid = sums->level_seen,
		.cpu_source = cpu_source(a, line),
		.cpu_is_lower_bound = is_lower_bound(a, line),
		.io_unread = sums->io_unread,
		.io_is_lower_bound = is_io_lower_bound(a, line),
		.peak_unknown = sums->peak_unknown,
		.memory_is_lower_bound = is_memory_lower_bound(a, line),
		.left = has_left(a, line)};

	memcpy(f.one, sums->one, sizeof(f.one));
	/* The kernel brings its mark up to date now and then only: what was seen was reached. And what it
	 * marked was there. */
	if (f.max_hwm_bytes >= 0) {
		if (f.one_valid >> LEVEL_RSS & 1)
			f.max_hwm_bytes = MAX(f.max_hwm_bytes, f.one[LEVEL_RSS]);
		f.one[LEVEL_RSS] = f.max_hwm_bytes;
		f.one_valid |= UINT32_C(1) << LEVEL_RSS;
	}
	if (!line)
		return f;
	f.name = a->walk->group.item[line - 1].name;
	f.name_len = a->walk->group.item[line - 1].len;
	f.kind = said->kind;
	f.target = said->target;
	f.own = a->walk->own >> (line - 1) & 1;
	return f;
}

const struct node_totals *ledger_totals(const struct ledger *a)
{
	return &a->totals;
}

const struct counters *ledger_counters(const struct ledger *a)
{
	return &a->counters;
}

const struct gpus *ledger_gpus(const struct ledger *a)
{
	return &a->gpus;
}

const struct schema *ledger_schema(const struct ledger *a)
{
	return a->walk->schema;
}

const struct meta *ledger_meta(const struct ledger *a)
{
	return &a->walk->meta;
}

const struct meta *ledger_ending(const struct ledger *a)
{
	return &a->ending;
}

const char *ledger_why(const struct ledger *a, const char *metric)
{
	const struct schema *schema = a->walk->schema;
	uint32_t set, col;

	if (!schema && meta_find(&a->ending, "write_error"))
		return write_error_of(meta_text(&a->ending, "write_error"))->why;
	if (!schema)
		return why_young;
	if (!schema_find(schema, metric, &set, &col))
		return meta_find(&a->walk->meta, "unread") ? why_unread : "not recorded";
	if (schema->set[set].metric[col].why)
		return schema->set[set].metric[col].why;
	if (meta_find(&a->why, metric))
		return meta_text(&a->why, metric);
	if (!a->facts.ticks)
		return "no sample was taken";
	return meta_find(&a->walk->meta, "unread") ? why_unread : "could not be read";
}

const char *ledger_told(const struct ledger *a, const char *metric)
{
	const struct meta_item *told = meta_find(&a->why, metric);

	return told ? told->value : NULL;
}

bool ledger_is_available(const struct ledger *a, const char *metric)
{
	const struct schema *schema = a->walk->schema;
	uint32_t set, col;

	return schema && schema_find(schema, metric, &set, &col) && !schema->set[set].metric[col].why &&
		!ledger_told(a, metric);
}

const char *ledger_set_why(const struct ledger *a, const char *name)
{
	const struct schema *schema = a->walk->schema;

	for (uint32_t i = 0; schema && i < schema->nr_sets; i++) {
		const struct schema_set *set = &schema->set[i];

		if (strcmp(set->name, name))
			continue;
		for (uint32_t m = 0; m < set->nr_metrics; m++)
			if (ledger_is_available(a, set->metric[m].name))
				return NULL;
		return set->nr_metrics ? ledger_why(a, set->metric[0].name) : NULL;
	}
	return NULL;
}

const char *ledger_used_why(const struct ledger *a, unsigned line, enum used used)
{
	return ledger_why(a, line && a->accounts.set < 0 ? "group.gone.user" : quantity[used].metric);
}

const char *ledger_level_why(const struct ledger *a, enum level level)
{
	return ledger_why(a, level_metric[level]);
}
