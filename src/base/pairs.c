/* Lists of key and value, in memory and as bytes: see pairs.h. */
#include "base/pairs.h"

#include "base/str.h"

#include <string.h>

void pairs_init(struct pairs *p, struct pair *memory, uint32_t nr, void *text, size_t text_size)
{
	*p = (struct pairs){.pair = memory, .cap = nr};
	buf_init_fixed(&p->text, text, text_size);
}

void pairs_reset(struct pairs *p)
{
	p->nr = 0;
	buf_reset(&p->text);
}

void pairs_add(struct pairs *p, const char *key, const void *value, size_t len)
{
	if (p->nr == p->cap) {
		p->text.err = -ENOBUFS;
		return;
	}
	p->pair[p->nr++] = (struct pair){.key = key, .value = value, .len = len};
}

void pairs_str(struct pairs *p, const char *key, const char *value)
{
	pairs_add(p, key, value, strlen(value));
}

void pairs_num(struct pairs *p, const char *key, int64_t value)
{
	char digits[24];
	size_t n = format_i64(digits, value);
	const uint8_t *at = p->text.data + p->text.len;

	buf_add(&p->text, digits, n);
	if (!p->text.err)
		pairs_add(p, key, at, n);
}

const struct pair *pairs_find(const struct pairs *p, const char *key)
{
	for (uint32_t i = 0; i < p->nr; i++)
		if (!strcmp(p->pair[i].key, key))
			return &p->pair[i];
	return NULL;
}

bool pairs_get_num(const struct pairs *p, const char *key, int64_t *ret)
{
	const struct pair *pair = pairs_find(p, key);

	return pair && parse_i64n(pair->value, pair->len, ret);
}

void pairs_encode(const struct pairs *p, struct buf *out)
{
	buf_add_varint(out, p->nr);
	for (uint32_t i = 0; i < p->nr; i++) {
		buf_add_bytes(out, p->pair[i].key, strlen(p->pair[i].key));
		buf_add_bytes(out, p->pair[i].value, p->pair[i].len);
	}
}

int pairs_decode(struct pairs *p, struct view *v)
{
	uint64_t nr = view_varint(v);

	pairs_reset(p);
	for (uint64_t i = 0; i < nr && !v->bad; i++) {
		size_t key_len, len;
		const uint8_t *key = view_bytes(v, &key_len);
		const uint8_t *value = view_bytes(v, &len);
		const char *copy = (const char *)p->text.data + p->text.len;

		if (v->bad)
			break;
		buf_add(&p->text, key, key_len);
		buf_addch(&p->text, 0);
		pairs_add(p, copy, value, len);
		if (p->text.err)
			return p->text.err;
	}
	return v->bad ? -EBADMSG : 0;
}

bool words_have(const char *words, size_t len, const char *key, size_t key_len)
{
	while (len > key_len) {
		const char *end = memchr(words, 0, len);

		if (words[key_len] == '=' && !memcmp(words, key, key_len))
			return true;
		if (!end)
			return false;
		len -= (size_t)(end + 1 - words);
		words = end + 1;
	}
	return false;
}
