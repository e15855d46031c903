/* What a sample costs now: the engine itself, over all processes of the machine, at several rates.
 *
 * The metrics are those of a recording that asks for none in particular, less the walks of page tables (PSS,
 * USS): these take what is left of the budget and so are never more than that. The samples are not written:
 * that costs little compared with taking them. The first sample opens everything and is not counted. */
#include "cmd/doctor.h"

#include "engine/engine.h"
#include "target/scope.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

/* Ticks per rate: enough for a stable result, few enough for a user who waits. */
static const unsigned ticks_at[NR_COSTS] = {2, 8, 40};

static void count_tick(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	(void)number;
	(void)time_ns;
	(void)at;
	(void)table;
	++*(uint64_t *)arg;
}

static int64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void read_costs(const struct engine *e, int64_t ret[static COLLECTORS_MAX])
{
	for (size_t i = 0; i < COLLECTORS_MAX; i++)
		ret[i] = engine_cost(e, i);
}

/* Lets the engine take ticks until there were so many or the time is over: where a tick takes longer than its
 * interval, or the machine is very busy, not all of them are waited for. -1: interrupted. */
static int take_ticks(struct env *env, struct engine *e, const uint64_t *ticks, unsigned nr, int64_t most_ns)
{
	uint64_t before = *ticks;
	int64_t end = env_now(env, ENV_MONOTONIC) + most_ns;

	while (*ticks < before + nr && (*ticks == before || env_now(env, ENV_MONOTONIC) < end)) {
		if (env_sleep_until(env, engine_next(e)) < 0)
			return -1;
		engine_due(e);
	}
	return (int)(*ticks - before);
}

static void measure(struct env *env, struct engine *e, const uint64_t *ticks, unsigned nr, struct cost *ret)
{
	int64_t before[COLLECTORS_MAX], after[COLLECTORS_MAX], cpu, most_ns = NSEC_PER_SEC / ret->hz * nr;
	int taken;

	engine_tick(e);
	if (ret->hz > 1) /* caches and page faults of the first ones */
		take_ticks(env, e, ticks, 2, most_ns);
	read_costs(e, before);
	cpu = own_cpu_ns();
	taken = take_ticks(env, e, ticks, nr, most_ns + NSEC_PER_SEC / 10);
	if (taken < 1)
		return;
	ret->tick_s = (double)(own_cpu_ns() - cpu) * 1e-9 / taken;
	ret->share = ret->tick_s * ret->hz;
	read_costs(e, after);
	for (size_t i = 0; i < COLLECTORS_MAX; i++)
		ret->by[i] = (double)(after[i] - before[i]) * 1e-9 / taken;
	ret->processes = engine_live(e);
	ret->ticks = (unsigned)taken;
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
	uint64_t taken = 0;
	struct sink sink = sink_to_nowhere(&taken);
	struct rlimit files;
	struct engine *e;
	char err[512];

	sink.tick = count_tick;
	getrlimit(RLIMIT_NOFILE, &files);
	o.max_files = (unsigned)MIN(files.rlim_cur, (rlim_t)1 << 20);
	if (engine_new(env, &o, &e, err, sizeof(err)) < 0)
		return;
	if (engine_open(e, &sink) == 0) {
		engine_scan(e);
		engine_zero(e);
		measure(env, e, &taken, ticks, ret);
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
