/* The program: finds the command, runs it, and checks that what it printed arrived. */
#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/start.h"

#include <stdio.h>
#include <string.h>

static int show_overview(int fd)
{
	struct buf out;
	int status = EXIT_OK;

	buf_init(&out, 1 << 16);
	cli_overview(commands, &out);
	if (fd == STDOUT_FILENO)
		status = print(&out);
	else
		fputs((char *)out.data, stderr);
	buf_release(&out);
	return status;
}

static int describe(void)
{
	struct buf out;
	int status;

	buf_init(&out, 1 << 20);
	cli_describe(commands, &out);
	status = print(&out);
	buf_release(&out);
	return status;
}

static int run_word(int argc, char **argv)
{
	const struct cmd *cmd = cli_find(commands, argv[0]);

	if (cmd)
		return start_command(cmd, argc, argv);
	external_run(argv);
	return unknown_command(argv[0]);
}

static bool is_either(const char *word, const char *a, const char *b)
{
	return !strcmp(word, a) || !strcmp(word, b);
}

static int dispatch(int argc, char **argv)
{
	const struct cmd *run = cli_find(commands, "run");

	if (argc < 2) {
		show_overview(STDERR_FILENO);
		return EXIT_USAGE;
	}
	if (is_either(argv[1], "-h", "--help"))
		return show_overview(STDOUT_FILENO);
	if (is_either(argv[1], "-V", "--version")) {
		printf("tacho %s\n", tacho_version);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--describe=json"))
		return describe();
	if (!strcmp(argv[1], "--") && run)
		return start_command(run, argc, argv);
	if (argv[1][0] == '-') {
		error("there is no option '%s' before the command; options follow it: tacho COMMAND %s",
			argv[1], argv[1]);
		return EXIT_USAGE;
	}
	return run_word(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	start_program(argc, argv);
	return finish_stdout(dispatch(argc, argv));
}
