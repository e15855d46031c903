/* `tacho show`: what a recording says, as a summary, statistics, a table of processes or time series.
 *
 * The operands are one run: a file, several, or directories of them. A recording that is still being written
 * is shown up to now, a damaged one as far as it can be read, with a note on what is missing. */
#include "cmd/cmd.h"

#include "cmd/operands.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "cmd/start.h"
#include "cmd/style.h"
#include "query/courses.h"
#include "text/follow.h"
#include "text/jobstats.h"
#include "text/processes.h"
#include "text/series.h"
#include "text/phases.h"
#include "text/stats.h"
#include "analysis/top_finding.h"
#include "text/summary.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

extern const struct cmd cmd_show;

#define ANSWER_MAX ((size_t)2 << 30)
#define FOLLOW_MS 250	/* between two looks at a file that grows */
#define FOLLOW_LINES 20 /* between two headings in a terminal */

struct show_args {
	struct range_args range;
	bool follow;
	bool json, csv, jobstats, processes, stats, reverse, rate;
	int sort, per, by;
	uint64_t limit, pid;
	const char *group;
	struct opt_list series;
};

enum { PER_TOTAL, PER_INSTANCE };

static const char *const per_names[] = {"total", "instance", NULL};

enum { BY_DEFAULT, BY_LEVELS, BY_ALL = BY_LEVELS + NR_STATS_LEVELS };

/* "default", then as stats_level_names[]. */
static const char *const by_names[] = {
	"default", "run", "node", "group", "user", "phase", "process", "all", NULL};

#define INTO(field) offsetof(struct show_args, field)

static const struct opt show_opts[] = {
	{0, "json", NULL, OPT_FLAG, INTO(json), .not_from_env = true, .help = "for programs, as JSON"},
	{'p', "processes", NULL, OPT_FLAG, INTO(processes), .not_from_env = true,
		.help = "a table of all processes, including very short ones"},
	{0, "stats", NULL, OPT_FLAG, INTO(stats), .not_from_env = true,
		.help = "statistics: means, percentiles, peaks and their times",
		.detail = "For the run, and for its nodes, groups, users and phases where there are several; "
			  "--by "
			  "chooses. Peaks are those of the sum at one instant; the largest single process "
			  "and the sum of the peaks of all processes are listed too."},
	{0, "by", "WHAT", OPT_CHOICE, INTO(by), .choices = by_names, .preset = "default",
		.not_from_env = true, .help = "what the statistics are of"},
	{0, "sort", "KEY", OPT_CHOICE, INTO(sort), .choices = process_order_names, .preset = "cpu",
		.help = "order of the table",
		.detail = "Amounts begin with the largest, the rest (start, end, pid, name) with the "
			  "smallest. What is not "
			  "known comes last."},
	{'r', "reverse", NULL, OPT_FLAG, INTO(reverse), .not_from_env = true,
		.help = "turn the order around"},
	{'n', "limit", "N", OPT_COUNT, INTO(limit), .not_from_env = true,
		.help = "only the first N processes"},
	{'s', "series", "METRIC…", OPT_LIST, INTO(series), .not_from_env = true,
		.help = "time series of one or several metrics",
		.detail = "Any metric of 'tacho metrics', recorded or derived, at every tick. Instances "
			  "are combined into one value as the metric defines it, unless --pid, --group or "
			  "--per choose otherwise. Unknown values are '-' in text, empty in CSV, null in "
			  "JSON; never zero."},
	{0, "rate", NULL, OPT_FLAG, INTO(rate), .not_from_env = true,
		.help = "counters as growth per second"},
	{0, "pid", "PID", OPT_COUNT, INTO(pid), .not_from_env = true, .help = "series of this process only"},
	{0, "group", "NAME", OPT_TEXT, INTO(group), .not_from_env = true,
		.help = "series of this group of processes only",
		.detail = "The name of a group as in the summary: a target, or a tool found by match:. "
			  "Metrics of processes are combined over its members; metrics of groups "
			  "(group.cores) are those of this group."},
	{0, "per", "WHAT", OPT_CHOICE, INTO(per), .choices = per_names, .preset = "total",
		.not_from_env = true, .help = "a line for the total, or for each instance"},
	{'f', "follow", NULL, OPT_FLAG, INTO(follow), .not_from_env = true,
		.help = "a run in progress: a line for each interval, to its end",
		.detail =
			"CPUs in use, memory, processes, bytes read and written in a second, and GPUs where "
			"there are some; --series chooses others. It begins with the last interval that is "
			"there (--from chooses another), and ends with the recording, also when its "
			"recorder was killed, or with Ctrl-C. With --json a line is one object. The "
			"recording "
			"may be so young that nothing is in it yet; in a directory, nodes may come later."},
	{0, "csv", NULL, OPT_FLAG, INTO(csv), .not_from_env = true,
		.help = "statistics, processes or series as CSV"},
	{0, "jobstats", NULL, OPT_FLAG, INTO(jobstats), .not_from_env = true,
		.help = "one line for reportseff and others that read jobstats",
		.detail = "'JS1:' and the CPU time, memory and GPUs of each node, as jobstats puts them into "
			  "AdminComment of SLURM's accounting. With --json that object as it is. See "
			  "docs/sites.md."},
};

static int show_summary(const struct run *run, const struct show_args *args)
{
	struct summary_style style = style_for(STDOUT_FILENO);
	bool for_people = !args->jobstats && !args->json && !args->range.phase;
	struct summary *s = NULL;
	char *finding = NULL;
	struct buf out;
	int status;

	buf_init(&out, ANSWER_MAX);
	if ((for_people ? summary_read_with_finding(run, &s, &finding, &out) : summary_read(run, &s, &out)) <
		0)
		die(EXIT_TROUBLE, "%s", (char *)out.data);
	if (args->jobstats) {
		if ((args->json ? jobstats_json(s, &out) : jobstats_print(s, &out)) < 0)
			die(EXIT_TROUBLE, "no memory");
		if (args->json)
			buf_addch(&out, '\n');
	} else if (args->range.phase) {
		const struct phase *p = phase_of(&cmd_show, s->phases, args->range.phase);

		if (args->json)
			phase_json(s, p, &out);
		else
			phase_print(s, p, style.utf8, &out);
	} else if (args->json) {
		summary_json(s, &out);
	} else {
		style.finding = finding;
		summary_print(s, &style, &out);
	}
	status = print(&out);
	summary_free(s);
	free(finding);
	buf_release(&out);
	return status;
}

static int show_processes(const struct run *run, const struct show_args *args)
{
	struct text_style style = table_style(args->json, args->csv);
	struct process_table *t = NULL;
	double from_s, to_s;
	struct buf out;
	int status;

	buf_init(&out, ANSWER_MAX);
	if (process_table_read(run, &t, &out) < 0)
		die(EXIT_TROUBLE, "%s", (char *)out.data);
	if (args->range.phase) {
		range_of(&cmd_show, run, &args->range, &from_s, &to_s);
		if (process_table_cut(t, run, from_s, to_s, &out) < 0)
			die(EXIT_TROUBLE, "%s", (char *)out.data);
	}
	process_table_sort(t, (enum process_order)args->sort, args->reverse);
	processes_write(t, args->limit, &style, &out);
	status = print(&out);
	process_table_free(t);
	buf_release(&out);
	return status;
}

/* ---- statistics ---- */

/* A level with a single item would only repeat the run. */
static unsigned stats_levels(const struct stats *s, const struct show_args *args)
{
	unsigned levels = 1u << STATS_RUN;

	if (args->by == BY_ALL)
		return (1u << NR_STATS_LEVELS) - 1;
	if (args->by != BY_DEFAULT)
		return 1u << (args->by - BY_LEVELS);
	for (unsigned i = STATS_NODE; i < STATS_PROCESS; i++)
		if (s->nr[i] > (i == STATS_GROUP || i == STATS_PHASE ? 0 : 1))
			levels |= 1u << i;
	return levels;
}

static int show_stats(const struct run *run, const struct show_args *args)
{
	struct process_table *t = NULL;
	struct summary *summary = NULL;
	struct courses *courses = NULL;
	struct stats *s = NULL;
	struct stats_page page = {.style = table_style(args->json, args->csv), .limit = args->limit};
	struct buf out;
	int status, r;

	buf_init(&out, ANSWER_MAX);
	r = summary_read_with_courses(run, &summary, &t, &courses, &out);
	if (r >= 0) {
		process_table_sort(t, (enum process_order)args->sort, args->reverse);
		r = stats_read(&(struct stats_input){run, summary, t, courses}, progress_show(), &s, &out);
		progress_clear();
	}
	if (r < 0)
		die(EXIT_TROUBLE, "%s", (char *)out.data);
	if (args->by > BY_DEFAULT && args->by < BY_ALL && !s->nr[args->by - BY_LEVELS])
		warning("there are no statistics by %s: the recording has none%s", by_names[args->by],
			args->by - BY_LEVELS == STATS_GROUP ? " (tacho run --also makes some)" : "");
	page.levels = stats_levels(s, args);
	page.length_s = summary->figure[FIG_WALL].value;
	stats_write(s, t, &page, &out);
	status = print(&out);
	stats_free(s);
	courses_free(courses);
	process_table_free(t);
	summary_free(summary);
	buf_release(&out);
	return status;
}

/* ---- series ---- */

/* "a,b" and "a" "b" are the same; the text is cut where the commas were. */
static size_t split_names(const struct opt_list *list, const char **name, size_t max)
{
	size_t nr = 0;

	for (unsigned i = 0; i < list->nr; i++) {
		char *text = strdup(list->item[i]), *at = text, *word;

		if (!text)
			die(EXIT_TROUBLE, "no memory");
		while ((word = strsep(&at, ","))) {
			if (nr == max)
				usage(&cmd_show, "more than %zu metrics", max);
			if (*word)
				name[nr++] = word;
		}
	}
	return nr;
}

static int take_piece(void *arg, const struct buf *piece)
{
	(void)arg;
	return print(piece);
}

static int show_series(const struct run *run, const struct show_args *args)
{
	static const char *name[SERIES_MAX];
	struct series_query query = {.metric = name,
		.nr = split_names(&args->series, name, SERIES_MAX),
		.rate = args->rate,
		.per_instance = args->per == PER_INSTANCE,
		.pid = (int64_t)MIN(args->pid, (uint64_t)INT64_MAX),
		.group = args->group};
	struct series_page page = {.form = args->json ? FORM_JSON
			: args->csv		      ? FORM_CSV
						      : FORM_TEXT,
		.per_instance = query.per_instance,
		.utf8 = locale_is_utf8()};
	const struct series_taker taker = {.take = take_piece};
	struct summary *phases;
	struct buf err;
	int r;

	range_of_phase(&cmd_show, run, &args->range, &query.from_s, &query.to_s, &phases, NULL);
	if (phases) {
		page.phases = phases->phases;
		page.phase = phases_find(phases->phases, args->range.phase);
	}
	buf_init(&err, 8192);
	r = series_pour(run, &query, &page, &taker, &err);
	if (r < 0)
		error("%s", err.len ? (char *)err.data : strerror(-r));
	buf_release(&err);
	summary_free(phases);
	if (r == -ENOENT || r == -EINVAL)
		return EXIT_USAGE;
	return r < 0 ? EXIT_TROUBLE : r;
}

/* ---- a run in progress ---- */

/* False: what we print cannot be written any more (a closed pipe). */
static bool wait_for_news(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	poll(&out, 1, FOLLOW_MS);
	return !(out.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static int follow_lines(struct follow *f, struct follow_page *page)
{
	struct follow_line line;
	struct buf out, err;
	bool read = true;
	int r, status = EXIT_OK;

	buf_init(&out, ANSWER_MAX);
	buf_init(&err, 1 << 16);
	while (read && !status && (r = follow_next(f, &line, &err)) > 0) {
		if (r == 1)
			follow_print(page, &line, &out);
		if (out.len && (r == FOLLOW_WAIT || out.len > 1 << 16)) {
			status = print(&out);
			buf_reset(&out);
		}
		if (r == FOLLOW_WAIT)
			read = wait_for_news();
	}
	if (read && !status && out.len)
		status = print(&out);
	if (read && !status && r < 0) {
		error("%s", (char *)err.data);
		status = r == -ENOENT || r == -EINVAL ? EXIT_USAGE : EXIT_TROUBLE;
	}
	buf_release(&out);
	buf_release(&err);
	return status;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Nodes may come later, and so may the first of them. */
static int show_follow(const struct show_args *args, int argc, char **argv)
{
	static const char *name[SERIES_MAX];
	struct follow_query query = {.series = {.metric = follow_metrics, .nr = nr_follow_metrics}};
	struct follow_page page = {.json = args->json,
		.utf8 = locale_is_utf8(),
		.height = isatty(STDOUT_FILENO) ? FOLLOW_LINES : 0};
	struct follow *f = NULL;
	struct run *run = NULL;
	struct buf err;
	double to_s;
	int status;

	query.series.if_known = !args->series.nr;
	if (args->series.nr) {
		query.series.metric = name;
		query.series.nr = split_names(&args->series, name, SERIES_MAX);
		query.series.rate = args->rate;
	}
	if (!argc || args->range.from)
		run = operands_run("following", argc, argv);
	if (args->range.from)
		range_of(&cmd_show, run, &args->range, &query.from_s, &to_s);
	query.from_start = args->range.from;
	query.job = reading_job();
	page.several = argc > 1 || (argc && is_directory(argv[0]));
	raise_files(); /* each recording that is followed stays open */
	buf_init(&err, 1 << 16);
	if (follow_open(argc ? (const char *const *)argv : (const char *const *)run->path,
		    argc ? (size_t)argc : run->nr, &query, &f, &err) < 0)
		die(EXIT_USAGE, "%s", (char *)err.data);
	if (!follow_nr(f))
		error("waiting for a recording in %s", argv[0]);
	status = follow_lines(f, &page);
	if (!status && follow_unfinished(f))
		warning("the recorder of %s is gone: the recording is unfinished", follow_unfinished(f));
	follow_close(f);
	run_close(run);
	buf_release(&err);
	return status;
}

/* Takes the metrics of `--series A B FILE`: a word that looks like a metric and is no file. The rest stays in
 * argv; returns how many words that is. */
static int take_metrics(struct show_args *a, int argc, char **argv)
{
	int kept = 0;

	for (int i = 0; i < argc; i++) {
		if (operand_is_metric(argv[i]) && a->series.nr && a->series.nr < OPT_LIST_MAX)
			a->series.item[a->series.nr++] = argv[i];
		else
			argv[kept++] = argv[i];
	}
	return kept;
}

static int show(const void *args, int argc, char **argv)
{
	struct show_args chosen = *(const struct show_args *)args, *a = &chosen;
	struct run *run;
	int status;

	argc = take_metrics(a, argc, argv);

	if (a->jobstats &&
		(a->processes || a->stats || a->series.nr || a->follow || a->csv || a->range.phase))
		usage(&cmd_show, "--jobstats is a line of its own: it goes with --json only");
	if (a->processes + a->stats + (a->series.nr > 0) > 1)
		usage(&cmd_show, "--stats, --processes and --series cannot be combined: give one of them");
	if (a->by && !a->stats)
		usage(&cmd_show, "--by needs --stats");
	if (a->json && a->csv)
		usage(&cmd_show, "--json or --csv, not both");
	if (a->csv && !a->processes && !a->series.nr && !a->stats)
		usage(&cmd_show, "the summary is not a table: --csv needs --stats, --processes or --series");
	if ((a->rate || a->pid || a->group || a->per == PER_INSTANCE) && !a->series.nr)
		usage(&cmd_show, "--rate, --pid, --group and --per need --series");
	if (a->follow &&
		(a->stats || a->processes || a->csv || a->pid || a->group || a->per == PER_INSTANCE ||
			a->range.to))
		usage(&cmd_show, "--follow goes with --json, --series, --rate and --from only");
	if ((a->range.from || a->range.to) && !a->series.nr && !a->follow)
		usage(&cmd_show, "--from and --to need --series or --follow");
	if (a->range.phase && (a->stats || a->follow))
		usage(&cmd_show,
			"--phase goes with the summary, --processes and --series: see --stats --by phase");
	if (a->follow)
		return show_follow(a, argc, argv);
	run = operands_run("showing", argc, argv);
	if (a->stats)
		status = show_stats(run, a);
	else if (a->series.nr)
		status = show_series(run, a);
	else
		status = a->processes ? show_processes(run, a) : show_summary(run, a);
	run_close(run);
	return status;
}

const struct cmd cmd_show = {
	.name = "show",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…]",
	.help = "show a recording: summary, statistics, processes, time series",
	.detail = "Prints the summary of a recording: what the job used, its peaks and their times, and "
		  "notes on these numbers. Without an argument it shows the newest recording in this "
		  "directory. Several files, or a directory of recordings, are one run: a summary of each, "
		  "then of the whole. So is the directory of a run of many nodes. A directory with several "
		  "jobs is listed and not added: --job picks one.\n\nA recording that is still being written "
		  "is shown up to now, a "
		  "damaged one as far as it can be read. Exit status: 0 when there was something to show, 1 "
		  "on trouble, 2 when there is no recording or an option is wrong.",
	.examples = "$ tacho show\n    The newest recording in this directory.\n$ tacho show --processes "
		    "--sort rss --limit 10 job.tacho\n    The ten largest processes.\n$ tacho show "
		    "--stats --by group --csv job.tacho\n    Peaks, means and percentiles of each tool, "
		    "for a spreadsheet.\n$ tacho show --series tree.cores,proc.mem.pss_now --csv "
		    "job.tacho\n    CPUs in use and memory of the whole tree, tick by tick.\n$ tacho show "
		    "--series proc.io.read_chars --rate --pid 4711 job.tacho\n    What one process read, "
		    "in bytes per second.\n$ tacho show --series group.cores,proc.mem.rss --group blastn "
		    "job.tacho\n    CPUs and memory of all processes of one tool.\n$ tacho show --series "
		    "perf.ipc,perf.flops_dp job.tacho\n    Instructions per cycle and FLOP/s, if it was "
		    "recorded with -m perf,flops.\n$ tacho show --series gpu.util --per instance --csv "
		    "job.tacho\n    Each GPU separately.\n"
		    "$ tacho show --follow job.tacho\n    What the job does right now, until it ends.\n"
		    "$ tacho show --jobstats runs/4711\n    The line that reportseff reads from SLURM's "
		    "accounting.\n",
	.opt = show_opts,
	.nr_opts = ARRAY_SIZE(show_opts),
	.shared = range_opts,
	.nr_shared = NR_RANGE_OPTS,
	.group = &reading,
	.args_size = sizeof(struct show_args),
	.operands = "file",
	.run = show,
};
