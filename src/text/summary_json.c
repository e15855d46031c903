/* The summary as JSON. Every figure comes from its row in summary_row[], in the order of the rows: a group is
 * an object, opened at its first row. The groups of processes have the shapes of the whole. */
#include "text/summary.h"

#include "base/str.h"
#include "base/units.h"
#include "text/balance.h"
#include "text/json_parts.h"
#include "text/phases.h"
#include "text/words.h"

#include <math.h>
#include <string.h>

static bool same_group(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* What an object has beyond its figures. */
static void add_words(struct json *j, const struct summary *s, const char *group)
{
	for (unsigned i = 0; i < NR_TEXTS; i++)
		if (same_group(summary_text_row[i].group, group))
			json_name(j, summary_text_row[i].name, s->text[i]);
	if (same_group(group, "cpu")) {
		json_str(j, "source", s->cpu_source);
		json_bool(j, "lower_bound", s->cpu_lower_bound);
	}
	if (same_group(group, "memory"))
		json_bool(j, "lower_bound", s->memory_lower_bound);
	if (same_group(group, "io"))
		json_bool(j, "lower_bound", s->io_lower_bound);
	if (same_group(group, "processes") && !s->name)
		json_bool(j, "unsampled_is_upper_bound", s->unsampled_is_upper_bound);
}

/* Of a group of processes, the figures that have a meaning for it. */
static bool is_told(const struct summary *s, enum figure_id id)
{
	return !s->name || summary_row[id].of_groups;
}

static void add_figures(struct json *j, const struct summary *s)
{
	const char *open = NULL;

	for (enum figure_id id = 0; id < NR_FIGURES; id++) {
		const char *group = summary_row[id].group;

		if (!is_told(s, id))
			continue;
		if (!same_group(open, group)) {
			if (open) {
				add_words(j, s, open);
				json_end_object(j);
			}
			if (group)
				json_object(j, group);
			open = group;
		}
		json_figure(j, summary_row[id].name, &s->figure[id], summary_row[id].whole);
	}
	if (open) {
		add_words(j, s, open);
		json_end_object(j);
	}
}

static const char *text_why(const struct summary *s, enum text_id id)
{
	const struct summary_text_row *row = &summary_text_row[id];

	/* Some node has it. */
	for (size_t i = 0; i < s->nr_nodes; i++)
		if (s->node[i].text[id])
			return "differs between the recordings";
	if (s->name && row->figure >= 0 && has_figure(s, row->figure)) /* a group on several nodes */
		return "differs between the recordings";
	if (row->figure >= 0 && s->figure[row->figure].why)
		return s->figure[row->figure].why;
	return row->why ? row->why : "not recorded";
}

static bool is_text_of_groups(enum text_id id)
{
	return id == TEXT_MEMORY_VIEW || id == TEXT_CPUS_SOURCE || id == TEXT_MEMORY_SOURCE;
}

static void add_reasons(struct json *j, const struct summary *s)
{
	char name[80];

	if (!s->cpu_source)
		json_str(j, "cpu.source",
			s->figure[FIG_CPU].why ? s->figure[FIG_CPU].why : "not known of every node");
	for (enum figure_id id = 0; id < NR_FIGURES; id++) {
		const char *why = s->figure[id].why;

		if (!why || !*why || !is_told(s, id))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", summary_row[id].group ? summary_row[id].group : "",
			summary_row[id].group ? "." : "", summary_row[id].name);
		json_str(j, name, why);
	}
	for (enum text_id id = 0; id < NR_TEXTS; id++) {
		if (s->text[id] || (s->name && !is_text_of_groups(id)))
			continue;
		snprintf(name, sizeof(name), "%s%s%s",
			summary_text_row[id].group ? summary_text_row[id].group : "",
			summary_text_row[id].group ? "." : "", summary_text_row[id].name);
		json_str(j, name, text_why(s, id));
	}
}

static void add_unavailable(struct json *j, const struct summary *s)
{
	json_object(j, "unavailable");
	if (!s->command)
		json_str(j, "command", "differs between the recordings");
	else if (!s->command_len)
		json_str(j, "command", "not recorded");
	if (!s->host)
		json_str(j, "host", "several: see nodes");
	if (!s->start_wall_ns)
		json_str(j, "start", "not recorded");
	add_reasons(j, s);
	json_counters_reasons(j, s);
	if (!s->nr_gpus && s->gpus_why)
		json_str(j, "gpus", s->gpus_why);
	json_end_object(j);
}

static void add_groups(struct json *j, const struct summary *s)
{
	json_object(j, "groups");
	for (size_t i = 0; i < s->nr_groups; i++) {
		const struct summary *group = &s->group[i];

		json_object(j, group->name);
		json_str(j, "kind", *group->kind ? group->kind : NULL);
		json_str(j, "target", *group->target ? group->target : NULL);
		json_bool(j, "with_children", !group->own);
		add_figures(j, group);
		json_gpus(j, group);
		json_object(j, "unavailable");
		if (!*group->kind)
			json_str(j, "kind", "not recorded");
		if (!*group->target)
			json_str(j, "target", "not recorded");
		add_reasons(j, group);
		json_end_object(j);
		json_end_object(j);
	}
	json_end_object(j);
}

/* A plain number is a number: "64", "2.5"; not "007", which is a name. */
static bool is_number(const char *text, double *ret)
{
	bool padded = text[0] == '0' && text[1] && text[1] != '.';

	return strlen(text) <= 15 && !padded && parse_decimal(text, ret);
}

static void add_facts(
	struct json *j, const char *key, const struct summary_fact *fact, size_t nr, bool numbers)
{
	json_object(j, key);
	for (size_t i = 0; i < nr; i++) {
		double value;

		if (!numbers || !is_number(fact[i].value, &value))
			json_name(j, fact[i].name, fact[i].value);
		else if (value == trunc(value))
			json_int(j, fact[i].name, (int64_t)value);
		else
			json_num(j, fact[i].name, value);
	}
	json_end_object(j);
}

void json_command(struct json *j, const struct summary *s)
{
	struct buf command;

	if (!s->command_len) {
		json_null(j, "command");
		return;
	}
	buf_init(&command, s->command_len * 8 + 16);
	/* Words apart as a shell wants them, bytes as they are: JSON escapes what it must by itself. */
	add_command(&command, s->command, s->command_len, LETTERS_RAW);
	json_bytes(j, "command", command.data, command.len);
	buf_release(&command);
}

void json_words(struct json *j, const char *key, const char *words, size_t len)
{
	json_array(j, key);
	for (size_t from = 0; len && from <= len;) {
		size_t n = strnlen(words + from, len - from);

		json_bytes(j, NULL, words + from, n);
		from += n + 1;
	}
	json_end_array(j);
}

static void add_identity(struct json *j, const struct summary *s)
{
	char start[UNITS_SIZE];

	json_command(j, s);
	json_words(j, "argv", s->command, s->command_len);
	json_name(j, "host", s->host);
	json_str(j, "start", s->start_wall_ns ? format_iso8601(start, s->start_wall_ns) : NULL);
	json_str(j, "mode", s->mode);
	json_str(j, "ended", *s->ended ? s->ended : NULL);
	json_name(j, "path", *s->path ? s->path : NULL);
	json_name(j, summary_text_row[TEXT_MESSAGE].name, s->text[TEXT_MESSAGE]);
	json_name(j, summary_text_row[TEXT_TARGET].name, s->text[TEXT_TARGET]);
}

static void add_clock(struct json *j, const struct clock_found *c)
{
	if (!c->measured)
		return;
	json_object(j, "clock");
	json_num(j, "offset_s", c->offset_s);
	json_num(j, "drift_ppm", c->drift_ppm);
	json_num(j, "bound_s", c->bound_s);
	json_end_object(j);
}

static void add_attendance(struct json *j, const struct attendance *a)
{
	static const char *const key[NR_ABSENCES] = {"missing", "late", "ended_early"},
				 *const seconds[NR_ABSENCES] = {NULL, "after_s", "before_s"};

	if (!a)
		return;
	json_object(j, "attendance");
	json_uint(j, "expected", a->expected);
	for (enum absence what = 0; what < NR_ABSENCES; what++) {
		json_array(j, key[what]);
		for (size_t i = 0; i < a->nr[what]; i++) {
			const struct absent_node *n = &a->absent[what][i];

			json_object(j, NULL);
			json_name(j, "node", n->node);
			if (seconds[what])
				json_num(j, seconds[what], n->seconds);
			if (n->why)
				json_name(j, "why", *n->why ? n->why : NULL);
			json_end_object(j);
		}
		json_end_array(j);
	}
	json_end_object(j);
}

static void add_summary(struct json *j, const char *key, const struct summary *s, size_t repetitions)
{
	json_object(j, key);
	add_identity(j, s);
	add_figures(j, s);
	json_counters(j, s);
	json_gpus(j, s);
	json_object(j, "scheduler");
	add_words(j, s, "scheduler");
	json_end_object(j);
	json_object(j, "reservation");
	add_words(j, s, "reservation");
	json_end_object(j);
	add_facts(j, "hardware", s->hardware, s->nr_hardware, true);
	add_facts(j, "environment", s->environment, s->nr_environment, false);
	add_groups(j, s);
	json_phases(j, s, repetitions);
	json_bool(j, "complete", s->complete);
	add_clock(j, &s->clock);
	add_attendance(j, s->attendance);
	json_uint(j, "lost_bytes", (uint64_t)MIN(s->lost_bytes, 1e18));
	json_array(j, "notes");
	for (size_t i = 0; i < s->nr_notes; i++)
		json_str(j, NULL, s->note[i]);
	json_end_array(j);
	add_unavailable(j, s);
	if (s->nr_nodes) {
		json_balance(j, s);
		json_array(j, "nodes");
		for (size_t i = 0; i < s->nr_nodes; i++)
			add_summary(j, NULL, &s->node[i], repetitions / s->nr_nodes);
		json_end_array(j);
	}
	json_end_object(j);
}

void summary_json_brief(const struct summary *s, size_t repetitions, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	add_summary(&j, NULL, s, repetitions);
	buf_addch(out, '\n');
}

void summary_json(const struct summary *s, struct buf *out)
{
	summary_json_brief(s, SIZE_MAX, out);
}
