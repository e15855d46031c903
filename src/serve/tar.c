/* Tar files: see tar.h. The size of the whole is known before the first byte, so a download shows how far it
 * is. */
#include "serve/tar.h"

#include "base/owned.h"

#include <stdio.h>
#include <string.h>

#define BLOCK ((size_t)512)
#define NAME_MOST 100
#define SIZE_MOST ((uint64_t)1 << 33) /* that eleven octal digits can say */

struct tar_file {
	char *path;
	struct buf head; /* its blocks before the content */
	uint64_t size;
};

struct tar {
	tar_open *open;
	void *arg;
	struct tar_file *file;
	size_t nr;
	uint64_t size;
	/* While it is read: */
	size_t at;	/* file */
	uint64_t place; /* in it, its head and its filling */
	uint64_t end;	/* of the two empty blocks at the end */
	int fd;
};

int tar_new(tar_open *open, void *arg, struct tar **ret)
{
	struct tar *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct tar){.open = open, .arg = arg, .size = 2 * BLOCK, .fd = -1};
	*ret = t;
	return 0;
}

struct tar *tar_free(struct tar *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->nr; i++) {
		free(t->file[i].path);
		buf_release(&t->file[i].head);
	}
	if (t->fd >= 0)
		close(t->fd);
	free(t->file);
	free(t);
	return NULL;
}

static uint64_t filled(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

static void put_octal(char *field, size_t digits, uint64_t value)
{
	for (size_t i = digits; i-- > 0; value >>= 3)
		field[i] = (char)('0' + (value & 7));
}

static void add_head(struct buf *out, const char *name, char type, uint64_t size, int64_t modified_s)
{
	char block[BLOCK] = {0};
	unsigned sum = 0;

	memcpy(block, name, MIN(strlen(name), (size_t)NAME_MOST));
	put_octal(block + 100, 7, 0600);
	put_octal(block + 108, 7, 0);
	put_octal(block + 116, 7, 0);
	put_octal(block + 124, 11, size);
	put_octal(block + 136, 11, (uint64_t)MAX(modified_s, 0));
	memset(block + 148, ' ', 8);
	block[156] = type;
	memcpy(block + 257, "ustar\00000", 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)block[i];
	put_octal(block + 148, 6, sum);
	block[154] = 0;
	buf_add(out, block, BLOCK);
}

/* "LENGTH key=value\n", whose length counts itself. */
static void add_record(struct buf *out, const char *key, const char *value)
{
	size_t len = strlen(key) + strlen(value) + 3, all = len, digits = 0;

	do {
		digits = (size_t)snprintf(NULL, 0, "%zu", all);
		all = len + digits;
	} while ((size_t)snprintf(NULL, 0, "%zu", all) != digits);
	buf_addf(out, "%zu %s=%s\n", all, key, value);
}

static void add_pax(struct buf *out, const char *name, uint64_t size, int64_t modified_s)
{
	static const char zero[BLOCK];
	struct buf records;
	char digits[24];

	buf_init(&records, 1 << 16);
	add_record(&records, "path", name);
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)size);
	add_record(&records, "size", digits);
	add_head(out, "pax", 'x', records.len, modified_s);
	buf_add(out, records.data, records.len);
	buf_add(out, zero, filled(records.len) - records.len);
	if (records.err)
		out->err = records.err;
	buf_release(&records);
}

int tar_add(struct tar *t, const char *name, const char *path, uint64_t size, int64_t modified_s)
{
	struct tar_file *f = ARRAY_ADD(t->file, t->nr);

	if (!f)
		return -ENOMEM;
	f->path = strdup(path);
	f->size = size;
	buf_init(&f->head, 1 << 17);
	if (strlen(name) > NAME_MOST || size >= SIZE_MOST)
		add_pax(&f->head, name, size, modified_s);
	add_head(&f->head, name, '0', size < SIZE_MOST ? size : 0, modified_s);
	t->size += f->head.len + filled(size);
	return f->path ? f->head.err : -ENOMEM;
}

uint64_t tar_size(const struct tar *t)
{
	return t->size;
}

/* What is missing of a file that became shorter, or cannot be opened any more, is zeros. */
static size_t read_content(struct tar *t, const struct tar_file *f, uint64_t at, char *to, size_t most)
{
	ssize_t n = 0;

	if (at >= f->size) {
		most = MIN((uint64_t)most, filled(f->size) - at);
		memset(to, 0, most);
		return most;
	}
	most = MIN((uint64_t)most, f->size - at);
	if (!at && t->fd < 0)
		t->fd = t->open(t->arg, f->path);
	if (t->fd >= 0)
		n = pread(t->fd, to, most, (off_t)at);
	if (n > 0)
		return (size_t)n;
	memset(to, 0, most);
	return most;
}

static ssize_t read_file(struct tar *t, char *to, size_t most)
{
	const struct tar_file *f = &t->file[t->at];
	uint64_t all = f->head.len + filled(f->size);
	size_t n;

	if (t->place < f->head.len) {
		n = MIN(most, f->head.len - (size_t)t->place);
		memcpy(to, f->head.data + t->place, n);
	} else {
		n = read_content(t, f, t->place - f->head.len, to, most);
	}
	t->place += n;
	if (t->place == all) {
		if (t->fd >= 0)
			close(t->fd);
		t->fd = -1;
		t->place = 0;
		t->at++;
	}
	return (ssize_t)n;
}

ssize_t tar_read(struct tar *t, void *to, size_t most)
{
	/* An empty file has a head, so that each step gives something. */
	if (t->at < t->nr)
		return read_file(t, to, most);
	most = MIN((uint64_t)most, 2 * BLOCK - t->end);
	memset(to, 0, most);
	t->end += most;
	return (ssize_t)most;
}
