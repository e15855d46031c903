/* `tacho compare` with pictures: the page, or a directory with everything. */
#include "cmd/cmd.h"
#include "cmd/compare.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "cmd/signals.h"
#include "draw/draw.h"
#include "exec/commands.h"
#include "exec/paths.h"
#include "analysis/compare_charts.h"

#include <string.h>

#define DOCUMENT_MAX ((size_t)1 << 30)

static int paint(void *arg, const struct chart *f, bool dark, struct buf *out)
{
	const struct draw_style style = {.dark = dark, .transparent = true};

	(void)arg;
	return draw_picture(f, DRAW_SVG, &style, out);
}

static int write_document(struct outputs *set, const struct compare_page *page, const struct compare_args *a,
	enum compare_form form, const char *path)
{
	struct compare_style style = {.all = a->all, .utf8 = true, .width = 100};
	struct buf out;
	int r, status;

	buf_init(&out, DOCUMENT_MAX);
	r = form == COMPARE_HTML ? compare_html(page, &style, &out) : compare_markdown(page, &style, &out);
	if (r < 0) {
		error("cannot make %s: %s", path, strerror(-r));
		status = EXIT_TROUBLE;
	} else {
		status = outputs_add(set, path, &out);
	}
	buf_release(&out);
	return status;
}

static int write_pictures(struct outputs *set, const struct compare_page *page, const char *directory)
{
	int status = outputs_directory(set, directory);

	for (size_t i = 0; status == EXIT_OK && !signals_noted() && i < page->nr_charts; i++) {
		_cleanup_(freep) char *path = path_in(directory, page->chart[i].id, ".png");
		struct buf out;
		int r;

		buf_init(&out, DOCUMENT_MAX);
		r = draw_picture(&page->chart[i], DRAW_PNG, NULL, &out);
		if (r < 0) {
			error("cannot draw %s: %s", path, strerror(-r));
			status = EXIT_TROUBLE;
		} else {
			status = outputs_add(set, path, &out);
		}
		buf_release(&out);
	}
	return status;
}

static int write_directory(struct outputs *set, struct compare_page *page, const struct compare_args *a)
{
	_cleanup_(freep) char *html = path_in(a->output, "compare", ".html");
	_cleanup_(freep) char *md = path_in(a->output, "compare", ".md");
	_cleanup_(freep) char *plots = path_in(a->output, "plots", "");
	int status = outputs_directory(set, a->output);

	if (status == EXIT_OK)
		status = output_check(html, a->force);
	if (status == EXIT_OK)
		status = output_check(md, a->force);
	if (status == EXIT_OK)
		status = write_pictures(set, page, plots);
	page->picture = "plots/%s.png";
	if (status == EXIT_OK)
		status = write_document(set, page, a, COMPARE_MARKDOWN, md);
	if (status == EXIT_OK)
		status = write_document(set, page, a, COMPARE_HTML, html);
	return status;
}

/* All files, or none. */
static int write_all(struct compare_page *page, const struct compare_args *a)
{
	struct outputs set = {.force = a->force};
	int status;

	signals_note();
	status = compare_into_directory(a)
		? write_directory(&set, page, a)
		: write_document(&set, page, a, COMPARE_HTML, a->output ? a->output : "-");
	if (status == EXIT_OK && !signals_noted())
		status = outputs_take(&set);
	outputs_drop(&set);
	signals_obey();
	return status;
}

int compare_run(const void *args, int argc, char **argv)
{
	const struct compare_args *a = args;
	const struct painter painter = {.svg = paint};
	struct compare_charts *charts = NULL;
	struct compare_page page;
	struct compare_job job;
	struct buf err;
	int status;

	if (!compare_wants_pictures(a))
		usage(&cmd_compare, "tacho-report makes pages: --format html, or a directory with --output");
	compare_job_open(&job, a, argc, argv);
	buf_init(&err, 1 << 16);
	if (compare_charts_make(job.c, a->align == ALIGN_PHASES, progress_show(), &charts, &err) < 0) {
		progress_clear();
		die(EXIT_TROUBLE, "%s", (char *)err.data);
	}
	progress_clear();
	page = (struct compare_page){.c = job.c,
		.verdict = job.verdict,
		.nr_verdicts = job.nr_verdicts,
		.chart = charts->item,
		.nr_charts = charts->nr,
		.painter = &painter,
		.note = charts->note};
	status = write_all(&page, a);
	if (status == EXIT_OK && a->output && strcmp(a->output, "-") != 0)
		printf("%s%s\n", a->output,
			!compare_into_directory(a)			  ? ""
				: a->output[strlen(a->output) - 1] == '/' ? "compare.html"
									  : "/compare.html");
	status = compare_job_status(&job, false, status);
	compare_charts_free(charts);
	compare_job_close(&job);
	buf_release(&err);
	return status;
}
