/* The run log as text: JSON lines as pytyche's RunLog writes them, and lines for people. */
#ifndef TEXT_RUNLOG_H
#define TEXT_RUNLOG_H

#include "base/json.h"
#include "query/run.h"
#include "query/runlog.h"
#include "text/table.h"

/* {"ts", "type": "phase", "name", "seconds", …} or {"ts", "type": "event", "event", "data"}, and a newline.
 * `host` is added where it is not NULL. */
void runlog_json(
	const struct runlog *log, const struct runlog_entry *entry, const char *host, struct buf *out);

struct runlog_page {
	bool utf8, color;
	bool several;	 /* recordings: each line says of which host it is */
	double offset_s; /* of this recording's start after that of the run */
};

/* One line: time since the start, time of day, kind, text. */
void runlog_print(const struct runlog *log, const struct runlog_entry *entry, const struct runlog_page *page,
	struct buf *out);

/* All lines of a run, each given to `put`: JSON, or for people with `page` (whose `several` and `offset_s`
 * are found out here). Of several recordings they come in the order of time, and say of which host they are.
 */
int runlog_lines(const struct run *run, const struct runlog_page *page,
	int (*put)(void *arg, const void *line, size_t len), void *arg, struct buf *reterr);

/* The numbers that are known, as an object. */
void resources_json(const struct resources *r, struct json *j, const char *key);
#endif
