/* Performance counters of the job: what the processor and the kernel counted for its threads, from
 * perf_event_open(2). perf_tasks.c decides for which threads counters are open.
 *
 * Counters are never recorded unless they are asked for: every fork of the job copies them, which makes it
 * slower by a third and more, and what a process does in its last moments is not counted. So task_clock, the
 * CPU time that was counted, is always counted too: compared with the exact CPU time of the job it shows how
 * much of the job the counts cover.
 *
 * Where there are more events than the processor has counters, they take turns: a count is scaled by the
 * time it was enabled and running, and perf.X.running beside perf.enabled is the share for which it ran.
 *
 * Reading asks every live process below a counter, about a quarter of a microsecond for each event: where
 * that costs too much, not every tick reads. */
#include "collect/perf.h"

#include "read/cpulist.h"

#include <string.h>

/* Time between two readings, as a multiple of what one takes: the counters may have 1 % of a core. */
#define READ_SHARE 100
/* Where the engine sets no limit. */
#define FILES_PRESET 1024

/* clang-format off */
#define EVENT(name, help, scale, unit, panel) \
	{"perf." name, help, {0}, scale, KIND_COUNTER, FOLD_SUM, unit, panel, TIER_TICK, true}, \
	{"perf." name ".running", "Time for which perf." name " was on a counter.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, true}

static const struct metric perf_metric[PERF_ROWS] = {
	{"perf.enabled", "Time for which the job's threads ran under their counters.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, true},
	EVENT("cycles",           "Cycles of the processor in which the job ran.", SCALE_ONE, UNIT_COUNT, "perf"),
	EVENT("instructions",     "Instructions that the job completed.", SCALE_ONE, UNIT_COUNT, "perf"),
	EVENT("cache_references", "Accesses to the last level of the cache, as the kernel chooses the event.", SCALE_ONE, UNIT_COUNT, "perf.cache"),
	EVENT("cache_misses",     "Accesses that the last level of the cache could not answer.", SCALE_ONE, UNIT_COUNT, "perf.cache"),
	EVENT("branches",         "Branches that the job completed.", SCALE_ONE, UNIT_COUNT, "perf.branches"),
	EVENT("branch_misses",    "Branches that were predicted wrongly.", SCALE_ONE, UNIT_COUNT, "perf.branches"),
	EVENT("context_switches", "Times a thread of the job left a CPU.", SCALE_ONE, UNIT_COUNT, "perf.switches"),
	EVENT("migrations",       "Times a thread of the job went on on another CPU.", SCALE_ONE, UNIT_COUNT, "perf.switches"),
	EVENT("page_faults",      "Page faults of the job.", SCALE_ONE, UNIT_COUNT, "perf.faults"),
	EVENT("task_clock",       "CPU time that the job's counters saw.", SCALE_NS, UNIT_SECONDS, NULL),
};
/* clang-format on */

const char *const perf_static_event[PERF_STATIC] = {"cycles", "instructions", "cache_references",
	"cache_misses", "branches", "branch_misses", "context_switches", "migrations", "page_faults",
	"task_clock"};
const size_t perf_task_clock = PERF_STATIC - 1;

/* One number of the recording. */
struct event_row {
	size_t value, running; /* metrics */
	unsigned first, nr;    /* pieces of the tasks, or boxes of the node */
	bool of_package, reported;
	double factor;
	int error; /* of the boxes; of the pieces, when there are none */
	struct perf_event example;
	const struct planned *planned; /* NULL: a static one */
	int64_t last_running;
};

struct perf {
	struct tasks tasks;
	struct event_row row[PERF_EVENTS];
	unsigned nr_rows, task_clock; /* which of the pieces */
	struct counter *box;	      /* of the node's events */
	unsigned nr_boxes;
	uint32_t at; /* row of the table */
	bool prepared, told_denied, told_full, told_threads;
	int64_t next_ns, cost_ns;
};

/* ---- which events ---- */

static int add_pieces(struct perf *s, struct event_row *row, const struct perf_event *e, unsigned nr)
{
	struct tasks *t = &s->tasks;

	row->first = t->nr_pieces;
	row->example = e[0];
	if (t->nr_pieces + nr > PERF_PIECES)
		return -ENOSPC;
	row->nr = nr;
	for (unsigned i = 0; i < nr; i++)
		t->piece[t->nr_pieces++] = (struct perf_piece){.event = e[i]};
	return 0;
}

static struct event_row *add_row(struct perf *s, size_t value, size_t running, double factor)
{
	struct event_row *row = &s->row[s->nr_rows++];

	*row = (struct event_row){.value = value, .running = running, .factor = factor};
	return row;
}

static void add_static(struct perf *s, struct collect_context *ctx)
{
	struct perf_event e[8];
	char err[256];

	for (size_t i = 0; i < PERF_STATIC; i++) {
		const char *name = perf_static_event[i];
		size_t value = PERF_FIRST + 2 * i;
		struct event_row *row;
		int nr;

		if (ctx->map.col[value] < 0)
			continue;
		row = add_row(s, value, value + 1, 1);
		nr = perf_event_boxes(ctx->env, name, strlen(name), e, ARRAY_SIZE(e), err, sizeof(err));
		if (i == perf_task_clock)
			s->task_clock = s->tasks.nr_pieces;
		row->error = nr > 0 ? add_pieces(s, row, e, (unsigned)nr) : -ENOENT;
	}
}

static int prepare(struct perf *s, struct collect_context *ctx)
{
	const struct perf_plan *plan = ctx->plan ? ctx->plan->own : NULL;

	if (s->prepared)
		return 0;
	s->prepared = true;
	add_static(s, ctx);
	for (unsigned i = 0; plan && i < plan->nr; i++) {
		const struct planned *p = &plan->planned[i];
		struct event_row *row;

		if (!p->nr)
			continue;
		row = add_row(s, PERF_ROWS + (size_t)p->value, PERF_ROWS + (size_t)p->running, p->factor);
		row->planned = p;
		row->of_package = p->of_package;
		if (!p->of_package)
			row->error = add_pieces(s, row, p->event, p->nr);
	}
	return tasks_init(&s->tasks, ctx->env, ctx->max_files ? ctx->max_files : FILES_PRESET);
}

/* ---- reasons ---- */

static enum availability availability_of(int error)
{
	if (is_refused(error))
		return FORBIDDEN;
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOSPC ||
			error == -EBUSY || error == -EIO
		? FAILED
		: ABSENT;
}

static void tell(struct collect_context *ctx, struct event_row *row, int error)
{
	const char *reason, *remedy;

	counter_trouble(&row->example, error, &reason, &remedy);
	if (error == -ENOSPC)
		reason = "there are more events than we have room for";
	ctx->why(ctx, row->value, availability_of(error), reason, remedy);
	ctx->why(ctx, row->running, availability_of(error), reason, remedy);
	row->reported = true;
}

static bool is_counted(const struct perf *s, const struct event_row *row)
{
	for (unsigned i = 0; i < row->nr && !row->of_package; i++)
		if (s->tasks.piece[row->first + i].opened)
			return true;
	return row->of_package && row->nr;
}

/* Why nothing of it is counted; 0: it is, or there was no process yet. */
static int trouble_of(const struct perf *s, const struct event_row *row)
{
	if (is_counted(s, row))
		return 0;
	if (row->error || row->of_package)
		return row->error;
	if (s->tasks.piece[row->first].error)
		return s->tasks.piece[row->first].error;
	return s->tasks.denied ? s->tasks.denied : s->tasks.full;
}

/* Some processes are not counted: the reason is given for the time, and the counts' share of the CPU time
 * shows it. */
static void tell_incomplete(struct perf *s, struct collect_context *ctx)
{
	const struct tasks *t = &s->tasks;

	if (t->denied && !s->told_denied)
		ctx->why(ctx, PERF_ENABLED, FORBIDDEN,
			"some processes may not be counted by us: they are another user's, or privileged",
			"run tacho as root, or give its file cap_perfmon");
	if (t->full && !s->told_full)
		ctx->why(ctx, PERF_ENABLED, FAILED,
			"some threads are not counted: too many descriptors or too much memory would be "
			"needed for their counters",
			"ulimit -n, or count fewer events");
	if (t->keeps_threads && !s->told_threads)
		ctx->why(ctx, PERF_ENABLED, FAILED,
			"threads that started later are not counted: this kernel cannot count them without "
			"counting children as well",
			"Linux 5.13");
	s->told_denied |= t->denied != 0;
	s->told_full |= t->full != 0;
	s->told_threads |= t->keeps_threads;
}

static void explain(struct perf *s, struct collect_context *ctx)
{
	for (unsigned i = 0; i < s->nr_rows; i++) {
		int error = s->row[i].reported ? 0 : trouble_of(s, &s->row[i]);

		if (error)
			tell(ctx, &s->row[i], error);
	}
	tell_incomplete(s, ctx);
}

static void explain_planned(struct collect_context *ctx)
{
	const struct perf_plan *plan = ctx->plan ? ctx->plan->own : NULL;

	for (unsigned i = 0; plan && i < plan->nr; i++)
		if (!plan->planned[i].nr)
			ctx->why(ctx, PERF_ROWS + (size_t)plan->planned[i].value, ABSENT,
				plan->planned[i].reason, NULL);
}

/* ---- events of the node ---- */

static int open_box(struct perf *s, struct env *env, const struct perf_event *e, int cpu)
{
	struct counter *more = reallocarray(s->box, s->nr_boxes + 1, sizeof(*more));
	bool user_only;
	int r;

	if (!more)
		return -ENOMEM;
	s->box = more;
	r = counter_open(env, e, -1, cpu, INHERIT_NONE, false, &more[s->nr_boxes], &user_only);
	s->nr_boxes += r == 0;
	return r;
}

static void open_boxes(struct perf *s, struct env *env, struct event_row *row)
{
	const struct planned *p = row->planned;
	struct cpu_bits cpus;

	row->first = s->nr_boxes;
	row->example = p->event[0];
	for (unsigned i = 0; i < p->nr; i++) {
		int r = counter_cpus(env, &p->event[i], &cpus);

		if (r < 0)
			row->error = r;
		for (int cpu = -1; r >= 0 && (cpu = cpu_bits_next(&cpus, cpu + 1)) >= 0;) {
			int opened = open_box(s, env, &p->event[i], cpu);

			if (opened < 0)
				row->error = opened;
		}
	}
	row->nr = s->nr_boxes - row->first;
}

/* ---- the collector ---- */

static int perf_probe(struct env *env, struct trouble *reterr_why)
{
	static const struct perf_event task_clock = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
	struct perf_access access;
	struct counter trial;
	bool user_only;
	int r = counter_open(env, &task_clock, 0, -1, INHERIT_NONE, false, &trial, &user_only);

	if (r == 0) {
		counter_close(env, &trial);
		return 0;
	}
	perf_access(env, &access);
	*reterr_why = (struct trouble){access.reason, access.remedy};
	if (!reterr_why->reason)
		counter_trouble(&task_clock, r, &reterr_why->reason, &reterr_why->remedy);
	return is_refused(r) ? -EACCES : -ENOENT;
}

static int perf_before_exec(void *state, struct collect_context *ctx, pid_t pid)
{
	struct perf *s = state;
	int r = prepare(s, ctx);

	if (r == 0)
		tasks_command(&s->tasks, pid, ctx->children);
	return r;
}

static int perf_open(void *state, struct collect_context *ctx)
{
	struct perf *s = state;
	int row, r = prepare(s, ctx);

	if (r < 0)
		return r;
	if (!s->tasks.counter)
		return -ENOMEM;
	tasks_follow(&s->tasks, ctx);
	for (unsigned i = 0; i < s->nr_rows; i++)
		if (s->row[i].of_package)
			open_boxes(s, ctx->env, &s->row[i]);
	row = ctx->join_about(ctx, "job",
		(struct about[]){{"counts", s->tasks.user_only ? "user" : "user and kernel"},
			{"how", s->tasks.command ? "inherited" : "threads"}},
		2);
	if (row < 0)
		return row;
	s->at = (uint32_t)row;
	explain(s, ctx);
	explain_planned(ctx);
	return 0;
}

static void put_tasks(struct perf *s, struct collect_context *ctx, const struct event_row *row)
{
	const struct perf_piece *piece = s->tasks.piece + row->first;
	bool known = is_counted(s, row);
	uint64_t value = 0, running = 0;

	/* The kinds of cores of a hybrid processor run in turn: their times add up to one. */
	for (unsigned i = 0; i < row->nr; i++) {
		value += piece[i].sum.value;
		running += piece[i].sum.running_ns;
	}
	if (row->factor != 1)
		value = (uint64_t)((double)value * row->factor);
	collect_put(ctx, s->at, row->value, known, (int64_t)value);
	collect_put(ctx, s->at, row->running, known, (int64_t)running);
}

/* The node's boxes have a time of their own; their share of it is recorded as a share of the job's time. */
static void put_boxes(struct perf *s, struct collect_context *ctx, struct event_row *row, uint64_t enabled_ns)
{
	double value = 0, enabled = 0, running = 0;

	for (unsigned i = 0; i < row->nr; i++) {
		struct counter *c = &s->box[row->first + i];

		counter_read(ctx->env, c);
		value += (double)c->count.value;
		enabled += (double)c->count.enabled_ns;
		running += (double)c->count.running_ns;
	}
	if (enabled > 0)
		row->last_running = MAX(row->last_running, (int64_t)((double)enabled_ns * running / enabled));
	collect_put(ctx, s->at, row->value, row->nr > 0, (int64_t)(value * row->factor));
	collect_put(ctx, s->at, row->running, row->nr > 0, row->last_running);
}

static void put_all(struct perf *s, struct collect_context *ctx)
{
	const struct perf_piece *clock = &s->tasks.piece[s->task_clock];

	table_touch(ctx->table, s->at);
	collect_put(ctx, s->at, PERF_ENABLED, clock->opened, (int64_t)clock->sum.enabled_ns);
	for (unsigned i = 0; i < s->nr_rows; i++) {
		if (s->row[i].of_package)
			put_boxes(s, ctx, &s->row[i], clock->sum.enabled_ns);
		else
			put_tasks(s, ctx, &s->row[i]);
	}
}

static int perf_sample(void *state, struct collect_context *ctx)
{
	struct perf *s = state;
	int64_t now = env_now(ctx->env, ENV_MONOTONIC), cost;

	tasks_follow(&s->tasks, ctx);
	explain(s, ctx);
	if (now < s->next_ns && !ctx->last)
		return 0;
	tasks_read(&s->tasks);
	put_all(s, ctx);
	cost = env_now(ctx->env, ENV_MONOTONIC) - now;
	/* A single slow reading was interrupted; it does not count as expensive. */
	s->next_ns = now + READ_SHARE * MIN(cost, s->cost_ns);
	s->cost_ns = cost;
	return 0;
}

static void perf_close(void *state, struct collect_context *ctx)
{
	struct perf *s = state;

	tasks_release(&s->tasks);
	while (s->nr_boxes)
		counter_close(ctx->env, &s->box[--s->nr_boxes]);
	free(s->box);
	s->box = NULL;
}

const struct collector collector_perf = {
	.name = "perf",
	.summary = "performance counters of the job",
	.domain = DOMAIN_PERF,
	.metric = perf_metric,
	.nr_metrics = ARRAY_SIZE(perf_metric),
	.state_size = sizeof(struct perf),
	.tier = TIER_TICK,
	.max_rows = 1,
	.probe = perf_probe,
	.plan = perf_plan,
	.words = perf_words,
	.before_exec = perf_before_exec,
	.open = perf_open,
	.sample = perf_sample,
	.close = perf_close,
};
