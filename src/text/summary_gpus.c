/* A line for each GPU of the job:
 *
 *	gpu 0    NVIDIA A100-SXM4-40GB  util 37 % mean (job 35 %), 92 % max · memory peak 1 GiB of 40 GiB …
 *	         2 others in the node, not the job's
 *
 * Those that the job neither was given nor used are counted, not listed. Of very many, the whole in one line
 * and the first of them. */
#include "text/page.h"

#include <string.h>

#define GPUS_SHOWN 8

static bool has_of(const struct summary_gpu *gpu, enum gpu_figure_id id)
{
	return !gpu->figure[id].why;
}

static double of(const struct summary_gpu *gpu, enum gpu_figure_id id)
{
	return gpu->figure[id].value;
}

static bool knows_users(const struct summary_gpu *gpu)
{
	return has_of(gpu, GPU_FIG_JOB_MEMORY_PEAK) || has_of(gpu, GPU_FIG_JOB_BUSY);
}

/* Lost from the beginning, and not known as the job's, where others tell who uses them: a note says what
 * happened to it, and it does not stand here as if it were what the job had. */
static bool is_only_lost(const struct page *p, const struct summary_gpu *gpu)
{
	const char *job = gpu->text[GPU_TEXT_JOB];

	if (summary_gpu_is_of_job(gpu) || !has_of(gpu, GPU_FIG_LOST_AT) || summary_gpu_was_read(gpu) ||
		(job && !strcmp(job, "no")))
		return false;
	for (size_t i = 0; i < p->s->nr_gpus; i++)
		if (knows_users(&p->s->gpu[i]))
			return true;
	return false;
}

/* One whose users are not known may be the job's, unless it is another job's. */
static bool is_shown(const struct page *p, const struct summary_gpu *gpu)
{
	const char *job = gpu->text[GPU_TEXT_JOB];

	if (summary_gpu_is_of_job(gpu))
		return true;
	return !knows_users(gpu) && (!job || strcmp(job, "no")) && !is_only_lost(p, gpu);
}

static bool is_part_of(const struct summary_gpu *slice, const struct summary_gpu *gpu)
{
	const char *host = gpu->text[GPU_TEXT_HOST], *slice_host = slice->text[GPU_TEXT_HOST];

	return slice->text[GPU_TEXT_PARENT] && gpu->text[GPU_TEXT_INSTANCE] &&
		!strcmp(slice->text[GPU_TEXT_PARENT], gpu->text[GPU_TEXT_INSTANCE]) &&
		!strcmp(host ? host : "", slice_host ? slice_host : "");
}

/* A job that was given a slice has not been given the GPU. */
static bool stands_alone(const struct page *p, const struct summary_gpu *slice)
{
	for (size_t i = 0; i < p->s->nr_gpus; i++)
		if (is_part_of(slice, &p->s->gpu[i]))
			return !is_shown(p, &p->s->gpu[i]);
	return true;
}

static bool has_shown_slice(const struct page *p, const struct summary_gpu *gpu)
{
	for (size_t i = 0; i < p->s->nr_gpus; i++)
		if (is_shown(p, &p->s->gpu[i]) && is_part_of(&p->s->gpu[i], gpu))
			return true;
	return false;
}

/* ---- the parts of a line ---- */

static void add_util(const struct summary_gpu *gpu, struct buf *line)
{
	if (!has_of(gpu, GPU_FIG_UTIL_MEAN)) {
		if (!has_of(gpu, GPU_FIG_JOB_UTIL_MEAN) || !summary_gpu_is_used(gpu))
			return;
		buf_adds(line, "util by the job ");
		add_percent(line, of(gpu, GPU_FIG_JOB_UTIL_MEAN) / 100);
		return;
	}
	buf_adds(line, "util ");
	add_percent(line, of(gpu, GPU_FIG_UTIL_MEAN) / 100);
	buf_adds(line, " mean");
	if (has_of(gpu, GPU_FIG_JOB_UTIL_MEAN) && summary_gpu_is_used(gpu)) {
		buf_adds(line, " (job ");
		add_percent(line, of(gpu, GPU_FIG_JOB_UTIL_MEAN) / 100);
		buf_adds(line, ")");
	}
	buf_adds(line, ", ");
	add_percent(line, of(gpu, GPU_FIG_UTIL_MAX) / 100);
	buf_adds(line, " max");
}

static void add_memory(const struct summary_gpu *gpu, struct buf *line)
{
	char text[UNITS_SIZE];

	if (has_of(gpu, GPU_FIG_MEMORY_PEAK)) {
		buf_addf(line, "memory peak %s", format_bytes(text, of(gpu, GPU_FIG_MEMORY_PEAK)));
		if (has_of(gpu, GPU_FIG_MEMORY_TOTAL))
			buf_addf(line, " of %s", format_bytes(text, of(gpu, GPU_FIG_MEMORY_TOTAL)));
	}
	if (has_of(gpu, GPU_FIG_JOB_MEMORY_PEAK) && of(gpu, GPU_FIG_JOB_MEMORY_PEAK) > 0)
		buf_addf(line, has_of(gpu, GPU_FIG_MEMORY_PEAK) ? " (job %s)" : "memory of the job %s",
			format_bytes(text, of(gpu, GPU_FIG_JOB_MEMORY_PEAK)));
}

static void add_power(const struct summary_gpu *gpu, struct buf *line)
{
	char text[UNITS_SIZE];

	if (has_of(gpu, GPU_FIG_POWER_MEAN))
		buf_addf(line, "%s mean", format_si(text, of(gpu, GPU_FIG_POWER_MEAN), "W"));
	if (has_of(gpu, GPU_FIG_POWER_MAX))
		buf_addf(line, "%s%s max", has_of(gpu, GPU_FIG_POWER_MEAN) ? ", " : "",
			format_si(text, of(gpu, GPU_FIG_POWER_MAX), "W"));
}

static void add_energy(const struct summary_gpu *gpu, struct buf *line)
{
	const char *source = gpu->text[GPU_TEXT_ENERGY_SOURCE];
	char text[UNITS_SIZE];

	if (has_of(gpu, GPU_FIG_ENERGY))
		buf_addf(line, "%s%s", source && strcmp(source, "counter") ? "~" : "",
			format_si(text, of(gpu, GPU_FIG_ENERGY), "J"));
}

static void add_heat(const struct summary_gpu *gpu, struct buf *line)
{
	if (has_of(gpu, GPU_FIG_TEMPERATURE_MAX))
		buf_addf(line, "%.0f C", of(gpu, GPU_FIG_TEMPERATURE_MAX));
}

/* Worth a word when it is a hundredth of the time. */
static void add_throttled(const struct summary_gpu *gpu, struct buf *line)
{
	double power = has_of(gpu, GPU_FIG_THROTTLED_POWER) ? of(gpu, GPU_FIG_THROTTLED_POWER) : 0;
	double thermal = has_of(gpu, GPU_FIG_THROTTLED_THERMAL) ? of(gpu, GPU_FIG_THROTTLED_THERMAL) : 0;
	char text[UNITS_SIZE];

	if (!has_of(gpu, GPU_FIG_THROTTLED) || of(gpu, GPU_FIG_THROTTLED) <= 0.01 * of(gpu, GPU_FIG_OBSERVED))
		return;
	buf_addf(line, "throttled %s%s", format_duration(text, of(gpu, GPU_FIG_THROTTLED)),
		power > 0 && thermal > 0 ? " (power, heat)"
			: power > 0	 ? " (power)"
			: thermal > 0	 ? " (heat)"
					 : "");
}

static void add_lost(const struct summary_gpu *gpu, struct buf *line)
{
	char text[UNITS_SIZE];

	if (has_of(gpu, GPU_FIG_LOST_AT) && summary_gpu_was_read(gpu))
		buf_addf(line, "lost at %s", format_duration(text, of(gpu, GPU_FIG_LOST_AT)));
}

/* ---- lines ---- */

static void add_name(const struct page *p, const struct summary_gpu *gpu, struct buf *line)
{
	const char *instance = gpu->text[GPU_TEXT_INSTANCE] ? gpu->text[GPU_TEXT_INSTANCE] : "",
		   *host = gpu->text[GPU_TEXT_HOST], *name = gpu->text[GPU_TEXT_NAME];
	const char *slice = strchr(instance, '/');

	if (host && !p->s->host) { /* of several */
		add_text(line, host, strlen(host), letters(p));
		buf_adds(line, " ");
	}
	if (slice && gpu->text[GPU_TEXT_PARENT] && !(name && stands_alone(p, gpu)))
		name = slice + 1;
	name = name ? name : instance;
	add_text(line, name, strlen(name), letters(p));
}

static void print_gpu(const struct page *p, const struct summary_gpu *gpu)
{
	static void (*const part[])(const struct summary_gpu *, struct buf *) = {
		add_util, add_memory, add_power, add_energy, add_heat, add_throttled, add_lost};
	char label[16] = "gpu";
	struct buf line;
	size_t from;

	if (gpu->text[GPU_TEXT_PARENT] && !stands_alone(p, gpu))
		label[0] = 0;
	else if (gpu->index >= 0 && gpu->index < 1000)
		snprintf(label, sizeof(label), "gpu %lld", (long long)gpu->index);
	buf_init(&line, 100000);
	add_name(p, gpu, &line);
	from = line.len;
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		struct buf text;

		buf_init(&text, 1000);
		part[i](gpu, &text);
		tie(&text, 0);
		if (text.len)
			buf_addf(&line, "%s%s", line.len > from ? between(p) : "  ", (char *)text.data);
		buf_release(&text);
	}
	if (line.len == from) {
		buf_adds(&line, "  nothing could be read: ");
		add_text(&line, gpu->figure[GPU_FIG_UTIL_MEAN].why,
			strlen(gpu->figure[GPU_FIG_UTIL_MEAN].why), letters(p));
	}
	print_line(p, label, "36", (char *)line.data);
	buf_release(&line);
}

/* "64 GPUs: util 37 % mean (2 % the least, 98 % the most) · 12.1 MJ" */
static void print_all(const struct page *p, size_t nr)
{
	double util = 0, least = 0, most = 0, joules = 0;
	size_t utils = 0, meters = 0;
	char text[UNITS_SIZE];
	struct buf line;

	for (size_t i = 0; i < p->s->nr_gpus; i++) {
		const struct summary_gpu *gpu = &p->s->gpu[i];

		if (!is_shown(p, gpu) || gpu->text[GPU_TEXT_COUNTED_ELSEWHERE])
			continue;
		if (has_of(gpu, GPU_FIG_UTIL_MEAN)) {
			double v = of(gpu, GPU_FIG_UTIL_MEAN);

			least = utils ? MIN(least, v) : v;
			most = utils++ ? MAX(most, v) : v;
			util += v;
		}
		meters += has_of(gpu, GPU_FIG_ENERGY);
		joules += has_of(gpu, GPU_FIG_ENERGY) ? of(gpu, GPU_FIG_ENERGY) : 0;
	}
	buf_init(&line, 1000);
	buf_addf(&line, "%zu of them", nr);
	if (utils) {
		buf_adds(&line, ": util ");
		add_percent(&line, util / (double)utils / 100);
		buf_adds(&line, " mean (");
		add_percent(&line, least / 100);
		buf_adds(&line, " the least, ");
		add_percent(&line, most / 100);
		buf_adds(&line, " the most)");
	}
	if (meters)
		buf_addf(&line, "%s%s", between(p), format_si(text, joules, "J"));
	print_line(p, "gpus", "36", (char *)line.data);
	buf_release(&line);
}

/* Not listed: "2 others in the node, not the job's". */
static void print_others(const struct page *p, bool any_shown)
{
	const char *where = p->s->nr_nodes ? "nodes" : "node";
	size_t others = 0, foreign = 0, lost = 0;
	char text[160], more[64] = "";

	for (size_t i = 0; i < p->s->nr_gpus; i++) {
		const struct summary_gpu *gpu = &p->s->gpu[i];
		const char *job = gpu->text[GPU_TEXT_JOB];

		if (is_shown(p, gpu) || gpu->text[GPU_TEXT_COUNTED_ELSEWHERE] || has_shown_slice(p, gpu))
			continue;
		if (is_only_lost(p, gpu)) {
			lost++;
			continue;
		}
		others++;
		foreign += job && !strcmp(job, "no");
	}
	if (!others)
		return;
	if (lost)
		snprintf(more, sizeof(more), "; %zu more could not be read", lost);
	/* Something must have told whose the others are. */
	if (any_shown)
		snprintf(text, sizeof(text), "%zu other%s in the %s, not %s%s", others, others > 1 ? "s" : "",
			where, foreign == others ? "the job's" : "used by the job", more);
	else
		snprintf(text, sizeof(text), "%zu in the %s, not used by the job%s", others, where, more);
	print_line(p, any_shown ? "" : others == 1 ? "gpu" : "gpus", "36", text);
}

void print_gpus(const struct page *p)
{
	size_t of_job = 0, shown = 0, nr = 0;
	char text[80];

	for (size_t i = 0; i < p->s->nr_gpus; i++) {
		bool whole = !p->s->gpu[i].text[GPU_TEXT_COUNTED_ELSEWHERE];

		of_job += is_shown(p, &p->s->gpu[i]) && whole;
		nr += is_shown(p, &p->s->gpu[i]);
	}
	if (nr > GPUS_SHOWN)
		print_all(p, of_job);
	for (size_t i = 0; i < p->s->nr_gpus && shown < GPUS_SHOWN; i++)
		if (is_shown(p, &p->s->gpu[i])) {
			print_gpu(p, &p->s->gpu[i]);
			shown++;
		}
	if (nr > shown) {
		snprintf(text, sizeof(text), "and %zu more", nr - shown);
		print_line(p, "", "36", text);
	}
	print_others(p, shown);
}
