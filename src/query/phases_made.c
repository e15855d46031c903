/* Phases when their recording is read: names of many repetitions, values of sums, which repetition stands out
 * and why, and those of several nodes as one. */
#include "query/phases_internal.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/process_table.h"

#include <math.h>
#include <string.h>

/* ---- columns ---- */

/* clang-format off */
#define NUMBER_SECONDS .unit = UNIT_SECONDS
#define NUMBER_BYTES .unit = UNIT_BYTES, .whole = true
#define NUMBER_NUMBER .unit = UNIT_COUNT, .whole = true
#define NUMBER_COUNT .unit = UNIT_COUNT, .whole = true
#define NUMBER_PLAIN .unit = UNIT_COUNT
#define NUMBER_JOULES .unit = UNIT_JOULES
#define NUMBER_HERTZ .unit = UNIT_HERTZ
#define TITLE_OF_STATS(title_, help_, ...) title_, help_
#define TITLE_OF_NO_STATS NULL, NULL
#define AMOUNT(id, name_, unit_, children, metric, ended, figure, stats, process) \
	[PHASE_##id] = {name_ QUANTITY_SUFFIX_##unit_, TITLE_OF_##stats, NUMBER_##unit_, .join = JOIN_ADD},
#define LEVEL(id, name_, kind, ...) \
	[PHASE_##id##_PEAK] = {name_ "_peak" QUANTITY_SUFFIX_##kind, NULL, PHASE_PEAK_HELP, QUANTITY_UNIT_##kind, .whole = true, .level = true}, \
	[PHASE_##id##_MEAN] = {name_ "_mean" QUANTITY_SUFFIX_##kind, NULL, PHASE_MEAN_HELP, QUANTITY_UNIT_##kind, .level = true},
#define ROW(id, name_, unit_, join_, title_, help_) [PHASE_##id] = {name_, title_, help_, NUMBER_##unit_, .join = JOIN_##join_},
const struct phase_column phase_column[NR_PHASE_VALUES] = {PHASE_COLUMNS(ROW, AMOUNT, LEVEL)};
#undef ROW
#undef LEVEL
#undef AMOUNT
/* clang-format on */

/* ---- values ---- */

void sums_clear(struct phase_sums *s)
{
	*s = (struct phase_sums){.mark = NAN};
	for (unsigned i = 0; i < NR_PEAKS; i++)
		s->peak[i] = NAN;
}

void raise_peaks(double *peak, const double *other)
{
	for (unsigned i = 0; i < NR_PEAKS; i++)
		peak[i] = known_max(peak[i], other[i]);
}

static void make_gpu_values(const struct phase_sums *s, const struct phase_known *k, double *value)
{
	double sum[NR_SLOT_SUMS] = {0}, joules = 0, memory = NAN;

	for (uint32_t rest = k->slots; rest; rest &= rest - 1) {
		unsigned slot = (unsigned)__builtin_ctz(rest);
		const double *of = &s->sum[SUM_SLOT + slot * NR_SLOT_SUMS];
		double held = s->peak[PEAK_SLOT + slot];

		for (unsigned i = 0; i < NR_SLOT_SUMS; i++)
			sum[i] += of[i];
		joules += k->metered >> slot & 1 ? of[SLOT_METER] : of[SLOT_POWER];
		memory = isnan(held) ? memory : isnan(memory) ? held : memory + held;
	}
	value[PHASE_GPU_MEMORY] = memory;
	if (!(sum[SLOT_ELAPSED] > 0))
		return;
	value[PHASE_GPU_SECONDS] = sum[SLOT_ELAPSED];
	value[PHASE_GPU_UTIL] = 100 * sum[SLOT_UTIL] / sum[SLOT_ELAPSED];
	value[PHASE_GPU_THROTTLED] = sum[SLOT_THROTTLED];
	if (joules > 0)
		value[PHASE_GPU_ENERGY] = joules;
}

static double cause_of(const struct phase_sums *s, const struct phase_known *k, unsigned own, unsigned node)
{
	unsigned from = k->causes >> own & 1 ? own : node;

	return k->causes >> from & 1 ? s->sum[SUM_CAUSE + from] : NAN;
}

static void make_node_values(const struct phase_sums *s, const struct phase_known *k, double *value)
{
#define ROW(id, ...)                     \
	if (k->totals >> TOTAL_##id & 1) \
		value[PHASE_##id] = s->sum[SUM_TOTAL + TOTAL_##id];
	PHASE_OF_NODE(ROW)
#undef ROW
	if (k->totals >> TOTAL_ENERGY & 1)
		value[PHASE_ENERGY] = s->sum[SUM_TOTAL + TOTAL_ENERGY];
	else if (k->totals >> TOTAL_POWER & 1)
		value[PHASE_ENERGY] = s->sum[SUM_TOTAL + TOTAL_POWER];
	value[PHASE_CPU_PRESSURE] = cause_of(s, k, CAUSE_CPU_GROUP, CAUSE_CPU_NODE);
	value[PHASE_IO_PRESSURE] = cause_of(s, k, CAUSE_IO_GROUP, CAUSE_IO_NODE);
	value[PHASE_MEMORY_PRESSURE] = cause_of(s, k, CAUSE_MEMORY_GROUP, CAUSE_MEMORY_NODE);
	value[PHASE_RUN_QUEUE] = cause_of(s, k, CAUSE_RUN_QUEUE, CAUSE_RUN_QUEUE);
	value[PHASE_SWAP_IN] = cause_of(s, k, CAUSE_SWAP_IN, CAUSE_SWAP_IN);
	value[PHASE_THERMAL] = cause_of(s, k, CAUSE_THERMAL, CAUSE_THERMAL);
	if (k->nr_clocks && s->sum[SUM_CLOCK_S] > 0)
		value[PHASE_CLOCK] =
			s->sum[SUM_CAUSE + CAUSE_CLOCK] / s->sum[SUM_CLOCK_S] / (double)k->nr_clocks;
}

static void make_levels(const struct phase_sums *s, double *value)
{
	/* An edge has its share of what was held at the tick before it: that is not more than was in it. */
#define ROW(id, ...)                                                           \
	value[PHASE_##id##_PEAK] = s->peak[PEAK_HELD + LEVEL_##id];            \
	if (s->sum[SUM_KNOWN + LEVEL_##id] > 0)                                \
		value[PHASE_##id##_MEAN] = known_min(value[PHASE_##id##_PEAK], \
			s->sum[SUM_HELD + LEVEL_##id] / s->sum[SUM_KNOWN + LEVEL_##id]);
	LEVELS(ROW)
#undef ROW
	switch (*memory_answer(s->mark, value[PHASE_RSS_PEAK], value[PHASE_PSS_PEAK])) {
	case 'h':
		value[PHASE_MEMORY] = s->mark;
		break;
	case 'r':
		value[PHASE_MEMORY] = value[PHASE_RSS_PEAK];
		break;
	default:
		value[PHASE_MEMORY] = value[PHASE_PSS_PEAK];
	}
}

static void make_cores(double *value)
{
	value[PHASE_CORES] = value[PHASE_WALL] > 0 ? value[PHASE_CPU] / value[PHASE_WALL] : NAN;
}

void make_values(const struct phase_sums *s, const struct phase_known *k, double *value)
{
	for (unsigned i = 0; i < NR_PHASE_VALUES; i++)
		value[i] = NAN;
	value[PHASE_WALL] = (double)s->wall_ns / 1e9;
#define ROW(id, ...)                  \
	if (k->used >> USED_##id & 1) \
		value[PHASE_##id] = s->sum[SUM_USED + USED_##id];
	AMOUNTS(ROW)
#undef ROW
	make_cores(value);
	make_levels(s, value);
	make_gpu_values(s, k, value);
	make_node_values(s, k, value);
	/* Shares of an interval are counts and bytes, too. */
	for (unsigned i = 0; i < NR_PHASE_VALUES; i++)
		if (phase_column[i].whole && !isnan(value[i]))
			value[i] = (double)round_i64(value[i]);
}

static void make_events(const struct phase_sums *s, const struct phase_known *k, double *event)
{
	for (unsigned i = 0; i < PHASE_EVENTS; i++) {
		double counted = s->sum[SUM_EVENT + i];

		event[i] = !(k->events >> i & 1)   ? NAN
			: k->whole_events >> i & 1 ? (double)round_i64(counted)
						   : counted;
	}
}

/* ---- what edges between ticks make unsure ---- */

/* A phase is interpolated where so much of an amount is not sure, and it is more than a trifle. */
#define UNSURE_SHARE 0.05
static const struct {
	enum used used;
	double trifle;
} unsure_row[NR_UNSURE] = {
	[UNSURE_CPU] = {USED_CPU, 0.01},
	[UNSURE_READ] = {USED_READ_CHARS, 65536},
	[UNSURE_WRITTEN] = {USED_WRITE_CHARS, 65536},
};

/* An edge near a tick is nearly exact; in the middle between two, half of what was used between them may be
 * on the wrong side. */
void edge_unsure(struct phase_sums *of, const double *before, const double *next, double share)
{
	double wrong = known_max(known_min(share, 1 - share), 0);

	for (unsigned i = 0; i < NR_UNSURE; i++) {
		unsigned sum = SUM_USED + unsure_row[i].used;

		of->unsure[i] += wrong * (next[sum] - before[sum]);
	}
}

static bool is_unsure(const struct phase_sums *of)
{
	for (unsigned i = 0; i < NR_UNSURE; i++)
		if (of->unsure[i] > unsure_row[i].trifle &&
			of->unsure[i] > UNSURE_SHARE * of->sum[SUM_USED + unsure_row[i].used])
			return true;
	return false;
}

/* ---- phases and repetitions ---- */

static double run_seconds(int64_t offset_ns, int64_t time_ns)
{
	return (double)time_ns / 1e9 + (double)offset_ns / 1e9;
}

int make_phase(struct fold_of_phases *f, int64_t offset_ns, const struct phase_known *k, struct phase *p)
{
	struct buf name;

	buf_init(&name, 10000);
	phase_general_name(f->name, f->varied, &name);
	*p = (struct phase){.name = strdup((const char *)name.data),
		.key = TAKE_PTR(f->key),
		.count = f->count,
		.senders = f->senders,
		.nodes = 1,
		.parent = MAX(f->parent, -1),
		.begin_s = run_seconds(offset_ns, f->begin_ns),
		.end_s = run_seconds(offset_ns, f->end_ns),
		.cut = f->cut,
		.brief = f->brief == f->count,
		.interpolated = f->brief == f->count || is_unsure(&f->of)};
	buf_release(&name);
	make_values(&f->of, k, p->value);
	make_events(&f->of, k, p->event);
	return p->name ? 0 : -ENOMEM;
}

void make_repetition(struct phase_span *s, int64_t offset_ns, const struct phase_known *k, struct phase *p)
{
	*p = (struct phase){.name = TAKE_PTR(s->name),
		.fold = s->fold,
		.count = 1,
		.senders = s->senders,
		.nodes = 1,
		.parent = -1,
		.begin_s = run_seconds(offset_ns, s->begin_ns),
		.end_s = run_seconds(offset_ns, s->end_ns),
		.cut = s->cut,
		.brief = s->brief,
		.interpolated = s->brief || is_unsure(&s->of)};
	make_values(&s->of, k, p->value);
	make_events(&s->of, k, p->event);
}

/* ---- names ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

/* The length of the number here, of which "1.5" is one; 0: there is none. What goes on as a word ("conv2d")
 * is no number. */
static size_t number_length(const char *p)
{
	size_t n = 0;

	while (is_digit(p[n]) || (n && (p[n] == '.' || p[n] == ',') && is_digit(p[n + 1])))
		n++;
	return is_letter(p[n]) ? 0 : n;
}

static size_t digits_length(const char *p)
{
	size_t n = 0;

	while (is_digit(p[n]))
		n++;
	return n;
}

void phase_key(const char *name, struct buf *key)
{
	while (*name) {
		size_t number = number_length(name), run = MAX(digits_length(name), (size_t)1);

		if (number)
			buf_addch(key, '#');
		else
			buf_add(key, name, run);
		name += number ? number : run;
	}
}

/* To the next number; 0: there is none. */
static size_t next_number(const char **at)
{
	while (**at) {
		size_t number = number_length(*at), run = digits_length(*at);

		if (number)
			return number;
		*at += MAX(run, (size_t)1);
	}
	return 0;
}

uint64_t phase_numbers_differ(const char *name, const char *other)
{
	uint64_t differ = 0;
	size_t a, b;

	for (unsigned i = 0; i < 64 && (a = next_number(&name)) && (b = next_number(&other)); i++) {
		if (a != b || memcmp(name, other, a) != 0)
			differ |= UINT64_C(1) << i;
		name += a;
		other += b;
	}
	return differ;
}

void phase_general_name(const char *name, uint64_t varied, struct buf *out)
{
	const char *at = name, *from = name;
	size_t n;

	for (unsigned i = 0; i < 64 && (n = next_number(&at)); i++) {
		buf_add(out, from, (size_t)(at - from));
		if (!(varied >> i & 1)) {
			buf_add(out, at, n);
		} else if (at[n]) {
			buf_addch(out, '#');
		} else {
			while (out->len > 1 && strchr(" _-#:=/.", out->data[out->len - 1]))
				out->data[--out->len] = 0;
			if (!out->len)
				buf_addch(out, '#');
		}
		at += n;
		from = at;
	}
	buf_adds(out, from);
}

/* ---- the repetition that stands out ---- */

/* A repetition that differs less is like the others. */
#define SLOWER_LEAST 0.05
#define SLOWER_DEVIATIONS 3
/* What explains so much of the difference is told. */
#define EXPLAINS_LEAST (1.0 / 3)
/* A page fault from storage takes about this long. */
#define MAJOR_FAULT_S 1e-3

struct others { /* the mean of the other repetitions */
	const double *slow;
	double mean[NR_PHASE_VALUES];
	double extra_s; /* by which it was slower */
};

/* Of the time that it took longer, the share that this is more. */
static double explains(const struct others *o, enum phase_value which)
{
	double share = (o->slow[which] - o->mean[which]) / o->extra_s;

	return isfinite(share) ? share : 0;
}

/* How much longer the same work takes with the lower clock. */
static double clock_explains(const struct others *o)
{
	double share = (o->mean[PHASE_CLOCK] / o->slow[PHASE_CLOCK] - 1) * o->mean[PHASE_CPU] /
		known_max(o->mean[PHASE_CORES], 1) / o->extra_s;

	return isfinite(share) ? known_max(share, 0) : 0;
}

/* Waiting for CPUs grows with the work: what the others waited for each second of CPU time it waited for the
 * CPU time that it used more, too. That part is due to the work. */
static double usual_wait(const struct others *o, enum phase_value which)
{
	double share =
		(o->slow[PHASE_CPU] - o->mean[PHASE_CPU]) / o->mean[PHASE_CPU] * o->mean[which] / o->extra_s;

	return isfinite(share) ? known_max(known_min(share, explains(o, which)), 0) : 0;
}

static double unusual_wait(const struct others *o, enum phase_value which)
{
	return explains(o, which) - usual_wait(o, which);
}

/* What explains most; of two alike the first. */
static const char *why_slower(const struct others *o)
{
	/* What processes add up, side by side; CPU time grows with a lower clock, too. */
	double cores = known_max(o->mean[PHASE_CORES], 1), work = explains(o, PHASE_CPU) / cores,
	       clock = clock_explains(o);
	double usual = known_max(usual_wait(o, PHASE_CGROUP_THROTTLED),
		known_max(usual_wait(o, PHASE_CPU_PRESSURE), usual_wait(o, PHASE_RUN_QUEUE) / cores));
	double waits = work > 0 ? (work + usual) / work : 1;
	const struct {
		double share;
		const char *why;
	} row[] = {{unusual_wait(o, PHASE_CGROUP_THROTTLED), "held back by the CPU quota"},
		{unusual_wait(o, PHASE_CPU_PRESSURE), "CPU pressure"},
		{explains(o, PHASE_MEMORY_PRESSURE), "memory pressure"},
		{explains(o, PHASE_IO_PRESSURE), "I/O pressure"},
		{unusual_wait(o, PHASE_RUN_QUEUE) / cores, "waiting for a CPU"},
		{explains(o, PHASE_THERMAL), "processors slowed down"},
		{explains(o, PHASE_GPU_THROTTLED), "GPU slowed down"}, {clock * waits, "a lower clock"},
		{explains(o, PHASE_MAJOR) * MAJOR_FAULT_S, "page faults that waited for storage"},
		{(work - clock) * waits, "it used more CPU time"}};
	size_t most = 0;

	for (size_t i = 1; i < ARRAY_SIZE(row); i++)
		most = row[i].share > row[most].share ? i : most;
	return row[most].share >= EXPLAINS_LEAST ? row[most].why : NULL;
}

/* Of those that know the value: the first may have ended before it was read. */
static double mean_of_others(const struct phase *const *rep, size_t nr, size_t slow, enum phase_value which)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < nr; i++)
		if (i != slow && !isnan(rep[i]->value[which])) {
			sum += rep[i]->value[which];
			known++;
		}
	return known ? sum / (double)known : NAN;
}

static void find_slowest(struct phase *p, const struct phase *const *rep, size_t nr)
{
	struct others o = {0};
	double squares = 0, spread;
	size_t slow = 0;

	for (size_t i = 0; i < nr; i++)
		slow = rep[i]->value[PHASE_WALL] > rep[slow]->value[PHASE_WALL] ? i : slow;
	for (unsigned k = 0; k < NR_PHASE_VALUES; k++)
		o.mean[k] = mean_of_others(rep, nr, slow, k);
	for (size_t i = 0; i < nr; i++) {
		double away = rep[i]->value[PHASE_WALL] - o.mean[PHASE_WALL];

		squares += i == slow ? 0 : away * away;
	}
	spread = nr > 2 ? square_root(squares / (double)(nr - 2)) : 0;
	o.slow = rep[slow]->value;
	o.extra_s = o.slow[PHASE_WALL] - o.mean[PHASE_WALL];
	if (nr < 3 || rep[slow]->cut || !(o.mean[PHASE_WALL] > 0) ||
		o.extra_s < SLOWER_LEAST * o.mean[PHASE_WALL] || o.extra_s < SLOWER_DEVIATIONS * spread)
		return;
	p->slowest = rep[slow]->number;
	p->slower = o.extra_s / o.mean[PHASE_WALL];
	p->slower_why = why_slower(&o);
}

static int take_statistics(struct phases *p, size_t fold)
{
	const struct phase **rep = calloc(p->nr_repetitions + 1, sizeof(*rep));
	double mean = 0, squares = 0;
	size_t nr = 0;

	if (!rep)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_repetitions; i++)
		if (p->repetition[i].fold == fold)
			rep[nr++] = &p->repetition[i];
	p->phase[fold].mean_s = p->phase[fold].sd_s = NAN;
	for (size_t i = 0; i < nr; i++) {
		double wall = rep[i]->value[PHASE_WALL], away = wall - mean;

		mean += away / (double)(i + 1);
		squares += away * (wall - mean);
	}
	if (nr > 1) {
		p->phase[fold].mean_s = mean;
		p->phase[fold].sd_s = square_root(squares / (double)(nr - 1));
		find_slowest(&p->phase[fold], rep, nr);
	}
	free(rep);
	return 0;
}

/* ---- order ---- */

static int by_begin(const void *a, const void *b)
{
	const struct phase *x = a, *y = b;

	if (x->begin_s != y->begin_s)
		return x->begin_s < y->begin_s ? -1 : 1;
	if (x->end_s != y->end_s)
		return x->end_s > y->end_s ? -1 : 1;
	return (x->fold > y->fold) - (x->fold < y->fold);
}

/* Those in a phase behind it; each by its begin. */
static void put_in_order(
	const struct phases *p, int parent, unsigned depth, bool *done, size_t *order, size_t *nr)
{
	for (;;) {
		size_t best = p->nr;

		for (size_t i = 0; i < p->nr; i++)
			if (!done[i] && p->phase[i].parent == parent &&
				(best == p->nr || p->phase[i].begin_s < p->phase[best].begin_s))
				best = i;
		if (best == p->nr)
			return;
		done[best] = true;
		p->phase[best].depth = depth;
		order[(*nr)++] = best;
		put_in_order(p, (int)best, depth + 1, done, order, nr);
	}
}

static int order_phases(struct phases *p)
{
	struct phase *sorted = calloc(p->nr + 1, sizeof(*sorted));
	size_t *order = calloc(p->nr + 1, sizeof(*order)), *place = calloc(p->nr + 1, sizeof(*place)), nr = 0;
	bool *done = calloc(p->nr + 1, sizeof(*done));
	int r = sorted && order && place && done ? 0 : -ENOMEM;

	if (r >= 0)
		put_in_order(p, -1, 0, done, order, &nr);
	/* Two that are within each other, in a forged file, are in none. */
	for (size_t i = 0; r >= 0 && i < p->nr; i++)
		if (!done[i]) {
			done[i] = true;
			p->phase[i].parent = -1;
			order[nr++] = i;
		}
	for (size_t i = 0; r >= 0 && i < p->nr; i++) {
		sorted[i] = p->phase[order[i]];
		place[order[i]] = i;
	}
	for (size_t i = 0; r >= 0 && i < p->nr; i++)
		if (sorted[i].parent >= 0)
			sorted[i].parent = (int)place[sorted[i].parent];
	for (size_t i = 0; r >= 0 && i < p->nr_repetitions; i++)
		p->repetition[i].fold = (uint32_t)place[p->repetition[i].fold];
	if (r >= 0 && p->nr)
		memcpy(p->phase, sorted, p->nr * sizeof(*sorted));
	free(sorted);
	free(order);
	free(place);
	free(done);
	return r;
}

int phases_settle(struct phases *p)
{
	uint32_t *number = calloc(p->nr + 1, sizeof(*number));
	int r = number ? order_phases(p) : -ENOMEM;

	if (r >= 0 && p->nr_repetitions)
		qsort(p->repetition, p->nr_repetitions, sizeof(*p->repetition), by_begin);
	for (size_t i = 0; r >= 0 && i < p->nr_repetitions; i++) {
		struct phase *rep = &p->repetition[i];

		rep->number = ++number[rep->fold];
		rep->depth = p->phase[rep->fold].depth;
		rep->parent = p->phase[rep->fold].parent;
		rep->mean_s = rep->sd_s = NAN;
	}
	for (size_t i = 0; r >= 0 && i < p->nr; i++)
		r = take_statistics(p, i);
	free(number);
	return r;
}

/* ---- several recordings ---- */

static void join_values(struct phase *to, const struct phase *from, bool same_host)
{
	double gpu_a = to->value[PHASE_GPU_SECONDS], gpu_b = from->value[PHASE_GPU_SECONDS];

	for (unsigned i = 0; i < NR_PHASE_VALUES; i++) {
		double a = to->value[i], b = from->value[i];

		if (isnan(a) || isnan(b)) {
			to->value[i] = isnan(a) ? b : a;
			continue;
		}
		switch (phase_column[i].join) {
		case JOIN_HOSTS:
			to->value[i] = same_host ? MAX(a, b) : a + b;
			break;
		case JOIN_MAX:
			to->value[i] = MAX(a, b);
			break;
		case JOIN_MEAN_WALL:
			to->value[i] = (a * to->nodes + b * from->nodes) / (to->nodes + from->nodes);
			break;
		case JOIN_MEAN_GPU:
			to->value[i] = gpu_a + gpu_b > 0 ? (a * gpu_a + b * gpu_b) / (gpu_a + gpu_b) : a;
			break;
		default:
			to->value[i] = a + b;
		}
	}
	make_cores(to->value);
}

/* `place`: where the events of `from` stand in `to`. */
static void add_events(struct phase *to, const struct phase *from, const unsigned *place)
{
	for (unsigned i = 0; i < PHASE_EVENTS; i++)
		if (place[i] < PHASE_EVENTS && !isnan(from->event[i])) {
			double *sum = &to->event[place[i]];

			*sum = isnan(*sum) ? from->event[i] : *sum + from->event[i];
		}
}

static void join_phase(struct phase *to, const struct phase *from, bool same_host, const unsigned *place)
{
	join_values(to, from, same_host);
	add_events(to, from, place);
	to->count = MAX(to->count, from->count);
	to->senders += from->senders;
	to->nodes = same_host ? MAX(to->nodes, from->nodes) : to->nodes + from->nodes;
	to->begin_s = MIN(to->begin_s, from->begin_s);
	to->end_s = MAX(to->end_s, from->end_s);
	to->cut |= from->cut;
	to->brief &= from->brief;
	to->interpolated &= from->interpolated;
}

static int copy_phase(struct phase *to, const struct phase *from, const unsigned *place)
{
	*to = *from;
	for (unsigned i = 0; i < PHASE_EVENTS; i++)
		to->event[i] = NAN;
	add_events(to, from, place);
	to->slowest = 0;
	to->slower_why = NULL;
	to->name = strdup(from->name);
	to->key = from->key ? strdup(from->key) : NULL;
	return to->name && (!from->key || to->key) ? 0 : -ENOMEM;
}

struct joining {
	struct phases *p;
	struct idmap repetition, nth; /* by name and how often it was there; by name on this node */
	uint32_t *fold;		      /* of the recording's phases: which one of all */
	size_t most;
	bool same_host;
	unsigned event[PHASE_EVENTS]; /* of the recording's events: which one of all; PHASE_EVENTS: none */
};

static int join_events(struct joining *j, const struct phases *from)
{
	struct phases *p = j->p;

	for (unsigned i = 0; i < PHASE_EVENTS; i++)
		j->event[i] = PHASE_EVENTS;
	for (unsigned i = 0; i < from->nr_events; i++) {
		unsigned k = 0;

		while (k < p->nr_events && strcmp(p->event[k], from->event[i]) != 0)
			k++;
		j->event[i] = k;
		if (k < p->nr_events || k == PHASE_EVENTS)
			continue;
		p->event[k] = strdup(from->event[i]);
		if (!p->event[k])
			return -ENOMEM;
		p->nr_events++;
	}
	return 0;
}

static int join_folds(struct joining *j, const struct phases *from)
{
	struct phases *p = j->p;

	for (size_t i = 0; i < from->nr; i++) {
		const struct phase *f = &from->phase[i];
		struct phase *to;
		size_t k = 0;

		while (k < p->nr && strcmp(p->phase[k].key, f->key) != 0)
			k++;
		j->fold[i] = (uint32_t)k;
		if (k < p->nr) {
			int parent = f->parent < 0 ? -1 : (int)j->fold[f->parent];

			p->phase[k].parent = p->phase[k].parent == parent ? parent : -1;
			join_phase(&p->phase[k], f, j->same_host, j->event);
			continue;
		}
		to = ARRAY_ADD(p->phase, p->nr);
		if (!to || copy_phase(to, f, j->event) < 0)
			return -ENOMEM;
		to->parent = f->parent < 0 ? -1 : (int)j->fold[f->parent]; /* it stands before it */
	}
	return 0;
}

/* The same name, and as often on this node before as on the others. */
static int join_repetition(struct joining *j, const struct phase *from)
{
	struct phases *p = j->p;
	uint64_t name = hash_bytes(from->name, strlen(from->name)), key;
	uint32_t seen = idmap_get(&j->nth, name), nth = seen == IDMAP_NONE ? 0 : seen, at;
	struct phase *to;

	if (idmap_put(&j->nth, name, nth + 1) < 0)
		return -ENOMEM;
	key = name + UINT64_C(0x9e3779b97f4a7c15) * (nth + 1);
	while ((at = idmap_get(&j->repetition, key)) != IDMAP_NONE &&
		(strcmp(p->repetition[at].name, from->name) != 0 || p->repetition[at].number != nth))
		key++;
	if (at != IDMAP_NONE) {
		join_phase(&p->repetition[at], from, j->same_host, j->event);
		return 0;
	}
	if (p->nr_repetitions >= j->most) {
		p->left_out++;
		return 0;
	}
	to = ARRAY_ADD(p->repetition, p->nr_repetitions);
	if (!to || copy_phase(to, from, j->event) < 0)
		return -ENOMEM;
	to->fold = j->fold[from->fold];
	to->number = nth; /* until all are numbered */
	return idmap_put(&j->repetition, key, (uint32_t)(p->nr_repetitions - 1));
}

static int join_one(struct joining *j, const struct phases *from)
{
	int r;

	idmap_clear(&j->nth);
	free(j->fold);
	j->fold = calloc(from->nr + 1, sizeof(*j->fold));
	r = j->fold ? join_events(j, from) : -ENOMEM;
	if (r >= 0)
		r = join_folds(j, from);
	for (size_t i = 0; i < from->nr_repetitions && r >= 0; i++)
		r = join_repetition(j, &from->repetition[i]);
	j->p->left_out += from->left_out;
	j->p->ignored += from->ignored;
	return r;
}

/* What differs in the names may only be seen now, and how often it was there. */
static int rename_fold(struct phases *p, size_t fold)
{
	const char *first = NULL;
	uint64_t varied = 0;
	uint32_t count = 0;
	struct buf name;
	char *copy;

	for (size_t i = 0; i < p->nr_repetitions; i++) {
		if (p->repetition[i].fold != fold)
			continue;
		first = first ? first : p->repetition[i].name;
		varied |= phase_numbers_differ(first, p->repetition[i].name);
		count++;
	}
	p->phase[fold].count = MAX(p->phase[fold].count, count);
	if (!varied)
		return 0;
	buf_init(&name, 10000);
	phase_general_name(first, varied, &name);
	copy = strdup((const char *)name.data);
	buf_release(&name);
	if (!copy)
		return -ENOMEM;
	free(p->phase[fold].name);
	p->phase[fold].name = copy;
	return 0;
}

static int join(const struct phases *const *of, size_t nr, size_t most, bool same_host, struct phases **ret)
{
	struct joining j = {.p = calloc(1, sizeof(*j.p)), .most = most, .same_host = same_host};
	int r = j.p ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = of[i] ? join_one(&j, of[i]) : 0;
	for (size_t i = 0; r >= 0 && i < j.p->nr; i++)
		r = rename_fold(j.p, i);
	if (r >= 0)
		r = phases_settle(j.p);
	idmap_release(&j.repetition);
	idmap_release(&j.nth);
	free(j.fold);
	if (r < 0)
		phases_free(j.p);
	else
		*ret = j.p;
	return r;
}

/* Those of one host first: they saw the same machine. */
int phases_combine(
	const struct phases *const *of, const char *const *host, size_t nr, size_t most, struct phases **ret)
{
	struct phases **own = calloc(nr + 1, sizeof(struct phases *));
	const struct phases **part = calloc(nr + 1, sizeof(const struct phases *)),
			    **some = calloc(nr + 1, sizeof(const struct phases *));
	bool *done = calloc(nr + 1, sizeof(*done));
	int r = own && part && some && done ? 0 : -ENOMEM;
	size_t nr_parts = 0;

	*ret = NULL;
	for (size_t i = 0; i < nr && r >= 0; i++) {
		size_t nr_some = 0;

		for (size_t k = i; of[i] && !done[i] && k < nr; k++)
			if (of[k] && !done[k] && (k == i || (*host[i] && !strcmp(host[i], host[k])))) {
				some[nr_some++] = of[k];
				done[k] = k != i;
			}
		done[i] = true;
		if (nr_some > 1)
			r = join(some, nr_some, most, true, &own[i]);
		if (nr_some && r >= 0)
			part[nr_parts++] = own[i] ? own[i] : some[0];
	}
	if (r >= 0 && nr_parts)
		r = join(part, nr_parts, most, false, ret);
	for (size_t i = 0; own && i < nr; i++)
		phases_free(own[i]);
	free(own);
	free(part);
	free(some);
	free(done);
	return r;
}

/* ---- for others ---- */

struct phases *phases_free(struct phases *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->nr; i++) {
		free(p->phase[i].name);
		free(p->phase[i].key);
	}
	for (size_t i = 0; i < p->nr_repetitions; i++) {
		free(p->repetition[i].name);
		free(p->repetition[i].key);
	}
	for (unsigned i = 0; i < p->nr_events; i++)
		free(p->event[i]);
	free(p->phase);
	free(p->repetition);
	free(p);
	return NULL;
}

static const struct phase *find_repetition(const struct phases *p, size_t fold, uint64_t number)
{
	for (size_t i = 0; i < p->nr_repetitions; i++)
		if (p->repetition[i].fold == fold && p->repetition[i].number == number)
			return &p->repetition[i];
	return NULL;
}

const struct phase *phases_find(const struct phases *p, const char *name)
{
	const char *hash = strrchr(name, '#');
	uint64_t number;

	for (size_t i = 0; i < p->nr; i++)
		if (!strcmp(p->phase[i].name, name))
			return &p->phase[i];
	for (size_t i = 0; i < p->nr_repetitions; i++)
		if (!strcmp(p->repetition[i].name, name))
			return &p->repetition[i];
	if (!hash || !parse_u64(hash + 1, &number))
		return NULL;
	for (size_t i = 0; i < p->nr; i++)
		if (strlen(p->phase[i].name) == (size_t)(hash - name) &&
			!strncmp(p->phase[i].name, name, (size_t)(hash - name)))
			return find_repetition(p, i, number);
	return NULL;
}

double phase_event(const struct phases *all, const struct phase *p, const char *metric)
{
	for (unsigned i = 0; i < all->nr_events; i++)
		if (!strcmp(all->event[i], metric))
			return p->event[i];
	return NAN;
}

bool phase_is_guess(const struct phase *p, enum phase_value which)
{
	bool level = phase_column[which].level || which == PHASE_MEMORY || which == PHASE_GPU_MEMORY;

	return which != PHASE_WALL && p->value[which] > 0 && (level ? p->brief : p->interpolated);
}

double phases_since(const struct phases *p, const struct phase *of, double time_s)
{
	double since = NAN;

	if (of->number)
		return time_s >= of->begin_s && time_s <= of->end_s ? time_s - of->begin_s : NAN;
	/* By begin: the last one counts. */
	for (size_t i = 0; i < p->nr_repetitions; i++) {
		const struct phase *rep = &p->repetition[i];

		if (rep->fold == (size_t)(of - p->phase) && time_s >= rep->begin_s && time_s <= rep->end_s)
			since = time_s - rep->begin_s;
	}
	return since;
}
