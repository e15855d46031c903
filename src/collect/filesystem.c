/* Space of the file systems that the job writes to.
 *
 * Which these are is found by evidence: the working directory of the job's first process, TMPDIR, /dev/shm
 * when there is anything in it, and the mounts on which members have files open for writing. For the last,
 * proc/PID/fdinfo/N has the flags of a descriptor and the number of its mount, which mountinfo resolves; a
 * few descriptors are looked at in a round, member after member, so that thousands of processes cost no more
 * than one. Recording all mounts of the machine was rejected: a node has fifty, and they do not show what the
 * job does.
 *
 * A file system is one instance however often it is mounted: it is identified by its device number. The job
 * may be in another mount namespace, and its members in yet others (containers): their mounts are reached
 * through proc/PID/root.
 *
 * The space itself is asked of the file system, and one whose server is down does not answer: the call blocks
 * for ever. So for network file systems, those of user programs, and what is mounted below them, the space is
 * not read. Reading it in a thread was rejected: the thread could not be ended, and so neither could the
 * recorder. */
#include "collect/keyed.h"

#include "base/str.h"
#include "read/mountinfo.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum field { SPACE_TOTAL, SPACE_FREE, SPACE_AVAILABLE, SPACE_INODES, SPACE_FREE_INODES, NR_FIELDS };

/* clang-format off */
#define FIELD(f) {.arg = f}

static const struct metric filesystem_metric[] = {
	{"fs.total",       "Bytes that the file system holds.", FIELD(SPACE_TOTAL), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.space", TIER_MEDIUM, false},
	{"fs.free",        "Bytes that are free, those kept for root included.", FIELD(SPACE_FREE), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"fs.available",   "Bytes that users may still write.", FIELD(SPACE_AVAILABLE), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.space", TIER_MEDIUM, false},
	{"fs.inodes",      "Files that the file system has room for.", FIELD(SPACE_INODES), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"fs.inodes_free", "Files that can still be made.", FIELD(SPACE_FREE_INODES), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
};
/* clang-format on */

#define PLACES_MAX 64
#define SEEN_MAX 128
#define OTHER_SIZE (1 << 20) /* of another namespace's mountinfo */
#define LOOKS_MAX 64	     /* descriptors in a round */
#define FDS_MAX 512	     /* of a process; those above are not looked at */
#define GAP_MAX 4	     /* numbers without a descriptor after which a process has no more */

extern const struct collector collector_filesystem;

struct filesystem {
	struct textfile mounts; /* of the job's first process, or ours */
	size_t len;		/* of the text */
	pid_t root;		/* the process that it was read from, or tried */
	uint64_t hash;
	char base[40]; /* in front of its paths: "", or "proc/PID/root" */
	char tmpdir[MOUNT_POINT_SIZE];
	bool told_remote, told_inodes, told_full;
	/* Mounts that were checked since the last change of mounts; checking them again would give the
	 * same. */
	int64_t seen[SEEN_MAX];
	unsigned nr_seen;
	/* Where the next round goes on. */
	unsigned member;
	int fd, gap;
	struct filesystem_place {
		bool used, remote;
		bool foreign; /* in another namespace than the first process's */
		uint32_t row;
		char device[24];
		char point[MOUNT_POINT_SIZE];
		char path[MOUNT_POINT_SIZE + 40]; /* as env takes it */
	} place[PLACES_MAX];
	char other[OTHER_SIZE];
};

/* /dev is written to all the time (/dev/null), and holds no data. */
static bool is_of_no_interest(const struct mount *m)
{
	return text_is(m->type, "devtmpfs") || text_is(m->point, "/dev") || text_is(m->type, "autofs");
}

/* The place's path through env. */
static bool make_path(char *out, size_t size, const char *base, const char *point)
{
	if (!*base)
		return snprintf(out, size, "%s", point[1] ? point + 1 : ".") < (int)size;
	return snprintf(out, size, "%s%s", base, point[1] ? point : "") < (int)size;
}

static void set_cells(struct collect_context *ctx, uint32_t row, const struct env_space *s)
{
	const int64_t value[NR_FIELDS] = {s->total, s->free, s->available, s->inodes, s->free_inodes};

	for (size_t i = 0; i < ARRAY_SIZE(filesystem_metric); i++) {
		int field = filesystem_metric[i].at.arg;

		collect_put(ctx, row, i, field < SPACE_INODES || s->inodes, value[field]);
	}
}

static void tell_once(struct collect_context *ctx, bool *reported, enum availability availability,
	const char *reason, bool inodes_only)
{
	for (size_t i = 0; !*reported && i < ARRAY_SIZE(filesystem_metric); i++)
		if (!inodes_only || filesystem_metric[i].at.arg >= SPACE_INODES)
			ctx->why(ctx, i, availability, reason, NULL);
	*reported = true;
}

static bool join_place(
	struct filesystem *f, struct collect_context *ctx, struct filesystem_place *p, const struct mount *m)
{
	static const char unasked[] =
		"a network file system is not asked for its space: its server may not answer";
	char type[64] = "", source[256] = "";
	struct about about[4] = {{"type", type}, {"device", source}};
	size_t nr = 2;
	int row;

	mount_unescape(m->type, type, sizeof(type));
	mount_unescape(m->source, source, sizeof(source));
	if (p->foreign)
		about[nr++] = (struct about){"inside", "a container: another mount namespace than the job's"};
	if (p->remote)
		about[nr++] = (struct about){"unasked", unasked};
	else if (text_is(m->type, "overlay"))
		about[nr++] = (struct about){"apart", "its space is that of the file system below it"};
	row = ctx->join_about(ctx, p->point, about, nr);
	if (row < 0)
		return false;
	p->used = true;
	p->row = (uint32_t)row;
	if (p->remote)
		tell_once(ctx, &f->told_remote, ABSENT, unasked, false);
	return true;
}

/* The job uses this mount: makes an instance of its file system if that holds data and has none yet. */
static void judge(struct filesystem *f, struct collect_context *ctx, const char *text, const char *end,
	const char *base, const struct mount *m)
{
	struct env_space space = {0};
	struct filesystem_place fresh = {0}, *p = NULL;

	if (is_of_no_interest(m) || !mount_unescape(m->device, fresh.device, sizeof(fresh.device)))
		return;
	for (size_t i = 0; i < PLACES_MAX; i++) {
		if (f->place[i].used && !strcmp(f->place[i].device, fresh.device))
			return;
		if (!f->place[i].used && !p)
			p = f->place + i;
	}
	if (!mount_unescape(m->point, fresh.point, sizeof(fresh.point)) || mountinfo_is_hidden(end, m) ||
		!make_path(fresh.path, sizeof(fresh.path), base, fresh.point))
		return;
	fresh.remote = mountinfo_is_remote(text, end, m);
	fresh.foreign = text != f->mounts.text;
	/* Kernel interfaces (proc, cgroup) hold nothing. */
	if (!fresh.remote && (env_space(ctx->env, fresh.path, &space) < 0 || !space.total))
		return;
	if (p)
		*p = fresh;
	if (!p || !join_place(f, ctx, p, m)) {
		tell_once(ctx, &f->told_full, FAILED,
			"the job writes to more file systems than can be recorded", false);
		return;
	}
	if (!fresh.remote && !space.inodes)
		tell_once(ctx, &f->told_inodes, ABSENT, "this kind of file system does not count its files",
			true);
}

static void judge_path(struct filesystem *f, struct collect_context *ctx, const char *path)
{
	const char *text = f->mounts.text, *end = text + f->len;
	struct mount m;

	if (*path == '/' && mountinfo_find_path(text, end, path, &m))
		judge(f, ctx, text, end, f->base, &m);
}

/* A member has a file open for writing on this mount. */
static void judge_id(struct filesystem *f, struct collect_context *ctx, pid_t pid, int64_t id)
{
	const char *text = f->mounts.text, *end = text + f->len;
	char path[40], device[24];
	struct mount m, same;
	ssize_t n;

	for (unsigned i = 0; i < MIN(f->nr_seen, SEEN_MAX); i++)
		if (f->seen[i] == id)
			return;
	f->seen[f->nr_seen++ % SEEN_MAX] = id;
	if (mountinfo_find_id(text, end, id, &m)) {
		judge(f, ctx, text, end, f->base, &m);
		return;
	}
	/* A pipe or socket, whose mounts are not listed; or the process is in another namespace. */
	snprintf(path, sizeof(path), "proc/%d/mountinfo", pid);
	n = env_slurp(ctx->env, path, f->other, OTHER_SIZE);
	if (n <= 0 || !mountinfo_find_id(f->other, f->other + n, id, &m))
		return;
	if (mount_unescape(m.device, device, sizeof(device)) &&
		mountinfo_find_device(text, end, device, "", &same)) {
		judge(f, ctx, text, end, f->base, &same);
		return;
	}
	snprintf(path, sizeof(path), "proc/%d/root", pid);
	judge(f, ctx, f->other, f->other + n, path, &m);
}

static bool number_behind(const char *text, const char *key, int base, int64_t *ret)
{
	const char *p = strstr(text, key);
	char *end;

	if (!p)
		return false;
	p += strlen(key);
	*ret = strtoll(p, &end, base);
	return end != p;
}

/* 0 when the descriptor was looked at, or why not. */
static int look_at_fd(struct filesystem *f, struct collect_context *ctx, pid_t pid, int fd)
{
	char path[64], text[512];
	int64_t flags, id;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, fd);
	n = env_peek(ctx->env, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	if (number_behind(text, "flags:\t", 8, &flags) && number_behind(text, "mnt_id:\t", 10, &id) &&
		(flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH))
		judge_id(f, ctx, pid, id);
	return 0;
}

struct round {
	struct filesystem *f;
	struct collect_context *ctx;
	unsigned member, left;
};

static int look_at_member(void *arg, const struct collect_member *m)
{
	pid_t pid = m->pid;
	struct round *round = arg;
	struct filesystem *f = round->f;

	if (round->member++ < f->member)
		return 0;
	while (f->gap < GAP_MAX && f->fd < FDS_MAX) {
		int r;

		if (!round->left)
			return 1;
		round->left--;
		r = look_at_fd(f, round->ctx, pid, f->fd++);
		f->gap = r == 0 ? 0 : f->gap + 1;
		if (r < 0 && r != -ENOENT) /* we may not read it, or it is ending */
			break;
	}
	f->member++;
	f->fd = f->gap = 0;
	return 0;
}

static void look_at_members(struct filesystem *f, struct collect_context *ctx)
{
	struct round round = {.f = f, .ctx = ctx, .left = LOOKS_MAX};

	if (ctx->members(ctx, look_at_member, &round) == 0)
		f->member = 0;
}

static void leave_place(struct collect_context *ctx, struct filesystem_place *p)
{
	ctx->leave(ctx, p->row);
	p->used = false;
}

/* Mounts have changed: places that are no longer mounted are gone, the others may be found elsewhere. */
static void recheck(struct filesystem *f, struct collect_context *ctx)
{
	const char *text = f->mounts.text, *end = text + f->len;

	f->nr_seen = 0;
	for (struct filesystem_place *p = f->place; p < f->place + PLACES_MAX; p++) {
		struct mount m;

		if (!p->used || p->foreign)
			continue;
		if (!mountinfo_find_device(text, end, p->device, p->point, &m) ||
			!mount_unescape(m.point, p->point, sizeof(p->point)) ||
			!make_path(p->path, sizeof(p->path), f->base, p->point))
			leave_place(ctx, p);
	}
}

/* Whether paths mean the same to this process and to us: same mounts, same root. True where that cannot be
 * read. */
static bool sees_as_we_do(struct env *env, pid_t pid)
{
	char path[40], its[64], ours[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "proc/%d/root", pid);
	n = env_readlink(env, path, its, sizeof(its));
	if (n > 0 && (n != 1 || *its != '/'))
		return false;
	snprintf(path, sizeof(path), "proc/%d/ns/mnt", pid);
	n = env_readlink(env, path, its, sizeof(its));
	m = env_readlink(env, "proc/self/ns/mnt", ours, sizeof(ours));
	return n < 0 || m < 0 || (n == m && memcmp(its, ours, (size_t)n) == 0);
}

/* Chooses the process whose mounts and root are used: the job's first, else we. */
static int take_view(struct filesystem *f, struct collect_context *ctx, pid_t pid)
{
	int r;

	textfile_close(&f->mounts, ctx->env);
	f->root = pid;
	f->base[0] = 0;
	r = mounts_open(&f->mounts, ctx->env, pid, "mountinfo");
	if (r > 0 && !sees_as_we_do(ctx->env, pid))
		snprintf(f->base, sizeof(f->base), "proc/%d/root", pid);
	f->hash = 0;
	return r;
}

/* The mounts as they are now. */
static int read_mounts(struct filesystem *f, struct collect_context *ctx)
{
	ssize_t n = -ENOENT;
	uint64_t hash;

	if (ctx->feed->root != f->root)
		take_view(f, ctx, ctx->feed->root);
	if (f->mounts.text)
		n = textfile_read(&f->mounts, ctx->env);
	if (n < 0 && take_view(f, ctx, 0) >= 0) { /* the process has ended; its job may not have */
		f->root = ctx->feed->root;
		n = textfile_read(&f->mounts, ctx->env);
	}
	f->len = n > 0 ? (size_t)n : 0;
	if (n <= 0)
		return n < 0 ? (int)n : -ENODATA;
	hash = hash_bytes(f->mounts.text, f->len);
	if (hash != f->hash)
		recheck(f, ctx);
	f->hash = hash;
	return 0;
}

/* Mapped memory needs no open file: whatever is in /dev/shm is in use. */
static void judge_shared_memory(struct filesystem *f, struct collect_context *ctx)
{
	const char *text = f->mounts.text, *end = text + f->len;
	char path[64];
	struct env_space space;
	struct mount m;

	if (!mountinfo_find_path(text, end, "/dev/shm", &m) || !text_is(m.point, "/dev/shm") ||
		mountinfo_is_remote(text, end, &m))
		return;
	make_path(path, sizeof(path), f->base, "/dev/shm");
	if (env_space(ctx->env, path, &space) >= 0 && space.free < space.total)
		judge(f, ctx, text, end, f->base, &m);
}

static void find_places(struct filesystem *f, struct collect_context *ctx)
{
	char path[40], cwd[MOUNT_POINT_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/cwd", ctx->feed->root);
	n = env_readlink(ctx->env, path, cwd, sizeof(cwd) - 1);
	cwd[n > 0 ? n : 0] = 0;
	judge_path(f, ctx, cwd);
	judge_path(f, ctx, f->tmpdir);
	judge_shared_memory(f, ctx);
	look_at_members(f, ctx);
}

static int filesystem_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, "proc/self/mountinfo",
		(struct trouble){"this kernel does not list mounts in proc/self/mountinfo", NULL},
		reterr_why);
}

static int filesystem_open(void *state, struct collect_context *ctx)
{
	struct filesystem *f = state;
	const char *tmpdir = env_getenv(ctx->env, "TMPDIR");

	snprintf(f->tmpdir, sizeof(f->tmpdir), "%s", tmpdir ? tmpdir : "/tmp");
	return MIN(take_view(f, ctx, ctx->feed->root), 0);
}

static int filesystem_sample(void *state, struct collect_context *ctx)
{
	struct filesystem *f = state;
	int r = read_mounts(f, ctx);

	if (r >= 0)
		find_places(f, ctx);
	for (struct filesystem_place *p = f->place; p < f->place + PLACES_MAX; p++) {
		struct env_space space;
		int e;

		if (!p->used || p->remote)
			continue;
		e = env_space(ctx->env, p->path, &space);
		if (e >= 0) {
			table_touch(ctx->table, p->row);
			set_cells(ctx, p->row, &space);
		} else if (p->foreign) {
			leave_place(ctx, p); /* the process that showed it has ended; others may show it */
			f->nr_seen = 0;
		} else {
			collect_lost(ctx, p->row);
			r = e;
		}
	}
	return r;
}

static void filesystem_close(void *state, struct collect_context *ctx)
{
	struct filesystem *f = state;

	textfile_close(&f->mounts, ctx->env);
}

const struct collector collector_filesystem = {
	.name = "filesystem",
	.summary = "space of the file systems the job writes to",
	.domain = DOMAIN_FILESYSTEM,
	.metric = filesystem_metric,
	.nr_metrics = ARRAY_SIZE(filesystem_metric),
	.state_size = sizeof(struct filesystem),
	.tier = TIER_MEDIUM,
	.max_rows = PLACES_MAX,
	.probe = filesystem_probe,
	.open = filesystem_open,
	.sample = filesystem_sample,
	.close = filesystem_close,
};
