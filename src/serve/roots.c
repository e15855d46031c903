/* Files below a directory: the kernel sees to it that no `..` and no link leads out of it (openat2,
 * RESOLVE_BENEATH); where it cannot, no link is followed at all. */
#include "serve/roots.h"

#include "base/owned.h"
#include "query/run_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

static int root_add(struct roots *r, const char *path, struct buf *reterr)
{
	_cleanup_(freep) char *real = realpath(path, NULL);
	struct serve_root *root;
	struct stat st;
	char *slash;

	if (!real || stat(real, &st) < 0) {
		int e = errno;

		buf_addf(reterr, "%s: %s", path, strerror(e));
		return -e;
	}
	root = ARRAY_ADD(r->item, r->nr);
	if (!root)
		return -ENOMEM;
	root->fd = -1;
	root->path = TAKE_PTR(real);
	if (!S_ISDIR(st.st_mode)) {
		slash = strrchr(root->path, '/');
		root->only = strdup(slash + 1);
		if (!root->only)
			return -ENOMEM;
		slash[slash == root->path] = 0;
	}
	root->fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root->fd < 0) {
		int e = errno;

		buf_addf(reterr, "%s: %s", path, strerror(e));
		return -e;
	}
	return 0;
}

int roots_open(struct roots *ret, const char *const *path, size_t nr, struct buf *reterr)
{
	int r = 0;

	*ret = (struct roots){0};
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = root_add(ret, path[i], reterr);
	if (r < 0)
		roots_close(ret);
	return r;
}

void roots_close(struct roots *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		free(r->item[i].path);
		free(r->item[i].only);
		if (r->item[i].fd >= 0)
			close(r->item[i].fd);
	}
	free(r->item);
	*r = (struct roots){0};
}

/* Step by step, and no step is a link. */
static int open_by_steps(int fd, const char *name, int flags)
{
	int at = dup(fd), next;

	while (at >= 0 && *name) {
		size_t n = strcspn(name, "/");
		char part[NAME_MAX + 1];
		bool last = !name[n];

		if (n > NAME_MAX || (n == 2 && !memcmp(name, "..", 2))) {
			close(at);
			return -EXDEV;
		}
		memcpy(part, name, n);
		part[n] = 0;
		next = openat(
			at, n ? part : ".", (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
		close(at);
		at = next;
		name += n + strspn(name + n, "/");
	}
	return at;
}

static int open_beneath(int fd, const char *name, int flags)
{
	static bool lacks; /* a kernel before 5.6, or a sandbox */
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long r;

	if (flags & O_PATH)
		how.flags = (uint64_t)(flags | O_CLOEXEC);
	if (!lacks) {
		r = syscall(SYS_openat2, fd, name, &how, sizeof(how));
		if (r >= 0)
			return (int)r;
		if (errno != ENOSYS && errno != EPERM)
			return -errno;
		lacks = errno == ENOSYS;
	}
	return open_by_steps(fd, name, flags);
}

/* Without links on the way. */
static int open_again(const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return (int)fd;
}

/* Another directory of the same user that has its path now. -1: there is none. */
static int replaced(const struct serve_root *root)
{
	struct stat had, has;
	int fd;

	if (fstat(root->fd, &had) < 0 || lstat(root->path, &has) < 0 ||
		(had.st_dev == has.st_dev && had.st_ino == has.st_ino))
		return -1;
	fd = open_again(root->path);
	if (fd >= 0 && (fstat(fd, &has) < 0 || has.st_uid != had.st_uid)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int get_in(const struct serve_root *root, const char *name, int flags)
{
	int other = replaced(root), r = open_beneath(other < 0 ? root->fd : other, name, flags);

	if (other >= 0)
		close(other);
	return r;
}

int roots_get(const struct roots *r, const char *path, int flags)
{
	int e = -EXDEV;

	for (size_t i = 0; i < r->nr; i++) {
		const struct serve_root *root = &r->item[i];
		size_t n = strlen(root->path);
		const char *rest = path + n;

		if (strncmp(path, root->path, n) != 0 || (*rest && *rest != '/' && n > 1))
			continue;
		rest += strspn(rest, "/");
		if (root->only && strcmp(rest, root->only) != 0)
			continue;
		e = get_in(root, *rest ? rest : ".", flags);
		if (e >= 0)
			return e;
	}
	return e;
}

bool roots_has(const struct roots *r, const char *path, struct stat *ret)
{
	int fd = roots_get(r, path, O_RDONLY);
	bool has = fd >= 0 && fstat(fd, ret) == 0 && (S_ISREG(ret->st_mode) || S_ISDIR(ret->st_mode));

	if (fd >= 0)
		close(fd);
	return has;
}
