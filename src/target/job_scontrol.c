/* The tool is started and read beside the recording: its output comes through a pipe, and only the first
 * answer is waited for. posix_spawn() and not fork(): copying the recorder's page tables would take time from
 * the job. popen() was rejected: it goes through a shell and waits. */
#include "target/job_scontrol.h"

#include "base/rights.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define TIME_LIMIT_MS 5000
#define TEXT_LIMIT (1 << 20) /* about 25,000 processes */

struct scontrol {
	pid_t pid; /* 0: has been waited for */
	int out;
	int64_t start_ms;
	size_t len;
	char text[TEXT_LIMIT];
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* The recorder blocks and ignores signals; its child shall not. A process group of its own, so that what is
 * typed at the terminal is not for it. */
static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	if (posix_spawnattr_setsigmask(attributes, &none) ||
		posix_spawnattr_setsigdefault(attributes, &all) || posix_spawnattr_setpgroup(attributes, 0))
		return -EINVAL;
	return -posix_spawnattr_setflags(
		attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* By PATH; if we have rights that the user does not have, only where root alone can have put it. It inherits
 * none of them. */
static const char *find_tool(char real[static PATH_MAX])
{
	static const char *const place[] = {
		"/usr/bin/scontrol", "/usr/local/bin/scontrol", "/opt/slurm/bin/scontrol"};

	if (!rights_borrowed())
		return "scontrol";
	for (size_t i = 0; i < ARRAY_SIZE(place); i++)
		if (rights_trusted(place[i], real))
			return real;
	return NULL;
}

static int spawn(const char *id, int out, pid_t *ret_pid)
{
	char *const argv[] = {(char *)"scontrol", (char *)"listpids", (char *)id, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	char real[PATH_MAX];
	const char *tool = find_tool(real);
	int r = -ENOMEM;

	if (!tool)
		return -ENOENT;
	if (posix_spawn_file_actions_init(&files))
		return r;
	if (posix_spawnattr_init(&attributes))
		goto no_attributes;
	if (posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ||
		posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO) ||
		posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0))
		goto done;
	r = set_attributes(&attributes);
	if (r == 0)
		r = -posix_spawnp(ret_pid, tool, &files, &attributes, argv, rights_environment());
done:
	posix_spawnattr_destroy(&attributes);
no_attributes:
	posix_spawn_file_actions_destroy(&files);
	return r;
}

int scontrol_start(struct scontrol **ret, const char *id)
{
	struct scontrol *s = malloc(sizeof(*s));
	int fd[2], r;

	if (!s)
		return -ENOMEM;
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0) {
		r = -errno;
		free(s);
		return r;
	}
	s->pid = 0;
	s->out = fd[0];
	s->len = 0;
	s->start_ms = now_ms();
	/* The tool itself writes to an ordinary pipe: the flag belongs to each end by itself. */
	fcntl(fd[1], F_SETFL, 0);
	r = spawn(id, fd[1], &s->pid);
	close(fd[1]);
	if (r < 0) {
		s->pid = 0;
		scontrol_end(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* Its exit status does not matter, so we do not wait until it ends by itself. Other code of ours may have
 * waited for it already. */
static void reap(struct scontrol *s)
{
	if (!s->pid)
		return;
	kill(-s->pid, SIGKILL);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

/* 1 at the end of its output, 0 when there is no more now. */
static int drain(struct scontrol *s)
{
	for (;;) {
		ssize_t n = read(s->out, s->text + s->len, sizeof(s->text) - s->len);

		if (n > 0)
			s->len += (size_t)n;
		else if (n == 0)
			return s->len < sizeof(s->text) ? 1 : -EFBIG;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return -errno;
	}
}

int scontrol_answer(struct scontrol *s, int wait_ms, const char **ret_text, size_t *ret_len)
{
	int64_t start = now_ms();
	struct pollfd fd = {.fd = s->out, .events = POLLIN};
	int r;

	while ((r = drain(s)) == 0) {
		int64_t now = now_ms();

		if (now - s->start_ms >= TIME_LIMIT_MS) {
			r = -ETIME;
			break;
		}
		if (now - start >= wait_ms)
			return 0;
		poll(&fd, 1, (int)MIN(wait_ms - (now - start), TIME_LIMIT_MS - (now - s->start_ms)));
	}
	reap(s);
	if (r == 1) {
		*ret_text = s->text;
		*ret_len = s->len;
	}
	return r;
}

struct scontrol *scontrol_end(struct scontrol *s)
{
	if (!s)
		return NULL;
	reap(s);
	close(s->out);
	free(s);
	return NULL;
}
