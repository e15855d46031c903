/* Takes MIB, touches them, gives them back, all within a moment between two quiet ones: spike MIB
 * QUIET_SECONDS. Tells how long the moment was. With - for the seconds, the first lasts until there is input
 * and the second until it ends. */
#include "burner.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
	size_t bytes = (size_t)(number(argc, argv, 1, 500) * (double)MIB);
	double begin;
	char *memory, byte;

	if (argc > 2 && strcmp(argv[2], "-") == 0) {
		if (read(STDIN_FILENO, &byte, 1) != 1)
			fail("no input");
	} else {
		hold(argc, argv, 2, 0.5);
	}
	begin = seconds(CLOCK_MONOTONIC);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	memory[bytes / 2] = 1;
	munmap(memory, bytes);
	printf("spike_s %.3f\n", seconds(CLOCK_MONOTONIC) - begin);
	fflush(stdout);
	hold(argc, argv, 2, 0.5);
	return 0;
}
