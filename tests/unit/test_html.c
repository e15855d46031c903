/* document/html: the page with drawings and the one with a script. What a browser makes of them is seen in
 * tests/e2e/test_page.py; here that every name stays text, that drawings are there once for each chart and
 * theme, and that a painter's failure is told. */
#include "job_maker.h"

#include "document/document.h"
#include "document/html.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HOSTILE "<script>\"'&"

static const char *const one[] = {file};

static int draw_mark(void *arg, const struct chart *f, bool dark, struct buf *out)
{
	size_t *drawn = arg;

	(void)f;
	(*drawn)++;
	buf_addf(out, "<svg xmlns=\"%s\" id=\"100%%#%s\"/>", "http://www.w3.org/2000/svg",
		dark ? "dark" : "light");
	return 0;
}

static int draw_nothing(void *arg, const struct chart *f, bool dark, struct buf *out)
{
	(void)arg, (void)f, (void)dark, (void)out;
	return -EIO;
}

static size_t count(const char *text, const char *words)
{
	size_t n = 0;

	for (; (text = strstr(text, words)); text += strlen(words))
		n++;
	return n;
}

struct written {
	struct analysis *s;
	struct charts *f;
	size_t drawn;
	struct buf page;
	const char *text;
};

static void write_page(struct written *w, const struct job *job, bool still)
{
	struct painter painter = {.svg = draw_mark, .arg = &w->drawn};

	*w = (struct written){0};
	make_job(file, job);
	w->s = analysis_of(one, 1, NULL);
	assert_int_equal(charts_make(w->s, &w->f), 0);
	buf_init(&w->page, 64 << 20);
	assert_int_equal(page_html(w->s, w->f, &painter, still, &w->page), 0);
	w->text = (const char *)w->page.data;
}

static void drop_page(struct written *w)
{
	buf_release(&w->page);
	charts_free(w->f);
	analysis_end(w->s);
}

static void expect_html(const char *text, const char *expected)
{
	struct buf out;

	buf_init(&out, 1000);
	add_html(&out, text);
	assert_string_equal((char *)out.data, expected);
	buf_release(&out);
}

static void test_text_stays_text(void **state)
{
	(void)state;
	expect_html("plain größe", "plain größe");
	expect_html("<a href='x' id=\"y\">&", "&#60;a href=&#39;x&#39; id=&#34;y&#34;&#62;&#38;");
	expect_html("one\ntwo\x01\x7f", "one two\\x01\\x7f");
	expect_html("\xff\xc3", "\\xff\\xc3");
	/* Right-to-left override, isolates, marks: they would turn round what stands beside them. */
	expect_html("a\xe2\x80\xae"
		    "b\xe2\x81\xa6"
		    "c\xe2\x80\x8f",
		"a\\u202eb\\u2066c\\u200f");
	expect_html("\xe2\x80\x93 שלום", "– שלום");
}

static void test_page_of_drawings(void **state)
{
	struct written w;

	(void)state;
	write_page(&w, &(struct job){.host = "n" HOSTILE, .ticks = 30, .workers = 3, .name = HOSTILE}, true);
	assert_true(w.f->nr > 3);
	assert_int_equal(w.drawn, 2 * w.f->nr);
	assert_int_equal(count(w.text, "<img class=\"light\" src=\"data:image/svg+xml,%3Csvg"), w.f->nr);
	assert_int_equal(count(w.text, "<img class=\"dark\""), w.f->nr);
	assert_int_equal(count(w.text, "100%25%23dark"), w.f->nr);
	assert_int_equal(count(w.text, "<figure "), w.f->nr);
	assert_int_equal(count(w.text, "<script"), 0);
	assert_int_equal(count(w.text, "script-src"), 0);
	assert_true(count(w.text, "&#60;script&#62;&#34;&#39;&#38;") >= 3);
	assert_non_null(strstr(w.text, "This page has drawings"));
	assert_non_null(strstr(w.text, "</html>"));
	drop_page(&w);
}

static void test_page_with_script(void **state)
{
	struct written w;
	const char *data;

	(void)state;
	if (!page_is_live()) {
		print_message("the page was built without npm\n");
		skip();
	}
	write_page(&w,
		&(struct job){.host = "n1", .ticks = 30, .workers = 3, .groups = true, .name = HOSTILE},
		false);
	assert_int_equal(w.drawn, 0);
	assert_int_equal(count(w.text, "<figure "), w.f->nr);
	assert_int_equal(count(w.text, "<img"), 0);
	assert_int_equal(count(w.text, "default-src 'none'; style-src 'sha256-"), 1);
	data = strstr(w.text, "id=\"data\">{");
	assert_non_null(data);
	data = strchr(data, '<');
	assert_int_equal(strncmp(data, "</script>\n<script>", 18), 0);
	/* The data's, and the page's own. */
	assert_int_equal(count(w.text, "<script"), 2);
	drop_page(&w);
}

static void test_failures_are_told(void **state)
{
	struct painter painter = {.svg = draw_nothing};
	struct written w;

	(void)state;
	write_page(&w, &(struct job){.host = "n1", .ticks = 3, .workers = 1}, true);
	assert_int_equal(page_html(w.s, w.f, &painter, true, &w.page), -EIO);
	assert_int_equal(page_html(w.s, w.f, NULL, true, &w.page), -EINVAL);
	buf_release(&w.page);
	buf_init(&w.page, 2000);
	painter = (struct painter){.svg = draw_mark, .arg = &w.drawn};
	assert_true(page_html(w.s, w.f, &painter, true, &w.page) < 0);
	drop_page(&w);
}

static void test_run_of_nothing_has_a_page(void **state)
{
	struct written w;

	(void)state;
	write_page(&w, &(struct job){.host = "", .ticks = 0}, true);
	assert_non_null(strstr(w.text, "<h2>Findings</h2>"));
	drop_page(&w);
	write_page(&w, &(struct job){.host = "n1", .ticks = 1, .workers = 1}, false);
	assert_non_null(strstr(w.text, "</html>"));
	drop_page(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_stays_text),
		cmocka_unit_test_setup_teardown(test_page_of_drawings, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(test_page_with_script, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(test_failures_are_told, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(test_run_of_nothing_has_a_page, maker_setup, maker_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
