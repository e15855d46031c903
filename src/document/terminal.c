/* A chart in characters: the title, phases and events above the curves, axes beside and below them, and a
 * legend that tells each curve's mean and maximum.
 *
 *	Cores  CPUs that the whole tree keeps busy.
 *	      ├ load ──────┤├ solve ─────────────────────┤
 *	   4 ┤             ⡠⠤⠤⠤⠤⠒⠒⠒⠤⠤⠤⠤⠤⠤⡄
 *	     │             ⡇              ⡇
 *	   2 ┤             ⡇              ⢸
 *	     │⣀⡠⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠎               ⢣⣀⣀⣀⣀⣀⣀
 *	   0 ┤
 *	     └┬──────────┬──────────┬──────────┬─────────
 *	      0         30s        1m        1m30s
 *	  ━ tree.cores  mean 2.1  max 3.9
 *
 * What there is no room for is left out in this order: the footnote, events, phases, names of curves (their
 * number is said). The curves always have a few rows. */
#include "document/terminal.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_ROWS 3
#define LANES 3
#define GAP 3 /* between two names of the legend */

struct terminal_layout {
	struct terminal_field field;
	unsigned head;		       /* rows of the title */
	unsigned lanes;		       /* rows of phases */
	unsigned marks;		       /* row of events: 0 or 1 */
	unsigned labels;	       /* columns left of the field, the axis' line included */
	unsigned legend, across, item; /* rows; names in a row; columns of each */
	unsigned foot;
	bool brief; /* names have their maximum alone */
};

/* ---- the legend ---- */

/* "name  mean 2.1  max 3.9"; of many "name  max 3.9" */
static void legend_text(const struct terminal_layout *l, const struct chart_curve *c, struct buf *out)
{
	const struct chart *f = l->field.chart;
	char text[UNITS_SIZE];

	buf_adds(out, c->name ? c->name : "");
	if (!isnan(c->average) && !l->brief)
		buf_addf(out, "  mean %s", format_value(text, c->average, f->unit, f->per_second));
	if (!isnan(c->most))
		buf_addf(out, "  max %s", format_value(text, c->most, f->unit, f->per_second));
}

/* A curve alone that is named in the title needs no legend. */
static bool has_name(const struct chart *f, size_t i)
{
	const char *name = f->curve[i].name;

	return name && *name && !(f->nr_curves == 1 && f->title && !strcmp(f->title, name) && f->subtitle);
}

static void legend_size(struct terminal_layout *l, const struct chart *f, unsigned most)
{
	const struct screen *s = l->field.screen;
	unsigned widest = 0, nr = 0;
	struct buf text;

	buf_init(&text, 1 << 20);
	for (size_t i = 0; i < f->nr_curves; i++) {
		buf_reset(&text);
		legend_text(l, &f->curve[i], &text);
		widest = MAX(widest, screen_text_columns(s, (char *)text.data));
		nr += has_name(f, i);
	}
	buf_release(&text);
	if (!nr || f->form == CHART_HEAT || f->form == CHART_TIMELINE)
		return;
	l->item = MIN(widest + 2 + GAP, s->columns);
	l->across = MAX((s->columns + GAP - 2) / l->item, 1u);
	l->legend = MIN((nr + l->across - 1) / l->across, most);
	if (nr > l->across * l->legend && !l->brief) {
		l->brief = true;
		legend_size(l, f, most);
	}
}

static void legend_item(struct terminal_layout *l, size_t i, unsigned column, unsigned row, unsigned width)
{
	const struct chart *f = l->field.chart;
	struct screen *s = l->field.screen;
	const char *swatch = f->form == CHART_STACKED ? "█" : "━";
	struct buf text;

	buf_init(&text, 1 << 20);
	legend_text(l, &f->curve[i], &text);
	if (l->field.signs)
		screen_put(s, column, row, (char[]){curve_sign(i), 0}, curve_sign(i), INK_PLAIN);
	else
		screen_put(s, column, row, swatch, f->form == CHART_STACKED ? '#' : '*',
			curve_ink(&l->field, &f->curve[i]));
	screen_text(s, column + 2, row, (char *)text.data, width - 2, INK_PLAIN);
	buf_release(&text);
}

static void draw_legend(struct terminal_layout *l, unsigned row)
{
	const struct chart *f = l->field.chart;
	struct screen *s = l->field.screen;
	size_t room = (size_t)l->legend * l->across, shown = 0, named = 0;
	char more[40];

	for (size_t i = 0; i < f->nr_curves; i++)
		named += has_name(f, i);
	for (size_t i = 0; l->legend && i < f->nr_curves; i++) {
		unsigned column = 2 + (unsigned)(shown % l->across) * l->item;
		unsigned at = row + (unsigned)(shown / l->across);

		if (!has_name(f, i))
			continue;
		if (shown + 1 == room && named > room) {
			snprintf(more, sizeof(more), "and %zu more", named - shown);
			screen_text(s, column, at, more, s->columns - column, INK_DIM);
			break;
		}
		legend_item(l, i, column, at, MIN(l->item - (l->across > 1 ? GAP : 0), s->columns - column));
		shown++;
	}
}

/* ---- axes ---- */

/* The name of the curve that a row of a heat map shows, or of the first span of a lane. */
static const char *row_name(const struct terminal_field *f, unsigned row)
{
	size_t nr = f->chart->nr_curves;

	if (f->chart->form == CHART_HEAT)
		return nr ? f->chart->curve[(f->rows - 1 - row) * nr / f->rows].name : NULL;
	for (size_t i = 0; i < f->chart->nr_spans; i++)
		if (f->chart->span[i].lane == row)
			return f->chart->span[i].name;
	return NULL;
}

static bool has_rows(const struct chart *f)
{
	return f->form == CHART_HEAT || f->form == CHART_TIMELINE;
}

static unsigned label_columns(struct terminal_layout *l)
{
	const struct terminal_field *f = &l->field;
	unsigned widest = 1;
	char text[UNITS_SIZE];

	for (unsigned i = 0; i < f->value.nr && !has_rows(f->chart); i++) {
		format_value(text, f->value.tick[i], f->chart->unit, f->chart->per_second);
		widest = MAX(widest, screen_text_columns(f->screen, text));
	}
	for (unsigned i = 0; has_rows(f->chart) && i < f->rows; i++) {
		const char *name = row_name(f, i);

		widest = MAX(widest, name ? screen_text_columns(f->screen, name) : 0);
	}
	return MIN(widest, f->screen->columns / 3) + 2;
}

static void draw_label(struct terminal_layout *l, unsigned row, const char *text, bool tick)
{
	struct screen *s = l->field.screen;
	unsigned room = l->labels - 2, width = MIN(screen_text_columns(s, text), room);

	screen_text(s, room - width, row, text, room, INK_PLAIN);
	if (tick)
		screen_put(s, l->labels - 1, row, "┤", '+', INK_DIM);
}

static void draw_value_axis(struct terminal_layout *l)
{
	struct terminal_field *f = &l->field;
	char text[UNITS_SIZE];
	unsigned last = UINT32_MAX;

	for (unsigned i = 0; i < f->rows; i++)
		screen_put(f->screen, l->labels - 1, f->row + i, "│", '|', INK_DIM);
	for (unsigned i = 0; has_rows(f->chart) && i < f->rows; i++) {
		const char *name = row_name(f, i);

		/* Of a heat map with more rows than names, each name once. */
		if (name && (!i || name != row_name(f, i - 1) || f->chart->form == CHART_TIMELINE))
			draw_label(l, f->row + i, name, false);
	}
	for (unsigned i = 0; !has_rows(f->chart) && i < f->value.nr; i++) {
		unsigned row = field_row(f, f->value.tick[i]);

		if (row == last)
			continue;
		last = row;
		format_value(text, f->value.tick[i], f->chart->unit, f->chart->per_second);
		draw_label(l, f->row + row, text, true);
	}
}

static void draw_time_axis(struct terminal_layout *l)
{
	struct terminal_field *f = &l->field;
	unsigned row = f->row + f->rows, free_from = 0;
	char text[UNITS_SIZE];

	screen_put(f->screen, l->labels - 1, row, "└", '+', INK_DIM);
	for (unsigned i = 0; i < f->columns; i++)
		screen_put(f->screen, f->column + i, row, "─", '-', INK_DIM);
	for (unsigned i = 0; i < f->time.nr; i++) {
		unsigned at = f->column + (unsigned)(field_column(f, f->time.tick[i]) + 0.5);
		unsigned width = (unsigned)strlen(format_tick_time(text, f->time.tick[i], f->time.step));
		unsigned from = at > width / 2 ? at - width / 2 : 0;

		from = MIN(from, f->screen->columns - MIN(width, f->screen->columns));
		if (from < free_from)
			continue;
		screen_put(f->screen, at, row, "┬", '+', INK_DIM);
		screen_text(f->screen, from, row + 1, text, width, INK_PLAIN);
		free_from = from + width + 2;
	}
}

/* ---- phases and events ---- */

static void draw_upright(struct terminal_field *f, double time_s)
{
	double x = field_column(f, time_s);

	for (unsigned i = 0; x > -0.5 && x < f->columns - 0.5 && i < f->rows; i++) {
		unsigned column = f->column + (unsigned)(x + 0.5);

		if (screen_is_free(f->screen, column, f->row + i))
			screen_put(f->screen, column, f->row + i, "┊", ':', INK_DIM);
	}
}

static void draw_band(struct terminal_layout *l, const struct chart_band *b, unsigned from, unsigned to)
{
	struct terminal_field *f = &l->field;
	unsigned row = l->head + b->lane, width = to - from + 1;

	for (unsigned i = from; i <= to; i++)
		screen_put(f->screen, f->column + i, row,
			i == from	  ? "├"
				: i == to ? "┤"
					  : "─",
			i == from || i == to ? '|' : '-', INK_DIM);
	if (width > 4 && b->label) {
		unsigned n =
			screen_text(f->screen, f->column + from + 2, row, b->label, width - 4, INK_PLAIN);

		screen_put(f->screen, f->column + from + 1, row, " ", ' ', INK_PLAIN);
		screen_put(f->screen, f->column + from + 2 + n, row, " ", ' ', INK_PLAIN);
	}
}

/* How many of the lanes of phases are drawn, of `most` that there may be, and how many phases then have no
 * place. */
static unsigned lanes_of(const struct chart *f, unsigned most, size_t *ret_without)
{
	*ret_without = f->phases_left_out;
	for (size_t i = 0; i < f->nr_bands; i++)
		*ret_without += f->band[i].lane >= most;
	return MIN(f->nr_band_lanes, most);
}

/* Returns how many phases had no place. */
static size_t draw_bands(struct terminal_layout *l)
{
	struct terminal_field *f = &l->field;
	size_t without = f->chart->phases_left_out;

	for (size_t i = 0; i < f->chart->nr_bands; i++) {
		const struct chart_band *b = &f->chart->band[i];
		double from = MAX(field_column(f, b->from_s), 0.0);
		double to = MIN(field_column(f, b->to_s), (double)(f->columns - 1));

		if (!(to >= from))
			continue;
		if (!b->lane) {
			draw_upright(f, b->from_s);
			draw_upright(f, b->to_s);
		}
		if (b->lane < l->lanes)
			draw_band(l, b, (unsigned)(from + 0.5), (unsigned)(to + 0.5));
		else
			without++;
	}
	return without;
}

static void draw_marks(struct terminal_layout *l)
{
	struct terminal_field *f = &l->field;
	unsigned row = l->head + l->lanes, free_from = 0;

	for (size_t i = 0; i < f->chart->nr_marks; i++) {
		const struct chart_mark *m = &f->chart->mark[i];
		double x = field_column(f, m->time_s);
		unsigned at = f->column + (unsigned)(MAX(x, 0.0) + 0.5), width;

		draw_upright(f, m->time_s);
		if (!l->marks || !(x > -0.5 && x < f->columns - 0.5) || at < free_from)
			continue;
		screen_put(f->screen, at, row, "▾", 'v', INK_PLAIN);
		free_from = at + 1;
		width = m->label ? screen_text_columns(f->screen, m->label) : 0;
		if (width && at + 2 + width <= f->screen->columns) {
			screen_text(f->screen, at + 1, row, m->label, width, INK_DIM);
			free_from = at + width + 2;
		}
	}
}

/* ---- limits and notes ---- */

static bool is_free(const struct terminal_field *f, unsigned column, unsigned row, unsigned width)
{
	bool inside = column >= f->column && column + width <= f->column + f->columns && row >= f->row &&
		row < f->row + f->rows;

	for (unsigned i = 0; inside && i < width; i++)
		inside = screen_is_free(f->screen, column + i, row);
	return inside;
}

/* Beside the column, at the height of the row or next to it: where nothing else is, else nowhere. */
static void write_near(struct terminal_field *f, unsigned column, unsigned row, const char *text, int ink)
{
	static const int away[] = {0, -1, 1, -2};
	unsigned width = text ? screen_text_columns(f->screen, text) : 0;

	for (size_t i = 0; width && i < 2 * ARRAY_SIZE(away); i++) {
		unsigned y = row + (unsigned)away[i / 2];
		unsigned x = i % 2 ? column - MIN(width, column) : column + 1;

		if (!is_free(f, x, y, width))
			continue;
		screen_text(f->screen, x, y, text, width, ink);
		return;
	}
}

static void draw_level(struct terminal_field *f, const struct chart_level *level)
{
	unsigned row = f->row + field_row(f, level->value);
	double place = axis_place(&f->value, level->value);

	if (!(place >= 0 && place <= 1))
		return;
	write_near(f, f->column + f->columns, row, level->label, INK_DIM);
	for (unsigned i = 0; i < f->columns; i++)
		if (screen_is_free(f->screen, f->column + i, row))
			screen_put(f->screen, f->column + i, row, "╌", '-', INK_DIM);
}

static void draw_note(struct terminal_field *f, const struct chart_note *note)
{
	double x = field_column(f, note->time_s);

	if (!isnan(note->value) && x > -0.5 && x < f->columns - 0.5)
		write_near(f, f->column + (unsigned)(x + 0.5), f->row + field_row(f, note->value), note->text,
			INK_BOLD);
}

/* ---- all of it ---- */

static bool is_known(const struct chart *f)
{
	for (size_t k = 0; k < f->nr_curves; k++)
		for (size_t i = 0; i < f->curve[k].nr; i++)
			if (!isnan(f->curve[k].mean[i]))
				return true;
	return f->nr_spans > 0;
}

static void draw_title(struct terminal_layout *l)
{
	const struct chart *f = l->field.chart;
	struct screen *s = l->field.screen;
	unsigned n = screen_text(s, 0, 0, f->title ? f->title : "", s->columns, INK_BOLD);

	if (!f->subtitle || !*f->subtitle)
		return;
	if (l->head > 1)
		screen_text(s, 0, 1, f->subtitle, s->columns, INK_DIM);
	else if (n + 12 < s->columns)
		screen_text(s, n + 2, 0, f->subtitle, s->columns - n - 2, INK_DIM);
}

/* What each part gets of the rows; the field has what is left. */
static void lay_out(struct terminal_layout *l)
{
	const struct chart *f = l->field.chart;
	struct screen *s = l->field.screen;
	unsigned rows = s->rows, title = screen_text_columns(s, f->title ? f->title : "");
	unsigned subtitle = f->subtitle ? screen_text_columns(s, f->subtitle) : 0;
	size_t without;

	l->head = subtitle && title + 2 + subtitle > s->columns && rows >= 14 ? 2 : 1;
	l->lanes = lanes_of(f, MIN(rows / 8, (unsigned)LANES), &without);
	l->marks = f->nr_marks && rows >= 10;
	l->foot = ((f->footnote && *f->footnote) || without) && rows >= 16;
	legend_size(l, f, MAX(rows / 4, 1u));
	if (l->head + l->lanes + l->marks + l->foot + l->legend + 2 + LEAST_ROWS > rows)
		l->lanes = l->marks = l->foot = 0;
	l->field.row = l->head + l->lanes + l->marks;
	l->field.rows = rows - l->field.row - 2 - l->legend - l->foot;
	if (f->form == CHART_TIMELINE)
		l->field.rows = MIN(l->field.rows, MAX(f->nr_lanes, 1u));
	if (f->form == CHART_HEAT && f->nr_curves && f->nr_curves < l->field.rows) /* all of one height */
		l->field.rows -= l->field.rows % (unsigned)f->nr_curves;
	axis_of_values(&l->field.value, f, MIN(MAX(l->field.rows / 3, 2u), 8u));
	l->labels = label_columns(l);
	l->field.column = l->labels;
	l->field.columns = s->columns - l->labels;
	axis_of_time(&l->field.time, f, MAX(l->field.columns / 10, 1u));
}

static void draw_curves(struct terminal_field *f)
{
	static void (*const draw[])(struct terminal_field *) = {[CHART_LINES] = field_lines,
		[CHART_STACKED] = field_stack,
		[CHART_HEAT] = field_heat,
		[CHART_TIMELINE] = field_timeline};
	static const char nothing[] = "nothing is known here";

	if (f->chart->form < ARRAY_SIZE(draw))
		draw[f->chart->form](f);
	if (!is_known(f->chart))
		screen_text(f->screen,
			f->column + (f->columns - MIN((unsigned)strlen(nothing), f->columns)) / 2,
			f->row + f->rows / 2, nothing, f->columns, INK_DIM);
}

static void draw_foot(struct terminal_layout *l, unsigned row, size_t without)
{
	const char *note = l->field.chart->footnote ? l->field.chart->footnote : "";
	struct buf text;

	buf_init(&text, 1 << 20);
	if (without)
		buf_addf(&text, "%zu more %s%s", without,
			without == 1 ? "phase is not named" : "phases are not named", *note ? "; " : "");
	buf_adds(&text, note);
	screen_text(l->field.screen, 2, row, (char *)text.data, l->field.screen->columns - 2, INK_DIM);
	buf_release(&text);
}

int terminal_chart(const struct chart *f, const struct terminal_style *style, struct buf *out)
{
	struct terminal_layout l = {.field = {.chart = f}};
	struct screen s;
	size_t without;
	unsigned row;

	if (screen_open(&s, style) < 0)
		return -ENOMEM;
	l.field.screen = &s;
	l.field.signs = !s.utf8 || (!s.color && f->nr_curves > 1 && f->form != CHART_HEAT);
	lay_out(&l);
	draw_title(&l);
	draw_curves(&l.field);
	draw_value_axis(&l);
	draw_time_axis(&l);
	for (size_t i = 0; i < f->nr_notes; i++)
		draw_note(&l.field, &f->note[i]);
	for (size_t i = 0; i < f->nr_levels; i++)
		draw_level(&l.field, &f->level[i]);
	draw_marks(&l);
	without = draw_bands(&l);
	row = l.field.row + l.field.rows + 2;
	draw_legend(&l, row);
	row += l.legend;
	if (l.foot)
		draw_foot(&l, row++, without);
	s.rows = MIN(row, s.rows);
	screen_print(&s, out);
	screen_close(&s);
	return out->err;
}
