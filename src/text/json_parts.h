/* Pieces of JSON that the files of report/ share: not for others. */
#ifndef REPORT_JSON_PARTS_H
#define REPORT_JSON_PARTS_H

#include "base/json.h"
#include "text/summary.h"

/* "argv": the words of a command, which NULs part. */
void json_argv(struct json *j, const char *words, size_t len);
/* "perf": what was counted, by name; and the reasons why some of it was not. */
void json_counters(struct json *j, const struct summary *s);
void json_counters_reasons(struct json *j, const struct summary *s);
/* "gpus": a list; each has its own reasons. Of a group of processes, what it used of each. */
void json_gpus(struct json *j, const struct summary *s);
#endif
