/* With the right to it (root, CAP_SYS_NICE, RLIMIT_NICE) the best nice value, and a short slice (Linux 6.12):
 * whoever asks for little at a time is served sooner. Among 800 processes that compute on two CPUs no tick is
 * missed so. Where only RLIMIT_RTPRIO is granted, the lowest real-time priority. It is not to starve anybody:
 * the kernel tells us by SIGXCPU when we have computed for RT_MOST_US without sleeping (RLIMIT_RTTIME), and
 * for the rest of that tick we are an ordinary task again.
 *
 * Rejected: a real-time priority first of all. Below a real-time job that takes all its CPUs we would never
 * run, where an ordinary task still gets the kernel's reserve of one part in twenty.
 *
 * Nothing is done to the job. Rejected: a group of the cpu controller for the job, in which a thousand
 * processes would compete with other jobs beside it as if they were one; the nice value of our autogroup,
 * which the job shares with us. */
#include "target/priority.h"

#include "base/rights.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define RT_MOST_US 50000
#define RT_PRIORITY 1
#define SLICE_NS 300000
#define NICE_BEST (-20)

#define RESET_ON_FORK 1

/* sched_setattr(2): some libraries declare it, others do not. */
struct place {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static struct place found, ordinary, urgent;
static volatile sig_atomic_t is_urgent, lost;

static int get(struct place *ret)
{
	return syscall(SYS_sched_getattr, 0, ret, sizeof(*ret), 0) < 0 ? -errno : 0;
}

static int set(struct place *to)
{
	int r = syscall(SYS_sched_setattr, 0, to, 0) < 0 ? -errno : 0;

	if (!is_refused(r) || !rights_raise(RIGHT_SYS_NICE))
		return r;
	r = syscall(SYS_sched_setattr, 0, to, 0) < 0 ? -errno : 0;
	rights_lower();
	return r;
}

static void on_too_long(int sig)
{
	int saved = errno;

	(void)sig;
	if (is_urgent && set(&ordinary) == 0) {
		is_urgent = 0;
		lost = 1;
	}
	errno = saved;
}

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
	ordinary = (struct place){.size = sizeof(ordinary),
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

/* Without the watch over our time there is no real-time priority for us. */
static int take_realtime(void)
{
	struct sigaction watch = {.sa_handler = on_too_long, .sa_flags = SA_RESTART};
	struct rlimit most = {RT_MOST_US, RLIM_INFINITY}, limit;

	if (sigaction(SIGXCPU, &watch, NULL) < 0)
		return -errno;
	if (setrlimit(RLIMIT_RTTIME, &most) < 0) {
		most.rlim_max = getrlimit(RLIMIT_RTTIME, &limit) == 0 ? limit.rlim_max : 0;
		most.rlim_cur = MIN(most.rlim_cur, most.rlim_max);
		if (setrlimit(RLIMIT_RTTIME, &most) < 0)
			return -errno;
	}
	urgent = (struct place){
		.size = sizeof(urgent), .policy = SCHED_RR, .flags = RESET_ON_FORK, .priority = RT_PRIORITY};
	if (set(&urgent) == 0)
		return 0;
	if (getrlimit(RLIMIT_RTPRIO, &limit) < 0)
		return -errno;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_RTPRIO, &limit);
	return set(&urgent);
}

void priority_raise(struct priority *ret, enum priority_kind first)
{
	*ret = (struct priority){.error = get(&found)};
	found.size = sizeof(found);
	snprintf(ret->text, sizeof(ret->text), "none");
	if (ret->error < 0)
		return;
	if (found.policy == SCHED_FIFO || found.policy == SCHED_RR ||
		found.policy == SCHED_DEADLINE) { /* whoever started us has seen to it */
		ret->kind = PRIORITY_REALTIME;
		snprintf(ret->text, sizeof(ret->text), "real-time priority %u", found.priority);
		return;
	}
	take_nice();
	ret->nice = ordinary.nice;
	if (ret->nice < found.nice) {
		ret->kind = PRIORITY_NICE;
		snprintf(ret->text, sizeof(ret->text), "nice %d", ret->nice);
	}
	if (first != PRIORITY_REALTIME && ret->nice == NICE_BEST)
		return;
	ret->error = take_realtime();
	if (ret->error < 0)
		return;
	is_urgent = 1;
	ret->kind = PRIORITY_REALTIME;
	snprintf(ret->text, sizeof(ret->text), "real-time priority %d", RT_PRIORITY);
}

void priority_keep(void)
{
	if (!lost)
		return;
	lost = 0;
	is_urgent = set(&urgent) == 0;
}

void priority_lower(void)
{
	is_urgent = lost = 0;
	/* Who may not drop the flag keeps it: there are no children to come. */
	if (found.size && set(&found) < 0) {
		found.flags |= RESET_ON_FORK;
		set(&found);
	}
}
