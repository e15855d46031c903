/* `tacho plot`: any metric of a run over time, in the terminal or as a picture. */
#include "cmd/plot.h"

#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "cmd/style.h"
#include "document/document.h"
#include "query/series.h"
#include "analysis/analysis.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define ANSWER_MAX ((size_t)1 << 30)
#define ROWS_LEAST 10 /* of one chart; what does not fit is scrolled */
#define ROWS_MOST 24  /* of one chart alone: more is not easier to read */

static const char *const per_names[] = {"total", "node", "instance", "group", "user", "process", NULL};
static const char *const form_names[] = {"auto", "png", "svg", "pdf", NULL};

#define INTO(field) offsetof(struct plot_args, field)

/* clang-format off */
static const struct opt plot_opts[] = {
	{'o', "output", "FILE", OPT_TEXT, INTO(output), .not_from_env = true,
		.help = "a picture: FILE.png, .svg or .pdf; - is stdout",
		.detail = "Without it the plot is drawn in the terminal."},
	{'f', "format", "FORMAT", OPT_CHOICE, INTO(format), .choices = form_names, .preset = "auto", .not_from_env = true,
		.help = "png, svg or pdf, whatever the name ends in"},
	{'p', "per", "WHAT", OPT_CHOICE, INTO(per), .choices = per_names, .preset = "total", .not_from_env = true,
		.help = "a curve for each node, instance, group, user, process",
		.detail = "An instance is what the metric is about: a CPU, an interface, a GPU. Of several recordings the total is that "
			"of all nodes."},
	{'n', "top", "N", OPT_COUNT, INTO(top), .preset = "10", .min = 1, .max = 1000, .not_from_env = true,
		.help = "the N largest by name, the rest as others",
		.detail = "In turn the one that had most over the time and the one that had most at once."},
	{0, "pid", "PID", OPT_COUNT, INTO(pid), .not_from_env = true, .help = "of this process only"},
	{0, "group", "NAME", OPT_TEXT, INTO(group), .not_from_env = true, .help = "of this group of processes only"},
	{0, "rate", NULL, OPT_FLAG, INTO(rate), .not_from_env = true, .help = "counters as growth per second"},
	{0, "log", NULL, OPT_FLAG, INTO(log), .not_from_env = true, .help = "a logarithmic axis of values"},
	{0, "stacked", NULL, OPT_FLAG, INTO(stacked), .not_from_env = true, .help = "draw the curves as stacked areas"},
	{0, "size", "WxH", OPT_TEXT, INTO(size),
		.help = "of the picture, in pixels; of the terminal, in characters"},
	{0, "dark", NULL, OPT_FLAG, INTO(dark), .help = "a picture for dark pages"},
	{0, "title", "TEXT", OPT_TEXT, INTO(title), .not_from_env = true, .help = "instead of the metric's name"},
	{0, "force", NULL, OPT_FLAG, INTO(force), .not_from_env = true, .help = "replace an existing file"},
};
/* clang-format on */

/* ---- words ---- */

/* CPU and memory of the job, as the panels have them. */
static size_t usual_metrics(const char **name)
{
	static const char *const id[] = {"cpu", "memory"};
	size_t nr = 0;

	for (size_t k = 0; k < ARRAY_SIZE(id); k++)
		for (size_t i = 0; i < nr_panels; i++)
			if (!strcmp(panels[i].id, id[k]))
				name[nr++] = panels[i].metric[MAX(panels[i].peak, 1) - 1];
	return nr;
}

/* The words that people have for what a panel shows. */
static const struct {
	const char *word, *panel;
} alias[] = {{"cpu", "cpu"}, {"mem", "memory"}, {"memory", "memory"}, {"io", "io"}, {"disk", "disk"},
	{"gpu", "gpu-util"}, {"net", "network"}, {"network", "network"}, {"power", "power"}};

static const struct panel *panel_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(alias); i++)
		for (size_t k = 0; !strcmp(alias[i].word, word) && k < nr_panels; k++)
			if (!strcmp(panels[k].id, alias[i].panel))
				return &panels[k];
	return NULL;
}

static void add_metric(const char **name, size_t *nr, const char *metric)
{
	if (*nr == SERIES_MAX)
		usage(&cmd_plot, "more than %d metrics", SERIES_MAX);
	if (*metric)
		name[(*nr)++] = metric;
}

/* Takes the metrics out of argv; the text is cut where the commas were. Returns how many words are left. */
static int take_metrics(int argc, char **argv, const char **name, size_t *ret_nr)
{
	int kept = 0;

	for (int i = 0; i < argc; i++) {
		const struct panel *panel;
		char *at = argv[i], *word;

		/* A file of that name is meant when there is one. */
		panel = access(argv[i], F_OK) < 0 ? panel_of(argv[i]) : NULL;
		for (unsigned k = 0; panel && k < PANEL_METRICS; k++)
			if (panel->metric[k])
				add_metric(name, ret_nr, panel->metric[k]);
		if (panel)
			continue;
		if (!operand_is_metric(argv[i])) {
			if (access(argv[i], F_OK) < 0 && !strchr(argv[i], '/') &&
				!strstr(argv[i], RECORDING_SUFFIX))
				usage(&cmd_plot,
					"'%s' is neither a file nor the name of a metric; cpu, mem, io, "
					"disk, gpu, net and power stand for the usual ones",
					argv[i]);
			argv[kept++] = argv[i];
			continue;
		}
		while ((word = strsep(&at, ",")))
			add_metric(name, ret_nr, word);
	}
	return kept;
}

/* ---- the question ---- */

struct plot *plot_of(const struct plot_args *a, int argc, char **argv)
{
	static const char *name[SERIES_MAX];
	struct plot_query query = {.metric = name,
		.per = (enum plot_per)a->per,
		.rate = a->rate,
		.log = a->log,
		.stacked = a->stacked,
		.group = a->group,
		.pid = (int64_t)MIN(a->pid, (uint64_t)INT64_MAX),
		.top = a->top,
		.title = a->title};
	struct plot *p = NULL;
	struct run *run;
	struct buf err;
	int r;

	argc = take_metrics(argc, argv, name, &query.nr);
	if (!query.nr)
		query.nr = usual_metrics(name);
	if (a->log && a->stacked)
		usage(&cmd_plot, "heights that are added up need a linear axis: --log or --stacked");
	run = operands_run("plotting", argc, argv);
	range_of(&cmd_plot, run, &a->range, &query.from_s, &query.to_s);
	buf_init(&err, 1 << 16);
	query.progress = progress_show();
	r = plot_make(run, &query, &p, &err);
	progress_clear();
	if (r < 0)
		die(r == -ENOENT || r == -EINVAL ? EXIT_USAGE : EXIT_TROUBLE, "%s", (char *)err.data);
	for (size_t i = 0; i < p->nr_notes; i++)
		warning("%s", p->note[i]);
	buf_release(&err);
	run_close(run);
	return p;
}

/* ---- the terminal ---- */

static unsigned terminal_height(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_row ? 24 : size.ws_row;
}

static struct terminal_style terminal_of(const struct plot_args *a, size_t nr)
{
	struct terminal_style style = {.columns = terminal_width(STDOUT_FILENO),
		.utf8 = locale_is_utf8(),
		.color = want_color(STDOUT_FILENO)};
	unsigned width, height = terminal_height(STDOUT_FILENO) - 1; /* the prompt follows */
	char end;

	if (a->size) {
		if (sscanf(a->size, "%5ux%5u%c", &width, &height, &end) != 2 || width < 20 || height < 6)
			usage(&cmd_plot, "--size %s: columns and rows, 20x6 at least", a->size);
		style.columns = width;
		style.rows = height;
		return style;
	}
	/* All of them on one screen if possible. */
	style.rows = (unsigned)MAX(height / MAX(nr, (size_t)1), (size_t)ROWS_LEAST);
	style.rows = MIN(style.rows, (unsigned)ROWS_MOST);
	return style;
}

static int plot(const void *args, int argc, char **argv)
{
	const struct plot_args *a = args;
	struct terminal_style style;
	struct plot *p;
	struct buf out;
	int status;

	if (a->output)
		return external_become("tacho-report");
	p = plot_of(a, argc, argv);
	style = terminal_of(a, p->nr);
	buf_init(&out, ANSWER_MAX);
	for (size_t i = 0; i < p->nr; i++)
		terminal_chart(&p->chart[i], &style, &out);
	status = print(&out);
	buf_release(&out);
	plot_free(p);
	return status;
}

const struct cmd cmd_plot = {
	.name = "plot",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…] [METRIC…]",
	.help = "any metric over time, in the terminal or as a picture",
	.detail = "Draws metrics of a run, recorded or derived ('tacho metrics' lists them): in the terminal "
		  "with braille and "
		  "colours (letters where the terminal has neither), or with --output as a picture. Metrics "
		  "of one unit "
		  "share a chart (the job's own, app.*, have one each); others stand below it on the same "
		  "time axis. cpu, mem, io, disk, gpu, net and power stand for the metrics of the "
		  "report's plots. Without a metric it is the "
		  "job's CPU and "
		  "memory, without a file the newest recording in this directory. Several recordings are one "
		  "run.\n\n"
		  "Long recordings are reduced to what can be shown without losing a peak: each point has "
		  "the mean and the range of the time it covers. What is not known is a gap. Phases and "
		  "events of the recording are shown above the curves.\n\n"
		  "Exit status: 0, 1 on trouble, 2 when there is no recording or no such metric.",
	.examples = "$ tacho plot\n"
		    "    CPU and memory of the newest recording here.\n"
		    "$ tacho plot io job.tacho\n"
		    "    What the job read and wrote; also cpu, mem, disk, gpu, net, power.\n"
		    "$ tacho plot job.tacho proc.mem.pss_now --per process\n"
		    "    Memory of the largest processes.\n"
		    "$ tacho plot job.tacho net.rx.bytes,net.tx.bytes --rate -o net.svg\n"
		    "    Traffic as a picture.\n"
		    "$ tacho plot run/ tree.cores --per node --from 10m --to 15m30s\n"
		    "    Five minutes of a run on several nodes.\n"
		    "$ tacho plot job.tacho tree.cores proc.mem.rss -o - --format pdf | lp\n"
		    "    Two panels on one page.\n",
	.opt = plot_opts,
	.nr_opts = ARRAY_SIZE(plot_opts),
	.shared = range_opts,
	.nr_shared = NR_RANGE_OPTS,
	.group = &reading,
	.args_size = sizeof(struct plot_args),
	.operands = "file",
	.run = plot,
};
