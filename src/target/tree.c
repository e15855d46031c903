/* Finds the processes of the job and keeps them: see tree.h. */
#include "target/tree.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* After a wrap the kernel goes on here (RESERVED_PIDS). */
#define FIRST_PID_AFTER_WRAP 300
/* No machine forks faster than this: in less time than it takes to use up all PIDs at this rate, they cannot
 * have wrapped around. */
#define FORK_NS 2000
/* With fewer PIDs than this they may have wrapped around at the first poll: forks are counted from the
 * start. */
#define FEW_PIDS 8192
/* Chains of parents longer than this are damage. */
#define MAX_DEPTH 1000
/* For this many ticks after it was first seen, a process that is no member is looked at again. */
#define YOUNG_LOOKS 4

static size_t memory_size(const struct tree *t)
{
	size_t pids = (size_t)t->pid_max + 1;

	return t->cap * (sizeof(struct member) + sizeof(uint32_t)) + pids * 3 * sizeof(int32_t);
}

/* All arrays in one mapping, of which only what is written becomes real. */
static int make_memory(struct tree *t)
{
	size_t pids = (size_t)t->pid_max + 1;
	void *p = mmap(NULL, memory_size(t), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	t->member = p;
	t->free_slot = (uint32_t *)(t->member + t->cap);
	t->slot_of = t->free_slot + t->cap;
	t->parent_of = (int32_t *)(t->slot_of + pids);
	t->scanned = t->parent_of + pids;
	return 0;
}

static pid_t read_pid_max(struct env *env)
{
	char text[32];
	uint64_t v;
	ssize_t n = env_peek(env, "proc/sys/kernel/pid_max", text, sizeof(text));

	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = 0;
	if (n > 0 && parse_u64(text, &v) && v >= 300 && v <= PID_LIMIT)
		return (pid_t)v;
	return PID_LIMIT;
}

int tree_init(struct tree *t, struct env *env, uint32_t cap)
{
	*t = (struct tree){
		.env = env,
		.cap = cap,
		.first = NO_SLOT,
		.last = NO_SLOT,
		.next_id = 1,
		.pid_max = read_pid_max(env),
		.self = env->live ? getpid() : 0,
		.inheriting = UINT64_MAX,
		.loadavg = -1,
		.stat = -1,
	};
	if (make_memory(t) < 0) {
		tree_release(t);
		return -ENOMEM;
	}
	if (env->live)
		t->loadavg = env_open(env, "proc/loadavg");
	return 0;
}

void tree_release(struct tree *t)
{
	if (t->member)
		munmap(t->member, memory_size(t));
	if (t->env && t->loadavg >= 0)
		env_close(t->env, t->loadavg);
	if (t->env && t->stat >= 0)
		env_close(t->env, t->stat);
	*t = (struct tree){.first = NO_SLOT, .last = NO_SLOT, .loadavg = -1, .stat = -1};
}

static bool is_ours(const struct tree *t, pid_t pid)
{
	for (unsigned i = 0; i < t->nr_beside; i++)
		if (t->beside[i] == pid)
			return true;
	return pid == t->self || (t->helper && pid == t->helper);
}

/* The first known ancestor of it; 0: it is the first itself. */
static uint32_t origin_of(const struct tree *t, pid_t ppid)
{
	uint32_t parent = tree_find(t, ppid);

	if (parent != NO_SLOT && t->member[parent].groups & t->inheriting)
		return t->member[parent].origin;
	return t->reaper && ppid == t->reaper ? t->reaper_origin : 0;
}

int tree_add(struct tree *t, pid_t pid, pid_t ppid, uint64_t groups, uint32_t *ret_slot)
{
	uint32_t slot;

	if (pid <= 0 || pid > t->pid_max)
		return -ESRCH;
	if (t->slot_of[pid] || is_ours(t, pid))
		return -EEXIST;
	if (!t->nr_free && t->high == t->cap) {
		t->overflow++;
		return -ENOSPC;
	}
	slot = t->nr_free ? t->free_slot[--t->nr_free] : t->high++;
	t->member[slot] = (struct member){
		.pid = pid,
		.ppid = ppid,
		.groups = groups,
		.id = t->next_id++,
		.next = NO_SLOT,
		.prev = t->last,
		.born_ns = env_now(t->env, ENV_MONOTONIC),
		.identity_stale = true,
		.regrouped = true,
		.had_parent = tree_find(t, ppid) != NO_SLOT,
	};
	t->member[slot].origin = origin_of(t, ppid);
	if (!t->member[slot].origin)
		t->member[slot].origin = t->member[slot].id;
	if (t->last != NO_SLOT)
		t->member[t->last].next = slot;
	else
		t->first = slot;
	t->last = slot;
	t->slot_of[pid] = slot + 1;
	t->nr++;
	*ret_slot = slot;
	if (t->joined)
		t->joined(t->arg, slot);
	if (t->regrouped)
		t->regrouped(t->arg, slot, 0);
	return 0;
}

void tree_set_groups(struct tree *t, uint32_t slot, uint64_t groups)
{
	uint64_t before = t->member[slot].groups;

	if (before == groups)
		return;
	t->member[slot].groups = groups;
	t->member[slot].identity_stale = t->member[slot].regrouped = true;
	if (t->regrouped)
		t->regrouped(t->arg, slot, before);
}

void tree_remove(struct tree *t, uint32_t slot)
{
	struct member *m = &t->member[slot];

	if (m->prev != NO_SLOT)
		t->member[m->prev].next = m->next;
	else
		t->first = m->next;
	if (m->next != NO_SLOT)
		t->member[m->next].prev = m->prev;
	else
		t->last = m->prev;
	t->slot_of[m->pid] = 0;
	t->free_slot[t->nr_free++] = slot;
	t->nr--;
}

uint32_t tree_forked(struct tree *t, pid_t parent, pid_t child)
{
	uint32_t slot, from = tree_find(t, parent);

	if ((!t->inheriting && !t->ask) || from == NO_SLOT)
		return NO_SLOT;
	return tree_add(t, child, parent, t->member[from].groups, &slot) < 0 ? NO_SLOT : slot;
}

/* Parent and session of a process: fields 4 and 6 of its stat, behind the name, which may hold anything. */
static bool read_parent(struct tree *t, pid_t pid, pid_t *ret_ppid, pid_t *ret_session)
{
	char path[32], text[1024], *at, state;
	int ppid, group, session;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	n = env_slurp(t->env, path, text, sizeof(text));
	at = n > 0 ? memrchr(text, ')', (size_t)n) : NULL;
	if (!at || sscanf(at + 1, " %c %d %d %d", &state, &ppid, &group, &session) != 4)
		return false;
	*ret_ppid = ppid;
	*ret_session = session;
	t->process_group = group;
	return true;
}

/* The user and control group of a process, as one number; 0 when they cannot be read. */
static uint64_t owner_of(struct tree *t, pid_t pid)
{
	char path[32], text[4096];
	const char *uid;
	uint64_t hash;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/status", (int)pid);
	n = env_slurp(t->env, path, text, sizeof(text));
	uid = n > 0 ? strstr(text, "\nUid:") : NULL;
	if (!uid)
		return 0;
	hash = hash_bytes(uid, 1 + strcspn(uid + 1, "\n"));
	snprintf(path, sizeof(path), "proc/%d/cgroup", (int)pid);
	n = env_slurp(t->env, path, text, sizeof(text));
	return n < 0 ? 0 : (hash * 31 + hash_bytes(text, (size_t)n)) | 1;
}

static struct tree_owner *find_owner(struct tree *t, uint64_t hash)
{
	for (uint32_t i = 0; i < t->nr_owners; i++)
		if (t->owner[i].hash == hash)
			return &t->owner[i];
	return NULL;
}

static bool is_above(const struct tree *t, pid_t pid)
{
	for (uint32_t i = 0; i < t->nr_above; i++)
		if (t->above[i] == pid)
			return true;
	return pid == 1;
}

/* The same PID is looked at in more than one poll. */
static uint64_t escape(struct tree *t, pid_t pid)
{
	t->escaped += t->escaped_pid[pid % CURSOR_OVERLAP] != pid;
	t->escaped_pid[pid % CURSOR_OVERLAP] = pid;
	return 0;
}

/* An attached tree's orphans go to init, or to an ancestor that adopts (a subreaper). One that was born since
 * we attached, and has the user and control group of a root, most likely comes from the tree if its process
 * group is a member's, or if its session was made since by a process that has ended: daemons are made so.
 * That is evidence and no proof, so such members are counted. One with the same owner and without this
 * evidence may have come from the tree as well: it counts as escaped. */
static uint64_t orphaned(struct tree *t, pid_t pid, pid_t ppid, pid_t session, pid_t group)
{
	pid_t above, above_session = 0;
	const struct tree_owner *owner;
	uint64_t hash, groups = 0;
	uint32_t slot;

	if (t->reaper || !t->nr_owners || !is_above(t, ppid))
		return 0;
	/* Init may have started it or adopted it; another ancestor with the same session is no subreaper, but
	 * a shell. */
	if (ppid != 1 && read_parent(t, ppid, &above, &above_session) && above_session == session)
		return 0;
	hash = owner_of(t, pid);
	if (!hash) /* it has just ended */
		return escape(t, pid);
	owner = find_owner(t, hash);
	if (!owner)
		return 0;
	slot = tree_find(t, group);
	if (slot != NO_SLOT)
		groups = t->member[slot].groups & t->inheriting;
	else if (!owner->ambiguous && session != pid && session > t->attached_at &&
		env_cpu_clock(t->env, session) < 0)
		groups = owner->groups;
	return groups ? groups : escape(t, pid);
}

static uint64_t groups_of(const struct tree *t, pid_t pid)
{
	uint32_t slot = tree_find(t, pid);

	return slot == NO_SLOT ? 0 : t->member[slot].groups;
}

/* The groups it has from its parent. */
static uint64_t inherited(const struct tree *t, pid_t ppid, pid_t session)
{
	uint64_t groups = groups_of(t, ppid);

	if (t->reaper && ppid == t->reaper)
		groups |= t->reaper_groups;
	/* Without a subreaper an orphan's parent is init; the leader of its session still shows where it came
	 * from. */
	if (!t->reaper)
		groups |= groups_of(t, session);
	return groups & t->inheriting;
}

static int join_unless_refused(struct tree *t, pid_t pid, pid_t ppid, pid_t session, uint64_t groups)
{
	uint32_t slot;
	int r;

	if (t->refuse && t->refuse(t->arg, pid))
		return -EPERM;
	r = tree_add(t, pid, ppid, groups, &slot);
	/* An orphan, as in inherited(). */
	if (r == 0 && !t->reaper && t->member[slot].origin == t->member[slot].id && origin_of(t, session))
		t->member[slot].origin = origin_of(t, session);
	return r;
}

static void add_owner(struct tree *t, pid_t pid, uint64_t groups)
{
	uint64_t hash = owner_of(t, pid);
	struct tree_owner *owner = hash ? find_owner(t, hash) : NULL;
	pid_t ppid, session;

	if (owner) {
		owner->ambiguous |= owner->groups != groups;
		return;
	}
	if (!hash || t->nr_owners == ARRAY_SIZE(t->owner))
		return;
	t->owner[t->nr_owners++] = (struct tree_owner){.hash = hash, .groups = groups};
	while (t->nr_above < ARRAY_SIZE(t->above) && read_parent(t, pid, &ppid, &session)) {
		t->above[t->nr_above++] = ppid;
		pid = ppid;
	}
}

void tree_attached(struct tree *t)
{
	t->attached_at = MAX(t->cursor, 1);
	t->nr_owners = t->nr_above = 0;
	tree_for_each (t, slot, after) {
		const struct member *m = &t->member[slot];
		uint64_t groups = m->groups & t->inheriting;

		if (groups && m->origin == m->id)
			add_owner(t, m->pid, groups);
	}
}

static void remember_young(struct tree *t, pid_t pid)
{
	if (!t->ask || t->nr_young == TREE_YOUNG)
		return;
	t->young[t->nr_young].pid = pid;
	t->young[t->nr_young++].looks = YOUNG_LOOKS;
}

/* Adds pid if it belongs to a group, its parents first when they are new too. Returns whether the process
 * exists. */
static bool consider(struct tree *t, pid_t pid, unsigned depth)
{
	pid_t ppid, session, group;
	uint64_t groups, assumed = 0;
	int r = -EPERM;

	if (is_ours(t, pid) || tree_find(t, pid) != NO_SLOT)
		return true;
	if (env_cpu_clock(t->env, pid) < 0 || !read_parent(t, pid, &ppid, &session))
		return false;
	group = t->process_group;
	if (!inherited(t, ppid, session) && depth < 16 && ppid > t->cursor_before)
		consider(t, ppid, depth + 1);
	groups = inherited(t, ppid, session);
	if (!groups)
		groups = assumed = orphaned(t, pid, ppid, session, group);
	groups |= t->ask ? t->ask(t->arg, pid) : 0;
	if (groups)
		r = join_unless_refused(t, pid, ppid, session, groups);
	t->assumed += r == 0 && assumed;
	/* A process that is refused now may still be the copy of its parent, a daemon: it may become a member
	 * by its exec. */
	if (r == -EPERM)
		remember_young(t, pid);
	return true;
}

void tree_reconsider(struct tree *t, pid_t pid)
{
	pid_t ppid, session;
	uint64_t groups = t->ask && !is_ours(t, pid) ? t->ask(t->arg, pid) : 0;

	if (groups && read_parent(t, pid, &ppid, &session))
		join_unless_refused(t, pid, ppid, session, groups | inherited(t, ppid, session));
}

void tree_include(struct tree *t, pid_t pid, uint64_t groups)
{
	uint32_t slot = tree_find(t, pid);
	pid_t ppid, session;

	if (slot != NO_SLOT)
		tree_set_groups(t, slot, tree_merge(t, t->member[slot].groups, groups));
	else if (!is_ours(t, pid) && read_parent(t, pid, &ppid, &session))
		join_unless_refused(t, pid, ppid, session, groups | inherited(t, ppid, session));
}

/* Looks again at recent processes that were not wanted when they were first seen. */
static void look_at_young(struct tree *t)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_young; i++) {
		pid_t pid = t->young[i].pid;

		if (tree_find(t, pid) != NO_SLOT)
			continue;
		if (env_cpu_clock(t->env, pid) < 0) {
			t->vanished += t->young[i].looks == YOUNG_LOOKS; /* after an exec, perhaps */
			continue;
		}
		tree_reconsider(t, pid);
		if (tree_find(t, pid) == NO_SLOT && --t->young[i].looks)
			t->young[nr++] = t->young[i];
	}
	t->nr_young = nr;
}

static pid_t read_last_pid(struct tree *t)
{
	char text[128], *at;
	ssize_t n = t->loadavg < 0 ? t->loadavg : env_read(t->env, t->loadavg, text, sizeof(text) - 1);
	uint64_t v;

	if (n <= 0)
		return -1;
	text[n] = 0;
	if (text[n - 1] == '\n')
		text[n - 1] = 0;
	at = strrchr(text, ' ');
	return at && parse_u64(at + 1, &v) && v <= (uint64_t)t->pid_max ? (pid_t)v : -1;
}

/* Processes and threads made since boot on the whole machine; 0 when that cannot be read. The file may be
 * long: it is read in parts, which overlap by what is looked for. */
static uint64_t read_forks(struct tree *t)
{
	static const char key[] = "\nprocesses ";
	char text[4096 + 1];
	off_t at = 0;
	ssize_t n;

	if (t->stat < 0)
		t->stat = env_open(t->env, "proc/stat");
	while (t->stat >= 0 && (n = env_read_at(t->env, t->stat, text, sizeof(text) - 1, at)) > 0) {
		const char *found;

		text[n] = 0;
		found = strstr(text, key);
		if (found && strchr(found + 1, '\n'))
			return strtoull(found + strlen(key), NULL, 10);
		at += n > 64 ? n - 64 : n;
	}
	return 0;
}

/* Forks are read before the last PID: a PID that is given out between the two is counted twice rather than
 * not at all. */
void tree_cursor_set(struct tree *t, pid_t pid)
{
	t->forks_known = 0;
	t->forks = t->pid_max <= FEW_PIDS ? read_forks(t) : 0;
	t->cursor = t->cursor_before = pid ? pid : MAX(read_last_pid(t), 0);
	t->polled_ns = env_now(t->env, ENV_MONOTONIC);
}

/* How many PIDs the cursor says were given out since the last poll. It skips those that are in use. */
static uint64_t cursor_moved(const struct tree *t, pid_t last)
{
	return (uint64_t)(last >= t->cursor ? last - t->cursor : t->pid_max - t->cursor + last);
}

/* Whether PIDs can have wrapped around since the last poll, which the cursor does not show: then the number
 * of forks decides. With few PIDs this is possible at any time. *last is read again after that number. */
static bool came_round(struct tree *t, pid_t *last)
{
	int64_t now = env_now(t->env, ENV_MONOTONIC);
	uint64_t range = (uint64_t)MAX(t->pid_max - FIRST_PID_AFTER_WRAP, 1), forks, known = t->forks_known;
	uint64_t before = t->forks;
	bool few = t->pid_max <= FEW_PIDS, late = now - t->polled_ns > (int64_t)range * FORK_NS;

	if (!cursor_moved(t, *last) && !few)
		return false;
	t->polled_ns = now;
	if (!few && !late && t->forks) {
		t->forks_known += cursor_moved(t, *last);
		return false;
	}
	forks = read_forks(t);
	*last = MAX(read_last_pid(t), 0);
	if (before && forks > before + known + cursor_moved(t, *last) + range / 2)
		return true;
	t->forks = forks;
	t->forks_known = 0;
	return false;
}

/* Threads have numbers of the same range, but no process clock. */
static bool is_there(struct tree *t, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	return env_try(t->env, path) == 0;
}

static void probe_new(struct tree *t, pid_t from, pid_t to)
{
	for (pid_t pid = from; pid <= to; pid++) {
		if (consider(t, pid, 0))
			continue;
		t->strangers++;
		t->vanished += t->ask && !is_there(t, pid);
	}
}

static void probe_again(struct tree *t, pid_t from, pid_t to)
{
	for (pid_t pid = from; pid <= to; pid++) {
		bool known = tree_find(t, pid) != NO_SLOT;

		t->latecomers += consider(t, pid, 0) && !known && tree_find(t, pid) != NO_SLOT;
	}
}

/* Any PID may be new. Forks are counted after the scan: those that it found are among them. */
static int scan_round(struct tree *t, pid_t last)
{
	uint32_t ids = t->next_id;
	uint64_t nr, before = t->forks;
	int r;

	t->cursor = t->cursor_before = last;
	r = tree_scan(t);
	t->forks = read_forks(t);
	t->forks_known = 0;
	nr = t->forks > before ? t->forks - before : 0;
	nr -= MIN(nr, t->next_id - ids);
	t->strangers += nr;
	t->vanished += t->ask ? nr : 0;
	t->escaped += t->nr_owners > 0;
	return r;
}

int tree_poll(struct tree *t)
{
	pid_t last, overlap, before = t->cursor;

	if (!t->inheriting && !t->ask)
		return 0;
	look_at_young(t);
	last = read_last_pid(t);
	t->blind = last < 0;
	if (t->blind)
		return tree_scan(t);
	if (came_round(t, &last))
		return scan_round(t, last);
	if (last == before && before == t->cursor_before)
		return 0;
	overlap = MAX(t->cursor_before > before ? 0 : t->cursor_before, before - CURSOR_OVERLAP);
	t->cursor_before = before;
	t->cursor = last;
	probe_again(t, overlap + 1, before);
	if (last >= before) {
		probe_new(t, before + 1, last);
	} else { /* the PIDs have wrapped */
		probe_new(t, before + 1, t->pid_max);
		probe_new(t, MIN(FIRST_PID_AFTER_WRAP, last), last);
	}
	return 0;
}

static int scan_entry(void *arg, const char *name)
{
	struct tree *t = arg;
	uint64_t pid;
	pid_t ppid, session;

	if (!parse_u64(name, &pid) || pid == 0 || pid > (uint64_t)t->pid_max || is_ours(t, (pid_t)pid))
		return 0;
	if (!read_parent(t, (pid_t)pid, &ppid, &session))
		return 0;
	/* An orphan: its session's leader stands for its parent, as in inherited(). Where init itself is
	 * watched, as the first process of a container, all orphans are its children. */
	if (ppid <= 1 && !t->reaper && !(groups_of(t, ppid) & t->inheriting))
		ppid = session != (pid_t)pid ? session : 0;
	if (ppid > t->pid_max || t->parent_of[pid])
		return 0;
	t->parent_of[pid] = ppid > 0 ? ppid : -1;
	t->scanned[t->nr_scanned++] = (int32_t)pid;
	return 0;
}

/* The groups of a process after it got those of its parents, which are handled first. */
static uint64_t adopt(struct tree *t, pid_t pid, unsigned depth)
{
	pid_t ppid = t->parent_of[pid];
	uint32_t slot = tree_find(t, pid);
	uint64_t groups = 0;

	if (is_ours(t, pid) || depth > MAX_DEPTH)
		return 0;
	if (ppid > 0)
		groups = (ppid == t->reaper ? t->reaper_groups : adopt(t, ppid, depth + 1)) & t->inheriting;
	if (slot != NO_SLOT) {
		tree_set_groups(t, slot, t->member[slot].groups | groups);
		return t->member[slot].groups;
	}
	return groups && join_unless_refused(t, pid, ppid, 0, groups) == 0 ? groups : 0;
}

/* First the processes that are wanted for themselves; then children get the groups that they inherit. */
static void ask_scanned(struct tree *t)
{
	for (uint32_t i = 0; i < t->nr_scanned && t->ask; i++) {
		pid_t pid = t->scanned[i];
		uint32_t slot = tree_find(t, pid);
		uint64_t groups = t->ask(t->arg, pid);

		if (slot != NO_SLOT)
			tree_set_groups(t, slot, tree_merge(t, t->member[slot].groups, groups));
		else if (groups)
			join_unless_refused(t, pid, MAX(t->parent_of[pid], 0), 0, groups);
	}
}

int tree_scan(struct tree *t)
{
	int r;

	if (!t->inheriting && !t->ask)
		return 0;
	t->nr_scanned = 0;
	r = env_list(t->env, "proc", scan_entry, t);
	if (r >= 0)
		ask_scanned(t);
	for (uint32_t i = 0; i < t->nr_scanned && r >= 0; i++)
		adopt(t, t->scanned[i], 0);
	/* Clears only what was written: the array has an entry for every PID, and most of it has no
	 * memory. */
	for (uint32_t i = 0; i < t->nr_scanned; i++)
		t->parent_of[t->scanned[i]] = 0;
	return r < 0 ? r : 0;
}
