/* Decimal numbers in the kernel's text. Overflow wraps, as the kernel's own counters do: a reader that said
 * "no value" at 2^64 would lose a counter at the moment it is most interesting. */
#include "read/read.h"

#include "read/wide.h"

static bool is_digit(char c)
{
	return (unsigned char)(c - '0') <= 9;
}

bool read_number(const char **p, const char *end, int64_t *ret)
{
	return wide_number(p, end, ret);
}

bool read_centi(const char **p, const char *end, int64_t *ret)
{
	bool negative = *p < end && **p == '-';
	const char *start = *p + negative, *stop;
	uint64_t v, hundredths = 0;

	stop = wide_digits(start, end, &v);
	if (stop == start)
		return false;
	if (end - stop >= 2 && *stop == '.' && is_digit(stop[1])) {
		hundredths = (uint64_t)(stop[1] - '0') * 10;
		stop += 2;
		if (stop < end && is_digit(*stop))
			hundredths += (uint64_t)(*stop - '0');
		while (stop < end && is_digit(*stop))
			stop++;
	}
	v = v * 100 + hundredths;
	*p = stop;
	*ret = (int64_t)(negative ? -v : v);
	return true;
}
