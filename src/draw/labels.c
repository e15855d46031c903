/* Numbers beside ticks are short because what they share is written once: the unit of values stands above the
 * axis, that of time behind its last tick. (Labels with units each are for the terminal, which has no other
 * place for them.) A logarithmic axis spans prefixes, so there each label has its own. */
#include "draw/labels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Digits behind the point that a step needs. */
static int digits_of(double step)
{
	int digits = 0;

	for (double v = fabs(step); digits < 6 && fabs(v - round(v)) > v * 1e-6; v *= 10)
		digits++;
	return digits;
}

static void format_days(char out[static UNITS_SIZE], double s, double step)
{
	long minutes = lround(s / 60), day = minutes / 1440, hour = minutes / 60 % 24, minute = minutes % 60;

	if (minutes == 0)
		snprintf(out, UNITS_SIZE, "0");
	else if (day == 0 && minute == 0)
		snprintf(out, UNITS_SIZE, "%ld h", hour);
	else if (step >= 86400 || minutes % 1440 == 0)
		snprintf(out, UNITS_SIZE, "%ld d", day);
	else if (step >= 3600)
		snprintf(out, UNITS_SIZE, "%ld d %ld h", day, hour);
	else
		snprintf(out, UNITS_SIZE, "%ld d %ld:%02ld", day, hour, minute);
}

static void format_clock(char out[static UNITS_SIZE], double s, double step, bool hours)
{
	int digits = step < 1 ? MIN(digits_of(step), 3) : 0;
	long whole = lround(floor(s + 1e-6));

	if (!hours && digits)
		snprintf(out, UNITS_SIZE, "%ld:%0*.*f", whole / 60, digits + 3, digits,
			s - 60.0 * (double)(whole / 60));
	else if (!hours)
		snprintf(out, UNITS_SIZE, "%ld:%02ld", whole / 60, whole % 60);
	else if (step >= 60)
		snprintf(out, UNITS_SIZE, "%ld:%02ld", whole / 3600, whole / 60 % 60);
	else
		snprintf(out, UNITS_SIZE, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

char *label_of_time(char out[static UNITS_SIZE], const struct axis *a, unsigned tick)
{
	double s = tick < a->nr ? a->tick[tick] : a->least, size = MIN(fabs(s), 1e14);
	double most = MAX(fabs(a->most), fabs(a->least));
	const char *unit;
	char text[UNITS_SIZE];

	if (most <= 1) {
		unit = " ms";
		snprintf(text, sizeof(text), "%.*f", digits_of(a->step * 1000), size * 1000);
	} else if (most <= 120) {
		unit = " s";
		snprintf(text, sizeof(text), "%.*f", digits_of(a->step), size);
	} else if (most <= 6000) {
		unit = " min";
		format_clock(text, size, a->step, false);
	} else if (most <= 48 * 3600) {
		unit = " h";
		format_clock(text, size, a->step, true);
	} else {
		unit = "";
		format_days(text, size, a->step);
	}
	snprintf(out, UNITS_SIZE, "%s%.24s%s", s < 0 ? "−" : "", text, tick + 1 == a->nr ? unit : "");
	return out;
}

/* ---- values ---- */

struct prefix {
	double divisor;
	const char *text;
};

static struct prefix prefix_of(double most, double base)
{
	static const char *const si[] = {"", "k", "M", "G", "T", "P", "E"};
	static const char *const iec[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	struct prefix p = {1, ""};

	for (size_t i = 1; i < ARRAY_SIZE(si) && most >= p.divisor * base; i++)
		p = (struct prefix){p.divisor * base, base == 1024 ? iec[i] : si[i]};
	return p;
}

static const char *unit_symbol(enum metric_unit unit)
{
	static const char *const symbol[NR_UNITS] = {[UNIT_BYTES] = "B",
		[UNIT_SECONDS] = "s",
		[UNIT_RATIO] = "%",
		[UNIT_JOULES] = "J",
		[UNIT_WATTS] = "W",
		[UNIT_CELSIUS] = "°C",
		[UNIT_HERTZ] = "Hz",
		[UNIT_FLOP] = "FLOP"};

	return unit < NR_UNITS && symbol[unit] ? symbol[unit] : "";
}

/* Seconds of CPU time in a second are cores where the chart says so, else a percentage; joules in a second
 * are watts. */
static void settle_unit(struct value_labels *l, const struct chart *f)
{
	l->unit = f->unit;
	l->per_second = f->per_second;
	if (f->unit == UNIT_SECONDS && f->per_second) {
		l->unit = f->quantity ? UNIT_COUNT : UNIT_RATIO;
		l->per_second = false;
	} else if (f->unit == UNIT_JOULES && f->per_second) {
		l->unit = UNIT_WATTS;
		l->per_second = false;
	}
}

static void settle_scale(struct value_labels *l, double most, char unit[static UNITS_SIZE])
{
	bool plain = l->unit == UNIT_COUNT || l->unit == UNIT_CODE;
	struct prefix p = {1, ""};

	if (l->unit == UNIT_RATIO)
		p.divisor = 0.01;
	else if (l->unit == UNIT_BYTES)
		p = prefix_of(most, 1024);
	else if (l->unit == UNIT_SECONDS && most < 1)
		p = most < 1e-3 ? (struct prefix){1e-6, "µ"} : (struct prefix){1e-3, "m"};
	else if (plain ? most >= 10000 : l->unit != UNIT_CELSIUS && l->unit != UNIT_SECONDS)
		p = prefix_of(most, 1000);
	l->divisor = p.divisor;
	l->suffixed = plain;
	snprintf(l->suffix, sizeof(l->suffix), "%s", plain ? p.text : "");
	snprintf(unit, UNITS_SIZE, "%s%s%s", plain ? "" : p.text, unit_symbol(l->unit),
		l->per_second ? "/s" : "");
}

void value_labels(struct value_labels *ret, const struct chart *f, const struct axis *a)
{
	const char *quantity = f->quantity ? f->quantity : "", *between = ", ";
	char unit[UNITS_SIZE];

	*ret = (struct value_labels){.whole = a->log};
	settle_unit(ret, f);
	settle_scale(ret, MAX(fabs(a->most), fabs(a->least)), unit);
	ret->digits = a->step > 0 ? digits_of(a->step / ret->divisor) : 0;
	if (ret->whole)
		snprintf(unit, sizeof(unit), "%s", ret->per_second ? "/s" : "");
	else if (!strcmp(unit, quantity))
		unit[0] = 0;
	if (!*quantity || !*unit || *unit == '/')
		between = "";
	if (*unit == '/' && strstr(quantity, "/s"))
		unit[0] = 0;
	snprintf(ret->caption, sizeof(ret->caption), "%.40s%s%s", quantity, between, unit);
}

char *label_of_value(char out[static UNITS_SIZE], const struct value_labels *l, double value)
{
	double shown = value / l->divisor;

	if (l->whole && l->suffixed && value >= 1000) {
		struct prefix p = prefix_of(value * 1.0001, 1000);

		snprintf(out, UNITS_SIZE, "%.4g%s", value / p.divisor, p.text);
	} else if (l->whole) {
		format_value(out, value, l->unit, false);
	} else if (fabs(shown) >= 1e7) {
		snprintf(out, UNITS_SIZE, "%.3g%s", shown, l->suffix);
	} else {
		snprintf(out, UNITS_SIZE, "%.*f%s", value == 0 ? 0 : l->digits, shown,
			value == 0 ? "" : l->suffix);
	}
	return out;
}

char *label_of_number(char out[static UNITS_SIZE], const struct value_labels *l, double value)
{
	return format_value(out, value, l->unit, l->per_second);
}
