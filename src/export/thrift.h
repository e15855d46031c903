/* Writing Thrift's compact protocol: fields by number, integers as zigzag varints, what is not set is not
 * there. Structs nest; each remembers the number of its last field, since a field says only how far it is
 * from it. */
#ifndef EXPORT_THRIFT_H
#define EXPORT_THRIFT_H

#include "base/buf.h"

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE = 2,
	THRIFT_BYTE = 3,
	THRIFT_I16 = 4,
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_BINARY = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12,
};

#define THRIFT_DEPTH 8

struct thrift {
	struct buf *out;
	unsigned depth;
	int16_t last[THRIFT_DEPTH];
};

/* Writes a struct at the end of `out`; thrift_end() ends it. */
void thrift_begin(struct thrift *t, struct buf *out);
void thrift_end(struct thrift *t); /* of whatever struct was begun last */

void thrift_bool(struct thrift *t, int field, bool v);
void thrift_i8(struct thrift *t, int field, int8_t v);
void thrift_i32(struct thrift *t, int field, int32_t v);
void thrift_i64(struct thrift *t, int field, int64_t v);
void thrift_binary(struct thrift *t, int field, const void *data, size_t len);
void thrift_text(struct thrift *t, int field, const char *s);
void thrift_struct(struct thrift *t, int field);

/* A list, then so many elements: these by the functions below. */
void thrift_list(struct thrift *t, int field, enum thrift_type type, size_t nr);
void thrift_element_struct(struct thrift *t); /* with thrift_end() */
void thrift_element_i32(struct thrift *t, int32_t v);
void thrift_element_text(struct thrift *t, const char *s);
#endif
