/* Instances folded to one line for the node, or to one for each group: by the metric's own fold, as a series
 * is. What stands apart is left out, and the source's own total is taken where there is one. Counts are added
 * up as integers, so that they stay exact. */
#include "query/tables_internal.h"

#include <math.h>
#include <string.h>

struct fold_exact {
	int64_t sum, max, total;
	uint32_t nr, alive;
	bool has_total, total_known, too_large;
};

struct folding {
	struct fold real[GROUPS_MOST];
	struct fold_exact exact[GROUPS_MOST];
	uint32_t nr;
};

static void exact_add(struct fold_exact *f, int64_t value, bool known, bool total)
{
	f->alive++;
	if (total) {
		f->has_total = true;
		f->total = value;
		f->total_known = known;
	}
	if (!known)
		return;
	f->too_large |= __builtin_add_overflow(f->sum, value, &f->sum);
	f->max = f->nr ? MAX(f->max, value) : value;
	f->nr++;
}

static bool exact_end(const struct fold_exact *f, enum metric_fold fold, int64_t *ret)
{
	*ret = f->has_total ? f->total : fold == FOLD_SUM ? f->sum : f->max;
	if (f->has_total)
		return f->total_known;
	if (!f->nr) /* as fold_end(): no instance adds up to 0 */
		return !f->alive && fold == FOLD_SUM;
	return fold != FOLD_SUM || !f->too_large;
}

static void fold_cell(
	struct reading *f, const struct data_table_set *fs, const struct cell_use *use, struct folding *at)
{
	const struct walk_set *set = &f->walk->set[fs->set];
	struct table *t = walk_table(f->walk, fs->set);

	memset(at->real, 0, at->nr * sizeof(at->real[0]));
	memset(at->exact, 0, at->nr * sizeof(at->exact[0]));
	for (uint32_t row = 0; row < set->nr_rows; row++) {
		bool known = t->valid[row] >> use->col & 1, total = fs->split.total == row;
		int64_t cell = table_row(t, row)[use->col], whole = 0;

		if (use->integer && __builtin_mul_overflow(cell, use->factor, &whole))
			known = false;
		for (uint64_t m = split_lines(&fs->split, row); m; m &= m - 1) {
			unsigned line = (unsigned)__builtin_ctzll(m);

			if (use->integer)
				exact_add(&at->exact[line], whole, known, total);
			else
				fold_add(&at->real[line], known ? cell_in_unit(use->scaling, cell) : NAN,
					total);
		}
	}
}

/* Where no instance has appeared yet, the value is missing, as in series. */
static void fold_put(
	struct data_table_own *fr, struct data_table_set *fs, size_t field, const struct folding *at)
{
	struct vector *v = now_column(fr, field);
	enum metric_fold fold = fr->own[field].fold;
	bool integer = fr->field[field].type == FIELD_INT;

	for (uint32_t line = 0; line < at->nr; line++) {
		fs->seen |= (integer ? at->exact[line].alive : at->real[line].alive) > 0;
		if (!fs->seen && !fr->by_group)
			bit_put(v->known, line, false);
		else if (integer)
			bit_put(v->known, line, exact_end(&at->exact[line], fold, &v->integer[line]));
		else
			vector_put_real(v, line, fold_end(&at->real[line], fold));
	}
}

/* Lines stay: groups only become more. */
static int lines_make(struct reading *f, struct data_table_own *fr, uint32_t nr)
{
	int r = 0;

	if (!fr->begun)
		data_table_lines_clear(fr);
	else if (fr->now.nr < nr)
		lines_settle(fr);
	while (fr->now.nr < nr && r >= 0) {
		uint32_t line;

		r = data_table_line_new(fr, fr->now.nr + 1, (int)fr->now.nr, &line);
		if (r >= 0 && fr->by_group)
			r = data_table_line_name(
				fr, line, f->walk->group.item[line].name, f->walk->group.item[line].len);
		fr->begun = false;
		fr->layout++;
	}
	return r;
}

int data_table_fold(struct reading *f, struct data_table_own *fr)
{
	uint32_t nr = fr->by_group ? f->walk->group.nr : 1;
	struct folding at = {.nr = nr};
	int r = lines_make(f, fr, nr);

	for (size_t i = 0; i < fr->nr_sets && r >= 0; i++)
		r = split_tick(&fr->set[i].split, f->walk);
	if (r < 0 || !nr) /* no group yet: no line, and no memory for one */
		return r;
	for (size_t i = 0; i < fr->nr_sets; i++) {
		struct data_table_set *fs = &fr->set[i];
		const struct walk_set *set = &f->walk->set[fs->set];

		for (size_t j = 0;
			j < fs->nr_cells && (!fr->begun || set->nr_moved || set->occupants_changed); j++) {
			fold_cell(f, fs, &fs->cell[j], &at);
			fold_put(fr, fs, fs->cell[j].field, &at);
		}
	}
	for (size_t i = 0; i < fr->nr; i++) {
		const struct column_own *c = &fr->own[i];

		if (c->source != SOURCE_ROWS || !c->bound || (fr->begun && !c->rows.changed))
			continue;
		memset(at.real, 0, nr * sizeof(at.real[0]));
		split_fold(&fr->set[c->place].split, f->walk, c->rows.value, at.real);
		fold_put(fr, &fr->set[c->place], i, &at);
	}
	fr->begun = true;
	return 0;
}
