/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue": six words, any number of
 * optional ones, a dash, three more. */
#include "read/mountinfo.h"

#include "read/read.h"

#include <stdio.h>
#include <string.h>

static bool parse(const char *p, const char *end, struct mount *ret)
{
	struct text line;

	if (!read_number(&p, end, &ret->id) || p == end || *p++ != ' ')
		return false;
	line = (struct text){p, (size_t)(end - p)};
	text_cut(&line, ' ');
	ret->device = text_cut(&line, ' ');
	ret->root = text_cut(&line, ' ');
	ret->point = text_cut(&line, ' ');
	ret->options = text_cut(&line, ' ');
	do
		if (!line.len)
			return false;
	while (!text_is(text_cut(&line, ' '), "-"));
	ret->type = text_cut(&line, ' ');
	ret->source = text_cut(&line, ' ');
	ret->super = text_cut(&line, ' ');
	return ret->point.len && *ret->point.p == '/' && ret->device.len && ret->type.len;
}

bool mountinfo_next(const char **text, const char *end, struct mount *ret)
{
	for (const char *line = *text, *stop; (stop = memchr(line, '\n', (size_t)(end - line)));) {
		*text = stop + 1;
		if (parse(line, stop, ret))
			return true;
		line = stop + 1;
	}
	return false;
}

static bool is_octal(const char *p, size_t len)
{
	return len >= 4 && *p == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
		p[3] >= '0' && p[3] <= '7';
}

bool mount_unescape(struct text w, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < w.len; i++) {
		char c = w.p[i];

		if (is_octal(w.p + i, w.len - i)) {
			c = (char)((w.p[i + 1] - '0') << 6 | (w.p[i + 2] - '0') << 3 | (w.p[i + 3] - '0'));
			i += 3;
		}
		if (!c || n + 1 >= size)
			return false;
		out[n++] = c;
	}
	out[n] = 0;
	return n > 0;
}

/* Their servers, or programs, may not answer. */
static const char *const remote_type[] = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs",
	"ceph", "afs", "9p", "orangefs", "pvfs2", "panfs", "wekafs", "gfs2", "ocfs2", "autofs", "virtiofs",
	"vboxsf", "coda", "ncpfs"};

static bool is_remote_type(struct text type)
{
	if (text_starts(type, "fuse"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(remote_type); i++)
		if (text_is(type, remote_type[i]))
			return true;
	return false;
}

/* The path is the mount's point or below it; both escaped. */
static bool is_below(struct text path, struct text point)
{
	if (point.len == 1)
		return true;
	return path.len >= point.len && memcmp(path.p, point.p, point.len) == 0 &&
		(path.len == point.len || path.p[point.len] == '/');
}

/* A root on the network does not count for what is mounted below it: when its server is down, nothing
 * works. */
bool mountinfo_is_remote(const char *text, const char *end, const struct mount *mount)
{
	struct mount m;

	while (mountinfo_next(&text, end, &m))
		if (is_remote_type(m.type) && m.point.len > 1 && is_below(mount->point, m.point))
			return true;
	return is_remote_type(mount->type);
}

/* The lines stand in the order of mounting: it takes one behind its own to hide it. The search for its mount
 * point nearly always finds nothing, so that no line has to be parsed. */
bool mountinfo_is_hidden(const char *end, const struct mount *mount)
{
	const char *behind = mount->type.p;
	struct mount m;

	if (mount->point.len < 2 || !memmem(behind, (size_t)(end - behind), mount->point.p, mount->point.len))
		return false;
	while (mountinfo_next(&behind, end, &m))
		if (text_equal(m.point, mount->point))
			return true;
	return false;
}

bool mountinfo_find_id(const char *text, const char *end, int64_t id, struct mount *ret)
{
	while (mountinfo_next(&text, end, ret))
		if (ret->id == id)
			return true;
	return false;
}

static bool point_is(const struct mount *m, const char *point)
{
	char its[MOUNT_POINT_SIZE];

	return mount_unescape(m->point, its, sizeof(its)) && !strcmp(its, point);
}

bool mountinfo_find_device(
	const char *text, const char *end, const char *device, const char *point, struct mount *ret)
{
	const char *p = text;

	while (*point && mountinfo_next(&p, end, ret))
		if (text_is(ret->device, device) && point_is(ret, point) && !mountinfo_is_hidden(end, ret))
			return true;
	for (p = text; mountinfo_next(&p, end, ret);)
		if (text_is(ret->device, device) && !mountinfo_is_hidden(end, ret) &&
			!mountinfo_is_remote(text, end, ret))
			return true;
	return false;
}

/* As mountinfo writes it; what does not fit is cut off. */
static void escape(const char *path, char *out, size_t size)
{
	size_t n = 0;

	for (; *path && n + 5 < size; path++)
		if (strchr(" \t\n\\", *path))
			n += (size_t)snprintf(out + n, size - n, "\\%03o", (unsigned char)*path);
		else
			out[n++] = *path;
	out[n] = 0;
}

bool mountinfo_find_path(const char *text, const char *end, const char *path, struct mount *ret)
{
	char escaped[2 * MOUNT_POINT_SIZE];
	struct text word;
	bool found = false;
	struct mount m;

	escape(path, escaped, sizeof(escaped));
	word = text_of(escaped);
	while (mountinfo_next(&text, end, &m))
		if (is_below(word, m.point) && (!found || m.point.len >= ret->point.len)) {
			*ret = m;
			found = true;
		}
	return found;
}

int mounts_open(struct textfile *f, struct env *env, pid_t pid, const char *name)
{
	char path[64];
	int r = -ESRCH;

	snprintf(path, sizeof(path), "proc/%d/%s", pid, name);
	if (pid > 0)
		r = textfile_open(f, env, path, false);
	if (r >= 0)
		return 1;
	snprintf(path, sizeof(path), "proc/self/%s", name);
	return textfile_open(f, env, path, false);
}
