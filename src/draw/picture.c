/* Whole pictures: a surface, the chart on it, its bytes.
 *
 * The SVG that cairo writes is rewritten. The head is our own, with title and description for people who
 * cannot see it; ids get the chart's as a prefix, since those of two pictures in one page would be the same;
 * numbers of paths lose digits that make no visible difference; and the words, which cairo would have turned
 * into outlines, follow as text. */
#include "draw/canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <string.h>

#define LARGEST 20000.0
#define PIXELS_MAX 50e6

static cairo_status_t write_to_buf(void *closure, const unsigned char *data, unsigned len)
{
	struct buf *out = closure;

	buf_add(out, data, len);
	return out->err ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static int draw_sized(
	cairo_surface_t *surface, const struct chart *f, const struct draw_style *s, struct buf *words)
{
	cairo_t *cr = cairo_create(surface);
	int r;

	if (s->scale != 1)
		cairo_scale(cr, s->scale, s->scale);
	r = draw_chart_words(cr, f, (struct rect){0, 0, s->width, s->height}, s, words);
	cairo_destroy(cr);
	return r;
}

/* Finishes it, so that all is written; returns the first error. */
static int surface_end(cairo_surface_t *surface, int r, const struct buf *out)
{
	int status;

	cairo_surface_finish(surface);
	status = draw_status(cairo_surface_status(surface));
	cairo_surface_destroy(surface);
	return out->err ? out->err : r < 0 ? r : status;
}

static int picture_png(const struct chart *f, const struct draw_style *s, struct buf *out)
{
	cairo_surface_t *surface =
		cairo_image_surface_create(s->transparent ? CAIRO_FORMAT_ARGB32 : CAIRO_FORMAT_RGB24,
			(int)round(s->width * s->scale), (int)round(s->height * s->scale));
	int r = draw_sized(surface, f, s, NULL);

	if (!r)
		r = png_of(surface, out);
	return surface_end(surface, r, out);
}

static int picture_pdf(const struct chart *f, const struct draw_style *s, struct buf *out)
{
	cairo_surface_t *surface =
		cairo_pdf_surface_create_for_stream(write_to_buf, out, s->width, s->height);
	char memory[800];
	struct buf title;

	buf_init_fixed(&title, memory, sizeof(memory));
	add_shown(&title, f->title);
	cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, (char *)title.data);
	cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "tacho " TACHO_VERSION);
	cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, NULL);
	return surface_end(surface, draw_sized(surface, f, s, NULL), out);
}

/* ---- SVG ---- */

static void add_prefix(struct buf *out, const struct chart *f, bool dark)
{
	for (const char *p = f->id ? f->id : ""; *p; p++)
		buf_addch(out, (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') ? *p : '-');
	buf_adds(out, dark ? "-dark-" : "-light-");
}

static void add_head(struct buf *out, const struct chart *f, const struct draw_style *s)
{
	size_t named = 0;

	buf_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
		"width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" class=\"chart-",
		s->width, s->height, s->width, s->height);
	for (const char *p = f->id ? f->id : ""; *p; p++)
		buf_addch(out, (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') ? *p : '-');
	buf_adds(out, "\">\n<title>");
	add_xml(out, f->title);
	buf_adds(out, "</title>\n<desc>");
	if (f->subtitle)
		add_xml(out, f->subtitle);
	for (size_t i = 0; i < MIN(f->nr_curves, (size_t)100); i++) {
		if (!f->curve[i].name || !*f->curve[i].name)
			continue;
		buf_adds(out, named++ ? ", " : f->subtitle ? ": " : "");
		add_xml(out, f->curve[i].name);
	}
	buf_adds(out, "</desc>\n");
}

static bool at(const struct buf *b, size_t i, const char *word)
{
	size_t n = strlen(word);

	return b->len - i >= n && !memcmp(b->data + i, word, n);
}

/* A number of a path, two digits behind the point; how long it was. */
static size_t add_short(struct buf *out, const struct buf *in, size_t i)
{
	size_t from = i, point;

	while (i < in->len && (in->data[i] == '-' || (in->data[i] >= '0' && in->data[i] <= '9')))
		i++;
	if (i < in->len && in->data[i] == '.') {
		for (point = i++; i < in->len && in->data[i] >= '0' && in->data[i] <= '9';)
			i++;
		buf_add(out, in->data + from, MIN(i, point + 3) - from);
	} else {
		buf_add(out, in->data + from, i - from);
	}
	return i - from;
}

/* Names of cairo's own, without what differs from one picture to the next: it numbers surfaces over the life
 * of the process. How long the name was. */
static size_t add_name(struct buf *out, const struct buf *in, size_t i, uint64_t first)
{
	uint64_t nr = 0;
	size_t n = 7;

	if (!at(in, i, "surface"))
		return 0;
	for (; i + n < in->len && in->data[i + n] >= '0' && in->data[i + n] <= '9'; n++)
		nr = nr * 10 + (uint64_t)(in->data[i + n] - '0');
	buf_addf(out, "surface%llu", (unsigned long long)(nr - first));
	return n;
}

struct rewriting {
	struct buf *out;
	const struct buf *in;
	const struct chart *f;
	bool dark;
	bool path;	/* within the numbers of one */
	uint64_t first; /* surface */
};

/* What begins at i, as it is to be; how long it was. */
static size_t rewrite(struct rewriting *w, size_t i)
{
	static const char *const names[] = {" id=\"", "url(#", "href=\"#"};
	size_t n;

	for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
		if (!at(w->in, i, names[k]))
			continue;
		n = strlen(names[k]);
		buf_add(w->out, names[k], n);
		add_prefix(w->out, w->f, w->dark);
		return n + add_name(w->out, w->in, i + n, w->first);
	}
	if (at(w->in, i, " d=\"")) {
		w->path = true;
		buf_adds(w->out, " d=\"");
		return 4;
	}
	w->path &= w->in->data[i] != '"';
	n = w->path ? add_short(w->out, w->in, i) : 0;
	if (!n)
		buf_addch(w->out, w->in->data[i]);
	return MAX(n, (size_t)1);
}

/* The least number of a surface in the picture. */
static uint64_t first_surface(const struct buf *in)
{
	uint64_t first = UINT64_MAX;

	for (const char *p = (const char *)in->data; (p = strstr(p, "surface")); p++) {
		uint64_t nr = strtoull(p + 7, NULL, 10);

		if (p[7] >= '0' && p[7] <= '9')
			first = MIN(first, nr);
	}
	return first;
}

/* cairo's own head ends with the first tag's '>'; its end is the last tag. */
static int add_svg(struct buf *out, const struct buf *in, const struct buf *words, const struct chart *f,
	const struct draw_style *s)
{
	const char *text = (const char *)in->data, *head = strstr(text, "<svg"),
		   *body = head ? strchr(head, '>') : NULL;
	const char *end = NULL;
	struct rewriting w = {.out = out, .in = in, .f = f, .dark = s->dark, .first = first_surface(in)};

	for (const char *p = body; p && (p = strstr(p, "</svg>")); p++)
		end = p;
	if (!end)
		return -EIO;
	add_head(out, f, s);
	for (size_t i = (size_t)(body + 1 - text); i < (size_t)(end - text);)
		i += rewrite(&w, i);
	buf_adds(out, "<g font-family=\"" PEN_FONTS "\">\n");
	buf_add(out, words->data, words->len);
	buf_adds(out, "</g>\n</svg>\n");
	return out->err;
}

static int picture_svg(const struct chart *f, const struct draw_style *s, struct buf *out)
{
	struct buf body, words;
	cairo_surface_t *surface;
	int r;

	buf_init(&body, out->max);
	buf_init(&words, out->max);
	surface = cairo_svg_surface_create_for_stream(write_to_buf, &body, s->width, s->height);
	cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
	r = surface_end(surface, draw_sized(surface, f, s, &words), &body);
	if (!r)
		r = words.err ? words.err : add_svg(out, &body, &words, f, s);
	buf_release(&body);
	buf_release(&words);
	return r;
}

int draw_picture(const struct chart *f, enum draw_form form, const struct draw_style *style, struct buf *out)
{
	struct draw_style s = style ? *style : (struct draw_style){0};

	s.width = s.width > 0 ? s.width : 960;
	s.height = s.height > 0 ? s.height : draw_height(f, s.width);
	s.scale = form != DRAW_PNG ? 1 : s.scale > 0 ? s.scale : 2;
	if (!(s.width <= LARGEST && s.height <= LARGEST && s.scale <= 16) ||
		(form == DRAW_PNG && s.width * s.height * s.scale * s.scale > PIXELS_MAX))
		return -EINVAL;
	return form == DRAW_PNG	   ? picture_png(f, &s, out)
		: form == DRAW_SVG ? picture_svg(f, &s, out)
		: form == DRAW_PDF ? picture_pdf(f, &s, out)
				   : -EINVAL;
}
