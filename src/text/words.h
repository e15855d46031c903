/* Small pieces of text that the reports share. */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#include "base/buf.h"
#include "base/units.h"

/* A moment in a run of that length: "0m58s", "1h02m03s"; in shorter runs than a minute "3.25s". */
char *format_moment(char out[static UNITS_SIZE], double seconds, double length);
/* "12.4 GFLOP", "3.1 GHz", "4.2 kJ", "0.31 W": units of a thousand. */
char *format_si(char out[static UNITS_SIZE], double value, const char *unit);
/* CPUs in use, of which a hundredth tells in a run that hardly computes: "12.3", "0.27", "0.031", "0". */
char *format_cores(char out[static UNITS_SIZE], double cores);
/* "4,812 processes", "1 process". */
void add_count(struct buf *out, double n, const char *one, const char *many);

enum letters {
	LETTERS_ASCII, /* everything else as \xNN; control characters escaped */
	LETTERS_UTF8,  /* control characters and what is not UTF-8 escaped */
	LETTERS_RAW,   /* as they are: for JSON, which escapes by itself */
};

void add_text(struct buf *out, const char *text, size_t len, enum letters letters);
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
/* Spaces up to the column, counted from `from`. */
void pad(struct buf *out, size_t from, size_t column);
/* One CSV field, quoted when it has to be. */
void add_csv(struct buf *out, const char *text, size_t len);
void add_csv_number(struct buf *out, double value); /* empty for NAN; reads back as the same double */
#endif
