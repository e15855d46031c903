/* Times as logs have them: ISO-8601, or seconds since 1970. */
#ifndef BASE_ISO_TIME_H
#define BASE_ISO_TIME_H

#include "base/base.h"

/* "2026-11-18T09:35:55.123+01:00", "2026-11-18 09:35:55Z", "…T09:35"; without a zone it is UTC. ns since
 * 1970; false and *ret untouched when it is none. */
bool parse_iso_time(const char *text, size_t len, int64_t *ret);
/* "1794995495.456": seconds, with up to nine digits that count. */
bool parse_epoch_time(const char *text, size_t len, int64_t *ret);
/* Seconds as a number of JSON, to ns; not negative. */
bool parse_seconds(const char *text, size_t len, int64_t *ret);
#endif
