/* tacho attach: records processes that run already, and their descendants. */
#include "cmd/cmd.h"
#include "cmd/record.h"

#include "base/str.h"

#include <string.h>

extern const struct cmd cmd_attach;

struct attach_args {
	struct record_options record;
};

static pid_t parse_pid(const char *text)
{
	uint64_t pid;

	if (!parse_u64(text, &pid) || pid == 0 || pid > (1 << 22))
		usage(&cmd_attach, "'%s' is not a process id", text);
	return (pid_t)pid;
}

static void add_root(struct recording *r, const char *text)
{
	int e = record_attach(r, parse_pid(text));

	if (e == 0 || e == -EEXIST)
		return;
	record_discard(r);
	die(EXIT_TROUBLE, "there is no process %s to attach to", text);
}

static int attach(const void *args, int argc, char **argv)
{
	const struct attach_args *a = args;
	static struct recording r; /* reachable to the end, and released by the kernel, as in run.c */

	if (!argc)
		usage(&cmd_attach, "which process shall be watched?");
	for (int i = 0; i < argc; i++)
		parse_pid(argv[i]);
	record_prepare(&r, &cmd_attach, &a->record, true, argc, argv);
	command_privileges(&r.command);
	record_begin(&r, argc, argv);
	for (int i = 0; i < argc; i++)
		add_root(&r, argv[i]);
	engine_scan(r.engine);
	record_loop(&r);
	record_report(&r);
	return EXIT_OK;
}

const struct cmd cmd_attach = {
	.name = "attach",
	.synopsis = "[OPTION…] PID…",
	.help = "record processes that run already, and their descendants",
	.detail = "Samples each process given and the tree under it from now on, until the last of them has "
		  "ended, --duration "
		  "is over, or a signal (Ctrl-C) ends the recording. The processes notice nothing. Totals "
		  "count from the moment "
		  "of attaching.\n\n"
		  "The exit status is 0 when something was recorded, 1 when there is no such process, 125 "
		  "when tacho itself failed.",
	.examples = "$ tacho attach 4242\n"
		    "    Watch a running job until it ends.\n"
		    "$ tacho attach --duration 1m -i 10Hz 4242 4250\n"
		    "    A closer look at two of them for a minute.\n",
	.shared = record_opts,
	.nr_shared = NR_RECORD_OPTS,
	.args_size = sizeof(struct attach_args),
	.usage_status = EXIT_OWN,
	.operands = "pid",
	.run = attach,
};
