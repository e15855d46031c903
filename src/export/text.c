#include "export/text.h"

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

/* Most values have few decimals. n/10^k of two exact doubles is rounded as reading the text "n/10^k" is, so
 * that equality here is equality there; and with at most 15 digits there is no shorter text. */
static size_t format_decimal(char *out, double v, double power, unsigned decimals)
{
	double scaled = v * power, n = floor(fabs(scaled) + 0.5);
	int64_t whole, part;
	char *p = out;

	if (!(n < 1e15) || n / power != fabs(v))
		return 0;
	if (signbit(v))
		*p++ = '-';
	whole = (int64_t)n / (int64_t)power;
	part = (int64_t)n % (int64_t)power;
	p += format_i64(p, whole);
	if (!part)
		return (size_t)(p - out);
	*p++ = '.';
	for (unsigned i = decimals; i--; part /= 10)
		p[i] = (char)('0' + part % 10);
	p += decimals;
	while (p[-1] == '0')
		p--;
	return (size_t)(p - out);
}

size_t format_real(char out[static EXPORT_TEXT], double v)
{
	size_t n;

	if (!isfinite(v))
		return 0;
	n = format_decimal(out, v, 1e3, 3);
	if (!n && fabs(v) >= 1e-5)
		n = format_decimal(out, v, 1e9, 9);
	for (int digits = 15; !n; digits++) {
		snprintf(out, EXPORT_TEXT, "%.*g", digits, v);
		if (digits == 17 || strtod(out, NULL) == v)
			n = strlen(out);
	}
	return n;
}

static char *put_digits(char *p, int64_t v, unsigned digits)
{
	for (unsigned i = digits; i--; v /= 10)
		p[i] = (char)('0' + v % 10);
	return p + digits;
}

/* Days to a date by arithmetic: gmtime_r() takes a lock, and this is called for every row. The year begins in
 * March, so that the day that some years have comes last. */
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
	p = put_digits(p, year, 4);
	*p++ = '-';
	p = put_digits(p, month < 10 ? month + 3 : month - 9, 2);
	*p++ = '-';
	p = put_digits(p, day + 1, 2);
	*p++ = 'T';
	p = put_digits(p, second / 3600, 2);
	*p++ = ':';
	p = put_digits(p, second / 60 % 60, 2);
	*p++ = ':';
	p = put_digits(p, second % 60, 2);
	*p++ = '.';
	p = put_digits(p, part, 9);
	*p++ = 'Z';
	return (size_t)(p - out);
}

void add_json_text(struct buf *out, const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t from = 0;

	buf_addch(out, '"');
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];

		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		buf_add(out, text + from, i - from);
		from = i + 1;
		if (c == '"' || c == '\\') {
			buf_addch(out, '\\');
			buf_addch(out, c);
		} else {
			buf_adds(out, "\\u00");
			buf_addch(out, hex[c >> 4]);
			buf_addch(out, hex[c & 15]);
		}
	}
	buf_add(out, text + from, len - from);
	buf_addch(out, '"');
}
