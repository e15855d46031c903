/* The groups of one recording by name, and a bit for each: the groups of a process are one mask. */
#ifndef QUERY_GROUPS_H
#define QUERY_GROUPS_H

#include "base/pairs.h"

#define GROUPS_MOST 64

struct groups {
	struct group_name {
		char *name; /* any bytes but NUL; has a terminator */
		size_t len;
	} item[GROUPS_MOST];
	unsigned nr;
	bool left_out; /* there were more than we can count */
};

/* The group's index; it is made when it is new. -ENOSPC, -ENOMEM, -EINVAL for an empty name. */
int groups_index(struct groups *g, const char *name, size_t len);
/* Names parted by NULs, as recordings hold them; NULL is none. -ENOMEM. */
int groups_mask(struct groups *g, const struct pair *names, uint64_t *ret_mask);
/* Is this name among the names? */
bool groups_hold(const struct pair *names, const char *name);
void groups_release(struct groups *g);
#endif
