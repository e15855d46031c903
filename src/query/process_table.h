/* Every process of a run, however short it lived, with what is known of it. Memory grows with their number.
 */
#ifndef QUERY_PROCESS_TABLE_H
#define QUERY_PROCESS_TABLE_H

#include "base/idmap.h"
#include "metric/quantity.h"
#include "query/run.h"

#include <math.h>

/* By the kernel's mark of a process and the highest of what was sampled; NAN: not known. */
static inline bool is_between_samples(double mark, double sampled)
{
	return mark > 1.05 * sampled || (isnan(sampled) && !isnan(mark));
}

/* "How much memory": PSS where it was read ("pss"), else RSS ("rss"); where one process had more between two
 * samples than all together at any of them, that ("hwm"). Nothing else decides it. */
static inline const char *memory_answer(double mark, double rss, double pss)
{
	return is_between_samples(mark, rss) ? "hwm" : isnan(pss) ? "rss" : "pss";
}

/* clang-format off */
/* In the order of their columns. The last argument stands for the kernel's own mark. */
#define PROCESS_QUANTITIES(AMOUNT, LEVEL, ...) \
	AMOUNTS_CPU(AMOUNT) AMOUNTS_CPU_PARTS(AMOUNT) LEVELS_RSS(LEVEL) __VA_ARGS__ LEVELS_SHARED(LEVEL) LEVELS_MEMORY(LEVEL) \
	AMOUNTS_STORAGE(AMOUNT) AMOUNTS_CALLS(AMOUNT) AMOUNTS_MINOR(AMOUNT) AMOUNTS_MAJOR(AMOUNT) AMOUNTS_SWITCHES(AMOUNT) \
	LEVELS_COUNTS(LEVEL) LEVELS_ALIVE(LEVEL)

#define AMOUNT(id, name, unit, children, metric, ended, figure, stats, process) IF_##process(PROCESS_##id,)
#define LEVEL(id, name, kind, metric, figure, stats, process) IF_##process(PROCESS_##id,)
enum process_value { /* NAN when not known; s, bytes and counts. In the order of the columns */
	PROCESS_PID,
	PROCESS_PPID,
	PROCESS_UID,
	PROCESS_START,
	PROCESS_END,
	PROCESS_WALL,
	/* Amounts are its own, not its children's, but io: that is with those it waited for. Levels are peaks;
	 * of RSS the most that is known, sampled or kept by the kernel. HWM is the kernel's own mark. */
	PROCESS_QUANTITIES(AMOUNT, LEVEL, PROCESS_HWM,)
	NR_PROCESS_VALUES
};
#undef AMOUNT
#undef LEVEL
/* clang-format on */

struct process_row {
	double value[NR_PROCESS_VALUES];
	char *name, *exe, *command; /* command: NUL-parted words; "" when not known */
	char *groups;		    /* names of all it was ever in, NUL-parted; "" when in none */
	size_t name_len, exe_len, command_len, groups_len;
	char started_by[16]; /* the name of its parent, where its own is not known */
	bool command_cut;
	bool late;	  /* lived before we attached: amounts are from then on */
	bool cpu_least;	  /* its last moments are not in its CPU time */
	bool hwm_least;	  /* what it had after its last sample is not known */
	bool hwm_most;	  /* it may be that of its starter, or of children it waited for */
	bool rss_between; /* no sample saw its most RSS */
	int64_t execs;	  /* programs that it was before; memory is that of the last */
	bool sampled;	  /* else all that is known comes from its end */
	bool ended;
	int status;    /* as wait(2) gives it; -1: not known */
	char how[16];  /* reaped, exit-record, event, noticed; "lost": it ended in a gap; "": it has not ended
			*/
	uint32_t node; /* index of the recording in the run */
	uint32_t id;   /* of the instance in that recording's set of processes */
	struct process_course
		*course; /* over time (query/courses); NULL: not asked for, or never seen at a tick */
};

/* The rows of a table, in the order in which their processes were first told of: an id that comes again after
 * its end is another process. */
struct process_numbers {
	struct idmap now; /* by id, of those that have not ended */
	struct idmap all; /* by id, the last that had it; where it is kept */
	bool keeps_all;
	uint32_t first, nr;
};

struct store_record;
/* The number of a process, a new one where it has none. -ENOMEM */
int process_numbers_take(struct process_numbers *n, uint32_t id, uint32_t *ret);
/* What a record of the set of processes does to them. */
int process_number_record(struct process_numbers *n, const struct store_record *record);
void process_numbers_release(struct process_numbers *n);
static inline uint32_t process_number(const struct process_numbers *n, uint32_t id) /* IDMAP_NONE */
{
	return id ? idmap_get(&n->all, id) : IDMAP_NONE;
}

struct process_table {
	struct process_row *row;
	size_t nr, cap;
	char **host; /* of each recording */
	size_t nr_hosts;
	bool has_groups; /* some process is in one */
	/* CPU time that the kernel counted of the whole and that is in no row: the last moments of short
	 * processes. NAN: the whole is not known so exactly. */
	double cpu_in_no_row;
};

int process_table_read(const struct run *run, struct process_table **ret, struct buf *reterr);
struct process_table *process_table_free(struct process_table *t);

/* For those who read the recordings anyway: fills a table while the account of a recording is read to its
 * end, by the caller; then it goes behind those of the recordings before it. */
struct ledger;
struct process_filling;
struct process_filling *process_filling_new(struct ledger *a, uint32_t node); /* NULL: no memory */
/* The course of each of them, too. -ENOMEM */
struct courses;
int process_filling_courses(struct process_filling *f, struct courses *all, int64_t offset_ns);
struct process_filling *process_filling_free(struct process_filling *f);
/* The table of the recording, which this of several threads has read; the account is at its end. */
int process_filling_finish(
	struct process_filling *f, const struct ledger *a, unsigned worker, struct process_table **ret);
/* Those of all recordings become one, which the caller gets; the others stay behind, empty. */
int process_tables_join(struct process_table **table, size_t nr, struct process_table **ret);

enum process_order {
	ORDER_CPU, /* amounts: largest first */
	ORDER_RSS,
	ORDER_PSS,
	ORDER_IO,
	ORDER_WALL,
	ORDER_THREADS,
	ORDER_FDS,
	ORDER_FAULTS,
	ORDER_START, /* the rest: smallest first */
	ORDER_END,
	ORDER_PID,
	ORDER_NAME,
	NR_ORDERS
};

extern const char *const process_order_names[NR_ORDERS + 1]; /* NULL at the end */
/* Leaves those that lived in this part of the run, whose table it is. */
int process_table_cut(
	struct process_table *t, const struct run *run, double from_s, double to_s, struct buf *reterr);
/* What is not known comes last in any order. */
void process_table_sort(struct process_table *t, enum process_order by, bool reverse);
#endif
