/* Times as logs have them: see iso_time.h. */
#include "base/iso_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATEST_S INT64_C(9000000000) /* the year 2255: in ns it still fits */

struct time_text {
	const char *p, *end;
};

static bool take_char(struct time_text *t, const char *any)
{
	if (t->p >= t->end || !*t->p || !strchr(any, *t->p))
		return false;
	t->p++;
	return true;
}

static bool take_digits(struct time_text *t, unsigned nr, int *ret)
{
	int v = 0;

	for (unsigned i = 0; i < nr; i++, t->p++) {
		if (t->p >= t->end || *t->p < '0' || *t->p > '9')
			return false;
		v = v * 10 + (*t->p - '0');
	}
	*ret = v;
	return true;
}

/* Days since 1970 in the Gregorian calendar. */
static int64_t days(int y, int m, int d)
{
	int64_t years = y - (m <= 2), era = (years >= 0 ? years : years - 399) / 400;
	int64_t of_era = years - era * 400, of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool is_day(int y, int m, int d)
{
	static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

	return m >= 1 && m <= 12 && d >= 1 && d <= length[m - 1] + (m == 2 && leap);
}

static int64_t take_fraction(struct time_text *t)
{
	int64_t ns = 0, unit = NSEC_PER_SEC / 10;

	for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++, unit /= 10)
		ns += (*t->p - '0') * unit;
	return ns;
}

/* "Z", "+01:00", "-0130", "+01"; nothing is UTC. */
static bool take_zone(struct time_text *t, int64_t *ret_s)
{
	bool west;
	int hours, minutes = 0;

	*ret_s = 0;
	if (t->p >= t->end || take_char(t, "Zz"))
		return true;
	west = *t->p == '-';
	if (!take_char(t, "+-") || !take_digits(t, 2, &hours))
		return false;
	if (t->p < t->end) {
		take_char(t, ":");
		if (!take_digits(t, 2, &minutes))
			return false;
	}
	if (hours > 23 || minutes > 59)
		return false;
	*ret_s = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
	return true;
}

bool parse_iso_time(const char *text, size_t len, int64_t *ret)
{
	struct time_text t = {text, text + len};
	int y, mo, d, h, mi, s = 0;
	int64_t ns = 0, zone, seconds;

	if (!take_digits(&t, 4, &y) || !take_char(&t, "-") || !take_digits(&t, 2, &mo) ||
		!take_char(&t, "-") || !take_digits(&t, 2, &d) || !take_char(&t, "Tt "))
		return false;
	if (!take_digits(&t, 2, &h) || !take_char(&t, ":") || !take_digits(&t, 2, &mi))
		return false;
	if (take_char(&t, ":") && !take_digits(&t, 2, &s))
		return false;
	if (take_char(&t, ".,"))
		ns = take_fraction(&t);
	if (!take_zone(&t, &zone) || t.p != t.end)
		return false;
	if (!is_day(y, mo, d) || h > 24 || mi > 59 || s > 60)
		return false;
	seconds = days(y, mo, d) * 86400 + h * 3600 + mi * 60 + s - zone;
	if (seconds < -LATEST_S || seconds > LATEST_S)
		return false;
	*ret = seconds * NSEC_PER_SEC + ns;
	return true;
}

bool parse_epoch_time(const char *text, size_t len, int64_t *ret)
{
	char copy[64], *end;
	long double v;

	if (!len || len >= sizeof(copy) || !memchr("-0123456789", *text, 11))
		return false;
	memcpy(copy, text, len);
	copy[len] = 0;
	if (strspn(copy, "+-.eE0123456789") != len)
		return false;
	v = strtold(copy, &end);
	if (*end || !isfinite(v) || fabsl(v) > (long double)LATEST_S)
		return false;
	*ret = (int64_t)(v * (long double)NSEC_PER_SEC + (v < 0 ? -0.5L : 0.5L));
	return true;
}

bool parse_seconds(const char *text, size_t len, int64_t *ret)
{
	int64_t ns;

	if (!parse_epoch_time(text, len, &ns) || ns < 0)
		return false;
	*ret = ns;
	return true;
}
