/* What every report on paper or in text has in common: its head, the numbers that matter most and the tables
 * of statistics, as words and cells. Who draws them decides only how they look. All texts are UTF-8 without
 * control characters; the writer of a format escapes what is special in it. */
#ifndef ANALYSIS_OUTLINE_H
#define ANALYSIS_OUTLINE_H

#include "analysis/analysis.h"
#include "text/table.h"

struct outline_fact { /* a number that matters: "Memory", "1.2 GiB PSS", "60 % of the 2 GiB allowed" */
	const char *name;
	char *value, *detail; /* detail may be empty */
};

struct outline {
	char *title;   /* the command, or how many recordings */
	char *outcome; /* "exit 0", "killed by SIGKILL", "unfinished" */
	char *id;      /* for file names: the batch job's, else the recording's name: [A-Za-z0-9._-] */
	char *job;     /* "slurm 4711"; "" when there was none */
	char *message; /* what the user wrote with --message; "" */
	char *window;  /* which part of the run the plots are of; "": all of it */
	char *user, *nodes, *date; /* "?" when not known */
	struct outline_fact *fact;
	size_t nr_facts;
	struct text_table *table;
	size_t nr_tables;
	bool has_phases;   /* the first of the tables is that by phase: it stands before the plots */
	struct owned kept; /* all texts above; `failed`: there was no memory, for whatever it was */
};

int outline_make(const struct analysis *s, struct outline **ret);
struct outline *outline_free(struct outline *o);

/* Keeps a copy as long as the outline. Never NULL: without memory it is "". */
char *outline_keep(struct outline *o, const char *text);
#define outline_keepf(o, ...) owned_printf(&(o)->kept, __VA_ARGS__)
/* As part of a file's name: letters, digits and ._- of the text, the rest as _. */
void add_file_name(struct buf *out, const char *text);

/* The pieces of analysis/outline: not for others. */
void outline_tables(struct outline *o, const struct analysis *s);
#endif
