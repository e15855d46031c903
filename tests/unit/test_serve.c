/* The pure parts of tacho serve: addresses, hosts, cookies, secrets, names of files, tar files. */
#include "serve/request.h"
#include "serve/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static void test_addresses(void **state)
{
	static const struct {
		const char *path;
		enum serve_place place;
		unsigned depth;
	} row[] = {
		{"/", PLACE_INDEX, 0},
		{"/login", PLACE_LOGIN, 0},
		{"/run/0123456789abcdef", PLACE_BARE_RUN, 1},
		{"/run/0123456789abcdef/", PLACE_PAGE, 2},
		{"/run/0123456789abcdef/events", PLACE_EVENTS, 2},
		{"/run/0123456789abcdef/recording", PLACE_RECORDING, 2},
		{"/run/0123456789abcdef/report.html", PLACE_REPORT_HTML, 2},
		{"/run/0123456789abcdef/report.pdf", PLACE_REPORT_PDF, 2},
		{"/run/0123456789abcdef/curve.svg", PLACE_CURVE, 2},
		{"/run/0123456789abcdef/export/arrow-stream", PLACE_EXPORT, 3},
		{"", PLACE_NONE, 0},
		{"run/0123456789abcdef/", PLACE_NONE, 0},
		{"//", PLACE_NONE, 1},
		{"/login/", PLACE_NONE, 1},
		{"/run/", PLACE_NONE, 1},
		{"/run/0123456789abcdeg/", PLACE_NONE, 2},
		{"/run/0123456789ABCDEF/", PLACE_NONE, 2},
		{"/run/0123456789abcdef0/", PLACE_NONE, 2},
		{"/run/../0123456789abcd/", PLACE_NONE, 3},
		{"/run/0123456789abcdef/../x", PLACE_NONE, 3},
		{"/run/0123456789abcdef/recording/", PLACE_NONE, 3},
		{"/run/0123456789abcdef/export/", PLACE_NONE, 3},
		{"/run/0123456789abcdef/export/..", PLACE_NONE, 3},
		{"/run/0123456789abcdef/export/CSV", PLACE_NONE, 3},
		{"/run/0123456789abcdef/export/csv/x", PLACE_NONE, 4},
		{"/run/0123456789abcdef/export/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", PLACE_NONE, 3},
		{"/%2e%2e/secret", PLACE_NONE, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct serve_address a = serve_address(row[i].path);

		assert_int_equal(a.place, row[i].place);
		assert_int_equal(a.depth, row[i].depth);
	}
	assert_string_equal(serve_address("/run/0123456789abcdef/export/csv").format, "csv");
	assert_string_equal(serve_address("/run/0123456789abcdef/events").id, "0123456789abcdef");
}

static void test_ids_differ(void **state)
{
	char a[ID_DIGITS + 1], b[ID_DIGITS + 1];

	(void)state;
	serve_id("/runs/1.tacho", a);
	serve_id("/runs/2.tacho", b);
	assert_int_equal(strlen(a), ID_DIGITS);
	assert_string_not_equal(a, b);
	serve_id("/runs/1.tacho", b);
	assert_string_equal(a, b);
}

static void test_hosts(void **state)
{
	static const char *const names[] = {"hub.example", "10.0.0.1"};
	static const char *const good[] = {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]",
		"[::1]:65535", "hub.example", "HUB.example:443", "10.0.0.1:80"};
	static const char *const bad[] = {"", ":", ":80", "evil", "localhost:", "localhost:x",
		"localhost:123456", "localhost.", "localhost.evil", "evil:localhost", "localhost@evil",
		"[::1", "[::1]x", "[::2]", "localhost\t", " localhost", "127.0.0.1.evil", "hub.example.evil",
		"0.0.0.0", "[::ffff:127.0.0.1]"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(serve_host_allowed(good[i], names, ARRAY_SIZE(names)));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(serve_host_allowed(bad[i], names, ARRAY_SIZE(names)));
	assert_false(serve_host_allowed(NULL, names, ARRAY_SIZE(names)));
	assert_true(serve_origin_is(NULL, "localhost:80"));
	assert_true(serve_origin_is("http://localhost:80", "localhost:80"));
	assert_true(serve_origin_is("https://hub.example", "hub.example"));
	assert_false(serve_origin_is("null", "localhost:80"));
	assert_false(serve_origin_is("http://localhost:81", "localhost:80"));
	assert_false(serve_origin_is("http://evil/localhost:80", "localhost:80"));
	assert_false(serve_origin_is("http://localhost", NULL));
}

static bool has_cookie(const char *header, const char *wanted)
{
	const char *value;
	size_t len;

	return serve_cookie(header, "tacho-1", &value, &len) && len == strlen(wanted) &&
		!memcmp(value, wanted, len);
}

static void test_cookies(void **state)
{
	(void)state;
	assert_true(has_cookie("tacho-1=abc", "abc"));
	assert_true(has_cookie("a=b; tacho-1=abc; c=d", "abc"));
	assert_true(has_cookie("a=b;tacho-1=abc;", "abc"));
	assert_true(has_cookie("tacho-1=", ""));
	assert_false(has_cookie("xtacho-1=abc", "abc"));
	assert_false(has_cookie("tacho-12=abc", "abc"));
	assert_false(has_cookie("a=tacho-1=abc", "abc"));
	assert_false(has_cookie("tacho-1", ""));
	assert_false(has_cookie("", ""));
	assert_false(has_cookie(NULL, ""));
	assert_false(has_cookie(";;; ;;", ""));
}

static void test_secrets(void **state)
{
	(void)state;
	assert_true(serve_same_secret("secret", 6, "secret"));
	assert_false(serve_same_secret("secrets", 7, "secret"));
	assert_false(serve_same_secret("secre", 5, "secret"));
	assert_false(serve_same_secret("", 0, "secret"));
	assert_false(serve_same_secret("secretsecret", 12, "secret"));
	assert_false(serve_same_secret("", 0, ""));
	assert_string_equal(serve_bearer("Bearer x"), "x");
	assert_string_equal(serve_bearer("bearer x"), "x");
	assert_null(serve_bearer("Basic x"));
	assert_null(serve_bearer(NULL));
}

static void test_moments(void **state)
{
	int64_t ns;

	(void)state;
	assert_true(serve_moment("604799000000000", &ns));
	assert_true(ns == INT64_C(604799000000000));
	assert_false(serve_moment("-1", &ns));
	assert_false(serve_moment("", &ns));
	assert_false(serve_moment("1x", &ns));
	assert_false(serve_moment("99999999999999999999", &ns));
	assert_false(serve_moment(NULL, &ns));
}

static void test_names_in_headers(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	serve_disposition(&out, "job 1.tacho");
	assert_string_equal((char *)out.data, "attachment; filename=\"job 1.tacho\"");
	buf_reset(&out);
	serve_disposition(&out, "a\"\r\nSet-Cookie: x\\ü");
	assert_null(strpbrk((char *)out.data, "\r\n\\"));
	assert_non_null(strstr((char *)out.data, "filename=\"a___Set-Cookie: x___\""));
	assert_non_null(strstr((char *)out.data, "filename*=UTF-8''a%22%0D%0ASet-Cookie%3A%20x%5C%C3%BC"));
	buf_release(&out);
}

static int open_memory(void *arg, const char *path)
{
	int fd = memfd_create("part", MFD_CLOEXEC);

	assert_true(write(fd, arg, strlen(arg)) == (ssize_t)strlen(arg));
	return strcmp(path, "gone") ? fd : (close(fd), -ENOENT);
}

/* A file that became shorter, or went away, is filled up: all that was announced is sent. */
static void test_tar_has_the_size_that_it_says(void **state)
{
	char text[] = "some bytes", name[201], part[700];
	struct tar *t;
	uint64_t size = 0;
	ssize_t n;

	(void)state;
	memset(name, 'n', 200);
	name[200] = 0;
	assert_int_equal(tar_new(open_memory, text, &t), 0);
	assert_int_equal(tar_add(t, "one", "1", 10, 0), 0);
	assert_int_equal(tar_add(t, "shorter", "2", 5000, 0), 0);
	assert_int_equal(tar_add(t, "gone", "gone", 100, 0), 0);
	assert_int_equal(tar_add(t, "empty", "3", 0, 0), 0);
	assert_int_equal(tar_add(t, name, "4", 10, 0), 0);
	while ((n = tar_read(t, part, 1 + size % sizeof(part))) > 0)
		size += (uint64_t)n;
	assert_int_equal(n, 0);
	assert_true(size == tar_size(t));
	assert_int_equal(size % 512, 0);
	tar_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_ids_differ),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_cookies),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_names_in_headers),
		cmocka_unit_test(test_tar_has_the_size_that_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
