/* The library that makes phases of a job's NVTX ranges. */
#ifndef CMD_NVTX_H
#define CMD_NVTX_H

#include "base/base.h"

/* Its path; false: this installation has none. */
bool nvtx_find(char *out, size_t size);
/* NAME=PATH for the job's environment, to be freed. NULL: another tool is served, or there is no library;
 * why is said. */
char *nvtx_variable(void);
#endif
