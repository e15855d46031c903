/* Finds the directory of the control group we are in.
 *
 * /proc/self/cgroup names our group in each hierarchy, from the root of the hierarchy; /proc/self/mountinfo
 * says where hierarchies are mounted and which group each mount shows as its root (containers often see only
 * theirs). A mount leads to us when that root is our group or above it. Paths in mountinfo have \ooo for
 * blanks. */
#include "target/cgroup_place.h"

struct text { /* borrowed */
	const char *p;
	size_t len;
};

static bool text_is(struct text t, const char *s)
{
	return strlen(s) == t.len && memcmp(t.p, s, t.len) == 0;
}

/* Cuts the text up to `stop` off the front of *rest. */
static struct text cut(struct text *rest, char stop)
{
	const char *end = memchr(rest->p, stop, rest->len);
	struct text head = {rest->p, end ? (size_t)(end - rest->p) : rest->len};
	size_t step = head.len + (end ? 1 : 0);

	rest->p += step;
	rest->len -= step;
	return head;
}

static bool list_has(struct text list, const char *word)
{
	while (list.len > 0)
		if (text_is(cut(&list, ','), word))
			return true;
	return false;
}

/* Our group's path in the v2 hierarchy, or in the v1 hierarchy of cpuacct. */
static bool find_group(struct text groups, bool v2, struct text *ret)
{
	while (groups.len > 0) {
		struct text line = cut(&groups, '\n');
		struct text id = cut(&line, ':');
		struct text controllers = cut(&line, ':');

		if (v2 ? text_is(id, "0") && controllers.len == 0 : list_has(controllers, "cpuacct")) {
			*ret = line;
			return line.len > 0;
		}
	}
	return false;
}

static bool is_octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' && p[2] <= '7';
}

/* \ooo back to bytes; false when it does not fit. */
static bool unescape(struct text t, char *ret, size_t size, size_t *ret_len)
{
	size_t n = 0;

	for (size_t i = 0; i < t.len; i++) {
		char c = t.p[i];

		if (c == '\\' && i + 3 < t.len && is_octal(t.p + i + 1)) {
			c = (char)((t.p[i + 1] - '0') << 6 | (t.p[i + 2] - '0') << 3 | (t.p[i + 3] - '0'));
			i += 3;
		}
		if (n + 1 >= size)
			return false;
		ret[n++] = c;
	}
	ret[n] = '\0';
	*ret_len = n;
	return true;
}

/* What of the group's path is below the root of the mount; false when the mount does not show the group. */
static bool below_root(struct text group, const char *root, size_t root_len, struct text *ret)
{
	if (root_len == 1 && root[0] == '/')
		root_len = 0;
	if (group.len < root_len || memcmp(group.p, root, root_len) != 0)
		return false;
	*ret = (struct text){group.p + root_len, group.len - root_len};
	if (text_is(*ret, "/"))
		ret->len = 0;
	return ret->len == 0 || ret->p[0] == '/';
}

static bool is_inside_out(struct text path) /* a cgroup namespace shows what is above its root as /.. */
{
	return path.len >= 3 && memcmp(path.p, "/..", 3) == 0 && (path.len == 3 || path.p[3] == '/');
}

static bool match_mount(struct text line, bool v2, struct text group, struct cgroup_place *ret)
{
	struct text root, mount, field;
	char root_path[PATH_MAX];
	size_t root_len;

	for (int i = 0; i < 3; i++)
		cut(&line, ' ');
	root = cut(&line, ' ');
	mount = cut(&line, ' ');
	do
		field = cut(&line, ' ');
	while (line.len > 0 && !text_is(field, "-"));
	if (!text_is(cut(&line, ' '), v2 ? "cgroup2" : "cgroup"))
		return false;
	cut(&line, ' ');
	if (!v2 && !list_has(line, "cpuacct"))
		return false;
	if (!unescape(root, root_path, sizeof(root_path), &root_len) ||
		!below_root(group, root_path, root_len, &group) || is_inside_out(group) ||
		!unescape(mount, ret->directory, sizeof(ret->directory), &ret->mount_len) ||
		ret->mount_len + group.len >= sizeof(ret->directory))
		return false;
	memcpy(ret->directory + ret->mount_len, group.p, group.len);
	ret->directory[ret->mount_len + group.len] = '\0';
	ret->v2 = v2;
	return true;
}

bool cgroup_place_find(const char *mountinfo, const char *groups, unsigned nth, struct cgroup_place *ret)
{
	for (int v2 = 1; v2 >= 0; v2--) {
		struct text mounts = {mountinfo, strlen(mountinfo)}, group;

		if (!find_group((struct text){groups, strlen(groups)}, v2, &group))
			continue;
		while (mounts.len > 0)
			if (match_mount(cut(&mounts, '\n'), v2, group, ret) && nth-- == 0)
				return true;
	}
	return false;
}
