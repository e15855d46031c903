/* What this machine lets us see, beside what the collectors find out by themselves: how /proc is mounted,
 * whose processes can be read, whether hardware counters may be used, which GPUs can be talked to. All but
 * the trial of the counters goes through env, so that other machines are tests. */
#ifndef NODE_PRIVILEGES_H
#define NODE_PRIVILEGES_H

#include "env/env.h"
#include "metric/schema.h"

struct permit {
	const char *source, *metric; /* names for programs */
	bool unused;		     /* nothing that this version records needs it */
	enum availability state;
	char detail[200]; /* what is the case when nothing is wrong; "" else */
	char reason[240], remedy[240];
};

enum permit_id {
	PERMIT_PROC,	   /* how /proc is mounted: hidepid, subset */
	PERMIT_OWN,	   /* one's own processes that are not our children */
	PERMIT_OTHERS,	   /* those of other users */
	PERMIT_PERF_OWN,   /* counters of one's own processes */
	PERMIT_PERF_WHOLE, /* counters of whole CPUs */
	PERMIT_NVIDIA,
	PERMIT_AMD,
	NR_PERMITS
};

void permits_read(struct env *env, struct permit ret[static NR_PERMITS]);

/* ---- the pure parts, for tests ---- */

/* Options of the file system that is mounted last on the point: "rw,hidepid=invisible". false when none is.
 */
bool mount_options(const char *mountinfo, const char *point, const char *type, char *out, size_t size);
/* The value of an option in such a list; false when it is not there. */
bool option_value(const char *options, const char *name, char *out, size_t size);
/* What two trials of perf_event_open gave (0 or a negative errno; -ENOENT: no such counter), and the setting
 * of kernel.perf_event_paranoid (INT_MIN: there is none). */
void permit_perf(int own, int whole, int paranoid, struct permit *ret_own, struct permit *ret_whole);
#endif
