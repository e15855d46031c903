/* An event file for TensorBoard: each metric as a scalar, with the time of the sample and its number since
 * the start of the run as the step. What grows without end is left out where there is its rate: a float has
 * seven digits. Of several recordings the tags begin with their names.
 *
 * Single processes, CPUs and collectors would be thousands of plots: they are there when they are asked for
 * (-d, -m, --per), and by default what all processes hold together. */
#include "export/exporter.h"

#include "base/owned.h"
#include "export/tfevents.h"
#include "query/run.h"
#include "query/sidecar.h"

#include <string.h>

static const char *const usual[] = {"tree", "group", "node", "cgroup", "net", "ib", "disk", "filesystem",
	"energy", "sensor", "gpu", "perf", "socket", "app", "process", NULL};
static const char *const folded[] = {"proc.mem.rss", "proc.mem.pss_now"};

#define NO_FIELD SIZE_MAX

struct tensorboard_table {
	const struct data_table *face;
	size_t time, elapsed, instance, pid;
	bool *shown; /* of each field */
};

struct tensorboard {
	const struct export_job *job;
	struct tensorboard_table *table;
	size_t nr_tables;
	int64_t *interval_ns; /* of each recording */
	char **prefix;
	struct tfevents events;
	struct buf out, tag;
	bool began;
};

static void tensorboard_drop(void *e)
{
	struct tensorboard *t = e;

	for (size_t i = 0; t->table && i < t->nr_tables; i++)
		free(t->table[i].shown);
	for (size_t i = 0; t->prefix && i < t->job->run->nr; i++)
		free(t->prefix[i]);
	free(t->table);
	free(t->interval_ns);
	free(t->prefix);
	tfevents_release(&t->events);
	buf_release(&t->out);
	buf_release(&t->tag);
	free(t);
}

/* ---- which fields ---- */

static size_t key_called(const struct data_table *t, const char *name)
{
	for (size_t i = 0; i < t->nr_fields; i++)
		if (!t->field[i].is_metric && !strcmp(t->field[i].name, name))
			return i;
	return NO_FIELD;
}

static bool has_rate(const struct data_table *t, const struct field *counter)
{
	size_t n = strlen(counter->name);

	for (size_t i = 0; i < t->nr_fields; i++)
		if (!strncmp(t->field[i].name, counter->name, n) && !strcmp(t->field[i].name + n, ".rate"))
			return true;
	return false;
}

static bool is_shown(const struct data_table *t, const struct field *f, bool fold)
{
	bool asked = !fold;

	for (size_t i = 0; i < ARRAY_SIZE(folded) && !asked; i++)
		asked = !strcmp(f->name, folded[i]); /* other formats may have asked for more */
	return asked && f->is_metric && (f->type == FIELD_INT || f->type == FIELD_REAL) &&
		(f->kind != KIND_COUNTER || !has_rate(t, f));
}

static size_t tensorboard_folds(const struct tables_options *chosen, struct table_fold *ret)
{
	if (chosen->nr_metrics || chosen->nr_domains || chosen->per != TABLES_EACH)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(folded); i++)
		ret[i] = (struct table_fold){"process", folded[i]};
	return ARRAY_SIZE(folded);
}

static bool is_of_time(const struct tensorboard_table *t)
{
	return t->face->domain && t->time != NO_FIELD && t->elapsed != NO_FIELD;
}

static int table_init(struct tensorboard_table *t, const struct data_table *face, bool fold, bool by_default)
{
	bool only_folded = !fold && by_default && !strcmp(face->name, "process");

	*t = (struct tensorboard_table){.face = face,
		.time = key_called(face, "time"),
		.elapsed = key_called(face, "elapsed"),
		.instance = fold || tfevents_is_single(face->name) ? NO_FIELD : key_called(face, "instance"),
		.pid = key_called(face, "pid")};
	t->shown = calloc(MAX(face->nr_fields, (size_t)1), sizeof(*t->shown));
	if (!t->shown)
		return -ENOMEM;
	for (size_t i = 0; is_of_time(t) && !only_folded && i < face->nr_fields; i++)
		t->shown[i] = is_shown(face, &face->field[i], fold);
	return 0;
}

/* ---- which recordings ---- */

static char *prefix_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
	size_t n = strlen(stem), suffix = strlen(RECORDING_SUFFIX);
	char *prefix;

	if (n > suffix && !strcmp(stem + n - suffix, RECORDING_SUFFIX))
		n -= suffix;
	return asprintf(&prefix, "%.*s/", (int)n, stem) < 0 ? NULL : prefix;
}

static int read_recordings(struct tensorboard *t)
{
	const struct run *run = t->job->run;

	t->interval_ns = calloc(MAX(run->nr, (size_t)1), sizeof(*t->interval_ns));
	t->prefix = calloc(MAX(run->nr, (size_t)1), sizeof(*t->prefix));
	if (!t->interval_ns || !t->prefix)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr; i++) {
		struct meta meta = {0};

		if (sidecar_meta(run->path[i], &meta, NULL) >= 0)
			meta_num(&meta, "interval_ns", &t->interval_ns[i]);
		meta_release(&meta);
		t->prefix[i] = run->nr > 1 ? prefix_of(run->path[i]) : strdup("");
		if (!t->prefix[i])
			return -ENOMEM;
	}
	return 0;
}

/* Windows as they are chosen, else samples. */
static int64_t step_of(const struct tensorboard *t, uint32_t recording, double elapsed)
{
	int64_t ns = round_i64(elapsed * 1e9), each = t->job->options ? t->job->options->every_ns : 0;

	if (each > 0)
		return ns / each;
	each = recording < t->job->run->nr ? t->interval_ns[recording] : 0;
	return each > 0 ? (ns + each / 2) / each : 0;
}

/* ---- rows ---- */

static void add_value(struct tensorboard *t, const struct tensorboard_table *from,
	const struct data_table_batch *b, size_t field, uint32_t row, int64_t step)
{
	const struct field_cells *cell = b->cell, *c = &cell[field];
	uint32_t recording = b->recording ? b->recording[row] : 0;
	double scale = from->face->field[field].scale;
	const char *instance = NULL;
	int64_t pid = 0;

	if (!cell_valid(c, row))
		return;
	if (from->instance != NO_FIELD && cell_valid(&cell[from->instance], row)) {
		struct texts texts = export_texts(t->job, b->table, from->instance);

		instance = texts.text[cell[from->instance].text[row]];
	}
	if (from->pid != NO_FIELD && cell_valid(&cell[from->pid], row))
		pid = cell[from->pid].integer[row];
	buf_reset(&t->tag);
	if (recording < t->job->run->nr)
		buf_adds(&t->tag, t->prefix[recording]);
	tfevents_tag(&t->tag, from->face->name, from->face->field[field].name, instance, pid);
	tfevents_add(&t->events, &t->out, (char *)t->tag.data, cell[from->time].integer[row], step,
		(from->face->field[field].type == FIELD_INT ? (double)c->integer[row] : c->real[row]) *
			scale);
}

static int tensorboard_add(void *e, const struct data_table_batch *b)
{
	struct tensorboard *t = e;
	const struct tensorboard_table *from = &t->table[b->table - t->job->first_table];
	int r = 0;

	for (uint32_t row = 0; is_of_time(from) && row < b->nr_rows && r >= 0; row++) {
		uint32_t recording = b->recording ? b->recording[row] : 0;
		int64_t step;

		if (!cell_valid(&b->cell[from->time], row) || !cell_valid(&b->cell[from->elapsed], row))
			continue;
		if (!t->began)
			tfevents_begin(&t->events, &t->out, b->cell[from->time].integer[row]);
		t->began = true;
		step = step_of(t, recording, b->cell[from->elapsed].real[row]);
		for (size_t i = 0; i < from->face->nr_fields; i++)
			if (from->shown[i])
				add_value(t, from, b, i, row, step);
		tfevents_end(&t->events, &t->out);
		r = t->out.err	     ? t->out.err
			: t->tag.err ? t->tag.err
				     : outlet_add(t->job->out, t->out.data, t->out.len);
		buf_reset(&t->out);
	}
	return r;
}

static int tensorboard_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct tensorboard *t = calloc(1, sizeof(*t));
	struct table_fold ignored[EXPORT_FOLDS_MOST];
	bool by_default = job->options && tensorboard_folds(job->options, ignored);
	int r;

	(void)reterr;
	if (!t)
		return -ENOMEM;
	t->job = job;
	tfevents_init(&t->events);
	buf_init(&t->out, 64 << 20);
	buf_init(&t->tag, 1 << 20);
	t->table = calloc(job->nr_tables + job->nr_folded + 1, sizeof(*t->table));
	r = t->table ? read_recordings(t) : -ENOMEM;
	for (size_t i = 0; r >= 0 && i < job->nr_tables + job->nr_folded; i++) {
		bool fold = i >= job->nr_tables;

		r = table_init(&t->table[i], fold ? &job->folded[i - job->nr_tables] : &job->table[i], fold,
			by_default);
		t->nr_tables++;
	}
	if (r < 0) {
		tensorboard_drop(t);
		return r;
	}
	*ret = t;
	return 0;
}

static int tensorboard_close(void *e)
{
	struct tensorboard *t = e;
	int r = 0;

	if (!t->began) { /* no rows: still a file that TensorBoard takes */
		tfevents_begin(&t->events, &t->out, 0);
		r = t->out.err ? t->out.err : outlet_add(t->job->out, t->out.data, t->out.len);
	}
	tensorboard_drop(t);
	return r;
}

const struct exporter exporter_tensorboard = {
	.name = "tensorboard",
	.suffix = ".tfevents",
	.help = "TensorBoard: an event file of scalars",
	.shape = EXPORT_ONE_FILE,
	.streams = true,
	.tables = usual,
	.folds = tensorboard_folds,
	.open = tensorboard_open,
	.add = tensorboard_add,
	.close = tensorboard_close,
	.drop = tensorboard_drop,
};
