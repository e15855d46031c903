/* The GPUs' part of a summary. The rows give each figure its name; one table says of which course of the
 * recording it is made and how. */
#include "query/nodes.h"

#include "base/owned.h"
#include "base/units.h"
#include "query/gpus.h"

#include <math.h>
#include <string.h>

/* clang-format off */
const struct summary_gpu_row summary_gpu_row[NR_GPU_FIGURES] = {
	[GPU_FIG_UTIL_MEAN]         = {"util_mean_percent",     false, NULL},
	[GPU_FIG_UTIL_MAX]          = {"util_max_percent",      false, NULL},
	[GPU_FIG_MEM_UTIL_MEAN]     = {"mem_util_mean_percent", false, NULL},
	[GPU_FIG_MEM_UTIL_MAX]      = {"mem_util_max_percent",  false, NULL},
	[GPU_FIG_MEMORY_PEAK]       = {"memory_peak_bytes",     true,  NULL},
	[GPU_FIG_MEMORY_TOTAL]      = {"memory_total_bytes",    true,  NULL},
	[GPU_FIG_POWER_MEAN]        = {"power_mean_w",          false, NULL},
	[GPU_FIG_POWER_MAX]         = {"power_max_w",           false, NULL},
	[GPU_FIG_ENERGY]            = {"energy_j",              false, NULL},
	[GPU_FIG_JOB_MEMORY_PEAK]   = {"job_memory_peak_bytes", true,  "memory_peak_bytes"},
	[GPU_FIG_JOB_UTIL_MEAN]     = {"job_util_mean_percent", false, "util_mean_percent"},
	[GPU_FIG_JOB_BUSY]          = {"job_busy_s",            false, "busy_s"},
	[GPU_FIG_POWER_LIMIT]       = {"power_limit_w",         false, NULL},
	[GPU_FIG_TEMPERATURE_MAX]   = {"temperature_max_c",     false, NULL},
	[GPU_FIG_CLOCK_MEAN]        = {"clock_mean_hz",         false, NULL},
	[GPU_FIG_CLOCK_MAX]         = {"clock_max_hz",          false, NULL},
	[GPU_FIG_ENCODER_MEAN]      = {"encoder_mean_percent",  false, NULL},
	[GPU_FIG_DECODER_MEAN]      = {"decoder_mean_percent",  false, NULL},
	[GPU_FIG_THROTTLED]         = {"throttled_s",           false, NULL},
	[GPU_FIG_THROTTLED_POWER]   = {"throttled_power_s",     false, NULL},
	[GPU_FIG_THROTTLED_THERMAL] = {"throttled_thermal_s",   false, NULL},
	[GPU_FIG_ECC_CORRECTED]     = {"ecc_corrected",         true,  NULL},
	[GPU_FIG_ECC_UNCORRECTED]   = {"ecc_uncorrected",       true,  NULL},
	[GPU_FIG_OBSERVED]          = {"observed_s",            false, NULL},
	[GPU_FIG_LOST_AT]           = {"lost_at_s",             false, NULL},
};

enum made { MADE_MEAN, MADE_GREATEST, MADE_LAST, MADE_GROWN };

static const struct {
	enum gpu_figure_id figure;
	enum gpu_course course;
	enum made made;
	double factor;
} recipe[] = {
	{GPU_FIG_UTIL_MEAN,         COURSE_UTIL,              MADE_MEAN,     100},
	{GPU_FIG_UTIL_MAX,          COURSE_UTIL,              MADE_GREATEST, 100},
	{GPU_FIG_MEM_UTIL_MEAN,     COURSE_MEM_UTIL,          MADE_MEAN,     100},
	{GPU_FIG_MEM_UTIL_MAX,      COURSE_MEM_UTIL,          MADE_GREATEST, 100},
	{GPU_FIG_MEMORY_PEAK,       COURSE_MEMORY_USED,       MADE_GREATEST, 1},
	{GPU_FIG_MEMORY_TOTAL,      COURSE_MEMORY_TOTAL,      MADE_LAST,     1},
	{GPU_FIG_POWER_MEAN,        COURSE_POWER,             MADE_MEAN,     1},
	{GPU_FIG_POWER_MAX,         COURSE_POWER,             MADE_GREATEST, 1},
	{GPU_FIG_ENERGY,            COURSE_ENERGY,            MADE_GROWN,    1},
	{GPU_FIG_POWER_LIMIT,       COURSE_POWER_LIMIT,       MADE_LAST,     1},
	{GPU_FIG_TEMPERATURE_MAX,   COURSE_TEMPERATURE,       MADE_GREATEST, 1},
	{GPU_FIG_CLOCK_MEAN,        COURSE_CLOCK_SM,          MADE_MEAN,     1},
	{GPU_FIG_CLOCK_MAX,         COURSE_CLOCK_SM,          MADE_GREATEST, 1},
	{GPU_FIG_ENCODER_MEAN,      COURSE_ENCODER,           MADE_MEAN,     100},
	{GPU_FIG_DECODER_MEAN,      COURSE_DECODER,           MADE_MEAN,     100},
	{GPU_FIG_THROTTLED_POWER,   COURSE_THROTTLED_POWER,   MADE_GROWN,    1},
	{GPU_FIG_THROTTLED_THERMAL, COURSE_THROTTLED_THERMAL, MADE_GROWN,    1},
	{GPU_FIG_ECC_CORRECTED,     COURSE_ECC_CORRECTED,     MADE_GROWN,    1},
	{GPU_FIG_ECC_UNCORRECTED,   COURSE_ECC_UNCORRECTED,   MADE_GROWN,    1},
};
/* clang-format on */

static const char why_once[] = "it was read only once";

static void set(struct summary_gpu *gpu, enum gpu_figure_id id, double value)
{
	gpu->figure[id] = isfinite(value)
		? (struct figure){.value = value}
		: (struct figure){.value = NAN, .why = "what was recorded makes no number"};
}

static void unset(struct summary_gpu *gpu, enum gpu_figure_id id, const char *why)
{
	gpu->figure[id] = (struct figure){.value = NAN, .why = why};
}

static bool has_value(const struct summary_gpu *gpu, enum gpu_figure_id id)
{
	return !gpu->figure[id].why;
}

void summary_gpus_free(struct summary_gpu *gpu, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		for (unsigned k = 0; k < NR_GPU_TEXTS; k++)
			free(gpu[i].text[k]);
	free(gpu);
}

static struct summary_gpu *add(struct summary *s)
{
	struct summary_gpu *gpu = ARRAY_ADD(s->gpu, s->nr_gpus);

	if (gpu)
		gpu->index = -1;
	return gpu;
}

/* ---- one device ---- */

static int fill_texts(struct summary_gpu *gpu, const struct ledger *a, const struct gpu_track *d)
{
	static const char *const key[NR_GPU_TEXTS] = {[GPU_TEXT_VENDOR] = "vendor",
		[GPU_TEXT_NAME] = "model",
		[GPU_TEXT_UUID] = "uuid",
		[GPU_TEXT_PCI] = "pci",
		[GPU_TEXT_COUNTED_ELSEWHERE] = "apart",
		[GPU_TEXT_JOB] = "job",
		[GPU_TEXT_JOB_BY] = "job_by"};

	meta_num(&d->about, "index", &gpu->index);
	for (unsigned i = 0; i < NR_GPU_TEXTS; i++) {
		const char *text = key[i] ? meta_text(&d->about, key[i]) : "";

		if (i == GPU_TEXT_HOST)
			text = meta_text(ledger_meta(a), "host");
		else if (i == GPU_TEXT_INSTANCE)
			text = d->name;
		else if (i == GPU_TEXT_PARENT && d->parent >= 0)
			text = ledger_gpus(a)->device[d->parent]->name;
		if (!*text)
			continue;
		gpu->text[i] = strdup(text);
		if (!gpu->text[i])
			return -ENOMEM;
	}
	return 0;
}

static void fill_course(struct summary_gpu *gpu, enum gpu_figure_id id, const struct course *c,
	enum made made, double factor, const char *why)
{
	if (!c->any)
		unset(gpu, id, why);
	else if (made == MADE_GROWN && !(c->elapsed > 0))
		unset(gpu, id, why_once);
	else
		set(gpu, id,
			factor *
				(made == MADE_GROWN			? c->grown
						: made == MADE_LAST	? c->value
						: made == MADE_GREATEST ? c->greatest
						: c->elapsed > 0	? c->integral / c->elapsed
									: c->value));
}

/* Some cards have a meter that never moves (the second half of a double card, some firmware). */
static bool meter_stands_still(const struct course *energy, const struct course *power)
{
	return energy->elapsed > 0 && energy->grown <= 0 && power->integral > 1;
}

/* By the card's own meter, else its power over time; and its power by its meter where it tells none. */
static int fill_energy(struct summary_gpu *gpu, const struct gpu_track *d)
{
	const struct course *energy = &d->course[COURSE_ENERGY], *power = &d->course[COURSE_POWER];
	const char *source = "counter";

	if ((!has_value(gpu, GPU_FIG_ENERGY) || meter_stands_still(energy, power)) && power->elapsed > 0) {
		set(gpu, GPU_FIG_ENERGY, power->integral);
		source = "power over time";
	} else if (!has_value(gpu, GPU_FIG_POWER_MEAN) && energy->elapsed > 0) {
		set(gpu, GPU_FIG_POWER_MEAN, energy->grown / energy->elapsed);
	}
	if (!has_value(gpu, GPU_FIG_ENERGY))
		return 0;
	gpu->text[GPU_TEXT_ENERGY_SOURCE] = strdup(source);
	return gpu->text[GPU_TEXT_ENERGY_SOURCE] ? 0 : -ENOMEM;
}

/* For whatever cause; a time with two of them counts for each. */
static void fill_throttled(struct summary_gpu *gpu, const struct gpu_track *d, const char *why)
{
	static const enum gpu_course cause[] = {COURSE_THROTTLED_POWER, COURSE_THROTTLED_THERMAL,
		COURSE_THROTTLED_BOARD, COURSE_THROTTLED_RELIABILITY};
	double sum = 0;
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(cause); i++) {
		any |= d->course[cause[i]].elapsed > 0;
		sum += d->course[cause[i]].grown;
	}
	if (any)
		set(gpu, GPU_FIG_THROTTLED, sum);
	else
		unset(gpu, GPU_FIG_THROTTLED, why);
}

/* Who is on the devices is known, if not all of what they use there: a reason that costs but one of these is
 * about that, and perhaps about another device or maker. */
static bool knows_users(const struct ledger *a)
{
	return ledger_is_available(a, "gpu_process.memory") || ledger_is_available(a, "gpu_process.util") ||
		ledger_is_available(a, "gpu_process.busy");
}

/* No process of the job on it means nothing used, as far as the driver lists processes. */
static const char *use_why(
	const struct ledger *a, const struct gpu_use *use, const char *metric, bool recorded, bool has)
{
	if (!recorded)
		return "not recorded";
	return !has && (use->any || !knows_users(a)) ? ledger_why(a, metric) : NULL;
}

/* The driver tells shares of processes and of the device over windows of its own, so that the sum of the ones
 * can exceed the other: the job did not do more than the device. What is counted as time on engines is better
 * than either, and stays. */
static double most_busy(const struct gpu_track *d, const struct gpu_use *use)
{
	const struct course *util = &d->course[COURSE_UTIL];

	return use->counted || !(util->elapsed > 0) ? INFINITY : util->integral / util->elapsed;
}

static void fill_use(
	struct summary_gpu *gpu, const struct ledger *a, const struct gpu_track *d, unsigned line)
{
	const struct gpus *gpus = ledger_gpus(a);
	const struct gpu_use *use = &d->use[line];
	const char *memory = use_why(a, use, "gpu_process.memory", gpus->memory.col >= 0, use->has_memory);
	const char *util = use_why(a, use, gpus->util.col < 0 ? "gpu_process.busy" : "gpu_process.util",
		gpus->util.col >= 0 || gpus->busy.col >= 0, use->has_util);
	/* Read once, there was no time over which engines could work. */
	double busy = d->observed_s > 0 ? use->busy_s / d->observed_s : use->util_now;

	busy = MIN(busy, most_busy(d, use));
	if (memory)
		unset(gpu, GPU_FIG_JOB_MEMORY_PEAK, memory);
	else
		set(gpu, GPU_FIG_JOB_MEMORY_PEAK, use->memory_peak);
	if (util) {
		unset(gpu, GPU_FIG_JOB_UTIL_MEAN, util);
		unset(gpu, GPU_FIG_JOB_BUSY, util);
	} else {
		set(gpu, GPU_FIG_JOB_UTIL_MEAN, 100 * busy);
		set(gpu, GPU_FIG_JOB_BUSY, MIN(use->busy_s, most_busy(d, use) * d->observed_s));
	}
}

static void keep_reasons(struct summary *s, struct summary_gpu *gpu)
{
	for (unsigned i = 0; i < NR_GPU_FIGURES; i++)
		if (gpu->figure[i].why && *gpu->figure[i].why)
			gpu->figure[i].why = summary_keep(s, gpu->figure[i].why);
}

/* Of one that never answered nothing is known, not even that the job did not use it. */
static int fill_lost(struct summary_gpu *gpu, const struct gpu_track *d)
{
	const char *why = d->told ? d->told : d->lives ? "it told nothing any more" : "it was gone";

	if (!gpu_is_lost(d))
		return 0;
	for (unsigned i = 0; i < NR_GPU_FIGURES && !d->had_values; i++)
		if (i != GPU_FIG_OBSERVED)
			unset(gpu, i, why);
	set(gpu, GPU_FIG_LOST_AT, (double)d->lost_ns / 1e9);
	gpu->text[GPU_TEXT_LOST] = strdup(why);
	return gpu->text[GPU_TEXT_LOST] ? 0 : -ENOMEM;
}

static int fill_device(struct summary *s, const struct ledger *a, const struct gpu_track *d, unsigned line)
{
	struct summary_gpu *gpu = add(s);
	int r = gpu ? fill_texts(gpu, a, d) : -ENOMEM;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < NR_GPU_FIGURES; i++)
		unset(gpu, i, "");
	for (size_t i = 0; i < ARRAY_SIZE(recipe); i++)
		fill_course(gpu, recipe[i].figure, &d->course[recipe[i].course], recipe[i].made,
			recipe[i].factor, ledger_why(a, course_metric(recipe[i].course)));
	if (!has_value(gpu, GPU_FIG_CLOCK_MEAN) && d->course[COURSE_CLOCK_GRAPHICS].any) {
		const struct course *c = &d->course[COURSE_CLOCK_GRAPHICS];

		fill_course(gpu, GPU_FIG_CLOCK_MEAN, c, MADE_MEAN, 1, NULL);
		fill_course(gpu, GPU_FIG_CLOCK_MAX, c, MADE_GREATEST, 1, NULL);
	}
	fill_throttled(gpu, d, ledger_why(a, course_metric(COURSE_THROTTLED_POWER)));
	fill_use(gpu, a, d, line);
	set(gpu, GPU_FIG_OBSERVED, d->observed_s);
	r = fill_lost(gpu, d);
	keep_reasons(s, gpu);
	return r < 0 ? r : fill_energy(gpu, d);
}

/* ---- one recording ---- */

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

bool summary_gpu_is_used(const struct summary_gpu *gpu)
{
	return (has_value(gpu, GPU_FIG_JOB_MEMORY_PEAK) && gpu->figure[GPU_FIG_JOB_MEMORY_PEAK].value > 0) ||
		(has_value(gpu, GPU_FIG_JOB_BUSY) && gpu->figure[GPU_FIG_JOB_BUSY].value > 0);
}

bool summary_gpu_was_read(const struct summary_gpu *gpu)
{
	for (unsigned i = 0; i < GPU_FIG_OBSERVED; i++)
		if (has_value(gpu, i))
			return true;
	return false;
}

bool summary_gpu_is_of_job(const struct summary_gpu *gpu)
{
	const char *job = gpu->text[GPU_TEXT_JOB];

	return (job && !strcmp(job, "yes")) || summary_gpu_is_used(gpu);
}

static void fill_joules(struct summary *s, const char *why)
{
	double all = 0, job = 0;
	bool any = false, any_job = false;

	for (size_t i = 0; i < s->nr_gpus; i++) {
		const struct summary_gpu *gpu = &s->gpu[i];

		if (gpu->text[GPU_TEXT_COUNTED_ELSEWHERE] || !has_value(gpu, GPU_FIG_ENERGY))
			continue;
		any = true;
		all += gpu->figure[GPU_FIG_ENERGY].value;
		if (!summary_gpu_is_of_job(gpu))
			continue;
		any_job = true;
		job += gpu->figure[GPU_FIG_ENERGY].value;
	}
	if (any)
		figure_set(s, FIG_GPU_ENERGY, all);
	else
		figure_unset(s, FIG_GPU_ENERGY, why);
	if (any_job)
		figure_set(s, FIG_JOB_GPU_ENERGY, job);
	else
		figure_unset(s, FIG_JOB_GPU_ENERGY, any ? "no GPU is known as the job's" : why);
}

/* One that is not the job's may well be closed to us. */
static void note_never_read(struct summary *s, const struct summary_gpu *gpu)
{
	if (!same_text(gpu->text[GPU_TEXT_JOB], "no"))
		summary_note(s, "GPU %s could not be read at any time: %s", gpu->text[GPU_TEXT_INSTANCE],
			gpu->text[GPU_TEXT_LOST]);
}

static void note_gpus(struct summary *s, const struct gpus *gpus)
{
	char text[UNITS_SIZE];

	for (size_t i = 0; i < s->nr_gpus; i++) {
		const struct summary_gpu *gpu = &s->gpu[i];

		if (has_value(gpu, GPU_FIG_LOST_AT) && !summary_gpu_was_read(gpu))
			note_never_read(s, gpu);
		else if (has_value(gpu, GPU_FIG_LOST_AT))
			summary_note(s, "GPU %s was lost after %s: %s", gpu->text[GPU_TEXT_INSTANCE],
				format_duration(text, gpu->figure[GPU_FIG_LOST_AT].value),
				gpu->text[GPU_TEXT_LOST]);
		if (has_value(gpu, GPU_FIG_ECC_UNCORRECTED) && gpu->figure[GPU_FIG_ECC_UNCORRECTED].value > 0)
			summary_note(s, "GPU %s had %.0f memory error%s that could not be corrected",
				gpu->text[GPU_TEXT_INSTANCE], gpu->figure[GPU_FIG_ECC_UNCORRECTED].value,
				gpu->figure[GPU_FIG_ECC_UNCORRECTED].value == 1 ? "" : "s");
	}
	if (gpus->assumed)
		summary_note(s, "which GPU processes are the job's is assumed: %s", gpus->assumed);
	if (gpus->left_out)
		summary_note(s, "%zu more GPUs are not followed", gpus->left_out);
}

/* The device, and behind it its slices. */
static int fill_family(struct summary *s, const struct ledger *a, size_t device, unsigned line)
{
	const struct gpus *gpus = ledger_gpus(a);
	int r = 0;

	for (size_t i = device; i < gpus->nr && r >= 0; i++) {
		const struct gpu_track *d = gpus->device[i];

		if (i != device && d->parent != (int)device)
			continue;
		if (!line || d->use[line].any)
			r = fill_device(s, a, d, line);
	}
	return r;
}

int fill_gpus(struct summary *s, const struct ledger *a, unsigned line)
{
	const struct gpus *gpus = ledger_gpus(a);
	const char *why = ledger_why(a, course_metric(COURSE_UTIL));
	int r = 0;

	for (size_t i = 0; i < gpus->nr && r >= 0; i++)
		if (gpus->device[i]->parent < 0)
			r = fill_family(s, a, i, line);
	if (line || r < 0)
		return r;
	fill_joules(s, gpus->nr ? ledger_why(a, course_metric(COURSE_ENERGY)) : why);
	if (!gpus->nr && gpus->set >= 0)
		s->gpus_why = summary_keep(s, why);
	/* There is one, else it would not have been tried. */
	if (!gpus->nr && ledger_told(a, course_metric(COURSE_UTIL)))
		summary_note(s, "GPUs could not be read: %s", why);
	note_gpus(s, gpus);
	return 0;
}

/* ---- several recordings ---- */

static struct summary_gpu *find(const struct summary *s, const struct summary_gpu *like)
{
	for (size_t i = 0; i < s->nr_gpus; i++)
		if (same_text(s->gpu[i].text[GPU_TEXT_HOST], like->text[GPU_TEXT_HOST]) &&
			same_text(s->gpu[i].text[GPU_TEXT_INSTANCE], like->text[GPU_TEXT_INSTANCE]))
			return &s->gpu[i];
	return NULL;
}

static int copy(struct summary *total, const struct summary_gpu *from)
{
	struct summary_gpu *gpu = add(total);

	if (!gpu)
		return -ENOMEM;
	gpu->index = from->index;
	memcpy(gpu->figure, from->figure, sizeof(gpu->figure));
	for (unsigned i = 0; i < NR_GPU_TEXTS; i++) {
		gpu->text[i] = from->text[i] ? strdup(from->text[i]) : NULL;
		if (from->text[i] && !gpu->text[i])
			return -ENOMEM;
	}
	return 0;
}

/* Two recordings of one machine saw the same device: the one that saw it longer tells of it. What each saw
 * for its own job is added. */
static void merge(struct summary_gpu *gpu, const struct summary_gpu *other)
{
	bool longer = other->figure[GPU_FIG_OBSERVED].value > gpu->figure[GPU_FIG_OBSERVED].value;

	for (unsigned i = 0; i < NR_GPU_FIGURES; i++) {
		struct figure *f = &gpu->figure[i];
		const struct figure *o = &other->figure[i];

		if (summary_gpu_row[i].of_group && !f->why && !o->why)
			f->value += o->value;
		else if (!o->why && (f->why || (longer && !summary_gpu_row[i].of_group)))
			*f = *o;
	}
}

int combine_gpus(struct summary *total, const struct parts *of)
{
	size_t merged = 0;
	int r = 0;

	for (size_t i = 0; i < of->nr; i++)
		for (size_t k = 0; k < of->part[i]->nr_gpus && r >= 0; k++) {
			const struct summary_gpu *from = &of->part[i]->gpu[k];
			struct summary_gpu *known = find(total, from);

			if (known) {
				merge(known, from);
				merged++;
			} else {
				r = copy(total, from);
			}
		}
	for (size_t i = 0; i < of->nr && !total->nr_gpus && !total->gpus_why; i++)
		total->gpus_why = of->part[i]->gpus_why;
	if (merged && !total->name)
		summary_note(total,
			"several recordings saw the same GPUs: what their jobs used of one is added, peaks "
			"of "
			"memory too");
	return r;
}
