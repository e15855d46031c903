/* Writes a machine file or film of all that is read through it, so that a bug seen on one machine is a test
 * on any.
 *
 * It keeps a tree of what the film would show, answers from it, and reads from the inner env only what was
 * not read in this frame yet. So between two sleeps nothing changes, and playing a capture gives the same
 * answers as the capture itself did; only the clocks go on. What is learned is written when the frame ends:
 * removals first (a file may be gone and back), then what is new or has changed.
 *
 * Writing what was read as it is read was rejected: two readings of one file in a frame would differ, and the
 * play could give only one of them. */
#include "env/env.h"

#include "base/buf.h"
#include "env/script.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)64 << 20)

/* Parts of a node that can be known in a frame and be due for writing. */
enum part { PART_FILE, PART_LINK, PART_DIR, PART_CPU, PART_SPACE, PART_LIST, PART_OPEN, NR_PARTS };

struct capture_seen {
	uint32_t frame[NR_PARTS]; /* when each was last asked for */
	bool dirty[NR_PARTS];
	bool errors_dirty;
	uint32_t listed; /* frame in which its folder's listing had it; 0: never */
};

/* An open handle, on a file or, without a node, on a counter; free with neither. */
struct captured {
	int inner;
	uint32_t frame; /* that it was opened in */
	struct file_node *node;
	size_t counter; /* from 1 */
};

struct capture {
	struct env env;
	struct env *inner;
	struct files files;   /* the world */
	struct files written; /* what the film shows so far: which removals it needs */
	struct env_counters counters;
	struct buf removals, variables, out;
	uint32_t frame;			  /* from 1 */
	int64_t frame_ns;		  /* since the start */
	int64_t start_ns;		  /* of the monotonic clock */
	int64_t offset_ns[NR_ENV_CLOCKS]; /* of each from it */
	struct captured *handle;
	size_t nr_handles;
	char *path; /* of the file that is written */
	FILE *file;
	int err; /* once set nothing more is written, and in the end the file is removed */
};

static struct capture *capture_of(struct env *env)
{
	return (struct capture *)env;
}

static struct capture_seen *seen_of(struct file_node *node)
{
	return node->user;
}

static struct file_node *make(struct capture *c, const char *path)
{
	struct file_node *node = !*path || path_is_good(path) ? files_make(&c->files, path) : NULL;

	if (!node || node->user)
		return node;
	node->owns = true;
	node->user = calloc(1, sizeof(struct capture_seen));
	if (!node->user) {
		c->err = -ENOMEM;
		files_remove(&c->files, path);
		return NULL;
	}
	return node;
}

/* True the first time in this frame that this part of the node is asked for. */
static bool first_time(struct capture *c, struct file_node *node, enum part part)
{
	bool first = seen_of(node)->frame[part] != c->frame;

	seen_of(node)->frame[part] = c->frame;
	return first;
}

static void set_error(struct file_node *node, enum node_call call, int error)
{
	/* In a film an error ends when the file is shown again. */
	static const enum part shown_by[NR_NODE_CALLS] = {
		[CALL_OPEN] = PART_DIR,
		[CALL_READ] = PART_FILE,
		[CALL_LIST] = PART_DIR,
		[CALL_READLINK] = PART_LINK,
		[CALL_SPACE] = PART_SPACE,
	};

	if (node->error[call] == error)
		return;
	node->error[call] = error;
	if (error)
		seen_of(node)->errors_dirty = true;
	else
		seen_of(node)->dirty[node->content && call != CALL_SPACE ? PART_FILE : shown_by[call]] = true;
}

static void add_path(struct buf *out, const char *keyword, const char *path)
{
	buf_addf(out, "%s ", keyword);
	path = *path ? path : ".";
	script_escape(out, path, strlen(path), true);
}

/* The path and all below it are gone. */
static void remove_path(struct capture *c, const char *path)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path); /* it may belong to the node that is removed */
	if (files_remove(&c->written, copy)) {
		add_path(&c->removals, "remove", copy);
		buf_addch(&c->removals, '\n');
	}
	files_remove(&c->files, copy);
}

/* Records how a call failed; a missing file needs no record, as a film gives ENOENT by itself. */
static int failed(struct capture *c, const char *path, enum node_call call, int error)
{
	struct file_node *node = files_find(&c->files, path);
	char byte;

	if (error == -ENOENT) {
		/* A link may exist though its target does not. */
		if (node && !(node->link && env_readlink(c->inner, path, &byte, 1) >= 0))
			remove_path(c, path);
		return error;
	}
	node = make(c, path);
	if (node)
		set_error(node, call, error);
	return error;
}

/* Whether the file that a handle was opened on is gone, though its path may exist. */
static bool is_stale(struct capture *c, int inner)
{
	char byte;
	ssize_t n = env_read(c->inner, inner, &byte, 1);

	return n == -ESRCH || (n == -EISDIR && env_size(c->inner, inner) < 0);
}

/* A path that is opened anew may be that of another process with the same pid: then the old handles must be
 * marked. */
static void notice_reuse(struct capture *c, struct file_node *node)
{
	for (size_t i = 0; i < c->nr_handles && !node->dead; i++)
		if (c->handle[i].node == node && is_stale(c, c->handle[i].inner))
			remove_path(c, node->path);
}

static bool is_open(const struct captured *h)
{
	return h->node || h->counter;
}

/* The inner handle is closed when there is no room for it. */
static int new_handle(struct capture *c, const struct captured *handle)
{
	size_t i = 0;
	void *more;

	while (i < c->nr_handles && is_open(&c->handle[i]))
		i++;
	if (i == c->nr_handles) {
		more = reallocarray(c->handle, i + 1, sizeof(*c->handle));
		if (!more) {
			env_close(c->inner, handle->inner);
			return -ENOMEM;
		}
		c->handle = more;
		c->nr_handles++;
	}
	c->handle[i] = *handle;
	c->handle[i].frame = c->frame;
	return (int)i;
}

static int capture_open(struct env *env, const char *path)
{
	struct capture *c = capture_of(env);
	struct file_node *node = files_find(&c->files, path);
	int inner, handle;

	if (node && node->error[CALL_OPEN] && seen_of(node)->frame[PART_OPEN] == c->frame)
		return node->error[CALL_OPEN];
	if (node && path_pid(path) >= 0)
		notice_reuse(c, node);
	inner = env_open(c->inner, path);
	node = inner < 0 ? NULL : make(c, path);
	if (inner < 0) {
		failed(c, path, CALL_OPEN, inner);
		node = files_find(&c->files, path);
		if (node)
			seen_of(node)->frame[PART_OPEN] = c->frame;
		return inner;
	}
	if (!node) {
		env_close(c->inner, inner);
		return -ENOMEM;
	}
	handle = new_handle(c, &(struct captured){.inner = inner, .node = node});
	if (handle < 0)
		return handle;
	set_error(node, CALL_OPEN, 0);
	seen_of(node)->dirty[PART_DIR] |= first_time(c, node, PART_OPEN) && !files_exists(&c->written, path);
	return handle;
}

static int handle_node(struct capture *c, int handle, struct file_node **ret_node, int *ret_inner)
{
	if (handle < 0 || (size_t)handle >= c->nr_handles || !c->handle[handle].node)
		return -EBADF;
	*ret_node = c->handle[handle].node;
	*ret_inner = c->handle[handle].inner;
	return 0;
}

/* The whole file into the node. */
static int fetch(struct capture *c, struct file_node *node, int inner)
{
	struct buf text;
	ssize_t n;

	buf_init(&text, FILE_MAX);
	do {
		if (!buf_reserve(&text, 1 << 16)) {
			n = text.err;
			break;
		}
		n = env_read_at(c->inner, inner, text.data + text.len, 1 << 16, (off_t)text.len);
		text.len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	if (n < 0) {
		buf_release(&text);
		return (int)n;
	}
	set_error(node, CALL_READ, 0);
	if (node->content && node->len == text.len && !memcmp(node->content, text.data, text.len)) {
		buf_release(&text);
		return 0;
	}
	free((char *)node->content);
	node->len = text.len;
	node->content = realloc(text.data, text.len + 1);
	if (!node->content)
		node->content = (char *)text.data;
	seen_of(node)->dirty[PART_FILE] = true;
	return 0;
}

static ssize_t capture_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	struct capture *c = capture_of(env);
	struct file_node *node;
	int inner, r = handle_node(c, handle, &node, &inner);
	int gone;

	if (r < 0)
		return r;
	gone = path_pid(node->path) >= 0 ? -ESRCH : -ENODEV;
	if (node->dead)
		return gone;
	if (first_time(c, node, PART_FILE)) {
		r = fetch(c, node, inner);
		/* From a handle that worked before, this error means that its file is gone; from the first
		 * read, it is an error like any other. */
		if (r == gone && c->handle[handle].frame != c->frame) {
			remove_path(c, node->path);
			return gone;
		}
		/* That it is a folder needs no record. */
		if (r == -EISDIR)
			seen_of(node)->frame[PART_FILE] = 0;
		else if (r < 0)
			set_error(node, CALL_READ, r);
		if (r < 0)
			return r;
	}
	return node_read(node, out, size, offset);
}

static void capture_close(struct env *env, int handle)
{
	struct capture *c = capture_of(env);

	if (handle < 0 || (size_t)handle >= c->nr_handles || !is_open(&c->handle[handle]))
		return;
	env_close(c->inner, c->handle[handle].inner);
	c->handle[handle] = (struct captured){0};
}

static int64_t capture_size(struct env *env, int handle)
{
	struct capture *c = capture_of(env);
	struct file_node *node;
	int inner, r = handle_node(c, handle, &node, &inner);
	int64_t size;

	if (r < 0)
		return r;
	if (node->dead)
		return -ENOENT;
	if (!first_time(c, node, PART_DIR))
		return node->size;
	size = env_size(c->inner, inner);
	if (size < 0) {
		remove_path(c, node->path);
		return -ENOENT;
	}
	if (size != node->size)
		seen_of(node)->dirty[PART_DIR] = true;
	node->size = size;
	return size;
}

struct capture_listing {
	struct capture *c;
	const char *folder;
};

static int note_name(void *arg, const char *name)
{
	struct capture_listing *l = arg;
	char path[PATH_MAX];
	struct file_node *node;

	if (snprintf(path, sizeof(path), "%s%s%s", l->folder, *l->folder ? "/" : "", name) >=
		(int)sizeof(path))
		return 0;
	node = make(l->c, path);
	if (!node)
		return 0;
	seen_of(node)->listed = l->c->frame;
	seen_of(node)->dirty[PART_DIR] |= !files_exists(&l->c->written, path);
	return 0;
}

/* Of what earlier listings had, removes what this one has not. Things that no listing shows (threads under
 * proc) are left alone. */
static int drop_unlisted(void *arg, const char *name)
{
	struct capture_listing *l = arg;
	char path[PATH_MAX];
	struct file_node *node;

	snprintf(path, sizeof(path), "%s%s%s", l->folder, *l->folder ? "/" : "", name);
	node = files_find(&l->c->files, path);
	if (node && seen_of(node)->listed && seen_of(node)->listed != l->c->frame)
		remove_path(l->c, path);
	return 0;
}

static int capture_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	struct capture *c = capture_of(env);
	struct capture_listing l = {c, strcmp(path, ".") ? path : ""};
	struct file_node *node = make(c, path);
	int r;

	/* The root has no node: it is listed anew each time. */
	if (!node || first_time(c, node, PART_LIST)) {
		r = env_list(c->inner, path, note_name, &l);
		if (r < 0)
			return failed(c, path, CALL_LIST, r);
		files_list(&c->files, l.folder, drop_unlisted, &l);
		if (node) {
			set_error(node, CALL_LIST, 0);
			seen_of(node)->dirty[PART_DIR] |= !files_exists(&c->written, path);
		}
	}
	if (node && node->error[CALL_LIST])
		return node->error[CALL_LIST];
	return files_list(&c->files, l.folder, fn, arg);
}

static ssize_t capture_readlink(struct env *env, const char *path, char *out, size_t size)
{
	struct capture *c = capture_of(env);
	struct file_node *node = files_find(&c->files, path);
	char target[PATH_MAX];
	ssize_t n;

	if (!node || !node->link || seen_of(node)->frame[PART_LINK] != c->frame) {
		n = env_readlink(c->inner, path, target, sizeof(target) - 1);
		if (n < 0)
			return failed(c, path, CALL_READLINK, (int)n);
		target[n] = 0;
		node = make(c, path);
		if (!node)
			return -ENOMEM;
		first_time(c, node, PART_LINK);
		set_error(node, CALL_READLINK, 0);
		if (!node->link || strcmp(node->link, target)) {
			free((char *)node->link);
			node->link = strdup(target);
			seen_of(node)->dirty[PART_LINK] = true;
		}
		if (!node->link)
			return -ENOMEM;
	}
	n = (ssize_t)MIN(size, strlen(node->link));
	memcpy(out, node->link, (size_t)n);
	return n;
}

static int capture_space(struct env *env, const char *path, struct env_space *ret)
{
	struct capture *c = capture_of(env);
	const char *place = strcmp(path, ".") ? path : "";
	struct file_node *node = files_find(&c->files, place);
	int r;

	if (node && seen_of(node)->frame[PART_SPACE] == c->frame)
		return files_space(&c->files, path, ret);
	r = env_space(c->inner, path, ret);
	if (r == -ENOENT && !files_exists(&c->files, place))
		return r;
	node = make(c, place);
	if (!node)
		return -ENOMEM;
	first_time(c, node, PART_SPACE);
	set_error(node, CALL_SPACE, r);
	if (r == 0 && memcmp(&node->space, ret, sizeof(*ret)) != 0) {
		node->space = *ret;
		seen_of(node)->dirty[PART_SPACE] = true;
	}
	return r;
}

static int64_t capture_cpu_clock(struct env *env, pid_t pid)
{
	struct capture *c = capture_of(env);
	struct file_node *node;
	int64_t ns;
	char path[40];

	snprintf(path, sizeof(path), "proc/%d", pid);
	node = files_find(&c->files, path);
	if (node && node->cpu_ns >= 0 && seen_of(node)->frame[PART_CPU] == c->frame)
		return node->cpu_ns;
	ns = env_cpu_clock(c->inner, pid);
	if (ns == -ESRCH && pid > 0)
		remove_path(c, path);
	if (ns < 0)
		return ns;
	node = make(c, path);
	if (!node)
		return ns;
	first_time(c, node, PART_CPU);
	seen_of(node)->dirty[PART_CPU] |= node->cpu_ns != ns;
	node->cpu_ns = ns;
	return ns;
}

static int64_t capture_now(struct env *env, enum env_clock clock)
{
	const struct capture *c = capture_of(env);

	return c->start_ns + c->frame_ns + c->offset_ns[clock];
}

static void write_content(struct buf *out, const char *text, size_t len)
{
	while (len) {
		const char *stop = memchr(text, '\n', len);
		size_t n = stop ? (size_t)(stop - text) : len;

		buf_addch(out, stop ? '|' : ':');
		script_escape(out, text, n, false);
		buf_addch(out, '\n');
		n += stop != NULL;
		text += n;
		len -= n;
	}
}

static void write_node(struct capture *c, struct file_node *node)
{
	struct capture_seen *seen = seen_of(node);
	struct buf *out = &c->out;
	size_t before = out->len;

	if (seen->dirty[PART_FILE] && node->content) {
		add_path(out, "file", node->path);
		buf_addch(out, '\n');
		write_content(out, node->content, node->len);
	}
	if (seen->dirty[PART_LINK] && node->link) {
		add_path(out, "link", node->path);
		buf_addch(out, ' ');
		script_escape(out, node->link, strlen(node->link), true);
		buf_addch(out, '\n');
	}
	if (seen->dirty[PART_CPU]) {
		add_path(out, "cpu", node->path);
		buf_addf(out, " %lld\n", (long long)node->cpu_ns);
	}
	if (seen->dirty[PART_SPACE]) {
		const struct env_space *s = &node->space;

		add_path(out, "space", node->path);
		buf_addf(out, " %lld %lld %lld %lld %lld\n", (long long)s->total, (long long)s->free,
			(long long)s->available, (long long)s->inodes, (long long)s->free_inodes);
	}
	/* Only its name is known, or its size. */
	if (seen->dirty[PART_DIR] && (node->size || out->len == before) && !node->content && !node->link) {
		add_path(out, "dir", node->path);
		buf_addf(out, node->size ? " %lld\n" : "\n", (long long)node->size);
	}
	for (int call = 0; seen->errors_dirty && call < NR_NODE_CALLS; call++) {
		if (!node->error[call])
			continue;
		add_path(out, "error", node->path);
		buf_addf(out, " %s %s\n", script_call_name[call], script_error_name(-node->error[call]));
	}
	memset(seen->dirty, 0, sizeof(seen->dirty));
	seen->errors_dirty = false;
	if (out->len != before && !files_make(&c->written, node->path))
		c->err = -ENOMEM;
}

static void write_clock(struct capture *c, enum env_clock clock)
{
	int64_t now = capture_now(&c->env, clock);

	buf_addf(&c->out, "clock %s %lld.%09lld\n", script_clock_name[clock], (long long)(now / NSEC_PER_SEC),
		(long long)(now % NSEC_PER_SEC));
}

static void write_header(struct capture *c)
{
	buf_addf(&c->out,
		"# Captured by tacho; say here what machine this is and what is special about it.\n");
	buf_addf(&c->out, "page_size %ld\nclock_tick %ld\n", c->env.page_size, c->env.clock_tick);
	for (int i = 0; i < NR_ENV_CLOCKS; i++)
		write_clock(c, i);
}

/* All that was learned in this frame goes to the file. */
static void write_frame(struct capture *c)
{
	buf_add(&c->out, c->variables.data, c->variables.len);
	buf_add(&c->out, c->removals.data, c->removals.len);
	for (size_t i = 0; i < c->files.nr; i++)
		write_node(c, c->files.node[i]);
	for (size_t i = 0; i < c->counters.nr; i++) {
		if (c->counters.line[i].dirty)
			counter_write(&c->out, &c->counters.line[i]);
		c->counters.line[i].dirty = false;
	}
	if (!c->err)
		c->err = c->out.err ? c->out.err : c->removals.err;
	if (!c->err && (fwrite(c->out.data, 1, c->out.len, c->file) != c->out.len || fflush(c->file)))
		c->err = -EIO;
	buf_reset(&c->variables);
	buf_reset(&c->removals);
	buf_reset(&c->out);
}

/* Clocks that were set or stopped since the last frame; a smaller difference is the time between two
 * calls. */
static void note_clocks(struct capture *c)
{
	const int64_t jitter = NSEC_PER_MSEC;

	for (int i = ENV_MONOTONIC + 1; i < NR_ENV_CLOCKS; i++) {
		int64_t offset = env_now(c->inner, i) - env_now(c->inner, ENV_MONOTONIC);

		if (offset - c->offset_ns[i] < jitter && c->offset_ns[i] - offset < jitter)
			continue;
		c->offset_ns[i] = offset;
		write_clock(c, i);
	}
}

static int capture_sleep_until(struct env *env, int64_t deadline_ns)
{
	struct capture *c = capture_of(env);
	int64_t at;
	int r;

	write_frame(c);
	r = env_sleep_until(c->inner, deadline_ns);
	c->frame++;
	/* A play will sleep until the same deadline, and must find the frame there. */
	at = (r && r != -ENODATA ? env_now(c->inner, ENV_MONOTONIC) : deadline_ns) - c->start_ns;
	c->frame_ns = r == -ENODATA ? MAX(at, c->frame_ns) : MAX(at, c->frame_ns + 1);
	if (r == -ENODATA)
		return r;
	buf_addf(&c->out, "frame %lld.%09lld\n", (long long)(c->frame_ns / NSEC_PER_SEC),
		(long long)(c->frame_ns % NSEC_PER_SEC));
	note_clocks(c);
	return r;
}

static const char *capture_getenv(struct env *env, const char *name)
{
	struct capture *c = capture_of(env);
	const char *value = env_getenv(c->inner, name);

	if (value) {
		add_path(&c->variables, "variable", name);
		buf_addch(&c->variables, '=');
		script_escape(&c->variables, value, strlen(value), true);
		buf_addch(&c->variables, '\n');
	}
	return value;
}

/* Counters are identified by what they count. Two that count the same from different times on are one in the
 * film, so they are one here: the second reading in a frame gets the values of the first. */
static int note_counter(struct counter_line *line, int error, const struct env_count *count)
{
	line->dirty |= line->error != error || (!error && memcmp(&line->count, count, sizeof(*count)) != 0);
	line->error = error;
	if (!error)
		line->count = *count;
	return error;
}

static int capture_counter_open(struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct capture *c = capture_of(env);
	struct counter_key key = counter_key_of(attr, pid, cpu);
	ssize_t at = env_counters_find(&c->counters, &key);
	int inner;

	if (at >= 0 && c->counters.line[at].error && c->counters.line[at].frame == c->frame)
		return c->counters.line[at].error;
	inner = env_counter_open(c->inner, attr, pid, cpu);
	if (inner == -ENOENT && at < 0)
		return inner; /* as a film does by itself */
	if (at < 0) {
		at = env_counters_make(&c->counters, &key);
		if (at >= 0)
			c->counters.line[at].dirty = true;
	}
	if (at < 0) {
		env_close(c->inner, inner);
		return (int)at;
	}
	note_counter(&c->counters.line[at], MIN(inner, 0), &c->counters.line[at].count);
	if (inner < 0)
		c->counters.line[at].frame = c->frame;
	return inner < 0 ? inner
			 : new_handle(c, &(struct captured){.inner = inner, .counter = (size_t)at + 1});
}

static int capture_counter_read(struct env *env, int handle, struct env_count *ret)
{
	struct capture *c = capture_of(env);
	struct counter_line *line;

	if (handle < 0 || (size_t)handle >= c->nr_handles || !c->handle[handle].counter)
		return -EBADF;
	line = &c->counters.line[c->handle[handle].counter - 1];
	if (line->frame != c->frame) {
		note_counter(line, env_counter_read(c->inner, c->handle[handle].inner, ret), ret);
		line->frame = c->frame;
	}
	*ret = line->count;
	return line->error;
}

static void *capture_library(struct env *env, const char *name, const char **reterr)
{
	return env_library(capture_of(env)->inner, name, reterr);
}

static void *capture_symbol(struct env *env, void *library, const char *name)
{
	return env_symbol(capture_of(env)->inner, library, name);
}

static void capture_free(struct env *env)
{
	struct capture *c = capture_of(env);
	struct stat st;
	bool regular;

	write_frame(c);
	regular = fstat(fileno(c->file), &st) == 0 && S_ISREG(st.st_mode);
	if ((fclose(c->file) || c->err) && regular)
		unlink(c->path);
	for (size_t i = 0; i < c->nr_handles; i++)
		if (is_open(&c->handle[i]))
			env_close(c->inner, c->handle[i].inner);
	free(c->handle);
	env_counters_release(&c->counters);
	free(c->path);
	files_release(&c->files);
	files_release(&c->written);
	buf_release(&c->removals);
	buf_release(&c->variables);
	buf_release(&c->out);
	env_free(c->inner);
	free(c);
}

static const struct env_ops capture_ops = {
	.open = capture_open,
	.read = capture_read,
	.close = capture_close,
	.size = capture_size,
	.list = capture_list,
	.readlink = capture_readlink,
	.space = capture_space,
	.cpu_clock = capture_cpu_clock,
	.now = capture_now,
	.sleep_until = capture_sleep_until,
	.getenv = capture_getenv,
	.counter_open = capture_counter_open,
	.counter_read = capture_counter_read,
	.library = capture_library,
	.symbol = capture_symbol,
	.free = capture_free,
};

static int open_new(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* It shows other users' processes: readable by its owner only. A file of that name is replaced, not written
 * into: it may have other names or be open elsewhere. A link is not followed. */
static FILE *open_private(const char *path)
{
	int fd = open_new(path);
	struct stat st;
	FILE *file;

	if (fd < 0 && errno == EEXIST && !lstat(path, &st)) {
		if (S_ISREG(st.st_mode))
			fd = unlink(path) < 0 ? -1 : open_new(path);
		else if (S_ISCHR(st.st_mode))
			fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
		else
			errno = S_ISLNK(st.st_mode) ? ELOOP : EEXIST;
	}
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

struct env *env_capture(struct env *inner, const char *path)
{
	struct capture *c = inner ? calloc(1, sizeof(*c)) : NULL;

	if (c) {
		c->path = strdup(path);
		c->file = c->path ? open_private(path) : NULL;
	}
	if (!c || !c->file) {
		int err = errno;

		if (c)
			free(c->path);
		free(c);
		env_free(inner);
		errno = err;
		return NULL;
	}
	c->env = *inner;
	c->env.ops = &capture_ops;
	c->env.live = false;
	c->inner = inner;
	c->frame = 1;
	c->start_ns = env_now(inner, ENV_MONOTONIC);
	for (int i = ENV_MONOTONIC + 1; i < NR_ENV_CLOCKS; i++)
		c->offset_ns[i] = env_now(inner, i) - c->start_ns;
	buf_init(&c->removals, FILE_MAX);
	buf_init(&c->variables, FILE_MAX);
	buf_init(&c->out, FILE_MAX * 8);
	write_header(c);
	return &c->env;
}
