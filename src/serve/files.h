/* What is downloaded: recordings, reports, exports, the small curves of the list. */
#ifndef SERVE_FILES_H
#define SERVE_FILES_H

#include "serve/internal.h"
#include "serve/tar.h"

enum MHD_Result files_send(struct serve_request *q);
void files_end(struct serve_request *q); /* under the lock */

/* Made by a program of ours in a directory of its own, which is gone when all of it is open. */
struct made {
	struct serve *serve;
	char *path; /* of the run */
	enum serve_place what;
	char format[FORMAT_NAME_MOST + 1];
	unsigned refs;	 /* under the lock */
	bool abandoned;	 /* atomic: the viewer has left */
	bool done;	 /* under the lock */
	int status;	 /* 0, or the status of an answer that says why not */
	char *trouble;	 /* in words; NULL: none */
	int fd;		 /* of one file */
	char *name;	 /* that it has */
	struct tar *tar; /* of several */
	int *part;	 /* their descriptors */
	size_t nr_parts;
};

struct made *make_begin(struct serve *s, const char *path, enum serve_place what, const char *format);
void make_drop(struct made *m); /* under the lock */

/* The curve of a run for the list, as SVG: from the cache, or NULL: it is being made. Under the lock. */
struct shared *sketch_get(struct serve *s, struct catalog_item *item);
void sketches_free(struct serve *s);
#endif
