/* Figures by name: those of the summary's JSON, which are the same in every recording of every version, and
 * short ones for those that people ask for most.
 *
 * A name says its unit by how it ends; so it does in the JSON, where nothing else says it. */
#include "analysis/compare.h"

#include "base/str.h"
#include "base/units.h"
#include "text/words.h"
#include "analysis/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct compare_alias compare_alias[] = {
	{"wall",         {"wall_s"}},
	{"exit",         {"exit.code"}},
	{"cpu.time",     {"cpu.total_s"}},
	{"cpu.user",     {"cpu.user_s"}},
	{"cpu.system",   {"cpu.system_s"}},
	{"cores",        {"cpu.mean_cores"}},
	{"cores.peak",   {"cpu.peak_cores"}},
	{"memory.peak",  {"memory.peak_bytes"}},
	{"memory.pss",   {"memory.peak_pss_bytes"}},
	{"memory.rss",   {"memory.peak_rss_bytes"}},
	{"memory.uss",   {"memory.peak_uss_bytes"}},
	{"memory.process", {"memory.max_process_hwm_bytes", "memory.max_process_rss_bytes"}},
	{"io.read",      {"io.read_chars"}},
	{"io.write",     {"io.write_chars"}},
	{"storage.read", {"io.read_bytes"}},
	{"storage.write", {"io.write_bytes"}},
	{"energy",       {"energy.node_joules"}},
	{"gpu.energy",   {"energy.job_gpu_joules", "energy.gpu_joules"}},
	{"processes",    {"processes.seen"}},
	{"threads",      {"threads.peak"}},
};
/* clang-format on */
const size_t nr_compare_aliases = ARRAY_SIZE(compare_alias);

struct compare_unit compare_unit_of(const char *name)
{
	static const struct {
		const char *end;
		struct compare_unit unit;
	} known[] = {
		{"_bytes_per_s", {UNIT_BYTES, .per_second = true}},
		{"_bytes", {UNIT_BYTES}},
		{"_chars", {UNIT_BYTES}},
		{"_ratio", {UNIT_RATIO}},
		{"_percent", {UNIT_RATIO, .percent = true}},
		{"_joules", {UNIT_JOULES}},
		{"_watts", {UNIT_WATTS}},
		{"_hz", {UNIT_HERTZ}},
		{"_s", {UNIT_SECONDS}},
		{"_j", {UNIT_JOULES}},
		{"_w", {UNIT_WATTS}},
		{"_c", {UNIT_CELSIUS}},
	};
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i].end);

		if (len > n && !strcmp(name + len - n, known[i].end))
			return known[i].unit;
	}
	return (struct compare_unit){UNIT_COUNT};
}

char *compare_format(char out[static 64], const struct compare_unit *u, double value, bool sign)
{
	char text[UNITS_SIZE];
	const char *shown = text;

	format_value(text, u->percent ? value / 100 : value, u->unit, u->per_second);
	if (!strpbrk(text, "123456789")) { /* less than is shown */
		shown += *text == '-';
		sign = false;
	}
	snprintf(out, 64, "%s%s", sign && value > 0 ? "+" : "", shown);
	return out;
}

static const struct compare_figure *find_exact(const struct comparison *c, const char *name)
{
	for (size_t i = 0; i < c->nr_figures; i++)
		if (!strcmp(c->figure[i].name, name))
			return &c->figure[i];
	for (size_t i = 0; i < c->nr_phase_figures; i++)
		if (!strcmp(c->phase[i].name, name))
			return &c->phase[i];
	return NULL;
}

static bool all_have(const struct comparison *c, const struct compare_figure *f)
{
	for (size_t i = 0; i < c->nr_sets; i++)
		if (!f->of[i].nr)
			return false;
	return true;
}

static const struct compare_figure *find_alias(const struct comparison *c, const char *name)
{
	for (size_t i = 0; i < nr_compare_aliases; i++) {
		const struct compare_alias *a = &compare_alias[i];
		const struct compare_figure *f = find_exact(c, a->of[0]);

		if (strcmp(a->name, name) != 0)
			continue;
		if (a->of[1] && (!f || !all_have(c, f)) && find_exact(c, a->of[1]))
			f = find_exact(c, a->of[1]);
		return f;
	}
	return NULL;
}

const struct compare_figure *compare_find(const struct comparison *c, const char *name, struct buf *reterr)
{
	const struct compare_figure *f = find_exact(c, name);
	struct nearest n = nearest_slip(name);

	f = f ? f : find_alias(c, name);
	if (f)
		return f;
	for (size_t i = 0; i < nr_compare_aliases; i++)
		nearest_try(&n, compare_alias[i].name);
	for (size_t i = 0; i < c->nr_figures; i++)
		nearest_try(&n, c->figure[i].name);
	for (size_t i = 0; i < c->nr_phase_figures; i++)
		nearest_try(&n, c->phase[i].name);
	buf_addf(reterr, "there is no figure '%s'", name);
	nearest_ask(&n, reterr);
	buf_adds(reterr, " ('tacho compare --all' lists them)");
	return NULL;
}
