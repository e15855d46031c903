/* CRC-32C (Castagnoli, reflected, all ones before and after): the checksum of blocks. Chosen over CRC-32
 * because x86 has an instruction for it. */
#ifndef STORE_CRC32C_H
#define STORE_CRC32C_H

#include "base/base.h"

uint32_t crc32c(const void *data, size_t n);
/* The table's way, whatever the processor can do; for the test that compares the two. */
uint32_t crc32c_portable(const void *data, size_t n);
#endif
