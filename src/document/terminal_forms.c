/* The curves of a chart in characters.
 *
 * Lines are dots of braille, two across and four down in each cell, coloured by the curve that was drawn
 * last: the first of the chart, which is drawn on top. Without colours several curves could not be told
 * apart, so that each has a letter of its own then. Of the points that fall into one column the whole range
 * is drawn, so that no peak is lost. Areas are eighths of blocks, with the area above as the paper of the
 * cell in which two meet. */
#include "document/terminal.h"

#include "analysis/palette.h"

#include <math.h>
#include <string.h>

/* Between the shade for white paper and the one for dark screens, since we do not know on which we are; the
 * nearest of the terminal's cube of 6 x 6 x 6 colours. */
#define LEVEL(c) ((c) < 48 ? 0 : (c) < 115 ? 1 : ((c)-35) / 40)
#define BETWEEN(a, b, shift) ((((a) >> (shift)&0xff) + ((b) >> (shift)&0xff)) / 2)
#define CUBE(r, g, b) (16 + 36 * LEVEL(r) + 6 * LEVEL(g) + LEVEL(b))
#define INK(name, white, dark) \
	CUBE(BETWEEN(white, dark, 16), BETWEEN(white, dark, 8), BETWEEN(white, dark, 0)),
#define HEAT_INK(rgb) INK(, rgb, rgb)

static const int16_t palette[] = {PALETTE(INK)};
#define OTHERS 244

static const char signs[] = "*o+x#%@=&$ABCDEFGHIJKLMNPQRSTUVWYZ";

int curve_ink(const struct terminal_field *f, const struct chart_curve *c)
{
	if (!f->screen->color)
		return INK_PLAIN;
	return c->color == CHART_OTHERS ? OTHERS : palette[c->color % ARRAY_SIZE(palette)];
}

char curve_sign(size_t index)
{
	return signs[index % (sizeof(signs) - 1)];
}

double field_column(const struct terminal_field *f, double time_s)
{
	return axis_place(&f->time, time_s) * (f->columns - 1);
}

/* Of 0..most-1, from the top. */
static unsigned level_of(const struct terminal_field *f, double value, unsigned most)
{
	double place = MIN(MAX(axis_place(&f->value, value), 0.0), 1.0);

	return (unsigned)((1 - place) * (most - 1) + 0.5);
}

unsigned field_row(const struct terminal_field *f, double value)
{
	return level_of(f, value, f->rows * 4) / 4;
}

/* ---- lines ---- */

struct terminal_forms_pen {
	struct terminal_field *f;
	unsigned across, down; /* dots in a cell */
	int ink;
	char sign;
	bool dashed;
};

static void pen_dot(const struct terminal_forms_pen *p, unsigned x, unsigned y)
{
	static const uint8_t bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
	unsigned column = p->f->column + x / p->across, row = p->f->row + y / p->down;
	struct cell *c = screen_cell(p->f->screen, column, row);

	if (!c || x / p->across >= p->f->columns || y / p->down >= p->f->rows)
		return;
	if (p->sign) {
		screen_put(p->f->screen, column, row, (char[]){p->sign, 0}, p->sign, p->ink);
		return;
	}
	c->letter[0] = 0;
	c->dots |= bit[y % 4][x % 2];
	c->ink = (int16_t)p->ink;
}

static void pen_upright(const struct terminal_forms_pen *p, unsigned x, unsigned from, unsigned to)
{
	for (unsigned y = MIN(from, to); y <= MAX(from, to); y++)
		pen_dot(p, x, y);
}

static double pen_x(const struct terminal_forms_pen *p, double time_s)
{
	return axis_place(&p->f->time, time_s) * (p->f->columns * p->across - 1);
}

static unsigned pen_y(const struct terminal_forms_pen *p, double value)
{
	return level_of(p->f, value, p->f->rows * p->down);
}

/* In each column that the line crosses, from where it enters to where it leaves. */
static void pen_line(const struct terminal_forms_pen *p, double x0, double v0, double x1, double v1)
{
	double most = p->f->columns * p->across - 1, from = MAX(x0, 0.0), to = MIN(x1, most);
	unsigned last = 0;

	for (unsigned x = (unsigned)(from + 0.5); from <= to && x <= (unsigned)(to + 0.5); x++) {
		double at = MIN(MAX((double)x, x0), x1), part = x1 > x0 ? (at - x0) / (x1 - x0) : 1;
		unsigned y = pen_y(p, v0 + (v1 - v0) * part), begin = y;

		if (x > (unsigned)(from + 0.5)) /* half of a step belongs to the column before */
			begin = y > last ? last + 1 : y < last ? last - 1 : y;
		if (!p->dashed || x / (2 * p->across) % 2 == 0)
			pen_upright(p, x, begin, y);
		last = y;
	}
}

static void draw_curve(const struct terminal_forms_pen *p, const struct chart_curve *c)
{
	double x0 = NAN, v0 = NAN, most = p->f->columns * p->across;

	for (size_t i = 0; i < c->nr; i++) {
		double x = pen_x(p, c->time_s[i]), v = c->mean[i];

		if (isnan(v)) {
			x0 = NAN;
			continue;
		}
		if (!isnan(x0))
			pen_line(p, x0, v0, x, c->held ? v0 : v);
		if (!isnan(x0) && c->held && x > -0.5 && x < most - 0.5)
			pen_upright(p, (unsigned)(x + 0.5), pen_y(p, v0), pen_y(p, v));
		if (x > -0.5 && x < most - 0.5)
			pen_upright(p, (unsigned)(x + 0.5), pen_y(p, isnan(c->low[i]) ? v : c->low[i]),
				pen_y(p, isnan(c->high[i]) ? v : c->high[i]));
		x0 = x;
		v0 = v;
	}
}

void field_lines(struct terminal_field *f)
{
	for (size_t k = f->chart->nr_curves; k-- > 0;) {
		struct terminal_forms_pen p = {.f = f,
			.across = f->signs ? 1 : 2,
			.down = f->signs ? 1 : 4,
			.ink = curve_ink(f, &f->chart->curve[k]),
			.sign = f->signs ? curve_sign(k) : 0,
			.dashed = f->chart->curve[k].dashed};

		draw_curve(&p, &f->chart->curve[k]);
	}
}

/* ---- what stands in a column ---- */

/* The points of a column of the field; where there is none, the nearer of the two around it. */
static void points_of(const struct terminal_field *f, const struct chart_curve *c, unsigned column,
	size_t *from, size_t *to)
{
	double width = (f->time.most - f->time.least) / MAX(f->columns - 1, 1u);
	double middle = f->time.least + column * width;

	*from = curve_at(c, middle - width / 2);
	*to = curve_at(c, middle + width / 2);
	if (*from < *to || !*from || *to >= c->nr)
		return;
	*from -= middle - c->time_s[*from - 1] < c->time_s[*to] - middle;
	*to = *from + 1;
}

/* ---- areas ---- */

static double height_of(const struct chart_curve *c, size_t i)
{
	return i < c->nr && c->mean[i] > 0 ? (double)c->mean[i] : 0;
}

/* The point at which most was in use; SIZE_MAX: nothing is known. */
static size_t fullest(const struct chart *chart, size_t from, size_t to)
{
	size_t best = SIZE_MAX;
	double most = -1;

	for (size_t i = from; i < to; i++) {
		bool known = false;
		double sum = 0;

		for (size_t k = 0; k < chart->nr_curves; k++) {
			known |= i < chart->curve[k].nr && !isnan(chart->curve[k].mean[i]);
			sum += height_of(&chart->curve[k], i);
		}
		if (known && sum > most) {
			most = sum;
			best = i;
		}
	}
	return best;
}

/* Heights of the areas' upper edges in a column. */
static bool stack_of(const struct terminal_field *f, unsigned column, double *edge)
{
	const struct chart_curve *c = f->chart->curve;
	bool common = true, known = false;
	size_t from, to, at;
	double sum = 0;

	for (size_t k = 1; k < f->chart->nr_curves; k++)
		common &= c[k].time_s == c[0].time_s && c[k].nr == c[0].nr;
	if (common) {
		points_of(f, &c[0], column, &from, &to);
		at = fullest(f->chart, from, to);
		for (size_t k = 0; k < f->chart->nr_curves; k++)
			edge[k] = sum += at == SIZE_MAX ? 0 : height_of(&c[k], at);
		return at != SIZE_MAX;
	}
	for (size_t k = 0; k < f->chart->nr_curves; k++) {
		double most = 0;

		points_of(f, &c[k], column, &from, &to);
		for (size_t i = from; i < to; i++) {
			known |= !isnan(c[k].mean[i]);
			most = MAX(most, height_of(&c[k], i));
		}
		edge[k] = sum += most;
	}
	return known;
}

/* The area that covers this part of the height, counted from below; nr_curves: none. */
static size_t area_at(const struct terminal_field *f, const double *edge, unsigned part, unsigned parts)
{
	size_t k = 0;

	while (k < f->chart->nr_curves && !(axis_place(&f->value, edge[k]) * parts > part + 0.5))
		k++;
	return k;
}

static void stack_cell(struct terminal_field *f, const double *edge, unsigned column, unsigned row)
{
	static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	unsigned parts = f->rows * 8, base = (f->rows - 1 - row) * 8, n = 1;
	size_t none = f->chart->nr_curves, below = area_at(f, edge, base, parts), above = below;
	struct cell *c;

	if (below == none)
		return;
	while (n < 8 && (above = area_at(f, edge, base + n, parts)) == below)
		n++;
	screen_put(f->screen, f->column + column, f->row + row, block[n - 1], '#',
		curve_ink(f, &f->chart->curve[below]));
	above = n < 8 ? area_at(f, edge, base + 7, parts) : none;
	c = screen_cell(f->screen, f->column + column, f->row + row);
	if (c && above != none)
		c->paper = (int16_t)curve_ink(f, &f->chart->curve[above]);
}

void field_stack(struct terminal_field *f)
{
	double *edge = calloc(MAX(f->chart->nr_curves, (size_t)1), sizeof(*edge));

	for (unsigned column = 0; edge && f->chart->nr_curves && column < f->columns; column++) {
		if (!stack_of(f, column, edge))
			continue;
		for (unsigned row = 0; row < f->rows; row++) {
			size_t k = f->signs ? area_at(f, edge, f->rows - 1 - row, f->rows) : 0;

			if (!f->signs)
				stack_cell(f, edge, column, row);
			else if (k < f->chart->nr_curves)
				screen_put(f->screen, f->column + column, f->row + row,
					(char[]){curve_sign(k), 0}, curve_sign(k), INK_PLAIN);
		}
	}
	free(edge);
}

/* ---- heat ---- */

static const int16_t heat_ink[] = {PALETTE_HEAT(HEAT_INK)};
static const char *const heat_block[] = {" ", "░", "▒", "▓", "█"};
static const char heat_ascii[] = " .:-=+*#%@";

static double hottest(const struct terminal_field *f, size_t from_curve, size_t to_curve, unsigned column)
{
	double most = NAN;

	for (size_t k = from_curve; k < to_curve; k++) {
		const struct chart_curve *c = &f->chart->curve[k];
		size_t from, to;

		points_of(f, c, column, &from, &to);
		for (size_t i = from; i < to; i++)
			most = c->high[i] <= most ? most : isnan(c->high[i]) ? most : (double)c->high[i];
	}
	return most;
}

static void heat_cell(struct terminal_field *f, unsigned column, unsigned row, double value)
{
	struct screen *s = f->screen;
	double part = MIN(MAX(axis_place(&f->value, value), 0.0), 1.0);
	size_t step;

	if (isnan(value))
		return;
	if (s->color) {
		step = (size_t)(part * (ARRAY_SIZE(heat_ink) - 1) + 0.5);
		screen_put(s, f->column + column, f->row + row, "█", '#', heat_ink[step]);
		return;
	}
	step = (size_t)(part * (s->utf8 ? ARRAY_SIZE(heat_block) - 1 : sizeof(heat_ascii) - 2) + 0.5);
	screen_put(s, f->column + column, f->row + row, s->utf8 ? heat_block[step] : "",
		heat_ascii[MIN(step, 9u)], INK_PLAIN);
}

void field_heat(struct terminal_field *f)
{
	size_t nr = f->chart->nr_curves;

	for (unsigned row = 0; nr && row < f->rows; row++) {
		size_t from = (f->rows - 1 - row) * nr / f->rows, to = (f->rows - row) * nr / f->rows;

		for (unsigned column = 0; column < f->columns; column++)
			heat_cell(f, column, row, hottest(f, from, MAX(to, from + 1), column));
	}
}

/* ---- lives ---- */

static double thickness_of(const struct terminal_field *f, const struct chart_span *span, unsigned column)
{
	if (span->curve >= f->chart->nr_curves)
		return 0;
	return hottest(f, span->curve, (size_t)span->curve + 1, column);
}

void field_timeline(struct terminal_field *f)
{
	static const char *const bar[] = {"─", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = "-.:-=+*#@";

	for (size_t i = 0; i < f->chart->nr_spans; i++) {
		const struct chart_span *span = &f->chart->span[i];
		struct chart_curve colored = {.color = span->color};
		double end = isnan(span->to_s) ? f->time.most : span->to_s;
		double from = MAX(field_column(f, span->from_s), 0.0), to = field_column(f, end);

		for (unsigned x = (unsigned)(from + 0.5);
			span->lane < f->rows && x <= to + 0.5 && x < f->columns; x++) {
			double value = thickness_of(f, span, x);
			double part = MIN(MAX(axis_place(&f->value, value), 0.0), 1.0);
			size_t step = !(value > 0) ? 0 : (size_t)(part * 7 + 0.5) + 1;

			screen_put(f->screen, f->column + x, f->row + span->lane, bar[step], ascii[step],
				curve_ink(f, &colored));
		}
	}
}
