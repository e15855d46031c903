/* One table of a run as an ArrowArrayStream. Each stream reads the recordings on its own, as it is asked for
 * batches: nothing is read ahead, and memory does not grow with their length. */
#include "lib/internal.h"

#include "query/meta.h"

#include <math.h>
#include <string.h>
#include <time.h>

struct stream {
	struct lib_run *run;
	struct tables *tables;
	const struct data_table *table;
	struct lib_texts *texts; /* by field */
	struct arrow_body body;
	int64_t wait_ns; /* of a run that is followed; 0: without limit */
	int err;	 /* the first failure stays */
	char *error;
};

static void stream_free(struct stream *s)
{
	for (size_t i = 0; s->texts && i < s->table->nr_fields; i++) {
		text_numbers_release(&s->texts[i].own);
		free(s->texts[i].index);
	}
	free(s->texts);
	arrow_body_release(&s->body);
	tables_close(s->tables);
	lib_run_drop(s->run);
	free(s->error);
	free(s);
}

/* Streams return errno as it is, not negative. */
static int stream_fail(struct stream *s, int error)
{
	if (!s->err) {
		s->err = error;
		s->error = strdup(strerror(-error));
	}
	return -error;
}

static int stream_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *ret)
{
	struct stream *s = stream->private_data;
	int r = lib_schema(s->table, ret);

	return r < 0 ? stream_fail(s, r) : 0;
}

#define LOOK_NS (NSEC_PER_SEC / 4) /* between two looks at a file that grows */

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* As tables_next(); TABLES_WAIT: the time is over. */
static int wait_next(struct stream *s, struct data_table_batch *ret)
{
	int64_t until = monotonic_ns() + s->wait_ns, left = LOOK_NS;
	int r;

	while ((r = tables_next(s->tables, ret)) == TABLES_WAIT) {
		if (s->wait_ns)
			left = MIN(until - monotonic_ns(), LOOK_NS);
		if (left <= 0)
			return r;
		nanosleep(&(struct timespec){.tv_nsec = left}, NULL);
	}
	return r;
}

/* A batch without rows. */
static int no_rows(struct stream *s, struct ArrowArray *ret)
{
	struct field_cells *cell = calloc(MAX(s->table->nr_fields, (size_t)1), sizeof(*cell));
	const struct data_table_batch none = {.cell = cell};
	int r = cell ? lib_array(s->tables, s->table, &none, s->texts, &s->body, ret) : -ENOMEM;

	free(cell);
	return r;
}

static int stream_get_next(struct ArrowArrayStream *stream, struct ArrowArray *ret)
{
	struct stream *s = stream->private_data;
	struct data_table_batch batch;
	int r = s->err;

	if (r >= 0)
		r = wait_next(s, &batch);
	if (r == TABLES_WAIT) {
		r = no_rows(s, ret);
		return r < 0 ? stream_fail(s, r) : 0;
	}
	if (r == 0) {
		*ret = (struct ArrowArray){0}; /* released: the end */
		return 0;
	}
	if (r > 0)
		r = lib_array(s->tables, s->table, &batch, s->texts, &s->body, ret);
	return r < 0 ? stream_fail(s, r) : 0;
}

static const char *stream_get_last_error(struct ArrowArrayStream *stream)
{
	const struct stream *s = stream->private_data;

	return s->error;
}

static void stream_release(struct ArrowArrayStream *stream)
{
	stream_free(stream->private_data);
	stream->private_data = NULL;
	stream->release = NULL;
}

/* ---- opening ---- */

static int read_options(
	struct tables_options *o, const struct tacho_options *from, int64_t *ret_wait_ns, struct buf *reterr)
{
	struct tacho_options known = {0};

	if (!from)
		return 0;
	if (from->size < sizeof(from->size)) {
		buf_adds(reterr, "options: `size` is not set");
		return -EINVAL;
	}
	memcpy(&known, from, MIN(from->size, sizeof(known)));
	if (!(known.from >= 0) || !(known.to >= 0) || !(known.every >= 0) || known.every > 1e9 ||
		!(known.wait >= 0)) {
		buf_adds(reterr, "options: times are seconds, from 0");
		return -EINVAL;
	}
	o->from_s = known.from > 0 ? known.from : NAN;
	o->to_s = known.to > 0 ? known.to : NAN;
	o->every_ns = round_i64(known.every * NSEC_PER_SEC);
	o->raw = known.raw;
	*ret_wait_ns = round_i64(MIN(known.wait, 1e9) * NSEC_PER_SEC);
	o->metric = known.metrics;
	o->nr_metrics = known.metrics ? known.nr_metrics : 0;
	return 0;
}

static int make_room(struct stream *s)
{
	int r = arrow_body_init(&s->body, false);

	s->texts = calloc(MAX(s->table->nr_fields, (size_t)1), sizeof(*s->texts));
	if (!s->texts)
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < s->table->nr_fields; i++) {
		if (s->table->field[i].type != FIELD_TEXT)
			continue;
		s->texts[i].index = calloc(DATA_TABLE_ROWS_MOST, sizeof(uint32_t));
		if (!s->texts[i].index)
			r = -ENOMEM;
	}
	return r;
}

static bool is_of_time(const tacho_run *run, const char *table)
{
	const struct tacho_frame *f;

	for (size_t i = 0; (f = tacho_frame(run, i)); i++)
		if (!strcmp(f->name, table))
			return f->domain;
	return false;
}

/* A table has times: so the schema of the recording is known. */
static bool has_times(const tacho_run *run)
{
	const struct tacho_frame *f;

	for (size_t i = 0; (f = tacho_frame(run, i)); i++)
		if (f->domain)
			return true;
	return false;
}

static int stream_open(struct stream *s, const tacho_run *run, const char *table,
	const struct tacho_options *options, bool follow, struct buf *reterr)
{
	static const char *const all[] = {"all"};
	struct tables_options o = {
		.from_s = NAN, .to_s = NAN, .domain = &table, .nr_domains = 1, .follow = follow};
	int r = read_options(&o, options, &s->wait_ns, reterr);

	if (r >= 0 && follow && !has_times(run)) {
		buf_adds(reterr, why_young);
		return -EAGAIN;
	}

	if (r >= 0 && !o.nr_metrics && is_of_time(run, table)) {
		/* All that tacho_field() lists, without metrics that could not be read. */
		o.metric = all;
		o.nr_metrics = 1;
	}
	if (r >= 0)
		r = tables_open(s->run->run, &o, &s->tables, reterr);
	if (r < 0)
		return r;
	if (tables_list(s->tables, &s->table) != 1) {
		buf_addf(reterr, "table '%s' has none of these metrics", table);
		return -ENOENT;
	}
	return make_room(s);
}

static int open_table(const tacho_run *run, const char *table, const struct tacho_options *options,
	bool follow, struct ArrowArrayStream *ret)
{
	struct stream *s;
	struct buf err;
	int r;

	if (!run || !table || !ret)
		return lib_fail(-EINVAL, "a run, a table and a place for the stream are needed");
	s = calloc(1, sizeof(*s));
	if (!s)
		return lib_fail(-ENOMEM, NULL);
	s->run = lib_run_use(lib_run_of(run));
	buf_init(&err, 1 << 16);
	r = stream_open(s, run, table, options, follow, &err);
	if (r < 0) {
		lib_fail(r, (char *)err.data);
		stream_free(s);
	} else {
		*ret = (struct ArrowArrayStream){.get_schema = stream_get_schema,
			.get_next = stream_get_next,
			.get_last_error = stream_get_last_error,
			.release = stream_release,
			.private_data = s};
	}
	buf_release(&err);
	return r;
}

int tacho_stream(const tacho_run *run, const char *table, const struct tacho_options *options,
	struct ArrowArrayStream *ret)
{
	return open_table(run, table, options, false, ret);
}

int tacho_follow(const tacho_run *run, const char *table, const struct tacho_options *options,
	struct ArrowArrayStream *ret)
{
	return open_table(run, table, options, true, ret);
}
