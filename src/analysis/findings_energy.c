/* What the run cost in energy. A joule for each second of CPU time is a watt-hour for each CPU-hour. */
#include "analysis/rule.h"

#include "text/words.h"

#include <math.h>
#include <string.h>

/* Less computing is no measure of what an hour of it costs. */
#define ENERGY_LEAST_CPU_S 1.0
/* Below that share of the node most of its energy went elsewhere: into idle parts and other jobs. */
#define ENERGY_LITTLE 0.5

void look_energy(struct look *l)
{
	const struct summary *s = l->run;
	double joules = figure_of(s, FIG_ENERGY), cpu = figure_of(s, FIG_CPU),
	       gpu = figure_of(s, FIG_JOB_GPU_ENERGY);
	double share = figure_of(s, FIG_CPU_OF_NODE);
	const char *source = s->text[TEXT_ENERGY_SOURCE];
	struct finding *f;

	if (!(joules > 0) || !(cpu >= ENERGY_LEAST_CPU_S))
		return;
	f = found(l, "energy", FINDING_NOTE, "power", "%s of energy, %s for each CPU-hour",
		format_si(SHOWN, joules, "J"), format_si(SHOWN, joules / cpu, "Wh"));
	found_say(l, f, "So much %s used during the run (%.3g kWh)%s%s.",
		nr_parts(l) > 1 ? "the nodes" : "the node", joules / 3.6e6, source ? ", by " : "",
		source ? TEXT_SHOWN(source) : "");
	if (figure_of(s, FIG_POWER) > 0)
		found_say(l, f, "%s on average.", format_si(SHOWN, figure_of(s, FIG_POWER), "W"));
	if (share < ENERGY_LITTLE)
		found_say(l, f,
			"The job used %.0f %% of its CPU time: most of the energy went into idle cores or "
			"other jobs, and an hour of CPU time is cheaper where more cores work.",
			100 * share);
	if (gpu > 0)
		found_say(l, f, "The job's GPUs used %s by their own meters.", format_si(SHOWN, gpu, "J"));
	found_figures(l, f, s, FIG_ENERGY, FIG_POWER, FIG_CPU);
	found_evidence(l, f, "joules_per_cpu_hour", joules / cpu * 3600, UNIT_JOULES);
	found_figures(l, f, s, FIG_JOB_GPU_ENERGY);
}
