/* What reports are made of, from any recording (recording.h): the story with its findings, all charts, and by
 * the first byte the page's data, the report in Markdown, or the charts in the terminal. */
#include "recording.h"

#include "document/document.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int draw(const struct charts *charts, unsigned how, struct buf *out)
{
	const struct terminal_style style = {
		.columns = how & 1 ? 100 : 20, .rows = how & 1 ? 30 : 8, .utf8 = how & 2, .color = how & 2};
	int r = 0;

	for (size_t i = 0; i < charts->nr && r >= 0; i++)
		r = terminal_chart(&charts->item[i], &style, out);
	return r;
}

static int make_text(const struct analysis *s, const struct charts *charts, unsigned how, struct buf *out)
{
	if (how % 4 == 0)
		return draw(charts, how / 4, out);
	return how % 4 == 1 ? markdown_report(s, charts, "plots/%s.png", out) : page_data(s, charts, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct analysis_options o = {.from_s = NAN, .to_s = NAN, .points = 20};
	const struct run *run = fuzz_run(data, size);
	struct charts *charts = NULL;
	struct analysis *s = NULL;
	struct buf out;

	if (!run)
		return 0;
	buf_init(&out, (size_t)64 << 20);
	if (analysis_read(run, &o, &s, &out) < 0 || charts_make(s, &charts) < 0 ||
		make_text(s, charts, data[0] / 2, &out) < 0)
		abort();
	charts_free(charts);
	analysis_free(s);
	buf_release(&out);
	return 0;
}
