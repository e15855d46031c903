/* Finds jobs in the texts of /proc and of the schedulers' tools: pure text in and out, so that every layout
 * is a test. All take hostile text. */
#ifndef TARGET_JOB_TEXT_H
#define TARGET_JOB_TEXT_H

#include "target/job.h"

/* "7", "slurm:7", "7.head", "pbs:0.head", "oar:12". The kind of a bare number is SCHEDULER_NONE: any. */
bool job_name_parse(const char *text, struct job_name *ret);
/* Is this id of this scheduler the job that is wanted? PBS jobs may be wanted without their server's name. */
bool job_name_is(const struct job_name *wanted, enum scheduler kind, const char *id, size_t len);

/* A job's control group within a path, borrowed from it. */
struct job_group {
	enum scheduler kind;
	const char *id;
	size_t id_len;
	size_t end;   /* the path up to and with the job's own group */
	bool by_name; /* SLURM 26.05 and later: id is not the job's number but the name of its group */
};

/* The job whose group is this, or above it: "/slurm_n1/uid_0/job_7/step_0", "/oar/jane_12",
 * "/pbs_jobs.service/jobid/0.head"... */
bool job_group_find(const char *path, size_t len, struct job_group *ret);
/* The next job's group in a text of proc/PID/cgroup; *at begins at 0. */
bool job_group_next(const char *text, size_t *at, struct job_group *ret);

/* Names of the variables that hold the id of a job, for getenv(); NULL after the last. *ret_beside: it is of
 * a job only where this one is set, too; NULL: in any case. */
const char *job_variable_name(unsigned nth, enum scheduler *ret_kind, const char **ret_beside);
/* Looks for the wanted job in a piece of proc/PID/environ; ret (may be NULL) gets its whole id. *ret_rest is
 * where the last, unfinished variable begins: the next piece is to be put behind it. */
bool job_environ_has(
	const char *text, size_t len, const struct job_name *wanted, struct job_name *ret, size_t *ret_rest);

/* The variables that tell a process its rank, best first: those of MPI's launchers, since ranks that mpirun
 * starts within a step of SLURM inherit SLURM's, which is the last. *ret_size: the one that tells how many
 * there are; NULL: none does. NULL after the last. */
const char *job_rank_variable(unsigned nth, const char **ret_size);

/* Which part of its job a process is, by its environment. */
struct job_part {
	char step[16]; /* "0", "batch"; "": not known */
	char rank[16]; /* among all of the step, or of MPI's world; "": it is none */
	/* What the search has found so far. */
	unsigned rank_from; /* 1 + the variable that it is from: the first of the table counts */
	bool in_slurm;
};

/* Adds what a piece of proc/PID/environ says; *ret_rest as above. After the last piece, job_part_settle(). */
void job_environ_part(const char *text, size_t len, struct job_part *part, size_t *ret_rest);
void job_part_settle(struct job_part *part);

/* The next PID of the job in the rows of `scontrol listpids`; 0: no more. */
pid_t job_listpids_next(const char *text, size_t len, size_t *at, const char *id);

struct job_process { /* from proc/PID/stat */
	char name[16];
	pid_t parent, session;
};

bool job_process_parse(const char *stat, size_t len, struct job_process *ret);

/* By its name (comm): a daemon of a scheduler, or another recorder. */
bool job_daemon_name(const char *name);
/* By its command line (words end in NUL): what OAR wraps a job in, or what started a recorder that only
 * attaches. */
bool job_daemon_cmdline(const char *cmdline, size_t len);
/* mpirun and its like, by name. */
bool job_launcher_name(const char *name);
/* Where a user's own processes end, going up: sshd, login, terminals. */
bool job_doorkeeper_name(const char *name);
#endif
