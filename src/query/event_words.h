/* What an event of the recorder says to people: "SIGTERM", "the clock was set back by 3.0s". */
#ifndef QUERY_EVENT_WORDS_H
#define QUERY_EVENT_WORDS_H

#include "base/pairs.h"

/* Escaped. Of a kind that this version does not know it is the kind. */
void event_words(struct buf *out, const char *kind, const struct pairs *pairs);
/* Something that the job told is not recorded, or a log of it told nothing: readers of a summary should know.
 */
bool is_left_out(const char *kind);
#endif
