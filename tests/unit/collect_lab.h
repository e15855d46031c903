/* A collector as the engine would hold it, for the unit tests of collectors: joins, reasons and cells can be
 * asked for by name. */
#ifndef TESTS_COLLECT_LAB_H
#define TESTS_COLLECT_LAB_H

#include "collect/collector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define INVALID INT64_MIN
#define LAB_ROWS 300

/* A collector as the engine would hold it. */
struct lab {
	struct collect_context ctx; /* first: the callbacks find the lab by it */
	const struct collector *collector;
	struct table table;
	struct feed feed;
	void *state;
	char name[LAB_ROWS][64];
	char about[LAB_ROWS][400]; /* "key=value;" for each */
	pid_t member[16];
	uint32_t next_id;
	enum availability availability[METRICS_MAX];
	unsigned whys;		    /* how often a reason was given */
	char why[200], remedy[200]; /* the last given */
};

static inline int lab_join_about(
	struct collect_context *ctx, const char *name, const struct about *about, size_t nr)
{
	struct lab *lab = (struct lab *)ctx;
	uint32_t row = 0;

	while (row < lab->table.cap && lab->table.id[row] != ROW_FREE)
		row++;
	if (row == lab->table.cap)
		return -ENOSPC;
	table_bind(&lab->table, row, ++lab->next_id);
	snprintf(lab->name[row], sizeof(lab->name[row]), "%s", name);
	lab->about[row][0] = 0;
	for (size_t i = 0, at = 0; i < nr && at < sizeof(lab->about[row]); i++)
		at += (size_t)snprintf(lab->about[row] + at, sizeof(lab->about[row]) - at, "%s=%s;",
			about[i].key, about[i].value);
	return (int)row;
}

static inline int lab_join(struct collect_context *ctx, const char *name)
{
	return lab_join_about(ctx, name, NULL, 0);
}

static inline int lab_members(
	struct collect_context *ctx, int (*fn)(void *arg, const struct collect_member *m), void *arg)
{
	struct lab *lab = (struct lab *)ctx;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lab->member) && lab->member[i] && !r; i++)
		r = fn(arg,
			&(struct collect_member){.pid = lab->member[i], .id = (uint32_t)i + 1, .groups = 1});
	return r;
}

static inline void lab_leave(struct collect_context *ctx, uint32_t row)
{
	struct lab *lab = (struct lab *)ctx;

	table_unbind(&lab->table, row);
	lab->name[row][0] = 0;
}

static inline void lab_why(struct collect_context *ctx, size_t metric, enum availability availability,
	const char *reason, const char *remedy)
{
	struct lab *lab = (struct lab *)ctx;

	lab->availability[metric] = availability;
	lab->whys++;
	snprintf(lab->why, sizeof(lab->why), "%s", reason);
	snprintf(lab->remedy, sizeof(lab->remedy), "%s", remedy ? remedy : "");
}

static inline void lab_init(struct lab *lab, struct env *env, const char *name)
{
	*lab = (struct lab){.collector = collector_find(name)};
	assert_non_null(lab->collector);
	lab->ctx = (struct collect_context){.env = env,
		.table = &lab->table,
		.feed = &lab->feed,
		.join = lab_join,
		.join_about = lab_join_about,
		.members = lab_members,
		.medium = true,
		.leave = lab_leave,
		.why = lab_why};
	for (size_t i = 0; i < lab->collector->nr_metrics; i++)
		lab->ctx.map.col[i] = (int8_t)i;
	assert_int_equal(table_init(&lab->table, (uint32_t)lab->collector->nr_metrics,
				 MAX(lab->collector->max_rows, 1u)),
		0);
	lab->state = calloc(1, lab->collector->state_size);
	assert_non_null(lab->state);
}

static inline void lab_release(struct lab *lab)
{
	lab->collector->close(lab->state, &lab->ctx);
	free(lab->state);
	table_release(&lab->table);
}

static inline void lab_open(struct lab *lab, struct env *env, const char *name)
{
	lab_init(lab, env, name);
	assert_int_equal(lab->collector->open(lab->state, &lab->ctx), 0);
	assert_int_equal(lab->table.nr_touched, 0);
}

static inline int lab_sample(struct lab *lab)
{
	int r;

	table_settle(&lab->table);
	r = lab->collector->sample(lab->state, &lab->ctx);
	return r;
}

static inline struct env *film_of(const char *kind, const char *name)
{
	struct env *env = NULL;
	char path[400];
	unsigned line;

	snprintf(path, sizeof(path), "%s/%s/%s.txt", getenv("TACHO_TESTS"), kind, name);
	assert_int_equal(env_film(path, &env, &line), 0);
	return env;
}

static inline int row_of(const struct lab *lab, const char *instance)
{
	for (int i = 0; i < LAB_ROWS; i++)
		if (!strcmp(lab->name[i], instance))
			return i;
	return -1;
}

static inline size_t index_of(const struct lab *lab, const char *metric)
{
	size_t i = 0;

	while (i < lab->collector->nr_metrics && strcmp(lab->collector->metric[i].name, metric))
		i++;
	if (i == lab->collector->nr_metrics)
		fail_msg("no metric %s", metric);
	return i;
}

static inline int64_t value(struct lab *lab, const char *instance, const char *metric)
{
	int row = row_of(lab, instance), col = lab->ctx.map.col[index_of(lab, metric)];

	if (row < 0)
		fail_msg("no instance %s", instance);
	return lab->table.valid[row] >> col & 1 ? table_row(&lab->table, (uint32_t)row)[col] : INVALID;
}

static inline int64_t node(struct lab *lab, const char *metric)
{
	return value(lab, "node", metric);
}

static inline enum availability availability(const struct lab *lab, const char *metric)
{
	return lab->availability[index_of(lab, metric)];
}
#endif
