/* One more pass over all recordings, each read by one of several threads. What the processes of a user hold,
 * and what the job's GPUs do, is added up over nodes on a grid of the sampling interval (query/grid); memory
 * grows with the processes and not with the length. A single recording is followed tick by tick.
 *
 * What a tick says holds since the tick before it, as everywhere in query/.
 *
 * Rejected: a curves of curves by process. It keeps the top ones only, and 100,000 short processes have no
 * curve worth its memory; their means and peaks are a few numbers each. */
#include "query/stats_pass.h"

#include "base/parallel.h"
#include "base/str.h"
#include "query/grid.h"
#include "query/counter_sum.h"
#include "query/live_processes.h"
#include "query/stats_gpus.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* As tracker.c: below that a rate is mostly rounding. */
#define SHORTEST_STEP_NS INT64_C(50000000)
#define USERS_MOST 1024
/* Steps of the grids of users, of which there can be many, at least. */
#define USER_GRID_LEAST 1024
#define SHORTEST_GRID_STEP_NS INT64_C(1000000)
/* Power is added up in whole milliwatts, memory in bytes. */
#define MILLIWATTS 1000

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

/* A process as it goes along; by row of the process table. */
struct process_track {
	bool bound, sampled;
	uint64_t tick; /* of the recording, when it was bound */
	int64_t level[NR_LEVELS];
	uint32_t valid;
	int64_t since_ns; /* the levels hold since */
	double integral[NR_MEMORY_LEVELS], seconds[NR_MEMORY_LEVELS];
	int64_t cpu_ns, touched_ns, knot_ns,
		knot_cpu_ns; /* knots: where the present step of its cores began */
};

struct user_now {
	int64_t cpu_ns, level[NR_LEVELS];
	int64_t cpu_put_ns;	/* of that, on the grid */
	uint32_t nr[NR_LEVELS]; /* processes that contribute */
};

struct stats_node_pass { /* one recording */
	struct walk_observer observer;
	struct stats_pass *pass;
	struct walk *walk;
	size_t at; /* in the run */
	struct store_reader *reader;
	struct live_processes live;
	struct meta meta;
	struct idmap row_of; /* id -> row of the process table */
	struct growth cpu[NR_CPU_PARTS];
	struct stats_gpus gpus;
	double offset_s, wall_s, most_cores;
	int64_t tick_ns, step_ns;
	uint64_t ticks;
	bool gap;
	int group[GROUPS_MOST];	 /* of the recording -> of the summary; -1: not there */
	unsigned nr_groups;	 /* that were looked up */
	uint64_t *group_samples; /* by group of the summary */
	struct user_now *user;
	/* Of one of several: by user, and by sum where there is anything. */
	struct grid_pen *user_pen, *sum_pen;
};

struct stats_pass {
	const struct run *run;
	const struct summary *summary;
	const struct process_table *table;
	struct stats_found *found;
	struct process_track *track;
	size_t nr_sums;
	uint32_t *row, *first_row; /* rows of the process table by recording, and where those of each begin */
	struct grid_shape users, sums;
	struct grid_totals user[PARALLEL_MOST], sum[PARALLEL_MOST]; /* by thread */
	pthread_mutex_t lock;					    /* of what is added up here */
};

static bool is_alone(const struct stats_pass *w)
{
	return w->run->nr == 1;
}

/* The shortest time over which rates are told. */
static int64_t step_of(const struct summary *s)
{
	bool known = has_figure(s, FIG_INTERVAL) && s->figure[FIG_INTERVAL].value < 1e6;

	return MAX(SHORTEST_STEP_NS, known ? (int64_t)(s->figure[FIG_INTERVAL].value * 5e8) : 0);
}

static double stats_node_pass_time(const struct stats_node_pass *n)
{
	return n->offset_s + (double)n->tick_ns / 1e9;
}

/* ---- one process ---- */

static void user_count(struct stats_pass *w, const struct stats_node_pass *n, size_t row, bool in)
{
	struct user_now *u = &n->user[stats_pass_user_of(w->found, &w->table->row[row])];
	const struct process_track *track = &w->track[row];

	for (unsigned i = 0; i < NR_LEVELS; i++) {
		uint64_t value = (uint64_t)track->level[i];

		if (!(track->valid >> i & 1))
			continue;
		u->level[i] = (int64_t)((uint64_t)u->level[i] + (in ? value : -value));
		u->nr[i] += in ? 1 : -1u;
	}
}

static void user_used(struct stats_pass *w, const struct stats_node_pass *n, size_t row, int64_t cpu_ns)
{
	struct user_now *u = &n->user[stats_pass_user_of(w->found, &w->table->row[row])];
	struct process_track *track = &w->track[row];

	if (cpu_ns > track->cpu_ns) {
		u->cpu_ns = (int64_t)((uint64_t)u->cpu_ns + ((uint64_t)cpu_ns - (uint64_t)track->cpu_ns));
		track->cpu_ns = cpu_ns;
	}
}

/* The levels held from since_ns up to here. */
static void track_hold(struct process_track *track, int64_t until_ns)
{
	double seconds = (double)(until_ns - track->since_ns) / 1e9;

	if (!(seconds > 0))
		return;
	for (unsigned i = 0; i < NR_MEMORY_LEVELS; i++)
		if (track->valid >> i & 1) {
			track->integral[i] += (double)track->level[i] * seconds;
			track->seconds[i] += seconds;
		}
	track->since_ns = until_ns;
}

static void track_bind(struct stats_pass *w, const struct stats_node_pass *n, size_t row)
{
	struct process_track *track = &w->track[row];

	if (track->bound)
		return;
	track->bound = true;
	track->tick = n->ticks;
	track->since_ns = n->tick_ns;
	track->valid = UINT32_C(1) << LEVEL_PROCESSES;
	track->level[LEVEL_PROCESSES] = 1;
	user_count(w, n, row, true);
}

static void track_unbind(struct stats_pass *w, const struct stats_node_pass *n, size_t row)
{
	double end_s = w->table->row[row].ended ? w->table->row[row].value[PROCESS_END] : 0;
	struct process_track *track = &w->track[row];

	if (!track->bound)
		return;
	/* Of one that has ended the end is known; any other is only known to have been there at the last
	 * tick. */
	track_hold(track, MAX(n->tick_ns, (int64_t)(MIN(MAX(end_s, 0), 9e9) * 1e9)));
	user_count(w, n, row, false);
	w->found->process[row].samples += n->ticks - track->tick;
	track->bound = false;
	track->valid = 0;
}

/* How fast it ran over the step that ends here, if it is long enough. */
static void cores_step(struct stats_pass_process *out, struct process_track *track,
	const struct stats_node_pass *n, int64_t cpu_ns, int64_t time_ns)
{
	int64_t elapsed = time_ns - track->knot_ns;
	double cores;

	if (elapsed < n->step_ns)
		return;
	cores = MIN((double)(cpu_ns - track->knot_cpu_ns) / (double)elapsed, n->most_cores);
	if (!(out->cores_peak >= cores)) {
		out->cores_peak = cores;
		out->cores_peak_at = n->offset_s + (double)time_ns / 1e9;
	}
	track->knot_ns = time_ns;
	track->knot_cpu_ns = cpu_ns;
}

static void take_cpu(struct stats_pass *w, const struct stats_node_pass *n, size_t row,
	const struct live_process *p, int64_t time_ns)
{
	struct process_track *track = &w->track[row];
	int64_t used = process_used(p, USED_CPU);

	if (!(p->part_seen >> USED_CPU & 1))
		return;
	if (!track->sampled) { /* one that we came too late for began before, with what is not counted */
		double start = w->table->row[row].value[PROCESS_START] * 1e9;

		track->knot_ns =
			p->late || !(start >= 0 && start < (double)time_ns) ? time_ns : (int64_t)start;
		track->knot_cpu_ns = track->knot_ns == time_ns ? used : 0;
		track->sampled = true;
	} else if (track->touched_ns < n->tick_ns && time_ns - n->tick_ns >= n->step_ns) {
		track->knot_ns = n->tick_ns; /* it did nothing up to the tick before */
		track->knot_cpu_ns = track->cpu_ns;
	}
	user_used(w, n, row, used);
	cores_step(&w->found->process[row], track, n, used, time_ns);
	track->touched_ns = time_ns;
}

static void take_levels(struct stats_pass *w, const struct stats_node_pass *n, size_t row,
	const struct live_process *p, int64_t time_ns)
{
	struct stats_pass_process *out = &w->found->process[row];
	struct process_track *track = &w->track[row];

	track_hold(track, time_ns);
	user_count(w, n, row, false);
	memcpy(track->level, p->level, sizeof(track->level));
	track->level[LEVEL_PROCESSES] = 1;
	track->valid = p->level_valid | UINT32_C(1) << LEVEL_PROCESSES;
	user_count(w, n, row, true);
	for (unsigned i = 0; i < NR_MEMORY_LEVELS; i++) {
		double level = (double)p->level[i];

		if (!(track->valid >> i & 1) || out->peak[i] >= level)
			continue;
		out->peak[i] = level;
		out->peak_at[i] = n->offset_s + (double)time_ns / 1e9;
	}
}

static void take_processes(struct stats_pass *w, struct stats_node_pass *n, int64_t time_ns)
{
	struct table *t = n->live.at.set < 0 ? NULL : store_reader_table(n->reader, (uint32_t)n->live.at.set);

	if (!t)
		return;
	live_tick(&n->live);
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t id = t->id[t->touched[i]],
			 row = id == ROW_FREE ? IDMAP_NONE : idmap_get(&n->row_of, id);
		const struct live_process *p = row == IDMAP_NONE ? NULL : live_find(&n->live, id);

		if (!p || !w->track[row].bound)
			continue;
		take_cpu(w, n, row, p, time_ns);
		take_levels(w, n, row, p, time_ns);
	}
}

/* ---- one recording ---- */

static void take_gone(struct stats_pass *w, struct stats_node_pass *n, const struct store_record *record)
{
	uint32_t row = idmap_get(&n->row_of, record->id);
	double cpu;

	if (row == IDMAP_NONE)
		return;
	cpu = w->table->row[row].value[PROCESS_CPU] * 1e9;
	if (cpu > 0 && cpu < 9e18) {
		if (w->track[row].sampled && w->track[row].bound)
			cores_step(&w->found->process[row], &w->track[row], n,
				MAX(round_i64(cpu), w->track[row].cpu_ns), record->time_ns);
		user_used(w, n, row, round_i64(cpu));
	}
	track_unbind(w, n, row);
}

static void unbind_all(struct stats_pass *w, const struct stats_node_pass *n)
{
	for (uint32_t i = 0; i < n->live.nr; i++) {
		uint32_t row = idmap_get(&n->row_of, n->live.process[i].id);

		if (row != IDMAP_NONE)
			track_unbind(w, n, row);
	}
}

static int on_instance(struct stats_pass *w, struct stats_node_pass *n, const struct store_record *record)
{
	uint32_t row;
	int r = 0;

	if (n->live.at.set >= 0 && record->set == (uint32_t)n->live.at.set) {
		r = live_join(&n->live, record);
		row = idmap_get(&n->row_of, record->id);
		if (r >= 0 && row != IDMAP_NONE && record->row != STORE_NO_ROW)
			track_bind(w, n, row);
		return r;
	}
	return stats_gpus_instance(&n->gpus, record, stats_node_summary(w->summary, n->at));
}

static void on_schema(struct stats_node_pass *n)
{
	const struct schema *schema = store_reader_schema(n->reader);

	live_bind(&n->live, schema);
	for (unsigned i = 0; i < NR_CPU_PARTS; i++)
		growth_bind(&n->cpu[i], schema, cpu_metric[i]);
	stats_gpus_bind(&n->gpus, schema);
}

static int group_find(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_groups; i++)
		if (!strcmp(s->group[i].name, name))
			return (int)i;
	return -1;
}

/* Who is in a group now was read for it now. */
static void take_groups(struct stats_pass *w, struct stats_node_pass *n)
{
	for (; n->nr_groups < n->walk->group.nr; n->nr_groups++)
		n->group[n->nr_groups] = group_find(w->summary, n->walk->group.item[n->nr_groups].name);
	for (unsigned i = 0; i < n->nr_groups; i++)
		if (n->group[i] >= 0)
			n->group_samples[n->group[i]] += n->live.line[i + 1].nr;
}

static int on_tick(struct stats_pass *w, struct stats_node_pass *n, int64_t time_ns)
{
	int r = 0;

	take_processes(w, n, time_ns);
	take_groups(w, n);
	for (unsigned i = 0; i < NR_CPU_PARTS && r >= 0; i++)
		r = growth_tick(&n->cpu[i], n->walk);
	stats_gpus_tick(&n->gpus, n->reader);
	n->ticks++;
	n->tick_ns = time_ns;
	return r;
}

static int take_record(struct stats_pass *w, struct stats_node_pass *n, const struct store_record *record)
{
	bool process = n->live.at.set >= 0 && record->set == (uint32_t)n->live.at.set;

	switch (record->type) {
	case STORE_META:
		return meta_merge(&n->meta, record->pairs) == -ENOMEM ? -ENOMEM : 0;
	case STORE_SCHEMA:
		on_schema(n);
		return 0;
	case STORE_INSTANCE:
		return on_instance(w, n, record);
	case STORE_LOST:
		unbind_all(w, n);
		live_lost(&n->live);
		n->gap = true;
		return 0;
	case STORE_GONE:
		if (!process)
			return 0;
		take_gone(w, n, record);
		return live_gone(&n->live, record->id, record->time_ns, record->pairs);
	default:
		return 0;
	}
}

static int stats_node_pass_open(struct stats_pass *w, struct stats_node_pass *n)
{
	const struct summary *s = stats_node_summary(w->summary, n->at);
	size_t users = MAX(w->found->nr_users, 1);
	int r = 0;

	live_init(&n->live, n->walk);
	stats_gpus_init(&n->gpus);
	for (unsigned k = 0; k < NR_CPU_PARTS; k++)
		growth_init(&n->cpu[k], GROWTH_ADDED);
	if (w->summary->start_wall_ns > 0 && s->start_wall_ns > 0)
		n->offset_s = (double)(s->start_wall_ns - w->summary->start_wall_ns) / 1e9;
	n->wall_s = s->figure[FIG_WALL].value;
	n->most_cores = has_figure(s, FIG_CPUS) ? s->figure[FIG_CPUS].value : INFINITY;
	n->step_ns = step_of(s);
	n->user = calloc(users, sizeof(*n->user));
	n->group_samples = calloc(MAX(w->summary->nr_groups, 1), sizeof(*n->group_samples));
	n->user_pen = is_alone(w) ? NULL : calloc(users, sizeof(*n->user_pen));
	n->sum_pen = is_alone(w) ? NULL : calloc(w->nr_sums, sizeof(*n->sum_pen));
	if (!n->user || !n->group_samples || (!is_alone(w) && (!n->user_pen || !n->sum_pen)))
		return -ENOMEM;
	for (size_t k = w->first_row[n->at]; k < w->first_row[n->at + 1] && r >= 0; k++)
		r = idmap_put(&n->row_of, w->table->row[w->row[k]].id, w->row[k]);
	if (n->walk->schema)
		on_schema(n);
	return r;
}

/* A counter that was never there is no part of the sum, but without user and idle nothing is told. Beside the
 * CPUs stands their total: it changes no share. */
static void stats_node_pass_finish(struct stats_pass *w, struct stats_node_pass *n)
{
	struct stats_pass_node *out = &w->found->node[n->at];

	unbind_all(w, n);
	out->offset_s = n->offset_s;
	out->cpu_user_s = out->cpu_idle_s = out->cpu_all_s = NAN;
	if (n->cpu[CPU_USER].any && n->cpu[CPU_IDLE].any) {
		out->cpu_user_s = n->cpu[CPU_USER].grown + n->cpu[CPU_NICE].grown;
		out->cpu_idle_s = n->cpu[CPU_IDLE].grown;
		out->cpu_all_s = 0;
		for (unsigned k = 0; k < NR_CPU_PARTS; k++)
			out->cpu_all_s += n->cpu[k].grown;
	}
}

static void stats_node_pass_close(struct stats_pass *w, struct stats_node_pass *n)
{
	for (size_t i = 0; n->user_pen && i < w->found->nr_users; i++)
		grid_pen_release(&n->user_pen[i]);
	for (size_t i = 0; n->sum_pen && i < w->nr_sums; i++)
		grid_pen_release(&n->sum_pen[i]);
	free(n->user_pen);
	free(n->sum_pen);
	free(n->user);
	free(n->group_samples);
	live_release(&n->live);
	meta_release(&n->meta);
	idmap_release(&n->row_of);
	for (unsigned i = 0; i < NR_CPU_PARTS; i++)
		growth_release(&n->cpu[i]);
	stats_gpus_release(&n->gpus);
	free(n);
}

/* ---- users and groups ---- */

/* What is no number comes last. */
static int compare_uids(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

size_t stats_pass_user_of(const struct stats_found *w, const struct process_row *row)
{
	const struct stats_pass_user *found =
		bsearch(&row->value[PROCESS_UID], w->user, w->nr_users, sizeof(*found), compare_uids);

	return found ? (size_t)(found - w->user) : w->nr_users - 1;
}

/* Each once. Beyond USERS_MOST they are one, behind all others, together with those who have no number. */
static int add_users(struct stats_found *w, const struct process_table *t)
{
	double *uid = calloc(MAX(t->nr, 1), sizeof(*uid));
	size_t nr = 0;

	for (size_t i = 0; uid && i < t->nr; i++)
		uid[i] = t->row[i].value[PROCESS_UID];
	if (uid)
		qsort(uid, t->nr, sizeof(*uid), compare_uids);
	for (size_t i = 0; uid && i < t->nr; i++)
		if (!nr || compare_uids(&uid[nr - 1], &uid[i]))
			uid[nr++] = uid[i];
	w->user = uid ? calloc(MAX(MIN(nr, USERS_MOST), 1), sizeof(*w->user)) : NULL;
	w->users_left_out = nr > USERS_MOST;
	w->nr_users = w->user ? MIN(nr, USERS_MOST) : 0;
	for (size_t i = 0; i < w->nr_users; i++)
		w->user[i].uid = uid[i];
	if (w->users_left_out)
		w->user[w->nr_users - 1].uid = NAN;
	free(uid);
	return w->user ? 0 : -ENOMEM;
}

/* A name that only this recording, or an earlier one than before, has. */
static int take_name(struct stats_pass_user *u, const struct meta *meta, size_t node)
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

static int name_the_rest(struct stats_found *w)
{
	for (size_t i = 0; i < w->nr_users; i++) {
		struct stats_pass_user *u = &w->user[i];
		int r = u->name		 ? 0
			: !isnan(u->uid) ? asprintf(&u->name, "%.0f", u->uid)
			: !(u->name = strdup(w->users_left_out ? "others" : "unknown")) ? -1
											: 0;

		if (r < 0) {
			u->name = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

int stats_pass_group_next(const struct summary *s, const struct process_row *row, size_t *at)
{
	while (*at < row->groups_len) {
		const char *name = row->groups + *at;

		int group = group_find(s, name);

		*at += strlen(name) + 1;
		if (group >= 0)
			return group;
	}
	return -1;
}

const struct summary *stats_node_summary(const struct summary *s, size_t node)
{
	return s->nr_nodes ? &s->node[node] : s;
}

/* ---- the run ---- */

static uint32_t user_valid(const struct user_now *u)
{
	uint32_t valid = UINT32_C(1) << LEVEL_PROCESSES;

	for (unsigned k = 0; k < NR_LEVELS; k++)
		if (u->nr[k])
			valid |= UINT32_C(1) << k;
	return valid;
}

static int64_t offset_ns(const struct stats_node_pass *n)
{
	return n->offset_s > 0 && n->offset_s < 9e9 ? (int64_t)(n->offset_s * 1e9) : 0;
}

/* A pen is made when there is something to put. */
static int pen_of(struct grid_pen *pen, const struct grid_shape *shape, const struct stats_node_pass *n,
	int64_t from_ns)
{
	return pen->held ? 0 : grid_pen_init(pen, shape, offset_ns(n), from_ns);
}

/* A single user is the whole run, of which the summary knows more. */
static int take_users(struct stats_pass *w, struct stats_node_pass *n, int64_t before_ns)
{
	int r = 0;

	for (size_t i = 0; w->found->nr_users > 1 && i < w->found->nr_users && r >= 0; i++) {
		struct user_now *u = &n->user[i];
		struct tracker *t = &w->found->user[i].tracker;
		int64_t used = n->gap ? 0 : u->cpu_ns - u->cpu_put_ns;

		if (is_alone(w)) {
			tracker_cpu(t, stats_node_pass_time(n), (double)u->cpu_ns / 1e9, n->gap);
			tracker_levels(t, stats_node_pass_time(n), u->level, user_valid(u));
			continue;
		}
		u->cpu_put_ns = u->cpu_ns;
		if (!u->cpu_ns && !u->nr[LEVEL_PROCESSES] && !n->user_pen[i].held)
			continue;
		r = pen_of(&n->user_pen[i], &w->users, n, before_ns);
		if (r >= 0)
			r = grid_pen_tick(&n->user_pen[i], n->tick_ns, u->level, user_valid(u), &used, NULL);
	}
	return r;
}

/* What the recording adds to one of the sums. */
static int sum_take(struct stats_pass *w, struct stats_node_pass *n, size_t which, double value)
{
	double *peak = &w->found->sum_peak[which];
	int64_t level = round_i64(which == SUM_GPU_POWER ? value * MILLIWATTS : value);
	int r;

	if (is_alone(w)) {
		if (value > 0 && !(*peak >= value))
			*peak = value;
		return 0;
	}
	if (!(value > 0) && !n->sum_pen[which].held)
		return 0;
	r = pen_of(&n->sum_pen[which], &w->sums, n, n->tick_ns);
	return r < 0 ? r : grid_pen_tick(&n->sum_pen[which], n->tick_ns, &level, 1, NULL, NULL);
}

static void take_uses(struct stats_pass *w, struct stats_node_pass *n, double *sum)
{
	size_t groups = SUM_USERS + w->found->nr_users;

	for (uint32_t i = 0; i < n->gpus.nr_uses; i++) {
		uint32_t row = idmap_get(&n->row_of, n->gpus.use[i].process);
		double memory = n->gpus.use[i].memory, *peak;
		size_t at = 0;

		if (row == IDMAP_NONE || !(memory > 0))
			continue;
		peak = &w->found->process[row].gpu_memory_peak;
		*peak = known_max(*peak, memory);
		sum[SUM_USERS + stats_pass_user_of(w->found, &w->table->row[row])] += memory;
		for (int g; (g = stats_pass_group_next(w->summary, &w->table->row[row], &at)) >= 0;)
			sum[groups + (size_t)g] += memory;
	}
}

static int take_gpus(struct stats_pass *w, struct stats_node_pass *n)
{
	struct stats_pass_node *out = &w->found->node[n->at];
	double *sum;
	int r = 0;

	if (!n->gpus.nr_occupants && !n->gpus.nr_clients)
		return 0;
	sum = calloc(w->nr_sums, sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	sum[SUM_GPU_MEMORY] = isnan(n->gpus.memory_now) ? 0 : n->gpus.memory_now;
	sum[SUM_GPU_POWER] = isnan(n->gpus.power_now) ? 0 : n->gpus.power_now;
	out->gpu_memory_peak = known_max(out->gpu_memory_peak, n->gpus.memory_now);
	out->gpu_power_peak = known_max(out->gpu_power_peak, n->gpus.power_now);
	take_uses(w, n, sum);
	for (size_t i = 0; i < w->nr_sums && r >= 0; i++)
		r = sum_take(w, n, i, sum[i]);
	free(sum);
	return r;
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct stats_node_pass *n = (struct stats_node_pass *)o;
	int64_t before_ns = n->tick_ns;
	int r;

	if (record->type != STORE_TICK)
		return take_record(n->pass, n, record);
	r = on_tick(n->pass, n, record->time_ns);
	if (r >= 0)
		r = take_users(n->pass, n, before_ns);
	n->gap = false;
	return r < 0 ? r : take_gpus(n->pass, n);
}

/* The recording's grids, added to those that the same thread has made of others. */
static int add_pens(struct grid_totals *to, struct grid_pen *pen, size_t nr)
{
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++)
		if (pen[i].held)
			r = grid_totals_add(to, NULL, i, &pen[i], 0);
	return r;
}

static int guest_open(void *arg, uint32_t node, struct walk *walk, struct walk_observer **ret)
{
	struct stats_pass *w = arg;
	struct stats_node_pass *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->observer.record = observe;
	n->pass = w;
	n->walk = walk;
	n->reader = walk->reader;
	n->at = node;
	r = stats_node_pass_open(w, n);
	if (r < 0) {
		stats_node_pass_close(w, n);
		return r;
	}
	*ret = &n->observer;
	return 0;
}

static int guest_close(void *arg, unsigned worker, struct walk_observer *o, int r)
{
	struct stats_pass *w = arg;
	struct stats_node_pass *n = (struct stats_node_pass *)o;

	if (r >= 0)
		stats_node_pass_finish(w, n);
	if (r >= 0 && !is_alone(w))
		r = add_pens(&w->user[worker], n->user_pen, w->found->nr_users);
	if (r >= 0 && !is_alone(w))
		r = add_pens(&w->sum[worker], n->sum_pen, w->nr_sums);
	pthread_mutex_lock(&w->lock);
	for (size_t k = 0; r >= 0 && k < w->summary->nr_groups; k++)
		w->found->group_samples[k] += n->group_samples[k];
	for (size_t k = 0; k < w->found->nr_users && r >= 0; k++) {
		r = take_name(&w->found->user[k], &n->walk->meta, n->at);
		if (r >= 0)
			r = take_name(&w->found->user[k], &n->meta, n->at);
	}
	pthread_mutex_unlock(&w->lock);
	stats_node_pass_close(w, n);
	return r;
}

static int track_user(struct stats_pass *w, struct grid_total *line)
{
	struct tracker *t = &w->found->user[line->number].tracker;
	int64_t used = 0;
	struct grid *g;
	int r = grid_sum_whole(&line->sum, &g);

	for (size_t k = 0; r >= 0 && k < g->nr; k++) {
		const int64_t *nr = grid_counts(g, k);
		double time = (double)grid_time_ns(g, k) / 1e9;
		uint32_t valid = 0;

		used = (int64_t)((uint64_t)used + (uint64_t)*grid_flows(g, k));
		for (unsigned level = 0; level < NR_LEVELS; level++)
			valid |= (uint32_t)(nr[level] > 0) << level;
		tracker_cpu(t, time, (double)used / 1e9, false);
		tracker_levels(t, time, grid_levels(g, k), valid);
	}
	return r;
}

static int peak_of_sum(struct stats_pass *w, struct grid_total *line)
{
	double unit = line->number == SUM_GPU_POWER ? MILLIWATTS : 1;
	double *peak = &w->found->sum_peak[line->number];
	struct grid *g;
	int r = grid_sum_whole(&line->sum, &g);

	for (size_t k = 0; r >= 0 && k < g->nr; k++)
		if (*grid_levels(g, k) > 0)
			*peak = known_max(*peak, (double)*grid_levels(g, k) / unit);
	return r;
}

/* What the nodes have at once. */
static int combine_nodes(struct stats_pass *w)
{
	int r = grid_totals_merge(w->user, PARALLEL_MOST);

	if (r >= 0)
		r = grid_totals_merge(w->sum, PARALLEL_MOST);
	for (size_t i = 0; i < w->user[0].nr && r >= 0; i++)
		r = track_user(w, &w->user[0].line[i]);
	for (size_t i = 0; i < w->sum[0].nr && r >= 0; i++)
		r = peak_of_sum(w, &w->sum[0].line[i]);
	return r;
}

/* ---- beginning and end ---- */

static void process_finish(
	struct stats_pass_process *out, const struct process_track *track, const struct process_row *row)
{
	double mean = row->value[PROCESS_CPU] / row->value[PROCESS_WALL];

	for (unsigned i = 0; i < NR_MEMORY_LEVELS; i++)
		out->mean[i] = track->seconds[i] > 0
			? MIN(track->integral[i] / track->seconds[i], out->peak[i])
			: out->peak[i];
	if (isfinite(mean) && !(out->cores_peak >= mean) && track->sampled) {
		out->cores_peak = mean;
		out->cores_peak_at = NAN;
	}
}

/* The rows of each recording together, in the table's order. */
static void sort_rows(struct stats_pass *w)
{
	size_t nr = w->run->nr;

	for (size_t i = 0; i < w->table->nr; i++)
		w->first_row[MIN(w->table->row[i].node, nr) + 1]++;
	for (size_t i = 0; i <= nr; i++)
		w->first_row[i + 1] += w->first_row[i];
	for (size_t i = 0; i < w->table->nr; i++)
		w->row[w->first_row[MIN(w->table->row[i].node, nr)]++] = (uint32_t)i;
	for (size_t i = nr + 1; i-- > 0;)
		w->first_row[i + 1] = w->first_row[i];
	w->first_row[0] = 0;
}

static int stats_pass_prepare(struct stats_pass *w)
{
	struct stats_found *out = w->found;
	size_t nr = w->run->nr, rows = MAX(w->table->nr, 1);
	int r = add_users(out, w->table);

	if (r < 0)
		return r;
	w->nr_sums = SUM_USERS + out->nr_users + w->summary->nr_groups;
	out->process = calloc(rows, sizeof(*out->process));
	out->node = calloc(nr, sizeof(*out->node));
	out->group_samples = calloc(MAX(w->summary->nr_groups, 1), sizeof(*out->group_samples));
	out->sum_peak = calloc(w->nr_sums, sizeof(*out->sum_peak));
	w->track = calloc(rows, sizeof(*w->track));
	w->row = calloc(rows, sizeof(*w->row));
	w->first_row = calloc(nr + 2, sizeof(*w->first_row));
	if (!out->process || !out->node || !out->group_samples || !out->sum_peak || !w->track || !w->row ||
		!w->first_row)
		return -ENOMEM;
	sort_rows(w);
	for (size_t i = 0; i < w->table->nr; i++) {
		struct stats_pass_process *p = &out->process[i];

		p->cores_peak = p->cores_peak_at = p->gpu_memory_peak = NAN;
		for (unsigned k = 0; k < NR_MEMORY_LEVELS; k++)
			p->mean[k] = p->peak[k] = p->peak_at[k] = NAN;
	}
	for (size_t i = 0; i < w->nr_sums; i++)
		out->sum_peak[i] = NAN;
	for (size_t i = 0; i < nr; i++)
		out->node[i].gpu_memory_peak = out->node[i].gpu_power_peak = NAN;
	return 0;
}

static void begin_users(struct stats_pass *w)
{
	int64_t step_ns = 0;

	for (size_t i = 0; i < w->run->nr; i++)
		step_ns = MAX(step_ns, step_of(stats_node_summary(w->summary, i)));
	for (size_t i = 0; i < w->found->nr_users; i++) {
		tracker_init(&w->found->user[i].tracker, (double)step_ns * 2e-9, true);
		tracker_begin(&w->found->user[i].tracker, 0);
	}
	w->sums = (struct grid_shape){.step_ns = MAX(2 * step_ns, SHORTEST_GRID_STEP_NS),
		.most = USER_GRID_LEAST * 8,
		.nr_levels = 1};
	w->users = (struct grid_shape){.step_ns = w->sums.step_ns,
		.most = MAX(GRID_MOST / MAX(w->found->nr_users, 1), USER_GRID_LEAST),
		.nr_levels = NR_LEVELS,
		.nr_flows = 1};
}

int stats_pass_guest(const struct run *run, const struct summary *summary,
	const struct process_table *processes, struct stats_found *ret_found, struct stats_pass **ret,
	struct tour_guest *ret_guest)
{
	struct stats_pass *w = calloc(1, sizeof(*w));
	int r;

	*ret_found = (struct stats_found){0};
	if (!w)
		return -ENOMEM;
	w->run = run;
	w->summary = summary;
	w->table = processes;
	w->found = ret_found;
	pthread_mutex_init(&w->lock, NULL);
	r = stats_pass_prepare(w);
	if (r < 0) {
		stats_pass_free(w);
		return r;
	}
	begin_users(w);
	*ret_guest = (struct tour_guest){guest_open, guest_close, w, .plain = true};
	*ret = w;
	return 0;
}

int stats_pass_finish(struct stats_pass *w)
{
	int r = is_alone(w) ? 0 : combine_nodes(w);

	for (size_t i = 0; i < w->table->nr && r >= 0; i++)
		process_finish(&w->found->process[i], &w->track[i], &w->table->row[i]);
	return r < 0 ? r : name_the_rest(w->found);
}

struct stats_pass *stats_pass_free(struct stats_pass *w)
{
	if (!w)
		return NULL;
	grid_totals_release(w->user, PARALLEL_MOST);
	grid_totals_release(w->sum, PARALLEL_MOST);
	free(w->track);
	free(w->row);
	free(w->first_row);
	free(w);
	return NULL;
}

void stats_pass_release(struct stats_found *w)
{
	for (size_t i = 0; i < w->nr_users; i++) {
		tracker_release(&w->user[i].tracker);
		free(w->user[i].name);
	}
	free(w->user);
	free(w->process);
	free(w->node);
	free(w->sum_peak);
	free(w->group_samples);
}
