/* What tacho-serve does (exec/serve.c). */
#ifndef EXEC_SERVE_H
#define EXEC_SERVE_H

#include "cmd/serve.h"

int serve_run(const void *args, int argc, char **argv);
#endif
