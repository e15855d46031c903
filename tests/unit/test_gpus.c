/* Which GPUs are the job's, by everything that may say so: one line a case. */
#include "film_text.h"

#include "base/text.h"
#include "node/gpus.h"

/* clang-format off */
#define NVIDIA(n, slot, id) {"nvidia", n, n, "GPU-" id "-d72c-4106-c12f-20bd9faed9f6", "0000:" slot ":00.0"}
#define AMD(n, slot, id) {"amd", n, n + 1, id, "0000:" slot ":00.0"}

/* The GPUs of a node: four of NVIDIA, a slice of the first and one of the second, two of AMD, two of Intel. */
static const struct gpu_identity gpu[] = {
	NVIDIA(0, "07", "8932f937"),
	NVIDIA(1, "0a", "8932f940"),
	NVIDIA(2, "47", "a1b2c3d4"),
	NVIDIA(3, "4e", "ffffffff"),
	{"nvidia", 0, 0, "MIG-5c6b8a24-1f3b-5b0f-9d3a-0123456789ab", "0000:07:00.0"},
	{"nvidia", 1, 1, "MIG-77777777-1f3b-5b0f-9d3a-0123456789ab", "0000:0a:00.0"},
	AMD(0, "c3", "8f3c0123456789ab"),
	AMD(1, "c6", "deadbeefdeadbeef"),
	{"intel", 0, 3, "", "0000:e1:00.0"},
	{"intel", 1, 4, NULL, "0000:e4:00.0"},
};
#define NOBODYS "----------"
/* clang-format on */

/* 'y' of the job, 'n' not, '-' nobody says. */
static char letter(struct gpu_claims *c, const struct gpu_identity *g, const char **by)
{
	static const char letters[] = {[GPU_UNCLAIMED] = '-', [GPU_OF_JOB] = 'y', [GPU_NOT_OF_JOB] = 'n'};
	enum gpu_claim claim = gpu_claims_ask(c, g, by);

	assert_non_null(*by);
	assert_true((claim == GPU_UNCLAIMED) == (**by == 0));
	for (const char *p = *by; *p; p++)
		assert_true(*p >= ' ' && *p < 0x7f);
	return letters[claim];
}

static void ask_all(struct env *env, pid_t root, char ret[static ARRAY_SIZE(gpu) + 1], char by[static 256])
{
	struct gpu_claims *c = gpu_claims_read(env, root);

	assert_non_null(c);
	by[0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(gpu); i++) {
		const char *words;

		ret[i] = letter(c, &gpu[i], &words);
		if (*words)
			snprintf(by, 256, "%s", words);
	}
	ret[ARRAY_SIZE(gpu)] = 0;
	gpu_claims_free(c);
	env_free(env);
}

/* ---- variables ---- */

/* clang-format off */
#define BUS                                                                                                   \
	"file proc/driver/nvidia/gpus/0000:07:00.0/information\nfile proc/driver/nvidia/gpus/0000:4e:00.0/information\n" \
	"file proc/driver/nvidia/gpus/0000:47:00.0/information\nfile proc/driver/nvidia/gpus/0000:0a:00.0/information\n"

static const struct {
	const char *environment; /* blanks part variables */
	const char *want;
	const char *by; /* in the words of the last that is claimed */
} row[] = {
	{"", NOBODYS, ""},
	{"PATH=/bin HOME=/root", NOBODYS, ""},
	/* CUDA */
	{"CUDA_VISIBLE_DEVICES=0", "ynnnyn" "--" "--", "CUDA_VISIBLE_DEVICES=0"},
	{"CUDA_VISIBLE_DEVICES=2,1", "nyynny" "--" "--", "CUDA_VISIBLE_DEVICES=2,1"},
	{"CUDA_VISIBLE_DEVICES=", "nnnnnn" "--" "--", "CUDA_VISIBLE_DEVICES="},
	{"CUDA_VISIBLE_DEVICES=-1", "nnnnnn" "--" "--", "=-1"},
	{"CUDA_VISIBLE_DEVICES=NoDevFiles", "nnnnnn" "--" "--", "NoDevFiles"},
	{"CUDA_VISIBLE_DEVICES=0,2,-1,1", "ynynyn" "--" "--", "0,2,-1,1"},
	{"CUDA_VISIBLE_DEVICES=0,9,1", "ynnnyn" "--" "--", ""}, /* there is no 9 of NVIDIA */
	{"CUDA_VISIBLE_DEVICES=0,,1", "ynnnyn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=1x,0", "nnnnnn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=0-3", "nnnnnn" "--" "--", ""}, /* CUDA knows no ranges */
	{"CUDA_VISIBLE_DEVICES=0x1", "nnnnnn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=99999999999999999999999", "nnnnnn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "ynnnnn" "--" "--", "GPU-8932f937"},
	{"CUDA_VISIBLE_DEVICES=GPU-8932f94", "nynnnn" "--" "--", "GPU-8932f94"},
	{"CUDA_VISIBLE_DEVICES=GPU-A1B2,GPU-ffff", "nnyynn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=GPU-", "nnnnnn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=GPU-8932f937-d72c-4106-c12f-20bd9faed9f6-and-more", "nnnnnn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=MIG-5c6b8a24-1f3b-5b0f-9d3a-0123456789ab", "nnnnyn" "--" "--", "MIG-5c6b"},
	{"CUDA_VISIBLE_DEVICES=MIG-GPU-8932f940-d72c-4106-c12f-20bd9faed9f6/1/0", "nynnnn" "--" "--", ""},
	{"CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_ORDER=FASTEST_FIRST", "ynnnyn" "--" "--", ""},
	/* SLURM: the node's own numbers decide, whatever CUDA counts within the group */
	{"SLURM_JOB_GPUS=2,3 CUDA_VISIBLE_DEVICES=0,1", "nnyynn" "--" "--", "SLURM_JOB_GPUS=2,3"},
	{"SLURM_JOB_GPUS=0-3 SLURM_STEP_GPUS=1 CUDA_VISIBLE_DEVICES=0", "nynnny" "--" "--", "SLURM_STEP_GPUS=1"},
	{"SLURM_JOB_GPUS=0-1,3 CUDA_VISIBLE_DEVICES=0,1,2", "yynyyy" "--" "--", "0-1,3"},
	{"SLURM_JOB_GPUS=3-0 CUDA_VISIBLE_DEVICES=0", "ynnnyn" "--" "--", "CUDA_VISIBLE_DEVICES"},
	{"SLURM_JOB_GPUS= CUDA_VISIBLE_DEVICES=1", "nynnny" "--" "--", "CUDA_VISIBLE_DEVICES"},
	{"SLURM_JOB_GPUS=1 ROCR_VISIBLE_DEVICES=0", "------" "ny" "--", "SLURM_JOB_GPUS=1"},
	{"SLURM_JOB_GPUS=1 ZE_AFFINITY_MASK=0", "------" "--" "ny", "SLURM_JOB_GPUS=1"},
	{"SLURM_JOB_GPUS=1", "nynnny" "ny" "ny", "SLURM_JOB_GPUS=1"},
	{"SLURM_JOB_GPUS=GPU-ffffffff CUDA_VISIBLE_DEVICES=0", "nnnynn" "--" "--", ""},
	{"SLURM_JOB_GPUS=5 CUDA_VISIBLE_DEVICES=MIG-77777777-1f3b-5b0f-9d3a-0123456789ab", "nnnnny" "--" "--", "MIG-7"},
	/* OAR: numbers of device files */
	{"OAR_USER_GPUDEVICE=1,2 CUDA_VISIBLE_DEVICES=0,1", "nyynny" "--" "--", "OAR_USER_GPUDEVICE"},
	{"OAR_USER_GPUDEVICE=1 ROCR_VISIBLE_DEVICES=0", "------" "yn" "--", ""},
	/* Containers, which we are beside: a GPU that is not in the list may have another number here */
	{"NVIDIA_VISIBLE_DEVICES=all", "yyyyyy" "--" "--", "NVIDIA_VISIBLE_DEVICES=all"},
	{"NVIDIA_VISIBLE_DEVICES=none", "nnnnnn" "--" "--", "=none"},
	{"NVIDIA_VISIBLE_DEVICES=void", NOBODYS, ""},
	{"NVIDIA_VISIBLE_DEVICES=", NOBODYS, ""},
	{"NVIDIA_VISIBLE_DEVICES=2", "--y---" "--" "--", ""},
	{"NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices", NOBODYS, ""},
	{"NVIDIA_VISIBLE_DEVICES=all CUDA_VISIBLE_DEVICES=3", "nnnynn" "--" "--", "CUDA_VISIBLE_DEVICES=3"},
	/* AMD */
	{"ROCR_VISIBLE_DEVICES=1", "------" "ny" "--", "ROCR_VISIBLE_DEVICES=1"},
	{"ROCR_VISIBLE_DEVICES=0,GPU-DEADBEEFDEADBEEF", "------" "yy" "--", ""},
	{"ROCR_VISIBLE_DEVICES=", "------" "nn" "--", ""},
	{"ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=0", "------" "ny" "--",
		"HIP_VISIBLE_DEVICES=0 of ROCR_VISIBLE_DEVICES=1"},
	{"ROCR_VISIBLE_DEVICES=1,0 HIP_VISIBLE_DEVICES=1", "------" "yn" "--", ""},
	{"ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=1", "------" "nn" "--", ""},
	{"HIP_VISIBLE_DEVICES=1", "------" "ny" "--", "HIP_VISIBLE_DEVICES=1"},
	{"HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=0", "ynnnyn" "ny" "--", ""},
	{"GPU_DEVICE_ORDINAL=0", "------" "yn" "--", "GPU_DEVICE_ORDINAL=0"},
	/* Intel */
	{"ZE_AFFINITY_MASK=1", "------" "--" "ny", "tiles"},
	{"ZE_AFFINITY_MASK=0.1,1.0 ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE", "------" "--" "yy", "0.1,1.0"},
	{"ZE_AFFINITY_MASK=0,x", NOBODYS, ""},
	{"ZE_AFFINITY_MASK=", NOBODYS, ""},
};

/* clang-format on */

/* The same of a process and of ourselves. */
static struct env *film_with(const char *environment, bool of_process, const char *more)
{
	struct text rest = text_of(environment);
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_adds(&b, "link proc/self 9\n");
	buf_adds(&b, more);
	if (of_process)
		buf_adds(&b, "file proc/42/environ\n");
	while (rest.len > 0) {
		struct text variable = text_cut(&rest, ' ');

		buf_addf(&b, of_process ? ":%.*s\\x00\n" : "variable %.*s\n", (int)variable.len, variable.p);
	}
	return film_buf(&b);
}

static void test_variables(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		for (int of_process = 0; of_process < 2; of_process++) {
			char got[ARRAY_SIZE(gpu) + 1], by[256];

			ask_all(film_with(row[i].environment, of_process, BUS), of_process ? 42 : 0, got, by);
			if (strcmp(got, row[i].want) || !strstr(by, row[i].by))
				fail_msg("%s: %s, not %s, by %s", row[i].environment, got, row[i].want, by);
		}
}

/* On a node of AMD alone HIP heeds CUDA's variable. */
static void test_amd_alone(void **state)
{
	static const char *const alone[][2] = {
		{"CUDA_VISIBLE_DEVICES=1", "ny"},
		{"CUDA_VISIBLE_DEVICES=0 ROCR_VISIBLE_DEVICES=1", "ny"},
		{"CUDA_VISIBLE_DEVICES=0 HIP_VISIBLE_DEVICES=1", "ny"},
		{"SLURM_JOB_GPUS=1 CUDA_VISIBLE_DEVICES=0 ROCR_VISIBLE_DEVICES=0 ZE_AFFINITY_MASK=0", "ny"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(alone); i++) {
		char got[ARRAY_SIZE(gpu) + 1], by[256];

		ask_all(film_with(alone[i][0], true, ""), 42, got, by);
		if (strncmp(got + 6, alone[i][1], 2))
			fail_msg("%s: %s", alone[i][0], got);
	}
}

/* The words tell that CUDA may count otherwise than we do, where it may. */
static void test_order(void **state)
{
	static const struct {
		const char *environment;
		bool unsure;
	} order[] = {
		{"CUDA_VISIBLE_DEVICES=1", true},
		{"CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=FASTEST_FIRST", true},
		{"CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID", false},
		{"CUDA_VISIBLE_DEVICES=GPU-8932f937", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct env *env = film_with(order[i].environment, true, "");
		struct gpu_claims *c = gpu_claims_read(env, 42);
		const char *by;

		gpu_claims_ask(c, &gpu[0], &by);
		assert_int_equal(!!strstr(by, "fastest first"), order[i].unsure);
		gpu_claims_free(c);
		env_free(env);
	}
}

/* In a device group NVML counts what is left from 0; the place on the bus is what SLURM counts by. */
static void test_a_node_seen_in_part(void **state)
{
	static const struct gpu_identity left[] = {
		{"nvidia", 0, 7, "GPU-1", "00000000:47:00.0"},
		{"nvidia", 1, 7, "GPU-2", "00000000:4E:00.0"},
		{"nvidia", 2, 7, "GPU-3", NULL},
		{"nvidia", 3, 7, "GPU-4", "nonsense"},
	};
	struct env *env = film_with("SLURM_JOB_GPUS=2,3 CUDA_VISIBLE_DEVICES=0,1", true, BUS);
	struct gpu_claims *c = gpu_claims_read(env, 42);
	const char *by;

	(void)state;
	assert_int_equal(letter(c, &left[0], &by), 'y');
	assert_int_equal(letter(c, &left[1], &by), 'y');
	assert_int_equal(letter(c, &left[2], &by), 'y'); /* no place is known: the index */
	assert_int_equal(letter(c, &left[3], &by), 'y');
	gpu_claims_free(c);
	env_free(env);
}

/* Seen from outside, a container's numbers are those of the host, and CUDA's count within them. */
static void test_a_container_from_outside(void **state)
{
	static const char namespaces[] = BUS
		"link proc/9/ns/mnt mnt:[1]\nlink proc/self/ns/mnt mnt:[1]\nlink proc/42/ns/mnt mnt:[2]\n";
	static const char *const inside[][2] = {
		{"NVIDIA_VISIBLE_DEVICES=2", "nnynnn"},
		{"NVIDIA_VISIBLE_DEVICES=2,3 CUDA_VISIBLE_DEVICES=1", "nnnynn"},
		{"NVIDIA_VISIBLE_DEVICES=2 CUDA_VISIBLE_DEVICES=1", "nnnnnn"},
		{"NVIDIA_VISIBLE_DEVICES=GPU-8932f940 CUDA_VISIBLE_DEVICES=0", "nynnnn"},
		{"NVIDIA_VISIBLE_DEVICES=all CUDA_VISIBLE_DEVICES=1", "nynnny"},
		{"NVIDIA_VISIBLE_DEVICES=2 CUDA_VISIBLE_DEVICES=GPU-a1b2", "nnynnn"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		char got[ARRAY_SIZE(gpu) + 1], by[256];

		ask_all(film_with(inside[i][0], true, namespaces), 42, got, by);
		if (strncmp(got, inside[i][1], 6))
			fail_msg("%s: %s", inside[i][0], got);
	}
}

/* ---- the control group ---- */

/* clang-format off */
#define V1_MOUNT                                                                       \
	"file proc/self/mountinfo\n|40 30 0:40 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n" \
	"file proc/42/cgroup\n|7:devices:/slurm/uid_1/job_5\n|0::/job_5\n"
#define LIST V1_MOUNT "file sys/fs/cgroup/devices/slurm/uid_1/job_5/devices.list\n"
#define DRM                                                                                          \
	"link sys/class/drm/card1 ../../devices/pci0000:c0/0000:c3:00.0/drm/card1\n"                 \
	"link sys/class/drm/renderD128 ../../devices/pci0000:c0/0000:c3:00.0/drm/renderD128\n"       \
	"link sys/class/drm/card2 ../../devices/pci0000:c0/0000:c6:00.0/drm/card2\n"                 \
	"link sys/class/drm/renderD129 ../../devices/pci0000:c0/0000:c6:00.0/drm/renderD129\n"       \
	"link sys/class/drm/card0 ../../devices/pci0000:00/0000:02:00.0/drm/card0\n"                 \
	"link sys/class/drm/card1-DP-1 ../../devices/pci0000:c0/0000:c3:00.0/drm/card1/card1-DP-1\n" \
	"link sys/class/drm/cardx ../../devices/virtual/drm/cardx\nlink sys/class/drm/renderD130 elsewhere\n"

static const struct {
	const char *text, *environment, *want, *by;
} group[] = {
	{LIST "|a *:* rwm\n", "", NOBODYS, ""},
	{LIST "|c 195:1 rw\n|c 195:255 rw\n|c 1:* rwm\n", "", "nynnny" "--" "--",
		"devices.list of the control group /slurm/uid_1/job_5"},
	/* The kernel's word is the last */
	{LIST "|c 195:1 rw\n" BUS, "CUDA_VISIBLE_DEVICES=0 SLURM_JOB_GPUS=0", "nynnny" "--" "--", "devices.list"},
	{LIST "|c 195:* rwm\n", "", "yyyyyy" "--" "--", ""},
	{LIST "|c *:* rwm\n", "", "yyyyyy" "--" "--", ""},
	{LIST "|c 195:1 m\n|c 195:2 rw\n", "", "nnynnn" "--" "--", ""}, /* may be made, not opened */
	{LIST "|b 195:1 rwm\n|c 1:3 rwm\n", "", "nnnnnn" "--" "--", ""},
	{LIST "|c 195:1 rw\n|c 226:129 rw\n" DRM, "", "nynnny" "ny" "--", ""},
	{LIST "|c 226:1 rw\n" DRM, "ROCR_VISIBLE_DEVICES=1", "nnnnnn" "yn" "--", ""},
	{LIST "|c 195:0 rw\n" BUS, "CUDA_VISIBLE_DEVICES=MIG-5c6b8a24-1f3b-5b0f-9d3a-0123456789ab", "ynnnyn" "--" "--", ""},
	{LIST "|c 195:0 rw\n|c 195:1 rw\n" BUS, "CUDA_VISIBLE_DEVICES=MIG-5c6b8a24-1f3b-5b0f-9d3a-0123456789ab",
		"yynnyn" "--" "--", ""},
	/* Lists that are none */
	{LIST "", "", NOBODYS, ""},
	{LIST "|c\n|c 195\n|c :\n|c x:y rw\n|c 99999999999:1 rw\n|  \n|c 195:-1 rw\n", "", NOBODYS, ""},
	{LIST "|c 195:1\n", "", NOBODYS, ""},
	{V1_MOUNT BUS, "CUDA_VISIBLE_DEVICES=0", "ynnnyn" "--" "--", "CUDA_VISIBLE_DEVICES"},
	{LIST "|c 195:1 rw\nerror sys/fs/cgroup/devices/slurm/uid_1/job_5/devices.list open EACCES\n", "", NOBODYS, ""},
	/* v2 tells nothing */
	{"file proc/self/mountinfo\n|40 30 0:40 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	 "file proc/42/cgroup\n|0::/job_5\nfile sys/fs/cgroup/job_5/devices.list\n|c 195:1 rw\n",
		"", NOBODYS, ""},
};

/* clang-format on */

static void test_control_group(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(group); i++) {
		char got[ARRAY_SIZE(gpu) + 1], by[256];

		ask_all(film_with(group[i].environment, true, group[i].text), 42, got, by);
		if (strcmp(got, group[i].want) || !strstr(by, group[i].by))
			fail_msg("%zu (%s): %s, not %s, by %s", i, group[i].environment, got, group[i].want,
				by);
	}
}

static void test_a_device_without_number(void **state)
{
	static const struct gpu_identity odd[] = {
		{"nvidia", 1, -1, "GPU-1", "0000:0a:00.0"},
		{"amd", 0, -1, NULL, NULL},
		{"somebody", 0, 0, "GPU-1", "0000:0a:00.0"},
		{"", 0, 0, "", ""},
	};
	struct env *env = film_with("", true, LIST "|c 195:1 rw\n");
	struct gpu_claims *c = gpu_claims_read(env, 42);
	const char *by;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_int_equal(letter(c, &odd[i], &by), '-');
	gpu_claims_free(c);
	env_free(env);
}

/* ---- whose environment ---- */

static void test_an_environment_that_is_hidden(void **state)
{
#define HIDDEN "variable CUDA_VISIBLE_DEVICES=1\nfile proc/42/environ\nerror proc/42/environ open EACCES\n"
	static const char *const text[][2] = {
		{HIDDEN "file proc/42/stat\n|42 (a b) c) S 9 42 42\n", "nynnny"}, /* our child: it has ours */
		{HIDDEN "file proc/42/stat\n|42 (a) S 8 42 42\n", "------"},
		{HIDDEN "file proc/42/stat\n|42 (a)\n", "------"},
		{HIDDEN "file proc/42/stat\n|42\n", "------"}, {HIDDEN, "------"},
		/* a zombie of ours has none any more */
		{"variable CUDA_VISIBLE_DEVICES=1\nfile proc/42/environ\nfile proc/42/stat\n|42 (a) Z 9 42\n",
			"nynnny"},
		{"variable CUDA_VISIBLE_DEVICES=1\n", "------"}, /* gone */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		char got[ARRAY_SIZE(gpu) + 1], by[256];

		ask_all(film_with("", false, text[i][0]), 42, got, by);
		if (strncmp(got, text[i][1], 6))
			fail_msg("%zu: %s", i, got);
	}
}

/* ---- what anybody may write there ---- */

static void test_hostile_values(void **state)
{
	static const char *const name[] = {"CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS",
		"OAR_USER_GPUDEVICE", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
		"GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};
	static const char *const value[] = {"0-4294967295", "0-65535", ",,,,", "-", "--", "0-", "-0",
		"GPU-\\x01\\xff", "MIG-", "MIG-GPU-/", ".", "0.", ".0", "\\x1b[31m0", "0\\x0a1", "4294967296",
		"18446744073709551616"};
	struct buf b;

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(name); n++)
		for (size_t i = 0; i <= ARRAY_SIZE(value); i++) {
			char got[ARRAY_SIZE(gpu) + 1], by[256];

			buf_init(&b, 1 << 20);
			buf_addf(&b,
				BUS "file proc/42/environ\n:ROCR_VISIBLE_DEVICES=0,1\\x00\n:%s=", name[n]);
			for (unsigned k = 0; i == ARRAY_SIZE(value) && k < 5000; k++)
				buf_addf(&b, "%u,GPU-%u,", k, k);
			buf_addf(&b, "%s\\x00\n", i < ARRAY_SIZE(value) ? value[i] : "");
			ask_all(film_buf(&b), 42, got, by);
			assert_true(strlen(by) < 240);
		}
}

static void test_every_call_may_fail(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth < 40; nth++) {
		char got[ARRAY_SIZE(gpu) + 1], by[256];
		struct env *env = film_with("CUDA_VISIBLE_DEVICES=0", true, BUS DRM LIST "|c 195:1 rw\n");

		ask_all(env_failing(env, nth, nth % 2 ? -EIO : -EACCES), 42, got, by);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_amd_alone),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_a_node_seen_in_part),
		cmocka_unit_test(test_a_container_from_outside),
		cmocka_unit_test(test_control_group),
		cmocka_unit_test(test_a_device_without_number),
		cmocka_unit_test(test_an_environment_that_is_hidden),
		cmocka_unit_test(test_hostile_values),
		cmocka_unit_test(test_every_call_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
