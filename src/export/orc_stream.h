/* The streams of ORC: bytes that are compressed block by block, and its encodings of runs.
 * A stream keeps one block as it is and all before it compressed, until the stripe is written. */
#ifndef EXPORT_ORC_STREAM_H
#define EXPORT_ORC_STREAM_H

#include "base/buf.h"

#include <zstd.h>

#define ORC_BLOCK (64u << 10)

enum orc_compression { ORC_NONE = 0, ORC_ZLIB = 1, ORC_ZSTD = 5 }; /* as the format numbers them */

struct orc_press { /* shared by all streams: they are worked on one after the other */
	enum orc_compression kind;
	ZSTD_CCtx *zstd;
	void *deflate; /* z_stream */
	uint8_t *room;
	size_t cap_room;
};

/* -EOPNOTSUPP: built without that. */
int orc_press_init(struct orc_press *p, enum orc_compression kind);
void orc_press_release(struct orc_press *p);

struct orc_stream {
	struct buf block, done;
};

void orc_stream_init(struct orc_stream *s);
void orc_stream_release(struct orc_stream *s);
void orc_stream_clear(struct orc_stream *s);
int orc_stream_add(struct orc_stream *s, struct orc_press *p, const void *data, size_t len);
int orc_stream_end(struct orc_stream *s, struct orc_press *p); /* everything is in `done` */

/* Integers in runs of one difference, or as they are (RLE version 1). Readers know both versions; the second
 * packs bits, which leaves less for a compressor to find. */
int orc_integers(struct orc_stream *s, struct orc_press *p, const int64_t *v, size_t nr, bool is_signed);

/* Bits, eight a byte with the first on top, in runs of equal bytes. */
int orc_bits(struct orc_stream *s, struct orc_press *p, const uint8_t *bytes, size_t nr);
#endif
