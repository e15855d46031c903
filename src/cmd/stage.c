/* A private directory for files in the making: see stage.h. */
#include "cmd/stage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define PREFIX ".tacho-stage-"
#define LOCK "owner"
#define MARK "tacho stage\n"
#define ENTRIES_MOST 100000 /* of a directory that is searched for old stages */
#define DEPTH_MOST 3
#define HOST_SIZE 256

/* ---- removing ---- */

/* Everything in the directory but `keep`. Never follows a link, and never goes deeper than a stage does. */
static void empty(int directory, const char *keep, unsigned depth)
{
	int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *entry;

	if (!dir && again >= 0)
		close(again);
	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		int fd;

		if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, keep) ||
			!unlinkat(directory, name, 0) || depth == DEPTH_MOST)
			continue;
		fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		empty(fd, "", depth + 1);
		close(fd);
		unlinkat(directory, name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
}

/* The owner's file goes last: if we are killed here, the next program can go on. */
static void remove_stage(int parent, const char *name, int stage)
{
	empty(stage, LOCK, 0);
	unlinkat(stage, LOCK, 0);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* ---- the owner ---- */

/* The content of the owner's file: the name of this machine, because locks on some network file systems are
 * known to one machine only. */
static size_t owner_text(char out[static HOST_SIZE + sizeof(MARK)])
{
	char host[HOST_SIZE] = "";

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = 0;
	return (size_t)snprintf(out, HOST_SIZE + sizeof(MARK), MARK "%s", host);
}

/* It is written when the lock is ours: a file that is still empty may be about to be locked. */
static int owner_write(int stage)
{
	char text[HOST_SIZE + sizeof(MARK)];
	size_t len = owner_text(text);
	int fd = openat(stage, LOCK, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	/* Without locks, a stage that a killed process left is never removed; everything else works. */
	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && write(fd, text, len) != (ssize_t)len)
		(void)!ftruncate(fd, 0);
	return fd;
}

/* The lock of a stage whose owner is gone; negative: it still runs, or it is not known. */
static int owner_gone(int stage)
{
	char want[HOST_SIZE + sizeof(MARK)], is[sizeof(want)];
	size_t len = owner_text(want);
	int fd = openat(stage, LOCK, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		!flock(fd, LOCK_EX | LOCK_NB) && pread(fd, is, sizeof(is), 0) == (ssize_t)len &&
		!memcmp(is, want, len))
		return fd;
	close(fd);
	return -EBUSY;
}

static void clean_one(int directory, const char *name)
{
	_cleanup_(closep) int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(closep) int lock = -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 07777) != 0700)
		return;
	lock = owner_gone(fd);
	if (lock >= 0)
		remove_stage(directory, name, fd);
}

/* Removes stages in the directory that killed processes of this user left behind. */
static void stage_clean(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;

	for (size_t i = 0; dir && i < ENTRIES_MOST && (entry = readdir(dir)); i++)
		if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			clean_one(dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

/* ---- opening and closing ---- */

int stage_open(struct stage *s, const char *directory)
{
	_cleanup_(closep) int fd = -1;
	size_t len = strlen(directory);
	int r;

	*s = (struct stage){.lock = -1};
	stage_clean(directory);
	s->directory = strdup(directory);
	if (!s->directory ||
		asprintf(&s->path, "%s%s%sXXXXXX", directory, len && directory[len - 1] == '/' ? "" : "/",
			PREFIX) < 0) {
		free(s->directory);
		*s = (struct stage){.lock = -1};
		return -ENOMEM;
	}
	if (mkdtemp(s->path))
		fd = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		s->lock = owner_write(fd);
		return 0;
	}
	r = -errno;
	free(s->path);
	free(s->directory);
	*s = (struct stage){.lock = -1};
	return r;
}

void stage_close(struct stage *s)
{
	_cleanup_(closep) int fd =
		s->path ? open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd >= 0)
		remove_stage(AT_FDCWD, s->path, fd);
	if (s->lock >= 0)
		close(s->lock);
	free(s->path);
	free(s->directory);
	*s = (struct stage){.lock = -1};
}
