/* What reports are made of, from any recording (recording.h): the story with its findings, all charts, the
 * page's data and the report in Markdown. */
#include "recording.h"

#include "document/document.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct story_options o = {.from_s = NAN, .to_s = NAN, .points = 20};
	const struct run *run = fuzz_run(data, size);
	struct charts *charts = NULL;
	struct story *s = NULL;
	struct buf out;

	if (!run)
		return 0;
	buf_init(&out, (size_t)64 << 20);
	if (story_read(run, &o, &s, &out) < 0 || charts_make(s, &charts) < 0 ||
		page_data(s, charts, &out) < 0)
		abort();
	charts_free(charts);
	story_free(s);
	buf_release(&out);
	return 0;
}
