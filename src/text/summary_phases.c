/* The table by phase in the summary. Remarks stand behind the numbers where the terminal is wide enough, else
 * on the next line. Where not even the numbers have room, those that say least are left out. */
#include "text/page.h"

#include "text/phases.h"

#include <string.h>

#define INDENT 2
#define REMARK_INDENT 4 /* beyond the name */
#define NAME_LEAST 16
#define NAME_MOST 40

/* Left out in this order. */
static const char *const dispensable[] = {"GPU mem", "cores", "read"};

static bool has_remarks(const struct text_table *t)
{
	const char *last = t->column[t->nr_columns - 1].title;

	return last && !*last;
}

/* Of the numbers, from the edge of the screen. */
static size_t width_of(const struct table_writer *w)
{
	size_t width = INDENT;

	for (size_t i = 0; i < w->t->nr_columns - has_remarks(w->t); i++)
		width += w->wide[i] ? w->wide[i] + (i ? w->t->column[i].gap : 0) : 0;
	return width;
}

/* The columns that do not fit, as a list for people. */
static void leave_out(
	const struct page *p, struct table_writer *w, struct text_table *t, struct buf *left_out)
{
	for (size_t i = 0; i < ARRAY_SIZE(dispensable) && width_of(w) > p->style->width; i++)
		for (size_t c = 1; c < t->nr_columns; c++)
			if (t->column[c].title && !strcmp(t->column[c].title, dispensable[i])) {
				buf_addf(left_out, "%s%s", left_out->len ? ", " : "", t->column[c].title);
				t->column[c].title = NULL;
				w->wide[c] = 0;
			}
}

static size_t leading_spaces(const char *text)
{
	return strspn(text, " ");
}

static void print_row(const struct page *p, struct table_writer *w, size_t row, size_t numbers)
{
	const struct text_table *t = w->t;
	char *const *cell = &t->cell[row * t->nr_columns];
	const char *remark = has_remarks(t) ? cell[t->nr_columns - 1] : "";
	bool below = p->style->width && numbers + 2 + utf8_columns(remark) > p->style->width;
	struct buf line;

	table_begin_row(w);
	for (size_t i = 0; i < t->nr_columns; i++)
		cell_words(w, below && cell[i] == remark ? "" : cell[i]);
	table_end_row(w);
	if (!below || !*remark)
		return;
	buf_init(&line, 100000);
	add_letters(&line, remark, p->style->utf8);
	add_paragraph(p->out, 0, "", NULL, INDENT + REMARK_INDENT + (unsigned)leading_spaces(cell[0]),
		(char *)line.data, p->style->width);
	buf_release(&line);
}

static void print_note(const struct page *p, const char *note, const char *left_out)
{
	struct buf line;

	if (!*note && !*left_out)
		return;
	buf_init(&line, 10000);
	buf_addf(&line, "(%s%s%s%s)", note, *note && *left_out ? "; " : "", *left_out ? "no room for: " : "",
		left_out);
	add_paragraph(
		p->out, 0, "", NULL, INDENT, (char *)line.data, p->style->width ? p->style->width : SIZE_MAX);
	buf_release(&line);
}

static void print_table(const struct page *p, struct text_table *t)
{
	struct table_writer w;
	struct buf left_out;
	size_t numbers;

	buf_init(&left_out, 1000);
	t->column[0].most = p->style->width
		? MIN(MAX(p->style->width / 3, (unsigned)NAME_LEAST), (unsigned)NAME_MOST)
		: NAME_MOST;
	t->column[0].gap = INDENT;
	table_begin(&w, t, &(struct text_style){.utf8 = p->style->utf8, .color = p->style->color}, p->out);
	table_measure(&w);
	if (p->style->width)
		leave_out(p, &w, t, &left_out);
	numbers = width_of(&w);
	table_heading(&w);
	for (size_t i = 0; i < t->nr_rows; i++)
		print_row(p, &w, i, numbers);
	table_end(&w);
	print_note(p, t->note, (char *)left_out.data);
	buf_release(&left_out);
}

void print_phases(const struct page *p)
{
	struct text_table t;

	if (!p->s->phases)
		return;
	if (phases_table(p->s->phases, PHASES_SHOWN, p->style->utf8, "  ", &t) >= 0) {
		if (t.nr_rows)
			print_table(p, &t);
		else
			print_note(p, t.note, "");
	}
	phases_table_free(&t);
}
