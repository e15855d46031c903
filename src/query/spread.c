/* A histogram whose bins are as wide as one sixty-fourth of the power of two below them: the first bits of a
 * double are its bin, so that finding it costs a shift, and no value is further from the middle of its bin
 * than one hundredth. Bins come in leaves of one power of two, made when the first value falls in: a line
 * that stays within a factor of a hundred takes 2 KiB, one that never changes 300 bytes.
 *
 * Rejected: a t-digest (exact in rank, but a quantile may be any value between two peaks, and order matters),
 * bins by logarithm (half as many, but they need libm, which the recorder does without). Weights are whole
 * numbers of a unit that doubles before a bin overflows: sums of small floats in a large one would drift. */
#include "query/spread.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

#define LEAF_BITS 6
#define LEAF_BINS (1u << LEAF_BITS)
#define MANTISSA_BITS 52
/* More powers of two than that are not told apart: what is smallest counts as the smallest that is. */
#define LEAVES_MOST 96
#define UNIT_FIRST 1e-6

struct leaf {
	int32_t key; /* by value: below 0 the negative numbers */
	uint32_t bin[LEAF_BINS];
};

struct spread {
	struct leaf **leaf; /* by key */
	unsigned nr, cap;
	double unit; /* of the weights in bins */
	double weight, sum, least, most;
};

struct spread *spread_new(void)
{
	struct spread *s = calloc(1, sizeof(*s));

	if (s) {
		s->unit = UNIT_FIRST;
		s->least = s->most = NAN;
	}
	return s;
}

struct spread *spread_free(struct spread *s)
{
	if (!s)
		return NULL;
	for (unsigned i = 0; i < s->nr; i++)
		free(s->leaf[i]);
	free(s->leaf);
	free(s);
	return NULL;
}

/* Its power of two and its bin in that; both rise with the value. Zero is the smallest of all above it. */
static int32_t place_of(double value, unsigned *ret_bin)
{
	uint64_t bits;
	int32_t exponent;

	memcpy(&bits, &value, sizeof(bits));
	exponent = (int32_t)(bits >> MANTISSA_BITS & 0x7ff);
	*ret_bin = (unsigned)(bits >> (MANTISSA_BITS - LEAF_BITS) & (LEAF_BINS - 1));
	if (!(bits >> 63))
		return exponent;
	*ret_bin = LEAF_BINS - 1 - *ret_bin;
	return -1 - exponent;
}

/* The middle of a bin. */
static double value_of(int32_t key, unsigned bin)
{
	bool negative = key < 0;
	uint64_t exponent = (uint64_t)(negative ? -1 - key : key);
	uint64_t fraction = negative ? LEAF_BINS - 1 - bin : bin, bits;
	double value;

	if (!exponent)
		return 0;
	bits = exponent << MANTISSA_BITS | fraction << (MANTISSA_BITS - LEAF_BITS) |
		UINT64_C(1) << (MANTISSA_BITS - LEAF_BITS - 1);
	memcpy(&value, &bits, sizeof(value));
	return negative ? -value : value;
}

static unsigned leaf_at(const struct spread *s, int32_t key)
{
	unsigned from = 0, to = s->nr;

	while (from < to) {
		unsigned middle = (from + to) / 2;

		if (s->leaf[middle]->key < key)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct leaf *leaf_new(struct spread *s, unsigned at, int32_t key)
{
	struct leaf *leaf;

	if (ARRAY_ROOM(s->leaf, s->cap, s->nr + 1) < 0)
		return NULL;
	leaf = calloc(1, sizeof(*leaf));
	if (!leaf)
		return NULL;
	leaf->key = key;
	memmove(s->leaf + at + 1, s->leaf + at, (s->nr - at) * sizeof(struct leaf *));
	s->leaf[at] = leaf;
	s->nr++;
	return leaf;
}

/* The leaf of a key, or without memory or beyond the most the one beside it; NULL when there is none. */
static struct leaf *leaf_of(struct spread *s, int32_t key)
{
	unsigned at = leaf_at(s, key);
	struct leaf *leaf = at < s->nr && s->leaf[at]->key == key ? s->leaf[at] : NULL;

	if (!leaf && s->nr < LEAVES_MOST)
		leaf = leaf_new(s, at, key);
	return leaf ? leaf : s->nr ? s->leaf[MIN(at, s->nr - 1)] : NULL;
}

static void unit_double(struct spread *s)
{
	for (unsigned i = 0; i < s->nr; i++)
		for (unsigned j = 0; j < LEAF_BINS; j++)
			s->leaf[i]->bin[j] = s->leaf[i]->bin[j] / 2 + s->leaf[i]->bin[j] % 2;
	s->unit *= 2;
}

void spread_add(struct spread *s, double value, double weight)
{
	struct leaf *leaf;
	unsigned bin;

	if (!isfinite(value) || !isfinite(weight) || !(weight > 0))
		return;
	leaf = leaf_of(s, place_of(value, &bin));
	if (!leaf)
		return;
	while (weight / s->unit + 1 > (double)(UINT32_MAX - leaf->bin[bin]))
		unit_double(s);
	leaf->bin[bin] += (uint32_t)MAX(weight / s->unit + 0.5, 1);
	s->weight += weight;
	s->sum += value * weight;
	s->least = isnan(s->least) ? value : MIN(s->least, value);
	s->most = isnan(s->most) ? value : MAX(s->most, value);
}

static double spread_total(const struct spread *s)
{
	double total = 0;

	for (unsigned i = 0; i < s->nr; i++)
		for (unsigned j = 0; j < LEAF_BINS; j++)
			total += s->leaf[i]->bin[j];
	return total;
}

double spread_quantile(const struct spread *s, double q)
{
	double wanted = spread_total(s) * q, below = 0;

	if (!s->nr || !(q > 0))
		return s->least;
	for (unsigned i = 0; i < s->nr && q < 1; i++)
		for (unsigned j = 0; j < LEAF_BINS; j++) {
			below += s->leaf[i]->bin[j];
			if (below >= wanted && s->leaf[i]->bin[j])
				return MIN(MAX(value_of(s->leaf[i]->key, j), s->least), s->most);
		}
	return s->most;
}

double spread_mean(const struct spread *s)
{
	return s->weight > 0 ? s->sum / s->weight : NAN;
}

double spread_weight(const struct spread *s)
{
	return s->weight;
}
