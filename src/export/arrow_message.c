/* Messages of Arrow's IPC: see arrow_message.h. */
#include "export/arrow_message.h"

#include <endian.h>
#include <string.h>

enum { METADATA_V5 = 4 };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { TYPE_INT = 2, TYPE_FLOAT = 3, TYPE_UTF8 = 5, TYPE_BOOL = 6, TYPE_TIMESTAMP = 10 };
enum { PRECISION_DOUBLE = 2, UNIT_NANOSECONDS = 3, CODEC_ZSTD = 1 };

static uint32_t put_pairs(struct flat *f, const struct arrow_pairs *p)
{
	uint32_t pair[ARRAY_SIZE(p->pair)];

	if (!p->nr)
		return 0;
	for (size_t i = 0; i < p->nr; i++) {
		uint32_t key = flat_text(f, p->pair[i].key), value = flat_text(f, p->pair[i].value);

		flat_begin(f);
		flat_refer(f, 0, key);
		flat_refer(f, 1, value);
		pair[i] = flat_end(f);
	}
	return flat_vector(f, pair, p->nr);
}

static uint32_t put_int(struct flat *f, int bits)
{
	flat_begin(f);
	flat_number(f, 0, bits, 4);
	flat_number(f, 1, true, 1);
	return flat_end(f);
}

static uint32_t put_type(struct flat *f, enum field_type type, uint8_t *ret_type)
{
	uint32_t zone = type == FIELD_TIME ? flat_text(f, "UTC") : 0;

	/* clang-format off */
	static const uint8_t arrow[] = {[FIELD_TIME] = TYPE_TIMESTAMP, [FIELD_INT] = TYPE_INT, [FIELD_REAL] = TYPE_FLOAT,
		[FIELD_TEXT] = TYPE_UTF8, [FIELD_FLAG] = TYPE_BOOL};
	/* clang-format on */
	*ret_type = arrow[type];
	if (type == FIELD_INT)
		return put_int(f, 64);
	flat_begin(f);
	if (type == FIELD_TIME)
		flat_number(f, 0, UNIT_NANOSECONDS, 2);
	flat_refer(f, 1, zone);
	if (type == FIELD_REAL)
		flat_number(f, 0, PRECISION_DOUBLE, 2);
	return flat_end(f);
}

static uint32_t put_dictionary(struct flat *f, size_t id)
{
	uint32_t type = put_int(f, 32);

	flat_begin(f);
	flat_number(f, 0, (int64_t)id, 8);
	flat_refer(f, 1, type);
	return flat_end(f);
}

static uint32_t put_field(struct flat *f, const struct field *field, size_t id)
{
	struct arrow_pairs about;
	uint32_t pairs, children, dictionary, type, name;
	uint8_t type_type;

	arrow_field_pairs(&about, field);
	pairs = put_pairs(f, &about);
	children = flat_vector(f, NULL, 0); /* some readers insist on it */
	dictionary = field->type == FIELD_TEXT ? put_dictionary(f, id) : 0;
	type = put_type(f, field->type, &type_type);
	name = flat_text(f, field->name);
	flat_begin(f);
	flat_refer(f, 0, name);
	flat_number(f, 1, true, 1); /* may be missing */
	flat_number(f, 2, type_type, 1);
	flat_refer(f, 3, type);
	flat_refer(f, 4, dictionary);
	flat_refer(f, 5, children);
	flat_refer(f, 6, pairs);
	return flat_end(f);
}

static uint32_t put_schema(struct flat *f, const struct data_table *table)
{
	uint32_t *field = calloc(MAX(table->nr_fields, (size_t)1), sizeof(*field));
	uint32_t pairs, fields;
	struct arrow_pairs about;

	if (!field) {
		f->err = -ENOMEM;
		return 0;
	}
	for (size_t i = 0; i < table->nr_fields; i++)
		field[i] = put_field(f, &table->field[i], i);
	fields = flat_vector(f, field, table->nr_fields);
	free(field);
	arrow_table_pairs(&about, table);
	pairs = put_pairs(f, &about);
	flat_begin(f);
	flat_number(f, 0, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, 2);
	flat_refer(f, 1, fields);
	flat_refer(f, 2, pairs);
	return flat_end(f);
}

static int put_message(struct flat *f, uint8_t type, uint32_t header, size_t body_len)
{
	flat_begin(f);
	flat_number(f, 3, (int64_t)body_len, 8);
	flat_refer(f, 2, header);
	flat_number(f, 0, METADATA_V5, 2);
	flat_number(f, 1, type, 1);
	return flat_finish(f, flat_end(f));
}

int arrow_schema_message(struct flat *flat, const struct data_table *table)
{
	flat_reset(flat);
	return put_message(flat, HEADER_SCHEMA, put_schema(flat, table), 0);
}

static uint32_t put_batch(struct flat *f, const struct arrow_body *b, uint32_t nr_rows)
{
	uint32_t buffers, nodes, compression = 0;

	buffers = flat_structs(f, b->buffer.data, b->buffer.len / sizeof(struct arrow_buffer),
		sizeof(struct arrow_buffer), 8);
	nodes = flat_structs(
		f, b->node.data, b->node.len / sizeof(struct arrow_node), sizeof(struct arrow_node), 8);
	if (b->zstd) {
		flat_begin(f);
		flat_number(f, 0, CODEC_ZSTD, 1);
		compression = flat_end(f);
	}
	flat_begin(f);
	flat_number(f, 0, nr_rows, 8);
	flat_refer(f, 1, nodes);
	flat_refer(f, 2, buffers);
	flat_refer(f, 3, compression);
	return flat_end(f);
}

int arrow_batch_message(struct flat *flat, const struct arrow_body *body, uint32_t nr_rows)
{
	flat_reset(flat);
	return put_message(flat, HEADER_BATCH, put_batch(flat, body, nr_rows), body->bytes.len);
}

int arrow_dictionary_message(struct flat *flat, const struct arrow_body *body, size_t id, uint32_t nr_texts)
{
	uint32_t batch;

	flat_reset(flat);
	batch = put_batch(flat, body, nr_texts);
	flat_begin(flat);
	flat_number(flat, 0, (int64_t)id, 8);
	flat_refer(flat, 1, batch);
	return put_message(flat, HEADER_DICTIONARY, flat_end(flat), body->bytes.len);
}

int arrow_footer(struct flat *flat, const struct data_table *table, const struct buf *dictionaries,
	const struct buf *batches)
{
	uint32_t schema, batch, dictionary;

	flat_reset(flat);
	batch = flat_structs(flat, batches->data, batches->len / sizeof(struct arrow_block),
		sizeof(struct arrow_block), 8);
	dictionary = flat_structs(flat, dictionaries->data, dictionaries->len / sizeof(struct arrow_block),
		sizeof(struct arrow_block), 8);
	schema = put_schema(flat, table);
	flat_begin(flat);
	flat_number(flat, 0, METADATA_V5, 2);
	flat_refer(flat, 1, schema);
	flat_refer(flat, 2, dictionary);
	flat_refer(flat, 3, batch);
	return flat_finish(flat, flat_end(flat));
}
