/* What keys of `tacho top` ask for beyond the screen: a mark, the report, findings, those that ended, a
 * signal. */
#include "cmd/top.h"

#include "base/rights.h"
#include "cmd/cmd.h"
#include "cmd/external.h"
#include "query/ledger.h"
#include "query/sidecar.h"
#include "query/walk.h"
#include "top/explain.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#define ENDED_EVERY_NS (5 * NSEC_PER_SEC)
#define ENDED_SHARE 30 /* reading them again takes at most one part in so many of the time */

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static struct top_node *node_of(struct top_app *a)
{
	size_t node = model_main(&a->m);

	return node < a->m.nr ? &a->m.node[node] : NULL;
}

/* Shown at once: what follows may take a while. */
static void say_now(struct top_app *a, struct tty *tty, const char *text)
{
	struct screen s;
	unsigned columns, rows;

	app_say(a, "%s", text);
	tty_size(tty, &columns, &rows);
	if (frame_open(&s, columns, rows, a->utf8) < 0)
		return;
	if (app_draw(a, &s) >= 0)
		tty_draw(tty, &s);
	screen_close(&s);
	*a->message = 0;
}

/* ---- marks ---- */

/* As `tacho annotate` adds them: in the file beside the recording. */
static int mark_node(const char *path, int64_t time_ns, const char *text, struct buf *why)
{
	struct meta meta = {0}, ending = {0};
	struct sidecar *s = NULL;
	int64_t start = 0;
	int r = sidecar_meta(path, &meta, &ending);

	if (r >= 0 && sidecar_is_foreign(path))
		r = -EEXIST;
	meta_num(&meta, "start_wall_ns", &start);
	if (r >= 0)
		r = sidecar_read(path, &s, why);
	if (r >= 0 && s && !sidecar_is_of(s, &meta, start)) {
		buf_adds(why, "belongs to another recording");
		r = -EBADMSG;
	}
	if (r >= 0 && !s)
		r = sidecar_new(&meta, &s);
	if (r >= 0) {
		const struct sidecar_note note = {.time_ns = time_ns,
			.kind = NOTE_MARK,
			.name = (char *)(uintptr_t)text,
			.name_len = strlen(text)};

		r = sidecar_add(s, &note);
	}
	if (r >= 0) {
		sidecar_sort(s);
		r = sidecar_write(path, s);
	}
	sidecar_free(s);
	meta_release(&meta);
	meta_release(&ending);
	return r;
}

/* It is beside the recordings, which are not read anew. */
static int mark_readings(struct top_node *n, double time_s, const char *text)
{
	struct top_reading *of[] = {n->main, n->tail, n->past};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(of) && r >= 0; i++)
		if (of[i])
			r = reading_mark(of[i], time_s, text);
	return r;
}

static void mark(struct top_app *a)
{
	struct top_node *n = node_of(a);
	struct buf why;
	int64_t at;
	int r;

	if (!n)
		return;
	at = MAX(model_now(&a->m) - n->offset_ns, INT64_C(0));
	buf_init(&why, 4096);
	r = mark_node(n->path, at, a->text, &why);
	if (r < 0)
		app_say(a, "the mark was not set: the notes beside the recording: %s",
			why.len ? (char *)why.data : strerror(-r));
	else if (r >= 0 && mark_readings(n, (double)at / 1e9, a->text) < 0)
		app_say(a, "the mark is set; to show it here there is no memory");
	else
		app_say(a, "mark '%s' at %.1f s", a->text, (double)at / 1e9);
	buf_release(&why);
}

/* ---- other programs ---- */

/* Runs this program with these words; its output is returned. Negative: it could not be started or failed. */
static int run_self(const char *const *word, char *out, size_t size)
{
	char self[PATH_MAX];
	int end[2], status = -1;
	size_t n = 0;
	pid_t pid;

	*out = 0;
	if (!external_self(self, sizeof(self)) || pipe2(end, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGTTOU, SIG_DFL);
		dup2(null, STDIN_FILENO);
		dup2(end[1], STDOUT_FILENO);
		dup2(end[1], STDERR_FILENO);
		rights_drop();
		execve(self, (char *const *)(uintptr_t)word, rights_environment());
		_exit(EXIT_CANNOT);
	}
	close(end[1]);
	while (pid > 0 && n + 1 < size) {
		ssize_t part = read(end[0], out + n, size - 1 - n);

		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			break;
		n += (size_t)part;
	}
	out[n] = 0;
	close(end[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -ECHILD;
	while (n && out[n - 1] == '\n')
		out[--n] = 0;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

static void report(struct top_app *a, struct tty *tty)
{
	struct top_node *n = node_of(a);
	const char *word[6] = {"tacho", "report"};
	char out[2000], *line;
	int r;

	if (!n)
		return;
	/* Beside the recording the report of before is replaced; where that is a temporary one, it goes here,
	 * and replaces nothing. */
	word[2] = a->can_keep ? "-o" : "--force";
	word[3] = a->can_keep ? "." : a->m.nr_named == 1 && a->m.nr > 1 ? a->m.named[0] : n->path;
	word[4] = a->can_keep ? n->path : NULL;
	say_now(a, tty, "writing the report...");
	r = run_self(word, out, sizeof(out));
	line = strrchr(out, '\n');
	line = line ? line + 1 : out;
	if (r < 0)
		app_say(a, "no report: %.250s", *out ? line : strerror(-r));
	else
		app_say(a, "report: %.280s", line);
}

static void explain(struct top_app *a, struct tty *tty)
{
	struct run *run = NULL;
	unsigned columns, rows;
	struct buf err;
	char *text = NULL;

	if (!a->m.nr)
		return;
	say_now(a, tty, "reading the run...");
	tty_size(tty, &columns, &rows);
	buf_init(&err, 1 << 16);
	if (run_open_job((const char *const *)a->m.named, a->m.nr_named, a->m.job, &run, &err) >= 0)
		text = explain_findings(run, columns > 4 ? columns - 4 : 20, &err);
	if (text)
		app_show_text(a, text);
	else
		app_say(a, "%.280s", err.len ? (char *)err.data : "nothing can be said yet");
	run_close(run);
	buf_release(&err);
}

/* ---- those that ended ---- */

/* A table in the making: the recording is read once more, from its first tick. */
static struct {
	struct ledger *ledger; /* NULL: none */
	struct process_filling *filling;
	char *path;
	int64_t took_ns, next_ns;
} ended;

static void ended_close(void)
{
	process_filling_free(ended.filling);
	ledger_close(ended.ledger);
	ended.filling = NULL;
	ended.ledger = NULL;
}

static int ended_open(const char *path)
{
	int r = ledger_open(path, &ended.ledger);

	if (r >= 0) {
		ended.filling = process_filling_new(ended.ledger, 0);
		r = ended.filling ? 0 : -ENOMEM;
	}
	if (r < 0)
		ended_close();
	ended.took_ns = 0;
	free(ended.path);
	ended.path = strdup(path);
	return ended.path ? r : -ENOMEM;
}

/* Reads until then: 1: there is more, 0: to the end, or a negative errno. */
static int ended_read(int64_t until_ns)
{
	struct point ignored;
	int r;

	while ((r = ledger_next(ended.ledger, &ignored)) > 0)
		if (monotonic_ns() > until_ns)
			return 1;
	return r;
}

static void ended_take(struct top_app *a, int r)
{
	struct process_table *t = NULL;

	if (r >= 0)
		r = process_filling_finish(ended.filling, ended.ledger, 0, &t);
	if (r >= 0) {
		process_table_free(a->p.all);
		a->p.all = t;
	} else {
		app_say(a, "those that have ended cannot be read: %s", strerror(-r));
	}
	ended_close();
	a->ended_share = 1;
	a->m.news = true;
	ended.next_ns = monotonic_ns() + MAX(ENDED_EVERY_NS, ended.took_ns * ENDED_SHARE);
}

bool top_refresh_ended(struct top_app *a, int64_t budget_ns)
{
	struct top_node *n = node_of(a);
	int64_t begin = monotonic_ns();
	bool other = n && ended.path && strcmp(ended.path, n->path) != 0;
	int r = 0;

	if (!a->ended || !n || app_shows_nodes(a) || other) {
		a->p.all = process_table_free(a->p.all);
		ended_close();
		free(ended.path);
		ended.path = NULL;
		if (!other)
			return false;
	}
	if (!ended.ledger && ended.path && (begin < ended.next_ns || !a->m.live || model_is_over(&a->m)))
		return false;
	if (!ended.ledger)
		r = ended_open(n->path);
	if (r >= 0)
		r = ended_read(begin + budget_ns);
	ended.took_ns += monotonic_ns() - begin;
	if (r == 1) {
		const struct store_reader *reader = ledger_walk(ended.ledger)->reader;
		struct stat st;

		a->ended_share = stat(n->path, &st) == 0 && st.st_size > 0
			? MIN((double)store_reader_at(reader) / (double)st.st_size, 1.0)
			: 0;
		a->m.news |= !a->p.all;
		return true;
	}
	ended_take(a, r);
	return false;
}

/* ---- signals ---- */

/* The PID is of this machine, and of the process that was shown: what it is now is asked of the kernel once,
 * by a descriptor. */
static void send_signal(struct top_app *a)
{
	struct top_node *n = node_of(a);
	const char *host = n && n->main && n->main->walk ? meta_text(reading_meta(n->main), "host") : "";
	struct utsname self;
	int fd;

	if (uname(&self) < 0 || strcmp(self.nodename, host)) {
		app_say(a, "no signal was sent: process %lld is on %s", (long long)a->kill_pid,
			*host ? host : "an unknown host");
		return;
	}
	fd = (int)syscall(SYS_pidfd_open, (pid_t)a->kill_pid, 0);
	if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, a->kill_signal, NULL, 0) < 0)
		app_say(a, "no signal was sent to %lld: %s", (long long)a->kill_pid, strerror(errno));
	else
		app_say(a, "signal %d was sent to %lld", a->kill_signal, (long long)a->kill_pid);
	if (fd >= 0)
		close(fd);
}

static void keep(struct top_app *a, struct top_recorder *r)
{
	struct buf said;

	buf_init(&said, 4096);
	top_recorder_keep(r, a->text, &said);
	app_say(a, "%.280s", (char *)said.data);
	buf_release(&said);
}

void top_act(struct top_app *a, enum app_act act, struct tty *tty, struct top_recorder *r)
{
	if (act == ACT_MARK)
		mark(a);
	else if (act == ACT_REPORT)
		report(a, tty);
	else if (act == ACT_KEEP)
		keep(a, r);
	else if (act == ACT_EXPLAIN)
		explain(a, tty);
	else if (act == ACT_KILL)
		send_signal(a);
	else if (act == ACT_STOP)
		tty_stop(tty);
}
