/* tacho run: starts a command and records it. */
#include "cmd/cmd.h"
#include "cmd/record.h"

#include <string.h>

extern const struct cmd cmd_run;

struct run_args {
	struct record_options record;
	const char *shell; /* -c */
};

static const struct opt run_opts[] = {
	{'c', "command", "TEXT", OPT_TEXT, offsetof(struct run_args, shell), .not_from_env = true,
		.help = "run TEXT with /bin/sh instead of a command and its arguments"},
};

static void cannot_run(const char *name, int e)
{
	die(e == -ENOENT ? EXIT_NOTFOUND : EXIT_CANNOT, "cannot run '%s': %s", name,
		e == -ENOENT ? "there is no such command" : strerror(-e));
}

/* Starts the command; comes back only if it runs. */
static void start(struct recording *r, char **argv)
{
	bool before_exec;
	char *path = realpath((char *)r->path.data, NULL);
	int e = command_start(&r->command, argv, path, r->group, &before_exec);

	free(path);
	if (e == 0)
		return;
	record_discard(r);
	if (before_exec)
		die(EXIT_OWN, "cannot start a process: %s", strerror(-e));
	cannot_run(argv[0], e);
}

static int run(const void *args, int argc, char **argv)
{
	const struct run_args *a = args;
	char *shell[] = {"/bin/sh", "-c", (char *)a->shell, NULL};
	static struct recording r; /* reachable to the end: see below */
	int status = 0, e;

	if (a->shell) {
		if (argc)
			usage(&cmd_run, "give a command or -c, not both");
		argv = shell;
		argc = 3;
	}
	if (!argc)
		usage(&cmd_run, "what shall be run?");
	e = command_find(argv[0]);
	if (e < 0)
		cannot_run(argv[0], e);
	record_prepare(&r, &cmd_run, &a->record, false, argc, argv);
	if (r.help & HELPER_CGROUP && a->record.children) {
		const char *why;

		cgroup_create(&r.group, &why);
		engine_use_cgroup(r.engine, r.group);
	}
	record_begin(&r, argc, argv);
	start(&r, argv);
	command_privileges(&r.command);
	engine_add_root(r.engine, r.command.pid, true);
	record_loop(&r);
	engine_root_ended(r.engine, &status);
	record_report(&r);
	/* Nothing is released: the kernel does that faster, and the shell is waiting. */
	return command_exit_as(&r.command, status);
}

const struct cmd cmd_run = {
	.name = "run",
	.synopsis = "[OPTION…] [--] COMMAND [ARG…]",
	.help = "run a command and record what it does to the machine",
	.detail = "Runs COMMAND with its own standard input, output, terminal, limits and signals, samples "
		  "it and all its "
		  "descendants, and writes one recording. When it has ended, a summary goes to standard "
		  "error.\n\n"
		  "The exit status is the command's own; when a signal ended it, tacho ends by the same "
		  "signal. 125: tacho "
		  "itself failed before the command was started; 126: the command cannot be run; 127: there "
		  "is none. Trouble "
		  "while recording never fails a good job.\n\n"
		  "Signals sent to tacho (TERM, INT, HUP, QUIT, USR1, USR2, CONT, TSTP, WINCH) are passed "
		  "on. The command "
		  "finds the path of the recording in TACHO_RECORDING.",
	.examples = "$ tacho run -- make -j8\n"
		    "    Record a build.\n"
		    "$ tacho run -i 100ms -o runs/{name}-{jobid}.tacho -- ./train --epochs 3\n"
		    "    Ten samples a second, in a directory of runs.\n"
		    "$ tacho run -c 'zcat data.gz | sort | uniq -c >counts'\n"
		    "    Record a pipeline.\n",
	.opt = run_opts,
	.nr_opts = ARRAY_SIZE(run_opts),
	.shared = record_opts,
	.nr_shared = NR_RECORD_OPTS,
	.args_size = sizeof(struct run_args),
	.usage_status = EXIT_OWN,
	.stop_at_operand = true,
	.operands = "command",
	.run = run,
};
