/* Charts as numbers for the page. Curves are most of the data, so each is 16 bits a point between its own
 * least and most value, which is finer than any screen, in base64; text would be three times as long, and a
 * binary part beside the JSON could not be read by other programs as easily.
 *
 * Panels of processes have a line for everybody who has a curve, so that the table can light up any of them;
 * those beyond the first few have fewer points when there are many. */
#include "document/page_internal.h"

#include "base/gzip.h"
#include "text/words.h"
#include "analysis/palette.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOTHING 65535
#define FULL 65534
/* Numbers that the lines of one panel may have together; more, and each stands for several points. */
#define PANEL_NUMBERS 400000

/* ---- packed numbers ---- */

/* The mean of what is known of `every` points. */
static double value_at(const float *value, size_t nr, size_t at, size_t every)
{
	double sum = 0, known = 0;

	for (size_t i = at; i < nr && i < at + every; i++)
		if (isfinite(value[i])) {
			sum += (double)value[i];
			known++;
		}
	return known > 0 ? sum / known : NAN;
}

static void find_known(const float *value, size_t nr, size_t *ret_from, size_t *ret_end)
{
	size_t from = 0, end = nr;

	while (from < nr && !isfinite(value[from]))
		from++;
	while (end > from && !isfinite(value[end - 1]))
		end--;
	*ret_from = from < nr ? from : 0;
	*ret_end = from < nr ? end : 0;
}

static void add_packed(struct json *j, const char *key, const float *value, size_t nr, size_t every)
{
	size_t from, end, n;
	double low = NAN, high = NAN;
	struct buf bytes, text;

	find_known(value, nr, &from, &end);
	n = (end - from + every - 1) / every;
	for (size_t i = 0; i < n; i++) {
		double v = value_at(value, end, from + i * every, every);

		if (isnan(v))
			continue;
		low = isnan(low) || v < low ? v : low;
		high = isnan(high) || v > high ? v : high;
	}
	buf_init(&bytes, n * 2 + 1);
	for (size_t i = 0; i < n; i++) {
		double v = value_at(value, end, from + i * every, every);
		unsigned q = isnan(v) ? NOTHING
			: high > low  ? (unsigned)round_i64((v - low) / (high - low) * FULL)
				      : 0;

		buf_addch(&bytes, q & 0xff);
		buf_addch(&bytes, q >> 8 & 0xff);
	}
	buf_init(&text, n * 3 + 16);
	base64_add(&text, bytes.data, bytes.len);
	if (bytes.err || text.err)
		j->out->err = -ENOMEM;
	json_object(j, key);
	json_uint(j, "at", from);
	json_uint(j, "n", n);
	json_num(j, "lo", n ? low : 0);
	json_num(j, "hi", n ? high : 0);
	if (every > 1)
		json_uint(j, "every", every);
	json_text(j, "q", text.data, text.len);
	json_end_object(j);
	buf_release(&bytes);
	buf_release(&text);
}

/* ---- times ---- */

static void add_times(struct json *j, const struct curves_node *node, bool exact)
{
	size_t nr = node->nr_times;
	double step = nr > 1 ? (node->time_s[nr - 1] - node->time_s[0]) / (double)(nr - 1) : 1;
	bool even = !exact;

	for (size_t i = 0; i < nr && even; i++)
		even = fabs(node->time_s[i] - (node->time_s[0] + step * (double)i)) < step * 0.01;
	json_object(j, "times");
	json_uint(j, "n", nr);
	if (nr && even) {
		json_num(j, "from", node->time_s[0]);
		json_num(j, "step", step);
	} else {
		json_array(j, "values");
		/* Milliseconds: recordings are not finer. */
		for (size_t i = 0; i < nr; i++)
			json_num(j, NULL,
				exact ? node->time_s[i] : (double)round_i64(node->time_s[i] * 1e3) / 1e3);
		json_end_array(j);
	}
	json_end_object(j);
}

void page_nodes(struct json *j, const struct analysis *s)
{
	json_array(j, "nodes");
	for (size_t i = 0; i < s->curves->nr_nodes; i++) {
		const struct curves_node *node = &s->curves->node[i];

		json_object(j, NULL);
		page_text(j, "host", node->host ? node->host : "", node->host ? strlen(node->host) : 0);
		page_number(j, "offset_s", node->offset_s);
		page_number(j, "end_s", node->end_s);
		page_number(j, "step_s", node->step_s);
		json_bool(j, "reduced", node->reduced);
		json_uint(j, "ticks", node->ticks);
		add_times(j, node, s->page);
		json_end_object(j);
	}
	json_end_array(j);
}

/* ---- lines ---- */

static void add_color(struct json *j, uint32_t color)
{
	json_int(j, "color", color == CHART_OTHERS ? -1 : (int64_t)(color % PALETTE_SIZE));
}

static void add_process(struct json *j, uint32_t process)
{
	if (process == UINT32_MAX)
		json_null(j, "process");
	else
		json_uint(j, "process", process);
}

/* What is new of a line: enough to find it in the page. */
static void add_news(struct json *j, const struct chart_curve *c, const struct chart_source *from)
{
	size_t first, end;

	find_known(c->mean, c->nr, &first, &end);
	if (first == end)
		return;
	json_object(j, NULL);
	json_str(j, "name", c->name);
	json_uint(j, "node", from->node);
	add_process(j, from->process);
	add_packed(j, "mean", c->mean, c->nr, 1);
	json_end_object(j);
}

static void add_line(struct json *j, const struct chart_curve *c, const struct chart_source *from, bool range,
	size_t every)
{
	json_object(j, NULL);
	json_str(j, "name", c->name);
	json_uint(j, "node", from->node);
	add_color(j, c->color);
	json_bool(j, "dashed", c->dashed);
	json_bool(j, "held", c->held);
	add_process(j, from->process);
	json_str(j, "group", from->group);
	page_number(j, "average", c->average);
	page_number(j, "most", c->most);
	page_number(j, "most_at_s", from->most_at_s);
	add_packed(j, "mean", c->mean, c->nr, every);
	if (range && c->low != c->mean) {
		add_packed(j, "low", c->low, c->nr, 1);
		add_packed(j, "high", c->high, c->nr, 1);
	}
	json_end_object(j);
}

static size_t every_for(size_t lines, size_t points)
{
	return MAX((lines * points + PANEL_NUMBERS - 1) / PANEL_NUMBERS, (size_t)1);
}

static void add_curves(struct json *j, const struct chart *c, const struct chart_source *source, bool news)
{
	size_t every =
		c->form == CHART_LINES ? 1 : every_for(c->nr_curves, c->nr_curves ? c->curve[0].nr : 0);

	for (size_t i = 0; i < c->nr_curves; i++)
		if (news)
			add_news(j, &c->curve[i], &source[i]);
		else
			add_line(j, &c->curve[i], &source[i], c->form == CHART_LINES, every);
}

/* Everybody who has a line in the curves, not only those that the chart names. */
static void add_all_processes(struct json *j, const struct analysis *s, int query, uint32_t node)
{
	const struct curves_node *axis = &s->curves->node[node];
	size_t nr = 0, every;
	uint32_t rank = 0;

	for (size_t i = 0; i < s->nr_lines; i++)
		nr += (int)s->curves->line[i].query == query && s->curves->line[i].node == node;
	every = every_for(nr, axis->nr_times);
	for (size_t i = 0; i < s->nr_lines; i++) {
		const struct curves_line *line = &s->curves->line[i];
		struct chart_source source = {
			.node = node, .process = UINT32_MAX, .most_at_s = line->most_at_s};
		struct chart_curve curve = {.nr = axis->nr_times,
			.mean = line->mean,
			.low = line->mean,
			.color = CHART_OTHERS,
			.average = line->average,
			.most = line->most};
		struct buf name;

		if ((int)line->query != query || line->node != node || isnan(line->most))
			continue;
		/* Lines come in the order of those kept. */
		while (!line->others && rank < s->nr_keep &&
			(s->keep[rank].node != node || s->keep[rank].id != line->id))
			rank++;
		buf_init(&name, 1 << 16);
		if (line->others || rank == s->nr_keep) {
			buf_adds(&name, "others");
		} else {
			source.process = s->keep_row[rank];
			curve.color = rank < s->nr_named ? rank : CHART_OTHERS;
			analysis_process_name(&s->processes->row[source.process], &name);
		}
		curve.name = (char *)name.data;
		if (s->page)
			add_news(j, &curve, &source);
		else
			add_line(j, &curve, &source, false,
				curve.color == CHART_OTHERS && !line->others ? every : 1);
		buf_release(&name);
	}
}

static bool has_all_processes(const struct panel *row)
{
	return row->shape == PANEL_PROCESSES && row->when == PANEL_ALWAYS;
}

/* ---- a panel ---- */

static void add_levels(struct json *j, const struct chart *c)
{
	json_array(j, "levels");
	for (size_t i = 0; i < c->nr_levels; i++) {
		json_object(j, NULL);
		page_number(j, "value", c->level[i].value);
		json_str(j, "label", c->level[i].label);
		json_bool(j, "stretch", c->level[i].stretch);
		json_end_object(j);
	}
	json_end_array(j);
}

static void add_peaks(struct json *j, const struct chart *c)
{
	json_array(j, "peaks");
	for (size_t i = 0; i < c->nr_notes; i++) {
		json_object(j, NULL);
		page_number(j, "time_s", c->note[i].time_s);
		page_number(j, "value", c->note[i].value);
		json_str(j, "text", c->note[i].text);
		json_end_object(j);
	}
	json_end_array(j);
}

static void add_spans(struct json *j, const struct chart *c, const struct chart_source *source)
{
	json_array(j, "spans");
	for (size_t i = 0; i < c->nr_spans; i++) {
		const struct chart_span *span = &c->span[i];

		json_object(j, NULL);
		json_str(j, "name", span->name);
		page_number(j, "from_s", span->from_s);
		page_number(j, "to_s", span->to_s);
		json_uint(j, "lane", span->lane);
		add_color(j, span->color);
		add_process(j, span->curve < c->nr_curves ? source[span->curve].process : UINT32_MAX);
		if (span->curve < c->nr_curves)
			json_uint(j, "line", span->curve);
		else
			json_null(j, "line");
		json_end_object(j);
	}
	json_end_array(j);
}

/* Only where the areas, which are means, do not show it. */
static void add_total(struct json *j, const struct chart *c)
{
	if (c->total && c->total->high != c->total->mean)
		add_packed(j, "total_high", c->total->high, c->total->nr, 1);
}

static void add_lines(struct json *j, const struct analysis *s, const struct charts *f, size_t i)
{
	const struct analysis_panel *p = f->panel[i];

	json_array(j, "lines");
	if (has_all_processes(p->row))
		add_all_processes(j, s, p->query[0], f->node[i] < 0 ? 0 : (uint32_t)f->node[i]);
	else
		add_curves(j, &f->item[i], f->source[i], s->page);
	json_end_array(j);
}

static void add_panel(struct json *j, const struct analysis *s, const struct charts *f, size_t i)
{
	static const char *const form[] = {[CHART_LINES] = "lines",
		[CHART_STACKED] = "stacked",
		[CHART_HEAT] = "heat",
		[CHART_TIMELINE] = "timeline"};
	const struct chart *c = &f->item[i];
	const struct analysis_panel *p = f->panel[i];

	json_object(j, NULL);
	json_str(j, "id", c->id);
	json_str(j, "title", c->title);
	json_str(j, "section", p->row->section);
	json_str(j, "form", form[c->form]);
	json_str(j, "quantity", c->quantity);
	json_str(j, "unit", unit_name(c->unit));
	json_bool(j, "per_second", c->per_second);
	json_int(j, "node", f->node[i]);
	json_str(j, "subtitle", c->subtitle);
	page_number(j, "y_most", c->y_most);
	add_levels(j, c);
	add_peaks(j, c);
	add_lines(j, s, f, i);
	add_total(j, c);
	add_spans(j, c, f->source[i]);
	json_end_object(j);
}

void page_panels(struct json *j, const struct analysis *s, const struct charts *f)
{
	json_array(j, "panels");
	for (size_t i = 0; i < f->nr; i++)
		add_panel(j, s, f, i);
	json_end_array(j);
}

void page_news_panels(struct json *j, const struct analysis *s, const struct charts *f)
{
	json_array(j, "panels");
	for (size_t i = 0; i < f->nr; i++) {
		json_object(j, NULL);
		json_str(j, "id", f->item[i].id);
		add_lines(j, s, f, i);
		json_end_object(j);
	}
	json_end_array(j);
}
