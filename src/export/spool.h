/* What has to wait on disk: formats that have columns one after the other, or samples in an order of their
 * own, while rows come as they were recorded. One file without a name holds the pieces of any number of
 * spools, so that hundreds of columns cost one descriptor; a small table never touches the disk. A file for
 * each column was rejected since a run has more columns than a process has descriptors. */
#ifndef EXPORT_SPOOL_H
#define EXPORT_SPOOL_H

#include "export/exporter.h"

struct spool_file {
	int fd; /* -1: nothing was written yet */
	uint64_t end;
	const char *
		beside; /* the folder of the output, which should have room; NULL: that for temporary files */
};

void spool_file_init(struct spool_file *f, const char *beside);
void spool_file_release(struct spool_file *f);
/* Appends; *ret_at says where to. */
int spool_file_write(struct spool_file *f, const void *data, size_t len, uint64_t *ret_at);
/* All of it, or -EIO. */
int spool_file_read(const struct spool_file *f, void *data, size_t len, uint64_t at);

#define SPOOL_BUFFER (32u << 10)

struct spool_piece {
	uint64_t at, len;
};

struct spool {
	struct spool_piece *piece;
	size_t nr_pieces, cap_pieces;
	struct buf held; /* what is not in the file: add to it, then settle */
};

void spool_init(struct spool *s);
void spool_release(struct spool *s);
/* Writes `held` when there is much of it. Returns the first error so far. */
int spool_settle(struct spool *s, struct spool_file *f);
/* The same whatever its size, and frees the memory: for a spool that gets nothing for a while. */
int spool_rest(struct spool *s, struct spool_file *f);
/* Everything, in order. */
int spool_pour(const struct spool *s, const struct spool_file *f, struct outlet *out);

/* Reads a spool of records, one after the other. */
struct spool_reader {
	const struct spool *s;
	const struct spool_file *f;
	size_t piece;	/* the next */
	uint64_t done;	/* of it */
	size_t len, at; /* in `copy` */
	uint8_t copy[4096];
};

void spool_reader_init(struct spool_reader *r, const struct spool *s, const struct spool_file *f);
/* 1 and the next `len` bytes; 0 at the end; -EIO when less is left. */
int spool_reader_next(struct spool_reader *r, void *data, size_t len);
#endif
