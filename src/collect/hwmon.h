/* Chips of sys/class/hwmon and their channels, for the collectors of energy and of temperatures. */
#ifndef COLLECT_HWMON_H
#define COLLECT_HWMON_H

#include "env/env.h"

#define HWMON_NAME_SIZE 40
#define HWMON_PATH_SIZE 160

struct hwmon_chip {
	char dir[64];		      /* where its files are: "sys/class/hwmon/hwmon3" or "…/device" */
	char name[HWMON_NAME_SIZE];   /* "coretemp" */
	char device[HWMON_NAME_SIZE]; /* what stays when numbers change: "coretemp.1", else "hwmon3" */
};

/* Calls fn for each chip in the order of their numbers until it returns other than 0, which is returned. */
int hwmon_each(struct env *env, int (*fn)(void *arg, struct hwmon_chip *chip), void *arg);

/* A kind of channel is named by what its files begin and end with: "temp" and "_input". */
struct hwmon_kind {
	const char *prefix, *suffix;
};
struct hwmon_channel {
	uint16_t kind, number;
};

/* The channels of these kinds, by kind and number, at most `max`; how many there are. Finds them in the
 * device's own folder when the chip's has none, and then points chip->dir there. */
size_t hwmon_channels(struct env *env, struct hwmon_chip *chip, const struct hwmon_kind *kind,
	size_t nr_kinds, struct hwmon_channel *out, size_t max);
/* What the channel is called: its label, else its own name ("temp1"). */
void hwmon_label(struct env *env, const struct hwmon_chip *chip, const char *prefix, unsigned number,
	char *out, size_t size);
/* Accelerators have collectors of their own, and a sleeping one must not be woken by reading its sensors. */
bool hwmon_is_gpu(const struct hwmon_chip *chip);
#endif
