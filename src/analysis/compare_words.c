/* A comparison in words: the titles of its figures, and one line that says what is different. */
#include "analysis/compare.h"

#include "base/str.h"
#include "base/units.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- titles ---- */

struct title {
	const char *name, *title;
};

/* clang-format off */
static const struct title of_run[] = {
	{"wall_s",                      "wall time"},
	{"exit.code",                   "exit code"},
	{"exit.signal",                 "ended by signal"},
	{"cpu.total_s",                 "CPU time"},
	{"cpu.user_s",                  "CPU time in programs"},
	{"cpu.system_s",                "CPU time in the kernel"},
	{"cpu.mean_cores",              "cores, mean"},
	{"cpu.peak_cores",              "cores, peak"},
	{"memory.peak_bytes",           "memory, peak"},
	{"memory.peak_pss_bytes",       "memory, peak PSS"},
	{"memory.peak_rss_bytes",       "memory, peak RSS"},
	{"memory.peak_uss_bytes",       "memory, peak USS"},
	{"memory.peak_swap_bytes",      "swap, peak"},
	{"memory.max_process_rss_bytes", "largest process, RSS"},
	{"memory.max_process_pss_bytes", "largest process, PSS"},
	{"memory.max_process_uss_bytes", "largest process, USS"},
	{"memory.max_process_hwm_bytes", "largest process, kernel's mark"},
	{"io.read_bytes",               "read from storage"},
	{"io.write_bytes",              "written to storage"},
	{"io.read_chars",               "read by system calls"},
	{"io.write_chars",              "written by system calls"},
	{"io.read_calls",               "read calls"},
	{"io.write_calls",              "write calls"},
	{"faults.major",                "page faults that waited"},
	{"switches.involuntary",        "involuntary switches"},
	{"processes.seen",              "processes"},
	{"processes.peak",              "processes at once"},
	{"threads.peak",                "threads at once"},
	{"fds.peak",                    "open files at once"},
	{"energy.node_joules",          "energy of the node"},
	{"energy.mean_watts",           "power of the node, mean"},
	{"cgroup.oom_kills",            "kills for lack of memory"},
	{"cgroup.throttled_s",          "held back by a CPU quota"},
};

/* In seconds, those of which one can be the reason why a phase took longer. */
static const struct title of_phase[] = {
	{"duration_s",         "wall time"},
	{"cpu_s",              "CPU time"},
	{"io_pressure_s",      "disk wait"},
	{"memory_pressure_s",  "memory wait"},
	{"run_queue_s",        "CPU wait"},
	{"throttled_s",        "held back by a CPU quota"},
	{"cpu_pressure_s",     "CPU wait, by pressure"},
	{"each_s",             "time of each"},
	{"repetitions",        "repetitions"},
	{"peak_memory_bytes",  "memory, peak"},
	{"read_chars",         "read by system calls"},
	{"write_chars",        "written by system calls"},
	{"gpu_util_percent",   "GPU utilisation"},
};
/* clang-format on */
enum { FIRST_REASON = 1, REASONS = 6 };

static const char *find_title(const struct title *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name))
			return list[i].title;
	return NULL;
}

/* "network.rx_packets": "network: rx packets". */
static void add_plain(struct buf *out, const char *name)
{
	for (; *name; name++) {
		if (*name == '.')
			buf_adds(out, ": ");
		else
			buf_addch(out, *name == '_' ? ' ' : *name);
	}
}

/* What stands behind the name of the phase. */
static const char *name_in_phase(const struct compare_figure *f)
{
	return f->name + strlen("phases.") + strlen(f->phase) + 1;
}

void compare_title(const struct compare_figure *f, struct buf *out)
{
	const char *name = f->phase ? name_in_phase(f) : f->name;
	const char *title = f->phase ? find_title(of_phase, ARRAY_SIZE(of_phase), name)
				     : find_title(of_run, ARRAY_SIZE(of_run), name);

	if (f->phase)
		buf_addf(out, "%s: ", f->phase);
	if (title)
		buf_adds(out, title);
	else
		add_plain(out, name);
}

/* ---- the line ---- */

static const struct compare_figure *find_figure(const struct comparison *c, const char *name)
{
	for (size_t i = 0; i < c->nr_figures; i++)
		if (!strcmp(c->figure[i].name, name))
			return &c->figure[i];
	return NULL;
}

/* "+3 %", "x2.4" from twice as much on. */
static void add_ratio(struct buf *out, double ratio)
{
	char number[UNITS_SIZE];

	if (ratio < 2)
		buf_addf(out, "%+.0f %%", 100 * (ratio - 1));
	else
		buf_addf(out, "x%s", format_number(number, ratio));
}

static void add_pace(struct buf *out, const struct compare_change *wall)
{
	if (!wall->differs || !isfinite(wall->ratio) || !(wall->ratio > 0))
		buf_adds(out,
			wall->has_spread && wall->difference != 0
				? "equally fast, within the spread of the runs"
				: "equally fast");
	else if (wall->ratio >= 2)
		buf_addf(out, "took %.1f times as long", wall->ratio);
	else if (wall->ratio <= 0.5)
		buf_addf(out, "%.1f times as fast", 1 / wall->ratio);
	else
		buf_addf(out, "%.0f %% %s", 100 * fabs(wall->ratio - 1),
			wall->ratio > 1 ? "slower" : "faster");
}

/* What varies without a reason: a MiB, ten milliseconds. */
static bool is_noise_of(const struct compare_figure *f, double difference)
{
	return fabs(difference) < (f->unit.unit == UNIT_BYTES ? 1 << 20 : 0.01);
}

static void add_amount(
	struct buf *out, const struct comparison *c, size_t set, const char *name, const char *title)
{
	const struct compare_figure *f = find_figure(c, name);
	struct compare_change change;

	if (!f)
		return;
	change = compare_change(f, set);
	if (!change.known)
		return;
	buf_addf(out, ", %s ", title);
	if (!change.differs || !isfinite(change.ratio) || is_noise_of(f, change.difference))
		buf_adds(out, "unchanged");
	else
		add_ratio(out, change.ratio);
}

/* The value of that phase by this name; NULL: not compared. */
static const struct compare_figure *of_same_phase(
	const struct comparison *c, const struct compare_figure *f, const char *name)
{
	for (size_t i = 0; i < c->nr_phase_figures; i++)
		if (c->phase[i].phase == f->phase && !strcmp(name_in_phase(&c->phase[i]), name))
			return &c->phase[i];
	return NULL;
}

/* A reason explains at least so much of what a phase took longer. */
#define REASON_LEAST 0.25

static void add_reason(struct buf *out, const struct comparison *c, size_t set,
	const struct compare_figure *phase, double longer)
{
	const char *title = "";
	double most = REASON_LEAST * fabs(longer), difference = longer;
	char text[64];

	for (unsigned i = FIRST_REASON; i < REASONS; i++) {
		const struct compare_figure *f = of_same_phase(c, phase, of_phase[i].name);
		struct compare_change change;

		if (!f)
			continue;
		change = compare_change(f, set);
		if (!change.known || (change.difference > 0) != (longer > 0) ||
			!(fabs(change.difference) > most))
			continue;
		most = fabs(change.difference);
		difference = change.difference;
		title = of_phase[i].title;
	}
	buf_addf(out, ": %s%s%s", title, *title ? " " : "",
		compare_format(text, &phase->unit, difference, true));
}

/* Phases may hold others: of two that explain as much the later one, which stands in the earlier, says more.
 */
static void add_phase(
	struct buf *out, const struct comparison *c, size_t set, const struct compare_change *wall)
{
	const struct compare_figure *best = NULL;
	double most = 0;

	for (size_t i = 0; i < c->nr_phase_figures; i++) {
		const struct compare_figure *f = &c->phase[i];
		struct compare_change change = compare_change(f, set);

		if (strcmp(name_in_phase(f), of_phase[0].name) != 0 || !change.known || !change.differs ||
			is_noise_of(f, change.difference) ||
			(wall->differs && (change.difference > 0) != (wall->difference > 0)) ||
			!(fabs(change.difference) >= 0.95 * fabs(most)) || fabs(change.difference) <= 0)
			continue;
		most = change.difference;
		best = f;
	}
	if (!best)
		return;
	buf_addf(out, "; %s in phase %s", most > 0 ? "slower" : "faster", best->phase);
	add_reason(out, c, set, best, most);
}

void compare_in_words(const struct comparison *c, size_t set, struct buf *out)
{
	const struct compare_figure *wall = find_figure(c, "wall_s");
	struct compare_change pace = wall ? compare_change(wall, set) : (struct compare_change){0};

	if (c->nr_sets > 2)
		buf_addf(out, "%s: ", c->set[set].title);
	if (!pace.known) {
		buf_adds(out, "how long they took cannot be compared");
		return;
	}
	add_pace(out, &pace);
	add_amount(out, c, set, "cpu.total_s", "CPU time");
	add_amount(out, c, set, "memory.peak_bytes", "memory");
	add_phase(out, c, set, &pace);
}
