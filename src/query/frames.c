/* A run as frames: recordings one after the other, each read once, tick by tick; then what is not of time.
 *
 * Metrics of the whole tree and of groups come one tick late (query/sums), and their frames with them. */
#include "query/frames_internal.h"

#include "query/moments.h"
#include "query/summary.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* ---- a tick ---- */

static bool is_inside(const struct frames *f, double elapsed)
{
	return !(elapsed < f->from_s) && !(elapsed > f->to_s);
}

/* The lines of a tick are whole. */
static int frame_emit(struct frames *f, struct frame_own *fr)
{
	if (!is_inside(f, fr->now.elapsed))
		return 0;
	return f->options.every_ns ? frame_window_add(f, fr, fr->now_ns) : frame_lines_push(f, fr, &fr->now);
}

/* Values of the tick that waits; those of groups that have just come begin. */
static int wholes_tick(struct frames *f, struct frame_own *fr, struct column_own *c, size_t field, bool end)
{
	uint32_t nr = fr->domain == DOMAIN_GROUP ? f->scene->group.nr : 1;
	double value[GROUPS_MOST];

	for (uint32_t i = 0; i < nr; i++) {
		struct whole *w = &c->whole[i];

		value[i] = NAN;
		if (end ? !w->c || !whole_end(w, &value[i]) : !w->c || !whole_tick(w, f->scene, &value[i]))
			value[i] = NAN;
	}
	for (uint32_t line = 0; fr->waits && line < fr->now.nr; line++) {
		int of = fr->domain == DOMAIN_GROUP ? fr->line[line].group : line ? -1 : 0;

		vector_put_real(&fr->now.col[field], line, of >= 0 && of < (int)nr ? value[of] : NAN);
	}
	return 0;
}

static int frame_settle(struct frames *f, struct frame_own *fr, bool end)
{
	int r = 0;

	for (size_t i = 0; i < fr->nr && r >= 0; i++)
		if (fr->own[i].source == SOURCE_WHOLE && fr->own[i].bound)
			r = wholes_tick(f, fr, &fr->own[i], i, end);
	if (r >= 0 && fr->waits)
		r = frame_emit(f, fr);
	fr->waits = false;
	return r;
}

static int frame_tick(struct frames *f, struct frame_own *fr)
{
	int64_t start = f->start_ns[f->recording], time_ns = f->scene->time_ns;
	int r = fr->late ? frame_settle(f, fr, false) : 0;

	if (r >= 0)
		r = fr->folded ? frame_fold(f, fr) : frame_update(f, fr);
	fr->span_ns = time_ns - fr->now_ns;
	fr->now_ns = time_ns;
	fr->now.has_time = start > 0 && !__builtin_add_overflow(start, time_ns, &fr->now.time_ns);
	fr->now.elapsed = (double)f->offset_ns / 1e9 + (double)time_ns / 1e9;
	fr->waits = fr->late;
	return r < 0 || fr->late ? r : frame_emit(f, fr);
}

/* Groups may be found at any tick: their sums begin with them. */
static int groups_begin(struct frames *f)
{
	int r = 0;

	for (size_t i = 0; i < f->nr; i++)
		for (size_t j = 0; f->frame[i].domain == DOMAIN_GROUP && j < f->frame[i].nr; j++) {
			struct column_own *c = &f->frame[i].own[j];

			for (uint32_t g = 0; c->bound && c->whole && g < f->scene->group.nr && r >= 0; g++)
				if (!c->whole[g].c)
					r = whole_init(&c->whole[g], c->bound,
						&(struct filter){.groups = UINT64_C(1) << g}, &f->sums);
		}
	f->nr_groups = f->scene->group.nr;
	return r;
}

static int computed_tick(struct frames *f, struct computed *c)
{
	const struct scene_set *set = &f->scene->set[c->set];
	struct rows *rows = &c->column->rows;
	int r;

	if (!(set->any_cols & c->cols) && !c->restless && !set->reseated && !f->scene->gap) {
		if (c->looked) {
			c->looked = rows->changed = false;
			rows->nr_looked = 0;
		}
		return 0;
	}
	r = rows_tick(rows, f->scene, ROWS_ALL);
	c->looked = true;
	c->restless = rows->nr_busy || c->column->bound->window_ns;
	return r;
}

static int columns_tick(struct frames *f)
{
	int r = f->nr_groups < f->scene->group.nr ? groups_begin(f) : 0;

	if (r >= 0)
		r = sums_tick(&f->sums, f->scene);
	for (size_t i = 0; i < f->nr_computed && r >= 0; i++)
		r = computed_tick(f, &f->computed[i]);
	return r;
}

static void tell(const struct frames *f)
{
	double done = f->size ? (double)store_reader_at(f->scene->reader) / (double)f->size : 0;

	if (f->options.progress && f->ticks % 64 == 0)
		progress_tell(f->options.progress, "exporting",
			((double)f->recording + MIN(done, 1.0)) / (double)MAX(f->run->nr, 1u));
}

/* ---- recordings ---- */

/* Rows of instances as they are at a tick, and what is computed of the ticks shortly before, need not be read
 * from the first tick on. Of groups it matters who was there at some time, and so it does of folds. */
static bool may_pass_over(const struct frames *f)
{
	if (f->whole || f->options.whole || f->gathering || !(f->from_s > (double)f->offset_ns / 1e9) ||
		f->from_s > 9e9)
		return false;
	for (size_t i = 0; i < f->nr; i++) {
		const struct frame_own *fr = &f->frame[i];

		if (fr->still >= 0)
			continue;
		if (fr->folded || fr->domain == DOMAIN_GROUP)
			return false;
		for (size_t j = 0; j < fr->nr; j++)
			if (fr->own[j].bound && !column_is_of_now(fr->own[j].bound, f->scene))
				return false;
	}
	return true;
}

/* The recording is open, and stands behind the frames. */
static int recording_bind(struct frames *f)
{
	int r = frames_bind(f);

	if (r >= 0 && may_pass_over(f))
		r = scene_seek(f->scene, round_i64(f->from_s * 1e9) - f->offset_ns);
	if (r >= 0 && f->options.follow)
		r = scene_follow(f->scene, f->run->path[f->recording]);
	return r;
}

static int recording_begin(struct frames *f)
{
	const char *path = f->run->path[f->recording];
	int64_t start = f->start_ns[f->recording];
	struct stat st;
	int r = scene_open(path, NULL, &f->scene);

	f->numbered_before = f->numbered;
	if (r < 0)
		return r;
	f->size = stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
	f->offset_ns = start > 0 ? start - f->first_ns : 0;
	if (f->moments) {
		f->gathering = moments_begin(
			f->moments, f->scene, (uint32_t)f->recording, (double)f->offset_ns / 1e9);
		if (!f->gathering)
			return -ENOMEM;
		scene_observe(f->scene, (struct scene_observer *)f->gathering);
	}
	return f->scene->schema ? recording_bind(f) : 0;
}

/* There were too few ticks before the range in what was not passed over. */
static int recording_begin_whole(struct frames *f)
{
	frames_unbind(f);
	f->numbered = f->numbered_before;
	f->whole = true;
	return recording_begin(f);
}

static int recording_end(struct frames *f)
{
	struct store_health health;
	int r = 0;

	for (size_t i = 0; i < f->nr && r >= 0; i++) {
		struct frame_own *fr = &f->frame[i];

		if (fr->still >= 0)
			continue;
		if (fr->late)
			r = frame_settle(f, fr, true);
		if (r >= 0)
			r = frame_window_close(f, fr);
	}
	store_health(f->scene->reader, &health);
	f->damage.nr += health.damaged;
	f->damage.bytes += health.lost_bytes;
	f->gathering = moments_end(f->gathering);
	frames_unbind(f);
	f->whole = false;
	f->recording++;
	if (f->moments && f->recording == f->run->nr)
		moments_sort(f->moments);
	return r;
}

/* Reads on by a tick; 0: the recordings are through; FRAMES_WAIT. */
static int time_next(struct frames *f)
{
	double elapsed;
	int r;

	if (!f->of_time || f->recording == f->run->nr)
		return 0;
	r = f->scene ? 0 : recording_begin(f);
	if (r >= 0)
		r = scene_next(f->scene);
	if (r == SCENE_WAIT)
		return FRAMES_WAIT;
	if (r <= 0)
		return r < 0 ? r : (r = recording_end(f)) < 0 ? r : 1;
	f->ticks++;
	tell(f);
	elapsed = (double)f->offset_ns / 1e9 + (double)f->scene->time_ns / 1e9;
	if (!scene_is_warm(f->scene) && !(elapsed < f->from_s)) {
		r = recording_begin_whole(f);
		return r < 0 ? r : 1;
	}
	r = columns_tick(f);
	for (size_t i = 0; i < f->nr && r >= 0; i++)
		if (f->frame[i].still < 0)
			r = frame_tick(f, &f->frame[i]);
	if (r >= 0 && elapsed > f->to_s) /* what comes late is settled, too */
		r = recording_end(f);
	return r < 0 ? r : 1;
}

static int still_frames_next(struct frames *f)
{
	for (; f->still < f->nr; f->still++) {
		int r = f->frame[f->still].still < 0 ? 0 : still_next(f, &f->frame[f->still]);

		if (r)
			return r;
	}
	return 0;
}

/* ---- for others ---- */

/* Who asks for the numbers of processes, or for their groups. */
static bool needs_processes(const struct frames *f)
{
	for (size_t i = 0; i < f->nr; i++)
		if (f->frame[i].of_processes || f->frame[i].still == STILL_PROCESSES ||
			f->frame[i].domain == DOMAIN_GROUP)
			return true;
	return false;
}

static bool has_still(const struct frames *f, enum still_frame which)
{
	for (size_t i = 0; i < f->nr; i++)
		if (f->frame[i].still == (int)which)
			return true;
	return false;
}

int frames_summary(struct frames *f, const struct summary **ret, struct buf *reterr)
{
	int r = f->summary ? 0 : summary_read(f->run, &f->summary, reterr);

	*ret = f->summary;
	return r;
}

static int may_follow(const struct frames *f, struct buf *reterr)
{
	bool still = false;

	for (size_t i = 0; i < f->nr; i++)
		still |= f->frame[i].still >= 0;
	if (f->run->nr == 1 && !still)
		return 0;
	buf_adds(reterr,
		still ? "only frames of time can be followed" : "one recording at a time is followed");
	return -EINVAL;
}

int frames_open(
	const struct run *run, const struct frames_options *options, struct frames **ret, struct buf *reterr)
{
	struct frames *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (r >= 0 && options->every_ns < 0)
		r = -EINVAL;
	if (r >= 0) {
		f->run = run;
		f->options = *options;
		f->from_s = isnan(options->from_s) ? -INFINITY : options->from_s;
		f->to_s = isnan(options->to_s) ? INFINITY : options->to_s;
		f->end = &f->first;
		r = frames_plan(f, reterr);
	}
	for (size_t i = 0; r >= 0 && i < f->nr; i++)
		f->of_time |= f->frame[i].still < 0;
	if (r >= 0 && f->options.follow)
		r = may_follow(f, reterr);
	else if (r >= 0 && needs_processes(f))
		r = f->options.summary || has_still(f, STILL_SUMMARY)
			? summary_read_with_processes(run, &f->summary, &f->processes, reterr)
			: process_table_read(run, &f->processes, reterr);
	if (r >= 0 && has_still(f, STILL_EVENTS) && f->of_time && isinf(f->to_s)) {
		f->moments = calloc(1, sizeof(*f->moments));
		r = f->moments ? 0 : -ENOMEM;
	}
	if (r < 0) {
		if (!reterr->len)
			buf_adds(reterr, strerror(-r));
		frames_close(f);
		return r;
	}
	f->options.domain = f->options.metric = NULL; /* the caller's: not needed any more */
	*ret = f;
	return 0;
}

struct frames *frames_close(struct frames *f)
{
	if (!f)
		return NULL;
	moments_end(f->gathering);
	frames_unbind(f);
	still_release(f);
	moments_free(f->moments);
	batches_free(f->first);
	batches_free(f->given);
	for (size_t i = 0; i < f->nr; i++) {
		struct frame_own *fr = &f->frame[i];

		frame_lines_release(fr, &fr->now);
		frame_window_release(fr);
		batches_free(fr->filling);
		batches_free(fr->spare);
		free(fr->line);
		free(fr->of_text);
		frame_own_release(fr);
	}
	for (size_t i = 0; i < f->nr_told; i++)
		frame_own_release(&f->told[i]);
	for (size_t i = 0; i < f->nr_absent; i++) {
		free(f->absent[i].frame);
		column_own_release(&f->absent[i].column);
	}
	for (size_t i = 0; f->host && i < f->run->nr; i++)
		free(f->host[i]);
	process_table_free(f->processes);
	summary_free(f->summary);
	free(f->absent);
	free(f->told);
	free(f->frame);
	free(f->face);
	free(f->start_ns);
	free(f->host);
	free(f);
	return NULL;
}

size_t frames_list(const struct frames *f, const struct frame **ret)
{
	*ret = f->face;
	return f->nr;
}

struct frames_damage frames_damage(const struct frames *f)
{
	return f->damage;
}

struct texts frames_texts(const struct frames *f, size_t frame, size_t field)
{
	const struct dictionary *d =
		frame < f->nr && field < f->frame[frame].nr ? f->frame[frame].own[field].texts : NULL;

	return d ? (struct texts){.text = d->text, .len = d->len, .nr = d->nr} : (struct texts){0};
}

static void take_back(struct frames *f)
{
	struct batch *b = f->given;

	if (!b)
		return;
	b->next = f->frame[b->frame].spare;
	f->frame[b->frame].spare = b;
	f->given = NULL;
}

int frames_next(struct frames *f, struct frame_batch *ret)
{
	struct batch *b;

	take_back(f);
	while (!f->first && !f->finished) {
		int r = time_next(f);

		if (r == FRAMES_WAIT) {
			for (size_t i = 0; i < f->nr; i++)
				frame_flush(f, &f->frame[i]);
			if (!f->first)
				return FRAMES_WAIT;
			break;
		}
		if (!r)
			r = still_frames_next(f);
		if (r < 0)
			return r;
		if (r)
			continue;
		for (size_t i = 0; i < f->nr; i++)
			frame_flush(f, &f->frame[i]);
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
	*ret = (struct frame_batch){.frame = b->frame,
		.nr_rows = b->nr,
		.cell = b->cell,
		.recording = b->recording,
		.held = &b->held};
	return 1;
}
