/* Text and colours for all drawings.
 *
 * Text is measured by pango in every format, so that a chart looks alike in all of them. SVG gets real text
 * (<text>, stretched to the width that was measured) instead of the outlines that cairo would make of it: it
 * can be searched and read aloud, and is a fifth of the size. Hinting is off, because positions must not
 * depend on the resolution. Names are not trusted: bytes that are not UTF-8, control characters and those
 * that turn the direction of writing are replaced, and a text is cut before it is laid out when it is longer
 * than any chart is wide. */
#include "draw/pen.h"

#include "base/str.h"
#include "analysis/palette.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX 600 /* bytes */

/* ---- colours ---- */

#define BOTH(name, white, dark) {white, dark},

uint32_t draw_palette(uint32_t index, bool dark)
{
	static const uint32_t color[][2] = {PALETTE(BOTH)};
	static const uint32_t paper[][2] = {PALETTE_PAPER(BOTH)};

	return index == CHART_OTHERS ? paper[INK_OTHERS][dark] : color[index % ARRAY_SIZE(color)][dark];
}

uint32_t pen_palette(const struct pen *p, uint32_t index)
{
	return draw_palette(index, p->dark);
}

uint32_t pen_ink(const struct pen *p, enum ink ink)
{
	static const uint32_t color[NR_INKS][2] = {PALETTE_PAPER(BOTH)};

	return color[ink][p->dark];
}

uint32_t pen_heat(const struct pen *p, double value)
{
#define STOP(rgb) rgb,
	static const uint32_t on_dark[] = {PALETTE_HEAT(STOP)}, on_white[] = {PALETTE_HEAT_WHITE(STOP)};
	const uint32_t *stop = p->dark ? on_dark : on_white;
	size_t last = (p->dark ? ARRAY_SIZE(on_dark) : ARRAY_SIZE(on_white)) - 1;
	double at = (value > 0 ? MIN(value, 1.0) : 0) * (double)last;
	size_t i = MIN((size_t)at, last - 1);
	uint32_t rgb = 0;

	for (int shift = 16; shift >= 0; shift -= 8) {
		double a = stop[i] >> shift & 0xff, b = stop[i + 1] >> shift & 0xff;

		rgb |= (uint32_t)(a + (b - a) * (at - (double)i) + 0.5) << shift;
	}
	return rgb;
}

void pen_color(const struct pen *p, uint32_t rgb, double alpha)
{
	cairo_set_source_rgba(
		p->cr, (rgb >> 16) / 255.0, (rgb >> 8 & 0xff) / 255.0, (rgb & 0xff) / 255.0, alpha);
}

/* ---- straight things ---- */

/* On pixels, where there are any: a line of one pixel is not two of half the colour. */
static double snap(const struct pen *p, double at, double *width, bool across)
{
	double x = 1, y = 1, scale, left = 0, top = 0, place;

	if (!p->snaps)
		return at;
	cairo_user_to_device_distance(p->cr, &x, &y);
	cairo_user_to_device(p->cr, &left, &top);
	scale = across ? y : x;
	*width = MAX(1.0, round(*width * scale)) / scale;
	place = at * scale + (across ? top : left);
	place = fmod(round(*width * scale), 2) > 0 ? floor(place) + 0.5 : round(place);
	return (place - (across ? top : left)) / scale;
}

void pen_line(const struct pen *p, double x0, double y0, double x1, double y1, double width)
{
	if (y0 == y1)
		y0 = y1 = snap(p, y0, &width, true);
	else if (x0 == x1)
		x0 = x1 = snap(p, x0, &width, false);
	cairo_set_line_width(p->cr, width);
	cairo_move_to(p->cr, x0, y0);
	cairo_line_to(p->cr, x1, y1);
	cairo_stroke(p->cr);
}

void pen_dash(const struct pen *p, double on, double off)
{
	double dash[2] = {on, off};

	cairo_set_dash(p->cr, dash, on > 0 ? 2 : 0, 0);
}

void pen_box(const struct pen *p, struct rect r)
{
	cairo_rectangle(p->cr, r.x, r.y, r.w, r.h);
	cairo_fill(p->cr);
}

/* ---- text ---- */

/* What can be shown of it. */
void add_shown(struct buf *out, const char *text)
{
	const uint8_t *p = (const uint8_t *)(text ? text : ""), *end = p + strlen((const char *)p);
	size_t from = out->len;

	while (p < end && out->len - from < TEXT_MAX - 24) {
		size_t n = MAX(utf8_length(p, end), (size_t)1);

		show_bytes(out, p, n, "");
		p += n;
	}
	if (p < end)
		buf_adds(out, "…");
}

static void add_escaped(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const char *as = text[i] == '&' ? "&amp;"
			: text[i] == '<'	? "&lt;"
			: text[i] == '>'	? "&gt;"
			: text[i] == '"'	? "&quot;"
						: NULL;

		if (as)
			buf_adds(out, as);
		else
			buf_addch(out, text[i]);
	}
}

void add_xml(struct buf *out, const char *text)
{
	char memory[TEXT_MAX];
	struct buf clean;

	buf_init_fixed(&clean, memory, sizeof(memory));
	add_shown(&clean, text);
	add_escaped(out, (const char *)clean.data, clean.len);
}

double face_size(const struct pen *p, enum face face)
{
	static const double part[NR_FACES] = {1, 0.92, 1, 1.25};

	return p->size * part[face];
}

static double lay_out(struct pen *p, const char *text, size_t len, enum face face)
{
	PangoFontDescription *font = pango_font_description_from_string(PEN_FONTS);
	int width;

	if (face == FACE_TITLE || face == FACE_STRONG)
		pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
	pango_font_description_set_absolute_size(font, face_size(p, face) * PANGO_SCALE);
	pango_layout_set_font_description(p->layout, font);
	pango_font_description_free(font);
	pango_layout_set_text(p->layout, text, (int)len);
	pango_layout_get_size(p->layout, &width, NULL);
	return (double)width / PANGO_SCALE;
}

static size_t next_letter(const struct buf *text, size_t at)
{
	for (at++; at < text->len && (text->data[at] & 0xc0) == 0x80;)
		at++;
	return MIN(at, text->len);
}

static size_t last_letter(const struct buf *text, size_t at)
{
	for (at -= at > 0; at > 0 && (text->data[at] & 0xc0) == 0x80;)
		at--;
	return at;
}

/* The first and the last letters of a text, `keep` together. */
static void keep_ends(const struct buf *text, size_t keep, struct buf *out)
{
	size_t head = 0, tail = text->len;

	for (size_t n = 0; n < (keep + 1) / 2; n++)
		head = next_letter(text, head);
	for (size_t n = 0; n < keep / 2; n++)
		tail = last_letter(text, tail);
	buf_reset(out);
	buf_add(out, text->data, head);
	buf_adds(out, "…");
	buf_add(out, text->data + tail, text->len - tail);
}

/* The middle goes: the beginning of a name says what it is, its end which one. Empty where not even one
 * letter has room. */
static double cut_middle(struct pen *p, struct buf *text, double most, enum face face)
{
	double width = lay_out(p, (char *)text->data, text->len, face);
	size_t fits = 0, too_many = utf8_columns((char *)text->data);
	char memory[TEXT_MAX + 8];
	struct buf cut;

	if (!(most > 0) || width <= most)
		return width;
	buf_init_fixed(&cut, memory, sizeof(memory));
	while (fits + 1 < too_many) {
		size_t keep = (fits + too_many) / 2;

		keep_ends(text, keep, &cut);
		if (lay_out(p, (char *)cut.data, cut.len, face) <= most)
			fits = keep;
		else
			too_many = keep;
	}
	keep_ends(text, fits, &cut);
	buf_reset(text);
	if (fits)
		buf_add(text, cut.data, cut.len);
	return lay_out(p, (char *)text->data, text->len, face);
}

double pen_measure(struct pen *p, const char *text, enum face face)
{
	char memory[TEXT_MAX];
	struct buf clean;

	buf_init_fixed(&clean, memory, sizeof(memory));
	add_shown(&clean, text);
	return lay_out(p, (char *)clean.data, clean.len, face);
}

static void add_svg_text(struct pen *p, const struct words *w, const struct buf *text, double x, double width)
{
	struct buf *out = p->words;

	buf_addf(out,
		"<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.2f\" textLength=\"%.2f\" "
		"lengthAdjust=\"spacingAndGlyphs\" fill=\"#%06x\"",
		x, w->y, face_size(p, w->face), width, w->color);
	if (w->face == FACE_TITLE || w->face == FACE_STRONG)
		buf_adds(out, " font-weight=\"bold\"");
	if (w->halo)
		buf_addf(out,
			" stroke=\"#%06x\" stroke-width=\"3\" stroke-linejoin=\"round\" "
			"paint-order=\"stroke\"",
			pen_ink(p, INK_PAPER));
	buf_addch(out, '>');
	add_escaped(out, (char *)text->data, text->len);
	buf_adds(out, "</text>\n");
}

static void show_text(struct pen *p, const struct words *w, double x)
{
	double y = w->y - (double)pango_layout_get_baseline(p->layout) / PANGO_SCALE;

	if (w->halo) {
		cairo_save(p->cr);
		cairo_move_to(p->cr, x, y);
		pango_cairo_layout_path(p->cr, p->layout);
		pen_color(p, pen_ink(p, INK_PAPER), 1);
		cairo_set_line_width(p->cr, 3);
		cairo_set_line_join(p->cr, CAIRO_LINE_JOIN_ROUND);
		cairo_stroke(p->cr);
		cairo_restore(p->cr);
	}
	cairo_move_to(p->cr, x, y);
	pen_color(p, w->color, 1);
	pango_cairo_show_layout(p->cr, p->layout);
	cairo_new_path(p->cr);
}

double pen_write(struct pen *p, const struct words *w)
{
	char memory[TEXT_MAX + 8];
	struct buf text;
	double width;

	buf_init_fixed(&text, memory, sizeof(memory));
	add_shown(&text, w->text);
	width = cut_middle(p, &text, w->most, w->face);
	if (!text.len)
		return 0;
	if (p->words)
		add_svg_text(p, w, &text, w->x - width * w->align, width);
	else
		show_text(p, w, w->x - width * w->align);
	return width;
}

/* ---- the pen itself ---- */

void pen_open(struct pen *p, cairo_t *cr, bool dark, double size, struct buf *words)
{
	cairo_font_options_t *options = cairo_font_options_create();
	PangoContext *context = pango_cairo_create_context(cr);

	*p = (struct pen){.cr = cr, .dark = dark, .size = size, .words = words, .pixel = 0.5};
	/* PDF has no pixels. An SVG is shown pixel by pixel on most screens. */
	p->snaps = cairo_surface_get_type(cairo_get_target(cr)) != CAIRO_SURFACE_TYPE_PDF;
	cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
	cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
	cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
	pango_cairo_context_set_font_options(context, options);
	cairo_font_options_destroy(options);
	pango_context_set_round_glyph_positions(context, FALSE);
	p->layout = pango_layout_new(context);
	g_object_unref(context);
	pango_layout_set_auto_dir(p->layout, FALSE);
	pango_layout_set_single_paragraph_mode(p->layout, TRUE);
}

void pen_close(struct pen *p)
{
	if (p->layout)
		g_object_unref(p->layout);
	p->layout = NULL;
}
