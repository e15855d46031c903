/* One more pass over all recordings, at the same pace: each step reads a tick of the recording that is
 * furthest behind. So what several nodes hold is added up as of the same time, within one interval, and
 * memory grows with the processes and not with the length.
 *
 * What a tick says holds since the tick before it, as everywhere in query/.
 *
 * Rejected: a sheet of curves by process. It keeps the top ones only, and 100,000 short processes have no
 * curve worth its memory; their means and peaks are a few numbers each. */
#include "query/stats_walk.h"

#include "base/str.h"
#include "query/growth.h"
#include "query/living.h"
#include "query/stats_gpus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* As tracker.c: below that a rate is mostly rounding. */
#define SHORTEST_STEP_NS INT64_C(50000000)
#define USERS_MOST 1024

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

static const enum level held_level[NR_HELD] = {
	[HELD_RSS] = LEVEL_RSS, [HELD_PSS] = LEVEL_PSS, [HELD_USS] = LEVEL_USS, [HELD_SWAP] = LEVEL_SWAP};

/* A process as it goes along; by row of the process table. */
struct seat {
	bool bound, sampled;
	uint64_t tick; /* of the recording, when it was bound */
	int64_t level[NR_LEVELS];
	uint32_t valid;
	int64_t since_ns; /* the levels hold since */
	double integral[NR_HELD], seconds[NR_HELD];
	int64_t cpu_ns, touched_ns, knot_ns,
		knot_cpu_ns; /* knots: where the present step of its cores began */
};

struct user_now {
	int64_t cpu_ns, level[NR_LEVELS];
	uint32_t nr[NR_LEVELS]; /* processes that contribute */
};

struct walker { /* one recording */
	struct store_reader *reader;
	struct living living;
	struct meta meta;
	struct idmap row_of; /* id -> row of the process table */
	struct growth cpu[NR_CPU_PARTS];
	struct stats_gpus gpus;
	double offset_s, wall_s, most_cores;
	int64_t tick_ns, step_ns;
	uint64_t ticks;
	bool gap;
	int group[GROUPS_MOST]; /* of the recording -> of the summary; -1: not there */
	unsigned nr_groups;	/* that were looked up */
	double *sum;		/* what it adds to each sum of the run now */
};

struct walking {
	const struct run *run;
	const struct summary *summary;
	const struct process_table *table;
	struct walk *walk;
	struct seat *seat;
	struct user_now *user;
	struct walker *node;
	uint32_t *heap, nr_heap;
	double *sum; /* now */
	size_t nr_sums;
	double taken; /* time of the run at the last point */
};

/* ---- one process ---- */

static void user_count(struct walking *w, size_t row, bool in)
{
	struct user_now *u = &w->user[walk_user_of(w->walk, &w->table->row[row])];
	const struct seat *seat = &w->seat[row];

	for (unsigned i = 0; i < NR_LEVELS; i++) {
		uint64_t value = (uint64_t)seat->level[i];

		if (!(seat->valid >> i & 1))
			continue;
		u->level[i] = (int64_t)((uint64_t)u->level[i] + (in ? value : -value));
		u->nr[i] += in ? 1 : -1u;
	}
}

static void user_used(struct walking *w, size_t row, int64_t cpu_ns)
{
	struct user_now *u = &w->user[walk_user_of(w->walk, &w->table->row[row])];
	struct seat *seat = &w->seat[row];

	if (cpu_ns > seat->cpu_ns) {
		u->cpu_ns = (int64_t)((uint64_t)u->cpu_ns + ((uint64_t)cpu_ns - (uint64_t)seat->cpu_ns));
		seat->cpu_ns = cpu_ns;
	}
}

/* The levels held from since_ns up to here. */
static void seat_hold(struct seat *seat, int64_t until_ns)
{
	double seconds = (double)(until_ns - seat->since_ns) / 1e9;

	if (!(seconds > 0))
		return;
	for (unsigned i = 0; i < NR_HELD; i++)
		if (seat->valid >> held_level[i] & 1) {
			seat->integral[i] += (double)seat->level[held_level[i]] * seconds;
			seat->seconds[i] += seconds;
		}
	seat->since_ns = until_ns;
}

static void seat_bind(struct walking *w, const struct walker *n, size_t row)
{
	struct seat *seat = &w->seat[row];

	if (seat->bound)
		return;
	seat->bound = true;
	seat->tick = n->ticks;
	seat->since_ns = n->tick_ns;
	seat->valid = UINT32_C(1) << LEVEL_PROCESSES;
	seat->level[LEVEL_PROCESSES] = 1;
	user_count(w, row, true);
}

static void seat_unbind(struct walking *w, const struct walker *n, size_t row)
{
	double end_s = w->table->row[row].ended ? w->table->row[row].value[PROCESS_END] : 0;
	struct seat *seat = &w->seat[row];

	if (!seat->bound)
		return;
	/* Of one that has ended the end is known; any other is only known to have been there at the last
	 * tick. */
	seat_hold(seat, MAX(n->tick_ns, (int64_t)(MIN(MAX(end_s, 0), 9e9) * 1e9)));
	user_count(w, row, false);
	w->walk->process[row].samples += n->ticks - seat->tick;
	seat->bound = false;
	seat->valid = 0;
}

/* How fast it ran over the step that ends here, if it is long enough. */
static void cores_step(
	struct walk_process *out, struct seat *seat, const struct walker *n, int64_t cpu_ns, int64_t time_ns)
{
	int64_t elapsed = time_ns - seat->knot_ns;
	double cores;

	if (elapsed < n->step_ns)
		return;
	cores = MIN((double)(cpu_ns - seat->knot_cpu_ns) / (double)elapsed, n->most_cores);
	if (!(out->cores_peak >= cores)) {
		out->cores_peak = cores;
		out->cores_peak_at = n->offset_s + (double)time_ns / 1e9;
	}
	seat->knot_ns = time_ns;
	seat->knot_cpu_ns = cpu_ns;
}

static void take_cpu(
	struct walking *w, const struct walker *n, size_t row, const struct process *p, int64_t time_ns)
{
	struct seat *seat = &w->seat[row];
	int64_t used = process_used(p, PART_CPU);

	if (!(p->part_seen >> PART_CPU & 1))
		return;
	if (!seat->sampled) { /* one that we came too late for began before, with what is not counted */
		double start = w->table->row[row].value[PROCESS_START] * 1e9;

		seat->knot_ns =
			p->late || !(start >= 0 && start < (double)time_ns) ? time_ns : (int64_t)start;
		seat->knot_cpu_ns = seat->knot_ns == time_ns ? used : 0;
		seat->sampled = true;
	} else if (seat->touched_ns < n->tick_ns && time_ns - n->tick_ns >= n->step_ns) {
		seat->knot_ns = n->tick_ns; /* it did nothing up to the tick before */
		seat->knot_cpu_ns = seat->cpu_ns;
	}
	user_used(w, row, used);
	cores_step(&w->walk->process[row], seat, n, used, time_ns);
	seat->touched_ns = time_ns;
}

static void take_levels(
	struct walking *w, const struct walker *n, size_t row, const struct process *p, int64_t time_ns)
{
	struct walk_process *out = &w->walk->process[row];
	struct seat *seat = &w->seat[row];

	seat_hold(seat, time_ns);
	user_count(w, row, false);
	memcpy(seat->level, p->level, sizeof(seat->level));
	seat->level[LEVEL_PROCESSES] = 1;
	seat->valid = p->level_valid | UINT32_C(1) << LEVEL_PROCESSES;
	user_count(w, row, true);
	for (unsigned i = 0; i < NR_HELD; i++) {
		double level = (double)p->level[held_level[i]];

		if (!(seat->valid >> held_level[i] & 1) || out->peak[i] >= level)
			continue;
		out->peak[i] = level;
		out->peak_at[i] = n->offset_s + (double)time_ns / 1e9;
	}
}

static void take_processes(struct walking *w, struct walker *n, int64_t time_ns)
{
	struct table *t =
		n->living.at.set < 0 ? NULL : store_reader_table(n->reader, (uint32_t)n->living.at.set);

	if (!t)
		return;
	living_tick(&n->living, t, time_ns);
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t id = t->id[t->touched[i]],
			 row = id == ROW_FREE ? IDMAP_NONE : idmap_get(&n->row_of, id);
		const struct process *p = row == IDMAP_NONE ? NULL : living_find(&n->living, id);

		if (!p || !w->seat[row].bound)
			continue;
		take_cpu(w, n, row, p, time_ns);
		take_levels(w, n, row, p, time_ns);
	}
}

/* ---- one recording ---- */

static void take_gone(struct walking *w, struct walker *n, const struct store_record *record)
{
	uint32_t row = idmap_get(&n->row_of, record->id);
	double cpu;

	if (row == IDMAP_NONE)
		return;
	cpu = w->table->row[row].value[PROCESS_CPU] * 1e9;
	if (cpu > 0 && cpu < 9e18) {
		if (w->seat[row].sampled && w->seat[row].bound)
			cores_step(&w->walk->process[row], &w->seat[row], n,
				MAX(round_i64(cpu), w->seat[row].cpu_ns), record->time_ns);
		user_used(w, row, round_i64(cpu));
	}
	seat_unbind(w, n, row);
}

static void unbind_all(struct walking *w, const struct walker *n)
{
	for (uint32_t i = 0; i < n->living.nr; i++) {
		uint32_t row = idmap_get(&n->row_of, n->living.process[i].id);

		if (row != IDMAP_NONE)
			seat_unbind(w, n, row);
	}
}

static int on_instance(struct walking *w, struct walker *n, const struct store_record *record)
{
	uint32_t row;
	int r = 0;

	if (n->living.at.set >= 0 && record->set == (uint32_t)n->living.at.set) {
		r = living_join(&n->living, record->row, record->id, record->pairs);
		row = idmap_get(&n->row_of, record->id);
		if (r >= 0 && row != IDMAP_NONE && record->row != STORE_NO_ROW)
			seat_bind(w, n, row);
		return r;
	}
	for (unsigned i = 0; i < NR_CPU_PARTS && r >= 0; i++)
		r = growth_instance(&n->cpu[i], record);
	return r < 0 ? r
		     : stats_gpus_instance(
			       &n->gpus, record, stats_node_summary(w->summary, (size_t)(n - w->node)));
}

static void on_schema(struct walker *n)
{
	const struct schema *schema = store_reader_schema(n->reader);

	living_bind(&n->living, schema);
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
static void take_groups(struct walking *w, struct walker *n)
{
	for (; n->nr_groups < n->living.group.nr; n->nr_groups++)
		n->group[n->nr_groups] = group_find(w->summary, n->living.group.item[n->nr_groups].name);
	for (unsigned i = 0; i < n->nr_groups; i++)
		if (n->group[i] >= 0)
			w->walk->group_samples[n->group[i]] += n->living.line[i + 1].nr;
}

static int on_tick(struct walking *w, struct walker *n, int64_t time_ns)
{
	int r = 0;

	take_processes(w, n, time_ns);
	take_groups(w, n);
	for (unsigned i = 0; i < NR_CPU_PARTS && r >= 0; i++)
		r = growth_tick(&n->cpu[i], n->reader, time_ns);
	stats_gpus_tick(&n->gpus, n->reader);
	n->ticks++;
	n->tick_ns = time_ns;
	return r;
}

/* 1: a tick was read, 0: there is none any more. */
static int walker_next(struct walking *w, struct walker *n)
{
	struct store_record record;
	int r;

	while ((r = store_next(n->reader, &record)) > 0) {
		bool process = n->living.at.set >= 0 && record.set == (uint32_t)n->living.at.set;

		if (record.type == STORE_TICK)
			return on_tick(w, n, record.time_ns) < 0 ? -ENOMEM : 1;
		if (record.type == STORE_META)
			r = meta_merge(&n->meta, record.pairs) == -ENOMEM ? -ENOMEM : 0;
		else if (record.type == STORE_SCHEMA)
			on_schema(n);
		else if (record.type == STORE_INSTANCE)
			r = on_instance(w, n, &record);
		else if (record.type == STORE_LOST) {
			unbind_all(w, n);
			living_lost(&n->living);
			n->gap = true;
		} else if (record.type == STORE_GONE && process) {
			take_gone(w, n, &record);
			r = living_gone(&n->living, record.id, record.time_ns, record.pairs);
		}
		if (r < 0)
			return r;
	}
	return r;
}

static int walker_open(struct walking *w, size_t i)
{
	const struct summary *s = stats_node_summary(w->summary, i);
	struct walker *n = &w->node[i];
	int r;

	living_init(&n->living);
	stats_gpus_init(&n->gpus);
	for (unsigned k = 0; k < NR_CPU_PARTS; k++)
		growth_init(&n->cpu[k], GROWTH_ADDED);
	if (w->summary->start_wall_ns > 0 && s->start_wall_ns > 0)
		n->offset_s = (double)(s->start_wall_ns - w->summary->start_wall_ns) / 1e9;
	n->wall_s = s->figure[FIG_WALL].value;
	n->most_cores = has_figure(s, FIG_CPUS) ? s->figure[FIG_CPUS].value : INFINITY;
	n->step_ns = SHORTEST_STEP_NS;
	if (has_figure(s, FIG_INTERVAL) && s->figure[FIG_INTERVAL].value < 1e6)
		n->step_ns = MAX(n->step_ns, (int64_t)(s->figure[FIG_INTERVAL].value * 5e8));
	r = store_open(w->run->path[i], &n->reader);
	for (size_t k = 0; k < w->table->nr && r >= 0; k++)
		if (w->table->row[k].node == i)
			r = idmap_put(&n->row_of, w->table->row[k].id, (uint32_t)k);
	return r;
}

/* A counter that was never there is no part of the sum, but without user and idle nothing is told. Beside the
 * CPUs stands their total: it changes no share. */
static void walker_finish(struct walking *w, size_t i)
{
	struct walk_node *out = &w->walk->node[i];
	struct walker *n = &w->node[i];

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

static void walker_close(struct walker *n)
{
	living_release(&n->living);
	meta_release(&n->meta);
	idmap_release(&n->row_of);
	for (unsigned i = 0; i < NR_CPU_PARTS; i++)
		growth_release(&n->cpu[i]);
	stats_gpus_release(&n->gpus);
	free(n->sum);
	store_close(n->reader);
}

/* ---- the run ---- */

static double walker_time(const struct walker *n)
{
	return n->offset_s + (double)n->tick_ns / 1e9;
}

static void heap_down(struct walking *w, uint32_t i)
{
	for (;;) {
		uint32_t least = i, kept;

		for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < w->nr_heap; child++)
			if (walker_time(&w->node[w->heap[child]]) < walker_time(&w->node[w->heap[least]]))
				least = child;
		if (least == i)
			return;
		kept = w->heap[i];
		w->heap[i] = w->heap[least];
		w->heap[least] = kept;
		i = least;
	}
}

/* A single user is the whole run, of which the summary knows more. */
static void take_users(struct walking *w, bool gap)
{
	for (size_t i = 0; w->walk->nr_users > 1 && i < w->walk->nr_users; i++) {
		const struct user_now *u = &w->user[i];
		struct tracker *t = &w->walk->user[i].tracker;
		uint32_t valid = UINT32_C(1) << LEVEL_PROCESSES;

		for (unsigned k = 0; k < NR_LEVELS; k++)
			if (u->nr[k])
				valid |= UINT32_C(1) << k;
		tracker_cpu(t, w->taken, (double)u->cpu_ns / 1e9, gap);
		tracker_levels(t, w->taken, u->level, valid);
	}
}

/* What one recording adds to a sum takes the place of what it added before. */
static void sum_take(struct walking *w, struct walker *n, size_t which, double value)
{
	double *peak = &w->walk->sum_peak[which];

	w->sum[which] += value - n->sum[which];
	n->sum[which] = value;
	if (value > 0 && !(*peak >= w->sum[which]))
		*peak = w->sum[which];
}

static void take_uses(struct walking *w, struct walker *n, double *sum)
{
	size_t groups = SUM_USERS + w->walk->nr_users;

	for (uint32_t i = 0; i < n->gpus.nr_uses; i++) {
		uint32_t row = idmap_get(&n->row_of, n->gpus.use[i].process);
		double memory = n->gpus.use[i].memory, *peak;
		size_t at = 0;

		if (row == IDMAP_NONE || !(memory > 0))
			continue;
		peak = &w->walk->process[row].gpu_memory_peak;
		*peak = known_max(*peak, memory);
		sum[SUM_USERS + walk_user_of(w->walk, &w->table->row[row])] += memory;
		for (int g; (g = walk_group_next(w->summary, &w->table->row[row], &at)) >= 0;)
			sum[groups + (size_t)g] += memory;
	}
}

static int take_gpus(struct walking *w, struct walker *n)
{
	struct walk_node *out = &w->walk->node[n - w->node];
	double *sum;

	if (!n->gpus.nr_seats && !n->gpus.nr_clients)
		return 0;
	sum = calloc(w->nr_sums, sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	sum[SUM_GPU_MEMORY] = isnan(n->gpus.memory_now) ? 0 : n->gpus.memory_now;
	sum[SUM_GPU_POWER] = isnan(n->gpus.power_now) ? 0 : n->gpus.power_now;
	out->gpu_memory_peak = known_max(out->gpu_memory_peak, n->gpus.memory_now);
	out->gpu_power_peak = known_max(out->gpu_power_peak, n->gpus.power_now);
	take_uses(w, n, sum);
	for (size_t i = 0; i < w->nr_sums; i++)
		sum_take(w, n, i, sum[i]);
	free(sum);
	return 0;
}

static int walk_all(struct walking *w, const struct progress *progress)
{
	double done = 0;

	for (uint32_t i = w->nr_heap; i-- > 0;)
		heap_down(w, i);
	while (w->nr_heap) {
		struct walker *n = &w->node[w->heap[0]];
		double before = (double)n->tick_ns / 1e9;
		int r = walker_next(w, n);

		if (r < 0)
			return r;
		if (!r) {
			w->heap[0] = w->heap[--w->nr_heap];
		} else {
			w->taken = known_max(w->taken, walker_time(n));
			take_users(w, n->gap);
			n->gap = false;
			r = take_gpus(w, n);
			if (r < 0)
				return r;
			done += n->wall_s > 0 ? ((double)n->tick_ns / 1e9 - before) / n->wall_s : 0;
			progress_tell(progress, "statistics", MIN(done / (double)w->run->nr, 1));
		}
		heap_down(w, 0);
	}
	return 0;
}

/* ---- users and groups ---- */

/* What is no number comes last. */
static int compare_uids(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

size_t walk_user_of(const struct walk *w, const struct process_row *row)
{
	const struct walk_user *found =
		bsearch(&row->value[PROCESS_UID], w->user, w->nr_users, sizeof(*found), compare_uids);

	return found ? (size_t)(found - w->user) : w->nr_users - 1;
}

/* Each once. Beyond USERS_MOST they are one, behind all others, together with those who have no number. */
static int add_users(struct walk *w, const struct process_table *t)
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

static int name_user(const struct walking *w, struct walk_user *u)
{
	const struct meta_item *found = NULL;
	struct buf name;

	buf_init(&name, 4096);
	for (size_t i = 0; i < w->run->nr && !found && !isnan(u->uid); i++)
		found = meta_user(&w->node[i].meta, round_i64(u->uid));
	if (found)
		escape_bytes(&name, found->value, found->len);
	else if (isnan(u->uid))
		buf_adds(&name, w->walk->users_left_out ? "others" : "unknown");
	else
		buf_addf(&name, "%.0f", u->uid);
	u->name = name.err ? NULL : strdup((char *)name.data);
	buf_release(&name);
	return u->name ? 0 : -ENOMEM;
}

int walk_group_next(const struct summary *s, const struct process_row *row, size_t *at)
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

/* ---- beginning and end ---- */

static void process_finish(struct walk_process *out, const struct seat *seat, const struct process_row *row)
{
	double mean = row->value[PROCESS_CPU] / row->value[PROCESS_WALL];

	for (unsigned i = 0; i < NR_HELD; i++)
		out->mean[i] = seat->seconds[i] > 0 ? MIN(seat->integral[i] / seat->seconds[i], out->peak[i])
						    : out->peak[i];
	if (isfinite(mean) && !(out->cores_peak >= mean) && seat->sampled) {
		out->cores_peak = mean;
		out->cores_peak_at = NAN;
	}
}

static int walk_prepare(struct walking *w)
{
	struct walk *out = w->walk;
	size_t nr = w->run->nr, rows = MAX(w->table->nr, 1);
	int r = add_users(out, w->table);

	if (r < 0)
		return r;
	w->nr_sums = SUM_USERS + out->nr_users + w->summary->nr_groups;
	out->process = calloc(rows, sizeof(*out->process));
	out->node = calloc(nr, sizeof(*out->node));
	out->group_samples = calloc(MAX(w->summary->nr_groups, 1), sizeof(*out->group_samples));
	out->sum_peak = calloc(w->nr_sums, sizeof(*out->sum_peak));
	w->seat = calloc(rows, sizeof(*w->seat));
	w->user = calloc(MAX(out->nr_users, 1), sizeof(*w->user));
	w->node = calloc(nr, sizeof(*w->node));
	w->heap = calloc(nr, sizeof(*w->heap));
	w->sum = calloc(w->nr_sums, sizeof(*w->sum));
	if (!out->process || !out->node || !out->group_samples || !out->sum_peak || !w->seat || !w->user ||
		!w->node || !w->heap || !w->sum)
		return -ENOMEM;
	for (size_t i = 0; i < w->table->nr; i++) {
		struct walk_process *p = &out->process[i];

		p->cores_peak = p->cores_peak_at = p->gpu_memory_peak = NAN;
		for (unsigned k = 0; k < NR_HELD; k++)
			p->mean[k] = p->peak[k] = p->peak_at[k] = NAN;
	}
	for (size_t i = 0; i < w->nr_sums; i++)
		out->sum_peak[i] = NAN;
	for (size_t i = 0; i < nr; i++)
		out->node[i].gpu_memory_peak = out->node[i].gpu_power_peak = NAN;
	return 0;
}

static int walk_open(struct walking *w, struct buf *reterr)
{
	double interval = 0;

	for (size_t i = 0; i < w->run->nr; i++) {
		int r = walker_open(w, i);

		w->node[i].sum = calloc(w->nr_sums, sizeof(double));
		if (r < 0 || !w->node[i].sum) {
			buf_addf(reterr, "%s: %s", w->run->path[i], strerror(r < 0 ? -r : ENOMEM));
			return r < 0 ? r : -ENOMEM;
		}
		interval = MAX(interval, (double)w->node[i].step_ns * 2e-9);
		w->heap[w->nr_heap++] = (uint32_t)i;
	}
	for (size_t i = 0; i < w->walk->nr_users; i++) {
		tracker_init(&w->walk->user[i].tracker, interval, true);
		tracker_begin(&w->walk->user[i].tracker, 0);
	}
	return 0;
}

static int walk_finish(struct walking *w)
{
	int r = 0;

	for (size_t i = 0; i < w->run->nr; i++)
		walker_finish(w, i);
	for (size_t i = 0; i < w->table->nr; i++)
		process_finish(&w->walk->process[i], &w->seat[i], &w->table->row[i]);
	for (size_t i = 0; i < w->walk->nr_users && r >= 0; i++)
		r = name_user(w, &w->walk->user[i]);
	return r;
}

int walk_read(const struct run *run, const struct summary *summary, const struct process_table *processes,
	const struct progress *progress, struct walk *ret, struct buf *reterr)
{
	struct walking w = {.run = run, .summary = summary, .table = processes, .walk = ret};
	int r;

	*ret = (struct walk){0};
	r = walk_prepare(&w);
	if (r >= 0)
		r = walk_open(&w, reterr);
	if (r >= 0)
		r = walk_all(&w, progress);
	if (r >= 0)
		r = walk_finish(&w);
	for (size_t i = 0; w.node && i < run->nr; i++)
		walker_close(&w.node[i]);
	free(w.seat);
	free(w.user);
	free(w.node);
	free(w.heap);
	free(w.sum);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "cannot read: %s", strerror(-r));
	return r;
}

void walk_release(struct walk *w)
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
