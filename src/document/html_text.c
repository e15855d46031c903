/* What the page says in words and tables. */
#include "document/html.h"

#include "base/str.h"
#include "analysis/axis.h"

#include <math.h>
#include <string.h>

/* ---- head and numbers ---- */

static void add_fact(struct html *h, const char *open, const char *text, const char *close)
{
	if (*text && strcmp(text, "?"))
		add_element(h->out, open, text, close);
}

/* Of a page that a server shows: back to its list, and what it hands out. */
static void add_served_links(struct html *h)
{
	buf_adds(h->out,
		"<nav class=\"served\" aria-label=\"This recording\"><a href=\"../../\">All recordings</a>"
		"<span class=\"sub\">Download</span> <a href=\"recording\">recording</a> "
		"<a href=\"report.html\">HTML</a> <a href=\"report.pdf\">PDF</a> "
		"<a href=\"export/csv\">CSV</a> <a href=\"export/parquet\">Parquet</a></nav>\n");
}

/* A run that goes on is not one that has lost its end. */
static const char *outcome_or(const struct html *h, const char *text)
{
	bool runs = h->served && !strcmp(h->served->state, "recording");

	return runs && !strcmp(text, h->o->outcome) ? "in progress" : text;
}

void html_header(struct html *h)
{
	const struct figure *code = &h->s->summary->figure[FIG_EXIT_CODE];
	bool good = !code->why && code->value == 0, bad = !h->s->summary->figure[FIG_EXIT_SIGNAL].why;

	buf_adds(h->out, "<header>\n");
	if (h->served)
		add_served_links(h);
	add_element(h->out, "<h1><bdi>", h->o->title, "</bdi></h1>\n");
	add_fact(h, "<p class=\"message\"><bdi>", h->o->message, "</bdi></p>\n");
	add_fact(h, "<p class=\"window\"><bdi>", h->o->window, "</bdi></p>\n");
	buf_adds(h->out, "<p class=\"facts\">");
	add_fact(h,
		good			    ? "<span class=\"good\">✓ "
			: bad || !code->why ? "<span class=\"bad\">✗ "
					    : "<span>",
		outcome_or(h, h->o->outcome), "</span>");
	add_fact(h, " <strong>", h->o->job, "</strong>");
	add_fact(h, h->s->nr_nodes > 1 ? " <span>nodes <bdi>" : " <span>on <bdi>", h->o->nodes,
		"</bdi></span>");
	add_fact(h, " <span>by <bdi>", h->o->user, "</bdi></span>");
	add_fact(h, " <time>", h->o->date, "</time>");
	buf_adds(h->out, "</p>\n</header>\n");
}

/* How full: of what the job was given, else of the node. */
static void add_meter(struct html *h, const char *fact)
{
	static const struct {
		const char *fact;
		enum figure_id of_allocation, of_node;
	} meter[] = {
		{"CPU", FIG_CPU_OF_ALLOCATION, FIG_CPU_OF_NODE},
		{"Memory", FIG_MEMORY_OF_ALLOCATION, FIG_MEMORY_OF_NODE},
	};
	const struct figure *figure = h->s->summary->figure;

	for (size_t i = 0; i < ARRAY_SIZE(meter); i++) {
		enum figure_id id =
			figure[meter[i].of_allocation].why ? meter[i].of_node : meter[i].of_allocation;

		if (strncmp(meter[i].fact, fact, strlen(meter[i].fact)) || figure[id].why)
			continue;
		buf_addf(h->out,
			"<dd class=\"meter\"><svg viewBox=\"0 0 100 1\" preserveAspectRatio=\"none\" "
			"aria-hidden=\"true\">"
			"<rect class=\"all\" width=\"100\" height=\"1\"/>"
			"<rect class=\"part\" width=\"%.2f\" height=\"1\"/></svg></dd>",
			MAX(MIN(100 * figure[id].value, 100.0), 0.0));
	}
}

/* The number is what people look for: it stands out from its unit. */
static void add_value(struct html *h, const char *value)
{
	size_t number = strcspn(value, " ");
	struct buf first;

	buf_init(&first, number + 1);
	buf_add(&first, value, number);
	add_element(h->out, "<dd class=\"value\">", (char *)first.data, "");
	if (value[number])
		add_element(h->out, " <small>", value + number + 1, "</small>");
	buf_adds(h->out, "</dd>");
	buf_release(&first);
}

void html_tiles(struct html *h)
{
	buf_adds(h->out, "<dl class=\"tiles\">\n");
	for (size_t i = 0; i < h->o->nr_facts; i++) {
		const struct outline_fact *fact = &h->o->fact[i];

		add_element(h->out, "<div class=\"tile\"><dt>", fact->name, "</dt>");
		add_value(h, fact->value);
		add_meter(h, fact->name);
		if (*fact->detail)
			add_element(h->out, "<dd class=\"more\">", outcome_or(h, fact->detail), "</dd>");
		buf_adds(h->out, "</div>\n");
	}
	buf_adds(h->out, "</dl>\n");
}

/* ---- findings ---- */

/* The chart in which a finding is to be seen: of its node, else the first of its panel. */
static const struct chart *chart_of(const struct html *h, const struct finding *f)
{
	const struct chart *any = NULL;

	for (size_t i = 0; f->panel && i < h->charts->nr; i++) {
		if (strcmp(h->charts->panel[i]->row->id, f->panel))
			continue;
		if (h->charts->node[i] == f->node)
			return &h->charts->item[i];
		if (!any)
			any = &h->charts->item[i];
	}
	return any;
}

static void add_evidence(struct html *h, const struct finding *f)
{
	char number[UNITS_SIZE];

	if (!f->nr_evidence)
		return;
	buf_adds(h->out, "<details><summary>Evidence</summary><dl>");
	for (size_t i = 0; i < f->nr_evidence; i++) {
		const struct finding_evidence *e = &f->evidence[i];

		add_element(h->out, "<dt>", e->name, "</dt>");
		add_element(h->out, "<dd>",
			isnan(e->value) ? "not known"
					: format_value(number, e->value, e->unit, e->per_second),
			"</dd>");
	}
	buf_adds(h->out, "</dl></details>");
}

static void add_finding(struct html *h, const struct finding *f)
{
	static const char *const symbol[] = {
		[FINDING_FINE] = "✓", [FINDING_NOTE] = "i", [FINDING_WARNING] = "▲", [FINDING_SERIOUS] = "✖"};
	const struct chart *chart = chart_of(h, f);
	const char *weight = finding_weight_name(f->weight);

	buf_addf(h->out,
		"<li class=\"finding %s\" data-key=\"finding-%s\"><h3><span class=\"weight\"><span "
		"aria-hidden=\"true\">%s</span> "
		"%s</span> ",
		weight, f->id, symbol[f->weight], weight);
	add_element(h->out, "<span>", f->title, "</span>");
	if (chart) {
		buf_addf(h->out, "<a class=\"see\" href=\"#panel-%s\" data-panel=\"%s\"", chart->id,
			chart->id);
		if (!isnan(f->from_s) && !isnan(f->to_s))
			buf_addf(h->out, " data-from=\"%.9g\" data-to=\"%.9g\"", f->from_s, f->to_s);
		buf_adds(h->out, ">show</a>");
	}
	add_element(h->out, "</h3>\n<p>", f->text, "</p>");
	add_evidence(h, f);
	buf_adds(h->out, "</li>\n");
}

static void add_advice(struct html *h, const struct findings *f)
{
	if (!f->nr_advice && !f->why_no_advice)
		return;
	buf_adds(h->out, "<section id=\"advice\">\n<h2>For the next job script</h2>\n");
	for (size_t i = 0; i < f->nr_advice; i++) {
		add_element(h->out, "<div class=\"advice\"><h3>", f->advice[i].scheduler, "</h3><pre>");
		for (size_t k = 0; k < f->advice[i].nr_lines; k++)
			add_element(h->out, "", f->advice[i].line[k], "\n");
		buf_adds(h->out, "</pre></div>\n");
	}
	if (!f->nr_advice)
		add_element(h->out, "<p class=\"quiet\">", f->why_no_advice, "</p>\n");
	else if (f->headroom)
		add_element(h->out, "<p class=\"quiet\">", f->headroom, "</p>\n");
	buf_adds(h->out, "</section>\n");
}

void html_findings(struct html *h)
{
	const struct findings *f = h->s->findings;

	buf_adds(h->out, "<div class=\"columns\">\n<section id=\"findings\">\n<h2>Findings");
	buf_adds(h->out, h->s->part ? " of the whole run</h2>\n" : "</h2>\n");
	if (!f || !f->nr) {
		add_element(h->out, "<p class=\"quiet\">", findings_none(h->s), "</p>\n");
	} else {
		buf_adds(h->out, "<ol class=\"findings\">\n");
		for (size_t i = 0; i < f->nr; i++)
			add_finding(h, &f->item[i]);
		buf_adds(h->out, "</ol>\n");
	}
	buf_adds(h->out, "</section>\n");
	if (f)
		add_advice(h, f);
	buf_adds(h->out, "</div>\n");
}

/* ---- tables ---- */

static void add_table(struct html *h, const struct text_table *t)
{
	table_write(t, &(struct text_style){.form = FORM_HTML}, h->out);
	if (t->note)
		add_element(h->out, "<p class=\"quiet\">", t->note, "</p>\n");
}

void html_phases(struct html *h)
{
	if (!h->o->has_phases)
		return;
	add_element(h->out, "<section id=\"phases\">\n<h2>", h->o->table[0].title, "</h2>\n");
	add_table(h, &h->o->table[0]);
	buf_adds(h->out, "</section>\n");
}

/* Pairs of a name and a value: side by side, not one below the other for ever. */
static void add_pairs(struct html *h, const struct text_table *t)
{
	buf_adds(h->out, "<dl class=\"pairs\">\n");
	for (size_t r = 0; r < t->nr_rows; r++) {
		add_element(h->out, "<div><dt>", t->cell[2 * r], "</dt>");
		add_element(h->out, "<dd>", t->cell[2 * r + 1], "</dd></div>\n");
	}
	buf_adds(h->out, "</dl>\n");
}

/* The processes have a section of their own, which the script makes a table to sort and search of. */
void html_statistics(struct html *h)
{
	const struct text_table *processes = NULL;

	buf_adds(h->out, "<section id=\"statistics\">\n<h2>Statistics</h2>\n");
	for (size_t i = h->o->has_phases; i < h->o->nr_tables; i++) {
		const struct text_table *t = &h->o->table[i];

		if (!strcmp(t->id, "processes")) {
			processes = t;
			continue;
		}
		add_element(h->out, "<h3>", t->title, "</h3>\n");
		if (t->nr_columns == 2)
			add_pairs(h, t);
		else
			add_table(h, t);
	}
	buf_adds(h->out, "</section>\n");
	if (!processes)
		return;
	buf_adds(h->out, "<section id=\"processes\">\n<h2>Process table</h2>\n");
	add_table(h, processes);
	buf_adds(h->out, "</section>\n");
}

/* ---- the end ---- */

static void add_sentences(struct html *h, const char *title, char *const *sentence, size_t nr)
{
	if (!nr)
		return;
	add_element(h->out, "<h3>", title, "</h3>\n<ul class=\"plain\">\n");
	for (size_t i = 0; i < nr; i++)
		add_element(h->out, "<li>", sentence[i], "</li>\n");
	buf_adds(h->out, "</ul>\n");
}

void html_about(struct html *h)
{
	const struct findings *f = h->s->findings;

	buf_adds(h->out, "<section id=\"about\">\n<h2>About these numbers</h2>\n");
	add_sentences(h, "Notes", h->s->summary->note, h->s->summary->nr_notes);
	if (f)
		add_sentences(h, "Not measured", f->unmeasured, f->nr_unmeasured);
	if (h->charts->note)
		add_element(h->out, "<p class=\"quiet\">", h->charts->note, "</p>\n");
	buf_adds(h->out, "</section>\n");
}

void html_footer(struct html *h)
{
	buf_adds(h->out, "<footer><p>Made by tacho " TACHO_VERSION);
	for (size_t i = 0; i < MIN(h->s->run->nr, 8u); i++) {
		const char *path = h->s->run->path[i], *slash = strrchr(path, '/');
		struct buf name;

		buf_init(&name, 1 << 16);
		path = slash ? slash + 1 : path;
		escape_bytes(&name, path, strlen(path));
		add_element(h->out, i ? ", <bdi>" : " from <bdi>", (char *)name.data, "</bdi>");
		buf_release(&name);
	}
	if (h->s->run->nr > 8)
		buf_addf(h->out, " and %zu more", h->s->run->nr - 8);
	buf_adds(h->out, ".</p>");
	if (!h->live)
		buf_addf(h->out, "<p>This page has drawings%s.</p>",
			page_is_live()
				? ""
				: ": tacho was built without npm, which plots that can be zoomed need");
	else
		buf_adds(h->out, "<noscript><p>The plots need JavaScript. The text does not.</p></noscript>");
	buf_adds(h->out, "</footer>\n");
}
