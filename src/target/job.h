/* A batch system's job on this node: which one, and which processes are its own.
 *
 * SLURM, PBS and OAR; of LSF and SGE the variables are known. The ways to find out, best first: control
 * groups, the scheduler's own tool, the environment and session of processes, the tree of the launcher we run
 * under. The first that finds a process is used for the whole recording, and is reported. */
#ifndef TARGET_JOB_H
#define TARGET_JOB_H

#include "env/env.h"

enum scheduler {
	SCHEDULER_NONE,
	SCHEDULER_SLURM,
	SCHEDULER_PBS,
	SCHEDULER_OAR,
	SCHEDULER_LSF,
	SCHEDULER_SGE,
	NR_SCHEDULERS
};

struct job_name {
	enum scheduler kind;
	char id[128];
};

const char *scheduler_name(enum scheduler kind); /* "slurm", "pbs", ...; NULL for none */
/* The job we run in, by our environment, then by our control group. false: in none. */
bool job_here(struct env *env, struct job_name *ret);

/* Its hosts, each once, separated by commas; SLURM's list as it is written. "" when not known. */
void job_nodes(struct env *env, enum scheduler kind, char *out, size_t size);
/* The same as a list; none when it is not known. -EINVAL: the list is no list of hosts; a negative errno. */
struct host_list;
int job_hosts(struct env *env, enum scheduler kind, struct host_list *ret);
int job_hosts_in_file(struct env *env, const char *path, struct host_list *ret);

struct job;

/* The job of this id (NULL or "": the one we run in) and its processes on this node. *ret_found_by says how:
 * "cgroup", "scontrol", "environment", "session", "launcher". -ESRCH: none of its processes is here now (it
 * may be starting: try again). -ENOENT: we are in no job and none was named. -EACCES: its processes are
 * hidden from us. -EINVAL: no scheduler has such ids. err (at least 256 bytes) gets a message for people. */
int job_open(struct env *env, const char *id, struct job **ret, const char **ret_found_by, char *err,
	size_t err_size);
/* The same of a job that has no processes here yet: they are taken in as they come. Without a scheduler these
 * are all processes of this user below mpirun and its like, and what the tacho that has started us starts.
 * Negative errno as above, but never -ESRCH. */
int job_expect(struct env *env, const char *id, struct job **ret, const char **ret_found_by, char *err,
	size_t err_size);
struct job *job_close(struct job *job);
const struct job_name *job_name(const struct job *job);
/* All its processes now; slurmstepd, tacho itself and other daemons of the scheduler are left out. fn returns
 * 0 to go on. For the start and, where this is the only way (scontrol), every few seconds. */
int job_list(struct job *job, int (*fn)(void *arg, pid_t pid), void *arg);
/* Does this new process belong to it? Cheap: at most one small file of the process is read. Children of
 * members are taken in by the caller anyway. Allocates nothing. */
bool job_takes(struct job *job, pid_t pid);
/* Its step and its rank, as far as its environment can be read. Allocates nothing. */
struct job_part;
void job_part_of(struct job *job, pid_t pid, struct job_part *ret);
/* A daemon of the scheduler among the job's processes: never a member, but its children may be. */
bool job_is_daemon(struct job *job, pid_t pid);
/* It only waits for us, or for what has started us: when all processes of the job do, the job is over. */
bool job_waits_for_us(struct job *job, pid_t pid);
/* The same of the shell of a script that has started us, when we are in no job on this node. */
bool job_shell_waits(struct env *env, pid_t shell);
/* mpirun or its like has started us, as one of its tasks. */
bool job_launcher_started_us(struct env *env);
/* Its control group, as proc/PID/cgroup of one of its processes names it; false: none is known. */
bool job_cgroup(struct job *job, pid_t pid, char *out, size_t size);
/* Listing finds processes that job_takes() does not, and is cheap here: call job_list() every few seconds.
 * Where this is false, a listing looks at all processes of the machine, and is for the start only. */
bool job_needs_listing(const struct job *job);
#endif
