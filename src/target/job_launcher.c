/* A job by its launcher: the tree of processes that we are in, or beside. The weakest way, and the only one
 * without a batch system. */
#include "target/job_internal.h"

#include "read/read.h"

#include <string.h>

static int64_t user_of(struct job *job, pid_t pid)
{
	ssize_t n = job_read_of(job, pid, "status");
	int64_t uid;

	return n > 0 && read_key(job->text, job->text + n, "Uid", &uid) ? uid : -1;
}

/* A shell that was started by a login: its argv[0] begins with a dash. The shell of a PBS job looks the same,
 * but its parent is PBS. */
static bool is_login_shell(struct job *job, pid_t pid)
{
	return job_read_of(job, pid, "cmdline") > 0 && job->text[0] == '-';
}

/* The topmost ancestor of ours that is our own and is neither a daemon of a scheduler nor belongs to a login;
 * in no known job, the topmost launcher. 0: there is none. */
static pid_t find_top(struct job *job)
{
	int64_t user = user_of(job, job->self);
	bool need_launcher = !job->name.id[0];
	pid_t pid = job->self, top = 0, below = 0;
	struct job_process process, parent;

	if (!job_read_process(job, pid, &process))
		return 0;
	for (unsigned i = 0; i < DEPTH_MAX * 10 && process.parent > 1; i++) {
		pid = process.parent;
		if (!job_read_process(job, pid, &parent))
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
		if (pid == top || (job->starter && pid == job->starter))
			return true;
		if (!job_read_process(job, pid, &process))
			return false;
		if (!top && (job->expected || process.session == job->session) &&
			job_launcher_name(process.name))
			return !job->expected || user_of(job, pid) == (int64_t)geteuid();
		pid = process.parent;
	}
	return false;
}

bool job_is_below(struct job *job, pid_t pid)
{
	return is_below(job, pid, job->top);
}

int job_take_below(struct job *job, pid_t pid)
{
	return job_is_below(job, pid) ? job_hand_out(job, pid) : 0;
}

bool job_launcher_started_us(struct env *env)
{
	_cleanup_(freep) struct job *job = calloc(1, sizeof(*job));
	struct job_process process;
	pid_t pid = getpid();

	if (!job)
		return false;
	job->env = env;
	for (unsigned i = 0; i < DEPTH_MAX * 10 && pid > 1 && job_read_process(job, pid, &process); i++) {
		if (i && job_launcher_name(process.name))
			return true;
		if (i && job_daemon_name(process.name))
			return false;
		pid = process.parent;
	}
	return false;
}

/* When there is no scheduler, being beside a launcher counts as being below it: `tacho attach job & mpirun
 * ./a` in a script. */
int job_open_launcher(struct job *job)
{
	if (!job->here)
		return 0;
	job->top = find_top(job);
	if (!job->top && (job->name.id[0] || job->session <= 0))
		return 0;
	job_scan_all(job, job_take_below);
	return job->nr > 0;
}
