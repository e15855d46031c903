/* Conditions that must not be met: `memory.peak>+10%`, `wall>x1.2`, `cpu.time>=+30s`, `memory.rss>2GiB`.
 *
 * A sign makes it a change against the base, `x` a ratio to it; without either it is about the value itself.
 * A percentage without a sign could mean both, so that it is taken only where the figure is a share itself.
 * What cannot be decided is an error and never passes. */
#include "analysis/compare.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_SIZE 64

enum measure { OF_VALUE, OF_DIFFERENCE, OF_PERCENT, OF_RATIO };

struct condition {
	char name[200];
	bool above, equal; /* > or <; with = */
	enum measure measure;
	double limit;
};

/* A copy of the first `len` bytes without blanks at their end; NULL: nothing is left, or too much. */
static char *trimmed(char out[static NUMBER_SIZE], const char *text, size_t len)
{
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	if (!len || len >= NUMBER_SIZE)
		return NULL;
	memmove(out, text, len);
	out[len] = 0;
	return out;
}

/* "12k", "3.5 MJ", "80": units of a thousand, with the unit's own letters or without. */
static int parse_si(const char *text, const char *symbol, double *ret)
{
	static const char step[] = "kMGTP";
	size_t len = strlen(text), n = strlen(symbol);
	double factor = 1;
	char number[NUMBER_SIZE];
	const char *at;

	if (n && len > n && !strcmp(text + len - n, symbol))
		len -= n;
	if (!trimmed(number, text, len))
		return -EINVAL;
	len = strlen(number);
	at = strchr(step, number[len - 1]);
	for (const char *p = step; at && p <= at; p++)
		factor *= 1000;
	if (!trimmed(number, number, len - (at != NULL)) || !parse_decimal(number, ret))
		return -EINVAL;
	*ret *= factor;
	return 0;
}

/* A number of the figure's own unit. */
static int parse_amount(const char *text, const struct compare_unit *u, double *ret)
{
	static const char *const symbol[NR_UNITS] = {
		[UNIT_JOULES] = "J", [UNIT_WATTS] = "W", [UNIT_HERTZ] = "Hz", [UNIT_FLOP] = "FLOP"};
	size_t len = strlen(text);
	char number[NUMBER_SIZE];
	int64_t ns;

	if (u->unit == UNIT_BYTES && !u->per_second)
		return parse_bytes(text, ret);
	if (u->unit == UNIT_SECONDS && !u->per_second) {
		if (parse_interval(text, &ns) < 0)
			return !strcmp(text, "0") || !strcmp(text, "0s") ? (*ret = 0, 0) : -EINVAL;
		*ret = (double)ns / 1e9;
		return 0;
	}
	if (u->unit == UNIT_RATIO && len && len <= sizeof(number) && text[len - 1] == '%') {
		snprintf(number, sizeof(number), "%.*s", (int)len - 1, text);
		if (!parse_decimal(number, ret))
			return -EINVAL;
		*ret /= u->percent ? 1 : 100;
		return 0;
	}
	return parse_si(text, u->unit < NR_UNITS && symbol[u->unit] ? symbol[u->unit] : "", ret);
}

static int wrong(struct buf *reterr, const char *rule, const char *why)
{
	buf_addf(reterr, "--fail-if '%s': %s", rule, why);
	return -EINVAL;
}

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* The name and the comparison; returns where the limit begins, or NULL. */
static const char *parse_head(const char *rule, struct condition *ret)
{
	const char *from = skip_blanks(rule), *op = from + strcspn(from, "<>");
	size_t len = (size_t)(op - from);

	while (len && (from[len - 1] == ' ' || from[len - 1] == '\t'))
		len--;
	if (!*op || !len || len >= sizeof(ret->name))
		return NULL;
	memcpy(ret->name, from, len);
	ret->name[len] = 0;
	ret->above = *op++ == '>';
	ret->equal = *op == '=';
	return skip_blanks(op + ret->equal);
}

static int parse_limit(const char *rule, const char *text, const struct compare_unit *unit,
	struct condition *ret, struct buf *reterr)
{
	bool sign = *text == '+' || *text == '-', negative = *text == '-', ratio = *text == 'x';
	char number[NUMBER_SIZE];
	size_t len;
	int r;

	text = skip_blanks(text + (sign || ratio));
	if (!trimmed(number, text, strlen(text)))
		return wrong(reterr, rule,
			"the limit is missing: a condition is NAME>+10%, NAME>x1.2 or NAME>2GiB");
	len = strlen(number);
	ret->measure = ratio ? OF_RATIO : sign ? OF_DIFFERENCE : OF_VALUE;
	if (number[len - 1] == '%' && sign) {
		if (!trimmed(number, number, len - 1))
			*number = 0;
		ret->measure = OF_PERCENT;
	} else if (number[len - 1] == '%' && unit->unit != UNIT_RATIO) {
		return wrong(reterr, rule, "say +10% for ten percent more than before, -10% for less");
	}
	if (ret->measure == OF_PERCENT || ret->measure == OF_RATIO)
		r = parse_decimal(number, &ret->limit) ? 0 : -EINVAL;
	else
		r = parse_amount(number, unit, &ret->limit);
	if (r < 0)
		return wrong(reterr, rule, "the limit is no number of this figure's unit");
	ret->limit = negative ? -ret->limit : ret->limit;
	return 0;
}

static int check_known(const struct comparison *c, const struct compare_figure *f, size_t set,
	const char *rule, struct buf *reterr)
{
	const struct compare_values *v = &f->of[set];

	if (v->nr)
		return 0;
	buf_addf(reterr, "--fail-if '%s': %s is not known of '%s'%s%s", rule, f->name, c->set[set].title,
		v->why ? ": " : "", v->why ? v->why : "");
	return -EINVAL;
}

static double measured(const struct compare_figure *f, size_t set, enum measure measure)
{
	struct compare_change change = compare_change(f, set);

	switch (measure) {
	case OF_VALUE:
		return f->of[set].mean;
	case OF_DIFFERENCE:
		return change.difference;
	case OF_RATIO: /* nothing is as much as nothing */
		return isnan(change.ratio) ? 1 : change.ratio;
	case OF_PERCENT:
		break;
	}
	if (f->of[0].mean == 0)
		return change.difference > 0 ? INFINITY : change.difference < 0 ? -INFINITY : 0;
	return 100 * change.difference / fabs(f->of[0].mean);
}

int compare_judge(
	const struct comparison *c, const char *rule, struct compare_verdict *ret, struct buf *reterr)
{
	struct condition want = {.limit = 0};
	const char *limit = parse_head(rule, &want);
	const struct compare_figure *f;
	int r;

	if (!limit)
		return wrong(
			reterr, rule, "a condition is NAME>+10%, NAME>x1.2 or NAME>2GiB (also >=, <, <=)");
	f = compare_find(c, want.name, reterr);
	if (!f)
		return -EINVAL;
	r = parse_limit(rule, limit, &f->unit, &want, reterr);
	for (size_t k = want.measure == OF_VALUE; r >= 0 && k < c->nr_sets; k++)
		r = check_known(c, f, k, rule, reterr);
	for (size_t k = 1; r >= 0 && k < c->nr_sets; k++) {
		double value = measured(f, k, want.measure);

		ret[k - 1] = (struct compare_verdict){.rule = rule, .figure = f, .set = k};
		/* Ten percent are ten percent, whatever the last bit says. */
		if (isfinite(value) && fabs(value - want.limit) <= 1e-9 * MAX(fabs(value), fabs(want.limit)))
			ret[k - 1].met = want.equal;
		else
			ret[k - 1].met = want.above ? value > want.limit : value < want.limit;
	}
	return r;
}
