/* What each node or rank has is gathered into one table (a line for each, a column for each quantity), and a
 * row of the balance is made of it.
 *
 * Two recordings of one host: what processes used and held is added, what they saw of the machine is the same
 * and counts once. Ranks are groups of processes of the kind "rank", or the recordings themselves where each
 * is of one rank (`srun tacho run -- ./rank`). A phase is compared over the nodes that told it. */
#include "query/balance.h"

#include <math.h>
#include <string.h>

/* clang-format off */
const struct balance_column balance_column[NR_BALANCE] = {
	[BALANCE_CPU]    = {"cpu_s",        "CPU",         UNIT_SECONDS},
	[BALANCE_MEMORY] = {"memory_bytes", "memory",      UNIT_BYTES},
	[BALANCE_GPU]    = {"gpu_percent",  "GPU",         UNIT_COUNT},
	[BALANCE_IN]     = {"net_rx_bytes", "network in",  UNIT_BYTES},
	[BALANCE_OUT]    = {"net_tx_bytes", "network out", UNIT_BYTES},
};
/* clang-format on */

struct line { /* a node or a rank */
	const char *name;
	double value[NR_BALANCE];
};

struct balance_making {
	const struct summary *s;
	struct hosts hosts;
	struct line *line; /* as many as there are recordings or groups */
	struct balance *b;
};

static double figure(const struct summary *s, enum figure_id id)
{
	return has_figure(s, id) ? s->figure[id].value : NAN;
}

static double sum(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : a + b;
}

static void add(double *to, double value)
{
	*to = sum(*to, value);
}

static void add_most(double *to, double value)
{
	if (!(*to >= value) && !isnan(value))
		*to = value;
}

/* ---- a row ---- */

static void compare_lines(const struct line *line, size_t nr, unsigned column, struct balance_value *ret)
{
	double total = 0;

	*ret = (struct balance_value){.mean = NAN, .most = NAN, .least = NAN};
	for (size_t i = 0; i < nr; i++) {
		double v = line[i].value[column];

		if (isnan(v))
			continue;
		total += v;
		if (!ret->nr || v > ret->most) {
			ret->most = v;
			ret->most_on = line[i].name;
		}
		if (!ret->nr || v < ret->least) {
			ret->least = v;
			ret->least_on = line[i].name;
		}
		ret->nr++;
	}
	if (ret->nr)
		ret->mean = total / (double)ret->nr;
}

static int add_row(struct balance_making *g, size_t nr, const char *of, const char *name, const char *over)
{
	struct balance_row row = {.of = of, .name = name, .over = over}, *more;
	bool any = false;

	for (unsigned k = 0; k < NR_BALANCE; k++) {
		compare_lines(g->line, nr, k, &row.value[k]);
		any |= row.value[k].nr >= 2;
	}
	if (!any)
		return 0;
	more = ARRAY_ADD(g->b->row, g->b->nr);
	if (!more)
		return -ENOMEM;
	*more = row;
	return 0;
}

static void clear_lines(struct balance_making *g)
{
	for (size_t i = 0; i < g->hosts.nr; i++) {
		g->line[i].name = g->hosts.host[i].name;
		for (unsigned k = 0; k < NR_BALANCE; k++)
			g->line[i].value[k] = NAN;
	}
}

/* ---- over nodes ---- */

/* The mean of the job's GPUs on each host. */
static void gather_gpus(struct balance_making *g)
{
	for (size_t i = 0; i < g->hosts.nr; i++) {
		const struct summary *part = hosts_part(g->s, g->hosts.host[i].first);
		double total = 0, nr = 0;

		for (size_t k = 0; k < part->nr_gpus; k++) {
			const struct summary_gpu *gpu = &part->gpu[k];

			if (!summary_gpu_is_of_job(gpu) || gpu->text[GPU_TEXT_PARENT] ||
				gpu->figure[GPU_FIG_UTIL_MEAN].why)
				continue;
			total += gpu->figure[GPU_FIG_UTIL_MEAN].value;
			nr++;
		}
		if (nr > 0)
			g->line[i].value[BALANCE_GPU] = total / nr;
	}
}

static int whole_run(struct balance_making *g)
{
	clear_lines(g);
	for (size_t i = 0; i < g->hosts.nr_parts; i++) {
		const struct summary *part = hosts_part(g->s, i);
		double *value = g->line[g->hosts.of[i]].value;

		value[BALANCE_CPU] = g->hosts.host[g->hosts.of[i]].cpu_s;
		value[BALANCE_MEMORY] = g->hosts.host[g->hosts.of[i]].memory_bytes;
		add_most(&value[BALANCE_IN],
			sum(figure(part, FIG_NET_RX_BYTES), figure(part, FIG_IB_RX_BYTES)));
		add_most(&value[BALANCE_OUT],
			sum(figure(part, FIG_NET_TX_BYTES), figure(part, FIG_IB_TX_BYTES)));
	}
	gather_gpus(g);
	return add_row(g, g->hosts.nr, "run", NULL, "nodes");
}

static const struct phase *phase_by_key(const struct phases *p, const char *key)
{
	for (size_t i = 0; p && i < p->nr; i++)
		if (!strcmp(p->phase[i].key, key))
			return &p->phase[i];
	return NULL;
}

static int one_phase(struct balance_making *g, const struct phase *phase)
{
	clear_lines(g);
	for (size_t i = 0; i < g->hosts.nr_parts; i++) {
		const struct phase *own = phase_by_key(hosts_part(g->s, i)->phases, phase->key);
		double *value = g->line[g->hosts.of[i]].value;

		if (!own)
			continue;
		add(&value[BALANCE_CPU], own->value[PHASE_CPU]);
		add(&value[BALANCE_MEMORY], own->value[PHASE_MEMORY]);
		add_most(&value[BALANCE_GPU], own->value[PHASE_GPU_UTIL]);
		add_most(&value[BALANCE_IN],
			sum(own->value[PHASE_NET_RX_BYTES], own->value[PHASE_IB_RX_BYTES]));
		add_most(&value[BALANCE_OUT],
			sum(own->value[PHASE_NET_TX_BYTES], own->value[PHASE_IB_TX_BYTES]));
	}
	return add_row(g, g->hosts.nr, "phase", phase->name, "nodes");
}

static bool is_rank(const struct summary *group)
{
	return group->kind && !strcmp(group->kind, "rank");
}

static int one_group(struct balance_making *g, const struct summary *group)
{
	clear_lines(g);
	for (size_t i = 0; i < g->hosts.nr_parts; i++) {
		const struct summary *part = hosts_part(g->s, i);

		for (size_t k = 0; k < part->nr_groups; k++) {
			double *value = g->line[g->hosts.of[i]].value;

			if (strcmp(part->group[k].name, group->name) != 0)
				continue;
			add(&value[BALANCE_CPU], figure(&part->group[k], FIG_CPU));
			add(&value[BALANCE_MEMORY], figure(&part->group[k], FIG_MEMORY));
		}
	}
	return add_row(g, g->hosts.nr, "group", group->name, "nodes");
}

/* ---- over ranks ---- */

/* The number of the rank that this recording is of; NULL: it is of none. A recorder that looks on has the
 * variables of its own step. */
static const char *rank_of(const struct summary *part)
{
	static const char *const variable[] = {"SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
		"PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK"};

	if (!part->mode || strcmp(part->mode, "run") != 0)
		return NULL;
	for (size_t v = 0; v < ARRAY_SIZE(variable); v++)
		for (size_t i = 0; i < part->nr_environment; i++)
			if (!strcmp(part->environment[i].name, variable[v]))
				return part->environment[i].value;
	return NULL;
}

static void line_of(struct line *line, const char *name, const struct summary *s)
{
	*line = (struct line){.name = name, .value = {NAN, NAN, NAN, NAN, NAN}};
	line->value[BALANCE_CPU] = figure(s, FIG_CPU);
	line->value[BALANCE_MEMORY] = figure(s, FIG_MEMORY);
}

static int over_ranks(struct balance_making *g)
{
	size_t nr = 0;
	bool grouped;

	for (size_t i = 0; i < g->s->nr_groups; i++)
		if (is_rank(&g->s->group[i]))
			line_of(&g->line[nr++], g->s->group[i].name, &g->s->group[i]);
	grouped = nr > 0;
	for (size_t i = 0; !grouped && i < g->s->nr_nodes; i++)
		if (!rank_of(&g->s->node[i]))
			return 0;
	for (size_t i = 0; !grouped && i < g->s->nr_nodes; i++) {
		const char *name = owned_printf(
			&g->b->kept, "rank %.32s on %.100s", rank_of(&g->s->node[i]), g->s->node[i].host);

		if (!name)
			return -ENOMEM;
		line_of(&g->line[nr++], name, &g->s->node[i]);
	}
	return add_row(g, nr, "run", NULL, "ranks");
}

/* ---- all of it ---- */

int balance_make(const struct summary *s, struct balance *ret)
{
	struct balance_making g = {.s = s, .b = ret};
	int r;

	*ret = (struct balance){0};
	r = hosts_make(s, &g.hosts);
	if (r < 0)
		return r;
	g.line = calloc(g.hosts.nr_parts + s->nr_groups, sizeof(*g.line));
	r = g.line ? 0 : -ENOMEM;
	if (r >= 0 && g.hosts.nr > 1)
		r = whole_run(&g);
	if (r >= 0)
		r = over_ranks(&g);
	for (size_t i = 0; r >= 0 && g.hosts.nr > 1 && s->phases && i < s->phases->nr; i++)
		r = one_phase(&g, &s->phases->phase[i]);
	for (size_t i = 0; r >= 0 && g.hosts.nr > 1 && i < s->nr_groups; i++)
		if (!is_rank(&s->group[i]))
			r = one_group(&g, &s->group[i]);
	hosts_release(&g.hosts);
	free(g.line);
	if (r < 0)
		balance_release(ret);
	return r;
}

void balance_release(struct balance *b)
{
	free(b->row);
	owned_free(&b->kept);
	*b = (struct balance){0};
}
