/* The kernel's events of forks, execs and exits: read ("heard") in batches, also between ticks when there are
 * many.
 *
 * The connector reports every fork and exit; taskstats gives each ended task's account, queued before the
 * connector's exit event of the same task, so reading the connector first and taskstats second finds every
 * record's process known, except one that began in between: its record names its parent.
 *
 * An exit event does not mean that the process is gone: until its parent has waited for it, its CPU time is
 * in no other account, so it stays a member as long as its CPU clock can be read. Such members linger in the
 * order of their exits, and leave in it: a child that its parent has waited for leaves before the parent
 * does. */
#include "engine/internal.h"

#include <stdio.h>
#include <string.h>

#define DRAIN_SLOW (250 * NSEC_PER_MSEC)
#define DRAIN_FAST (10 * NSEC_PER_MSEC)
/* More events than this in one reading may overrun the smallest buffer of a kernel (208 KiB, about 1 KiB
 * each).
 */
#define MANY_EVENTS 60
/* An exit record can be read before the events of the same process, but not two readings before. */
#define AWAITED_HEARINGS 2
/* Names read in one hearing, at most; command lines between two looks. */
#define NAMES_MAX 64
#define COMMANDS_MAX 16

/* ---- looks between ticks ---- */

/* A job may leave the control group that was made for it: then the group does not count all of it. Once this
 * is known of one process, no other is checked. */
void member_check_inside(struct engine *e, const struct member *m)
{
	char path[32], text[4096];

	if (!e->cgroup || e->feed.outside || m->origin != e->tree.reaper_origin)
		return;
	snprintf(path, sizeof(path), "proc/%d/cgroup", (int)m->pid);
	if (env_peek(e->env, path, text, sizeof(text)) <= 0 || cgroup_holds(e->cgroup, text))
		return;
	e->feed.outside = 1;
	e->feed.cgroup_user_ns = e->feed.cgroup_system_ns = e->feed.cgroup_total_ns = -1;
}

bool member_read_stat(struct engine *e, pid_t pid, struct process_facts *ret)
{
	int64_t fields[STAT_FIELDS];
	char path[32], text[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	n = env_slurp(e->env, path, text, sizeof(text));
	return n > 0 && process_parse_stat(text, (size_t)n, fields, 33, ret);
}

/* Looks at the youngest members, which may be gone before the next tick: are they in the job's control group,
 * and do parents ignore SIGCHLD? At most this many, this often: some ten microseconds each. Events are read a
 * little less often, or much more often when there are many. */
#define LOOKS_MAX 16
#define LOOK_NS (200 * NSEC_PER_MSEC)
#define YOUNG_NS (2 * NSEC_PER_SEC)

static void members_look(struct engine *e)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);
	struct process_facts facts;

	if (now < e->look_ns)
		return;
	e->look_ns = now + LOOK_NS;
	e->commands_read = 0;
	for (uint32_t slot = e->tree.last, i = 0; slot != NO_SLOT && i < LOOKS_MAX; i++) {
		struct member *m = &e->tree.member[slot];

		if (m->bound && m->born_ns + YOUNG_NS < now)
			return;
		member_check_inside(e, m);
		if ((m->forks || !e->connector) && !m->ignored_sigchld && member_read_stat(e, m->pid, &facts))
			m->ignored_sigchld = facts.ignores_sigchld;
		slot = m->prev;
	}
}

/* ---- the kernel's events ---- */

static void name_helpers(struct engine *e)
{
	snprintf(e->helpers, sizeof(e->helpers), "%s%s%s", e->connector ? "connector" : "",
		e->connector && e->taskstats ? "," : "", e->taskstats ? "taskstats" : "");
	if (!*e->helpers)
		snprintf(e->helpers, sizeof(e->helpers), "none");
}

void events_open(struct engine *e)
{
	const char *why = NULL;

	bool follow = e->opt.children || e->tree.ask;

	if (follow && e->opt.help & HELP_CONNECTOR) {
		if (e->opt.attach)
			connector_open(&e->connector, &why);
		else
			connector_listen(
				&e->connector, &why); /* the fork of the job itself will be the proof */
	}
	if (follow && e->opt.help & HELP_TASKSTATS)
		taskstats_open(&e->taskstats, &why);
	name_helpers(e);
	e->drain_every_ns = DRAIN_SLOW;
	e->drain_ns = env_now(e->env, ENV_MONOTONIC) + e->drain_every_ns;
	if (!e->choice)
		events_filter(e);
}

void events_filter(struct engine *e)
{
	if (e->connector && !e->opt.attach)
		connector_filter(e->connector);
}

void events_prove(struct engine *e, pid_t job)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);

	if (!e->connector || connector_prove(e->connector, job, e->start_ns, now) == 0)
		return;
	/* No events arrive, as in another PID namespace: processes that began meanwhile must be searched
	 * for. */
	e->connector = connector_close(e->connector);
	e->need_scan = true;
	name_helpers(e);
}

void events_close(struct engine *e)
{
	e->connector = connector_close(e->connector);
	e->taskstats = taskstats_close(e->taskstats);
}

static void on_fork(struct engine *e, const struct kernel_event *event)
{
	uint32_t slot = tree_find(&e->tree, event->pid);

	if (slot != NO_SLOT) {
		struct member *m = &e->tree.member[slot];

		m->awaited = 0;
		/* Known already (from its exit record, a scan, or as our child), or a former process with
		 * this PID. */
		if (!m->ended || m->ended_ns >= event->time_ns)
			return;
		member_depart(e, slot, "event");
	}
	slot = tree_forked(&e->tree, event->parent, event->pid);
	if (slot != NO_SLOT) {
		struct member *parent = &e->tree.member[tree_find(&e->tree, event->parent)];

		parent->forks = true;
		e->tree.member[slot].born_ns = e->tree.member[slot].unwaited_ns = event->time_ns;
		memcpy(e->tree.member[slot].name, parent->name, sizeof(parent->name));
	}
}

/* Announces the new program at once, if it can still be read: the process may be gone before the next tick.
 * The next tick adds the rest. Not for a process that may have begun before the recording, nor for one that
 * may be forgotten again. */
static void announce_exec(struct engine *e, uint32_t slot)
{
	struct member *m = &e->tree.member[slot];
	bool known = m->bound ? !m->brief : m->unwaited_ns && !e->tree.ask;
	bool cut;

	if (!known || e->commands_read >= COMMANDS_MAX ||
		process_cmdline(e->env, m->pid, e->cmdline, sizeof(e->cmdline), &cut) <= 0)
		return;
	e->commands_read++;
	member_announce(e, slot);
	m->identity_stale = true;
}

/* It has become another program. Its name is read now if it is still there, but not for each of thousands.
 * Nothing to do if it was read, or announced, since then. */
static void on_exec(struct engine *e, uint32_t slot, int64_t time_ns)
{
	struct member *m = &e->tree.member[slot];
	bool known = time_ns < MAX(m->read_ns, m->announced_ns);
	char path[32], name[sizeof(m->name)];
	ssize_t n;

	m->identity_stale = true;
	m->replaced = m->announced;
	if (!known)
		member_succeeded(e, slot);
	if (m->bound ? known : m->pid == e->root) /* only we wait for the job: its name can still be read */
		return;
	if (!m->bound)
		m->name[0] = 0;
	if (++e->names_read > NAMES_MAX)
		return;
	snprintf(path, sizeof(path), "proc/%d/comm", (int)m->pid);
	n = env_peek(e->env, path, name, sizeof(name));
	if (n <= 0)
		return;
	name[n - 1] = 0;
	memcpy(m->name, name, sizeof(name));
	announce_exec(e, slot);
}

/* The scopes were asked about it and found that it is gone: its program is not known. */
static void count_unasked(struct engine *e)
{
	e->unasked += e->scopes->by_cmdline && !e->scopes->cmdline_len;
}

static void linger(struct engine *e, uint32_t slot)
{
	if (e->nr_lingering < e->tree.cap)
		e->lingering[e->nr_lingering++] = (struct slot_id){slot, e->tree.member[slot].id};
}

static void note_parent(struct member *m, pid_t parent)
{
	m->ppid = parent;
	m->parent_known = true;
}

static void on_event(struct engine *e, const struct kernel_event *event)
{
	uint32_t slot;

	if (event->type == KERNEL_FORK) {
		on_fork(e, event);
		return;
	}
	slot = tree_find(&e->tree, event->pid);
	if (event->type == KERNEL_EXEC && slot == NO_SLOT && e->tree.ask) {
		tree_reconsider(&e->tree, event->pid);
		count_unasked(e);
	}
	if (slot == NO_SLOT)
		return;
	if (event->type == KERNEL_EXEC) {
		if (member_reask(e, slot))
			on_exec(e, slot, event->time_ns);
		if (e->tree.ask)
			count_unasked(e);
		return;
	}
	e->tree.member[slot].ended = true;
	e->tree.member[slot].ended_ns = event->time_ns;
	e->tree.member[slot].status = event->status;
	e->tree.member[slot].has_status = true;
	if (event->parent > 0) /* its parent may not be the process that forked it */
		note_parent(&e->tree.member[slot], event->parent);
	linger(e, slot);
}

/* A process that is known only by its exit record keeps the groups that children inherit. Whether it was a
 * tool cannot be known any more: as a copy of its parent it was one, and then it most likely became another
 * program. False when it is in no group then. */
static bool keep_inherited(struct engine *e, uint32_t slot)
{
	uint64_t groups = e->tree.member[slot].groups;

	if (e->scopes)
		groups &= ~e->scopes->matching;
	if (groups)
		tree_set_groups(&e->tree, slot, groups);
	else
		member_forget(e, slot);
	return groups != 0;
}

/* It was in no sample, and its fork was not reported: it may have begun before the recording. A process that
 * ended before the last reading of events was reported there. */
static bool may_be_older(const struct engine *e, const struct member *m, const struct exit_record *r)
{
	if (!e->scopes || m->bound || m->unwaited_ns || m->origin == e->tree.reaper_origin)
		return false;
	return e->heard_ns - r->elapsed_ns < e->opened_ns;
}

static void on_record(struct engine *e, const struct exit_record *r)
{
	uint32_t slot = tree_find(&e->tree, r->tgid);
	struct member *m;

	if (slot == NO_SLOT) {
		slot = tree_forked(&e->tree, r->parent, r->tgid);
		/* A process that began before the recording is not counted as unknown. */
		e->unknown_ends += slot == NO_SLOT && r->tid == r->tgid &&
			env_now(e->env, ENV_MONOTONIC) - r->elapsed_ns >= e->start_ns;
		if (slot == NO_SLOT || (!e->connector && !keep_inherited(e, slot)))
			return;
		m = &e->tree.member[slot];
		m->born_ns -= MIN(r->elapsed_ns, m->born_ns);
		if (e->connector) {
			m->awaited = AWAITED_HEARINGS;
			e->awaits = true;
		}
		if (!e->connector) {
			m->ended = true;
			linger(e, slot);
		}
	}
	m = &e->tree.member[slot];
	m->late |= may_be_older(e, m, r);
	m->unwaited_ns = MAX(m->unwaited_ns, e->heard_ns);
	m->record.nr++;
	m->record.uid = r->uid;
	m->record.user_ns += r->user_ns;
	m->record.system_ns += r->system_ns;
	usage_add(&m->record.use, &r->use);
	m->record.peak_rss_bytes = MAX(m->record.peak_rss_bytes, r->peak_rss_bytes);
	if (r->tid != r->tgid)
		return;
	if (strcmp(m->name, r->name)) {
		snprintf(m->name, sizeof(m->name), "%s", r->name);
		m->identity_stale = true;
		member_succeeded(e, slot);
	}
	m->status = r->status;
	m->has_status = true;
	if (r->parent > 0 && !m->parent_known)
		note_parent(m, r->parent);
	if (!m->bound) /* else it counts for the user that it had at its last sample */
		member_follow_user(e, slot, r->uid);
}

static unsigned hear(struct engine *e)
{
	struct kernel_event event;
	struct exit_record record;
	unsigned heard = 0;
	int64_t now;
	int r;

	while (e->connector && (r = connector_next(e->connector, &event)) != 0) {
		if (r == -ENOBUFS) {
			e->feed.events_lost++;
			e->need_scan = true;
		} else if (r < 0) {
			break;
		} else {
			on_event(e, &event);
			heard++;
		}
	}
	now = env_now(e->env, ENV_MONOTONIC);
	while (e->taskstats && (r = taskstats_next(e->taskstats, &record)) != 0) {
		if (r == -ENOBUFS)
			e->feed.events_lost++;
		else if (r < 0)
			break;
		else {
			on_record(e, &record);
			heard++;
		}
	}
	e->heard_ns = now;
	return heard;
}

void events_hear(struct engine *e)
{
	if (e->taskstats)
		hear(e);
}

/* Members whose events did not come: the events were read before the process was a member (it ended while we
 * attached), or were lost. */
static void give_up_waiting(struct engine *e)
{
	bool awaits = false;

	tree_for_each (&e->tree, slot, after) {
		struct member *m = &e->tree.member[slot];

		if (!m->awaited)
			continue;
		if (--m->awaited)
			awaits = true;
		else if (keep_inherited(e, slot))
			member_depart(e, slot, "event");
	}
	e->awaits = awaits;
}

/* From the last exit to the first: when a parent is gone, so are the children that it waited for. */
static void depart_gone(struct engine *e)
{
	uint32_t nr = 0;

	for (uint32_t i = e->nr_lingering; i-- > 0;) {
		struct slot_id *l = &e->lingering[i];

		if (!still_here(e, l))
			l->id = 0;
		else
			e->tree.member[l->slot].gone = env_cpu_clock(e->env, e->tree.member[l->slot].pid) < 0;
	}
	for (uint32_t i = 0; i < e->nr_lingering; i++) {
		struct slot_id l = e->lingering[i];

		if (!l.id || !still_here(e, &l))
			continue;
		if (e->tree.member[l.slot].gone)
			member_depart(e, l.slot, "event");
		else
			e->lingering[nr++] = l;
	}
	e->nr_lingering = nr;
	members_settle(e);
}

void events_drain(struct engine *e)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);
	unsigned heard;

	if (!e->connector && !e->taskstats && !e->need_scan)
		return;
	e->names_read = 0;
	/* Exit records name the parent, so children of known processes are found. */
	if (!e->connector && e->taskstats && !e->tree.ask && now >= e->look_ns)
		tree_poll(&e->tree);
	heard = hear(e);
	members_look(e);
	depart_gone(e);
	if (e->awaits)
		give_up_waiting(e);
	if (e->need_scan) {
		e->need_scan = false;
		tree_scan(&e->tree);
	}
	if (heard > MANY_EVENTS)
		e->drain_every_ns = MAX(e->drain_every_ns / 2, DRAIN_FAST);
	else if (heard < MANY_EVENTS / 4)
		e->drain_every_ns = MIN(e->drain_every_ns * 2, DRAIN_SLOW);
	e->drain_ns = now + e->drain_every_ns;
	budget_worked(e);
}
