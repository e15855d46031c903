/* The comparison as a page: one file that needs nothing else, in the report's own dress. The tables come
 * first, the curves of the runs below them, as drawings. */
#include "document/compare.h"

#include "document/html.h"

#include <string.h>

static void add_header(const struct compare_page *p, struct buf *out)
{
	bool failed = false;

	for (size_t i = 0; i < p->nr_verdicts; i++)
		failed |= p->verdict[i].met;
	buf_addf(out, "<header>\n<h1>Comparison of %zu runs</h1>\n<p class=\"facts\">", p->c->nr_operands);
	if (p->nr_verdicts)
		buf_adds(out,
			failed ? "<span class=\"bad\">✗ failed</span> "
			       : "<span class=\"good\">✓ passed</span> ");
	for (size_t k = 0; k < p->c->nr_sets; k++) {
		struct buf names;

		buf_init(&names, 1 << 20);
		compare_set_names(&p->c->set[k], &names);
		if (p->c->nr_sets == 2)
			add_element(out, "<span><strong>", p->c->set[k].title, "</strong> ");
		else
			buf_adds(out, k ? "<span>" : "<span><strong>base</strong> ");
		add_element(out, "<bdi>", (char *)names.data, "</bdi></span> ");
		buf_release(&names);
	}
	buf_adds(out, "</p>\n</header>\n<main>\n");
	for (size_t k = 1; k < p->c->nr_sets; k++) {
		struct buf text;

		buf_init(&text, 1 << 16);
		compare_in_words(p->c, k, &text);
		add_element(out, "<p><strong>", (char *)text.data, "</strong></p>\n");
		buf_release(&text);
	}
}

static void add_verdicts(const struct compare_page *p, struct buf *out)
{
	if (!p->nr_verdicts && !p->c->nr_warnings)
		return;
	buf_addf(out, "<section id=\"conditions\">\n<h2>%s</h2>\n<ol class=\"findings\">\n",
		p->nr_verdicts ? "Conditions" : "Before you compare");
	for (size_t i = 0; i < p->nr_verdicts; i++) {
		bool met = p->verdict[i].met;
		struct buf text;

		buf_init(&text, 1 << 16);
		compare_verdict_words(p, &p->verdict[i], &text);
		buf_addf(out, "<li class=\"finding %s\"><h3><span class=\"weight\">%s</span> ",
			met ? "serious" : "fine", met ? "✖ failed" : "✓ passed");
		add_element(out, "<span>", (char *)text.data, "</span></h3></li>\n");
		buf_release(&text);
	}
	for (size_t i = 0; i < p->c->nr_warnings; i++)
		add_element(out,
			"<li class=\"finding warning\"><h3><span class=\"weight\">▲ take care</span> <span>",
			p->c->warning[i], "</span></h3></li>\n");
	buf_adds(out, "</ol>\n</section>\n");
}

static void add_table(const struct compare_table *t, struct buf *out)
{
	struct buf legend;

	table_write(&t->t, &(struct text_style){.form = FORM_HTML}, out);
	buf_init(&legend, 1000);
	compare_legend(t, &legend);
	if (legend.len)
		add_element(out, "<p class=\"quiet\">", (char *)legend.data, ".</p>\n");
	buf_release(&legend);
}

static int add_tables(
	const struct compare_page *p, size_t set, const struct compare_style *style, struct buf *out)
{
	int r = 0;

	for (int phases = 0; r >= 0 && phases < 2; phases++) {
		struct compare_table t;

		r = compare_table_make(p->c, set, phases, style, &t);
		if (r < 0)
			break;
		if (t.t.nr_rows && !phases)
			add_element(out, p->c->nr_sets > 2 ? "<h2>Differences: " : "<h2>Differences",
				p->c->nr_sets > 2 ? p->c->set[set].title : "", "</h2>\n");
		else if (t.t.nr_rows || t.only[0].len || t.only[1].len)
			buf_adds(out, "<h2>Phases</h2>\n");
		if (t.t.nr_rows)
			add_table(&t, out);
		for (size_t k = 0; k < ARRAY_SIZE(t.only); k++)
			if (t.only[k].len)
				add_element(out, "<p class=\"quiet\">", (char *)t.only[k].data, "</p>\n");
		compare_table_free(&t);
	}
	return r;
}

static int add_charts(const struct compare_page *p, struct buf *out)
{
	int r = 0;

	if (p->nr_charts)
		buf_adds(out, "<section class=\"panels\" id=\"plots\">\n<h2>Over time</h2>\n");
	if (p->note)
		add_element(out, "<p class=\"quiet\">", p->note, "</p>\n");
	for (size_t i = 0; r >= 0 && i < p->nr_charts; i++)
		r = html_drawing(out, p->painter, &p->chart[i]);
	buf_adds(out, p->nr_charts ? "</section>\n" : "");
	return r;
}

int compare_html(const struct compare_page *p, const struct compare_style *style, struct buf *out)
{
	char title[80];
	int r = 0;

	snprintf(title, sizeof(title), "Comparison of %zu runs", p->c->nr_operands);
	html_head(out, title, false);
	add_header(p, out);
	add_verdicts(p, out);
	buf_adds(out, "<section id=\"differences\">\n");
	for (size_t k = 1; r >= 0 && k < p->c->nr_sets; k++)
		r = add_tables(p, k, style, out);
	buf_adds(out, "</section>\n");
	if (r >= 0)
		r = add_charts(p, out);
	buf_adds(
		out, "</main>\n<footer><p>Made by tacho " TACHO_VERSION ".</p></footer>\n</body>\n</html>\n");
	return r < 0 ? r : out->err;
}
