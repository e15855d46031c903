/* What may be counted is found by trying: rights come from a setting of the kernel, from capabilities, from
 * what a container's filter lets through, and only the kernel knows how they combine. The setting is read to
 * tell users what to change. Trials are of software counters, which every kernel has, so that a refusal is
 * not taken for a missing PMU; the kernel checks permission before existence, so without permission only the
 * folder of a PMU shows that it exists. */
#include "perf/counter.h"
#include "perf/event_internal.h"

#include "read/value.h"

#include <limits.h>

/* Opens a counter of our own process, or of a CPU where it counts packages, and closes it. */
static int try_counter(struct env *env, const struct perf_event *e, int cpu)
{
	struct perf_event_attr attr;
	int handle;

	perf_event_fill(e, &attr);
	attr.disabled = 1;
	handle = env_counter_open(env, &attr, e->of_package ? -1 : 0, e->of_package ? cpu : -1);
	env_close(env, handle);
	return MIN(handle, 0);
}

int event_try_modes(struct env *env, const struct perf_event *e)
{
	struct perf_event user = *e;
	struct cpu_bits cpus;
	int r = e->of_package ? counter_cpus(env, e, &cpus) : 0;

	if (r < 0)
		return r;
	r = try_counter(env, e, e->of_package ? cpu_bits_next(&cpus, 0) : -1);
	if (!is_refused(r) || e->of_package || e->in_kernel || e->exclude_user || e->exclude_kernel)
		return r;
	user.exclude_kernel = true;
	return try_counter(env, &user, -1);
}

static bool has_pmu(struct env *env, bool may)
{
	const struct perf_event cycles = {.type = PERF_TYPE_HARDWARE, .exclude_kernel = true};
	struct pmu core[1];
	int r = may ? try_counter(env, &cycles, -1) : -EPERM;

	return is_refused(r) ? pmus_core(env, core, ARRAY_SIZE(core)) > 0 : r == 0 || r == -EBUSY;
}

static void explain(struct perf_access *a, int own)
{
	if (a->tasks) {
		a->reason = "this machine shows no hardware counters (a virtual machine need not have any)";
		a->remedy = "# on the host: give the virtual machine a virtual PMU (KVM: -cpu host,pmu=on)";
	} else if (own == -ENOSYS || a->paranoid == INT_MIN) {
		a->reason = "the kernel has no perf_event_open, or this container hides it";
	} else if (is_refused(own) && a->paranoid > 2) {
		a->reason = "kernel.perf_event_paranoid is above 2: counters are for administrators";
		a->remedy = "sudo sysctl kernel.perf_event_paranoid=2";
	} else if (is_refused(own)) {
		a->reason =
			"counters are refused by a container's filter of system calls or a security module";
		a->remedy = "docker run --cap-add PERFMON ...";
	} else if (own == -EMFILE || own == -ENFILE) {
		a->reason = "too many files are open";
		a->remedy = "ulimit -n 65536";
	} else {
		a->reason = "the kernel gives no counter of our own process";
	}
}

void perf_access(struct env *env, struct perf_access *ret)
{
	struct perf_event e = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = true};
	int own, whole;
	int64_t level;

	*ret = (struct perf_access){.paranoid = INT_MIN};
	if (value_get(env, "proc/sys/kernel/perf_event_paranoid", &level) == 0)
		ret->paranoid = (int)MAX(MIN(level, INT_MAX), INT_MIN + 1);
	own = try_counter(env, &e, -1);
	ret->tasks = own == 0;
	e.exclude_kernel = false;
	ret->kernel_too = ret->tasks && try_counter(env, &e, -1) == 0;
	/* The kernel checks the rights before it checks whether the CPU is online. */
	e.config = PERF_COUNT_SW_CPU_CLOCK;
	e.of_package = true;
	whole = try_counter(env, &e, 0);
	ret->packages = whole == 0 || whole == -ENODEV;
	ret->hardware = has_pmu(env, ret->tasks);
	if (!ret->tasks || !ret->hardware)
		explain(ret, own);
}
