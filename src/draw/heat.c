/* A row of colour for each curve: which cores worked, and when.
 *
 * Drawn as one image with two pixels to a point, so that hundreds of rows cost no more than ten in SVG and
 * PDF and nothing is blurred when it is shown. A cell is the mean of its time: with the maximum every core
 * would look busy. Where nothing is known the paper shows through, hatched. */
#include "draw/canvas.h"

#include <math.h>

#define SCALE_WIDTH 11

static double row_height(const struct canvas *c)
{
	return c->plot.h / (double)MAX(c->f->nr_curves, (size_t)1);
}

/* What a full colour stands for. */
static double heat_most(const struct canvas *c)
{
	return c->f->y_most > 0 ? c->f->y_most : 1;
}

static void paint_row(struct canvas *c, uint32_t *pixels, size_t k)
{
	curve_resample(&c->f->curve[k], c->time.least, c->time.most, c->columns, c->scratch);
	for (size_t i = 0; i < c->columns; i++)
		pixels[i] = isfinite(c->scratch[i])
			? 0xff000000 | pen_heat(&c->pen, c->scratch[i] / heat_most(c))
			: 0;
}

/* Rows of the image for one curve: whole ones, as many as come near to two for each point. */
static size_t rows_each(const struct canvas *c)
{
	return (size_t)MAX(1.0, MIN(64.0, round(row_height(c) * 2)));
}

static cairo_surface_t *make_image(struct canvas *c)
{
	size_t each = rows_each(c), nr = c->f->nr_curves;
	cairo_surface_t *image =
		cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)c->columns, (int)(each * nr));
	uint8_t *data = cairo_image_surface_get_data(image);
	size_t stride = (size_t)cairo_image_surface_get_stride(image);

	if (cairo_surface_status(image) || !data)
		return image;
	cairo_surface_flush(image);
	for (size_t k = 0; k < nr; k++) {
		/* The first is at the bottom. */
		uint8_t *first = data + (nr - 1 - k) * each * stride;

		paint_row(c, (uint32_t *)(void *)first, k);
		for (size_t i = 1; i < each; i++)
			memcpy(first + i * stride, first, c->columns * 4);
	}
	cairo_surface_mark_dirty(image);
	return image;
}

static void hatch(struct canvas *c)
{
	struct rect r = c->plot;

	pen_color(&c->pen, pen_ink(&c->pen, INK_GRID), 1);
	for (double x = r.x - r.h; x < r.x + r.w; x += 6) {
		cairo_move_to(c->pen.cr, x, r.y + r.h);
		cairo_line_to(c->pen.cr, x + r.h, r.y);
	}
	cairo_set_line_width(c->pen.cr, 1);
	cairo_stroke(c->pen.cr);
}

void draw_heat(struct canvas *c)
{
	cairo_surface_t *image;
	cairo_t *cr = c->pen.cr;

	hatch(c);
	if (!c->f->nr_curves)
		return;
	image = make_image(c);
	cairo_save(cr);
	cairo_translate(cr, c->plot.x, c->plot.y);
	cairo_scale(cr, c->plot.w / (double)c->columns, row_height(c) / (double)rows_each(c));
	cairo_set_source_surface(cr, image, 0, 0);
	cairo_pattern_set_filter(
		cairo_get_source(cr), row_height(c) < 1 ? CAIRO_FILTER_GOOD : CAIRO_FILTER_NEAREST);
	cairo_paint(cr);
	cairo_restore(cr);
	cairo_surface_destroy(image);
	if (row_height(c) < 5)
		return;
	pen_color(&c->pen, pen_ink(&c->pen, INK_PAPER), 1);
	for (size_t k = 1; k < c->f->nr_curves; k++) {
		double y = c->plot.y + row_height(c) * (double)k;

		pen_line(&c->pen, c->plot.x, y, c->plot.x + c->plot.w, y, row_height(c) > 9 ? 1 : 0.5);
	}
}

/* Every row has its name as long as they have room; then every second, fourth, eighth... */
static size_t name_every(const struct canvas *c)
{
	static const size_t nice[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(nice) && row_height(c) * (double)nice[i] < canvas_line(c) * 0.95)
		i++;
	return nice[i];
}

void draw_heat_rows(struct canvas *c)
{
	size_t every = name_every(c);

	for (size_t k = 0; k < c->f->nr_curves; k += every) {
		double y = c->plot.y + c->plot.h - row_height(c) * ((double)k + 0.5);

		pen_write(&c->pen,
			&(struct words){.text = c->f->curve[k].name,
				.x = c->plot.x - 7,
				.y = y + face_size(&c->pen, FACE_SMALL) * 0.35,
				.align = 1,
				.most = c->plot.x - c->all.x - 9,
				.face = FACE_SMALL,
				.color = pen_ink(&c->pen, INK_QUIET)});
	}
}

double heat_names_width(struct canvas *c)
{
	double width = 0;

	/* Names of rows are similar: the widths of the first, the last and a few between them are enough. */
	for (size_t i = 0; i < 16 && c->f->nr_curves; i++)
		width = MAX(width,
			pen_measure(&c->pen, c->f->curve[i * (c->f->nr_curves - 1) / 15].name, FACE_SMALL));
	return width;
}

void draw_heat_scale(struct canvas *c)
{
	struct rect r = {c->legend.x, c->plot.y, SCALE_WIDTH, MIN(c->plot.h, 180)};
	cairo_pattern_t *p = cairo_pattern_create_linear(0, r.y, 0, r.y + r.h);
	char text[UNITS_SIZE];

	for (int i = 0; i <= 16; i++) {
		uint32_t rgb = pen_heat(&c->pen, 1 - i / 16.0);

		cairo_pattern_add_color_stop_rgb(
			p, i / 16.0, (rgb >> 16) / 255.0, (rgb >> 8 & 0xff) / 255.0, (rgb & 0xff) / 255.0);
	}
	cairo_set_source(c->pen.cr, p);
	cairo_rectangle(c->pen.cr, r.x, r.y, r.w, r.h);
	cairo_fill(c->pen.cr);
	cairo_pattern_destroy(p);
	/* Every quarter where there is room for its number. */
	for (int i = 0, step = r.h > 75 ? 1 : r.h > 36 ? 2 : 4; i <= 4; i += step) {
		double y = r.y + r.h * (1 - i / 4.0), size = face_size(&c->pen, FACE_SMALL);

		if (c->f->unit == UNIT_RATIO)
			snprintf(text, sizeof(text), "%d%s", i * 25, i == 4 ? " %" : "");
		else
			format_value(text, heat_most(c) * i / 4, c->f->unit, c->f->per_second);
		pen_write(&c->pen,
			&(struct words){.text = text,
				.x = r.x + r.w + 6,
				.y = y +
					size *
						(i == 4		    ? 0.75
								: i ? 0.35
								    : 0),
				.face = FACE_SMALL,
				.color = pen_ink(&c->pen, INK_QUIET)});
	}
}
