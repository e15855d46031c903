/* `tacho top`: a run on the screen while it goes on, or afterwards; and back in time. */
#include "cmd/top.h"

#include "base/progress.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/reading.h"
#include "cmd/start.h"
#include "cmd/style.h"
#include "query/listing.h"
#include "query/run_directory.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

extern const struct cmd cmd_top;

#define LOOK_NS (NSEC_PER_SEC / 4) /* between two looks at files that grow */
#define LOOK_FOR_MORE_NS (2 * NSEC_PER_SEC)
#define BUDGET_NS (NSEC_PER_SEC / 20) /* of reading between two frames */
#define FIRST_NS (NSEC_PER_SEC / 5)   /* the first frame comes after so long, whatever was read */
#define FIRST_AT_NS (2 * NSEC_PER_SEC)
#define COLUMNS_PLAIN 100
#define ROWS_PLAIN 30

struct top_args {
	const char *at, *against;
	bool allow_kill, mouse, cost;
	uint64_t frames;
	int64_t delay_ns;
};

#define INTO(field) offsetof(struct top_args, field)

static const struct opt top_opts[] = {
	{0, "at", "TIME", OPT_TEXT, INTO(at), .not_from_env = true,
		.help = "begin at this time: 5m, 1m30s, 50%, 'phase 3'",
		.detail = "After the start of the run; as the key j takes it."},
	{0, "against", "FILE", OPT_TEXT, INTO(against), .not_from_env = true,
		.help = "an earlier run of the same command, behind the curves",
		.detail = "Drawn in grey, with its phases laid over those of this run, so that the same work "
			  "stands at the same place. The first line says how far along this run is, by "
			  "that one."},
	{'d', "delay", "TIME", OPT_INTERVAL, INTO(delay_ns), .preset = "1s", .min = 0.05, .max = 3600,
		.help = "at most one new frame in this time"},
	{'n', "frames", "N", OPT_COUNT, INTO(frames), .not_from_env = true, .help = "end after N frames",
		.detail =
			"Where standard output is no terminal, or one that can only print lines (TERM=dumb), "
			"frames are plain text, and without this option there is one. COLUMNS and LINES say "
			"how large it is."},
	{0, "allow-kill", NULL, OPT_FLAG, INTO(allow_kill), .help = "let the key k send signals",
		.detail = "Only to processes of this machine that run now, and only after a question."},
	{0, "mouse", NULL, OPT_FLAG, INTO(mouse), .preset = "yes", .help = "leave the mouse to the terminal"},
	{0, "cost", NULL, OPT_FLAG, INTO(cost), .not_from_env = true, .hidden = true,
		.help = "at the end, what the frames have cost"},
};

/* ---- what is meant ---- */

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static bool is_there(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* A word that is no file, and looks like no file's name. */
static bool is_target(const char *word)
{
	if (is_there(word))
		return false;
	return !strchr(word, '/') || strchr(word, ':') ? !run_has_suffix(word) : false;
}

static bool has_separator(void)
{
	const struct start_words *given = start_words();

	for (size_t i = 1; i < given->nr; i++)
		if (!strcmp(given->word[i], "--"))
			return true;
	return false;
}

/* The newest recording here that is being written; NULL: there is none. */
static char *newest_in_progress(void)
{
	static const char *const here[] = {"."};
	const struct listing_query q = {.glance = true, .job = reading_job()};
	struct listing *l = NULL;
	char *path = NULL;
	struct buf err;

	buf_init(&err, 1 << 16);
	if (listing_read(here, 1, &q, &l, &err) >= 0) {
		listing_sort(l, LISTED_BY_DATE, false);
		for (size_t i = 0; i < l->nr && !path; i++)
			if (l->item[i].state == LISTED_WRITING)
				path = strdup(l->item[i].path);
	}
	listing_free(l);
	buf_release(&err);
	return path;
}

struct top_session {
	const struct top_args *args;
	struct top_app app;
	struct top_recorder recorder;
	struct tty tty;
	uint64_t frames;
	uint64_t first_bytes; /* of recordings, that were read for the first frame */
	unsigned silence;
	int64_t begun_ns, drawn_ns, played_ns;
	bool settled; /* what was there at the start was read */
};

static void open_run(struct top_session *t, const char *const *path, size_t nr, bool wait)
{
	struct buf err;

	buf_init(&err, 1 << 16);
	if (model_open(&t->app.m, path, nr, reading_job(), wait, &err) < 0)
		die(EXIT_USAGE, "%s", err.len ? (char *)err.data : "it cannot be read");
	buf_release(&err);
}

static void start_recorder(struct top_session *t, bool command, int argc, char **argv)
{
	struct buf title;

	buf_init(&title, 1 << 16);
	for (int i = 0; i < argc; i++) {
		buf_adds(&title, i ? " " : "");
		escape_bytes(&title, argv[i], strlen(argv[i]));
	}
	t->app.title = strdup((char *)title.data);
	buf_release(&title);
	top_recorder_start(&t->recorder, command, argc, argv);
	t->app.can_keep = true;
	open_run(t, (const char *const[]){t->recorder.file}, 1, true);
}

static void choose(struct top_session *t, int argc, char **argv)
{
	static char own[] = "user:", *mine[] = {own};
	char *newest;

	if (argc && has_separator()) {
		start_recorder(t, true, argc, argv);
		return;
	}
	for (int i = 0; i < argc; i++)
		if (is_target(argv[i]) != is_target(argv[0]))
			usage(&cmd_top, "%s is a %s, and %s is none: give recordings or targets", argv[i],
				is_target(argv[i]) ? "target" : "recording", argv[0]);
	if (argc && is_target(argv[0])) {
		start_recorder(t, false, argc, argv);
	} else if (argc) {
		open_run(t, (const char *const *)argv, (size_t)argc, false);
	} else if (is_run_directory(".")) {
		open_run(t, (const char *const[]){"."}, 1, false);
	} else if ((newest = newest_in_progress())) {
		open_run(t, (const char *const[]){newest}, 1, false);
		free(newest);
	} else {
		start_recorder(t, false, 1, mine);
	}
}

static void open_ghost(struct top_session *t)
{
	struct buf err;

	if (!t->args->against)
		return;
	buf_init(&err, 4096);
	if (ghost_open(t->args->against, &t->app.m.ghost, &err) < 0)
		die(EXIT_USAGE, "%s", (char *)err.data);
	buf_release(&err);
}

/* ---- the beginning ---- */

static uint64_t bytes_read; /* of recordings; by the threads of a run that is opened, too */

static void count_bytes(uint64_t bytes)
{
	__atomic_add_fetch(&bytes_read, bytes, __ATOMIC_RELAXED);
}

/* What there was at the start is read: of a run that is over there is nothing alive at its end, and its
 * processes are those that ended; and now it is known where --at is. */
static bool settle(struct top_session *t)
{
	int64_t at;

	if (t->settled)
		return true;
	t->settled = true;
	if (!t->recorder.directory && model_is_over(&t->app.m) && !t->app.ended)
		t->app.ended = t->app.ended_by_itself = true;
	if (!t->args->at)
		return true;
	if (!app_parse_time(&t->app, t->args->at, &at))
		return false;
	model_go(&t->app.m, at);
	t->app.play = t->app.m.live ? PLAY_LIVE : PLAY_PAUSED;
	return true;
}

/* The first frame comes soon, unless it would not be the one that was asked for. */
static bool is_time_for_a_frame(const struct top_session *t)
{
	int64_t now = monotonic_ns();

	if (t->frames)
		return now - t->drawn_ns >= t->args->delay_ns;
	return t->settled || now - t->begun_ns >= (t->args->at ? FIRST_AT_NS : FIRST_NS);
}

/* ---- frames ---- */

static int draw(struct top_session *t)
{
	struct screen s;
	unsigned columns, rows;
	long r;

	tty_size(&t->tty, &columns, &rows);
	r = frame_open(&s, columns, rows, t->app.utf8);
	if (r < 0)
		return (int)r;
	r = app_draw(&t->app, &s);
	if (r >= 0)
		r = tty_draw(&t->tty, &s);
	screen_close(&s);
	t->app.m.news = false;
	t->drawn_ns = monotonic_ns();
	if (!t->frames++)
		t->first_bytes = bytes_read;
	return (int)MIN(r, 0L);
}

/* How long nothing needs to be done; negative: for ever. */
static int64_t rest_of(const struct top_session *t, bool more)
{
	int64_t since = monotonic_ns() - t->drawn_ns;

	if (more)
		return 0;
	if (t->app.m.news)
		return MAX(t->args->delay_ns - since, INT64_C(0));
	if (t->app.play == PLAY_PAUSED)
		return -1;
	if (t->app.play == PLAY_LIVE && model_is_over(&t->app.m))
		return t->app.m.grows ? LOOK_FOR_MORE_NS : -1; /* a directory may get more */
	return LOOK_NS;
}

static void play_on(struct top_session *t)
{
	int64_t now = monotonic_ns();

	if (t->app.play != PLAY_ON || now - t->played_ns < t->args->delay_ns)
		return;
	t->played_ns = now;
	app_play(&t->app);
}

/* A recorder of ours that could not begin. */
static bool has_failed(struct top_session *t, struct buf *why)
{
	const struct top_node *n = t->app.m.nr ? &t->app.m.node[0] : NULL;

	if (!top_recorder_ended(&t->recorder) || (n && n->main))
		return false;
	model_poll(&t->app.m, BUDGET_NS);
	n = t->app.m.nr ? &t->app.m.node[0] : NULL;
	if (n && n->main)
		return false;
	if (!top_recorder_why(&t->recorder, why))
		buf_adds(why, "the recorder ended before there was anything to show");
	return true;
}

/* Returns whether it is to go on. */
static bool one_round(struct top_session *t, struct buf *why)
{
	struct key_event key;
	bool paused = t->app.play == PLAY_PAUSED && t->frames, more = false;
	enum app_act act;
	enum tty_news news;

	if (!paused)
		more = model_poll(&t->app.m, BUDGET_NS);
	if (has_failed(t, why))
		return false;
	if (!paused && model_silence(&t->app.m) != t->silence) { /* what is shown is old, and says so */
		t->silence = model_silence(&t->app.m);
		t->app.m.news = true;
	}
	if (!more && !settle(t)) {
		buf_addf(why, "--at: %s", t->app.message);
		return false;
	}
	play_on(t);
	more |= top_refresh_ended(&t->app, BUDGET_NS);
	if (t->app.m.news && is_time_for_a_frame(t) && draw(t) < 0)
		return false;
	if (t->args->frames && t->frames >= t->args->frames)
		return false;
	news = tty_wait(&t->tty, rest_of(t, more), &key);
	if (news == TTY_ENDED)
		return false;
	if (news == TTY_RESIZED)
		return draw(t) >= 0;
	if (news != TTY_KEY)
		return true;
	act = app_key(&t->app, &key);
	if (act == ACT_QUIT)
		return false;
	top_act(&t->app, act, &t->tty, &t->recorder);
	return draw(t) >= 0;
}

/* That of getrusage() may be our parent's: it stays over an exec. */
static long memory_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static void say_cost(const struct top_session *t)
{
	struct rusage used;

	if (!t->args->cost || getrusage(RUSAGE_SELF, &used) < 0)
		return;
	fprintf(stderr,
		"%llu frames, %llu writes, %llu bytes, %.6f s CPU, %ld KiB, %llu bytes read for the first\n",
		(unsigned long long)t->frames, (unsigned long long)t->tty.writes,
		(unsigned long long)t->tty.bytes,
		(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
		memory_kib(), (unsigned long long)t->first_bytes);
}

static int on_screen(struct top_session *t)
{
	struct buf why;
	int status = EXIT_OK, r;

	r = tty_open(&t->tty, STDOUT_FILENO, t->app.utf8, t->args->mouse);
	if (r < 0)
		die(EXIT_TROUBLE, "the terminal cannot be used: %s", strerror(-r));
	buf_init(&why, 8192);
	while (one_round(t, &why))
		;
	tty_close(&t->tty);
	if (why.len) {
		error("%s", (char *)why.data);
		status = EXIT_TROUBLE;
	}
	buf_release(&why);
	return status;
}

/* ---- plain text ---- */

static unsigned from_variable(const char *name, unsigned otherwise)
{
	const char *value = getenv(name);
	uint64_t n;

	return value && parse_u64(value, &n) && n && n <= 1000 ? (unsigned)n : otherwise;
}

static int print_frame(struct top_session *t)
{
	struct screen s;
	struct buf out;
	int status = EXIT_TROUBLE;

	if (frame_open(&s, from_variable("COLUMNS", COLUMNS_PLAIN), from_variable("LINES", ROWS_PLAIN),
		    t->app.utf8) < 0)
		return status;
	buf_init(&out, 1 << 24);
	if (app_draw(&t->app, &s) >= 0) {
		frame_plain(&s, &out);
		status = print(&out);
	}
	buf_release(&out);
	screen_close(&s);
	if (!t->frames++)
		t->first_bytes = bytes_read;
	t->app.m.news = false;
	return status;
}

/* Says why, if there is not one recording of which something is known. */
static bool nothing_is_read(const struct top_session *t)
{
	for (size_t i = 0; i < t->app.m.nr; i++)
		if (!t->app.m.node[i].why || t->app.m.node[i].main)
			return false;
	for (size_t i = 0; i < t->app.m.nr; i++)
		error("%s: %s", t->app.m.node[i].path, t->app.m.node[i].why);
	return true;
}

static int as_text(struct top_session *t)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t frames = MAX(t->args->frames, UINT64_C(1));
	int status = EXIT_OK;
	struct buf why;

	buf_init(&why, 8192);
	while (!status && t->frames < frames) {
		while (model_poll(&t->app.m, NSEC_PER_SEC))
			;
		if (!settle(t))
			usage(&cmd_top, "--at: %s", t->app.message);
		while (top_refresh_ended(&t->app, NSEC_PER_SEC))
			;
		if (has_failed(t, &why)) {
			error("%s", (char *)why.data);
			status = EXIT_TROUBLE;
		} else if (model_end(&t->app.m) > 0 && t->app.m.news) {
			if (t->frames)
				putchar('\n');
			status = print_frame(t);
		} else if (model_is_over(&t->app.m)) {
			status = t->frames ? status : nothing_is_read(t) ? EXIT_TROUBLE : print_frame(t);
			break;
		} else {
			nanosleep(&pause, NULL);
		}
	}
	buf_release(&why);
	return status;
}

/* ---- all ---- */

static int top(const void *args, int argc, char **argv)
{
	static struct top_session t;
	int status;

	t = (struct top_session){.args = args, .tty.in = -1};
	progress_on_read = count_bytes;
	processes_init(&t.app.p);
	t.app.utf8 = locale_is_utf8();
	t.app.can_kill = t.args->allow_kill;
	choose(&t, argc, argv);
	open_ghost(&t);
	t.begun_ns = monotonic_ns();
	status = tty_can_draw(STDOUT_FILENO, getenv("TERM")) ? on_screen(&t) : as_text(&t);
	say_cost(&t);
	status = top_recorder_finish(&t.recorder, status);
	app_close(&t.app);
	if (tty_signal() && !t.recorder.command) {
		signal(tty_signal(), SIG_DFL);
		raise(tty_signal());
	}
	return status;
}

const struct cmd cmd_top = {
	.name = "top",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…|TARGET…|-- COMMAND [ARG…]]",
	.help = "a run on the screen: now, and back to its first tick",
	.detail =
		"Shows what a recording says as it grows, or after its end: memory against its limit and "
		"when "
		"that is reached at the present rate, CPUs against the allocation, GPUs, input and output, "
		"network, power, each as a curve with the job's phases behind it; the processes as a tree or "
		"list; of several nodes a row for each. The arrow keys go back in time, tick by tick, to the "
		"beginning: every number is that of the moment, as tacho show --series has it. The key ? "
		"lists all keys.\n\nWithout an argument it is the newest recording in progress in this "
		"directory; where there is none, all processes of the user. A target (a PID, match:REGEX, "
		"user:NAME, job…: see tacho attach) or a command behind -- is recorded into a private "
		"temporary file, which the key w keeps. A command has its output shown at the end; when the "
		"screen is left before, it goes on, and tacho waits for it and ends with its exit status.\n\n"
		"It reads recordings alone, so it works as well for those of other machines, and costs the "
		"job nothing.",
	.examples = "$ tacho top\n    What is being recorded here.\n"
		    "$ tacho top job.tacho --at 50%\n    A finished run, from its middle.\n"
		    "$ tacho top runs/4711\n    All nodes of a run.\n"
		    "$ tacho top 4242\n    A process that runs, with its descendants.\n"
		    "$ tacho top --against yesterday.tacho today.tacho\n    How far along it is.\n"
		    "$ tacho top -- ./train --epochs 3\n    A command.\n",
	.opt = top_opts,
	.nr_opts = ARRAY_SIZE(top_opts),
	.group = &reading,
	.args_size = sizeof(struct top_args),
	.operands = "file",
	.run = top,
};
