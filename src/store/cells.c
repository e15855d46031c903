#include "store/cells.h"

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

	for (uint32_t i = 0; i < t->nr_cols; i++)
		columns |= (uint64_t)(now[i] != old[i]) << i;
	if (!(flip | columns))
		return;
	c->row[c->nr] = row;
	c->flip[c->nr++] = flip;
	c->flips |= flip;
	c->columns |= columns;
}

static uint8_t *put_column(
	uint8_t *p, const struct cells *c, const struct table *t, uint32_t col, bool absolute)
{
	const int64_t *now = t->cell + col, *old = absolute ? zero : t->before + col;
	size_t stride = t->nr_cols, old_stride = absolute ? 0 : stride;

	for (uint32_t i = 0; i < c->nr; i++) {
		size_t row = c->row[i];

		p = put_varint(p, zigzag((int64_t)difference(now[row * stride], old[row * old_stride])));
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
	for (uint64_t left = c->columns; left; left &= left - 1)
		p = put_column(p, c, t, (uint32_t)__builtin_ctzll(left), absolute);
	c->nr = 0;
	c->flips = c->columns = 0;
	return (size_t)(p - out);
}

/* As view_varint(), with the one-byte case in line. */
static inline uint64_t get_varint(struct view *v)
{
	if (likely(v->p < v->end && *v->p < 0x80))
		return *v->p++;
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

int cells_decode(struct view *v, struct table *t, const uint32_t *row, uint32_t nr, uint64_t flags)
{
	uint64_t columns;

	for (uint32_t i = 0; flags & CELLS_VALIDITY && i < nr; i++) {
		uint64_t flip = get_varint(v);

		if (v->bad || flip & ~columns_of(t))
			return -EBADMSG;
		t->valid[row[i]] ^= flip;
	}
	columns = get_varint(v);
	if (v->bad || columns & ~columns_of(t))
		return -EBADMSG;
	for (; columns; columns &= columns - 1) {
		int64_t *cell = t->cell + __builtin_ctzll(columns);

		for (uint32_t i = 0; i < nr; i++) {
			int64_t *at = cell + (size_t)row[i] * t->nr_cols;

			*at = (int64_t)((uint64_t)*at + (uint64_t)unzigzag(get_varint(v)));
		}
	}
	return v->bad ? -EBADMSG : 0;
}
