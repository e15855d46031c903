/* Where an export goes, and how it gets there whole.
 *
 *	job.tacho, one file     job.json
 *	job.tacho, a file each  job-export/process.csv, job-export/cpu.csv …
 *	-o tables/              tables/process.csv, tables/job.json …
 *	-o x.json, -o -         that alone */
#include "exec/export.h"

#include "cmd/cmd.h"
#include "cmd/output.h"
#include "exec/paths.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

/* How many, as far as the choice of a place goes: files of a format's own making are several. */
static size_t files_of(const struct export *x, const struct exporter *f)
{
	return f->shape == EXPORT_FILE_EACH ? x->nr_tables : f->shape == EXPORT_ONE_FILE ? 1 : 2;
}

static void check_stream(const struct export *x)
{
	const struct exporter *f = x->format[0];

	if (x->nr_formats != 1 || !f->streams)
		usage(&cmd_export, "-o - takes one format that can be streamed%s%s",
			x->nr_formats == 1 ? ", which this one cannot: " : "",
			x->nr_formats == 1 ? f->name : "");
	if (!f->is_text && isatty(STDOUT_FILENO))
		usage(&cmd_export, "%s is not for terminals: redirect it into a file", f->name);
	if (files_of(x, f) != 1)
		usage(&cmd_export,
			"%s is a file for each of %zu tables: --domain chooses the one for standard output",
			f->name, x->nr_tables);
}

/* job.txt, run.h4; not run-1.5, .hidden, a.b/c. */
static bool has_ending(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *dot = strrchr(name, '.');
	size_t len = dot ? strlen(dot + 1) : 0;

	if (!len || len > 8 || dot == name || !isalpha((unsigned char)dot[1]))
		return false;
	for (size_t i = 1; i <= len; i++)
		if (!isalnum((unsigned char)dot[i]))
			return false;
	return true;
}

/* -o PATH for several files: a name that looks like a file's is more likely a misunderstanding. */
static void check_directory(const struct export *x, const char *path)
{
	size_t len = strlen(path);
	bool like_file = !x->args->to.nr && has_ending(path);

	if (!len)
		usage(&cmd_export, "-o takes the name of a file or a directory");
	if (path[len - 1] == '/' || path_is_directory(path))
		return;
	for (size_t i = 0; exporters[i]; i++)
		like_file |= format_ending(exporters[i], path) > 0;
	if (like_file)
		usage(&cmd_export,
			"this is more than one file: -o takes their directory (%s/); --domain chooses one "
			"table, --to another format",
			path);
	if (!access(path, F_OK))
		usage(&cmd_export, "%s is no directory, and this is more than one file", path);
}

static struct export_target *add_target(struct export *x, const struct exporter *f, char *path)
{
	struct export_target *t = &x->target[x->nr_targets++];

	*t = (struct export_target){.format = f, .fd = -1, .path = path};
	t->job = (struct export_job){.run = x->run,
		.table = x->table,
		.nr_tables = x->nr_tables,
		.folded = f->folds ? x->folded : NULL,
		.nr_folded = f->folds ? x->nr_folded : 0,
		.layout = x->layout,
		.safe_cells = x->args->safe_cells && f->is_cells,
		.compression = x->args->compression,
		.options = &x->options,
		.reterr = &x->err};
	return t;
}

static void add_targets_in(struct export *x, const struct exporter *f, const char *prefix, const char *base)
{
	if (f->shape == EXPORT_OWN_FILES)
		add_target(x, f, text_made("%s", prefix));
	if (f->shape == EXPORT_ONE_FILE)
		add_target(x, f, text_made("%s%s%s", prefix, base, f->suffix));
	for (size_t i = 0; f->shape == EXPORT_FILE_EACH && i < x->nr_tables; i++) {
		char *path = text_made("%s%s%s", prefix, x->table[i].name, f->suffix);
		struct export_target *t = add_target(x, f, path);

		t->job.table = &x->table[i];
		t->job.first_table = i;
		t->job.nr_tables = 1;
	}
}

static int check_targets(const struct export *x)
{
	for (size_t i = 0; i < x->nr_targets; i++) {
		const struct export_target *t = &x->target[i];

		for (size_t j = 0; j < i && t->format->shape != EXPORT_OWN_FILES; j++)
			if (!strcmp(t->path, x->target[j].path))
				usage(&cmd_export, "both %s and %s would be %s: export them one by one",
					x->target[j].format->name, t->format->name, t->path);
		if (t->format->shape != EXPORT_OWN_FILES && output_check(t->path, x->args->force) != EXIT_OK)
			return EXIT_USAGE;
	}
	return EXIT_OK;
}

/* The directory, and the one file if it is one. */
static void choose_place(
	const struct export *x, size_t nr, const char *stem, char **ret_directory, char **ret_only)
{
	const char *output = x->args->output;
	bool named = output && *output && output[strlen(output) - 1] != '/' && !path_is_directory(output);

	if (output && nr == 1 && named)
		*ret_only = text_made("%s", output);
	else if (!output && nr == 1 && x->format[0]->shape == EXPORT_ONE_FILE)
		*ret_only = text_made("%s%s", stem, x->format[0]->suffix);
	if (output && !*ret_only)
		check_directory(x, output);
	*ret_directory = *ret_only ? path_directory(*ret_only)
		: output	   ? text_made("%s", output)
				   : text_made("%s-export", stem);
}

/* The directory that will hold them is made, and in it one for the time being. */
static int place_open(struct export *x, const char *directory)
{
	int status = outputs_directory(&x->out, directory);

	return status == EXIT_OK ? outputs_stage(&x->out, directory, &x->stage) : status;
}

int export_place(struct export *x, int argc, char **argv)
{
	_cleanup_(freep) char *stem = path_beside(argc, argv, x->run, "run"), *directory = NULL, *only = NULL;
	const char *base = strrchr(stem, '/') ? strrchr(stem, '/') + 1 : stem;
	_cleanup_(freep) char *prefix = NULL;
	size_t nr = 0;
	int status;

	for (size_t i = 0; i < x->nr_formats; i++)
		nr += files_of(x, x->format[i]);
	x->target = calloc(MAX(nr, 1), sizeof(*x->target));
	if (!x->target)
		die(EXIT_TROUBLE, "no memory");
	if (x->args->output && !strcmp(x->args->output, "-")) {
		check_stream(x);
		add_target(x, x->format[0], text_made("-"));
		return EXIT_OK;
	}
	choose_place(x, nr, stem, &directory, &only);
	prefix = path_prefix(directory);
	for (size_t i = 0; i < x->nr_formats; i++)
		add_targets_in(x, x->format[i], prefix, base);
	if (only) {
		free(x->target[0].path);
		x->target[0].path = TAKE_PTR(only);
	}
	status = check_targets(x);
	return status == EXIT_OK ? place_open(x, directory) : status;
}

/* ---- names for what is whole ---- */

typedef int each_file(const char *from, const char *to, bool force, struct buf *taken);

/* Calls `each` with every file of a target: where it is, and the name it will have. */
static int for_each_file(const struct export_target *t, bool force, each_file *each, struct buf *taken)
{
	struct dirent *entry;
	int status = EXIT_OK;
	DIR *dir;

	if (t->format->shape != EXPORT_OWN_FILES)
		return each(t->temporary, t->path, force, taken);
	dir = opendir(t->temporary);
	if (!dir)
		return output_trouble(t->path, errno);
	while (status == EXIT_OK && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		_cleanup_(freep) char *from = text_made("%s/%s", t->temporary, entry->d_name);
		_cleanup_(freep) char *to = text_made("%s%s", t->path, entry->d_name);

		status = each(from, to, force, taken);
	}
	closedir(dir);
	return status;
}

static int check_one(const char *from, const char *to, bool force, struct buf *taken)
{
	(void)from, (void)taken;
	return output_check(to, force);
}

static int take_one(const char *from, const char *to, bool force, struct buf *taken)
{
	int status;

	chmod(from, 0600); /* made by a library, perhaps otherwise */
	status = output_take(from, to, force);
	if (status == EXIT_OK)
		buf_addf(taken, "%s\n", to);
	return status;
}

int export_check(const struct export_target *t, bool force)
{
	return t->temporary ? for_each_file(t, force, check_one, NULL) : EXIT_OK;
}

int export_take(const struct export_target *t, bool force, struct buf *taken)
{
	return t->temporary ? for_each_file(t, force, take_one, taken) : EXIT_OK;
}
