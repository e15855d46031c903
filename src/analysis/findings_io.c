/* Waiting for memory and for disks: as the kernel measures it (pressure), and where it does not, by the time
 * in which CPUs were idle because of it. */
#include "analysis/rule.h"

#include <math.h>
#include <string.h>

#define MIB 1048576.0
/* Share of the time in which some task waited. Of the job's own group less is telling than of a whole node,
 * on which others wait too. */
#define MEMORY_PRESSURE_GROUP 0.05
#define MEMORY_PRESSURE_NODE 0.1
#define IO_PRESSURE_GROUP 0.2
#define IO_PRESSURE_NODE 0.25
/* Who moves less than that, or a smaller part of it, is not the one who waits. */
#define IO_LEAST_BYTES (16 * MIB)
#define IO_LEAST_SHARE 0.3
/* CPUs that were idle because of disks, and their share of all that the job could have used. */
#define IOWAIT_LEAST_CORES 0.2
#define IOWAIT_LEAST_SHARE 0.2

struct pressure_row {
	const char *id, *what;
	enum evidence_id of_group, of_node;
	double least_group, least_node;
	const char *advice;
	bool io;
};

/* clang-format off */
static const struct pressure_row pressure_row[] = {
	{"memory-pressure", "memory", EV_CG_PRESSURE_MEMORY, EV_PRESSURE_MEMORY, MEMORY_PRESSURE_GROUP, MEMORY_PRESSURE_NODE,
		"The kernel had to make room before it could give more, and the job stood still meanwhile. Ask for more memory, or do "
		"less at a time; files that are read once only may be the cause, too.", false},
	{"io-pressure", "disks", EV_CG_PRESSURE_IO, EV_PRESSURE_IO, IO_PRESSURE_GROUP, IO_PRESSURE_NODE,
		"Read and write larger pieces and fewer files, keep scratch data on a local disk or in memory, or overlap I/O with "
		"computing.", true},
};
/* clang-format on */

static double job_bytes(const struct summary *part)
{
	double sum = 0;

	for (enum figure_id id = FIG_READ_BYTES; id <= FIG_WRITE_BYTES; id++)
		sum += has_figure(part, id) ? part->figure[id].value : 0;
	return sum;
}

/* The job is the one that keeps the disks busy, as far as that is known. */
static bool does_io(const struct summary *part)
{
	double disks = figure_of(part, FIG_DISK_READ) + figure_of(part, FIG_DISK_WRITTEN),
	       own = job_bytes(part);

	return own >= IO_LEAST_BYTES && !(own < IO_LEAST_SHARE * disks);
}

static void look_pressure(struct look *l, size_t i, const struct pressure_row *row)
{
	const struct summary *part = part_of(l, i);
	struct curve c;
	bool group = !group_has_others(l->analysis, part, i) &&
		curve_named(l->analysis, row->of_group, i, part->text[TEXT_CGROUP], &c);
	struct finding *f;
	double share;

	if (!group && (!curve_of(l->analysis, row->of_node, i, &c) || (row->io && !does_io(part))))
		return;
	share = curve_per_s(&c);
	share = share > 1 ? 1 : share; /* read a little late */
	if (!(share >= (group ? row->least_group : row->least_node)) || c.axis->nr_times < CURVE_LEAST)
		return;
	f = found_on(l, i, row->id, FINDING_WARNING, group ? "cgroup-pressure" : "pressure",
		"For %.0f %% of the time something waited for %s", 100 * share, row->what);
	found_say(l, f, "So the kernel measures it for %s. %s",
		group ? "the job's control group" : "the whole node, on which others may wait, too",
		row->advice);
	found_evidence(l, f, finding_query[group ? row->of_group : row->of_node].metric, share, UNIT_RATIO);
	if (row->io)
		found_figures(l, f, part, FIG_READ_BYTES, FIG_WRITE_BYTES);
}

void look_memory_pressure(struct look *l, size_t i)
{
	look_pressure(l, i, &pressure_row[0]);
}

void look_io_pressure(struct look *l, size_t i)
{
	look_pressure(l, i, &pressure_row[1]);
}

/* What pressure has told already is not told again. */
void look_io_wait(struct look *l, size_t i)
{
	const struct summary *part = part_of(l, i);
	double used = figure_of(part, FIG_MEAN_CORES), waiting;
	struct finding *f;
	struct curve c;

	if (found_has(l, "io-pressure") || !does_io(part) || !curve_of(l->analysis, EV_IOWAIT, i, &c) ||
		c.axis->nr_times < CURVE_LEAST)
		return;
	waiting = c.line->average * figure_of(part, FIG_MACHINE_CPUS);
	if (!(waiting >= IOWAIT_LEAST_CORES) || !(waiting >= IOWAIT_LEAST_SHARE * (used + waiting)))
		return;
	f = found_on(l, i, "io-wait", FINDING_WARNING, "node-cpu", "%s on average idle because of disks",
		cores_shown(SHOWN, waiting));
	found_say(l, f,
		"Tasks of the node waited for disks while CPUs had nothing else to do; the job moved %s to "
		"and "
		"from storage. %s",
		format_bytes(SHOWN, job_bytes(part)), pressure_row[1].advice);
	found_evidence(l, f, "cpu.waiting", c.line->average, UNIT_RATIO);
	found_figures(l, f, part, FIG_MEAN_CORES, FIG_READ_BYTES, FIG_WRITE_BYTES);
}
