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
 * TACHO_SOCKET names, and never waits: 0 when it was sent, -1 when there is no recorder, or when it does not
 * keep up (what was lost is counted, and told with the next message). Nothing is kept open and nothing is
 * allocated: it may be called from any thread, and in a child after fork().
 *
 * One file, no library: C99, C++, or Fortran by ISO_C_BINDING (docs/marks.md has the protocol). */
#ifndef TACHO_MARK_H
#define TACHO_MARK_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A longer text is cut off. Words behind it that do not fit are left out: a part of a number is another
 * number. */
#define TACHO_MESSAGE_MOST 4096

static long tacho_marks_lost;

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
	if (start && text && *text)
		return start;
	to[at++] = '\n';
	return at;
}

/* `lost`: what the message tells of those before it. */
static inline int tacho_send(const char *message, size_t size, long lost)
{
	struct sockaddr_un address;
	const char *path = getenv("TACHO_SOCKET");
	int fd, error = errno, sent;

	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	if (!path || !*path || strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sent = fd >= 0 &&
		sendto(fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address,
			sizeof(address)) >= 0;
	if (fd >= 0)
		close(fd);
	if (!sent)
		__atomic_fetch_add(&tacho_marks_lost, lost + 1, __ATOMIC_RELAXED);
	errno = error;
	return sent ? 0 : -1;
}

/* The first lines of a message: what it tells, when, and how many before it were lost. */
static inline size_t tacho_begin(char *message, const char *kind, const char *text, long lost)
{
	size_t size = tacho_add_line(message, 0, kind, text);
	struct timespec now;
	char number[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(number, sizeof(number), "%lld%09ld", (long long)now.tv_sec, (long)now.tv_nsec);
	size = tacho_add_line(message, size, "@time=", number);
	snprintf(number, sizeof(number), "%ld", lost);
	return lost ? tacho_add_line(message, size, "@lost=", number) : size;
}

static inline int tacho_tell(const char *kind, const char *text, va_list words)
{
	char message[TACHO_MESSAGE_MOST];
	long lost = __atomic_exchange_n(&tacho_marks_lost, 0, __ATOMIC_RELAXED);
	size_t size = tacho_begin(message, kind, text, lost);
	const char *word;

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
#undef TACHO_TELLER
#endif
