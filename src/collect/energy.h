/* Meters: what the sources of energy give to the collector. energy.c has the rule by which they become one
 * node's energy. */
#ifndef COLLECT_ENERGY_H
#define COLLECT_ENERGY_H

#include "collect/collector.h"

#define METERS_MAX 300

/* The first of these that can be read counts as the node's energy; all others stand apart. */
enum rung {
	RUNG_NODE,	 /* a counter of the whole node */
	RUNG_RAPL,	 /* packages and their memory */
	RUNG_SOCKETS,	 /* amd_energy */
	RUNG_PSYS,	 /* RAPL's own idea of the whole platform */
	RUNG_NODE_POWER, /* a power meter of the whole node */
	RUNG_PARTS,	 /* power of parts that do not overlap */
	RUNG_BATTERY,	 /* what it gives while it is discharged */
	NR_RUNGS
};

enum meter_file {
	METER_USED,    /* counts energy */
	METER_POWER,   /* or current, with METER_VOLTAGE */
	METER_LEVEL,   /* energy left in a battery, or charge */
	METER_VOLTAGE, /* of now, in microvolt */
	METER_STATUS,  /* power counts while this says "Discharging" */
	NR_METER_FILES
};

struct energy_meter {
	char key[80];	    /* the same whenever it is found again */
	char name[80];	    /* the instance: "package-0" */
	const char *source; /* "rapl" */
	enum rung rung;
	bool leads;		    /* its rung can be chosen because of it: a package, not its memory */
	bool fast;		    /* cheap enough for every tick */
	char counted_elsewhere[64]; /* why it never counts; "": it does when its rung is chosen */
	const char *loses; /* why it does not count when another rung is chosen; NULL: the rung's text */
	int file[NR_METER_FILES]; /* handles, or negative */
	bool is_current, is_charge;
	int64_t power_unit; /* micro-units in one of the file's */
	int64_t used_unit;
	int64_t range; /* of the counter, in its own units; 0: not known */

	int32_t row; /* -1: not joined yet */
	bool counted, gone;
	int64_t raw, total, read_ns, slept_ns; /* of the last reading */
};

struct energy {
	struct energy_meter meter[METERS_MAX];
	uint32_t nr;
	enum rung chosen; /* NR_RUNGS: none yet */
	bool want_used, want_power, want_level;
	bool denied_used, denied_power; /* something is there that we may not read */
	bool hidden;			/* zones are listed but their links are dangling, as in a container */
	bool full;
	unsigned rounds; /* rounds in which a lost meter is searched for again */
};

/* A new meter to be filled in, or NULL when the key is known already or there is no room. */
struct energy_meter *energy_meter(struct energy *e, const char *key);
bool energy_has_name(const struct energy *e, const struct energy_meter *but, const char *name);
/* To be called when the meter is filled in: makes its name unique, or takes it back when it has no file. */
void energy_keep(struct energy *e, struct env *env, struct energy_meter *m);
/* Opens a file of the meter; notes when that is not permitted. */
int energy_open_file(
	struct energy *e, struct env *env, struct energy_meter *m, enum meter_file which, const char *path);

/* One for each kind of source: adds the meters that are not known yet. */
void energy_find_cray(struct energy *e, struct env *env);
void energy_find_rapl(struct energy *e, struct env *env);
void energy_find_hwmon(struct energy *e, struct env *env);
void energy_find_batteries(struct energy *e, struct env *env);
#endif
