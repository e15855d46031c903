/* The summary of a run, for people and for programs. */
#ifndef TEXT_SUMMARY_H
#define TEXT_SUMMARY_H

#include "base/json.h"
#include "query/summary.h"

struct summary_style {
	bool color;
	bool utf8;	     /* block characters and other letters than ASCII may be used */
	bool hint;	     /* say what can be done with the file */
	unsigned width;	     /* columns of the terminal */
	const char *finding; /* of the whole run, which ends the summary; NULL: none */
};

/* A block for each recording, and one for all of them when there are several. -ENOMEM. */
int summary_print(const struct summary *s, const struct summary_style *style, struct buf *out);
/* How it ended, in a few words: "exit 0", "killed by SIGKILL", "unfinished", "attached". */
void summary_outcome(const struct summary *s, struct buf *line);
/* One object, as documented: null for what could not be measured, with the reason under "unavailable". */
void summary_json(const struct summary *s, struct buf *out);
/* At most so many repetitions of phases are told one by one, and as many of all nodes together. */
void summary_json_brief(const struct summary *s, size_t repetitions, struct buf *out);
/* Of that object the member "command". */
void json_command(struct json *j, const struct summary *s);
#endif
