/* The sink of Prometheus: its messages, its compression, names and labels, the page of last values, and what
 * may be asked for it. */
#include "base/token_file.h"
#include "push/listen.h"
#include "push/listen_request.h"
#include "push/prometheus_page.h"
#include "push/prometheus_write.h"
#include "push/snappy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* ---- snappy, read as its description says ---- */

static size_t view_little(struct view *v, unsigned bytes)
{
	size_t n = 0;

	for (unsigned i = 0; i < bytes; i++) {
		assert_true(v->p < v->end);
		n |= (size_t)*v->p++ << 8 * i;
	}
	return n;
}

static void take_copy(struct buf *out, size_t distance, size_t len)
{
	assert_true(distance >= 1 && distance <= out->len);
	for (size_t i = 0; i < len; i++)
		buf_addch(out, out->data[out->len - distance]);
}

static void uncompress(struct buf *out, const struct buf *in)
{
	struct view v = view_of(in->data, in->len);
	size_t whole = view_varint(&v);

	while (v.p < v.end) {
		size_t tag = *v.p++, len = tag >> 2;

		if ((tag & 3) == 0) {
			len = (len < 60 ? len : view_little(&v, (unsigned)len - 59)) + 1;
			assert_true(len <= (size_t)(v.end - v.p));
			buf_add(out, v.p, len);
			v.p += len;
		} else if ((tag & 3) == 1) {
			take_copy(out, (tag >> 5 << 8) | view_little(&v, 1), (len & 7) + 4);
		} else {
			assert_int_equal(tag & 3, 2);
			take_copy(out, view_little(&v, 2), len + 1);
		}
	}
	assert_int_equal(out->len, whole);
}

static size_t there_and_back(const void *data, size_t len)
{
	struct buf packed, out;
	size_t size;

	buf_init(&packed, SIZE_MAX / 2);
	buf_init(&out, SIZE_MAX / 2);
	snappy_compress(&packed, data, len);
	assert_int_equal(packed.err, 0);
	assert_true(packed.len <= snappy_most(len));
	uncompress(&out, &packed);
	assert_int_equal(out.len, len);
	if (len)
		assert_memory_equal(out.data, data, len);
	size = packed.len;
	buf_release(&packed);
	buf_release(&out);
	return size;
}

static void test_snappy_gives_back_everything(void **state)
{
	static uint8_t data[200000];
	unsigned seed = 7;

	(void)state;
	there_and_back("", 0);
	for (size_t round = 0; round < 600; round++) {
		size_t len = (size_t)rand_r(&seed) % (round % 50 ? 3000 : sizeof(data));
		unsigned letters = 1u << rand_r(&seed) % 9;

		for (size_t i = 0; i < len; i++) /* of few letters, or with pieces again */
			data[i] = i > 300 && rand_r(&seed) % 4 == 0
				? data[i - 300]
				: (uint8_t)((unsigned)rand_r(&seed) / 16 % letters);
		there_and_back(data, len);
	}
	for (size_t len = 65530; len < 65545; len++)
		there_and_back(data, len);
	memset(data, 0, sizeof(data));
	assert_true(there_and_back(data, sizeof(data)) < sizeof(data) / 15);
}

/* ---- series ---- */

static struct push_run run = {.job = "4711", .name = "train.py"};

static struct push_series series(const char *name, const char *table, const char *instance)
{
	return (struct push_series){.name = name,
		.metric = name,
		.table = table,
		.help = "A \"help\" with \\ and\nlines.",
		.host = "n1",
		.start_ns = INT64_C(1794995495123456789),
		.instance = instance,
		.unit = UNIT_BYTES,
		.kind = KIND_GAUGE};
}

static struct push_point point(struct push_series *s, int64_t ms, double value)
{
	return (struct push_point){
		.series = s, .time_ns = ms * NSEC_PER_MSEC, .step = ms / 1000, .value = value};
}

static int init(
	struct prometheus_all *a, const struct push_label *label, size_t nr, bool target, struct buf *err)
{
	struct push_options options = {.label = label, .nr_labels = nr};
	struct push p = {.run = &run, .options = &options};

	buf_init(err, 4096);
	return prometheus_all_init(a, &p, target, err);
}

static void expect_series(const struct prometheus_all *a, struct push_series *s, const char *text)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	prometheus_series_text(&out, a, s->own);
	assert_string_equal((char *)out.data, text);
	buf_release(&out);
}

#define RUN "run=\"train.py\",start=\"2026-11-18T09:51:35.123Z\",tacho_job=\"4711\""

static void test_names_and_labels(void **state)
{
	struct push_label label[] = {
		{"team-a", "x"}, {"job", "mine"}, {"instance", "n1:9100"}, {"empty", ""}};
	struct push_series gpu = series("gpu.memory.used", "gpu", "nvidia-0"),
			   node = series("mem.used", "node", "node"), rx = series("net.rx", "net", "eth0"),
			   process = series("proc.mem.rss", "process", "python"),
			   folded = series("net.rx", "net", NULL), bad = series("a b", "app", "x\"y\\z\nw");
	struct prometheus_all a;
	struct buf err;

	(void)state;
	rx.kind = folded.kind = KIND_COUNTER;
	process.pid = 42;
	assert_int_equal(init(&a, NULL, 0, true, &err), 0);
	assert_non_null(prometheus_series_of(&a, &gpu));
	assert_non_null(prometheus_series_of(&a, &node));
	assert_non_null(prometheus_series_of(&a, &rx));
	assert_non_null(prometheus_series_of(&a, &process));
	assert_non_null(prometheus_series_of(&a, &folded));
	assert_non_null(prometheus_series_of(&a, &bad));
	expect_series(&a, &gpu,
		"tacho_gpu_memory_used_bytes{gpu=\"nvidia-0\",host=\"n1\",instance=\"n1\",job=\"tacho\"," RUN
		"}");
	expect_series(&a, &node, "tacho_mem_used_bytes{host=\"n1\",instance=\"n1\",job=\"tacho\"," RUN "}");
	expect_series(&a, &rx,
		"tacho_net_rx_bytes_total{device=\"eth0\",host=\"n1\",instance=\"n1\",job=\"tacho\"," RUN
		"}");
	expect_series(
		&a, &folded, "tacho_net_rx_bytes_total{host=\"n1\",instance=\"n1\",job=\"tacho\"," RUN "}");
	expect_series(&a, &process,
		"tacho_proc_mem_rss_bytes{host=\"n1\",instance=\"n1\",job=\"tacho\",pid=\"42\",process="
		"\"python\"," RUN "}");
	expect_series(&a, &bad,
		"tacho_a_b_bytes{app=\"x\\\"y\\\\z\\nw\",host=\"n1\",instance=\"n1\",job=\"tacho\"," RUN "}");
	prometheus_all_release(&a);
	for (struct push_series **s =
			(struct push_series *[]){&gpu, &node, &rx, &process, &folded, &bad, NULL};
		*s; s++)
		prometheus_series_forget((*s)->own);
	node.own = NULL;
	assert_int_equal(init(&a, label, ARRAY_SIZE(label), true, &err), 0);
	assert_non_null(prometheus_series_of(&a, &node));
	expect_series(&a, &node,
		"tacho_mem_used_bytes{host=\"n1\",instance=\"n1:9100\",job=\"mine\"," RUN ",team_a=\"x\"}");
	prometheus_series_forget(node.own);
	prometheus_all_release(&a);
	buf_release(&err);
}

static void test_labels_of_users_replace_none_of_ours(void **state)
{
	static const char *const ours[] = {
		"host", "run", "start", "gpu", "device", "pid", "process", "tacho.job"};
	struct push_label twice[] = {{"a.b", "1"}, {"a_b", "2"}};
	struct prometheus_all a;
	struct buf err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		struct push_label label = {ours[i], "x"};

		assert_int_equal(init(&a, &label, 1, true, &err), -EINVAL);
		assert_non_null(strstr((char *)err.data, "take another name"));
		buf_release(&err);
	}
	assert_int_equal(init(&a, twice, 2, true, &err), -EINVAL);
	assert_non_null(strstr((char *)err.data, "two labels"));
	buf_release(&err);
}

/* Two that would have one name differ; two that are one series are one. */
static void test_series_are_distinct(void **state)
{
	struct push_series x = series("a.b", "app", "i"), y = series("a_b", "app", "i"),
			   again = series("a.b", "app", "i");
	struct prometheus_all a;
	struct buf err;

	(void)state;
	assert_int_equal(init(&a, NULL, 0, false, &err), 0);
	prometheus_series_of(&a, &x);
	assert_ptr_not_equal(x.own, prometheus_series_of(&a, &y));
	assert_ptr_equal(x.own, prometheus_series_of(&a, &again));
	expect_series(&a, &y, "tacho_app_a_b_bytes{app=\"i\",host=\"n1\"," RUN "}");
	prometheus_series_forget(x.own);
	prometheus_series_forget(again.own);
	prometheus_series_forget(y.own);
	prometheus_all_release(&a);
	buf_release(&err);
}

/* Processes come and go: what is gone takes no memory. */
static void test_series_that_are_gone_are_dropped(void **state)
{
	struct push_series stays = series("proc.mem.rss", "process", "stays");
	struct prometheus_all a;
	struct buf err;

	(void)state;
	assert_int_equal(init(&a, NULL, 0, true, &err), 0);
	for (int64_t i = 0; i < 20000; i++) {
		struct push_series s = series("proc.mem.rss", "process", "x");
		struct push_point p[2];

		s.pid = i + 1;
		p[0] = point(&stays, i * 1000, 1);
		p[1] = point(&s, i * 1000, 2);
		assert_int_equal(prometheus_keep(&a, p, 2), 0);
		prometheus_series_forget(s.own);
	}
	assert_true(a.nr < 3000);
	assert_ptr_equal(prometheus_series_of(&a, &stays), stays.own);
	expect_series(&a, &stays,
		"tacho_proc_mem_rss_bytes{host=\"n1\",instance=\"n1\",job=\"tacho\",process=\"stays\"," RUN
		"}");
	prometheus_series_forget(stays.own);
	prometheus_all_release(&a);
	buf_release(&err);
}

/* ---- messages ---- */

static void expect_label(struct view *v, const char *name, const char *value)
{
	const uint8_t *text;
	struct view label;
	size_t len;

	assert_int_equal(view_varint(v), 1 << 3 | 2);
	text = view_bytes(v, &len);
	label = view_of(text, len);
	assert_int_equal(view_varint(&label), 1 << 3 | 2);
	text = view_bytes(&label, &len);
	assert_int_equal(len, strlen(name));
	assert_memory_equal(text, name, len);
	assert_int_equal(view_varint(&label), 2 << 3 | 2);
	text = view_bytes(&label, &len);
	assert_int_equal(len, strlen(value));
	assert_memory_equal(text, value, len);
	assert_ptr_equal(label.p, label.end);
}

static void expect_sample(struct view *v, double value, int64_t ms)
{
	const uint8_t *text;
	struct view sample;
	size_t len;

	assert_int_equal(view_varint(v), 2 << 3 | 2);
	text = view_bytes(v, &len);
	sample = view_of(text, len);
	assert_int_equal(view_varint(&sample), 1 << 3 | 1);
	assert_memory_equal(sample.p, &value, 8);
	sample.p += 8;
	assert_int_equal(view_varint(&sample), 2 << 3);
	assert_int_equal((int64_t)view_varint(&sample), ms);
	assert_ptr_equal(sample.p, sample.end);
}

static struct view next_series(struct view *v)
{
	const uint8_t *text;
	size_t len;

	assert_int_equal(view_varint(v), 1 << 3 | 2);
	text = view_bytes(v, &len);
	return view_of(text, len);
}

static void expect_labels(struct view *v, const char *name, const char *host)
{
	expect_label(v, "UP", "1");
	expect_label(v, "__name__", name);
	expect_label(v, "host", host);
	expect_label(v, "run", "train.py");
	expect_label(v, "start", "2026-11-18T09:51:35.123Z");
	expect_label(v, "tacho_job", "4711");
}

static void test_messages(void **state)
{
	struct push_label label = {"UP", "1"};
	struct push_series x = series("x", "node", "node"), y = series("y", "node", "node");
	struct prometheus_sample sample[6];
	struct prometheus_all a;
	struct buf err, out;
	struct view v, s;

	(void)state;
	y.kind = KIND_COUNTER;
	assert_int_equal(init(&a, &label, 1, false, &err), 0);
	prometheus_series_of(&a, &x);
	prometheus_series_of(&a, &y);
	sample[0] = (struct prometheus_sample){y.own, 2000, 4, 0};
	sample[1] = (struct prometheus_sample){x.own, 3000, 3, 1};
	sample[2] = (struct prometheus_sample){x.own, 1000, 1, 2};
	sample[3] = (struct prometheus_sample){y.own, -5, prometheus_stale(), 3};
	sample[4] = (struct prometheus_sample){x.own, 3000, 3.5, 4}; /* the same millisecond */
	sample[5] = (struct prometheus_sample){x.own, 2000, 2, 5};
	assert_int_equal(prometheus_sort(sample, 6), 5);
	buf_init(&out, 1 << 16);
	prometheus_encode(&out, &a, sample, 5);
	v = view_of(out.data, out.len);
	s = next_series(&v);
	expect_labels(&s, "tacho_x_bytes", "n1");
	expect_sample(&s, 1, 1000);
	expect_sample(&s, 2, 2000);
	expect_sample(&s, 3.5, 3000);
	assert_ptr_equal(s.p, s.end);
	s = next_series(&v);
	expect_labels(&s, "tacho_y_bytes_total", "n1");
	expect_sample(&s, prometheus_stale(), -5);
	expect_sample(&s, 4, 2000);
	assert_ptr_equal(s.p, s.end);
	assert_ptr_equal(v.p, v.end);
	assert_false(v.bad || s.bad);
	buf_release(&out);
	prometheus_series_forget(x.own);
	prometheus_series_forget(y.own);
	prometheus_all_release(&a);
	buf_release(&err);
}

static void test_refusals(void **state)
{
	(void)state;
	assert_int_equal(prometheus_refusal(400, "out of order sample\n"), PROMETHEUS_OUT_OF_ORDER);
	assert_int_equal(prometheus_refusal(400, "duplicate sample for timestamp"), PROMETHEUS_OUT_OF_ORDER);
	assert_int_equal(prometheus_refusal(400, "out of bounds"), PROMETHEUS_TOO_OLD);
	assert_int_equal(prometheus_refusal(500, "too old sample"), PROMETHEUS_TOO_OLD);
	assert_int_equal(
		prometheus_refusal(409, "store locally: Out of order sample"), PROMETHEUS_OUT_OF_ORDER);
	assert_int_equal(
		prometheus_refusal(400, "… (err-mimir-sample-timestamp-too-old)"), PROMETHEUS_TOO_OLD);
	assert_int_equal(prometheus_refusal(400, "label name is bad"), PROMETHEUS_OTHER);
	assert_int_equal(prometheus_refusal(500, "out of order sample"), PROMETHEUS_OTHER);
	assert_int_equal(prometheus_refusal(200, "out of bounds"), PROMETHEUS_OTHER);
	assert_int_equal(prometheus_refusal(0, ""), PROMETHEUS_OTHER);
}

/* ---- the page ---- */

static void expect_page(const struct prometheus_all *a, bool openmetrics, const char *text)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	prometheus_page(&out, a, openmetrics);
	assert_int_equal(out.err, 0);
	assert_string_equal((char *)out.data, text);
	buf_release(&out);
}

static void test_page(void **state)
{
	struct push_series x = series("x", "node", "node"), gpu = series("g", "gpu", "nvidia-0"),
			   other = series("g", "gpu", "a\"\n");
	struct prometheus_all a;
	struct push_point p[6];
	struct buf err;

	(void)state;
	run.job = "";
	gpu.kind = other.kind = KIND_COUNTER;
	assert_int_equal(init(&a, NULL, 0, false, &err), 0);
	expect_page(&a, true, "# EOF\n");
	expect_page(&a, false, "");
	p[0] = point(&gpu, 1000, 5);
	p[1] = point(&x, 1000, 0.1);
	p[2] = point(&other, 1000, (double)INT64_C(9007199254740993));
	p[2].is_integer = true;
	p[2].integer = 9007199254740993;
	p[3] = point(&x, 2000, 1e300);
	p[4] = point(&x, 1500, 7); /* an older one that comes late */
	p[5] = point(&other, 2000, 0);
	p[5].is_integer = true;
	p[5].integer = 9007199254740993;
	assert_int_equal(prometheus_keep(&a, p, 6), 0);
#define BY "host=\"n1\",run=\"train.py\",start=\"2026-11-18T09:51:35.123Z\""
	expect_page(&a, true,
		"# TYPE tacho_g_bytes counter\n# UNIT tacho_g_bytes bytes\n# HELP tacho_g_bytes A "
		"\\\"help\\\" with \\\\ and\\nlines.\n"
		"tacho_g_bytes_total{gpu=\"nvidia-0\"," BY "} 5\n"
		"tacho_g_bytes_total{gpu=\"a\\\"\\n\"," BY "} 9007199254740993\n"
		"# TYPE tacho_x_bytes gauge\n# UNIT tacho_x_bytes bytes\n# HELP tacho_x_bytes A \\\"help\\\" "
		"with \\\\ and\\nlines.\n"
		"tacho_x_bytes{" BY "} 1e+300\n"
		"# EOF\n");
	p[0] = point(&x, 3000, 2);
	p[1] = point(&other, 3000, -1);			/* no counter has that */
	assert_int_equal(prometheus_keep(&a, p, 2), 0); /* and nvidia-0 is gone */
	expect_page(&a, false,
		"# TYPE tacho_x_bytes gauge\n# HELP tacho_x_bytes A \"help\" with \\\\ "
		"and\\nlines.\ntacho_x_bytes{" BY "} 2\n");
	prometheus_series_forget(x.own);
	prometheus_series_forget(gpu.own);
	prometheus_series_forget(other.own);
	prometheus_all_release(&a);
	buf_release(&err);
	run.job = "4711";
}

/* ---- requests ---- */

#define TOKEN "0123456789abcdef"
#define BEARER "Authorization: Bearer " TOKEN "\r\n"

static void test_requests(void **state)
{
	static const struct {
		const char *text;
		int status; /* 0: more must come */
		bool keep_alive;
	} row[] = {
		{"GET /metrics HTTP/1.1\r\nHost: x\r\n" BEARER "\r\n", 200, true},
		{"HEAD /metrics?a=b HTTP/1.1\r\nhost: evil.example\r\nauthorization: bearer  " TOKEN
		 "\r\n\r\n",
			200, true},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Close\r\n" BEARER "\r\n", 200,
			false},
		{"GET /metrics HTTP/1.0\r\n" BEARER "\r\n", 200, false},
		{"GET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n" BEARER "\r\n", 200, true},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\n" BEARER "\r", 0, false}, {"G", 0, false},
		{"", 0, false}, {"GET / HTTP/1.1\r\nHost: x\r\n" BEARER "\r\n", 404, false},
		{"GET /metrics/ HTTP/1.1\r\nHost: x\r\n" BEARER "\r\n", 404, false},
		{"POST /metrics HTTP/1.1\r\nHost: x\r\n" BEARER "\r\n", 405, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n" BEARER "\r\nhello", 413, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n" BEARER "\r\n", 200, true},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" BEARER "\r\n", 413,
			false},
		{"GET /metrics HTTP/2.0\r\nHost: x\r\n" BEARER "\r\n", 505, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 401, false},
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 401, false}, /* says nothing of what there is */
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TOKEN "0\r\n\r\n", 401, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer 0123456789abcde\r\n\r\n", 401,
			false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \r\n\r\n", 401, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic " TOKEN "\r\n\r\n", 401, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\n" BEARER BEARER "\r\n", 400, false},
		{"GET /metrics HTTP/1.1\r\n" BEARER "\r\n", 400, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nHost: y\r\n" BEARER "\r\n", 400, false},
		{"GET /metrics HTTP/1.1\nHost: x\r\n" BEARER "\r\n", 400, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\n folded\r\n" BEARER "\r\n", 400, false},
		{"GET /metrics HTTP/1.1\r\nHost : x\r\n" BEARER "\r\n", 400, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n" BEARER "\r\n", 400, false},
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nno colon\r\n" BEARER "\r\n", 400, false},
		{"GET http://x/metrics HTTP/1.1\r\nHost: x\r\n" BEARER "\r\n", 400, false},
		{"GET  /metrics HTTP/1.1\r\nHost: x\r\n" BEARER "\r\n", 400, false},
		{"GET /metrics\r\n" BEARER "\r\n", 400, false}, {"\r\n\r\n\r\n", 400, false},
		{"\x16\x03\x01\r\n\r\n", 400, false}, /* TLS */
	};
	static char long_head[LISTEN_HEAD_MOST + 1];
	struct listen_request q;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		size_t len = strlen(row[i].text);

		q = listen_request(row[i].text, len, TOKEN);
		if (q.status != row[i].status || (q.status && q.keep_alive != row[i].keep_alive))
			print_message("%s", row[i].text);
		assert_int_equal(q.status, row[i].status);
		assert_int_equal(q.keep_alive, row[i].keep_alive && row[i].status);
		assert_true(row[i].status ? q.len && q.len <= len : !q.len);
		for (size_t n = 0; n < q.len; n++) /* none of its beginnings is one */
			assert_true(!listen_request(row[i].text, n, TOKEN).status || q.status == 400);
	}
	assert_int_equal(listen_request("GET /\0 x", 8, TOKEN).status, 400);
	memset(long_head, 'a', sizeof(long_head));
	assert_int_equal(listen_request(long_head, LISTEN_HEAD_MOST - 1, TOKEN).status, 0);
	assert_int_equal(listen_request(long_head, LISTEN_HEAD_MOST, TOKEN).status, 431);
}

static void test_requests_of_noise(void **state)
{
	static const char piece[][16] = {"GET ", "/metrics", " HTTP/1.1", "\r\n", "\r", "\n", "Host: x", ": ",
		"\0", "Authorization:", " ", "\xff"};
	unsigned seed = 3;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		char text[256];
		size_t len = 0;

		for (unsigned i = (unsigned)rand_r(&seed) % 16; i; i--) {
			const char *p = piece[(unsigned)rand_r(&seed) % ARRAY_SIZE(piece)];
			size_t n = MAX(strlen(p), (size_t)1);

			memcpy(text + len, p, n);
			len += n;
		}
		assert_int_not_equal(listen_request(text, len, TOKEN).status, 200);
	}
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *host, *port;
	} row[] = {
		{"9464", NULL, "9464"},
		{"0.0.0.0:1", "0.0.0.0", "1"},
		{"[::1]:80", "::1", "80"},
		{"localhost:65535", "localhost", "65535"},
		{"", NULL, NULL},
		{":9464", NULL, NULL},
		{"::1:80", NULL, NULL},
		{"x:", NULL, NULL},
		{"65536", NULL, NULL},
		{"1234567", NULL, NULL},
		{"-1", NULL, NULL},
		{"http", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		char *host, *port;
		struct buf err;

		buf_init(&err, 4096);
		assert_int_equal(listen_parse(row[i].text, &host, &port, &err), row[i].port ? 0 : -EINVAL);
		if (row[i].port)
			assert_string_equal(port, row[i].port);
		if (row[i].host)
			assert_string_equal(host, row[i].host);
		else
			assert_null(host);
		free(host);
		free(port);
		buf_release(&err);
	}
}

/* ---- tokens ---- */

static int token_of(const char *path, char **token)
{
	struct buf err;
	int r;

	*token = NULL;
	buf_init(&err, 4096);
	r = token_of_file(path, token, &err);
	assert_true(r >= 0 || err.len);
	buf_release(&err);
	return r;
}

static void write_token(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_tokens(void **state)
{
	char path[] = "/tmp/test_push_token.XXXXXX", *one, *two;
	struct stat st;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(token_of(path, &one), -EINVAL); /* empty */
	unlink(path);
	assert_int_equal(token_of(path, &one), 0);
	assert_int_equal(strlen(one), 64);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(token_of(path, &two), 0);
	assert_string_equal(one, two);
	free(two);
	assert_int_equal(chmod(path, 0604), 0);
	assert_int_equal(token_of(path, &two), -EINVAL); /* others can read it */
	unlink(path);
	assert_int_equal(token_of(path, &two), 0);
	assert_string_not_equal(one, two);
	free(one);
	free(two);
	write_token(path, "secret-of-the-group\n", 0640);
	assert_int_equal(token_of(path, &one), 0);
	assert_string_equal(one, "secret-of-the-group");
	free(one);
	write_token(path, "two words are no token", 0600);
	assert_int_equal(token_of(path, &one), -EINVAL);
	unlink(path);
	assert_int_equal(token_of("/dev/null", &one), -EINVAL);
	assert_int_equal(token_of("/nonexistent/token", &one), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snappy_gives_back_everything),
		cmocka_unit_test(test_names_and_labels),
		cmocka_unit_test(test_labels_of_users_replace_none_of_ours),
		cmocka_unit_test(test_series_are_distinct),
		cmocka_unit_test(test_series_that_are_gone_are_dropped),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_requests_of_noise),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
