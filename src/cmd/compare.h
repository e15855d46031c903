/* `tacho compare`: what both executables share. Text, Markdown and JSON are written by tacho itself; the page
 * and whatever has pictures by tacho-report, whose rows are the same. */
#ifndef CMD_COMPARE_H
#define CMD_COMPARE_H

#include "document/compare.h"

#include "cli/cli.h"

enum compare_form { COMPARE_TEXT, COMPARE_MARKDOWN, COMPARE_JSON, COMPARE_HTML, NR_COMPARE_FORMS };
enum compare_align { ALIGN_TIME, ALIGN_PHASES };

struct compare_args {
	bool all, force;
	int format, align;
	const char *output;
	struct opt_list fail_if;
};

extern const struct cmd cmd_compare;

struct compare_job {
	struct compare_operand *operand;
	size_t nr;
	struct comparison *c;
	struct compare_verdict *verdict;
	size_t nr_verdicts;
};

/* All metrics by name, and a directory to write to: for the page. */
bool compare_wants_pictures(const struct compare_args *a);
bool compare_into_directory(const struct compare_args *a);
/* Reads and compares; wrong options end the program. */
void compare_job_open(struct compare_job *job, const struct compare_args *a, int argc, char **argv);
void compare_job_close(struct compare_job *job);
/* After writing: prints on stderr what failed, unless it was `shown` in the output. Returns the exit
 * status. */
int compare_job_status(const struct compare_job *job, bool shown, int status);
#endif
