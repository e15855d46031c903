/* Which open phase an end closes: of those of its name, the youngest of those that match best. */
#ifndef QUERY_SPEAKER_H
#define QUERY_SPEAKER_H

#include "base/pairs.h"

/* What told of the phase; 0: not known. The process is the kernel's word. The thread and the parent are the
 * sender's own, perhaps with the numbers of a container: they only help to find the pair. */
struct speaker {
	int64_t pid, thread;
	int64_t parent; /* the shell that called `tacho phase` */
};

static inline struct speaker speaker_in(const struct pairs *pairs)
{
	struct speaker s = {0};

	pairs_get_num(pairs, "pid", &s.pid);
	pairs_get_num(pairs, "thread", &s.thread);
	pairs_get_num(pairs, "parent", &s.parent);
	return s;
}

/* When it was told: by the sender's own clock where that is known, since a burst waits for the recorder. */
static inline int64_t told_ns(int64_t time_ns, const struct pairs *pairs)
{
	int64_t sent = time_ns;

	pairs_get_num(pairs, "sent_ns", &sent);
	return MAX(MIN(sent, time_ns), 0);
}

/* How well an end fits to a beginning of its name: the higher the better, and never 0. The end may come from
 * the shell itself: that becomes its last command, without a new process. */
#define SPEAKER_SAME 5
static inline unsigned speaker_match(const struct speaker *begun, const struct speaker *ended)
{
	if (begun->pid == ended->pid)
		return begun->thread == ended->thread ? SPEAKER_SAME : 4;
	if ((begun->parent && begun->parent == ended->pid) || (ended->parent && ended->parent == begun->pid))
		return 3;
	return begun->parent && begun->parent == ended->parent ? 2 : 1;
}
#endif
