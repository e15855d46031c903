/* The pieces of document/terminal*.c: a screen of characters, and a chart's place on it. Not for others. */
#ifndef DOCUMENT_TERMINAL_H
#define DOCUMENT_TERMINAL_H

#include "document/document.h"
#include "analysis/axis.h"

/* Colours of the terminal's 256 are 0..255. */
enum { INK_PLAIN = -1, INK_DIM = -2, INK_BOLD = -3 };

struct cell {
	uint8_t dots;	    /* braille: as Unicode numbers them */
	char letter[5];	    /* one character of UTF-8; empty: the dots, or nothing */
	int16_t ink, paper; /* paper: INK_PLAIN is none */
};

struct screen {
	unsigned columns, rows;
	bool utf8, color;
	struct cell *cell;
};

int screen_open(struct screen *s, const struct terminal_style *style);
void screen_close(struct screen *s);
struct cell *screen_cell(const struct screen *s, unsigned column, unsigned row);
bool screen_is_free(const struct screen *s, unsigned column, unsigned row);
/* One character, in UTF-8 or else in ASCII. */
void screen_put(struct screen *s, unsigned column, unsigned row, const char *letter, char ascii, int ink);
/* Text that is cut with an ellipsis at `width` columns; returns how many it took. */
unsigned screen_text(
	struct screen *s, unsigned column, unsigned row, const char *text, unsigned width, int ink);
unsigned screen_text_columns(const struct screen *s, const char *text);
void screen_print(const struct screen *s, struct buf *out);

/* The part of the screen in which the curves are. */
struct terminal_field {
	struct screen *screen;
	const struct chart *chart;
	unsigned column, row, columns, rows;
	struct axis time, value;
	bool signs; /* curves are told apart by letters instead of colours */
};

int curve_ink(const struct terminal_field *f, const struct chart_curve *c);
char curve_sign(size_t index);
void field_lines(struct terminal_field *f);
void field_stack(struct terminal_field *f);
void field_heat(struct terminal_field *f);
void field_timeline(struct terminal_field *f);
/* Column of a time; may be outside of the field. */
double field_column(const struct terminal_field *f, double time_s);
/* Row, from the field's top, of a value; always in it. */
unsigned field_row(const struct terminal_field *f, double value);
#endif
