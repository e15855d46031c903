/* A run in progress as text, a line for each interval: see follow.h. */
#include "text/follow.h"

#include "base/json.h"
#include "text/words.h"

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

static int width_of(const struct series_column *c)
{
	return (int)MAX(strlen(label_of(c->name)), (size_t)VALUE_WIDTH);
}

static void add_heading(
	const struct follow_page *p, const struct series_column *c, size_t nr, struct buf *out)
{
	buf_addf(out, "%*s", TIME_WIDTH, "time");
	if (p->several)
		buf_addf(out, "  %-*s", HOST_WIDTH, "host");
	for (size_t i = 0; i < nr; i++)
		buf_addf(out, "  %*s", width_of(&c[i]), label_of(c[i].name));
	buf_addch(out, '\n');
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

static void print_text(struct follow_page *p, const struct follow_line *line, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(line->series, &c), from;
	char text[UNITS_SIZE];

	if (nr != p->nr_columns || !p->nr_lines || (p->height && p->nr_lines % p->height == 0))
		add_heading(p, c, nr, out);
	p->nr_columns = (unsigned)nr;
	p->nr_lines++;
	buf_addf(out, "%*s", TIME_WIDTH, format_moment(text, (double)line->time_ns / 1e9, 3600));
	if (p->several) {
		const char *host = series_host(line->series);

		buf_adds(out, "  ");
		from = out->len;
		add_text(out, host, strlen(host), p->utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		clip(out, from, HOST_WIDTH, p->utf8);
		pad(out, from, HOST_WIDTH);
	}
	for (size_t i = 0; i < nr; i++)
		buf_addf(out, "  %*s", width_of(&c[i]), format_cell(text, &c[i], line->value[i]));
	buf_addch(out, '\n');
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
