/* With the right to it (root, CAP_SYS_NICE, RLIMIT_RTPRIO) the lowest real-time priority, else the best nice
 * value that is allowed (RLIMIT_NICE). In any case a short slice (Linux 6.12): a task that asks for little
 * time at once is scheduled sooner.
 *
 * Why real-time first: among 1,000 processes that compute on two CPUs, at one tick a second, nice -20 missed
 * 15 of 122 ticks (Linux 6.18, one of them by three seconds) and a real-time priority none of 99. A nice
 * value only makes our share larger, and the time until we run grows with the number of the other tasks.
 *
 * It must not block the machine, nor us:
 * - The kernel sends SIGXCPU when we have computed for RT_MOST_US without sleeping (RLIMIT_RTTIME).
 * - We add up ourselves what we have used in RT_WINDOW_NS. After twice that time we are an ordinary task, in
 *   both cases until the window is over.
 * - Below a real-time job that takes all its CPUs we would never run, where an ordinary task still gets the
 *   kernel's reserve of one part in twenty. A thread of ordinary priority watches: when we have waited for a
 *   CPU for a second, we are an ordinary task for good.
 *
 * Nothing is done to the job here; the two groups in which job and recorder compete are target/cgroup.c's.
 * Rejected: SCHED_DEADLINE (refused where our CPUs are restricted, and a tick that needs more than its time
 * would stand still on an idle machine); the nice value of our autogroup, which the job shares with us; a
 * session of our own, and with it an autogroup (the leader of a process group may not have one, and signals
 * to the group and the terminal's keys would no longer reach us). */
#include "target/priority.h"

#include "base/rights.h"
#include "base/sigmask.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#define RT_MOST_US 50000
#define RT_PRIORITY 1
#define RT_WINDOW_NS (900 * NSEC_PER_MSEC) /* a little less than a second: at 1 Hz every tick begins one */
#define WATCH_MS 1000
#define WATCH_STACK (64 << 10)
#define SLICE_NS 300000
#define NICE_BEST (-20)

#define RESET_ON_FORK 1

/* sched_setattr(2): some libraries declare it, others do not. */
struct priority_place {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static struct priority_place found, ordinary, urgent;
static volatile sig_atomic_t is_urgent, put_off;
static bool may_be_urgent;
static int64_t window_ns, window_cpu_ns;

/* What the watching thread knows. It ends when it can read from `stop`. */
static struct {
	pid_t tid;
	clockid_t clock;
	int stop;
	atomic_bool starved;
} watch;

static int get(struct priority_place *ret)
{
	return syscall(SYS_sched_getattr, 0, ret, sizeof(*ret), 0) < 0 ? -errno : 0;
}

/* Of the calling thread. */
static int set(struct priority_place *to)
{
	int r = syscall(SYS_sched_setattr, 0, to, 0) < 0 ? -errno : 0;

	if (!is_refused(r) || !rights_raise(RIGHT_SYS_NICE))
		return r;
	r = syscall(SYS_sched_setattr, 0, to, 0) < 0 ? -errno : 0;
	rights_lower();
	return r;
}

/* A signal that was sent to us is for the job: it is blocked and stays pending until our signals are read. */
static void put_off_sent(int sig, siginfo_t *info, ucontext_t *before)
{
	sigaddset(&before->uc_sigmask, sig);
	syscall(SYS_rt_sigqueueinfo, getpid(), sig, info);
	put_off = 1;
}

static void on_too_long(int sig, siginfo_t *info, void *before)
{
	int saved = errno;

	if (info->si_code != SI_KERNEL)
		put_off_sent(sig, info, before);
	else if (is_urgent && set(&ordinary) == 0)
		is_urgent = 0;
	errno = saved;
}

static int64_t now_of(clockid_t clock)
{
	struct timespec ts = {0};

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* ---- the watching thread ---- */

/* Whether the sampling thread has a CPU or waits for one. */
static bool is_runnable(int stat)
{
	char text[128], *at;
	ssize_t n = pread(stat, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	at = strrchr(text, ')');
	return at && at[1] == ' ' && at[2] == 'R';
}

/* A thread that is runnable twice and has not run in between has waited all the time. */
static void *watch_for_starving(void *unused)
{
	struct pollfd stop = {.fd = watch.stop, .events = POLLIN};
	struct priority_place own = ordinary;
	int64_t waits_at = -1; /* its CPU time when it was found runnable */
	char path[48];
	int stat;

	(void)unused;
	prctl(PR_SET_NAME, "priority-watch");
	set(&own);
	rights_drop();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)watch.tid);
	stat = open(path, O_RDONLY | O_CLOEXEC);
	while (poll(&stop, 1, WATCH_MS) == 0) {
		int64_t cpu = now_of(watch.clock);

		if (!is_urgent || !is_runnable(stat)) {
			waits_at = -1;
		} else if (cpu != waits_at) {
			waits_at = cpu;
		} else {
			atomic_store(&watch.starved, true);
			syscall(SYS_sched_setattr, watch.tid, &ordinary, 0);
			break;
		}
	}
	closep(&stat);
	return NULL;
}

static int start_watch(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	watch.tid = (pid_t)syscall(SYS_gettid);
	atomic_store(&watch.starved, false);
	r = pthread_getcpuclockid(pthread_self(), &watch.clock);
	watch.stop = eventfd(0, EFD_CLOEXEC);
	if (r || watch.stop < 0)
		return r ? -r : -errno;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, WATCH_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread, &attr, watch_for_starving, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r;
}

static void end_watch(void)
{
	uint64_t one = 1;

	/* It stays open: the thread may still read from it. */
	if (watch.stop > 0 && write(watch.stop, &one, sizeof(one)) < 0)
		return;
}

/* ---- taking ---- */

/* The best that the limit allows, which we raise as far as we may. */
static int best_nice(int now)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NICE, &limit) < 0)
		return now;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NICE, &limit);
	return limit.rlim_cur >= 40 ? NICE_BEST : MIN(now, 20 - (int)limit.rlim_cur);
}

static void take_nice(void)
{
	ordinary = (struct priority_place){.size = sizeof(ordinary),
		.policy = SCHED_OTHER,
		.flags = RESET_ON_FORK,
		.nice = NICE_BEST,
		.runtime_ns = SLICE_NS};
	if (set(&ordinary) == 0)
		return;
	ordinary.nice = best_nice(found.nice);
	if (set(&ordinary) == 0)
		return;
	ordinary.nice = found.nice;
	set(&ordinary);
}

static void let_it_come(void)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGXCPU);
	sigmask_change(SIG_UNBLOCK, &one, NULL);
}

/* To be set anew each time: when it is reached, the kernel adds a second to it. */
static int limit_time(void)
{
	struct rlimit most = {RT_MOST_US, RLIM_INFINITY}, limit;

	if (setrlimit(RLIMIT_RTTIME, &most) == 0)
		return 0;
	most.rlim_max = getrlimit(RLIMIT_RTTIME, &limit) == 0 ? limit.rlim_max : 0;
	most.rlim_cur = MIN(most.rlim_cur, most.rlim_max);
	return setrlimit(RLIMIT_RTTIME, &most) < 0 ? -errno : 0;
}

/* Whether it would be given. */
static int try_realtime(void)
{
	struct rlimit limit;
	int r;

	urgent = (struct priority_place){
		.size = sizeof(urgent), .policy = SCHED_RR, .flags = RESET_ON_FORK, .priority = RT_PRIORITY};
	r = set(&urgent);
	if (r < 0 && getrlimit(RLIMIT_RTPRIO, &limit) == 0 && limit.rlim_max > limit.rlim_cur) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_RTPRIO, &limit);
		r = set(&urgent);
	}
	may_be_urgent = r == 0;
	return r;
}

/* Without the limits of our time there is no real-time priority for us. */
static bool begin_realtime(void)
{
	struct sigaction action = {.sa_sigaction = on_too_long, .sa_flags = SA_RESTART | SA_SIGINFO};

	if (sigaction(SIGXCPU, &action, NULL) < 0 || start_watch() < 0)
		return false;
	let_it_come();
	return true;
}

void priority_raise(struct priority *ret)
{
	*ret = (struct priority){.error = get(&found)};
	found.size = sizeof(found);
	snprintf(ret->text, sizeof(ret->text), "none");
	if (ret->error < 0)
		return;
	if (found.policy == SCHED_FIFO || found.policy == SCHED_RR ||
		found.policy == SCHED_DEADLINE) { /* our caller has set a real-time priority already */
		ret->kind = PRIORITY_REALTIME;
		snprintf(ret->text, sizeof(ret->text), "real-time priority %u", found.priority);
		return;
	}
	ret->error = try_realtime();
	take_nice();
	ret->nice = ordinary.nice;
	if (ret->error == 0) {
		ret->kind = PRIORITY_REALTIME;
		snprintf(ret->text, sizeof(ret->text), "real-time priority %d", RT_PRIORITY);
	} else if (ret->nice < found.nice) {
		ret->kind = PRIORITY_NICE;
		snprintf(ret->text, sizeof(ret->text), "nice %d", ret->nice);
	}
}

void priority_keep(int64_t cpu_ns)
{
	int64_t now = now_of(CLOCK_MONOTONIC);

	if (put_off) {
		put_off = 0;
		let_it_come();
	}
	if (!may_be_urgent)
		return;
	if (!watch.tid)
		may_be_urgent = begin_realtime();
	if (!may_be_urgent || atomic_load(&watch.starved)) {
		is_urgent = may_be_urgent = false;
		set(&ordinary);
	} else if (now - window_ns >= RT_WINDOW_NS) {
		window_ns = now;
		window_cpu_ns = cpu_ns;
		if (!is_urgent)
			is_urgent = limit_time() == 0 && set(&urgent) == 0;
	} else if (is_urgent && cpu_ns - window_cpu_ns > 2 * RT_MOST_US * NSEC_PER_USEC) {
		is_urgent = set(&ordinary) != 0;
	}
}

void priority_lower(void)
{
	is_urgent = may_be_urgent = false;
	end_watch();
	/* If we may not drop the flag we keep it: we start no more children. */
	if (found.size && set(&found) < 0) {
		found.flags |= RESET_ON_FORK;
		set(&found);
	}
}
