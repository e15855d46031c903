/* What a C library older than ours does not have. The build asks for each function by name (meson.build) and
 * includes this file everywhere (-include) when one is missing: released binaries run from glibc 2.17 on.
 * Elsewhere nothing of it is compiled. */
#ifndef BASE_LIBC_MISSING_H
#define BASE_LIBC_MISSING_H

#include <dirent.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef LACKS_REALLOCARRAY
void *reallocarray(void *array, size_t nr, size_t size);
#endif
#ifdef LACKS_EXPLICIT_BZERO
void explicit_bzero(void *bytes, size_t len);
#endif
#ifdef LACKS_GETRANDOM
ssize_t getrandom(void *bytes, size_t len, unsigned flags);
#endif
#ifdef LACKS_GETDENTS64
ssize_t getdents64(int fd, void *bytes, size_t len);
#endif
#ifdef LACKS_RENAMEAT2
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
#endif
#ifdef LACKS_STRERRORNAME_NP
const char *strerrorname_np(int error); /* "ENOENT"; NULL: no such number */
#endif
#ifdef LACKS_STRERRORDESC_NP
const char *strerrordesc_np(int error);
#endif
#ifdef LACKS_SIGABBREV_NP
const char *sigabbrev_np(int signal); /* "TERM"; NULL: it has no name */
#endif
#endif
