/* The rows of the quantities: see quantity.h. */
#include "metric/quantity.h"

/* clang-format off */
#define METRIC(area, leaf) "proc." area "." leaf
#define OF_CHILDREN_METRIC(area, leaf) "proc." area ".children_" leaf
#define IF_APART(...) __VA_ARGS__
#define IF_WITHIN(...)
#define IF_NOWHERE(...)
#define IF_SUM(...)
#define ENDED(key_, per, help) .key = key_, .account_key = "account." key_, .per_unit = per
#define IS_PROCESS(...) true
#define IS_NO_PROCESS false

const struct quantity quantity[NR_USED] = {
#define ROW(id, name, unit, kids, of, ended, figure, stats, process) \
	[USED_##id] = {.metric = of, IF_##kids(.children_metric = OF_CHILDREN_##of,) .children = CHILDREN_##kids, ended, \
		UNLESS_SUM_##kids(.tree_gone = "tree.gone." name, .group_gone = "group.gone." name,) \
		.is_time = QUANTITY_UNIT_##unit == UNIT_SECONDS, .of_processes = IS_##process},
	AMOUNTS(ROW)
#undef ROW
};

#define READ(metric) metric
#define FROM(metric) metric

const char *const level_metric[NR_LEVELS] = {
#define ROW(id, name, kind, metric, ...) [LEVEL_##id] = metric,
	LEVELS(ROW)
#undef ROW
#define ROW(id, name, kind, metric, ...) [LEVEL_##id##_ESTIMATED] = metric,
	LEVELS_SHARED(ROW)
#undef ROW
};
