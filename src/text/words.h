/* Small pieces of text that the reports share. */
#ifndef TEXT_WORDS_H
#define TEXT_WORDS_H

#include "base/buf.h"
#include "base/units.h"

/* A moment in a run of that length: "0m58s", "1h02m03s"; in shorter runs than a minute "3.25s". */
char *format_moment(char out[static UNITS_SIZE], double seconds, double length);
/* "12.4 GFLOP", "3.1 GHz", "4.2 kJ", "0.31 W": units of a thousand. */
char *format_si(char out[static UNITS_SIZE], double value, const char *unit);
/* CPUs in use, of which a hundredth tells in a run that hardly computes: "12.3", "0.27", "0.031", "0". */
char *format_cores(char out[static UNITS_SIZE], double cores);

/* How a number is shown to people. */
enum number_look {
	LOOK_DIGITS,  /* three digits that matter: "6.52" */
	LOOK_CODE,    /* a whole number that names something: "4711" */
	LOOK_COUNT,   /* "4,711" */
	LOOK_SECONDS, /* "1m42s" */
	LOOK_MOMENT,  /* of a run, whose length tells how exact: "1m42s" */
	LOOK_BYTES,   /* "3.1 GiB" */
	LOOK_RATE,    /* "3.1 GiB/s" */
	LOOK_PERCENT, /* of a ratio: "37 %" */
	LOOK_CORES,
	LOOK_JOULES,
	LOOK_WATTS,
};

/* "-" for NAN. */
char *format_look(char out[static UNITS_SIZE], enum number_look look, double value, double length_s);
char *format_signal(char out[static UNITS_SIZE], int signal); /* "SIGKILL" */
/* "4,812 processes", "1 process". */
void add_count(struct buf *out, double n, const char *one, const char *many);

enum letters {
	LETTERS_ASCII, /* everything else as \xNN; control characters escaped */
	LETTERS_UTF8,  /* control characters and what is not UTF-8 escaped */
	LETTERS_RAW,   /* as they are: for JSON, which escapes by itself */
};

void add_text(struct buf *out, const char *text, size_t len, enum letters letters);
/* Text that is escaped already, as the terminal can show it: without UTF-8 "±" is "+-", " °C" is " C" and
 * other letters are \xNN. */
void add_letters(struct buf *out, const char *text, bool utf8);
/* Any text, so that it is nothing but text in HTML, also between quotes; the same between two pieces of
 * markup. */
void add_html(struct buf *out, const char *text);
void add_element(struct buf *out, const char *open, const char *text, const char *close);
/* Text within a line of Markdown: what that or HTML could take for its own is escaped. */
void add_markdown(struct buf *out, const char *text);
/* Words parted by NULs, as a shell would take them. */
void add_command(struct buf *out, const char *words, size_t len, enum letters letters);
/* Keeps the first `columns` columns of what was added since `from`, the last of them an ellipsis when that
 * cuts. */
void clip(struct buf *out, size_t from, size_t columns, bool utf8);
/* Text that began in column `indent`, broken at spaces so that lines stay within `width`; what follows a
 * break stands below it. A word that is longer than a line stays whole. TIED is a space that is not broken
 * at. */
#define TIED '\x1f'
void add_wrapped(struct buf *out, const char *text, size_t indent, size_t width);
/* Behind `indent` spaces a label (in that colour; NULL: none), and from `column` on the text, wrapped. */
void add_paragraph(struct buf *out, size_t indent, const char *label, const char *color, size_t column,
	const char *text, size_t width);
/* Spaces up to the column, counted from `from`. */
void pad(struct buf *out, size_t from, size_t column);
/* One CSV field, quoted when it has to be. */
void add_csv(struct buf *out, const char *text, size_t len);
void add_csv_number(struct buf *out, double value); /* empty for NAN; reads back as the same double */
#endif
