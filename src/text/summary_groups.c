/* The groups of a summary as a small table: a row each, columns as far as the terminal is wide. */
#include "text/page.h"

#include "base/str.h"

#include <string.h>

#define GROUPS_SHOWN 24
#define NAME_LEAST 12
#define LIMITS_SHOWN 6 /* groups whose limits are not those of the whole */

enum group_column {
	GROUP_PROCESSES,
	GROUP_CPU,
	GROUP_CORES,
	GROUP_MEMORY,
	GROUP_GPU,
	GROUP_READ,
	GROUP_WROTE,
	NR_GROUP_COLUMNS
};

static const struct {
	const char *heading;
	unsigned width;
	unsigned terminal; /* narrower ones do not have it */
} group_column[NR_GROUP_COLUMNS] = {[GROUP_PROCESSES] = {"procs", 6, 48},
	[GROUP_CPU] = {"cpu", 8, 0},
	[GROUP_CORES] = {"cores", 6, 60},
	[GROUP_MEMORY] = {"memory", 10, 0},
	[GROUP_GPU] = {"gpu", 8, 88}, /* where any group used one */
	[GROUP_READ] = {"read", 9, 80},
	[GROUP_WROTE] = {"wrote", 9, 80}};

/* Time that GPUs worked for it. */
static void gpu_cell(const struct summary *group, struct buf *out)
{
	char text[UNITS_SIZE];
	double busy = 0;
	bool any = false;

	for (size_t i = 0; i < group->nr_gpus; i++)
		if (!group->gpu[i].figure[GPU_FIG_JOB_BUSY].why && !group->gpu[i].text[GPU_TEXT_PARENT]) {
			any = true;
			busy += group->gpu[i].figure[GPU_FIG_JOB_BUSY].value;
		}
	buf_adds(out, any ? format_duration(text, busy) : "-");
}

static bool is_least(const struct summary *group, enum group_column column)
{
	return (column == GROUP_CPU && group->cpu_lower_bound) ||
		(column == GROUP_MEMORY && group->memory_lower_bound) ||
		((column == GROUP_READ || column == GROUP_WROTE) && group->io_lower_bound);
}

static void group_cell(const struct page *g, enum group_column column, struct buf *out)
{
	enum figure_id memory = summary_memory(g->s);
	static const enum figure_id figure[] = {[GROUP_PROCESSES] = FIG_SEEN,
		[GROUP_CPU] = FIG_CPU,
		[GROUP_CORES] = FIG_MEAN_CORES,
		[GROUP_READ] = FIG_READ_CHARS,
		[GROUP_WROTE] = FIG_WRITE_CHARS};
	enum figure_id id = column == GROUP_MEMORY ? memory : figure[column]; /* of GROUP_GPU there is none */
	char text[UNITS_SIZE];

	if (column == GROUP_GPU) {
		gpu_cell(g->s, out);
		return;
	}
	if (!has(g, id)) {
		buf_addch(out, '-');
		return;
	}
	if (is_least(g->s, column))
		buf_adds(out, g->style->utf8 ? "≥" : ">");
	if (column == GROUP_PROCESSES)
		buf_adds(out, format_count(text, value(g, id)));
	else if (column == GROUP_CPU)
		buf_adds(out, format_duration(text, value(g, id)));
	else if (column == GROUP_CORES)
		buf_adds(out, format_cores(text, value(g, id)));
	else if (column == GROUP_MEMORY)
		buf_addf(out, "%s%s", memory == FIG_PSS ? tilde(g, FIG_PSS_ESTIMATED) : "",
			format_bytes(text, value(g, id)));
	else
		buf_adds(out, format_bytes(text, value(g, id)));
}

static bool has_column(const struct page *p, enum group_column column)
{
	if (p->style->width < group_column[column].terminal)
		return false;
	for (size_t i = 0; column == GROUP_GPU && i < p->s->nr_groups; i++)
		if (p->s->group[i].nr_gpus)
			return true;
	return column != GROUP_GPU;
}

/* One row of the table; the heading when there is no group. */
static void print_group(const struct page *p, const struct summary *group, size_t name_width)
{
	struct page g = {.s = group, .style = p->style};
	struct buf cell;
	size_t from;

	if (group)
		buf_addf(p->out, "%*s", LABEL_WIDTH, "");
	from = p->out->len;
	if (group)
		add_text(p->out, group->name, strlen(group->name), letters(p));
	else
		buf_adds(p->out, "name");
	clip(p->out, from, name_width, p->style->utf8);
	pad(p->out, from, name_width);
	for (unsigned i = 0; i < NR_GROUP_COLUMNS; i++) {
		if (!has_column(p, i))
			continue;
		buf_init(&cell, 100);
		if (group)
			group_cell(&g, i, &cell);
		else
			buf_adds(&cell, group_column[i].heading);
		/* The width is in bytes. */
		buf_addf(p->out, " %*s",
			(int)(group_column[i].width + cell.len - utf8_columns((char *)cell.data)),
			(char *)cell.data);
		buf_release(&cell);
	}
	buf_addch(p->out, '\n');
}

/* That the text takes when it is printed. */
static size_t columns_of(const struct page *p, const char *text)
{
	struct buf printed;
	size_t n;

	buf_init(&printed, strlen(text) * 4 + 1);
	add_text(&printed, text, strlen(text), letters(p));
	n = utf8_columns((char *)printed.data);
	buf_release(&printed);
	return n;
}

/* One target that is the whole says nothing new. */
static bool has_groups(const struct summary *s)
{
	if (s->nr_groups != 1)
		return s->nr_groups > 1;
	return !strcmp(s->group[0].kind, "match") ||
		s->group[0].figure[FIG_SEEN].value != s->figure[FIG_SEEN].value;
}

static void add_source(const struct page *p, struct buf *line, const char *source)
{
	if (!source)
		return;
	buf_adds(line, " (");
	add_text(line, source, strlen(source), letters(p));
	buf_addch(line, ')');
}

static bool differs(const struct page *p, const struct summary *group, enum figure_id id)
{
	return has_figure(group, id) && has(p, id) && group->figure[id].value != value(p, id);
}

/* "may use 1 CPU (affinity), 2 GiB (ulimit -v)": what is not as for the whole. */
static void limits_of_group(const struct page *p, const struct summary *group, struct buf *line)
{
	double cpus = group->figure[FIG_LIMIT_CPUS].value;
	char text[UNITS_SIZE];
	bool both = differs(p, group, FIG_LIMIT_CPUS) && differs(p, group, FIG_LIMIT_MEMORY);

	if (differs(p, group, FIG_LIMIT_CPUS)) {
		buf_addf(line, "%s CPU%s", format_number(text, cpus), cpus == 1 ? "" : "s");
		add_source(p, line, group->text[TEXT_CPUS_SOURCE]);
	}
	buf_adds(line, both ? ", " : "");
	if (differs(p, group, FIG_LIMIT_MEMORY)) {
		buf_adds(line, format_bytes(text, group->figure[FIG_LIMIT_MEMORY].value));
		add_source(p, line, group->text[TEXT_MEMORY_SOURCE]);
	}
}

static void print_limits(const struct page *p, size_t shown)
{
	size_t nr = 0, width = p->style->width > 40 ? p->style->width - LABEL_WIDTH : 40;

	for (size_t i = 0; i < shown && nr < LIMITS_SHOWN; i++) {
		const struct summary *group = &p->s->group[i];
		size_t from;

		if (!differs(p, group, FIG_LIMIT_CPUS) && !differs(p, group, FIG_LIMIT_MEMORY))
			continue;
		nr++;
		buf_addf(p->out, "%*s", LABEL_WIDTH, "");
		from = p->out->len;
		add_text(p->out, group->name, strlen(group->name), letters(p));
		clip(p->out, from, width / 3, p->style->utf8);
		buf_adds(p->out, " may use ");
		limits_of_group(p, group, p->out);
		clip(p->out, from, width, p->style->utf8);
		buf_addch(p->out, '\n');
	}
}

void print_groups(const struct page *p)
{
	size_t used = LABEL_WIDTH, longest = 4, shown = MIN(p->s->nr_groups, (size_t)GROUPS_SHOWN), room;

	if (!has_groups(p->s))
		return;
	for (unsigned i = 0; i < NR_GROUP_COLUMNS; i++)
		if (has_column(p, i))
			used += 1 + group_column[i].width;
	for (size_t i = 0; i < shown; i++)
		longest = MAX(longest, columns_of(p, p->s->group[i].name));
	room = p->style->width > used + NAME_LEAST ? p->style->width - used : NAME_LEAST;
	room = MIN(room, longest);
	buf_adds(p->out, "  ");
	color(p->out, p, "36");
	buf_adds(p->out, "groups");
	color(p->out, p, "0");
	buf_addf(p->out, "%*s", LABEL_WIDTH - 8, "");
	print_group(p, NULL, room);
	for (size_t i = 0; i < shown; i++)
		print_group(p, &p->s->group[i], room);
	if (shown < p->s->nr_groups)
		buf_addf(p->out, "%*s(%zu more)\n", LABEL_WIDTH, "", p->s->nr_groups - shown);
	print_limits(p, shown);
}
