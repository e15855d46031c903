/* What the job may use, and which limit it is that binds.
 *
 * Every limit that can be read is a candidate, and the smallest wins; of equal ones the first that was read,
 * so that a whole node is "machine" and not the grant of it. Limits that the kernel enforces are read before
 * those that the batch system only promised. Limits of control groups hold for all that is below, so all
 * groups up to the top of what is mounted are read.
 *
 * A cpuset is seen twice, as the group's and as the affinity that the kernel reduced to it; the group is read
 * first, being the cause. Affinities name CPUs that are offline or never were: only those online count. */
#include "node/limits.h"

#include "base/str.h"
#include "node/cgroups.h"
#include "node/host_list.h"
#include "node/variables.h"
#include "read/cpulist.h"
#include "read/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define TEXT_SIZE (64 << 10)
#define MIB (1 << 20)
#define SLURM_COMPONENTS_MOST 128
#define GROUP_SHOWN 150 /* characters of a group's name: its end is more useful than its beginning */

struct asker {
	struct env *env;
	pid_t pid;
	bool of_job; /* what is asked for is the job's, whatever step the variables are of */
	struct limits *ret;
	const struct cgroups *groups;
	struct cpu_bits online; /* empty: not known */
	char *text;		/* TEXT_SIZE, for one file at a time */
	struct variables variables;
};

/* ---- candidates ---- */

static void candidate(struct limit *l, double value, const char *fmt, ...) _printf_(3, 4);

static void candidate(struct limit *l, double value, const char *fmt, ...)
{
	va_list ap;

	if (!(value > 0) || (l->known && value >= l->value))
		return;
	l->known = true;
	l->value = value;
	va_start(ap, fmt);
	vsnprintf(l->source, sizeof(l->source), fmt, ap);
	va_end(ap);
}

/* The end of a long name, from the start of a character on. */
static const char *group_shown(const char *group)
{
	size_t len = strlen(group);

	if (len <= GROUP_SHOWN)
		return group;
	group += len - GROUP_SHOWN;
	while (((unsigned char)*group & 0xc0) == 0x80)
		group++;
	return group;
}

/* ---- files of the process and of the machine ---- */

/* Of files that the kernel hands out whole with one reading. */
static const char *peek(struct asker *a, const char *path)
{
	return env_peek(a->env, path, a->text, TEXT_SIZE) < 0 ? NULL : a->text;
}

static const char *peek_of_process(struct asker *a, const char *name)
{
	char path[48];

	if (a->pid)
		snprintf(path, sizeof(path), "proc/%d/%s", (int)a->pid, name);
	else
		snprintf(path, sizeof(path), "proc/self/%s", name);
	return peek(a, path);
}

/* The text after a key that opens a line, without blanks; NULL when there is none. */
static const char *after_key(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (!strncmp(line, key, len))
			return line + len + strspn(line + len, " \t");
	return NULL;
}

static bool number_after(const char *text, const char *key, int64_t *ret)
{
	return text && read_key(text, text + strlen(text), key, ret);
}

/* ---- the machine ---- */

static void count_lines_of_cpus(struct asker *a)
{
	const char *line = peek(a, "proc/stat");

	for (; line && !strncmp(line, "cpu", 3); line = strchr(line, '\n'), line += !!line)
		cpu_bits_add(&a->online, line + 3);
}

static void ask_machine(struct asker *a)
{
	const char *online = peek(a, "sys/devices/system/cpu/online");
	int64_t kib;

	if (!online || !cpu_bits_add(&a->online, online))
		count_lines_of_cpus(a);
	a->ret->machine_cpus = cpu_bits_count(&a->online);
	candidate(&a->ret->cpus, a->ret->machine_cpus, "machine");
	if (number_after(peek(a, "proc/meminfo"), "MemTotal", &kib))
		a->ret->machine_memory = (double)kib * 1024;
	candidate(&a->ret->memory, a->ret->machine_memory, "machine");
}

/* How many CPUs of the set there are. */
static unsigned count_online(const struct asker *a, struct cpu_bits *set)
{
	for (size_t i = 0; a->ret->machine_cpus > 0 && i < ARRAY_SIZE(set->word); i++)
		set->word[i] &= a->online.word[i];
	return cpu_bits_count(set);
}

/* The same of a list; 0: no list. */
static unsigned count_cpus(const struct asker *a, const char *list)
{
	struct cpu_bits set = {0};

	return list && cpu_bits_add(&set, list) ? count_online(a, &set) : 0;
}

/* ---- control groups ---- */

static const char *slurp_of_group(struct asker *a, const struct cgroup_dir *dir, const char *file)
{
	return cgroup_text(a->env, dir, file, a->text, TEXT_SIZE) < 0 ? NULL : a->text;
}

/* On v2 the file is missing where the controller is not enabled: then the group above decides. */
static void ask_cpuset(struct asker *a)
{
	struct cgroup_dir dir = a->groups->dir[CGROUP_CPUSET];
	unsigned nr = 0;

	if (!dir.found)
		return;
	if (!dir.v2) {
		nr = count_cpus(a, slurp_of_group(a, &dir, "cpuset.effective_cpus"));
		if (!nr) /* before Linux 3.17 */
			nr = count_cpus(a, slurp_of_group(a, &dir, "cpuset.cpus"));
	} else {
		do
			nr = count_cpus(a, slurp_of_group(a, &dir, "cpuset.cpus.effective"));
		while (!nr && cgroup_dir_up(&dir));
	}
	candidate(&a->ret->cpus, nr, "cpuset %s", group_shown(dir.group));
}

static void ask_quota_v1(struct asker *a, const struct cgroup_dir *dir)
{
	int64_t quota, period;

	if (cgroup_number(a->env, dir, "cpu.cfs_quota_us", &quota) < 0 || quota <= 0 ||
		cgroup_number(a->env, dir, "cpu.cfs_period_us", &period) < 0 || period <= 0)
		return;
	candidate(&a->ret->cpus, (double)quota / (double)period, "cgroup %s cpu.cfs_quota_us",
		group_shown(dir->group));
}

/* "150000 100000", or "max 100000". */
static void ask_quota_v2(struct asker *a, const struct cgroup_dir *dir)
{
	const char *p = slurp_of_group(a, dir, "cpu.max"), *end = p ? p + strlen(p) : NULL;
	int64_t quota, period;

	if (!p || !read_number(&p, end, &quota) || p == end || *p++ != ' ' ||
		!read_number(&p, end, &period) || quota <= 0 || period <= 0)
		return;
	candidate(
		&a->ret->cpus, (double)quota / (double)period, "cgroup %s cpu.max", group_shown(dir->group));
}

static void ask_quota(struct asker *a)
{
	struct cgroup_dir dir = a->groups->dir[CGROUP_CPU];

	if (!dir.found)
		return;
	do {
		if (dir.v2)
			ask_quota_v2(a, &dir);
		else
			ask_quota_v1(a, &dir);
	} while (cgroup_dir_up(&dir));
}

static void ask_memory_file(struct asker *a, const struct cgroup_dir *dir, const char *file)
{
	int64_t bytes;

	if (cgroup_number(a->env, dir, file, &bytes) == 0)
		candidate(&a->ret->memory, (double)bytes, "cgroup %s %s", group_shown(dir->group), file);
}

/* v1 shows the limits of groups above that a container cannot see. */
static void ask_hidden_limit(struct asker *a, const struct cgroup_dir *own)
{
	int64_t bytes;

	if (!own->v2 &&
		number_after(slurp_of_group(a, own, "memory.stat"), "hierarchical_memory_limit", &bytes))
		candidate(&a->ret->memory, (double)bytes, "cgroup above %s", group_shown(own->group));
}

/* "No limit" is a number beyond all memory on v1 and `max` on v2, and never the least. */
static void ask_group_memory(struct asker *a)
{
	struct cgroup_dir dir = a->groups->dir[CGROUP_MEMORY];

	if (!dir.found)
		return;
	do {
		if (dir.v2) {
			ask_memory_file(a, &dir, "memory.max");
			ask_memory_file(a, &dir, "memory.high");
		} else {
			ask_memory_file(a, &dir, "memory.limit_in_bytes");
		}
	} while (cgroup_dir_up(&dir));
	ask_hidden_limit(a, &a->groups->dir[CGROUP_MEMORY]);
}

/* ---- the process ---- */

/* The kernel gives us our own limits without a file. */
static bool is_us(const struct asker *a)
{
	return !a->pid && a->env->live;
}

static bool own_affinity(struct cpu_bits *ret)
{
	return syscall(SYS_sched_getaffinity, 0, sizeof(ret->word), ret->word) > 0;
}

static void ask_affinity(struct asker *a)
{
	const char *text = is_us(a) ? NULL : peek_of_process(a, "status");
	struct cpu_bits set = {0};

	if (text)
		text = after_key(text, "Cpus_allowed_list:");
	if (text ? cpu_bits_add(&set, text) > 0 : is_us(a) && own_affinity(&set))
		candidate(&a->ret->cpus, count_online(a, &set), "affinity");
}

/* The soft limit, in bytes; "unlimited" is no number. RLIMIT_RSS is not read: no kernel of this century
 * enforces it. */
static void ask_ulimits(struct asker *a)
{
	static const struct {
		const char *key, *name;
		int resource;
	} ulimit[] = {{"Max address space", "ulimit -v (each process)", RLIMIT_AS},
		{"Max data size", "ulimit -d (each process)", RLIMIT_DATA}};
	const char *text = is_us(a) ? NULL : peek_of_process(a, "limits");

	for (size_t i = 0; i < ARRAY_SIZE(ulimit); i++) {
		struct rlimit own;
		int64_t bytes;

		if (number_after(text, ulimit[i].key, &bytes))
			candidate(&a->ret->memory, (double)bytes, "%s", ulimit[i].name);
		else if (is_us(a) && getrlimit(ulimit[i].resource, &own) == 0 &&
			own.rlim_cur != RLIM_INFINITY)
			candidate(&a->ret->memory, (double)own.rlim_cur, "%s", ulimit[i].name);
	}
}

/* ---- the batch system ---- */

/* Of the process, not ours: its job need not be the one that we run in. */
static const char *variable(const struct asker *a, const char *name)
{
	return variable_get(&a->variables, name);
}

static bool variable_number(const struct asker *a, const char *name, uint64_t *ret)
{
	const char *value = variable(a, name);

	return value && parse_u64(value, ret) && *ret > 0;
}

/* "2(x3),4": what the node of this index has. */
static bool per_node(const char *list, uint64_t index, int64_t *ret)
{
	const char *p = list, *end = list + strlen(list);

	while (read_number(&p, end, ret) && *ret > 0) {
		int64_t times = 1;

		if (!strncmp(p, "(x", 2)) {
			p += 2;
			if (!read_number(&p, end, &times) || times <= 0 || *p++ != ')')
				return false;
		}
		if (index < (uint64_t)times)
			return true;
		index -= (uint64_t)times;
		if (*p++ != ',')
			return false;
	}
	return false;
}

/* By the place of this node in one list of the job's. False: there is no such list. */
static bool slurm_cpus_in_list(struct asker *a, const char *own, const char *suffix, int64_t *ret)
{
	struct host_list nodes = {0};
	const char *list, *cpus;
	ssize_t at = -1;
	char name[80];

	snprintf(name, sizeof(name), "SLURM_JOB_CPUS_PER_NODE%s", suffix);
	cpus = variable(a, name);
	snprintf(name, sizeof(name), "SLURM_JOB_NODELIST%s", suffix);
	list = variable(a, name);
	if (list && cpus && host_list_add_list(&nodes, list) == 0)
		at = host_list_find(&nodes, own);
	if (at >= 0 && !per_node(cpus, (uint64_t)at, ret))
		*ret = 0;
	host_list_release(&nodes);
	return list;
}

/* What the job has on this node: variables of a step count the CPUs and the nodes of the step. Each component
 * of a heterogeneous job has lists of its own. 0: not known. */
static double slurm_cpus_of_job(struct asker *a)
{
	const char *own = variable(a, "SLURMD_NODENAME");
	int64_t found = 0;
	bool any = own;

	for (unsigned i = 0; any && !found && i < SLURM_COMPONENTS_MOST; i++) {
		char suffix[32];

		snprintf(suffix, sizeof(suffix), "_HET_GROUP_%u", i);
		any = slurm_cpus_in_list(a, own, suffix, &found);
	}
	if (own && !found)
		slurm_cpus_in_list(a, own, "", &found);
	return (double)found;
}

/* CPUs of the job on this node; 0: not known. */
static double slurm_cpus(struct asker *a, const char **ret_name)
{
	const char *list = variable(a, "SLURM_JOB_CPUS_PER_NODE");
	double of_job = a->of_job ? slurm_cpus_of_job(a) : 0;
	uint64_t cpus, node = 0;
	int64_t nr;

	*ret_name = "SLURM_JOB_CPUS_PER_NODE";
	if (of_job > 0)
		return of_job;
	*ret_name = "SLURM_CPUS_ON_NODE";
	if (variable_number(a, *ret_name, &cpus))
		return (double)cpus;
	*ret_name = "SLURM_JOB_CPUS_PER_NODE";
	variable_number(a, "SLURM_NODEID", &node);
	return list && per_node(list, node, &nr) ? (double)nr : 0;
}

/* Memory is in MiB, and 0 is all there is. */
static void ask_slurm(struct asker *a)
{
	const char *name;
	uint64_t mib;
	double cpus;

	if (!variable(a, "SLURM_JOB_ID") && !variable(a, "SLURM_JOBID"))
		return;
	cpus = slurm_cpus(a, &name);
	candidate(&a->ret->cpus, cpus, "%s", name);
	if (variable_number(a, "SLURM_MEM_PER_NODE", &mib))
		candidate(&a->ret->memory, (double)mib * MIB, "SLURM_MEM_PER_NODE");
	else if (variable_number(a, "SLURM_MEM_PER_CPU", &mib))
		candidate(&a->ret->memory, (double)mib * MIB * cpus, "SLURM_MEM_PER_CPU");
}

/* PBS grants memory too, but has no variable for it: where it is enforced, that is done by a control
 * group. */
static void ask_pbs(struct asker *a)
{
	uint64_t cpus;

	if (!variable(a, "PBS_JOBID"))
		return;
	if (variable_number(a, "NCPUS", &cpus))
		candidate(&a->ret->cpus, (double)cpus, "NCPUS of PBS");
	else if (variable_number(a, "PBS_NUM_PPN", &cpus)) /* TORQUE */
		candidate(&a->ret->cpus, (double)cpus, "PBS_NUM_PPN");
}

/* One line for every core granted, with the name of its node: "node1" or "node1.site". */
static void ask_oar(struct asker *a)
{
	const char *file = variable(a, "OAR_NODEFILE"), *line;
	char host[256];
	size_t len;
	unsigned nr = 0;

	if (!file || file[0] != '/')
		return;
	line = peek(a, "proc/sys/kernel/hostname");
	if (!line)
		return;
	len = strcspn(line, ".\n");
	if (!len || len >= sizeof(host))
		return;
	memcpy(host, line, len);
	line = env_slurp(a->env, file + 1, a->text, TEXT_SIZE) < 0 ? NULL : a->text;
	for (; line; line = strchr(line, '\n'), line += !!line)
		nr += strcspn(line, ".\n") == len && !memcmp(line, host, len);
	candidate(&a->ret->cpus, nr, "OAR_NODEFILE");
}

static void apply_override(struct limits *l, const struct limits_override *override)
{
	if (override && override->cpus > 0) {
		l->cpus.known = false;
		candidate(&l->cpus, override->cpus, "--max-cpus");
	}
	if (override && override->memory_bytes > 0) {
		l->memory.known = false;
		candidate(&l->memory, override->memory_bytes, "--max-memory");
	}
}

/* The directories of a group in all hierarchies that have it. They are found from our own. In a hierarchy in
 * which the group does not exist it has no limits. */
static int find_group(struct env *env, const char *group, struct cgroups *ret)
{
	int r = cgroups_read(env, 0, ret);

	for (unsigned i = 0; i < NR_CGROUP_CONTROLLERS; i++) {
		struct cgroup_dir *dir = &ret->dir[i];
		char path[PATH_MAX + NAME_MAX];

		dir->found = r >= 0 && dir->found && group && cgroup_dir_move(dir, group);
		if (!dir->found)
			continue;
		snprintf(path, sizeof(path), "%s/cgroup.procs", dir->path);
		dir->found = env_try(env, path) >= 0;
	}
	return 0;
}

static void ask_batch_system(struct asker *a)
{
	variables_open(&a->variables, a->env, a->pid);
	ask_slurm(a);
	ask_pbs(a);
	ask_oar(a);
	variables_close(&a->variables);
}

int limits_read_of(struct env *env, const struct limits_subject *subject,
	const struct limits_override *override, struct limits *ret)
{
	_cleanup_(freep) struct cgroups *found = subject->places ? NULL : malloc(sizeof(*found));
	_cleanup_(freep) char *text = malloc(TEXT_SIZE);
	struct asker a = {.env = env,
		.pid = subject->pid,
		.of_job = subject->level == LIMITS_JOB,
		.ret = ret,
		.text = text};
	bool process = subject->level == LIMITS_PROCESS;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	a.groups = subject->places ? subject->places : found;
	if (!a.groups || !text)
		return -ENOMEM;
	if (found)
		r = process ? cgroups_read(env, subject->pid, found) : find_group(env, subject->group, found);
	ask_machine(&a);
	ask_cpuset(&a);
	if (process)
		ask_affinity(&a);
	ask_quota(&a);
	ask_group_memory(&a);
	if (process)
		ask_ulimits(&a);
	if (subject->level != LIMITS_GROUP)
		ask_batch_system(&a);
	apply_override(ret, override);
	return r == -ESRCH ? r : 0;
}

int limits_read(struct env *env, pid_t pid, const struct limits_override *override, struct limits *ret)
{
	return limits_read_of(
		env, &(struct limits_subject){.level = LIMITS_PROCESS, .pid = pid}, override, ret);
}
