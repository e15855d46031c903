/* Writes JSON into a buf: see json.h. */
#include "base/json.h"

#include "base/str.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void json_init(struct json *j, struct buf *out, bool pretty)
{
	*j = (struct json){.out = out, .pretty = pretty, .first = {true}};
}

void json_hidden(struct buf *out, uint32_t code)
{
	if (code >= 0x10000)
		buf_addf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
	else
		buf_addf(out, "\\u%04x", code);
}

/* Of what stands for itself: most texts are nothing else. */
static size_t plain_length(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *from = p;

	while (p < end && *p >= ' ' && *p < 0x7f && *p != '"' && *p != '\\')
		p++;
	return (size_t)(p - from);
}

static void json_quote(struct buf *out, const void *text, size_t n)
{
	const uint8_t *p = text, *end = p + n;

	buf_addch(out, '"');
	while (p < end) {
		size_t len = plain_length(p, end);

		if (len) {
			buf_add(out, p, len);
			p += len;
			continue;
		}
		len = utf8_length(p, end);

		if (len == 1 && (*p == '"' || *p == '\\'))
			buf_addf(out, "\\%c", *p);
		else if (len == 1 && *p == '\n')
			buf_adds(out, "\\n");
		else if (len && !shown_length(p, end))
			json_hidden(out, utf8_code(p, len));
		else if (len)
			buf_add(out, p, len);
		else
			buf_addf(out, "\\\\x%02x", *p); /* no UTF-8: still valid JSON */
		p += len ? len : 1;
	}
	buf_addch(out, '"');
}

static void json_begin(struct json *j, const char *key)
{
	bool *first = &j->first[MIN(j->depth, ARRAY_SIZE(j->first) - 1)];

	if (!*first)
		buf_addch(j->out, ',');
	*first = false;
	if (j->pretty && j->depth)
		buf_addf(j->out, "\n%*s", (int)j->depth * 2, "");
	if (key) {
		json_quote(j->out, key, strlen(key));
		buf_adds(j->out, j->pretty ? ": " : ":");
	}
}

static void json_open(struct json *j, const char *key, char c)
{
	json_begin(j, key);
	buf_addch(j->out, c);
	j->depth++;
	j->first[MIN(j->depth, ARRAY_SIZE(j->first) - 1)] = true;
}

static void json_shut(struct json *j, char c)
{
	bool empty = j->first[MIN(j->depth, ARRAY_SIZE(j->first) - 1)];

	j->depth--;
	if (j->pretty && !empty)
		buf_addf(j->out, "\n%*s", (int)j->depth * 2, "");
	buf_addch(j->out, c);
}

void json_object(struct json *j, const char *key)
{
	json_open(j, key, '{');
}

void json_array(struct json *j, const char *key)
{
	json_open(j, key, '[');
}

void json_end_object(struct json *j)
{
	json_shut(j, '}');
}

void json_end_array(struct json *j)
{
	json_shut(j, ']');
}

void json_text(struct json *j, const char *key, const void *value, size_t len)
{
	json_begin(j, key);
	json_quote(j->out, value, len);
}

void json_bytes(struct json *j, const char *key, const void *value, size_t len)
{
	struct buf text;

	buf_init(&text, len * 4 + 1);
	utf8_escape(&text, value, len);
	if (text.err)
		j->out->err = text.err;
	json_text(j, key, text.data, text.len);
	buf_release(&text);
}

void json_str(struct json *j, const char *key, const char *value)
{
	if (value)
		json_text(j, key, value, strlen(value));
	else
		json_null(j, key);
}

void json_name(struct json *j, const char *key, const char *value)
{
	if (value)
		json_bytes(j, key, value, strlen(value));
	else
		json_null(j, key);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	json_begin(j, key);
	buf_addf(j->out, "%lld", (long long)value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	json_begin(j, key);
	buf_addf(j->out, "%llu", (unsigned long long)value);
}

void json_num(struct json *j, const char *key, double value)
{
	char text[UNITS_SIZE];

	json_begin(j, key);
	buf_adds(j->out, isfinite(value) ? format_exact(text, value) : "null");
}

void json_whole(struct json *j, const char *key, double value)
{
	if (fabs(value) < 9e18)
		json_int(j, key, round_i64(value));
	else
		json_num(j, key, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_begin(j, key);
	buf_adds(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	json_begin(j, key);
	buf_adds(j->out, "null");
}

void json_raw(struct json *j, const char *key, const void *text, size_t len)
{
	json_begin(j, key);
	buf_add(j->out, text, len);
}
