/* Reading one process. The engine walks the members; this knows which files of /proc/PID to read, when,
 * and which cells they fill. The rows are in process_rows.h. */
#ifndef COLLECT_PROCESS_H
#define COLLECT_PROCESS_H

#include "collect/collector.h"

#include <sys/types.h>

struct processes;

/* What a reading gives the engine besides the cells. */
struct process_facts {
	pid_t ppid;
	uint64_t start_ticks; /* after boot; identifies the process together with the pid */
	char state;
	char name[64]; /* comm as the kernel has it, NUL-terminated, any bytes */
	bool has_stat;
	bool ended; /* all its threads have ended; its account does not grow any more */
	bool bare;  /* it has no memory any more */
	bool ignores_sigchld;
	bool children_grew;    /* it has waited for children since the last reading */
	struct usage children; /* by how much (first: since its birth): faults, CPU time in whole ticks */
	bool has_status;
	int64_t faults;	  /* page faults since the reading before */
	int64_t replaced; /* the image that an exec since the reading before replaced; 0: none */
};

/* ctx->table's rows are the engine's slots. max_files: descriptors that may be kept open. */
int processes_open(struct processes **ret, struct collect_context *ctx, unsigned max_files);
struct processes *processes_close(struct processes *p);
unsigned processes_open_files(const struct processes *p);

/* A process takes the row; nothing is opened before its first reading. */
void process_bind(struct processes *p, uint32_t row, pid_t pid);
void process_unbind(struct processes *p, uint32_t row);

enum process_effort {
	READ_IF_MOVED, /* nothing when its CPU clock has not moved */
	READ_REFRESH, /* also stat and statm of a sleeping process: it can get another parent, and reclaim can
			 take its pages */
	READ_ACCOUNT, /* the part of its first reading that is added up: stat, statm and io */
	READ_ALL,
};

/* Reads the files of the tick tier, and status with `medium`; with `follow` also when its page faults say
 * that its memory may have been larger than any sample saw. `clock` is its CPU time (env_cpu_clock()).
 * Returns 1 when it was read, 0 when it slept, -ESRCH when it is gone. */
int process_read(struct processes *p, uint32_t row, int64_t clock, bool medium, bool follow,
	enum process_effort effort, struct process_facts *facts);
/* Takes its CPU time without reading anything; false when it has not moved since it was read. */
bool process_put_clock(struct processes *p, uint32_t row, int64_t clock);
/* PSS and USS: expensive. */
int process_read_smaps(struct processes *p, uint32_t row);
bool processes_want_smaps(const struct processes *p);
/* Pages by which RSS differs from what the last smaps reading saw; when there was none INT64_MAX, or less if
 * it was just forked and its memory is its parent's. */
int64_t process_smaps_drift(const struct processes *p, uint32_t row);
/* It is large, and since its PSS was read another process has got, extended or freed large shared memory. */
bool process_is_outshared(const struct processes *p, uint32_t row);
int64_t processes_reshared(const struct processes *p);
/* Not read yet: takes what it has of its parent's memory since the fork. Both are read at this tick. */
void process_inherit(struct processes *p, uint32_t row, uint32_t parent);
#define NO_PARENT UINT32_MAX
/* It was read: reduces the doubt of its family members that were not read. */
void process_tell_family(struct processes *p, uint32_t row, uint32_t parent);
/* When no more is read at this tick: records how much of its PSS is in doubt. */
void process_tell_doubt(struct processes *p, uint32_t row, uint32_t parent);
/* Whether a reading since the last call found that processes may have stopped sharing; the sharers are to be
 * rechecked. */
bool processes_are_wary(struct processes *p);
/* If it shares much: reads its RSS again. If it has ended or freed memory since its own reading, that is in
 * the PSS of others already. */
void process_recheck(struct processes *p, uint32_t row);
/* All that it has read and written is known. */
bool process_io_is_whole(const struct processes *p, uint32_t row);
/* Around the wait for it, a child of ours: where the io of an ended process is unreadable, the growth of our
 * own counters by the wait is what it used. No other thread of ours may read or write meanwhile. */
void process_before_wait(struct processes *p, uint32_t row);
void process_after_wait(struct processes *p, uint32_t row);
/* It has waited for children. */
bool process_has_waited(const struct processes *p, uint32_t row);
int64_t process_rss_pages(const struct processes *p, uint32_t row);
/* Its image: the same in a forked child, another after an exec; 0: not known. */
int64_t process_image(const struct processes *p, uint32_t row);
/* The high-water mark that was read of it is another program's. */
void process_forget_peak(struct processes *p, uint32_t row);

/* A cell by the name of its metric; false when it is not recorded or not valid. */
bool process_cell(const struct processes *p, uint32_t row, const char *metric, int64_t *ret);

/* Its identity: reads the command line (NUL separated, at most size bytes) and the executable. */
ssize_t process_cmdline(struct env *env, pid_t pid, char *out, size_t size, bool *ret_cut);
ssize_t process_exe(struct env *env, pid_t pid, char *out, size_t size);
/* Its real user: as its last reading saw it, if that read status; else it is read now. */
int process_uid(const struct processes *p, uint32_t row, pid_t pid, uint32_t *ret);
int process_uid_now(struct env *env, pid_t pid, uint32_t *ret);
/* Parses the text of proc/PID/stat; false when it is not one. fields[n] is field n of proc(5), up to `last`.
 */
bool process_parse_stat(
	const char *text, size_t len, int64_t *fields, unsigned last, struct process_facts *facts);
#define STAT_FIELDS 53
#endif
