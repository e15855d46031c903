/* A line for each tick of each host, instances side by side: "cpu0 cpu.user [s]". Which instances there are
 * is known only at the end, and the heading has them all. So lines wait in a spool, each with the columns
 * that there were until then; behind the heading they get the empty fields that they lack. Reading the run
 * once before it is written was rejected: a recording is read more slowly than a file is copied.
 *
 * Instances are identified by all keys behind the host, since ten processes may have one name. */
#include "export/csv.h"

#include "base/idmap.h"
#include "base/owned.h"
#include "base/str.h"
#include "export/spool.h"

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
	bool begun;
	struct buf key, was_key, label, value;
	struct csv_wide_span *cell; /* in `value`: instances by metrics */
	bool *taken;		    /* instances that are in this line */
	struct spool_file file;
	struct spool lines; /* of each a head, and its text without the end */
};

struct csv_wide_line {
	uint32_t len, nr_instances;
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
	w->cell = calloc(COLUMNS_MOST, sizeof(*w->cell));
	w->taken = calloc(COLUMNS_MOST, sizeof(*w->taken));
	spool_file_init(&w->file, job->path);
	spool_init(&w->lines);
	if (!w->metric || !w->instance || !w->cell || !w->taken) {
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
	spool_release(&w->lines);
	spool_file_release(&w->file);
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

/* The number of the instance that the label names; it is a new one when it was not there. */
static int instance_number(struct csv_wide *w, uint32_t *ret)
{
	uint64_t key;

	if (w->label.err)
		return w->label.err;
	*ret = find(w, &key);
	if (*ret != IDMAP_NONE)
		return 0;
	if ((w->nr_instances + 1) * MAX(w->nr_metrics, (size_t)1) > COLUMNS_MOST)
		return too_many(w);
	*ret = (uint32_t)w->nr_instances;
	w->instance[*ret] = strdup((char *)w->label.data);
	if (!w->instance[*ret] || idmap_put(&w->by_hash, key, *ret) < 0)
		return -ENOMEM;
	w->nr_instances++;
	return 0;
}

/* ---- lines ---- */

static int line_end(struct csv_wide *w)
{
	struct buf *out = &w->lines.held;
	struct csv_wide_line head = {.nr_instances = (uint32_t)w->nr_instances};
	size_t before = out->len;

	if (!w->begun)
		return 0;
	buf_add(out, &head, sizeof(head));
	buf_add(out, w->was_key.data, w->was_key.len);
	for (size_t i = 0; i < w->nr_instances * w->nr_metrics; i++) {
		buf_addch(out, ',');
		buf_add(out, w->value.data + w->cell[i].at, w->cell[i].len);
	}
	if (out->err)
		return out->err;
	if (out->len - before > UINT32_MAX)
		return -E2BIG;
	head.len = (uint32_t)(out->len - before - sizeof(head));
	memcpy(out->data + before, &head, sizeof(head));
	memset(w->cell, 0, w->nr_instances * w->nr_metrics * sizeof(*w->cell));
	memset(w->taken, 0, w->nr_instances * sizeof(*w->taken));
	buf_reset(&w->value);
	w->begun = false;
	return spool_settle(&w->lines, &w->file);
}

static bool same_key(const struct csv_wide *w)
{
	return w->key.len == w->was_key.len && !memcmp(w->key.data, w->was_key.data, w->key.len);
}

int csv_wide_row(struct csv_wide *w, const struct data_table_batch *b, uint32_t row)
{
	uint32_t number = 0;
	int r;

	buf_reset(&w->key);
	for (size_t i = 0; i < w->job->table->nr_fields; i++) {
		if (!is_of_line(w, i))
			continue;
		buf_adds(&w->key, i ? "," : "");
		csv_add_cell(&w->key, w->job, b, i, row);
	}
	label_make(w, b, row);
	r = instance_number(w, &number);
	/* Two instances with the same keys get lines of their own. */
	if (r >= 0 && (!same_key(w) || w->taken[number]))
		r = line_end(w);
	if (r < 0)
		return r;
	buf_reset(&w->was_key);
	buf_add(&w->was_key, w->key.data, w->key.len);
	w->begun = w->taken[number] = true;
	for (size_t k = 0; k < w->nr_metrics; k++) {
		struct csv_wide_span *s = &w->cell[number * w->nr_metrics + k];

		s->at = w->value.len;
		csv_add_cell(&w->value, w->job, b, w->metric[k], row);
		s->len = w->value.len - s->at;
	}
	return w->value.err ? w->value.err : w->was_key.err;
}

/* ---- the file ---- */

static int heading(struct csv_wide *w, struct buf *out)
{
	buf_reset(out);
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
	return out->err ? out->err : outlet_add(w->job->out, out->data, out->len);
}

/* A line of the spool, as long as the heading. */
static int line_pour(
	struct csv_wide *w, struct spool_reader *lines, struct csv_wide_line head, struct buf *out)
{
	size_t lacks = (w->nr_instances - head.nr_instances) * w->nr_metrics;
	char *text;
	int r = 1;

	buf_reset(out);
	if (!buf_reserve(out, head.len + lacks + 2))
		return out->err;
	text = (char *)out->data;
	if (head.len)
		r = spool_reader_next(lines, text, head.len);
	memset(text + head.len, ',', lacks);
	memcpy(text + head.len + lacks, "\r\n", 2);
	return r <= 0 ? r < 0 ? r : -EIO : outlet_add(w->job->out, text, head.len + lacks + 2);
}

int csv_wide_end(struct csv_wide *w)
{
	struct csv_wide_line head;
	struct spool_reader lines;
	int r = line_end(w);

	if (r >= 0)
		r = heading(w, &w->value);
	spool_reader_init(&lines, &w->lines, &w->file);
	while (r >= 0 && (r = spool_reader_next(&lines, &head, sizeof(head))) > 0)
		r = line_pour(w, &lines, head, &w->value);
	return r;
}
