/* What this machine lets us see, beside what the collectors find out by themselves: how /proc is mounted,
 * which processes can be read, what keeps us from GPUs. All goes through env, so that other machines are
 * tests. */
#ifndef NODE_PRIVILEGES_H
#define NODE_PRIVILEGES_H

#include "env/env.h"
#include "metric/schema.h"

struct permit {
	const char *source, *metric; /* names for programs */
	enum availability state;
	char detail[200]; /* the state when nothing is wrong; "" else */
	char reason[240], remedy[240];
};

enum permit_id {
	PERMIT_PROC,   /* how /proc is mounted: hidepid, subset */
	PERMIT_OWN,    /* processes of our own user that are not our children */
	PERMIT_OTHERS, /* those of other users */
	PERMIT_NVIDIA,
	PERMIT_AMD,
	PERMIT_INTEL,
	NR_PERMITS
};

void permit_grant(struct permit *p, const char *detail);
void permit_refuse(
	struct permit *p, enum availability state, const char *reason, const char *remedy); /* may be NULL */

void permits_read(struct env *env, struct permit ret[static NR_PERMITS]);

/* ---- the pure parts, for tests ---- */

/* Options of the file system that is mounted last on the point: "rw,hidepid=invisible". false when none is.
 */
bool mount_options(const char *mountinfo, const char *point, const char *type, char *out, size_t size);
/* The value of an option in such a list; false when it is not there. */
bool option_value(const char *options, const char *name, char *out, size_t size);

/* What a remedy gives to others, or takes from them: a half sentence, NULL when there is no risk. */
const char *remedy_risk(const char *remedy);
#endif
