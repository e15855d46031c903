/* Dictionaries of texts, and how bytes become text.
 *
 * The numbers of texts are found by a hash with a secret seed: a recording may hold a hundred thousand
 * names, which programs choose for themselves. */
#include "query/tables_internal.h"

#include "base/owned.h"
#include "base/str.h"

#include <string.h>
#include <sys/random.h>

#define PIECE_SIZE ((size_t)1 << 16)

struct dictionary_piece {
	struct dictionary_piece *next;
	size_t used, size;
	char bytes[];
};

/* ---- escaping ---- */

static bool is_plain(const char *bytes, size_t n)
{
	const uint8_t *p = (const uint8_t *)bytes;

	for (size_t i = 0; i < n; i++)
		if (!p[i] || p[i] == '\\' || p[i] >= 0x80)
			return false;
	return true;
}

/* ---- the dictionary ---- */

void dictionary_init(struct dictionary *d)
{
	*d = (struct dictionary){0};
	buf_init(&d->escaped, SIZE_MAX / 4);
	if (getrandom(&d->seed, sizeof(d->seed), GRND_NONBLOCK) != sizeof(d->seed))
		d->seed = (uintptr_t)d;
}

void dictionary_release(struct dictionary *d)
{
	while (d->piece) {
		struct dictionary_piece *next = d->piece->next;

		free(d->piece);
		d->piece = next;
	}
	owned_free(&d->arrays);
	idmap_release(&d->by_hash);
	buf_release(&d->escaped);
}

static uint64_t fold128(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(const struct dictionary *d, const char *bytes, size_t n)
{
	uint64_t hash = d->seed ^ n;

	while (n) {
		uint64_t word = 0;

		memcpy(&word, bytes, MIN(n, sizeof(word)));
		hash = fold128(hash ^ word, (d->seed << 1 | 1) ^ UINT64_C(0x9e3779b97f4a7c15));
		bytes += MIN(n, sizeof(word));
		n -= MIN(n, sizeof(word));
	}
	return fold128(hash, UINT64_C(0xd6e8feb86659fd93));
}

static char *piece_take(struct dictionary *d, size_t n)
{
	struct dictionary_piece *p = d->piece;
	char *at;

	if (!p || p->size - p->used < n) {
		size_t size = MAX(n, PIECE_SIZE);

		p = malloc(sizeof(*p) + size);
		if (!p)
			return NULL;
		*p = (struct dictionary_piece){.next = d->piece, .size = size};
		d->piece = p;
	}
	at = p->bytes + p->used;
	p->used += n;
	return at;
}

static int dictionary_append(struct dictionary *d, const char *bytes, size_t n)
{
	char *copy;

	if (d->nr == d->cap) {
		uint32_t cap = MAX(d->cap * 2, 16u), *len = owned_alloc(&d->arrays, cap, sizeof(*len));
		const char **text = owned_alloc(&d->arrays, cap, sizeof(*text));

		if (!len || !text)
			return -ENOMEM;
		if (d->nr) {
			memcpy(len, d->len, d->nr * sizeof(*len));
			memcpy(text, d->text, d->nr * sizeof(*text));
		}
		d->len = len;
		d->text = text;
		d->cap = cap;
	}
	copy = n < UINT32_MAX ? piece_take(d, n + 1) : NULL;
	if (!copy)
		return -ENOMEM;
	if (n)
		memcpy(copy, bytes, n);
	copy[n] = 0;
	d->text[d->nr] = copy;
	d->len[d->nr++] = (uint32_t)n;
	return 0;
}

int dictionary_put(struct dictionary *d, const char *bytes, size_t n, uint32_t *ret)
{
	if (is_plain(bytes, n))
		return dictionary_put_text(d, bytes, n, ret);
	buf_reset(&d->escaped);
	utf8_escape(&d->escaped, bytes, n);
	if (d->escaped.err)
		return -ENOMEM;
	return dictionary_put_text(d, (const char *)d->escaped.data, d->escaped.len, ret);
}

int dictionary_put_text(struct dictionary *d, const char *bytes, size_t n, uint32_t *ret)
{
	uint64_t key = hash_of(d, bytes, n);
	uint32_t i;

	for (; (i = idmap_get(&d->by_hash, key)) != IDMAP_NONE; key++)
		if (d->len[i] == n && (!n || !memcmp(d->text[i], bytes, n))) {
			*ret = i;
			return 0;
		}
	if (d->nr == IDMAP_NONE || idmap_room(&d->by_hash) < 0 || dictionary_append(d, bytes, n) < 0)
		return -ENOMEM;
	idmap_number(&d->by_hash, key, d->nr - 1);
	*ret = d->nr - 1;
	return 0;
}

struct texts dictionary_texts(const struct dictionary *d)
{
	return d ? (struct texts){.text = d->text, .len = d->len, .nr = d->nr} : (struct texts){0};
}
