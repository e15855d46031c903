/* Variables of the environment that others have defined for their clients. */
#ifndef PUSH_VARIABLES_H
#define PUSH_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

/* NULL where it is not set or empty. */
static inline const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* The first of these names, which NULL ends, that is set. */
static inline const char *variable_of(const char *const *name)
{
	const char *value = NULL;

	for (size_t i = 0; name[i] && !value; i++)
		value = variable(name[i]);
	return value;
}

static inline bool variable_true(const char *name)
{
	const char *value = variable(name);

	return value && (!strcasecmp(value, "true") || !strcasecmp(value, "1") || !strcasecmp(value, "yes"));
}
#endif
