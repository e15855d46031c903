/* What `check` and `ls` do with any recording (recording.h): every byte is good, lost or unfinished, and a
 * listing says the same with and without reading the ticks. */
#include "recording.h"

#include "query/listing.h"
#include "store/store.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const char *path)
{
	struct store_reader *r = NULL;
	struct store_record rec;
	struct store_health h;
	int e;

	if (store_open(path, &r) < 0)
		abort();
	while ((e = store_next(r, &rec)) > 0)
		if (rec.type == STORE_LOST && !rec.reason)
			abort();
	store_health(r, &h);
	if (e < 0 || h.good_bytes + h.lost_bytes + h.tail_bytes != h.bytes)
		abort();
	store_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct run *run = fuzz_run(data, size);
	struct listing *l = NULL;
	struct buf err;

	if (!run)
		return 0;
	buf_init(&err, 1 << 16);
	for (size_t i = 0; i < run->nr; i++)
		check_file(run->path[i]);
	for (unsigned glance = 0; glance < 2; glance++) {
		const struct listing_query q = {.glance = glance};

		if (listing_read((const char *const *)run->path, run->nr, &q, &l, &err) >= 0)
			listing_sort(l, data[0] % NR_LISTED_ORDERS, data[0] & 64);
		l = listing_free(l);
	}
	buf_release(&err);
	return 0;
}
