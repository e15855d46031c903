/* Tables on pages. One that is wider than the page becomes several, each with the first column before it; one
 * that is longer goes on, with its headings, on the next page; one of two columns is set in several beside
 * each other. */
#include "draw/paper.h"

#include <math.h>
#include <string.h>

#define GAP 9.0		 /* between columns */
#define FIRST_MOST 230.0 /* of the first column */
#define COLUMN_MOST 64.0 /* a longer heading is broken */
#define PROSE_LEAST 90.0
#define PROSE_LINES 4
#define COLUMNS_MAX 32
#define PAD 2.2
#define ROWS_TOGETHER 3
#define PAIRS_TOGETHER 6

struct part {
	const struct text_table *t;
	size_t column[COLUMNS_MAX];
	double width[COLUMNS_MAX];
	size_t nr;
	double x, all; /* width of all of it */
	double head;   /* height of the headings */
};

static const char *cell(const struct text_table *t, size_t row, size_t column)
{
	return t->cell[row * t->nr_columns + column];
}

/* As wide as its widest number, and its heading broken at spaces. */
static double column_width(struct paper *p, const struct text_table *t, size_t column)
{
	double width = 0, words = 0;
	const char *title = t->column[column].title;

	for (size_t r = 0; r < t->nr_rows; r++)
		width = fmax(width, lines_width(p, cell(t, r, column), FONT_CELL));
	for (const char *at = title; *at;) {
		size_t n = strcspn(at, " ");
		char word[64];

		n = MIN(n, sizeof(word) - 1);
		memcpy(word, at, n);
		word[n] = 0;
		words = fmax(words, lines_width(p, word, FONT_CELL_HEAD));
		at += n;
		at += strspn(at, " ");
	}
	width = fmax(width, words);
	return fmin(width + 1, !column ? FIRST_MOST : t->column[column].prose ? PROSE_LEAST : COLUMN_MOST);
}

static double head_height(struct paper *p, const struct part *part)
{
	double height = 0;

	for (size_t i = 0; i < part->nr; i++) {
		const struct lines t = {.text = part->t->column[part->column[i]].title,
			.font = FONT_CELL_HEAD,
			.width = part->width[i]};

		height = fmax(height, lines_height(p, &t));
	}
	return height + 2 * PAD;
}

static bool is_prose(const struct part *part, size_t i)
{
	return part->t->column[part->column[i]].prose;
}

/* The first column and as many of the others as fit, from `next` on. Returns the one that did not. */
static size_t make_part(
	struct paper *p, const struct text_table *t, size_t next, double room, struct part *part)
{
	*part = (struct part){.t = t, .x = PAPER_MARGIN, .nr = 1};
	part->width[0] = part->all = column_width(p, t, 0);
	while (next < t->nr_columns && part->nr < COLUMNS_MAX) {
		double width = column_width(p, t, next);

		if (part->all + GAP + width > room && part->nr > 1)
			break;
		part->column[part->nr] = next++;
		part->width[part->nr++] = width;
		part->all += GAP + width;
	}
	if (part->all < room) { /* the numbers stand at the right edge of the page */
		part->width[is_prose(part, part->nr - 1) ? part->nr - 1 : 0] += room - part->all;
		part->all = room;
	}
	part->head = head_height(p, part);
	return next;
}

static unsigned lines_of(const struct part *part, size_t i)
{
	return is_prose(part, i) ? PROSE_LINES : 1;
}

static void put_cell(struct paper *p, const struct part *part, size_t i, const char *text, enum font font,
	double x, double y)
{
	const struct lines t = {.text = text,
		.font = font,
		.color = pen_ink(&p->pen, INK_TEXT),
		.x = x,
		.width = part->width[i],
		.align = part->t->column[part->column[i]].numbers,
		.most = font == FONT_CELL ? lines_of(part, i) : 0};

	if (*text)
		lines_put(p, &t, y);
}

static void put_row(struct paper *p, const struct part *part, size_t row, bool head, double y)
{
	double x = part->x;

	for (size_t i = 0; i < part->nr; i++) {
		size_t column = part->column[i];

		put_cell(p, part, i, head ? part->t->column[column].title : cell(part->t, row, column),
			head ? FONT_CELL_HEAD : FONT_CELL, x, y + PAD);
		x += part->width[i] + GAP;
	}
}

static void put_rule(struct paper *p, double x, double width, double y, enum ink ink)
{
	if (p->dry)
		return;
	pen_color(&p->pen, pen_ink(&p->pen, ink), 1);
	pen_line(&p->pen, x, y, x + width, y, ink == INK_AXIS ? 0.6 : 0.4);
}

static double row_height(struct paper *p)
{
	const struct lines t = {.text = "Ag", .font = FONT_CELL};

	return lines_height(p, &t) + 2 * PAD;
}

/* That of the row's longest sentence. */
static double height_of(struct paper *p, const struct part *part, size_t row)
{
	double height = row_height(p);

	for (size_t i = 0; i < part->nr; i++) {
		const struct lines t = {.text = cell(part->t, row, part->column[i]),
			.font = FONT_CELL,
			.width = part->width[i],
			.most = PROSE_LINES};

		if (is_prose(part, i) && *t.text)
			height = fmax(height, lines_height(p, &t) + 2 * PAD);
	}
	return height;
}

static void put_part(struct paper *p, const struct part *part)
{
	bool headed = false;

	paper_need(p, part->head + ROWS_TOGETHER * row_height(p));
	for (size_t r = 0; r < part->t->nr_rows; r++) {
		double height = height_of(p, part, r);
		unsigned page = p->page;

		paper_need(p, height);
		if (!headed || p->page != page) {
			put_row(p, part, 0, true, p->y);
			p->y += part->head;
			put_rule(p, part->x, part->all, p->y, INK_AXIS);
			headed = true;
		}
		put_row(p, part, r, false, p->y);
		p->y += height;
		put_rule(p, part->x, part->all, p->y, INK_GRID);
	}
	p->y += 8;
}

/* Pairs of a name and a value, in columns like a newspaper. */
static void put_pairs(struct paper *p, const struct text_table *t)
{
	const double gap = 24, width = (PAPER_TEXT - 2 * gap) / 3;
	double height = row_height(p), top;
	size_t per = (t->nr_rows + 2) / 3, most;

	for (size_t done = 0; done < t->nr_rows; done += 3 * per) {
		paper_need(p, height * fmin((double)per, PAIRS_TOGETHER));
		most = (size_t)((PAPER_BOTTOM - p->y) / height);
		per = MIN(per, MAX(most, 1));
		top = p->y;
		for (size_t i = 0; i < 3 * per && done + i < t->nr_rows; i++) {
			struct part part = {.t = t, .nr = 2, .column = {0, 1}};

			part.x = PAPER_MARGIN + (double)(i / per) * (width + gap);
			part.width[1] = fmin(lines_width(p, cell(t, done + i, 1), FONT_CELL) + 1, width / 2);
			part.width[0] = width - GAP - part.width[1];
			p->y = top + (double)(i % per) * height;
			put_row(p, &part, done + i, false, p->y);
			put_rule(p, part.x, width, p->y + height, INK_GRID);
		}
		p->y = top + (double)per * height + 8;
	}
}

/* A title does not stand alone at the end of a page. */
static double first_rows_height(struct paper *p, const struct text_table *t)
{
	struct part part;

	if (t->nr_columns == 2)
		return row_height(p) * fmin((double)((t->nr_rows + 2) / 3), PAIRS_TOGETHER);
	make_part(p, t, 1, PAPER_TEXT, &part);
	return part.head + ROWS_TOGETHER * row_height(p);
}

void paper_rows(struct paper *p, const struct text_table *t)
{
	size_t next = 1;

	if (t->nr_columns == 2) {
		put_pairs(p, t);
	} else {
		do {
			struct part part;

			next = make_part(p, t, next, PAPER_TEXT, &part);
			put_part(p, &part);
		} while (next < t->nr_columns);
	}
	if (t->note) {
		const struct lines note = {.text = t->note,
			.font = FONT_SMALL,
			.color = pen_ink(&p->pen, INK_QUIET),
			.x = PAPER_MARGIN,
			.width = PAPER_TEXT};

		paper_text(p, &note, 6);
	}
	p->y += 6;
}

void paper_table(struct paper *p, const struct text_table *t)
{
	const struct lines title = {.text = t->title,
		.font = FONT_STRONG,
		.color = pen_ink(&p->pen, INK_TEXT),
		.x = PAPER_MARGIN,
		.width = PAPER_TEXT};

	paper_need(p, lines_height(p, &title) + 4 + first_rows_height(p, t));
	paper_text(p, &title, 4);
	paper_rows(p, t);
}
