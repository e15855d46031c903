/* A run as tables: recordings one after the other, each read once, tick by tick; then what is not of time.
 *
 * Metrics of the whole tree and of groups come one tick late (query/sums), and their tables with them. */
#include "query/tables_internal.h"

#include "query/events.h"
#include "query/summary.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* ---- a tick ---- */

static bool is_inside(const struct tables *f, double elapsed)
{
	return !(elapsed < f->from_s) && !(elapsed > f->to_s);
}

/* The lines of a tick are whole. */
static int data_table_emit(struct tables *f, struct data_table_own *fr)
{
	if (!is_inside(f, fr->now.elapsed))
		return 0;
	return f->options.every_ns ? data_table_window_add(f, fr, fr->now_ns) : data_table_now_push(f, fr);
}

/* Values of the tick that waits; those of groups that have just come begin. */
static int wholes_tick(
	struct tables *f, struct data_table_own *fr, struct column_own *c, size_t field, bool end)
{
	uint32_t nr = fr->domain == DOMAIN_GROUP ? f->walk->group.nr : 1;
	double value[GROUPS_MOST];

	for (uint32_t i = 0; i < nr; i++) {
		struct whole *w = &c->whole[i];

		value[i] = NAN;
		if (end ? !w->c || !whole_end(w, &value[i]) : !w->c || !whole_tick(w, f->walk, &value[i]))
			value[i] = NAN;
	}
	for (uint32_t line = 0; fr->waits && line < fr->now.nr; line++) {
		int of = fr->domain == DOMAIN_GROUP ? fr->line[line].group : line ? -1 : 0;

		vector_put_real(now_column(fr, field), line, of >= 0 && of < (int)nr ? value[of] : NAN);
	}
	return 0;
}

static int data_table_settle(struct tables *f, struct data_table_own *fr, bool end)
{
	int r = 0;

	for (size_t i = 0; i < fr->nr && r >= 0; i++)
		if (fr->own[i].source == SOURCE_WHOLE && fr->own[i].bound)
			r = wholes_tick(f, fr, &fr->own[i], i, end);
	if (r >= 0 && fr->waits)
		r = data_table_emit(f, fr);
	fr->waits = false;
	return r;
}

static int data_table_tick(struct tables *f, struct data_table_own *fr)
{
	int64_t start = f->start_ns[f->recording], time_ns = f->walk->time_ns;
	int r = fr->late ? data_table_settle(f, fr, false) : 0;

	if (r >= 0)
		r = fr->folded ? data_table_fold(f, fr) : data_table_update(f, fr);
	fr->span_ns = time_ns - fr->now_ns;
	fr->now_ns = time_ns;
	fr->now.has_time = start > 0 && !__builtin_add_overflow(start, time_ns, &fr->now.time_ns);
	fr->now.elapsed = (double)f->offset_ns / 1e9 + (double)time_ns / 1e9;
	fr->waits = fr->late;
	return r < 0 || fr->late ? r : data_table_emit(f, fr);
}

/* Groups may be found at any tick: their sums begin with them. */
static int groups_begin(struct tables *f)
{
	int r = 0;

	for (size_t i = 0; i < f->nr; i++)
		for (size_t j = 0; f->table[i].domain == DOMAIN_GROUP && j < f->table[i].nr; j++) {
			struct column_own *c = &f->table[i].own[j];

			for (uint32_t g = 0; c->bound && c->whole && g < f->walk->group.nr && r >= 0; g++)
				if (!c->whole[g].c)
					r = whole_init(&c->whole[g], c->bound,
						&(struct filter){.groups = UINT64_C(1) << g}, &f->sums);
		}
	f->nr_groups = f->walk->group.nr;
	return r;
}

static int computed_tick(struct tables *f, struct computed *c)
{
	const struct walk_set *set = &f->walk->set[c->set];
	struct rows *rows = &c->column->rows;
	int r;

	if (!(set->any_cols & c->cols) && !c->restless && !set->occupants_changed && !f->walk->gap) {
		if (c->looked) {
			c->looked = rows->changed = false;
			rows->nr_looked = 0;
		}
		return 0;
	}
	r = rows_tick(rows, f->walk, ROWS_ALL);
	c->looked = true;
	c->restless = rows->nr_busy || c->column->bound->window_ns;
	return r;
}

static int columns_tick(struct tables *f)
{
	int r = f->nr_groups < f->walk->group.nr ? groups_begin(f) : 0;

	if (r >= 0)
		r = sums_tick(&f->sums, f->walk);
	for (size_t i = 0; i < f->nr_computed && r >= 0; i++)
		r = computed_tick(f, &f->computed[i]);
	return r;
}

static void tell(const struct tables *f)
{
	double done = f->size ? (double)store_reader_at(f->walk->reader) / (double)f->size : 0;

	if (f->options.progress && f->ticks % 64 == 0)
		progress_tell(f->options.progress, "exporting",
			((double)f->recording + MIN(done, 1.0)) / (double)MAX(f->run->nr, 1u));
}

/* ---- recordings ---- */

/* Rows of instances as they are at a tick, and what is computed of the ticks shortly before, need not be read
 * from the first tick on. Of groups it matters who was there at some time, and so it does of folds. */
static bool may_pass_over(const struct tables *f)
{
	if (f->whole || f->options.whole || f->gathering || !(f->from_s > (double)f->offset_ns / 1e9) ||
		f->from_s > 9e9)
		return false;
	for (size_t i = 0; i < f->nr; i++) {
		const struct data_table_own *fr = &f->table[i];

		if (fr->still >= 0)
			continue;
		if (fr->folded || fr->domain == DOMAIN_GROUP)
			return false;
		for (size_t j = 0; j < fr->nr; j++)
			if (fr->own[j].bound && !column_is_of_now(fr->own[j].bound, f->walk))
				return false;
	}
	return true;
}

/* The recording is open, and stands behind the tables. */
static int recording_bind(struct tables *f)
{
	int r = tables_bind(f);

	if (r >= 0 && may_pass_over(f))
		r = walk_seek(f->walk, round_i64(f->from_s * 1e9) - f->offset_ns);
	if (r >= 0 && f->options.follow)
		r = walk_follow(f->walk, f->run->path[f->recording]);
	return r;
}

static int recording_begin(struct tables *f)
{
	const char *path = f->run->path[f->recording];
	int64_t start = f->start_ns[f->recording];
	struct stat st;
	int r = walk_open(path, NULL, &f->walk);

	f->numbered_before = f->numbered;
	if (r < 0)
		return r;
	f->size = stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
	f->offset_ns = start > 0 ? start - f->first_ns : 0;
	if (f->events) {
		f->gathering = run_events_begin(
			f->events, f->walk, (uint32_t)f->recording, (double)f->offset_ns / 1e9);
		if (!f->gathering)
			return -ENOMEM;
		walk_observe(f->walk, (struct walk_observer *)f->gathering);
	}
	return f->walk->schema ? recording_bind(f) : 0;
}

/* There were too few ticks before the range in what was not passed over. */
static int recording_begin_whole(struct tables *f)
{
	tables_unbind(f);
	f->numbered = f->numbered_before;
	f->whole = true;
	return recording_begin(f);
}

static int recording_end(struct tables *f)
{
	struct store_health health;
	int r = 0;

	for (size_t i = 0; i < f->nr && r >= 0; i++) {
		struct data_table_own *fr = &f->table[i];

		if (fr->still >= 0)
			continue;
		if (fr->late)
			r = data_table_settle(f, fr, true);
		if (r >= 0)
			r = data_table_window_close(f, fr);
	}
	store_health(f->walk->reader, &health);
	f->damage.nr += health.damaged;
	f->damage.bytes += health.lost_bytes;
	f->gathering = run_events_end(f->gathering);
	tables_unbind(f);
	f->whole = false;
	f->recording++;
	if (f->events && f->recording == f->run->nr)
		run_events_sort(f->events);
	return r;
}

/* Reads on by a tick; 0: the recordings are through; TABLES_WAIT. */
static int time_next(struct tables *f)
{
	double elapsed;
	int r;

	if (!f->of_time || f->recording == f->run->nr)
		return 0;
	r = f->walk ? 0 : recording_begin(f);
	if (r >= 0)
		r = walk_next(f->walk);
	if (r == WALK_WAIT)
		return TABLES_WAIT;
	if (r <= 0)
		return r < 0 ? r : (r = recording_end(f)) < 0 ? r : 1;
	f->ticks++;
	tell(f);
	elapsed = (double)f->offset_ns / 1e9 + (double)f->walk->time_ns / 1e9;
	if (!walk_is_warm(f->walk) && !(elapsed < f->from_s)) {
		r = recording_begin_whole(f);
		return r < 0 ? r : 1;
	}
	r = columns_tick(f);
	for (size_t i = 0; i < f->nr && r >= 0; i++)
		if (f->table[i].still < 0)
			r = data_table_tick(f, &f->table[i]);
	if (r >= 0 && elapsed > f->to_s) /* what comes late is settled, too */
		r = recording_end(f);
	return r < 0 ? r : 1;
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

/* ---- for others ---- */

/* Who asks for the numbers of processes, or for their groups. */
static bool needs_processes(const struct tables *f)
{
	for (size_t i = 0; i < f->nr; i++)
		if (f->table[i].of_processes || f->table[i].still == STILL_PROCESSES ||
			f->table[i].domain == DOMAIN_GROUP)
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

int tables_open(
	const struct run *run, const struct tables_options *options, struct tables **ret, struct buf *reterr)
{
	struct tables *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (r >= 0 && options->every_ns < 0)
		r = -EINVAL;
	if (r >= 0) {
		f->run = run;
		f->options = *options;
		f->from_s = isnan(options->from_s) ? -INFINITY : options->from_s;
		f->to_s = isnan(options->to_s) ? INFINITY : options->to_s;
		f->end = &f->first;
		r = tables_plan(f, reterr);
	}
	for (size_t i = 0; r >= 0 && i < f->nr; i++)
		f->of_time |= f->table[i].still < 0;
	if (r >= 0 && f->options.follow)
		r = may_follow(f, reterr);
	else if (r >= 0 && needs_processes(f))
		r = f->options.summary || has_still(f, STILL_SUMMARY)
			? summary_read_with_processes(run, &f->summary, &f->processes, reterr)
			: process_table_read(run, &f->processes, reterr);
	if (r >= 0 && has_still(f, STILL_EVENTS) && f->of_time && isinf(f->to_s)) {
		f->events = calloc(1, sizeof(*f->events));
		r = f->events ? 0 : -ENOMEM;
	}
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
	run_events_end(f->gathering);
	tables_unbind(f);
	still_release(f);
	run_events_free(f->events);
	batches_free(f->first);
	batches_free(f->given);
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
	return f->damage;
}

struct texts tables_texts(const struct tables *f, size_t table, size_t field)
{
	const struct dictionary *d =
		table < f->nr && field < f->table[table].nr ? f->table[table].own[field].texts : NULL;

	return d ? (struct texts){.text = d->text, .len = d->len, .nr = d->nr} : (struct texts){0};
}

static void take_back(struct tables *f)
{
	struct batch *b = f->given;

	if (!b)
		return;
	b->next = f->table[b->table].spare;
	f->table[b->table].spare = b;
	f->given = NULL;
}

int tables_next(struct tables *f, struct data_table_batch *ret)
{
	struct batch *b;

	take_back(f);
	while (!f->first && !f->finished) {
		int r = time_next(f);

		if (r == TABLES_WAIT) {
			for (size_t i = 0; i < f->nr; i++)
				data_table_flush(f, &f->table[i]);
			if (!f->first)
				return TABLES_WAIT;
			break;
		}
		if (!r)
			r = still_tables_next(f);
		if (r < 0)
			return r;
		if (r)
			continue;
		for (size_t i = 0; i < f->nr; i++)
			data_table_flush(f, &f->table[i]);
		f->finished = true;
	}
	b = f->first;
	if (!b)
		return 0;
	f->first = b->next;
	if (!f->first)
		f->end = &f->first;
	b->next = NULL;
	f->given = b;
	*ret = (struct data_table_batch){.table = b->table,
		.nr_rows = b->nr,
		.cell = b->cell,
		.recording = b->recording,
		.held = &b->held};
	return 1;
}
