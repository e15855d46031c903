/* One netlink socket that is drained in batches: what connector.c and taskstats.c have in common. */
#ifndef TARGET_NETLINK_H
#define TARGET_NETLINK_H

#include "base/base.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#define NETLINK_BATCH 32

struct netlink {
	int fd;
	uint32_t port;	       /* our address, as the kernel gave it */
	size_t slot_size;      /* the longest datagram we take */
	unsigned nr, at;       /* datagrams received, and the one being read */
	size_t left;	       /* bytes of that one not read yet */
	struct nlmsghdr *next; /* the next message in it */
	uint8_t *memory;       /* NETLINK_BATCH slots */
	struct mmsghdr datagram[NETLINK_BATCH];
	struct iovec iov[NETLINK_BATCH];
	struct sockaddr_nl from[NETLINK_BATCH];
};

/* Takes a zeroed struct; groups as in sockaddr_nl. Half-opened ones are for netlink_close(). */
int netlink_open(struct netlink *n, int protocol, uint32_t groups, size_t slot_size);
void netlink_close(struct netlink *n);
int netlink_send(struct netlink *n, const void *message, size_t len);

/* Next message of the kernel's (those of other senders are dropped), borrowed until the next call; its
 * nlmsg_len is checked. 1, 0 when there is none now, -ENOBUFS once after each loss. Never blocks. */
int netlink_next(struct netlink *n, const struct nlmsghdr **ret);
#endif
