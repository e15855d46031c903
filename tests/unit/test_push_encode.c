/* What sinks make of points: lines of InfluxDB, bodies of OTLP, event files of TensorBoard. */
#include "base/json_read.h"
#include "export/tfevents.h"
#include "push/influx.h"
#include "push/otlp.h"
#include "store/crc32c.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct push_series series = {.name = "tree.cores",
	.metric = "tree.cores",
	.table = "tree",
	.help = "Cores.",
	.host = "n1",
	.kind = KIND_GAUGE,
	.unit = UNIT_COUNT};
static struct push_series counter = {.name = "net.rx.bytes",
	.metric = "net.rx.bytes",
	.table = "net",
	.help = "Bytes.",
	.host = "n1",
	.instance = "eth0",
	.kind = KIND_COUNTER,
	.unit = UNIT_BYTES};
static struct push_series process = {.name = "proc.threads",
	.metric = "proc.threads",
	.table = "process",
	.help = "Threads.",
	.host = "n1",
	.instance = "my job",
	.pid = 42,
	.kind = KIND_GAUGE,
	.unit = UNIT_COUNT};

static struct push_run run = {.name = "train", .job = "", .host = "n1", .start_ns = 1000};
static struct push_options options;
static struct push push = {.run = &run, .options = &options};
static struct buf out;

static int setup(void **state)
{
	(void)state;
	options = (struct push_options){0};
	run.job = "";
	buf_init(&out, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_release(&out);
	return 0;
}

#define REAL(series_, time_, value_)                                                              \
	{                                                                                         \
		.series = &(series_), .time_ns = (time_), .step = (time_) / 10, .value = (value_) \
	}
#define WHOLE(series_, time_, value_)                                                                      \
	{                                                                                                  \
		.series = &(series_), .time_ns = (time_), .step = (time_) / 10, .value = (double)(value_), \
		.integer = (value_), .is_integer = true                                                    \
	}

/* ---- InfluxDB ---- */

static void expect_lines(const struct push_point *point, size_t nr, size_t lines, const char *text)
{
	struct influx_lines l;
	struct buf err;

	buf_init(&err, 4096);
	assert_int_equal(influx_lines_make(&l, &push, &err), 0);
	assert_int_equal(influx_lines_add(&l, point, nr, &out), lines);
	assert_string_equal((char *)out.data, text);
	influx_lines_release(&l);
	buf_release(&err);
}

static void test_a_row_is_a_line(void **state)
{
	struct push_series other = counter;
	struct push_point point[] = {REAL(series, 5, 1.5), WHOLE(counter, 5, INT64_C(9007199254740993)),
		WHOLE(other, 5, 7), WHOLE(counter, 6, 8), WHOLE(process, 6, 3)};

	(void)state;
	other.name = "net.tx.bytes";
	run.job = "4711";
	expect_lines(point, 5, 4,
		"tacho_tree,host=n1,job=4711,run=train tree.cores=1.5 5\n"
		"tacho_net,host=n1,instance=eth0,job=4711,run=train "
		"net.rx.bytes=9007199254740993i,net.tx.bytes=7i 5\n"
		"tacho_net,host=n1,instance=eth0,job=4711,run=train net.rx.bytes=8i 6\n"
		"tacho_process,host=n1,instance=my\\ job,job=4711,pid=42,run=train proc.threads=3 6\n");
}

static void test_texts_are_escaped(void **state)
{
	struct push_series s = process;
	struct push_point point[] = {REAL(s, 1, 0.1)};
	struct push_label label[] = {{"z", "a,b=c d"}, {"a key", "back\\"}, {"host", "mine"}, {"b", "x\ny"}};

	(void)state;
	s.instance = "a\\,b\\c\\\\d\te";
	s.name = "app.x y=z,w";
	s.pid = 0;
	options.label = label;
	options.nr_labels = 4;
	options.prefix = "my jobs,";
	expect_lines(point, 1, 1,
		"my\\ jobs\\,process,a\\ "
		"key=back\\x5c,b=x\\x0ay,host=mine,instance=a\\x5c\\,b\\c\\x5c\\d\\x09e,"
		"run=train,z=a\\,b\\=c\\ d app.x\\ y\\=z\\,w=0.1 1\n");
}

static void test_labels_with_another_use_are_refused(void **state)
{
	struct push_label label = {"time", "x"};
	struct influx_lines l;

	(void)state;
	options.label = &label;
	options.nr_labels = 1;
	assert_int_equal(influx_lines_make(&l, &push, &out), -EINVAL);
	assert_non_null(strstr((char *)out.data, "'time'"));
	influx_lines_release(&l);
}

static void expect_url(const char *from, const char *to)
{
	struct buf err;

	buf_init(&err, 4096);
	buf_reset(&out);
	if (to) {
		assert_int_equal(influx_url(from, &out, &err), 0);
		assert_string_equal((char *)out.data, to);
	} else {
		assert_int_equal(influx_url(from, &out, &err), -EINVAL);
		assert_true(err.len > 0);
	}
	buf_release(&err);
}

static void test_addresses(void **state)
{
	(void)state;
	unsetenv("INFLUX_ORG");
	unsetenv("INFLUX_BUCKET");
	unsetenv("INFLUX_BUCKET_NAME");
	unsetenv("INFLUX_ORG_ID");
	expect_url("http://h:8086?db=jobs", "http://h:8086/write?precision=ns&db=jobs");
	expect_url("http://h/p//?rp=week&db=a%20b", "http://h/p/write?precision=ns&db=a%20b&rp=week");
	expect_url("http://h/write/?db=x", "http://h/write?precision=ns&db=x");
	expect_url("http://h?org=o&bucket=b", "http://h/api/v2/write?precision=ns&org=o&bucket=b");
	expect_url("http://h", NULL);
	expect_url("http://h?db=", NULL);
	expect_url("http://h?bucket=b", NULL);
	expect_url("http://h?db=x&p=secret", NULL);
	expect_url("http://h?db=x&precision=s", NULL);
	expect_url("http://h?db=x#y", NULL);
	setenv("INFLUX_ORG", "my org", 1);
	setenv("INFLUX_BUCKET", "b&c", 1);
	expect_url("http://h", "http://h/api/v2/write?precision=ns&bucket=b%26c&org=my%20org");
	unsetenv("INFLUX_ORG");
	unsetenv("INFLUX_BUCKET");
}

/* ---- OTLP ---- */

static void test_pairs_of_variables(void **state)
{
	struct otlp_pairs p = {0};

	(void)state;
	assert_int_equal(otlp_pairs_read(&p, " a = 1%202 ,b=x=y,,=z,c,a=%41%zz%0,d=%00e,empty="), 0);
	assert_string_equal(otlp_pairs_get(&p, "a"), "A%zz%0");
	assert_string_equal(otlp_pairs_get(&p, "b"), "x=y");
	assert_string_equal(otlp_pairs_get(&p, "d"), "%00e");
	assert_null(otlp_pairs_get(&p, "c"));
	assert_null(otlp_pairs_get(&p, "empty"));
	assert_int_equal(p.nr, 3);
	otlp_pairs_release(&p);
}

static int count_leaf(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	(void)path, (void)leaf, (void)text, (void)len;
	++*(int *)arg;
	return 0;
}

static void expect_body(struct push_point *point, size_t nr, const char *const *part)
{
	int leaves = 0;
	struct otlp o;

	assert_int_equal(otlp_make(&o, &push, NULL), 0);
	assert_int_equal(otlp_body(&o, point, nr, &out), 0);
	assert_int_equal(json_read((char *)out.data, out.len, count_leaf, &leaves), 0);
	assert_true(leaves > 0);
	for (; *part; part++)
		assert_non_null(strstr((char *)out.data, *part));
	otlp_release(&o);
}

static size_t count(const char *word)
{
	size_t n = 0;

	for (const char *at = (char *)out.data; (at = strstr(at, word)); at++)
		n++;
	return n;
}

static void test_points_of_a_metric_stand_together(void **state)
{
	struct push_series node = series;
	struct push_point point[] = {REAL(series, 2000, 1.5), WHOLE(counter, 2000, 5),
		WHOLE(process, 2000, 3), REAL(node, 2500, 9), REAL(series, 3000, 2.5),
		WHOLE(counter, 3000, INT64_C(9007199254740993))};
	static const char *const part[] = {"{\"key\":\"host.name\",\"value\":{\"stringValue\":\"n1\"}}",
		"{\"key\":\"service.name\",\"value\":{\"stringValue\":\"train\"}}",
		"\"name\":\"tacho.tree.cores\",\"description\":\"Cores.\",\"unit\":\"1\",\"gauge\":{"
		"\"dataPoints\":["
		"{\"timeUnixNano\":\"2000\",\"asDouble\":1.5},{\"timeUnixNano\":\"3000\",\"asDouble\":2.5}]}",
		"\"unit\":\"By\",\"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":[",
		"\"asInt\":\"9007199254740993\"",
		"{\"key\":\"network.interface.name\",\"value\":{\"stringValue\":\"eth0\"}}",
		"{\"key\":\"process.pid\",\"value\":{\"intValue\":\"42\"}}", NULL};

	(void)state;
	node.node = 1;
	node.host = "n2";
	expect_body(point, 6, part);
	assert_int_equal(count("\"resource\""), 2);
	assert_int_equal(count("tacho.net.rx.bytes"), 1);
	assert_int_equal(count("tacho.tree.cores"), 2);
}

static void test_names_of_the_conventions(void **state)
{
	static const struct push_name name = {.name = "system.memory.usage",
		.table = "node",
		.metric = "mem.free",
		.attribute = "+system.memory.state=free",
		.unit = "By"};
	struct push_series s = series;
	struct push_point point[] = {WHOLE(s, 2000, 5)};
	static const char *const part[] = {"\"name\":\"system.memory.usage\"",
		"\"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":false,",
		"{\"key\":\"system.memory.state\",\"value\":{\"stringValue\":\"free\"}}", NULL};

	(void)state;
	s.name = name.name;
	s.table = "node";
	s.as = &name;
	expect_body(point, 1, part);
	assert_int_equal(count("tacho.system"), 0);
}

static void test_counters_begin_where_it_is_known(void **state)
{
	struct push_series s = series;
	struct push_point point[] = {REAL(s, 2000, 5)};
	static const char *const part[] = {"\"startTimeUnixNano\":\"1000\",\"timeUnixNano\":\"2000\"", NULL};
	static const char *const none[] = {NULL};

	(void)state;
	s.kind = KIND_COUNTER;
	expect_body(point, 1, part);
	buf_reset(&out);
	s.table = "gpu";
	expect_body(point, 1, none);
	assert_int_equal(count("startTimeUnixNano"), 0);
}

/* ---- TensorBoard ---- */

struct seen {
	char text[512];
	int nr;
};

static int see(void *arg, const char *tag, size_t len, double time, int64_t step)
{
	struct seen *s = arg;
	size_t n = strlen(s->text);

	snprintf(s->text + n, sizeof(s->text) - n, "%.*s@%g#%lld ", (int)len, tag, time, (long long)step);
	return ++s->nr == 100 ? -E2BIG : 0;
}

static void write_events(void)
{
	struct tfevents t;

	tfevents_init(&t);
	tfevents_begin(&t, &out, NSEC_PER_SEC);
	tfevents_add(&t, &out, "a", 2 * NSEC_PER_SEC, 1, 1.5);
	tfevents_add(&t, &out, "b", 2 * NSEC_PER_SEC, 1, 1e300);
	tfevents_add(&t, &out, "a", 3 * NSEC_PER_SEC, -2, -1e300);
	tfevents_end(&t, &out);
	tfevents_release(&t);
}

static void test_events_are_read_as_they_were_written(void **state)
{
	struct seen seen = {{0}, 0};
	uint32_t crc;

	(void)state;
	write_events();
	assert_int_equal(tfevents_read(out.data, out.len, see, &seen), out.len);
	assert_string_equal(seen.text, "a@2#1 b@2#1 a@3#-2 ");
	/* The first record: its length, and around it the checksum as TensorFlow masks it. */
	assert_int_equal(out.data[0], 24);
	crc = crc32c(out.data, 8);
	crc = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
	assert_memory_equal(out.data + 8, &crc, 4);
	assert_memory_equal(out.data + 12,
		"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x1a\x0d"
		"brain.Event:2",
		24);
}

static void test_damage_ends_the_reading(void **state)
{
	size_t whole[4] = {0}, nr = 0;

	(void)state;
	write_events();
	for (size_t at = 0; at < out.len && nr < 4; at += 16 + out.data[at])
		whole[nr++] = at;
	for (size_t n = 0; n <= out.len; n++) { /* cut anywhere */
		struct seen seen = {{0}, 0};
		int64_t len = tfevents_read(out.data, n, see, &seen);
		size_t most = 0;

		for (size_t i = 0; i < nr; i++)
			most = whole[i] <= n ? whole[i] : most;
		assert_int_equal(len, n == out.len ? out.len : most);
	}
	for (size_t at = 0; at < out.len; at++) { /* any byte is another */
		struct seen seen = {{0}, 0};

		out.data[at] ^= 0x41;
		assert_true(tfevents_read(out.data, out.len, see, &seen) <= (int64_t)at);
		out.data[at] ^= 0x41;
	}
}

static void test_tags(void **state)
{
	(void)state;
	tfevents_tag(&out, "tree", "tree.cores", NULL, 0);
	buf_addch(&out, ' ');
	tfevents_tag(&out, "node", "mem.used", NULL, 0);
	buf_addch(&out, ' ');
	tfevents_tag(&out, "gpu", "gpu.util", "1", 0);
	buf_addch(&out, ' ');
	tfevents_tag(&out, "process", "proc.mem.rss", "python", 42);
	buf_addch(&out, ' ');
	tfevents_tag(&out, "process", "proc.mem.rss", NULL, 42);
	assert_string_equal((char *)out.data,
		"tree/cores node/mem.used gpu/util/1 process/proc.mem.rss/python-42 process/proc.mem.rss/42");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_row_is_a_line),
		T(test_texts_are_escaped),
		T(test_labels_with_another_use_are_refused),
		T(test_addresses),
		T(test_pairs_of_variables),
		T(test_points_of_a_metric_stand_together),
		T(test_names_of_the_conventions),
		T(test_counters_begin_where_it_is_known),
		T(test_events_are_read_as_they_were_written),
		T(test_damage_ends_the_reading),
		T(test_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
