/* The table by phase: see phases.h. */
#include "text/phases.h"

#include "base/owned.h"
#include "base/str.h"
#include "text/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	enum phase_value value;
	const char *title;
	enum number_look look;
} shown[] = {{PHASE_WALL, "wall", LOOK_SECONDS}, {PHASE_CPU, "cpu", LOOK_SECONDS},
	{PHASE_CORES, "cores", LOOK_CORES}, {PHASE_MEMORY, "peak mem", LOOK_BYTES},
	{PHASE_READ_CHARS, "read", LOOK_BYTES}, {PHASE_WRITE_CHARS, "wrote", LOOK_BYTES},
	{PHASE_GPU_UTIL, "GPU", LOOK_PERCENT}, {PHASE_GPU_MEMORY, "GPU mem", LOOK_BYTES},
	{PHASE_ENERGY, "energy", LOOK_JOULES}};

void phase_title(const struct phase *p, bool utf8, struct buf *out)
{
	buf_adds(out, p->name);
	if (p->count > 1)
		buf_addf(out, " %s%u", utf8 ? "×" : "x", p->count);
}

const char *ordinal(uint32_t n)
{
	if (n % 100 >= 11 && n % 100 <= 13)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* A repetition as people would call it. */
static void add_repetition(const struct phases *p, const struct phase *rep, struct buf *out)
{
	const struct phase *of = &p->phase[rep->fold];

	if (of->count > 1 && !strcmp(of->name, rep->name))
		buf_addf(out, "the %u%s ", rep->number, ordinal(rep->number));
	buf_adds(out, rep->name);
}

/* Moments of samples and of phases' edges are not the same: a hair beside it is in it. */
#define EDGE_S 1e-3

bool add_phase_at(const struct phases *p, double from_s, double to_s, struct buf *out)
{
	const struct phase *inner = NULL, *outer = NULL;

	for (size_t i = 0; i < p->nr_repetitions; i++) {
		const struct phase *rep = &p->repetition[i];

		if (!(rep->begin_s <= from_s + EDGE_S) || !(rep->end_s >= to_s - EDGE_S))
			continue;
		if (!outer || rep->end_s - rep->begin_s > outer->end_s - outer->begin_s)
			outer = rep;
		if (!inner || rep->end_s - rep->begin_s < inner->end_s - inner->begin_s)
			inner = rep;
	}
	if (!outer)
		return false;
	/* Two that overlap under one name (subshells, threads) are not one in the other. */
	if (strcmp(inner->name, outer->name) != 0)
		buf_addf(out, "%s of ", inner->name);
	add_repetition(p, outer, out);
	return true;
}

void add_when(const struct phases *p, double at_s, double length_s, struct buf *out)
{
	char text[UNITS_SIZE];
	struct buf name;

	buf_init(&name, 1 << 16);
	if (p && add_phase_at(p, at_s, at_s, &name)) {
		clip(&name, 0, 60, true);
		buf_addf(out, " in %s", (char *)name.data);
	} else {
		buf_addf(out, " at %s", format_moment(text, at_s, length_s));
	}
	buf_release(&name);
}

char *format_slower(char out[static UNITS_SIZE], double share)
{
	if (share > 1)
		snprintf(out, UNITS_SIZE, "%.*f times as long", share < 8.95 ? 1 : 0, 1 + MIN(share, 1e9));
	else
		snprintf(out, UNITS_SIZE, "%.0f %% slower", 100 * share);
	return out;
}

static void add_each(const struct phase *p, bool utf8, struct buf *out)
{
	char mean[UNITS_SIZE], sd[UNITS_SIZE], slower[UNITS_SIZE];

	if (!(p->count > 1) || isnan(p->mean_s))
		return;
	buf_addf(out, "each %s %s %s", format_duration(mean, p->mean_s), utf8 ? "±" : "+-",
		format_duration(sd, p->sd_s));
	if (!p->slowest)
		return;
	buf_addf(out, "; the %u%s %s", p->slowest, ordinal(p->slowest), format_slower(slower, p->slower));
	if (p->slower_why)
		buf_addf(out, ": %s", p->slower_why);
}

/* What a table has to say of it beside its numbers. */
static void add_remark(const struct phase *p, bool utf8, struct buf *out)
{
	size_t from = out->len;

	add_each(p, utf8, out);
	if (p->nodes > 1)
		buf_addf(out, "%son %u nodes", out->len > from ? "; " : "", p->nodes);
	if (p->senders > p->nodes)
		buf_addf(out, "%sin %u processes", out->len > from ? "; " : "", p->senders);
	if (p->cut)
		buf_addf(out, "%sopen at the end of the recording", out->len > from ? "; " : "");
}

static const char interpolated[] = "interpolated between samples";

void phase_remark(const struct phase *p, bool utf8, struct buf *out)
{
	size_t from = out->len;

	add_remark(p, utf8, out);
	if (p->interpolated)
		buf_addf(out, "%s%s", out->len > from ? "; " : "", interpolated);
}

/* ---- the table ---- */

/* The text is taken; the buffer is released. */
static char *text_of(struct buf *b)
{
	char *copy = b->err ? NULL : strdup((const char *)b->data);

	buf_release(b);
	return copy;
}

static char *name_cell(const struct phase *p, bool utf8, const char *indent)
{
	struct buf b;

	buf_init(&b, 100000);
	for (unsigned i = 0; i < p->depth; i++)
		buf_adds(&b, indent);
	phase_title(p, utf8, &b);
	return text_of(&b);
}

static char *number_cell(const struct phase *p, size_t column)
{
	enum phase_value which = shown[column].value;
	double value = p->value[which];
	char text[UNITS_SIZE], *cell = NULL;

	if (isnan(value))
		return strdup("");
	format_look(text, shown[column].look, shown[column].look == LOOK_PERCENT ? value / 100 : value, 0);
	if (!phase_is_guess(p, which))
		return strdup(text);
	return asprintf(&cell, "~%s", text) < 0 ? NULL : cell;
}

static char *remark_cell(const struct phase *p, bool utf8)
{
	struct buf b;

	buf_init(&b, 10000);
	buf_addch(&b, '(');
	add_remark(p, utf8, &b);
	if (b.len == 1)
		buf_reset(&b);
	else
		buf_addch(&b, ')');
	return text_of(&b);
}

static int by_wall(const void *a, const void *b)
{
	const struct phase *x = *(const struct phase *const *)a, *y = *(const struct phase *const *)b;
	double wx = x->value[PHASE_WALL], wy = y->value[PHASE_WALL];

	return wx != wy ? (wx < wy ? 1 : -1) : (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
	const struct phase *x = *(const struct phase *const *)a, *y = *(const struct phase *const *)b;

	return (x > y) - (x < y);
}

/* Where there are too many, those that took longest, in the order of all. NULL: no memory. */
static const struct phase **choose(const struct phases *p, size_t rows)
{
	const struct phase **row = calloc(p->nr + 1, sizeof(*row));

	for (size_t i = 0; row && i < p->nr; i++)
		row[i] = &p->phase[i];
	if (row && rows < p->nr) {
		qsort(row, p->nr, sizeof(*row), by_wall);
		qsort(row, rows, sizeof(*row), by_place);
	}
	return row;
}

static bool any_known(const struct phase *const *row, size_t rows, enum phase_value value)
{
	for (size_t i = 0; i < rows; i++)
		if (!isnan(row[i]->value[value]))
			return true;
	return false;
}

static bool any_remark(const struct phase *const *row, size_t rows)
{
	bool any = false;

	for (size_t i = 0; i < rows && !any; i++) {
		char *text = remark_cell(row[i], true);

		any = !text || *text;
		free(text);
	}
	return any;
}

static int add_column(struct text_table *t, const char *title, bool numbers)
{
	t->column[t->nr_columns++] =
		(struct text_column){.title = title, .numbers = numbers, .gap = t->nr_columns ? 2 : 0};
	return 0;
}

/* What a reader has to know beyond the rows. */
static char *note_of(const struct phases *p, const struct phase *const *row, size_t rows)
{
	bool guess = false;
	struct buf b;

	buf_init(&b, 1000);
	for (size_t i = 0; i < rows; i++)
		for (size_t k = 0; k < ARRAY_SIZE(shown); k++)
			guess |= phase_is_guess(row[i], shown[k].value);
	if (guess)
		buf_addf(&b, "~ %s", interpolated);
	if (rows < p->nr)
		buf_addf(&b, "%s%zu more phase%s took less time", b.len ? "; " : "", p->nr - rows,
			p->nr - rows == 1 ? "" : "s");
	if (p->left_out)
		buf_addf(&b, "%s%zu repetitions are counted and not told one by one", b.len ? "; " : "",
			p->left_out);
	if (p->ignored)
		buf_addf(&b, "%s%zu phases are not counted: too many names, or too many open at once",
			b.len ? "; " : "", p->ignored);
	return text_of(&b);
}

static int fill_table(
	const struct phase *const *row, size_t rows, bool utf8, const char *indent, struct text_table *ret)
{
	size_t from[ARRAY_SIZE(shown)], nr = 0;
	bool remarks = any_remark(row, rows);

	add_column(ret, "by phase", false);
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		if (any_known(row, rows, shown[i].value)) {
			from[nr++] = i;
			add_column(ret, shown[i].title, true);
		}
	if (remarks) {
		add_column(ret, "", false);
		ret->column[ret->nr_columns - 1].blank = true;
	}
	ret->cell = calloc(rows * ret->nr_columns + 1, sizeof(*ret->cell));
	if (!ret->cell)
		return -ENOMEM;
	for (size_t i = 0; i < rows; i++) {
		char **cell = &ret->cell[i * ret->nr_columns];

		cell[0] = name_cell(row[i], utf8, indent);
		for (size_t k = 0; k < nr; k++)
			cell[1 + k] = number_cell(row[i], from[k]);
		if (remarks)
			cell[1 + nr] = remark_cell(row[i], utf8);
		for (size_t k = 0; k < ret->nr_columns; k++)
			if (!cell[k])
				return -ENOMEM;
	}
	return 0;
}

int phases_table(const struct phases *p, size_t most, bool utf8, const char *indent, struct text_table *ret)
{
	size_t rows = MIN(p->nr, most);
	const struct phase **row = choose(p, rows);
	int r = -ENOMEM;

	*ret = (struct text_table){.id = "phases", .title = "Phases", .nr_rows = rows};
	ret->column = calloc(ARRAY_SIZE(shown) + 2, sizeof(*ret->column));
	ret->note = row ? note_of(p, row, rows) : NULL;
	if (row && ret->column && ret->note)
		r = fill_table(row, rows, utf8, indent, ret);
	free(row);
	return r;
}

void phases_table_free(struct text_table *t)
{
	for (size_t i = 0; t->cell && i < t->nr_rows * t->nr_columns; i++)
		free(t->cell[i]);
	free(t->cell);
	free(t->column);
	free(t->note);
	*t = (struct text_table){0};
}

/* ---- one phase ---- */

static char *value_text(char out[static UNITS_SIZE], const struct phase_column *c, double value)
{
	switch (c->unit) {
	case UNIT_HERTZ:
		return format_si(out, value, "Hz");
	case UNIT_BYTES:
		return format_look(out, LOOK_BYTES, value, 0);
	case UNIT_SECONDS:
		return format_look(out, LOOK_SECONDS, value, 0);
	case UNIT_JOULES:
		return format_look(out, LOOK_JOULES, value, 0);
	default:
		return format_look(out, c->whole ? LOOK_COUNT : LOOK_DIGITS, value, 0);
	}
}

struct phase_sheet {
	const struct summary *s;
	const struct phase *p;
};

static void put_cells(struct table_writer *w, const char *name, const char *value, const char *about)
{
	struct buf *help;

	cell_words(w, name);
	cell_words(w, value);
	help = cell_open(w);
	if (!help)
		return;
	buf_adds(help, about ? about : "");
	cell_close(w, true);
}

static void put_counter(struct table_writer *w, const struct summary_counter *c, double value)
{
	struct buf name, amount;

	buf_init(&name, 1000);
	buf_init(&amount, 1000);
	buf_addf(&name, "perf.%s", c->name);
	counter_amount(&amount, c, value);
	put_cells(w, (char *)name.data, (char *)amount.data, c->expression);
	buf_release(&name);
	buf_release(&amount);
}

/* Of what is known: the values, then what was counted. */
static void put_known(struct table_writer *w, const struct text_table *t, size_t row)
{
	const struct phase_sheet *of = t->of;
	char text[UNITS_SIZE];

	for (unsigned i = 0; i < NR_PHASE_VALUES; i++) {
		const struct phase_column *c = &phase_column[i];

		if (!isnan(of->p->value[i]) && !row--) {
			put_cells(w, c->name, value_text(text, c, of->p->value[i]), c->help);
			return;
		}
	}
	for (size_t i = 0; i < of->s->nr_counters; i++) {
		double value = counter_in_phase(of->s, &of->s->counter[i], of->p);

		if (!isnan(value) && !row--) {
			put_counter(w, &of->s->counter[i], value);
			return;
		}
	}
}

static size_t nr_known(const struct phase_sheet *of)
{
	size_t nr = 0;

	for (unsigned i = 0; i < NR_PHASE_VALUES; i++)
		nr += !isnan(of->p->value[i]);
	for (size_t i = 0; i < of->s->nr_counters; i++)
		nr += !isnan(counter_in_phase(of->s, &of->s->counter[i], of->p));
	return nr;
}

void phase_print(const struct summary *s, const struct phase *p, bool utf8, struct buf *out)
{
	struct text_column column[] = {
		{.title = "", .gap = 2}, {.title = "", .numbers = true, .gap = 2}, {.title = "", .gap = 2}};
	const struct phase_sheet of = {s, p};
	struct text_table t = {.column = column,
		.nr_columns = ARRAY_SIZE(column),
		.row = put_known,
		.of = &of,
		.nr_rows = nr_known(&of)};
	char from[UNITS_SIZE], to[UNITS_SIZE];
	struct table_writer w;
	struct buf text;

	buf_init(&text, 100000);
	phase_title(p, utf8, &text);
	buf_addf(&text, "   from %s to %s", format_moment(from, p->begin_s, p->end_s),
		format_moment(to, p->end_s, p->end_s));
	if (p->parent >= 0)
		buf_addf(&text, ", in %s", s->phases->phase[p->parent].name);
	buf_adds(&text, "\n");
	add_letters(out, (char *)text.data, utf8);
	buf_reset(&text);
	phase_remark(p, utf8, &text);
	if (text.len)
		buf_addf(out, "  (%s)\n", (char *)text.data);
	buf_release(&text);
	table_begin(&w, &t, &(struct text_style){.utf8 = utf8}, out);
	table_measure(&w);
	table_rows(&w);
	table_end(&w);
}

/* ---- JSON ---- */

static void json_number(struct json *j, const char *key, double value, bool whole)
{
	if (!isfinite(value))
		json_null(j, key);
	else if (whole && fabs(value) < 9e18)
		json_int(j, key, round_i64(value));
	else
		json_num(j, key, value);
}

static void json_counted(struct json *j, const struct summary *s, const struct phase *p)
{
	if (!s->phases->nr_events)
		return;
	json_object(j, "perf");
	for (size_t i = 0; i < s->nr_counters; i++) {
		const struct summary_counter *c = &s->counter[i];

		json_number(j, c->name, counter_in_phase(s, c, p), !c->expression && c->unit == UNIT_COUNT);
	}
	json_end_object(j);
}

static void json_about(struct json *j, const struct summary *s, const struct phase *p)
{
	json_number(j, "begin_s", p->begin_s, false);
	json_number(j, "end_s", p->end_s, false);
	json_bool(j, "ended", !p->cut);
	json_bool(j, "interpolated", p->interpolated);
	json_uint(j, "nodes", p->nodes);
	json_uint(j, "processes", p->senders);
	for (unsigned i = 0; i < NR_PHASE_VALUES; i++)
		json_number(j, phase_column[i].name, p->value[i], phase_column[i].whole);
	json_counted(j, s, p);
}

static void json_each(struct json *j, const struct phase *p)
{
	json_object(j, "each");
	json_number(j, "mean_s", p->mean_s, false);
	json_number(j, "sd_s", p->sd_s, false);
	json_number(j, "slowest", p->slowest ? p->slowest : NAN, true);
	json_number(j, "slower_percent", p->slowest ? 100 * p->slower : NAN, false);
	json_str(j, "slower_why", p->slower_why);
	json_end_object(j);
}

static void json_phase(struct json *j, const struct summary *s, size_t most, const struct phase *p);

static void json_repetitions(struct json *j, const struct summary *s, size_t most, size_t fold)
{
	const struct phases *p = s->phases;

	json_array(j, "occurrences");
	for (size_t i = 0; i < MIN(p->nr_repetitions, most); i++)
		if (p->repetition[i].fold == fold)
			json_phase(j, s, most, &p->repetition[i]);
	json_end_array(j);
}

static void json_phase(struct json *j, const struct summary *s, size_t most, const struct phase *p)
{
	const struct phases *all = s->phases;

	json_object(j, NULL);
	json_str(j, "name", p->name);
	json_str(j, "parent", p->parent < 0 ? NULL : all->phase[p->parent].name);
	json_uint(j, "depth", p->depth);
	if (p->number)
		json_uint(j, "number", p->number);
	else
		json_uint(j, "repetitions", p->count);
	json_about(j, s, p);
	if (!p->number) {
		json_each(j, p);
		json_repetitions(j, s, most, (size_t)(p - all->phase));
	}
	json_end_object(j);
}

void phase_json(const struct summary *s, const struct phase *p, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_phase(&j, s, SIZE_MAX, p);
	buf_addch(out, '\n');
}

void json_phases(struct json *j, const struct summary *s, size_t most)
{
	const struct phases *p = s->phases;

	if (!p)
		return;
	json_array(j, "phases");
	for (size_t i = 0; i < p->nr; i++)
		json_phase(j, s, most, &p->phase[i]);
	json_end_array(j);
	json_uint(j, "phases_left_out", p->left_out + p->nr_repetitions - MIN(p->nr_repetitions, most));
	json_uint(j, "phases_ignored", p->ignored);
}
