/* Text to numbers and back, strictly: no locale, no silent overflow, the whole text or nothing. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/buf.h"

/* Whole string is a decimal number in range; false and *ret untouched otherwise. */
bool parse_u64(const char *s, uint64_t *ret);
bool parse_i64n(const char *s, size_t len, int64_t *ret);
/* Decimal with optional fraction, no exponent, no sign. */
bool parse_decimal(const char *s, double *ret);
/* "0.5" (seconds), "500ms", "2s", "10Hz", "5m", "1h", "250us", "1d"; 0 or -EINVAL, -ERANGE. */
int parse_interval(const char *s, int64_t *ret_ns);

/* "512M", "1.5GiB", "2T": units of 1024, plain numbers are bytes; 0 or -EINVAL, -ERANGE. */
int parse_bytes(const char *s, double *ret_bytes);

/* Writes the digits without terminator into at least 20 bytes; returns how many. */
size_t format_i64(char *out, int64_t v);

bool str_starts(const char *s, const char *prefix);
/* The order of names as people count: node2 before node10. Numbers go by value, of equal ones the one with
 * fewer leading zeros comes first; all else goes by bytes. 0 only for equal texts. */
int str_order(const char *a, const char *b);

/* Length of the character at p when it may be shown as it is; 0: it is hidden, or no UTF-8. */
size_t shown_length(const uint8_t *p, const uint8_t *end);
/* The text with \xNN for control characters and bytes that are no UTF-8, and \uNNNN (\UNNNNNNNN) for what
 * else is hidden. Control characters of `keep` stay; where
 * '\n' is one of them, so does a '\r' before it. */
void show_bytes(struct buf *out, const void *bytes, size_t n, const char *keep);
/* Text that a terminal, CSV or log line can show whatever bytes came in: as show_bytes(), and line feed, tab
 * and backslash become \n, \t, \\. Lossless: unescape_bytes() gives the bytes back. */
void escape_bytes(struct buf *out, const void *bytes, size_t n);
void unescape_bytes(struct buf *out, const char *text, size_t n);
/* Whether a spreadsheet would take the text for a formula: it begins with = + - @, tab or an end of line.
 * Then an apostrophe is written before it. True also for apostrophes followed by one of these, so that a
 * reader can remove one apostrophe and has the original. */
bool is_formula(const char *text, size_t len);
/* A field of CSV as RFC 4180 has it: in quotation marks when it has to be, and when it is empty, so that it
 * differs from a missing one. */
void add_csv_field(struct buf *out, const char *text, size_t len);
/* Whether a shell takes the word as it is; the text in single quotes of a POSIX shell; the word, quoted when
 * it has to be. */
bool is_shell_word(const char *word, size_t len);
void add_shell_quoted(struct buf *out, const char *text, size_t len);
void add_shell_word(struct buf *out, const char *word, size_t len);
/* UTF-8 for programs, as every export and JSON has it: only NULs and bytes that are not UTF-8 become \xNN.
 * Lossless as well. */
void utf8_escape(struct buf *out, const void *bytes, size_t n);
void utf8_unescape(struct buf *out, const char *text, size_t n);
/* Length of the valid UTF-8 sequence at p (1..4), 0 if none. */
size_t utf8_length(const uint8_t *p, const uint8_t *end);
uint32_t utf8_code(const uint8_t *p, size_t len); /* the character of a valid sequence */
/* Columns of the terminal that the UTF-8 text takes (one per code point; enough for what we print). */
size_t utf8_columns(const char *s);

/* FNV-1a: to compare texts; not safe against attacks. */
uint64_t hash_bytes(const void *bytes, size_t n);

/* Edit distance, for "did you mean"; STR_FAR for anything longer than that. */
#define STR_FAR 64
unsigned str_distance(const char *a, const char *b);

/* The word nearest to an unknown one: begin, try each known word, look at `best` (NULL: none is nearer than
 * `least`). Words are borrowed. */
struct nearest {
	const char *word, *best;
	unsigned least;
};

struct nearest nearest_to(const char *word, size_t least); /* never one at STR_FAR */
/* How many typing errors still make it the same word: two swapped letters count as two. */
unsigned slips_allowed(size_t len);
struct nearest nearest_slip(const char *word); /* none that is farther than these */
/* Whether it is the best so far; nearest_offer() with a distance of the caller's own. */
bool nearest_try(struct nearest *n, const char *name);
bool nearest_offer(struct nearest *n, const char *name, unsigned distance);
/* "; did you mean 'BEST'?" where there is one. */
void nearest_ask(const struct nearest *n, struct buf *out);
#endif
