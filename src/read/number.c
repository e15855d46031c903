/* Decimal numbers in the kernel's text. Overflow wraps, as the kernel's own counters do: a reader that said
 * "no value" at 2^64 would lose a counter at the moment it is most interesting. */
#include "read/read.h"

static bool is_digit(char c)
{
	return (unsigned char)(c - '0') <= 9;
}

/* Digits at *p; what they say is added to v * 10^digits. */
static const char *digits(const char *p, const char *end, uint64_t *v)
{
	for (; p < end && is_digit(*p); p++)
		*v = *v * 10 + (uint64_t)(*p - '0');
	return p;
}

bool read_number(const char **p, const char *end, int64_t *ret)
{
	bool negative = *p < end && **p == '-';
	const char *start = *p + negative, *stop;
	uint64_t v = 0;

	stop = digits(start, end, &v);
	if (stop == start)
		return false;
	*p = stop;
	*ret = (int64_t)(negative ? -v : v);
	return true;
}

bool read_centi(const char **p, const char *end, int64_t *ret)
{
	bool negative = *p < end && **p == '-';
	const char *start = *p + negative, *stop;
	uint64_t v = 0, ignored = 0;

	stop = digits(start, end, &v);
	if (stop == start)
		return false;
	if (end - stop < 2 || *stop != '.' || !is_digit(stop[1])) {
		v *= 100;
	} else {
		stop++;
		v = v * 10 + (uint64_t)(*stop++ - '0');
		v *= 10;
		if (stop < end && is_digit(*stop))
			v += (uint64_t)(*stop++ - '0');
		stop = digits(stop, end, &ignored);
	}
	*p = stop;
	*ret = (int64_t)(negative ? -v : v);
	return true;
}
