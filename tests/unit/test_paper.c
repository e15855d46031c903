/* Pages of the job report: what belongs together stays together. */
#include "draw/paper.h"

#include <cairo-pdf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_title_stays_with_its_table(void **state)
{
	char *cell[36];
	struct text_column column[] = {{.title = "Statistic"}, {.title = "Value", .numbers = true}};
	struct text_table t = {.id = "run",
		.title = "The whole run",
		.column = column,
		.nr_columns = 2,
		.cell = cell,
		.nr_rows = 18};
	cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(NULL, NULL, PAPER_WIDTH, PAPER_HEIGHT);
	double high = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cell); i++)
		cell[i] = i % 2 ? "1" : "Processes";
	/* Wherever the page ends: what has gone to the next one went with its title. */
	for (double room = 400; room > 10; room -= 5) {
		struct paper p = {.foot = "", .head = {{"", ""}, {"", ""}, {"", ""}, {"", ""}}};
		double from, top;

		paper_open(&p, surface, true, 0);
		top = p.y;
		p.y = from = PAPER_BOTTOM - room;
		paper_table(&p, &t);
		if (room == 400)
			high = p.y - from;
		assert_true(fabs(p.y - (p.page == 1 ? from : top) - high) < 0.5);
		paper_close(&p);
	}
	cairo_surface_destroy(surface);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_title_stays_with_its_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
