/* Bytes that this process has read so far, for tests that count them. Include it behind cmocka.h. */
#ifndef BYTES_READ_H
#define BYTES_READ_H

#include <stdint.h>
#include <stdio.h>

static uint64_t bytes_read(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long long n = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "rchar: %llu", &n), 1);
	fclose(f);
	return n;
}
#endif
