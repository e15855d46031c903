/* `tacho plot`: what both executables share. Charts in the terminal are drawn by tacho itself, pictures by
 * tacho-report, whose rows are the same. */
#ifndef CMD_PLOT_H
#define CMD_PLOT_H

#include "cmd/operands.h"
#include "analysis/plot.h"

enum plot_form { PLOT_BY_ENDING, PLOT_PNG, PLOT_SVG, PLOT_PDF };

struct plot_args {
	struct range_args range; /* first: the shared rows write there */
	bool rate, log, stacked, dark, force;
	int per, format;
	uint64_t pid, top;
	const char *output, *group, *size, *title;
};

extern const struct cmd cmd_plot;

/* Reads what the operands ask for; wrong ones end the program. */
struct plot *plot_of(const struct plot_args *a, int argc, char **argv);
#endif
