/* A screen of characters that is painted anywhere and printed once.
 *
 * Escapes are written only where the colour changes, and none without colours, so that what is piped into a
 * file is text. Texts come escaped from their makers; what is not ASCII is escaped again where the terminal
 * cannot show it. */
#include "document/terminal.h"

#include "base/str.h"
#include "text/words.h"

#include <string.h>

int screen_open(struct screen *s, const struct terminal_style *style)
{
	*s = (struct screen){.columns = MIN(MAX(style->columns, 20u), 1000u),
		.rows = MIN(MAX(style->rows, 6u), 500u),
		.utf8 = style->utf8,
		.color = style->color};
	s->cell = calloc((size_t)s->columns * s->rows, sizeof(*s->cell));
	for (size_t i = 0; s->cell && i < (size_t)s->columns * s->rows; i++)
		s->cell[i].ink = s->cell[i].paper = INK_PLAIN;
	return s->cell ? 0 : -ENOMEM;
}

void screen_close(struct screen *s)
{
	free(s->cell);
	s->cell = NULL;
}

struct cell *screen_cell(const struct screen *s, unsigned column, unsigned row)
{
	return column < s->columns && row < s->rows ? &s->cell[(size_t)row * s->columns + column] : NULL;
}

bool screen_is_free(const struct screen *s, unsigned column, unsigned row)
{
	const struct cell *c = screen_cell(s, column, row);

	return c && !c->dots && !c->letter[0];
}

void screen_put(struct screen *s, unsigned column, unsigned row, const char *letter, char ascii, int ink)
{
	struct cell *c = screen_cell(s, column, row);
	char plain[2] = {ascii, 0};

	if (!c)
		return;
	letter = s->utf8 ? letter : plain;
	memset(c->letter, 0, sizeof(c->letter));
	memcpy(c->letter, letter, MIN(strlen(letter), sizeof(c->letter) - 1));
	c->ink = (int16_t)ink;
}

unsigned screen_text_columns(const struct screen *s, const char *text)
{
	struct buf seen;
	unsigned n;

	buf_init(&seen, 1 << 20);
	add_letters(&seen, text, s->utf8);
	n = (unsigned)MIN(utf8_columns((char *)seen.data), (size_t)100000);
	buf_release(&seen);
	return n;
}

unsigned screen_text(
	struct screen *s, unsigned column, unsigned row, const char *text, unsigned width, int ink)
{
	const uint8_t *p, *end;
	struct buf seen;
	unsigned n = 0;

	buf_init(&seen, 1 << 20);
	add_letters(&seen, text, s->utf8);
	clip(&seen, 0, width, s->utf8);
	p = seen.data;
	end = p + (seen.err ? 0 : seen.len);
	while (p < end && n < width) {
		struct cell *c = screen_cell(s, column + n++, row);
		size_t len = MAX(utf8_length(p, end), (size_t)1);

		if (c) {
			memset(c->letter, 0, sizeof(c->letter));
			memcpy(c->letter, p, MIN(len, sizeof(c->letter) - 1));
			c->ink = (int16_t)ink;
			c->paper = INK_PLAIN;
		}
		p += len;
	}
	buf_release(&seen);
	return n;
}

/* ---- printing ---- */

static void add_colors(struct buf *out, int ink, int paper)
{
	buf_adds(out, "\033[0");
	if (ink == INK_DIM || ink == INK_BOLD)
		buf_adds(out, ink == INK_DIM ? ";2" : ";1");
	else if (ink >= 0)
		buf_addf(out, ";38;5;%d", ink);
	if (paper >= 0)
		buf_addf(out, ";48;5;%d", paper);
	buf_addch(out, 'm');
}

static bool is_blank(const struct screen *s, const struct cell *c)
{
	return !c->dots && (!c->letter[0] || c->letter[0] == ' ') && !(s->color && c->paper >= 0);
}

static void add_cell(const struct cell *c, struct buf *out)
{
	if (c->letter[0])
		buf_adds(out, c->letter);
	else if (c->dots)
		buf_add(out, (char[]){'\xe2', (char)(0xa0 | c->dots >> 6), (char)(0x80 | (c->dots & 0x3f))},
			3);
	else
		buf_addch(out, ' ');
}

void screen_print(const struct screen *s, struct buf *out)
{
	for (unsigned row = 0; row < s->rows; row++) {
		const struct cell *line = screen_cell(s, 0, row);
		int ink = INK_PLAIN, paper = INK_PLAIN;
		unsigned end = s->columns;

		while (end && is_blank(s, &line[end - 1]))
			end--;
		for (unsigned i = 0; i < end; i++) {
			bool changes =
				line[i].paper != paper || (!is_blank(s, &line[i]) && line[i].ink != ink);

			if (s->color && changes)
				add_colors(out, ink = line[i].ink, paper = line[i].paper);
			add_cell(&line[i], out);
		}
		if (ink != INK_PLAIN || paper != INK_PLAIN)
			buf_adds(out, "\033[0m");
		buf_addch(out, '\n');
	}
}
