/* The recorder that `tacho top` starts for targets and commands: this program, as `tacho attach` or `tacho
 * run`, into a directory that only the user can read. What the command prints goes into a file there, and to
 * standard output when the screen is gone. */
#include "cmd/top.h"

#include "base/owned.h"
#include "base/rights.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/external.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define WAIT_MS 100

static void make_directory(struct top_recorder *r)
{
	const char *base = getenv("TMPDIR");

	if (!base || *base != '/')
		base = "/tmp";
	if (asprintf(&r->directory, "%s/tacho-top-XXXXXX", base) < 0)
		die(EXIT_TROUBLE, "no memory");
	if (!mkdtemp(r->directory))
		die(EXIT_TROUBLE, "cannot make a directory in %s: %s; TMPDIR names another one", base,
			strerror(errno));
	if (asprintf(&r->file, "%s/top" RECORDING_SUFFIX, r->directory) < 0 ||
		asprintf(&r->output, "%s/output", r->directory) < 0)
		die(EXIT_TROUBLE, "no memory");
}

static void become(struct top_recorder *r, char **word)
{
	char self[PATH_MAX];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out = open(r->output, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);

	if (null < 0 || out < 0 || !external_self(self, sizeof(self)))
		_exit(EXIT_CANNOT);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (!r->command)
		prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0); /* it is of use to us alone */
	/* Ctrl-C on the terminal is a key for us; what the user types later, without the screen, is for the
	 * command. */
	rights_drop();
	execve(self, word, rights_environment());
	_exit(EXIT_CANNOT);
}

void top_recorder_start(struct top_recorder *r, bool command, int argc, char **argv)
{
	char **word = NULL;
	size_t nr = 0;
	int e = 0;

	*r = (struct top_recorder){.command = command};
	make_directory(r);
	e |= texts_take(&word, &nr, strdup("tacho"));
	e |= texts_take(&word, &nr, strdup(command ? "run" : "attach"));
	e |= texts_take(&word, &nr, strdup("-q"));
	e |= texts_take(&word, &nr, strdup("-o"));
	e |= texts_take(&word, &nr, strdup(r->file));
	e |= texts_take(&word, &nr, strdup("--"));
	for (int i = 0; i < argc; i++)
		e |= texts_take(&word, &nr, strdup(argv[i]));
	if (e < 0 || ARRAY_RESIZE(word, nr + 1) < 0)
		die(EXIT_TROUBLE, "no memory");
	word[nr] = NULL;
	fflush(NULL);
	r->pid = fork();
	if (r->pid < 0)
		die(EXIT_TROUBLE, "cannot start a process: %s", strerror(errno));
	if (r->pid == 0)
		become(r, word);
	texts_free(word, nr);
}

bool top_recorder_ended(struct top_recorder *r)
{
	if (r->pid > 0 && waitpid(r->pid, &r->status, WNOHANG) == r->pid)
		r->pid = 0;
	return r->directory && !r->pid;
}

/* Its messages as ours: error() names the program again. */
static void add_message(struct buf *out, const char *text, size_t n)
{
	static const char name[] = "tacho: ";

	for (const char *end = text + n; text < end;) {
		const char *line = memchr(text, '\n', (size_t)(end - text)), *next = line ? line + 1 : end;

		if ((size_t)(next - text) >= strlen(name) && !memcmp(text, name, strlen(name)))
			text += strlen(name);
		show_bytes(out, text, (size_t)(next - text), "\n");
		text = next;
	}
}

bool top_recorder_why(struct top_recorder *r, struct buf *out)
{
	char text[2000];
	int fd = r->output ? open(r->output, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	if (fd >= 0)
		close(fd);
	r->shown = MAX(n, 0); /* not once more at the end */
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return false;
	add_message(out, text, (size_t)n);
	return true;
}

/* ---- keeping it ---- */

static char *name_of_choice(void)
{
	struct timespec now;
	char stamp[40], *name = NULL;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	if (asprintf(&name, "top-%s" RECORDING_SUFFIX, stamp) < 0)
		return NULL;
	return name;
}

/* The same file under another name now; on another file system it is copied when it is complete. */
int top_recorder_keep(struct top_recorder *r, const char *name, struct buf *said)
{
	char *path = *name ? NULL : name_of_choice();
	int e = 0;

	if (*name && asprintf(&path, "%s%s", name, run_has_suffix(name) ? "" : RECORDING_SUFFIX) < 0)
		path = NULL;
	if (!path)
		return -ENOMEM;
	if (link(r->file, path) < 0)
		e = -errno;
	if (e == -EXDEV || e == -EPERM || e == -EMLINK) {
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		e = fd < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
		if (!e) {
			free(r->keep);
			r->keep = strdup(path);
			e = r->keep ? 0 : -ENOMEM;
		}
	}
	if (e)
		buf_addf(said, "cannot keep it as %s: %s", path, strerror(-e));
	else
		buf_addf(said, "kept as %s", path);
	free(path);
	return e;
}

static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_TRUNC | O_CLOEXEC), e = 0;
	char part[1 << 16];
	ssize_t n = 0;

	if (in < 0 || out < 0)
		e = -errno;
	while (!e && (n = read(in, part, sizeof(part))) > 0)
		for (ssize_t at = 0; at < n && !e;) {
			ssize_t done = write(out, part + at, (size_t)(n - at));

			e = done < 0 ? -errno : 0;
			at += MAX(done, 0);
		}
	if (!e && n < 0)
		e = -errno;
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) < 0 && !e)
		e = -errno;
	return e;
}

/* ---- the end ---- */

/* What the command printed since. */
static void pass_output(struct top_recorder *r)
{
	int fd = open(r->output, O_RDONLY | O_CLOEXEC);
	char part[1 << 16];
	ssize_t n;

	if (fd < 0)
		return;
	lseek(fd, r->shown, SEEK_SET);
	while ((n = read(fd, part, sizeof(part))) > 0) {
		r->shown += n;
		if (fwrite(part, 1, (size_t)n, stdout) != (size_t)n)
			break;
	}
	fflush(stdout);
	close(fd);
}

static void wait_for_command(struct top_recorder *r)
{
	const struct timespec pause = {.tv_nsec = WAIT_MS * NSEC_PER_MSEC};
	bool told = false;

	while (!top_recorder_ended(r)) {
		int asked = tty_signal();

		if (!told)
			error("the command goes on; this waits for it, Ctrl-C ends it");
		told = true;
		pass_output(r);
		if (asked) { /* Ctrl-C has reached the command as it has reached us */
			if (asked != SIGINT && asked != SIGQUIT)
				kill(r->pid, asked);
			waitpid(r->pid, &r->status, 0);
			r->pid = 0;
			break;
		}
		nanosleep(&pause, NULL);
	}
	pass_output(r);
}

static void remove_directory(struct top_recorder *r)
{
	char *notes = NULL;

	if (asprintf(&notes, "%s/top.notes.jsonl", r->directory) >= 0) {
		unlink(notes);
		free(notes);
	}
	unlink(r->file);
	unlink(r->output);
	if (rmdir(r->directory) < 0)
		warning("%s is left: %s", r->directory, strerror(errno));
}

int top_recorder_finish(struct top_recorder *r, int status)
{
	if (!r->directory)
		return status;
	if (r->command) {
		wait_for_command(r);
		if (WIFEXITED(r->status))
			status = WEXITSTATUS(r->status);
		else if (WIFSIGNALED(r->status))
			status = 128 + WTERMSIG(r->status);
	} else if (r->pid > 0) {
		kill(r->pid, SIGTERM);
		waitpid(r->pid, &r->status, 0);
		r->pid = 0;
	}
	if (r->keep) {
		int e = copy_file(r->file, r->keep);

		if (e < 0) {
			error("cannot keep the recording as %s: %s; it is %s", r->keep, why_not_written(-e),
				r->file);
			return status ? status : EXIT_TROUBLE;
		}
	}
	remove_directory(r);
	free(r->directory);
	free(r->file);
	free(r->output);
	free(r->keep);
	r->directory = NULL;
	return status;
}
