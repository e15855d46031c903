/* Reduction to columns, one pass, nothing allocated.
 *
 * A column keeps the mean of its points and the least and the most of their ranges. Taking every n-th point
 * or the points that shape a line best (LTTB) would draw less but shows a peak only by chance. A gap that is
 * narrower than a column cannot be seen and is not kept. */
#include "draw/reduce.h"

#include "analysis/axis.h"

#include <math.h>

static bool is_there(const struct chart_curve *c, size_t i)
{
	return isfinite(c->mean[i]) && isfinite(c->time_s[i]);
}

static struct drawn_point point_of(const struct chart_curve *c, size_t i)
{
	double mean = is_there(c, i) ? (double)c->mean[i] : NAN;
	double low = c->low && isfinite(c->low[i]) ? (double)c->low[i] : mean;
	double high = c->high && isfinite(c->high[i]) ? (double)c->high[i] : mean;

	return (struct drawn_point){c->time_s[i], mean, MIN(low, mean), MAX(high, mean)};
}

struct pile { /* the points of one column */
	double time, mean, low, high;
	size_t nr, nr_there;
};

static void pile_add(struct pile *p, struct drawn_point v)
{
	p->nr++;
	p->time += (v.time_s - p->time) / (double)p->nr;
	if (isnan(v.mean))
		return;
	p->nr_there++;
	p->mean += (v.mean - p->mean) / (double)p->nr_there;
	p->low = p->nr_there == 1 ? v.low : MIN(p->low, v.low);
	p->high = p->nr_there == 1 ? v.high : MAX(p->high, v.high);
}

static struct drawn_point pile_point(const struct pile *p)
{
	return p->nr_there ? (struct drawn_point){p->time, p->mean, p->low, p->high}
			   : (struct drawn_point){p->time, NAN, NAN, NAN};
}

static size_t column_of(double time_s, double from_s, double to_s, size_t columns)
{
	double at = (time_s - from_s) / (to_s - from_s) * (double)columns;

	return at > 0 ? MIN((size_t)MIN(at, 1e9), columns - 1) : 0;
}

size_t curve_reduce(
	const struct chart_curve *c, double from_s, double to_s, size_t columns, struct drawn_point *ret)
{
	size_t first = curve_at(c, from_s), end = curve_at(c, to_s), nr = 0, column = 0;
	struct pile pile = {0};

	end = MAX(end, first); /* times that do not grow are wrong, but must not break this */
	while (end < c->nr && c->time_s[end] <= to_s)
		end++;
	if (end - first <= 2 * columns) {
		first -= first > 0;
		end += end < c->nr;
		for (size_t i = first; i < end; i++)
			ret[nr++] = point_of(c, i);
		return nr;
	}
	for (size_t i = first; i < end; i++) {
		size_t here = column_of(c->time_s[i], from_s, to_s, columns);

		if (here != column && pile.nr && nr < REDUCED_MAX(columns) - 1) {
			ret[nr++] = pile_point(&pile);
			pile = (struct pile){0};
		}
		column = here;
		pile_add(&pile, point_of(c, i));
	}
	if (pile.nr)
		ret[nr++] = pile_point(&pile);
	return nr;
}

/* Between two points the nearer one counts, so that what is added up was measured at one time. */
static struct drawn_point nearest(const struct chart_curve *c, size_t next, double time_s)
{
	size_t i = next;

	if (!next || next >= c->nr)
		return (struct drawn_point){time_s, NAN, NAN, NAN};
	if (time_s - c->time_s[next - 1] < c->time_s[next] - time_s)
		i = next - 1;
	return point_of(c, i);
}

static void resample(
	const struct chart_curve *c, double from_s, double to_s, size_t columns, bool high, double *ret)
{
	double wide = (to_s - from_s) / (double)columns;
	size_t i = curve_at(c, from_s);

	for (size_t k = 0; k < columns; k++) {
		double left = from_s + wide * (double)k;
		struct pile pile = {0};
		struct drawn_point v;

		for (; i < c->nr && c->time_s[i] < left + wide; i++)
			pile_add(&pile, point_of(c, i));
		v = pile.nr ? pile_point(&pile) : nearest(c, i, left + wide / 2);
		ret[k] = isnan(v.mean) ? NAN : high ? v.high : v.mean;
	}
}

void curve_resample(const struct chart_curve *c, double from_s, double to_s, size_t columns, double *ret)
{
	resample(c, from_s, to_s, columns, false, ret);
}

bool curve_highs(const struct chart_curve *c, double from_s, double to_s, size_t columns, double *ret)
{
	if (!c || !c->high || c->high == c->mean)
		return false;
	resample(c, from_s, to_s, columns, true, ret);
	return true;
}

static bool has_one_axis(const struct chart_curve *c, size_t nr)
{
	for (size_t k = 1; k < nr; k++)
		if (c[k].nr != c[0].nr || c[k].time_s != c[0].time_s)
			return false;
	return nr > 0;
}

bool curves_most(
	const struct chart_curve *c, size_t nr, double from_s, double to_s, size_t columns, double *ret)
{
	if (!has_one_axis(c, nr) || c[0].nr < 2 * columns)
		return false;
	for (size_t k = 0; k < columns; k++)
		ret[k] = NAN;
	for (size_t i = curve_at(&c[0], from_s); i < c[0].nr && c[0].time_s[i] <= to_s; i++) {
		size_t column = column_of(c[0].time_s[i], from_s, to_s, columns);
		double sum = NAN;

		for (size_t k = 0; k < nr; k++)
			if (c[k].mean[i] > 0)
				sum = (isnan(sum) ? 0 : sum) + (double)c[k].mean[i];
		if (isfinite(sum) && !(ret[column] > sum))
			ret[column] = sum;
	}
	return true;
}
