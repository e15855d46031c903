/* Frames and the difference between two: see frame.h.
 *
 * A difference is the cells that changed, with the cursor moved between them; a gap of a few cells that did
 * not change is written again where that is shorter than moving. Cells are letters, so nothing that a name
 * holds can reach the terminal as a command. */
#include "top/frame.h"

#include "analysis/palette.h"
#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GAP_MOST 6 /* cells that are rather written than passed over */

static const struct {
	uint32_t rgb;
	uint8_t of_256, of_8;
} ink_row[NR_INKS] = {
	[INK_CPU] = {0x4a8de7, 68, 6},
	[INK_MEMORY] = {0xf0652a, 202, 1},
	[INK_GPU] = {0x26c79a, 42, 2},
	[INK_IO] = {0xe3c62e, 178, 3},
	[INK_NET] = {0xcc5cab, 169, 5},
	[INK_ENERGY] = {0x92e3fa, 117, 7},
	[INK_PHASE_A] = {0x2b3038, 236, 0},
	[INK_PHASE_B] = {0x3d3f58, 239, 4},
	[INK_ALARM] = {0xff8a80, 203, 1},
	[INK_GHOST] = {0x7b8491, 244, 7},
	[INK_QUIET] = {0x9aa4b2, 247, 7},
	[INK_GOOD] = {0x26c79a, 42, 2},
};

int frame_open(struct screen *s, unsigned columns, unsigned rows, bool utf8)
{
	*s = (struct screen){.columns = MIN(MAX(columns, 1u), 1000u),
		.rows = MIN(MAX(rows, 1u), 500u),
		.utf8 = utf8,
		.color = true};
	s->cell = calloc((size_t)s->columns * s->rows, sizeof(*s->cell));
	if (!s->cell)
		return -ENOMEM;
	frame_clear(s);
	return 0;
}

void frame_clear(struct screen *s)
{
	size_t nr = (size_t)s->columns * s->rows;

	memset(s->cell, 0, nr * sizeof(*s->cell));
	for (size_t i = 0; i < nr; i++)
		s->cell[i].ink = s->cell[i].paper = INK_PLAIN;
}

/* ---- texts ---- */

/* Columns of a character: East Asian wide ones and pictures take two, marks on other letters none. */
static unsigned code_columns(uint32_t c)
{
	static const struct {
		uint32_t from, to;
		unsigned columns;
	} range[] = {{0x300, 0x36f, 0}, {0x483, 0x489, 0}, {0x591, 0x5bd, 0}, {0x610, 0x61a, 0},
		{0x64b, 0x65f, 0}, {0x900, 0x903, 0}, {0x93a, 0x94f, 0}, {0xe31, 0xe3a, 0}, {0xe47, 0xe4e, 0},
		{0x1100, 0x115f, 2}, {0x1160, 0x11ff, 0}, {0x1ab0, 0x1aff, 0}, {0x1dc0, 0x1dff, 0},
		{0x20d0, 0x20ff, 0}, {0x231a, 0x231b, 2}, {0x23e9, 0x23ec, 2}, {0x25fd, 0x25fe, 2},
		{0x2614, 0x2615, 2}, {0x2648, 0x2653, 2}, {0x26a1, 0x26a1, 2}, {0x2705, 0x2705, 2},
		{0x274c, 0x274c, 2}, {0x2753, 0x2757, 2}, {0x2795, 0x2797, 2}, {0x2b1b, 0x2b1c, 2},
		{0x2b50, 0x2b55, 2}, {0x2e80, 0x303e, 2}, {0x3041, 0xa4cf, 2}, {0xa960, 0xa97f, 2},
		{0xac00, 0xd7a3, 2}, {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0}, {0xfe20, 0xfe2f, 0},
		{0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2}, {0x16fe0, 0x18cff, 2},
		{0x1b000, 0x1b2ff, 2}, {0x1f004, 0x1f004, 2}, {0x1f18e, 0x1f19a, 2}, {0x1f200, 0x1f320, 2},
		{0x1f32d, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f7e0, 0x1f7ff, 2}, {0x1f90c, 0x1faff, 2},
		{0x20000, 0x3fffd, 2}, {0xe0100, 0xe01ef, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(range); i++)
		if (c >= range[i].from && c <= range[i].to)
			return range[i].columns;
	return 1;
}

static void cell_letter(
	struct screen *s, unsigned column, unsigned row, const void *letter, size_t len, int ink)
{
	struct cell *c = screen_cell(s, column, row);

	if (!c)
		return;
	c->dots = 0;
	memset(c->letter, 0, sizeof(c->letter));
	memcpy(c->letter, letter, MIN(len, sizeof(c->letter) - 1));
	c->ink = (int16_t)ink;
}

/* What is escaped: printable UTF-8 of the text. */
static unsigned put_shown(
	struct screen *s, unsigned column, unsigned row, const struct buf *shown, unsigned width, int ink)
{
	const uint8_t *p = shown->data, *end = p + shown->len;
	unsigned n = 0;

	while (p < end) {
		size_t len = MAX(utf8_length(p, end), (size_t)1);
		unsigned wide = *p < 0x80 ? 1 : code_columns(utf8_code(p, len));
		bool plain = *p < 0x80 || s->utf8;

		if (!plain)
			wide = wide ? 1 : 0;
		if (n + wide > width || (n + wide == width && p + len < end)) { /* cut: the mark of it */
			if (n < width)
				cell_letter(s, column + n++, row, s->utf8 ? "…" : ">", s->utf8 ? 3 : 1, ink);
			break;
		}
		if (wide)
			cell_letter(s, column + n, row, plain ? (const void *)p : "?", plain ? len : 1, ink);
		if (wide == 2)
			cell_letter(s, column + n + 1, row, FRAME_REST, 1, ink);
		n += wide;
		p += len;
	}
	return n;
}

unsigned frame_text(struct screen *s, unsigned column, unsigned row, const char *bytes, size_t len,
	unsigned width, int ink)
{
	struct buf shown;
	unsigned n;

	if (column >= s->columns || row >= s->rows)
		return 0;
	width = MIN(width, s->columns - column);
	buf_init(&shown, 1 << 20);
	/* No more is shown than fits; a character takes at most four bytes, marks some more. */
	escape_bytes(&shown, bytes, MIN(len, (size_t)width * 8 + 16));
	n = put_shown(s, column, row, &shown, width, ink);
	buf_release(&shown);
	return n;
}

unsigned frame_words(
	struct screen *s, unsigned column, unsigned row, const char *text, unsigned width, int ink)
{
	struct buf shown;

	if (column >= s->columns || row >= s->rows)
		return 0;
	shown = (struct buf){.data = (uint8_t *)(uintptr_t)text, .len = strlen(text)};
	return put_shown(s, column, row, &shown, MIN(width, s->columns - column), ink);
}

unsigned frame_printf(
	struct screen *s, unsigned column, unsigned row, unsigned width, int ink, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return frame_words(s, column, row, text, width, ink);
}

void frame_paper(struct screen *s, unsigned column, unsigned row, unsigned width, int paper)
{
	for (unsigned i = 0; i < width; i++) {
		struct cell *c = screen_cell(s, column + i, row);

		if (c)
			c->paper = (int16_t)paper;
	}
}

/* ---- curves ---- */

static const uint8_t dot[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

static void curve_dots(struct screen *s, unsigned column, unsigned row, unsigned rows, unsigned half,
	unsigned level, bool filled, int ink)
{
	for (unsigned i = filled ? 0 : level; i <= level; i++) {
		unsigned up = i / 4;
		struct cell *c = screen_cell(s, column + half / 2, row + rows - 1 - MIN(up, rows - 1));

		if (!c)
			continue;
		c->dots |= dot[half % 2][3 - i % 4];
		c->ink = (int16_t)ink;
	}
}

/* Without UTF-8 a column is a letter by its height. */
static void curve_letters(struct screen *s, unsigned column, unsigned row, unsigned columns, unsigned rows,
	const float *value, int ink)
{
	for (unsigned i = 0; i < columns; i++) {
		float v = isnan(value[2 * i]) ? value[2 * i + 1] : value[2 * i];
		unsigned steps = rows * 3, level;

		if (isnan(v))
			continue;
		level = (unsigned)(MIN(MAX(v, 0.0f), 1.0f) * (float)steps + 0.5f);
		for (unsigned up = 0; up < rows; up++) {
			unsigned in = level > up * 3 ? MIN(level - up * 3, 3u) : 0;

			if (in || !up)
				cell_letter(s, column + i, row + rows - 1 - up, &"_.:#"[in], 1, ink);
		}
	}
}

void frame_curve(struct screen *s, unsigned column, unsigned row, unsigned columns, unsigned rows,
	const float *value, bool filled, int ink)
{
	unsigned steps = rows * 4 - 1;

	if (!rows || !columns)
		return;
	if (!s->utf8) {
		curve_letters(s, column, row, columns, rows, value, ink);
		return;
	}
	for (unsigned half = 0; half < columns * 2; half++) {
		float v = value[half];

		if (isnan(v))
			continue;
		curve_dots(s, column, row, rows, half,
			(unsigned)(MIN(MAX(v, 0.0f), 1.0f) * (float)steps + 0.5f), filled, ink);
	}
}

/* ---- differences ---- */

static void add_color(struct buf *out, int color, enum color_depth depth, bool paper)
{
	if (color < 0 || color >= NR_INKS || depth == COLORS_NONE)
		return;
	if (depth == COLORS_TRUE)
		buf_addf(out, ";%d;2;%u;%u;%u", paper ? 48 : 38, ink_row[color].rgb >> 16,
			ink_row[color].rgb >> 8 & 255, ink_row[color].rgb & 255);
	else if (depth == COLORS_256)
		buf_addf(out, ";%d;5;%u", paper ? 48 : 38, ink_row[color].of_256);
	else
		buf_addf(out, ";%u", (paper ? 40u : 30u) + ink_row[color].of_8);
}

static void add_style(struct buf *out, const struct cell *c, enum color_depth depth)
{
	buf_adds(out, "\033[0");
	if (c->ink == INK_DIM || c->ink == INK_BOLD)
		buf_adds(out, c->ink == INK_DIM ? ";2" : ";1");
	if (c->ink == INK_ALARM)
		buf_adds(out, ";1");
	if (c->paper == PAPER_REVERSE)
		buf_adds(out, ";7");
	add_color(out, c->ink, depth, false);
	add_color(out, c->paper, depth, true);
	buf_addch(out, 'm');
}

static bool is_rest(const struct cell *c)
{
	return c->letter[0] == FRAME_REST[0];
}

static bool is_blank(const struct cell *c)
{
	return !c->dots && (!c->letter[0] || (c->letter[0] == ' ' && !c->letter[1]));
}

static bool same_cell(const struct cell *a, const struct cell *b)
{
	if (a->paper != b->paper)
		return false;
	if (is_blank(a) && is_blank(b))
		return true;
	return a->ink == b->ink && a->dots == b->dots && !memcmp(a->letter, b->letter, sizeof(a->letter));
}

static bool same_style(const struct cell *a, const struct cell *b)
{
	return a->paper == b->paper && (a->ink == b->ink || is_blank(b));
}

static void add_cell(struct buf *out, const struct cell *c)
{
	if (is_rest(c))
		return;
	if (c->letter[0])
		buf_add(out, c->letter, strnlen(c->letter, sizeof(c->letter)));
	else if (c->dots)
		buf_add(out, (char[]){'\xe2', (char)(0xa0 | c->dots >> 6), (char)(0x80 | (c->dots & 0x3f))},
			3);
	else
		buf_addch(out, ' ');
}

struct frame_pen { /* what the terminal is set to */
	struct cell style;
	bool styled;
	unsigned row, column; /* of the cursor; row UINT_MAX: not known */
	enum color_depth depth;
	struct buf *out;
};

static void pen_move(struct frame_pen *p, unsigned row, unsigned column)
{
	if (p->row == row && p->column == column)
		return;
	if (p->row == row && column > p->column && p->row != UINT32_MAX)
		buf_addf(p->out, "\033[%uC", column - p->column);
	else
		buf_addf(p->out, "\033[%u;%uH", row + 1, column + 1);
	p->row = row;
	p->column = column;
}

static void pen_cell(struct frame_pen *p, const struct cell *c)
{
	if (!p->styled || !same_style(&p->style, c)) {
		add_style(p->out, c, p->depth);
		p->style = *c;
		p->styled = true;
	}
	add_cell(p->out, c);
	p->column++;
}

/* The end of what is blank and has no paper: it is erased at once. */
static unsigned blank_from(const struct cell *line, unsigned columns)
{
	while (columns && is_blank(&line[columns - 1]) && line[columns - 1].paper == INK_PLAIN)
		columns--;
	return columns;
}

/* `was` NULL: nothing is shown. */
static bool changed(const struct cell *was, const struct cell *now, unsigned at)
{
	if (was)
		return !same_cell(&was[at], &now[at]);
	return !is_blank(&now[at]) || now[at].paper != INK_PLAIN;
}

/* How far the row must be written from `at` on: up to a longer piece that is as it was. */
static unsigned run_end(const struct cell *was, const struct cell *now, unsigned at, unsigned columns)
{
	unsigned end = at + 1;

	for (unsigned i = at + 1; i < columns && i - end < GAP_MOST; i++)
		if (changed(was, now, i))
			end = i + 1;
	while (end < columns && is_rest(&now[end]))
		end++;
	return end;
}

static void diff_row(
	struct frame_pen *p, unsigned row, const struct cell *was, const struct cell *now, unsigned columns)
{
	unsigned full = blank_from(now, columns), filled = was ? blank_from(was, columns) : 0;

	for (unsigned at = 0; at < full;) {
		unsigned end;

		if (!changed(was, now, at)) {
			at++;
			continue;
		}
		/* A half of a wide character that was there goes with the other one. */
		while (at && (is_rest(&now[at]) || (was && is_rest(&was[at]))))
			at--;
		end = run_end(was, now, at, full);
		pen_move(p, row, at);
		for (unsigned i = at; i < end; i++)
			pen_cell(p, &now[i]);
		if (end == columns)
			p->row = UINT32_MAX; /* at the edge: terminals differ in where it is then */
		at = end;
	}
	if (filled <= full)
		return;
	pen_move(p, row, full);
	if (p->styled && (p->style.paper != INK_PLAIN || p->style.ink != INK_PLAIN)) {
		buf_adds(p->out, "\033[0m");
		p->style.ink = p->style.paper = INK_PLAIN;
	}
	buf_adds(p->out, "\033[K");
}

void frame_diff(const struct screen *was, const struct screen *now, enum color_depth depth, struct buf *out)
{
	struct frame_pen pen = {.row = UINT32_MAX, .depth = depth, .out = out};
	static const char begin[] = "\033[?2026h";
	size_t from = out->len, empty;

	if (was && (was->columns != now->columns || was->rows != now->rows))
		was = NULL;
	buf_adds(out, begin);
	if (!was)
		buf_adds(out, "\033[0m\033[2J");
	empty = out->len;
	for (unsigned row = 0; row < now->rows; row++)
		diff_row(&pen, row, was ? screen_cell(was, 0, row) : NULL, screen_cell(now, 0, row),
			now->columns);
	if (was && out->len == empty) { /* nothing changed */
		out->len = from;
		if (out->data)
			out->data[from] = 0;
		return;
	}
	if (pen.styled)
		buf_adds(out, "\033[0m");
	buf_adds(out, "\033[?2026l");
}

void frame_plain(const struct screen *s, struct buf *out)
{
	unsigned rows = s->rows;

	while (rows && !blank_from(screen_cell(s, 0, rows - 1), s->columns))
		rows--;
	for (unsigned row = 0; row < rows; row++) {
		const struct cell *line = screen_cell(s, 0, row);
		unsigned end = s->columns;

		while (end && is_blank(&line[end - 1]))
			end--;
		for (unsigned i = 0; i < end; i++)
			add_cell(out, &line[i]);
		buf_addch(out, '\n');
	}
}
