/* Where a report goes: beside its recording, into the directory or the file that was named.
 *
 *	job.tacho                        job.html, job.md, job.pdf, job-plots/
 *	a directory, several recordings  report.html, report.md ... in it, or beside the first of them
 *	-o results/                      results/report.html, resource_report.md, job-report-ID.pdf, plots/
 *	-o page.html, -o -               that alone (Markdown: and its plots in page-plots/) */
#include "exec/report.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "exec/paths.h"

#include <string.h>
#include <strings.h>

/* clang-format off */
static const struct {
	enum report_format format;
	const char *name, *also, *suffix;
	const char *in_tree; /* NULL: made of the id */
} row[] = {
	{FORMAT_HTML, "html", "htm",      ".html", "report.html"},
	{FORMAT_MD,   "md",   "markdown", ".md",   "resource_report.md"},
	{FORMAT_PDF,  "pdf",  NULL,       ".pdf",  NULL},
	{FORMAT_JSON, "json", NULL,       ".json", "report.json"},
	{FORMAT_GITHUB, "github", NULL,   ".github.md", "github_summary.md"},
	{FORMAT_PNG,  "png",  NULL,       ".png",  NULL},
	{FORMAT_SVG,  "svg",  NULL,       ".svg",  NULL},
};
/* clang-format on */

/* ---- formats ---- */

static unsigned format_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcasecmp(name, row[i].name) || (row[i].also && !strcasecmp(name, row[i].also)))
			return row[i].format;
	return 0;
}

static unsigned formats_of(const struct opt_list *list)
{
	unsigned formats = 0;

	for (unsigned i = 0; i < list->nr; i++) {
		_cleanup_(freep) char *text = text_made("%s", list->item[i]);
		char *at = text, *word;

		while ((word = strsep(&at, ","))) {
			unsigned one = format_by_name(word);

			if (!one && *word)
				usage(&cmd_report,
					"--format takes html, md, pdf, png, svg, json or github, not '%s'",
					word);
			formats |= one;
		}
	}
	return formats;
}

static unsigned format_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

	return dot ? format_by_name(dot + 1) : 0;
}

static bool is_one(unsigned formats)
{
	return formats && !(formats & (formats - 1));
}

/* ---- places ---- */

/* The pictures of Markdown stand in a directory beside it. */
static void place_plots(struct places *p)
{
	const char *slash = strrchr(p->stem, '/');

	if (p->only && !strcmp(p->only, "-"))
		return;
	p->plots = p->tree ? text_made("%splots", p->stem) : text_made("%s-plots", p->stem);
	p->plots_link = p->tree ? text_made("plots/%%s.png")
				: text_made("%s-plots/%%s.png", slash ? slash + 1 : p->stem);
}

static void place_tree(struct places *p, const char *directory)
{
	p->tree = true;
	p->stem = path_prefix(directory);
	p->directory = text_made("%.*s", (int)MAX(strlen(p->stem) - 1, (size_t)1), p->stem);
}

/* -o PATH is a file when it ends like the one format that is wanted. */
static void place_output(struct places *p, const char *output, bool all)
{
	unsigned by_name = path_is_directory(output) || all ? 0 : format_of_file(output);
	size_t len = strlen(output);

	if (!strcmp(output, "-")) {
		p->formats = p->formats ? p->formats : FORMAT_HTML;
		if (all || !is_one(p->formats) || (p->formats & FORMATS_OF_PICTURES))
			usage(&cmd_report, "-o - takes one format of html, md, pdf, json and github");
		p->only = text_made("-");
		p->stem = text_made("-");
		return;
	}
	if (!p->formats && by_name && output[len - 1] != '/')
		p->formats = by_name;
	if (by_name == FORMAT_MD && p->formats == FORMAT_GITHUB) /* it is Markdown, too */
		by_name = FORMAT_GITHUB;
	if (by_name && p->formats == by_name) {
		if (by_name & FORMATS_OF_PICTURES)
			usage(&cmd_report,
				"the plots are several files: -o takes their directory (`tacho plot` draws "
				"one)");
		p->only = text_made("%s", output);
		p->stem = path_without_suffix(output, strrchr(output, '.'));
		return;
	}
	if (!len)
		usage(&cmd_report, "-o takes the name of a file or a directory");
	place_tree(p, output);
}

void places_choose(
	struct places *ret, const struct report_args *args, int argc, char **argv, const struct run *run)
{
	struct places *p = ret;

	*p = (struct places){.formats = formats_of(&args->format)};
	if (args->all)
		p->formats = FORMAT_HTML | FORMAT_MD | FORMAT_PDF | FORMAT_PNG | FORMAT_SVG;
	if (args->verbose && !args->all)
		usage(&cmd_report, "--verbose is about --all");
	if (args->output) {
		place_output(p, args->output, args->all);
	} else if (args->all) {
		_cleanup_(freep) char *stem = path_beside(argc, argv, run, "report");
		_cleanup_(freep) char *directory = path_is_directory(argc == 1 ? argv[0] : "")
			? text_made("%s", stem)
			: text_made("%s-report", stem);

		place_tree(p, directory);
	} else {
		p->stem = path_beside(argc, argv, run, "report");
	}
	p->formats = p->formats ? p->formats : FORMAT_HTML;
	if (p->formats & FORMAT_GITHUB && !args->output && getenv("GITHUB_STEP_SUMMARY") &&
		*getenv("GITHUB_STEP_SUMMARY"))
		p->step = text_made("%s", getenv("GITHUB_STEP_SUMMARY"));
	place_plots(p);
	if (p->formats & FORMAT_MD && p->plots)
		p->formats |= FORMAT_PNG;
}

void places_release(struct places *p)
{
	free(p->directory);
	free(p->stem);
	free(p->only);
	free(p->plots);
	free(p->plots_link);
	free(p->step);
	*p = (struct places){0};
}

char *place_of(const struct places *p, enum report_format format, const char *id)
{
	size_t i = 0;

	while (row[i].format != format)
		i++;
	if (format == FORMAT_GITHUB && p->step)
		return text_made("%s", p->step);
	if (p->only)
		return text_made("%s", p->only);
	if (!p->tree)
		return text_made("%s%s", p->stem, row[i].suffix);
	if (format != FORMAT_PDF)
		return text_made("%s%s", p->stem, row[i].in_tree);
	return id ? text_made("%sjob-report-%s%s", p->stem, id, row[i].suffix) : NULL;
}
