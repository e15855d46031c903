/* The lines of a table: which instances they are, and their values at this tick.
 *
 * Sets of one domain stand in one line where their instances have the same name (cpu0 of the times, of the
 * frequencies, of throttling); of the node each set has one instance, whatever it is called. Processes are
 * never joined by their names. */
#include "query/tables_internal.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

int data_table_line_new(struct data_table_own *fr, uint32_t identity, int group, uint32_t *ret)
{
	uint32_t line = fr->now.nr;

	if (line == fr->line_cap) {
		uint32_t cap = MAX(line + 16, line * 2);

		if (ARRAY_RESIZE(fr->line, cap) < 0 || data_table_lines_reserve(fr, &fr->now, cap) < 0)
			return -ENOMEM;
		fr->line_cap = cap;
	}
	fr->line[line] = (struct line_face){.identity = identity, .group = group};
	fr->now.nr++;
	*ret = line;
	return 0;
}

void data_table_lines_clear(struct data_table_own *fr)
{
	lines_settle(fr);
	for (size_t i = KEY_INSTANCE; fr->now.cap && i < fr->nr; i++)
		memset(fr->now.col[i].known, 0, BITS_SIZE(fr->now.cap));
	fr->now.nr = 0;
}

static void line_text(struct data_table_own *fr, uint32_t line, uint32_t text)
{
	fr->now.col[KEY_INSTANCE].text[line] = text;
	bit_put(fr->now.col[KEY_INSTANCE].known, line, true);
}

int data_table_line_name(struct data_table_own *fr, uint32_t line, const char *name, size_t len)
{
	uint32_t text;
	int r = dictionary_put(fr->own[KEY_INSTANCE].texts, name, len, &text);

	if (r >= 0)
		line_text(fr, line, text);
	return r;
}

/* ---- the rows ---- */

static int set_reserve(struct data_table_set *fs, uint32_t nr)
{
	if (nr <= fs->cap)
		return 0;
	nr = MAX(nr, fs->cap * 2);
	if (ARRAY_RESIZE(fs->text, nr) < 0 || ARRAY_RESIZE(fs->line, nr) < 0 ||
		ARRAY_RESIZE(fs->anew, nr) < 0)
		return -ENOMEM;
	for (; fs->cap < nr; fs->cap++)
		fs->line[fs->cap] = NO_LINE;
	return 0;
}

/* Names of the rows that have another instance than before. */
static int names_take(struct reading *f, struct data_table_own *fr, struct data_table_set *fs)
{
	const struct walk_set *set = &f->walk->set[fs->set];
	uint32_t nr = fr->begun ? set->nr_moved : set->nr_rows;
	int r = set_reserve(fs, set->cap);

	for (uint32_t i = 0; i < nr && r >= 0; i++) {
		uint32_t row = fr->begun ? set->moved[i] : i;
		const struct occupant *in = walk_occupant(f->walk, fs->set, row, set->id[row]);

		if (set->id[row] != ROW_FREE && (!fr->begun || set->is_moved[row] == MOVED_OCCUPANT))
			r = dictionary_put(fr->own[KEY_INSTANCE].texts, in ? in->name : "",
				in ? in->name_len : 0, &fs->text[row]);
	}
	return r;
}

/* ---- lines ---- */

#define DOUBLE_NAME (1u << 31) /* several of one set have it: they are told apart by their ids */

/* The line of that name in which the set has no row yet; NO_LINE: there is none. */
static int line_of_text(struct data_table_own *fr, uint32_t text, uint32_t place, struct text_line **ret)
{
	struct text_line *more = array_reach(fr->of_text, &fr->nr_of_text, text, sizeof(*more));

	if (!more)
		return -ENOMEM;
	fr->of_text = more;
	*ret = &fr->of_text[text];
	if ((*ret)->layout != fr->layout)
		**ret = (struct text_line){.line = NO_LINE, .layout = fr->layout, .set = place};
	return 0;
}

static void put_process_keys(
	struct reading *f, struct data_table_lines *now, uint32_t line, const struct occupant *in)
{
	uint32_t number = in ? process_number(&f->numbers, in->process) : IDMAP_NONE;

	now->col[KEY_PID].integer[line] = in ? in->pid : 0;
	bit_put(now->col[KEY_PID].known, line, in && in->pid);
	now->col[KEY_PROCESS].integer[line] = number == IDMAP_NONE ? -1 : (int64_t)number;
	bit_put(now->col[KEY_PROCESS].known, line, number != IDMAP_NONE);
}

static int line_join(struct reading *f, struct data_table_own *fr, struct data_table_set *fs, uint32_t row)
{
	uint32_t place = (uint32_t)(fs - fr->set), identity = f->walk->set[fs->set].id[row];
	const struct occupant *in = walk_occupant(f->walk, fs->set, row, identity);
	int group = in && in->groups ? __builtin_ctzll(in->groups) : -1;
	struct text_line *same = NULL;
	int r = fr->of_processes ? 0 : line_of_text(fr, fs->text[row], place, &same);

	if (r < 0)
		return r;
	if (same && same->line != NO_LINE && same->set != place) {
		same->set = place;
		fs->line[row] = same->line;
		return 0;
	}
	if (same)
		identity = same->line == NO_LINE ? fs->text[row] + 1 : DOUBLE_NAME | identity;
	r = data_table_line_new(fr, identity, group, &fs->line[row]);
	if (r < 0)
		return r;
	if (same && same->line == NO_LINE)
		same->line = fs->line[row];
	line_text(fr, fs->line[row], fs->text[row]);
	if (fr->of_processes)
		put_process_keys(f, &fr->now, fs->line[row], in);
	return 0;
}

/* Lines that are there though no row is: the node's and the tree's, and those of groups where they are not
 * recorded. */
static int lines_begin(struct reading *f, struct data_table_own *fr)
{
	const char *name = fr->domain == DOMAIN_NODE ? "node" : "job";
	const struct groups *g = &f->walk->group;
	uint32_t line;
	int r = 0;

	if (fr->domain == DOMAIN_NODE || fr->domain == DOMAIN_TREE) {
		r = data_table_line_new(fr, 1, -1, &line);
		return r < 0 ? r : data_table_line_name(fr, line, name, strlen(name));
	}
	for (unsigned i = 0; fr->late && !fr->nr_sets && i < g->nr && r >= 0; i++) {
		r = data_table_line_new(fr, i + 1, (int)i, &line);
		if (r >= 0)
			r = data_table_line_name(fr, line, g->item[i].name, g->item[i].len);
	}
	return r;
}

/* Lines of processes are their rows in order, so that many a line stays when a process comes or leaves. */
static bool lines_stay(const struct data_table_own *fr)
{
	return fr->begun && fr->of_processes && fr->nr_sets == 1;
}

static int set_layout(struct reading *f, struct data_table_own *fr, struct data_table_set *fs)
{
	bool first = fr->domain == DOMAIN_NODE || fr->domain == DOMAIN_TREE, stay = lines_stay(fr);
	const struct walk_set *set = &f->walk->set[fs->set];
	int r = names_take(f, fr, fs);

	fs->nr_anew = 0;
	for (uint32_t row = 0; row < fs->cap && r >= 0; row++) {
		uint32_t had = fs->line[row];

		fs->line[row] = NO_LINE;
		if (row >= set->nr_rows || set->id[row] == ROW_FREE)
			continue;
		if (stay && had == fr->now.nr && set->is_moved[row] != MOVED_OCCUPANT) {
			fs->line[row] = fr->now.nr++;
			continue;
		}
		fs->anew[fs->nr_anew++] = row;
		if (first)
			fs->line[row] = 0;
		else
			r = line_join(f, fr, fs, row);
		first = false;
	}
	return r;
}

static int relayout(struct reading *f, struct data_table_own *fr)
{
	int r;

	fr->layout++;
	if (lines_stay(fr)) { /* what is known of others is put anew, whatever it is */
		lines_settle(fr);
		fr->now.nr = 0;
	} else {
		data_table_lines_clear(fr);
	}
	r = lines_begin(f, fr);
	for (size_t i = 0; i < fr->nr_sets && r >= 0; i++)
		r = set_layout(f, fr, &fr->set[i]);
	return r;
}

/* ---- values ---- */

/* Those of the columns in the mask. */
static void take_cells(struct data_table_own *fr, const struct data_table_set *fs, struct table *t,
	uint32_t row, uint64_t cols)
{
	const int64_t *cell = table_row(t, row);
	uint64_t valid = t->valid[row];
	uint32_t line = fs->line[row];

	if (line == NO_LINE)
		return;
	for (cols &= fs->cols; cols; cols &= cols - 1) {
		const struct cell_use *use = &fs->cell[fs->of_col[__builtin_ctzll(cols)]];
		struct vector *v = now_column(fr, use->field);
		bool known = valid >> use->col & 1;

		if (use->integer) /* what no longer fits into 64 bits is not known */
			known &= !__builtin_mul_overflow(cell[use->col], use->factor, &v->integer[line]);
		else
			known &= isfinite(v->real[line] = cell_in_unit(use->scaling, cell[use->col]));
		bit_put(v->known, line, known);
	}
}

static void take_rows(struct data_table_own *fr, const struct computed *c, const uint32_t *row, uint32_t nr)
{
	const uint32_t *line = fr->set[c->column->place].line;

	struct vector *v = NULL;

	for (uint32_t i = 0; i < nr; i++) {
		if (line[row[i]] == NO_LINE) /* without a line there may be no columns yet */
			continue;
		v = v ? v : now_column(fr, c->field);
		vector_put_real(v, line[row[i]], c->column->rows.value[row[i]]);
	}
}

static bool is_occupants_changed(const struct reading *f, const struct data_table_own *fr)
{
	for (size_t i = 0; i < fr->nr_sets; i++)
		if (f->walk->set[fr->set[i].set].occupants_changed)
			return true;
	return !fr->begun || (fr->late && !fr->nr_sets);
}

int data_table_update(struct reading *f, struct data_table_own *fr)
{
	bool anew = is_occupants_changed(f, fr), moved = !anew || lines_stay(fr);
	int r = anew ? relayout(f, fr) : 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < fr->nr_sets; i++) {
		const struct data_table_set *fs = &fr->set[i];
		const struct walk_set *set = &f->walk->set[fs->set];
		struct table *t = walk_table(f->walk, fs->set);

		for (uint32_t j = 0; anew && j < fs->nr_anew; j++)
			take_cells(fr, fs, t, fs->anew[j], UINT64_MAX);
		for (uint32_t j = 0; moved && j < set->nr_moved; j++)
			take_cells(fr, fs, t, set->moved[j], set->cols[set->moved[j]]);
	}
	for (size_t i = 0; anew && i < fr->nr_computed; i++) {
		const struct computed *c = &f->computed[fr->computed + i];

		take_rows(fr, c, fr->set[c->column->place].anew, fr->set[c->column->place].nr_anew);
	}
	for (size_t i = 0; moved && i < fr->nr_news; i++) {
		const struct computed *c = &f->computed[f->news[fr->news + i]];

		take_rows(fr, c, c->column->rows.news, c->column->rows.nr_news);
	}
	fr->begun = true;
	return 0;
}
