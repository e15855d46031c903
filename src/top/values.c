/* The metrics that `top` shows: see values.h. */
#include "top/values.h"

const struct top_value_row top_value_row[NR_TOP_VALUES] = {
#define X(id, metric, of_group, combine) [TOP_##id] = {metric, of_group, TOP_##combine},
	TOP_VALUES(X)
#undef X
};

const char *const process_value_metric[NR_OF_PROCESS_READ] = {
#define X(id, metric) [OF_PROCESS_##id] = metric,
	PROCESS_VALUES(X)
#undef X
};

const char *const gpu_value_metric[NR_OF_GPU] = {
	[OF_GPU_UTIL] = "gpu.util",
	[OF_GPU_MEMORY] = "gpu.memory.used",
	[OF_GPU_TOTAL] = "gpu.memory.total",
	[OF_GPU_WATTS] = "gpu.watts",
};
