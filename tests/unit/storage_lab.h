/* What the tests of disks, file systems and their clients share. */
#ifndef TESTS_STORAGE_LAB_H
#define TESTS_STORAGE_LAB_H

#include "film_text.h"

/* A file of this content, whatever it is. */
static inline struct env *machine_of(const char *path, const char *text, size_t len)
{
	struct buf film;

	buf_init(&film, 1 << 24);
	buf_addf(&film, "file %s\n", path);
	for (size_t i = 0; i < len; i++)
		buf_addf(&film, "%s\\x%02x%s", i % 64 ? "" : ":", (unsigned char)text[i],
			i % 64 == 63 || i + 1 == len ? "\n" : "");
	return film_buf(&film);
}
#endif
