#include "cmd/operands.h"

#include "cmd/cmd.h"

#include <math.h>
#include <string.h>

/* Zero is where a range begins and ends anyway, so that it can stand for "not given". */
const struct opt range_opts[NR_RANGE_OPTS] = {
	{0, "from", "TIME", OPT_INTERVAL, offsetof(struct range_args, from_ns), .not_from_env = true,
		.help = "begin so long after the start of the run",
		.detail = "Seconds, or with a unit: 90, 1.5m, 2h."},
	{0, "to", "TIME", OPT_INTERVAL, offsetof(struct range_args, to_ns), .not_from_env = true,
		.help = "end so long after the start of the run"},
};

void range_of(const struct cmd *cmd, const struct range_args *args, double *ret_from_s, double *ret_to_s)
{
	if (args->to_ns && args->to_ns <= args->from_ns)
		usage(cmd, "--to must come after --from");
	*ret_from_s = args->from_ns ? (double)args->from_ns / 1e9 : NAN;
	*ret_to_s = args->to_ns ? (double)args->to_ns / 1e9 : NAN;
}

struct run *operands_run(const char *doing, int argc, char **argv)
{
	struct run *run = NULL;
	char *newest = NULL;
	struct buf err;
	int r;

	buf_init(&err, 8192);
	if (!argc) {
		if (run_newest(".", &newest) < 0)
			die(EXIT_USAGE, "there is no recording (*%s) in this directory", RECORDING_SUFFIX);
		error("%s %s, the newest here", doing, newest);
		argv = &newest;
		argc = 1;
	}
	r = run_open((const char *const *)argv, (size_t)argc, &run, &err);
	if (r < 0)
		die(EXIT_USAGE, "%s", err.len ? (char *)err.data : strerror(-r));
	free(newest);
	buf_release(&err);
	return run;
}
