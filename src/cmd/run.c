/* tacho run: starts a command and records it. */
#include "cmd/warn_recorded.h"
#include "cmd/cmd.h"
#include "cmd/nvtx.h"
#include "cmd/record.h"
#include "cmd/run_repeat.h"
#include "node/cgroups.h"

#include <string.h>

extern const struct cmd cmd_run;

struct run_command_args {
	struct record_options record;
	const char *shell; /* -c */
	struct opt_list also;
	int wait; /* enum record_wait */
	uint64_t repeat;
	bool strict, nvtx;
};

enum record_wait { WAIT_ROOT, WAIT_TREE };
static const char *const wait_for[] = {"root", "tree", NULL};

static const struct opt run_opts[] = {
	{'c', "command", "TEXT", OPT_TEXT, offsetof(struct run_command_args, shell), .not_from_env = true,
		.help = "run TEXT with /bin/sh instead of a command and its arguments"},
	{'r', "repeat", "N", OPT_COUNT, offsetof(struct run_command_args, repeat), .min = 1, .max = 1000,
		.preset = "1", .not_from_env = true,
		.help = "run it N times, and tell how much the runs differ",
		.detail = "One recording each: base-1.tacho, base-2.tacho … of -o base.tacho; names with "
			  "placeholders get the "
			  "time and a number. When all have ended, mean, standard deviation and range of "
			  "wall time, CPU "
			  "time and peak memory are printed in place of the summaries. A run that fails is "
			  "the last, and "
			  "its exit status is that of tacho. tacho compare A-*.tacho -- B-*.tacho compares "
			  "two such sets."},
	{0, "also", "TARGET", OPT_LIST, offsetof(struct run_command_args, also), .not_from_env = true,
		.help = "record these processes as well; may be repeated",
		.detail = "TARGET is what tacho attach takes: a process id, match:REGEX, user:NAME, "
			  "cgroup:PATH, container:ID, job[:ID] or system. Each is a separate group in the "
			  "recording, as is the command."},
	{0, "wait", "root|tree", OPT_CHOICE, offsetof(struct run_command_args, wait), wait_for,
		.preset = "root", .help = "end with the command, or with its last descendant",
		.detail = "With tree the recording goes on until every process that descends from the "
			  "command has ended: for programs that continue in the background."},
	{0, "strict", NULL, OPT_FLAG, offsetof(struct run_command_args, strict),
		.help = "do not run the command if it cannot be recorded",
		.detail = "Without it the command runs in any case: if no recording can be made (disk "
			  "full, no permission, a limit of memory, files or processes), one line on "
			  "standard error says why, also with --quiet. With it, tacho ends with 125 in "
			  "such a case and does not run the command."},
	{0, "nvtx", NULL, OPT_FLAG, offsetof(struct run_command_args, nvtx),
		.help = "record the command's NVTX ranges as phases, its NVTX marks as marks",
		.detail = "Programs name parts of their work by NVTX: PyTorch, RAPIDS and NCCL do, and "
			  "Python's package nvtx. Of each thread the two outermost ranges are recorded; "
			  "those within are counted. A library of tacho runs in the job for that, by the "
			  "variable NVTX_INJECTION64_PATH. If that is set already, another tool gets the "
			  "ranges, and this option does nothing."},
};

static void pass_gate(void *engine, pid_t pid)
{
	engine_before_exec(engine, pid);
}

/* Starts the command; comes back only if it runs. Its process needs half a millisecond for the exec: what
 * does not need the new program is done meanwhile. */
static void start(struct recording *r, char **argv, bool nvtx)
{
	const struct command_gate gate = {.pass = pass_gate, .arg = r->engine};
	_cleanup_(freep) char *library = nvtx ? nvtx_variable() : NULL;
	char *variables[4];
	unsigned nr = 0;
	int e;

	record_variables(r, variables);
	while (variables[nr])
		nr++;
	variables[nr] = library;
	variables[nr + 1] = NULL;
	e = command_start(
		&r->command, argv, variables, r->group, engine_wants_gate(r->engine) ? &gate : NULL);
	for (unsigned i = 0; i < nr; i++)
		free(variables[i]);
	if (e < 0)
		record_fail(r, e, "cannot start a process");
	command_privileges(&r->command);
	record_read_limits(r);
	e = command_confirm(&r->command);
	if (e == 0)
		return;
	record_discard(r);
	cannot_run(argv[0], e);
}

/* The command's own group first, then those beside it. */
static void add_scopes(struct recording *r, const struct run_command_args *a, const char *command)
{
	const char *slash = strrchr(command, '/');
	struct buf err;

	buf_init(&err, 4096);
	scopes_add_command(&r->scopes,
		a->record.name		    ? a->record.name
			: slash && slash[1] ? slash + 1
					    : command);
	for (unsigned i = 0; i < a->also.nr; i++)
		if (scopes_add(&r->scopes, a->also.item[i], &err) < 0)
			usage(&cmd_run, "%s", (char *)err.data);
	for (unsigned i = 0; i < r->scopes.nr; i++) {
		int e = scope_open(&r->scopes, i, &err);

		if (e == -ENOMEM || e == -EMFILE || e == -ENFILE)
			record_fail(r, e, "cannot look for %s", a->also.item[MAX(i, 1) - 1]);
		if (e < 0)
			die(EXIT_OWN, "%s", (char *)err.data);
	}
	buf_release(&err);
}

/* A target that has ended in the meantime must not stop the job, which runs already. */
static void attach_also(struct recording *r)
{
	for (unsigned i = 0; i < r->scopes.nr; i++)
		if (r->scopes.scope[i].kind == SCOPE_PID)
			record_attach(r, r->scopes.scope[i].pid, r->scopes.scope[i].group);
	engine_scan(r->engine);
}

/* The limits are those of the groups that we are in: the groups found here are kept for reading them. */
static void make_group(struct recording *r)
{
	const char *why;

	r->places = malloc(sizeof(*r->places));
	if (!r->places || cgroups_read(r->env, 0, r->places) < 0 ||
		cgroup_create_in(r->places, &r->group, &why) < 0)
		return;
	engine_use_cgroup(r->engine, r->group);
}

static int run_once(const struct run_command_args *a, int argc, char **argv, const struct repeat *of)
{
	static struct recording r; /* reachable to the end: see below */
	int status = 0;

	record_prepare(&r, &cmd_run, &a->record, false, argc, argv);
	r.strict = a->strict;
	if (!a->record.quiet)
		warn_if_recorded(r.env, 0);
	r.wait_for_tree = a->wait == WAIT_TREE;
	r.until_file = a->record.until_file;
	if (a->also.nr)
		add_scopes(&r, a, argv[0]);
	record_open(&r);
	if (r.help & HELPER_CGROUP && a->record.children)
		make_group(&r);
	record_start(&r);
	record_listen(&r);
	start(&r, argv, a->nvtx);
	engine_leave_out(r.engine, r.command.witness.pid);
	engine_add_root(r.engine, r.command.pid, true, 1);
	engine_set_copy(r.engine, r.command.before_exec_kib, argv[0]);
	if (a->also.nr)
		attach_also(&r);
	record_loop(&r);
	engine_root_ended(r.engine, &status);
	record_report(&r);
	if (of && r.recorded)
		repeat_told(of, (char *)r.path.data);
	/* Nothing is released: the kernel does that faster, and the shell is waiting. */
	return command_exit_as(&r.command, status);
}

/* One of several: the spread of all is told in place of its summary. */
static int run_repeated(struct repeat *r)
{
	struct run_command_args one = *(const struct run_command_args *)r->args;

	one.record.output = r->output;
	one.record.summary &= one.record.json;
	return run_once(&one, r->argc, r->argv, r);
}

static int run_several(const struct run_command_args *a, int argc, char **argv)
{
	struct repeat r = {.run = run_repeated,
		.args = a,
		.argc = argc,
		.argv = argv,
		.output = a->record.output,
		.quiet = a->record.quiet || a->record.json,
		.tell_fd = -1};
	struct buf command;
	int status;

	buf_init(&command, 1 << 20);
	for (int i = 0; i < argc; i++)
		buf_add(&command, argv[i], strlen(argv[i]) + (i + 1 < argc));
	r.command = (char *)command.data;
	r.command_len = command.len;
	status = repeat_run(&r, a->repeat);
	buf_release(&command);
	return status;
}

static int run(const void *args, int argc, char **argv)
{
	const struct run_command_args *a = args;
	char *shell[] = {"/bin/sh", "-c", (char *)a->shell, NULL};
	int e;

	if (a->shell) {
		if (argc)
			usage(&cmd_run, "give a command or -c, not both");
		argv = shell;
		argc = 3;
	}
	if (!argc)
		usage(&cmd_run, "no command given: write tacho run -- COMMAND [ARG…]");
	e = command_find(argv[0]);
	if (e < 0)
		cannot_run(argv[0], e);
	return a->repeat > 1 ? run_several(a, argc, argv) : run_once(a, argc, argv, NULL);
}

const struct cmd cmd_run = {
	.name = "run",
	.synopsis = "[OPTION…] [--] COMMAND [ARG…]",
	.help = "run a command and record what it does to the machine",
	.detail = "Runs COMMAND with its own standard input, output, terminal, limits and signals, "
		  "samples it and all its descendants, and writes one recording. When it has ended, a "
		  "summary goes to standard error.\n\nThe exit status is that of the command; if a signal "
		  "ended it, tacho ends by the same signal. 125: wrong use (also an --output FILE that "
		  "exists), and nothing was run; 126: the command cannot be run; 127: it does not exist. "
		  "Problems with the recording never fail the job: it runs nevertheless, and one line "
		  "says why it is not recorded. With --strict, tacho ends with 125 instead.\n\nSignals "
		  "sent to tacho are passed on: all that a program can catch, but not those of its own "
		  "faults (SEGV, ABRT …). The command finds the path of the recording in TACHO_RECORDING, "
		  "and tells of its phases by tacho phase and tacho mark.",
	.examples = "$ tacho run -- make -j8\n"
		    "    Record a build.\n"
		    "$ tacho run -i 100ms -o runs/{name}-{jobid}.tacho -- ./train --epochs 3\n"
		    "    Ten samples a second, in a directory of runs.\n"
		    "$ tacho run -r 5 -o base.tacho -- ./solve\n"
		    "    Five times: the mean and how much they differ.\n"
		    "$ tacho run -c 'zcat data.gz | sort | uniq -c >counts'\n"
		    "    Record a pipeline.\n",
	.opt = run_opts,
	.nr_opts = ARRAY_SIZE(run_opts),
	.shared = record_opts,
	.nr_shared = NR_RECORD_OPTS,
	.args_size = sizeof(struct run_command_args),
	.usage_status = EXIT_OWN,
	.measures = true,
	.stop_at_operand = true,
	.operands = "command",
	.run = run,
};
