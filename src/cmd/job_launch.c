/* How a recorder is started on each node. One way is one row.
 *
 * The recorder of our own node is a child of ours, with no launcher between. What starts the others is in a
 * session of its own: a signal that is sent to the job script's process group, such as Ctrl-C, must not kill
 * it, since srun kills its tasks at once when it is killed. They end when we tell them, or when our end of
 * the pipe is closed, whatever has ended us. */
#include "cmd/job.h"

#include "base/rights.h"
#include "base/sigmask.h"
#include "base/str.h"
#include "cli/words.h"
#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/start.h"
#include "target/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define AT_ONCE 64 /* launches whose nodes have not answered yet */
#define AGAIN_MOST 3
#define ASK_NS (2 * NSEC_PER_SEC)

struct argument_words {
	char **word;
	size_t nr;
	bool failed;
};

struct launcher {
	const char *name; /* of --launcher */
	const char *program;
	enum scheduler kind; /* whose jobs it is chosen for; SCHEDULER_NONE: any */
	bool for_all;	     /* one process starts the recorders of all nodes */
	bool shell;	     /* the command goes through a shell on the node */
	bool by_files;	     /* standard input does not reach the recorder */
	void (*add)(struct argument_words *w, const struct job_run *run, const struct job_launch *launch);
};

/* ---- words ---- */

static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void add(struct argument_words *w, const char *fmt, ...) _printf_(2, 3);

static void add(struct argument_words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	w->failed |= texts_addv(&w->word, &w->nr, fmt, ap) < 0;
	va_end(ap);
}

/* The values of options that come from the environment: it does not reach every node. */
static void add_from_environment(struct argument_words *w)
{
	for (size_t i = 0; i < cmd_nr_opts(&cmd_job); i++) {
		const struct opt *o = cmd_opt(&cmd_job, i);
		char variable[OPT_VARIABLE_SIZE];
		const char *value = o->not_from_env ? NULL : getenv(opt_variable(variable, o));

		if (!value || !*value)
			continue;
		if (o->type == OPT_FLAG)
			add(w, "--%s%s", strchr("nN0fF", *value) ? "no-" : "", o->long_name);
		else
			add(w, "--%s=%s", o->long_name, value);
	}
}

/* Our own options, as they were given: the words before COMMAND and its "--". */
static void add_options(struct argument_words *w, const struct job_run *run)
{
	const struct start_words *given = start_words();
	size_t end = given->nr - (size_t)run->argc;

	if (end > 1 && !strcmp(given->word[end - 1], "--"))
		end--;
	for (size_t i = 1; i < end; i++)
		add(w, "%s", given->word[i]);
}

const char *job_granted_variable(size_t i)
{
	static const char *const name[] = {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU"};

	return i < ARRAY_SIZE(name) ? name[i] : NULL;
}

/* Memory of the job on each node: a step of ours is given what we ask for, and says so. */
static void add_granted(struct argument_words *w, const struct job_run *run)
{
	const char *name, *value;

	for (size_t i = 0; (name = job_granted_variable(i)); i++) {
		value = env_getenv(run->env, name);
		if (value && *value && !value[strspn(value, "0123456789")])
			add(w, "--granted=%s=%s", name, value);
	}
}

static bool is_colons(const char *word)
{
	return *word && !word[strspn(word, ":")];
}

/* A colon that stands alone would begin another program for srun and mpirun, wherever it stands: it gets a
 * second one. */
static void add_word_of_command(struct argument_words *w, const char *word)
{
	add(w, "%s%s", word, is_colons(word) ? ":" : "");
}

char *job_word_of_command(char *word)
{
	return is_colons(word) ? word + 1 : word;
}

static void add_recorder(
	struct argument_words *w, const struct job_run *run, const struct job_launch *launch, bool by_files)
{
	char program[PATH_MAX], command[4096];
	size_t len;

	add(w, "%s", external_self(program, sizeof(program)) ? program : "tacho");
	add(w, "job");
	add_from_environment(w);
	add_options(w, run);
	add(w, "--on-node=%s", run->directory.path);
	if (run->name.id[0])
		add(w, "--job-id=%s:%s", scheduler_name(run->name.kind), run->name.id);
	add_granted(w, run);
	if (by_files)
		add(w, "--by-files");
	if (launch->nr == 1)
		add(w, "--node-name=%s", run->hosts.name[launch->first]);
	add(w, "--");
	/* The recording is called after it: its beginning will do, without what is known to be a secret. */
	len = job_command_words(run, command, sizeof(command));
	for (size_t at = 0; at < len; at += strlen(command + at) + 1)
		add_word_of_command(w, command + at);
}

/* ---- the rows' own words ---- */

static void add_hosts(
	struct argument_words *w, const char *option, const struct job_run *run, const struct job_launch *l)
{
	struct buf list;

	buf_init(&list, HOSTS_MOST * HOST_NAME_SIZE);
	for (size_t i = 0; i < l->nr; i++)
		buf_addf(&list, "%s%s", i ? "," : "", run->hosts.name[l->first + i]);
	w->failed |= list.err != 0;
	add(w, "%s%s", option, list.data ? (char *)list.data : "");
	buf_release(&list);
}

pid_t job_start_reading(const char *program, char *const *argv, int *ret)
{
	int end[2];
	pid_t pid;

	if (pipe2(end, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		unblock_signals();
		dup2(end[1], STDOUT_FILENO);
		dup2(end[1], STDERR_FILENO);
		rights_drop();
		execvpe(program, argv, rights_environment());
		_exit(127);
	}
	close(end[1]);
	if (pid < 0)
		close(end[0]);
	else
		*ret = end[0];
	return pid;
}

/* What the program says to an option, in short; nothing when it takes too long. */
static void ask_program(const char *program, const char *option, char *ret, size_t size)
{
	char *const argv[] = {(char *)program, (char *)option, NULL};
	int64_t until = job_now() + ASK_NS;
	int out = -1;
	pid_t pid = job_start_reading(program, argv, &out);
	size_t n = 0;

	while (pid > 0 && n < size - 1) {
		struct pollfd fd = {.fd = out, .events = POLLIN};
		int64_t left = (until - job_now()) / NSEC_PER_MSEC;
		ssize_t more = left > 0 && poll(&fd, 1, (int)left) > 0 ? read(out, ret + n, size - 1 - n) : 0;

		if (more <= 0)
			break;
		n += (size_t)more;
	}
	ret[n] = 0;
	if (pid < 0)
		return;
	close(out);
	kill(pid, SIGKILL); /* it has said enough */
	waitpid(pid, NULL, 0);
}

/* Before 20.11 steps shared their CPUs anyhow, and srun has no such option. */
static bool srun_overlaps(void)
{
	char version[128];
	unsigned year = 99, month = 99;

	ask_program("srun", "--version", version, sizeof(version));
	if (sscanf(version, "slurm %u.%u", &year, &month) < 2)
		return true;
	return year > 20 || (year == 20 && month >= 11);
}

/* One task on each node, whatever the geometry of the job; add_environment() takes the job's own away. */
static void add_srun(struct argument_words *w, const struct job_run *run, const struct job_launch *launch)
{
	if (srun_overlaps())
		add(w, "--overlap");
	add(w, "--nodes=%zu", launch->nr);
	add(w, "--ntasks=%zu", launch->nr);
	add(w, "--ntasks-per-node=1");
	add(w, "--cpus-per-task=1");
	add(w, "--mem=0");
	add_hosts(w, "--nodelist=", run, launch);
	if (launch->component >= 0)
		add(w, "--het-group=%d", launch->component);
	add(w, "--mpi=none");
	add(w, "--cpu-bind=none");
	add(w, "--input=all");
	add(w, "--output=all");
	add(w, "--error=all");
	add(w, "--kill-on-bad-exit=0");
	add(w, "--wait=0");
	add(w, "--quiet");
	add(w, "--job-name=tacho");
}

static void add_host(struct argument_words *w, const struct job_run *run, const struct job_launch *launch)
{
	add(w, "%s", run->hosts.name[launch->first]);
}

static void add_ssh(struct argument_words *w, const struct job_run *run, const struct job_launch *launch)
{
	add(w, "-o");
	add(w, "BatchMode=yes");
	add(w, "-o");
	add(w, "ConnectTimeout=10");
	add(w, "-T");
	add_host(w, run, launch);
}

static void add_qrsh(struct argument_words *w, const struct job_run *run, const struct job_launch *launch)
{
	add(w, "-inherit");
	add_host(w, run, launch);
}

/* Its tasks are counted through, and the first of each node is the node's number in a list without
 * repetitions only where each node has one: so the place in the file is looked up. */
static size_t first_slot_of(const struct job_run *run, const char *host)
{
	static const char *const variables[] = {"PBS_NODEFILE_LOCAL", "PBS_NODEFILE"};
	char line[HOST_NAME_SIZE + 2];
	FILE *file = NULL;
	size_t slot = 0;

	for (size_t i = 0; i < ARRAY_SIZE(variables) && !file; i++) {
		const char *path = env_getenv(run->env, variables[i]);

		file = path ? fopen(path, "re") : NULL;
	}
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, " \t\r\n")] = 0;
		if (!strcmp(line, host))
			break;
		slot++;
	}
	if (file)
		fclose(file);
	return slot;
}

static void add_pbsdsh(struct argument_words *w, const struct job_run *run, const struct job_launch *launch)
{
	add(w, "-n");
	add(w, "%zu", first_slot_of(run, run->hosts.name[launch->first]));
	add(w, "--");
}

static void add_mpirun(struct argument_words *w, const struct job_run *run, const struct job_launch *launch)
{
	char version[256];

	ask_program("mpirun", "--version", version, sizeof(version));
	if (strstr(version, "Open MPI") || strstr(version, "OpenRTE") || strstr(version, "PRRTE")) {
		add(w, "--map-by");
		add(w, "ppr:1:node");
		add(w, "--bind-to");
		add(w, "none");
		add(w, "--oversubscribe");
		add(w, "-np");
		add(w, "%zu", launch->nr);
		add(w, "--host");
	} else {
		add(w, "-ppn");
		add(w, "1");
		add(w, "-n");
		add(w, "%zu", launch->nr);
		add(w, "-hosts");
	}
	add_hosts(w, "", run, launch);
}

static const struct launcher launchers[] = {
	{"srun", "srun", SCHEDULER_SLURM, .for_all = true, .add = add_srun},
	{"pbs_tmrsh", "pbs_tmrsh", SCHEDULER_PBS, .by_files = true, .add = add_host},
	{"pbsdsh", "pbsdsh", SCHEDULER_PBS, .by_files = true, .add = add_pbsdsh},
	{"oarsh", "oarsh", SCHEDULER_OAR, .shell = true, .add = add_host},
	{"blaunch", "blaunch", SCHEDULER_LSF, .by_files = true, .add = add_host},
	{"qrsh", "qrsh", SCHEDULER_SGE, .by_files = true, .add = add_qrsh},
	{"ssh", "ssh", SCHEDULER_NONE, .shell = true, .add = add_ssh},
	{"mpirun", "mpirun", SCHEDULER_NONE, .for_all = true, .by_files = true, .add = add_mpirun},
};

static bool is_own_node(const struct job_run *run, const char *name)
{
	char own[HOST_NAME_SIZE] = "";
	const char *slurm = env_getenv(run->env, "SLURMD_NODENAME");
	size_t n = strcspn(name, ".");

	gethostname(own, sizeof(own) - 1);
	return (slurm && !strcmp(name, slurm)) || (n == strcspn(own, ".") && !strncmp(name, own, n));
}

static void name_launchers(struct buf *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++)
		buf_addf(err, "%s%s", i ? ", " : "", launchers[i].name);
}

int job_launcher_choose(struct job_run *run, struct buf *err)
{
	const char *wanted = run->args->launcher;
	bool any = !strcmp(wanted, "auto");

	if (run->hosts.nr == 1 && any && is_own_node(run, run->hosts.name[0]))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(launchers) && !run->launcher; i++) {
		const struct launcher *l = &launchers[i];

		if (any ? (!l->kind || l->kind == run->name.kind) && command_find(l->program) == 0
			: !strcmp(l->name, wanted))
			run->launcher = l;
	}
	if (run->launcher)
		return 0;
	if (any) {
		buf_adds(err,
			"no program that starts recorders on the other nodes is in PATH: there is none of ");
	} else {
		buf_adds(err, "there is no launcher '");
		escape_bytes(err, wanted, strlen(wanted));
		buf_adds(err, "'; --launcher takes auto, ");
	}
	name_launchers(err);
	return -EINVAL;
}

const char *job_launcher_name_of(const struct job_run *run)
{
	return run->launcher ? run->launcher->name : "none";
}

/* ---- the plan ---- */

static int plan_files(struct job_run *run, struct job_launch *launch)
{
	int r = 0;

	launch->files = calloc(launch->nr, sizeof(*launch->files));
	for (size_t i = 0; launch->files && i < launch->nr && r == 0; i++) {
		struct job_line *line = &launch->files[i];

		job_line_open(line, -1, -1);
		line->in_path = strdup(job_directory_file(
			&run->directory, "clock/%s.lines", run->hosts.name[launch->first + i]));
		r = line->in_path ? 0 : -ENOMEM;
	}
	return launch->files ? r : -ENOMEM;
}

static int plan_one(struct job_run *run, size_t first, size_t nr, bool local)
{
	struct job_launch *launch = ARRAY_ADD(run->launch, run->nr_launches);

	if (!launch)
		return -ENOMEM;
	*launch = (struct job_launch){.first = first, .nr = nr, .local = local, .component = -1};
	job_line_open(&launch->line, -1, -1);
	return !local && run->launcher->by_files ? plan_files(run, launch) : 0;
}

/* Our own node becomes the first of the list, if it is in it. */
static int put_own_first(struct job_run *run, bool *ret_has)
{
	struct host_list ordered = {0};
	int r = 0;

	for (unsigned others = 0; others < 2; others++)
		for (size_t i = 0; i < run->hosts.nr && r == 0; i++) {
			const char *name = run->hosts.name[i];
			bool own = !run->launcher || is_own_node(run, name);

			*ret_has |= own;
			if (others || own)
				r = host_list_add(&ordered, name, strlen(name));
		}
	host_list_release(&run->hosts);
	run->hosts = ordered;
	return r;
}

/* How many nodes from this one on are in the same component of a heterogeneous job, and in which; all, and
 * -1, when there are no components. */
static size_t in_component(const struct job_run *run, size_t from, int *ret)
{
	struct host_list all = {0};
	size_t nr = 0;

	*ret = -1;
	for (int k = 0; !nr && run->name.kind == SCHEDULER_SLURM; k++) {
		char variable[64];
		const char *list;

		snprintf(variable, sizeof(variable), "SLURM_JOB_NODELIST_HET_GROUP_%d", k);
		list = env_getenv(run->env, variable);
		if (!list || host_list_add_list(&all, list) < 0)
			break;
		while (from + nr < run->hosts.nr && host_list_find(&all, run->hosts.name[from + nr]) >= 0)
			nr++;
		*ret = nr ? k : -1;
		host_list_release(&all);
	}
	host_list_release(&all);
	return nr ? nr : run->hosts.nr - from;
}

int job_launch_plan(struct job_run *run)
{
	bool has_own = false;
	int r = put_own_first(run, &has_own);
	size_t nr;

	if (r == 0 && has_own)
		r = plan_one(run, 0, 1, true);
	for (size_t from = has_own; r == 0 && run->launcher && from < run->hosts.nr; from += nr) {
		int component = -1;

		nr = run->launcher->for_all ? in_component(run, from, &component) : 1;
		r = plan_one(run, from, nr, false);
		if (r == 0)
			run->launch[run->nr_launches - 1].component = component;
	}
	return r;
}

/* ---- starting ---- */

/* srun takes the geometry of the job from these, and would start another number of tasks than one for each
 * node. */
static bool is_kept(const char *variable)
{
	static const char *const kept[] = {"SLURM_JOB", "SLURM_ARRAY", "SLURM_CONF", "SLURM_CLUSTER",
		"SLURM_WORKING", "SLURM_HET", "SLURM_SUBMIT", "SLURM_DEBUG"};

	if (str_starts(variable, "SLURM_JOB_NUM_NODES") || !str_starts(variable, "SLURM_"))
		return !str_starts(variable, "SLURM_");
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (str_starts(variable, kept[i]))
			return true;
	return false;
}

static void drop_geometry(char **environment)
{
	char **to = environment;

	for (char **from = environment; *from; from++)
		if (is_kept(*from))
			*to++ = *from;
	*to = NULL;
}

/* The words of the recorder, as one word for a shell where the launcher needs that. */
static void add_command(struct argument_words *w, const struct job_run *run, const struct job_launch *launch)
{
	const struct launcher *l = run->launcher;
	struct argument_words recorder = {0};
	struct buf line;

	add_recorder(&recorder, run, launch, l->by_files);
	w->failed |= recorder.failed;
	buf_init(&line, 1 << 20);
	buf_adds(&line, "exec"); /* no shell stays between */
	for (size_t i = 0; i < recorder.nr; i++) {
		if (!l->shell)
			add(w, "%s", recorder.word[i]);
		buf_addch(&line, ' ');
		add_shell_word(&line, recorder.word[i], strlen(recorder.word[i]));
	}
	w->failed |= line.err != 0;
	if (l->shell)
		add(w, "%s", (char *)line.data);
	buf_release(&line);
	texts_free(recorder.word, recorder.nr);
}

/* mpirun starts its daemons by srun, too: they must not keep the job's own steps waiting. */
static const struct {
	const char *name, *value;
} for_mpirun[] = {{"SLURM_OVERLAP", "1"}, {"SLURM_MEM_PER_NODE", "0"}, {"SLURM_CPU_BIND", "none"}};

static void become(const struct argument_words *w, int in, int out)
{
	char **environment = rights_environment();

	unblock_signals();
	signal(SIGPIPE, SIG_DFL);
	setsid();
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (!strcmp(w->word[0], "srun"))
		drop_geometry(environment);
	for (size_t i = 0; i < ARRAY_SIZE(for_mpirun) && !strcmp(w->word[0], "mpirun"); i++) {
		environ = environment;
		setenv(for_mpirun[i].name, for_mpirun[i].value, true);
		environment = environ;
	}
	rights_drop();
	execvpe(w->word[0], w->word, environment);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", w->word[0], strerror(errno));
	_exit(127);
}

/* Standard input of the new process, and our end of it; -1 where it does not reach the recorder. */
static int make_input(bool by_files, int ret[static 2])
{
	if (!by_files)
		return pipe2(ret, O_CLOEXEC);
	ret[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return ret[0] < 0 ? -1 : 0;
}

static void start(struct job_run *run, struct job_launch *launch)
{
	struct argument_words w = {0};
	int in[2] = {-1, -1}, out[2] = {-1, -1};

	launch->started = true;
	if (launch->local) {
		add_recorder(&w, run, launch, false);
	} else {
		add(&w, "%s", run->launcher->program);
		run->launcher->add(&w, run, launch);
		add_command(&w, run, launch);
	}
	launch->pid = -1;
	if (!w.failed && ARRAY_RESIZE(w.word, w.nr + 1) == 0 && make_input(launch->files, in) == 0 &&
		pipe2(out, O_CLOEXEC) == 0) {
		w.word[w.nr] = NULL;
		launch->pid = fork();
	}
	if (launch->pid == 0)
		become(&w, in[0], out[1]);
	if (launch->pid < 0) {
		job_log(&run->directory, "error", "launcher", "cannot start a process: %s", strerror(errno));
		launch->pid = 0;
		for (size_t i = 0; i < launch->nr; i++)
			job_node_lost(run, launch->first + i, "its recorder could not be started");
	}
	closep(&in[0]);
	closep(&out[1]);
	job_line_open(&launch->line, out[0], in[1]);
	texts_free(w.word, w.nr);
}

/* Its nodes have answered, or it has ended. */
static bool is_settled(const struct job_run *run, const struct job_launch *launch)
{
	if (!launch->pid)
		return true;
	for (size_t i = 0; i < launch->nr; i++)
		if (run->node[launch->first + i].state == NODE_EXPECTED)
			return false;
	return true;
}

void job_launch_more(struct job_run *run)
{
	size_t busy = 0;

	if (run->ending)
		return;
	for (size_t i = 0; i < run->nr_started; i++)
		busy += !is_settled(run, &run->launch[i]);
	for (; busy < AT_ONCE && run->nr_started < run->nr_launches; busy++)
		start(run, &run->launch[run->nr_started++]);
}

/* Its recorders were killed while the job goes on, as by `pkill srun`. */
static bool is_worth_again(const struct job_run *run, const struct job_launch *launch)
{
	bool recorded = false;

	for (size_t i = launch->first; i < launch->first + launch->nr; i++) {
		if (run->node[i].state == NODE_ENDED)
			return false;
		recorded |= run->node[i].state == NODE_RECORDING;
	}
	return recorded && !run->ending && launch->again < AGAIN_MOST;
}

static void start_again(struct job_run *run, struct job_launch *launch)
{
	launch->again++;
	for (size_t i = launch->first; i < launch->first + launch->nr; i++)
		run->node[i].state = NODE_EXPECTED;
	job_log(&run->directory, "warning", "launcher",
		"recorders of %zu nodes were lost and are started again", launch->nr);
	job_line_close(&launch->line);
	start(run, launch);
}

/* With the last words of what was started for this node alone. */
static void lose(struct job_run *run, const struct job_launch *launch, size_t n)
{
	const struct node_of_run *node = &run->node[n];
	const char *said = launch->nr == 1 && (launch->local || !run->launcher->for_all) ? node->said : NULL;
	char why[JOB_LINE_SIZE + 64];

	snprintf(why, sizeof(why), "its recorder %s%s%s",
		node->state == NODE_EXPECTED ? "did not start" : "ended early", said ? ": " : "",
		said ? said : "");
	job_node_lost(run, n, why);
}

void job_launch_ended(struct job_run *run, pid_t pid, int status)
{
	for (size_t i = 0; i < run->nr_started; i++) {
		struct job_launch *launch = &run->launch[i];

		if (launch->pid != pid)
			continue;
		launch->pid = 0;
		job_nodes_hear(run); /* its last words */
		if (WIFSIGNALED(status) || WEXITSTATUS(status))
			job_log(&run->directory, "warning", "launcher", "%s ended with %s %d",
				launch->local ? "the recorder of this node" : run->launcher->program,
				WIFSIGNALED(status) ? "signal" : "status",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		if (is_worth_again(run, launch)) {
			start_again(run, launch);
			continue;
		}
		for (size_t n = launch->first; n < launch->first + launch->nr; n++)
			lose(run, launch, n);
	}
}

bool job_launch_running(const struct job_run *run)
{
	for (size_t i = 0; i < run->nr_launches; i++)
		if (run->launch[i].pid || !run->launch[i].started)
			return true;
	return false;
}

bool job_launch_is_elsewhere(const struct job_run *run)
{
	return run->nr_launches && !run->launch[0].local;
}

/* What still runs has no recorder to wait for, or one that does not answer. */
void job_launch_close(struct job_run *run)
{
	for (size_t i = 0; i < run->nr_launches; i++) {
		struct job_launch *launch = &run->launch[i];

		if (launch->pid > 0)
			kill(-launch->pid, SIGTERM); /* it leads a session of its own */
		job_line_close(&launch->line);
		for (size_t n = 0; launch->files && n < launch->nr; n++)
			job_line_close(&launch->files[n]);
		free(launch->files);
	}
	free(run->launch);
	run->launch = NULL;
	run->nr_launches = run->nr_started = 0;
}
