#include "cmd/output.h"

#include "cmd/cmd.h"
#include "store/format.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int output_trouble(const char *path, int err)
{
	error("cannot write %s: %s%s", path, strerror(err),
		err == EACCES || err == EROFS || err == EPERM ? "; -o chooses another place" : "");
	return EXIT_TROUBLE;
}

/* As they begin: also one that is damaged, or still being written. */
static bool is_recording(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	uint32_t magic = 0;
	bool is =
		fd >= 0 && read(fd, &magic, sizeof(magic)) == sizeof(magic) && le32toh(magic) == BLOCK_MAGIC;

	if (fd >= 0)
		close(fd);
	return is;
}

int output_check(const char *path, bool force)
{
	struct stat st;

	if (!strcmp(path, "-") || lstat(path, &st) < 0)
		return EXIT_OK;
	if (S_ISDIR(st.st_mode)) {
		error("%s is a directory", path);
		return EXIT_USAGE;
	}
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		error("%s is no regular file, and is not replaced", path);
		return EXIT_USAGE;
	}
	if (S_ISREG(st.st_mode) && is_recording(path)) { /* perhaps the one that is being read */
		error("%s is a recording, and is not replaced", path);
		return EXIT_USAGE;
	}
	if (!force) {
		error("%s is there already: --force replaces it, -o chooses another place", path);
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

/* ".NAME.PID" beside it: the same file system, and hidden from whoever lists reports. */
static char *temporary_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	int directory = slash ? (int)(slash + 1 - path) : 0;
	char *name = NULL;

	/* The name may be as long as names can be: only its beginning. */
	if (asprintf(&name, "%.*s.%.100s.%d", directory, path, path + directory, (int)getpid()) < 0)
		return NULL;
	return name;
}

int output_open(struct output *o, const char *path, bool force)
{
	int status = output_check(path, force);

	*o = (struct output){.fd = -1, .force = force};
	if (status != EXIT_OK || !strcmp(path, "-"))
		return status;
	o->path = strdup(path);
	o->temporary = o->path ? temporary_name(path) : NULL;
	if (!o->temporary) {
		output_drop(o);
		return output_trouble(path, ENOMEM);
	}
	unlink(o->temporary); /* of one who had our PID and was killed */
	o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (o->fd < 0) {
		status = output_trouble(path, errno);
		free(o->temporary);
		o->temporary = NULL;
		output_drop(o);
	}
	return status;
}

int output_add(struct output *o, const struct buf *text)
{
	size_t done = 0;

	if (!o->path)
		return print(text);
	if (text->err)
		return output_trouble(o->path, -text->err);
	while (done < text->len) {
		ssize_t n = write(o->fd, text->data + done, text->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return output_trouble(o->path, n ? errno : EIO);
		done += (size_t)n;
	}
	o->written += done;
	return EXIT_OK;
}

static int take_name(const char *temporary, const char *path, bool force)
{
	if (force)
		return rename(temporary, path);
	if (!renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	return link(temporary, path) < 0 ? -1 : unlink(temporary);
}

int output_take(const char *temporary, const char *path, bool force)
{
	if (!take_name(temporary, path, force))
		return EXIT_OK;
	return errno == EEXIST ? output_check(path, false) : output_trouble(path, errno);
}

int output_close(struct output *o)
{
	int status = EXIT_OK, fd = o->fd;

	if (!o->path)
		return EXIT_OK;
	o->fd = -1;
	if (close(fd) < 0) /* NFS says only here that the disk is full */
		status = output_trouble(o->path, errno);
	else
		status = output_take(o->temporary, o->path, o->force);
	if (status == EXIT_OK) {
		free(o->temporary);
		o->temporary = NULL;
	}
	output_drop(o);
	return status;
}

void output_drop(struct output *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->temporary)
		unlink(o->temporary);
	free(o->temporary);
	free(o->path);
	*o = (struct output){.fd = -1};
}

int output_whole(const char *path, const struct buf *text, bool force)
{
	struct output o;
	int status = output_open(&o, path, force);

	if (status != EXIT_OK)
		return status;
	status = output_add(&o, text);
	if (status == EXIT_OK)
		return output_close(&o);
	output_drop(&o);
	return status;
}

int output_directory(const char *path)
{
	_cleanup_(freep) char *part = strdup(path);
	struct stat st = {.st_mode = S_IFDIR};

	if (!part)
		return output_trouble(path, ENOMEM);
	if (!*part)
		return output_trouble("''", ENOENT);
	for (char *p = part + 1;; p++) {
		char was = *p;

		if (was && was != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0777) < 0 && errno != EEXIST && (!was || errno != EROFS))
			return output_trouble(part, errno);
		*p = was;
		if (!was)
			break;
	}
	if (stat(path, &st) < 0 || access(path, W_OK | X_OK) < 0)
		return output_trouble(path, S_ISDIR(st.st_mode) ? errno : ENOTDIR);
	return S_ISDIR(st.st_mode) ? EXIT_OK : output_trouble(path, ENOTDIR);
}
