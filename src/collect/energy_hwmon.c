/* Power sensors and energy counters of sys/class/hwmon.
 *
 * Most chips do not say what they measure, and two of them may measure the same rail; what they show is
 * recorded apart. For some drivers it is known, and those may count for the node: the table below. NVIDIA's
 * Grace has an ACPI meter for the module and one for each part of it, distinguished by their names in the
 * firmware (power1_oem_info). */
#include "collect/energy.h"
#include "collect/hwmon.h"

#include "base/str.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define CHANNELS_MAX 600

enum { KIND_ENERGY, KIND_AVERAGE, KIND_INPUT };

/* Sorted by this: an average is taken before a sample of the same number. */
static const struct hwmon_kind kinds[] = {
	[KIND_ENERGY] = {"energy", "_input"},
	[KIND_AVERAGE] = {"power", "_average"},
	[KIND_INPUT] = {"power", "_input"},
};

/* The first row that fits says what the channel contains. Labels by their beginning. */
/* clang-format off */
static const struct energy_hwmon_known {
	const char *chip, *label;
	enum rung rung;
	const char *counted_elsewhere;
} known[] = {
	{"amd_energy",     "Esocket",      RUNG_SOCKETS,    NULL},
	{"amd_energy",     "",             RUNG_SOCKETS,    "part of its socket"},
	{"power_meter",    "Module Power", RUNG_NODE_POWER, NULL},
	{"power_meter",    "Grace Power",  RUNG_PARTS,      NULL},
	{"power_meter",    "CPU Power",    RUNG_PARTS,      "part of its socket"},
	{"power_meter",    "SysIO Power",  RUNG_PARTS,      "part of its socket"},
	{"power_meter",    "",             RUNG_NODE_POWER, NULL},
	{"ibmpowernv",     "System",       RUNG_NODE_POWER, NULL},
	{"ibmpowernv",     "",             RUNG_PARTS,      "part of System"},
	{"apm_xgene",      "",             RUNG_PARTS,      NULL},
	{"smpro_hwmon",    "",             RUNG_PARTS,      NULL},
	{"fam15h_power",   "",             RUNG_PARTS,      NULL},
	{"amd_hsmp_hwmon", "",             RUNG_PARTS,      NULL},
	{NULL,             "",             RUNG_PARTS,      "what it measures is not known"},
};
/* clang-format on */

struct energy_hwmon_finding {
	struct energy *e;
	struct env *env;
};

static const struct energy_hwmon_known *lookup(const char *chip, const char *label)
{
	const struct energy_hwmon_known *k = known;

	while (k->chip && (strcmp(k->chip, chip) || !str_starts(label, k->label)))
		k++;
	return k;
}

/* ACPI's meters have no label, but may have a text of the firmware's maker. */
static void describe(struct energy_hwmon_finding *f, const struct hwmon_chip *chip, const char *prefix,
	unsigned number, char *out, size_t size)
{
	char path[HWMON_PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s%u_oem_info", chip->dir, prefix, number);
	if (strcmp(chip->name, "power_meter") || value_get_text(f->env, path, out, size) <= 0)
		hwmon_label(f->env, chip, prefix, number, out, size);
}

static void classify(
	struct energy *e, struct energy_meter *m, const struct hwmon_chip *chip, const char *label)
{
	const struct energy_hwmon_known *k = lookup(chip->name, label);

	snprintf(m->name, sizeof(m->name), "%.32s/%.40s", chip->name, label);
	m->source = !strcmp(chip->name, "amd_energy") ? "amd_energy" : "hwmon";
	m->leads = true;
	m->rung = k->rung;
	m->fast = k->rung == RUNG_SOCKETS && !k->counted_elsewhere;
	if (k->counted_elsewhere)
		snprintf(m->counted_elsewhere, sizeof(m->counted_elsewhere), "%s", k->counted_elsewhere);
	/* Two meters without a name may both be the whole node. */
	if (k->rung == RUNG_NODE_POWER && str_starts(label, "power") && energy_has_name(e, m, m->name))
		snprintf(m->counted_elsewhere, sizeof(m->counted_elsewhere),
			"may measure what the first power meter does");
	if (m->file[METER_USED] >= 0 && m->rung == RUNG_NODE_POWER)
		m->rung = RUNG_NODE;
}

static void add_channel(
	struct energy_hwmon_finding *f, struct hwmon_chip *chip, const struct hwmon_channel *c)
{
	const struct hwmon_kind *kind = &kinds[c->kind];
	char key[80], label[48], path[HWMON_PATH_SIZE];
	struct energy_meter *m;

	if (c->kind == KIND_ENERGY ? !f->e->want_used : !f->e->want_power)
		return;
	snprintf(key, sizeof(key), "hwmon/%.32s/%.32s/%s%u", chip->name, chip->device, kind->prefix,
		c->number);
	m = energy_meter(f->e, key);
	if (!m)
		return;
	snprintf(path, sizeof(path), "%s/%s%u%s", chip->dir, kind->prefix, c->number, kind->suffix);
	energy_open_file(f->e, f->env, m, c->kind == KIND_ENERGY ? METER_USED : METER_POWER, path);
	describe(f, chip, kind->prefix, c->number, label, sizeof(label));
	classify(f->e, m, chip, label);
	energy_keep(f->e, f->env, m);
}

/* The kernel shows batteries here as well. */
static bool is_supply(struct env *env, const struct hwmon_chip *chip)
{
	char path[HWMON_PATH_SIZE];

	snprintf(path, sizeof(path), "sys/class/power_supply/%s/type", chip->name);
	return !strchr(chip->name, '/') && env_try(env, path) == 0;
}

static int add_chip(void *arg, struct hwmon_chip *chip)
{
	struct hwmon_channel channel[CHANNELS_MAX];
	struct energy_hwmon_finding *f = arg;
	size_t nr = 0;

	if (!hwmon_is_gpu(chip))
		nr = hwmon_channels(f->env, chip, kinds, ARRAY_SIZE(kinds), channel, CHANNELS_MAX);
	if (nr && is_supply(f->env, chip))
		return 0;
	for (size_t i = 0; i < nr; i++)
		add_channel(f, chip, &channel[i]);
	return 0;
}

void energy_find_hwmon(struct energy *e, struct env *env)
{
	struct energy_hwmon_finding f = {.e = e, .env = env};

	if (e->want_used || e->want_power)
		hwmon_each(env, add_chip, &f);
}
