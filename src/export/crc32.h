/* CRC-32, as zlib and Ethernet have it: the checksum of Parquet's pages. */
#ifndef EXPORT_CRC32_H
#define EXPORT_CRC32_H

#include "base/base.h"

uint32_t export_crc32(const void *data, size_t n);
#endif
