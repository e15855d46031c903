/* `tacho log`: what happened in a run, a line for each phase and event; also while it goes on. */
#include "cmd/cmd.h"

#include "base/owned.h"
#include "cmd/operands.h"
#include "cmd/reading.h"
#include "cmd/start.h"
#include "cmd/style.h"
#include "query/align.h"
#include "query/arrivals.h"
#include "query/walk.h"
#include "text/runlog.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

extern const struct cmd cmd_log;

#define FOLLOW_MS 250
#define OUT_MOST ((size_t)1 << 26) /* of one line */
#define OUT_FULL ((size_t)1 << 16)

struct log_args {
	bool follow, json;
};

static const struct opt log_opts[] = {
	{'f', "follow", NULL, OPT_FLAG, offsetof(struct log_args, follow), .not_from_env = true,
		.help = "stay until the run has ended, and print what comes"},
	{0, "json", NULL, OPT_FLAG, offsetof(struct log_args, json), .not_from_env = true,
		.help = "the lines of the run log, as --run-log writes them"},
};

static struct runlog_page page_of(const struct log_args *a)
{
	(void)a;
	return (struct runlog_page){.utf8 = locale_is_utf8(), .color = want_color(STDOUT_FILENO)};
}

/* JSON has texts as they are: a terminal sees them escaped. */
static int print_lines(const struct log_args *a, const struct buf *out)
{
	return a->json ? print_shown(out) : print(out);
}

struct log_out {
	const struct log_args *args;
	struct buf text;
	int status;
};

static void flush_lines(struct log_out *o)
{
	if (o->text.len && !o->status)
		o->status = print_lines(o->args, &o->text);
	buf_reset(&o->text);
}

/* After each line: what there is to print does not grow with the recording. */
static int line_put(struct log_out *o)
{
	int r = o->text.err;

	if (o->text.len > OUT_FULL)
		flush_lines(o);
	return o->status ? -EPIPE : r;
}

/* ---- a run as it is ---- */

static int put_line(void *arg, const void *line, size_t len)
{
	struct log_out *o = arg;

	buf_add(&o->text, line, len);
	return line_put(o);
}

static int show_log(const struct log_args *a, int argc, char **argv)
{
	struct run *run = operands_run("showing", argc, argv);
	struct runlog_page page = page_of(a);
	struct log_out out = {.args = a};
	struct buf err;
	int r;

	buf_init(&out.text, OUT_MOST);
	buf_init(&err, 1 << 16);
	r = runlog_lines(run, a->json ? NULL : &page, put_line, &out, &err);
	flush_lines(&out);
	if (r < 0 && !out.status) {
		error("%s", err.len ? (char *)err.data : strerror(-r));
		out.status = EXIT_TROUBLE;
	}
	buf_release(&out.text);
	buf_release(&err);
	run_close(run);
	return out.status;
}

/* ---- a run in progress ---- */

struct followed {
	struct log_follow *all;
	char *path;
	struct runlog_reading *reading;
	bool flat;    /* it may be of another job than the one that was asked for */
	bool foreign; /* it is */
	bool ended;
};

struct log_follow {
	struct runlog_page page;
	int64_t start_wall_ns; /* of the first that was seen; 0: none yet */
	struct followed **one; /* each stays where it is: readings point to it */
	size_t nr;
	struct arrivals *arrivals;
	bool told; /* what went wrong */
	struct log_out out;
};

static bool is_foreign(const struct followed *f, const struct runlog *log)
{
	const char *job = meta_text(runlog_about(log), "scheduler.job_id");

	return reading_job() && f->flat && (!job || strcmp(job, reading_job()) != 0);
}

static int take_line(void *arg, const struct runlog *log, const struct runlog_entry *e)
{
	struct followed *f = arg;
	struct log_follow *all = f->all;
	int64_t start = runlog_wall(log, 0);

	f->foreign = is_foreign(f, log);
	if (f->foreign)
		return 0;
	if (!all->start_wall_ns)
		all->start_wall_ns = start;
	all->page.offset_s = (double)(start - all->start_wall_ns) / 1e9;
	if (all->out.args->json)
		runlog_json(log, e, all->page.several ? meta_text(runlog_about(log), "host") : NULL,
			&all->out.text);
	else
		runlog_print(log, e, &all->page, &all->out.text);
	return line_put(&all->out);
}

static int follow_trouble(struct log_follow *all, const char *path, int r)
{
	error("%s: %s%s", path, strerror(-r),
		r == -EMFILE ? ": every recording that is followed stays open (ulimit -n)" : "");
	all->told = true;
	return r;
}

static int follow_one(struct log_follow *all, const struct arrival *a)
{
	struct followed *f = calloc(1, sizeof(*f)), **more = f ? ARRAY_ADD(all->one, all->nr) : NULL;
	int r;

	if (!more) {
		free(f);
		free(a->path);
		return -ENOMEM;
	}
	*f = (struct followed){.all = all, .path = a->path, .flat = a->flat};
	*more = f;
	r = runlog_open(f->path, take_line, f, &f->reading);
	return r < 0 ? r : runlog_follow(f->reading);
}

/* In a directory recordings may come later, and so may the first of them. */
static int take_arrival(void *arg, const struct arrival *a)
{
	struct log_follow *all = arg;
	int r;

	store_close(a->reader); /* the log reads it in its own way */
	r = follow_one(all, a);
	return r < 0 ? follow_trouble(all, all->nr ? all->one[all->nr - 1]->path : "", r) : 0;
}

/* 0: all have ended; WALK_WAIT; a negative errno, told. */
static int read_round(struct log_follow *all)
{
	int round = 0;
	size_t own = 0;

	for (size_t i = 0; i < all->nr; i++) {
		struct followed *f = all->one[i];
		int r = f->ended ? 0 : runlog_read(f->reading);

		if (f->foreign) {
			f->reading = runlog_close(f->reading);
			f->ended = true;
			continue;
		}
		own++;
		if (r == -ESTALE)
			error("%s was replaced or cut while it was followed", f->path);
		else if (r < 0 && !all->out.status) /* else that was said */
			error("%s: %s", f->path, strerror(-r));
		all->told |= r < 0;
		if (r < 0)
			return r;
		if (r == 0 && !f->ended && !runlog_complete(f->reading))
			warning("the recorder of %s is gone: the recording is unfinished", f->path);
		f->ended |= r == 0;
		round = f->ended ? round : WALK_WAIT;
	}
	return own ? round : WALK_WAIT;
}

/* False: what we print cannot be written any more (a closed pipe). */
static bool wait_for_news(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	poll(&out, 1, FOLLOW_MS);
	return !(out.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A directory may be empty still, but not one of several jobs. */
static int check_jobs(int argc, char **argv, struct buf *reterr)
{
	struct run *run = NULL;
	int r = run_open_job((const char *const *)argv, (size_t)argc, reading_job(), &run, reterr);

	run_close(run);
	if (r != -ENOENT)
		return r;
	buf_reset(reterr);
	return 0;
}

static int begin_following(struct log_follow *all, int argc, char **argv, struct buf *reterr)
{
	int r = check_jobs(argc, argv, reterr);

	all->arrivals = arrivals_new(reading_job(), take_arrival, all);
	for (int i = 0; all->arrivals && i < argc && r >= 0; i++)
		r = arrivals_add(all->arrivals, argv[i], reterr);
	return all->arrivals ? r : -ENOMEM;
}

static int follow_lines(struct log_follow *all, int argc, char **argv)
{
	struct buf err;
	int r;

	buf_init(&err, 1 << 16);
	r = begin_following(all, argc, argv, &err);
	while (r >= 0 && !all->out.status) {
		r = read_round(all);
		flush_lines(&all->out);
		if (r != WALK_WAIT || !wait_for_news())
			break;
		r = arrivals_look(all->arrivals, &err);
	}
	if (r < 0 && !all->told)
		error("%s", err.len ? (char *)err.data : strerror(-r));
	buf_release(&err);
	return all->out.status ? all->out.status : r < 0 ? EXIT_TROUBLE : EXIT_OK;
}

static int follow_log(const struct log_args *a, int argc, char **argv)
{
	struct log_follow all = {.out.args = a, .page = page_of(a)};
	struct run *run = NULL;
	int status;

	if (!argc || !is_directory(argv[0])) /* what is wrong is said now */
		run = operands_run("following", argc, argv);
	raise_files(); /* each recording that is followed stays open */
	all.page.several = argc > 1 || (argc && is_directory(argv[0]));
	buf_init(&all.out.text, OUT_MOST);
	status = argc ? follow_lines(&all, argc, argv) : follow_lines(&all, (int)run->nr, run->path);
	for (size_t i = 0; i < all.nr; i++) {
		runlog_close(all.one[i]->reading);
		free(all.one[i]->path);
		free(all.one[i]);
	}
	free(all.one);
	arrivals_free(all.arrivals);
	buf_release(&all.out.text);
	run_close(run);
	return status;
}

static int show(const void *args, int argc, char **argv)
{
	const struct log_args *a = args;

	return a->follow ? follow_log(a, argc, argv) : show_log(a, argc, argv);
}

const struct cmd cmd_log = {
	.name = "log",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…]",
	.help = "what happened in a run, one line each: phases, marks, events",
	.detail =
		"Prints a line for each phase of the job when it ended, for each of its marks, and for what "
		"the recorder saw: start and end, signals, stops, processes killed because memory ran out, "
		"throttling, missed samples. Each has the time since the start and the time of day. "
		"Without an argument it is the newest recording in this directory. Several files, or a "
		"directory of recordings, are one run: lines come in the order of time and say of which "
		"host they are.\n\nWith --json the lines are those of tacho run --run-log and tacho export "
		"--to runlog.",
	.examples = "$ tacho log job.tacho\n    What happened, and when.\n"
		    "$ tacho log --follow job.tacho\n    A run in progress, until it ends.\n"
		    "$ tacho log --json job.tacho | jq 'select(.type==\"phase\")'\n    The phases alone.\n",
	.opt = log_opts,
	.nr_opts = ARRAY_SIZE(log_opts),
	.group = &reading,
	.args_size = sizeof(struct log_args),
	.operands = "file",
	.run = show,
};
