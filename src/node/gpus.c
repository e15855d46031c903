/* clang-format off */
/* Which GPUs belong to the job?
 *
 * The first source that has an answer decides: the control group, because the kernel enforces it (v1 alone:
 * on v2 it is a program that cannot be read); then the batch system, which counts the GPUs of the node; then
 * the variables of the makers' runtimes, which count what the process can see. Where a device does not have
 * the kind of name that a list uses, or the list may count differently, the claim's text says so.
 *
 *   SLURM_STEP_GPUS, SLURM_JOB_GPUS    indices of the node in the order of the PCI bus. NVML counts only what
 *                                      the control group of its caller allows: so the place on the bus is
 *                                      asked where it is known, else the index
 *   OAR_USER_GPUDEVICE                 numbers of device files
 *   CUDA_VISIBLE_DEVICES               what CUDA counts; a bad entry ends the list. MIG devices by UUID: under
 *                                      SLURM as well, which numbers slices as if they were GPUs
 *   NVIDIA_VISIBLE_DEVICES             what a container was given, counted outside of it
 *   HIP_, ROCR_VISIBLE_DEVICES         the first is counted within the second
 *   ZE_AFFINITY_MASK                   Intel
 *
 * What a script sets later for its own children is not seen: then the processes that are found on a device
 * decide. */
/* clang-format on */
#include "node/gpus.h"

#include "base/str.h"
#include "base/text.h"
#include "node/cgroups.h"
#include "node/variables.h"
#include "read/read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ENTRIES_MAX 128
#define RULES_MAX 512
#define DEVICES_MAX 256
#define INDEX_MAX 65535
#define DEVICES_TEXT (64 << 10)
#define NVIDIA_MAJOR 195
#define DRM_MAJOR 226
#define ANY -1

#define CUDA_VARIABLE "CUDA_VISIBLE_DEVICES"

enum vendor { NVIDIA, AMD, INTEL, NR_VENDORS };
static const char *const vendor_name[NR_VENDORS] = {"nvidia", "amd", "intel"};
/* The variable by which a batch system shows that it means GPUs of this maker. */
static const char *const vendor_variable[NR_VENDORS] = {
	CUDA_VARIABLE, "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};

/* One GPU as a list names it. */
struct gpus_entry {
	int index;     /* ANY: it has a UUID */
	char uuid[96]; /* or the beginning of one */
};

enum counting { OF_MAKER, OF_NODE, OF_DEVICE_FILES };

struct gpus_list {
	bool is_set, all;
	bool unsure; /* a GPU that is not in it may still be the job's */
	enum counting counting;
	unsigned nr;
	struct gpus_entry entry[ENTRIES_MAX];
	char by[240];
};

struct gpus_rule {
	int major, minor; /* ANY */
};

/* Where a device file's number is found on the PCI bus: 226:128 is 0000:03:00.0. */
struct gpus_place {
	uint64_t slot;
	int minor;
};

struct gpu_claims {
	struct gpus_list list[NR_VENDORS];
	bool ruled; /* the control group allows some devices only */
	struct gpus_rule rule[RULES_MAX];
	unsigned nr_rules;
	char ruled_by[240];
	uint64_t nvidia[DEVICES_MAX]; /* PCI slots of the node's, in their order */
	unsigned nr_nvidia;
	struct gpus_place drm[DEVICES_MAX];
	unsigned nr_drm;
};

/* ---- text ---- */

/* "0000:03:00.0" and "00000000:03:00.0" are one; 0: no such address (that is a host bridge). */
static uint64_t slot_of(const char *pci)
{
	unsigned domain, bus, device, function = 0;

	if (!pci || sscanf(pci, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) < 3)
		return 0;
	return (uint64_t)domain << 16 | (bus & 0xff) << 8 | (device & 0x1f) << 3 | (function & 7);
}

static struct text trimmed(struct text t)
{
	while (t.len && isspace((unsigned char)t.p[0]))
		t = text_from(t, 1);
	while (t.len && isspace((unsigned char)t.p[t.len - 1]))
		t.len--;
	return t;
}

/* Digits alone. */
static bool index_of(struct text t, int *ret)
{
	int64_t value;

	if (!t.len || !isdigit((unsigned char)t.p[0]) || !parse_i64n(t.p, t.len, &value) || value > INDEX_MAX)
		return false;
	*ret = (int)value;
	return true;
}

static bool is_uuid(struct text t)
{
	return (text_starts(t, "GPU-") || text_starts(t, "MIG-")) && t.len > 4 &&
		t.len < sizeof(((struct gpus_entry *)0)->uuid);
}

/* Values and names are not trusted: what is not printable becomes '?'. */
static void clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
			*text = '?';
}

static void say_by(struct gpus_list *l, const char *name, const char *value, const char *remark)
{
	snprintf(
		l->by, sizeof(l->by), "%s=%.100s%s%s", name, value, strlen(value) > 100 ? "..." : "", remark);
	clean(l->by);
}

/* ---- lists ---- */

static bool add_entry(struct gpus_list *l, int index, struct text uuid)
{
	struct gpus_entry *e = &l->entry[l->nr];

	if (l->nr == ENTRIES_MAX)
		return false;
	*e = (struct gpus_entry){.index = index};
	memcpy(e->uuid, uuid.p, uuid.len);
	l->nr++;
	return true;
}

/* One piece of a list: "3", "0-3" where ranges are written, a UUID. False: it is none of them. */
static bool add_piece(struct gpus_list *l, struct text piece, bool ranges)
{
	struct text rest = piece, first = text_cut(&rest, '-');
	int from, to;

	if (is_uuid(piece))
		return add_entry(l, ANY, piece);
	if (index_of(piece, &from))
		return add_entry(l, from, (struct text){"", 0});
	if (!ranges || !index_of(first, &from) || !index_of(rest, &to))
		return false;
	for (; from <= to && l->nr < ENTRIES_MAX; from++)
		add_entry(l, from, (struct text){"", 0});
	return true;
}

/* As CUDA and ROCm read it: what follows a bad entry does not count. `count`: how many GPUs there are, so
 * that larger indices are bad; 0: not known. */
static void read_list(struct gpus_list *l, const char *value, bool ranges, unsigned count)
{
	struct text rest = text_of(value);

	l->is_set = true;
	while (rest.len > 0) {
		unsigned before = l->nr;

		if (!add_piece(l, trimmed(text_cut(&rest, ',')), ranges))
			break;
		if (count && l->entry[before].index >= (int)count) {
			l->nr = before;
			break;
		}
	}
}

static bool has_indices(const struct gpus_list *l)
{
	for (unsigned i = 0; i < l->nr; i++)
		if (l->entry[i].index != ANY)
			return true;
	return false;
}

static bool has_slices(const struct gpus_list *l)
{
	for (unsigned i = 0; i < l->nr; i++)
		if (str_starts(l->entry[i].uuid, "MIG-"))
			return true;
	return false;
}

/* The list counts within another: its indices become the entries that they mean there. */
static void count_within(struct gpus_list *l, const struct gpus_list *outer)
{
	char by[sizeof(l->by)];

	if (!outer->is_set || outer->all)
		return;
	for (unsigned i = 0; i < l->nr; i++) {
		if (l->entry[i].index == ANY)
			continue;
		if (l->entry[i].index >= (int)outer->nr) {
			l->nr = i;
			break;
		}
		l->entry[i] = outer->entry[l->entry[i].index];
	}
	l->unsure = outer->unsure;
	l->counting = outer->counting;
	memcpy(by, l->by, sizeof(by));
	snprintf(l->by, sizeof(l->by), "%.118s of %.116s", by, outer->by);
}

/* ---- the control group ---- */

static void read_rule(struct gpu_claims *c, struct text line)
{
	struct text kind = text_cut(&line, ' '), device = text_cut(&line, ' '),
		    major = text_cut(&device, ':');
	struct gpus_rule r = {ANY, ANY};

	if (!text_is(kind, "c") || !memchr(line.p, 'r', line.len) || c->nr_rules == RULES_MAX)
		return;
	if (!text_is(major, "*") && !index_of(major, &r.major))
		return;
	if (!text_is(device, "*") && !index_of(device, &r.minor))
		return;
	c->rule[c->nr_rules++] = r;
}

/* The list of a group that allows everything is "a *:* rwm". */
static void read_rules(struct gpu_claims *c, struct env *env, pid_t root)
{
	_cleanup_(freep) struct cgroup_dir *dir = malloc(sizeof(*dir));
	_cleanup_(freep) char *text = malloc(DEVICES_TEXT);
	struct text rest;
	ssize_t n;

	if (!dir || !text || cgroup_dir_find(env, root, "devices", dir) < 0 || dir->v2)
		return;
	n = cgroup_text(env, dir, "devices.list", text, DEVICES_TEXT);
	if (n <= 0)
		return;
	for (rest = (struct text){text, (size_t)n}; rest.len > 0;)
		read_rule(c, text_cut(&rest, '\n'));
	c->ruled = c->nr_rules > 0; /* a list in which nothing was understood is ignored */
	n = (ssize_t)strlen(dir->group);
	snprintf(c->ruled_by, sizeof(c->ruled_by), "devices.list of the control group %s%.150s",
		n > 150 ? "..." : "", dir->group + MAX(n - 150, 0));
	clean(c->ruled_by);
}

static bool is_allowed(const struct gpu_claims *c, int major, int minor)
{
	for (unsigned i = 0; i < c->nr_rules; i++)
		if ((c->rule[i].major == ANY || c->rule[i].major == major) &&
			(c->rule[i].minor == ANY || c->rule[i].minor == minor))
			return true;
	return false;
}

static enum gpu_claim ask_rules(
	const struct gpu_claims *c, enum vendor vendor, const struct gpu_identity *gpu)
{
	uint64_t slot = slot_of(gpu->pci);
	bool known = false;

	if (!c->ruled)
		return GPU_UNCLAIMED;
	if (vendor == NVIDIA) {
		if (gpu->minor < 0)
			return GPU_UNCLAIMED;
		return is_allowed(c, NVIDIA_MAJOR, gpu->minor) ? GPU_OF_JOB : GPU_NOT_OF_JOB;
	}
	for (unsigned i = 0; slot && i < c->nr_drm; i++) {
		if (c->drm[i].slot != slot)
			continue;
		known = true;
		if (is_allowed(c, DRM_MAJOR, c->drm[i].minor))
			return GPU_OF_JOB;
	}
	return known ? GPU_NOT_OF_JOB : GPU_UNCLAIMED;
}

/* ---- the machine ---- */

static int by_slot(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int note_nvidia(void *arg, const char *name)
{
	struct gpu_claims *c = arg;
	uint64_t slot = slot_of(name);

	if (slot && c->nr_nvidia < DEVICES_MAX)
		c->nvidia[c->nr_nvidia++] = slot;
	return 0;
}

struct gpus_finder {
	struct gpu_claims *claims;
	struct env *env;
};

/* sys/class/drm/renderD128 leads to .../0000:03:00.0/drm/renderD128. */
static int note_drm(void *arg, const char *name)
{
	const struct gpus_finder *f = arg;
	struct gpu_claims *c = f->claims;
	char path[128], target[512], *drm;
	int64_t minor;
	ssize_t n;
	size_t digits = strcspn(name, "0123456789");

	if ((strncmp(name, "card", 4) && strncmp(name, "renderD", 7)) || strlen(name) > 32 ||
		c->nr_drm == DEVICES_MAX || !parse_i64n(name + digits, strlen(name + digits), &minor) ||
		minor < 0 || minor > INDEX_MAX)
		return 0;
	snprintf(path, sizeof(path), "sys/class/drm/%s", name);
	n = env_readlink(f->env, path, target, sizeof(target) - 1);
	target[MAX(n, 0)] = 0;
	drm = strstr(target, "/drm/");
	if (!drm)
		return 0;
	*drm = 0;
	drm = strrchr(target, '/');
	c->drm[c->nr_drm] = (struct gpus_place){slot_of(drm ? drm + 1 : target), (int)minor};
	c->nr_drm += c->drm[c->nr_drm].slot != 0;
	return 0;
}

/* The index that the node counts by, whatever NVML's caller is allowed to see. */
static int node_index(const struct gpu_claims *c, enum vendor vendor, const struct gpu_identity *gpu)
{
	uint64_t slot = slot_of(gpu->pci), *at;

	if (vendor != NVIDIA || !slot)
		return gpu->index;
	at = bsearch(&slot, c->nvidia, c->nr_nvidia, sizeof(slot), by_slot);
	return at ? (int)(at - c->nvidia) : gpu->index;
}

/* ---- the variables ---- */

/* The variable that a batch system sets beside its own shows which maker's GPUs it means; where it sets none,
 * or all of them, it may be any. */
static bool is_meant(const struct variables *v, enum vendor vendor)
{
	bool other = false;

	for (unsigned i = 0; i < NR_VENDORS; i++)
		other = other || variable_get(v, vendor_variable[i]);
	return !other || variable_get(v, vendor_variable[vendor]);
}

static void read_batch(const struct variables *v, struct gpu_claims *c)
{
	static const struct {
		const char *name;
		enum counting counting;
	} source[] = {{"SLURM_STEP_GPUS", OF_NODE}, {"SLURM_JOB_GPUS", OF_NODE},
		{"OAR_USER_GPUDEVICE", OF_DEVICE_FILES}};

	for (size_t s = 0; s < ARRAY_SIZE(source); s++) {
		const char *value = variable_get(v, source[s].name);
		struct gpus_list l = {.counting = source[s].counting};

		if (!value)
			continue;
		read_list(&l, value, true, 0);
		if (!l.nr) /* empty, or in a form that we do not know: ignored */
			continue;
		say_by(&l, source[s].name, value, "");
		for (unsigned i = 0; i < NR_VENDORS; i++)
			if (is_meant(v, i) && !c->list[i].is_set)
				c->list[i] = l;
	}
}

/* Whether the process sees what we see: a container shows its own GPUs alone, and counts them from 0. */
static bool is_beside_us(struct env *env, pid_t root)
{
	char path[48], own[64] = "", other[64] = "";
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/ns/mnt", (int)root);
	n = env_readlink(env, "proc/self/ns/mnt", own, sizeof(own) - 1);
	return !root || n <= 0 || env_readlink(env, path, other, sizeof(other) - 1) != n ||
		!memcmp(own, other, (size_t)n);
}

/* What a container was given. `void`, or an empty text, is set where devices are given in other ways. */
static void read_container(const struct variables *v, bool beside_us, struct gpus_list *l)
{
	const char *value = variable_get(v, "NVIDIA_VISIBLE_DEVICES");
	bool none = value && !strcmp(value, "none");

	if (!value)
		return;
	l->counting = OF_NODE;
	l->unsure = beside_us && !none;
	l->all = !strcmp(value, "all");
	read_list(l, value, false, 0);
	say_by(l, "NVIDIA_VISIBLE_DEVICES", value, "");
	l->is_set = l->nr || l->all || none;
}

static void read_nvidia(const struct variables *v, bool beside_us, struct gpu_claims *c)
{
	const char *value = variable_get(v, CUDA_VARIABLE), *order = variable_get(v, "CUDA_DEVICE_ORDER");
	struct gpus_list own = {0}, given = {0}, *l = &c->list[NVIDIA];
	bool by_bus = order && !strcmp(order, "PCI_BUS_ID");

	read_container(v, beside_us, &given);
	if (value) {
		read_list(&own, value, false, beside_us ? c->nr_nvidia : 0);
		say_by(&own, CUDA_VARIABLE, value,
			has_indices(&own) && !by_bus ? " (as CUDA counts: the fastest first)" : "");
		if (!beside_us)
			count_within(&own, &given);
	}
	if (!l->is_set || has_slices(&own))
		*l = own.is_set ? own : given;
}

/* HIP uses CUDA's variable too; on a node with GPUs of both makers it is meant for those of the other. */
static void read_amd(const struct variables *v, bool has_nvidia, struct gpus_list *l)
{
	static const char *const within[] = {"HIP_VISIBLE_DEVICES", CUDA_VARIABLE, "GPU_DEVICE_ORDINAL"};
	const char *value = variable_get(v, "ROCR_VISIBLE_DEVICES");
	struct gpus_list outer = {0}, inner = {0};

	if (l->is_set)
		return;
	if (value) {
		read_list(&outer, value, false, 0);
		say_by(&outer, "ROCR_VISIBLE_DEVICES", value, "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(within) && !inner.is_set; i++) {
		value = variable_get(v, within[i]);
		if (!value || (has_nvidia && !strcmp(within[i], CUDA_VARIABLE)))
			continue;
		read_list(&inner, value, false, 0);
		say_by(&inner, within[i], value, "");
	}
	count_within(&inner, &outer);
	*l = inner.is_set ? inner : outer;
}

/* "0,1.0": of a device, or of a tile of it. A mask that is not understood is ignored, as the driver does. */
static void read_intel(const struct variables *v, struct gpus_list *l)
{
	const char *value = variable_get(v, "ZE_AFFINITY_MASK"),
		   *model = variable_get(v, "ZE_FLAT_DEVICE_HIERARCHY");
	struct text rest = value ? text_of(value) : (struct text){"", 0};
	struct gpus_list mask = {.is_set = rest.len > 0};
	bool flat = !model || strcasecmp(model, "COMPOSITE") != 0;

	if (l->is_set)
		return;
	while (rest.len > 0) {
		struct text tile = trimmed(text_cut(&rest, ',')), device = text_cut(&tile, '.');
		int index;

		if (!index_of(device, &index) || !add_entry(&mask, index, (struct text){"", 0}))
			mask.is_set = false;
	}
	if (mask.is_set)
		say_by(&mask, "ZE_AFFINITY_MASK", value,
			flat ? " (where a GPU of several tiles counts as several)" : "");
	*l = mask;
}

/* A child of ours whose environment cannot be read has inherited ours. */
static bool is_our_child(struct env *env, pid_t pid)
{
	char path[48], text[512], self[16] = "";
	const char *p;
	int64_t parent, us;

	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	if (env_peek(env, path, text, sizeof(text)) <= 0 ||
		env_readlink(env, "proc/self", self, sizeof(self) - 1) <= 0)
		return false;
	p = strrchr(text, ')');
	if (!p || strlen(p) < 5)
		return false;
	p += 4;
	return read_number(&p, text + strlen(text), &parent) && parse_i64n(self, strlen(self), &us) &&
		parent == us;
}

struct gpu_claims *gpu_claims_read(struct env *env, pid_t root)
{
	struct gpu_claims *c = calloc(1, sizeof(*c));
	bool beside_us;
	struct variables v;

	if (!c)
		return NULL;
	env_list(env, "proc/driver/nvidia/gpus", note_nvidia, c);
	qsort(c->nvidia, c->nr_nvidia, sizeof(c->nvidia[0]), by_slot);
	env_list(env, "sys/class/drm", note_drm, &(struct gpus_finder){c, env});
	read_rules(c, env, root);
	if (variables_open(&v, env, root) < 0 || (root && !v.len))
		if (is_our_child(env, root)) {
			variables_close(&v);
			variables_open(&v, env, 0);
		}
	beside_us = is_beside_us(env, root);
	read_batch(&v, c);
	read_nvidia(&v, beside_us, c);
	read_amd(&v, c->nr_nvidia > 0, &c->list[AMD]);
	read_intel(&v, &c->list[INTEL]);
	variables_close(&v);
	return c;
}

struct gpu_claims *gpu_claims_free(struct gpu_claims *c)
{
	free(c);
	return NULL;
}

/* ---- the answer ---- */

static const char *without_prefix(const char *uuid)
{
	return str_starts(uuid, "GPU-") ? uuid + 4 : uuid;
}

/* "MIG-GPU-8932f937-.../1/0", as drivers before R470 wrote it, is a slice of the GPU of that name. */
static bool is_named(const struct gpus_entry *e, const char *uuid)
{
	const char *wanted = without_prefix(e->uuid);

	if (!uuid || !*uuid)
		return false;
	if (str_starts(e->uuid, "MIG-GPU-") && str_starts(uuid, "GPU-")) {
		size_t len = strcspn(e->uuid + 4, "/");

		return strlen(uuid) == len && !strncasecmp(uuid, e->uuid + 4, len);
	}
	return str_starts(e->uuid, "MIG-") == str_starts(uuid, "MIG-") &&
		!strncasecmp(without_prefix(uuid), wanted, strlen(wanted));
}

static bool is_listed(const struct gpus_list *l, int index, int minor, const char *uuid)
{
	int number = l->counting == OF_DEVICE_FILES && minor >= 0 ? minor : index;

	for (unsigned i = 0; i < l->nr; i++)
		if (l->entry[i].index == ANY ? is_named(&l->entry[i], uuid) : l->entry[i].index == number)
			return true;
	return l->all;
}

enum gpu_claim gpu_claims_ask(const struct gpu_claims *c, const struct gpu_identity *gpu, const char **ret_by)
{
	bool slice = gpu->uuid && str_starts(gpu->uuid, "MIG-");
	enum gpu_claim claim;
	const struct gpus_list *l;
	unsigned v = 0;

	*ret_by = "";
	while (v < NR_VENDORS && strcmp(gpu->vendor, vendor_name[v]))
		v++;
	if (v == NR_VENDORS)
		return GPU_UNCLAIMED;
	l = &c->list[v];
	claim = ask_rules(c, v, gpu);
	/* A group allows the device as a whole: the list says which of its slices. */
	if (claim != GPU_UNCLAIMED && !(claim == GPU_OF_JOB && slice && has_slices(l))) {
		*ret_by = c->ruled_by;
		return claim;
	}
	if (!l->is_set)
		return GPU_UNCLAIMED;
	claim = is_listed(
			l, l->counting == OF_NODE ? node_index(c, v, gpu) : gpu->index, gpu->minor, gpu->uuid)
		? GPU_OF_JOB
		: l->unsure ? GPU_UNCLAIMED
			    : GPU_NOT_OF_JOB;
	*ret_by = claim == GPU_UNCLAIMED ? "" : l->by;
	return claim;
}
