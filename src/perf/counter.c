/* Opening falls back from the whole machine to user mode, never to less; reading scales by what was gained
 * since the last reading alone.
 *
 * Rejected: scaling the whole count by the whole times, as is usual for one number at the end. The sum may
 * then fall when a counter gets its turn in a quiet stretch, and readers of the recording take the fall of a
 * counter for a reset. */
#include "perf/counter.h"

#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define PARANOID(level) "sudo sysctl kernel.perf_event_paranoid=" #level

int counter_open(struct env *env, const struct perf_event *e, pid_t pid, int cpu,
	enum counter_inherit inherit, bool enable_on_exec, struct counter *ret, bool *ret_user_only)
{
	struct perf_event_attr attr;
	bool user_only = e->exclude_kernel;
	int handle;

	perf_event_fill(e, &attr);
	attr.inherit = inherit != INHERIT_NONE;
	attr.inherit_thread = inherit == INHERIT_THREADS;
	attr.disabled = attr.enable_on_exec = enable_on_exec;
	*ret = (struct counter){.handle = -1};
	if (user_only && e->in_kernel)
		return -EACCES;
	handle = env_counter_open(env, &attr, pid, cpu);
	if (is_refused(handle) && !user_only && !e->exclude_user && !e->in_kernel && !e->of_package) {
		attr.exclude_kernel = attr.exclude_hv = true;
		user_only = true;
		handle = env_counter_open(env, &attr, pid, cpu);
	}
	if (handle < 0)
		return handle;
	ret->handle = handle;
	*ret_user_only = user_only;
	return 0;
}

/* What it would have counted, had it run all the time it was enabled. */
static uint64_t scaled(uint64_t value, uint64_t enabled, uint64_t running)
{
	unsigned __int128 product;

	if (running >= enabled)
		return value;
	product = ((unsigned __int128)value * enabled + running / 2) / running;
	return product > INT64_MAX ? INT64_MAX : (uint64_t)product;
}

int counter_read(struct env *env, struct counter *c)
{
	struct env_count now;
	uint64_t gain;
	int r;

	if (c->handle < 0)
		return -EBADF;
	r = env_counter_read(env, c->handle, &now);
	if (r < 0)
		return r;
	/* A child that is ending may for an instant be in neither count: what is missing comes back later. */
	if (now.value < c->last.value || now.enabled_ns < c->last.enabled_ns ||
		now.running_ns < c->last.running_ns)
		return 0;
	c->count.enabled_ns = now.enabled_ns;
	c->count.running_ns = now.running_ns;
	/* It had no turn yet: the next turn that it gets accounts for this time. */
	if (now.running_ns == c->last.running_ns && now.enabled_ns > c->last.enabled_ns)
		return 0;
	gain = scaled(now.value - c->last.value, now.enabled_ns - c->last.enabled_ns,
		now.running_ns - c->last.running_ns);
	c->count.value = MIN(c->count.value, INT64_MAX - gain) + gain;
	c->last = now;
	return 0;
}

void counter_close(struct env *env, struct counter *c)
{
	env_close(env, c->handle);
	c->handle = -1;
}

int counter_cpus(struct env *env, const struct perf_event *e, struct cpu_bits *ret)
{
	char path[160], list[4096];

	*ret = (struct cpu_bits){0};
	snprintf(path, sizeof(path), "sys/bus/event_source/devices/%s/cpumask", e->pmu);
	return value_get_text(env, path, list, sizeof(list)) < 0 || !cpu_bits_add(ret, list) ? -ENODEV : 0;
}

static const struct {
	int error;
	const char *reason, *remedy;
} trouble[] = {
	{EMFILE, "no file descriptors are left for more counters", "ulimit -n 65536"},
	{ENFILE, "the whole machine has no file descriptors left for more counters", NULL},
	{ENOMEM, "the kernel has no memory for more counters", NULL},
	{EOPNOTSUPP, "the processor or its driver cannot count this", NULL},
	{ENODEV, "the processor cannot count this", NULL},
	{EINVAL,
		"the kernel does not take this event: its code is not one of this processor, or the kernel "
		"is older than it",
		NULL},
	{E2BIG, "the kernel is too old for this event", NULL},
	{EBUSY, "another program uses the counters exclusively: perf, a profiler or the watchdog",
		"sudo sysctl kernel.nmi_watchdog=0"},
	{ESRCH, "the process has ended", NULL},
	{ENOSYS, "this kernel has no performance counters, or a container hides them", NULL},
};

static bool is_hardware(const struct perf_event *e)
{
	return e->type != PERF_TYPE_SOFTWARE && e->type != PERF_TYPE_TRACEPOINT;
}

void counter_trouble(const struct perf_event *e, int error, const char **ret_reason, const char **ret_remedy)
{
	error = error < 0 ? -error : error;
	*ret_remedy = NULL;
	if (error == EACCES || error == EPERM) {
		*ret_reason = e->in_kernel ? "it happens in the kernel, and only user mode may be counted"
			: e->of_package	   ? "only privileged users may count for the whole node"
			: e->exclude_user  ? "the kernel mode may not be counted"
					   : "the kernel does not let us count";
		*ret_remedy = e->of_package		  ? PARANOID(0)
			: e->in_kernel || e->exclude_user ? PARANOID(1)
							  : PARANOID(2);
		return;
	}
	if (error == ENOENT) {
		*ret_reason = is_hardware(e)
			? "the processor's counters are not available here, as in most virtual machines"
			: "this kernel has no such event";
		*ret_remedy = is_hardware(e)
			? "# on the host: give the virtual machine a virtual PMU (KVM: -cpu host,pmu=on)"
			: NULL;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(trouble); i++)
		if (trouble[i].error == error) {
			*ret_reason = trouble[i].reason;
			*ret_remedy = trouble[i].remedy;
			return;
		}
	*ret_reason = strerrordesc_np(error);
	if (!*ret_reason)
		*ret_reason = "the kernel refuses it, with an unknown error";
}
