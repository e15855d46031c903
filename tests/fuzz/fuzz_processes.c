/* The table of processes of any recording (recording.h), in all orders and forms. */
#include "recording.h"

#include "query/process_table.h"
#include "text/processes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct run *run = fuzz_run(data, size);
	struct process_table *t = NULL;
	struct buf out;

	if (!run)
		return 0;
	buf_init(&out, (size_t)64 << 20);
	if (process_table_read(run, &t, &out) < 0)
		abort();
	process_table_sort(t, data[0] / 2 % NR_ORDERS, data[0] >> 7);
	for (enum text_form form = FORM_TEXT; form <= FORM_JSON; form++)
		processes_write(t, 0, &(struct text_style){form, .width = 100, .utf8 = true}, &out);
	if (out.err)
		abort();
	process_table_free(t);
	buf_release(&out);
	return 0;
}
