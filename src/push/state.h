/* What was sent of a recording to one address: a file beside it, NAME.push-SINK for NAME.tacho
 * (NAME.push-SINK-2 … for further addresses), or in $XDG_CACHE_HOME/tacho/push where nothing can be written
 * beside it. A pusher that was killed goes on by it, and `tacho push --status` shows it. While it is open no
 * other pusher has it.
 *
 * One object of JSON, replaced at once. It holds no secrets. */
#ifndef PUSH_STATE_H
#define PUSH_STATE_H

#include "base/buf.h"
#include "query/meta.h"

struct push_position { /* of a table: what is up to this time is sent, or was refused for good */
	char *table;
	int64_t time_ns; /* wall clock */
};

struct push_note {
	char *key, *value;
};

struct push_state {
	char *path, *recording;
	int lock;		/* the file; -1: only read */
	bool exists, elsewhere; /* elsewhere: in the cache directory */
	char *sink, *address, *host;
	int64_t start_ns; /* of the recording */
	struct push_position *position;
	size_t nr_positions;
	struct push_note *note;
	size_t nr_notes;
	char *where;	/* for people; NULL */
	char *why;	/* of what waits; NULL: nothing is wrong */
	int64_t why_ns; /* since when */
	char *refused;	/* the server's words about points that it never takes; NULL: it took all */
	int64_t points, dropped, requests, bytes;
	int64_t sent_ns; /* wall clock of the last success; 0: none yet */
	bool all, done;	 /* all points were sent; and the end was told, too */
};

/* The one of this address, locked. Made anew when it is of another recording that had the name. -EBUSY:
 * another pusher has it; others. reterr says what is wrong, and what to do. With `only_read` it need not be
 * there, and nothing is written. */
int push_state_open(const char *recording, const struct meta *meta, const char *sink, const char *address,
	bool only_read, struct push_state **ret, struct buf *reterr);
struct push_state *push_state_close(struct push_state *s);
int push_state_save(struct push_state *s);

int64_t push_position(const struct push_state *s, const char *table); /* INT64_MIN: nothing was sent */
int push_position_set(struct push_state *s, const char *table, int64_t time_ns);
/* Why it waits; NULL: it goes on. */
void push_state_why(struct push_state *s, const char *why, int64_t now_ns);
void push_state_refused(struct push_state *s, const char *words);

/* All states of a recording, to be looked at. */
int push_states_of(const char *recording, const struct meta *meta, struct push_state ***ret, size_t *ret_nr);

/* Those that lead to the file, the user's own where they are not there: whether it worked is seen when the
 * file is made. */
void push_make_directories(const char *path);
#endif
