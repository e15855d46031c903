/* Temperatures and fans: chips of sys/class/hwmon, and thermal zones that no chip shows.
 *
 * The kernel shows many thermal zones as chips too (same name, '-' written '_'), and the zone of an Intel
 * package is the package's sensor in coretemp: a zone is read only when it is neither. A sensor is known
 * by its device and channel and called "coretemp/Package id 0"; where two chips have the same labels the
 * second is "coretemp-2/Core 0".
 *
 * A machine with hundreds of cores has as many sensors: all others come first, cores take what room is left.
 * Sensors behind slow buses take milliseconds, so they are read in turn. drivetemp is left out, because
 * asking a disk may keep it from spinning down, and so are accelerators. */
#include "collect/hwmon.h"
#include "collect/round_robin.h"

#include "base/str.h"
#include "collect/collector.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

enum { ROW_TEMPERATURE, ROW_HIGH, ROW_CRITICAL, ROW_FAN };

/* clang-format off */
static const struct metric sensor_metric[] = {
	{"sensor.temperature", "Temperature at a sensor.", {0}, SCALE_MILLI, KIND_GAUGE, FOLD_MAX, UNIT_CELSIUS, "temperature", TIER_MEDIUM, false},
	{"sensor.high",        "Temperature that the chip calls high: Intel's begin to cool harder there.", {.key = "_max"}, SCALE_MILLI, KIND_CONSTANT, FOLD_MAX, UNIT_CELSIUS, NULL, TIER_MEDIUM, false},
	{"sensor.critical",    "Temperature at which the chip protects itself.", {.key = "_crit"}, SCALE_MILLI, KIND_CONSTANT, FOLD_MAX, UNIT_CELSIUS, NULL, TIER_MEDIUM, false},
	{"sensor.fan",         "Speed of a fan, in revolutions a minute.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_MAX, UNIT_COUNT, "fans", TIER_MEDIUM, true},
};
/* clang-format on */

#define SENSORS_MAX 128
#define CHANNELS_MAX 600
#define HWMON "sys/class/hwmon"
#define THERMAL "sys/class/thermal"

static const struct hwmon_kind kinds[] = {{"temp", "_input"}, {"fan", "_input"}};

struct sensors {
	uint32_t nr;
	struct sensor {
		char key[88], name[96];
		int handle;
		uint32_t row;
		uint8_t metric;
		bool gone;
	} sensor[SENSORS_MAX];
	struct round_robin turns;
	uint64_t listing; /* of the folders, when they were last searched */
	bool search, full;
};

struct sensor_finding {
	struct sensors *s;
	struct collect_context *ctx;
	bool cores;	/* the turn of single cores */
	bool any_cores; /* there are single cores */
	size_t nr_chips;
	char chip[64][HWMON_NAME_SIZE]; /* names of all chips */
};

static bool is_known(const struct sensors *s, const char *key)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (!strcmp(s->sensor[i].key, key))
			return true;
	return false;
}

/* "chip/label", or "chip-2/label" when there is one of that name. */
static void name_sensor(const struct sensors *s, const char *chip, const char *label, char *out, size_t size)
{
	bool taken = true;

	snprintf(out, size, "%s/%s", chip, label);
	for (unsigned same = 2; taken && same <= SENSORS_MAX + 1; same++) {
		taken = false;
		for (uint32_t i = 0; i < s->nr && !taken; i++)
			taken = !strcmp(s->sensor[i].name, out);
		if (taken)
			snprintf(out, size, "%s-%u/%s", chip, same, label);
	}
}

/* The sensor is opened and joined; NULL when it cannot be. */
static struct sensor *add_sensor(struct sensor_finding *f, const char *path, const char *key,
	const char *chip, const char *label, uint8_t metric)
{
	struct sensors *s = f->s;
	struct sensor *new = &s->sensor[s->nr];
	int row;

	if (is_known(s, key))
		return NULL;
	if (s->nr == SENSORS_MAX) {
		s->full = true;
		return NULL;
	}
	*new = (struct sensor){.metric = metric, .handle = env_open(f->ctx->env, path)};
	if (new->handle < 0)
		return NULL;
	snprintf(new->key, sizeof(new->key), "%s", key);
	name_sensor(s, chip, label, new->name, sizeof(new->name));
	row = f->ctx->join(f->ctx, new->name);
	if (row < 0) {
		env_close(f->ctx->env, new->handle);
		s->full = true;
		return NULL;
	}
	new->row = (uint32_t)row;
	s->nr++;
	return new;
}

/* What does not change is read once. */
static void read_limits(
	struct sensor_finding *f, const struct hwmon_chip *chip, unsigned number, uint32_t row)
{
	for (int i = ROW_HIGH; i <= ROW_CRITICAL; i++) {
		char path[HWMON_PATH_SIZE];
		int64_t value;

		if (f->ctx->map.col[i] < 0)
			continue;
		snprintf(path, sizeof(path), "%s/temp%u%s", chip->dir, number, sensor_metric[i].at.key);
		if (value_get(f->ctx->env, path, &value) == 0)
			table_set(f->ctx->table, row, (uint32_t)f->ctx->map.col[i], value);
	}
}

static void add_channel(
	struct sensor_finding *f, const struct hwmon_chip *chip, const struct hwmon_channel *c)
{
	const char *prefix = kinds[c->kind].prefix;
	char path[HWMON_PATH_SIZE], key[88], label[48];
	bool is_core;
	struct sensor *new;

	snprintf(key, sizeof(key), "%.36s/%.36s/%s%u", chip->name, chip->device, prefix, c->number);
	hwmon_label(f->ctx->env, chip, prefix, c->number, label, sizeof(label));
	is_core = str_starts(label, "Core ");
	f->any_cores |= is_core;
	if (is_core != f->cores)
		return;
	snprintf(path, sizeof(path), "%s/%s%u_input", chip->dir, prefix, c->number);
	new = add_sensor(f, path, key, chip->name, label, c->kind ? ROW_FAN : ROW_TEMPERATURE);
	if (new &&new->metric == ROW_TEMPERATURE)
		read_limits(f, chip, c->number, new->row);
}

static bool is_wanted(const struct sensor_finding *f, const struct hwmon_channel *c)
{
	if (c->kind)
		return f->ctx->map.col[ROW_FAN] >= 0;
	return f->ctx->map.col[ROW_TEMPERATURE] >= 0 || f->ctx->map.col[ROW_HIGH] >= 0 ||
		f->ctx->map.col[ROW_CRITICAL] >= 0;
}

static int add_chip(void *arg, struct hwmon_chip *chip)
{
	struct hwmon_channel channel[CHANNELS_MAX];
	struct sensor_finding *f = arg;
	size_t nr;

	if (f->nr_chips < ARRAY_SIZE(f->chip) && !f->cores)
		memcpy(f->chip[f->nr_chips++], chip->name, sizeof(chip->name));
	if (hwmon_is_gpu(chip) || !strcmp(chip->name, "drivetemp"))
		return 0;
	nr = hwmon_channels(f->ctx->env, chip, kinds, ARRAY_SIZE(kinds), channel, CHANNELS_MAX);
	for (size_t i = 0; i < nr; i++)
		if (is_wanted(f, &channel[i]))
			add_channel(f, chip, &channel[i]);
	return 0;
}

static bool is_shown_by_chip(const struct sensor_finding *f, const char *type)
{
	const char *chip = !strcmp(type, "x86_pkg_temp") ? "coretemp" : type;
	char name[HWMON_NAME_SIZE];

	snprintf(name, sizeof(name), "%s", chip);
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
	for (size_t i = 0; i < f->nr_chips; i++)
		if (!strcmp(f->chip[i], name))
			return true;
	return false;
}

static int add_zone(void *arg, const char *name)
{
	struct sensor_finding *f = arg;
	char path[HWMON_PATH_SIZE], key[88], type[HWMON_NAME_SIZE];

	if (!str_starts(name, "thermal_zone") || strlen(name) > 24)
		return 0;
	snprintf(path, sizeof(path), THERMAL "/%s/type", name);
	if (value_get_text(f->ctx->env, path, type, sizeof(type)) <= 0 || is_shown_by_chip(f, type))
		return 0;
	snprintf(key, sizeof(key), "%s/%s", name, type);
	snprintf(path, sizeof(path), THERMAL "/%s/temp", name);
	add_sensor(f, path, key, "thermal", type, ROW_TEMPERATURE);
	return 0;
}

/* Hashes are added, as the order of a folder says nothing. */
static int add_to_listing(void *arg, const char *name)
{
	*(uint64_t *)arg += hash_bytes(name, strlen(name));
	return 0;
}

static uint64_t list_all(struct env *env)
{
	uint64_t listing = 0;

	env_list(env, HWMON, add_to_listing, &listing);
	env_list(env, THERMAL, add_to_listing, &listing);
	return listing;
}

static void find(struct sensors *s, struct collect_context *ctx)
{
	struct sensor_finding f = {.s = s, .ctx = ctx};

	s->search = false;
	hwmon_each(ctx->env, add_chip, &f);
	if (ctx->map.col[ROW_TEMPERATURE] >= 0)
		env_list(ctx->env, THERMAL, add_zone, &f);
	f.cores = true;
	if (f.any_cores)
		hwmon_each(ctx->env, add_chip, &f);
}

static void explain(const struct sensors *s, struct collect_context *ctx)
{
	static const char *const absent[] = {
		[ROW_TEMPERATURE] = "this machine shows no temperature sensor",
		[ROW_HIGH] = "no sensor here says what it calls high",
		[ROW_CRITICAL] = "no sensor here says what it calls critical",
		[ROW_FAN] = "this machine shows no fan",
	};
	bool has[ARRAY_SIZE(absent)] = {false};

	for (uint32_t i = 0; i < s->nr; i++) {
		has[s->sensor[i].metric] = true;
		for (int k = ROW_HIGH; k <= ROW_CRITICAL; k++)
			has[k] |= ctx->map.col[k] >= 0 &&
				ctx->table->valid[s->sensor[i].row] >> ctx->map.col[k] & 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		if (!has[i])
			ctx->why(ctx, i, ABSENT, absent[i], NULL);
	if (s->full)
		ctx->why(ctx, ROW_TEMPERATURE, FAILED,
			"there are more sensors than are recorded: those of single cores are left out", NULL);
}

static int sensor_probe(struct env *env, struct trouble *reterr_why)
{
	static const struct trouble absent = {"this machine shows no sensor", NULL};
	int r = probe_folder(env, HWMON, absent, reterr_why);

	return r == -ENOENT ? probe_folder(env, THERMAL, absent, reterr_why) : r;
}

static int sensor_open(void *state, struct collect_context *ctx)
{
	struct sensors *s = state;

	s->listing = list_all(ctx->env);
	find(s, ctx);
	explain(s, ctx);
	return 0;
}

/* A sensor of a sleeping device gives an error, and its temperature again when it wakes. */
static void read_sensor(struct sensors *s, struct collect_context *ctx, struct sensor *sensor)
{
	int64_t value = 0;
	int r;

	table_touch(ctx->table, sensor->row);
	if (ctx->map.col[sensor->metric] < 0)
		return;
	r = value_read(ctx->env, sensor->handle, &value);
	collect_put(ctx, sensor->row, (size_t)sensor->metric, r == 0, value);
	sensor->gone = r == -ENODEV;
	s->search |= sensor->gone;
}

static void drop_gone(struct sensors *s, struct collect_context *ctx)
{
	for (uint32_t i = s->nr; i--;) {
		if (!s->sensor[i].gone)
			continue;
		env_close(ctx->env, s->sensor[i].handle);
		ctx->leave(ctx, s->sensor[i].row);
		s->sensor[i] = s->sensor[--s->nr];
	}
}

static int sensor_sample(void *state, struct collect_context *ctx)
{
	uint64_t listing = list_all(ctx->env);
	struct sensors *s = state;
	uint32_t i;

	if (s->search || listing != s->listing)
		find(s, ctx);
	s->listing = listing;
	round_robin_begin(&s->turns, ctx->env, s->nr);
	while (round_robin_turn(&s->turns, ctx->env, s->nr, &i))
		read_sensor(s, ctx, &s->sensor[i]);
	drop_gone(s, ctx);
	return 0;
}

static void sensor_close(void *state, struct collect_context *ctx)
{
	struct sensors *s = state;

	while (s->nr)
		env_close(ctx->env, s->sensor[--s->nr].handle);
}

const struct collector collector_sensor = {
	.name = "sensor",
	.summary = "temperatures and fans of the node, by sensor",
	.domain = DOMAIN_SENSOR,
	.metric = sensor_metric,
	.nr_metrics = ARRAY_SIZE(sensor_metric),
	.state_size = sizeof(struct sensors),
	.tier = TIER_MEDIUM,
	.max_rows = SENSORS_MAX,
	.probe = sensor_probe,
	.open = sensor_open,
	.sample = sensor_sample,
	.close = sensor_close,
};
