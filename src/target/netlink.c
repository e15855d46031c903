/* A netlink socket drained in batches.
 *
 * The kernel queues one small datagram per event, so a system call per event would cost more than the events
 * themselves: recvmmsg takes up to 32 at once into memory that is allocated at open. The receive buffer is
 * made as large as we are allowed, because it must hold all that happens between two ticks: the default 208
 * KiB loses 80 % of a fork storm that is drained once a second, 4 MiB lost nothing at 29,000 forks a second.
 *
 * Each loss is reported once: the kernel's (ENOBUFS), or a datagram that was longer than a slot. */
#include "target/netlink.h"

#include "base/rights.h"

#include <sys/socket.h>

#define RECEIVE_BUFFER_BYTES (32 << 20)

static void want_large_buffer(int fd)
{
	const int bytes = RECEIVE_BUFFER_BYTES;

	/* Privileged beyond net.core.rmem_max; otherwise the kernel cuts it to that by itself. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static int prepare_slots(struct netlink *n, size_t slot_size)
{
	n->slot_size = slot_size;
	n->memory = malloc(NETLINK_BATCH * slot_size); /* not cleared: few slots are ever used by most jobs */
	if (!n->memory)
		return -ENOMEM;
	for (unsigned i = 0; i < NETLINK_BATCH; i++) {
		n->iov[i] = (struct iovec){.iov_base = n->memory + i * slot_size, .iov_len = slot_size};
		n->datagram[i].msg_hdr = (struct msghdr){.msg_iov = &n->iov[i], .msg_iovlen = 1};
	}
	return 0;
}

static int open_socket(struct netlink *n, int protocol, uint32_t groups, size_t slot_size)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
	socklen_t len = sizeof(address);
	int r;

	n->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	if (n->fd < 0)
		return -errno;
	r = prepare_slots(n, slot_size);
	if (r < 0)
		return r;
	want_large_buffer(n->fd);
	if (bind(n->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (getsockname(n->fd, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	n->port = address.nl_pid;
	return 0;
}

/* The kernel keeps the rights with which a socket was opened, and checks those of the sender at each message
 * as well. */
int netlink_open(struct netlink *n, int protocol, uint32_t groups, size_t slot_size)
{
	bool raised = rights_raise(RIGHT_NET_ADMIN);
	int r = open_socket(n, protocol, groups, slot_size);

	if (raised)
		rights_lower();
	return r;
}

void netlink_close(struct netlink *n)
{
	if (n->fd >= 0)
		close(n->fd);
	free(n->memory);
	*n = (struct netlink){.fd = -1};
}

int netlink_send(struct netlink *n, const void *message, size_t len)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	bool raised = rights_raise(RIGHT_NET_ADMIN);
	ssize_t sent = sendto(n->fd, message, len, 0, (const struct sockaddr *)&kernel, sizeof(kernel));
	int r = sent < 0 ? -errno : 0;

	if (raised)
		rights_lower();
	return r;
}

static int receive_batch(struct netlink *n)
{
	int r;

	for (unsigned i = 0; i < NETLINK_BATCH; i++) {
		n->datagram[i].msg_hdr.msg_name = &n->from[i];
		n->datagram[i].msg_hdr.msg_namelen = sizeof(n->from[i]);
	}
	n->nr = n->at = 0;
	n->left = 0;
	do
		r = recvmmsg(n->fd, n->datagram, NETLINK_BATCH, MSG_DONTWAIT, NULL);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? 0 : -errno;
	n->nr = (unsigned)r;
	return r;
}

/* Makes datagram `at` the one being read. */
static int begin_datagram(struct netlink *n)
{
	const struct mmsghdr *d = &n->datagram[n->at];

	if (n->from[n->at].nl_pid != 0) { /* another process, not the kernel */
		n->at++;
		return 0;
	}
	if (d->msg_hdr.msg_flags & MSG_TRUNC) {
		n->at++;
		return -ENOBUFS;
	}
	n->next = (struct nlmsghdr *)(n->memory + n->at * n->slot_size);
	n->left = d->msg_len;
	return 0;
}

int netlink_next(struct netlink *n, const struct nlmsghdr **ret)
{
	for (;;) {
		int r;

		if (n->left > 0 && NLMSG_OK(n->next, n->left)) {
			/* The step is rounded up to 4 bytes and may so pass the end of the datagram. */
			size_t step = MIN((size_t)NLMSG_ALIGN(n->next->nlmsg_len), n->left);

			*ret = n->next;
			n->left -= step;
			n->next = (struct nlmsghdr *)((uint8_t *)n->next + step);
			if (n->left == 0)
				n->at++;
			return 1;
		}
		if (n->left > 0) { /* garbage after the last message */
			n->left = 0;
			n->at++;
		}
		r = n->at < n->nr ? begin_datagram(n) : receive_batch(n);
		if (r < 0)
			return r;
		if (n->nr == 0)
			return 0;
	}
}
