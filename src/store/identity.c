/* Keeps the identity of every live instance: see identity.h. */
#include "store/identity.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#define TEXT_BOUND ((size_t)64 << 20)
#define TEXT_BOUND_MIN ((size_t)256 << 10)
#define ROWS_AT_FIRST 128
#define TEXT_FLOOR ((size_t)64 << 10) /* below this holes do not matter */
#define SHORT_VALUE 64

/* Stands before each text: the row it belongs to. A text is a hole when its row points to another text. */
struct owner {
	uint32_t set, row, size;
};

static const uint8_t no_pairs[1] = {0};

static void *reserve(size_t size)
{
	void *m =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

int identities_init(struct identities *all, uint32_t nr_sets)
{
	*all = (struct identities){.nr_sets = nr_sets};
	all->row = calloc(nr_sets + 1, sizeof(*all->row));
	all->cap = calloc(nr_sets + 1, sizeof(*all->cap));
	all->nr_rows = calloc(nr_sets + 1, sizeof(*all->nr_rows));
	/* Where address space is limited (ulimit -v) less must do. */
	for (size_t size = TEXT_BOUND; !all->text && size >= TEXT_BOUND_MIN; size /= 4) {
		all->text = reserve(size);
		all->bound = all->reserved = size;
	}
	return all->row && all->cap && all->nr_rows && all->text ? 0 : -ENOMEM;
}

static bool make_rows(struct identities *all, uint32_t set, uint32_t row)
{
	size_t cap = MAX((size_t)all->cap[set] * 4, ROWS_AT_FIRST), size;
	void *rows = all->row[set];

	while (cap <= row)
		cap *= 4;
	cap = MIN(cap, (size_t)IDENTITY_ROWS_MAX);
	size = cap * sizeof(struct identity);
	rows = rows ? mremap(rows, all->cap[set] * sizeof(struct identity), size, MREMAP_MAYMOVE)
		    : reserve(size);
	if (!rows || rows == MAP_FAILED)
		return false;
	all->row[set] = rows;
	all->cap[set] = (uint32_t)cap;
	return true;
}

void identities_release(struct identities *all)
{
	for (uint32_t i = 0; all->row && all->cap && i < all->nr_sets; i++)
		if (all->row[i])
			munmap(all->row[i], all->cap[i] * sizeof(struct identity));
	if (all->text)
		munmap(all->text, all->reserved);
	free(all->row);
	free(all->cap);
	free(all->nr_rows);
	*all = (struct identities){0};
}

static size_t footprint(size_t size)
{
	return (sizeof(struct owner) + size + 7) & ~(size_t)7;
}

static void move_together(struct identities *all)
{
	size_t to = 0, end = all->end;

	for (size_t from = 0; from < end;) {
		struct owner o;

		memcpy(&o, all->text + from, sizeof(o));
		size_t size = footprint(o.size);
		struct identity *i = &all->row[o.set][o.row];
		if (i->id != ROW_FREE && i->size && i->at == from) {
			memmove(all->text + to, all->text + from, size);
			i->at = (uint32_t)to;
			to += size;
		}
		from += size;
	}
	all->end = to;
	/* Give the memory of a burst back. */
	to = (to + TEXT_FLOOR + 4095) & ~(size_t)4095;
	if (end > to)
		madvise(all->text + to, end - to, MADV_DONTNEED);
}

static bool make_room(struct identities *all, size_t size)
{
	size_t want = footprint(size);

	if (all->end + want > MAX(2 * all->live, TEXT_FLOOR) || all->end + want > all->bound)
		move_together(all);
	return all->end + want <= all->bound;
}

static void keep(struct identities *all, uint32_t set, uint32_t row, const void *encoded, size_t size)
{
	struct identity *i = &all->row[set][row];
	struct owner o = {.set = set, .row = row, .size = (uint32_t)size};

	i->at = (uint32_t)all->end;
	i->size = (uint32_t)size;
	memcpy(all->text + all->end, &o, sizeof(o));
	memcpy(all->text + all->end + sizeof(o), encoded, size);
	all->end += footprint(size);
	all->live += footprint(size);
}

void identity_set(struct identities *all, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
	const struct pairs *pairs, const void *encoded, size_t size)
{
	struct identity *i;
	uint8_t memory[IDENTITY_TEXT_MAX];
	struct buf brief;

	if (set >= all->nr_sets || row >= IDENTITY_ROWS_MAX ||
		(row >= all->cap[set] && !make_rows(all, set, row)))
		return;
	i = identity_of(all, set, row);
	if (i->id != id)
		i->time_ns = time_ns;
	identity_clear(all, set, row);
	i->id = id;
	i->shortened = false;
	if (row >= all->nr_rows[set])
		all->nr_rows[set] = row + 1;
	if (size <= IDENTITY_TEXT_MAX && make_room(all, size)) {
		keep(all, set, row, encoded, size);
		return;
	}
	i->shortened = true;
	buf_init_fixed(&brief, memory, sizeof(memory));
	pairs_encode_short(pairs, SHORT_VALUE, &brief);
	if (!brief.err && make_room(all, brief.len))
		keep(all, set, row, brief.data, brief.len);
}

void identity_clear(struct identities *all, uint32_t set, uint32_t row)
{
	struct identity *i = identity_of(all, set, row);

	if (!i)
		return;
	assert(!i->size || all->live >= footprint(i->size));
	if (i->size)
		all->live -= footprint(i->size);
	i->id = ROW_FREE;
	i->size = 0;
	while (all->nr_rows[set] && all->row[set][all->nr_rows[set] - 1].id == ROW_FREE)
		all->nr_rows[set]--;
}

const uint8_t *identity_text(const struct identities *all, const struct identity *i, size_t *ret_size)
{
	if (!i->size) {
		*ret_size = sizeof(no_pairs);
		return no_pairs;
	}
	*ret_size = i->size;
	return all->text + i->at + sizeof(struct owner);
}

void pairs_encode_short(const struct pairs *p, size_t max_value, struct buf *out)
{
	buf_add_varint(out, p->nr);
	for (uint32_t i = 0; i < p->nr; i++) {
		buf_add_bytes(out, p->pair[i].key, strlen(p->pair[i].key));
		buf_add_bytes(out, p->pair[i].value, MIN(p->pair[i].len, max_value));
	}
}
