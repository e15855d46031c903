/* The summary as JSON. Every figure comes from its row in summary_row[], in the order of the rows: a group is
 * an object, opened at its first row. */
#include "report/summary.h"

#include "base/json.h"
#include "base/units.h"
#include "report/words.h"

#include <math.h>
#include <string.h>

static void add_figure(struct json *j, const struct summary *s, enum figure_id id)
{
	const struct figure *f = &s->figure[id];

	if (f->why || !isfinite(f->value))
		json_null(j, summary_row[id].name);
	else if (summary_row[id].whole && fabs(f->value) < 9e18)
		json_int(j, summary_row[id].name, round_i64(f->value));
	else
		json_num(j, summary_row[id].name, f->value);
}

/* What a group has beyond its figures. */
static void add_words(struct json *j, const struct summary *s, const char *group)
{
	if (!strcmp(group, "cpu")) {
		json_str(j, "source", s->cpu_source);
		json_bool(j, "lower_bound", s->cpu_lower_bound);
	}
	if (!strcmp(group, "processes"))
		json_bool(j, "unsampled_is_upper_bound", s->unsampled_is_upper_bound);
}

static bool same_group(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void add_figures(struct json *j, const struct summary *s)
{
	const char *open = NULL;

	for (enum figure_id id = 0; id < NR_FIGURES; id++) {
		const char *group = summary_row[id].group;

		if (!same_group(open, group)) {
			if (open) {
				add_words(j, s, open);
				json_end_object(j);
			}
			if (group)
				json_object(j, group);
			open = group;
		}
		add_figure(j, s, id);
	}
	if (open)
		json_end_object(j);
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
	if (!s->cpu_source)
		json_str(j, "cpu.source",
			s->figure[FIG_CPU].why ? s->figure[FIG_CPU].why : "not known of every node");
	for (enum figure_id id = 0; id < NR_FIGURES; id++) {
		const char *why = s->figure[id].why;
		char name[80];

		if (!why || !*why)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", summary_row[id].group ? summary_row[id].group : "",
			summary_row[id].group ? "." : "", summary_row[id].name);
		json_str(j, name, why);
	}
	json_end_object(j);
}

static void add_identity(struct json *j, const struct summary *s)
{
	char start[UNITS_SIZE];
	struct buf command;

	buf_init(&command, s->command_len * 8 + 16);
	if (s->command_len) {
		/* Words apart as a shell wants them, bytes as they are: JSON escapes what it must by itself.
		 */
		add_command(&command, s->command, s->command_len, LETTERS_RAW);
		json_bytes(j, "command", command.data, command.len);
	} else {
		json_null(j, "command");
	}
	buf_release(&command);
	json_array(j, "argv");
	for (size_t from = 0; s->command_len && from <= s->command_len;) {
		size_t n = strnlen(s->command + from, s->command_len - from);

		json_bytes(j, NULL, s->command + from, n);
		from += n + 1;
	}
	json_end_array(j);
	json_str(j, "host", s->host);
	json_str(j, "start", s->start_wall_ns ? format_iso8601(start, s->start_wall_ns) : NULL);
	json_str(j, "mode", s->mode);
	json_str(j, "ended", *s->ended ? s->ended : NULL);
	json_str(j, "path", *s->path ? s->path : NULL);
}

static void add_summary(struct json *j, const char *key, const struct summary *s)
{
	json_object(j, key);
	add_identity(j, s);
	add_figures(j, s);
	json_bool(j, "complete", s->complete);
	json_uint(j, "lost_bytes", (uint64_t)MIN(s->lost_bytes, 1e18));
	json_array(j, "notes");
	for (size_t i = 0; i < s->nr_notes; i++)
		json_str(j, NULL, s->note[i]);
	json_end_array(j);
	add_unavailable(j, s);
	if (s->nr_nodes) {
		json_array(j, "nodes");
		for (size_t i = 0; i < s->nr_nodes; i++)
			add_summary(j, NULL, &s->node[i]);
		json_end_array(j);
	}
	json_end_object(j);
}

void summary_json(const struct summary *s, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	add_summary(&j, NULL, s);
	buf_addch(out, '\n');
}
