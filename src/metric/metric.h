/* One metric is one row of one table, next to the code that reads it.
 *
 * From the row come the column on disk, `tacho metrics`, docs/metrics.md, CSV headers, JSON keys, axes and
 * titles. Nothing outside the collector that owns the row may name a metric, except the summary, which is
 * the definition of a handful of derived numbers.
 *
 * Cells hold the source's own integers (jiffies, pages, KiB). `scale` says how to get the base unit, and only
 * query/ applies it. */
#ifndef METRIC_METRIC_H
#define METRIC_METRIC_H

#include "base/base.h"

#include <string.h>

enum metric_kind {
	KIND_COUNTER,  /* only grows; a fall is a reset. Its rate has meaning, its level has not */
	KIND_GAUGE,    /* a level; mean, min and max have meaning */
	KIND_PEAK,     /* a high-water mark kept by the kernel */
	KIND_CONSTANT, /* does not change in a run */
	NR_KINDS
};

enum metric_fold { /* how instances become one: processes to the tree, CPUs to the node */
	FOLD_SUM,
	FOLD_MEAN,
	FOLD_MAX,
	FOLD_NONE,
	NR_FOLDS
};

enum metric_unit {
	UNIT_COUNT,
	UNIT_BYTES,
	UNIT_SECONDS,
	UNIT_RATIO,
	UNIT_CODE,
	UNIT_JOULES,
	UNIT_WATTS,
	UNIT_CELSIUS,
	UNIT_HERTZ,
	UNIT_FLOP, /* floating-point operations */
	NR_UNITS
};

enum metric_scale { /* stored value x scale = base unit */
	SCALE_ONE,
	SCALE_KIB,
	SCALE_PAGES, /* the machine's page size */
	SCALE_TICKS, /* the machine's clock tick, USER_HZ */
	SCALE_NS,
	SCALE_US,
	SCALE_CENTI,   /* "0.52" read as 52 */
	SCALE_PERCENT, /* "12.34" percent read as 1234 */
	SCALE_MILLI,   /* millidegrees, milliseconds */
	SCALE_MICRO,   /* microjoules, microwatts */
	SCALE_KILO,    /* kilohertz */
	SCALE_MEGA,    /* megahertz */
	SCALE_SECTORS, /* 512 bytes, whatever the disk's own */
	SCALE_REAL,    /* 1, and the cell's bits are those of a double */
	NR_SCALES
};

enum metric_tier {   /* what reading it costs, and so how often it is read */
	TIER_TICK,   /* every tick */
	TIER_MEDIUM, /* every few seconds */
	TIER_SLOW,   /* when the budget allows */
	NR_TIERS
};

enum domain { /* what an instance is */
	DOMAIN_NODE,
	DOMAIN_CPU,
	DOMAIN_PROCESS,
	DOMAIN_TREE,
	DOMAIN_COLLECTOR,
	DOMAIN_GROUP, /* processes chosen by one target, or one tool of them */
	DOMAIN_NET,
	DOMAIN_IB,
	DOMAIN_DISK,
	DOMAIN_FILESYSTEM, /* local space; network file systems' clients */
	DOMAIN_ENERGY,
	DOMAIN_SENSOR,
	DOMAIN_CGROUP,
	DOMAIN_GPU,
	DOMAIN_GPU_PROCESS, /* one process on one GPU */
	DOMAIN_PERF,	    /* what the processor counted for the whole tree */
	DOMAIN_SOCKET,	    /* a processor package with its memory controllers */
	DOMAIN_APP,	    /* numbers that the job tells of itself */
	NR_DOMAINS
};

struct metric_at {	  /* where in its source; which members count is the reader's business */
	const char *key;  /* "MemAvailable" */
	const char *file; /* when the collector reads several */
	int16_t source;	  /* which of the collector's sources */
	int16_t col;	  /* which column, from 1 as the manual counts */
	int32_t arg;
};

struct metric {
	const char *name; /* "mem.available": stable for ever, [a-z0-9_.] */
	const char *help; /* one sentence */
	struct metric_at at;
	enum metric_scale scale;
	enum metric_kind kind;
	enum metric_fold fold;
	enum metric_unit unit;
	const char *panel; /* the plot whose axis it shares; NULL: not drawn by default */
	enum metric_tier tier;
	bool on_request; /* recorded only when asked for with -m */
};

/* Most columns a collector may have: the validity of a row is one 64-bit mask. */
#define METRICS_MAX 64
/* Most rows it may have to choose them from. */
#define CHOICES_MAX 128

/* Names on disk, on screen and back; NULL or negative when there is no such thing. */
const char *kind_name(enum metric_kind kind);
const char *fold_name(enum metric_fold fold);
const char *unit_name(enum metric_unit unit);
const char *tier_name(enum metric_tier tier);
const char *domain_name(enum domain domain);
int kind_from_name(const char *name, size_t len);
int fold_from_name(const char *name, size_t len);
int unit_from_name(const char *name, size_t len);
int tier_from_name(const char *name, size_t len);
int domain_from_name(const char *name, size_t len);

double scale_factor(enum metric_scale scale, long page_size, long clock_tick);

/* How cells become base units. A scale such as 1e-9 is a division by a whole number: its result is the
 * decimal that people expect, where a product may be off by one bit (0.004980999999999999). */
struct scaling {
	double times, per;
	bool real; /* the cell is a double, and the other two are 1 */
};

struct scaling scaling_of(double scale);

static inline double scaled(struct scaling s, double cell)
{
	return s.per == 1 ? cell * s.times : cell * s.times / s.per; /* a division takes long */
}

/* A double as a cell has it, and back. What is not finite is not known. */
static inline int64_t cell_of_real(double value)
{
	int64_t cell;

	memcpy(&cell, &value, sizeof(cell));
	return cell;
}

static inline double real_of_cell(int64_t cell)
{
	double value;

	memcpy(&value, &cell, sizeof(value));
	return __builtin_isfinite(value) ? value : __builtin_nan("");
}

/* What a cell says, in its unit. */
static inline double cell_in_unit(struct scaling s, int64_t cell)
{
	return s.real ? real_of_cell(cell) : scaled(s, (double)cell);
}
#endif
