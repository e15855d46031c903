/* Lives of processes: a bar from start to end, as thick as the CPU use at the time.
 *
 * A life is a thin line with a tick where it starts and one where it ends; the curve is an area around that
 * line. One that had not ended runs out of the picture without a tick. Its name stands after its end where
 * the lane is free, else on the bar if most of the bar stays visible, else before it, else it is left out:
 * thousands of bars still show a pattern, thousands of names do not. */
#include "draw/canvas.h"

#include "analysis/palette.h"

#include <math.h>

static double lane_height(const struct canvas *c)
{
	return c->plot.h / (double)MAX(c->f->nr_lanes, 1u);
}

static double curve_top(const struct chart_curve *c)
{
	double most = 0;

	for (size_t i = 0; i < c->nr; i++)
		if (isfinite(c->mean[i]))
			most = MAX(most, (double)c->mean[i]);
	return most;
}

/* What fills a lane: the maximum of all curves with a colour. The sum of all others would make each of them
 * too thin. */
static double thickest(const struct chart *f)
{
	double most = 0, others = 0;

	if (isfinite(f->y_most) && f->y_most > 0)
		return f->y_most;
	for (size_t k = 0; k < f->nr_curves; k++) {
		double top = curve_top(&f->curve[k]);

		if (f->curve[k].color == CHART_OTHERS)
			others = MAX(others, top);
		else
			most = MAX(most, top);
	}
	return most > 0 ? most : others > 0 ? others : 1;
}

struct timeline_life {
	double left, right, y, half; /* half of the lane, as far as a bar may reach */
	bool ended;
};

static uint32_t shade_of(const struct chart_span *s)
{
	return s->color == CHART_OTHERS ? PALETTE_SIZE : s->color % PALETTE_SIZE;
}

static struct timeline_life life_of(const struct canvas *c, const struct chart_span *s)
{
	double high = lane_height(c), end = isfinite(s->to_s) ? s->to_s : c->time.most;

	return (struct timeline_life){.left = canvas_x(c, MAX(s->from_s, c->time.least)),
		.right = canvas_x(c, MIN(end, c->time.most)),
		.y = c->plot.y + high * ((double)s->lane + 0.5),
		.half = high * (high > 8 ? 0.40 : 0.48),
		.ended = isfinite(s->to_s) && s->to_s <= c->time.most};
}

static void trace_thickness(
	struct canvas *c, const struct timeline_life *v, const struct chart_curve *curve, double full)
{
	double each = (c->time.most - c->time.least) / c->plot.w,
	       from = c->time.least + (v->left - c->plot.x) * each;
	size_t columns = MIN((size_t)((v->right - v->left) / c->pen.pixel) + 1, c->columns);
	size_t nr = curve_reduce(curve, from, from + (v->right - v->left) * each, columns, c->point);
	const struct drawn_point *p = c->point;
	cairo_t *cr = c->pen.cr;

	for (size_t start = 0, to; start < nr; start = to + 1) {
		for (to = start; to < nr && isfinite(p[to].mean); to++)
			;
		cairo_new_sub_path(cr);
		for (size_t i = start; i < to; i++)
			cairo_line_to(cr, MAX(v->left, MIN(v->right, canvas_x(c, p[i].time_s))),
				v->y - v->half * MIN(p[i].mean / full, 1.0));
		for (size_t i = to; i-- > start;)
			cairo_line_to(cr, MAX(v->left, MIN(v->right, canvas_x(c, p[i].time_s))),
				v->y + v->half * MIN(p[i].mean / full, 1.0));
		if (to > start)
			cairo_close_path(cr);
	}
}

static void trace_line(struct canvas *c, double x0, double y0, double x1, double y1)
{
	cairo_move_to(c->pen.cr, x0, y0);
	cairo_line_to(c->pen.cr, x1, y1);
}

static void trace_ends(struct canvas *c, const struct chart_span *s, const struct timeline_life *v)
{
	double tick = MAX(1, MIN(4.5, v->half));

	if (s->from_s >= c->time.least)
		trace_line(c, v->left, v->y - tick, v->left, v->y + tick);
	if (v->ended)
		trace_line(c, v->right, v->y - tick, v->right, v->y + tick);
}

enum trait { TRAIT_THICKNESS, TRAIT_LIFE, TRAIT_ENDS };

/* One trait of all lives of one colour is one path: thousands of them stay small in SVG. */
static void trace_trait(struct canvas *c, enum trait trait, uint32_t shade, double full)
{
	for (size_t k = 0; k < c->f->nr_spans; k++) {
		const struct chart_span *s = &c->f->span[k];
		struct timeline_life v;

		if (s->lane >= c->f->nr_lanes || shade_of(s) != shade)
			continue;
		v = life_of(c, s);
		if (!(v.right >= v.left))
			continue;
		if (trait == TRAIT_ENDS)
			trace_ends(c, s, &v);
		else if (trait == TRAIT_LIFE) /* however short, it is drawn */
			trace_line(c, v.left, v.y, MAX(v.right, v.left + 1), v.y);
		else if (s->curve < c->f->nr_curves)
			trace_thickness(c, &v, &c->f->curve[s->curve], full);
	}
}

static void draw_shade(struct canvas *c, uint32_t shade, double full)
{
	uint32_t color = pen_palette(&c->pen, shade == PALETTE_SIZE ? CHART_OTHERS : shade);

	trace_trait(c, TRAIT_THICKNESS, shade, full);
	pen_color(&c->pen, color, 0.75);
	cairo_fill(c->pen.cr);
	pen_color(&c->pen, color, 1);
	trace_trait(c, TRAIT_LIFE, shade, full);
	cairo_set_line_width(c->pen.cr, MAX(0.6, MIN(1.2, lane_height(c) * 0.16)));
	cairo_stroke(c->pen.cr);
	if (lane_height(c) < 5)
		return;
	trace_trait(c, TRAIT_ENDS, shade, full);
	cairo_set_line_width(c->pen.cr, 1.2);
	cairo_stroke(c->pen.cr);
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

/* `named` is as far as the names in this lane reach that stand behind their lives. */
static void name_life(struct canvas *c, size_t k, double *named)
{
	const struct chart_span *s = &c->f->span[k];
	struct timeline_life v = life_of(c, s);
	double width = pen_measure(&c->pen, s->name, FACE_SMALL), most = MIN(width, 260);
	double base = v.y + face_size(&c->pen, FACE_SMALL) * 0.35;
	struct words w = {.text = s->name, .y = base, .most = most, .face = FACE_SMALL};

	if (!(v.right >= v.left))
		return;
	w.color = pen_ink(&c->pen, INK_TEXT);
	if (v.right + most + 8 <= free_until(c, k)) {
		w.x = v.right + 6;
		*named = w.x + most + 6;
	} else if (v.right - v.left >= (s->color == CHART_OTHERS ? 1.7 : 1.2) * (most + 12)) {
		w.x = v.left + 8;
		pen_color(&c->pen, pen_ink(&c->pen, INK_PAPER), 0.82);
		pen_box(&c->pen,
			(struct rect){
				w.x - 3, base - canvas_line(c) * 0.72, most + 6, canvas_line(c) * 0.95});
	} else if (v.left - most - 8 >= MAX(free_from(c, k), *named)) {
		w.x = v.left - 6;
		w.align = 1;
	} else {
		return;
	}
	pen_write(&c->pen, &w);
}

void draw_timeline(struct canvas *c)
{
	double full = thickest(c->f), *named = c->scratch;

	for (uint32_t shade = 0; shade <= PALETTE_SIZE; shade++)
		draw_shade(c, shade, full);
	if (lane_height(c) < canvas_line(c) * 0.72 || c->f->nr_lanes > 4 * c->columns)
		return;
	for (uint32_t i = 0; i < c->f->nr_lanes; i++)
		named[i] = c->plot.x;
	for (size_t k = 0; k < c->f->nr_spans; k++)
		if (c->f->span[k].lane < c->f->nr_lanes)
			name_life(c, k, &named[c->f->span[k].lane]);
}

void timeline_caption(struct canvas *c)
{
	char text[UNITS_SIZE];

	snprintf(c->labels.caption, sizeof(c->labels.caption), "thickness: %.30s, up to %s",
		c->f->quantity ? c->f->quantity : "use", label_of_number(text, &c->labels, thickest(c->f)));
}
