/* Where an exporter's bytes go: a descriptor, through a buffer. The driver makes it; formats only append
 * (exporter.h). */
#ifndef EXPORT_OUTLET_H
#define EXPORT_OUTLET_H

#include "export/exporter.h"

#define OUTLET_BUFFER 65536

struct outlet {
	int fd;	 /* the caller's */
	int err; /* 0 or a negative errno: the first one stays */
	uint64_t at;
	size_t held;
	uint8_t *buffer;
	bool terminal;	 /* control characters are escaped */
	uint8_t rest[4]; /* terminal: the beginning of a character whose end has not come yet */
	size_t nr_rest;
};

int outlet_open(struct outlet *o, int fd);
/* Everything to the descriptor. Returns the sticky error. */
int outlet_flush(struct outlet *o);
void outlet_release(struct outlet *o);
#endif
