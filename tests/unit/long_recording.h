/* A recording of any length, as a real job would leave it: for measuring how long reports take, and that
 * their memory does not grow. All rows of the recorder are in its schema; the same arguments give the same
 * file. */
#ifndef LONG_RECORDING_H
#define LONG_RECORDING_H

#include "base/base.h"

struct long_recording {
	const char *host;
	const char *group[2];  /* names of the two groups of its processes; NULL: solvers, loaders */
	int64_t start_wall_ns; /* 0: some day */
	uint64_t seconds;
	double hz;
	uint32_t processes; /* alive at once; they come and go */
};

int long_recording_write(const char *path, const struct long_recording *r);
#endif
