/* The socket on which the job tells of its phases and marks: where it lies, who is listened to, and how many
 * messages a second are taken.
 *
 * Rejected: a name without a file (abstract sockets): every user of the node could send to it. A socket in
 * the directory of the recording: that may be a file system that has none. */
#include "target/job_socket.h"

#include "base/rights.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Messages that are written down in a second. Senders that wait for no answer can be much faster. */
#define MOST_A_SECOND 20000
/* And bytes of them: the job's long texts shall not fill the disk. */
#define MOST_BYTES_A_SECOND (2u << 20)
/* Read at one go before the recorder looks at its other work. */
#define MOST_AT_ONCE 4096
/* Files of earlier recorders that are looked at: those that were killed leave theirs. */
#define LOOKED_AT 64
/* XDG_RUNTIME_DIR, TMPDIR, /tmp, and one there that is made for this recorder alone. */
#define NR_DIRS 4
#define OWN_DIR (NR_DIRS - 1)
#define OWN_DIR_NAME "tacho-%u-" /* the user, and what mkdtemp() chooses */
#define DIRS_LOOKED_AT 4096
/* Messages that a job can lose in a second. */
#define MOST_LOST_A_SECOND 10000000u
#define PREFIX 8
#define LOST_SUFFIX ".lost"
#define LOST_NAME_SIZE (sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(LOST_SUFFIX))
/* The space of so many bytes of the file of what was lost is given back at once. */
#define LOST_AT_ONCE (1u << 16)

/* ---- where ---- */

/* Only the user can put anything there, or exchange it. */
static bool is_own_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

/* Another user may have taken the usual name in /tmp. */
static bool make_own_dir(char *to, size_t size)
{
	int n = snprintf(to, size, "/tmp/" OWN_DIR_NAME "XXXXXX", (unsigned)geteuid());

	return n > 0 && (size_t)n < size && mkdtemp(to);
}

/* The directory to try in the i-th place. */
static bool take_dir(unsigned i, char *to, size_t size)
{
	const char *base = "/tmp";
	int n;

	if (i == OWN_DIR)
		return make_own_dir(to, size);
	if (i + 1 < OWN_DIR)
		base = rights_borrowed() ? NULL : getenv(i ? "TMPDIR" : "XDG_RUNTIME_DIR");
	if (!base || *base != '/' || (i == 0 && !is_own_dir(base)))
		return false;
	n = i == 0 ? snprintf(to, size, "%s/tacho", base)
		   : snprintf(to, size, "%s/tacho-%u", base, (unsigned)geteuid());
	return n > 0 && (size_t)n < size && (mkdir(to, 0700) == 0 || errno == EEXIST) && is_own_dir(to);
}

bool job_socket_directory(char *to, size_t size)
{
	for (unsigned i = 0; i < OWN_DIR; i++)
		if (take_dir(i, to, size))
			return true;
	return false;
}

/* What names of this node begin with: TMPDIR may be a directory that nodes share, and there the sockets of
 * other nodes look dead. */
static void node_prefix(char to[static PREFIX + 1])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, PREFIX);

	if (n != PREFIX)
		memset(to, '0', PREFIX);
	to[PREFIX] = 0;
	if (fd >= 0)
		close(fd);
}

/* A socket without a listener was left by a recorder that was killed, and so was a file of what was lost
 * without a socket: that is made after its socket. True: it was, and is removed. */
static bool remove_if_dead(int dir, const char *dir_path, const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char lost[LOST_NAME_SIZE];
	bool dead;
	int fd, n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir_path, name);

	if (n < 0 || (size_t)n >= sizeof(a.sun_path))
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	dead = connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 &&
		(errno == ECONNREFUSED || errno == ENOENT);
	if (dead) {
		snprintf(lost, sizeof(lost), "%.*s" LOST_SUFFIX, (int)sizeof(a.sun_path) - 1, name);
		unlinkat(dir, lost, 0);
		unlinkat(dir, name, 0);
	}
	close(fd);
	return dead;
}

/* True: there were some. */
static bool remove_dead(const char *path, const char *prefix)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	bool any = false;

	for (int i = 0; d && i < LOOKED_AT && (e = readdir(d)); i++) {
		char name[sizeof(e->d_name)];
		size_t len = strlen(e->d_name), end = strlen(LOST_SUFFIX);
		bool lost = len > end && !strcmp(e->d_name + len - end, LOST_SUFFIX);

		snprintf(name, sizeof(name), "%.*s", (int)(lost ? len - end : len), e->d_name);
		if (!strncmp(name, prefix, PREFIX) &&
			(lost || e->d_type == DT_SOCK || e->d_type == DT_UNKNOWN))
			any |= remove_if_dead(dirfd(d), path, name);
	}
	if (d)
		closedir(d);
	return any;
}

/* Directories of recorders that were killed. One that was empty before may be about to get its socket. */
static void remove_dead_dirs(const char *prefix)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)], begin[32];
	DIR *d = opendir("/tmp");
	const struct dirent *e;

	snprintf(begin, sizeof(begin), OWN_DIR_NAME, (unsigned)geteuid());
	for (int i = 0; d && i < DIRS_LOOKED_AT && (e = readdir(d)); i++) {
		int n = snprintf(path, sizeof(path), "/tmp/%s", e->d_name);

		if (n > 0 && (size_t)n < sizeof(path) && !strncmp(e->d_name, begin, strlen(begin)) &&
			is_own_dir(path) && remove_dead(path, prefix))
			rmdir(path);
	}
	if (d)
		closedir(d);
}

static int choose_path(unsigned i, char *to, size_t size)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path) - 24], prefix[PREFIX + 1];
	uint32_t number = 0;
	int n;

	if (!take_dir(i, dir, sizeof(dir)))
		return -EACCES;
	node_prefix(prefix);
	if (i == OWN_DIR)
		remove_dead_dirs(prefix);
	else
		remove_dead(dir, prefix);
	/* The number: recorders in several PID namespaces may have one PID. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (uint32_t)errno;
	n = snprintf(to, size, "%s/%s-%d-%04x", dir, prefix, (int)getpid(), number & 0xffff);
	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* ---- making ---- */

static void lost_name(const struct job_socket *s, char to[static LOST_NAME_SIZE])
{
	snprintf(to, LOST_NAME_SIZE, "%s" LOST_SUFFIX, s->address.sun_path);
}

static void make_lost(struct job_socket *s)
{
	char name[LOST_NAME_SIZE];

	lost_name(s, name);
	s->lost_fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int bind_there(struct job_socket *s)
{
	int on = 1, r;

	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	/* Made unreachable, then opened to the user: there is no moment at which others could send. */
	if (fchmod(s->fd, 0600) < 0 || bind(s->fd, (struct sockaddr *)&s->address, sizeof(s->address)) < 0 ||
		setsockopt(s->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
		r = -errno;
		close(s->fd);
		s->fd = -1;
		return r;
	}
	make_lost(s);
	return 0;
}

static void remove_own_dir(struct job_socket *s)
{
	char *slash = strrchr(s->address.sun_path, '/');

	if (!s->own_dir || !slash)
		return;
	*slash = 0;
	rmdir(s->address.sun_path);
	s->own_dir = false;
}

int job_socket_open(struct job_socket *s, const char *path)
{
	int r = -EACCES;

	*s = (struct job_socket){.fd = -1, .lost_fd = -1, .address.sun_family = AF_UNIX};
	if (path && strlen(path) >= sizeof(s->address.sun_path))
		return -ENAMETOOLONG;
	if (path) {
		memcpy(s->address.sun_path, path, strlen(path));
		return bind_there(s);
	}
	/* A directory may be on a file system that is full, or that has no sockets. */
	for (unsigned i = 0; i < NR_DIRS && r < 0; i++) {
		memset(s->address.sun_path, 0, sizeof(s->address.sun_path));
		r = choose_path(i, s->address.sun_path, sizeof(s->address.sun_path));
		s->own_dir = i == OWN_DIR && r >= 0;
		if (r >= 0)
			r = bind_there(s);
	}
	if (r < 0)
		remove_own_dir(s);
	return r;
}

void job_socket_close(struct job_socket *s)
{
	char name[LOST_NAME_SIZE];

	if (s->fd < 0)
		return;
	unlink(s->address.sun_path);
	close(s->fd);
	if (s->lost_fd >= 0) {
		lost_name(s, name);
		unlink(name);
		close(s->lost_fd);
	}
	s->fd = s->lost_fd = -1;
	remove_own_dir(s);
}

/* ---- reading ---- */

static bool credentials(struct msghdr *h, struct ucred *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(ret, CMSG_DATA(c), sizeof(*ret));
			return true;
		}
	return false;
}

/* One message; false: there is none. */
static bool receive(struct job_socket *s, char *bytes, size_t size, ssize_t *ret_len, struct ucred *ret_from)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec to = {bytes, size};
	struct msghdr h = {
		.msg_iov = &to, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	*ret_len = recvmsg(s->fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (*ret_len < 0)
		return false;
	if (h.msg_flags & MSG_TRUNC || !credentials(&h, ret_from))
		*ret_len = -1;
	return true;
}

static void add_lost(struct job_socket *s, uint64_t nr)
{
	nr = MIN(nr, s->lost_left);
	s->lost_left -= nr;
	s->dropped += nr;
}

static void begin_second(struct job_socket *s, int64_t second)
{
	/* Messages are lost as well while the recorder is stopped. */
	int64_t passed = s->second ? MAX(second - s->second, 1) : 1;

	s->second = second;
	s->left = MOST_A_SECOND;
	s->read = 0;
	s->bytes_left = MOST_BYTES_A_SECOND;
	s->lost_left = (uint64_t)passed * MOST_LOST_A_SECOND;
}

/* The file grows by what was lost; its contents are of no use. */
static void count_lost(struct job_socket *s)
{
	struct stat st;
	uint64_t size;

	if (s->lost_fd < 0 || fstat(s->lost_fd, &st) < 0)
		return;
	size = (uint64_t)st.st_size;
	add_lost(s, size > s->lost_seen ? size - s->lost_seen : 0);
	if (size / LOST_AT_ONCE != s->lost_seen / LOST_AT_ONCE)
		(void)fallocate(s->lost_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size);
	s->lost_seen = MAX(s->lost_seen, size);
}

bool job_socket_room(struct job_socket *s, int64_t now_ns, size_t len)
{
	bool fits;

	if (s->second != now_ns / NSEC_PER_SEC)
		begin_second(s, now_ns / NSEC_PER_SEC);
	fits = s->left && s->bytes_left >= len;
	s->left -= fits;
	s->bytes_left -= fits ? len : 0;
	s->dropped += !fits;
	return fits;
}

void job_socket_read(struct job_socket *s, int64_t now_ns, job_socket_member_fn *is_member,
	job_socket_take_fn *take, void *arg)
{
	char bytes[JOB_MESSAGE_MOST];
	struct job_message m;
	struct ucred from;
	ssize_t len;

	if (s->second != now_ns / NSEC_PER_SEC)
		begin_second(s, now_ns / NSEC_PER_SEC);
	for (int i = 0; i < MOST_AT_ONCE && receive(s, bytes, sizeof(bytes), &len, &from); i++) {
		s->read++;
		if (len < 0 || (from.uid != geteuid() && !is_member(arg, from.pid)) ||
			job_message_parse(bytes, (size_t)len, &m) < 0) {
			s->refused++;
			continue;
		}
		s->within += (uint64_t)m.within;
		add_lost(s, (uint64_t)m.lost);
		if (!*m.kind)
			continue;
		if (job_socket_room(s, now_ns, (size_t)len))
			take(arg, &m, from.pid);
	}
	count_lost(s);
}
