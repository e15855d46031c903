/* Lines of text between the launcher of a job on many nodes and the recorder of a node.
 *
 * By pipes, where what starts the recorders passes standard input and output on (srun, ssh); otherwise by two
 *files in a directory that all nodes see, each with one writer: the reader looks for what was added.
 *
 *	launcher to nodes:	clock NUMBER		answer with your time
 *				end			the job is over
 *	node to launcher:	tacho HOST hello
 *				tacho HOST clock NUMBER NANOSECONDS	its wall clock
 *				tacho HOST recording	the first sample is taken
 *				tacho HOST over		what is left of the job only waits for us
 *				tacho HOST log LEVEL TEXT
 *				tacho HOST ended
 *
 * Nothing here waits: a line that cannot be written at once is lost. */
#ifndef TARGET_JOB_LINE_H
#define TARGET_JOB_LINE_H

#include "base/base.h"

#define JOB_LINE_SIZE 4096

struct job_line {
	int in, out;   /* -1: none */
	char *in_path; /* where the other end writes, if by files: opened anew for each look */
	int64_t at;    /* how much of it was read */
	bool closed;   /* the other end is gone */
	size_t used;
	char text[JOB_LINE_SIZE]; /* read, and not yet handed out */
};

/* The descriptors are the line's from now on. */
void job_line_open(struct job_line *l, int in, int out);
/* 0, or a negative errno: our file cannot be made. */
int job_line_open_files(struct job_line *l, const char *in_path, const char *out_path);
void job_line_close(struct job_line *l);
/* The next whole line without its end, valid until the next call; NULL: there is none now. Longer ones than
 * JOB_LINE_SIZE come in pieces. */
const char *job_line_next(struct job_line *l);
void job_line_say(struct job_line *l, const char *fmt, ...) _printf_(2, 3);
#endif
