#include "cmd/record.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/style.h"
#include "query/run.h"
#include "report/summary.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

static int make_parents(const char *path)
{
	_cleanup_(freep) char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *p = copy + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

/* The words of the option and what the engine takes are the same bits. */
_Static_assert((int)HELPER_CONNECTOR == (int)HELP_CONNECTOR && (int)HELPER_TASKSTATS == (int)HELP_TASKSTATS &&
		(int)HELPER_CGROUP == (int)HELP_CGROUP,
	"one mask");

static void make_engine(struct recording *r)
{
	struct engine_options o = {
		.interval_ns = r->opt->interval_ns,
		.interval_is_order = r->opt->interval_ns != NSEC_PER_SEC,
		.flush_ns = r->opt->flush_ns,
		.budget = r->opt->budget_percent / 100,
		.children = r->opt->children,
		.attach = r->attach,
		.max_members = 65536,
		.metrics = r->opt->metrics.item,
		.nr_metrics = r->opt->metrics.nr,
	};
	struct rlimit files;
	char err[512];

	getrlimit(RLIMIT_NOFILE, &files);
	o.max_files = (unsigned)MIN(files.rlim_max, (rlim_t)1 << 20);
	o.help = r->help;
	if (engine_new(r->env, &o, &r->engine, err, sizeof(err)) < 0)
		die(EXIT_OWN, "%s", err);
}

static void make_file(struct recording *r, const char *command, pid_t pid)
{
	struct output_names names = {
		.name = r->opt->name,
		.command = command,
		.pid = pid,
		.wall_ns = env_now(r->env, ENV_REALTIME),
	};
	struct buf err;
	int e;

	buf_init(&err, 4096);
	buf_init(&r->path, 8192);
	if (output_path(r->opt->output, &names, &r->path, &err) < 0)
		die(EXIT_OWN, "%s", (char *)err.data);
	e = make_parents((char *)r->path.data);
	if (e == 0)
		e = store_create((char *)r->path.data, r->opt->force, &r->sink.store);
	if (e == -EEXIST)
		die(EXIT_OWN, "%s exists already: choose another with --output, or --force to overwrite it",
			(char *)r->path.data);
	if (e < 0)
		die(EXIT_OWN, "cannot make the recording %s: %s; choose another place with --output",
			(char *)r->path.data, strerror(-e));
	buf_release(&err);
}

void record_prepare(struct recording *r, const struct cmd *cmd, const struct record_options *opt, bool attach,
	int argc, char **argv)
{
	struct sink to_store = sink_to_store(&r->sink);
	struct buf err;
	int e;

	(void)argc;
	*r = (struct recording){.opt = opt, .cmd = cmd, .attach = attach, .end_ns = INT64_MAX};
	buf_init(&err, 4096);
	if (record_options_check(opt, &err) < 0)
		die(EXIT_OWN, "%s", (char *)err.data);
	record_helpers(opt->helpers, &r->help, &err); /* checked just now */
	buf_release(&err);
	r->env = env_live(NULL);
	if (!r->env)
		die(EXIT_OWN, "cannot open /: %s", strerror(errno));
	make_engine(r);
	make_file(r, attach ? NULL : argv[0], 0);
	e = command_prepare(&r->command);
	if (e == 0)
		e = store_schema(r->sink.store, engine_schema(r->engine));
	if (e < 0)
		die(EXIT_OWN, "cannot start: %s", strerror(-e));
	e = engine_open(r->engine, &to_store);
	if (e < 0)
		die(EXIT_OWN, "cannot start: %s", strerror(-e));
}

static int64_t memory_bytes(struct env *env)
{
	char text[256];
	int handle = env_open(env, "proc/meminfo");
	ssize_t n = handle < 0 ? -1 : env_read(env, handle, text, sizeof(text) - 1);
	long long kib = 0;

	env_close(env, handle);
	if (n <= 0)
		return 0;
	text[n] = 0;
	return sscanf(text, "MemTotal: %lld", &kib) == 1 ? kib * 1024 : 0;
}

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
	/* Not getpwuid(): behind it may stand a directory server, and the job is waiting. */
	const char *user = env_getenv(r->env, "LOGNAME");

	if (!user)
		user = env_getenv(r->env, "USER");
	pairs_str(p, "host", uts->nodename);
	pairs_str(p, "kernel", uts->release);
	if (user)
		pairs_str(p, "user", user);
	pairs_num(p, "uid", getuid());
	pairs_num(p, "nr_cpus", cpus_allowed());
	pairs_num(p, "mem_total_bytes", memory_bytes(r->env));
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

void record_begin(struct recording *r, int argc, char **argv)
{
	struct pair memory[PAIRS_MAX];
	char numbers[1024], keys[OPT_LIST_MAX][80];
	struct pairs p;
	struct buf command;
	struct utsname uts;

	buf_init(&command, 32768);
	for (int i = 0; i < argc; i++) {
		if (i)
			buf_addch(&command, 0);
		buf_add(&command, argv[i],
			MIN(strlen(argv[i]), command.max - MIN(command.max, command.len + 1)));
	}
	uname(&uts);
	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	meta_machine(r, &p, &uts);
	meta_options(r, &p, keys);
	pairs_add(&p, "command", command.data, command.len);
	engine_zero(r->engine);
	pairs_num(&p, "start_monotonic_ns", env_now(r->env, ENV_MONOTONIC));
	pairs_num(&p, "start_wall_ns", env_now(r->env, ENV_REALTIME));
	pairs_num(&p, "start_boottime_ns", env_now(r->env, ENV_BOOTTIME));
	store_meta(r->sink.store, &p);
	buf_release(&command);
	if (r->opt->duration_ns)
		r->end_ns = env_now(r->env, ENV_MONOTONIC) + r->opt->duration_ns;
}

/* What is known only when the job runs, or when the attached processes were found. */
static void meta_started(struct recording *r)
{
	struct pair memory[4];
	char numbers[32];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_str(&p, "helpers", engine_helpers(r->engine));
	if (r->command.pid)
		pairs_num(&p, "pid", r->command.pid);
	store_meta(r->sink.store, &p);
}

static void before_stop(void *arg)
{
	struct recording *r = arg;

	if (r->over)
		return;
	engine_event(r->engine, "stopped", NULL, NULL);
	engine_flush(r->engine);
}

static void after_stop(struct recording *r)
{
	if (r->over)
		return;
	engine_event(r->engine, "continued", NULL, NULL);
	engine_resumed(r->engine);
}

static bool ends_attachment(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

static void on_signal(struct recording *r, const struct signalfd_siginfo *si)
{
	int sig = (int)si->ssi_signo;

	if (r->attach) {
		r->told_to_end |= ends_attachment(sig);
		if (sig == SIGTSTP) {
			before_stop(r);
			command_stop_by(SIGTSTP);
			after_stop(r);
		}
		return;
	}
	command_forward(&r->command, si, engine_is_member(r->engine, (pid_t)si->ssi_pid));
	if (r->over || !ends_attachment(sig))
		return;
	engine_event(r->engine, "signal", "name", sigabbrev_np(sig));
	engine_flush(r->engine); /* what comes next may be SIGKILL */
}

static void on_signals(struct recording *r)
{
	struct signalfd_siginfo si;
	bool child = false;

	while (command_signal(&r->command, &si)) {
		if (si.ssi_signo == SIGCHLD)
			child = true;
		else
			on_signal(r, &si);
	}
	if (!child)
		return;
	engine_reap(r->engine);
	if (command_stop_with_job(&r->command, before_stop, r))
		after_stop(r);
}

static const char *ended(const struct recording *r)
{
	int status;

	if (env_now(r->env, ENV_MONOTONIC) >= r->end_ns)
		return "duration";
	if (r->told_to_end)
		return "signal";
	if (r->attach)
		return engine_runs(r->engine) ? NULL : "attach-end";
	if (!engine_root_ended(r->engine, &status))
		return NULL;
	return r->opt->wait == WAIT_ROOT || !engine_live(r->engine) ? "exit" : NULL;
}

int record_attach(struct recording *r, pid_t pid)
{
	int fd, e = engine_add_root(r->engine, pid, false);

	if (e < 0 || r->nr_pidfds == ARRAY_SIZE(r->pidfd))
		return e;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0)
		r->pidfd[r->nr_pidfds++] = fd;
	return 0;
}

/* An attached root has ended: what can still be read of it is read now. */
static void on_root_end(struct recording *r, unsigned i)
{
	close(r->pidfd[i]);
	r->pidfd[i] = r->pidfd[--r->nr_pidfds];
	engine_last_tick(r->engine);
}

/* Waits for a signal or the end of an attached root, at most until the instant. */
static void wait_until(struct recording *r, int64_t until)
{
	int64_t left = MAX(until - env_now(r->env, ENV_MONOTONIC), 0);
	struct timespec ts = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};
	struct pollfd fd[1 + ARRAY_SIZE(r->pidfd)] = {{.fd = r->command.signal_fd, .events = POLLIN}};

	for (unsigned i = 0; i < r->nr_pidfds; i++)
		fd[1 + i] = (struct pollfd){.fd = r->pidfd[i], .events = POLLIN};
	if (ppoll(fd, 1 + r->nr_pidfds, &ts, NULL) <= 0)
		return;
	if (fd[0].revents)
		on_signals(r);
	for (unsigned i = r->nr_pidfds; i-- > 0;)
		if (fd[1 + i].revents)
			on_root_end(r, i);
}

void record_loop(struct recording *r)
{
	const char *how = NULL;
	int status;

	engine_tick(r->engine);
	meta_started(r);
	while (!how) {
		engine_count_bytes(r->engine, store_bytes(r->sink.store));
		store_wall(r->sink.store, engine_elapsed(r->engine), env_now(r->env, ENV_REALTIME));
		wait_until(r, MIN(engine_next(r->engine), r->end_ns));
		how = ended(r);
		if (!how)
			engine_due(r->engine);
	}
	record_end(r, how);
	/* After --duration the job goes on, and we stay its parent. */
	while (!r->attach && !engine_root_ended(r->engine, &status))
		wait_until(r, INT64_MAX / 2);
}

void record_end(struct recording *r, const char *how)
{
	struct engine_counts counts;
	struct pair memory[24];
	char numbers[512];
	struct pairs p;
	int status, e;

	engine_last_tick(r->engine);
	engine_counts(r->engine, &counts);
	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_str(&p, "ended", how);
	if (engine_root_ended(r->engine, &status))
		pairs_num(&p, "exit_status", status);
	pairs_num(&p, "end_ns", engine_elapsed(r->engine));
	pairs_num(&p, "ticks", (int64_t)counts.ticks);
	pairs_num(&p, "missed", (int64_t)counts.missed);
	pairs_num(&p, "late", (int64_t)counts.late);
	pairs_num(&p, "skipped", (int64_t)counts.skipped);
	pairs_num(&p, "self_cpu_ns", counts.self_cpu_ns);
	pairs_num(&p, "self_peak_rss_kib", counts.self_peak_rss_kib);
	pairs_num(&p, "unfinished", engine_live(r->engine));
	e = store_finish(r->sink.store, &p);
	if (e < 0 && !r->sink.error)
		r->sink.error = e;
	r->sink.store = NULL;
	r->over = true;
	r->group = cgroup_remove(r->group);
	engine_use_cgroup(r->engine, NULL);
}

void record_discard(struct recording *r)
{
	unlink((char *)r->path.data);
	r->sink.store = store_abandon(r->sink.store);
	r->group = cgroup_remove(r->group);
}

void record_report(struct recording *r)
{
	const char *path = (char *)r->path.data;
	struct summary_style style = style_for(STDERR_FILENO);
	struct summary *summary = NULL;
	struct run *run = NULL;
	struct buf out;

	if (r->sink.error)
		warning("the recording %s is not whole: %s; what was written can be read", path,
			strerror(-r->sink.error));
	if (r->opt->quiet || !r->opt->summary)
		return;
	style.hint = true;
	buf_init(&out, 1 << 20);
	if (run_open(&path, 1, &run, &out) < 0 || summary_read(run, &summary, &out) < 0) {
		warning("cannot read the recording back: %s", (char *)out.data);
	} else {
		if (r->opt->json)
			summary_json(summary, &out);
		else
			summary_print(summary, &style, &out);
		fwrite(out.data, 1, out.len, stderr);
	}
	summary_free(summary);
	run_close(run);
	buf_release(&out);
}
