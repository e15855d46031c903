/* For which threads counters are open, so that every thread of the job is counted once.
 *
 * A counter is inherited by the threads and processes that its task makes from then on, and by theirs; what
 * they counted is part of its own value, also when they are gone. So
 *   - the command we start gets one set of counters, before its exec: all of the job is below it;
 *   - a process that ran before us gets one set for each of its threads, which covers their children;
 *   - a process that came later is covered by inheritance when the first of its line (its oldest known
 * ancestor) was covered before it began. Else it gets counters of its own: a process that was known when the
 * first of its line was covered began before that. A counter must stay open as long as any process may be
 * below it, also when its own task is gone: closing it ends the counting of all. So a line's counters are
 * closed together, when its last process is gone.
 *
 * A thread may start a thread or process while counters are being opened for it (some microseconds for each).
 * This cannot be seen from outside: such children may be covered or not. When a process has new threads after
 * its counters were opened, all of them are opened again, until none came meanwhile. Of a program that starts
 * threads faster than that, and of processes, they are taken for covered: what is missed shows in the share
 * of the CPU time that was counted, what is counted twice would look like work. */
#include "collect/perf.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NONE UINT32_MAX
#define UNITS_MAX 65536
#define THREADS_MAX 65536
#define TRIES_MAX 5

struct perf_tasks_unit {
	uint32_t id, origin; /* of the process; of the first of its line */
	uint32_t first;	     /* its threads' counters: a list */
	uint32_t pass, seen; /* when it was covered, when a process of it was last seen */
	bool family;	     /* its children are covered as well */
	int64_t began_ns;
};

static void *lazy(size_t size)
{
	void *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Where only user mode may be counted this is found out once, rather than for every counter. */
static void settle_mode(struct tasks *t)
{
	static const struct perf_event task_clock = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
	struct counter trial;

	if (counter_open(t->env, &task_clock, 0, -1, INHERIT_NONE, false, &trial, &t->user_only) == 0)
		counter_close(t->env, &trial);
	for (unsigned i = 0; i < t->nr_pieces && t->user_only; i++) {
		struct perf_event *e = &t->piece[i].event;

		if (e->in_kernel || e->exclude_user)
			t->piece[i].error = -EACCES;
		e->exclude_kernel = true;
	}
}

int tasks_init(struct tasks *t, struct env *env, unsigned max_files)
{
	t->env = env;
	t->free = NONE;
	t->pass = 1;
	t->max_threads = max_files / MAX(t->nr_pieces, 1u);
	t->counter = lazy((size_t)t->max_threads * t->nr_pieces * sizeof(*t->counter) + 1);
	t->next = lazy((size_t)t->max_threads * sizeof(*t->next) + 1);
	t->unit = lazy((size_t)UNITS_MAX * sizeof(*t->unit));
	t->scratch = lazy((size_t)THREADS_MAX * sizeof(*t->scratch));
	if (!t->counter || !t->next || !t->unit || !t->scratch) {
		tasks_release(t);
		return -ENOMEM;
	}
	settle_mode(t);
	return 0;
}

static struct counter *counters_of(struct tasks *t, uint32_t thread)
{
	return t->counter + (size_t)thread * t->nr_pieces;
}

/* Closes the counters of a thread; what they counted is kept unless the thread is to be forgotten. */
static void close_thread(struct tasks *t, uint32_t thread, bool keep)
{
	struct counter *c = counters_of(t, thread);

	for (unsigned i = 0; i < t->nr_pieces; i++) {
		if (c[i].handle < 0)
			continue;
		if (keep) {
			counter_read(t->env, &c[i]);
			t->piece[i].gone.value += c[i].count.value;
			t->piece[i].gone.enabled_ns += c[i].count.enabled_ns;
			t->piece[i].gone.running_ns += c[i].count.running_ns;
		}
		counter_close(t->env, &c[i]);
	}
	t->next[thread] = t->free;
	t->free = thread;
}

static void close_unit(struct tasks *t, struct perf_tasks_unit *u)
{
	while (u->first != NONE) {
		uint32_t thread = u->first;

		u->first = t->next[thread];
		close_thread(t, thread, true);
	}
}

void tasks_release(struct tasks *t)
{
	for (uint32_t i = 0; t->unit && i < t->nr_units; i++)
		close_unit(t, &t->unit[i]);
	if (t->counter)
		munmap(t->counter, (size_t)t->max_threads * t->nr_pieces * sizeof(*t->counter) + 1);
	if (t->next)
		munmap(t->next, (size_t)t->max_threads * sizeof(*t->next) + 1);
	if (t->unit)
		munmap(t->unit, (size_t)UNITS_MAX * sizeof(*t->unit));
	if (t->scratch)
		munmap(t->scratch, (size_t)THREADS_MAX * sizeof(*t->scratch));
	t->counter = NULL;
	t->next = NULL;
	t->unit = NULL;
	t->scratch = NULL;
}

static int take_slot(struct tasks *t, uint32_t *ret)
{
	struct counter *c;

	if (t->free == NONE && t->high == t->max_threads)
		return -EMFILE;
	*ret = t->free != NONE ? t->free : t->high++;
	if (t->free != NONE)
		t->free = t->next[*ret];
	c = counters_of(t, *ret);
	for (unsigned i = 0; i < t->nr_pieces; i++)
		c[i] = (struct counter){.handle = -1};
	return 0;
}

static int open_piece(struct tasks *t, struct perf_piece *p, pid_t tid, enum counter_inherit inherit,
	bool exec, struct counter *ret)
{
	bool user_only = false;
	int r;

	if (inherit == INHERIT_THREADS && t->keeps_threads)
		inherit = INHERIT_NONE;
	r = counter_open(t->env, &p->event, tid, -1, inherit, exec, ret, &user_only);
	if (r == -EINVAL && inherit == INHERIT_THREADS) {
		r = counter_open(t->env, &p->event, tid, -1, INHERIT_NONE, exec, ret, &user_only);
		t->keeps_threads |= r == 0;
	}
	p->opened |= r == 0;
	t->user_only |= r == 0 && user_only && !p->event.exclude_kernel;
	return r;
}

/* Errors of the event itself: it is not tried again. The others are errors of this thread, or of our
 * limits. */
static bool is_of_event(int error)
{
	return error != -ESRCH && error != -EMFILE && error != -ENFILE && error != -ENOMEM &&
		error != -EACCES && error != -EPERM;
}

/* All or nothing: events that are counted for different threads could not be compared. */
static int open_thread(
	struct tasks *t, struct perf_tasks_unit *u, pid_t tid, enum counter_inherit inherit, bool exec)
{
	uint32_t thread;
	int r = take_slot(t, &thread);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < t->nr_pieces; i++) {
		struct perf_piece *p = &t->piece[i];

		r = p->error ? 0 : open_piece(t, p, tid, inherit, exec, &counters_of(t, thread)[i]);
		if (r < 0 && !is_of_event(r)) {
			close_thread(t, thread, false);
			return r;
		}
		if (r < 0 && !p->opened)
			p->error = r;
	}
	t->next[thread] = u->first;
	u->first = thread;
	return 0;
}

/* ESRCH is no trouble: there is nothing left to count. */
static void note_trouble(struct tasks *t, int error)
{
	if (is_refused(error))
		t->denied = error;
	else if (error < 0 && error != -ESRCH)
		t->full = error;
}

static struct perf_tasks_unit *add_unit(struct tasks *t, uint32_t id, uint32_t origin, bool family)
{
	struct perf_tasks_unit *u;

	if (t->nr_units == UNITS_MAX) {
		t->full = -EMFILE;
		return NULL;
	}
	u = &t->unit[t->nr_units++];
	*u = (struct perf_tasks_unit){.id = id,
		.origin = origin,
		.first = NONE,
		.pass = t->pass,
		.seen = t->pass,
		.family = family,
		.began_ns = env_now(t->env, ENV_MONOTONIC)};
	return u;
}

void tasks_command(struct tasks *t, pid_t pid, bool children)
{
	struct perf_tasks_unit *u = add_unit(t, 0, 0, children);

	t->command = pid;
	note_trouble(t, open_thread(t, u, pid, children ? INHERIT_ALL : INHERIT_THREADS, true));
}

static int list_thread(void *arg, const char *name)
{
	struct tasks *t = arg;
	long tid = strtol(name, NULL, 10);

	if (tid > 0 && t->nr_scratch < THREADS_MAX)
		t->scratch[t->nr_scratch++] = (pid_t)tid;
	return 0;
}

/* 1: it was not there when the threads were listed. The kernel lists them in one order, that of their births;
 * another one would look new, which costs a try. */
static int find_new_thread(void *arg, const char *name)
{
	struct tasks *t = arg;
	long tid = strtol(name, NULL, 10);

	while (tid > 0 && t->at_scratch < t->nr_scratch && t->scratch[t->at_scratch] != tid)
		t->at_scratch++;
	return tid > 0 && t->nr_scratch < THREADS_MAX && t->at_scratch == t->nr_scratch;
}

/* Its threads are listed before the first counter is opened: later threads are started by one that has
 * counters, mostly by the main thread, which is therefore first. -EAGAIN: one was started by a thread that
 * had none yet. */
static int open_threads(
	struct tasks *t, struct perf_tasks_unit *u, const char *path, pid_t pid, enum counter_inherit inherit)
{
	int r;

	t->nr_scratch = t->at_scratch = 0;
	if (env_list(t->env, path, list_thread, t) < 0)
		return -ESRCH;
	u->began_ns = env_now(t->env, ENV_MONOTONIC);
	r = open_thread(t, u, pid, inherit, false);
	/* A main thread that has ended leaves the others behind. */
	for (uint32_t i = 0; i < t->nr_scratch && (r == 0 || r == -ESRCH); i++)
		if (t->scratch[i] != pid)
			r = open_thread(t, u, t->scratch[i], inherit, false);
	if (r < 0 && r != -ESRCH)
		return r;
	return env_list(t->env, path, find_new_thread, t) == 1 ? -EAGAIN : r;
}

static void cover(struct tasks *t, const struct collect_member *m)
{
	enum counter_inherit inherit = m->family ? INHERIT_ALL : INHERIT_THREADS;
	struct perf_tasks_unit *u = add_unit(t, m->id, m->origin, m->family);
	char path[32];
	int r;

	if (!u)
		return;
	snprintf(path, sizeof(path), "proc/%d/task", (int)m->pid);
	r = open_threads(t, u, path, m->pid, inherit);
	for (unsigned i = 1; i < TRIES_MAX && r == -EAGAIN; i++) {
		close_unit(t, u);
		r = open_threads(t, u, path, m->pid, inherit);
	}
	note_trouble(t, r == -EAGAIN ? 0 : r);
}

/* The place of the first unit whose id is not less. */
static uint32_t find_place(const struct tasks *t, uint32_t id)
{
	uint32_t from = 0, to = t->nr_units;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (t->unit[middle].id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct perf_tasks_unit *find_unit(const struct tasks *t, uint32_t id)
{
	uint32_t at = find_place(t, id);

	return at < t->nr_units && t->unit[at].id == id ? &t->unit[at] : NULL;
}

static bool is_covered(
	const struct tasks *t, const struct collect_member *m, const struct perf_tasks_unit *origin)
{
	int64_t tick = NSEC_PER_SEC / t->env->clock_tick; /* how coarse start times may be */

	if (!origin || !origin->family)
		return false;
	if (origin->id == m->id)
		return true;
	/* A process that is new together with the first of its line was known before that one was covered. */
	return origin->pass != t->pass && m->born_ns + tick >= origin->began_ns;
}

static int follow_member(void *arg, const struct collect_member *m)
{
	struct tasks *t = arg;
	struct perf_tasks_unit *origin = find_unit(t, m->origin), *own;

	if (m->id > t->last_id) {
		t->last_id = m->id;
		if (!is_covered(t, m, origin) && !find_unit(t, m->id))
			cover(t, m);
		origin = find_unit(t, m->origin);
	}
	own = m->id == m->origin ? origin : find_unit(t, m->id);
	if (origin)
		origin->seen = t->pass;
	if (own)
		own->seen = t->pass;
	return 0;
}

/* Closes the counters of lines that have no process any more. */
static void give_up(struct tasks *t)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_units; i++) {
		struct perf_tasks_unit *u = &t->unit[i],
				       *origin = u->id == u->origin ? u : find_unit(t, u->origin);

		if (u->seen != t->pass && origin && origin->seen == t->pass)
			u->seen = t->pass;
	}
	for (uint32_t i = 0; i < t->nr_units; i++) {
		/* Orphans of our command may be adopted by us at any time. */
		if (t->unit[i].seen == t->pass || (t->command && i == 0))
			t->unit[nr++] = t->unit[i];
		else
			close_unit(t, &t->unit[i]);
	}
	t->nr_units = nr;
}

void tasks_follow(struct tasks *t, struct collect_context *ctx)
{
	t->pass++;
	if (t->command && !t->unit[0].id && ctx->feed->root == t->command)
		t->unit[0].id = t->unit[0].origin = ctx->feed->root_id;
	ctx->members(ctx, follow_member, t);
	give_up(t);
}

static void add_counters(struct tasks *t, uint32_t thread)
{
	struct counter *c = counters_of(t, thread);

	for (unsigned i = 0; i < t->nr_pieces; i++) {
		struct count *sum = &t->piece[i].sum;

		if (c[i].handle < 0)
			continue;
		counter_read(t->env, &c[i]);
		sum->value += c[i].count.value;
		sum->enabled_ns += c[i].count.enabled_ns;
		sum->running_ns += c[i].count.running_ns;
	}
}

void tasks_read(struct tasks *t)
{
	for (unsigned i = 0; i < t->nr_pieces; i++)
		t->piece[i].sum = t->piece[i].gone;
	for (uint32_t i = 0; i < t->nr_units; i++)
		for (uint32_t thread = t->unit[i].first; thread != NONE; thread = t->next[thread])
			add_counters(t, thread);
}
