/* CRC-32, as zlib and Ethernet have it: the checksum of gzip and of Parquet's pages. */
#ifndef BASE_CRC32_H
#define BASE_CRC32_H

#include "base/base.h"

uint32_t crc32_of(const void *data, size_t n);
#endif
