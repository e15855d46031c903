/* Which processes of this node belong to a batch job: five ways of knowing, tried from the best to the
 * weakest.
 *
 * Control groups come first: they are world-readable, cover everything the job ever starts, whoever its
 * parent became, and cost one small file a process, or nothing for strangers where the job's own directory
 * can be walked. The scheduler's tool costs a process and tens of milliseconds, so it is asked once; who
 * joins later is known by the environment where we may read it. Environments are only readable for our own
 * user's processes, sessions miss ranks that MPICH and TM make leaders of their own, and the launcher's tree
 * misses whatever was not started below it. Asking the scheduler's server, or trusting the uid alone, was
 * rejected: the first loads what thousands of nodes share, the second mixes two jobs of one user. */
#include "target/job.h"

#include "node/cgroups.h"
#include "target/job_scontrol.h"
#include "target/job_text.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 12 /* groups below a job's own, and ancestors of ours times ten: more is damage */
#define LEADERS 64
#define ENVIRON_LIMIT (1 << 20)

enum job_way { WAY_CGROUP, WAY_SCONTROL, WAY_ENVIRONMENT, WAY_SESSION, WAY_LAUNCHER, NR_WAYS };

static const char *const way_name[NR_WAYS] = {"cgroup", "scontrol", "environment", "session", "launcher"};

struct job {
	struct env *env;
	struct job_name name;
	bool here; /* we run in it */
	enum job_way way;
	pid_t self;
	char group[128]; /* SLURM 26.05 and later: the name of its group, where that is not its number */
	char dir[PATH_MAX + NAME_MAX + 2]; /* its control group's, as env takes it; "": not visible */
	size_t dir_len;
	pid_t session; /* ours */
	pid_t top;     /* of the launcher's tree; 0: the launchers of our session */
	struct {       /* is the leader of this session of the job? Direct-mapped, for one listing. */
		pid_t pid;
		bool yes;
	} leader[LEADERS];
	struct scontrol *scontrol;
	bool sees_environ; /* environments of its processes can be read */
	unsigned nr;	   /* of the listing: processes handed out, */
	unsigned hidden;   /* those we may not look at, */
	unsigned vanished; /* those that are not in /proc: they have just ended, or are hidden as a whole, */
	unsigned denied;   /* environments that we may not read, */
	int stop;	   /* and what fn ended it with */
	int (*fn)(void *arg, pid_t pid);
	void *arg;
	char text[32768];
};

/* ---- reading ---- */

static ssize_t read_of(struct job *job, pid_t pid, const char *file)
{
	char path[48];

	snprintf(path, sizeof(path), "proc/%d/%s", (int)pid, file);
	return env_slurp(job->env, path, job->text, sizeof(job->text));
}

static bool read_process(struct job *job, pid_t pid, struct job_process *ret)
{
	ssize_t n = read_of(job, pid, "stat");

	return n > 0 && job_process_parse(job->text, (size_t)n, ret);
}

/* Drops what is left of a variable that was too long for us. *too_long stays while its end has not come. */
static size_t drop_tail(char *text, size_t len, bool *too_long)
{
	const char *end = *too_long ? memchr(text, '\0', len) : text;
	size_t rest = end ? len - (size_t)(end - text) : 0;

	*too_long = !end;
	memmove(text, text + len - rest, rest);
	return rest;
}

/* 1: its environment names the job, 0: not, or an error. Environments may be longer than our room: they are
 * read in pieces, and a variable that does not fit into one is none of those we look for. */
static int environ_in(struct job *job, int handle, struct job_name *ret)
{
	bool too_long = false;
	size_t len = 0, rest = 0, room = sizeof(job->text) - 1;
	ssize_t n;

	for (off_t offset = 0; offset < ENVIRON_LIMIT; offset += n) {
		n = env_read_at(job->env, handle, job->text + len, room - len, offset);
		if (n < 0)
			return (int)n;
		len = drop_tail(job->text, len + (size_t)n, &too_long);
		if (n == 0)
			job->text[len++] = '\0'; /* the last one may end without */
		if (job_environ_has(job->text, len, &job->name, ret, &rest))
			return 1;
		if (n == 0)
			return 0;
		too_long = too_long || (rest == 0 && len == room);
		len = too_long ? 0 : len - rest;
		memmove(job->text, job->text + rest, len);
	}
	return 0;
}

static int environ_has(struct job *job, pid_t pid, struct job_name *ret)
{
	char path[48];
	int handle, r;

	snprintf(path, sizeof(path), "proc/%d/environ", (int)pid);
	handle = env_open(job->env, path);
	if (handle < 0)
		return handle;
	r = environ_in(job, handle, ret);
	env_close(job->env, handle);
	return r;
}

struct scan {
	struct job *job;
	int (*fn)(struct job *job, pid_t pid);
};

static int scan_name(void *arg, const char *name)
{
	struct scan *scan = arg;
	pid_t pid = 0;

	for (const char *p = name; *p; p++) {
		if (*p < '0' || *p > '9' || p - name > 7)
			return 0;
		pid = pid * 10 + (*p - '0');
	}
	return pid > 0 && pid != scan->job->self ? scan->fn(scan->job, pid) : 0;
}

/* All processes but ourselves; fn returns 0 to go on. */
static int scan_all(struct job *job, int (*fn)(struct job *job, pid_t pid))
{
	struct scan scan = {job, fn};

	return env_list(job->env, "proc", scan_name, &scan);
}

/* ---- who is left out ---- */

/* 1: a daemon, 0: not, -errno: gone or hidden. */
static int is_daemon(struct job *job, pid_t pid)
{
	ssize_t n = read_of(job, pid, "comm");

	if (n <= 0)
		return n < 0 ? (int)n : -ESRCH;
	job->text[n - (job->text[n - 1] == '\n')] = '\0';
	if (job_daemon_name(job->text))
		return 1;
	n = read_of(job, pid, "cmdline");
	/* A command line that is too long is judged by its beginning. */
	if (n == -EFBIG)
		n = sizeof(job->text) - 1;
	return n > 0 && job_daemon_cmdline(job->text, (size_t)n);
}

bool job_is_daemon(struct job *job, pid_t pid)
{
	return pid == job->self || is_daemon(job, pid) == 1;
}

/* Hands a process of the job to whom the listing is for. */
static int hand_out(struct job *job, pid_t pid)
{
	int r;

	if (pid == job->self)
		return 0;
	r = is_daemon(job, pid);
	if (r == -EACCES || r == -EPERM)
		job->hidden++;
	if (r == -ENOENT)
		job->vanished++;
	if (r != 0)
		return 0;
	job->nr++;
	job->stop = job->fn ? job->fn(job->arg, pid) : 0;
	return job->stop;
}

/* ---- control groups ---- */

/* Is this the job's group? Names what was not known of the job before. */
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

static bool in_group(struct job *job, pid_t pid, struct job_group *ret)
{
	ssize_t n = read_of(job, pid, "cgroup");

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

/* For scan_all(): ends at the first process of the job. */
static int find_in_group(struct job *job, pid_t pid)
{
	ssize_t n = read_of(job, pid, "cgroup");
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
			if (environ_has(job, pid, &job->name) == 1)
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

/* The PIDs of the cgroup.procs in job->dir, one a line. They come in pieces, and the end of a piece may cut a
 * number. 0 stands for a process that our PID namespace does not show. */
static int list_procs(struct job *job)
{
	int handle = env_open(job->env, job->dir);
	pid_t pid = 0, some[1024];
	off_t offset = 0;
	ssize_t n;

	if (handle < 0)
		return handle;
	while ((n = env_read_at(job->env, handle, job->text, 2 * ARRAY_SIZE(some), offset)) > 0 &&
		!job->stop) {
		unsigned nr = 0;

		offset += n;
		for (ssize_t i = 0; i < n; i++) {
			if (job->text[i] >= '0' && job->text[i] <= '9') {
				pid = pid < 1 << 22 ? pid * 10 + (job->text[i] - '0') : pid;
				continue;
			}
			if (pid > 0)
				some[nr++] = pid;
			pid = 0;
		}
		/* Not at once: handing out uses our room for texts. */
		for (unsigned i = 0; i < nr && !job->stop; i++)
			hand_out(job, some[i]);
	}
	env_close(job->env, handle);
	return (int)MIN(n, 0);
}

static int list_directory(struct job *job, unsigned depth);

struct walk {
	struct job *job;
	unsigned depth;
};

/* Names are files and groups; a file has nothing below it, so there the first opening fails. */
static int walk_name(void *arg, const char *name)
{
	struct walk *walk = arg;
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
	struct walk walk = {job, depth};
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

	return in_group(job, pid, &g) ? hand_out(job, pid) : 0;
}

static int list_group(struct job *job)
{
	int r;

	if (!job->dir[0])
		return scan_all(job, take_in_group);
	r = list_directory(job, 0);
	return r == -ENOENT ? 0 : r; /* the scheduler removes it when all have ended */
}

/* A group that holds nobody but daemons is the last word: the job is starting, and a weaker way would find
 * others. */
static int open_group(struct job *job)
{
	int r = 0;

	if (!job->name.id[0])
		return 0;
	if (!find_own_group(job)) {
		r = scan_all(job, find_in_group);
		if (r <= 0)
			return 0;
	}
	find_directory(job, (pid_t)r);
	if (list_group(job) < 0 && job->dir[0]) {
		job->dir[0] = '\0'; /* it cannot be read: look at all processes instead */
		job->nr = 0;
		list_group(job);
	}
	return job->nr > 0 ? 1 : -ESRCH;
}

/* ---- the scheduler's tool ---- */

/* What the tool has to say by now; without an answer, it will be there at the next call. The one that
 * job_open() waited for is kept for the first listing. */
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
		hand_out(job, pid);
	if (r < 0 || !keep)
		job->scontrol = scontrol_end(job->scontrol);
	return MIN(r, 0);
}

static int sees_environ(void *arg, pid_t pid)
{
	struct job *job = arg;

	job->sees_environ = job->sees_environ || environ_has(job, pid, NULL) == 1;
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
		job->leader[i].yes = environ_has(job, leader, NULL) == 1;
	}
	return job->leader[i].yes;
}

static int take_by_environ(struct job *job, pid_t pid)
{
	struct job_process process;
	int r = environ_has(job, pid, &job->name);

	if (r == -EACCES || r == -EPERM)
		job->denied++;
	if (r == 1)
		return hand_out(job, pid);
	/* What a job started with a clean environment, or as another user, is still in its session. */
	if (r == -ESRCH || r == -ENOENT || !read_process(job, pid, &process) || process.session <= 1 ||
		process.session == pid || !leader_has(job, process.session))
		return 0;
	return hand_out(job, pid);
}

static int open_environment(struct job *job)
{
	if (!job->name.id[0])
		return 0;
	memset(job->leader, 0, sizeof(job->leader));
	scan_all(job, take_by_environ);
	job->sees_environ = job->nr > 0;
	return job->nr > 0;
}

static int take_by_session(struct job *job, pid_t pid)
{
	struct job_process process;

	return read_process(job, pid, &process) && process.session == job->session ? hand_out(job, pid) : 0;
}

static int open_session(struct job *job)
{
	if (!job->here || !job->name.id[0] || job->session <= 0)
		return 0;
	scan_all(job, take_by_session);
	return job->nr > 0;
}

/* ---- the launcher's tree ---- */

static int64_t user_of(struct job *job, pid_t pid)
{
	ssize_t n = read_of(job, pid, "status");
	const char *line = n > 0 ? strstr(job->text, "\nUid:") : NULL;
	char *end;
	unsigned long uid;

	if (!line)
		return -1;
	uid = strtoul(line + 5, &end, 10);
	return end > line + 5 ? (int64_t)uid : -1;
}

/* A shell that was started by a login: its name as it sees it begins with a dash. That of a PBS job looks
 * alike, but its parent is PBS. */
static bool is_login_shell(struct job *job, pid_t pid)
{
	return read_of(job, pid, "cmdline") > 0 && job->text[0] == '-';
}

/* The topmost ancestor of ours that is our own and is neither a daemon of a scheduler nor belongs to a login;
 * in no known job, the topmost launcher. 0: there is none. */
static pid_t find_top(struct job *job)
{
	int64_t user = user_of(job, job->self);
	bool need_launcher = !job->name.id[0];
	pid_t pid = job->self, top = 0, below = 0;
	struct job_process process, parent;

	if (!read_process(job, pid, &process))
		return 0;
	for (unsigned i = 0; i < DEPTH_MAX * 10 && process.parent > 1; i++) {
		pid = process.parent;
		if (!read_process(job, pid, &parent))
			break;
		if (job_doorkeeper_name(parent.name)) {
			if (!job_daemon_name(parent.name) || !strncmp(parent.name, "sshd", 4))
				top = top && is_login_shell(job, top) ? below : top;
			break;
		}
		if (user_of(job, pid) != user)
			break;
		if (!need_launcher || job_launcher_name(parent.name)) {
			below = top;
			top = pid;
		}
		process = parent;
	}
	return top;
}

static bool is_below(struct job *job, pid_t pid, pid_t top)
{
	struct job_process process;

	for (unsigned i = 0; i < DEPTH_MAX * 10 && pid > 1; i++) {
		if (pid == top)
			return true;
		if (!read_process(job, pid, &process))
			return false;
		if (!top && process.session == job->session && job_launcher_name(process.name))
			return true;
		pid = process.parent;
	}
	return false;
}

static int take_below(struct job *job, pid_t pid)
{
	return is_below(job, pid, job->top) ? hand_out(job, pid) : 0;
}

/* Beside a launcher counts as below it when there is no scheduler: `tacho attach job & mpirun ./a` in a
 * script. */
static int open_launcher(struct job *job)
{
	if (!job->here)
		return 0;
	job->top = find_top(job);
	if (!job->top && (job->name.id[0] || job->session <= 0))
		return 0;
	scan_all(job, take_below);
	return job->nr > 0;
}

/* ---- the job ---- */

bool job_here(struct env *env, struct job_name *ret)
{
	char text[8192];
	struct job_group g;
	enum scheduler kind;
	const char *name;
	size_t at = 0;

	for (unsigned i = 0; (name = job_variable_name(i, &kind)); i++) {
		const char *value = env_getenv(env, name);
		char words[sizeof(ret->id) + 16];

		if (!value || strlen(value) >= sizeof(ret->id))
			continue;
		snprintf(words, sizeof(words), "%s:%s", scheduler_name(kind), value);
		if (job_name_parse(words, ret))
			return true;
	}
	if (env_slurp(env, "proc/self/cgroup", text, sizeof(text)) <= 0 || !job_group_next(text, &at, &g) ||
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

/* A file that the scheduler puts on the job's nodes says that it is here. */
static bool shows_up(struct job *job)
{
	static const char *const place[] = {"var/spool/pbs/aux", "var/spool/torque/aux", "var/lib/oar"};

	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		char path[256];
		int handle;

		snprintf(path, sizeof(path), "%s/%s", place[i], job->name.id);
		handle = env_open(job->env, path);
		env_close(job->env, handle);
		if (handle >= 0)
			return true;
	}
	return false;
}

/* /proc can be mounted so that a user sees only processes of their own (hidepid). */
static bool shows_others(struct job *job)
{
	struct job_process process;

	return read_process(job, 1, &process);
}

static int not_found(struct job *job, char *err, size_t err_size)
{
	const char *kind = scheduler_name(job->name.kind);

	if (!job->name.id[0]) {
		snprintf(err, err_size,
			"we run in no job: nothing of SLURM, PBS or OAR in the environment or control group, "
			"and no mpirun or "
			"srun above or beside us; job:ID names one");
		return -ENOENT;
	}
	if (job->hidden || (job->vanished && !shows_others(job)) || (job->denied && shows_up(job))) {
		snprintf(err, err_size,
			"the processes of job %s are hidden from us: only its owner and root can see them",
			job->name.id);
		return -EACCES;
	}
	snprintf(err, err_size, "no process of %s%sjob %s is on this node now", kind ? kind : "",
		kind ? " " : "", job->name.id);
	return -ESRCH;
}

int job_open(struct env *env, const char *id, struct job **ret, const char **ret_found_by, char *err,
	size_t err_size)
{
	static int (*const open[NR_WAYS])(struct job * job) = {
		open_group, open_scontrol, open_environment, open_session, open_launcher};
	struct job *job = calloc(1, sizeof(*job));
	struct job_process self;
	int r;

	if (!job)
		return -ENOMEM;
	job->env = env;
	job->self = own_pid(env);
	job->session = read_process(job, job->self, &self) ? self.session : 0;
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
		r = list_group(job);
		break;
	case WAY_SCONTROL:
		r = list_scontrol(job, 0, false);
		break;
	case WAY_ENVIRONMENT:
		memset(job->leader, 0, sizeof(job->leader));
		r = scan_all(job, take_by_environ);
		break;
	case WAY_SESSION:
		r = scan_all(job, take_by_session);
		break;
	default:
		r = scan_all(job, take_below);
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
		return in_group(job, pid, &g);
	case WAY_SCONTROL:
	case WAY_ENVIRONMENT:
		return environ_has(job, pid, NULL) == 1;
	case WAY_SESSION:
		return read_process(job, pid, &process) && process.session == job->session;
	default:
		return false; /* what is below the launcher comes by its parent */
	}
}

/* Walking the job's own groups costs next to nothing, and processes are moved into them after they were born.
 */
bool job_needs_listing(const struct job *job)
{
	return (job->way == WAY_CGROUP && job->dir[0]) || (job->way == WAY_SCONTROL && !job->sees_environ);
}
