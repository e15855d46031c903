/* Mounts, as proc/PID/mountinfo lists them. Words are borrowed from the text and still escaped. */
#ifndef READ_MOUNTINFO_H
#define READ_MOUNTINFO_H

#include "base/text.h"
#include "read/textfile.h"

struct mount {
	int64_t id;	    /* what fdinfo calls mnt_id */
	struct text device; /* "254:0": of the file system, whichever part of it is mounted */
	struct text root, point, options, type, source;
	struct text super; /* options of the file system; a v1 control group's controllers */
};

/* Takes the next line that is a mount off the text; false at its end. */
bool mountinfo_next(const char **text, const char *end, struct mount *ret);
/* \040 back to a blank, NUL-terminated. False when it does not fit, or holds a NUL itself. */
bool mount_unescape(struct text w, char *out, size_t size);

/* Longer mount points are ignored. */
#define MOUNT_POINT_SIZE 1024

/* All of these look in the text of a mountinfo. */
bool mountinfo_find_id(const char *text, const char *end, int64_t id, struct mount *ret);
/* The mount on which a path lies: the deepest, and of several on one point the last. */
bool mountinfo_find_path(const char *text, const char *end, const char *path, struct mount *ret);
/* Where a file system is mounted: on that point if it still is, else wherever it can be reached. */
bool mountinfo_find_device(
	const char *text, const char *end, const char *device, const char *point, struct mount *ret);
/* Something was mounted over it. It was found in the text that ends there. */
bool mountinfo_is_hidden(const char *end, const struct mount *mount);
/* Its path leads to or through a network file system, whose server may not answer. */
bool mountinfo_is_remote(const char *text, const char *end, const struct mount *mount);

/* Opens proc/PID/NAME and returns 1; or our own, where that is not available or pid is 0, and returns 0. */
int mounts_open(struct textfile *f, struct env *env, pid_t pid, const char *name);
#endif
