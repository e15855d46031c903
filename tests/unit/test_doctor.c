/* What `tacho doctor` finds on machines that are not this one, and how it says so. */
#include "film_text.h"

#include "base/str.h"
#include "cmd/doctor.h"

#include <limits.h>

/* ---- permissions ---- */

static const struct permit *permit_of(struct permit *permits, const char *machine, enum permit_id id)
{
	struct env *env = film_of("machines", machine);

	permits_read(env, permits);
	env_free(env);
	return &permits[id];
}

static void test_mount_options(void **state)
{
	static const char text[] =
		"22 28 0:21 / /proc rw,nosuid shared:12 master:3 - proc proc rw,hidepid=1\n"
		"23 28 0:21 / /proc/sys rw - proc proc rw,hidepid=4\n"
		"30 28 0:44 / /proc rw - proc proc rw,gid=7,hidepid=invisible\n"
		"31 28 0:44 / /proc rw - tmpfs none rw,hidepid=0\n"
		"garbage\n\n1 2 3\n32 28 0:44 / /proc rw -";
	char out[64], value[16] = "untouched";

	(void)state;
	assert_true(mount_options(text, "/proc", "proc", out, sizeof(out)));
	assert_string_equal(out, "rw,gid=7,hidepid=invisible");
	assert_true(option_value(out, "hidepid", value, sizeof(value)));
	assert_string_equal(value, "invisible");
	assert_true(option_value(out, "gid", value, sizeof(value)));
	assert_string_equal(value, "7");
	assert_false(option_value(out, "pid", value, sizeof(value)));
	assert_false(option_value("rw", "rw", value, sizeof(value)));
	assert_string_equal(value, "7");
	assert_false(mount_options("", "/proc", "proc", out, sizeof(out)));
	assert_false(mount_options(text, "/", "proc", out, sizeof(out)));
	assert_true(mount_options(text, "/proc", "proc", out, 4));
	assert_string_equal(out, "rw,");
}

static void test_hidden_processes(void **state)
{
	struct permit permits[NR_PERMITS];
	const struct permit *p = permit_of(permits, "user-hidepid", PERMIT_PROC);

	(void)state;
	assert_int_equal(p->state, FORBIDDEN);
	assert_non_null(strstr(p->reason, "hidepid=invisible"));
	assert_string_equal(p->remedy, "sudo usermod -aG \"$(getent group 4711 | cut -d: -f1)\" \"$USER\"");
	assert_int_equal(permits[PERMIT_OWN].state, AVAILABLE);
	assert_non_null(strstr(permits[PERMIT_OWN].detail, "kernel.yama.ptrace_scope is"));
	assert_int_equal(permits[PERMIT_OTHERS].state, AVAILABLE); /* there is nobody to be read */
	assert_int_equal(permits[PERMIT_NVIDIA].state, ABSENT);
	assert_int_equal(permits[PERMIT_AMD].state, ABSENT);
	assert_int_equal(permits[PERMIT_INTEL].state, ABSENT);
}

static void test_processes_of_others_and_gpus(void **state)
{
	struct permit permits[NR_PERMITS];
	const struct permit *others = permit_of(permits, "user-gpus", PERMIT_OTHERS);

	(void)state;
	assert_int_equal(permits[PERMIT_PROC].state, AVAILABLE);
	assert_int_equal(others->state, FORBIDDEN);
	assert_string_not_equal(others->remedy, "");
	assert_int_equal(permits[PERMIT_OWN].state, AVAILABLE);
	assert_int_equal(permits[PERMIT_NVIDIA].state, ABSENT);
	assert_non_null(strstr(permits[PERMIT_NVIDIA].reason, "libnvidia-ml.so.1"));
	assert_non_null(strstr(permits[PERMIT_NVIDIA].remedy, "libnvidia-ml1"));
	assert_int_equal(permits[PERMIT_AMD].state, AVAILABLE);
	for (unsigned i = 0; i < NR_PERMITS; i++) {
		assert_non_null(permits[i].source);
		assert_true((permits[i].state == AVAILABLE) == (*permits[i].reason == 0));
		assert_true((permits[i].state == AVAILABLE) == (*permits[i].detail != 0));
	}
}

/* Ourselves are 9 and can always read ourselves; 7 is an agent that hides from its own user. */
static void test_own_processes_that_are_refused(void **state)
{
#define OF_USER(pid)                                                                         \
	"file proc/" pid "/status\n|Name:\tx\n|Uid:\t1000\t1000\t1000\t1000\nfile proc/" pid \
	"/io\n|rchar: 1\n"
#define REFUSED "error proc/7/io open EACCES\n"
#define SCOPE(n) "file proc/sys/kernel/yama/ptrace_scope\n|" n "\n"
	static const char us[] = "link proc/self 9\n" OF_USER("self") OF_USER("9");
	static const struct {
		const char *text;
		enum availability state;
		const char *reason, *remedy;
	} row[] = {
		{"", AVAILABLE, "no other process", ""},
		{OF_USER("7") REFUSED OF_USER("8"), AVAILABLE, "can be read in full", ""},
		{OF_USER("5") OF_USER("7") REFUSED, AVAILABLE, "can be read in full", ""},
		{OF_USER("7") REFUSED, FORBIDDEN, "security module", ""},
		{OF_USER("7") REFUSED SCOPE("1"), FORBIDDEN, "ptrace_scope is 1", ""},
		{OF_USER("7") REFUSED SCOPE("2"), FORBIDDEN, "ptrace_scope is 2",
			"sudo sysctl kernel.yama.ptrace_scope=1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct permit permits[NR_PERMITS], *own = &permits[PERMIT_OWN];
		char text[2048];
		struct env *env;

		snprintf(text, sizeof(text), "%s%s", us, row[i].text);
		env = film_text(text);
		permits_read(env, permits);
		env_free(env);
		assert_int_equal(own->state, row[i].state);
		assert_non_null(strstr(own->state == AVAILABLE ? own->detail : own->reason, row[i].reason));
		assert_string_equal(own->remedy, row[i].remedy);
	}
}

static void test_a_machine_without_proc(void **state)
{
	struct permit permits[NR_PERMITS];

	(void)state;
	assert_int_equal(permit_of(permits, "laptop", PERMIT_PROC)->state, ABSENT);
	assert_non_null(strstr(permits[PERMIT_PROC].remedy, "mount -t proc"));
}

/* ---- GPUs ---- */

/* clang-format off */
#define CARD(slot, class, vendor) \
	"file sys/bus/pci/devices/0000:" slot ":00.0/class\n|0x" class "0000\nfile sys/bus/pci/devices/0000:" slot \
	":00.0/vendor\n|0x" vendor "\n"
#define DRIVER(slot, name) "link sys/bus/pci/devices/0000:" slot ":00.0/driver ../../../../bus/pci/drivers/" name "\n"
#define NVIDIA_CARD CARD("01", "03", "10de")
#define NVIDIA_DRIVER NVIDIA_CARD DRIVER("01", "nvidia") "file proc/driver/nvidia/version\n|NVRM 535\n"
#define NVIDIA_DEVICE NVIDIA_DRIVER "file dev/nvidiactl\n|\n"
#define LIBRARIES "file etc/ld.so.cache\n:libnvidia-ml.so.1\\x00librocm_smi64.so.7\\x00\n"
#define AMD_CARD CARD("02", "12", "1002")
#define AMD_DRIVER AMD_CARD DRIVER("02", "amdgpu")
#define INTEL_CARD CARD("00", "03", "8086")

static const struct {
	const char *text;
	enum permit_id which;
	enum availability state;
	const char *words, *remedy;
} gpu_case[] = {
	{"", PERMIT_NVIDIA, ABSENT, "there is no NVIDIA GPU", ""},
	{"", PERMIT_AMD, ABSENT, "there is no AMD GPU", ""},
	{"", PERMIT_INTEL, ABSENT, "there is no Intel GPU", ""},
	{CARD("01", "02", "10de"), PERMIT_NVIDIA, ABSENT, "there is no NVIDIA GPU", ""}, /* a network card */
	{NVIDIA_CARD, PERMIT_NVIDIA, ABSENT, "its driver is not loaded", "sudo modprobe nvidia"},
	{NVIDIA_CARD LIBRARIES, PERMIT_NVIDIA, ABSENT, "its driver is not loaded", "sudo modprobe nvidia"},
	{NVIDIA_CARD DRIVER("01", "nouveau"), PERMIT_NVIDIA, ABSENT, "nouveau, which does not report", "apt install nvidia-driver"},
	{NVIDIA_CARD DRIVER("01", "vfio-pci"), PERMIT_NVIDIA, ABSENT, "assigned to a virtual machine", ""},
	{NVIDIA_DRIVER LIBRARIES, PERMIT_NVIDIA, ABSENT, "/dev/nvidiactl does not exist", "nvidia-modprobe"},
	{NVIDIA_DRIVER LIBRARIES "file .dockerenv\n", PERMIT_NVIDIA, FORBIDDEN, "not available in this container", "--gpus all"},
	{NVIDIA_DRIVER LIBRARIES "variable container=podman\n", PERMIT_NVIDIA, FORBIDDEN, "not available in this container", "docker run"},
	{NVIDIA_DEVICE LIBRARIES "error dev/nvidiactl open EACCES\n", PERMIT_NVIDIA, FORBIDDEN, "may not be opened", "chmod"},
	{NVIDIA_DEVICE, PERMIT_NVIDIA, ABSENT, "libnvidia-ml.so.1", "apt install libnvidia-ml1"},
	{NVIDIA_DEVICE LIBRARIES, PERMIT_NVIDIA, AVAILABLE, "NVML are there", ""},
	{NVIDIA_DEVICE "variable LD_LIBRARY_PATH=/none:/opt/nv\nfile opt/nv/libnvidia-ml.so.1\n|x\n", PERMIT_NVIDIA,
		AVAILABLE, "NVML are there", ""},
	{AMD_CARD, PERMIT_AMD, ABSENT, "its driver is not loaded", "sudo modprobe amdgpu"},
	{AMD_CARD DRIVER("02", "radeon"), PERMIT_AMD, ABSENT, "radeon, which does not report", ""},
	{AMD_DRIVER, PERMIT_AMD, AVAILABLE, "driver are there", ""},
	{AMD_DRIVER "file dev/kfd\nerror dev/kfd open EACCES\n", PERMIT_AMD, FORBIDDEN, "/dev/kfd", "usermod -aG render,video"},
	{INTEL_CARD, PERMIT_INTEL, ABSENT, "its driver is not loaded", "modprobe -a i915 xe"},
	{INTEL_CARD DRIVER("00", "i915"), PERMIT_INTEL, AVAILABLE, "driver are there", ""},
};
/* clang-format on */

static void test_what_stands_before_a_gpu(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(gpu_case); i++) {
		struct permit permits[NR_PERMITS], *p = &permits[gpu_case[i].which];
		struct env *env = film_text(gpu_case[i].text);
		const char *words;

		permits_read(env, permits);
		env_free(env);
		words = p->state == AVAILABLE ? p->detail : p->reason;
		if (p->state != gpu_case[i].state || !strstr(words, gpu_case[i].words) ||
			!strstr(p->remedy, gpu_case[i].remedy) || !*gpu_case[i].remedy != !*p->remedy)
			fail_msg("%zu: %d, %s, %s", i, p->state, words, p->remedy);
	}
}

/* What answered is believed; what did not, with everything in place, has failed with the recording's reason.
 */
static void test_gpus_that_were_found(void **state)
{
	static const struct self_test_gpu gpu[] = {{"nvidia", "NVIDIA A100"}, {"amd", "MI210"},
		{"nvidia", "Tesla T4"}, {"nvidia", "NVIDIA A100"}, {"amd", ""}};
	struct permit nvidia = {.metric = "nvidia"}, amd = {.metric = "amd"}, intel = {.metric = "intel"};
	struct self_test *h = calloc(1, sizeof(*h));
	struct collector fake = {.domain = DOMAIN_GPU, .nr_metrics = 2};

	(void)state;
	h->works = true;
	h->nr = 1;
	h->source[0].collector = &fake;
	h->source[0].metric[1] =
		(struct self_test_metric){FAILED, (char *)"the driver is mad", (char *)"calm it"};
	memcpy(h->gpu, gpu, sizeof(gpu));
	h->nr_gpus = ARRAY_SIZE(gpu);
	permit_refuse(&nvidia, ABSENT, "no file looks like it", "make one");
	permit_refuse(&amd, FORBIDDEN, "others may not", "let them");
	permit_grant(&intel, "all is there");
	doctor_gpu(h, &nvidia);
	doctor_gpu(h, &amd);
	doctor_gpu(h, &intel);
	assert_int_equal(nvidia.state, AVAILABLE);
	assert_string_equal(nvidia.detail, "2 x NVIDIA A100, Tesla T4");
	assert_string_equal(nvidia.reason, "");
	assert_string_equal(nvidia.remedy, "");
	assert_int_equal(amd.state, FORBIDDEN); /* that stays true, though values come */
	assert_string_equal(amd.remedy, "let them");
	assert_int_equal(intel.state, FAILED);
	assert_string_equal(intel.reason, "the driver is mad");
	assert_string_equal(intel.remedy, "calm it");
	permit_grant(&amd, "");
	doctor_gpu(h, &amd);
	assert_string_equal(amd.detail, "MI210, amd");
	h->nr_gpus = 0;
	permit_refuse(&nvidia, ABSENT, "there is none", NULL);
	doctor_gpu(h, &nvidia);
	assert_int_equal(nvidia.state, ABSENT);
	assert_string_equal(nvidia.reason, "there is none");
	free(h);
}

/* ---- counters ---- */

/* clang-format off */
#define PARANOID(n) "file proc/sys/kernel/perf_event_paranoid\n|" n "\n"
#define TASKS "counter 1 * * * 1 1 1\n"
#define CYCLES "counter 0 0 * * 1 1 1\n"
#define XEON "file proc/cpuinfo\n|processor\t: 0\n|vendor_id\t: GenuineIntel\n|cpu family\t: 6\n|model\t\t: 85\n|stepping\t: 4\n"

static const struct {
	const char *text, *states; /* of tasks, kernel, hardware, packages: o(k), a(bsent), d(enied) */
	enum counter_finding which;
	const char *remedy;
} counter_case[] = {
	{PARANOID("-1") TASKS CYCLES, "oooo", COUNTERS_PACKAGES, ""},
	{PARANOID("1") TASKS CYCLES "counter_error 1 * -1 * EACCES\n", "oood", COUNTERS_PACKAGES, "sudo sysctl kernel.perf_event_paranoid=0"},
	{PARANOID("2") TASKS CYCLES "counter_error 1:uk * * * EACCES\n", "odod", COUNTERS_KERNEL, "sudo sysctl kernel.perf_event_paranoid=0"}, /* one setting for both */
	{PARANOID("2") TASKS "counter_error 1:uk * * * EACCES\n", "odaa", COUNTERS_KERNEL, "sudo sysctl kernel.perf_event_paranoid=1"},
	{PARANOID("3") "counter_error * * * * EACCES\n", "dddd", COUNTERS_TASKS, "kernel.perf_event_paranoid=2"},
	{PARANOID("-1") "counter_error * * * * EPERM\n", "dddd", COUNTERS_TASKS, "PERFMON"},
	{PARANOID("2") TASKS, "ooao", COUNTERS_HARDWARE, ""}, /* a virtual machine */
	{PARANOID("2") TASKS "counter_error 1 * -1 * EACCES\n", "ooaa", COUNTERS_PACKAGES, ""}, /* nothing to permit */
	{"counter_error * * * * ENOSYS\n", "aaaa", COUNTERS_TASKS, ""},
};
/* clang-format on */

static void test_counters(void **state)
{
	static const char letter[NR_AVAILABILITY] = {
		[AVAILABLE] = 'o', [ABSENT] = 'a', [FORBIDDEN] = 'd', [FAILED] = 'f'};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counter_case); i++) {
		struct permit p[NR_COUNTER_FINDINGS];
		struct env *env = film_text(counter_case[i].text);

		doctor_counters(env, p);
		env_free(env);
		for (unsigned k = 0; k < NR_COUNTER_FINDINGS; k++) {
			assert_true((p[k].state == AVAILABLE) == (*p[k].reason == 0));
			if (k <= COUNTERS_PACKAGES && letter[p[k].state] != counter_case[i].states[k])
				fail_msg(
					"%zu: %s is %c: %s", i, p[k].metric, letter[p[k].state], p[k].reason);
		}
		if (!strstr(p[counter_case[i].which].remedy, counter_case[i].remedy))
			fail_msg("%zu: %s", i, p[counter_case[i].which].remedy);
	}
}

static void test_events_of_this_processor(void **state)
{
	struct permit p[NR_COUNTER_FINDINGS];
	struct env *env = film_text(XEON);

	(void)state;
	doctor_counters(env, p);
	env_free(env);
	assert_int_equal(p[COUNTERS_EVENTS].state, AVAILABLE);
	assert_non_null(strstr(p[COUNTERS_EVENTS].detail, "skylake-x (built in)"));
	assert_int_equal(p[COUNTERS_NAMES].state, ABSENT); /* a film has no libraries */
	assert_string_equal(p[COUNTERS_NAMES].remedy, "sudo apt install libpfm4");
	env = film_text("file proc/cpuinfo\n|vendor_id\t: SomebodyElse\n|cpu family\t: 250\n|model\t\t: 1\n");
	doctor_counters(env, p);
	env_free(env);
	assert_int_equal(p[COUNTERS_EVENTS].state, ABSENT);
	assert_string_not_equal(p[COUNTERS_EVENTS].reason, "");
}

/* ---- the look ---- */

static struct self_test *look_at_machine(const char *machine)
{
	struct env *env = film_of("machines", machine);
	struct self_test *h = NULL;

	assert_int_equal(self_test_look(env, &h), 0);
	env_free(env);
	return h;
}

static const struct self_test_metric *metric_of(const struct self_test *h, const char *name)
{
	for (size_t s = 0; s < h->nr; s++)
		for (size_t m = 0; m < h->source[s].collector->nr_metrics; m++)
			if (!strcmp(h->source[s].collector->metric[m].name, name))
				return &h->source[s].metric[m];
	fail_msg("there is no metric %s", name);
	return NULL;
}

static void test_look_tells_what_had_values(void **state)
{
	struct self_test *h = look_at_machine("user-hidepid");
	const struct self_test_metric *m;

	(void)state;
	assert_true(h->works);
	assert_string_equal(h->trouble, "");
	assert_int_equal(metric_of(h, "proc.cpu.user")->state, AVAILABLE);
	assert_int_equal(metric_of(h, "mem.total")->state, AVAILABLE);
	m = metric_of(h, "mem.slab"); /* a file that is there, without the line */
	assert_int_equal(m->state, ABSENT);
	assert_non_null(m->reason);
	m = metric_of(h, "energy.used");
	assert_int_equal(m->state, FORBIDDEN);
	assert_non_null(m->reason);
	assert_non_null(strstr(m->remedy, "chmod a+r /sys/class/powercap"));
	assert_int_equal(metric_of(h, "ib.rx.bytes")->state, ABSENT);
	/* Whatever is missing has a reason. */
	for (size_t s = 0; s < h->nr; s++)
		for (size_t i = 0; i < h->source[s].collector->nr_metrics; i++) {
			assert_true(h->source[s].metric[i].state < NR_AVAILABILITY);
			assert_true(
				h->source[s].metric[i].state == AVAILABLE || h->source[s].metric[i].reason);
		}
	self_test_free(h);
}

static void test_look_at_nothing(void **state)
{
	struct self_test *h = look_at_machine("laptop"); /* its sensors only */

	(void)state;
	assert_false(h->works);
	assert_string_not_equal(h->trouble, "");
	assert_int_equal(metric_of(h, "proc.cpu.user")->state, ABSENT);
	self_test_free(h);
}

/* GPUs of two makers answer at once on a film; a slice or part would not be named. */
static void test_look_finds_gpus(void **state)
{
	struct self_test *h = look_at_machine("gpu-mixed");
	struct permit amd = {.metric = "amd"}, intel = {.metric = "intel"}, nvidia = {.metric = "nvidia"};

	(void)state;
	assert_true(h->works);
	assert_int_equal(metric_of(h, "gpu.clock.graphics")->state, AVAILABLE);
	permit_refuse(&nvidia, ABSENT, "none", NULL);
	doctor_gpu(h, &amd);
	doctor_gpu(h, &intel);
	doctor_gpu(h, &nvidia);
	assert_int_equal(amd.state, AVAILABLE);
	assert_non_null(strstr(amd.detail, "AMD"));
	assert_int_equal(intel.state, AVAILABLE);
	assert_non_null(strstr(intel.detail, "Intel"));
	assert_int_equal(nvidia.state, ABSENT);
	self_test_free(h);
}

/* Whichever call fails: an answer, no leak, and never a metric without a reason. */
static void test_look_survives_failures(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth < 150; nth++) {
		struct env *env =
			env_failing(film_of("machines", "user-hidepid"), nth, nth % 2 ? -EIO : -EACCES);
		struct permit permits[NR_PERMITS];
		struct self_test *h = NULL;

		assert_int_equal(self_test_look(env, &h), 0);
		for (size_t s = 0; s < h->nr; s++)
			for (size_t i = 0; i < h->source[s].collector->nr_metrics; i++)
				assert_true(h->source[s].metric[i].state == AVAILABLE ||
					h->source[s].metric[i].reason);
		self_test_free(h);
		env_free(env);
		env = env_failing(film_of("machines", "user-gpus"), nth, -EIO);
		permits_read(env, permits);
		env_free(env);
	}
}

/* ---- figures ---- */

static void test_median(void **state)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};

	(void)state;
	assert_true(median(odd, 3) == 2);
	assert_true(median(even, 4) == 2.5);
	assert_true(even[3] == 4); /* sorted: the worst is the last */
	assert_true(median(one, 1) == 7);
	assert_true(median(one, 0) == 0);
}

static void test_budget(void **state)
{
	(void)state;
	assert_int_equal(budget_stretch(0, 0.01), 1);
	assert_int_equal(budget_stretch(0.01, 0.01), 1);
	assert_int_equal(budget_stretch(0.014, 0.01), 1); /* half as much again is left to slower readings */
	assert_int_equal(budget_stretch(0.016, 0.01), 2);
	assert_int_equal(budget_stretch(0.1, 0.01), 8);
	assert_int_equal(budget_stretch(1000, 0.01), 64);
}

/* ---- the page ---- */

static void make_doctor(struct doctor *d)
{
	struct permit permits[NR_PERMITS];

	*d = (struct doctor){
		.self_test = look_at_machine("user-hidepid"),
		.clock = {.source = "tsc",
			.step_s = 1e-9,
			.read_s = 2e-8,
			.late_median_s = 5e-5,
			.late_worst_s = 1e-3,
			.wakes = 100},
		.cost = {{.hz = 1,
				 .ticks = 2,
				 .processes = 10083,
				 .tick_s = 0.0332,
				 .share = 0.0332,
				 .by = {3, 0, 1}},
			{.hz = 10,
				.ticks = 8,
				.processes = 10083,
				.tick_s = 0.0005,
				.share = 0.005,
				.by = {3, 0, 1}},
			{.hz = 100}},
		.host = "host",
		.system = "Linux 6.1",
		.cpus = 8,
	};
	permit_of(permits, "user-gpus", 0);
	for (unsigned i = 0; i < NR_PERMITS; i++)
		d->finding[d->nr_findings++].permit = permits[i];
}

static void test_page(void **state)
{
	struct doctor d;
	struct buf out;

	(void)state;
	make_doctor(&d);
	buf_init(&out, 1 << 20);
	for (unsigned width = 60; width <= 120; width += 10)
		for (int verbose = 0; verbose < 2; verbose++) {
			struct summary_style style = {.width = width};

			buf_reset(&out);
			doctor_text(&d, &style, verbose, &out);
			assert_int_equal(out.err, 0);
			char *verdict = strstr((char *)out.data, "\nThis machine");

			assert_non_null(verdict); /* below it are commands, which stay whole */
			for (char *line = (char *)out.data, *end; (end = strchr(line, '\n'));
				line = end + 1) {
				if (line <= verdict + 1 && end - line > (ptrdiff_t)width)
					fail_msg("wider than %u: %.*s", width, (int)(end - line), line);
				assert_true(end == line || end[-1] != ' ');
			}
			for (size_t i = 0; i < out.len; i++)
				assert_true(
					out.data[i] == '\n' || (out.data[i] >= ' ' && out.data[i] < 0x7f));
		}
	buf_reset(&out);
	doctor_text(&d, &(struct summary_style){.width = 80}, false, &out);
	assert_non_null(strstr((char *)out.data, "all 10,083 processes"));
	assert_non_null(strstr((char *)out.data, "backs off to every 4 s"));
	assert_non_null(strstr((char *)out.data, "0.5 % of a core: fits"));
	assert_null(strstr((char *)out.data, "100 Hz"));
	assert_non_null(strstr((char *)out.data, "most of it: process 75 %, limits 25 %"));
	assert_non_null(strstr((char *)out.data, "\n      sudo chmod a+r /sys/class/powercap/*/energy_uj\n"));
	assert_non_null(strstr((char *)out.data, "This machine can be measured. "));
	buf_release(&out);
	self_test_free(d.self_test);
}

static void test_page_in_color(void **state)
{
	struct doctor d;
	struct buf out;

	(void)state;
	make_doctor(&d);
	d.self_test->works = false;
	snprintf(d.self_test->trouble, sizeof(d.self_test->trouble), "so it is");
	buf_init(&out, 1 << 20);
	doctor_text(&d, &(struct summary_style){.width = 80, .color = true, .utf8 = true}, false, &out);
	assert_non_null(strstr((char *)out.data, "\033[32mok\033[0m"));
	assert_non_null(strstr((char *)out.data, "This machine cannot be measured: so it is."));
	buf_release(&out);
	self_test_free(d.self_test);
}

/* What gives something to others, or takes it from them, says so; what harms nobody does not. */
static void test_risks_of_remedies(void **state)
{
	static const char *const risky[] = {"sudo setcap cap_net_admin+p /usr/bin/tacho",
		("echo \"$USER - nice -20\" | sudo tee -a /etc/security/limits.d/tacho.conf # then log in "
		 "again"),
		"sudo sysctl kernel.perf_event_paranoid=0", "sudo sysctl kernel.perf_event_paranoid=1",
		"sudo chmod a+r /sys/class/powercap/*/energy_uj", "sudo mount -o remount,hidepid=0 /proc",
		"sudo chmod a+rw /dev/nvidiactl /dev/nvidia[0-9]*", "sudo sysctl kernel.nmi_watchdog=0",
		"sudo usermod -aG render,video \"$USER\"", "sudo tacho attach ..."};
	static const char *const harmless[] = {"sudo apt install libpfm4", "sudo modprobe nvidia",
		"tacho run -o \"$HOME/{name}.tacho\" ...", "ulimit -n 65536", ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(risky); i++)
		if (!remedy_risk(risky[i]))
			fail_msg("%s: no risk is named", risky[i]);
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		assert_null(remedy_risk(harmless[i]));
	assert_null(remedy_risk(NULL));
	assert_non_null(strstr(remedy_risk("sudo setcap cap_net_admin,cap_perfmon+p x"), "count"));
	assert_null(strstr(remedy_risk("sudo setcap cap_net_admin+p x"), "count"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_risks_of_remedies),
		cmocka_unit_test(test_mount_options),
		cmocka_unit_test(test_hidden_processes),
		cmocka_unit_test(test_processes_of_others_and_gpus),
		cmocka_unit_test(test_own_processes_that_are_refused),
		cmocka_unit_test(test_a_machine_without_proc),
		cmocka_unit_test(test_what_stands_before_a_gpu),
		cmocka_unit_test(test_gpus_that_were_found),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_events_of_this_processor),
		cmocka_unit_test(test_look_tells_what_had_values),
		cmocka_unit_test(test_look_at_nothing),
		cmocka_unit_test(test_look_finds_gpus),
		cmocka_unit_test(test_look_survives_failures),
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_in_color),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
