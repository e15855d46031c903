/* Compresses for tests/e2e/test_push_prometheus.py, which uncompresses with others' programs: of each block
 * on standard input (its length in four bytes, the least significant first) one on standard output. */
#include "push/snappy.h"

#include <stdio.h>

int main(void)
{
	uint8_t head[4];
	struct buf in, out;

	buf_init(&in, SIZE_MAX / 2);
	buf_init(&out, SIZE_MAX / 2);
	while (fread(head, sizeof(head), 1, stdin) == 1) {
		size_t len = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 |
			(size_t)head[3] << 24;

		if (!buf_reserve(&in, len) || fread(in.data, 1, len, stdin) != len)
			return 1;
		buf_reset(&out);
		snappy_compress(&out, in.data, len);
		for (unsigned i = 0; i < 4; i++)
			head[i] = (uint8_t)(out.len >> 8 * i);
		if (out.err || fwrite(head, sizeof(head), 1, stdout) != 1 ||
			fwrite(out.data, 1, out.len, stdout) != out.len)
			return 1;
	}
	buf_release(&in);
	buf_release(&out);
	return fclose(stdout) != 0;
}
