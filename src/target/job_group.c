/* A job by its control groups: which is its own, where its directory is, which processes are in it and
 * below. */
#include "target/job_internal.h"

#include "node/cgroups.h"

#include <string.h>

/* Is this the job's group? Learns what was not known of the job before. */
static bool is_its_group(struct job *job, const struct job_group *g)
{
	if (!g->by_name)
		return job_name_is(&job->name, g->kind, g->id, g->id_len);
	return job->group[0] && strlen(job->group) == g->id_len && !memcmp(job->group, g->id, g->id_len);
}

static bool text_in_group(struct job *job, const char *text, struct job_group *ret)
{
	for (size_t at = 0; job_group_next(text, &at, ret);)
		if (is_its_group(job, ret))
			return true;
	return false;
}

bool job_in_group(struct job *job, pid_t pid, struct job_group *ret)
{
	ssize_t n = job_read_of(job, pid, "cgroup");

	return (n > 0 || n == -EFBIG) && text_in_group(job, job->text, ret);
}

/* A job that was named in short, or by its number alone, has now its full name. */
static void learn_name(struct job *job, const struct job_group *g)
{
	if (g->by_name || g->id_len >= sizeof(job->name.id))
		return;
	job->name.kind = g->kind;
	memcpy(job->name.id, g->id, g->id_len);
	job->name.id[g->id_len] = '\0';
}

/* Which group is the job's, where that has a name of its own. */
static bool learn_group(struct job *job, const char *name, size_t len)
{
	if (len >= sizeof(job->group))
		return false;
	memcpy(job->group, name, len);
	job->group[len] = '\0';
	return true;
}

/* The directory of the job's group in one hierarchy; false when it is not mounted, or cut off above. */
static bool set_directory(struct job *job, struct cgroup_dir *dir)
{
	struct job_group g;

	if (!dir->found || !job_group_find(dir->group, strlen(dir->group), &g) || !is_its_group(job, &g))
		return false;
	while (strlen(dir->group) > g.end)
		if (!cgroup_dir_up(dir))
			return false;
	job->dir_len = strlen(dir->path);
	memcpy(job->dir, dir->path, job->dir_len + 1);
	return true;
}

/* Takes the job's directory from one of its processes. That of v1 where SLURM keeps all processes of a job
 * comes first: the others need not have them all. */
static void find_directory(struct job *job, pid_t pid)
{
	static const enum cgroup_controller order[] = {CGROUP_FREEZER, CGROUP_CPUSET, CGROUP_MEMORY,
		CGROUP_CPUACCT, CGROUP_CPU, CGROUP_PIDS, CGROUP_IO};
	_cleanup_(freep) struct cgroups *groups = malloc(sizeof(*groups));

	if (!groups || cgroups_read(job->env, pid, groups) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (set_directory(job, &groups->dir[order[i]]))
			return;
}

/* For job_scan_all(): ends at the first process of the job. */
static int find_in_group(struct job *job, pid_t pid)
{
	ssize_t n = job_read_of(job, pid, "cgroup");
	struct job_group g;
	size_t at = 0;

	if (n <= 0)
		return 0;
	if (text_in_group(job, job->text, &g)) {
		learn_name(job, &g);
		return (int)pid;
	}
	while (job_group_next(job->text, &at, &g))
		if (g.by_name && learn_group(job, g.id, g.id_len)) {
			if (job_environ_has_it(job, pid, &job->name) == 1)
				return (int)pid;
			job->group[0] = '\0';
			return 0;
		}
	return 0;
}

/* Our own groups, when we are in the job: no need to look at all processes. */
static bool find_own_group(struct job *job)
{
	ssize_t n = env_slurp(job->env, "proc/self/cgroup", job->text, sizeof(job->text));
	struct job_group g;
	size_t at = 0;

	if (!job->here || n <= 0)
		return false;
	if (text_in_group(job, job->text, &g)) {
		learn_name(job, &g);
		return true;
	}
	while (job->name.kind == SCHEDULER_SLURM && job_group_next(job->text, &at, &g))
		if (g.by_name && learn_group(job, g.id, g.id_len))
			return true;
	return false;
}

static int hand_out(void *arg, pid_t pid)
{
	return job_hand_out(arg, pid);
}

/* The processes in the cgroup.procs that job->dir is now. */
static int list_procs(struct job *job)
{
	int handle = env_open(job->env, job->dir), r;

	if (handle < 0)
		return handle;
	r = cgroup_pids(job->env, handle, hand_out, job);
	env_close(job->env, handle);
	return MIN(r, 0);
}

static int list_directory(struct job *job, unsigned depth);

struct group_search {
	struct job *job;
	unsigned depth;
};

/* Names are files and groups; a file has nothing below it, so there the first opening fails. */
static int walk_name(void *arg, const char *name)
{
	struct group_search *walk = arg;
	struct job *job = walk->job;
	size_t before = job->dir_len, n = strlen(name);

	if (before + 1 + n >= sizeof(job->dir))
		return 0;
	job->dir[before] = '/';
	memcpy(job->dir + before + 1, name, n + 1);
	job->dir_len = before + 1 + n;
	list_directory(job, walk->depth + 1);
	job->dir_len = before;
	job->dir[before] = '\0';
	return job->stop;
}

/* The processes of the group in job->dir and of those below it. */
static int list_directory(struct job *job, unsigned depth)
{
	struct group_search walk = {job, depth};
	int r;

	if (job->dir_len + sizeof("/cgroup.procs") > sizeof(job->dir))
		return -ENAMETOOLONG;
	memcpy(job->dir + job->dir_len, "/cgroup.procs", sizeof("/cgroup.procs"));
	r = list_procs(job);
	job->dir[job->dir_len] = '\0';
	if (job->stop || depth >= DEPTH_MAX)
		return job->stop;
	if (r < 0 && r != -EOPNOTSUPP) /* a threaded group of v2: its processes are listed above it */
		return r;
	return env_list(job->env, job->dir, walk_name, &walk);
}

static int take_in_group(struct job *job, pid_t pid)
{
	struct job_group g;

	return job_in_group(job, pid, &g) ? job_hand_out(job, pid) : 0;
}

int job_list_group(struct job *job)
{
	int r;

	if (!job->dir[0])
		return job_scan_all(job, take_in_group);
	r = list_directory(job, 0);
	return r == -ENOENT ? 0 : r; /* the scheduler removes it when all have ended */
}

/* If the group has only daemons, no other way is tried: the job is starting, and a weaker way would find
 * wrong processes. */
int job_open_group(struct job *job)
{
	int r = 0;

	if (!job->name.id[0])
		return 0;
	if (!find_own_group(job)) {
		r = job_scan_all(job, find_in_group);
		if (r <= 0)
			return 0;
	}
	find_directory(job, (pid_t)r);
	if (job_list_group(job) < 0 && job->dir[0]) {
		job->dir[0] = '\0'; /* it cannot be read: look at all processes instead */
		job->nr = 0;
		job_list_group(job);
	}
	return job->nr > 0 ? 1 : -ESRCH;
}

bool job_expect_group(struct job *job)
{
	if (!job->name.id[0] || !find_own_group(job))
		return false;
	find_directory(job, 0);
	return true;
}

bool job_cgroup(struct job *job, pid_t pid, char *out, size_t size)
{
	_cleanup_(freep) struct cgroups *groups = malloc(sizeof(*groups));
	struct job_group g;

	if (!groups || cgroups_read(job->env, pid, groups) < 0)
		return false;
	for (unsigned i = 0; i < NR_CGROUP_CONTROLLERS; i++) {
		const char *group = groups->dir[i].group;

		if (!job_group_find(group, strlen(group), &g) || !is_its_group(job, &g) || g.end >= size)
			continue;
		memcpy(out, group, g.end);
		out[g.end] = '\0';
		return true;
	}
	return false;
}
