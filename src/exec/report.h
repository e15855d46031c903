/* The pieces of `tacho report`: not for others. */
#ifndef EXEC_REPORT_H
#define EXEC_REPORT_H

#include "cmd/output.h"
#include "cmd/report.h"
#include "document/document.h"
#include "analysis/outline.h"

enum report_format {
	FORMAT_HTML = 1 << 0,
	FORMAT_MD = 1 << 1,
	FORMAT_PDF = 1 << 2,
	FORMAT_PNG = 1 << 3,
	FORMAT_SVG = 1 << 4,
	FORMAT_JSON = 1 << 5,
	FORMAT_GITHUB = 1 << 6,
};

#define GITHUB_MOST (((size_t)1 << 20) - 1) /* that GitHub takes of a step */

#define FORMATS_OF_PICTURES (FORMAT_PNG | FORMAT_SVG)

/* Where everything goes. */
struct places {
	unsigned formats;
	bool tree;	  /* a directory with fixed names; else files of one name beside each other */
	char *directory;  /* to be made; NULL: it is there */
	char *stem;	  /* of all paths, up to the name: "results/" of a tree, "runs/job" */
	char *only;	  /* the one file that was named, or "-"; else NULL */
	char *plots;	  /* directory of the pictures */
	char *step;	  /* GitHub's own file for the summary of this step; NULL: there is none */
	char *plots_link; /* the same as seen from the Markdown: "plots/%s.png" */
};

/* By options and operands; what makes no sense ends the program. */
void places_choose(
	struct places *ret, const struct report_args *args, int argc, char **argv, const struct run *run);
void places_release(struct places *p);
/* Path of a document; its name in a tree may have the run's id in it, which is NULL while it is not known
 * (then so is the path, where it depends on it). The caller frees it. */
char *place_of(const struct places *p, enum report_format format, const char *id);

struct report {
	const struct report_args *args;
	const struct run *run;
	const struct progress *progress;
	struct places places;
	struct outputs out;
	struct buf said; /* paths of what was made, for stdout: a line each */
	struct analysis *analysis;
	struct charts *charts;
	struct outline *outline;
};

/* Each makes one kind of files and notes where; EXIT_OK, or the trouble that was told. */
int report_pictures(struct report *r);
int report_metrics(struct report *r);
int report_configs(struct report *r);
/* Appends to the summary of GitHub's step, when all else is there. */
int report_step(struct report *r);

/* The last line of a page, which says what run it is of. */
void page_mark(const struct analysis *a, struct buf *out);
/* The file is a page of this run (NULL: of any), and the user's: the next one may replace it. */
bool page_is_own(const char *path, const struct analysis *of);
/* In the user's browser. EXIT_OK, or the trouble that was told. */
int page_open(const char *path);

/* "path" on stdout once all is there, for programs that open it. */
int say_path(struct report *r, const char *path);
#endif
