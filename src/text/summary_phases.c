/* The table by phase in the summary. Where the terminal is too narrow for the remarks beside the numbers,
 * they stand below. */
#include "text/page.h"

#include "text/phases.h"

#include <string.h>

#define INDENT 2

static size_t width_of(const struct table_writer *w)
{
	size_t width = INDENT;

	for (size_t i = 0; i < w->t->nr_columns; i++)
		width += w->wide[i] + (i ? w->t->column[i].gap : 0);
	return width;
}

static void print_remarks(const struct page *p, const struct text_table *t, size_t column)
{
	struct buf line;

	for (size_t i = 0; i < t->nr_rows; i++) {
		const char *remark = t->cell[i * (column + 1) + column];

		if (!*remark)
			continue;
		buf_init(&line, 100000);
		add_letters(&line, t->cell[i * (column + 1)], p->style->utf8);
		buf_addch(&line, ' ');
		add_letters(&line, remark, p->style->utf8);
		add_paragraph(p->out, INDENT, "", NULL, INDENT, (char *)line.data, p->style->width);
		buf_release(&line);
	}
}

static void print_table(const struct page *p, struct text_table *t)
{
	bool remarks = t->nr_columns && !*t->column[t->nr_columns - 1].title, below;
	struct table_writer w;

	t->column[0].most = 40;
	t->column[0].gap = INDENT;
	table_begin(&w, t, &(struct text_style){.utf8 = p->style->utf8, .color = p->style->color}, p->out);
	table_measure(&w);
	below = remarks && p->style->width && width_of(&w) > p->style->width;
	if (below)
		t->column[t->nr_columns - 1].title = NULL;
	table_heading(&w);
	table_rows(&w);
	table_end(&w);
	if (below)
		print_remarks(p, t, t->nr_columns - 1);
}

void print_phases(const struct page *p)
{
	struct text_table t;

	if (!p->s->phases)
		return;
	if (phases_table(p->s->phases, PHASES_SHOWN, p->style->utf8, "  ", &t) >= 0) {
		if (t.nr_rows)
			print_table(p, &t);
		if (*t.note)
			buf_addf(p->out, "%*s(%s)\n", INDENT, "", t.note);
	}
	phases_table_free(&t);
}
