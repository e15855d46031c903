/* A recording as points: see feed.h.
 *
 * Which column of which table is which series is found out when the tables are opened; of each row only its
 * instance is looked up then. When the job tells a number of a new name the tables are opened again behind
 * what was given; the series stay. */
#include "push/feed.h"

#include "base/idmap.h"
#include "base/owned.h"
#include "base/str.h"
#include "query/sidecar.h"

#include <math.h>
#include <string.h>

#define WORDS_MOST 128

struct feed_column {
	uint32_t field;
	bool greatest;
	const struct push_name *as; /* NULL: its own name */
};

struct feed_line {	   /* an instance in a table */
	uint32_t instance; /* number of its text */
	int64_t pid;
	struct push_series **series; /* by column */
};

struct feed_table {
	const struct data_table *face;
	char *key; /* of its position */
	bool folded;
	uint32_t time, elapsed, host, instance, pid; /* fields; NO_FIELD */
	struct feed_column *column;
	size_t nr_columns;
	struct feed_line *line;
	size_t nr_lines;
	struct idmap of; /* hash of instance and PID to line */
};

#define NO_FIELD UINT32_MAX

struct push_feed {
	struct feed_options options;
	char *path;
	const char *paths[1];
	unsigned node;
	struct run *run;
	struct tables *tables;
	int64_t start_ns, interval_ns;
	struct feed_table *table;
	size_t nr_tables;
	/* Of all tables that were ever open: */
	struct push_series **series;
	size_t nr_series;
	struct idmap of_series;
	struct given { /* by key of a table */
		char *key;
		int64_t time_ns; /* of the last row that was given */
		int64_t skip_ns; /* rows up to there were given by tables that are closed, or sent before */
	} * given;
	size_t nr_given;
	char *host;
	/* The batch at hand. */
	struct data_table_batch batch;
	bool has_batch;
	uint32_t row;
	struct push_point *point;
	size_t cap_points;
};

/* ---- which columns ---- */

static const struct push_name *name_of(const struct push_name *names, const struct push_name *after,
	const char *table, const char *metric, bool folded)
{
	for (const struct push_name *n = after ? after + 1 : names; n->name; n++)
		if (n->folded == folded && !strcmp(n->table, table) &&
			(!strcmp(n->metric, metric) || !strcmp(n->metric, table)))
			return n;
	return NULL;
}

/* What people want the greatest of, where they chose the metrics themselves. */
static bool is_peaky(const struct field *f)
{
	size_t n = strlen(f->name);

	if (f->kind != KIND_GAUGE)
		return false;
	return (f->unit == UNIT_BYTES && !f->per_second) || f->unit == UNIT_WATTS ||
		(n > 6 && !strcmp(f->name + n - 6, ".cores"));
}

static bool wants_greatest(const void *arg, const struct field *field)
{
	const struct push_feed *f = arg;

	if (!f->options.names)
		return is_peaky(field);
	for (const struct push_name *n = f->options.names; n->name; n++)
		if (n->greatest && !strcmp(n->metric, field->name))
			return true;
	return false;
}

static bool is_greatest_of(const struct field *f, const struct field *before)
{
	size_t n = strlen(before->name);

	return f->resample && !strcmp(f->resample, "max") && !strncmp(f->name, before->name, n) &&
		!strcmp(f->name + n, ".max");
}

static bool is_rate_of(const char *counter, const char *name)
{
	size_t n = strlen(counter);

	return !strncmp(name, counter, n) && !strcmp(name + n, ".rate");
}

static bool has_rate(const struct data_table *t, const struct field *counter)
{
	for (size_t i = 0; i < t->nr_fields; i++)
		if (is_rate_of(counter->name, t->field[i].name))
			return true;
	return false;
}

static int add_column(struct feed_table *t, size_t field, bool greatest, const struct push_name *as)
{
	struct feed_column *c = ARRAY_ADD(t->column, t->nr_columns);

	if (!c)
		return -ENOMEM;
	*c = (struct feed_column){.field = (uint32_t)field, .greatest = greatest, .as = as};
	return 0;
}

/* Counters: as they are, or as growth per second. */
static bool is_wanted_kind(const struct push_feed *f, const struct data_table *t, const struct field *field)
{
	bool counts = field->kind == KIND_COUNTER;

	if (f->options.rates)
		return !counts || !has_rate(t, field);
	for (size_t i = 0; !counts && i < t->nr_fields; i++)
		if (is_rate_of(t->field[i].name, field->name))
			return false;
	return true;
}

static int choose_field(struct push_feed *f, struct feed_table *t, size_t i)
{
	const struct field *field = &t->face->field[i], *of = field;
	bool greatest = i && is_greatest_of(field, field - 1);
	int r = 0;

	if (!field->is_metric || (field->type != FIELD_INT && field->type != FIELD_REAL))
		return 0;
	if (greatest)
		of = field - 1;
	if (!f->options.names)
		return is_wanted_kind(f, t->face, of) ? add_column(t, i, greatest, NULL) : 0;
	for (const struct push_name *n = NULL;
		r >= 0 && (n = name_of(f->options.names, n, t->face->name, of->name, t->folded));)
		if (n->usual ? is_wanted_kind(f, t->face, of) && (!greatest || n->greatest)
			     : n->greatest == (greatest || (n->greatest && !f->options.every_ns)))
			r = add_column(t, i, greatest, n->usual ? NULL : n);
	return r;
}

static uint32_t key_field(const struct data_table *t, const char *name)
{
	for (size_t i = 0; i < t->nr_fields; i++)
		if (!t->field[i].is_metric && !strcmp(t->field[i].name, name))
			return (uint32_t)i;
	return NO_FIELD;
}

static int add_table(struct push_feed *f, struct feed_table *t, const struct data_table *face, bool folded)
{
	int r = 0;

	*t = (struct feed_table){.face = face,
		.folded = folded,
		.time = key_field(face, "time"),
		.elapsed = key_field(face, "elapsed"),
		.host = key_field(face, "host"),
		.instance = key_field(face, "instance"),
		.pid = key_field(face, "pid")};
	if (asprintf(&t->key, "%s%s", face->name, folded ? "/node" : "") < 0) {
		t->key = NULL;
		return -ENOMEM;
	}
	for (size_t i = 0; i < face->nr_fields && r >= 0; i++)
		r = choose_field(f, t, i);
	return r;
}

/* ---- opening ---- */

static size_t add_word(const char **list, size_t nr, const char *word)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i], word))
			return nr;
	if (nr < WORDS_MOST)
		list[nr++] = word;
	return nr;
}

/* It is there before the first row. NULL: no memory. */
static struct given *given_of(struct push_feed *f, const char *key)
{
	struct given *g;

	for (size_t i = 0; i < f->nr_given; i++)
		if (!strcmp(f->given[i].key, key))
			return &f->given[i];
	g = ARRAY_ADD(f->given, f->nr_given);
	if (!g || !(g->key = strdup(key))) {
		f->nr_given -= g != NULL;
		return NULL;
	}
	g->time_ns = g->skip_ns =
		f->options.position ? f->options.position(f->options.position_arg, key) : INT64_MIN;
	return g;
}

/* Up to where rows of all tables were given: there the tables may begin. */
static int64_t given_from(const struct push_feed *f)
{
	int64_t from = f->nr_given ? INT64_MAX : INT64_MIN;

	for (size_t i = 0; i < f->nr_given; i++)
		from = MIN(from, f->given[i].time_ns);
	return from;
}

static int open_tables(struct push_feed *f, struct buf *reterr)
{
	const struct push_name *names = f->options.names;
	const char *domain[WORDS_MOST], *metric[WORDS_MOST];
	struct table_fold fold[WORDS_MOST];
	int64_t from = given_from(f);
	struct tables_options o = {.from_s = f->options.from_s,
		.to_s = f->options.to_s,
		.domain = domain,
		.metric = metric,
		.fold = fold,
		.fold_any = true,
		.if_there = names != NULL,
		.per = f->options.per,
		.every_ns = f->options.every_ns,
		.greatest = wants_greatest,
		.greatest_arg = f,
		.date_last = true,
		.follow = f->options.follow};
	int r;

	for (const struct push_name *n = names; n && n->name; n++) {
		if (n->folded && o.nr_folds < WORDS_MOST)
			fold[o.nr_folds++] = (struct table_fold){.table = n->table, .metric = n->metric};
		if (n->folded)
			continue;
		o.nr_domains = add_word(domain, o.nr_domains, n->table);
		o.nr_metrics = add_word(metric, o.nr_metrics, n->metric);
	}
	if (names && !o.nr_domains)
		o.nr_domains = add_word(domain, 0, "-"); /* there is none: only what is folded */
	if (!names) {
		o.metric = f->options.metric;
		o.nr_metrics = f->options.nr_metrics;
	}
	if (from > f->start_ns)
		o.from_s = fmax(isnan(o.from_s) ? 0 : o.from_s, (double)(from - f->start_ns) / 1e9);
	r = tables_open(f->run, &o, &f->tables, reterr);
	return r;
}

static int list_tables(struct push_feed *f)
{
	const struct data_table *face, *folded;
	size_t nr = tables_list(f->tables, &face), nr_folded = tables_folded(f->tables, &folded);
	int r = 0;

	f->table = calloc(nr + nr_folded + 1, sizeof(*f->table));
	if (!f->table)
		return -ENOMEM;
	for (size_t i = 0; i < nr + nr_folded && r >= 0; i++) {
		r = add_table(f, &f->table[i], i < nr ? &face[i] : &folded[i - nr], i >= nr);
		f->nr_tables++;
	}
	return r;
}

static void forget_tables(struct push_feed *f)
{
	for (size_t i = 0; i < f->nr_tables; i++) {
		struct feed_table *t = &f->table[i];

		for (size_t j = 0; j < t->nr_lines; j++)
			free(t->line[j].series);
		free(t->line);
		free(t->column);
		free(t->key);
		idmap_release(&t->of);
	}
	free(f->table);
	f->table = NULL;
	f->nr_tables = 0;
	f->tables = tables_close(f->tables);
	f->has_batch = false;
}

static int reopen(struct push_feed *f, struct buf *reterr)
{
	int r;

	forget_tables(f);
	for (size_t i = 0; i < f->nr_given; i++)
		f->given[i].skip_ns = f->given[i].time_ns;
	r = open_tables(f, reterr);
	return r < 0 ? r : list_tables(f);
}

/* Which tables there are is known when they are open, and what was sent of them before. */
static int open_behind(struct push_feed *f, struct buf *reterr)
{
	int r = reopen(f, reterr);

	for (size_t i = 0; i < f->nr_tables && r >= 0; i++)
		if (f->table[i].nr_columns && !given_of(f, f->table[i].key))
			r = -ENOMEM;
	return r >= 0 && given_from(f) > f->start_ns ? reopen(f, reterr) : r;
}

static int read_about(struct push_feed *f, const char *path)
{
	struct meta meta = {0};
	int r = sidecar_meta(path, &meta, NULL);

	if (r >= 0) {
		meta_num(&meta, "start_wall_ns", &f->start_ns);
		meta_num(&meta, "interval_ns", &f->interval_ns);
		f->host = strdup(meta_text(&meta, "host"));
		r = f->host ? 0 : -ENOMEM;
	}
	meta_release(&meta);
	return r;
}

int feed_open(const char *path, unsigned node, const struct feed_options *o, struct push_feed **ret,
	struct buf *reterr)
{
	struct push_feed *f = calloc(1, sizeof(*f));
	int r = f && (f->path = strdup(path)) ? 0 : -ENOMEM;

	if (r >= 0) {
		f->options = *o;
		f->node = node;
		f->paths[0] = f->path;
		r = read_about(f, path);
	}
	if (r >= 0)
		r = run_open(f->paths, 1, &f->run, reterr);
	if (r >= 0)
		r = open_behind(f, reterr);
	if (r < 0) {
		if (!reterr->len && r != -EAGAIN)
			buf_addf(reterr, "%s: %s", path, strerror(-r));
		feed_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

static void series_free(struct push_feed *f, struct push_series *s)
{
	if (s->own && f->options.forget)
		f->options.forget(s->own);
	else
		free(s->own);
	free((char *)s->name);
	free((char *)s->metric);
	free((char *)s->table);
	free((char *)s->help);
	free((char *)s->host);
	free((char *)s->instance);
	free(s);
}

struct push_feed *feed_close(struct push_feed *f)
{
	if (!f)
		return NULL;
	forget_tables(f);
	for (size_t i = 0; i < f->nr_series; i++)
		series_free(f, f->series[i]);
	for (size_t i = 0; i < f->nr_given; i++)
		free(f->given[i].key);
	free(f->given);
	free(f->series);
	idmap_release(&f->of_series);
	run_close(f->run);
	free(f->point);
	free(f->host);
	free(f->path);
	free(f);
	return NULL;
}

const char *feed_host(const struct push_feed *f)
{
	return f->host;
}

/* ---- series ---- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static struct push_series *series_new(struct push_feed *f, const struct push_series *like)
{
	struct push_series *s = malloc(sizeof(*s)), **more;

	if (!s)
		return NULL;
	*s = *like;
	s->name = strdup(like->name);
	s->metric = strdup(like->metric);
	s->table = strdup(like->table);
	s->help = strdup(like->help);
	s->host = strdup(like->host);
	s->instance = like->instance ? strdup(like->instance) : NULL;
	more = s->name && s->metric && s->table && s->help && s->host && (s->instance || !like->instance)
		? ARRAY_ADD(f->series, f->nr_series)
		: NULL;
	if (!more) {
		series_free(f, s);
		return NULL;
	}
	return *more = s;
}

static struct push_series *series_of(struct push_feed *f, const struct push_series *like)
{
	uint64_t key = hash_bytes(like->name, strlen(like->name)) * 31 +
		(like->instance ? hash_bytes(like->instance, strlen(like->instance)) : 0) +
		(uint64_t)like->pid * UINT64_C(0x9e3779b97f4a7c15) +
		hash_bytes(like->table, strlen(like->table));
	struct push_series *s;
	uint32_t at;

	for (; (at = idmap_get(&f->of_series, key)) != IDMAP_NONE; key++) {
		s = f->series[at];
		if (!strcmp(s->name, like->name) && s->pid == like->pid && s->as == like->as &&
			!strcmp(s->table, like->table) && same_text(s->instance, like->instance))
			return s;
	}
	s = series_new(f, like);
	return s && idmap_put(&f->of_series, key, (uint32_t)f->nr_series - 1) >= 0 ? s : NULL;
}

static struct push_series *series_make(struct push_feed *f, const struct feed_table *t,
	const struct feed_column *c, const char *host, const char *instance, int64_t pid)
{
	const struct field *field = &t->face->field[c->field], *of = c->greatest ? field - 1 : field;

	return series_of(f,
		&(struct push_series){.name = c->as ? c->as->name : field->name,
			.metric = of->name,
			.table = t->face->name,
			.help = of->help,
			.host = host,
			.start_ns = f->start_ns,
			.instance = instance,
			.pid = pid,
			.node = f->node,
			.unit = field->unit,
			.kind = field->kind,
			.per_second = field->per_second,
			.greatest = c->greatest,
			.as = c->as});
}

static const char *text_of_cell(
	const struct push_feed *f, size_t table, uint32_t field, uint32_t row, uint32_t *ret_number)
{
	const struct field_cells *c = &f->batch.cell[field];
	struct texts texts = tables_texts(f->tables, table, field);
	uint32_t number;

	if (c->valid && !(c->valid[row >> 3] >> (row & 7) & 1))
		return NULL;
	number = c->text[row];
	if (ret_number)
		*ret_number = number;
	return number < texts.nr ? texts.text[number] : NULL;
}

static bool get_integer(const struct push_feed *f, uint32_t field, uint32_t row, int64_t *ret)
{
	const struct field_cells *c = field == NO_FIELD ? NULL : &f->batch.cell[field];

	if (!c || (c->valid && !(c->valid[row >> 3] >> (row & 7) & 1)))
		return false;
	*ret = c->integer[row];
	return true;
}

/* The line of the row's instance. NULL: no memory. */
static struct feed_line *line_of(struct push_feed *f, struct feed_table *t, uint32_t row)
{
	size_t table = f->batch.table;
	uint32_t number = 0, at;
	int64_t pid = 0;
	const char *instance = NULL, *host;
	struct feed_line *line;
	uint64_t key;

	if (t->instance != NO_FIELD)
		instance = text_of_cell(f, table, t->instance, row, &number);
	get_integer(f, t->pid, row, &pid);
	key = ((uint64_t)number << 32 ^ (uint64_t)pid) + !instance;
	for (; (at = idmap_get(&t->of, key)) != IDMAP_NONE; key += UINT64_C(1) << 60)
		if (t->line[at].instance == number && t->line[at].pid == pid)
			return &t->line[at];
	line = ARRAY_ADD(t->line, t->nr_lines);
	if (!line || idmap_put(&t->of, key, (uint32_t)t->nr_lines - 1) < 0)
		return NULL;
	*line = (struct feed_line){.instance = number, .pid = pid};
	line->series = calloc(t->nr_columns + 1, sizeof(struct push_series *));
	host = t->host != NO_FIELD ? text_of_cell(f, table, t->host, row, NULL) : NULL;
	for (size_t i = 0; line->series && i < t->nr_columns; i++) {
		line->series[i] = series_make(f, t, &t->column[i], host ? host : f->host,
			t->face->domain && (!strcmp(t->face->name, "node") || !strcmp(t->face->name, "tree"))
				? NULL
				: instance,
			pid);
		if (!line->series[i])
			return NULL;
	}
	return line->series ? line : NULL;
}

/* ---- rows ---- */

static void take_point(struct push_feed *f, const struct feed_column *c, struct push_series *s, uint32_t row,
	const struct feed_row *of, int64_t step, struct push_point **to)
{
	const struct field_cells *cell = &f->batch.cell[c->field];
	bool integer = f->table[f->batch.table].face->field[c->field].type == FIELD_INT;
	double value;

	if (cell->valid && !(cell->valid[row >> 3] >> (row & 7) & 1))
		return;
	value = integer ? (double)cell->integer[row] : cell->real[row];
	if (!isfinite(value))
		return;
	if (c->as && c->as->scale != 0) {
		value *= c->as->scale;
		integer = false;
	}
	*(*to)++ = (struct push_point){.series = s,
		.time_ns = of->time_ns,
		.step = step,
		.value = value,
		.integer = integer ? cell->integer[row] : 0,
		.is_integer = integer};
}

static int64_t step_of(const struct push_feed *f, const struct feed_table *t, uint32_t row)
{
	double elapsed = t->elapsed == NO_FIELD ? 0 : f->batch.cell[t->elapsed].real[row];
	int64_t ns = round_i64(elapsed * 1e9), each = f->options.every_ns;

	if (each)
		return ns / each;
	return f->interval_ns > 0 ? (ns + f->interval_ns / 2) / f->interval_ns : 0;
}

/* 1: the row has points that were not given yet. */
static int take_row(struct push_feed *f, uint32_t row, struct feed_row *ret)
{
	struct feed_table *t = &f->table[f->batch.table];
	struct feed_line *line;
	struct given *g;

	*ret = (struct feed_row){.table = t->key};
	if (!t->nr_columns || !get_integer(f, t->time, row, &ret->time_ns))
		return 0;
	g = given_of(f, t->key);
	line = line_of(f, t, row);
	if (!g || !line || ARRAY_ROOM(f->point, f->cap_points, t->nr_columns) < 0)
		return -ENOMEM;
	if (ret->time_ns <= g->skip_ns)
		return 0;
	ret->point = f->point;
	for (size_t i = 0; i < t->nr_columns; i++)
		take_point(f, &t->column[i], line->series[i], row, ret, step_of(f, t, row), &ret->point);
	ret->nr = (size_t)(ret->point - f->point);
	ret->point = f->point;
	g->time_ns = MAX(g->time_ns, ret->time_ns);
	return ret->nr > 0;
}

int feed_next(struct push_feed *f, struct feed_row *ret)
{
	struct buf ignored;
	int r;

	for (;;) {
		while (f->has_batch && f->row < f->batch.nr_rows) {
			r = take_row(f, f->row++, ret);
			if (r)
				return r;
		}
		r = tables_next(f->tables, &f->batch);
		f->has_batch = r == 1;
		f->row = 0;
		if (r >= 0 && tables_stale(f->tables)) { /* of that name nothing was given yet */
			buf_init(&ignored, 4096);
			r = reopen(f, &ignored);
			buf_release(&ignored);
			if (r >= 0)
				continue;
		}
		if (r != 1)
			return r == TABLES_WAIT ? FEED_WAIT : r;
	}
}
