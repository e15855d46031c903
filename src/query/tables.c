/* A run as tables: those of time first, then those that are not.
 *
 * Tables of time are read by two threads where there are CPUs for them, each with some of the tables and a
 * reader of its own: decoding is a small part of the work. Those that need the table of processes begin when
 * that has been read. Their batches are given out in the order in which one thread would make them: by tick,
 * then by table. */
#include "query/tables_internal.h"

#include "base/owned.h"
#include "base/parallel.h"
#include "query/events.h"
#include "query/summary.h"

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

static int stamp_order(const struct stamp *a, const struct stamp *b)
{
	if (a->recording != b->recording)
		return a->recording < b->recording ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* ---- readings ---- */

/* Hands over what was made, and how far it is. */
static void publish(struct reading *f, int r)
{
	struct tables *of = f->of;
	struct batch *b;

	pthread_mutex_lock(&of->lock);
	while ((b = batches_take(&f->made)))
		batches_add(&f->ready, b);
	f->at = f->stamp;
	f->share = (double)f->recording;
	if (f->walk && f->size)
		f->share += MIN((double)store_reader_at(f->walk->reader) / (double)f->size, 1.0);
	f->result = r;
	pthread_cond_broadcast(&of->moved);
	while (f->runs && f->ready.nr >= READY_MOST && !of->stops)
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

/* Without a thread its work is done while waiting for it. */
static void reading_start(struct reading *f)
{
	sigset_t all, before;

	if (f->of->options.follow || !f->of->options.threads || parallel_workers(2) < 2)
		return;
	f->runs = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
	if (pthread_create(&f->thread, NULL, reading_run, f) != 0)
		f->runs = false;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void readings_stop(struct tables *f)
{
	pthread_mutex_lock(&f->lock);
	__atomic_store_n(&f->stops, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&f->taken);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->nr_readings; i++)
		if (f->reading[i].runs)
			pthread_join(f->reading[i].thread, NULL);
	for (unsigned i = 0; i < f->nr_readings; i++)
		f->reading[i].runs = false;
}

/* The reading whose next batch is to be given out; NULL: none, and *ret_behind is the one to wait for (NULL:
 * there are no more). */
static struct reading *readings_first(struct tables *f, struct reading **ret_behind)
{
	struct reading *first = NULL, *r;

	*ret_behind = NULL;
	for (r = f->reading; r < f->reading + f->nr_readings; r++) {
		const struct batch *b = r->ready.first, *best = first ? first->ready.first : NULL;
		int order = b && best ? stamp_order(&b->stamp, &best->stamp) : -1;

		if (b && (order < 0 || (!order && b->table < best->table)))
			first = r;
	}
	for (r = f->reading; r < f->reading + f->nr_readings; r++)
		if (r->result == 1 && !r->ready.first &&
			(!first || stamp_order(&r->at, &first->ready.first->stamp) < 0))
			*ret_behind = r;
	return *ret_behind ? NULL : first;
}

static void tell(const struct tables *f, const struct reading *r)
{
	if (f->options.progress)
		progress_tell(f->options.progress, "exporting", r->share / (double)MAX(f->run->nr, 1u));
}

/* The next batch of the tables of time: 1; 0: there is no more; TABLES_WAIT. */
static int time_next(struct tables *f, struct batch **ret)
{
	struct reading *first, *behind;
	int r = 1;

	pthread_mutex_lock(&f->lock);
	while (r == 1 && !(first = readings_first(f, &behind)) && behind) {
		tell(f, behind);
		if (behind->runs) {
			pthread_cond_wait(&f->moved, &f->lock);
			continue;
		}
		pthread_mutex_unlock(&f->lock);
		r = reading_next(behind);
		for (size_t i = 0; r == TABLES_WAIT && i < behind->nr; i++)
			data_table_flush(behind->table[i]);
		publish(behind, r == TABLES_WAIT ? 1 : r);
		pthread_mutex_lock(&f->lock);
		r = r == TABLES_WAIT && !behind->ready.first ? r : 1;
	}
	if (r == 1) {
		*ret = first ? batches_take(&first->ready) : NULL;
		r = *ret != NULL;
		for (unsigned i = 0; !*ret && i < f->nr_readings; i++)
			r = MIN(r, f->reading[i].result);
		pthread_cond_broadcast(&f->taken);
	}
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

int tables_summary(struct tables *f, const struct summary **ret, struct buf *reterr)
{
	int r = f->summary ? 0 : summary_read(f->run, &f->summary, reterr);

	*ret = f->summary;
	return r;
}

static int may_follow(const struct tables *f, struct buf *reterr)
{
	bool still = false;

	for (size_t i = 0; i < f->nr; i++)
		still |= f->table[i].still >= 0;
	if (f->run->nr == 1 && !still)
		return 0;
	buf_adds(reterr,
		still ? "only frames of time can be followed" : "one recording at a time is followed");
	return -EINVAL;
}

/* Tables of processes and of the job are read by one, all others by another. */
static int readings_make(struct tables *f)
{
	bool two = !f->options.follow && f->options.threads && parallel_workers(2) > 1;

	for (unsigned i = 0; i < 2; i++) {
		struct reading *r = &f->reading[f->nr_readings];

		*r = (struct reading){.of = f,
			.result = 1,
			.events = f->events && !f->nr_readings,
			.numbers_processes = i || !two,
			.stamp = {.time_ns = INT64_MIN},
			.at = {.time_ns = INT64_MIN}};
		for (size_t j = 0; j < f->nr; j++) {
			struct data_table_own *fr = &f->table[j], **more;
			bool second = two && (needs_processes(fr) || fr->domain == DOMAIN_TREE);

			if (fr->still >= 0 || second != (bool)i)
				continue;
			more = ARRAY_ADD(r->table, r->nr);
			if (!more)
				return -ENOMEM;
			*more = fr;
			fr->reading = r;
		}
		f->nr_readings += r->nr > 0;
	}
	return 0;
}

static int processes_read(struct tables *f, struct buf *reterr)
{
	if (f->options.follow || !any_needs_processes(f))
		return 0;
	return f->options.summary || has_still(f, STILL_SUMMARY)
		? summary_read_with_processes(f->run, &f->summary, &f->processes, reterr)
		: process_table_read(f->run, &f->processes, reterr);
}

/* Those that do not need the table of processes begin before it is read. */
static int readings_begin(struct tables *f, struct buf *reterr)
{
	int r;

	for (unsigned i = 0; i < f->nr_readings; i++)
		if (!f->reading[i].numbers_processes)
			reading_start(&f->reading[i]);
	r = processes_read(f, reterr);
	for (unsigned i = 0; i < f->nr_readings && r >= 0; i++)
		if (f->reading[i].numbers_processes)
			reading_start(&f->reading[i]);
	return r;
}

int tables_open(
	const struct run *run, const struct tables_options *options, struct tables **ret, struct buf *reterr)
{
	struct tables *f = calloc(1, sizeof(*f));
	bool of_time = false;
	int r = f ? 0 : -ENOMEM;

	if (r >= 0) {
		f->run = run;
		f->options = *options;
		f->from_s = isnan(options->from_s) ? -INFINITY : options->from_s;
		f->to_s = isnan(options->to_s) ? INFINITY : options->to_s;
		pthread_mutex_init(&f->lock, NULL);
		pthread_cond_init(&f->moved, NULL);
		pthread_cond_init(&f->taken, NULL);
		r = options->every_ns < 0 ? -EINVAL : tables_plan(f, reterr);
	}
	for (size_t i = 0; r >= 0 && i < f->nr; i++) {
		f->table[i].of = f;
		f->table[i].index = i;
		of_time |= f->table[i].still < 0;
	}
	if (r >= 0 && f->options.follow)
		r = may_follow(f, reterr);
	if (r >= 0 && has_still(f, STILL_EVENTS) && of_time && isinf(f->to_s)) {
		f->events = calloc(1, sizeof(*f->events));
		r = f->events ? 0 : -ENOMEM;
	}
	if (r >= 0)
		r = readings_make(f);
	if (r >= 0)
		r = readings_begin(f, reterr);
	if (r < 0) {
		if (!reterr->len)
			buf_adds(reterr, strerror(-r));
		tables_close(f);
		return r;
	}
	f->options.domain = f->options.metric = NULL; /* the caller's: not needed any more */
	*ret = f;
	return 0;
}

struct tables *tables_close(struct tables *f)
{
	if (!f)
		return NULL;
	readings_stop(f);
	for (unsigned i = 0; i < f->nr_readings; i++) {
		struct reading *r = &f->reading[i];

		run_events_end(r->gathering);
		reading_unbind(r);
		batches_free(r->made.first);
		batches_free(r->ready.first);
	}
	for (size_t i = 0; i < ARRAY_SIZE(f->reading); i++)
		free(f->reading[i].table);
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
	for (size_t i = 0; i < f->nr_absent; i++) {
		free(f->absent[i].table);
		column_own_release(&f->absent[i].column);
	}
	for (size_t i = 0; f->host && i < f->run->nr; i++)
		free(f->host[i]);
	process_table_free(f->processes);
	summary_free(f->summary);
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

struct frames_damage tables_damage(const struct tables *f)
{
	return f->reading[0].damage; /* all of them read all */
}

struct texts tables_texts(const struct tables *f, size_t table, size_t field)
{
	return table < f->nr && field < f->table[table].nr ? f->table[table].own[field].given
							   : (struct texts){0};
}

static void take_back(struct tables *f)
{
	struct batch *b = f->given;

	if (!b)
		return;
	pthread_mutex_lock(&f->lock);
	b->next = f->table[b->table].spare;
	f->table[b->table].spare = b;
	pthread_mutex_unlock(&f->lock);
	f->given = NULL;
}

/* What is left of all tables. */
static void finish(struct tables *f)
{
	readings_stop(f);
	for (size_t i = 0; i < f->nr; i++) {
		struct data_table_own *fr = &f->table[i];

		fr->reading = NULL;
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
	for (size_t i = 0; i < f->table[b->table].nr; i++)
		f->table[b->table].own[i].given = b->texts[i];
	*ret = (struct data_table_batch){.table = b->table,
		.nr_rows = b->nr,
		.cell = b->cell,
		.recording = b->recording,
		.held = &b->held};
	return 1;
}
