/* Downloads: see files.h. */
#include "serve/files.h"

#include "serve/stream.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MOST 3
#define CHUNK ((size_t)64 << 10)
#define DRAWN_NS (30 * NSEC_PER_SEC)

static const char *name_of(const struct serve_request *q)
{
	const char *path = q->shown->item->about.path, *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static enum MHD_Result send_named(
	struct serve_request *q, struct MHD_Response *r, const char *name, const char *type)
{
	struct buf disposition;

	buf_init(&disposition, 1 << 16);
	serve_disposition(&disposition, name);
	if (r)
		MHD_add_response_header(r, "Content-Disposition", (char *)disposition.data);
	buf_release(&disposition);
	return answer_send(q, MHD_HTTP_OK, type, r);
}

static enum MHD_Result send_nothing(struct serve_request *q)
{
	return answer_say(q, MHD_HTTP_NOT_FOUND, "Not found", "There is no such file here.");
}

/* Takes the descriptor. */
static struct MHD_Response *response_of_file(int fd)
{
	struct MHD_Response *r = NULL;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		r = MHD_create_response_from_fd64((uint64_t)st.st_size, fd);
	if (!r && fd >= 0)
		close(fd);
	return r;
}

/* ---- tar files ---- */

static ssize_t read_tar(void *cls, uint64_t pos, char *to, size_t most)
{
	ssize_t n = tar_read(cls, to, most);

	(void)pos;
	return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_tar(void *cls)
{
	tar_free(cls);
}

static int open_beneath(void *arg, const char *path)
{
	const struct serve *s = arg;

	return roots_get(&s->roots, path, O_RDONLY);
}

/* Regular files of the directory, as they are now. */
static int tar_directory(struct serve *s, struct tar *t, const char *path, const char *name, unsigned depth)
{
	int fd = roots_get(&s->roots, path, O_RDONLY | O_DIRECTORY), r = fd < 0 ? fd : 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (fd >= 0 && !dir)
		close(fd);
	while (dir && r >= 0 && (entry = readdir(dir))) {
		_cleanup_(freep) char *full = NULL, *inside = NULL;
		struct stat st;

		if (*entry->d_name == '.' || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (asprintf(&full, "%s/%s", path, entry->d_name) < 0 ||
			asprintf(&inside, "%s/%s", name, entry->d_name) < 0)
			r = -ENOMEM;
		else if (S_ISREG(st.st_mode))
			r = tar_add(t, inside, full, (uint64_t)st.st_size, st.st_mtim.tv_sec);
		else if (S_ISDIR(st.st_mode) && depth < DEPTH_MOST)
			r = tar_directory(s, t, full, inside, depth + 1);
	}
	if (dir)
		closedir(dir);
	return r;
}

static enum MHD_Result send_tar(struct serve_request *q, struct tar *t, const char *name)
{
	return send_named(q, MHD_create_response_from_callback(tar_size(t), CHUNK, read_tar, t, free_tar),
		name, "application/x-tar");
}

static enum MHD_Result send_directory(struct serve_request *q)
{
	_cleanup_(freep) char *name = NULL;
	struct tar *t = NULL;
	int r = tar_new(open_beneath, q->serve, &t);

	if (r >= 0)
		r = tar_directory(q->serve, t, q->shown->item->about.path, name_of(q), 0);
	if (r >= 0 && asprintf(&name, "%s.tar", name_of(q)) < 0)
		r = -ENOMEM;
	if (r >= 0)
		return send_tar(q, t, name);
	tar_free(t);
	return send_nothing(q);
}

static enum MHD_Result send_recording(struct serve_request *q)
{
	struct MHD_Response *r;

	if (q->shown->item->about.run)
		return send_directory(q);
	r = response_of_file(roots_get(&q->serve->roots, q->shown->item->about.path, O_RDONLY));
	return r ? send_named(q, r, name_of(q), "application/octet-stream") : send_nothing(q);
}

/* ---- what is made ---- */

static const char *type_of(const struct made *m)
{
	static const char *const row[][2] = {
		{".csv", "text/csv; charset=utf-8"},
		{".json", "application/json"},
		{".jsonl", "application/x-ndjson"},
		{".pdf", "application/pdf"},
		{".html", "text/html; charset=utf-8"},
		{".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
		{".sqlite", "application/vnd.sqlite3"},
		{".openmetrics", "application/openmetrics-text; version=1.0.0; charset=utf-8"},
	};
	const char *dot = m->name ? strrchr(m->name, '.') : NULL;

	for (size_t i = 0; dot && i < ARRAY_SIZE(row); i++)
		if (!strcmp(dot, row[i][0]))
			return row[i][1];
	return "application/octet-stream";
}

/* That of the recording, with the ending of what it is now. */
static char *made_name(const struct serve_request *q, const struct made *m)
{
	const char *name = name_of(q), *dot = m->name ? strrchr(m->name, '.') : NULL;
	size_t n = strlen(name), suffix = strlen(RECORDING_SUFFIX);
	char *all = NULL;

	if (n > suffix && !strcmp(name + n - suffix, RECORDING_SUFFIX))
		n -= suffix;
	if (m->tar ? asprintf(&all, "%.*s-%s.tar", (int)n, name, m->format) < 0
		   : asprintf(&all, "%.*s%s", (int)n, name, dot ? dot : "") < 0)
		all = NULL;
	return all;
}

/* Of several files the descriptors live with what was made, and that with the request. */
static enum MHD_Result send_made(struct serve_request *q)
{
	struct made *m = q->made;
	_cleanup_(freep) char *name = made_name(q, m);
	struct MHD_Response *r;
	int fd = m->fd;

	if (m->status || !name)
		return answer_say(q,
			m->status == MHD_HTTP_NOT_FOUND ? MHD_HTTP_NOT_FOUND : MHD_HTTP_INTERNAL_SERVER_ERROR,
			m->status == MHD_HTTP_NOT_FOUND ? "Not found" : "Not made",
			m->trouble ? m->trouble : "It could not be made.");
	if (m->tar)
		return send_named(q,
			MHD_create_response_from_callback(tar_size(m->tar), CHUNK, read_tar, m->tar, NULL),
			name, "application/x-tar");
	m->fd = -1;
	r = response_of_file(fd);
	return r ? send_named(q, r, name, type_of(m)) : send_nothing(q);
}

static enum MHD_Result make(struct serve_request *q)
{
	struct serve *s = q->serve;
	struct stat st;
	bool waits;

	if (!s->o.program || !roots_has(&s->roots, q->shown->item->about.path, &st))
		return send_nothing(q);
	pthread_mutex_lock(&s->lock);
	if (!q->made)
		q->made = make_begin(s, q->shown->item->about.path, q->address.place, q->address.format);
	waits = q->made && !q->made->done;
	if (waits)
		answer_wait(q, INT64_MAX);
	pthread_mutex_unlock(&s->lock);
	return waits ? MHD_YES : q->made ? send_made(q) : send_nothing(q);
}

/* ---- curves ---- */

static enum MHD_Result send_curve(struct serve_request *q)
{
	struct serve *s = q->serve;
	struct catalog_item *item;
	struct shared *svg = NULL;
	bool waits = false;

	pthread_mutex_lock(&s->lock);
	item = catalog_find(s, q->address.id);
	if (item) {
		svg = sketch_get(s, item);
		waits = !svg && serve_now() < q->began_ns + DRAWN_NS;
		if (waits)
			answer_wait(q, q->began_ns + DRAWN_NS);
	}
	pthread_mutex_unlock(&s->lock);
	if (waits)
		return MHD_YES;
	return svg ? answer_send(q, MHD_HTTP_OK, "image/svg+xml",
			     MHD_create_response_from_buffer_with_free_callback_cls(
				     svg->bytes.len, svg->bytes.data, shared_drop, svg))
		   : send_nothing(q);
}

enum MHD_Result files_send(struct serve_request *q)
{
	switch (q->address.place) {
	case PLACE_RECORDING:
		return send_recording(q);
	case PLACE_CURVE:
		return send_curve(q);
	default:
		return make(q);
	}
}

void files_end(struct serve_request *q)
{
	if (q->made)
		make_drop(q->made);
	q->made = NULL;
}
