/* Memory that grows: lists of texts, arrays by number, blocks that only have to be freed together. */
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

/* One item more, zeroed, in a list that only this adds to: it has room for the next power of two. A pointer
 * to it; NULL when there is no memory for it: then all is as it was. */
#define ARRAY_ADD(list, nr)                                                       \
	({                                                                        \
		__typeof__(list) more_ = array_double(list, nr, sizeof(*(list))); \
		if (more_) {                                                      \
			(list) = more_;                                           \
			more_ += (nr)++;                                          \
			*more_ = (__typeof__(*more_)){0};                         \
		}                                                                 \
		more_;                                                            \
	})
void *array_double(void *array, size_t nr, size_t size);

/* Room for `want` items: 0 or -ENOMEM, and then all is as it was. What is new is not set. */
#define ARRAY_ROOM(list, cap, want)                                                            \
	({                                                                                     \
		size_t cap_ = (cap), want_ = (want), most_ = (__typeof__(cap))-1;              \
		bool fits_ = want_ <= cap_;                                                    \
		__typeof__(list) more_ =                                                       \
			fits_ ? NULL : array_room(list, &cap_, want_, most_, sizeof(*(list))); \
		if (more_) {                                                                   \
			(list) = more_;                                                        \
			(cap) = (__typeof__(cap))cap_;                                         \
		}                                                                              \
		fits_ || more_ ? 0 : -ENOMEM;                                                  \
	})
void *array_room(void *array, size_t *cap, size_t want, size_t most, size_t size);

/* So many items (at least one), for arrays that share one `cap`: 0 or -ENOMEM. */
#define ARRAY_RESIZE(list, nr)                                                    \
	({                                                                        \
		__typeof__(list) more_ = array_resize(list, nr, sizeof(*(list))); \
		if (more_)                                                        \
			(list) = more_;                                           \
		more_ ? 0 : -ENOMEM;                                              \
	})
void *array_resize(void *array, size_t nr, size_t size);

/* The array with a place for item `at`: what is new is zero, and *nr is how many fit. NULL when there is no
 * memory for it; then all is as it was. */
void *array_reach(void *array, uint32_t *nr, uint32_t at, size_t size);

/* Blocks that other structs point to. A failure is kept in it. */
struct owned {
	void **block;
	size_t nr;
	bool failed;
};

/* All return NULL when there is no memory. */
void *owned_take(struct owned *o, void *memory);	    /* freed when it cannot be kept */
void *owned_alloc(struct owned *o, size_t nr, size_t size); /* zeroed */
char *owned_text(struct owned *o, struct buf *text);	    /* a copy; the buffer is released */
/* Never NULL: "" when there is no memory, and then `failed` tells. */
char *owned_printf(struct owned *o, const char *fmt, ...) _printf_(2, 3);
void owned_free(struct owned *o);
#endif
