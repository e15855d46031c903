/* Pages of a document: text, heads and feet, links: see paper.h. */
#include "draw/paper.h"

#include "analysis/palette.h"

#include <cairo-pdf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CODE_FONTS "DejaVu Sans Mono, Liberation Mono, Noto Sans Mono, monospace"

/* ---- text ---- */

/* clang-format off */
static const struct {
	double size;
	bool bold, code;
	double leading;
} font_row[NR_FONTS] = {
	[FONT_TEXT]      = {8.6,  false, false, 1.32},
	[FONT_SMALL]     = {7.2,  false, false, 1.30},
	[FONT_STRONG]    = {9.2,  true,  false, 1.25},
	[FONT_TITLE]     = {22,   true,  false, 1.15},
	[FONT_HEADING]   = {13,   true,  false, 1.20},
	[FONT_FACT]      = {12.5, true,  false, 1.20},
	[FONT_CODE]      = {8.2,  false, true,  1.35},
	[FONT_CODE_SMALL]= {6.9,  false, true,  1.35},
	[FONT_CELL]      = {7,    false, false, 1.20},
	[FONT_CELL_HEAD] = {6.6,  true,  false, 1.15},
};
/* clang-format on */

static void lay_out(struct paper *p, const struct lines *t)
{
	PangoFontDescription *font =
		pango_font_description_from_string(font_row[t->font].code ? CODE_FONTS : PEN_FONTS);
	char *valid = g_utf8_make_valid(t->text ? t->text : "", -1);
	PangoLayout *layout = p->pen.layout;

	if (font_row[t->font].bold)
		pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
	pango_font_description_set_absolute_size(font, font_row[t->font].size * PANGO_SCALE);
	pango_layout_set_font_description(layout, font);
	pango_font_description_free(font);
	pango_layout_set_width(layout, t->width > 0 ? (int)(t->width * PANGO_SCALE) : -1);
	pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
	pango_layout_set_ellipsize(layout, t->most ? PANGO_ELLIPSIZE_END : PANGO_ELLIPSIZE_NONE);
	pango_layout_set_height(layout, t->most ? -(int)t->most : -1);
	pango_layout_set_line_spacing(layout, (float)font_row[t->font].leading);
	pango_layout_set_alignment(layout, t->align > 0 ? PANGO_ALIGN_RIGHT : PANGO_ALIGN_LEFT);
	pango_layout_set_single_paragraph_mode(layout, true);
	pango_layout_set_text(layout, valid, -1);
	g_free(valid);
}

/* Other drawings use the same layout: it is left as it was found. */
static void forget_layout(struct paper *p)
{
	PangoLayout *layout = p->pen.layout;

	pango_layout_set_width(layout, -1);
	pango_layout_set_height(layout, -1);
	pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_NONE);
	pango_layout_set_line_spacing(layout, 0);
	pango_layout_set_alignment(layout, PANGO_ALIGN_LEFT);
}

double lines_height(struct paper *p, const struct lines *t)
{
	int height;

	lay_out(p, t);
	pango_layout_get_size(p->pen.layout, NULL, &height);
	forget_layout(p);
	return (double)height / PANGO_SCALE;
}

double lines_width(struct paper *p, const char *text, enum font font)
{
	const struct lines t = {.text = text, .font = font};
	int width;

	lay_out(p, &t);
	pango_layout_get_size(p->pen.layout, &width, NULL);
	forget_layout(p);
	return (double)width / PANGO_SCALE;
}

double lines_put(struct paper *p, const struct lines *t, double y)
{
	int height;

	lay_out(p, t);
	pango_layout_get_size(p->pen.layout, NULL, &height);
	if (!p->dry) {
		pen_color(&p->pen, t->color, 1);
		cairo_move_to(p->pen.cr, t->x, y);
		pango_cairo_show_layout(p->pen.cr, p->pen.layout);
	}
	forget_layout(p);
	return (double)height / PANGO_SCALE;
}

/* ---- pages ---- */

static void draw_head(struct paper *p)
{
	double width = PAPER_TEXT / ARRAY_SIZE(p->head), y = 30;

	for (size_t i = 0; i < ARRAY_SIZE(p->head); i++) {
		struct lines t = {.text = p->head[i][0],
			.font = FONT_SMALL,
			.color = pen_ink(&p->pen, INK_QUIET),
			.x = PAPER_MARGIN + (double)i * width,
			.width = width - 10,
			.most = 1};

		lines_put(p, &t, y);
		t.text = p->head[i][1];
		t.font = FONT_TEXT;
		t.color = pen_ink(&p->pen, INK_TEXT);
		lines_put(p, &t, y + 10);
	}
	pen_color(&p->pen, pen_ink(&p->pen, INK_AXIS), 1);
	pen_line(&p->pen, PAPER_MARGIN, 58, PAPER_WIDTH - PAPER_MARGIN, 58, 0.6);
}

static void draw_foot(struct paper *p)
{
	char text[64];
	struct lines t = {.text = p->foot,
		.font = FONT_SMALL,
		.color = pen_ink(&p->pen, INK_QUIET),
		.x = PAPER_MARGIN,
		.width = PAPER_TEXT - 100,
		.most = 1};

	lines_put(p, &t, PAPER_HEIGHT - 36);
	snprintf(text, sizeof(text), "page %u of %u", p->page, MAX(p->pages, p->page));
	t.text = text;
	t.x = PAPER_WIDTH - PAPER_MARGIN - 100;
	t.width = 100;
	t.align = 1;
	lines_put(p, &t, PAPER_HEIGHT - 36);
}

static void begin_page(struct paper *p)
{
	p->page++;
	p->y = PAPER_TOP;
	if (!p->dry) {
		draw_head(p);
		draw_foot(p);
	}
	if (p->turned)
		p->turned(p->arg, p);
}

void paper_open(struct paper *p, cairo_surface_t *surface, bool dry, unsigned pages)
{
	p->surface = surface;
	p->dry = dry;
	p->pages = pages;
	pen_open(&p->pen, cairo_create(surface), false, 10, NULL);
	begin_page(p);
}

void paper_close(struct paper *p)
{
	cairo_t *cr = p->pen.cr;

	if (!p->dry)
		cairo_show_page(cr);
	pen_close(&p->pen);
	cairo_destroy(cr);
}

static void paper_turn(struct paper *p)
{
	if (!p->dry)
		cairo_show_page(p->pen.cr);
	begin_page(p);
}

void paper_need(struct paper *p, double height)
{
	if (p->y + height > PAPER_BOTTOM && p->y > PAPER_TOP + 1)
		paper_turn(p);
}

/* ---- the flow ---- */

void paper_text(struct paper *p, const struct lines *t, double after)
{
	paper_need(p, lines_height(p, t));
	p->y += lines_put(p, t, p->y) + after;
}

void paper_heading(struct paper *p, const char *text, const char *name, double keep_with)
{
	struct lines t = {.text = text,
		.font = FONT_HEADING,
		.color = pen_ink(&p->pen, INK_TEXT),
		.x = PAPER_MARGIN,
		.width = PAPER_TEXT,
		.most = 1};

	if (p->y > PAPER_TOP + 1)
		p->y += 10;
	paper_need(p, 26 + keep_with);
	if (name)
		paper_place(p, name, p->y);
	if (!p->dry) {
		char where[80];

		snprintf(where, sizeof(where), "page=%u pos=[%.0f %.0f]", p->page, PAPER_MARGIN, p->y - 12);
		cairo_pdf_surface_add_outline(p->surface, CAIRO_PDF_OUTLINE_ROOT, text, where, 0);
	}
	p->y += lines_put(p, &t, p->y) + 6;
}

void paper_box(struct paper *p, struct rect r, double radius, uint32_t rgb, double alpha)
{
	cairo_t *cr = p->pen.cr;

	if (p->dry)
		return;
	cairo_new_sub_path(cr);
	cairo_arc(cr, r.x + r.w - radius, r.y + radius, radius, -M_PI / 2, 0);
	cairo_arc(cr, r.x + r.w - radius, r.y + r.h - radius, radius, 0, M_PI / 2);
	cairo_arc(cr, r.x + radius, r.y + r.h - radius, radius, M_PI / 2, M_PI);
	cairo_arc(cr, r.x + radius, r.y + radius, radius, M_PI, 3 * M_PI / 2);
	cairo_close_path(cr);
	pen_color(&p->pen, rgb, alpha);
	cairo_fill(cr);
}

/* ---- links ---- */

void paper_place(struct paper *p, const char *name, double y)
{
	char text[200];

	if (p->dry)
		return;
	snprintf(text, sizeof(text), "name='%.100s' x=%.0f y=%.0f", name, PAPER_MARGIN, MAX(y - 12, 0));
	cairo_tag_begin(p->pen.cr, CAIRO_TAG_DEST, text);
	cairo_tag_end(p->pen.cr, CAIRO_TAG_DEST);
}

void paper_link_begin(struct paper *p, const char *name)
{
	char text[200];

	if (p->dry)
		return;
	snprintf(text, sizeof(text), "dest='%.100s'", name);
	cairo_tag_begin(p->pen.cr, CAIRO_TAG_LINK, text);
}

void paper_link_end(struct paper *p)
{
	if (!p->dry)
		cairo_tag_end(p->pen.cr, CAIRO_TAG_LINK);
}
