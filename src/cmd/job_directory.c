/* The directory of a run on many nodes: who writes what.
 *
 *	run.json		the launcher
 *	nodes/HOST.tacho	the recorder of that node
 *	clock/HOST.jsonl	the launcher: how far that node's clock is from ours
 *	tacho.log		the launcher
 *	control			the launcher, at the end
 *
 * Each file has one writer, and nothing is locked: it is fit for NFS and Lustre. */
#include "cmd/job.h"

#include "base/str.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "cmd/cmd.h"
#include "cmd/record.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NUMBERS_MOST 10000

const char *job_directory_file(const struct job_directory *d, const char *fmt, ...)
{
	static char path[PATH_MAX + 512];
	size_t n = strlen(d->path);
	va_list ap;

	memcpy(path, d->path, n);
	path[n++] = '/';
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(path) - n, fmt, ap);
	va_end(ap);
	return path;
}

/* Whether it is new and ours. One without run.json is as good as new: the user may have made it. */
static int claim(struct job_directory *d)
{
	struct stat st;

	if (mkdir(d->path, 0700) < 0 && errno != EEXIST)
		return -errno;
	/* Job numbers can be foreseen: where others may write, one may have made it before us. */
	if (lstat(d->path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & S_IWOTH)
		return -EEXIST;
	if (access(job_directory_file(d, "run.json"), F_OK) == 0)
		return -EEXIST;
	if (mkdir(job_directory_file(d, "nodes"), 0700) < 0)
		return -errno; /* also EEXIST: another launcher was faster */
	return mkdir(job_directory_file(d, "clock"), 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_numbered(struct job_directory *d, const char *base, const char *name)
{
	int r = -EEXIST;

	for (unsigned i = 1; r == -EEXIST && i < NUMBERS_MOST; i++) {
		int n = i == 1 ? snprintf(d->path, sizeof(d->path), "%s/%s", base, name)
			       : snprintf(d->path, sizeof(d->path), "%s/%s-%u", base, name, i);

		if (n < 0 || (size_t)n >= sizeof(d->path) - 64)
			return -ENAMETOOLONG;
		r = claim(d);
	}
	return r;
}

int job_directory_make(struct job_directory *d, const char *save_dir, const char *name)
{
	_cleanup_(freep) char *inside = NULL, *base = NULL;
	int r;

	d->log = -1;
	if (asprintf(&inside, "%s/%s", save_dir, name) < 0)
		return -ENOMEM;
	r = make_parents(inside);
	if (r < 0)
		return r;
	base = realpath(save_dir, NULL);
	if (!base)
		return -errno;
	r = make_numbered(d, base, name);
	if (r < 0)
		return r;
	d->log = open(job_directory_file(d, "tacho.log"),
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return d->log < 0 ? -errno : 0;
}

void job_log(struct job_directory *d, const char *level, const char *host, const char *fmt, ...)
{
	char text[JOB_LINE_SIZE], when[UNITS_SIZE];
	struct buf line;
	va_list ap;

	if (d->log < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_init(&line, 4 * sizeof(text));
	buf_addf(&line, "%s | %s | %s | ", format_iso8601(when, job_wall()), level, host);
	escape_bytes(&line, text, strlen(text));
	buf_addch(&line, '\n');
	/* A log that cannot be written is no reason to stop. */
	if (!line.err && write(d->log, line.data, line.len) < 0) {
		close(d->log);
		d->log = -1;
	}
	buf_release(&line);
}

int job_directory_write(const struct job_directory *d, const char *name, const struct buf *text)
{
	return file_replace(job_directory_file(d, "%s", name), text, NULL);
}

void job_directory_finish(const struct job_directory *d)
{
	struct buf text;

	buf_init(&text, 64);
	buf_adds(&text, "FINISHED\n");
	job_directory_write(d, JOB_CONTROL, &text);
	buf_release(&text);
}
