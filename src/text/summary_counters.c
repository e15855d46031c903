/* What was counted, in a few lines:
 *
 *	counters IPC 1.83 · 3.1 GHz · cache misses 2.1 % · 12.4 GFLOP/s DP
 *	         cycles 12.1 G · instructions 22.1 G · task_clock 3.9s
 *	         counters saw 97 % of the CPU time; running 100 % of that
 *	         not counted: branches, branch_misses (this machine has no such counter)
 */
#include "text/page.h"

#include <math.h>
#include <string.h>

#define EVENTS_SHOWN 12
#define REASONS_SHOWN 3

/* Names that people know better otherwise. */
static const struct {
	const char *name, *before, *after;
} phrase[] = {{"ipc", "IPC ", ""}, {"ghz", "", ""}, {"cache_miss_rate", "cache misses ", ""},
	{"branch_miss_rate", "branch misses ", ""}, {"flops", "", ""}, {"flops_dp", "", " DP"},
	{"flops_sp", "", " SP"}, {"vectorisation_dp", "DP vectorised ", ""},
	{"vectorisation_sp", "SP vectorised ", ""}, {"l2_bandwidth", "L2 ", ""}, {"l3_bandwidth", "L3 ", ""},
	{"mem_proxy_bandwidth", "memory about ", ""}};

void counter_amount(struct buf *line, const struct summary_counter *c, double v)
{
	const char *per = c->per_second ? "/s" : "";
	char text[UNITS_SIZE];

	switch (c->unit) {
	case UNIT_BYTES:
		buf_addf(line, "%s%s", format_bytes(text, v), per);
		break;
	case UNIT_SECONDS:
		buf_addf(line, "%s%s", format_duration(text, v), per);
		break;
	case UNIT_RATIO:
		add_percent(line, v);
		break;
	case UNIT_FLOP:
		buf_addf(line, "%s%s", format_si(text, v, "FLOP"), per);
		break;
	case UNIT_HERTZ:
		buf_adds(line, format_si(text, v, "Hz"));
		break;
	case UNIT_COUNT:
		buf_addf(line, "%s%s", v < 1000 ? format_number(text, v) : format_count(text, v), per);
		break;
	default:
		buf_addf(line, "%s%s", format_number(text, v), per);
	}
}

static void add_phrase(struct buf *line, const struct summary_counter *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(phrase); i++)
		if (!strcmp(phrase[i].name, c->name)) {
			buf_adds(line, phrase[i].before);
			counter_amount(line, c, c->value.value);
			buf_adds(line, phrase[i].after);
			return;
		}
	buf_addf(line, "%s ", c->name);
	counter_amount(line, c, c->value.value);
}

/* What formulas made, or the events themselves. */
static void amounts_line(const struct page *p, bool derived, struct buf *line)
{
	size_t more = 0, shown = 0, from;

	for (size_t i = 0; i < p->s->nr_counters; i++) {
		const struct summary_counter *c = &p->s->counter[i];

		if (derived != (c->expression != NULL) || c->value.why)
			continue;
		if (shown == EVENTS_SHOWN) {
			more++;
			continue;
		}
		buf_adds(line, shown++ ? between(p) : "");
		from = line->len;
		add_phrase(line, c);
		tie(line, from);
	}
	if (more)
		buf_addf(line, "%sand %zu more", between(p), more);
}

static void derived_line(const struct page *p, struct buf *line)
{
	amounts_line(p, true, line);
}

static void events_line(const struct page *p, struct buf *line)
{
	amounts_line(p, false, line);
}

static void seen_line(const struct page *p, struct buf *line)
{
	double least = NAN;

	for (size_t i = 0; i < p->s->nr_counters; i++) {
		const struct summary_counter *c = &p->s->counter[i];

		if (!c->expression && !c->value.why && !c->running_share.why)
			least = isnan(least) ? c->running_share.value : MIN(least, c->running_share.value);
	}
	if (has(p, FIG_COUNTED)) {
		buf_adds(line, "counters saw ");
		if (value(p, FIG_COUNTED) < 99.5)
			add_percent(line, value(p, FIG_COUNTED) / 100);
		else
			buf_adds(line, "all");
		buf_adds(line, " of the CPU time");
		if (value(p, FIG_COUNTED) > COUNTED_ALL_PERCENT)
			buf_adds(line, " as far as can be told");
	}
	if (!isnan(least)) {
		buf_adds(line, line->len ? "; running " : "running ");
		add_percent(line, least);
		buf_adds(line, has(p, FIG_COUNTED) ? " of that" : " of the time");
	}
	if (p->s->counters_user_only)
		buf_adds(line, line->len ? "; in programs only" : "in programs only");
}

/* The events with the same reason as this one; true when an earlier one has it. */
static bool was_told(const struct summary *s, size_t event)
{
	for (size_t i = 0; i < event; i++)
		if (s->counter[i].value.why && !s->counter[i].expression &&
			!strcmp(s->counter[i].value.why, s->counter[event].value.why))
			return true;
	return false;
}

static void missing_line(const struct page *p, struct buf *line)
{
	unsigned reasons = 0;

	for (size_t i = 0; i < p->s->nr_counters && reasons < REASONS_SHOWN; i++) {
		const char *why = p->s->counter[i].value.why, *comma = reasons ? "; " : "not counted: ";

		if (!why || p->s->counter[i].expression || was_told(p->s, i))
			continue;
		for (size_t k = i; k < p->s->nr_counters; k++) {
			const struct summary_counter *c = &p->s->counter[k];

			if (c->expression || !c->value.why || strcmp(c->value.why, why))
				continue;
			buf_addf(line, "%s%s", comma, c->name);
			comma = ", ";
		}
		buf_adds(line, " (");
		add_text(line, why, strlen(why), letters(p));
		buf_adds(line, ")");
		reasons++;
	}
}

void print_counters(const struct page *p)
{
	static void (*const make[])(const struct page *, struct buf *) = {
		derived_line, events_line, seen_line, missing_line};
	const char *label = "counters";
	struct buf line;

	for (size_t i = 0; p->s->nr_counters && i < ARRAY_SIZE(make); i++) {
		buf_init(&line, 100000);
		make[i](p, &line);
		if (line.len) {
			print_line(p, label, "36", (char *)line.data);
			label = "";
		}
		buf_release(&line);
	}
}
