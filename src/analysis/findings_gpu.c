/* GPUs that were given to the job: used, hardly used, or not at all. */
#include "analysis/rule.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <string.h>

/* Percent of the time. */
#define GPU_IDLE 1.0
#define GPU_LITTLE 20.0
#define GPU_WELL 70.0
#define GPU_LEAST_S 10.0

static double gpu_value(const struct summary_gpu *gpu, enum gpu_figure_id id)
{
	return gpu->figure[id].why ? NAN : gpu->figure[id].value;
}

/* One that is given away in slices tells by them. */
static bool has_slices(const struct summary *s, const struct summary_gpu *gpu)
{
	const char *name = gpu->text[GPU_TEXT_INSTANCE], *host = gpu->text[GPU_TEXT_HOST];

	for (size_t i = 0; name && i < s->nr_gpus; i++) {
		const struct summary_gpu *other = &s->gpu[i];

		if (other->text[GPU_TEXT_PARENT] && !strcmp(other->text[GPU_TEXT_PARENT], name) &&
			(!host || !other->text[GPU_TEXT_HOST] || !strcmp(other->text[GPU_TEXT_HOST], host)))
			return true;
	}
	return false;
}

static bool is_given(const struct summary *s, const struct summary_gpu *gpu)
{
	const char *job = gpu->text[GPU_TEXT_JOB];

	return job && !strcmp(job, "yes") && !has_slices(s, gpu) &&
		gpu_value(gpu, GPU_FIG_OBSERVED) >= GPU_LEAST_S;
}

/* No process computed on it; or one did, and the job is known to have had nothing there. */
static bool gpu_is_idle(const struct summary_gpu *gpu)
{
	double memory = gpu_value(gpu, GPU_FIG_JOB_MEMORY_PEAK), busy = gpu_value(gpu, GPU_FIG_JOB_BUSY);

	if (summary_gpu_is_used(gpu))
		return false;
	return gpu_value(gpu, GPU_FIG_UTIL_MAX) <= GPU_IDLE || (memory == 0 && busy == 0);
}

struct gpu_count gpus_count(const struct summary *s)
{
	struct gpu_count n = {0};

	for (size_t i = 0; i < s->nr_gpus; i++) {
		if (!is_given(s, &s->gpu[i]))
			continue;
		n.given++;
		n.idle += gpu_is_idle(&s->gpu[i]);
	}
	return n;
}

static void add_name(struct buf *out, const struct look *l, const struct summary_gpu *gpu)
{
	const char *name = gpu->text[GPU_TEXT_INSTANCE], *host = gpu->text[GPU_TEXT_HOST];

	if (out->len)
		buf_adds(out, ", ");
	add_text(out, name ? name : "?", name ? strlen(name) : 1, LETTERS_UTF8);
	if (nr_parts(l) > 1 && host) {
		buf_adds(out, " on ");
		add_text(out, host, strlen(host), LETTERS_UTF8);
	}
}

static void say_idle(struct look *l, struct gpu_count n)
{
	struct finding *f;
	struct buf names;

	buf_init(&names, 300);
	for (size_t i = 0; i < l->run->nr_gpus; i++)
		if (is_given(l->run, &l->run->gpu[i]) && gpu_is_idle(&l->run->gpu[i]))
			add_name(&names, l, &l->run->gpu[i]);
	f = n.given == 1 ? found(l, "idle-gpu", FINDING_WARNING, "gpu-util",
				   "The GPU that the job was given was not used")
			 : found(l, "idle-gpu", FINDING_WARNING, "gpu-util",
				   "%zu of %zu GPUs that the job was given were not used", n.idle, n.given);
	found_say(l, f,
		"No process of the job computed on %s%s. Ask for fewer, or see whether the program was built "
		"and told to use them (CUDA_VISIBLE_DEVICES, its own options).",
		(char *)names.data, names.err ? "…" : "");
	found_evidence(l, f, "gpus.given", (double)n.given, UNIT_COUNT);
	found_evidence(l, f, "gpus.idle", (double)n.idle, UNIT_COUNT);
	buf_release(&names);
}

/* Of those that were used, on average. */
static void say_use(struct look *l, double mean, size_t nr)
{
	bool well = mean >= GPU_WELL;
	struct finding *f = found(l, well ? "gpu-used" : "gpu-underused", well ? FINDING_FINE : FINDING_NOTE,
		"gpu-util", "%s busy for %.0f %% of the time",
		nr == 1 ? "The GPU was" : "The GPUs in use were", mean);

	found_say(l, f, "%s",
		well ? "The job used well the GPUs that it was given."
		     : "They wait for the rest of the job most of the time: for data that is read or "
		       "prepared, or for work in pieces too small. Compare with the CPU plot.");
	found_evidence(l, f, "gpus.util_mean", mean / 100, UNIT_RATIO);
}

void look_gpus(struct look *l)
{
	struct gpu_count n = gpus_count(l->run);
	double sum = 0;
	size_t nr = 0;

	for (size_t i = 0; i < l->run->nr_gpus; i++) {
		double util = gpu_value(&l->run->gpu[i], GPU_FIG_UTIL_MEAN);

		if (!is_given(l->run, &l->run->gpu[i]) || gpu_is_idle(&l->run->gpu[i]) || isnan(util))
			continue;
		sum += util;
		nr++;
	}
	if (n.idle)
		say_idle(l, n);
	if (nr && (sum / (double)nr < GPU_LITTLE || sum / (double)nr >= GPU_WELL))
		say_use(l, sum / (double)nr, nr);
}
