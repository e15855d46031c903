/* What a recording says about itself: the machine, the options, the limits, the batch job, the groups.
 *
 * What the job would have to wait for is written after it was started: hardware and limits are read while it
 * runs. */
#include "cmd/record.h"

#include "base/redact.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "collect/process.h"
#include "node/hardware.h"
#include "node/limits.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static int cpus_allowed(void)
{
	cpu_set_t *set = CPU_ALLOC(8192);
	int n = 0;

	if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(8192), set) == 0)
		n = CPU_COUNT_S(CPU_ALLOC_SIZE(8192), set);
	CPU_FREE(set);
	return n ? n : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void meta_machine(struct recording *r, struct pairs *p, const struct utsname *uts)
{
	/* Not getpwuid(): it may ask a directory server, and the job is waiting. */
	const char *user = env_getenv(r->env, "LOGNAME");

	if (!user)
		user = env_getenv(r->env, "USER");
	pairs_str(p, "host", uts->nodename);
	pairs_str(p, "kernel", uts->release);
	if (user)
		pairs_str(p, "user", user);
	pairs_num(p, "uid", getuid());
	pairs_num(p, "nr_cpus", cpus_allowed());
	pairs_num(p, "page_size", r->env->page_size);
	pairs_num(p, "clock_tick", r->env->clock_tick);
}

static void meta_options(struct recording *r, struct pairs *p, char keys[OPT_LIST_MAX][80])
{
	const struct record_options *o = r->opt;

	pairs_str(p, "version", tacho_version);
	pairs_str(p, "mode", r->attach ? "attach" : "run");
	pairs_num(p, "interval_ns", o->interval_ns);
	pairs_num(p, "flush_ns", o->flush_ns);
	pairs_num(p, "budget_ppm", (int64_t)(o->budget_percent * 10000));
	if (!o->children)
		pairs_str(p, "children", "no");
	if (r->group) {
		pairs_str(p, "cgroup", cgroup_path(r->group));
		pairs_str(p, "cgroup_kind", cgroup_kind(r->group));
	}
	if (o->name)
		pairs_str(p, "name", o->name);
	if (o->message)
		pairs_str(p, "message", o->message);
	for (unsigned i = 0; i < o->tag.nr; i++) {
		const char *value = strchr(o->tag.item[i], '=');

		snprintf(keys[i], sizeof(keys[i]), "tag.%.*s", (int)MIN(value - o->tag.item[i], 70),
			o->tag.item[i]);
		pairs_str(p, keys[i], value + 1);
	}
}

static void redact_words(struct recording *r, struct buf *words)
{
	static const char room[128]; /* three stars may be longer than the secret */
	uint64_t before = redact_lines(r->redact);
	size_t len = words->len;

	words->max += sizeof(room);
	buf_add(words, room, sizeof(room));
	if (!words->err)
		words->len = redact_line(r->redact, (char *)words->data, len, words->len);
	r->command_blanked = redact_lines(r->redact) > before;
}

static void describe_redaction(const struct redact *r, char *out, size_t size)
{
	const char *known = redact_known(r) ? "known forms" : "", *comma = redact_known(r) ? ", " : "";
	unsigned nr = redact_nr(r);

	if (nr)
		snprintf(out, size, "%s%s%u expression%s", known, comma, nr, nr == 1 ? "" : "s");
	else
		snprintf(out, size, "%s", *known ? known : "none");
}

/* The command line of a process that is the only target is more useful than its PID. */
static bool add_target(struct recording *r, struct buf *words)
{
	const struct scope *only = r->attach && r->scopes.nr == 1 ? &r->scopes.scope[0] : NULL;
	char text[4096];
	bool cut;
	ssize_t n = only && only->kind == SCOPE_PID
		? process_cmdline(r->env, only->pid, text, sizeof(text), &cut)
		: 0;

	buf_add(words, text, (size_t)MAX(n, 0));
	return n > 0;
}

int record_begin(struct recording *r, int argc, char **argv)
{
	struct pair memory[PAIRS_MAX];
	char numbers[1024], keys[OPT_LIST_MAX][80], redaction[64];
	struct pairs p;
	struct buf command;
	struct utsname uts;
	bool is_target;
	int e;

	buf_init(&command, 32768);
	is_target = add_target(r, &command);
	for (int i = 0; i < argc && !is_target; i++) {
		if (i)
			buf_addch(&command, 0);
		buf_add(&command, argv[i],
			MIN(strlen(argv[i]), command.max - MIN(command.max, command.len + 1)));
	}
	redact_words(r, &command);
	describe_redaction(r->redact, redaction, sizeof(redaction));
	uname(&uts);
	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	meta_machine(r, &p, &uts);
	meta_options(r, &p, keys);
	pairs_add(&p, "command", command.data, command.len);
	if (is_target || r->node)
		pairs_str(&p, "target", r->node ? job_node_target(r) : argv[0]);
	pairs_str(&p, "redact", redaction);
	engine_zero(r->engine);
	pairs_num(&p, "start_monotonic_ns", env_now(r->env, ENV_MONOTONIC));
	pairs_num(&p, "start_wall_ns", env_now(r->env, ENV_REALTIME));
	pairs_num(&p, "start_boottime_ns", env_now(r->env, ENV_BOOTTIME));
	e = store_meta(r->sink.store, &p);
	record_log_meta(r, &p);
	buf_release(&command);
	if (r->opt->duration_ns)
		r->end_ns = env_now(r->env, ENV_MONOTONIC) + r->opt->duration_ns;
	return e;
}

/* ---- what is known only when the job runs, or when the processes were found ---- */

/* Facts are kept until they are written in one go: keys and values in one text. */
struct recorder_facts {
	struct pairs pairs;
	struct pair memory[PAIRS_MAX];
	char numbers[8];
	char text[16384];
	size_t used;
};

static const char *keep(struct recorder_facts *f, const char *text)
{
	size_t n = strlen(text) + 1;
	char *at = f->text + f->used;

	if (n > sizeof(f->text) - f->used)
		return NULL;
	memcpy(at, text, n);
	f->used += n;
	return at;
}

static void add_fact(void *arg, const char *key, const char *value)
{
	struct recorder_facts *f = arg;
	const char *k = keep(f, key), *v = k ? keep(f, value) : NULL;

	if (v)
		pairs_str(&f->pairs, k, v);
}

static const char *limit_text(const struct limit *limit, char text[static 64])
{
	if (!limit->known)
		*text = 0;
	else if (limit->value == (double)(int64_t)limit->value)
		snprintf(text, 64, "%lld", (long long)limit->value);
	else
		snprintf(text, 64, "%.3f", limit->value);
	return text;
}

static void add_limit(
	struct recorder_facts *f, const char *key, const char *source_key, const struct limit *limit)
{
	char text[64];

	if (!limit->known)
		return;
	add_fact(f, key, limit_text(limit, text));
	add_fact(f, source_key, limit->source);
}

static void add_number(struct recorder_facts *f, const char *key, double value)
{
	char text[32];

	if (!(value > 0))
		return;
	snprintf(text, sizeof(text), "%lld", (long long)value);
	add_fact(f, key, text);
}

static struct limits_override limits_given(const struct record_options *opt)
{
	struct limits_override override = {0};

	if (opt->max_cpus)
		parse_decimal(opt->max_cpus, &override.cpus);
	if (opt->max_memory)
		parse_bytes(opt->max_memory, &override.memory_bytes);
	return override;
}

static bool find_subject(
	struct recording *r, unsigned group, struct limits_subject *ret, char *path, size_t path_size);

/* The command has our limits; one that is ending already no longer shows its own. Those of a batch job are
 * what it was given on this node, not what its first step was. */
static struct limits_subject limits_subject(struct recording *r, char *path, size_t path_size)
{
	struct limits_subject subject;

	if (r->attach && r->scopes.nr == 1 && r->scopes.scope[0].job &&
		find_subject(r, 0, &subject, path, path_size))
		return subject;
	return (struct limits_subject){
		.level = LIMITS_PROCESS, .pid = r->attach ? engine_root(r->engine) : 0, .places = r->places};
}

static void describe_limits(struct recording *r, struct recorder_facts *f)
{
	struct limits_override override = limits_given(r->opt);
	char path[1024];
	struct limits_subject subject = limits_subject(r, path, sizeof(path));
	struct limits limits;
	int e = limits_read_of(r->env, &subject, &override, &limits);

	free(r->places);
	r->places = NULL;
	if (subject.level == LIMITS_JOB && subject.group)
		engine_set_job_group(r->engine, subject.group);
	add_number(f, "mem_total_bytes", limits.machine_memory);
	if (e < 0)
		return;
	add_limit(f, "limits.cpus", "limits.cpus_source", &limits.cpus);
	add_limit(f, "limits.memory_bytes", "limits.memory_source", &limits.memory);
	add_number(f, "limits.machine_cpus", limits.machine_cpus);
	add_number(f, "limits.machine_memory_bytes", limits.machine_memory);
	engine_set_limits(r->engine, limits.cpus.known ? limits.cpus.value : 0,
		limits.memory.known ? limits.memory.value : 0);
}

/* What the limits of a group are read from. For users and for the system that is no process: it is the
 * machine, and the control group of the user's sessions. False: its first process has not come yet. */
static bool find_subject(
	struct recording *r, unsigned group, struct limits_subject *ret, char *path, size_t path_size)
{
	const struct scope *scope = &r->scopes.scope[r->scopes.group[group].scope];

	*ret = (struct limits_subject){.level = LIMITS_GROUP};
	switch (scope->kind) {
	case SCOPE_SYSTEM:
		return true;
	case SCOPE_USER:
		snprintf(path, path_size, "/user.slice/user-%u.slice", scope->uid);
		ret->group = path;
		return true;
	case SCOPE_CGROUP:
	case SCOPE_CONTAINER:
		ret->group = scope->path;
		return true;
	case SCOPE_COMMAND:
		ret->level = LIMITS_PROCESS; /* ours: it inherits them */
		return true;
	default:
		ret->level = LIMITS_PROCESS;
		ret->pid = scope->kind == SCOPE_PID && engine_is_member(r->engine, scope->pid)
			? scope->pid
			: engine_group_root(r->engine, group);
	}
	/* A step and a rank: what their first process may use. */
	if (r->scopes.group[group].part)
		return ret->pid > 0;
	/* The recorder of a node runs in the job, before its first process does. What is left of our own
	 * allocation, as a step of the job, is not the job's. */
	if (scope->job && r->node)
		ret->level = LIMITS_JOB;
	if (scope->job && (ret->pid || r->node) && job_cgroup(scope->job, ret->pid, path, path_size)) {
		ret->level = LIMITS_JOB;
		ret->group = path;
	}
	return ret->pid > 0 || r->node;
}

/* Name, CPUs, their source, bytes, their source, separated by NUL. */
static void add_limits_of_group(
	struct recorder_facts *f, unsigned group, const char *name, const struct limits *l)
{
	char key[32], cpus[64], memory[64];
	const char *part[] = {name, limit_text(&l->cpus, cpus), l->cpus.source,
		limit_text(&l->memory, memory), l->memory.source};
	const char *from = f->text + f->used, *k;
	size_t end;

	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		if (!keep(f, part[i]))
			return;
	end = f->used - 1;
	snprintf(key, sizeof(key), "limits.group.%u", group);
	k = keep(f, key);
	if (k)
		pairs_add(&f->pairs, k, from, end - (size_t)(from - f->text));
}

static void describe_limits_of_group(struct recording *r, unsigned group, struct recorder_facts *f)
{
	struct limits_override override = limits_given(r->opt);
	struct limits_subject subject;
	struct limits limits;
	char path[1024];
	enum scope_kind kind = r->scopes.scope[r->scopes.group[group].scope].kind;
	bool is_job =
		kind != SCOPE_SYSTEM && kind != SCOPE_USER; /* --max-cpus and --max-memory apply to it */

	if (!find_subject(r, group, &subject, path, sizeof(path)))
		return;
	/* A process that has just ended: another of its tool may come. */
	if (limits_read_of(r->env, &subject, is_job ? &override : NULL, &limits) < 0)
		return;
	add_limits_of_group(f, group, r->scopes.group[group].name, &limits);
	r->limits_written |= UINT64_C(1) << group;
}

static void describe_job(struct recording *r, struct recorder_facts *f)
{
	struct job_name here;
	const struct job_name *name = NULL;
	const char *found_by = "environment";
	char nodes[4096];

	for (unsigned i = 0; i < r->scopes.nr; i++)
		if (r->scopes.scope[i].job) {
			name = job_name(r->scopes.scope[i].job);
			found_by = r->scopes.scope[i].found_by;
		}
	if (!name && job_here(r->env, &here))
		name = &here;
	if (!name)
		return;
	/* Found by its launcher, a job need not have a scheduler. */
	if (scheduler_name(name->kind)) {
		add_fact(f, "scheduler.kind", scheduler_name(name->kind));
		add_fact(f, "scheduler.job_id", name->id);
		job_nodes(r->env, name->kind, nodes, sizeof(nodes));
		if (*nodes)
			add_fact(f, "scheduler.nodes", nodes);
	}
	if (found_by)
		add_fact(f, "scheduler.found_by", found_by);
}

static void describe_groups(struct recording *r, struct pairs *p, char *names, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < r->scopes.nr_groups; i++) {
		size_t n = strlen(r->scopes.group[i].name) + 1;

		if (at + n > size)
			break;
		memcpy(names + at, r->scopes.group[i].name, n);
		at += n;
	}
	if (at)
		pairs_add(p, "groups", names, at - 1);
}

static void facts_init(struct recorder_facts *f)
{
	f->used = 0;
	pairs_init(&f->pairs, f->memory, ARRAY_SIZE(f->memory), f->numbers, sizeof(f->numbers));
}

void record_describe_groups(struct recording *r)
{
	static struct recorder_facts f;
	unsigned nr = r->scopes.nr_groups;

	if (!nr || r->over || r->limits_written == UINT64_MAX >> (64 - nr))
		return;
	for (unsigned i = 0; i < nr; i++) {
		if (r->limits_written >> i & 1)
			continue;
		facts_init(&f);
		describe_limits_of_group(r, i, &f);
		if (r->limits_written >> i & 1)
			store_meta(r->sink.store, &f.pairs);
	}
}

void record_describe_machine(struct recording *r)
{
	static struct recorder_facts f;

	facts_init(&f);
	hardware_describe(r->env, add_fact, &f);
	if (r->group && r->share_error == 0)
		add_fact(&f, "cpu_group", cgroup_kind(r->group));
	store_meta(r->sink.store, &f.pairs);
	record_log_meta(r, &f.pairs);
}

void record_settle(struct recording *r)
{
	struct pair memory[1];
	char names[1024], numbers[8];
	const char *name;
	struct pairs p;
	size_t used = 0;
	int e;

	if (engine_is_whole(r->engine))
		return;
	for (size_t i = 0; (name = engine_unread(r->engine, i)); i++) {
		size_t n = strlen(name) + 1;

		if (used + n > sizeof(names))
			break;
		memcpy(names + used, name, n);
		used += n;
	}
	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	if (used)
		pairs_add(&p, "unread", names, used - 1);
	store_note(r->sink.store, &p);
	e = store_schema(r->sink.store, engine_schema(r->engine));
	if (e < 0 && !r->sink.error)
		r->sink.error = e;
}

/* Written after the first tick: a write may wait for a slow disk. */
static struct recorder_facts limits_facts;

void record_read_limits(struct recording *r)
{
	facts_init(&limits_facts);
	describe_limits(r, &limits_facts);
	describe_job(r, &limits_facts);
}

void record_describe(struct recording *r)
{
	char names[SCOPE_GROUPS_MAX * 128];

	describe_groups(r, &limits_facts.pairs, names, sizeof(names));
	environment_describe(r->env, add_fact, &limits_facts);
	add_fact(&limits_facts, "helpers", engine_helpers(r->engine));
	add_fact(&limits_facts, "priority", r->priority.text);
	if (r->command.pid)
		add_number(&limits_facts, "pid", r->command.pid);
	record_log_meta(r, &limits_facts.pairs);
	if (engine_is_whole(r->engine))
		store_meta(r->sink.store, &limits_facts.pairs);
	else
		store_note(r->sink.store, &limits_facts.pairs);
	store_wishes(r->sink.store, r->engine);
}
