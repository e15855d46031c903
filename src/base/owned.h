/* Lists that own what is in them: texts one by one, and blocks of memory that only have to be freed together.
 */
#ifndef BASE_OWNED_H
#define BASE_OWNED_H

#include "base/base.h"

#include <stdarg.h>

struct buf;

/* Appends a text; takes it, and frees it when the list cannot grow. NULL, as of a strdup() that failed, is
 * -ENOMEM. Only these add to a list: it has room for the next power of two. */
int texts_take(char ***list, size_t *nr, char *text);
int texts_addv(char ***list, size_t *nr, const char *fmt, va_list ap);
void texts_free(char **list, size_t nr);

/* What others point at. A failure sticks. */
struct owned {
	void **block;
	size_t nr;
	bool failed;
};

/* All return NULL when there is no memory. */
void *owned_take(struct owned *o, void *memory);	    /* freed when it cannot be kept */
void *owned_alloc(struct owned *o, size_t nr, size_t size); /* zeroed */
char *owned_text(struct owned *o, struct buf *text);	    /* a copy; the buffer is released */
void owned_free(struct owned *o);
#endif
