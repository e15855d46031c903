/* A file in the user's own directory on this node, locked. See node_lock.h. */
#include "target/node_lock.h"

#include "target/job_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TRIES 8

/* Locked, and still the file of that name: its last owner removes it. */
static int lock_file(const char *path)
{
	struct stat held, named;
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else if (fstat(fd, &held) < 0 || stat(path, &named) < 0 || held.st_ino != named.st_ino ||
		held.st_dev != named.st_dev)
		r = -EAGAIN;
	else
		return fd;
	close(fd);
	return r;
}

int node_lock_take(struct node_lock *l, const char *name)
{
	char directory[256];
	int r = -EAGAIN;
	size_t used;

	l->fd = -1;
	if (!job_socket_directory(directory, sizeof(directory)))
		return -EACCES;
	used = strlen(directory) + 1;
	if (used + strlen(name) + sizeof(".lock") > sizeof(l->path))
		return -ENAMETOOLONG;
	snprintf(l->path, sizeof(l->path), "%s/%.200s.lock", directory, name);
	for (char *p = l->path + used; *p; p++)
		if (*p == '/')
			*p = '_';
	for (unsigned i = 0; i < TRIES && r == -EAGAIN; i++)
		r = lock_file(l->path);
	l->fd = r < 0 ? -1 : r;
	return MIN(r, 0);
}

void node_lock_release(struct node_lock *l)
{
	if (l->fd < 0)
		return;
	unlink(l->path);
	close(l->fd);
	l->fd = -1;
}
