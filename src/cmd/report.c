/* `tacho report`: its rows, for help, manual and completions. The work needs cairo and pango, which the
 * recorder must not load: tacho-report has the same rows with a function of its own (exec/report.c). */
#include "cmd/report.h"

#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/reading.h"

#define INTO(field) offsetof(struct report_args, field)

/* clang-format off */
static const struct opt report_opts[] = {
	{'o', "output", "PATH", OPT_TEXT, INTO(output), .not_from_env = true,
		.help = "where to: a file, a directory, or - for stdout",
		.detail = "By default a report stands beside its recording: job.html beside job.tacho, report.html in a "
			"directory of recordings, and with --all the directory job-report. A name that ends like "
			"the one format that is asked for (.html, .md, .pdf, .json) is a file; without --format the "
			"ending chooses the format. Anything else is a directory, which is made when it is not there."},
	{'f', "format", "LIST", OPT_LIST, INTO(format),
		.help = "formats: html, md, pdf, png, svg, json, github; with commas",
		.detail = "html is one page that needs nothing else, no network and no server. md is a Markdown report with "
			"its plots beside it, pdf a job report to print or to file. png and svg are the plots alone, each "
			"a file in plots/. json is what the page shows, for programs (docs/page-data.md). github is Markdown with charts "
			"that GitHub draws, for the summary of a job there: it is appended to the file that "
			"GITHUB_STEP_SUMMARY names when that is set and -o is not given."},
	{'a', "all", NULL, OPT_FLAG, INTO(all), .not_from_env = true,
		.help = "everything, as a tree of files",
		.detail = "report.html, resource_report.md, job-report-ID.pdf (ID is the batch job's, else the recording's "
			"name), plots/ with every plot (PNG and SVG), metrics/ with the series behind each panel as CSV, "
			"every process, the statistics and the summary as JSON."},
	{0, "dark", NULL, OPT_FLAG, INTO(dark),
		.help = "plots for a dark background",
		.detail = "Of PNG and SVG. The page follows the reader's setting, paper is white."},
	{'v', "verbose", NULL, OPT_FLAG, INTO(verbose), .not_from_env = true,
		.help = "with --all: also configs/, what the machines are",
		.detail = "Hardware, batch system and environment of each node as text."},
	{0, "open", NULL, OPT_FLAG, INTO(open), .not_from_env = true,
		.help = "show the page in the browser (by xdg-open)"},
	{0, "force", NULL, OPT_FLAG, INTO(force), .not_from_env = true,
		.help = "replace existing files",
		.detail = "A page of the same run, made earlier, is replaced without it."},
};
/* clang-format on */

static int become_report(const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	return external_become("tacho-report");
}

const struct cmd cmd_report = {
	.name = "report",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…]",
	.help = "a page that explains a run: findings, advice, plots, statistics",
	.detail = "Writes a report of a run: what it did, what held it back, and what to ask for next time, "
		  "with plots "
		  "and statistics. By default that is one HTML file beside the recording, which needs "
		  "nothing else. The "
		  "path of what was written goes to stdout, one line each.\n\n"
		  "Without an operand it is the newest recording in this directory. Several files, or a "
		  "directory of "
		  "recordings, are one run with several nodes. A recording that is still being written is "
		  "reported up "
		  "to now, a damaged one as far as it can be read.\n\n"
		  "Files are for their owner alone (mode 0600), as recordings are, since they hold the same: "
		  "command "
		  "lines, user and host names. An earlier page of the same run is replaced, and nothing else "
		  "without --force. Exit status: 0 when the "
		  "report was "
		  "written, 1 on trouble, 2 when there is no recording, a file exists already or an option "
		  "is wrong.",
	.examples = "$ tacho report --open\n"
		    "    The newest recording here, as a page beside it, in the browser.\n"
		    "$ xdg-open \"$(tacho report job.tacho)\"\n"
		    "    Make it and look at it.\n"
		    "$ tacho report --format md,pdf -o docs/ job.tacho\n"
		    "    Markdown with plots, and a PDF, in docs/.\n"
		    "$ tacho report --all -o results/ runs/4711/\n"
		    "    Everything there is about a run on several nodes.\n"
		    "$ tacho report --format md -o - --from 10m --to 20m job.tacho\n"
		    "    Ten minutes of a run as Markdown, on stdout.\n",
	.opt = report_opts,
	.nr_opts = ARRAY_SIZE(report_opts),
	.shared = range_opts,
	.nr_shared = NR_RANGE_OPTS,
	.group = &reading,
	.args_size = sizeof(struct report_args),
	.operands = "file",
	.run = become_report,
};
