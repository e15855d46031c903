/* What the tests of disks, file systems and their clients share. */
#ifndef TESTS_STORAGE_LAB_H
#define TESTS_STORAGE_LAB_H

#include "collect_lab.h"

#include "base/buf.h"

#include <sys/mman.h>

static inline const char *about_of(const struct lab *lab, const char *instance)
{
	int row = row_of(lab, instance);

	if (row < 0)
		fail_msg("no instance %s", instance);
	return lab->about[row];
}

static inline unsigned rows(const struct lab *lab)
{
	unsigned nr = 0;

	for (uint32_t row = 0; row < lab->table.nr_rows; row++)
		nr += lab->table.id[row] != ROW_FREE;
	return nr;
}

static inline void turn(struct env *env, struct lab *lab, int second, int want)
{
	assert_int_equal(env_sleep_until(env, (100 + second) * NSEC_PER_SEC), 0);
	assert_int_equal(lab_sample(lab), want);
}

static inline struct env *film_of_text(const char *text, size_t len)
{
	int fd = memfd_create("film", MFD_CLOEXEC);
	struct env *env = NULL;
	char path[40];
	unsigned line;

	assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(env_film(path, &env, &line), 0);
	close(fd);
	return env;
}

/* A file of this content, whatever it is. */
static inline struct env *machine_of(const char *path, const char *text, size_t len)
{
	struct buf film;
	struct env *env;

	buf_init(&film, 1 << 24);
	buf_addf(&film, "file %s\n", path);
	for (size_t i = 0; i < len; i++)
		buf_addf(&film, "%s\\x%02x%s", i % 64 ? "" : ":", (unsigned char)text[i],
			i % 64 == 63 || i + 1 == len ? "\n" : "");
	env = film_of_text((char *)film.data, film.len);
	buf_release(&film);
	return env;
}
#endif
