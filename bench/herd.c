/* A herd: a tree of N processes to be observed, of which a given share is active and the rest sleep.
 *
 *	herd N ACTIVE-PERCENT PERIOD-MS
 *
 * Prints the pids, one a line and the root's first, then "ready", and lives until SIGTERM or until its
 *starter dies. An active process wakes about every period, runs a few dozen microseconds, writes to /dev/null
 *and now and then gives pages back and touches them again, so that between two ticks its CPU clock, io,
 *switches and faults move and its RSS goes up and down. Every wake and every amount is drawn from a small
 *generator seeded with the process's number: a herd does much the same each time, and its members do not
 *march in step (a herd in step would compress far too well, and would always run into the sampler's own
 *wake-up).
 *
 * Members are forked, never exec'ed, and the program is linked statically: that is what makes 5,000 of them
 *cheap enough for a machine of two cores. Threads of one process were rejected, since a sampler sees
 *processes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAN_OUT 64 /* children of one member: deep enough to be a tree, flat enough to start quickly */
#define POOL_PAGES 32
#define PAGE 4096

struct herd { /* shared by all members */
	atomic_uint ready;
	atomic_bool failed;
	pid_t pid[];
};

static struct herd *herd;
static unsigned nr_members, active_percent, period_us;
static volatile sig_atomic_t stopped;

static void on_stop(int signum)
{
	(void)signum;
	stopped = 1;
}

static uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static uint32_t random_between(uint32_t *state, uint32_t low, uint32_t high)
{
	return low + random_next(state) % (high - low + 1);
}

/* Spreads the active ones evenly over the tree. */
static bool is_active(unsigned number)
{
	return (uint64_t)(number + 1) * active_percent / 100 > (uint64_t)number * active_percent / 100;
}

static void run_us(unsigned us)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += (long)us * 1000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_nsec -= 1000000000;
		end.tv_sec++;
	}
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static void breathe(char *pool, uint32_t *seed)
{
	unsigned pages = random_between(seed, 1, POOL_PAGES);

	(void)madvise(pool, POOL_PAGES * PAGE, MADV_DONTNEED);
	for (unsigned i = 0; i < pages; i++)
		*(volatile char *)(pool + i * PAGE) = 1;
}

static void work(unsigned number)
{
	static char dust[4096];
	uint32_t seed = number * 2654435761u + 1;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char *pool =
		mmap(NULL, POOL_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (null < 0 || pool == MAP_FAILED)
		return;
	while (!stopped) {
		unsigned us = random_between(&seed, period_us * 3 / 4, period_us * 5 / 4);
		struct timespec nap = {us / 1000000, us % 1000000 * 1000};

		nanosleep(&nap, NULL);
		run_us(random_between(&seed, 5, 40));
		if (write(null, dust, random_between(&seed, 1, sizeof(dust))) < 0)
			return;
		if (random_next(&seed) % 16 == 0)
			breathe(pool, &seed);
	}
}

static void member(unsigned number);

static void bear(unsigned number)
{
	unsigned first = number * FAN_OUT + 1;

	for (unsigned child = first; child < first + FAN_OUT && child < nr_members; child++) {
		pid_t parent = getpid();
		pid_t pid = fork();

		if (pid < 0)
			atomic_store(&herd->failed, true);
		if (pid != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		member(child);
		_exit(0);
	}
}

/* Only the root hears SIGTERM; the others are killed by it, or die with their parent. */
static void member(unsigned number)
{
	herd->pid[number] = getpid();
	bear(number);
	atomic_fetch_add(&herd->ready, 1);
	if (number == 0)
		return;
	signal(SIGTERM, SIG_DFL);
	if (is_active(number))
		work(number);
	for (;;)
		pause();
}

static int wait_ready(void)
{
	struct timespec nap = {0, 5000000};

	while (atomic_load(&herd->ready) < nr_members) {
		if (atomic_load(&herd->failed) || stopped)
			return -EAGAIN;
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* The signal must not come between the look and the sleep. */
static void wait_stop(void)
{
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	while (!stopped)
		sigsuspend(&before);
}

static void kill_all(void)
{
	for (unsigned i = 1; i < nr_members; i++)
		if (herd->pid[i] > 0)
			kill(herd->pid[i], SIGKILL);
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

static int parse(char **argv)
{
	double period_ms;

	nr_members = (unsigned)strtoul(argv[1], NULL, 10);
	active_percent = (unsigned)strtoul(argv[2], NULL, 10);
	period_ms = strtod(argv[3], NULL);
	if (nr_members < 1 || nr_members > 30000 || active_percent > 100 || period_ms < 1 ||
		period_ms > 60000)
		return -EINVAL;
	period_us = (unsigned)(period_ms * 1000);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction stop = {.sa_handler = on_stop};

	if (argc != 4 || parse(argv) < 0) {
		fprintf(stderr, "usage: herd N ACTIVE-PERCENT PERIOD-MS\n");
		return 2;
	}
	herd = mmap(NULL, sizeof(*herd) + nr_members * sizeof(pid_t), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (herd == MAP_FAILED)
		return 1;
	sigaction(SIGTERM, &stop, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that none is left to an init that may not reap */
	member(0);
	if (wait_ready() < 0) {
		kill_all();
		fprintf(stderr, "herd: cannot start %u processes\n", nr_members);
		return 1;
	}
	for (unsigned i = 0; i < nr_members; i++)
		printf("%d\n", herd->pid[i]);
	printf("ready\n");
	fflush(stdout);
	if (is_active(0))
		work(0);
	wait_stop();
	kill_all();
	return 0;
}
