/* Lines and batches: columns of values with bits that say which are there.
 *
 * A tick may have more lines than a batch takes, so full batches queue up until they are asked for; a tick's
 * worth at most. Batches that were given out are filled again. */
#include "query/tables_internal.h"

#include "base/owned.h"
#include "query/phases.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <string.h>

size_t field_size(enum field_type type)
{
	return type == FIELD_TEXT ? sizeof(uint32_t) : type == FIELD_FLAG ? 1 : sizeof(int64_t);
}

/* ---- bits ---- */

static uint64_t load(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return le64toh(word);
}

static void store(uint8_t *p, uint64_t word)
{
	word = htole64(word);
	memcpy(p, &word, sizeof(word));
}

#define BITS_AT_ONCE 56u /* behind up to seven others they fit into a word */

/* Puts bits behind the first `at`. */
static void bits_append(uint8_t *to, uint32_t at, const uint8_t *bits, uint32_t from, uint32_t n)
{
	while (n) {
		uint32_t take = MIN(n, BITS_AT_ONCE);
		uint64_t word = load(bits + from / 8) >> (from % 8) & (UINT64_MAX >> (64 - take));
		uint64_t kept = load(to + at / 8) & ((UINT64_C(1) << (at % 8)) - 1);

		store(to + at / 8, kept | word << (at % 8));
		at += take;
		from += take;
		n -= take;
	}
}

static uint32_t bits_count(const uint8_t *bits, uint32_t n)
{
	uint32_t ones = 0, at = 0;

	for (; at + 64 <= n; at += 64)
		ones += (uint32_t)__builtin_popcountll(load(bits + at / 8));
	if (at < n)
		ones += (uint32_t)__builtin_popcountll(load(bits + at / 8) & (UINT64_MAX >> (64 - (n - at))));
	return ones;
}

static void bits_fill(uint8_t *to, uint32_t at, uint32_t n, bool set)
{
	for (; n && at % 8; n--)
		bit_put(to, at++, set);
	if (!n)
		return;
	memset(to + at / 8, set ? 255 : 0, (n + 7) / 8);
	if (n % 8) /* what is behind them is not set */
		to[(at + n) / 8] &= (uint8_t)((1u << n % 8) - 1);
}

/* ---- lines ---- */

int data_table_lines_reserve(const struct data_table_own *fr, struct data_table_lines *l, uint32_t nr)
{
	if (!l->col) {
		l->col = calloc(MAX(fr->nr, 1u), sizeof(*l->col));
		if (!l->col)
			return -ENOMEM;
	}
	if (nr <= l->cap)
		return 0;
	nr = MAX(nr, l->cap + l->cap / 2);
	for (size_t i = KEY_INSTANCE; i < fr->nr; i++) {
		struct vector *v = &l->col[i];
		void *any = reallocarray(v->any, nr, field_size(fr->field[i].type));

		v->size = (uint32_t)field_size(fr->field[i].type);
		if (!any)
			return -ENOMEM;
		v->any = any;
		if (ARRAY_RESIZE(v->known, BITS_SIZE(nr)) < 0)
			return -ENOMEM;
		memset(v->known + (l->cap ? BITS_SIZE(l->cap) : 0), 0,
			BITS_SIZE(nr) - (l->cap ? BITS_SIZE(l->cap) : 0));
		memset((uint8_t *)any + l->cap * field_size(fr->field[i].type), 0,
			(nr - l->cap) * field_size(fr->field[i].type));
	}
	l->cap = nr;
	return 0;
}

void data_table_lines_release(const struct data_table_own *fr, struct data_table_lines *l)
{
	for (size_t i = 0; l->col && i < fr->nr; i++) {
		free(l->col[i].any);
		free(l->col[i].known);
	}
	free(l->col);
	*l = (struct data_table_lines){0};
}

/* ---- batches ---- */

static size_t aligned(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

/* One piece of memory for all columns: pages that are not written cost nothing. */
static struct batch *batch_new(const struct data_table_own *fr)
{
	size_t head = aligned(sizeof(struct batch)) + aligned(fr->nr * sizeof(struct vector)) +
		aligned(fr->nr * sizeof(struct field_cells)) + aligned(fr->nr * sizeof(struct texts));
	size_t size = head + aligned(DATA_TABLE_ROWS_MOST * sizeof(uint32_t));
	struct batch *b;
	uint8_t *at;

	for (size_t i = 0; i < fr->nr; i++)
		size += aligned(DATA_TABLE_ROWS_MOST * field_size(fr->field[i].type)) +
			aligned(BITS_SIZE(DATA_TABLE_ROWS_MOST));
	at = calloc(1, size);
	if (!at)
		return NULL;
	b = (struct batch *)at;
	at += aligned(sizeof(*b));
	b->table = fr->index;
	b->col = (struct vector *)at;
	at += aligned(fr->nr * sizeof(struct vector));
	b->cell = (struct field_cells *)at;
	at += aligned(fr->nr * sizeof(struct field_cells));
	b->texts = (struct texts *)at;
	at += aligned(fr->nr * sizeof(struct texts));
	b->recording = (uint32_t *)at;
	at += aligned(DATA_TABLE_ROWS_MOST * sizeof(uint32_t));
	for (size_t i = 0; i < fr->nr; i++) {
		b->col[i].any = at;
		b->col[i].size = (uint32_t)field_size(fr->field[i].type);
		at += aligned(DATA_TABLE_ROWS_MOST * field_size(fr->field[i].type));
		b->col[i].known = at;
		at += aligned(BITS_SIZE(DATA_TABLE_ROWS_MOST));
	}
	return b;
}

void batches_free(struct batch *b)
{
	while (b) {
		struct batch *next = b->next;

		free(b);
		b = next;
	}
}

static struct batch *batch_of(struct data_table_own *fr)
{
	struct batch *b;

	if (fr->filling)
		return fr->filling;
	b = fr->filling = batches_reuse(fr);
	if (!b)
		b = fr->filling = batch_new(fr);
	if (b) {
		b->next = NULL;
		b->nr = 0;
	}
	return b;
}

/* A line's value, so many times. */
static void splat(struct vector *to, uint32_t at, const struct vector *v, uint32_t line, uint32_t n)
{
	if (n == 1 && v->size == sizeof(int64_t)) { /* as most are: it changes at every tick */
		to->integer[at] = v->integer[line];
		bit_put(to->known, at, bit_get(v->known, line));
		return;
	}
	if (v->size == sizeof(int64_t))
		for (uint32_t i = at; i < at + n; i++)
			to->integer[i] = v->integer[line];
	else if (v->size == sizeof(uint32_t))
		for (uint32_t i = at; i < at + n; i++)
			to->text[i] = v->text[line];
	else
		memset(to->flag + at, v->flag[line], n);
	bits_fill(to->known, at, n, bit_get(v->known, line));
}

static void vector_copy(struct vector *to, uint32_t at, const struct vector *from, uint32_t first, uint32_t n)
{
	if (!n)
		return;
	memcpy((uint8_t *)to->any + (size_t)at * to->size, (uint8_t *)from->any + (size_t)first * to->size,
		(size_t)n * to->size);
	bits_append(to->known, at, from->known, first, n);
}

static bool is_same(const struct vector *a, uint32_t i, const struct vector *b, uint32_t k)
{
	bool known = bit_get(a->known, i);

	if (known != bit_get(b->known, k) || !known)
		return known == bit_get(b->known, k);
	return a->size == sizeof(int64_t)     ? a->integer[i] == b->integer[k]
		: a->size == sizeof(uint32_t) ? a->text[i] == b->text[k]
					      : a->flag[i] == b->flag[k];
}

/* All rows so far, and those of the present lines, have one value. */
static bool stays_same(const struct vector *v, uint32_t nr, const struct vector *to)
{
	if (v->filled != v->same || !nr)
		return false;
	for (uint32_t line = v->filled ? 0 : 1; line < nr; line++)
		if (!is_same(v, line, v->filled ? to : v, 0))
			return false;
	return true;
}

/* The rows that have the first one's value get it. */
static void same_spread(struct vector *v, struct vector *to)
{
	if (v->same > 1)
		splat(to, 1, to, 0, v->same - 1);
	v->same = 0;
}

void column_fill(struct data_table_own *fr, size_t field)
{
	struct vector *v = &fr->now.col[field], *to = &fr->filling->col[field];
	uint32_t nr = fr->now.nr, at = v->filled, rest = fr->pushed - at, line, n;

	if (stays_same(v, nr, to)) {
		if (!at)
			splat(to, 0, v, 0, 1);
		v->filled = v->same = fr->pushed;
		return;
	}
	same_spread(v, to);
	v->filled = fr->pushed;
	if (nr == 1) {
		splat(to, at, v, 0, rest);
		return;
	}
	if (!nr)
		return;
	line = (at - fr->base_row + fr->base_line) % nr;
	n = MIN(nr - line, rest);
	vector_copy(to, at, v, line, n);
	at += n;
	rest -= n;
	n = MIN(nr, rest);
	vector_copy(to, at, v, 0, n);
	/* The ticks behind it are the same again: what is there is copied on, twice as much each time. */
	for (uint32_t done = n; done < rest; done += n) {
		n = MIN(done, rest - done);
		vector_copy(to, at + done, to, at, n);
	}
}

void lines_settle(struct data_table_own *fr)
{
	for (size_t i = KEY_INSTANCE; i < fr->nr && fr->pushed; i++)
		now_column(fr, i);
	fr->base_row = fr->pushed;
	fr->base_line = 0;
}

/* A column of a batch that is full. `v`: the present values that it was filled from; NULL: from others. */
static void cells_give(struct field_cells *cell, struct vector *v, struct vector *col, uint32_t nr, bool same)
{
	static const uint8_t none[BITS_SIZE(DATA_TABLE_ROWS_MOST)];
	uint32_t nr_known;

	*cell = (struct field_cells){.integer = col->integer, .same = same && v && v->same};
	if (v && !cell->same)
		same_spread(v, col);
	if (v)
		v->filled = v->same = 0;
	nr_known = !cell->same ? bits_count(col->known, nr) : bit_get(col->known, 0) ? nr : 0;
	cell->nr_missing = nr - nr_known;
	cell->valid = nr_known == nr ? NULL : nr_known ? col->known : none;
}

void data_table_flush(struct data_table_own *fr)
{
	struct batch *b = fr->filling;

	if (!b || !b->nr)
		return;
	lines_settle(fr);
	for (unsigned key = KEY_ELAPSED; fr->still < 0 && key <= KEY_HOST; key++) /* they are always known */
		bits_fill(b->col[key].known, 0, b->nr, true);
	for (size_t i = 0; i < fr->nr; i++) {
		struct vector *v = fr->pushed && i >= KEY_INSTANCE ? &fr->now.col[i] : NULL;

		cells_give(&b->cell[i], v, &b->col[i], b->nr, fr->of->options.same);
		b->texts[i] = dictionary_texts(fr->own[i].texts);
	}
	fr->pushed = fr->base_row = 0;
	fr->filling = NULL;
	batches_add(fr->made, b);
}

/* ---- a tick at a time ---- */

static void push_same(struct batch *b, const struct data_table_lines *l, uint32_t recording, uint32_t n)
{
	for (uint32_t i = b->nr; i < b->nr + n; i++) {
		b->col[KEY_TIME].integer[i] = l->time_ns;
		b->col[KEY_ELAPSED].real[i] = l->elapsed;
		b->col[KEY_HOST].text[i] = l->host;
		b->recording[i] = recording;
	}
	bits_fill(b->col[KEY_TIME].known, b->nr, n, l->has_time);
}

static void put_since(const struct data_table_own *fr, struct vector *v, const struct data_table_lines *l)
{
	const struct tables_options *o = &fr->of->options;
	double since = phases_since(o->phases, o->phase, l->elapsed);

	for (uint32_t line = 0; line < l->nr; line++)
		vector_put_real(v, line, since);
}

/* The rows of the present tick: their columns are filled when they change. */
int data_table_now_push(struct data_table_own *fr, uint32_t recording)
{
	if (fr->since && fr->now.nr)
		put_since(fr, now_column(fr, fr->since), &fr->now);
	for (uint32_t from = 0, n; from < fr->now.nr; from += n) {
		struct batch *b = batch_of(fr);

		if (!b)
			return -ENOMEM;
		if (!fr->pushed)
			fr->base_line = from;
		n = MIN(fr->now.nr - from, DATA_TABLE_ROWS_MOST - b->nr);
		push_same(b, &fr->now, recording, n);
		fr->pushed = b->nr += n;
		if (b->nr == DATA_TABLE_ROWS_MOST)
			data_table_flush(fr);
	}
	return 0;
}

int data_table_lines_push(struct data_table_own *fr, uint32_t recording, const struct data_table_lines *l)
{
	if (fr->since && l->nr)
		put_since(fr, &l->col[fr->since], l);
	for (uint32_t from = 0, n; from < l->nr; from += n) {
		struct batch *b = batch_of(fr);

		if (!b)
			return -ENOMEM;
		n = MIN(l->nr - from, DATA_TABLE_ROWS_MOST - b->nr);
		push_same(b, l, recording, n);
		for (size_t i = KEY_INSTANCE; i < fr->nr; i++)
			vector_copy(&b->col[i], b->nr, &l->col[i], from, n);
		b->nr += n;
		if (b->nr == DATA_TABLE_ROWS_MOST)
			data_table_flush(fr);
	}
	return 0;
}

/* ---- a row at a time ---- */

int data_table_row(struct data_table_own *fr)
{
	fr->put = 0;
	fr->err = batch_of(fr) ? 0 : -ENOMEM;
	if (fr->filling)
		fr->filling->recording[fr->filling->nr] = 0;
	return fr->err;
}

int data_table_row_end(struct data_table_own *fr)
{
	assert(fr->put == fr->nr);
	if (fr->err >= 0 && ++fr->filling->nr == DATA_TABLE_ROWS_MOST)
		data_table_flush(fr);
	return fr->err;
}

/* The next cell of the row. */
static struct vector *next_cell(struct data_table_own *fr, bool known)
{
	struct vector *v = &fr->filling->col[fr->put];

	if (!known)
		memset((uint8_t *)v->any + fr->filling->nr * v->size, 0, v->size);
	bit_put(v->known, fr->filling->nr, known);
	fr->put++;
	return v;
}

void put_missing(struct data_table_own *fr)
{
	next_cell(fr, false);
}

void put_integer(struct data_table_own *fr, int64_t value)
{
	next_cell(fr, true)->integer[fr->filling->nr] = value;
}

void put_real(struct data_table_own *fr, double value)
{
	if (isfinite(value))
		next_cell(fr, true)->real[fr->filling->nr] = value;
	else
		next_cell(fr, false);
}

void put_number(struct data_table_own *fr, double value)
{
	if (fr->field[fr->put].type == FIELD_REAL)
		put_real(fr, value);
	else if (fabs(value) < 9.2e18) /* not so of NAN */
		put_integer(fr, round_i64(value));
	else
		next_cell(fr, false);
}

void put_flag(struct data_table_own *fr, bool value)
{
	next_cell(fr, true)->flag[fr->filling->nr] = value;
}

static void put_numbered(struct data_table_own *fr, const char *text, size_t n,
	int (*put)(struct dictionary *d, const char *text, size_t n, uint32_t *ret))
{
	uint32_t number = 0;
	int r = text ? put(fr->own[fr->put].texts, text, n, &number) : 0;

	if (r < 0)
		fr->err = r;
	next_cell(fr, text && r >= 0)->text[fr->filling->nr] = number;
}

void put_text(struct data_table_own *fr, const char *text)
{
	put_numbered(fr, text, text ? strlen(text) : 0, dictionary_put_text);
}

void put_bytes(struct data_table_own *fr, const void *bytes, size_t n)
{
	put_numbered(fr, bytes, n, dictionary_put);
}
