/* Which processes of this node belong to a batch job: five ways to find out, tried from the best to the
 * weakest.
 *
 * Control groups come first: they are world-readable, cover everything the job ever starts, whatever its
 * parent became, and cost one small file a process, or nothing for other processes where the job's own
 * directory can be walked. The scheduler's tool costs a process and tens of milliseconds, so it is asked
 * once; processes that join later are found by their environment where we may read it. Environments are only
 * readable for our own user's processes, sessions miss ranks that MPICH and TM make leaders of their own, and
 * the launcher's tree misses whatever was not started below it. Asking the scheduler's server, or trusting
 * the uid alone, was rejected: the first loads what thousands of nodes share, the second mixes two jobs of
 * one user. */
#include "target/job_internal.h"

#include "target/job_scontrol.h"

#include <stdio.h>
#include <string.h>

#define ENVIRON_LIMIT (1 << 20)

static const char *const way_name[NR_WAYS] = {"cgroup", "scontrol", "environment", "session", "launcher"};

/* ---- reading ---- */

ssize_t job_read_of(struct job *job, pid_t pid, const char *file)
{
	char path[48];

	snprintf(path, sizeof(path), "proc/%d/%s", (int)pid, file);
	return env_slurp(job->env, path, job->text, sizeof(job->text));
}

bool job_read_process(struct job *job, pid_t pid, struct job_process *ret)
{
	ssize_t n = job_read_of(job, pid, "stat");

	return n > 0 && job_process_parse(job->text, (size_t)n, ret);
}

/* Drops the rest of a variable that was too long for us. *too_long stays while its end has not come. */
static size_t drop_tail(char *text, size_t len, bool *too_long)
{
	const char *end = *too_long ? memchr(text, '\0', len) : text;
	size_t rest = end ? len - (size_t)(end - text) : 0;

	*too_long = !end;
	memmove(text, text + len - rest, rest);
	return rest;
}

/* Looks at a piece of an environment, up to *ret_rest. 0 to go on. */
typedef int piece_fn(struct job *job, size_t len, void *arg, size_t *ret_rest);

/* Environments may be longer than our room: they are read in pieces, and a variable that does not fit into
 * one is none of those we look for. */
static int environ_in(struct job *job, int handle, piece_fn *fn, void *arg)
{
	bool too_long = false;
	size_t len = 0, rest = 0, room = sizeof(job->text) - 1;
	ssize_t n;
	int r;

	for (off_t offset = 0; offset < ENVIRON_LIMIT; offset += n) {
		n = env_read_at(job->env, handle, job->text + len, room - len, offset);
		if (n < 0)
			return (int)n;
		len = drop_tail(job->text, len + (size_t)n, &too_long);
		if (n == 0)
			job->text[len++] = '\0'; /* the last one may end without */
		r = fn(job, len, arg, &rest);
		if (r || n == 0)
			return r;
		too_long = too_long || (rest == 0 && len == room);
		len = too_long ? 0 : len - rest;
		memmove(job->text, job->text + rest, len);
	}
	return 0;
}

static int environ_of(struct job *job, pid_t pid, piece_fn *fn, void *arg)
{
	char path[48];
	int handle, r;

	snprintf(path, sizeof(path), "proc/%d/environ", (int)pid);
	handle = env_open(job->env, path);
	if (handle < 0)
		return handle;
	r = environ_in(job, handle, fn, arg);
	env_close(job->env, handle);
	return r;
}

static int names_job(struct job *job, size_t len, void *name, size_t *ret_rest)
{
	return job_environ_has(job->text, len, &job->name, name, ret_rest);
}

int job_environ_has_it(struct job *job, pid_t pid, struct job_name *ret)
{
	return environ_of(job, pid, names_job, ret);
}

static int names_part(struct job *job, size_t len, void *part, size_t *ret_rest)
{
	job_environ_part(job->text, len, part, ret_rest);
	return 0;
}

void job_part_of(struct job *job, pid_t pid, struct job_part *ret)
{
	ssize_t n = job_read_of(job, pid, "comm");
	bool launcher;

	*ret = (struct job_part){0};
	job->text[n > 0 ? n - (job->text[n - 1] == '\n') : 0] = 0;
	launcher = job_launcher_name(job->text);
	if (environ_of(job, pid, names_part, ret) < 0)
		return;
	job_part_settle(ret);
	if (launcher) /* it has a rank of its own step, and starts others */
		ret->rank[0] = 0;
}

struct job_scan {
	struct job *job;
	int (*fn)(struct job *job, pid_t pid);
};

static int scan_name(void *arg, const char *name)
{
	struct job_scan *scan = arg;
	pid_t pid = 0;

	for (const char *p = name; *p; p++) {
		if (*p < '0' || *p > '9' || p - name > 7)
			return 0;
		pid = pid * 10 + (*p - '0');
	}
	return pid > 0 && pid != scan->job->self ? scan->fn(scan->job, pid) : 0;
}

/* All processes but ourselves; fn returns 0 to go on. */
int job_scan_all(struct job *job, int (*fn)(struct job *job, pid_t pid))
{
	struct job_scan scan = {job, fn};

	return env_list(job->env, "proc", scan_name, &scan);
}

/* ---- processes that are left out ---- */

/* 1: a daemon, 0: not, -errno: gone or hidden. */
static int is_daemon(struct job *job, pid_t pid)
{
	ssize_t n = job_read_of(job, pid, "comm");

	if (n <= 0)
		return n < 0 ? (int)n : -ESRCH;
	job->text[n - (job->text[n - 1] == '\n')] = '\0';
	if (job_daemon_name(job->text))
		return 1;
	n = job_read_of(job, pid, "cmdline");
	/* A command line that is too long is judged by its beginning. */
	if (n == -EFBIG)
		n = sizeof(job->text) - 1;
	return n > 0 && job_daemon_cmdline(job->text, (size_t)n);
}

bool job_is_daemon(struct job *job, pid_t pid)
{
	return pid == job->self || is_daemon(job, pid) == 1;
}

/* Passes a process of the job to the listing's caller. */
int job_hand_out(struct job *job, pid_t pid)
{
	int r;

	if (pid == job->self)
		return 0;
	r = is_daemon(job, pid);
	if (is_refused(r))
		job->hidden++;
	if (r == -ENOENT)
		job->vanished++;
	if (r != 0)
		return 0;
	job->nr++;
	job->stop = job->fn ? job->fn(job->arg, pid) : 0;
	return job->stop;
}

/* ---- the scheduler's tool ---- */

/* The tool's output so far; without an answer yet, the next call gets it. The answer that job_open() waited
 * for is kept for the first listing. */
static int list_scontrol(struct job *job, int wait_ms, bool keep)
{
	const char *text;
	size_t len, at = 0;
	pid_t pid;
	int r = 0;

	if (!job->scontrol)
		r = scontrol_start(&job->scontrol, job->name.id);
	if (r == 0)
		r = scontrol_answer(job->scontrol, wait_ms, &text, &len);
	if (r == 0)
		return 0;
	while (r > 0 && !job->stop && (pid = job_listpids_next(text, len, &at, job->name.id)) > 0)
		job_hand_out(job, pid);
	if (r < 0 || !keep)
		job->scontrol = scontrol_end(job->scontrol);
	return MIN(r, 0);
}

static int sees_environ(void *arg, pid_t pid)
{
	struct job *job = arg;

	job->sees_environ = job->sees_environ || job_environ_has_it(job, pid, NULL) == 1;
	return 0;
}

static int open_scontrol(struct job *job)
{
	if (!job->env->live || job->name.kind > SCHEDULER_SLURM || !job->name.id[0])
		return 0;
	job->fn = sees_environ;
	job->arg = job;
	list_scontrol(job, INT16_MAX, true);
	job->fn = NULL;
	if (!job->nr) {
		job->scontrol = scontrol_end(job->scontrol);
		return 0;
	}
	job->name.kind = SCHEDULER_SLURM;
	return 1;
}

/* ---- environment and session ---- */

static bool leader_has(struct job *job, pid_t leader)
{
	size_t i = (size_t)leader % LEADERS;

	if (job->leader[i].pid != leader) {
		job->leader[i].pid = leader;
		job->leader[i].yes = job_environ_has_it(job, leader, NULL) == 1;
	}
	return job->leader[i].yes;
}

static int take_by_environ(struct job *job, pid_t pid)
{
	struct job_process process;
	int r = job_environ_has_it(job, pid, &job->name);

	if (is_refused(r))
		job->denied++;
	if (r == 1)
		return job_hand_out(job, pid);
	/* A process that a job started with a clean environment, or as another user, is still in its
	 * session. */
	if (r == -ESRCH || r == -ENOENT || !job_read_process(job, pid, &process) || process.session <= 1 ||
		process.session == pid || !leader_has(job, process.session))
		return 0;
	return job_hand_out(job, pid);
}

static int open_environment(struct job *job)
{
	if (!job->name.id[0])
		return 0;
	memset(job->leader, 0, sizeof(job->leader));
	job_scan_all(job, take_by_environ);
	job->sees_environ = job->nr > 0;
	return job->nr > 0;
}

static int take_by_session(struct job *job, pid_t pid)
{
	struct job_process process;

	return job_read_process(job, pid, &process) && process.session == job->session
		? job_hand_out(job, pid)
		: 0;
}

static int open_session(struct job *job)
{
	if (!job->here || !job->name.id[0] || job->session <= 0)
		return 0;
	job_scan_all(job, take_by_session);
	return job->nr > 0;
}

/* ---- the job ---- */

bool job_here(struct env *env, struct job_name *ret)
{
	char text[8192];
	struct job_group g;
	enum scheduler kind;
	const char *name, *beside;
	size_t at = 0;

	for (unsigned i = 0; (name = job_variable_name(i, &kind, &beside)); i++) {
		const char *value = env_getenv(env, name);
		char words[sizeof(ret->id) + 16];

		if (!value || strlen(value) >= sizeof(ret->id) || (beside && !env_getenv(env, beside)))
			continue;
		snprintf(words, sizeof(words), "%s:%s", scheduler_name(kind), value);
		if (job_name_parse(words, ret))
			return true;
	}
	if (env_peek(env, "proc/self/cgroup", text, sizeof(text)) <= 0 || !job_group_next(text, &at, &g) ||
		g.id_len >= sizeof(ret->id))
		return false;
	ret->kind = g.kind;
	memcpy(ret->id, g.id, g.id_len);
	ret->id[g.id_len] = '\0';
	return true;
}

static pid_t own_pid(struct env *env)
{
	char text[16];
	ssize_t n = env_readlink(env, "proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return env->live ? getpid() : 0;
	text[n] = '\0';
	return (pid_t)strtoul(text, NULL, 10);
}

static int set_name(struct job *job, const char *id)
{
	struct job_name here;
	bool in_one = job_here(job->env, &here);

	if (id && *id) {
		if (!job_name_parse(id, &job->name))
			return -EINVAL;
		job->here = in_one && job_name_is(&job->name, here.kind, here.id, strlen(here.id));
	} else
		job->here = true;
	if (in_one && job->here)
		job->name = here;
	return 0;
}

/* A file that the scheduler puts on the job's nodes shows that the job is here. */
static bool shows_up(struct job *job)
{
	static const char *const place[] = {"var/spool/pbs/aux", "var/spool/torque/aux", "var/lib/oar"};

	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", place[i], job->name.id);
		if (env_try(job->env, path) == 0)
			return true;
	}
	return false;
}

/* /proc can be mounted so that a user sees only processes of their own (hidepid). */
static bool shows_others(struct job *job)
{
	struct job_process process;

	return job_read_process(job, 1, &process);
}

static int not_found(struct job *job, char *err, size_t err_size)
{
	const char *kind = scheduler_name(job->name.kind);

	if (!job->name.id[0]) {
		snprintf(err, err_size,
			"tacho does not run in a batch job: there is nothing of SLURM, PBS or OAR in the "
			"environment or control group, and no mpirun or srun is a parent or sibling; name "
			"a job with job:ID");
		return -ENOENT;
	}
	if (job->hidden || (job->vanished && !shows_others(job)) || (job->denied && shows_up(job))) {
		snprintf(err, err_size,
			"the processes of job %s are hidden from this user: only its owner and root can "
			"see them",
			job->name.id);
		return -EACCES;
	}
	snprintf(err, err_size, "no process of %s%sjob %s is on this node now%s", kind ? kind : "",
		kind ? " " : "", job->name.id,
		job->denied && geteuid() ? ", as far as can be seen: only root can read the environment "
					   "of other users' processes"
					 : "");
	return -ESRCH;
}

static int job_begin(struct env *env, const char *id, struct job **ret, char *err, size_t err_size)
{
	struct job *job = calloc(1, sizeof(*job));
	struct job_process self;
	int r;

	if (!job)
		return -ENOMEM;
	job->env = env;
	job->self = own_pid(env);
	job->session = job_read_process(job, job->self, &self) ? self.session : 0;
	r = set_name(job, id);
	if (r < 0) {
		snprintf(err, err_size,
			"'%s' is not the id of a job: 7, slurm:7, pbs:7.server or oar:7 (of a SLURM array, "
			"the number that its "
			"member has as SLURM_JOB_ID)",
			id);
		job_close(job);
		return r;
	}
	*ret = job;
	return 0;
}

int job_open(struct env *env, const char *id, struct job **ret, const char **ret_found_by, char *err,
	size_t err_size)
{
	static int (*const open[NR_WAYS])(struct job * job) = {
		job_open_group, open_scontrol, open_environment, open_session, job_open_launcher};
	struct job *job = NULL;
	int r = job_begin(env, id, &job, err, err_size);

	if (r < 0)
		return r;
	for (job->way = 0; r == 0 && job->way < NR_WAYS; job->way++) {
		job->nr = 0;
		r = open[job->way](job);
		if (r <= 0)
			continue;
		*ret_found_by = way_name[job->way];
		*ret = job;
		return 0;
	}
	r = not_found(job, err, err_size);
	job_close(job);
	return r;
}

int job_expect(struct env *env, const char *id, struct job **ret, const char **ret_found_by, char *err,
	size_t err_size)
{
	struct job *job = NULL;
	int r = job_begin(env, id, &job, err, err_size);
	struct job_process process;

	if (r < 0)
		return r;
	if (job_expect_group(job))
		job->way = WAY_CGROUP;
	else
		job->way = job->name.id[0] ? WAY_ENVIRONMENT : WAY_LAUNCHER;
	job->sees_environ = job->way == WAY_ENVIRONMENT;
	job->expected = job->way == WAY_LAUNCHER;
	if (job->expected && job_read_process(job, job->self, &process))
		job->starter = process.parent;
	if (job->starter &&
		(!job_read_process(job, job->starter, &process) || strcmp(process.name, "tacho") != 0))
		job->starter = 0;
	*ret_found_by = way_name[job->way];
	*ret = job;
	return 0;
}

struct job *job_close(struct job *job)
{
	if (job)
		scontrol_end(job->scontrol);
	free(job);
	return NULL;
}

const struct job_name *job_name(const struct job *job)
{
	return &job->name;
}

int job_list(struct job *job, int (*fn)(void *arg, pid_t pid), void *arg)
{
	int r = 0;

	job->fn = fn;
	job->arg = arg;
	job->nr = 0;
	job->stop = 0;
	switch (job->way) {
	case WAY_CGROUP:
		r = job_list_group(job);
		break;
	case WAY_SCONTROL:
		r = list_scontrol(job, 0, false);
		break;
	case WAY_ENVIRONMENT:
		memset(job->leader, 0, sizeof(job->leader));
		r = job_scan_all(job, take_by_environ);
		break;
	case WAY_SESSION:
		r = job_scan_all(job, take_by_session);
		break;
	default:
		r = job_scan_all(job, job_take_below);
	}
	job->fn = NULL;
	return r;
}

bool job_takes(struct job *job, pid_t pid)
{
	struct job_process process;
	struct job_group g;

	if (pid == job->self)
		return false;
	switch (job->way) {
	case WAY_CGROUP:
		return job_in_group(job, pid, &g);
	case WAY_SCONTROL:
	case WAY_ENVIRONMENT:
		return job_environ_has_it(job, pid, NULL) == 1;
	case WAY_SESSION:
		return job_read_process(job, pid, &process) && process.session == job->session;
	default:
		/* Processes below a launcher that is known are found by their parent. */
		return job->expected && job_is_below(job, pid);
	}
}

/* Walking the job's own groups costs next to nothing, and processes are moved into them after they were born.
 */
bool job_needs_listing(const struct job *job)
{
	return (job->way == WAY_CGROUP && job->dir[0]) || (job->way == WAY_SCONTROL && !job->sees_environ);
}
