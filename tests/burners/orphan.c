/* Burns SECONDS of CPU in a process that has lost its parents, in three ways: orphan daemon|leave|reparent
 * SECONDS
 *
 * daemon    a double fork with a session of its own; the first process waits for it over a pipe
 * leave     the same, but the first process ends at once
 * reparent  the child's parent dies while the child burns, in the same session; the first process waits
 *
 * The one that burns tells its CPU time itself: nobody of this family reaps it. */
#include "burner.h"

static void become_orphan(const char *how, double cpu_s, int done)
{
	int is_daemon = strcmp(how, "reparent") != 0;
	pid_t parent, pid;

	if (is_daemon && setsid() < 0)
		fail("setsid");
	parent = getpid();
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid > 0) {
		if (!is_daemon)
			sleep_s(0.2);
		_exit(0);
	}
	burn(is_daemon ? 0 : cpu_s / 2);
	while (getppid() == parent)
		sleep_s(0.005);
	burn(is_daemon ? cpu_s : cpu_s / 2);
	tell_cpu();
	close(done);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "daemon";
	double cpu_s = number(argc, argv, 2, 0.5);
	int done[2];
	char byte;
	pid_t pid;

	if (pipe(done) < 0)
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		close(done[0]);
		become_orphan(how, cpu_s, done[1]);
	}
	close(done[1]);
	if (waitpid(pid, NULL, 0) < 0)
		fail("waitpid");
	if (strcmp(how, "leave") != 0 && read(done[0], &byte, 1) != 0)
		fail("pipe");
	return 0;
}
