/* Parting the rows of a set by what was asked for, and folding their values: the one place that knows what is
 * added to what. An instance that is counted in others is not added to them, and where the source has a fold
 * of its own (an instance called "total") that is taken. */
#include "query/split.h"

#include "base/owned.h"

#include <stdio.h>
#include <string.h>

int split_init(struct split *p, const struct split_query *q, uint32_t set)
{
	*p = (struct split){.q = *q, .set = set, .total = CLASS_NONE};
	/* The whole is there from the start; so are processes that are kept, and the others behind them. */
	if (q->per == PER_ALL || q->per == PER_PROCESS)
		p->nr = q->per == PER_ALL ? 1 : q->nr_keep + 1;
	p->face = calloc(MAX(p->nr, 1u), sizeof(*p->face));
	if (!p->face)
		return -ENOMEM;
	if (q->per == PER_PROCESS)
		p->face[q->nr_keep].others = true;
	return 0;
}

void split_release(struct split *p)
{
	for (uint32_t i = 0; i < p->nr; i++)
		free(p->face[i].name);
	free(p->face);
	free(p->class);
	free(p->groups);
	free(p->active);
	free(p->is_active);
	free(p->member);
	free(p->first_member);
	free(p->moved);
	free(p->is_moved);
	idmap_release(&p->of);
	*p = (struct split){0};
}

static int split_reserve(struct split *p, uint32_t nr)
{
	if (nr <= p->cap)
		return 0;
	if (ARRAY_RESIZE(p->class, nr) < 0 || ARRAY_RESIZE(p->groups, nr) < 0 ||
		ARRAY_RESIZE(p->member, nr) < 0)
		return -ENOMEM;
	for (; p->cap < nr; p->cap++) {
		p->class[p->cap] = CLASS_NONE;
		p->groups[p->cap] = 0;
	}
	return 0;
}

static int face_name(struct class_face *face, const char *name, size_t len)
{
	char *copy;

	if (face->name && face->name_len == len && !memcmp(face->name, name, len))
		return 0;
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, name, len);
	copy[len] = 0;
	free(face->name);
	face->name = copy;
	face->name_len = len;
	return 0;
}

static int face_add(struct split *p)
{
	if (ARRAY_RESIZE(p->face, p->nr + 1) < 0)
		return -ENOMEM;
	p->face[p->nr++] = (struct class_face){0};
	return 0;
}

/* The class of a key that may be new. CLASS_NONE beyond the most. */
static int class_of(struct split *p, uint32_t key, uint32_t *ret)
{
	*ret = idmap_get(&p->of, key);
	if (*ret != IDMAP_NONE)
		return 0;
	*ret = CLASS_NONE;
	if (p->nr >= SPLIT_LINES_MOST) {
		p->nr_left_out++;
		return 0;
	}
	if (idmap_put(&p->of, key, p->nr) < 0 || face_add(p) < 0)
		return -ENOMEM;
	*ret = p->nr - 1;
	return 0;
}

static int class_of_instance(struct split *p, const struct occupant *in, uint32_t id, uint32_t *ret)
{
	int r = class_of(p, id, ret);

	if (r < 0 || *ret == CLASS_NONE)
		return r;
	p->face[*ret].id = id;
	p->face[*ret].seen = true;
	if (!in)
		return face_name(&p->face[*ret], "", 0);
	p->face[*ret].pid = in->pid;
	p->face[*ret].counted_elsewhere = in->counted_elsewhere || in->total;
	return face_name(&p->face[*ret], in->name, in->name_len);
}

static int class_of_user(struct split *p, const struct walk *s, const struct occupant *in, uint32_t *ret)
{
	const struct meta_item *user;
	char text[24];
	int r;

	*ret = CLASS_NONE;
	if (!in || in->uid < 0 || in->uid >= UINT32_MAX - 1)
		return 0;
	r = class_of(p, (uint32_t)in->uid + 1, ret);
	if (r < 0 || *ret == CLASS_NONE)
		return r;
	p->face[*ret].seen = true;
	p->face[*ret].id = (uint32_t)in->uid + 1;
	user = meta_user(&s->meta, in->uid);
	if (user)
		return face_name(&p->face[*ret], user->value, user->len);
	return face_name(&p->face[*ret], text, (size_t)snprintf(text, sizeof(text), "%u", (unsigned)in->uid));
}

static int class_of_process(struct split *p, const struct occupant *in, uint32_t id, uint32_t *ret)
{
	uint32_t process = in ? in->process : id;

	*ret = process ? idmap_get(p->q.keep, process) : IDMAP_NONE;
	if (*ret == IDMAP_NONE)
		*ret = p->q.nr_keep;
	p->face[*ret].seen = true;
	if (*ret == p->q.nr_keep || !in)
		return 0;
	p->face[*ret].id = process;
	p->face[*ret].pid = in->pid;
	return face_name(&p->face[*ret], in->name, in->name_len);
}

static int row_class(struct split *p, const struct walk *s, uint32_t row)
{
	uint32_t id = s->set[p->set].id[row], *class = &p->class[row];
	const struct occupant *in = id == ROW_FREE ? NULL : walk_occupant(s, p->set, row, id);

	*class = CLASS_NONE;
	p->groups[row] = 0;
	if (p->total == row)
		p->total = CLASS_NONE;
	if (id == ROW_FREE || (p->q.group && !(in && in->groups & p->mask)) ||
		(p->q.pid && !(in && in->pid == p->q.pid)))
		return 0;
	if (p->q.per == PER_EACH)
		return class_of_instance(p, in, id, class);
	if (in && in->counted_elsewhere)
		return 0;
	switch (p->q.per) {
	case PER_GROUP:
		p->groups[row] = in ? in->groups & (p->q.group ? p->mask : UINT64_MAX) : 0;
		return 0;
	case PER_USER:
		return class_of_user(p, s, in, class);
	case PER_PROCESS:
		return class_of_process(p, in, id, class);
	default:
		if (in && in->total)
			p->total = row;
		p->face[0].seen = true;
		*class = 0;
		return 0;
	}
}

/* Every group that was heard of has a line, in that order. */
static int take_groups(struct split *p, const struct walk *s)
{
	int r = 0;

	for (uint32_t i = p->nr; p->q.per == PER_GROUP && i < s->group.nr && r >= 0; i++) {
		r = face_add(p);
		if (r < 0)
			break;
		p->face[i].id = i + 1;
		p->face[i].seen = !p->q.group || !strcmp(p->q.group, s->group.item[i].name);
		r = face_name(&p->face[i], s->group.item[i].name, s->group.item[i].len);
	}
	return r;
}

static bool find_group(struct split *p, const struct walk *s)
{
	if (!p->q.group || p->mask)
		return false;
	for (unsigned i = 0; i < s->group.nr; i++)
		if (!strcmp(s->group.item[i].name, p->q.group))
			p->mask = UINT64_C(1) << i;
	return p->mask != 0;
}

static void list_members(struct split *p, uint32_t nr_rows)
{
	uint32_t *first = p->first_member;

	if (!p->nr)
		return;
	memset(first, 0, (p->nr + 2) * sizeof(*first));
	for (uint32_t row = 0; row < nr_rows; row++)
		if (p->class[row] != CLASS_NONE)
			first[p->class[row] + 2]++;
	for (uint32_t i = 0; i < p->nr; i++)
		first[i + 1] += first[i];
	for (uint32_t row = 0; row < nr_rows; row++)
		if (p->class[row] != CLASS_NONE)
			p->member[first[p->class[row] + 1]++] = row;
}

static int find_active(struct split *p, const struct walk *s)
{
	if (p->nr > p->cap_active) {
		if (ARRAY_RESIZE(p->active, p->nr) < 0 || ARRAY_RESIZE(p->is_active, p->nr) < 0 ||
			ARRAY_RESIZE(p->moved, p->nr) < 0 || ARRAY_RESIZE(p->is_moved, p->nr) < 0 ||
			ARRAY_RESIZE(p->first_member, p->nr + 2) < 0)
			return -ENOMEM;
		memset(p->is_moved + p->cap_active, 0, p->nr - p->cap_active);
		p->cap_active = p->nr;
	}
	p->nr_active = 0;
	if (p->nr)
		memset(p->is_active, p->q.per == PER_GROUP, p->nr);
	for (uint32_t i = 0; p->q.per == PER_GROUP && i < p->nr; i++)
		p->active[p->nr_active++] = i;
	for (uint32_t row = 0; row < s->set[p->set].nr_rows; row++) {
		uint32_t class = p->class[row];

		if (class == CLASS_NONE || p->is_active[class])
			continue;
		p->is_active[class] = 1;
		p->active[p->nr_active++] = class;
	}
	list_members(p, s->set[p->set].nr_rows);
	return 0;
}

int split_tick(struct split *p, const struct walk *s)
{
	const struct walk_set *set = &s->set[p->set];
	bool all = find_group(p, s) || !p->begun;
	int r = split_reserve(p, set->cap);

	p->changed = all || set->occupants_changed || (p->q.per == PER_GROUP && p->nr < s->group.nr);
	p->begun = true;
	if (!p->changed || r < 0)
		return r;
	r = take_groups(p, s);
	for (uint32_t row = 0; all && row < set->cap && r >= 0; row++)
		r = row_class(p, s, row);
	for (uint32_t i = 0; !all && i < set->nr_moved && r >= 0; i++)
		if (set->is_moved[set->moved[i]] == MOVED_OCCUPANT)
			r = row_class(p, s, set->moved[i]);
	return r < 0 ? r : find_active(p, s);
}

static void fold_class(const struct split *p, uint32_t class, const double *value, struct fold *fold)
{
	struct fold f = {0};

	for (uint32_t i = p->first_member[class]; i < p->first_member[class + 1]; i++)
		fold_add(&f, value[p->member[i]], false);
	fold[class] = f;
}

static void fold_groups(const struct split *p, uint32_t nr_rows, const double *value, struct fold *fold)
{
	for (uint32_t i = 0; i < p->nr_active; i++)
		fold[p->active[i]] = (struct fold){0};
	for (uint32_t row = 0; row < nr_rows; row++)
		for (uint64_t left = p->groups[row]; left; left &= left - 1)
			fold_add(&fold[__builtin_ctzll(left)], value[row], false);
}

void split_fold(const struct split *p, const struct walk *s, const double *value, struct fold *fold)
{
	if (p->q.per == PER_GROUP) {
		fold_groups(p, s->set[p->set].nr_rows, value, fold);
		return;
	}
	for (uint32_t i = 0; p->total == CLASS_NONE && i < p->nr_active; i++)
		fold_class(p, p->active[i], value, fold);
	if (p->total != CLASS_NONE) {
		fold[0] = (struct fold){0};
		fold_add(&fold[0], value[p->total], true);
	}
}

uint32_t split_fold_rows(struct split *p, const struct walk *s, const double *value, const uint32_t *row,
	uint32_t nr, struct fold *fold, const uint32_t **ret_lines)
{
	uint32_t nr_moved = 0;

	if (p->q.per == PER_GROUP || p->total != CLASS_NONE) {
		split_fold(p, s, value, fold);
		*ret_lines = p->active;
		return p->nr_active;
	}
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t class = p->class[row[i]];

		if (class == CLASS_NONE || p->is_moved[class])
			continue;
		p->is_moved[class] = 1;
		p->moved[nr_moved++] = class;
	}
	for (uint32_t i = 0; i < nr_moved; i++) {
		p->is_moved[p->moved[i]] = 0;
		fold_class(p, p->moved[i], value, fold);
	}
	*ret_lines = p->moved;
	return nr_moved;
}
