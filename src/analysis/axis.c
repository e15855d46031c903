/* Round numbers on axes.
 *
 * Steps are those that people count in: 1, 2 and 5 for what is decimal, powers of two for bytes (so that
 * ticks read 256 MiB, 512 MiB and not 238 MiB), and parts of minutes, hours and days for times. The logarithm
 * is our own because the recorder does without libm, and a place on a screen needs no more than it gives. */
#include "analysis/axis.h"

#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers ---- */

/* Of what is above zero; frexp() would bring libm back. */
static double log2_of(double v)
{
	int exponent = 0;
	double y, square, sum = 0;

	for (; v >= 1 && exponent < 1024; exponent++)
		v /= 2;
	for (; v < 0.5 && v > 0; exponent--)
		v *= 2;
	y = (v - 1) / (v + 1);
	square = y * y;

	/* ln m = 2 artanh y, with |y| up to a third. */
	for (int i = 19; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return exponent + 2 * y * sum / 0.69314718055994530942;
}

/* The least of 1, 2, 5 times a power of ten that is not below v. */
static double step_decimal(double v)
{
	double power = 1;

	while (power > v && power > 1e-300)
		power /= 10;
	while (power * 10 <= v)
		power *= 10;
	return power >= v ? power : power * 2 >= v ? power * 2 : power * 5 >= v ? power * 5 : power * 10;
}

static double step_binary(double v)
{
	double power = 1;

	while (power < v)
		power *= 2;
	return power;
}

static double step_time(double v)
{
	static const double nice[] = {
		1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};

	if (v <= 1)
		return step_decimal(v);
	for (size_t i = 0; i < ARRAY_SIZE(nice); i++)
		if (nice[i] >= v)
			return nice[i];
	return 86400 * step_decimal(v / 86400);
}

/* ---- axes ---- */

static void set_ticks(struct axis *a)
{
	double from = ceil(a->least / a->step - 1e-9);

	for (a->nr = 0; a->nr < AXIS_TICKS; a->nr++) {
		double at = (from + a->nr) * a->step;

		if (at > a->most + a->step * 1e-6)
			break;
		a->tick[a->nr] = at;
	}
}

static void set_ticks_log(struct axis *a, unsigned ticks, double base)
{
	double factor = base;
	unsigned decades = 1;

	for (double v = a->least * base; v < a->most * 0.999; v *= base)
		decades++;
	for (unsigned every = 1; decades / every > MAX(ticks, 2u); every++)
		factor *= base;
	a->step = 0;
	for (double v = a->least; a->nr < AXIS_TICKS && v <= a->most * 1.0001; v *= factor)
		a->tick[a->nr++] = v;
}

struct axis_extent {
	double below, least, most; /* below: 0 or less; least: above 0 */
};

static void extend(struct axis_extent *e, double v)
{
	if (!isfinite(v))
		return;
	e->most = MAX(e->most, v);
	e->below = MIN(e->below, v);
	if (v > 0)
		e->least = MIN(e->least, v);
}

static void extend_by_curve(struct axis_extent *e, const struct chart_curve *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		extend(e, c->low[i]);
		extend(e, c->high[i]);
		extend(e, c->mean[i]);
	}
}

/* Curves on one axis add up point by point; else the sum of their greatest is enough. */
static void extend_by_stack(struct axis_extent *e, const struct chart *f)
{
	const struct chart_curve *c = f->curve;
	bool common = true;
	double sum = 0;

	for (size_t k = 1; k < f->nr_curves; k++)
		common &= c[k].nr == c[0].nr && c[k].time_s == c[0].time_s;
	for (size_t i = 0; common && f->nr_curves && i < c[0].nr; i++) {
		sum = 0;
		for (size_t k = 0; k < f->nr_curves; k++)
			sum += c[k].mean[i] > 0 ? (double)c[k].mean[i] : 0;
		extend(e, sum);
	}
	for (size_t k = 0; !common && k < f->nr_curves; k++) {
		struct axis_extent own = {.least = INFINITY, .most = 0};

		extend_by_curve(&own, &c[k]);
		sum += own.most;
	}
	if (!common)
		extend(e, sum);
}

static struct axis_extent extent_of(const struct chart *f)
{
	struct axis_extent e = {.least = INFINITY, .most = 0};

	if (f->form == CHART_STACKED)
		extend_by_stack(&e, f);
	for (size_t k = 0; f->form != CHART_STACKED && k < f->nr_curves; k++)
		extend_by_curve(&e, &f->curve[k]);
	for (size_t k = 0; k < f->nr_levels; k++)
		if (f->level[k].stretch)
			extend(&e, f->level[k].value);
	return e;
}

void axis_of_values(struct axis *ret, const struct chart *f, unsigned ticks)
{
	double base = f->unit == UNIT_BYTES ? 2 : 10, most;
	struct axis_extent e = extent_of(f);

	*ret = (struct axis){.log = f->log && e.most > 0 && e.least < INFINITY};
	if (ret->log) {
		ret->least = 1;
		while (ret->least > e.least && ret->least > 1e-300)
			ret->least /= base;
		while (ret->least * base <= e.least)
			ret->least *= base;
		most = isfinite(f->y_most) && f->y_most > e.least ? f->y_most : e.most;
		for (ret->most = ret->least * base; ret->most < most * 0.9999;)
			ret->most *= base;
		set_ticks_log(ret, ticks, base);
		return;
	}
	most = isfinite(f->y_most) && f->y_most > 0 ? f->y_most : e.most;
	most = most > 0 ? most : e.below < 0 ? -e.below : 1;
	ret->step = f->unit == UNIT_BYTES ? step_binary(most / MAX(ticks, 1u))
					  : step_decimal(most / MAX(ticks, 1u));
	/* What lies a hundredth of a step above a tick is there by rounding: 100.001 %. */
	ret->most =
		isfinite(f->y_most) && f->y_most > 0 ? f->y_most : ceil(most / ret->step - 0.01) * ret->step;
	ret->least = floor(e.below / ret->step + 1e-9) * ret->step;
	set_ticks(ret);
}

void axis_of_time(struct axis *ret, const struct chart *f, unsigned ticks)
{
	*ret = (struct axis){.least = isfinite(f->from_s) ? f->from_s : 0};
	ret->most = isfinite(f->to_s) && f->to_s > ret->least ? f->to_s : ret->least + 1;
	ret->step = step_time((ret->most - ret->least) / MAX(ticks, 1u));
	set_ticks(ret);
}

double axis_place(const struct axis *a, double value)
{
	if (isnan(value))
		return NAN;
	if (!a->log)
		return (value - a->least) / (a->most - a->least);
	if (value <= a->least)
		return 0;
	return log2_of(value / a->least) / log2_of(a->most / a->least);
}

size_t curve_at(const struct chart_curve *c, double time_s)
{
	size_t low = 0, high = c->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->time_s[middle] < time_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- words ---- */

static char *format_plain(char out[static UNITS_SIZE], double value)
{
	double size = fabs(value);

	if (size >= 1000)
		return format_count(out, value);
	if (size > 0 && size < 0.0995)
		snprintf(out, UNITS_SIZE, "%.2g", value);
	else
		format_number(out, value);
	return out;
}

char *format_value(char out[static UNITS_SIZE], double value, enum metric_unit unit, bool per_second)
{
	static const char *const si[NR_UNITS] = {
		[UNIT_JOULES] = "J", [UNIT_WATTS] = "W", [UNIT_HERTZ] = "Hz", [UNIT_FLOP] = "FLOP"};
	char number[UNITS_SIZE];

	if (isnan(value))
		snprintf(out, UNITS_SIZE, "?");
	else if (unit == UNIT_BYTES)
		format_bytes(out, value);
	else if (unit == UNIT_SECONDS && !per_second)
		format_duration(out, value);
	else if (unit == UNIT_RATIO && value > 0 && value < 0.0000095) /* 3.2e-05 % says nothing to anybody */
		snprintf(out, UNITS_SIZE, "<0.001 %%");
	else if (unit == UNIT_RATIO || unit == UNIT_SECONDS)
		snprintf(out, UNITS_SIZE, "%.20s %%", format_plain(number, value * 100));
	else if (unit == UNIT_CODE && value == rint(value)) /* a number that names something is no amount */
		snprintf(out, UNITS_SIZE, "%.0f", value);
	else if (unit == UNIT_CELSIUS)
		snprintf(out, UNITS_SIZE, "%.20s °C", format_plain(number, value));
	else if (unit < NR_UNITS && si[unit])
		format_si(out, value, si[unit]);
	else
		format_plain(out, value);
	if (per_second && unit != UNIT_RATIO && unit != UNIT_SECONDS && !isnan(value))
		snprintf(out + strlen(out), UNITS_SIZE - strlen(out), "/s");
	return out;
}

char *format_tick_time(char out[static UNITS_SIZE], double seconds, double step)
{
	char number[UNITS_SIZE];
	double size = fabs(seconds);
	const char *sign = seconds < 0 ? "-" : "";
	long whole = (long)round_i64(MIN(size, 1e15));

	if (size == 0)
		snprintf(out, UNITS_SIZE, "0");
	else if (step < 1 && size < 60)
		snprintf(out, UNITS_SIZE, "%s%.20ss", sign, format_plain(number, size));
	else if (step >= 86400)
		snprintf(out, UNITS_SIZE, "%s%ldd", sign, whole / 86400);
	else if (whole < 60)
		snprintf(out, UNITS_SIZE, "%s%lds", sign, whole);
	else if (whole < 3600 && whole % 60 == 0)
		snprintf(out, UNITS_SIZE, "%s%ldm", sign, whole / 60);
	else if (whole < 3600 && step < 1)
		snprintf(
			out, UNITS_SIZE, "%s%ldm%04.1fs", sign, whole / 60, size - (double)(whole / 60) * 60);
	else if (whole < 3600)
		snprintf(out, UNITS_SIZE, "%s%ldm%02lds", sign, whole / 60, whole % 60);
	else if (step < 60)
		snprintf(out, UNITS_SIZE, "%s%ldh%02ldm%02lds", sign, whole / 3600, whole / 60 % 60,
			whole % 60);
	else if (whole < 86400 && whole % 3600 == 0)
		snprintf(out, UNITS_SIZE, "%s%ldh", sign, whole / 3600);
	else if (whole < 86400)
		snprintf(out, UNITS_SIZE, "%s%ldh%02ldm", sign, whole / 3600, whole / 60 % 60);
	else if (whole % 86400 == 0)
		snprintf(out, UNITS_SIZE, "%s%ldd", sign, whole / 86400);
	else
		snprintf(out, UNITS_SIZE, "%s%ldd%02ldh", sign, whole / 86400, whole % 86400 / 3600);
	return out;
}
