/* Cray's counters of a node and its parts (sys/cray/pm_counters), kept by the blade's controller ten times a
 * second: "energy" counts all that the node takes, "cpu_energy", "memory_energy" and "accel0_energy" are
 * parts of it; each has its power beside it. A file holds a whole number, its unit and the time: "123 J
 * 1700000000000000 us". */
#include "collect/energy.h"

#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define PM_COUNTERS "sys/cray/pm_counters"

struct energy_cray_finding {
	struct energy *e;
	struct env *env;
};

static void open_one(struct energy_cray_finding *f, struct energy_meter *m, enum meter_file which,
	const char *part, const char *what)
{
	char path[160];

	snprintf(path, sizeof(path), PM_COUNTERS "/%s%s", part, what);
	energy_open_file(f->e, f->env, m, which, path);
}

/* part: "" for the node, or "cpu_". */
static void add_meter(struct energy_cray_finding *f, const char *part)
{
	size_t len = strlen(part);
	struct energy_meter *m;
	char key[48];

	snprintf(key, sizeof(key), "cray/%s", part);
	m = energy_meter(f->e, key);
	if (!m)
		return;
	m->source = "cray";
	m->power_unit = m->used_unit = 1000000;
	if (f->e->want_used)
		open_one(f, m, METER_USED, part, "energy");
	if (f->e->want_power)
		open_one(f, m, METER_POWER, part, "power");
	m->leads = m->fast = !len;
	m->rung = m->file[METER_USED] >= 0 ? RUNG_NODE : RUNG_NODE_POWER;
	snprintf(m->name, sizeof(m->name), "%.*s", len ? (int)len - 1 : 4, len ? part : "node");
	if (len)
		snprintf(m->counted_elsewhere, sizeof(m->counted_elsewhere), "part of node");
	energy_keep(f->e, f->env, m);
}

static int add_part(void *arg, const char *name)
{
	static const char *const end[] = {"energy", "power"};
	size_t len = strlen(name);
	char part[32];

	for (size_t i = 0; i < ARRAY_SIZE(end); i++) {
		size_t tail = strlen(end[i]);

		if (len < tail || strcmp(name + len - tail, end[i]) || len - tail >= sizeof(part))
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)(len - tail), name);
		if (!part[0] || part[len - tail - 1] == '_')
			add_meter(arg, part);
	}
	return 0;
}

void energy_find_cray(struct energy *e, struct env *env)
{
	struct energy_cray_finding f = {e, env};

	if (e->want_used || e->want_power)
		env_list(env, PM_COUNTERS, add_part, &f);
}
