/* Means and peaks under pytyche's names: see resources.h. */
#include "query/resources.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((double)(1 << 20))

/* ---- adding ---- */

static void mean_add(struct resource_mean *m, double v)
{
	m->most = m->nr ? MAX(m->most, v) : v;
	m->sum += v;
	m->nr++;
}

void resources_gpu(struct resources *r, double util_percent, double used_mib, double watts)
{
	if (isnan(util_percent) || isnan(used_mib) || isnan(watts))
		return;
	mean_add(&r->gpu_util, util_percent);
	mean_add(&r->vram_mb, used_mib);
	mean_add(&r->watts, watts);
}

void resources_memory(struct resources *r, double util_percent)
{
	if (!isnan(util_percent))
		mean_add(&r->mem_util, util_percent);
}

void resources_cpu(struct resources *r, double user_percent, double idle_percent)
{
	if (isnan(user_percent) || isnan(idle_percent))
		return;
	mean_add(&r->cpu_user, user_percent);
	mean_add(&r->cpu_idle, idle_percent);
}

static bool number_of(const char *item, size_t len, const char *key, double *ret)
{
	size_t n = strlen(key);
	char text[64], *end;

	if (len <= n + 1 || len - n - 1 >= sizeof(text) || strncmp(item, key, n) != 0 || item[n] != '=')
		return false;
	memcpy(text, item + n + 1, len - n - 1);
	text[len - n - 1] = 0;
	*ret = strtod(text, &end);
	return !*end && end > text && isfinite(*ret) && *ret > 0;
}

void resources_mark(struct resources *r, const char *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = strnlen(data + at, len - at);
		double v;

		if (number_of(data + at, n, "jax_peak_bytes_mb", &v))
			r->jax_peak_mb = MAX(r->jax_peak_mb, v);
		else if (number_of(data + at, n, "jax_peak_bytes", &v))
			r->jax_peak_mb = MAX(r->jax_peak_mb, v / MIB);
		at += n + 1;
	}
}

/* ---- the numbers ---- */

static double mean_of(const struct resource_mean *m)
{
	return m->nr ? m->sum / (double)m->nr : NAN;
}

static double most_of(const struct resource_mean *m)
{
	return m->nr ? m->most : NAN;
}

bool resources_number(const struct resources *r, unsigned i, const char **ret_name, double *ret)
{
	const struct {
		const char *name;
		double value;
	} row[NR_RESOURCES] = {
		{"peak_vram_mb", most_of(&r->vram_mb)},
		{"gpu_util_mean_pct", mean_of(&r->gpu_util)},
		{"gpu_util_max_pct", most_of(&r->gpu_util)},
		{"mem_util_mean_pct", mean_of(&r->mem_util)},
		{"mem_util_max_pct", most_of(&r->mem_util)},
		{"power_watts_mean", mean_of(&r->watts)},
		{"power_watts_max", most_of(&r->watts)},
		{"cpu_usr_mean_pct", mean_of(&r->cpu_user)},
		{"cpu_idle_mean_pct", mean_of(&r->cpu_idle)},
		{"jax_peak_bytes_mb", r->jax_peak_mb > 0 ? r->jax_peak_mb : NAN},
	};
	char text[400];

	*ret_name = row[i].name;
	if (isnan(row[i].value))
		return false;
	snprintf(text, sizeof(text), "%.1f", row[i].value);
	*ret = strtod(text, NULL);
	return true;
}

/* ---- rows ---- */

static size_t field_of(const struct data_table *t, const char *name)
{
	for (size_t i = 0; i < t->nr_fields; i++)
		if (!strcmp(t->field[i].name, name))
			return i;
	return SIZE_MAX;
}

/* The value as the files have it. */
static double value_of(const struct data_table *t, const struct data_table_batch *b, size_t field,
	uint32_t row, double factor, int digits)
{
	const struct field_cells *c = field == SIZE_MAX ? NULL : &b->cell[field];
	char text[400];
	double v;

	if (!c || (c->valid && !(c->valid[row >> 3] >> (row & 7) & 1)))
		return NAN;
	v = t->field[field].type == FIELD_INT ? (double)c->integer[row] : c->real[row];
	v *= t->field[field].scale * factor;
	if (digits < 0)
		return floor(v);
	snprintf(text, sizeof(text), "%.*f", digits, v);
	return strtod(text, NULL);
}

static void take_gpus(struct resources *r, const struct data_table *t, const struct data_table_batch *b)
{
	size_t util = field_of(t, "gpu.util"), used = field_of(t, "gpu.memory.used"),
	       power = field_of(t, "gpu.power"), memory = field_of(t, "gpu.mem_util");

	for (uint32_t row = 0; row < b->nr_rows; row++) {
		resources_gpu(r, value_of(t, b, util, row, 100, 0), value_of(t, b, used, row, 1 / MIB, -1),
			value_of(t, b, power, row, 1, 2));
		resources_memory(r, value_of(t, b, memory, row, 100, 0));
	}
}

static void take_cpus(struct resources *r, const struct data_table *t, const struct data_table_batch *b,
	struct texts instance)
{
	size_t name = field_of(t, "instance"), user = field_of(t, "cpu.user_ratio"),
	       idle = field_of(t, "cpu.idle_ratio");

	for (uint32_t row = 0; name != SIZE_MAX && row < b->nr_rows; row++)
		if (!strcmp(instance.text[b->cell[name].text[row]], "total"))
			resources_cpu(
				r, value_of(t, b, user, row, 100, 1), value_of(t, b, idle, row, 100, 1));
}

void resources_batch(struct resources *r, const struct data_table *t, const struct data_table_batch *b,
	const void *arg, resources_texts *texts)
{
	size_t name = field_of(t, "instance");

	if (!strcmp(t->name, "gpu"))
		take_gpus(r, t, b);
	else if (!strcmp(t->name, "cpu") && name != SIZE_MAX)
		take_cpus(r, t, b, texts(arg, b->table, name));
}

static struct texts texts_of(const void *arg, size_t table, size_t field)
{
	return tables_texts(arg, table, field);
}

int resources_read(const struct run *run, struct resources *ret, struct buf *reterr)
{
	static const char *const domain[] = {"gpu", "cpu"};
	struct tables_options options = {
		.from_s = NAN, .to_s = NAN, .domain = domain, .nr_domains = ARRAY_SIZE(domain)};
	struct data_table_batch batch;
	const struct data_table *table;
	struct tables *tables = NULL;
	int r = tables_open(run, &options, &tables, reterr);

	*ret = (struct resources){0};
	if (r < 0)
		return r == -ENOENT ? 0 : r; /* neither was recorded */
	tables_list(tables, &table);
	while ((r = tables_next(tables, &batch)) > 0)
		resources_batch(ret, &table[batch.table], &batch, tables, texts_of);
	tables_close(tables);
	return r;
}
