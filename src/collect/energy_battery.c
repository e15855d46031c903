/* Batteries of the machine (Documentation/ABI/testing/sysfs-class-power). What one gives while it is
 * discharged is what the whole machine takes; how full it is falls slowly and in steps, so it is a level of
 * its own and no source of energy used. Drivers give energy and power, or charge and current, which are
 * multiplied by the voltage. Batteries of mice and phones are marked as belonging to a device. */
#include "collect/energy.h"

#include "base/str.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define SUPPLIES "sys/class/power_supply"

struct energy_battery_finding {
	struct energy *e;
	struct env *env;
};

struct supply {
	struct energy_battery_finding *f;
	struct energy_meter *m;
	const char *name;
};

static int open_one(const struct supply *s, enum meter_file which, const char *file)
{
	char path[160];

	snprintf(path, sizeof(path), SUPPLIES "/%s/%s", s->name, file);
	return energy_open_file(s->f->e, s->f->env, s->m, which, path);
}

static bool says(const struct supply *s, const char *file, const char *what)
{
	char path[160], text[32];

	snprintf(path, sizeof(path), SUPPLIES "/%s/%s", s->name, file);
	return value_get_text(s->f->env, path, text, sizeof(text)) > 0 && !strcmp(text, what);
}

/* Opens one of two files; true when it is the second. */
static bool open_either(const struct supply *s, enum meter_file which, const char *first, const char *second)
{
	return open_one(s, which, first) < 0 && open_one(s, which, second) == 0;
}

static int add_battery(void *arg, const char *name)
{
	struct supply s = {.f = arg, .name = name};
	struct energy_meter *m;
	char key[80];

	if (strlen(name) > 60 || !says(&s, "type", "Battery") || says(&s, "scope", "Device"))
		return 0;
	snprintf(key, sizeof(key), "battery/%s", name);
	m = s.m = energy_meter(s.f->e, key);
	if (!m)
		return 0;
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->source = "battery";
	m->rung = RUNG_BATTERY;
	m->leads = true;
	if (s.f->e->want_power && open_one(&s, METER_STATUS, "status") == 0)
		m->is_current = open_either(&s, METER_POWER, "power_now", "current_now");
	if (s.f->e->want_level)
		m->is_charge = open_either(&s, METER_LEVEL, "energy_now", "charge_now");
	if (m->is_current || m->is_charge)
		open_one(&s, METER_VOLTAGE, "voltage_now");
	energy_keep(s.f->e, s.f->env, m);
	return 0;
}

void energy_find_batteries(struct energy *e, struct env *env)
{
	struct energy_battery_finding f = {e, env};

	if (e->want_power || e->want_level)
		env_list(env, SUPPLIES, add_battery, &f);
}
