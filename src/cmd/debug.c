/* `tacho debug VERB …`: views of internals, for developers and tests. Not listed in the overview, and no
 * promise is made about what they print. A new one is a function and a line in verbs[]. */
#include "cmd/cmd.h"

#include "cmd/debug.h"
#include "cmd/reading.h"

#include <string.h>

extern const struct cmd cmd_debug;

static const struct verb {
	const char *name, *synopsis;
	int (*run)(int argc, char **argv); /* argv[0] is the first operand */
} verbs[] = {
	{"dump", "FILE: every record of a recording as a line of JSON", debug_dump},
	{"play", "FILM RECORDING INTERVAL PID…: record a film as if it were this machine", debug_play},
	{"capture", "FILM RECORDING INTERVAL DURATION PID…: film this machine while recording",
		debug_capture},
};

static int debug(const void *args, int argc, char **argv)
{
	struct buf list;

	(void)args;
	for (size_t i = 0; argc && i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(argv[0], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	buf_init(&list, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		buf_addf(&list, "\n  %s %s", verbs[i].name, verbs[i].synopsis);
	usage(&cmd_debug, "which of these?%s", (char *)list.data);
}

const struct cmd cmd_debug = {
	.name = "debug",
	.synopsis = "VERB [ARG…]",
	.help = "internals of tacho, for developers",
	.group = &reading,
	.args_size = 1,
	.stop_at_operand = true,
	.hidden = true,
	.operands = "file",
	.run = debug,
};
