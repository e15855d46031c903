/* Texts: numbers, intervals and sizes from them, escapes, UTF-8, and the nearest of several words. */
#include "base/str.h"

#include <math.h>
#include <string.h>

bool parse_u64(const char *s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
			__builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	}
	*ret = v;
	return true;
}

bool parse_i64n(const char *s, size_t len, int64_t *ret)
{
	bool negative = len && *s == '-';
	int64_t v = 0;

	if (len == (size_t)negative)
		return false;
	for (size_t i = negative; i < len; i++) {
		int digit = s[i] - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, INT64_C(10), &v) ||
			__builtin_add_overflow(v, negative ? -digit : digit, &v))
			return false;
	}
	*ret = v;
	return true;
}

bool parse_decimal(const char *s, double *ret)
{
	double v = 0, unit = 1;
	bool digits = false, point = false;

	for (; *s; s++) {
		if (*s == '.' && !point) {
			point = true;
			continue;
		}
		if (*s < '0' || *s > '9')
			return false;
		digits = true;
		v = v * 10 + (*s - '0');
		if (point)
			unit *= 10;
	}
	if (!digits || !isfinite(v) || !isfinite(unit))
		return false;
	*ret = v / unit;
	return true;
}

int parse_interval(const char *s, int64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} unit[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"m", 60e9}, {"min", 60e9},
		{"h", 3600e9}, {"d", 86400e9}};
	size_t n = strspn(s, "0123456789.");
	char number[32];
	double v, ns = 0;

	if (n >= sizeof(number))
		return -EINVAL;
	memcpy(number, s, n);
	number[n] = 0;
	if (!parse_decimal(number, &v))
		return -EINVAL;
	if (!strcasecmp(s + n, "hz"))
		ns = v > 0 ? 1e9 / v : 0;
	else {
		size_t i = 0;

		while (i < ARRAY_SIZE(unit) && strcmp(s + n, unit[i].name))
			i++;
		if (i == ARRAY_SIZE(unit))
			return -EINVAL;
		ns = v * unit[i].ns;
	}
	if (ns > 1e18)
		return -ERANGE;
	*ret_ns = (int64_t)(ns + 0.5);
	return 0;
}

int parse_bytes(const char *s, double *ret_bytes)
{
	static const char units[] = "KMGTPE";
	size_t n = strspn(s, "0123456789.");
	char number[32];
	const char *unit;
	double value;

	if (n == 0 || n >= sizeof(number))
		return -EINVAL;
	memcpy(number, s, n);
	number[n] = 0;
	if (!parse_decimal(number, &value))
		return -EINVAL;
	s += n;
	unit = *s ? strchr(units, *s >= 'a' ? *s - 'a' + 'A' : *s) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		value *= 1024;
	s += unit != NULL;
	if (unit && *s == 'i')
		s++;
	if (*s == 'B' || *s == 'b')
		s++;
	if (*s)
		return -EINVAL;
	if (!(value < 9e18))
		return -ERANGE;
	*ret_bytes = value;
	return 0;
}

size_t format_i64(char *out, int64_t v)
{
	char tmp[20];
	size_t n = 0, sign = v < 0;
	uint64_t u = sign ? -(uint64_t)v : (uint64_t)v;

	do
		tmp[n++] = (char)('0' + u % 10);
	while (u /= 10);
	if (sign)
		*out++ = '-';
	for (size_t i = 0; i < n; i++)
		out[i] = tmp[n - 1 - i];
	return n + sign;
}

bool str_starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

size_t utf8_length(const uint8_t *p, const uint8_t *end)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = *p < 0x80 ? 1 : *p >= 0xf0 && *p < 0xf8 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc2 ? 2 : 0;
	uint32_t code;

	if (!n || *p >= 0xf8 || (size_t)(end - p) < n)
		return 0;
	if (n == 1)
		return 1;
	code = *p & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

uint32_t utf8_code(const uint8_t *p, size_t len)
{
	uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (p[i] & 0x3f);
	return code;
}

/* Characters that are not shown as they are, because readers would be misled: control characters (C0, DEL,
 * C1: terminals obey them), marks that change the direction of the text around them, other ends of lines,
 * characters without width. Joiners (U+200C, U+200D) stay: some scripts need them. */
static bool is_hidden(uint32_t c)
{
	/* clang-format off */
	static const struct { uint32_t first, last; } range[] = {
		{0x00, 0x1f}, {0x7f, 0x9f},	/* control characters */
		{0xad, 0xad},			/* a hyphen that is not shown */
		{0x61c, 0x61c}, {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x206f}, /* direction of the text */
		{0x200b, 0x200b}, {0x2060, 0x2064}, {0xfeff, 0xfeff}, {0x180e, 0x180e}, /* no width at all */
		{0x2028, 0x2029},		/* ends of lines and paragraphs */
		{0xfdd0, 0xfdef}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},	/* no characters, annotations, tags */
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(range); i++)
		if (c >= range[i].first && c <= range[i].last)
			return true;
	return (c & 0xfffe) == 0xfffe;
}

size_t shown_length(const uint8_t *p, const uint8_t *end)
{
	size_t len = utf8_length(p, end);

	if (len == 1)
		return *p >= 0x20 && *p != 0x7f;
	return len && is_hidden(utf8_code(p, len)) ? 0 : len;
}

void show_bytes(struct buf *out, const void *bytes, size_t n, const char *keep)
{
	const uint8_t *p = bytes, *end = p + n;

	while (p < end) {
		size_t len = shown_length(p, end), hidden = len ? 0 : MAX(utf8_length(p, end), (size_t)1);
		bool line_end = *p == '\r' && p + 1 < end && p[1] == '\n' && strchr(keep, '\n');

		if (!len && ((*p && strchr(keep, *p)) || line_end))
			len = 1;
		if (len)
			buf_add(out, p, len);
		else if (hidden > 1)
			buf_addf(out, hidden > 3 ? "\\U%08x" : "\\u%04x", utf8_code(p, hidden));
		else
			buf_addf(out, "\\x%02x", *p);
		p += len ? len : hidden;
	}
}

void escape_bytes(struct buf *out, const void *bytes, size_t n)
{
	const uint8_t *p = bytes, *end = p + n;

	while (p < end) {
		const uint8_t *from = p;

		while (p < end && *p != '\n' && *p != '\t' && *p != '\\')
			p++;
		show_bytes(out, from, (size_t)(p - from), "");
		if (p < end) {
			buf_addch(out, '\\');
			buf_addch(out, *p == '\n' ? 'n' : *p == '\t' ? 't' : '\\');
			p++;
		}
	}
}

bool is_formula(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && text[at] == '\'')
		at++;
	return at < len && memchr("=+-@\t\r\n", text[at], 7);
}

/* The text in quotes, in which each quote is replaced by `twice`. */
static void add_quoted(struct buf *out, const char *text, size_t len, char quote, const char *twice)
{
	const char *end = text + len, *at;

	buf_addch(out, quote);
	for (; (at = memchr(text, quote, (size_t)(end - text))); text = at + 1) {
		buf_add(out, text, (size_t)(at - text));
		buf_adds(out, twice);
	}
	buf_add(out, text, (size_t)(end - text));
	buf_addch(out, quote);
}

static bool has_any(const char *text, size_t len, const char *of)
{
	for (; *of; of++)
		if (memchr(text, *of, len))
			return true;
	return false;
}

void add_csv_field(struct buf *out, const char *text, size_t len)
{
	if (!len || has_any(text, len, "\",\r\n") || text[0] == ' ' || text[len - 1] == ' ')
		add_quoted(out, text, len, '"', "\"\"");
	else
		buf_add(out, text, len);
}

bool is_shell_word(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((uint8_t)word[i] <= ' ' || strchr("\"'\\$`!*?[]{}()<>|&;~#", word[i]))
			return false;
	return len > 0;
}

void add_shell_quoted(struct buf *out, const char *text, size_t len)
{
	add_quoted(out, text, len, '\'', "'\\''");
}

void add_shell_word(struct buf *out, const char *word, size_t len)
{
	if (is_shell_word(word, len))
		buf_add(out, word, len);
	else
		add_shell_quoted(out, word, len);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void add_utf8(struct buf *out, uint32_t code)
{
	uint8_t bytes[4];
	size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = len; i-- > 1; code >>= 6)
		bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
	bytes[0] = (uint8_t)(lead[len] | code);
	buf_add(out, bytes, len);
}

/* \uNNNN and \UNNNNNNNN: the length with the backslash, 0 when it is none. */
static size_t unescape_code(struct buf *out, const char *text, size_t left)
{
	size_t digits = left > 1 && text[1] == 'u' ? 4 : left > 1 && text[1] == 'U' ? 8 : 0;
	uint32_t code = 0;

	if (!digits || left < digits + 2)
		return 0;
	for (size_t i = 0; i < digits; i++) {
		int digit = hex_digit(text[2 + i]);

		if (digit < 0 || code > 0x10ffff >> 4)
			return 0;
		code = code << 4 | (uint32_t)digit;
	}
	add_utf8(out, code);
	return digits + 2;
}

void unescape_bytes(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t left = n - i, code = text[i] == '\\' ? unescape_code(out, text + i, left) : 0;

		if (code) {
			i += code - 1;
			continue;
		}

		if (text[i] != '\\' || left < 2) {
			buf_addch(out, text[i]);
		} else if (text[i + 1] == 'x' && left >= 4 && hex_digit(text[i + 2]) >= 0 &&
			hex_digit(text[i + 3]) >= 0) {
			buf_addch(out, hex_digit(text[i + 2]) << 4 | hex_digit(text[i + 3]));
			i += 3;
		} else {
			i++;
			buf_addch(out, text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i]);
		}
	}
}

/* Backslashes are doubled where an x follows them, both the text's own and ours: so an odd number of them
 * before an x is an escape, and an even number is none. */
void utf8_escape(struct buf *out, const void *bytes, size_t n)
{
	const uint8_t *p = bytes, *end = p + n;

	while (p < end) {
		const uint8_t *from = p;
		size_t run, len;

		while (p < end && *p == '\\')
			p++;
		run = (size_t)(p - from);
		len = p < end && *p ? utf8_length(p, end) : 0;
		buf_add(out, from, run);
		if (p < end && (!len || *p == 'x'))
			buf_add(out, from, run);
		if (p == end)
			return;
		if (len)
			buf_add(out, p, len);
		else
			buf_addf(out, "\\x%02x", *p);
		p += MAX(len, 1u);
	}
}

void utf8_unescape(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t run = 0, at;
		int high, low;

		while (i + run < n && text[i + run] == '\\')
			run++;
		at = i + run;
		if (at == n || text[at] != 'x' || !run) {
			buf_add(out, text + i, MIN(run + 1, n - i));
			i += run + 1;
			continue;
		}
		buf_add(out, text + i, run / 2);
		high = run % 2 && at + 2 < n ? hex_digit(text[at + 1]) : -1;
		low = high >= 0 ? hex_digit(text[at + 2]) : -1;
		buf_addch(out, low >= 0 ? high << 4 | low : 'x');
		i = at + (low >= 0 ? 3 : 1);
	}
}

size_t utf8_columns(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

unsigned str_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[STR_FAR];

	if (n >= ARRAY_SIZE(row) || m >= ARRAY_SIZE(row))
		return STR_FAR;
	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0]++;

		for (size_t j = 1; j <= m; j++) {
			unsigned above = row[j], change = diagonal + (a[i - 1] != b[j - 1]);

			row[j] = MIN(change, MIN(above, row[j - 1]) + 1);
			diagonal = above;
		}
	}
	return row[m];
}

struct nearest nearest_to(const char *word, size_t least)
{
	return (struct nearest){.word = word, .least = (unsigned)MIN(least, (size_t)STR_FAR)};
}

unsigned slips_allowed(size_t len)
{
	return len < 4 ? 1 : len < 8 ? 2 : 3;
}

struct nearest nearest_slip(const char *word)
{
	return nearest_to(word, slips_allowed(strlen(word)) + 1);
}

bool nearest_offer(struct nearest *n, const char *name, unsigned distance)
{
	if (distance >= n->least)
		return false;
	n->least = distance;
	n->best = name;
	return true;
}

bool nearest_try(struct nearest *n, const char *name)
{
	return nearest_offer(n, name, str_distance(n->word, name));
}

void nearest_ask(const struct nearest *n, struct buf *out)
{
	if (n->best)
		buf_addf(out, "; did you mean '%s'?", n->best);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Both point at digits, and afterwards behind them. */
static int order_of_numbers(const char **a, const char **b)
{
	const char *x = *a + strspn(*a, "0"), *y = *b + strspn(*b, "0");
	size_t nx = strspn(x, "0123456789"), ny = strspn(y, "0123456789");
	int c = nx != ny ? (nx < ny ? -1 : 1) : memcmp(x, y, nx);

	*a = x + nx;
	*b = y + ny;
	return c;
}

int str_order(const char *a, const char *b)
{
	const char *x = a, *y = b;

	while (*x && *y) {
		int c = is_digit(*x) && is_digit(*y) ? order_of_numbers(&x, &y)
						     : (unsigned char)*x++ - (unsigned char)*y++;

		if (c)
			return c;
	}
	if (*x || *y)
		return *x ? 1 : -1;
	return strlen(a) != strlen(b) ? (strlen(a) < strlen(b) ? -1 : 1) : strcmp(a, b);
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (const uint8_t *p = bytes, *end = p + n; p < end; p++)
		hash = (hash ^ *p) * UINT64_C(1099511628211);
	return hash;
}
