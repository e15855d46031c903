/* `tacho compare`: runs before against runs after, for people and for CI. */
#include "cmd/compare.h"

#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/output.h"
#include "cmd/operands.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "cmd/start.h"
#include "cmd/style.h"

#include <string.h>
#include <sys/stat.h>

#define EXIT_CONDITION 3 /* a condition of --fail-if is true */
#define ANSWER_MAX ((size_t)1 << 30)
#define WIDE 120 /* where the output is no terminal */

static const char *const form_names[] = {"text", "md", "json", "html", NULL};
static const char *const align_names[] = {"time", "phases", NULL};

#define INTO(field) offsetof(struct compare_args, field)

/* clang-format off */
static const struct opt compare_opts[] = {
	{'a', "all", NULL, OPT_FLAG, INTO(all), .not_from_env = true,
		.help = "every figure, also what is the same",
		.detail = "By default the table has wall time, CPU time and peak memory, and of the other figures that matter "
			"those that differ by a hundredth or more, by more than the spread of repeated runs, and by more than what is "
			"noise anywhere (1 MiB, 10 ms)."},
	{'F', "fail-if", "CONDITION", OPT_LIST, INTO(fail_if), .not_from_env = true,
		.help = "exit with 3 when this is true: memory.peak>+10%",
		.detail = "NAME is a figure of the summary's JSON (memory.peak_pss_bytes, cpu.total_s; --all lists them), or a short "
			"name: wall, exit, cpu.time, cpu.user, cpu.system, cores, cores.peak, memory.peak (PSS, else RSS), memory.pss, "
			"memory.rss, memory.uss, memory.process (of the largest one), io.read and io.write (by system calls), "
			"storage.read and storage.write, energy, gpu.energy, processes, threads. It is followed by >, >=, < or <= and a "
			"limit: +10% or -5% against before, x1.2 as a ratio to it, +100MiB or -30s as a difference, 2GiB or 5m for the "
			"value itself. Means of the runs decide. May be given several times. A name that is unknown or was not "
			"measured is an error (2), never a pass."},
	{'f', "format", "FORMAT", OPT_CHOICE, INTO(format), .choices = form_names, .preset = "text",
		.help = "text, md, json or html",
		.detail = "html is one page that needs nothing else: the tables, and plots with the runs laid over one another."},
	{'o', "output", "FILE", OPT_TEXT, INTO(output), .not_from_env = true,
		.help = "write there and print the name; its ending is the format",
		.detail = "A directory (or a name that ends in /) gets compare.html, compare.md and the plots as PNG."},
	{0, "align", "HOW", OPT_CHOICE, INTO(align), .choices = align_names, .preset = "time",
		.help = "plots by elapsed time, or phase by phase",
		.detail = "With 'phases' each phase of a run is stretched to where the phase of that name stands in the first run."},
	{0, "force", NULL, OPT_FLAG, INTO(force), .not_from_env = true, .help = "replace existing files"},
};
/* clang-format on */

/* ---- what is wanted ---- */

bool compare_into_directory(const struct compare_args *a)
{
	size_t len = a->output ? strlen(a->output) : 0;
	struct stat st;

	return len && (a->output[len - 1] == '/' || (!stat(a->output, &st) && S_ISDIR(st.st_mode)));
}

static enum compare_form compare_form_of(const struct compare_args *a)
{
	static const struct {
		const char *end;
		enum compare_form form;
	} ending[] = {{".md", COMPARE_MARKDOWN}, {".json", COMPARE_JSON}, {".html", COMPARE_HTML},
		{".htm", COMPARE_HTML}};
	size_t len = a->output ? strlen(a->output) : 0;

	for (size_t i = 0; a->format == COMPARE_TEXT && i < ARRAY_SIZE(ending); i++) {
		size_t n = strlen(ending[i].end);

		if (len > n && !strcmp(a->output + len - n, ending[i].end))
			return ending[i].form;
	}
	return (enum compare_form)a->format;
}

bool compare_wants_pictures(const struct compare_args *a)
{
	return compare_into_directory(a) || compare_form_of(a) == COMPARE_HTML;
}

/* ---- the runs ---- */

/* How many of the operands follow `--`, which separates the two sets. */
static size_t nr_behind(size_t argc)
{
	const struct start_words *words = start_words();

	for (size_t i = 1; words && i < words->nr; i++)
		if (!strcmp(words->word[i], "--"))
			return MIN(words->nr - i - 1, argc);
	return argc;
}

static void take_operands(struct compare_job *job, int argc, char **argv)
{
	size_t behind = nr_behind((size_t)argc), before = (size_t)argc - behind;
	bool parted = before && behind;

	if (before && !behind)
		usage(&cmd_compare, "nothing follows --: tacho compare BEFORE… -- AFTER…");
	if (argc < 2)
		usage(&cmd_compare, "two runs at least: tacho compare BEFORE AFTER");
	job->operand = calloc((size_t)argc, sizeof(*job->operand));
	if (!job->operand)
		die(EXIT_TROUBLE, "no memory");
	for (job->nr = 0; job->nr < (size_t)argc; job->nr++) {
		const char *path[] = {argv[job->nr]};
		struct run *run = operands_open(path, 1);

		progress_expect(run_bytes(run));
		job->operand[job->nr] = (struct compare_operand){
			.name = path[0], .run = run, .set = parted ? job->nr >= before : (unsigned)job->nr};
	}
}

static void judge(struct compare_job *job, const struct opt_list *rules)
{
	size_t each = job->c->nr_sets - 1;
	struct buf err;

	job->verdict = calloc(MAX(each * rules->nr, (size_t)1), sizeof(*job->verdict));
	if (!job->verdict)
		die(EXIT_TROUBLE, "no memory");
	buf_init(&err, 8192);
	for (unsigned i = 0; i < rules->nr; i++) {
		if (compare_judge(job->c, rules->item[i], &job->verdict[job->nr_verdicts], &err) < 0)
			die(EXIT_USAGE, "%s", (char *)err.data);
		job->nr_verdicts += each;
	}
	buf_release(&err);
}

void compare_job_open(struct compare_job *job, const struct compare_args *a, int argc, char **argv)
{
	struct buf err;

	*job = (struct compare_job){.nr = 0};
	take_operands(job, argc, argv);
	buf_init(&err, 1 << 16);
	if (compare_read(job->operand, job->nr, progress_show(), &job->c, &err) < 0) {
		progress_clear();
		die(EXIT_TROUBLE, "%s", (char *)err.data);
	}
	progress_clear();
	buf_release(&err);
	judge(job, &a->fail_if);
}

void compare_job_close(struct compare_job *job)
{
	compare_free(job->c);
	for (size_t i = 0; i < job->nr; i++)
		run_close((struct run *)job->operand[i].run);
	free(job->operand);
	free(job->verdict);
}

int compare_job_status(const struct compare_job *job, bool shown, int status)
{
	struct compare_page page = {.c = job->c};
	bool met = false;

	for (size_t i = 0; i < job->nr_verdicts; i++) {
		struct buf text;

		met |= job->verdict[i].met;
		if (!job->verdict[i].met || shown)
			continue;
		buf_init(&text, 1 << 16);
		compare_verdict_words(&page, &job->verdict[i], &text);
		error("failed: %s", (char *)text.data);
		buf_release(&text);
	}
	return status == EXIT_OK && met ? EXIT_CONDITION : status;
}

/* ---- the command ---- */

static int compare(const void *args, int argc, char **argv)
{
	const struct compare_args *a = args;
	enum compare_form form = compare_form_of(a);
	struct summary_style terminal = style_for(STDOUT_FILENO);
	struct compare_style style = {.all = a->all, .utf8 = true, .width = WIDE};
	struct compare_page page;
	struct compare_job job;
	struct buf out;
	int status;

	if (compare_wants_pictures(a))
		return external_become("tacho-report");
	compare_job_open(&job, a, argc, argv);
	page = (struct compare_page){.c = job.c, .verdict = job.verdict, .nr_verdicts = job.nr_verdicts};
	if (form == COMPARE_TEXT && !a->output)
		style = (struct compare_style){.all = a->all,
			.color = terminal.color,
			.utf8 = terminal.utf8,
			.width = isatty(STDOUT_FILENO) ? terminal.width : WIDE};
	buf_init(&out, ANSWER_MAX);
	if (form == COMPARE_MARKDOWN)
		compare_markdown(&page, &style, &out);
	else if (form == COMPARE_JSON)
		compare_json(&page, &out);
	else
		compare_text(&page, &style, &out);
	status = a->output ? output_whole(a->output, &out, a->force) : print(&out);
	if (a->output && status == EXIT_OK && strcmp(a->output, "-") != 0)
		printf("%s\n", a->output);
	buf_release(&out);
	/* Users who write JSON to a pipe or a file still see in the log what failed. */
	status = compare_job_status(&job, !a->output && form == COMPARE_TEXT, status);
	compare_job_close(&job);
	return status;
}

const struct cmd cmd_compare = {
	.name = "compare",
	.synopsis = "[OPTION…] RUN RUN… | RUN… -- RUN…",
	.help = "what is different between runs; fails a build that got worse",
	.detail =
		"Compares the figures of runs: the first with the second, or with each of the others. A "
		"run is a "
		"recording, or a directory with those of several nodes. Repeated runs of the same thing "
		"stand "
		"together on either side of --: then means are compared, and a difference that is larger "
		"than the "
		"spread of the repeated runs is marked. Phases that the job marked are compared by name.\n\n"
		"Runs of different machines and versions can be compared; a warning names what makes that "
		"doubtful (other hosts, CPU models, intervals).\n\n"
		"Exit status: 0, or 3 when a condition of --fail-if is met, 1 on trouble, 2 when there is "
		"no recording, "
		"or a condition cannot be decided.",
	.examples = "$ tacho compare before.tacho after.tacho\n"
		    "    What is different.\n"
		    "$ tacho compare base/*.tacho -- new/*.tacho\n"
		    "    Repeated runs: means, and whether the difference is larger than chance.\n"
		    "$ tacho compare -F 'memory.peak>+10%' -F 'wall>x1.2' base.tacho new.tacho\n"
		    "    For CI: exits with 3 when the new one needs more.\n"
		    "$ tacho compare -o compare.html a.tacho b.tacho c.tacho\n"
		    "    A page with the curves of three runs on the same axes.\n"
		    "$ tacho compare --align phases -o compare.html a.tacho b.tacho\n"
		    "    Phase by phase.\n",
	.opt = compare_opts,
	.nr_opts = ARRAY_SIZE(compare_opts),
	.group = &reading,
	.args_size = sizeof(struct compare_args),
	.operands = "file",
	.run = compare,
};
