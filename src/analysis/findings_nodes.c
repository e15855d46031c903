/* How evenly the work is spread over the nodes of a run. Recordings of one host count as one. */
#include "analysis/rule.h"

#include <math.h>
#include <string.h>

/* A node that is given and does nothing, while others work. */
#define NODE_IDLE 0.05
#define NODE_BUSY 0.3
/* Mean over greatest: what the run would take if all worked alike, as a share of what it takes. */
#define BALANCE_LEAST 0.75
#define BALANCE_LEAST_CORES 1.0
#define MEMORY_UNEVEN 2.0
#define MEMORY_UNEVEN_BYTES 1073741824.0

struct host {
	const char *name;
	size_t part; /* its first recording */
	double cores, given, memory;
	bool idle;
};

static const char *host_name(const struct summary *part)
{
	return part->host ? part->host : "";
}

static size_t hosts_of(const struct look *l, struct host *host)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_parts(l); i++) {
		const struct summary *part = part_of(l, i);
		double cores = figure_of(part, FIG_MEAN_CORES),
		       memory = memory_view_of(l->analysis, part, i).bytes;
		size_t at = 0;

		while (at < nr && strcmp(host[at].name, host_name(part)))
			at++;
		if (at == nr)
			host[nr++] = (struct host){
				.name = host_name(part), .part = i, .given = figure_of(part, FIG_LIMIT_CPUS)};
		host[at].cores += cores;
		host[at].memory += memory;
	}
	return nr;
}

static void look_idle_nodes(struct look *l, struct host *host, size_t nr, double most)
{
	for (size_t i = 0; i < nr; i++) {
		struct finding *f;

		host[i].idle = host[i].cores < NODE_IDLE * host[i].given && most >= NODE_BUSY * host[i].given;
		if (!host[i].idle)
			continue;
		f = found(l, "idle-node", FINDING_WARNING, "cpu",
			"The node %s did nothing: %.2f of its %.0f cores were in use",
			TEXT_SHOWN(host[i].name), host[i].cores, host[i].given);
		found_say(l, f,
			"The others worked. Is the program started on all nodes (srun, mpirun with the node "
			"file), and does it have work for so many?");
		found_node(f, host[i].part);
		found_evidence(l, f, "cpu.mean_cores", host[i].cores, UNIT_COUNT);
		found_evidence(l, f, "limits.cpus", host[i].given, UNIT_COUNT);
	}
}

static void look_balance(struct look *l, const struct host *host, size_t nr)
{
	const struct host *most = NULL, *least = NULL;
	double sum = 0, balance;
	struct finding *f;
	size_t working = 0;

	for (size_t i = 0; i < nr; i++) {
		if (host[i].idle || isnan(host[i].cores))
			continue;
		working++;
		sum += host[i].cores;
		most = most && most->cores >= host[i].cores ? most : &host[i];
		least = least && least->cores <= host[i].cores ? least : &host[i];
	}
	if (working < 2 || most->cores - least->cores < BALANCE_LEAST_CORES)
		return;
	balance = sum / (double)working / most->cores;
	if (!(balance < BALANCE_LEAST))
		return;
	f = found(l, "node-imbalance", FINDING_WARNING, "cpu",
		"The nodes worked unevenly: %s used %.1f cores, %s %.1f", TEXT_SHOWN(most->name), most->cores,
		TEXT_SHOWN(least->name), least->cores);
	found_say(l, f,
		"On average a node did %.0f %% of what the busiest did; where they wait for each other, that "
		"is the share of the time in which the allocation works. Spread the work evenly, or give "
		"nodes work as they become free.",
		100 * balance);
	found_node(f, least->part);
	found_evidence(l, f, "balance_ratio", balance, UNIT_RATIO);
	found_evidence(l, f, "most_cores", most->cores, UNIT_COUNT);
	found_evidence(l, f, "least_cores", least->cores, UNIT_COUNT);
}

static void look_memory_balance(struct look *l, const struct host *host, size_t nr)
{
	const struct host *most = &host[0];
	struct finding *f;
	double mean = 0;

	for (size_t i = 0; i < nr; i++) {
		mean += host[i].memory / (double)nr;
		most = host[i].memory > most->memory ? &host[i] : most;
	}
	if (!(most->memory >= MEMORY_UNEVEN * mean) || most->memory - mean < MEMORY_UNEVEN_BYTES)
		return;
	f = found(l, "memory-imbalance", FINDING_NOTE, "memory",
		"The node %s needed %s of memory, a node on average %s", TEXT_SHOWN(most->name),
		format_bytes(SHOWN, most->memory), format_bytes(SHOWN, mean));
	found_say(l, f, "Every node must be given what that one needs.");
	found_node(f, most->part);
	found_evidence(l, f, "most_bytes", most->memory, UNIT_BYTES);
	found_evidence(l, f, "mean_bytes", mean, UNIT_BYTES);
}

void look_nodes(struct look *l)
{
	struct host *host = calloc(nr_parts(l), sizeof(*host));
	double most = 0;
	size_t nr;

	if (!host) {
		l->err = -ENOMEM;
		return;
	}
	nr = hosts_of(l, host);
	for (size_t i = 0; i < nr; i++)
		most = host[i].cores > most ? host[i].cores : most;
	if (nr >= 2) {
		look_idle_nodes(l, host, nr, most);
		look_balance(l, host, nr);
		look_memory_balance(l, host, nr);
	}
	free(host);
}
