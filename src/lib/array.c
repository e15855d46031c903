/* A batch as an ArrowArray: its columns in one piece of memory, the same bytes as in the body of a message.
 *
 * The piece is counted: a consumer may take columns out of the batch and release them one by one, so each
 * column has a reference to it, and the last one frees it. */
#include "lib/internal.h"

#include <endian.h>
#include <string.h>

struct piece {
	int users;
	uint8_t *bytes; /* on a multiple of ARROW_ALIGN */
};

struct array_column { /* what private_data of an array is */
	struct piece *piece;
	const void *buffer[3];
	struct ArrowArray dictionary;
	struct ArrowArray **children; /* of the whole */
};

static void piece_drop(struct piece *p)
{
	if (__atomic_sub_fetch(&p->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	free(p->bytes);
	free(p);
}

static void array_release(struct ArrowArray *a)
{
	struct array_column *c = a->private_data;

	for (int64_t i = 0; i < a->n_children; i++) {
		if (a->children[i]->release)
			a->children[i]->release(a->children[i]);
		free(a->children[i]);
	}
	if (a->dictionary && a->dictionary->release)
		a->dictionary->release(a->dictionary);
	free(c->children);
	piece_drop(c->piece);
	free(c);
	a->release = NULL;
}

static int array_init(struct ArrowArray *a, struct piece *piece)
{
	struct array_column *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	__atomic_fetch_add(&piece->users, 1, __ATOMIC_RELAXED);
	c->piece = piece;
	*a = (struct ArrowArray){.buffers = c->buffer, .release = array_release, .private_data = c};
	return 0;
}

/* Reads back what was put into a body, in its order. */
struct array_cursor {
	const struct arrow_node *node;
	const struct arrow_buffer *buffer;
	uint8_t *bytes;
};

/* An empty bitmap is a NULL pointer; the other buffers are never NULL. */
static void take_buffers(struct ArrowArray *a, struct array_cursor *at, int64_t nr)
{
	struct array_column *c = a->private_data;

	a->length = (int64_t)le64toh((uint64_t)at->node->nr_rows);
	a->null_count = (int64_t)le64toh((uint64_t)at->node->nr_missing);
	a->n_buffers = nr;
	for (int64_t i = 0; i < nr; i++, at->buffer++)
		c->buffer[i] = i || at->buffer->len ? at->bytes + le64toh((uint64_t)at->buffer->at) : NULL;
	at->node++;
}

static int take_column(
	struct ArrowArray *a, struct piece *piece, struct array_cursor *at, enum field_type type)
{
	struct array_column *c;
	int r = array_init(a, piece);

	if (r < 0)
		return r;
	c = a->private_data;
	take_buffers(a, at, 2);
	if (type != FIELD_TEXT)
		return 0;
	r = array_init(&c->dictionary, piece);
	if (r < 0)
		return r;
	a->dictionary = &c->dictionary;
	take_buffers(&c->dictionary, at, 3);
	return 0;
}

static int fill_body(const struct tables *tables, const struct data_table *f,
	const struct data_table_batch *batch, struct lib_texts *texts, struct arrow_body *body)
{
	arrow_body_reset(body);
	for (size_t i = 0; i < f->nr_fields; i++) {
		struct lib_texts *t = &texts[i];
		struct texts all;
		int r;

		if (f->field[i].type != FIELD_TEXT) {
			arrow_body_column(body, f->field[i].type, &batch->cell[i], batch->nr_rows, NULL);
			continue;
		}
		all = tables_texts(tables, batch->table, i);
		r = arrow_indices_own(&t->own, &batch->cell[i], batch->nr_rows, all.nr, t->index);
		if (r < 0)
			return r;
		arrow_body_column(body, FIELD_TEXT, &batch->cell[i], batch->nr_rows, t->index);
		arrow_body_texts(body, &all, t->own.text, t->own.nr);
	}
	return arrow_body_error(body);
}

static struct piece *piece_of(const struct arrow_body *body)
{
	struct piece *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->users = 1;
	p->bytes = aligned_alloc(ARROW_ALIGN, MAX(body->bytes.len, (size_t)ARROW_ALIGN));
	if (!p->bytes) {
		free(p);
		return NULL;
	}
	memcpy(p->bytes, body->bytes.data, body->bytes.len);
	return p;
}

static int take_columns(
	struct ArrowArray *a, struct piece *piece, const struct data_table *f, struct array_cursor *at)
{
	struct array_column *c = a->private_data;
	int r = 0;

	a->n_buffers = 1;
	a->children = c->children = calloc(MAX(f->nr_fields, (size_t)1), sizeof(struct ArrowArray *));
	if (!c->children)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < f->nr_fields; i++) {
		c->children[i] = calloc(1, sizeof(struct ArrowArray));
		if (!c->children[i])
			return -ENOMEM;
		a->n_children++;
		r = take_column(c->children[i], piece, at, f->field[i].type);
	}
	return r;
}

int lib_array(const struct tables *tables, const struct data_table *table,
	const struct data_table_batch *batch, struct lib_texts *texts, struct arrow_body *body,
	struct ArrowArray *ret)
{
	int r = fill_body(tables, table, batch, texts, body);
	struct piece *piece = r >= 0 ? piece_of(body) : NULL;
	struct ArrowArray a;

	if (!piece)
		return r < 0 ? r : -ENOMEM;
	r = array_init(&a, piece);
	if (r >= 0) {
		struct array_cursor at = {.node = (const void *)body->node.data,
			.buffer = (const void *)body->buffer.data,
			.bytes = piece->bytes};

		a.length = batch->nr_rows;
		r = take_columns(&a, piece, table, &at);
		if (r < 0)
			array_release(&a);
		else
			*ret = a;
	}
	piece_drop(piece);
	return r;
}
