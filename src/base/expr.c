/* A recursive parser that writes postfix, and a loop that runs it. Depth, length and names have fixed maxima,
 * so a hostile text costs little and nothing is allocated. */
#include "base/expr.h"

#include <math.h>
#include <string.h>

enum expr_op {
	OP_NUMBER,
	OP_NAME,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_NEG,
	OP_INSIDE, /* what stands in a rate() begins; its number is the step that ends it */
	OP_RATE,
	OP_MAX,
	OP_MIN,
	OP_OR
};

#define DEPTH_MAX 24

struct expr_parser {
	struct expr *e;
	const char *text, *at, *why;
	unsigned depth;
	bool in_rate, too_big;
};

static bool fail(struct expr_parser *p, const char *why)
{
	if (!p->why)
		p->why = why;
	return false;
}

static bool emit(struct expr_parser *p, enum expr_op op, double number, unsigned index)
{
	if (p->e->nr_steps == EXPR_STEPS) {
		p->too_big = true;
		return fail(p, "the expression is too long");
	}
	p->e->step[p->e->nr_steps++] =
		(struct expr_step){.op = (uint8_t)op, .index = (uint8_t)index, .number = number};
	return true;
}

static char peek(struct expr_parser *p)
{
	while (*p->at == ' ')
		p->at++;
	return *p->at;
}

static bool expect(struct expr_parser *p, char c, const char *why)
{
	if (peek(p) != c)
		return fail(p, why);
	p->at++;
	return true;
}

static bool parse_sum(struct expr_parser *p);

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_' || c == '.';
}

static bool parse_number(struct expr_parser *p)
{
	double v = 0, unit = 1;
	bool point = false;

	for (; is_digit(*p->at) || (*p->at == '.' && !point); p->at++) {
		if (*p->at == '.') {
			point = true;
			continue;
		}
		v = v * 10 + (*p->at - '0');
		unit *= point ? 10 : 1;
	}
	if (is_name(*p->at))
		return fail(p, "a number ends strangely");
	return emit(p, OP_NUMBER, v / unit, 0);
}

static bool parse_metric(struct expr_parser *p, const char *name, size_t len)
{
	struct expr *e = p->e;
	unsigned i = 0;

	while (i < e->nr_names && (strncmp(e->name[i], name, len) || e->name[i][len]))
		i++;
	if (i == EXPR_NAMES) {
		p->too_big = true;
		return fail(p, "too many metrics");
	}
	if (i == e->nr_names) {
		memcpy(e->name[i], name, len);
		e->name[i][len] = 0;
		e->nr_names++;
	}
	return emit(p, OP_NAME, 0, i);
}

static bool parse_rate(struct expr_parser *p)
{
	unsigned begin;

	if (p->in_rate)
		return fail(p, "a rate of a rate");
	if (p->e->nr_rates == EXPR_RATES) {
		p->too_big = true;
		return fail(p, "too many rates");
	}
	p->in_rate = true;
	begin = p->e->nr_steps;
	if (!emit(p, OP_INSIDE, 0, 0) || !parse_sum(p) || !expect(p, ')', "rate() takes one value"))
		return false;
	p->in_rate = false;
	p->e->step[begin].number = p->e->nr_steps;
	return emit(p, OP_RATE, 0, p->e->nr_rates++);
}

/* Of two or more values, from left to right. */
static bool parse_choice(struct expr_parser *p, enum expr_op op)
{
	if (!parse_sum(p) || !expect(p, ',', "a second value is missing"))
		return false;
	do
		if (!parse_sum(p) || !emit(p, op, 0, 0))
			return false;
	while (peek(p) == ',' && p->at++);
	return expect(p, ')', "a parenthesis is not closed");
}

static bool parse_word(struct expr_parser *p)
{
	static const struct {
		const char *name;
		enum expr_op op;
	} function[] = {{"rate", OP_RATE}, {"max", OP_MAX}, {"min", OP_MIN}, {"or", OP_OR}};
	const char *name = p->at;
	size_t len;

	while (is_name(*p->at))
		p->at++;
	len = (size_t)(p->at - name);
	if (len >= EXPR_NAME_SIZE)
		return fail(p, "a name is too long");
	if (peek(p) != '(')
		return parse_metric(p, name, len);
	p->at++;
	for (size_t i = 0; i < ARRAY_SIZE(function); i++)
		if (strlen(function[i].name) == len && !memcmp(function[i].name, name, len))
			return function[i].op == OP_RATE ? parse_rate(p) : parse_choice(p, function[i].op);
	p->at = name;
	return fail(p, "there is no such function");
}

static bool parse_atom(struct expr_parser *p)
{
	char c = peek(p);

	if (c == '(') {
		p->at++;
		return parse_sum(p) && expect(p, ')', "a parenthesis is not closed");
	}
	if (is_digit(c))
		return parse_number(p);
	if (c >= 'a' && c <= 'z')
		return parse_word(p);
	return fail(p, c ? "a value is missing" : "the expression ends too early");
}

static bool parse_sign(struct expr_parser *p)
{
	bool negative = peek(p) == '-';

	p->at += negative;
	return parse_atom(p) && (!negative || emit(p, OP_NEG, 0, 0));
}

static bool parse_product(struct expr_parser *p)
{
	char c;

	if (!parse_sign(p))
		return false;
	while ((c = peek(p)) == '*' || c == '/') {
		p->at++;
		if (!parse_sign(p) || !emit(p, c == '*' ? OP_MUL : OP_DIV, 0, 0))
			return false;
	}
	return true;
}

static bool parse_sum(struct expr_parser *p)
{
	char c;

	if (++p->depth > DEPTH_MAX) {
		p->too_big = true;
		return fail(p, "the expression is nested too deeply");
	}
	if (!parse_product(p))
		return false;
	while ((c = peek(p)) == '+' || c == '-') {
		p->at++;
		if (!parse_product(p) || !emit(p, c == '+' ? OP_ADD : OP_SUB, 0, 0))
			return false;
	}
	p->depth--;
	return true;
}

int expr_parse(struct expr *e, const char *text, const char **reterr_why, size_t *reterr_at)
{
	struct expr_parser p = {.e = e, .text = text, .at = text};

	*e = (struct expr){0};
	if (parse_sum(&p) && !peek(&p))
		return 0;
	fail(&p, "something follows that does not belong there");
	*reterr_why = p.why;
	*reterr_at = (size_t)(p.at - text);
	return p.too_big ? -E2BIG : -EINVAL;
}

/* ---- running ---- */

#define EACH(statement)                   \
	for (unsigned i = 0; i < nr; i++) \
		statement;                \
	break

static inline __attribute__((always_inline)) void combine(
	enum expr_op op, double *restrict a, const double *restrict b, unsigned nr)
{
	switch (op) {
	case OP_ADD:
		EACH(a[i] += b[i]);
	case OP_SUB:
		EACH(a[i] -= b[i]);
	case OP_MUL:
		EACH(a[i] *= b[i]);
	case OP_DIV:
		EACH(a[i] = b[i] == 0 ? NAN : a[i] / b[i]);
	case OP_OR:
		EACH(a[i] = isnan(a[i]) ? b[i] : a[i]);
	case OP_MAX:
		EACH(a[i] = isnan(a[i]) || isnan(b[i]) ? NAN : MAX(a[i], b[i]));
	default:
		EACH(a[i] = isnan(a[i]) || isnan(b[i]) ? NAN : MIN(a[i], b[i]));
	}
}

static inline __attribute__((always_inline)) void put(double *to, const double *from, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		to[i] = from[i];
}

static inline __attribute__((always_inline)) void fill(double *to, double v, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		to[i] = v;
}

/* Every step takes what it needs from the end of the stack and leaves one value there; the parser made sure
 * that it is there. Where the rates are known, their arguments are skipped. It is done for nr lanes at once,
 * which are stored side by side in place of each single value: so the cost of a step beside its arithmetic is
 * paid once for all lanes. Inlined for one lane and for many. */
static inline __attribute__((always_inline)) void run(const struct expr *e, const double *value,
	const double *rate, double *argument, double *stack, unsigned lanes, unsigned nr)
{
	double *end = stack;

	fill(stack, NAN, nr);
	for (const struct expr_step *s = e->step; s < e->step + e->nr_steps; s++) {
		switch (s->op) {
		case OP_NUMBER:
			fill(end, s->number, nr);
			end += lanes;
			break;
		case OP_NAME:
			put(end, value + s->index * lanes, nr);
			end += lanes;
			break;
		case OP_NEG:
			for (unsigned i = 0; i < nr; i++)
				(end - lanes)[i] = -(end - lanes)[i];
			break;
		case OP_INSIDE:
			if (!rate)
				break;
			s = e->step + (size_t)s->number;
			put(end, rate + s->index * lanes, nr);
			end += lanes;
			break;
		case OP_RATE:
			if (argument)
				put(argument + s->index * lanes, end - lanes, nr);
			fill(end - lanes, NAN, nr);
			break;
		default:
			end -= lanes;
			combine(s->op, end - lanes, end, nr);
		}
	}
	for (unsigned i = 0; i < nr; i++)
		stack[i] = isfinite(stack[i]) ? stack[i] : NAN;
}

void expr_arguments(const struct expr *e, const double *value, double *ret_argument)
{
	double stack[EXPR_STEPS];

	run(e, value, NULL, ret_argument, stack, 1, 1);
}

double expr_value(const struct expr *e, const double *value, const double *rate)
{
	double stack[EXPR_STEPS];

	run(e, value, rate, NULL, stack, 1, 1);
	return stack[0];
}

void expr_arguments_of_lanes(const struct expr *e, const double *value, unsigned nr, double *ret_argument)
{
	double stack[EXPR_STEPS * EXPR_LANES];

	run(e, value, NULL, ret_argument, stack, EXPR_LANES, nr);
}

void expr_value_of_lanes(
	const struct expr *e, const double *value, const double *rate, unsigned nr, double *ret_value)
{
	double stack[EXPR_STEPS * EXPR_LANES];

	run(e, value, rate, NULL, stack, EXPR_LANES, nr);
	put(ret_value, stack, nr);
}
