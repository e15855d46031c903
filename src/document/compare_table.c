/* The table of differences as cells, which text, Markdown and the page share.
 *
 * Values are means over the runs of a set, with their standard deviation behind them where there are several.
 * A difference that is larger than the spread of repeated runs is marked; one that is within it is marked as
 * such, since nothing should be concluded from it. */
#include "document/compare.h"

#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 4
#define PHASES_NAMED 20
#define COLUMN_MOST 60

/* What differs from run to run on any machine, however little it does. */
static bool is_noise(const struct compare_figure *f, double difference)
{
	double floor = f->unit.unit == UNIT_BYTES && !f->unit.per_second ? 1 << 20
		: f->unit.unit == UNIT_SECONDS				 ? 0.01
									 : 0;

	return fabs(difference) < floor;
}

static bool is_shown(const struct compare_figure *f, size_t set, const struct compare_style *style)
{
	struct compare_change change = compare_change(f, set);
	bool one = (f->of[0].nr > 0) != (f->of[set].nr > 0);

	if (style->all)
		return f->of[0].nr || f->of[set].nr;
	if (f->first && change.known)
		return true;
	return f->matters && (one || (change.differs && !is_noise(f, change.difference)));
}

/* "1.2 GiB ±3%", "~1.2 GiB" */
static void value_cell(char out[static 97], const struct compare_figure *f, size_t set)
{
	const struct compare_values *v = &f->of[set];
	double percent = 100 * v->deviation / fabs(v->mean);
	char mean[64], deviation[64];

	if (v->guess)
		*out++ = '~';
	if (!v->nr)
		snprintf(out, 96, "not known");
	else if (v->nr == 1)
		snprintf(out, 96, "%s", compare_format(mean, &f->unit, v->mean, false));
	else if (isfinite(percent) && percent < 1000)
		snprintf(out, 96, "%.40s ±%.*f%%", compare_format(mean, &f->unit, v->mean, false),
			percent < 9.95 ? 1 : 0, percent);
	else
		snprintf(out, 96, "%.40s ±%.40s", compare_format(mean, &f->unit, v->mean, false),
			compare_format(deviation, &f->unit, v->deviation, false));
}

static void ratio_cell(char out[static 96], const struct compare_change *change)
{
	char number[UNITS_SIZE];

	if (isnan(change->ratio))
		out[0] = 0;
	else if (isinf(change->ratio))
		snprintf(out, 96, "new");
	else if (change->ratio > 0 && change->ratio < 0.005)
		snprintf(out, 96, "<x0.01");
	else if (change->ratio > 0 && change->ratio < 9.995)
		snprintf(out, 96, "x%.2f", change->ratio);
	else
		snprintf(out, 96, "x%.20s", format_number(number, change->ratio));
}

struct compare_row {
	const struct compare_figure *figure;
	struct compare_change change;
	bool by_key; /* its name, not its title: with --all, where conditions are looked up */
	char cell[NR_COMPARE_COLUMNS][97]; /* the name stands in the figure */
};

static void fill_row(struct compare_row *r, const struct compare_figure *f, size_t set)
{
	*r = (struct compare_row){.figure = f, .change = compare_change(f, set)};
	value_cell(r->cell[COLUMN_BASE], f, 0);
	value_cell(r->cell[COLUMN_OTHER], f, set);
	if (!r->change.known)
		return;
	if (r->change.difference == 0)
		snprintf(r->cell[COLUMN_DIFFERENCE], 96, "same");
	else
		compare_format(r->cell[COLUMN_DIFFERENCE], &f->unit, r->change.difference, true);
	if (r->change.difference != 0)
		ratio_cell(r->cell[COLUMN_RATIO], &r->change);
	if (r->change.stands_out)
		snprintf(r->cell[COLUMN_MARK], 96, "*");
	else if (r->change.has_spread && r->change.difference != 0)
		snprintf(r->cell[COLUMN_MARK], 96, "~");
}

/* What differs stands out; an empty cell is meant to be empty. */
static void add_name(struct buf *out, const struct compare_row *r, bool utf8)
{
	struct buf title;

	buf_init(&title, 1 << 16);
	if (r->by_key)
		buf_adds(&title, r->figure->name);
	else
		compare_title(r->figure, &title);
	add_letters(out, (char *)title.data, utf8);
	buf_release(&title);
}

static void put_row(struct table_writer *w, const struct text_table *t, size_t i)
{
	const struct compare_row *r = (const struct compare_row *)t->of + i;

	for (unsigned k = 0; k < NR_COMPARE_COLUMNS; k++) {
		struct buf *text;

		if (k >= COLUMN_DIFFERENCE)
			cell_color(w, r->change.differs ? "1;33" : "2");
		if (k == COLUMN_DIFFERENCE && r->change.differs)
			cell_strong(w);
		text = cell_open(w);
		if (!text)
			continue;
		if (k == COLUMN_NAME)
			add_name(text, r, w->style.utf8);
		else
			add_letters(text, r->cell[k], w->style.utf8);
		cell_close(w, true);
	}
}

/* The figures of a phase stand together. */
static size_t phase_end(const struct comparison *c, size_t from)
{
	size_t to = from;

	while (to < c->nr_phase_figures && c->phase[to].phase == c->phase[from].phase)
		to++;
	return to;
}

static bool phase_is_in(const struct comparison *c, size_t from, size_t to, size_t set)
{
	for (size_t i = from; i < to; i++)
		if (c->phase[i].of[set].nr)
			return true;
	return false;
}

/* The names of those that the one has and the other has not. */
static void add_only(const struct comparison *c, size_t in, size_t not_in, struct buf *out)
{
	size_t nr = 0;

	for (size_t i = 0, to; i < c->nr_phase_figures; i = to) {
		to = phase_end(c, i);
		if (!phase_is_in(c, i, to, in) || phase_is_in(c, i, to, not_in))
			continue;
		if (nr < PHASES_NAMED) {
			buf_addf(out, nr ? ", " : "only in %s: ", c->set[in].title);
			buf_adds(out, c->phase[i].phase);
		}
		nr++;
	}
	if (nr > PHASES_NAMED)
		buf_addf(out, " and %zu more", nr - PHASES_NAMED);
}

/* What is known of one side, because the other has no such phase, is told by the phase's name. */
static bool of_one_side(const struct comparison *c, size_t i, size_t set)
{
	size_t from = i, to = phase_end(c, i);

	while (from && c->phase[from - 1].phase == c->phase[i].phase)
		from--;
	return !phase_is_in(c, from, to, 0) || !phase_is_in(c, from, to, set);
}

int compare_table_make(const struct comparison *c, size_t set, bool phases, const struct compare_style *style,
	struct compare_table *ret)
{
	const char *title[] = {
		phases ? "phase" : "figure", c->set[0].title, c->set[set].title, "difference", "ratio", ""};
	const struct compare_figure *f = phases ? c->phase : c->figure;
	size_t nr = phases ? c->nr_phase_figures : c->nr_figures;

	*ret = (struct compare_table){.row = calloc(MAX(nr, (size_t)1), sizeof(*ret->row))};
	ret->t = (struct text_table){.title = phases ? "Phases" : "Figures",
		.column = ret->column,
		.nr_columns = NR_COMPARE_COLUMNS,
		.row = put_row,
		.of = ret->row};
	for (unsigned k = 0; k < NR_COMPARE_COLUMNS; k++)
		ret->column[k] = (struct text_column){
			.title = title[k], .numbers = k && k != COLUMN_MARK, .gap = 2, .most = COLUMN_MOST};
	for (size_t k = 0; k < ARRAY_SIZE(ret->only); k++)
		buf_init(&ret->only[k], 1 << 20);
	if (!ret->row)
		return -ENOMEM;
	if (phases) {
		add_only(c, 0, set, &ret->only[0]);
		add_only(c, set, 0, &ret->only[1]);
	}
	for (size_t i = 0; i < nr; i++) {
		struct compare_row *r = &ret->row[ret->t.nr_rows];

		if (!is_shown(&f[i], set, style) || (phases && !style->all && of_one_side(c, i, set)))
			continue;
		fill_row(r, &f[i], set);
		r->by_key = style->all;
		ret->has_spread |= f[i].of[0].nr > 1 || f[i].of[set].nr > 1;
		ret->has_marks |= r->cell[COLUMN_MARK][0] != 0;
		ret->has_guess |= f[i].of[0].guess || f[i].of[set].guess;
		ret->t.nr_rows++;
	}
	return 0;
}

void compare_table_free(struct compare_table *t)
{
	for (size_t k = 0; k < ARRAY_SIZE(t->only); k++)
		buf_release(&t->only[k]);
	free(t->row);
	t->row = NULL;
}

void compare_legend(const struct compare_table *t, struct buf *out)
{
	if (t->has_spread || t->has_marks)
		buf_adds(out, "± is the standard deviation of repeated runs");
	if (t->has_marks)
		buf_adds(out, "; * marks a difference larger than their spread, ~ one within it");
	if (t->has_guess)
		buf_addf(out, "%s~ before a value: interpolated between samples", out->len ? "; " : "");
}

void compare_set_names(const struct compare_set *set, struct buf *out)
{
	for (size_t i = 0; i < MIN(set->nr, (size_t)NAMES_SHOWN); i++) {
		buf_adds(out, i ? ", " : "");
		add_text(out, set->name[i], strlen(set->name[i]), LETTERS_UTF8);
	}
	if (set->nr > NAMES_SHOWN)
		buf_addf(out, " and %zu more", set->nr - NAMES_SHOWN);
}

static void add_value_words(const struct compare_figure *f, size_t set, struct buf *out)
{
	const struct compare_values *v = &f->of[set];
	char text[64], more[64];

	buf_adds(out, compare_format(text, &f->unit, v->mean, false));
	if (v->nr > 1)
		buf_addf(out, " (mean of %zu runs, %s to %s)", v->nr,
			compare_format(text, &f->unit, v->least, false),
			compare_format(more, &f->unit, v->most, false));
}

void compare_verdict_words(const struct compare_page *p, const struct compare_verdict *v, struct buf *out)
{
	struct compare_change change = compare_change(v->figure, v->set);

	add_text(out, v->rule, strlen(v->rule), LETTERS_UTF8);
	buf_adds(out, ": ");
	compare_title(v->figure, out);
	buf_addch(out, ' ');
	if (change.known) {
		buf_adds(out, "was ");
		add_value_words(v->figure, 0, out);
		buf_adds(out, " and is ");
	} else {
		buf_adds(out, "is ");
	}
	add_value_words(v->figure, v->set, out);
	if (p->c->nr_sets > 2)
		buf_addf(out, " in %s", p->c->set[v->set].title);
	if (change.known && isfinite(change.ratio) && v->figure->of[0].mean > 0)
		buf_addf(out, ": %+.1f %%", 100 * (change.ratio - 1));
	if (change.has_spread && !change.stands_out)
		buf_adds(out, ", which is within the spread of the runs");
}
