/* `tacho report`: reads a run once, and writes it in the formats that are wanted.
 *
 * What stands in the way is said before the reading, which may take long, and everything is looked at again
 * before the first file is written: a report is not left half made because its last file may not be
 * replaced. */
#include "exec/report.h"

#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "cmd/signals.h"
#include "draw/draw.h"
#include "draw/job_report.h"
#include "exec/commands.h"
#include "exec/paths.h"
#include "text/summary.h"

#include <dirent.h>
#include <math.h>
#include <string.h>

#define DOCUMENT_MAX ((size_t)1 << 30)

static const enum report_format document[] = {FORMAT_HTML, FORMAT_MD, FORMAT_PDF, FORMAT_JSON, FORMAT_GITHUB};

int say_path(struct report *r, const char *path)
{
	buf_addf(&r->said, "%s\n", path);
	return EXIT_OK;
}

/* ---- what is in the way ---- */

static int check_directory(const char *directory, const char *suffix, bool force)
{
	DIR *dir = force ? NULL : opendir(directory);
	struct dirent *entry;
	int status = EXIT_OK;

	while (dir && status == EXIT_OK && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (dot && !strcmp(dot, suffix)) {
			error("there are files in %s already: --force replaces them, -o chooses another "
			      "place",
				directory);
			status = EXIT_USAGE;
		}
	}
	if (dir)
		closedir(dir);
	return status;
}

static bool is_step(const struct places *p, enum report_format format)
{
	return format == FORMAT_GITHUB && p->step;
}

static int check_places(const struct report *r, const char *id)
{
	const struct places *p = &r->places;
	bool force = r->args->force;
	int status = EXIT_OK;

	for (size_t i = 0; status == EXIT_OK && i < ARRAY_SIZE(document); i++) {
		_cleanup_(freep) char *path = p->formats & document[i] ? place_of(p, document[i], id) : NULL;

		if (path && !is_step(p, document[i]))
			status = output_check(path,
				force || (document[i] == FORMAT_HTML && page_is_own(path, r->analysis)));
	}
	if (status == EXIT_OK && p->formats & FORMAT_PNG && p->plots)
		status = check_directory(p->plots, ".png", force);
	if (status == EXIT_OK && p->formats & FORMAT_SVG && p->plots)
		status = check_directory(p->plots, ".svg", force);
	if (status == EXIT_OK && r->args->all) {
		_cleanup_(freep) char *metrics = path_in(p->directory, "metrics", "");

		status = check_directory(metrics, ".csv", force);
	}
	return status;
}

/* ---- documents ---- */

static int paint(void *arg, const struct chart *f, bool dark, struct buf *out)
{
	const struct draw_style style = {.dark = dark, .transparent = true};

	(void)arg;
	return draw_picture(f, DRAW_SVG, &style, out);
}

static int make_document(struct report *r, enum report_format format, struct buf *out)
{
	const struct painter painter = {.svg = paint};
	int made;

	switch (format) {
	case FORMAT_HTML:
		made = page_html(r->analysis, r->charts, &painter, false, out);
		if (made >= 0)
			page_mark(r->analysis, out);
		return made;
	case FORMAT_MD:
		return markdown_report(r->analysis, r->charts, r->places.plots_link, out);
	case FORMAT_GITHUB:
		return github_report(r->analysis, r->charts, GITHUB_MOST, out);
	case FORMAT_PDF:
		return job_report(r->analysis, r->charts, r->outline, r->progress, out);
	default:
		return page_data(r->analysis, r->charts, out);
	}
}

static int write_document(struct report *r, enum report_format format)
{
	_cleanup_(freep) char *path = place_of(&r->places, format, r->outline->id);
	struct buf out;
	int status, made;

	buf_init(&out, DOCUMENT_MAX);
	made = make_document(r, format, &out);
	progress_clear();
	if (made < 0 || out.err) {
		error("cannot make %s: %s", path, strerror(made < 0 ? -made : -out.err));
		status = EXIT_TROUBLE;
	} else {
		status = outputs_add(&r->out, path, &out);
	}
	buf_release(&out);
	if (status == EXIT_OK && strcmp(path, "-") != 0)
		status = say_path(r, path);
	return status;
}

/* ---- reading ---- */

static void tell_unfinished(const struct report *r)
{
	const struct summary *whole = r->analysis->summary;
	size_t nr = whole->nr_nodes ? whole->nr_nodes : 1, unfinished = 0;
	const struct summary *one = NULL;

	for (size_t i = 0; i < nr; i++) {
		const struct summary *s = whole->nr_nodes ? &whole->node[i] : whole;

		if (s->complete)
			continue;
		one = one ? one : s;
		unfinished++;
	}
	if (unfinished == 1)
		warning("%s has no end: this report is of what is there so far",
			one->path ? one->path : "it");
	else if (unfinished)
		warning("%zu of %zu recordings have no end: this report is of what is there so far",
			unfinished, nr);
}

static void tell_damage(const struct report *r)
{
	const struct summary *s = r->analysis->summary;
	char bytes[UNITS_SIZE];

	if (s->lost_bytes > 0)
		warning("%s of the recording%s cannot be read: this report is of the rest",
			format_bytes(bytes, s->lost_bytes), s->nr_nodes > 1 ? "s" : "");
}

static void times_of_phase(const struct summary *s, const char *phase, double *ret_from_s, double *ret_to_s)
{
	progress_clear();
	phase_times(&cmd_report, s, phase, ret_from_s, ret_to_s);
}

static int read_analysis(struct report *r)
{
	struct analysis_options options = {.progress = r->progress,
		.phase = r->args->range.phase,
		.phase_times = times_of_phase,
		.from_s = NAN,
		.to_s = NAN};
	struct buf err;
	int result;

	range_check(&cmd_report, &r->args->range);
	if (!options.phase) /* of a phase it is known when the first pass is over */
		range_of(&cmd_report, r->run, &r->args->range, &options.from_s, &options.to_s);
	buf_init(&err, 8192);
	result = analysis_read(r->run, &options, &r->analysis, &err);
	if (result >= 0 && !(r->analysis->to_s > r->analysis->from_s) &&
		(r->args->range.from || r->args->range.phase))
		usage(&cmd_report, "%s: nothing was recorded from there on",
			r->args->range.phase ? "--phase" : "--from");
	if (result >= 0)
		result = charts_make(r->analysis, &r->charts);
	if (result >= 0)
		result = outline_make(r->analysis, &r->outline);
	progress_clear();
	if (result < 0)
		error("%s", err.len ? (char *)err.data : strerror(-result));
	buf_release(&err);
	return result < 0 ? EXIT_TROUBLE : EXIT_OK;
}

/* All files, or none: a failure or a signal leaves nothing behind. */
static int write_all(struct report *r)
{
	_cleanup_(freep) char *page =
		r->places.formats & FORMAT_HTML ? place_of(&r->places, FORMAT_HTML, r->outline->id) : NULL;
	int status = EXIT_OK;

	r->out.may_replace = page && page_is_own(page, r->analysis) ? page : NULL;
	signals_note();
	if (r->places.directory)
		status = outputs_directory(&r->out, r->places.directory);
	for (size_t i = 0; status == EXIT_OK && !signals_noted() && i < ARRAY_SIZE(document); i++)
		if (r->places.formats & document[i] && !is_step(&r->places, document[i]))
			status = write_document(r, document[i]);
	if (status == EXIT_OK && r->places.formats & FORMATS_OF_PICTURES)
		status = report_pictures(r);
	if (status == EXIT_OK && r->args->all)
		status = report_metrics(r);
	if (status == EXIT_OK && r->args->verbose)
		status = report_configs(r);
	progress_clear();
	if (status == EXIT_OK && !signals_noted())
		status = outputs_take(&r->out);
	if (status == EXIT_OK && !signals_noted() && r->places.step)
		status = report_step(r);
	outputs_drop(&r->out);
	if (status == EXIT_OK && !signals_noted())
		status = print_shown(&r->said);
	if (status == EXIT_OK && !signals_noted() && r->args->open)
		status = page_open(page);
	signals_obey();
	return status;
}

int report_run(const void *args, int argc, char **argv)
{
	struct report r = {.args = args, .out.force = ((const struct report_args *)args)->force};
	struct run *run = operands_run("reporting", argc, argv);
	int status;

	r.run = run;
	buf_init(&r.said, 1 << 20);
	places_choose(&r.places, r.args, argc, argv, run);
	if (r.places.only && r.places.formats & FORMAT_PDF && !strcmp(r.places.only, "-") &&
		isatty(STDOUT_FILENO))
		usage(&cmd_report, "a PDF is not for terminals: redirect it into a file");
	if (r.args->open &&
		(!(r.places.formats & FORMAT_HTML) || (r.places.only && !strcmp(r.places.only, "-"))))
		usage(&cmd_report, "--open shows the page: it needs --format html, in a file");
	r.progress = progress_show();
	status = check_places(&r, NULL);
	if (status == EXIT_OK)
		status = read_analysis(&r);
	if (status == EXIT_OK) {
		tell_unfinished(&r);
		tell_damage(&r);
		status = check_places(&r, r.outline->id);
	}
	if (status == EXIT_OK)
		status = write_all(&r);
	outline_free(r.outline);
	charts_free(r.charts);
	analysis_free(r.analysis);
	buf_release(&r.said);
	places_release(&r.places);
	run_close(run);
	return status;
}
