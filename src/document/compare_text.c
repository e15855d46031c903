/* The comparison for a terminal, and as Markdown.
 *
 *	verdict 12 % faster, CPU time -3 %, memory +18 %; faster in phase load: disk wait -9.8s
 *	before  base.tacho
 *	after   new.tacho
 *
 *	  figure                   before    after  difference  ratio
 *	  wall_s                    1m42s    1m30s      -12.0s  x0.88
 *	  memory.peak_pss_bytes   1.0 GiB  1.2 GiB    +180 MiB  x1.18
 *
 *	failed  memory.peak>+10%: memory.peak_pss_bytes was 1.0 GiB and is 1.2 GiB: +18.0 %
 */
#include "document/compare.h"

#include "base/str.h"
#include "document/document.h"
#include "text/words.h"

#include <stdio.h>
#include <string.h>

struct sheet_of_text {
	const struct compare_page *p;
	const struct compare_style *style;
	struct buf *out;
};

/* On a narrow screen the gaps become smaller, and then the ratio is left out: the difference says the same.
 */
static void add_table(const struct sheet_of_text *s, struct compare_table *t)
{
	const struct text_style style = {.utf8 = s->style->utf8, .color = s->style->color};
	size_t total = 0, room = MAX(s->style->width, 40u);
	struct table_writer w;
	bool narrow;

	table_begin(&w, &t->t, &style, s->out);
	table_measure(&w);
	for (unsigned k = 0; k < NR_COMPARE_COLUMNS; k++)
		total += w.wide[k] ? w.wide[k] + t->column[k].gap : 0;
	narrow = total > room;
	for (unsigned k = 1; narrow && k < NR_COMPARE_COLUMNS; k++) {
		t->column[k].gap = 1;
		total -= w.wide[k] ? 1 : 0;
	}
	if (total > room)
		w.wide[COLUMN_RATIO] = 0;
	buf_addch(s->out, '\n');
	table_heading(&w);
	table_rows(&w);
	table_end(&w);
}

static void add_labelled(const struct sheet_of_text *s, const char *label, const char *code, const char *text)
{
	struct buf shown;

	buf_init(&shown, 1 << 20);
	add_letters(&shown, text, s->style->utf8);
	add_paragraph(
		s->out, 0, label, s->style->color ? code : NULL, 8, (char *)shown.data, s->style->width);
	buf_release(&shown);
}

static void add_words(const struct sheet_of_text *s, const struct comparison *c, size_t set)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	compare_in_words(c, set, &text);
	add_labelled(s, "verdict", "1", (char *)text.data);
	buf_release(&text);
}

static void add_sets(const struct sheet_of_text *s, const struct comparison *c)
{
	for (size_t k = 0; k < c->nr_sets; k++) {
		struct buf text;

		buf_init(&text, 1 << 20);
		compare_set_names(&c->set[k], &text);
		if (c->set[k].nr > 1)
			buf_addf(&text, " (%zu runs)", c->set[k].nr);
		add_labelled(s,
			c->nr_sets == 2 ? c->set[k].title
				: k	? "other"
					: "base",
			"36", (char *)text.data);
		buf_release(&text);
	}
}

static void add_verdicts(const struct sheet_of_text *s)
{
	for (size_t i = 0; i < s->p->nr_verdicts; i++) {
		const struct compare_verdict *v = &s->p->verdict[i];
		struct buf text;

		buf_init(&text, 1 << 16);
		compare_verdict_words(s->p, v, &text);
		add_labelled(s, v->met ? "failed" : "passed", v->met ? "1;31" : "32", (char *)text.data);
		buf_release(&text);
	}
}

static void add_only(const struct sheet_of_text *s, const struct buf *names)
{
	struct buf shown;

	if (!names->len)
		return;
	buf_init(&shown, 1 << 20);
	add_letters(&shown, (char *)names->data, s->style->utf8);
	buf_addch(s->out, '\n');
	add_paragraph(s->out, 2, "", NULL, 2, (char *)shown.data, s->style->width);
	buf_release(&shown);
}

static void add_legend(const struct sheet_of_text *s, const struct compare_table *t)
{
	struct buf legend;

	buf_init(&legend, 1000);
	compare_legend(t, &legend);
	if (legend.len) {
		buf_addch(s->out, '\n');
		add_labelled(s, "", "0", (char *)legend.data);
	}
	buf_release(&legend);
}

static int add_tables(const struct sheet_of_text *s, size_t set)
{
	const struct comparison *c = s->p->c;
	struct compare_table t, phases;
	int r = compare_table_make(c, set, false, s->style, &t);

	if (r < 0)
		return r;
	r = compare_table_make(c, set, true, s->style, &phases);
	if (r >= 0 && t.t.nr_rows)
		add_table(s, &t);
	if (r >= 0 && phases.t.nr_rows)
		add_table(s, &phases);
	for (size_t k = 0; r >= 0 && k < ARRAY_SIZE(phases.only); k++)
		add_only(s, &phases.only[k]);
	if (r >= 0 && !t.t.nr_rows && !phases.t.nr_rows)
		buf_adds(s->out, "\n  no figure is known of both\n");
	t.has_marks |= phases.has_marks;
	t.has_spread |= phases.has_spread;
	t.has_guess |= phases.has_guess;
	if (r >= 0)
		add_legend(s, &t);
	compare_table_free(&phases);
	compare_table_free(&t);
	return r;
}

int compare_text(const struct compare_page *p, const struct compare_style *style, struct buf *out)
{
	struct sheet_of_text s = {p, style, out};
	int r = 0;

	for (size_t k = 1; k < p->c->nr_sets; k++)
		add_words(&s, p->c, k);
	add_sets(&s, p->c);
	for (size_t i = 0; i < p->c->nr_warnings; i++)
		add_labelled(&s, "warning", "33", p->c->warning[i]);
	for (size_t k = 1; r >= 0 && k < p->c->nr_sets; k++)
		r = add_tables(&s, k);
	if (p->nr_verdicts)
		buf_addch(out, '\n');
	add_verdicts(&s);
	return r < 0 ? r : out->err;
}

/* ---- Markdown ---- */

static void add_md_table(struct buf *out, const struct compare_table *t)
{
	struct buf legend;

	table_write(&t->t, &(struct text_style){.form = FORM_MARKDOWN}, out);
	buf_addch(out, '\n');
	buf_init(&legend, 1000);
	compare_legend(t, &legend);
	if (legend.len) {
		add_markdown(out, (char *)legend.data);
		buf_adds(out, ".\n\n");
	}
	buf_release(&legend);
}

static int add_md_tables(
	struct buf *out, const struct comparison *c, size_t set, const struct compare_style *style)
{
	int r = 0;

	if (c->nr_sets > 2) {
		buf_adds(out, "## ");
		add_markdown(out, c->set[set].title);
		buf_adds(out, "\n\n");
	}
	for (int phases = 0; r >= 0 && phases < 2; phases++) {
		struct compare_table t;

		r = compare_table_make(c, set, phases, style, &t);
		if (r >= 0 && phases && (t.t.nr_rows || t.only[0].len || t.only[1].len))
			buf_adds(out, "### Phases\n\n");
		if (r >= 0 && t.t.nr_rows)
			add_md_table(out, &t);
		for (size_t k = 0; r >= 0 && k < ARRAY_SIZE(t.only); k++)
			if (t.only[k].len) {
				add_markdown(out, (char *)t.only[k].data);
				buf_adds(out, "\n\n");
			}
		if (r >= 0)
			compare_table_free(&t);
	}
	return r;
}

static void add_md_verdicts(const struct compare_page *p, struct buf *out)
{
	for (size_t i = 0; i < p->nr_verdicts; i++) {
		struct buf text;

		buf_init(&text, 1 << 16);
		compare_verdict_words(p, &p->verdict[i], &text);
		buf_adds(out, p->verdict[i].met ? "- **failed**: " : "- passed: ");
		add_markdown(out, (char *)text.data);
		buf_addch(out, '\n');
		buf_release(&text);
	}
	buf_adds(out, p->nr_verdicts ? "\n" : "");
}

int compare_markdown(const struct compare_page *p, const struct compare_style *style, struct buf *out)
{
	const struct comparison *c = p->c;
	int r = 0;

	buf_adds(out, "# Comparison\n\n");
	for (size_t k = 1; k < c->nr_sets; k++) {
		struct buf text;

		buf_init(&text, 1 << 16);
		compare_in_words(c, k, &text);
		buf_adds(out, "**");
		add_markdown(out, (char *)text.data);
		buf_adds(out, "**\n\n");
		buf_release(&text);
	}
	for (size_t k = 0; k < c->nr_sets; k++) {
		struct buf text;

		buf_init(&text, 1 << 20);
		compare_set_names(&c->set[k], &text);
		buf_adds(out, "- **");
		add_markdown(out, c->set[k].title);
		buf_adds(out, "**: ");
		add_markdown(out, (char *)text.data);
		buf_addf(out, c->set[k].nr > 1 ? " (%zu runs)\n" : "\n", c->set[k].nr);
		buf_release(&text);
	}
	for (size_t i = 0; i < c->nr_warnings; i++) {
		buf_adds(out, i ? "- " : "\nTake care:\n\n- ");
		add_markdown(out, c->warning[i]);
		buf_addch(out, '\n');
	}
	buf_addch(out, '\n');
	add_md_verdicts(p, out);
	for (size_t k = 1; r >= 0 && k < c->nr_sets; k++)
		r = add_md_tables(out, c, k, style);
	for (size_t i = 0; p->picture && i < p->nr_charts; i++)
		markdown_picture(out, &p->chart[i], p->picture);
	return r < 0 ? r : out->err;
}
