/* The groups of a recording side by side: see parts.h. Memory is folded from the rows of processes once for
 * all groups; cores, which count those that have ended, are sums over each. */
#include "top/parts.h"

#include "base/owned.h"
#include "query/column.h"
#include "query/split.h"

#include <math.h>
#include <string.h>

#define NO_GROUP GROUPS_MOST /* the sum in which no process is: what a group was before it appeared */

struct top_parts {
	struct walk *walk;
	struct column memory, cores;
	bool has_memory, has_cores;
	struct rows rows; /* memory */
	struct split split;
	struct fold fold[GROUPS_MOST];
	struct sums sums;
	struct whole *whole[GROUPS_MOST + 1];
	unsigned nr;
	/* Of the walk's tick and of the one before: what was told for it. */
	double now[GROUPS_MOST], before[GROUPS_MOST], busy[GROUPS_MOST + 1];
	float *kept; /* [places][stride][NR_PART_VALUES] */
	size_t places, stride;
};

static int whole_new(struct top_parts *p, unsigned g)
{
	const struct filter nobody = {.of_user = true, .uid = INT64_MIN},
			    of = {.groups = UINT64_C(1) << (g & 63)};

	p->whole[g] = calloc(1, sizeof(*p->whole[g]));
	if (!p->whole[g])
		return -ENOMEM;
	if (g == NO_GROUP)
		return whole_init(p->whole[g], &p->cores, &nobody, &p->sums);
	return whole_go_on(p->whole[g], p->whole[NO_GROUP], &of, &p->sums);
}

int parts_open(struct walk *walk, struct top_parts **ret)
{
	struct top_parts *p;
	int r = 0;

	*ret = NULL;
	if (walk->process_set < 0)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->walk = walk;
	p->has_memory = column_try(&p->memory, walk, "proc.mem.pss_now", false) >= 0 ||
		column_try(&p->memory, walk, "proc.mem.rss", false) >= 0;
	p->has_cores = column_try(&p->cores, walk, "group.cores", false) >= 0 && p->cores.at == AT_FOLD;
	p->has_memory = p->has_memory && p->memory.at == AT_INSTANCE;
	if (p->has_memory) {
		rows_init(&p->rows, &p->memory);
		r = split_init(&p->split, &(struct split_query){.per = PER_GROUP}, p->memory.set);
	}
	if (r >= 0 && p->has_cores)
		r = whole_new(p, NO_GROUP);
	*ret = p;
	return r;
}

void parts_close(struct top_parts *p)
{
	if (!p)
		return;
	if (p->has_memory) {
		rows_release(&p->rows);
		split_release(&p->split);
	}
	for (unsigned i = 0; i <= GROUPS_MOST; i++)
		free(p->whole[i]);
	sums_release(&p->sums);
	free(p->kept);
	free(p);
}

static int more_groups(struct top_parts *p)
{
	int r = 0;

	for (; p->nr < p->walk->group.nr && r >= 0; p->nr++) {
		p->now[p->nr] = p->before[p->nr] = p->busy[p->nr] = NAN;
		if (p->has_cores)
			r = whole_new(p, p->nr);
	}
	return r;
}

int parts_tick(struct top_parts *p)
{
	int r = more_groups(p);

	if (r >= 0)
		r = sums_tick(&p->sums, p->walk);
	for (unsigned g = 0; r >= 0 && g <= NO_GROUP; g++)
		if (p->whole[g])
			whole_tick(p->whole[g], p->walk, &p->busy[g]);
	memcpy(p->before, p->now, sizeof(p->before));
	if (r >= 0 && p->has_memory)
		r = rows_tick(&p->rows, p->walk, ROWS_ALL);
	if (r >= 0 && p->has_memory)
		r = split_tick(&p->split, p->walk);
	if (r < 0 || !p->has_memory)
		return r;
	split_fold(&p->split, p->walk, p->rows.value, p->fold);
	for (unsigned g = 0; g < MIN(p->nr, p->split.nr); g++)
		p->now[g] = p->fold[g].alive ? fold_end(&p->fold[g], p->memory.fold) : NAN;
	return 0;
}

static int make_room(struct top_parts *p, size_t places)
{
	size_t stride = MAX(p->stride, (size_t)2);
	float *more;

	while (stride < p->nr)
		stride *= 2;
	if (places <= p->places && stride == p->stride)
		return 0;
	more = reallocarray(NULL, places, stride * NR_PART_VALUES * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < places * stride * NR_PART_VALUES; i++)
		more[i] = NAN;
	for (size_t i = 0; i < MIN(p->places, places); i++)
		memcpy(more + i * stride * NR_PART_VALUES, p->kept + i * p->stride * NR_PART_VALUES,
			p->stride * NR_PART_VALUES * sizeof(*more));
	free(p->kept);
	p->kept = more;
	p->places = places;
	p->stride = stride;
	return 0;
}

int parts_take(struct top_parts *p, ptrdiff_t place, size_t places, int64_t time_ns)
{
	bool last = time_ns == p->walk->time_ns;
	int r = p->nr ? make_room(p, places) : 0;

	for (unsigned g = 0; r >= 0 && g < p->nr; g++) {
		float *to = p->kept + ((size_t)place * p->stride + g) * NR_PART_VALUES;

		if (last && p->has_cores)
			whole_end(p->whole[g], &p->busy[g]);
		to[PART_CORES] = (float)p->busy[g];
		to[PART_MEMORY] = (float)(last ? p->now[g] : p->before[g]);
	}
	for (size_t g = p->nr; r >= 0 && p->kept && g < p->stride; g++)
		for (unsigned k = 0; k < NR_PART_VALUES; k++)
			p->kept[((size_t)place * p->stride + g) * NR_PART_VALUES + k] = NAN;
	return r;
}

unsigned parts_nr(const struct top_parts *p)
{
	return p ? p->nr : 0;
}

const char *parts_name(const struct top_parts *p, unsigned group)
{
	return p->walk->group.item[group].name;
}

bool part_is_rank(const char *name)
{
	return !strncmp(name, "rank ", 5) && name[5] && strspn(name + 5, "0123456789") == strlen(name + 5);
}

double parts_value(const struct top_parts *p, ptrdiff_t place, unsigned group, enum part_value which)
{
	if (group >= p->stride || (size_t)place >= p->places)
		return NAN;
	return p->kept[((size_t)place * p->stride + group) * NR_PART_VALUES + which];
}
