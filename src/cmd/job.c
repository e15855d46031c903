/* tacho job: all nodes of a reservation, one recorder each, read as one run.
 *
 * This is the launcher's side: it makes the directory, starts the recorders, runs COMMAND or waits until what
 * is left of the job only waits for us, ends the recorders, and makes report and exports of the run. Whatever
 * goes wrong with the monitoring is told in tacho.log, and in one line on standard error; it neither fails
 * nor delays the job. */
#include "cmd/job.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/record.h"
#include "cmd/start.h"
#include "target/command.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* So long COMMAND waits for the first sample of every node, and we for the recorders' ends. */
#define BEGIN_NS (10 * NSEC_PER_SEC)
#define END_NS (15 * NSEC_PER_SEC)
#define SILENT_NS (3 * NSEC_PER_SEC) /* by files an answer takes more than an interval */
/* Questions for the time that follow each other, at the beginning and at the end. */
#define CLOCK_ROUNDS 5
#define CLOCK_WAIT_NS (200 * NSEC_PER_MSEC)
/* Files are looked at so often: those of nodes that have no pipe to us, and .ipc-JOBID. */
#define LOOK_NS (100 * NSEC_PER_MSEC)
#define IPC_NS NSEC_PER_SEC
#define NAMED_MOST 5

#define INTO(member) offsetof(struct job_args, member)

static const struct opt job_opts[] = {
	{'d', "save-dir", "DIR", OPT_TEXT, INTO(save_dir), .preset = ".",
		.help = "where the directory of the run is made; all nodes must see it"},
	{'p', "prefix", "NAME", OPT_TEXT, INTO(prefix), .not_from_env = true,
		.help = "name of the run's directory; default: the id of the job",
		.detail = "The directory has run.json, a recording for each node in nodes/, and tacho.log. "
			  "Where one "
			  "of this name is there already, the new one gets a number: 4711-2."},
	{'l', "launcher", "NAME", OPT_TEXT, INTO(launcher), .preset = "auto",
		.help = "what starts the recorders: srun, oarsh, pbs_tmrsh, ssh, mpirun …",
		.detail = "By default what belongs to the batch system is taken: srun, pbs_tmrsh or pbsdsh, "
			  "oarsh, "
			  "blaunch (LSF), qrsh (SGE); ssh where there is none of them."},
	{0, "hostfile", "FILE", OPT_TEXT, INTO(hostfile), .not_from_env = true,
		.help = "the nodes, a line each; default: those of the job",
		.detail = "What the batch system says is taken otherwise: SLURM_JOB_NODELIST, "
			  "PBS_NODEFILE_LOCAL or "
			  "PBS_NODEFILE, OAR_NODEFILE, LSB_DJOB_HOSTFILE or LSB_HOSTS, PE_HOSTFILE."},
	{'c', "checkpoint", "TIME", OPT_INTERVAL, INTO(checkpoint_ns), .min = 0.001, .max = 86400,
		.also = "check-point",
		.help = "write what was recorded at least this often; the same as --flush"},
	{'r', "report", NULL, OPT_FLAG, INTO(report), .also = "gen-report",
		.help = "at the end, make a report of the run in its directory",
		.detail = "The files of tacho report --all: a PDF, a page, plots/, metrics/, and with "
			  "--verbose "
			  "configs/."},
	{'e', "export", "FORMAT,…", OPT_LIST, INTO(export),
		.help = "at the end, export the run: parquet, csv, hdf5 …",
		.detail = "As tacho export --to does, into exports/ in the directory of the run."},
	{0, "system", "TEXT", OPT_TEXT, INTO(system), .help = "label of the run: which cluster this is"},
	{0, "partition", "TEXT", OPT_TEXT, INTO(partition), .help = "label of the run: which part of it"},
	{0, "env", "TEXT", OPT_TEXT, INTO(software), .help = "label of the run: which software is used"},
	{0, "event", "EVENT,…", OPT_LIST, offsetof(struct job_args, record.events),
		.help = "count events of the processor or the kernel; as in tacho run"},
	{0, "on-node", "DIR", OPT_TEXT, INTO(on_node), .not_from_env = true, .hidden = true,
		.help = "record this node"},
	{0, "node-name", "NAME", OPT_TEXT, INTO(node_name), .not_from_env = true, .hidden = true,
		.help = "its name"},
	{0, "job-id", "ID", OPT_TEXT, INTO(job_id), .not_from_env = true, .hidden = true,
		.help = "of this job"},
	{0, "granted", "NAME=VALUE", OPT_LIST, INTO(granted), .not_from_env = true, .hidden = true,
		.help = "what the job was granted"},
	{0, "by-files", NULL, OPT_FLAG, INTO(by_files), .not_from_env = true, .hidden = true,
		.help = "no pipe to the launcher"},
};

static const char *const left_out[] = {"output", "force", "event", "run-log", "until-file", "watch", "phase",
	"mark", "summary", "json", NULL};

/* ---- what is known at the beginning ---- */

static void name_run(struct job_run *run)
{
	const char *task = env_getenv(run->env, "SLURM_ARRAY_TASK_ID"),
		   *array = env_getenv(run->env, "SLURM_ARRAY_JOB_ID");
	time_t now = time(NULL);
	struct tm tm;

	if (run->args->prefix)
		snprintf(run->id, sizeof(run->id), "%s", run->args->prefix);
	else if (task && array)
		snprintf(run->id, sizeof(run->id), "%s_%s", array, task);
	else if (run->name.id[0])
		snprintf(run->id, sizeof(run->id), "%s", run->name.id);
	else if (localtime_r(&now, &tm))
		strftime(run->id, sizeof(run->id), "run-%Y%m%d-%H%M%S", &tm);
	/* It is one part of a path. */
	for (char *p = run->id; *p; p++)
		if (*p == '/' || (p == run->id && *p == '.'))
			*p = '_';
}

static int find_hosts(struct job_run *run, struct buf *err)
{
	const char *file = run->args->hostfile;
	char own[HOST_NAME_SIZE] = "localhost";
	int r;

	if (file) {
		_cleanup_(freep) char *path = realpath(file, NULL);

		r = path ? job_hosts_in_file(run->env, path, &run->hosts) : -errno;
		if (r < 0)
			buf_addf(err, "the nodes in %s cannot be read: %s", file, strerror(-r));
		else if (!run->hosts.nr)
			buf_addf(err, "there is no node in %s", file);
		return r < 0 ? r : run->hosts.nr ? 0 : -ENOENT;
	}
	r = job_hosts(run->env, run->name.kind, &run->hosts);
	if (r < 0)
		buf_addf(err, "the nodes of the job cannot be told: %s", strerror(-r));
	gethostname(own, sizeof(own) - 1);
	if (r == 0 && !run->hosts.nr)
		r = host_list_add(&run->hosts, own, strlen(own));
	return r;
}

static int make_nodes(struct job_run *run)
{
	run->node = calloc(run->hosts.nr + 1, sizeof(*run->node));
	for (size_t i = 0; run->node && i < run->hosts.nr; i++)
		run->node[i].name = run->hosts.name[i];
	return run->node ? 0 : -ENOMEM;
}

/* 0: recorders may be started. Otherwise the reason is in err. */
static int prepare(struct job_run *run, struct buf *err)
{
	int r = find_hosts(run, err);

	if (r == 0)
		r = job_launcher_choose(run, err);
	if (r < 0)
		return r;
	name_run(run);
	r = job_directory_make(&run->directory, run->args->save_dir, run->id);
	if (r < 0) {
		buf_addf(err, "cannot make the directory of the run in %s: %s; -d chooses another place",
			run->args->save_dir, strerror(-r));
		return r;
	}
	run->start_wall_ns = job_wall();
	r = job_launch_plan(run);
	if (r == 0)
		r = make_nodes(run);
	if (r == 0)
		r = job_json_write(run, false, 0);
	if (r == 0)
		run->lines = open(job_directory_file(&run->directory, JOB_LAUNCHER_LINES),
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (r < 0)
		buf_addf(err, "cannot begin the run in %s: %s", run->directory.path, strerror(-r));
	return r;
}

/* ---- while it runs ---- */

struct job_state {
	struct job_run *run;
	struct command command;
	bool command_ended;
	int told_to_end; /* by this signal; 0: not */
	int status;	 /* of COMMAND, as wait(2) has it */
	char ipc[160];
	int64_t next_ipc_ns, next_shell_ns;
	unsigned shell_waits; /* so many looks in a row */
};

static void reap(struct job_state *s)
{
	int status;

	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		if (pid == s->command.pid) {
			s->command_ended = true;
			s->status = status;
		} else {
			job_launch_ended(s->run, pid, status);
		}
	}
}

static void take_signals(struct job_state *s)
{
	struct signalfd_siginfo si;

	while (command_signal(&s->command, &si)) {
		if (si.ssi_signo == SIGCHLD)
			reap(s);
		else if (s->command.pid && !s->command_ended)
			command_forward(&s->command, &si, false);
		else if (si.ssi_signo == SIGINT || si.ssi_signo == SIGTERM || si.ssi_signo == SIGHUP ||
			si.ssi_signo == SIGQUIT)
			s->told_to_end = (int)si.ssi_signo;
	}
	if (s->command.pid && !s->command_ended)
		command_stop_with_job(&s->command, NULL, NULL);
}

/* The job script may say so: echo FINISHED >.ipc-JOBID */
static bool ipc_says_finished(struct job_state *s)
{
	if (!s->ipc[0] || job_now() < s->next_ipc_ns)
		return false;
	s->next_ipc_ns = job_now() + IPC_NS;
	return says_finished(s->ipc);
}

/* `salloc script`: the script runs on none of the nodes, so that no recorder sees that it waits for us. */
static bool shell_waits(struct job_state *s)
{
	if (!job_launch_is_elsewhere(s->run) || job_now() < s->next_shell_ns)
		return false;
	s->next_shell_ns = job_now() + IPC_NS;
	s->shell_waits = job_shell_waits(s->run->env, getppid()) ? s->shell_waits + 1 : 0;
	return s->shell_waits > 1; /* it may be about to start something */
}

/* Waits until something happens, at most until the instant, and takes it in. */
static void serve(struct job_state *s, int64_t until)
{
	struct job_run *run = s->run;
	struct pollfd *fd = calloc(run->nr_started + 1, sizeof(*fd));
	int64_t now = job_now(), next = MIN(until, MIN(job_nodes_tend(run), now + LOOK_NS * 5));

	if (run->launcher && run->launch[run->nr_launches - 1].files)
		next = MIN(next, now + LOOK_NS);
	if (!fd)
		return;
	fd[0] = (struct pollfd){.fd = s->command.signal_fd, .events = POLLIN};
	for (size_t i = 0; i < run->nr_started; i++)
		fd[i + 1] = (struct pollfd){
			.fd = run->launch[i].line.closed ? -1 : run->launch[i].line.in, .events = POLLIN};
	next = MAX(next - now, 0);
	ppoll(fd, run->nr_started + 1,
		&(struct timespec){.tv_sec = next / NSEC_PER_SEC, .tv_nsec = next % NSEC_PER_SEC}, NULL);
	free(fd);
	job_nodes_hear(run);
	take_signals(s);
	job_launch_more(run);
}

static bool all_began(const struct job_run *run)
{
	return !job_nodes_in(run, NODE_EXPECTED) && !job_nodes_in(run, NODE_HELLO);
}

/* "node3, node17, node20 and 9 more" */
static void name_nodes(const struct job_run *run, bool (*is)(const struct node_of_run *node), struct buf *out)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->hosts.nr; i++)
		if (is(&run->node[i]) && ++nr <= NAMED_MOST)
			buf_addf(out, "%s%s", nr > 1 ? ", " : "", run->node[i].name);
	if (nr > NAMED_MOST)
		buf_addf(out, " and %zu more", nr - NAMED_MOST);
}

static bool not_begun(const struct node_of_run *node)
{
	return node->state == NODE_EXPECTED || node->state == NODE_HELLO || node->state == NODE_LOST;
}

static bool not_ended(const struct node_of_run *node)
{
	return node->state != NODE_ENDED;
}

static void warn_nodes(
	const struct job_run *run, const char *what, bool (*is)(const struct node_of_run *node))
{
	struct buf names;
	size_t nr = 0;

	for (size_t i = 0; i < run->hosts.nr; i++)
		nr += is(&run->node[i]);
	if (!nr)
		return;
	buf_init(&names, 4096);
	name_nodes(run, is, &names);
	job_log((struct job_directory *)&run->directory, "warning", "launcher", "%zu of %zu nodes %s: %s", nr,
		run->hosts.nr, what, (char *)names.data);
	if (!run->args->record.quiet)
		warning("%zu of %zu nodes %s: %s; see %s/tacho.log", nr, run->hosts.nr, what,
			(char *)names.data, run->directory.path);
	buf_release(&names);
}

/* COMMAND waits for the first sample of every node, but not for ever. */
static void begin_nodes(struct job_state *s)
{
	int64_t until = job_now() + BEGIN_NS;

	job_launch_more(s->run);
	job_nodes_ask_clocks(s->run, CLOCK_ROUNDS);
	while (!all_began(s->run) && job_now() < until && !s->told_to_end)
		serve(s, until);
	warn_nodes(s->run, "have not begun to record", not_begun);
	job_nodes_ask_clocks(s->run, CLOCK_ROUNDS);
}

static void begin_command(struct job_state *s)
{
	char *variables[] = {NULL};
	int e;

	if (s->told_to_end) { /* it has not begun, and does not */
		s->command_ended = true;
		s->status = s->told_to_end;
		return;
	}
	setrlimit(RLIMIT_NOFILE,
		&s->command.files); /* as we found it; command_privileges() raises ours again */
	e = command_start(&s->command, s->run->argv, variables, NULL, NULL);

	if (e == 0) {
		command_privileges(&s->command);
		e = command_confirm(&s->command);
	}
	if (e == 0)
		return;
	error("cannot run '%s': %s", s->run->argv[0], strerror(-e));
	s->command.pid = 0;
	s->command_ended = true;
	s->status = (e == -ENOENT ? EXIT_NOTFOUND : EXIT_CANNOT) << 8;
}

static bool is_over(struct job_state *s)
{
	int64_t duration = s->run->args->record.duration_ns;

	if (s->run->argc)
		return s->command_ended;
	return s->told_to_end || s->run->over || ipc_says_finished(s) || shell_waits(s) ||
		!job_launch_running(s->run) ||
		(duration && job_wall() - s->run->start_wall_ns > duration + END_NS);
}

/* A node that is going to end its recording. One that does not answer any more is waited for not so long. */
static bool some_record(const struct job_run *run, int64_t since, bool asked)
{
	bool patient = !asked || job_now() < since + SILENT_NS;

	for (size_t i = 0; i < run->hosts.nr; i++) {
		const struct node_of_run *node = &run->node[i];

		if ((node->state == NODE_RECORDING || node->state == NODE_HELLO) &&
			(patient || node->answered_ns > since))
			return true;
	}
	return false;
}

static void end_nodes(struct job_state *s)
{
	int64_t began = job_now(), until = began + CLOCK_WAIT_NS;
	bool asked = !s->told_to_end; /* a KILL may follow */

	if (asked) {
		job_nodes_ask_clocks(s->run, CLOCK_ROUNDS);
		while (job_now() < until && job_nodes_in(s->run, NODE_RECORDING))
			serve(s, until);
	}
	s->run->ending = true;
	job_nodes_say(s->run, "end");
	job_directory_finish(&s->run->directory);
	until = job_now() + END_NS;
	while (some_record(s->run, began, asked) && job_launch_running(s->run) && job_now() < until)
		serve(s, until);
	for (size_t i = 0; i < s->run->hosts.nr; i++)
		job_node_lost(s->run, i, "its recorder has not said that it ended");
	warn_nodes(s->run, "have no whole recording", not_ended);
}

/* ---- what is made of it ---- */

/* What it prints goes to the log, line by line. */
static int run_logged(struct job_run *run, char *const *argv)
{
	char program[PATH_MAX], *line = NULL;
	int out = -1, status = -1;
	pid_t pid = external_self(program, sizeof(program)) ? job_start_reading(program, argv, &out) : -1;
	FILE *said = pid > 0 ? fdopen(out, "r") : NULL;
	size_t size = 0;

	for (ssize_t n; said && (n = getline(&line, &size, said)) > 0;) {
		line[n - (line[n - 1] == '\n')] = 0;
		job_log(&run->directory, "info", "launcher", "%s", line);
	}
	free(line);
	if (said)
		fclose(said);
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

static void make(struct job_run *run, char *const *argv)
{
	if (run_logged(run, argv) == 0)
		return;
	job_log(&run->directory, "error", "launcher", "tacho %s failed", argv[1]);
	if (!run->args->record.quiet)
		warning("tacho %s of %s failed: see %s/tacho.log", argv[1], run->directory.path,
			run->directory.path);
}

/* Not when the time is over: COMMAND's status must still be passed on. */
static void make_all(struct job_state *s)
{
	struct job_run *run = s->run;
	_cleanup_(freep) char *exports = strdup(job_directory_file(&run->directory, "exports/"));
	char *path = run->directory.path;

	take_signals(s);
	if (run->args->report && !s->told_to_end)
		make(run,
			(char *const[]){"tacho", "report", "--all", "--force", "-o", path,
				run->args->record.verbose ? "--verbose" : path,
				run->args->record.verbose ? path : NULL, NULL});
	take_signals(s);
	for (unsigned i = 0; i < run->args->export.nr && !s->told_to_end; i++)
		make(run,
			(char *const[]){"tacho", "export", "--force", "--to",
				(char *)run->args->export.item[i], "-o", exports, path, NULL});
}

static void record_job(struct job_state *s)
{
	struct job_run *run = s->run;

	snprintf(s->ipc, sizeof(s->ipc), run->name.id[0] ? ".ipc-%s" : "%s", run->name.id);
	raise_files(); /* each launch has two pipes */
	if (run->launcher)
		job_log(&run->directory, "info", "launcher", "%zu nodes, recorders started by %s",
			run->hosts.nr, job_launcher_name_of(run));
	else
		job_log(&run->directory, "info", "launcher", "this node alone");
	begin_nodes(s);
	if (run->argc)
		begin_command(s);
	while (!is_over(s))
		serve(s, INT64_MAX / 2);
	command_ended(&s->command);
	end_nodes(s);
	job_json_write(
		run, true, WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status) : WEXITSTATUS(s->status));
	job_launch_close(run);
	make_all(s);
	if (!run->args->record.quiet && run->argc)
		fprintf(stderr, "tacho: recorded %zu of %zu nodes: tacho show %s\n",
			job_nodes_in(run, NODE_ENDED), run->hosts.nr, run->directory.path);
}

/* ---- the command ---- */

/* `srun -n 4 --ntasks-per-node=1 tacho job &`: the first task starts the recorders of all nodes. A script may
 * have got the variables of a rank from where it was submitted: that it is a task is asked for, too. */
static bool is_another_task(struct env *env)
{
	const char *rank = rank_of_several(), *task = getenv("SLURM_PROCID");

	if (!rank || !strcmp(rank, "0"))
		return false;
	return (task && !strcmp(task, rank) && getenv("SLURM_STEP_NUM_TASKS")) ||
		job_launcher_started_us(env);
}

/* Another one records this job: COMMAND runs as it would without us. */
static bool is_recorded(const struct job_run *run, struct node_lock *lock)
{
	char name[256];

	snprintf(name, sizeof(name), "launcher-%s-%s",
		run->name.id[0] ? scheduler_name(run->name.kind) : "none",
		run->name.id[0] ? run->name.id : "here");
	return run->name.id[0] && node_lock_take(lock, name) == -EBUSY;
}

static int without_recording(struct job_state *s)
{
	int e;

	if (!s->run->argc)
		return EXIT_OK;
	e = command_become(&s->command, s->run->argv);
	cannot_run(s->run->argv[0], e);
}

static int job(const void *args, int argc, char **argv)
{
	static struct job_run run; /* reachable to the end, as in run.c */
	static struct job_state s;
	const struct job_args *a = args;
	struct node_lock lock = {.fd = -1};
	struct buf err;
	int r;

	if (a->on_node)
		return job_node_run(a, argc, argv);
	if (argc && (r = command_find(argv[0])) < 0)
		cannot_run(argv[0], r);
	run = (struct job_run){.args = a, .argc = argc, .argv = argv, .env = env_live(NULL), .lines = -1};
	s.run = &run;
	buf_init(&err, 8192);
	if (record_options_check(&a->record, &err) < 0)
		usage(&cmd_job, "%s", (char *)err.data);
	if (!run.env)
		die(EXIT_OWN, "cannot open /");
	job_here(run.env, &run.name);
	r = command_prepare(&s.command);
	if (r == 0 && is_another_task(run.env)) {
		if (!a->record.quiet)
			warning("task %s starts no recorders: the first task does, on all nodes of the job",
				rank_of_several());
		return without_recording(&s);
	}
	if (r == 0 && is_recorded(&run, &lock)) {
		warning("job %s is being recorded already, by another tacho job", run.name.id);
		return without_recording(&s);
	}
	if (r == 0)
		r = prepare(&run, &err);
	if (r < 0) {
		warning("the job is not recorded: %s", err.len ? (char *)err.data : strerror(-r));
		node_lock_release(&lock);
		return argc ? without_recording(&s) : EXIT_OWN;
	}
	record_job(&s);
	node_lock_release(&lock);
	return argc ? command_exit_as(&s.command, s.status) : EXIT_OK;
}

const struct cmd cmd_job = {
	.name = "job",
	.synopsis = "[OPTION…] [-- COMMAND [ARG…]]",
	.help = "record a job on all its nodes, as one run",
	.detail = "In the script of a batch job: starts one recorder on each node of the job, and makes one "
		  "run of what "
		  "they record, in the directory DIR/JOBID. Nothing is printed on standard output.\n\nWith "
		  "COMMAND, "
		  "the recorders begin first (COMMAND waits at most ten seconds for them), COMMAND runs, and "
		  "they end "
		  "with it. The exit status is COMMAND's.\n\nWithout COMMAND, to be started in the "
		  "background of the "
		  "script, the run ends when what is left of the job only waits for tacho, when the file "
		  ".ipc-JOBID in "
		  "the working directory contains FINISHED, or at a signal.\n\nProblems with the recording "
		  "never fail "
		  "the job: they are told in tacho.log in the directory of the run, and in one line on "
		  "standard error. "
		  "If the job is being recorded already, COMMAND runs without a second "
		  "recording.\n\nAfterwards tacho "
		  "show DIR/JOBID and all commands that read show the nodes as one run.",
	.examples = "$ tacho job -d runs --report -- srun ./simulate\n    All nodes of a SLURM job, with a "
		    "report at "
		    "the end.\n$ tacho job -d runs & srun ./simulate; wait\n    The same beside the job's "
		    "commands.\n$ "
		    "tacho job -d runs --hostfile hosts -- mpirun ./a\n    Without a batch system, by ssh.\n",
	.opt = job_opts,
	.nr_opts = ARRAY_SIZE(job_opts),
	.shared = record_opts,
	.nr_shared = NR_RECORD_OPTS,
	.leave_out = left_out,
	.args_size = sizeof(struct job_args),
	.usage_status = EXIT_OWN,
	.measures = true,
	.stop_at_operand = true,
	.operands = "command",
	.run = job,
};
