/* largest COMMAND...: runs it as any small program would, prints what the kernel says of its memory and ends
 * with its status. Only a small program can tell: the kernel counts what a process had before its exec, too.
 */
#include "burner.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage used;
	int status;
	pid_t pid = argc > 1 ? fork() : -1;

	if (pid == 0) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
		return 1;
	fprintf(stderr, "max_rss_kib %ld\nminor_faults %ld\n", used.ru_maxrss, used.ru_minflt);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
