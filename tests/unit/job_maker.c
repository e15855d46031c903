#include "job_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BRIEF_ROW 1000 /* above all workers */

static void set_worker(struct maker *m, uint32_t row, int64_t second)
{
	maker_set(m, row, "proc.cpu.time", second * (row + 1) * 100 * MILLI);
	set_memory(m, row, 256 * (row + 1), 0);
	maker_set(m, row, "proc.threads", 2);
}

/* cpu0 works, cpu1 does nothing; row 0 is their sum. */
static void set_cpus(struct maker *m, int64_t second)
{
	static const char *const none[] = {"cpu.nice", "cpu.system", "cpu.iowait", "cpu.irq", "cpu.softirq"};

	for (uint32_t row = 0; row < 3; row++) {
		maker_set(m, row, "cpu.user", row == 2 ? 0 : second * 100);
		maker_set(m, row, "cpu.idle", row == 1 ? 0 : second * 100);
		for (size_t i = 0; i < ARRAY_SIZE(none); i++)
			maker_set(m, row, none[i], 0);
	}
}

static void join_worker(struct maker *m, const struct job *job, uint32_t k)
{
	const char *name = job->name ? job->name : "worker", *group = k % 2 ? "odd" : "even";

	if (job->groups)
		maker_join_in(m, k, k + 1, WORKER_PID + (int64_t)k, 1, 0, false, group, strlen(group));
	else
		maker_join_as(m, k, k + 1, WORKER_PID + (int64_t)k, name, strlen(name), name, strlen(name));
}

static void open_job(struct maker *m, const char *path, const struct job *job)
{
	struct maker_options o = {.host = job->host, .nr_cpus = 2};

	if (job->groups) {
		o.groups = "even\0odd";
		o.groups_len = 8;
	}
	maker_open(m, path, &o);
	maker_instance(m, MAKER_CPU, 0, 0, "total", NULL);
	maker_instance(m, MAKER_CPU, 1, 0, "cpu0", NULL);
	maker_instance(m, MAKER_CPU, 2, 0, "cpu1", NULL);
	maker_instance(m, MAKER_LIMITS, 0, 0, "job", NULL);
	if (job->counters)
		maker_instance(m, MAKER_PERF, 0, 0, "job", NULL);
	if (job->groups) {
		maker_group(m, 0, "even", "match", true);
		maker_group(m, 1, "odd", "match", true);
	}
	for (uint32_t k = 0; k < job->workers; k++)
		join_worker(m, job, k);
}

static void set_all(struct maker *m, const struct job *job, int64_t second)
{
	for (uint32_t k = 0; k < job->workers; k++)
		set_worker(m, k, second);
	set_cpus(m, second);
	maker_set(m, 0, "limit.cpus", 2000);
	maker_set(m, 0, "limit.memory", INT64_C(1) << 30);
	maker_set(m, 0, "tree.processes", job->workers);
	if (job->groups) {
		maker_set(m, 0, "group.processes", (job->workers + 1) / 2);
		maker_set(m, 1, "group.processes", job->workers / 2);
	}
	if (job->counters)
		maker_set_event(m, "cycles", second * 1000, second * SECOND);
}

/* One that came and went between two ticks, and is known by its end. */
static void make_brief(struct maker *m, unsigned k, int64_t at)
{
	maker_join(m, BRIEF_ROW, 10000 + k, 20000 + k, WORKER_PID, at, false);
	maker_gone(m, BRIEF_ROW, 10000 + k, at + 100 * MILLI, "reaped");
}

void make_job(const char *path, const struct job *job)
{
	int64_t brief = 0, events = 0;
	struct maker m;

	open_job(&m, path, job);
	for (int64_t second = 0; second < job->ticks; second++) {
		set_all(&m, job, second);
		maker_tick(&m, second * SECOND);
		if (job->phase && (second == job->ticks / 4 || second == job->ticks / 2))
			maker_event(&m, second * SECOND,
				second == job->ticks / 4 ? "phase.begin" : "phase.end", "name", "build <i>");
		for (; brief < job->brief && brief * job->ticks / job->brief <= second; brief++)
			make_brief(&m, (unsigned)brief, second * SECOND + SECOND / 2);
		for (; events < job->events && events * job->ticks / job->events <= second; events++)
			maker_event(&m, second * SECOND + SECOND / 4, "mark", "name", "here <b>");
	}
	maker_finish(&m, "end_ns", MAX(job->ticks - 1, INT64_C(0)) * SECOND, NULL);
}

static struct run *run;

struct analysis *analysis_of(const char *const *path, size_t nr, const struct analysis_options *options)
{
	const struct analysis_options plain = {.from_s = NAN, .to_s = NAN};
	struct analysis *s = NULL;
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = run_open(path, nr, &run, &err);
	if (r >= 0)
		r = analysis_read(run, options ? options : &plain, &s, &err);
	if (r < 0)
		fail_msg("the story cannot be read: %s (%d)", (char *)err.data, r);
	buf_release(&err);
	return s;
}

void analysis_end(struct analysis *s)
{
	analysis_free(s);
	run = run_close(run);
}

const struct chart *chart_named(const struct charts *f, const char *id)
{
	for (size_t i = 0; i < f->nr; i++)
		if (!strcmp(f->item[i].id, id))
			return &f->item[i];
	return NULL;
}

const struct chart_curve *chart_curve_named(const struct chart *c, const char *name)
{
	for (size_t i = 0; c && i < c->nr_curves; i++)
		if (!strcmp(c->curve[i].name, name))
			return &c->curve[i];
	return NULL;
}
