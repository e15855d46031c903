/* File systems that a job writes to, and the clients of NFS and Lustre, on machines and films. */
#include "storage_lab.h"

#include "read/mountinfo.h"

/* Only what is said in the film is a member. */
static void with_members(struct lab *lab, pid_t root, const pid_t *member, size_t nr)
{
	lab->feed.root = root;
	memset(lab->member, 0, sizeof(lab->member));
	memcpy(lab->member, member, nr * sizeof(*member));
}

static void lab_open_job(struct lab *lab, struct env *env, const char *name, pid_t root)
{
	static const pid_t member[] = {100, 101, 102, 103};

	lab_init(lab, env, name);
	with_members(lab, root, member, ARRAY_SIZE(member));
	assert_int_equal(lab->collector->open(lab->state, &lab->ctx), 0);
	assert_int_equal(lab->table.nr_touched, 0);
}

static void test_mountinfo(void **state)
{
	static const char text[] =
		"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw\n"
		"37 35 98:1 / / rw - xfs /dev/sda rw\n"
		"x\n38\n39 1 98:2 / relative rw - xfs a rw\n40 1 98:3 / /no-dash rw xfs a rw\n"
		"41 1 0:9 / /net rw - fuse.sshfs a rw\n42 1 0:10 / /net/local rw - tmpfs a rw\n"
		"43 1 98:4 / /mnt\\0402/deep rw - xfs a rw\n"
		"45 1 98:6 / /over rw - xfs a rw\n46 1 98:7 / /over rw - xfs a rw\n44 1 98:5 / /cut rw - xfs";
	const char *p = text, *end = text + sizeof(text) - 1;
	char word[64];
	struct mount m;
	unsigned nr = 0;

	(void)state;
	assert_true(mountinfo_next(&p, end, &m));
	assert_int_equal(m.id, 36);
	assert_true(text_is(m.device, "98:0"));
	assert_true(text_is(m.root, "/mnt1"));
	assert_true(text_is(m.type, "ext3"));
	assert_true(text_is(m.source, "/dev/root"));
	assert_true(mount_unescape(m.point, word, sizeof(word)));
	assert_string_equal(word, "/mnt 2");
	assert_false(mount_unescape(m.point, word, 6));
	assert_false(mount_unescape((struct text){"/a\\000b", 7}, word, sizeof(word)));
	assert_true(mount_unescape((struct text){"/a\\04", 5}, word, sizeof(word)));
	assert_string_equal(word, "/a\\04");
	while (mountinfo_next(&p, end, &m))
		nr++;
	assert_int_equal(nr, 6);

	assert_true(mountinfo_find_path(text, end, "/mnt 2/x", &m));
	assert_int_equal(m.id, 36);
	assert_true(mountinfo_find_path(text, end, "/mnt 2/deep", &m));
	assert_int_equal(m.id, 43);
	assert_true(mountinfo_find_path(text, end, "/mnt 2/deeper", &m));
	assert_int_equal(m.id, 36);
	assert_true(mountinfo_find_path(text, end, "/mnt", &m));
	assert_int_equal(m.id, 37);
	assert_false(mountinfo_is_remote(text, end, &m));
	assert_true(mountinfo_find_path(text, end, "/over/x", &m));
	assert_int_equal(m.id, 46);
	assert_false(mountinfo_is_hidden(end, &m));
	assert_true(mountinfo_find_id(text, end, 45, &m));
	assert_true(mountinfo_is_hidden(end, &m));
	assert_true(mountinfo_find_id(text, end, 42, &m));
	assert_true(mountinfo_is_remote(text, end, &m));
	assert_true(mountinfo_find_id(text, end, 41, &m));
	assert_true(mountinfo_is_remote(text, end, &m));
	assert_false(mountinfo_find_id(text, end, 44, &m));
	assert_true(mountinfo_find_device(text, end, "98:0", "", &m));
	assert_int_equal(m.id, 36);
	assert_false(mountinfo_find_device(text, end, "0:10", "", &m)); /* not to be reached safely */
	assert_true(mountinfo_find_device(text, end, "0:10", "/net/local", &m));
	for (const char *cut = text; cut <= end; cut++)
		for (p = text; mountinfo_next(&p, cut, &m);)
			assert_true(m.source.p + m.source.len <= cut);
}

/* A node whose root is on the network: what is mounted below it is local all the same. */
static void test_a_root_on_the_network(void **state)
{
	static const char text[] =
		"1 0 0:9 / / rw - nfs server:/root rw\n2 1 0:10 / /tmp rw - tmpfs tmpfs rw\n";
	const char *end = text + sizeof(text) - 1;
	struct mount m;

	(void)state;
	assert_true(mountinfo_find_id(text, end, 1, &m));
	assert_true(mountinfo_is_remote(text, end, &m));
	assert_true(mountinfo_find_id(text, end, 2, &m));
	assert_false(mountinfo_is_remote(text, end, &m));
}

static void test_file_systems_of_a_job(void **state)
{
	struct env *env = film_of("films", "filesystems");
	struct lab lab;

	(void)state;
	lab_open_job(&lab, env, "filesystem", 100);
	assert_int_equal(lab_sample(&lab), 0);
	/* The working directory. */
	assert_int_equal(value(&lab, "/scratch", "fs.total"), 9000000);
	assert_int_equal(value(&lab, "/scratch", "fs.free"), 5000000);
	assert_int_equal(value(&lab, "/scratch", "fs.available"), 5000000);
	assert_int_equal(value(&lab, "/scratch", "fs.inodes"), 2000);
	assert_int_equal(value(&lab, "/scratch", "fs.inodes_free"), 1900);
	assert_string_equal(about(&lab, "/scratch"), "type=xfs;device=/dev/sdb1;");
	assert_int_equal(value(&lab, "/local disk", "fs.available"), 100000);
	/* Found by files that are open for writing; bind mounts are one file system. */
	assert_int_equal(value(&lab, "/tmp", "fs.available"), 400000);
	/* In the namespace of a container. */
	assert_int_equal(value(&lab, "/run", "fs.total"), 800);
	assert_int_equal(value(&lab, "/", "fs.total"), 7000000);
	assert_non_null(strstr(about(&lab, "/"), "apart="));
	assert_non_null(strstr(about(&lab, "/"), "inside="));
	/* Named, and not asked. */
	assert_int_equal(value(&lab, "/net", "fs.total"), INVALID);
	assert_non_null(strstr(about(&lab, "/net"), "unasked="));
	assert_int_equal(value(&lab, "/net/a/mnt", "fs.total"), INVALID);
	assert_int_equal(availability(&lab, "fs.total"), ABSENT);
	/* Not: what is only read, devices, kernel interfaces, what is hidden, unused shared memory. */
	assert_int_equal(row_of(&lab, "/extra"), -1);
	assert_int_equal(row_of(&lab, "/dev"), -1);
	assert_int_equal(row_of(&lab, "/proc"), -1);
	assert_int_equal(row_of(&lab, "/over"), -1);
	assert_int_equal(row_of(&lab, "/dev/shm"), -1);
	assert_int_equal(nr_instances(&lab), 7);
	lab_release(&lab);
	env_free(env);
}

static void test_file_systems_come_and_go(void **state)
{
	static const pid_t orphans[] = {101, 102};
	struct env *env = film_of("films", "filesystems");
	struct lab lab;
	unsigned whys;

	(void)state;
	lab_open_job(&lab, env, "filesystem", 100);
	assert_int_equal(lab_sample(&lab), 0);
	turn_to(&lab, 1, 0);
	assert_int_equal(value(&lab, "/scratch", "fs.available"), 4000000);
	assert_int_equal(value(&lab, "/extra", "fs.available"), 50000);
	assert_int_equal(value(&lab, "/extra", "fs.inodes"), INVALID);
	assert_int_equal(availability(&lab, "fs.inodes"), ABSENT);
	assert_int_equal(value(&lab, "/dev/shm", "fs.free"), 7000000);
	whys = lab.whys;

	turn_to(&lab, 2, -EIO);
	assert_int_equal(value(&lab, "/scratch", "fs.available"), INVALID);
	assert_int_equal(value(&lab, "/extra", "fs.available"), 50000);

	/* Unmounted: what is at its path now is another's. */
	turn_to(&lab, 3, 0);
	assert_int_equal(row_of(&lab, "/scratch"), -1);
	assert_int_equal(row_of(&lab, "/net"), -1);
	assert_int_equal(row_of(&lab, "/local disk"), -1);
	/* The bind mount is gone, its file system is reached by another. */
	assert_int_equal(value(&lab, "/tmp", "fs.available"), 400000);
	assert_int_equal(value(&lab, "/extra", "fs.total"), 600000);
	assert_int_equal(value(&lab, "/run", "fs.total"), 800);

	/* The first process has ended; mounts are seen as we see them. */
	with_members(&lab, 100, orphans, ARRAY_SIZE(orphans));
	turn_to(&lab, 4, 0);
	assert_int_equal(value(&lab, "/tmp", "fs.available"), 200000);
	assert_int_equal(value(&lab, "/run", "fs.total"), 800);
	with_members(&lab, 100, orphans, 1);
	turn_to(&lab, 5, -ENODEV);
	assert_int_equal(row_of(&lab, "/run"), -1);
	assert_int_equal(value(&lab, "/tmp", "fs.available"), 200000);
	assert_int_equal(lab.whys, whys);
	lab_release(&lab);
	env_free(env);
}

/* Of a job in a namespace of its own every path leads through its first process. */
static void test_another_namespace(void **state)
{
	static const char text[] =
		"file proc/self/mountinfo\n|1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"file proc/100/mountinfo\n|7 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"|8 7 8:2 / /data rw - ext4 /dev/sda2 rw\n"
		"link proc/100/cwd /data\nlink proc/100/root /\n"
		"link proc/100/ns/mnt mnt:[2]\nlink proc/self/ns/mnt mnt:[1]\n"
		"space proc/100/root/data 100 50 40 10 9\nspace proc/100/root 200 150 140 10 9\n"
		"space . 1 1 1 1 1\nspace data 1 1 1 1 1\n";
	struct env *env = film_from(text, sizeof(text) - 1);
	struct lab lab;

	(void)state;
	lab_open_job(&lab, env, "filesystem", 100);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(value(&lab, "/data", "fs.available"), 40);
	assert_int_equal(value(&lab, "/", "fs.available"), 140); /* TMPDIR is not set: /tmp */
	assert_int_equal(nr_instances(&lab), 2);
	lab_release(&lab);
	env_free(env);
}

static ssize_t (*film_read)(struct env *env, int handle, void *out, size_t size, off_t offset);
static unsigned reads;

static ssize_t counted_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	reads++;
	return film_read(env, handle, out, size, offset);
}

/* However many processes and descriptors there are, a round looks at few; in the end it has seen all. */
static void test_rounds_are_bounded(void **state)
{
	struct env_ops ops;
	struct env *env;
	struct buf text;
	struct lab lab;
	int rounds = 0;

	(void)state;
	buf_init(&text, 1 << 20);
	buf_addf(&text,
		"file proc/self/mountinfo\n|1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"|2 1 8:2 / /last rw - ext4 /dev/sda2 rw\nspace . 9 8 7 6 5\nspace last 4 3 2 1 1\n");
	for (int pid = 1; pid <= 15; pid++)
		for (int fd = 0; fd < 100; fd++)
			buf_addf(&text, "file proc/%d/fdinfo/%d\n|pos:\t0\n|flags:\t02\n|mnt_id:\t%d\n", pid,
				fd, pid == 15 && fd == 99 ? 2 : 1);
	env = film_from((char *)text.data, text.len);
	ops = *env->ops;
	film_read = ops.read;
	ops.read = counted_read;
	env->ops = &ops;
	lab_init(&lab, env, "filesystem");
	for (pid_t i = 0; i < 15; i++)
		lab.member[i] = i + 1;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	for (; row_of(&lab, "/last") < 0 && rounds < 100; rounds++) {
		reads = 0;
		assert_int_equal(lab_sample(&lab), 0);
		assert_in_range(reads, 1, 70);
	}
	assert_in_range(rounds, 1500 / 64, 1500 / 60);
	lab_release(&lab);
	env_free(env);
	buf_release(&text);
}

static void test_nfs_mounts(void **state)
{
	struct env *env = film_of("machines", "storage-client");
	struct trouble why = {0};
	struct lab lab;

	(void)state;
	lab_open_job(&lab, env, "nfs", 100);
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 4);
	assert_int_equal(row_of(&lab, "/ours"), -1);
	assert_string_equal(about(&lab, "/home"), "device=server:/home;");
	assert_int_equal(value(&lab, "/home", "nfs.read.bytes"), 1030000);
	assert_int_equal(value(&lab, "/home", "nfs.write.bytes"), 2040000);
	assert_int_equal(value(&lab, "/home", "nfs.read.server_bytes"), 500000);
	assert_int_equal(value(&lab, "/home", "nfs.write.server_bytes"), 600000);
	assert_int_equal(value(&lab, "/home", "nfs.ops"), 358);
	assert_int_equal(value(&lab, "/home", "nfs.retransmits"), 7);
	assert_int_equal(value(&lab, "/home", "nfs.timeouts"), 3);
	assert_int_equal(value(&lab, "/home", "nfs.errors"), 14);
	assert_int_equal(value(&lab, "/home", "nfs.read.ops"), 100); /* not READ_PLUS */
	assert_int_equal(value(&lab, "/home", "nfs.read.rtt"), 900);
	assert_int_equal(value(&lab, "/home", "nfs.read.time"), 950);
	assert_int_equal(value(&lab, "/home", "nfs.write.ops"), 200);
	assert_int_equal(value(&lab, "/home", "nfs.write.rtt"), 1800);
	assert_int_equal(value(&lab, "/home", "nfs.write.time"), 1900);
	assert_int_equal(value(&lab, "/home", "nfs.getattr.ops"), 50);
	assert_int_equal(value(&lab, "/home", "nfs.connects"), 3);
	assert_int_equal(lab.whys, 0);

	assert_non_null(strstr(about(&lab, "/mnt/home again"), "apart="));
	assert_int_equal(value(&lab, "/mnt/home again", "nfs.write.ops"), INVALID);

	assert_null(strstr(about(&lab, "/soft"), "apart="));
	assert_int_equal(value(&lab, "/soft", "nfs.retransmits"), 4);
	assert_int_equal(value(&lab, "/soft", "nfs.errors"), INVALID);
	assert_int_equal(value(&lab, "/soft", "nfs.connects"), INVALID);
	assert_int_equal(value(&lab, "/soft", "nfs.write.time"), 85);
	assert_int_equal(value(&lab, "/rdma", "nfs.connects"), 5);
	assert_int_equal(value(&lab, "/rdma", "nfs.read.bytes"), 7);
	lab_release(&lab);
	env_free(env);
}

/* The job is found only later: then its mounts are those of its first process. */
static void test_nfs_of_a_job_that_comes(void **state)
{
	struct env *env = film_of("machines", "storage-client");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "nfs");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(value(&lab, "/ours", "nfs.read.bytes"), 4);
	assert_int_equal(availability(&lab, "nfs.ops"), ABSENT);
	assert_int_equal(nr_instances(&lab), 1);
	lab.feed.root = 100;
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(row_of(&lab, "/ours"), -1);
	assert_int_equal(nr_instances(&lab), 4);
	lab_release(&lab);
	env_free(env);
}

static void test_lustre_mounts(void **state)
{
	struct env *env = film_of("machines", "storage-client");
	struct trouble why = {0};
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "lustre");
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 4);
	assert_int_equal(value(&lab, "work", "lustre.read.bytes"), 98765432109);
	assert_int_equal(value(&lab, "work", "lustre.read.ops"), 4452);
	assert_int_equal(value(&lab, "work", "lustre.write.bytes"), 55352000);
	assert_int_equal(value(&lab, "work", "lustre.write.ops"), 134);
	assert_int_equal(value(&lab, "work", "lustre.read.time"), 12345);
	assert_int_equal(value(&lab, "work", "lustre.write.time"), 555);
	assert_int_equal(value(&lab, "work", "lustre.open"), 70);
	assert_int_equal(value(&lab, "work", "lustre.close"), 69);
	assert_int_equal(value(&lab, "work", "lustre.create"), 15);
	assert_int_equal(value(&lab, "work", "lustre.page_faults"), 8);
	assert_int_equal(value(&lab, "work", "lustre.fsync"), 0); /* has not happened */
	assert_int_equal(value(&lab, "work", "lustre.unlink"), INVALID);
	/* A second mount of the same name keeps its address; a line without numbers has no value. */
	assert_int_equal(value(&lab, "data", "lustre.read.bytes"), 40960);
	assert_int_equal(value(&lab, "data", "lustre.write.bytes"), INVALID);
	assert_int_equal(value(&lab, "data", "lustre.write.ops"), INVALID);
	assert_int_equal(availability(&lab, "lustre.read.time"), ABSENT);
	assert_int_equal(value(&lab, "data-ffff8c5e41c7a802", "lustre.read.bytes"), 81920);
	assert_int_equal(value(&lab, "fresh", "lustre.read.bytes"), 0);
	lab_release(&lab);
	env_free(env);
}

static void test_clients_come_and_go(void **state)
{
	struct env *env = film_of("films", "storage-client");
	struct lab nfs, lustre;
	uint32_t id;

	(void)state;
	lab_open(&nfs, env, "nfs");
	lab_open(&lustre, env, "lustre");
	assert_int_equal(lab_sample(&nfs), 0);
	assert_int_equal(lab_sample(&lustre), 0);
	assert_int_equal(value(&nfs, "/home", "nfs.read.bytes"), 1000);
	assert_int_equal(value(&lustre, "work", "lustre.read.bytes"), 40960);
	id = nfs.table.id[row_of(&nfs, "/home")];

	turn_to(&nfs, 1, 0);
	assert_int_equal(lab_sample(&lustre), 0);
	assert_int_equal(value(&nfs, "/home", "nfs.read.bytes"), 1500);
	assert_int_equal(value(&nfs, "/home", "nfs.retransmits"), 1);
	assert_int_equal(value(&lustre, "late", "lustre.write.bytes"), 7);

	turn_to(&nfs, 2, 0);
	assert_int_equal(lab_sample(&lustre), -EBADMSG);
	assert_int_equal(nr_instances(&nfs), 0);
	assert_int_equal(value(&lustre, "work", "lustre.read.bytes"), 0);
	assert_int_equal(value(&lustre, "late", "lustre.write.bytes"), INVALID);

	turn_to(&nfs, 3, 0);
	assert_int_equal(lab_sample(&lustre), 0);
	assert_int_equal(value(&nfs, "/home", "nfs.read.bytes"), 16);
	assert_true(nfs.table.id[row_of(&nfs, "/home")] != id);
	assert_int_equal(row_of(&lustre, "work"), -1);
	assert_int_equal(value(&lustre, "late", "lustre.write.bytes"), 14);

	turn_to(&nfs, 4, -EACCES);
	assert_int_equal(value(&nfs, "/home", "nfs.read.bytes"), INVALID);
	turn_to(&nfs, 5, 0);
	assert_int_equal(value(&nfs, "/home", "nfs.read.bytes"), 17);
	lab_release(&nfs);
	lab_release(&lustre);
	env_free(env);
}

/* Counters that only root may see are forbidden, with the way out; no mounts are absent. */
static void test_lustre_of_a_user(void **state)
{
	static const char forbidden[] = "dir sys/fs/lustre/llite/work-ffff00\n"
					"error sys/kernel/debug/lustre/llite list EACCES\n";
	static const char nothing[] = "dir sys/fs/lustre/version\n";
	struct trouble why = {0};
	struct env *env;
	struct lab lab;

	(void)state;
	env = film_from(forbidden, sizeof(forbidden) - 1);
	lab_open(&lab, env, "lustre");
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(availability(&lab, "lustre.read.bytes"), FORBIDDEN);
	assert_non_null(strstr(lab.remedy, "chmod"));
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 0);
	assert_int_equal(lab.whys, lab.collector->nr_metrics);
	lab_release(&lab);
	env_free(env);

	env = film_from(nothing, sizeof(nothing) - 1);
	lab_open(&lab, env, "lustre");
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(availability(&lab, "lustre.read.bytes"), ABSENT);
	lab_release(&lab);
	env_free(env);

	env = film_from("file a\n", 7);
	lab_init(&lab, env, "lustre");
	assert_int_equal(lab.collector->probe(env, &why), -ENOENT);
	lab_release(&lab);
	lab_init(&lab, env, "nfs");
	assert_int_equal(lab.collector->probe(env, &why), -ENOENT);
	lab_release(&lab);
	env_free(env);
}

static char *file_of(const char *kind, const char *name, const char *path, size_t *ret_len)
{
	struct env *env = film_of(kind, name);
	char *text = malloc(1 << 16);
	ssize_t n;

	assert_non_null(text);
	n = env_slurp(env, path, text, 1 << 16);
	assert_true(n > 0);
	*ret_len = (size_t)n;
	env_free(env);
	return text;
}

/* Every text, cut off after every byte. */
static void test_broken_texts(void **state)
{
	static const struct {
		const char *collector, *kind, *name, *from, *path;
	} broken[] = {
		{"nfs", "machines", "storage-client", "proc/100/mountstats", "proc/self/mountstats"},
		{"lustre", "machines", "storage-client",
			"sys/kernel/debug/lustre/llite/work-ffff8c5e41c7a800/stats",
			"sys/fs/lustre/llite/a/stats"},
		{"filesystem", "films", "filesystems", "proc/100/mountinfo", "proc/self/mountinfo"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		size_t len, step = i == 0 ? 7 : 1;
		_cleanup_(freep) char *text = file_of(broken[i].kind, broken[i].name, broken[i].from, &len);

		for (size_t cut = 0; cut <= len; cut += step) {
			struct env *env = machine_of(broken[i].path, text, cut);
			struct lab lab;

			lab_open(&lab, env, broken[i].collector);
			lab_sample(&lab);
			lab_sample(&lab);
			assert_in_range(nr_instances(&lab), 0, 4);
			lab_release(&lab);
			env_free(env);
		}
	}
}

static void test_every_call_may_fail(void **state)
{
	static const struct {
		const char *collector, *kind, *name;
	} of[] = {{"nfs", "machines", "storage-client"}, {"lustre", "machines", "storage-client"},
		{"filesystem", "films", "filesystems"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of); i++)
		for (unsigned n = 1; n <= 90; n++) {
			static const pid_t member[] = {100, 101, 102, 103};
			struct env *env = env_failing(film_of(of[i].kind, of[i].name), n, -EIO);
			struct lab lab;
			int r;

			lab_init(&lab, env, of[i].collector);
			with_members(&lab, 100, member, ARRAY_SIZE(member));
			r = lab.collector->open(lab.state, &lab.ctx);
			for (int k = 0; r == 0 && k < 40; k++)
				lab_sample(&lab);
			if (r == 0) {
				assert_int_equal(lab_sample(&lab), 0);
				assert_true(nr_instances(&lab) >= 1);
			}
			lab_release(&lab);
			env_free(env);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mountinfo),
		cmocka_unit_test(test_a_root_on_the_network),
		cmocka_unit_test(test_file_systems_of_a_job),
		cmocka_unit_test(test_file_systems_come_and_go),
		cmocka_unit_test(test_another_namespace),
		cmocka_unit_test(test_rounds_are_bounded),
		cmocka_unit_test(test_nfs_mounts),
		cmocka_unit_test(test_nfs_of_a_job_that_comes),
		cmocka_unit_test(test_lustre_mounts),
		cmocka_unit_test(test_clients_come_and_go),
		cmocka_unit_test(test_lustre_of_a_user),
		cmocka_unit_test(test_broken_texts),
		cmocka_unit_test(test_every_call_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
