/* The pieces of report/summary: not for others. */
#ifndef TEXT_PAGE_H
#define TEXT_PAGE_H

#include "base/str.h"
#include "text/summary.h"
#include "text/words.h"

#define LABEL_WIDTH 11

struct page {
	const struct summary *s;
	const struct summary_style *style;
	struct buf *out;
};

static inline enum letters letters(const struct page *p)
{
	return p->style->utf8 ? LETTERS_UTF8 : LETTERS_ASCII;
}

static inline double value(const struct page *p, enum figure_id id)
{
	return p->s->figure[id].value;
}

static inline bool has(const struct page *p, enum figure_id id)
{
	return has_figure(p->s, id);
}

static inline void color(struct buf *out, const struct page *p, const char *code)
{
	if (p->style->color)
		buf_addf(out, "\033[%sm", code);
}

/* "~" when more than a hundredth of it is an estimate. */
static inline const char *tilde(const struct page *p, enum figure_id estimated)
{
	return has(p, estimated) && value(p, estimated) > 0.01 ? "~" : "";
}

/* What parts the numbers of a line. */
static inline const char *between(const struct page *p)
{
	return p->style->utf8 ? "\x1f· " : ", ";
}

/* A number stays with its unit and its name: no line ends within what was added since `from`, if it fits into
 * the narrowest; else none ends behind a number. */
static inline void tie(struct buf *out, size_t from)
{
	bool whole = !out->err && utf8_columns((char *)out->data + from) <= 40 - LABEL_WIDTH - 2;

	for (size_t i = from; !out->err && i < out->len; i++) {
		bool behind_number = i > from && out->data[i - 1] >= '0' && out->data[i - 1] <= '9';

		if (out->data[i] == ' ' && (whole || behind_number))
			out->data[i] = TIED;
	}
}

void print_line(const struct page *p, const char *label, const char *label_color, const char *text);
void add_percent(struct buf *line, double ratio);
/* What was counted; and the GPUs. */
void print_counters(const struct page *p);
void print_gpus(const struct page *p);
/* The table of groups, where it says something that the lines of the whole do not. */
void print_groups(const struct page *p);
void print_phases(const struct page *p);
/* So much was counted of it, in its unit. */
void counter_amount(struct buf *line, const struct summary_counter *c, double value);
#endif
