/* Decimal numbers in the kernel's text. Overflow wraps, as the kernel's own counters do: with "no value" at
 * 2^64 a counter would be lost at the moment it is most interesting. */
#include "read/read.h"

#include "read/wide.h"

#include <string.h>

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

static bool ends_key(char c)
{
	return c == ':' || c == ' ' || c == '\t';
}

bool read_key(const char *text, const char *end, const char *key, int64_t *ret)
{
	size_t len = strlen(key);

	for (const char *line = text; line && line < end;
		line = memchr(line, '\n', (size_t)(end - line)), line = line ? line + 1 : NULL) {
		if ((size_t)(end - line) <= len || memcmp(line, key, len) || !ends_key(line[len]))
			continue;
		for (line += len; line < end && ends_key(*line);)
			line++;
		return read_number(&line, end, ret);
	}
	return false;
}
