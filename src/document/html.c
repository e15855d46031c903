/* The page: one HTML file that needs nothing else and loads nothing from elsewhere.
 *
 * All text stands in it as HTML, so that it can be read, searched and printed without a script. The script
 * (web/, built in) adds what moves: panels drawn from the data, the sortable table. Without it, built without
 * npm or asked for so, the panels hold drawings, as images: SVGs that stood in the page itself would share
 * their names for letters and take one another's.
 *
 * Every name comes from the job: it goes through add_html(). The policy in the head lets only the page's own
 * script and style run, known by their hashes, and forbids every request. */
#include "document/document.h"

#include "base/str.h"
#include "document/embedded_page.h"
#include "document/html.h"
#include "document/page_internal.h"
#include "analysis/outline.h"

#include <math.h>
#include <string.h>

#define DATA_MAX ((size_t)1 << 30)

bool page_is_live(void)
{
	return embedded_page.script != NULL;
}

/* An image's address that holds the image. */
static void add_data_uri(struct buf *out, const struct buf *svg)
{
	buf_adds(out, "data:image/svg+xml,");
	for (size_t i = 0; i < svg->len; i++) {
		uint8_t c = svg->data[i];

		if (c > 0x20 && c < 0x7f && !strchr("%#\"'<>&`{}\\^|", c))
			buf_addch(out, c);
		else
			buf_addf(out, "%%%02X", c);
	}
}

/* ---- the panels ---- */

static const struct {
	const char *section, *title;
} section_title[] = {
	{"cpu", "CPU"},
	{"memory", "Memory"},
	{"processes", "Processes"},
	{"tools", "Tools"},
	{"io", "Storage"},
	{"network", "Network"},
	{"gpu", "GPUs"},
	{"energy", "Energy"},
	{"perf", "Counters"},
	{"app", "The job's own numbers"},
};

static const char *title_of_section(const char *section)
{
	for (size_t i = 0; i < ARRAY_SIZE(section_title); i++)
		if (!strcmp(section_title[i].section, section))
			return section_title[i].title;
	return section;
}

static const char *section_of(const struct html *h, size_t chart)
{
	return h->charts->panel[chart]->row->section;
}

/* Whether this chart is the first of its section. */
static bool begins_section(const struct html *h, size_t chart)
{
	for (size_t i = 0; i < chart; i++)
		if (!strcmp(section_of(h, i), section_of(h, chart)))
			return false;
	return true;
}

static int add_drawing(struct buf *out, const struct painter *painter, const struct chart *c, bool dark)
{
	struct buf svg;
	int r;

	buf_init(&svg, DATA_MAX);
	r = painter->svg(painter->arg, c, dark, &svg);
	if (r >= 0) {
		buf_addf(out, "<img class=\"%s\" src=\"", dark ? "dark" : "light");
		add_data_uri(out, &svg);
		add_element(out, "\" alt=\"", c->title, "\">\n");
	}
	buf_release(&svg);
	return r;
}

int html_drawing(struct buf *out, const struct painter *painter, const struct chart *c)
{
	int r;

	/* The drawing has its title in it. */
	buf_addf(out, "<figure class=\"panel\" id=\"panel-%s\">\n", c->id);
	add_element(out, "<figcaption class=\"sr\">", c->title, "</figcaption>\n");
	r = add_drawing(out, painter, c, false);
	if (r >= 0)
		r = add_drawing(out, painter, c, true);
	buf_adds(out, "</figure>\n");
	return MIN(r, 0);
}

static int add_panel(struct html *h, size_t chart)
{
	const struct chart *c = &h->charts->item[chart];

	if (!h->live)
		return html_drawing(h->out, h->painter, c);
	buf_addf(h->out, "<figure class=\"panel\" id=\"panel-%s\">\n", c->id);
	add_element(h->out, "<figcaption><h3>", c->title, "</h3>");
	if (c->subtitle)
		add_element(h->out, " <span class=\"sub\">", c->subtitle, "</span>");
	buf_adds(h->out,
		"</figcaption>\n<div class=\"body\"><div class=\"plot\"></div>"
		"<div class=\"legend\"></div></div>\n</figure>\n");
	return 0;
}

static int add_section(struct html *h, size_t first)
{
	const char *section = section_of(h, first);
	int r = 0;

	buf_addf(h->out, "<section class=\"panels\" id=\"section-%s\">\n", section);
	add_element(h->out, "<h2>", title_of_section(section), "</h2>\n");
	for (size_t i = first; r >= 0 && i < h->charts->nr; i++)
		if (!strcmp(section_of(h, i), section))
			r = add_panel(h, i);
	buf_adds(h->out, "</section>\n");
	return r;
}

static int add_panels(struct html *h)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < h->charts->nr; i++)
		if (begins_section(h, i))
			r = add_section(h, i);
	return r;
}

/* ---- the page ---- */

static void add_policy(struct buf *out, bool script, const char *own, const char *more)
{
	buf_addf(out, "default-src 'none'; style-src '%s'", embedded_page.style_hash);
	if (script || own)
		buf_adds(out, "; script-src");
	if (script)
		buf_addf(out, " '%s'", embedded_page.script_hash);
	if (own)
		buf_addf(out, " '%s'", own);
	buf_addf(out, "; %s; base-uri 'none'; form-action 'none'", more);
}

#define SERVED "img-src 'self' data:; connect-src 'self'"

static void add_head(struct buf *out, const char *title, const char *kind, bool script, bool served)
{
	buf_adds(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
	/* Browsers would ask the server for a picture of it. */
	if (served)
		buf_adds(out, "<link rel=\"icon\" href=\"data:,\">\n");
	if (!served) { /* else it is a header, which says more */
		buf_adds(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"");
		add_policy(out, script, NULL, "img-src data:");
		buf_adds(out, "\">\n");
	}
	buf_adds(out,
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<meta name=\"generator\" content=\"tacho " TACHO_VERSION "\">\n");
	add_element(out, "<title>", title, "</title>\n");
	buf_addf(out, "<style>%s</style>\n</head>\n<body class=\"%s\">\n", embedded_page.style, kind);
}

void html_head(struct buf *out, const char *title, bool live)
{
	add_head(out, title, live ? "live" : "still", live, false);
}

void page_served_head(struct buf *out, const char *title, const char *kind)
{
	add_head(out, title, kind, page_is_live(), true);
}

void page_served_policy(struct buf *out, const char *hash)
{
	add_policy(out, page_is_live(), hash, SERVED "; frame-ancestors 'self'");
}

void page_served_script(struct buf *out)
{
	if (page_is_live())
		buf_addf(out, "<script>%s</script>\n", embedded_page.script);
}

static void add_link(struct html *h, const char *to, const char *prefix, const char *title)
{
	buf_addf(h->out, "<a href=\"#%s%s\">%s</a>", prefix, to, title);
}

/* The bar that stays at the top. */
static void add_bar(struct html *h)
{
	buf_adds(h->out, "<div class=\"bar\"><nav aria-label=\"Sections\">");
	add_link(h, "findings", "", "Findings");
	if (h->o->has_phases)
		add_link(h, "phases", "", "Phases");
	for (size_t i = 0; i < h->charts->nr; i++)
		if (begins_section(h, i))
			add_link(h, section_of(h, i), "section-", title_of_section(section_of(h, i)));
	add_link(h, "statistics", "", "Statistics");
	if (h->s->processes->nr)
		add_link(h, "processes", "", "Process table");
	add_link(h, "about", "", "About");
	buf_adds(h->out, "</nav></div>\n");
}

static int add_script(struct html *h)
{
	int r;

	if (!h->live)
		return 0;
	/* Made to stand here: nothing in it can end the element. */
	buf_adds(h->out, "<script type=\"application/json\" id=\"data\">");
	r = page_data_live(h->s, h->charts, h->served, h->out);
	buf_addf(h->out, "</script>\n<script>%s</script>\n", embedded_page.script);
	return r;
}

static int add_page(struct html *h)
{
	int r;

	add_head(h->out, h->o->title, h->live ? "live" : "still", h->live, h->served);
	html_header(h);
	add_bar(h);
	buf_adds(h->out, "<main>\n");
	html_tiles(h);
	html_findings(h);
	html_phases(h);
	r = add_panels(h);
	if (r < 0)
		return r;
	html_statistics(h);
	html_about(h);
	buf_adds(h->out, "</main>\n");
	html_footer(h);
	r = add_script(h);
	buf_adds(h->out, "</body>\n</html>\n");
	return r < 0 ? r : h->out->err;
}

static int make_page(struct html *h)
{
	int r = outline_make(h->s, &h->o);

	if (r < 0)
		return r;
	r = add_page(h);
	outline_free(h->o);
	return r;
}

int page_html(const struct analysis *s, const struct charts *f, const struct painter *painter, bool still,
	struct buf *out)
{
	struct html h = {
		.s = s, .charts = f, .painter = painter, .live = page_is_live() && !still, .out = out};

	if (!h.live && (!painter || !painter->svg))
		return -EINVAL;
	return make_page(&h);
}

int page_html_live(
	const struct analysis *s, const struct charts *f, const struct page_live *live, struct buf *out)
{
	struct html h = {.s = s, .charts = f, .live = true, .served = live, .out = out};

	return page_is_live() ? make_page(&h) : -EINVAL;
}
