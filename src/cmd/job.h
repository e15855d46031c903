/* `tacho job`: one recorder on each node of a reservation, and their recordings as one run.
 *
 *	job.c		the command: the job's beginning, its end, what is made of it
 *	job_launch.c	how a recorder is started on each node: a row for srun, oarsh, ssh ...
 *	job_hear.c	what the nodes say: states, clocks, the log
 *	job_directory.c	the directory of the run: run.json, tacho.log, clock/
 *	job_json.c	run.json
 *	job_node.c	the recorder of one node
 */
#ifndef CMD_JOB_H
#define CMD_JOB_H

#include "base/owned.h"
#include "cmd/record_options.h"
#include "node/host_list.h"
#include "target/job.h"
#include "target/job_line.h"
#include "target/node_lock.h"

#include <limits.h>

struct job_args {
	struct record_options record;
	const char *save_dir, *prefix, *launcher, *hostfile;
	int64_t checkpoint_ns; /* 0: as --flush */
	const char *system, *partition, *software;
	struct opt_list export;
	bool report;
	/* Of the recorder of a node, which is started with these. */
	const char *on_node; /* the directory of the run */
	const char *node_name, *job_id;
	struct opt_list granted; /* NAME=VALUE: variables of the job that a step of ours has not */
	bool by_files;
};

extern const struct cmd cmd_job;

/* ---- the directory ---- */

struct job_directory {
	char path[PATH_MAX]; /* absolute */
	int log;
};

#define JOB_CONTROL "control" /* contains FINISHED when the run is over */
#define JOB_LAUNCHER_LINES "clock/launcher.lines"

/* Makes DIR/NAME, or DIR/NAME-2 ... where that is the directory of another run. A negative errno. */
int job_directory_make(struct job_directory *d, const char *save_dir, const char *name);
/* A file in it; the text is valid until the next call. */
const char *job_directory_file(const struct job_directory *d, const char *fmt, ...) _printf_(2, 3);
/* One line "time | level | host | message". */
void job_log(struct job_directory *d, const char *level, const char *host, const char *fmt, ...)
	_printf_(4, 5);
int job_directory_write(const struct job_directory *d, const char *name, const struct buf *text);
/* run.json, at the beginning and again at the end. */
struct job_run;
/* The beginning of COMMAND, words that end in NUL, without what is known to be a secret. Returns its length.
 */
size_t job_command_words(const struct job_run *run, char *ret, size_t size);
int job_json_write(struct job_run *run, bool ended, int status);
/* What the launcher says to all nodes, without words of ours: FINISHED. */
void job_directory_finish(const struct job_directory *d);

/* ---- nodes ---- */

enum recorder_state { NODE_EXPECTED, NODE_HELLO, NODE_RECORDING, NODE_ENDED, NODE_LOST };

struct node_of_run {
	const char *name;
	enum recorder_state state;
	char *why;	     /* of a node that was lost; NULL: not known */
	char *said;	     /* what its recorder, or what starts that, said last without a name */
	int64_t answered_ns; /* when it last told the time; monotonic */
};

struct job_launch;

#define CLOCK_ROUNDS_KEPT 16

struct job_run {
	const struct job_args *args;
	int argc;
	char **argv; /* COMMAND, if any */
	struct env *env;
	struct job_name name; /* kind SCHEDULER_NONE and id "": in no job */
	char id[160];	      /* of the run: the job's, or of the time */
	struct host_list hosts;
	struct node_of_run *node;
	struct job_directory directory;
	const struct launcher *launcher; /* NULL: all nodes are this one */
	struct job_launch *launch;
	size_t nr_launches, nr_started;
	int lines;	/* what we say where there are files instead of pipes; -1: none */
	uint64_t round; /* the number of the last question for the time, */
	int64_t asked_ns[CLOCK_ROUNDS_KEPT]; /* and when the last ones were asked, by number */
	bool asked_early;		     /* questions soon after the beginning were asked */
	unsigned rounds_left;		     /* of those that follow each other closely */
	int64_t next_round_ns;		     /* monotonic */
	bool over;			     /* what is left of the job waits for us */
	bool ending;			     /* the recorders were told */
	int64_t start_wall_ns;
};

/* ---- launching ---- */

struct job_launch {
	size_t first, nr; /* nodes */
	bool local;	  /* on this node, without a launcher */
	int component;	  /* of a heterogeneous job of SLURM; -1: it is none */
	pid_t pid;	  /* 0: not started, or ended */
	bool started;
	unsigned again; /* how often it was started again */
	struct job_line line;
	struct job_line *files; /* one for each node, where the launcher has no pipes; NULL */
};

/* Starts a program and gives its output to read; its PID, or -1. */
pid_t job_start_reading(const char *program, char *const *argv, int *ret);
/* Chooses how; -EINVAL with a message for people. */
int job_launcher_choose(struct job_run *run, struct buf *err);
const char *job_launcher_name_of(const struct job_run *run);
/* Makes the list of what is to be started. A negative errno. */
int job_launch_plan(struct job_run *run);
/* Starts as many as may be at once. */
void job_launch_more(struct job_run *run);
void job_launch_ended(struct job_run *run, pid_t pid, int status);
bool job_launch_running(const struct job_run *run);
void job_launch_close(struct job_run *run);
/* No recorder is beside us that could see what is left of the job's script. */
bool job_launch_is_elsewhere(const struct job_run *run);
/* A word of COMMAND, as the recorder of a node is given it, is this one. */
char *job_word_of_command(char *word);
/* Names of the variables that say what memory the job was granted; NULL behind the last. */
const char *job_granted_variable(size_t i);

/* ---- what nodes say ---- */

int64_t job_now(void);
int64_t job_wall(void);
/* Reads what has come. */
void job_nodes_hear(struct job_run *run);
void job_nodes_say(struct job_run *run, const char *fmt, ...) _printf_(2, 3);
/* Asks for the time so many times, from now on. */
void job_nodes_ask_clocks(struct job_run *run, unsigned times);
/* What is due now: questions for the time. Returns when to come again. */
int64_t job_nodes_tend(struct job_run *run);
size_t job_nodes_in(const struct job_run *run, enum recorder_state state);
void job_node_lost(struct job_run *run, size_t i, const char *why);

/* The recorder of a node. */
int job_node_run(const struct job_args *args, int argc, char **argv);
#endif
