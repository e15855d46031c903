/* What families of samples are called. The rules of OpenMetrics: letters, digits and underscores; the unit
 * at the end; no family may have a name that a sample of another one has. */
#ifndef EXPORT_OPENMETRICS_NAMES_H
#define EXPORT_OPENMETRICS_NAMES_H

#include "export/exporter.h"

struct names { /* in use */
	char **name;
	size_t nr;
};

void names_release(struct names *n);
bool field_is_counter(const struct field *f);
/* "bytes", "bytes_per_second"; "" when there is none, as of raw fields that are not of the unit itself. */
const char *openmetrics_unit(const struct field *f, char out[static 48]);
/* The family of a metric: "tacho_net_rx_bytes", whose samples are "…_total" when it is a counter. NULL: no
 * memory. */
const char *family_name(struct names *n, const struct data_table *table, const struct field *f);
/* The name of a label: as the field's, and different from `nr` others. The caller frees it. */
char *label_name(const char *field, char *const *other, size_t nr);
/* A text between quotation marks, or behind # HELP. */
void openmetrics_add_escaped(struct buf *out, const char *text, size_t len);
/* The shortest digits that read back as the same double; NaN, +Inf, -Inf. */
void openmetrics_add_real(struct buf *out, double v);
#endif
