/* Numbers for people. Each writes into the caller's array and returns it, so calls nest in printf. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include "base/base.h"

#define UNITS_SIZE 40
/* Room for one, as long as the block in which it stands: format_bytes(SHOWN, n). */
#define SHOWN ((char[UNITS_SIZE]){0})

char *format_bytes(char out[static UNITS_SIZE], double bytes);	    /* "3.1 GiB", "212 MiB", "512 B" */
char *format_count(char out[static UNITS_SIZE], double count);	    /* "4,812", "1.2 M" from a million on */
char *format_duration(char out[static UNITS_SIZE], double seconds); /* "1m42s", "0.31s", "2h03m", "12ms" */
char *format_iso8601(char out[static UNITS_SIZE], int64_t wall_ns); /* "2026-11-15T19:30:00.123Z" */
char *format_number(char out[static UNITS_SIZE], double value); /* three significant digits: "0.3", "6.52" */
/* For programs: the fewest digits that give it back. Whole numbers below 2^53 in full, without an exponent.
 */
char *format_exact(char out[static UNITS_SIZE], double value);
#endif
