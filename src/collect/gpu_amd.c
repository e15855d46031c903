/* AMD GPUs by sysfs and hwmon: no library is needed for what the driver provides.
 *
 * Files of one number first; gpu_metrics, the firmware's binary table, for the energy, the reasons for
 * throttling, and whatever a chip has no file for; ROCm SMI only where the user names it (gpu_rocm.c says
 * why). Processes: DRM's fdinfo, and KFD for ROCm.
 *
 * Reading pcie_bw takes a second: the driver counts for that long. It has a thread of its own, and the values
 * are those of its last round. It gives packets, so bytes are an upper bound: packets x the largest payload.
 *
 * The share of the video engines is not recorded by device: they both encode and decode, and the driver does
 * not distinguish the two. */
#include "collect/gpu_amd.h"

#include "base/str.h"
#include "node/hardware.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define ENERGY_UNITS 65536 /* of gpu_metrics, a joule */
#define POWER_MAX_W 3000   /* no card uses more */

/* clang-format off */
static const struct gpu_file amd_file[] = {
	{GPU_UTIL,               FILE_NUMBER, "device/gpu_busy_percent", NULL, 0, 0, 0},
	{GPU_MEM_UTIL,           FILE_NUMBER, "device/mem_busy_percent", NULL, 0, 0, 0},
	{GPU_MEMORY_USED,        FILE_NUMBER, "device/mem_info_vram_used", NULL, 0, 0, 0},
	{GPU_MEMORY_TOTAL,       FILE_NUMBER, "device/mem_info_vram_total", NULL, 0, 0, FILE_CONSTANT},
	{GPU_BAR1_USED,          FILE_NUMBER, "device/mem_info_vis_vram_used", NULL, 0, 0, 0},
	{GPU_BAR1_TOTAL,         FILE_NUMBER, "device/mem_info_vis_vram_total", NULL, 0, 0, FILE_CONSTANT},
	{GPU_GTT_USED,           FILE_NUMBER, "device/mem_info_gtt_used", NULL, 0, 0, 0},
	{GPU_CLOCK_GRAPHICS,     FILE_NUMBER, "hwmon/freq#_input", "sclk", 1, 1000000, 0},
	{GPU_CLOCK_GRAPHICS,     FILE_LEVEL,  "device/pp_dpm_sclk", NULL, 0, 0, 0},
	{GPU_CLOCK_MEMORY,       FILE_NUMBER, "hwmon/freq#_input", "mclk", 1, 1000000, 0},
	{GPU_CLOCK_MEMORY,       FILE_LEVEL,  "device/pp_dpm_mclk", NULL, 0, 0, 0},
	{GPU_CLOCK_VIDEO,        FILE_LEVEL,  "device/pp_dpm_vclk", NULL, 0, 0, 0},
	{GPU_CLOCK_GRAPHICS_MAX, FILE_LEVELS, "device/pp_dpm_sclk", NULL, 0, 0, FILE_CONSTANT},
	{GPU_CLOCK_MEMORY_MAX,   FILE_LEVELS, "device/pp_dpm_mclk", NULL, 0, 0, FILE_CONSTANT},
	{GPU_TEMPERATURE,        FILE_NUMBER, "hwmon/temp#_input", "edge", 0, 0, 0},
	{GPU_TEMPERATURE,        FILE_NUMBER, "hwmon/temp#_input", "junction", 0, 0, 0},
	{GPU_TEMPERATURE,        FILE_NUMBER, "hwmon/temp1_input", NULL, 0, 0, 0},
	{GPU_TEMPERATURE_MEMORY, FILE_NUMBER, "hwmon/temp#_input", "mem", 0, 0, 0},
	{GPU_FAN,                FILE_NUMBER, "hwmon/pwm1", NULL, 100, 255, FILE_SLOW},
	{GPU_POWER,              FILE_NUMBER, "hwmon/power1_average", NULL, 1, 1000, 0},
	{GPU_POWER,              FILE_NUMBER, "hwmon/power1_input", NULL, 1, 1000, 0},
	{GPU_POWER_LIMIT,        FILE_NUMBER, "hwmon/power1_cap", NULL, 1, 1000, FILE_SLOW},
	{GPU_ENERGY,             FILE_NUMBER, "hwmon/energy1_input", NULL, 1, 1000, 0},
	{GPU_ECC_CORRECTED,      FILE_KEY,    "device/ras/umc_err_count", "ce", 0, 0, FILE_SLOW},
	{GPU_ECC_UNCORRECTED,    FILE_KEY,    "device/ras/umc_err_count", "ue", 0, 0, FILE_SLOW},
	{GPU_PCIE_REPLAYS,       FILE_NUMBER, "device/pcie_replay_count", NULL, 0, 0, FILE_SLOW},
};

/* What a field of gpu_metrics fills where no file does. */
static const struct {
	enum amd_field field;
	enum gpu_row row;
	int64_t mul;
} amd_field_row[] = {
	{AMD_GFX_ACTIVITY,       GPU_UTIL, 1},
	{AMD_UMC_ACTIVITY,       GPU_MEM_UTIL, 1},
	{AMD_TEMPERATURE,        GPU_TEMPERATURE, 1000},
	{AMD_TEMPERATURE_MEMORY, GPU_TEMPERATURE_MEMORY, 1000},
	{AMD_POWER,              GPU_POWER, 1000},
	{AMD_GFXCLK,             GPU_CLOCK_GRAPHICS, 1},
	{AMD_UCLK,               GPU_CLOCK_MEMORY, 1},
	{AMD_THROTTLE_COMMON,    GPU_THROTTLE_REASONS, 1},
	{AMD_THROTTLE,           GPU_THROTTLE_REASONS, 1},
};

/* Rows that this maker's drivers have no source for. */
static const struct {
	enum gpu_row row;
	const char *reason;
} amd_lacks[] = {
	{GPU_ENCODER,               "AMD's driver does not report what its video engines do"},
	{GPU_DECODER,               "AMD's driver does not report what its video engines do"},
	{GPU_MEMORY_RESERVED,       "AMD's driver does not report it"},
	{GPU_CLOCK_SM,              "AMD GPUs have one clock for graphics and compute: gpu.clock.graphics"},
	{GPU_CLOCK_SM_MAX,          "AMD GPUs have one clock for graphics and compute: gpu.clock.graphics_max"},
	{GPU_PSTATE,                "AMD GPUs have no such states"},
	{GPU_THROTTLED_SYNC,        "AMD's driver does not report it"},
	{GPU_THROTTLED_BOARD,       "AMD's driver does not report it"},
	{GPU_THROTTLED_RELIABILITY, "AMD's driver does not report it"},
	{GPU_THROTTLED_LOW_UTIL,    "AMD's driver does not report it"},
	{GPU_PROCESSES,             "there is no list of processes without ROCm's driver (/sys/class/kfd)"},
};
/* clang-format on */

#define BIT(row) (UINT64_C(1) << (row))
#define PCIE_ROWS (BIT(GPU_PCIE_TX) | BIT(GPU_PCIE_RX))
#define METRICS_ROWS                                                                              \
	(BIT(GPU_UTIL) | BIT(GPU_MEM_UTIL) | BIT(GPU_TEMPERATURE) | BIT(GPU_TEMPERATURE_MEMORY) | \
		BIT(GPU_POWER) | BIT(GPU_CLOCK_GRAPHICS) | BIT(GPU_CLOCK_MEMORY) |                \
		BIT(GPU_THROTTLE_REASONS) | BIT(GPU_ENERGY) | BIT(GPU_THROTTLED_POWER) |          \
		BIT(GPU_THROTTLED_THERMAL))

/* A card's share of what this file adds. */
struct amd_card {
	int metrics; /* handle */
	bool tried, counted;
	int64_t read_ns;
	uint64_t energy_raw, energy;	 /* as it was read, and what was used so far */
	uint64_t cycles, power, thermal; /* as they were read */
	int64_t throttled_power_ns, throttled_thermal_ns;
};

/* Input and results of the thread of pcie_bw, by number of the card. Allocated separately: a thread that is
 * blocked in the driver when the recording ends keeps it. */
struct amd_pcie {
	struct async_reader async;
	struct env *env;
	struct {
		char path[64]; /* empty: not asked */
		bool known;
		int error;
		int64_t tx, rx;
	} card[GPU_DEVICES_MAX];
};

struct amd {
	struct gpu_cards cards;
	struct amd_card card[GPU_DEVICES_MAX];
	struct drm_clients drm;
	struct kfd kfd;
	struct amd_pcie *pcie;
	struct rocm *rocm;
};

/* ---- devices ---- */

static void amd_describe(struct gpu_card *card, struct env *env)
{
	struct gpu_device *d = &card->device;
	char text[64];
	const char *known = hardware_gpu_model(card->id);
	size_t len;

	if (gpu_card_text(card, env, "device/product_name", d->model, sizeof(d->model)) <= 0)
		snprintf(d->model, sizeof(d->model), known ? "%s" : "AMD GPU %s", known ? known : card->id);
	/* A partitioned card is named so: its compute units are seen as several GPUs. */
	if (gpu_card_text(card, env, "device/current_compute_partition", text, sizeof(text)) > 0 &&
		strcmp(text, "SPX") != 0) {
		len = strlen(d->model);
		snprintf(d->model + len, sizeof(d->model) - len, " (%.8s)", text);
	}
	if (gpu_card_text(card, env, "device/unique_id", text, sizeof(text)) > 0)
		snprintf(d->uuid, sizeof(d->uuid), "GPU-%s", str_starts(text, "0x") ? text + 2 : text);
}

/* ---- gpu_metrics ---- */

static void amd_card_close(struct amd_card *a, struct env *env)
{
	if (a->tried)
		env_close(env, a->metrics);
	*a = (struct amd_card){.metrics = -1};
}

/* The counter of many chips is 32 bits wide, and a driver that was loaded anew begins at zero. */
static uint64_t grown(const struct amd_card *a, uint64_t raw, int64_t passed_ns)
{
	uint64_t most =
		(uint64_t)(MAX(passed_ns, 0) / NSEC_PER_MSEC + 100) * POWER_MAX_W * ENERGY_UNITS / 1000;
	uint64_t wrapped = raw + (UINT64_C(1) << 32) - a->energy_raw;

	if (raw >= a->energy_raw)
		return raw - a->energy_raw;
	if (a->energy_raw >> 32 == 0 && wrapped <= most)
		return wrapped;
	return raw <= most ? raw : 0;
}

static void put_energy(
	struct amd_card *a, const struct amd_metrics *m, int64_t now_ns, struct gpu_device *device)
{
	uint64_t raw = m->value[AMD_ENERGY];

	if (!(m->valid >> AMD_ENERGY & 1) || raw > UINT64_MAX >> 8)
		return;
	a->energy = a->counted ? a->energy + grown(a, raw, now_ns - a->read_ns) : raw;
	a->energy_raw = raw;
	if (!gpu_device_has(device, GPU_ENERGY))
		gpu_device_set(
			device, GPU_ENERGY, (int64_t)((unsigned __int128)a->energy * 1000 / ENERGY_UNITS));
}

/* Cycles become time by our clock: the share of those that passed since the last reading. */
static int64_t held_ns(uint64_t before, uint64_t after, uint64_t cycles, int64_t passed_ns)
{
	uint64_t held = after - before;

	return after < before || !cycles
		? 0
		: (int64_t)((double)passed_ns * (double)MIN(held, cycles) / (double)cycles);
}

static void put_throttling(
	struct amd_card *a, const struct amd_metrics *m, int64_t now_ns, struct gpu_device *device)
{
	uint32_t all = UINT32_C(1) << AMD_CYCLES | UINT32_C(1) << AMD_CYCLES_POWER |
		UINT32_C(1) << AMD_CYCLES_THERMAL;
	uint64_t cycles = m->value[AMD_CYCLES], power = m->value[AMD_CYCLES_POWER],
		 thermal = m->value[AMD_CYCLES_THERMAL];

	if ((m->valid & all) != all)
		return;
	if (a->counted && cycles > a->cycles) {
		a->throttled_power_ns += held_ns(a->power, power, cycles - a->cycles, now_ns - a->read_ns);
		a->throttled_thermal_ns +=
			held_ns(a->thermal, thermal, cycles - a->cycles, now_ns - a->read_ns);
	}
	a->cycles = cycles;
	a->power = power;
	a->thermal = thermal;
	gpu_device_set(device, GPU_THROTTLED_POWER, a->throttled_power_ns);
	gpu_device_set(device, GPU_THROTTLED_THERMAL, a->throttled_thermal_ns);
}

static int read_metrics(
	struct amd_card *a, const struct gpu_card *card, struct env *env, struct amd_metrics *ret)
{
	char path[64];
	uint8_t bytes[4096];
	ssize_t n;

	if (!a->tried) {
		snprintf(path, sizeof(path), "%s/device/gpu_metrics", card->dir);
		a->metrics = env_open(env, path);
		a->tried = true;
	}
	if (a->metrics < 0)
		return a->metrics;
	n = env_read(env, a->metrics, bytes, sizeof(bytes));
	return n < 0 ? (int)n : amd_metrics_parse(bytes, (size_t)n, ret);
}

static struct gpu_why metrics_why(int error)
{
	if (error == -EOPNOTSUPP)
		return (struct gpu_why){ABSENT, "this version of the file gpu_metrics is not known",
			"TACHO_ROCM=1 asks ROCm SMI"};
	if (error < 0)
		return gpu_why_of(error, true);
	return (struct gpu_why){ABSENT, "the firmware of this GPU does not report it", NULL};
}

static void add_metrics(struct amd_card *a, const struct gpu_card *card, struct env *env,
	const struct gpu_request *request, struct gpu_reading *ret)
{
	struct gpu_device *device = &ret->device[card->at];
	int64_t now_ns = env_now(env, ENV_MONOTONIC);
	struct amd_metrics m = {0};
	int r;

	if (!(request->rows & METRICS_ROWS & ~device->valid))
		return;
	r = read_metrics(a, card, env, &m);
	for (size_t i = 0; i < ARRAY_SIZE(amd_field_row); i++) {
		enum gpu_row row = amd_field_row[i].row;
		uint64_t value = m.value[amd_field_row[i].field];

		if (m.valid >> amd_field_row[i].field & 1 && !gpu_device_has(device, row) &&
			value <= INT64_MAX / 1000)
			gpu_device_set(device, row, (int64_t)value * amd_field_row[i].mul);
	}
	put_energy(a, &m, now_ns, device);
	put_throttling(a, &m, now_ns, device);
	if (r == 0) {
		a->counted = true;
		a->read_ns = now_ns;
	}
	for (int row = 0; row < NR_GPU_ROWS; row++)
		if (METRICS_ROWS >> row & 1 && !gpu_device_has(device, (enum gpu_row)row))
			ret->why[row] = metrics_why(r);
}

/* ---- pcie_bw ---- */

/* "received sent largest", in packets of the last second. */
static int parse_traffic(const char *text, const char *end, int64_t *ret_rx, int64_t *ret_tx)
{
	int64_t value[3];

	for (int i = 0; i < 3; i++) {
		while (text < end && *text == ' ')
			text++;
		if (!read_number(&text, end, &value[i]) || value[i] < 0 || value[i] > INT64_C(1) << 40)
			return -EBADMSG;
	}
	if (value[2] > 1 << 16)
		return -EBADMSG;
	*ret_rx = value[0] * value[2];
	*ret_tx = value[1] * value[2];
	return 0;
}

/* The env must not be used once the recording has ended: it may be freed then. */
static bool is_over(struct amd_pcie *p)
{
	bool over;

	async_reader_lock(&p->async);
	over = p->async.stop;
	async_reader_unlock(&p->async);
	return over;
}

static void pcie_work(void *arg)
{
	struct amd_pcie *p = arg;

	for (unsigned i = 0; i < GPU_DEVICES_MAX && !is_over(p); i++) {
		char path[64], text[128];
		int64_t rx = 0, tx = 0;
		ssize_t n;
		int handle, r;

		async_reader_lock(&p->async);
		memcpy(path, p->card[i].path, sizeof(path));
		async_reader_unlock(&p->async);
		if (!*path)
			continue;
		handle = env_open(p->env, path);
		n = handle < 0 ? handle : env_read(p->env, handle, text, sizeof(text));
		if (is_over(p))
			return;
		env_close(p->env, handle);
		r = n < 0 ? (int)n : parse_traffic(text, text + n, &rx, &tx);
		async_reader_lock(&p->async);
		p->card[i].known = r == 0;
		p->card[i].error = r;
		p->card[i].rx = rx;
		p->card[i].tx = tx;
		async_reader_unlock(&p->async);
	}
}

static struct amd_pcie *pcie_open(struct env *env)
{
	struct amd_pcie *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->env = env;
	if (async_reader_start(&p->async, env, pcie_work, p) < 0) {
		free(p);
		return NULL;
	}
	return p;
}

static struct amd_pcie *pcie_close(struct amd_pcie *p)
{
	if (p && async_reader_stop(&p->async))
		free(p);
	return NULL;
}

static void add_traffic(
	struct amd *a, struct env *env, const struct gpu_request *request, struct gpu_reading *ret)
{
	struct amd_pcie *p = a->pcie;

	if (!(request->rows & PCIE_ROWS))
		return;
	if (!p)
		p = a->pcie = pcie_open(env);
	if (!p)
		return;
	async_reader_lock(&p->async);
	for (unsigned i = 0; i < a->cards.nr; i++) {
		const struct gpu_card *card = &a->cards.card[i];

		p->card[i].path[0] = 0;
		if (card->at < 0 || card->asleep) {
			p->card[i].known = false;
			continue;
		}
		snprintf(p->card[i].path, sizeof(p->card[i].path), "%s/device/pcie_bw", card->dir);
	}
	async_reader_unlock(&p->async);
	if (request->medium)
		async_reader_ask(&p->async);
	async_reader_lock(&p->async);
	for (unsigned i = 0; i < a->cards.nr; i++) {
		int at = a->cards.card[i].at;

		if (at >= 0 && p->card[i].known) {
			gpu_device_set(&ret->device[at], GPU_PCIE_TX, p->card[i].tx);
			gpu_device_set(&ret->device[at], GPU_PCIE_RX, p->card[i].rx);
		} else if (at >= 0 && p->card[i].error) {
			ret->why[GPU_PCIE_TX] = ret->why[GPU_PCIE_RX] = gpu_why_of(p->card[i].error, true);
		}
	}
	async_reader_unlock(&p->async);
}

/* ---- the maker ---- */

static int amd_probe(struct env *env, struct trouble *reterr_why)
{
	int r = gpu_cards_probe(env, "0x1002");

	if (r == -EACCES)
		*reterr_why = (struct trouble){"/sys/class/drm may not be read", NULL};
	else if (r < 0)
		*reterr_why = (struct trouble){"there is no AMD GPU with a driver", NULL};
	return r;
}

static int amd_open(void *state, struct env *env, struct trouble *reterr_why)
{
	static const char *const driver[] = {"amdgpu", "radeon", NULL};
	struct amd *a = state;
	int r;

	a->cards = (struct gpu_cards){.maker = "amd",
		.vendor = "0x1002",
		.file = amd_file,
		.nr_files = ARRAY_SIZE(amd_file),
		.describe = amd_describe};
	for (int i = 0; i < GPU_DEVICES_MAX; i++)
		a->card[i].metrics = -1;
	a->drm.cards = &a->cards;
	a->drm.driver = driver;
	r = gpu_cards_find(&a->cards, env);
	if (r <= 0) {
		*reterr_why = (struct trouble){"there is no AMD GPU with a driver", NULL};
		return r < 0 ? r : -ENOENT;
	}
	kfd_open(&a->kfd, env, &a->cards);
	a->rocm = rocm_open(env);
	return 0;
}

static void amd_read(void *state, struct env *env, const struct gpu_request *request, struct gpu_reading *ret)
{
	struct amd *a = state;

	if (request->medium)
		gpu_cards_find(&a->cards, env);
	gpu_cards_read(&a->cards, env, request, ret);
	for (unsigned i = 0; i < a->cards.nr; i++) {
		const struct gpu_card *card = &a->cards.card[i];

		if (card->at < 0)
			amd_card_close(&a->card[i], env);
		else if (!card->asleep && !card->device.lost)
			add_metrics(&a->card[i], card, env, request, ret);
	}
	add_traffic(a, env, request, ret);
	for (size_t i = 0; i < ARRAY_SIZE(amd_lacks); i++)
		ret->why[amd_lacks[i].row] = (struct gpu_why){ABSENT, amd_lacks[i].reason, NULL};
	drm_clients_read(&a->drm, env, request, ret);
	kfd_read(&a->kfd, env, request, a->drm.looked, ret);
	if (a->rocm)
		rocm_read(a->rocm, request, ret);
}

static void amd_close(void *state, struct env *env)
{
	struct amd *a = state;

	a->pcie = pcie_close(a->pcie);
	a->rocm = rocm_close(a->rocm);
	for (unsigned i = 0; i < a->cards.nr; i++)
		amd_card_close(&a->card[i], env);
	kfd_close(&a->kfd, env);
	drm_clients_close(&a->drm, env);
	gpu_cards_close(&a->cards, env);
}

const struct gpu_maker gpu_maker_amd = {
	.name = "amd",
	.state_size = sizeof(struct amd),
	.probe = amd_probe,
	.open = amd_open,
	.read = amd_read,
	.close = amd_close,
};
