/* What a tick says holds since the tick before it, as everywhere in query/. What a process held and used
 * counts for the user that it was then.
 *
 * What the processes of a user hold is added up over nodes on a grid of the sampling interval (query/grid); a
 * single recording is followed tick by tick. */
#include "query/courses.h"

#include "base/owned.h"
#include "base/parallel.h"
#include "base/str.h"
#include "query/counter_sum.h"
#include "query/grid.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* As tracker.c: below that a rate is mostly rounding. */
#define SHORTEST_STEP_NS INT64_C(50000000)
/* Steps of the grids of users, of which there can be many, at least. */
#define USER_GRID_LEAST 1024

enum cpu_part {
	CPU_USER,
	CPU_NICE,
	CPU_SYSTEM,
	CPU_IRQ,
	CPU_SOFTIRQ,
	CPU_IDLE,
	CPU_IOWAIT,
	CPU_STEAL,
	NR_CPU_PARTS
};

static const char *const cpu_metric[NR_CPU_PARTS] = {"cpu.user", "cpu.nice", "cpu.system", "cpu.irq",
	"cpu.softirq", "cpu.idle", "cpu.iowait", "cpu.steal"};

/* A process as it goes along. */
struct process_track {
	bool bound;
	uint32_t user; /* index */
	uint64_t tick; /* of the recording, when it was bound */
	int64_t level[NR_LEVELS];
	uint32_t valid;
	int64_t since_ns; /* the levels hold since */
	double integral[NR_MEMORY_LEVELS], seconds[NR_MEMORY_LEVELS];
	int64_t cpu_ns, touched_ns, knot_ns,
		knot_cpu_ns; /* knots: where the present step of its cores began */
};

struct user_now {
	double uid;
	int64_t cpu_ns, level[NR_LEVELS];
	int64_t cpu_put_ns;	/* of that, on the grid */
	uint32_t nr[NR_LEVELS]; /* processes that contribute */
	struct tracker tracker; /* of a single recording */
	struct grid_pen pen;	/* of one of several */
};

struct course_reading {
	struct courses *all;
	const struct walk *walk;
	struct live_processes *live;
	uint32_t node;
	int64_t offset_ns;
	struct process_track **track; /* by row of the table; NULL: it was not there, or is gone */
	uint32_t nr_tracks;
	struct user_now *user;
	size_t nr_users;
	struct tracker nobody; /* as those of users that have not come yet */
	struct growth cpu[NR_CPU_PARTS];
	double most_cores;
	int64_t tick_ns, step_ns;
	uint64_t ticks, group_samples[GROUPS_MOST];
	bool begun, gap;
	int gpu_set; /* -1: not recorded */
	bool has_gpus;
};

struct courses {
	const struct run *run;
	struct course_node *node;
	struct course_user *user;
	size_t nr_users;
	struct tracker nobody;
	int64_t interval_ns; /* the longest */
	/* Of the grids of users, in the order of their coming: the more there are, the coarser. */
	struct grid_shape shape[COURSE_USERS_MOST];
	struct grid_totals of[PARALLEL_MOST]; /* by thread; numbers are indices of users */
	pthread_mutex_t lock;
};

static bool is_alone(const struct courses *all)
{
	return all->run->nr == 1;
}

/* The shortest time over which rates are told. */
static int64_t step_of(int64_t interval_ns)
{
	double interval_s = (double)interval_ns / 1e9;
	bool known = interval_ns >= 0 && interval_s < 1e6;

	return MAX(SHORTEST_STEP_NS, known ? (int64_t)(interval_s * 5e8) : 0);
}

static void begin(struct tracker *t, int64_t step_ns)
{
	tracker_init(t, (double)step_ns * 2e-9, true);
	tracker_begin(t, 0);
}

static double seconds_of(int64_t ns)
{
	return (double)ns / 1e9;
}

/* ---- users ---- */

static bool same_user(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Index of the user; made when it is new. Negative: no memory. */
static int64_t user_get(struct course_reading *c, double uid)
{
	struct user_now *u;

	for (size_t i = c->nr_users; i-- > 0;)
		if (same_user(c->user[i].uid, uid))
			return (int64_t)i;
	if (c->nr_users + 1 >= COURSE_USERS_MOST && !isnan(uid))
		return user_get(c, NAN);
	u = ARRAY_ADD(c->user, c->nr_users);
	if (!u)
		return -ENOMEM;
	u->uid = uid;
	u->tracker = c->nobody;
	return (int64_t)c->nr_users - 1;
}

static void user_count(struct course_reading *c, const struct process_track *track, bool in)
{
	struct user_now *u = &c->user[track->user];

	for (uint32_t rest = track->valid; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		uint64_t value = (uint64_t)track->level[i];

		u->level[i] = (int64_t)((uint64_t)u->level[i] + (in ? value : -value));
		u->nr[i] += in ? 1 : -1u;
	}
}

/* The same levels, with other values. */
static void user_change(struct user_now *u, const struct process_track *track, const struct live_process *p)
{
	for (uint32_t rest = p->level_valid; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		u->level[i] = wrap_add(u->level[i], wrap_sub(p->level[i], track->level[i]));
	}
}

static void user_used(struct user_now *u, int64_t before_ns, int64_t cpu_ns)
{
	if (cpu_ns > before_ns)
		u->cpu_ns = wrap_add(u->cpu_ns, wrap_sub(cpu_ns, before_ns));
}

static uint32_t user_valid(const struct user_now *u)
{
	uint32_t valid = UINT32_C(1) << LEVEL_PROCESSES;

	for (unsigned k = 0; k < NR_LEVELS; k++)
		if (u->nr[k])
			valid |= UINT32_C(1) << k;
	return valid;
}

static int user_put(struct course_reading *c, size_t i, int64_t before_ns)
{
	struct user_now *u = &c->user[i];
	int64_t used = c->gap ? 0 : u->cpu_ns - u->cpu_put_ns;
	int r = u->pen.held ? 0 : grid_pen_init(&u->pen, &c->all->shape[i], c->offset_ns, before_ns);

	u->cpu_put_ns = u->cpu_ns;
	return r < 0 ? r : grid_pen_tick(&u->pen, c->tick_ns, u->level, user_valid(u), &used, NULL);
}

static int take_users(struct course_reading *c, int64_t before_ns)
{
	static const int64_t nothing[NR_LEVELS];
	double time = seconds_of(c->tick_ns);
	int r = 0;

	for (size_t i = 0; !is_alone(c->all) && i < c->nr_users && r >= 0; i++)
		r = user_put(c, i, before_ns);
	if (!is_alone(c->all))
		return r;
	tracker_cpu(&c->nobody, time, 0, c->gap);
	tracker_levels(&c->nobody, time, nothing, UINT32_C(1) << LEVEL_PROCESSES);
	for (size_t i = 0; i < c->nr_users; i++) {
		struct user_now *u = &c->user[i];

		tracker_cpu(&u->tracker, time, seconds_of(u->cpu_ns), c->gap);
		tracker_levels(&u->tracker, time, u->level, user_valid(u));
	}
	return 0;
}

/* ---- one process ---- */

static int track_new(struct course_reading *c, uint32_t at, struct process_row *row)
{
	struct process_track **track =
		at < c->nr_tracks ? c->track : array_reach(c->track, &c->nr_tracks, at, sizeof(*track));

	if (!track)
		return -ENOMEM;
	c->track = track;
	c->track[at] = calloc(1, sizeof(**track));
	if (!c->track[at])
		return -ENOMEM;
	if (row->course)
		return 0;
	row->course = calloc(1, sizeof(*row->course));
	if (!row->course)
		return -ENOMEM;
	row->course->cores_peak = row->course->cores_peak_at = NAN;
	for (unsigned k = 0; k < NR_MEMORY_LEVELS; k++)
		row->course->mean[k] = row->course->peak[k] = row->course->peak_at[k] = NAN;
	return 0;
}

int course_bind(struct course_reading *c, uint32_t at, struct process_row *row)
{
	int64_t user = user_get(c, row->value[PROCESS_UID]);
	int r = at < c->nr_tracks && c->track[at] ? 0 : track_new(c, at, row);
	struct process_track *track;

	if (r < 0 || user < 0)
		return -ENOMEM;
	track = c->track[at];
	if (track->bound && track->user == (uint32_t)user)
		return 0;
	if (track->bound) {
		user_count(c, track, false);
	} else {
		track->bound = true;
		track->tick = c->ticks;
		track->since_ns = c->tick_ns;
		track->valid = UINT32_C(1) << LEVEL_PROCESSES;
		track->level[LEVEL_PROCESSES] = 1;
	}
	track->user = (uint32_t)user;
	user_count(c, track, true);
	return 0;
}

/* The levels held from since_ns up to here. */
static void track_hold(struct process_track *track, int64_t until_ns)
{
	double seconds = seconds_of(until_ns - track->since_ns);

	if (!(seconds > 0))
		return;
	for (unsigned i = 0; i < NR_MEMORY_LEVELS; i++)
		if (track->valid >> i & 1) {
			track->integral[i] += (double)track->level[i] * seconds;
			track->seconds[i] += seconds;
		}
	track->since_ns = until_ns;
}

/* Of one that has ended the end is known; any other is only known to have been there at the last tick. */
static void track_unbind(struct course_reading *c, struct process_track *track, struct process_row *row)
{
	double end_s = row->ended ? row->value[PROCESS_END] : 0;

	if (!track->bound)
		return;
	track_hold(track, MAX(c->tick_ns, (int64_t)(MIN(MAX(end_s, 0), 9e9) * 1e9)));
	user_count(c, track, false);
	row->course->samples += c->ticks - track->tick;
	track->bound = false;
	track->valid = 0;
}

/* How fast it ran over the step that ends here, if it is long enough. */
static void cores_step(const struct course_reading *c, struct process_course *out,
	struct process_track *track, int64_t cpu_ns, int64_t time_ns)
{
	int64_t elapsed = time_ns - track->knot_ns;
	double cores;

	if (elapsed < c->step_ns)
		return;
	cores = MIN((double)(cpu_ns - track->knot_cpu_ns) / (double)elapsed, c->most_cores);
	if (!(out->cores_peak >= cores)) {
		out->cores_peak = cores;
		out->cores_peak_at = seconds_of(time_ns);
	}
	track->knot_ns = time_ns;
	track->knot_cpu_ns = cpu_ns;
}

static void take_cpu(struct course_reading *c, const struct process_row *row, struct process_track *track,
	const struct live_process *p, int64_t time_ns)
{
	int64_t used = process_used(p, USED_CPU);

	if (!(p->part_seen >> USED_CPU & 1))
		return;
	if (!row->course->sampled) { /* one that we came too late for began before, with what is not counted
				      */
		double start = row->value[PROCESS_START] * 1e9;

		track->knot_ns =
			p->late || !(start >= 0 && start < (double)time_ns) ? time_ns : (int64_t)start;
		track->knot_cpu_ns = track->knot_ns == time_ns ? used : 0;
		row->course->sampled = true;
	} else if (track->touched_ns < c->tick_ns && time_ns - c->tick_ns >= c->step_ns) {
		track->knot_ns = c->tick_ns; /* it did nothing up to the tick before */
		track->knot_cpu_ns = track->cpu_ns;
	}
	user_used(&c->user[track->user], track->cpu_ns, used);
	track->cpu_ns = MAX(track->cpu_ns, used);
	cores_step(c, row->course, track, used, time_ns);
	track->touched_ns = time_ns;
}

static bool has_levels(const struct process_track *track, const struct live_process *p, uint32_t valid)
{
	if (track->valid != valid)
		return false;
	for (uint32_t rest = p->level_valid; rest; rest &= rest - 1)
		if (track->level[__builtin_ctz(rest)] != p->level[__builtin_ctz(rest)])
			return false;
	return true;
}

static void take_levels(struct course_reading *c, struct process_course *out, struct process_track *track,
	const struct live_process *p, int64_t time_ns)
{
	uint32_t valid = p->level_valid | UINT32_C(1) << LEVEL_PROCESSES;

	track_hold(track, time_ns);
	if (has_levels(track, p, valid))
		return;
	if (track->valid == valid)
		user_change(&c->user[track->user], track, p);
	else
		user_count(c, track, false);
	memcpy(track->level, p->level, sizeof(track->level));
	track->level[LEVEL_PROCESSES] = 1;
	if (track->valid != valid) {
		track->valid = valid;
		user_count(c, track, true);
	}
	for (unsigned i = 0; i < NR_MEMORY_LEVELS; i++) {
		double level = (double)p->level[i];

		if (!(valid >> i & 1) || out->peak[i] >= level)
			continue;
		out->peak[i] = level;
		out->peak_at[i] = seconds_of(time_ns);
	}
}

int course_gone(struct course_reading *c, uint32_t at, struct process_row *row, int64_t time_ns)
{
	struct process_track *track = at < c->nr_tracks ? c->track[at] : NULL;
	int64_t cpu_ns = 0, user = track ? track->user : user_get(c, row->value[PROCESS_UID]);
	double cpu = row->value[PROCESS_CPU] * 1e9;

	if (user < 0)
		return -ENOMEM;
	if (cpu > 0 && cpu < 9e18)
		cpu_ns = round_i64(cpu);
	if (cpu_ns && track && row->course->sampled && track->bound)
		cores_step(c, row->course, track, MAX(cpu_ns, track->cpu_ns), time_ns);
	user_used(&c->user[user], track ? track->cpu_ns : 0, cpu_ns);
	if (!track)
		return 0;
	track_unbind(c, track, row);
	for (unsigned i = 0; i < NR_MEMORY_LEVELS; i++)
		row->course->mean[i] =
			track->seconds[i] > 0 ? track->integral[i] / track->seconds[i] : row->course->peak[i];
	free(track);
	c->track[at] = NULL;
	return 0;
}

/* ---- one recording ---- */

void course_lost(struct course_reading *c, struct process_row *row)
{
	for (uint32_t i = 0; i < c->nr_tracks; i++)
		if (c->track[i])
			track_unbind(c, c->track[i], &row[i]);
	c->gap = true;
}

static void take_processes(struct course_reading *c, struct process_row *row, const struct idmap *index)
{
	struct table *t = c->live->at.set < 0 ? NULL : walk_table(c->walk, (uint32_t)c->live->at.set);
	int64_t time_ns = c->walk->time_ns;

	for (uint32_t i = 0; t && i < t->nr_touched; i++) {
		struct live_process *p = live_in_row(c->live, t, t->touched[i]);
		struct process_track *track;

		if (!p)
			continue;
		if (!p->place) {
			uint32_t at = idmap_get(index, p->id);

			p->place = at == IDMAP_NONE ? 0 : at + 1;
		}
		track = p->place && p->place <= c->nr_tracks ? c->track[p->place - 1] : NULL;
		if (!track || !track->bound)
			continue;
		take_cpu(c, &row[p->place - 1], track, p, time_ns);
		take_levels(c, row[p->place - 1].course, track, p, time_ns);
	}
}

void course_meta(struct course_reading *c)
{
	int64_t interval_ns = -1, cpus = -1;

	meta_num(&c->walk->meta, "interval_ns", &interval_ns);
	meta_num(&c->walk->meta, "nr_cpus", &cpus);
	c->step_ns = step_of(interval_ns);
	c->most_cores = cpus >= 0 ? (double)cpus : INFINITY;
}

void course_schema(struct course_reading *c)
{
	for (unsigned i = 0; i < NR_CPU_PARTS; i++)
		growth_bind(&c->cpu[i], c->walk->schema, cpu_metric[i]);
	c->gpu_set = schema_find_domain(c->walk->schema, DOMAIN_GPU);
}

static bool has_rows(const struct walk *walk, int set)
{
	return set >= 0 && walk_table(walk, (uint32_t)set)->nr_rows;
}

int course_tick(struct course_reading *c, struct process_row *row, const struct idmap *index)
{
	int64_t before_ns = c->tick_ns;
	int r = 0;

	if (!c->begun)
		begin(&c->nobody, c->step_ns);
	for (size_t i = 0; !c->begun && i < c->nr_users; i++)
		c->user[i].tracker = c->nobody;
	c->begun = true;
	take_processes(c, row, index);
	/* What is in a group now was read for it now. */
	for (unsigned i = 0; i < c->walk->group.nr; i++)
		c->group_samples[i] += c->live->line[i + 1].nr;
	for (unsigned i = 0; i < NR_CPU_PARTS && r >= 0; i++)
		r = growth_tick(&c->cpu[i], c->walk);
	c->has_gpus =
		c->has_gpus || has_rows(c->walk, c->gpu_set) || has_rows(c->walk, c->walk->gpu_process_set);
	c->ticks++;
	c->tick_ns = c->walk->time_ns;
	if (r >= 0)
		r = take_users(c, before_ns);
	c->gap = false;
	return r;
}

int course_open(struct courses *all, uint32_t node, int64_t offset_ns, struct live_processes *live,
	struct course_reading **ret)
{
	struct course_reading *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct course_reading){.all = all,
		.walk = live->walk,
		.live = live,
		.node = node,
		.offset_ns = offset_ns,
		.gpu_set = -1};
	course_meta(c);
	for (unsigned i = 0; i < NR_CPU_PARTS; i++)
		growth_init(&c->cpu[i], GROWTH_ADDED);
	*ret = c;
	return 0;
}

struct course_reading *course_close(struct course_reading *c)
{
	if (!c)
		return NULL;
	for (uint32_t i = 0; i < c->nr_tracks; i++)
		free(c->track[i]);
	free(c->track);
	for (size_t i = 0; i < c->nr_users; i++) {
		tracker_release(&c->user[i].tracker);
		grid_pen_release(&c->user[i].pen);
	}
	free(c->user);
	for (unsigned i = 0; i < NR_CPU_PARTS; i++)
		growth_release(&c->cpu[i]);
	free(c);
	return NULL;
}

/* Those that have not ended. */
static void finish_tracks(struct course_reading *c, struct process_row *row)
{
	for (uint32_t i = 0; i < c->nr_tracks; i++) {
		struct process_track *track = c->track[i];

		if (!track)
			continue;
		track_unbind(c, track, &row[i]);
		for (unsigned k = 0; k < NR_MEMORY_LEVELS; k++)
			row[i].course->mean[k] = track->seconds[k] > 0
				? track->integral[k] / track->seconds[k]
				: row[i].course->peak[k];
	}
}

static void finish_process(const struct course_reading *c, const struct process_row *row)
{
	double mean = row->value[PROCESS_CPU] / row->value[PROCESS_WALL];
	struct process_course *out = row->course;

	for (unsigned i = 0; i < NR_MEMORY_LEVELS; i++)
		out->mean[i] = isnan(out->peak[i]) ? NAN : MIN(out->mean[i], out->peak[i]);
	out->cores_peak = isnan(out->cores_peak) ? NAN : MIN(out->cores_peak, c->most_cores);
	if (isfinite(mean) && !(out->cores_peak >= mean) && out->sampled) {
		out->cores_peak = mean;
		out->cores_peak_at = NAN;
	}
}

/* A counter that was never there is no part of the sum, but without user and idle nothing is told. Beside the
 * CPUs stands their total: it changes no share. */
static int finish_node(struct course_reading *c)
{
	struct course_node *out = &c->all->node[c->node];

	out->cpu_user_s = out->cpu_idle_s = out->cpu_all_s = NAN;
	if (c->cpu[CPU_USER].any && c->cpu[CPU_IDLE].any) {
		out->cpu_user_s = c->cpu[CPU_USER].grown + c->cpu[CPU_NICE].grown;
		out->cpu_idle_s = c->cpu[CPU_IDLE].grown;
		out->cpu_all_s = 0;
		for (unsigned k = 0; k < NR_CPU_PARTS; k++)
			out->cpu_all_s += c->cpu[k].grown;
	}
	out->has_gpus = c->has_gpus;
	out->nr_groups = c->walk->group.nr;
	out->group_samples = calloc(MAX(out->nr_groups, 1u), sizeof(*out->group_samples));
	if (!out->group_samples)
		return -ENOMEM;
	memcpy(out->group_samples, c->group_samples, out->nr_groups * sizeof(*out->group_samples));
	return 0;
}

/* A name that only this recording, or an earlier one than before, has. */
static int take_name(struct course_user *u, const struct meta *meta, size_t node)
{
	const struct meta_item *found = isnan(u->uid) ? NULL : meta_user(meta, round_i64(u->uid));
	struct buf name;

	if (!found || (u->name && u->named_by <= node))
		return 0;
	buf_init(&name, 4096);
	escape_bytes(&name, found->value, found->len);
	free(u->name);
	u->name = name.err ? NULL : strdup((char *)name.data);
	u->named_by = node;
	buf_release(&name);
	return u->name ? 0 : -ENOMEM;
}

/* The user among those of the run; made when it is new. Negative: no memory. */
static int64_t user_of_run(struct courses *all, double uid)
{
	struct course_user *u;

	for (size_t i = 0; i < all->nr_users; i++)
		if (same_user(all->user[i].uid, uid))
			return (int64_t)i;
	if (all->nr_users + 1 >= COURSE_USERS_MOST && !isnan(uid))
		return user_of_run(all, NAN);
	u = ARRAY_ADD(all->user, all->nr_users);
	if (!u)
		return -ENOMEM;
	u->uid = uid;
	return (int64_t)all->nr_users - 1;
}

static int finish_users(struct course_reading *c, unsigned worker)
{
	struct courses *all = c->all;
	int r = 0;

	pthread_mutex_lock(&all->lock);
	if (is_alone(all))
		all->nobody = c->nobody;
	for (size_t i = 0; i < c->nr_users && r >= 0; i++) {
		struct user_now *u = &c->user[i];
		int64_t at = user_of_run(all, u->uid);

		r = at < 0 ? -ENOMEM : take_name(&all->user[at], &c->walk->meta, c->node);
		if (r >= 0 && is_alone(all)) {
			all->user[at].tracker = u->tracker;
			u->tracker = (struct tracker){0};
		} else if (r >= 0 && u->pen.held) {
			r = grid_totals_add(&all->of[worker], NULL, (size_t)at, &u->pen, 0);
		}
	}
	pthread_mutex_unlock(&all->lock);
	return r;
}

int course_finish(struct course_reading *c, unsigned worker, struct process_row *row, size_t nr)
{
	int r;

	if (!c->begun) {
		begin(&c->nobody, c->step_ns);
		for (size_t i = 0; i < c->nr_users; i++)
			c->user[i].tracker = c->nobody;
	}
	finish_tracks(c, row);
	for (size_t i = 0; i < nr; i++)
		if (row[i].course)
			finish_process(c, &row[i]);
	r = finish_node(c);
	return r < 0 ? r : finish_users(c, worker);
}

/* ---- the run ---- */

int courses_new(const struct run *run, int64_t interval_ns, struct courses **ret)
{
	struct courses *all = calloc(1, sizeof(*all));
	int64_t step_ns = 2 * step_of(interval_ns);

	if (!all)
		return -ENOMEM;
	all->run = run;
	all->node = calloc(run->nr, sizeof(*all->node));
	pthread_mutex_init(&all->lock, NULL);
	begin(&all->nobody, step_of(interval_ns));
	for (size_t i = 0; i < COURSE_USERS_MOST; i++)
		all->shape[i] = (struct grid_shape){.step_ns = step_ns,
			.most = MAX(GRID_MOST / (i + 1), USER_GRID_LEAST),
			.nr_levels = NR_LEVELS,
			.nr_flows = 1};
	if (!all->node) {
		courses_free(all);
		return -ENOMEM;
	}
	*ret = all;
	return 0;
}

struct courses *courses_free(struct courses *all)
{
	if (!all)
		return NULL;
	for (size_t i = 0; all->node && i < all->run->nr; i++)
		free(all->node[i].group_samples);
	free(all->node);
	for (size_t i = 0; i < all->nr_users; i++) {
		tracker_release(&all->user[i].tracker);
		free(all->user[i].name);
	}
	free(all->user);
	grid_totals_release(all->of, PARALLEL_MOST);
	free(all);
	return NULL;
}

static int track_user(struct tracker *t, struct grid_total *line)
{
	int64_t used = 0;
	struct grid *g;
	int r = grid_sum_whole(&line->sum, &g);

	for (size_t k = 0; r >= 0 && k < g->nr; k++) {
		const int64_t *nr = grid_counts(g, k);
		double time = seconds_of(grid_time_ns(g, k));
		uint32_t valid = 0;

		used = wrap_add(used, *grid_flows(g, k));
		for (unsigned level = 0; level < NR_LEVELS; level++)
			valid |= (uint32_t)(nr[level] > 0) << level;
		tracker_cpu(t, time, seconds_of(used), false);
		tracker_levels(t, time, grid_levels(g, k), valid);
	}
	return r;
}

int courses_finish(struct courses *all)
{
	int r = is_alone(all) ? 0 : grid_totals_merge(all->of, PARALLEL_MOST);

	/* A single user is the whole run, of which the summary knows more. */
	for (size_t i = 0; !is_alone(all) && i < all->nr_users; i++)
		all->user[i].tracker = all->nobody;
	for (size_t i = 0; all->nr_users > 1 && i < all->of[0].nr && r >= 0; i++)
		r = track_user(&all->user[all->of[0].line[i].number].tracker, &all->of[0].line[i]);
	grid_totals_release(all->of, PARALLEL_MOST);
	return r;
}

const struct course_node *courses_node(const struct courses *all, size_t node)
{
	return &all->node[node];
}

const struct course_user *courses_user(const struct courses *all, double uid)
{
	for (size_t i = 0; i < all->nr_users; i++)
		if (same_user(all->user[i].uid, uid))
			return &all->user[i];
	return NULL;
}

const struct tracker *courses_nobody(const struct courses *all)
{
	return &all->nobody;
}
