/* Which of all metrics this machine has, found out by recording: a child of ours is sampled for a moment with
 * everything on, and what has a value exists. */
#ifndef CMD_SELF_TEST_H
#define CMD_SELF_TEST_H

#include "collect/collector.h"

struct self_test_metric {
	enum availability state; /* AVAILABLE: a value was seen */
	char *reason, *remedy;	 /* may be NULL; beside AVAILABLE: why some instances have none */
};

struct self_test_source {
	const struct collector *collector;
	uint32_t instances; /* that joined, except one that is the sum of all */
	struct self_test_metric metric[METRICS_MAX];
};

/* More than this are not named. */
#define SELF_TEST_GPUS_MAX 64

struct self_test {
	struct self_test_source source[COLLECTORS_MAX];
	size_t nr;
	struct self_test_gpu {
		char vendor[16], model[96];
	} gpu[SELF_TEST_GPUS_MAX]; /* that joined, except parts of others */
	unsigned nr_gpus;
	unsigned ticks;	   /* taken */
	bool works;	   /* a process was sampled: recordings can be made */
	char trouble[240]; /* why not, else "" */
	char group[240];   /* why the job gets no control group of its own, else "" */
	int group_error;
	int share_error;    /* of cgroup_share(), where there is no reason in group_error */
	char group_kind[4]; /* "v1", "v2" or "" */
};

/* On a live env a child is started and sampled; on others (tests) the first process there is. 0 also when
 * nothing can be recorded: see `works`; -ENOMEM. Takes some fifty milliseconds, and where there are GPUs, as
 * long as their drivers need to answer for the first time. */
int self_test_look(struct env *env, struct self_test **ret);
struct self_test *self_test_free(struct self_test *h);

unsigned self_test_nr_ok(const struct self_test_source *s);
/* The state that all its metrics share, or NR_AVAILABILITY. */
enum availability self_test_state(const struct self_test_source *s);
#endif
