/* The parts of the Parquet writer: what is encoded is decoded here by the book, bit by bit, and compared;
 * dictionaries number what they are given; failures end it without a leak and without a file. Whole files are
 * judged by other people's readers in tests/e2e/test_parquet.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/outlet.h"
#include "export/parquet_distinct.h"
#include "export/parquet_encode.h"
#include "export/thrift.h"
#include "export/worker.h"
#include "export_lab.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define MOST 3000

static uint64_t dice_state = 88172645463325252u;

static uint64_t dice(void)
{
	dice_state ^= dice_state << 13, dice_state ^= dice_state >> 7, dice_state ^= dice_state << 17;
	return dice_state;
}

/* ---- decoding, slowly ---- */

struct bit_reader {
	const uint8_t *p;
	size_t at; /* in bits */
};

static uint64_t take_bits(struct bit_reader *b, unsigned width)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < width; i++, b->at++)
		v |= (uint64_t)(b->p[b->at / 8] >> b->at % 8 & 1) << i;
	return v;
}

/* Runs and packed numbers until there are nr of them; where they end. */
static const uint8_t *decode_hybrid(
	const uint8_t *p, const uint8_t *end, unsigned width, uint32_t *v, size_t nr)
{
	size_t at = 0;

	while (at < nr) {
		struct view view = view_of(p, (size_t)(end - p));
		uint64_t head = view_varint(&view);
		size_t n = head & 1 ? (head >> 1) * 8 : head >> 1,
		       bytes = head & 1 ? n / 8 * width : (width + 7) / 8;
		struct bit_reader b = {.p = view.p};
		uint32_t same = 0;

		assert_false(view.bad);
		assert_true(n > 0);
		assert_true(bytes <= (size_t)(end - view.p));
		if (!(head & 1))
			same = (uint32_t)take_bits(&b, width);
		for (size_t i = 0; i < n && at < nr; i++, at++)
			v[at] = head & 1 ? (uint32_t)take_bits(&b, width) : same;
		p = view.p + bytes;
	}
	return p;
}

static const uint8_t *decode_delta(const uint8_t *p, const uint8_t *end, uint64_t *v, size_t nr)
{
	struct view view = view_of(p, (size_t)(end - p));
	uint64_t block = view_varint(&view), parts = view_varint(&view), all = view_varint(&view);
	size_t at = 1;

	assert_int_equal(all, nr);
	assert_int_equal(block % 128, 0);
	assert_int_equal(block / parts % 32, 0);
	v[0] = (uint64_t)unzigzag(view_varint(&view));
	while (at < nr) {
		uint64_t least = (uint64_t)unzigzag(view_varint(&view));
		const uint8_t *width = view.p;

		view.p += parts;
		for (uint64_t part = 0; part < parts && at < nr; part++) {
			struct bit_reader b = {.p = view.p};

			assert_true(width[part] <= 64);
			for (uint64_t i = 0; i < block / parts; i++) {
				uint64_t delta = take_bits(&b, width[part]) + least;

				if (at < nr)
					v[at] = v[at - 1] + delta;
				at++;
			}
			view.p += block / parts * width[part] / 8;
		}
		assert_false(view.bad);
	}
	return view.p;
}

/* ---- encodings ---- */

static const size_t lengths[] = {1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130, 257, 1000, 2999, MOST};

static void test_indices_are_read_back(void **state)
{
	static uint32_t v[MOST], found[MOST];
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 24);
	for (unsigned width = 1; width <= 32; width++)
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			size_t nr = lengths[i];
			unsigned run = 1 + (unsigned)(dice() % 40);

			for (size_t k = 0; k < nr; k++)
				v[k] = k && dice() % run ? v[k - 1] : (uint32_t)(dice() >> (64 - width));
			buf_reset(&out);
			encode_indices(&out, v, nr, width);
			assert_int_equal(out.err, 0);
			assert_int_equal(out.data[0], width);
			assert_ptr_equal(decode_hybrid(out.data + 1, out.data + out.len, width, found, nr),
				out.data + out.len);
			assert_memory_equal(v, found, nr * sizeof(*v));
		}
	buf_release(&out);
}

static void test_runs_are_short(void **state)
{
	static uint32_t v[MOST];
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	encode_indices(&out, v, MOST, 16);
	assert_int_equal(out.len, 1 + 2 + 2); /* width, how many, the value */
	buf_reset(&out);
	encode_levels(&out, NULL, MOST, true);
	assert_int_equal(out.len, 4 + 2 + 1);
	buf_release(&out);
}

static void test_levels_are_read_back(void **state)
{
	static uint8_t bits[MOST / 8 + 1];
	static uint32_t found[MOST];
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		for (unsigned try = 0; try < 50; try++) {
			size_t nr = lengths[i];
			unsigned run = 1 + (unsigned)(dice() % 200);
			bool there = false;
			uint32_t len;

			memset(bits, 0, sizeof(bits));
			for (size_t k = 0; k < nr; k++) {
				there = dice() % run ? there : dice() & 1;
				bits[k / 8] |= (uint8_t)(there << k % 8);
			}
			buf_reset(&out);
			encode_levels(&out, bits, nr, false);
			memcpy(&len, out.data, sizeof(len));
			assert_int_equal(len + sizeof(len), out.len);
			assert_ptr_equal(decode_hybrid(out.data + 4, out.data + out.len, 1, found, nr),
				out.data + out.len);
			for (size_t k = 0; k < nr; k++)
				assert_int_equal(found[k], bits[k / 8] >> k % 8 & 1);
		}
	buf_release(&out);
}

static void test_differences_are_read_back(void **state)
{
	static uint64_t v[MOST], found[MOST];
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 24);
	for (unsigned width = 0; width <= 64; width++)
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			size_t nr = lengths[i];

			for (size_t k = 0; k < nr; k++) {
				uint64_t step = width ? dice() >> (64 - width) : 7;

				v[k] = (k ? v[k - 1] : dice()) + (dice() & 1 ? step : -step);
			}
			if (nr > 2 && width == 64) {
				v[nr / 2] = (uint64_t)INT64_MIN;
				v[nr / 2 + 1] = INT64_MAX;
			}
			buf_reset(&out);
			encode_delta(&out, v, nr);
			assert_int_equal(out.err, 0);
			assert_ptr_equal(
				decode_delta(out.data, out.data + out.len, found, nr), out.data + out.len);
			assert_memory_equal(v, found, nr * sizeof(*v));
		}
	buf_release(&out);
}

static void test_split_bytes_are_read_back(void **state)
{
	static uint64_t v[MOST];
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t nr = lengths[i];

		for (size_t k = 0; k < nr; k++)
			v[k] = dice();
		buf_reset(&out);
		encode_split(&out, v, nr);
		assert_int_equal(out.len, nr * 8);
		for (size_t k = 0; k < nr * 8; k++)
			assert_int_equal(out.data[k], (uint8_t)(v[k % nr] >> 8 * (k / nr)));
	}
	buf_release(&out);
}

static void test_flags_are_bits(void **state)
{
	static const uint8_t v[] = {1, 0, 0, 77, 0, 0, 0, 1, 1, 0};
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	encode_flags(&out, v, ARRAY_SIZE(v));
	assert_int_equal(out.len, 2);
	assert_int_equal(out.data[0], 0x89);
	assert_int_equal(out.data[1], 0x01);
	buf_release(&out);
}

static void test_what_does_not_fit_is_an_error(void **state)
{
	static uint64_t v[MOST];
	struct buf out;

	(void)state;
	buf_init(&out, 50);
	encode_split(&out, v, MOST);
	assert_int_equal(out.err, -ENOBUFS);
	buf_reset(&out);
	encode_delta(&out, v, MOST);
	assert_int_equal(out.err, -ENOBUFS);
	buf_release(&out);
}

/* ---- distinct values ---- */

static void test_values_are_numbered_as_they_come(void **state)
{
	static uint64_t v[MOST];
	static uint32_t id[MOST];
	struct distinct d = {0};
	uint32_t half;

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < MOST; i++)
			v[i] = dice() % 1000 << 54; /* alike in the low bits, and zero among them */
		assert_int_equal(distinct_map(&d, v, MOST, 1000, id, &half), 0);
		assert_true(d.nr > 900 && d.nr <= 1000 && half < d.nr && half > 500);
		for (size_t i = 0; i < MOST; i++)
			assert_true(d.value[id[i]] == v[i]);
		assert_int_equal(id[0], 0);
		distinct_clear(&d);
	}
	/* Too many: as it was. */
	assert_int_equal(distinct_map(&d, v, 10, 1000, id, &half), 0);
	half = d.nr;
	for (size_t i = 0; i < MOST; i++)
		v[i] = i;
	assert_int_equal(distinct_map(&d, v, MOST, 1000, id, &(uint32_t){0}), -E2BIG);
	assert_int_equal(d.nr, half);
	distinct_release(&d);
}

static void test_texts_are_numbered_anew(void **state)
{
	static const uint32_t text[] = {7, 3, 7, 900, 3}, wrong[] = {901};
	struct text_numbers t = {0};
	uint32_t id[5];

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(text_numbers_map(&t, text, 5, 901, id), 0);
		assert_memory_equal(id, ((uint32_t[]){0, 1, 0, 2, 1}), sizeof(id));
		assert_int_equal(t.nr, 3);
		assert_memory_equal(t.text, ((uint32_t[]){7, 3, 900}), 3 * sizeof(uint32_t));
		text_numbers_clear(&t);
	}
	assert_int_equal(text_numbers_map(&t, wrong, 1, 901, id), -EINVAL);
	text_numbers_release(&t);
}

/* ---- thrift ---- */

static void test_thrift_is_compact(void **state)
{
	static const uint8_t expected[] = {
		0x15,
		0x03, /* 1: i32 -2 */
		0x11, /* 2: true */
		0x05,
		0x2c,
		0x0e, /* 22: i32 7, too far for a step */
		0x1c,
		0x18,
		0x02,
		'h',
		'i',
		0x00, /* 23: struct {1: "hi"} */
		0x19,
		0x25,
		0x02,
		0x04, /* 24: [1, 2] */
		0x00,
	};
	struct thrift t;
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	thrift_begin(&t, &out);
	thrift_i32(&t, 1, -2);
	thrift_bool(&t, 2, true);
	thrift_i32(&t, 22, 7);
	thrift_struct(&t, 23);
	thrift_text(&t, 1, "hi");
	thrift_end(&t);
	thrift_list(&t, 24, THRIFT_I32, 2);
	thrift_element_i32(&t, 1);
	thrift_element_i32(&t, 2);
	thrift_end(&t);
	assert_int_equal(out.len, sizeof(expected));
	assert_memory_equal(out.data, expected, sizeof(expected));
	buf_release(&out);
}

/* ---- the worker ---- */

#define JOBS 2000

static unsigned done[JOBS], nr_done;

static void note(void *arg, void *job)
{
	(void)arg;
	memcpy(&done[nr_done++], job, sizeof(unsigned));
}

static void test_jobs_are_done_in_order(void **state)
{
	struct worker w;

	(void)state;
	for (unsigned start = 0; start < 2; start++) {
		nr_done = 0;
		assert_int_equal(worker_init(&w, note, NULL, sizeof(unsigned)), 0);
		for (unsigned i = 0; i < JOBS; i++) {
			if (start && i == 10)
				worker_start(&w);
			worker_give(&w, &i);
		}
		worker_wait(&w);
		assert_int_equal(nr_done, JOBS);
		for (unsigned i = 0; i < JOBS; i++)
			assert_int_equal(done[i], i);
		worker_release(&w);
	}
}

static void test_release_does_what_is_left(void **state)
{
	struct worker w;

	(void)state;
	nr_done = 0;
	assert_int_equal(worker_init(&w, note, NULL, sizeof(unsigned)), 0);
	worker_start(&w);
	for (unsigned i = 0; i < 300; i++)
		worker_give(&w, &i);
	worker_release(&w);
	assert_int_equal(nr_done, 300);
}

/* ---- files ---- */

static const struct exporter *parquet(void)
{
	return exporter_find("parquet");
}

static void test_random_tables_are_written(void **state)
{
	char path[] = "/tmp/test_parquet.XXXXXX";
	uint8_t data[500];

	(void)state;
	close(mkstemp(path));
	for (unsigned i = 0; i < 40; i++) {
		for (size_t k = 0; k < sizeof(data); k++)
			data[k] = (uint8_t)(dice() >> 40);
		assert_int_equal(lab_write_fuzz(parquet(), data, sizeof(data), path), 0);
	}
	unlink(path);
}

static struct texts no_texts(const void *arg, size_t table, size_t field)
{
	(void)arg, (void)table, (void)field;
	return (struct texts){0};
}

/* Noise, batch after batch, until it fails or there were enough; what the exporter returned. */
static int pour_noise(struct outlet *out, unsigned nr_batches, bool leave)
{
	static int64_t noise[DATA_TABLE_ROWS_MOST];
	static const struct field field[] = {
		{.name = "a", .type = FIELD_INT}, {.name = "b", .type = FIELD_REAL}};
	static const struct data_table table = {.name = "noise", .field = field, .nr_fields = 2};
	struct field_cells cell[2] = {{.integer = noise}, {.integer = noise}};
	struct data_table_batch batch = {.nr_rows = DATA_TABLE_ROWS_MOST, .cell = cell};
	struct export_job job = {.table = &table, .nr_tables = 1, .out = out, .texts = no_texts};
	void *e = NULL;
	int r = parquet()->open(&job, &e, NULL);

	for (unsigned i = 0; r >= 0 && i < nr_batches; i++) {
		for (size_t k = 0; k < DATA_TABLE_ROWS_MOST; k++)
			noise[k] = (int64_t)(dice() >> 12);
		r = parquet()->add(e, &batch);
	}
	if (r >= 0 && !leave)
		return parquet()->close(e);
	parquet()->drop(e);
	return r;
}

static void test_full_disks_are_told(void **state)
{
	struct outlet out;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0) {
		print_message("there is no /dev/full\n");
		skip();
	}
	assert_int_equal(outlet_open(&out, fd), 0);
	assert_int_equal(pour_noise(&out, 64, false), -ENOSPC);
	outlet_release(&out);
	close(fd);
}

static void test_drop_half_way(void **state)
{
	(void)state;
	for (unsigned batches = 0; batches < 40; batches += 13) {
		struct outlet out;
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		assert_int_equal(outlet_open(&out, fd), 0);
		assert_int_equal(pour_noise(&out, batches, true), 0);
		outlet_release(&out);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_indices_are_read_back),
		cmocka_unit_test(test_runs_are_short),
		cmocka_unit_test(test_levels_are_read_back),
		cmocka_unit_test(test_differences_are_read_back),
		cmocka_unit_test(test_split_bytes_are_read_back),
		cmocka_unit_test(test_flags_are_bits),
		cmocka_unit_test(test_what_does_not_fit_is_an_error),
		cmocka_unit_test(test_values_are_numbered_as_they_come),
		cmocka_unit_test(test_texts_are_numbered_anew),
		cmocka_unit_test(test_thrift_is_compact),
		cmocka_unit_test(test_jobs_are_done_in_order),
		cmocka_unit_test(test_release_does_what_is_left),
		cmocka_unit_test(test_random_tables_are_written),
		cmocka_unit_test(test_full_disks_are_told),
		cmocka_unit_test(test_drop_half_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
