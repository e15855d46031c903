/* page_tool RECORDING: the report's page with drawings, as a build without npm writes it, to stdout. For
 * tests/e2e/test_page.py. */
#include "document/document.h"
#include "draw/draw.h"

#include <math.h>
#include <stdio.h>

static int paint(void *arg, const struct chart *f, bool dark, struct buf *out)
{
	const struct draw_style style = {.dark = dark, .transparent = true};

	(void)arg;
	return draw_picture(f, DRAW_SVG, &style, out);
}

int main(int argc, char **argv)
{
	const struct painter painter = {.svg = paint};
	const char *path = argc > 1 ? argv[1] : "";
	struct run *run = NULL;
	struct analysis *analysis = NULL;
	struct charts *charts = NULL;
	struct buf page, reason;
	int r;

	buf_init(&page, 1 << 28);
	buf_init(&reason, 10000);
	r = run_open(&path, 1, &run, &reason);
	if (r >= 0)
		r = analysis_read(
			run, &(struct analysis_options){.from_s = NAN, .to_s = NAN}, &analysis, &reason);
	if (r >= 0)
		r = charts_make(analysis, &charts);
	if (r >= 0)
		r = page_html(analysis, charts, &painter, true, &page);
	if (r >= 0)
		fwrite(page.data, 1, page.len, stdout);
	else
		fprintf(stderr, "page_tool: %d %s\n", r, (char *)reason.data);
	charts_free(charts);
	analysis_free(analysis);
	run_close(run);
	buf_release(&page);
	buf_release(&reason);
	return r < 0;
}
