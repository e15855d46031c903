/* What the files behind event.h share. */
#ifndef PERF_EVENT_INTERNAL_H
#define PERF_EVENT_INTERNAL_H

#include "base/text.h"
#include "perf/event.h"

#define PMU_DIR "sys/bus/event_source/devices"

enum { EVENT_TEXT_MAX = 256, PMUS_MAX = 256 };

/* One event text that is being parsed: the function that recognises it adds its events. */
struct event_ask {
	struct env *env;
	struct perf_event *found;
	size_t nr, max;
	char listed[48]; /* the first name of a generic event; "": the text itself names the metric */
	char label[48];	 /* of `NAME=` or the term `name=`; "" */
	bool named;	 /* the label is that of NAME=, which wins */
	bool exclude_user, exclude_kernel;
	char *err;
	size_t err_size;
};

/* Sets the reason, unless there is one already; -EINVAL. */
int event_refuse(struct event_ask *a, const char *fmt, ...) _printf_(2, 3);
/* The same for an event that is understood but cannot be counted on this machine; -ENODEV. */
int event_lack(struct event_ask *a, const char *fmt, ...) _printf_(2, 3);
/* 0, or -ENOSPC when there is no room for more. */
int event_add(struct event_ask *a, const struct perf_event *e);

/* What counting it for a recording would give: user mode alone is enough, a package needs one of its CPUs. */
int event_try_modes(struct env *env, const struct perf_event *e);

/* Whether the event of that text can be counted here, and if not why. */
void offer_try(struct env *env, struct perf_offer *offer, const char *text);

/* A list of names for people, as env_list() gives them; it ends in dots when there was no room for all. */
struct name_list {
	const char *between, *behind; /* each name */
	char text[160];
	size_t len;
};
int name_list_add(void *list, const char *name);

/* ---- names that the kernel has for every machine: event_names.c ---- */

struct named_event {
	const char *name, *alias;
	uint32_t type;
	uint64_t config;
	bool in_kernel;	   /* it happens in kernel mode alone */
	const char *unit;  /* NULL: a number */
	const char *about; /* for lists */
};

/* Hardware, software, then cache events; false when there are no more. `memory` holds a name that is made. */
bool named_event_at(size_t i, struct named_event *ret, char memory[static 48]);
bool named_event_find(struct text name, struct named_event *ret, char memory[static 48]);
/* Equal, ignoring case and the difference between '-' and '_'. */
bool name_equal(struct text a, const char *b);

/* ---- PMUs: event_sysfs.c ---- */

struct pmu {
	char name[48];
	uint32_t type;
	bool core;	 /* counts what a kind of this machine's cores does */
	bool of_package; /* has a cpumask */
};

/* Cores' PMUs, in order: one, none in many VMs, several kinds on hybrid processors. */
size_t pmus_core(struct env *env, struct pmu *ret, size_t max);
/* All of them, the cores' first, else in order. */
size_t pmus_all(struct env *env, struct pmu *ret, size_t max);
/* Whether the two are boxes of one kind: uncore_imc_0 and uncore_imc_1, cpu_core and cpu_atom. */
bool pmus_alike(const struct pmu *a, const struct pmu *b);
/* The length of the name without the number of its box. */
size_t pmu_stem(const char *name);
/* The names of its events/ or format/, except files that describe another event (NAME.scale, NAME.unit). */
int pmu_list(struct env *env, const struct pmu *pmu, const char *folder, env_list_fn *fn, void *arg);
/* "PMU/terms/" */
int pmu_parse(struct event_ask *a, struct text name, struct text terms);
/* A name of an events/ folder. 0 and nothing added when no PMU has it. */
int pmu_parse_bare(struct event_ask *a, struct text name);

/* ---- tracepoints: event_tracepoint.c ---- */

/* Where the kernel's tracing is, "sys/kernel/tracing/events"; NULL when it is not mounted or not for us
 * (*reterr). */
const char *tracepoint_folder(struct env *env, int *reterr);
/* 0 and nothing added when there is none of that name. */
int tracepoint_parse(struct event_ask *a, struct text name);

/* ---- libpfm4: pfm.c ---- */

/* 0 and nothing added when there is no library, or it does not know the name; *ret_there says which. */
int pfm_parse(struct event_ask *a, const char *name, bool *ret_there);
int pfm_offers(struct env *env, int (*fn)(void *arg, const struct perf_offer *offer), void *arg);
#endif
