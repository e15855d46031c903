/* A recording behind the tables: which of its sets and metrics give which columns. */
#include "query/tables_internal.h"

#include "base/owned.h"

#include <string.h>

static bool is_of_table(const struct data_table_own *fr, const struct walk *s, uint32_t set)
{
	return !strcmp(s->schema->set[set].domain_name, fr->face.name);
}

static int bind_sets(struct data_table_own *fr, const struct walk *s)
{
	fr->set = calloc(MAX(s->nr_sets, 1u), sizeof(*fr->set));
	if (!fr->set)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr_sets; i++) {
		const struct split_query q = {.per = fr->by_group ? PER_GROUP : PER_ALL};

		if (!is_of_table(fr, s, i))
			continue;
		fr->set[fr->nr_sets] = (struct data_table_set){.set = i};
		if (fr->folded && split_init(&fr->set[fr->nr_sets].split, &q, i) < 0)
			return -ENOMEM;
		fr->nr_sets++;
	}
	return 0;
}

static uint32_t place_of(const struct data_table_own *fr, uint32_t set)
{
	for (uint32_t i = 0; i < fr->nr_sets; i++)
		if (fr->set[i].set == set)
			return i;
	return NO_LINE;
}

static int bind_cell(struct data_table_own *fr, uint32_t field, const struct walk *s)
{
	const struct column_own *c = &fr->own[field];
	bool raw = fr->field[field].scale != 1 || (fr->field[field].type == FIELD_INT && !c->counts);
	const struct schema_metric *m;
	struct data_table_set *fs;
	struct cell_use *more;
	uint32_t set, col;

	if (!schema_find(s->schema, c->metric, &set, &col) || place_of(fr, set) == NO_LINE)
		return 0;
	fs = &fr->set[place_of(fr, set)];
	m = &s->schema->set[set].metric[col];
	more = ARRAY_ADD(fs->cell, fs->nr_cells);
	if (!more)
		return -ENOMEM;
	fs->cols |= UINT64_C(1) << col;
	fs->of_col[col] = (uint8_t)(fs->nr_cells - 1);
	*more = (struct cell_use){.field = field,
		.col = col,
		.scaling = raw && !m->real ? scaling_of(1) : metric_scaling(m),
		.factor = raw || !c->counts ? 1 : (int64_t)m->scale,
		.integer = fr->field[field].type == FIELD_INT};
	return 0;
}

/* What this recording cannot give stays missing. */
static int bind_column(struct reading *f, struct data_table_own *fr, uint32_t field)
{
	struct column_own *c = &fr->own[field];
	const char *domain;
	uint32_t set, col;
	int r;

	if (c->rate != schema_find(f->walk->schema, c->metric, &set, &col))
		return 0;
	c->bound = malloc(sizeof(*c->bound));
	if (!c->bound)
		return -ENOMEM;
	r = column_try(c->bound, f->walk, c->metric, c->rate);
	domain = r < 0 ? NULL : data_table_domain_of(f->walk, c->bound);
	if (!domain || strcmp(domain, fr->face.name) != 0 ||
		(c->bound->at == AT_INSTANCE) != (c->source == SOURCE_ROWS)) {
		free(c->bound);
		c->bound = NULL;
		return r == -ENOMEM ? r : 0;
	}
	if (c->source == SOURCE_ROWS) {
		rows_init(&c->rows, c->bound);
		c->place = place_of(fr, c->bound->set);
	}
	return 0;
}

/* One for each group, those that may still come among them; or one for all. */
static int bind_whole(struct reading *f, const struct data_table_own *fr, struct column_own *c)
{
	const struct filter none = {.of_user = true, .uid = INT64_MIN}, all = {0};
	bool groups = fr->domain == DOMAIN_GROUP;

	c->nr_wholes = groups ? NO_GROUP + 1 : 1;
	c->whole = calloc(c->nr_wholes, sizeof(*c->whole));
	if (!c->whole)
		return -ENOMEM;
	return groups ? whole_init(&c->whole[NO_GROUP], c->bound, &none, &f->sums)
		      : whole_init(c->whole, c->bound, &all, &f->sums);
}

static int bind_table(struct reading *f, struct data_table_own *fr)
{
	int r = bind_sets(fr, f->walk);

	for (uint32_t i = 0; i < fr->nr && r >= 0; i++) {
		struct column_own *c = &fr->own[i];

		if (c->source == SOURCE_CELL)
			r = bind_cell(fr, i, f->walk);
		else if (c->source == SOURCE_ROWS || c->source == SOURCE_WHOLE)
			r = bind_column(f, fr, i);
		if (r >= 0 && c->source == SOURCE_WHOLE && c->bound)
			r = bind_whole(f, fr, c);
	}
	if (r >= 0)
		r = dictionary_put(fr->own[KEY_HOST].texts, f->of->host[f->recording],
			strlen(f->of->host[f->recording]), &fr->now.host);
	fr->layout++;
	fr->begun = fr->waits = false;
	fr->now_ns = 0;
	fr->now.nr = 0;
	return r;
}

static int number_process(struct walk_observer *o, const struct store_record *record)
{
	struct reading *f = ((struct numbering *)o)->of;

	if (f->walk->process_set < 0 || record->set != (uint32_t)f->walk->process_set)
		return 0;
	return process_number_record(&f->numbers, record);
}

/* Numbers of its processes; and its groups from the start, as in a series of one of them: a rate is then
 * known from the tick on at which a process comes. Where the table of processes need not be read before, they
 * are numbered as they come, as it numbers them. */
static int bind_processes(struct reading *f)
{
	const struct process_table *t = f->of->of_run.before ? f->of->processes : NULL;
	int r = 0;

	f->numbers = (struct process_numbers){.first = (uint32_t)f->numbered, .keeps_all = true};
	if (f->of->of_run.processes && !t) {
		f->numbering = (struct numbering){.observer.record = number_process, .of = f};
		walk_observe(f->walk, &f->numbering.observer);
	}

	for (; t && f->numbered < t->nr && t->row[f->numbered].node <= f->recording && r >= 0;
		f->numbered++) {
		const struct process_row *row = &t->row[f->numbered];
		uint64_t mask;

		if (row->node < f->recording)
			continue;
		r = row->id ? idmap_put(&f->numbers.all, row->id, (uint32_t)f->numbered) : 0;
		if (r >= 0)
			r = groups_mask(&f->walk->group,
				&(struct pair){.value = row->groups, .len = row->groups_len}, &mask);
	}
	return r;
}

static int list_computed(struct reading *f)
{
	size_t most = 0;

	for (size_t i = 0; i < f->nr; i++)
		most += f->table[i]->nr;
	f->computed = calloc(most + 1, sizeof(*f->computed));
	f->news = calloc(most + 1, sizeof(*f->news));
	f->moved_cols = calloc(f->walk->nr_sets + 1, sizeof(*f->moved_cols));
	if (!f->computed || !f->news || !f->moved_cols)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr; i++) {
		struct data_table_own *fr = f->table[i];

		fr->computed = f->nr_computed;
		for (uint32_t j = 0; j < fr->nr; j++)
			if (fr->own[j].source == SOURCE_ROWS && fr->own[j].bound)
				f->computed[f->nr_computed++] = (struct computed){.column = &fr->own[j],
					.field = j,
					.set = fr->own[j].bound->set,
					.cols = fr->own[j].bound->cols,
					.awake = true};
		fr->nr_computed = f->nr_computed - fr->computed;
	}
	return 0;
}

int reading_bind(struct reading *f)
{
	int r = bind_processes(f);

	for (size_t i = 0; i < f->nr && r >= 0; i++)
		r = bind_table(f, f->table[i]);
	return r < 0 ? r : list_computed(f);
}

void reading_unbind(struct reading *f)
{
	for (size_t i = 0; i < f->nr; i++) {
		struct data_table_own *fr = f->table[i];

		lines_settle(fr);
		for (size_t j = 0; j < fr->nr; j++) {
			struct column_own *c = &fr->own[j];

			if (c->bound && c->source == SOURCE_ROWS)
				rows_release(&c->rows);
			free(c->bound);
			free(c->whole);
			c->bound = NULL;
			c->whole = NULL;
			c->nr_wholes = 0;
		}
		for (size_t j = 0; j < fr->nr_sets; j++) {
			free(fr->set[j].text);
			free(fr->set[j].line);
			free(fr->set[j].anew);
			free(fr->set[j].cell);
			split_release(&fr->set[j].split);
		}
		free(fr->set);
		fr->set = NULL;
		fr->nr_sets = fr->nr_computed = fr->nr_news = 0;
	}
	free(f->computed);
	free(f->news);
	free(f->moved_cols);
	f->computed = NULL;
	f->news = NULL;
	f->moved_cols = NULL;
	f->nr_computed = f->nr_news = 0;
	f->nr_groups = 0;
	sums_release(&f->sums);
	process_numbers_release(&f->numbers);
	f->walk = walk_close(f->walk);
}
