/* The run log of a recording in progress: `--run-log FILE`. Lines are made of what the recording is told
 * (query/runlog), when it is told. Each is written by one write(2) to the end of the file, so it is there as
 * a whole or not at all. Trouble with the file never reaches the job: it is said once. */
#include "cmd/record.h"

#include "cmd/cmd.h"
#include "text/runlog.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define LINE_MOST ((size_t)1 << 20)
#define LINE_FIRST ((size_t)1 << 16)  /* reserved, so that nothing is allocated for usual lines */
#define HELD_MOST ((size_t)512 << 10) /* before the entry `start`, which waits for the hardware */

struct record_log {
	struct runlog *log;
	struct sink next;
	struct table *const *table; /* of the tick */
	struct buf path, line, held;
	int fd;
	bool is_new, started;
	bool torn; /* the file does not end with a newline */
	int error; /* of the first line that is missing */
	uint64_t nr_missing;
};

/* ---- the file ---- */

static bool ends_torn(int fd, const struct stat *st)
{
	char last;

	return st->st_size > 0 && (pread(fd, &last, 1, st->st_size - 1) != 1 || last != '\n');
}

/* The one that is being made, which may be empty still, or another. */
static bool is_recording(int fd, const struct stat *st, const char *recording)
{
	static const uint8_t magic[] = {0xd5, 'T', 'C', '1'}; /* docs/format.md */
	uint8_t first[sizeof(magic)];
	struct stat ours;

	if (stat(recording, &ours) == 0 && ours.st_dev == st->st_dev && ours.st_ino == st->st_ino)
		return true;
	return pread(fd, first, sizeof(first), 0) == (ssize_t)sizeof(first) &&
		!memcmp(first, magic, sizeof(magic));
}

/* -EBADF: it is no regular file, and writing could block. -EEXIST: it is a recording. */
static int open_file(struct record_log *l, const char *recording)
{
	static const int flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	const char *path = (char *)l->path.data;
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return -EBADF;
	l->fd = open(path, O_RDWR | flags, 0600);
	if (l->fd < 0 && errno == EACCES)
		l->fd = open(path, O_WRONLY | flags, 0600);
	if (l->fd < 0)
		return -errno;
	if (fstat(l->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADF;
	if (is_recording(l->fd, &st, recording))
		return -EEXIST;
	l->is_new = !st.st_size;
	l->torn = ends_torn(l->fd, &st);
	return 0;
}

/* A part of a line is worse than none. True: it is gone again. Not done where another has written behind it.
 */
static bool take_back(int fd, ssize_t n)
{
	off_t end = lseek(fd, 0, SEEK_CUR);
	struct stat st;

	return end >= n && fstat(fd, &st) == 0 && st.st_size == end && ftruncate(fd, end - n) == 0;
}

/* Why only a part of a line was written: no call says it. */
static int why_short(int fd)
{
	struct rlimit limit;
	struct stat st;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && fstat(fd, &st) == 0 &&
			(rlim_t)st.st_size >= limit.rlim_cur
		? EFBIG
		: ENOSPC;
}

static void write_line(struct record_log *l, const struct buf *line)
{
	ssize_t n;

	do
		n = line->err ? -1 : write(l->fd, line->data, line->len);
	while (n < 0 && !line->err && errno == EINTR);
	if (n == (ssize_t)line->len) {
		l->torn = false;
		return;
	}
	if (!l->nr_missing++)
		l->error = line->err ? -line->err : n < 0 ? errno : why_short(l->fd);
	if (n > 0 && !take_back(l->fd, n))
		l->torn = true;
}

/* Those that waited, each by itself. */
static void write_held(struct record_log *l)
{
	for (size_t at = 0; at < l->held.len;) {
		const uint8_t *line = l->held.data + at;
		size_t len = (size_t)((const uint8_t *)memchr(line, '\n', l->held.len - at) - line) + 1;

		buf_reset(&l->line);
		if (l->torn)
			buf_addch(&l->line, '\n');
		buf_add(&l->line, line, len);
		write_line(l, &l->line);
		at += len;
	}
	buf_release(&l->held);
	buf_init(&l->held, HELD_MOST);
}

static int take_entry(void *arg, const struct runlog *log, const struct runlog_entry *e)
{
	struct record_log *l = arg;
	bool is_start = !l->started && !strcmp(e->kind, "start") && !e->of_job;
	size_t before = l->held.len;

	if (!l->started && !is_start) {
		runlog_json(log, e, NULL, &l->held);
		if (!l->held.err)
			return 0;
		l->held.len = before; /* it does not fit: the start is told with what is known */
		l->held.err = 0;
		runlog_start(l->log);
	}
	buf_reset(&l->line);
	if (l->torn)
		buf_addch(&l->line, '\n');
	runlog_json(log, e, NULL, &l->line);
	l->started = true;
	write_line(l, &l->line);
	if (is_start)
		write_held(l);
	return 0;
}

/* ---- what the recording is told ---- */

static void log_instance(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *identity)
{
	struct record_log *l = arg;

	l->next.instance(l->next.arg, set, row, id, time_ns, identity);
	if (l->log && row != STORE_NO_ROW)
		runlog_instance(l->log, set, row, identity);
}

static void log_gone(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *last)
{
	struct record_log *l = arg;

	l->next.gone(l->next.arg, set, row, id, time_ns, last);
}

static void log_event(void *arg, int64_t time_ns, const char *kind, const struct pairs *data)
{
	struct record_log *l = arg;

	l->next.event(l->next.arg, time_ns, kind, data);
	if (l->log)
		runlog_event(l->log, time_ns, kind, data);
}

static struct table *live_table(const void *arg, uint32_t set)
{
	return ((const struct record_log *)arg)->table[set];
}

static void log_tick(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	struct record_log *l = arg;

	l->next.tick(l->next.arg, number, time_ns, at, table);
	l->table = table;
	if (l->log)
		runlog_tick(l->log, time_ns, live_table, l);
}

static void log_flush(void *arg)
{
	struct record_log *l = arg;

	l->next.flush(l->next.arg);
}

static void log_schema(void *arg, const struct schema *schema)
{
	struct record_log *l = arg;

	l->next.schema(l->next.arg, schema);
	if (l->log)
		runlog_bind(l->log, schema);
}

/* ---- the recorder's side ---- */

static void forget(struct record_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->log = runlog_free(l->log);
	buf_release(&l->line);
	buf_release(&l->held);
}

struct sink record_log_sink(struct recording *r, struct sink next)
{
	struct record_log *l = r->opt->run_log ? calloc(1, sizeof(*l)) : NULL;

	if (!l)
		return next;
	l->next = next;
	l->fd = -1;
	r->log = l;
	return (struct sink){
		l, log_instance, log_gone, log_event, log_tick, log_flush, next.schema ? log_schema : NULL};
}

static int find_name(struct recording *r, struct record_log *l)
{
	struct output_names names = {.name = r->opt->name,
		.command = r->argc ? r->argv[0] : NULL,
		.wall_ns = env_now(r->env, ENV_REALTIME)};
	struct buf err;
	int e;

	buf_init(&l->path, 8192);
	buf_init(&err, 4096);
	e = output_path(r->opt->run_log, &names, &l->path, &err);
	if (err.len)
		die(EXIT_OWN, "--run-log: %s", (char *)err.data);
	buf_release(&err);
	if (e == OUTPUT_MADE) { /* a directory, in which a recording would get a name */
		buf_reset(&l->path);
		buf_adds(&l->path, r->opt->run_log);
		return -EISDIR;
	}
	return e < 0 ? e : make_parents((char *)l->path.data);
}

void record_log_open(struct recording *r)
{
	struct record_log *l = r->log;
	int e;

	if (!l)
		return;
	e = find_name(r, l);
	if (e >= 0)
		e = open_file(l, (char *)r->path.data);
	buf_init(&l->line, LINE_MOST);
	buf_init(&l->held, HELD_MOST);
	if (e >= 0 && !buf_reserve(&l->line, LINE_FIRST))
		e = -ENOMEM;
	if (e >= 0)
		e = runlog_new(take_entry, l, &l->log);
	if (e >= 0)
		e = runlog_bind(l->log, engine_schema(r->engine));
	if (e >= 0) {
		record_watch_avoid(r, (char *)l->path.data, "run log");
		return;
	}
	if (e == -EEXIST && r->strict && !r->attach) {
		record_discard(r);
		die(EXIT_OWN,
			"the job was not started (--strict), because no run log can be written: %s is a "
			"recording",
			(char *)l->path.data);
	}
	if (e == -EEXIST)
		warning("no run log is written: %s is a recording", (char *)l->path.data);
	else if (e == -EBADF)
		warning("no run log is written: %s is not a regular file: name one, and read it with tail -f",
			(char *)l->path.data);
	else if (e == -EISDIR)
		warning("no run log is written: %s is a directory: name a file in it", (char *)l->path.data);
	else
		warning("no run log is written: %s: %s", (char *)l->path.data, strerror(-e));
	forget(l);
}

void record_log_meta(struct recording *r, const struct pairs *meta)
{
	if (r->log && r->log->log)
		runlog_meta(r->log->log, meta);
}

void record_log_described(struct recording *r)
{
	if (r->log && r->log->log)
		runlog_start(r->log->log);
}

static bool read_resources(const char *path, struct resources *ret)
{
	struct run *run = NULL;
	struct buf err;
	bool known;

	buf_init(&err, 4096);
	known = run_open(&path, 1, &run, &err) >= 0 && resources_read(run, ret, &err) >= 0;
	run_close(run);
	buf_release(&err);
	return known;
}

void record_log_end(struct recording *r, const struct pairs *ending)
{
	struct record_log *l = r->log;
	struct resources resources;
	struct stat st;
	bool known;

	if (!l || !l->log)
		return;
	known = read_resources((char *)r->path.data, &resources);
	runlog_end(l->log, ending, known ? &resources : NULL);
	if (l->nr_missing)
		warning("the run log %s is incomplete: %llu line%s missing: %s", (char *)l->path.data,
			(unsigned long long)l->nr_missing, l->nr_missing == 1 ? " is" : "s are",
			why_not_written(l->error));
	else if (fstat(l->fd, &st) == 0 && !st.st_nlink)
		warning("the run log %s was removed while it was written; tacho export --to runlog writes "
			"its lines once more",
			(char *)l->path.data);
	forget(l);
}

void record_log_discard(struct recording *r)
{
	struct record_log *l = r->log;

	if (!l || !l->log)
		return;
	if (l->is_new && !l->started)
		unlink((char *)l->path.data);
	forget(l);
}
