/* The same command several times: tacho run -r N. */
#ifndef CMD_RUN_REPEAT_H
#define CMD_RUN_REPEAT_H

#include <stdbool.h>
#include <stddef.h>

struct repeat {
	int (*run)(struct repeat *r); /* in a process of its own, once; gives the exit status */
	const void *args;	      /* its own */
	int argc;
	char **argv;
	const char *output;  /* template of the recording's name: of the present run */
	const char *command; /* argv, NUL-joined, for people */
	size_t command_len;
	bool quiet;
	int tell_fd; /* in that process: repeat_told() */
};

/* The exit status. */
int repeat_run(struct repeat *r, size_t times);
/* Where the recording is. */
void repeat_told(const struct repeat *r, const char *path);
#endif
