/* Tells everything about itself that it got from whoever started it, one `key value` a line.
 *
 * The tests of politeness run it with and without the recorder and compare. It writes to the file named by
 * its first argument, so that its standard descriptors can be anything, closed ones included; `-` is stdout.
 * Process ids differ between two runs by nature, so relations are told instead: "group own" or "group
 * shared". */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static FILE *out;

static void tell_descriptors(int own)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		char path[64], target[4096];
		struct stat st;
		ssize_t n;

		if (entry->d_name[0] == '.' || fd == dirfd(dir) || fd == own)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0 || fstat(fd, &st) < 0)
			continue;
		target[n] = 0;
		fprintf(out, "fd.%d %s dev %llu ino %llu flags %o cloexec %d\n", fd, target,
			(unsigned long long)st.st_dev, (unsigned long long)st.st_ino, fcntl(fd, F_GETFL),
			fcntl(fd, F_GETFD));
	}
	closedir(dir);
}

static void tell_limits(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit;

		if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
			fprintf(out, "limit.%d %llu %llu\n", i, (unsigned long long)limit.rlim_cur,
				(unsigned long long)limit.rlim_max);
	}
}

static void tell_signals(void)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i < NSIG; i++) {
		struct sigaction action;

		if (sigaction(i, NULL, &action) < 0)
			continue;
		fprintf(out, "signal.%d %s%s\n", i, action.sa_handler == SIG_IGN ? "ignored" : "default",
			sigismember(&mask, i) == 1 ? " blocked" : "");
	}
}

/* sched_getattr(2): policy, flags, nice value, priority and slice. */
static void tell_place_in_the_queue(void)
{
	struct {
		unsigned size, policy;
		unsigned long long flags;
		int nice;
		unsigned priority;
		unsigned long long runtime, deadline, period;
	} a = {0};

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) == 0)
		fprintf(out, "scheduling %u %llu %d %u %llu\n", a.policy, a.flags, a.nice, a.priority,
			a.runtime);
}

static void tell_process(void)
{
	char cwd[4096];
	cpu_set_t cpus;
	pid_t foreground = tcgetpgrp(0);
	int death_signal = -1, subreaper = -1;

	fprintf(out, "group %s\n",
		getpgrp() == getpid()			  ? "own"
			: getpgrp() == getpgid(getppid()) ? "shared"
							  : "other");
	fprintf(out, "session %s\n",
		getsid(0) == getpid()			 ? "own"
			: getsid(0) == getsid(getppid()) ? "shared"
							 : "other");
	fprintf(out, "foreground %s\n",
		foreground < 0			  ? strerror(errno)
			: foreground == getpgrp() ? "yes"
						  : "no");
	for (int fd = 0; fd < 3; fd++)
		fprintf(out, "tty.%d %d\n", fd, isatty(fd));
	fprintf(out, "cwd %s\n", getcwd(cwd, sizeof(cwd)) ? cwd : strerror(errno));
	fprintf(out, "umask %o\n", umask(0));
	fprintf(out, "nice %d\n", getpriority(PRIO_PROCESS, 0));
	fprintf(out, "policy %d\n", sched_getscheduler(0));
	fprintf(out, "cpus %d\n", sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : -1);
	fprintf(out, "dumpable %d\n", prctl(PR_GET_DUMPABLE));
	prctl(PR_GET_PDEATHSIG, &death_signal);
	fprintf(out, "death_signal %d\n", death_signal);
	prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
	fprintf(out, "subreaper %d\n", subreaper);
	fprintf(out, "no_new_privs %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	fprintf(out, "timer_slack %d\n", prctl(PR_GET_TIMERSLACK));
}

static void tell_file(const char *key, const char *path)
{
	char line[256];
	FILE *file = fopen(path, "re");

	if (!file)
		return;
	if (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		fprintf(out, "%s %s\n", key, line);
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	/* "e": with O_CLOEXEC, and its number is left out of the list. */
	out = strcmp(argv[1], "-") ? fopen(argv[1], "we") : stdout;
	if (!out)
		return 2;
	tell_descriptors(out == stdout ? -1 : fileno(out));
	tell_limits();
	tell_signals();
	tell_process();
	tell_place_in_the_queue();
	tell_file("autogroup", "/proc/self/autogroup");
	tell_file("oom_score_adj", "/proc/self/oom_score_adj");
	tell_file("coredump_filter", "/proc/self/coredump_filter");
	tell_file("loginuid", "/proc/self/loginuid");
	for (int i = 0; i < argc; i++)
		fprintf(out, "argv.%d %s\n", i, argv[i]);
	for (char **e = environ; *e; e++)
		fprintf(out, "env %s\n", *e);
	return fclose(out) == 0 ? 0 : 1;
}
