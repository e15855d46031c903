/* Files that are made in a stage and get their names when they are whole: see output.h. */
#include "cmd/output.h"

#include "base/owned.h"
#include "cmd/cmd.h"
#include "store/format.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int output_trouble(const char *path, int err)
{
	error("cannot write %s: %s%s", path, why_not_written(err),
		err == EACCES || err == EROFS || err == EPERM ? "; -o chooses another place" : "");
	return EXIT_TROUBLE;
}

/* By its beginning: also one that is damaged, or still being written. */
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
	if (S_ISREG(st.st_mode) && is_recording(path)) { /* it may be the one that is being read */
		error("%s is a recording, and is not replaced", path);
		return EXIT_USAGE;
	}
	if (!force) {
		error("%s is there already: --force replaces it, -o chooses another place", path);
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

/* ---- the set ---- */

int outputs_stage(struct outputs *set, const char *directory, const char **ret)
{
	int r;

	for (size_t i = 0; i < set->nr_stages; i++) {
		*ret = set->stage[i].path;
		if (!strcmp(set->stage[i].directory, directory))
			return EXIT_OK;
	}
	if (set->nr_stages == ARRAY_SIZE(set->stage))
		return output_trouble(directory, E2BIG);
	r = stage_open(&set->stage[set->nr_stages], directory);
	if (r < 0)
		return output_trouble(directory, -r);
	*ret = set->stage[set->nr_stages++].path;
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

static bool may_replace(const struct outputs *set, const char *path)
{
	return set->force || (set->may_replace && !strcmp(set->may_replace, path));
}

int outputs_take(struct outputs *set)
{
	int status = EXIT_OK;

	for (size_t i = 0; status == EXIT_OK && i < set->nr_paths; i++)
		status = output_check(set->path[i], may_replace(set, set->path[i]));
	for (size_t i = 0; status == EXIT_OK && i < set->nr_paths; i++)
		status = output_take(set->temporary[i], set->path[i], may_replace(set, set->path[i]));
	return status;
}

void outputs_drop(struct outputs *set)
{
	for (size_t i = 0; i < set->nr_stages; i++)
		stage_close(&set->stage[i]);
	for (size_t i = set->nr_made; i-- > 0;)
		rmdir(set->made[i]); /* unless something of ours, or of others, is in it */
	texts_free(set->temporary, set->nr_temporary);
	texts_free(set->path, set->nr_paths);
	texts_free(set->made, set->nr_made);
	*set = (struct outputs){.force = set->force};
}

static int make_directory(struct outputs *set, const char *path)
{
	if (mkdir(path, 0777) < 0)
		return -errno;
	if (texts_take(&set->made, &set->nr_made, strdup(path)) == 0)
		return 0;
	rmdir(path);
	return -ENOMEM;
}

int outputs_directory(struct outputs *set, const char *path)
{
	_cleanup_(freep) char *part = strdup(path);
	struct stat st = {.st_mode = S_IFDIR};

	if (!part)
		return output_trouble(path, ENOMEM);
	if (!*part)
		return output_trouble("''", ENOENT);
	for (char *p = part + 1;; p++) {
		char was = *p;
		int r;

		if (was && was != '/')
			continue;
		*p = 0;
		r = make_directory(set, part);
		if (r < 0 && r != -EEXIST && (!was || r != -EROFS))
			return output_trouble(part, -r);
		*p = was;
		if (!was)
			break;
	}
	if (stat(path, &st) < 0 || access(path, W_OK | X_OK) < 0)
		return output_trouble(path, S_ISDIR(st.st_mode) ? errno : ENOTDIR);
	return S_ISDIR(st.st_mode) ? EXIT_OK : output_trouble(path, ENOTDIR);
}

/* ---- a file ---- */

static int stage_of(struct outputs *set, const char *path, const char **ret)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? MAX((size_t)(slash - path), (size_t)1) : 1;
	_cleanup_(freep) char *directory = strndup(slash ? path : ".", len);

	return directory ? outputs_stage(set, directory, ret) : output_trouble(path, ENOMEM);
}

int output_open(struct outputs *set, struct output *o, const char *path)
{
	int status = output_check(path, may_replace(set, path));
	const char *stage = NULL;

	*o = (struct output){.set = set, .fd = -1};
	if (status != EXIT_OK || !strcmp(path, "-"))
		return status;
	status = stage_of(set, path, &stage);
	if (status != EXIT_OK)
		return status;
	o->path = strdup(path);
	if (!o->path || asprintf(&o->temporary, "%s/%zu", stage, set->nr_opened++) < 0) {
		o->temporary = NULL;
		output_drop(o);
		return output_trouble(path, ENOMEM);
	}
	o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (o->fd < 0) {
		status = output_trouble(path, errno);
		output_drop(o);
	}
	return status;
}

int output_add(struct output *o, const struct buf *text)
{
	size_t done = 0;

	if (!o->path)
		return print_shown(text);
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

static int keep(struct outputs *set, struct output *o)
{
	int r = texts_take(&set->temporary, &set->nr_temporary, TAKE_PTR(o->temporary));

	return r < 0 ? r : texts_take(&set->path, &set->nr_paths, TAKE_PTR(o->path));
}

int output_close(struct output *o)
{
	int fd = o->fd, r;

	if (!o->path)
		return EXIT_OK;
	o->fd = -1;
	if (close(fd) < 0) /* NFS reports a full disk only here */
		r = output_trouble(o->path, errno);
	else if (keep(o->set, o) < 0)
		r = output_trouble("a file", ENOMEM);
	else
		return EXIT_OK;
	output_drop(o);
	return r;
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

int outputs_add(struct outputs *set, const char *path, const struct buf *text)
{
	struct output o;
	int status = output_open(set, &o, path);

	if (status != EXIT_OK)
		return status;
	status = output_add(&o, text);
	if (status == EXIT_OK)
		return output_close(&o);
	output_drop(&o);
	return status;
}

int output_whole(const char *path, const struct buf *text, bool force)
{
	struct outputs set = {.force = force};
	int status = outputs_add(&set, path, text);

	if (status == EXIT_OK)
		status = outputs_take(&set);
	outputs_drop(&set);
	return status;
}
