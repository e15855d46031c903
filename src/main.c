/* The program: finds the command, parses its options, runs it, and checks that what it printed arrived. */
#include "cmd/cmd.h"
#include "cmd/external.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* A descriptor 0, 1 or 2 that is closed would be given to the next file we open: the recording would receive
 * our messages. What fills the gap fails every read or write, and is closed again in the job (O_CLOEXEC). */
static void fill_standard_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++) {
		int got;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		got = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		if (got > fd)
			close(got);
	}
}

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

static int show_help(const struct cmd *cmd)
{
	struct buf out;
	int status;

	buf_init(&out, 1 << 16);
	cli_help(cmd, &out, terminal_width(STDOUT_FILENO));
	status = print(&out);
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

static void warn_of_user_file(void)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	cli_check_user_file(commands, &text);
	for (char *line = (char *)text.data, *end; (end = strchr(line, '\n')); line = end + 1)
		warning("%.*s", (int)(end - line), line);
	buf_release(&text);
}

/* argv[0] stands for the command's name. */
static int run_command(const struct cmd *cmd, int argc, char **argv)
{
	_cleanup_(freep) void *args = calloc(1, MAX(cmd->args_size, 1));
	struct buf err;
	int first, status;

	if (!args)
		die(EXIT_TROUBLE, "no memory");
	buf_init(&err, 1 << 16);
	first = cli_parse(cmd, argc, argv, args, NULL, &err);
	if (first == -ECANCELED)
		status = show_help(cmd);
	else if (first < 0) {
		error("%s", (char *)err.data);
		status = cmd->usage_status ? cmd->usage_status : EXIT_USAGE;
	} else {
		warn_of_user_file();
		status = cmd->run(args, argc - first, argv + first);
	}
	buf_release(&err);
	return status;
}

static int run_word(int argc, char **argv)
{
	const struct cmd *cmd = cli_find(commands, argv[0]);

	if (cmd)
		return run_command(cmd, argc, argv);
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
		return run_command(run, argc, argv);
	if (argv[1][0] == '-') {
		error("there is no option '%s' before the command; options follow it: tacho COMMAND %s",
			argv[1], argv[1]);
		return EXIT_USAGE;
	}
	return run_word(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	fill_standard_descriptors();
	return finish_stdout(dispatch(argc, argv));
}
