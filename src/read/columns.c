/* Columns of numbers. Picks are kept in the order of the text, so that one walk serves all of them, and the
 * walk ends at the last column anyone wants. */
#include "read/read.h"

#include <string.h>

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

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool is_letter(char c)
{
	return (unsigned char)((c | 0x20) - 'a') < 26;
}

/* The word at p, which ends at a blank: a number, or a single letter, which stands for its code. */
static bool word_value(const char **p, const char *end, int64_t *ret)
{
	if (is_letter(**p) && (end - *p == 1 || is_blank((*p)[1]))) {
		*ret = *(*p)++;
		return true;
	}
	return read_number(p, end, ret) && (*p == end || is_blank(**p));
}

void columns_read(const struct columns_reader *r, const char *text, size_t len, unsigned first,
	struct table *out, uint32_t row)
{
	const char *p = text, *end = text + len;
	int64_t *cell = table_row(out, row);
	uint64_t got = 0;
	unsigned col = first, pick = 0;

	for (; pick < r->nr; col++) {
		while (p < end && is_blank(*p))
			p++;
		if (p == end)
			break;
		for (; pick < r->nr && r->pick[pick].from < (int)col; pick++)
			;
		for (const char *word = p; pick < r->nr && r->pick[pick].from == (int)col; pick++) {
			int64_t value;

			p = word;
			if (!word_value(&p, end, &value))
				continue;
			cell[r->pick[pick].to] = value;
			got |= UINT64_C(1) << r->pick[pick].to;
		}
		while (p < end && !is_blank(*p))
			p++;
	}
	out->valid[row] = (out->valid[row] & ~r->mask) | got;
}
