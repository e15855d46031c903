/* What a program tells the recorder that watches it (`tacho run -- PROGRAM`): phases and marks.
 *
 *	#include <tacho_mark.h>
 *
 *	tacho_phase_begin("load", NULL);
 *	...
 *	tacho_phase_end("load", NULL);
 *	tacho_mark("checkpoint written", "size=3.1G", NULL);
 *	tacho_mark(NULL, "loss=0.31", "step=1200", NULL);     // data alone
 *
 * Behind the text stand words KEY=VALUE, and NULL at the end. A call sends one datagram to the socket that
 * TACHO_SOCKET names at the first call, and never waits: 0 when it was sent, -1 when there is no recorder, or
 * when it does not keep up (what was lost is counted). Nothing is kept open and nothing is allocated: it may
 * be called from any thread, and in a child after fork().
 *
 * One file, no library: C99 (also gcc -std=c99), C++, or Fortran by ISO_C_BINDING (docs/marks.md has that,
 * and the protocol). */
#ifndef TACHO_MARK_H
#define TACHO_MARK_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A text that is too long for its message is cut off, and ends with "…" then: the words behind it come first.
 * Words that do not fit are left out: a part of a number is another number. */
#define TACHO_MESSAGE_MOST 4096
#define TACHO_CUT "\342\200\246" /* … */
#define TACHO_TEXT_LEAST 512	 /* of the message, for the text */
#define TACHO_OWN_MOST 160	 /* for the lines that begin with @ */

/* A compiler that is asked for plain C99 or C11 (-std=c99) finds less in the headers of the C library. */
#if defined(O_CLOEXEC)
#define TACHO_OPEN (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
#elif defined(__O_CLOEXEC) && defined(__O_NOFOLLOW)
#define TACHO_OPEN (__O_CLOEXEC | __O_NOFOLLOW | O_NONBLOCK)
#else
#define TACHO_OPEN O_NONBLOCK
#endif
#if !defined(__cplusplus) && defined(__STRICT_ANSI__) && !defined(__USE_MISC)
extern long syscall(long number, ...);
#endif

/* What was lost and could not be counted beside the socket; it is told with the next message. */
static long tacho_marks_lost;
static pid_t tacho_marks_lost_by; /* a child tells only of its own */

/* A line of the message: a newline within it is written \n, a backslash \\. */
static inline size_t tacho_add_line(char *to, size_t at, const char *kind, const char *text)
{
	size_t n = strlen(kind), start = at;

	if (at + n + 1 >= TACHO_MESSAGE_MOST)
		return at;
	memcpy(to + at, kind, n);
	at += n;
	for (; text && *text && at + 3 < TACHO_MESSAGE_MOST; text++) {
		if (*text == '\n' || *text == '\\')
			to[at++] = '\\';
		to[at++] = *text == '\n' ? 'n' : *text;
	}
	if (text && *text)
		return start;
	to[at++] = '\n';
	return at;
}

/* How long the line is. */
static inline size_t tacho_line_size(const char *text)
{
	size_t size = 1;

	for (; *text; text++)
		size += *text == '\n' || *text == '\\' ? 2 : 1;
	return size;
}

/* The first line; `data` is the size of the lines that follow. */
static inline size_t tacho_add_text(char *to, const char *kind, const char *text, size_t data)
{
	size_t most = TACHO_MESSAGE_MOST - TACHO_OWN_MOST, at = strlen(kind), i = 0, n;

	most = data < most - TACHO_TEXT_LEAST ? most - data : TACHO_TEXT_LEAST;
	memcpy(to, kind, at);
	for (; text && text[i]; i++) {
		n = text[i] == '\n' || text[i] == '\\' ? 2 : 1;
		if (at + n + sizeof(TACHO_CUT) > most)
			break;
		if (n == 2)
			to[at++] = '\\';
		to[at++] = text[i] == '\n' ? 'n' : text[i];
	}
	if (text && text[i]) {
		/* Not within a character. */
		for (n = 0; n < 3 && i && ((unsigned char)text[i] & 0xc0) == 0x80; n++, i--)
			at--;
		memcpy(to + at, TACHO_CUT, strlen(TACHO_CUT));
		at += strlen(TACHO_CUT);
	}
	to[at++] = '\n';
	return at;
}

/* By the monotonic clock, in nanoseconds. */
static inline long long tacho_now(void)
{
#ifdef CLOCK_MONOTONIC
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
#else
	long now[2] = {0, 0}; /* as the system call has it */

	syscall(SYS_clock_gettime, 1L, now);
	return now[0] * 1000000000LL + now[1];
#endif
}

static inline long tacho_take_lost(void)
{
	long lost = __atomic_exchange_n(&tacho_marks_lost, 0, __ATOMIC_RELAXED);

	return lost && tacho_marks_lost_by == getpid() ? lost : 0;
}

/* The recorder counts the bytes of the file beside the socket: one for each message that it did not get. A
 * limit on file sizes would end the program: then the message is counted here. */
static inline void tacho_count_lost(const char *path, long lost)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	struct rlimit most;
	int fd = -1;

	snprintf(name, sizeof(name), "%s.lost", path);
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur == RLIM_INFINITY)
		fd = open(name, O_WRONLY | O_APPEND | TACHO_OPEN);
	if (fd < 0 || write(fd, "", 1) != 1)
		lost++;
	if (fd >= 0)
		close(fd);
	if (lost) {
		tacho_marks_lost_by = getpid();
		__atomic_fetch_add(&tacho_marks_lost, lost, __ATOMIC_RELAXED);
	}
}

/* Where the recorder listens. The variable is looked at once: other threads may change the environment later.
 * A thread that comes while the first one keeps the answer looks by itself: nothing waits. */
static struct sockaddr_un tacho_socket;
static int tacho_socket_kept; /* 1: it is being written, 2: it is there */

static inline int tacho_find_socket(struct sockaddr_un *to)
{
	const char *path;
	int not_yet = 0;

	if (__atomic_load_n(&tacho_socket_kept, __ATOMIC_ACQUIRE) == 2) {
		*to = tacho_socket;
		return *to->sun_path != 0;
	}
	memset(to, 0, sizeof(*to));
	to->sun_family = AF_UNIX;
	path = getenv("TACHO_SOCKET");
	if (path && strlen(path) < sizeof(to->sun_path))
		memcpy(to->sun_path, path, strlen(path));
	if (__atomic_compare_exchange_n(
		    &tacho_socket_kept, &not_yet, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		tacho_socket = *to;
		__atomic_store_n(&tacho_socket_kept, 2, __ATOMIC_RELEASE);
	}
	return *to->sun_path != 0;
}

/* `lost`: what the message tells of those before it. */
static inline int tacho_send(const char *message, size_t size, long lost)
{
	struct sockaddr_un address;
	int fd, error = errno, sent;

	if (!tacho_find_socket(&address))
		return -1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sent = fd >= 0 &&
		sendto(fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address,
			sizeof(address)) >= 0;
	if (!sent && errno != ECONNREFUSED && errno != ENOENT)
		tacho_count_lost(address.sun_path, lost);
	if (fd >= 0)
		close(fd);
	errno = error;
	return sent ? 0 : -1;
}

/* The first lines of a message: what it tells, when, which thread, and how many before it were lost. `data`
 * is the size of the lines that follow. */
static inline size_t tacho_begin(char *message, const char *kind, const char *text, size_t data, long lost)
{
	size_t size = tacho_add_text(message, kind, text, data);
	char number[32];

	snprintf(number, sizeof(number), "%lld", tacho_now());
	size = tacho_add_line(message, size, "@time=", number);
	snprintf(number, sizeof(number), "%ld", (long)syscall(SYS_gettid));
	size = tacho_add_line(message, size, "@thread=", number);
	snprintf(number, sizeof(number), "%ld", lost);
	return lost ? tacho_add_line(message, size, "@lost=", number) : size;
}

static inline int tacho_tell(const char *kind, const char *text, va_list words)
{
	char message[TACHO_MESSAGE_MOST];
	long lost = tacho_take_lost();
	size_t size, data = 0;
	const char *word;
	va_list again;

	va_copy(again, words);
	while ((word = va_arg(again, const char *)))
		data += tacho_line_size(word);
	va_end(again);
	size = tacho_begin(message, kind, text, data, lost);
	while ((word = va_arg(words, const char *)))
		size = tacho_add_line(message, size, "", word);
	return tacho_send(message, size, lost);
}

#define TACHO_TELLER(name, kind)                      \
	static inline int name(const char *text, ...) \
	{                                             \
		va_list words;                        \
		int r;                                \
                                                      \
		va_start(words, text);                \
		r = tacho_tell(kind, text, words);    \
		va_end(words);                        \
		return r;                             \
	}

TACHO_TELLER(tacho_mark, "mark ")
TACHO_TELLER(tacho_phase_begin, "begin ")
TACHO_TELLER(tacho_phase_end, "end ")
/* The text is a line of the protocol: "mark TEXT", "begin NAME", "end NAME". For callers in other languages.
 */
TACHO_TELLER(tacho_line, "")
#undef TACHO_TELLER
#endif
