/* The groups of a summary as a small table: a row each, columns as far as the terminal is wide. */
#include "text/page.h"

#include "text/table.h"

#include <math.h>
#include <string.h>

#define GROUPS_SHOWN 24
#define NAME_LEAST 12
#define LIMITS_SHOWN 6 /* groups whose limits are not those of the whole */

enum { GROUP_NAME, GROUP_GPU = 5 };

static const struct text_column group_column[] = {
	{.title = "name"},
	{.title = "procs", .numbers = true, .gap = 1, .width = 6, .look = LOOK_COUNT},
	{.title = "cpu", .numbers = true, .gap = 1, .width = 8, .look = LOOK_SECONDS},
	{.title = "cores", .numbers = true, .gap = 1, .width = 6, .look = LOOK_CORES},
	{.title = "memory", .numbers = true, .gap = 1, .width = 10, .look = LOOK_BYTES},
	[GROUP_GPU] = {.title = "gpu", .numbers = true, .gap = 1, .width = 8, .look = LOOK_SECONDS},
	{.title = "read", .numbers = true, .gap = 1, .width = 9, .look = LOOK_BYTES},
	{.title = "wrote", .numbers = true, .gap = 1, .width = 9, .look = LOOK_BYTES},
};
/* Terminals that are narrower do not have the column. */
static const unsigned terminal[ARRAY_SIZE(group_column)] = {0, 48, 0, 60, 0, 88, 80, 80};

/* Time that GPUs worked for it. */
static double gpu_busy(const struct summary *group)
{
	double busy = NAN;

	for (size_t i = 0; i < group->nr_gpus; i++)
		if (!group->gpu[i].figure[GPU_FIG_JOB_BUSY].why && !group->gpu[i].text[GPU_TEXT_PARENT])
			busy = (isnan(busy) ? 0 : busy) + group->gpu[i].figure[GPU_FIG_JOB_BUSY].value;
	return busy;
}

static void put_figure(struct table_writer *w, const struct page *g, enum figure_id id, bool least)
{
	char mark[8];

	snprintf(mark, sizeof(mark), "%s%s",
		!least			? ""
			: w->style.utf8 ? "≥"
					: ">",
		id == FIG_PSS ? tilde(g, FIG_PSS_ESTIMATED) : "");
	cell_bound(w, mark, has(g, id) ? value(g, id) : NAN);
}

static void put_group(struct table_writer *w, const struct text_table *t, size_t i)
{
	const struct page *p = t->of;
	const struct summary *group = &p->s->group[i];
	const struct page g = {.s = group, .style = p->style};

	cell_text(w, group->name, strlen(group->name));
	put_figure(w, &g, FIG_SEEN, false);
	put_figure(w, &g, FIG_CPU, group->cpu_lower_bound);
	put_figure(w, &g, FIG_MEAN_CORES, false);
	put_figure(w, &g, summary_memory(group), group->memory_lower_bound);
	cell_number(w, gpu_busy(group));
	put_figure(w, &g, FIG_READ_CHARS, group->io_lower_bound);
	put_figure(w, &g, FIG_WRITE_CHARS, group->io_lower_bound);
}

static bool has_gpus(const struct summary *s)
{
	for (size_t i = 0; i < s->nr_groups; i++)
		if (s->group[i].nr_gpus)
			return true;
	return false;
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

/* Of several nodes the whole is their sum, and a group need not be on all. */
static bool differs(const struct page *p, const struct summary *group, enum figure_id id)
{
	return !p->s->nr_nodes && has_figure(group, id) && has(p, id) &&
		group->figure[id].value != value(p, id);
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

/* The label of the summary's line stands before the heading. */
static void print_table(const struct page *p, size_t shown)
{
	struct text_column own[ARRAY_SIZE(group_column)];
	const struct text_table t = {
		.column = own, .nr_columns = ARRAY_SIZE(own), .nr_rows = shown, .row = put_group, .of = p};
	size_t used = LABEL_WIDTH, width = p->style->width;
	struct table_writer w;

	memcpy(own, group_column, sizeof(own));
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++) {
		if (width < terminal[i] || (i == GROUP_GPU && !has_gpus(p->s)))
			own[i].title = NULL;
		used += own[i].title ? own[i].gap + own[i].width : 0;
	}
	own[GROUP_NAME].most = (unsigned)(width > used + NAME_LEAST ? width - used : NAME_LEAST);
	table_begin(&w, &t, &(struct text_style){.utf8 = p->style->utf8}, p->out);
	table_measure(&w);
	buf_adds(p->out, "  ");
	color(p->out, p, "36");
	buf_adds(p->out, "groups");
	color(p->out, p, "0");
	buf_addf(p->out, "%*s", LABEL_WIDTH - 8, "");
	table_heading(&w);
	own[GROUP_NAME].gap = LABEL_WIDTH;
	table_rows(&w);
	table_end(&w);
}

void print_groups(const struct page *p)
{
	size_t shown = MIN(p->s->nr_groups, (size_t)GROUPS_SHOWN);

	if (!has_groups(p->s))
		return;
	print_table(p, shown);
	if (shown < p->s->nr_groups)
		buf_addf(p->out, "%*s(%zu more)\n", LABEL_WIDTH, "", p->s->nr_groups - shown);
	print_limits(p, shown);
}
