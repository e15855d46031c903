/* One frame of a run as an ArrowArrayStream. Each stream reads the recordings on its own, as it is asked for
 * batches: nothing is read ahead, and memory does not grow with their length. */
#include "lib/internal.h"

#include <math.h>
#include <string.h>

struct stream {
	struct lib_run *run;
	struct frames *frames;
	const struct frame *frame;
	struct lib_texts *texts; /* by field */
	struct arrow_body body;
	int err; /* the first failure stays */
	char *error;
};

static void stream_free(struct stream *s)
{
	for (size_t i = 0; s->texts && i < s->frame->nr_fields; i++) {
		text_numbers_release(&s->texts[i].own);
		free(s->texts[i].index);
	}
	free(s->texts);
	arrow_body_release(&s->body);
	frames_close(s->frames);
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
	int r = lib_schema(s->frame, ret);

	return r < 0 ? stream_fail(s, r) : 0;
}

static int stream_get_next(struct ArrowArrayStream *stream, struct ArrowArray *ret)
{
	struct stream *s = stream->private_data;
	struct frame_batch batch;
	int r = s->err;

	if (r >= 0)
		r = frames_next(s->frames, &batch);
	if (r == 0) {
		*ret = (struct ArrowArray){0}; /* released: the end */
		return 0;
	}
	if (r > 0)
		r = lib_array(s->frames, s->frame, &batch, s->texts, &s->body, ret);
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

static int read_options(struct frames_options *o, const struct tacho_options *from, struct buf *reterr)
{
	struct tacho_options known = {0};

	if (!from)
		return 0;
	if (from->size < sizeof(from->size)) {
		buf_adds(reterr, "options: `size` is not set");
		return -EINVAL;
	}
	memcpy(&known, from, MIN(from->size, sizeof(known)));
	if (!(known.from >= 0) || !(known.to >= 0) || !(known.every >= 0) || known.every > 1e9) {
		buf_adds(reterr, "options: times are seconds, from 0");
		return -EINVAL;
	}
	o->from_s = known.from > 0 ? known.from : NAN;
	o->to_s = known.to > 0 ? known.to : NAN;
	o->every_ns = round_i64(known.every * NSEC_PER_SEC);
	o->raw = known.raw;
	o->metric = known.metrics;
	o->nr_metrics = known.metrics ? known.nr_metrics : 0;
	return 0;
}

static int make_room(struct stream *s)
{
	int r = arrow_body_init(&s->body, false);

	s->texts = calloc(MAX(s->frame->nr_fields, (size_t)1), sizeof(*s->texts));
	if (!s->texts)
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < s->frame->nr_fields; i++) {
		if (s->frame->field[i].type != FIELD_TEXT)
			continue;
		s->texts[i].index = calloc(FRAME_ROWS_MOST, sizeof(uint32_t));
		if (!s->texts[i].index)
			r = -ENOMEM;
	}
	return r;
}

static bool is_of_time(const tacho_run *run, const char *frame)
{
	const struct tacho_frame *f;

	for (size_t i = 0; (f = tacho_frame(run, i)); i++)
		if (!strcmp(f->name, frame))
			return f->domain;
	return false;
}

static int stream_open(struct stream *s, const tacho_run *run, const char *frame,
	const struct tacho_options *options, struct buf *reterr)
{
	static const char *const all[] = {"all"};
	struct frames_options o = {.from_s = NAN, .to_s = NAN, .domain = &frame, .nr_domains = 1};
	int r = read_options(&o, options, reterr);

	if (r >= 0 && !o.nr_metrics && is_of_time(run, frame)) {
		/* All that tacho_field() lists, not those that nobody could read as well. */
		o.metric = all;
		o.nr_metrics = 1;
	}
	if (r >= 0)
		r = frames_open(s->run->run, &o, &s->frames, reterr);
	if (r < 0)
		return r;
	if (frames_list(s->frames, &s->frame) != 1) {
		buf_addf(reterr, "frame '%s' has none of these metrics", frame);
		return -ENOENT;
	}
	return make_room(s);
}

int tacho_stream(const tacho_run *run, const char *frame, const struct tacho_options *options,
	struct ArrowArrayStream *ret)
{
	struct stream *s;
	struct buf err;
	int r;

	if (!run || !frame || !ret)
		return lib_fail(-EINVAL, "a run, a frame and a place for the stream are needed");
	s = calloc(1, sizeof(*s));
	if (!s)
		return lib_fail(-ENOMEM, NULL);
	s->run = lib_run_use(lib_run_of(run));
	buf_init(&err, 1 << 16);
	r = stream_open(s, run, frame, options, &err);
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
