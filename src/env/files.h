/* A tree of files in memory, for films and captures.
 *
 * A node that is removed stays in memory, marked dead, until the tree is released: open handles still point
 * to it and so find that their file is gone, even when there is a new one with the same path. Folders need no
 * node of their own; they are there while something is below them. The root is the path "". */
#ifndef ENV_FILES_H
#define ENV_FILES_H

#include "env/env.h"

enum node_call { CALL_OPEN, CALL_READ, CALL_LIST, CALL_READLINK, CALL_SPACE, NR_NODE_CALLS };

struct file_node {
	char *path;
	const char *content; /* NULL: not a file */
	size_t len;
	const char *link;	  /* NULL: not a link */
	int64_t size;		  /* of a folder, as fstat gives it */
	int64_t cpu_ns;		  /* of proc/PID: its CPU clock, -1: not known */
	struct env_space space;	  /* of the file system it lies on; total -1: not known */
	int error[NR_NODE_CALLS]; /* negative errno that a call gives instead */
	bool dead;
	struct file_node *next_dead;
	bool owns;  /* content and link are freed with the node */
	void *user; /* the owner's own data; freed with the node */
};

struct files {
	struct file_node *
		*node; /* sorted by path, '/' before all else, so that what is below a path follows it */
	size_t nr, cap;
	struct file_node *dead;
};

void files_release(struct files *t);
struct file_node *files_find(const struct files *t, const char *path); /* NULL: no node of that path */
struct file_node *files_make(struct files *t, const char *path);       /* finds or adds; NULL: no memory */
bool files_exists(const struct files *t, const char *path);	       /* a node, or a folder of nodes */
size_t files_remove(struct files *t, const char *path); /* with all below; how many nodes that were */
/* The names in a folder ("" is the root), in order. fn may add and remove nodes. */
int files_list(const struct files *t, const char *path, env_list_fn *fn, void *arg);

/* The space there, or a negative errno: -EOPNOTSUPP where nothing is known. */
int files_space(const struct files *t, const char *path, struct env_space *ret);
/* What the file holds, from the offset on, or the error it was given. */
ssize_t node_read(const struct file_node *node, void *out, size_t size, off_t offset);

/* The pid when the path is proc/PID or below, else -1. */
pid_t path_pid(const char *path);
/* Relative, without empty, "." and ".." parts, and no part or whole too long. */
bool path_is_good(const char *path);
#endif
