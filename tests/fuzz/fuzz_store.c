/* The reader of recordings on any bytes. Checksums and zstd would keep nearly all inputs at the door, so the
 *first byte says how far in the rest is put:
 *
 *	0	it is the file
 *	1	it is a sequence of blocks: type, flags, varint length, payload; headers are made for them
 *	2	it is the content of a schema, before a segment that uses it
 *	3	it is the content of segments of a recording with a schema of ours; 0xff 0xff ends one of them
 *
 * Everything is read to the end, cells of all live rows included. */
#include "block.h"

#include "metric/schema.h"
#include "store/schema_codec.h"
#include "store/store.h"

#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A SEGMENT record, an INSTANCE in row 0 of set 0, a TICK. */
static const uint8_t first_instance[] = {1, 3, 0, 0, 0, 2, 6, 0, 1, 1, 0, 0, 0, 6, 2, 1, 2};

static uint32_t sequence;

static void add_packed(struct buf *file, unsigned type, unsigned flags, const void *content, size_t size)
{
	static ZSTD_CCtx *packer; /* kept: to make one takes longer than most inputs */
	size_t bound = ZSTD_compressBound(size);
	uint8_t *packed = malloc(bound);

	if (!packer)
		packer = ZSTD_createCCtx();
	if (!packed || !packer)
		abort();
	fuzz_add_block(file, sequence++, type, flags, packed,
		ZSTD_compressCCtx(packer, packed, bound, content, size, 1));
	free(packed);
}

static void add_blocks(struct buf *file, struct view *v)
{
	while (v->p < v->end) {
		unsigned type = (unsigned)view_varint(v), flags = (unsigned)view_varint(v);
		size_t n;
		const uint8_t *payload = view_bytes(v, &n);

		fuzz_add_block(file, sequence++, type, flags, payload, n);
	}
}

static void add_our_schema(struct buf *file)
{
	static struct buf content; /* the same for all */

	if (!content.data) {
		struct schema *s = schema_new();

		buf_init(&content, 1 << 16);
		for (unsigned i = 0; i < 3; i++) {
			struct schema_set *set = schema_add_set(s, "set", "", "process");

			for (unsigned k = 0; k < (i == 0 ? 1 : i == 1 ? 5 : 64); k++)
				schema_add_metric(set, "metric", "", NULL);
		}
		schema_encode(s, &content);
		schema_free(s);
	}
	add_packed(file, BLOCK_SCHEMA, 0, content.data, content.len);
}

static void add_segments(struct buf *file, const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		const uint8_t *next = memmem(p, (size_t)(end - p), "\xff\xff", 2);
		const uint8_t *stop = next ? next : end;

		add_packed(file, BLOCK_SEGMENT, BLOCK_FIRST, p, (size_t)(stop - p));
		p = next ? next + 2 : end;
	}
}

static uint64_t look_at(struct store_reader *r, const struct store_record *rec)
{
	const struct schema *schema = store_reader_schema(r);
	uint64_t sum = 0;

	for (uint32_t i = 0; rec->pairs && i < rec->pairs->nr; i++) {
		sum += strlen(rec->pairs->pair[i].key);
		for (size_t k = 0; k < rec->pairs->pair[i].len; k++)
			sum += (uint8_t)rec->pairs->pair[i].value[k];
	}
	for (uint32_t i = 0; rec->type == STORE_TICK && schema && i < schema->nr_sets; i++) {
		const struct table *t = store_reader_table(r, i);

		for (uint32_t k = 0; k < t->nr_touched; k++) {
			uint32_t row = t->touched[k];

			if (row >= t->nr_rows || t->id[row] == ROW_FREE)
				abort();
			for (uint32_t c = 0; c < t->nr_cols; c++)
				sum += (uint64_t)t->cell[(size_t)row * t->nr_cols + c] +
					(uint64_t)t->before[(size_t)row * t->nr_cols + c];
		}
	}
	if (rec->type == STORE_GONE && rec->row != STORE_NO_ROW &&
		store_reader_table(r, rec->set)->id[rec->row] != rec->id)
		abort();
	return sum;
}

/* The same from the middle on, and from the last segment on. */
static uint64_t read_parts(int fd)
{
	struct store_reader *r = NULL;
	struct store_record rec;
	unsigned seeks = 0;
	uint64_t sum = 0;

	if (store_open_fd(dup(fd), &r) < 0)
		return 0;
	while (store_next(r, &rec) > 0) {
		sum += look_at(r, &rec);
		if (rec.type == STORE_SCHEMA || (rec.type == STORE_TICK && seeks == 1))
			store_seek(r, seeks++ ? INT64_MAX : 1000);
	}
	store_close(r);
	return sum;
}

static void read_file(const struct buf *file)
{
	static int fd = -1;
	struct store_reader *r = NULL;
	struct store_record rec;
	struct store_health h;
	uint64_t sum = 0;

	if (fd < 0)
		fd = memfd_create("recording", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)file->len) < 0 ||
		pwrite(fd, file->data, file->len, 0) != (ssize_t)file->len)
		abort();
	if (store_open_fd(dup(fd), &r) < 0)
		return;
	while (store_next(r, &rec) > 0)
		sum += look_at(r, &rec);
	store_health(r, &h);
	if (h.good_bytes + h.lost_bytes + h.tail_bytes != file->len || h.bytes != file->len)
		abort();
	store_close(r);
	sum += read_parts(fd);
	__asm__ volatile("" ::"r"(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file;
	struct view v = view_of(data + 1, size ? size - 1 : 0);

	if (!size)
		return 0;
	buf_init(&file, (size_t)16 << 20);
	sequence = 0;
	if (data[0] % 4 == 1) {
		add_blocks(&file, &v);
	} else if (data[0] % 4 == 2) {
		add_packed(&file, BLOCK_SCHEMA, 0, v.p, (size_t)(v.end - v.p));
		add_segments(&file, first_instance, first_instance + sizeof(first_instance));
	} else if (data[0] % 4 == 3) {
		add_our_schema(&file);
		add_segments(&file, v.p, v.end);
	} else {
		buf_add(&file, v.p, (size_t)(v.end - v.p));
	}
	read_file(&file);
	buf_release(&file);
	return 0;
}
