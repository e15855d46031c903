/* Writes Thrift's compact protocol: see thrift.h. */
#include "export/thrift.h"

#include <string.h>

void thrift_begin(struct thrift *t, struct buf *out)
{
	*t = (struct thrift){.out = out};
}

void thrift_end(struct thrift *t)
{
	buf_addch(t->out, 0);
	if (t->depth)
		t->depth--;
}

static void field_header(struct thrift *t, int field, enum thrift_type type)
{
	int16_t *last = &t->last[t->depth];
	int step = field - *last;

	*last = (int16_t)field;
	if (step >= 1 && step <= 15) {
		buf_addch(t->out, step << 4 | (int)type);
		return;
	}
	buf_addch(t->out, (int)type);
	buf_add_varint(t->out, zigzag(field));
}

static void nest(struct thrift *t)
{
	if (t->depth + 1 >= THRIFT_DEPTH) {
		t->out->err = -EOVERFLOW;
		return;
	}
	t->last[++t->depth] = 0;
}

void thrift_bool(struct thrift *t, int field, bool v)
{
	field_header(t, field, v ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_i8(struct thrift *t, int field, int8_t v)
{
	field_header(t, field, THRIFT_BYTE);
	buf_addch(t->out, v);
}

static void integer(struct thrift *t, int field, enum thrift_type type, int64_t v)
{
	field_header(t, field, type);
	buf_add_varint(t->out, zigzag(v));
}

void thrift_i32(struct thrift *t, int field, int32_t v)
{
	integer(t, field, THRIFT_I32, v);
}

void thrift_i64(struct thrift *t, int field, int64_t v)
{
	integer(t, field, THRIFT_I64, v);
}

void thrift_binary(struct thrift *t, int field, const void *data, size_t len)
{
	field_header(t, field, THRIFT_BINARY);
	buf_add_bytes(t->out, data, len);
}

void thrift_text(struct thrift *t, int field, const char *s)
{
	thrift_binary(t, field, s, strlen(s));
}

void thrift_struct(struct thrift *t, int field)
{
	field_header(t, field, THRIFT_STRUCT);
	nest(t);
}

void thrift_list(struct thrift *t, int field, enum thrift_type type, size_t nr)
{
	field_header(t, field, THRIFT_LIST);
	if (nr < 15) {
		buf_addch(t->out, (int)nr << 4 | (int)type);
		return;
	}
	buf_addch(t->out, 0xf0 | (int)type);
	buf_add_varint(t->out, nr);
}

void thrift_element_struct(struct thrift *t)
{
	nest(t);
}

void thrift_element_i32(struct thrift *t, int32_t v)
{
	buf_add_varint(t->out, zigzag(v));
}

void thrift_element_text(struct thrift *t, const char *s)
{
	buf_add_bytes(t->out, s, strlen(s));
}
