/* Levels are means over the time in which they were known, straight from reading to reading; counters are
 * what they grew by. Of the job's processes the sum at each tick is taken: a process that is gone counts
 * nothing from then on. What a driver tells as time on its engines (a counter) is taken as such, from zero
 * when the process was born in our time.
 *
 * A slice of a device (MIG) has processes of its own; those are the device's as well, whether the driver
 * lists them there again or not: the larger of both sums holds.
 *
 * Rejected: series of gpu_process metrics per device, integrated by their reader. They are folded over
 * devices, and groups change while the recording goes on. */
#include "query/gpus.h"

#include "base/owned.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char *const metric[NR_COURSES] = {
	[COURSE_UTIL]                  = "gpu.util",
	[COURSE_MEM_UTIL]              = "gpu.mem_util",
	[COURSE_ENCODER]               = "gpu.encoder",
	[COURSE_DECODER]               = "gpu.decoder",
	[COURSE_MEMORY_USED]           = "gpu.memory.used",
	[COURSE_MEMORY_TOTAL]          = "gpu.memory.total",
	[COURSE_POWER]                 = "gpu.power",
	[COURSE_POWER_LIMIT]           = "gpu.power_limit",
	[COURSE_ENERGY]                = "gpu.energy",
	[COURSE_TEMPERATURE]           = "gpu.temperature",
	[COURSE_CLOCK_SM]              = "gpu.clock.sm",
	[COURSE_CLOCK_GRAPHICS]        = "gpu.clock.graphics",
	[COURSE_THROTTLED_POWER]       = "gpu.throttle.power",
	[COURSE_THROTTLED_THERMAL]     = "gpu.throttle.thermal",
	[COURSE_THROTTLED_BOARD]       = "gpu.throttle.board",
	[COURSE_THROTTLED_RELIABILITY] = "gpu.throttle.reliability",
	[COURSE_ECC_CORRECTED]         = "gpu.ecc.corrected",
	[COURSE_ECC_UNCORRECTED]       = "gpu.ecc.uncorrected",
};
/* clang-format on */

const char *course_metric(enum gpu_course which)
{
	return metric[which];
}

/* ---- the recording ---- */

void gpus_init(struct gpus *g)
{
	*g = (struct gpus){.set = -1, .process_set = -1};
}

void gpus_release(struct gpus *g)
{
	for (size_t i = 0; i < g->nr; i++) {
		meta_release(&g->device[i]->about);
		free(g->device[i]->told);
		free(g->device[i]->name);
		free(g->device[i]);
	}
	free(g->device);
	free(g->client);
	free(g->assumed);
	gpus_init(g);
}

struct gpu_column gpu_column_in(const struct schema *schema, int set, const char *name)
{
	uint32_t found, col;

	if (set < 0 || !schema_find(schema, name, &found, &col) || found != (uint32_t)set)
		return (struct gpu_column){.col = -1};
	return (struct gpu_column){.col = (int)col, .scale = schema->set[set].metric[col].scale};
}

void gpus_bind(struct gpus *g, const struct schema *schema)
{
	gpus_release(g);
	g->set = schema_find_domain(schema, DOMAIN_GPU);
	g->process_set = schema_find_domain(schema, DOMAIN_GPU_PROCESS);
	for (unsigned i = 0; i < NR_COURSES; i++)
		g->column[i] = gpu_column_in(schema, g->set, metric[i]);
	g->memory = gpu_column_in(schema, g->process_set, "gpu_process.memory");
	g->util = gpu_column_in(schema, g->process_set, "gpu_process.util");
	g->busy = gpu_column_in(schema, g->process_set, "gpu_process.busy");
}

static uint32_t device_find(const struct gpus *g, const char *name, size_t len)
{
	for (size_t i = 0; i < g->nr; i++)
		if (strlen(g->device[i]->name) == len && !memcmp(g->device[i]->name, name, len))
			return (uint32_t)i;
	return GPUS_MOST;
}

/* "nvidia-0/mig-1" is a part of "nvidia-0". */
static int parent_of(const struct gpus *g, const char *name)
{
	const char *slash = strchr(name, '/');
	uint32_t parent = slash ? device_find(g, name, (size_t)(slash - name)) : GPUS_MOST;

	return parent == GPUS_MOST ? -1 : (int)parent;
}

static int device_add(struct gpus *g, const char *name, size_t len)
{
	struct gpu_track *track = calloc(1, sizeof(*track)), **more = NULL;

	if (track)
		track->name = strndup(name, len);
	if (track && track->name)
		more = ARRAY_ADD(g->device, g->nr);
	if (!more) {
		free(track ? track->name : NULL);
		free(track);
		return -ENOMEM;
	}
	*more = track;
	track->lost_ns = -1;
	track->parent = parent_of(g, track->name);
	if (track->parent >= 0)
		g->device[track->parent]->sliced = true;
	return 0;
}

static int on_device(struct gpus *g, const struct store_record *record)
{
	const struct pair *name = pairs_find(record->pairs, "name");
	struct gpu_track *d;
	uint32_t device;

	if (!name || !name->len || memchr(name->value, 0, name->len) || record->row == STORE_NO_ROW)
		return 0;
	device = device_find(g, name->value, name->len);
	if (device == GPUS_MOST && g->nr == GPUS_MOST) {
		g->left_out += !record->again;
		return 0;
	}
	if (device == GPUS_MOST && device_add(g, name->value, name->len) < 0)
		return -ENOMEM;
	d = g->device[MIN(device, g->nr - 1)];
	if (d->row != record->row || d->id != record->id || !d->lives)
		d->lost_ns = -1;
	d->row = record->row;
	d->id = record->id;
	d->lives = true;
	return meta_merge(&d->about, record->pairs) == -ENOMEM ? -ENOMEM : 0;
}

static int on_client(struct gpus *g, const struct store_record *record)
{
	const struct pair *gpu = pairs_find(record->pairs, "gpu"),
			  *assumed = pairs_find(record->pairs, "assumed");
	struct gpu_client *client;

	if (record->row == STORE_NO_ROW)
		return 0;
	client = array_reach(g->client, &g->nr_clients, record->row, sizeof(*client));
	if (!client)
		return -ENOMEM;
	g->client = client;
	client += record->row;
	if (client->id != record->id)
		*client = (struct gpu_client){.id = record->id};
	client->device = gpu ? device_find(g, gpu->value, gpu->len) : GPUS_MOST;
	if (!assumed || !assumed->len || g->assumed)
		return 0;
	g->assumed = strndup(assumed->value, assumed->len);
	return g->assumed ? 0 : -ENOMEM;
}

int gpus_instance(struct gpus *g, const struct store_record *record)
{
	if (g->set >= 0 && record->set == (uint32_t)g->set)
		return on_device(g, record);
	if (g->process_set >= 0 && record->set == (uint32_t)g->process_set)
		return on_client(g, record);
	return 0;
}

static struct gpu_track *device_in(const struct gpus *g, uint32_t row, uint32_t id)
{
	for (size_t i = 0; i < g->nr; i++)
		if (g->device[i]->row == row && g->device[i]->id == id)
			return g->device[i];
	return NULL;
}

/* "nvidia-0: it needs a reset", after the name; NULL: it is another one's. */
static const char *after_name(const char *why, const char *name)
{
	size_t len = strlen(name);

	return len && !strncmp(why, name, len) && !strncmp(why + len, ": ", 2) ? why + len + 2 : NULL;
}

void gpus_gone(struct gpus *g, const struct store_record *record)
{
	struct gpu_track *d;

	if (g->set < 0 || record->set != (uint32_t)g->set)
		return;
	d = device_in(g, record->row, record->id);
	if (!d)
		return;
	d->lives = false;
	d->lost_ns = MAX(record->time_ns, 0);
}

/* What the words are about stands before them: one device, or all of a maker. */
int gpus_told(struct gpus *g, const char *why)
{
	for (size_t i = 0; i < g->nr; i++) {
		struct gpu_track *d = g->device[i];
		const char *said = after_name(why, d->name);

		said = said ? said : after_name(why, meta_text(&d->about, "vendor"));
		if (!said)
			continue;
		free(d->told);
		d->told = strdup(said);
		if (!d->told)
			return -ENOMEM;
	}
	return 0;
}

/* What was chosen may be what it does not have: then it is silent, and not lost. */
bool gpu_is_lost(const struct gpu_track *d)
{
	return d->lost_ns >= 0 && (d->had_values || d->told);
}

/* ---- ticks ---- */

static void course_step(struct course *c, int64_t cell, double scale, int64_t time_ns)
{
	double now = (double)cell * scale, seconds = (double)(time_ns - c->time_ns) / 1e9;

	if (c->known && seconds > 0) {
		c->grown += (double)counter_grew(c->last, cell) * scale;
		c->integral += (c->value + now) / 2 * seconds;
		c->elapsed += seconds;
	}
	c->greatest = c->any ? MAX(c->greatest, now) : now;
	c->any = c->known = true;
	c->last = cell;
	c->value = now;
	c->time_ns = time_ns;
}

static void device_step(struct gpus *g, struct gpu_track *d, struct table *t, uint32_t row, int64_t time_ns)
{
	const int64_t *cell = table_row(t, row);

	/* One that falls off the bus keeps its row and has no values. */
	if (t->valid[row]) {
		d->had_values = true;
		d->lost_ns = -1;
		free(d->told);
		d->told = NULL;
	} else if (d->lost_ns < 0) {
		d->lost_ns = time_ns;
	}
	for (unsigned i = 0; i < NR_COURSES; i++) {
		int col = g->column[i].col;

		if (col < 0 || !(t->valid[row] >> col & 1))
			d->course[i].known = false; /* nothing is known of the time until it is back */
		else
			course_step(&d->course[i], cell[col], g->column[i].scale, time_ns);
	}
}

static void read_devices(struct gpus *g, struct table *t, int64_t time_ns)
{
	for (size_t i = 0; i < g->nr; i++) {
		struct gpu_track *d = g->device[i];

		if (d->row < t->nr_rows && t->id[d->row] == d->id && d->id != ROW_FREE)
			device_step(g, d, t, d->row, time_ns);
		for (unsigned k = 0; !d->lives && k < NR_COURSES; k++)
			d->course[k].known = false;
	}
}

/* What the engines did for it since the last tick. */
static double client_busy(struct gpu_client *c, const struct live_process *p, int64_t cell, double scale)
{
	bool from_zero = p && !p->late;
	int64_t before = c->known ? c->busy : from_zero ? 0 : cell;

	c->known = true;
	c->busy = cell;
	return (double)counter_grew(before, cell) * scale;
}

static bool cell_of(const struct gpu_column *c, struct table *t, uint32_t row, int64_t *ret)
{
	if (c->col < 0 || !(t->valid[row] >> c->col & 1))
		return false;
	*ret = table_row(t, row)[c->col];
	return true;
}

static void read_client(struct gpus *g, struct table *t, uint32_t row, const struct live_processes *live,
	const struct occupant *in)
{
	struct gpu_client *c = &g->client[row];
	const struct live_process *p = in->process ? live_find(live, in->process) : NULL;
	uint64_t groups = p ? p->groups : in->groups;
	int64_t memory = 0, util = 0, busy = 0;
	bool has_memory = cell_of(&g->memory, t, row, &memory), has_util = cell_of(&g->util, t, row, &util);
	bool has_busy = cell_of(&g->busy, t, row, &busy);
	double engines = has_busy ? client_busy(c, p, busy, g->busy.scale) : 0;

	if (c->device >= g->nr)
		return;
	for (unsigned line = 0; line < ACCOUNTS_MOST; line++) {
		struct gpu_use *use = &g->device[c->device]->use[line];

		if (line && !(groups >> (line - 1) & 1))
			continue;
		use->any = true;
		use->has_memory |= has_memory;
		use->has_util |= has_util || has_busy;
		use->memory_now += has_memory ? (double)memory * g->memory.scale : 0;
		use->util_now += has_util ? (double)util * g->util.scale : 0;
		use->busy_s += has_util ? 0 : engines;
		use->counted |= has_busy && !has_util;
	}
}

/* What its slices were used for, the device was. */
static void add_slices(struct gpus *g, size_t device, unsigned line)
{
	struct gpu_use *whole = &g->device[device]->use[line];
	double memory = 0, util = 0;

	for (size_t i = device + 1; i < g->nr; i++) {
		const struct gpu_use *part = &g->device[i]->use[line];

		if (g->device[i]->parent != (int)device || !part->any)
			continue;
		whole->any = true;
		whole->has_memory |= part->has_memory;
		whole->counted |= part->counted;
		memory += part->memory_now;
		util += part->util_now;
	}
	whole->memory_now = MAX(whole->memory_now, memory);
	whole->util_now = MAX(whole->util_now, util);
}

static void use_step(struct gpu_use *use, double seconds)
{
	use->memory_peak = MAX(use->memory_peak, use->memory_now);
	use->busy_s += (use->util_last + use->util_now) / 2 * seconds;
	use->util_last = use->util_now;
}

void gpus_tick(struct gpus *g, const struct live_processes *live)
{
	const struct walk *walk = live->walk;
	unsigned lines = 1 + walk->group.nr;
	int64_t time_ns = walk->time_ns;
	struct table *t;

	if (g->set < 0 || !g->nr)
		return;
	read_devices(g, walk_table(walk, (uint32_t)g->set), time_ns);
	for (size_t i = 0; i < g->nr; i++)
		for (unsigned line = 0; line < lines; line++)
			g->device[i]->use[line].memory_now = g->device[i]->use[line].util_now = 0;
	t = g->process_set < 0 ? NULL : walk_table(walk, (uint32_t)g->process_set);
	for (uint32_t row = 0; t && row < MIN(t->nr_rows, g->nr_clients); row++) {
		const struct occupant *in = t->id[row] == ROW_FREE
			? NULL
			: walk_occupant(walk, (uint32_t)g->process_set, row, t->id[row]);

		if (in && g->client[row].id == in->id)
			read_client(g, t, row, live, in);
	}
	for (size_t i = 0; i < g->nr; i++) {
		struct gpu_track *d = g->device[i];
		double seconds =
			d->lives && d->lived && !gpu_is_lost(d) ? (double)(time_ns - g->tick_ns) / 1e9 : 0;

		for (unsigned line = 0; line < lines; line++) {
			if (d->sliced)
				add_slices(g, i, line);
			use_step(&d->use[line], MAX(seconds, 0));
		}
		d->observed_s += MAX(seconds, 0);
		d->lived = d->lives;
	}
	g->tick_ns = time_ns;
}
