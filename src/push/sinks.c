/* The sinks: a new one is its file and a line here. */
#include "push/sink.h"

#include <string.h>

extern const struct push_sink push_mlflow, push_prometheus, push_influx, push_otlp, push_tensorboard;

const struct push_sink *const push_sinks[] = {
	&push_mlflow,
	&push_prometheus,
	&push_influx,
	&push_otlp,
	&push_tensorboard,
	NULL,
};

const struct push_sink *push_sink_find(const char *name, size_t len)
{
	for (size_t i = 0; push_sinks[i]; i++)
		if (strlen(push_sinks[i]->name) == len && !memcmp(push_sinks[i]->name, name, len))
			return push_sinks[i];
	return NULL;
}
