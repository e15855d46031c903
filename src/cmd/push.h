/* The options of `tacho push`: its rows stand in the main table, its work is done by tacho-push. */
#ifndef CMD_PUSH_H
#define CMD_PUSH_H

#include "cli/cli.h"

enum push_per { PUSH_PER_NODE, PUSH_PER_INSTANCE, PUSH_PER_GROUP, PUSH_PER_PROCESS };

struct push_args {
	struct opt_list to, server, metric, label;
	bool follow, status, dry_run, sinks;
	int per; /* enum push_per */
	int64_t every_ns, timeout_ns, linger_ns;
	uint64_t samples, retries;
	const char *from, *until, *phase;
	/* Of single sinks. */
	const char *run_id, *run_name, *experiment, *prefix, *total_memory;
	int as; /* enum push_as, of mlflow */
	double total_cpus;
	bool children, artifacts, semconv;
	const char *listen, *token_file, *textfile;
	const char *log; /* where the pusher of `run --push` says what it has to say */
};

extern const char *const push_sink_names[]; /* as push_sinks[] of push/sink.h, NULL at the end */
extern const struct cmd cmd_push;
#endif
