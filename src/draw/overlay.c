/* Annotations inside a chart: phases, events, limits, peaks.
 *
 * Names of phases and events have a strip of their own above the plot, so that they never cover a curve.
 * Labels within the plot take their places one after the other and look for one that is free. */
#include "draw/canvas.h"

#include <math.h>

#define MARK_ROWS 2
#define MARK_WIDTH 170.0 /* of a label among others */
#define MARKS_FEW 2
#define LANES_HEIGHT 240.0 /* of a chart with room for three rows of names of phases */
#define NAME_LEAST 22.0

static bool is_inside(const struct canvas *c, double time_s)
{
	return time_s >= c->time.least && time_s <= c->time.most;
}

/* ---- phases ---- */

uint32_t canvas_lanes(const struct canvas *c)
{
	return MIN(c->f->nr_band_lanes, c->all.h > LANES_HEIGHT ? 3u : 2u);
}

double bands_height(const struct canvas *c)
{
	return canvas_lanes(c) * (canvas_line(c) + 1);
}

static void name_band(struct canvas *c, const struct chart_band *b, double left, double width)
{
	double line = canvas_line(c) + 1, top = c->plot.y - line * (canvas_lanes(c) - b->lane);

	pen_color(&c->pen, pen_ink(&c->pen, INK_BAND), b->odd ? 0.10 : 0.20);
	pen_box(&c->pen, (struct rect){left, top, width, line});
	if (width < NAME_LEAST)
		return;
	pen_write(&c->pen,
		&(struct words){.text = b->label,
			.x = left + 5,
			.y = top + line * 0.74,
			.most = width - 8,
			.face = FACE_SMALL,
			.color = pen_ink(&c->pen, INK_TEXT)});
}

/* Within the plot the outer phases are tinted, and those within them a little. */
void draw_bands(struct canvas *c)
{
	for (size_t k = 0; k < c->f->nr_bands; k++) {
		const struct chart_band *b = &c->f->band[k];
		double left = canvas_x(c, MAX(b->from_s, c->time.least));
		double width = canvas_x(c, MIN(b->to_s, c->time.most)) - left;

		if (!(width > 0) || !(b->from_s <= c->time.most))
			continue;
		pen_color(&c->pen, pen_ink(&c->pen, INK_BAND), (b->odd ? 0.035 : 0.09) / (b->lane ? 3 : 1));
		pen_box(&c->pen, (struct rect){left, c->plot.y, width, c->plot.h});
		if (c->strip.h > 0 && b->lane < canvas_lanes(c))
			name_band(c, b, left, width);
	}
}

/* ---- events ---- */

struct mark_rows {
	double end[MARK_ROWS]; /* up to where each has labels, the lowest first */
	size_t nr;
};

/* In the lowest row with room, or, when the next event is so near that its label would have none there, in
 * the highest whose line would cross no label below it. */
static size_t row_for(const struct mark_rows *rows, double left, double right, double x, double next_x)
{
	size_t best = rows->nr;

	for (size_t row = 0; row < rows->nr; row++) {
		if (left >= rows->end[row])
			best = row;
		if (best == 0 && next_x > right + 3)
			return 0;
		if (MIN(left, x) < rows->end[row])
			break;
	}
	return best;
}

/* To the right of its line, or to the left of it at the right end. */
static void name_mark(
	struct canvas *c, const struct chart_mark *m, double x, double next_x, struct mark_rows *rows)
{
	double line = canvas_line(c), bottom = c->plot.y - bands_height(c), y;
	double most = c->f->nr_marks > MARKS_FEW ? MARK_WIDTH : MAX(MARK_WIDTH, c->plot.w * 0.45);
	double width = MIN(pen_measure(&c->pen, m->label, FACE_SMALL), most), left = x + 3;
	size_t row;

	if (left + width > c->plot.x + c->plot.w)
		left = x - 3 - width;
	row = row_for(rows, left, left + width, x, next_x);
	if (row >= rows->nr)
		return;
	y = bottom - line * (double)row;
	rows->end[row] = left + width + 8;
	pen_write(&c->pen,
		&(struct words){.text = m->label,
			.x = left,
			.y = y - line * 0.27,
			.most = width + 1,
			.face = FACE_SMALL,
			.color = pen_ink(&c->pen, INK_MARK)});
	pen_color(&c->pen, pen_ink(&c->pen, INK_MARK), 0.8);
	pen_line(&c->pen, x, y - line + 3, x, bottom, 0.8);
}

static double next_mark_x(const struct canvas *c, size_t k)
{
	return k + 1 < c->f->nr_marks && is_inside(c, c->f->mark[k + 1].time_s)
		? canvas_x(c, c->f->mark[k + 1].time_s)
		: INFINITY;
}

void draw_marks(struct canvas *c)
{
	double line = canvas_line(c), last = -INFINITY;
	double room = MAX(0, c->strip.h - bands_height(c));
	struct mark_rows rows = {.end = {c->plot.x - 40, c->plot.x - 40}, .nr = (size_t)(room / line + 0.01)};

	rows.nr = MIN(rows.nr, (size_t)MARK_ROWS);
	for (size_t k = 0; k < c->f->nr_marks; k++) {
		const struct chart_mark *m = &c->f->mark[k];
		double x = canvas_x(c, m->time_s);

		/* Lines that are closer together than can be seen are drawn as one. */
		if (!is_inside(c, m->time_s) || fabs(x - last) < 1)
			continue;
		last = x;
		pen_color(&c->pen, pen_ink(&c->pen, INK_MARK), 0.9);
		pen_dash(&c->pen, 3, 3);
		pen_line(&c->pen, x, c->plot.y, x, c->plot.y + c->plot.h, 0.9);
		pen_dash(&c->pen, 0, 0);
		if (m->label && *m->label)
			name_mark(c, m, x, next_mark_x(c, k), &rows);
	}
}

/* ---- limits ---- */

static struct rect text_box(const struct canvas *c, double x, double base, double width)
{
	double size = face_size(&c->pen, FACE_SMALL);

	return (struct rect){x - 2, base - size * 0.95, width + 4, size * 1.3};
}

/* How much of the curves lies in a rectangle. */
static size_t clutter(struct canvas *c, struct rect r)
{
	double each = (c->time.most - c->time.least) / c->plot.w,
	       from = c->time.least + (r.x - c->plot.x) * each;
	size_t columns = MIN((size_t)r.w + 1, c->columns), hits = 0;

	for (size_t k = 0; k < MIN(c->f->nr_curves, (size_t)12); k++) {
		size_t nr = curve_reduce(&c->f->curve[k], from, from + r.w * each, columns, c->point);

		for (size_t i = 0; i + 1 < nr; i++) {
			double a = canvas_y(c, c->point[i].mean), b = canvas_y(c, c->point[i + 1].mean);

			hits += MAX(a, b) > r.y && MIN(a, b) < r.y + r.h;
		}
	}
	return hits;
}

/* Where on a line of the plot a text covers least: the right end, the left one, or between them. */
static double place_along(struct canvas *c, double base, double width)
{
	double right = c->plot.x + c->plot.w - width - 5, best = right, step = (c->plot.w - width - 24) / 4;
	size_t least = SIZE_MAX;
	static const int order[] = {0, 4, 1, 2, 3};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		double x = right - MAX(step, 0) * order[i];
		struct rect r = text_box(c, x, base, width);
		size_t cost = canvas_is_free(c, r) ? clutter(c, r) : SIZE_MAX - 1;

		if (cost >= least)
			continue;
		least = cost;
		best = x;
	}
	return best;
}

static void write_level(struct canvas *c, const char *text, double x, double base, double width)
{
	canvas_take(c, text_box(c, x, base, width));
	pen_write(&c->pen,
		&(struct words){.text = text,
			.x = x,
			.y = base,
			.most = width + 1,
			.face = FACE_SMALL,
			.color = pen_ink(&c->pen, INK_LEVEL),
			.halo = true});
}

/* Above the line, or below it where that would be outside. */
static void name_level(struct canvas *c, const char *text, double y)
{
	double width = MIN(pen_measure(&c->pen, text, FACE_SMALL), c->plot.w * 0.6);
	double size = face_size(&c->pen, FACE_SMALL), base = y - size * 0.4;

	if (base - size < c->plot.y)
		base = y + size * 1.15;
	write_level(c, text, place_along(c, base, width), base, width);
}

static void arrow_up(struct canvas *c, double x, double y)
{
	cairo_move_to(c->pen.cr, x, y);
	cairo_line_to(c->pen.cr, x - 3.5, y + 6);
	cairo_line_to(c->pen.cr, x + 3.5, y + 6);
	cairo_close_path(c->pen.cr);
	cairo_fill(c->pen.cr);
}

/* In the line of the unit, where no curve is: at its right end, or before what stands there. */
static bool place_above(struct canvas *c, double base, double width, double *ret_x)
{
	double left = c->all.x + pen_measure(&c->pen, c->labels.caption, FACE_SMALL) + 10;

	if (!canvas_has_caption(c))
		return false;
	for (double x = c->plot.x + c->plot.w - width; x >= left; x -= 8)
		if (canvas_is_free(c, text_box(c, x, base, width))) {
			*ret_x = x;
			return true;
		}
	return false;
}

/* It is outside of the picture: named at the edge. */
static void note_level(struct canvas *c, const struct chart_level *l)
{
	double size = face_size(&c->pen, FACE_SMALL), base = canvas_caption_y(c), width;
	char text[160];
	double x;

	snprintf(text, sizeof(text), "%.140s, above", l->label ? l->label : "");
	width = MIN(pen_measure(&c->pen, text, FACE_SMALL), c->plot.w * 0.6);
	if (!place_above(c, base, width + 12, &x)) {
		base = c->plot.y + size * 1.15;
		x = place_along(c, base, width + 12);
	}
	x += 12;
	while (!canvas_is_free(c, text_box(c, x - 12, base, width + 12)) && base < c->plot.y + c->plot.h / 2)
		base += size * 1.35;
	pen_color(&c->pen, pen_ink(&c->pen, INK_LEVEL), 1);
	arrow_up(c, x - 8, base - size * 0.75);
	canvas_take(c, text_box(c, x - 12, base, width + 12));
	write_level(c, text, x, base, width);
}

void draw_levels(struct canvas *c)
{
	for (size_t k = 0; k < c->f->nr_levels; k++) {
		const struct chart_level *l = &c->f->level[k];
		double y = canvas_y(c, l->value);

		if (!isfinite(l->value))
			continue;
		if (l->value > c->value.most * (1 + 1e-9)) {
			note_level(c, l);
			continue;
		}
		if (l->value < c->value.least)
			continue;
		pen_color(&c->pen, pen_ink(&c->pen, INK_LEVEL), 0.9);
		pen_dash(&c->pen, 7, 4);
		pen_line(&c->pen, c->plot.x, y, c->plot.x + c->plot.w, y, 1.1);
		pen_dash(&c->pen, 0, 0);
		name_level(c, l->label, y);
	}
	/* No note on top of the lines. */
	for (size_t k = 0; k < c->f->nr_levels; k++)
		if (isfinite(c->f->level[k].value))
			canvas_take(c,
				(struct rect){
					c->plot.x, canvas_y(c, c->f->level[k].value) - 1, c->plot.w, 2});
}

/* ---- peaks ---- */

static void arrow(struct canvas *c, double from_x, double from_y, double x, double y)
{
	double angle = atan2(y - from_y, x - from_x), tip_x = x - 4.5 * cos(angle),
	       tip_y = y - 4.5 * sin(angle);

	if (hypot(x - from_x, y - from_y) < 8)
		return;
	pen_line(&c->pen, from_x, from_y, tip_x, tip_y, 0.9);
	cairo_move_to(c->pen.cr, tip_x, tip_y);
	cairo_line_to(c->pen.cr, tip_x - 5 * cos(angle - 0.45), tip_y - 5 * sin(angle - 0.45));
	cairo_line_to(c->pen.cr, tip_x - 5 * cos(angle + 0.45), tip_y - 5 * sin(angle + 0.45));
	cairo_close_path(c->pen.cr);
	cairo_fill(c->pen.cr);
}

static bool fits(const struct canvas *c, struct rect r)
{
	return r.x >= c->plot.x + 2 && r.x + r.w <= c->plot.x + c->plot.w - 2 && r.y >= c->plot.y + 1 &&
		r.y + r.h <= c->plot.y + c->plot.h - 1 && canvas_is_free(c, r);
}

/* Of the places around the point the one that covers least; the nearer ones come first. */
static bool place_note(struct canvas *c, double x, double y, double width, struct rect *ret, double *ret_base)
{
	static const struct {
		double dx, dy,
			part; /* of the text: its near end, its middle, how much of it is left of there */
	} place[] = {{0, -12, 0.5}, {20, -4, 0}, {-20, -4, 1}, {20, -16, 0}, {-20, -16, 1}, {20, 14, 0},
		{-20, 14, 1}, {24, -30, 0}, {-24, -30, 1}, {24, 32, 0}, {-24, 32, 1}, {30, 52, 0},
		{-30, 52, 1}};
	double size = face_size(&c->pen, FACE_SMALL);
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		double base = y + place[i].dy + size * 0.35;
		struct rect r = text_box(c, x + place[i].dx - width * place[i].part, base, width);
		size_t cost;

		if (!fits(c, r))
			continue;
		cost = clutter(c, r);
		if (cost >= least)
			continue;
		least = cost;
		*ret = r;
		*ret_base = base;
	}
	return least < SIZE_MAX;
}

void draw_notes(struct canvas *c)
{
	for (size_t k = 0; k < c->f->nr_notes; k++) {
		const struct chart_note *n = &c->f->note[k];
		double x = canvas_x(c, n->time_s), y = canvas_y(c, n->value), base;
		double width = MIN(pen_measure(&c->pen, n->text, FACE_SMALL), c->plot.w * 0.5);
		uint32_t ink = pen_ink(&c->pen, INK_TEXT);
		struct rect r;

		if (!is_inside(c, n->time_s) || !isfinite(n->value))
			continue;
		pen_color(&c->pen, ink, 1);
		cairo_arc(c->pen.cr, x, y, 2.8, 0, 2 * M_PI);
		cairo_set_line_width(c->pen.cr, 1.3);
		cairo_stroke(c->pen.cr);
		if (!place_note(c, x, y, width, &r, &base))
			continue;
		canvas_take(c, r);
		if (r.x > x || r.x + r.w < x)
			arrow(c, r.x > x ? r.x : r.x + r.w, r.y + r.h / 2, x, y);
		pen_write(&c->pen,
			&(struct words){.text = n->text,
				.x = r.x + 2,
				.y = base,
				.most = width + 1,
				.face = FACE_SMALL,
				.color = ink,
				.halo = true});
	}
}
