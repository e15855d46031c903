/* Making, opening and closing; the schedule. A tick belongs to the absolute deadline start + k x interval, so
 * that delays never add up. A deadline that passes while we could not run is a missed tick and is counted. */
#include "engine/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Descriptors we keep for everything except the members' files: a large host has a sensor and a frequency for
 * every CPU. */
#define RESERVED_FILES 640

static void context_describe(
	struct collect_context *ctx, uint32_t row, const char *name, const struct about *about, size_t nr)
{
	struct engine *e = ctx->engine;
	uint32_t set = (uint32_t)((struct set *)((char *)ctx - offsetof(struct set, ctx)) - e->set);

	pairs_reset(&e->pairs);
	pairs_str(&e->pairs, "name", name);
	for (size_t i = 0; i < nr; i++)
		pairs_str(&e->pairs, about[i].key, about[i].value);
	e->sink.instance(e->sink.arg, set, row, ctx->table->id[row], engine_elapsed(e), &e->pairs);
}

static int context_join_about(
	struct collect_context *ctx, const char *name, const struct about *about, size_t nr)
{
	struct set *set = (struct set *)((char *)ctx - offsetof(struct set, ctx));
	struct table *t = ctx->table;
	uint32_t row = 0;

	while (row < t->cap && t->id[row] != ROW_FREE)
		row++;
	if (row == t->cap)
		return -ENOSPC;
	table_bind(t, row, set->next_id++);
	context_describe(ctx, row, name, about, nr);
	return (int)row;
}

static int context_join(struct collect_context *ctx, const char *name)
{
	return context_join_about(ctx, name, NULL, 0);
}

static int context_members(
	struct collect_context *ctx, int (*fn)(void *arg, const struct collect_member *m), void *arg)
{
	struct engine *e = ctx->engine;
	int r = 0;

	tree_for_each (&e->tree, slot, after) {
		const struct member *m = &e->tree.member[slot];

		if (!m->ended && !m->zombie)
			r = fn(arg,
				&(struct collect_member){.pid = m->pid,
					.parent = m->ppid,
					.id = m->id,
					.groups = m->groups,
					.born_ns = m->born_ns,
					.origin = m->origin,
					.family = m->groups & e->tree.inheriting});
		if (r != 0)
			return r;
	}
	return 0;
}

static void *context_sibling(struct collect_context *ctx, const char *collector)
{
	struct engine *e = ctx->engine;

	for (uint32_t i = 0; i < e->nr_sets; i++)
		if (e->set[i].usable && !strcmp(e->set[i].collector->name, collector))
			return e->set[i].state;
	return NULL;
}

static void context_leave(struct collect_context *ctx, uint32_t row)
{
	struct engine *e = ctx->engine;
	uint32_t set = (uint32_t)((struct set *)((char *)ctx - offsetof(struct set, ctx)) - e->set);

	pairs_reset(&e->pairs);
	e->sink.gone(e->sink.arg, set, row, ctx->table->id[row], engine_elapsed(e), &e->pairs);
	table_unbind(ctx->table, row);
}

static void context_why(struct collect_context *ctx, size_t metric, enum availability availability,
	const char *reason, const char *remedy)
{
	struct engine *e = ctx->engine;
	struct set *set = (struct set *)((char *)ctx - offsetof(struct set, ctx));

	if (ctx->map.col[metric] < 0)
		return;
	pairs_reset(&e->pairs);
	pairs_str(&e->pairs, "metric", set->metric[metric].name);
	pairs_str(&e->pairs, "availability", availability_name(availability));
	pairs_str(&e->pairs, "why", reason);
	if (remedy)
		pairs_str(&e->pairs, "remedy", remedy);
	e->sink.event(e->sink.arg, engine_elapsed(e), "unavailable", &e->pairs);
}

/* Tables only reserve addresses, but where those are limited (ulimit -v) a smaller one must do. */
static int init_table(struct table *t, uint32_t nr_cols, uint32_t cap)
{
	int r = table_init(t, nr_cols, cap);

	while (r < 0 && cap > 1024) {
		cap /= 4;
		r = table_init(t, nr_cols, cap);
	}
	return r;
}

static void *map_zeroed(size_t size)
{
	void *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Collectors have room for the largest machine. What this machine does not need is never touched, not even to
 * clear it: that would make it resident. */
#define STATE_MAPPED 8192

static void *state_new(const struct collector *c)
{
	return c->state_size < STATE_MAPPED ? calloc(1, c->state_size + 1) : map_zeroed(c->state_size);
}

static void state_free(const struct collector *c, void *state)
{
	if (c->state_size < STATE_MAPPED)
		free(state);
	else if (state)
		munmap(state, c->state_size);
}

static int make_tables(struct engine *e, uint32_t from)
{
	for (uint32_t i = from; i < e->nr_sets; i++) {
		struct set *set = &e->set[i];
		/* A set that this machine does not have needs no room. */
		uint32_t cap = set->usable && set->collector->max_rows ? set->collector->max_rows : 1;
		int r;

		if (set->collector->domain == DOMAIN_PROCESS) {
			cap = e->opt.max_members;
			e->process_set = i;
		}
		r = init_table(&set->table, e->schema->set[i].nr_metrics, cap);
		if (r < 0)
			return r;
		e->table[i] = &set->table;
		set->ctx.env = e->env;
		set->ctx.table = &set->table;
		set->ctx.feed = &e->feed;
		set->ctx.engine = e;
		set->ctx.join = context_join;
		set->ctx.join_about = context_join_about;
		set->ctx.describe = context_describe;
		set->ctx.members = context_members;
		set->ctx.sibling = context_sibling;
		set->ctx.leave = context_leave;
		set->ctx.why = context_why;
		set->ctx.plan = set->collector->plan ? &set->plan : NULL;
		set->ctx.children = e->opt.children;
		if (!set->usable || !e->schema->set[i].nr_metrics)
			continue;
		set->state = state_new(set->collector);
		if (!set->state)
			return -ENOMEM;
	}
	return 0;
}

static size_t scratch_size(const struct engine *e)
{
	return (size_t)e->tree.cap * (2 * sizeof(uint32_t) + 3 * sizeof(struct slot_id));
}

/* The arrays of slots, in one mapping. */
static int make_scratch(struct engine *e)
{
	e->missing = map_zeroed(scratch_size(e));
	if (!e->missing)
		return -ENOMEM;
	e->lingering = e->missing + e->tree.cap;
	e->owing = e->lingering + e->tree.cap;
	e->departing = (uint32_t *)(e->owing + e->tree.cap);
	e->dirty = e->departing + e->tree.cap;
	return 0;
}

static uint64_t ask_scopes(void *engine, pid_t pid)
{
	return scopes_ask(((struct engine *)engine)->scopes, pid);
}

static bool refused_by_scopes(void *engine, pid_t pid)
{
	return scopes_refuse(((struct engine *)engine)->scopes, pid);
}

static void use_scopes(struct engine *e)
{
	struct tree *t = &e->tree;

	e->scopes = e->opt.scopes;
	t->reaper_groups = 1;
	t->inheriting = e->scopes ? e->scopes->inheriting : 1;
	if (e->scopes && e->scopes->expects) /* also the groups of steps and ranks, which come later */
		t->inheriting = UINT64_MAX;
	if (!e->opt.children)
		t->inheriting = 0;
	if (!e->scopes)
		return;
	t->exclusive = e->scopes->users;
	if (e->scopes->asks)
		t->ask = ask_scopes;
	t->refuse = refused_by_scopes;
}

int engine_new(struct env *env, const struct engine_options *options, struct engine **ret, char *err,
	size_t err_size)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r = -ENOMEM;

	snprintf(err, err_size, "out of memory");
	if (!e)
		return r;
	e->env = env;
	e->opt = *options;
	e->self_statm = -1;
	e->copy_kib = INT64_MAX;
	e->stretch = e->clock_turns = 1;
	e->page_ns = 40 * 1024; /* measured; learned anew from every reading */
	e->schema = schema_new();
	pairs_init(&e->pairs, e->pair_memory, ARRAY_SIZE(e->pair_memory), e->pair_text, sizeof(e->pair_text));
	if (e->schema)
		r = select_rows(e, err, err_size);
	if (r == 0) {
		r = make_tables(e, 0);
		if (r == 0)
			r = tree_init(&e->tree, env, e->set[e->process_set].table.cap);
		if (r == 0)
			r = make_scratch(e);
		if (r < 0)
			snprintf(err, err_size, "cannot reserve memory: %s", strerror(-r));
	}
	if (r < 0) {
		engine_free(e);
		return r;
	}
	e->tree.joined = member_joined;
	e->tree.regrouped = member_regrouped;
	e->tree.arg = e;
	use_scopes(e);
	*ret = e;
	return 0;
}

struct engine *engine_free(struct engine *e)
{
	if (!e)
		return NULL;
	events_close(e);
	processes_close(e->processes);
	for (uint32_t i = 0; i < e->nr_sets; i++) {
		struct set *set = &e->set[i];

		if (set->collector->close && (i < e->nr_opened || e->gated) && set->state)
			set->collector->close(set->state, &set->ctx);
		state_free(set->collector, set->state);
		table_release(&set->table);
	}
	for (size_t i = 0; i < SETS_MAX; i++) {
		if (e->set[i].plan.free_own)
			e->set[i].plan.free_own(e->set[i].plan.own);
		free(e->set[i].rows);
	}
	env_close(e->env, e->self_statm);
	if (e->missing)
		munmap(e->missing, scratch_size(e));
	tree_release(&e->tree);
	choice_drop(e);
	schema_free(e->schema);
	free(e);
	return NULL;
}

const struct schema *engine_schema(const struct engine *e)
{
	return e->schema;
}

bool engine_is_whole(const struct engine *e)
{
	return !e->choice;
}

const char *engine_unread(const struct engine *e, size_t i)
{
	for (size_t c = e->nr_sets; e->choice && collectors[c]; c++)
		if (choice_has(e->choice, c) && !i--)
			return collectors[c]->name;
	return NULL;
}

void engine_describe_rest(struct engine *e)
{
	uint32_t from = e->nr_sets;
	char err[256];
	int r;

	if (!e->choice)
		return;
	r = select_rest(e, err, sizeof(err));
	if (r == 0)
		r = make_tables(e, from);
	events_filter(e);
	for (uint32_t i = from; r < 0 && i < e->nr_sets; i++)
		e->set[i].usable = false; /* no memory for the node's sets: the job is still recorded */
	if (e->sink.schema)
		e->sink.schema(e->sink.arg, e->schema);
}

void collectors_open(struct engine *e)
{
	for (; e->nr_opened < e->nr_sets; e->nr_opened++) {
		uint32_t i = e->nr_opened;
		struct set *set = &e->set[i];
		int r;

		if (!set->usable || !set->collector->open || !e->schema->set[i].nr_metrics) {
			set->usable = set->usable && set->collector->domain == DOMAIN_PROCESS;
			continue;
		}
		r = set->collector->open(set->state, &set->ctx);
		if (r < 0)
			for (size_t m = 0; m < set->nr_metrics; m++)
				context_why(&set->ctx, m, FAILED, strerror(-r), NULL);
		set->usable = r >= 0;
	}
}

static bool wants_gate(const struct engine *e, uint32_t set)
{
	return e->set[set].usable && e->set[set].collector->before_exec && e->schema->set[set].nr_metrics;
}

bool engine_wants_gate(const struct engine *e)
{
	for (uint32_t i = 0; i < e->nr_sets; i++)
		if (wants_gate(e, i))
			return true;
	return false;
}

void engine_before_exec(struct engine *e, pid_t pid)
{
	e->gated = true;
	for (uint32_t i = 0; i < e->nr_sets; i++)
		if (wants_gate(e, i)) /* open() gives the reason of a failure */
			e->set[i].collector->before_exec(e->set[i].state, &e->set[i].ctx, pid);
}

const struct plan_formula *engine_formula(const struct engine *e, size_t i)
{
	for (uint32_t s = 0; s < e->nr_sets; s++) {
		if (i < e->set[s].plan.nr_formulas)
			return &e->set[s].plan.formula[i];
		i -= e->set[s].plan.nr_formulas;
	}
	return NULL;
}

const char *engine_asked(const struct engine *e, size_t i)
{
	for (uint32_t s = 0; s < e->nr_sets; s++)
		if (e->set[s].asked && !i--)
			return e->set[s].collector->name;
	return NULL;
}

void engine_zero(struct engine *e)
{
	e->start_ns = e->flushed_ns = e->deadline_ns = env_now(e->env, ENV_MONOTONIC);
	e->rest_ns = e->start_ns + e->opt.rest_ns;
	e->wall_offset_ns = env_now(e->env, ENV_REALTIME) - e->start_ns;
	e->unasked = e->tree.vanished = 0; /* what happened while we waited is not part of the recording */
}

/* Where descriptors are few, the node's collectors, which keep theirs open, come first: a member's file can
 * be opened for each reading. */
static unsigned files_for_members(unsigned all)
{
	if (all > 2 * RESERVED_FILES)
		return all - RESERVED_FILES;
	return all > 256 ? all / 2 : all / 8;
}

/* A collector that keeps descriptors for processes shares with the members' files. */
static unsigned share_files(struct engine *e, unsigned files)
{
	if (!engine_wants_gate(e))
		return files;
	for (uint32_t i = 0; i < e->nr_sets; i++)
		e->set[i].ctx.max_files = files / 2;
	return files / 2;
}

int engine_open(struct engine *e, const struct sink *sink)
{
	unsigned files = share_files(e, files_for_members(e->opt.max_files));
	int r;

	e->sink = *sink;
	engine_zero(e);
	e->opened_ns = e->start_ns;
	e->feed.backoff = 1;
	e->feed.cgroup_user_ns = e->feed.cgroup_system_ns = e->feed.cgroup_total_ns =
		e->feed.cgroup_memory_peak = -1;
	e->feed.self_cpu_ns = e->feed.self_rss_kib = -1;
	/* Two seconds' worth of budget at the start, so that short jobs get their PSS. */
	e->tokens_ns = (int64_t)(2e9 * e->opt.budget);
	r = processes_open(&e->processes, &e->set[e->process_set].ctx, files);
	if (r < 0)
		return r;
	if (e->env->live) {
		e->self_statm = env_open(e->env, "proc/self/statm");
		events_open(e);
	} else {
		snprintf(e->helpers, sizeof(e->helpers), "none");
	}
	return 0;
}

const char *engine_helpers(const struct engine *e)
{
	return e->helpers;
}

void engine_use_cgroup(struct engine *e, struct own_cgroup *group)
{
	e->cgroup = group;
}

void engine_count_bytes(struct engine *e, uint64_t written)
{
	e->feed.written_bytes = (int64_t)written;
}

/* Not ru_maxrss: it includes the memory that our process had before its exec. -1: not known. */
static int64_t own_peak_kib(const struct engine *e)
{
	char text[4096];
	ssize_t n = e->env->live ? env_peek(e->env, "proc/self/status", text, sizeof(text)) : -ENOENT;
	const char *at = n > 0 ? strstr(text, "\nVmHWM:") : NULL;
	int64_t kib;

	if (!at)
		return -1;
	at += strlen("\nVmHWM:");
	at += strspn(at, " \t");
	return read_number(&at, text + n, &kib) ? kib : -1;
}

void engine_leave_out(struct engine *e, pid_t pid)
{
	e->tree.helper = pid;
}

void engine_leave_out_too(struct engine *e, pid_t pid)
{
	if (e->tree.nr_beside < ARRAY_SIZE(e->tree.beside))
		e->tree.beside[e->tree.nr_beside++] = pid;
}

int engine_add_root(struct engine *e, pid_t pid, bool ours, uint64_t groups)
{
	uint32_t slot;
	int r;

	/* The process whose end we wait for, even if nothing of it can be read. */
	if (ours && !e->root)
		e->root = pid;
	if (env_cpu_clock(e->env, pid) < 0)
		return -ESRCH;
	r = tree_add(&e->tree, pid, ours ? e->tree.self : 0, groups, &slot);
	if (r == -EEXIST && tree_find(&e->tree, pid) != NO_SLOT) {
		slot = tree_find(&e->tree, pid);
		tree_set_groups(&e->tree, slot, e->tree.member[slot].groups | groups);
	}
	if (r < 0)
		return r;
	e->tree.member[slot].root = true;
	e->tree.member[slot].late = !ours;
	if (ours) {
		e->tree.reaper = e->tree.self;
		e->tree.reaper_origin = e->tree.member[slot].id;
		e->tree.member[slot].born_ns = e->start_ns;
		events_prove(e, pid);
	}
	if (!e->root)
		e->root = pid;
	/* Processes that our child forked have later PIDs than it; those of an attached process are found by
	 * the scan. */
	tree_cursor_set(&e->tree, ours ? pid : 0);
	return 0;
}

void engine_set_copy(struct engine *e, int64_t kib, const char *program)
{
	const char *slash = strrchr(program, '/');

	e->copy_kib = kib < 0 ? INT64_MAX : kib;
	snprintf(e->program, sizeof(e->program), "%s", slash ? slash + 1 : program);
}

int engine_scan(struct engine *e)
{
	int r;

	tree_cursor_set(&e->tree, 0); /* the next poll finds processes that start from now on */
	r = tree_scan(&e->tree);
	list_members(e);
	if (e->opt.attach)
		tree_attached(&e->tree);
	/* With scopes, the first reading of each process tells whether it is older than the recording. */
	tree_for_each (&e->tree, slot, after)
		e->tree.member[slot].late |= !e->scopes;
	return r;
}

void engine_seek(struct engine *e)
{
	find_new_members(e);
}

void engine_set_limits(struct engine *e, double cpus, double memory_bytes)
{
	e->feed.limit_cpus_milli = round_i64(cpus * 1000);
	e->feed.limit_memory_bytes = round_i64(memory_bytes);
}

void engine_set_job_group(struct engine *e, const char *group)
{
	snprintf(e->job_group, sizeof(e->job_group), "%s", group);
	e->feed.job_group = e->job_group;
}

pid_t engine_root(const struct engine *e)
{
	return e->feed.root;
}

bool engine_is_member(const struct engine *e, pid_t pid)
{
	return tree_find(&e->tree, pid) != NO_SLOT;
}

uint32_t engine_live(const struct engine *e)
{
	return e->tree.nr;
}

uint32_t engine_group_live(const struct engine *e, unsigned group)
{
	return e->scopes ? (uint32_t)e->feed.group[group].live : e->tree.nr;
}

bool engine_is_running(const struct engine *e)
{
	tree_for_each (&e->tree, slot, after)
		if (!e->tree.member[slot].dead)
			return true;
	return false;
}

bool engine_every(const struct engine *e, bool (*fn)(void *arg, pid_t pid), void *arg)
{
	bool one = false;

	tree_for_each (&e->tree, slot, after) {
		if (e->tree.member[slot].dead)
			continue;
		if (!fn(arg, e->tree.member[slot].pid))
			return false;
		one = true;
	}
	return one;
}

uint64_t engine_taken(const struct engine *e)
{
	return e->taken;
}

pid_t engine_group_root(const struct engine *e, unsigned group)
{
	if (!engine_group_live(e, group))
		return 0;
	tree_for_each (&e->tree, slot, after)
		if (e->tree.member[slot].groups >> group & 1 && !e->tree.member[slot].dead)
			return e->tree.member[slot].pid;
	return 0;
}

uint32_t engine_runs(const struct engine *e)
{
	uint32_t nr = 0;

	tree_for_each (&e->tree, slot, after)
		nr += !e->tree.member[slot].dead;
	return nr;
}

bool engine_root_ended(const struct engine *e, int *ret_status)
{
	if (e->root_ended)
		*ret_status = e->root_status;
	return e->root_ended;
}

int64_t engine_own_cpu(const struct engine *e)
{
	return e->feed.self_cpu_ns;
}

int64_t engine_elapsed(const struct engine *e)
{
	return engine_time(e, env_now(e->env, ENV_MONOTONIC));
}

int64_t engine_when(const struct engine *e, int64_t monotonic_ns)
{
	return monotonic_ns - e->start_ns;
}

void engine_event(struct engine *e, const char *kind, const char *key, const char *value)
{
	pairs_reset(&e->pairs);
	if (key)
		pairs_str(&e->pairs, key, value);
	e->sink.event(e->sink.arg, engine_elapsed(e), kind, &e->pairs);
}

void engine_tell(struct engine *e, const char *kind, const struct pairs *data)
{
	e->sink.event(e->sink.arg, engine_elapsed(e), kind, data);
}

void engine_number(struct engine *e, const struct job_number *n)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);

	app_tell(&e->feed.app, n->name, n->unit, n->unit_text, n->value);
	if (!e->number_ns || now - e->number_ns >= e->opt.interval_ns * e->stretch)
		e->number_due_ns = MAX(now, tick_edge_least(e));
	e->number_ns = now;
}

const char *engine_told(const struct engine *e, uint64_t *ret_left_out)
{
	*ret_left_out = e->feed.app.left_out;
	return e->feed.app.nr ? e->feed.app.names : NULL;
}

void engine_edge(struct engine *e)
{
	if (tick_take_edge(e))
		e->tick++;
}

void engine_flush(struct engine *e)
{
	engine_describe_rest(e); /* without it nothing can be written */
	e->flushed_ns = env_now(e->env, ENV_MONOTONIC);
	e->sink.flush(e->sink.arg);
	budget_worked(e);
}

int64_t engine_next(const struct engine *e)
{
	int64_t next = e->connector || e->taskstats ? MIN(e->deadline_ns, e->drain_ns) : e->deadline_ns;

	if (e->number_due_ns)
		next = MIN(next, e->number_due_ns);
	return e->choice ? MIN(next, e->rest_ns) : next;
}

/* To the next deadline of a tick that has not passed. Those between such deadlines are left out: they are not
 * missed. */
static void advance(struct engine *e, int64_t now)
{
	int64_t interval = e->opt.interval_ns * e->stretch;
	int64_t behind = MAX((now - e->deadline_ns) / interval, INT64_C(0));

	e->ahead = e->stretch - 1;
	e->feed.missed_ticks += behind;
	e->feed.skipped_ticks += (behind + 1) * e->ahead;
	e->deadline_ns += (behind + 1) * interval;
	e->tick += (uint64_t)(behind + 1) * e->stretch;
}

/* The recording ends before the next deadline of a tick: what lies between is neither left out nor missed. */
static void forget_ahead(struct engine *e, int64_t left_ns)
{
	int64_t unreached = MIN((left_ns - 1) / e->opt.interval_ns, (int64_t)e->ahead);

	e->feed.skipped_ticks -= unreached;
	e->tick -= (uint64_t)unreached;
}

/* It ends after it: the last tick is that of the last deadline that has passed. */
static void pass_late(struct engine *e, int64_t late_ns)
{
	int64_t passed = late_ns / e->opt.interval_ns, missed = (passed + e->stretch - 1) / e->stretch;

	e->feed.missed_ticks += missed;
	e->feed.skipped_ticks += passed - missed;
	e->tick += (uint64_t)passed;
	e->deadline_ns += (passed + 1) * e->opt.interval_ns;
}

void engine_due(struct engine *e)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);

	if (now < e->deadline_ns && e->choice && now >= e->rest_ns) { /* a tick between deadlines */
		tick_take(e, false);
		e->tick++;
		engine_resumed(e); /* opening everything may take long */
		engine_flush(e);
		return;
	}
	if (now < e->deadline_ns && e->number_due_ns && now >= e->number_due_ns) {
		e->number_due_ns = 0;
		engine_edge(e);
		return;
	}
	if (now < e->deadline_ns) {
		if (now >= e->drain_ns)
			events_drain(e);
		return;
	}
	tick_take(e, true);
	advance(e, env_now(e->env, ENV_MONOTONIC));
	/* Half an interval early rather than one late: a flush a second must not become one every two. */
	if (now + e->opt.interval_ns / 2 >= e->flushed_ns + e->opt.flush_ns)
		engine_flush(e);
}

void engine_tick(struct engine *e)
{
	tick_take(e, false);
	e->tick++;
	e->deadline_ns += e->opt.interval_ns;
	engine_resumed(e); /* opening everything may take longer than an interval: these ticks do not count as
			      missed */
}

void engine_last_tick(struct engine *e)
{
	int64_t now = e->over_ns ? e->over_ns : env_now(e->env, ENV_MONOTONIC), late = now - e->deadline_ns;

	if (late >= 0)
		pass_late(e, late);
	else
		forget_ahead(e, -late);
	e->ahead = 0;
	e->last_tick = true;
	tick_take(e, false);
	e->last_tick = false;
	e->tick++;
}

void engine_over(struct engine *e)
{
	e->over_ns = env_now(e->env, ENV_MONOTONIC);
}

void engine_final_tick(struct engine *e)
{
	e->final_tick = e->opt.attach;
	engine_last_tick(e);
	e->final_tick = false;
}

void engine_end_threads(struct engine *e)
{
	for (uint32_t i = 0; i < e->nr_sets; i++) {
		struct set *set = &e->set[i];

		if (!set->collector->async || !set->state || i >= e->nr_opened)
			continue;
		set->usable = false;
		set->collector->close(set->state, &set->ctx);
	}
}

void engine_resumed(struct engine *e)
{
	int64_t now = env_now(e->env, ENV_MONOTONIC);
	int64_t behind = (now - e->deadline_ns) / e->opt.interval_ns;

	if (behind > 0) {
		e->deadline_ns += behind * e->opt.interval_ns;
		e->tick += (uint64_t)behind;
		e->ahead = 0;
	}
}

int engine_play(struct engine *e, int64_t until_ns)
{
	int r = 0;

	engine_tick(e);
	while (e->tree.nr && r == 0 && engine_elapsed(e) < until_ns) {
		r = e->env->ops->sleep_until(e->env, e->deadline_ns);
		if (r == 0)
			engine_due(e);
	}
	return r == -ENODATA ? 0 : r;
}

void engine_counts(const struct engine *e, struct engine_counts *ret)
{
	uint64_t seen = (uint64_t)e->feed.exited;

	tree_for_each (&e->tree, slot, after)
		seen += e->tree.member[slot].announced;
	*ret = (struct engine_counts){
		.ticks = e->taken,
		.seen = seen,
		.missed = (uint64_t)e->feed.missed_ticks,
		.late = (uint64_t)e->feed.late_ticks,
		.skipped = (uint64_t)e->feed.skipped_ticks,
		.unasked = e->scopes && e->scopes->by_cmdline ? e->unasked + e->tree.vanished : 0,
		.self_cpu_ns = e->feed.self_cpu_ns,
		.self_peak_rss_kib = own_peak_kib(e),
	};
}

uint32_t engine_max_members(const struct engine *e)
{
	return e->opt.max_members;
}

int64_t engine_cost(const struct engine *e, size_t collector)
{
	return e->feed.cost_ns[collector];
}
