/* Few rows stand side by side, with all that is known of them: a run and its groups are compared line by
 * line. Many rows are a table with the columns that matter most; the rest is in CSV and JSON. */
#include "text/stats.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define TITLE_WIDTH 20
#define CELL_WIDTH 12
#define NAME_SIZE 64 /* of CELL_WIDTH letters */
#define SIDE_MOST 8

const char *const stats_level_names[NR_STATS_LEVELS + 1] = {
	"run", "node", "group", "user", "phase", "process", NULL};

static const char *const level_title[NR_STATS_LEVELS] = {
	"Run", "Nodes", "Groups", "Users", "Phases", "Processes"};
static const char *const level_list[NR_STATS_LEVELS] = {
	"run", "nodes", "groups", "users", "phases", "processes"};

/* Of a table with many rows. */
static const struct {
	enum stats_id stat;
	const char *heading;
} headline[] = {
	{STAT_INSTANCES, "PROCS"},
	{STAT_DURATION, "DURATION"},
	{STAT_CPU, "CPU"},
	{STAT_CORES_MEAN, "CORES"},
	{STAT_CORES_PEAK, "PEAK"},
	{STAT_CORES_ONE_PEAK, "ONE PEAK"},
	{STAT_RSS_PEAK, "RSS PEAK"},
	{STAT_RSS_ONE_PEAK, "OF ONE"},
	{STAT_PSS_PEAK, "PSS PEAK"},
	{STAT_USS_PEAK, "USS PEAK"},
	{STAT_READ_CHARS, "READ"},
	{STAT_WRITE_CHARS, "WRITTEN"},
	{STAT_GPU_MEMORY_PEAK, "GPU MEM"},
};

/* Does this column mean something for rows of that level? */
static bool stats_column_is_of(const struct stats_column *c, enum stats_level level)
{
	if (level == STATS_PROCESS)
		return c->of_processes;
	return level == STATS_GROUP || level == STATS_USER ? c->of_groups : c->of_nodes;
}

static enum number_look look_of(const struct stats_column *c)
{
	if (c->moment)
		return LOOK_MOMENT;
	switch (c->unit) {
	case UNIT_BYTES:
		return c->per_second ? LOOK_RATE : LOOK_BYTES;
	case UNIT_SECONDS:
		return LOOK_SECONDS;
	case UNIT_RATIO:
		return LOOK_PERCENT;
	case UNIT_JOULES:
		return LOOK_JOULES;
	case UNIT_WATTS:
		return LOOK_WATTS;
	default:
		return c->whole ? LOOK_COUNT : LOOK_DIGITS;
	}
}

static size_t rows_shown(const struct stats *s, const struct stats_page *page, enum stats_level level)
{
	return level == STATS_PROCESS && page->limit ? MIN(page->limit, s->nr[level]) : s->nr[level];
}

static bool is_known(const struct stats *s, enum stats_level level, size_t nr, enum stats_id stat)
{
	for (size_t i = 0; stats_column_is_of(&stats_column[stat], level) && i < nr; i++)
		if (!isnan(s->row[level][i].value[stat]))
			return true;
	return false;
}

/* What the tables' rows are made of. */
struct stats_rows {
	const struct stats *s;
	const struct process_table *t;
	const struct stats_page *page;
	enum stats_level level; /* of CSV: NR_STATS_LEVELS, all that are wanted */
	enum stats_id stat[NR_STATS];
	size_t nr_stats;
};

/* ---- a line for each statistic, the rows side by side ---- */

static void put_statistic(struct table_writer *w, const struct text_table *t, size_t i)
{
	const struct stats_rows *r = t->of;
	enum stats_id stat = r->stat[i];
	char text[UNITS_SIZE + 2];

	snprintf(text, sizeof(text), "  %.30s", stats_column[stat].title);
	cell_words(w, text);
	for (size_t k = 0; k < r->s->nr[r->level]; k++)
		cell_words(w,
			format_look(text, look_of(&stats_column[stat]), r->s->row[r->level][k].value[stat],
				r->page->length_s));
}

static void print_side_by_side(struct stats_rows *r, struct buf *out)
{
	struct text_column column[1 + SIDE_MOST] = {{.title = level_title[r->level], .width = TITLE_WIDTH}};
	struct text_table t = {
		.column = column, .nr_columns = 1 + r->s->nr[r->level], .row = put_statistic, .of = r};
	char name[SIDE_MOST][NAME_SIZE];
	struct buf text;

	for (unsigned k = 0; k < NR_STATS; k++)
		if (is_known(r->s, r->level, r->s->nr[r->level], k))
			r->stat[t.nr_rows++] = k;
	for (size_t i = 0; i < r->s->nr[r->level]; i++) {
		buf_init(&text, 1 << 16);
		if (r->level != STATS_RUN)
			add_letters(&text, r->s->row[r->level][i].name, r->page->style.utf8);
		clip(&text, 0, CELL_WIDTH - 1, r->page->style.utf8);
		snprintf(name[i], NAME_SIZE, "%s", (char *)text.data);
		buf_release(&text);
		column[1 + i] = (struct text_column){.title = name[i], .numbers = true, .width = CELL_WIDTH};
	}
	table_write(
		&t, &(struct text_style){.utf8 = r->page->style.utf8, .color = r->page->style.color}, out);
}

/* ---- a line for each row, the statistics side by side ---- */

static bool has_host(enum stats_level level)
{
	return level == STATS_NODE || level == STATS_PROCESS;
}

static void put_row(struct table_writer *w, const struct text_table *t, size_t i)
{
	const struct stats_rows *r = t->of;
	enum stats_level level = r->level;
	const struct stats_row *row;
	const char *host;
	struct buf *name;

	if (level == NR_STATS_LEVELS)
		for (level = 0; !(r->page->levels >> level & 1) || i >= rows_shown(r->s, r->page, level);
			level++)
			i -= r->page->levels >> level & 1 ? rows_shown(r->s, r->page, level) : 0;
	row = &r->s->row[level][i];
	host = has_host(level) ? r->t->host[row->node] : NULL;
	if (host && !*host && w->style.form == FORM_CSV)
		host = NULL;
	cell_words(w, stats_level_names[level]);
	name = cell_open(w);
	if (name) {
		/* The bytes as recorded: CSV and JSON escape in their own way. */
		unescape_bytes(name, row->name, strlen(row->name));
		cell_close(w, true);
	}
	cell_text(w, host, host ? strlen(host) : 0);
	cell_number(w, level == STATS_PROCESS ? r->t->row[row->process].value[PROCESS_PID] : NAN);
	for (size_t k = 0; k < r->nr_stats; k++)
		cell_number(w, row->value[r->stat[k]]);
	cell_number(w, level == STATS_PROCESS ? r->t->row[row->process].value[PROCESS_PID] : NAN);
	cell_text(w, host, host ? strlen(host) : 0);
	name = cell_open(w);
	if (name) {
		add_letters(name, row->name, w->style.utf8);
		cell_close(w, true);
	}
}

/* Columns of programs, the statistics, columns of people. */
enum { BEFORE = 4, AFTER = 3, MOST_COLUMNS = BEFORE + NR_STATS + AFTER };

static struct text_table make_table(
	const struct stats_rows *r, struct text_column column[static MOST_COLUMNS])
{
	bool all = r->level == NR_STATS_LEVELS, processes = r->level == STATS_PROCESS;
	struct text_column *c = column;

	*c++ = (struct text_column){.name = all ? "level" : NULL};
	*c++ = (struct text_column){.name = r->level != STATS_RUN ? "name" : NULL};
	*c++ = (struct text_column){.name = all || has_host(r->level) ? "host" : NULL};
	*c++ = (struct text_column){.name = all || processes ? "pid" : NULL, .whole = true};
	for (size_t k = 0; k < r->nr_stats; k++)
		*c++ = (struct text_column){.name = stats_column[r->stat[k]].name,
			.look = look_of(&stats_column[r->stat[k]]),
			.whole = stats_column[r->stat[k]].whole,
			.numbers = true,
			.gap = 1,
			.width = CELL_WIDTH - 3,
			.length_s = r->page->length_s};
	*c++ = (struct text_column){.title = processes ? "PID" : NULL,
		.look = LOOK_CODE,
		.numbers = true,
		.gap = 1,
		.width = CELL_WIDTH - 3};
	*c++ = (struct text_column){.title = processes && r->t->nr_hosts > 1 ? "HOST" : NULL, .gap = 2};
	*c++ = (struct text_column){.title = "NAME", .gap = 2, .width = 1};
	return (struct text_table){
		.column = column, .nr_columns = (size_t)(c - column), .row = put_row, .of = r};
}

static void print_table(struct stats_rows *r, struct buf *out)
{
	struct text_column column[MOST_COLUMNS];
	size_t nr = rows_shown(r->s, r->page, r->level), heading[ARRAY_SIZE(headline)];
	struct text_table t;

	for (size_t k = 0; k < ARRAY_SIZE(headline); k++)
		if (is_known(r->s, r->level, nr, headline[k].stat)) {
			heading[r->nr_stats] = k;
			r->stat[r->nr_stats++] = headline[k].stat;
		}
	t = make_table(r, column);
	t.nr_rows = nr;
	for (size_t k = 0; k < r->nr_stats; k++)
		column[BEFORE + k].title = headline[heading[k]].heading;
	buf_addf(out, r->page->style.color ? "\033[1m%s\033[0m\n" : "%s\n", level_title[r->level]);
	table_write(&t, &r->page->style, out);
	if (nr < r->s->nr[r->level])
		buf_addf(out, "(%zu more)\n", r->s->nr[r->level] - nr);
}

static void print_text(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out)
{
	unsigned width = page->style.width;
	size_t side = width ? MAX(width, TITLE_WIDTH + CELL_WIDTH) - TITLE_WIDTH : 1000;
	bool first = true;

	for (unsigned level = 0; level < NR_STATS_LEVELS; level++) {
		struct stats_rows r = {.s = s, .t = t, .page = page, .level = level};

		if (!(page->levels >> level & 1) || !s->nr[level])
			continue;
		if (!first)
			buf_addch(out, '\n');
		first = false;
		if (level != STATS_PROCESS && s->nr[level] <= MIN(SIDE_MOST, side / CELL_WIDTH))
			print_side_by_side(&r, out);
		else
			print_table(&r, out);
	}
}

/* ---- for programs ---- */

static void write_csv(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out)
{
	struct stats_rows r = {.s = s, .t = t, .page = page, .level = NR_STATS_LEVELS};
	struct text_column column[MOST_COLUMNS];
	struct text_table table;

	while (r.nr_stats < NR_STATS) {
		r.stat[r.nr_stats] = (enum stats_id)r.nr_stats;
		r.nr_stats++;
	}
	table = make_table(&r, column);
	for (unsigned level = 0; level < NR_STATS_LEVELS; level++)
		table.nr_rows += page->levels >> level & 1 ? rows_shown(s, page, level) : 0;
	table_write(&table, &page->style, out);
}

static void json_level(struct json *j, struct stats_rows *r)
{
	bool list = r->level != STATS_RUN;
	struct text_column column[MOST_COLUMNS];
	struct text_table t;

	for (unsigned k = 0; k < NR_STATS; k++)
		if (stats_column_is_of(&stats_column[k], r->level))
			r->stat[r->nr_stats++] = k;
	t = make_table(r, column);
	t.nr_rows = rows_shown(r->s, r->page, r->level);
	if (list)
		json_array(j, level_list[r->level]);
	table_json(&t, j, list ? NULL : level_list[r->level]);
	if (list)
		json_end_array(j);
}

static void write_json(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_object(&j, "columns");
	for (unsigned k = 0; k < NR_STATS; k++) {
		char unit[UNITS_SIZE];

		json_object(&j, stats_column[k].name);
		json_str(&j, "title", stats_column[k].title);
		json_str(&j, "help", stats_column[k].help);
		snprintf(unit, sizeof(unit), "%s%s", unit_name(stats_column[k].unit),
			stats_column[k].per_second ? "/s" : "");
		json_str(&j, "unit", unit);
		json_end_object(&j);
	}
	json_end_object(&j);
	for (unsigned level = 0; level < NR_STATS_LEVELS; level++) {
		struct stats_rows r = {.s = s, .t = t, .page = page, .level = level};

		/* Few jobs tell of phases. */
		if (level == STATS_PHASE && !s->nr[level] && page->levels != 1u << level)
			continue;
		if (page->levels >> level & 1)
			json_level(&j, &r);
	}
	json_end_object(&j);
	buf_addch(out, '\n');
}

void stats_write(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out)
{
	if (page->style.form == FORM_JSON)
		write_json(s, t, page, out);
	else if (page->style.form == FORM_CSV)
		write_csv(s, t, page, out);
	else
		print_text(s, t, page, out);
}
