/* AMD GPUs: what their files say, what sleeps, resets, is pulled and comes back, and the firmware's table in
 * every layout. */
#include "collect/gpu_amd.h"
#include "maker_lab.h"

static struct maker_lab lab;
static const pid_t job[] = {1000, 1001, 0};

static void test_two_cards(void **state)
{
	(void)state;
	maker_open(&lab, "amd", film_of("machines", "gpu-amd"), job);
	assert_int_equal(lab.reading.nr_devices, 2);
	/* By PCI address, whatever the cards' numbers; connectors and render nodes are none. */
	assert_string_equal(lab.reading.device[0].name, "amd-0");
	assert_string_equal(lab.reading.device[0].pci, "0000:03:00.0");
	assert_int_equal(lab.reading.device[0].minor, 1);
	assert_int_equal(lab.reading.device[1].index, 1);
	assert_int_equal(lab.reading.device[1].minor, 0);
	assert_string_equal(lab.reading.device[0].model, "AMD Instinct MI210");
	/* By its PCI numbers. */
	assert_string_equal(lab.reading.device[1].model, "AMD Instinct MI210");
	assert_string_equal(lab.reading.device[1].uuid, "GPU-8f2a00c4d1e5b301");
	assert_int_equal(device_value(&lab, "amd-1", GPU_UTIL), 81);
	assert_int_equal(device_value(&lab, "amd-1", GPU_MEM_UTIL), 31);
	assert_int_equal(device_value(&lab, "amd-1", GPU_MEMORY_USED), 11534336001);
	assert_int_equal(device_value(&lab, "amd-0", GPU_MEMORY_TOTAL), 68702699520);
	assert_int_equal(device_value(&lab, "amd-0", GPU_GTT_USED), 2203648);
	assert_int_equal(device_value(&lab, "amd-0", GPU_BAR1_TOTAL), 68702699520);
	assert_int_equal(device_value(&lab, "amd-0", GPU_CLOCK_GRAPHICS), 1650);
	assert_int_equal(device_value(&lab, "amd-0", GPU_CLOCK_GRAPHICS_MAX), 1700);
	assert_int_equal(device_value(&lab, "amd-0", GPU_CLOCK_MEMORY), 1600);
	assert_int_equal(device_value(&lab, "amd-0", GPU_CLOCK_VIDEO), 1000);
	assert_int_equal(device_value(&lab, "amd-1", GPU_TEMPERATURE), 41100);
	assert_int_equal(device_value(&lab, "amd-1", GPU_TEMPERATURE_MEMORY), 43100);
	assert_int_equal(device_value(&lab, "amd-0", GPU_FAN), 29);
	assert_int_equal(device_value(&lab, "amd-1", GPU_POWER), 213000);
	assert_int_equal(device_value(&lab, "amd-1", GPU_POWER_LIMIT), 300000);
	assert_int_equal(device_value(&lab, "amd-1", GPU_ECC_CORRECTED), 8);
	assert_int_equal(device_value(&lab, "amd-1", GPU_ECC_UNCORRECTED), 1);
	assert_int_equal(device_value(&lab, "amd-0", GPU_PCIE_REPLAYS), 3);
	/* 1000 packets received, 2000 sent, of at most 256 bytes. */
	assert_int_equal(device_value(&lab, "amd-0", GPU_PCIE_RX), 256000);
	assert_int_equal(device_value(&lab, "amd-0", GPU_PCIE_TX), 512000);
	assert_int_equal(device_value(&lab, "amd-0", GPU_ENERGY), INT64_C(0x123456789a) * 1000 / 65536);
	assert_int_equal(device_value(&lab, "amd-0", GPU_THROTTLE_REASONS), 0);
	assert_int_equal(device_value(&lab, "amd-0", GPU_ENCODER), INVALID);
	assert_int_equal(lab.reading.why[GPU_ENCODER].availability, ABSENT);
	assert_non_null(lab.reading.why[GPU_CLOCK_SM].reason);
	assert_null(lab.reading.why[GPU_UTIL].reason);
	maker_close(&lab);
}

static void test_values_that_change(void **state)
{
	int64_t energy;

	(void)state;
	maker_open(&lab, "amd", film_of("films", "gpu-amd"), job);
	energy = device_value(&lab, "amd-0", GPU_ENERGY);
	maker_turn(&lab, 1, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), 10);
	assert_int_equal(device_value(&lab, "amd-0", GPU_ENERGY), energy + 250000);
	assert_int_equal(device_value(&lab, "amd-0", GPU_THROTTLE_REASONS), 8);
	/* What is slow stays. */
	assert_int_equal(device_value(&lab, "amd-0", GPU_ECC_UNCORRECTED), 1);
	assert_int_equal(device_value(&lab, "amd-0", GPU_PCIE_TX), 512000);
	maker_close(&lab);
}

static void test_a_card_that_sleeps(void **state)
{
	(void)state;
	maker_open(&lab, "amd", film_of("films", "gpu-amd"), job);
	maker_turn(&lab, 2, true);
	assert_int_equal(lab.reading.nr_devices, 2);
	for (int row = 0; row < NR_GPU_ROWS; row++)
		if (row != GPU_MEMORY_TOTAL && row != GPU_BAR1_TOTAL && row != GPU_CLOCK_GRAPHICS_MAX &&
			row != GPU_CLOCK_MEMORY_MAX && row != GPU_PROCESSES)
			assert_int_equal(device_value(&lab, "amd-1", (enum gpu_row)row), INVALID);
	assert_int_equal(device_value(&lab, "amd-1", GPU_MEMORY_TOTAL), 68702699520);
	assert_non_null(strstr(lab.reading.why[GPU_UTIL].reason, "suspended"));
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), 10);
	maker_turn(&lab, 7, false);
	assert_int_equal(device_value(&lab, "amd-1", GPU_UTIL), 99);
	maker_close(&lab);
}

/* No file of it is opened before it wakes. */
static void test_a_card_that_slept_before(void **state)
{
	const struct gpu_device *d;

	(void)state;
	maker_open(&lab, "amd", film_of("machines", "gpu-mixed"), job);
	assert_int_equal(lab.reading.nr_devices, 2);
	d = device_of(&lab, "amd-1");
	assert_int_equal(d->valid, 0);
	assert_string_equal(d->pci, "0000:0c:00.0");
	assert_string_equal(d->model, "AMD Instinct MI210");
	/* The other tells no address but by its link, and little else. */
	assert_string_equal(device_of(&lab, "amd-0")->pci, "0000:0b:00.0");
	assert_string_equal(device_of(&lab, "amd-0")->model, "AMD GPU 1002:164e");
	assert_int_equal(device_value(&lab, "amd-0", GPU_POWER), 31000);
	assert_int_equal(device_value(&lab, "amd-0", GPU_TEMPERATURE), 44000);
	assert_int_equal(device_value(&lab, "amd-0", GPU_ENERGY), INVALID);
	maker_close(&lab);
}

static void test_a_card_is_pulled_and_comes_back(void **state)
{
	(void)state;
	maker_open(&lab, "amd", film_of("films", "gpu-amd"), job);
	for (int s = 1; s <= 8; s++)
		maker_turn(&lab, s, false);
	/* Its files fail before the folder is looked at again. */
	assert_null(device_find(&lab, "amd-0"));
	assert_int_equal(device_value(&lab, "amd-1", GPU_UTIL), 99);
	maker_turn(&lab, 9, true);
	assert_int_equal(lab.reading.nr_devices, 1);
	maker_turn(&lab, 11, true);
	assert_int_equal(lab.reading.nr_devices, 2);
	assert_int_equal(device_of(&lab, "amd-0")->minor, 2);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), 80);
	assert_int_equal(device_value(&lab, "amd-0", GPU_CLOCK_GRAPHICS_MAX), 1700);
	maker_turn(&lab, 16, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), 55);
	assert_true(device_value(&lab, "amd-0", GPU_ENERGY) > 0);
	maker_close(&lab);
}

/* Only files of rows that are recorded are opened. */
static void test_what_is_not_recorded_is_not_read(void **state)
{
	(void)state;
	assert_int_equal(maker_try(&lab, "amd", film_of("machines", "gpu-amd")), 0);
	lab.request.rows = UINT64_C(1) << GPU_POWER;
	lab.request.process_rows = 0;
	lab.request.member[lab.request.nr_members++] = 1000;
	maker_round(&lab, true);
	assert_int_equal(lab.reading.device[0].valid, UINT64_C(1) << GPU_POWER);
	assert_int_equal(lab.reading.nr_processes, 0);
	maker_close(&lab);
}

#define CARD "sys/class/drm/card0/device/"
#define ONE_CARD                                                                            \
	"clock monotonic 100\nfile " CARD "vendor\n|0x1002\nfile " CARD "device\n|0x73bf\n" \
	"file " CARD "uevent\n|PCI_SLOT_NAME=0000:0a:00.0\n"

static void test_errors_have_reasons(void **state)
{
	(void)state;
	maker_open(&lab, "amd",
		film_text(ONE_CARD "file " CARD "gpu_busy_percent\n|5\n"
				   "file " CARD "mem_busy_percent\n|7\n"
				   "file " CARD "mem_info_vram_used\n|12\n"
				   "error " CARD "mem_info_vram_total open EACCES\n"
				   "frame 1\nerror " CARD "mem_info_vram_used read EIO\n"
				   "frame 2\nerror " CARD "gpu_busy_percent read EPERM\n"
				   "error " CARD "mem_busy_percent read EPERM\n"
				   "error " CARD "mem_info_vram_used read EPERM\n"
				   "frame 3\nfile " CARD "gpu_busy_percent\n|6\n"),
		NULL);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), 5);
	assert_int_equal(lab.reading.why[GPU_MEMORY_TOTAL].availability, FORBIDDEN);
	assert_non_null(lab.reading.why[GPU_MEMORY_TOTAL].remedy);
	assert_int_equal(lab.reading.why[GPU_POWER].availability, ABSENT);
	maker_turn(&lab, 1, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_MEMORY_USED), INVALID);
	assert_int_equal(lab.reading.why[GPU_MEMORY_USED].availability, FAILED);
	assert_null(device_of(&lab, "amd-0")->lost);
	/* Nothing can be read while the driver resets the card; it comes back. */
	maker_turn(&lab, 2, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), INVALID);
	assert_non_null(strstr(device_of(&lab, "amd-0")->lost, "reset"));
	maker_turn(&lab, 3, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), 6);
	assert_null(device_of(&lab, "amd-0")->lost);
	maker_close(&lab);
}

/* What changes rarely or costs much is read when that is due; what cannot change once. */
static void test_slow_files(void **state)
{
	(void)state;
	maker_open(&lab, "amd",
		film_text(ONE_CARD "file " CARD "pcie_replay_count\n|3\nfile " CARD
				   "mem_info_vram_total\n|100\n"
				   "frame 1\nfile " CARD "pcie_replay_count\n|4\n"
				   "file " CARD "mem_info_vram_total\n|200\nframe 2\n"),
		NULL);
	maker_turn(&lab, 1, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_PCIE_REPLAYS), 3);
	maker_turn(&lab, 2, true);
	assert_int_equal(device_value(&lab, "amd-0", GPU_PCIE_REPLAYS), 4);
	assert_int_equal(device_value(&lab, "amd-0", GPU_MEMORY_TOTAL), 100);
	maker_close(&lab);
}

/* A reset while it is opened: the files are asked again. */
static void test_opened_in_a_reset(void **state)
{
	(void)state;
	maker_open(&lab, "amd",
		film_text(ONE_CARD "file " CARD "gpu_busy_percent\n|5\nerror " CARD
				   "gpu_busy_percent read EPERM\n"
				   "frame 1\nfile " CARD "gpu_busy_percent\n|9\n"),
		NULL);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), INVALID);
	maker_turn(&lab, 1, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), 9);
	maker_close(&lab);
}

static void test_no_card(void **state)
{
	struct trouble why = {0};
	struct env *env;

	(void)state;
	env = film_of("machines", "gpu-intel");
	assert_int_equal(maker_of("amd")->probe(env, &why), -ENOENT);
	assert_non_null(strstr(why.reason, "no AMD GPU"));
	assert_int_equal(maker_try(&lab, "amd", env), -ENOENT);
	maker_close(&lab);
	env = film_text("file proc/loadavg\n|0\n");
	assert_int_equal(maker_of("amd")->probe(env, &why), -ENOENT);
	env_free(env);
	env = film_text("error sys/class/drm list EACCES\n");
	assert_int_equal(maker_of("amd")->probe(env, &why), -EACCES);
	env_free(env);
}

/* Files of every kind of nonsense: no value, never a wrong one. */
static void test_nonsense(void **state)
{
	static const char *const text[] = {"", "|\n", "|-5\n", "|x\n", "|99999999999999999999999\n",
		"|0x10\n", "|1: 800Mhz\n", "|*\n", ":\\x00\\xff*\n", "|: *\n|:::\n", "|12abc\n"};
	static const char *const file[] = {"gpu_busy_percent", "pp_dpm_sclk", "mem_info_vram_used",
		"gpu_metrics", "pcie_bw", "ras/umc_err_count", "unique_id", "product_name",
		"power/runtime_status", "current_compute_partition", "hwmon/hwmon0/temp1_input",
		"hwmon/hwmon0/temp1_label", "hwmon/hwmon0/power1_average", "hwmon/hwmon0/pwm1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		struct buf film;

		buf_init(&film, 1 << 16);
		buf_adds(&film, ONE_CARD);
		for (size_t k = 0; k < ARRAY_SIZE(file); k++)
			buf_addf(&film, "file " CARD "%s\n%s", file[k], text[i]);
		buf_adds(&film, "frame 1\n");
		maker_open(&lab, "amd", film_buf(&film), NULL);
		maker_turn(&lab, 1, true);
		assert_int_equal(lab.reading.nr_devices, 1);
		assert_int_equal(device_value(&lab, "amd-0", GPU_UTIL), INVALID);
		assert_int_equal(device_value(&lab, "amd-0", GPU_MEMORY_USED), INVALID);
		assert_int_equal(device_value(&lab, "amd-0", GPU_POWER), INVALID);
		assert_int_equal(device_value(&lab, "amd-0", GPU_ENERGY), INVALID);
		assert_int_equal(device_value(&lab, "amd-0", GPU_PCIE_TX), INVALID);
		assert_int_equal(device_value(&lab, "amd-0", GPU_ECC_CORRECTED), INVALID);
		maker_close(&lab);
	}
}

/* The nth call of the system fails: nothing falls, and what was read is right. */
static void test_every_call_may_fail(void **state)
{
	static const int error[] = {-EIO, -EACCES, -ENODEV, -EMFILE};

	(void)state;
	for (size_t e = 0; e < ARRAY_SIZE(error); e++)
		for (unsigned n = 1; n < 200; n++) {
			struct env *env = env_failing(film_of("machines", "gpu-amd"), n, error[e]);

			assert_non_null(env);
			if (maker_try(&lab, "amd", env) == 0) {
				lab.request.member[lab.request.nr_members++] = 1000;
				maker_round(&lab, true);
				maker_round(&lab, false);
				for (unsigned i = 0; i < lab.reading.nr_devices; i++) {
					int64_t util =
						device_value(&lab, lab.reading.device[i].name, GPU_UTIL);

					assert_true(
						util == INVALID || util == 80 || util == 81 || util == 87);
				}
			}
			maker_close(&lab);
		}
}

/* ---- gpu_metrics ---- */

static void put16(uint8_t *b, size_t at, uint16_t v)
{
	memcpy(b + at, &v, sizeof(v));
}

static void put64(uint8_t *b, size_t at, uint64_t v)
{
	memcpy(b + at, &v, sizeof(v));
}

static uint64_t field(const struct amd_metrics *m, enum amd_field f)
{
	return m->valid >> f & 1 ? m->value[f] : UINT64_MAX;
}

/* Offsets reckoned from the structures of the kernel, with their alignment. */
static void test_layouts(void **state)
{
	static const struct {
		uint8_t format, content;
		uint16_t size, temperature, gfx, power, energy, energy_bytes, throttle;
	} v[] = {
		{1, 0, 80, 16, 28, 34, 36, 4, 68},
		{1, 1, 96, 4, 16, 22, 24, 8, 68},
		{1, 2, 104, 4, 16, 22, 24, 8, 68},
		{1, 3, 120, 4, 16, 22, 24, 8, 68},
		{1, 4, 288, 4, 12, 10, 24, 8, 40},
		{1, 5, 360, 4, 12, 10, 88, 8, 104},
		{1, 6, 1664, 4, 12, 10, 16, 8, 0},
		{1, 7, 1700, 4, 12, 10, 24, 8, 0},
		{1, 8, 1700, 4, 12, 10, 24, 8, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		uint8_t b[2048];
		struct amd_metrics m;

		memset(b, 0xff, sizeof(b));
		put16(b, 0, v[i].size);
		b[2] = v[i].format;
		b[3] = v[i].content;
		assert_int_equal(amd_metrics_parse(b, v[i].size, &m), 0);
		assert_int_equal(m.valid, 0);
		put16(b, v[i].temperature, 61);
		put16(b, v[i].gfx, 97);
		put16(b, v[i].power, 305);
		if (v[i].energy_bytes == 4) {
			put16(b, v[i].energy, 0x5678);
			put16(b, v[i].energy + 2u, 0x1234);
		} else {
			put64(b, v[i].energy, 0x12345678);
		}
		if (v[i].throttle) {
			put16(b, v[i].throttle, 3);
			put16(b, v[i].throttle + 2u, 0);
		}
		assert_int_equal(amd_metrics_parse(b, v[i].size, &m), 0);
		assert_int_equal(field(&m, AMD_TEMPERATURE), 61);
		assert_int_equal(field(&m, AMD_GFX_ACTIVITY), 97);
		assert_int_equal(field(&m, AMD_POWER), 305);
		assert_int_equal(field(&m, AMD_ENERGY), 0x12345678);
		assert_int_equal(field(&m, AMD_THROTTLE), v[i].throttle ? 3 : UINT64_MAX);
		/* Cut short: what lies beyond is not there, at any length. */
		for (size_t len = 0; len < v[i].size; len++) {
			uint8_t *cut = malloc(len ? len : 1);

			assert_non_null(cut);
			memcpy(cut, b, len);
			if (amd_metrics_parse(cut, len, &m) == 0 &&
				len < v[i].energy + (size_t)v[i].energy_bytes)
				assert_int_equal(field(&m, AMD_ENERGY), UINT64_MAX);
			free(cut);
		}
		/* The table says it is shorter than what was read. */
		put16(b, 0, 16);
		assert_int_equal(amd_metrics_parse(b, v[i].size, &m), 0);
		assert_int_equal(field(&m, AMD_THROTTLE), UINT64_MAX);
	}
}

static void test_tables_that_are_none(void **state)
{
	uint8_t b[64] = {64, 0, 1, 9};
	struct amd_metrics m;

	(void)state;
	assert_int_equal(amd_metrics_parse(b, sizeof(b), &m), -EOPNOTSUPP);
	b[2] = 9;
	assert_int_equal(amd_metrics_parse(b, sizeof(b), &m), -EOPNOTSUPP);
	assert_int_equal(amd_metrics_parse(b, 3, &m), -EBADMSG);
	assert_int_equal(amd_metrics_parse(b, 0, &m), -EBADMSG);
	b[0] = 3;
	assert_int_equal(amd_metrics_parse(b, sizeof(b), &m), -EBADMSG);
}

static void add_table(struct buf *film, const uint8_t *b, size_t len)
{
	buf_adds(film, "file " CARD "gpu_metrics\n:");
	for (size_t i = 0; i < len; i++)
		buf_addf(film, "\\x%02x", b[i]);
	buf_adds(film, "\n");
}

/* A counter of 32 bits passes its range, starts anew, and jumps. */
static void test_energy_only_grows(void **state)
{
	static const uint64_t raw[] = {0xffff0000, 0x00640000, 0x00c80000, 0x00010000, 0x00020000};
	/* Joules: 101 passed the range; 100; a driver that was loaded again has used 1; 1. */
	static const int64_t joules[] = {0, 101, 201, 202, 203};
	uint8_t b[96];
	struct buf film;
	int64_t first;

	(void)state;
	buf_init(&film, 1 << 16);
	buf_adds(&film, ONE_CARD);
	for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
		memset(b, 0xff, sizeof(b));
		put16(b, 0, sizeof(b));
		b[2] = b[3] = 1;
		put64(b, 24, raw[i]);
		if (i)
			buf_addf(&film, "frame %zu\n", i);
		add_table(&film, b, sizeof(b));
	}
	maker_open(&lab, "amd", film_buf(&film), NULL);
	first = device_value(&lab, "amd-0", GPU_ENERGY);
	for (size_t i = 1; i < ARRAY_SIZE(raw); i++) {
		maker_turn(&lab, (int)i, false);
		assert_int_equal(device_value(&lab, "amd-0", GPU_ENERGY), first + joules[i] * 1000);
	}
	maker_close(&lab);
}

/* Cycles in which the clocks were held down become time by our own clock. */
static void test_throttling_in_cycles(void **state)
{
	static const uint32_t cycles[][3] = {{1000, 10, 5}, {2000, 510, 5}, {3000, 510, 255}};
	uint8_t b[1664];
	struct buf film;

	(void)state;
	buf_init(&film, 1 << 20);
	buf_adds(&film, ONE_CARD);
	for (size_t i = 0; i < ARRAY_SIZE(cycles); i++) {
		memset(b, 0xff, sizeof(b));
		put16(b, 0, sizeof(b));
		b[2] = 1;
		b[3] = 6;
		memcpy(b + 32, &cycles[i][0], 4);
		memcpy(b + 40, &cycles[i][1], 4);
		memcpy(b + 44, &cycles[i][2], 4);
		if (i)
			buf_addf(&film, "frame %zu\n", i);
		add_table(&film, b, sizeof(b));
	}
	maker_open(&lab, "amd", film_buf(&film), NULL);
	assert_int_equal(device_value(&lab, "amd-0", GPU_THROTTLED_POWER), 0);
	maker_turn(&lab, 1, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_THROTTLED_POWER), NSEC_PER_SEC / 2);
	assert_int_equal(device_value(&lab, "amd-0", GPU_THROTTLED_THERMAL), 0);
	maker_turn(&lab, 2, false);
	assert_int_equal(device_value(&lab, "amd-0", GPU_THROTTLED_POWER), NSEC_PER_SEC / 2);
	assert_int_equal(device_value(&lab, "amd-0", GPU_THROTTLED_THERMAL), NSEC_PER_SEC / 4);
	maker_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_cards),
		cmocka_unit_test(test_values_that_change),
		cmocka_unit_test(test_a_card_that_sleeps),
		cmocka_unit_test(test_a_card_that_slept_before),
		cmocka_unit_test(test_a_card_is_pulled_and_comes_back),
		cmocka_unit_test(test_what_is_not_recorded_is_not_read),
		cmocka_unit_test(test_errors_have_reasons),
		cmocka_unit_test(test_slow_files),
		cmocka_unit_test(test_opened_in_a_reset),
		cmocka_unit_test(test_no_card),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_every_call_may_fail),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_tables_that_are_none),
		cmocka_unit_test(test_energy_only_grows),
		cmocka_unit_test(test_throttling_in_cycles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
