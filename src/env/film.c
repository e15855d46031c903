/* A captured machine, or a film: a machine whose files change on a clock of the film's own.
 *
 * Time moves only in sleep_until(), which applies all frames up to its deadline; in between nothing changes,
 * so that a test sees the same on every machine and at any load. Handles point at nodes of the tree, not at
 * paths: what a frame removed is gone for the handles that were open on it, also when a new file has taken
 * its path (a process with a reused pid). */
#include "env/env.h"

#include "env/script.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define FILM_SIZE_MAX ((off_t)256 << 20)

/* On a file or, without a node, on a counter; free with neither. */
struct film_handle {
	struct file_node *node;
	size_t counter; /* from 1 */
};

struct film {
	struct env env;
	struct script script;
	struct files files;
	size_t frame;	/* the one shown */
	int64_t now_ns; /* since the start */
	/* A clock reads its value at `set` plus what has passed since. */
	struct {
		int64_t value, set;
	} clock[NR_ENV_CLOCKS];
	struct env_counters counters;
	struct film_handle *handle;
	size_t nr_handles;
};

static struct film *film_of(struct env *env)
{
	return (struct film *)env;
}

static int apply_counter(struct film *f, const struct op *op)
{
	ssize_t at = env_counters_make(&f->counters, &op->key);

	if (at < 0)
		return (int)at;
	f->counters.line[at].count = op->count;
	f->counters.line[at].error = op->error;
	return 0;
}

static int apply(struct film *f, const struct op *op)
{
	struct file_node *node;

	if (op->kind == OP_VARIABLE)
		return 0;
	if (op->kind == OP_COUNTER)
		return apply_counter(f, op);
	if (op->kind == OP_CLOCK) {
		f->clock[op->which].value = op->value;
		f->clock[op->which].set = f->now_ns;
		return 0;
	}
	if (op->kind == OP_REMOVE) {
		files_remove(&f->files, op->path);
		return 0;
	}
	node = files_make(&f->files, op->path);
	if (!node)
		return -ENOMEM;
	switch (op->kind) {
	case OP_FILE:
		node->content = op->data;
		node->len = op->len;
		node->error[CALL_OPEN] = node->error[CALL_READ] = 0;
		break;
	case OP_LINK:
		node->link = op->data;
		node->error[CALL_READLINK] = 0;
		break;
	case OP_DIR:
		node->size = op->value;
		node->error[CALL_OPEN] = node->error[CALL_LIST] = 0;
		break;
	case OP_SPACE:
		node->space = op->space;
		node->error[CALL_SPACE] = 0;
		break;
	case OP_ERROR:
		node->error[op->which] = op->error;
		break;
	default:
		node->cpu_ns = op->value;
	}
	return 0;
}

static int show_frame(struct film *f, size_t frame)
{
	const struct script *s = &f->script;
	size_t end = frame + 1 < s->nr_frames ? s->frame[frame + 1].first : s->nr_ops;

	f->frame = frame;
	f->now_ns = s->frame[frame].at_ns;
	for (size_t i = s->frame[frame].first; i < end; i++) {
		int r = apply(f, s->op + i);

		if (r < 0)
			return r;
	}
	return 0;
}

static int new_handle(struct film *f, struct film_handle handle)
{
	struct film_handle *more;
	size_t i = 0;

	while (i < f->nr_handles && (f->handle[i].node || f->handle[i].counter))
		i++;
	if (i == f->nr_handles) {
		more = reallocarray(f->handle, i + 1, sizeof(*f->handle));
		if (!more)
			return -ENOMEM;
		f->handle = more;
		f->nr_handles++;
	}
	f->handle[i] = handle;
	return (int)i;
}

static int film_open(struct env *env, const char *path)
{
	struct film *f = film_of(env);
	struct file_node *node = files_find(&f->files, path);

	if (node && node->error[CALL_OPEN])
		return node->error[CALL_OPEN];
	/* Links are not followed: a file is stored under the path it is read by. */
	if (!files_exists(&f->files, path) || (node && node->link && !node->content))
		return -ENOENT;
	/* A folder that was only implied by its files gets a node, which is marked when it is gone. */
	node = files_make(&f->files, path);
	if (!node)
		return -ENOMEM;
	return new_handle(f, (struct film_handle){.node = node});
}

static const struct file_node *handle_node(struct film *f, int handle)
{
	return handle >= 0 && (size_t)handle < f->nr_handles ? f->handle[handle].node : NULL;
}

static ssize_t film_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	const struct file_node *node = handle_node(film_of(env), handle);

	if (!node)
		return -EBADF;
	if (node->dead)
		return path_pid(node->path) >= 0 ? -ESRCH : -ENODEV;
	return node_read(node, out, size, offset);
}

static void film_close(struct env *env, int handle)
{
	struct film *f = film_of(env);

	if (handle >= 0 && (size_t)handle < f->nr_handles)
		f->handle[handle] = (struct film_handle){0};
}

static int64_t film_size(struct env *env, int handle)
{
	const struct file_node *node = handle_node(film_of(env), handle);

	if (!node)
		return -EBADF;
	return node->dead ? -ENOENT : node->size;
}

static int any_name(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return 1;
}

static int film_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	struct film *f = film_of(env);
	const struct file_node *node = files_find(&f->files, path);

	if (!strcmp(path, "."))
		path = "";
	if (node && node->error[CALL_LIST])
		return node->error[CALL_LIST];
	if (node && node->content)
		return -ENOTDIR;
	/* What a link leads to is stored below the link, if it is a folder. */
	if (node && node->link && !files_list(&f->files, path, any_name, NULL))
		return -ENOTDIR;
	if (*path && !files_exists(&f->files, path))
		return -ENOENT;
	return files_list(&f->files, path, fn, arg);
}

static ssize_t film_readlink(struct env *env, const char *path, char *out, size_t size)
{
	struct film *f = film_of(env);
	const struct file_node *node = files_find(&f->files, path);
	size_t n;

	if (node && node->error[CALL_READLINK])
		return node->error[CALL_READLINK];
	if (!node || !node->link)
		return files_exists(&f->files, path) ? -EINVAL : -ENOENT;
	n = MIN(size, strlen(node->link));
	memcpy(out, node->link, n);
	return (ssize_t)n;
}

static int film_space(struct env *env, const char *path, struct env_space *ret)
{
	return files_space(&film_of(env)->files, path, ret);
}

/* User and system time in proc/PID/stat, columns 14 and 15, counted behind the name, which may hold anything.
 */
static int64_t cpu_from_stat(struct film *f, const char *path)
{
	const struct file_node *node = files_find(&f->files, path);
	const char *p = node && node->content ? memrchr(node->content, ')', node->len) : NULL;
	const char *end = p ? node->content + node->len : NULL;
	uint64_t ticks = 0;

	for (int column = 3; p && column <= 15; column++) {
		uint64_t value = 0;

		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			break;
		for (p++; column >= 14 && p < end && *p >= '0' && *p <= '9'; p++)
			value = value * 10 + (uint64_t)(*p - '0');
		ticks += value;
	}
	return (int64_t)(ticks * (uint64_t)(NSEC_PER_SEC / f->env.clock_tick) & INT64_MAX);
}

static int64_t film_cpu_clock(struct env *env, pid_t pid)
{
	struct film *f = film_of(env);
	const struct file_node *node;
	char path[40];

	snprintf(path, sizeof(path), "proc/%d", pid);
	if (pid <= 0 || !files_exists(&f->files, path))
		return -ESRCH;
	node = files_find(&f->files, path);
	if (node && node->cpu_ns >= 0)
		return node->cpu_ns;
	snprintf(path, sizeof(path), "proc/%d/stat", pid);
	return cpu_from_stat(f, path);
}

static int64_t film_now(struct env *env, enum env_clock clock)
{
	struct film *f = film_of(env);

	return f->clock[clock].value + (f->now_ns - f->clock[clock].set);
}

static int film_sleep_until(struct env *env, int64_t deadline_ns)
{
	struct film *f = film_of(env);
	int64_t until = deadline_ns - f->script.start_ns[ENV_MONOTONIC];
	bool ended = f->frame + 1 == f->script.nr_frames;

	while (f->frame + 1 < f->script.nr_frames && f->script.frame[f->frame + 1].at_ns <= until) {
		int r = show_frame(f, f->frame + 1);

		if (r < 0)
			return r;
	}
	f->now_ns = MAX(f->now_ns, until);
	return ended ? -ENODATA : 0;
}

static const char *film_getenv(struct env *env, const char *name)
{
	struct film *f = film_of(env);

	for (size_t i = 0; i < f->script.nr_ops; i++)
		if (f->script.op[i].kind == OP_VARIABLE && !strcmp(f->script.op[i].path, name))
			return f->script.op[i].data;
	return NULL;
}

static int film_counter_open(struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct film *f = film_of(env);
	struct counter_key key = counter_key_of(attr, pid, cpu);
	ssize_t at = env_counters_match(&f->counters, &key);

	if (at >= 0 && f->counters.line[at].error)
		return f->counters.line[at].error;
	return at < 0 ? (int)at : new_handle(f, (struct film_handle){.counter = (size_t)at + 1});
}

static int film_counter_read(struct env *env, int handle, struct env_count *ret)
{
	struct film *f = film_of(env);
	size_t counter = handle >= 0 && (size_t)handle < f->nr_handles ? f->handle[handle].counter : 0;

	if (!counter)
		return -EBADF;
	*ret = f->counters.line[counter - 1].count;
	return f->counters.line[counter - 1].error;
}

/* A film has no libraries. */
static void *film_library(struct env *env, const char *name, const char **reterr)
{
	(void)env;
	(void)name;
	if (reterr)
		*reterr = "no such library";
	return NULL;
}

static void *film_symbol(struct env *env, void *library, const char *name)
{
	(void)env;
	(void)library;
	(void)name;
	return NULL;
}

static void film_free(struct env *env)
{
	struct film *f = film_of(env);

	free(f->handle);
	env_counters_release(&f->counters);
	files_release(&f->files);
	script_release(&f->script);
	free(f);
}

static const struct env_ops film_ops = {
	.open = film_open,
	.read = film_read,
	.close = film_close,
	.size = film_size,
	.list = film_list,
	.readlink = film_readlink,
	.space = film_space,
	.cpu_clock = film_cpu_clock,
	.now = film_now,
	.sleep_until = film_sleep_until,
	.getenv = film_getenv,
	.counter_open = film_counter_open,
	.counter_read = film_counter_read,
	.library = film_library,
	.symbol = film_symbol,
	.free = film_free,
};

static int load(const char *path, char **ret_text, size_t *ret_len)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > FILM_SIZE_MAX)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (len < (size_t)st.st_size) {
		ssize_t n = read(fd, text + len, (size_t)st.st_size - len);

		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	text[len] = 0;
	*ret_len = len;
	*ret_text = TAKE_PTR(text);
	return 0;
}

int env_film(const char *path, struct env **ret, unsigned *reterr_line)
{
	struct film *f = calloc(1, sizeof(*f));
	size_t len = 0;
	char *text = NULL;
	int r;

	*reterr_line = 0;
	if (!f)
		return -ENOMEM;
	r = load(path, &text, &len);
	if (!r)
		r = script_parse(&f->script, text, len, reterr_line);
	if (r < 0) {
		free(f);
		return r;
	}
	f->env = (struct env){
		.ops = &film_ops,
		.page_size = f->script.page_size,
		.clock_tick = f->script.clock_tick,
	};
	for (int i = 0; i < NR_ENV_CLOCKS; i++)
		f->clock[i].value = f->script.start_ns[i];
	r = show_frame(f, 0);
	if (r < 0) {
		film_free(&f->env);
		return r;
	}
	*ret = &f->env;
	return 0;
}
