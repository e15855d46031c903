/* tacho-serve: recordings in a browser, by libmicrohttpd, which the recorder must not load. `tacho serve`
 * becomes it. */
#include "cmd/cmd.h"
#include "cmd/start.h"
#include "exec/serve.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct cmd cmd = cmd_serve;

	start_program(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("tacho %s\n", tacho_version);
		return finish_stdout(EXIT_OK);
	}
	cmd.run = serve_run;
	return finish_stdout(start_command(&cmd, argc, argv));
}
