/* The statistics of any recording (recording.h), at all levels and in all forms. */
#include "recording.h"

#include "query/courses.h"
#include "text/stats.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stats_page page = {
		.style = {.width = 100, .utf8 = true}, .levels = (1u << NR_STATS_LEVELS) - 1, .length_s = 10};
	const struct run *run = fuzz_run(data, size);
	struct process_table *t = NULL;
	struct courses *courses = NULL;
	struct summary *summary = NULL;
	struct stats *s = NULL;
	struct buf out;

	if (!run)
		return 0;
	buf_init(&out, (size_t)64 << 20);
	if (summary_read_with_courses(run, &summary, &t, &courses, &out) < 0 ||
		stats_read(&(struct stats_input){run, summary, t, courses}, NULL, &s, &out) < 0)
		abort();
	for (page.style.form = FORM_TEXT; page.style.form <= FORM_JSON; page.style.form++)
		stats_write(s, t, &page, &out);
	if (out.err)
		abort();
	stats_free(s);
	courses_free(courses);
	process_table_free(t);
	summary_free(summary);
	buf_release(&out);
	return 0;
}
