/* A run in progress as text, a line for each interval: see follow.h. */
#include "text/follow.h"

#include "base/json.h"
#include "text/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TIME_WIDTH 10
#define HOST_WIDTH 16
#define VALUE_WIDTH 11

const char *const follow_metrics[] = {"tree.cores", "proc.mem.pss_now", "tree.processes", "tree.io.read_rate",
	"tree.io.write_rate", "gpu.util", "gpu.memory.used"};
const size_t nr_follow_metrics = ARRAY_SIZE(follow_metrics);

static const char *label_of(const char *metric)
{
	static const char *const label[ARRAY_SIZE(follow_metrics)] = {
		"cores", "memory", "processes", "read", "write", "GPU busy", "GPU memory"};

	for (size_t i = 0; i < ARRAY_SIZE(follow_metrics); i++)
		if (!strcmp(metric, follow_metrics[i]))
			return label[i];
	return metric;
}

static char *format_cell(char out[static UNITS_SIZE], const struct series_column *c, double value)
{
	char number[UNITS_SIZE];

	if (isnan(value))
		snprintf(out, UNITS_SIZE, "-");
	else if (c->unit == UNIT_BYTES)
		snprintf(out, UNITS_SIZE, "%.20s%s", format_bytes(number, value), c->per_second ? "/s" : "");
	else if (c->unit == UNIT_RATIO)
		snprintf(out, UNITS_SIZE, "%.0f %%", value * 100);
	else if (!strcmp(c->name, "tree.cores"))
		format_cores(out, value);
	else if (value == floor(value) && fabs(value) < 1e15)
		format_count(out, value);
	else
		format_number(out, value);
	return out;
}

/* "0m01.5s": lines may be less than a second apart. */
static char *format_time(char out[static UNITS_SIZE], int64_t time_ns)
{
	long long tenths = time_ns / (NSEC_PER_SEC / 10), minutes = tenths / 600;

	if (minutes < 60)
		snprintf(out, UNITS_SIZE, "%lldm%02lld.%llds", minutes, tenths / 10 % 60, tenths % 10);
	else
		snprintf(out, UNITS_SIZE, "%lldh%02lldm%02lld.%llds", minutes / 60, minutes % 60,
			tenths / 10 % 60, tenths % 10);
	return out;
}

static void print_text(struct follow_page *p, const struct follow_line *line, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(line->series, &c);
	const char *host = series_host(line->series);
	struct text_column column[2 + SERIES_MAX] = {{.title = "time", .numbers = true, .width = TIME_WIDTH},
		{.title = p->several ? "host" : NULL, .gap = 2, .width = HOST_WIDTH}};
	const struct text_table t = {.column = column, .nr_columns = 2 + nr};
	char text[UNITS_SIZE];
	struct table_writer w;

	for (size_t i = 0; i < nr; i++)
		column[2 + i] = (struct text_column){.title = label_of(c[i].name),
			.numbers = true,
			.gap = 2,
			.width = (unsigned)MAX(strlen(label_of(c[i].name)), (size_t)VALUE_WIDTH)};
	table_begin(&w, &t, &(struct text_style){.utf8 = p->utf8}, out);
	if (nr != p->nr_columns || !p->nr_lines || (p->height && p->nr_lines % p->height == 0))
		table_heading(&w);
	p->nr_columns = (unsigned)nr;
	p->nr_lines++;
	table_begin_row(&w);
	cell_words(&w, format_time(text, line->time_ns));
	cell_text(&w, host, strlen(host));
	for (size_t i = 0; i < nr; i++)
		cell_words(&w, format_cell(text, &c[i], line->value[i]));
	table_end_row(&w);
	table_end(&w);
}

static void print_json(const struct follow_line *line, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(line->series, &c);
	int64_t wall;
	char text[UNITS_SIZE];
	struct json j;

	json_init(&j, out, false);
	json_object(&j, NULL);
	json_name(&j, "host", series_host(line->series));
	json_num(&j, "time_s", (double)line->time_ns / 1e9);
	if (series_start(line->series) > 0 &&
		!__builtin_add_overflow(series_start(line->series), line->time_ns, &wall))
		json_str(&j, "time", format_iso8601(text, wall));
	else
		json_null(&j, "time");
	for (size_t i = 0; i < nr; i++)
		json_num(&j, c[i].name, line->value[i]);
	json_end_object(&j);
	buf_addch(out, '\n');
}

void follow_print(struct follow_page *p, const struct follow_line *line, struct buf *out)
{
	if (p->json)
		print_json(line, out);
	else
		print_text(p, line, out);
}
