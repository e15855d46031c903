/* One recording, from its file's creation to its end: see record.h. */
#include "cmd/record.h"

#include "base/redact.h"
#include "base/resident.h"
#include "base/rights.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/style.h"
#include "perf/event.h"
#include "query/meta.h"
#include "query/run.h"
#include "analysis/top_finding.h"
#include "text/summary.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* Kept descriptors, at most: each costs the kernel some 6 KiB. Beyond it files are opened for each reading.
 */
#define MAX_FILES 8192
/* While there is no process to record, one is searched for this often: a read of /proc/loadavg. */
#define SEEK_NS (100 * NSEC_PER_MSEC)
/* Processes that are followed at once, where there is room for their rows: this much for each. */
#define MEMBERS_MAX 65536
#define MEMBERS_MIN 256
#define MEMBER_BYTES 1200
/* A job that ends earlier does not need the node's sources and the facts about the machine: they are opened
 * and read when it has run for this long. */
#define REST_NS (50 * NSEC_PER_MSEC)

int make_parents(const char *path)
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

static int add_event(void *arg, const char *text, size_t len)
{
	struct recording *r = arg;

	return texts_take(&r->events, &r->nr_events, strndup(text, len));
}

static void split_events(struct recording *r)
{
	for (unsigned i = 0; i < r->opt->events.nr; i++)
		if (perf_events_split(r->opt->events.item[i], add_event, r) < 0)
			record_fail(r, -ENOMEM, "cannot keep the events");
}

/* Address space that our limits leave; UINT64_MAX: any. */
static uint64_t room_left(struct recording *r)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}, data = all;
	unsigned long long pages = 0, data_pages = 0;
	uint64_t room = UINT64_MAX;
	char text[128];

	getrlimit(RLIMIT_AS, &all);
	getrlimit(RLIMIT_DATA, &data);
	if (all.rlim_cur == RLIM_INFINITY && data.rlim_cur == RLIM_INFINITY)
		return room;
	if (env_peek(r->env, "proc/self/statm", text, sizeof(text)) > 0)
		sscanf(text, "%llu %*u %*u %*u %*u %llu", &pages, &data_pages);
	if (all.rlim_cur != RLIM_INFINITY)
		room = all.rlim_cur - MIN(all.rlim_cur, pages * r->env->page_size);
	if (data.rlim_cur != RLIM_INFINITY)
		room = MIN(room, data.rlim_cur - MIN(data.rlim_cur, data_pages * r->env->page_size));
	return room;
}

/* As many as a quarter of the room holds: the store and the other sources need theirs. */
static uint32_t members_that_fit(struct recording *r)
{
	uint64_t fit = room_left(r) / 4 / MEMBER_BYTES;

	return (uint32_t)MIN(MAX(fit, (uint64_t)MEMBERS_MIN), (uint64_t)MEMBERS_MAX);
}

static void make_engine(struct recording *r)
{
	struct engine_options o = {
		.interval_ns = r->opt->interval_ns,
		.interval_is_order = r->opt->interval_ns != NSEC_PER_SEC,
		.flush_ns = r->opt->flush_ns,
		.budget = r->opt->budget_percent / 100,
		.children = r->opt->children,
		.attach = r->attach,
		.rest_ns = r->attach || r->scopes.nr ? 0 : REST_NS,
		.max_members = members_that_fit(r),
		.metrics = r->opt->metrics.item,
		.nr_metrics = r->opt->metrics.nr,
		.redact = r->redact,
		.scopes = r->scopes.nr ? &r->scopes : NULL,
	};
	struct rlimit files = {0};
	char err[512];
	int e;

	split_events(r);
	o.events = (const char *const *)r->events;
	o.nr_events = r->nr_events;
	getrlimit(RLIMIT_NOFILE, &files);
	o.max_files = (unsigned)MIN(files.rlim_max, (rlim_t)MAX_FILES);
	o.help = r->help;
	/* What is left may also be known to the kernel alone (vm.overcommit_memory). */
	e = engine_new(r->env, &o, &r->engine, err, sizeof(err));
	while (e == -ENOMEM && o.max_members > MEMBERS_MIN) {
		o.max_members = MAX(o.max_members / 8, (uint32_t)MEMBERS_MIN);
		e = engine_new(r->env, &o, &r->engine, err, sizeof(err));
	}
	if (e == -EINVAL || e == -E2BIG)
		die(EXIT_OWN, "%s", err); /* the user asked for something that does not exist */
	if (e < 0)
		record_fail(r, e, "cannot reserve memory");
}

static void make_file(struct recording *r, const char *command, pid_t pid)
{
	struct output_names names = {
		.name = r->opt->name,
		.command = command,
		.pid = pid,
		.wall_ns = env_now(r->env, ENV_REALTIME),
	};
	/* By enum output_kind: with --force, and without. */
	static const enum store_naming force[] = {STORE_REPLACE, STORE_REPLACE, 0};
	static const enum store_naming naming[] = {STORE_NEW, STORE_NUMBER, STORE_NUMBER};
	struct buf err;
	int e, kind;

	buf_init(&err, 4096);
	buf_init(&r->path, 8192);
	e = kind = output_path(r->opt->output, &names, &r->path, &err);
	if (e >= 0)
		e = make_parents((char *)r->path.data);
	if (r->opt->force)
		record_watch_avoid(r, (char *)r->path.data, "recording"); /* before it is replaced */
	if (e == 0)
		e = store_create((char *)r->path.data, naming[kind] | (r->opt->force ? force[kind] : 0),
			&r->sink.store);
	if (e == -EEXIST && kind == OUTPUT_LITERAL && !r->opt->force && output_add_rank(&r->path))
		e = store_create((char *)r->path.data, STORE_NUMBER, &r->sink.store);
	if (e < 0)
		r->group = cgroup_remove(r->group); /* no process will enter it */
	if (err.len)
		die(EXIT_OWN, "%s", (char *)err.data);
	if (e == -EEXIST && kind == OUTPUT_LITERAL)
		die(EXIT_OWN, "%s %s", (char *)r->path.data,
			r->opt->force ? "is not a regular file and is not replaced: choose another with "
					"--output"
				      : "exists already: choose another with --output, or --force to "
					"overwrite it");
	if (e < 0)
		return record_fail(r, e, "cannot make the recording %s", (char *)r->path.data);
	buf_release(&err);
	buf_reset(&r->path);
	buf_adds(&r->path, store_path(r->sink.store)); /* it may have got a number */
	record_watch_avoid(r, (char *)r->path.data, "recording");
}

/* A recording can have any name. One that ends like an export was probably meant to be one. */
static void ask_for_export(const char *path)
{
	static const char *const ending[] = {".json", ".jsonl", ".csv", ".parquet", ".arrow", ".feather",
		".orc", ".h5", ".hdf5", ".sqlite", ".xlsx", ".pickle"},
				 *const page[] = {".html", ".pdf", ".md"};
	const char *dot = path ? strrchr(path, '.') : NULL;

	for (size_t i = 0; dot && i < ARRAY_SIZE(ending); i++)
		if (!strcmp(dot, ending[i]))
			warning("%s will be a recording, not %s; was an export meant? Record into "
				"%.*s" RECORDING_SUFFIX ", then: tacho export -o %s %.*s" RECORDING_SUFFIX,
				path, dot + 1, (int)(dot - path), path, path, (int)(dot - path), path);
	for (size_t i = 0; dot && i < ARRAY_SIZE(page); i++)
		if (!strcmp(dot, page[i]))
			warning("%s will be a recording, not %s; was a report meant? Record into "
				"%.*s" RECORDING_SUFFIX ", then: tacho report -o %s %.*s" RECORDING_SUFFIX,
				path, dot + 1, (int)(dot - path), path, path, (int)(dot - path), path);
}

void record_prepare(struct recording *r, const struct cmd *cmd, const struct record_options *opt, bool attach,
	int argc, char **argv)
{
	struct buf err;

	r->opt = opt;
	r->cmd = cmd;
	r->attach = attach;
	r->end_ns = INT64_MAX;
	r->socket.fd = -1;
	r->argc = attach ? 0 : argc;
	r->argv = r->targets = argv;
	r->nr_targets = argc;
	buf_init(&err, 4096);
	if (record_options_check(opt, &err) < 0)
		die(EXIT_OWN, "%s", (char *)err.data);
	if (!opt->quiet)
		ask_for_export(opt->output);
	record_helpers(opt->helpers, &r->help, &err); /* checked just now */
	if (record_redact(opt, &r->redact, &err) < 0)
		die(EXIT_OWN, "%s", err.len ? (char *)err.data : "no memory");
	buf_release(&err);
	r->env = env_live(NULL);
	if (!r->env)
		record_fail(r, -errno, "cannot open /");
	record_watch_open(r);
	scopes_init(&r->scopes, r->env);
	r->scopes.redact = r->redact;
}

static void record_create(void *arg)
{
	struct recording *r = arg;
	int e;

	r->sink.create = NULL;
	make_file(r, r->argc ? r->argv[0] : NULL, 0);
	if (r->over)
		return;
	record_log_open(r);
	e = engine_is_whole(r->engine) ? store_schema(r->sink.store, engine_schema(r->engine))
				       : store_sets(r->sink.store, engine_schema(r->engine));
	if (e == 0)
		e = record_begin(r, r->attach ? r->nr_targets : r->argc, r->attach ? r->targets : r->argv);
	if (e < 0)
		return record_fail(
			r, e, "cannot write the beginning of the recording %s", (char *)r->path.data);
	r->sink.tally = tally_new(engine_schema(r->engine), engine_max_members(r->engine), r->attach);
}

/* An attached recorder opens everything at once, and code that one step needed the next does not need. A job
 * of our own does not wait for this: it is done when the job has run for REST_NS. */
static void give_back(const struct recording *r)
{
	if (r->attach)
		resident_give_back();
}

void record_open(struct recording *r)
{
	struct sink to_store = record_log_sink(r, sink_to_store(&r->sink));
	int e;

	r->sink.create = record_create;
	r->sink.arg = r;
	r->others_hidden = scopes_hide(&r->scopes);
	e = command_prepare(&r->command);
	if (e < 0)
		record_fail(r, e, "cannot receive signals");
	make_engine(r);
	give_back(r);
	e = engine_open(r->engine, &to_store);
	if (e < 0)
		record_fail(r, e, "cannot reserve memory");
}

void record_start(struct recording *r)
{
	if (r->sink.create)
		record_create(r);
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

static bool asks_to_end(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

/* Also those that end a program by default: the recording is finished properly. */
static bool ends_attachment(int sig)
{
	static const int others[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO, SIGPWR, SIGSTKFLT};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (sig == others[i])
			return true;
	return asks_to_end(sig) || sig > SIGSYS;
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
	engine_leave_out(r->engine, r->command.witness.pid); /* it may be another one now */
	if (r->over || !asks_to_end(sig))
		return;
	engine_event(r->engine, "signal", "name", sigabbrev_np(sig));
	engine_flush(r->engine); /* the next signal may be SIGKILL */
}

/* The command may be stopped while we are not, as by `kill -STOP`. */
static void watch_stops(struct recording *r)
{
	switch (command_stop_with_job(&r->command, before_stop, r)) {
	case STOP_WITH_IT:
		after_stop(r);
		break;
	case STOP_ALONE:
		if (!r->stopped_alone)
			before_stop(r);
		r->stopped_alone = true;
		break;
	case STOP_CONTINUED:
		if (r->stopped_alone && !r->over)
			engine_event(r->engine, "continued", NULL, NULL);
		r->stopped_alone = false;
		break;
	case STOP_NONE:
		break;
	}
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
	watch_stops(r);
}

bool says_finished(const char *path)
{
	static const char finished[] = "FINISHED";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[sizeof(finished) - 1];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n == (ssize_t)sizeof(text) && !memcmp(text, finished, sizeof(text));
}

/* Checked at most once a second: the file may be on a slow server. */
static bool file_says_finished(struct recording *r)
{
	int64_t now = env_now(r->env, ENV_MONOTONIC);

	if (!r->until_file || now < r->until_check_ns)
		return false;
	r->until_check_ns = now + NSEC_PER_SEC;
	return says_finished(r->until_file);
}

static bool waits_for_us(void *arg, pid_t pid)
{
	struct recording *r = arg;

	return scopes_wait_for_us(&r->scopes, pid);
}

/* What is left of the batch job waits for us: seen after two samples, since its script may be about to start
 * something. */
static bool job_only_waits(struct recording *r)
{
	if (r->waits_seen == engine_taken(r->engine))
		return false;
	r->waits_seen = engine_taken(r->engine);
	r->waits = engine_every(r->engine, waits_for_us, r) ? r->waits + 1 : 0;
	return r->waits > 1;
}

/* Of the processes that were named none is left. */
static bool roots_ended(const struct recording *r)
{
	for (unsigned i = 0; i < r->scopes.nr && r->unwatched; i++)
		if (r->scopes.scope[i].kind == SCOPE_PID &&
			(kill(r->scopes.scope[i].pid, 0) == 0 || errno != ESRCH))
			return false;
	return !r->nr_pidfds;
}

static const char *ended(struct recording *r)
{
	int status;

	if (env_now(r->env, ENV_MONOTONIC) >= r->end_ns)
		return "duration";
	if (r->told_to_end)
		return "signal";
	if (file_says_finished(r))
		return "until-file";
	if (r->node) /* there may be nothing to record yet, or between two steps */
		return job_node_ended(r, engine_is_running(r->engine) && job_only_waits(r));
	if (r->until_exit && roots_ended(r))
		return "attach-end";
	if (r->attach && !scopes_end(&r->scopes))
		return NULL;
	if (r->attach)
		return !engine_is_running(r->engine) || job_only_waits(r) ? "attach-end" : NULL;
	if (!engine_root_ended(r->engine, &status))
		return NULL;
	/* Processes of other targets may run longer than the command: they are not waited for. */
	return !r->wait_for_tree || !engine_group_live(r->engine, 0) ? "exit" : NULL;
}

int record_attach(struct recording *r, pid_t pid, int group)
{
	int fd, e = engine_add_root(r->engine, pid, false, UINT64_C(1) << group);

	fd = e < 0 || r->nr_pidfds == ARRAY_SIZE(r->pidfd) ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	r->unwatched |= fd < 0;
	if (fd >= 0)
		r->pidfd[r->nr_pidfds++] = fd;
	return e;
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
	int64_t now = env_now(r->env, ENV_MONOTONIC);
	bool deaf = r->over || now < r->deaf_ns;
	int64_t left = MAX((deaf && !r->over ? MIN(until, r->deaf_ns) : until) - now, 0);
	struct timespec ts = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};
	enum { SIGNALS, SOCKET, NODE, ROOTS };
	struct pollfd fd[ROOTS + ARRAY_SIZE(r->pidfd)] = {
		[SIGNALS] = {.fd = r->command.signal_fd, .events = POLLIN},
		[SOCKET] = {.fd = deaf ? -1 : r->socket.fd, .events = POLLIN},
		[NODE] = {.fd = job_node_fd(r), .events = POLLIN}};

	for (unsigned i = 0; i < r->nr_pidfds; i++)
		fd[ROOTS + i] = (struct pollfd){.fd = r->pidfd[i], .events = POLLIN};
	if (ppoll(fd, ROOTS + r->nr_pidfds, &ts, NULL) <= 0)
		return;
	if (fd[NODE].revents)
		job_node_hear(r); /* first: it may ask for the time */
	if (fd[SOCKET].revents)
		record_hear(r); /* before a signal that tells of the sender's end */
	if (fd[SIGNALS].revents)
		on_signals(r);
	for (unsigned i = r->nr_pidfds; i-- > 0;)
		if (fd[ROOTS + i].revents)
			on_root_end(r, i);
}

bool record_wait_for_members(struct recording *r, int64_t until)
{
	while (!engine_live(r->engine) && r->sink.create) {
		int64_t now = env_now(r->env, ENV_MONOTONIC);

		if (r->told_to_end || now >= until || file_says_finished(r))
			return false;
		wait_until(r, MIN(now + SEEK_NS, until));
		engine_seek(r->engine);
	}
	return true;
}

/* The last sample, the end mark, the summary for people. */
static void record_end(struct recording *r, const char *how)
{
	struct engine_counts counts;
	struct pair memory[32];
	char numbers[512];
	const char *told;
	uint64_t left_out;
	struct pairs p;
	int status, e;

	engine_over(r->engine); /* what we read of the job's messages and logs from now on is not its time */
	if (engine_root_ended(r->engine, &status))
		command_ended(&r->command);
	record_listen_end(r);
	engine_final_tick(r->engine);
	priority_lower();
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
	if (r->others_hidden)
		pairs_num(&p, "others_hidden", 1);
	pairs_num(&p, "redacted_lines",
		(int64_t)MAX(redact_lines(r->redact) - r->command_blanked, (uint64_t)r->command_blanked));
	if (counts.unasked)
		pairs_num(&p, "unasked", (int64_t)counts.unasked);
	pairs_num(&p, "self_cpu_ns", counts.self_cpu_ns);
	pairs_num(&p, "self_peak_rss_kib", counts.self_peak_rss_kib);
	pairs_num(&p, "unfinished", engine_runs(r->engine));
	told = engine_told(r->engine, &left_out);
	if (told)
		pairs_str(&p, "told", told);
	/* Beside other targets, and without its children, readers compute the job's part. */
	tally_describe(r->sink.tally,
		!r->attach && !r->scopes.nr && r->opt->children && !engine_live(r->engine), counts.seen, &p);
	r->sink.tally = tally_free(r->sink.tally);
	record_settle(r);
	if (r->sink.error)
		pairs_str(&p, "write_error", strerrorname_np(-r->sink.error));
	record_push(r); /* if the job was too short for it before */
	record_serve(r);
	e = store_finish(r->sink.store, &p);
	if (e == 0 && pairs_find(&p, "gap_ticks"))
		e = r->sink.flush_error;
	if (e < 0 && !r->sink.error)
		r->sink.error = e;
	r->sink.store = NULL;
	r->over = true;
	engine_end_threads(r->engine);
	r->command.witness.tidy = NULL;
	r->group = cgroup_remove(r->group);
	engine_use_cgroup(r->engine, NULL);
	record_log_end(r, &p);
}

/* Not done for a job of milliseconds. A recorder with a real-time priority does not need it. The node's
 * sources are open by now, so they read the levels of control groups without ours. */
static void share_cpus(struct recording *r)
{
	r->share_error = -ENOENT;
	if (r->group && r->priority.kind != PRIORITY_REALTIME)
		r->share_error = cgroup_share(r->group, r->command.witness.pid, "cpu");
	if (!r->group || cgroup_untidy(r->group) < 0)
		return;
	witness_entrust(&r->command.witness, cgroup_tidy, r->group, cgroup_untidy(r->group));
	engine_leave_out(r->engine, r->command.witness.pid);
}

static void record_until_the_end(struct recording *r)
{
	const char *how = NULL;
	bool described = false;

	r->recorded = true;
	record_push_check(r);
	priority_raise(&r->priority);
	give_back(r);
	if (r->attach)
		record_read_limits(r);
	engine_tick(r->engine);
	record_describe(r);
	job_node_began(r);
	if (r->began)
		r->began(r);
	if (!engine_is_whole(r->engine))
		store_prepare(r->sink.store, engine_schema(r->engine));
	while (!how) {
		if (!described && engine_is_whole(r->engine)) {
			share_cpus(r);
			record_describe_machine(r);
			record_log_described(r);
			described = true;
			record_push(r);
			record_serve(r);
			resident_give_back();
		}
		record_describe_groups(r);
		engine_count_bytes(r->engine, store_bytes(r->sink.store));
		store_wall(r->sink.store, engine_elapsed(r->engine), env_now(r->env, ENV_REALTIME));
		wait_until(r, job_node_wait(r, MIN(engine_next(r->engine), r->end_ns)));
		how = ended(r);
		if (how)
			break;
		record_watch(r);
		priority_keep(engine_own_cpu(r->engine));
		engine_due(r->engine);
	}
	record_end(r, how);
}

void record_loop(struct recording *r)
{
	int status;

	if (!r->over)
		record_until_the_end(r);
	/* After --duration, or when it cannot be recorded, the job goes on, and we stay its parent. */
	while (!r->attach && !engine_root_ended(r->engine, &status))
		wait_until(r, INT64_MAX / 2);
}

void record_discard(struct recording *r)
{
	job_socket_close(&r->socket);
	record_log_discard(r);
	if (r->sink.store)
		unlink((char *)r->path.data);
	r->sink.create = NULL;
	r->sink.store = store_abandon(r->sink.store);
	r->sink.tally = tally_free(r->sink.tally);
	r->group = cgroup_remove(r->group);
}

static void report_not_written(const char *path, const char *error)
{
	const struct write_error *e = write_error_of(error);

	warning("the recording %s is incomplete: %s%s%s%s; what was written can be read; to avoid it, %s",
		path, e->what, *e->name ? "" : " (", *e->name ? "" : error, *e->name ? "" : ")", e->remedy);
}

/* Programs get the numbers; people also what stands out in them. */
static int read_summary(const struct recording *r, const struct run *run, struct summary **ret,
	char **ret_finding, struct buf *reterr)
{
	if (r->opt->json || !r->opt->summary)
		return summary_read(run, ret, reterr);
	return summary_read_with_finding(run, ret, ret_finding, reterr);
}

void record_report(struct recording *r)
{
	const char *path = (char *)r->path.data;
	struct summary *summary = NULL;
	struct summary_style style;
	struct run *run = NULL;
	char *finding = NULL;
	struct buf out;

	if (!r->recorded)
		return;
	if (r->sink.error)
		report_not_written(path, strerrorname_np(-r->sink.error));
	if (r->opt->quiet || !(r->opt->summary || r->opt->verbose))
		return;
	rights_drop(); /* from here on we only read a file of the user */
	style = style_for(STDERR_FILENO);
	style.hint = true;
	buf_init(&out, 1 << 20);
	progress_show();
	if (run_open(&path, 1, &run, &out) < 0 || read_summary(r, run, &summary, &finding, &out) < 0) {
		warning("cannot read the recording back: %s", (char *)out.data);
	} else {
		if (r->opt->verbose && !r->opt->json)
			record_verbose(path, MAX(style.width, 60), &out);
		style.finding = finding;
		if (r->opt->json && r->opt->summary)
			summary_json(summary, &out);
		else if (r->opt->summary)
			summary_print(summary, &style, &out);
		progress_clear();
		fwrite(out.data, 1, out.len, stderr);
		record_push_report(r);
	}
	summary_free(summary);
	free(finding);
	run_close(run);
	buf_release(&out);
}
