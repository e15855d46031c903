/* One sample: the job's totals at one instant, then the details of its processes, the node's collectors by
 * tier, and the budget.
 *
 * The totals are what our control group has used and the CPU clock of every member: a third of a microsecond
 * each, so that they are of one instant, which is the time of the tick. If something else ran meanwhile they
 * are not, and are taken again. A process that has ended by that instant is removed before the tick; one that
 * is found to have ended later was alive at it, and is removed after the tick.
 *
 * The details, some files of each member, follow for those whose clock has moved, as far as half an interval
 * reaches: the others have their turn first at the next tick, and their CPU time is known already. A child
 * that is waited for between the instant and the reading of its parent counts twice in this tick; readers
 * settle that by the next.
 *
 * The first tick of thousands could take seconds. Of processes that it does not reach, only the values that
 * are added up are read, and they are announced by their names; their identity and details come in the next
 * ticks, for half an interval each.
 *
 * The budget is a bucket of tokens: time passing fills it at the allowed rate, everything we spend but smaps
 * drains it, and smaps_rollup is read, the processes first whose RSS has moved most since their last
 * reading, only while the predicted cost is in the bucket. When the fast tier alone exceeds the budget and
 * the user has not asked for this very interval, ticks are taken at every second, fourth... deadline. */
#include "engine/internal.h"

#include "base/resident.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A reading of smaps that would hold up the ticks for longer than this is never made. */
#define SMAPS_MAX_NS (100 * NSEC_PER_MSEC)
#define SMAPS_FIXED_NS (10 * NSEC_PER_USEC)
/* At most this part of the budget is given to them: a prediction may be too low. */
#define FORESEEN 0.9
#define STRETCH_MAX 64
#define LAST_NS (100 * NSEC_PER_MSEC)
#define BACKOFF_MAX 16
/* Scopes' own lists are read this often; all processes are looked at this often, but for at most one part in
 * RESCAN_SHARE of our time. */
#define LIST_NS (5 * NSEC_PER_SEC)
#define RESCAN_NS (30 * NSEC_PER_SEC)
#define RESCAN_SHARE 1000
/* Totals whose reading took longer than this part of an interval are read again, at most so many times.
 * Details may take this part of an interval, and this part when they take turns. */
#define INSTANT_SHARE 64
#define INSTANT_TRIES 3
#define DETAILS_SHARE 2
#define DETAILS_LEAST 2000
/* The first tick opens everything, and takes some time anyhow. */
#define FIRST_NS (10 * NSEC_PER_MSEC)
/* With fewer processes than this the cost of their clocks is not compared with the budget. */
#define CROWD 100
/* The clocks of sleeping processes are read at least every so many ticks. A process sleeps when its clock has
 * not moved for so many. */
#define CLOCK_TURNS_MAX 16
#define TICKS_TO_REST 4

/* Of the whole recorder, the collectors' threads included, or of this thread alone. */
static int64_t own_cpu(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void include_listed(void *engine, pid_t pid, uint64_t groups)
{
	struct engine *e = engine;

	if (tree_find(&e->tree, pid) == NO_SLOT)
		groups |= scopes_parts(e->scopes, pid);
	tree_include(&e->tree, pid, groups);
}

void list_members(struct engine *e)
{
	if (!e->scopes)
		return;
	scopes_list(e->scopes, include_listed, e);
	e->list_ns = env_now(e->env, ENV_MONOTONIC) + LIST_NS;
}

/* A process can become wanted without a fork or an exec that we are told of: it changes its user, is moved to
 * another control group, is exec'ed long after its fork. So all processes are looked at from time to time,
 * but so rarely that ten thousand cost next to nothing. */
static void look_at_all(struct engine *e, int64_t now)
{
	int64_t spent;

	if (!e->rescan_ns)
		e->rescan_ns = now + RESCAN_NS;
	if (!e->tree.ask || now < e->rescan_ns)
		return;
	tree_scan(&e->tree);
	spent = env_now(e->env, ENV_MONOTONIC) - now;
	e->rescan_ns = now + MAX(RESCAN_NS, RESCAN_SHARE * spent);
}

void find_new_members(struct engine *e)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);

	events_drain(e);
	if (e->scopes && now >= e->list_ns)
		list_members(e);
	if (!e->env->live) {
		tree_scan(&e->tree);
		return;
	}
	if (!e->connector)
		tree_poll(&e->tree);
	look_at_all(e, now);
}

/* Unknown PIDs that were given out may have been the job's, if a member has waited for children or ignores
 * SIGCHLD: in the same tick, in the one before (the PIDs are looked at first, so one can be given out and
 * waited for between that and the reading of its parent) or in the next ones, if parents were not read in
 * this one.
 */
static int64_t suspects(struct engine *e)
{
	int64_t strangers = (int64_t)e->tree.strangers, late = (int64_t)e->tree.latecomers;
	bool deferred = e->feed.reads_deferred != e->deferred_last;
	int64_t held = e->unsuspected, nr = 0;

	if (e->children_grew || e->children_grew_last) {
		nr = strangers - (held ? 0 : MIN(late, strangers));
		held = MAX(held - late, 0);
		nr += e->children_grew ? held : 0;
		e->unsuspected = 0;
	} else
		e->unsuspected = strangers + (deferred ? MAX(held - late, 0) : 0);
	return nr;
}

/* Where the kernel reports every fork there is nothing to suspect. */
static void suspect_unknown(struct engine *e)
{
	int64_t nr = suspects(e);

	/* There are exit records of all of them, except where the parent was not known either. */
	if (e->taskstats && !e->feed.events_lost)
		nr = e->children_grew ? e->unknown_ends : 0;
	if (nr > 0 && e->env->live && !e->connector) {
		e->feed.unknown += nr;
		e->unknown_ends = 0;
	}
	if (e->tree.blind && !e->connector && !e->taskstats)
		e->feed.unknown = -1;
	e->children_grew_last = e->children_grew;
	e->deferred_last = e->feed.reads_deferred;
	e->children_grew = false;
	e->tree.strangers = e->tree.latecomers = 0;
	e->feed.assumed = (int64_t)e->tree.assumed;
	e->feed.escaped = (int64_t)e->tree.escaped;
}

/* Removes the members that are gone. What they used is in their parents' accounts, which are read at once. */
static void remove_missing(struct engine *e, int64_t now)
{
	uint32_t nr = e->nr_missing, nr_parents = 0;

	e->nr_missing = 0;
	/* The kernel's exit events came before we could miss them: they are read first, with their
	 * accounts. */
	if (nr)
		events_drain(e);
	while (nr--) { /* children before parents: these must still be found */
		struct member *m = &e->tree.member[e->missing[nr].slot];
		uint32_t parent = tree_find(&e->tree, m->ppid);

		if (!still_here(e, &e->missing[nr]))
			continue;
		member_depart(e, e->missing[nr].slot, "noticed");
		if (parent != NO_SLOT && (!nr_parents || e->departing[nr_parents - 1] != parent))
			e->departing[nr_parents++] = parent;
	}
	members_settle(e);
	for (uint32_t i = 0; i < nr_parents; i++) {
		struct member *m = &e->tree.member[e->departing[i]];

		if (m->bound && m->read_ns < now && tree_find(&e->tree, m->pid) == e->departing[i])
			member_sample(e, e->departing[i], now, true);
	}
}

static void read_cgroup(struct engine *e)
{
	struct cgroup_usage usage;

	if (!e->cgroup || cgroup_read(e->cgroup, &usage) < 0)
		return;
	e->feed.cgroup_memory_peak = usage.memory_peak_bytes;
	if (e->feed.outside)
		return;
	e->feed.cgroup_user_ns = usage.user_ns;
	e->feed.cgroup_system_ns = usage.system_ns;
	e->feed.cgroup_total_ns = usage.total_ns;
}

static void miss(struct engine *e, uint32_t slot)
{
	e->missing[e->nr_missing++] = (struct slot_id){slot, e->tree.member[slot].id};
}

/* It has slept for a while, and the clocks of sleeping processes are read in turns. */
static bool rests(const struct engine *e, const struct member *m)
{
	return e->clock_turns > 1 && !e->last_tick && m->bound && !m->brief && !m->owes &&
		e->taken > m->moved_tick + TICKS_TO_REST && (m->id + e->taken) % e->clock_turns;
}

static void take_clocks(struct engine *e)
{
	e->nr_missing = 0;
	tree_for_each (&e->tree, slot, after) {
		struct member *m = &e->tree.member[slot];
		int64_t before = m->clock_ns;

		if (m->awaited || rests(e, m))
			continue;
		m->clock_ns = env_cpu_clock(e->env, m->pid);
		m->clock_tick = e->taken + 1;
		if (m->clock_ns != before)
			m->moved_tick = e->taken;
		if (m->clock_ns < 0)
			miss(e, slot);
	}
}

/* A member has waited for children, and there was no event of it: children whose clock was not read in this
 * tick must not count in addition to their parent. */
static void miss_resting(struct engine *e)
{
	tree_for_each (&e->tree, slot, after)
		if (!e->tree.member[slot].awaited && rests(e, &e->tree.member[slot]) &&
			env_cpu_clock(e->env, e->tree.member[slot].pid) < 0)
			miss(e, slot);
}

/* From now on a tick reads the details of as many processes as fit into this time, and of some at least. */
static void begin_turns(struct engine *e, int64_t details_ns)
{
	if (!e->details_ns)
		engine_event(e, "turns", NULL, NULL);
	e->feed.backoff = BACKOFF_MAX;
	e->details_ns = MAX(details_ns, e->opt.interval_ns / DETAILS_LEAST);
}

/* The clocks alone of thousands of sleeping processes cost too much: they are read in turns, too. What a
 * process uses that wakes up is seen some ticks late. False when that would not help. */
static bool take_clocks_in_turns(struct engine *e, double spent)
{
	char text[24];

	if (e->tree.nr < CROWD || e->clock_turns == CLOCK_TURNS_MAX)
		return false;
	for (; spent > 1 && e->clock_turns < CLOCK_TURNS_MAX; spent /= 2)
		e->clock_turns *= 2;
	snprintf(text, sizeof(text), "%u", e->clock_turns);
	engine_event(e, "turns", "clocks_every", text);
	return true;
}

/* Acts at once where the clocks alone exceed the budget. */
static void judge_clocks(struct engine *e, int64_t cpu_ns)
{
	double spent = (double)cpu_ns / (e->opt.budget * (double)e->opt.interval_ns);

	if (spent <= 1)
		return;
	begin_turns(e, 0);
	take_clocks_in_turns(e, spent);
}

/* Returns the instant. The last tick is no instant: each is read when its turn comes, as late as possible. */
static int64_t take_totals(struct engine *e)
{
	bool crowd = !e->taken && e->env->live && e->tree.nr >= CROWD;
	int64_t now, spread, cpu = crowd ? own_cpu(CLOCK_THREAD_CPUTIME_ID) : 0;
	int tries = e->taken ? INSTANT_TRIES : 1; /* the usual time is not known yet */

	do {
		now = env_now(e->env, ENV_MONOTONIC);
		read_cgroup(e);
		if (!e->last_tick)
			take_clocks(e);
		spread = env_now(e->env, ENV_MONOTONIC) - now;
	} while (spread > e->opt.interval_ns / INSTANT_SHARE + 2 * e->spread_ns && --tries);
	e->spread_ns =
		spread < e->spread_ns || !e->taken ? spread : e->spread_ns + (spread - e->spread_ns) / 16;
	if (crowd)
		judge_clocks(e, own_cpu(CLOCK_THREAD_CPUTIME_ID) - cpu);
	return now;
}

static int64_t details_until(const struct engine *e, int64_t now)
{
	int64_t share = e->opt.interval_ns / DETAILS_SHARE;
	bool turns = e->details_ns && !e->opening;

	/* The last tick is whole; a film stands still while it is read. */
	if (e->last_tick || !e->env->live)
		return INT64_MAX;
	if (!e->taken)
		return env_now(e->env, ENV_MONOTONIC) + MAX(share, FIRST_NS);
	return MIN(now + share, turns ? env_now(e->env, ENV_MONOTONIC) + e->details_ns : INT64_MAX);
}

/* Reads those with ids from `from` on and then the others, until time is over; the first that is not reached
 * is the first of the next tick. */
static void read_details(struct engine *e, int64_t now)
{
	int64_t begin = env_now(e->env, ENV_MONOTONIC), until = details_until(e, now);
	uint32_t from = e->next_read, nr = 0;
	bool over = false;

	e->next_read = 0;
	e->opening = false;
	for (int round = 0; round < 2; round++)
		tree_for_each (&e->tree, slot, after) {
			struct member *m = &e->tree.member[slot];

			if ((m->id < from) != (round == 1) || m->awaited || m->read_ns == now)
				continue;
			if (rests(e, m)) {
				e->feed.clocks_deferred++;
				continue;
			}
			if (!over && nr++ % 8 == 7 && env_now(e->env, ENV_MONOTONIC) > until) {
				over = true;
				e->next_read = m->id;
			}
			if (over && e->taken) {
				e->opening |= m->brief;
				e->feed.reads_deferred += member_put_clock(e, slot);
				continue;
			}
			e->opening |= over;
			e->feed.reads_deferred += over;
			if ((over ? member_meet(e, slot, now) : member_sample(e, slot, now, e->last_tick)) <
				0)
				miss(e, slot);
		}
	e->window_details_ns += env_now(e->env, ENV_MONOTONIC) - begin;
}

static void sample_members(struct engine *e, int64_t now)
{
	remove_missing(e, now);
	read_details(e, now);
	if (e->clock_turns > 1 && e->children_grew && (!e->connector || e->feed.events_lost)) {
		miss_resting(e);
		remove_missing(e, now);
	}
	if (e->last_tick)
		remove_missing(e, now + 1);
	if (e->final_tick)
		members_dismiss_dead(e);
	if (e->accounts_moved)
		events_hear(e);
	e->accounts_moved = false;
}

static int64_t predicted(const struct engine *e, uint32_t slot)
{
	return SMAPS_FIXED_NS + process_rss_pages(e->processes, slot) * e->page_ns / 1024;
}

/* Worth reading again: never read, or RSS has changed by a hundredth and by more than a few pages. */
static bool drifted(const struct engine *e, uint32_t slot)
{
	int64_t drift = process_smaps_drift(e->processes, slot), rss = process_rss_pages(e->processes, slot);

	return rss > 0 && drift > 8 && drift > rss / 128;
}

static uint32_t parent_slot(const struct engine *e, uint32_t slot)
{
	uint32_t parent = tree_find(&e->tree, e->tree.member[slot].ppid);

	return parent != NO_SLOT && e->tree.member[parent].bound ? parent : NO_PARENT;
}

static void read_one_smaps(struct engine *e, uint32_t slot)
{
	int64_t before = own_cpu(CLOCK_THREAD_CPUTIME_ID), spent,
		pages = process_rss_pages(e->processes, slot);

	if (process_read_smaps(e->processes, slot) == 0) {
		e->feed.smaps_reads++;
		process_tell_family(e->processes, slot, parent_slot(e, slot));
	}
	spent = own_cpu(CLOCK_THREAD_CPUTIME_ID) - before;
	if (pages > 256 && spent > SMAPS_FIXED_NS) /* learn slowly, but trust large readings */
		e->page_ns += ((spent - SMAPS_FIXED_NS) * 1024 / pages - e->page_ns) / 4;
	e->tokens_ns -= spent;
	e->smaps_ns += spent;
}

/* How far its PSS may be off, in pages. */
static int64_t doubt(const struct engine *e, uint32_t slot)
{
	int64_t drift = process_smaps_drift(e->processes, slot);

	if (process_is_outshared(e->processes, slot))
		drift = MAX(drift, process_rss_pages(e->processes, slot) / 4);
	return drift;
}

static uint32_t candidates(struct engine *e)
{
	struct table *t = &e->set[e->process_set].table;
	uint32_t nr = 0;

	if (e->reshared == processes_reshared(e->processes)) {
		for (uint32_t i = 0; i < t->nr_touched; i++)
			if (t->id[t->touched[i]] != ROW_FREE && drifted(e, t->touched[i]))
				e->dirty[nr++] = t->touched[i];
		return nr;
	}
	tree_for_each (&e->tree, slot, after)
		if (e->tree.member[slot].bound &&
			((t->is_touched[slot] && drifted(e, slot)) ||
				process_is_outshared(e->processes, slot)))
			e->dirty[nr++] = slot;
	return nr;
}

/* A heap: the most doubtful stands first, and each before the two at twice its place. */
static void sift_down(struct engine *e, uint32_t at, uint32_t nr)
{
	uint32_t slot = e->dirty[at];
	int64_t own = doubt(e, slot);

	for (uint32_t child; (child = 2 * at + 1) < nr; at = child) {
		if (child + 1 < nr && doubt(e, e->dirty[child + 1]) > doubt(e, e->dirty[child]))
			child++;
		if (doubt(e, e->dirty[child]) <= own)
			break;
		e->dirty[at] = e->dirty[child];
	}
	e->dirty[at] = slot;
}

/* Reads the most doubtful first, as long as the budget reaches; false when it did not. Of ten thousand few
 * are read in a tick, so they are not sorted. */
static bool read_doubtful(struct engine *e, uint32_t nr)
{
	/* One reading may be long; several may not make the next tick late. */
	int64_t most = e->smaps_ns + e->opt.interval_ns / 4;

	for (uint32_t i = nr / 2; i-- > 0;)
		sift_down(e, i, nr);
	while (nr) {
		if (predicted(e, e->dirty[0]) > MIN(e->tokens_ns, SMAPS_MAX_NS) || e->smaps_ns > most) {
			e->feed.smaps_deferred += nr;
			return false;
		}
		read_one_smaps(e, e->dirty[0]);
		e->dirty[0] = e->dirty[--nr];
		if (nr)
			sift_down(e, 0, nr);
	}
	return true;
}

static void inherit(struct engine *e)
{
	struct table *t = &e->set[e->process_set].table;

	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t slot = t->touched[i];
		uint32_t parent = t->id[slot] == ROW_FREE ? NO_PARENT : parent_slot(e, slot);

		if (parent != NO_PARENT)
			process_inherit(e->processes, slot, parent);
	}
}

static void recheck_sharers(struct engine *e)
{
	if (!processes_are_wary(e->processes))
		return;
	tree_for_each (&e->tree, slot, after)
		if (e->tree.member[slot].bound)
			process_recheck(e->processes, slot);
}

static void tell_doubts(struct engine *e)
{
	if (e->reshared == processes_reshared(e->processes))
		return;
	tree_for_each (&e->tree, slot, after)
		if (e->tree.member[slot].bound)
			process_tell_doubt(e->processes, slot, parent_slot(e, slot));
}

/* A reading may show that shared memory has grown or that sharers have left, which makes others doubtful that
 * were read before: hence the repetition. */
static void slow_tier(struct engine *e)
{
	if (!processes_want_smaps(e->processes))
		return;
	inherit(e);
	for (int round = 0; round < 3 && e->tokens_ns >= SMAPS_FIXED_NS; round++) {
		int64_t reshared = processes_reshared(e->processes);
		bool all = read_doubtful(e, candidates(e));

		recheck_sharers(e);
		if (!all)
			break;
		e->reshared = reshared;
		if (reshared == processes_reshared(e->processes))
			break;
	}
	tell_doubts(e);
}

/* At deadlines, in the present window. */
static uint64_t window_ticks(const struct engine *e)
{
	return e->taken - e->window_taken - e->window_edges;
}

/* Processes take turns: a tick reads the details of as many as the budget allows, and the CPU time of all.
 * False when that would not help, because the rest of the cost is not details. */
static bool take_turns(struct engine *e, double spent)
{
	int64_t ticks = MAX((int64_t)window_ticks(e), 1);
	int64_t details = e->window_details_ns / ticks, all = e->window_cpu_ns / ticks;

	if (details <= 2 * e->opt.interval_ns / DETAILS_LEAST)
		return false;
	begin_turns(e, (int64_t)((double)all / spent) - MAX(all - details, 0));
	return true;
}

/* By how much of the budget was spent in the last window. The status file is half of an active process's
 * cost: it goes slower first, with the looks at those that sleep. Then processes take turns, then the clocks
 * of sleeping ones, then ticks are left out. Far beyond the budget all of this is done at once. */
static void back_off(struct engine *e, double spent)
{
	bool may_stretch = !e->opt.interval_is_order;

	if (spent > 3)
		e->feed.backoff = BACKOFF_MAX;
	if (spent > 1.1 && e->feed.backoff == BACKOFF_MAX &&
		(take_turns(e, spent) || take_clocks_in_turns(e, spent)))
		return;
	if (spent > 3) {
		for (; may_stretch && spent > 1 && e->stretch < STRETCH_MAX; spent /= 2)
			e->stretch *= 2;
	} else if (spent > 1 && e->feed.backoff < BACKOFF_MAX)
		e->feed.backoff *= 2;
	else if (spent > 1.1 && may_stretch && e->stretch < STRETCH_MAX)
		e->stretch *= 2;
	else if (spent < 1.0 / 3 && e->stretch > 1) /* the next tick may be far: at once as well */
		for (; spent < 1.0 / 3 && e->stretch > 1; spent *= 2)
			e->stretch /= 2;
	else if (spent < 1.0 / 3 && e->clock_turns > 1)
		e->clock_turns /= 2;
	else if (spent < 1.0 / 2 && e->details_ns)
		e->details_ns = e->details_ns < e->opt.interval_ns / 4 ? 2 * e->details_ns : 0;
	else if (spent < 1.0 / 3 && e->feed.backoff > 1)
		e->feed.backoff /= 2;
}

/* What is spent is judged every five seconds, and after some ticks already when they have spent all that
 * these may, at three times the rate: a thousand processes at 100 Hz do so in a seventh of a second. */
#define WINDOW_NS (5 * NSEC_PER_SEC)
#define TICKS_TO_JUDGE 8

static bool window_is_over(const struct engine *e, int64_t elapsed)
{
	double spent = (double)e->window_cpu_ns;
	bool far_beyond = spent > e->opt.budget * WINDOW_NS && spent > 3 * e->opt.budget * (double)elapsed;

	return elapsed >= WINDOW_NS || (far_beyond && window_ticks(e) >= TICKS_TO_JUDGE);
}

static void begin_window(struct engine *e, int64_t now)
{
	e->window_ns = now;
	e->window_cpu_ns = e->window_details_ns = 0;
	e->window_taken = e->taken;
	e->window_edges = 0;
}

void budget_worked(struct engine *e)
{
	if (e->hears)
		e->worked_cpu_ns = own_cpu(CLOCK_THREAD_CPUTIME_ID);
}

void engine_heard(struct engine *e)
{
	int64_t before = e->worked_cpu_ns;
	bool first = !e->hears;

	e->hears = e->env->live;
	budget_worked(e);
	if (!first)
		e->aside_ns += e->worked_cpu_ns - before;
}

/* CPU time since the last tick that the budget judges, at the time `cpu` of the whole recorder. */
static int64_t spent_since(struct engine *e, int64_t cpu)
{
	int64_t spent = cpu - e->self_cpu_ns - e->smaps_ns - e->aside_ns;

	e->self_cpu_ns = cpu;
	e->smaps_ns = e->aside_ns = 0;
	return MAX(spent, 0);
}

static void budget(struct engine *e, int64_t now)
{
	int64_t cpu = own_cpu(CLOCK_PROCESS_CPUTIME_ID), cap = (int64_t)(10e9 * e->opt.budget);
	int64_t elapsed = now - e->window_ns, spent, allowed;

	e->feed.self_cpu_ns = cpu;
	if (!e->self_cpu_ns ||
		e->opening) { /* opening files and the first reading of all processes are not sampling */
		spent_since(e, cpu);
		begin_window(e, now);
		return;
	}
	spent = spent_since(e, cpu);
	/* Where the fast tier alone uses up the budget, PSS still gets a quarter of it. */
	allowed = (int64_t)((double)e->opt.interval_ns * e->stretch * e->opt.budget * FORESEEN);
	if (e->at_edge) /* it comes from what the deadlines leave */
		e->tokens_ns -= MIN(spent, MAX(e->tokens_ns, 0));
	else
		e->tokens_ns = MIN(e->tokens_ns + MAX(allowed - spent, allowed / 4), cap);
	e->window_cpu_ns += spent;
	if (!window_is_over(e, elapsed))
		return;
	unsigned stretch = e->stretch;
	back_off(e, (double)e->window_cpu_ns / (double)elapsed / e->opt.budget);
	if (stretch != e->stretch) {
		char text[24];

		snprintf(text, sizeof(text), "%u", e->stretch);
		engine_event(e, "backoff", "every", text);
	}
	begin_window(e, now);
}

static void read_self(struct engine *e)
{
	char text[64];
	const char *at = text;
	int64_t pages;
	ssize_t n = e->self_statm < 0 ? -1 : env_read(e->env, e->self_statm, text, sizeof(text) - 1);

	e->feed.open_files = processes_open_files(e->processes);
	if (n <= 0)
		return;
	if (read_number(&at, text + n, &pages) && at++ < text + n && read_number(&at, text + n, &pages))
		e->feed.self_rss_kib = pages * e->env->page_size / 1024;
}

/* How often a collector is due. The node's counters move in clock ticks of 10 ms: reading them more often
 * than every 20 ms costs much and shows nothing new. */
static int64_t period(const struct engine *e, const struct collector *c)
{
	if (c->tier != TIER_TICK)
		return 5 * NSEC_PER_SEC * e->feed.backoff;
	if (c->domain == DOMAIN_TREE || c->domain == DOMAIN_GROUP || c->domain == DOMAIN_PERF ||
		c->domain == DOMAIN_APP)
		return 0;
	return 20 * NSEC_PER_MSEC;
}

/* The time of its values is the middle of its reading. Values that the engine counted itself are of the
 * tick's instant. */
static int64_t delay_of(
	const struct engine *e, const struct collector *c, int64_t now, int64_t before, int64_t after)
{
	int64_t delay = before + (after - before) / 2 - now;
	bool own = c->domain == DOMAIN_TREE || c->domain == DOMAIN_GROUP || c->domain == DOMAIN_COLLECTOR ||
		c->domain == DOMAIN_APP;

	return own || delay <= e->opt.interval_ns / INSTANT_SHARE ? 0 : delay;
}

static void sample_node(struct engine *e, int64_t now)
{
	for (uint32_t i = 0; i < e->nr_sets; i++) {
		struct set *set = &e->set[i];
		int64_t before, after;
		/* What was read a while ago is read once more at the end. */
		bool end = e->last_tick && now - MIN(set->sampled_ns, set->medium_ns) >= LAST_NS;

		if (!set->usable || !set->collector->sample || (now < set->next_ns && !end))
			continue;
		set->sampled_ns = now;
		set->next_ns = now + period(e, set->collector) - e->opt.interval_ns / 2;
		before = env_now(e->env, ENV_MONOTONIC);
		set->ctx.medium = end || now >= set->next_medium_ns;
		set->ctx.last = e->last_tick;
		if (set->ctx.medium) {
			set->medium_ns = now;
			set->next_medium_ns =
				now + 5 * NSEC_PER_SEC * e->feed.backoff - e->opt.interval_ns / 2;
		}
		set->collector->sample(set->state, &set->ctx);
		after = env_now(e->env, ENV_MONOTONIC);
		set->table.delay_ns = delay_of(e, set->collector, now, before, after);
		e->feed.cost_ns[i] += after - before;
	}
}

static void watch_clock(struct engine *e)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC); /* the tick may have taken long */
	int64_t offset = env_now(e->env, ENV_REALTIME) - now, step = offset - e->wall_offset_ns;
	char text[24];

	if (step > -NSEC_PER_SEC / 2 && step < NSEC_PER_SEC / 2)
		return;
	e->wall_offset_ns = offset;
	snprintf(text, sizeof(text), "%lld", (long long)step);
	engine_event(e, "clock", "step_ns", text);
}

/* Opening is not sampling: its cost does not count in the budget. */
static void open_new_sets(struct engine *e)
{
	/* Neither the members' first readings nor the opening share much code with the ticks that follow. A
	 * job of milliseconds, of which only its own sets are described yet, does without this. */
	bool shed = e->env->live && !e->choice;

	if (e->nr_opened == e->nr_sets)
		return;
	if (shed)
		resident_give_back();
	collectors_open(e);
	if (shed)
		resident_give_back();
	if (e->env->live)
		e->self_cpu_ns = own_cpu(CLOCK_PROCESS_CPUTIME_ID);
}

static unsigned tick_at(const struct engine *e)
{
	return (e->at_edge ? TICK_AT_EDGE : 0) | (e->last_tick ? TICK_AT_END : 0);
}

void tick_take(struct engine *e, bool due)
{
	int64_t before = env_now(e->env, ENV_MONOTONIC), now;

	find_new_members(e);
	now = take_totals(e);
	sample_members(e, now);
	suspect_unknown(e);
	slow_tier(e);
	e->feed.cost_ns[e->process_set] += env_now(e->env, ENV_MONOTONIC) - before;
	e->feed.late_ns = due ? now - e->deadline_ns : 0;
	e->feed.late_ticks += e->feed.late_ns > e->opt.interval_ns / 10;
	read_self(e);
	if (e->env->live)
		budget(e, now);
	if (e->taken && (e->feed.app.nr || (now >= e->rest_ns && !e->last_tick)))
		engine_describe_rest(e);
	open_new_sets(e);
	sample_node(e, now);
	watch_clock(e);
	e->sink.tick(e->sink.arg, e->tick, engine_time(e, now), tick_at(e), e->table);
	for (uint32_t i = 0; i < e->nr_sets; i++)
		table_settle(&e->set[i].table);
	e->taken++;
	e->taken_ns = now;
	e->number_due_ns = 0;
	remove_missing(e, now + 1);
	budget_worked(e);
}

/* ---- what the job tells ---- */

/* Samples at edges get a quarter of the budget, and no more than that of some seconds at once. They are not
 * closer to the others than the kernel's own clock ticks allow: rates of the node over less would mean
 * little. In the first moments of a job, of which processes alone are read, they may be. */
#define EDGE_SHARE 4
#define EDGE_SAVED_NS (5 * NSEC_PER_SEC)
#define EDGE_APART_NS (20 * NSEC_PER_MSEC)
#define EDGE_APART_FIRST_NS (2 * NSEC_PER_MSEC)

static int64_t edge_apart(const struct engine *e)
{
	return e->choice ? EDGE_APART_FIRST_NS : EDGE_APART_NS;
}

int64_t tick_edge_least(const struct engine *e)
{
	return e->taken_ns + edge_apart(e);
}

static bool may_take_edge(struct engine *e, int64_t now)
{
	int64_t since = MIN(now - e->edge_ns, EDGE_SAVED_NS);
	double share = e->opt.budget / EDGE_SHARE;

	e->edge_tokens_ns += (int64_t)((double)since * share);
	e->edge_tokens_ns = MIN(e->edge_tokens_ns, (int64_t)((double)EDGE_SAVED_NS * share));
	e->edge_ns = now;
	return e->taken && !e->opening && now >= tick_edge_least(e) &&
		e->deadline_ns - now >= edge_apart(e) && e->edge_tokens_ns >= e->edge_cost_ns;
}

bool tick_take_edge(struct engine *e)
{
	int64_t before;

	if (!may_take_edge(e, env_now(e->env, ENV_MONOTONIC)))
		return false;
	before = own_cpu(CLOCK_THREAD_CPUTIME_ID);
	e->at_edge = true;
	tick_take(e, false);
	e->at_edge = false;
	e->window_edges++;
	e->edge_cost_ns = own_cpu(CLOCK_THREAD_CPUTIME_ID) - before;
	e->edge_tokens_ns -= e->edge_cost_ns;
	return true;
}
