/* Where the server listens: a unix socket that only its user can open, or a port. */
#include "serve/internal.h"

#include "base/token_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define WAITING_MOST 64
#define LOCK_TRIES 100 /* of 10 ms each */
#define SEND_MEMORY (256 << 10)

/* ---- a socket ---- */

static int is_private(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 0077) ? 0 : -EPERM;
}

/* Of the user alone: below the one that the system made for them, else in the place for temporary files. */
static int private_directory(char **ret, struct buf *reterr)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
	int r = -ENOENT, n;

	if (runtime && *runtime == '/' && is_private(runtime) == 0)
		n = asprintf(ret, "%s/tacho", runtime);
	else
		n = asprintf(
			ret, "%s/tacho-%u", temporary && *temporary == '/' ? temporary : "/tmp", geteuid());
	if (n < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	if (mkdir(*ret, 0700) == 0 || errno == EEXIST)
		r = is_private(*ret);
	else
		r = -errno;
	if (r < 0)
		buf_addf(reterr, "%s: %s; --socket PATH puts the socket elsewhere", *ret,
			r == -EPERM ? "is not a directory of yours alone" : strerror(-r));
	return r;
}

static int address_of(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return 0;
}

/* Its server was killed: no process answers there any more. */
static bool is_stale(const char *path)
{
	struct sockaddr_un address;
	struct stat st;
	bool stale;
	int fd;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid() ||
		address_of(path, &address) < 0)
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	stale = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
		errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return stale;
}

/* Two servers that begin at once could both find a stale socket, and one would remove that of the other: one
 * after the other, by a lock on the directory, which leaves no file behind. Who holds it for long (anybody
 * may lock /tmp) does not hold us. -1: it goes on without. */
static int lock_directory_of(const char *path)
{
	const struct timespec pause = {.tv_nsec = 10 * NSEC_PER_MSEC};
	_cleanup_(freep) char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;
	int fd;

	if (!directory)
		return -1;
	if (slash)
		slash[slash == directory] = 0;
	fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
		nanosleep(&pause, NULL);
	return fd;
}

static void remove_stale(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		_cleanup_(freep) char *path = NULL;

		if (!strncmp(entry->d_name, "serve-", 6) &&
			asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
			path = NULL;
		if (path && is_stale(path))
			unlink(path);
	}
	if (dir)
		closedir(dir);
}

static int socket_path(struct serve *s, struct buf *reterr)
{
	int r;

	if (s->o.socket) {
		s->socket = strdup(s->o.socket);
		return s->socket ? 0 : -ENOMEM;
	}
	r = private_directory(&s->directory, reterr);
	if (r < 0)
		return r;
	if (asprintf(&s->socket, "%s/serve-%d.sock", s->directory, getpid()) >= 0)
		return 0;
	s->socket = NULL;
	return -ENOMEM;
}

static int bind_socket(struct serve *s, const struct sockaddr_un *address)
{
	int lock = lock_directory_of(s->socket), r = 0;
	mode_t before;

	if (s->directory)
		remove_stale(s->directory);
	else if (is_stale(s->socket))
		unlink(s->socket);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	before = umask(0177);
	if (s->listener < 0 || bind(s->listener, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
		listen(s->listener, WAITING_MOST) < 0 || lstat(s->socket, &s->socket_stat) < 0)
		r = -errno;
	umask(before);
	if (lock >= 0)
		close(lock);
	return r;
}

static int open_socket(struct serve *s, struct buf *reterr)
{
	struct sockaddr_un address;
	int r = socket_path(s, reterr);

	if (r >= 0)
		r = address_of(s->socket, &address);
	if (r >= 0)
		r = bind_socket(s, &address);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "%s: %s%s", s->socket ? s->socket : "a socket", strerror(-r),
			r == -ENAMETOOLONG ? ": --socket PATH with a shorter one" : "");
	if (r < 0) {
		free(s->socket); /* not ours: it stays */
		s->socket = NULL;
	}
	return r;
}

/* ---- a port ---- */

static int set_token(struct serve *s, struct buf *reterr)
{
	char token[TOKEN_SIZE];
	int r;

	if (s->o.token_file) {
		r = token_of_file(s->o.token_file, &s->token, reterr);
	} else {
		r = token_random(token);
		if (r >= 0 && !(s->token = strdup(token)))
			r = -ENOMEM;
		explicit_bzero(token, sizeof(token));
	}
	if (r < 0)
		return r;
	/* A name of its own for each server: cookies do not know ports. */
	serve_id(s->token, token);
	return asprintf(&s->cookie, "tacho-%.8s", token) < 0 ? -ENOMEM : 0;
}

static int bind_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol), yes = 1;
	int r = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, WAITING_MOST) < 0) {
		r = -errno;
		close(fd);
	}
	return r < 0 ? r : fd;
}

static int set_url(struct serve *s)
{
	struct sockaddr_storage at;
	socklen_t size = sizeof(at);
	char host[300], port[16];
	bool six;

	if (getsockname(s->listener, (struct sockaddr *)&at, &size) < 0 ||
		getnameinfo((struct sockaddr *)&at, size, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return -EINVAL;
	six = at.ss_family == AF_INET6;
	if (asprintf(&s->address_host, "%s%s%s", six ? "[" : "", host, six ? "]" : "") < 0) {
		s->address_host = NULL;
		return -ENOMEM;
	}
	return asprintf(&s->url, "http://%s:%s/#%s", s->address_host, port, s->token) < 0 ? -ENOMEM : 0;
}

static int open_port(struct serve *s, struct buf *reterr)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	const char *host = s->o.address ? s->o.address : "127.0.0.1";
	struct addrinfo *list = NULL;
	char port[16];
	int r;

	snprintf(port, sizeof(port), "%d", MAX(s->o.port, 0));
	r = getaddrinfo(host, port, &hints, &list);
	if (r != 0) {
		buf_addf(reterr, "cannot listen on %s: %s", host, gai_strerror(r));
		return -EINVAL;
	}
	s->listener = -EADDRNOTAVAIL;
	for (const struct addrinfo *a = list; a && s->listener < 0; a = a->ai_next)
		s->listener = bind_one(a);
	freeaddrinfo(list);
	r = s->listener < 0 ? s->listener : set_token(s, reterr);
	if (r >= 0)
		r = set_url(s);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "cannot listen on %s, port %s: %s%s", host, port, strerror(-r),
			r == -EADDRINUSE ? ": another program does; --port 0 takes a free one" : "");
	return r;
}

/* ---- both ---- */

static int take_hosts(struct serve *s)
{
	s->host = calloc(s->o.nr_allow_host + 3, sizeof(*s->host));
	if (!s->host)
		return -ENOMEM;
	for (size_t i = 0; i < s->o.nr_allow_host; i++)
		s->host[s->nr_hosts++] = s->o.allow_host[i];
	if (s->address_host)
		s->host[s->nr_hosts++] = s->address_host;
	if (s->o.address)
		s->host[s->nr_hosts++] = s->o.address;
	return 0;
}

/* What the kernel keeps for a viewer that takes nothing: else some megabytes. Connections inherit it. */
static void limit_memory(int fd)
{
	int most = SEND_MEMORY;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
}

int listener_open(struct serve *s, struct buf *reterr)
{
	int r = s->o.port < 0 && !s->o.address ? open_socket(s, reterr) : open_port(s, reterr);

	if (r >= 0)
		limit_memory(s->listener);
	return r < 0 ? r : take_hosts(s);
}

/* Another one may have been put in its place. While ours is open its number is not given to another file. */
void listener_remove(struct serve *s)
{
	struct stat st;

	if (s->socket && lstat(s->socket, &st) == 0 && st.st_dev == s->socket_stat.st_dev &&
		st.st_ino == s->socket_stat.st_ino)
		unlink(s->socket);
}

void listener_close(struct serve *s)
{
	if (s->token)
		explicit_bzero(s->token, strlen(s->token));
	if (s->url)
		explicit_bzero(s->url, strlen(s->url));
	free(s->socket);
	free(s->directory);
	free(s->url);
	free(s->token);
	free(s->cookie);
	free(s->address_host);
	free(s->host);
}
