/* Several nodes to one summary: each figure by the rule in its row, and what only the whole run knows (peaks
 * of sums, its own wall time) from the walk. */
#include "query/nodes.h"

#include <math.h>
#include <string.h>

static const char *missing_why(const struct summary *total, enum figure_id id)
{
	const char *why = total->nr_nodes ? total->node[0].figure[id].why : NULL;

	return why ? why : "not known of every node";
}

static void combine_sum(struct summary *total, enum figure_id id, bool greatest)
{
	double value = 0;
	size_t known = 0;

	for (size_t i = 0; i < total->nr_nodes; i++) {
		const struct figure *f = &total->node[i].figure[id];

		if (f->why)
			continue;
		value = known++ && greatest ? MAX(value, f->value) : greatest ? f->value : value + f->value;
	}
	if (!known) {
		figure_unset(total, id, missing_why(total, id));
		return;
	}
	figure_set(total, id, value);
	if (known < total->nr_nodes)
		summary_note(total, "%s%s%s is that of %zu of %zu recordings",
			summary_row[id].group ? summary_row[id].group : "", summary_row[id].group ? "." : "",
			summary_row[id].name, known, total->nr_nodes);
}

static void combine_same(struct summary *total, enum figure_id id)
{
	const struct figure *first = &total->node[0].figure[id];

	total->figure[id] = *first;
	for (size_t i = 1; i < total->nr_nodes; i++)
		if (total->node[i].figure[id].why != NULL || first->why ||
			total->node[i].figure[id].value != first->value)
			figure_unset(total, id, first->why ? first->why : "differs between the recordings");
}

/* Two recordings of one machine share what it has. */
static void combine_hosts(struct summary *total, enum figure_id id)
{
	double sum = 0;

	figure_unset(total, id, missing_why(total, id));
	for (size_t i = 0; i < total->nr_nodes; i++) {
		bool known_host = false;

		if (total->node[i].figure[id].why)
			return;
		for (size_t j = 0; j < i && !known_host; j++)
			known_host =
				*total->node[i].host && !strcmp(total->node[i].host, total->node[j].host);
		sum += known_host ? 0 : total->node[i].figure[id].value;
	}
	figure_set(total, id, sum);
}

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

static void combine_flags(struct summary *total)
{
	double cpu = 0, observed = 0;
	size_t unfinished = 0;

	total->complete = true;
	total->cpu_source = total->node[0].cpu_source;
	for (size_t i = 0; i < total->nr_nodes; i++) {
		const struct summary *node = &total->node[i];

		total->complete &= node->complete;
		unfinished += !node->complete;
		total->cpu_lower_bound |= node->cpu_lower_bound;
		total->unsampled_is_upper_bound |= node->unsampled_is_upper_bound;
		total->lost_bytes += node->lost_bytes;
		if (total->cpu_source && (!node->cpu_source || strcmp(total->cpu_source, node->cpu_source)))
			total->cpu_source = "mixed";
		if (has_figure(node, FIG_CPU) && has_figure(node, FIG_OBSERVED)) {
			cpu += node->figure[FIG_CPU].value;
			observed += node->figure[FIG_CPU].value * node->figure[FIG_OBSERVED].value;
		}
	}
	if (cpu > 0)
		figure_set(total, FIG_OBSERVED, observed / cpu);
	else
		figure_unset(total, FIG_OBSERVED, missing_why(total, FIG_OBSERVED));
	if (unfinished)
		summary_note(total, "%zu of %zu recordings are unfinished", unfinished, total->nr_nodes);
	if (total->cpu_lower_bound)
		summary_note(total, "CPU time is a lower bound: see the nodes");
}

int summary_combine(struct summary *total, struct tracker *t)
{
	double recorded = 0;
	int r = combine_identity(total);

	if (r < 0)
		return r;
	for (enum figure_id id = 0; id < NR_FIGURES; id++) {
		switch (summary_row[id].combine) {
		case COMBINE_SUM:
		case COMBINE_MAX:
			combine_sum(total, id, summary_row[id].combine == COMBINE_MAX);
			break;
		case COMBINE_SAME:
			combine_same(total, id);
			break;
		case COMBINE_HOSTS:
			combine_hosts(total, id);
			break;
		case COMBINE_OWN:
			figure_unset(total, id, missing_why(total, id));
			break;
		}
	}
	combine_wall(total);
	combine_exit(total);
	combine_flags(total);
	for (size_t i = 0; i < total->nr_nodes; i++)
		recorded += total->node[i].figure[FIG_WALL].value;
	fill_self_percent(total, recorded);
	fill_peaks(total, t);
	return 0;
}
