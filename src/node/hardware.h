/* What the machine is: one key and value a fact, for the recording's metadata. */
#ifndef NODE_HARDWARE_H
#define NODE_HARDWARE_H

#include "env/env.h"

enum fact_type { FACT_TEXT, FACT_NUMBER };

/* A fact: its key in the recording is "hw." and this name, its key in the JSON the name alone. Numbers are
 * whole and decimal; texts are one line of printable UTF-8, and lists in them are separated by ", " ("; "
 * where an item has commas of its own). */
struct fact {
	const char *name; /* "cpu_model" */
	enum fact_type type;
	const char *label; /* for people: "CPU model" */
	const char *path;  /* the file whose only line it is; NULL: found by code */
};
extern const struct fact hardware_fact[];
extern const size_t nr_hardware_facts;

#define FACT_TEXT_MAX 4096 /* bytes of a value, its terminator included */

typedef void describe_fn(void *arg, const char *key, const char *value);

/* Calls fn with key "hw.NAME" for every fact that is known here. A bounded number of files whatever the
 * number of CPUs and devices: 60 on a small machine, 84 on one of 256 CPUs and 8 NUMA nodes; 0.4 ms. */
void hardware_describe(struct env *env, describe_fn *fn, void *arg);
/* The variables of the batch system and of MPI that name the job, as "env.NAME"; from a fixed list of names,
 * none of which may hold a secret. */
void environment_describe(struct env *env, describe_fn *fn, void *arg);
/* The name of a GPU of large machines by its PCI numbers, "1002:740f"; NULL: not one of those. */
const char *hardware_gpu_model(const char *id);
#endif
