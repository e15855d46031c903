/* What commands that read are given: the operands as one run, and the part of its time that is asked for. */
#ifndef CMD_OPERANDS_H
#define CMD_OPERANDS_H

#include "cli/cli.h"
#include "query/run.h"

/* The operands as one run; without any, the newest recording here, which is named on stderr ("showing NAME,
 * the newest here"). What cannot be opened ends the program with EXIT_USAGE. */
struct run *operands_run(const char *doing, int argc, char **argv);
/* These, with --job; the same end of the program. Of a directory that holds several jobs they are listed. */
struct run *operands_open(const char *const *path, size_t nr);

/* Says which notes beside its recordings (query/sidecar.h) cannot be used. operands_run() does. */
void operands_check_notes(const struct run *run);

/* Names of metrics, with commas or without; a word that exists as a file is a file. */
bool operand_is_metric(const char *word);

/* Rows --from, --to and --phase, for cmd.shared: the first member of the command's args. */
struct range_args {
	const char *from, *to, *phase;
	const char *to_name; /* what the command calls --to; NULL: that */
};

#define NR_RANGE_OPTS 3
extern const struct opt range_opts[NR_RANGE_OPTS];

/* A time as these rows take it: 90, 1m30s, 25%. */
bool is_moment(const char *text);
/* Seconds after the start of the run, NAN where nothing was asked for; a wrong time or range ends the
 * program. For shares of the whole the length of the run is read first, for a phase its summary. */
void range_of(const struct cmd *cmd, const struct run *run, const struct range_args *args, double *ret_from_s,
	double *ret_to_s);
/* --phase goes with neither of the others. */
void range_check(const struct cmd *cmd, const struct range_args *args);
/* For one who reads the summary anyway: when that phase began and ended. */
struct summary;
void phase_times(const struct cmd *cmd, const struct summary *s, const char *name, double *ret_from_s,
	double *ret_to_s);
/* The same; *ret_phases is the summary that has the phase, NULL where none was asked for. The table of
 * processes comes from the same reading; ret_processes NULL: not wanted. */
struct process_table;
void range_of_phase(const struct cmd *cmd, const struct run *run, const struct range_args *args,
	double *ret_from_s, double *ret_to_s, struct summary **ret_phases,
	struct process_table **ret_processes);
/* The phase of that name, or one repetition of it: without one the program ends. `all` is NULL where the job
 * told of none. */
struct phases;
const struct phase *phase_of(const struct cmd *cmd, const struct phases *all, const char *name);
#endif
