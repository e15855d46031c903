/* Rows that stand for more than a tick: of each line the mean of levels and rates, the greatest peak, the
 * last of all else, over the ticks of a window. A rate weighs as much as the time it is of, since ticks may
 * be late or missed: the mean is what the counter grew by, over the time that took. Windows are counted from
 * the start of the run, so that those of different nodes are the same; a row is dated by its window's
 * beginning, or by its last tick. An instance that left within a window has a row in it. */
#include "query/tables_internal.h"

#include "base/owned.h"

#include <string.h>

static int window_reserve(struct data_table_own *fr, uint32_t nr)
{
	struct window *w = &fr->window;
	uint32_t cap = w->lines.cap;

	if (!w->weight) {
		w->weight = calloc(fr->nr, sizeof(double *));
		if (!w->weight)
			return -ENOMEM;
	}
	if (data_table_lines_reserve(fr, &w->lines, nr) < 0)
		return -ENOMEM;
	for (size_t i = fr->nr_keys; i < fr->nr && w->lines.cap > cap; i++) {
		if (fr->own[i].resample == RESAMPLE_MEAN && ARRAY_RESIZE(w->weight[i], w->lines.cap) < 0) {
			w->lines.cap = cap; /* the others are only larger than they need be */
			return -ENOMEM;
		}
	}
	return 0;
}

static int window_line(struct data_table_own *fr, uint32_t identity, uint32_t *ret)
{
	struct window *w = &fr->window;
	uint32_t line = idmap_get(&w->of, identity);
	int r;

	*ret = line;
	if (line != IDMAP_NONE)
		return 0;
	*ret = line = w->lines.nr;
	r = window_reserve(fr, line + 1);
	if (r >= 0)
		r = idmap_put(&w->of, identity, line);
	if (r < 0)
		return r;
	w->lines.nr++;
	for (size_t i = KEY_INSTANCE; i < fr->nr; i++)
		bit_put(w->lines.col[i].known, line, false);
	return 0;
}

/* Which line of the window each of the present ones is. */
static int window_map(struct data_table_own *fr)
{
	struct window *w = &fr->window;
	int r = 0;

	if (w->open && w->layout == fr->layout)
		return 0;
	if (ARRAY_ROOM(w->map, w->map_cap, fr->now.nr) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < fr->now.nr && r >= 0; i++)
		r = window_line(fr, fr->line[i].identity, &w->map[i]);
	w->layout = fr->layout;
	w->open = true;
	return r;
}

static void take_mean(struct data_table_own *fr, size_t field)
{
	struct window *w = &fr->window;
	const struct column *c = fr->own[field].bound;
	const struct vector *from = &fr->now.col[field];
	struct vector *to = &w->lines.col[field];
	double *weight = w->weight[field], more = c && c->expr.nr_rates ? (double)MAX(fr->span_ns, 1) : 1;

	for (uint32_t i = 0; i < fr->now.nr; i++) {
		uint32_t line = w->map[i];

		if (!bit_get(from->known, i))
			continue;
		if (!bit_get(to->known, line)) {
			to->real[line] = 0;
			weight[line] = 0;
		}
		to->real[line] += from->real[i] * more;
		weight[line] += more;
		bit_put(to->known, line, true);
	}
}

static bool is_greater(
	enum field_type type, const struct vector *a, uint32_t i, const struct vector *b, uint32_t j)
{
	return type == FIELD_REAL ? a->real[i] > b->real[j] : a->integer[i] > b->integer[j];
}

static void take_one(struct data_table_own *fr, size_t field)
{
	struct window *w = &fr->window;
	const struct column_own *c = &fr->own[field];
	const struct vector *from = &fr->now.col[c->source == SOURCE_GREATEST ? c->of : field];
	struct vector *to = &w->lines.col[field];
	size_t size = field_size(fr->field[field].type);
	bool greatest = field >= fr->nr_keys && c->resample == RESAMPLE_MAX;

	for (uint32_t i = 0; i < fr->now.nr; i++) {
		uint32_t line = w->map[i];

		if (!bit_get(from->known, i) ||
			(greatest && bit_get(to->known, line) &&
				!is_greater(fr->field[field].type, from, i, to, line)))
			continue;
		memcpy((uint8_t *)to->any + line * size, (uint8_t *)from->any + i * size, size);
		bit_put(to->known, line, true);
	}
}

int data_table_window_add(struct reading *f, struct data_table_own *fr, int64_t time_ns)
{
	int64_t index = (f->offset_ns + time_ns) / f->of->options.every_ns;
	int r = fr->window.open && index != fr->window.index ? data_table_window_close(f, fr) : 0;

	fr->window.index = index;
	fr->window.last_ns = time_ns;
	if (r >= 0)
		r = window_map(fr);
	if (r < 0)
		return r;
	fr->window.lines.host = fr->now.host;
	for (size_t i = KEY_INSTANCE; i < fr->nr && fr->now.nr; i++)
		if (i >= fr->nr_keys && fr->own[i].resample == RESAMPLE_MEAN)
			take_mean(fr, i);
		else
			take_one(fr, i);
	return 0;
}

int data_table_window_close(struct reading *f, struct data_table_own *fr)
{
	struct window *w = &fr->window;
	int64_t start = f->of->start_ns[f->recording], time_ns;
	int r;

	if (!w->open)
		return 0;
	for (size_t i = fr->nr_keys; i < fr->nr; i++)
		for (uint32_t line = 0; fr->own[i].resample == RESAMPLE_MEAN && line < w->lines.nr; line++)
			if (bit_get(w->lines.col[i].known, line))
				w->lines.col[i].real[line] /= w->weight[i][line];
	time_ns = f->of->options.date_last ? f->offset_ns + w->last_ns : w->index * f->of->options.every_ns;
	w->lines.time_ns = start - f->offset_ns + time_ns;
	w->lines.has_time = start > 0;
	w->lines.elapsed = (double)time_ns / 1e9;
	r = data_table_lines_push(fr, (uint32_t)f->recording, &w->lines);
	w->lines.nr = 0;
	w->open = false;
	idmap_release(&w->of);
	return r;
}

void data_table_window_release(struct data_table_own *fr)
{
	struct window *w = &fr->window;

	for (size_t i = 0; w->weight && i < fr->nr; i++)
		free(w->weight[i]);
	free(w->weight);
	free(w->map);
	idmap_release(&w->of);
	data_table_lines_release(fr, &w->lines);
}
