/* TensorBoard: an event file in a directory that it looks at, to which a run in progress is appended. Each
 * recording is a run of the page: DIR/NAME/events.out.tfevents.SECONDS.HOST.NANOSECONDS, by its start.
 *
 * What is in the file is what was sent: at the start it is read to its last whole record, cut there, and of
 * each tag only what is later than its last value is written. So a pusher that was killed at any moment
 * leaves neither a gap nor a value twice. */
#include "base/idmap.h"
#include "base/owned.h"
#include "base/str.h"
#include "export/tfevents.h"
#include "push/sink.h"
#include "push/state.h"
#include "query/run.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define NOTE_FILE "file" /* in DIR */
#define NOTE_LENGTH "length"

struct tb_tag {
	char *name;
	double last; /* time of its last value */
};

struct tb_file { /* of a recording */
	unsigned node;
	int fd; /* -1: not open yet */
	int64_t len;
	char *path;
	struct tb_tag *tag;
	size_t nr_tags;
	struct idmap of_tag; /* by hash of the name */
};

struct board {
	struct push *push;
	char *dir;
	struct tb_file *file;
	size_t nr_files;
	struct tfevents events;
	struct buf out;
};

/* ---- where ---- */

static char *beside_recording(const struct push_run *run)
{
	const char *path = run->nr ? run->path[0] : "run";
	size_t n = strlen(path), suffix = strlen(RECORDING_SUFFIX);
	char *dir;

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n > suffix && !memcmp(path + n - suffix, RECORDING_SUFFIX, suffix))
		n -= suffix;
	return asprintf(&dir, "%.*s-tensorboard", (int)n, path) < 0 ? NULL : dir;
}

/* From the root, so that it is known again from another directory. */
static char *absolute(const char *path)
{
	char here[PATH_MAX], *full;

	if (*path == '/' || !getcwd(here, sizeof(here)))
		return strdup(path);
	return asprintf(&full, "%s/%s", here, path) < 0 ? NULL : full;
}

static int find_directory(const struct push *p, char **ret, struct buf *reterr)
{
	const char *url = p->options->url;
	_cleanup_(freep) char *beside = NULL;

	if (url && strstr(url, "://")) {
		buf_adds(reterr, "TensorBoard reads files: give a directory, --to tensorboard=DIR");
		return -EINVAL;
	}
	if (!url || !*url)
		url = beside = beside_recording(p->run);
	*ret = url ? absolute(url) : NULL;
	return *ret ? 0 : -ENOMEM;
}

static int tensorboard_address(const struct push *p, char *ret, size_t size, struct buf *reterr)
{
	_cleanup_(freep) char *dir = NULL;
	int r = find_directory(p, &dir, reterr);

	if (r < 0)
		return r;
	if (snprintf(ret, size, "%s", dir) < (int)size)
		return 0;
	buf_adds(reterr, "the path of the directory is too long");
	return -EINVAL;
}

/* "job/events.out.tfevents.1700000000.n1.123456789". */
static char *name_of_file(const struct push_state *s)
{
	const char *slash = strrchr(s->recording, '/'), *stem = slash ? slash + 1 : s->recording;
	size_t n = strlen(stem), suffix = strlen(RECORDING_SUFFIX);
	int64_t second = s->start_ns / NSEC_PER_SEC;
	char *name;

	if (n > suffix && !strcmp(stem + n - suffix, RECORDING_SUFFIX))
		n -= suffix;
	if (asprintf(&name, "%.*s/events.out.tfevents.%010lld.%s.%09lld", (int)n, stem, (long long)second,
		    s->host && *s->host ? s->host : "host",
		    (long long)(s->start_ns - second * NSEC_PER_SEC)) < 0)
		return NULL;
	for (char *p = name + n + 1; *p; p++) /* a host may be called anything */
		if (*p == '/')
			*p = '_';
	return name;
}

/* ---- what is in a file ---- */

static struct tb_tag *tag_of(struct tb_file *f, const char *name, size_t len)
{
	uint64_t key = hash_bytes(name, len);
	struct tb_tag *t;
	uint32_t at;

	for (; (at = idmap_get(&f->of_tag, key)) != IDMAP_NONE; key++)
		if (!strncmp(f->tag[at].name, name, len) && !f->tag[at].name[len])
			return &f->tag[at];
	t = ARRAY_ADD(f->tag, f->nr_tags);
	if (!t || !(t->name = strndup(name, len)) ||
		idmap_put(&f->of_tag, key, (uint32_t)f->nr_tags - 1) < 0) {
		f->nr_tags -= t != NULL;
		if (t)
			free(t->name);
		return NULL;
	}
	t->last = -INFINITY;
	return t;
}

static int take_value(void *arg, const char *name, size_t len, double time, int64_t step)
{
	struct tb_tag *t = memchr(name, 0, len) ? NULL : tag_of(arg, name, len);

	(void)step;
	if (!t)
		return memchr(name, 0, len) ? 0 : -ENOMEM;
	t->last = known_max(t->last, time);
	return 0;
}

static int read_file(struct tb_file *f)
{
	struct stat st;
	void *data;

	if (fstat(f->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (!st.st_size)
		return 0;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, f->fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	f->len = tfevents_read(data, (size_t)st.st_size, take_value, f);
	munmap(data, (size_t)st.st_size);
	if (f->len < 0)
		return (int)f->len;
	return ftruncate(f->fd, f->len) < 0 ? -errno : 0;
}

static void file_release(struct tb_file *f)
{
	closep(&f->fd);
	for (size_t i = 0; i < f->nr_tags; i++)
		free(f->tag[i].name);
	free(f->tag);
	free(f->path);
	idmap_release(&f->of_tag);
}

/* ---- opening one ---- */

static void trouble(struct push_answer *ret, const char *path, int error)
{
	*ret = (struct push_answer){
		.outcome = error == -ENOSPC || error == -EDQUOT || error == -ENOMEM || error == -EIO
			? PUSH_LATER
			: PUSH_FATAL};
	snprintf(ret->why, sizeof(ret->why), "%.400s: %s%s", path, strerror(-error),
		ret->outcome == PUSH_FATAL ? "; --to tensorboard=DIR chooses another place" : "");
}

/* A file that is shorter than what was noted lacks what will not come again. */
static bool has_lost(const struct tb_file *f, const struct push_state *from, struct push_answer *ret)
{
	const char *noted = push_note(from, NOTE_LENGTH);
	int64_t len;

	if (!noted || !parse_i64n(noted, strlen(noted), &len) || f->len >= len)
		return false;
	*ret = (struct push_answer){.outcome = PUSH_FATAL};
	snprintf(ret->why, sizeof(ret->why),
		"%.250s was removed or cut: remove %.250s, and all of it is written anew", f->path,
		from->path);
	return true;
}

/* As name_of_file() makes them, of whatever recording: never out of the directory, and never another file. */
static bool is_name_of_file(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash && slash > name && memchr(name, '/', strlen(name)) == slash &&
		strncmp(name, "../", 3) != 0 && str_starts(slash + 1, "events.out.tfevents.");
}

static bool open_file(struct board *t, struct tb_file *f, struct push_state *from, struct push_answer *ret)
{
	const char *noted = push_note(from, NOTE_FILE);
	_cleanup_(freep) char *name = noted && is_name_of_file(noted) ? strdup(noted) : name_of_file(from);
	int r;

	free(f->path);
	if (!name || asprintf(&f->path, "%s/%s", t->dir, name) < 0) {
		f->path = NULL;
		trouble(ret, t->dir, -ENOMEM);
		return false;
	}
	push_make_directories(f->path);
	f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = f->fd < 0 ? -errno : push_note_set(from, NOTE_FILE, name);
	if (r >= 0 && !from->nr_positions) /* nothing of it was sent: it is written anew */
		r = ftruncate(f->fd, 0) < 0 ? -errno : 0;
	if (r >= 0)
		r = read_file(f);
	if (r < 0)
		trouble(ret, f->path, r);
	if (r >= 0 && !has_lost(f, from, ret))
		return true;
	closep(&f->fd);
	f->fd = -1;
	return false;
}

static struct tb_file *file_of(struct board *t, unsigned node, struct push_answer *ret)
{
	struct tb_file *f = NULL;

	for (size_t i = 0; i < t->nr_files && !f; i++)
		if (t->file[i].node == node)
			f = &t->file[i];
	if (!f) {
		f = ARRAY_ADD(t->file, t->nr_files);
		if (!f) {
			trouble(ret, t->dir, -ENOMEM);
			return NULL;
		}
		*f = (struct tb_file){.node = node, .fd = -1};
	}
	return f->fd >= 0 || open_file(t, f, t->push->from, ret) ? f : NULL;
}

/* ---- writing ---- */

static const char *tag_of_series(struct board *t, struct push_series *s)
{
	const char *prefix = t->push->options->prefix;
	struct buf text;

	if (s->own)
		return s->own;
	buf_init(&text, 1 << 16);
	buf_adds(&text, prefix ? prefix : "");
	tfevents_tag(&text, s->table, s->name, s->instance, s->pid);
	if (text.err)
		buf_release(&text);
	else
		s->own = text.data;
	return s->own;
}

/* The values that are not in the file, as records. */
static int encode(struct board *t, struct tb_file *f, struct push_point *point, size_t nr)
{
	if (!f->len)
		tfevents_begin(&t->events, &t->out, t->push->from->start_ns);
	for (size_t i = 0; i < nr; i++) {
		const struct push_point *p = &point[i];
		const char *name = tag_of_series(t, p->series);
		struct tb_tag *tag = name ? tag_of(f, name, strlen(name)) : NULL;

		if (!tag)
			return -ENOMEM;
		if (tfevents_time(p->time_ns) > tag->last)
			tfevents_add(&t->events, &t->out, name, p->time_ns, p->step, p->value);
	}
	tfevents_end(&t->events, &t->out);
	return t->out.err;
}

static int append(struct tb_file *f, const struct buf *out)
{
	for (size_t done = 0; done < out->len;) {
		ssize_t n = pwrite(f->fd, out->data + done, out->len - done, f->len + (int64_t)done);

		if (n < 0 && errno != EINTR) {
			int r = -errno;

			return ftruncate(f->fd, f->len) < 0 ? -EIO : r;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	f->len += (int64_t)out->len;
	return 0;
}

static void tensorboard_send(void *s, struct push_point *point, size_t nr, struct push_answer *ret)
{
	struct board *t = s;
	struct tb_file *f = file_of(t, point[0].series->node, ret);
	char length[24];
	int r;

	if (!f)
		return;
	buf_reset(&t->out);
	r = encode(t, f, point, nr);
	if (r >= 0)
		r = append(f, &t->out);
	if (r < 0) {
		trouble(ret, f->path, r);
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		const char *name = point[i].series->own;
		struct tb_tag *tag = tag_of(f, name, strlen(name));

		tag->last = known_max(tag->last, tfevents_time(point[i].time_ns));
	}
	snprintf(length, sizeof(length), "%lld", (long long)f->len);
	push_note_set(t->push->from, NOTE_LENGTH, length);
	push_answer_sent(ret);
}

static void tensorboard_show(void *s, struct push_point *point, size_t nr, struct buf *out)
{
	for (size_t i = 0; i < nr; i++)
		buf_addf(out, "%s step=%lld wall_time=%.6f %.9g\n", tag_of_series(s, point[i].series),
			(long long)point[i].step, tfevents_time(point[i].time_ns), point[i].value);
}

static void tensorboard_where(void *s, struct buf *out)
{
	const struct board *t = s;

	buf_adds(out, "tensorboard --logdir ");
	add_shell_word(out, t->dir, strlen(t->dir));
}

static void tensorboard_close(void *s)
{
	struct board *t = s;

	for (size_t i = 0; i < t->nr_files; i++)
		file_release(&t->file[i]);
	free(t->file);
	free(t->dir);
	tfevents_release(&t->events);
	buf_release(&t->out);
	free(t);
}

static int tensorboard_open(struct push *p, void **ret, struct buf *reterr)
{
	struct board *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->push = p;
	tfevents_init(&t->events);
	buf_init(&t->out, 256 << 20);
	r = find_directory(p, &t->dir, reterr);
	if (r < 0) {
		tensorboard_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

const struct push_sink push_tensorboard = {
	.name = "tensorboard",
	.help = "TensorBoard: an event file that it reads, also while it grows",
	.url_help = "a directory; else NAME-tensorboard beside the recording",
	.rates = true,
	.is_file = true,
	.address = tensorboard_address,
	.open = tensorboard_open,
	.send = tensorboard_send,
	.show = tensorboard_show,
	.where = tensorboard_where,
	.close = tensorboard_close,
};
