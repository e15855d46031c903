/* taskstats: the kernel's accounting record of every task that exits.
 *
 * A generic netlink family: its number is asked for by name, then we register for all possible CPUs and each
 * exit sends us one message. Records are per task: a process of four threads gives four (plus an aggregate of
 * delays, which we skip). Needs CAP_NET_ADMIN in the initial user, pid and network namespaces.
 *
 * struct taskstats grows at its end from version to version, so what arrived is copied over zeroes, as much
 * of it as we know. Version 15 alone (Linux 6.14 and 6.15) had fields inserted in its middle; they are cut
 * out. The layout is verified: the record must name the task it was sent for.
 *
 * CPU: ac_utime and ac_stime are counted by ticks and may be 0 for a life of three milliseconds;
 * cpu_run_virtual_total is the scheduler's exact sum. The sum is taken and divided in the ratio of the two,
 * as the kernel itself does for /proc. It is read a little before the task's last moment: short lives lose
 * some (20 % of 200 microseconds), so it is a lower bound. */
#include "target/taskstats.h"
#include "target/netlink.h"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <poll.h>

/* The kernel's struct has the name of our handle. */
#define taskstats uapi_taskstats
#include <linux/taskstats.h>
#undef taskstats

/* Two aggregates of struct taskstats (about 600 bytes each today) with their headers, and room to grow. */
#define SLOT_BYTES 2048
#define ANSWER_TIMEOUT_MS 1000

struct taskstats {
	struct netlink link;
	uint16_t family;
	char cpus[256]; /* "0-63": what we registered for, and must deregister; empty before that */
};

/* ---- the record ---- */

/* What stood after the delays that version 15 gave a maximum and a minimum: 16 bytes each. */
static const size_t inserted_before[] = {
	offsetof(struct uapi_taskstats, blkio_count),
	offsetof(struct uapi_taskstats, swapin_count),
	offsetof(struct uapi_taskstats, cpu_run_real_total),
	offsetof(struct uapi_taskstats, thrashing_count),
	offsetof(struct uapi_taskstats, ac_btime64),
	offsetof(struct uapi_taskstats, ac_tgid),
};

/* Returns how many bytes of *ret are known. */
static size_t copy_record(struct uapi_taskstats *ret, const uint8_t *from, size_t len)
{
	uint8_t *to = (uint8_t *)ret;
	size_t at = 0;
	uint16_t version;

	memset(ret, 0, sizeof(*ret));
	memcpy(&version, from, sizeof(version));
	for (size_t i = 0; version == 15 && i < ARRAY_SIZE(inserted_before); i++) {
		size_t n = inserted_before[i] - at;

		if (len < n + 16)
			return at;
		memcpy(to + at, from, n);
		at += n;
		from += n + 16;
		len -= n + 16;
	}
	len = MIN(len, sizeof(*ret) - at);
	memcpy(to + at, from, len);
	return at + len;
}

static void divide_cpu(const struct uapi_taskstats *s, struct exit_record *ret)
{
	uint64_t user = s->ac_utime, system = s->ac_stime, total = s->cpu_run_virtual_total;

	if (total == 0) {
		ret->user_ns = (int64_t)user * NSEC_PER_USEC;
		ret->system_ns = (int64_t)system * NSEC_PER_USEC;
		return;
	}
	if (user == 0 && system == 0)
		user = 1; /* no tick hit it */
	ret->system_ns = (int64_t)((double)total * ((double)system / ((double)user + (double)system)));
	ret->user_ns = (int64_t)total - ret->system_ns;
}

bool taskstats_parse(const void *bytes, size_t len, pid_t tid, struct exit_record *ret)
{
	struct uapi_taskstats s;
	size_t known = len < offsetof(struct uapi_taskstats, ac_minflt) ? 0 : copy_record(&s, bytes, len);

	if (known < offsetof(struct uapi_taskstats, ac_minflt) || s.ac_pid != (uint32_t)tid)
		return false;
	*ret = (struct exit_record){
		.tid = tid,
		.tgid = s.ac_tgid ? (pid_t)s.ac_tgid : tid, /* from version 12 on */
		.parent = (pid_t)s.ac_ppid,
		.uid = s.ac_uid,
		.status = (int)s.ac_exitcode,
		.start_wall_s = s.ac_btime64 ? (int64_t)s.ac_btime64 : (int64_t)s.ac_btime,
		.elapsed_ns = (int64_t)s.ac_etime * NSEC_PER_USEC,
		.use.used[USED_MINOR] = (int64_t)s.ac_minflt,
		.use.used[USED_MAJOR] = (int64_t)s.ac_majflt,
		.use.used[USED_VOLUNTARY] = (int64_t)s.nvcsw,
		.use.used[USED_INVOLUNTARY] = (int64_t)s.nivcsw,
		.use.used[USED_READ_CHARS] = (int64_t)s.read_char,
		.use.used[USED_WRITE_CHARS] = (int64_t)s.write_char,
		.use.used[USED_READ_CALLS] = (int64_t)s.read_syscalls,
		.use.used[USED_WRITE_CALLS] = (int64_t)s.write_syscalls,
		.use.used[USED_READ_BYTES] = (int64_t)s.read_bytes,
		.use.used[USED_WRITE_BYTES] = (int64_t)s.write_bytes,
		.use.used[USED_CANCELLED] = (int64_t)s.cancelled_write_bytes,
		.peak_rss_bytes = (int64_t)s.hiwater_rss * 1024,
		.peak_vms_bytes = (int64_t)s.hiwater_vm * 1024,
		.run_delay_ns = (int64_t)s.cpu_delay_total,
		.block_delay_ns = (int64_t)s.blkio_delay_total,
		.swap_delay_ns = (int64_t)s.swapin_delay_total,
	};
	memcpy(ret->name, s.ac_comm, MIN(sizeof(ret->name), sizeof(s.ac_comm)));
	ret->name[sizeof(ret->name) - 1] = '\0';
	divide_cpu(&s, ret);
	return true;
}

/* ---- generic netlink ---- */

struct request {
	struct nlmsghdr header;
	struct genlmsghdr genl;
	struct nlattr attribute;
	char value[256];
};

struct attribute {
	uint16_t type;
	const uint8_t *value;
	size_t len;
};

/* Walks a list of attributes; false at its end or where it is not sound. */
static bool attribute_next(const uint8_t **at, const uint8_t *end, struct attribute *ret)
{
	size_t left = (size_t)(end - *at);
	struct nlattr head;

	if (left < sizeof(head))
		return false;
	memcpy(&head, *at, sizeof(head));
	if (head.nla_len < sizeof(head) || head.nla_len > left)
		return false;
	*ret = (struct attribute){
		head.nla_type & NLA_TYPE_MASK, *at + sizeof(head), head.nla_len - sizeof(head)};
	*at += MIN((size_t)NLA_ALIGN(head.nla_len), left);
	return true;
}

static bool attribute_find(const uint8_t *at, const uint8_t *end, uint16_t type, struct attribute *ret)
{
	while (attribute_next(&at, end, ret))
		if (ret->type == type)
			return true;
	return false;
}

static bool message_find(const struct nlmsghdr *m, uint16_t type, struct attribute *ret)
{
	const uint8_t *begin = (const uint8_t *)m;

	return m->nlmsg_len >= NLMSG_LENGTH(GENL_HDRLEN) &&
		attribute_find(begin + NLMSG_LENGTH(GENL_HDRLEN), begin + m->nlmsg_len, type, ret);
}

static int request(
	struct taskstats *t, uint16_t family, uint8_t command, uint16_t attribute, const char *value)
{
	size_t len = strlen(value) + 1;
	struct request r = {
		.header = {.nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.genl = {.cmd = command, .version = 1},
		.attribute = {.nla_len = (uint16_t)(sizeof(r.attribute) + len), .nla_type = attribute},
	};

	if (len > sizeof(r.value))
		return -ENAMETOOLONG;
	memcpy(r.value, value, len);
	r.header.nlmsg_len = (uint32_t)(offsetof(struct request, value) + len);
	return netlink_send(&t->link, &r, r.header.nlmsg_len);
}

/* Waits for the kernel's answer to our last request; the message before it, if one came, gives *ret_family.
 * The kernel answers while it takes the request, so this does not wait in practice. */
static int answer(struct taskstats *t, uint16_t *ret_family)
{
	struct pollfd p = {.fd = t->link.fd, .events = POLLIN};
	const struct nlmsghdr *m;
	struct attribute id;
	int r;

	for (;;) {
		while ((r = netlink_next(&t->link, &m)) > 0) {
			struct nlmsgerr error;

			if (m->nlmsg_type == GENL_ID_CTRL && ret_family &&
				message_find(m, CTRL_ATTR_FAMILY_ID, &id) && id.len == sizeof(*ret_family))
				memcpy(ret_family, id.value, sizeof(*ret_family));
			if (m->nlmsg_type != NLMSG_ERROR || m->nlmsg_len < NLMSG_LENGTH(sizeof(error)))
				continue;
			memcpy(&error, NLMSG_DATA(m), sizeof(error));
			return error.error;
		}
		if (r < 0 && r != -ENOBUFS) /* exits of others may overrun us here already */
			return r;
		if (poll(&p, 1, ANSWER_TIMEOUT_MS) == 0)
			return -ETIMEDOUT;
	}
}

/* ---- the interface ---- */

static int read_possible_cpus(char *ret, size_t size)
{
	_cleanup_(closep) int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, ret, size - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	if ((size_t)n == size - 1)
		return -ENAMETOOLONG;
	if (ret[n - 1] == '\n')
		n--;
	ret[n] = '\0';
	return 0;
}

static int subscribe(struct taskstats *t)
{
	char cpus[sizeof(t->cpus)];
	int r = request(t, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME);

	if (r >= 0)
		r = answer(t, &t->family);
	if (r >= 0 && !t->family)
		r = -ENOENT;
	if (r >= 0)
		r = read_possible_cpus(cpus, sizeof(cpus));
	if (r >= 0)
		r = request(t, t->family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus);
	if (r >= 0)
		r = answer(t, NULL);
	if (r < 0)
		return r;
	memcpy(t->cpus, cpus, sizeof(cpus));
	return 0;
}

static const char *why_not(int r)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return "accounting records of exits need CAP_NET_ADMIN";
	case -ENOENT:
		return "the kernel has no taskstats, or none in this network namespace";
	case -EINVAL:
		return "the kernel gives no accounting records of exits to this pid or user namespace";
	default:
		return "accounting records of exits could not be opened";
	}
}

int taskstats_open(struct taskstats **ret, const char **reterr_why)
{
	struct taskstats *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (t) {
		t->link.fd = -1;
		r = netlink_open(&t->link, NETLINK_GENERIC, 0, SLOT_BYTES);
	}
	if (r >= 0)
		r = subscribe(t);
	if (r < 0) {
		taskstats_close(t);
		*reterr_why = why_not(r);
		return r;
	}
	*ret = t;
	return 0;
}

struct taskstats *taskstats_close(struct taskstats *t)
{
	if (!t)
		return NULL;
	/* Otherwise the kernel would find out at the next exit on each CPU that there is no listener. */
	if (t->cpus[0])
		request(t, t->family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK, t->cpus);
	netlink_close(&t->link);
	free(t);
	return NULL;
}

/* The first aggregate of a message is that of the task; one of its thread group may follow. */
static bool record_of(const struct nlmsghdr *m, struct exit_record *ret)
{
	struct attribute task, tid, stats;
	uint32_t pid;

	if (!message_find(m, TASKSTATS_TYPE_AGGR_PID, &task) ||
		!attribute_find(task.value, task.value + task.len, TASKSTATS_TYPE_PID, &tid) ||
		!attribute_find(task.value, task.value + task.len, TASKSTATS_TYPE_STATS, &stats) ||
		tid.len != sizeof(pid))
		return false;
	memcpy(&pid, tid.value, sizeof(pid));
	return taskstats_parse(stats.value, stats.len, (pid_t)pid, ret);
}

int taskstats_next(struct taskstats *t, struct exit_record *ret)
{
	const struct nlmsghdr *m;
	int r;

	while ((r = netlink_next(&t->link, &m)) > 0)
		if (m->nlmsg_type == t->family && record_of(m, ret))
			return 1;
	return r;
}
