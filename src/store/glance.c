/* Metadata is written at the start and within the first seconds; the summary is the last block. So the first
 * HEAD bytes and the last TAIL are scanned, block by block with their checksums, and what is between is
 * passed over; files that are not longer are scanned as a whole.
 *
 * Rejected: walking from header to header. Blocks are small and follow each other once a second: it would
 * read nearly every page of the file. */
#include "store/glance.h"

#include "store/scan.h"

#include <fcntl.h>
#include <sys/stat.h>

#define HEAD (UINT64_C(512) << 10)
#define TAIL (UINT64_C(64) << 10)

struct glancing {
	struct scan scan;
	store_take *take;
	void *arg;
	struct store_glance *ret;
	uint32_t file;
	bool has_file, jumped;
	struct pair memory[PAIRS_MAX];
	char keys[32768];
};

static int take_block(struct glancing *g, const struct scan_item *item)
{
	const struct block_header *h = &item->header;
	struct view v = view_of(item->payload, h->length);
	struct pairs pairs;

	if (g->has_file && h->file != g->file) { /* the first recording of several in one file counts */
		g->ret->damaged = true;
		return 0;
	}
	g->file = h->file;
	g->has_file = true;
	g->ret->complete = h->type == BLOCK_SUMMARY;
	if (h->type != BLOCK_META && h->type != BLOCK_SUMMARY)
		return 0;
	pairs_init(&pairs, g->memory, PAIRS_MAX, g->keys, sizeof(g->keys));
	if (pairs_decode(&pairs, &v) < 0) {
		g->ret->damaged = true;
		return 0;
	}
	return g->take(g->arg, h->type == BLOCK_META ? STORE_META : STORE_SUMMARY, &pairs);
}

/* In the middle of a block: what comes before the next header is not damage. */
static void jump(struct glancing *g)
{
	g->scan.at = g->scan.window_at = g->ret->bytes - TAIL;
	g->scan.window_len = 0;
	g->jumped = true;
}

static int scan_all(struct glancing *g)
{
	struct scan_item item;
	int r;

	g->scan.patience = BLOCK_HEADER + BLOCK_MAX;
	while ((r = scan_next(&g->scan, &item)) > 0) {
		bool landing = g->jumped && item.offset == g->ret->bytes - TAIL;

		if (r == SCAN_BLOCK)
			r = take_block(g, &item);
		else if (!landing)
			g->ret->damaged = true;
		if (r < 0)
			return r;
		if (!g->jumped && g->scan.at > HEAD && g->ret->bytes > g->scan.at + TAIL)
			jump(g);
	}
	if (g->scan.tail) {
		g->ret->complete = false;
		g->ret->damaged |= g->scan.tail_damaged;
	}
	return r < 0 ? r : g->has_file ? 0 : -EBADMSG;
}

int store_glance(const char *path, store_take *take, void *arg, struct store_glance *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	struct glancing *g;
	struct stat st;

	*ret = (struct store_glance){0};
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EBADMSG;
	}
	g = calloc(1, sizeof(*g));
	r = g ? scan_init(&g->scan, fd) : -ENOMEM;
	if (r < 0) {
		close(fd);
		free(g);
		return r;
	}
	g->take = take;
	g->arg = arg;
	g->ret = ret;
	ret->bytes = (uint64_t)st.st_size;
	ret->modified_ns = (int64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	ret->writing = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	r = scan_all(g);
	scan_release(&g->scan);
	free(g);
	return r;
}
