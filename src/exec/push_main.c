/* tacho-push: servers and files that runs are sent to, by libcurl, which the recorder must not load. `tacho
 * push` becomes it. */
#include "cmd/cmd.h"
#include "cmd/start.h"
#include "exec/push.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct cmd cmd = cmd_push;

	start_program(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("tacho %s\n", tacho_version);
		return finish_stdout(EXIT_OK);
	}
	cmd.run = push_run;
	return finish_stdout(start_command(&cmd, argc, argv));
}
