/* What a line of the job's log means: an expression, POSIX extended with names for groups, (?<loss>...) or
 * (?P<loss>...). The named groups of a match are data, as KEY=VALUE of a mark. */
#ifndef TARGET_LOG_PATTERN_H
#define TARGET_LOG_PATTERN_H

#include "base/buf.h"
#include "target/job_message.h"

#include <regex.h>

#define LOG_GROUPS 32
#define LOG_NAME 256 /* of a phase, at most */

struct log_pattern {
	bool phase;
	bool given_up;	  /* it took too long for a line: it is not to be used any more */
	bool told;	  /* that it is given up: for the caller */
	const char *text; /* borrowed */
	uint64_t matched; /* lines */
	regex_t regex;
	unsigned nr_groups;
	char name[LOG_GROUPS][32]; /* of each group, from 1 on; empty: it has none */
	char open[LOG_NAME];	   /* the phase that it has begun; empty: none */
};

/* CPU time of this thread: where other processes are busy, a line does not seem expensive. */
int64_t log_spent_ns(void);
/* -EINVAL, and what is wrong with it goes to reterr. */
int log_pattern_compile(struct log_pattern *p, const char *text, bool phase, struct buf *reterr);
void log_pattern_release(struct log_pattern *p);

typedef void log_take_fn(void *arg, const struct job_message *m);
/* Tells what the line says, if it matches. There is a NUL behind it, and may be others in it. */
void log_pattern_match(struct log_pattern *p, const char *line, size_t len, log_take_fn *take, void *arg);
#endif
