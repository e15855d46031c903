/* The table of processes for the page: who they were, how they ended, and the statistics' columns of which
 * any of them has a value. Of more than a page can show those of most CPU time, and all that have curves. */
#include "document/page_internal.h"

#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define COMMAND_COLUMNS 500

static const struct {
	const char *name, *title;
} identity[] = {
	{"pid", "PID"},
	{"ppid", "parent"},
	{"name", "name"},
	{"command", "command"},
	{"user", "user"},
	{"groups", "groups"},
	{"node", "node"},
	{"start_s", "start"},
	{"end_s", "end"},
	{"ended", "how it ended"},
	{"index", "number"},
};

struct page_listing {
	const struct analysis *s;
	const struct stats_row **stats; /* by process; NULL: it has none */
	bool *shown;
	size_t nr_shown;
	bool column[NR_STATS];
};

static void listing_release(struct page_listing *t)
{
	free(t->stats);
	free(t->shown);
}

static void show(struct page_listing *t, size_t i)
{
	if (t->shown[i])
		return;
	t->shown[i] = true;
	t->nr_shown++;
	for (unsigned k = 0; t->stats[i] && k < NR_STATS; k++)
		t->column[k] |= stats_column[k].of_processes && !isnan(t->stats[i]->value[k]);
}

static int listing_fill(struct page_listing *t)
{
	const struct stats *stats = t->s->stats;
	size_t nr = t->s->processes->nr;

	t->stats = calloc(nr + 1, sizeof(*t->stats));
	t->shown = calloc(nr + 1, sizeof(*t->shown));
	if (!t->stats || !t->shown)
		return -ENOMEM;
	for (size_t i = 0; i < stats->nr[STATS_PROCESS]; i++) {
		const struct stats_row *row = &stats->row[STATS_PROCESS][i];

		if (row->process < nr)
			t->stats[row->process] = row;
	}
	for (size_t i = 0; i < t->s->nr_keep; i++)
		show(t, t->s->keep_row[i]);
	for (size_t i = 0; i < nr && t->nr_shown < PAGE_PROCESSES; i++)
		show(t, i);
	return 0;
}

static void add_columns(struct json *j, const struct page_listing *t)
{
	json_array(j, "columns");
	for (size_t i = 0; i < ARRAY_SIZE(identity); i++) {
		json_object(j, NULL);
		json_str(j, "name", identity[i].name);
		json_str(j, "title", identity[i].title);
		json_end_object(j);
	}
	for (unsigned k = 0; k < NR_STATS; k++)
		if (t->column[k])
			page_stats_column(j, &stats_column[k]);
	json_end_array(j);
}

static void add_ended(struct json *j, const struct process_row *row)
{
	char text[64];

	if (row->status >= 0 && WIFEXITED(row->status)) {
		snprintf(text, sizeof(text), "exit %d", WEXITSTATUS(row->status));
		json_str(j, NULL, text);
	} else if (row->status >= 0 && WIFSIGNALED(row->status)) {
		json_str(j, NULL, format_signal(text, WTERMSIG(row->status)));
	} else {
		json_str(j, NULL, row->ended ? "not known" : *row->how ? row->how : "running");
	}
}

static void add_command_line(struct json *j, const struct process_row *row)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	add_command(&text, row->command, row->command_len, LETTERS_UTF8);
	if (row->command_cut)
		buf_adds(&text, " …");
	clip(&text, 0, COMMAND_COLUMNS, true);
	json_text(j, NULL, text.data, text.len);
	buf_release(&text);
}

/* Names that are parted by NULs. */
static void add_groups(struct json *j, const struct process_row *row)
{
	json_array(j, NULL);
	for (size_t from = 0; row->groups_len && from <= row->groups_len;) {
		size_t n = strnlen(row->groups + from, row->groups_len - from);

		page_text(j, NULL, row->groups + from, n);
		from += n + 1;
	}
	json_end_array(j);
}

/* As the statistics name the user: by UID, but for the one whose name was recorded. */
static void add_user(struct json *j, const struct stats *stats, const struct process_row *row)
{
	const char *name = NULL;
	char uid[32];

	snprintf(uid, sizeof(uid), "%.0f", row->value[PROCESS_UID]);
	for (size_t i = 0; i < stats->nr[STATS_USER]; i++) {
		const char *user = stats->row[STATS_USER][i].name;

		if (!strcmp(user, uid)) {
			name = user;
			break;
		}
		if (user[strspn(user, "0123456789")])
			name = user;
	}
	json_str(j, NULL, isnan(row->value[PROCESS_UID]) ? NULL : name ? name : uid);
}

static void add_row(struct json *j, const struct page_listing *t, size_t i)
{
	const struct process_row *row = &t->s->processes->row[i];
	double offset = t->s->curves->node[row->node].offset_s;

	json_array(j, NULL);
	page_number(j, NULL, row->value[PROCESS_PID]);
	page_number(j, NULL, row->value[PROCESS_PPID]);
	page_text(j, NULL, row->name, row->name_len);
	add_command_line(j, row);
	add_user(j, t->s->stats, row);
	add_groups(j, row);
	json_uint(j, NULL, row->node);
	page_number(j, NULL, row->value[PROCESS_START] + offset);
	page_number(j, NULL, row->value[PROCESS_END] + offset);
	add_ended(j, row);
	json_uint(j, NULL, i);
	for (unsigned k = 0; k < NR_STATS; k++)
		if (t->column[k])
			page_number(j, NULL, t->stats[i] ? t->stats[i]->value[k] : NAN);
	json_end_array(j);
}

void page_processes(struct json *j, const struct analysis *s)
{
	struct page_listing t = {.s = s};

	if (listing_fill(&t) < 0)
		j->out->err = -ENOMEM;
	json_object(j, "processes");
	add_columns(j, &t);
	json_array(j, "rows");
	for (size_t i = 0; i < s->processes->nr && !j->out->err; i++)
		if (t.shown[i])
			add_row(j, &t, i);
	json_end_array(j);
	json_uint(j, "total", s->processes->nr);
	json_uint(j, "shown", t.nr_shown);
	json_end_object(j);
	listing_release(&t);
}
