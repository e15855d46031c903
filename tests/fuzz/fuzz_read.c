/* The text readers on any text, against readers too simple to be wrong.
 *
 * Input: two texts, parted by a line "----". Keys: a reader that has learned the first must read the second
 * as one that has not, and both as the simple one does. Columns: the first byte chooses the number of the
 * first column. */
#include "read/read.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COLS 8

/* clang-format off */
static const struct metric metric[] = {
	{"a", "", {.key = "a", .col = 1}},
	{"b", "", {.key = "MemFree", .col = 3}},
	{"c", "", {.key = "MemFreeOfAll", .col = 4}},
	{"d", "", {.key = "SigIgn", .arg = 16, .col = 4}},
	{"e", "", {.key = "avg", .col = 17}, SCALE_CENTI},
	{"f", "", {.key = "Eightchr", .col = 42}},
	{"g", "", {.key = "nonvoluntary_ctxt_switches", .col = 2}},
	{"h", "", {.key = "Active(anon)", .col = 52}},
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(metric) == COLS, "one column a row");

static struct columns_map map;

struct cells {
	int64_t cell[COLS];
	uint64_t valid;
	bool twice; /* a key stands twice: which one counts is not said */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits of a base, one by one. */
static const char *simple_digits(const char *p, const char *end, unsigned base, uint64_t *v)
{
	for (; p < end; p++) {
		unsigned digit = is_digit(*p)	 ? (unsigned)(*p - '0')
			: *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
			: *p >= 'A' && *p <= 'F' ? (unsigned)(*p - 'A') + 10
						 : 99;

		if (digit >= base)
			break;
		*v = *v * base + digit;
	}
	return p;
}

static const char *simple_number(const char *p, const char *end, unsigned base, bool fraction, int64_t *ret)
{
	bool negative = base == 10 && p < end && *p == '-';
	const char *start = p + negative, *stop;
	uint64_t v = 0;

	stop = simple_digits(start, end, base, &v);
	if (stop == start)
		return NULL;
	if (fraction) {
		unsigned digits = 0;

		if (stop + 1 < end && *stop == '.' && is_digit(stop[1]))
			for (stop++; stop < end && is_digit(*stop); stop++)
				if (digits < 2) {
					v = v * 10 + (uint64_t)(*stop - '0');
					digits++;
				}
		for (; digits < 2; digits++)
			v *= 10;
	}
	*ret = (int64_t)(negative ? -v : v);
	return stop;
}

static struct cells simple_keys(const char *text, size_t len)
{
	struct cells out = {0};

	for (size_t i = 0; i < COLS; i++) {
		size_t key_len = strlen(metric[i].at.key);
		const char *p = NULL, *end = text + len;

		for (size_t at = 0; at < len; at++) {
			if ((at && text[at - 1] != '\n') || len - at <= key_len ||
				memcmp(text + at, metric[i].at.key, key_len) || !text[at + key_len] ||
				!strchr(": \t", text[at + key_len]))
				continue;
			out.twice |= p != NULL;
			p = text + at + key_len;
		}
		if (!p)
			continue;
		p += *p == ':';
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (simple_number(p, end, metric[i].at.arg == 16 ? 16 : 10, metric[i].scale == SCALE_CENTI,
			    &out.cell[i]))
			out.valid |= UINT64_C(1) << i;
	}
	return out;
}

static struct cells simple_columns(const char *text, size_t len, unsigned first)
{
	const char *p = text, *end = text + len;
	struct cells out = {0};

	for (unsigned col = first;; col++) {
		const char *word, *stop;

		while (p < end && (unsigned char)*p <= ' ')
			p++;
		if (p == end)
			return out;
		for (word = p; p < end && (unsigned char)*p > ' '; p++)
			;
		for (size_t i = 0; i < COLS; i++) {
			if (metric[i].at.col != (int)col)
				continue;
			stop = simple_number(word, p, 10, false, &out.cell[i]);
			if (!stop && p - word == 1 &&
				((*word >= 'a' && *word <= 'z') || (*word >= 'A' && *word <= 'Z'))) {
				out.cell[i] = *word;
				stop = p;
			}
			if (stop == p)
				out.valid |= UINT64_C(1) << i;
		}
	}
}

static void compare(struct table *t, const struct cells *want)
{
	if (t->valid[0] != want->valid)
		abort();
	for (size_t i = 0; i < COLS; i++)
		if (want->valid >> i & 1 && table_row(t, 0)[i] != want->cell[i])
			abort();
}

/* The texts get memory of exactly their size. */
static char *copy(const void *data, size_t size)
{
	char *text = malloc(size ? size : 1);

	if (!text)
		abort();
	return memcpy(text, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char part[] = "\n----\n";
	const uint8_t *at = memmem(data, size, part, sizeof(part) - 1);
	size_t first_len = at ? (size_t)(at - data) + 1 : size / 2;
	size_t second_at = at ? first_len + sizeof(part) - 2 : first_len, second_len = size - second_at;
	char *first = copy(data, first_len), *second = copy(data + second_at, second_len);
	struct columns_reader columns;
	struct kv_reader kv;
	struct cells want;
	struct table t;

	if (table_init(&t, COLS, 1) < 0)
		abort();
	table_bind(&t, 0, 1);
	for (int i = 0; i < METRICS_MAX; i++)
		map.col[i] = (int8_t)i;
	kv_init(&kv, metric, COLS, 0, &map);
	for (int i = 0; i < 5; i++) {
		const char *text = i % 3 == 2 ? second : first;
		size_t len = i % 3 == 2 ? second_len : first_len;

		want = simple_keys(text, len);
		if (kv_read(&kv, text, len, &t, 0) != (unsigned)__builtin_popcountll(t.valid[0]))
			abort();
		if (!want.twice)
			compare(&t, &want);
	}
	columns_init(&columns, metric, COLS, 0, &map);
	for (int i = 0; i < 2; i++) {
		unsigned number = size ? data[0] % 50 + 1 : 1;

		want = simple_columns(i ? second : first, i ? second_len : first_len, number);
		columns_read(&columns, i ? second : first, i ? second_len : first_len, number, &t, 0);
		compare(&t, &want);
	}
	table_release(&t);
	free(first);
	free(second);
	return 0;
}
