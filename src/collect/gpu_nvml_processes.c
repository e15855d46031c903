/* Processes on an NVIDIA GPU: three lists (compute, graphics, clients of MPS) in which one process may be
 * listed several times, and the utilisation of each.
 *
 * Lists: records are 16, 24 or 32 bytes by version of the call, and drivers of the series R535 wrote 32 under
 * the name of a version that has 24. So the second version is asked first (it never changed), then the
 * oldest, then the newest, whose stride is found out from what it wrote into a zeroed buffer.
 *
 * Utilisation: the driver keeps samples of processes that did something, and gives those that are newer than
 * the newest we have seen, by its own clock (which is not ours everywhere). A process without a new sample
 * keeps its value for a second, the longest period of the driver's sampling, and is then idle: 0. The first
 * answer after the start may be of any age and only sets the clock.
 *
 * PIDs are those of the host, or since some drivers those of the caller's PID namespace. In a namespace a PID
 * is trusted only if that process has NVIDIA's device files open. */
#include "collect/gpu_nvml.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define IDLE_NS NSEC_PER_SEC
#define NOT_AVAILABLE (~0ULL) /* memory of a process */
#define NO_INSTANCE (~0U)
#define NR_USES 4

static const enum gpu_process_row use_row[NR_USES] = {
	GPU_PROCESS_UTIL, GPU_PROCESS_MEM_UTIL, GPU_PROCESS_ENCODER, GPU_PROCESS_DECODER};

/* clang-format off */
static const char *const list_name[NVML_LISTS] = {
	"nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetGraphicsRunningProcesses",
	"nvmlDeviceGetMPSComputeRunningProcesses",
};
/* clang-format on */

static const struct gpu_why no_mig_use = {
	ABSENT, "the driver measures no utilisation of processes on slices of a GPU (MIG)", NULL};
static const struct gpu_why no_memory = {ABSENT,
	"the driver does not report how much memory a process has (WSL, or a process of another user)", NULL};

static const struct gpu_why bad_list = {
	FAILED, "the driver's list of the processes on a GPU makes no sense", NULL};
static const struct gpu_why too_many = {
	FAILED, "there are more processes on GPUs than can be recorded: some are left out", NULL};

void nvml_load_processes(struct nvml *n, struct env *env, void *library)
{
	static const struct {
		const char *suffix;
		unsigned version;
	} order[] = {{"_v2", 2}, {"", 1}, {"_v3", 3}};

	for (unsigned i = 0; i < NVML_LISTS; i++)
		for (size_t k = 0; k < ARRAY_SIZE(order) && !n->call.running[i]; k++) {
			char name[64];
			void *symbol;

			snprintf(name, sizeof(name), "%s%s", list_name[i], order[k].suffix);
			symbol = env_symbol(env, library, name);
			memcpy(&n->call.running[i], &symbol, sizeof(symbol));
			n->call.running_version[i] = order[k].version;
		}
}

static void get_record(
	const struct nvml *n, unsigned version, size_t stride, unsigned i, struct nvml_process *ret)
{
	const unsigned char *at = n->record + i * stride;

	*ret = (struct nvml_process){.gpu_instance = NO_INSTANCE, .compute_instance = NO_INSTANCE};
	memcpy(&ret->pid, at, sizeof(ret->pid));
	memcpy(&ret->memory, at + 8, sizeof(ret->memory));
	if (version == 1)
		return;
	memcpy(&ret->gpu_instance, at + 16, sizeof(ret->gpu_instance));
	memcpy(&ret->compute_instance, at + 20, sizeof(ret->compute_instance));
}

static bool is_sane(const struct nvml_process *p)
{
	return p->pid > 0 && p->pid <= PID_LIMIT && (p->memory == NOT_AVAILABLE || p->memory <= INT64_MAX);
}

static bool fits(const struct nvml *n, unsigned version, size_t stride, unsigned nr)
{
	struct nvml_process p;

	for (unsigned i = 0; i < nr; i++) {
		get_record(n, version, stride, i, &p);
		if (!is_sane(&p))
			return false;
	}
	return true;
}

/* How far apart the records are; 0: in no way that makes sense. */
static size_t stride_of(const struct nvml *n, unsigned version, unsigned nr)
{
	size_t stride = version == 1 ? 16 : 24;

	if (fits(n, version, stride, nr))
		return stride;
	return version == 3 && fits(n, version, NVML_RECORD_SIZE, nr) ? NVML_RECORD_SIZE : 0;
}

/* A process in two lists has the same memory in both. */
static void add_found(struct nvml *n, const struct nvml_process *p)
{
	for (unsigned i = 0; i < n->nr_found; i++) {
		struct nvml_process *f = &n->found[i];

		if (f->pid != p->pid || f->gpu_instance != p->gpu_instance ||
			f->compute_instance != p->compute_instance)
			continue;
		if (f->memory == NOT_AVAILABLE || (p->memory != NOT_AVAILABLE && p->memory > f->memory))
			f->memory = p->memory;
		return;
	}
	if (n->nr_found < NVML_RECORDS_MAX)
		n->found[n->nr_found++] = *p;
}

static int read_list(struct nvml *n, nvml_handle handle, unsigned list)
{
	unsigned nr = NVML_RECORDS_MAX;
	struct nvml_process p;
	size_t stride;
	int error;

	if (!n->call.running[list])
		return NVML_NO_SYMBOL;
	memset(n->record, 0, sizeof(n->record));
	error = n->call.running[list](handle, &nr, n->record);
	if (error != NVML_OK)
		return error;
	stride = nr <= NVML_RECORDS_MAX ? stride_of(n, n->call.running_version[list], nr) : 0;
	if (!stride)
		return NVML_NONSENSE;
	for (unsigned i = 0; i < nr; i++) {
		get_record(n, n->call.running_version[list], stride, i, &p);
		add_found(n, &p);
	}
	return NVML_OK;
}

/* A list that this driver or device does not have is empty; one that could not be read makes all unknown. */
static int read_lists(struct nvml *n, nvml_handle handle)
{
	int missing = NVML_OK;
	bool any = false;

	n->nr_found = 0;
	for (unsigned i = 0; i < NVML_LISTS; i++) {
		int error = read_list(n, handle, i);

		if (error == NVML_OK)
			any = true;
		else if (error == NVML_NOT_SUPPORTED || error == NVML_NO_SYMBOL)
			missing = error;
		else
			return error;
	}
	return any ? NVML_OK : missing;
}

/* What is remembered of a process; NULL when there is no room. */
static struct nvml_use *use_of(struct nvml *n, unsigned gpu, unsigned pid, int64_t now_ns)
{
	struct nvml_use *use;

	for (unsigned i = 0; i < n->nr_uses; i++)
		if (n->use[i].gpu == gpu && n->use[i].pid == pid)
			return &n->use[i];
	if (n->nr_uses == GPU_PROCESSES_MAX)
		return NULL;
	use = &n->use[n->nr_uses++];
	*use = (struct nvml_use){.gpu = gpu, .pid = pid, .since_ns = now_ns};
	return use;
}

static void forget_gone(struct nvml *n, unsigned gpu)
{
	for (unsigned i = n->nr_uses; i--;)
		if (n->use[i].gpu == gpu && !n->use[i].here)
			n->use[i] = n->use[--n->nr_uses];
}

static int take_samples(struct nvml *n, unsigned gpu, int64_t now_ns)
{
	unsigned long long seen = n->gpu[gpu].last_seen_us, newest = seen;
	unsigned nr = NVML_RECORDS_MAX;
	int error;

	if (!n->call.process_utilization)
		return NVML_NO_SYMBOL;
	memset(n->sample, 0, sizeof(n->sample));
	error = n->call.process_utilization(n->gpu[gpu].handle, n->sample, &nr, seen);
	if (error == NVML_NOT_FOUND)
		return NVML_OK;
	if (error != NVML_OK)
		return error;
	for (unsigned i = 0; i < MIN(nr, NVML_RECORDS_MAX); i++) {
		const struct nvml_process_sample *s = &n->sample[i];
		const unsigned value[NR_USES] = {s->sm, s->memory, s->encoder, s->decoder};
		struct nvml_use *use = NULL;

		/* Some drivers fill the rest of the buffer with records without a process. */
		if (!s->pid || s->timestamp_us <= seen || s->sm > 100 || s->memory > 100 ||
			s->encoder > 100 || s->decoder > 100)
			continue;
		newest = MAX(newest, s->timestamp_us);
		for (unsigned k = 0; k < n->nr_uses && seen && !use; k++)
			if (n->use[k].gpu == gpu && n->use[k].pid == s->pid)
				use = &n->use[k];
		if (!use)
			continue;
		memcpy(use->value, value, sizeof(value));
		use->sampled = true;
		use->since_ns = now_ns;
	}
	n->gpu[gpu].last_seen_us = newest;
	return NVML_OK;
}

static void put_use(struct gpu_process *p, struct nvml_use *use, int64_t now_ns, uint64_t rows)
{
	bool idle = now_ns - use->since_ns >= IDLE_NS;

	if (!use->sampled && !idle)
		return;
	if (idle)
		memset(use->value, 0, sizeof(use->value));
	for (unsigned i = 0; i < NR_USES; i++) {
		if (!(rows >> use_row[i] & 1))
			continue;
		p->value[use_row[i]] = use->value[i];
		p->valid |= UINT64_C(1) << use_row[i];
	}
}

struct fd_search {
	struct env *env;
	unsigned pid;
};

static int is_device(void *arg, const char *name)
{
	const struct fd_search *f = arg;
	char path[64], link[64];
	ssize_t len;

	if (strlen(name) > 12)
		return 0;
	snprintf(path, sizeof(path), "proc/%u/fd/%s", f->pid, name);
	len = env_readlink(f->env, path, link, sizeof(link) - 1);
	if (len <= 0)
		return 0;
	link[len] = 0;
	return str_starts(link, "/dev/nvidia");
}

/* In a PID namespace: the number is of a process of the job, and that one uses NVIDIA's driver. */
static bool is_ours(struct env *env, const struct gpu_request *request, struct nvml_use *use)
{
	struct fd_search f = {env, use->pid};
	char path[64];
	bool member = false;

	if (use->checked)
		return use->ours;
	for (unsigned i = 0; i < request->nr_members && !member; i++)
		member = (unsigned)request->member[i] == use->pid;
	snprintf(path, sizeof(path), "proc/%u/fd", use->pid);
	use->ours = member && env_list(env, path, is_device, &f) > 0;
	use->checked = true;
	return use->ours;
}

/* The row of a process on the device; the same process in several instances of it has one. */
static struct gpu_process *process_of(struct gpu_reading *ret, unsigned gpu, unsigned pid)
{
	for (unsigned i = ret->nr_processes; i-- && ret->process[i].device == gpu;)
		if (ret->process[i].pid == pid)
			return &ret->process[i];
	if (ret->nr_processes == GPU_PROCESSES_MAX)
		return NULL;
	ret->process[ret->nr_processes] = (struct gpu_process){.device = gpu, .pid = pid};
	return &ret->process[ret->nr_processes++];
}

static void put_memory(struct gpu_reading *ret, struct gpu_process *p, unsigned long long memory)
{
	uint64_t bit = UINT64_C(1) << GPU_PROCESS_MEMORY;

	if (memory == NOT_AVAILABLE) {
		ret->process_why[GPU_PROCESS_MEMORY] = no_memory;
		return;
	}
	p->value[GPU_PROCESS_MEMORY] += (int64_t)memory;
	p->valid |= bit;
}

static void put_processes(struct nvml *n, struct env *env, unsigned gpu, const struct gpu_request *request,
	struct gpu_reading *ret, int64_t now_ns, bool utilization)
{
	for (unsigned i = 0; i < n->nr_found; i++) {
		struct nvml_use *use = use_of(n, gpu, n->found[i].pid, now_ns);
		struct gpu_process *p = use ? process_of(ret, gpu, n->found[i].pid) : NULL;

		if (!p) {
			ret->process_why[GPU_PROCESS_MEMORY] = too_many;
			continue;
		}
		put_memory(ret, p, n->found[i].memory);
		p->other_pids = n->other_pids && !is_ours(env, request, use);
		if (utilization)
			put_use(p, use, now_ns, request->process_rows);
	}
}

static bool wants_use(const struct gpu_request *request)
{
	uint64_t rows = 0;

	for (unsigned i = 0; i < NR_USES; i++)
		rows |= UINT64_C(1) << use_row[i];
	return request->process_rows & rows;
}

static void explain_use(struct gpu_reading *ret, struct gpu_why why)
{
	for (unsigned i = 0; i < NR_USES; i++)
		if (!ret->process_why[use_row[i]].reason)
			ret->process_why[use_row[i]] = why;
}

/* The processes are not known, and so none of their values. */
static void explain_list(struct gpu_reading *ret, struct gpu_why why)
{
	ret->why[GPU_PROCESSES] = why;
	for (unsigned i = 0; i < NR_GPU_PROCESS_ROWS; i++)
		ret->process_why[i] = why;
}

void nvml_read_processes(struct nvml *n, struct env *env, unsigned gpu, const struct gpu_request *request,
	struct gpu_reading *ret, int64_t now_ns)
{
	bool counted = request->rows >> GPU_PROCESSES & 1,
	     sliced = n->gpu[gpu].is_mig || n->gpu[gpu].parent >= 0;
	struct gpu_device *d = &ret->device[gpu];
	int error, use_error = NVML_NOT_SUPPORTED;

	if (!counted && !request->process_rows)
		return;
	error = read_lists(n, n->gpu[gpu].handle);
	d->lost = nvml_lost(error);
	if (error != NVML_OK) {
		if (!d->lost && !ret->why[GPU_PROCESSES].reason)
			explain_list(ret, error == NVML_NONSENSE ? bad_list : nvml_why(error));
		return;
	}
	d->value[GPU_PROCESSES] = n->nr_found;
	d->valid |= (uint64_t)counted << GPU_PROCESSES;
	/* On a GPU in slices each process is listed with its slice. */
	if (!request->process_rows || n->gpu[gpu].is_mig)
		return;
	for (unsigned i = 0; i < n->nr_uses; i++)
		n->use[i].here &= n->use[i].gpu != gpu;
	for (unsigned i = 0; i < n->nr_found; i++) {
		struct nvml_use *use = use_of(n, gpu, n->found[i].pid, now_ns);

		if (use)
			use->here = true;
	}
	forget_gone(n, gpu);
	if (wants_use(request) && !sliced)
		use_error = take_samples(n, gpu, now_ns);
	d->lost = nvml_lost(use_error);
	if (use_error != NVML_OK && !d->lost && wants_use(request))
		explain_use(ret, sliced ? no_mig_use : nvml_why(use_error));
	put_processes(n, env, gpu, request, ret, now_ns, use_error == NVML_OK);
}
