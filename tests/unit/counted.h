/* How often the core allocates: what it calls as malloc() is ours, by the linker. For the tests that
 * meson.build links with `counted`; one file of each includes it. */
#ifndef COUNTED_H
#define COUNTED_H

#include "base/base.h"

static uint64_t allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t nr, size_t size);

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	allocations++;
	return __real_calloc(nr, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t nr, size_t size)
{
	allocations++;
	return __real_reallocarray(p, nr, size);
}
#endif
