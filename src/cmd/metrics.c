/* `tacho metrics`: what can be recorded, straight from the rows of the collectors, and whether this machine
 * has it.
 *
 * The same rows give a table for people, JSON for programs and, with --markdown, docs/metrics.md (which says
 * nothing of this machine, so that it is the same wherever it is made). */
#include "cmd/cmd.h"
#include "cmd/here.h"

#include "base/json.h"
#include "base/str.h"
#include "cli/words.h"
#include "collect/collector.h"
#include "env/env.h"

#include <string.h>

struct metrics_args {
	bool json, markdown, names, verbose;
};

extern const struct cmd cmd_metrics;

/* What is shown: the words of the command line, any of which may match. */
struct filter {
	int nr;
	char **word;
};

static bool collector_matches(const struct filter *f, const struct collector *c)
{
	for (int i = 0; i < f->nr; i++)
		if (!strcmp(f->word[i], c->name) || !strcmp(f->word[i], domain_name(c->domain)))
			return true;
	return !f->nr;
}

static bool metric_matches(const struct filter *f, const struct collector *c, const struct metric *m)
{
	if (collector_matches(f, c))
		return true;
	for (int i = 0; i < f->nr; i++)
		if (strstr(m->name, f->word[i]))
			return true;
	return false;
}

static size_t matches(const struct filter *f, const struct collector *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nr_metrics; i++)
		n += metric_matches(f, c, &c->metric[i]);
	return n;
}

/* How often it is read, in words. */
static const char *cadence(const struct metric *m)
{
	static const char *const often[NR_TIERS] = {
		[TIER_TICK] = "every sample", [TIER_MEDIUM] = "each second", [TIER_SLOW] = "budget"};

	return m->on_request ? "on request" : often[m->tier];
}

/* ---- for people ---- */

static unsigned longest_name(const struct filter *f)
{
	size_t n = 0;

	for (size_t i = 0; collectors[i]; i++)
		for (size_t k = 0; k < collectors[i]->nr_metrics; k++)
			if (metric_matches(f, collectors[i], &collectors[i]->metric[k]))
				n = MAX(n, strlen(collectors[i]->metric[k].name));
	return (unsigned)n;
}

/* The text in at most `room` columns, with an ellipsis where it was cut. */
static void add_cut(struct buf *out, const char *text, unsigned room)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);

	if (utf8_columns(text) <= room) {
		buf_adds(out, text);
		return;
	}
	while (p < end && room > 1) {
		size_t n = utf8_length(p, end);

		buf_add(out, p, n);
		p += n;
		room--;
	}
	while (out->data[out->len - 1] == ' ')
		out->data[--out->len] = 0;
	buf_adds(out, "…");
}

/* Short words, for the meaning to have room on a line of 80 columns; `legend` explains them. */
static const char *const short_unit[NR_UNITS] = {
	[UNIT_COUNT] = "n", [UNIT_BYTES] = "B", [UNIT_SECONDS] = "s", [UNIT_RATIO] = "1", [UNIT_CODE] = "-"};
static const char *const short_tier[NR_TIERS] = {
	[TIER_TICK] = "tick", [TIER_MEDIUM] = "1 s", [TIER_SLOW] = "slow"};
/* clang-format off */
static const char legend[] =
	"\nn: number, B: bytes, s: seconds, 1: ratio, -: code. Read at every sample (tick), each second (1 s), "
	"as the budget allows (slow), or only when asked for with `tacho run -m` (asked); absent: this machine "
	"has none. -v explains each in full.\n";
/* clang-format on */

static const char *when_read(const struct metric *m, const char *why)
{
	if (why)
		return "absent";
	return m->on_request ? "asked" : short_tier[m->tier];
}

static void add_metric(struct buf *out, const struct metric *m, const char *why, unsigned name_width,
	unsigned width, bool verbose)
{
	unsigned at = 2 + name_width + 2 + 3 + 9 + 7;

	buf_addf(out, "  %-*s  %-3s%-9s%-7s", (int)name_width, m->name, short_unit[m->unit],
		kind_name(m->kind), when_read(m, why));
	if (!verbose && at + 20 <= width)
		add_cut(out, m->help, width - at);
	while (out->data[out->len - 1] == ' ')
		out->data[--out->len] = 0;
	buf_addch(out, '\n');
	if (!verbose)
		return;
	wrap_text(out, m->help, 0, 6, width);
	if (why) {
		buf_adds(out, "      Not here: ");
		wrap_text(out, why, 16, 6, width);
	}
}

static void add_head(
	struct buf *out, const struct collector *c, const struct here *here, unsigned width, bool color)
{
	struct buf head;

	buf_init(&head, 1000);
	buf_addf(&head, "%s: %s", c->name, c->summary);
	if (!here->available)
		buf_addf(&head, " (not here: %s)", here->why);
	buf_adds(out, color ? "\033[1m" : "");
	wrap_text(out, (char *)head.data, 0, 0, width);
	buf_adds(out, color ? "\033[0m" : "");
	buf_release(&head);
}

static void list_text(const struct metrics_args *a, const struct filter *f, struct env *env, struct buf *out)
{
	unsigned width = terminal_width(STDOUT_FILENO), name_width = longest_name(f);
	bool color = want_color(STDOUT_FILENO), first = true;

	for (size_t i = 0; collectors[i]; i++) {
		const struct collector *c = collectors[i];
		struct here here;

		if (!matches(f, c))
			continue;
		buf_adds(out, first ? "" : "\n");
		first = false;
		here_try(c, env, &here);
		add_head(out, c, &here, width, color);
		for (size_t k = 0; k < c->nr_metrics; k++)
			if (metric_matches(f, c, &c->metric[k]))
				add_metric(out, &c->metric[k], here.metric_why[k], name_width, width,
					a->verbose);
	}
	wrap_text(out, legend, 0, 0, width);
}

static void list_names(const struct filter *f, struct buf *out)
{
	for (size_t i = 0; collectors[i]; i++)
		for (size_t k = 0; k < collectors[i]->nr_metrics; k++)
			if (metric_matches(f, collectors[i], &collectors[i]->metric[k]))
				buf_addf(out, "%s\n", collectors[i]->metric[k].name);
}

/* ---- for programs ---- */

static void json_metric(struct json *j, const struct metric *m, const char *why)
{
	json_object(j, NULL);
	json_str(j, "name", m->name);
	json_str(j, "unit", unit_name(m->unit));
	json_str(j, "kind", kind_name(m->kind));
	json_str(j, "fold", fold_name(m->fold));
	json_str(j, "tier", tier_name(m->tier));
	json_bool(j, "on_request", m->on_request);
	json_str(j, "panel", m->panel);
	json_str(j, "help", m->help);
	json_bool(j, "available", !why);
	json_str(j, "reason", why);
	json_end_object(j);
}

static void list_json(const struct filter *f, struct env *env, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_array(&j, "collectors");
	for (size_t i = 0; collectors[i]; i++) {
		const struct collector *c = collectors[i];
		struct here here;

		if (!matches(f, c))
			continue;
		here_try(c, env, &here);
		json_object(&j, NULL);
		json_str(&j, "name", c->name);
		json_str(&j, "summary", c->summary);
		json_str(&j, "domain", domain_name(c->domain));
		json_bool(&j, "available", here.available);
		json_str(&j, "reason", here.why);
		json_array(&j, "metrics");
		for (size_t k = 0; k < c->nr_metrics; k++)
			if (metric_matches(f, c, &c->metric[k]))
				json_metric(
					&j, &c->metric[k], here.available ? here.metric_why[k] : here.why);
		json_end_array(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_addch(out, '\n');
}

/* ---- for the documentation ---- */

/* A bar would end the cell. */
static void add_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_addch(out, '\\');
		buf_addch(out, *text);
	}
}

static void list_markdown(const struct filter *f, struct buf *out)
{
	buf_adds(out,
		"# Metrics\n\n"
		"Written by `tacho metrics --markdown`; do not edit. `tacho metrics` tells which of them "
		"this machine\n"
		"has. A *counter* only grows, and its rate is shown; a *gauge* is a level; a *peak* is a "
		"high-water mark\n"
		"kept by the kernel. What is read at *every sample* costs next to nothing, *each second* a "
		"little more,\n"
		"*budget* as often as the budget of the recording allows, and what is recorded *on request* "
		"must be\n"
		"asked for with `-m`. *Fold* is how instances (processes, CPUs) become one number.\n");
	for (size_t i = 0; collectors[i]; i++) {
		const struct collector *c = collectors[i];

		if (!matches(f, c))
			continue;
		buf_addf(out, "\n## %s\n\n%s; one instance per %s.\n\n", c->name, c->summary,
			domain_name(c->domain));
		buf_adds(
			out, "| metric | unit | kind | fold | read | meaning |\n|---|---|---|---|---|---|\n");
		for (size_t k = 0; k < c->nr_metrics; k++) {
			const struct metric *m = &c->metric[k];

			if (!metric_matches(f, c, m))
				continue;
			buf_addf(out, "| `%s` | %s | %s | %s | %s | ", m->name, unit_name(m->unit),
				kind_name(m->kind), fold_name(m->fold), cadence(m));
			add_cell(out, m->help);
			buf_adds(out, " |\n");
		}
	}
}

static bool anything_matches(const struct filter *f)
{
	for (size_t i = 0; collectors[i]; i++)
		if (matches(f, collectors[i]))
			return true;
	return false;
}

static int metrics_run(const void *args, int argc, char **argv)
{
	const struct metrics_args *a = args;
	struct filter f = {.nr = argc, .word = argv};
	struct env *env;
	struct buf out;
	int status;

	if (!anything_matches(&f)) {
		error("no metric or collector is called '%s'; `tacho metrics` lists all", argv[0]);
		return EXIT_TROUBLE;
	}
	env = env_live(NULL);
	if (!env)
		die(EXIT_TROUBLE, "no memory");
	buf_init(&out, 1 << 22);
	if (a->names)
		list_names(&f, &out);
	else if (a->json)
		list_json(&f, env, &out);
	else if (a->markdown)
		list_markdown(&f, &out);
	else
		list_text(a, &f, env, &out);
	status = print(&out);
	buf_release(&out);
	env_free(env);
	return status;
}

/* clang-format off */
#define INTO(member) offsetof(struct metrics_args, member)

static const struct opt metrics_opts[] = {
	{0, "json", NULL, OPT_FLAG, INTO(json),
		.help = "for programs"},
	{0, "names", NULL, OPT_FLAG, INTO(names), .not_from_env = true,
		.help = "the names only, one a line"},
	{0, "markdown", NULL, OPT_FLAG, INTO(markdown), .not_from_env = true,
		.help = "as a page of documentation"},
	{'v', "verbose", NULL, OPT_FLAG, INTO(verbose),
		.help = "explain each in full"},
};

const struct cmd cmd_metrics = {
	.name = "metrics",
	.synopsis = "[OPTION…] [WORD…]",
	.help = "list what can be recorded, and what this machine has",
	.detail = "Lists every metric with its unit, its kind, how often it is read and what it means. A WORD restricts "
		"the list: the name of a collector, what its instances are (process, cpu, node), or a part of the name of "
		"a metric.\n\n"
		"A counter only grows, and its rate is what is shown later; a gauge is a level; a peak is a high-water "
		"mark kept by the kernel. Metrics that are read on request are recorded when `tacho run -m` names them.",
	.examples =
		"$ tacho metrics\n"
		"    all of them\n"
		"$ tacho metrics -v pss\n"
		"    what has to do with proportional memory, explained",
	.opt = metrics_opts,
	.nr_opts = ARRAY_SIZE(metrics_opts),
	.args_size = sizeof(struct metrics_args),
	.operands = "metric",
	.run = metrics_run,
};
/* clang-format on */
