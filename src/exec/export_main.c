/* tacho-export: formats, some of which need libraries that the recorder must not load. `tacho export` becomes
 * it. */
#include "cmd/cmd.h"
#include "cmd/export.h"
#include "cmd/start.h"
#include "exec/export.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct cmd cmd = cmd_export;

	start_program(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("tacho %s\n", tacho_version);
		return finish_stdout(EXIT_OK);
	}
	cmd.run = export_run;
	return finish_stdout(start_command(&cmd, argc, argv));
}
