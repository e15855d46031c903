/* Arrow IPC: a file with a footer, which is Feather 2 as well, and a stream.
 *
 * Texts are numbers of a dictionary that grows while rows come. Deltas would be the natural way, but not
 * every reader has them. A file needs none: its footer says where the dictionaries are, so that each is
 * written once, whole, behind all rows. In a stream, dictionaries come before the rows that need them: it has
 * a dictionary of the texts of one batch, and a new one only when a batch has texts that are missing in it.
 * So neither holds back rows, and what is sent is linear in them. */
#include "export/arrow_message.h"
#include "export/exporter.h"

#include <endian.h>
#include <string.h>

struct arrow {
	const struct export_job *job;
	bool stream;
	struct arrow_body body;
	struct flat flat;
	struct buf dictionaries, batches; /* struct arrow_block: what the footer has */
	struct text_numbers *texts;	  /* stream: by field */
	uint32_t **index;		  /* by field: DATA_TABLE_ROWS_MOST, of texts */
	bool begun;			  /* stream: dictionaries were sent */
};

static const char magic[] = "ARROW1";

static void arrow_drop(void *e)
{
	struct arrow *a = e;
	size_t nr = a->job->table->nr_fields;

	for (size_t i = 0; i < nr; i++) {
		if (a->texts)
			text_numbers_release(&a->texts[i]);
		if (a->index)
			free(a->index[i]);
	}
	free(a->texts);
	free(a->index);
	arrow_body_release(&a->body);
	flat_release(&a->flat);
	buf_release(&a->dictionaries);
	buf_release(&a->batches);
	free(a);
}

/* ---- messages ---- */

/* What is in `flat`, padded so that the body stands on a multiple of ARROW_ALIGN, then the body. */
static int write_message(struct arrow *a, const struct buf *body, struct buf *blocks)
{
	static const uint8_t zero[ARROW_ALIGN];
	struct outlet *out = a->job->out;
	uint64_t at = outlet_at(out);
	size_t padding = -(size_t)(at + 8 + a->flat.len) & (ARROW_ALIGN - 1);
	uint32_t head[2] = {UINT32_MAX, htole32((uint32_t)(a->flat.len + padding))};
	struct arrow_block block = {.at = (int64_t)htole64(at),
		.meta_len = (int32_t)htole32((uint32_t)(sizeof(head) + a->flat.len + padding)),
		.body_len = (int64_t)htole64(body ? body->len : 0)};
	int r;

	outlet_add(out, head, sizeof(head));
	outlet_add(out, flat_data(&a->flat), a->flat.len);
	r = outlet_add(out, zero, padding);
	if (body)
		r = outlet_add(out, body->data, body->len);
	if (!blocks)
		return r;
	buf_add(blocks, &block, sizeof(block));
	return r < 0 ? r : blocks->err;
}

/* Those of `which`; NULL: all. */
static int write_dictionary(struct arrow *a, size_t field, const uint32_t *which, uint32_t nr)
{
	const struct texts texts = export_texts(a->job, a->job->first_table, field);
	int r;

	arrow_body_reset(&a->body);
	arrow_body_texts(&a->body, &texts, which, nr);
	r = arrow_body_error(&a->body);
	if (r >= 0)
		r = arrow_dictionary_message(&a->flat, &a->body, field, nr);
	if (r == -EFBIG && a->job->reterr)
		buf_addf(a->job->reterr, "the texts of column %s take more than 2 GB",
			a->job->table->field[field].name);
	return r < 0 ? r : write_message(a, &a->body.bytes, &a->dictionaries);
}

/* ---- rows ---- */

static int index_texts(struct arrow *a, size_t field, const struct data_table_batch *batch)
{
	const struct texts texts = export_texts(a->job, batch->table, field);
	struct text_numbers *t = &a->texts[field];
	int r;

	if (!a->stream)
		return arrow_indices(&batch->cell[field], batch->nr_rows, texts.nr, a->index[field]);
	r = arrow_indices_own(t, &batch->cell[field], batch->nr_rows, texts.nr, a->index[field]);
	if (r < 0 || (r == 0 && a->begun))
		return r;
	return write_dictionary(a, field, t->text, t->nr);
}

static int arrow_add(void *e, const struct data_table_batch *batch)
{
	struct arrow *a = e;
	const struct data_table *f = a->job->table;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < f->nr_fields; i++)
		if (f->field[i].type == FIELD_TEXT)
			r = index_texts(a, i, batch);
	if (r < 0)
		return r;
	a->begun = true;
	arrow_body_reset(&a->body);
	for (size_t i = 0; i < f->nr_fields; i++)
		arrow_body_column(&a->body, f->field[i].type, &batch->cell[i], batch->nr_rows, a->index[i]);
	r = arrow_body_error(&a->body);
	if (r >= 0)
		r = arrow_batch_message(&a->flat, &a->body, batch->nr_rows);
	if (r < 0)
		return r;
	r = write_message(a, &a->body.bytes, &a->batches);
	if (a->stream) { /* their places are not needed */
		buf_reset(&a->batches);
		buf_reset(&a->dictionaries);
	}
	return r;
}

/* ---- begin and end ---- */

static int make_room(struct arrow *a)
{
	const struct data_table *f = a->job->table;
	size_t nr = MAX(f->nr_fields, (size_t)1);

	a->texts = calloc(nr, sizeof(*a->texts));
	a->index = calloc(nr, sizeof(*a->index));
	if (!a->texts || !a->index)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr_fields; i++) {
		if (f->field[i].type != FIELD_TEXT)
			continue;
		a->index[i] = calloc(DATA_TABLE_ROWS_MOST, sizeof(**a->index));
		if (!a->index[i])
			return -ENOMEM;
	}
	return 0;
}

static int open_either(const struct export_job *job, bool stream, void **ret)
{
	struct arrow *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->job = job;
	a->stream = stream;
	buf_init(&a->dictionaries, INT32_MAX);
	buf_init(&a->batches, INT32_MAX);
	r = arrow_body_init(&a->body, !job->compression || strcmp(job->compression, "none") != 0);
	if (r >= 0)
		r = make_room(a);
	if (r >= 0)
		r = arrow_schema_message(&a->flat, job->table);
	if (r >= 0 && !stream)
		r = outlet_add(job->out, "ARROW1\0", 8);
	if (r >= 0)
		r = write_message(a, NULL, NULL);
	if (r < 0)
		arrow_drop(a);
	else
		*ret = a;
	return r;
}

static int file_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	(void)reterr;
	return open_either(job, false, ret);
}

static int stream_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	(void)reterr;
	return open_either(job, true, ret);
}

static int write_end(struct arrow *a)
{
	static const uint32_t end[2] = {UINT32_MAX, 0};

	return outlet_add(a->job->out, end, sizeof(end));
}

static int write_footer(struct arrow *a)
{
	int r = arrow_footer(&a->flat, a->job->table, &a->dictionaries, &a->batches);
	uint32_t len = htole32((uint32_t)a->flat.len);

	if (r < 0)
		return r;
	outlet_add(a->job->out, flat_data(&a->flat), a->flat.len);
	outlet_add(a->job->out, &len, sizeof(len));
	return outlet_add(a->job->out, magic, strlen(magic));
}

static int arrow_close(void *e)
{
	struct arrow *a = e;
	const struct data_table *f = a->job->table;
	int r = 0;

	for (size_t i = 0; !a->stream && r >= 0 && i < f->nr_fields; i++)
		if (f->field[i].type == FIELD_TEXT)
			r = write_dictionary(a, i, NULL, export_texts(a->job, a->job->first_table, i).nr);
	if (r >= 0)
		r = write_end(a);
	if (r >= 0 && !a->stream)
		r = write_footer(a);
	arrow_drop(a);
	return r;
}

#define ARROW(open_one)                                                                              \
	.compressions = "zstd,none", .shape = EXPORT_FILE_EACH, .streams = true, .open = (open_one), \
	.add = arrow_add, .close = arrow_close, .drop = arrow_drop

const struct exporter exporter_arrow = {
	.name = "arrow",
	.suffix = ".arrow",
	.help = "Apache Arrow IPC file: columns as they are in memory",
	ARROW(file_open),
};

const struct exporter exporter_feather = {
	.name = "feather",
	.suffix = ".feather",
	.help = "Feather 2: the same file under its other name",
	ARROW(file_open),
};

const struct exporter exporter_arrow_stream = {
	.name = "arrow-stream",
	.suffix = ".arrows",
	.help = "Apache Arrow IPC stream, which is read while it is written",
	ARROW(stream_open),
};
