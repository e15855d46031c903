/* Operands as one run, and the options --from and --to: see operands.h. */
#include "cmd/operands.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "cmd/style.h"
#include "query/length.h"
#include "query/run_directory.h"
#include "query/sidecar.h"
#include "query/summary.h"
#include "text/listing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PHASES_NAMED 20 /* in a message */

const struct opt range_opts[NR_RANGE_OPTS] = {
	{0, "from", "TIME", OPT_TEXT, offsetof(struct range_args, from), .not_from_env = true,
		.help = "begin there: 90, 1m30s, 25%",
		.detail = "After the start of the run: seconds, a time with units, or a share of the whole."},
	{0, "to", "TIME", OPT_TEXT, offsetof(struct range_args, to), .not_from_env = true,
		.help = "end there"},
	{0, "phase", "NAME", OPT_TEXT, offsetof(struct range_args, phase), .not_from_env = true,
		.help = "only while this phase of the job lasted",
		.detail = "A phase by its name as the summary has it: from its first beginning to its last "
			  "end. "
			  "NAME#3 is the third of its repetitions; so is its own name, 'epoch 3'."},
};

/* "90", "1m30s", "1.5h": parts with units one after another, or a plain number of seconds. */
static bool parse_moment(const char *text, double *ret)
{
	double sum = 0;

	if (parse_decimal(text, ret))
		return true;
	while (*text) {
		size_t number = strspn(text, "0123456789."), unit = strspn(text + number, "smhdu");
		char part[40];
		int64_t ns;

		if (!number || !unit || number + unit >= sizeof(part))
			return false;
		memcpy(part, text, number + unit);
		part[number + unit] = 0;
		if (strspn(part, "0.") == number) /* 0: no interval, but a time */
			ns = 0;
		else if (parse_interval(part, &ns) < 0)
			return false;
		sum += (double)ns / 1e9;
		text += number + unit;
	}
	*ret = sum;
	return true;
}

static double length_of(const struct run *run)
{
	static double length = NAN;
	struct buf err;

	if (!isnan(length))
		return length;
	buf_init(&err, 1 << 16);
	if (run_length(run, &length, &err) < 0)
		die(EXIT_TROUBLE, "%s", (char *)err.data);
	buf_release(&err);
	return length;
}

/* "25%": of the whole. */
static bool parse_share(const char *text, double *ret)
{
	size_t len = strlen(text);
	char number[40];

	if (len < 2 || len >= sizeof(number) || text[len - 1] != '%')
		return false;
	memcpy(number, text, len - 1);
	number[len - 1] = 0;
	return parse_decimal(number, ret) && *ret <= 100;
}

bool is_moment(const char *text)
{
	double value;

	return parse_share(text, &value) || parse_moment(text, &value);
}

static double time_of(const struct cmd *cmd, const struct run *run, const char *option, const char *text)
{
	double value;

	if (!text)
		return NAN;
	if (parse_share(text, &value))
		return length_of(run) * value / 100;
	if (parse_moment(text, &value))
		return value;
	usage(cmd, "%s: '%s' is no time: 90, 1m30s or 25%%", option, text);
}

const struct phase *phase_of(const struct cmd *cmd, const struct phases *all, const char *name)
{
	const struct phase *p = all ? phases_find(all, name) : NULL;
	struct nearest n = nearest_slip(name);
	struct buf text;

	if (p)
		return p;
	if (!all || !all->nr)
		usage(cmd, "--phase: the job told of no phases");
	buf_init(&text, 1 << 16);
	for (size_t i = 0; i < all->nr; i++)
		nearest_try(&n, all->phase[i].name);
	nearest_ask(&n, &text);
	buf_adds(&text, n.best ? " There are" : "; there are");
	for (size_t i = 0; i < MIN(all->nr, (size_t)PHASES_NAMED); i++)
		buf_addf(&text, "%s %s", i ? "," : "", all->phase[i].name);
	usage(cmd, "--phase: there is no phase '%s'%s%s", name, (char *)text.data,
		all->nr > PHASES_NAMED ? "…" : "");
}

void phase_times(const struct cmd *cmd, const struct summary *s, const char *name, double *ret_from_s,
	double *ret_to_s)
{
	const struct phase *p = phase_of(cmd, s->phases, name);

	*ret_from_s = p->begin_s;
	*ret_to_s = p->end_s;
	if (!(p->end_s > p->begin_s))
		usage(cmd, "--phase: '%s' began and ended at the same time", name);
}

static struct summary *phase_range(const struct cmd *cmd, const struct run *run, const char *name,
	double *ret_from_s, double *ret_to_s, struct process_table **ret_processes)
{
	struct summary *s = NULL;
	struct buf err;

	buf_init(&err, 1 << 16);
	if (summary_read_with_processes(run, &s, ret_processes, &err) < 0)
		die(EXIT_TROUBLE, "%s", (char *)err.data);
	phase_times(cmd, s, name, ret_from_s, ret_to_s);
	buf_release(&err);
	return s;
}

void range_check(const struct cmd *cmd, const struct range_args *args)
{
	if (args->phase && (args->from || args->to))
		usage(cmd, "--phase, or --from and %s: not both", args->to_name ? args->to_name : "--to");
}

void range_of(const struct cmd *cmd, const struct run *run, const struct range_args *args, double *ret_from_s,
	double *ret_to_s)
{
	struct summary *phases;

	range_of_phase(cmd, run, args, ret_from_s, ret_to_s, &phases, NULL);
	summary_free(phases);
}

void range_of_phase(const struct cmd *cmd, const struct run *run, const struct range_args *args,
	double *ret_from_s, double *ret_to_s, struct summary **ret_phases,
	struct process_table **ret_processes)
{
	const char *to_name = args->to_name ? args->to_name : "--to";

	*ret_phases = NULL;
	range_check(cmd, args);
	if (args->phase) {
		*ret_phases = phase_range(cmd, run, args->phase, ret_from_s, ret_to_s, ret_processes);
		return;
	}
	*ret_from_s = time_of(cmd, run, "--from", args->from);
	*ret_to_s = time_of(cmd, run, to_name, args->to);
	if (!isnan(*ret_to_s) && !(*ret_to_s > (isnan(*ret_from_s) ? 0 : *ret_from_s)))
		usage(cmd, "%s must come after --from", to_name);
}

bool operand_is_metric(const char *word)
{
	bool all_own =
		!strcmp(word, "app") || !strcmp(word, "app.*"); /* no metric, but its name is answered */

	return (all_own ||
		       (strchr(word, '.') &&
			       !word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_.,")])) &&
		!strstr(word, RECORDING_SUFFIX) && access(word, F_OK) < 0;
}

void operands_check_notes(const struct run *run)
{
	struct buf why;

	buf_init(&why, 4096);
	for (size_t i = 0; i < run->nr; i++) {
		buf_reset(&why);
		sidecar_check(run->path[i], &why);
		if (why.len) {
			char *path = sidecar_path(run->path[i]);

			warning("%s %s: its phases and events are left out", path ? path : "",
				(char *)why.data);
			free(path);
		}
	}
	buf_release(&why);
}

/* The jobs of the directory, on stderr: a line each. */
static void list_jobs(const char *const *path, size_t nr)
{
	struct listing_query q = {.glance = true, .by_job = true};
	struct listing_page page = {.style = {.form = FORM_TEXT, .width = style_for(STDERR_FILENO).width},
		.now_ns = (int64_t)time(NULL) * NSEC_PER_SEC};
	struct listing *l = NULL;
	struct buf out;

	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < nr; i++) {
		struct run *run = NULL;

		if (run_open_job(&path[i], 1, reading_job(), &run, &out) == -ENOTUNIQ &&
			listing_read(&path[i], 1, &q, &l, &out) >= 0) {
			buf_reset(&out);
			listing_sort(l, LISTED_BY_DATE, false);
			listing_write(l, &page, &out);
			fwrite(out.data, 1, out.len, stderr);
		}
		run_close(run);
		l = listing_free(l);
		buf_reset(&out);
	}
	buf_release(&out);
}

struct run *operands_open(const char *const *path, size_t nr)
{
	struct run *run = NULL;
	struct buf err;
	int r;

	buf_init(&err, 8192);
	r = run_open_job(path, nr, reading_job(), &run, &err);
	if (r == -ENOTUNIQ)
		list_jobs(path, nr);
	if (r < 0)
		die(EXIT_USAGE, "%s", err.len ? (char *)err.data : strerror(-r));
	buf_release(&err);
	return run;
}

struct run *operands_run(const char *doing, int argc, char **argv)
{
	static char *here[] = {"."};
	struct run *run;
	char *newest = NULL;
	struct buf err;

	buf_init(&err, 8192);
	progress_show();
	if (!argc && is_run_directory(".")) {
		argv = here;
		argc = 1;
	} else if (!argc) {
		if (run_newest(".", &newest, &err) < 0)
			die(EXIT_USAGE, "%s", (char *)err.data);
		if (err.len)
			warning("%s", (char *)err.data);
		buf_reset(&err);
		error("%s %s, the newest here", doing, newest);
		argv = &newest;
		argc = 1;
	}
	run = operands_open((const char *const *)argv, (size_t)argc);
	operands_check_notes(run);
	progress_expect(run_bytes(run));
	free(newest);
	buf_release(&err);
	return run;
}
