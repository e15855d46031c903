/* One column of an ORC stripe and its statistics: see orc_column.h. */
#include "export/orc_column.h"

#include "export/protobuf.h"

#include <endian.h>
#include <string.h>

#define ORC_EPOCH INT64_C(1420070400) /* 1 January 2015, from which times count */
#define BOUND_MOST 256		      /* longest text, in bytes, that goes into the statistics */
#define STRIPE_BITS ((STRIPE_ROWS + DATA_TABLE_ROWS_MOST) / 8 + 1)

int orc_column_init(struct orc_column *c, enum field_type type)
{
	*c = (struct orc_column){.type = type};
	orc_stream_init(&c->present);
	orc_stream_init(&c->data);
	orc_stream_init(&c->second);
	orc_stream_init(&c->dictionary);
	c->bits = calloc(1, STRIPE_BITS);
	if (type == FIELD_FLAG)
		c->flags = calloc(1, STRIPE_BITS);
	return c->bits && (c->flags || type != FIELD_FLAG) ? 0 : -ENOMEM;
}

void orc_column_release(struct orc_column *c)
{
	orc_stream_release(&c->present);
	orc_stream_release(&c->data);
	orc_stream_release(&c->second);
	orc_stream_release(&c->dictionary);
	text_numbers_release(&c->texts);
	free(c->bits);
	free(c->flags);
}

void orc_column_clear(struct orc_column *c)
{
	orc_stream_clear(&c->present);
	orc_stream_clear(&c->data);
	orc_stream_clear(&c->second);
	orc_stream_clear(&c->dictionary);
	text_numbers_clear(&c->texts);
	memset(c->bits, 0, STRIPE_BITS);
	if (c->flags)
		memset(c->flags, 0, STRIPE_BITS);
	c->stripe = (struct orc_statistics){0};
}

size_t orc_column_waiting(const struct orc_column *c)
{
	return c->data.done.len + c->second.done.len;
}

/* ---- statistics ---- */

static void note_integer(struct orc_statistics *s, int64_t v)
{
	s->min = s->nr ? MIN(s->min, v) : v;
	s->max = s->nr ? MAX(s->max, v) : v;
	s->overflown |= __builtin_add_overflow(s->sum, v, &s->sum);
	s->nr++;
}

static void note_real(struct orc_statistics *s, double v)
{
	s->unordered |= v != v;
	s->real_min = s->nr ? MIN(s->real_min, v) : v;
	s->real_max = s->nr ? MAX(s->real_max, v) : v;
	s->real_sum += v;
	s->nr++;
}

static int text_compare(const struct texts *t, int64_t a, int64_t b)
{
	int order = memcmp(t->text[a], t->text[b], MIN(t->len[a], t->len[b]));

	return order ? order : (t->len[a] > t->len[b]) - (t->len[a] < t->len[b]);
}

static void note_texts(struct orc_column *c, const struct texts *t)
{
	struct orc_statistics *s = &c->stripe;

	for (uint32_t i = 0; i < c->texts.nr; i++) {
		int64_t text = c->texts.text[i];

		s->min = i && text_compare(t, text, s->min) >= 0 ? s->min : text;
		s->max = i && text_compare(t, text, s->max) <= 0 ? s->max : text;
	}
}

static void merge(struct orc_statistics *all, const struct orc_statistics *s, enum field_type type,
	const struct texts *t)
{
	bool first = !all->nr, text = type == FIELD_TEXT;

	all->missing |= s->missing;
	if (!s->nr)
		return;
	if (first || (text ? text_compare(t, s->min, all->min) < 0 : s->min < all->min))
		all->min = s->min;
	if (first || (text ? text_compare(t, s->max, all->max) > 0 : s->max > all->max))
		all->max = s->max;
	if (first || s->real_min < all->real_min)
		all->real_min = s->real_min;
	if (first || s->real_max > all->real_max)
		all->real_max = s->real_max;
	all->nr += s->nr;
	all->unordered |= s->unordered;
	all->overflown |= s->overflown || __builtin_add_overflow(all->sum, s->sum, &all->sum);
	all->real_sum += s->real_sum;
}

static int64_t floor_ms(int64_t ns)
{
	return ns / NSEC_PER_MSEC - (ns % NSEC_PER_MSEC < 0);
}

static void put_bounds(
	struct buf *out, const struct orc_statistics *s, enum field_type type, const struct texts *texts)
{
	if (type == FIELD_TEXT) {
		if (texts->len[s->min] <= BOUND_MOST && texts->len[s->max] <= BOUND_MOST) {
			protobuf_bytes(out, 1, texts->text[s->min], texts->len[s->min]);
			protobuf_bytes(out, 2, texts->text[s->max], texts->len[s->max]);
		}
		protobuf_sint(out, 3, s->sum);
	} else if (type == FIELD_REAL) {
		protobuf_double(out, 1, s->real_min);
		protobuf_double(out, 2, s->real_max);
		protobuf_double(out, 3, s->real_sum);
	} else if (type == FIELD_TIME) { /* in ms: readers take the last to reach to its end */
		protobuf_sint(out, 3, floor_ms(s->min));
		protobuf_sint(out, 4, floor_ms(s->max));
	} else if (type == FIELD_FLAG) {
		struct buf packed;

		buf_init(&packed, 16);
		buf_add_varint(&packed, (uint64_t)s->sum);
		protobuf_message(out, 1, &packed);
		buf_release(&packed);
	} else {
		protobuf_sint(out, 1, s->min);
		protobuf_sint(out, 2, s->max);
		if (!s->overflown)
			protobuf_sint(out, 3, s->sum);
	}
}

void orc_statistics_put(
	struct buf *out, const struct orc_statistics *s, enum field_type type, const struct texts *texts)
{
	static const uint8_t number[] = {
		[FIELD_INT] = 2, [FIELD_REAL] = 3, [FIELD_TEXT] = 4, [FIELD_FLAG] = 5, [FIELD_TIME] = 9};
	struct buf bounds;

	protobuf_uint(out, 1, s->nr);
	if (s->nr && !s->unordered) {
		buf_init(&bounds, INT32_MAX);
		put_bounds(&bounds, s, type, texts);
		protobuf_message(out, number[type], &bounds);
		buf_release(&bounds);
	}
	protobuf_uint(out, 10, s->missing);
}

/* ---- values ---- */

/* Seconds, and behind them the part of one without the zeros at its end: how many were left out is in the
 * low three bits. Before 1970 the format counts as Java did: towards zero when there is more than a
 * millisecond. */
static void split_time(int64_t ns, int64_t *ret_second, int64_t *ret_part)
{
	int64_t part = ns % NSEC_PER_SEC, second = ns / NSEC_PER_SEC, zeros = 0;

	if (part < 0) {
		part += NSEC_PER_SEC;
		second--;
	}
	if (second < 0 && part >= NSEC_PER_MSEC)
		second++;
	*ret_second = second - ORC_EPOCH;
	if (part && part % 100 == 0) {
		for (part /= 100, zeros = 1; part % 10 == 0 && zeros < 7; zeros++)
			part /= 10;
	}
	*ret_part = part << 3 | zeros;
}

static int add_times(struct orc_column *c, struct orc_press *p, struct orc_scratch *x, uint32_t nr)
{
	int r;

	for (uint32_t i = 0; i < nr; i++) {
		note_integer(&c->stripe, x->integer[i]);
		split_time(x->integer[i], &x->integer[i], &x->second[i]);
	}
	r = orc_integers(&c->data, p, x->integer, nr, true);
	return r < 0 ? r : orc_integers(&c->second, p, x->second, nr, false);
}

static int add_texts(struct orc_column *c, struct orc_press *p, struct orc_scratch *x, uint32_t nr,
	const struct texts *texts)
{
	int r = text_numbers_map(&c->texts, x->text, nr, texts->nr, x->number);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < nr; i++) {
		x->integer[i] = x->number[i];
		c->stripe.sum += texts->len[x->text[i]];
	}
	c->stripe.nr += nr;
	return orc_integers(&c->data, p, x->integer, nr, false);
}

static void add_flags(struct orc_column *c, const struct orc_scratch *x, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t at = c->stripe.nr;

		if (x->integer[i])
			c->flags[at >> 3] |= (uint8_t)(0x80 >> (at & 7));
		note_integer(&c->stripe, x->integer[i]);
	}
}

static int add_reals(struct orc_column *c, struct orc_press *p, struct orc_scratch *x, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		note_real(&c->stripe, x->real[i]);
		x->integer[i] = (int64_t)htole64((uint64_t)x->integer[i]);
	}
	return orc_stream_add(&c->data, p, x->integer, nr * sizeof(x->integer[0]));
}

/* Values that are there move together; rows that have one are marked. Returns how many. */
static uint32_t gather(struct orc_column *c, struct orc_scratch *x, const struct field_cells *cells,
	uint32_t nr_rows, uint32_t at)
{
	uint32_t nr = 0;

	for (uint32_t row = 0; row < nr_rows; row++) {
		if (!cell_valid(cells, row)) {
			c->stripe.missing = true;
			continue;
		}
		c->bits[(at + row) >> 3] |= (uint8_t)(0x80 >> ((at + row) & 7));
		if (c->type == FIELD_TEXT)
			x->text[nr] = cells->text[row];
		else if (c->type == FIELD_FLAG)
			x->integer[nr] = cells->flag[row] != 0;
		else if (c->type == FIELD_REAL)
			x->real[nr] = cells->real[row];
		else
			x->integer[nr] = cells->integer[row];
		nr++;
	}
	return nr;
}

int orc_column_add(struct orc_column *c, struct orc_press *p, struct orc_scratch *x,
	const struct field_cells *cells, uint32_t nr_rows, uint32_t at, const struct texts *texts)
{
	uint32_t nr = gather(c, x, cells, nr_rows, at);

	switch (c->type) {
	case FIELD_TIME:
		return add_times(c, p, x, nr);
	case FIELD_REAL:
		return add_reals(c, p, x, nr);
	case FIELD_TEXT:
		return add_texts(c, p, x, nr, texts);
	case FIELD_FLAG:
		add_flags(c, x, nr);
		return 0;
	case FIELD_INT:
		break;
	}
	for (uint32_t i = 0; i < nr; i++)
		note_integer(&c->stripe, x->integer[i]);
	return orc_integers(&c->data, p, x->integer, nr, true);
}

static int put_dictionary(struct orc_column *c, struct orc_press *p, const struct texts *texts)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < c->texts.nr;) {
		int64_t len[256];
		size_t nr = 0;

		for (; r >= 0 && nr < ARRAY_SIZE(len) && i < c->texts.nr; i++) {
			uint32_t text = c->texts.text[i];

			len[nr++] = texts->len[text];
			r = orc_stream_add(&c->dictionary, p, texts->text[text], texts->len[text]);
		}
		if (r >= 0)
			r = orc_integers(&c->second, p, len, nr, false);
	}
	return r;
}

int orc_column_end(struct orc_column *c, struct orc_press *p, uint32_t nr_rows, const struct texts *texts)
{
	struct orc_stream *const all[] = {&c->present, &c->data, &c->second, &c->dictionary};
	int r = 0;

	if (c->stripe.missing)
		r = orc_bits(&c->present, p, c->bits, (nr_rows + 7) / 8);
	if (r >= 0 && c->type == FIELD_FLAG)
		r = orc_bits(&c->data, p, c->flags, (size_t)(c->stripe.nr + 7) / 8);
	if (r >= 0 && c->type == FIELD_TEXT) {
		note_texts(c, texts);
		r = put_dictionary(c, p, texts);
	}
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(all); i++)
		r = orc_stream_end(all[i], p);
	merge(&c->file, &c->stripe, c->type, texts);
	return r;
}
