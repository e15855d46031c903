/* The options of `tacho report`: its rows stand in the main table, its work is done by tacho-report. */
#ifndef CMD_REPORT_H
#define CMD_REPORT_H

#include "cmd/operands.h"

struct report_args {
	struct range_args range; /* first: the shared rows write there */
	bool all, dark, force, verbose, open;
	const char *output;
	struct opt_list format;
};

extern const struct cmd cmd_report;
#endif
