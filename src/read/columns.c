/* Columns of numbers, in two passes: first where the words begin, up to the last one that is wanted, then the
 * values of the wanted ones. Picks are kept in the order of the text. */
#include "read/read.h"

#include "read/wide.h"

#include <string.h>

/* Enough for every file of /proc that comes in columns; what lies beyond is not read. */
#define WORDS_MAX 128

void columns_init(struct columns_reader *r, const struct metric *metric, size_t nr, int source,
	const struct columns_map *map)
{
	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < nr; i++) {
		uint16_t at;

		if (metric[i].at.source != source || metric[i].at.col <= 0 || map->col[i] < 0)
			continue;
		for (at = r->nr++; at && r->pick[at - 1].from > metric[i].at.col; at--)
			r->pick[at] = r->pick[at - 1];
		r->pick[at].from = metric[i].at.col;
		r->pick[at].to = map->col[i];
		r->mask |= UINT64_C(1) << map->col[i];
	}
}

/* Bit i is set when character i of 64 is a blank, or lies behind the end. */
static uint64_t blanks(const char *p, const char *end)
{
	uint64_t mask = 0;
	char tail[64];

	if (unlikely(end - p < 64)) {
		memset(tail, ' ', sizeof(tail));
		memcpy(tail, p, (size_t)(end - p));
		p = tail;
	}
	for (int i = 0; i < 64; i += 8)
		mask |= wide_blanks(p + i) << i;
	return mask;
}

/* Where the first `want` words begin, counted from the text's start. Returns how many there are. */
static unsigned find_words(const char *text, size_t len, unsigned want, uint32_t *word)
{
	uint64_t before = 1; /* the text begins as if after a blank */
	unsigned nr = 0;

	for (size_t at = 0; at < len && nr < want; at += 64) {
		uint64_t blank = blanks(text + at, text + len);
		uint64_t starts = ~blank & (blank << 1 | before);

		before = blank >> 63;
		for (; starts; starts &= starts - 1)
			word[nr++] = (uint32_t)at + (uint32_t)__builtin_ctzll(starts);
	}
	return nr;
}

static bool ends_word(const char *p, const char *end)
{
	return p == end || (unsigned char)*p <= ' ';
}

static bool word_value(const char *p, const char *end, int64_t *ret)
{
	if (wide_number(&p, end, ret))
		return ends_word(p, end);
	*ret = *p;
	return (unsigned char)((*p | 0x20) - 'a') < 26 && ends_word(p + 1, end);
}

void columns_read(const struct columns_reader *r, const char *text, size_t len, unsigned first,
	struct table *out, uint32_t row)
{
	uint32_t word[WORDS_MAX + 32]; /* 64 characters begin up to 32 words at once */
	unsigned last = r->nr ? (unsigned)r->pick[r->nr - 1].from : 0, nr;
	int64_t *cell = table_row(out, row);
	uint64_t got = 0;

	nr = last < first ? 0 : find_words(text, len, MIN(last - first + 1, WORDS_MAX), word);
	for (unsigned i = 0; i < r->nr; i++) {
		unsigned at = (unsigned)r->pick[i].from - first;
		int64_t value;

		/* Below first it wraps, and is out of range too. */
		if (at >= nr || !word_value(text + word[at], text + len, &value))
			continue;
		cell[r->pick[i].to] = value;
		got |= UINT64_C(1) << r->pick[i].to;
	}
	out->valid[row] = (out->valid[row] & ~r->mask) | got;
}
