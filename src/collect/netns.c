/* The namespace of the job's first process counts: that of a container when the job is one, ours in nearly
 * all other cases. An open file of proc/PID/net can still be read when the process has ended, so it is enough
 * to find it once. But launchers (`ip netns exec`, unshare, container runtimes) start in our namespace and
 * enter theirs a moment later: so the first samples check again, and later ones from time to time.
 *
 * Entering the namespace by setns() was rejected: it needs privileges, and the files do not. */
#include "collect/netns.h"

#include <stdio.h>
#include <string.h>

/* The first samples check where the job is; later ones only when the medium tier is due. */
#define ASK_SAMPLES 16

static int read_link(struct env *env, pid_t pid, char *out, size_t size)
{
	char path[48] = "proc/self/ns/net";
	ssize_t n;

	if (pid)
		snprintf(path, sizeof(path), "proc/%d/ns/net", (int)pid);
	n = env_readlink(env, path, out, size - 1);
	if (n < 0)
		return (int)n;
	out[n] = 0;
	return 0;
}

/* Where the job is now. Of another user's process we cannot read the name of the namespace, but its files:
 * they are read, and sysfs is assumed to describe them, which is nearly always true. */
static struct netns ask(const struct netns *before, struct collect_context *ctx)
{
	struct netns now = *before;
	int r = -ENOENT;

	if (!now.own[0] && read_link(ctx->env, 0, now.own, sizeof(now.own)) < 0)
		now.own[0] = 0;
	now.root = ctx->feed->root;
	now.link[0] = 0;
	if (now.root)
		r = read_link(ctx->env, now.root, now.link, sizeof(now.link));
	now.foreign = r == 0 && now.own[0] && strcmp(now.own, now.link);
	if (!now.foreign && r != -EACCES && r != -EPERM)
		now.root = 0;
	return now;
}

void netns_path(const struct netns *ns, const char *name, char *out, size_t size)
{
	if (ns->root)
		snprintf(out, size, "proc/%d/net/%s", (int)ns->root, name);
	else
		snprintf(out, size, "proc/net/%s", name);
}

void netns_find(struct netns *ns, struct collect_context *ctx)
{
	*ns = (struct netns){0};
	*ns = ask(ns, ctx);
}

bool netns_moved(struct netns *ns, struct collect_context *ctx)
{
	struct netns now;

	if (ns->asked >= ASK_SAMPLES && !ctx->medium)
		return false;
	ns->asked = MIN(ns->asked + 1, ASK_SAMPLES);
	now = ask(ns, ctx);
	memcpy(ns->own, now.own, sizeof(ns->own));
	/* A process that has ended shows nothing; the open files are still the job's. */
	if (!now.root || (now.root == ns->root && !strcmp(now.link, ns->link)))
		return false;
	*ns = now;
	return true;
}

static int open_there(const struct netns *ns, struct collect_context *ctx, struct textfile *file,
	const char *name, bool in_one)
{
	struct textfile opened;
	char path[64];
	int r;

	netns_path(ns, name, path, sizeof(path));
	r = textfile_open(&opened, ctx->env, path, in_one);
	if (r < 0)
		return r;
	textfile_close(file, ctx->env);
	*file = opened;
	return 0;
}

int netns_open(
	struct netns *ns, struct collect_context *ctx, struct textfile *file, const char *name, bool in_one)
{
	int r = open_there(ns, ctx, file, name, in_one);

	if (r >= 0 || !ns->root)
		return r;
	/* It has just ended, or there is trouble; if it is still there it is found anew. */
	ns->root = 0;
	ns->foreign = false;
	ns->link[0] = 0;
	return file->text ? r : open_there(ns, ctx, file, name, in_one);
}
