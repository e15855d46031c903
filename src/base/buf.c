/* A growing byte buffer, and reading from bytes: see buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint8_t empty[1];

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.data = empty, .max = max};
}

void buf_init_fixed(struct buf *b, void *memory, size_t size)
{
	*b = (struct buf){.data = memory, .cap = size - 1, .max = size - 1, .fixed = true};
	b->data[0] = 0;
}

void buf_release(struct buf *b)
{
	if (!b->fixed && b->data != empty)
		free(b->data);
	buf_init(b, b->max);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->err = 0;
	if (b->data != empty)
		b->data[0] = 0;
}

static bool buf_grow(struct buf *b, size_t n)
{
	size_t want = b->len + n, cap = MAX(b->cap * 2, (size_t)128);

	if (b->fixed || n > b->max || want > b->max) {
		b->err = -ENOBUFS;
		return false;
	}
	cap = MIN(MAX(cap, want), b->max);
	uint8_t *data = realloc(b->data == empty ? NULL : b->data, cap + 1);
	if (!data) {
		b->err = -ENOMEM;
		return false;
	}
	data[b->len] = 0;
	b->data = data;
	b->cap = cap;
	return true;
}

bool buf_reserve(struct buf *b, size_t n)
{
	if (b->err)
		return false;
	if (likely(n <= b->cap - b->len))
		return true;
	return buf_grow(b, n);
}

void buf_add(struct buf *b, const void *data, size_t n)
{
	if (!n || !buf_reserve(b, n))
		return;
	memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = 0;
}

void buf_addch(struct buf *b, int c)
{
	uint8_t byte = (uint8_t)c;

	buf_add(b, &byte, 1);
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n <= 0 || !buf_reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void buf_add_varint(struct buf *b, uint64_t v)
{
	uint8_t tmp[10], *p = tmp;

	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	buf_add(b, tmp, (size_t)(p - tmp));
}

void buf_add_bytes(struct buf *b, const void *data, size_t n)
{
	buf_add_varint(b, n);
	buf_add(b, data, n);
}

uint64_t view_varint(struct view *v)
{
	uint64_t out = 0;

	for (unsigned shift = 0; shift < 64 && v->p < v->end; shift += 7) {
		uint8_t byte = *v->p++;

		out |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return out;
	}
	v->bad = true;
	v->p = v->end;
	return 0;
}

const uint8_t *view_bytes(struct view *v, size_t *ret_len)
{
	uint64_t n = view_varint(v);
	const uint8_t *p = v->p;

	if (v->bad || n > (size_t)(v->end - v->p)) {
		v->bad = true;
		v->p = v->end;
		*ret_len = 0;
		return p;
	}
	v->p += n;
	*ret_len = (size_t)n;
	return p;
}
