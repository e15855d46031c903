#include "store/append.h"

#include "store/crc32c.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#define PENDING_BOUND ((size_t)4 << 20)
#define PENDING_KEEP ((size_t)512 << 10) /* memory that is not given back after a burst */

/* An unnamed file that gets its name once the START block is in it, so that nobody ever sees an empty file.
 * -EOPNOTSUPP where the file system (NFS, FAT...) or a missing /proc does not allow it. */
static int open_unnamed(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(freep) char *dir =
		!slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
	int fd;

	if (!dir)
		return -ENOMEM;
	fd = open(dir, O_TMPFILE | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	return fd < 0 ? -EOPNOTSUPP : fd;
}

static int give_name(int fd, const char *path)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Only what a recorder could have made is removed: never a device, a pipe or a directory. */
static int make_way(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return -EEXIST;
	return unlink(path) < 0 ? -errno : 0;
}

/* Says to `check` that somebody writes: advice only, so a file system without locks is no error. */
static void lock_softly(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	(void)fcntl(fd, F_OFD_SETLK, &lock);
}

static int put_start(struct append *a, const uint8_t id[16])
{
	size_t room;
	uint8_t *p = append_payload(a, &room);

	memcpy(put_u32(p, FORMAT_MINOR), id, 16);
	append_block(a, BLOCK_START, 0, 20);
	return append_push(a);
}

static int open_named(struct append *a, const char *path, const uint8_t id[16])
{
	int r;

	a->fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	if (a->fd < 0)
		return -errno;
	lock_softly(a->fd);
	r = put_start(a, id);
	if (r < 0)
		unlink(path);
	return r;
}

static int open_file(struct append *a, const char *path, const uint8_t id[16])
{
	int r;

	a->fd = open_unnamed(path);
	if (a->fd < 0)
		return open_named(a, path, id);
	lock_softly(a->fd);
	r = put_start(a, id);
	if (r < 0)
		return r;
	r = give_name(a->fd, path);
	if (r == 0 || r == -EEXIST)
		return r;
	close(a->fd);
	a->written = 0;
	a->sequence = 0;
	return open_named(a, path, id);
}

int append_open(struct append *a, const char *path, bool force)
{
	uint8_t id[16];
	int r;

	*a = (struct append){.fd = -1, .bound = PENDING_BOUND};
	a->reserved = PENDING_BOUND + BLOCK_HEADER + BLOCK_MAX;
	a->pending = mmap(NULL, a->reserved, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->pending == MAP_FAILED) {
		a->pending = NULL;
		return -errno;
	}
	a->path = strdup(path);
	if (!a->path)
		return -ENOMEM;
	if (getrandom(id, sizeof(id), GRND_NONBLOCK) != sizeof(id)) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		put_u64(put_u64(id, (uint64_t)now.tv_nsec), (uint64_t)now.tv_sec << 22 ^ (uint64_t)getpid());
	}
	a->file = get_u32(id);
	r = force ? make_way(path) : 0;
	return r < 0 ? r : open_file(a, path, id);
}

void append_close(struct append *a)
{
	if (a->fd >= 0)
		close(a->fd);
	if (a->pending)
		munmap(a->pending, a->reserved);
	free(a->path);
	*a = (struct append){.fd = -1};
}

uint8_t *append_payload(struct append *a, size_t *ret_room)
{
	size_t after_header = a->end + BLOCK_HEADER;

	*ret_room = after_header >= a->bound ? 0 : MIN(a->bound - after_header, (size_t)BLOCK_MAX);
	return a->pending + after_header;
}

uint64_t append_block(struct append *a, enum block_type type, uint16_t flags, size_t length)
{
	struct block_header h = {
		.file = a->file,
		.sequence = a->sequence++,
		.type = (uint16_t)type,
		.flags = flags,
		.length = (uint32_t)length,
		.crc = crc32c(a->pending + a->end + BLOCK_HEADER, length),
	};
	uint64_t offset = a->written + (a->end - a->start);

	block_header_put(a->pending + a->end, &h);
	a->end += BLOCK_HEADER + length;
	return offset;
}

static size_t block_size(const uint8_t *p)
{
	return BLOCK_HEADER + get_u32(p + 16);
}

int append_push(struct append *a)
{
	/* `whole` walks over the blocks; start may stand inside the first of them. */
	size_t whole = 0;

	a->failing = false;
	while (a->start < a->end) {
		while (whole <= a->start)
			whole += block_size(a->pending + whole);
		ssize_t n = write(a->fd, a->pending + a->start, whole - a->start);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			a->failing = true;
			return n < 0 ? -errno : -ENOSPC;
		}
		a->start += (size_t)n;
		a->written += (size_t)n;
	}
	if (a->end > PENDING_KEEP)
		madvise(a->pending + PENDING_KEEP, a->reserved - PENDING_KEEP, MADV_DONTNEED);
	a->start = a->end = 0;
	return 0;
}

int append_drop(struct append *a)
{
	size_t whole = 0;

	while (whole < a->start) {
		size_t next = whole + block_size(a->pending + whole);

		if (next > a->start) {
			if (ftruncate(a->fd, (off_t)(a->written - (a->start - whole))) < 0)
				return -errno;
			a->written -= a->start - whole;
			break;
		}
		whole = next;
	}
	a->start = a->end = 0;
	return 0;
}
