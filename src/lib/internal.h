/* What the files of libtacho share. */
#ifndef LIB_INTERNAL_H
#define LIB_INTERNAL_H

#include "export/arrow_body.h"

#include <tacho.h>

struct lib_run { /* shared by its handle and its streams; the last one closes it */
	struct run *run;
	int users;
};

struct lib_run *lib_run_of(const tacho_run *run);
struct lib_run *lib_run_use(struct lib_run *r);
void lib_run_drop(struct lib_run *r);

/* Keeps the text for tacho_error(); returns error. */
int lib_fail(int error, const char *text);

/* A schema of the table's columns. 0 or a negative errno. */
int lib_schema(const struct data_table *table, struct ArrowSchema *ret);
/* A batch of them, which owns copies of everything. `index`: by field, of texts, in `texts`. `body` is
 * scratch.
 */
struct lib_texts {
	struct text_numbers own; /* the dictionary of the batch */
	uint32_t *index;	 /* DATA_TABLE_ROWS_MOST; NULL: the field is no text */
};
int lib_array(const struct tables *tables, const struct data_table *table,
	const struct data_table_batch *batch, struct lib_texts *texts, struct arrow_body *body,
	struct ArrowArray *ret);
#endif
