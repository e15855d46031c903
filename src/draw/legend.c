/* Names of curves, with their mean and most.
 *
 * To the right of the plot in one column where the chart is wide, below it in several where it is narrow.
 * What has no room is counted: "+ 12 more". Stacked areas are listed in their order, the uppermost first. */
#include "draw/canvas.h"

#include <math.h>

#define SWATCH 14
#define GAP 10

struct legend_plan {
	double row, name, number; /* height; widths */
	bool numbers;
	double head; /* height of the line above the numbers */
};

static bool has_numbers(const struct chart *f)
{
	for (size_t k = 0; k < f->nr_curves; k++)
		if (isfinite(f->curve[k].average) || isfinite(f->curve[k].most))
			return true;
	return false;
}

static double number_width(struct canvas *c)
{
	double width = pen_measure(&c->pen, "mean", FACE_SMALL);
	char text[UNITS_SIZE];

	for (size_t k = 0; k < MIN(c->f->nr_curves, (size_t)64); k++) {
		const struct chart_curve *curve = &c->f->curve[k];

		if (isfinite(curve->average))
			width = MAX(width,
				pen_measure(&c->pen, label_of_number(text, &c->labels, curve->average),
					FACE_SMALL));
		if (isfinite(curve->most))
			width = MAX(width,
				pen_measure(
					&c->pen, label_of_number(text, &c->labels, curve->most), FACE_SMALL));
	}
	return width;
}

/* Numbers stay as long as they leave the names their room. */
static struct legend_plan plan_for(struct canvas *c, double width)
{
	struct legend_plan p = {.row = canvas_line(c) * 1.12};
	double room = width - SWATCH;

	for (size_t k = 0; k < MIN(c->f->nr_curves, (size_t)64); k++)
		p.name = MAX(p.name, pen_measure(&c->pen, c->f->curve[k].name, FACE_SMALL));
	if (has_numbers(c->f))
		p.number = number_width(c);
	p.numbers = p.number > 0 && room - 2 * (p.number + GAP) >= MIN(p.name, 70 * c->pen.size / 12);
	if (p.numbers)
		room -= 2 * (p.number + GAP);
	p.head = p.numbers ? p.row : 0;
	p.name = MIN(p.name, room);
	return p;
}

static double plan_width(const struct legend_plan *p)
{
	return SWATCH + p->name + 2 + (p->numbers ? 2 * (p->number + GAP) : 0);
}

double legend_width(struct canvas *c, double most)
{
	struct legend_plan p = plan_for(c, most);

	return c->f->nr_curves > 1 ? MIN(most, plan_width(&p)) : 0;
}

static size_t columns_in(const struct canvas *c, const struct legend_plan *p, double width)
{
	size_t fit = (size_t)MAX(1.0, floor((width + 2 * GAP) / (plan_width(p) + 2 * GAP)));

	return MIN(fit, MAX(c->f->nr_curves, (size_t)1));
}

/* Of an entry below the plot: many stand in two columns at least. */
static double width_below(const struct canvas *c, double width)
{
	return c->f->nr_curves > 4 && width > 360 ? width / 2 - GAP - 3 : MIN(width, 260.0);
}

double legend_height(struct canvas *c, double width, double most)
{
	struct legend_plan p = plan_for(c, width_below(c, width));
	size_t columns = columns_in(c, &p, width), rows = (c->f->nr_curves + columns - 1) / columns;
	double high = p.head + p.row * (double)rows;

	if (c->f->nr_curves <= 1)
		return 0;
	return high <= most ? high : p.head + p.row * floor(MAX(most - p.head, p.row) / p.row);
}

static void draw_swatch(struct canvas *c, const struct chart_curve *curve, double x, double y)
{
	pen_color(&c->pen, pen_palette(&c->pen, curve->color), 1);
	if (c->f->form == CHART_STACKED) {
		pen_box(&c->pen, (struct rect){x, y - 4, 8, 8});
		return;
	}
	if (curve->dashed)
		pen_dash(&c->pen, 4, 2);
	pen_line(&c->pen, x, y, x + 10, y, 2.4);
	pen_dash(&c->pen, 0, 0);
}

static void draw_number(struct canvas *c, double value, double right, double base)
{
	char text[UNITS_SIZE];

	if (isfinite(value))
		pen_write(&c->pen,
			&(struct words){.text = label_of_number(text, &c->labels, value),
				.x = right,
				.y = base,
				.align = 1,
				.face = FACE_SMALL,
				.color = pen_ink(&c->pen, INK_QUIET)});
}

static void draw_entry(
	struct canvas *c, const struct legend_plan *p, const struct chart_curve *curve, double x, double y)
{
	double base = y + p->row * 0.72, right = x + plan_width(p);

	draw_swatch(c, curve, x, y + p->row * 0.48);
	pen_write(&c->pen,
		&(struct words){.text = curve->name,
			.x = x + SWATCH,
			.y = base,
			.most = p->name + 0.5,
			.face = FACE_SMALL,
			.color = pen_ink(&c->pen, INK_TEXT)});
	if (!p->numbers)
		return;
	draw_number(c, curve->average, right - p->number - GAP, base);
	draw_number(c, curve->most, right, base);
}

static void draw_head(struct canvas *c, const struct legend_plan *p, double x, double y)
{
	struct words w = {.text = "max",
		.x = x + plan_width(p),
		.y = y + p->row * 0.72,
		.align = 1,
		.face = FACE_SMALL,
		.color = pen_ink(&c->pen, INK_QUIET)};

	if (!p->numbers)
		return;
	pen_write(&c->pen, &w);
	w.text = "mean";
	w.x -= p->number + GAP;
	pen_write(&c->pen, &w);
}

void draw_legend(struct canvas *c)
{
	bool below = c->legend.y > c->plot.y + c->plot.h;
	struct legend_plan p = plan_for(c, below ? width_below(c, c->legend.w) : c->legend.w);
	size_t columns = below ? columns_in(c, &p, c->legend.w) : 1, nr = c->f->nr_curves;
	size_t rows = (size_t)MAX(1.0, floor((c->legend.h - p.head + 0.5) / p.row));
	size_t shown = nr <= rows * columns ? nr : rows * columns - 1;
	double wide = plan_width(&p) + 2 * GAP;
	char text[UNITS_SIZE];

	rows = MIN(rows, (nr + columns - 1) / columns);
	for (size_t i = 0; i < columns && i * rows < nr; i++)
		draw_head(c, &p, c->legend.x + wide * (double)i, c->legend.y);
	for (size_t i = 0; i <= shown; i++) {
		size_t k = c->f->form == CHART_STACKED ? shown - 1 - i : i;
		double x = c->legend.x + wide * (double)(i / rows),
		       y = c->legend.y + p.head + p.row * (double)(i % rows);

		if (i < shown) {
			draw_entry(c, &p, &c->f->curve[k], x, y);
			continue;
		}
		snprintf(text, sizeof(text), "+ %zu more", nr - shown);
		if (nr > shown)
			pen_write(&c->pen,
				&(struct words){.text = text,
					.x = x + SWATCH,
					.y = y + p.row * 0.72,
					.face = FACE_SMALL,
					.color = pen_ink(&c->pen, INK_QUIET)});
	}
}
