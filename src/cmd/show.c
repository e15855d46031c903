/* `tacho show`: what a recording says, as a summary, a table of processes or time series. */
#include "cmd/cmd.h"

#include "cmd/style.h"
#include "query/run.h"
#include "report/summary.h"

#include <string.h>

extern const struct cmd cmd_show;

struct show_args {
	bool json;
};

static const struct opt show_opts[] = {
	{0, "json", NULL, OPT_FLAG, offsetof(struct show_args, json), .help = "for programs: JSON"},
};

/* The operands as one run; without any, the newest recording here. */
static struct run *run_of(int argc, char **argv)
{
	struct run *run = NULL;
	char *newest = NULL;
	struct buf err;
	int r;

	buf_init(&err, 8192);
	if (!argc) {
		if (run_newest(".", &newest) < 0)
			die(EXIT_USAGE, "there is no recording (*%s) in this directory", RECORDING_SUFFIX);
		error("showing %s, the newest here", newest);
		argv = &newest;
		argc = 1;
	}
	r = run_open((const char *const *)argv, (size_t)argc, &run, &err);
	free(newest);
	if (r < 0)
		die(EXIT_USAGE, "%s", err.len ? (char *)err.data : strerror(-r));
	buf_release(&err);
	return run;
}

static int show_summary(const struct run *run, const struct show_args *args)
{
	struct summary_style style = style_for(STDOUT_FILENO);
	struct summary *s = NULL;
	struct buf out;
	int status;

	buf_init(&out, 256 << 20);
	if (summary_read(run, &s, &out) < 0)
		die(EXIT_TROUBLE, "%s", (char *)out.data);
	if (args->json)
		summary_json(s, &out);
	else
		summary_print(s, &style, &out);
	status = print(&out);
	summary_free(s);
	buf_release(&out);
	return status;
}

static int show(const void *args, int argc, char **argv)
{
	const struct show_args *a = args;
	struct run *run = run_of(argc, argv);
	int status = show_summary(run, a);

	run_close(run);
	return status;
}

const struct cmd cmd_show = {
	.name = "show",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…]",
	.help = "what a recording says: summary, processes, time series",
	.opt = show_opts,
	.nr_opts = ARRAY_SIZE(show_opts),
	.args_size = sizeof(struct show_args),
	.operands = "file",
	.run = show,
};
