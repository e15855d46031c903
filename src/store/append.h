/* The end of the file: whole blocks go in, and are written as soon as the disk has room.
 *
 * Blocks wait in one lazily filled mapping until append_push() writes them, all that wait with one write().
 * What a full disk does not take waits for the next push: a block that was written in part is continued where
 * it stopped, so the file never holds a torn block followed by another. Cutting the part off again was
 * rejected: it gains nothing, since readers know an unfinished last block, and it can fail. */
#ifndef STORE_APPEND_H
#define STORE_APPEND_H

#include "store/format.h"

#define APPEND_LAST 64

struct append {
	int fd;
	char *path;	   /* the name that it got */
	uint32_t file;	   /* for the headers */
	uint32_t sequence; /* of the next block */
	uint64_t written;  /* bytes in the file */
	uint8_t *pending;
	size_t start, end; /* of what waits in pending; a block may be written in part */
	size_t bound;	   /* most bytes that may wait */
	size_t reserved;   /* size of the mapping */
	bool failing;	   /* the last push did not get everything out */
	/* The last blocks that may be cut off: those behind the schema. */
	struct append_spare {
		uint64_t offset;
		uint32_t sequence;
	} spare[APPEND_LAST];
	uint32_t nr_spare;
};

/* Makes the file (mode 0600) with its START block in it; naming is a mask of enum store_naming. */
int append_open(struct append *a, const char *path, unsigned naming);
void append_close(struct append *a); /* takes a half-opened one */

/* Where the payload of the next block goes, and how much may: 0 when too much waits already. */
uint8_t *append_payload(struct append *a, size_t *ret_room);
/* The payload is complete: queues the block. Returns the offset it will have in the file. */
uint64_t append_block(struct append *a, enum block_type type, uint16_t flags, size_t length);
/* Writes what waits. 0, or the negative errno of write(). */
int append_push(struct append *a);
/* Forgets what waits and cuts off a block that was written in part. The next block gets the number of the
 * first that is forgotten: the end mark says what is missing, so readers need not take it for damage. */
int append_drop(struct append *a);
/* The same, and cuts off the last block behind the schema, to make room for something more important.
 * -ENODATA: none. */
int append_cut(struct append *a);
#endif
