/* Reads and writes lines without waiting. See job_line.h. */
#include "target/job_line.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void never_wait(int fd)
{
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void job_line_open(struct job_line *l, int in, int out)
{
	*l = (struct job_line){.in = in, .out = out};
	never_wait(in);
	never_wait(out);
}

int job_line_open_files(struct job_line *l, const char *in_path, const char *out_path)
{
	*l = (struct job_line){.in = -1, .out = -1, .in_path = strdup(in_path)};
	if (!l->in_path)
		return -ENOMEM;
	l->out = open(out_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return l->out < 0 ? -errno : 0;
}

void job_line_close(struct job_line *l)
{
	if (l->in >= 0)
		close(l->in);
	if (l->out >= 0 && l->out != l->in)
		close(l->out);
	free(l->in_path);
	*l = (struct job_line){.in = -1, .out = -1, .closed = true};
}

/* A file is opened for each look: network file systems show what another node has added only then. */
static ssize_t read_file(struct job_line *l, char *to, size_t room)
{
	int fd = open(l->in_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	ssize_t n = fd < 0 ? 0 : pread(fd, to, room, (off_t)l->at);

	if (fd >= 0)
		close(fd);
	l->at += MAX(n, 0);
	return MAX(n, 0);
}

static void read_more(struct job_line *l)
{
	size_t room = sizeof(l->text) - 1 - l->used;
	ssize_t n;

	if (!room || l->closed)
		return;
	if (l->in_path) {
		n = read_file(l, l->text + l->used, room);
	} else {
		do
			n = l->in < 0 ? 0 : read(l->in, l->text + l->used, room);
		while (n < 0 && errno == EINTR);
		l->closed = n == 0 || (n < 0 && errno != EAGAIN);
	}
	l->used += (size_t)MAX(n, 0);
	l->text[l->used] = 0;
}

const char *job_line_next(struct job_line *l)
{
	static char line[JOB_LINE_SIZE];
	char *end = memchr(l->text, '\n', l->used);
	size_t n;

	if (!end) {
		read_more(l);
		end = memchr(l->text, '\n', l->used);
	}
	if (!end && l->used < sizeof(l->text) - 1)
		return NULL;
	n = end ? (size_t)(end - l->text) : l->used;
	memcpy(line, l->text, n);
	line[n] = 0;
	n += end != NULL;
	l->used -= n;
	memmove(l->text, l->text + n, l->used);
	return line;
}

void job_line_say(struct job_line *l, const char *fmt, ...)
{
	char text[JOB_LINE_SIZE];
	va_list ap;
	int n;

	if (l->out < 0)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	n = MIN(n, (int)sizeof(text) - 2);
	text[n++] = '\n';
	/* Shorter than what a pipe takes in one piece. */
	while (write(l->out, text, (size_t)n) < 0 && errno == EINTR)
		;
}
