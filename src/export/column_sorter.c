/* Sorts rows by series and time, column by column, partly on disk: see column_sorter.h. */
#include "export/column_sorter.h"

#include "base/owned.h"

#include <string.h>

#define MERGE_BYTES (16u << 20) /* of all runs that are read at once */
#define MERGE_LEAST 64		/* points of each */
#define MERGE_MOST 4096
#define ROWS_LEAST 256

int column_sorter_init(struct column_sorter *s, size_t nr_columns)
{
	*s = (struct column_sorter){0};
	s->column = calloc(MAX(nr_columns, (size_t)1), sizeof(*s->column));
	if (!s->column)
		return -ENOMEM;
	s->nr_columns = nr_columns;
	return 0;
}

static void rows_free(struct column_sorter *s)
{
	for (size_t i = 0; i < s->nr_columns; i++) {
		free(s->column[i].value);
		free(s->column[i].there);
		s->column[i].value = NULL;
		s->column[i].there = NULL;
	}
	free(s->time);
	free(s->series);
	s->time = NULL;
	s->series = NULL;
	s->nr_rows = s->cap_rows = 0;
}

void column_sorter_release(struct column_sorter *s)
{
	rows_free(s);
	for (size_t i = 0; i < s->nr_columns; i++)
		free(s->column[i].run);
	free(s->column);
}

int column_sorter_reserve(struct column_sorter *s, size_t nr)
{
	size_t cap = MAX(MAX(2 * s->cap_rows, s->nr_rows + nr), (size_t)ROWS_LEAST);

	if (s->nr_rows + nr <= s->cap_rows)
		return 0;
	if (ARRAY_RESIZE(s->time, cap) < 0 || ARRAY_RESIZE(s->series, cap) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_columns; i++) {
		struct column_sorter_column *c = &s->column[i];

		if (ARRAY_RESIZE(c->value, cap) < 0 || ARRAY_RESIZE(c->there, cap) < 0)
			return -ENOMEM;
	}
	s->cap_rows = cap;
	return 0;
}

size_t column_sorter_size(const struct column_sorter *s)
{
	return s->nr_rows *
		(sizeof(*s->time) + sizeof(*s->series) +
			s->nr_columns * (sizeof(*s->column->value) + sizeof(*s->column->there)));
}

/* ---- runs ---- */

struct column_sorter_place {
	int64_t time;
	uint32_t series, row;
};

static int by_series(const void *a, const void *b)
{
	const struct column_sorter_place *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static int add_run(struct column_sorter_column *c, uint64_t at, uint64_t nr)
{
	if (ARRAY_ROOM(c->run, c->cap_runs, c->nr_runs + 1) < 0)
		return -ENOMEM;
	c->run[c->nr_runs++] = (struct column_sorter_run){at, nr};
	return 0;
}

static int flush_column(struct column_sorter_column *c, const struct column_sorter_place *place,
	size_t nr_rows, struct column_sorter_point *point, struct spool_file *f)
{
	size_t nr = 0;
	uint64_t at;
	int r;

	for (size_t i = 0; i < nr_rows; i++) {
		const struct column_sorter_place *p = &place[i];

		if (c->there[p->row])
			point[nr++] = (struct column_sorter_point){p->time, c->value[p->row], p->series};
	}
	if (!nr)
		return 0;
	r = spool_file_write(f, point, nr * sizeof(*point), &at);
	return r < 0 ? r : add_run(c, at, nr);
}

int column_sorter_flush(struct column_sorter *s, struct spool_file *f)
{
	_cleanup_(freep) struct column_sorter_place *place = NULL;
	_cleanup_(freep) struct column_sorter_point *point = NULL;
	int r = 0;

	if (!s->nr_rows)
		return 0;
	place = reallocarray(NULL, s->nr_rows, sizeof(*place));
	point = reallocarray(NULL, s->nr_rows, sizeof(*point));
	if (!place || !point)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_rows; i++)
		place[i] = (struct column_sorter_place){s->time[i], s->series[i], (uint32_t)i};
	qsort(place, s->nr_rows, sizeof(*place), by_series);
	for (size_t i = 0; r >= 0 && i < s->nr_columns; i++)
		r = flush_column(&s->column[i], place, s->nr_rows, point, f);
	rows_free(s);
	return r;
}

/* ---- merging ---- */

struct column_sorter_cursor {
	struct column_sorter_run left; /* in the file */
	struct column_sorter_point *point;
	size_t nr, at, cap, number;
};

static int cursor_fill(struct column_sorter_cursor *c, const struct spool_file *f)
{
	int r;

	c->nr = (size_t)MIN((uint64_t)c->cap, c->left.nr);
	c->at = 0;
	r = spool_file_read(f, c->point, c->nr * sizeof(*c->point), c->left.at);
	c->left.at += c->nr * sizeof(*c->point);
	c->left.nr -= c->nr;
	return r;
}

/* Among equal times the one that was flushed first comes first. */
static bool is_before(const struct column_sorter_cursor *a, const struct column_sorter_cursor *b)
{
	const struct column_sorter_point *x = &a->point[a->at], *y = &b->point[b->at];

	if (x->series != y->series)
		return x->series < y->series;
	if (x->time != y->time)
		return x->time < y->time;
	return a->number < b->number;
}

/* Moves the first one down to its place in the heap. */
static void heap_sink(struct column_sorter_cursor **heap, size_t nr, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < nr; i = child) {
		struct column_sorter_cursor *c = heap[i];

		if (child + 1 < nr && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], c))
			return;
		heap[i] = heap[child];
		heap[child] = c;
	}
}

static int merge(struct column_sorter_cursor **heap, size_t nr, const struct spool_file *f,
	int (*each)(void *arg, const struct column_sorter_point *p), void *arg)
{
	for (size_t i = nr / 2; i--;)
		heap_sink(heap, nr, i);
	while (nr) {
		struct column_sorter_cursor *c = heap[0];
		struct column_sorter_point p = c->point[c->at++];
		int r = each(arg, &p);

		if (r >= 0 && c->at == c->nr && c->left.nr)
			r = cursor_fill(c, f);
		if (r < 0)
			return r;
		if (c->at == c->nr)
			heap[0] = heap[--nr];
		heap_sink(heap, nr, 0);
	}
	return 0;
}

int column_sorter_merge(const struct column_sorter *s, size_t column, const struct spool_file *f,
	int (*each)(void *arg, const struct column_sorter_point *p), void *arg)
{
	const struct column_sorter_column *c = &s->column[column];
	size_t nr = c->nr_runs, room = MERGE_BYTES / sizeof(struct column_sorter_point) / MAX(nr, (size_t)1);
	size_t cap = MAX(MIN(room, (size_t)MERGE_MOST), (size_t)MERGE_LEAST);
	_cleanup_(freep) struct column_sorter_cursor *cursor = calloc(MAX(nr, (size_t)1), sizeof(*cursor));
	_cleanup_(freep) struct column_sorter_cursor **heap = calloc(MAX(nr, (size_t)1), sizeof(*heap));
	_cleanup_(freep) struct column_sorter_point *point =
		reallocarray(NULL, MAX(nr, (size_t)1) * cap, sizeof(*point));
	int r = 0;

	if (!cursor || !heap || !point)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		cursor[i] = (struct column_sorter_cursor){
			.left = c->run[i], .point = point + i * cap, .cap = cap, .number = i};
		heap[i] = &cursor[i];
		r = cursor_fill(&cursor[i], f);
	}
	return r < 0 ? r : merge(heap, nr, f, each, arg);
}
