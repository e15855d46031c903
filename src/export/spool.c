/* Bytes that wait on disk: see spool.h. */
#include "export/spool.h"

#include "base/owned.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

void spool_file_init(struct spool_file *f, const char *beside)
{
	*f = (struct spool_file){.fd = -1, .beside = beside};
}

void spool_file_release(struct spool_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* A file that is removed when the program ends, however it ends. */
static int open_nameless(const char *folder)
{
	char name[4096];
	int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* Network file systems have no files without a name. */
	if (snprintf(name, sizeof(name), "%s/.tacho-spool-XXXXXX", folder) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(name);
	return fd;
}

static int spool_file_open(struct spool_file *f)
{
	const char *slash = f->beside ? strrchr(f->beside, '/') : NULL, *folder = getenv("TMPDIR");
	_cleanup_(freep) char *copy = NULL;

	if (!folder || !*folder)
		folder = "/var/tmp"; /* not /tmp, which may be memory */
	if (f->beside)
		folder = slash ? "/" : ".";
	if (slash > f->beside) {
		folder = copy = strndup(f->beside, (size_t)(slash - f->beside));
		if (!copy)
			return -ENOMEM;
	}
	f->fd = open_nameless(folder);
	return f->fd < 0 ? f->fd : 0;
}

int spool_file_write(struct spool_file *f, const void *data, size_t len, uint64_t *ret_at)
{
	const uint8_t *p = data;
	int r = f->fd < 0 ? spool_file_open(f) : 0;

	if (r < 0)
		return r;
	*ret_at = f->end;
	while (len) {
		ssize_t done = pwrite(f->fd, p, len, (off_t)f->end);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		p += done;
		len -= (size_t)done;
		f->end += (uint64_t)done;
	}
	return 0;
}

int spool_file_read(const struct spool_file *f, void *data, size_t len, uint64_t at)
{
	uint8_t *p = data;

	while (len) {
		ssize_t done = pread(f->fd, p, len, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		p += done;
		at += (uint64_t)done;
		len -= (size_t)done;
	}
	return 0;
}

/* ---- spools ---- */

void spool_init(struct spool *s)
{
	*s = (struct spool){0};
	buf_init(&s->held, SIZE_MAX / 2);
}

void spool_release(struct spool *s)
{
	free(s->piece);
	buf_release(&s->held);
	s->piece = NULL;
}

static int add_piece(struct spool *s, uint64_t at, uint64_t len)
{
	struct spool_piece *last = s->nr_pieces ? &s->piece[s->nr_pieces - 1] : NULL;

	if (last && last->at + last->len == at) {
		last->len += len;
		return 0;
	}
	if (ARRAY_ROOM(s->piece, s->cap_pieces, s->nr_pieces + 1) < 0)
		return -ENOMEM;
	s->piece[s->nr_pieces++] = (struct spool_piece){at, len};
	return 0;
}

static int put_away(struct spool *s, struct spool_file *f)
{
	uint64_t at;
	int r = s->held.err ? s->held.err : spool_file_write(f, s->held.data, s->held.len, &at);

	if (r >= 0)
		r = add_piece(s, at, s->held.len);
	buf_reset(&s->held);
	return r;
}

int spool_settle(struct spool *s, struct spool_file *f)
{
	return s->held.err || s->held.len < SPOOL_BUFFER ? s->held.err : put_away(s, f);
}

int spool_rest(struct spool *s, struct spool_file *f)
{
	int r = s->held.len ? put_away(s, f) : s->held.err;

	buf_release(&s->held);
	buf_init(&s->held, SIZE_MAX / 2);
	return r;
}

int spool_pour(const struct spool *s, const struct spool_file *f, struct outlet *out)
{
	uint8_t copy[SPOOL_BUFFER];

	for (size_t i = 0; i < s->nr_pieces; i++) {
		const struct spool_piece *p = &s->piece[i];

		for (uint64_t done = 0, n; done < p->len; done += n) {
			int r;

			n = MIN(p->len - done, sizeof(copy));
			r = spool_file_read(f, copy, (size_t)n, p->at + done);
			if (r >= 0)
				r = outlet_add(out, copy, (size_t)n);
			if (r < 0)
				return r;
		}
	}
	return outlet_add(out, s->held.data, s->held.len);
}

/* ---- reading ---- */

void spool_reader_init(struct spool_reader *r, const struct spool *s, const struct spool_file *f)
{
	r->s = s;
	r->f = f;
	r->piece = r->len = r->at = 0;
	r->done = 0;
}

/* Reads the next part into the copy: 0 at the end. The bytes in memory are the last part. */
static int reader_fill(struct spool_reader *r)
{
	const struct spool *s = r->s;
	bool held = r->piece == s->nr_pieces;
	uint64_t len = 0;
	int err = 0;

	if (r->piece < s->nr_pieces)
		len = s->piece[r->piece].len;
	else if (held)
		len = s->held.len;
	if (!len)
		return 0;
	r->at = 0;
	r->len = (size_t)MIN(len - r->done, sizeof(r->copy));
	if (held)
		memcpy(r->copy, s->held.data + r->done, r->len);
	else
		err = spool_file_read(r->f, r->copy, r->len, s->piece[r->piece].at + r->done);
	r->done += r->len;
	if (r->done == len) {
		r->done = 0;
		r->piece++;
	}
	return err < 0 ? err : 1;
}

int spool_reader_next(struct spool_reader *r, void *data, size_t len)
{
	uint8_t *p = data;
	size_t done = 0;

	while (done < len) {
		size_t n = MIN(r->len - r->at, len - done);
		int err = n ? 1 : reader_fill(r);

		if (err <= 0)
			return err < 0 || !done ? err : -EIO;
		memcpy(p + done, r->copy + r->at, n);
		r->at += n;
		done += n;
	}
	return 1;
}
