/* A line for each tick of each host, instances side by side: "cpu0 cpu.user [s]". Which instances there are
 * is known only at the end, so the run is read once before it is written. Turning a file of one line for each
 * instance around at the end was rejected: it takes the disk twice and far more code.
 *
 * Instances are identified by all keys behind the host, since ten processes may have one name. */
#include "export/csv.h"

#include "base/idmap.h"
#include "base/owned.h"
#include "base/str.h"

#include <string.h>

#define COLUMNS_MOST 16384 /* the limit of spreadsheets */

struct csv_wide_span {
	size_t at, len;
};

struct csv_wide {
	const struct export_job *job;
	size_t host;	/* the field */
	size_t *metric; /* fields */
	size_t nr_metrics;
	char **instance;
	size_t nr_instances;
	struct idmap by_hash; /* of the name: number of the instance */
	bool headed, begun;
	struct buf key, was_key, label, value;
	struct csv_wide_span *cell; /* in `value`: instances by metrics */
	bool *taken;		    /* instances that are in this line */
};

static const struct field *field_of(const struct csv_wide *w, size_t i)
{
	return &w->job->table->field[i];
}

/* A key of the line: up to the host, and the time since a phase began. Others say which instance it is of. */
static bool is_of_line(const struct csv_wide *w, size_t i)
{
	return i <= w->host || (!field_of(w, i)->is_metric && field_of(w, i)->type == FIELD_REAL);
}

int csv_wide_open(const struct export_job *job, struct csv_wide **ret)
{
	struct csv_wide *w = calloc(1, sizeof(*w));
	size_t nr = job->table->nr_fields;

	if (!w)
		return -ENOMEM;
	w->job = job;
	buf_init(&w->key, SIZE_MAX / 2);
	buf_init(&w->was_key, SIZE_MAX / 2);
	buf_init(&w->label, SIZE_MAX / 2);
	buf_init(&w->value, SIZE_MAX / 2);
	w->metric = calloc(MAX(nr, (size_t)1), sizeof(*w->metric));
	w->instance = calloc(COLUMNS_MOST, sizeof(*w->instance));
	if (!w->metric || !w->instance) {
		csv_wide_free(w);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++) {
		if (field_of(w, i)->is_metric)
			w->metric[w->nr_metrics++] = i;
		else if (!strcmp(field_of(w, i)->name, "host"))
			w->host = i;
	}
	*ret = w;
	return 0;
}

void csv_wide_free(struct csv_wide *w)
{
	if (!w)
		return;
	texts_free(w->instance, w->nr_instances);
	free(w->metric);
	idmap_release(&w->by_hash);
	free(w->cell);
	free(w->taken);
	buf_release(&w->key);
	buf_release(&w->was_key);
	buf_release(&w->label);
	buf_release(&w->value);
	free(w);
}

/* ---- instances ---- */

static void label_add(struct csv_wide *w, const struct data_table_batch *b, size_t field, uint32_t row)
{
	const struct field_cells *cell = &b->cell[field];
	struct texts t;

	if (!cell_valid(cell, row))
		return;
	if (field_of(w, field)->type == FIELD_TEXT) {
		t = export_texts(w->job, b->table, field);
		buf_add(&w->label, t.text[cell->text[row]], t.len[cell->text[row]]);
	} else {
		csv_add_cell(&w->label, w->job, b, field, row);
	}
}

static void label_make(struct csv_wide *w, const struct data_table_batch *b, uint32_t row)
{
	buf_reset(&w->label);
	for (size_t i = 0; i < w->job->table->nr_fields; i++) {
		if (field_of(w, i)->is_metric || is_of_line(w, i))
			continue;
		buf_adds(&w->label, w->label.len ? "/" : "");
		label_add(w, b, i, row);
	}
}

/* The number of the instance; IDMAP_NONE, and the key under which it would be. */
static uint32_t find(const struct csv_wide *w, uint64_t *ret_key)
{
	uint64_t key = hash_bytes(w->label.data, w->label.len);
	uint32_t i;

	while ((i = idmap_get(&w->by_hash, key)) != IDMAP_NONE &&
		strcmp(w->instance[i], (char *)w->label.data) != 0)
		key++;
	*ret_key = key;
	return i;
}

static int too_many(const struct csv_wide *w)
{
	buf_reset(w->job->reterr);
	buf_addf(w->job->reterr,
		"more than %d columns: choose with --domain and --metric, or take --per node or --long",
		COLUMNS_MOST);
	return -E2BIG;
}

int csv_wide_look(struct csv_wide *w, const struct data_table_batch *b)
{
	for (uint32_t row = 0; row < b->nr_rows; row++) {
		uint64_t key;

		label_make(w, b, row);
		if (w->label.err)
			return w->label.err;
		if (find(w, &key) != IDMAP_NONE)
			continue;
		if ((w->nr_instances + 1) * MAX(w->nr_metrics, (size_t)1) > COLUMNS_MOST)
			return too_many(w);
		w->instance[w->nr_instances] = strdup((char *)w->label.data);
		if (!w->instance[w->nr_instances] ||
			idmap_put(&w->by_hash, key, (uint32_t)w->nr_instances) < 0)
			return -ENOMEM;
		w->nr_instances++;
	}
	return 0;
}

/* ---- lines ---- */

static void heading(struct csv_wide *w, struct buf *out)
{
	for (size_t i = 0; i < w->job->table->nr_fields; i++) {
		if (!is_of_line(w, i))
			continue;
		buf_adds(out, i ? "," : "");
		csv_add_heading(out, w->job, NULL, field_of(w, i));
	}
	for (size_t i = 0; i < w->nr_instances; i++) {
		for (size_t k = 0; k < w->nr_metrics; k++) {
			buf_addch(out, ',');
			csv_add_heading(out, w->job, w->instance[i], field_of(w, w->metric[k]));
		}
	}
	buf_adds(out, "\r\n");
	w->headed = true;
	w->cell = calloc(MAX(w->nr_instances * w->nr_metrics, (size_t)1), sizeof(*w->cell));
	w->taken = calloc(MAX(w->nr_instances, (size_t)1), sizeof(*w->taken));
	if (!w->cell || !w->taken)
		out->err = -ENOMEM;
}

static void line_end(struct csv_wide *w, struct buf *out)
{
	if (!w->begun)
		return;
	buf_add(out, w->was_key.data, w->was_key.len);
	for (size_t i = 0; i < w->nr_instances * w->nr_metrics; i++) {
		buf_addch(out, ',');
		buf_add(out, w->value.data + w->cell[i].at, w->cell[i].len);
	}
	buf_adds(out, "\r\n");
	memset(w->cell, 0, w->nr_instances * w->nr_metrics * sizeof(*w->cell));
	memset(w->taken, 0, w->nr_instances * sizeof(*w->taken));
	buf_reset(&w->value);
	w->begun = false;
}

static bool same_key(const struct csv_wide *w)
{
	return w->key.len == w->was_key.len && !memcmp(w->key.data, w->was_key.data, w->key.len);
}

static void add_row(struct csv_wide *w, const struct data_table_batch *b, uint32_t row, struct buf *out)
{
	uint32_t number;
	uint64_t key;

	buf_reset(&w->key);
	for (size_t i = 0; i < w->job->table->nr_fields; i++) {
		if (!is_of_line(w, i))
			continue;
		buf_adds(&w->key, i ? "," : "");
		csv_add_cell(&w->key, w->job, b, i, row);
	}
	label_make(w, b, row);
	number = find(w, &key);
	if (number == IDMAP_NONE) /* new since the first pass: the recording is still being written */
		return;
	/* Two instances with the same keys get lines of their own. */
	if (!same_key(w) || w->taken[number])
		line_end(w, out);
	buf_reset(&w->was_key);
	buf_add(&w->was_key, w->key.data, w->key.len);
	w->begun = w->taken[number] = true;
	for (size_t k = 0; k < w->nr_metrics; k++) {
		struct csv_wide_span *s = &w->cell[number * w->nr_metrics + k];

		s->at = w->value.len;
		csv_add_cell(&w->value, w->job, b, w->metric[k], row);
		s->len = w->value.len - s->at;
	}
}

void csv_wide_row(struct csv_wide *w, const struct data_table_batch *b, uint32_t row, struct buf *out)
{
	if (!w->headed)
		heading(w, out);
	if (!out->err)
		add_row(w, b, row, out);
	out->err = out->err ? out->err : w->value.err ? w->value.err : w->key.err;
}

void csv_wide_end(struct csv_wide *w, struct buf *out)
{
	if (!w->headed)
		heading(w, out);
	if (!out->err)
		line_end(w, out);
}
