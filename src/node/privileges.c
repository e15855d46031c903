/* Whatever can be tried is tried: a setting says what should be so, an attempt says what is so (capabilities,
 * security modules and containers have their say too). The setting only explains a refusal. */
#include "node/privileges.h"

#include "base/str.h"
#include "read/mountinfo.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define PROCESSES_MAX 512 /* looked at for one of ours and one of another user's */
#define TEXT_MAX (256 << 10)
#define CACHE_MAX (4 << 20)

static void grant(struct permit *p, const char *detail)
{
	p->state = AVAILABLE;
	snprintf(p->detail, sizeof(p->detail), "%s", detail);
}

static void refuse(struct permit *p, enum availability state, const char *reason, const char *remedy)
{
	p->state = state;
	snprintf(p->reason, sizeof(p->reason), "%s", reason);
	snprintf(p->remedy, sizeof(p->remedy), "%s", remedy ? remedy : "");
}

static int try_read(struct env *env, const char *path)
{
	char text[2];

	return (int)MIN(env_peek(env, path, text, sizeof(text)), 0);
}

/* ---- how /proc is mounted ---- */

bool mount_options(const char *mountinfo, const char *point, const char *type, char *out, size_t size)
{
	const char *end = mountinfo + strlen(mountinfo);
	bool found = false;
	struct mount m;

	while (mountinfo_next(&mountinfo, end, &m)) {
		if (!text_is(m.point, point) || !text_is(m.type, type))
			continue;
		snprintf(out, size, "%.*s", (int)m.super.len, m.super.p);
		found = true;
	}
	return found;
}

bool option_value(const char *options, const char *name, char *out, size_t size)
{
	struct text rest = text_of(options);

	while (rest.len > 0) {
		struct text value = text_cut(&rest, ','), option = text_cut(&value, '=');

		if (!text_is(option, name) || option.p[option.len] != '=')
			continue;
		snprintf(out, size, "%.*s", (int)value.len, value.p);
		return true;
	}
	return false;
}

static void hidden_processes(const char *options, const char *hidepid, struct permit *p)
{
	char gid[16], reason[120], remedy[160];
	uint64_t group;

	snprintf(reason, sizeof(reason),
		"/proc is mounted with hidepid=%.20s: processes of other users are hidden", hidepid);
	if (option_value(options, "gid", gid, sizeof(gid)) && parse_u64(gid, &group) && group)
		snprintf(remedy, sizeof(remedy),
			"sudo usermod -aG \"$(getent group %s | cut -d: -f1)\" \"$USER\"", gid);
	else
		snprintf(remedy, sizeof(remedy), "sudo mount -o remount,hidepid=0 /proc");
	refuse(p, FORBIDDEN, reason, remedy);
}

static void permit_proc(struct env *env, struct permit *p)
{
	_cleanup_(freep) char *text = malloc(TEXT_MAX);
	char options[512] = "", hidepid[24] = "off", subset[24];
	bool hides;
	int r;

	if (text && env_slurp(env, "proc/self/mountinfo", text, TEXT_MAX) > 0)
		mount_options(text, "/proc", "proc", options, sizeof(options));
	option_value(options, "hidepid", hidepid, sizeof(hidepid));
	hides = strcmp(hidepid, "off") && strcmp(hidepid, "0");
	r = try_read(env, "proc/1/stat");
	if (try_read(env, "proc/self/stat") < 0)
		refuse(p, ABSENT, "there is no /proc", "sudo mount -t proc proc /proc");
	else if (r < 0 && hides)
		hidden_processes(options, hidepid, p);
	else if (option_value(options, "subset", subset, sizeof(subset)))
		refuse(p, FORBIDDEN,
			"/proc is mounted with subset=pid: it shows processes and nothing of the node",
			"sudo mount -t proc proc /proc");
	else if (r < 0)
		refuse(p, FORBIDDEN, "processes of other users are hidden", NULL);
	else
		grant(p, hides ? "hidepid is set, and does not concern us" : "all processes are seen");
}

/* ---- whose processes can be read ---- */

struct crowd {
	struct env *env;
	int64_t uid;
	unsigned nr;
	char self[16];		/* our own pid, which shows nothing; "" when proc does not tell */
	bool readable, refused; /* of the others of our user: some are, some are not */
	char other[24];		/* "proc/PID" of another user, or "" */
};

/* The effective user, by the second number of the line. */
static int64_t uid_of(struct env *env, const char *process)
{
	char path[64], text[4096];
	const char *at;
	unsigned real, effective;

	snprintf(path, sizeof(path), "%s/status", process);
	if (env_slurp(env, path, text, sizeof(text)) <= 0)
		return -1;
	at = strstr(text, "\nUid:");
	return at && sscanf(at, "\nUid: %u %u", &real, &effective) == 2 ? (int64_t)effective : -1;
}

static int try_file(struct env *env, const char *process, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", process, file);
	return try_read(env, path);
}

static bool is_refused(int error)
{
	return error == -EACCES || error == -EPERM;
}

static int look_at(void *arg, const char *name)
{
	struct crowd *c = arg;
	char process[24];
	int64_t uid;

	if (name[0] < '1' || name[0] > '9' || strlen(name) > 10 || !strcmp(name, c->self))
		return 0;
	if (++c->nr > PROCESSES_MAX)
		return 1;
	snprintf(process, sizeof(process), "proc/%s", name);
	uid = uid_of(c->env, process);
	if (uid < 0)
		return 0;
	if (uid != c->uid)
		memcpy(c->other, process, sizeof(process));
	else if (is_refused(try_file(c->env, process, "io")))
		c->refused = true;
	else
		c->readable = true;
	return 0;
}

/* Agents, helpers of logins and programs with privileges hide from their own user: only when all are refused
 * it is a rule. Reading asks for less than attaching, which is what ptrace_scope forbids; but a module
 * that is told to forbid all attaching may forbid more. */
static void permit_own(const struct crowd *c, const char *scope, struct permit *own)
{
	char reason[200];

	if (!c->readable && !c->refused) {
		grant(own, "there is no other process of one's own");
	} else if (!c->readable) {
		snprintf(reason, sizeof(reason),
			"io, descriptors and PSS of one's own processes are refused by a security module%s%s",
			*scope ? "; kernel.yama.ptrace_scope is " : "", scope);
		refuse(own, FORBIDDEN, reason,
			!strcmp(scope, "2") ? "sudo sysctl kernel.yama.ptrace_scope=1" : NULL);
	} else {
		snprintf(reason, sizeof(reason), "one's own processes can be read in full%s%s",
			*scope ? "; ptrace_scope does not hinder: it is " : "", scope);
		grant(own, reason);
	}
}

static void permit_crowd(struct env *env, struct permit *own, struct permit *others)
{
	struct crowd c = {.env = env, .uid = uid_of(env, "proc/self")};
	char scope[8] = "";

	/* What is cut off is longer than a pid, and matches none. */
	env_readlink(env, "proc/self", c.self, sizeof(c.self) - 1);
	env_list(env, "proc", look_at, &c);
	env_slurp(env, "proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	scope[strcspn(scope, "\n")] = 0;
	permit_own(&c, scope, own);
	if (!*c.other)
		grant(others, "no process of another user is seen");
	else if (is_refused(try_file(env, c.other, "io")))
		refuse(others, FORBIDDEN,
			"io, descriptors, PSS and USS of other users' processes are for root and their owner",
			"sudo tacho attach ...");
	else
		grant(others, "those of other users can be read in full");
}

/* ---- hardware counters ---- */

static int try_counter(uint32_t type, uint64_t config, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.disabled = 1,
		.exclude_kernel = pid >= 0,
		.exclude_hv = pid >= 0,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void refuse_perf(struct permit *p, int error, int paranoid, int wanted)
{
	char reason[160], remedy[100];

	if (error == -ENOSYS || paranoid == INT_MIN) {
		refuse(p, ABSENT, "the kernel has no perf_event_open, or this container hides it", NULL);
	} else if (!is_refused(error)) {
		refuse(p, ABSENT,
			"this CPU shows no hardware counters (a virtual machine need not have them)", NULL);
	} else if (paranoid > wanted) {
		snprintf(reason, sizeof(reason),
			"kernel.perf_event_paranoid is %d: no hardware counters of %s", paranoid,
			wanted ? "processes" : "whole CPUs");
		snprintf(remedy, sizeof(remedy), "sudo sysctl kernel.perf_event_paranoid=%d", wanted);
		refuse(p, FORBIDDEN, reason, remedy);
	} else {
		refuse(p, FORBIDDEN, "hardware counters are refused by a container or a security module",
			"docker run --cap-add PERFMON ...");
	}
}

void permit_perf(int own, int whole, int paranoid, struct permit *ret_own, struct permit *ret_whole)
{
	struct permit *permit[] = {ret_own, ret_whole};
	/* Permission is asked for before existence: without counters there is nothing to permit. */
	const int error[] = {own, own < 0 && !is_refused(own) ? own : whole}, wanted[] = {2, 0};

	for (unsigned i = 0; i < ARRAY_SIZE(permit); i++)
		if (error[i] == 0)
			grant(permit[i], "hardware counters may be read");
		else
			refuse_perf(permit[i], error[i], paranoid, wanted[i]);
}

static void try_perf(struct env *env, struct permit *own, struct permit *whole)
{
	char text[16];
	int64_t paranoid = INT_MIN;
	int r, all;

	if (env_slurp(env, "proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) > 0)
		paranoid = strtol(text, NULL, 10);
	r = env->live ? try_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1) : -ENOENT;
	all = env->live ? try_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, -1, 0) : -ENOENT;
	permit_perf(r, all, (int)paranoid, own, whole);
}

/* ---- GPUs ---- */

struct gpus {
	struct env *env;
	unsigned nvidia, amd, amd_driven; /* how many, and of how many use can be read */
};

static int look_at_device(void *arg, const char *name)
{
	struct gpus *g = arg;
	char path[300], text[16];

	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.200s/class", name);
	if (env_slurp(g->env, path, text, sizeof(text)) <= 0 || !str_starts(text, "0x03"))
		return 0;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.200s/vendor", name);
	if (env_slurp(g->env, path, text, sizeof(text)) <= 0)
		return 0;
	g->nvidia += str_starts(text, "0x10de");
	if (!str_starts(text, "0x1002"))
		return 0;
	g->amd++;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.200s/gpu_busy_percent", name);
	g->amd_driven += try_read(g->env, path) == 0;
	return 0;
}

/* Where the loader would find it. Loading it just to see would run its code. */
static bool has_library(struct env *env, const char *soname)
{
	_cleanup_(freep) char *cache = malloc(CACHE_MAX);
	const char *path = env_getenv(env, "LD_LIBRARY_PATH");
	ssize_t n = cache ? env_slurp(env, "etc/ld.so.cache", cache, CACHE_MAX) : -1;
	char file[PATH_MAX];

	if (n > 0 && memmem(cache, (size_t)n, soname, strlen(soname)))
		return true;
	while (path && *path) {
		size_t len = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/%s", (int)(path[0] == '/' ? len - 1 : len),
			path[0] == '/' ? path + 1 : path, soname);
		if (len && try_read(env, file) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static void permit_nvidia(struct env *env, unsigned nr, struct permit *p)
{
	bool driver = try_read(env, "proc/driver/nvidia/version") == 0;
	int device = env_try(env, "dev/nvidiactl");

	if (!nr && !driver)
		refuse(p, ABSENT, "there is no NVIDIA GPU", NULL);
	else if (!driver)
		refuse(p, ABSENT, "there is an NVIDIA GPU, but its driver is not loaded",
			"sudo modprobe nvidia");
	else if (is_refused(device))
		refuse(p, FORBIDDEN, "/dev/nvidiactl may not be opened", "sudo chmod a+rw /dev/nvidiactl");
	else if (device < 0)
		refuse(p, FORBIDDEN, "the GPU was not given to this container", "docker run --gpus all ...");
	else if (!has_library(env, "libnvidia-ml.so.1"))
		refuse(p, ABSENT, "libnvidia-ml.so.1 (NVML) is not installed",
			"sudo apt install libnvidia-ml1");
	else
		grant(p, "an NVIDIA GPU, its driver and NVML are there");
}

static void permit_amd(struct env *env, const struct gpus *g, struct permit *p)
{
	if (!g->amd)
		refuse(p, ABSENT, "there is no AMD GPU", NULL);
	else if (!g->amd_driven)
		refuse(p, ABSENT, "there is an AMD GPU, but its driver is not loaded",
			"sudo modprobe amdgpu");
	else if (has_library(env, "librocm_smi64.so"))
		grant(p, "an AMD GPU, its driver and ROCm are there");
	else
		grant(p, "an AMD GPU and its driver are there, ROCm is not");
}

void permits_read(struct env *env, struct permit ret[static NR_PERMITS])
{
	static const char *const name[NR_PERMITS][2] = {
		[PERMIT_PROC] = {"processes", "seen"},
		[PERMIT_OWN] = {"processes", "own"},
		[PERMIT_OTHERS] = {"processes", "others"},
		[PERMIT_PERF_OWN] = {"perf", "processes"},
		[PERMIT_PERF_WHOLE] = {"perf", "cpus"},
		[PERMIT_NVIDIA] = {"gpu", "nvidia"},
		[PERMIT_AMD] = {"gpu", "amd"},
	};
	struct gpus gpus = {.env = env};

	for (unsigned i = 0; i < NR_PERMITS; i++)
		ret[i] = (struct permit){
			.source = name[i][0], .metric = name[i][1], .unused = i >= PERMIT_PERF_OWN};
	permit_proc(env, &ret[PERMIT_PROC]);
	permit_crowd(env, &ret[PERMIT_OWN], &ret[PERMIT_OTHERS]);
	try_perf(env, &ret[PERMIT_PERF_OWN], &ret[PERMIT_PERF_WHOLE]);
	env_list(env, "sys/bus/pci/devices", look_at_device, &gpus);
	permit_nvidia(env, gpus.nvidia, &ret[PERMIT_NVIDIA]);
	permit_amd(env, &gpus, &ret[PERMIT_AMD]);
}
