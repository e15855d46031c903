/* What is pushed when nothing else is asked for: some thirty metrics that people look at, a row each. */
#ifndef PUSH_NAMES_H
#define PUSH_NAMES_H

#include "push/sink.h"

/* NULL-terminated; `name` is the metric's own. */
extern const struct push_name push_usual[];
/* The same of each process, and of each group. */
extern const struct push_name push_usual_process[], push_usual_group[];
#endif
