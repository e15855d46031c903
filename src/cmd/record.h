/* What run and attach have in common: one recording, from its file's creation to its end. */
#ifndef CMD_RECORD_H
#define CMD_RECORD_H

#include "base/buf.h"
#include "base/owned.h"
#include "cmd/record_options.h"
#include "cmd/sink.h"
#include "engine/engine.h"
#include "target/command.h"
#include "target/job_socket.h"
#include "target/log_watch.h"
#include "target/priority.h"
#include "target/scope.h"

struct recording {
	const struct record_options *opt;
	const struct cmd *cmd;
	struct env *env;
	struct engine *engine;
	struct scopes scopes;
	struct store_sink sink;
	struct own_cgroup *group;
	struct cgroups *places; /* the groups that we are in, until the limits were read; NULL: not known */
	struct command command;
	struct priority priority;
	struct record_log *log;	  /* --run-log; NULL: none */
	struct job_node *node;	  /* we record one node of several; NULL: we are alone */
	struct job_socket socket; /* where the job tells of its phases and marks */
	struct log_watch watch;	  /* its logs */
	int64_t watch_ns;	  /* when they are looked at again */
	int64_t deaf_ns;	  /* until then messages wait: they come in a flood */
	bool at_edge;		  /* a phase has begun or ended just now */
	int share_error;	  /* of cgroup_share() */
	struct buf path;
	int argc, nr_targets; /* the command of run; the targets of attach */
	char **argv, **targets;
	bool attach, wait_for_tree;
	uint64_t waits_seen;   /* the sample after which the job's processes were last asked whether they wait
				  for us */
	unsigned waits;	       /* and how often in a row all did */
	bool others_hidden;    /* a target names processes that /proc does not show us */
	struct redact *redact; /* secrets in command lines */
	bool command_blanked;  /* one was in the job's own command line, which is that of a process, too */
	unsigned help;	       /* which of the kernel's help may be used */
	char **events;	       /* of -e, one each */
	size_t nr_events;
	int pidfd[16]; /* of the attached roots: their end is noticed at once */
	unsigned nr_pidfds;
	bool unwatched;			    /* not all of them have one: an old kernel */
	bool until_exit;		    /* attach: end with the processes that were named */
	void (*began)(struct recording *r); /* is told when the first sample is written; may be NULL */
	bool strict;			    /* run: --strict, no job without a recording */
	bool recorded;			    /* there is something to report */
	bool over;			    /* nothing is recorded any more */
	bool stopped_alone;		    /* the command, while we go on */
	bool told_to_end;
	bool pushes; /* --push: the pushers were started */
	pid_t pusher[OPT_LIST_MAX];
	unsigned nr_pushers;
	bool serves;		/* --serve: the server was started */
	int64_t end_ns;		/* when --duration ends; INT64_MAX */
	const char *until_file; /* NULL: none */
	int64_t until_check_ns;
	uint64_t limits_written; /* groups whose limits are written */
};

/* Checks the options; the recording is zeroed. Wrong use dies with EXIT_OWN and a message; our own trouble is
 * record_fail()'s, here and below. The words are the command of run or the targets of attach. The caller then
 * adds scopes, if any.
 */
void record_prepare(struct recording *r, const struct cmd *cmd, const struct record_options *opt, bool attach,
	int argc, char **argv);
/* The engine and its signals: all that can fail before the job starts, except the file. */
void record_open(struct recording *r);
/* Makes the file, unless it is there: there is something to record. Time 0 is now. A literal --output that
 * exists dies with EXIT_OWN: run must come here before it starts the job. */
void record_start(struct recording *r);
/* Adds a process that runs already to the group. */
int record_attach(struct recording *r, pid_t pid, int group);
/* Waits until there is a process; false when a signal or the instant came first. */
bool record_wait_for_members(struct recording *r, int64_t until);
/* Samples until the job, the tree, the duration, the file or (attach) a signal ends it. */
void record_loop(struct recording *r);
void record_report(struct recording *r);
/* What is recorded and what is not, and why, a line for each source. */
int record_verbose(const char *path, unsigned width, struct buf *out);
/* Leaves no file behind: the job never started, or is not recorded. */
void record_discard(struct recording *r);

/* record_fail.c: it cannot be recorded, for a reason that is ours (a negative errno; the text says what was
 * tried). Comes back only where the job runs already, with r->over set: the caller goes on without a
 * recording. Otherwise attach and --strict die with EXIT_OWN, and run becomes the job. */
void record_fail(struct recording *r, int error, const char *fmt, ...) _printf_(3, 4);
/* Dies with 126 or 127. */
void cannot_run(const char *name, int error) __attribute__((noreturn));

/* record_marks.c: what the job tells. The socket, where one can be made; what the command finds in its
 * environment (texts that the caller frees, the last one NULL); what has come since. */
void record_listen(struct recording *r);
void record_variables(const struct recording *r, char *ret[static 3]);
void record_hear(struct recording *r);
/* --watch: what has come in the job's logs. */
void record_watch_open(struct recording *r);
void record_watch(struct recording *r);
/* A file that we write is not to be watched: where it is asked for, dies with EXIT_OWN. */
void record_watch_avoid(struct recording *r, const char *ours, const char *what);
/* After the last one: how many were lost. */
void record_listen_end(struct recording *r);

/* record_log.c: the run log. The sink that it listens to, if one is asked for; the file; what the recording
 * says of itself; the moment from which on the machine is described; the end mark; or it is not wanted. */
struct sink record_log_sink(struct recording *r, struct sink next);
void record_log_open(struct recording *r);
void record_log_meta(struct recording *r, const struct pairs *meta);
void record_log_described(struct recording *r);
void record_log_end(struct recording *r, const struct pairs *ending);
void record_log_discard(struct recording *r);

/* job_node.c: what the launcher of a job on many nodes says, and what it is told. The descriptor to wait for
 * (-1: none); what has come; the first sample is taken; how the recording ends, or NULL. */
int job_node_fd(const struct recording *r);
int64_t job_node_wait(const struct recording *r, int64_t until); /* not longer than to there */
void job_node_hear(struct recording *r);
void job_node_began(struct recording *r);
const char *job_node_ended(struct recording *r, bool only_waits);
const char *job_node_target(const struct recording *r); /* what it is attached to; NULL: we are alone */

/* record_beside.c: a text as words with blanks between, of which one in quotation marks may have some; and
 * another tacho with these words (NULL at the end), which the recorder does not wait for. `speaks`: it has
 * our stderr. */
#define BESIDE_WORDS_MOST 128
size_t beside_words(char *text, char **ret, size_t most);
bool beside_closed(const char *text); /* each quotation mark has its second one */
pid_t beside_start(struct recording *r, char **word, bool speaks);
/* record_serve.c: starts the server, once. */
void record_serve(struct recording *r);
/* record_push.c: says what is missing for --push; starts the pushers, once; what the user is told at the end.
 */
void record_push_check(struct recording *r);
void record_push(struct recording *r);
void record_push_report(const struct recording *r);

/* Whether the file begins with FINISHED. */
bool says_finished(const char *path);
/* The directories of a file that is about to be made. A negative errno. */
int make_parents(const char *path);

/* record_meta.c: what the recording is about; then what is known when the job runs. */
int record_begin(struct recording *r, int argc, char **argv);
void record_read_limits(struct recording *r); /* once; they are written by the next */
void record_describe(struct recording *r);
/* The limits of groups that have come since the last call. Between ticks. */
void record_describe_groups(struct recording *r);
void record_describe_machine(struct recording *r); /* when the node's sets are described */
/* At the end: the schema of a job that was too short for the node's sets, and which those are. */
void record_settle(struct recording *r);
#endif
