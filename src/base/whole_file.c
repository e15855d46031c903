/* Reads and writes small files: see whole_file.h. */
#include "base/whole_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* O_NONBLOCK: the open of a pipe without a writer would wait for one. */
int file_read(const char *path, size_t most, char **ret, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = fd < 0 ? -errno : 0;
	char *text = NULL;
	struct stat st;
	size_t at = 0;
	ssize_t n = 1;

	if (r >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		r = -EINVAL;
	if (r >= 0 && (uint64_t)st.st_size > most)
		r = -EFBIG;
	if (r >= 0 && !(text = malloc((size_t)st.st_size + 1)))
		r = -ENOMEM;
	while (r >= 0 && n && at < (size_t)st.st_size) {
		n = read(fd, text + at, (size_t)st.st_size - at);
		if (n < 0 && errno != EINTR)
			r = -errno;
		at += (size_t)MAX(n, (ssize_t)0);
	}
	if (fd >= 0)
		close(fd);
	if (r < 0) {
		free(text);
		return r;
	}
	text[at] = 0;
	*ret = text;
	*ret_len = at;
	return 0;
}

static int write_whole(int fd, const struct buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(fd, b->data + at, b->len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

static int replace(const char *path, const struct buf *head, const struct buf *rest, bool is_public)
{
	_cleanup_(freep) char *temporary = NULL;
	int fd, r;

	if (head->err || (rest && rest->err))
		return head->err ? head->err : rest->err;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return -errno;
	r = write_whole(fd, head);
	if (r >= 0 && rest)
		r = write_whole(fd, rest);
	if (r >= 0 && (is_public ? fchmod(fd, 0644) : fsync(fd)) < 0)
		r = -errno;
	if (close(fd) < 0 && r >= 0)
		r = -errno;
	if (r >= 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

int file_replace(const char *path, const struct buf *head, const struct buf *rest)
{
	return replace(path, head, rest, false);
}

int file_publish(const char *path, const struct buf *text)
{
	return replace(path, text, NULL, true);
}

void file_read_why(struct buf *why, int error)
{
	if (error == -EINVAL)
		buf_adds(why, "is not a regular file");
	else if (error == -EFBIG)
		buf_adds(why, "is too large");
	else
		buf_addf(why, "cannot be read: %s", strerror(-error));
}
