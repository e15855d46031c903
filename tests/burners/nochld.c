/* COUNT children that burn MS milliseconds each, and a parent that never learns of their end, so that their
 * CPU time reaches no rusage: nochld ignore|nocldwait COUNT MS [DOOR]. Each child adds what it used to shared
 * memory. With a DOOR, the cgroup.procs of a control group, they enter that first. */
#include "burner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

static void enter(const char *door)
{
	int fd = open(door, O_WRONLY);

	if (fd < 0 || write(fd, "0", 1) != 1)
		fail(door);
	close(fd);
}

int main(int argc, char **argv)
{
	int count = (int)number(argc, argv, 2, 10);
	double cpu_s = number(argc, argv, 3, 50) / 1e3;
	_Atomic int64_t *used_us =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
	struct sigaction act = {0};

	if (used_us == MAP_FAILED)
		fail("mmap");
	if (argc > 1 && strcmp(argv[1], "nocldwait") == 0)
		act.sa_flags = SA_NOCLDWAIT;
	else
		act.sa_handler = SIG_IGN;
	if (sigaction(SIGCHLD, &act, NULL) < 0)
		fail("sigaction");
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			if (argc > 4)
				enter(argv[4]);
			burn(cpu_s);
			atomic_fetch_add(used_us, (int64_t)(seconds(CLOCK_PROCESS_CPUTIME_ID) * 1e6));
			_exit(0);
		}
	}
	while (wait(NULL) > 0 || errno == EINTR) /* ECHILD when all are gone */
		;
	printf("cpu_s %.6f\n", rusage_s(RUSAGE_SELF) + (double)atomic_load(used_us) / 1e6);
	return 0;
}
