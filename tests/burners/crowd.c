/* N processes that sleep until standard input ends: crowd N. Says "ready" when all are there. */
#include "burner.h"

#include <signal.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	long count = (long)number(argc, argv, 1, 1000);
	char byte;

	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
