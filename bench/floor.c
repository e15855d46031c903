/* The floor: what it costs to only read what a recorder of processes must read, and do nothing with it.
 *
 *	floor INTERVAL-MS TICKS KEEP < pids
 *
 * Per tick it asks the CPU clock of every process and, where it moved, reads the process's stat, statm, io
 *and schedstat and the size of its fd directory from descriptors that stay open, and once a second status:
 *the sources of the recorder's default rows. Nothing is parsed, stored or looked up. KEEP descriptors may
 *stay open; processes beyond that have their files opened for each reading, as the recorder must do at its
 *RLIMIT_NOFILE.
 *
 * Prints its own CPU time over the ticks after the first two (which open and warm up) as one JSON object.
 *Wake-ups are counted in, as they are for everybody. Measured from outside it would have carried its own
 *start as well. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 2
#define SECOND 1000000000LL
#define STATUS_EVERY (5 * SECOND)

enum { STAT, STATM, IO, SCHEDSTAT, FD, STATUS, NR_FILES };

static const char *const file_name[NR_FILES] = {"stat", "statm", "io", "schedstat", "fd", "status"};

struct process {
	int pid;
	bool kept, gone;
	int64_t clock_ns;	 /* CPU time at the last tick */
	int64_t status_clock_ns; /* and when status was read last */
	int fd[NR_FILES];
};

static struct process *process;
static size_t nr_processes, nr_kept;
static uint64_t nr_moved, nr_failed;

static int64_t now_ns(clockid_t id)
{
	struct timespec t;

	if (clock_gettime(id, &t) < 0)
		return -1;
	return t.tv_sec * SECOND + t.tv_nsec;
}

static int open_file(int pid, int file)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file_name[file]);
	return open(path, (file == FD ? O_RDONLY | O_DIRECTORY : O_RDONLY) | O_CLOEXEC);
}

static void read_file(struct process *p, int file)
{
	static char text[8192];
	struct stat st;
	int fd = p->kept ? p->fd[file] : open_file(p->pid, file);

	if (file == FD ? fstat(fd, &st) < 0 : pread(fd, text, sizeof(text), 0) < 0)
		nr_failed++;
	if (!p->kept && fd >= 0)
		close(fd);
}

static void tick(bool with_status)
{
	for (size_t i = 0; i < nr_processes; i++) {
		struct process *p = &process[i];
		int64_t clock_ns = now_ns(~(clockid_t)p->pid << 3 | 2);

		if (clock_ns < 0)
			nr_failed++;
		if (clock_ns != p->clock_ns) {
			p->clock_ns = clock_ns;
			nr_moved++;
			for (int file = STAT; file <= FD; file++)
				read_file(p, file);
		}
		if (with_status && p->status_clock_ns != clock_ns) {
			p->status_clock_ns = clock_ns;
			read_file(p, STATUS);
		}
	}
}

static int load(size_t keep)
{
	size_t cap = 0;
	int pid;

	while (scanf("%d", &pid) == 1) {
		struct process *p;

		if (nr_processes == cap) {
			cap = cap ? 2 * cap : 1024;
			process = realloc(process, cap * sizeof(*process));
			if (!process)
				return -ENOMEM;
		}
		p = &process[nr_processes++];
		*p = (struct process){.pid = pid, .clock_ns = -1, .status_clock_ns = -1};
		if ((nr_kept + 1) * NR_FILES > keep)
			continue;
		for (int file = 0; file < NR_FILES; file++) {
			p->fd[file] = open_file(pid, file);
			if (p->fd[file] < 0)
				return -errno;
		}
		p->kept = true;
		nr_kept++;
	}
	return nr_processes > 0 ? 0 : -ENODATA;
}

static int raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static int64_t run(int64_t interval_ns, unsigned ticks)
{
	int64_t next_ns = now_ns(CLOCK_MONOTONIC), next_status_ns = next_ns, start_ns = 0;

	for (unsigned i = 0; i < ticks + WARM_UP; i++) {
		struct timespec until;
		bool with_status = next_ns >= next_status_ns;

		if (i == WARM_UP) {
			start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
			nr_moved = 0;
		}
		next_ns += interval_ns;
		until = (struct timespec){next_ns / SECOND, next_ns % SECOND};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
		if (with_status)
			next_status_ns += STATUS_EVERY;
		tick(with_status);
	}
	return now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns;
}

int main(int argc, char **argv)
{
	double interval_ms = argc == 4 ? strtod(argv[1], NULL) : 0;
	unsigned ticks = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	int64_t cpu_ns;
	int r;

	if (interval_ms < 0.1 || ticks < 1) {
		fprintf(stderr, "usage: floor INTERVAL-MS TICKS KEEP < pids\n");
		return 2;
	}
	r = raise_limit();
	if (r == 0)
		r = load(strtoul(argv[3], NULL, 10));
	if (r < 0) {
		fprintf(stderr, "floor: %s\n", strerror(-r));
		return 1;
	}
	prctl(PR_SET_TIMERSLACK, 1);
	cpu_ns = run((int64_t)(interval_ms * 1e6), ticks);
	printf("{\"processes\": %zu, \"kept\": %zu, \"ticks\": %u, \"moved\": %llu, \"failed\": %llu, "
	       "\"cpu_ns\": %lld}\n",
		nr_processes, nr_kept, ticks, (unsigned long long)nr_moved, (unsigned long long)nr_failed,
		(long long)cpu_ns);
	return 0;
}
