/* Lists of texts, arrays by number, and blocks that are freed together: see owned.h. */
#include "base/owned.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

void *array_resize(void *array, size_t nr, size_t size)
{
	return nr > PTRDIFF_MAX / size ? NULL : reallocarray(array, nr, size);
}

void *array_double(void *array, size_t nr, size_t size)
{
	if (nr & (nr - 1))
		return array;
	return nr > SIZE_MAX / 2 ? NULL : array_resize(array, nr ? 2 * nr : 1, size);
}

void *array_room(void *array, size_t *cap, size_t want, size_t most, size_t size)
{
	size_t more = *cap > most / 2 ? most : MAX(2 * *cap, MAX(want, (size_t)4));
	void *grown;

	grown = want > more ? NULL : array_resize(array, more, size);
	if (grown)
		*cap = more;
	return grown;
}

int texts_take(char ***list, size_t *nr, char *text)
{
	char **more = text ? array_double(*list, *nr, sizeof(*more)) : NULL;

	if (!more) {
		free(text);
		return -ENOMEM;
	}
	*list = more;
	more[(*nr)++] = text;
	return 0;
}

int texts_addv(char ***list, size_t *nr, const char *fmt, va_list ap)
{
	char *text = NULL;

	return texts_take(list, nr, vasprintf(&text, fmt, ap) < 0 ? NULL : text);
}

void texts_free(char **list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(list[i]);
	free(list);
}

void *array_reach(void *array, uint32_t *nr, uint32_t at, size_t size)
{
	size_t more = MIN(MAX((size_t)at + 8, 2 * (size_t)*nr), (size_t)UINT32_MAX);
	char *grown;

	if (at < *nr)
		return array;
	grown = at < more ? array_resize(array, more, size) : NULL;
	if (!grown)
		return NULL;
	memset(grown + *nr * size, 0, (more - *nr) * size);
	*nr = (uint32_t)more;
	return grown;
}

void *owned_take(struct owned *o, void *memory)
{
	void **more = memory && !o->failed ? array_double(o->block, o->nr, sizeof(*more)) : NULL;

	if (!more) {
		o->failed = true;
		free(memory);
		return NULL;
	}
	o->block = more;
	return more[o->nr++] = memory;
}

void *owned_alloc(struct owned *o, size_t nr, size_t size)
{
	return owned_take(o, calloc(nr ? nr : 1, size));
}

char *owned_text(struct owned *o, struct buf *text)
{
	char *copy = text->err ? NULL : owned_take(o, strndup((char *)text->data, text->len));

	o->failed |= text->err == -ENOMEM;
	buf_release(text);
	return copy;
}

char *owned_printf(struct owned *o, const char *fmt, ...)
{
	static char nothing[1];
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	text = owned_take(o, n < 0 ? NULL : text);
	return text ? text : nothing;
}

void owned_free(struct owned *o)
{
	for (size_t i = 0; i < o->nr; i++)
		free(o->block[i]);
	free(o->block);
	*o = (struct owned){0};
}
