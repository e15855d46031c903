/* What was not measured, and why: what a reader of the report would look for and not find. What no machine
 * has everywhere (InfiniBand, Lustre) is not missed; what has the same reason is told in one sentence. */
#include "analysis/rule.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <string.h>

struct findings_unmeasured_wanted {
	const char *what;
	enum figure_id figure;
	int evidence; /* a question of the curves instead; -1 */
};

/* clang-format off */
static const struct findings_unmeasured_wanted wanted[] = {
	{"CPU time",                               FIG_CPU,          -1},
	{"memory (RSS)",                           FIG_RSS,          -1},
	{"memory without counting shared pages twice (PSS)", FIG_PSS, -1},
	{"I/O of the job",                         FIG_READ_CHARS,   -1},
	{"the limit of CPUs",                      FIG_LIMIT_CPUS,   -1},
	{"the limit of memory",                    FIG_LIMIT_MEMORY, -1},
	{"kills because memory ran out",           FIG_OOM_KILLS,    -1},
	{"energy",                                 FIG_ENERGY,       -1},
	{"waiting for a CPU, for memory and for disks (pressure)", NR_FIGURES, EV_PRESSURE_IO},
	{"waiting of processes for a CPU",         NR_FIGURES,       EV_READY},
	{"how busy the node was",                  NR_FIGURES,       EV_BUSY},
};
/* clang-format on */

/* NULL: it was measured, or there is nothing to say. */
static const char *why_not(const struct look *l, const struct findings_unmeasured_wanted *w)
{
	const struct curves *curves = l->analysis->curves;
	size_t query = l->analysis->first_finding_query + (size_t)MAX(w->evidence, 0);
	const char *why;

	if (w->evidence < 0)
		why = l->run->figure[w->figure].why;
	else
		why = curves && query < curves->nr_columns && !curves->column[query].known
			? curves->column[query].why
			: NULL;
	return why && *why ? why : NULL;
}

/* "energy and I/O of the job: REASON": all that have the reason of this one. */
static int say_reason(struct look *l, size_t first, const char *why)
{
	struct buf text;
	size_t nr = 0, last = first;
	int r;

	for (size_t i = first; i < ARRAY_SIZE(wanted); i++) {
		const char *other = why_not(l, &wanted[i]);

		if (other && !strcmp(other, why))
			last = i;
	}
	buf_init(&text, 4096);
	for (size_t i = first; i < ARRAY_SIZE(wanted); i++) {
		const char *other = why_not(l, &wanted[i]);

		if (other && !strcmp(other, why))
			buf_addf(&text, "%s%s", !nr++ ? "" : i == last ? " and " : ", ", wanted[i].what);
	}
	if (text.len && text.data[0] >= 'a' && text.data[0] <= 'z')
		text.data[0] = (uint8_t)(text.data[0] - 'a' + 'A');
	buf_adds(&text, ": ");
	escape_bytes(&text, why, MIN(strlen(why), (size_t)500));
	if (text.data[text.len - 1] != '.')
		buf_addch(&text, '.');
	r = texts_take(&l->found->unmeasured, &l->found->nr_unmeasured, strdup((char *)text.data));
	buf_release(&text);
	return r;
}

static bool told_before(const struct look *l, size_t at, const char *why)
{
	for (size_t i = 0; i < at; i++) {
		const char *other = why_not(l, &wanted[i]);

		if (other && !strcmp(other, why))
			return true;
	}
	return false;
}

static void say_plainly(struct look *l, const char *before, const char *why)
{
	struct buf text;

	buf_init(&text, 4096);
	buf_adds(&text, before);
	escape_bytes(&text, why, MIN(strlen(why), (size_t)500));
	buf_addch(&text, '.');
	l->err = texts_take(&l->found->unmeasured, &l->found->nr_unmeasured, strdup((char *)text.data));
	buf_release(&text);
}

void look_unmeasured(struct look *l)
{
	double missed = figure_of(l->run, FIG_MISSED), taken = figure_of(l->run, FIG_TICKS);

	for (size_t i = 0; i < ARRAY_SIZE(wanted) && !l->err; i++) {
		const char *why = why_not(l, &wanted[i]);

		if (why && !told_before(l, i, why))
			l->err = say_reason(l, i, why);
	}
	/* That there is none is no gap; that one could not be read is. */
	if (l->run->gpus_why && *l->run->gpus_why && !str_starts(l->run->gpus_why, "no GPU") && !l->err)
		say_plainly(l, "GPUs: ", l->run->gpus_why);
	for (size_t i = 0; i < l->run->nr_gpus && !l->err; i++)
		if (l->run->gpu[i].text[GPU_TEXT_LOST])
			say_plainly(l, "A GPU told nothing any more: ", l->run->gpu[i].text[GPU_TEXT_LOST]);
	if (missed >= 0.05 * (taken + missed) && missed >= 3 && !l->err) {
		char text[96];

		snprintf(text, sizeof(text), "%.0f of %.0f samples came too late and were left out", missed,
			taken + missed);
		say_plainly(l, "", text);
	}
}
