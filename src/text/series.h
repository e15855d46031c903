/* Time series as lines of text: aligned, CSV or JSON. Written piece by piece, since a series may be longer
 * than memory: the caller takes what is in `out` whenever it likes. */
#ifndef TEXT_SERIES_H
#define TEXT_SERIES_H

#include "base/progress.h"
#include "query/phases.h"
#include "query/run.h"
#include "query/series.h"
#include "text/table.h"

struct series_page {
	enum text_form form; /* text, CSV or JSON */
	bool several;	     /* recordings: each line says of which host it is */
	bool per_instance;
	bool utf8;
	double offset_s; /* from the run's start to this recording's */
	/* Each line also has the time since the start of this phase; NULL: none is asked for. */
	const struct phases *phases;
	const struct phase *phase;
};

/* All recordings of a run, one after the other. `take` gets the text in pieces, whenever there is enough;
 * what it returns ends the work unless it is 0. Returns that, or a negative errno with the reason for people:
 * -ENOENT and -EINVAL when the question was wrong. */
struct series_taker {
	int (*take)(void *arg, const struct buf *piece);
	void *arg;
};

/* Several questions that are answered from one reading of each recording. */
struct series_wanted {
	struct series_query query; /* without a range or a group */
	struct series_page page;   /* not FORM_JSON */
	struct series_taker taker;
};

int series_pour_together(const struct run *run, const struct series_wanted *wanted, size_t nr,
	const struct progress *progress, struct buf *reterr);
int series_pour(const struct run *run, const struct series_query *query, struct series_page *page,
	const struct series_taker *taker, struct buf *reterr);
#endif
