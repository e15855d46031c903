/* Encodes and decodes the body of a CELLS record: see cells.h. */
#include "store/cells.h"

#include <assert.h>

static const int64_t zero[METRICS_MAX];

static inline uint64_t difference(int64_t now, int64_t old)
{
	return (uint64_t)now - (uint64_t)old;
}

void cells_add(struct cells *c, const struct table *t, uint32_t row, bool absolute)
{
	size_t at = (size_t)row * t->nr_cols;
	const int64_t *now = t->cell + at, *old = absolute ? zero : t->before + at;
	uint64_t flip = t->valid[row] ^ (absolute ? 0 : t->valid_before[row]), columns = 0;

	assert(c->nr < CELLS_GROUP && row < t->nr_rows && t->id[row] != ROW_FREE);
	for (uint32_t i = 0; i < t->nr_cols; i++)
		columns |= (uint64_t)(now[i] != old[i]) << i;
	if (!(flip | columns))
		return;
	c->row[c->nr] = row;
	c->changed[c->nr] = columns;
	c->flip[c->nr++] = flip;
	c->flips |= flip;
	c->columns |= columns;
}

/* One column of the table, and what it is compared with. */
struct cells_column {
	const int64_t *now, *old;
	size_t stride, old_stride;
	uint32_t number;
};

static inline uint8_t *put_cell(uint8_t *p, const struct cells_column *k, size_t row)
{
	return put_varint(
		p, zigzag((int64_t)difference(k->now[row * k->stride], k->old[row * k->old_stride])));
}

static uint8_t *put_column(uint8_t *p, const struct cells *c, const struct cells_column *k)
{
	uint32_t nr = 0, passed = 0;

	for (uint32_t i = 0; i < c->nr; i++)
		nr += c->changed[i] >> k->number & 1;
	if (nr * 4 >= c->nr) {
		p = put_varint(p, 0);
		for (uint32_t i = 0; i < c->nr; i++)
			p = put_cell(p, k, c->row[i]);
		return p;
	}
	p = put_varint(p, nr);
	for (uint32_t i = 0; i < c->nr; i++) {
		if (!(c->changed[i] >> k->number & 1)) {
			passed++;
			continue;
		}
		p = put_varint(p, passed);
		p = put_cell(p, k, c->row[i]);
		passed = 0;
	}
	return p;
}

size_t cells_encode(struct cells *c, uint32_t set, const struct table *t, bool absolute, uint8_t *out)
{
	uint8_t *p = out;
	int64_t next = 0;

	p = put_varint(p, set);
	p = put_varint(p, c->flips ? CELLS_VALIDITY : 0);
	p = put_varint(p, c->nr);
	for (uint32_t i = 0; i < c->nr; i++) {
		p = put_varint(p, zigzag((int64_t)c->row[i] - next));
		next = (int64_t)c->row[i] + 1;
	}
	for (uint32_t i = 0; c->flips && i < c->nr; i++)
		p = put_varint(p, c->flip[i]);
	p = put_varint(p, c->columns);
	for (uint64_t left = c->columns; left; left &= left - 1) {
		uint32_t col = (uint32_t)__builtin_ctzll(left);
		struct cells_column k = {t->cell + col, absolute ? zero : t->before + col, t->nr_cols,
			absolute ? 0 : t->nr_cols, col};

		p = put_column(p, c, &k);
	}
	c->nr = 0;
	c->flips = c->columns = 0;
	assert((size_t)(p - out) <= CELLS_ROOM);
	return (size_t)(p - out);
}

/* As view_varint(), with the cases of one and two bytes in line. */
static inline uint64_t get_varint(struct view *v)
{
	const uint8_t *p = v->p;

	if (likely(p < v->end && *p < 0x80)) {
		v->p++;
		return *p;
	}
	if (likely(v->end - p > 1 && p[1] < 0x80)) {
		v->p += 2;
		return (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
	}
	return view_varint(v);
}

static uint64_t columns_of(const struct table *t)
{
	return t->nr_cols == 64 ? UINT64_MAX : (UINT64_C(1) << t->nr_cols) - 1;
}

int cells_decode_rows(struct view *v, const struct table *t, uint32_t *row, uint64_t *ret_flags)
{
	uint64_t flags = get_varint(v), nr = get_varint(v), next = 0;

	if (v->bad || nr > CELLS_ROWS_MAX)
		return -EBADMSG;
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t r = next + (uint64_t)unzigzag(get_varint(v));

		if (v->bad || r >= t->nr_rows || t->id[r] == ROW_FREE)
			return -EBADMSG;
		row[i] = (uint32_t)r;
		next = r + 1;
	}
	*ret_flags = flags;
	return (int)nr;
}

static inline void change(struct table *t, uint32_t row, uint32_t col, uint64_t zigzagged)
{
	int64_t *cell = t->cell + (size_t)row * t->nr_cols + col;

	t->changed[row] |= (uint64_t)(zigzagged != 0) << col;
	*cell = (int64_t)((uint64_t)*cell + (uint64_t)unzigzag(zigzagged));
}

static int get_column(struct view *v, struct table *t, const uint32_t *row, uint32_t nr, uint32_t col)
{
	uint64_t few = get_varint(v);
	uint32_t i = 0;

	if (!few)
		for (i = 0; i < nr; i++)
			change(t, row[i], col, get_varint(v));
	for (; few && !v->bad; few--) {
		uint64_t passed = get_varint(v);

		if (passed >= nr - i)
			return -EBADMSG;
		i += (uint32_t)passed;
		change(t, row[i++], col, get_varint(v));
	}
	return v->bad ? -EBADMSG : 0;
}

int cells_decode(struct view *v, struct table *t, const uint32_t *row, uint32_t nr, uint64_t flags)
{
	uint64_t columns;

	assert(nr <= CELLS_ROWS_MAX);
	for (uint32_t i = 0; flags & CELLS_VALIDITY && i < nr; i++) {
		uint64_t flip = get_varint(v);

		if (v->bad || flip & ~columns_of(t))
			return -EBADMSG;
		t->valid[row[i]] ^= flip;
		t->changed[row[i]] |= flip;
	}
	columns = get_varint(v);
	if (v->bad || columns & ~columns_of(t))
		return -EBADMSG;
	for (; columns; columns &= columns - 1)
		if (get_column(v, t, row, nr, (uint32_t)__builtin_ctzll(columns)) < 0)
			return -EBADMSG;
	return 0;
}
