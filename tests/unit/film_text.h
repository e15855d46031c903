/* A machine or film written in a test, for what is too odd or too large for a file of its own. */
#ifndef TESTS_FILM_TEXT_H
#define TESTS_FILM_TEXT_H

#include "base/buf.h"
#include "collect_lab.h"

#include <sys/mman.h>

static inline struct env *film_from(const void *text, size_t len)
{
	int fd = memfd_create("film", MFD_CLOEXEC), r;
	struct env *env = NULL;
	unsigned line = 0;
	char path[40];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = env_film(path, &env, &line);
	close(fd);
	if (r < 0)
		fail_msg("line %u: %d", line, r);
	return env;
}

static inline struct env *film_text(const char *text)
{
	return film_from(text, strlen(text));
}

static inline struct env *film_buf(struct buf *b)
{
	struct env *env = film_from(b->data, b->len);

	buf_release(b);
	return env;
}

/* A machine of tests/machines with lines added. */
static inline struct env *machine_and(const char *name, const char *more)
{
	char path[400], text[1 << 14];
	struct buf b;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/machines/%s.txt", getenv("TACHO_TESTS"), name);
	f = fopen(path, "r");
	assert_non_null(f);
	buf_init(&b, 1 << 22);
	while ((n = fread(text, 1, sizeof(text), f)) > 0)
		buf_add(&b, text, n);
	fclose(f);
	buf_adds(&b, more);
	return film_buf(&b);
}

/* What the collector says of an instance: "key=value;" for each. */
static inline const char *about(const struct lab *lab, const char *instance)
{
	int row = row_of(lab, instance);

	if (row < 0)
		fail_msg("no instance %s", instance);
	return lab->about[row];
}

static inline unsigned nr_instances(const struct lab *lab)
{
	unsigned nr = 0;

	for (uint32_t i = 0; i < lab->table.nr_rows; i++)
		nr += lab->table.id[i] != ROW_FREE;
	return nr;
}

/* The collector finds its source, and takes a first sample. */
static inline void open_machine(struct lab *lab, const char *collector, struct env *env)
{
	struct trouble why = {0};

	lab_open(lab, env, collector);
	assert_int_equal(lab->collector->probe(env, &why), 0);
	assert_int_equal(lab_sample(lab), 0);
}

static inline void close_machine(struct lab *lab)
{
	struct env *env = lab->ctx.env;

	lab_release(lab);
	env_free(env);
}

/* To the frame of that second, with what sampling there must give. */
static inline void turn_to(struct lab *lab, int second, int want)
{
	assert_int_equal(env_sleep_until(lab->ctx.env, (100 + second) * NSEC_PER_SEC), 0);
	assert_int_equal(lab_sample(lab), want);
}

static inline void turn(struct lab *lab, int second)
{
	turn_to(lab, second, 0);
}
#endif
