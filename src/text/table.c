/* How a table looks in each form. A row is written cell by cell, so that no form needs memory for all of it;
 * terminal text with columns as wide as their widest cell goes through the rows twice. */
#include "text/table.h"

#include "base/str.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- columns ---- */

static size_t width_of(const struct table_writer *w, size_t i)
{
	if (w->t->column[i].width)
		return w->t->column[i].width;
	assert(i < TABLE_MEASURED);
	return w->wide[i];
}

static bool has_column(const struct table_writer *w, size_t i)
{
	const struct text_column *c = &w->t->column[i];

	switch (w->style.form) {
	case FORM_CSV:
		return c->name && c->only != OF_JSON;
	case FORM_JSON:
		return c->name && c->only != OF_CSV;
	case FORM_TEXT:
		return c->title && (w->measuring || width_of(w, i));
	default:
		return c->title;
	}
}

/* The column of the next cell; NULL when the form does not have it. */
static const struct text_column *take_column(struct table_writer *w)
{
	size_t i = w->at++;

	return has_column(w, i) ? &w->t->column[i] : NULL;
}

static bool is_last(const struct table_writer *w)
{
	for (size_t i = w->at; i < w->t->nr_columns; i++)
		if (has_column(w, i))
			return false;
	return true;
}

/* ---- cells ---- */

/* The end of a text that is too long. */
static void clip_front(struct buf *out, size_t from, size_t columns, bool utf8)
{
	const char *mark = utf8 ? "…" : "...", *p = (char *)out->data + from;
	size_t n = utf8_columns(p), keep = columns > utf8_columns(mark) ? columns - utf8_columns(mark) : 0;
	struct buf end;

	if (out->err || n <= columns)
		return;
	for (; n > keep; n--)
		for (p++; (*p & 0xc0) == 0x80;)
			p++;
	buf_init(&end, SIZE_MAX / 2);
	buf_adds(&end, p);
	out->len = from;
	buf_adds(out, mark);
	buf_add(out, end.data, end.len);
	buf_release(&end);
}

static void put_aligned(struct table_writer *w, const struct text_column *c, const char *text)
{
	size_t i = (size_t)(c - w->t->column), width, columns = utf8_columns(text), from;

	if (w->measuring) {
		if (!c->width)
			w->wide[i] = MAX(w->wide[i], columns);
		return;
	}
	width = width_of(w, i);
	buf_addf(w->out, "%*s", (int)c->gap, "");
	from = w->out->len;
	if (c->numbers)
		buf_addf(w->out, "%*s", (int)(width > columns ? width - columns : 0), "");
	buf_adds(w->out, text);
	if (c->keeps_end)
		clip_front(w->out, from, width, w->style.utf8);
	else if ((!c->numbers || !c->width) && !is_last(w))
		clip(w->out, from, width, w->style.utf8);
	if (!is_last(w))
		pad(w->out, from, width);
	if (w->color && w->nr_paints < ARRAY_SIZE(w->paint))
		w->paint[w->nr_paints++] = (struct table_paint){from, w->out->len, w->color};
}

static void put_markdown(struct table_writer *w, const char *text)
{
	const char *strong = w->strong ? "**" : "";

	buf_addf(w->out, " %s", strong);
	add_markdown(w->out, text);
	buf_addf(w->out, "%s |", strong);
}

static void put_html(struct table_writer *w, const struct text_column *c, const char *text)
{
	bool first = !w->any;
	const char *open = first ? "<th scope=\"row\"><bdi>"
		: c->numbers	 ? "<td>"
				 : "<td class=\"text\"><bdi>";

	buf_adds(w->out, open);
	add_element(w->out, w->strong ? "<strong>" : "", text, w->strong ? "</strong>" : "");
	buf_adds(w->out, first ? "</bdi></th>" : c->numbers ? "</td>" : "</bdi></td>");
}

/* For people: what is not known is a dash where an empty cell would look forgotten. */
static void put(struct table_writer *w, const struct text_column *c, const char *text)
{
	if (w->style.form == FORM_TEXT)
		put_aligned(w, c, text ? text : c->blank ? "" : "-");
	else if (w->style.form == FORM_MARKDOWN)
		put_markdown(w, text ? text : "");
	else
		put_html(w, c, text ? text : w->any && !c->blank ? "–" : "");
	w->any = true;
	w->strong = false;
	w->color = NULL;
}

static void csv_comma(struct table_writer *w)
{
	if (w->any)
		buf_addch(w->out, ',');
	w->any = true;
}

static bool same_group(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* The name of a value in the open object; its group is opened before it. */
static const char *json_key(struct table_writer *w, const struct text_column *c)
{
	if (!same_group(w->group, c->group)) {
		if (w->group)
			json_end_object(w->json);
		if (c->group)
			json_object(w->json, c->group);
		w->group = c->group;
	}
	return c->name;
}

void cell_bound(struct table_writer *w, const char *mark, double value)
{
	const struct text_column *c = take_column(w);
	char number[UNITS_SIZE], text[UNITS_SIZE + 8];

	if (!c)
		return;
	if (w->style.form == FORM_CSV) {
		csv_comma(w);
		add_csv_number(w->out, value);
	} else if (w->style.form == FORM_JSON && c->whole) {
		json_whole(w->json, json_key(w, c), value);
	} else if (w->style.form == FORM_JSON) {
		json_num(w->json, json_key(w, c), value);
	} else {
		snprintf(
			text, sizeof(text), "%.7s%s", mark, format_look(number, c->look, value, c->length_s));
		put(w, c, isnan(value) ? NULL : text);
	}
}

void cell_number(struct table_writer *w, double value)
{
	cell_bound(w, "", value);
}

void cell_flag(struct table_writer *w, bool value)
{
	const struct text_column *c = take_column(w);

	if (!c)
		return;
	if (w->style.form == FORM_JSON) {
		json_bool(w->json, json_key(w, c), value);
	} else if (w->style.form == FORM_CSV) {
		csv_comma(w);
		buf_addch(w->out, value ? '1' : '0');
	} else {
		put(w, c, value ? "yes" : "no");
	}
}

/* In the letters of `w`. */
static void put_text(struct table_writer *w, const struct text_column *c, const char *text, size_t len)
{
	if (w->style.form == FORM_CSV) {
		csv_comma(w);
		if (text)
			add_csv(w->out, text, len);
	} else if (w->style.form == FORM_JSON && text) {
		json_bytes(w->json, json_key(w, c), text, len);
	} else if (w->style.form == FORM_JSON) {
		json_null(w->json, json_key(w, c));
	} else {
		put(w, c, text);
	}
}

void cell_text(struct table_writer *w, const char *text, size_t len)
{
	struct buf *cell = cell_open(w);

	if (!cell)
		return;
	if (text)
		add_text(cell, text, len, w->letters);
	cell_close(w, text);
}

void cell_words(struct table_writer *w, const char *words)
{
	const struct text_column *c = take_column(w);

	if (c)
		put_text(w, c, words && *words ? words : NULL, words ? strlen(words) : 0);
}

struct buf *cell_open(struct table_writer *w)
{
	if (!has_column(w, w->at)) {
		w->at++;
		return NULL;
	}
	buf_reset(&w->cell);
	return &w->cell;
}

void cell_close(struct table_writer *w, bool known)
{
	const struct text_column *c = take_column(w);

	w->out->err = w->out->err ? w->out->err : w->cell.err;
	put_text(w, c, known ? (char *)w->cell.data : NULL, w->cell.len);
}

struct json *cell_json(struct table_writer *w, const char **ret_key)
{
	const struct text_column *c = take_column(w);

	if (!c || w->style.form != FORM_JSON)
		return NULL;
	*ret_key = json_key(w, c);
	return w->json;
}

void cell_strong(struct table_writer *w)
{
	w->strong = true;
}

void cell_color(struct table_writer *w, const char *color)
{
	w->color = w->style.color ? color : NULL;
}

/* ---- rows ---- */

void table_begin_row(struct table_writer *w)
{
	w->at = 0;
	w->any = false;
	w->nr_paints = 0;
	w->group = NULL;
	w->line = w->out->len;
	if (w->style.form == FORM_JSON)
		json_object(w->json, w->key);
	else if (w->style.form == FORM_MARKDOWN)
		buf_addch(w->out, '|');
	else if (w->style.form == FORM_HTML)
		buf_adds(w->out, "<tr>");
}

/* The line as far as the screen is wide; its colours come last, since they take no room. */
static void end_line(struct table_writer *w)
{
	size_t at = 0;

	while (!w->out->err && w->out->len > w->line && w->out->data[w->out->len - 1] == ' ')
		w->out->data[--w->out->len] = 0;
	if (w->style.width)
		clip(w->out, w->line, w->style.width, w->style.utf8);
	if (w->nr_paints && !w->out->err) {
		buf_reset(&w->cell);
		buf_add(&w->cell, w->out->data + w->line, w->out->len - w->line);
		w->out->len = w->line;
		for (unsigned i = 0; i < w->nr_paints; i++) {
			size_t from = MIN(w->paint[i].from - w->line, w->cell.len),
			       to = MIN(w->paint[i].to - w->line, w->cell.len);

			if (from == to)
				continue;
			buf_add(w->out, w->cell.data + at, from - at);
			buf_addf(w->out, "\033[%sm", w->paint[i].color);
			buf_add(w->out, w->cell.data + from, to - from);
			buf_adds(w->out, "\033[0m");
			at = to;
		}
		buf_add(w->out, w->cell.data + at, w->cell.len - at);
	}
	buf_addch(w->out, '\n');
}

void table_end_row(struct table_writer *w)
{
	if (w->measuring)
		return;
	switch (w->style.form) {
	case FORM_JSON:
		if (w->group)
			json_end_object(w->json);
		json_end_object(w->json);
		break;
	case FORM_TEXT:
		end_line(w);
		break;
	case FORM_HTML:
		buf_adds(w->out, "</tr>\n");
		break;
	default:
		buf_addch(w->out, '\n');
	}
}

/* As the terminal can show it. */
static const char *shown_title(struct table_writer *w, const struct text_column *c)
{
	buf_reset(&w->cell);
	add_letters(&w->cell, c->title, w->style.utf8);
	return (char *)w->cell.data;
}

static void csv_heading(struct table_writer *w, const struct text_column *c)
{
	csv_comma(w);
	if (c->group)
		buf_addf(w->out, "%s_", c->group);
	buf_adds(w->out, c->name);
}

void table_heading(struct table_writer *w)
{
	const struct text_column *c;

	if (w->style.form == FORM_JSON)
		return;
	if (w->style.form == FORM_HTML)
		add_element(w->out, "<div class=\"table-box\" tabindex=\"0\" role=\"region\" aria-label=\"",
			w->t->title, "\"><table><thead>");
	table_begin_row(w);
	while (w->at < w->t->nr_columns) {
		c = take_column(w);
		if (!c)
			continue;
		if (w->style.form == FORM_CSV)
			csv_heading(w, c);
		else if (w->style.form == FORM_HTML)
			add_element(w->out,
				c->numbers ? "<th scope=\"col\">" : "<th scope=\"col\" class=\"text\">",
				c->title, "</th>");
		else
			put(w, c, shown_title(w, c));
	}
	if (w->style.form == FORM_TEXT && w->style.color)
		w->paint[w->nr_paints++] = (struct table_paint){w->line, w->out->len, "1"};
	if (w->style.form == FORM_HTML) {
		buf_adds(w->out, "</tr></thead><tbody>\n");
		return;
	}
	table_end_row(w);
	if (w->style.form != FORM_MARKDOWN)
		return;
	buf_addch(w->out, '|');
	for (size_t i = 0; i < w->t->nr_columns; i++)
		if (has_column(w, i))
			buf_adds(w->out, w->t->column[i].numbers ? "---:|" : "---|");
	buf_addch(w->out, '\n');
}

/* ---- all of it ---- */

void table_begin(
	struct table_writer *w, const struct text_table *t, const struct text_style *style, struct buf *out)
{
	bool raw = style->form == FORM_CSV || style->form == FORM_JSON;

	*w = (struct table_writer){.t = t,
		.style = *style,
		.out = out,
		.letters = raw					   ? LETTERS_RAW
			: style->form == FORM_TEXT && !style->utf8 ? LETTERS_ASCII
								   : LETTERS_UTF8};
	w->style.utf8 |= style->form != FORM_TEXT;
	buf_init(&w->cell, SIZE_MAX / 2);
}

void table_rows(struct table_writer *w)
{
	for (size_t r = 0; r < w->t->nr_rows; r++) {
		table_begin_row(w);
		if (w->t->row)
			w->t->row(w, w->t, r);
		for (size_t c = 0; !w->t->row && c < w->t->nr_columns; c++)
			cell_words(w, w->t->cell[r * w->t->nr_columns + c]);
		table_end_row(w);
	}
}

void table_measure(struct table_writer *w)
{
	bool known = true;

	for (size_t i = 0; i < w->t->nr_columns; i++)
		known &= !w->t->column[i].title || w->t->column[i].width;
	if (known)
		return;
	assert(w->t->nr_columns <= TABLE_MEASURED);
	w->measuring = true;
	table_rows(w);
	w->measuring = false;
	for (size_t i = 0; i < w->t->nr_columns; i++) {
		const struct text_column *c = &w->t->column[i];

		if (w->wide[i] && c->title)
			w->wide[i] = MAX(w->wide[i], utf8_columns(shown_title(w, c)));
		if (c->most)
			w->wide[i] = MIN(w->wide[i], c->most);
	}
}

void table_end(struct table_writer *w)
{
	if (w->style.form == FORM_HTML)
		buf_adds(w->out, "</tbody></table></div>\n");
	buf_release(&w->cell);
}

void table_write(const struct text_table *t, const struct text_style *style, struct buf *out)
{
	struct table_writer w;

	table_begin(&w, t, style, out);
	if (style->form == FORM_TEXT)
		table_measure(&w);
	table_heading(&w);
	table_rows(&w);
	table_end(&w);
}

void table_json(const struct text_table *t, struct json *j, const char *key)
{
	struct table_writer w;

	table_begin(&w, t, &(struct text_style){.form = FORM_JSON}, j->out);
	w.json = j;
	w.key = key;
	table_rows(&w);
	table_end(&w);
}
