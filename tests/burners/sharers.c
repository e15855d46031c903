/* Memory that forked children share: sharers MIB CHILDREN WRITTEN_MIB ROUNDS SECONDS [LAST]
 *
 * Writes MIB. In each round forks CHILDREN, each of which writes WRITTEN_MIB of it anew; when all have done
 *so they stand still for SECONDS, in the last round for LAST (see hold()), and end one after another. Tells
 *the most that all had together while they stood still, as the kernel has it:
 *
 *	pss_bytes, distinct_bytes (what the first process had, and what the children wrote) */
#include "burner.h"

#include <sys/mman.h>

static int64_t field_of(pid_t pid, const char *format)
{
	char path[64], line[256];
	long long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "r");
	if (!f)
		fail(path);
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, format, &kib);
	fclose(f);
	return kib * 1024;
}

static void child(char *memory, int64_t written, int ready, int over)
{
	char byte = 0;

	memset(memory, 2, (size_t)written);
	if (write(ready, &byte, 1) != 1)
		fail("write");
	if (read(over, &byte, 1) != 1)
		fail("read");
	_exit(0);
}

static int64_t one_round(char *memory, int children, int64_t written, double still_s, char **last)
{
	int ready[2], over[2];
	pid_t pid[64];
	int64_t pss;
	char byte;

	if (pipe(ready) < 0 || pipe(over) < 0)
		fail("pipe");
	for (int i = 0; i < children; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			fail("fork");
		if (pid[i] == 0)
			child(memory, written, ready[1], over[0]);
	}
	for (int i = 0; i < children; i++)
		if (read(ready[0], &byte, 1) != 1)
			fail("read");
	pss = field_of(getpid(), "Pss: %lld");
	for (int i = 0; i < children; i++)
		pss += field_of(pid[i], "Pss: %lld");
	if (last)
		hold(1, last, 0, 0);
	else
		sleep_s(still_s);
	for (int i = 0; i < children; i++)
		if (write(over[1], &byte, 1) != 1 || wait(NULL) < 0)
			fail("end");
	close(over[0]);
	close(over[1]);
	close(ready[0]);
	close(ready[1]);
	return pss;
}

int main(int argc, char **argv)
{
	int64_t bytes = (int64_t)number(argc, argv, 1, 48) * MIB, most = 0;
	int children = (int)number(argc, argv, 2, 5), rounds = (int)number(argc, argv, 4, 1);
	double still_s = number(argc, argv, 5, 0.1);
	int64_t written = (int64_t)(number(argc, argv, 3, 0) * MIB);
	char *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	if (memory == MAP_FAILED || children > 64)
		fail("sharers");
	madvise(memory, (size_t)bytes, MADV_NOHUGEPAGE);
	memset(memory, 1, (size_t)bytes);
	for (int i = 0; i < rounds; i++) {
		int64_t pss = one_round(
			memory, children, written, still_s, i == rounds - 1 && argc > 6 ? argv + 6 : NULL);

		most = pss > most ? pss : most;
	}
	printf("pss_bytes %lld\ndistinct_bytes %lld\n", (long long)most,
		(long long)(field_of(getpid(), "Rss: %lld") + children * written));
	return 0;
}
