/* Names of the nodes of a job: lists as batch systems write them, each name once, in their order.
 *
 * The text is hostile: names become words of command lines and parts of paths, so that only letters, digits,
 * dots, hyphens and underscores are taken, and none that begins with a hyphen or a dot. */
#ifndef NODE_HOST_LIST_H
#define NODE_HOST_LIST_H

#include "base/idmap.h"

#define HOSTS_MOST 65536
#define HOST_NAME_SIZE 256

struct host_list {
	char **name;
	size_t nr;
	struct idmap by_hash;
};

void host_list_release(struct host_list *h);
bool host_name_valid(const char *name, size_t len);
/* 0, also when it is there already; -EINVAL: no name of a host; -E2BIG: more than HOSTS_MOST; -ENOMEM. */
int host_list_add(struct host_list *h, const char *name, size_t len);
/* Its place, or -1. */
ssize_t host_list_find(const struct host_list *h, const char *name);
/* SLURM's short form: "node[1-3,07],gpu1", also "r[1-2]n[01-16]-ib". */
int host_list_add_list(struct host_list *h, const char *list);
/* A line for each slot; the first word is the name, what begins with # is a comment. */
int host_list_add_file(struct host_list *h, const char *text, size_t len);
#endif
