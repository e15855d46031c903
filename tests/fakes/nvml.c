/* clang-format off */
/* A stand-in for NVIDIA's libnvidia-ml.so.1, written from the documented interface. What it says stands in a
 * text file, which is read again at every call: a test changes it while the recorder runs.
 *
 *   FAKE_NVML=FILE        lines "KEY VALUE...", '#' begins a comment. The n-th call that asks for a key gets
 *                         the n-th value, later ones the last. What has no line is not supported.
 *   FAKE_NVML_STRIDE=32   records of the newest lists as drivers of R535 wrote them
 *   FAKE_NVML_LOG=FILE    gets a line for every call
 *
 *   VALUE          a number; !N: the call returns error N; ~MS:VALUE: it takes MS milliseconds first
 *   init, count    of the library; without a file nvmlInit says that no driver is loaded
 *   G.KEY          of GPU G (0, 1, ...), or "0/2.KEY" of slice 2 of GPU 0: name, uuid, pci (domain bus device),
 *                  handle, minor, util, memutil, mem_total, mem_used, mem_reserved, bar1_total, bar1_used,
 *                  clock0..3, maxclock0..3, ecc_TYPE, temp, memtemp, fan, power, power_limit, energy, pstate,
 *                  reasons, viol_POLICY, enc, dec, pcie_tx, pcie_rx, replays, mig (1: it is cut into slices),
 *                  procs (an error of the lists), samples
 *   G.proc PID BYTES SM MEM ENC DEC LISTS
 *                  a process; BYTES "-": not known; LISTS of C, G, M (compute without any)
 *
 * A slice is there when it has a uuid. nvmlShutdown and nvmlInit begin anew: handles from before are not
 * known. */
/* clang-format on */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))
#ifdef NO_V2
#define nvmlInit_v2 nvmlInit
#define nvmlDeviceGetCount_v2 nvmlDeviceGetCount
#define nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByIndex
#endif
#define GPUS_MAX 16
#define SLICES_MAX 7
#define KEYS_MAX 512

enum {
	OK = 0,
	UNINITIALIZED = 1,
	INVALID = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	VERSION_MISMATCH = 25,
};

typedef unsigned int word;
typedef unsigned long long quad;
typedef struct device {
	int gpu, slice;
	unsigned born; /* in which life of the library */
} * device;

static struct device devices[GPUS_MAX * (SLICES_MAX + 1)];
static unsigned life;
static bool is_up;
static struct {
	char key[48];
	unsigned calls;
} counted[KEYS_MAX];

/* With another file all begins anew. */
static unsigned calls_of(const char *key)
{
	static char path[256];
	const char *now = getenv("FAKE_NVML");

	if (now && strcmp(path, now)) {
		snprintf(path, sizeof(path), "%s", now);
		memset(counted, 0, sizeof(counted));
	}
	for (size_t i = 0; i < KEYS_MAX; i++) {
		if (!counted[i].key[0])
			snprintf(counted[i].key, sizeof(counted[i].key), "%s", key);
		if (!strcmp(counted[i].key, key))
			return counted[i].calls++;
	}
	return 0;
}

static void log_call(const char *name)
{
	const char *path = getenv("FAKE_NVML_LOG");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%s\n", name);
	fclose(f);
}

/* The rest of the nth line of the key. */
static bool look(const char *key, unsigned nth, char *out, size_t size)
{
	const char *path = getenv("FAKE_NVML");
	FILE *f = path ? fopen(path, "r") : NULL;
	size_t len = strlen(key);
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, key, len) != 0 || line[len] != ' ' || nth-- != 0)
			continue;
		snprintf(out, size, "%s", line + len + 1);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/* Waits, fails, or leaves the value's text in `out`, by the word that is the key's turn. */
static int take(const char *key, char *out, size_t size)
{
	char text[512], *at = text, *word_at = text, *rest;
	unsigned turn = calls_of(key);

	if (!look(key, 0, text, sizeof(text)))
		return NOT_SUPPORTED;
	do {
		word_at = strtok_r(at, " ", &rest);
		at = rest;
	} while (turn-- && *rest);
	if (!word_at)
		return INVALID;
	if (*word_at == '~') {
		long ms = strtol(word_at + 1, &word_at, 10);

		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
		word_at += *word_at == ':';
	}
	if (*word_at == '!')
		return (int)strtol(word_at + 1, NULL, 10);
	snprintf(out, size, "%s", word_at);
	return OK;
}

static int check(device d)
{
	if (!is_up)
		return UNINITIALIZED;
	return d && d->born == life ? OK : INVALID;
}

static void name_key(device d, const char *key, char *out, size_t size)
{
	if (d->slice >= 0)
		snprintf(out, size, "%d/%d.%s", d->gpu, d->slice, key);
	else
		snprintf(out, size, "%d.%s", d->gpu, key);
}

static int get_quad(device d, const char *name, quad *ret)
{
	char key[48], value[128];
	int r = check(d);

	if (r != OK)
		return r;
	name_key(d, name, key, sizeof(key));
	r = take(key, value, sizeof(value));
	if (r == OK)
		*ret = strtoull(value, NULL, 0);
	return r;
}

static int get_word(device d, const char *name, word *ret)
{
	quad value = 0;
	int r = get_quad(d, name, &value);

	if (r == OK)
		*ret = (word)value;
	return r;
}

static int get_numbered(device d, const char *name, int number, word *ret)
{
	char key[32];

	snprintf(key, sizeof(key), "%s%d", name, number);
	return get_word(d, key, ret);
}

/* Whole lines: names have blanks. */
static int get_text(device d, const char *name, char *out, word size)
{
	char key[48], value[256];
	int r = check(d);

	if (r != OK)
		return r;
	name_key(d, name, key, sizeof(key));
	if (!look(key, 0, value, sizeof(value)))
		return NOT_SUPPORTED;
	if (strlen(value) >= size)
		return INSUFFICIENT_SIZE;
	memcpy(out, value, strlen(value) + 1);
	return OK;
}

API int nvmlInit_v2(void)
{
	char value[64];
	int r;

	log_call(__func__);
	if (!look("count", 0, value, sizeof(value)))
		return DRIVER_NOT_LOADED;
	r = take("init", value, sizeof(value));
	if (r != OK && r != NOT_SUPPORTED)
		return r;
	is_up = true;
	life++;
	return OK;
}

API int nvmlShutdown(void)
{
	log_call(__func__);
	is_up = false;
	return OK;
}

API int nvmlDeviceGetCount_v2(word *ret)
{
	char value[64];
	int r = is_up ? take("count", value, sizeof(value)) : UNINITIALIZED;

	log_call(__func__);
	if (r == OK)
		*ret = (word)strtoul(value, NULL, 10);
	return r;
}

static device handle(int gpu, int slice)
{
	device d = &devices[gpu * (SLICES_MAX + 1) + slice + 1];

	*d = (struct device){gpu, slice, life};
	return d;
}

API int nvmlDeviceGetHandleByIndex_v2(word index, device *ret)
{
	device d;
	word ignored;
	int r;

	log_call(__func__);
	if (!is_up)
		return UNINITIALIZED;
	if (index >= GPUS_MAX)
		return INVALID;
	d = handle((int)index, -1);
	r = get_word(d, "handle", &ignored);
	if (r != OK && r != NOT_SUPPORTED)
		return r;
	*ret = d;
	return OK;
}

/* A call that does nothing but this. */
#define CALL(name, arguments, expression) \
	API int name arguments            \
	{                                 \
		log_call(#name);          \
		return expression;        \
	}

/* clang-format off */
CALL(nvmlDeviceGetName, (device d, char *out, word size), get_text(d, "name", out, size))
CALL(nvmlDeviceGetUUID, (device d, char *out, word size), get_text(d, "uuid", out, size))
CALL(nvmlDeviceGetMinorNumber, (device d, word *ret), get_word(d, "minor", ret))
CALL(nvmlDeviceGetClockInfo, (device d, int type, word *ret), get_numbered(d, "clock", type, ret))
CALL(nvmlDeviceGetMaxClockInfo, (device d, int type, word *ret), get_numbered(d, "maxclock", type, ret))
CALL(nvmlDeviceGetFanSpeed, (device d, word *ret), get_word(d, "fan", ret))
CALL(nvmlDeviceGetPowerUsage, (device d, word *ret), get_word(d, "power", ret))
CALL(nvmlDeviceGetEnforcedPowerLimit, (device d, word *ret), get_word(d, "power_limit", ret))
CALL(nvmlDeviceGetTotalEnergyConsumption, (device d, quad *ret), get_quad(d, "energy", ret))
CALL(nvmlDeviceGetPerformanceState, (device d, word *ret), get_word(d, "pstate", ret))
CALL(nvmlDeviceGetCurrentClocksThrottleReasons, (device d, quad *ret), get_quad(d, "reasons", ret))
CALL(nvmlDeviceGetPcieThroughput, (device d, int way, word *ret), get_word(d, way ? "pcie_rx" : "pcie_tx", ret))
CALL(nvmlDeviceGetPcieReplayCounter, (device d, word *ret), get_word(d, "replays", ret))
CALL(nvmlDeviceGetEncoderUtilization, (device d, word *ret, word *us), (*us = 167000, get_word(d, "enc", ret)))
CALL(nvmlDeviceGetDecoderUtilization, (device d, word *ret, word *us), (*us = 167000, get_word(d, "dec", ret)))
CALL(nvmlDeviceGetTemperature, (device d, int sensor, word *ret), sensor ? INVALID : get_word(d, "temp", ret))
/* clang-format on */

API int nvmlDeviceGetTotalEccErrors(device d, int type, int counter, quad *ret)
{
	log_call(__func__);
	return counter ? NOT_SUPPORTED : get_quad(d, type ? "ecc_1" : "ecc_0", ret);
}

API int nvmlDeviceGetViolationStatus(device d, int policy, quad *ret)
{
	char key[16];

	log_call(__func__);
	snprintf(key, sizeof(key), "viol_%d", policy);
	ret[0] = 1;
	return get_quad(d, key, &ret[1]);
}

API int nvmlDeviceGetUtilizationRates(device d, word *ret)
{
	int r = get_word(d, "util", &ret[0]);

	log_call(__func__);
	return r == OK ? get_word(d, "memutil", &ret[1]) : r;
}

static int get_memory(device d, const char *total, const char *used, quad *ret_total, quad *ret_used)
{
	int r = get_quad(d, total, ret_total);

	return r == OK ? get_quad(d, used, ret_used) : r;
}

/* The oldest counts what is reserved as used. */
API int nvmlDeviceGetMemoryInfo(device d, quad ret[3])
{
	quad reserved = 0;
	int r = get_memory(d, "mem_total", "mem_used", &ret[0], &ret[2]);

	log_call(__func__);
	get_quad(d, "mem_reserved", &reserved);
	ret[2] += reserved;
	ret[1] = ret[0] - ret[2];
	return r;
}

struct memory_v2 {
	word version;
	quad total, reserved, free, used;
};

#ifndef NO_V2
API int nvmlDeviceGetMemoryInfo_v2(device d, struct memory_v2 *ret)
{
	int r;

	log_call(__func__);
	if (ret->version != 0x02000028)
		return VERSION_MISMATCH;
	r = get_memory(d, "mem_total", "mem_used", &ret->total, &ret->used);
	ret->reserved = 0;
	get_quad(d, "mem_reserved", &ret->reserved);
	ret->free = ret->total - ret->used - ret->reserved;
	return r;
}
#endif

API int nvmlDeviceGetBAR1MemoryInfo(device d, quad ret[3])
{
	int r = get_memory(d, "bar1_total", "bar1_used", &ret[0], &ret[2]);

	log_call(__func__);
	ret[1] = ret[0] - ret[2];
	return r;
}

struct pci {
	char legacy[16];
	word domain, bus, device, ids[2];
	char bus_id[32];
};

API int nvmlDeviceGetPciInfo_v3(device d, struct pci *ret)
{
	char text[64];
	int r = get_text(d, "pci", text, sizeof(text));

	log_call(__func__);
	if (r == OK && sscanf(text, "%x %x %x", &ret->domain, &ret->bus, &ret->device) != 3)
		return INVALID;
	return r;
}

struct field {
	word id, scope;
	long long times[2];
	int type, error;
	quad value;
};

API int nvmlDeviceGetFieldValues(device d, int nr, struct field *field)
{
	log_call(__func__);
	for (int i = 0; i < nr; i++)
		field[i].error = field[i].id == 82 ? get_quad(d, "memtemp", &field[i].value) : NOT_SUPPORTED;
	return check(d);
}

/* ---- slices ---- */

API int nvmlDeviceGetMigMode(device d, word *current, word *pending)
{
	int r = get_word(d, "mig", current);

	log_call(__func__);
	*pending = r == OK ? *current : 0;
	return r;
}

API int nvmlDeviceGetMaxMigDeviceCount(device d, word *ret)
{
	*ret = SLICES_MAX;
	return check(d);
}

API int nvmlDeviceGetMigDeviceHandleByIndex(device d, word index, device *ret)
{
	char uuid[96];
	device slice;

	log_call(__func__);
	if (check(d) != OK || index >= SLICES_MAX)
		return INVALID;
	slice = handle(d->gpu, (int)index);
	if (get_text(slice, "uuid", uuid, sizeof(uuid)) != OK)
		return NOT_FOUND;
	*ret = slice;
	return OK;
}

/* ---- processes ---- */

struct process {
	word pid;
	quad memory;
	word use[4]; /* percent: SM, memory, encoder, decoder */
	char lists[8];
};

static bool get_process(device d, unsigned nth, struct process *ret)
{
	char key[48], text[256], memory[32] = "0";

	*ret = (struct process){.lists = "C"};
	name_key(d, "proc", key, sizeof(key));
	if (!look(key, nth, text, sizeof(text)))
		return false;
	sscanf(text, "%u %31s %u %u %u %u %7s", &ret->pid, memory, &ret->use[0], &ret->use[1], &ret->use[2],
		&ret->use[3], ret->lists);
	ret->memory = strcmp(memory, "-") ? strtoull(memory, NULL, 0) : ~0ULL;
	return true;
}

static int list(device d, char letter, word *nr, char *out, size_t stride)
{
	word cap = *nr, found = 0, none = ~0U, ignored;
	struct process p;
	int r = get_word(d, "procs", &ignored);

	if (r != OK && r != NOT_SUPPORTED)
		return r;
	r = check(d);
	if (r != OK)
		return r;
	for (unsigned i = 0; get_process(d, i, &p); i++) {
		if (!strchr(p.lists, letter))
			continue;
		if (found < cap) {
			char *at = out + found * stride;

			memset(at, 0, stride);
			memcpy(at, &p.pid, 4);
			memcpy(at + 8, &p.memory, 8);
			if (stride > 16) {
				memcpy(at + 16, &none, 4);
				memcpy(at + 20, &none, 4);
			}
		}
		found++;
	}
	*nr = found;
	return found > cap ? INSUFFICIENT_SIZE : OK;
}

#ifndef NO_V3
static size_t newest_stride(void)
{
	const char *stride = getenv("FAKE_NVML_STRIDE");

	return stride ? strtoul(stride, NULL, 10) : 24;
}
#endif

/* clang-format off */
#ifndef NO_V1
CALL(nvmlDeviceGetComputeRunningProcesses, (device d, word *nr, void *out), list(d, 'C', nr, out, 16))
CALL(nvmlDeviceGetGraphicsRunningProcesses, (device d, word *nr, void *out), list(d, 'G', nr, out, 16))
#endif
#ifndef NO_V2
CALL(nvmlDeviceGetComputeRunningProcesses_v2, (device d, word *nr, void *out), list(d, 'C', nr, out, 24))
CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, (device d, word *nr, void *out), list(d, 'G', nr, out, 24))
CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2, (device d, word *nr, void *out), list(d, 'M', nr, out, 24))
#endif
#ifndef NO_V3
CALL(nvmlDeviceGetComputeRunningProcesses_v3, (device d, word *nr, void *out), list(d, 'C', nr, out, newest_stride()))
CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, (device d, word *nr, void *out), list(d, 'G', nr, out, newest_stride()))
CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, (device d, word *nr, void *out), list(d, 'M', nr, out, newest_stride()))
#endif
/* clang-format on */

struct sample {
	word pid;
	quad timestamp;
	word use[4];
};

/* Every call has new samples, of those who did something. The clock is the number of the call. */
API int nvmlDeviceGetProcessUtilization(device d, struct sample *ret, word *nr, quad last_seen)
{
	static quad now = 1000;
	word cap = *nr, found = 0, ignored;
	struct process p;
	int r = get_word(d, "samples", &ignored);

	log_call(__func__);
	now++;
	if (r != OK && r != NOT_SUPPORTED)
		return r;
	for (unsigned i = 0; get_process(d, i, &p); i++) {
		if (!(p.use[0] | p.use[1] | p.use[2] | p.use[3]) || now <= last_seen)
			continue;
		if (found < cap) {
			ret[found] = (struct sample){.pid = p.pid, .timestamp = now};
			memcpy(ret[found].use, p.use, sizeof(p.use));
		}
		found++;
	}
	*nr = found;
	return !found ? NOT_FOUND : found > cap ? INSUFFICIENT_SIZE : OK;
}
