/* Phases and events that were added to a recording afterwards (`tacho annotate`): a file beside it,
 * NAME.notes.jsonl for NAME.tacho. The recording is never changed. The walk gives them to its observers as
 * the events `phase.begin`, `phase.end` and `mark`, at their times, so every reader sees them as recorded
 * ones.
 *
 * The first line says of which recording they are, how many follow, and their checksum; each other line is
 * {"time_ns", "kind", "name", "data": {KEY: VALUE}}, by time. docs/runlog.md describes it for users. */
#ifndef QUERY_SIDECAR_H
#define QUERY_SIDECAR_H

#include "base/buf.h"
#include "query/meta.h"

#define SIDECAR_SUFFIX ".notes.jsonl"
#define SIDECAR_NOTES_MOST 200000
#define SIDECAR_BYTES_MOST ((size_t)64 << 20)

enum note_kind { NOTE_BEGIN, NOTE_END, NOTE_MARK, NR_NOTE_KINDS };

struct sidecar_note {
	int64_t time_ns; /* on the recording's clock */
	enum note_kind kind;
	char *name, *data; /* data: KEY=VALUE, NULs between */
	size_t name_len, data_len;
	/* While notes are added: of a phase's two the same number; whether it has no length. */
	uint32_t phase;
	bool instant;
};

struct sidecar {
	int64_t start_wall_ns, start_monotonic_ns; /* of the recording they belong to */
	char *host;
	struct sidecar_note *note;
	size_t nr;
};

/* As events have it: "phase.begin". */
extern const char *const note_kind_name[NR_NOTE_KINDS];

/* "DIR/NAME.notes.jsonl"; NULL: no memory. */
char *sidecar_path(const char *recording);
/* Of a recording that says this of itself, without notes. -ENOMEM. */
int sidecar_new(const struct meta *meta, struct sidecar **ret);
struct sidecar *sidecar_free(struct sidecar *s);
/* Copies. -E2BIG beyond SIDECAR_NOTES_MOST, -ENOMEM. */
int sidecar_add(struct sidecar *s, const struct sidecar_note *note);
/* By time; an end comes before what begins at the same time. */
void sidecar_sort(struct sidecar *s);

/* What there is: 0, and *ret is NULL when there is none. -EBADMSG and others: `why` says what is wrong with
 * it, as a half sentence ("is damaged"). */
int sidecar_read(const char *recording, struct sidecar **ret, struct buf *why);
/* `wall`: what the recording's own clock showed at its start. */
bool sidecar_is_of(const struct sidecar *s, const struct meta *meta, int64_t wall);
/* There is a file of its name that was not made here: it is not ours to replace or remove. */
bool sidecar_is_foreign(const char *recording);
/* Replaces the file at once, or leaves it as it was. -EEXIST: it is a foreign one. */
int sidecar_write(const char *recording, const struct sidecar *s);
/* Reads what the recording says of itself. */
int sidecar_meta(const char *recording, struct meta *ret_meta, struct meta *ret_ending);
/* What a user should know of the notes beside the recording: `why` is empty when all is well. */
void sidecar_check(const char *recording, struct buf *why);

/* ---- lines of a log that the job wrote ---- */

struct annotate_counts {
	size_t phases, events;
	size_t other_hosts, left_out;
	size_t first_line; /* that was left out, from 1 */
	const char *first_why;
};

/* Adds phases and events of the text (which ends with a NUL), a JSON object a line, that lie within the
 * recording's time. */
int sidecar_annotate(
	struct sidecar *s, const char *text, size_t len, int64_t end_ns, struct annotate_counts *ret);
#endif
