/* A chart on a cairo surface: where its parts stand, and the frame around them.
 *
 *	Title  subtitle
 *	quantity, unit
 *	        phases | and events
 *	 ticks  plot                      legend
 *	        0:00   1:00   2:00 min
 *	footnote
 *
 * The legend moves below where the chart is too narrow. Sizes of text do not follow the width: a chart that
 *is half as wide has half as many ticks, not letters half as large. */
#include "draw/canvas.h"

#include <math.h>

#define NARROW 620.0  /* below that the legend stands under the plot */
#define LARGEST 20000 /* points, either way */
#define MARGIN 14.0
#define COLUMNS_MAX 8192

/* ---- places ---- */

double canvas_x(const struct canvas *c, double time_s)
{
	double at = axis_place(&c->time, time_s);

	return c->plot.x + c->plot.w * MAX(-10.0, MIN(at, 11.0));
}

double canvas_y(const struct canvas *c, double value)
{
	double at = axis_place(&c->value, value);

	/* What lies far out is clipped; cairo's own coordinates end at 2^23. */
	return isnan(at) ? NAN : c->plot.y + c->plot.h * (1 - MAX(-10.0, MIN(at, 11.0)));
}

bool canvas_is_free(const struct canvas *c, struct rect r)
{
	for (size_t i = 0; i < c->nr_taken; i++) {
		const struct rect *t = &c->taken[i];

		if (r.x < t->x + t->w && t->x < r.x + r.w && r.y < t->y + t->h && t->y < r.y + r.h)
			return false;
	}
	return true;
}

void canvas_take(struct canvas *c, struct rect r)
{
	if (c->nr_taken < TAKEN_MAX)
		c->taken[c->nr_taken++] = r;
}

double canvas_line(const struct canvas *c)
{
	return face_size(&c->pen, FACE_SMALL) * 1.36;
}

/* ---- layout ---- */

static bool has_values(const struct chart *f)
{
	return f->form == CHART_LINES || f->form == CHART_STACKED;
}

/* The axis includes annotated peaks, which may lie above reduced areas, and limits that are not far above the
 * curves; other limits are named at the edge. */
static void settle_values(struct canvas *c, unsigned ticks)
{
	struct chart_level level[TAKEN_MAX];
	struct chart f = *c->f;
	size_t nr = 0;

	axis_of_values(&c->value, &f, ticks);
	for (size_t i = 0; i < f.nr_notes && nr < TAKEN_MAX; i++)
		if (isfinite(f.note[i].value))
			level[nr++] = (struct chart_level){.value = f.note[i].value, .stretch = true};
	for (size_t i = 0; i < f.nr_levels && nr < TAKEN_MAX; i++)
		if (f.level[i].stretch || f.level[i].value <= c->value.most * 1.3)
			level[nr++] = (struct chart_level){.value = f.level[i].value, .stretch = true};
	f.level = level;
	f.nr_levels = nr;
	axis_of_values(&c->value, &f, ticks);
	/* Leaves room for the label above a level at the very top. */
	for (size_t i = 0; i < nr && !c->value.log && !isfinite(f.y_most); i++)
		if (axis_place(&c->value, level[i].value) > 0.94) {
			c->value.most += (c->value.most - c->value.least) * 18 / MAX(c->all.h - 110, 60.0);
			break;
		}
}

static double gutter(struct canvas *c)
{
	double width = 0;
	char text[UNITS_SIZE];

	if (c->f->form == CHART_TIMELINE)
		return 4;
	if (c->f->form == CHART_HEAT)
		return MIN(heat_names_width(c), c->all.w * 0.2) + 10;
	for (unsigned i = 0; i < c->value.nr; i++)
		width = MAX(width,
			pen_measure(&c->pen, label_of_value(text, &c->labels, c->value.tick[i]), FACE_SMALL));
	return width + 8;
}

static double strip_height(const struct canvas *c)
{
	double line = canvas_line(c);
	bool named = false;

	if (c->bare)
		return 0;
	for (size_t i = 0; i < c->f->nr_marks && !named; i++)
		named = c->f->mark[i].label && *c->f->mark[i].label;
	return bands_height(c) + (named ? (c->f->nr_marks > 2 && c->all.h > 250 ? 2 : 1) * line : 0);
}

/* Room for the legend is taken from the plot. */
static void place_legend(struct canvas *c)
{
	bool heat = c->f->form == CHART_HEAT;

	if (c->f->form == CHART_TIMELINE || c->bare)
		return;
	if (heat || c->all.w >= NARROW) {
		double width = heat ? (c->f->unit == UNIT_RATIO ? 50 : 84)
				    : legend_width(c, MIN(c->all.w * 0.36, 330));

		if (!(width > 0))
			return;
		c->plot.w -= width + 18;
		c->legend = (struct rect){
			c->plot.x + c->plot.w + 18, c->plot.y, width, c->plot.h + canvas_line(c)};
	} else {
		double high = legend_height(c, c->plot.w, c->all.h * 0.3);

		c->plot.h -= high > 0 ? high + 6 : 0;
		c->legend =
			(struct rect){c->plot.x, c->plot.y + c->plot.h + canvas_line(c) + 8, c->plot.w, high};
	}
}

static double subtitle_below(struct canvas *c)
{
	double title = pen_measure(&c->pen, c->f->title, FACE_TITLE);

	if (!c->f->subtitle || !*c->f->subtitle)
		return 0;
	return title + 14 + pen_measure(&c->pen, c->f->subtitle, FACE_PLAIN) > c->all.w ? c->pen.size * 1.4
											: 0;
}

bool canvas_has_caption(const struct canvas *c)
{
	return c->labels.caption[0] && c->f->form != CHART_HEAT;
}

double canvas_caption_y(const struct canvas *c)
{
	return c->strip.y - canvas_line(c) * 0.4 - 5;
}

/* Phases that have no row for their names. */
static size_t phases_unnamed(const struct canvas *c)
{
	size_t without = c->f->phases_left_out;

	for (size_t i = 0; i < c->f->nr_bands; i++)
		without += c->f->band[i].lane >= canvas_lanes(c);
	return without;
}

static bool has_footnote(const struct canvas *c)
{
	return (c->f->footnote && *c->f->footnote) || phases_unnamed(c);
}

static void write_footnote(struct canvas *c)
{
	const char *note = c->f->footnote ? c->f->footnote : "";
	size_t without = phases_unnamed(c);
	struct buf text;

	buf_init(&text, 10000);
	if (without)
		buf_addf(&text, "%zu more %s%s", without,
			without == 1 ? "phase is not named" : "phases are not named", *note ? "; " : "");
	buf_adds(&text, note);
	pen_write(&c->pen,
		&(struct words){.text = (char *)text.data,
			.x = c->all.x,
			.y = c->all.y + c->all.h - 2,
			.most = c->all.w,
			.face = FACE_SMALL,
			.color = pen_ink(&c->pen, INK_QUIET)});
	buf_release(&text);
}

static void lay_out(struct canvas *c)
{
	double line = canvas_line(c), foot = has_footnote(c) ? line + 3 : 0, left, top;

	top = face_size(&c->pen, FACE_TITLE) * 1.5 + subtitle_below(c) + 2;
	top += canvas_has_caption(c) ? line + 6 : 8;
	c->strip = (struct rect){.y = c->all.y + top, .h = strip_height(c)};
	top += c->strip.h;
	left = gutter(c);
	c->plot = (struct rect){
		c->all.x + left, c->all.y + top, c->all.w - left, c->all.h - top - foot - line - 4};
	place_legend(c);
	c->strip.x = c->plot.x;
	c->strip.w = c->plot.w;
}

/* ---- frame ---- */

static char *last_part(char *text)
{
	static const char between[] = " · ";
	char *found = NULL;

	for (char *at = text; (at = strstr(at, between)); at++)
		found = at;
	return found;
}

/* Parts that do not fit are left out, the last first: a part cut in its middle would show a wrong number. The
 * numbers of each curve are in the legend. */
static void write_subtitle(struct canvas *c, double x, double y)
{
	double room = c->all.x + c->all.w - x;
	char *text = strdup(c->f->subtitle), *part;

	while (text && pen_measure(&c->pen, text, FACE_PLAIN) > room && (part = last_part(text)))
		*part = 0;
	pen_write(&c->pen,
		&(struct words){.text = text ? text : c->f->subtitle,
			.x = x,
			.y = y,
			.most = room,
			.face = FACE_PLAIN,
			.color = pen_ink(&c->pen, INK_QUIET)});
	free(text);
}

static void draw_titles(struct canvas *c)
{
	double size = face_size(&c->pen, FACE_TITLE), base = c->all.y + size, below = subtitle_below(c),
	       width;

	width = pen_write(&c->pen,
		&(struct words){.text = c->f->title,
			.x = c->all.x,
			.y = base,
			.most = c->all.w,
			.face = FACE_TITLE,
			.color = pen_ink(&c->pen, INK_TEXT)});
	if (c->f->subtitle && *c->f->subtitle)
		write_subtitle(c, c->all.x + (below > 0 ? 0 : width + 14), base + below);
	if (canvas_has_caption(c))
		pen_write(&c->pen,
			&(struct words){.text = c->labels.caption,
				.x = c->all.x,
				.y = canvas_caption_y(c),
				.most = c->all.w,
				.face = FACE_SMALL,
				.color = pen_ink(&c->pen, INK_QUIET)});
	if (has_footnote(c))
		write_footnote(c);
}

static void draw_grid(struct canvas *c)
{
	double right = c->plot.x + c->plot.w;

	pen_color(&c->pen, pen_ink(&c->pen, INK_GRID), 1);
	for (unsigned i = 0; has_values(c->f) && i < c->value.nr; i++)
		if (c->value.tick[i] > c->value.least)
			pen_line(&c->pen, c->plot.x, canvas_y(c, c->value.tick[i]), right,
				canvas_y(c, c->value.tick[i]), 1);
	for (unsigned i = 0; c->f->form != CHART_HEAT && i < c->time.nr; i++)
		pen_line(&c->pen, canvas_x(c, c->time.tick[i]), c->plot.y, canvas_x(c, c->time.tick[i]),
			c->plot.y + c->plot.h, 0.6);
}

static void draw_time_labels(struct canvas *c)
{
	double base = c->plot.y + c->plot.h + canvas_line(c) * 0.98 + 1, free_x = -INFINITY;
	char text[UNITS_SIZE];

	for (unsigned i = 0; i < c->time.nr; i++) {
		double x = canvas_x(c, c->time.tick[i]);
		double width = pen_measure(&c->pen, label_of_time(text, &c->time, i), FACE_SMALL);
		double left = MIN(x - width / 2, c->plot.x + c->plot.w + 12 - width);

		pen_color(&c->pen, pen_ink(&c->pen, INK_AXIS), 1);
		pen_line(&c->pen, x, c->plot.y + c->plot.h, x, c->plot.y + c->plot.h + 4, 1);
		if (left < free_x)
			continue;
		free_x = left + width + 6;
		pen_write(&c->pen,
			&(struct words){.text = text,
				.x = left,
				.y = base,
				.face = FACE_SMALL,
				.color = pen_ink(&c->pen, INK_QUIET)});
	}
}

static void draw_axes(struct canvas *c)
{
	double floor_y = c->plot.y + c->plot.h;
	char text[UNITS_SIZE];

	pen_color(&c->pen, pen_ink(&c->pen, INK_AXIS), 1);
	pen_line(&c->pen, c->plot.x, floor_y, c->plot.x + c->plot.w, floor_y, 1);
	draw_time_labels(c);
	for (unsigned i = 0; has_values(c->f) && i < c->value.nr; i++)
		pen_write(&c->pen,
			&(struct words){.text = label_of_value(text, &c->labels, c->value.tick[i]),
				.x = c->plot.x - 7,
				.y = canvas_y(c, c->value.tick[i]) + face_size(&c->pen, FACE_SMALL) * 0.35,
				.align = 1,
				.face = FACE_SMALL,
				.color = pen_ink(&c->pen, INK_QUIET)});
	if (c->f->form == CHART_HEAT)
		draw_heat_rows(c);
}

static void draw_inside(struct canvas *c)
{
	static void (*const draw[])(struct canvas *) = {
		[CHART_LINES] = draw_lines,
		[CHART_STACKED] = draw_stack,
		[CHART_HEAT] = draw_heat,
		[CHART_TIMELINE] = draw_timeline,
	};

	double edge = c->f->form == CHART_LINES ? 2.5 : 0;

	if (c->f->form >= ARRAY_SIZE(draw))
		return;
	cairo_save(c->pen.cr);
	/* Lines at the edges keep their whole width, and dots are whole. */
	cairo_rectangle(c->pen.cr, c->plot.x - edge, c->plot.y - 1, c->plot.w + 2 * edge, c->plot.h + 2);
	cairo_clip(c->pen.cr);
	draw[c->f->form](c);
	cairo_restore(c->pen.cr);
}

static bool is_empty(const struct chart *f)
{
	for (size_t k = 0; k < f->nr_curves; k++)
		for (size_t i = 0; i < f->curve[k].nr; i++)
			if (isfinite(f->curve[k].mean[i]))
				return false;
	return !f->nr_spans;
}

/* An empty frame could be read as "nothing used". */
static void draw_emptiness(struct canvas *c)
{
	pen_write(&c->pen,
		&(struct words){.text = "no values",
			.x = c->plot.x + c->plot.w / 2,
			.y = c->plot.y + c->plot.h / 2,
			.align = 0.5,
			.color = pen_ink(&c->pen, INK_QUIET),
			.halo = true});
}

static void draw_all(struct canvas *c)
{
	draw_bands(c);
	draw_grid(c);
	draw_inside(c);
	if (is_empty(c->f))
		draw_emptiness(c);
	draw_axes(c);
	draw_marks(c);
	if (has_values(c->f)) {
		draw_levels(c);
		draw_notes(c);
	}
	if (c->f->form == CHART_HEAT && c->legend.w > 0)
		draw_heat_scale(c);
	else if (c->legend.w > 0 && c->legend.h > 0)
		draw_legend(c);
	draw_titles(c);
}

/* ---- entrance ---- */

static void settle(struct canvas *c)
{
	axis_of_time(&c->time, c->f, (unsigned)MAX(2.0, MIN(12.0, c->all.w / 85)));
	settle_values(c, (unsigned)MAX(2.0, MIN(8.0, c->all.h / 62)));
	value_labels(&c->labels, c->f, &c->value);
	if (c->f->form == CHART_TIMELINE)
		timeline_caption(c);
	lay_out(c);
}

static int draw_on(struct canvas *c)
{
	settle(c);
	if (c->plot.h < 60 || c->plot.w < 60) {
		c->bare = true;
		c->legend = (struct rect){0};
		settle(c);
	}
	if (c->plot.w < 30 || c->plot.h < 20)
		return -EINVAL;
	c->columns = MIN((size_t)(c->plot.w / c->pen.pixel), (size_t)COLUMNS_MAX);
	c->scratch = reallocarray(NULL, c->columns * 4, sizeof(*c->scratch));
	c->point = reallocarray(NULL, REDUCED_MAX(c->columns), sizeof(*c->point));
	if (c->scratch && c->point)
		draw_all(c);
	return c->scratch && c->point ? 0 : -ENOMEM;
}

int draw_chart_words(struct _cairo *cr, const struct chart *f, struct rect where,
	const struct draw_style *style, struct buf *words)
{
	struct canvas c = {.f = f, .all = where};
	int r;

	if (!(where.w >= 120 && where.w <= LARGEST && where.h >= 90 && where.h <= LARGEST) ||
		!isfinite(where.x + where.y))
		return -EINVAL;
	pen_open(&c.pen, cr, style && style->dark, where.w < NARROW ? 10.5 : 12, words);
	cairo_save(cr);
	cairo_new_path(cr);
	if (!style || !style->transparent) {
		pen_color(&c.pen, pen_ink(&c.pen, INK_PAPER), 1);
		pen_box(&c.pen, where);
	}
	c.all = (struct rect){where.x + MARGIN, where.y + 10, where.w - 2 * MARGIN, where.h - 20};
	r = draw_on(&c);
	cairo_restore(cr);
	pen_close(&c.pen);
	free(c.scratch);
	free(c.point);
	return r < 0 ? r : draw_status(cairo_status(cr));
}

int draw_chart(struct _cairo *cr, const struct chart *f, double x, double y, double width, double height,
	const struct draw_style *style)
{
	return draw_chart_words(cr, f, (struct rect){x, y, width, height}, style, NULL);
}

int draw_status(int status)
{
	switch (status) {
	case CAIRO_STATUS_SUCCESS:
		return 0;
	case CAIRO_STATUS_NO_MEMORY:
		return -ENOMEM;
	case CAIRO_STATUS_WRITE_ERROR:
	case CAIRO_STATUS_INVALID_SIZE:
		return -EFBIG;
	default:
		return -EIO;
	}
}

/* Rows of a heat map or a timeline: thinner the more there are. */
static double rows_height(size_t nr, double each, double least, double most)
{
	return MAX(least, MIN(most, nr * MAX(each * 0.25, MIN(each, 560.0 / (double)MAX(nr, (size_t)1)))));
}

double draw_height(const struct chart *f, double width)
{
	double plain = MAX(230, MIN(width * 0.375, 420)),
	       frame = (f->nr_bands || f->nr_marks ? 120 : 92) + (f->nr_band_lanes > 1 ? 17 : 0);
	bool narrow = width < NARROW;
	size_t rows;

	if (f->form == CHART_HEAT)
		return frame + rows_height(f->nr_curves, f->nr_curves > 4 ? 15 : 26, 50, 800);
	if (f->form == CHART_TIMELINE)
		return frame + rows_height(f->nr_lanes, 16, 90, 1000);
	if (!narrow) {
		/* As high as its legend, within reason. */
		return MAX(plain, MIN(90 + 17 * (double)f->nr_curves, 480));
	}
	rows = f->nr_curves > 1 ? (f->nr_curves + 1) / 2 + 1 : 0;
	return plain + 15 * (double)MIN(rows, (size_t)10);
}
