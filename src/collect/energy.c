/* Energy and power: every meter the machine has, and which of them make up the node's energy.
 *
 * Meters overlap: a package contains its cores, psys contains the package, an ACPI meter or a Cray node's
 * counter contains all of it. All are recorded, and those that must not be added to the others stand `apart`
 * with the reason, so that the node's energy is the sum of the others. The rule is a ladder (enum rung): the
 * first rung with a readable meter counts, with all its meters, and no other rung does.
 *
 *   1. a counter of the whole node: Cray's pm_counters, POWER's "System"
 *   2. RAPL: packages and their memory (dram is nested below its package, but not part of it)
 *   3. the sockets of the driver amd_energy
 *   4. RAPL's psys
 *   5. a power meter of the whole node: ACPI's, or a module's
 *   6. power of parts that do not overlap
 *   7. batteries, while they are discharged
 *
 * Counters come before meters of power, although a power meter may contain more: a counter loses nothing
 * between two readings, power is a sample every few seconds. psys comes late because the board maker decides
 * what it contains: the same chip reports the whole laptop on one board and nothing sensible on another.
 *
 * Counters are narrow (RAPL's pass their range every few minutes under load) and start anew after a suspend.
 * The cell is made to only grow: a fall is a wrap when the range is known, the machine did not sleep, and the
 * energy that the wrap would mean could have been used; anything else is a start from zero, and the present
 * value has been used since then, again only if that is possible. What was used between the last reading and
 * such a start is lost, never estimated. More than one wrap between two readings looks like one; with a
 * reading at every tick this does not happen. */
#include "collect/energy.h"

#include "read/value.h"

#include <stdio.h>
#include <string.h>

enum { ROW_USED, ROW_POWER, ROW_BATTERY };

/* clang-format off */
static const struct metric energy_metric[] = {
	{"energy.used",    "Energy used so far by what a meter measures; the node's is the sum of all meters that do not stand apart.", {0}, SCALE_MICRO, KIND_COUNTER, FOLD_SUM, UNIT_JOULES, NULL, TIER_TICK, false},
	{"energy.power",   "Power as a sensor reports it, where one does; a battery's while it is discharged.", {0}, SCALE_MICRO, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, NULL, TIER_MEDIUM, false},
	{"energy.battery", "Energy left in a battery.", {0}, SCALE_MICRO, KIND_GAUGE, FOLD_SUM, UNIT_JOULES, NULL, TIER_MEDIUM, false},
};

/* Why a meter stands apart when another rung was chosen. */
static const char *const instead[] = {
	[RUNG_NODE]       = "contained in the meter of the whole node",
	[RUNG_RAPL]       = "RAPL's packages and memory are counted instead",
	[RUNG_SOCKETS]    = "the sockets of amd_energy are counted instead",
	[RUNG_PSYS]       = "contained in psys",
	[RUNG_NODE_POWER] = "contained in the power meter of the whole node",
	[RUNG_PARTS]      = "other power sensors are counted instead",
	[RUNG_BATTERY]    = "the batteries are counted instead",
};
/* clang-format on */

#define POWER_MAX_W 10000	   /* no meter of one node shows more */
#define SLACK_UJ INT64_C(10000000) /* by how much a counter may be late */
#define FIND_ROUNDS 12

struct energy_meter *energy_meter(struct energy *e, const char *key)
{
	struct energy_meter *m = &e->meter[e->nr];

	for (uint32_t i = 0; i < e->nr; i++)
		if (!strcmp(e->meter[i].key, key))
			return NULL;
	if (e->nr == METERS_MAX) {
		e->full = true;
		return NULL;
	}
	*m = (struct energy_meter){.row = -1, .used_unit = 1, .power_unit = 1};
	for (int i = 0; i < NR_METER_FILES; i++)
		m->file[i] = -1;
	snprintf(m->key, sizeof(m->key), "%s", key);
	e->nr++;
	return m;
}

bool energy_has_name(const struct energy *e, const struct energy_meter *but, const char *name)
{
	for (uint32_t i = 0; i < e->nr; i++)
		if (&e->meter[i] != but && !strcmp(e->meter[i].name, name))
			return true;
	return false;
}

int energy_open_file(
	struct energy *e, struct env *env, struct energy_meter *m, enum meter_file which, const char *path)
{
	bool *denied = which == METER_USED ? &e->denied_used : &e->denied_power;
	int handle = env_open(env, path);

	if (is_refused(handle))
		*denied = true;
	if (handle >= 0)
		m->file[which] = handle;
	return MIN(handle, 0);
}

static void close_files(struct energy_meter *m, struct env *env)
{
	for (int i = 0; i < NR_METER_FILES; i++) {
		env_close(env, m->file[i]);
		m->file[i] = -1;
	}
}

void energy_keep(struct energy *e, struct env *env, struct energy_meter *m)
{
	size_t len = MIN(strlen(m->name), sizeof(m->name) - 12);

	if (m->file[METER_USED] < 0 && m->file[METER_POWER] < 0 && m->file[METER_LEVEL] < 0) {
		close_files(m, env);
		e->nr--;
		return;
	}
	for (unsigned same = 2; energy_has_name(e, m, m->name); same++)
		snprintf(m->name + len, sizeof(m->name) - len, "-%u", same);
}

/* What has been used since the last reading. */
static int64_t growth(const struct energy_meter *m, int64_t raw, int64_t now_ns, int64_t slept_ns)
{
	int64_t most = (now_ns - m->read_ns) / NSEC_PER_USEC * POWER_MAX_W + SLACK_UJ;
	int64_t wrapped = raw + (m->range - m->raw);

	if (raw >= m->raw)
		return raw - m->raw;
	if (m->raw <= m->range && slept_ns - m->slept_ns < NSEC_PER_SEC && wrapped <= most)
		return wrapped;
	return raw <= most ? raw : 0;
}

static int read_used(struct energy_meter *m, struct env *env, int64_t now_ns)
{
	int64_t slept_ns = env_now(env, ENV_BOOTTIME) - now_ns, raw;
	int r = value_read(env, m->file[METER_USED], &raw);

	if (r < 0)
		return r;
	/* A node needs thousands of years to use so much. */
	if (raw < 0 || raw > INT64_MAX / 4 / m->used_unit)
		return -EBADMSG;
	raw *= m->used_unit;
	m->total = m->counted ? m->total + growth(m, raw, now_ns, slept_ns) : raw;
	m->counted = true;
	m->raw = raw;
	m->read_ns = now_ns;
	m->slept_ns = slept_ns;
	return 0;
}

/* a x b / 1000000 of what a battery shows, in range whatever it shows. */
static int read_product(const struct energy_meter *m, struct env *env, enum meter_file which, int64_t *ret)
{
	int64_t volts;
	int r = value_read(env, m->file[METER_VOLTAGE], &volts);

	if (r < 0)
		return r;
	r = value_read(env, m->file[which], ret);
	if (r < 0)
		return r;
	if (*ret > INT64_C(1) << 40 || *ret < -(INT64_C(1) << 40) || volts < 0 || volts > INT64_C(1) << 30)
		return -EBADMSG;
	*ret = (int64_t)((__int128)*ret * volts / 1000000);
	return 0;
}

/* Some drivers give what flows out as negative. */
static int read_power(const struct energy_meter *m, struct env *env, int64_t *ret)
{
	char status[16];
	int r = 0;

	if (m->file[METER_STATUS] >= 0)
		r = value_read_text(env, m->file[METER_STATUS], status, sizeof(status));
	if (r < 0)
		return r;
	if (m->file[METER_STATUS] >= 0 && strcmp(status, "Discharging"))
		return -ENODATA;
	r = m->is_current ? read_product(m, env, METER_POWER, ret)
			  : value_read(env, m->file[METER_POWER], ret);
	if (r < 0)
		return r;
	if (*ret > INT64_C(1) << 42 || *ret < -(INT64_C(1) << 42))
		return -EBADMSG;
	*ret = llabs(*ret) * m->power_unit;
	return 0;
}

static int read_level(const struct energy_meter *m, struct env *env, int64_t *ret)
{
	int r = m->is_charge ? read_product(m, env, METER_LEVEL, ret)
			     : value_read(env, m->file[METER_LEVEL], ret);

	if (r < 0)
		return r;
	if (*ret < 0 || *ret > INT64_C(1) << 42)
		return -EBADMSG;
	*ret *= 3600; /* microwatt hours */
	return 0;
}

static void put(struct collect_context *ctx, struct energy_meter *m, size_t metric, int error, int64_t value)
{
	table_touch(ctx->table, (uint32_t)m->row);
	collect_put(ctx, (uint32_t)m->row, metric, error == 0, value);
	m->gone |= error == -ENODEV;
}

static void sample_meter(
	struct energy *e, struct collect_context *ctx, struct energy_meter *m, int64_t now_ns)
{
	int64_t value = 0;
	int r;

	if (m->file[METER_USED] >= 0 && (m->fast || ctx->medium)) {
		r = read_used(m, ctx->env, now_ns);
		put(ctx, m, ROW_USED, r, m->total);
	}
	if (m->file[METER_POWER] >= 0 && ctx->medium) {
		r = read_power(m, ctx->env, &value);
		put(ctx, m, ROW_POWER, r, value);
	}
	if (m->file[METER_LEVEL] >= 0 && ctx->medium) {
		r = read_level(m, ctx->env, &value);
		put(ctx, m, ROW_BATTERY, r, value);
	}
	if (m->gone)
		e->rounds = FIND_ROUNDS;
}

/* The rung whose leading meters give a value now; where none does, the first that has a meter. */
static enum rung choose(const struct energy *e, struct env *env)
{
	enum rung best = NR_RUNGS, first = NR_RUNGS;

	for (uint32_t i = 0; i < e->nr; i++) {
		const struct energy_meter *m = &e->meter[i];
		int64_t value;
		int r;

		if (m->counted_elsewhere[0] || !m->leads)
			continue;
		first = MIN(first, m->rung);
		if (m->rung >= best)
			continue;
		r = m->file[METER_USED] >= 0 ? value_read(env, m->file[METER_USED], &value)
					     : read_power(m, env, &value);
		/* A battery that is being charged will show its power once it is discharged. */
		if (r == 0 || m->rung == RUNG_BATTERY)
			best = m->rung;
	}
	return best < NR_RUNGS ? best : first;
}

static void join(struct energy *e, struct collect_context *ctx, struct energy_meter *m)
{
	struct about about[] = {{"source", m->source}, {"apart", m->counted_elsewhere}};
	size_t nr = 1;

	if (m->counted_elsewhere[0])
		nr = 2;
	else if (m->rung != e->chosen && e->chosen < NR_RUNGS) {
		about[1].value = m->loses && e->chosen == RUNG_RAPL ? m->loses : instead[e->chosen];
		nr = 2;
	}
	m->row = ctx->join_about(ctx, m->name, about, nr);
	e->full |= m->row < 0;
}

static void find_and_join(struct energy *e, struct collect_context *ctx)
{
	energy_find_cray(e, ctx->env);
	energy_find_rapl(e, ctx->env);
	energy_find_hwmon(e, ctx->env);
	energy_find_batteries(e, ctx->env);
	if (e->chosen == NR_RUNGS)
		e->chosen = choose(e, ctx->env);
	for (uint32_t i = 0; i < e->nr; i++)
		if (e->meter[i].row < 0)
			join(e, ctx, &e->meter[i]);
}

static bool any_has(const struct energy *e, enum meter_file which)
{
	for (uint32_t i = 0; i < e->nr; i++)
		if (e->meter[i].file[which] >= 0)
			return true;
	return false;
}

static void explain_used(const struct energy *e, struct collect_context *ctx)
{
	if (e->denied_used)
		ctx->why(ctx, ROW_USED, FORBIDDEN, "only root may read the energy counters",
			"sudo chmod a+r /sys/class/powercap/*/energy_uj");
	else if (!any_has(e, METER_USED) && e->hidden)
		ctx->why(ctx, ROW_USED, FORBIDDEN, "this container hides the energy counters",
			"docker run --security-opt systempaths=unconfined");
	else if (!any_has(e, METER_USED))
		ctx->why(ctx, ROW_USED, ABSENT, "this machine has no energy counter", NULL);
	else if (e->full)
		ctx->why(ctx, ROW_USED, FAILED, "there are more meters than can be recorded", NULL);
}

static void explain_power(const struct energy *e, struct collect_context *ctx)
{
	if (any_has(e, METER_POWER))
		return;
	if (e->denied_power)
		ctx->why(ctx, ROW_POWER, FORBIDDEN, "only root may read the power sensors",
			"sudo chmod a+r /sys/class/hwmon/hwmon*/power*");
	else
		ctx->why(ctx, ROW_POWER, ABSENT, "this machine has no power sensor", NULL);
}

static int energy_probe(struct env *env, struct trouble *reterr_why)
{
	static const char *const place[] = {
		"sys/class/powercap", "sys/class/hwmon", "sys/cray/pm_counters", "sys/class/power_supply"};
	static const struct trouble absent = {"this machine has no energy meter", NULL};
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(place) && r == -ENOENT; i++)
		r = probe_folder(env, place[i], absent, reterr_why);
	return r;
}

static int energy_open(void *state, struct collect_context *ctx)
{
	struct energy *e = state;

	e->chosen = NR_RUNGS;
	e->want_used = ctx->map.col[ROW_USED] >= 0;
	e->want_power = ctx->map.col[ROW_POWER] >= 0;
	e->want_level = ctx->map.col[ROW_BATTERY] >= 0;
	find_and_join(e, ctx);
	if (e->want_used)
		explain_used(e, ctx);
	if (e->want_power)
		explain_power(e, ctx);
	if (e->want_level && !any_has(e, METER_LEVEL))
		ctx->why(ctx, ROW_BATTERY, ABSENT, "this machine has no battery", NULL);
	return 0;
}

static void drop(struct energy *e, struct collect_context *ctx, uint32_t i)
{
	struct energy_meter *m = &e->meter[i];

	close_files(m, ctx->env);
	ctx->leave(ctx, (uint32_t)m->row);
	*m = e->meter[--e->nr];
}

static int energy_sample(void *state, struct collect_context *ctx)
{
	int64_t now_ns = env_now(ctx->env, ENV_MONOTONIC);
	struct energy *e = state;

	if (ctx->medium && e->rounds) {
		e->rounds--;
		find_and_join(e, ctx);
	}
	for (uint32_t i = 0; i < e->nr; i++)
		if (e->meter[i].row >= 0)
			sample_meter(e, ctx, &e->meter[i], now_ns);
	for (uint32_t i = e->nr; i--;)
		if (e->meter[i].gone)
			drop(e, ctx, i);
	return 0;
}

static void energy_close(void *state, struct collect_context *ctx)
{
	struct energy *e = state;

	while (e->nr)
		close_files(&e->meter[--e->nr], ctx->env);
}

const struct collector collector_energy = {
	.name = "energy",
	.summary = "energy and power of the node and its parts, by meter",
	.domain = DOMAIN_ENERGY,
	.metric = energy_metric,
	.nr_metrics = ARRAY_SIZE(energy_metric),
	.state_size = sizeof(struct energy),
	.tier = TIER_TICK,
	.max_rows = METERS_MAX,
	.probe = energy_probe,
	.open = energy_open,
	.sample = energy_sample,
	.close = energy_close,
};
