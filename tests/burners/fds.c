/* Opens N descriptors beside those it got, and tells how many it has in all: fds N SECONDS */
#include "burner.h"

#include <dirent.h>
#include <fcntl.h>

int main(int argc, char **argv)
{
	int nr = (int)number(argc, argv, 1, 100), open_now = 0;
	DIR *dir;

	for (int i = 0; i < nr; i++)
		if (open("/dev/null", O_RDONLY) < 0)
			fail("/dev/null");
	dir = opendir("/proc/self/fd");
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		open_now += entry->d_name[0] != '.';
	if (!dir)
		fail("/proc/self/fd");
	closedir(dir);
	printf("fds %d\n", open_now - 1); /* that of the directory is closed again */
	fflush(stdout);
	sleep_s(number(argc, argv, 2, 1));
	return 0;
}
