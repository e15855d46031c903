/* The proc connector: every fork, exec and exit on this machine, from the kernel, as it happens.
 *
 * Listening is one multicast group and one message. The kernel answers that message, and delivers every
 * event, in the context of the task that caused it: when fork() has returned, its event is in our queue. So
 * the proof that events arrive (in pid and user namespaces they do not, without any error) is a child made by
 * clone and a look into the queue; no timeout is waited for, neither when it works nor when it does not.
 *
 * Threads and the kinds of events that we do not use are dropped by a classic BPF filter on the socket,
 * before they take room in the queue. The kernel takes 30 us to translate it, so that a job of milliseconds
 * does without: what comes through is dropped here as well. Rejected: the event filter of Linux 6.6 (struct
 * proc_input), which knows no threads, exists nowhere else and drops the kernel's answer too.
 *
 * An EXIT is that of the thread group leader. When a leader ends before its other threads (pthread_exit in
 * main) the process lives on as a zombie leader with threads; no event tells when the last of them goes. The
 * caller checks /proc before it trusts an EXIT, as it must anyhow for the final values. */
#include "target/kernel.h"
#include "target/netlink.h"

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* nlmsghdr 16 + cn_msg 20 + proc_event 40 (more in kernels to come: only the head is read). */
#define SLOT_BYTES 256

struct connector {
	struct netlink link;
	int64_t shift_ns; /* added to the kernel's time: not 0 in a time namespace */
};

/* ---- the filter ---- */

#define AT_EVENT (sizeof(struct nlmsghdr) + sizeof(struct cn_msg))
#define AT(member) (uint32_t)(AT_EVENT + offsetof(struct proc_event, member))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define IF_EQUAL_X(yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, yes, no)
#define A_TO_X BPF_STMT(BPF_MISC | BPF_TAX, 0)
#define DROP BPF_STMT(BPF_RET | BPF_K, 0)
#define TAKE BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)

void connector_filter(struct connector *c)
{
	/* Loads are big-endian whatever the machine, hence htonl on what they are compared with. Jumps count
	 * from the next instruction: to 15 is "take it", to 14 "drop it". */
	struct sock_filter code[] = {
		/*  0 */ LOAD(AT(what)),
		/*  1 */ IF_EQUAL(htonl(PROC_EVENT_FORK), 4, 0),
		/*  2 */ IF_EQUAL(htonl(PROC_EVENT_EXIT), 7, 0),
		/*  3 */ IF_EQUAL(htonl(PROC_EVENT_EXEC), 11, 0),
		/*  4 */ IF_EQUAL(htonl(PROC_EVENT_NONE), 10, 0), /* the answer to LISTEN */
		/*  5 */ DROP,
		/*  6 */ LOAD(AT(event_data.fork.child_pid)),
		/*  7 */ A_TO_X,
		/*  8 */ LOAD(AT(event_data.fork.child_tgid)),
		/*  9 */ IF_EQUAL_X(5, 4),
		/* 10 */ LOAD(AT(event_data.exit.process_pid)),
		/* 11 */ A_TO_X,
		/* 12 */ LOAD(AT(event_data.exit.process_tgid)),
		/* 13 */ IF_EQUAL_X(1, 0),
		/* 14 */ DROP,
		/* 15 */ TAKE,
	};
	const struct sock_fprog filter = {.len = ARRAY_SIZE(code), .filter = code};

	setsockopt(c->link.fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

/* ---- messages ---- */

static int control(struct connector *c, enum proc_cn_mcast_op op)
{
	const struct cn_msg cn = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof(uint32_t)};
	const uint32_t word = op;
	uint8_t message[NLMSG_LENGTH(sizeof(cn) + sizeof(word))];
	const struct nlmsghdr header = {
		.nlmsg_len = sizeof(message), .nlmsg_type = NLMSG_DONE, .nlmsg_pid = c->link.port};

	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), &cn, sizeof(cn));
	memcpy(message + sizeof(header) + sizeof(cn), &word, sizeof(word));
	return netlink_send(&c->link, message, sizeof(message));
}

/* Copies the event out: inside the message it is not aligned. false when it is none of the connector's. */
static bool event_of(const struct nlmsghdr *message, struct proc_event *ret)
{
	size_t len = message->nlmsg_len - sizeof(*message);
	struct cn_msg cn;

	if (message->nlmsg_type != NLMSG_DONE || len < sizeof(cn))
		return false;
	memcpy(&cn, message + 1, sizeof(cn));
	len -= sizeof(cn);
	if (cn.id.idx != CN_IDX_PROC || cn.id.val != CN_VAL_PROC ||
		len < offsetof(struct proc_event, event_data))
		return false;
	*ret = (struct proc_event){0}; /* older kernels send less: no parent in exits before 4.18 */
	memcpy(ret, (const uint8_t *)(message + 1) + sizeof(cn), MIN(len, sizeof(*ret)));
	return true;
}

static bool translate(const struct connector *c, const struct proc_event *from, struct kernel_event *ret)
{
	*ret = (struct kernel_event){.time_ns = (int64_t)from->timestamp_ns + c->shift_ns};
	switch ((uint32_t)from->what) {
	case PROC_EVENT_FORK:
		ret->type = KERNEL_FORK;
		ret->pid = from->event_data.fork.child_tgid;
		ret->parent = from->event_data.fork.parent_tgid;
		return ret->pid == from->event_data.fork.child_pid; /* no thread */
	case PROC_EVENT_EXEC:
		ret->type = KERNEL_EXEC;
		ret->pid = from->event_data.exec.process_tgid;
		return true;
	case PROC_EVENT_EXIT:
		ret->type = KERNEL_EXIT;
		ret->pid = from->event_data.exit.process_tgid;
		ret->parent = from->event_data.exit.parent_tgid;
		ret->status = (int)from->event_data.exit.exit_code;
		return ret->pid == from->event_data.exit.process_pid;
	default:
		return false;
	}
}

int connector_next(struct connector *c, struct kernel_event *ret)
{
	const struct nlmsghdr *message;
	struct proc_event event;
	int r;

	while ((r = netlink_next(&c->link, &message)) > 0)
		if (event_of(message, &event) && translate(c, &event, ret))
			return 1;
	return r;
}

/* ---- the proof ---- */

static int leave_at_once(void *unused)
{
	(void)unused;
	_exit(0);
}

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* A child without an exit signal (no SIGCHLD handler shall see it) that shares our memory while we are
 * suspended: the cheapest kind of process. */
static pid_t fork_and_reap(void)
{
	static char stack[16384] __attribute__((aligned(64)));
	pid_t pid = clone(leave_at_once, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL);

	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return pid;
}

int connector_prove(struct connector *c, pid_t child, int64_t before, int64_t after)
{
	struct kernel_event event;
	int r;

	while ((r = connector_next(c, &event)) > 0) {
		if (event.type != KERNEL_FORK || event.pid != child)
			continue;
		/* The kernel stamps with its own monotonic clock; a time namespace shows us another. */
		if (event.time_ns < before || event.time_ns > after)
			c->shift_ns = after - event.time_ns;
		return 0;
	}
	return r < 0 ? r : -ETIMEDOUT;
}

static const char *why_not(int r)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return "process events need CAP_NET_ADMIN, or Linux 6.6 or newer";
	case -EPROTONOSUPPORT:
	case -ECONNREFUSED:
		return "the kernel has no process events, or none in this network namespace";
	case -ETIMEDOUT:
		return "the kernel sends no process events to this pid or user namespace";
	default:
		return "process events could not be opened";
	}
}

int connector_listen(struct connector **ret, const char **reterr_why)
{
	struct connector *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	if (c) {
		c->link.fd = -1;
		r = netlink_open(&c->link, NETLINK_CONNECTOR, CN_IDX_PROC, SLOT_BYTES);
	}
	if (r >= 0)
		r = control(c, PROC_CN_MCAST_LISTEN);
	if (r < 0) {
		connector_close(c);
		*reterr_why = why_not(r);
		return r;
	}
	*ret = c;
	return 0;
}

int connector_open(struct connector **ret, const char **reterr_why)
{
	int r = connector_listen(ret, reterr_why);
	int64_t before = monotonic_ns();
	pid_t pid;

	if (r < 0)
		return r;
	connector_filter(*ret);
	pid = fork_and_reap();
	r = pid < 0 ? pid : connector_prove(*ret, pid, before, monotonic_ns());
	if (r < 0) {
		*ret = connector_close(*ret);
		*reterr_why = why_not(r);
	}
	return r;
}

struct connector *connector_close(struct connector *c)
{
	if (!c)
		return NULL;
	/* Older kernels count listeners by these messages alone and would go on making events without a
	 * listener. */
	if (c->link.port)
		control(c, PROC_CN_MCAST_IGNORE);
	netlink_close(&c->link);
	free(c);
	return NULL;
}

int connector_fd(const struct connector *c)
{
	return c->link.fd;
}
