/* The pass over a run from which all exporters are fed. */
#include "exec/export.h"

#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "cmd/signals.h"
#include "exec/paths.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* ---- targets ---- */

/* What failed with which errno, to stderr. Returns the exit status. */
static int target_trouble(const struct export *x, const struct export_target *t, int err)
{
	bool stream = !strcmp(t->path, "-");

	progress_clear();
	if (signals_noted())
		return EXIT_TROUBLE;
	if (stream && err == -EPIPE)
		return EXIT_OK; /* the reader has seen enough */
	if (x->err.len)
		error("cannot write %s: %s", stream ? "to standard output" : t->path, (char *)x->err.data);
	else if (stream)
		error("cannot write to standard output: %s", why_not_written(-err));
	else
		output_trouble(t->path, -err);
	return EXIT_TROUBLE;
}

static struct texts texts_now(const void *arg, size_t table, size_t field)
{
	return tables_texts(((const struct export *)arg)->tables, table, field);
}

static int target_make_place(struct export *x, struct export_target *t)
{
	size_t number = (size_t)(t - x->target);

	if (!strcmp(t->path, "-")) {
		t->job.out = &t->out;
		return outlet_open(&t->out, STDOUT_FILENO);
	}
	t->temporary = text_made("%s/%zu%s", x->stage, number, t->format->suffix);
	t->job.path = t->temporary;
	if (t->format->shape == EXPORT_OWN_FILES)
		return mkdir(t->temporary, 0700) < 0 ? -errno : 0;
	if (t->format->by_path)
		return 0;
	t->fd = open(t->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (t->fd < 0)
		return -errno;
	t->job.out = &t->out;
	return outlet_open(&t->out, t->fd);
}

static int targets_open(struct export *x)
{
	for (size_t i = 0; i < x->nr_targets; i++) {
		struct export_target *t = &x->target[i];
		int r = target_make_place(x, t);

		t->job.texts = texts_now;
		t->job.texts_arg = x;
		t->job.name = t->path;
		if (r >= 0)
			r = t->format->open(&t->job, &t->exporter, &x->err);
		if (r < 0)
			return target_trouble(x, t, r);
	}
	return EXIT_OK;
}

static int targets_close(struct export *x)
{
	for (size_t i = 0; i < x->nr_targets; i++) {
		struct export_target *t = &x->target[i];
		int r, fd = t->fd;

		t->job.summary = t->format->wants_summary ? x->figures : NULL;
		t->job.summary_json = t->format->wants_summary ? (char *)x->summary.data : NULL;
		r = t->format->close(TAKE_PTR(t->exporter));
		if (r >= 0 && t->job.out)
			r = outlet_flush(&t->out);
		t->fd = -1;
		if (fd >= 0 && close(fd) < 0 && r >= 0) /* NFS says only here that the disk is full */
			r = -errno;
		if (r < 0)
			return target_trouble(x, t, r);
	}
	return EXIT_OK;
}

/* ---- the pass ---- */

static int give(struct export *x, const struct data_table_batch *batch)
{
	for (size_t i = 0; i < x->nr_targets; i++) {
		struct export_target *t = &x->target[i];
		size_t at = batch->table - t->job.first_table;
		int r = 0;

		if (batch->table < t->job.first_table || at >= t->job.nr_tables + t->job.nr_folded)
			continue;
		r = t->format->add(t->exporter, batch);
		if (r < 0)
			return target_trouble(x, t, r);
	}
	return EXIT_OK;
}

int export_unread(struct export *x, int err)
{
	progress_clear();
	error("%s", x->err.len ? (char *)x->err.data : strerror(-err));
	return err == -ENOENT ? EXIT_USAGE : EXIT_TROUBLE;
}

static int pass_over(struct export *x)
{
	struct data_table_batch batch;
	int r, status = EXIT_OK;

	while (status == EXIT_OK && (r = tables_next(x->tables, &batch)) != 0) {
		if (r < 0)
			return export_unread(x, r);
		x->has_rows |= batch.table < x->nr_tables && x->table[batch.table].domain != NULL;
		status = signals_noted() ? EXIT_TROUBLE : give(x, &batch);
	}
	x->damage = tables_damage(x->tables);
	return status;
}

int export_pour(struct export *x)
{
	int status = targets_open(x);

	if (status == EXIT_OK)
		status = pass_over(x);
	if (status == EXIT_OK)
		status = export_summarize(x);
	if (status == EXIT_OK)
		status = targets_close(x);
	progress_clear();
	return status;
}
