/* The page of a report as a file: which of those that are there may be replaced, and showing it in the
 * browser.
 *
 * `xdg-open "$(tacho report job.tacho)"` is to work a second time, so a page is replaced by the next one of
 * the same run. A page says in its last line which run it is of; a file that does not say so is never
 * replaced. */
#include "cmd/cmd.h"
#include "exec/paths.h"
#include "exec/report.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MARK "<!-- tacho report of "
#define MARK_MOST 200

/* Host and start name a run; letters that could end a comment are left out. */
static void add_mark(const struct summary *s, struct buf *out)
{
	const struct summary *first = s->nr_nodes ? &s->node[0] : s;
	const char *host = first->host ? first->host : "";

	buf_adds(out, MARK);
	for (size_t i = 0; host[i] && i < 64; i++)
		if (isalnum((unsigned char)host[i]) || host[i] == '.' || host[i] == '_')
			buf_addch(out, host[i]);
	buf_addf(out, " %lld %zu -->\n", (long long)first->start_wall_ns, s->nr_nodes);
}

void page_mark(const struct analysis *a, struct buf *out)
{
	add_mark(a->summary, out);
}

/* The last line of the file, up to MARK_MOST bytes. */
static bool last_line(const char *path, char out[static MARK_MOST + 1])
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = -1;
	char *line;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		n = pread(fd, out, MARK_MOST, MAX(st.st_size - MARK_MOST, 0));
	close(fd);
	if (n <= 1)
		return false;
	out[n] = 0;
	if (strlen(out) < (size_t)n || out[n - 1] != '\n')
		return false;
	out[n - 1] = 0;
	line = strrchr(out, '\n');
	line = line ? line + 1 : out;
	memmove(out, line, strlen(line) + 1);
	return true;
}

bool page_is_own(const char *path, const struct analysis *of)
{
	char line[MARK_MOST + 1];
	struct buf mark;
	bool same;

	if (!last_line(path, line) || strncmp(line, MARK, strlen(MARK)) != 0)
		return false;
	if (!of)
		return true;
	buf_init(&mark, 4096);
	add_mark(of->summary, &mark);
	same = !mark.err && mark.len == strlen(line) + 1 && !memcmp(mark.data, line, strlen(line));
	buf_release(&mark);
	return same;
}

int page_open(const char *path)
{
	_cleanup_(freep) char *file = *path == '-' ? text_made("./%s", path) : text_made("%s", path);
	char *const words[] = {"xdg-open", file, NULL};
	posix_spawn_file_actions_t quiet;
	int e, status = 0;
	pid_t pid;

	e = posix_spawn_file_actions_init(&quiet);
	if (!e) /* stdout is ours: the path is read from it */
		e = posix_spawn_file_actions_adddup2(&quiet, STDERR_FILENO, STDOUT_FILENO);
	if (!e)
		e = posix_spawnp(&pid, words[0], &quiet, NULL, words, environ);
	posix_spawn_file_actions_destroy(&quiet);
	if (e) {
		error("cannot show %s: %s: %s; it can be opened in any browser", path, words[0], strerror(e));
		return EXIT_TROUBLE;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status) {
		error("cannot show %s: %s failed; it can be opened in any browser", path, words[0]);
		return EXIT_TROUBLE;
	}
	return EXIT_OK;
}
