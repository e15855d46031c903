/* One format is one file and one line in exporters.c. An exporter sees frames, fields and values; it never
 * names a metric. It only appends to its outlet, which is a file under a temporary name or a stream; where a
 * library insists on a path it gets that of the temporary file. */
#ifndef EXPORT_EXPORTER_H
#define EXPORT_EXPORTER_H

#include "query/frames.h"

struct outlet;
int outlet_add(struct outlet *o, const void *data, size_t len); /* errors stick */
uint64_t outlet_at(const struct outlet *o);			/* bytes so far */

enum export_shape {
	EXPORT_FILE_EACH, /* a file for each frame */
	EXPORT_ONE_FILE,  /* all frames in one */
	EXPORT_OWN_FILES, /* files of its own making in a directory */
};

enum export_layout { LAYOUT_DEFAULT, LAYOUT_LONG, LAYOUT_WIDE };

struct export_job {
	const struct run *run;
	const struct frames *frames;   /* for the texts */
	const struct frame *frame;     /* FILE_EACH: the one; else all */
	size_t first_frame, nr_frames; /* batch.frame - first_frame is the index in `frame` */
	struct outlet *out;	       /* unless by_path */
	const char *path;	       /* by_path: of the temporary file or directory */
	enum export_layout layout;
	const char *compression;  /* "zstd", "zlib", "none"; NULL: the format's own choice */
	const char *summary_json; /* as `tacho show --json` */
};

struct exporter {
	const char *name, *suffix, *help; /* suffix with the dot: ".parquet" */
	enum export_shape shape;
	bool by_path;
	bool streams;	 /* standard output will do */
	bool one_by_one; /* frames must come one after the other: the run is read for each */
	int (*open)(const struct export_job *job, void **ret, struct buf *reterr);
	int (*add)(void *e, const struct frame_batch *batch);
	int (*close)(void *e); /* writes what stands at the end; frees */
	void (*drop)(void *e); /* frees only */
};

extern const struct exporter *const exporters[]; /* NULL at the end */
#endif
