/* RAPL's zones in sys/class/powercap (Documentation/power/powercap/powercap.rst).
 *
 * A zone is a folder "intel-rapl:0", its parts "intel-rapl:0:1", also on AMD. Each is a link in the class's
 * folder and a folder below its parent as well; a zone is identified by its own name, so that both are the
 * same. The part's file `name` says "dram" only; the instance is called after its package too: "dram-0",
 * "core-1-die-0". Client chips show the package a second time through memory-mapped registers, control type
 * intel-rapl-mmio: those zones are used for what the others do not have.
 *
 * `enabled` is about limits on power; the counter runs in any case (AMD always says 0). */
#include "collect/energy.h"

#include "base/str.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define POWERCAP "sys/class/powercap"
#define ZONES_MAX 128
#define ZONE_SIZE 40
#define NAME_SIZE 32
#define PATH_SIZE 160
#define MSR "intel-rapl"

struct zones {
	const char *type; /* "intel-rapl" */
	size_t nr;
	struct zone {
		char name[ZONE_SIZE];	/* "intel-rapl:0:1" */
		char parent[ZONE_SIZE]; /* "intel-rapl:0", or "": at the top */
		bool nested;		/* only to be found below its parent */
	} zone[ZONES_MAX];
};

static struct zone *find_zone(struct zones *z, const char *name)
{
	for (size_t i = 0; i < z->nr; i++)
		if (!strcmp(z->zone[i].name, name))
			return &z->zone[i];
	return NULL;
}

/* TYPE:N or TYPE:N:M..., of digits. */
static bool is_zone(const char *name, const char *type)
{
	size_t len = strlen(type);

	return strlen(name) < ZONE_SIZE && !strncmp(name, type, len) && name[len] == ':' &&
		strspn(name + len, ":0123456789") == strlen(name + len);
}

/* Into its place: sorted as they come, so that numbers follow from names, not from the order of the folder.
 */
static void add_zone(struct zones *z, const char *name, bool nested)
{
	struct zone new = {.nested = nested};
	size_t i;

	if (!is_zone(name, z->type) || z->nr == ZONES_MAX)
		return;
	memcpy(new.name, name, strlen(name));
	memcpy(new.parent, name, strlen(name));
	*strrchr(new.parent, ':') = 0;
	if (!strchr(new.parent, ':'))
		new.parent[0] = 0;
	for (i = z->nr++; i && strcmp(new.name, z->zone[i - 1].name) < 0; i--)
		z->zone[i] = z->zone[i - 1];
	z->zone[i] = new;
}

static int add_flat(void *arg, const char *name)
{
	add_zone(arg, name, false);
	return 0;
}

static int add_nested(void *arg, const char *name)
{
	add_zone(arg, name, true);
	return 0;
}

static void zone_path(const struct zone *zone, const char *file, char *out, size_t size)
{
	snprintf(out, size, POWERCAP "/%s%s%s/%s", zone->nested ? zone->parent : "", zone->nested ? "/" : "",
		zone->name, file);
}

/* Returns the length of the name, or a negative errno: -EBADMSG for one that is empty. */
static int zone_name(struct env *env, const struct zone *zone, char *out, size_t size)
{
	char path[PATH_SIZE];
	int r;

	zone_path(zone, "name", path, sizeof(path));
	r = value_get_text(env, path, out, size);
	return r == 0 ? -EBADMSG : r;
}

/* What a zone contains follows from its name and place. */
static void classify(struct energy_meter *m, const char *own, const char *package)
{
	/* "dram" below "package-0-die-1" is "dram-0-die-1". */
	const char *which = str_starts(package, "package-") ? package + strlen("package") : "";

	snprintf(m->name, sizeof(m->name), "%s%s", own, which);
	m->source = "rapl";
	m->fast = true;
	m->rung = RUNG_RAPL;
	if (!package[0] && str_starts(own, "package-")) {
		m->leads = true;
	} else if (!package[0] && str_starts(own, "psys")) {
		m->leads = true;
		m->rung = RUNG_PSYS;
		m->loses = "contains the packages";
	} else if (!package[0]) {
		snprintf(m->counted_elsewhere, sizeof(m->counted_elsewhere), "what it measures is not known");
	} else if (strcmp(own, "dram")) {
		snprintf(m->counted_elsewhere, sizeof(m->counted_elsewhere), "part of %s", package);
	}
}

static void add_meter(struct energy *e, struct env *env, struct zones *z, const struct zone *zone)
{
	char own[NAME_SIZE], package[NAME_SIZE] = "", path[PATH_SIZE];
	const struct zone *parent = find_zone(z, zone->parent);
	struct energy_meter *m = energy_meter(e, zone->name);
	int r;

	if (!m)
		return;
	r = zone_name(env, zone, own, sizeof(own));
	if (r > 0 && zone->parent[0] && (!parent || zone_name(env, parent, package, sizeof(package)) < 0))
		snprintf(package, sizeof(package), "%s", zone->parent);
	if (r > 0) {
		classify(m, own, package);
		/* Known already through other registers. */
		if (strcmp(z->type, MSR) && energy_has_name(e, m, m->name))
			r = -EEXIST;
	}
	if (r > 0) {
		zone_path(zone, "energy_uj", path, sizeof(path));
		r = energy_open_file(e, env, m, METER_USED, path);
		zone_path(zone, "max_energy_range_uj", path, sizeof(path));
		if (value_get(env, path, &m->range) < 0 || m->range < 0)
			m->range = 0;
	}
	e->hidden |= r == -ENOENT;
	energy_keep(e, env, m);
}

static void find_zones(struct energy *e, struct env *env, const char *type)
{
	struct zones flat = {.type = type}, all;
	char path[PATH_SIZE];

	if (env_list(env, POWERCAP, add_flat, &flat) < 0)
		return;
	all = flat;
	for (size_t i = 0; i < flat.nr; i++) {
		snprintf(path, sizeof(path), POWERCAP "/%s", flat.zone[i].name);
		if (!flat.zone[i].parent[0])
			env_list(env, path, add_nested, &all);
	}
	for (size_t i = 0; i < all.nr; i++)
		add_meter(e, env, &all, &all.zone[i]);
}

void energy_find_rapl(struct energy *e, struct env *env)
{
	if (!e->want_used)
		return;
	find_zones(e, env, MSR);
	find_zones(e, env, "intel-rapl-mmio");
}
