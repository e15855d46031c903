/* Programs of ours beside the job: tacho push, tacho serve. They read the recording as all readers do; the
 * recorder only starts them, when the job runs, and forgets them. */
#include "cmd/record.h"

#include "base/rights.h"
#include "cmd/cmd.h"
#include "cmd/external.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* "mlflow --experiment demo": words with blanks between; one in quotation marks may have some. */
size_t beside_words(char *text, char **ret, size_t most)
{
	size_t nr = 0;

	while (*(text += strspn(text, " \t")) && nr < most) {
		char *to = text, quote = 0;

		ret[nr++] = text;
		for (; *text && (quote || !strchr(" \t", *text)); text++)
			if (quote ? *text == quote : *text == '\'' || *text == '"')
				quote = quote ? 0 : *text;
			else
				*to++ = *text;
		if (*text)
			text++;
		*to = 0;
	}
	return nr;
}

bool beside_closed(const char *text)
{
	char quote = 0;

	for (; *text; text++)
		if (quote ? *text == quote : *text == '\'' || *text == '"')
			quote = quote ? 0 : *text;
	return !quote;
}

/* What the shell had open for us is the job's: who waits for the end of such a pipe, or for such a lock, does
 * not wait for the pusher. Before Linux 5.9 one by one. */
static void close_from(unsigned first)
{
	long most = sysconf(_SC_OPEN_MAX);

	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
	for (long fd = first; fd < MIN(most, 65536); fd++)
		close((int)fd);
}

/* In the new process: it has nothing of the job's terminal, files and signals, but where it may say
 * something. */
static void become(char **word, bool speaks)
{
	char program[PATH_MAX];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setsid();
	for (int fd = 0; fd < (speaks ? 2 : 3) && null >= 0; fd++)
		dup2(null, fd);
	close_from(3);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpriority(PRIO_PROCESS, 0, 10);
	rights_drop();
	if (external_self(program, sizeof(program)))
		execve(program, word, rights_environment());
	_exit(EXIT_CANNOT);
}

pid_t beside_start(struct recording *r, char **word, bool speaks)
{
	pid_t pid = fork();

	if (pid == 0)
		become(word, speaks);
	if (pid > 0)
		engine_leave_out_too(r->engine, pid);
	else
		warning("cannot start tacho %s: %s", word[1], strerror(errno));
	return pid;
}
