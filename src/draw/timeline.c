/* Lives of processes: a bar from birth to death, as thick as the CPU it used at the time.
 *
 * A life is a thin line with a tick where it was born and one where it died; the curve is an area around that
 * line. One that had not ended runs out of the picture without a tick. Its name stands behind its death where
 * nobody follows in the lane, else upon the bar where that is long enough, else before it, else nowhere:
 * thousands of lives make a texture that is worth seeing, and thousands of names are not. */
#include "draw/canvas.h"

#include <math.h>

static double lane_height(const struct canvas *c)
{
	return c->plot.h / (double)MAX(c->f->nr_lanes, 1u);
}

/* What fills a lane: the most that any span reaches. */
static double thickest(const struct chart *f)
{
	double most = 0;

	if (isfinite(f->y_most) && f->y_most > 0)
		return f->y_most;
	for (size_t k = 0; k < f->nr_curves; k++)
		for (size_t i = 0; i < f->curve[k].nr; i++)
			if (isfinite(f->curve[k].mean[i]))
				most = MAX(most, (double)f->curve[k].mean[i]);
	return most > 0 ? most : 1;
}

struct life {
	double left, right, y, half; /* half of the lane, as far as a bar may reach */
	uint32_t color;
	bool ended;
};

static struct life life_of(const struct canvas *c, const struct chart_span *s)
{
	double high = lane_height(c), end = isfinite(s->to_s) ? s->to_s : c->time.most;

	return (struct life){.left = canvas_x(c, MAX(s->from_s, c->time.least)),
		.right = canvas_x(c, MIN(end, c->time.most)),
		.y = c->plot.y + high * ((double)s->lane + 0.5),
		.half = high * (high > 8 ? 0.40 : 0.48),
		.color = pen_palette(&c->pen, s->color),
		.ended = isfinite(s->to_s) && s->to_s <= c->time.most};
}

static void draw_thickness(
	struct canvas *c, const struct life *v, const struct chart_curve *curve, double full)
{
	size_t nr = curve_reduce(curve, c->time.least, c->time.most, c->columns, c->point);
	cairo_t *cr = c->pen.cr;

	for (size_t from = 0, to; from < nr; from = to + 1) {
		const struct point *p = c->point;

		for (to = from; to < nr && isfinite(p[to].mean); to++)
			;
		for (size_t i = from; i < to; i++)
			cairo_line_to(cr, MAX(v->left, MIN(v->right, canvas_x(c, p[i].time_s))),
				v->y - v->half * MIN(p[i].mean / full, 1.0));
		for (size_t i = to; i-- > from;)
			cairo_line_to(cr, MAX(v->left, MIN(v->right, canvas_x(c, p[i].time_s))),
				v->y + v->half * MIN(p[i].mean / full, 1.0));
		if (to > from)
			cairo_close_path(cr);
		cairo_new_sub_path(cr);
	}
	pen_color(&c->pen, v->color, 0.75);
	cairo_fill(cr);
}

static void draw_life(struct canvas *c, const struct chart_span *s, double full)
{
	struct life v = life_of(c, s);
	double thin = MAX(0.6, MIN(1.4, v.half * 0.4)), tick = MAX(1, MIN(4.5, v.half));

	if (!(v.right >= v.left))
		return;
	if (s->curve < c->f->nr_curves)
		draw_thickness(c, &v, &c->f->curve[s->curve], full);
	pen_color(&c->pen, v.color, 1);
	/* However short, it was there. */
	pen_line(&c->pen, v.left, v.y, MAX(v.right, v.left + 1), v.y, thin);
	if (lane_height(c) < 4)
		return;
	if (s->from_s >= c->time.least)
		pen_line(&c->pen, v.left, v.y - tick, v.left, v.y + tick, 1.2);
	if (v.ended)
		pen_line(&c->pen, v.right, v.y - tick, v.right, v.y + tick, 1.2);
}

/* Where the next life in the same lane begins, and where the one before ended: spans of a lane come in the
 * order of time. */
static double free_until(const struct canvas *c, size_t k)
{
	for (size_t i = k + 1; i < c->f->nr_spans; i++)
		if (c->f->span[i].lane == c->f->span[k].lane)
			return canvas_x(c, c->f->span[i].from_s);
	return c->plot.x + c->plot.w;
}

static double free_from(const struct canvas *c, size_t k)
{
	for (size_t i = k; i-- > 0;)
		if (c->f->span[i].lane == c->f->span[k].lane)
			return life_of(c, &c->f->span[i]).right;
	return c->plot.x;
}

static void name_life(struct canvas *c, size_t k)
{
	const struct chart_span *s = &c->f->span[k];
	struct life v = life_of(c, s);
	double width = pen_measure(&c->pen, s->name, FACE_SMALL), most = MIN(width, 260);
	double base = v.y + face_size(&c->pen, FACE_SMALL) * 0.35;
	struct words w = {.text = s->name, .y = base, .most = most, .face = FACE_SMALL, .halo = true};

	if (!(v.right >= v.left))
		return;
	w.color = pen_ink(&c->pen, INK_TEXT);
	if (v.right + most + 8 <= free_until(c, k)) {
		w.x = v.right + 6;
	} else if (v.right - v.left >= most + 12) {
		w.x = v.left + 6;
	} else if (v.left - most - 8 >= free_from(c, k)) {
		w.x = v.left - 6;
		w.align = 1;
	} else {
		return;
	}
	pen_write(&c->pen, &w);
}

void draw_timeline(struct canvas *c)
{
	double full = thickest(c->f);

	for (size_t k = 0; k < c->f->nr_spans; k++)
		if (c->f->span[k].lane < c->f->nr_lanes)
			draw_life(c, &c->f->span[k], full);
	if (lane_height(c) < canvas_line(c) * 0.72)
		return;
	for (size_t k = 0; k < c->f->nr_spans; k++)
		if (c->f->span[k].lane < c->f->nr_lanes)
			name_life(c, k);
}
