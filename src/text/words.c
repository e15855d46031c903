/* Small pieces of text that the outputs share: numbers as people read them, and texts of others made safe for
 * where they are to stand. */
#include "text/words.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH_LEAST 40 /* of a screen: on a narrower one lines are broken by the terminal */

char *format_moment(char out[static UNITS_SIZE], double seconds, double length)
{
	long whole = (long)round_i64(MIN(fabs(seconds), 1e15));

	if (seconds < 59.5 && length < 60)
		return format_duration(out, seconds);
	if (whole < 3600)
		snprintf(out, UNITS_SIZE, "%ldm%02lds", whole / 60, whole % 60);
	else
		snprintf(out, UNITS_SIZE, "%ldh%02ldm%02lds", whole / 3600, whole / 60 % 60, whole % 60);
	return out;
}

char *format_si(char out[static UNITS_SIZE], double value, const char *unit)
{
	static const char *const step[] = {"", "k", "M", "G", "T", "P", "E"};
	char number[UNITS_SIZE];
	size_t i = 0;

	while (fabs(value) >= 999.5 && i + 1 < ARRAY_SIZE(step)) {
		value /= 1000;
		i++;
	}
	snprintf(out, UNITS_SIZE, "%.20s %s%.10s", format_number(number, value), step[i], unit);
	return out;
}

char *format_signal(char out[static UNITS_SIZE], int signal)
{
	const char *name = sigabbrev_np(signal);

	if (name)
		snprintf(out, UNITS_SIZE, "SIG%s", name);
	else
		snprintf(out, UNITS_SIZE, "SIG%d", signal);
	return out;
}

void add_count(struct buf *out, double n, const char *one, const char *many)
{
	char text[UNITS_SIZE];

	buf_addf(out, "%s %s", format_count(text, n), n == 1 ? one : many);
}

void add_text(struct buf *out, const char *text, size_t len, enum letters letters)
{
	struct buf plain;

	if (letters == LETTERS_RAW) {
		buf_add(out, text, len);
		return;
	}
	if (letters == LETTERS_UTF8) {
		escape_bytes(out, text, len);
		return;
	}
	buf_init(&plain, len * 4 + 1);
	escape_bytes(&plain, text, len);
	for (size_t i = 0; i < plain.len; i++)
		if (plain.data[i] < 0x80)
			buf_addch(out, plain.data[i]);
		else
			buf_addf(out, "\\x%02x", plain.data[i]);
	buf_release(&plain);
}

static void add_word(struct buf *out, const char *word, size_t len, enum letters letters)
{
	struct buf text;

	if (is_shell_word(word, len)) {
		add_text(out, word, len, letters);
		return;
	}
	buf_init(&text, SIZE_MAX / 2);
	add_text(&text, word, len, letters);
	add_shell_quoted(out, (char *)text.data, text.len);
	out->err = out->err ? out->err : text.err;
	buf_release(&text);
}

void add_command(struct buf *out, const char *words, size_t len, enum letters letters)
{
	/* Parted, not ended: an empty last word is a word. */
	for (size_t from = 0; len && from <= len;) {
		const char *end = memchr(words + from, 0, len - from);
		size_t n = end ? (size_t)(end - words) - from : len - from;

		if (from)
			buf_addch(out, ' ');
		add_word(out, words + from, n, letters);
		from += n + 1;
	}
}

void clip(struct buf *out, size_t from, size_t columns, bool utf8)
{
	size_t mark = utf8 ? 1 : 3, keep, at = from, n = 0;

	if (out->err || utf8_columns((char *)out->data + from) <= columns)
		return;
	keep = columns > mark ? columns - mark : 0;
	while (n < keep) {
		at++;
		n += at >= out->len || (out->data[at] & 0xc0) != 0x80;
	}
	while (at > from && out->data[at - 1] == ' ')
		at--;
	out->len = at;
	out->data[at] = 0;
	buf_adds(out, utf8 ? "…" : "...");
}

void add_wrapped(struct buf *out, const char *text, size_t indent, size_t width)
{
	size_t column = indent;

	while (*text) {
		size_t gap = strspn(text, " "), len = strcspn(text + gap, " "), columns = 0;

		for (size_t i = 0; i < len; i++)
			columns += (text[gap + i] & 0xc0) != 0x80;
		if (column > indent && column + gap + columns > width) {
			buf_addf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			buf_add(out, text, gap);
			column += gap;
		}
		for (size_t i = 0; i < len; i++)
			buf_addch(out, text[gap + i] == TIED ? ' ' : text[gap + i]);
		column += columns;
		text += gap + len;
	}
}

void add_paragraph(struct buf *out, size_t indent, const char *label, const char *color, size_t column,
	const char *text, size_t width)
{
	size_t columns = indent + utf8_columns(label);

	buf_addf(out, "%*s", (int)indent, "");
	if (color)
		buf_addf(out, "\033[%sm", color);
	buf_adds(out, label);
	if (color)
		buf_adds(out, "\033[0m");
	pad(out, out->len, columns < column ? column - columns : 1);
	add_wrapped(out, text, column, MAX(width, (size_t)WIDTH_LEAST));
	buf_addch(out, '\n');
}

void pad(struct buf *out, size_t from, size_t column)
{
	size_t n = out->err ? column : utf8_columns((char *)out->data + from);

	for (; n < column; n++)
		buf_addch(out, ' ');
}

char *format_cores(char out[static UNITS_SIZE], double cores)
{
	snprintf(out, UNITS_SIZE, "%.*f",
		cores < 0.0005		 ? 0
			: cores < 0.0995 ? 3
			: cores < 0.995	 ? 2
					 : 1,
		MIN(cores, 1e9));
	return out;
}

char *format_look(char out[static UNITS_SIZE], enum number_look look, double value, double length_s)
{
	char number[UNITS_SIZE];

	if (isnan(value)) {
		snprintf(out, UNITS_SIZE, "-");
		return out;
	}
	switch (look) {
	case LOOK_DIGITS:
		return format_number(out, value);
	case LOOK_CODE:
		snprintf(out, UNITS_SIZE, "%.0f", value);
		return out;
	case LOOK_COUNT:
		return format_count(out, value);
	case LOOK_SECONDS:
		return format_duration(out, value);
	case LOOK_MOMENT:
		return format_moment(out, value, length_s);
	case LOOK_BYTES:
		return format_bytes(out, value);
	case LOOK_RATE:
		snprintf(out, UNITS_SIZE, "%.30s/s", format_bytes(number, value));
		return out;
	case LOOK_PERCENT:
		snprintf(out, UNITS_SIZE, "%.30s %%", format_number(number, 100 * value));
		return out;
	case LOOK_CORES:
		return format_cores(out, value);
	case LOOK_JOULES:
		return format_si(out, value, "J");
	case LOOK_WATTS:
		return format_si(out, value, "W");
	}
	return out;
}

void add_letters(struct buf *out, const char *text, bool utf8)
{
	static const struct {
		const char *letters, *plain;
	} known[] = {{"±", "+-"}, {" °C", " C"}};

	while (*text) {
		size_t i = 0;

		while (i < ARRAY_SIZE(known) && (utf8 || !str_starts(text, known[i].letters)))
			i++;
		if (i < ARRAY_SIZE(known)) {
			buf_adds(out, known[i].plain);
			text += strlen(known[i].letters);
			continue;
		}
		buf_addf(out, utf8 || (unsigned char)*text < 0x80 ? "%c" : "\\x%02x", (unsigned char)*text);
		text++;
	}
}

void add_html(struct buf *out, const char *text)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);

	while (p < end) {
		size_t len = MAX(utf8_length(p, end), (size_t)1);

		if (strchr("&<>\"'", *p))
			buf_addf(out, "&#%d;", *p);
		else if (strchr("\n\t", *p))
			buf_addch(out, ' ');
		else
			show_bytes(out, p, len, "");
		p += len;
	}
}

void add_element(struct buf *out, const char *open, const char *text, const char *close)
{
	buf_adds(out, open);
	add_html(out, text);
	buf_adds(out, close);
}

void add_markdown(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_[]<>#|~&$^", *text))
			buf_addch(out, '\\');
		buf_addch(out, *text == '\n' || *text == '\r' ? ' ' : *text);
	}
}

void add_csv(struct buf *out, const char *text, size_t len)
{
	struct buf plain;

	buf_init(&plain, len * 4 + 2);
	if (is_formula(text, len))
		buf_addch(&plain, '\'');
	escape_bytes(&plain, text, len);
	add_csv_field(out, (char *)plain.data, plain.len);
	buf_release(&plain);
}

void add_csv_number(struct buf *out, double value)
{
	char text[UNITS_SIZE];

	if (!isnan(value))
		buf_adds(out, format_exact(text, value));
}
