/* Apache ORC: stripes of rows, each column of them in streams of its own, and behind all a footer that says
 * where they are, what they are, and what is in them.
 *
 * Times are instants (TIMESTAMP_INSTANT), so that no reader moves them into its own time zone; texts are
 * always numbers of a dictionary, since tables have them so. What a column means is in the attributes of its
 * type. There is no index within stripes: they are small enough to be read or skipped whole, by the
 * statistics that they have. */
#include "base/str.h"
#include "export/orc_column.h"
#include "export/protobuf.h"
#include "export/text.h"

#include <string.h>

#define STRIPE_BYTES (32u << 20) /* compressed: what waits for the stripe to end */

enum {
	KIND_BOOLEAN = 0,
	KIND_LONG = 4,
	KIND_DOUBLE = 6,
	KIND_STRING = 7,
	KIND_STRUCT = 12,
	KIND_INSTANT = 18
};
enum { STREAM_PRESENT = 0, STREAM_DATA = 1, STREAM_LENGTH = 2, STREAM_DICTIONARY = 3, STREAM_SECONDARY = 5 };
enum { ENCODING_DIRECT = 0, ENCODING_DICTIONARY = 1 };
enum { CALENDAR_GREGORIAN = 2 };
#define WRITER_VERSION 6 /* statistics of times are UTC */

struct orc {
	const struct export_job *job;
	struct orc_press press;
	struct orc_scratch *scratch;
	struct orc_column *column;
	size_t nr_columns;
	uint64_t nr_rows;
	uint32_t stripe_rows;
	struct buf stripes, stripe_statistics; /* as the footer and the metadata have them */
	struct buf word, inner;		       /* messages in the making */
	struct orc_stream tail;
};

static struct texts texts_of(const struct orc *o, size_t field)
{
	if (o->job->table->field[field].type != FIELD_TEXT)
		return (struct texts){0};
	return export_texts(o->job, o->job->first_table, field);
}

static void orc_drop(void *e)
{
	struct orc *o = e;

	for (size_t i = 0; i < o->nr_columns; i++)
		orc_column_release(&o->column[i]);
	free(o->column);
	free(o->scratch);
	orc_press_release(&o->press);
	orc_stream_release(&o->tail);
	buf_release(&o->stripes);
	buf_release(&o->stripe_statistics);
	buf_release(&o->word);
	buf_release(&o->inner);
	free(o);
}

static enum orc_compression compression_of(const char *name)
{
	if (!name || !strcmp(name, "zstd"))
		return ORC_ZSTD;
	return !strcmp(name, "zlib") ? ORC_ZLIB : ORC_NONE;
}

static int orc_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct orc *o = calloc(1, sizeof(*o));
	int r;

	(void)reterr;
	if (!o)
		return -ENOMEM;
	o->job = job;
	buf_init(&o->stripes, INT32_MAX);
	buf_init(&o->stripe_statistics, INT32_MAX);
	buf_init(&o->word, INT32_MAX);
	buf_init(&o->inner, INT32_MAX);
	orc_stream_init(&o->tail);
	r = orc_press_init(&o->press, compression_of(job->compression));
	o->scratch = malloc(sizeof(*o->scratch));
	o->column = calloc(MAX(job->table->nr_fields, (size_t)1), sizeof(*o->column));
	if (!o->scratch || !o->column)
		r = -ENOMEM;
	while (r >= 0 && o->nr_columns < job->table->nr_fields) {
		r = orc_column_init(&o->column[o->nr_columns], job->table->field[o->nr_columns].type);
		o->nr_columns++;
	}
	if (r >= 0)
		r = outlet_add(job->out, "ORC", 3);
	if (r < 0)
		orc_drop(o);
	else
		*ret = o;
	return r;
}

/* ---- stripes ---- */

/* A message through the compressor to the file; *ret_len is how long it is there. */
static int write_message(struct orc *o, struct buf *message, uint64_t *ret_len)
{
	int r = message->err;

	orc_stream_clear(&o->tail);
	if (r >= 0)
		r = orc_stream_add(&o->tail, &o->press, message->data, message->len);
	if (r >= 0)
		r = orc_stream_end(&o->tail, &o->press);
	if (r >= 0)
		r = outlet_add(o->job->out, o->tail.done.data, o->tail.done.len);
	*ret_len = o->tail.done.len;
	buf_reset(message);
	return r;
}

static int write_stream(struct orc *o, size_t field, unsigned kind, const struct orc_stream *s)
{
	protobuf_uint(&o->inner, 1, kind);
	protobuf_uint(&o->inner, 2, field + 1);
	protobuf_uint(&o->inner, 3, s->done.len);
	protobuf_message(&o->word, 1, &o->inner);
	return outlet_add(o->job->out, s->done.data, s->done.len);
}

static int write_column(struct orc *o, size_t field)
{
	const struct orc_column *c = &o->column[field];
	int r = 0;

	if (c->stripe.missing)
		r = write_stream(o, field, STREAM_PRESENT, &c->present);
	if (r >= 0)
		r = write_stream(o, field, STREAM_DATA, &c->data);
	if (r >= 0 && c->type == FIELD_TIME)
		r = write_stream(o, field, STREAM_SECONDARY, &c->second);
	if (r >= 0 && c->type == FIELD_TEXT)
		r = write_stream(o, field, STREAM_LENGTH, &c->second);
	if (r >= 0 && c->type == FIELD_TEXT)
		r = write_stream(o, field, STREAM_DICTIONARY, &c->dictionary);
	return r;
}

static void put_encodings(struct orc *o)
{
	protobuf_uint(&o->inner, 1, ENCODING_DIRECT);
	protobuf_message(&o->word, 2, &o->inner);
	for (size_t i = 0; i < o->nr_columns; i++) {
		bool text = o->column[i].type == FIELD_TEXT;

		protobuf_uint(&o->inner, 1, text ? ENCODING_DICTIONARY : ENCODING_DIRECT);
		if (text)
			protobuf_uint(&o->inner, 2, o->column[i].texts.nr);
		protobuf_message(&o->word, 2, &o->inner);
	}
	protobuf_text(&o->word, 3, "UTC");
}

/* Of all columns, the first being the row itself; of the stripe or of the file. */
static void put_statistics(struct orc *o, struct buf *out, unsigned field, uint64_t nr_rows, bool of_file)
{
	protobuf_uint(&o->inner, 1, nr_rows);
	protobuf_uint(&o->inner, 10, 0);
	protobuf_message(out, field, &o->inner);
	for (size_t i = 0; i < o->nr_columns; i++) {
		const struct orc_column *c = &o->column[i];
		const struct texts texts = texts_of(o, i);

		orc_statistics_put(&o->inner, of_file ? &c->file : &c->stripe, c->type, &texts);
		protobuf_message(out, field, &o->inner);
	}
}

static int end_stripe(struct orc *o)
{
	uint64_t start = outlet_at(o->job->out), data, footer;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < o->nr_columns; i++) {
		const struct texts texts = texts_of(o, i);

		r = orc_column_end(&o->column[i], &o->press, o->stripe_rows, &texts);
		if (r >= 0)
			r = write_column(o, i);
	}
	data = outlet_at(o->job->out) - start;
	put_encodings(o);
	if (r >= 0)
		r = write_message(o, &o->word, &footer);
	if (r < 0)
		return r;
	protobuf_uint(&o->inner, 1, start);
	protobuf_uint(&o->inner, 2, 0); /* of the index */
	protobuf_uint(&o->inner, 3, data);
	protobuf_uint(&o->inner, 4, footer);
	protobuf_uint(&o->inner, 5, o->stripe_rows);
	protobuf_message(&o->stripes, 3, &o->inner);
	put_statistics(o, &o->word, 1, o->stripe_rows, false);
	protobuf_message(&o->stripe_statistics, 1, &o->word);
	for (size_t i = 0; i < o->nr_columns; i++)
		orc_column_clear(&o->column[i]);
	o->nr_rows += o->stripe_rows;
	o->stripe_rows = 0;
	return o->stripes.err ? o->stripes.err : o->stripe_statistics.err;
}

static int orc_add(void *e, const struct data_table_batch *b)
{
	struct orc *o = e;
	uint64_t waiting = 0;

	for (size_t i = 0; i < o->nr_columns; i++) {
		const struct texts texts = texts_of(o, i);
		int r = orc_column_add(&o->column[i], &o->press, o->scratch, &b->cell[i], b->nr_rows,
			o->stripe_rows, &texts);

		if (r < 0)
			return r;
		waiting += orc_column_waiting(&o->column[i]);
	}
	o->stripe_rows += b->nr_rows;
	return o->stripe_rows >= STRIPE_ROWS || waiting >= STRIPE_BYTES ? end_stripe(o) : 0;
}

/* ---- footer ---- */

static void put_pair(struct orc *o, struct buf *out, unsigned field, const char *key, const char *value)
{
	if (!value || !*value)
		return;
	protobuf_text(&o->inner, 1, key);
	protobuf_text(&o->inner, 2, value);
	protobuf_message(out, field, &o->inner);
}

static void put_root(struct orc *o, struct buf *out)
{
	protobuf_uint(&o->word, 1, KIND_STRUCT);
	for (size_t i = 0; i < o->nr_columns; i++)
		buf_add_varint(&o->inner, i + 1);
	protobuf_message(&o->word, 2, &o->inner);
	for (size_t i = 0; i < o->nr_columns; i++)
		protobuf_text(&o->word, 3, o->job->table->field[i].name);
	protobuf_message(out, 4, &o->word);
}

static void put_type(struct orc *o, struct buf *out, const struct field *f)
{
	static const uint8_t kind[] = {[FIELD_TIME] = KIND_INSTANT,
		[FIELD_INT] = KIND_LONG,
		[FIELD_REAL] = KIND_DOUBLE,
		[FIELD_TEXT] = KIND_STRING,
		[FIELD_FLAG] = KIND_BOOLEAN};
	char unit[EXPORT_TEXT], scale[EXPORT_TEXT + 1];

	protobuf_uint(&o->word, 1, kind[f->type]);
	put_pair(o, &o->word, 7, "unit", field_unit(f, unit));
	put_pair(o, &o->word, 7, "kind", f->is_metric ? kind_name(f->kind) : NULL);
	scale[f->scale == 1 ? 0 : format_real(scale, f->scale)] = 0;
	put_pair(o, &o->word, 7, "scale", scale);
	put_pair(o, &o->word, 7, "resample", f->resample);
	put_pair(o, &o->word, 7, "help", f->help);
	protobuf_message(out, 4, &o->word);
}

static void put_footer(struct orc *o, struct buf *out, uint64_t content)
{
	const struct data_table *f = o->job->table;

	protobuf_uint(out, 1, 3); /* of the header */
	protobuf_uint(out, 2, content - 3);
	buf_add(out, o->stripes.data, o->stripes.len);
	put_root(o, out);
	for (size_t i = 0; i < o->nr_columns; i++)
		put_type(o, out, &f->field[i]);
	put_pair(o, out, 5, "tacho.version", TACHO_VERSION);
	put_pair(o, out, 5, "tacho.frame", f->name);
	put_pair(o, out, 5, "tacho.help", f->help);
	put_pair(o, out, 5, "tacho.summary", o->job->summary_json);
	protobuf_uint(out, 6, o->nr_rows);
	put_statistics(o, out, 7, o->nr_rows, true);
	protobuf_uint(out, 8, 0); /* no index of rows */
	protobuf_uint(out, 11, CALENDAR_GREGORIAN);
	protobuf_text(out, 12, "tacho " TACHO_VERSION);
}

static int write_postscript(struct orc *o, uint64_t footer, uint64_t metadata)
{
	struct buf *out = &o->word;

	protobuf_uint(out, 1, footer);
	protobuf_uint(out, 2, o->press.kind);
	protobuf_uint(out, 3, ORC_BLOCK);
	protobuf_bytes(out, 4, (const uint8_t[]){0, 12}, 2); /* version 0.12, the current one */
	protobuf_uint(out, 5, metadata);
	protobuf_uint(out, 6, WRITER_VERSION);
	protobuf_text(out, 8000, "ORC");
	buf_addch(out, (int)out->len);
	return out->err ? out->err : outlet_add(o->job->out, out->data, out->len);
}

static int orc_close(void *e)
{
	struct orc *o = e;
	struct buf footer;
	uint64_t metadata_len = 0, footer_len = 0;
	int r = o->stripe_rows ? end_stripe(o) : 0;

	buf_init(&footer, INT32_MAX);
	put_footer(o, &footer, outlet_at(o->job->out));
	if (r >= 0)
		r = write_message(o, &o->stripe_statistics, &metadata_len);
	if (r >= 0)
		r = write_message(o, &footer, &footer_len);
	buf_reset(&o->word);
	if (r >= 0)
		r = write_postscript(o, footer_len, metadata_len);
	buf_release(&footer);
	orc_drop(o);
	return r;
}

const struct exporter exporter_orc = {
	.name = "orc",
	.suffix = ".orc",
	.help = "Apache ORC: typed, compressed columns with statistics",
#ifdef HAVE_ZLIB
	.compressions = "zstd,zlib,none",
#else
	.compressions = "zstd,none",
#endif
	.shape = EXPORT_FILE_EACH,
	.streams = true,
	.wants_summary = true,
	.open = orc_open,
	.add = orc_add,
	.close = orc_close,
	.drop = orc_drop,
};
