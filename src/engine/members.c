/* Members: how they enter the recording, what is said of them when they leave, and the exact account of what
 * the ended ones used.
 *
 * The account. At any moment the tree has used: the sum over live members of what each used itself and what
 * it got from the children it waited for, plus `gone`: what no live member accounts for. A process that
 *   - we reap (the command, and orphans that came home to us) enters `gone` with its rusage, which is exact
 * and includes its waited-for descendants;
 *   - a member reaps is in that member's children's time from then on: nothing to do;
 *   - is reaped by a stranger (the parent of an attached root, init) enters `gone` with its exit record where
 * the kernel gives one, else as last sampled;
 *   - had a parent that ignores SIGCHLD is dropped by the kernel: likewise, and counted in `dropped` so that
 * the total is known to be a lower bound. */
#include "engine/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

void member_joined(void *engine, uint32_t slot)
{
	struct engine *e = engine;

	(void)slot;
	e->feed.joined++;
	e->feed.live = e->tree.nr;
}

static void identity(struct engine *e, struct member *m)
{
	struct pairs *p = &e->pairs;
	bool cut = false;
	ssize_t n;
	uint32_t uid;

	pairs_reset(p);
	pairs_num(p, "pid", m->pid);
	pairs_num(p, "ppid", m->ppid);
	pairs_num(p, "start_ns", engine_time(e, m->born_ns));
	if (m->late)
		pairs_num(p, "late", 1);
	if (m->bound || !m->ended) { /* it can still be asked */
		n = process_cmdline(e->env, m->pid, e->cmdline, sizeof(e->cmdline), &cut);
		if (n > 0)
			pairs_add(p, "cmdline", e->cmdline, (size_t)n);
		if (cut)
			pairs_num(p, "cmdline_cut", 1);
		n = process_exe(e->env, m->pid, e->exe, sizeof(e->exe));
		if (n > 0)
			pairs_add(p, "exe", e->exe, (size_t)n);
		if (process_uid(e->env, m->pid, &uid) == 0)
			pairs_num(p, "uid", uid);
	} else if (m->record.nr) {
		pairs_num(p, "uid", m->record.uid);
	}
	pairs_str(p, "name", m->name);
}

void member_announce(struct engine *e, uint32_t slot)
{
	struct member *m = &e->tree.member[slot];

	identity(e, m);
	m->announced = true;
	m->identity_stale = false;
	e->sink.instance(e->sink.arg, e->process_set, m->bound ? slot : UINT32_MAX, m->id,
		engine_time(e, m->born_ns), &e->pairs);
}

/* When it began, by the kernel's own account: ticks after boot, on our clock. */
static int64_t start_time(struct engine *e, uint64_t start_ticks)
{
	int64_t since_boot = (int64_t)(start_ticks * (NSEC_PER_SEC / (uint64_t)e->env->clock_tick));

	return since_boot - env_now(e->env, ENV_BOOTTIME) + env_now(e->env, ENV_MONOTONIC);
}

static void learn(struct engine *e, struct member *m, const struct process_facts *facts)
{
	int64_t began, tick = NSEC_PER_SEC / e->env->clock_tick;

	if (!facts->has_stat)
		return;
	m->ppid = facts->ppid;
	m->zombie = facts->state == 'Z';
	if (strcmp(m->name, facts->name)) {
		memcpy(m->name, facts->name, sizeof(m->name));
		m->identity_stale = true; /* it has become another program */
	}
	e->children_grew |= facts->children_grew;
	m->waits |= facts->children_grew;
	if (m->announced)
		return;
	/* The kernel's start time is coarse: it only corrects what we noticed later than it can be wrong. */
	began = start_time(e, facts->start_ticks);
	if (began + tick < m->born_ns)
		m->born_ns = began;
}

int member_sample(struct engine *e, uint32_t slot, int64_t now, bool final)
{
	struct member *m = &e->tree.member[slot];
	/* Spread by slot, so that not all of a thousand are due in the same tick. */
	int64_t medium_ns = 5 * NSEC_PER_SEC * e->feed.backoff + (slot & 15) * NSEC_PER_SEC / 10;
	int64_t refresh_ns = 10 * NSEC_PER_SEC + (slot & 63) * NSEC_PER_SEC / 8;
	bool first = !m->bound, medium = first || final || now - m->status_read_ns >= medium_ns;
	enum process_effort effort = first || final ? READ_ALL
		: now - m->read_ns >= refresh_ns    ? READ_REFRESH
						    : READ_IF_MOVED;
	struct process_facts facts = {0};
	int64_t ignored;
	int r;

	if (first) {
		process_bind(e->processes, slot, m->pid);
		table_bind(&e->set[e->process_set].table, slot, m->id);
		m->bound = true;
	}
	r = process_read(e->processes, slot, medium, effort, &facts);
	if (r < 0) {
		if (first) { /* it was gone before its first sample */
			process_unbind(e->processes, slot);
			table_unbind(&e->set[e->process_set].table, slot);
			m->bound = false;
		}
		return -ESRCH;
	}
	if (r == 0)
		return 0;
	m->read_before_ns = m->read_ns;
	m->read_ns = now;
	m->pending_user_us = m->pending_system_us = 0;
	learn(e, m, &facts);
	if (facts.has_status) {
		m->status_read_ns = now;
		if (process_cell(e->processes, slot, "proc.signals.ignored", &ignored))
			m->ignores_sigchld = ignored >> (SIGCHLD - 1) & 1;
	}
	if (m->identity_stale)
		member_announce(e, slot);
	return 0;
}

static int64_t cell(struct engine *e, uint32_t slot, const char *metric)
{
	int64_t v;

	return process_cell(e->processes, slot, metric, &v) ? v : 0;
}

/* CPU of the process itself, from its last sample or its exit record, whichever saw more: never parts of
 * both. */
static void own_cpu_known(struct engine *e, uint32_t slot, struct usage *u)
{
	const struct member *m = &e->tree.member[slot];
	int64_t tick_us = 1000000 / e->env->clock_tick;

	if (m->bound) {
		u->system_us = cell(e, slot, "proc.cpu.system") * tick_us;
		/* The clock is exact, its split is not: what the ticks have not seen counts as user time. */
		u->user_us = MAX(cell(e, slot, "proc.cpu.user") * tick_us,
			cell(e, slot, "proc.cpu.time") - u->system_us);
	}
	if ((m->record.user_ns + m->record.system_ns) / 1000 > u->user_us + u->system_us) {
		u->user_us = m->record.user_ns / 1000;
		u->system_us = m->record.system_ns / 1000;
	}
}

/* What its last sample and its exit records say it used, with the children it waited for. */
static void last_known(struct engine *e, uint32_t slot, struct usage *u)
{
	const struct member *m = &e->tree.member[slot];
	int64_t tick_us = 1000000 / e->env->clock_tick;

	*u = (struct usage){0};
	own_cpu_known(e, slot, u);
	if (m->bound) {
		u->user_us += cell(e, slot, "proc.cpu.children_user") * tick_us;
		u->system_us += cell(e, slot, "proc.cpu.children_system") * tick_us;
		u->minor_faults =
			cell(e, slot, "proc.faults.minor") + cell(e, slot, "proc.faults.children_minor");
		u->major_faults =
			cell(e, slot, "proc.faults.major") + cell(e, slot, "proc.faults.children_major");
		u->voluntary_switches = cell(e, slot, "proc.switches.voluntary");
		u->involuntary_switches = cell(e, slot, "proc.switches.involuntary");
		u->read_chars = cell(e, slot, "proc.io.read_chars");
		u->write_chars = cell(e, slot, "proc.io.write_chars");
		u->read_calls = cell(e, slot, "proc.io.read_calls");
		u->write_calls = cell(e, slot, "proc.io.write_calls");
		u->read_bytes = cell(e, slot, "proc.io.read_bytes");
		u->write_bytes = cell(e, slot, "proc.io.write_bytes");
	}
	if (!m->record.nr)
		return;
	u->minor_faults = MAX(u->minor_faults, m->record.minor_faults);
	u->major_faults = MAX(u->major_faults, m->record.major_faults);
	u->voluntary_switches = MAX(u->voluntary_switches, m->record.voluntary_switches);
	u->involuntary_switches = MAX(u->involuntary_switches, m->record.involuntary_switches);
	u->read_chars = MAX(u->read_chars, m->record.read_chars);
	u->write_chars = MAX(u->write_chars, m->record.write_chars);
	u->read_calls = MAX(u->read_calls, m->record.read_calls);
	u->write_calls = MAX(u->write_calls, m->record.write_calls);
	u->read_bytes = MAX(u->read_bytes, m->record.read_bytes);
	u->write_bytes = MAX(u->write_bytes, m->record.write_bytes);
}

static void usage_add(struct usage *to, const struct usage *u)
{
	to->user_us += u->user_us;
	to->system_us += u->system_us;
	to->minor_faults += u->minor_faults;
	to->major_faults += u->major_faults;
	to->voluntary_switches += u->voluntary_switches;
	to->involuntary_switches += u->involuntary_switches;
	to->read_chars += u->read_chars;
	to->write_chars += u->write_chars;
	to->read_calls += u->read_calls;
	to->write_calls += u->write_calls;
	to->read_bytes += u->read_bytes;
	to->write_bytes += u->write_bytes;
}

/* Says that it is gone, and frees its slot. max_rss_kib 0: not known. */
static void farewell(struct engine *e, uint32_t slot, const char *how, int64_t max_rss_kib, int64_t ended_ns)
{
	struct member *m = &e->tree.member[slot];
	struct pairs *p = &e->pairs;
	bool sampled = m->bound;
	int64_t v;

	if (!m->announced)
		member_announce(e, slot);
	pairs_reset(p);
	pairs_str(p, "how", how);
	pairs_num(p, "sampled", sampled);
	if (m->has_status)
		pairs_num(p, "status", m->status);
	if (sampled && process_cell(e->processes, slot, "proc.cpu.time", &v))
		pairs_num(p, "cpu_ns", MAX(v * 1000, m->record.user_ns + m->record.system_ns));
	else if (m->record.nr)
		pairs_num(p, "cpu_ns", m->record.user_ns + m->record.system_ns);
	if (sampled || m->record.nr) {
		struct usage u;

		last_known(e, slot, &u);
		pairs_num(p, "read_chars", u.read_chars);
		pairs_num(p, "write_chars", u.write_chars);
		pairs_num(p, "read_bytes", u.read_bytes);
		pairs_num(p, "write_bytes", u.write_bytes);
	}
	if (m->record.nr) {
		pairs_num(p, "user_us", m->record.user_ns / 1000);
		pairs_num(p, "system_us", m->record.system_ns / 1000);
	} else if (sampled) {
		pairs_num(p, "user_us", cell(e, slot, "proc.cpu.user") * (1000000 / e->env->clock_tick));
		pairs_num(p, "system_us", cell(e, slot, "proc.cpu.system") * (1000000 / e->env->clock_tick));
	}
	if (max_rss_kib > 0)
		pairs_num(p, "max_rss_kib", max_rss_kib);
	e->sink.gone(
		e->sink.arg, e->process_set, sampled ? slot : UINT32_MAX, m->id, engine_time(e, ended_ns), p);
	e->feed.exited++;
	if (sampled) {
		process_unbind(e->processes, slot);
		table_unbind(&e->set[e->process_set].table, slot);
	} else {
		e->feed.unsampled++;
	}
	tree_remove(&e->tree, slot);
	e->feed.live = e->tree.nr;
}

/* Has the parent, a member, not taken over what the child used? One that ignores SIGCHLD says so in its mask;
 * one that asked with SA_NOCLDWAIT can only be caught: its child is gone, and its account of children never
 * grew. A child that had neither a page fault nor a clock tick would leave no trace either way, and proves
 * nothing. */
static bool parent_drops(struct engine *e, uint32_t parent, uint32_t child, const struct usage *used)
{
	struct member *p = &e->tree.member[parent], *c = &e->tree.member[child];
	int64_t since = p->read_before_ns ? p->read_before_ns : p->read_ns;

	if (p->ignores_sigchld || p->waits)
		return p->ignores_sigchld;
	/* It must have lived when the parent's account was read, so that the account had to grow since. */
	if (!p->bound || MAX(c->born_ns, c->read_ns) < since || (!c->bound && !c->record.nr))
		return false;
	if (!used->minor_faults && used->user_us + used->system_us < 20000)
		return false;
	if (member_sample(e, parent, env_now(e->env, ENV_MONOTONIC), true) < 0)
		return false; /* gone with its child: then it had its chance to wait */
	p->ignores_sigchld = !p->waits;
	return p->ignores_sigchld;
}

void member_depart(struct engine *e, uint32_t slot, const char *how)
{
	struct member *m = &e->tree.member[slot];
	uint32_t parent = tree_find(&e->tree, m->ppid);
	int64_t peak_kib = m->record.peak_rss_bytes / 1024;
	struct usage u;
	bool dropped;

	last_known(e, slot, &u);
	e->children_grew |= m->waits; /* nobody saw whom it waited for in its last moments */
	dropped = parent != NO_SLOT && parent_drops(e, parent, slot, &u);
	u.user_us += m->pending_user_us;
	u.system_us += m->pending_system_us;
	if (parent == NO_SLOT || dropped) {
		usage_add(&e->feed.gone, &u);
	} else if (!m->ended_ns || m->ended_ns > e->tree.member[parent].read_ns) {
		e->tree.member[parent].pending_user_us += u.user_us;
		e->tree.member[parent].pending_system_us += u.system_us;
	}
	if (dropped)
		e->feed.dropped_us += u.user_us + u.system_us;
	if (m->bound)
		peak_kib = MAX(peak_kib, cell(e, slot, "proc.mem.hwm"));
	e->feed.gone_max_rss_kib = MAX(e->feed.gone_max_rss_kib, peak_kib);
	farewell(e, slot, m->record.nr ? "exit-record" : how, peak_kib,
		m->ended_ns ? m->ended_ns : env_now(e->env, ENV_MONOTONIC));
}

static void usage_from_rusage(struct usage *u, const struct rusage *ru)
{
	u->user_us = ru->ru_utime.tv_sec * INT64_C(1000000) + ru->ru_utime.tv_usec;
	u->system_us = ru->ru_stime.tv_sec * INT64_C(1000000) + ru->ru_stime.tv_usec;
	u->minor_faults = ru->ru_minflt;
	u->major_faults = ru->ru_majflt;
	u->voluntary_switches = ru->ru_nvcsw;
	u->involuntary_switches = ru->ru_nivcsw;
	/* In 512-byte blocks; the files of /proc may have been closed to us. */
	u->read_bytes = MAX(u->read_bytes, ru->ru_inblock * INT64_C(512));
	u->write_bytes = MAX(u->write_bytes, ru->ru_oublock * INT64_C(512));
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

/* Descendants that were waited for and that no tick has missed yet are in the account of the one that is
 * about to be reaped: they leave first, while their parents are still here to be found. */
static void depart_descendants(struct engine *e, pid_t pid)
{
	for (uint32_t slot = e->tree.last, before; slot != NO_SLOT; slot = before) {
		before = e->tree.member[slot].prev;
		if (descends_from(e, slot, pid) && env_cpu_clock(e->env, e->tree.member[slot].pid) < 0)
			member_depart(e, slot, "noticed");
	}
}

/* Whoever exec'ed us may have left us children of its own: they are older than the job, and none of it. */
static bool is_older(struct engine *e, pid_t pid)
{
	int64_t fields[STAT_FIELDS], tick = NSEC_PER_SEC / e->env->clock_tick;
	struct process_facts facts;
	char path[32], text[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	n = env_slurp(e->env, path, text, sizeof(text));
	return n > 0 && process_parse_stat(text, (size_t)n, fields, 22, &facts) &&
		start_time(e, facts.start_ticks) + tick < e->start_ns;
}

/* A child of ours has ended and waits for us: its files can be read for the last time, then it is reaped. */
void member_reap(struct engine *e, pid_t pid)
{
	uint32_t slot = tree_find(&e->tree, pid);
	struct rusage ru;
	struct usage u;
	int64_t peak_kib;
	int status;

	if (slot == NO_SLOT && e->tree.children && !is_older(e, pid) &&
		tree_add(&e->tree, pid, e->tree.self, &slot) < 0)
		slot = NO_SLOT;
	if (slot != NO_SLOT) {
		depart_descendants(e, pid);
		member_sample(e, slot, env_now(e->env, ENV_MONOTONIC), true);
		last_known(e, slot, &u);
	}
	if (wait4(pid, &status, 0, &ru) != pid)
		return;
	if (pid == e->root) {
		e->root_ended = true;
		e->root_status = status;
	}
	if (slot == NO_SLOT)
		return;
	if (e->opt.children)
		usage_from_rusage(&u, &ru);
	usage_add(&e->feed.gone, &u);
	/* Before its exec the job was a copy of us, and the kernel remembers: a peak no larger than ours may
	 * be ours. */
	peak_kib = ru.ru_maxrss > e->own_rss_kib ? ru.ru_maxrss : cell(e, slot, "proc.mem.hwm");
	e->feed.gone_max_rss_kib = MAX(e->feed.gone_max_rss_kib, peak_kib);
	e->tree.member[slot].status = status;
	e->tree.member[slot].has_status = true;
	farewell(e, slot, "reaped", peak_kib, env_now(e->env, ENV_MONOTONIC));
}

void engine_reap(struct engine *e)
{
	/* Forks come before exits: an orphan is known before it, or the one that left it, is reaped. */
	find_new_members(e);
	for (;;) {
		siginfo_t info = {0};

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
			return;
		member_reap(e, info.si_pid);
	}
}
