/* The option parser on any words, and the user's file on any text.
 *
 * Input: lines. Those before the first empty line are words of the command line (the first byte of all
 * chooses the command), those up to the second are TACHO_INTERVAL, TACHO_METRICS and TACHO_TAG, the rest is
 * the user's file. */
#include "cli/cli.h"
#include "cmd/cmd.h"
#include "cmd/record_options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ARGC_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cmd cmd_record = {.name = "run",
	.shared = record_opts,
	.nr_shared = NR_RECORD_OPTS,
	.args_size = sizeof(struct record_options),
	.stop_at_operand = true,
	.synopsis = "",
	.help = "record"};

/* The line at *p without its end, or NULL when an empty line or the end of the text was reached. */
static char *next_line(char **p)
{
	char *line = *p, *end = strchr(line, '\n');

	if (!*line)
		return NULL;
	*p = end ? end + 1 : line + strlen(line);
	if (end)
		*end = 0;
	return *line ? line : NULL;
}

/* A home of its own for each input: nothing is left behind when one of them crashes but that one's. */
static char home[32];

static void use_config(const char *text)
{
	char path[64];
	int fd;

	snprintf(home, sizeof(home), "/tmp/fuzz_cli.XXXXXX");
	if (!mkdtemp(home))
		abort();
	setenv("XDG_CONFIG_HOME", home, 1);
	snprintf(path, sizeof(path), "%s/tacho", home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/tacho/config", home);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
}

static void drop_config(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/tacho/config", home);
	unlink(path);
	snprintf(path, sizeof(path), "%s/tacho", home);
	rmdir(path);
	rmdir(home);
}

static void parse_once(const struct cmd *cmd, int argc, char **argv)
{
	void *args =
		malloc(cmd->args_size + 1); /* exactly as large as the command says, so that ASan sees more */
	struct buf err, out;
	int r;

	buf_init(&err, 1 << 20);
	buf_init(&out, 4096);
	r = cli_parse(cmd, argc, argv, args, NULL, &err);
	if (r > argc || (r < 0 && r != -ECANCELED && !err.len && !err.err))
		abort(); /* refused without a word, or operands beyond the end */
	if (r >= 0 && cmd == &cmd_record) {
		const struct record_options *o = args;
		struct output_names names = {
			.command = r < argc ? argv[r] : NULL, .name = o->name, .host = "h", .pid = 1};

		record_options_check(o, &err);
		output_path(o->output, &names, &out, &err);
	}
	cli_check_user_file(commands, &err);
	buf_release(&out);
	buf_release(&err);
	free(args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const variable[] = {"TACHO_INTERVAL", "TACHO_METRICS", "TACHO_TAG"};
	char *text = calloc(1, size + 1), *p = text, *line, *argv[ARGC_MAX + 1] = {(char *)"run"};
	const struct cmd *cmd = &cmd_record;
	int argc = 1;

	if (!text)
		abort();
	for (size_t i = 0; i < size; i++)
		text[i] = data[i] ? (char)data[i] : ' ';
	for (size_t i = 0; *p && commands[i]; i++)
		if (*p == (char)('0' + i))
			cmd = commands[i];
	if (*p)
		p++;
	while (argc < ARGC_MAX && (line = next_line(&p)))
		argv[argc++] = line;
	for (size_t i = 0; i < ARRAY_SIZE(variable); i++) {
		line = next_line(&p);
		if (line)
			setenv(variable[i], line, 1);
		else
			unsetenv(variable[i]);
	}
	use_config(p);
	parse_once(cmd, argc, argv);
	drop_config();
	free(text);
	return 0;
}
