/* Block devices (proc/diskstats), whole ones only: a partition's numbers are in its disk's already.
 *
 * What lies on other disks (device mapper, RAID, loop files) counts the same bytes a second time, and is an
 * instance that stands apart; so is what is no disk at all (zram). A device that has done nothing since boot
 * is no instance before it does: every kernel has eight such loop devices. What kind of device it is, sysfs
 * tells when its line first shows activity (this is rare, so it is done at once: what the device does until
 * then is lost); where there is no sysfs (some containers), the name decides.
 *
 * Old kernels give 14 columns, discards came with 4.18 and flushes with 5.5. Times are 32-bit milliseconds,
 * which wrap: the query sees a fall, as it does when a driver is loaded anew.
 *
 * One file per device (sys/block/NAME/stat) was rejected: a system call each, and the same numbers. */
#include "collect/keyed.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define COLUMN(n) {.col = n}

static const struct metric disk_metric[] = {
	{"disk.read.ops",       "Reads that were completed.", COLUMN(4), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "node.iops", TIER_TICK, false},
	{"disk.read.merged",    "Reads that were joined with others before they were sent.", COLUMN(5), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, true},
	{"disk.read.bytes",     "Bytes read from the disk.", COLUMN(6), SCALE_SECTORS, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.disk", TIER_TICK, false},
	{"disk.read.time",      "Time that reads took, added up over all of them.", COLUMN(7), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"disk.write.ops",      "Writes that were completed.", COLUMN(8), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "node.iops", TIER_TICK, false},
	{"disk.write.merged",   "Writes that were joined with others before they were sent.", COLUMN(9), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, true},
	{"disk.write.bytes",    "Bytes written to the disk.", COLUMN(10), SCALE_SECTORS, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.disk", TIER_TICK, false},
	{"disk.write.time",     "Time that writes took, added up over all of them.", COLUMN(11), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"disk.queue",          "Operations that the disk has not finished yet.", COLUMN(12), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"disk.busy",           "Time in which the disk had something to do.", COLUMN(13), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"disk.queue_time",     "Time that operations were in the queue or at the disk, added up over all of them.", COLUMN(14), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"disk.discard.ops",    "Discards that were completed: the disk may forget the data.", COLUMN(15), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"disk.discard.merged", "Discards that were joined with others before they were sent.", COLUMN(16), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, true},
	{"disk.discard.bytes",  "Bytes that were discarded: the disk may forget them.", COLUMN(17), SCALE_SECTORS, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"disk.discard.time",   "Time that discards took, added up over all of them.", COLUMN(18), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, true},
	{"disk.flush.ops",      "Flushes of the disk's own cache.", COLUMN(19), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"disk.flush.time",     "Time that flushes took, added up over all of them.", COLUMN(20), SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
};
/* clang-format on */

#define DISKS_MAX 256
#define LINES_MAX 1024 /* partitions and idle devices included; lines beyond are not looked at */
#define NAME_SIZE 64   /* the kernel's own limit is 32 */

extern const struct collector collector_disk;

/* One line: "259 0 nvme0n1 341099 25208 ...". Number and name are the key, as the kernel prints them: another
 * device of the same name is another key. */
struct disk_line {
	const char *key, *name, *end;
	size_t key_len, name_len;
	const char *numbers; /* behind the name */
};

enum known { UNKNOWN, NOT_WANTED, COUNTED };

struct disk {
	struct textfile file;
	struct columns_reader reader;
	int queue;    /* column in the table, or -1 */
	uint8_t turn; /* changes with every reading */
	bool full;    /* rows are used up, which was reported */
	bool explained;
	unsigned nr_slots;
	struct disk_slot {
		char key[NAME_SIZE];
		uint8_t key_len; /* 0: free */
		uint8_t turn;
		uint8_t known;
		uint16_t row;
	} slot[LINES_MAX]; /* in the order of lines, as long as no device comes or goes */
};

/* Where the word at p ends. */
static const char *word_end(const char *p, const char *end)
{
	while (p < end && *p != ' ')
		p++;
	return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && *p == ' ')
		p++;
	return p;
}

/* Takes a line off the text; false at its end. A malformed line has no name. */
static bool next_line(const char **text, const char *end, struct disk_line *ret)
{
	const char *p, *stop = memchr(*text, '\n', (size_t)(end - *text));

	if (!stop)
		return false;
	*ret = (struct disk_line){.key = skip_blanks(*text, stop), .end = stop};
	*text = stop + 1;
	p = skip_blanks(word_end(ret->key, stop), stop);
	p = skip_blanks(word_end(p, stop), stop);
	ret->name = p;
	ret->numbers = word_end(p, stop);
	ret->name_len = (size_t)(ret->numbers - p);
	ret->key_len = (size_t)(ret->numbers - ret->key);
	return true;
}

static bool is_idle(const struct disk_line *line)
{
	for (const char *p = line->numbers; p < line->end; p++)
		if (*p > '0' && *p <= '9')
			return false;
	return true;
}

/* "sda1" is of "sda", "nvme0n1p2" of "nvme0n1": a digit or, behind a digit, the letter p separates the
 * two. */
static bool is_named_after(const struct disk_line *line, const char *name, size_t len)
{
	const char *rest = name + line->name_len, *end = name + len;

	if (!line->name_len || len <= line->name_len || memcmp(name, line->name, line->name_len) != 0)
		return false;
	if (rest[-1] >= '0' && rest[-1] <= '9' && *rest++ != 'p')
		return false;
	if (rest == end)
		return false;
	while (rest < end && *rest >= '0' && *rest <= '9')
		rest++;
	return rest == end;
}

static bool find_line(const struct disk *d, size_t len, const char *name,
	bool (*fits)(const struct disk_line *line, const char *name, size_t len), struct disk_line *ret)
{
	const char *text = d->file.text, *end = text + len;
	size_t name_len = strlen(name);

	while (next_line(&text, end, ret))
		if (fits(ret, name, name_len))
			return true;
	return false;
}

static bool is_named(const struct disk_line *line, const char *name, size_t len)
{
	return line->name_len == len && memcmp(line->name, name, len) == 0;
}

static bool exists(struct collect_context *ctx, const char *folder, const char *name, const char *file)
{
	char path[2 * NAME_SIZE];

	snprintf(path, sizeof(path), "%s/%s%s", folder, name, file);
	return env_try(ctx->env, path) == 0;
}

/* The disk of which "nvme0c1n1" is one path: "nvme0n1". */
static bool nvme_head(const char *name, char *ret, size_t size)
{
	unsigned subsystem, controller, space;
	int n = 0;

	if (sscanf(name, "nvme%3uc%3un%3u%n", &subsystem, &controller, &space, &n) != 3 || name[n])
		return false;
	snprintf(ret, size, "nvme%un%u", subsystem, space);
	return true;
}

/* Devices that are known by their names alone, also without sysfs. */
static const struct {
	const char *prefix, *why;
	bool with_sysfs; /* else only where there is no sysfs */
} kind[] = {
	{"loop", "it is a file on another disk", true},
	{"zram", "it is memory, not a disk", true},
	{"ram", "it is memory, not a disk", true},
	{"drbd", "the disk below it counts the same", true},
	{"zd", "the disks of its pool count the same", true},
	{"dm-", "the disks below it count the same", false},
	{"md", "the disks below it count the same", false},
	{"bcache", "the disks below it count the same", false},
};

/* Why it is not to be added to the others; NULL: it is. */
static const char *why_apart(
	struct disk *d, struct collect_context *ctx, const char *name, bool in_sysfs, size_t len)
{
	char path[NAME_SIZE + 24], head[NAME_SIZE];
	struct trouble ignored;
	struct disk_line line;

	for (size_t i = 0; i < ARRAY_SIZE(kind); i++) {
		size_t n = strlen(kind[i].prefix);

		if (strncmp(name, kind[i].prefix, n) == 0 && name[n] >= '0' && name[n] <= '9' &&
			(kind[i].with_sysfs || !in_sysfs))
			return kind[i].why;
	}
	/* Before 6.4 only the paths counted, and the disk itself shows nothing but zeros. */
	if (nvme_head(name, head, sizeof(head)) && find_line(d, len, head, is_named, &line) &&
		!is_idle(&line))
		return "it is one of the paths to a disk that counts the same";
	snprintf(path, sizeof(path), "sys/block/%s/slaves", name);
	if (in_sysfs && probe_folder(ctx->env, path, (struct trouble){0}, &ignored) == 0)
		return "the disks below it count the same";
	return NULL;
}

/* A device that has begun to work: an instance, unless it is a partition. */
static enum known admit(struct disk *d, struct collect_context *ctx, const struct disk_line *line, size_t len,
	struct disk_slot *slot)
{
	struct about about = {"apart", NULL};
	char name[NAME_SIZE], folder[NAME_SIZE];
	bool in_sysfs;
	struct disk_line whole;
	int row;

	snprintf(name, sizeof(name), "%.*s", (int)line->name_len, line->name);
	snprintf(folder, sizeof(folder), "%s", name);
	for (char *p = folder; *p; p++)
		*p = *p == '/' ? '!' : *p; /* as sysfs has it: cciss!c0d0 */
	in_sysfs = exists(ctx, "sys/block", folder, "");
	if (!in_sysfs &&
		(exists(ctx, "sys/class/block", folder, "/partition") ||
			find_line(d, len, name, is_named_after, &whole)))
		return NOT_WANTED;
	about.value = why_apart(d, ctx, folder, in_sysfs, len);
	row = ctx->join_about(ctx, name, &about, about.value != NULL);
	if (row < 0) {
		if (!d->full)
			collect_tell(ctx, &collector_disk, FAILED,
				"there are more disks than can be recorded: some are left out", NULL);
		d->full = true;
		return NOT_WANTED;
	}
	slot->row = (uint16_t)row;
	return COUNTED;
}

/* The slot of this line: most likely the one behind the last; NULL when there is no room. */
static struct disk_slot *find_slot(struct disk *d, const struct disk_line *line, unsigned *hint)
{
	struct disk_slot *free = NULL;

	for (unsigned n = 0; n < d->nr_slots; n++) {
		unsigned i = (*hint + n) % d->nr_slots;
		struct disk_slot *slot = d->slot + i;

		if (slot->key_len == line->key_len && memcmp(slot->key, line->key, line->key_len) == 0) {
			*hint = i + 1;
			return slot;
		}
		if (!slot->key_len && !free)
			free = slot;
	}
	if (!free && d->nr_slots == LINES_MAX)
		return NULL;
	free = free ? free : d->slot + d->nr_slots++;
	*free = (struct disk_slot){.key_len = (uint8_t)line->key_len};
	memcpy(free->key, line->key, line->key_len);
	return free;
}

static void read_row(struct disk *d, struct collect_context *ctx, const struct disk_line *line, uint32_t row)
{
	struct table *t = ctx->table;

	columns_read(&d->reader, line->key, (size_t)(line->end - line->key), 1, t, row);
	/* It is counted by additions and subtractions on several CPUs, and was seen below zero. */
	if (d->queue >= 0 && (uint64_t)table_row(t, row)[d->queue] > INT32_MAX)
		table_unset(t, row, (uint32_t)d->queue);
	if (!d->explained)
		collect_explain(ctx, &collector_disk, 0, row);
	d->explained = true;
}

static void read_lines(struct disk *d, struct collect_context *ctx, size_t len, bool in_tick)
{
	const char *text = d->file.text, *end = text + len;
	unsigned hint = 0;
	struct disk_line line;

	d->turn++;
	while (next_line(&text, end, &line)) {
		struct disk_slot *slot =
			line.name_len && line.key_len < NAME_SIZE ? find_slot(d, &line, &hint) : NULL;

		if (!slot)
			continue;
		slot->turn = d->turn;
		if (slot->known == UNKNOWN && !is_idle(&line))
			slot->known = (uint8_t)admit(d, ctx, &line, len, slot);
		if (slot->known != COUNTED)
			continue;
		if (in_tick)
			table_touch(ctx->table, slot->row);
		read_row(d, ctx, &line, slot->row);
	}
}

static int disk_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, "proc/diskstats",
		(struct trouble){"this kernel does not report block devices in proc/diskstats", NULL},
		reterr_why);
}

static int disk_open(void *state, struct collect_context *ctx)
{
	struct disk *d = state;
	int r = textfile_open(&d->file, ctx->env, "proc/diskstats", false);

	if (r < 0)
		return r;
	columns_init(&d->reader, disk_metric, ARRAY_SIZE(disk_metric), 0, &ctx->map);
	d->queue = -1;
	for (size_t i = 0; i < ARRAY_SIZE(disk_metric); i++)
		if (disk_metric[i].kind == KIND_GAUGE)
			d->queue = ctx->map.col[i];
	read_lines(d, ctx, strlen(d->file.text), false);
	return 0;
}

static int disk_sample(void *state, struct collect_context *ctx)
{
	struct disk *d = state;
	ssize_t n = textfile_read(&d->file, ctx->env);

	if (n >= 0)
		read_lines(d, ctx, (size_t)n, true);
	for (struct disk_slot *slot = d->slot; slot < d->slot + d->nr_slots; slot++) {
		if (!slot->key_len || (n >= 0 && slot->turn == d->turn))
			continue;
		if (n < 0) {
			if (slot->known == COUNTED)
				collect_lost(ctx, slot->row);
			continue;
		}
		if (slot->known == COUNTED)
			ctx->leave(ctx, slot->row);
		*slot = (struct disk_slot){0};
	}
	return (int)MIN(n, 0);
}

static void disk_close(void *state, struct collect_context *ctx)
{
	textfile_close(&((struct disk *)state)->file, ctx->env);
}

const struct collector collector_disk = {
	.name = "disk",
	.summary = "reads, writes and busy time of whole disks",
	.domain = DOMAIN_DISK,
	.metric = disk_metric,
	.nr_metrics = ARRAY_SIZE(disk_metric),
	.state_size = sizeof(struct disk),
	.tier = TIER_TICK,
	.max_rows = DISKS_MAX,
	.probe = disk_probe,
	.open = disk_open,
	.sample = disk_sample,
	.close = disk_close,
};
