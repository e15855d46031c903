/* Compute processes on AMD GPUs (ROCm), from sys/class/kfd: memory, copies and occupied compute units by
 * process, readable by all users.
 *
 * A node of the topology is a GPU, or a partition of one; all nodes of a card are added. Processes that hold
 * no memory are looked at when processes are looked for, the others in every round.
 *
 * The same process has its device files open, and newer kernels count ROCm's memory there as well (older ones
 * do not): of the two the larger is recorded, never the sum. Copies are timed by queue, and the queues of the
 * two kinds are different: those are added. The time of ROCm's compute queues is measured nowhere: for such a
 * process a busy time of zero in fdinfo means nothing and is removed; gpu_process.util has instead the share
 * of the compute units that it occupied when it was read.
 *
 * KFD's PIDs are those of the host. In a PID namespace of our own the same process cannot be recognised:
 * where its device files have its numbers, KFD is ignored; where they do not, what KFD gives is marked. */
#include "collect/gpu_amd.h"

#include "base/str.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define KFD "sys/class/kfd/kfd"
#define INIT_PIDS "pid:[4026531836]" /* the namespace that the machine began with, on every kernel */

struct gpu_amd_kfd_topology {
	struct kfd *k;
	struct env *env;
};

static int add_node(void *arg, const char *name)
{
	struct gpu_amd_kfd_topology *t = arg;
	struct kfd *k = t->k;
	int64_t gpu_id, location = 0, domain = 0, simds = 0, per_unit = 0;
	char path[96], text[4096], pci[32];
	struct gpu_card *card;
	ssize_t n;

	if (strlen(name) > 8 || k->nr_nodes == KFD_NODES_MAX)
		return 0;
	snprintf(path, sizeof(path), KFD "/topology/nodes/%s/gpu_id", name);
	if (value_get(t->env, path, &gpu_id) < 0 || gpu_id <= 0)
		return 0;
	snprintf(path, sizeof(path), KFD "/topology/nodes/%s/properties", name);
	n = env_peek(t->env, path, text, sizeof(text));
	if (n <= 0 || !read_key(text, text + n, "location_id", &location))
		return 0;
	read_key(text, text + n, "domain", &domain);
	read_key(text, text + n, "simd_count", &simds);
	read_key(text, text + n, "simd_per_cu", &per_unit);
	snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", (unsigned)domain, (unsigned)(location >> 8 & 255),
		(unsigned)(location >> 3 & 31), (unsigned)(location & 7));
	card = gpu_card_at(k->cards, pci);
	if (!card)
		return 0;
	k->node[k->nr_nodes++] = (struct kfd_node){.gpu_id = (uint64_t)gpu_id,
		.units = per_unit > 0 && simds > 0 ? simds / per_unit : 0,
		.card = card};
	return 0;
}

/* Numbers of nodes mean something else after a change: everything is found anew. */
static void read_topology(struct kfd *k, struct env *env)
{
	struct gpu_amd_kfd_topology t = {k, env};
	int64_t generation = 0;

	value_get(env, KFD "/topology/generation_id", &generation);
	if (k->nr_nodes && generation == k->generation)
		return;
	k->generation = generation;
	kfd_close(k, env);
	k->nr_nodes = 0;
	env_list(env, KFD "/topology/nodes", add_node, &t);
}

void kfd_open(struct kfd *k, struct env *env, struct gpu_cards *cards)
{
	char pids[32] = INIT_PIDS;

	k->cards = cards;
	value_get_link(env, "proc/self/ns/pid", pids, sizeof(pids));
	k->other_pids = strcmp(pids, INIT_PIDS) != 0;
	read_topology(k, env);
}

/* ---- processes ---- */

struct kfd_look {
	struct kfd *k;
	struct env *env;
	const struct gpu_request *request;
	bool count; /* processes outside the job too */
};

static bool is_member(const struct gpu_request *request, int64_t pid)
{
	for (unsigned i = 0; i < request->nr_members; i++)
		if (request->member[i] == pid)
			return true;
	return false;
}

static void close_use(struct kfd_use *u, struct env *env)
{
	env_close(env, u->memory);
	env_close(env, u->copy);
	env_close(env, u->occupancy);
}

static int open_of(struct env *env, int64_t pid, uint64_t gpu_id, const char *format)
{
	char path[128];
	int at = snprintf(path, sizeof(path), KFD "/proc/%lld/", (long long)pid);

	snprintf(path + at, sizeof(path) - (size_t)at, format, (unsigned long long)gpu_id);
	return env_open(env, path);
}

static void add_use(struct kfd_look *l, int64_t pid, unsigned node, int memory)
{
	uint64_t gpu_id = l->k->node[node].gpu_id, rows = l->request->process_rows;
	struct kfd_use *u;

	if (l->k->nr_uses == KFD_USES_MAX) {
		l->k->full = true;
		env_close(l->env, memory);
		return;
	}
	u = &l->k->use[l->k->nr_uses++];
	*u = (struct kfd_use){.pid = pid, .node = node, .memory = memory, .copy = -1, .occupancy = -1};
	if (rows >> GPU_PROCESS_COPY & 1)
		u->copy = open_of(l->env, pid, gpu_id, "sdma_%llu");
	if (rows >> GPU_PROCESS_UTIL & 1)
		u->occupancy = open_of(l->env, pid, gpu_id, "stats_%llu/cu_occupancy");
}

static bool is_known(const struct kfd *k, int64_t pid, unsigned node)
{
	for (unsigned i = 0; i < k->nr_uses; i++)
		if (k->use[i].pid == pid && k->use[i].node == node)
			return true;
	return false;
}

static int look_at_process(void *arg, const char *name)
{
	struct kfd_look *l = arg;
	struct kfd *k = l->k;
	bool wanted, on[GPU_DEVICES_MAX] = {false};
	int64_t pid, bytes;

	if (!parse_i64n(name, strlen(name), &pid) || pid <= 0)
		return 0;
	wanted = l->request->process_rows && (k->other_pids || is_member(l->request, pid));
	if (!wanted && !l->count)
		return 0;
	for (unsigned i = 0; i < k->nr_nodes; i++) {
		bool known = is_known(k, pid, i);
		int memory = known ? -1 : open_of(l->env, pid, k->node[i].gpu_id, "vram_%llu");
		bool holds = known || (memory >= 0 && value_read(l->env, memory, &bytes) == 0 && bytes > 0);

		on[k->node[i].card->device.index] |= holds;
		if (holds && !known && wanted)
			add_use(l, pid, i, memory);
		else
			env_close(l->env, memory);
	}
	for (unsigned i = 0; i < GPU_DEVICES_MAX; i++)
		k->nr_processes[i] += on[i];
	return 0;
}

static void look(struct kfd *k, struct env *env, const struct gpu_request *request)
{
	struct kfd_look l = {.k = k,
		.env = env,
		.request = request,
		.count = request->rows >> GPU_PROCESSES & 1 && request->medium};
	int64_t before[GPU_DEVICES_MAX];

	memcpy(before, k->nr_processes, sizeof(before));
	memset(k->nr_processes, 0, sizeof(k->nr_processes));
	if (env_list(env, KFD "/proc", look_at_process, &l) == 0 && l.count)
		k->counted = true;
	else
		memcpy(k->nr_processes, before, sizeof(before));
}

/* A use whose process is gone, or that is no member any more. */
static void drop_ended(struct kfd *k, struct env *env, const struct gpu_request *request)
{
	for (unsigned i = k->nr_uses; i--;) {
		int64_t bytes;

		if (value_read(env, k->use[i].memory, &bytes) == 0 &&
			(k->other_pids || is_member(request, k->use[i].pid)))
			continue;
		close_use(&k->use[i], env);
		k->use[i] = k->use[--k->nr_uses];
	}
}

static bool get(struct env *env, int handle, int64_t limit, int64_t *ret)
{
	return handle >= 0 && value_read(env, handle, ret) == 0 && *ret >= 0 && *ret <= limit;
}

static int64_t units_of(const struct kfd *k, const struct gpu_card *card)
{
	int64_t units = 0;

	for (unsigned i = 0; i < k->nr_nodes; i++)
		if (k->node[i].card == card)
			units += k->node[i].units;
	return units;
}

/* Sums of a process over the nodes of a card. */
struct kfd_sum {
	int64_t memory, copy_us, units;
	bool has_memory, has_copy, has_units;
};

static struct kfd_sum sum_of(const struct kfd *k, struct env *env, int64_t pid, const struct gpu_card *card)
{
	struct kfd_sum sum = {0};
	int64_t value;

	for (unsigned i = 0; i < k->nr_uses; i++) {
		const struct kfd_use *u = &k->use[i];

		if (u->pid != pid || k->node[u->node].card != card)
			continue;
		if (get(env, u->memory, INT64_C(1) << 50, &value)) {
			sum.memory += value;
			sum.has_memory = true;
		}
		if (get(env, u->copy, INT64_C(1) << 50, &value)) {
			sum.copy_us += value;
			sum.has_copy = true;
		}
		if (get(env, u->occupancy, 1 << 20, &value)) {
			sum.units += value;
			sum.has_units = true;
		}
	}
	return sum;
}

static void tell(const struct kfd *k, struct env *env, const struct kfd_use *u, struct gpu_reading *ret)
{
	const struct gpu_card *card = k->node[u->node].card;
	struct kfd_sum sum = sum_of(k, env, u->pid, card);
	struct gpu_process *p = gpu_process_of(ret, card, u->pid);
	int64_t units = units_of(k, card);

	if (!p)
		return;
	p->other_pids = k->other_pids;
	if (sum.has_memory)
		gpu_process_set(p, GPU_PROCESS_MEMORY,
			p->valid >> GPU_PROCESS_MEMORY & 1 ? MAX(p->value[GPU_PROCESS_MEMORY], sum.memory)
							   : sum.memory);
	if (sum.has_copy)
		gpu_process_set(p, GPU_PROCESS_COPY,
			(p->valid >> GPU_PROCESS_COPY & 1 ? p->value[GPU_PROCESS_COPY] : 0) +
				sum.copy_us * NSEC_PER_USEC);
	if (sum.has_units && units > 0)
		gpu_process_set(p, GPU_PROCESS_UTIL, MIN(sum.units * 100 / units, 100));
	if (p->valid >> GPU_PROCESS_BUSY & 1 && !p->value[GPU_PROCESS_BUSY])
		p->valid &= ~(UINT64_C(1) << GPU_PROCESS_BUSY);
}

static bool is_first(const struct kfd *k, unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (k->use[j].pid == k->use[i].pid &&
			k->node[k->use[j].node].card == k->node[k->use[i].node].card)
			return false;
	return true;
}

static bool all_have(const struct gpu_reading *r, enum gpu_process_row row)
{
	for (unsigned i = 0; i < r->nr_processes; i++)
		if (!(r->process[i].valid >> row & 1))
			return false;
	return true;
}

static void explain(const struct kfd *k, struct gpu_reading *ret)
{
	static const struct gpu_why no_util = {
		ABSENT, "the compute units of a process are known for ROCm's processes only", NULL};
	static const struct gpu_why no_busy = {ABSENT,
		"the kernel does not time ROCm's compute queues: gpu_process.util has what they occupied",
		NULL};
	static const struct gpu_why full = {
		FAILED, "there are more compute processes than are looked at", NULL};

	if (!all_have(ret, GPU_PROCESS_UTIL))
		ret->process_why[GPU_PROCESS_UTIL] = no_util;
	if (k->nr_uses && !all_have(ret, GPU_PROCESS_BUSY))
		ret->process_why[GPU_PROCESS_BUSY] = no_busy;
	if (k->full)
		ret->process_why[GPU_PROCESS_MEMORY] = full;
}

void kfd_read(struct kfd *k, struct env *env, const struct gpu_request *request, bool look_for_new,
	struct gpu_reading *ret)
{
	bool aside = k->other_pids && ret->nr_processes;

	if (request->medium)
		read_topology(k, env);
	drop_ended(k, env, request);
	if (k->nr_nodes && (look_for_new || request->medium))
		look(k, env, request);
	for (unsigned i = 0; i < k->nr_uses && !aside; i++)
		if (is_first(k, i))
			tell(k, env, &k->use[i], ret);
	for (unsigned i = 0; i < k->cards->nr && k->counted; i++)
		if (k->cards->card[i].at >= 0)
			gpu_device_set(&ret->device[k->cards->card[i].at], GPU_PROCESSES,
				k->nr_processes[k->cards->card[i].device.index]);
	if (request->process_rows)
		explain(k, ret);
}

void kfd_close(struct kfd *k, struct env *env)
{
	while (k->nr_uses)
		close_use(&k->use[--k->nr_uses], env);
}
