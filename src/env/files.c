/* Files in memory, as a sorted array: films hold thousands of files, not millions, and are turned a frame at
 * a time, so that moving pointers on insertion costs less than any cleverer structure would in code. */
#include "env/files.h"

#include "base/owned.h"

#include <limits.h>
#include <string.h>

/* '/' sorts before every other character, so that a folder's contents stand right behind it. */
static int rank(char c)
{
	return c == '/' ? 1 : c ? (unsigned char)c + 2 : 0;
}

static int path_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return rank(*a) - rank(*b);
}

/* The path itself, or anything below it. */
static bool is_within(const char *path, const char *folder, size_t len)
{
	if (!len)
		return true;
	return !strncmp(path, folder, len) && (path[len] == '/' || !path[len]);
}

/* First node whose path is not before the given one. */
static size_t lower_bound(const struct files *t, const char *path)
{
	size_t low = 0, high = t->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (path_compare(t->node[middle]->path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct file_node *files_find(const struct files *t, const char *path)
{
	size_t i = lower_bound(t, path);

	return i < t->nr && !strcmp(t->node[i]->path, path) ? t->node[i] : NULL;
}

bool files_exists(const struct files *t, const char *path)
{
	size_t i = lower_bound(t, path);

	return i < t->nr && is_within(t->node[i]->path, path, strlen(path));
}

static struct file_node *node_new(const char *path)
{
	struct file_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->path = strdup(path);
	if (!node->path) {
		free(node);
		return NULL;
	}
	node->cpu_ns = -1;
	node->space.total = -1;
	return node;
}

static void node_free(struct file_node *node)
{
	if (node->owns) {
		free((char *)node->content);
		free((char *)node->link);
	}
	free(node->path);
	free(node->user);
	free(node);
}

struct file_node *files_make(struct files *t, const char *path)
{
	size_t i = lower_bound(t, path);
	struct file_node *node;

	if (i < t->nr && !strcmp(t->node[i]->path, path))
		return t->node[i];
	if (ARRAY_ROOM(t->node, t->cap, t->nr + 1) < 0)
		return NULL;
	node = node_new(path);
	if (!node)
		return NULL;
	memmove(t->node + i + 1, t->node + i, (t->nr - i) * sizeof(*t->node));
	t->node[i] = node;
	t->nr++;
	return node;
}

size_t files_remove(struct files *t, const char *path)
{
	size_t first = lower_bound(t, path), last = first, len = strlen(path);

	for (; last < t->nr && is_within(t->node[last]->path, path, len); last++) {
		t->node[last]->dead = true;
		t->node[last]->next_dead = t->dead;
		t->dead = t->node[last];
	}
	if (last == first)
		return 0;
	memmove(t->node + first, t->node + last, (t->nr - last) * sizeof(*t->node));
	t->nr -= last - first;
	return last - first;
}

/* fn may change the tree, so each name is looked up anew: the first path behind all that is below the last
 * name. */
int files_list(const struct files *t, const char *path, env_list_fn *fn, void *arg)
{
	size_t len = strlen(path), start = len ? len + 1 : 0;
	char name[NAME_MAX + 1];
	size_t i = lower_bound(t, path);

	for (;;) {
		const char *below;
		size_t name_len;
		int r;

		while (i < t->nr && strlen(t->node[i]->path) <= start &&
			is_within(t->node[i]->path, path, len))
			i++;
		if (i >= t->nr || !is_within(t->node[i]->path, path, len))
			return 0;
		below = t->node[i]->path + start;
		name_len = strcspn(below, "/");
		memcpy(name, below, name_len);
		name[name_len] = 0;
		r = fn(arg, name);
		if (r)
			return r;

		char next[PATH_MAX + 2];

		memcpy(next, path, len);
		if (len)
			next[len] = '/';
		memcpy(next + start, name, name_len + 1);
		for (i = lower_bound(t, next);
			i < t->nr && is_within(t->node[i]->path, next, start + name_len);)
			i++;
	}
}

int files_space(const struct files *t, const char *path, struct env_space *ret)
{
	const struct file_node *node = files_find(t, strcmp(path, ".") ? path : "");

	if (node && node->error[CALL_SPACE])
		return node->error[CALL_SPACE];
	if (node && node->space.total >= 0) {
		*ret = node->space;
		return 0;
	}
	return !strcmp(path, ".") || files_exists(t, path) ? -EOPNOTSUPP : -ENOENT;
}

void files_release(struct files *t)
{
	for (size_t i = 0; i < t->nr; i++)
		node_free(t->node[i]);
	while (t->dead) {
		struct file_node *node = t->dead;

		t->dead = node->next_dead;
		node_free(node);
	}
	free(t->node);
	*t = (struct files){0};
}

pid_t path_pid(const char *path)
{
	char *end;
	long pid;

	if (strncmp(path, "proc/", 5) || path[5] < '1' || path[5] > '9')
		return -1;
	pid = strtol(path + 5, &end, 10);
	return pid <= INT_MAX && (!*end || *end == '/') ? (pid_t)pid : -1;
}

bool path_is_good(const char *path)
{
	size_t len = strlen(path);

	if (!len || len >= PATH_MAX)
		return false;
	for (const char *part = path;; part++) {
		size_t n = strcspn(part, "/");

		if (!n || n > NAME_MAX || (n == 1 && *part == '.') || (n == 2 && !memcmp(part, "..", 2)))
			return false;
		part += n;
		if (!*part)
			return true;
	}
}

ssize_t node_read(const struct file_node *node, void *out, size_t size, off_t offset)
{
	size_t n;

	if (node->error[CALL_READ])
		return node->error[CALL_READ];
	if (!node->content)
		return -EISDIR;
	if (offset < 0)
		return -EINVAL;
	if ((uint64_t)offset >= node->len)
		return 0;
	n = MIN(size, node->len - (size_t)offset);
	memcpy(out, node->content + offset, n);
	return (ssize_t)n;
}
