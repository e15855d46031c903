/* The job report as pages: the numbers and the findings first, what to request next time, then the plots, the
 * tables and what was not measured. Each page names the job and its user.
 *
 * The document is the same whenever it is made: its date is that of the run. */
#include "draw/job_report.h"

#include "base/str.h"
#include "draw/paper.h"
#include "text/words.h"
#include "analysis/axis.h"
#include "analysis/finding.h"

#include <cairo-pdf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHART_SCALE 0.66 /* charts are drawn for screens: this makes their text that of the page */
#define CHART_INSET 9.2	 /* what a chart leaves free at its sides: it begins where the text does */
#define CHART_FLAT 0.8	 /* curves are still read well: four on a page */
#define CHART_NAMED 0.93 /* with names of phases and events above it */
#define CARDS 3		 /* of numbers in a row */

struct report_job {
	const struct analysis *s;
	const struct charts *charts;
	const struct outline *o;
	const struct progress *progress;
	struct paper paper;
	const char *foot;
	int status; /* of the charts: 0 or a negative errno */
};

static uint32_t ink(struct report_job *j, enum ink which)
{
	return pen_ink(&j->paper.pen, which);
}

static struct lines plain(struct report_job *j, const char *text)
{
	return (struct lines){.text = text,
		.font = FONT_TEXT,
		.color = ink(j, INK_TEXT),
		.x = PAPER_MARGIN,
		.width = PAPER_TEXT};
}

/* ---- first page ---- */

static void title(struct report_job *j)
{
	struct paper *p = &j->paper;
	struct lines t = plain(j, "Job report");
	struct rect box = {PAPER_MARGIN, 0, PAPER_TEXT, 0};

	t.font = FONT_TITLE;
	paper_text(p, &t, 8);
	t = plain(j, j->o->title);
	t.font = FONT_CODE;
	t.x += 8;
	t.width -= 16;
	t.most = 4;
	box.y = p->y;
	box.h = lines_height(p, &t) + 12;
	paper_box(p, box, 3, ink(j, INK_GRID), 0.55);
	p->y += 6;
	paper_text(p, &t, 16);
	if (*j->o->message) {
		t = plain(j, j->o->message);
		t.most = 4;
		paper_text(p, &t, 12);
	}
	t = plain(j, j->o->window);
	t.font = FONT_STRONG;
	if (*t.text)
		paper_text(p, &t, 12);
}

static void fact(struct report_job *j, const struct outline_fact *f, struct rect r)
{
	struct paper *p = &j->paper;
	struct lines t = plain(j, f->name);

	paper_box(p, (struct rect){r.x, r.y, 2, r.h}, 1, pen_palette(&p->pen, 0), 1);
	t.x = r.x + 10;
	t.width = r.w - 10;
	t.most = 1;
	t.font = FONT_SMALL;
	t.color = ink(j, INK_QUIET);
	lines_put(p, &t, r.y);
	t.text = f->value;
	t.font = lines_width(p, f->value, FONT_FACT) > t.width ? FONT_STRONG : FONT_FACT;
	t.color = ink(j, INK_TEXT);
	lines_put(p, &t, r.y + 10.5);
	t.text = f->detail;
	t.font = FONT_SMALL;
	t.color = ink(j, INK_QUIET);
	t.most = 2;
	lines_put(p, &t, r.y + 27);
}

/* Of the row that begins with this one: a detail may take two lines. */
static double fact_height(struct report_job *j, size_t first, double width)
{
	double height = 37;

	for (size_t i = first; i < MIN(first + CARDS, j->o->nr_facts); i++)
		if (lines_width(&j->paper, j->o->fact[i].detail, FONT_SMALL) > width - 10)
			height = 47;
	return height;
}

static void facts(struct report_job *j)
{
	const double gap = 14, width = (PAPER_TEXT - (CARDS - 1) * gap) / CARDS;
	struct paper *p = &j->paper;

	for (size_t i = 0; i < j->o->nr_facts; i++) {
		double height = fact_height(j, i - i % CARDS, width);
		struct rect r = {PAPER_MARGIN + (double)(i % CARDS) * (width + gap), p->y, width, height};

		fact(j, &j->o->fact[i], r);
		if (i % CARDS == CARDS - 1 || i + 1 == j->o->nr_facts)
			p->y += height + 12;
	}
}

/* ---- findings ---- */

static uint32_t weight_color(struct report_job *j, enum finding_weight weight)
{
	switch (weight) {
	case FINDING_SERIOUS:
		return ink(j, INK_LEVEL);
	case FINDING_WARNING:
		return pen_palette(&j->paper.pen, 4); /* amber */
	case FINDING_NOTE:
		return pen_palette(&j->paper.pen, 0); /* blue */
	case FINDING_FINE:
		break;
	}
	return pen_palette(&j->paper.pen, 2); /* green */
}

/* The chart in which it is to be seen: that of its node, else that of the panel. */
static const struct chart *chart_of(const struct report_job *j, const struct finding *f)
{
	const struct chart *found = NULL;

	for (size_t i = 0; f->panel && i < j->charts->nr; i++) {
		if (strcmp(j->charts->panel[i]->row->id, f->panel) != 0)
			continue;
		if (!found || j->charts->node[i] == f->node)
			found = &j->charts->item[i];
	}
	return found;
}

static void evidence(const struct finding *f, struct buf *out)
{
	char number[UNITS_SIZE];

	for (size_t i = 0; i < f->nr_evidence; i++) {
		const struct finding_evidence *e = &f->evidence[i];

		if (!isnan(e->value))
			buf_addf(out, "%s%s %s", out->len ? "  ·  " : "", e->name,
				format_value(number, e->value, e->unit, e->per_second));
	}
}

static void finding(struct report_job *j, const struct finding *f)
{
	struct paper *p = &j->paper;
	const struct chart *chart = chart_of(j, f);
	struct lines head = plain(j, f->title), text = plain(j, f->text), label = plain(j, NULL),
		     proof = plain(j, NULL);
	const double side = 66;
	struct buf numbers;
	double height, from;

	buf_init(&numbers, 1 << 16);
	evidence(f, &numbers);
	head.font = FONT_STRONG;
	label.text = finding_weight_name(f->weight);
	label.font = FONT_STRONG;
	label.color = weight_color(j, f->weight);
	proof.text = (char *)numbers.data;
	proof.font = FONT_SMALL;
	proof.color = ink(j, INK_QUIET);
	head.x = text.x = proof.x = PAPER_MARGIN + side;
	head.width = text.width = proof.width = PAPER_TEXT - side;
	label.x = PAPER_MARGIN + 10;
	height = lines_height(p, &head) + 2 + lines_height(p, &text) +
		(numbers.len ? lines_height(p, &proof) + 2 : 0);
	paper_need(p, height);
	from = p->y;
	paper_box(p, (struct rect){PAPER_MARGIN, from, 3, height}, 1.5, label.color, 1);
	lines_put(p, &label, p->y);
	if (chart)
		paper_link_begin(p, chart->id);
	p->y += lines_put(p, &head, p->y) + 2;
	if (chart)
		paper_link_end(p);
	p->y += lines_put(p, &text, p->y) + 2;
	if (numbers.len)
		lines_put(p, &proof, p->y);
	p->y = from + height + 11;
	buf_release(&numbers);
}

static void findings(struct report_job *j)
{
	const struct findings *f = j->s->findings;
	struct lines none = plain(j, findings_none(j->s));

	paper_heading(&j->paper, j->s->part ? "Findings of the whole run" : "Findings", NULL, 40);
	if (!f || !f->nr)
		paper_text(&j->paper, &none, 8);
	for (size_t i = 0; f && i < f->nr; i++)
		finding(j, &f->item[i]);
}

/* ---- advice ---- */

struct report_script {
	const struct advice *advice;
	enum font font;
	struct rect box;
};

#define SCRIPT_PAD 9.0
#define SCRIPT_GAP 10.0
#define SCRIPT_LEADING 2.0
#define SCRIPTS_MAX 8

static struct lines script_line(struct report_job *j, const struct report_script *s, size_t i)
{
	struct lines t = plain(j, s->advice->line[i]);

	t.font = s->font;
	t.x = s->box.x + SCRIPT_PAD;
	t.width = s->box.w - 2 * SCRIPT_PAD;
	return t;
}

static double script_height(struct report_job *j, const struct report_script *s)
{
	double height = 2 * SCRIPT_PAD - 2;

	for (size_t i = 0; i < s->advice->nr_lines; i++) {
		struct lines t = script_line(j, s, i);

		height += lines_height(&j->paper, &t) + SCRIPT_LEADING;
	}
	return height;
}

static double script_width(struct report_job *j, const struct report_script *s)
{
	double width = 0;

	for (size_t i = 0; i < s->advice->nr_lines; i++)
		width = fmax(width, lines_width(&j->paper, s->advice->line[i], s->font));
	return width + 2 * SCRIPT_PAD + 2;
}

static void put_script(struct report_job *j, const struct report_script *s)
{
	double y = s->box.y + SCRIPT_PAD - 1;

	paper_box(&j->paper, s->box, 4, pen_palette(&j->paper.pen, 0), 0.07);
	for (size_t i = 0; i < s->advice->nr_lines; i++) {
		struct lines t = script_line(j, s, i);

		y += lines_put(&j->paper, &t, y) + SCRIPT_LEADING;
	}
}

/* That of the batch system that the run was under; else all that are known. */
static size_t choose_scripts(const struct findings *f, struct report_script *script)
{
	size_t nr = MIN(f->nr_advice, (size_t)SCRIPTS_MAX);

	for (size_t i = 0; i < nr; i++) {
		script[i] = (struct report_script){.advice = &f->advice[i], .font = FONT_CODE_SMALL};
		if (f->advice[i].own) {
			script[0] = (struct report_script){.advice = &f->advice[i], .font = FONT_CODE};
			return 1;
		}
	}
	return nr;
}

/* Beside each other, each as wide as its share of the text. */
static void scripts(struct report_job *j, const struct findings *f)
{
	struct report_script script[SCRIPTS_MAX];
	size_t nr = choose_scripts(f, script);
	double room = PAPER_TEXT - (double)(nr - 1) * SCRIPT_GAP, all = 0, height = 0, x = PAPER_MARGIN;

	for (size_t i = 0; i < nr; i++)
		all += script_width(j, &script[i]);
	for (size_t i = 0; i < nr; i++) {
		script[i].box.x = x;
		script[i].box.w = script_width(j, &script[i]) * room / all;
		x += script[i].box.w + SCRIPT_GAP;
		height = fmax(height, script_height(j, &script[i]));
	}
	paper_need(&j->paper, height);
	for (size_t i = 0; i < nr; i++) {
		script[i].box.y = j->paper.y;
		script[i].box.h = height;
		put_script(j, &script[i]);
	}
	j->paper.y += height + 6;
}

static void advice(struct report_job *j)
{
	const struct findings *f = j->s->findings;
	struct lines t = plain(j, NULL);

	if (!f || (!f->nr_advice && !f->why_no_advice))
		return;
	paper_heading(&j->paper, "For the next job script", NULL, 50);
	if (f->nr_advice)
		scripts(j, f);
	t.text = f->nr_advice ? f->headroom : f->why_no_advice;
	t.font = FONT_SMALL;
	t.color = ink(j, INK_QUIET);
	if (t.text)
		paper_text(&j->paper, &t, 6);
}

/* ---- plots ---- */

/* As high as it should be, or a little less where it then fits on the page. */
static double plot_height(struct report_job *j, const struct chart *f, double width)
{
	bool flat = f->form == CHART_LINES || f->form == CHART_STACKED;
	double share = !flat ? 1 : f->nr_bands || f->nr_marks ? CHART_NAMED : CHART_FLAT;
	double high = draw_height(f, width) * CHART_SCALE * share;
	double room = PAPER_BOTTOM - j->paper.y;

	high = fmin(high, PAPER_BOTTOM - PAPER_TOP - 40);
	return room < high && room > 0.8 * high ? room : high;
}

static void plot(struct report_job *j, const struct chart *f)
{
	static const struct draw_style style = {.transparent = true};
	struct paper *p = &j->paper;
	double width = (PAPER_TEXT + 2 * CHART_INSET) / CHART_SCALE, high = plot_height(j, f, width);
	int r;

	paper_need(p, high);
	if (!p->dry) {
		paper_place(p, f->id, p->y);
		cairo_save(p->pen.cr);
		cairo_translate(p->pen.cr, PAPER_MARGIN - CHART_INSET, p->y);
		cairo_scale(p->pen.cr, CHART_SCALE, CHART_SCALE);
		r = draw_chart(p->pen.cr, f, 0, 0, width, high / CHART_SCALE, &style);
		cairo_restore(p->pen.cr);
		j->status = j->status ? j->status : r;
	}
	p->y += high + 8;
}

static const char *section_title(const char *section)
{
	static const char *const title_of[][2] = {{"cpu", "CPU"}, {"memory", "Memory"},
		{"processes", "Processes"}, {"tools", "By tool"}, {"io", "Input and output"},
		{"network", "Network"}, {"gpu", "GPUs"}, {"energy", "Energy and heat"},
		{"perf", "Hardware counters"}, {"app", "The job's own numbers"}};

	for (size_t i = 0; i < ARRAY_SIZE(title_of); i++)
		if (!strcmp(section, title_of[i][0]))
			return title_of[i][1];
	return section;
}

/* The first plot of the CPU and that of memory, which readers look for first: on the first page when there is
 * room. */
static bool is_overview(const struct report_job *j, size_t i)
{
	const char *section = j->charts->panel[i]->row->section;

	if (strcmp(section, "cpu") != 0 && strcmp(section, "memory") != 0)
		return false;
	for (size_t k = 0; k < i; k++)
		if (!strcmp(j->charts->panel[k]->row->section, section))
			return false;
	return true;
}

static void overview(struct report_job *j)
{
	bool headed = false;

	for (size_t i = 0; i < j->charts->nr; i++) {
		if (!is_overview(j, i))
			continue;
		if (!headed)
			paper_heading(&j->paper, "Overview", NULL, 150);
		headed = true;
		plot(j, &j->charts->item[i]);
	}
}

static void plots(struct report_job *j)
{
	const char *section = NULL;

	for (size_t i = 0; i < j->charts->nr; i++) {
		const struct chart *f = &j->charts->item[i];
		const char *own = j->charts->panel[i]->row->section;

		if (is_overview(j, i))
			continue;
		progress_tell(j->progress, "drawing pages", (double)i / (double)j->charts->nr);
		if (!section || strcmp(section, own) != 0)
			paper_heading(&j->paper, section_title(own), NULL, 0.8 * plot_height(j, f, 800));
		section = own;
		plot(j, f);
	}
	if (j->charts->note) {
		struct lines t = plain(j, j->charts->note);

		t.font = FONT_SMALL;
		t.color = ink(j, INK_QUIET);
		paper_text(&j->paper, &t, 6);
	}
}

/* ---- the rest ---- */

static void tables(struct report_job *j)
{
	if (j->o->nr_tables <= j->o->has_phases)
		return;
	paper_heading(&j->paper, "Statistics", NULL, 100);
	for (size_t i = j->o->has_phases; i < j->o->nr_tables; i++)
		paper_table(&j->paper, &j->o->table[i]);
}

static void phases(struct report_job *j)
{
	if (!j->o->has_phases)
		return;
	paper_heading(&j->paper, j->o->table[0].title, NULL, 100);
	paper_rows(&j->paper, &j->o->table[0]);
}

static void sentences(struct report_job *j, const char *heading, char *const *sentence, size_t nr)
{
	if (!nr)
		return;
	paper_heading(&j->paper, heading, NULL, 20);
	for (size_t i = 0; i < nr; i++) {
		struct lines dot = plain(j, "•"), t = plain(j, sentence[i]);
		double height;

		t.x += 10;
		t.width -= 10;
		height = lines_height(&j->paper, &t);
		paper_need(&j->paper, height);
		lines_put(&j->paper, &dot, j->paper.y);
		lines_put(&j->paper, &t, j->paper.y);
		j->paper.y += height + 3;
	}
}

static unsigned set_pages(struct report_job *j, cairo_surface_t *surface, bool dry, unsigned pages)
{
	struct paper *p = &j->paper;

	*p = (struct paper){.head = {{*j->o->job ? "Job" : "Recording", *j->o->job ? j->o->job : j->o->id},
				    {"User", j->o->user}, {"Nodes", j->o->nodes}, {"Date", j->o->date}},
		.foot = j->foot};
	paper_open(p, surface, dry, pages);
	title(j);
	facts(j);
	findings(j);
	advice(j);
	phases(j);
	overview(j);
	plots(j);
	tables(j);
	sentences(j, "About these numbers", j->s->summary->note, j->s->summary->nr_notes);
	if (j->s->findings)
		sentences(j, "Not measured", j->s->findings->unmeasured, j->s->findings->nr_unmeasured);
	pages = p->page;
	paper_close(p);
	return pages;
}

/* ---- the file ---- */

static cairo_status_t take(void *arg, const unsigned char *data, unsigned length)
{
	struct buf *out = arg;

	buf_add(out, data, length);
	return out->err ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static void describe(const struct report_job *j, cairo_surface_t *surface)
{
	char date[UNITS_SIZE];
	struct buf text;

	buf_init(&text, 1 << 16);
	buf_addf(&text, "Job report: %s", j->o->title);
	cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, (char *)text.data);
	cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "tacho " TACHO_VERSION);
	cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_SUBJECT, "what a job did to its hardware");
	if (j->s->summary->start_wall_ns) {
		format_iso8601(date, j->s->summary->start_wall_ns);
		memcpy(date + 19, "Z", 2);
		cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, date);
	}
	buf_release(&text);
}

int job_report(const struct analysis *s, const struct charts *f, const struct outline *o,
	const struct progress *progress, struct buf *out)
{
	struct report_job j = {.s = s, .charts = f, .o = o, .progress = progress};
	cairo_surface_t *surface;
	unsigned pages;
	int r;

	j.foot = "made by tacho " TACHO_VERSION;
	surface = cairo_pdf_surface_create_for_stream(NULL, NULL, PAPER_WIDTH, PAPER_HEIGHT);
	pages = set_pages(&j, surface, true, 0);
	cairo_surface_destroy(surface);
	surface = cairo_pdf_surface_create_for_stream(take, out, PAPER_WIDTH, PAPER_HEIGHT);
	describe(&j, surface);
	set_pages(&j, surface, false, pages);
	cairo_surface_finish(surface);
	r = draw_status((int)cairo_surface_status(surface));
	cairo_surface_destroy(surface);
	if (out->err)
		return out->err;
	return r ? r : j.status;
}
