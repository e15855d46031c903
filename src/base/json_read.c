/* A reader of JSON: see json_read.h. Strict, except that bytes in texts need not be UTF-8. */
#include "base/json_read.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MOST 32
#define PATH_MOST 512

struct json_reader {
	const char *p, *end;
	json_take *take;
	void *arg;
	unsigned depth;
	bool silent; /* within a list */
	size_t path_len;
	char path[PATH_MOST];
	struct buf text;
};

static int value(struct json_reader *j);

static void skip_space(struct json_reader *j)
{
	while (j->p < j->end && memchr(" \t\r\n", *j->p, 4))
		j->p++;
}

static bool next_is(struct json_reader *j, char c)
{
	skip_space(j);
	if (j->p >= j->end || *j->p != c)
		return false;
	j->p++;
	return true;
}

/* ---- texts ---- */

static int hex4(struct json_reader *j, uint32_t *ret)
{
	uint32_t v = 0;

	if (j->end - j->p < 4)
		return -EBADMSG;
	for (unsigned i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		char c = *j->p++;
		const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

		if (!at)
			return -EBADMSG;
		v = v << 4 | (uint32_t)(at - digits);
	}
	*ret = v;
	return 0;
}

static void add_code(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_addch(b, (int)c);
	} else if (c < 0x800) {
		buf_addch(b, (int)(0xc0 | c >> 6));
		buf_addch(b, (int)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_addch(b, (int)(0xe0 | c >> 12));
		buf_addch(b, (int)(0x80 | (c >> 6 & 0x3f)));
		buf_addch(b, (int)(0x80 | (c & 0x3f)));
	} else {
		buf_addch(b, (int)(0xf0 | c >> 18));
		buf_addch(b, (int)(0x80 | (c >> 12 & 0x3f)));
		buf_addch(b, (int)(0x80 | (c >> 6 & 0x3f)));
		buf_addch(b, (int)(0x80 | (c & 0x3f)));
	}
}

/* Half of a pair that has no other half is no character. */
static int unicode(struct json_reader *j)
{
	uint32_t c, low;

	if (hex4(j, &c) < 0)
		return -EBADMSG;
	if (c >= 0xd800 && c < 0xdc00 && j->end - j->p > 2 && j->p[0] == '\\' && j->p[1] == 'u') {
		j->p += 2;
		if (hex4(j, &low) < 0 || low < 0xdc00 || low > 0xdfff)
			return -EBADMSG;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	add_code(&j->text, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return 0;
}

static int escape(struct json_reader *j)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	char c;

	if (j->p >= j->end)
		return -EBADMSG;
	c = *j->p++;
	if (c == 'u')
		return unicode(j);
	at = c ? strchr(from, c) : NULL;
	if (!at)
		return -EBADMSG;
	buf_addch(&j->text, to[at - from]);
	return 0;
}

/* Behind the quotation mark; into j->text. */
static int string(struct json_reader *j)
{
	buf_reset(&j->text);
	while (j->p < j->end && *j->p != '"') {
		unsigned char c = (unsigned char)*j->p++;

		if (c < 0x20)
			return -EBADMSG;
		if (c != '\\')
			buf_addch(&j->text, c);
		else if (escape(j) < 0)
			return -EBADMSG;
	}
	if (j->p >= j->end)
		return -EBADMSG;
	j->p++;
	return j->text.err;
}

/* ---- values ---- */

static int tell(struct json_reader *j, enum json_leaf leaf, const char *text, size_t len)
{
	return j->silent ? 0 : j->take(j->arg, j->path, leaf, text, len);
}

static size_t digits(struct json_reader *j)
{
	const char *from = j->p;

	while (j->p < j->end && *j->p >= '0' && *j->p <= '9')
		j->p++;
	return (size_t)(j->p - from);
}

static int number(struct json_reader *j)
{
	const char *from;
	size_t n;

	j->p += *j->p == '-';
	from = j->p;
	n = digits(j);
	if (!n || (*from == '0' && n > 1))
		return -EBADMSG;
	if (j->p < j->end && *j->p == '.') {
		j->p++;
		if (!digits(j))
			return -EBADMSG;
	}
	if (j->p < j->end && (*j->p == 'e' || *j->p == 'E')) {
		j->p++;
		j->p += j->p < j->end && (*j->p == '-' || *j->p == '+');
		if (!digits(j))
			return -EBADMSG;
	}
	return 0;
}

static int key(struct json_reader *j)
{
	skip_space(j);
	if (!next_is(j, '"') || string(j) < 0 || memchr(j->text.data, 0, j->text.len))
		return -EBADMSG;
	if (j->path_len + j->text.len + 2 > sizeof(j->path))
		return -EBADMSG;
	if (j->path_len)
		j->path[j->path_len++] = '.';
	memcpy(j->path + j->path_len, j->text.data, j->text.len + 1);
	j->path_len += j->text.len;
	return next_is(j, ':') ? 0 : -EBADMSG;
}

static int object(struct json_reader *j)
{
	size_t before = j->path_len;
	int r = 0;

	if (next_is(j, '}'))
		return 0;
	do {
		r = key(j);
		if (r >= 0)
			r = value(j);
		j->path_len = before;
		j->path[before] = 0;
	} while (r >= 0 && next_is(j, ','));
	return r < 0 ? r : next_is(j, '}') ? 0 : -EBADMSG;
}

static int list(struct json_reader *j)
{
	const char *from = j->p - 1;
	bool was_silent = j->silent;
	int r = 0;

	j->silent = true;
	if (!next_is(j, ']')) {
		do
			r = value(j);
		while (r >= 0 && next_is(j, ','));
		if (r >= 0 && !next_is(j, ']'))
			r = -EBADMSG;
	}
	j->silent = was_silent;
	return r < 0 ? r : tell(j, LEAF_LIST, from, (size_t)(j->p - from));
}

static int word(struct json_reader *j)
{
	static const struct {
		const char *word;
		enum json_leaf leaf;
	} row[] = {{"true", LEAF_TRUE}, {"false", LEAF_FALSE}, {"null", LEAF_NULL}};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		size_t n = strlen(row[i].word);

		if ((size_t)(j->end - j->p) >= n && !memcmp(j->p, row[i].word, n)) {
			j->p += n;
			return tell(j, row[i].leaf, row[i].word, n);
		}
	}
	return -EBADMSG;
}

static int nested(struct json_reader *j, int (*read)(struct json_reader *j))
{
	int r;

	if (j->depth == DEPTH_MOST)
		return -EBADMSG;
	j->depth++;
	j->p++;
	r = read(j);
	j->depth--;
	return r;
}

static int value(struct json_reader *j)
{
	const char *from;
	int r;

	skip_space(j);
	if (j->p >= j->end)
		return -EBADMSG;
	switch (*j->p) {
	case '{':
		return nested(j, object);
	case '[':
		return nested(j, list);
	case '"':
		j->p++;
		r = string(j);
		return r < 0 ? r : tell(j, LEAF_TEXT, (char *)j->text.data, j->text.len);
	case '-':
	case '0' ... '9':
		from = j->p;
		r = number(j);
		return r < 0 ? r : tell(j, LEAF_NUMBER, from, (size_t)(j->p - from));
	default:
		return word(j);
	}
}

/* Behind the bracket. */
static int items(struct json_reader *j)
{
	int r = 0;

	if (next_is(j, ']'))
		return 0;
	for (size_t i = 0; r >= 0; i++) {
		j->path_len = (size_t)snprintf(j->path, sizeof(j->path), "%zu", i);
		r = value(j);
		if (r >= 0 && !next_is(j, ','))
			break;
	}
	return r < 0 ? r : next_is(j, ']') ? 0 : -EBADMSG;
}

static int read_all(
	const char *text, size_t len, json_take *take, void *arg, int (*read)(struct json_reader *j))
{
	struct json_reader j = {.p = text, .end = text + len, .take = take, .arg = arg};
	int r;

	buf_init(&j.text, len + 1);
	r = read(&j);
	skip_space(&j);
	if (r >= 0 && j.p != j.end)
		r = -EBADMSG;
	buf_release(&j.text);
	return r;
}

int json_read(const char *text, size_t len, json_take *take, void *arg)
{
	return read_all(text, len, take, arg, value);
}

static int whole_list(struct json_reader *j)
{
	return next_is(j, '[') ? items(j) : -EBADMSG;
}

int json_read_list(const char *text, size_t len, json_take *take, void *arg)
{
	return read_all(text, len, take, arg, whole_list);
}
