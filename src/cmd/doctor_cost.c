/* What a sample costs now: the engine itself, over all processes of the machine, at several rates.
 *
 * The metrics are those of a recording that asks for none in particular, less the walks of page tables (PSS,
 * USS): these take what is left of the budget and so are never more than that. What is found goes nowhere:
 * writing it costs little beside finding it out. The first sample opens everything and is not counted. */
#include "cmd/doctor.h"

#include "engine/engine.h"
#include "target/scope.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

/* Ticks per rate: enough to be steady, few enough for somebody who waits. */
static const unsigned ticks_at[NR_COSTS] = {2, 8, 40};

struct tally {
	uint32_t set; /* of the collectors' costs */
	uint64_t ticks;
	int64_t cost_ns[COLLECTORS_MAX];
};

/* The rows of that collector are the collectors, in their order. */
static void take_costs(void *arg, uint64_t number, int64_t time_ns, struct table *const *table)
{
	struct tally *m = arg;
	const struct table *t = table[m->set];

	(void)number;
	(void)time_ns;
	m->ticks++;
	for (uint32_t row = 0; row < MIN(t->nr_rows, COLLECTORS_MAX); row++)
		if (t->valid[row] & 1)
			m->cost_ns[row] = t->cell[(size_t)row * t->nr_cols];
}

static uint32_t find_costs(const struct schema *schema)
{
	for (uint32_t i = 0; i < schema->nr_sets; i++)
		if (schema->set[i].domain == DOMAIN_COLLECTOR)
			return i;
	return 0;
}

static int64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Lets the engine take so many ticks; false when it was interrupted. */
static bool take_ticks(struct env *env, struct engine *e, const struct tally *tally, unsigned nr)
{
	uint64_t until = tally->ticks + nr;

	while (tally->ticks < until) {
		if (env_sleep_until(env, engine_next(e)) < 0)
			return false;
		engine_due(e);
	}
	return true;
}

static void measure(struct env *env, struct engine *e, struct tally *tally, unsigned ticks, struct cost *ret)
{
	int64_t before[COLLECTORS_MAX], cpu;

	engine_tick(e);
	if (ret->hz > 1 && !take_ticks(env, e, tally, 2)) /* caches and page faults of the first ones */
		return;
	memcpy(before, tally->cost_ns, sizeof(before));
	cpu = own_cpu_ns();
	if (!take_ticks(env, e, tally, ticks))
		return;
	ret->tick_s = (double)(own_cpu_ns() - cpu) * 1e-9 / ticks;
	ret->share = ret->tick_s * ret->hz;
	for (size_t i = 0; i < COLLECTORS_MAX; i++)
		ret->by[i] = (double)(tally->cost_ns[i] - before[i]) * 1e-9 / ticks;
	ret->processes = engine_live(e);
	ret->ticks = ticks;
}

static void measure_at(struct env *env, struct scopes *all, unsigned ticks, struct cost *ret)
{
	static const char *const words[] = {"-smaps"};
	struct engine_options o = {
		.interval_ns = NSEC_PER_SEC / ret->hz,
		.interval_is_order = true,
		.flush_ns = NSEC_PER_SEC,
		.budget = DEFAULT_BUDGET,
		.children = true,
		.help = HELP_CONNECTOR | HELP_TASKSTATS,
		.attach = true,
		.max_members = 65536,
		.metrics = words,
		.nr_metrics = ARRAY_SIZE(words),
		.scopes = all,
	};
	struct tally tally = {0};
	struct sink sink = sink_to_nowhere(&tally);
	struct rlimit files;
	struct engine *e;
	char err[512];

	sink.tick = take_costs;
	getrlimit(RLIMIT_NOFILE, &files);
	o.max_files = (unsigned)MIN(files.rlim_cur, (rlim_t)1 << 20);
	if (engine_new(env, &o, &e, err, sizeof(err)) < 0)
		return;
	tally.set = find_costs(engine_schema(e));
	if (engine_open(e, &sink) == 0) {
		engine_scan(e);
		engine_zero(e);
		measure(env, e, &tally, ticks, ret);
	}
	engine_free(e);
}

unsigned budget_stretch(double share, double budget)
{
	unsigned stretch = 1;

	while (share / stretch > 1.5 * budget && stretch < 64)
		stretch *= 2;
	return stretch;
}

void doctor_cost(struct env *env, struct cost cost[static NR_COSTS], void (*progress)(double left_s))
{
	static const unsigned rate[NR_COSTS] = {1, 10, 100};
	struct scopes *all = malloc(sizeof(*all));
	struct rlimit files;
	struct buf err;
	double left = 0;

	if (!all)
		return;
	buf_init(&err, 4096);
	scopes_init(all, env);
	scopes_add(all, "system", &err);

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* as the recorder does for itself */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (unsigned i = 0; i < NR_COSTS; i++)
		left += (double)ticks_at[i] / rate[i];
	for (unsigned i = NR_COSTS; i-- > 0;) { /* the long ones last */
		progress(left);
		cost[i] = (struct cost){.hz = rate[i]};
		measure_at(env, all, ticks_at[i], &cost[i]);
		left -= (double)ticks_at[i] / rate[i];
	}
	progress(0);
	scopes_release(all);
	buf_release(&err);
	free(all);
}
