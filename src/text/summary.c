/* The summary for people: one block a recording, a line a subject, the honest notes below.
 *
 *	tacho  ./train --epochs 3   exit 0   wall 12m03s
 *	  alarm    throttled: the CPU quota of /job_7 held its threads back for 41.2s altogether
 *	  job      slurm 4711, its processes found by cgroup
 *	  cpu      34m50s (user 33m10s, sys 1m40s)   2.9 cores mean, 3.9 peak, of 4
 *	           72 % of the 4 CPUs allowed (cpuset /job_7), 5 % of the node
 *	           counted by cgroup; 99 % of it seen in sampled processes
 *	  memory   peak 1.2 GiB PSS at 0m58s   (RSS sum 1.4 GiB, USS 1.1 GiB)
 *	           60 % of the 2 GiB allowed (cgroup /job_7), 1 % of the node
 *	  counters IPC 1.83 · 3.1 GHz · cache misses 2.1 %
 *	  gpu 0    NVIDIA A100-SXM4-40GB  util 37 % mean (job 35 %), 92 % max · memory peak 1 GiB of 40 GiB
 *	  io       read 0 B  wrote 12 KiB (disk)   read 3.1 GiB  wrote 9 MiB (calls)   syscalls 4,711
 *	  net      received 1.2 GiB  sent 31 MiB (all of the node)
 *	  energy   123 kJ, 171 W mean (rapl: package-0, dram-0)
 *	  groups   name      procs      cpu  cores   memory     read    wrote
 *	           blastn       12    21m0s    1.7  800 MiB  2.1 GiB    3 MiB
 *	  by phase   wall    cpu  cores  peak mem     read    wrote
 *	  load      41.2s  38.9s   0.94   2.1 GiB   14 GiB   12 MiB
 *	  tree     14 processes, 5 at once, 9 threads
 *
 * Traffic, disks, energy, groups and limits have their lines only where there is something to say.
 * A number that is an estimate carries a "~", one that is a lower bound a "≥"; what could not be measured is
 * named with its reason instead of a number. The shape of CPU and memory use stands at the right when there
 * is room. */
#include "text/page.h"

#include "base/str.h"
#include "text/balance.h"
#include "text/phases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SPARK_WIDTH 24
#define SPARK_LEAST 8
#define SPARK_TERMINAL 100 /* narrower ones have no room for it */

/* ---- the shape ---- */

static void add_spark(struct buf *out, const struct spark *spark, double end, bool greatest, double most,
	unsigned width, bool utf8)
{
	static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = "_.-~=+*#";
	double bar[SPARK_WIDTH];

	spark_draw(spark, end, greatest, bar, width);
	for (unsigned i = 0; i < width; i++)
		most = isnan(bar[i]) ? most : MAX(most, bar[i]);
	for (unsigned i = 0; i < width; i++) {
		unsigned height = most > 0 && bar[i] > 0 ? (unsigned)MIN(bar[i] / most * 8, 7) : 0;

		if (isnan(bar[i]))
			buf_addch(out, ' ');
		else if (utf8)
			buf_adds(out, block[height]);
		else
			buf_addch(out, ascii[height]);
	}
}

/* ---- the lines ---- */

void summary_outcome(const struct summary *s, struct buf *line)
{
	const char *target = s->text[TEXT_TARGET];
	char name[UNITS_SIZE];

	if (has_figure(s, FIG_EXIT_CODE)) {
		buf_addf(line, "exit %.0f", s->figure[FIG_EXIT_CODE].value);
	} else if (has_figure(s, FIG_EXIT_SIGNAL)) {
		buf_addf(line, "killed by %s", format_signal(name, (int)s->figure[FIG_EXIT_SIGNAL].value));
	} else if (!s->complete) {
		buf_adds(line, "unfinished");
	} else if (!strcmp(s->mode, "attach")) {
		buf_adds(line, "attached");
		if (target) {
			buf_adds(line, " to ");
			add_text(line, target, strnlen(target, 40), LETTERS_ASCII);
		}
	} else {
		buf_adds(line, "still running");
	}
}

static void print_head(const struct page *p, const char *name)
{
	bool good = has(p, FIG_EXIT_CODE) && value(p, FIG_EXIT_CODE) == 0;
	char text[UNITS_SIZE];
	size_t from = p->out->len, room;
	struct buf tail;

	buf_init(&tail, 1000);
	summary_outcome(p->s, &tail);
	room = strlen(name) + tail.len + 25;
	room = p->style->width > room + 20 ? p->style->width - room : 20;
	color(p->out, p, "1");
	buf_adds(p->out, name);
	color(p->out, p, "0");
	buf_adds(p->out, "  ");
	from = p->out->len;
	if (p->s->command_len)
		add_command(p->out, p->s->command, p->s->command_len, letters(p));
	else if (p->s->nr_nodes)
		add_count(p->out, (double)p->s->nr_nodes, "recording", "recordings");
	clip(p->out, from, room, p->style->utf8);
	buf_adds(p->out, p->out->len > from ? "   " : "");
	color(p->out, p, good ? "32" : "31");
	buf_add(p->out, tail.data, tail.len);
	color(p->out, p, "0");
	buf_addf(p->out, "   wall %s\n", format_duration(text, value(p, FIG_WALL)));
	buf_release(&tail);
}

void print_line(const struct page *p, const char *label, const char *label_color, const char *text)
{
	add_paragraph(
		p->out, 2, label, p->style->color ? label_color : NULL, LABEL_WIDTH, text, p->style->width);
}

/* The job may not have all that the machine has. */
static bool binds(const struct page *p, enum figure_id limit, enum figure_id machine)
{
	return has(p, limit) && (!has(p, machine) || value(p, limit) < value(p, machine));
}

static void add_bound(struct buf *line, const struct page *p, bool is_lower)
{
	if (is_lower)
		buf_adds(line, p->style->utf8 ? "≥ " : ">= ");
}

static void cpu_line(const struct page *p, struct buf *line)
{
	char a[UNITS_SIZE], b[UNITS_SIZE];

	if (!has(p, FIG_CPU)) {
		buf_addf(line, "not known: %s", p->s->figure[FIG_CPU].why);
		return;
	}
	add_bound(line, p, p->s->cpu_lower_bound);
	buf_adds(line, format_duration(a, value(p, FIG_CPU)));
	if (has(p, FIG_USER) && has(p, FIG_SYSTEM))
		buf_addf(line, " (user %s, sys %s)", format_duration(a, value(p, FIG_USER)),
			format_duration(b, value(p, FIG_SYSTEM)));
	if (!has(p, FIG_MEAN_CORES))
		return;
	buf_addf(line, "   %s cores mean", format_cores(a, value(p, FIG_MEAN_CORES)));
	if (has(p, FIG_PEAK_CORES)) {
		buf_adds(line, ", ");
		add_bound(line, p, p->s->end_missing);
		buf_addf(line, "%s peak", format_cores(b, value(p, FIG_PEAK_CORES)));
	}
	if (binds(p, FIG_LIMIT_CPUS, FIG_MACHINE_CPUS))
		buf_addf(line, ", of %s", format_number(a, value(p, FIG_LIMIT_CPUS)));
	else if (has(p, FIG_CPUS))
		buf_addf(line, ", of %.0f", value(p, FIG_CPUS));
}

void add_percent(struct buf *line, double ratio)
{
	double percent = MIN(100 * ratio, 1e6);

	buf_addf(line, "%.*f %%", percent < 9.95 && percent >= 0.05 ? 1 : 0, percent);
}

/* "72 % of the 4 CPUs allowed (cgroup /job_7), 5 % of the node", when the job may not have all of it. */
static void allowed_line(const struct page *p, struct buf *line, enum figure_id share, const char *allowed,
	enum text_id source, enum figure_id of_node)
{
	const char *text = p->s->text[source];

	if (!has(p, share))
		return;
	add_percent(line, value(p, share));
	buf_addf(line, " of the %s allowed", allowed);
	if (text) {
		buf_adds(line, " (");
		add_text(line, text, strlen(text), letters(p));
		buf_addch(line, ')');
	}
	if (has(p, of_node)) {
		buf_adds(line, ", ");
		add_percent(line, value(p, of_node));
		buf_adds(line, " of the node");
	}
}

static void cpu_allowed_line(const struct page *p, struct buf *line)
{
	char number[UNITS_SIZE], text[UNITS_SIZE + 8];

	if (!binds(p, FIG_LIMIT_CPUS, FIG_MACHINE_CPUS))
		return;
	snprintf(text, sizeof(text), "%s CPU%s", format_number(number, value(p, FIG_LIMIT_CPUS)),
		value(p, FIG_LIMIT_CPUS) == 1 ? "" : "s");
	allowed_line(p, line, FIG_CPU_OF_ALLOCATION, text, TEXT_CPUS_SOURCE, FIG_CPU_OF_NODE);
}

static void source_line(const struct page *p, struct buf *line)
{
	if (!p->s->cpu_source)
		return;
	if (!strcmp(p->s->cpu_source, "final total"))
		buf_adds(line, "the total that was counted up to the end");
	else
		buf_addf(line, "counted by %s", p->s->cpu_source);
	if (has(p, FIG_OBSERVED))
		buf_addf(line, "; %.*f %% of it seen in sampled processes",
			value(p, FIG_OBSERVED) > 0.995 && value(p, FIG_OBSERVED) < 0.99995 ? 2 : 0,
			100 * value(p, FIG_OBSERVED));
}

static void add_bytes(struct buf *line, const struct page *p, const char *before, enum figure_id id)
{
	char text[UNITS_SIZE];

	if (has(p, id))
		buf_addf(line, "%s%s", before, format_bytes(text, value(p, id)));
}

static void add_event(struct buf *line, const struct page *p, enum figure_id at)
{
	if (has(p, at))
		add_when(p->s->phases, value(p, at), value(p, FIG_WALL), line);
}

static void memory_line(const struct page *p, struct buf *line)
{
	bool least = p->s->memory_lower_bound && summary_memory(p->s) != FIG_HWM;
	char text[UNITS_SIZE];
	size_t from;

	/* What the kernel saw between two samples comes first: it is the number that a limit would have met.
	 */
	if (summary_memory(p->s) == FIG_HWM) {
		buf_adds(line, "peak ");
		add_bound(line, p, p->s->memory_lower_bound);
		buf_addf(line, "%s in one process, between samples%s", format_bytes(text, value(p, FIG_HWM)),
			strcmp(p->s->mode, "attach") ? "" : " or before");
		if (!has(p, FIG_RSS))
			return;
		buf_adds(line, "; sampled ");
	}
	if (has(p, FIG_PSS)) {
		buf_adds(line, "peak ");
		add_bound(line, p, least);
		buf_addf(
			line, "%s%s PSS", tilde(p, FIG_PSS_ESTIMATED), format_bytes(text, value(p, FIG_PSS)));
		add_event(line, p, FIG_PSS_AT);
	} else if (has(p, FIG_RSS)) {
		buf_adds(line, "peak ");
		add_bound(line, p, least);
		buf_addf(line, "%s RSS sum", format_bytes(text, value(p, FIG_RSS)));
		add_event(line, p, FIG_RSS_AT);
	} else if (has(p, FIG_MEMORY)) {
		buf_addf(line, "peak %s in its control group, with cached files",
			format_bytes(text, value(p, FIG_MEMORY)));
	} else {
		buf_addf(line, "not known: %s", p->s->figure[FIG_RSS].why);
	}
	buf_adds(line, "   (");
	from = line->len;
	if (has(p, FIG_PSS))
		add_bytes(line, p, "RSS sum ", FIG_RSS);
	if (has(p, FIG_USS)) {
		buf_adds(line, line->len > from ? ", USS " : "USS ");
		add_bound(line, p, p->s->end_missing);
		buf_adds(line, tilde(p, FIG_USS_ESTIMATED));
		add_bytes(line, p, "", FIG_USS);
	}
	if (has(p, FIG_SWAP) && value(p, FIG_SWAP) > 0)
		add_bytes(line, p, line->len > from ? ", swap " : "swap ", FIG_SWAP);
	if (line->len > from) {
		buf_addch(line, ')');
	} else {
		line->len -= 4;
		line->data[line->len] = 0;
	}
}

static void memory_allowed_line(const struct page *p, struct buf *line)
{
	char text[UNITS_SIZE];

	if (!binds(p, FIG_LIMIT_MEMORY, FIG_MACHINE_MEMORY))
		return;
	allowed_line(p, line, FIG_MEMORY_OF_ALLOCATION, format_bytes(text, value(p, FIG_LIMIT_MEMORY)),
		TEXT_MEMORY_SOURCE, FIG_MEMORY_OF_NODE);
	if (has(p, FIG_CGROUP_PEAK))
		buf_addf(line, "%scontrol group's own peak %s", line->len ? "; " : "",
			format_bytes(text, value(p, FIG_CGROUP_PEAK)));
}

static void io_line(const struct page *p, struct buf *line)
{
	char text[UNITS_SIZE];
	bool disk = has(p, FIG_READ_BYTES) && has(p, FIG_WRITE_BYTES);

	if (disk || has(p, FIG_READ_CHARS))
		add_bound(line, p, p->s->io_lower_bound);
	if (disk) {
		add_bytes(line, p, "read ", FIG_READ_BYTES);
		add_bytes(line, p, "  wrote ", FIG_WRITE_BYTES);
		buf_adds(line, " (storage)");
	}
	if (has(p, FIG_READ_CHARS) && has(p, FIG_WRITE_CHARS)) {
		add_bytes(line, p, disk ? "   read " : "read ", FIG_READ_CHARS);
		add_bytes(line, p, "  wrote ", FIG_WRITE_CHARS);
		buf_adds(line, " (calls)");
	}
	if (has(p, FIG_READ_CALLS) && has(p, FIG_WRITE_CALLS))
		buf_addf(line, "%ssyscalls %s", line->len ? "   " : "",
			format_count(text, value(p, FIG_READ_CALLS) + value(p, FIG_WRITE_CALLS)));
	if (!line->len)
		buf_addf(line, "not known: %s", p->s->figure[FIG_READ_CHARS].why);
}

/* What goes on in the node beside the job is always a little: no line for that. */
#define WORTH_A_LINE (1 << 20)

static void traffic_line(const struct page *p, struct buf *line, const char *const word[2], enum figure_id in,
	enum figure_id out)
{
	char text[UNITS_SIZE];

	if (!has(p, in) || !has(p, out) || value(p, in) + value(p, out) < WORTH_A_LINE)
		return;
	buf_addf(line, "%s %s", word[0], format_bytes(text, value(p, in)));
	buf_addf(line, "  %s %s (all of the node)", word[1], format_bytes(text, value(p, out)));
}

static const char *const received_sent[] = {"received", "sent"}, *const read_wrote[] = {"read", "wrote"};

static void net_line(const struct page *p, struct buf *line)
{
	traffic_line(p, line, received_sent, FIG_NET_RX_BYTES, FIG_NET_TX_BYTES);
}

static void ib_line(const struct page *p, struct buf *line)
{
	traffic_line(p, line, received_sent, FIG_IB_RX_BYTES, FIG_IB_TX_BYTES);
}

static void disk_line(const struct page *p, struct buf *line)
{
	traffic_line(p, line, read_wrote, FIG_DISK_READ, FIG_DISK_WRITTEN);
}

/* Meters of the processors do not see the GPUs; those of the whole node may. */
static void add_gpu_energy(const struct page *p, struct buf *line)
{
	const char *source = p->s->text[TEXT_ENERGY_SOURCE];
	char text[UNITS_SIZE];

	if (!has(p, FIG_GPU_ENERGY) || !(value(p, FIG_GPU_ENERGY) > 0))
		return;
	buf_addf(line, "%sGPUs %s", line->len ? "; " : "", format_si(text, value(p, FIG_GPU_ENERGY), "J"));
	if (!source)
		buf_adds(line, " (nothing else of the node is measured)");
	else if (str_starts(source, "rapl:") && !strchr(source, ';'))
		buf_adds(line, ", not in it");
	else
		buf_adds(line, " by their own meters");
}

static void energy_line(const struct page *p, struct buf *line)
{
	const char *source = p->s->text[TEXT_ENERGY_SOURCE];
	char text[UNITS_SIZE];

	if (has(p, FIG_ENERGY) && value(p, FIG_ENERGY) > 0) {
		buf_adds(line, format_si(text, value(p, FIG_ENERGY), "J"));
		if (has(p, FIG_POWER))
			buf_addf(line, ", %s W mean", format_number(text, value(p, FIG_POWER)));
		if (source) {
			buf_adds(line, " (");
			add_text(line, source, strlen(source), letters(p));
			buf_addch(line, ')');
		}
	}
	add_gpu_energy(p, line);
}

static void bandwidth_line(const struct page *p, struct buf *line)
{
	char text[UNITS_SIZE];

	if (!has(p, FIG_MEMBW_TOTAL))
		return;
	if (has(p, FIG_MEMBW_MEAN))
		buf_addf(line, "%s/s mean", format_bytes(text, value(p, FIG_MEMBW_MEAN)));
	if (has(p, FIG_MEMBW_PEAK))
		buf_addf(line, ", %s/s peak", format_bytes(text, value(p, FIG_MEMBW_PEAK)));
	buf_addf(line, "%s%s moved", line->len ? "   " : "", format_bytes(text, value(p, FIG_MEMBW_TOTAL)));
	if (has(p, FIG_MEMBW_READ) && has(p, FIG_MEMBW_WRITE)) {
		add_bytes(line, p, " (read ", FIG_MEMBW_READ);
		add_bytes(line, p, ", wrote ", FIG_MEMBW_WRITE);
		buf_addch(line, ')');
	}
	buf_adds(line, ", all of the node");
}

static void message_line(const struct page *p, struct buf *line)
{
	const char *message = p->s->text[TEXT_MESSAGE];

	if (message)
		add_text(line, message, strlen(message), letters(p));
}

static void job_line(const struct page *p, struct buf *line)
{
	const char *kind = p->s->text[TEXT_SCHEDULER], *job = p->s->text[TEXT_JOB];
	const char *found_by = p->s->text[TEXT_FOUND_BY];

	if (!kind || !job)
		return;
	add_text(line, kind, strlen(kind), letters(p));
	buf_addch(line, ' ');
	add_text(line, job, strlen(job), letters(p));
	if (found_by) {
		buf_adds(line, ", its processes found by ");
		add_text(line, found_by, strlen(found_by), letters(p));
	}
}

static void tree_line(const struct page *p, struct buf *line)
{
	char text[UNITS_SIZE];
	double unsampled = has(p, FIG_UNSAMPLED) ? value(p, FIG_UNSAMPLED) : 0;

	add_count(line, value(p, FIG_SEEN), "process", "processes");
	if (has(p, FIG_PROCESSES))
		buf_addf(line, ", %s at once", format_count(text, value(p, FIG_PROCESSES)));
	if (has(p, FIG_THREADS)) {
		buf_adds(line, ", ");
		add_count(line, value(p, FIG_THREADS), "thread", "threads");
	}
	if (unsampled > 0 && p->s->unsampled_is_upper_bound)
		buf_addf(line, "; up to %s lived unseen between samples: %s", format_count(text, unsampled),
			p->s->cpu_lower_bound ? "counted as far as seen" : "their use is counted");
	else if (unsampled > 0)
		buf_addf(line, "; %s too short to be sampled: %s", format_count(text, unsampled),
			p->s->cpu_lower_bound ? "counted as far as seen" : "all counted");
}

static void cost_line(const struct page *p, struct buf *line)
{
	char text[UNITS_SIZE];

	/* A share of a moment says nothing: what a short job waited for is the time itself. */
	if (has(p, FIG_SELF_CPU) && value(p, FIG_WALL) < 1)
		buf_addf(line, "%s of CPU, ", format_duration(text, value(p, FIG_SELF_CPU)));
	else if (has(p, FIG_SELF_PERCENT))
		buf_addf(line, "%s %% of one core, ", format_number(text, value(p, FIG_SELF_PERCENT)));
	if (has(p, FIG_SELF_RSS))
		buf_addf(line, "%s, ", format_bytes(text, value(p, FIG_SELF_RSS)));
	add_count(line, value(p, FIG_TICKS), "tick", "ticks");
	if (has(p, FIG_MISSED))
		buf_addf(line, ", %s missed", format_count(text, value(p, FIG_MISSED)));
}

static void path_line(const struct page *p, struct buf *line)
{
	add_text(line, p->s->path, strlen(p->s->path), letters(p));
	if (p->style->hint)
		buf_adds(line, "     (tacho show)");
}

/* The two lines with a shape beside them, which stands in one column. */
static void print_shaped(const struct page *p, struct buf *cpu, struct buf *memory)
{
	size_t column = MAX(utf8_columns((char *)cpu->data), utf8_columns((char *)memory->data)) + 3;
	size_t left = p->style->width > column + LABEL_WIDTH ? p->style->width - column - LABEL_WIDTH : 0;
	unsigned width = (unsigned)MIN(left, (size_t)SPARK_WIDTH);
	double wall = value(p, FIG_WALL);

	if (p->style->width < SPARK_TERMINAL || width < SPARK_LEAST || !(wall > 0))
		return;
	if (has(p, FIG_PEAK_CORES)) {
		pad(cpu, 0, column);
		add_spark(cpu, &p->s->cpu_shape, wall, false, 0, width, p->style->utf8);
	}
	if (has(p, FIG_RSS)) {
		pad(memory, 0, column);
		add_spark(memory, &p->s->memory_shape, wall, true, 0, width, p->style->utf8);
	}
}

static void print_notes(
	const struct page *p, size_t from, size_t to, const char *label, const char *label_color)
{
	struct buf line;

	for (size_t i = from; i < to; i++) {
		buf_init(&line, 100000);
		add_text(&line, p->s->note[i], strlen(p->s->note[i]), letters(p));
		print_line(p, label, label_color, (char *)line.data);
		buf_release(&line);
	}
}

/* Of several nodes: mean over most. */
static void spread_line(const struct page *p, struct buf *line)
{
	if (p->s->nr_nodes)
		balance_line(p->s, p->style->utf8, line);
}

/* ---- the block ---- */

static void print_block(const struct page *p, const char *name)
{
	enum {
		MESSAGE,
		JOB,
		CPU,
		CPU_ALLOWED,
		SOURCE,
		MEMORY,
		MEMORY_ALLOWED,
		BANDWIDTH,
		COUNTERS,
		GPUS,
		IO,
		NET,
		IB,
		DISK,
		ENERGY,
		GROUPS,
		TREE,
		BALANCE,
		COST,
		PATH,
		NR
	};
	static const struct {
		const char *label;
		void (*make)(const struct page *, struct buf *);
	} row[NR] = {{"message", message_line}, {"job", job_line}, {"cpu", cpu_line}, {"", cpu_allowed_line},
		{"", source_line}, {"memory", memory_line}, {"", memory_allowed_line},
		{"membw", bandwidth_line}, {"counters", NULL}, {"gpu", NULL}, {"io", io_line},
		{"net", net_line}, {"ib", ib_line}, {"disk", disk_line}, {"energy", energy_line},
		{"groups", NULL}, {"tree", tree_line}, {"balance", spread_line}, {"cost", cost_line},
		{"kept in", path_line}};
	struct buf line[NR];

	print_head(p, name);
	print_notes(p, 0, p->s->nr_alarms, "alarm", "1;31");
	for (unsigned i = 0; i < NR; i++) {
		buf_init(&line[i], 100000);
		if (row[i].make)
			row[i].make(p, &line[i]);
	}
	print_shaped(p, &line[CPU], &line[MEMORY]);
	for (unsigned i = 0; i < NR; i++) {
		if (i == GROUPS)
			print_groups(p);
		if (i == TREE)
			print_phases(p);
		if (i == COUNTERS)
			print_counters(p);
		if (i == GPUS)
			print_gpus(p);
		if (line[i].len)
			print_line(p, row[i].label, "36", (char *)line[i].data);
		if (line[i].err)
			p->out->err = line[i].err;
		buf_release(&line[i]);
	}
	print_notes(p, p->s->nr_alarms, p->s->nr_notes, "note", "33");
}

static void print_finding(const struct page *p)
{
	const char *text = p->style->finding;
	struct buf line;

	if (!text)
		return;
	buf_init(&line, 100000);
	add_text(&line, text, strlen(text), letters(p));
	if (p->style->hint)
		buf_adds(&line, "     (tacho report)");
	print_line(p, "finding", "1;33", (char *)line.data);
	buf_release(&line);
}

int summary_print(const struct summary *s, const struct summary_style *style, struct buf *out)
{
	struct page page = {.s = s, .style = style, .out = out};
	struct buf name;

	for (size_t i = 0; i < s->nr_nodes; i++) {
		page.s = &s->node[i];
		buf_init(&name, 4096);
		add_text(&name, page.s->host, strlen(page.s->host), letters(&page));
		print_block(&page, name.len ? (char *)name.data : "tacho");
		buf_release(&name);
		buf_addch(out, '\n');
	}
	page.s = s;
	print_block(&page, s->nr_nodes ? "total" : "tacho");
	print_finding(&page);
	return out->err;
}
