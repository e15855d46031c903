/* The parser of derived metrics on any text, and what it made run on all kinds of values. */
#include "base/expr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const double some[] = {0, 1, -1, NAN, 1e308, -1e308, 0.5};
	double value[EXPR_NAMES], rate[EXPR_RATES], argument[EXPR_RATES];
	char *text = malloc(size + 1);
	const char *why = NULL;
	size_t at = 0;
	struct expr e;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	if (expr_parse(&e, text, &why, &at) < 0) {
		if (!why || at > strlen(text))
			abort();
	} else {
		for (size_t i = 0; i < EXPR_NAMES; i++)
			value[i] = some[(i + size) % ARRAY_SIZE(some)];
		for (size_t i = 0; i < EXPR_RATES; i++)
			rate[i] = some[i];
		expr_arguments(&e, value, argument);
		if (isinf(expr_value(&e, value, rate)))
			abort();
	}
	free(text);
	return 0;
}
