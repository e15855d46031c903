/* One way to know what can be measured: the recorder's own. The engine runs with every row chosen over a
 * child that works a little, as `tacho run` would have it, and writes into a sink of ours instead of a file:
 * a metric is there when it had a value, and otherwise it has the reason that the recording would have.
 *
 * Rejected: opening each collector by itself. What is hidden of a process shows only when one is read, and a
 * file that can be opened need not give a value. */
#include "cmd/self_test.h"

#include "collect/gpu.h"
#include "engine/engine.h"
#include "node/cgroups.h"
#include "node/limits.h"
#include "target/kernel.h"
#include "target/scope.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* Node collectors are read every 20 ms at most; three ticks also show values that need an earlier reading. */
#define INTERVAL_NS (22 * NSEC_PER_MSEC)
#define TICKS 3
#define PATIENCE_NS (3 * NSEC_PER_SEC) /* with drivers that answer late */

/* ---- the sink ---- */

static void copy_pair(const struct pairs *pairs, const char *key, char *out, size_t size)
{
	const struct pair *p = pairs_find(pairs, key);

	snprintf(out, size, "%.*s", p ? (int)p->len : 0, p ? p->value : "");
}

static void on_gpu(struct self_test *h, const struct pairs *identity)
{
	struct self_test_gpu *gpu = &h->gpu[h->nr_gpus];

	if (h->nr_gpus == SELF_TEST_GPUS_MAX || pairs_find(identity, "apart"))
		return;
	copy_pair(identity, "vendor", gpu->vendor, sizeof(gpu->vendor));
	copy_pair(identity, "model", gpu->model, sizeof(gpu->model));
	h->nr_gpus++;
}

static void on_instance(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *identity)
{
	struct self_test *h = arg;
	const struct pair *name = pairs_find(identity, "name");

	(void)row;
	(void)id;
	(void)time_ns;
	h->source[set].instances += !name || name->len != 5 || memcmp(name->value, "total", 5);
	if (h->source[set].collector->domain == DOMAIN_GPU)
		on_gpu(h, identity);
}

static struct self_test_metric *find_metric(struct self_test *h, const struct pair *name)
{
	for (size_t s = 0; s < h->nr; s++) {
		const struct collector *c = h->source[s].collector;

		for (size_t i = 0; i < c->nr_metrics; i++)
			if (strlen(c->metric[i].name) == name->len &&
				!memcmp(c->metric[i].name, name->value, name->len))
				return &h->source[s].metric[i];
	}
	return NULL;
}

static char *copy_of(const struct pair *p)
{
	return p ? strndup(p->value, p->len) : NULL;
}

/* The first reason stands: a later one is of another instance. */
static void on_event(void *arg, int64_t time_ns, const char *kind, const struct pairs *data)
{
	const struct pair *name = pairs_find(data, "metric"), *state = pairs_find(data, "availability");
	struct self_test_metric *m = strcmp(kind, "unavailable") || !name ? NULL : find_metric(arg, name);
	int availability = state ? availability_from_name(state->value, state->len) : -EINVAL;

	(void)time_ns;
	if (!m || m->reason)
		return;
	m->reason = copy_of(pairs_find(data, "why"));
	m->remedy = copy_of(pairs_find(data, "remedy"));
	if (m->state != AVAILABLE && availability > 0)
		m->state = (enum availability)availability;
}

/* All rows are chosen, so that a metric's column is its index. */
static void on_tick(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	struct self_test *h = arg;

	(void)number;
	(void)time_ns;
	(void)at;
	h->ticks++;
	for (size_t s = 0; s < h->nr; s++) {
		uint64_t seen = 0;

		for (uint32_t i = 0; i < table[s]->nr_touched; i++)
			seen |= table[s]->valid[table[s]->touched[i]];
		for (size_t m = 0; m < h->source[s].collector->nr_metrics; m++)
			if (seen >> m & 1)
				h->source[s].metric[m].state = AVAILABLE;
		if (seen && h->source[s].collector->domain == DOMAIN_PROCESS)
			h->works = true;
	}
}

/* ---- the child ---- */

/* Works a little, reads a little, and sleeps; only system calls, for it may be made by clone3. */
static void be_child(const struct own_cgroup *group, bool inside)
{
	if (group)
		cgroup_enter(group, inside);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		struct timespec pause = {.tv_nsec = NSEC_PER_MSEC};

		for (volatile int i = 0; i < 20000; i++)
			;
		nanosleep(&pause, NULL);
	}
}

static void end_child(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int first_process(void *arg, const char *name)
{
	pid_t *least = arg;
	long pid = strtol(name, NULL, 10);

	if (pid > 0 && (!*least || pid < *least))
		*least = (pid_t)pid;
	return 0;
}

static pid_t start_child(struct env *env, const struct own_cgroup *group)
{
	bool inside;
	pid_t pid = 0;

	if (!env->live) {
		env_list(env, "proc", first_process, &pid);
		return pid ? pid : -ENOENT;
	}
	pid = cgroup_fork(group, &inside);
	if (pid == 0)
		be_child(group, inside);
	return pid;
}

/* Removes a remedy whose effect is there already. */
static void drop_remedy(struct self_test *h, const char *remedy)
{
	for (size_t s = 0; s < h->nr; s++)
		for (size_t m = 0; m < h->source[s].collector->nr_metrics; m++) {
			char **at = &h->source[s].metric[m].remedy;

			if (*at && !strcmp(*at, remedy)) {
				free(*at);
				*at = NULL;
			}
		}
}

/* ---- the test ---- */

/* What a probe refused is in the schema; probing again gives reason and remedy separately. */
static void take_probes(struct self_test *h, struct env *env, const struct schema *schema)
{
	for (size_t s = 0; s < h->nr; s++) {
		const struct collector *c = h->source[s].collector;
		struct trouble why = {0};

		if (!schema->set[s].nr_metrics || schema->set[s].metric[0].availability == AVAILABLE)
			continue;
		c->probe(env, &why);
		for (size_t m = 0; m < c->nr_metrics; m++)
			h->source[s].metric[m] = (struct self_test_metric){
				.state = schema->set[s].metric[m].availability,
				.reason = strdup(why.reason ? why.reason : schema->set[s].metric[m].why),
				.remedy = why.remedy ? strdup(why.remedy) : NULL,
			};
	}
}

/* Without a control group of its own a tree lacks what that would count; the reason may be a missing
 * right. */
static enum availability state_of_silence(const struct self_test *h, const struct self_test_source *source)
{
	if (source->collector->domain == DOMAIN_TREE)
		return is_refused(h->group_error) ? FORBIDDEN : ABSENT;
	return h->works && source->instances ? FAILED : ABSENT;
}

/* Rows that have neither a value nor a reason. */
static void explain_silence(struct self_test *h)
{
	for (size_t s = 0; s < h->nr; s++) {
		struct self_test_source *source = &h->source[s];
		const char *why = "no value was delivered in this test";

		if (!h->works)
			why = "nothing could be recorded";
		else if (source->collector->domain == DOMAIN_GPU_PROCESS)
			why = "the test process does not use a GPU";
		else if (source->collector->domain == DOMAIN_TREE)
			why = *h->group ? h->group
					: "this kernel does not count it for the job's control "
					  "group";
		else if (source->collector->domain == DOMAIN_APP)
			why = "the test process tells no numbers of its own";
		else if (!source->instances)
			why = "there is none here now";
		for (size_t m = 0; m < source->collector->nr_metrics; m++) {
			struct self_test_metric *metric = &source->metric[m];

			if (metric->state != NR_AVAILABILITY)
				continue;
			metric->state = state_of_silence(h, source);
			if (!metric->reason)
				metric->reason = strdup(why);
		}
	}
}

/* Drivers are asked beside the ticks, and some need long for their first answer: libraries are loaded, GPUs
 * wake up. Where GPUs of a maker are expected, they are waited for. */
static bool waits_for_gpus(const struct self_test *h, struct env *env)
{
	struct trouble why;
	bool waits = false;

	for (size_t i = 0; gpu_makers[i] && !waits; i++) {
		waits = gpu_makers[i]->probe(env, &why) == 0;
		for (unsigned k = 0; k < h->nr_gpus && waits; k++)
			waits = strcmp(h->gpu[k].vendor, gpu_makers[i]->name) != 0;
	}
	return waits;
}

/* Three ticks, and not only so much time: on a busy machine they may be late. */
static int watch(struct self_test *h, struct env *env, struct engine *e)
{
	int64_t patience = env_now(env, ENV_MONOTONIC) + PATIENCE_NS;
	int r = 0;

	for (engine_tick(e); r == 0 && engine_live(e);) {
		if (h->ticks >= TICKS &&
			(!env->live || env_now(env, ENV_MONOTONIC) >= patience || !waits_for_gpus(h, env)))
			break;
		r = env_sleep_until(env, engine_next(e));
		if (r == 0 || r == -EINTR) {
			engine_due(e);
			r = 0;
		}
	}
	return r == -ENODATA ? 0 : r;
}

static void sample(struct self_test *h, struct env *env, struct engine *e, struct own_cgroup *group)
{
	struct sink sink = sink_to_nowhere(h);
	struct limits limits;
	pid_t pid = 0;
	int r;

	sink.instance = on_instance;
	sink.event = on_event;
	sink.tick = on_tick;
	r = engine_open(e, &sink);
	if (r == 0) {
		engine_use_cgroup(e, group);
		engine_zero(e);
		r = pid = start_child(env, group);
	}
	if (r > 0)
		r = engine_add_root(e, pid, env->live, 1);
	if (r == 0) {
		if (limits_read(env, pid, NULL, &limits) == 0)
			engine_set_limits(e, limits.cpus.known ? limits.cpus.value : 0,
				limits.memory.known ? limits.memory.value : 0);
		r = watch(h, env, e);
	}
	if (env->live)
		end_child(pid);
	if (r < 0)
		snprintf(h->trouble, sizeof(h->trouble), "no process can be watched: %s", strerror(-r));
	else if (!h->works)
		snprintf(h->trouble, sizeof(h->trouble), "no process can be read in /proc");
}

static void look(struct self_test *h, struct env *env)
{
	static const char *const words[] = {"all"};
	struct engine_options o = {
		.interval_ns = INTERVAL_NS,
		.interval_is_order = true,
		.flush_ns = NSEC_PER_SEC,
		.budget = 1,
		.children = true,
		.help = HELP_CONNECTOR | HELP_TASKSTATS | HELP_CGROUP,
		.max_members = 65536,
		.metrics = words,
		.nr_metrics = ARRAY_SIZE(words),
	};
	struct own_cgroup *group = NULL;
	struct scopes *scopes = malloc(sizeof(*scopes));
	const char *why = NULL;
	struct rlimit files;
	struct engine *e;
	char err[512];

	if (!scopes)
		return;
	scopes_init(scopes, env);
	scopes_add_command(scopes, "doctor");
	o.scopes = scopes;
	getrlimit(RLIMIT_NOFILE, &files);
	o.max_files = (unsigned)MIN(files.rlim_cur, (rlim_t)1 << 20);
	if (engine_new(env, &o, &e, err, sizeof(err)) < 0) {
		snprintf(h->trouble, sizeof(h->trouble), "%.200s", err);
		goto end;
	}
	take_probes(h, env, engine_schema(e));
	h->group_error = env->live ? cgroup_create(&group, &why) : 0;
	if (h->group_error < 0)
		snprintf(h->group, sizeof(h->group), "%s", why);
	if (group)
		snprintf(h->group_kind, sizeof(h->group_kind), "%s", cgroup_kind(group));
	h->share_error = group ? cgroup_share(group, 0, "cpu") : h->group_error;
	sample(h, env, e, group);
	if (group)
		drop_remedy(h, CGROUP_OF_SYSTEMD);
	engine_free(e);
	cgroup_remove(group);
end:
	scopes_release(scopes);
	free(scopes);
}

int self_test_look(struct env *env, struct self_test **ret)
{
	struct self_test *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	for (; collectors[h->nr]; h->nr++) {
		struct self_test_source *s = &h->source[h->nr];

		s->collector = collectors[h->nr];
		for (size_t m = 0; m < METRICS_MAX; m++)
			s->metric[m].state = NR_AVAILABILITY; /* nothing is known */
	}
	look(h, env);
	explain_silence(h);
	*ret = h;
	return 0;
}

struct self_test *self_test_free(struct self_test *h)
{
	for (size_t s = 0; h && s < h->nr; s++)
		for (size_t m = 0; m < METRICS_MAX; m++) {
			free(h->source[s].metric[m].reason);
			free(h->source[s].metric[m].remedy);
		}
	free(h);
	return NULL;
}

unsigned self_test_nr_ok(const struct self_test_source *s)
{
	unsigned nr = 0;

	for (size_t m = 0; m < s->collector->nr_metrics; m++)
		nr += s->metric[m].state == AVAILABLE;
	return nr;
}

enum availability self_test_state(const struct self_test_source *s)
{
	enum availability state = s->metric[0].state;

	for (size_t m = 1; m < s->collector->nr_metrics; m++)
		if (s->metric[m].state != state)
			return NR_AVAILABILITY;
	return state;
}
