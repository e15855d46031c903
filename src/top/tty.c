/* The terminal: see tty.h. Escape sequences are those that all terminals since xterm know; no terminfo is
 * needed, so an unknown TERM is no trouble. */
#include "top/tty.h"

#include "base/str.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

#define ESC_WAIT_MS 40 /* an escape that nothing follows in this time is the key */

/* Other screen, no cursor, no wrapping. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[0m\033[2J";
static const char mouse_on[] = "\033[?1000h\033[?1002h\033[?1006h";
static const char leave[] = "\033[?2026l\033[?1006l\033[?1002l\033[?1000l\033[0m\033[?7h\033[?25h\033[?1049l";

/* For handlers of signals: there is one terminal. */
static struct {
	volatile sig_atomic_t raw; /* it is ours now */
	volatile sig_atomic_t signal, resized, stop, continued;
	int in, out;
	bool mouse;
	struct termios was;
	sigset_t mask; /* as it was: signals come while we wait, and not in between */
} state;

static void write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			poll(&wait, 1, 1000);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		p += done;
		n -= (size_t)done;
	}
}

/* Also in handlers: only what may be called there. A background process must not touch the terminal. */
static void restore(void)
{
	if (!state.raw || tcgetpgrp(state.in) != getpgrp())
		return;
	state.raw = 0;
	write_all(state.out, leave, sizeof(leave) - 1);
	tcsetattr(state.in, TCSANOW, &state.was);
}

static int make_raw(void)
{
	struct termios raw = state.was;

	raw.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
	raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN | ISIG);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(state.in, TCSANOW, &raw) < 0)
		return -errno;
	write_all(state.out, enter, sizeof(enter) - 1);
	if (state.mouse)
		write_all(state.out, mouse_on, sizeof(mouse_on) - 1);
	state.raw = 1;
	return 0;
}

/* ---- signals ---- */

static void on_end(int number)
{
	state.signal = number;
}

static void on_note(int number)
{
	if (number == SIGWINCH)
		state.resized = 1;
	else if (number == SIGTSTP)
		state.stop = 1;
	else
		state.continued = 1;
}

static void on_crash(int number)
{
	int kept = errno;

	restore();
	signal(number, SIG_DFL);
	errno = kept;
	raise(number);
}

static void take_signals(void)
{
	sigset_t blocked;

	static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
	static const int crash[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	static const int note[] = {SIGWINCH, SIGTSTP, SIGCONT};
	struct sigaction action = {.sa_handler = on_end}, had;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		if (!sigaction(ending[i], NULL, &had) && had.sa_handler != SIG_IGN) {
			sigaction(ending[i], &action, NULL);
			sigaddset(&blocked, ending[i]);
		}
	action.sa_handler = on_note;
	for (size_t i = 0; i < ARRAY_SIZE(note); i++) {
		sigaction(note[i], &action, NULL);
		sigaddset(&blocked, note[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, &state.mask);
	action.sa_handler = on_crash;
	action.sa_flags = (int)SA_RESETHAND | SA_NODEFER;
	for (size_t i = 0; i < ARRAY_SIZE(crash); i++)
		sigaction(crash[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
}

int tty_signal(void)
{
	return state.signal;
}

/* ---- opening and closing ---- */

enum color_depth color_depth_of(const char *term, const char *colorterm, const char *no_color)
{
	if (no_color && *no_color)
		return COLORS_NONE;
	if (!term || !*term || !strcmp(term, "dumb") || strstr(term, "-mono") || str_starts(term, "vt1") ||
		str_starts(term, "vt2"))
		return COLORS_NONE;
	if (colorterm && (strstr(colorterm, "truecolor") || strstr(colorterm, "24bit")))
		return COLORS_TRUE;
	if (strstr(term, "direct"))
		return COLORS_TRUE;
	if (strstr(term, "256") || strstr(term, "kitty") || strstr(term, "ghostty") ||
		strstr(term, "alacritty") || strstr(term, "foot") || strstr(term, "wezterm"))
		return COLORS_256;
	return COLORS_8;
}

bool tty_can_draw(int out, const char *term)
{
	return isatty(out) && term && *term && strcmp(term, "dumb");
}

int tty_open(struct tty *t, int out, bool utf8, bool mouse)
{
	int in = isatty(STDIN_FILENO) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				      : open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	int r;

	if (in < 0)
		return -errno;
	*t = (struct tty){.in = in,
		.out = out,
		.utf8 = utf8,
		.mouse = mouse,
		.depth = color_depth_of(getenv("TERM"), getenv("COLORTERM"), getenv("NO_COLOR"))};
	state.in = in;
	state.out = out;
	state.mouse = mouse;
	if (tcgetattr(in, &state.was) < 0) {
		r = -errno;
		close(in);
		return r;
	}
	take_signals();
	r = make_raw();
	if (r < 0)
		close(in);
	return r;
}

void tty_close(struct tty *t)
{
	restore();
	screen_close(&t->shown);
	if (t->in >= 0) {
		close(t->in);
		signal(SIGTSTP, SIG_DFL);
		signal(SIGTTOU, SIG_DFL);
		sigprocmask(SIG_SETMASK, &state.mask, NULL);
	}
	t->in = -1;
}

void tty_size(const struct tty *t, unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size = {0};

	ioctl(t->out, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col ? size.ws_col : 80;
	*ret_rows = size.ws_row ? size.ws_row : 24;
}

void tty_lend(struct tty *t)
{
	restore();
	screen_close(&t->shown);
}

void tty_take_back(struct tty *t)
{
	screen_close(&t->shown);
	if (!state.raw)
		make_raw();
}

void tty_stop(struct tty *t)
{
	tty_lend(t);
	raise(SIGSTOP);
	state.stop = 0;
	state.continued = 1;
}

/* ---- drawing ---- */

long tty_draw(struct tty *t, struct screen *next)
{
	struct buf out;
	long n;

	buf_init(&out, (size_t)64 << 20);
	frame_diff(t->shown.cell ? &t->shown : NULL, next, t->depth, &out);
	screen_close(&t->shown);
	t->shown = *next;
	next->cell = NULL;
	n = out.err ? out.err : (long)out.len;
	if (n > 0) {
		write_all(t->out, (char *)out.data, out.len);
		t->bytes += out.len;
		t->writes++;
	}
	buf_release(&out);
	return n;
}

/* ---- waiting ---- */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* What signals have noted; TTY_TIMEOUT: nothing. */
static enum tty_news noted(struct tty *t)
{
	if (state.signal)
		return TTY_ENDED;
	if (state.stop)
		tty_stop(t);
	if (state.continued) {
		state.continued = 0;
		while (tcgetpgrp(t->in) > 0 && tcgetpgrp(t->in) != getpgrp())
			raise(SIGSTOP); /* in the background there is nothing to draw on */
		/* The shell may have changed it while we were stopped. */
		state.raw = 0;
		tty_take_back(t);
		return TTY_RESIZED;
	}
	if (state.resized) {
		state.resized = 0;
		screen_close(&t->shown);
		return TTY_RESIZED;
	}
	return TTY_TIMEOUT;
}

/* One byte: 1, 0: none, negative: it is gone. */
static int read_byte(const struct tty *t, uint8_t *ret)
{
	ssize_t n = read(t->in, ret, 1);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	return (int)n;
}

static enum tty_news read_key(struct tty *t, struct key_event *ret)
{
	uint8_t byte;
	int r;

	while ((r = read_byte(t, &byte)) > 0)
		if (keys_byte(&t->keys, byte, ret))
			return TTY_KEY;
	return r < 0 ? TTY_ENDED : TTY_TIMEOUT;
}

enum tty_news tty_wait(struct tty *t, int64_t timeout_ns, struct key_event *ret)
{
	int64_t end = timeout_ns < 0 ? INT64_MAX : add_clamped(now_ns(), timeout_ns);

	for (;;) {
		bool waits = keys_wait(&t->keys);
		int64_t left = waits ? ESC_WAIT_MS * NSEC_PER_MSEC : end - now_ns();
		struct pollfd in = {.fd = t->in, .events = POLLIN};
		struct timespec rest;
		enum tty_news news = noted(t);
		int r;

		if (news)
			return news;
		left = MAX(MIN(left, 3600 * NSEC_PER_SEC), 0);
		rest = (struct timespec){.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};
		r = ppoll(&in, 1, &rest, &state.mask);
		if (r > 0 && in.revents & POLLIN) {
			news = read_key(t, ret);
			if (news)
				return news;
		}
		if (r > 0 && in.revents & (POLLERR | POLLHUP | POLLNVAL))
			return TTY_ENDED;
		news = noted(t);
		if (news)
			return news;
		if (r == 0 && waits && keys_timeout(&t->keys, ret))
			return TTY_KEY;
		if (r == 0 && !waits && now_ns() >= end)
			return TTY_TIMEOUT;
	}
}
