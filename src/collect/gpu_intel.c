/* Intel GPUs of the drivers i915 and xe: clocks, power and memory from sysfs and hwmon, processes by fdinfo.
 *
 * No file has how busy the device is. i915 counts it as events of a PMU of its own, per engine and in
 * nanoseconds; where counters of the whole machine are allowed, the busiest of its engines in the time
 * between two rounds is the device's use, as the tools of the maker show it. Otherwise it is not known: the
 * sum over the job's clients would be a lower bound that looks like the whole.
 *
 * A GPU on the processor's die has no memory of its own, and its energy is in the package's. */
#include "collect/gpu_drm.h"

#include "base/str.h"
#include "node/hardware.h"
#include "read/value.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct gpu_file intel_file[] = {
	{GPU_CLOCK_GRAPHICS,     FILE_NUMBER, "gt/gt0/rps_act_freq_mhz", NULL, 0, 0, 0},
	{GPU_CLOCK_GRAPHICS,     FILE_NUMBER, "gt_act_freq_mhz", NULL, 0, 0, 0},
	{GPU_CLOCK_GRAPHICS,     FILE_NUMBER, "device/tile0/gt0/freq0/act_freq", NULL, 0, 0, 0},
	{GPU_CLOCK_GRAPHICS_MAX, FILE_NUMBER, "gt/gt0/rps_RP0_freq_mhz", NULL, 0, 0, FILE_CONSTANT},
	{GPU_CLOCK_GRAPHICS_MAX, FILE_NUMBER, "gt_RP0_freq_mhz", NULL, 0, 0, FILE_CONSTANT},
	{GPU_CLOCK_GRAPHICS_MAX, FILE_NUMBER, "device/tile0/gt0/freq0/rp0_freq", NULL, 0, 0, FILE_CONSTANT},
	{GPU_CLOCK_GRAPHICS_MAX, FILE_NUMBER, "gt_max_freq_mhz", NULL, 0, 0, FILE_CONSTANT},
	{GPU_MEMORY_TOTAL,       FILE_NUMBER, "lmem_total_bytes", NULL, 0, 0, FILE_CONSTANT},
	{GPU_MEMORY_TOTAL,       FILE_NUMBER, "device/tile0/physical_vram_size_bytes", NULL, 0, 0, FILE_CONSTANT},
	{GPU_MEMORY_USED,        FILE_NUMBER, "lmem_used_bytes", NULL, 0, 0, 0},
	{GPU_TEMPERATURE,        FILE_NUMBER, "hwmon/temp#_input", "pkg", 0, 0, 0},
	{GPU_TEMPERATURE,        FILE_NUMBER, "hwmon/temp1_input", NULL, 0, 0, 0},
	{GPU_TEMPERATURE_MEMORY, FILE_NUMBER, "hwmon/temp#_input", "vram", 0, 0, 0},
	{GPU_POWER,              FILE_NUMBER, "hwmon/power1_input", NULL, 1, 1000, 0},
	{GPU_POWER_LIMIT,        FILE_NUMBER, "hwmon/power1_max", NULL, 1, 1000, FILE_SLOW},
	{GPU_POWER_LIMIT,        FILE_NUMBER, "hwmon/power1_rated_max", NULL, 1, 1000, FILE_SLOW},
	{GPU_ENERGY,             FILE_NUMBER, "hwmon/energy1_input", NULL, 1, 1000, 0},
	{GPU_ENERGY,             FILE_NUMBER, "hwmon/energy2_input", NULL, 1, 1000, 0},
};
/* clang-format on */

#define ENGINES_MAX 16

struct intel_card {
	bool tried;
	int error; /* of the counters */
	unsigned nr;
	int counter[ENGINES_MAX];
	uint64_t busy_ns[ENGINES_MAX];
	int64_t read_ns;
};

struct intel {
	struct gpu_cards cards;
	struct intel_card card[GPU_DEVICES_MAX];
	struct drm_clients drm;
};

static void intel_describe(struct gpu_card *card, struct env *env)
{
	const char *known = hardware_gpu_model(card->id);

	(void)env;
	snprintf(card->device.model, sizeof(card->device.model), known ? "%s" : "Intel GPU %s",
		known ? known : card->id);
}

/* ---- the PMU of i915 ---- */

#define DEVICES "sys/bus/event_source/devices"

struct engines {
	struct intel_card *card;
	struct env *env;
	const char *pmu;
	struct perf_event_attr attr;
	int cpu;
};

/* "rcs0-busy": "config=0x0" */
static int add_engine(void *arg, const char *name)
{
	struct engines *e = arg;
	char path[160], text[64];
	size_t len = strlen(name);
	int handle;

	if (len < 6 || len > 24 || strcmp(name + len - 5, "-busy") != 0 || e->card->nr == ENGINES_MAX)
		return 0;
	snprintf(path, sizeof(path), DEVICES "/%s/events/%s", e->pmu, name);
	if (value_get_text(e->env, path, text, sizeof(text)) <= 0 || !str_starts(text, "config="))
		return 0;
	e->attr.config = strtoull(text + 7, NULL, 0);
	handle = env_counter_open(e->env, &e->attr, -1, e->cpu);
	if (handle < 0)
		e->card->error = handle;
	else
		e->card->counter[e->card->nr++] = handle;
	return handle < 0;
}

/* Of a card on the die, and of another. */
static void pmu_of(const struct gpu_card *card, struct env *env, char *out, size_t size)
{
	char path[96];

	snprintf(out, size, "i915_%s", card->pci);
	for (char *c = out; *c; c++)
		if (*c == ':')
			*c = '_';
	snprintf(path, sizeof(path), DEVICES "/%s/type", out);
	if (env_try(env, path) < 0)
		snprintf(out, size, "i915");
}

static void open_engines(struct intel_card *c, const struct gpu_card *card, struct env *env)
{
	char pmu[48], path[96], cpus[32];
	struct engines e = {.card = c, .env = env, .pmu = pmu, .attr = {.size = sizeof(e.attr)}};
	int64_t type;

	c->tried = true;
	pmu_of(card, env, pmu, sizeof(pmu));
	snprintf(path, sizeof(path), DEVICES "/%s/type", pmu);
	c->error = value_get(env, path, &type);
	if (c->error < 0)
		return;
	e.attr.type = (uint32_t)type;
	snprintf(path, sizeof(path), DEVICES "/%s/cpumask", pmu);
	if (value_get_text(env, path, cpus, sizeof(cpus)) > 0)
		e.cpu = (int)strtol(cpus, NULL, 10);
	snprintf(path, sizeof(path), DEVICES "/%s/events", pmu);
	env_list(env, path, add_engine, &e);
	if (!c->nr && !c->error)
		c->error = -ENOENT;
}

static void close_engines(struct intel_card *c, struct env *env)
{
	while (c->nr)
		env_close(env, c->counter[--c->nr]);
	*c = (struct intel_card){.tried = false};
}

static void read_engines(struct intel_card *c, struct env *env, struct gpu_device *device)
{
	int64_t now_ns = env_now(env, ENV_MONOTONIC), passed_ns = now_ns - c->read_ns, most = -1;

	for (unsigned i = 0; i < c->nr; i++) {
		struct env_count count;

		if (env_counter_read(env, c->counter[i], &count) < 0)
			continue;
		if (c->read_ns && passed_ns > 0 && count.value >= c->busy_ns[i])
			most = MAX(most,
				(int64_t)MIN((double)(count.value - c->busy_ns[i]) * 100 / (double)passed_ns,
					100.0));
		c->busy_ns[i] = count.value;
	}
	c->read_ns = now_ns;
	if (most >= 0)
		gpu_device_set(device, GPU_UTIL, most);
}

static struct gpu_why util_why(int error)
{
	if (is_refused(error))
		return (struct gpu_why){FORBIDDEN,
			"i915 shows how busy the GPU is only to users who may count events of the whole "
			"machine",
			"sudo sysctl kernel.perf_event_paranoid=0"};
	return (struct gpu_why){ABSENT,
		"this driver has no counter of how busy the GPU is; gpu_process.busy has what the job used",
		NULL};
}

/* ---- the maker ---- */

static int intel_probe(struct env *env, struct trouble *reterr_why)
{
	int r = gpu_cards_probe(env, "0x8086");

	if (r == -EACCES)
		*reterr_why = (struct trouble){"/sys/class/drm may not be read", NULL};
	else if (r < 0)
		*reterr_why = (struct trouble){"there is no Intel GPU with a driver", NULL};
	return r;
}

static int intel_open(void *state, struct env *env, struct trouble *reterr_why)
{
	static const char *const driver[] = {"i915", "xe", NULL};
	struct intel *s = state;
	int r;

	s->cards = (struct gpu_cards){.maker = "intel",
		.vendor = "0x8086",
		.file = intel_file,
		.nr_files = ARRAY_SIZE(intel_file),
		.describe = intel_describe};
	s->drm.cards = &s->cards;
	s->drm.driver = driver;
	r = gpu_cards_find(&s->cards, env);
	if (r <= 0)
		*reterr_why = (struct trouble){"there is no Intel GPU with a driver", NULL};
	return r < 0 ? r : r ? 0 : -ENOENT;
}

static void add_use(struct intel *s, struct env *env, struct gpu_reading *ret)
{
	for (unsigned i = 0; i < s->cards.nr; i++) {
		const struct gpu_card *card = &s->cards.card[i];
		struct intel_card *c = &s->card[i];

		if (card->at < 0) {
			close_engines(c, env);
			continue;
		}
		if (!c->tried && !card->asleep)
			open_engines(c, card, env);
		read_engines(c, env, &ret->device[card->at]);
		if (c->tried && c->error)
			ret->why[GPU_UTIL] = util_why(c->error);
	}
}

static void intel_read(
	void *state, struct env *env, const struct gpu_request *request, struct gpu_reading *ret)
{
	static const struct gpu_why no_memory = {
		ABSENT, "the driver does not report it, or the GPU has no memory of its own", NULL};
	struct intel *s = state;

	if (request->medium)
		gpu_cards_find(&s->cards, env);
	gpu_cards_read(&s->cards, env, request, ret);
	if (request->rows >> GPU_UTIL & 1)
		add_use(s, env, ret);
	if (ret->why[GPU_MEMORY_USED].availability == ABSENT)
		ret->why[GPU_MEMORY_USED] = no_memory;
	drm_clients_read(&s->drm, env, request, ret);
}

static void intel_close(void *state, struct env *env)
{
	struct intel *s = state;

	for (unsigned i = 0; i < s->cards.nr; i++)
		close_engines(&s->card[i], env);
	drm_clients_close(&s->drm, env);
	gpu_cards_close(&s->cards, env);
}

const struct gpu_maker gpu_maker_intel = {
	.name = "intel",
	.state_size = sizeof(struct intel),
	.probe = intel_probe,
	.open = intel_open,
	.read = intel_read,
	.close = intel_close,
};
