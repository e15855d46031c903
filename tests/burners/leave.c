/* Burns 50 ms of CPU, tells it, then ends in a given way: leave exit CODE | signal NUMBER | stop | leader
 *
 * stop    stops itself, is continued by a child after 0.3 s, and exits 0
 * leader  the main thread ends, another burns another 300 ms of CPU and ends the process with code 5 */
#include "burner.h"

#include <pthread.h>
#include <signal.h>

static void *live_on(void *unused)
{
	(void)unused;
	burn(0.3);
	tell_cpu();
	_exit(5);
}

static void stop(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		sleep_s(0.3);
		kill(parent, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "exit";
	struct rlimit no_core = {0, 0};
	pthread_t thread;

	burn(0.05);
	tell_cpu();
	if (strcmp(how, "signal") == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		raise((int)number(argc, argv, 2, SIGKILL));
	}
	if (strcmp(how, "stop") == 0)
		stop();
	if (strcmp(how, "leader") == 0) {
		if ((errno = pthread_create(&thread, NULL, live_on, NULL)))
			fail("pthread_create");
		pthread_exit(NULL);
	}
	return strcmp(how, "exit") == 0 ? (int)number(argc, argv, 2, 0) : 0;
}
