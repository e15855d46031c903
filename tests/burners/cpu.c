/* Spends CPU time until its own clock shows it: cpu SECONDS [user|sys [MORE]]. Where MORE is said it then
 * waits for the end of its standard input, and spends MORE seconds. */
#include "burner.h"

#include <fcntl.h>

static void burn_in_kernel(double until_s)
{
	static char memory[1 << 20];
	int zero = open("/dev/zero", O_RDONLY);

	while (seconds(CLOCK_PROCESS_CPUTIME_ID) < until_s)
		if (read(zero, memory, sizeof(memory)) < 0)
			fail("/dev/zero");
}

int main(int argc, char **argv)
{
	double cpu_s = number(argc, argv, 1, 1);

	if (argc > 2 && strcmp(argv[2], "sys") == 0)
		burn_in_kernel(cpu_s);
	else
		burn(cpu_s - seconds(CLOCK_PROCESS_CPUTIME_ID));
	if (argc > 3) {
		wait_for_end_of_input();
		burn(number(argc, argv, 3, 1));
	}
	tell_cpu();
	return 0;
}
