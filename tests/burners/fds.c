/* Opens N descriptors beside those it got, and tells how many it has in all: fds N SECONDS. For
 * SECONDS see hold(). */
#include "burner.h"

#include <fcntl.h>

int main(int argc, char **argv)
{
	int nr = (int)number(argc, argv, 1, 100), open_now = 0;
	struct rlimit limit;

	for (int i = 0; i < nr; i++)
		if (open("/dev/null", O_RDONLY) < 0)
			fail("/dev/null");
	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = 0; fd < (int)limit.rlim_cur && fd < 10000; fd++) /* opens none itself, unlike readdir */
		open_now += fcntl(fd, F_GETFD) >= 0;
	printf("fds %d\n", open_now);
	fflush(stdout);
	hold(argc, argv, 2, 1);
	return 0;
}
