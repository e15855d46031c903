/* libtacho: recordings of tacho as Arrow streams, for any program that speaks Arrow's C data interface. No
 * file is written and no value is converted to text on the way.
 *
 *	tacho_run *run;
 *	const char *path = "job.tacho";
 *	struct ArrowArrayStream stream;
 *
 *	if (tacho_open(&path, 1, &run) < 0)
 *		errx(1, "%s", tacho_error());
 *	for (size_t i = 0; i < tacho_nr_frames(run); i++)
 *		puts(tacho_frame(run, i)->name);
 *	if (tacho_stream(run, "cpu", NULL, &stream) < 0)
 *		errx(1, "%s", tacho_error());
 *	tacho_close(run);
 *	... stream.get_schema, stream.get_next, stream.release
 *
 * A run is a set of tables, the frames: one for each domain (node, cpu, process, gpu ...) with a row for each
 * instance at each tick and a column for each metric; and those that are not of time: processes, events,
 * metrics, meta, summary. docs/export.md says what is in them. Time is in ns, UTC; integers are exact 64-bit
 * ones; texts are dictionary-encoded UTF-8; what is not known is null, never zero.
 *
 * Threads: a run may be read by several at once, each stream by one at a time. Nothing is printed, no signal
 * is touched, no state is global but the error text, which each thread has for itself. */
#ifndef TACHO_H
#define TACHO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrow's C data and stream interface, as Arrow publishes it ---- */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};
#endif

/* ---- tacho ---- */

#define TACHO_API __attribute__((visibility("default")))

/* "0.1.0" */
TACHO_API const char *tacho_version(void);

/* Why the last call in this thread that failed did; "" when none has. */
TACHO_API const char *tacho_error(void);

typedef struct tacho_run tacho_run;

/* Opens recordings, or directories that hold some, as one run: one recording for each node. Functions that
 * return int return 0, or a negative errno with the reason in tacho_error(). Recordings that are unfinished
 * or damaged are opened, too: what is readable in them is there. */
TACHO_API int tacho_open(const char *const *paths, size_t nr_paths, tacho_run **ret);
/* Streams of the run stay valid. */
TACHO_API void tacho_close(tacho_run *run);

/* What these two return is the run's, and valid until it is closed. Later versions may add members at the
 * end. */
struct tacho_frame {
	const char *name;
	const char *help;
	const char *domain; /* NULL: not of time */
	size_t nr_fields;
};

struct tacho_field {
	const char *name;
	const char *help;
	const char *type; /* "time", "integer", "real", "text", "flag" */
	const char *unit; /* "bytes", "s", "bytes/s", ...; "" for plain numbers and for what is none */
	const char
		*kind; /* "counter", "gauge", "peak", "constant"; NULL: no metric, but a key or a property */
};

TACHO_API size_t tacho_nr_frames(const tacho_run *run);
/* NULL behind the last one. */
TACHO_API const struct tacho_frame *tacho_frame(const tacho_run *run, size_t frame);
TACHO_API const struct tacho_field *tacho_field(const tacho_run *run, size_t frame, size_t field);

/* What the run used and held, as `tacho show --json` says it (docs/summary.md); and what is to be found in
 * it: an object of "findings", "advice" and "unmeasured" (docs/page-data.md). JSON in UTF-8 with a NUL behind
 * it, which is the caller's: tacho_free(). Each call reads the recordings, so one that is still being written
 * is told up to now. */
TACHO_API int tacho_summary(const tacho_run *run, char **ret);
TACHO_API int tacho_findings(const tacho_run *run, char **ret);
TACHO_API void tacho_free(char *text);

struct tacho_options {
	size_t size;	 /* sizeof(struct tacho_options): how much of it the caller knows */
	double from, to; /* s after the start of the run; 0: its start, its end */
	double every;	 /* rows stand for so many seconds, by mean, maximum or last value; 0: for a tick */
	int raw; /* the stored integers, not yet scaled; "scale" of the field's metadata makes the unit */
	const char *const *metrics; /* only these, by name or group; NULL: all */
	size_t nr_metrics;
	double wait; /* tacho_follow: seconds that get_next() waits for rows at most; 0: until there are some
		      */
};

/* The rows of one frame, in order of recording, then time. All zero or NULL: everything. The stream is the
 * caller's to release; it holds what it needs of the run. Fields carry metadata: unit, kind, help, resample,
 * scale. Of texts, each batch has a dictionary of its own. */
TACHO_API int tacho_stream(const tacho_run *run, const char *frame, const struct tacho_options *options,
	struct ArrowArrayStream *ret);

/* The same of a recording that is still being written: batches come as it grows. get_next() waits for rows
 * (options->wait: at most so long, then the batch has none), gives those that have come, and ends when the
 * recording ends: with its end mark, or when its recorder is gone. The run must be of one recording and the
 * frame one of time; column `process` is null. -EAGAIN: the recording is so young that its columns are not
 * known yet; open it again a little later. get_next() returns ESTALE when another file has its name now, or
 * it was cut. */
TACHO_API int tacho_follow(const tacho_run *run, const char *frame, const struct tacho_options *options,
	struct ArrowArrayStream *ret);

#ifdef __cplusplus
}
#endif
#endif
