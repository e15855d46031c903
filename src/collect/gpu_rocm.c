/* ROCm SMI, AMD's library, for what sysfs does not have: used only where the variable TACHO_ROCM names it.
 *
 * It reads the same files as we do, except names and versions of gpu_metrics that are newer than tacho. But
 * it prints to the terminal, ends the program by assert() when a file is not as it expects, and locks files
 * in /dev/shm that every other tool waits for. A trial in a child was rejected: the engine would take the
 * child for an orphan of the job, and a trial proves nothing for the next reading. So it is used only on
 * request, in a thread of its own: when it aborts or crashes, the thread stops for ever and the recording
 * goes on without it.
 *
 * TACHO_ROCM is the path of the library; any other word takes the first that is installed. */
#include "collect/gpu_amd.h"

#include "base/str.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Calls of one shape: an index, perhaps a kind, and a number. */
enum rocm_shape { ONE_U32, ONE_U64, KIND_U64, TWO_KINDS_I64 };

/* clang-format off */
static const struct rocm_call {
	enum gpu_row row;
	const char *name;
	enum rocm_shape shape;
	uint32_t kind[2];
	int64_t div;
} rocm_call[] = {
	{GPU_UTIL,               "rsmi_dev_busy_percent_get", ONE_U32, {0, 0}, 1},
	{GPU_MEM_UTIL,           "rsmi_dev_memory_busy_percent_get", ONE_U32, {0, 0}, 1},
	{GPU_MEMORY_USED,        "rsmi_dev_memory_usage_get", KIND_U64, {0, 0}, 1},
	{GPU_MEMORY_TOTAL,       "rsmi_dev_memory_total_get", KIND_U64, {0, 0}, 1},
	{GPU_GTT_USED,           "rsmi_dev_memory_usage_get", KIND_U64, {2, 0}, 1},
	{GPU_POWER,              "rsmi_dev_power_ave_get", KIND_U64, {0, 0}, 1000},
	{GPU_POWER_LIMIT,        "rsmi_dev_power_cap_get", KIND_U64, {0, 0}, 1000},
	{GPU_TEMPERATURE,        "rsmi_dev_temp_metric_get", TWO_KINDS_I64, {0, 0}, 1},
	{GPU_TEMPERATURE_MEMORY, "rsmi_dev_temp_metric_get", TWO_KINDS_I64, {2, 0}, 1},
	{GPU_PCIE_REPLAYS,       "rsmi_dev_pci_replay_counter_get", ONE_U64, {0, 0}, 1},
};
/* clang-format on */

/* Everything of the library is found before its first call. The thread touches nothing of the env after that:
 * where it hangs, it may run longer than the recording. */
struct rocm {
	struct async_reader async;
	bool begun, usable;
	uint32_t nr;
	int (*init)(uint64_t);
	int (*count)(uint32_t *);
	int (*pci)(uint32_t, uint64_t *);
	int (*name)(uint32_t, char *, size_t);
	int (*energy)(uint32_t, uint64_t *, float *, uint64_t *);
	void *call[ARRAY_SIZE(rocm_call)];
	bool broken; /* the library has crashed; atomic */
	/* Under the lock. */
	uint64_t rows; /* that some device lacks */
	unsigned nr_devices;
	struct rocm_device {
		char pci[32], name[96];
		uint64_t valid;
		int64_t value[NR_GPU_ROWS];
	} device[GPU_DEVICES_MAX];
};

/* ---- a library that may crash ---- */

static _Thread_local struct rocm *guarded;
static struct sigaction abort_before, fault_before;

/* In the guarded thread the library has crashed: its locks are held and its memory is unsound, so the thread
 * must not go on. Other threads' signals get their former action. */
static void on_fall(int sig, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	if (!guarded) {
		sigaction(sig, sig == SIGABRT ? &abort_before : &fault_before, NULL);
		raise(sig);
		return;
	}
	__atomic_store_n(&guarded->broken, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static void guard(struct rocm *r)
{
	struct sigaction fall = {.sa_sigaction = on_fall, .sa_flags = SA_SIGINFO};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGABRT);
	sigaddset(&set, SIGSEGV);
	sigfillset(&fall.sa_mask);
	if (!guarded) {
		sigaction(SIGABRT, &fall, &abort_before);
		sigaction(SIGSEGV, &fall, &fault_before);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	guarded = r;
}

/* ---- in its thread ---- */

static bool call(const struct rocm *r, size_t which, uint32_t index, int64_t *ret)
{
	const struct rocm_call *c = &rocm_call[which];
	void *f = r->call[which];
	uint64_t u64 = 0;
	uint32_t u32 = 0;
	int64_t i64 = 0;
	int status = -1;

	if (!f)
		return false;
	switch (c->shape) {
	case ONE_U32:
		status = ((int (*)(uint32_t, uint32_t *))f)(index, &u32);
		u64 = u32;
		break;
	case ONE_U64:
		status = ((int (*)(uint32_t, uint64_t *))f)(index, &u64);
		break;
	case KIND_U64:
		status = ((int (*)(uint32_t, uint32_t, uint64_t *))f)(index, c->kind[0], &u64);
		break;
	case TWO_KINDS_I64:
		status = ((int (*)(uint32_t, uint32_t, uint32_t, int64_t *))f)(
			index, c->kind[0], c->kind[1], &i64);
		u64 = i64 < 0 ? UINT64_MAX : (uint64_t)i64;
		break;
	}
	*ret = (int64_t)(u64 / (uint64_t)c->div);
	return status == 0 && u64 <= INT64_MAX;
}

static void ask_energy(const struct rocm *r, uint32_t index, struct rocm_device *out)
{
	uint64_t count = 0, when = 0;
	float microjoules = 0;
	double millijoules;

	if (!r->energy || r->energy(index, &count, &microjoules, &when) != 0)
		return;
	millijoules = (double)count * (double)microjoules / 1000;
	if (!(millijoules >= 0 && millijoules < 1e15))
		return;
	out->valid |= UINT64_C(1) << GPU_ENERGY;
	out->value[GPU_ENERGY] = (int64_t)millijoules;
}

static bool ask_device(const struct rocm *r, uint32_t index, uint64_t rows, struct rocm_device *out)
{
	uint64_t id;

	*out = (struct rocm_device){.pci = ""};
	if (r->pci(index, &id) != 0)
		return false;
	snprintf(out->pci, sizeof(out->pci), "%04x:%02x:%02x.%x", (unsigned)(id >> 32),
		(unsigned)(id >> 8 & 255), (unsigned)(id >> 3 & 31), (unsigned)(id & 7));
	/* Not terminated when the name is too long. */
	if (!r->name || r->name(index, out->name, sizeof(out->name) - 1) != 0)
		out->name[0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(rocm_call); i++) {
		enum gpu_row row = rocm_call[i].row;

		if (rows >> row & 1 && call(r, i, index, &out->value[row]))
			out->valid |= UINT64_C(1) << row;
	}
	if (rows >> GPU_ENERGY & 1)
		ask_energy(r, index, out);
	return true;
}

static void rocm_work(void *arg)
{
	struct rocm *r = arg;
	struct rocm_device found;
	unsigned nr = 0;
	uint64_t rows;

	guard(r);
	if (!r->begun)
		r->usable = r->init(0) == 0 && r->count(&r->nr) == 0;
	r->begun = true;
	async_reader_lock(&r->async);
	rows = r->rows;
	async_reader_unlock(&r->async);
	for (uint32_t i = 0; r->usable && i < MIN(r->nr, (uint32_t)GPU_DEVICES_MAX); i++) {
		if (!ask_device(r, i, rows, &found))
			continue;
		async_reader_lock(&r->async);
		r->device[nr++] = found;
		r->nr_devices = MAX(r->nr_devices, nr);
		async_reader_unlock(&r->async);
	}
}

/* ---- from the maker's thread ---- */

static void *find_library(struct env *env)
{
	static const char *const names[] = {"librocm_smi64.so", "librocm_smi64.so.7", "librocm_smi64.so.6",
		"librocm_smi64.so.5", "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so"};
	const char *wish = env_getenv(env, "TACHO_ROCM");
	void *library = NULL;

	if (!wish || !*wish || !strcmp(wish, "0"))
		return NULL;
	if (strchr(wish, '/') || strstr(wish, ".so"))
		return env_library(env, wish, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(names) && !library; i++)
		library = env_library(env, names[i], NULL);
	return library;
}

static bool find_symbols(struct rocm *r, struct env *env, void *library)
{
	r->init = (int (*)(uint64_t))env_symbol(env, library, "rsmi_init");
	r->count = (int (*)(uint32_t *))env_symbol(env, library, "rsmi_num_monitor_devices");
	r->pci = (int (*)(uint32_t, uint64_t *))env_symbol(env, library, "rsmi_dev_pci_id_get");
	r->name = (int (*)(uint32_t, char *, size_t))env_symbol(env, library, "rsmi_dev_name_get");
	r->energy = (int (*)(uint32_t, uint64_t *, float *, uint64_t *))env_symbol(
		env, library, "rsmi_dev_energy_count_get");
	for (size_t i = 0; i < ARRAY_SIZE(rocm_call); i++)
		r->call[i] = env_symbol(env, library, rocm_call[i].name);
	return r->init && r->count && r->pci;
}

struct rocm *rocm_open(struct env *env)
{
	void *library = find_library(env);
	struct rocm *r = library ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	if (!find_symbols(r, env, library) || async_reader_start(&r->async, env, rocm_work, r) < 0) {
		free(r);
		return NULL;
	}
	return r;
}

static void fill(const struct rocm_device *from, uint64_t rows, struct gpu_device *device)
{
	uint64_t lacking = rows & from->valid & ~device->valid;

	/* A name that is only a number is not used. */
	if (from->name[0] && strncmp(from->name, "0x", 2) != 0 && strstr(device->model, "GPU 1002:"))
		snprintf(device->model, sizeof(device->model), "%s", from->name);
	for (int row = 0; row < NR_GPU_ROWS; row++)
		if (lacking >> row & 1)
			gpu_device_set(device, (enum gpu_row)row, from->value[row]);
}

void rocm_read(struct rocm *r, const struct gpu_request *request, struct gpu_reading *ret)
{
	uint64_t all = ~UINT64_C(0);

	if (__atomic_load_n(&r->broken, __ATOMIC_ACQUIRE))
		return;
	for (unsigned i = 0; i < ret->nr_devices; i++)
		all &= ret->device[i].valid;
	async_reader_lock(&r->async);
	r->rows = request->rows & ~all;
	for (unsigned i = 0; i < r->nr_devices; i++)
		for (unsigned k = 0; k < ret->nr_devices; k++)
			if (!strcmp(r->device[i].pci, ret->device[k].pci))
				fill(&r->device[i], request->rows, &ret->device[k]);
	async_reader_unlock(&r->async);
	async_reader_ask(&r->async);
}

/* The library is not shut down: it might crash doing so. */
struct rocm *rocm_close(struct rocm *r)
{
	if (r && !__atomic_load_n(&r->broken, __ATOMIC_ACQUIRE) && async_reader_stop(&r->async))
		free(r);
	return NULL;
}
