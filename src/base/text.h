/* A piece of another text: borrowed, not terminated. For texts that are taken apart from the front. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/base.h"

#include <string.h>

struct text {
	const char *p;
	size_t len;
};

static inline struct text text_of(const char *s)
{
	return (struct text){s, strlen(s)};
}

static inline bool text_is(struct text t, const char *s)
{
	return strlen(s) == t.len && memcmp(t.p, s, t.len) == 0;
}

static inline bool text_equal(struct text a, struct text b)
{
	return a.len == b.len && memcmp(a.p, b.p, a.len) == 0;
}

static inline bool text_starts(struct text t, const char *s)
{
	size_t n = strlen(s);

	return t.len >= n && memcmp(t.p, s, n) == 0;
}

static inline bool text_ends(struct text t, const char *s)
{
	size_t n = strlen(s);

	return t.len >= n && memcmp(t.p + t.len - n, s, n) == 0;
}

/* What follows the first n characters; nothing when there are no more. */
static inline struct text text_from(struct text t, size_t n)
{
	return n < t.len ? (struct text){t.p + n, t.len - n} : (struct text){"", 0};
}

/* Cuts the text up to `stop` off the front of *rest, and drops `stop`; all of it when it has none. */
static inline struct text text_cut(struct text *rest, char stop)
{
	const char *end = rest->len ? memchr(rest->p, stop, rest->len) : NULL;
	struct text head = {rest->p, end ? (size_t)(end - rest->p) : rest->len};
	size_t step = head.len + (end ? 1 : 0);

	rest->p += step;
	rest->len -= step;
	return head;
}

static inline bool text_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Without the blanks around it. */
static inline struct text text_strip(struct text t)
{
	while (t.len && text_is_blank(*t.p))
		t = text_from(t, 1);
	while (t.len && text_is_blank(t.p[t.len - 1]))
		t.len--;
	return t;
}

/* Cuts the next word, which ends at a blank, off the front of *rest; empty when there is none. */
static inline struct text text_word(struct text *rest)
{
	struct text word;

	*rest = text_strip(*rest);
	word = (struct text){rest->p, 0};
	while (word.len < rest->len && !text_is_blank(rest->p[word.len]))
		word.len++;
	*rest = text_strip(text_from(*rest, word.len));
	return word;
}
#endif
