/* Devices are the job's as the summary says. Of a sliced one the slices count whose the job's are: the rest
 * of its memory is another job's. A driver may list a process on a slice and on the whole device again: the
 * larger of both sums holds. */
#include "query/stats_gpus.h"

#include <math.h>
#include <string.h>

void stats_gpus_init(struct stats_gpus *g)
{
	*g = (struct stats_gpus){.set = -1, .process_set = -1, .memory_now = NAN, .power_now = NAN};
}

void stats_gpus_release(struct stats_gpus *g)
{
	free(g->occupant);
	free(g->client);
	free(g->use);
	idmap_release(&g->use_of);
	stats_gpus_init(g);
}

void stats_gpus_bind(struct stats_gpus *g, const struct schema *schema)
{
	stats_gpus_release(g);
	g->set = schema_find_domain(schema, DOMAIN_GPU);
	g->process_set = schema_find_domain(schema, DOMAIN_GPU_PROCESS);
	g->used = gpu_column_in(schema, g->set, "gpu.memory.used");
	g->power = gpu_column_in(schema, g->set, "gpu.power");
	g->memory = gpu_column_in(schema, g->process_set, "gpu_process.memory");
}

/* ---- who is there ---- */

static bool is_slice_of(const struct summary_gpu *gpu, const struct summary_gpu *device)
{
	const char *parent = gpu->text[GPU_TEXT_PARENT], *host = gpu->text[GPU_TEXT_HOST];
	const char *instance = device->text[GPU_TEXT_INSTANCE], *there = device->text[GPU_TEXT_HOST];

	return parent && instance && !strcmp(parent, instance) && (!host || !there || !strcmp(host, there));
}

bool stats_gpu_counts(const struct summary *s, size_t gpu)
{
	if (!summary_gpu_is_of_job(&s->gpu[gpu]))
		return false;
	for (size_t i = 0; i < s->nr_gpus; i++)
		if (is_slice_of(&s->gpu[i], &s->gpu[gpu]) && summary_gpu_is_of_job(&s->gpu[i]))
			return false;
	return true;
}

static bool is_instance(const struct summary_gpu *gpu, const struct pair *name)
{
	const char *instance = gpu->text[GPU_TEXT_INSTANCE];

	return instance && strlen(instance) == name->len && !memcmp(instance, name->value, name->len);
}

static int on_device(struct stats_gpus *g, const struct store_record *record, const struct summary *s)
{
	const struct pair *name = pairs_find(record->pairs, "name");
	struct stats_gpu_occupant *occupant =
		array_reach(g->occupant, &g->nr_occupants, record->row, sizeof(*occupant));

	if (!occupant)
		return -ENOMEM;
	g->occupant = occupant;
	occupant[record->row] = (struct stats_gpu_occupant){.id = record->id};
	for (size_t i = 0; name && i < s->nr_gpus; i++)
		if (is_instance(&s->gpu[i], name)) {
			occupant[record->row].memory = stats_gpu_counts(s, i);
			occupant[record->row].power =
				summary_gpu_is_of_job(&s->gpu[i]) && !s->gpu[i].text[GPU_TEXT_PARENT];
		}
	return 0;
}

/* What this process uses; made when it is new. Negative: no memory. */
static int64_t use_of(struct stats_gpus *g, uint32_t process)
{
	uint32_t at = idmap_get(&g->use_of, process);
	struct stats_gpu_use *use;

	if (at != IDMAP_NONE)
		return at;
	use = g->nr_uses < g->cap_uses ? g->use : array_reach(g->use, &g->cap_uses, g->nr_uses, sizeof(*use));
	if (!use || idmap_put(&g->use_of, process, g->nr_uses) < 0)
		return -ENOMEM;
	g->use = use;
	use[g->nr_uses] = (struct stats_gpu_use){.process = process};
	return g->nr_uses++;
}

static int on_client(struct stats_gpus *g, const struct store_record *record)
{
	const struct pair *gpu = pairs_find(record->pairs, "gpu");
	struct stats_gpu_client *client =
		array_reach(g->client, &g->nr_clients, record->row, sizeof(*client));
	int64_t process = 0, use;

	if (!client)
		return -ENOMEM;
	g->client = client;
	client[record->row] = (struct stats_gpu_client){.id = 0};
	pairs_get_num(record->pairs, "process", &process);
	if (process <= 0 || process >= UINT32_MAX)
		return 0;
	use = use_of(g, (uint32_t)process);
	if (use < 0)
		return -ENOMEM;
	client[record->row] = (struct stats_gpu_client){.id = record->id,
		.use = (uint32_t)use,
		.slice = gpu && gpu->len && memchr(gpu->value, '/', gpu->len)};
	return 0;
}

int stats_gpus_instance(struct stats_gpus *g, const struct store_record *record, const struct summary *s)
{
	if (record->row == STORE_NO_ROW)
		return 0;
	if (g->set >= 0 && record->set == (uint32_t)g->set)
		return on_device(g, record, s);
	if (g->process_set >= 0 && record->set == (uint32_t)g->process_set)
		return on_client(g, record);
	return 0;
}

/* ---- ticks ---- */

static bool cell_of(const struct gpu_column *c, struct table *t, uint32_t row, double *ret)
{
	if (c->col < 0 || !(t->valid[row] >> c->col & 1))
		return false;
	*ret = (double)table_row(t, row)[c->col] * c->scale;
	return true;
}

static void add_known(double *sum, double value)
{
	*sum = isnan(*sum) ? value : *sum + value;
}

static void read_devices(struct stats_gpus *g, struct table *t)
{
	g->memory_now = g->power_now = NAN;
	for (uint32_t row = 0; row < MIN(t->nr_rows, g->nr_occupants); row++) {
		const struct stats_gpu_occupant *occupant = &g->occupant[row];
		double v;

		if (t->id[row] == ROW_FREE || occupant->id != t->id[row])
			continue;
		if (occupant->memory && cell_of(&g->used, t, row, &v))
			add_known(&g->memory_now, v);
		if (occupant->power && cell_of(&g->power, t, row, &v))
			add_known(&g->power_now, v);
	}
}

static void read_clients(struct stats_gpus *g, struct table *t)
{
	for (uint32_t i = 0; i < g->nr_uses; i++)
		g->use[i].whole = g->use[i].slices = 0;
	for (uint32_t row = 0; row < MIN(t->nr_rows, g->nr_clients); row++) {
		const struct stats_gpu_client *client = &g->client[row];
		double v;

		if (t->id[row] == ROW_FREE || client->id != t->id[row] || !cell_of(&g->memory, t, row, &v))
			continue;
		if (client->slice)
			g->use[client->use].slices += v;
		else
			g->use[client->use].whole += v;
	}
	for (uint32_t i = 0; i < g->nr_uses; i++)
		g->use[i].memory = MAX(g->use[i].whole, g->use[i].slices);
}

void stats_gpus_tick(struct stats_gpus *g, struct store_reader *reader)
{
	if (g->set >= 0 && g->nr_occupants)
		read_devices(g, store_reader_table(reader, (uint32_t)g->set));
	if (g->process_set >= 0 && g->nr_clients)
		read_clients(g, store_reader_table(reader, (uint32_t)g->process_set));
}
