/* What a program tells the recorder that watches it (`tacho run -- PROGRAM`): phases, marks and numbers.
 *
 *	tacho_phase_begin("load", NULL);
 *	tacho_phase_end("load", NULL);
 *	tacho_mark("checkpoint written", "size=3.1G", NULL);
 *	tacho_mark(NULL, "loss=0.31", "step=1200", NULL);     // data alone
 *
 * Behind the text stand words KEY=VALUE, and NULL at the end. A call sends one datagram to the socket that
 * TACHO_SOCKET named when the program was loaded, and never waits: 0 when it was sent, -1 when there is no
 * recorder, or when it does not keep up (what was lost is counted). Nothing is kept open and nothing is
 * allocated: any thread may call it, and a child after fork(). One file, no library: C99 (also -std=c99),
 * C++11, Fortran by ISO_C_BINDING; docs/marks.md has that, and the protocol. */
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
#include <sys/un.h>
#include <unistd.h>

#define tacho_mark(...) tacho_tell("mark ", __VA_ARGS__)
#define tacho_phase_begin(...) tacho_tell("begin ", __VA_ARGS__)
#define tacho_phase_end(...) tacho_tell("end ", __VA_ARGS__)
#define tacho_line(...) tacho_tell("", __VA_ARGS__) /* the text is a line of the protocol: "mark TEXT" */

#define TACHO_MESSAGE_MOST 4096
#define TACHO_TEXT_LEAST 512 /* of it, for the first line */

struct tacho_message {
	char bytes[2 * TACHO_MESSAGE_MOST]; /* in its middle the first line ends and the others begin */
	size_t end;
	long lost; /* messages before it, of which it tells */
};

static struct sockaddr_un tacho_socket; /* without a path: there is no recorder */
static long tacho_lost;			/* that could not be counted beside the socket */
static pid_t tacho_lost_by;		/* a child tells only of its own */

#ifdef O_CLOEXEC
#define TACHO_OPEN (O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
#else /* plain C99 */
#define TACHO_OPEN (O_WRONLY | O_APPEND | O_NONBLOCK)
#endif
#if defined(__STRICT_ANSI__) && !defined(__cplusplus) && !defined(__USE_MISC)
extern long syscall(long number, ...); /* plain C99 does not declare it, nor the clock */
#endif

/* Before there are threads, which may change the environment. */
__attribute__((constructor)) static void tacho_find_socket(void)
{
	const char *path = getenv("TACHO_SOCKET");

	tacho_socket.sun_family = AF_UNIX;
	if (path && strlen(path) < sizeof(tacho_socket.sun_path))
		memcpy(tacho_socket.sun_path, path, strlen(path));
}

/* Puts a line at `at`, and says where it ends, before `most`: newlines in it become \n, backslashes \\. One
 * that does not fit is left out (a part of a number is another number), or cut off behind a character: "…".
 */
static inline size_t tacho_put(char *to, size_t at, size_t most, const char *kind, const char *text, int cut)
{
	size_t start = at, whole = at + strlen(kind);

	if (whole + 4 > most)
		return start;
	memcpy(to + at, kind, strlen(kind));
	for (at = whole; text && *text && at + 3 <= most; text++) {
		if ((*text & 0xc0) != 0x80 && at + 4 <= most)
			whole = at;
		if (*text == '\n' || *text == '\\')
			to[at++] = '\\';
		to[at++] = *text == '\n' ? 'n' : *text;
	}
	if (text && *text) {
		memcpy(to + whole, "\342\200\246\n", 4);
		return cut ? whole + 4 : start;
	}
	to[at] = '\n';
	return at + 1;
}

static inline void tacho_add(struct tacho_message *m, const char *kind, const char *word)
{
	m->end = tacho_put(m->bytes, m->end, sizeof(m->bytes) - TACHO_TEXT_LEAST, kind, word, 0);
}

static inline void tacho_start(struct tacho_message *m)
{
	long now[2] = {0, 0};

	syscall(SYS_clock_gettime, 1L /* CLOCK_MONOTONIC */, now);
	m->lost = __atomic_exchange_n(&tacho_lost, 0, __ATOMIC_RELAXED);
	if (m->lost && tacho_lost_by != getpid())
		m->lost = 0;
	m->end = TACHO_MESSAGE_MOST;
	m->end += (size_t)snprintf(m->bytes + m->end, 200, "@time=%lld\n@thread=%ld\n@lost=%ld\n",
		now[0] * 1000000000LL + now[1], (long)syscall(SYS_gettid), m->lost);
}

/* The recorder counts the bytes of the file beside its socket, one for each message that it did not get.
 * Where a limit on file sizes would end the program for that, the next message tells. */
static inline void tacho_count(long lost)
{
	char name[sizeof(tacho_socket.sun_path) + 8];
	struct rlimit most;
	int fd = -1;

	snprintf(name, sizeof(name), "%s.lost", tacho_socket.sun_path);
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur == RLIM_INFINITY)
		fd = open(name, TACHO_OPEN);
	lost += fd < 0 || write(fd, "", 1) != 1;
	if (fd >= 0)
		close(fd);
	if (lost)
		tacho_lost_by = getpid();
	__atomic_fetch_add(&tacho_lost, lost, __ATOMIC_RELAXED);
}

static inline int tacho_send(struct tacho_message *m, const char *kind, const char *text)
{
	size_t first = tacho_put(m->bytes, 0, sizeof(m->bytes) - m->end, kind, text, 1);
	char *begin = m->bytes + TACHO_MESSAGE_MOST - first;
	int fd, sent, error = errno;

	if (!*tacho_socket.sun_path)
		return -1;
	memmove(begin, m->bytes, first);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sent = fd >= 0 &&
		sendto(fd, begin, (size_t)(m->bytes + m->end - begin), MSG_DONTWAIT | MSG_NOSIGNAL,
			(struct sockaddr *)&tacho_socket, sizeof(tacho_socket)) >= 0;
	if (!sent && errno != ECONNREFUSED && errno != ENOENT)
		tacho_count(m->lost);
	if (fd >= 0)
		close(fd);
	errno = error;
	return sent ? 0 : -1;
}

static inline int tacho_tell(const char *kind, const char *text, ...)
{
	struct tacho_message m;
	const char *word;
	va_list words;

	if (!*tacho_socket.sun_path)
		return -1;
	tacho_start(&m);
	va_start(words, text);
	while ((word = va_arg(words, const char *)) != NULL)
		tacho_add(&m, "", word);
	va_end(words);
	return tacho_send(&m, kind, text);
}
#endif
