/* Walks sys/class/hwmon (Documentation/hwmon/sysfs-interface.rst).
 *
 * Numbers of chips are given out as drivers are loaded and change from boot to boot, so a chip is known by
 * its device. Drivers that register without attributes (ACPI's power meter, all drivers of old kernels) have
 * their files in the folder of the device. */
#include "collect/hwmon.h"

#include "base/str.h"
#include "read/read.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define HWMON "sys/class/hwmon"
#define CHIPS_MAX 256

struct hwmon_numbers {
	size_t nr;
	unsigned number[CHIPS_MAX];
};

/* "PREFIX" number "SUFFIX", and nothing more. */
static bool parse_numbered(const char *name, const struct hwmon_kind *kind, int64_t most, int64_t *ret)
{
	const char *at = name + strlen(kind->prefix);

	return str_starts(name, kind->prefix) && *at != '-' && read_number(&at, at + strlen(at), ret) &&
		*ret >= 0 && *ret <= most && !strcmp(at, kind->suffix);
}

/* Into its place: sorted as they come, as qsort() may allocate. */
static int add_number(void *arg, const char *name)
{
	static const struct hwmon_kind chip = {"hwmon", ""};
	struct hwmon_numbers *n = arg;
	int64_t number;
	size_t i;

	if (!parse_numbered(name, &chip, 99999, &number) || n->nr == CHIPS_MAX)
		return 0;
	for (i = n->nr++; i && n->number[i - 1] > number; i--)
		n->number[i] = n->number[i - 1];
	n->number[i] = (unsigned)number;
	return 0;
}

static int read_name(struct env *env, struct hwmon_chip *chip)
{
	char path[HWMON_PATH_SIZE];
	int r;

	snprintf(path, sizeof(path), "%s/name", chip->dir);
	r = value_get_text(env, path, chip->name, sizeof(chip->name));
	if (r > 0)
		return r;
	snprintf(path, sizeof(path), "%s/device/name", chip->dir);
	return value_get_text(env, path, chip->name, sizeof(chip->name));
}

static void read_device(struct env *env, struct hwmon_chip *chip, unsigned number)
{
	char path[HWMON_PATH_SIZE];

	snprintf(path, sizeof(path), "%s/device", chip->dir);
	if (value_get_link(env, path, chip->device, sizeof(chip->device)) <= 0)
		snprintf(chip->device, sizeof(chip->device), "hwmon%u", number);
}

int hwmon_each(struct env *env, int (*fn)(void *arg, struct hwmon_chip *chip), void *arg)
{
	struct hwmon_numbers n = {0};
	int r = env_list(env, HWMON, add_number, &n);

	for (size_t i = 0; i < n.nr && r == 0; i++) {
		struct hwmon_chip chip;

		snprintf(chip.dir, sizeof(chip.dir), HWMON "/hwmon%u", n.number[i]);
		if (read_name(env, &chip) <= 0)
			continue;
		read_device(env, &chip, n.number[i]);
		r = fn(arg, &chip);
	}
	return r;
}

struct channels {
	const struct hwmon_kind *kind;
	size_t nr_kinds, nr, max;
	struct hwmon_channel *out;
};

static bool comes_before(const struct hwmon_channel *a, const struct hwmon_channel *b)
{
	return a->kind != b->kind ? a->kind < b->kind : a->number < b->number;
}

static int add_channel(void *arg, const char *name)
{
	struct hwmon_channel new;
	struct channels *c = arg;
	int64_t number;
	size_t i;

	for (new.kind = 0; new.kind < c->nr_kinds; new.kind++)
		if (parse_numbered(name, &c->kind[new.kind], UINT16_MAX, &number))
			break;
	if (new.kind == c->nr_kinds || c->nr == c->max)
		return 0;
	new.number = (uint16_t)number;
	for (i = c->nr++; i && comes_before(&new, &c->out[i - 1]); i--)
		c->out[i] = c->out[i - 1];
	c->out[i] = new;
	return 0;
}

size_t hwmon_channels(struct env *env, struct hwmon_chip *chip, const struct hwmon_kind *kind,
	size_t nr_kinds, struct hwmon_channel *out, size_t max)
{
	struct channels c = {.kind = kind, .nr_kinds = nr_kinds, .out = out, .max = max};
	char path[sizeof(chip->dir)];

	env_list(env, chip->dir, add_channel, &c);
	if (!c.nr && snprintf(path, sizeof(path), "%s/device", chip->dir) < (int)sizeof(path)) {
		env_list(env, path, add_channel, &c);
		if (c.nr)
			memcpy(chip->dir, path, sizeof(path));
	}
	return c.nr;
}

void hwmon_label(struct env *env, const struct hwmon_chip *chip, const char *prefix, unsigned number,
	char *out, size_t size)
{
	char path[HWMON_PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s%u_label", chip->dir, prefix, number);
	if (value_get_text(env, path, out, size) <= 0)
		snprintf(out, size, "%s%u", prefix, number);
}

bool hwmon_is_gpu(const struct hwmon_chip *chip)
{
	static const char *const name[] = {"amdgpu", "radeon", "nouveau", "i915", "xe"};

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (!strcmp(chip->name, name[i]))
			return true;
	return false;
}
