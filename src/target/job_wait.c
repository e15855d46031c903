/* When a job is over although its script still runs, since that waits for us:
 *
 *	tacho attach job &
 *	srun ./work
 *	wait
 *
 * The script's shell is the last process of such a job, and would end when we end. It is told from a process
 *that waits for work by its children: we are one of them, or what has started us (srun, ssh), and there are
 *no others. */
#include "target/job_internal.h"

#include "read/read.h"

#include <stdio.h>
#include <string.h>

#define WAITS_MOST 8 /* shells, one below the other */

/* It sleeps until a child ends: by wait4(), or as dash does it by sigsuspend(). Where the kernel does not
 * tell, that it sleeps must do. */
static bool sleeps_for_child(struct job *job, pid_t pid)
{
	static const char *const calls[] = {"do_wait", "kernel_wait", "sigsuspend"};
	ssize_t n = job_read_of(job, pid, "stat");
	const char *close = n > 0 ? memrchr(job->text, ')', (size_t)n) : NULL;

	if (!close || close + 2 >= job->text + n || close[2] != 'S')
		return false;
	n = job_read_of(job, pid, "wchan");
	if (n <= 0 || job->text[0] == '0')
		return true;
	job->text[n] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (strstr(job->text, calls[i]))
			return true;
	return false;
}

static bool waits(struct job *job, pid_t pid, unsigned depth);

/* It has children, and all of them are ours. */
static bool has_only_us(struct job *job, pid_t pid, unsigned depth)
{
	char file[32], list[1024];
	const char *at = list, *end;
	int64_t child;
	ssize_t n;

	snprintf(file, sizeof(file), "task/%d/children", (int)pid);
	n = job_read_of(job, pid, file);
	if (n <= 0 || (size_t)n >= sizeof(list))
		return false;
	memcpy(list, job->text, (size_t)n); /* looking at the children needs the room */
	for (end = list + n; at < end && read_number(&at, end, &child); at += at < end)
		if (!job_is_daemon(job, (pid_t)child) && !(depth && waits(job, (pid_t)child, depth - 1)))
			return false;
	return at > list;
}

static bool waits(struct job *job, pid_t pid, unsigned depth)
{
	return sleeps_for_child(job, pid) && has_only_us(job, pid, depth);
}

bool job_waits_for_us(struct job *job, pid_t pid)
{
	return waits(job, pid, WAITS_MOST);
}

bool job_shell_waits(struct env *env, pid_t shell)
{
	_cleanup_(freep) struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return false;
	job->env = env;
	job->self = getpid();
	/* A shell at its prompt sleeps, too; commands in its background have process groups of their own. */
	return getpgid(shell) == getpgrp() && waits(job, shell, 0);
}
