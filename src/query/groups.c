/* A list that is searched from its beginning: there are a handful of groups, and they are looked up when a
 * process joins, not at every tick. */
#include "query/groups.h"

#include <stdlib.h>
#include <string.h>

static bool same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && !memcmp(a, b, a_len);
}

static int groups_find(const struct groups *g, const char *name, size_t len)
{
	for (unsigned i = 0; i < g->nr; i++)
		if (same(g->item[i].name, g->item[i].len, name, len))
			return (int)i;
	return -ENOENT;
}

int groups_index(struct groups *g, const char *name, size_t len)
{
	char *copy;
	int i;

	if (!len || memchr(name, 0, len))
		return -EINVAL;
	i = groups_find(g, name, len);
	if (i >= 0)
		return i;
	if (g->nr == GROUPS_MOST) {
		g->left_out = true;
		return -ENOSPC;
	}
	copy = strndup(name, len);
	if (!copy)
		return -ENOMEM;
	g->item[g->nr] = (struct group_name){.name = copy, .len = len};
	return (int)g->nr++;
}

/* Cuts the next name off; false when there are no more. */
static bool name_next(const char **at, size_t *left, const char **ret, size_t *ret_len)
{
	if (!*left)
		return false;
	*ret = *at;
	*ret_len = strnlen(*at, *left);
	*at += MIN(*ret_len + 1, *left);
	*left -= MIN(*ret_len + 1, *left);
	return true;
}

int groups_mask(struct groups *g, const struct pair *names, uint64_t *ret_mask)
{
	const char *at = names ? names->value : NULL, *name;
	size_t left = names ? names->len : 0, len;

	*ret_mask = 0;
	while (name_next(&at, &left, &name, &len)) {
		int i = groups_index(g, name, len);

		if (i == -ENOMEM)
			return i;
		if (i >= 0)
			*ret_mask |= UINT64_C(1) << i;
	}
	return 0;
}

bool groups_hold(const struct pair *names, const char *name)
{
	const char *at = names ? names->value : NULL, *one;
	size_t left = names ? names->len : 0, len;

	while (name_next(&at, &left, &one, &len))
		if (same(one, len, name, strlen(name)))
			return true;
	return false;
}

void groups_release(struct groups *g)
{
	for (unsigned i = 0; i < g->nr; i++)
		free(g->item[i].name);
	*g = (struct groups){0};
}
