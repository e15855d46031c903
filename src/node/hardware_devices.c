/* Network and interconnect devices, GPUs, disks: those that are hardware, by name and speed or model.
 *
 * A server has hundreds of PCI functions and opening each costs as much as all the rest of this.
 * proc/bus/pci/devices is one file that names vendor and driver of all: only what a maker of GPUs made is
 * looked at. Frame buffers of management controllers and of virtual machines are display controllers too, but
 * no GPUs that a job could use. */
#include "node/facts.h"

#include "base/str.h"
#include "base/units.h"
#include "read/value.h"

#include <limits.h>
#include <string.h>

#define NETS_MAX 16
#define PORTS_MAX 16
#define DISKS_MAX 8
#define GPU_KINDS_MAX 8
#define PCI "sys/bus/pci/devices"

/* A list for people: items separated by ", ", and the number of those that had no room. */
struct device_list {
	char text[FACT_TEXT_MAX];
	struct buf out;
};

static void list_init(struct device_list *l)
{
	buf_init_fixed(&l->out, l->text, sizeof(l->text));
}

static struct buf *list_next(struct device_list *l)
{
	if (l->out.len)
		buf_adds(&l->out, ", ");
	return &l->out;
}

static void list_say(struct facts *f, struct device_list *l, unsigned more, const char *fact)
{
	if (more)
		buf_addf(list_next(l), "%u more", more);
	fact_text(f, fact, l->text);
}

/* Links of sys/class and sys/block lead to the device; what no hardware stands behind is below
 * devices/virtual. */
struct below {
	struct facts *f;
	const char *folder, *virtual;
};

static bool is_hardware(void *arg, const char *name)
{
	const struct below *b = arg;
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", b->folder, name);
	n = env_readlink(b->f->env, path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = 0;
	return !strstr(target, b->virtual);
}

/* "25Gb/s", "2.5Gb/s", "100Mb/s" */
static void add_speed(struct buf *out, int64_t megabits)
{
	if (megabits >= 1000 && megabits % 1000)
		buf_addf(out, " %lld.%lldGb/s", (long long)(megabits / 1000),
			(long long)(megabits % 1000 / 100));
	else if (megabits >= 1000)
		buf_addf(out, " %lldGb/s", (long long)(megabits / 1000));
	else if (megabits > 0)
		buf_addf(out, " %lldMb/s", (long long)megabits);
}

/* "eno1 25Gb/s ice": no speed when the link is down or the driver does not give it. */
static void say_network(struct facts *f)
{
	struct below below = {f, "sys/class/net", "/virtual/net/"};
	struct fact_names names;
	struct device_list list;

	list_init(&list);
	names_list(f, &names, below.folder, is_hardware, &below);
	for (unsigned i = 0; i < MIN(names.nr, NETS_MAX); i++) {
		struct buf *out = list_next(&list);
		char path[PATH_MAX], driver[64];
		int64_t speed;

		buf_adds(out, names.name[i]);
		if (fact_read_number(f, &speed, "%s/%s/speed", below.folder, names.name[i]))
			add_speed(out, speed);
		snprintf(path, sizeof(path), "%s/%s/device/driver", below.folder, names.name[i]);
		if (value_get_link(f->env, path, driver, sizeof(driver)) > 0)
			buf_addf(out, " %s", driver);
	}
	list_say(f, &list, names.nr - MIN(names.nr, NETS_MAX) + names.more, "network");
}

/* "mlx5_0/1 200Gb/s HDR", from "200 Gb/sec (4X HDR)"; the rate of a port that is down means nothing. */
static void add_port(struct facts *f, struct buf *out, const char *device, const char *port)
{
	char state[64], rate[64], *generation;

	buf_addf(out, "%s/%s", device, port);
	if (fact_read(f, state, sizeof(state), "sys/class/infiniband/%s/ports/%s/state", device, port) > 0 &&
		!strstr(state, "ACTIVE")) {
		buf_adds(out, " down");
		return;
	}
	if (fact_read(f, rate, sizeof(rate), "sys/class/infiniband/%s/ports/%s/rate", device, port) <= 0)
		return;
	if (*rate >= '0' && *rate <= '9')
		buf_addf(out, " %.*sGb/s", (int)strspn(rate, "0123456789."), rate);
	generation = strrchr(rate, ' ');
	if (generation && strchr(generation, ')'))
		buf_addf(out, " %.*s", (int)strcspn(generation + 1, ")"), generation + 1);
}

static void say_interconnect(struct facts *f)
{
	struct fact_names devices, ports;
	unsigned nr = 0, more;
	struct device_list list;

	list_init(&list);
	names_list(f, &devices, "sys/class/infiniband", NULL, NULL);
	more = devices.more;
	for (unsigned i = 0; i < devices.nr; i++) {
		char path[PATH_MAX];

		if (nr == PORTS_MAX) {
			more++;
			continue;
		}
		snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports", devices.name[i]);
		names_list(f, &ports, path, NULL, NULL);
		for (unsigned j = 0; j < ports.nr && nr < PORTS_MAX; j++, nr++)
			add_port(f, list_next(&list), devices.name[i], ports.name[j]);
	}
	list_say(f, &list, more, "interconnect");
}

/* clang-format off */
static const struct gpu_vendor {
	const char *id, *name;
} gpu_vendor[] = {
	{"10de", "NVIDIA"},
	{"1002", "AMD"},
	{"8086", "Intel"},
	{"1da3", "Habana"},
};

/* GPUs of large machines whose drivers do not show their names in a file that all users may read. */
static const struct gpu_model {
	const char *id, *name;
} gpu_model[] = {
	{"1002:66a1", "AMD Instinct MI50"},
	{"1002:738c", "AMD Instinct MI100"},
	{"1002:7408", "AMD Instinct MI250X"},
	{"1002:740c", "AMD Instinct MI250X"},
	{"1002:740f", "AMD Instinct MI210"},
	{"1002:74a0", "AMD Instinct MI300A"},
	{"1002:74a1", "AMD Instinct MI300X"},
	{"8086:0bd5", "Intel Data Center GPU Max 1550"},
	{"8086:0bda", "Intel Data Center GPU Max 1100"},
	{"8086:56c0", "Intel Data Center GPU Flex 170"},
	{"8086:56c1", "Intel Data Center GPU Flex 140"},
};
/* clang-format on */

static const struct gpu_vendor *vendor_of(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(gpu_vendor); i++)
		if (!strncmp(id, gpu_vendor[i].id, 4))
			return &gpu_vendor[i];
	return NULL;
}

/* What may be a GPU, by the numbers of its bus, device and function. */
struct suspects {
	bool all; /* there is no list of them: every device is one */
	uint16_t slot[NAMES_MAX];
	unsigned nr;
};

static bool slot_of(const char *name, uint16_t *ret)
{
	unsigned domain, bus, device, function;

	if (sscanf(name, "%x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
		return false;
	*ret = (uint16_t)(bus << 8 | (device & 31) << 3 | (function & 7));
	return true;
}

/* Intel makes most of a server's devices: of those only what has a driver of GPUs. */
static bool is_suspect(const char *vendor, const char *line, size_t len)
{
	const char *driver = memrchr(line, '\t', len);
	size_t n = driver ? (size_t)(line + len - ++driver) : 0;

	if (!strncmp(vendor, "8086", 4))
		return (n == 4 && !memcmp(driver, "i915", 4)) || (n == 2 && !memcmp(driver, "xe", 2));
	return vendor_of(vendor);
}

/* A line: four digits of bus and function, blank, eight of vendor and device, ..., driver. */
static void suspect_line(struct suspects *s, const char *line, size_t len)
{
	char *end;
	unsigned long slot;

	if (len < 13 || line[4] != '\t')
		return;
	slot = strtoul(line, &end, 16);
	if (end == line + 4 && is_suspect(line + 5, line, len) && s->nr < NAMES_MAX)
		s->slot[s->nr++] = (uint16_t)slot;
}

static void find_suspects(struct facts *f, struct suspects *s)
{
	const size_t size = 1 << 18;
	_cleanup_(freep) char *text = malloc(size);

	*s = (struct suspects){.all = !text || env_slurp(f->env, "proc/bus/pci/devices", text, size) < 0};
	if (s->all)
		return;
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");

		suspect_line(s, line, len);
		line += len + (line[len] == '\n');
	}
}

static bool may_be_gpu(void *arg, const char *name)
{
	const struct suspects *s = arg;
	uint16_t slot;

	if (!slot_of(name, &slot))
		return false;
	for (unsigned i = 0; i < s->nr; i++)
		if (s->slot[i] == slot)
			return true;
	return s->all;
}

/* Equal ones are counted; one of each kind is asked for its name. */
struct device_gpus {
	struct gpu_kind {
		char id[10]; /* "10de:20b0" */
		char name[128];
		unsigned nr;
	} kind[GPU_KINDS_MAX];
	unsigned nr_kinds, nr;
};

/* Whether the device is a display controller (03) or a processing accelerator (12) of a maker of GPUs. */
static bool is_gpu(struct facts *f, const char *slot, char id[static 10])
{
	char uevent[512], class[16];
	unsigned long kind;

	if (fact_read(f, uevent, sizeof(uevent), PCI "/%s/uevent", slot) <= 0 ||
		!text_value(uevent, "PCI_CLASS", '=', class, sizeof(class)) ||
		!text_value(uevent, "PCI_ID", '=', id, 10))
		return false;
	for (char *p = id; *p; p++)
		*p = (char)(*p >= 'A' && *p <= 'F' ? *p + ('a' - 'A') : *p);
	kind = strtoul(class, NULL, 16) >> 16;
	return (kind == 0x03 || kind == 0x12) && vendor_of(id);
}

const char *hardware_gpu_model(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(gpu_model); i++)
		if (!strcmp(id, gpu_model[i].id))
			return gpu_model[i].name;
	return NULL;
}

static void gpu_name(struct facts *f, const char *slot, const char *id, char *out, size_t size)
{
	const char *model = hardware_gpu_model(id);
	char text[1024];

	if (fact_read(f, text, sizeof(text), "proc/driver/nvidia/gpus/%s/information", slot) > 0 &&
		text_value(text, "Model", ':', out, size) && *out)
		return;
	if (model)
		snprintf(out, size, "%s", model);
	else
		snprintf(out, size, "%s %s", vendor_of(id)->name, id);
}

static void count_gpu(struct facts *f, struct device_gpus *g, const char *slot, const char *id)
{
	unsigned i = 0;

	g->nr++;
	while (i < g->nr_kinds && strcmp(g->kind[i].id, id))
		i++;
	if (i == GPU_KINDS_MAX)
		return;
	if (i == g->nr_kinds) {
		g->nr_kinds++;
		snprintf(g->kind[i].id, sizeof(g->kind[i].id), "%s", id);
		gpu_name(f, slot, id, g->kind[i].name, sizeof(g->kind[i].name));
	}
	g->kind[i].nr++;
}

/* "4 x NVIDIA A100-SXM4-40GB" */
static void say_gpus(struct facts *f)
{
	struct suspects suspects;
	struct device_gpus gpus = {0};
	struct fact_names names;
	struct device_list list;
	char id[10];

	find_suspects(f, &suspects);
	if (!suspects.all && !suspects.nr)
		return;
	names_list(f, &names, PCI, may_be_gpu, &suspects);
	for (unsigned i = 0; i < names.nr; i++)
		if (is_gpu(f, names.name[i], id))
			count_gpu(f, &gpus, names.name[i], id);
	if (!gpus.nr)
		return;
	list_init(&list);
	for (unsigned i = 0; i < gpus.nr_kinds; i++) {
		struct buf *out = list_next(&list);

		if (gpus.kind[i].nr > 1)
			buf_addf(out, "%u x ", gpus.kind[i].nr);
		buf_adds(out, gpus.kind[i].name);
	}
	fact_number(f, "gpus", gpus.nr);
	list_say(f, &list, 0, "gpu_models");
}

/* Paths of multipath NVMe ("nvme0c1n1") are the same disk again. */
static bool is_disk(void *arg, const char *name)
{
	if (str_starts(name, "nvme") && strchr(name + 4, 'c'))
		return false;
	if (str_starts(name, "sr") || str_starts(name, "fd"))
		return false;
	return is_hardware(arg, name);
}

/* "nvme0n1 1.8 TiB SSD SAMSUNG MZQL21T9HCJR" */
static void say_disks(struct facts *f)
{
	struct below below = {f, "sys/block", "/virtual/block/"};
	struct fact_names names;
	struct device_list list;

	list_init(&list);
	names_list(f, &names, below.folder, is_disk, &below);
	for (unsigned i = 0; i < MIN(names.nr, DISKS_MAX); i++) {
		char size[UNITS_SIZE], model[128];
		struct buf *out = list_next(&list);
		int64_t sectors, rotates;

		buf_adds(out, names.name[i]);
		if (fact_read_number(f, &sectors, "sys/block/%s/size", names.name[i]))
			buf_addf(out, " %s", format_bytes(size, (double)sectors * 512));
		/* A disk without a model is a hypervisor's, whose word on rotation means nothing. */
		if (fact_read(f, model, sizeof(model), "sys/block/%s/device/model", names.name[i]) <= 0)
			continue;
		if (fact_read_number(f, &rotates, "sys/block/%s/queue/rotational", names.name[i]))
			buf_adds(out, rotates ? " HDD" : " SSD");
		buf_addf(out, " %s", model);
	}
	list_say(f, &list, names.nr - MIN(names.nr, DISKS_MAX) + names.more, "disks");
}

void hardware_devices(struct facts *f)
{
	say_network(f);
	say_interconnect(f);
	say_gpus(f);
	say_disks(f);
}
