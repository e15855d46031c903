/* attach --background: the process that the caller started returns when recording has begun, and the recorder
 * goes on in a session of its own. So it is no child of the program that wants to be recorded, which may wait
 * for all of its children, and nothing of that program's terminal, files and signals is its own. */
#include "cmd/background.h"

#include "cmd/cmd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int announce_fd = -1;

/* Locks and pipes that the caller left open are not ours to hold. Before Linux 5.9 one by one. */
static void close_others(void)
{
	long most = sysconf(_SC_OPEN_MAX);

	if (syscall(SYS_close_range, 3, ~0U, 0) == 0)
		return;
	for (long fd = 3; fd < MIN(most, 65536); fd++)
		close((int)fd);
}

/* What the recorder says goes to stdout, as it comes; without a word it has failed, and said why on stderr.
 */
static void __attribute__((noreturn)) wait_for_recorder(int fd, pid_t recorder)
{
	int status = 0;
	char text[512];
	bool any = false;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR)) {
		any |= n > 0;
		if (n > 0 && fwrite(text, 1, (size_t)n, stdout) != (size_t)n)
			break;
	}
	if (any)
		exit(finish_stdout(EXIT_OK));
	while (waitpid(recorder, &status, 0) < 0 && errno == EINTR)
		;
	exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_OWN);
}

pid_t background_enter(void)
{
	pid_t caller = getpid(), recorder;
	int end[2];

	close_others();
	if (pipe2(end, O_CLOEXEC) < 0)
		die(EXIT_OWN, "cannot make a pipe: %s", strerror(errno));
	recorder = fork();
	if (recorder < 0)
		die(EXIT_OWN, "cannot start a process: %s", strerror(errno));
	if (recorder > 0) {
		close(end[1]);
		wait_for_recorder(end[0], recorder);
	}
	close(end[0]);
	setsid();
	announce_fd = end[1];
	return caller;
}

void background_announce(struct recording *r)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char *variables[3];

	engine_flush(r->engine); /* readers find the first sample */
	record_variables(r, variables);
	for (size_t i = 0; i < ARRAY_SIZE(variables) && variables[i]; i++) {
		dprintf(announce_fd, "%s\n", variables[i]);
		free(variables[i]);
	}
	dprintf(announce_fd, "TACHO_RECORDER=%d\n", (int)getpid());
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	close(announce_fd);
	announce_fd = -1;
}
