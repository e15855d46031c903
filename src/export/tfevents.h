/* Event files of TensorBoard: records with a masked CRC-32C around their length and their bytes, each an
 * Event of Protocol Buffers (tensorflow/core/util/event.proto, lib/io/record_writer). A scalar is a float
 * there: seven digits.
 *
 * Of the export and of the sink, which give the same. */
#ifndef EXPORT_TFEVENTS_H
#define EXPORT_TFEVENTS_H

#include "base/buf.h"

struct tfevents { /* values of one moment are one event */
	struct buf value, summary, event;
	int64_t time_ns, step;
};

void tfevents_init(struct tfevents *t);
void tfevents_release(struct tfevents *t);
/* The first record of a file. */
void tfevents_begin(struct tfevents *t, struct buf *out, int64_t time_ns);
/* What was begun is written when a value of another moment comes, and by tfevents_end(). */
void tfevents_add(
	struct tfevents *t, struct buf *out, const char *tag, int64_t time_ns, int64_t step, double value);
void tfevents_end(struct tfevents *t, struct buf *out);

/* "tree/cores", "gpu/util/0", "process/proc.mem.rss/python-4242": the page groups by what stands before the
 * first slash. instance NULL: none; pid 0: none. */
void tfevents_tag(struct buf *out, const char *table, const char *metric, const char *instance, int64_t pid);
/* Tables whose one instance has no name of its own. */
bool tfevents_is_single(const char *table);
/* As the file has it. */
double tfevents_time(int64_t ns);

/* Of a file, or its beginning: calls `take` with each value of each event. Returns the length of its whole
 * records. A negative result of `take` ends the reading and is returned. */
typedef int tfevents_take(void *arg, const char *tag, size_t len, double time, int64_t step);
int64_t tfevents_read(const void *data, size_t n, tfevents_take *take, void *arg);
#endif
