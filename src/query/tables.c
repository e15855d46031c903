/* A run as tables: those of time first, then those that are not.
 *
 * The recordings are read twice: for the tables of time, and for what is told of the run as a whole, the
 * table of processes and the summary. Where there are CPUs for it, both are done at the same time by threads
 * of their own, beside the one that takes the batches. Only where rows of time need what is found out last
 * does one wait for the other. */
#include "query/tables_internal.h"

#include "base/owned.h"
#include "base/parallel.h"
#include "query/events.h"
#include "query/summary.h"
#include "store/glance.h"

#include <math.h>
#include <signal.h>
#include <string.h>

/* Batches that wait for their taker, of each thread. */
#define READY_MOST 4
/* Ticks after which the taker learns how far it is. */
#define TELL_TICKS 32

/* ---- batches ---- */

void batches_add(struct batches *list, struct batch *b)
{
	if (list->last)
		list->last->next = b;
	else
		list->first = b;
	list->last = b;
	list->nr++;
}

static struct batch *batches_take(struct batches *list)
{
	struct batch *b = list->first;

	if (!b)
		return NULL;
	list->first = b->next;
	if (!list->first)
		list->last = NULL;
	list->nr--;
	b->next = NULL;
	return b;
}

/* One that was given out, and is held no more. */
struct batch *batches_reuse(struct data_table_own *fr)
{
	struct batch **at = &fr->spare, *b;

	pthread_mutex_lock(&fr->of->lock);
	while (*at && __atomic_load_n(&(*at)->held, __ATOMIC_ACQUIRE))
		at = &(*at)->next;
	b = *at;
	if (b)
		*at = b->next;
	pthread_mutex_unlock(&fr->of->lock);
	return b;
}

/* ---- other threads ---- */

static bool has_threads(const struct tables *f)
{
	return f->options.threads && !f->options.follow && parallel_workers(2) > 1;
}

/* Where it does not start, its work is done while waiting for it. */
static void side_start(const struct tables *f, struct side_thread *t, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;

	if (!has_threads(f))
		return;
	t->runs = true; /* seen by it */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
	if (pthread_create(&t->thread, NULL, run, arg) != 0)
		t->runs = false;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void side_join(struct side_thread *t)
{
	if (t->runs)
		pthread_join(t->thread, NULL);
	t->runs = false;
}

/* ---- the run as a whole ---- */

static void *told_read(void *arg)
{
	struct tables *f = arg;
	struct told *t = &f->of_run;

	if (t->summary)
		t->result = summary_read_with_processes(
			f->run, &f->summary, t->processes ? &f->processes : NULL, &t->err);
	else if (t->processes)
		t->result = process_table_read(f->run, &f->processes, &t->err);
	return NULL;
}

int tables_tell(struct tables *f)
{
	struct told *t = &f->of_run;

	if (!t->done && !t->thread.runs)
		told_read(f);
	side_join(&t->thread);
	t->done = true;
	return MIN(t->result, 0);
}

int tables_summary(struct tables *f, const struct summary **ret, struct buf *reterr)
{
	int r = tables_tell(f);

	if (r < 0)
		buf_add(reterr, f->of_run.err.data, f->of_run.err.len);
	*ret = f->summary;
	return r;
}

/* ---- the reading ---- */

/* Hands over what was made, and how far it is. */
static void publish(struct reading *f, int r)
{
	struct tables *of = f->of;
	struct batch *b;

	pthread_mutex_lock(&of->lock);
	while ((b = batches_take(&f->made)))
		batches_add(&f->ready, b);
	f->share = (double)f->recording;
	if (f->walk && f->size)
		f->share += MIN((double)store_reader_at(f->walk->reader) / (double)f->size, 1.0);
	f->result = r;
	pthread_cond_broadcast(&of->moved);
	while (f->thread.runs && f->ready.nr >= READY_MOST && !of->stops)
		pthread_cond_wait(&of->taken, &of->lock);
	pthread_mutex_unlock(&of->lock);
}

static void *reading_run(void *arg)
{
	struct reading *f = arg;
	int r = 1;

	for (unsigned ticks = 1; r == 1 && !__atomic_load_n(&f->of->stops, __ATOMIC_RELAXED); ticks++) {
		r = reading_next(f);
		if (r <= 0 || f->made.first || ticks % TELL_TICKS == 0)
			publish(f, r);
	}
	return NULL;
}

static void reading_stop(struct tables *f)
{
	pthread_mutex_lock(&f->lock);
	__atomic_store_n(&f->stops, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&f->taken);
	pthread_mutex_unlock(&f->lock);
	side_join(&f->reading.thread);
}

static void tell(const struct tables *f)
{
	if (f->options.progress)
		progress_tell(
			f->options.progress, "exporting", f->reading.share / (double)MAX(f->run->nr, 1u));
}

/* What the other thread would do, up to the next tick. */
static int read_here(struct reading *f)
{
	int r = reading_next(f);

	for (size_t i = 0; r == TABLES_WAIT && i < f->nr; i++)
		data_table_flush(f->table[i]);
	publish(f, r == TABLES_WAIT ? 1 : r);
	return r;
}

/* The next batch of the tables of time: 1; 0: there is no more; TABLES_WAIT. */
static int time_next(struct tables *f, struct batch **ret)
{
	struct reading *from = &f->reading;
	int r = 1;

	pthread_mutex_lock(&f->lock);
	while (!from->ready.first && from->result == 1 && r != TABLES_WAIT) {
		tell(f);
		if (from->thread.runs) {
			pthread_cond_wait(&f->moved, &f->lock);
			continue;
		}
		pthread_mutex_unlock(&f->lock);
		r = read_here(from);
		pthread_mutex_lock(&f->lock);
	}
	*ret = batches_take(&from->ready);
	r = *ret ? 1 : from->result == 1 ? TABLES_WAIT : from->result;
	pthread_cond_broadcast(&f->taken);
	pthread_mutex_unlock(&f->lock);
	return r;
}

static int still_tables_next(struct tables *f)
{
	for (; f->still < f->nr; f->still++) {
		int r = f->table[f->still].still < 0 ? 0 : still_next(f, &f->table[f->still]);

		if (r)
			return r;
	}
	return 0;
}

/* ---- opening ---- */

/* It has numbers of processes, or needs their groups. */
static bool needs_processes(const struct data_table_own *fr)
{
	return fr->of_processes || fr->still == STILL_PROCESSES || fr->domain == DOMAIN_GROUP;
}

static bool any_needs_processes(const struct tables *f)
{
	for (size_t i = 0; i < f->nr; i++)
		if (needs_processes(&f->table[i]))
			return true;
	return false;
}

static bool has_still(const struct tables *f, enum still_table which)
{
	for (size_t i = 0; i < f->nr; i++)
		if (f->table[i].still == (int)which)
			return true;
	return false;
}

static int may_follow(const struct tables *f, struct buf *reterr)
{
	bool still = false;

	for (size_t i = 0; i < f->nr; i++)
		still |= f->table[i].still >= 0;
	if (f->run->nr == 1 && !still)
		return 0;
	buf_adds(reterr,
		still ? "only tables of time can be followed" : "one recording at a time is followed");
	return -EINVAL;
}

static struct tables *tables_new(const struct run *run, const struct tables_options *options)
{
	struct tables *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->run = run;
	f->options = *options;
	f->from_s = isnan(options->from_s) ? -INFINITY : options->from_s;
	f->to_s = isnan(options->to_s) ? INFINITY : options->to_s;
	buf_init(&f->of_run.err, 1 << 16);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->moved, NULL);
	pthread_cond_init(&f->taken, NULL);
	return f;
}

/* The names that the options fold, of tables that there are. */
static void fold_names(
	const struct tables *f, struct tables_options *o, const char **domain, const char **metric)
{
	o->nr_domains = 0;
	for (size_t i = 0; i < f->options.nr_folds; i++) {
		const struct table_fold *fold = &f->options.fold[i];
		bool there = f->options.fold_any;

		for (size_t j = 0; j < f->nr; j++)
			there |= !strcmp(f->table[j].face.name, fold->table);
		if (!there)
			continue;
		domain[o->nr_domains] = fold->table;
		metric[o->nr_domains++] = fold->metric;
	}
	o->domain = domain;
	o->metric = metric;
	o->nr_metrics = o->nr_domains;
}

/* What is folded has tables of its own. */
static int plan_folded(struct tables *f, struct buf *reterr)
{
	_cleanup_(freep) const char **name = calloc(2 * f->options.nr_folds + 1, sizeof(*name));
	struct tables_options o = f->options;
	int r;

	if (!name)
		return -ENOMEM;
	fold_names(f, &o, name, name + f->options.nr_folds);
	if (!o.nr_domains)
		return 0;
	o.nr_folds = 0;
	o.per = TABLES_NODE;
	o.raw = false;
	o.if_there = true;
	f->folded = tables_new(f->run, &o);
	r = f->folded ? tables_plan(f->folded, reterr) : -ENOMEM;
	if (f->folded)
		f->folded->options.domain = f->folded->options.metric = NULL;
	return r;
}

static size_t nr_all_tables(const struct tables *f)
{
	return f->nr + (f->folded ? f->folded->nr : 0);
}

static struct data_table_own *table_at(const struct tables *f, size_t i)
{
	return i < f->nr ? &f->table[i] : &f->folded->table[i - f->nr];
}

static int reading_make(struct tables *f)
{
	struct reading *r = &f->reading;

	*r = (struct reading){.of = f};
	for (size_t i = 0; i < nr_all_tables(f); i++) {
		struct data_table_own *fr = table_at(f, i), **more;

		fr->of = f;
		fr->index = i;
		fr->made = fr->still < 0 ? &r->made : &f->made;
		if (fr->still >= 0)
			continue;
		more = ARRAY_ADD(r->table, r->nr);
		if (!more)
			return -ENOMEM;
		*more = fr;
	}
	r->result = r->nr > 0;
	return 0;
}

/* Where rows are made of groups, all of them are there from the start; and where not all of a recording is
 * read, processes that came in the rest of it have numbers, too. */
static bool needs_told_before(const struct tables *f)
{
	bool groups = false;

	for (size_t i = 0; i < f->reading.nr; i++)
		groups |= f->reading.table[i]->by_group ||
			(f->reading.table[i]->domain == DOMAIN_GROUP && f->bare_groups);
	return f->of_run.processes && (groups || !isinf(f->from_s) || !isinf(f->to_s));
}

static int take_nothing(void *arg, enum store_type type, const struct pairs *pairs)
{
	(void)arg, (void)type, (void)pairs;
	return 0;
}

/* Else processes may come between two readings: rows of time must not name any that are not in their table,
 * so that is read last. */
static bool is_complete(const struct run *run)
{
	struct store_glance glance;

	for (size_t i = 0; i < run->nr; i++)
		if (store_glance(run->path[i], take_nothing, NULL, &glance) < 0 || !glance.complete)
			return false;
	return true;
}

static int begin(struct tables *f, struct buf *reterr)
{
	struct told *t = &f->of_run;
	int r = 0;

	t->processes = !f->options.follow && any_needs_processes(f);
	t->summary = !f->options.follow &&
		(f->options.summary || has_still(f, STILL_SUMMARY) || has_still(f, STILL_PHASES));
	t->before = needs_told_before(f);
	if (f->options.told) {
		f->summary = f->options.told->summary;
		f->processes = f->options.told->processes;
		t->done = true;
	}
	if (t->before && (r = tables_tell(f)) < 0)
		buf_add(reterr, t->err.data, t->err.len);
	if (r < 0)
		return r;
	if (f->reading.nr)
		side_start(f, &f->reading.thread, reading_run, &f->reading);
	if (!t->done && (has_still(f, STILL_PROCESSES) || t->summary) && has_threads(f) &&
		is_complete(f->run))
		side_start(f, &t->thread, told_read, f);
	return 0;
}

int tables_open(
	const struct run *run, const struct tables_options *options, struct tables **ret, struct buf *reterr)
{
	struct tables *f = tables_new(run, options);
	int r = !f ? -ENOMEM : options->every_ns < 0 ? -EINVAL : tables_plan(f, reterr);

	if (r >= 0)
		r = plan_folded(f, reterr);
	if (r >= 0)
		r = reading_make(f);
	if (r >= 0 && f->options.follow)
		r = may_follow(f, reterr);
	if (r >= 0 && has_still(f, STILL_EVENTS) && f->reading.nr) {
		f->events = calloc(1, sizeof(*f->events));
		r = f->events ? 0 : -ENOMEM;
	}
	if (r >= 0)
		r = begin(f, reterr);
	if (r < 0) {
		if (!reterr->len)
			buf_adds(reterr, strerror(-r));
		tables_close(f);
		return r;
	}
	f->options.domain = f->options.metric = NULL; /* the caller's: not needed any more */
	f->options.fold = NULL;
	*ret = f;
	return 0;
}

struct tables *tables_close(struct tables *f)
{
	if (!f)
		return NULL;
	reading_stop(f);
	side_join(&f->of_run.thread);
	run_events_end(f->reading.gathering);
	reading_unbind(&f->reading);
	batches_free(f->reading.made.first);
	batches_free(f->reading.ready.first);
	free(f->reading.table);
	buf_release(&f->of_run.err);
	still_release(f);
	run_events_free(f->events);
	batches_free(f->made.first);
	batches_free(f->given);
	pthread_cond_destroy(&f->taken);
	pthread_cond_destroy(&f->moved);
	pthread_mutex_destroy(&f->lock);
	for (size_t i = 0; i < f->nr; i++) {
		struct data_table_own *fr = &f->table[i];

		data_table_lines_release(fr, &fr->now);
		data_table_window_release(fr);
		batches_free(fr->filling);
		batches_free(fr->spare);
		free(fr->line);
		free(fr->of_text);
		data_table_own_release(fr);
	}
	for (size_t i = 0; i < f->nr_told; i++)
		data_table_own_release(&f->told[i]);
	for (size_t i = 0; i < f->nr_counted; i++) {
		free((char *)f->counted[i].name);
		free((char *)f->counted[i].help);
	}
	free(f->counted);
	for (size_t i = 0; i < f->nr_absent; i++) {
		free(f->absent[i].table);
		column_own_release(&f->absent[i].column);
	}
	for (size_t i = 0; f->host && i < f->run->nr; i++)
		free(f->host[i]);
	if (!f->options.told) {
		process_table_free(f->processes);
		summary_free(f->summary);
	}
	tables_close(f->folded);
	free(f->absent);
	free(f->told);
	free(f->table);
	free(f->face);
	free(f->start_ns);
	free(f->host);
	free(f);
	return NULL;
}

size_t tables_list(const struct tables *f, const struct data_table **ret)
{
	*ret = f->face;
	return f->nr;
}

size_t tables_folded(const struct tables *f, const struct data_table **ret)
{
	*ret = f->folded ? f->folded->face : NULL;
	return f->folded ? f->folded->nr : 0;
}

struct tables_damage tables_damage(const struct tables *f)
{
	return f->reading.damage;
}

bool tables_stale(const struct tables *f)
{
	return f->stale;
}

struct texts tables_texts(const struct tables *f, size_t table, size_t field)
{
	return table < nr_all_tables(f) && field < table_at(f, table)->nr
		? table_at(f, table)->own[field].given
		: (struct texts){0};
}

static void take_back(struct tables *f)
{
	struct batch *b = f->given;

	if (!b)
		return;
	pthread_mutex_lock(&f->lock);
	b->next = table_at(f, b->table)->spare;
	table_at(f, b->table)->spare = b;
	pthread_mutex_unlock(&f->lock);
	f->given = NULL;
}

/* What is left of all tables. */
static void finish(struct tables *f)
{
	reading_stop(f);
	for (size_t i = 0; i < nr_all_tables(f); i++) {
		struct data_table_own *fr = table_at(f, i);

		fr->made = &f->made;
		data_table_flush(fr);
		for (size_t j = 0; j < fr->nr; j++)
			fr->own[j].given = dictionary_texts(fr->own[j].texts);
	}
	f->finished = true;
}

int tables_next(struct tables *f, struct data_table_batch *ret)
{
	struct batch *b = NULL;
	int r = 0;

	take_back(f);
	if (!f->still_begun) {
		r = time_next(f, &b);
		f->still_begun = !r;
	}
	while (!r && !(b = batches_take(&f->made)) && !f->finished) {
		r = still_tables_next(f);
		if (!r)
			finish(f);
		r = MIN(r, 0);
	}
	if (r < 0 || r == TABLES_WAIT || !b)
		return r;
	f->given = b;
	for (size_t i = 0; i < table_at(f, b->table)->nr; i++)
		table_at(f, b->table)->own[i].given = b->texts[i];
	*ret = (struct data_table_batch){.table = b->table,
		.nr_rows = b->nr,
		.cell = b->cell,
		.recording = b->recording,
		.held = &b->held};
	return 1;
}
