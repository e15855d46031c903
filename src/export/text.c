/* Values as text for the text formats: see text.h. */
#include "export/text.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *field_unit(const struct field *f, char out[static EXPORT_TEXT])
{
	/* clang-format off */
	static const char *const unit[NR_UNITS] = {
		[UNIT_COUNT] = "", [UNIT_BYTES] = "bytes", [UNIT_SECONDS] = "s", [UNIT_RATIO] = "ratio",
		[UNIT_CODE] = "", [UNIT_JOULES] = "J", [UNIT_WATTS] = "W", [UNIT_CELSIUS] = "C",
		[UNIT_HERTZ] = "Hz", [UNIT_FLOP] = "FLOP",
	};
	/* clang-format on */
	const char *name = (size_t)f->unit < NR_UNITS ? unit[f->unit] : "";
	bool scaled = isfinite(f->scale) && f->scale != 0 && f->scale != 1;

	if (f->type != FIELD_INT && f->type != FIELD_REAL)
		return "";
	if (scaled)
		snprintf(out, EXPORT_TEXT, "%.12g%s%s%s", f->scale, *name ? " " : "", name,
			f->per_second ? "/s" : "");
	else
		snprintf(out, EXPORT_TEXT, "%s%s", f->per_second && !*name ? "1" : name,
			f->per_second ? "/s" : "");
	return out;
}

const char *field_type_name(enum field_type type)
{
	static const char *const name[] = {[FIELD_TIME] = "time",
		[FIELD_INT] = "integer",
		[FIELD_REAL] = "real",
		[FIELD_TEXT] = "text",
		[FIELD_FLAG] = "flag"};

	return (size_t)type < ARRAY_SIZE(name) ? name[type] : "";
}

static char *put_digits(char *p, uint64_t v, unsigned digits)
{
	for (unsigned i = digits; i--; v /= 10)
		p[i] = (char)('0' + v % 10);
	return p + digits;
}

static const uint64_t power_of_ten[] = {UINT64_C(1), UINT64_C(10), UINT64_C(100), UINT64_C(1000),
	UINT64_C(10000), UINT64_C(100000), UINT64_C(1000000), UINT64_C(10000000), UINT64_C(100000000),
	UINT64_C(1000000000), UINT64_C(10000000000), UINT64_C(100000000000), UINT64_C(1000000000000),
	UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000),
	UINT64_C(10000000000000000), UINT64_C(100000000000000000), UINT64_C(1000000000000000000),
	UINT64_C(10000000000000000000)};

/* v as an integer of 15 to 17 digits over 10^*ret_power: as few of them as have v for their nearest double.
 *
 * v is m/2^shift with an m below 2^53, so that m x 10^power is exact in 128 bits, and so is how far the
 * rounded integer is from it; less than half a unit of m, and it reads back as v. */
static uint64_t nearest_decimal(double v, unsigned *ret_power)
{
	static const double begins[] = {
		1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
	uint64_t bits, m, n = 0;
	unsigned shift, above = 0;

	memcpy(&bits, &v, sizeof(bits));
	m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	shift = 1075 - (unsigned)(bits >> 52);
	while (above < ARRAY_SIZE(begins) && v >= begins[above])
		above++;
	for (unsigned digits = 15; digits <= 17; digits++) {
		unsigned power = digits + 2 - above;
		unsigned __int128 exact = (unsigned __int128)m * power_of_ten[power], back, off;

		n = (uint64_t)((exact + ((unsigned __int128)1 << (shift - 1))) >> shift);
		back = (unsigned __int128)n << shift;
		off = back > exact ? back - exact : exact - back;
		*ret_power = power;
		/* Below a power of two doubles are twice as dense. */
		if (off * (m == UINT64_C(1) << 52 ? 4 : 2) < power_of_ten[power])
			break;
	}
	return n;
}

static size_t format_usual(char *out, double v)
{
	unsigned power;
	uint64_t n = nearest_decimal(fabs(v), &power), part = n % power_of_ten[power];
	char *p = out;

	if (v < 0)
		*p++ = '-';
	p += format_i64(p, (int64_t)(n / power_of_ten[power]));
	if (!part)
		return (size_t)(p - out);
	*p++ = '.';
	p = put_digits(p, part, power);
	while (p[-1] == '0')
		p--;
	return (size_t)(p - out);
}

size_t format_real(char out[static EXPORT_TEXT], double v)
{
	size_t n = 0;

	if (!isfinite(v))
		return 0;
	if (v == 0) {
		memcpy(out, signbit(v) ? "-0" : "0", 2);
		return signbit(v) ? 2 : 1;
	}
	if (fabs(v) >= 1e-3 && fabs(v) < 1e15)
		return format_usual(out, v);
	for (int digits = 15; !n; digits++) {
		snprintf(out, EXPORT_TEXT, "%.*g", digits, v);
		if (digits == 17 || strtod(out, NULL) == v)
			n = strlen(out);
	}
	return n;
}

/* Days to a date by arithmetic: gmtime_r() takes a lock, and this is called for every row. The year begins in
 * March, so that the leap day comes last. */
size_t format_time(char out[static EXPORT_TEXT], int64_t ns)
{
	int64_t seconds = ns / NSEC_PER_SEC - (ns % NSEC_PER_SEC < 0);
	int64_t part = ns % NSEC_PER_SEC + (ns % NSEC_PER_SEC < 0 ? NSEC_PER_SEC : 0);
	int64_t days = seconds / 86400 - (seconds % 86400 < 0), second = seconds - days * 86400;
	int64_t era, day, year, month;
	char *p = out;

	days += 719468; /* from 1 March of the year 0 */
	era = days / 146097 - (days % 146097 < 0);
	day = days - era * 146097;
	year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5;
	year += era * 400 + (month >= 10);
	p = put_digits(p, (uint64_t)(year), 4);
	*p++ = '-';
	p = put_digits(p, (uint64_t)(month < 10 ? month + 3 : month - 9), 2);
	*p++ = '-';
	p = put_digits(p, (uint64_t)(day + 1), 2);
	*p++ = 'T';
	p = put_digits(p, (uint64_t)(second / 3600), 2);
	*p++ = ':';
	p = put_digits(p, (uint64_t)(second / 60 % 60), 2);
	*p++ = ':';
	p = put_digits(p, (uint64_t)(second % 60), 2);
	*p++ = '.';
	p = put_digits(p, (uint64_t)(part), 9);
	*p++ = 'Z';
	return (size_t)(p - out);
}

/* Length of what must be escaped at p; 0: nothing. */
static size_t odd_length(const uint8_t *p, const uint8_t *end)
{
	size_t len;

	if (*p < 0x80)
		return *p < 0x20 || *p == '"' || *p == '\\' || *p == 0x7f;
	len = utf8_length(p, end);
	return len && !shown_length(p, end) ? len : 0;
}

void add_json_text(struct buf *out, const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + len, *from = p;

	buf_addch(out, '"');
	while (p < end) {
		size_t odd = odd_length(p, end);

		if (!odd) {
			p++;
			continue;
		}
		buf_add(out, from, (size_t)(p - from));
		if (*p == '"' || *p == '\\') {
			buf_addch(out, '\\');
			buf_addch(out, *p);
		} else {
			json_hidden(out, utf8_code(p, odd));
		}
		from = p += odd;
	}
	buf_add(out, from, (size_t)(p - from));
	buf_addch(out, '"');
}
