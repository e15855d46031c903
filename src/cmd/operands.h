/* What readers are given: the operands as one run, and the part of its time that is asked for. */
#ifndef CMD_OPERANDS_H
#define CMD_OPERANDS_H

#include "cli/cli.h"
#include "query/run.h"

/* The operands as one run; without any, the newest recording here, which is said on stderr ("showing NAME,
 * the newest here"). What cannot be opened ends the program with EXIT_USAGE. */
struct run *operands_run(const char *doing, int argc, char **argv);

/* Rows --from and --to, for cmd.shared: the first member of the command's args. */
struct range_args {
	int64_t from_ns, to_ns;
};

#define NR_RANGE_OPTS 2
extern const struct opt range_opts[NR_RANGE_OPTS];

/* Seconds after the start, NAN where nothing was asked for; a range that is none ends the program. */
void range_of(const struct cmd *cmd, const struct range_args *args, double *ret_from_s, double *ret_to_s);
#endif
