/* Which data of a mark are numbers, and in what unit. The unit stands behind the number (350ms, 3.1G, 91%),
 * at the end of the key (step_ms, cache_bytes), or in a word `unit=` of the same message; the first of these
 * that is there counts. Values become base units: seconds, bytes, a share of 1. */
#include "target/job_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MOST 64 /* characters */

/* clang-format off */
static const struct unit_word {
	const char *word;
	enum metric_unit unit;
	double times, per;
	bool ends_key; /* also as _word at the end of a key, where it can hardly mean anything else */
} unit_words[] = {
	{"s", UNIT_SECONDS, 1, 1, true}, {"sec", UNIT_SECONDS, 1, 1, true}, {"seconds", UNIT_SECONDS, 1, 1, true},
	{"ms", UNIT_SECONDS, 1, 1e3, true}, {"us", UNIT_SECONDS, 1, 1e6, true}, {"ns", UNIT_SECONDS, 1, 1e9, true},
	{"min", UNIT_SECONDS, 60, 1, false}, {"minutes", UNIT_SECONDS, 60, 1, true},
	{"h", UNIT_SECONDS, 3600, 1, false}, {"hours", UNIT_SECONDS, 3600, 1, true},
	{"B", UNIT_BYTES, 1, 1, false}, {"bytes", UNIT_BYTES, 1, 1, true},
	{"%", UNIT_RATIO, 1, 100, false}, {"percent", UNIT_RATIO, 1, 100, true}, {"pct", UNIT_RATIO, 1, 100, true},
	{"ratio", UNIT_RATIO, 1, 1, true},
	{"W", UNIT_WATTS, 1, 1, false}, {"watts", UNIT_WATTS, 1, 1, true}, {"mW", UNIT_WATTS, 1, 1e3, false}, {"kW", UNIT_WATTS, 1e3, 1, false},
	{"J", UNIT_JOULES, 1, 1, false}, {"joules", UNIT_JOULES, 1, 1, true}, {"kJ", UNIT_JOULES, 1e3, 1, false},
	{"Wh", UNIT_JOULES, 3600, 1, false}, {"kWh", UNIT_JOULES, 3.6e6, 1, false},
	{"C", UNIT_CELSIUS, 1, 1, false}, {"celsius", UNIT_CELSIUS, 1, 1, true},
	{"Hz", UNIT_HERTZ, 1, 1, false}, {"hz", UNIT_HERTZ, 1, 1, true}, {"kHz", UNIT_HERTZ, 1e3, 1, false},
	{"MHz", UNIT_HERTZ, 1e6, 1, false}, {"mhz", UNIT_HERTZ, 1e6, 1, true}, {"GHz", UNIT_HERTZ, 1e9, 1, false}, {"ghz", UNIT_HERTZ, 1e9, 1, true},
	{"flop", UNIT_FLOP, 1, 1, true}, {"flops", UNIT_FLOP, 1, 1, true},
};
/* clang-format on */

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(text, word, len);
}

/* "K", "KiB", "kb"...: units of 1024, as everywhere in tacho. A single small letter may mean anything. */
static bool size_word(const char *text, size_t len, struct unit_word *ret)
{
	static const char letters[] = "KMGTP";
	char first = len ? text[0] : 0;
	bool small = first >= 'a' && first <= 'z';
	const char *at = first ? strchr(letters, small ? first - 'a' + 'A' : first) : NULL;
	bool b = len > 1 && (text[len - 1] == 'B' || text[len - 1] == 'b');

	if (!at || len > 3 || (small && !b) || (len == 2 && !b && text[1] != 'i') ||
		(len == 3 && (text[1] != 'i' || !b)))
		return false;
	*ret = (struct unit_word){.unit = UNIT_BYTES, .times = 1, .per = 1, .ends_key = b};
	for (const char *l = letters; l <= at; l++)
		ret->times *= 1024;
	return true;
}

static bool find_unit(const char *text, size_t len, struct unit_word *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(unit_words); i++)
		if (is_word(text, len, unit_words[i].word)) {
			*ret = unit_words[i];
			return true;
		}
	return size_word(text, len, ret);
}

/* step_ms; but tokens_per_s is no time. */
static bool unit_of_key(const char *key, struct unit_word *ret)
{
	const char *last = strrchr(key, '_');
	struct unit_word found;

	if (!last || last == key || !find_unit(last + 1, strlen(last + 1), &found) || !found.ends_key ||
		(last - key > 4 && !memcmp(last - 4, "_per", 4)))
		return false;
	*ret = found;
	return true;
}

static size_t digits_at(const char *at, const char *end)
{
	const char *p = at;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return (size_t)(p - at);
}

/* How long the decimal number is that the text begins with; 0: with none. strtod() would take more. */
static size_t number_length(const char *text, const char *end)
{
	const char *p = text + (text < end && (*text == '-' || *text == '+'));
	size_t whole = digits_at(p, end), part = 0;

	p += whole;
	if (p < end && *p == '.') {
		part = digits_at(p + 1, end);
		p += 1 + part;
	}
	if (!whole && !part)
		return 0;
	if (p < end && (*p == 'e' || *p == 'E')) {
		const char *power = p + 1 + (p + 1 < end && (p[1] == '-' || p[1] == '+'));

		if (digits_at(power, end))
			p = power + digits_at(power, end);
	}
	return (size_t)(p - text);
}

static bool is_not_finite(const char *text, size_t len)
{
	static const char *const words[] = {"nan", "inf", "infinity"};
	bool sign = len && (*text == '-' || *text == '+');

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (len - sign == strlen(words[i]) && !strncasecmp(text + sign, words[i], len - sign))
			return true;
	return false;
}

static bool value_of(
	const char *text, size_t len, double *ret, struct unit_word *ret_unit, bool *ret_has_unit)
{
	char number[NUMBER_MOST];
	size_t n;

	/* Fortran fills the field of a number with blanks, before it. */
	for (; len && *text == ' '; len--)
		text++;
	n = number_length(text, text + len);
	*ret_has_unit = false;
	if (is_not_finite(text, len)) {
		*ret = NAN;
		return true;
	}
	if (!n || n >= sizeof(number))
		return false;
	*ret_has_unit = n < len;
	if (*ret_has_unit && !find_unit(text + n, len - n, ret_unit))
		return false;
	memcpy(number, text, n);
	number[n] = 0;
	*ret = strtod(number, NULL);
	return true;
}

/* Capitals become small, and - becomes _: names of metrics have neither. */
static bool take_name(const char *key, size_t len, struct job_number *ret)
{
	const size_t prefix = sizeof(JOB_NUMBER_PREFIX) - 1;

	if (!len || prefix + len >= sizeof(ret->name) || is_word(key, len, "unit"))
		return false;
	memcpy(ret->name, JOB_NUMBER_PREFIX, prefix);
	for (size_t i = 0; i < len; i++) {
		char c = key[i];

		ret->name[prefix + i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' ? '_' : c;
	}
	ret->name[prefix + len] = 0;
	return true;
}

/* Only what can be shown anywhere as it is. */
static void take_unit_text(const char *text, size_t len, struct job_number *ret)
{
	size_t n = MIN(len, sizeof(ret->unit_text) - 1);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return;
	memcpy(ret->unit_text, text, n);
}

/* To the nearest whole number; doubles of 2^52 and more are whole. */
static double whole(double value)
{
	if (!(value > -0x1p52 && value < 0x1p52))
		return value;
	return (double)(int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

bool job_number_parse(const char *word, size_t len, const char *unit, size_t unit_len, struct job_number *ret)
{
	const char *equals = memchr(word, '=', len);
	size_t key = equals ? (size_t)(equals - word) : 0;
	struct unit_word u = {.unit = UNIT_COUNT, .times = 1, .per = 1};
	bool has_unit;

	*ret = (struct job_number){.unit = UNIT_COUNT};
	if (!equals || !take_name(word, key, ret) ||
		!value_of(equals + 1, len - key - 1, &ret->value, &u, &has_unit))
		return false;
	has_unit = has_unit || unit_of_key(ret->name, &u);
	if (!has_unit && unit)
		has_unit = find_unit(unit, unit_len, &u);
	if (!has_unit && unit)
		take_unit_text(unit, unit_len, ret);
	ret->unit = u.unit;
	ret->value = ret->value * u.times / u.per;
	if (ret->unit == UNIT_BYTES)
		ret->value = whole(ret->value);
	if (!isfinite(ret->value))
		ret->value = NAN;
	return true;
}
