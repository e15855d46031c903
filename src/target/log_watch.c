/* Following logs: see log_watch.h. A look costs a stat of each name, and what has come is read in pieces. It
 * is over when it has used its CPU time: what is left is read by the next.
 * Regular files only, so that nothing here can wait: a FIFO or a device of that name is left alone. */
#include "target/log_watch.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PIECE 16384
/* A log that is so far ahead is not read in full: its newest part is. */
#define BEHIND_MOST ((off_t)16 << 20)
#define FINISH_MOST ((size_t)16 << 20)
#define FINISH_NS (200 * NSEC_PER_MSEC)
static void give_up(struct log_watch *w, unsigned pattern)
{
	for (unsigned i = 0; i < w->nr_files; i++)
		w->file[i].pattern[pattern].given_up = true;
}

/* False: the time for this look is over. */
static bool line_done(struct log_watch *w, struct log_file *f, log_take_fn *take, void *arg)
{
	bool empty = !f->len;

	f->line[f->len] = 0;
	for (unsigned i = 0; i < w->nr_patterns && !empty; i++) {
		if (f->pattern[i].given_up)
			continue;
		log_pattern_match(&f->pattern[i], f->line, f->len, take, arg);
		if (f->pattern[i].given_up)
			give_up(w, i);
	}
	f->len = 0;
	return empty || log_spent_ns() < w->until_ns;
}

/* What does not fit is not looked at; a carriage return ends a line, too (progress bars). Returns how many
 * bytes were taken: fewer than n when the time is over. */
static size_t take_bytes(
	struct log_watch *w, struct log_file *f, const char *bytes, size_t n, log_take_fn *take, void *arg)
{
	for (size_t i = 0; i < n; i++) {
		bool ends = bytes[i] == '\n' || bytes[i] == '\r';

		if (ends && !line_done(w, f, take, arg))
			return i + 1;
		if (!ends && f->len < LOG_LINE)
			f->line[f->len++] = bytes[i];
	}
	return n;
}

/* Of what is read: a file that has been rewritten meanwhile is noticed by the next look. */
static void keep_head(struct log_file *f, const char *bytes, size_t n)
{
	n = f->at == (off_t)f->head_len ? MIN(n, LOG_HEAD - f->head_len) : 0;
	memcpy(f->head + f->head_len, bytes, n);
	f->head_len += n;
}

/* Reads at most so many bytes; true when there may be more. */
static bool read_on(struct log_watch *w, struct log_file *f, size_t most, log_take_fn *take, void *arg)
{
	char piece[PIECE];

	while (most && log_spent_ns() < w->until_ns) {
		ssize_t n = pread(f->fd, piece, MIN(sizeof(piece), most), f->at);

		if (n <= 0)
			return false;
		n = (ssize_t)take_bytes(w, f, piece, (size_t)n, take, arg);
		keep_head(f, piece, (size_t)n);
		f->at += n;
		most -= (size_t)n;
	}
	return true;
}

static void let_go(struct log_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	f->len = 0;
}

static bool is_avoided(const struct log_watch *w, const struct stat *st)
{
	for (unsigned i = 0; i < w->nr_avoided; i++)
		if (w->avoided[i].dev == st->st_dev && w->avoided[i].ino == st->st_ino)
			return true;
	return false;
}

static bool file_open(const struct log_watch *w, struct log_file *f, const struct stat *named)
{
	struct stat st;

	if (!S_ISREG(named->st_mode))
		return false;
	f->fd = open(f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	f->error = f->fd < 0 ? errno : 0;
	if (f->fd < 0)
		return false;
	f->ours = is_avoided(w, named);
	if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode) || is_avoided(w, &st)) {
		let_go(f);
		return false;
	}
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->at = 0;
	f->head_len = 0;
	f->appeared = true;
	return true;
}

/* What was read of the beginning is not there any more: the file was rewritten, perhaps with as many bytes.
 * Zeros are room that its writer has reserved. */
static bool is_rewritten(const struct log_file *f)
{
	char now[LOG_HEAD];
	ssize_t n = f->head_len ? pread(f->fd, now, f->head_len, 0) : 0;

	for (ssize_t i = 0; i < n; i++)
		if (now[i] != f->head[i] && f->head[i])
			return true;
	return n >= 0 && (size_t)n < f->head_len;
}

/* It was cut off, or is written anew; or it is so far ahead that some of it is passed over. */
static void adjust(struct log_watch *w, struct log_file *f, log_take_fn *take, void *arg)
{
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return;
	if (st.st_size < f->at || is_rewritten(f)) {
		line_done(w, f, take, arg); /* a status file may have no newline at its end */
		f->at = 0;
		f->head_len = 0;
	}
	if (st.st_size - f->at > BEHIND_MOST) {
		w->skipped += (uint64_t)(st.st_size - BEHIND_MOST / 16 - f->at);
		f->at = st.st_size - BEHIND_MOST / 16;
		f->len = 0;
	}
}

static void look_at(struct log_watch *w, struct log_file *f, size_t most, log_take_fn *take, void *arg)
{
	struct stat named;
	bool there = stat(f->path, &named) == 0;

	if (f->fd < 0 && (!there || !file_open(w, f, &named)))
		return;
	adjust(w, f, take, arg);
	if (read_on(w, f, most, take, arg) || !there || (named.st_dev == f->dev && named.st_ino == f->ino))
		return;
	/* The old one is read to its end, and another has its name. */
	line_done(w, f, take, arg);
	let_go(f);
	if (file_open(w, f, &named))
		read_on(w, f, most, take, arg);
}

const char *log_watch_avoid(struct log_watch *w, const struct stat *ours)
{
	struct stat st;

	if (w->nr_avoided < LOG_AVOIDED) {
		w->avoided[w->nr_avoided].dev = ours->st_dev;
		w->avoided[w->nr_avoided++].ino = ours->st_ino;
	}
	for (unsigned i = 0; i < w->nr_files; i++)
		if (stat(w->file[i].path, &st) == 0 && is_avoided(w, &st))
			return w->file[i].path;
	return NULL;
}

/* Each time another file is the first: one that takes all the time does not keep the others from being read.
 */
void log_watch_look(struct log_watch *w, size_t most, int64_t most_ns, log_take_fn *take, void *arg)
{
	unsigned first = w->nr_looks++;

	w->until_ns = log_spent_ns() + most_ns;
	for (unsigned i = 0; i < w->nr_files; i++)
		look_at(w, &w->file[(first + i) % w->nr_files], most, take, arg);
}

void log_watch_finish(struct log_watch *w, log_take_fn *take, void *arg)
{
	struct stat st;

	log_watch_look(w, FINISH_MOST, FINISH_NS, take, arg);
	for (unsigned i = 0; i < w->nr_files; i++) {
		struct log_file *f = &w->file[i];

		if (f->fd < 0)
			continue;
		if (fstat(f->fd, &st) == 0 && st.st_size > f->at)
			w->skipped += (uint64_t)(st.st_size - f->at);
		else
			line_done(w, f, take, arg);
	}
}

const char *log_watch_unread(const struct log_file *f)
{
	struct stat st;

	if (f->appeared)
		return NULL;
	if (stat(f->path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? "" : strerror(errno);
	if (f->ours)
		return "tacho writes it itself";
	if (!S_ISREG(st.st_mode))
		return "it is not a regular file";
	return f->error ? strerror(f->error) : ""; /* "": it came too late */
}

uint64_t log_watch_matched(const struct log_watch *w, unsigned pattern)
{
	uint64_t matched = 0;

	for (unsigned i = 0; i < w->nr_files; i++)
		matched += w->file[i].pattern[pattern].matched;
	return matched;
}

/* ---- opening ---- */

/* Of an expression in a message. */
#define QUOTED 200

static int compile(struct log_pattern *p, const char *text, bool phase, struct buf *reterr)
{
	struct buf why;
	int r;

	buf_init(&why, 1024);
	r = log_pattern_compile(p, text, phase, &why);
	if (r < 0)
		buf_addf(reterr, "--%s '%.*s%s' cannot be used: %s", phase ? "phase" : "mark", QUOTED, text,
			strlen(text) > QUOTED ? "..." : "", (const char *)why.data);
	buf_release(&why);
	return r;
}

static int file_prepare(struct log_watch *w, struct log_file *f, const char *const *phase, unsigned nr_phases,
	const char *const *mark, unsigned nr_marks, struct buf *reterr)
{
	struct stat st;
	ssize_t n;
	int r = 0;

	f->fd = -1;
	f->pattern = calloc(nr_phases + nr_marks, sizeof(*f->pattern));
	if (!f->pattern)
		return -ENOMEM;
	for (unsigned i = 0; i < nr_phases + nr_marks && r >= 0; i++) {
		bool is_phase = i < nr_phases;

		r = compile(&f->pattern[i], is_phase ? phase[i] : mark[i - nr_phases], is_phase, reterr);
		if (r >= 0)
			w->nr_patterns = MAX(w->nr_patterns, i + 1);
	}
	if (r >= 0 && stat(f->path, &st) == 0 && file_open(w, f, &st)) {
		n = pread(f->fd, f->head, (size_t)MIN(st.st_size, (off_t)LOG_HEAD), 0);
		f->at = st.st_size;
		f->head_len = (size_t)MAX(n, (ssize_t)0);
	}
	return r;
}

int log_watch_open(struct log_watch *w, const char *const *path, unsigned nr_paths, const char *const *phase,
	unsigned nr_phases, const char *const *mark, unsigned nr_marks, struct buf *reterr)
{
	int r = 0;

	*w = (struct log_watch){0};
	if (!nr_paths)
		return 0;
	w->file = calloc(nr_paths, sizeof(*w->file));
	if (!w->file)
		return -ENOMEM;
	for (; w->nr_files < nr_paths && r >= 0; w->nr_files++) {
		w->file[w->nr_files].path = path[w->nr_files];
		r = file_prepare(w, &w->file[w->nr_files], phase, nr_phases, mark, nr_marks, reterr);
	}
	return r;
}

void log_watch_close(struct log_watch *w)
{
	for (unsigned i = 0; i < w->nr_files; i++) {
		for (unsigned k = 0; k < w->nr_patterns; k++)
			log_pattern_release(&w->file[i].pattern[k]);
		let_go(&w->file[i]);
		free(w->file[i].pattern);
	}
	free(w->file);
	*w = (struct log_watch){0};
}
