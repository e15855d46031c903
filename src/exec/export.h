/* The inside of `tacho export`. */
#ifndef EXEC_EXPORT_H
#define EXEC_EXPORT_H

#include "cmd/export.h"
#include "cmd/operands.h"
#include "cmd/output.h"
#include "export/outlet.h"

#define EXPORT_FORMATS_MOST 32
#define EXPORT_NAMES_MOST 256

/* What tacho-export does; the rows are those of the main table. */
int export_run(const void *args, int argc, char **argv);

/* One exporter at work: on one file, or on a directory of its own. */
struct export_target {
	const struct exporter *format;
	struct export_job job;
	struct outlet out;
	int fd;		 /* -1: none, or standard output */
	char *path;	 /* the name it will have; "-"; OWN_FILES: the directory its files go to, as "DIR/" */
	char *temporary; /* NULL: standard output */
	void *exporter;	 /* NULL: not open, or closed */
};

struct export
{
	const struct export_args *args;
	const struct run *run;
	const struct progress *progress;
	const struct exporter *format[EXPORT_FORMATS_MOST];
	size_t nr_formats;
	enum export_layout layout;
	struct range_args range;
	struct tables_told told; /* of the run, where one of its phases was asked for; NULL: none was */
	const char *domain[EXPORT_NAMES_MOST], *metric[EXPORT_NAMES_MOST];
	char *words[3 * OPT_LIST_MAX]; /* whose parts the names are */
	size_t nr_words;
	struct tables_options options;
	const struct data_table *table;
	size_t nr_tables;
	const struct data_table *folded; /* beside them, for formats that take them */
	size_t nr_folded;
	struct tables *tables; /* that are being read */
	struct export_target *target;
	size_t nr_targets;
	struct outputs out;	       /* the directory they go to, and where they are made */
	const char *stage;	       /* in it; NULL: standard output */
	const struct summary *figures; /* where a format wants them */
	struct buf summary, err;
	struct buf taken; /* names of files that are there */
	struct tables_damage damage;
	bool has_rows; /* in tables of time */
};

/* How long the ending is by which the path is a file of this format; 0: it is none. */
size_t format_ending(const struct exporter *f, const char *path);
/* By options: formats, names. What makes no sense ends the program. */
void export_choose(struct export *x);
/* The part of the time, once the run is open. */
void export_choose_range(struct export *x);
void export_forget(struct export *x);
/* A target for each file, with its name, and the stage; EXIT_OK, or the trouble that was told. */
int export_place(struct export *x, int argc, char **argv);

/* Whether the files of a target may take their names; they do, and the names are added to `taken`, a line
 * each. */
int export_check(const struct export_target *t, bool force);
int export_take(const struct export_target *t, bool force, struct buf *taken);
/* Reads the run as often as the formats need, and closes them. */
int export_pour(struct export *x);
/* Reads the summary for those formats that want it. Returns the exit status. */
int export_summarize(struct export *x);
/* The run cannot be read: says why. Returns the exit status. */
int export_unread(struct export *x, int err);
#endif
