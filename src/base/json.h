/* Writes JSON into a buf. Commas and nesting are kept by the writer; the caller names what it adds. Inside an
 * object `key` names the value; inside an array it is NULL. Texts of others are bytes: json_bytes() escapes
 * them as utf8_escape() does, so that nothing is lost. Our own texts, and those that are escaped for people
 * already, are json_str() and json_text(). The output is always valid JSON. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"

struct json {
	struct buf *out;
	unsigned depth;
	bool pretty; /* two spaces a level, for people */
	bool first[16];
};

void json_init(struct json *j, struct buf *out, bool pretty);
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_end_array(struct json *j);
void json_str(struct json *j, const char *key, const char *value); /* NULL gives null */
void json_text(struct json *j, const char *key, const void *value, size_t len);
void json_name(struct json *j, const char *key, const char *value); /* bytes up to a NUL; NULL gives null */
void json_bytes(struct json *j, const char *key, const void *value, size_t len);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
/* Shortest text that reads back as the same double; NaN and infinities become null. */
void json_num(struct json *j, const char *key, double value);
void json_whole(struct json *j, const char *key, double value); /* as an integer, rounded */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* A value that is JSON already. */
void json_raw(struct json *j, const char *key, const void *text, size_t len);
/* For callers that write JSON themselves: the character as \uNNNN. */
void json_hidden(struct buf *out, uint32_t code);
#endif
