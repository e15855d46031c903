/* The options that every recording command has (run, attach), in one table, and the name of the recording.
 *
 * A command puts `struct record_options` first in its args and points cmd.shared at the rows:
 *	struct run_args { struct record_options record; ... };
 *	const struct cmd cmd_run = { .shared = record_opts, .nr_shared = NR_RECORD_OPTS,
 *		.args_size = sizeof(struct run_args), .usage_status = EXIT_OWN, ... }; */
#ifndef CMD_RECORD_OPTIONS_H
#define CMD_RECORD_OPTIONS_H

#include "base/buf.h"
#include "cli/cli.h"

#include <sys/types.h>

/* Which help of the kernel is used where it is available. */
enum record_helper { HELPER_CONNECTOR = 1, HELPER_TASKSTATS = 2, HELPER_CGROUP = 4, HELPERS_ALL = 7 };

struct record_options {
	int64_t interval_ns;
	int64_t flush_ns;
	int64_t duration_ns; /* 0: until the end */
	double budget_percent;
	const char *output; /* template, for output_path() */
	const char *name;   /* NULL: from the command */
	const char *message;
	const char *helpers;		   /* for record_helpers() */
	struct opt_list metrics;	   /* words as given: each a list with commas */
	struct opt_list events;		   /* of counters, likewise */
	struct opt_list redact;		   /* for redact_new() */
	struct opt_list tag;		   /* KEY=VALUE, checked by record_options_check() */
	int children;			   /* 0 or 1 */
	const char *max_cpus, *max_memory; /* as given; checked */
	const char *until_file;
	struct opt_list push; /* sinks */
	bool serve;
	const char *serve_with;		    /* words for tacho serve */
	const char *run_log;		    /* template; NULL: none */
	struct opt_list watch, phase, mark; /* for log_watch_open() */
	bool force, quiet, verbose, summary, json;
};

enum { NR_RECORD_OPTS = 28 };
extern const struct opt record_opts[NR_RECORD_OPTS];

/* Checks beyond the rows: tags are KEY=VALUE, helpers exist. 0, or -EINVAL with a message for people in
 * err. */
struct redact;
/* What --redact asks for. -EINVAL with a message in err. */
int record_redact(const struct record_options *o, struct redact **ret, struct buf *err);
int record_options_check(const struct record_options *o, struct buf *err);
/* "all", "none" or names with commas: a mask of enum record_helper. 0, or -EINVAL with a message in err. */
int record_helpers(const char *text, unsigned *ret_mask, struct buf *err);

struct output_names {
	const char *name;    /* --name; NULL: the last part of `command` */
	const char *command; /* argv[0] of the job; NULL: "tacho" */
	const char *host;    /* NULL: this host */
	pid_t pid;	     /* of the job; 0: ours */
	int64_t wall_ns;     /* start of the recording, since the epoch */
};

/* How the name was made: given literally by the user; from the user's template; or by us. */
enum output_kind { OUTPUT_LITERAL, OUTPUT_FILLED, OUTPUT_MADE };

/* Fills the placeholders of the template: {name} {datetime} {host} {jobid} {pid} {rank}; {{ and }} are
 * braces. The text of a placeholder cannot lead out of the directory: slashes and control characters become
 * '_'. A path that ends in '/' or is an existing directory gets the preset name within. enum output_kind, or
 * -EINVAL with a message in err. */
int output_path(const char *template, const struct output_names *names, struct buf *out, struct buf *err);
/* x.tacho becomes x-rank3.tacho: all ranks of a job may be given one literal name. False: we are the only
 * one. */
bool output_add_rank(struct buf *path);
/* Our rank among several; NULL when we are the only one. */
const char *rank_of_several(void);
#endif
