/* `tacho help`: explains commands; also prints what is generated from the table of commands when tacho is
 * built (man pages) or when a user wants it (completions). */
#include "cmd/cmd.h"
#include "cmd/external.h"

#include <string.h>

struct help_args {
	bool man;
	const char *completion;
};

static int help_man(const char *name, struct buf *out)
{
	const struct cmd *cmd = name ? cli_find(commands, name) : NULL;

	if (name && !cmd) {
		error("there is no command '%s'", name);
		return EXIT_USAGE;
	}
	if (cmd)
		cli_man(cmd, out);
	else
		cli_man_main(commands, out);
	return print(out);
}

static int help_completion(const char *shell, struct buf *out)
{
	if (cli_completion(commands, shell, out) < 0) {
		error("--completion takes bash, zsh or fish, not '%s'", shell);
		return EXIT_USAGE;
	}
	return print(out);
}

static int help_command(char *name, struct buf *out)
{
	const struct cmd *cmd = cli_find(commands, name);
	char *argv[] = {name, (char *)"--help", NULL};

	if (!cmd) {
		external_run(argv);
		return unknown_command(name);
	}
	cli_manual(cmd, out, terminal_width(STDOUT_FILENO));
	return print(out);
}

extern const struct cmd cmd_help;

static int help_run(const void *args, int argc, char **argv)
{
	const struct help_args *a = args;
	struct buf out;
	int status;

	if (argc > 1)
		usage(&cmd_help, "help takes one command, not %d", argc);
	buf_init(&out, 1 << 20);
	if (a->man)
		status = help_man(argv[0], &out);
	else if (a->completion)
		status = help_completion(a->completion, &out);
	else if (argc)
		status = help_command(argv[0], &out);
	else {
		cli_overview(commands, &out);
		status = print(&out);
	}
	buf_release(&out);
	return status;
}

/* clang-format off */
static const struct opt help_opts[] = {
	{0, "completion", "SHELL", OPT_TEXT, offsetof(struct help_args, completion), .not_from_env = true,
		.help = "print the completions for bash, zsh or fish",
		.detail = "They are installed with tacho. Without an installation: "
			"`source <(tacho help --completion bash)`."},
	{0, "man", NULL, OPT_FLAG, offsetof(struct help_args, man), .not_from_env = true, .hidden = true,
		.help = "print the man page, as roff"},
};

const struct cmd cmd_help = {
	.name = "help",
	.synopsis = "[OPTION…] [COMMAND]",
	.help = "explain a command, or list them",
	.detail = "Without a command: the overview. With one: its manual, as the man page tacho-COMMAND(1) has it. "
		"`tacho COMMAND --help` is shorter: the options at a glance.",
	.examples =
		"$ tacho help run\n    how to record a command\n$ source <(tacho help --completion bash)\n"
		"    completions for this shell",
	.opt = help_opts,
	.nr_opts = ARRAY_SIZE(help_opts),
	.args_size = sizeof(struct help_args),
	.operands = "tacho",
	.run = help_run,
};
/* clang-format on */
