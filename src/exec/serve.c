/* `tacho serve`: the words of the command line to what the server takes (serve/serve.h), and what it prints.
 */
#include "exec/serve.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/start.h"
#include "document/document.h"
#include "query/run.h"
#include "serve/serve.h"
#include "text/words.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LINGER_NS (10 * NSEC_PER_SEC)

/* ---- what it says ---- */

static const char *user_name(void)
{
	const struct passwd *user = getpwuid(geteuid());

	return user ? user->pw_name : "USER";
}

static void say_socket(const char *path, struct buf *out)
{
	char host[256] = "HOST", real[PATH_MAX];
	const char *full = realpath(path, real) ? real : path;

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = 0;
	buf_adds(out, "  ssh -N -L 8080:");
	add_shell_word(out, full, strlen(full));
	buf_addf(out, " %s@%s\n  then open http://localhost:8080/\n", user_name(), host);
}

static void say_where(struct serve *s, bool brief)
{
	size_t nr, running;
	struct buf out;

	buf_init(&out, 1 << 16);
	serve_count(s, &nr, &running);
	if (brief) {
		buf_adds(&out, "tacho serve: this run in a browser");
	} else {
		buf_adds(&out, "tacho serve: ");
		add_count(&out, (double)nr, "recording", "recordings");
		buf_addf(&out, ", %zu in progress", running);
	}
	buf_adds(&out, "\n");
	if (serve_socket(s))
		say_socket(serve_socket(s), &out);
	else
		buf_addf(&out, "  open %s\n", serve_url(s));
	fputs((char *)out.data, stderr);
	fflush(stderr);
	buf_release(&out);
}

/* ---- options ---- */

static int port_of(const struct serve_args *a)
{
	uint64_t port;

	if (!a->port)
		return a->bind ? 0 : -1;
	if (!parse_u64(a->port, &port) || port > 65535)
		usage(&cmd_serve, "--port takes a number up to 65535, not '%s'", a->port);
	return (int)port;
}

static const char *main_program(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	char *slash;

	path[MAX(n, 0)] = 0;
	slash = strrchr(path, '/');
	if (!slash)
		return NULL;
	memcpy(slash + 1, "tacho", sizeof("tacho"));
	return access(path, X_OK) == 0 ? path : NULL;
}

/* ---- until it is told to end ---- */

static void block_signals(sigset_t *ret)
{
	static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
		struct sigaction had;

		if (!sigaction(ending[i], NULL, &had) && had.sa_handler != SIG_IGN)
			sigaddset(ret, ending[i]);
	}
	pthread_sigmask(SIG_BLOCK, ret, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Beside a job: who waits for the end of its output does not wait for us. */
static void be_quiet(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

/* While the recorder that started us lives, its recording has not ended. */
static void wait_for_end(struct serve *s, const sigset_t *ending, bool until_end, pid_t recorder)
{
	const struct timespec second = {.tv_sec = 1};

	while (!(until_end && (recorder == 1 || getppid() != recorder) && serve_is_done(s))) {
		int r = until_end ? sigtimedwait(ending, NULL, &second) : sigwaitinfo(ending, NULL);

		if (r > 0)
			break;
	}
}

/* A file that is no recording would only be missing in the list. One that is not there, or empty, may become
 * one. */
static void check_files(int argc, char **argv)
{
	struct stat st;

	for (int i = 0; i < argc; i++)
		if (stat(argv[i], &st) == 0 && !S_ISDIR(st.st_mode) && st.st_size > 0 &&
			(!S_ISREG(st.st_mode) || recording_probe(argv[i]) == -EBADMSG))
			usage(&cmd_serve, "%s is not a recording", argv[i]);
}

int serve_run(const void *args, int argc, char **argv)
{
	static const char *const here[] = {"."};
	const struct serve_args *a = args;
	struct serve_options o = {.path = argc ? (const char *const *)argv : here,
		.nr_paths = argc ? (size_t)argc : 1,
		.socket = a->socket,
		.address = a->bind,
		.port = port_of(a),
		.token_file = a->token_file,
		.allow_host = a->allow_host.item,
		.nr_allow_host = a->allow_host.nr,
		.program = main_program(),
		.patience_s = (unsigned)(a->patience_ns / NSEC_PER_SEC),
		.until_end = a->until_end,
		.linger_ns = LINGER_NS};
	struct serve *s = NULL;
	pid_t recorder = getppid();
	sigset_t ending;
	struct buf err;
	int r;

	if (a->socket && (a->port || a->bind))
		usage(&cmd_serve, "--socket or --port and --bind, not both");
	check_files(argc, argv);
	if (!page_is_live())
		die(EXIT_TROUBLE,
			"this tacho was built without npm, so its pages stand still: install nodejs and npm, "
			"and build it again; `tacho report` makes pages with drawings");
	raise_files();
	block_signals(&ending);
	buf_init(&err, 1 << 16);
	r = serve_open(&o, &s, &err);
	if (r < 0)
		die(r == -ENOENT || r == -EINVAL ? EXIT_USAGE : EXIT_TROUBLE, "%s",
			err.len ? (char *)err.data : strerror(-r));
	buf_release(&err);
	say_where(s, a->until_end);
	if (a->until_end)
		be_quiet();
	wait_for_end(s, &ending, a->until_end, recorder);
	serve_close(s);
	return EXIT_OK;
}
