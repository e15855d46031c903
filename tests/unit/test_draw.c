/* draw/: pixels where they must be and none where nothing was, text that is safe, bytes that repeat. */
#include "draw/canvas.h"
#include "draw_samples.h"
#include "analysis/palette.h"

#include <glib.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES (64u << 20)

/* What fontconfig keeps for the life of the process. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig\n";
}

/* ---- pictures ---- */

struct picture {
	cairo_surface_t *surface;
	const uint8_t *data;
	int width, height, stride;
	/* Of the plot: first and last column, rows of the lowest and of the highest value with a tick. */
	int left, right, floor, top;
};

struct reading {
	const struct buf *buf;
	size_t at;
};

static cairo_status_t read_from_buf(void *closure, unsigned char *data, unsigned len)
{
	struct reading *r = closure;

	if (r->buf->len - r->at < len)
		return CAIRO_STATUS_READ_ERROR;
	memcpy(data, r->buf->data + r->at, len);
	r->at += len;
	return CAIRO_STATUS_SUCCESS;
}

static uint32_t pixel(const struct picture *p, int x, int y)
{
	assert_true(x >= 0 && x < p->width && y >= 0 && y < p->height);
	return ((const uint32_t *)(const void *)(p->data + (size_t)y * (size_t)p->stride))[x];
}

static uint32_t rgb(const struct picture *p, int x, int y)
{
	return pixel(p, x, y) & 0xffffff;
}

static int distance(uint32_t a, uint32_t b)
{
	int most = 0;

	for (int shift = 0; shift < 24; shift += 8)
		most = MAX(most, abs((int)(a >> shift & 0xff) - (int)(b >> shift & 0xff)));
	return most;
}

/* Rows with a long line of the colour of axes, or of the grid. */
static bool is_ruled(const struct picture *p, int y, uint32_t color, int *ret_left, int *ret_right)
{
	int nr = 0;

	for (int x = 0; x < p->width; x++) {
		if (rgb(p, x, y) != color)
			continue;
		if (!nr++)
			*ret_left = x;
		*ret_right = x;
	}
	return nr > p->width / 3;
}

static void find_plot(struct picture *p, bool dark)
{
	uint32_t axis = dark ? 0x4c5563 : 0xb4bcc6, grid = dark ? 0x2a303a : 0xe7eaee;
	int left, right;

	p->floor = p->top = -1;
	for (int y = 0; y < p->height; y++) {
		if (is_ruled(p, y, axis, &p->left, &p->right))
			p->floor = y;
		if (p->top < 0 && is_ruled(p, y, grid, &left, &right))
			p->top = y;
	}
	assert_true(p->floor > 0);
}

static struct picture picture_of(const struct chart *f, bool dark)
{
	struct draw_style style = {.dark = dark};
	struct picture p = {0};
	struct buf out;

	buf_init(&out, MAX_BYTES);
	assert_int_equal(draw_picture(f, DRAW_PNG, &style, &out), 0);
	p.surface = cairo_image_surface_create_from_png_stream(read_from_buf, &(struct reading){&out, 0});
	assert_int_equal(cairo_surface_status(p.surface), CAIRO_STATUS_SUCCESS);
	buf_release(&out);
	p.data = cairo_image_surface_get_data(p.surface);
	p.width = cairo_image_surface_get_width(p.surface);
	p.height = cairo_image_surface_get_height(p.surface);
	p.stride = cairo_image_surface_get_stride(p.surface);
	find_plot(&p, dark);
	return p;
}

static void picture_free(struct picture *p)
{
	cairo_surface_destroy(p->surface);
}

/* Pixels of about that colour in a rectangle of the plot, in parts of its width and height from the lower
 * left. */
static int count(const struct picture *p, uint32_t color, double x0, double x1, double y0, double y1)
{
	int nr = 0;

	for (int y = p->floor - (int)(y1 * (p->floor - p->top));
		y <= p->floor - (int)(y0 * (p->floor - p->top)) - 3; y++)
		for (int x = p->left + (int)(x0 * (p->right - p->left));
			x <= p->left + (int)(x1 * (p->right - p->left)); x++)
			nr += distance(rgb(p, x, y), color) < 24;
	return nr;
}

static char *text_of(const struct chart *f, enum draw_form form, const struct draw_style *style)
{
	struct buf out;
	char *text;

	buf_init(&out, MAX_BYTES);
	assert_int_equal(draw_picture(f, form, style, &out), 0);
	assert_true(out.len > 0);
	text = malloc(out.len + 1);
	assert_non_null(text);
	memcpy(text, out.data, out.len + 1);
	buf_release(&out);
	return text;
}

static char *svg_of(const char *id)
{
	struct sample s;
	char *text;

	sample_make(&s, id);
	text = text_of(&s.f, DRAW_SVG, NULL);
	sample_free(&s);
	return text;
}

#define BLUE 0x1660c8
#define RED 0xe64a19

/* A chart of one curve over a second, from the arrays given. */
static struct chart chart_of(struct chart_curve *c, const double *t, const float *mean, const float *low,
	const float *high, size_t nr)
{
	*c = (struct chart_curve){.name = "one",
		.nr = nr,
		.time_s = t,
		.mean = mean,
		.low = low,
		.high = high,
		.average = NAN,
		.most = NAN};
	return (struct chart){.id = "one",
		.title = "One",
		.unit = UNIT_COUNT,
		.to_s = 1,
		.y_most = 10,
		.curve = c,
		.nr_curves = 1};
}

static void even(double *t, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		t[i] = (double)i / (double)(nr - 1);
}

/* ---- curves ---- */

static void curve_stands_where_its_values_are(void **state)
{
	float mean[101] = {0};
	double t[101] = {0};
	struct chart_curve c;
	struct chart f = chart_of(&c, t, mean, mean, mean, 101);
	struct picture p;

	(void)state;
	even(t, 101);
	for (size_t i = 0; i < 101; i++)
		mean[i] = i < 50 ? 2 : 8;
	p = picture_of(&f, false);
	assert_true(count(&p, BLUE, 0.01, 0.48, 0.18, 0.22) > 500);
	assert_int_equal(count(&p, BLUE, 0.01, 0.48, 0.25, 1), 0);
	assert_int_equal(count(&p, BLUE, 0.01, 0.48, 0, 0.15), 0);
	assert_true(count(&p, BLUE, 0.52, 0.99, 0.78, 0.82) > 500);
	assert_int_equal(count(&p, BLUE, 0.52, 0.99, 0, 0.75), 0);
	picture_free(&p);
}

static void gap_is_empty_and_a_lone_point_a_dot(void **state)
{
	float mean[101] = {0};
	double t[101] = {0};
	struct chart_curve c;
	struct chart f = chart_of(&c, t, mean, mean, mean, 101);
	struct picture p;

	(void)state;
	even(t, 101);
	for (size_t i = 0; i < 101; i++)
		mean[i] = i >= 30 && i <= 70 && i != 50 ? NAN : 5;
	p = picture_of(&f, false);
	assert_true(count(&p, BLUE, 0.01, 0.28, 0.45, 0.55) > 300);
	assert_true(count(&p, BLUE, 0.72, 0.99, 0.45, 0.55) > 300);
	assert_int_equal(count(&p, BLUE, 0.305, 0.49, 0, 1), 0);
	assert_int_equal(count(&p, BLUE, 0.51, 0.695, 0, 1), 0);
	assert_true(count(&p, BLUE, 0.49, 0.51, 0.45, 0.55) >= 8);
	picture_free(&p);
}

static void range_stands_behind_the_mean(void **state)
{
	float mean[101] = {0}, low[101] = {0}, high[101] = {0};
	double t[101] = {0};
	struct chart_curve c;
	struct chart f = chart_of(&c, t, mean, low, high, 101);
	struct picture p;
	uint32_t tint;

	(void)state;
	even(t, 101);
	for (size_t i = 0; i < 101; i++) {
		mean[i] = 5;
		low[i] = 3;
		high[i] = 9;
	}
	p = picture_of(&f, false);
	tint = rgb(&p, p.left + (p.right - p.left) * 33 / 100, p.floor - (p.floor - p.top) * 75 / 100);
	assert_true(distance(tint, 0xffffff) > 30);
	assert_true(distance(tint, BLUE) > 30);
	assert_true((tint & 0xff) > (tint >> 16)); /* a blue one */
	assert_int_equal(
		rgb(&p, p.left + (p.right - p.left) * 33 / 100, p.floor - (p.floor - p.top) * 96 / 100),
		0xffffff);
	assert_int_equal(
		rgb(&p, p.left + (p.right - p.left) * 33 / 100, p.floor - (p.floor - p.top) * 12 / 100),
		0xffffff);
	assert_true(count(&p, BLUE, 0.1, 0.9, 0.46, 0.54) > 500);
	picture_free(&p);
}

/* How high something stands near a part of the width, in parts of the height. */
static double reach(const struct picture *p, double at)
{
	int middle = p->left + (int)(at * (p->right - p->left));

	for (int y = p->top + 4; y < p->floor; y++)
		for (int x = middle - 3; x <= middle + 3; x++)
			/* A grid has no colour. */
			if ((int)(rgb(p, x, y) & 0xff) - (int)(rgb(p, x, y) >> 16) > 12)
				return (double)(p->floor - y) / (p->floor - p->top);
	return 0;
}

static void peak_of_one_in_a_million_is_seen(void **state)
{
	size_t nr = 1000000;
	float *mean = calloc(nr, sizeof(*mean));
	double *t = calloc(nr, sizeof(*t));
	struct chart_curve c;
	struct chart f = chart_of(&c, t, mean, mean, mean, nr);
	struct picture p;

	(void)state;
	even(t, nr);
	for (size_t i = 0; i < nr; i++)
		mean[i] = 1;
	mean[612345] = 9.2f;
	p = picture_of(&f, false);
	assert_true(reach(&p, 0.612345) > 0.85);
	assert_true(reach(&p, 0.3) < 0.2);
	picture_free(&p);
	free(mean);
	free(t);
}

static void peak_of_areas_is_seen(void **state)
{
	struct picture p;
	struct sample s;
	int highest = INT32_MAX, x;

	(void)state;
	sample_make(&s, "stack-dense");
	p = picture_of(&s.f, false);
	/* Grey, as no curve is: it is the sum that came so high. */
	x = p.left + (int)(12345.0 / 20000 * (p.right - p.left));
	for (int y = p.floor; y > p.top + 4; y--)
		for (int i = -4; i <= 4; i++)
			if (distance(rgb(&p, x + i, y), 0x9aa1ab) < 50)
				highest = MIN(highest, y);
	assert_true(highest < p.floor - (p.floor - p.top) * 80 / 100);
	picture_free(&p);
	sample_free(&s);
}

/* A sum whose range is known reaches above areas that are means, where one point stands for many. */
static void top_of_the_sum_is_seen(void **state)
{
	float mean[3] = {2, 2, 2}, high[3] = {2, 8, 2};
	double t[] = {0, 0.5, 1};
	struct chart_curve c[2], total;
	struct chart f = chart_of(c, t, mean, mean, mean, 3);
	struct picture p;

	(void)state;
	f.form = CHART_STACKED;
	f.nr_curves = 1;
	f.y_most = 10;
	total = c[0];
	total.high = high;
	for (unsigned k = 0; k < 2; k++) {
		f.total = k ? NULL : &total;
		p = picture_of(&f, false);
		/* Between the lines of the grid. */
		assert_int_equal(distance(rgb(&p, p.left + (p.right - p.left) * 53 / 100,
						  p.floor - (p.floor - p.top) * 46 / 100),
					 0xffffff) > 30,
			!k);
		picture_free(&p);
	}
}

static void lanes_are_filled_by_one_life_not_by_all_others(void **state)
{
	float own[2] = {1, 1}, all[2] = {50, 50};
	double t[] = {0, 1};
	struct chart_curve c[2];
	struct chart f = chart_of(c, t, own, own, own, 2);
	const struct chart_span span[] = {{.name = "one", .to_s = 1, .curve = 0},
		{.name = "99 others", .to_s = 1, .curve = 1, .lane = 1, .color = CHART_OTHERS}};
	char *text;

	(void)state;
	c[1] = c[0];
	c[1].mean = c[1].low = c[1].high = all;
	c[1].color = CHART_OTHERS;
	f.form = CHART_TIMELINE;
	f.y_most = NAN;
	f.nr_curves = f.nr_spans = f.nr_lanes = 2;
	f.span = span;
	text = text_of(&f, DRAW_SVG, NULL);
	assert_non_null(strstr(text, "thickness: use, up to 1<"));
	free(text);
}

/* Between two lives there is room behind the first or before the second, but not for both. */
static void names_of_lives_do_not_overlap(void **state)
{
	struct chart_span span[] = {{.name = "the first of them", .to_s = 0.1, .curve = UINT32_MAX},
		{.name = "the second of them", .from_s = 0.25, .to_s = 0.26, .curve = UINT32_MAX},
		{.name = "the third of them", .from_s = 0.27, .to_s = 1, .curve = UINT32_MAX}};
	struct chart f = {.id = "lives",
		.title = "Lives",
		.form = CHART_TIMELINE,
		.to_s = 1,
		.y_most = NAN,
		.nr_lanes = 1};

	(void)state;
	f.span = span;
	f.nr_spans = ARRAY_SIZE(span);
	for (unsigned k = 0; k < 2; k++) {
		char *text;

		span[0].name = k ? "" : "the first of them";
		text = text_of(&f, DRAW_SVG, NULL);
		assert_int_equal(!!strstr(text, "the first of them"), !k);
		assert_int_equal(!!strstr(text, "the second of them"), k);
		assert_non_null(strstr(text, "the third of them"));
		free(text);
	}
}

static void areas_lie_upon_one_another(void **state)
{
	float mean[2][3] = {{2, 2, 2}, {4, 4, NAN}};
	double t[] = {0, 0.5, 1};
	struct chart_curve c[2];
	struct chart f = chart_of(c, t, mean[0], mean[0], mean[0], 3);
	struct picture p;

	(void)state;
	c[1] = c[0];
	c[1].mean = c[1].low = c[1].high = mean[1];
	c[1].color = 1;
	f.form = CHART_STACKED;
	f.nr_curves = 2;
	p = picture_of(&f, false);
	/* Areas are lighter than their colour. */
	assert_true(count(&p, 0x568dd8, 0.1, 0.4, 0.02, 0.18) > 5000);
	assert_true(count(&p, 0xed7d5a, 0.1, 0.4, 0.22, 0.58) > 5000);
	assert_int_equal(count(&p, 0xed7d5a, 0.8, 0.95, 0, 1), 0);
	assert_int_equal(count(&p, 0xed7d5a, 0.1, 0.4, 0.62, 1), 0);
	picture_free(&p);
}

/* ---- rows ---- */

static void heat_rows_are_in_order(void **state)
{
	float full[] = {1, 1, 1}, idle[] = {0, NAN, 0};
	double t[] = {0, 0.5, 1};
	struct chart_curve c[2];
	struct chart f = chart_of(c, t, full, full, full, 3);
	struct picture p;
	int x, upper, lower;

	(void)state;
	c[1] = c[0];
	c[1].mean = c[1].low = c[1].high = idle;
	f.form = CHART_HEAT;
	f.unit = UNIT_RATIO;
	f.nr_curves = 2;
	f.y_most = 1;
	p = picture_of(&f, false);
	x = p.left + (p.right - p.left) / 10;
	lower = p.floor - 20;
	upper = p.floor - 110;
	assert_true(distance(rgb(&p, x, lower), 0x1b1a5d) < 4);
	assert_true(distance(rgb(&p, x, upper), 0xf3f6df) < 4);
	/* Nothing known in the middle: paper or a hatch, no scale. */
	for (int i = -3; i <= 3; i++)
		assert_true(distance(rgb(&p, (p.left + p.right) / 2 + i, upper), 0xf3f6df) > 4);
	picture_free(&p);
	p = picture_of(&f, true);
	assert_true(distance(rgb(&p, x, lower), 0xfcf483) < 4);
	assert_true(distance(rgb(&p, x, upper), 0x151b56) < 4);
	picture_free(&p);
	/* The colours reach to the chart's own end, whatever the unit. */
	full[0] = full[1] = full[2] = 8;
	f.unit = UNIT_COUNT;
	f.y_most = 8;
	p = picture_of(&f, true);
	assert_true(distance(rgb(&p, x, lower), 0xfcf483) < 4);
	picture_free(&p);
}

static void lives_are_as_thick_as_their_use(void **state)
{
	float busy[] = {1, 1, 1}, idle[] = {0.05f, 0.05f, 0.05f};
	double t[] = {0, 0.5, 1};
	struct chart_span span[] = {{"busy", 0.1, 0.6, 0, 0, 0}, {"idle", 0.1, NAN, 1, 1, 1}};
	struct chart_curve c[2];
	struct chart f = chart_of(c, t, busy, busy, busy, 3);
	struct picture p;
	int thick, thin;

	(void)state;
	c[1] = c[0];
	c[1].mean = c[1].low = c[1].high = idle;
	f.form = CHART_TIMELINE;
	f.nr_curves = 2;
	f.span = span;
	f.nr_spans = f.nr_lanes = 2;
	f.y_most = NAN;
	p = picture_of(&f, false);
	p.top = 0;
	thick = thin = 0;
	for (int y = 0; y < p.floor; y++) {
		int x = p.left + (p.right - p.left) * 45 / 100;

		thick += distance(rgb(&p, x, y), BLUE) < 70;
		thin += distance(rgb(&p, x, y), RED) < 70;
	}
	assert_true(thick > 20);
	assert_true(thin >= 1 && thin < thick / 4);
	/* One has ended, the other has not. */
	assert_int_equal(count(&p, BLUE, 0.75, 0.99, 0, 0.9), 0);
	assert_true(count(&p, RED, 0.75, 0.99, 0, 0.9) > 50);
	picture_free(&p);
}

/* ---- paper ---- */

static void paper_is_white_dark_or_none(void **state)
{
	struct draw_style clear = {.transparent = true, .scale = 1};
	struct sample s;
	struct picture p;
	struct buf out;

	(void)state;
	sample_make(&s, "cpu");
	p = picture_of(&s.f, false);
	assert_int_equal(p.width, 1920);
	assert_int_equal(p.height, 720);
	assert_int_equal(rgb(&p, 2, 2), 0xffffff);
	picture_free(&p);
	sample_free(&s);
	sample_make(&s, "memory");
	p = picture_of(&s.f, true);
	assert_int_equal(rgb(&p, 2, 2), 0x16191f);
	assert_true(count(&p, 0x4a8de7, 0, 1, 0, 1) > 500);
	picture_free(&p);
	buf_init(&out, MAX_BYTES);
	assert_int_equal(draw_picture(&s.f, DRAW_PNG, &clear, &out), 0);
	p.surface = cairo_image_surface_create_from_png_stream(read_from_buf, &(struct reading){&out, 0});
	assert_int_equal(cairo_image_surface_get_width(p.surface), 960);
	assert_int_equal(*cairo_image_surface_get_data(p.surface), 0);
	picture_free(&p);
	buf_release(&out);
	sample_free(&s);
}

static double light(uint32_t color)
{
	double sum = 0, part[] = {0.0722, 0.7152, 0.2126};

	for (int i = 0; i < 3; i++) {
		double v = (color >> 8 * i & 0xff) / 255.0;

		sum += part[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
	}
	return sum;
}

static void colours_stand_out_from_their_paper(void **state)
{
	uint32_t paper[] = {0xffffff, 0x16191f};

	(void)state;
	assert_int_equal(PALETTE_SIZE, 12);
	for (int dark = 0; dark < 2; dark++)
		for (uint32_t i = 0; i <= PALETTE_SIZE; i++) {
			double a = light(draw_palette(i < PALETTE_SIZE ? i : CHART_OTHERS, dark)),
			       b = light(paper[dark]);

			assert_true((MAX(a, b) + 0.05) / (MIN(a, b) + 0.05) >= 2.3);
		}
	assert_int_equal(draw_palette(PALETTE_SIZE + 1, false), draw_palette(1, false));
	assert_int_not_equal(
		draw_palette(CHART_OTHERS, false), draw_palette(CHART_OTHERS % PALETTE_SIZE, false));
}

static void sizes_that_make_no_sense_are_refused(void **state)
{
	struct draw_style style[] = {{.width = 1e6}, {.height = 1e6}, {.width = NAN, .height = INFINITY},
		{.width = 20}, {.height = 10}, {.width = 10000, .height = 9000}, {.scale = 1000}};
	struct sample s;
	struct buf out;

	(void)state;
	sample_make(&s, "cpu");
	buf_init(&out, MAX_BYTES);
	for (size_t i = 0; i < ARRAY_SIZE(style); i++)
		assert_int_equal(draw_picture(&s.f, DRAW_PNG, &style[i], &out), -EINVAL);
	assert_int_equal(draw_picture(&s.f, (enum draw_form)9, NULL, &out), -EINVAL);
	assert_int_equal(out.len, 0);
	buf_release(&out);
	/* No room for the result. */
	for (int form = DRAW_PNG; form <= DRAW_PDF; form++) {
		buf_init(&out, 1000);
		assert_int_equal(draw_picture(&s.f, form, NULL, &out), -ENOBUFS);
		buf_release(&out);
	}
	sample_free(&s);
}

static void same_chart_gives_the_same_bytes(void **state)
{
	(void)state;
	for (int form = DRAW_PNG; form <= DRAW_PDF; form++) {
		struct buf out[2];
		struct sample s;

		sample_make(&s, "memory");
		for (int i = 0; i < 2; i++) {
			buf_init(&out[i], MAX_BYTES);
			assert_int_equal(draw_picture(&s.f, form, NULL, &out[i]), 0);
		}
		assert_int_equal(out[0].len, out[1].len);
		assert_memory_equal(out[0].data, out[1].data, out[0].len);
		if (form == DRAW_PDF)
			assert_null(memmem(out[0].data, out[0].len, "CreationDate", 12));
		buf_release(&out[0]);
		buf_release(&out[1]);
		sample_free(&s);
	}
}

/* ---- SVG ---- */

static void parse_xml(const char *text)
{
	static const GMarkupParser parser;
	GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, NULL, NULL);
	GError *error = NULL;
	bool good = g_markup_parse_context_parse(context, text, (gssize)strlen(text), &error) &&
		g_markup_parse_context_end_parse(context, &error);

	if (!good)
		print_message("%s\n", error->message);
	assert_true(good);
	g_markup_parse_context_free(context);
}

/* However they are shaped, drawn in every format: nothing crashes, and SVG stays XML. */
static void every_sample_is_drawn(void **state)
{
	(void)state;
	for (size_t i = 0; i < nr_samples; i++) {
		struct draw_style narrow = {.width = 300, .height = 200, .dark = true};
		struct sample s;
		char *text;

		samples[i](&s);
		free(text_of(&s.f, DRAW_PNG, &narrow));
		free(text_of(&s.f, DRAW_PDF, &narrow));
		text = text_of(&s.f, DRAW_SVG, NULL);
		parse_xml(text);
		assert_non_null(strstr(text, "<title>"));
		free(text);
		sample_free(&s);
	}
}

static void svg_has_its_words_as_text(void **state)
{
	static const char *const words[] = {"<title>Memory</title>", ">page cache</text>",
		">memory, GiB</text>", ">60:00 min</text>", ">limit 64 GiB, above</text>",
		">peak 3.1 GiB</text>", ">mean</text>", ": PSS, RSS, anonymous, page cache</desc>",
		"id=\"memory-light-"};
	char *text = svg_of("memory");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_non_null(strstr(text, words[i]));
	assert_null(strstr(text, "<symbol"));	/* no outlines of letters */
	assert_null(strstr(text, "id=\"clip")); /* which another picture in the page has, too */
	assert_null(strstr(text, "url(#clip"));
	free(text);
}

/* The y of a text of a picture. */
static double height_of(const char *svg, const char *words)
{
	const char *at = strstr(svg, words), *y = NULL;

	assert_non_null(at);
	while (at > svg && *at != '<')
		at--;
	y = strstr(at, " y=\"");
	assert_non_null(y);
	return strtod(y + 4, NULL);
}

/* A limit that is far above the curves covers none of them: it stands in the line of the unit. */
static void a_far_limit_covers_no_curve(void **state)
{
	char *text = svg_of("memory");

	(void)state;
	assert_true(height_of(text, ">limit 64 GiB, above</text>") == height_of(text, ">memory, GiB</text>"));
	free(text);
}

/* The first sample with a mark in its middle, or another title and subtitle; NULL: its own. */
static void expect_words(const char *mark, const char *subtitle, double width, const char *words)
{
	struct chart_mark event = {.label = mark};
	struct draw_style style = {.width = width, .height = 330};
	struct chart f;
	struct sample s;
	char *text;

	samples[0](&s);
	f = s.f;
	event.time_s = f.curve[0].time_s[f.curve[0].nr / 2];
	f.mark = mark ? &event : f.mark;
	f.nr_marks = mark ? 1 : f.nr_marks;
	f.title = subtitle ? "A title" : f.title;
	f.subtitle = subtitle ? subtitle : f.subtitle;
	text = text_of(&f, DRAW_SVG, &style);
	assert_non_null(strstr(text, words));
	free(text);
	sample_free(&s);
}

/* One event has all the room it needs: why a job was killed is not to be cut. */
static void a_lonely_event_is_told_whole(void **state)
{
	static const char killed[] = "out of memory: a process was killed in /job";

	(void)state;
	expect_words(killed, NULL, 960, ">out of memory: a process was killed in /job</text>");
}

static void a_long_subtitle_loses_whole_parts(void **state)
{
	(void)state;
	expect_words(NULL,
		"busy: mean 99.5 %, max 100 % at 802ms · in programs: mean 77.5 %, max 95.6 % at 2.40s "
		"· idle: mean 0 %, max 0 %",
		420, ">busy: mean 99.5 %, max 100 % at 802ms</text>");
}

static void svg_of_hostile_names_is_harmless(void **state)
{
	char *text = svg_of("<id>");

	(void)state;
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "<b>"));
	assert_non_null(strstr(text, ">&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;&quot;'</text>"));
	assert_null(strchr(text, '\x01'));
	assert_null(strstr(text, "\xe2\x80\xae")); /* nothing turns the line round */
	assert_null(strchr(text, '\xff'));
	free(text);
}

static void legend_counts_what_has_no_room(void **state)
{
	char *text = svg_of("many");
	size_t shown = 0, more = 0;

	(void)state;
	for (const char *p = text; (p = strstr(p, ">python3 train")); p++)
		shown++;
	assert_non_null(strstr(text, ">+ "));
	more = strtoul(strstr(text, ">+ ") + 3, NULL, 10);
	assert_true(shown > 10);
	assert_int_equal(shown + more, 60);
	free(text);
}

static void empty_chart_says_so(void **state)
{
	char *text = svg_of("nothing");

	(void)state;
	assert_non_null(strstr(text, ">no values</text>"));
	free(text);
}

/* Left and right of every text, from its attributes. */
static void texts_stay_inside(void **state)
{
	(void)state;
	for (size_t i = 0; i < nr_samples; i++) {
		struct sample s;
		char *text;

		samples[i](&s);
		text = text_of(&s.f, DRAW_SVG, NULL);
		for (const char *p = text; (p = strstr(p, "<text x=\"")); p++) {
			double x = strtod(p + 9, NULL), width = strtod(strstr(p, "textLength=\"") + 12, NULL);
			double y = strtod(strstr(p, " y=\"") + 4, NULL);

			assert_true(x >= 0 && x + width <= 960.5);
			assert_true(y > 0 && y <= draw_height(&s.f, 960));
		}
		free(text);
		sample_free(&s);
	}
}

/* ---- words ---- */

static struct axis time_axis(double from_s, double to_s)
{
	struct chart f = {.from_s = from_s, .to_s = to_s};
	struct axis a;

	axis_of_time(&a, &f, 8);
	return a;
}

static void times_are_told_as_people_do(void **state)
{
	static const struct {
		double from_s, to_s;
		const char *second, *last;
	} want[] = {{0, 0.25, "50", "250 ms"}, {0, 20, "5", "20 s"}, {0, 2.5, "0.5", "2.5 s"},
		{0, 300, "1:00", "5:00 min"}, {0, 200, "0:30", "3:00 min"}, {0, 5 * 3600, "1:00", "5:00 h"},
		{0, 3 * 86400, "12 h", "3 d"}, {0, 14 * 86400, "2 d", "14 d"},
		{600, 601, "10:00.2", "10:01.0 min"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct axis a = time_axis(want[i].from_s, want[i].to_s);
		char text[UNITS_SIZE];

		assert_string_equal(label_of_time(text, &a, 1), want[i].second);
		assert_string_equal(label_of_time(text, &a, a.nr - 1), want[i].last);
	}
}

static void values_have_their_unit_once(void **state)
{
	static const struct {
		enum metric_unit unit;
		bool per_second;
		const char *quantity;
		double most;
		const char *caption, *last;
	} want[] = {{UNIT_BYTES, false, "memory", 3.0 * (1 << 30), "memory, GiB", "3.0"},
		{UNIT_BYTES, true, NULL, 768.0 * 1024, "KiB/s", "768"},
		{UNIT_RATIO, false, NULL, 1, "%", "100"}, {UNIT_SECONDS, true, "cores", 16, "cores", "16"},
		{UNIT_COUNT, true, "faults", 60000, "faults/s", "60k"},
		{UNIT_JOULES, true, "power", 250, "power, W", "250"},
		{UNIT_HERTZ, false, NULL, 3e9, "GHz", "3.0"}, {UNIT_CELSIUS, false, NULL, 80, "°C", "80"},
		{UNIT_COUNT, false, NULL, 5, "", "5"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct chart_level level = {want[i].most, NULL, true};
		struct chart f = {.unit = want[i].unit,
			.per_second = want[i].per_second,
			.quantity = want[i].quantity,
			.y_most = NAN,
			.level = &level,
			.nr_levels = 1};
		struct value_labels l;
		struct axis a;
		char text[UNITS_SIZE];

		axis_of_values(&a, &f, 6);
		value_labels(&l, &f, &a);
		assert_string_equal(l.caption, want[i].caption);
		assert_string_equal(label_of_value(text, &l, want[i].most), want[i].last);
	}
}

static void text_is_cut_in_its_middle(void **state)
{
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
	cairo_t *cr = cairo_create(surface);
	struct words w = {.text = "beginning-of-a-long-name-and-its-end", .most = 100};
	struct buf words;
	struct pen pen;
	double width;

	(void)state;
	buf_init(&words, 10000);
	pen_open(&pen, cr, false, 12, &words);
	assert_true(pen_measure(&pen, w.text, FACE_PLAIN) > 150);
	width = pen_write(&pen, &w);
	assert_true(width <= 100 && width > 80);
	assert_non_null(strstr((char *)words.data, ">begin"));
	assert_non_null(strstr((char *)words.data, "…"));
	assert_non_null(strstr((char *)words.data, "end</text>"));
	/* Not even a letter: nothing at all. */
	buf_reset(&words);
	w.most = 1;
	assert_true(pen_write(&pen, &w) == 0);
	assert_int_equal(words.len, 0);
	pen_close(&pen);
	buf_release(&words);
	cairo_destroy(cr);
	cairo_surface_destroy(surface);
}

/* ---- reduction ---- */

static void reduction_keeps_least_and_most(void **state)
{
	enum { NR = 10000, COLUMNS = 100 };
	static float mean[NR];
	static double t[NR];
	struct chart_curve c = {.nr = NR, .time_s = t, .mean = mean, .low = mean, .high = mean};
	struct drawn_point p[REDUCED_MAX(COLUMNS)];
	size_t nr;

	(void)state;
	for (size_t i = 0; i < NR; i++) {
		t[i] = (double)i;
		mean[i] = i >= 5000 && i < 5500 ? NAN : 10;
	}
	mean[1234] = 70;
	mean[1235] = -60;
	nr = curve_reduce(&c, 0, NR, COLUMNS, p);
	assert_int_equal(nr, COLUMNS);
	assert_true(p[12].high == 70 && p[12].low == -60);
	assert_true(p[12].mean > 9 && p[12].mean < 11);
	assert_true(p[13].high == 10 && p[13].low == 10);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(isnan(p[i].mean), i >= 50 && i < 55);
	/* Few points stay as they are, with their neighbours. */
	nr = curve_reduce(&c, 100, 200, COLUMNS, p);
	assert_int_equal(nr, 103);
	assert_true(p[0].time_s == 99 && p[102].time_s == 201);
	assert_int_equal(curve_reduce(&c, 1e9, 2e9, COLUMNS, p), 1);
	/* Times that go back. */
	t[0] = 1e9;
	t[NR - 1] = -1;
	assert_true(curve_reduce(&c, 0, NR, COLUMNS, p) <= REDUCED_MAX(COLUMNS));
}

static void highs_of_a_sum_keep_their_peaks(void **state)
{
	double t[] = {0, 1, 2, 3, 4, 5}, v[12];
	float mean[] = {1, 1, 1, NAN, 1, 1}, high[] = {1, 1, 9, NAN, 1, 5};
	struct chart_curve c = {.nr = 6, .time_s = t, .mean = mean, .low = mean, .high = high};

	(void)state;
	/* Two points in a column: the higher one. */
	assert_true(curve_highs(&c, 0, 6, 3, v));
	assert_true(v[0] == 1 && v[1] == 9 && v[2] == 5);
	/* Several columns for a point: no holes but the gap. */
	assert_true(curve_highs(&c, 0, 6, 12, v));
	for (size_t k = 0; k < 11; k++)
		assert_int_equal(isnan(v[k]), k == 5 || k == 6);
	assert_true(v[4] == 9);
	/* What has no range has nothing to add. */
	c.high = mean;
	assert_false(curve_highs(&c, 0, 6, 3, v));
	assert_false(curve_highs(NULL, 0, 6, 3, v));
}

static void resampling_takes_the_nearest_and_stops_at_gaps(void **state)
{
	double t[] = {0, 1, 2, 3, 4}, v[8], most[2];
	float a[] = {0, 10, NAN, 4, 4}, b[] = {1, 1, 1, 1, 90};
	struct chart_curve c[] = {{.nr = 5, .time_s = t, .mean = a}, {.nr = 5, .time_s = t, .mean = b}};

	(void)state;
	curve_resample(&c[0], 0, 4, 8, v);
	/* The middles of the columns are 0.25, 0.75...; those with a point in them have its value. */
	assert_true(v[0] == 0 && v[1] == 10 && v[2] == 10);
	assert_true(isnan(v[3]) && isnan(v[4])); /* 1.75 is nearer to the gap */
	assert_true(v[5] == 4 && v[6] == 4 && v[7] == 4);
	assert_true(curves_most(c, 2, 0, 4, 2, most));
	assert_true(most[0] == 11 && most[1] == 94);
	assert_false(curves_most(c, 2, 0, 4, 4, v)); /* few points: nothing was lost */
	c[1].nr = 4;
	assert_false(curves_most(c, 2, 0, 4, 2, most));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curve_stands_where_its_values_are),
		cmocka_unit_test(gap_is_empty_and_a_lone_point_a_dot),
		cmocka_unit_test(range_stands_behind_the_mean),
		cmocka_unit_test(peak_of_one_in_a_million_is_seen),
		cmocka_unit_test(peak_of_areas_is_seen),
		cmocka_unit_test(top_of_the_sum_is_seen),
		cmocka_unit_test(lanes_are_filled_by_one_life_not_by_all_others),
		cmocka_unit_test(names_of_lives_do_not_overlap),
		cmocka_unit_test(areas_lie_upon_one_another),
		cmocka_unit_test(heat_rows_are_in_order),
		cmocka_unit_test(lives_are_as_thick_as_their_use),
		cmocka_unit_test(paper_is_white_dark_or_none),
		cmocka_unit_test(colours_stand_out_from_their_paper),
		cmocka_unit_test(sizes_that_make_no_sense_are_refused),
		cmocka_unit_test(same_chart_gives_the_same_bytes),
		cmocka_unit_test(every_sample_is_drawn),
		cmocka_unit_test(svg_has_its_words_as_text),
		cmocka_unit_test(a_far_limit_covers_no_curve),
		cmocka_unit_test(a_long_subtitle_loses_whole_parts),
		cmocka_unit_test(a_lonely_event_is_told_whole),
		cmocka_unit_test(svg_of_hostile_names_is_harmless),
		cmocka_unit_test(legend_counts_what_has_no_room),
		cmocka_unit_test(empty_chart_says_so),
		cmocka_unit_test(texts_stay_inside),
		cmocka_unit_test(times_are_told_as_people_do),
		cmocka_unit_test(values_have_their_unit_once),
		cmocka_unit_test(text_is_cut_in_its_middle),
		cmocka_unit_test(reduction_keeps_least_and_most),
		cmocka_unit_test(highs_of_a_sum_keep_their_peaks),
		cmocka_unit_test(resampling_takes_the_nearest_and_stops_at_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
