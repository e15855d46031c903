/* Lustre as this client sees it: the file "stats" of every mounted file system. Where it is depends on the
 * release: proc/fs/lustre, later sys/kernel/debug/lustre (root's alone), and sys/fs/lustre.
 *
 * A line is "read_bytes 4452 samples [bytes] 4096 1048576 2317382": how often, the unit, the least, the
 * largest, and the sum. What has not happened yet has no line, so a missing line means zero if all releases
 * have that line; if only some releases have it, its value is not known. */
#include "collect/keyed.h"

#include <stdio.h>
#include <string.h>

enum word { COUNT, SUM };

/* clang-format off */
#define LASTING(k, word) {.key = k, .col = word, .arg = 1}
#define SOMETIMES(k, word) {.key = k, .col = word}

static const struct metric lustre_metric[] = {
	{"lustre.read.bytes",  "Bytes that programs read.", LASTING("read_bytes", SUM), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.lustre", TIER_MEDIUM, false},
	{"lustre.write.bytes", "Bytes that programs wrote.", LASTING("write_bytes", SUM), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.lustre", TIER_MEDIUM, false},
	{"lustre.read.ops",    "Reads of programs.", LASTING("read_bytes", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.write.ops",   "Writes of programs.", LASTING("write_bytes", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.read.time",   "Time that reads took, added up over all of them.", SOMETIMES("read", SUM), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	{"lustre.write.time",  "Time that writes took, added up over all of them.", SOMETIMES("write", SUM), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	{"lustre.open",        "Files opened.", LASTING("open", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.close",       "Files closed.", LASTING("close", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.seek",        "Changes of position in a file.", LASTING("seek", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.fsync",       "Waits until data is safe.", LASTING("fsync", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.getattr",     "Requests for the attributes of files.", LASTING("getattr", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.setattr",     "Changes of the attributes of files.", LASTING("setattr", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.create",      "Files made by creating them.", SOMETIMES("create", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.mknod",       "Files made by other ways.", SOMETIMES("mknod", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, true},
	{"lustre.unlink",      "Files removed.", SOMETIMES("unlink", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.rename",      "Files renamed.", SOMETIMES("rename", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.mkdir",       "Directories made.", SOMETIMES("mkdir", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.readdir",     "Readings of directories.", SOMETIMES("readdir", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"lustre.page_faults", "Page faults on mapped files.", SOMETIMES("page_fault", COUNT), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
};
/* clang-format on */

#define MOUNTS_MAX 32
#define NAME_SIZE 128

extern const struct collector collector_lustre;

static const char *const folder[] = {
	"proc/fs/lustre/llite", "sys/fs/lustre/llite", "sys/kernel/debug/lustre/llite"};

struct lustre {
	unsigned listed; /* file systems that some folder names, readable or not */
	bool reported, full, explained;
	uint8_t turn;
	struct lustre_slot {
		struct textfile file;
		uint8_t turn;
		uint32_t row;
		char name[NAME_SIZE];  /* of its folder: "work-ffff8c5e41c7a800" */
		char title[NAME_SIZE]; /* of its instance: "work" */
	} slot[MOUNTS_MAX];
};

struct visit {
	struct lustre *l;
	struct collect_context *ctx;
	const char *folder;
};

/* The folder's name without the address behind it, unless another mount of that name is there. */
static void make_title(const struct lustre *l, struct lustre_slot *slot)
{
	const char *dash = strrchr(slot->name, '-');
	size_t n = dash && dash > slot->name && dash[1] && dash[1 + strspn(dash + 1, "0123456789abcdef")] == 0
		? (size_t)(dash - slot->name)
		: strlen(slot->name);

	snprintf(slot->title, sizeof(slot->title), "%.*s", (int)n, slot->name);
	for (const struct lustre_slot *other = l->slot; other < l->slot + MOUNTS_MAX; other++)
		if (other != slot && other->file.text && !strcmp(other->title, slot->title))
			memcpy(slot->title, slot->name, sizeof(slot->title));
}

static void join(const struct visit *v, struct lustre_slot *slot, const char *name)
{
	struct collect_context *ctx = v->ctx;
	char path[2 * NAME_SIZE];
	int row;

	snprintf(path, sizeof(path), "%s/%s/stats", v->folder, name);
	if (textfile_open(&slot->file, ctx->env, path, false) < 0)
		return;
	snprintf(slot->name, sizeof(slot->name), "%s", name);
	make_title(v->l, slot);
	row = ctx->join(ctx, slot->title);
	if (row < 0)
		textfile_close(&slot->file, ctx->env);
	slot->row = (uint32_t)row;
	slot->turn = v->l->turn;
}

/* A file system that is mounted. Of several folders the first that can be read is taken. */
static int visit_mount(void *arg, const char *name)
{
	const struct visit *v = arg;
	struct lustre_slot *unused = NULL;

	if (strlen(name) >= NAME_SIZE)
		return 0;
	for (struct lustre_slot *slot = v->l->slot; slot < v->l->slot + MOUNTS_MAX; slot++) {
		if (slot->file.text && !strcmp(slot->name, name)) {
			slot->turn = v->l->turn;
			return 0;
		}
		if (!slot->file.text && !unused)
			unused = slot;
	}
	v->l->listed++;
	if (unused)
		join(v, unused, name);
	else
		v->l->full = true;
	return 0;
}

static void find_mounts(struct lustre *l, struct collect_context *ctx)
{
	l->turn++;
	l->listed = 0;
	for (size_t i = 0; i < ARRAY_SIZE(folder); i++)
		env_list(ctx->env, folder[i], visit_mount, &(struct visit){l, ctx, folder[i]});
}

/* The line of that key: the words behind it. */
static bool find_line(const char *text, const char *key, const char **ret, const char **ret_end)
{
	size_t n = strlen(key);

	for (const char *line = text, *stop; (stop = strchr(line, '\n')); line = stop + 1) {
		if (strncmp(line, key, n) != 0 || !strchr(" \t\n", line[n]))
			continue;
		*ret = line + n;
		*ret_end = stop;
		return true;
	}
	return false;
}

static bool skip_word(const char **p, const char *end)
{
	while (*p < end && **p != ' ' && **p != '\t')
		(*p)++;
	while (*p < end && (**p == ' ' || **p == '\t'))
		(*p)++;
	return *p < end;
}

static bool find_value(const char *text, const struct metric_at *at, int64_t *ret)
{
	const char *p, *end;

	*ret = 0;
	if (!find_line(text, at->key, &p, &end))
		return at->arg;
	skip_word(&p, end);
	if (at->col == COUNT)
		return read_number(&p, end, ret);
	for (int i = 0; i < 5; i++)
		if (!skip_word(&p, end))
			return false;
	return read_number(&p, end, ret);
}

/* It is not known whether a missing line will appear later. */
static void explain(struct lustre *l, struct collect_context *ctx, uint32_t row)
{
	for (size_t i = 0; !l->explained && i < ARRAY_SIZE(lustre_metric); i++)
		if (ctx->map.col[i] >= 0 && !(ctx->table->valid[row] >> ctx->map.col[i] & 1))
			ctx->why(ctx, i, ABSENT,
				"it has not happened yet, or this release of Lustre does not count it", NULL);
	l->explained = true;
}

static int sample_slot(struct lustre *l, struct lustre_slot *slot, struct collect_context *ctx)
{
	ssize_t n = textfile_read(&slot->file, ctx->env);
	int64_t value;

	/* Even the stats of a file system that was never used have the time they were taken at. */
	if (n >= 0 && strncmp(slot->file.text, "snapshot_time", 13) != 0)
		n = -EBADMSG;
	if (n < 0) {
		collect_lost(ctx, slot->row);
		return (int)n;
	}
	table_touch(ctx->table, slot->row);
	for (size_t i = 0; i < ARRAY_SIZE(lustre_metric); i++) {
		bool known;

		if (ctx->map.col[i] < 0)
			continue;
		known = find_value(slot->file.text, &lustre_metric[i].at, &value);
		collect_put(ctx, slot->row, i, known, value);
	}
	explain(l, ctx, slot->row);
	return 0;
}

/* The modules make these folders, whether or not anything is mounted. */
static int lustre_probe(struct env *env, struct trouble *reterr_why)
{
	struct trouble absent = {"there is no Lustre client on this machine", NULL};
	int r = probe_folder(env, "sys/fs/lustre", absent, reterr_why);

	return r < 0 ? probe_folder(env, "proc/fs/lustre", absent, reterr_why) : r;
}

static void tell(struct lustre *l, struct collect_context *ctx)
{
	bool any = false;

	for (const struct lustre_slot *slot = l->slot; slot < l->slot + MOUNTS_MAX; slot++)
		any |= slot->file.text != NULL;
	if (l->reported || (any && !l->full))
		return;
	if (l->full)
		collect_tell(ctx, &collector_lustre, FAILED,
			"there are more Lustre mounts than can be recorded: some are left out", NULL);
	else if (l->listed)
		collect_tell(ctx, &collector_lustre, FORBIDDEN,
			"this release of Lustre shows its counters to root alone",
			"run as root, or let users look: chmod a+rx /sys/kernel/debug");
	else
		collect_tell(ctx, &collector_lustre, ABSENT, "no Lustre file system is mounted", NULL);
	l->reported = true;
}

static int lustre_open(void *state, struct collect_context *ctx)
{
	struct lustre *l = state;

	find_mounts(l, ctx);
	tell(l, ctx);
	return 0;
}

static int lustre_sample(void *state, struct collect_context *ctx)
{
	struct lustre *l = state;
	int r = 0;

	find_mounts(l, ctx);
	for (struct lustre_slot *slot = l->slot; slot < l->slot + MOUNTS_MAX; slot++) {
		int e = 0;

		if (!slot->file.text)
			continue;
		if (slot->turn == l->turn) {
			e = sample_slot(l, slot, ctx);
		} else {
			ctx->leave(ctx, slot->row);
			textfile_close(&slot->file, ctx->env);
		}
		r = e < 0 ? e : r;
	}
	tell(l, ctx);
	return r;
}

static void lustre_close(void *state, struct collect_context *ctx)
{
	struct lustre *l = state;

	for (struct lustre_slot *slot = l->slot; slot < l->slot + MOUNTS_MAX; slot++)
		textfile_close(&slot->file, ctx->env);
}

const struct collector collector_lustre = {
	.name = "lustre",
	.summary = "bytes and operations of Lustre file systems",
	.domain = DOMAIN_FILESYSTEM,
	.metric = lustre_metric,
	.nr_metrics = ARRAY_SIZE(lustre_metric),
	.state_size = sizeof(struct lustre),
	.tier = TIER_MEDIUM,
	.max_rows = MOUNTS_MAX,
	.probe = lustre_probe,
	.open = lustre_open,
	.sample = lustre_sample,
	.close = lustre_close,
};
