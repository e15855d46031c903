/* The rows of all collectors and the derived ones as one list, for printing. */
#ifndef CMD_CATALOG_H
#define CMD_CATALOG_H

#include "env/env.h"
#include "metric/metric.h"

struct self_test;

struct catalog_row {
	const char *name, *help, *panel;
	enum metric_unit unit;
	bool per_second; /* the unit is per second */
	enum metric_kind kind;
	enum metric_fold fold;
	enum metric_tier tier;	/* of recorded ones */
	bool on_request;	/* recorded only when asked for */
	const char *expression; /* of derived ones; NULL: recorded */
	const char *why;	/* not on this machine, and why; NULL: it is, or was not looked for */
};

struct catalog_section {
	const char *name, *summary;
	const char *domain; /* what its instances are; NULL: that of the rows it is computed from */
	const char *why;    /* all of it is missing on this machine, and why; NULL: it is there */
	struct catalog_row *row;
	size_t nr_rows;
};

struct catalog {
	struct catalog_section *section;
	size_t nr_sections;
	struct self_test *here; /* owns the reasons */
};

/* What matches any of the words (all without words): the name of a section, what its instances are, or a part
 * of the name of a metric. Sections without a match are left out. With an env the machine is looked at; it
 * may be NULL. 0 or -ENOMEM. */
int catalog_init(struct catalog *c, int nr_words, char **word, bool with_derived, struct env *env);
void catalog_release(struct catalog *c);
#endif
