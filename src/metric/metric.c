/* The names of kinds, folds, units, tiers and domains, and the scales of cells. */
#include "metric/metric.h"

#include <string.h>

static const char *const kind_names[NR_KINDS] = {"counter", "gauge", "peak", "constant"};
static const char *const fold_names[NR_FOLDS] = {"sum", "mean", "max", "none"};
static const char *const unit_names[NR_UNITS] = {
	"count", "bytes", "seconds", "ratio", "code", "joules", "watts", "celsius", "hertz", "flop"};
static const char *const tier_names[NR_TIERS] = {"tick", "medium", "slow"};
static const char *const domain_names[NR_DOMAINS] = {"node", "cpu", "process", "tree", "collector", "group",
	"net", "ib", "disk", "filesystem", "energy", "sensor", "cgroup", "gpu", "gpu_process", "perf",
	"socket", "app"};

static int from_name(const char *const *names, int nr, const char *name, size_t len)
{
	for (int i = 0; i < nr; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return i;
	return -ENOENT;
}

#define NAME_TABLE(type, prefix, names)                                 \
	const char *prefix##_name(enum type v)                          \
	{                                                               \
		return (size_t)v < ARRAY_SIZE(names) ? names[v] : NULL; \
	}                                                               \
	int prefix##_from_name(const char *name, size_t len)            \
	{                                                               \
		return from_name(names, ARRAY_SIZE(names), name, len);  \
	}

NAME_TABLE(metric_kind, kind, kind_names)
NAME_TABLE(metric_fold, fold, fold_names)
NAME_TABLE(metric_unit, unit, unit_names)
NAME_TABLE(metric_tier, tier, tier_names)
NAME_TABLE(domain, domain, domain_names)

double scale_factor(enum metric_scale scale, long page_size, long clock_tick)
{
	switch (scale) {
	case SCALE_KIB:
		return 1024;
	case SCALE_PAGES:
		return (double)page_size;
	case SCALE_TICKS:
		return 1.0 / (double)clock_tick;
	case SCALE_NS:
		return 1e-9;
	case SCALE_US:
		return 1e-6;
	case SCALE_CENTI:
		return 0.01;
	case SCALE_MILLI:
		return 0.001;
	case SCALE_MICRO:
		return 1e-6;
	case SCALE_KILO:
		return 1000;
	case SCALE_MEGA:
		return 1e6;
	case SCALE_SECTORS:
		return 512;
	case SCALE_PERCENT:
		return 0.0001;
	default:
		return 1;
	}
}

struct scaling scaling_of(double scale)
{
	double per = scale > 1e-15 && scale < 1 ? (double)(int64_t)(1 / scale + 0.5) : 1;

	if (per > 1 && __builtin_fabs(per * scale - 1) < 1e-12)
		return (struct scaling){1, per, false};
	return (struct scaling){scale, 1, false};
}
