/* The options of `tacho export`: its rows stand in the main table, its work is done by tacho-export. */
#ifndef CMD_EXPORT_H
#define CMD_EXPORT_H

#include "cli/cli.h"

struct export_args {
	bool raw, is_long, wide, force, formats, safe_cells;
	int per; /* enum tables_per */
	int64_t every_ns;
	const char *from, *until, *phase, *output, *compression;
	struct opt_list to, domain, metric;
};

extern const struct cmd cmd_export;
#endif
