/* The head of a report and the numbers that matter. The tables are in outline_tables.c. */
#include "analysis/outline.h"

#include "base/str.h"
#include "text/summary.h"
#include "analysis/axis.h"
#include "analysis/rule.h"
#include "text/phases.h"
#include "text/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 65536
#define NAMES_MAX 120 /* of a list of nodes or users */

/* ---- texts ---- */

char *outline_keep(struct outline *o, const char *text)
{
	return owned_printf(&o->kept, "%s", text);
}

static char *keep_buf(struct outline *o, struct buf *text)
{
	char *kept = outline_keep(o, (char *)text->data);

	o->kept.failed |= text->err != 0;
	buf_release(text);
	return kept;
}

static char *keep_escaped(struct outline *o, const char *words)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	escape_bytes(&text, words, MIN(strlen(words), (size_t)TEXT_MAX / 8));
	return keep_buf(o, &text);
}

void add_file_name(struct buf *out, const char *text)
{
	size_t from = out->len;

	for (; *text && out->len - from < 100; text++) {
		bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
			(*text >= '0' && *text <= '9') || strchr("._-", *text);

		buf_addch(out, plain && (out->len > from || *text != '.') ? *text : '_');
	}
}

/* ---- the head ---- */

/* "a, b, c and 12 more", so that it fits a line. */
static void add_names(struct buf *out, const struct stats_row *row, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (i && out->len + strlen(row[i].name) > NAMES_MAX) {
			buf_addf(out, " and %zu more", nr - i);
			return;
		}
		buf_addf(out, "%s%s", i ? ", " : "", row[i].name);
	}
}

static char *title_of(struct outline *o, const struct summary *s)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	if (s->command_len)
		add_command(&text, s->command, s->command_len, LETTERS_UTF8);
	else if (s->nr_nodes)
		add_count(&text, (double)s->nr_nodes, "recording", "recordings");
	else
		buf_adds(&text, "recording");
	clip(&text, 0, 300, true);
	return keep_buf(o, &text);
}

static char *nodes_of(struct outline *o, const struct analysis *s)
{
	const char *host = s->summary->host;
	struct buf text;

	if (host && *host)
		return keep_escaped(o, host);
	buf_init(&text, TEXT_MAX);
	if (s->stats->nr[STATS_NODE] > 1)
		buf_addf(&text, "%zu: ", s->stats->nr[STATS_NODE]);
	add_names(&text, s->stats->row[STATS_NODE], s->stats->nr[STATS_NODE]);
	if (!text.len)
		buf_adds(&text, "?");
	return keep_buf(o, &text);
}

/* Processes too short to be sampled have no known owner, who comes last: a reader is told of those that have.
 */
static char *users_of(struct outline *o, const struct analysis *s)
{
	const struct stats_row *row = s->stats->row[STATS_USER];
	size_t nr = s->stats->nr[STATS_USER];
	struct buf text;

	buf_init(&text, TEXT_MAX);
	if (nr > 1 && !strcmp(row[nr - 1].name, "unknown"))
		nr--;
	add_names(&text, row, nr);
	if (!text.len)
		buf_adds(&text, "?");
	return keep_buf(o, &text);
}

static char *date_of(struct outline *o, const struct summary *s)
{
	char text[UNITS_SIZE];

	if (!s->start_wall_ns)
		return outline_keep(o, "?");
	format_iso8601(text, s->start_wall_ns);
	return outline_keepf(o, "%.10s %.5s UTC", text, text + 11);
}

/* The batch job's number, else the name of the recording or of its directory. */
static char *id_of(struct outline *o, const struct analysis *s)
{
	const char *job = s->summary->text[TEXT_JOB], *path = s->run->nr ? s->run->path[0] : "";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	bool of_job = job && *job;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	add_file_name(&text, of_job ? job : name);
	if (!of_job && text.len > strlen(RECORDING_SUFFIX)) {
		size_t stem = text.len - strlen(RECORDING_SUFFIX);

		if (!strcmp((char *)text.data + stem, RECORDING_SUFFIX))
			text.data[text.len = stem] = 0;
	}
	if (!text.len)
		buf_adds(&text, "run");
	return keep_buf(o, &text);
}

static char *job_of(struct outline *o, const struct summary *s)
{
	const char *kind = s->text[TEXT_SCHEDULER], *job = s->text[TEXT_JOB];

	if (!job || !*job || !kind || !*kind)
		return keep_escaped(o, job ? job : "");
	return outline_keepf(o, "%s %s", keep_escaped(o, kind), keep_escaped(o, job));
}

static void fill_head(struct outline *o, const struct analysis *s)
{
	const char *message = s->summary->text[TEXT_MESSAGE];
	struct buf text;

	o->title = title_of(o, s->summary);
	buf_init(&text, TEXT_MAX);
	summary_outcome(s->summary, &text);
	o->outcome = keep_buf(o, &text);
	o->id = id_of(o, s);
	o->job = job_of(o, s->summary);
	o->message = keep_escaped(o, message ? message : "");
	o->user = users_of(o, s);
	o->nodes = nodes_of(o, s);
	o->date = date_of(o, s->summary);
}

/* ---- the numbers that matter ---- */

static double figure(const struct analysis *s, enum figure_id id)
{
	return has_figure(s->summary, id) ? s->summary->figure[id].value : NAN;
}

static void add_fact(struct outline *o, const char *name, char *value, char *detail)
{
	struct outline_fact *fact = ARRAY_ADD(o->fact, o->nr_facts);

	if (fact)
		*fact = (struct outline_fact){.name = name, .value = value, .detail = detail};
	else
		o->kept.failed = true;
}

/* "60 % of the 2 GiB allowed", "12 % of 16 GiB", or nothing. */
static void add_share(struct buf *out, double ratio, double of, bool allowed)
{
	if (!isnan(ratio))
		buf_addf(out, "%s %% of %s%s%s", format_number(SHOWN, MIN(100 * ratio, 1e6)),
			allowed ? "the " : "", format_bytes(SHOWN, of), allowed ? " allowed" : "");
}

static void fact_time(struct outline *o, const struct analysis *s)
{
	if (!isnan(figure(s, FIG_WALL)))
		add_fact(o, "Time", outline_keep(o, format_duration(SHOWN, figure(s, FIG_WALL))), o->outcome);
}

static void fact_cpu(struct outline *o, const struct analysis *s)
{
	double limit = figure(s, FIG_LIMIT_CPUS), of = isnan(limit) ? figure(s, FIG_CPUS) : limit;
	double mean = figure(s, FIG_MEAN_CORES), peak = figure(s, FIG_PEAK_CORES),
	       window = figure(s, FIG_PEAK_WINDOW);
	const char *time = format_duration(SHOWN, figure(s, FIG_CPU));
	bool windowed = !isnan(peak) && !isnan(window);

	if (isnan(figure(s, FIG_CPU)))
		return;
	add_fact(o, "CPU, mean",
		isnan(mean)	    ? outline_keep(o, time)
			: isnan(of) ? outline_keepf(o, "%s cores", format_cores(SHOWN, mean))
				    : outline_keepf(o, "%s of %s cores", format_cores(SHOWN, mean),
					      format_number(SHOWN, of)),
		outline_keepf(o, "%s CPU time%s%s%s%s", time, isnan(peak) ? "" : ", peak ",
			isnan(peak) ? "" : format_cores(SHOWN, peak), windowed ? " in " : "",
			windowed ? format_duration(SHOWN, window) : ""));
}

static void fact_memory(struct outline *o, const struct analysis *s)
{
	const char *view = summary_memory_view(s->summary);
	/* A large number has room for a short word beside it. */
	const char *name = *view == 'p' ? " PSS" : *view == 'r' ? " RSS" : "";
	double peak = figure(s, FIG_MEMORY), limit = figure(s, FIG_LIMIT_MEMORY),
	       machine = figure(s, FIG_MACHINE_MEMORY);
	struct memory_view known = memory_view_of(s, s->summary, 0, true);
	bool allowed = !isnan(limit) && !(limit >= machine);
	struct buf detail;

	if (isnan(peak))
		return;
	buf_init(&detail, TEXT_MAX);
	buf_adds(&detail,
		*view == 'h'	       ? "in one process, between samples"
			: *view == 'c' ? "in its control group, with cached files"
				       : "");
	if (detail.len && !isnan(allowed ? limit : machine))
		buf_adds(&detail, "; ");
	add_share(&detail, peak / (allowed ? limit : machine), allowed ? limit : machine, allowed);
	if (s->summary->phases && known.bytes == peak && !isnan(known.at_s)) {
		size_t before = detail.len;

		buf_adds(&detail, before ? ", in " : "in ");
		if (!add_phase_at(s->summary->phases, known.at_s, known.at_s, &detail))
			detail.data[detail.len = before] = 0;
	}
	add_fact(o, "Memory, peak",
		outline_keepf(o, "%s%s%s%s", s->summary->memory_lower_bound ? "≥" : "",
			*view == 'p' && figure(s, FIG_PSS_ESTIMATED) > 0.01 ? "~" : "",
			format_bytes(SHOWN, peak), name),
		keep_buf(o, &detail));
}

static void fact_io(struct outline *o, const struct analysis *s)
{
	double read = figure(s, FIG_READ_BYTES), wrote = figure(s, FIG_WRITE_BYTES);
	double cancelled = figure(s, FIG_CANCELLED);

	if (isnan(read) || isnan(wrote))
		return;
	add_fact(o, "Storage", outline_keepf(o, "%s written", format_bytes(SHOWN, wrote)),
		cancelled > 0 && strcmp(format_bytes(SHOWN, cancelled), "0 B")
			? outline_keepf(o, "%s read, %s never written: the files were cut or removed first",
				  format_bytes(SHOWN, read), format_bytes(SHOWN, cancelled))
			: outline_keepf(o, "%s read", format_bytes(SHOWN, read)));
}

static void fact_processes(struct outline *o, const struct analysis *s)
{
	double threads = figure(s, FIG_THREADS), at_once = figure(s, FIG_PROCESSES);
	char *detail = outline_keep(o, "");

	if (isnan(figure(s, FIG_SEEN)))
		return;
	if (!isnan(at_once) && isnan(threads))
		detail = outline_keepf(o, "%s at once", format_count(SHOWN, at_once));
	else if (!isnan(at_once))
		detail = outline_keepf(o, "%s at once, %s thread%s", format_count(SHOWN, at_once),
			format_count(SHOWN, threads), threads == 1 ? "" : "s");
	add_fact(o, "Processes", outline_keep(o, format_count(SHOWN, figure(s, FIG_SEEN))), detail);
}

/* Of the GPUs that are the job's. */
static void fact_gpus(struct outline *o, const struct analysis *s)
{
	double util = 0, peak = 0;
	size_t nr = 0, known = 0;

	for (size_t i = 0; i < s->summary->nr_gpus; i++) {
		const struct summary_gpu *gpu = &s->summary->gpu[i];

		if (!summary_gpu_is_of_job(gpu) || gpu->text[GPU_TEXT_COUNTED_ELSEWHERE])
			continue;
		nr++;
		if (gpu->figure[GPU_FIG_MEMORY_PEAK].why == NULL)
			peak = MAX(peak, gpu->figure[GPU_FIG_MEMORY_PEAK].value);
		if (gpu->figure[GPU_FIG_UTIL_MEAN].why == NULL) {
			util += gpu->figure[GPU_FIG_UTIL_MEAN].value;
			known++;
		}
	}
	if (!nr)
		return;
	add_fact(o, nr == 1 ? "GPU" : "GPUs",
		known ? outline_keepf(o, "%s %% busy", format_number(SHOWN, util / (double)known))
		      : outline_keepf(o, "%zu", nr),
		peak > 0 ? outline_keepf(o, "%zu given, memory peak %s", nr, format_bytes(SHOWN, peak))
			 : outline_keepf(o, "%zu given", nr));
}

static void fact_energy(struct outline *o, const struct analysis *s)
{
	double power = figure(s, FIG_POWER);

	if (isnan(figure(s, FIG_ENERGY)))
		return;
	add_fact(o, "Energy", outline_keep(o, format_si(SHOWN, figure(s, FIG_ENERGY), "J")),
		isnan(power) ? outline_keep(o, "of the node")
			     : outline_keepf(o, "of the node, %s mean", format_si(SHOWN, power, "W")));
}

static void outline_facts(struct outline *o, const struct analysis *s)
{
	fact_time(o, s);
	fact_cpu(o, s);
	fact_memory(o, s);
	fact_io(o, s);
	fact_gpus(o, s);
	fact_processes(o, s);
	fact_energy(o, s);
}

/* "Phase epoch 2: from 1.52s to 1.99s of 5.1s." */
static void outline_window(struct outline *o, const struct analysis *s)
{
	const struct phase *phase = s->phase;
	double step = (s->to_s - s->from_s) / 10;
	char times[UNITS_SIZE] = "";

	o->window = outline_keep(o, "");
	if (!s->part)
		return;
	if (phase && phase->count > 1)
		snprintf(times, sizeof(times), " ×%u", (unsigned)phase->count);
	o->window = outline_keepf(o,
		"%s%s%s: from %s to %s of %s. Plots are of this time; all else is of the whole run.",
		phase ? "Phase " : "Part of the run", phase ? phase->name : "", times,
		format_tick_time(SHOWN, s->from_s, step), format_tick_time(SHOWN, s->to_s, step),
		format_duration(SHOWN, figure(s, FIG_WALL)));
}

int outline_make(const struct analysis *s, struct outline **ret)
{
	struct outline *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	fill_head(o, s);
	outline_window(o, s);
	outline_facts(o, s);
	outline_tables(o, s);
	if (o->kept.failed) {
		outline_free(o);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

struct outline *outline_free(struct outline *o)
{
	if (!o)
		return NULL;
	for (size_t i = 0; i < o->nr_tables; i++) {
		free(o->table[i].column);
		free(o->table[i].cell);
	}
	free(o->table);
	free(o->fact);
	owned_free(&o->kept);
	free(o);
	return NULL;
}
