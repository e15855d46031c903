/* `tacho ls`: the recordings of a directory, a line each, sorted and filtered. */
#include "cmd/cmd.h"

#include "base/str.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "cmd/style.h"
#include "query/run.h"
#include "text/listing.h"

#include <string.h>
#include <time.h>

extern const struct cmd cmd_ls;

#define ANSWER_MAX ((size_t)1 << 30)

struct ls_args {
	bool json, csv, recursive, reverse, failed, glance, is_long;
	int sort;
	uint64_t limit;
	const char *since, *until, *command, *match, *user, *host;
	struct opt_list tag;
};

#define INTO(field) offsetof(struct ls_args, field)

static const struct opt ls_opts[] = {
	{'r', "recursive", NULL, OPT_FLAG, INTO(recursive), .not_from_env = true,
		.help = "include subdirectories"},
	{'s', "sort", "KEY", OPT_CHOICE, INTO(sort), .choices = listed_order_names, .preset = "date",
		.help = "order of the list",
		.detail = "The newest and the largest come first, names from a to z. What is not known comes "
			  "last."},
	{0, "reverse", NULL, OPT_FLAG, INTO(reverse), .not_from_env = true, .help = "turn the order around"},
	{'n', "limit", "N", OPT_COUNT, INTO(limit), .not_from_env = true,
		.help = "only the first N recordings"},
	{0, "failed", NULL, OPT_FLAG, INTO(failed), .not_from_env = true,
		.help = "only jobs that did not end with 0"},
	{0, "since", "WHEN", OPT_TEXT, INTO(since), .not_from_env = true,
		.help = "only those that started at this time or later: 2026-11-15, 2d",
		.detail = "A date (2026-11-15), a date and a time (2026-11-15 19:30, 2026-11-15T19:30:00) "
			  "in local time, or how long ago: 30m, 12h, 2d."},
	{0, "until", "WHEN", OPT_TEXT, INTO(until), .not_from_env = true,
		.help = "only those that started at this time or earlier; a date includes its day"},
	{0, "command", "REGEX", OPT_TEXT, INTO(command), .not_from_env = true,
		.help = "only those whose command matches",
		.detail = "An extended regular expression, matched against the words of the command "
			  "joined by spaces."},
	{'m', "match", "TEXT", OPT_TEXT, INTO(match), .not_from_env = true,
		.help = "only those that have this text in their command, labels, host or path"},
	{'t', "tag", "KEY[=VALUE]", OPT_LIST, INTO(tag), .not_from_env = true,
		.help = "only those with this label; may be repeated",
		.detail = "Labels are given with --tag when recording; name and job are labels, too."},
	{0, "user", "NAME", OPT_TEXT, INTO(user), .not_from_env = true, .help = "only those of this user"},
	{0, "host", "NAME", OPT_TEXT, INTO(host), .not_from_env = true, .help = "only those of this machine"},
	{'l', "long", NULL, OPT_FLAG, INTO(is_long), .not_from_env = true,
		.help = "whole lines: nothing is cut at the edge of the screen"},
	{0, "glance", NULL, OPT_FLAG, INTO(glance), .not_from_env = true,
		.help = "do not read recordings to the end",
		.detail =
			"A finished recording has the numbers of this list in its last block. Others "
			"(unfinished, damaged, from older versions, with --also) must be read from start to "
			"end, which may take a while; with --glance their numbers are '-' instead."},
	{0, "json", NULL, OPT_FLAG, INTO(json), .not_from_env = true, .help = "for programs, as JSON"},
	{0, "csv", NULL, OPT_FLAG, INTO(csv), .not_from_env = true, .help = "as CSV"},
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* For a date without a time: the beginning of the day, or its end. */
static bool parse_date(const char *text, bool end, int64_t *ret_ns)
{
	static const char *const form[] = {
		"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};

	for (size_t i = 0; i < ARRAY_SIZE(form); i++) {
		struct tm tm = {.tm_isdst = -1};
		const char *rest = strptime(text, form[i], &tm);
		time_t at;

		if (!rest || *rest)
			continue;
		if (end && i + 1 == ARRAY_SIZE(form))
			tm.tm_mday++;
		at = mktime(&tm);
		*ret_ns = (int64_t)at * NSEC_PER_SEC - (end && i + 1 == ARRAY_SIZE(form));
		return at != (time_t)-1;
	}
	return false;
}

/* 0: no limit. */
static int64_t instant(const char *option, const char *text, bool end)
{
	int64_t ns;

	if (!text)
		return 0;
	if (parse_date(text, end, &ns))
		return MAX(ns, 1);
	if (parse_interval(text, &ns) == 0)
		return MAX(now_ns() - ns, 1);
	usage(&cmd_ls, "--%s takes a date (2026-11-15), a date with a time or a time ago (2d), not '%s'",
		option, text);
}

static void name_unreadable(const struct listing *l)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->item[i].state == LISTED_UNREADABLE)
			error("%s: %s", l->item[i].path, listed_trouble(&l->item[i]));
}

static bool is_all_unreadable(const struct listing *l)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->item[i].state != LISTED_UNREADABLE)
			return false;
	return true;
}

static int ls(const void *args, int argc, char **argv)
{
	static const char *const here[] = {"."};
	const struct ls_args *a = args;
	struct listing_query q = {.recursive = a->recursive,
		.glance = a->glance,
		.failed = a->failed,
		.since_ns = instant("since", a->since, false),
		.until_ns = instant("until", a->until, true),
		.command = a->command,
		.match = a->match,
		.tag = a->tag.item,
		.nr_tags = a->tag.nr,
		.user = a->user,
		.host = a->host,
		.job = reading_job(),
		.progress = progress_show()};
	struct listing_page page = {
		.style = table_style(a->json, a->csv), .limit = a->limit, .now_ns = now_ns()};
	page.style.width = a->is_long ? 0 : page.style.width;
	struct listing *l = NULL;
	struct buf out;
	int r, status;

	if (a->json && a->csv)
		usage(&cmd_ls, "--json or --csv, not both");
	buf_init(&out, ANSWER_MAX);
	r = listing_read(argc ? (const char *const *)argv : here, argc ? (size_t)argc : 1, &q, &l, &out);
	progress_clear();
	if (r < 0)
		die(r == -ENOMEM ? EXIT_TROUBLE : EXIT_USAGE, "%s", (char *)out.data);
	listing_sort(l, (enum listed_order)a->sort, a->reverse);
	name_unreadable(l);
	if (!l->nr && !a->json && !a->csv && l->left_out)
		error("none of %zu recordings matches", l->left_out);
	else if (!l->nr && !a->json && !a->csv)
		error("there is no recording (*%s)", RECORDING_SUFFIX);
	listing_write(l, &page, &out);
	status = print(&out);
	if (status == EXIT_OK && l->nr && is_all_unreadable(l))
		status = EXIT_TROUBLE;
	listing_free(l);
	buf_release(&out);
	return status;
}

const struct cmd cmd_ls = {
	.name = "ls",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…]",
	.help = "list recordings: date, command, exit, duration, memory, cores, labels",
	.detail = "Prints a line for each recording in the directories, or in the current one: when it "
		  "started, how the job ended, how long it took, its peak memory (PSS, RSS where PSS "
		  "was not read, or what one process had between two samples if that is more), how many "
		  "cores it used on average, its processes, labels, message and "
		  "command. A run of many nodes is one line; below the list stands which of its nodes "
		  "are missing, began late or ended early.\n\nExit status: 0, also when there is none; 1 "
		  "when there are some and none "
		  "can be opened; 2 when a directory or file does not exist or an option is wrong. Files "
		  "that cannot be opened or are no recordings are named on stderr.",
	.examples = "$ tacho ls --sort memory --limit 5\n    The five with the most memory.\n$ tacho ls "
		    "--failed --since 2d ~/runs -r\n    What went wrong since the day before yesterday.\n"
		    "$ tacho ls --tag project=genome --json\n    Recordings with this label, for "
		    "programs.\n",
	.opt = ls_opts,
	.nr_opts = ARRAY_SIZE(ls_opts),
	.group = &reading,
	.args_size = sizeof(struct ls_args),
	.operands = "file",
	.run = ls,
};
