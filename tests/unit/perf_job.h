/* A job as the collector of counters sees it, on films, with all that it asks of the kernel. */
#ifndef TESTS_PERF_JOB_H
#define TESTS_PERF_JOB_H

#include "film_text.h"
#include "perf_lab.h"

#include "collect/perf.h"

#define MEMBERS 16

/* A job as the collector sees it, with the counters it asks for. */
struct job {
	struct lab lab; /* first: the callbacks find the job by it */
	struct perf_lab *pmu;
	struct collect_member member[MEMBERS];
	unsigned nr;
	struct plan plan;
	bool chosen[CHOICES_MAX], taken[8];
	struct metric metric[CHOICES_MAX];
	unsigned since;	 /* counters asked for earlier are not looked at */
	char told[2000]; /* "metric reason;" for each that was */
};

static struct job job;

static inline int job_members(
	struct collect_context *ctx, int (*fn)(void *arg, const struct collect_member *m), void *arg)
{
	struct job *j = (struct job *)ctx;
	int r = 0;

	for (unsigned i = 0; i < j->nr && !r; i++)
		if (j->member[i].pid)
			r = fn(arg, &j->member[i]);
	return r;
}

static inline void job_why(struct collect_context *ctx, size_t metric, enum availability availability,
	const char *reason, const char *remedy)
{
	struct job *j = (struct job *)ctx;
	size_t n = strlen(j->told);

	if (ctx->map.col[metric] < 0)
		return;
	snprintf(j->told + n, sizeof(j->told) - n, "%s %s: %.60s|%s;", j->metric[metric].name,
		availability_name(availability), reason, remedy ? "remedy" : "");
}

static inline struct collect_member *joins(pid_t pid, uint32_t origin)
{
	struct collect_member *m = &job.member[job.nr++];

	*m = (struct collect_member){.pid = pid,
		.id = job.nr,
		.origin = origin ? origin : job.nr,
		.groups = 1,
		.family = true,
		.born_ns = env_now(&job.pmu->env, ENV_MONOTONIC)};
	if (!job.lab.feed.root) {
		job.lab.feed.root = pid;
		job.lab.feed.root_id = m->id;
	}
	return m;
}

/* Words with commas; events likewise. 0, or the error with its message in told. */
static inline int plan_job(
	const char *const *word, size_t nr_words, const char *const *event, size_t nr_events)
{
	char err[256] = "";
	int r;

	for (size_t i = 0; i < nr_words; i++)
		if (!strcmp(word[i], "perf")) {
			job.taken[i] = true;
			memset(job.chosen, true, PERF_ROWS);
		}
	job.plan = (struct plan){.word = word,
		.nr_words = nr_words,
		.taken = job.taken,
		.event = event,
		.nr_events = nr_events,
		.chosen = job.chosen};
	r = job.lab.collector->plan(&job.pmu->env, &job.plan, err, sizeof(err));
	snprintf(job.told, sizeof(job.told), "%s", err);
	return r;
}

static inline void settle_rows(void)
{
	size_t nr = PERF_ROWS + job.plan.nr_metrics;
	int8_t col = 0;

	memcpy(job.metric, job.lab.collector->metric, PERF_ROWS * sizeof(struct metric));
	if (job.plan.nr_metrics)
		memcpy(job.metric + PERF_ROWS, job.plan.metric, job.plan.nr_metrics * sizeof(struct metric));
	for (size_t i = 0; i < nr; i++)
		job.lab.ctx.map.col[i] = (int8_t)(i >= PERF_ROWS || job.chosen[i] ? col++ : -1);
	table_release(&job.lab.table);
	assert_int_equal(table_init(&job.lab.table, (uint32_t)col, 1), 0);
	job.lab.ctx.plan = &job.plan;
	job.lab.ctx.members = job_members;
	job.lab.ctx.why = job_why;
	job.lab.ctx.children = true;
	job.lab.ctx.max_files = 1000;
}

static inline void make_job(struct env *film)
{
	memset(&job, 0, sizeof(job));
	job.pmu = perf_lab(film);
	lab_init(&job.lab, &job.pmu->env, "perf");
}

/* A job that asks for the static rows. */
static inline void begin(struct env *film)
{
	static const char *const perf[] = {"perf"};

	make_job(film);
	assert_int_equal(plan_job(perf, 1, NULL, 0), 0);
	settle_rows();
}

static inline void begin_with(struct env *film, const char *event)
{
	make_job(film);
	assert_int_equal(plan_job(NULL, 0, &event, 1), 0);
	settle_rows();
}

static inline void start(void)
{
	job.since = job.pmu->nr_asked;
	job.told[0] = 0;
	assert_int_equal(job.lab.collector->open(job.lab.state, &job.lab.ctx), 0);
	assert_int_equal(lab_sample(&job.lab), 0);
}

static inline void end(void)
{
	lab_release(&job.lab);
	assert_int_equal(job.pmu->nr_open, 0); /* every counter was closed */
	if (job.plan.free_own)
		job.plan.free_own(job.plan.own);
	env_free(&job.pmu->env);
}

static inline void turn_job(int second)
{
	assert_int_equal(env_sleep_until(&job.pmu->env, (100 + second) * NSEC_PER_SEC), 0);
	assert_int_equal(lab_sample(&job.lab), 0);
}

static inline int64_t cell(const char *name)
{
	for (size_t i = 0; i < PERF_ROWS + job.plan.nr_metrics; i++) {
		int col = job.lab.ctx.map.col[i];

		if (strcmp(job.metric[i].name, name))
			continue;
		if (col < 0)
			fail_msg("%s is not recorded", name);
		return job.lab.table.valid[0] >> col & 1 ? table_row(&job.lab.table, 0)[col] : INVALID;
	}
	fail_msg("no metric %s", name);
	return 0;
}

/* How many counters were asked for of this task since then; those that are open. */
static inline unsigned asked(pid_t pid)
{
	unsigned nr = 0;

	for (unsigned i = job.since; i < job.pmu->nr_asked; i++)
		nr += job.pmu->asked[i].pid == pid;
	return nr;
}

static inline unsigned open_of(pid_t pid)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < job.pmu->nr_asked; i++)
		nr += job.pmu->asked[i].pid == pid && job.pmu->asked[i].handle >= 0;
	return nr;
}

/* Processes and their threads; what nobody else is said to count is 100. */
#define TASKS                                        \
	"clock monotonic 100\n"                      \
	"dir proc/10/task/10\ndir proc/20/task/20\n" \
	"dir proc/20/task/21\ndir proc/30/task/30\n" \
	"dir proc/40/task/40\n"                      \
	"counter * * * -1 100 1000 1000\n"           \
	"counter 1 1 * -1 500 1000 1000\n" /* the task clock */
#endif
