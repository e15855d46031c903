/* Every machine and every film of this tree under the whole engine with every metric there is: nothing falls,
 * every instance is announced before it has cells, every set keeps within its rows, and a tick in which
 * nothing came allocates nothing and looks no path up. */
#include "collect/collector.h"
#include "counted.h"
#include "engine/engine.h"
#include "film_text.h"

#include <dirent.h>

#define TICKS 32
#define MEDIUM 5   /* ticks of a second from one turn of the medium tier to the next */
#define SETTLED 18 /* the first ticks find what there is, and ask where the job is */
#define SETS_MAX 64
#define IDS_MAX 4096

/* A film's own memory grows when more is open than before: that is not the recorder's doing. */
static const struct env_ops *film_ops;
static struct env_ops watched_ops;

static struct watch {
	const char *name; /* of the machine, for messages */
	struct engine *engine;
	bool still; /* nothing changes: a tick may not allocate */
	unsigned ticks, cells;
	uint64_t before;
	bool announced[SETS_MAX][IDS_MAX];
} watch;

/* A path may be looked up when something is found: in the first ticks, and when the medium tier is due. A
 * film's members are found by the list of proc, and the CPU clocks of some by their stat. */
static void look_up(const char *path)
{
	int pid, end = 0;

	if (!watch.still || watch.ticks < SETTLED || watch.ticks % MEDIUM == 0 || !strcmp(path, "proc"))
		return;
	if (sscanf(path, "proc/%d/stat%n", &pid, &end) != 1 || !end || path[end])
		fail_msg("%s: tick %u looks for %s", watch.name, watch.ticks, path);
}

static int watched_open(struct env *env, const char *path)
{
	uint64_t before = allocations;
	int r = film_ops->open(env, path);

	allocations = before;
	look_up(path);
	return r;
}

static int watched_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	look_up(path);
	return film_ops->list(env, path, fn, arg);
}

static ssize_t watched_readlink(struct env *env, const char *path, char *out, size_t size)
{
	look_up(path);
	return film_ops->readlink(env, path, out, size);
}

static void on_instance(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *p)
{
	(void)arg;
	(void)row;
	(void)time_ns;
	(void)p;
	assert_true(set < SETS_MAX && id < IDS_MAX);
	watch.announced[set][id] = true;
}

static void on_gone(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *p)
{
	(void)arg;
	(void)row;
	(void)time_ns;
	(void)p;
	assert_true(set < SETS_MAX && id < IDS_MAX);
	if (!watch.announced[set][id])
		fail_msg("%s: one is gone that never came", watch.name);
}

static void see_set(const struct schema_set *set, uint32_t index, const struct table *table)
{
	for (uint32_t row = 0; row < table->nr_rows; row++) {
		if (table->id[row] == ROW_FREE)
			continue;
		if (set->domain != DOMAIN_NODE && !watch.announced[index][table->id[row]])
			fail_msg("%s: a row of %s was not announced", watch.name, set->name);
		for (uint32_t c = 0; c < set->nr_metrics; c++)
			watch.cells += table->valid[row] >> c & 1;
	}
}

static void on_tick(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	const struct schema *s = engine_schema(watch.engine);

	(void)arg;
	(void)number;
	(void)time_ns;
	(void)at;
	for (uint32_t i = 0; i < s->nr_sets; i++)
		see_set(&s->set[i], i, table[i]);
	if (watch.still && watch.ticks >= SETTLED && allocations != watch.before)
		fail_msg("%s: %u allocations in tick %u", watch.name, (unsigned)(allocations - watch.before),
			watch.ticks);
	watch.before = allocations;
	watch.ticks++;
}

static void on_event(void *arg, int64_t time_ns, const char *kind, const struct pairs *p)
{
	(void)arg;
	(void)time_ns;
	(void)kind;
	(void)p;
}

static void on_flush(void *arg)
{
	(void)arg;
}

/* The first process that the text shows; 0: none. */
static pid_t first_process(const char *text)
{
	int pid = 0;

	for (const char *at = strstr(text, "\nfile proc/"); at; at = strstr(at + 1, "\nfile proc/")) {
		int end = 0;

		if (sscanf(at, "\nfile proc/%d/stat\n%n", &pid, &end) == 1 && end)
			return pid;
	}
	return 0;
}

static void slurp(const char *path, struct buf *b)
{
	char text[1 << 14];
	FILE *file = fopen(path, "r");
	size_t n;

	assert_non_null(file);
	buf_init(b, 1 << 24);
	while ((n = fread(text, 1, sizeof(text), file)) > 0)
		buf_add(b, text, n);
	fclose(file);
	assert_int_equal(b->err, 0);
}

/* A film of the file: a machine gets seconds in which nothing happens; a process where there is none. */
static struct env *film_with_process(const char *path, bool machine, pid_t *ret_pid)
{
	static const char process[] =
		"file proc/1000/stat\n|1000 (job) S 1 1000 1000 0 -1 4194304 100 0 0 0 10 5 0 0 20 0 1 0 100 "
		"10000000 500 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
		"file proc/1000/statm\n|2441 500 100 10 0 200 0\nfile proc/1000/cgroup\n|0::/\n";
	struct buf text, film;
	const char *frames;

	slurp(path, &text);
	buf_init(&film, 1 << 24);
	*ret_pid = first_process((const char *)text.data);
	frames = strstr((const char *)text.data, "\nframe ");
	buf_add(&film, text.data, frames ? (size_t)(frames + 1 - (const char *)text.data) : text.len);
	if (!*ret_pid) {
		buf_adds(&film, process);
		*ret_pid = 1000;
	}
	if (frames)
		buf_adds(&film, frames + 1);
	for (int i = 1; machine && i <= TICKS; i++)
		buf_addf(&film, "frame %d\n", i);
	buf_release(&text);
	return film_buf(&film);
}

static void play(const char *path, const char *name, bool machine)
{
	static const char *const all[] = {"all"};
	static const struct engine_options options = {
		.interval_ns = NSEC_PER_SEC,
		.interval_is_order = true,
		.flush_ns = NSEC_PER_SEC,
		.budget = 1,
		.children = true,
		.max_members = 4096,
		.max_files = 1 << 16,
		.metrics = all,
		.nr_metrics = 1,
	};
	static const struct sink sink = {NULL, on_instance, on_gone, on_event, on_tick, on_flush};
	char err[512];
	pid_t pid;
	struct env *env = film_with_process(path, machine, &pid);

	film_ops = env->ops;
	watched_ops = *film_ops;
	watched_ops.open = watched_open;
	watched_ops.list = watched_list;
	watched_ops.readlink = watched_readlink;
	env->ops = &watched_ops;
	memset(&watch, 0, sizeof(watch));
	watch.name = name;
	watch.still = machine;
	if (engine_new(env, &options, &watch.engine, err, sizeof(err)) < 0)
		fail_msg("%s: %s", name, err);
	assert_true(engine_schema(watch.engine)->nr_sets <= SETS_MAX);
	assert_int_equal(engine_open(watch.engine, &sink), 0);
	assert_int_equal(engine_add_root(watch.engine, pid, false, 1), 0);
	engine_scan(watch.engine);
	assert_int_equal(engine_play(watch.engine, INT64_MAX), 0);
	if (machine)
		assert_true(watch.ticks >= TICKS);
	assert_true(watch.ticks >= 2 && watch.cells > 0);
	watch.engine = engine_free(watch.engine);
	env_free(env);
}

static void play_folder(const char *folder, bool machine, unsigned at_least)
{
	char path[4096];
	struct dirent *entry;
	unsigned played = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", getenv("TACHO_TESTS"), folder);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".txt"))
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", getenv("TACHO_TESTS"), folder, entry->d_name);
		play(path, entry->d_name, machine);
		played++;
	}
	closedir(dir);
	assert_true(played >= at_least);
}

static void test_every_machine(void **state)
{
	(void)state;
	play_folder("machines", true, 30);
}

static void test_every_film(void **state)
{
	(void)state;
	play_folder("films", false, 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_machine),
		cmocka_unit_test(test_every_film),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
