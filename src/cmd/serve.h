/* The options of `tacho serve`: its rows stand in the main table, its work is done by tacho-serve. */
#ifndef CMD_SERVE_H
#define CMD_SERVE_H

#include "cli/cli.h"

struct serve_args {
	const char *port, *bind, *socket, *token_file;
	struct opt_list allow_host;
	int64_t patience_ns;
	bool until_end;
};

extern const struct cmd cmd_serve;
#endif
