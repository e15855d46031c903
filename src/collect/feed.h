/* Numbers that the engine itself keeps, offered to the collectors `tree` and `self` as one more source.
 * A negative value means: not known here. */
#ifndef COLLECT_FEED_H
#define COLLECT_FEED_H

#include "collect/app.h"
#include "metric/quantity.h"

#include <sys/types.h>

/* At most so many collectors, and so many groups of processes: a process's groups are one 64-bit mask. */
#define COLLECTORS_MAX 48
#define GROUPS_MAX 64

/* One group of processes, as `feed` has it of all. */
struct group_feed {
	const char *name, *kind, *target; /* target as the user wrote it */
	bool own;			  /* what waited-for children used is not counted */
	int64_t live, joined, exited, unsampled;
	struct usage gone;
	int64_t gone_max_rss_kib;
};

struct feed {
	pid_t root;	  /* the job's first process, or the first that was found; 0: none yet */
	uint32_t root_id; /* its instance in the process set */
	/* The control group of the batch job that is recorded, as proc/PID/cgroup names it; NULL: none is
	 * known.
	 */
	const char *job_group;
	/* What the job may use; 0: not known. */
	int64_t limit_cpus_milli, limit_memory_bytes;
	/* The tree. Used so far = sum over live processes (own + waited-for children) + gone. */
	int64_t live;	/* processes now */
	int64_t joined; /* processes ever known one by one */
	int64_t exited;
	int64_t unsampled; /* of the joined, those that were gone before their first sample */
	int64_t unknown;   /* processes that may have run unseen: an upper bound; 0 when all were reported */
	struct usage gone; /* of processes that no live member accounts for */
	int64_t gone_max_rss_kib;
	int64_t dropped_us; /* of gone: CPU of children whose parent ignored SIGCHLD, as last seen: a lower
			       bound */
	int64_t assumed;    /* orphans that joined an attached tree because they look like its own */
	int64_t escaped;    /* orphans that may have come from the attached tree, and are not counted */
	int64_t outside;    /* processes of the job that were found outside the control group made for it */
	int64_t cgroup_user_ns, cgroup_system_ns, cgroup_total_ns, cgroup_memory_peak;

	/* The recorder. */
	int64_t self_cpu_ns, self_rss_kib;
	int64_t late_ns;    /* this tick */
	int64_t late_ticks; /* later than a tenth of the interval */
	int64_t missed_ticks;
	int64_t skipped_ticks;	 /* left out to stay within the budget */
	int64_t reads_deferred;	 /* of processes */
	int64_t clocks_deferred; /* of processes that sleep */
	int64_t smaps_reads, smaps_deferred;
	int64_t backoff; /* the slow tiers run at 1/backoff of their cadence */
	int64_t written_bytes;
	int64_t events_lost; /* messages of the kernel that overran our buffer */
	int64_t open_files;
	int64_t cost_ns[COLLECTORS_MAX]; /* by collector, in the order of the registry */

	uint32_t nr_groups;
	struct group_feed group[GROUPS_MAX];
	struct app_numbers app;
};
#endif
