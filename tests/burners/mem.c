/* Holds memory, all of it touched: mem private MIB SECONDS, or mem shared MIB SECONDS [CHILDREN], where the
 * children map and touch the same pages. For SECONDS see hold(). */
#include "burner.h"

#include <sys/mman.h>

static volatile char *touch(volatile char *memory, int64_t bytes)
{
	for (int64_t i = 0; i < bytes; i += 4096)
		memory[i] = (char)(i >> 12 | 1);
	return memory;
}

int main(int argc, char **argv)
{
	int shared = argc > 1 && strcmp(argv[1], "shared") == 0;
	int64_t bytes = (int64_t)number(argc, argv, 2, 100) * MIB;
	int forked = argc > 1 && strcmp(argv[1], "forked") == 0;
	int children = shared || forked ? (int)number(argc, argv, 4, 3) : 0;
	char *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
		MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	touch(memory, bytes);
	if (children > 0)
		sleep_s(0.3); /* alone with it, then not: its share changes while it sleeps */
	for (int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			if (shared)
				touch(memory, bytes);
			hold(argc, argv, 3, 1);
			_exit(0);
		}
	}
	hold(argc, argv, 3, 1);
	while (wait(NULL) > 0)
		;
	tell_cpu();
	return 0;
}
