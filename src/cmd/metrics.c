/* `tacho metrics`: what can be recorded and computed, straight from the rows, and whether this machine has
 * it.
 *
 * The same rows give a table for people, JSON for programs, bare names for completions and, with --markdown,
 * docs/metrics.md (which says nothing of this machine, so that it is the same wherever it is made). */
#include "cmd/catalog.h"
#include "cmd/cmd.h"
#include "cmd/metrics_events.h"

#include "base/json.h"
#include "base/str.h"
#include "cli/words.h"
#include "text/table.h"

#include <string.h>

struct metrics_args {
	bool json, markdown, names, verbose, derived, events;
};

extern const struct cmd cmd_metrics;

/* ---- for people ---- */

/* Short words, so that the meaning fits on a line of 80 columns; `legend` explains them. */
static const char *const short_unit[NR_UNITS] = {[UNIT_COUNT] = "n",
	[UNIT_BYTES] = "B",
	[UNIT_SECONDS] = "s",
	[UNIT_RATIO] = "1",
	[UNIT_CODE] = "-",
	[UNIT_JOULES] = "J",
	[UNIT_WATTS] = "W",
	[UNIT_CELSIUS] = "C",
	[UNIT_HERTZ] = "Hz",
	[UNIT_FLOP] = "F"};
static const char *const short_tier[NR_TIERS] = {
	[TIER_TICK] = "tick", [TIER_MEDIUM] = "5 s", [TIER_SLOW] = "slow"};
/* clang-format off */
static const char legend[] =
	"\nn: number, B: bytes, s: seconds, 1: ratio, -: code, J: joules, W: watts, C: degrees Celsius, Hz: hertz, F: floating-point operations. "
	"Read at every sample (tick), every five seconds (5 s), as "
	"the budget allows (slow), or only when asked for with `tacho run -m` (asked); absent: this machine has "
	"none. -v explains each in full.\n";
/* clang-format on */

static unsigned longest_name(const struct catalog *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nr_sections; i++)
		for (size_t k = 0; k < c->section[i].nr_rows; k++)
			n = MAX(n, strlen(c->section[i].row[k].name));
	return (unsigned)n;
}

static const char *when_read(const struct catalog_row *r)
{
	if (r->why)
		return "absent";
	if (r->expression)
		return "";
	return r->on_request ? "asked" : short_tier[r->tier];
}

static void add_row(struct table_writer *w, const struct catalog_row *r, unsigned width, bool verbose)
{
	char unit[8];

	snprintf(unit, sizeof(unit), "%s%s", short_unit[r->unit], r->per_second ? "/s" : "");
	table_begin_row(w);
	cell_text(w, r->name, strlen(r->name));
	cell_text(w, unit, strlen(unit));
	cell_text(w, kind_name(r->kind), strlen(kind_name(r->kind)));
	cell_text(w, when_read(r), strlen(when_read(r)));
	cell_text(w, r->help, strlen(r->help));
	table_end_row(w);
	if (!verbose)
		return;
	wrap_text(w->out, r->help, 0, 6, width);
	if (r->why) {
		buf_adds(w->out, "      Not here: ");
		wrap_text(w->out, r->why, 16, 6, width);
	}
	if (r->expression) {
		buf_adds(w->out, "      = ");
		wrap_text(w->out, r->expression, 8, 8, width);
	}
}

static void add_head(struct buf *out, const struct catalog_section *s, unsigned width, bool color)
{
	struct buf head;

	buf_init(&head, 1000);
	buf_addf(&head, "%s: %s", s->name, s->summary);
	if (s->why)
		buf_addf(&head, " (not here: %s)", s->why);
	buf_adds(out, color ? "\033[1m" : "");
	wrap_text(out, (char *)head.data, 0, 0, width);
	buf_adds(out, color ? "\033[0m" : "");
	buf_release(&head);
}

static void list_text(const struct catalog *c, bool verbose, struct buf *out)
{
	unsigned width = terminal_width(STDOUT_FILENO), name_width = longest_name(c);
	unsigned help_at = 2 + name_width + 2 + 4 + 9 + 7;
	bool color = want_color(STDOUT_FILENO), helps = !verbose && help_at + 20 <= width;
	struct text_column column[] = {{.title = "", .gap = 2, .width = name_width},
		{.title = "", .gap = 2, .width = 4}, {.title = "", .width = 9},
		{.title = help_at <= width + 1 ? "" : NULL, .width = 7},
		{.title = helps ? "" : NULL, .width = 1}};
	const struct text_table t = {.column = column, .nr_columns = ARRAY_SIZE(column)};
	struct table_writer w;

	table_begin(&w, &t, &(struct text_style){.width = helps ? width : 0, .utf8 = true}, out);
	for (size_t i = 0; i < c->nr_sections; i++) {
		const struct catalog_section *s = &c->section[i];

		buf_adds(out, i ? "\n" : "");
		add_head(out, s, width, color);
		for (size_t k = 0; k < s->nr_rows; k++)
			add_row(&w, &s->row[k], width, verbose);
	}
	table_end(&w);
	wrap_text(out, legend, 0, 0, width);
}

static void list_names(const struct catalog *c, struct buf *out)
{
	for (size_t i = 0; i < c->nr_sections; i++)
		for (size_t k = 0; k < c->section[i].nr_rows; k++)
			buf_addf(out, "%s\n", c->section[i].row[k].name);
}

/* ---- for programs ---- */

static void json_row(struct json *j, const struct catalog_row *r)
{
	json_object(j, NULL);
	json_str(j, "name", r->name);
	json_str(j, "unit", unit_name(r->unit));
	json_bool(j, "per_second", r->per_second);
	json_str(j, "kind", kind_name(r->kind));
	json_str(j, "fold", fold_name(r->fold));
	if (r->expression) {
		json_str(j, "expression", r->expression);
	} else {
		json_str(j, "tier", tier_name(r->tier));
		json_bool(j, "on_request", r->on_request);
		json_bool(j, "available", !r->why);
		json_str(j, "reason", r->why);
	}
	json_str(j, "panel", r->panel);
	json_str(j, "help", r->help);
	json_end_object(j);
}

static void json_rows(struct json *j, const char *key, const struct catalog_section *s)
{
	json_array(j, key);
	for (size_t k = 0; k < s->nr_rows; k++)
		json_row(j, &s->row[k]);
	json_end_array(j);
}

static void list_json(const struct catalog *c, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_array(&j, "collectors");
	for (size_t i = 0; i < c->nr_sections; i++) {
		const struct catalog_section *s = &c->section[i];

		if (!s->domain)
			continue;
		json_object(&j, NULL);
		json_str(&j, "name", s->name);
		json_str(&j, "summary", s->summary);
		json_str(&j, "domain", s->domain);
		json_bool(&j, "available", !s->why);
		json_str(&j, "reason", s->why);
		json_rows(&j, "metrics", s);
		json_end_object(&j);
	}
	json_end_array(&j);
	for (size_t i = 0; i < c->nr_sections; i++)
		if (!c->section[i].domain)
			json_rows(&j, c->section[i].name, &c->section[i]);
	json_end_object(&j);
	buf_addch(out, '\n');
}

/* ---- for the documentation ---- */

/* clang-format off */
static const char preface[] =
	"# Metrics\n"
	"\n"
	"Written by `tacho metrics --markdown`; do not edit. `tacho metrics` tells which of them this machine has.\n"
	"\n"
	"A *counter* only grows, and its rate is shown; a *gauge* is a level; a *peak* is a high-water mark kept by\n"
	"the kernel. What is read at *every sample* costs next to nothing, *every 5 s* a little more, *budget* as\n"
	"often as the budget of the recording allows; what is recorded *on request* must be asked for with `-m`.\n"
	"*Fold* is how instances (processes, CPUs) become one number.\n";
/* clang-format on */

/* How often it is read, in words. */
static const char *cadence(const struct catalog_row *r)
{
	static const char *const often[NR_TIERS] = {
		[TIER_TICK] = "every sample", [TIER_MEDIUM] = "every 5 s", [TIER_SLOW] = "budget"};

	return r->on_request ? "on request" : often[r->tier];
}

/* A bar would end the cell. */
static void add_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_addch(out, '\\');
		buf_addch(out, *text);
	}
	buf_adds(out, " |");
}

static void markdown_row(struct buf *out, const struct catalog_row *r)
{
	buf_addf(out, "| `%s` | %s%s | %s | %s | ", r->name, unit_name(r->unit), r->per_second ? "/s" : "",
		kind_name(r->kind), fold_name(r->fold));
	if (r->expression) {
		add_cell(out, r->help);
		buf_adds(out, " `");
		buf_adds(out, r->expression);
		buf_adds(out, "` |\n");
		return;
	}
	buf_addf(out, "%s | ", cadence(r));
	add_cell(out, r->help);
	buf_addch(out, '\n');
}

static void list_markdown(const struct catalog *c, struct buf *out)
{
	buf_adds(out, preface);
	for (size_t i = 0; i < c->nr_sections; i++) {
		const struct catalog_section *s = &c->section[i];

		buf_addf(out, "\n## %s\n\n%c%s%s%s.\n\n", s->name, s->summary[0] & ~0x20, s->summary + 1,
			s->domain ? "; one instance per " : "", s->domain ? s->domain : "");
		buf_addf(out, "| metric | unit | kind | fold | %s |\n|---|---|---|---|---|---|\n",
			s->domain ? "read | meaning" : "meaning | expression");
		for (size_t k = 0; k < s->nr_rows; k++)
			markdown_row(out, &s->row[k]);
	}
}

static int show_catalog(const struct metrics_args *a, const struct catalog *c)
{
	struct buf out;
	int status;

	buf_init(&out, 1 << 22);
	if (a->names)
		list_names(c, &out);
	else if (a->json)
		list_json(c, &out);
	else if (a->markdown)
		list_markdown(c, &out);
	else
		list_text(c, a->verbose, &out);
	status = print(&out);
	buf_release(&out);
	return status;
}

static int show_events(const struct metrics_args *a, int argc, char **argv)
{
	const struct events_ask ask = {.nr_words = argc,
		.word = argv,
		.json = a->json,
		.names = a->names,
		.verbose = a->verbose,
		.color = want_color(STDOUT_FILENO),
		.width = terminal_width(STDOUT_FILENO)};
	struct env *env = env_live(NULL);
	int status = EXIT_TROUBLE, r;
	struct buf out;

	buf_init(&out, 1 << 26);
	r = env ? events_list(env, &ask, &out) : -ENOMEM;
	env_free(env);
	if (r == 0)
		status = print(&out);
	else if (r == -ENOENT)
		error("no event, kind of event or group is called '%s'; `tacho metrics --events` lists all",
			argv[0]);
	else
		error("out of memory");
	buf_release(&out);
	return status;
}

static int metrics_run(const void *args, int argc, char **argv)
{
	const struct metrics_args *a = args;
	bool machine = !a->names && !a->markdown;
	struct env *env = machine ? env_live(NULL) : NULL;
	struct catalog c;
	int status = EXIT_TROUBLE;

	if (a->events && a->markdown)
		usage(&cmd_metrics, "--events are this machine's: there is no --markdown of them");
	if (a->events) {
		env_free(env);
		return show_events(a, argc, argv);
	}
	if ((machine && !env) || catalog_init(&c, argc, argv, a->derived, env) < 0)
		die(EXIT_TROUBLE, "out of memory");
	if (c.nr_sections)
		status = show_catalog(a, &c);
	else
		error("no metric or collector is called '%s'; `tacho metrics` lists all", argv[0]);
	catalog_release(&c);
	env_free(env);
	return status;
}

/* clang-format off */
#define INTO(member) offsetof(struct metrics_args, member)

static const struct opt metrics_opts[] = {
	{0, "events", NULL, OPT_FLAG, INTO(events), .not_from_env = true,
		.help = "the events that this machine can count, for -e",
		.detail = "Lists, kind by kind, the events that `tacho run -e` takes here, and whether each can be "
			"counted: the kernel's own names, those of this machine's PMUs, tracepoints and, where libpfm4 is "
			"installed, the names of the processor's manual; also the groups of events that there are for this "
			"processor. A WORD is a kind, or a part of the name of an event or group "
			"or of its explanation."},
	{0, "json", NULL, OPT_FLAG, INTO(json),
		.help = "for programs"},
	{0, "names", NULL, OPT_FLAG, INTO(names), .not_from_env = true,
		.help = "the names only, one a line"},
	{0, "markdown", NULL, OPT_FLAG, INTO(markdown), .not_from_env = true,
		.help = "as a page of documentation"},
	{0, "derived", NULL, OPT_FLAG, INTO(derived), .preset = "yes", .not_from_env = true,
		.help = "leave out derived metrics"},
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
		"mark kept by the kernel. Metrics that are read on request are recorded when `tacho run -m` names them. "
		"Derived metrics are not recorded: they are computed from the others when a recording is read.",
	.examples =
		"$ tacho metrics\n    all of them\n$ tacho metrics -v pss\n    metrics of proportional "
		"memory, explained\n$ tacho metrics --events cache\n    events about caches that can be "
		"counted here",
	.opt = metrics_opts,
	.nr_opts = ARRAY_SIZE(metrics_opts),
	.args_size = sizeof(struct metrics_args),
	.measures = true,
	.operands = "metric",
	.run = metrics_run,
};
/* clang-format on */
