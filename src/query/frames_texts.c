/* Dictionaries of texts, and how bytes become text.
 *
 * The numbers of texts are found by a hash that nobody outside can foresee: a recording may hold a hundred
 * thousand names, chosen by whoever named the processes. */
#include "query/frames_internal.h"

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

static bool is_plain(const uint8_t *p, size_t n)
{
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
	free(d->text);
	free(d->len);
	free(d->slot);
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

static int dictionary_rehash(struct dictionary *d)
{
	uint32_t mask = d->slot ? d->mask * 2 + 1 : 63;
	uint32_t *slot = mask < UINT32_MAX / 2 ? calloc((size_t)mask + 1, sizeof(*slot)) : NULL;

	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->nr; i++) {
		uint32_t at = (uint32_t)hash_of(d, d->text[i], d->len[i]) & mask;

		while (slot[at])
			at = (at + 1) & mask;
		slot[at] = i + 1;
	}
	free(d->slot);
	d->slot = slot;
	d->mask = mask;
	return 0;
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
		uint32_t cap = MAX(d->cap * 2, 16u), *len = reallocarray(d->len, cap, sizeof(*len));
		const char **text;

		if (len)
			d->len = len;
		text = reallocarray(d->text, cap, sizeof(char *));
		if (text)
			d->text = text;
		if (!len || !text)
			return -ENOMEM;
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

int dictionary_put(struct dictionary *d, const void *bytes, size_t n, uint32_t *ret)
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
	uint32_t at;

	if ((!d->slot || d->nr >= d->mask / 3 * 2) && dictionary_rehash(d) < 0)
		return -ENOMEM;
	at = (uint32_t)hash_of(d, bytes, n) & d->mask;
	for (; d->slot[at]; at = (at + 1) & d->mask) {
		uint32_t i = d->slot[at] - 1;

		if (d->len[i] == n && (!n || !memcmp(d->text[i], bytes, n))) {
			*ret = i;
			return 0;
		}
	}
	if (dictionary_append(d, bytes, n) < 0)
		return -ENOMEM;
	d->slot[at] = d->nr;
	*ret = d->nr - 1;
	return 0;
}
