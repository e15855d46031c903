#include "draw_samples.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

static void *keep(struct sample *s, size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	assert(p && s->nr_memory < sizeof(s->memory) / sizeof(s->memory[0]));
	return s->memory[s->nr_memory++] = p;
}

void sample_free(struct sample *s)
{
	while (s->nr_memory)
		free(s->memory[--s->nr_memory]);
}

static const char *keep_text(struct sample *s, const char *fmt, size_t n)
{
	char *text = keep(s, 1, 64);

	snprintf(text, 64, fmt, n);
	return text;
}

/* The same noise every time. */
static double noise(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
}

static const double *make_times(struct sample *s, size_t nr, double from, double to)
{
	double *t = keep(s, nr, sizeof(*t));

	for (size_t i = 0; i < nr; i++)
		t[i] = from + (to - from) * (double)i / (double)(nr > 1 ? nr - 1 : 1);
	return t;
}

static struct chart_curve *make_curves(struct sample *s, size_t nr, size_t points, double to_s, bool ranges)
{
	struct chart_curve *c = keep(s, nr, sizeof(*c));
	const double *time_s = make_times(s, points, 0, to_s);

	for (size_t k = 0; k < nr; k++) {
		float *mean = keep(s, points, sizeof(float));

		c[k] = (struct chart_curve){.name = "",
			.nr = points,
			.time_s = time_s,
			.mean = mean,
			.low = mean,
			.high = mean,
			.color = (uint32_t)k,
			.average = NAN,
			.most = NAN};
		if (ranges) {
			c[k].low = keep(s, points, sizeof(float));
			c[k].high = keep(s, points, sizeof(float));
		}
	}
	s->f.curve = c;
	s->f.nr_curves = nr;
	s->f.to_s = to_s;
	return c;
}

static float *values_of(const float *p)
{
	return (float *)(uintptr_t)p;
}

static void count_up(struct chart_curve *c)
{
	double sum = 0, most = 0;
	size_t nr = 0;

	for (size_t i = 0; i < c->nr; i++)
		if (!isnan(c->mean[i])) {
			sum += c->mean[i];
			most = fmax(most, c->high[i]);
			nr++;
		}
	c->average = nr ? sum / (double)nr : NAN;
	c->most = nr ? most : NAN;
}

static void begin(struct sample *s, const char *id, const char *title, const char *subtitle,
	enum chart_form form, enum metric_unit unit)
{
	*s = (struct sample){.f = {.id = id,
				     .title = title,
				     .subtitle = subtitle,
				     .form = form,
				     .unit = unit,
				     .y_most = NAN}};
}

/* ---- lines ---- */

static void cpu(struct sample *s)
{
	static const struct chart_band band[] = {
		{0, 45, "setup"}, {45, 260, "solve"}, {260, 300, "write results"}};
	static const struct chart_mark mark[] = {
		{45.5, "checkpoint 1"}, {150, "checkpoint 2"}, {152, "checkpoint 3"}};
	static const struct chart_level level[] = {{4, "allocated: 4 cores", true}};
	static struct chart_note note[1];
	struct chart_curve *c;
	uint64_t seed = 1;

	begin(s, "cpu", "CPU of the job", "mean 2.6, max 3.9 cores", CHART_LINES, UNIT_SECONDS);
	s->f.per_second = true;
	s->f.quantity = "cores";
	c = make_curves(s, 1, 600, 300, false);
	c->filled = true;
	for (size_t i = 0; i < c->nr; i++) {
		double t = c->time_s[i];

		values_of(c->mean)[i] = (float)((t < 45			  ? 0.9
								: t < 260 ? 3.2 + 0.4 * sin(t / 9)
									  : 0.3) +
			0.25 * noise(&seed));
	}
	values_of(c->mean)[400] = 3.93f;
	note[0] = (struct chart_note){c->time_s[400], 3.93, "peak 3.93 cores at 3m20s"};
	s->f.band = band;
	s->f.nr_bands = 3;
	s->f.nr_band_lanes = 1;
	s->f.mark = mark;
	s->f.nr_marks = 3;
	s->f.level = level;
	s->f.nr_levels = 1;
	s->f.note = note;
	s->f.nr_notes = 1;
}

static void memory(struct sample *s)
{
	static const char *const name[] = {"PSS", "RSS", "anonymous", "page cache"};
	static const struct chart_level level[] = {{64 * GIB, "limit 64 GiB", false}};
	static struct chart_note note[1];
	struct chart_curve *c;
	uint64_t seed = 2;

	begin(s, "memory", "Memory", "mean 2.1 GiB, max 3.4 GiB", CHART_LINES, UNIT_BYTES);
	s->f.quantity = "memory";
	c = make_curves(s, 4, 1000, 3600, true);
	for (size_t k = 0; k < 4; k++) {
		c[k].name = name[k];
		c[k].dashed = k == 3;
		for (size_t i = 0; i < c[k].nr; i++) {
			double v = GIB * (0.4 + (double)i / 400.0 - 0.35 * (double)k + 0.1 * noise(&seed));

			v = v > 0 ? v : 0.02 * GIB;
			values_of(c[k].mean)[i] = (float)v;
			values_of(c[k].low)[i] = (float)(v * (0.93 - 0.05 * noise(&seed)));
			values_of(c[k].high)[i] = (float)(v * (1.05 + 0.1 * noise(&seed)));
		}
		values_of(c[k].high)[700] *= 1.2f;
		count_up(&c[k]);
	}
	note[0] = (struct chart_note){c[0].time_s[700], c[0].high[700], "peak 3.1 GiB"};
	s->f.level = level;
	s->f.nr_levels = 1;
	s->f.note = note;
	s->f.nr_notes = 1;
	s->f.footnote = "Each point is 3.6 s: the mean as a line, the range behind it.";
}

static void week(struct sample *s)
{
	static struct chart_mark mark[12];
	struct chart_curve *c;
	uint64_t seed = 3;

	begin(s, "disk-read", "Read from disks", "mean 52 MiB/s, max 1.9 GiB/s", CHART_LINES, UNIT_BYTES);
	s->f.per_second = true;
	s->f.quantity = "read";
	c = make_curves(s, 3, 2000, 7 * 86400.0, true);
	for (size_t k = 0; k < 3; k++) {
		c[k].name = keep_text(s, "nvme%zun1", k);
		for (size_t i = 0; i < c[k].nr; i++) {
			double v = (30 + 25 * sin((double)i / 60 + (double)k)) * 1e6 * (0.5 + noise(&seed));

			values_of(c[k].mean)[i] = (float)fmax(v, 0);
			values_of(c[k].low)[i] = 0;
			values_of(c[k].high)[i] = (float)(fmax(v, 0) * 1.8);
			if (i > 800 && i < 860)
				values_of(c[k].mean)[i] = NAN;
		}
		values_of(c[k].high)[500 + 300 * k] = 190e6f;
		count_up(&c[k]);
	}
	for (size_t i = 0; i < 12; i++)
		mark[i] = (struct chart_mark){(double)i * 3600 * 11 + 20000, "epoch finished"};
	s->f.mark = mark;
	s->f.nr_marks = 12;
	s->f.footnote = "Each point is 5 minutes: the mean as a line, the range behind it.";
}

static void gaps(struct sample *s)
{
	struct chart_curve *c;

	begin(s, "gaps", "Few points and gaps", NULL, CHART_LINES, UNIT_WATTS);
	s->f.quantity = "power";
	c = make_curves(s, 2, 21, 20, false);
	for (size_t i = 0; i < 21; i++) {
		values_of(c[0].mean)[i] = (i >= 5 && i <= 8) || i == 10 ? NAN : 120.0f + 10 * (float)(i % 3);
		values_of(c[1].mean)[i] = i == 14 ? 60.0f : NAN;
	}
	c[0].name = "package-0";
	c[1].name = "dram";
	count_up(&c[0]);
	count_up(&c[1]);
}

static void blink(struct sample *s)
{
	struct chart_curve *c;

	begin(s, "blink", "A run of 300 ms", "mean 41 %", CHART_LINES, UNIT_RATIO);
	c = make_curves(s, 1, 31, 0.3, false);
	for (size_t i = 0; i < 31; i++)
		values_of(c->mean)[i] = (float)(0.4 + 0.4 * sin((double)i / 4));
}

static void decades(struct sample *s)
{
	struct chart_curve *c;
	uint64_t seed = 4;

	begin(s, "faults", "Page faults", "logarithmic", CHART_LINES, UNIT_COUNT);
	s->f.per_second = true;
	s->f.quantity = "faults";
	s->f.log = true;
	c = make_curves(s, 2, 400, 90, false);
	for (size_t k = 0; k < 2; k++) {
		c[k].name = k ? "major" : "minor";
		for (size_t i = 0; i < 400; i++)
			values_of(c[k].mean)[i] = (float)(pow(10, (k ? 1 : 4) + 1.5 * sin((double)i / 30)) *
				(0.5 + noise(&seed)));
		count_up(&c[k]);
	}
}

static void many(struct sample *s)
{
	struct chart_curve *c;
	uint64_t seed = 5;

	begin(s, "many", "CPU by process", "60 processes", CHART_LINES, UNIT_RATIO);
	c = make_curves(s, 60, 200, 7200, false);
	for (size_t k = 0; k < 60; k++) {
		c[k].name = keep_text(s, "python3 train.py --config=experiments/large-%zu.yaml --seed 1", k);
		for (size_t i = 0; i < 200; i++)
			values_of(c[k].mean)[i] =
				(float)((1.0 - (double)k / 60) * (0.7 + 0.3 * noise(&seed)));
		count_up(&c[k]);
	}
	c[59].name = "others";
	c[59].color = CHART_OTHERS;
}

static void hostile(struct sample *s)
{
	static const char *const name[] = {"<script>alert(1)</script>&amp;\"'", "tab\tnew\nline\x01\x7f",
		"\xff\xfe not UTF-8 \xc3",
		"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xd8\xb3\xd9\x84\xd8\xa7\xd9\x85",
		"\xe2\x80\xae turned round", "]]> --> %s %n"};
	static char endless[5000];
	static const struct chart_band band[] = {{-5, 3, "<b>"}, {3, NAN, "\xff"}, {NAN, NAN, "nowhere"}};
	static const struct chart_mark mark[] = {{NAN, "x"}, {5, NULL}, {6, "a & b"}};
	static const struct chart_level level[] = {
		{NAN, "none", true}, {INFINITY, "no end", false}, {-3, NULL, false}};
	static const struct chart_note note[] = {{NAN, 1, "x"}, {4, NAN, "y"}, {4, 1e30, "<far>"}};
	struct chart_curve *c;

	memset(endless, 'W', sizeof(endless) - 1);
	begin(s, "<id>", endless, "\"sub\" <i>", CHART_LINES, UNIT_COUNT);
	s->f.quantity = "<q>";
	s->f.footnote = "foot & note";
	c = make_curves(s, 8, 10, 10, false);
	for (size_t k = 0; k < 8; k++) {
		c[k].name = k < 6 ? name[k] : k == 6 ? endless : NULL;
		for (size_t i = 0; i < 10; i++)
			values_of(c[k].mean)[i] = i == 3 ? INFINITY : i == 4 ? -INFINITY : (float)(k * i) - 3;
	}
	s->f.band = band;
	s->f.nr_bands = 3;
	s->f.nr_band_lanes = 1;
	s->f.mark = mark;
	s->f.nr_marks = 3;
	s->f.level = level;
	s->f.nr_levels = 3;
	s->f.note = note;
	s->f.nr_notes = 3;
}

static void nothing(struct sample *s)
{
	begin(s, "nothing", "Nothing was measured", NULL, CHART_LINES, UNIT_BYTES);
}

/* ---- areas ---- */

static void fill_stack(struct sample *s, size_t curves, size_t points, double to_s)
{
	struct chart_curve *c = make_curves(s, curves, points, to_s, false);
	uint64_t seed = 6;

	for (size_t k = 0; k < curves; k++) {
		size_t born = k * points / (curves * 3), died = points - (curves - k) * points / (curves * 4);

		c[k].name = k + 1 < curves ? keep_text(s, "worker %zu", k) : "others";
		c[k].color = k + 1 < curves ? (uint32_t)k : CHART_OTHERS;
		for (size_t i = 0; i < points; i++)
			values_of(c[k].mean)[i] = i < born || i > died
				? NAN
				: (float)(GIB *
					  (0.3 + 0.1 * sin((double)(i * (k + 1)) / (double)points * 20) +
						  0.02 * noise(&seed)));
		count_up(&c[k]);
	}
}

static void stack(struct sample *s)
{
	begin(s, "memory-processes", "Memory by process", "mean 2.2 GiB, max 3.2 GiB", CHART_STACKED,
		UNIT_BYTES);
	s->f.quantity = "PSS";
	fill_stack(s, 9, 400, 1500);
}

static void stack_dense(struct sample *s)
{
	struct chart_curve *c;

	begin(s, "stack-dense", "Many points upon one another", NULL, CHART_STACKED, UNIT_BYTES);
	fill_stack(s, 4, 20000, 86400);
	c = (struct chart_curve *)(uintptr_t)s->f.curve;
	values_of(c[1].mean)[12345] = (float)(2 * GIB);
}

/* ---- rows ---- */

static void fill_rows(struct sample *s, size_t rows)
{
	struct chart_curve *c = make_curves(s, rows, 300, 300, false);
	uint64_t seed = 7;

	s->f.y_most = 1;
	for (size_t k = 0; k < rows; k++) {
		c[k].name = keep_text(s, "cpu%zu", k);
		for (size_t i = 0; i < 300; i++) {
			double busy = i / 30 % rows == k ? 0.95 : i > 200 && k % 2 ? 0.6 : 0.04;

			values_of(c[k].mean)[i] =
				i >= 100 && i < 110 ? NAN : (float)(busy + 0.05 * noise(&seed));
		}
	}
}

static void heat(struct sample *s)
{
	begin(s, "cores", "Cores", "8 cores, one busy at a time at first", CHART_HEAT, UNIT_RATIO);
	fill_rows(s, 8);
}

static void heat_large(struct sample *s)
{
	begin(s, "cores-many", "Cores of a large node", NULL, CHART_HEAT, UNIT_RATIO);
	fill_rows(s, 100);
}

static void fill_lives(struct sample *s, size_t lives, uint32_t lanes)
{
	struct chart_curve *c = make_curves(s, 8, 120, 600, false);
	struct chart_span *p = keep(s, lives, sizeof(*p));
	uint64_t seed = 8;

	for (size_t k = 0; k < 8; k++)
		for (size_t i = 0; i < 120; i++)
			values_of(c[k].mean)[i] = (float)fabs(sin((double)i / 12 + (double)k));
	for (size_t k = 0; k < lives; k++) {
		size_t round = k / lanes, rounds = (lives + lanes - 1) / lanes;
		double width = 600.0 / (double)rounds,
		       from = (double)round * width + width * 0.2 * noise(&seed);

		p[k] = (struct chart_span){.name = k % 3 ? "cc1 -O2 solver.c" : "python3",
			.from_s = from,
			.to_s = k % 7 == 6 && round + 1 == rounds ? NAN : from + width * 0.75 * noise(&seed),
			.curve = k % 5 == 4 ? UINT32_MAX : (uint32_t)(k % 8),
			.lane = (uint32_t)(k % lanes),
			.color = (uint32_t)(k % 3)};
	}
	s->f.span = p;
	s->f.nr_spans = lives;
	s->f.nr_lanes = lanes;
}

static void timeline(struct sample *s)
{
	begin(s, "timeline", "Processes", "40 processes, at most 20 at once", CHART_TIMELINE, UNIT_SECONDS);
	s->f.per_second = true;
	s->f.quantity = "cores";
	fill_lives(s, 40, 20);
}

static void timeline_many(struct sample *s)
{
	begin(s, "timeline-many", "Thousands of processes", "6,000 processes", CHART_TIMELINE, UNIT_SECONDS);
	s->f.per_second = true;
	s->f.quantity = "cores";
	fill_lives(s, 6000, 200);
}

sample_fn *const samples[] = {cpu, memory, week, gaps, blink, decades, many, hostile, nothing, stack,
	stack_dense, heat, heat_large, timeline, timeline_many};
const size_t nr_samples = sizeof(samples) / sizeof(samples[0]);

void sample_make(struct sample *s, const char *id)
{
	for (size_t i = 0; i < nr_samples; i++) {
		samples[i](s);
		if (!strcmp(s->f.id, id))
			return;
		sample_free(s);
	}
	assert(!"no such sample");
}
