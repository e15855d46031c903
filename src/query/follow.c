/* Follows a run in progress, line by line: see follow.h. */
#include "query/follow.h"

#include "base/owned.h"
#include "query/run.h"
#include "query/run_directory.h"
#include "store/watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#define LOOK_NS NSEC_PER_SEC	      /* between two looks at a directory */
#define LOOK_ANYWAY_NS (10 * LOOK_NS) /* though its time did not change, which may be coarse */

enum node_state { NODE_YOUNG, NODE_OPEN, NODE_ENDED };

struct follow_node {
	char *path;
	enum node_state state;
	struct store_reader *reader; /* YOUNG: up to the first tick */
	struct store_watch watch;
	char *job;   /* NULL: not told */
	bool waited; /* it was not there at first, or had no tick: all of it is news */
	bool flat;   /* it may be of another job than the one that was asked for */
	struct series *series;
	bool caught_up; /* lines are given as they come */
	bool has_last;	/* before that: the newest so far */
	int64_t last_ns;
	double last[SERIES_MAX];
};

struct directory {
	char *path; /* where recordings are looked for */
	bool flat;  /* not that of a run */
	struct timespec modified;
	int64_t looked_ns, read_ns;
};

struct follow {
	struct follow_query query;
	struct follow_node *node;
	size_t nr, at;
	struct directory *dir;
	size_t nr_dirs;
	const char *unfinished;
};

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* ---- which recordings ---- */

/* Takes the path. `later`: it was not there at first. */
static int node_add(struct follow *f, char *path, struct store_reader *reader, bool later)
{
	struct follow_node *more = path ? reallocarray(f->node, f->nr + 1, sizeof(*more)) : NULL;

	if (!more) {
		free(path);
		store_close(reader);
		return -ENOMEM;
	}
	f->node = more;
	more[f->nr++] = (struct follow_node){.path = path, .reader = reader, .waited = later};
	return 0;
}

static bool is_known(const struct follow *f, const char *path)
{
	for (size_t i = 0; i < f->nr; i++)
		if (!strcmp(f->node[i].path, path))
			return true;
	return false;
}

/* Why a recording, or a directory, cannot be followed. */
static int follow_trouble(const char *path, int error, struct buf *reterr)
{
	buf_reset(reterr);
	buf_addf(reterr, "%s: %s%s", path, strerror(-error),
		error == -EMFILE ? ": every recording that is followed stays open (ulimit -n)" : "");
	return error;
}

static int try_open(const char *path, struct store_reader **ret)
{
	int r = store_open(path, ret);

	return r == -EMFILE || r == -ENFILE || r == -ENOMEM ? r : 0;
}

/* What is no recording may become one: it is tried again. */
static int directory_read(struct follow *f, struct directory *d, bool later)
{
	char **name = NULL;
	size_t nr = 0;
	int r = recordings_in(d->path, &name, &nr);

	for (size_t i = 0; i < nr && r >= 0; i++) {
		struct store_reader *reader = NULL;
		char *path = NULL;

		if (asprintf(&path, "%s/%s", d->path, name[i]) < 0) {
			path = NULL;
			r = -ENOMEM;
		}
		if (path && !is_known(f, path))
			r = try_open(path, &reader);
		if (reader)
			r = node_add(f, TAKE_PTR(path), reader, later);
		if (reader && r >= 0)
			f->node[f->nr - 1].flat = d->flat;
		free(path);
	}
	texts_free(name, nr);
	return r;
}

static int directory_look(struct follow *f, struct directory *d)
{
	int64_t now = monotonic_ns();
	struct stat st;
	bool later;

	if (d->looked_ns && now - d->looked_ns < LOOK_NS)
		return 0;
	d->looked_ns = now;
	if (stat(d->path, &st) < 0)
		return 0; /* it is gone: what is open is read on */
	if (d->read_ns && now - d->read_ns < LOOK_ANYWAY_NS && st.st_mtim.tv_sec == d->modified.tv_sec &&
		st.st_mtim.tv_nsec == d->modified.tv_nsec)
		return 0;
	d->modified = st.st_mtim;
	later = d->read_ns;
	d->read_ns = now;
	return directory_read(f, d, later);
}

/* Of a run its nodes, whose directory may come later. Recordings of several jobs are followed together where
 * no job was asked for: which they are is not known before they are there. */
static int add_directory(struct follow *f, const char *path, struct buf *reterr)
{
	_cleanup_(freep) char *run = NULL;
	struct directory *more;
	char **name = NULL;
	size_t nr = 0;
	int r = recordings_in(path, &name, &nr);

	texts_free(name, nr);
	if (r >= 0)
		r = run_directory_find(path, f->query.job, nr, &run, reterr);
	if (r < 0)
		return r;
	more = reallocarray(f->dir, f->nr_dirs + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->dir = more;
	more[f->nr_dirs] =
		(struct directory){.path = run ? run_directory_nodes(run) : strdup(path), .flat = !run};
	if (!more[f->nr_dirs].path)
		return -ENOMEM;
	return directory_look(f, &f->dir[f->nr_dirs++]);
}

static int add_path(struct follow *f, const char *path, struct buf *reterr)
{
	struct store_reader *reader = NULL;
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return add_directory(f, path, reterr);
	r = S_ISREG(st.st_mode) ? store_open(path, &reader) : -EBADMSG;
	if (r >= 0 && is_known(f, path))
		reader = store_close(reader);
	return r < 0 || !reader ? r : node_add(f, strdup(path), reader, false);
}

/* ---- one of them ---- */

static void node_end(struct follow *f, struct follow_node *n, bool complete)
{
	n->state = NODE_ENDED;
	if (!complete && !f->unfinished)
		f->unfinished = n->path;
	n->reader = store_close(n->reader);
}

static int node_open(struct follow *f, struct follow_node *n, struct buf *reterr)
{
	bool end = !f->query.from_start && !n->waited;
	int r;

	n->reader = store_close(n->reader);
	r = series_open(n->path, &f->query.series, &n->series, reterr);
	if (r < 0)
		return r;
	if (f->query.from_start && f->query.from_s > 0)
		r = series_range(n->series, round_i64(MIN(f->query.from_s, 9e9) * 1e9), INT64_MAX);
	if (r >= 0)
		r = series_follow(n->series, n->path, end);
	n->caught_up = !end;
	n->state = NODE_OPEN;
	return r;
}

/* Is the recorder on this machine? */
static void take_meta(struct follow_node *n, const struct pairs *meta)
{
	const struct pair *host = pairs_find(meta, "host"), *job = pairs_find(meta, "scheduler.job_id");
	struct utsname self;

	if (job) {
		free(n->job);
		n->job = strndup(job->value, job->len);
	}
	if (host && uname(&self) == 0 && host->len == strlen(self.nodename))
		n->watch.local = !memcmp(self.nodename, host->value, host->len);
}

static bool is_foreign(const struct follow *f, const struct follow_node *n)
{
	return f->query.job && n->flat && (!n->job || strcmp(n->job, f->query.job));
}

/* Reads up to the first tick: then all is known that is wanted to begin. 1: it is open, FOLLOW_WAIT, 0: it
 * ended before. */
static int young_next(struct follow *f, struct follow_node *n, struct buf *reterr)
{
	struct store_record record;
	int r;

	n->watch.path = n->path;
	if (n->waited) {
		r = store_watch(&n->watch, n->reader);
		if (r != WATCH_MORE)
			goto no_more;
	}
	do {
		while ((r = store_next(n->reader, &record)) > 0) {
			if (record.type == STORE_META)
				take_meta(n, record.pairs);
			if (record.type == STORE_TICK && is_foreign(f, n)) {
				node_end(f, n, true);
				return 0;
			}
			if (record.type == STORE_TICK) {
				r = node_open(f, n, reterr);
				return r < 0 ? r : 1;
			}
		}
		if (r >= 0)
			r = store_watch(&n->watch, n->reader);
	} while (r == WATCH_MORE);
no_more:
	n->waited = true;
	if (r == WATCH_END)
		node_end(f, n, store_reader_complete(n->reader));
	return r == WATCH_WAIT ? FOLLOW_WAIT : r;
}

static int line_of(const struct follow *f, const struct follow_node *n, int64_t time_ns, const double *value,
	struct follow_line *ret)
{
	*ret = (struct follow_line){
		.series = n->series, .node = (size_t)(n - f->node), .time_ns = time_ns, .value = value};
	return 1;
}

/* Something would have to be known that was passed over. */
static int node_open_whole(struct follow *f, struct follow_node *n, struct buf *reterr)
{
	struct follow_query as_asked = f->query;
	int r;

	n->series = series_close(n->series);
	f->query.series.whole = true;
	r = node_open(f, n, reterr);
	f->query = as_asked;
	return r;
}

/* 1 and a line, FOLLOW_WAIT, 0: it has ended. */
static int node_next(struct follow *f, struct follow_node *n, struct follow_line *ret, struct buf *reterr)
{
	const struct series_column *column;
	struct series_point point;
	int r = n->state == NODE_YOUNG ? young_next(f, n, reterr) : 1;

	if (r != 1)
		return r;
	while ((r = series_next(n->series, &point)) == 1 || r == -EAGAIN) {
		if (r == -EAGAIN) {
			r = node_open_whole(f, n, reterr);
			if (r < 0)
				return r;
			continue;
		}
		if (n->caught_up)
			return line_of(f, n, point.time_ns, point.value, ret);
		n->has_last = true;
		n->last_ns = point.time_ns;
		memcpy(n->last, point.value, series_columns(n->series, &column) * sizeof(*n->last));
	}
	if (r == 0)
		node_end(f, n, series_complete(n->series));
	if (r < 0)
		return r;
	n->caught_up = true;
	if (!n->has_last)
		return r;
	n->has_last = false;
	return line_of(f, n, n->last_ns, n->last, ret);
}

/* ---- all ---- */

int follow_next(struct follow *f, struct follow_line *ret, struct buf *reterr)
{
	bool waits = !f->nr;

	for (size_t i = 0; i < f->nr; i++, f->at = (f->at + 1) % f->nr) {
		struct follow_node *n = &f->node[f->at];
		int r = n->state == NODE_ENDED ? 0 : node_next(f, n, ret, reterr);

		if (r == -ESTALE)
			buf_addf(reterr, "%s was replaced or cut while it was followed", n->path);
		else if (r == -EMFILE || (r < 0 && !reterr->len))
			follow_trouble(n->path, r, reterr);
		if (r < 0 || r == 1)
			return r;
		waits |= r == FOLLOW_WAIT;
	}
	for (size_t i = 0, nr = f->nr; i < f->nr_dirs; i++) {
		int r = directory_look(f, &f->dir[i]);

		if (r < 0)
			return follow_trouble(f->dir[i].path, r, reterr);
		waits |= f->nr > nr;
	}
	return waits ? FOLLOW_WAIT : 0;
}

int follow_open(const char *const *path, size_t nr, const struct follow_query *q, struct follow **ret,
	struct buf *reterr)
{
	struct follow *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (r >= 0)
		f->query = *q;
	for (size_t i = 0; i < nr && r >= 0; i++) {
		r = add_path(f, path[i], reterr);
		if (r < 0 && reterr->len)
			continue;
		if (r == -EBADMSG)
			buf_addf(reterr, "%s is not a recording", path[i]);
		else if (r < 0)
			follow_trouble(path[i], r, reterr);
	}
	if (r < 0) {
		follow_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct follow *follow_close(struct follow *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->nr; i++) {
		store_close(f->node[i].reader);
		series_close(f->node[i].series);
		free(f->node[i].path);
		free(f->node[i].job);
	}
	for (size_t i = 0; i < f->nr_dirs; i++)
		free(f->dir[i].path);
	free(f->node);
	free(f->dir);
	free(f);
	return NULL;
}

const char *follow_unfinished(const struct follow *f)
{
	return f->unfinished;
}

size_t follow_nr(const struct follow *f)
{
	return f->nr;
}
