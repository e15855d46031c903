/* The comparison for a terminal, and as Markdown.
 *
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

#define NAME_MOST 60

struct sheet_of_text {
	const struct compare_page *p;
	const struct compare_style *style;
	struct buf *out;
};

static void color(const struct sheet_of_text *s, const char *code)
{
	if (s->style->color)
		buf_addf(s->out, "\033[%sm", code);
}

/* As the terminal can show it. */
static void add_shown(const struct sheet_of_text *s, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (s->style->utf8 || *p < 0x80)
			buf_addch(s->out, *p);
		else if (str_starts((const char *)p, "±")) {
			buf_adds(s->out, "+-");
			p++;
		} else if (str_starts((const char *)p, "°")) {
			p++;
		} else
			buf_addf(s->out, "\\x%02x", *p);
	}
}

static size_t shown_columns(const struct sheet_of_text *s, const char *text)
{
	struct sheet_of_text measure = *s;
	struct buf seen;
	size_t n;

	buf_init(&seen, 10000);
	measure.out = &seen;
	add_shown(&measure, text);
	n = utf8_columns((char *)seen.data);
	buf_release(&seen);
	return n;
}

static const char *cell_text(const struct compare_row *r, unsigned column)
{
	return column == COLUMN_NAME ? compare_row_name(r) : r->cell[column];
}

static void add_cell(const struct sheet_of_text *s, const char *text, size_t width, bool right)
{
	size_t from, n = shown_columns(s, text);

	if (right)
		buf_addf(s->out, "%*s", (int)(width > n ? width - n : 0), "");
	from = s->out->len;
	add_shown(s, text);
	clip(s->out, from, width, s->style->utf8);
	if (!right)
		pad(s->out, from, width);
}

/* Columns without a width are left out. */
static void add_row(
	const struct sheet_of_text *s, const struct compare_row *r, const size_t *width, const char *gap)
{
	buf_adds(s->out, "  ");
	for (unsigned k = 0; k < NR_COMPARE_COLUMNS; k++) {
		bool emphatic = k >= COLUMN_DIFFERENCE && r->change.differs;

		if (!width[k])
			continue;
		buf_adds(s->out, k ? gap : "");
		if (emphatic || (k >= COLUMN_DIFFERENCE && !r->change.differs))
			color(s, emphatic ? "1;33" : "2");
		add_cell(s, cell_text(r, k), width[k], k && k != COLUMN_MARK);
		if (k >= COLUMN_DIFFERENCE)
			color(s, "0");
	}
	while (!s->style->color && s->out->len && s->out->data[s->out->len - 1] == ' ')
		s->out->data[--s->out->len] = 0;
	buf_addch(s->out, '\n');
}

static void add_table(const struct sheet_of_text *s, const struct compare_table *t)
{
	size_t width[NR_COMPARE_COLUMNS], total = 2, room = MAX(s->style->width, 40u);
	const char *gap = "  ";

	for (unsigned k = 0; k < NR_COMPARE_COLUMNS; k++) {
		width[k] = shown_columns(s, t->heading[k]);
		for (size_t i = 0; i < t->nr; i++)
			width[k] = MAX(width[k], shown_columns(s, cell_text(&t->row[i], k)));
		width[k] = MIN(width[k], (size_t)NAME_MOST);
		total += width[k] + 2;
	}
	if (total > room + 2) {
		gap = " ";
		total -= NR_COMPARE_COLUMNS;
	}
	if (total > room + 1) /* the difference says the same */
		width[COLUMN_RATIO] = 0;
	buf_adds(s->out, "\n  ");
	color(s, "1");
	for (unsigned k = 0; k < COLUMN_MARK; k++) {
		if (!width[k])
			continue;
		buf_adds(s->out, k ? gap : "");
		add_cell(s, t->heading[k], width[k], k > 0);
	}
	color(s, "0");
	buf_addch(s->out, '\n');
	for (size_t i = 0; i < t->nr; i++)
		add_row(s, &t->row[i], width, gap);
}

static void add_labelled(const struct sheet_of_text *s, const char *label, const char *code, const char *text)
{
	struct sheet_of_text inner = *s;
	size_t indent = 8;
	struct buf shown;

	buf_init(&shown, 1 << 20);
	inner.out = &shown;
	add_shown(&inner, text);
	color(s, code);
	buf_adds(s->out, label);
	color(s, "0");
	pad(s->out, s->out->len, indent > strlen(label) ? indent - strlen(label) : 1);
	add_wrapped(s->out, (char *)shown.data, indent, MAX(s->style->width, 40u));
	buf_addch(s->out, '\n');
	buf_release(&shown);
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

static int add_tables(const struct sheet_of_text *s, size_t set)
{
	const struct comparison *c = s->p->c;
	struct compare_table t, phases;
	int r = compare_table_make(c, set, false, s->style, &t);

	if (r < 0)
		return r;
	r = compare_table_make(c, set, true, s->style, &phases);
	if (r >= 0 && t.nr)
		add_table(s, &t);
	if (r >= 0 && phases.nr)
		add_table(s, &phases);
	if (r >= 0 && !t.nr && !phases.nr)
		buf_adds(s->out, "\n  no figure is known of both\n");
	t.has_marks |= phases.has_marks;
	t.has_spread |= phases.has_spread;
	if (r >= 0 && *compare_legend(&t)) {
		buf_addch(s->out, '\n');
		add_labelled(s, "", "0", compare_legend(&t));
	}
	compare_table_free(&phases);
	compare_table_free(&t);
	return r;
}

int compare_text(const struct compare_page *p, const struct compare_style *style, struct buf *out)
{
	struct sheet_of_text s = {p, style, out};
	int r = 0;

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
	for (unsigned k = 0; k < NR_COMPARE_COLUMNS; k++) {
		buf_adds(out, "| ");
		markdown_text(out, t->heading[k]);
		buf_addch(out, ' ');
	}
	buf_adds(out, "|\n|---|---:|---:|---:|---:|---|\n");
	for (size_t i = 0; i < t->nr; i++) {
		for (unsigned k = 0; k < NR_COMPARE_COLUMNS; k++) {
			bool bold = k == COLUMN_DIFFERENCE && t->row[i].change.differs;

			buf_adds(out, bold ? "| **" : "| ");
			markdown_text(out, cell_text(&t->row[i], k));
			buf_adds(out, bold ? "** " : " ");
		}
		buf_adds(out, "|\n");
	}
	buf_addch(out, '\n');
	if (*compare_legend(t)) {
		markdown_text(out, compare_legend(t));
		buf_adds(out, ".\n\n");
	}
}

static int add_md_tables(
	struct buf *out, const struct comparison *c, size_t set, const struct compare_style *style)
{
	int r = 0;

	if (c->nr_sets > 2) {
		buf_adds(out, "## ");
		markdown_text(out, c->set[set].title);
		buf_adds(out, "\n\n");
	}
	for (int phases = 0; r >= 0 && phases < 2; phases++) {
		struct compare_table t;

		r = compare_table_make(c, set, phases, style, &t);
		if (r >= 0 && phases && t.nr)
			buf_adds(out, "### Phases\n\n");
		if (r >= 0 && t.nr)
			add_md_table(out, &t);
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
		markdown_text(out, (char *)text.data);
		buf_addch(out, '\n');
		buf_release(&text);
	}
	buf_adds(out, p->nr_verdicts ? "\n" : "");
}

static void add_md_pictures(const struct compare_page *p, struct buf *out)
{
	for (size_t i = 0; p->picture && i < p->nr_charts; i++) {
		const char *id = strstr(p->picture, "%s");

		buf_adds(out, "![");
		markdown_text(out, p->chart[i].title);
		buf_adds(out, "](");
		buf_add(out, p->picture, id ? (size_t)(id - p->picture) : strlen(p->picture));
		buf_addf(out, "%s%s)\n\n", p->chart[i].id, id ? id + 2 : "");
	}
}

int compare_markdown(const struct compare_page *p, const struct compare_style *style, struct buf *out)
{
	const struct comparison *c = p->c;
	int r = 0;

	buf_adds(out, "# Comparison\n\n");
	for (size_t k = 0; k < c->nr_sets; k++) {
		struct buf text;

		buf_init(&text, 1 << 20);
		compare_set_names(&c->set[k], &text);
		buf_adds(out, "- **");
		markdown_text(out, c->set[k].title);
		buf_adds(out, "**: ");
		markdown_text(out, (char *)text.data);
		buf_addf(out, c->set[k].nr > 1 ? " (%zu runs)\n" : "\n", c->set[k].nr);
		buf_release(&text);
	}
	for (size_t i = 0; i < c->nr_warnings; i++) {
		buf_adds(out, i ? "- " : "\nTake care:\n\n- ");
		markdown_text(out, c->warning[i]);
		buf_addch(out, '\n');
	}
	buf_addch(out, '\n');
	add_md_verdicts(p, out);
	for (size_t k = 1; r >= 0 && k < c->nr_sets; k++)
		r = add_md_tables(out, c, k, style);
	add_md_pictures(p, out);
	return r < 0 ? r : out->err;
}
