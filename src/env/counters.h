/* Counters of events in films and captures, in place of the kernel's.
 *
 * A line of a film is valid for every attr, task and CPU that it does not exclude; of several the most exact
 * one is used. Lines are never taken away, so a handle is an index. */
#ifndef ENV_COUNTERS_H
#define ENV_COUNTERS_H

#include "env/env.h"

struct buf;

enum counter_mode { MODE_ANY, MODE_USER, MODE_KERNEL, MODE_BOTH, NR_COUNTER_MODES };

struct counter_key {
	enum counter_mode mode; /* what must be counted: user mode alone, the kernel alone, both */
	bool any_type, any_config, any_pid, any_cpu;
	uint32_t type;
	uint64_t config[3];
	pid_t pid;
	int cpu;
};

struct counter_line {
	struct counter_key key;
	struct env_count count;
	int error; /* negative errno of opening and reading it */
	/* Of a capture: when it was last read, and whether it must be written. */
	uint32_t frame;
	bool dirty;
};

struct env_counters {
	struct counter_line *line;
	size_t nr, cap;
};

void env_counters_release(struct env_counters *c);
struct counter_key counter_key_of(const struct perf_event_attr *attr, pid_t pid, int cpu);
/* The line of exactly that key, made where there is none; its index or -ENOMEM. */
ssize_t env_counters_make(struct env_counters *c, const struct counter_key *key);
/* The index of the line of exactly that key, or -ENOENT. */
ssize_t env_counters_find(const struct env_counters *c, const struct counter_key *key);
/* The index of the best matching line, or -ENOENT. The key is that of an attr: all of it is set. */
ssize_t env_counters_match(const struct env_counters *c, const struct counter_key *asked);

/* As lines of a film have it: "0:u", "0xc7:0x1", "*". */
bool counter_parse_type(struct counter_key *key, const char *word);
bool counter_parse_config(struct counter_key *key, const char *word);
bool counter_parse_place(struct counter_key *key, const char *pid, const char *cpu);
void counter_write(struct buf *out, const struct counter_line *line);
#endif
