/* Pieces of JSON that the files of text/ share: not for others. */
#ifndef TEXT_JSON_PARTS_H
#define TEXT_JSON_PARTS_H

#include "base/json.h"
#include "text/summary.h"

/* A list of words that NULs part: those of a command, names of groups. */
void json_words(struct json *j, const char *key, const char *words, size_t len);
/* null when there is a reason why it is not known. */
void json_figure(struct json *j, const char *key, const struct figure *f, bool whole);
/* "perf": what was counted, by name; and the reasons why some of it was not. */
void json_counters(struct json *j, const struct summary *s);
void json_counters_reasons(struct json *j, const struct summary *s);
/* "gpus": a list; each has its own reasons. Of a group of processes, what it used of each. */
void json_gpus(struct json *j, const struct summary *s);
#endif
