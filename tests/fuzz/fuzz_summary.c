/* The summary of any recording (recording.h): it can be read, printed and written as JSON, and every figure
 * is finite or has a reason. */
#include "recording.h"

#include "text/summary.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct summary_style style = {.color = true, .utf8 = true, .width = 100};
	const struct run *run = fuzz_run(data, size);
	struct summary *s = NULL;
	struct buf out;

	if (!run)
		return 0;
	buf_init(&out, (size_t)64 << 20);
	if (summary_read(run, &s, &out) < 0)
		abort();
	for (enum figure_id id = 0; id < NR_FIGURES; id++)
		if (!s->figure[id].why && !isfinite(s->figure[id].value))
			abort();
	if (summary_print(s, &style, &out) < 0)
		abort();
	summary_json(s, &out);
	if (out.err)
		abort();
	summary_free(s);
	buf_release(&out);
	return 0;
}
