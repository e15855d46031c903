/* The events of this machine by kind, as they can be given to -e, each with whether it can be counted here;
 * before them what we may count at all, and the ready-made groups for this processor.
 *
 * Tracepoints and the names of the manuals come in thousands. Without a word to search for, such a kind is
 * one line that says how to list it: a page that scrolls for a minute is useless. */
#include "cmd/metrics_events.h"

#include "base/json.h"
#include "base/owned.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/words.h"
#include "perf/event.h"
#include "perf/groups.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

enum { MANY = 40, NAME_WIDTH_MAX = 34 };

struct offer_row {
	char *name, *kind, *about;
	const char *reason, *remedy; /* static text */
	bool of_package;
	int error;
};

struct events {
	const struct events_ask *ask;
	struct offer_row *row;
	size_t nr, cap;
	struct perf_access access;
	struct event_file file;
	char no_file[400]; /* why there is none */
	struct buf *out;
};

/* ---- gathering ---- */

static bool matches(const struct events_ask *ask, const char *name, const char *kind, const char *about)
{
	for (int i = 0; i < ask->nr_words; i++)
		if (!strcasecmp(ask->word[i], kind) || strcasestr(name, ask->word[i]) ||
			strcasestr(about, ask->word[i]))
			return true;
	return !ask->nr_words;
}

static int keep_offer(void *arg, const struct perf_offer *o)
{
	struct events *e = arg;
	struct offer_row row = {
		.reason = o->reason, .remedy = o->remedy, .of_package = o->of_package, .error = o->error};

	if (!matches(e->ask, o->name, o->kind, o->about))
		return 0;
	if (ARRAY_ROOM(e->row, e->cap, e->nr + 1) < 0)
		return -ENOMEM;
	row.name = strdup(o->name);
	row.kind = strdup(o->kind);
	row.about = strdup(o->about);
	e->row[e->nr++] = row;
	return row.name && row.kind && row.about ? 0 : -ENOMEM;
}

static void events_release(struct events *e)
{
	for (size_t i = 0; i < e->nr; i++) {
		free(e->row[i].name);
		free(e->row[i].kind);
		free(e->row[i].about);
	}
	free(e->row);
	event_file_release(&e->file);
}

static bool group_is_asked(const struct events *e, const struct event_group *g)
{
	return matches(e->ask, g->name, "group", g->help);
}

static unsigned nr_groups(const struct events *e)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < e->file.nr_groups; i++)
		nr += group_is_asked(e, &e->file.group[i]);
	return nr;
}

/* Rows of one kind stand together: where the next begins. */
static size_t kind_end(const struct events *e, size_t first)
{
	size_t i = first;

	while (i < e->nr && !strcmp(e->row[i].kind, e->row[first].kind))
		i++;
	return i;
}

/* ---- for people ---- */

static const char *state_word(const struct offer_row *r)
{
	if (!r->error)
		return "yes";
	return is_refused(r->error) ? "refused" : "absent";
}

static const char *kind_about(const struct offer_row *r)
{
	static const struct {
		const char *kind, *about;
	} known[] = {
		{"hardware", "what nearly every processor counts"},
		{"software", "what the kernel counts by itself"},
		{"cache", "the kernel's names for caches, as far as the processor tells them apart"},
		{"tracepoint", "places in the kernel's code, counted when they are passed"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].kind, r->kind))
			return known[i].about;
	if (strstr(r->name, "::") || !strcmp(r->kind, "libpfm4"))
		return "names of the processor's manual, by libpfm4";
	return r->of_package ? "a PMU that counts for the whole node" : "a PMU that counts for the job";
}

static void add_title(const struct events *e, const char *fmt, ...) _printf_(2, 3);

static void add_title(const struct events *e, const char *fmt, ...)
{
	char title[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(title, sizeof(title), fmt, ap);
	va_end(ap);
	buf_adds(e->out, e->out->len ? "\n" : "");
	buf_adds(e->out, e->ask->color ? "\033[1m" : "");
	wrap_text(e->out, title, 0, 0, e->ask->width);
	buf_adds(e->out, e->ask->color ? "\033[0m" : "");
}

static void add_line(const struct events *e, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	buf_addf(e->out, "      %s", label);
	wrap_text(e->out, text, 6 + (unsigned)utf8_columns(label), 6, e->ask->width);
}

/* The name, whether it can be counted, what it is: on a line of its own where there is no room beside. */
static void add_offer(
	const struct events *e, const struct offer_row *r, unsigned name_width, bool with_reason)
{
	unsigned at = 2 + name_width + 2 + 8 + 1, have;

	buf_addf(e->out, "  %s", r->name);
	have = 2 + (unsigned)utf8_columns(r->name);
	if (have > 2 + name_width) {
		buf_addch(e->out, '\n');
		have = 0;
	}
	buf_addf(e->out, "%*s%-8s ", (int)(2 + name_width + 2 - have), "", state_word(r));
	if (*r->about && at + 20 <= e->ask->width) {
		wrap_text(e->out, r->about, at, at, e->ask->width);
	} else {
		while (e->out->data[e->out->len - 1] == ' ')
			e->out->data[--e->out->len] = 0;
		buf_addch(e->out, '\n');
		add_line(e, "", r->about);
	}
	if (!e->ask->verbose || !r->error || !with_reason)
		return;
	add_line(e, "Not here: ", r->reason);
	add_line(e, "Remedy: ", r->remedy);
}

/* The reason that all rows share; NULL when they do not. */
static const char *common_reason(const struct offer_row *row, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!row[i].reason || row[i].reason != row[0].reason)
			return NULL;
	return row[0].reason;
}

/* Of what this machine does not have, the names are enough. */
static void add_names(const struct events *e, const struct offer_row *row, size_t nr)
{
	struct buf names;

	buf_init(&names, 1 << 16);
	for (size_t i = 0; i < nr; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", row[i].name);
	buf_adds(e->out, "  ");
	wrap_text(e->out, (char *)names.data, 2, 2, e->ask->width);
	buf_release(&names);
}

static void add_kind(const struct events *e, const struct offer_row *row, size_t nr)
{
	bool short_form = !e->ask->nr_words && !e->ask->verbose;
	const char *reason = common_reason(row, nr);
	char count[UNITS_SIZE];
	unsigned width = 0;

	add_title(e, "%s: %s%s%s%s", row->kind, kind_about(row), reason ? " (not here: " : "",
		reason ? reason : "", reason ? ")" : "");
	if (nr > MANY && !e->ask->nr_words) {
		buf_addf(e->out, "  %s, listed by `tacho metrics --events %s` or a part of a name\n",
			format_count(count, (double)nr), row->kind);
		return;
	}
	if (reason && row->remedy) {
		buf_adds(e->out, "  Remedy: ");
		wrap_text(e->out, row->remedy, 10, 2, e->ask->width);
	}
	if (reason && short_form) {
		add_names(e, row, nr);
		return;
	}
	for (size_t i = 0; i < nr; i++)
		if (utf8_columns(row[i].name) <= NAME_WIDTH_MAX)
			width = MAX(width, (unsigned)utf8_columns(row[i].name));
	for (size_t i = 0; i < nr; i++)
		add_offer(e, &row[i], width, !reason);
}

static void add_access(const struct events *e)
{
	const struct perf_access *a = &e->access;
	char text[300];

	add_title(e, "What may be counted here");
	snprintf(text, sizeof(text), "%s; %s.",
		!a->tasks		? "No events of this user's processes"
			: a->kernel_too ? "Events of this user's processes, in user mode and in the kernel"
					: "Events of this user's processes, in user mode only",
		a->packages ? "events of whole packages and the node" : "none of whole packages or the node");
	buf_adds(e->out, "  ");
	wrap_text(e->out, text, 2, 2, e->ask->width);
	if (a->paranoid != INT_MIN)
		buf_addf(e->out, "  kernel.perf_event_paranoid is %d.\n", a->paranoid);
	if (!a->reason)
		return;
	buf_adds(e->out, "  Not here: ");
	wrap_text(e->out, a->reason, 12, 2, e->ask->width);
	if (a->remedy) {
		buf_adds(e->out, "  Remedy: ");
		wrap_text(e->out, a->remedy, 10, 2, e->ask->width);
	}
}

static void add_group_detail(const struct events *e, const struct event_group *g)
{
	for (unsigned i = 0; i < g->nr_events; i++) {
		buf_addf(e->out, "      %s = ", g->event[i].name);
		wrap_text(e->out, g->event[i].code, 9 + (unsigned)strlen(g->event[i].name), 8, e->ask->width);
		add_line(e, "  Caution: ", g->event[i].caution);
	}
	for (unsigned i = 0; i < g->nr_formulas; i++) {
		buf_addf(e->out, "      perf.%s = ", g->formula[i].name);
		wrap_text(e->out, g->formula[i].expression, 14 + (unsigned)strlen(g->formula[i].name), 8,
			e->ask->width);
		add_line(e, "  Caution: ", g->formula[i].caution);
	}
}

static void add_groups(const struct events *e)
{
	if (!e->file.group && (e->ask->nr_words || !*e->no_file))
		return;
	if (!e->file.group) {
		add_title(e, "group: events and formulas that belong together, recorded with -m NAME");
		buf_adds(e->out, "  ");
		wrap_text(e->out, e->no_file, 2, 2, e->ask->width);
		return;
	}
	if (!nr_groups(e))
		return;
	add_title(e, "group: events and formulas that belong together, recorded with -m NAME (%s)%s",
		e->file.source, e->access.hardware ? "" : "; not here: there are no hardware counters");
	for (unsigned i = 0; i < e->file.nr_groups; i++) {
		const struct event_group *g = &e->file.group[i];

		if (!group_is_asked(e, g))
			continue;
		buf_addf(e->out, "  %-10s", g->name);
		wrap_text(e->out, g->help, 12, 12, e->ask->width);
		if (*g->missing) {
			buf_adds(e->out, "            Not here: ");
			wrap_text(e->out, g->missing, 22, 12, e->ask->width);
		}
		if (e->ask->verbose)
			add_group_detail(e, g);
	}
}

static void list_text(const struct events *e)
{
	if (!e->ask->nr_words)
		add_access(e);
	add_groups(e);
	for (size_t i = 0; i < e->nr; i = kind_end(e, i))
		add_kind(e, &e->row[i], kind_end(e, i) - i);
	if (!e->ask->nr_words)
		wrap_text(e->out,
			"\nRecord them with `tacho run -e EVENT,… COMMAND`. yes: it can be counted here; "
			"refused: the kernel does not permit it to this user; absent: this machine has "
			"none. -v says why. Beside these names, r and the hexadecimal code of the manual, "
			"and PMU/term=value,…/ are understood; :u and :k restrict an event to user mode "
			"or the kernel, NAME=EVENT names it.",
			0, 0, e->ask->width);
}

static void list_names(const struct events *e)
{
	for (size_t i = 0; i < e->nr; i++)
		if (!strstr(e->row[i].name, "…"))
			buf_addf(e->out, "%s\n", e->row[i].name);
}

/* ---- for programs ---- */

static void json_access(struct json *j, const struct perf_access *a)
{
	json_object(j, "access");
	if (a->paranoid == INT_MIN)
		json_null(j, "perf_event_paranoid");
	else
		json_int(j, "perf_event_paranoid", a->paranoid);
	json_bool(j, "tasks", a->tasks);
	json_bool(j, "kernel", a->kernel_too);
	json_bool(j, "packages", a->packages);
	json_bool(j, "hardware", a->hardware);
	json_str(j, "reason", a->reason);
	json_str(j, "remedy", a->remedy);
	json_end_object(j);
}

static void json_group(struct json *j, const struct event_group *g)
{
	json_object(j, NULL);
	json_str(j, "name", g->name);
	json_str(j, "help", g->help);
	json_str(j, "missing", *g->missing ? g->missing : NULL);
	json_array(j, "events");
	for (unsigned i = 0; i < g->nr_events; i++) {
		json_object(j, NULL);
		json_str(j, "name", g->event[i].name);
		json_str(j, "code", g->event[i].code);
		json_str(j, "scope", g->event[i].of_package ? "package" : "task");
		json_str(j, "caution", *g->event[i].caution ? g->event[i].caution : NULL);
		json_end_object(j);
	}
	json_end_array(j);
	json_array(j, "formulas");
	for (unsigned i = 0; i < g->nr_formulas; i++) {
		const struct group_formula *f = &g->formula[i];
		char name[64];

		snprintf(name, sizeof(name), "perf.%s", f->name);
		json_object(j, NULL);
		json_str(j, "name", name);
		json_str(j, "unit", unit_name(f->unit));
		json_bool(j, "per_second", f->per_second);
		json_str(j, "expression", f->expression);
		json_str(j, "help", f->help);
		json_str(j, "caution", *f->caution ? f->caution : NULL);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void list_json(const struct events *e)
{
	struct json j;

	json_init(&j, e->out, true);
	json_object(&j, NULL);
	json_access(&j, &e->access);
	json_str(&j, "event_file", e->file.group ? e->file.source : NULL);
	json_str(&j, "event_file_reason", *e->no_file ? e->no_file : NULL);
	json_array(&j, "groups");
	for (unsigned i = 0; i < e->file.nr_groups; i++)
		if (group_is_asked(e, &e->file.group[i]))
			json_group(&j, &e->file.group[i]);
	json_end_array(&j);
	json_array(&j, "events");
	for (size_t i = 0; i < e->nr; i++) {
		const struct offer_row *r = &e->row[i];

		json_object(&j, NULL);
		json_str(&j, "name", r->name);
		json_str(&j, "kind", r->kind);
		json_str(&j, "scope", r->of_package ? "package" : "task");
		json_str(&j, "about", *r->about ? r->about : NULL);
		json_bool(&j, "available", !r->error);
		json_str(&j, "reason", r->reason);
		json_str(&j, "remedy", r->remedy);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_addch(e->out, '\n');
}

int events_list(struct env *env, const struct events_ask *ask, struct buf *out)
{
	struct events e = {.ask = ask, .out = out};
	int r = perf_offers(env, keep_offer, &e);

	if (r == 0) {
		perf_access(env, &e.access);
		if (event_file_find(env, &e.file, e.no_file, sizeof(e.no_file)) < 0)
			e.file = (struct event_file){0};
		else
			e.no_file[0] = 0;
		if (!e.nr && !nr_groups(&e))
			r = -ENOENT;
		else if (ask->json)
			list_json(&e);
		else if (ask->names)
			list_names(&e);
		else
			list_text(&e);
	}
	events_release(&e);
	return r;
}
