/* NFS as this client sees it (proc/PID/mountstats): what programs read and wrote, the requests to the
 * servers, and their time and repetitions. The text lists the mounts of the job's first process; reading it
 * does not contact a server, so that it is safe when one is down.
 *
 * The kernel counts by file system, not by mount: two mounts of one show the same numbers, and the second
 * stands apart. That they are the same is known from the device number in mountinfo, which mountstats does
 * not have. The line of the transport is shared even between file systems of one server, so only its
 * reconnections are taken, and not added up. */
#include "collect/keyed.h"
#include "read/mountinfo.h"

#include <string.h>

enum source { BYTES, OPERATION, ALL_OPERATIONS, TRANSPORT };

/* Words of a line of operations. */
enum {
	OPS = 1,
	TRANSMISSIONS,
	TIMEOUTS,
	SENT,
	RECEIVED,
	QUEUED,
	ROUND_TRIP,
	TOTAL_TIME,
	ERRORS,
	NR_WORDS = ERRORS
};

/* clang-format off */
#define TWO_BYTES(a, b) {.source = BYTES, .col = a, .arg = b}
#define OF(op, word) {.source = OPERATION, .key = op, .col = word}
#define OF_ALL(word, less) {.source = ALL_OPERATIONS, .col = word, .arg = less}

static const struct metric nfs_metric[] = {
	{"nfs.read.bytes",         "Bytes that programs read from files, from the cache or past it.", TWO_BYTES(1, 3), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.nfs", TIER_MEDIUM, false},
	{"nfs.write.bytes",        "Bytes that programs wrote to files.", TWO_BYTES(2, 4), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.nfs", TIER_MEDIUM, false},
	{"nfs.read.server_bytes",  "Bytes read from the server.", TWO_BYTES(5, 0), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.nfs", TIER_MEDIUM, false},
	{"nfs.write.server_bytes", "Bytes written to the server.", TWO_BYTES(6, 0), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.nfs", TIER_MEDIUM, false},
	{"nfs.ops",                "Requests of all kinds that were answered.", OF_ALL(OPS, 0), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"nfs.retransmits",        "Requests that were sent again.", OF_ALL(TRANSMISSIONS, OPS), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"nfs.timeouts",           "Requests that were not answered in time.", OF_ALL(TIMEOUTS, 0), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"nfs.errors",             "Requests that ended with an error.", OF_ALL(ERRORS, 0), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"nfs.read.ops",           "Read requests that were answered.", OF("READ", OPS), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"nfs.read.rtt",           "Time from sending read requests to their answers, added up over all of them.", OF("READ", ROUND_TRIP), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	{"nfs.read.time",          "Time that read requests took, waiting to be sent included, added up over all of them.", OF("READ", TOTAL_TIME), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	{"nfs.write.ops",          "Write requests that were answered.", OF("WRITE", OPS), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"nfs.write.rtt",          "Time from sending write requests to their answers, added up over all of them.", OF("WRITE", ROUND_TRIP), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	{"nfs.write.time",         "Time that write requests took, waiting to be sent included, added up over all of them.", OF("WRITE", TOTAL_TIME), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	{"nfs.getattr.ops",        "Requests for the attributes of files.", OF("GETATTR", OPS), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"nfs.connects",           "Connections made to the server.", {.source = TRANSPORT}, SCALE_ONE, KIND_COUNTER, FOLD_MAX, UNIT_COUNT, NULL, TIER_MEDIUM, false},
};
/* clang-format on */

#define MOUNTS_MAX 64

extern const struct collector collector_nfs;

struct nfs {
	struct textfile file; /* mountstats */
	pid_t root;	      /* the process that it was read from, or tried */
	uint8_t turn;	      /* changes with every reading */
	bool full, explained;
	struct nfs_slot {
		bool used;
		uint8_t turn;
		uint32_t row;
		char point[MOUNT_POINT_SIZE];
		char device[24]; /* number, "" where mountinfo does not have it */
	} slot[MOUNTS_MAX];
};

/* The numbers of one mount. */
struct nfs_found {
	int64_t value[ARRAY_SIZE(nfs_metric)];
	bool known[ARRAY_SIZE(nfs_metric)];
};

struct header { /* "device server:/home mounted on /home with fstype nfs4 statvers=1.1" */
	struct text source, point, type;
};

/* The next line without the blanks at its start; false at the end of the text. */
static bool next_line(const char **text, const char *end, struct text *ret)
{
	const char *p = *text, *stop = memchr(p, '\n', (size_t)(end - p));

	if (!stop)
		return false;
	while (p < stop && (*p == ' ' || *p == '\t'))
		p++;
	*ret = (struct text){p, (size_t)(stop - p)};
	*text = stop + 1;
	return true;
}

/* Cuts off what stands in front of the words; false when they are not in the line. */
static bool cut(struct text *line, const char *words, struct text *ret)
{
	const char *at = memmem(line->p, line->len, words, strlen(words));

	if (!at)
		return false;
	*ret = (struct text){line->p, (size_t)(at - line->p)};
	line->len -= ret->len + strlen(words);
	line->p = at + strlen(words);
	return true;
}

static bool parse_header(struct text line, struct header *ret)
{
	struct text nothing;

	if (!cut(&line, "device ", &nothing) || nothing.len || !cut(&line, " mounted on ", &ret->source) ||
		!cut(&line, " with fstype ", &ret->point))
		return false;
	/* Without numbers there is no version of them. */
	return cut(&line, " statvers=", &ret->type) &&
		(text_is(ret->type, "nfs") || text_is(ret->type, "nfs4"));
}

static bool line_begins(struct text line, const char *word, const char **ret_rest)
{
	*ret_rest = line.p + strlen(word);
	return line.len > strlen(word) && text_starts(line, word);
}

/* Up to `max` numbers into word[1..]; how many. */
static unsigned numbers(const char *p, const char *end, int64_t *word, unsigned max)
{
	unsigned n = 0;

	for (; n < max; n++) {
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (!read_number(&p, end, word + n + 1))
			break;
	}
	return n;
}

static void put(struct nfs_found *f, size_t metric, int64_t value)
{
	f->value[metric] += value;
	f->known[metric] = true;
}

static void take_bytes(struct nfs_found *f, const int64_t *word, unsigned nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(nfs_metric); i++) {
		const struct metric_at *at = &nfs_metric[i].at;

		if (at->source == BYTES && at->col <= (int)nr && at->arg <= (int)nr)
			put(f, i, word[at->col] + (at->arg ? word[at->arg] : 0));
	}
}

/* "READ: 1000 1000 0 ...": the name up to the colon, and its words. */
static void take_operation(struct nfs_found *f, struct text line)
{
	struct text name = text_cut(&line, ':');
	int64_t word[NR_WORDS + 1];
	unsigned nr = numbers(line.p, line.p + line.len, word, NR_WORDS);

	for (size_t i = 0; nr && i < ARRAY_SIZE(nfs_metric); i++) {
		const struct metric_at *at = &nfs_metric[i].at;

		if (at->col > (int)nr)
			continue;
		if (at->source == ALL_OPERATIONS)
			put(f, i, word[at->col] - (at->arg ? word[at->arg] : 0));
		if (at->source == OPERATION && text_is(name, at->key))
			put(f, i, word[at->col]);
	}
}

/* "xprt: tcp 0 1 3 ...": port, binds, connections. UDP has none; several lines are several connections. */
static void take_transport(struct nfs_found *f, const char *p, const char *end)
{
	int64_t word[4];

	if (end - p < 5 || (memcmp(p, "tcp ", 4) != 0 && memcmp(p, "rdma ", 5) != 0))
		return;
	p = memchr(p, ' ', (size_t)(end - p));
	for (size_t i = 0; numbers(p, end, word, 3) == 3 && i < ARRAY_SIZE(nfs_metric); i++)
		if (nfs_metric[i].at.source == TRANSPORT)
			put(f, i, word[3]);
}

/* The lines of one mount, up to the header of the next, which stays in the text. */
static void read_mount(const char **text, const char *end, struct nfs_found *ret)
{
	struct text line;
	bool operations = false;
	int64_t word[9];

	*ret = (struct nfs_found){0};
	for (const char *p = *text, *rest; next_line(&p, end, &line); *text = p) {
		const char *stop = line.p + line.len;

		if (line_begins(line, "device ", &rest))
			return;
		if (operations)
			take_operation(ret, line);
		else if (line_begins(line, "bytes:", &rest))
			take_bytes(ret, word, numbers(rest, stop, word, 8));
		else if (line_begins(line, "xprt:\t", &rest) || line_begins(line, "xprt: ", &rest))
			take_transport(ret, rest, stop);
		else if (line_begins(line, "per-op stat", &rest))
			operations = true;
	}
}

/* The number of the device that is mounted there, as the process sees it. */
static void find_device(struct nfs *n, struct collect_context *ctx, struct nfs_slot *slot)
{
	struct textfile file = {0};
	struct mount m;

	if (mounts_open(&file, ctx->env, n->root, "mountinfo") < 0)
		return;
	if (mountinfo_find_path(file.text, file.text + strlen(file.text), slot->point, &m))
		mount_unescape(m.device, slot->device, sizeof(slot->device));
	textfile_close(&file, ctx->env);
}

static bool is_twin(const struct nfs *n, const struct nfs_slot *slot)
{
	for (const struct nfs_slot *other = n->slot; other < n->slot + MOUNTS_MAX; other++)
		if (other != slot && other->used && *slot->device && !strcmp(other->device, slot->device))
			return true;
	return false;
}

static struct nfs_slot *join(struct nfs *n, struct collect_context *ctx, struct nfs_slot *slot,
	const struct header *h, const char *point)
{
	char source[512] = "";
	struct about about[] = {{"device", source}, {"apart", "another mount of it counts the same"}};
	int row = -ENOSPC;

	if (slot) {
		*slot = (struct nfs_slot){0};
		snprintf(slot->point, sizeof(slot->point), "%s", point);
		find_device(n, ctx, slot);
		mount_unescape(h->source, source, sizeof(source));
		row = ctx->join_about(ctx, point, about, is_twin(n, slot) ? 2 : 1);
	}
	if (row < 0) {
		if (!n->full)
			collect_tell(ctx, &collector_nfs, FAILED,
				"there are more NFS mounts than can be recorded: some are left out", NULL);
		n->full = true;
		return NULL;
	}
	slot->row = (uint32_t)row;
	slot->used = true;
	return slot;
}

/* The slot of the mount; NULL when there are too many, or when it is not the first at its mount point. */
static struct nfs_slot *find_slot(struct nfs *n, struct collect_context *ctx, const struct header *h)
{
	struct nfs_slot *unused = NULL;
	char point[MOUNT_POINT_SIZE];

	if (!mount_unescape(h->point, point, sizeof(point)))
		return NULL;
	for (struct nfs_slot *slot = n->slot; slot < n->slot + MOUNTS_MAX; slot++) {
		if (slot->used && !strcmp(slot->point, point))
			return slot->turn == n->turn ? NULL : slot;
		if (!slot->used && !unused)
			unused = slot;
	}
	return join(n, ctx, unused, h, point);
}

static void set_cells(struct collect_context *ctx, uint32_t row, const struct nfs_found *f)
{
	table_touch(ctx->table, row);
	for (size_t i = 0; i < ARRAY_SIZE(nfs_metric); i++)
		collect_put(ctx, row, i, f->known[i], f->value[i]);
}

static void read_all(struct nfs *n, struct collect_context *ctx, size_t len)
{
	const char *text = n->file.text, *end = text + len;
	struct text line;

	n->turn++;
	while (next_line(&text, end, &line)) {
		struct header header;
		struct nfs_found found;
		struct nfs_slot *slot;

		if (!parse_header(line, &header))
			continue;
		read_mount(&text, end, &found);
		slot = find_slot(n, ctx, &header);
		if (!slot)
			continue;
		slot->turn = n->turn;
		set_cells(ctx, slot->row, &found);
		for (int source = BYTES; !n->explained && source <= TRANSPORT; source++)
			collect_explain(ctx, &collector_nfs, source, slot->row);
		n->explained = true;
	}
}

/* The module makes this folder; without it, nothing was ever mounted. */
static int nfs_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_folder(env, "proc/fs/nfsfs", (struct trouble){"NFS is not in use on this machine", NULL},
		reterr_why);
}

static int nfs_open(void *state, struct collect_context *ctx)
{
	struct nfs *n = state;

	n->root = ctx->feed->root;
	return MIN(mounts_open(&n->file, ctx->env, n->root, "mountstats"), 0);
}

/* Again when the job's first process is another or has ended. */
static ssize_t read_text(struct nfs *n, struct collect_context *ctx)
{
	ssize_t r = n->file.text && n->root == ctx->feed->root ? textfile_read(&n->file, ctx->env) : -ESRCH;

	if (r >= 0)
		return r;
	n->root = ctx->feed->root;
	textfile_close(&n->file, ctx->env);
	r = mounts_open(&n->file, ctx->env, n->root, "mountstats");
	return r < 0 ? r : (ssize_t)strlen(n->file.text);
}

static int nfs_sample(void *state, struct collect_context *ctx)
{
	struct nfs *n = state;
	ssize_t r = read_text(n, ctx);

	if (r >= 0)
		read_all(n, ctx, (size_t)r);
	for (struct nfs_slot *slot = n->slot; slot < n->slot + MOUNTS_MAX; slot++) {
		if (!slot->used || (r >= 0 && slot->turn == n->turn))
			continue;
		if (r < 0) {
			collect_lost(ctx, slot->row);
			continue;
		}
		ctx->leave(ctx, slot->row);
		slot->used = false;
	}
	return (int)MIN(r, 0);
}

static void nfs_close(void *state, struct collect_context *ctx)
{
	textfile_close(&((struct nfs *)state)->file, ctx->env);
}

const struct collector collector_nfs = {
	.name = "nfs",
	.summary = "bytes, requests and delays of NFS mounts",
	.domain = DOMAIN_FILESYSTEM,
	.metric = nfs_metric,
	.nr_metrics = ARRAY_SIZE(nfs_metric),
	.state_size = sizeof(struct nfs),
	.tier = TIER_MEDIUM,
	.max_rows = MOUNTS_MAX,
	.probe = nfs_probe,
	.open = nfs_open,
	.sample = nfs_sample,
	.close = nfs_close,
};
