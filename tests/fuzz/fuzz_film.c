/* Machine files and films of any text: what is understood can be walked through to its end without harm, and
 * a capture of that walk, and the play of the capture, give the same answers as the film itself. */
#include "base/buf.h"
#include "env/env.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAMES_MAX 6
#define DEPTH_MAX 8

struct walk {
	struct env *env;
	struct buf *log;
	const char *folder;
	int depth;
};

static int visit(void *arg, const char *name);

static void answer(struct walk *w, const char *what, int64_t r, const char *text)
{
	buf_addf(w->log, "%s %lld ", what, (long long)r);
	buf_add(w->log, text, text && r > 0 ? (size_t)r : 0);
	buf_addch(w->log, '\n');
}

static void ask_space(struct walk *w, const char *path)
{
	struct env_space s = {0};

	answer(w, "space", env_space(w->env, path, &s), NULL);
	buf_addf(w->log, "%lld %lld %lld %lld %lld\n", (long long)s.total, (long long)s.free,
		(long long)s.available, (long long)s.inodes, (long long)s.free_inodes);
}

static void descend(struct walk *w, const char *path)
{
	struct walk below = {w->env, w->log, path, w->depth + 1};

	answer(w, path, env_list(w->env, *path ? path : ".", visit, &below), NULL);
}

static int visit(void *arg, const char *name)
{
	struct walk *w = arg;
	char path[PATH_MAX + 2], text[1024];
	int handle;

	snprintf(path, sizeof(path), "%s%s%s", w->folder, *w->folder ? "/" : "", name);
	answer(w, path, env_readlink(w->env, path, text, sizeof(text)), text);
	ask_space(w, path);
	handle = env_open(w->env, path);
	answer(w, "open", MIN(handle, 0), NULL);
	if (handle >= 0) {
		ssize_t n = env_read_at(w->env, handle, text, sizeof(text), 0);

		answer(w, "read", n, text);
		answer(w, "size", env_size(w->env, handle), NULL);
		env_close(w->env, handle);
	}
	if (!strcmp(w->folder, "proc") && strspn(name, "0123456789") == strlen(name) && strlen(name) < 9)
		answer(w, "cpu", env_cpu_clock(w->env, (pid_t)strtol(name, NULL, 10)), NULL);
	if (w->depth < DEPTH_MAX)
		descend(w, path);
	return 0;
}

/* Counters of two types, of each mode, of a task and of a CPU. */
static void ask_counters(struct walk *w)
{
	for (unsigned i = 0; i < 24; i++) {
		struct perf_event_attr attr = {.type = i & 1,
			.config = i >> 1 & 1,
			.exclude_kernel = i >> 2 & 1,
			.exclude_user = i / 8 == 2};
		struct env_count n = {0};
		int handle = env_counter_open(w->env, &attr, i / 8 == 1 ? -1 : 42, i / 8 == 1 ? 0 : -1);

		answer(w, "counter", MIN(handle, 0), NULL);
		if (handle < 0)
			continue;
		answer(w, "count", env_counter_read(w->env, handle, &n), NULL);
		buf_addf(w->log, "%llu %llu %llu\n", (unsigned long long)n.value,
			(unsigned long long)n.enabled_ns, (unsigned long long)n.running_ns);
		env_close(w->env, handle);
	}
}

static void play(struct env *env, struct buf *log)
{
	struct walk w = {env, log, "", 0};
	int r = 0;

	for (int i = 0; i < FRAMES_MAX && !r; i++) {
		for (int clock = 0; clock < NR_ENV_CLOCKS; clock++)
			answer(&w, "clock", env_now(env, clock), NULL);
		ask_space(&w, ".");
		descend(&w, "");
		ask_counters(&w);
		r = env_sleep_until(env, env_now(env, ENV_MONOTONIC) + NSEC_PER_SEC);
		answer(&w, "slept", r, NULL);
	}
	env_free(env);
}

static struct env *film(const char *path)
{
	struct env *env = NULL;
	unsigned line;

	return env_film(path, &env, &line) < 0 ? NULL : env;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text_path[40],
		captured_path[] = "/tmp/tacho-capture-XXXXXX"; /* no link: it would not be followed */
	int text = memfd_create("film", MFD_CLOEXEC), captured = mkostemp(captured_path, O_CLOEXEC);
	struct buf log[3];
	struct env *env;

	if (text < 0 || captured < 0 || write(text, data, size) != (ssize_t)size)
		abort();
	snprintf(text_path, sizeof(text_path), "/proc/self/fd/%d", text);
	for (int i = 0; i < 3; i++)
		buf_init(&log[i], 1 << 24);
	env = film(text_path);
	if (env) {
		play(env, &log[0]);
		play(env_capture(film(text_path), captured_path), &log[1]);
		env = film(captured_path);
		if (!env)
			abort();
		play(env, &log[2]);
		for (int i = 1; i < 3 && !log[0].err; i++)
			if (log[i].len != log[0].len || memcmp(log[i].data, log[0].data, log[0].len))
				abort();
	}
	for (int i = 0; i < 3; i++)
		buf_release(&log[i]);
	close(text);
	unlink(captured_path);
	close(captured);
	return 0;
}
