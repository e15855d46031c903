/* Curves: lines with their range behind them, and areas upon one another.
 *
 * The line is the mean; the band behind it goes from the minimum to the maximum of each column, and has an
 * edge, because a peak of one sample in a week is a spike that is narrower than a pixel. Nothing is drawn
 * across a gap. A point with a gap on both sides is a dot; where there are few points each has one, to show
 * where something was measured and where the line only connects. */
#include "draw/canvas.h"

#include <math.h>

#define LINE_WIDTH 1.5
#define DOT_ROOM 14 /* points farther apart than that have dots */

/* ---- paths without points that lie on the way ---- */

struct trace {
	cairo_t *cr;
	double from_x, from_y, x, y; /* the last corner; the last point */
	bool pending;
};

static void trace_flush(struct trace *t)
{
	if (t->pending)
		cairo_line_to(t->cr, t->x, t->y);
	t->pending = false;
}

static void trace_move(struct trace *t, double x, double y, bool join)
{
	if (join)
		cairo_line_to(t->cr, x, y);
	else
		cairo_move_to(t->cr, x, y);
	*t = (struct trace){t->cr, x, y, x, y, false};
}

static void trace_to(struct trace *t, double x, double y)
{
	double ux = x - t->from_x, uy = y - t->from_y, length = hypot(ux, uy);
	double off = length > 0 ? fabs(ux * (t->y - t->from_y) - uy * (t->x - t->from_x)) / length : 0;
	bool onward = (t->x - t->from_x) * (x - t->x) + (t->y - t->from_y) * (y - t->y) >= 0;

	if (t->pending && (off > 0.002 || !onward)) {
		trace_flush(t);
		t->from_x = t->x;
		t->from_y = t->y;
	}
	t->x = x;
	t->y = y;
	t->pending = true;
}

/* A value that is held goes on up to the next one. */
static void trace_on(struct trace *t, double x, double y, bool held)
{
	if (held)
		trace_to(t, x, t->y);
	trace_to(t, x, y);
}

/* ---- lines ---- */

static void fill_range(struct canvas *c, const struct drawn_point *p, size_t nr, uint32_t color, double alpha)
{
	struct trace t = {.cr = c->pen.cr};

	trace_move(&t, canvas_x(c, p[0].time_s), canvas_y(c, p[0].high), false);
	for (size_t i = 1; i < nr; i++)
		trace_to(&t, canvas_x(c, p[i].time_s), canvas_y(c, p[i].high));
	trace_flush(&t);
	trace_move(&t, canvas_x(c, p[nr - 1].time_s), canvas_y(c, p[nr - 1].low), true);
	for (size_t i = nr - 1; i-- > 0;)
		trace_to(&t, canvas_x(c, p[i].time_s), canvas_y(c, p[i].low));
	trace_flush(&t);
	cairo_close_path(t.cr);
	pen_color(&c->pen, color, alpha);
	cairo_fill_preserve(t.cr);
	pen_color(&c->pen, color, alpha * 1.6);
	cairo_set_line_width(t.cr, c->pen.pixel);
	cairo_stroke(t.cr);
}

static void trace_means(struct canvas *c, const struct drawn_point *p, size_t nr, bool held)
{
	struct trace t = {.cr = c->pen.cr};

	trace_move(&t, canvas_x(c, p[0].time_s), canvas_y(c, p[0].mean), false);
	for (size_t i = 1; i < nr; i++)
		trace_on(&t, canvas_x(c, p[i].time_s), canvas_y(c, p[i].mean), held);
	trace_flush(&t);
}

static void fill_below(struct canvas *c, const struct drawn_point *p, size_t nr, uint32_t color, bool held)
{
	double floor_y = c->plot.y + c->plot.h;

	trace_means(c, p, nr, held);
	cairo_line_to(c->pen.cr, canvas_x(c, p[nr - 1].time_s), floor_y);
	cairo_line_to(c->pen.cr, canvas_x(c, p[0].time_s), floor_y);
	cairo_close_path(c->pen.cr);
	pen_color(&c->pen, color, 0.13);
	cairo_fill(c->pen.cr);
}

static void dot(struct canvas *c, const struct drawn_point *p, double radius)
{
	double x = canvas_x(c, p->time_s), y = canvas_y(c, p->mean);

	cairo_new_sub_path(c->pen.cr);
	cairo_arc(c->pen.cr, x, y, radius, 0, 2 * M_PI);
	cairo_fill(c->pen.cr);
}

/* Points with nothing missing between them. */
static void draw_run(struct canvas *c, const struct chart_curve *curve, const struct drawn_point *p,
	size_t nr, bool ranges)
{
	uint32_t color = pen_palette(&c->pen, curve->color);
	double room = canvas_x(c, p[nr - 1].time_s) - canvas_x(c, p[0].time_s);
	bool dots = nr == 1 || room / (double)(nr - 1) > DOT_ROOM;

	if (ranges)
		fill_range(c, p, nr, color, c->f->nr_curves > 4 ? 0.16 : 0.25);
	if (curve->filled && nr > 1)
		fill_below(c, p, nr, color, curve->held);
	pen_color(&c->pen, color, 1);
	for (size_t i = 0; dots && i < nr; i++)
		dot(c, &p[i], nr == 1 ? 2.2 : 1.9);
	if (nr == 1)
		return;
	if (curve->dashed)
		pen_dash(&c->pen, 5, 3);
	trace_means(c, p, nr, curve->held);
	/* Where it goes up and down in every pixel, a thinner one leaves more to be seen of the others. */
	cairo_set_line_width(c->pen.cr, ranges || c->f->nr_curves > 8 ? LINE_WIDTH * 0.75 : LINE_WIDTH);
	cairo_stroke(c->pen.cr);
	pen_dash(&c->pen, 0, 0);
}

static bool has_ranges(const struct canvas *c, const struct drawn_point *p, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (isfinite(p[i].mean) && canvas_y(c, p[i].low) - canvas_y(c, p[i].high) > 0.3)
			return true;
	return false;
}

void draw_lines(struct canvas *c)
{
	cairo_set_line_join(c->pen.cr, CAIRO_LINE_JOIN_ROUND);
	cairo_set_line_cap(c->pen.cr, CAIRO_LINE_CAP_BUTT);
	/* The first is what matters most: it comes last, on top. */
	for (size_t k = c->f->nr_curves; k-- > 0;) {
		const struct chart_curve *curve = &c->f->curve[k];
		size_t nr = curve_reduce(curve, c->time.least, c->time.most, c->columns, c->point);
		bool ranges = has_ranges(c, c->point, nr);

		for (size_t from = 0, to; from < nr; from = to + 1) {
			for (to = from; to < nr && isfinite(c->point[to].mean); to++)
				;
			if (to > from)
				draw_run(c, curve, c->point + from, to - from, ranges);
		}
	}
}

/* ---- areas upon one another ---- */

static double column_x(const struct canvas *c, size_t k)
{
	return c->plot.x + c->plot.w * ((double)k + 0.5) / (double)c->columns;
}

/* The columns from..to, between two heights; the upper edge has a line of its own. */
static void fill_columns(struct canvas *c, size_t from, size_t to, const double *below, const double *above,
	uint32_t color, double alpha)
{
	struct trace t = {.cr = c->pen.cr};

	/* A single column has a width, too. */
	double left = column_x(c, from) - (to - from == 1 ? 0.5 : 0), right = column_x(c, to - 1) + 0.5;

	trace_move(&t, left, canvas_y(c, above[from]), false);
	for (size_t k = from + 1; k < to; k++)
		trace_to(&t, column_x(c, k), canvas_y(c, above[k]));
	trace_to(&t, right, canvas_y(c, above[to - 1]));
	trace_flush(&t);
	trace_move(&t, right, canvas_y(c, below[to - 1]), true);
	for (size_t k = to; k-- > from + 1;)
		trace_to(&t, column_x(c, k), canvas_y(c, below[k]));
	trace_to(&t, left, canvas_y(c, below[from]));
	trace_flush(&t);
	cairo_close_path(t.cr);
	pen_color(&c->pen, color, alpha);
	cairo_fill(t.cr);
}

static void edge_columns(struct canvas *c, size_t from, size_t to, const double *above, uint32_t color)
{
	struct trace t = {.cr = c->pen.cr};

	trace_move(&t, column_x(c, from), canvas_y(c, above[from]), false);
	for (size_t k = from + 1; k < to; k++)
		trace_to(&t, column_x(c, k), canvas_y(c, above[k]));
	trace_flush(&t);
	pen_color(&c->pen, color, 1);
	cairo_set_line_width(t.cr, 0.8);
	cairo_stroke(t.cr);
}

/* Next stretch of columns with values at or after *from; false when there are no more. */
static bool next_stretch(const double *value, size_t nr, size_t *from, size_t *ret_to)
{
	while (*from < nr && !isfinite(value[*from]))
		++*from;
	for (*ret_to = *from; *ret_to < nr && isfinite(value[*ret_to]);)
		++*ret_to;
	return *ret_to > *from;
}

static void stack_one(
	struct canvas *c, const struct chart_curve *curve, double *value, double *below, double *above)
{
	uint32_t color = pen_palette(&c->pen, curve->color);

	curve_resample(curve, c->time.least, c->time.most, c->columns, value);
	for (size_t k = 0; k < c->columns; k++)
		above[k] = below[k] + (isfinite(value[k]) && value[k] > 0 ? value[k] : 0);
	for (size_t from = 0, to; next_stretch(value, c->columns, &from, &to); from = to) {
		fill_columns(c, from, to, below, above, color, 0.72);
		edge_columns(c, from, to, above, color);
	}
	for (size_t k = 0; k < c->columns; k++)
		below[k] = above[k];
}

/* The areas are means. The largest sum in each column is drawn above them, in grey. */
void draw_stack(struct canvas *c)
{
	double *below = c->scratch, *above = below + c->columns, *value = above + c->columns,
	       *most = value + c->columns;
	const struct chart *f = c->f;
	bool peaks = curve_highs(f->total, c->time.least, c->time.most, c->columns, most) ||
		curves_most(f->curve, f->nr_curves, c->time.least, c->time.most, c->columns, most);

	for (size_t k = 0; k < c->columns; k++)
		below[k] = 0;
	for (size_t k = 0; k < c->f->nr_curves; k++)
		stack_one(c, &c->f->curve[k], value, below, above);
	for (size_t k = 0; peaks && k < c->columns; k++)
		most[k] = isfinite(most[k]) ? MAX(most[k], below[k]) : NAN;
	for (size_t from = 0, to; peaks && next_stretch(most, c->columns, &from, &to); from = to) {
		fill_columns(c, from, to, below, most, pen_ink(&c->pen, INK_OTHERS), 0.45);
		edge_columns(c, from, to, most, pen_ink(&c->pen, INK_OTHERS));
	}
}
