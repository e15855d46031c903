/* Values by host and tick, for perfmon-json: see perfmon.h. */
#include "export/perfmon.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

/* ---- hosts ---- */

/* Hosts are keys beside others in that tool's files: one that has such a name ends with a dot more, as names
 * may. The second recording of a host has "-2" behind the name, the third "-3". */
static char *key_of(const char *name, size_t nth)
{
	static const char *const taken[] = {"host_names", "sampling_frequency"};
	size_t len = strlen(name);
	char *key = NULL;
	bool dot = false;
	int n;

	while (len && name[len - 1] == '.')
		len--;
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		dot |= len == strlen(taken[i]) && !memcmp(name, taken[i], len);
	n = nth > 1 ? asprintf(&key, "%s-%zu", name, nth) : asprintf(&key, "%s%s", name, dot ? "." : "");
	return n < 0 ? NULL : key;
}

int perfmon_host_find(struct perfmon *p, uint32_t recording, const char *name, size_t *ret)
{
	struct perfmon_host *more;

	for (*ret = p->nr_hosts; *ret;)
		if (p->host[--*ret].recording == recording)
			return 0;
	*ret = p->nr_hosts;
	more = ARRAY_ADD(p->host, p->nr_hosts);
	if (!more)
		return -ENOMEM;
	*more = (struct perfmon_host){.recording = recording, .name = strdup(name)};
	spool_init(&more->parents);
	spool_init(&more->children);
	return more->name ? 0 : -ENOMEM;
}

/* Another host may be called "node-2". */
static bool is_taken(const struct perfmon *p, const struct perfmon_host *own, const char *key)
{
	for (size_t i = 0; i < p->nr_hosts; i++) {
		const struct perfmon_host *h = &p->host[i];

		if (h != own && ((h->key && !strcmp(h->key, key)) || !strcmp(h->name, key)))
			return true;
	}
	return false;
}

static int name_host(struct perfmon *p, struct perfmon_host *h)
{
	size_t nth = 1;

	for (size_t i = 0; i < p->nr_hosts; i++)
		nth += p->host[i].recording < h->recording && !strcmp(p->host[i].name, h->name);
	h->key = key_of(h->name, nth);
	while (h->key && nth > 1 && is_taken(p, h, h->key)) {
		free(h->key);
		h->key = key_of(h->name, ++nth);
	}
	return h->key ? 0 : -ENOMEM;
}

static int by_recording(const void *a, const void *b)
{
	const struct perfmon_host *const *x = a, *const *y = b;

	return ((*x)->recording > (*y)->recording) - ((*x)->recording < (*y)->recording);
}

int perfmon_name_hosts(struct perfmon *p)
{
	_cleanup_(freep) struct perfmon_host **order = calloc(p->nr_hosts + 1, sizeof(struct perfmon_host *));
	int r = order ? 0 : -ENOMEM;

	for (size_t i = 0; order && i < p->nr_hosts; i++)
		order[i] = &p->host[i];
	if (order)
		qsort(order, p->nr_hosts, sizeof(struct perfmon_host *), by_recording);
	for (size_t i = 0; i < p->nr_hosts && r >= 0; i++)
		if (!order[i]->key)
			r = name_host(p, order[i]);
	return r;
}

/* ---- witnesses ---- */

int perfmon_witness(struct perfmon *p, size_t table)
{
	const struct data_table *f = &p->job->table[table];
	struct perfmon_witness *more,
		w = {.at = table, .table = f->name, .field = legacy_csv_field(f, "host")};

	if (w.field == NO_FIELD || legacy_csv_field(f, "instance") == NO_FIELD)
		return 0;
	more = ARRAY_ADD(p->witness, p->nr_witnesses);
	if (more)
		*more = w;
	return more ? 0 : -ENOMEM;
}

static int see_host(struct perfmon *p, struct perfmon_witness *w, uint32_t recording, const char *name)
{
	size_t number;
	int r = perfmon_host_find(p, recording, name, &number);

	if (r < 0)
		return r;
	if (number >= w->nr_hosts) {
		if (ARRAY_RESIZE(w->host, number + 1) < 0)
			return -ENOMEM;
		memset(w->host + w->nr_hosts, 0, number + 1 - w->nr_hosts);
		w->nr_hosts = number + 1;
	}
	w->host[number] = true;
	return 0;
}

int perfmon_see(struct perfmon *p, const struct data_table_batch *b)
{
	int r = 0;

	for (size_t i = 0; i < p->nr_witnesses; i++) {
		struct perfmon_witness *w = &p->witness[i];
		const struct field_cells *cell = &b->cell[w->field];
		struct texts host;

		if (w->at != b->table - p->job->first_table)
			continue;
		host = export_texts(p->job, b->table, w->field);
		for (uint32_t row = 0; row < b->nr_rows && r >= 0; row++)
			if (cell_valid(cell, row) &&
				(!row || perfmon_recording(b, row) != perfmon_recording(b, row - 1)))
				r = see_host(p, w, perfmon_recording(b, row), host.text[cell->text[row]]);
	}
	return r;
}

static bool is_seen(const struct perfmon_witness *w, size_t host)
{
	return !w || (host < w->nr_hosts && w->host[host]);
}

/* ---- binding ---- */

static int add_column(struct perfmon_origin *o, size_t number, const struct perfmon_list *l, bool second)
{
	const char *name = second ? l->field2 : l->field;
	size_t at = legacy_csv_field(o->table, name);
	struct perfmon_column *more, c = {.list = number, .second = second, .field = at, .rate = NO_FIELD};
	_cleanup_(freep) char *rate = NULL;

	if (at == NO_FIELD ||
		(o->table->field[at].type != FIELD_INT && o->table->field[at].type != FIELD_REAL))
		return 0;
	if (asprintf(&rate, "%s.rate", name) < 0) {
		rate = NULL;
		return -ENOMEM;
	}
	more = ARRAY_ADD(o->column, o->nr_columns);
	if (!more)
		return -ENOMEM;
	c.rate = legacy_csv_field(o->table, rate);
	c.factor = l->factor * o->table->field[at].scale;
	c.exact = o->table->field[at].type == FIELD_INT && c.factor == 1;
	*more = c;
	return 0;
}

static int bind_table(struct perfmon *p, struct perfmon_origin *o)
{
	int r = 0;

	for (size_t i = 0; i < p->nr_lists && r >= 0; i++) {
		const struct perfmon_list *l = &p->list[i];

		if (o->each != (l->instances != NULL) || !perfmon_is_exported(p, l))
			continue;
		if (!strcmp(l->table, o->table->name))
			r = add_column(o, i, l, false);
		if (r >= 0 && l->table2 && !strcmp(l->table2, o->table->name))
			r = add_column(o, i, l, true);
	}
	return r;
}

int perfmon_bind(struct perfmon *p, bool each)
{
	const struct data_table *table = each ? p->job->table : p->job->folded;
	size_t nr = each ? p->job->nr_tables : p->job->nr_folded;

	for (size_t i = 0; i < nr; i++) {
		struct perfmon_origin *more,
			o = {.table = &table[i],
				.at = each ? i : p->job->nr_tables + i,
				.each = each,
				.time = legacy_csv_field(&table[i], "time"),
				.elapsed = legacy_csv_field(&table[i], "elapsed"),
				.host = legacy_csv_field(&table[i], "host"),
				.instance = legacy_csv_field(&table[i], "instance")};
		int r;

		if (o.time == NO_FIELD || o.elapsed == NO_FIELD || o.host == NO_FIELD ||
			(each && o.instance == NO_FIELD))
			continue;
		for (size_t j = 0; j < p->nr_witnesses && !each; j++)
			if (!strcmp(p->witness[j].table, table[i].name))
				o.witness = &p->witness[j];
		r = bind_table(p, &o);
		if (r >= 0 && o.nr_columns)
			o.instances = p->list[o.column[0].list].instances;
		if (r >= 0 && !o.nr_columns)
			continue;
		more = r < 0 ? NULL : ARRAY_ADD(p->origin, p->nr_origins);
		if (!more) {
			free(o.column);
			return -ENOMEM;
		}
		*more = o;
	}
	return 0;
}

/* ---- series ---- */

static int series_new(
	struct perfmon_origin *o, size_t host, const char *instance, struct perfmon_series **ret)
{
	struct perfmon_series *s = calloc(1, sizeof(*s)),
			      **more = s ? ARRAY_ADD(o->series, o->nr_series) : NULL;

	if (!more) {
		free(s);
		return -ENOMEM;
	}
	*s = (struct perfmon_series){.host = host,
		.instance = instance ? strdup(instance) : NULL,
		.elapsed = -INFINITY,
		.cells = calloc(o->nr_columns, sizeof(*s->cells))};
	spool_init(&s->tick);
	for (size_t i = 0; s->cells && i < o->nr_columns; i++)
		spool_init(&s->cells[i].spool);
	*more = *ret = s;
	return s->cells && (s->instance || !instance) ? 0 : -ENOMEM;
}

static int series_rest(struct perfmon *p, const struct perfmon_origin *o, struct perfmon_series *s)
{
	int r = spool_rest(&s->tick, &p->file);

	for (size_t i = 0; i < o->nr_columns && r >= 0; i++)
		r = spool_rest(&s->cells[i].spool, &p->file);
	return r;
}

/* Hosts come one after the other: the values of the others are moved to disk. */
static int series_find(struct perfmon *p, struct perfmon_origin *o, size_t host, const char *instance,
	struct perfmon_series **ret)
{
	int r = 0;

	for (size_t i = o->nr_series; i--;) {
		struct perfmon_series *s = o->series[i];

		if (s->host == host && (!instance || !strcmp(s->instance, instance))) {
			*ret = s;
			return 0;
		}
	}
	for (size_t i = 0; i < o->nr_series && r >= 0; i++)
		if (o->series[i]->host != host)
			r = series_rest(p, o, o->series[i]);
	return r < 0 ? r : series_new(o, host, instance, ret);
}

/* ---- rows ---- */

static bool growth_of(struct perfmon_cells *to, bool known, int64_t *v)
{
	int64_t now = *v;
	bool grew = known && to->has_before && now >= to->before;

	grew = grew && !__builtin_sub_overflow(now, to->before, v);
	to->has_before = known;
	to->before = now;
	return grew;
}

/* What is missing is INT64_MIN, or NAN. */
static void add_cell(struct perfmon_cells *to, const struct perfmon_column *c, enum perfmon_look look,
	const struct field *f, const struct data_table_batch *b, uint32_t row)
{
	const struct field_cells *cell = &b->cell[c->field];
	bool known = cell_valid(cell, row);
	int64_t whole = known && f->type == FIELD_INT ? cell->integer[row] : 0;
	double real = known && f->type == FIELD_REAL ? cell->real[row] : (double)whole;

	if (look == PERFMON_GROWTH) { /* none at the beginning, where there is no rate either */
		known = growth_of(to, known, &whole) && f->type == FIELD_INT;
		known &= c->rate == NO_FIELD || cell_valid(&b->cell[c->rate], row);
		real = (double)whole;
	}
	real *= c->factor;
	known &= isfinite(real);
	to->known |= known;
	whole = known ? whole : INT64_MIN;
	real = known ? real : NAN;
	buf_add(&to->spool.held, c->exact ? (void *)&whole : (void *)&real, sizeof(whole));
}

static int take_row(struct perfmon *p, struct perfmon_origin *o, struct perfmon_series *s,
	const struct data_table_batch *b, uint32_t row)
{
	const struct field_cells *time = &b->cell[o->time], *elapsed = &b->cell[o->elapsed];
	struct perfmon_tick tick = {.elapsed = cell_valid(elapsed, row) ? elapsed->real[row] : 0};
	int r;

	s->lap += tick.elapsed < s->elapsed;
	s->elapsed = tick.elapsed;
	s->nr++;
	tick.lap = s->lap;
	tick.time = cell_valid(time, row) ? time->integer[row] : (int64_t)(fmod(tick.elapsed, 9e9) * 1e9);
	buf_add(&s->tick.held, &tick, sizeof(tick));
	r = spool_settle(&s->tick, &p->file);
	for (size_t i = 0; i < o->nr_columns && r >= 0; i++) {
		const struct perfmon_column *c = &o->column[i];

		add_cell(&s->cells[i], c, p->list[c->list].look, &o->table->field[c->field], b, row);
		r = spool_settle(&s->cells[i].spool, &p->file);
	}
	return r;
}

/* "package-0" of "package- dram-", but not "nvidia-0/mig-1" of "nvidia-": that is a part. */
static bool is_wanted(const char *beginnings, const char *instance)
{
	for (const char *at = beginnings; instance && *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		if (!strncmp(at, instance, len) && instance[len] >= '0' && instance[len] <= '9' &&
			!strchr(instance, '/'))
			return true;
		at += len;
	}
	return false;
}

static uint32_t text_at(const struct data_table_batch *b, size_t field, uint32_t row)
{
	return cell_valid(&b->cell[field], row) ? b->cell[field].text[row] : UINT32_MAX;
}

int perfmon_take(struct perfmon *p, struct perfmon_origin *o, const struct data_table_batch *b)
{
	struct texts host = export_texts(p->job, b->table, o->host), instance = {0};
	struct perfmon_series *s = NULL;
	uint32_t at = 0, nth = 0;
	int r = 0;

	if (o->each)
		instance = export_texts(p->job, b->table, o->instance);
	for (uint32_t row = 0; row < b->nr_rows && r >= 0; row++) {
		uint32_t at_now = perfmon_recording(b, row), named = text_at(b, o->host, row),
			 nth_now = o->each ? text_at(b, o->instance, row) : 0;
		const char *name = nth_now < instance.nr ? instance.text[nth_now] : NULL;
		size_t number;

		if (!row || at != at_now || nth != nth_now) {
			s = NULL;
			r = perfmon_host_find(p, at_now, named < host.nr ? host.text[named] : "", &number);
			if (r >= 0 && (!o->each || is_wanted(o->instances, name)))
				r = series_find(p, o, number, name, &s);
		}
		at = at_now;
		nth = nth_now;
		if (r >= 0 && s)
			r = take_row(p, o, s, b, row);
	}
	return r;
}

static void series_free(const struct perfmon_origin *o, struct perfmon_series *s)
{
	for (size_t k = 0; s->cells && k < o->nr_columns; k++)
		spool_release(&s->cells[k].spool);
	spool_release(&s->tick);
	free(s->instance);
	free(s->cells);
	free(s);
}

void perfmon_drop_unseen(struct perfmon *p)
{
	for (size_t i = 0; i < p->nr_origins; i++) {
		struct perfmon_origin *o = &p->origin[i];
		size_t kept = 0;

		for (size_t j = 0; j < o->nr_series; j++)
			if (is_seen(o->witness, o->series[j]->host))
				o->series[kept++] = o->series[j];
			else
				series_free(o, o->series[j]);
		o->nr_series = kept;
	}
}

void perfmon_host_series_release(struct perfmon *p)
{
	for (size_t i = 0; i < p->nr_origins; i++) {
		struct perfmon_origin *o = &p->origin[i];

		for (size_t j = 0; j < o->nr_series; j++)
			series_free(o, o->series[j]);
		free(o->series);
		free(o->column);
	}
	free(p->origin);
	for (size_t i = 0; i < p->nr_witnesses; i++)
		free(p->witness[i].host);
	free(p->witness);
}
