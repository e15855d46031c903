/* A recording from any bytes, for the fuzz targets of what reads recordings.
 *
 * Checksums and zstd would keep nearly every changed file at the door, so an input is no file but a list of
 * orders: an instance comes, some cells change, a tick, a block is missing, any bytes as a record. The
 * recording is made from them with right headers and frames, and most inputs reach the arithmetic. The schema
 * is ours: few metrics of each domain that readers know by name. */
#ifndef FUZZ_RECORDING_H
#define FUZZ_RECORDING_H

#include "query/run.h"

/* The input as one recording, or as two of one run when its first byte is odd; NULL when it is empty. It is
 * there until the next call. */
const struct run *fuzz_run(const uint8_t *data, size_t size);
#endif
