/* Tables of time: recordings one after the other, each read tick by tick.
 *
 * Metrics of the whole tree and of groups come one tick late (query/sums), and their tables with them. */
#include "query/tables_internal.h"

#include "query/events.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* ---- a tick ---- */

static bool is_inside(const struct reading *f, double elapsed)
{
	return !(elapsed < f->of->from_s) && !(elapsed > f->of->to_s);
}

/* The lines of a tick are whole. */
static int data_table_emit(struct reading *f, struct data_table_own *fr)
{
	if (!is_inside(f, fr->now.elapsed))
		return 0;
	return f->of->options.every_ns ? data_table_window_add(f, fr, fr->now_ns)
				       : data_table_now_push(fr, (uint32_t)f->recording);
}

/* Values of the tick that waits; those of groups that have just come begin. */
static int wholes_tick(
	struct reading *f, struct data_table_own *fr, struct column_own *c, size_t field, bool end)
{
	uint32_t nr = fr->domain == DOMAIN_GROUP ? f->walk->group.nr : 1;
	double value[GROUPS_MOST], ignored;

	for (uint32_t i = 0; i < nr; i++) {
		struct whole *w = &c->whole[i];

		value[i] = NAN;
		if (end ? !w->c || !whole_end(w, &value[i]) : !w->c || !whole_tick(w, f->walk, &value[i]))
			value[i] = NAN;
	}
	if (fr->domain == DOMAIN_GROUP && !end)
		whole_tick(&c->whole[NO_GROUP], f->walk, &ignored);
	for (uint32_t line = 0; fr->waits && line < fr->now.nr; line++) {
		int of = fr->domain == DOMAIN_GROUP ? fr->line[line].group : line ? -1 : 0;

		vector_put_real(now_column(fr, field), line, of >= 0 && of < (int)nr ? value[of] : NAN);
	}
	return 0;
}

static int data_table_settle(struct reading *f, struct data_table_own *fr, bool end)
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

static int data_table_tick(struct reading *f, struct data_table_own *fr)
{
	int64_t start = f->of->start_ns[f->recording], time_ns = f->walk->time_ns;
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
static int groups_begin(struct reading *f)
{
	int r = 0;

	for (size_t i = 0; i < f->nr; i++)
		for (size_t j = 0; f->table[i]->domain == DOMAIN_GROUP && j < f->table[i]->nr; j++) {
			struct column_own *c = &f->table[i]->own[j];

			for (uint32_t g = 0; c->bound && c->whole && g < f->walk->group.nr && r >= 0; g++)
				if (!c->whole[g].c)
					r = whole_go_on(&c->whole[g], &c->whole[NO_GROUP],
						&(struct filter){.groups = UINT64_C(1) << g}, &f->sums);
		}
	f->nr_groups = f->walk->group.nr;
	return r;
}

/* Windows run by the ticks, once there is an instance. */
static int computed_tick(struct reading *f, struct computed *c)
{
	struct rows *rows = &c->column->rows;
	int r = rows_tick(rows, f->walk, ROWS_ALL);

	if (rows->nr_news)
		f->news[f->nr_news++] = (uint32_t)(c - f->computed);
	c->awake = rows->nr_busy || rows->nr_news || rows->changed || (rows->window_ns && rows->cap);
	return r;
}

/* Those of which nothing can be other than it was are passed over. */
static int computed_ticks(struct reading *f)
{
	const struct walk *s = f->walk;
	int r = 0;

	for (uint32_t i = 0; i < s->nr_sets; i++)
		f->moved_cols[i] = s->gap || s->set[i].occupants_changed ? UINT64_MAX : s->set[i].any_cols;
	f->nr_news = 0;
	for (size_t i = 0; i < f->nr; i++) {
		struct data_table_own *fr = f->table[i];
		struct computed *c = f->computed + fr->computed;

		fr->news = f->nr_news;
		for (const struct computed *end = c + fr->nr_computed; c < end && r >= 0; c++)
			if (c->awake || f->moved_cols[c->set] & c->cols)
				r = computed_tick(f, c);
		fr->nr_news = f->nr_news - fr->news;
	}
	return r;
}

static int columns_tick(struct reading *f)
{
	int r = f->nr_groups < f->walk->group.nr ? groups_begin(f) : 0;

	if (r >= 0)
		r = sums_tick(&f->sums, f->walk);
	return r < 0 ? r : computed_ticks(f);
}

/* ---- recordings ---- */

/* Rows of instances as they are at a tick, and what is computed of the ticks shortly before, need not be read
 * from the first tick on. Of groups and folds it matters which instances were there at some time. */
static bool may_pass_over(const struct reading *f)
{
	if (f->whole || f->of->options.whole || f->gathering ||
		!(f->of->from_s > (double)f->offset_ns / 1e9) || f->of->from_s > 9e9)
		return false;
	for (size_t i = 0; i < f->nr; i++) {
		const struct data_table_own *fr = f->table[i];

		if (fr->folded || fr->domain == DOMAIN_GROUP)
			return false;
		for (size_t j = 0; j < fr->nr; j++)
			if (fr->own[j].bound && !column_is_of_now(fr->own[j].bound, f->walk))
				return false;
	}
	return true;
}

/* The recording is open, and stands behind the tables. */
static int recording_bind(struct reading *f)
{
	int r = reading_bind(f);

	if (r >= 0 && may_pass_over(f))
		r = walk_seek(f->walk, round_i64(f->of->from_s * 1e9) - f->offset_ns);
	if (r >= 0 && f->of->options.follow)
		r = walk_follow(f->walk, f->of->run->path[f->recording]);
	return r;
}

static int recording_begin(struct reading *f)
{
	const char *path = f->of->run->path[f->recording];
	int64_t start = f->of->start_ns[f->recording];
	struct stat st;
	int r = walk_open(path, NULL, &f->walk);

	f->numbered_before = f->numbered;
	if (r < 0)
		return r;
	f->size = stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
	f->offset_ns = start > 0 ? start - f->of->first_ns : 0;
	if (f->of->events) {
		f->gathering = run_events_begin(
			f->of->events, f->walk, (uint32_t)f->recording, (double)f->offset_ns / 1e9);
		if (!f->gathering)
			return -ENOMEM;
		walk_observe(f->walk, (struct walk_observer *)f->gathering);
	}
	return f->walk->schema ? recording_bind(f) : 0;
}

/* There were too few ticks before the range in what was not passed over. */
static int recording_begin_whole(struct reading *f)
{
	reading_unbind(f);
	f->numbered = f->numbered_before;
	f->whole = true;
	return recording_begin(f);
}

/* What was asked for of it is read. */
static void take_damage(struct reading *f)
{
	struct store_health health;

	if (f->past)
		return;
	store_health(f->walk->reader, &health);
	f->damage.nr += health.damaged;
	f->damage.bytes += health.lost_bytes;
	f->past = true;
}

static int recording_end(struct reading *f)
{
	int r = 0;

	for (size_t i = 0; i < f->nr && r >= 0; i++) {
		struct data_table_own *fr = f->table[i];

		if (fr->late)
			r = data_table_settle(f, fr, true);
		if (r >= 0)
			r = data_table_window_close(f, fr);
	}
	take_damage(f);
	f->gathering = run_events_end(f->gathering);
	f->numbered += f->numbers.nr;
	reading_unbind(f);
	f->whole = f->past = false;
	f->recording++;
	if (f->of->events && f->recording == f->of->run->nr)
		run_events_sort(f->of->events);
	return r;
}

int reading_next(struct reading *f)
{
	double elapsed;
	int r;

	if (f->recording == f->of->run->nr)
		return 0;
	r = f->walk ? 0 : recording_begin(f);
	if (r >= 0)
		r = walk_next(f->walk);
	if (r == WALK_WAIT)
		return TABLES_WAIT;
	if (r <= 0)
		return r < 0 ? r : (r = recording_end(f)) < 0 ? r : 1;
	if (f->of->options.follow)
		f->of->stale |= schema_spare(f->walk->schema) < f->of->nr_spare;
	if (f->past)
		return 1;
	elapsed = (double)f->offset_ns / 1e9 + (double)f->walk->time_ns / 1e9;
	if (!walk_is_warm(f->walk) && !(elapsed < f->of->from_s)) {
		r = recording_begin_whole(f);
		return r < 0 ? r : 1;
	}
	r = columns_tick(f);
	for (size_t i = 0; i < f->nr && r >= 0; i++)
		r = data_table_tick(f, f->table[i]);
	if (r < 0 || !(elapsed > f->of->to_s))
		return r < 0 ? r : 1;
	if (f->gathering) /* what comes late is settled, too */
		take_damage(f);
	else
		r = recording_end(f);
	return r < 0 ? r : 1;
}
