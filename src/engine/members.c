/* Members: how they enter the recording, what is written when they leave, and the exact account of what the
 * ended ones used.
 *
 * The account. At any moment the tree has used: the sum over live members of what each used itself and what
 * it got from the children it waited for, plus `gone`: what no live member accounts for. A process that
 *   - we reap (the command, and orphans that we adopted) enters `gone` with its rusage, which is exact and
 * includes its waited-for descendants;
 *   - a member reaps is in that member's children's time from then on: nothing to do;
 *   - is reaped by a process that is no member (the parent of an attached root, init) enters `gone` with its
 * exit record where the kernel gives one, else as last sampled;
 *   - whose reaper is not known (a member or not), or that began before the recording and was never sampled,
 * is not counted: the total is a lower bound;
 *   - had a parent that ignores SIGCHLD is dropped by the kernel: likewise, and counted in `dropped` so that
 * the total is known to be a lower bound.
 *
 * Dropped or waited for? This is not guessed. The parent's account of children is known since some reading. A
 * child that had not been waited for at that reading is not in it: what it used is pending. The next reading
 * of the parent that begins after the child is gone decides. Where the account has grown by no less page
 * faults than are pending, all are in it: what is known of an ended process is never more than what it used.
 * Otherwise some were dropped: they used what is pending beyond the growth. */
#include "engine/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

void member_joined(void *engine, uint32_t slot)
{
	struct engine *e = engine;

	e->feed.joined++;
	e->feed.live = e->tree.nr;
	if (e->feed.root)
		return;
	e->feed.root = e->tree.member[slot].pid;
	e->feed.root_id = e->tree.member[slot].id;
}

/* Groups are made with their first process, which gives a tool its name. */
static void learn_groups(struct engine *e)
{
	for (; e->feed.nr_groups < e->scopes->nr_groups; e->feed.nr_groups++) {
		struct group_feed *g = &e->feed.group[e->feed.nr_groups];
		const struct scope_group *from = &e->scopes->group[e->feed.nr_groups];
		const struct scope *scope = &e->scopes->scope[from->scope];

		*g = (struct group_feed){.name = from->name,
			.kind = from->part ? from->part : scope_kind_name(scope->kind),
			.target = scope->target,
			.own = e->scopes->matching >> e->feed.nr_groups & 1};
	}
}

void member_regrouped(void *engine, uint32_t slot, uint64_t before)
{
	struct engine *e = engine;
	uint64_t now = e->tree.member[slot].groups;

	if (!e->scopes)
		return;
	learn_groups(e);
	for_each_group(now & ~before, g)
	{
		e->feed.group[g].joined++;
		e->feed.group[g].live++;
	}
	for_each_group(before & ~now, g) e->feed.group[g].live--;
	/* The groups that it left get their part of what is pending from the readers. */
	e->tree.member[slot].pending_groups &= ~(before & ~now);
}

void member_forget(struct engine *e, uint32_t slot)
{
	for_each_group(e->scopes ? e->tree.member[slot].groups : 0, g)
	{
		e->feed.group[g].joined--;
		e->feed.group[g].live--;
	}
	e->feed.joined--;
	if (e->tree.member[slot].bound) {
		process_unbind(e->processes, slot);
		table_unbind(&e->set[e->process_set].table, slot);
	}
	tree_remove(&e->tree, slot);
	e->feed.live = e->tree.nr;
}

void member_follow_user(struct engine *e, uint32_t slot, uint32_t uid)
{
	uint64_t groups = e->tree.member[slot].groups;

	if (e->tree.exclusive)
		tree_set_groups(&e->tree, slot, tree_merge(&e->tree, groups, scopes_of_user(e->scopes, uid)));
}

/* The same for one that was just read. If its new user is no target it leaves the group of the former user,
 * and the recording if it `may` and is in no other group. But if its parent is a member it stays: what it
 * uses will be in the parent's account. */
static void follow_read(struct engine *e, uint32_t slot, bool has_status, bool may)
{
	struct member *m = &e->tree.member[slot];
	uint64_t others = m->groups & ~e->tree.exclusive;
	uint32_t uid;

	if (!e->tree.exclusive ||
		(has_status ? process_uid(e->processes, slot, m->pid, &uid)
			    : process_uid_now(e->env, m->pid, &uid)) < 0)
		return;
	if (others == m->groups || scopes_of_user(e->scopes, uid))
		member_follow_user(e, slot, uid);
	else if (others)
		tree_set_groups(&e->tree, slot, others);
	else if (may && tree_find(&e->tree, m->ppid) == NO_SLOT)
		member_depart(e, slot, "left");
}

bool member_reask(struct engine *e, uint32_t slot)
{
	struct member *m = &e->tree.member[slot];
	uint64_t groups;

	if (!e->tree.ask)
		return true;
	/* Groups that it has from a list (a control group's, a job's) stay: only expressions are evaluated
	 * again. */
	groups = tree_merge(&e->tree, m->groups & ~e->scopes->matching, e->tree.ask(e, m->pid));
	if (groups) {
		tree_set_groups(&e->tree, slot, groups);
		return true;
	}
	if (m->announced)
		member_depart(e, slot, "left");
	else
		member_forget(e, slot);
	return false;
}

/* When it began, by the kernel's own account: ticks after boot, on our clock. */
static int64_t start_time(struct engine *e, uint64_t start_ticks)
{
	int64_t since_boot = (int64_t)(start_ticks * (NSEC_PER_SEC / (uint64_t)e->env->clock_tick));

	return since_boot - env_now(e->env, ENV_BOOTTIME) + env_now(e->env, ENV_MONOTONIC);
}

/* In a tree that we started, each process is waited for by a member or by us. A member that adopted it (the
 * first process of a PID namespace, a subreaper) has it in its account, though we know only of the former
 * parent. */
static bool has_unknown_heir(const struct engine *e, const struct member *m)
{
	return e->tree.reaper && m->origin == e->tree.reaper_origin;
}

/* Are its children in the same groups, so that its account of waited-for children counts? True except for
 * tools: a child has its parent's user, control group and job. */
static bool has_family(const struct engine *e, const struct member *m)
{
	return !e->scopes || m->groups & ~e->scopes->matching;
}

/* Its parent, a member, has left before it, and it was not read since: init may have adopted it, or a member
 * that is a subreaper. */
static bool may_be_adopted(const struct engine *e, const struct member *m)
{
	if (!m->had_parent || m->parent_known || !has_family(e, m))
		return false;
	tree_for_each (&e->tree, slot, after) {
		const struct member *other = &e->tree.member[slot];

		if (other != m && has_family(e, other) &&
			(other->origin == m->origin || !(other->groups & e->tree.inheriting)))
			return true;
	}
	return false;
}

/* It began before the recording, and no sample shows how much it had used by then. */
static bool has_unknown_past(const struct member *m)
{
	return m->late && !m->bound;
}

/* The recorded largest memory of a program is a lower bound: what it had after its last sample is not known,
 * or is known only in the account of all processes that we wait for. */
enum { LEAST_OF_ALL = 1, LEAST_OF_ITSELF };

static uint8_t least_of(const struct engine *e, const struct member *m)
{
	return has_unknown_heir(e, m) ? LEAST_OF_ITSELF : LEAST_OF_ALL;
}

void member_succeeded(struct engine *e, uint32_t slot)
{
	struct member *m = &e->tree.member[slot];
	int64_t v;

	if (!m->announced || !m->bound || !process_cell(e->processes, slot, "proc.mem.hwm", &v))
		return;
	m->succeeded = m->identity_stale = true;
	process_forget_peak(e->processes, slot);
}

/* It is another program now. The peak memory of the former program is known from the last sample, unless
 * that was the newly forked copy of its parent: then it is the parent's. `image`: of that program; 0: not
 * known. */
static void count_exec(struct engine *e, struct member *m, int64_t image)
{
	uint32_t parent = tree_find(&e->tree, m->ppid);

	m->execs++;
	m->succeeded = false;
	m->identity_stale = true;
	if (!image || parent == NO_SLOT || !e->tree.member[parent].bound ||
		process_image(e->processes, parent) != image)
		m->peak_least = least_of(e, m);
}

static void learn(struct engine *e, uint32_t slot, const struct process_facts *facts)
{
	struct member *m = &e->tree.member[slot];
	int64_t began, tick = NSEC_PER_SEC / e->env->clock_tick;

	if (!facts->has_stat)
		return;
	m->ppid = facts->ppid;
	m->had_parent = tree_find(&e->tree, m->ppid) != NO_SLOT;
	m->zombie = facts->state == 'Z';
	m->dead = facts->ended;
	if (strcmp(m->name, facts->name)) {
		memcpy(m->name, facts->name, sizeof(m->name));
		m->identity_stale = true; /* it has become another program */
		m->replaced |= m->announced && m->zombie;
		if (facts->bare)
			member_succeeded(e, slot);
	}
	if (m->announced &&
		(facts->replaced || (m->succeeded && (facts->bare || !process_image(e->processes, slot)))))
		count_exec(e, m, facts->replaced ? facts->replaced : process_image(e->processes, slot));
	m->succeeded = false;
	/* The children of a process that ignores SIGCHLD are in no account. */
	e->children_grew |= facts->children_grew || facts->ignores_sigchld;
	if (m->announced)
		return;
	/* The kernel's start time is coarse: it is used only where it is earlier than ours by more than its
	 * error. */
	began = start_time(e, facts->start_ticks);
	if (began + tick < m->born_ns)
		m->born_ns = began;
	if (e->scopes && began + tick < e->opened_ns)
		m->late = true;
}

bool member_put_clock(struct engine *e, uint32_t slot)
{
	const struct member *m = &e->tree.member[slot];

	return m->clock_ns >= 0 && (!m->bound || process_put_clock(e->processes, slot, m->clock_ns));
}

/* Counts what departed children used as dropped: it will never be in the parent's account. */
static void count_dropped(struct engine *e, const struct member *m, const struct usage *u)
{
	/* Children of a departed child may have been adopted by a member, which then has them in its
	 * account. */
	if (m->has_passed && !e->tree.reaper) {
		e->tree.escaped++;
		return;
	}
	e->children_grew = true;
	usage_add(&e->feed.gone, u);
	e->feed.dropped_us += MAX(usage_cpu_us(u), 1);
	for_each_group(e->scopes ? m->pending_groups & ~e->scopes->matching : 0, g)
		usage_add(&e->feed.group[g].gone, u);
}

/* What is pending beyond the growth of its account, which has CPU time in whole clock ticks. The account does
 * not separate switches and I/O of children: they count as if they were in it. */
static bool is_beyond(
	const struct engine *e, const struct usage *pending, const struct usage *growth, struct usage *ret)
{
	int64_t tick_us = 1000000 / e->env->clock_tick, all_us = usage_cpu_us(pending);
	int64_t cpu_us = all_us - usage_cpu_us(growth) - 2 * tick_us;

	*ret = (struct usage){.used[USED_MINOR] = pending->used[USED_MINOR] - growth->used[USED_MINOR],
		.used[USED_MAJOR] = MAX(pending->used[USED_MAJOR] - growth->used[USED_MAJOR], 0)};
	if (cpu_us > 0) {
		ret->used[USED_USER] =
			(int64_t)((double)cpu_us * (double)pending->used[USED_USER] / (double)all_us);
		ret->used[USED_SYSTEM] = cpu_us - ret->used[USED_USER];
	}
	return ret->used[USED_MINOR] > 0;
}

/* Its account was read: decides whether the departed children are in it now or were dropped by the kernel. */
static void settle_pending(struct engine *e, struct member *m, const struct process_facts *facts)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);
	bool owes = m->owes && (m->quiet_ns || !m->late); /* else its account began before we watched it */
	struct usage beyond;

	if (facts->state != 'Z')
		m->unwaited_ns = now;
	if (!m->quiet_ns || facts->children_grew) {
		m->quiet_ns = now;
		e->accounts_moved = true;
	}
	m->ignores_sigchld = facts->ignores_sigchld && !facts->children_grew;
	m->ignored_sigchld |= facts->ignores_sigchld;
	m->waits |= facts->children_grew;
	if (owes && usage_is_none(&facts->children))
		count_dropped(e, m, &m->pending);
	else if (owes && is_beyond(e, &m->pending, &facts->children, &beyond))
		count_dropped(e, m, &beyond);
	m->pending = (struct usage){0};
	m->owes = m->has_pending = m->has_passed = m->is_vague = false;
}

/* Reading `status` costs as much as all other files of a process: at short intervals it is not read at every
 * tick. */
#define FOLLOW_NS (400 * NSEC_PER_MSEC)

static void bind(struct engine *e, uint32_t slot)
{
	struct member *m = &e->tree.member[slot];

	process_bind(e->processes, slot, m->pid);
	table_bind(&e->set[e->process_set].table, slot, m->id);
	m->bound = true;
}

static void unbind(struct engine *e, uint32_t slot)
{
	process_unbind(e->processes, slot);
	table_unbind(&e->set[e->process_set].table, slot);
	e->tree.member[slot].bound = false;
}

int member_meet(struct engine *e, uint32_t slot, int64_t now)
{
	struct member *m = &e->tree.member[slot];
	struct process_facts facts = {0};

	bind(e, slot);
	if (process_read(e->processes, slot, m->clock_ns, false, false, READ_ACCOUNT, &facts) < 0 ||
		!facts.has_stat) {
		unbind(e, slot);
		return member_sample(e, slot, now, false);
	}
	settle_pending(e, m, &facts);
	m->read_ns = now;
	learn(e, slot, &facts);
	m->brief = true;
	member_announce(e, slot);
	return 0;
}

int member_sample(struct engine *e, uint32_t slot, int64_t now, bool final)
{
	struct member *m = &e->tree.member[slot];
	/* Within a tick its CPU time is that of the tick's instant. */
	int64_t clock = m->clock_tick == e->taken + 1 ? m->clock_ns : env_cpu_clock(e->env, m->pid);
	/* Spread by slot, so that not all of a thousand are due in the same tick. */
	int64_t medium_ns = 5 * NSEC_PER_SEC * e->feed.backoff + (slot & 15) * NSEC_PER_SEC / 10;
	int64_t refresh_ns = 10 * NSEC_PER_SEC * e->feed.backoff + (slot & 63) * NSEC_PER_SEC / 8;
	bool fresh = !m->bound, first = fresh || m->brief, known = m->announced, owed = m->owes;
	bool medium = first || final || m->succeeded || now - m->status_read_ns >= medium_ns;
	/* In the last tick, a process that has slept since it was fully read is not read again. */
	bool all = first || m->succeeded || (final && (!e->last_tick || m->status_read_ns < m->read_ns));
	bool lost =
		m->had_parent && tree_find(&e->tree, m->ppid) == NO_SLOT; /* its new parent is not known */
	enum process_effort effort = all					 ? READ_ALL
		: owed || m->regrouped || lost || now - m->read_ns >= refresh_ns ? READ_REFRESH
										 : READ_IF_MOVED;
	struct process_facts facts = {0};
	int r;

	if (fresh)
		bind(e, slot);
	r = process_read(e->processes, slot, clock, medium,
		now - m->status_read_ns >= FOLLOW_NS * e->feed.backoff, effort, &facts);
	if (r >= 0 && facts.has_stat)
		settle_pending(e, m, &facts);
	if (r < 0) {
		if (fresh) /* it was gone before its first sample */
			unbind(e, slot);
		/* Or it is hidden from us, as all processes are without /proc. */
		if (!fresh || clock < 0 || env_cpu_clock(e->env, m->pid) < 0)
			return -ESRCH;
		if (!m->announced)
			member_announce(e, slot);
		return 0;
	}
	if (r == 0)
		return 0;
	m->read_ns = now;
	m->brief = false;
	learn(e, slot, &facts);
	if (medium || m->identity_stale) /* a shell that moves itself mostly execs next */
		member_check_inside(e, m);
	if (facts.has_status)
		m->status_read_ns = now;
	if (!known)
		follow_read(e, slot, facts.has_status, false);
	/* It may have become another program since the scopes were asked. A zombie has no command line any
	 * more: it keeps its groups. */
	if (m->identity_stale && !m->zombie && !member_reask(e, slot))
		return 0;
	if (m->identity_stale)
		member_announce(e, slot);
	/* What it used up to now counts for the former user: the new one is announced before the next
	 * sample. */
	if (known && !m->zombie)
		follow_read(e, slot, facts.has_status, !final && !owed);
	return 0;
}

static int64_t cell(struct engine *e, uint32_t slot, const char *metric)
{
	int64_t v;

	return process_cell(e->processes, slot, metric, &v) ? v : 0;
}

/* CPU of the process itself, from its last sample or its exit record, whichever has more: never parts of
 * both. */
static void own_cpu_known(struct engine *e, uint32_t slot, struct usage *u)
{
	const struct member *m = &e->tree.member[slot];
	int64_t tick_us = 1000000 / e->env->clock_tick;

	if (m->bound) {
		u->used[USED_SYSTEM] = cell(e, slot, "proc.cpu.system") * tick_us;
		/* The clock is exact, its split is not: what the ticks have not seen counts as user time. */
		u->used[USED_USER] = MAX(cell(e, slot, "proc.cpu.user") * tick_us,
			cell(e, slot, "proc.cpu.time") - u->used[USED_SYSTEM]);
	}
	if ((m->record.user_ns + m->record.system_ns) / 1000 > usage_cpu_us(u)) {
		u->used[USED_USER] = m->record.user_ns / 1000;
		u->used[USED_SYSTEM] = m->record.system_ns / 1000;
	}
}

/* What its last sample and its exit records say it used, with the children it waited for if `family`. (Bytes
 * and calls of these are in its own counters already: the kernel does not keep them apart.) */
static void last_known(struct engine *e, uint32_t slot, bool family, struct usage *u)
{
	const struct member *m = &e->tree.member[slot];
	int64_t tick_us = 1000000 / e->env->clock_tick;

	*u = (struct usage){0};
	own_cpu_known(e, slot, u);
	for (unsigned i = 0; i < NR_USED; i++) {
		const struct quantity *q = &quantity[i];

		if (m->bound && !q->is_time)
			u->used[i] = cell(e, slot, q->metric);
		if (m->bound && family && q->children_metric)
			u->used[i] += cell(e, slot, q->children_metric) * (q->is_time ? tick_us : 1);
		if (m->record.nr && !q->is_time)
			u->used[i] = MAX(u->used[i], m->record.use.used[i]);
	}
}

/* The peak memory of its last program, by its last sample and its exit record; 0: not known. */
static int64_t own_peak_known(struct engine *e, uint32_t slot)
{
	const struct member *m = &e->tree.member[slot];

	return MAX(m->record.peak_rss_bytes / 1024, m->bound ? cell(e, slot, "proc.mem.hwm") : 0);
}

/* By its exit record, which is written before its memory is freed. A kernel thread has none. */
static bool peak_is_recorded(const struct member *m)
{
	return m->record.nr && (m->record.peak_rss_bytes || !m->record.use.used[USED_MINOR]);
}

/* A scheduler's tick is 10 ms at most: exit records have the CPU time up to the last one. */
#define RECORD_MAY_MISS_NS (10 * NSEC_PER_MSEC)

/* Only a process that was read as a zombie has its whole CPU time: of others the last moments are missing.
 * This is marked where it may be more than a hundredth. */
static bool misses_cpu(const struct member *m, int64_t cpu_ns)
{
	if (m->dead)
		return false;
	return !m->record.nr || cpu_ns < 100 * RECORD_MAY_MISS_NS * (int64_t)m->record.nr;
}

static void add_own_use(struct engine *e, uint32_t slot)
{
	const struct member *m = &e->tree.member[slot];
	struct pairs *p = &e->pairs;
	struct usage own;
	int64_t v;

	last_known(e, slot, false, &own);
	for (unsigned i = 0; i < NR_USED; i++) {
		const struct quantity *q = &quantity[i];
		bool sampled = q->of_processes && process_cell(e->processes, slot, q->metric, &v);
		bool recorded = m->record.nr && (q->of_processes || q->children == CHILDREN_NOWHERE);

		if (!q->is_time && (sampled || recorded))
			pairs_num(p, q->key, own.used[i]);
	}
}

/* Is all that it has read and written known? Exit records have whole KiB, and calls by the thousand. */
static bool io_is_whole(const struct engine *e, uint32_t slot)
{
	return e->tree.member[slot].bound && process_io_is_whole(e->processes, slot);
}

struct ending {
	const char *how;
	int64_t max_rss_kib; /* 0: not known */
	uint8_t rss_least;   /* it is a lower bound: LEAST_OF_ALL, LEAST_OF_ITSELF */
	bool rss_most;	     /* it is an upper bound: that of its parent's copy or of its children */
	bool uncounted;	     /* nothing of it is in the account */
	bool io_least;	     /* bytes and calls of it are missing in the account */
	uint64_t unclaimed;  /* its groups that may not count its account: a member outside them has it */
	uint32_t heir;	     /* id of its parent, if the groups that have its account must be written */
	bool due;	     /* the parent's account as it was last read has nothing of it */
	uint64_t foreign;    /* groups of its parent that it is not in, which get its account */
	const struct usage *account; /* if there is an heir */
};

/* The parent gets the whole account, also in groups that the process is not in: readers subtract it there. */
static void add_account(struct engine *e, const struct ending *end)
{
	const struct usage *u = end->account;
	struct pairs *p = &e->pairs;

	pairs_num(p, "heir", end->heir);
	if (end->due)
		pairs_num(p, "due", 1);
	if (end->foreign)
		announce_groups(e, "foreign", end->foreign);
	for (unsigned i = 0; i < NR_USED; i++)
		if (quantity[i].children == CHILDREN_APART || quantity[i].children == CHILDREN_WITHIN)
			pairs_num(p, quantity[i].account_key, u->used[i]);
}

/* Writes that it is gone, with its last values, and frees its slot. */
static void write_gone(struct engine *e, uint32_t slot, const struct ending *end)
{
	struct member *m = &e->tree.member[slot];
	struct pairs *p = &e->pairs;
	bool sampled = m->bound;
	int64_t v, cpu_ns = -1, ended_ns = m->ended_ns ? m->ended_ns : env_now(e->env, ENV_MONOTONIC);

	/* After its last sample it became another program, whose name its exit record has. */
	m->departing = m->announced;
	if (m->succeeded)
		count_exec(e, m, process_image(e->processes, slot));
	if (!m->announced || m->regrouped || (m->identity_stale && m->record.nr))
		member_announce(e, slot);
	announce_begin(e);
	pairs_str(p, "how", end->how);
	pairs_num(p, "sampled", sampled);
	if (m->has_status)
		pairs_num(p, "status", m->status);
	if (sampled && process_cell(e->processes, slot, "proc.cpu.time", &v))
		cpu_ns = v * 1000;
	if (m->record.nr)
		cpu_ns = MAX(cpu_ns, m->record.user_ns + m->record.system_ns);
	if (cpu_ns >= 0) {
		pairs_num(p, "cpu_ns", cpu_ns);
		if (misses_cpu(m, cpu_ns))
			pairs_num(p, "cpu_least", 1);
	}
	pairs_num(p, "io_least", end->io_least);
	if (end->uncounted)
		pairs_num(p, "uncounted", 1);
	if (end->unclaimed)
		announce_groups(e, "unclaimed", end->unclaimed);
	if (end->heir)
		add_account(e, end);
	if (m->ignored_sigchld)
		pairs_num(p, "sigchld_ignored", 1);
	if (sampled || m->record.nr)
		add_own_use(e, slot);
	if (m->record.nr) {
		pairs_num(p, "user_us", m->record.user_ns / 1000);
		pairs_num(p, "system_us", m->record.system_ns / 1000);
	} else if (sampled) {
		pairs_num(p, "user_us", cell(e, slot, "proc.cpu.user") * (1000000 / e->env->clock_tick));
		pairs_num(p, "system_us", cell(e, slot, "proc.cpu.system") * (1000000 / e->env->clock_tick));
	}
	if (end->max_rss_kib > 0)
		pairs_num(p, "max_rss_kib", end->max_rss_kib);
	if (end->rss_least)
		pairs_num(p, "max_rss_least", end->rss_least);
	if (end->rss_most)
		pairs_num(p, "max_rss_most", 1);
	e->sink.gone(
		e->sink.arg, e->process_set, sampled ? slot : UINT32_MAX, m->id, engine_time(e, ended_ns), p);
	e->feed.exited++;
	for_each_group(e->scopes ? m->groups : 0, g)
	{
		e->feed.group[g].exited++;
		e->feed.group[g].live--;
		e->feed.group[g].unsampled += !sampled;
	}
	if (sampled) {
		process_unbind(e->processes, slot);
		table_unbind(&e->set[e->process_set].table, slot);
	} else {
		e->feed.unsampled++;
	}
	tree_remove(&e->tree, slot);
	e->feed.live = e->tree.nr;
}

/* The parent has the child in its account, or will have it, unless the kernel dropped it: then the account
 * does not grow, though the child left a trace (a page fault, or two clock ticks). A parent that was never
 * seen to wait is read once all that ended with the child are removed: it may be gone soon. */
static void leave_to_parent(
	struct engine *e, uint32_t parent, uint32_t child, uint64_t accounted, const struct usage *used)
{
	struct member *p = &e->tree.member[parent];
	uint64_t groups = e->tree.member[child].groups & accounted;

	/* Dropped usage counts in the groups that all dropped children share: children of other groups are
	 * settled first. */
	if (p->ignores_sigchld && p->owes && p->bound && p->pending_groups != groups)
		member_sample(e, parent, env_now(e->env, ENV_MONOTONIC), false);
	p->is_vague |= e->tree.member[child].is_vague || e->tree.member[child].unwaited_ns < p->quiet_ns;
	if (e->tree.member[child].unwaited_ns < p->quiet_ns)
		return;
	usage_add(&p->pending, used);
	p->pending_groups = groups & (p->has_pending ? p->pending_groups : UINT64_MAX);
	p->has_pending = true;
	p->has_passed |= e->tree.member[child].has_pending;
	if (p->owes || !(p->ignores_sigchld || used->used[USED_MINOR] || usage_cpu_us(used) >= 20000))
		return;
	p->owes = true;
	if (p->bound && !p->waits && e->nr_owing < e->tree.cap)
		e->owing[e->nr_owing++] = (struct slot_id){parent, p->id};
}

void members_settle(struct engine *e)
{
	uint32_t nr = e->nr_owing;

	e->nr_owing = 0;
	for (uint32_t i = 0; i < nr; i++)
		if (still_here(e, &e->owing[i]) && e->tree.member[e->owing[i].slot].owes)
			member_sample(e, e->owing[i].slot, env_now(e->env, ENV_MONOTONIC), true);
}

/* What it used goes to those groups in which no live parent accounts for it. */
static void groups_gone(struct engine *e, uint32_t slot, uint64_t accounted, const struct usage *u,
	const struct usage *switches, int64_t peak_kib)
{
	int64_t own_kib = own_peak_known(e, slot);
	struct usage own;

	if (!e->scopes)
		return;
	last_known(e, slot, false, &own);
	if (has_unknown_past(&e->tree.member[slot]))
		own = (struct usage){0};
	for_each_group(e->tree.member[slot].groups, g)
	{
		struct group_feed *group = &e->feed.group[g];

		group->gone_max_rss_kib = MAX(group->gone_max_rss_kib, group->own ? own_kib : peak_kib);
		if (group->own) {
			usage_add(&group->gone, &own);
			continue;
		}
		usage_add(&group->gone, switches);
		if (!(accounted >> g & 1))
			usage_add(&group->gone, u);
	}
}

/* Switches of a child are in no file of its parent: they are counted when it leaves. The rusage of the
 * process that waited for it, and of its ancestors, has them once more: the parent keeps how many were
 * counted. */
static struct usage take_switches(struct engine *e, const struct member *m, uint32_t above, struct usage *u)
{
	struct usage switches = {.used[USED_VOLUNTARY] = u->used[USED_VOLUNTARY],
		.used[USED_INVOLUNTARY] = u->used[USED_INVOLUNTARY]};

	u->used[USED_VOLUNTARY] = u->used[USED_INVOLUNTARY] = 0;
	if (above != NO_SLOT) {
		struct member *p = &e->tree.member[above];

		p->counted_voluntary += m->counted_voluntary + switches.used[USED_VOLUNTARY];
		p->counted_involuntary += m->counted_involuntary + switches.used[USED_INVOLUNTARY];
	}
	return switches;
}

/* Its parent has its account, or will have it. Returns the groups in which nothing of it is to be counted
 * now. Readers count it in its own groups and subtract it in groups that only its parent is in, so the
 * parent's groups are announced first. The parent may change its groups before its account is read again:
 * hence every such child is written. Whether a parent that ignores SIGCHLD gets the account is not known: it
 * stays where it is found. */
static uint64_t share_with_parent(
	struct engine *e, const struct member *m, struct member *parent, struct ending *end)
{
	bool was_stale = parent->identity_stale;
	uint64_t family;

	if (!e->scopes)
		return parent->groups;
	if (parent->ignores_sigchld)
		return UINT64_MAX;
	family = ~e->scopes->matching;
	if (!e->tree.exclusive && !((parent->groups ^ m->groups) & family))
		return parent->groups;
	if (parent->regrouped) {
		member_announce(e, (uint32_t)(parent - e->tree.member));
		parent->identity_stale = was_stale;
	}
	end->heir = parent->id;
	end->due = m->unwaited_ns >= parent->quiet_ns;
	end->foreign = parent->groups & ~m->groups & family;
	if (m->is_vague)
		end->unclaimed = m->groups & ~parent->groups & family;
	return parent->groups;
}

/* unwaited: it has ended, and is not in its parent's account. */
static void depart(struct engine *e, uint32_t slot, const char *how, bool unwaited)
{
	struct member *m = &e->tree.member[slot];
	uint32_t parent = unwaited ? NO_SLOT : tree_find(&e->tree, m->ppid);
	struct usage u, switches;
	struct ending end = {.max_rss_kib = own_peak_known(e, slot), .account = &u};
	uint64_t accounted = 0;
	bool is_adopted, is_lost = parent == NO_SLOT && !unwaited && may_be_adopted(e, m);

	if (!peak_is_recorded(m))
		end.rss_least = unwaited ? LEAST_OF_ALL : least_of(e, m);
	last_known(e, slot, has_family(e, m), &u);
	if (m->owes && m->ignores_sigchld)
		count_dropped(e, m, &m->pending);
	else
		usage_add(&u, &m->pending);
	e->children_grew |= m->waits; /* the children that it waited for in its last moments are not known */
	/* A parent that is watched for itself alone takes nothing over. */
	if (parent != NO_SLOT && !has_family(e, &e->tree.member[parent]))
		parent = NO_SLOT;
	is_adopted = parent == NO_SLOT && !unwaited && has_unknown_heir(e, m);
	switches = take_switches(e, m, is_adopted ? tree_find(&e->tree, e->root) : parent, &u);
	if (parent != NO_SLOT) {
		accounted = share_with_parent(e, m, &e->tree.member[parent], &end);
		leave_to_parent(e, parent, slot, accounted, &u);
	} else if (is_adopted) {
		accounted = UINT64_MAX;
		if (e->scopes)
			end.unclaimed = m->groups & ~e->tree.reaper_groups & ~e->scopes->matching;
	} else if (is_lost || has_unknown_past(m)) {
		accounted = UINT64_MAX;
		end.uncounted = true;
	} else {
		usage_add(&e->feed.gone, &u);
		end.io_least = !io_is_whole(e, slot);
	}
	if (has_unknown_past(m))
		switches = (struct usage){0};
	usage_add(&e->feed.gone, &switches);
	e->feed.gone_max_rss_kib = MAX(e->feed.gone_max_rss_kib, end.max_rss_kib);
	groups_gone(e, slot, accounted, &u, &switches, end.max_rss_kib);
	end.how = m->record.nr ? "exit-record" : m->dead && m->bound ? "zombie" : how;
	write_gone(e, slot, &end);
}

void member_depart(struct engine *e, uint32_t slot, const char *how)
{
	depart(e, slot, how, false);
}

void members_dismiss_dead(struct engine *e)
{
	events_drain(e);
	tree_for_each (&e->tree, slot, after)
		if (e->tree.member[slot].dead)
			depart(e, slot, "zombie", true);
}

static void usage_from_rusage(const struct member *m, struct usage *u, const struct rusage *ru)
{
	u->used[USED_USER] = ru->ru_utime.tv_sec * INT64_C(1000000) + ru->ru_utime.tv_usec;
	u->used[USED_SYSTEM] = ru->ru_stime.tv_sec * INT64_C(1000000) + ru->ru_stime.tv_usec;
	u->used[USED_MINOR] = ru->ru_minflt;
	u->used[USED_MAJOR] = ru->ru_majflt;
	u->used[USED_VOLUNTARY] = MAX(u->used[USED_VOLUNTARY], ru->ru_nvcsw - m->counted_voluntary);
	u->used[USED_INVOLUNTARY] = MAX(u->used[USED_INVOLUNTARY], ru->ru_nivcsw - m->counted_involuntary);
	/* In 512-byte blocks; the files of /proc may not have been readable. */
	u->used[USED_READ_BYTES] = MAX(u->used[USED_READ_BYTES], ru->ru_inblock * INT64_C(512));
	u->used[USED_WRITE_BYTES] = MAX(u->used[USED_WRITE_BYTES], ru->ru_oublock * INT64_C(512));
}

static bool descends_from(const struct engine *e, uint32_t slot, pid_t ancestor)
{
	for (int depth = 0; slot != NO_SLOT && depth < 256; depth++) {
		if (e->tree.member[slot].ppid == ancestor)
			return true;
		slot = tree_find(&e->tree, e->tree.member[slot].ppid);
	}
	return false;
}

/* Descendants that were waited for, and that no tick has found missing yet, are in the account of the process
 * that is about to be reaped: they leave first, while their parents can still be found. */
static void depart_descendants(struct engine *e, pid_t pid)
{
	for (uint32_t slot = e->tree.last, before; slot != NO_SLOT; slot = before) {
		before = e->tree.member[slot].prev;
		if (descends_from(e, slot, pid) && env_cpu_clock(e->env, e->tree.member[slot].pid) < 0)
			member_depart(e, slot, "noticed");
	}
	members_settle(e);
}

/* Our process may have had children before it became tacho: they are older than the job and not part of
 * it. */
static bool is_older(struct engine *e, pid_t pid)
{
	int64_t tick = NSEC_PER_SEC / e->env->clock_tick;
	struct process_facts facts;

	return member_read_stat(e, pid, &facts) && start_time(e, facts.start_ticks) + tick < e->start_ns;
}

/* Between reading its own peak and its exec the copy of us may still grow by some pages. */
#define COPY_SLACK_KIB 32

/* The collectors' threads read and write, too. */
static bool has_threads(const struct engine *e)
{
	for (uint32_t i = 0; i < e->nr_opened; i++)
		if (e->set[i].collector->async && e->set[i].usable)
			return true;
	return false;
}

/* Waits for a child that has ended. */
static bool wait_for(struct engine *e, pid_t pid, uint32_t slot, int *ret_status, struct rusage *ret_usage)
{
	bool inherit = slot != NO_SLOT && e->tree.member[slot].bound && !has_threads(e);
	pid_t waited;

	if (inherit)
		process_before_wait(e->processes, slot);
	waited = wait4(pid, ret_status, 0, ret_usage);
	if (inherit && waited == pid)
		process_after_wait(e->processes, slot);
	return waited == pid;
}

/* The command that we started, and nothing else: it became no other program that we know of, and has waited
 * for no child. */
static bool is_itself(const struct engine *e, uint32_t slot)
{
	const struct member *m = &e->tree.member[slot];

	return m->pid == e->root && e->as_started && m->bound && !m->execs &&
		!process_has_waited(e->processes, slot);
}

/* `most_kib`: ru_maxrss as we got it from wait(); 0: none. It is the largest of this process, of its programs
 * before each exec, the copy of its parent included, and of the children that it waited for. */
static void tell_own_peak(struct engine *e, uint32_t slot, int64_t most_kib, struct ending *end)
{
	const struct member *m = &e->tree.member[slot];
	int64_t known_kib = end->max_rss_kib;

	if (peak_is_recorded(m))
		return;
	if (most_kib && (is_itself(e, slot) || most_kib - known_kib <= known_kib / 100)) {
		end->max_rss_kib = MAX(most_kib, known_kib);
	} else if (known_kib) {
		end->rss_least = LEAST_OF_ITSELF;
	} else {
		end->max_rss_kib = most_kib;
		end->rss_most = most_kib > 0;
	}
}

/* A child of ours has ended and waits for us: its files can be read for the last time, then it is reaped. */
static void member_reap(struct engine *e, pid_t pid)
{
	uint32_t slot = tree_find(&e->tree, pid);
	struct rusage ru;
	struct usage u;
	struct ending end = {.how = "reaped"};
	int64_t peak_kib = 0;
	int status;

	if (slot == NO_SLOT && e->tree.inheriting && !is_older(e, pid) &&
		tree_add(&e->tree, pid, e->tree.self, e->tree.reaper_groups, &slot) < 0)
		slot = NO_SLOT;
	if (slot != NO_SLOT) {
		depart_descendants(e, pid);
		member_sample(e, slot, env_now(e->env, ENV_MONOTONIC), true);
	}
	if (!wait_for(e, pid, slot, &status, &ru))
		return;
	if (pid == e->root) {
		e->root_ended = true;
		e->root_status = status;
	}
	if (slot == NO_SLOT)
		return;
	last_known(e, slot, true, &u);
	if (e->opt.children)
		usage_from_rusage(&e->tree.member[slot], &u, &ru);
	usage_add(&e->feed.gone, &u);
	end.max_rss_kib = own_peak_known(e, slot);
	end.io_least = !io_is_whole(e, slot);
	/* Before its exec the job was a copy of us, and the kernel keeps that peak: one that is no larger may
	 * be the copy's. */
	if (pid != e->root || ru.ru_maxrss - COPY_SLACK_KIB > e->copy_kib)
		peak_kib = ru.ru_maxrss;
	tell_own_peak(e, slot, peak_kib, &end);
	peak_kib = MAX(peak_kib, end.max_rss_kib);
	e->feed.gone_max_rss_kib = MAX(e->feed.gone_max_rss_kib, peak_kib);
	groups_gone(e, slot, 0, &u, &(struct usage){0}, peak_kib);
	e->tree.member[slot].status = status;
	e->tree.member[slot].has_status = true;
	write_gone(e, slot, &end);
}

void engine_reap(struct engine *e)
{
	/* Forks come before exits: an orphan is known before it, or its former parent, is reaped. */
	find_new_members(e);
	for (;;) {
		siginfo_t info = {0};

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
			break;
		member_reap(e, info.si_pid);
	}
	budget_worked(e);
}
