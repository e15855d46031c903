/* A text file that is kept open and read whole, again and again. */
#ifndef READ_TEXTFILE_H
#define READ_TEXTFILE_H

#include "env/env.h"

struct textfile {
	char *text; /* of the last reading, NUL-terminated; NULL: not open, so a zeroed struct is closed */
	size_t size;
	int handle;
	bool in_one; /* the kernel hands this file out in one read (its single_open) */
};

/* Opens, and reads once to learn how much room the text needs: `text` holds that first reading. */
int textfile_open(struct textfile *f, struct env *env, const char *path, bool in_one);
/* Length of the text, or a negative errno; -EFBIG when it no longer fits the buffer. Does not allocate. */
ssize_t textfile_read(struct textfile *f, struct env *env);
void textfile_close(struct textfile *f, struct env *env);
#endif
