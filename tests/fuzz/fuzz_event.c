/* Events of any text, on a machine whose PMU says anything: the first four lines are a format, an event of
 * the folder, its scale and its unit, the rest is what people write. What is understood has a name that a
 * metric can have; what is not has a reason. */
#include "base/buf.h"
#include "env/script.h"
#include "perf/event.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const char *p, *end;
};

static size_t next_line(struct input *in, const char **ret)
{
	const char *stop = in->p < in->end ? memchr(in->p, '\n', (size_t)(in->end - in->p)) : NULL;
	size_t n = (size_t)((stop ? stop : in->end) - in->p);

	*ret = in->p;
	in->p = stop ? stop + 1 : in->end;
	return n;
}

static struct env *make_machine(struct input *in)
{
	static const char *const file[] = {"cpu/format/event", "cpu/events/odd-one",
		"cpu/events/odd-one.scale", "cpu/events/odd-one.unit"};
	int fd = memfd_create("film", MFD_CLOEXEC);
	struct env *env = NULL;
	unsigned line;
	struct buf b;
	char path[40];

	buf_init(&b, 1 << 22);
	buf_adds(&b,
		"file sys/bus/event_source/devices/cpu/type\n|4\n"
		"file sys/bus/event_source/devices/cpu/format/umask\n|config:8-15,40-43\n"
		"file sys/bus/event_source/devices/box_0/type\n|9\n"
		"file sys/bus/event_source/devices/box_0/cpumask\n|0\n"
		"file sys/bus/event_source/devices/box_0/format/code\n|config1:0-7\n"
		"file sys/bus/event_source/devices/box_1/type\n|10\n"
		"file sys/bus/event_source/devices/box_1/cpumask\n|0\n"
		"file sys/bus/event_source/devices/box_1/format/code\n|config1:0-7\n"
		"file sys/kernel/tracing/events/sched/sched_switch/id\n|3\n");
	for (size_t i = 0; i < ARRAY_SIZE(file); i++) {
		const char *text;
		size_t n = next_line(in, &text);

		buf_addf(&b, "file sys/bus/event_source/devices/%s\n:", file[i]);
		script_escape(&b, text, n, false);
		buf_addch(&b, '\n');
	}
	if (fd < 0 || b.err || write(fd, b.data, b.len) != (ssize_t)b.len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (env_film(path, &env, &line) < 0)
		abort();
	close(fd);
	buf_release(&b);
	return env;
}

static int ask(void *arg, const char *text, size_t len)
{
	struct perf_event e[3], again[3];
	char err[100], err_again[100];
	int n = perf_event_boxes(arg, text, len, e, 3, err, sizeof(err));

	if (n == 0 || n > 3 || (n < 0) != (err[0] != 0) || strlen(err) >= sizeof(err))
		abort();
	if (perf_event_boxes(arg, text, len, again, 3, err_again, sizeof(err_again)) != n ||
		strcmp(err, err_again) != 0)
		abort();
	for (int i = 0; i < n; i++) {
		size_t letters = strspn(e[i].name, "abcdefghijklmnopqrstuvwxyz0123456789_");
		struct perf_event_attr attr;

		if (!letters || letters != strnlen(e[i].name, sizeof(e[i].name)) || !e[i].pmu[0] ||
			!memchr(e[i].pmu, 0, sizeof(e[i].pmu)) || !memchr(e[i].unit, 0, sizeof(e[i].unit)) ||
			!(e[i].scale > 0) || strcmp(e[i].name, e[0].name) != 0)
			abort();
		perf_event_fill(&e[i], &attr);
		if (attr.config != again[i].config || (attr.exclude_user && attr.exclude_kernel))
			abort();
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {(const char *)data, (const char *)data + size};
	struct env *env = make_machine(&in);
	size_t left = (size_t)(in.end - in.p);
	char *text = malloc(left + 1);

	if (!text)
		abort();
	memcpy(text, in.p, left);
	text[left] = 0;
	perf_events_split(text, ask, env);
	ask(env, text, left); /* with its commas, and bytes behind a NUL */
	free(text);
	env_free(env);
	return 0;
}
