/* Capabilities by the system calls themselves: capset(2) is for one thread, and that is what is wanted. */
#include "base/rights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

#define KNOWN (RIGHT_NET_ADMIN | RIGHT_SYS_PTRACE | RIGHT_READ | RIGHT_SYS_NICE | RIGHT_PERFMON)

static bool borrowed;
static uint64_t held;
static char **given; /* NULL: environ */
static _Thread_local bool dropped;

static int set_rights(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (unsigned i = 0; i < ARRAY_SIZE(data); i++) {
		data[i].permitted &= (uint32_t)(permitted >> 32 * i);
		data[i].effective = data[i].permitted & (uint32_t)(effective >> 32 * i);
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static uint64_t read_rights(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data) < 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/* The kernel lays the texts of arguments, environment and the file's name into memory in this order. What the
 * C library took out of `environ` is still there. */
static char **find_environment(int argc, char **argv)
{
	char *end = (char *)getauxval(AT_EXECFN), *from = argc ? strchr(argv[argc - 1], 0) + 1 : NULL;
	size_t nr = 0;
	char **list;

	if (!from || !end || from > end)
		return NULL;
	for (char **v = environ; v && *v; v++)
		if (*v < from || *v >= end)
			return NULL;
	for (char *p = from; p < end; p = strchr(p, 0) + 1)
		nr++;
	list = calloc(nr + 1, sizeof(*list));
	nr = 0;
	for (char *p = from; list && p < end; p = strchr(p, 0) + 1)
		list[nr++] = p;
	return list;
}

int rights_begin(int argc, char **argv)
{
	int r;

	borrowed = getauxval(AT_SECURE) || geteuid() != getuid() || getegid() != getgid();
	if (!borrowed)
		return 0;
	given = find_environment(argc, argv);
	/* For good: the saved ids are reset as well. */
	if (getegid() != getgid() && setresgid(getgid(), getgid(), getgid()) < 0)
		return -errno;
	if (geteuid() != getuid() && setresuid(getuid(), getuid(), getuid()) < 0)
		return -errno;
	if (!getuid())
		return 0;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	r = set_rights(KNOWN, 0);
	held = r < 0 ? 0 : read_rights();
	return r;
}

bool rights_borrowed(void)
{
	return borrowed;
}

uint64_t rights_held(void)
{
	return held;
}

bool rights_raise(uint64_t wanted)
{
	return !dropped && (held & wanted) && set_rights(held, wanted) == 0;
}

void rights_lower(void)
{
	if (held && !dropped)
		set_rights(held, 0);
}

void rights_drop(void)
{
	if (held && !dropped)
		set_rights(0, 0);
	dropped = true;
}

/* A process with rights that its user does not have is hidden from that user, and so is its copy. The job
 * must not be hidden: we read its files as the user. */
void rights_before_fork(void)
{
	if (held)
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

void rights_after_fork(void)
{
	if (held)
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

char **rights_environment(void)
{
	return given ? given : environ;
}

static bool is_roots(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !st.st_uid && !(st.st_mode & S_IWOTH) &&
		(!(st.st_mode & S_IWGRP) || !st.st_gid);
}

bool rights_trusted(const char *path, char ret[static PATH_MAX])
{
	bool trusted;

	if (!realpath(path, ret))
		return false;
	trusted = is_roots("/") && is_roots(ret);
	for (char *slash = strchr(ret + 1, '/'); slash && trusted; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		trusted = is_roots(ret);
		*slash = '/';
	}
	return trusted;
}
