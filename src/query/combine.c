/* Several nodes to one summary: each figure by the rule in its row, and what only the whole run knows (peaks
 * of sums, its own wall time) from the walk. */
#include "query/nodes.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

static const char *missing_why(const struct parts *of, enum figure_id id)
{
	const char *why = of->nr ? of->part[0]->figure[id].why : NULL;

	return why ? why : "not known of every node";
}

/* Of a group the reader is not told for every figure. */
static void note_missing(struct summary *total, const struct parts *of, enum figure_id id, size_t known)
{
	if (known < of->nr && !total->name)
		summary_note(total, "%s%s%s is that of %zu of %zu recordings",
			summary_row[id].group ? summary_row[id].group : "", summary_row[id].group ? "." : "",
			summary_row[id].name, known, of->nr);
}

static void combine_sum(struct summary *total, const struct parts *of, enum figure_id id, bool greatest)
{
	double value = 0;
	size_t known = 0;

	for (size_t i = 0; i < of->nr; i++) {
		const struct figure *f = &of->part[i]->figure[id];

		if (f->why)
			continue;
		value = known++ && greatest ? MAX(value, f->value) : greatest ? f->value : value + f->value;
	}
	if (!known) {
		figure_unset(total, id, missing_why(of, id));
		return;
	}
	figure_set(total, id, value);
	note_missing(total, of, id, known);
}

static void combine_same(struct summary *total, const struct parts *of, enum figure_id id)
{
	const struct figure *first = &of->part[0]->figure[id];

	total->figure[id] = *first;
	for (size_t i = 1; i < of->nr; i++)
		if (of->part[i]->figure[id].why != NULL || first->why ||
			of->part[i]->figure[id].value != first->value)
			figure_unset(total, id, first->why ? first->why : "differs between the recordings");
}

static bool same_host(const struct summary *a, const struct summary *b)
{
	return *a->host && !strcmp(a->host, b->host);
}

/* Of groups it is not known: they may. */
static bool overlap(const struct summary *a, const struct summary *b)
{
	const struct summary *first = a->start_wall_ns <= b->start_wall_ns ? a : b,
			     *second = first == a ? b : a;

	return first->start_wall_ns <= 0 || !has_figure(first, FIG_WALL) ||
		((double)second->start_wall_ns - (double)first->start_wall_ns) / 1e9 <
		first->figure[FIG_WALL].value;
}

/* Two recordings of one machine share what it has and saw what it did: the one that says more counts. With
 * `apart` only of those that were there at the same time. */
static bool is_greatest_of_host(const struct parts *of, size_t i, enum figure_id id, bool apart)
{
	double value = of->part[i]->figure[id].value;

	for (size_t j = 0; j < of->nr; j++) {
		const struct figure *other = &of->part[j]->figure[id];

		if (j != i && !other->why && same_host(of->part[i], of->part[j]) &&
			(!apart || overlap(of->part[i], of->part[j])) &&
			(other->value > value || (other->value == value && j < i)))
			return false;
	}
	return true;
}

static void combine_hosts(struct summary *total, const struct parts *of, enum figure_id id, bool all)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < of->nr; i++) {
		if (of->part[i]->figure[id].why)
			continue;
		known++;
		sum += is_greatest_of_host(of, i, id, !all && total->of_run) ? of->part[i]->figure[id].value
									     : 0;
	}
	if (!known || (all && known < of->nr)) {
		figure_unset(total, id, missing_why(of, id));
		return;
	}
	figure_set(total, id, sum);
	note_missing(total, of, id, known);
}

static void combine_figure(struct summary *total, const struct parts *of, enum figure_id id)
{
	switch (summary_row[id].combine) {
	case COMBINE_SUM:
	case COMBINE_MAX:
		combine_sum(total, of, id, summary_row[id].combine == COMBINE_MAX);
		break;
	case COMBINE_SAME:
		combine_same(total, of, id);
		break;
	case COMBINE_HOSTS:
	case COMBINE_DONE:
		combine_hosts(total, of, id, summary_row[id].combine == COMBINE_HOSTS);
		break;
	case COMBINE_OWN:
		figure_unset(total, id, missing_why(of, id));
		break;
	}
}

/* ---- words ---- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static int combine_texts(struct summary *total, const struct parts *of)
{
	for (unsigned i = 0; i < NR_TEXTS; i++) {
		const char *first = of->part[0]->text[i];
		bool same = true;

		for (size_t j = 1; j < of->nr && same; j++)
			same = same_text(first, of->part[j]->text[i]);
		if (!first || !same)
			continue;
		free(total->text[i]);
		total->text[i] = strdup(first);
		if (!total->text[i])
			return -ENOMEM;
	}
	return 0;
}

static bool has_fact(const struct summary_fact *fact, size_t nr, const struct summary_fact *wanted)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(fact[i].name, wanted->name))
			return !strcmp(fact[i].value, wanted->value);
	return false;
}

struct combine_facts {
	struct summary_fact *fact;
	size_t nr;
};

static struct combine_facts facts_of(const struct summary *s, bool hardware)
{
	return hardware ? (struct combine_facts){s->hardware, s->nr_hardware}
			: (struct combine_facts){s->environment, s->nr_environment};
}

/* What all nodes have in common. */
static int combine_facts(
	const struct summary *total, bool hardware, struct summary_fact **ret, size_t *ret_nr)
{
	struct combine_facts first = facts_of(&total->node[0], hardware);
	int r = 0;

	for (size_t i = 0; i < first.nr && r >= 0; i++) {
		bool common = true;

		for (size_t j = 1; j < total->nr_nodes && common; j++) {
			struct combine_facts other = facts_of(&total->node[j], hardware);

			common = has_fact(other.fact, other.nr, &first.fact[i]);
		}
		if (common)
			r = summary_fact_add(ret, ret_nr, first.fact[i].name, first.fact[i].value);
	}
	return r;
}

/* ---- the whole ---- */

/* Good if all are; else the first that is not. */
static void combine_exit(struct summary *total)
{
	const struct summary *worst = &total->node[0];

	for (size_t i = 0; i < total->nr_nodes; i++) {
		const struct summary *node = &total->node[i];

		if (has_figure(node, FIG_EXIT_CODE) && node->figure[FIG_EXIT_CODE].value == 0)
			continue;
		worst = node;
		if (has_figure(node, FIG_EXIT_CODE) || has_figure(node, FIG_EXIT_SIGNAL))
			break;
	}
	total->figure[FIG_EXIT_CODE] = worst->figure[FIG_EXIT_CODE];
	total->figure[FIG_EXIT_SIGNAL] = worst->figure[FIG_EXIT_SIGNAL];
}

static void combine_wall(struct summary *total)
{
	double end = 0;

	for (size_t i = 0; i < total->nr_nodes; i++) {
		int64_t start = total->node[i].start_wall_ns;

		if (start > 0 && (!total->start_wall_ns || start < total->start_wall_ns))
			total->start_wall_ns = start;
	}
	for (size_t i = 0; i < total->nr_nodes; i++) {
		const struct summary *node = &total->node[i];
		double after = node->start_wall_ns > 0
			? (double)(node->start_wall_ns - total->start_wall_ns) * 1e-9
			: 0;

		end = MAX(end, after + node->figure[FIG_WALL].value);
	}
	figure_set(total, FIG_WALL, end);
}

/* Of one node it holds; of several, each had its own at its own time. */
static void combine_bandwidth(struct summary *total, const struct parts *of)
{
	combine_sum(total, of, FIG_MEMBW_PEAK, true);
	for (size_t i = 1; i < of->nr && has_figure(total, FIG_MEMBW_PEAK); i++)
		if (!same_host(of->part[0], of->part[i]))
			figure_unset(total, FIG_MEMBW_PEAK,
				"the nodes had their peaks at different times: see nodes");
}

static bool same_command(const struct summary *a, const struct summary *b)
{
	return a->command_len == b->command_len && !memcmp(a->command, b->command, a->command_len);
}

static int combine_identity(struct summary *total)
{
	const struct summary *first = &total->node[0];
	bool command = true, host = true, mode = true;

	for (size_t i = 1; i < total->nr_nodes; i++) {
		command = command && same_command(first, &total->node[i]);
		host = host && !strcmp(first->host, total->node[i].host);
		mode = mode && !strcmp(first->mode, total->node[i].mode);
	}
	total->path = strdup("");
	total->ended = strdup("");
	total->mode = strdup(mode ? first->mode : "");
	if (!total->path || !total->ended || !total->mode)
		return -ENOMEM;
	if (host) {
		total->host = strdup(first->host);
		if (!total->host)
			return -ENOMEM;
	}
	if (command) {
		total->command = malloc(first->command_len + 1);
		if (!total->command)
			return -ENOMEM;
		memcpy(total->command, first->command, first->command_len + 1);
		total->command_len = first->command_len;
	}
	return 0;
}

static void combine_cpu(struct summary *total, const struct parts *of)
{
	double cpu = 0, observed = 0;

	total->cpu_source = of->part[0]->cpu_source;
	for (size_t i = 0; i < of->nr; i++) {
		const struct summary *part = of->part[i];

		total->cpu_lower_bound |= part->cpu_lower_bound;
		total->io_lower_bound |= part->io_lower_bound;
		total->memory_lower_bound |= part->memory_lower_bound;
		if (total->cpu_source && (!part->cpu_source || strcmp(total->cpu_source, part->cpu_source)))
			total->cpu_source = "mixed";
		if (has_figure(part, FIG_CPU) && has_figure(part, FIG_OBSERVED)) {
			cpu += part->figure[FIG_CPU].value;
			observed += part->figure[FIG_CPU].value * part->figure[FIG_OBSERVED].value;
		}
	}
	if (cpu > 0)
		figure_set(total, FIG_OBSERVED, observed / cpu);
	else
		figure_unset(total, FIG_OBSERVED, missing_why(of, FIG_OBSERVED));
}

static void combine_flags(struct summary *total)
{
	size_t unfinished = 0;

	total->complete = true;
	for (size_t i = 0; i < total->nr_nodes; i++) {
		const struct summary *node = &total->node[i];

		total->complete &= node->complete;
		unfinished += !node->complete;
		total->unsampled_is_upper_bound |= node->unsampled_is_upper_bound;
		total->lost_bytes += node->lost_bytes;
	}
	if (unfinished)
		summary_note(total, "%zu of %zu recordings are unfinished", unfinished, total->nr_nodes);
	if (total->cpu_lower_bound)
		summary_note(total, "CPU time is a lower bound: see the nodes");
	if (total->memory_lower_bound)
		summary_note(total, "memory is a lower bound: see the nodes");
}

/* No less than any of them had. */
static void combine_peak_cores(struct summary *total, const struct parts *of)
{
	for (size_t i = 0; i < of->nr; i++)
		if (has_figure(of->part[i], FIG_PEAK_CORES))
			raise_peak_cores(total, of->part[i]->figure[FIG_PEAK_CORES].value,
				of->part[i]->figure[FIG_PEAK_WINDOW].value, "it was on one of several nodes");
}

/* The nodes, or with a name their groups of that name. */
static int parts_of(const struct summary *total, const char *name, struct parts *ret)
{
	*ret = (struct parts){.part = calloc(total->nr_nodes, sizeof(*ret->part))};
	if (!ret->part)
		return -ENOMEM;
	for (size_t i = 0; i < total->nr_nodes; i++) {
		const struct summary *node = &total->node[i], *part = name ? NULL : node;

		for (size_t j = 0; name && j < node->nr_groups && !part; j++)
			part = strcmp(node->group[j].name, name) ? NULL : &node->group[j];
		if (part)
			ret->part[ret->nr++] = part;
	}
	return 0;
}

int summary_combine(struct summary *total, struct tracker *t)
{
	double recorded = 0;
	struct parts of;
	int r = parts_of(total, NULL, &of);

	if (r < 0)
		return r;
	r = combine_identity(total);
	if (r >= 0)
		r = combine_texts(total, &of);
	if (r >= 0)
		r = combine_facts(total, true, &total->hardware, &total->nr_hardware);
	if (r >= 0)
		r = combine_facts(total, false, &total->environment, &total->nr_environment);
	for (enum figure_id id = 0; id < NR_FIGURES; id++)
		combine_figure(total, &of, id);
	combine_bandwidth(total, &of);
	combine_wall(total);
	combine_exit(total);
	combine_cpu(total, &of);
	combine_flags(total);
	for (size_t i = 0; i < total->nr_nodes; i++)
		recorded += total->node[i].figure[FIG_WALL].value;
	fill_self_percent(total, recorded);
	fill_peaks(total, t);
	combine_peak_cores(total, &of);
	fill_shares(total);
	if (r >= 0)
		r = combine_counters(total, &of);
	if (r >= 0)
		r = combine_told(total, &of);
	if (r >= 0)
		r = combine_gpus(total, &of);
	summary_alarms(total);
	free(of.part);
	return r;
}

int summary_combine_group(struct summary *total, const char *name, struct tracker *t)
{
	struct summary *s;
	struct parts of;
	int r = ARRAY_RESIZE(total->group, total->nr_groups + 1);

	if (r >= 0)
		r = parts_of(total, name, &of);
	if (r < 0)
		return r;
	if (!of.nr) {
		free(of.part);
		return 0;
	}
	s = &total->group[total->nr_groups++];
	*s = (struct summary){.name = strdup(name),
		.kind = strdup(of.part[0]->kind),
		.target = strdup(of.part[0]->target),
		.own = of.part[0]->own};
	for (enum figure_id id = 0; id < NR_FIGURES; id++)
		if (summary_row[id].of_groups)
			combine_figure(s, &of, id);
	take_capacity(s, total);
	r = combine_texts(s, &of);
	combine_cpu(s, &of);
	fill_peaks(s, t);
	combine_peak_cores(s, &of);
	fill_shares(s);
	if (r >= 0)
		r = combine_gpus(s, &of);
	free(of.part);
	return s->name && s->kind && s->target ? r : -ENOMEM;
}
