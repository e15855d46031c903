/* The pieces of query/phases: what is kept of a phase while its recording is read. Not for others. */
#ifndef QUERY_PHASES_INTERNAL_H
#define QUERY_PHASES_INTERNAL_H

#include "query/counter_sum.h"
#include "query/phases.h"
#include "query/totals.h"

#define NR_HELD (LEVEL_PROCESSES + 1) /* levels, without what of them is estimated */
#define GPU_SLOTS 16		      /* devices that are kept apart; the rest share the last */

/* Metrics that are followed beside the ledger: what may tell why a repetition was slow. */
enum phase_cause {
	CAUSE_CPU_GROUP,
	CAUSE_CPU_NODE,
	CAUSE_IO_GROUP,
	CAUSE_IO_NODE,
	CAUSE_MEMORY_GROUP,
	CAUSE_MEMORY_NODE,
	CAUSE_RUN_QUEUE,
	CAUSE_SWAP_IN,
	CAUSE_THERMAL,
	CAUSE_CLOCK,
	NR_CAUSES
};

enum slot_sum { SLOT_UTIL, SLOT_ELAPSED, SLOT_METER, SLOT_POWER, SLOT_THROTTLED, NR_SLOT_SUMS };

/* Running sums since the start: s, bytes, counts, J; of levels their integrals over time. */
enum phase_sum {
	SUM_USED,
	SUM_HELD = SUM_USED + NR_USED,
	SUM_KNOWN = SUM_HELD + NR_HELD, /* the time for which a level was known */
	SUM_TOTAL = SUM_KNOWN + NR_HELD,
	SUM_CAUSE = SUM_TOTAL + NR_TOTALS,
	SUM_CLOCK_S = SUM_CAUSE + NR_CAUSES, /* the time for which clocks were known */
	SUM_EVENT,
	SUM_SLOT = SUM_EVENT + PHASE_EVENTS,
	NR_SUMS = SUM_SLOT + GPU_SLOTS * NR_SLOT_SUMS
};

enum phase_peak { PEAK_HELD, PEAK_SLOT = PEAK_HELD + NR_HELD, NR_PEAKS = PEAK_SLOT + GPU_SLOTS };

/* Amounts that tell whether much of a phase is interpolated. */
enum phase_unsure { UNSURE_CPU, UNSURE_READ, UNSURE_WRITTEN, NR_UNSURE };

/* What was gathered over some time. */
struct phase_sums {
	int64_t wall_ns;
	double sum[NR_SUMS];
	double peak[NR_PEAKS];	  /* NAN: nothing yet */
	double mark;		  /* bytes: of one process that began and ended in it; NAN: of none */
	double unsure[NR_UNSURE]; /* of an amount: what the edges may have put into it wrongly, or left out */
};

/* One repetition that is over. */
struct phase_span {
	uint32_t fold;
	int parent; /* the phase around it; -1: none */
	char *name; /* escaped */
	int64_t begin_ns, end_ns;
	uint32_t senders;
	bool cut, brief;
	struct phase_sums of;
};

/* All repetitions of one name. */
struct fold_of_phases {
	char *name, *key; /* of the first, escaped; with # for each number */
	uint64_t hash;	  /* of the key */
	uint64_t varied;  /* mask: numbers of the name that were not always the same */
	uint32_t count;
	uint32_t brief; /* of them, those with fewer than two ticks */
	int parent;	/* -1: none, or not always the same; PARENT_NONE_YET */
	int64_t begin_ns, end_ns;
	bool cut;
	uint32_t senders;
	/* The time in which at least one is open. */
	uint32_t nr_open;
	int64_t since_ns;
	double base[NR_SUMS];
	struct phase_sums of;
};

#define PARENT_NONE_YET (-2)

/* What a recording knows at its end. */
struct phase_known {
	uint32_t used, totals, causes; /* masks */
	uint32_t slots;		       /* GPUs of the job */
	uint32_t metered;	       /* of these, those with a counter of energy */
	uint32_t nr_clocks;	       /* CPUs whose frequency is known */
	uint32_t events, whole_events; /* masks: that were counted; of them, those in whole numbers */
};

void sums_clear(struct phase_sums *s);
/* The second peak counts where it is higher. */
void raise_peaks(double *peak, const double *other);
void make_values(const struct phase_sums *s, const struct phase_known *known, double *value);

/* An edge takes this share of what was used between two ticks. */
void edge_unsure(struct phase_sums *of, const double *before, const double *next, double share);

/* What was gathered as numbers of the run. Names are taken. */
int make_phase(struct fold_of_phases *f, int64_t offset_ns, const struct phase_known *k, struct phase *p);
void make_repetition(struct phase_span *s, int64_t offset_ns, const struct phase_known *k, struct phase *p);

/* Numbers the repetitions, puts phases in order, and makes the statistics of their repetitions. */
int phases_settle(struct phases *p);
#endif
