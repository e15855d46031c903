/* The findings on a page: one line a source where all is well, more where something is missing, and in the
 * end what would change it. Commands stand alone on their lines, to be copied. */
#include "cmd/cmd.h"
#include "cmd/doctor.h"

#include "base/str.h"
#include "base/units.h"
#include "text/words.h"

#include <stdio.h>
#include <string.h>

#define LABEL_WIDTH 12
#define STATE_WIDTH 8
#define INDENT (2 + LABEL_WIDTH + STATE_WIDTH)
#define WIDTH_LEAST 50
#define WIDTH_WIDE 72 /* from here on the names of metrics have room beside the labels */
#define INDENT_NARROW 4
#define NAMES_MAX 3 /* of metrics that share a reason; more are counted */
#define REMEDIES_MAX 32

struct doctor_text_page {
	const struct doctor *d;
	const struct summary_style *style;
	bool verbose;
	struct buf *out;
	unsigned width;
};

/* A source with only some of its metrics: a state of its own. */
#define IN_PART NR_AVAILABILITY

static const struct {
	const char *word, *color;
} mark[NR_AVAILABILITY + 1] = {
	[AVAILABLE] = {"ok", "32"},
	[ABSENT] = {"absent", "2"},
	[FORBIDDEN] = {"denied", "33"},
	[FAILED] = {"failed", "31"},
	[IN_PART] = {"part", "32"},
};

/* ---- lines ---- */

static void add_heading(struct doctor_text_page *p, const char *text)
{
	buf_adds(p->out, p->style->color ? "\n\033[1m" : "\n");
	add_wrapped(p->out, text, 0, p->width);
	buf_adds(p->out, p->style->color ? "\033[0m\n" : "\n");
}

/* The text continues the present line; further lines are indented. */
static void add_body(struct doctor_text_page *p, const char *text, unsigned indent)
{
	struct buf plain;

	buf_init(&plain, 1 << 16);
	add_text(&plain, text, strlen(text), p->style->utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
	add_wrapped(p->out, (char *)plain.data, indent, p->width);
	buf_addch(p->out, '\n');
	buf_release(&plain);
}

static void add_line(
	struct doctor_text_page *p, const char *label, const char *word, const char *color, const char *text)
{
	buf_addf(p->out, "  %-*s", LABEL_WIDTH, label);
	if (p->style->color)
		buf_addf(p->out, "\033[%sm%s\033[0m%*s", color, word, STATE_WIDTH - (int)strlen(word), "");
	else
		buf_addf(p->out, "%-*s", STATE_WIDTH, word);
	add_body(p, text, INDENT);
}

static void add_state(
	struct doctor_text_page *p, const char *label, enum availability state, const char *text)
{
	add_line(p, label, mark[state].word, mark[state].color, text);
}

static void add_more(struct doctor_text_page *p, const char *text)
{
	unsigned indent = p->width < WIDTH_WIDE ? INDENT_NARROW : INDENT;

	buf_addf(p->out, "%*s", (int)indent, "");
	add_body(p, text, indent);
}

/* ---- sources ---- */

/* "11 metrics, 2 interfaces"; single instances, and those that do not matter, are not counted. */
static void count_metrics(const struct self_test_source *s, struct buf *out)
{
	static const char *const many[NR_DOMAINS][2] = {
		[DOMAIN_CPU] = {"CPU", "CPUs"},
		[DOMAIN_NET] = {"interface", "interfaces"},
		[DOMAIN_IB] = {"port", "ports"},
		[DOMAIN_DISK] = {"disk", "disks"},
		[DOMAIN_FILESYSTEM] = {"file system", "file systems"},
		[DOMAIN_ENERGY] = {"meter", "meters"},
		[DOMAIN_SENSOR] = {"sensor", "sensors"},
		[DOMAIN_CGROUP] = {"control group", "control groups"},
		[DOMAIN_GPU] = {"GPU", "GPUs"},
		[DOMAIN_GPU_PROCESS] = {"process", "processes"},
		[DOMAIN_SOCKET] = {"socket", "sockets"},
	};
	unsigned ok = self_test_nr_ok(s), all = (unsigned)s->collector->nr_metrics;
	const char *const *word = many[s->collector->domain];

	if (ok < all)
		buf_addf(out, "%u of ", ok);
	add_count(out, all, "metric", "metrics");
	if (word[0] && s->instances) {
		buf_adds(out, ", ");
		add_count(out, s->instances, word[0], word[1]);
	}
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_trouble(const struct self_test_metric *a, const struct self_test_metric *b)
{
	return a->state == b->state && same_text(a->reason, b->reason);
}

/* There is a remark about it. */
static bool is_noted(const struct self_test_metric *m)
{
	return m->state != AVAILABLE || m->reason;
}

static bool said_before(const struct self_test_source *s, size_t m)
{
	for (size_t i = 0; i < m; i++)
		if (is_noted(&s->metric[i]) && same_trouble(&s->metric[i], &s->metric[m]))
			return true;
	return false;
}

/* The names of all that share the trouble of this one, and the trouble. */
static void add_trouble(
	struct doctor_text_page *p, const struct self_test_source *s, size_t first, bool names)
{
	const struct self_test_metric *m = &s->metric[first];
	struct buf text;
	unsigned nr = 0;

	buf_init(&text, 1 << 16);
	for (size_t i = first; i < s->collector->nr_metrics; i++) {
		if (!same_trouble(&s->metric[i], m))
			continue;
		if (++nr <= NAMES_MAX)
			buf_addf(&text, "%s%s", nr > 1 ? ", " : "", s->collector->metric[i].name);
	}
	if (nr > NAMES_MAX)
		buf_addf(&text, " and %u more", nr - NAMES_MAX);
	if (!names)
		buf_reset(&text);
	if (names)
		buf_addf(&text, " %s: ", m->state == AVAILABLE ? "in part" : mark[m->state].word);
	buf_adds(&text, m->reason ? m->reason : "");
	add_more(p, (char *)text.data);
	buf_release(&text);
}

static void add_troubles(struct doctor_text_page *p, const struct self_test_source *s)
{
	for (size_t m = 0; m < s->collector->nr_metrics; m++)
		if (is_noted(&s->metric[m]) && !said_before(s, m))
			add_trouble(p, s, m, true);
}

static void add_metrics(struct doctor_text_page *p, const struct self_test_source *s)
{
	for (size_t i = 0; i < s->collector->nr_metrics; i++) {
		const struct self_test_metric *m = &s->metric[i];
		struct buf text;

		buf_init(&text, 1 << 16);
		buf_addf(&text, "%s %s%s%s", s->collector->metric[i].name, mark[m->state].word,
			m->reason ? ": " : "", m->reason ? m->reason : "");
		add_more(p, (char *)text.data);
		buf_release(&text);
	}
}

/* All its metrics are missing for one reason. */
static bool is_one_trouble(const struct self_test_source *s)
{
	for (size_t m = 1; m < s->collector->nr_metrics; m++)
		if (!same_trouble(&s->metric[0], &s->metric[m]))
			return false;
	return s->metric[0].state != AVAILABLE;
}

/* Of several states, none of them good, the one that can be changed. */
static enum availability worst_state(const struct self_test_source *s)
{
	enum availability state = ABSENT;

	for (size_t m = 0; m < s->collector->nr_metrics; m++)
		if (s->metric[m].state == FORBIDDEN || (s->metric[m].state == FAILED && state == ABSENT))
			state = s->metric[m].state;
	return state;
}

static void add_source(struct doctor_text_page *p, const struct self_test_source *s)
{
	enum availability state = self_test_nr_ok(s) ? self_test_state(s) : worst_state(s);
	struct buf text;

	buf_init(&text, 4096);
	if (is_one_trouble(s) && s->metric[0].reason)
		buf_adds(&text, s->metric[0].reason);
	else
		count_metrics(s, &text);
	add_state(p, s->collector->name, state, (char *)text.data);
	buf_release(&text);
	if (p->verbose)
		add_metrics(p, s);
	else if (!is_one_trouble(s))
		add_troubles(p, s);
}

static void add_sources(struct doctor_text_page *p)
{
	add_heading(p, "Sources");
	for (size_t i = 0; i < p->d->self_test->nr; i++)
		add_source(p, &p->d->self_test->source[i]);
}

static const char *words_of(const struct permit *f)
{
	return f->state == AVAILABLE ? f->detail : f->reason;
}

static void add_findings(struct doctor_text_page *p)
{
	const struct permit *before = NULL;

	add_heading(p, "Kernel features and permissions");
	for (size_t i = 0; i < p->d->nr_findings; i++) {
		const struct permit *f = &p->d->finding[i].permit;
		bool same = before && !strcmp(f->source, before->source);

		if (!same || f->state != before->state || strcmp(words_of(f), words_of(before)))
			add_state(p, same ? "" : f->source, f->state, words_of(f));
		before = f;
	}
}

/* ---- time and cost ---- */

/* As format_duration(), but also of what is far below a microsecond. */
static char *format_instant(char out[static UNITS_SIZE], double seconds)
{
	if (seconds >= 1e-6)
		return format_duration(out, seconds);
	snprintf(out, UNITS_SIZE, "%.0fns", seconds * 1e9);
	return out;
}

static void add_clock(struct doctor_text_page *p)
{
	const struct clock_facts *c = &p->d->clock;
	char a[UNITS_SIZE], b[UNITS_SIZE], text[200];

	add_heading(p, "Clock and timers");
	snprintf(text, sizeof(text), "%s: a reading takes %s, its smallest step is %s",
		*c->source ? c->source : "the kernel's", format_instant(a, c->read_s),
		format_instant(b, c->step_s));
	add_state(p, "clock", AVAILABLE, text);
	snprintf(text, sizeof(text), "%u wake-ups were %s late in the median, %s at worst", c->wakes,
		format_duration(a, c->late_median_s), format_duration(b, c->late_worst_s));
	add_state(p, "timer", AVAILABLE, text);
}

static const char *verdict(const struct cost *c, char out[static 80])
{
	unsigned stretch = budget_stretch(c->share, DEFAULT_BUDGET);

	if (c->share <= DEFAULT_BUDGET)
		snprintf(out, 80, "fits");
	else if (c->hz > 1)
		snprintf(out, 80, "done if asked for");
	else if (stretch == 1)
		snprintf(out, 80, "fits if status files are read less often");
	else
		snprintf(out, 80, "backs off to every %u s", stretch);
	return out;
}

/* The most expensive collectors at the fastest rate that was measured. */
static void add_dearest(struct doctor_text_page *p, const struct cost *c)
{
	bool named[COLLECTORS_MAX] = {0};
	double sum = 0;
	struct buf text;

	buf_init(&text, 1000);
	for (size_t i = 0; i < p->d->self_test->nr; i++)
		sum += c->by[i];
	for (int n = 0; n < 4; n++) {
		size_t most = 0;

		for (size_t i = 1; i < p->d->self_test->nr; i++)
			if (named[most] || (!named[i] && c->by[i] > c->by[most]))
				most = i;
		if (named[most] || c->by[most] <= sum / 100)
			break;
		named[most] = true;
		buf_addf(&text, "%s%s %.0f %%",
			n ? ", " : "most of it: ", p->d->self_test->source[most].collector->name,
			100 * c->by[most] / sum);
	}
	if (text.len)
		add_more(p, (char *)text.data);
	buf_release(&text);
}

static void add_costs(struct doctor_text_page *p)
{
	char heading[120], nr[UNITS_SIZE], label[16], tick[UNITS_SIZE], share[UNITS_SIZE], words[80],
		text[200];
	const struct cost *c = p->d->cost, *last = NULL;

	if (!c->ticks)
		return;
	snprintf(heading, sizeof(heading),
		"Cost of a sample of all %s processes now (the budget: 1 %% of a core)",
		format_count(nr, c->processes));
	add_heading(p, heading);
	for (unsigned i = 0; i < NR_COSTS; i++, c++) {
		if (!c->ticks)
			continue;
		snprintf(label, sizeof(label), "%u Hz", c->hz);
		snprintf(text, sizeof(text), "%s of CPU, %s %% of a core: %s",
			format_duration(tick, c->tick_s), format_number(share, 100 * c->share),
			verdict(c, words));
		add_line(p, label, c->share <= DEFAULT_BUDGET ? "ok" : "over",
			c->share <= DEFAULT_BUDGET ? "32" : "33", text);
		last = c;
	}
	add_dearest(p, last);
}

/* ---- the verdict ---- */

struct remedies {
	struct {
		const char *command;
		struct buf adds;
	} remedy[REMEDIES_MAX];
	size_t nr;
};

static void add_remedy(struct remedies *r, const char *command, const char *what)
{
	size_t i = 0;

	if (!command || !*command)
		return;
	while (i < r->nr && strcmp(r->remedy[i].command, command))
		i++;
	if (i == REMEDIES_MAX)
		return;
	if (i == r->nr) {
		r->nr++;
		r->remedy[i].command = command;
		buf_init(&r->remedy[i].adds, 4096);
	}
	if (!strstr((char *)r->remedy[i].adds.data, what)) /* a source is named once */
		buf_addf(&r->remedy[i].adds, "%s%s", r->remedy[i].adds.len ? ", " : "", what);
}

static void collect_remedies(const struct doctor *d, struct remedies *r)
{
	for (size_t i = 0; i < d->self_test->nr; i++)
		for (size_t m = 0; m < d->self_test->source[i].collector->nr_metrics; m++)
			add_remedy(r, d->self_test->source[i].metric[m].remedy,
				d->self_test->source[i].collector->name);
	for (size_t i = 0; i < d->nr_findings; i++) {
		const struct permit *f = &d->finding[i].permit;
		char what[80];

		snprintf(what, sizeof(what), "%s %s", f->source, f->metric);
		if (f->state != AVAILABLE)
			add_remedy(r, f->remedy, what);
	}
}

static void add_risk(struct doctor_text_page *p, const char *risk)
{
	char text[240];

	if (!risk)
		return;
	snprintf(text, sizeof(text), "risk: %s", risk);
	buf_adds(p->out, "      ");
	add_body(p, text, 6);
}

static void add_remedies(struct doctor_text_page *p, struct remedies *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		buf_adds(p->out, "  ");
		add_body(p, (char *)r->remedy[i].adds.data, 2);
		buf_addf(p->out, "      %s\n", r->remedy[i].command);
		add_risk(p, remedy_risk(r->remedy[i].command));
		buf_release(&r->remedy[i].adds);
	}
	r->nr = 0;
}

static void add_verdict(struct doctor_text_page *p)
{
	struct remedies *r = calloc(1, sizeof(*r));
	char text[400];

	if (!r)
		return;
	collect_remedies(p->d, r);
	if (!p->d->self_test->works)
		snprintf(
			text, sizeof(text), "This machine cannot be measured: %s.", p->d->self_test->trouble);
	else if (!r->nr)
		snprintf(text, sizeof(text), "This machine can be measured.");
	else if (r->nr == 1)
		snprintf(text, sizeof(text), "This machine can be measured. One thing would add more:");
	else
		snprintf(text, sizeof(text),
			"This machine can be measured. %zu things would add more:", r->nr);
	buf_addch(p->out, '\n');
	add_body(p, text, 0);
	add_remedies(p, r);
	free(r);
}

void doctor_text(const struct doctor *d, const struct summary_style *style, bool verbose, struct buf *out)
{
	struct doctor_text_page p = {d, style, verbose, out, MAX(style->width, WIDTH_LEAST)};
	char text[300];

	snprintf(text, sizeof(text), "tacho %s on %s: %s, %u CPU%s, %s", tacho_version, d->host, d->system,
		d->cpus, d->cpus == 1 ? "" : "s", geteuid() ? "as an ordinary user" : "as root");
	add_body(&p, text, 0);
	add_sources(&p);
	add_findings(&p);
	add_clock(&p);
	add_costs(&p);
	add_verdict(&p);
}
