/* Devices are the job's as the summary says. Of a sliced one the slices count that are the job's: the rest of
 * its memory is another job's. A driver may list a process on a slice and on the whole device again: the
 * larger of both sums holds.
 *
 * Sums over nodes are made on a grid of the sampling interval (query/grid); a single recording is followed
 * tick by tick. */
#include "query/stats_gpus.h"

#include "base/owned.h"
#include "base/parallel.h"
#include "query/gpus.h"
#include "query/grid.h"

#include <math.h>
#include <string.h>

/* As courses.c. */
#define SHORTEST_STEP_NS INT64_C(50000000)
#define GRID_STEPS 8192
/* Power is added up in whole milliwatts, memory in bytes. */
#define MILLIWATTS 1000

struct stats_gpus_node { /* one recording */
	struct walk_observer observer;
	struct stats_gpus *pass;
	struct walk *walk;
	size_t at; /* in the run */
	int set, process_set;
	struct gpu_column used, power, memory;
	struct idmap row_of; /* id of a process -> row of the process table */
	struct stats_gpu_device {
		bool memory, power; /* it is one whose memory and power are the job's */
	} * device;		    /* by row */
	struct stats_gpu_client {
		bool known, slice;
		uint32_t use; /* index of what its process uses */
	} * client;	      /* by row */
	uint32_t nr_devices, nr_clients;
	struct stats_gpu_use {
		uint32_t process;     /* its id in the process set */
		double whole, slices; /* bytes, now */
	} * use;
	uint32_t nr_uses, cap_uses;
	struct idmap use_of; /* process -> index */
	double *sum;
	struct grid_pen *pen; /* of one of several: by sum, where there is anything */
};

struct stats_gpus {
	const struct run *run;
	const struct summary *summary;
	const struct process_table *table;
	const struct stats_users *users;
	struct stats_gpus_found *found;
	size_t nr_sums;
	struct grid_shape shape;
	struct grid_totals of[PARALLEL_MOST]; /* by thread */
};

static bool is_alone(const struct stats_gpus *w)
{
	return w->run->nr == 1;
}

/* ---- what is there ---- */

static bool is_slice_of(const struct summary_gpu *gpu, const struct summary_gpu *device)
{
	const char *parent = gpu->text[GPU_TEXT_PARENT], *host = gpu->text[GPU_TEXT_HOST];
	const char *instance = device->text[GPU_TEXT_INSTANCE], *there = device->text[GPU_TEXT_HOST];

	return parent && instance && !strcmp(parent, instance) && (!host || !there || !strcmp(host, there));
}

bool stats_gpu_counts(const struct summary *s, size_t gpu)
{
	if (!summary_gpu_is_of_job(&s->gpu[gpu]))
		return false;
	for (size_t i = 0; i < s->nr_gpus; i++)
		if (is_slice_of(&s->gpu[i], &s->gpu[gpu]) && summary_gpu_is_of_job(&s->gpu[i]))
			return false;
	return true;
}

static int look_at_devices(struct stats_gpus_node *n)
{
	const struct summary *s = stats_node_summary(n->pass->summary, n->at);
	const struct walk_set *set = &n->walk->set[n->set];

	if (ARRAY_RESIZE(n->device, MAX(set->nr_rows, 1u)) < 0)
		return -ENOMEM;
	n->nr_devices = set->nr_rows;
	for (uint32_t row = 0; row < set->nr_rows; row++) {
		const struct occupant *in = walk_occupant(n->walk, (uint32_t)n->set, row, set->id[row]);

		n->device[row] = (struct stats_gpu_device){0};
		for (size_t i = 0; in && set->id[row] != ROW_FREE && i < s->nr_gpus; i++) {
			const char *instance = s->gpu[i].text[GPU_TEXT_INSTANCE];

			if (!instance || strcmp(instance, in->name))
				continue;
			n->device[row].memory = stats_gpu_counts(s, i);
			n->device[row].power =
				summary_gpu_is_of_job(&s->gpu[i]) && !s->gpu[i].text[GPU_TEXT_PARENT];
		}
	}
	return 0;
}

/* What this process uses; made when it is new. Negative: no memory. */
static int64_t use_of(struct stats_gpus_node *n, uint32_t process)
{
	uint32_t at = idmap_get(&n->use_of, process);
	struct stats_gpu_use *use;

	if (at != IDMAP_NONE)
		return at;
	use = n->nr_uses < n->cap_uses ? n->use : array_reach(n->use, &n->cap_uses, n->nr_uses, sizeof(*use));
	if (!use || idmap_put(&n->use_of, process, n->nr_uses) < 0)
		return -ENOMEM;
	n->use = use;
	use[n->nr_uses] = (struct stats_gpu_use){.process = process};
	return n->nr_uses++;
}

static int look_at_clients(struct stats_gpus_node *n)
{
	const struct walk_set *set = &n->walk->set[n->process_set];

	if (ARRAY_RESIZE(n->client, MAX(set->nr_rows, 1u)) < 0)
		return -ENOMEM;
	n->nr_clients = set->nr_rows;
	for (uint32_t row = 0; row < set->nr_rows; row++) {
		const struct occupant *in =
			walk_occupant(n->walk, (uint32_t)n->process_set, row, set->id[row]);
		int64_t use;

		n->client[row] = (struct stats_gpu_client){0};
		if (!in || set->id[row] == ROW_FREE || !in->process)
			continue;
		use = use_of(n, in->process);
		if (use < 0)
			return -ENOMEM;
		n->client[row] = (struct stats_gpu_client){
			.known = true, .slice = in->source && strchr(in->source, '/'), .use = (uint32_t)use};
	}
	return 0;
}

/* ---- ticks ---- */

static bool cell_of(const struct gpu_column *c, struct table *t, uint32_t row, double *ret)
{
	if (c->col < 0 || !(t->valid[row] >> c->col & 1))
		return false;
	*ret = (double)table_row(t, row)[c->col] * c->scale;
	return true;
}

static void read_devices(struct stats_gpus_node *n)
{
	struct table *t = walk_table(n->walk, (uint32_t)n->set);
	double memory = NAN, power = NAN, v;

	for (uint32_t row = 0; row < MIN(t->nr_rows, n->nr_devices); row++) {
		if (n->device[row].memory && cell_of(&n->used, t, row, &v))
			memory = isnan(memory) ? v : memory + v;
		if (n->device[row].power && cell_of(&n->power, t, row, &v))
			power = isnan(power) ? v : power + v;
	}
	n->sum[SUM_GPU_MEMORY] = isnan(memory) ? 0 : memory;
	n->sum[SUM_GPU_POWER] = isnan(power) ? 0 : power;
	n->pass->found->node_memory[n->at] = known_max(n->pass->found->node_memory[n->at], memory);
	n->pass->found->node_power[n->at] = known_max(n->pass->found->node_power[n->at], power);
}

static void read_clients(struct stats_gpus_node *n)
{
	struct table *t = walk_table(n->walk, (uint32_t)n->process_set);

	for (uint32_t i = 0; i < n->nr_uses; i++)
		n->use[i].whole = n->use[i].slices = 0;
	for (uint32_t row = 0; row < MIN(t->nr_rows, n->nr_clients); row++) {
		const struct stats_gpu_client *client = &n->client[row];
		double v;

		if (!client->known || !cell_of(&n->memory, t, row, &v))
			continue;
		*(client->slice ? &n->use[client->use].slices : &n->use[client->use].whole) += v;
	}
}

/* For the process, its user and its groups. */
static void take_uses(struct stats_gpus_node *n)
{
	const struct stats_gpus *w = n->pass;
	size_t groups = SUM_USERS + w->users->nr;

	for (uint32_t i = 0; i < n->nr_uses; i++) {
		uint32_t row = idmap_get(&n->row_of, n->use[i].process);
		double memory = MAX(n->use[i].whole, n->use[i].slices);
		size_t at = 0;

		if (row == IDMAP_NONE || !(memory > 0))
			continue;
		w->found->process[row] = known_max(w->found->process[row], memory);
		n->sum[SUM_USERS + stats_user_of(w->users, &w->table->row[row])] += memory;
		for (int g; (g = stats_group_next(w->summary, &w->table->row[row], &at)) >= 0;)
			n->sum[groups + (size_t)g] += memory;
	}
}

/* What the recording adds to one of the sums. */
static int sum_take(struct stats_gpus_node *n, size_t which)
{
	struct stats_gpus *w = n->pass;
	double *peak = &w->found->sum[which], value = n->sum[which];
	int64_t level = round_i64(which == SUM_GPU_POWER ? value * MILLIWATTS : value),
		time_ns = n->walk->time_ns;
	double offset_s = stats_node_offset(w->summary, n->at);
	int r = 0;

	if (is_alone(w)) {
		if (value > 0 && !(*peak >= value))
			*peak = value;
		return 0;
	}
	if (!n->pen[which].held) { /* made when there is something to put */
		if (!(value > 0))
			return 0;
		r = grid_pen_init(&n->pen[which], &w->shape,
			offset_s > 0 && offset_s < 9e9 ? (int64_t)(offset_s * 1e9) : 0, time_ns);
	}
	return r < 0 ? r : grid_pen_tick(&n->pen[which], time_ns, &level, 1, NULL, NULL);
}

static int on_tick(struct stats_gpus_node *n)
{
	int r = 0;

	if (n->set >= 0 && n->walk->set[n->set].occupants_changed)
		r = look_at_devices(n);
	if (r >= 0 && n->process_set >= 0 && n->walk->set[n->process_set].occupants_changed)
		r = look_at_clients(n);
	if (r < 0 || (!n->nr_devices && !n->nr_clients && !n->nr_uses))
		return r;
	memset(n->sum, 0, n->pass->nr_sums * sizeof(*n->sum));
	if (n->set >= 0)
		read_devices(n);
	if (n->process_set >= 0)
		read_clients(n);
	take_uses(n);
	for (size_t i = 0; i < n->pass->nr_sums && r >= 0; i++)
		r = sum_take(n, i);
	return r;
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	return record->type == STORE_TICK ? on_tick((struct stats_gpus_node *)o) : 0;
}

/* ---- one recording ---- */

static void node_free(struct stats_gpus_node *n)
{
	for (size_t i = 0; n->pen && i < n->pass->nr_sums; i++)
		grid_pen_release(&n->pen[i]);
	free(n->pen);
	free(n->sum);
	free(n->device);
	free(n->client);
	free(n->use);
	idmap_release(&n->use_of);
	idmap_release(&n->row_of);
	free(n);
}

static int node_bind(struct stats_gpus_node *n)
{
	const struct schema *schema = n->walk->schema;
	const struct process_table *t = n->pass->table;
	int r = 0;

	n->sum = calloc(n->pass->nr_sums, sizeof(*n->sum));
	n->pen = calloc(n->pass->nr_sums, sizeof(*n->pen));
	if (!n->sum || !n->pen)
		return -ENOMEM;
	if (!schema)
		return 0;
	n->set = schema_find_domain(schema, DOMAIN_GPU);
	n->process_set = schema_find_domain(schema, DOMAIN_GPU_PROCESS);
	n->used = gpu_column_in(schema, n->set, "gpu.memory.used");
	n->power = gpu_column_in(schema, n->set, "gpu.power");
	n->memory = gpu_column_in(schema, n->process_set, "gpu_process.memory");
	for (size_t i = 0; n->process_set >= 0 && i < t->nr && r >= 0; i++)
		if (t->row[i].node == n->at)
			r = idmap_put(&n->row_of, t->row[i].id, (uint32_t)i);
	return r;
}

static int guest_open(void *arg, uint32_t node, struct walk *walk, struct walk_observer **ret)
{
	struct stats_gpus_node *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->observer.record = observe;
	n->pass = arg;
	n->walk = walk;
	n->at = node;
	n->set = n->process_set = -1;
	r = node_bind(n);
	if (r < 0) {
		node_free(n);
		return r;
	}
	*ret = &n->observer;
	return 0;
}

static int guest_close(void *arg, unsigned worker, struct walk_observer *o, int r)
{
	struct stats_gpus *w = arg;
	struct stats_gpus_node *n = (struct stats_gpus_node *)o;

	for (size_t i = 0; i < w->nr_sums && r >= 0; i++)
		if (n->pen[i].held)
			r = grid_totals_add(&w->of[worker], NULL, i, &n->pen[i], 0);
	node_free(n);
	return r;
}

/* ---- the run ---- */

static double *unknown(size_t nr)
{
	double *list = calloc(MAX(nr, 1), sizeof(*list));

	for (size_t i = 0; list && i < nr; i++)
		list[i] = NAN;
	return list;
}

static int64_t step_of(const struct summary *s)
{
	bool known = has_figure(s, FIG_INTERVAL) && s->figure[FIG_INTERVAL].value < 1e6;

	return MAX(SHORTEST_STEP_NS, known ? (int64_t)(s->figure[FIG_INTERVAL].value * 5e8) : 0);
}

int stats_gpus_guest(const struct run *run, const struct summary *summary,
	const struct process_table *processes, const struct stats_users *users,
	struct stats_gpus_found *found, struct stats_gpus **ret, struct tour_guest *ret_guest)
{
	struct stats_gpus *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->run = run;
	w->summary = summary;
	w->table = processes;
	w->users = users;
	w->found = found;
	w->nr_sums = SUM_USERS + users->nr + summary->nr_groups;
	w->shape = (struct grid_shape){.most = GRID_STEPS, .nr_levels = 1};
	for (size_t i = 0; i < run->nr; i++)
		w->shape.step_ns = MAX(w->shape.step_ns, 2 * step_of(stats_node_summary(summary, i)));
	*found = (struct stats_gpus_found){.process = unknown(processes->nr),
		.node_memory = unknown(run->nr),
		.node_power = unknown(run->nr),
		.sum = unknown(w->nr_sums)};
	if (!found->process || !found->node_memory || !found->node_power || !found->sum) {
		stats_gpus_free(w);
		return -ENOMEM;
	}
	*ret_guest = (struct tour_guest){guest_open, guest_close, w};
	*ret = w;
	return 0;
}

static int peak_of_sum(struct stats_gpus *w, struct grid_total *line)
{
	double unit = line->number == SUM_GPU_POWER ? MILLIWATTS : 1;
	double *peak = &w->found->sum[line->number];
	struct grid *g;
	int r = grid_sum_whole(&line->sum, &g);

	for (size_t k = 0; r >= 0 && k < g->nr; k++)
		if (*grid_levels(g, k) > 0)
			*peak = known_max(*peak, (double)*grid_levels(g, k) / unit);
	return r;
}

int stats_gpus_finish(struct stats_gpus *w)
{
	int r = grid_totals_merge(w->of, PARALLEL_MOST);

	for (size_t i = 0; i < w->of[0].nr && r >= 0; i++)
		r = peak_of_sum(w, &w->of[0].line[i]);
	return r;
}

struct stats_gpus *stats_gpus_free(struct stats_gpus *w)
{
	if (!w)
		return NULL;
	grid_totals_release(w->of, PARALLEL_MOST);
	free(w);
	return NULL;
}

void stats_gpus_release(struct stats_gpus_found *found)
{
	free(found->process);
	free(found->node_memory);
	free(found->node_power);
	free(found->sum);
	*found = (struct stats_gpus_found){0};
}
