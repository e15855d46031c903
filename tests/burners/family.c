/* A random tree of processes whose use is known: family SEED COUNT KINDS
 *
 * COUNT steps of the first process, each of which makes a child of one of KINDS (letters), which may make
 *more:
 *
 *	w  is waited for              o  loses its parent (double fork, a session of its own)
 *	i  its parent ignores SIGCHLD n  its parent asked with SA_NOCLDWAIT
 *	e  becomes a new program      t  burns in three threads
 *	u  changes its user (root), to FAMILY_UID or nobody
 *	v  likewise, with a child before that and one after
 *	s  a shell, say: waits for three short ones, one after another
 *
 * I as the first letter: the first process itself ignores SIGCHLD.
 * Every process burns CPU, touches pages and writes to /dev/null, and adds what it has used to memory that
 * all share, just before it ends. The first one ends when all have ended, and tells the sums:
 *
 *	cpu_s, minor_faults, write_chars, processes */
#include "burner.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define PAGES 200
#define CHUNK 32768

static struct sums {
	_Atomic int64_t cpu_us, minor_faults, write_chars, processes;
} * sums;
static int memory_fd, null_fd;
static char *self;

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

static void *burn_thread(void *ms)
{
	burn(*(double *)ms / 1e3);
	return NULL;
}

static void work(uint32_t *seed, int threads)
{
	static char chunk[CHUNK];
	double ms = 2 + next(seed) % 12;
	char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	pthread_t thread[3];

	if (pages == MAP_FAILED)
		fail("mmap");
	madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		pages[i * 4096] = 1;
	munmap(pages, PAGES * 4096);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, burn_thread, &ms))
			fail("pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	burn(ms / 1e3);
	if (write(null_fd, chunk, CHUNK) != CHUNK)
		fail("write");
	atomic_fetch_add(&sums->write_chars, CHUNK);
}

static void tell_and_end(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	atomic_fetch_add(&sums->cpu_us,
		(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec);
	atomic_fetch_add(&sums->minor_faults, r.ru_minflt);
	atomic_fetch_add(&sums->processes, 1);
	_exit(0);
}

static void steps(uint32_t seed, int count, const char *kinds, int depth);

static void on_child(int number)
{
	(void)number;
}

static void ignore_children(char kind)
{
	struct sigaction act = {.sa_handler = SIG_IGN};

	if (kind == 'n') {
		act.sa_handler = on_child;
		act.sa_flags = SA_NOCLDWAIT | SA_RESTART;
	}
	sigaction(SIGCHLD, &act, NULL);
}

static pid_t fork_or_fail(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	return pid;
}

/* A child that burns and ends; `alone`: in a session of its own, forked again. */
static void leaf(uint32_t *seed, int alone)
{
	uint32_t own = next(seed);
	pid_t pid = fork_or_fail();

	if (pid)
		return;
	if (alone) {
		setsid();
		if (fork_or_fail()) {
			work(&own, 0);
			tell_and_end();
		}
	}
	work(&own, 0);
	tell_and_end();
}

static void wait_all(void)
{
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

static void change_user(uint32_t *seed)
{
	const char *other = getenv("FAMILY_UID");
	uid_t uid = other ? (uid_t)strtoul(other, NULL, 10) : 65534;

	if (geteuid() != 0)
		return;
	work(seed, 0);
	if (setresuid(uid, uid, uid) < 0)
		fail("setresuid");
}

static void child(char kind, uint32_t seed, const char *kinds, int depth)
{
	char number[24], fd[16];

	if (kind == 'e') {
		work(&seed, 0);
		snprintf(number, sizeof(number), "%u", seed);
		snprintf(fd, sizeof(fd), "%d", memory_fd);
		execl(self, self, "leaf", number, fd, NULL);
		fail("exec");
	}
	if (kind == 'v')
		leaf(&seed, 0);
	if (kind == 'v' && next(&seed) % 2)
		wait_all();
	if (kind == 'u' || kind == 'v')
		change_user(&seed);
	if (kind == 'v')
		leaf(&seed, 0);
	if (kind == 'i' || kind == 'n')
		ignore_children(kind);
	for (int i = 0; i < 3 && (kind == 'i' || kind == 'n' || kind == 's'); i++) {
		leaf(&seed, 0);
		if (kind == 's')
			wait_all();
	}
	if (kind == 'o')
		leaf(&seed, 1);
	work(&seed, kind == 't' ? 3 : 0);
	if (depth && kind == 'w')
		steps(seed, 2, kinds, depth - 1);
	wait_all();
	tell_and_end();
}

static void steps(uint32_t seed, int count, const char *kinds, int depth)
{
	for (int i = 0; i < count; i++) {
		char kind = kinds[next(&seed) % strlen(kinds)];
		uint32_t theirs = next(&seed) << 16 | next(&seed);

		if (fork_or_fail() == 0)
			child(kind, theirs, kinds, depth);
		if (next(&seed) % 2)
			wait_all();
	}
}

static void share(int fd)
{
	memory_fd = fd;
	sums = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (sums == MAP_FAILED || null_fd < 0)
		fail("share");
}

int main(int argc, char **argv)
{
	uint32_t seed = (uint32_t)number(argc, argv, argc > 1 && !strcmp(argv[1], "leaf") ? 2 : 1, 1);
	const char *kinds = argc > 3 ? argv[3] : "wo";
	struct rusage r;
	int fd, all[2];
	char byte;

	self = argv[0];
	if (argc > 3 && !strcmp(argv[1], "leaf")) {
		share((int)number(argc, argv, 3, 0));
		work(&seed, 0);
		tell_and_end();
	}
	fd = memfd_create("sums", 0);
	if (fd < 0 || ftruncate(fd, 4096) < 0 || pipe(all) < 0)
		fail("memfd_create");
	share(fd);
	if (*kinds == 'I') {
		ignore_children('i');
		kinds++;
	}
	work(&seed, 0);
	steps(seed, (int)number(argc, argv, 2, 10), kinds, 2);
	wait_all();
	close(all[1]);
	if (read(all[0], &byte, 1) != 0)
		fail("pipe");
	wait_all();
	getrusage(RUSAGE_SELF, &r);
	printf("cpu_s %.6f\nminor_faults %lld\nwrite_chars %lld\nprocesses %lld\n",
		(double)sums->cpu_us / 1e6 + rusage_s(RUSAGE_SELF),
		(long long)(sums->minor_faults + r.ru_minflt), (long long)sums->write_chars,
		(long long)sums->processes + 1);
	return 0;
}
