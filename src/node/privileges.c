/* What this machine lets us read. Whatever can be tried is tried: a setting says what should work, an attempt
 * shows what works (capabilities, security modules and containers matter too). The setting only explains a
 * refusal. */
#include "node/privileges.h"

#include "base/str.h"
#include "read/mountinfo.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PROCESSES_MAX 512 /* looked at for one of ours and one of another user's */
#define TEXT_MAX (256 << 10)
#define CACHE_MAX (4 << 20)

void permit_grant(struct permit *p, const char *detail)
{
	p->state = AVAILABLE;
	snprintf(p->detail, sizeof(p->detail), "%s", detail);
}

void permit_refuse(struct permit *p, enum availability state, const char *reason, const char *remedy)
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
	permit_refuse(p, FORBIDDEN, reason, remedy);
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
		permit_refuse(p, ABSENT, "there is no /proc", "sudo mount -t proc proc /proc");
	else if (env->other_pids)
		permit_refuse(p, ABSENT,
			"/proc is of another PID namespace than ours: its processes are not the job's",
			"sudo mount -t proc proc /proc # unshare --mount-proc does");
	else if (r < 0 && hides)
		hidden_processes(options, hidepid, p);
	else if (option_value(options, "subset", subset, sizeof(subset)))
		permit_refuse(p, FORBIDDEN,
			"/proc is mounted with subset=pid: it shows processes and nothing of the node",
			"sudo mount -t proc proc /proc");
	else if (r < 0)
		permit_refuse(p, FORBIDDEN, "processes of other users are hidden", NULL);
	else
		permit_grant(p,
			hides ? "hidepid is set, but does not apply to this user" : "all processes are seen");
}

/* ---- which processes can be read ---- */

struct crowd {
	struct env *env;
	int64_t uid;
	unsigned nr;
	char self[16];		/* our own pid, which is skipped; "" when proc does not show it */
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

/* Agents, login helpers and programs with privileges are hidden even from their own user: it is a rule only
 * when all are refused. Reading needs less than attaching, which is what ptrace_scope forbids; but a module
 * that is set to forbid all attaching may forbid more. */
static void permit_own(const struct crowd *c, const char *scope, struct permit *own)
{
	char reason[200];

	if (!c->readable && !c->refused) {
		permit_grant(own, "this user has no other process");
	} else if (!c->readable) {
		snprintf(reason, sizeof(reason),
			"a security module refuses io, descriptors and PSS of this user's own processes%s%s",
			*scope ? "; kernel.yama.ptrace_scope is " : "", scope);
		permit_refuse(own, FORBIDDEN, reason,
			!strcmp(scope, "2") ? "sudo sysctl kernel.yama.ptrace_scope=1" : NULL);
	} else {
		snprintf(reason, sizeof(reason), "this user's own processes can be read in full%s%s",
			*scope ? "; kernel.yama.ptrace_scope is " : "", scope);
		permit_grant(own, reason);
	}
}

static void permit_crowd(struct env *env, struct permit *own, struct permit *others)
{
	struct crowd c = {.env = env, .uid = uid_of(env, "proc/self")};
	char scope[8] = "";

	/* A text that is cut is longer than a pid, and matches none. */
	env_readlink(env, "proc/self", c.self, sizeof(c.self) - 1);
	env_list(env, "proc", look_at, &c);
	env_slurp(env, "proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	scope[strcspn(scope, "\n")] = 0;
	permit_own(&c, scope, own);
	if (!*c.other)
		permit_grant(others, "no process of another user is seen");
	else if (is_refused(try_file(env, c.other, "io")))
		permit_refuse(others, FORBIDDEN,
			"io, descriptors, PSS and USS of other users' processes can only be read by root "
			"and their owner",
			"sudo tacho attach ...");
	else
		permit_grant(others, "processes of other users can be read in full");
}

/* ---- GPUs ---- */

enum { NVIDIA, AMD, INTEL, NR_MAKERS };

static const struct gpu_maker_words {
	const char *id, *none, *undriven, *load;
} maker[NR_MAKERS] = {
	[NVIDIA] = {"0x10de", "there is no NVIDIA GPU",
		"there is an NVIDIA GPU, but its driver is not loaded", "sudo modprobe nvidia"},
	[AMD] = {"0x1002", "there is no AMD GPU", "there is an AMD GPU, but its driver is not loaded",
		"sudo modprobe amdgpu"},
	[INTEL] = {"0x8086", "there is no Intel GPU", "there is an Intel GPU, but its driver is not loaded",
		"sudo modprobe -a i915 xe"},
};

struct privileges_gpus {
	struct env *env;
	struct {
		unsigned nr, undriven;
		char driver[24]; /* of the last that has one */
	} of[NR_MAKERS];
};

/* Display controllers (03) and processing accelerators (12). */
static int look_at_device(void *arg, const char *name)
{
	struct privileges_gpus *g = arg;
	char path[300], text[256];
	const char *driver;
	unsigned m = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.200s/class", name);
	if (env_slurp(g->env, path, text, sizeof(text)) <= 0 ||
		(!str_starts(text, "0x03") && !str_starts(text, "0x12")))
		return 0;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.200s/vendor", name);
	if (env_slurp(g->env, path, text, sizeof(text)) <= 0)
		return 0;
	while (m < NR_MAKERS && !str_starts(text, maker[m].id))
		m++;
	if (m == NR_MAKERS)
		return 0;
	g->of[m].nr++;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.200s/driver", name);
	n = env_readlink(g->env, path, text, sizeof(text) - 1);
	text[MAX(n, 0)] = 0;
	driver = strrchr(text, '/');
	if (n <= 0)
		g->of[m].undriven++;
	else
		snprintf(g->of[m].driver, sizeof(g->of[m].driver), "%.20s", driver ? driver + 1 : text);
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

static bool in_container(struct env *env)
{
	return env_try(env, ".dockerenv") == 0 || env_try(env, "run/.containerenv") == 0 ||
		env_getenv(env, "container") != NULL;
}

/* A driver that is not the maker's own, or was taken away from this machine. */
static bool refuse_driver(const char *driver, struct permit *p)
{
	if (str_starts(driver, "vfio") || !strcmp(driver, "pci-stub"))
		permit_refuse(p, ABSENT, "the GPU is assigned to a virtual machine", NULL);
	else if (!strcmp(driver, "nouveau"))
		permit_refuse(p, ABSENT, "the GPU has the driver nouveau, which does not report its use",
			"sudo apt install nvidia-driver");
	else if (!strcmp(driver, "radeon"))
		permit_refuse(
			p, ABSENT, "the GPU has the driver radeon, which does not report its use", NULL);
	else
		return false;
	return true;
}

static void permit_nvidia(struct env *env, const struct privileges_gpus *g, struct permit *p)
{
	bool driver = try_read(env, "proc/driver/nvidia/version") == 0;
	int device = env_try(env, "dev/nvidiactl");

	if (!g->of[NVIDIA].nr && !driver)
		permit_refuse(p, ABSENT, maker[NVIDIA].none, NULL);
	else if (!driver && refuse_driver(g->of[NVIDIA].driver, p))
		return;
	else if (!driver)
		permit_refuse(p, ABSENT, maker[NVIDIA].undriven, maker[NVIDIA].load);
	else if (is_refused(device))
		permit_refuse(p, FORBIDDEN, "/dev/nvidiactl may not be opened",
			"sudo chmod a+rw /dev/nvidiactl /dev/nvidia[0-9]*");
	else if (device < 0 && in_container(env))
		permit_refuse(p, FORBIDDEN, "the GPU is not available in this container",
			"docker run --gpus all ...");
	else if (device < 0)
		permit_refuse(p, ABSENT, "the driver is loaded, but /dev/nvidiactl does not exist",
			"sudo nvidia-modprobe -c 0");
	else if (!has_library(env, "libnvidia-ml.so.1"))
		permit_refuse(p, ABSENT,
			"libnvidia-ml.so.1 (NVML) is not installed; it must be that of the driver",
			"sudo apt install libnvidia-ml1");
	else
		permit_grant(p, "an NVIDIA GPU, its driver and NVML are there");
}

/* All users may read its use; programs that compute need the device. */
static void permit_amd(struct env *env, const struct privileges_gpus *g, struct permit *p)
{
	if (!g->of[AMD].nr)
		permit_refuse(p, ABSENT, maker[AMD].none, NULL);
	else if (refuse_driver(g->of[AMD].driver, p))
		return;
	else if (g->of[AMD].undriven == g->of[AMD].nr)
		permit_refuse(p, ABSENT, maker[AMD].undriven, maker[AMD].load);
	else if (is_refused(env_try(env, "dev/kfd")))
		permit_refuse(p, FORBIDDEN,
			"an AMD GPU and its driver are there, but this user may not open /dev/kfd",
			"sudo usermod -aG render,video \"$USER\"");
	else
		permit_grant(p, "an AMD GPU and its driver are there");
}

static void permit_intel(const struct privileges_gpus *g, struct permit *p)
{
	if (!g->of[INTEL].nr)
		permit_refuse(p, ABSENT, maker[INTEL].none, NULL);
	else if (refuse_driver(g->of[INTEL].driver, p))
		return;
	else if (g->of[INTEL].undriven == g->of[INTEL].nr)
		permit_refuse(p, ABSENT, maker[INTEL].undriven, maker[INTEL].load);
	else
		permit_grant(p, "an Intel GPU and its driver are there");
}

void permits_read(struct env *env, struct permit ret[static NR_PERMITS])
{
	static const char *const name[NR_PERMITS][2] = {
		[PERMIT_PROC] = {"processes", "seen"},
		[PERMIT_OWN] = {"processes", "own"},
		[PERMIT_OTHERS] = {"processes", "others"},
		[PERMIT_NVIDIA] = {"gpus", "nvidia"},
		[PERMIT_AMD] = {"gpus", "amd"},
		[PERMIT_INTEL] = {"gpus", "intel"},
	};
	struct privileges_gpus gpus = {.env = env};

	for (unsigned i = 0; i < NR_PERMITS; i++)
		ret[i] = (struct permit){.source = name[i][0], .metric = name[i][1]};
	permit_proc(env, &ret[PERMIT_PROC]);
	permit_crowd(env, &ret[PERMIT_OWN], &ret[PERMIT_OTHERS]);
	env_list(env, "sys/bus/pci/devices", look_at_device, &gpus);
	permit_nvidia(env, &gpus, &ret[PERMIT_NVIDIA]);
	permit_amd(env, &gpus, &ret[PERMIT_AMD]);
	permit_intel(&gpus, &ret[PERMIT_INTEL]);
}

/* ---- remedies ---- */

#define UNTIL_BOOT "until the next boot, "

const char *remedy_risk(const char *remedy)
{
	/* clang-format off */
	static const struct { const char *in, *risk; } known[] = {
		{"cap_perfmon", "everyone who may run this file learns of all processes of the machine, and can count what they and the kernel do"},
		{"setcap", "everyone who may run this file learns of all processes of the machine"},
		{"limits.d/tacho.conf", "all programs of this user may take a high priority then and slow down those of others, not only tacho"},
		{"perf_event_paranoid=0", UNTIL_BOOT "every user can count what all programs on a CPU and the kernel do"},
		{"perf_event_paranoid=1", UNTIL_BOOT "every user can count what the kernel does for the user's own programs, and learn kernel addresses from it"},
		{"perf_event_paranoid=2", UNTIL_BOOT "every user can count events of the user's own programs"},
		{"nmi_watchdog=0", UNTIL_BOOT "the kernel does not notice a CPU that hangs"},
		{"powercap", UNTIL_BOOT "every user can read the energy counters, from which secrets of other programs have been derived"},
		{"/hwmon", UNTIL_BOOT "every user can read the power, which tells something about what other programs do"},
		{"hidepid=0", UNTIL_BOOT "every user sees all processes with their command lines"},
		{"getent group", "this user then sees the processes of all users"},
		{"ptrace_scope=1", UNTIL_BOOT "a program can attach to the processes it started, and read their memory"},
		{"mount -t proc proc", "programs that were kept from seeing the node see it then"},
		{"chmod a+rw /dev/nvidia", UNTIL_BOOT "every user can use the GPUs"},
		{"render,video", "this user can then use the GPUs and read the screen"},
		{"--gpus all", "the container can then use all GPUs"},
		{"--cap-add PERFMON", "programs in the container can then count what all programs and the kernel do"},
		{"--gpu-reset", "whatever runs on the GPU is lost"},
		{"sudo tacho", "tacho then runs as root, and the recording belongs to root"},
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (remedy && strstr(remedy, known[i].in))
			return known[i].risk;
	return NULL;
}
