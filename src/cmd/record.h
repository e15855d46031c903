/* What run and attach have in common: one recording, from its file's creation to its end. */
#ifndef CMD_RECORD_H
#define CMD_RECORD_H

#include "base/buf.h"
#include "cmd/record_options.h"
#include "cmd/sink.h"
#include "engine/engine.h"
#include "target/command.h"

struct recording {
	const struct record_options *opt;
	const struct cmd *cmd;
	struct env *env;
	struct engine *engine;
	struct store_sink sink;
	struct own_cgroup *group;
	struct command command;
	struct buf path;
	bool attach;
	unsigned help; /* which of the kernel's help may be used */
	int pidfd[16]; /* of the attached roots: their end is noticed at once */
	unsigned nr_pidfds;
	bool over; /* nothing is recorded any more */
	bool told_to_end;
	int64_t end_ns; /* when --duration ends; INT64_MAX */
};

/* All that can fail before the job starts: options, rows, the file. Dies with EXIT_OWN and a message. */
void record_prepare(struct recording *r, const struct cmd *cmd, const struct record_options *opt, bool attach,
	int argc, char **argv);
/* Clocks at zero, and what the recording is about. */
void record_begin(struct recording *r, int argc, char **argv);
/* Adds a process that runs already. */
int record_attach(struct recording *r, pid_t pid);
/* Samples until the job, the tree, the duration or (attach) a signal ends it. */
void record_loop(struct recording *r);
/* The last sample, the end mark, the summary for people. `ended`: exit, signal, duration, attach-end. */
void record_end(struct recording *r, const char *ended);
void record_report(struct recording *r);
/* Leaves no file behind: the job never started. */
void record_discard(struct recording *r);
#endif
