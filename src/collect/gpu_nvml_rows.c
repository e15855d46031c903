/* The values of an NVIDIA GPU: most rows are one call each, of one of a few shapes; the table says which. A
 * row that the device does not support is asked for again only from time to time.
 *
 * Memory: the newer call keeps what driver and firmware reserve apart, the older counts it as used. Power on
 * newer boards is a mean over a second, energy is counted by the board itself. PCIe throughput takes 20 ms of
 * waiting a direction: it is asked for every few seconds. */
#include "collect/gpu_nvml.h"

#include <string.h>

enum shape {
	WORD,	   /* (device, unsigned *) */
	QUAD,	   /* (device, unsigned long long *) */
	KIND_WORD, /* (device, int kind, unsigned *) */
	ECC,	   /* (device, int type, int counter, unsigned long long *) */
	CODEC,	   /* (device, unsigned *percent, unsigned *period_us) */
	VIOLATION, /* (device, int policy, struct nvml_violation *) */
};

#define FIELD_MEMORY_TEMPERATURE 82
#define PERCENT_MAX 100
#define FAN_MAX 1000 /* percent: it may exceed its nominal speed */
#define CELSIUS_MAX 200
#define CLOCK_MAX 100000   /* MHz */
#define POWER_MAX 20000000 /* mW */
#define PSTATE_MAX 15

/* clang-format off */
static const struct row {
	enum gpu_row row;
	enum shape shape;
	const char *name[2]; /* newest first */
	int kind;
	int64_t unit, max; /* of the value as it is given; 0: any */
	bool medium;
} rows[] = {
	{GPU_CLOCK_GRAPHICS,  KIND_WORD, {"nvmlDeviceGetClockInfo"}, 0, 1, CLOCK_MAX, false},
	{GPU_CLOCK_SM,        KIND_WORD, {"nvmlDeviceGetClockInfo"}, 1, 1, CLOCK_MAX, false},
	{GPU_CLOCK_MEMORY,    KIND_WORD, {"nvmlDeviceGetClockInfo"}, 2, 1, CLOCK_MAX, false},
	{GPU_CLOCK_VIDEO,     KIND_WORD, {"nvmlDeviceGetClockInfo"}, 3, 1, CLOCK_MAX, true},
	{GPU_CLOCK_GRAPHICS_MAX, KIND_WORD, {"nvmlDeviceGetMaxClockInfo"}, 0, 1, CLOCK_MAX, true},
	{GPU_CLOCK_SM_MAX,    KIND_WORD, {"nvmlDeviceGetMaxClockInfo"}, 1, 1, CLOCK_MAX, true},
	{GPU_CLOCK_MEMORY_MAX, KIND_WORD, {"nvmlDeviceGetMaxClockInfo"}, 2, 1, CLOCK_MAX, true},
	{GPU_TEMPERATURE,     KIND_WORD, {"nvmlDeviceGetTemperature"}, 0, 1000, CELSIUS_MAX, false},
	{GPU_FAN,             WORD,      {"nvmlDeviceGetFanSpeed"}, 0, 1, FAN_MAX, true},
	{GPU_POWER,           WORD,      {"nvmlDeviceGetPowerUsage"}, 0, 1, POWER_MAX, false},
	{GPU_POWER_LIMIT,     WORD,      {"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"}, 0, 1, POWER_MAX, true},
	{GPU_ENERGY,          QUAD,      {"nvmlDeviceGetTotalEnergyConsumption"}, 0, 1, 0, false},
	{GPU_PSTATE,          WORD,      {"nvmlDeviceGetPerformanceState"}, 0, 1, PSTATE_MAX, false},
	{GPU_THROTTLE_REASONS, QUAD,     {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}, 0, 1, 0, false},
	{GPU_THROTTLED_POWER, VIOLATION, {"nvmlDeviceGetViolationStatus"}, 0, 1, 0, true},
	{GPU_THROTTLED_THERMAL, VIOLATION, {"nvmlDeviceGetViolationStatus"}, 1, 1, 0, true},
	{GPU_THROTTLED_SYNC,  VIOLATION, {"nvmlDeviceGetViolationStatus"}, 2, 1, 0, true},
	{GPU_THROTTLED_BOARD, VIOLATION, {"nvmlDeviceGetViolationStatus"}, 3, 1, 0, true},
	{GPU_THROTTLED_LOW_UTIL, VIOLATION, {"nvmlDeviceGetViolationStatus"}, 4, 1, 0, true},
	{GPU_THROTTLED_RELIABILITY, VIOLATION, {"nvmlDeviceGetViolationStatus"}, 5, 1, 0, true},
	{GPU_ECC_CORRECTED,   ECC,       {"nvmlDeviceGetTotalEccErrors"}, 0, 1, 0, true},
	{GPU_ECC_UNCORRECTED, ECC,       {"nvmlDeviceGetTotalEccErrors"}, 1, 1, 0, true},
	{GPU_ENCODER,         CODEC,     {"nvmlDeviceGetEncoderUtilization"}, 0, 1, PERCENT_MAX, false},
	{GPU_DECODER,         CODEC,     {"nvmlDeviceGetDecoderUtilization"}, 0, 1, PERCENT_MAX, false},
	{GPU_PCIE_TX,         KIND_WORD, {"nvmlDeviceGetPcieThroughput"}, 0, 1000, 0, true},
	{GPU_PCIE_RX,         KIND_WORD, {"nvmlDeviceGetPcieThroughput"}, 1, 1000, 0, true},
	{GPU_PCIE_REPLAYS,    WORD,      {"nvmlDeviceGetPcieReplayCounter"}, 0, 1, 0, true},
};
/* clang-format on */

static const struct gpu_why no_mig_use = {ABSENT,
	"the driver measures no utilisation of a GPU that is cut into slices (MIG), nor of the slices", NULL};
static const struct gpu_why no_reserved = {
	ABSENT, "the driver's library counts what is reserved as used", "a newer driver"};

/* One device in one round. */
struct nvml_reading {
	struct nvml *n;
	struct nvml_gpu *gpu;
	const struct gpu_request *request;
	struct gpu_reading *ret;
	struct gpu_device *d;
};

void nvml_load_rows(struct nvml *n, struct env *env, void *library)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		void **call = &n->call.row[rows[i].row];

		for (size_t k = 0; k < ARRAY_SIZE(rows[i].name) && rows[i].name[k] && !*call; k++)
			*call = env_symbol(env, library, rows[i].name[k]);
	}
}

static bool wants(const struct nvml_reading *r, enum gpu_row row, bool medium)
{
	if (r->d->lost || !(r->request->rows >> row & 1) || (medium && !r->request->medium))
		return false;
	return r->request->medium || !(r->gpu->absent >> row & 1);
}

/* The value, or the reason why there is none. */
static void put(struct nvml_reading *r, enum gpu_row row, int error, uint64_t value)
{
	uint64_t bit = UINT64_C(1) << row;

	if (!(r->request->rows & bit))
		return;
	if (error == NVML_OK && value > INT64_MAX)
		error = NVML_NONSENSE;
	if (error == NVML_OK) {
		r->d->value[row] = (int64_t)value;
		r->d->valid |= bit;
		r->gpu->absent &= ~bit;
		return;
	}
	if (error == NVML_NOT_SUPPORTED)
		r->gpu->absent |= bit;
	r->d->lost = nvml_lost(error);
	if (!r->ret->why[row].reason)
		r->ret->why[row] = nvml_why(error);
}

static int ask(const struct nvml_reading *r, const struct row *row, uint64_t *ret)
{
	void *call = r->n->call.row[row->row];
	nvml_handle h = r->gpu->handle;
	struct nvml_violation violation = {0};
	unsigned long long quad = 0;
	unsigned word = 0, period;
	int error = NVML_NO_SYMBOL;

	if (!call)
		return error;
	switch (row->shape) {
	case WORD:
		error = ((int (*)(nvml_handle, unsigned *))call)(h, &word);
		break;
	case QUAD:
		error = ((int (*)(nvml_handle, unsigned long long *))call)(h, &quad);
		break;
	case KIND_WORD:
		error = ((int (*)(nvml_handle, int, unsigned *))call)(h, row->kind, &word);
		break;
	case ECC: /* 0: since the driver was loaded */
		error = ((int (*)(nvml_handle, int, int, unsigned long long *))call)(h, row->kind, 0, &quad);
		break;
	case CODEC:
		error = ((int (*)(nvml_handle, unsigned *, unsigned *))call)(h, &word, &period);
		break;
	case VIOLATION:
		error = ((int (*)(nvml_handle, int, struct nvml_violation *))call)(h, row->kind, &violation);
		quad = violation.violation_ns;
		break;
	}
	*ret = quad | word;
	return error;
}

static void read_one(struct nvml_reading *r, const struct row *row)
{
	uint64_t value = 0;
	int error = ask(r, row, &value);

	if (error == NVML_OK && row->max && value > (uint64_t)row->max)
		error = NVML_NONSENSE;
	put(r, row->row, error, value * (uint64_t)row->unit);
}

static void read_utilization(struct nvml_reading *r)
{
	struct nvml_utilization use = {0};
	int error = NVML_NO_SYMBOL;

	if (!wants(r, GPU_UTIL, false) && !wants(r, GPU_MEM_UTIL, false))
		return;
	if (r->gpu->is_mig) {
		r->ret->why[GPU_UTIL] = r->ret->why[GPU_MEM_UTIL] = no_mig_use;
		return;
	}
	if (r->n->call.utilization)
		error = r->n->call.utilization(r->gpu->handle, &use);
	put(r, GPU_UTIL, error == NVML_OK && use.gpu > PERCENT_MAX ? NVML_NONSENSE : error, use.gpu);
	put(r, GPU_MEM_UTIL, error == NVML_OK && use.memory > PERCENT_MAX ? NVML_NONSENSE : error,
		use.memory);
}

static int read_memory_v2(struct nvml_reading *r)
{
	struct nvml_memory_v2 m = {.version = sizeof(m) | 2 << 24};
	int error = r->n->call.memory_v2 ? r->n->call.memory_v2(r->gpu->handle, &m) : NVML_NO_SYMBOL;

	if (error != NVML_OK)
		return error;
	if (m.used > m.total || m.reserved > m.total)
		error = NVML_NONSENSE;
	put(r, GPU_MEMORY_USED, error, m.used);
	put(r, GPU_MEMORY_TOTAL, error, m.total);
	put(r, GPU_MEMORY_RESERVED, error, m.reserved);
	return NVML_OK;
}

static void read_memory(struct nvml_reading *r)
{
	struct nvml_memory m = {0};
	int error = NVML_NO_SYMBOL;

	if (!wants(r, GPU_MEMORY_USED, false) && !wants(r, GPU_MEMORY_TOTAL, false) &&
		!wants(r, GPU_MEMORY_RESERVED, true))
		return;
	error = read_memory_v2(r);
	if (error == NVML_OK)
		return;
	if (r->n->call.memory)
		error = r->n->call.memory(r->gpu->handle, &m);
	if (error == NVML_OK && m.used > m.total)
		error = NVML_NONSENSE;
	put(r, GPU_MEMORY_USED, error, m.used);
	put(r, GPU_MEMORY_TOTAL, error, m.total);
	if (!r->ret->why[GPU_MEMORY_RESERVED].reason)
		r->ret->why[GPU_MEMORY_RESERVED] = no_reserved;
}

static void read_bar1(struct nvml_reading *r)
{
	struct nvml_memory m = {0};
	int error = NVML_NO_SYMBOL;

	if (!wants(r, GPU_BAR1_USED, true) && !wants(r, GPU_BAR1_TOTAL, true))
		return;
	if (r->n->call.bar1)
		error = r->n->call.bar1(r->gpu->handle, &m);
	if (error == NVML_OK && m.used > m.total)
		error = NVML_NONSENSE;
	put(r, GPU_BAR1_USED, error, m.used);
	put(r, GPU_BAR1_TOTAL, error, m.total);
}

/* The old call is missing in the newest libraries. */
static void read_temperature_v(struct nvml_reading *r)
{
	struct nvml_temperature t = {.version = sizeof(t) | 1 << 24};
	int error = r->n->call.temperature_v ? r->n->call.temperature_v(r->gpu->handle, &t) : NVML_NO_SYMBOL;

	if (error == NVML_OK && (t.celsius < 0 || t.celsius > CELSIUS_MAX))
		error = NVML_NONSENSE;
	put(r, GPU_TEMPERATURE, error, (uint64_t)t.celsius * 1000);
}

static void read_temperature_memory(struct nvml_reading *r)
{
	struct nvml_field field = {.id = FIELD_MEMORY_TEMPERATURE};
	int error = NVML_NO_SYMBOL;

	if (!wants(r, GPU_TEMPERATURE_MEMORY, false))
		return;
	if (r->n->call.fields)
		error = r->n->call.fields(r->gpu->handle, 1, &field);
	if (error == NVML_OK)
		error = field.error;
	if (error == NVML_OK && field.value.word > CELSIUS_MAX)
		error = NVML_NONSENSE;
	if (error == NVML_INVALID_ARGUMENT) /* a driver from before the field */
		error = NVML_NOT_SUPPORTED;
	put(r, GPU_TEMPERATURE_MEMORY, error, (uint64_t)field.value.word * 1000);
}

void nvml_read_rows(struct nvml *n, struct nvml_gpu *gpu, const struct gpu_request *request,
	struct gpu_reading *ret, struct gpu_device *d)
{
	struct nvml_reading r = {n, gpu, request, ret, d};

	read_memory(&r);
	read_bar1(&r);
	if (gpu->parent >= 0) {
		if (!ret->why[GPU_UTIL].reason)
			ret->why[GPU_UTIL] = ret->why[GPU_MEM_UTIL] = no_mig_use;
		return;
	}
	read_utilization(&r);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!wants(&r, rows[i].row, rows[i].medium))
			continue;
		if (rows[i].row == GPU_TEMPERATURE && !n->call.row[GPU_TEMPERATURE])
			read_temperature_v(&r);
		else
			read_one(&r, &rows[i]);
	}
	read_temperature_memory(&r);
}
