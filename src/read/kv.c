/* Keys and values, one pair a line.
 *
 * The kernel prints the same keys in the same order for as long as it runs, so the first reading learns on
 * which line each key stands and later ones look only there. Two things send a reading back to searching,
 * which learns anew: a key that is not on its line, and a key on another line that was not there before (a
 * kernel thread's status has no Vm lines; the next process has them again). So a reader with keys that this
 * kernel lacks looks at all lines, the others only at their own. A hash of the keys was rejected: it would be
 * computed for every line, wanted or not. */
#include "read/read.h"

#include "read/wide.h"

#include <string.h>

#define NOWHERE UINT16_MAX

/* The first eight characters of a key, to be compared in one go. */
static void make_head(struct kv_key *key)
{
	char head[8] = "";

	memcpy(head, key->key, MIN(key->key_len, sizeof(head)));
	key->head = wide_load(head);
	key->head_mask = key->key_len < 8 ? (UINT64_C(1) << 8 * key->key_len) - 1 : UINT64_MAX;
}

void kv_init(struct kv_reader *r, const struct metric *metric, size_t nr, int source,
	const struct columns_map *map)
{
	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < nr; i++) {
		const struct metric_at *at = &metric[i].at;
		struct kv_key *key = &r->key[r->nr_keys];

		if (at->source != source || !at->key || map->col[i] < 0)
			continue;
		*key = (struct kv_key){
			.key = at->key,
			.key_len = (uint16_t)strlen(at->key),
			.col = map->col[i],
			.line = NOWHERE,
			.base = at->arg == 16 ? 16 : 10,
			.fraction = metric[i].scale == SCALE_CENTI || metric[i].scale == SCALE_PERCENT,
		};
		make_head(key);
		r->mask |= UINT64_C(1) << map->col[i];
		r->nr_keys++;
	}
}

static bool read_hex(const char **p, const char *end, int64_t *ret)
{
	const char *start = *p, *at = start;
	uint64_t v = 0;

	for (; at < end; at++) {
		unsigned char c = (unsigned char)*at, letter = (unsigned char)((c | 0x20) - 'a');

		if ((unsigned char)(c - '0') <= 9)
			v = v << 4 | (uint64_t)(c - '0');
		else if (letter < 6)
			v = v << 4 | (uint64_t)(letter + 10);
		else
			break;
	}
	if (at == start)
		return false;
	*p = at;
	*ret = (int64_t)v;
	return true;
}

static bool key_stands_at(const struct kv_key *key, const char *p, const char *end)
{
	char after;

	if (end - p <= key->key_len)
		return false;
	if (likely(end - p >= 8)) {
		if ((wide_load(p) ^ key->head) & key->head_mask)
			return false;
		if (key->key_len > 8 && memcmp(p + 8, key->key + 8, key->key_len - 8u))
			return false;
	} else if (memcmp(p, key->key, key->key_len)) {
		return false;
	}
	after = p[key->key_len];
	return after == ':' || after == ' ' || after == '\t';
}

/* The value of a key that stands at *p, which moves behind it. */
static bool value_of(const struct kv_key *key, const char **p, const char *end, int64_t *ret)
{
	const char *at = *p + key->key_len;
	bool found;

	at += *at == ':';
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (key->fraction)
		found = read_centi(&at, end, ret);
	else
		found = key->base == 16 ? read_hex(&at, end, ret) : wide_number(&at, end, ret);
	*p = at;
	return found;
}

static const char *next_line(const char *p, const char *end)
{
	if (p < end && *p != '\n')
		p = memchr(p, '\n', (size_t)(end - p));
	return p && p < end ? p + 1 : end;
}

/* The line holds a key that was not there when the lines were learned. */
static bool is_news(const struct kv_reader *r, const char *p, const char *end)
{
	for (const struct kv_key *key = r->key + r->nr_known; key < r->key + r->nr_keys; key++)
		if (key_stands_at(key, p, end))
			return true;
	return false;
}

/* False when keys are not where they were: then no value is valid. */
static bool read_known(
	const struct kv_reader *r, const char *p, const char *end, int64_t *cell, uint64_t *got)
{
	const struct kv_key *key = r->key, *last = r->key + r->nr_known;
	bool all = r->nr_known == r->nr_keys;

	for (unsigned line = 0; p < end && (key < last || !all); line++, p = next_line(p, end)) {
		int64_t value;

		if (key == last || line != key->line) {
			if (!all && is_news(r, p, end))
				return false;
			continue;
		}
		if (!key_stands_at(key, p, end))
			return false;
		if (value_of(key, &p, end, &value)) {
			cell[key->col] = value;
			*got |= UINT64_C(1) << key->col;
		}
		key++;
	}
	return key == last;
}

static uint64_t search(struct kv_reader *r, const char *p, const char *end, int64_t *cell)
{
	unsigned line = 0;
	uint64_t got = 0;

	r->nr_known = 0;
	for (; p < end; line++, p = next_line(p, end)) {
		for (uint16_t i = r->nr_known; i < r->nr_keys && line < NOWHERE; i++) {
			struct kv_key found = r->key[i];
			int64_t value;

			if (!key_stands_at(&found, p, end))
				continue;
			found.line = (uint16_t)line;
			r->key[i] = r->key[r->nr_known];
			r->key[r->nr_known++] = found;
			if (value_of(&found, &p, end, &value)) {
				cell[found.col] = value;
				got |= UINT64_C(1) << found.col;
			}
			break;
		}
	}
	return got;
}

unsigned kv_read(struct kv_reader *r, const char *text, size_t len, struct table *out, uint32_t row)
{
	int64_t *cell = table_row(out, row);
	uint64_t got = 0;

	if (!r->nr_known || !read_known(r, text, text + len, cell, &got))
		got = search(r, text, text + len, cell);
	out->valid[row] = (out->valid[row] & ~r->mask) | got;
	return (unsigned)__builtin_popcountll(got);
}
