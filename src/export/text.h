/* Values as text, for the formats that are text: exact, without locale, and the same in all of them. */
#ifndef EXPORT_TEXT_H
#define EXPORT_TEXT_H

#include "export/exporter.h"

#define EXPORT_TEXT 48

/* "bytes", "s", "bytes/s", "" for plain counts; of raw fields what one of them is: "0.01 s". */
const char *field_unit(const struct field *f, char out[static EXPORT_TEXT]);
const char *field_type_name(enum field_type type); /* "time", "integer", "real", "text", "flag" */

/* Text with as few of 15 to 17 digits as read back as the same double; "" when it is not finite. Without
 * terminator; the length is returned. */
size_t format_real(char out[static EXPORT_TEXT], double v);
/* "2026-11-15T19:30:00.123456789Z": always with nine digits, so that it sorts as text. */
size_t format_time(char out[static EXPORT_TEXT], int64_t ns);
/* In quotation marks. The texts of tables are UTF-8 already. */
void add_json_text(struct buf *out, const char *text, size_t len);
#endif
