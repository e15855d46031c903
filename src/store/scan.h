/* From bytes to whole blocks, in a file that may be damaged, may end anywhere and may still grow.
 *
 * Bytes are read once, forward, in bounded memory. Bytes that are no block are skipped up to the next header
 * whose checksum is right; a block whose payload is damaged is skipped as a whole. pread() and not mmap(),
 * because a file that is cut while it is read must not kill the reader. */
#ifndef STORE_SCAN_H
#define STORE_SCAN_H

#include "store/format.h"

#include <sys/types.h>

struct scan {
	int fd;
	uint64_t at;	   /* all before was handed out or skipped */
	uint64_t tail;	   /* bytes of an unfinished block, when SCAN_END was returned */
	bool tail_damaged; /* it seems damaged, not just unfinished */
	uint64_t patience; /* with more junk than this it gives up; 0: never */
	uint64_t junk;	   /* bytes skipped and not yet reported */
	uint8_t *window;   /* bytes of the file from window_at on */
	uint64_t window_at;
	size_t window_len, window_cap;
	dev_t device; /* while it rests */
	ino_t inode;
};

enum scan_result {
	SCAN_END, /* nothing more for now */
	SCAN_BLOCK,
	SCAN_DAMAGE, /* `size` bytes were skipped */
};

struct scan_item {
	struct block_header header; /* valid for a BLOCK, and for DAMAGE when only the payload is wrong */
	bool known;		    /* DAMAGE: the header is valid */
	uint64_t offset, size;	    /* in the file, header included */
	const uint8_t *payload;	    /* until the next call */
};

/* Up to `size` bytes, as pread(2) without EINTR; or a negative errno. */
ssize_t read_some(int fd, void *out, size_t size, uint64_t at);

int scan_init(struct scan *s, int fd); /* takes fd */
/* Gives back the descriptor and the bytes that are not needed; before the next scan_next() it is woken:
 * -ESTALE when another file has the name now. */
int scan_rest(struct scan *s);
int scan_wake(struct scan *s, const char *path);
void scan_go(struct scan *s, uint64_t at); /* a block, or the next one behind it, is the next */
void scan_release(struct scan *s);
/* An enum scan_result, or the negative errno of reading. */
int scan_next(struct scan *s, struct scan_item *ret);
#endif
