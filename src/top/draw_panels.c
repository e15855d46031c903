/* The numbers of the moment with their curves: memory against its limit, CPUs, GPUs, storage, network,
 * energy. In the order of importance: what does not fit is left out from the end. */
#include "top/app.h"

#include "base/units.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum panel_id { PANEL_MEMORY, PANEL_CPU, PANEL_GPU, PANEL_IO, PANEL_NET, PANEL_POWER, NR_TOP_PANELS };

static const struct {
	const char *label;
	enum top_value curve, second; /* second: added to it; the same: none */
	int ink;
} panel_row[NR_TOP_PANELS] = {
	[PANEL_MEMORY] = {"MEM", TOP_PSS, TOP_PSS, INK_MEMORY},
	[PANEL_CPU] = {"CPU", TOP_CORES, TOP_CORES, INK_CPU},
	[PANEL_GPU] = {"GPU", TOP_GPU, TOP_GPU, INK_GPU},
	[PANEL_IO] = {"I/O", TOP_READ, TOP_WRITE, INK_IO},
	[PANEL_NET] = {"NET", TOP_NET_RX, TOP_NET_TX, INK_NET},
	[PANEL_POWER] = {"PWR", TOP_WATTS, TOP_WATTS, INK_ENERGY},
};

struct panels {
	struct top_app *app;
	struct screen *s;
	size_t node;
	struct node_view view;
	double value[NR_TOP_VALUES]; /* of the node, or of all together */
	bool sum;
	enum panel_id which[NR_TOP_PANELS];
	unsigned nr;
};

/* ---- curves ---- */

/* Columns stand at multiples of their time, so that a curve moves by whole columns, seldom, and what a column
 * shows does not change. */
double column_time(int64_t time_ns, int64_t window_ns, unsigned half, unsigned halves)
{
	double step = (double)window_ns / halves, end = ceil((double)time_ns / step) * step;

	return (end - step * (halves - 1 - half)) / 1e9;
}

void curve_values(const struct top_reading *r, enum top_value which, int group, int64_t time_ns,
	int64_t window_ns, unsigned halves, float *out)
{
	double step_s = (double)window_ns / 1e9 / halves;
	double hold_s = MAX(2.5 * reading_interval(r), step_s);
	double last = NAN, last_s = -INFINITY;
	size_t i = reading_index(r, time_ns - window_ns);

	if (i == r->nr_points)
		i = 0;
	for (unsigned half = 0; half < halves; half++) {
		double end = column_time(time_ns, window_ns, half, halves), most = NAN;
		const struct top_point *p;

		for (; (p = reading_point(r, i)) && (double)p->time_ns / 1e9 <= end + 1e-9; i++) {
			double value = reading_value(r, i, which, group);

			most = known_max(most, value);
			last = value;
			last_s = (double)p->time_ns / 1e9;
		}
		out[half] = (float)(isnan(most) && end - last_s <= hold_s ? last : most);
	}
}

static void add_values(float *sum, const float *more, unsigned halves)
{
	for (unsigned i = 0; i < halves; i++)
		if (!isnan(more[i]))
			sum[i] = isnan(sum[i]) ? more[i] : sum[i] + more[i];
}

static void node_values(
	struct panels *p, const struct node_view *v, enum panel_id id, unsigned halves, float *out)
{
	float more[2048];
	enum top_value first = panel_row[id].curve, second = panel_row[id].second;

	if (id == PANEL_POWER && isnan(p->value[TOP_WATTS]))
		first = second = TOP_GPU_WATTS;
	curve_values(v->reading, first, -1, v->time_ns, p->app->m.window_ns, halves, out);
	if (second == first)
		return;
	curve_values(v->reading, second, -1, v->time_ns, p->app->m.window_ns, halves, more);
	add_values(out, more, halves);
}

/* Of several nodes what they did together. */
static void panel_values(struct panels *p, enum panel_id id, unsigned halves, float *out)
{
	struct model *m = &p->app->m;
	float nr[2048] = {0};

	for (unsigned i = 0; i < halves; i++)
		out[i] = NAN;
	for (size_t n = p->sum ? 0 : p->node; n < (p->sum ? m->nr : p->node + 1); n++) {
		struct node_view v = p->sum ? model_view(m, n, false) : p->view;
		float more[2048];

		if (!v.reading)
			continue;
		node_values(p, &v, id, halves, more);
		add_values(out, more, halves);
		for (unsigned i = 0; i < halves; i++)
			nr[i] += !isnan(more[i]);
	}
	for (unsigned i = 0; id == PANEL_GPU && i < halves; i++)
		out[i] /= MAX(nr[i], 1.0f);
}

static void ghost_values(struct panels *p, enum panel_id id, unsigned halves, float *out)
{
	struct model *m = &p->app->m;
	const struct run_events *events = model_events(m, p->node);
	double before = -1;

	for (unsigned i = 0; i < halves; i++) {
		double at = column_time(p->view.time_ns, m->window_ns, i, halves);
		double then = at < 0 ? -1 : ghost_time(m->ghost, events, at), value;

		out[i] = NAN;
		if (then < 0 || (then >= ghost_length(m->ghost) && before >= then))
			continue;
		value = ghost_value(m->ghost, then, panel_row[id].curve);
		if (panel_row[id].second != panel_row[id].curve)
			value += ghost_value(m->ghost, then, panel_row[id].second);
		out[i] = (float)value;
		before = then;
	}
}

/* What the top of the curve stands for. */
static double scale_of(
	const struct panels *p, enum panel_id id, const float *value, const float *ghost, unsigned halves)
{
	double most = 0, limit = NAN;

	for (unsigned i = 0; i < halves; i++) {
		most = known_max(most, value[i]);
		if (ghost)
			most = known_max(most, ghost[i]);
	}
	if (id == PANEL_CPU)
		limit = p->value[TOP_CPUS];
	if (id == PANEL_MEMORY)
		limit = p->value[TOP_LIMIT];
	if (id == PANEL_GPU)
		limit = 1;
	/* Against a limit that is far away nothing would be seen. */
	if (limit > 0 && most > limit / 4)
		return MAX(limit, most);
	return most > 0 ? most * 1.15 : 1;
}

static void draw_curve(
	struct panels *p, enum panel_id id, unsigned column, unsigned row, unsigned columns, unsigned rows)
{
	float value[2048], ghost[2048];
	unsigned halves = MIN(columns, 1000u) * 2;
	const struct run_events *events = model_events(&p->app->m, p->node);
	bool has_ghost = ghost_is_shown(p->app->m.ghost);
	double scale, step_s;

	panel_values(p, id, halves, value);
	if (has_ghost)
		ghost_values(p, id, halves, ghost);
	scale = scale_of(p, id, value, has_ghost ? ghost : NULL, halves);
	for (unsigned i = 0; i < halves; i++) {
		value[i] = (float)(value[i] / scale);
		if (has_ghost)
			ghost[i] = (float)(ghost[i] / scale);
	}
	if (has_ghost)
		frame_curve(p->s, column, row, halves / 2, rows, ghost, false, INK_GHOST);
	frame_curve(p->s, column, row, halves / 2, rows, value, true, panel_row[id].ink);
	for (unsigned i = 0; i < halves / 2; i++)
		for (unsigned k = 0; k < rows; k++)
			frame_paper(p->s, column + i, row + k, 1,
				phase_paper(events,
					column_time(
						p->view.time_ns, p->app->m.window_ns, 2 * i + 1, halves)));
	step_s = 2 * (double)p->app->m.window_ns / 1e9 / halves;
	draw_mark_signs(p->s, events, column, row, halves / 2,
		column_time(p->view.time_ns, p->app->m.window_ns, 1, halves) - step_s, step_s);
}

/* ---- words ---- */

struct panel_words { /* parts of a line: each as a whole, or not at all */
	struct screen *s;
	unsigned column, end, row;
	bool first;
};

static void say(struct panel_words *w, int ink, const char *fmt, ...) _printf_(3, 4);
static void say(struct panel_words *w, int ink, const char *fmt, ...)
{
	char text[200];
	unsigned need, gap = w->first ? 0 : 2;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	need = screen_text_columns(w->s, text);
	if (w->column + gap + (w->first ? 1 : need) > w->end)
		return;
	w->column += gap;
	w->column += frame_words(w->s, w->column, w->row, text, w->end - w->column, ink);
	w->first = false;
}

static double memory_of(const struct panels *p)
{
	return isnan(p->value[TOP_PSS]) ? p->value[TOP_RSS] : p->value[TOP_PSS];
}

static void say_rate(struct panel_words *w, const char *what, double rate)
{
	if (!isnan(rate))
		say(w, INK_PLAIN, "%s %s/s", what, format_bytes(SHOWN, rate));
}

static bool job_is_over(const struct panels *p)
{
	const struct model *m = &p->app->m;

	return p->view.ended || (model_is_over(m) && model_now(m) >= model_end(m));
}

/* What is left at the end says little. */
static void say_peak(const struct panels *p, struct panel_words *w)
{
	const struct top_reading *r = p->sum || p->app->m.group ? NULL : p->app->m.node[p->node].main;
	double peak = NAN;

	if (!r || !job_is_over(p))
		return;
	if (!isnan(p->value[TOP_PSS]) || !isnan(r->peak[0]))
		peak = r->peak[0];
	else
		peak = r->peak[1];
	/* Without an end mark it is the most of all ticks. */
	for (unsigned i = 0; isnan(r->peak[0]) && isnan(r->peak[1]) && i < OVERVIEW; i++)
		peak = known_max(peak, r->overview[i].memory);
	if (!isnan(peak))
		say(w, INK_BOLD, "peak %s", format_bytes(SHOWN, peak));
}

/* When the limit is reached as things go. */
static void say_reach(struct panels *p, struct panel_words *w, double memory, double limit)
{
	double slope = p->sum || !p->view.now ? NAN : memory_slope(p->view.reading, p->view.now->time_ns);
	double left;

	/* What is over does not grow any more; its last ticks have what was left. */
	if (job_is_over(p))
		return;
	if (isnan(slope) || !(memory > 0) || fabs(slope) < 1024 || fabs(slope) < memory / 10000)
		return;
	left = memory_reach(memory, limit, slope);
	if (!isnan(left))
		say(w, left < 60 ? INK_ALARM : INK_BOLD, "%s limit in %s", p->s->utf8 ? "→" : "->",
			format_duration(SHOWN, left));
	say(w, INK_PLAIN, "%c%s/s", slope > 0 ? '+' : '-', format_bytes(SHOWN, fabs(slope)));
}

/* Some process's PSS follows RSS since it was last read. */
static bool is_estimated(const struct panels *p)
{
	const struct snapshot *t = p->sum ? NULL : p->view.table;

	for (uint32_t i = 0; t && i < t->nr; i++) {
		double now = t->process[i].value[OF_PROCESS_PSS];

		if (!isnan(now) && now != t->process[i].value[OF_PROCESS_PSS_READ])
			return true;
	}
	return p->sum;
}

static void say_memory(struct panels *p, struct panel_words *w)
{
	double memory = memory_of(p), limit = p->value[TOP_LIMIT];
	const struct meta *meta = p->view.reading ? reading_meta(p->view.reading) : NULL;
	const char *source = meta ? meta_text(meta, "limits.memory_source") : "";
	bool pss = !isnan(p->value[TOP_PSS]);
	const char *about = pss && is_estimated(p) ? "~" : "";

	if (isnan(memory)) {
		say(w, INK_DIM, "%s", !p->sum && p->view.ended ? "the node has ended" : "not recorded");
		say_peak(p, w);
		return;
	}
	if (limit > 0) {
		say(w, memory >= 0.95 * limit ? INK_ALARM : INK_BOLD, "%s%s of %s %.0f %%", about,
			format_bytes(SHOWN, memory), format_bytes(SHOWN, limit), 100 * memory / limit);
		say_peak(p, w);
		say_reach(p, w, memory, limit);
	} else {
		say(w, INK_BOLD, "%s%s", about, format_bytes(SHOWN, memory));
		say_peak(p, w);
		say_reach(p, w, memory, NAN);
	}
	if (limit > 0 && *source)
		say(w, INK_DIM, "limit: %s", source);
	say(w, INK_DIM, "%s", pss ? "PSS" : "RSS, shared pages several times");
	if (pss && !isnan(p->value[TOP_RSS]))
		say(w, INK_PLAIN, "RSS %s", format_bytes(SHOWN, p->value[TOP_RSS]));
	if (!isnan(p->value[TOP_USS]))
		say(w, INK_PLAIN, "USS ~%s", format_bytes(SHOWN, p->value[TOP_USS]));
	if (p->value[TOP_SWAP] > 0)
		say(w, INK_ALARM, "swap %s", format_bytes(SHOWN, p->value[TOP_SWAP]));
}

static void say_cpu(struct panels *p, struct panel_words *w)
{
	double cores = p->value[TOP_CORES], cpus = p->value[TOP_CPUS];

	if (isnan(cores))
		say(w, INK_DIM, "%s", !p->sum && p->view.ended ? "the node has ended" : "not known yet");
	else if (cpus > 0)
		say(w, INK_BOLD, "%s of %s cores %.0f %%", format_cores(SHOWN, cores),
			format_number(SHOWN, cpus), 100 * cores / cpus);
	else
		say(w, INK_BOLD, "%s cores", format_cores(SHOWN, cores));
	if (!isnan(p->value[TOP_PROCESSES]))
		say(w, INK_PLAIN, "%.0f process%s", p->value[TOP_PROCESSES],
			p->value[TOP_PROCESSES] == 1 ? "" : "es");
	if (!isnan(p->value[TOP_THREADS]))
		say(w, INK_PLAIN, "%.0f thread%s", p->value[TOP_THREADS],
			p->value[TOP_THREADS] == 1 ? "" : "s");
}

static void say_gpu(struct panels *p, struct panel_words *w)
{
	const struct snapshot *t = p->sum ? NULL : p->view.table;

	if (!isnan(p->value[TOP_GPU]))
		say(w, INK_BOLD, "%.0f %% busy", 100 * p->value[TOP_GPU]);
	if (!isnan(p->value[TOP_GPU_MEMORY])) {
		if (p->value[TOP_GPU_TOTAL] > 0)
			say(w, INK_PLAIN, "%s of %s", format_bytes(SHOWN, p->value[TOP_GPU_MEMORY]),
				format_bytes(SHOWN, p->value[TOP_GPU_TOTAL]));
		else
			say(w, INK_PLAIN, "%s", format_bytes(SHOWN, p->value[TOP_GPU_MEMORY]));
	}
	if (!isnan(p->value[TOP_GPU_WATTS]))
		say(w, INK_PLAIN, "%.0f W", p->value[TOP_GPU_WATTS]);
	for (unsigned i = 0; t && t->nr_gpus > 1 && i < t->nr_gpus; i++)
		if (!isnan(t->gpu[i].value[OF_GPU_UTIL]))
			say(w, INK_DIM, "%s %.0f %%", t->gpu[i].name, 100 * t->gpu[i].value[OF_GPU_UTIL]);
}

static void say_others(struct panels *p, struct panel_words *w, enum panel_id id)
{
	const double *v = p->value;

	if (id == PANEL_IO) {
		say_rate(w, "read", v[TOP_READ]);
		say_rate(w, "written", v[TOP_WRITE]);
		if (v[TOP_DISK_READ] > 0 || v[TOP_DISK_WRITE] > 0) {
			say_rate(w, "from storage", v[TOP_DISK_READ]);
			say_rate(w, "to storage", v[TOP_DISK_WRITE]);
		}
	} else if (id == PANEL_NET) {
		say_rate(w, "in", v[TOP_NET_RX]);
		say_rate(w, "out", v[TOP_NET_TX]);
		say_rate(w, "fabric in", v[TOP_IB_RX]);
		say_rate(w, "fabric out", v[TOP_IB_TX]);
		say(w, INK_DIM, "node");
	} else {
		if (!isnan(v[TOP_WATTS]))
			say(w, INK_BOLD, "%.0f W", v[TOP_WATTS]);
		if (!isnan(v[TOP_GPU_WATTS]))
			say(w, INK_PLAIN, "GPUs %.0f W", v[TOP_GPU_WATTS]);
		say(w, INK_DIM, "node");
	}
	if (w->first)
		say(w, INK_DIM, "not known yet");
}

static void draw_panel(
	struct panels *p, enum panel_id id, unsigned column, unsigned row, unsigned columns, unsigned rows)
{
	struct panel_words w = {
		.s = p->s, .column = column + 4, .end = column + columns, .row = row, .first = true};

	frame_words(p->s, column, row, panel_row[id].label, columns, panel_row[id].ink);
	if (rows == 1 && columns >= 56) { /* the curve beside it */
		w.end = column + columns * 2 / 3;
		draw_curve(p, id, w.end + 1, row, columns - columns * 2 / 3 - 1, 1);
	}
	if (id == PANEL_MEMORY)
		say_memory(p, &w);
	else if (id == PANEL_CPU)
		say_cpu(p, &w);
	else if (id == PANEL_GPU)
		say_gpu(p, &w);
	else
		say_others(p, &w, id);
	if (rows > 1)
		draw_curve(p, id, column, row + 1, columns, rows - 1);
}

/* ---- which, and where ---- */

static bool is_there(const struct panels *p, enum panel_id id)
{
	const double *v = p->value;
	const struct top_reading *r = p->view.reading;

	switch (id) {
	case PANEL_MEMORY:
	case PANEL_CPU:
		return true;
	case PANEL_GPU:
		return !isnan(v[TOP_GPU]) || !isnan(v[TOP_GPU_MEMORY]);
	case PANEL_IO:
		return r && (r->has[TOP_READ] || r->has[TOP_WRITE]);
	case PANEL_NET:
		return !isnan(v[TOP_NET_RX]) || !isnan(v[TOP_IB_RX]);
	default:
		return !isnan(v[TOP_WATTS]) || !isnan(v[TOP_GPU_WATTS]);
	}
}

static void panels_find(struct panels *p)
{
	struct model *m = &p->app->m;

	p->node = model_main(m);
	p->sum = m->focus == TOP_ALL && m->nr > 1;
	for (unsigned i = 0; i < NR_TOP_VALUES; i++)
		p->value[i] = NAN;
	if (p->node < m->nr)
		p->view = model_view(m, p->node, !p->sum);
	if (p->sum)
		model_sum(m, p->value);
	else if (p->view.now && !p->view.ended)
		memcpy(p->value, p->view.now->value, sizeof(p->value));
	/* A group is held against the whole node's allocation. */
	if (m->group && p->view.reading) {
		const struct meta *meta = reading_meta(p->view.reading);
		int64_t n;

		if (meta_num(meta, "limits.memory_bytes", &n) && n > 0)
			p->value[TOP_LIMIT] = (double)n;
		if (meta_num(meta, "limits.cpus", &n) && n > 0)
			p->value[TOP_CPUS] = (double)n;
	}
	for (unsigned i = 0; i < NR_TOP_PANELS; i++)
		if (is_there(p, (enum panel_id)i))
			p->which[p->nr++] = (enum panel_id)i;
}

unsigned draw_panels(struct top_app *a, struct screen *s, unsigned row, unsigned rows)
{
	struct panels p = {.app = a, .s = s};
	unsigned across = s->columns >= 170 ? 3 : s->columns >= 90 ? 2 : 1, lines, high, width;

	if (!a->m.nr || !rows)
		return 0;
	panels_find(&p);
	across = MIN(across, MAX(p.nr, 1u));
	if (p.nr == 4 && across == 3)
		across = 2;
	lines = (p.nr + across - 1) / across;
	if (lines > rows) { /* the most important ones */
		lines = rows;
		p.nr = MIN(p.nr, lines * across);
	}
	high = MIN(MAX(rows / MAX(lines, 1u), 1u), 7u);
	width = s->columns / across;
	for (unsigned i = 0; i < p.nr; i++)
		draw_panel(&p, p.which[i], i % across * width, row + i / across * high,
			width - (across > 1 && i % across + 1 < across ? 2 : 0), high);
	return lines * high;
}
