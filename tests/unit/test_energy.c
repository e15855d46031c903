/* Energy: which meters are found, which of them make up the node's energy, and counters that only grow. */
#include "film_text.h"

static bool is_counted_elsewhere(const struct lab *lab, const char *instance)
{
	return strstr(about(lab, instance), "apart=") != NULL;
}

/* What a reader makes of it: the sum over all that do not stand apart. */
static int64_t node_sum(struct lab *lab, const char *metric)
{
	int col = lab->ctx.map.col[index_of(lab, metric)];
	int64_t sum = 0;

	for (uint32_t row = 0; row < lab->table.nr_rows; row++)
		if (lab->table.id[row] != ROW_FREE && !strstr(lab->about[row], "apart=") &&
			lab->table.valid[row] >> col & 1)
			sum += table_row(&lab->table, row)[col];
	return sum;
}

static void test_packages_and_memory_of_a_server(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy", film_of("machines", "intel-2s"));
	/* The dram of package 0 has two paths and is one; the ACPI meter is the fifth. */
	assert_int_equal(nr_instances(&lab), 5);
	assert_int_equal(value(&lab, "package-1", "energy.used"), 2500000000);
	assert_int_equal(value(&lab, "dram-0", "energy.used"), 200000000);
	assert_string_equal(about(&lab, "dram-1"), "source=rapl;");
	assert_int_equal(value(&lab, "power_meter/power1", "energy.power"), 412000000);
	assert_string_equal(about(&lab, "power_meter/power1"),
		"source=hwmon;apart=RAPL's packages and memory are counted instead;");
	assert_int_equal(node_sum(&lab, "energy.used"), 4000000000);
	assert_int_equal(node_sum(&lab, "energy.power"), 0);
	assert_int_equal(availability(&lab, "energy.used"), AVAILABLE);
	assert_int_equal(availability(&lab, "energy.battery"), ABSENT);
	close_machine(&lab);
}

static void test_amd(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy", film_of("machines", "amd-server"));
	assert_int_equal(nr_instances(&lab), 2 + 2 + 2 + 8);
	assert_int_equal(node_sum(&lab, "energy.used"), 2000000001);
	assert_string_equal(about(&lab, "core-1"), "source=rapl;apart=part of package-1;");
	assert_int_equal(value(&lab, "core-1", "energy.used"), 300000001);
	assert_string_equal(about(&lab, "amd_energy/Esocket0"),
		"source=amd_energy;apart=RAPL's packages and memory are counted instead;");
	assert_string_equal(
		about(&lab, "amd_energy/Ecore007"), "source=amd_energy;apart=part of its socket;");
	assert_int_equal(value(&lab, "amd_energy/Ecore007", "energy.used"), 5000000007);
	close_machine(&lab);
}

static void test_a_laptop(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy", film_of("machines", "laptop"));
	/* Neither the package's second way nor the mouse's battery nor the battery's second way. */
	assert_int_equal(nr_instances(&lab), 5);
	assert_int_equal(node_sum(&lab, "energy.used"), 1000000000);
	assert_string_equal(about(&lab, "psys"), "source=rapl;apart=contains the packages;");
	assert_string_equal(about(&lab, "uncore-0"), "source=rapl;apart=part of package-0;");
	assert_int_equal(value(&lab, "BAT0", "energy.power"), 9500000);
	assert_int_equal(value(&lab, "BAT0", "energy.battery"), 32500000 * INT64_C(3600));
	assert_true(is_counted_elsewhere(&lab, "BAT0"));
	assert_int_equal(lab.whys, 0);
	close_machine(&lab);
}

static void test_power_meters_of_a_module(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy", film_of("machines", "arm-server"));
	assert_int_equal(nr_instances(&lab), 4);
	assert_int_equal(node_sum(&lab, "energy.power"), 310000000);
	assert_string_equal(about(&lab, "power_meter/Grace Power Socket 0"),
		"source=hwmon;apart=contained in the power meter of the whole node;");
	assert_string_equal(
		about(&lab, "power_meter/CPU Power Socket 0"), "source=hwmon;apart=part of its socket;");
	assert_int_equal(availability(&lab, "energy.used"), ABSENT);
	assert_int_equal(availability(&lab, "energy.power"), AVAILABLE);
	close_machine(&lab);
}

static void test_a_cray_node(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy", film_of("machines", "cray"));
	assert_int_equal(nr_instances(&lab), 5 + 2);
	assert_int_equal(value(&lab, "node", "energy.used"), 123456789 * INT64_C(1000000));
	assert_int_equal(value(&lab, "node", "energy.power"), 612000000);
	assert_string_equal(about(&lab, "node"), "source=cray;");
	assert_string_equal(about(&lab, "accel1"), "source=cray;apart=part of node;");
	assert_int_equal(value(&lab, "accel1", "energy.power"), 168000000);
	assert_string_equal(
		about(&lab, "package-0"), "source=rapl;apart=contained in the meter of the whole node;");
	assert_int_equal(node_sum(&lab, "energy.used"), 123456789 * INT64_C(1000000));
	close_machine(&lab);
}

#define JOULE INT64_C(1000000)

static void test_counters_pass_their_range(void **state)
{
	static struct lab lab;
	int64_t package[2], dram[2];

	(void)state;
	open_machine(&lab, "energy", film_of("films", "rapl-wrap"));
	for (int i = 0; i < 2; i++) {
		package[i] = value(&lab, i ? "package-1" : "package-0", "energy.used");
		dram[i] = value(&lab, i ? "dram-1" : "dram-0", "energy.used");
	}
	for (int s = 1; s <= 6; s++) {
		turn(&lab, s);
		assert_int_equal(value(&lab, "package-0", "energy.used"), package[0] + s * 100 * JOULE);
		assert_int_equal(value(&lab, "dram-0", "energy.used"), dram[0] + s * 10 * JOULE);
		assert_int_equal(value(&lab, "dram-1", "energy.used"), dram[1] + s * 10 * JOULE);
		assert_int_equal(value(&lab, "package-1", "energy.used"),
			s == 3 ? INVALID : package[1] + s * 100 * JOULE);
	}
	assert_int_equal(nr_instances(&lab), 4);
	close_machine(&lab);
}

static void test_counters_start_anew(void **state)
{
	static struct lab lab;
	int64_t package[2], core, dram[2];

	(void)state;
	open_machine(&lab, "energy", film_of("films", "rapl-reset"));
	turn(&lab, 1);
	for (int i = 0; i < 2; i++) {
		package[i] = value(&lab, i ? "package-1" : "package-0", "energy.used");
		dram[i] = value(&lab, i ? "dram-1" : "dram-0", "energy.used");
	}
	core = value(&lab, "core-0", "energy.used");
	turn(&lab, 2);
	assert_int_equal(value(&lab, "package-0", "energy.used"), package[0] + 5 * JOULE);
	/* 102 J would be possible but for the sleep. */
	assert_int_equal(value(&lab, "package-1", "energy.used"), package[1] + 2 * JOULE);
	assert_int_equal(value(&lab, "dram-0", "energy.used"), dram[0] + 1 * JOULE);
	assert_int_equal(value(&lab, "dram-1", "energy.used"), dram[1] + 3 * JOULE);
	assert_int_equal(value(&lab, "core-0", "energy.used"), core);
	turn(&lab, 3);
	assert_int_equal(value(&lab, "package-0", "energy.used"), package[0] + 105 * JOULE);
	assert_int_equal(value(&lab, "core-0", "energy.used"), core + 50 * JOULE);
	turn(&lab, 4);
	assert_int_equal(value(&lab, "package-0", "energy.used"), package[0] + 125 * JOULE);
	assert_int_equal(value(&lab, "package-1", "energy.used"), package[1] + 202 * JOULE);
	close_machine(&lab);
}

#define ZONE(dir, name, uj)                                                                                \
	"file sys/class/powercap/" dir "/name\n|" name "\nfile sys/class/powercap/" dir "/energy_uj\n|" uj \
	"\n"
#define DENIED(dir) "error sys/class/powercap/" dir "/energy_uj open EACCES\n"

/* A counter beyond its own range is no reason to count backwards. */
static void test_a_range_that_is_wrong(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text(ZONE("intel-rapl:0", "package-0",
			"5000") "file sys/class/powercap/intel-rapl:0/max_energy_range_uj\n|1000\n"
				"frame 1\nfile sys/class/powercap/intel-rapl:0/energy_uj\n|400\nframe 2\n"));
	turn(&lab, 1);
	assert_int_equal(value(&lab, "package-0", "energy.used"), 5400);
	close_machine(&lab);
}

/* Nothing can be read at the start: the first of the ladder is waited for, and is not joined by the others.
 */
static void test_meters_that_answer_late(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text(ZONE("intel-rapl:0", "package-0", "1") ZONE("intel-rapl:1", "psys",
			"20") "error sys/class/powercap/intel-rapl:0/energy_uj read EIO\n"
			      "error sys/class/powercap/intel-rapl:1/energy_uj read EIO\n"
			      "frame 1\n" ZONE("intel-rapl:0", "package-0", "1")
				      ZONE("intel-rapl:1", "psys", "20")));
	assert_int_equal(value(&lab, "package-0", "energy.used"), INVALID);
	turn(&lab, 1);
	assert_int_equal(node_sum(&lab, "energy.used"), 1);
	assert_true(is_counted_elsewhere(&lab, "psys"));
	close_machine(&lab);
}

static void test_what_only_root_may_read(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(
		&lab, "energy", film_text(ZONE("intel-rapl:0", "package-0", "7") DENIED("intel-rapl:0")));
	assert_int_equal(nr_instances(&lab), 0);
	assert_int_equal(availability(&lab, "energy.used"), FORBIDDEN);
	close_machine(&lab);

	/* The remedy is the last reason given when only the counters are recorded. */
	lab_init(&lab, film_text(ZONE("intel-rapl:0", "package-0", "7") DENIED("intel-rapl:0")), "energy");
	lab.ctx.map.col[index_of(&lab, "energy.power")] = -1;
	lab.ctx.map.col[index_of(&lab, "energy.battery")] = -1;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_non_null(strstr(lab.why, "only root"));
	close_machine(&lab);
}

/* Packages that cannot be read do not count as nothing: psys stands for them, and says so. */
static void test_psys_where_the_packages_are_denied(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text(ZONE("intel-rapl:0", "package-0", "7") DENIED("intel-rapl:0")
				ZONE("intel-rapl:0:0", "dram", "5") ZONE("intel-rapl:1", "psys", "90")));
	assert_int_equal(node_sum(&lab, "energy.used"), 90);
	assert_string_equal(about(&lab, "psys"), "source=rapl;");
	assert_string_equal(about(&lab, "dram-0"), "source=rapl;apart=contained in psys;");
	assert_int_equal(availability(&lab, "energy.used"), FORBIDDEN);
	close_machine(&lab);
}

static void test_dies_and_odd_zones(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text(ZONE("intel-rapl:0", "package-0-die-0", "1") ZONE("intel-rapl:0:0", "dram", "20")
				ZONE("intel-rapl:1", "package-0-die-1", "300")
					ZONE("intel-rapl:1/intel-rapl:1:0", "dram", "4000") /* nested only */
			ZONE("intel-rapl:2", "psys-0", "50000") ZONE("intel-rapl:3", "psys-1", "50000")
				ZONE("intel-rapl:4", "mystery", "600000") ZONE("intel-rapl:5", "", "600000")
					ZONE("intel-rapl-mmio:0", "package-0-die-0", "1")
						ZONE("intel-rapl-mmio:1", "package-1", "7000000")
							ZONE("intel-rapl:x", "package-9", "9")
								ZONE("dtpm:0", "package-8", "8")));
	/* A package that only the other registers show counts. */
	assert_int_equal(node_sum(&lab, "energy.used"), 7004321);
	assert_int_equal(value(&lab, "dram-0-die-1", "energy.used"), 4000);
	assert_string_equal(about(&lab, "psys-1"), "source=rapl;apart=contains the packages;");
	assert_string_equal(about(&lab, "mystery"), "source=rapl;apart=what it measures is not known;");
	assert_int_equal(nr_instances(&lab), 8);
	close_machine(&lab);
}

/* Two zones of one name are two zones. */
static void test_zones_of_one_name(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text(ZONE("intel-rapl:0", "package-0", "1") ZONE("intel-rapl:1", "package-0", "20")));
	assert_int_equal(node_sum(&lab, "energy.used"), 21);
	assert_int_equal(value(&lab, "package-0-2", "energy.used"), 20);
	close_machine(&lab);
}

static void test_numbers_that_are_none(void **state)
{
	static const char *const bad[] = {
		"", "-5", "nonsense", "12abc", "18446744073709551615", "9223372036854775807", "\\x00\\x00"};
	static struct lab lab;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct buf text;

		buf_init(&text, 4096);
		buf_adds(&text, ZONE("intel-rapl:0", "package-0", "100"));
		buf_addf(&text, "frame 1\nfile sys/class/powercap/intel-rapl:0/energy_uj\n|%s\n", bad[i]);
		buf_adds(&text, "frame 2\nfile sys/class/powercap/intel-rapl:0/energy_uj\n|130\n");
		open_machine(&lab, "energy", film_buf(&text));
		turn(&lab, 1);
		if (value(&lab, "package-0", "energy.used") != INVALID)
			fail_msg("'%s' is a number", bad[i]);
		turn(&lab, 2);
		assert_int_equal(value(&lab, "package-0", "energy.used"), 130);
		close_machine(&lab);
	}
}

/* A driver is unloaded and loaded again: the meter leaves and comes back as a new instance. */
static void test_meters_that_go_and_come(void **state)
{
	static struct lab lab;
	uint32_t id;

	(void)state;
	open_machine(&lab, "energy",
		film_text(ZONE("intel-rapl:0", "package-0", "100") ZONE("intel-rapl:1", "package-1",
			"10") "frame 1\nremove sys/class/powercap/intel-rapl:0\n"
			      "frame 2\nframe 3\n" ZONE("intel-rapl:0", "package-0", "3") "frame 4\n"));
	id = lab.table.id[row_of(&lab, "package-0")];
	for (int s = 1; s <= 2; s++) {
		turn(&lab, s);
		assert_int_equal(row_of(&lab, "package-0"), -1);
		assert_int_equal(value(&lab, "package-1", "energy.used"), 10);
	}
	assert_int_equal(env_sleep_until(lab.ctx.env, 103 * NSEC_PER_SEC), 0);
	lab.ctx.medium = false; /* looked for in the slower rounds only */
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(row_of(&lab, "package-0"), -1);
	lab.ctx.medium = true;
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(value(&lab, "package-0", "energy.used"), 3);
	assert_true(lab.table.id[row_of(&lab, "package-0")] != id);
	assert_string_equal(about(&lab, "package-0"), "source=rapl;");
	close_machine(&lab);
}

#define BATTERY(status, current)                                                                             \
	"file sys/class/power_supply/BAT1/type\n|Battery\nfile sys/class/power_supply/BAT1/status\n|" status \
	"\nfile sys/class/power_supply/BAT1/charge_now\n|4000000\n"                                          \
	"file sys/class/power_supply/BAT1/voltage_now\n|12000000\n"                                          \
	"file sys/class/power_supply/BAT1/current_now\n|" current "\n"

static void test_a_battery_in_amperes(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text("file sys/class/power_supply/mouse/type\n|Battery\n"
			  "file sys/class/power_supply/mouse/scope\n|Device\n"
			  "file sys/class/power_supply/mouse/energy_now\n|9\n" BATTERY("Charging",
				  "2000000") "frame 1\n" BATTERY("Discharging", "-500000") "frame 2\n"));
	/* Nothing else measures this machine, so it counts: while it gives. */
	assert_string_equal(about(&lab, "BAT1"), "source=battery;");
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(value(&lab, "BAT1", "energy.power"), INVALID);
	assert_int_equal(value(&lab, "BAT1", "energy.battery"), 48000000 * INT64_C(3600));
	turn(&lab, 1);
	assert_int_equal(node_sum(&lab, "energy.power"), 6000000);
	close_machine(&lab);
}

static void test_sensors_of_unknown_meaning(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text("file sys/class/hwmon/hwmon0/name\n|ina226\n"
			  "file sys/class/hwmon/hwmon0/power1_input\n|5\n"
			  "file sys/class/hwmon/hwmon1/name\n|power_meter\n"
			  "file sys/class/hwmon/hwmon1/power1_average\n|70\n"
			  "file sys/class/hwmon/hwmon2/name\n|power_meter\n"
			  "file sys/class/hwmon/hwmon2/power1_average\n|70\n"
			  "file sys/class/hwmon/hwmon3/name\n|amdgpu\n"
			  "file sys/class/hwmon/hwmon3/power1_average\n|900\n"
			  "file sys/class/hwmon/hwmon4/name\n|ibmpowernv\n"
			  "file sys/class/hwmon/hwmon4/power1_cap\n|5\n"));
	assert_int_equal(node_sum(&lab, "energy.power"), 70);
	assert_string_equal(
		about(&lab, "ina226/power1"), "source=hwmon;apart=what it measures is not known;");
	assert_true(is_counted_elsewhere(&lab, "power_meter/power1-2"));
	assert_int_equal(nr_instances(&lab), 3);
	close_machine(&lab);
}

/* POWER: a counter of the whole system comes before its power, and contains the chips. */
static void test_a_counter_of_the_whole_system(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy",
		film_text("file sys/class/hwmon/hwmon0/name\n|ibmpowernv\n"
			  "file sys/class/hwmon/hwmon0/energy1_input\n|5000\n"
			  "file sys/class/hwmon/hwmon0/energy1_label\n|System\n"
			  "file sys/class/hwmon/hwmon0/energy2_input\n|3000\n"
			  "file sys/class/hwmon/hwmon0/energy2_label\n|Chip 0\n"
			  "file sys/class/hwmon/hwmon0/power1_input\n|80\n"
			  "file sys/class/hwmon/hwmon0/power1_label\n|System\n"));
	assert_int_equal(node_sum(&lab, "energy.used"), 5000);
	assert_int_equal(node_sum(&lab, "energy.power"), 0);
	assert_string_equal(about(&lab, "ibmpowernv/Chip 0"), "source=hwmon;apart=part of System;");
	close_machine(&lab);
}

/* A container masks the folders that the links of the zones lead to. */
static void test_a_container_hides_the_counters(void **state)
{
	static struct lab lab;

	(void)state;
	lab_init(&lab, film_text("link sys/class/powercap/intel-rapl:0 ../../devices/none\n"), "energy");
	lab.ctx.map.col[index_of(&lab, "energy.power")] = -1;
	lab.ctx.map.col[index_of(&lab, "energy.battery")] = -1;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(availability(&lab, "energy.used"), FORBIDDEN);
	assert_non_null(strstr(lab.remedy, "systempaths"));
	close_machine(&lab);
}

/* Between the slower rounds only what is cheap is read. */
static void test_fast_and_slow(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "energy", film_of("machines", "intel-2s"));
	lab.ctx.medium = false;
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.table.nr_touched, 4);
	for (uint32_t i = 0; i < lab.table.nr_touched; i++)
		assert_true(lab.table.touched[i] != (uint32_t)row_of(&lab, "power_meter/power1"));
	close_machine(&lab);

	/* Zones and sockets, but not each core by itself. */
	open_machine(&lab, "energy", film_of("machines", "amd-server"));
	lab.ctx.medium = false;
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.table.nr_touched, 4 + 2);
	close_machine(&lab);
}

static void test_what_is_not_recorded_is_not_opened(void **state)
{
	static struct lab lab;
	struct env *env = film_of("machines", "laptop");

	(void)state;
	lab_init(&lab, env, "energy");
	for (size_t i = 0; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = -1;
	lab.ctx.map.col[index_of(&lab, "energy.battery")] = 0;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(value(&lab, "BAT0", "energy.battery"), 32500000 * INT64_C(3600));
	close_machine(&lab);
}

static void test_more_meters_than_fit(void **state)
{
	static struct lab lab;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	buf_adds(&text, "file sys/class/hwmon/hwmon0/name\n|amd_energy\n");
	for (int i = 1; i <= 400; i++)
		buf_addf(&text,
			"file sys/class/hwmon/hwmon0/energy%d_input\n|%d\n"
			"file sys/class/hwmon/hwmon0/energy%d_label\n|Ecore%03d\n",
			i, i, i, i - 1);
	open_machine(&lab, "energy", film_buf(&text));
	assert_int_equal(nr_instances(&lab), lab.collector->max_rows);
	assert_int_equal(availability(&lab, "energy.used"), FAILED);
	assert_int_equal(value(&lab, "amd_energy/Ecore200", "energy.used"), 201);
	close_machine(&lab);
}

/* Every call fails once: nothing crashes, nothing is counted twice, and what there is is right. */
static void test_every_call_may_fail(void **state)
{
	static const char *const machine[] = {"intel-2s", "laptop", "cray", "amd-server"};
	/* What counts when the first source cannot be listed: amd_energy counts from another start. */
	static const int64_t whole[] = {4000000000, 1000000000, 123456789 * INT64_C(1000000), 180000000001};
	static const int error[] = {-EIO, -EACCES, -ENODEV};
	static struct lab lab;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machine) * ARRAY_SIZE(error); i++) {
		for (unsigned n = 1; n <= 120; n++) {
			struct env *env = env_failing(film_of("machines", machine[i / ARRAY_SIZE(error)]), n,
				error[i % ARRAY_SIZE(error)]);

			lab_init(&lab, env, "energy");
			if (lab.collector->open(lab.state, &lab.ctx) == 0)
				for (int tick = 0; tick < 3; tick++)
					assert_int_equal(lab_sample(&lab), 0);
			if (node_sum(&lab, "energy.used") > MAX(whole[i / ARRAY_SIZE(error)], 3000000000))
				fail_msg("%s: too much at call %u", machine[i / ARRAY_SIZE(error)], n);
			close_machine(&lab);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packages_and_memory_of_a_server),
		cmocka_unit_test(test_amd),
		cmocka_unit_test(test_a_laptop),
		cmocka_unit_test(test_power_meters_of_a_module),
		cmocka_unit_test(test_a_cray_node),
		cmocka_unit_test(test_counters_pass_their_range),
		cmocka_unit_test(test_counters_start_anew),
		cmocka_unit_test(test_a_range_that_is_wrong),
		cmocka_unit_test(test_meters_that_answer_late),
		cmocka_unit_test(test_what_only_root_may_read),
		cmocka_unit_test(test_psys_where_the_packages_are_denied),
		cmocka_unit_test(test_dies_and_odd_zones),
		cmocka_unit_test(test_zones_of_one_name),
		cmocka_unit_test(test_numbers_that_are_none),
		cmocka_unit_test(test_meters_that_go_and_come),
		cmocka_unit_test(test_a_battery_in_amperes),
		cmocka_unit_test(test_sensors_of_unknown_meaning),
		cmocka_unit_test(test_a_counter_of_the_whole_system),
		cmocka_unit_test(test_a_container_hides_the_counters),
		cmocka_unit_test(test_fast_and_slow),
		cmocka_unit_test(test_what_is_not_recorded_is_not_opened),
		cmocka_unit_test(test_more_meters_than_fit),
		cmocka_unit_test(test_every_call_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
