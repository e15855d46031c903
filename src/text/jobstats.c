/* The line that jobstats (github.com/PrincetonUniversity/jobstats) puts into AdminComment of SLURM's
 * accounting, and that reportseff, job_defense_shield and jobstats itself read from there:
 *
 *	{"nodes":{HOST:{"cpus","total_time","used_memory","total_memory",
 *		"gpu_utilization":{N:…},"gpu_used_memory":{N:…},"gpu_total_memory":{N:…}}},"total_time","gpus"}
 *
 * Times are seconds (of CPUs for a node, of the clock for the run), memory is bytes, use of a GPU is percent
 *of the time; N is the number of the GPU. Readers divide: what is to be divided by and is not known, or 0,
 *leaves out both. */
#include "text/jobstats.h"

#include "base/gzip.h"
#include "base/json.h"
#include "query/hosts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define JSON_MAX ((size_t)256 << 20)

static double figure(const struct summary *s, enum figure_id id)
{
	return has_figure(s, id) ? s->figure[id].value : NAN;
}

static double granted(const struct summary *s, enum figure_id limit, enum figure_id machine)
{
	return has_figure(s, limit) ? s->figure[limit].value : figure(s, machine);
}

static const char *name_of(const struct host *host)
{
	return *host->name ? host->name : "unknown";
}

/* ---- GPUs ---- */

static bool is_slice_of(const struct summary_gpu *slice, const struct summary_gpu *gpu)
{
	const char *parent = slice->text[GPU_TEXT_PARENT], *name = gpu->text[GPU_TEXT_INSTANCE];
	const char *host = slice->text[GPU_TEXT_HOST], *own = gpu->text[GPU_TEXT_HOST];

	return parent && name && !strcmp(parent, name) && !strcmp(host ? host : "", own ? own : "");
}

/* Of a GPU in slices those that are the job's count, not the whole. */
static bool is_counted(const struct summary *s, const struct summary_gpu *gpu)
{
	if (!summary_gpu_is_of_job(gpu) || !(gpu->figure[GPU_FIG_MEMORY_TOTAL].value > 0) ||
		gpu->figure[GPU_FIG_MEMORY_TOTAL].why)
		return false;
	for (size_t i = 0; i < s->nr_gpus; i++)
		if (is_slice_of(&s->gpu[i], gpu) && summary_gpu_is_of_job(&s->gpu[i]))
			return false;
	return true;
}

static bool is_of_host(const struct summary *s, const struct summary_gpu *gpu, const char *host)
{
	const char *own = gpu->text[GPU_TEXT_HOST];

	return !s->nr_nodes || (own && !strcmp(own, host));
}

/* The number by which the maker's tools call it; its name where another has the same, and of a slice. */
static const char *gpu_key(
	const struct summary *s, const struct summary_gpu *gpu, const char *host, char out[static 24])
{
	bool alone = gpu->index >= 0 && !gpu->text[GPU_TEXT_PARENT];

	for (size_t i = 0; i < s->nr_gpus && alone; i++)
		alone = &s->gpu[i] == gpu || s->gpu[i].index != gpu->index ||
			s->gpu[i].text[GPU_TEXT_PARENT] || !is_of_host(s, &s->gpu[i], host);
	if (!alone && gpu->text[GPU_TEXT_INSTANCE])
		return gpu->text[GPU_TEXT_INSTANCE];
	snprintf(out, 24, "%lld", (long long)gpu->index);
	return out;
}

static double rounded(double seconds)
{
	return (double)round_i64(seconds * 1000) / 1000;
}

static void add_gpus(struct json *j, const struct summary *s, const char *host)
{
	static const struct {
		const char *name;
		enum gpu_figure_id id;
		bool whole;
	} row[] = {{"gpu_total_memory", GPU_FIG_MEMORY_TOTAL, true},
		{"gpu_used_memory", GPU_FIG_MEMORY_PEAK, true},
		{"gpu_utilization", GPU_FIG_UTIL_MEAN, false}};

	for (size_t r = 0; r < ARRAY_SIZE(row); r++) {
		bool open = false;

		for (size_t i = 0; i < s->nr_gpus; i++) {
			const struct figure *f = &s->gpu[i].figure[row[r].id];
			char key[24];

			if (!is_of_host(s, &s->gpu[i], host) || !is_counted(s, &s->gpu[i]) || f->why)
				continue;
			if (!open)
				json_object(j, row[r].name);
			open = true;
			if (row[r].whole)
				json_whole(j, gpu_key(s, &s->gpu[i], host, key), f->value);
			else
				json_num(j, gpu_key(s, &s->gpu[i], host, key), rounded(f->value));
		}
		if (open)
			json_end_object(j);
	}
}

/* ---- all of it ---- */

static void add_host(struct json *j, const struct summary *s, const struct host *host)
{
	const struct summary *part = hosts_part(s, host->first);
	double cpus = granted(part, FIG_LIMIT_CPUS, FIG_MACHINE_CPUS),
	       memory = granted(part, FIG_LIMIT_MEMORY, FIG_MACHINE_MEMORY);

	json_object(j, name_of(host));
	if (cpus > 0 && !isnan(host->cpu_s)) {
		json_whole(j, "cpus", ceil(cpus));
		json_num(j, "total_time", rounded(host->cpu_s));
	}
	if (memory > 0 && !isnan(host->memory_bytes)) {
		json_whole(j, "total_memory", memory);
		json_whole(j, "used_memory", host->memory_bytes);
	}
	add_gpus(j, s, host->name);
	json_end_object(j);
}

int jobstats_json(const struct summary *s, struct buf *out)
{
	struct hosts hosts;
	uint64_t gpus = 0;
	struct json j;

	if (hosts_make(s, &hosts) < 0)
		return -ENOMEM;
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_object(&j, "nodes");
	for (size_t i = 0; i < hosts.nr; i++)
		add_host(&j, s, &hosts.host[i]);
	hosts_release(&hosts);
	json_end_object(&j);
	json_num(&j, "total_time", has_figure(s, FIG_WALL) ? rounded(s->figure[FIG_WALL].value) : 0);
	for (size_t i = 0; i < s->nr_gpus; i++)
		gpus += is_counted(s, &s->gpu[i]);
	json_uint(&j, "gpus", gpus);
	json_end_object(&j);
	return out->err;
}

int jobstats_print(const struct summary *s, struct buf *out)
{
	struct buf json, packed;
	int r;

	buf_init(&json, JSON_MAX);
	buf_init(&packed, JSON_MAX);
	r = jobstats_json(s, &json);
	gzip_add(&packed, json.data, json.len);
	buf_adds(out, "JS1:");
	base64_add(out, packed.data, packed.len);
	buf_addch(out, '\n');
	r = r < 0 ? r : packed.err < 0 ? packed.err : out->err;
	buf_release(&json);
	buf_release(&packed);
	return r;
}
