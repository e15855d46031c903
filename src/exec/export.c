/* `tacho export`: reads a run once, and writes it in the formats that are wanted.
 *
 * What stands in the way is said before the reading, which may take long. Files are made in a directory of
 * their own beside the place where they belong, and get their names when all are whole. */
#include "exec/export.h"

#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/operands.h"
#include "cmd/progress.h"
#include "cmd/signals.h"
#include "text/summary.h"
#include "store/glance.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define SUMMARY_MAX ((size_t)1 << 28)

static const char *shape_words(const struct exporter *x)
{
	return x->shape == EXPORT_FILE_EACH   ? "a file each"
		: x->shape == EXPORT_ONE_FILE ? "one file"
					      : "files";
}

static int list_formats(void)
{
	struct buf out;
	int status;

	buf_init(&out, 1 << 16);
	for (size_t i = 0; exporters[i]; i++) {
		const struct exporter *x = exporters[i];

		buf_addf(&out, "%-12s  %-12s  %-11s  %s%s\n", x->name, x->suffix, shape_words(x), x->help,
			x->streams ? " (-o - will do)" : "");
		if (x->missing)
			buf_addf(&out, "%-12s  not in this build: it lacks %s\n", "", x->missing);
	}
	status = print(&out);
	buf_release(&out);
	return status;
}

static int take_nothing(void *arg, enum store_type type, const struct pairs *pairs)
{
	(void)arg, (void)type, (void)pairs;
	return 0;
}

static void tell_unfinished(const struct run *run)
{
	struct store_glance glance;
	const char *one = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < run->nr; i++) {
		if (store_glance(run->path[i], take_nothing, NULL, &glance) < 0 || glance.complete)
			continue;
		one = one ? one : run->path[i];
		nr++;
	}
	if (nr == 1)
		warning("%s has no end: this is what is there so far", one);
	else if (nr)
		warning("%zu of %zu recordings have no end: this is what is there so far", nr, run->nr);
}

static void tell_skipped(const struct run *run)
{
	if (run->nr_skipped == 1)
		warning("left out: %s %s", run->skipped[0], run->skipped_why[0]);
	else if (run->nr_skipped)
		warning("left out: %s %s, and %zu more", run->skipped[0], run->skipped_why[0],
			run->nr_skipped - 1);
}

static void tell_damage(const struct export *x)
{
	char bytes[UNITS_SIZE];

	if (x->damage.nr)
		warning("%s lost in %llu damaged place%s of the recording: no rows for that time, no rates "
			"across it ('tacho check' looks closer)",
			format_bytes(bytes, (double)x->damage.bytes), (unsigned long long)x->damage.nr,
			x->damage.nr == 1 ? "" : "s");
	else if (x->figures && x->figures->lost_bytes > 0) /* no table was read */
		warning("%s of the recording lost to damage: these are the numbers of what is left ('tacho "
			"check' looks closer)",
			format_bytes(bytes, x->figures->lost_bytes));
}

static bool wants_summary(const struct export *x)
{
	for (size_t i = 0; i < x->nr_formats; i++)
		if (x->format[i]->wants_summary)
			return true;
	return false;
}

/* Tables without a row are right where something was asked for that is not there; it is said all the same. */
static void tell_empty(const struct export *x)
{
	bool of_time = false;

	for (size_t i = 0; i < x->nr_tables; i++)
		of_time |= x->table[i].domain != NULL;
	if (x->has_rows || !of_time)
		return;
	if (x->options.per == TABLES_GROUP)
		warning("no groups were recorded, so there are no rows of them: `tacho run --also TARGET` "
			"and `tacho attach TARGET` make groups");
	else if (!isnan(x->options.from_s) || !isnan(x->options.to_s))
		warning("nothing was recorded in this part of the run: the tables have no rows");
}

int export_summarize(struct export *x)
{
	if (!wants_summary(x))
		return EXIT_OK;
	if (tables_summary(x->tables, &x->figures, &x->err) < 0) {
		progress_clear();
		error("%s", (char *)x->err.data);
		return EXIT_TROUBLE;
	}
	summary_json(x->figures, &x->summary);
	if (x->summary.err)
		error("the summary is too long");
	return x->summary.err ? EXIT_TROUBLE : EXIT_OK;
}

/* No table is needed: then the least is read that gives the summary. */
static bool only_summary(const struct export *x)
{
	for (size_t i = 0; i < x->nr_formats; i++)
		if (!x->format[i]->only_summary)
			return false;
	return true;
}

#define TABLES_MOST 32

/* The tables that all formats together take; 0: all, or what the user chose. */
static size_t tables_taken(const struct export *x, const char *ret[static TABLES_MOST])
{
	size_t nr = 0;

	if (x->options.nr_domains || x->options.nr_metrics || x->options.per != TABLES_EACH)
		return 0;
	for (size_t i = 0; i < x->nr_formats; i++) {
		const char *const *table = x->format[i]->tables;

		if (!table)
			return 0;
		for (; *table && nr < TABLES_MOST; table++)
			ret[nr++] = *table;
	}
	return nr;
}

static int list_tables(struct export *x, const struct tables_options *options)
{
	int r;

	x->tables = tables_close(x->tables);
	r = tables_open(x->run, options, &x->tables, &x->err);
	if (r < 0)
		return export_unread(x, r);
	x->nr_tables = tables_list(x->tables, &x->table);
	x->nr_folded = tables_folded(x->tables, &x->folded);
	return EXIT_OK;
}

static size_t folds_taken(
	const struct export *x, struct table_fold ret[static EXPORT_FORMATS_MOST * EXPORT_FOLDS_MOST])
{
	size_t nr = 0;

	for (size_t i = 0; i < x->nr_formats; i++)
		if (x->format[i]->folds)
			nr += x->format[i]->folds(&x->options, ret + nr);
	return nr;
}

static int open_tables(struct export *x)
{
	struct table_fold fold[EXPORT_FORMATS_MOST * EXPORT_FOLDS_MOST];
	struct tables_options options = x->options;
	static const char *const summary[] = {"summary"};
	const char *taken[TABLES_MOST];
	size_t nr_taken = tables_taken(x, taken);
	int status;

	options.summary = wants_summary(x);
	options.same = true;
	for (size_t i = 0; i < x->nr_formats; i++)
		options.same &= x->format[i]->takes_same;
	options.fold = fold;
	options.nr_folds = folds_taken(x, fold);
	if (only_summary(x)) {
		options.domain = summary;
		options.nr_domains = 1;
		options.nr_metrics = 0;
	} else if (nr_taken) {
		options.domain = taken;
		options.nr_domains = nr_taken;
		options.if_there = true;
	}
	status = list_tables(x, &options);
	if (status == EXIT_OK && options.if_there && !x->nr_tables) /* the format says what it lacks */
		status = list_tables(x, &x->options);
	if (status != EXIT_OK || x->nr_tables)
		return status;
	error("no table is left: none that was asked for has such metrics");
	return EXIT_USAGE;
}

static int take_names(struct export *x)
{
	int status = EXIT_OK;

	for (size_t i = 0; status == EXIT_OK && i < x->nr_targets; i++)
		status = export_check(&x->target[i], x->args->force);
	for (size_t i = 0; status == EXIT_OK && i < x->nr_targets; i++)
		status = export_take(&x->target[i], x->args->force, &x->taken);
	return status;
}

static void targets_release(struct export *x)
{
	for (size_t i = 0; i < x->nr_targets; i++) {
		struct export_target *t = &x->target[i];

		if (t->exporter)
			t->format->drop(t->exporter);
		outlet_release(&t->out);
		if (t->fd >= 0)
			close(t->fd);
		free(t->path);
		free(t->temporary);
	}
	free(x->target);
}

int export_run(const void *args, int argc, char **argv)
{
	struct export *x;
	int status, told;

	if (((const struct export_args *)args)->formats)
		return list_formats();
	x = calloc(1, sizeof(*x));
	if (!x)
		die(EXIT_TROUBLE, "no memory");
	x->args = args;
	buf_init(&x->err, 1 << 16);
	buf_init(&x->summary, SUMMARY_MAX);
	buf_init(&x->taken, SUMMARY_MAX);
	x->progress = progress_show();
	export_choose(x);
	x->run = operands_run("exporting", argc, argv);
	export_choose_range(x);
	umask(077);
	status = open_tables(x);
	if (status == EXIT_OK) {
		tell_skipped(x->run);
		tell_unfinished(x->run);
		if (!x->args->output || strcmp(x->args->output, "-") != 0)
			signals_note();
		status = export_place(x, argc, argv);
	}
	if (status == EXIT_OK)
		status = export_pour(x);
	if (status == EXIT_OK && !signals_noted())
		status = take_names(x);
	targets_release(x);
	outputs_drop(&x->out);
	tell_damage(x);
	if (status == EXIT_OK && !signals_noted())
		tell_empty(x);
	told = print_shown(&x->taken); /* at the very end: its reader may be gone */
	tables_close(x->tables);
	run_close((struct run *)x->run);
	export_forget(x);
	buf_release(&x->summary);
	buf_release(&x->taken);
	buf_release(&x->err);
	free(x);
	signals_obey();
	return status == EXIT_OK ? told : status;
}
