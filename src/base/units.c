/* Numbers for people: bytes, counts, durations, times. */
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Three significant digits, as people read them: 3.14, 31.4, 314. */
static int decimals(double v)
{
	v = fabs(v);
	return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

char *format_number(char out[static UNITS_SIZE], double value)
{
	snprintf(out, UNITS_SIZE, "%.*f", decimals(value), value);
	if (strchr(out, '.')) {
		char *end = out + strlen(out);

		while (end[-1] == '0')
			*--end = 0;
		if (end[-1] == '.')
			end[-1] = 0;
	}
	return out;
}

char *format_bytes(char out[static UNITS_SIZE], double bytes)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	char number[UNITS_SIZE];
	size_t i = 0;

	while (fabs(bytes) >= 1023.5 && i + 1 < ARRAY_SIZE(unit)) {
		bytes /= 1024;
		i++;
	}
	snprintf(out, UNITS_SIZE, "%.20s %s",
		i ? format_number(number, bytes) : (snprintf(number, sizeof(number), "%.0f", bytes), number),
		unit[i]);
	return out;
}

char *format_count(char out[static UNITS_SIZE], double count)
{
	static const char *const unit[] = {"M", "G", "T", "P", "E"};
	char number[UNITS_SIZE];
	size_t i = 0;

	if (fabs(count) < 999999.5) {
		long v = (long)round_i64(count);

		if (labs(v) >= 1000)
			snprintf(out, UNITS_SIZE, "%ld,%03ld", v / 1000, labs(v) % 1000);
		else
			snprintf(out, UNITS_SIZE, "%ld", v);
		return out;
	}
	for (count /= 1e6; fabs(count) >= 999.5 && i + 1 < ARRAY_SIZE(unit); i++)
		count /= 1000;
	snprintf(out, UNITS_SIZE, "%.20s %s", format_number(number, count), unit[i]);
	return out;
}

char *format_duration(char out[static UNITS_SIZE], double seconds)
{
	double s = MIN(fabs(seconds), 1e18);
	const char *sign = seconds < 0 ? "-" : "";
	long whole = (long)round_i64(s);

	if (s == 0)
		snprintf(out, UNITS_SIZE, "0s");
	else if (s < 0.0009995)
		snprintf(out, UNITS_SIZE, "%s%.0fus", sign, s * 1e6);
	else if (s < 0.9995)
		snprintf(out, UNITS_SIZE, "%s%.*fms", sign, s < 0.00995 ? 1 : 0, s * 1e3);
	else if (s < 59.95)
		snprintf(out, UNITS_SIZE, "%s%.*fs", sign, s < 9.995 ? 2 : 1, s);
	else if (whole < 3600)
		snprintf(out, UNITS_SIZE, "%s%ldm%02lds", sign, whole / 60, whole % 60);
	else if (whole < 86400)
		snprintf(out, UNITS_SIZE, "%s%ldh%02ldm", sign, whole / 3600, whole % 3600 / 60);
	else
		snprintf(out, UNITS_SIZE, "%s%ldd%02ldh", sign, whole / 86400, whole % 86400 / 3600);
	return out;
}

char *format_iso8601(char out[static UNITS_SIZE], int64_t wall_ns)
{
	int64_t ms = wall_ns / NSEC_PER_MSEC - (wall_ns % NSEC_PER_MSEC < 0);
	int64_t s = ms / 1000 - (ms % 1000 < 0);
	time_t t = (time_t)s;
	struct tm tm = {0};
	char date[32];

	gmtime_r(&t, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, UNITS_SIZE, "%s.%03dZ", date, (int)(ms - s * 1000));
	return out;
}

char *format_exact(char out[static UNITS_SIZE], double value)
{
	int digits = 5;

	if (fabs(value) < 0x1p53 && value == trunc(value)) {
		snprintf(out, UNITS_SIZE, "%.0f", value);
		return out;
	}
	do
		snprintf(out, UNITS_SIZE, "%.*g", ++digits, value);
	while (digits < 17 && strtod(out, NULL) != value);
	return out;
}
