/* Charts for Mermaid, which GitHub and GitLab draw in Markdown: curves as an xychart, phases as a Gantt
 * chart.
 *
 * An xychart has neither a legend nor gaps: the colours are named below it, and where a value is not known
 * the line goes on with its neighbour, which is said. What is part of a sum (a process among others) is 0
 * while it is not there. Texts of others stand in a chart only where they must
 * (names of phases and nodes), with letters that mean nothing to Mermaid. */
#include "document/mermaid.h"

#include "base/str.h"
#include "text/words.h"
#include "analysis/axis.h"

#include <math.h>
#include <string.h>

#define POINTS_MOST 100
#define PHASES_MOST 40
#define PHASE_NAME_MOST 60

/* clang-format off */
/* The colours that squares of text have, too, for the legend. */
static const struct { const char *square, *color; } ink[] = {
	{"🟦", "#3f8ae0"}, {"🟧", "#f0832e"}, {"🟩", "#4fae54"}, {"🟪", "#9a67d3"}, {"🟨", "#d9b400"}, {"🟫", "#9c6b46"}, {"🟥", "#e0484d"},
};
/* clang-format on */
#define CURVES_MOST (ARRAY_SIZE(ink) - 1) /* red is for the limit */

static void add_plain(struct buf *out, const char *text)
{
	size_t len = 0;

	for (; *text && len < PHASE_NAME_MOST; text++) {
		unsigned char letter = (unsigned char)*text;
		bool fine = letter >= 0x80 || (letter >= '0' && letter <= '9') ||
			((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z') || strchr(" -_./()+", letter);

		len += (letter & 0xc0) != 0x80;
		buf_addch(out, fine ? letter : '_');
	}
	while ((*text & 0xc0) == 0x80) /* the rest of a character */
		buf_addch(out, *text++);
	if (*text)
		buf_adds(out, "…");
}

/* ---- values ---- */

struct mermaid_unit {
	double factor;
	char text[16];
};

static struct mermaid_unit unit_of(const struct chart *c, double most)
{
	static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	static const char *const counts[] = {"", "k", "M", "G", "T", "P"};
	double step = c->unit == UNIT_BYTES ? 1024 : 1000;
	const char *end = c->unit == UNIT_HERTZ ? "Hz"
		: c->unit == UNIT_WATTS		? "W"
		: c->unit == UNIT_JOULES	? "J"
						: "";
	struct mermaid_unit u = {.factor = 1};
	unsigned size = 0;

	if (c->unit == UNIT_RATIO)
		return (struct mermaid_unit){100, "%"};
	if (c->unit == UNIT_CELSIUS || c->unit == UNIT_SECONDS) {
		snprintf(u.text, sizeof(u.text), "%s",
			c->unit == UNIT_CELSIUS ? "°C"
				: c->per_second ? ""
						: "s");
		return u;
	}
	for (; most * u.factor >= step && size + 1 < ARRAY_SIZE(bytes); size++)
		u.factor /= step;
	snprintf(u.text, sizeof(u.text), "%s%s%s", c->unit == UNIT_BYTES ? bytes[size] : counts[size], end,
		c->per_second ? "/s" : "");
	return u;
}

/* Means over parts of the time that are equally long, and the most of each; false: nothing is known. A part
 * in which there is no point is like the one before it; where there are points and nothing is known, areas
 * are empty (the process was not there) and lines have a gap. */
static bool reduce(const struct chart *c, const struct chart_curve *curve, size_t nr, double *mean,
	double *most, bool *ret_gaps)
{
	double width = (c->to_s - c->from_s) / (double)(nr - 1);
	size_t count[POINTS_MOST] = {0}, seen[POINTS_MOST] = {0}, first = nr;

	for (size_t i = 0; i < nr; i++)
		mean[i] = 0, most[i] = NAN;
	for (size_t i = 0; i < curve->nr; i++) {
		double at = (curve->time_s[i] - c->from_s) / width + 0.5;
		size_t k = at >= 0 && at < (double)nr ? (size_t)at : nr;

		if (k == nr)
			continue;
		seen[k]++;
		if (!isfinite(curve->mean[i]))
			continue;
		mean[k] += (double)curve->mean[i];
		count[k]++;
		most[k] = known_max(most[k], (double)(curve->high ? curve->high[i] : curve->mean[i]));
	}
	for (size_t i = 0; i < nr; i++) {
		if (count[i]) {
			first = MIN(first, i);
			mean[i] /= (double)count[i];
			continue;
		}
		if (c->form == CHART_STACKED && (seen[i] || !i)) {
			mean[i] = most[i] = 0;
			continue;
		}
		*ret_gaps |= seen[i] > 0;
		mean[i] = i ? mean[i - 1] : 0;
		most[i] = i ? most[i - 1] : NAN;
	}
	for (size_t i = 0; c->form != CHART_STACKED && first < nr && i < first; i++)
		mean[i] = mean[first], most[i] = most[first];
	return first < nr;
}

/* Four digits of the largest: Mermaid reads no exponents. */
static int digits_for(double most)
{
	int digits = 3;

	for (; most >= 10 && digits > 0; most /= 10)
		digits--;
	for (; most > 0 && most < 1 && digits < 15; most *= 10)
		digits++;
	return digits;
}

static void add_line(struct buf *out, const double *value, size_t nr, double factor, int digits)
{
	buf_adds(out, "  line [");
	for (size_t i = 0; i < nr; i++)
		buf_addf(out, "%s%.*f", i ? ", " : "", digits, value[i] * factor);
	buf_adds(out, "]\n");
}

/* ---- a chart ---- */

struct mermaid_chart {
	const struct chart *c;
	size_t nr; /* points */
	double mean[CURVES_MOST][POINTS_MOST], most[CURVES_MOST][POINTS_MOST];
	size_t curve[CURVES_MOST], nr_curves; /* that are drawn */
	double top;
	const struct chart_level *level; /* the limit; NULL: none fits */
	bool both;			 /* one curve: its most beside its mean */
	bool gaps;
};

static bool gather(struct mermaid_chart *m)
{
	const struct chart *c = m->c;
	double values = 0;
	size_t points = 2;

	for (size_t i = 0; i < c->nr_curves; i++)
		points = MAX(points, c->curve[i].nr);
	m->nr = MIN(points, (size_t)POINTS_MOST);
	for (size_t i = 0; i < c->nr_curves && m->nr_curves < CURVES_MOST; i++) {
		size_t k = m->nr_curves;

		if (!reduce(c, &c->curve[i], m->nr, m->mean[k], m->most[k], &m->gaps))
			continue;
		m->curve[m->nr_curves++] = i;
	}
	m->both = m->nr_curves == 1 && memcmp(m->mean[0], m->most[0], m->nr * sizeof(m->mean[0][0])) != 0;
	for (size_t k = 0; k < m->nr_curves; k++)
		for (size_t i = 0; i < m->nr; i++)
			values = known_max(values, m->both ? m->most[k][i] : m->mean[k][i]);
	m->top = isfinite(c->y_most) ? known_max(c->y_most, values) : values;
	for (size_t i = 0; i < c->nr_levels; i++)
		if (!m->level && isfinite(c->level[i].value) &&
			(c->level[i].stretch || c->level[i].value <= m->top)) {
			m->level = &c->level[i];
			m->top = known_max(m->top, m->level->value);
		}
	m->top = m->top > 0 ? m->top * 1.05 : 1;
	return values > 0 && isfinite(m->top);
}

static struct mermaid_unit unit_of_time(const struct chart *c)
{
	double length = c->to_s - c->from_s;

	return length >= 7200	? (struct mermaid_unit){1.0 / 3600, "h"}
		: length >= 180 ? (struct mermaid_unit){1.0 / 60, "min"}
				: (struct mermaid_unit){1, "s"};
}

static void add_head(struct buf *out, const struct mermaid_chart *m, const struct mermaid_unit *u)
{
	const struct chart *c = m->c;
	size_t colors = m->both ? 2 : m->nr_curves;
	const char *quantity = c->quantity ? c->quantity : "";
	struct mermaid_unit time = unit_of_time(c);

	buf_adds(out,
		"```mermaid\n---\nconfig:\n  xyChart:\n    width: 900\n    height: 260\n  themeVariables:\n"
		"    xyChart:\n      plotColorPalette: \"");
	for (size_t i = 0; i < colors; i++)
		buf_addf(out, "%s%s", i ? ", " : "", ink[i].color);
	buf_addf(out, "%s%s\"\n---\nxychart-beta\n", m->level ? ", " : "",
		m->level ? ink[ARRAY_SIZE(ink) - 1].color : "");
	buf_addf(out, "  x-axis \"%s\" %.6f --> %.6f\n", time.text, c->from_s * time.factor,
		c->to_s * time.factor);
	buf_addf(out, "  y-axis \"%s%s%s%s\" 0 --> %.*f\n", quantity, *quantity && *u->text ? " (" : "",
		u->text, *quantity && *u->text ? ")" : "", digits_for(m->top * u->factor),
		m->top * u->factor);
}

static void add_legend(struct buf *out, const struct mermaid_chart *m)
{
	const struct chart *c = m->c;

	for (size_t i = 0; i < m->nr_curves; i++) {
		buf_addf(out, "%s%s ", i ? " · " : "", ink[i].square);
		add_markdown(out, c->curve[m->curve[i]].name);
	}
	if (m->both)
		buf_addf(out, " (mean of each %s) · %s most",
			format_duration(SHOWN, (c->to_s - c->from_s) / (double)(m->nr - 1)), ink[1].square);
	if (m->level) {
		buf_addf(out, " · %s ", ink[ARRAY_SIZE(ink) - 1].square);
		add_markdown(out, m->level->label);
	}
	if (c->nr_curves > CURVES_MOST)
		buf_addf(out, " · %zu more not drawn", c->nr_curves - CURVES_MOST);
	if (m->gaps)
		buf_adds(out, " · where nothing is known the line goes on");
	buf_adds(out, "\n\n");
}

bool mermaid_curves(const struct chart *c, struct buf *out)
{
	struct mermaid_chart *m = calloc(1, sizeof(*m));
	struct mermaid_unit u;
	bool drawn;
	int digits;

	if (!m) {
		out->err = out->err ? out->err : -ENOMEM;
		return false;
	}
	m->c = c;
	drawn = c->to_s > c->from_s && (c->form == CHART_LINES || c->form == CHART_STACKED) && gather(m);
	if (drawn) {
		u = unit_of(c, m->top);
		digits = digits_for(m->top * u.factor);
		add_head(out, m, &u);
		for (size_t i = 0; i < m->nr_curves; i++)
			add_line(out, m->mean[i], m->nr, u.factor, digits);
		if (m->both)
			add_line(out, m->most[0], m->nr, u.factor, digits);
		if (m->level)
			add_line(out, (double[]){m->level->value, m->level->value}, 2, u.factor, digits);
		buf_adds(out, "```\n");
		add_legend(out, m);
	}
	free(m);
	return drawn;
}

/* ---- phases ---- */

static double length_of(const struct run_event *phase, double end)
{
	return (isnan(phase->end_s) ? end : phase->end_s) - phase->time_s;
}

static int longer_first(const void *a, const void *b, void *arg)
{
	const struct run_event *phase = arg;
	double one = length_of(&phase[*(const size_t *)a], INFINITY);
	double two = length_of(&phase[*(const size_t *)b], INFINITY);

	return one > two ? -1 : one < two;
}

static int by_number(const void *a, const void *b)
{
	size_t one = *(const size_t *)a, two = *(const size_t *)b;

	return one < two ? -1 : one > two;
}

bool mermaid_phases(const struct run_events *events, const char *const *host, double end_s, struct buf *out)
{
	size_t nr = events->nr_phases, shown = MIN(nr, (size_t)PHASES_MOST);
	_cleanup_(freep) size_t *order = calloc(MAX(nr, (size_t)1), sizeof(*order));
	bool first;

	if (!order) {
		out->err = out->err ? out->err : -ENOMEM;
		return false;
	}
	if (!nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), longer_first, events->phase);
	qsort(order, shown, sizeof(*order), by_number);
	buf_adds(out, "```mermaid\ngantt\n  dateFormat x\n  axisFormat %s s\n");
	for (uint32_t node = 0, left = (uint32_t)shown; left; node++) {
		first = true;
		for (size_t i = 0; i < shown; i++) {
			const struct run_event *phase = &events->phase[order[i]];
			double ms = length_of(phase, end_s) * 1000;

			if (phase->node != node)
				continue;
			left--;
			if (first && host) {
				buf_adds(out, "  section ");
				add_plain(out, host[node]);
				buf_addch(out, '\n');
			}
			first = false;
			/* Before the name stands a space without width: it may be a word of Mermaid's own. */
			buf_adds(out, "  \u200b");
			add_plain(out, phase->label);
			buf_addf(out, " : %.0f, %.0fms\n", known_max(phase->time_s * 1000, 0),
				known_max(ms, 1));
		}
	}
	buf_adds(out, "```\n\n");
	if (nr > shown)
		buf_addf(out, "The %zu longest of %zu phases.\n\n", shown, nr);
	return true;
}
