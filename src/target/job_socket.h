/* The recorder's end of what the job tells it: a datagram socket of the user's own, named in TACHO_SOCKET.
 *
 * It lies in a directory that only the user may enter, and the kernel says of each message which process sent
 * it: only members of the job, and processes of the same user, are listened to. A message costs the job a
 * few system calls that never wait; what the recorder cannot take is dropped, and counted. */
#ifndef TARGET_JOB_SOCKET_H
#define TARGET_JOB_SOCKET_H

#include "target/job_message.h"

#include <sys/types.h>
#include <sys/un.h>

struct job_socket {
	int fd; /* -1: there is none */
	/* Senders write a byte into this file for each message that found the socket full; -1: there is none.
	 */
	int lost_fd;
	uint64_t lost_seen;
	uint64_t lost_left; /* how many more are believed in this second: users can make the file any size */
	struct sockaddr_un address;
	bool own_dir; /* its directory was made for it alone */
	/* How many more messages are written down in this second: what one costs the recorder is not in its
	 * budget, so there is a limit. */
	unsigned left;
	size_t bytes_left; /* the same */
	int64_t second;
	unsigned read;	  /* messages in this second */
	uint64_t dropped; /* over that limit, or lost by their senders, and not yet told */
	uint64_t refused; /* of strangers, or no messages */
	uint64_t within;  /* ranges that their senders left out, since they lie within others */
};

/* Makes one. `path`: where; NULL: in the user's runtime directory, else in the directory for temporary files.
 * Negative errno. */
int job_socket_open(struct job_socket *s, const char *path);
void job_socket_close(struct job_socket *s);
/* A directory on this node that only the user may enter, and that stays. False: there is none. */
bool job_socket_directory(char *to, size_t size);

/* Whether a message of that length may be written down in this second; otherwise it counts as dropped. Also
 * for those that come in another way, where there is no socket. */
bool job_socket_room(struct job_socket *s, int64_t now_ns, size_t len);

/* `pid` sent it. */
typedef void job_socket_take_fn(void *arg, const struct job_message *m, pid_t pid);
typedef bool job_socket_member_fn(void *arg, pid_t pid);
/* Everything that has come; now_ns: ENV_MONOTONIC. */
void job_socket_read(struct job_socket *s, int64_t now_ns, job_socket_member_fn *is_member,
	job_socket_take_fn *take, void *arg);
#endif
