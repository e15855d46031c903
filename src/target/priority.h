/* Our own place in the queue for CPUs: on a machine with a thousand runnable tasks a recorder that is one of
 * them does not run when samples matter most. */
#ifndef TARGET_PRIORITY_H
#define TARGET_PRIORITY_H

#include "base/base.h"

enum priority_kind {
	PRIORITY_NONE,	   /* an ordinary task */
	PRIORITY_NICE,	   /* a nice value below the one we were started with */
	PRIORITY_REALTIME, /* the lowest real-time priority, for some milliseconds of a second */
};

struct priority {
	enum priority_kind kind;
	int nice;      /* as it is now */
	int error;     /* of the real-time priority that was not given, negative errno */
	char text[48]; /* "real-time priority 1", "nice -20", "none": for the metadata and for people */
};

/* Takes the best nice value for the calling thread, and finds out whether a real-time priority would be
 * given. To be called after the job was started: neither it nor threads that are made later inherit anything
 * (SCHED_RESET_ON_FORK). */
void priority_raise(struct priority *ret);
/* To be called before each tick but the first: takes the real-time priority, with a thread that watches over
 * it, which a job of milliseconds does without. If we have computed for too long we become an ordinary task
 * for a while: this decides by the CPU time that we have used so far, and takes the priority again later.
 * Cheap. */
void priority_keep(int64_t cpu_ns);
/* Back to what was found: the summary is not urgent. */
void priority_lower(void);
#endif
