/* The end of the file, as append.h describes it: making the file under a free name, queueing blocks,
 * writing them. */
#include "store/append.h"

#include "store/crc32c.h"
#include "store/store.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#define PENDING_BOUND ((size_t)4 << 20)
#define NUMBER_MAX 1000000		 /* of recordings of one name */
#define NUMBER_SIZE 10			 /* with its dash and the end of the text */
#define PENDING_KEEP ((size_t)512 << 10) /* memory that is not given back after a burst */

/* An unnamed file that gets its name once the START block is in it, so that no reader ever sees an empty
 * file. -EOPNOTSUPP where the file system (NFS, FAT...) or a missing /proc does not allow it. */
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

/* ---- the name ---- */

static const char ending[] = ".tacho";

/* As it was given, or with "-2" and so on before its ending. */
static void set_name(struct append *a, const char *path, unsigned number)
{
	size_t length = strlen(path), stem = length;

	if (number < 2) {
		snprintf(a->path, length + NUMBER_SIZE, "%s", path);
		return;
	}
	if (length > strlen(ending) && !strcmp(path + length - strlen(ending), ending))
		stem -= strlen(ending);
	snprintf(a->path, length + NUMBER_SIZE, "%.*s-%u%s", (int)stem, path, number, path + stem);
}

static bool is_taken(struct append *a, const char *path, unsigned number)
{
	struct stat st;

	set_name(a, path, number);
	return lstat(a->path, &st) == 0;
}

/* A number that is free now, found with few lookups even where thousands are taken. */
static unsigned free_number(struct append *a, const char *path)
{
	unsigned taken = 1, free = 2;

	while (free < NUMBER_MAX && is_taken(a, path, free)) {
		taken = free;
		free *= 2;
	}
	while (free - taken > 1) {
		unsigned middle = taken + (free - taken) / 2;

		if (is_taken(a, path, middle))
			taken = middle;
		else
			free = middle;
	}
	return free;
}

/* Tries names until one is free. `take` makes a->path or returns -EEXIST, and is atomic: of many processes
 * that try the same name at once, one gets it. O_EXCL works on NFS too; linkat() of an unnamed file works
 * only on local file systems. */
static int take_name(struct append *a, const char *path, unsigned naming, int (*take)(struct append *a))
{
	int r;

	set_name(a, path, 1);
	r = take(a);
	if (r != -EEXIST || !(naming & STORE_NUMBER))
		return r;
	for (unsigned n = free_number(a, path); r == -EEXIST && n < NUMBER_MAX; n++) {
		set_name(a, path, n);
		r = take(a);
	}
	return r;
}

static int give_name(struct append *a)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", a->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, a->path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int make_named(struct append *a)
{
	a->fd = open(a->path, O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	return a->fd < 0 ? -errno : 0;
}

static bool is_being_written(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Only what a recorder could have made is removed: never a device, a pipe or a directory. */
static int make_way(const char *path, bool unless_written)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return -EEXIST;
	if (unless_written && is_being_written(path))
		return -EEXIST;
	return unlink(path) < 0 ? -errno : 0;
}

/* Tells `check` that the file is being written. Advisory, so a file system without locks is no error. */
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

static int open_named(struct append *a, const char *path, unsigned naming, const uint8_t id[16])
{
	int r = take_name(a, path, naming, make_named);

	if (r < 0)
		return r;
	lock_softly(a->fd);
	r = put_start(a, id);
	if (r < 0)
		unlink(a->path);
	return r;
}

static int open_file(struct append *a, const char *path, unsigned naming, const uint8_t id[16])
{
	int r;

	a->fd = open_unnamed(path);
	if (a->fd < 0)
		return open_named(a, path, naming, id);
	lock_softly(a->fd);
	r = put_start(a, id);
	if (r < 0)
		return r;
	r = take_name(a, path, naming, give_name);
	if (r == 0 || r == -EEXIST)
		return r;
	close(a->fd);
	a->written = 0;
	a->sequence = 0;
	return open_named(a, path, naming, id);
}

static void make_id(uint8_t id[16])
{
	struct timespec now;

	if (getrandom(id, 16, GRND_NONBLOCK) == 16)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	put_u64(put_u64(id, (uint64_t)now.tv_nsec), (uint64_t)now.tv_sec << 22 ^ (uint64_t)getpid());
}

int append_open(struct append *a, const char *path, unsigned naming)
{
	uint8_t id[16];
	int r = 0;

	*a = (struct append){.fd = -1, .bound = PENDING_BOUND};
	a->reserved = PENDING_BOUND + BLOCK_HEADER + BLOCK_MAX;
	a->pending = mmap(NULL, a->reserved, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->pending == MAP_FAILED) {
		a->pending = NULL;
		return -errno;
	}
	a->path = malloc(strlen(path) + NUMBER_SIZE);
	if (!a->path)
		return -ENOMEM;
	make_id(id);
	a->file = get_u32(id);
	if (naming & STORE_REPLACE)
		r = make_way(path, naming & STORE_NUMBER);
	if (r < 0 && !(r == -EEXIST && naming & STORE_NUMBER))
		return r;
	return open_file(a, path, naming, id);
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

	/* Without the schema and what is before it nothing can be read. Blocks that wait for a full disk must
	 * not push out what is in the file. */
	if (type == BLOCK_START || type == BLOCK_SCHEMA)
		a->nr_spare = 0;
	else if (!a->failing)
		a->spare[a->nr_spare++ % APPEND_LAST] = (struct append_spare){offset, h.sequence};
	block_header_put(a->pending + a->end, &h);
	a->end += BLOCK_HEADER + length;
	assert(a->start <= a->end && a->end <= a->reserved);
	return offset;
}

static size_t block_size(const uint8_t *p)
{
	return BLOCK_HEADER + get_u32(p + 16);
}

static uint32_t block_sequence(const uint8_t *p)
{
	return get_u32(p + 8);
}

int append_push(struct append *a)
{
	a->failing = false;
	while (a->start < a->end) {
		ssize_t n = write(a->fd, a->pending + a->start, a->end - a->start);

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
	assert(whole <= a->start && a->start <= a->end);
	if (whole < a->end)
		a->sequence = block_sequence(a->pending + whole);
	a->start = a->end = 0;
	return 0;
}

int append_cut(struct append *a)
{
	uint32_t kept = a->nr_spare > APPEND_LAST ? a->nr_spare - APPEND_LAST : 0;
	int r = append_drop(a);

	while (r == 0 && a->nr_spare > kept) {
		const struct append_spare *last = &a->spare[--a->nr_spare % APPEND_LAST];

		if (last->offset >= a->written) /* it never reached the file */
			continue;
		if (ftruncate(a->fd, (off_t)last->offset) < 0)
			return -errno;
		a->written = last->offset;
		a->sequence = last->sequence;
		return 0;
	}
	return r < 0 ? r : -ENODATA;
}
