/* A finished recording has an index right before its end mark. It is looked for in the last CHUNK bytes. What
 * it says is checked at the segment that it leads to; where that is not so, or there is no index, segments
 * are found by bisection.
 *
 * A probe of the bisection looks for a header from some byte on, then goes from header to header (28 bytes
 * each) up to the first block of a segment. The payload of that block is read and its checksum compared,
 * since reading cannot begin at a segment that cannot be decoded; its first record has the time.
 *
 * The bytes that are read are about the logarithm of the file's size. A file of junk costs one pass: every
 * probe looks at half of what is left, at most. */
#include "store/find.h"

#include "base/buf.h"
#include "store/crc32c.h"
#include "store/format.h"
#include "store/scan.h"

#include <assert.h>
#include <string.h>
#include <zstd.h>

#define CHUNK ((size_t)64 << 10)
#define PAGE ((size_t)4 << 10)	   /* read for a header: those of small blocks stand close together */
#define NEAR (UINT64_C(256) << 10) /* less than that is looked through from its beginning */

struct block_finder {
	int fd;
	uint32_t file;
	uint8_t *chunk; /* bytes of the file from chunk_at on */
	uint64_t chunk_at;
	size_t chunk_len;
	uint8_t *payload;
	size_t payload_cap;
};

/* As many bytes as there are. */
static ssize_t read_at(int fd, void *out, size_t size, uint64_t at)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = read_some(fd, (uint8_t *)out + have, size - have, at + have);

		if (n < 0)
			return n;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* Reads the chunk at `at`: `size` bytes, or fewer where the file ends. */
static int load(struct block_finder *f, uint64_t at, size_t size)
{
	ssize_t n = read_at(f->fd, f->chunk, size, at);

	f->chunk_at = at;
	f->chunk_len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

static bool is_header(const struct block_finder *f, const uint8_t *p, struct block_header *ret)
{
	return block_header_get(p, ret) && ret->file == f->file;
}

/* The first header of this recording that begins in [*at, to): 1 and its place, 0, or a negative errno. */
static int header_find(struct block_finder *f, uint64_t *at, uint64_t to, struct block_header *ret)
{
	const uint8_t first = BLOCK_MAGIC & 0xff;

	while (*at < to) {
		const uint8_t *p = f->chunk, *end;
		int r = load(f, *at, CHUNK);

		if (f->chunk_len < BLOCK_HEADER)
			return r;
		end = f->chunk + f->chunk_len - BLOCK_HEADER + 1;
		while ((p = memchr(p, first, (size_t)(end - p)))) {
			uint64_t place = *at + (uint64_t)(p - f->chunk);

			if (place >= to)
				return 0;
			if (is_header(f, p, ret)) {
				*at = place;
				return 1;
			}
			if (++p == end)
				break;
		}
		*at += (uint64_t)(end - f->chunk);
	}
	return 0;
}

/* The header that stands there: 1, 0: none does, or a negative errno. */
static int header_at(struct block_finder *f, uint64_t at, struct block_header *ret)
{
	if (at < f->chunk_at || at + BLOCK_HEADER > f->chunk_at + f->chunk_len) {
		int r = load(f, at, PAGE);

		if (f->chunk_len < BLOCK_HEADER)
			return r;
	}
	return is_header(f, f->chunk + (at - f->chunk_at), ret);
}

/* The time in the first record of a segment, from the payload of its first block. */
static bool segment_time(const uint8_t *payload, size_t size, int64_t *ret)
{
	uint8_t content[64];
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	ZSTD_inBuffer in = {payload, size, 0};
	ZSTD_outBuffer out = {content, sizeof(content), 0};
	struct view v;
	size_t left = 1;

	if (!zstd)
		return false;
	ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	while (left && !ZSTD_isError(left) && out.pos < out.size && in.pos < in.size)
		left = ZSTD_decompressStream(zstd, &out, &in);
	ZSTD_freeDCtx(zstd);
	v = view_of(content, out.pos);
	if (view_varint(&v) != RECORD_SEGMENT)
		return false;
	view_varint(&v); /* its length */
	view_varint(&v); /* number of the tick */
	*ret = unzigzag(view_varint(&v));
	return !v.bad && *ret > -TIME_MOST && *ret < TIME_MOST;
}

/* Reads the payload of a block: 1, 0: it is damaged, or a negative errno. */
static int payload_read(struct block_finder *f, uint64_t at, const struct block_header *h)
{
	ssize_t n;

	assert(h->length <= BLOCK_MAX);
	if (h->length > f->payload_cap) {
		uint8_t *more = realloc(f->payload, h->length);

		if (!more)
			return -ENOMEM;
		f->payload = more;
		f->payload_cap = h->length;
	}
	n = read_at(f->fd, f->payload, h->length, at + BLOCK_HEADER);
	if (n < 0)
		return (int)n;
	return (size_t)n == h->length && crc32c(f->payload, h->length) == h->crc;
}

static bool begins_segment(const struct block_header *h)
{
	return h->type == BLOCK_SEGMENT && h->flags & BLOCK_FIRST;
}

/* Is it one that can be read? 1, 0, or a negative errno. */
static int segment_check(
	struct block_finder *f, uint64_t at, const struct block_header *h, struct segment_place *ret)
{
	int r = payload_read(f, at, h);

	*ret = (struct segment_place){
		.offset = at, .size = BLOCK_HEADER + (uint64_t)h->length, .sequence = h->sequence};
	return r <= 0 ? r : segment_time(f->payload, h->length, &ret->time_ns);
}

/* The first segment that begins in [at, to): 1, 0, or a negative errno. */
static int segment_next(struct block_finder *f, uint64_t at, uint64_t to, struct segment_place *ret)
{
	struct block_header h;
	int r = header_find(f, &at, to, &h);

	while (r > 0 && at < to) {
		r = header_at(f, at, &h);
		if (!r) /* damage, or the end */
			r = header_find(f, &at, to, &h);
		if (r <= 0)
			break;
		if (begins_segment(&h)) {
			r = segment_check(f, at, &h, ret);
			if (r)
				return r;
			r = 1;
		}
		at += BLOCK_HEADER + (uint64_t)h.length;
	}
	return r < 0 ? r : 0;
}

static int bisect(
	struct block_finder *f, uint64_t from, uint64_t to, int64_t time_ns, struct segment_place *ret)
{
	struct segment_place place;
	int found = 0, r;

	while (from < to && to - from > NEAR) {
		uint64_t middle = from + (to - from) / 2;

		r = segment_next(f, middle, to, &place);
		if (r < 0)
			return r;
		if (!r || place.time_ns > time_ns) {
			to = middle;
			continue;
		}
		*ret = place;
		from = place.offset + place.size;
		found = 1;
	}
	while ((r = segment_next(f, from, to, &place)) > 0 && place.time_ns <= time_ns) {
		*ret = place;
		from = place.offset + place.size;
		found = 1;
	}
	return r < 0 ? r : found;
}

/* The first block of this type in the last bytes: 1, 0: there is none, or a negative errno. */
static int find_at_end(struct block_finder *f, uint64_t from, uint64_t to, enum block_type type,
	uint64_t *ret_at, struct block_header *ret)
{
	uint64_t at = to - from > CHUNK ? to - CHUNK : from;
	int r = header_find(f, &at, to, ret);

	while (r > 0 && ret->type != type) {
		at += BLOCK_HEADER + (uint64_t)ret->length;
		r = at < to ? header_at(f, at, ret) : 0;
	}
	*ret_at = at;
	return r;
}

/* Reads the index: 1, 0: there is none, or a negative errno. One that leaves segments out because there are
 * very many (docs/format.md) has more bytes than are looked at here. */
static int index_read(struct block_finder *f, uint64_t from, uint64_t to, struct view *ret)
{
	struct block_header h;
	uint64_t at;
	int r = find_at_end(f, from, to, BLOCK_INDEX, &at, &h);

	if (r > 0)
		r = h.length ? payload_read(f, at, &h) : 0;
	if (r > 0)
		*ret = view_of(f->payload, h.length);
	return r;
}

/* The same as bisect(); 0: the index does not tell. */
static int index_find(
	struct block_finder *f, uint64_t from, uint64_t to, int64_t time_ns, struct segment_place *ret)
{
	uint64_t offset = 0, at = 0, time = 0;
	int64_t begins_ns = 0;
	struct block_header h;
	struct view v;
	int r = index_read(f, from, to, &v);

	if (r <= 0)
		return r;
	for (uint64_t nr = view_varint(&v); nr && !v.bad; nr--) {
		offset += view_varint(&v);
		time += (uint64_t)unzigzag(view_varint(&v));
		if ((int64_t)time > time_ns)
			break;
		at = offset;
		begins_ns = (int64_t)time;
	}
	if (v.bad || at < from || at >= to)
		return 0;
	r = header_at(f, at, &h);
	if (r > 0)
		r = begins_segment(&h) ? segment_check(f, at, &h, ret) : 0;
	return r <= 0 ? r : ret->time_ns == begins_ns;
}

int segment_find(
	int fd, uint32_t file, uint64_t from, uint64_t to, int64_t time_ns, struct segment_place *ret)
{
	struct block_finder f = {.fd = fd, .file = file, .chunk = malloc(CHUNK)};
	int r = -ENOMEM;

	to = MAX(from, to);
	if (f.chunk)
		r = index_find(&f, from, to, time_ns, ret);
	if (f.chunk && r == 0)
		r = bisect(&f, from, to, time_ns, ret);
	assert(r <= 0 || (ret->offset >= from && ret->offset < to && ret->time_ns <= time_ns));
	free(f.chunk);
	free(f.payload);
	return r;
}

int summary_find(int fd, uint32_t file, uint64_t from, uint64_t to, struct segment_place *ret)
{
	struct block_finder f = {.fd = fd, .file = file, .chunk = malloc(CHUNK)};
	struct block_header h;
	int r = -ENOMEM;

	to = MAX(from, to);
	if (f.chunk)
		r = find_at_end(&f, from, to, BLOCK_SUMMARY, &ret->offset, &h);
	if (r > 0) {
		ret->size = BLOCK_HEADER + (uint64_t)h.length;
		ret->sequence = h.sequence;
		r = ret->offset + ret->size == to;
	}
	free(f.chunk);
	return r;
}
