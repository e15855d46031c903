/* Writes BYTES to FILE, in blocks of 64 KiB, down to the disk, and reads them back: write FILE BYTES [LINGER]
 */
#include "burner.h"

#include <fcntl.h>

#define BLOCK 65536

int main(int argc, char **argv)
{
	static char block[BLOCK];
	int64_t bytes = (int64_t)number(argc, argv, 2, 50e6), left;
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
	int calls = 0;

	if (fd < 0)
		fail("open");
	memset(block, 'x', sizeof(block));
	for (left = bytes; left > 0; calls++) {
		ssize_t n = write(fd, block, (size_t)(left < BLOCK ? left : BLOCK));

		if (n < 0)
			fail("write");
		left -= n;
	}
	if (fsync(fd) < 0)
		fail("fsync");
	for (left = bytes; left > 0;) {
		ssize_t n = pread(fd, block, sizeof(block), bytes - left);

		if (n <= 0)
			fail("read");
		left -= n;
	}
	printf("write_calls %d\n", calls);
	fflush(stdout);
	sleep_s(number(argc, argv, 3, 0));
	return 0;
}
