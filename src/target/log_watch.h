/* Reads logs of the job as they grow, and tells of the lines that match. The job is not touched: files are
 * looked at between ticks, by name, so that one that is replaced, cut off or not there yet is followed. */
#ifndef TARGET_LOG_WATCH_H
#define TARGET_LOG_WATCH_H

#include "target/log_pattern.h"

#include <sys/stat.h>

#define LOG_LINE                                                                                  \
	1024 /* bytes of a line that are looked at: one regexec() over them cannot be interrupted \
	      */
#define LOG_HEAD                                                                                           \
	4096	      /* bytes at the beginning of a file that are kept: when they differ it was rewritten \
		       */
#define LOG_AVOIDED 3 /* files of ours: the recording, one that it replaces, and the run log */

struct log_file {
	const char *path; /* borrowed */
	int fd;		  /* -1: not there yet */
	bool appeared;
	bool ours; /* a file that we write got its name */
	int error; /* of opening it */
	dev_t dev;
	ino_t ino;
	off_t at;   /* read so far */
	size_t len; /* of the line that has not ended */
	size_t head_len;
	char head[LOG_HEAD];
	char line[LOG_LINE + 1];
	struct log_pattern *pattern; /* of its own: each has its phases */
};

struct log_watch {
	struct {
		dev_t dev;
		ino_t ino;
	} avoided[LOG_AVOIDED];
	unsigned nr_avoided;
	struct log_file *file;
	unsigned nr_files, nr_patterns;
	unsigned nr_looks;
	int64_t until_ns; /* our CPU time at which the present look is over */
	uint64_t skipped; /* bytes that were not looked at, since the log grew too fast */
};

/* What is in the files already is not read. -EINVAL with a message: an expression is wrong; -ENOMEM. */
int log_watch_open(struct log_watch *w, const char *const *path, unsigned nr_paths, const char *const *phase,
	unsigned nr_phases, const char *const *mark, unsigned nr_marks, struct buf *reterr);
void log_watch_close(struct log_watch *w);
/* A file of ours: what is read from it would be written to it again, without end. It is not read from now on,
 * whatever gets its name. Returns the name of one that is this file, or NULL. */
const char *log_watch_avoid(struct log_watch *w, const struct stat *ours);
/* What has come since, at most so many bytes of each file, and for about so much CPU time. */
void log_watch_look(struct log_watch *w, size_t most, int64_t most_ns, log_take_fn *take, void *arg);
/* The rest, with a last line that has no end. */
void log_watch_finish(struct log_watch *w, log_take_fn *take, void *arg);
/* At the end: why a file was never read; "": it did not appear; NULL: it was read. */
const char *log_watch_unread(const struct log_file *f);
/* How many lines of all files an expression matched. */
uint64_t log_watch_matched(const struct log_watch *w, unsigned pattern);
#endif
