/* How Parquet lays out values: each function appends one encoding of an array to a buf. All are straight
 * loops over arrays, since a week of a node is some hundred million values. */
#ifndef EXPORT_PARQUET_ENCODE_H
#define EXPORT_PARQUET_ENCODE_H

#include "base/buf.h"

/* What is there, from a bitmap of rows with zeros behind its end: definition levels with their length in
 * front. */
void encode_levels(struct buf *out, const uint8_t *bits, size_t nr, bool all);
/* Numbers below 2^width, in runs where they repeat: RLE_DICTIONARY, the byte of the width in front. */
void encode_indices(struct buf *out, const uint32_t *v, size_t nr, unsigned width);
/* The same of one number, nr times. */
void encode_index(struct buf *out, uint32_t v, size_t nr, unsigned width);
/* DELTA_BINARY_PACKED. Differences wrap, so that any two numbers have one. */
void encode_delta(struct buf *out, const uint64_t *v, size_t nr);
/* BYTE_STREAM_SPLIT: all first bytes, then all second ones... */
void encode_split(struct buf *out, const uint64_t *v, size_t nr);
void encode_plain(struct buf *out, const uint64_t *v, size_t nr);
void encode_flags(struct buf *out, const uint8_t *v, size_t nr); /* a bit each */

unsigned bits_needed(uint64_t v); /* 0 for 0 */
#endif
