/* Output for people: messages, pages, the terminal.
 *
 * A message leaves in one write(2), so that it stays whole between the lines of a job that writes to the same
 * terminal. Names in messages may be hostile (a file can be called anything), so control characters are
 * escaped. */
#include "cmd/cmd.h"

#include "base/str.h"
#include "base/units.h"
#include "cmd/progress.h"
#include "cmd/reading.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>

const char tacho_version[] = TACHO_VERSION;

#define MESSAGE_MAX 8192

/* The reason is a text of the C library, from the place where there was no memory. */
static void add_remedy(struct buf *out, const char *text)
{
	char size[UNITS_SIZE];

	if (!reading_memory() || (!strstr(text, strerror(ENOMEM)) && !strstr(text, "no memory")))
		return;
	buf_addf(
		out, ": reading may take %s; --max-memory allows more", format_bytes(size, reading_memory()));
}

/* The reader of the pipe may be gone, or the file may be at its limit: the signal for that must not end us,
 * least of all before the job runs. It is blocked, and removed afterwards. */
static void write_message(const struct buf *message)
{
	const struct timespec now = {0};
	sigset_t of_writes, before;

	sigemptyset(&of_writes);
	sigaddset(&of_writes, SIGPIPE);
	sigaddset(&of_writes, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &of_writes, &before);
	if (write(STDERR_FILENO, message->data, message->len) < 0)
		sigtimedwait(&of_writes, NULL, &now);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void say(const char *prefix, const char *fmt, va_list ap)
{
	struct buf message;
	char text[MESSAGE_MAX];
	ssize_t n;

	n = vsnprintf(text, sizeof(text), fmt, ap);
	buf_init(&message, 5 * MESSAGE_MAX);
	buf_adds(&message, prefix);
	show_bytes(&message, text, n < 0 ? 0 : MIN((size_t)n, sizeof(text) - 1), "\n\t");
	add_remedy(&message, text);
	buf_addch(&message, '\n');
	progress_clear();
	write_message(&message);
	buf_release(&message);
}

void error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("tacho: ", fmt, ap);
	va_end(ap);
}

void warning(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("tacho: warning: ", fmt, ap);
	va_end(ap);
}

void die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("tacho: ", fmt, ap);
	va_end(ap);
	exit(status);
}

void usage(const struct cmd *cmd, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("tacho: ", fmt, ap);
	va_end(ap);
	exit(cmd->usage_status ? cmd->usage_status : EXIT_USAGE);
}

const char *why_not_written(int err)
{
	struct rlimit limit;

	if (err == EFBIG && !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		return "it would be larger than the file size limit allows (ulimit -f)";
	return strerror(err);
}

/* One report of a broken stdout is enough. */
static bool stdout_failed;

static int stdout_trouble(int err)
{
	if (!stdout_failed && err != EPIPE)
		error("cannot write to standard output: %s", why_not_written(err));
	stdout_failed = true;
	return err == EPIPE ? EXIT_OK : EXIT_TROUBLE;
}

int print(const struct buf *out)
{
	progress_clear();
	if (out->err) {
		error("the answer is too long: %s", strerror(-out->err));
		return EXIT_TROUBLE;
	}
	if (fwrite(out->data, 1, out->len, stdout) < out->len || fflush(stdout))
		return stdout_trouble(errno);
	return EXIT_OK;
}

int print_shown(const struct buf *out)
{
	struct buf shown;
	int status;

	if (out->err || !isatty(STDOUT_FILENO))
		return print(out);
	buf_init(&shown, 4 * out->len + 1);
	show_bytes(&shown, out->data, out->len, "\n\t");
	status = print(&shown);
	buf_release(&shown);
	return status;
}

int finish_stdout(int status)
{
	bool failed = false;

	progress_clear();
	errno = 0;
	if (fflush(stdout) || ferror(stdout))
		failed = true;
	else if (close(STDOUT_FILENO) < 0 && errno != EBADF) /* NFS reports a full disk only here */
		failed = true;
	if (!failed || stdout_failed)
		return status;
	return MAX(status, stdout_trouble(errno ? errno : EIO));
}

bool want_color(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no && *no) && term && *term && strcmp(term, "dumb");
}

unsigned terminal_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_col ? 80 : size.ws_col;
}
