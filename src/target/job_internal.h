/* What the ways to find a job's processes share. */
#ifndef TARGET_JOB_INTERNAL_H
#define TARGET_JOB_INTERNAL_H

#include "target/job.h"
#include "target/job_text.h"

#include <limits.h>

#define DEPTH_MAX 12 /* groups below a job's own, and ancestors of ours times ten: more is damage */
#define LEADERS 64

enum job_way { WAY_CGROUP, WAY_SCONTROL, WAY_ENVIRONMENT, WAY_SESSION, WAY_LAUNCHER, NR_WAYS };

struct job {
	struct env *env;
	struct job_name name;
	bool here;     /* we run in it */
	pid_t starter; /* of an expected one without a scheduler: the tacho that has started us, and the
			  command; 0: none */
	bool expected; /* without a scheduler: what is below any launcher of this user is taken in when it
			  comes */
	enum job_way way;
	pid_t self;
	char group[128]; /* SLURM 26.05 and later: the name of its group, where that is not its number */
	char dir[PATH_MAX + NAME_MAX + 2]; /* its control group's, as env takes it; "": not visible */
	size_t dir_len;
	pid_t session; /* ours */
	pid_t top;     /* of the launcher's tree; 0: the launchers of our session */
	struct {       /* is the leader of this session of the job? Direct-mapped, for one listing. */
		pid_t pid;
		bool yes;
	} leader[LEADERS];
	struct scontrol *scontrol;
	bool sees_environ; /* environments of its processes can be read */
	unsigned nr;	   /* of the listing: processes handed out, */
	unsigned hidden;   /* those we may not look at, */
	unsigned vanished; /* those that are not in /proc: they have just ended, or are hidden as a whole, */
	unsigned denied;   /* environments that we may not read, */
	int stop;	   /* and what fn ended it with */
	int (*fn)(void *arg, pid_t pid);
	void *arg;
	char text[32768];
};

/* A file of a process into job->text; as env_slurp(). */
ssize_t job_read_of(struct job *job, pid_t pid, const char *file);
bool job_read_process(struct job *job, pid_t pid, struct job_process *ret);
/* 1: its environment names the job, and ret (may be NULL) gets the whole name; 0: it does not; or an error.
 */
int job_environ_has_it(struct job *job, pid_t pid, struct job_name *ret);
/* All processes but ourselves; fn returns 0 to go on. */
int job_scan_all(struct job *job, int (*fn)(struct job *job, pid_t pid));
/* Passes a process of the job to the listing's caller, unless it is a daemon or ourselves. */
int job_hand_out(struct job *job, pid_t pid);

/* Each way's: 1 when it knows the job and has listed its processes, 0 when it does not know it, -ESRCH when
 * it does and there are none. */
int job_open_group(struct job *job);
int job_open_launcher(struct job *job);
/* Our own group is the job's, and its directory is known from now on. */
bool job_expect_group(struct job *job);
int job_list_group(struct job *job);
bool job_in_group(struct job *job, pid_t pid, struct job_group *ret);
bool job_is_below(struct job *job, pid_t pid);
/* For job_scan_all(): hands out what is below the launcher. */
int job_take_below(struct job *job, pid_t pid);
#endif
