/* The tables of any recording (recording.h), as exports and libtacho get them: every number of a text is in
 * its dictionary, every real number finite. */
#include "recording.h"

#include "query/tables.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_there(const struct field_cells *c, uint32_t row)
{
	return !c->valid || c->valid[row / 8] >> row % 8 & 1;
}

static void check_batch(
	const struct tables *f, const struct data_table *table, const struct data_table_batch *b)
{
	for (size_t k = 0; k < table->nr_fields; k++)
		for (uint32_t row = 0; row < b->nr_rows; row++) {
			if (!is_there(&b->cell[k], row))
				continue;
			if (table->field[k].type == FIELD_REAL && !isfinite(b->cell[k].real[row]))
				abort();
			if (table->field[k].type == FIELD_TEXT &&
				b->cell[k].text[row] >= tables_texts(f, b->table, k).nr)
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct run *run = fuzz_run(data, size);
	const struct data_table *list = NULL;
	struct tables *f = NULL;
	struct data_table_batch b;
	struct buf err;

	if (!run)
		return 0;
	struct tables_options o = {.from_s = data[0] & 2 ? 0.15 : NAN,
		.to_s = data[0] & 4 ? 1 : NAN,
		.raw = data[0] & 8,
		.per = data[0] / 16 % 4,
		.every_ns = data[0] & 64 ? 250000000 : 0};
	buf_init(&err, 1 << 16);
	if (tables_open(run, &o, &f, &err) >= 0) {
		tables_list(f, &list);
		for (unsigned i = 0; i < 1000 && tables_next(f, &b) > 0; i++)
			check_batch(f, &list[b.table], &b);
	}
	tables_close(f);
	buf_release(&err);
	return 0;
}
