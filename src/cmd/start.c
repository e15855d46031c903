/* Around a command: what `tacho` and the executables beside it do in the same way. */
#include "cmd/start.h"

#include "base/rights.h"
#include "cmd/cmd.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

static struct start_words given;

const struct start_words *start_words(void)
{
	return &given;
}

/* A descriptor 0, 1 or 2 that is closed would be given to the next file we open: the recording would receive
 * our messages. What fills the gap fails every read or write, and is closed again in the job (O_CLOEXEC). */
void start_program(int argc, char **argv)
{
	int r = rights_begin(argc, argv);

	if (r < 0)
		die(EXIT_OWN, "cannot drop the capabilities of this program: %s", strerror(-r));
	for (int fd = 0; fd < 3; fd++) {
		int got;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		got = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		if (got > fd)
			close(got);
	}
}

/* For a command that only reads recordings a limit on file size is an error like a full disk: it can report
 * that and clean up. The recorder has rules of its own (target/command.c), since its job inherits what it
 * ignores. */
static void ignore_file_limit(const struct cmd *cmd)
{
	if (cmd->usage_status != EXIT_OWN)
		signal(SIGXFSZ, SIG_IGN);
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

static void warn_of_user_file(void)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	cli_check_user_file(commands, &text);
	for (char *line = (char *)text.data, *end; (end = strchr(line, '\n')); line = end + 1)
		warning("%.*s", (int)(end - line), line);
	buf_release(&text);
}

int start_command(const struct cmd *cmd, int argc, char **argv)
{
	_cleanup_(freep) void *args = calloc(1, MAX(cmd->args_size, 1));
	_cleanup_(freep) char **word = calloc((size_t)argc + 1, sizeof(*word));
	struct buf err;
	int first, status;

	if (!cmd->measures)
		rights_drop();
	if (!args || !word)
		die(EXIT_TROUBLE, "no memory");
	memcpy(word, argv, (size_t)argc * sizeof(*word));
	given = (struct start_words){.cmd = cmd, .word = word, .nr = (size_t)argc};
	ignore_file_limit(cmd);
	buf_init(&err, 1 << 16);
	first = cli_parse(cmd, argc, argv, args, NULL, &err);
	if (first >= 0 && cmd->group && cmd->group->apply(&err) < 0)
		first = -EINVAL;
	if (first == -ECANCELED)
		status = show_help(cmd);
	else if (first < 0) {
		error("%s", (char *)err.data);
		status = cmd->usage_status ? cmd->usage_status : EXIT_USAGE;
	} else {
		if (cmd_takes_settings(cmd))
			warn_of_user_file();
		status = cmd->run(args, argc - first, argv + first);
	}
	buf_release(&err);
	given = (struct start_words){0};
	return status;
}

void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}
