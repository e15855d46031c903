/* Rights that this program has and its user does not have: capabilities of the file (`setcap`), or set-uid
 * bits.
 *
 * The user who runs such a program chooses its environment, its arguments and its working directory. So its
 * rights are dropped from the effective set before anything else happens, and each is raised for the one call
 * that needs it; files are opened, libraries loaded and the job started with the user's own rights. Set-uid
 * bits are given back at once: tacho needs none.
 *
 * Real root, and capabilities that the user has (ambient ones), are the user's own rights: nothing here
 * touches them. */
#ifndef BASE_RIGHTS_H
#define BASE_RIGHTS_H

#include "base/base.h"

#include <linux/capability.h>
#include <linux/limits.h>

#define RIGHT(capability) (UINT64_C(1) << (capability))
#define RIGHT_NET_ADMIN RIGHT(CAP_NET_ADMIN)   /* process events, exit records */
#define RIGHT_SYS_PTRACE RIGHT(CAP_SYS_PTRACE) /* io, descriptors, PSS of other users' processes */
#define RIGHT_READ RIGHT(CAP_DAC_READ_SEARCH)  /* the same, and energy counters */
#define RIGHT_SYS_NICE RIGHT(CAP_SYS_NICE)     /* a better place in the scheduler's queue */
#define RIGHT_PERFMON RIGHT(CAP_PERFMON)       /* hardware counters */

/* First of all in main(). Negative errno: the rights could not be put away, and nothing may be done. */
int rights_begin(int argc, char **argv);
/* Whether there are, or were, rights that the user does not have. Then nothing that names a file, a folder or
 * a library is taken from the environment or the home directory. */
bool rights_borrowed(void);
/* Those of the file that were put away, as a mask of RIGHT(). */
uint64_t rights_held(void);
/* Raises what is held of the wanted ones in this thread; false when that is none. Between the two there is
 * one system call, or a few that belong together: no file or program that the user chose is opened or run. */
bool rights_raise(uint64_t wanted);
void rights_lower(void);
/* Gives up all of them in this thread for good: before code of others runs, and in commands that only read
 * recordings. */
void rights_drop(void);
/* Around a fork: so that the user can read the child's files as those of any other process. Call
 * rights_drop() in the child. */
void rights_before_fork(void);
void rights_after_fork(void);
/* The environment as it was given to us. In a program with borrowed rights the C library takes variables like
 * LD_LIBRARY_PATH and TMPDIR out of its own; the job, which has no such rights, is to have them. */
char **rights_environment(void);
/* The file that the path leads to, when root alone can change it or put another in its place. */
bool rights_trusted(const char *path, char ret[static PATH_MAX]);
#endif
