/* Few rows stand side by side, with all that is known of them: a run and its groups are compared line by
 * line. Many rows are a table with the columns that matter most; the rest is in CSV and JSON. */
#include "text/stats.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TITLE_WIDTH 20
#define CELL_WIDTH 12
#define NAME_WIDTH 24
#define SIDE_MOST 8

const char *const stats_level_names[NR_STATS_LEVELS + 1] = {"run", "node", "group", "user", "process", NULL};

static const char *const level_title[NR_STATS_LEVELS] = {"Run", "Nodes", "Groups", "Users", "Processes"};
static const char *const level_list[NR_STATS_LEVELS] = {"run", "nodes", "groups", "users", "processes"};

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

/* ---- for people ---- */

/* "1.5 GiB", "42s", "1,234"; "-" when not known. */
static const char *stats_value(
	char out[static UNITS_SIZE], const struct stats_column *c, double value, double length_s)
{
	char number[UNITS_SIZE];

	if (isnan(value))
		return "-";
	if (c->moment)
		return format_moment(out, value, length_s);
	switch (c->unit) {
	case UNIT_BYTES:
		format_bytes(number, value);
		snprintf(out, UNITS_SIZE, "%.30s%s", number, c->per_second ? "/s" : "");
		return out;
	case UNIT_SECONDS:
		return format_duration(out, value);
	case UNIT_RATIO:
		snprintf(out, UNITS_SIZE, "%.30s %%", format_number(number, 100 * value));
		return out;
	case UNIT_JOULES:
		return format_si(out, value, "J");
	case UNIT_WATTS:
		return format_si(out, value, "W");
	default:
		return c->whole ? format_count(out, value) : format_number(out, value);
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

static void add_name(
	struct buf *out, const struct stats_row *row, size_t width, const struct stats_page *page)
{
	size_t from = out->len;

	/* It is escaped already: only what the terminal cannot show is left to do. */
	for (const char *p = row->name; *p; p++)
		if (page->utf8 || (unsigned char)*p < 0x80)
			buf_addch(out, *p);
		else
			buf_addf(out, "\\x%02x", (unsigned char)*p);
	clip(out, from, width, page->utf8);
}

static void add_right(struct buf *out, const char *text, size_t width)
{
	size_t columns = utf8_columns(text);

	for (; columns < width; columns++)
		buf_addch(out, ' ');
	buf_adds(out, text);
}

static void add_title(struct buf *out, const char *title, const struct stats_page *page)
{
	buf_addf(out, page->color ? "\033[1m%s\033[m" : "%s", title);
}

/* A line for each column, the rows side by side. */
static void print_side_by_side(
	const struct stats *s, enum stats_level level, const struct stats_page *page, struct buf *out)
{
	size_t nr = s->nr[level];
	char text[UNITS_SIZE];

	add_title(out, level_title[level], page);
	for (size_t n = strlen(level_title[level]); level != STATS_RUN && n < TITLE_WIDTH; n++)
		buf_addch(out, ' ');
	for (size_t i = 0; level != STATS_RUN && i < nr; i++) {
		struct buf name;

		buf_init(&name, 1 << 16);
		add_name(&name, &s->row[level][i], CELL_WIDTH - 1, page);
		add_right(out, (char *)name.data, CELL_WIDTH);
		buf_release(&name);
	}
	buf_addch(out, '\n');
	for (unsigned k = 0; k < NR_STATS; k++) {
		if (!is_known(s, level, nr, k))
			continue;
		buf_addf(out, "  %-*s", TITLE_WIDTH - 2, stats_column[k].title);
		for (size_t i = 0; i < nr; i++)
			add_right(out,
				stats_value(
					text, &stats_column[k], s->row[level][i].value[k], page->length_s),
				CELL_WIDTH);
		buf_addch(out, '\n');
	}
}

static void print_table(const struct stats *s, const struct process_table *t, enum stats_level level,
	const struct stats_page *page, struct buf *out)
{
	size_t nr = rows_shown(s, page, level), from;
	bool known[ARRAY_SIZE(headline)], hosts = level == STATS_PROCESS && t->nr_hosts > 1;
	char text[UNITS_SIZE];

	add_title(out, level_title[level], page);
	buf_addch(out, '\n');
	from = out->len;
	for (size_t k = 0; k < ARRAY_SIZE(headline); k++) {
		known[k] = is_known(s, level, nr, headline[k].stat);
		if (known[k])
			buf_addf(out, "%*s", CELL_WIDTH - 2, headline[k].heading);
	}
	buf_addf(out, "%s%s  NAME", level == STATS_PROCESS ? "       PID" : "", hosts ? "  HOST" : "");
	if (page->width)
		clip(out, from, page->width, page->utf8);
	buf_addch(out, '\n');
	for (size_t i = 0; i < nr; i++) {
		const struct stats_row *row = &s->row[level][i];

		from = out->len;
		for (size_t k = 0; k < ARRAY_SIZE(headline); k++)
			if (known[k])
				add_right(out,
					stats_value(text, &stats_column[headline[k].stat],
						row->value[headline[k].stat], page->length_s),
					CELL_WIDTH - 2);
		if (level == STATS_PROCESS)
			buf_addf(out, "%10.0f", t->row[row->process].value[PROCESS_PID]);
		if (hosts) {
			buf_adds(out, "  ");
			add_text(out, t->host[row->node], strlen(t->host[row->node]),
				page->utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		}
		buf_adds(out, "  ");
		add_name(out, row, page->width ? page->width : NAME_WIDTH * 4, page);
		if (page->width)
			clip(out, from, page->width, page->utf8);
		buf_addch(out, '\n');
	}
	if (nr < s->nr[level])
		buf_addf(out, "(%zu more)\n", s->nr[level] - nr);
}

void stats_print(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out)
{
	size_t side = page->width ? MAX(page->width, TITLE_WIDTH + CELL_WIDTH) - TITLE_WIDTH : 1000;
	bool first = true;

	for (unsigned level = 0; level < NR_STATS_LEVELS; level++) {
		if (!(page->levels >> level & 1) || !s->nr[level])
			continue;
		if (!first)
			buf_addch(out, '\n');
		first = false;
		if (level != STATS_PROCESS && s->nr[level] <= MIN(SIDE_MOST, side / CELL_WIDTH))
			print_side_by_side(s, level, page, out);
		else
			print_table(s, t, level, page, out);
	}
}

/* ---- for programs ---- */

/* The bytes of a name, as recorded; for CSV and JSON, which escape in their own way. */
static void raw_name(const struct stats_row *row, struct buf *out)
{
	buf_init(out, strlen(row->name) + 1);
	unescape_bytes(out, row->name, strlen(row->name));
}

static bool has_host(enum stats_level level)
{
	return level == STATS_NODE || level == STATS_PROCESS;
}

void stats_write_csv(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out)
{
	buf_adds(out, "level,name,host,pid");
	for (unsigned k = 0; k < NR_STATS; k++)
		buf_addf(out, ",%s", stats_column[k].name);
	buf_addch(out, '\n');
	for (unsigned level = 0; level < NR_STATS_LEVELS; level++) {
		size_t nr = page->levels >> level & 1 ? rows_shown(s, page, level) : 0;

		for (size_t i = 0; i < nr; i++) {
			const struct stats_row *row = &s->row[level][i];
			const char *host = has_host(level) ? t->host[row->node] : "";
			struct buf name;

			raw_name(row, &name);
			buf_addf(out, "%s,", stats_level_names[level]);
			add_csv(out, (char *)name.data, name.len);
			buf_release(&name);
			buf_addch(out, ',');
			if (*host)
				add_csv(out, host, strlen(host));
			buf_addch(out, ',');
			if (level == STATS_PROCESS)
				add_csv_number(out, t->row[row->process].value[PROCESS_PID]);
			for (unsigned k = 0; k < NR_STATS; k++) {
				buf_addch(out, ',');
				add_csv_number(out, row->value[k]);
			}
			buf_addch(out, '\n');
		}
	}
}

/* The values of a row by name, into an object that is open. */
static void stats_row_json(struct json *j, const struct stats_row *row, enum stats_level level)
{
	for (unsigned k = 0; k < NR_STATS; k++) {
		const struct stats_column *c = &stats_column[k];

		if (!stats_column_is_of(c, level))
			continue;
		if (c->whole && fabs(row->value[k]) < 9e15)
			json_int(j, c->name, round_i64(row->value[k]));
		else
			json_num(j, c->name, row->value[k]);
	}
}

static void json_row(struct json *j, const struct stats_row *row, enum stats_level level,
	const struct process_table *t, const char *key)
{
	struct buf name;

	raw_name(row, &name);
	json_object(j, key);
	if (level != STATS_RUN)
		json_bytes(j, "name", name.data, name.len);
	buf_release(&name);
	if (has_host(level))
		json_name(j, "host", t->host[row->node]);
	if (level == STATS_PROCESS && !isnan(t->row[row->process].value[PROCESS_PID]))
		json_int(j, "pid", round_i64(t->row[row->process].value[PROCESS_PID]));
	stats_row_json(j, row, level);
	json_end_object(j);
}

void stats_write_json(
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
		if (!(page->levels >> level & 1))
			continue;
		if (level == STATS_RUN) {
			json_row(&j, &s->row[level][0], level, t, level_list[level]);
			continue;
		}
		json_array(&j, level_list[level]);
		for (size_t i = 0; i < rows_shown(s, page, level); i++)
			json_row(&j, &s->row[level][i], level, t, NULL);
		json_end_array(&j);
	}
	json_end_object(&j);
	buf_addch(out, '\n');
}
