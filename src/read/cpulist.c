/* Lists of CPUs as sets of bits: a kilobyte on the stack, and union, count and "the next one not seen yet"
 * are loops over words. glibc's cpu_set_t is too small for a large host. */
#include "read/cpulist.h"

static bool take(const char **p, unsigned long *ret)
{
	char *end;

	if (**p < '0' || **p > '9')
		return false;
	*ret = strtoul(*p, &end, 10);
	*p = end;
	return true;
}

unsigned cpu_bits_add(struct cpu_bits *set, const char *list)
{
	unsigned long first, last;

	while (take(&list, &first)) {
		last = first;
		if (*list == '-' && (list++, !take(&list, &last)))
			break;
		for (unsigned long i = first; i <= last && i < CPU_SET_MAX; i++)
			set->word[i / 64] |= UINT64_C(1) << i % 64;
		if (*list != ',')
			break;
		list++;
	}
	return cpu_bits_count(set);
}

unsigned cpu_bits_count(const struct cpu_bits *set)
{
	unsigned nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(set->word); i++)
		nr += (unsigned)__builtin_popcountll(set->word[i]);
	return nr;
}

int cpu_bits_next(const struct cpu_bits *set, int from)
{
	for (int i = from; i >= 0 && i < CPU_SET_MAX; i = (i / 64 + 1) * 64) {
		uint64_t rest = set->word[i / 64] >> i % 64;

		if (rest)
			return i + __builtin_ctzll(rest);
	}
	return -1;
}
