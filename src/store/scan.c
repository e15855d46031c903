/* Finds whole blocks in the bytes of a file: see scan.h. */
#include "store/scan.h"

#include "base/progress.h"
#include "store/crc32c.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define WINDOW_MIN ((size_t)256 << 10)

void scan_go(struct scan *s, uint64_t at)
{
	s->at = s->window_at = at;
	s->window_len = 0;
	s->junk = s->tail = 0;
	s->tail_damaged = false;
}

int scan_init(struct scan *s, int fd)
{
	*s = (struct scan){.fd = fd, .window_cap = WINDOW_MIN};
	s->window = malloc(s->window_cap);
	return s->window ? 0 : -ENOMEM;
}

void scan_release(struct scan *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->window);
	*s = (struct scan){.fd = -1};
}

int scan_rest(struct scan *s)
{
	struct stat st;

	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return -EBADF;
	s->device = st.st_dev;
	s->inode = st.st_ino;
	close(s->fd);
	free(s->window);
	s->fd = -1;
	s->window = NULL;
	s->window_cap = s->window_len = 0;
	s->window_at = s->at;
	return 0;
}

int scan_wake(struct scan *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	if (fstat(fd, &st) < 0 || st.st_dev != s->device || st.st_ino != s->inode)
		r = -ESTALE;
	else if (!s->window && !(s->window = malloc(WINDOW_MIN)))
		r = -ENOMEM;
	if (r < 0) {
		close(fd);
		return r;
	}
	s->window_cap = WINDOW_MIN;
	s->fd = fd;
	return 0;
}

#define HEAD_SIZE ((size_t)64 << 10)

static const uint8_t *here(const struct scan *s)
{
	return s->window + (s->at - s->window_at);
}

static size_t available(const struct scan *s)
{
	assert(s->at >= s->window_at && s->at - s->window_at <= s->window_len &&
		s->window_len <= s->window_cap);
	return (size_t)(s->window_at + s->window_len - s->at);
}

ssize_t read_some(int fd, void *out, size_t size, uint64_t at)
{
	ssize_t n;

	do {
		n = pread(fd, out, size, (off_t)at);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Tries to have `want` bytes from s->at on in the window. */
static int load(struct scan *s, size_t want)
{
	if (available(s) >= want)
		return 0;
	memmove(s->window, here(s), available(s));
	s->window_len = available(s);
	s->window_at = s->at;
	if (want > s->window_cap) {
		uint8_t *bigger = realloc(s->window, want);

		if (!bigger)
			return -ENOMEM;
		s->window = bigger;
		s->window_cap = want;
	}
	while (s->window_len < want) {
		/* Of many recordings only the beginning is read, to find out what they are. */
		size_t most = s->window_at + s->window_len < HEAD_SIZE ? MAX(HEAD_SIZE, want) : SIZE_MAX;
		ssize_t n = read_some(s->fd, s->window + s->window_len,
			MIN(s->window_cap - s->window_len, most), s->window_at + s->window_len);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		s->window_len += (size_t)n;
		if (progress_on_read)
			progress_on_read((uint64_t)n);
	}
	return 0;
}

static const uint8_t magic[4] = {
	BLOCK_MAGIC & 0xff, BLOCK_MAGIC >> 8 & 0xff, BLOCK_MAGIC >> 16 & 0xff, BLOCK_MAGIC >> 24};

/* As far as the bytes go. */
static bool may_start_header(const uint8_t *p, size_t n)
{
	return !memcmp(p, magic, MIN(n, sizeof(magic)));
}

/* Bytes to the next place, after the first, where a header may start; all of them when there is none. */
static size_t to_next_magic(const uint8_t *p, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const uint8_t *hit = memchr(p + i, magic[0], n - i);

		if (!hit)
			break;
		i = (size_t)(hit - p);
		if (may_start_header(hit, n - i))
			return i;
	}
	return n;
}

static int report_junk(struct scan *s, struct scan_item *ret)
{
	*ret = (struct scan_item){.offset = s->at - s->junk, .size = s->junk};
	s->junk = 0;
	return SCAN_DAMAGE;
}

/* The last bytes of the file may not have arrived yet (a network file system shows a file's new length before
 * its bytes): they are left alone and read again by the next call. */
static int leave(struct scan *s, uint64_t at, uint64_t size)
{
	s->at = s->window_at = at;
	s->window_len = 0;
	s->junk = 0;
	s->tail = size;
	s->tail_damaged = true;
	return SCAN_END;
}

/* A valid header stands at s->at. */
static int take_block(struct scan *s, const struct block_header *h, struct scan_item *ret)
{
	size_t size = BLOCK_HEADER + (size_t)h->length;
	int r = load(s, size);

	if (r < 0)
		return r;
	if (available(s) < size) {
		s->tail = available(s);
		return SCAN_END;
	}
	*ret = (struct scan_item){.header = *h, .known = true, .offset = s->at, .size = size};
	ret->payload = here(s) + BLOCK_HEADER;
	if (crc32c(ret->payload, h->length) == h->crc) {
		s->at += size;
		return SCAN_BLOCK;
	}
	r = load(s, size + 1);
	if (r < 0)
		return r;
	if (available(s) == size)
		return leave(s, s->at, size);
	s->at += size;
	return SCAN_DAMAGE;
}

int scan_next(struct scan *s, struct scan_item *ret)
{
	struct block_header h;

	s->tail = 0;
	s->tail_damaged = false;
	for (;;) {
		int r = load(s, BLOCK_HEADER);
		size_t n;

		if (r < 0)
			return r;
		n = available(s);
		if (n >= BLOCK_HEADER && block_header_get(here(s), &h))
			return s->junk ? report_junk(s, ret) : take_block(s, &h, ret);
		if (n < BLOCK_HEADER && may_start_header(here(s), n)) {
			/* The file ends, perhaps inside a header. */
			if (s->junk > BLOCK_HEADER + BLOCK_MAX)
				return report_junk(s, ret);
			if (s->junk)
				return leave(s, s->at - s->junk, s->junk + n);
			s->tail = n;
			return SCAN_END;
		}
		n = to_next_magic(here(s), n);
		s->junk += n;
		s->at += n;
		if (s->patience && s->junk > s->patience)
			return leave(s, s->at, 0);
	}
}
