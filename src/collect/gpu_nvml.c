/* GPUs of NVIDIA, by their management library (NVML), which comes with the driver and is loaded when there is
 * a driver: the library is found, started, and asked for its devices.
 *
 * Every call is optional: libraries of ten years differ in what they have, and one that is missing costs only
 * its rows. Devices are known by their UUID; an index names them once ("nvidia-0") and for ever. A device
 * that is lost, or a count that has changed, makes the library start anew, at first every few seconds, as
 * handles from before a reset are useless. A GPU that is cut into slices (MIG) shows each as an instance of
 * its own, apart because the whole one counts its memory already.
 *
 * Not used: nvidia-smi (a process every second), DCGM (a daemon that few have), and GPM, whose figures for
 * slices need layouts that changed with every driver since it exists. */
#include "collect/gpu_nvml.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TRIES_MAX 63 /* rounds between two of them, at most */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

extern const struct gpu_maker gpu_maker_nvidia;

/* clang-format off */
static const struct { /* newest names first */
	size_t at;
	const char *name[3];
} call[] = {
#define CALL(field, ...) {offsetof(struct nvml_calls, field), {__VA_ARGS__}}
	CALL(init,                "nvmlInit_v2", "nvmlInit"),
	CALL(shutdown,            "nvmlShutdown"),
	CALL(count,               "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
	CALL(by_index,            "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
	CALL(name,                "nvmlDeviceGetName"),
	CALL(uuid,                "nvmlDeviceGetUUID"),
	CALL(minor,               "nvmlDeviceGetMinorNumber"),
	CALL(pci,                 "nvmlDeviceGetPciInfo_v3"),
	CALL(mig_mode,            "nvmlDeviceGetMigMode"),
	CALL(mig_max,             "nvmlDeviceGetMaxMigDeviceCount"),
	CALL(mig_by_index,        "nvmlDeviceGetMigDeviceHandleByIndex"),
	CALL(utilization,         "nvmlDeviceGetUtilizationRates"),
	CALL(memory,              "nvmlDeviceGetMemoryInfo"),
	CALL(memory_v2,           "nvmlDeviceGetMemoryInfo_v2"),
	CALL(bar1,                "nvmlDeviceGetBAR1MemoryInfo"),
	CALL(temperature_v,       "nvmlDeviceGetTemperatureV"),
	CALL(fields,              "nvmlDeviceGetFieldValues"),
	CALL(process_utilization, "nvmlDeviceGetProcessUtilization"),
#undef CALL
};

static const struct {
	int error;
	int code; /* what open() gives back */
	struct trouble trouble;
} start_error[] = {
	{NVML_DRIVER_NOT_LOADED, -ENOENT, {"the NVIDIA driver is not loaded", "sudo modprobe nvidia"}},
	{NVML_LIB_RM_VERSION_MISMATCH, -EIO, {"NVIDIA's library and the loaded driver are of different versions", "reboot, or reload the driver's modules; in a container install the library of the host's driver"}},
	{NVML_NO_PERMISSION, -EACCES, {"we may not use the NVIDIA driver", "make /dev/nvidiactl and /dev/nvidia* readable and writable for this user, often by the group 'video'"}},
	{NVML_LIBRARY_NOT_FOUND, -ENOENT, {"NVIDIA's library does not find the libraries of its driver", "install the driver's libraries; start a container with --gpus all (docker) or --nv (Apptainer)"}},
	{NVML_GPU_NOT_FOUND, -ENOENT, {"the NVIDIA driver has no GPU", NULL}},
	{NVML_GPU_IS_LOST, -EIO, {"a GPU has fallen off the bus, and the NVIDIA driver does not start", "reset the GPU or reboot"}},
	{NVML_RESET_REQUIRED, -EIO, {"a GPU needs a reset, and the NVIDIA driver does not start", "sudo nvidia-smi --gpu-reset"}},
};
/* clang-format on */

static const struct trouble no_library = {"there is an NVIDIA driver, but not its library libnvidia-ml.so.1",
	"install libnvidia-ml1 (Debian) or the driver's compute libraries; start a container with --gpus all "
	"(docker) or --nv (Apptainer)"};

const char *nvml_lost(int error)
{
	switch (error) {
	case NVML_GPU_IS_LOST:
		return "it has fallen off the bus (GPU is lost)";
	case NVML_RESET_REQUIRED:
		return "it needs a reset";
	case NVML_UNINITIALIZED:
	case NVML_DRIVER_NOT_LOADED:
		return "the driver was unloaded";
	case NVML_LIB_RM_VERSION_MISMATCH:
		return "the driver was replaced by another version";
	case NVML_GPU_NOT_FOUND:
		return "it is not there any more";
	default:
		return NULL;
	}
}

struct gpu_why nvml_why(int error)
{
	switch (error) {
	case NVML_NOT_SUPPORTED:
		return (struct gpu_why){ABSENT, "the GPU or its driver does not support it", NULL};
	case NVML_NO_SYMBOL:
	case NVML_FUNCTION_NOT_FOUND:
		return (struct gpu_why){
			ABSENT, "the driver's library does not know the call", "a newer driver"};
	case NVML_NO_PERMISSION:
		return (struct gpu_why){
			FORBIDDEN, "the NVIDIA driver does not show it to this user", "run as root"};
	case NVML_TIMEOUT:
		return (struct gpu_why){FAILED, "the driver did not answer in time", NULL};
	case NVML_NONSENSE:
		return (struct gpu_why){FAILED,
			"the driver's answer makes no sense: it is beyond all that is possible", NULL};
	default:
		return (struct gpu_why){FAILED, "the driver failed to report it", NULL};
	}
}

/* Set by users whose library is not in one of the usual places. */
static const char *own_library(struct env *env)
{
	const char *path = env_getenv(env, "TACHO_NVML");

	return path && *path ? path : NULL;
}

/* Checks only that the device exists. Opening it does more, and may be forbidden: then the library reports
 * that. */
static bool is_there(struct env *env, const char *path)
{
	char link[2];
	ssize_t r = env_readlink(env, path, link, sizeof(link));

	return r >= 0 || r == -EINVAL;
}

static int nvml_probe(struct env *env, struct trouble *reterr_why)
{
	if (own_library(env) || is_there(env, "dev/nvidiactl") || is_there(env, "dev/dxg"))
		return 0;
	*reterr_why = (struct trouble){"no NVIDIA driver (/dev/nvidiactl)", NULL};
	return -ENOENT;
}

static void *load(struct env *env)
{
	const char *own = own_library(env);
	const char *const name[] = {own ? own : "libnvidia-ml.so.1", own ? NULL : "libnvidia-ml.so",
		own ? NULL : "/usr/lib/wsl/lib/libnvidia-ml.so.1"};
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(name) && name[i] && !library; i++)
		library = env_library(env, name[i], NULL);
	return library;
}

static void load_calls(struct nvml *n, struct env *env, void *library)
{
	for (size_t i = 0; i < ARRAY_SIZE(call); i++) {
		void *symbol = NULL;

		for (size_t k = 0; k < ARRAY_SIZE(call[i].name) && call[i].name[k] && !symbol; k++)
			symbol = env_symbol(env, library, call[i].name[k]);
		memcpy((char *)&n->call + call[i].at, &symbol, sizeof(symbol));
	}
	nvml_load_rows(n, env, library);
	nvml_load_processes(n, env, library);
}

static bool is_foreign(struct env *env)
{
	char link[64];
	ssize_t len = env_readlink(env, "proc/self/ns/pid", link, sizeof(link) - 1);

	if (len <= 0)
		return false;
	link[len] = 0;
	return strcmp(link, INITIAL_PID_NAMESPACE) != 0;
}

static struct nvml_gpu *add_gpu(struct nvml *n)
{
	if (n->nr == GPU_DEVICES_MAX)
		return NULL;
	n->nr_uses = 0; /* they know GPUs by their place */
	n->gpu[n->nr] = (struct nvml_gpu){.parent = -1, .self = {.index = -1, .minor = -1}};
	return &n->gpu[n->nr++];
}

static void identify(const struct nvml *n, nvml_handle handle, struct gpu_device *d)
{
	struct nvml_pci pci = {0};
	unsigned minor;

	if (!n->call.name || n->call.name(handle, d->model, sizeof(d->model)) != NVML_OK)
		d->model[0] = 0;
	if (!n->call.uuid || n->call.uuid(handle, d->uuid, sizeof(d->uuid)) != NVML_OK)
		d->uuid[0] = 0;
	d->model[sizeof(d->model) - 1] = d->uuid[sizeof(d->uuid) - 1] = 0;
	if (n->call.minor && n->call.minor(handle, &minor) == NVML_OK && minor < 1 << 20)
		d->minor = (int)minor;
	if (n->call.pci && n->call.pci(handle, &pci) == NVML_OK)
		snprintf(d->pci, sizeof(d->pci), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
}

static bool has_name(const struct nvml *n, const char *name)
{
	for (unsigned i = 0; i < n->nr; i++)
		if (!strcmp(n->gpu[i].self.name, name))
			return true;
	return false;
}

/* The GPU that we know by this identity; what has none is known by its index. */
static struct nvml_gpu *known(struct nvml *n, const struct gpu_device *d)
{
	for (unsigned i = 0; i < n->nr; i++) {
		const struct gpu_device *other = &n->gpu[i].self;
		bool same = d->uuid[0] && other->uuid[0] ? !strcmp(d->uuid, other->uuid)
							 : d->index == other->index;

		if (n->gpu[i].parent < 0 && same)
			return &n->gpu[i];
	}
	return NULL;
}

static void find_gpu(struct nvml *n, unsigned index)
{
	struct gpu_device d = {.index = (int)index, .minor = -1};
	nvml_handle handle = NULL;
	int error = n->call.by_index(index, &handle);
	struct nvml_gpu *gpu;

	if (error == NVML_OK)
		identify(n, handle, &d);
	else
		d.lost = nvml_lost(error) ? nvml_lost(error)
			: error == NVML_NO_PERMISSION
			? "we may not open it: its device file or the control group forbids it"
			: "the driver cannot reach it";
	gpu = known(n, &d);
	if (!gpu) {
		gpu = add_gpu(n);
		if (!gpu)
			return;
		for (unsigned name = index; !d.name[0] || has_name(n, d.name); name++)
			snprintf(d.name, sizeof(d.name), "nvidia-%u", name);
		gpu->self = d;
	} else if (error == NVML_OK) {
		memcpy(d.name, gpu->self.name, sizeof(d.name));
		gpu->self = d;
	} else {
		gpu->self.lost = d.lost;
	}
	gpu->found = true;
	gpu->handle = handle;
	gpu->absent = 0;
}

static void remove_gpu(struct nvml *n, unsigned at)
{
	memmove(&n->gpu[at], &n->gpu[at + 1], (n->nr - at - 1) * sizeof(n->gpu[0]));
	n->nr--;
	n->nr_uses = 0;
}

static void find_slice(struct nvml *n, unsigned parent, unsigned index)
{
	struct gpu_device d = {.minor = n->gpu[parent].self.minor,
		.index = n->gpu[parent].self.index,
		.counted_elsewhere = "a slice (MIG) of a GPU whose memory counts already"};
	struct nvml_gpu *gpu = NULL;
	nvml_handle handle = NULL;

	if (n->call.mig_by_index(n->gpu[parent].handle, index, &handle) != NVML_OK)
		return;
	identify(n, handle, &d);
	d.minor = n->gpu[parent].self.minor;
	memcpy(d.pci, n->gpu[parent].self.pci, sizeof(d.pci));
	snprintf(d.name, sizeof(d.name), "%.36s/mig-%u", n->gpu[parent].self.name, index);
	for (unsigned i = 0; i < n->nr && !gpu; i++)
		if (n->gpu[i].parent == (int)parent && n->gpu[i].mig_index == index)
			gpu = &n->gpu[i];
	gpu = gpu ? gpu : add_gpu(n);
	if (!gpu)
		return;
	gpu->self = d;
	gpu->parent = (int)parent;
	gpu->mig_index = index;
	gpu->handle = handle;
	gpu->found = true;
	gpu->absent = 0;
}

/* Slices are made and removed while others run. */
static void find_slices(struct nvml *n)
{
	unsigned whole = n->nr;

	for (unsigned i = 0; i < n->nr; i++)
		if (n->gpu[i].parent >= 0)
			n->gpu[i].found = false;
	for (unsigned i = 0; i < whole; i++) {
		struct nvml_gpu *gpu = &n->gpu[i];
		unsigned mode = 0, pending, max = 0;

		if (gpu->parent >= 0 || gpu->self.lost)
			continue;
		gpu->is_mig = n->call.mig_mode && n->call.mig_max && n->call.mig_by_index &&
			n->call.mig_mode(gpu->handle, &mode, &pending) == NVML_OK && mode == 1;
		if (!gpu->is_mig || n->call.mig_max(gpu->handle, &max) != NVML_OK)
			continue;
		for (unsigned k = 0; k < MIN(max, GPU_DEVICES_MAX); k++)
			find_slice(n, i, k);
	}
	/* A slice stands behind its GPU, so that removing one moves no parent. */
	for (unsigned i = n->nr; i--;)
		if (n->gpu[i].parent >= 0 && !n->gpu[i].found)
			remove_gpu(n, i);
}

/* A known GPU that is not found any more is marked lost and kept. */
static void find_gpus(struct nvml *n, unsigned count)
{
	for (unsigned i = n->nr; i--;)
		if (n->gpu[i].parent >= 0)
			remove_gpu(n, i);
	for (unsigned i = 0; i < n->nr; i++)
		n->gpu[i].found = false;
	for (unsigned i = 0; i < MIN(count, GPU_DEVICES_MAX); i++)
		find_gpu(n, i);
	for (unsigned i = 0; i < n->nr; i++)
		if (!n->gpu[i].found)
			n->gpu[i].self.lost = nvml_lost(NVML_GPU_NOT_FOUND);
}

static int start(struct nvml *n, unsigned *ret_count)
{
	int error = n->call.init();

	*ret_count = 0;
	if (error != NVML_OK)
		return error;
	n->is_up = true;
	return n->call.count(ret_count);
}

static void stop(struct nvml *n)
{
	if (n->is_up && n->call.shutdown)
		n->call.shutdown();
	n->is_up = false;
}

static void lose_all(struct nvml *n, int error)
{
	const char *lost = nvml_lost(error);

	for (unsigned i = 0; i < n->nr; i++)
		n->gpu[i].self.lost = lost ? lost : "the driver does not start again";
}

/* Whether the library is to start anew: another number of GPUs, or one that is there and does not answer. */
static bool is_wrong(const struct nvml *n)
{
	unsigned count = 0;

	if (!n->is_up || n->call.count(&count) != NVML_OK || count != n->count)
		return true;
	for (unsigned i = 0; i < n->nr; i++)
		if (n->gpu[i].found && n->gpu[i].self.lost)
			return true;
	return false;
}

/* Handles from before a reset are useless. A restart takes a second where a GPU is in trouble: if it does not
 * help it is tried less and less often. */
static void restart(struct nvml *n)
{
	int error;

	if (n->tries_left) {
		n->tries_left--;
		return;
	}
	n->tries_left = MIN(n->tries, TRIES_MAX);
	n->tries = n->tries_left * 2 + 1;
	stop(n);
	error = start(n, &n->count);
	if (error == NVML_OK) {
		find_gpus(n, n->count);
		return;
	}
	stop(n);
	lose_all(n, error);
}

static void search(struct nvml *n)
{
	if (is_wrong(n))
		restart(n);
	else
		n->tries = n->tries_left = 0;
	if (n->is_up)
		find_slices(n);
}

static int explain_start(int error, struct trouble *reterr_why)
{
	for (size_t i = 0; i < ARRAY_SIZE(start_error); i++)
		if (start_error[i].error == error) {
			*reterr_why = start_error[i].trouble;
			return start_error[i].code;
		}
	*reterr_why = (struct trouble){"the NVIDIA driver does not start", "see what nvidia-smi says"};
	return -EIO;
}

static int nvml_open(void *state, struct env *env, struct trouble *reterr_why)
{
	struct nvml *n = state;
	void *library = load(env);
	int error;

	if (!library) {
		*reterr_why = no_library;
		return -ENOENT;
	}
	load_calls(n, env, library);
	if (!n->call.init || !n->call.count || !n->call.by_index) {
		*reterr_why = (struct trouble){
			"libnvidia-ml.so.1 is not NVIDIA's library: it lacks the first calls", NULL};
		return -EIO;
	}
	error = start(n, &n->count);
	if (error == NVML_OK && !n->count)
		error = NVML_GPU_NOT_FOUND;
	if (error != NVML_OK) {
		stop(n);
		return explain_start(error, reterr_why);
	}
	n->other_pids = is_foreign(env);
	find_gpus(n, n->count);
	find_slices(n);
	n->is_searched = true;
	return 0;
}

static void nvml_read(
	void *state, struct env *env, const struct gpu_request *request, struct gpu_reading *ret)
{
	struct nvml *n = state;
	int64_t now_ns = env_now(env, ENV_MONOTONIC);

	if (request->medium && !n->is_searched)
		search(n);
	n->is_searched = false;
	ret->nr_devices = n->nr;
	for (unsigned i = 0; i < n->nr; i++) {
		struct nvml_gpu *gpu = &n->gpu[i];
		struct gpu_device *d = &ret->device[i];

		*d = gpu->self;
		if (!d->lost)
			nvml_read_rows(n, gpu, request, ret, d);
		if (!d->lost)
			nvml_read_processes(n, env, i, request, ret, now_ns);
		gpu->self.lost = d->lost;
	}
}

static void nvml_close(void *state, struct env *env)
{
	(void)env;
	stop(state);
}

const struct gpu_maker gpu_maker_nvidia = {
	.name = "nvidia",
	.state_size = sizeof(struct nvml),
	.probe = nvml_probe,
	.open = nvml_open,
	.read = nvml_read,
	.close = nvml_close,
};
