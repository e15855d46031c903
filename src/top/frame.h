/* A frame of the screen: cells are painted (document/terminal.h), compared with what the terminal shows, and
 * only the difference is written. */
#ifndef TOP_FRAME_H
#define TOP_FRAME_H

#include "base/buf.h"
#include "document/terminal.h"

/* What a terminal can show. */
enum color_depth { COLORS_NONE, COLORS_8, COLORS_256, COLORS_TRUE };

/* Inks of `top`, beside INK_PLAIN, INK_DIM and INK_BOLD; each is also a paper. */
enum top_ink {
	INK_CPU,
	INK_MEMORY,
	INK_GPU,
	INK_IO,
	INK_NET,
	INK_ENERGY,
	INK_PHASE_A, /* bands take turns */
	INK_PHASE_B,
	INK_ALARM,
	INK_GHOST,
	INK_QUIET,
	INK_GOOD,
	NR_INKS
};
#define PAPER_REVERSE (-4)

/* The second column of a character that takes two. */
#define FRAME_REST "\x01"

int frame_open(struct screen *s, unsigned columns, unsigned rows, bool utf8);
void frame_clear(struct screen *s);
/* Text whose bytes may be anything: what a terminal would obey is escaped, characters of two columns take two
 * cells, and those of none are left out. Cut at `width`; returns the columns that it took. */
unsigned frame_text(struct screen *s, unsigned column, unsigned row, const char *bytes, size_t len,
	unsigned width, int ink);
unsigned frame_words(
	struct screen *s, unsigned column, unsigned row, const char *text, unsigned width, int ink);
unsigned frame_printf(struct screen *s, unsigned column, unsigned row, unsigned width, int ink,
	const char *fmt, ...) _printf_(6, 7);
void frame_paper(struct screen *s, unsigned column, unsigned row, unsigned width, int paper);
/* A block of braille: value 0..1 for each half column, NAN: nothing. `filled`: down to the bottom. */
void frame_curve(struct screen *s, unsigned column, unsigned row, unsigned columns, unsigned rows,
	const float *value, bool filled, int ink);
/* What makes `was` into `now`; `was` NULL: whatever is shown. Empty when nothing changed. */
void frame_diff(const struct screen *was, const struct screen *now, enum color_depth depth, struct buf *out);
/* As lines of text, without escapes. */
void frame_plain(const struct screen *s, struct buf *out);
#endif
