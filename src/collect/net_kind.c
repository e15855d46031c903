/* Interfaces by what sysfs has of them.
 *
 * sys/class/net/NAME is a link: below devices/virtual when no hardware stands behind the interface. In its
 * folder a bridge has `bridge`, its port `brport`, a bond `bonding`, a tap `tun_flags`, and whatever is made
 * of others has a link lower_NAME for each of them. */
#include "collect/net_kind.h"

#include "collect/collector.h"
#include "read/value.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define PATH_SIZE 200

static const char *const reason_text[NR_NET_REASONS] = {
	[NET_LOOPBACK] = "loopback: it never leaves the machine",
	[NET_STACKED] = "it is made of other interfaces, which count",
	[NET_MEMBER] = "it belongs to another interface, which counts its traffic",
	[NET_REPRESENTOR] = "it stands for a virtual function, whose traffic the port counts",
	[NET_IPOIB] = "IP over InfiniBand: the port counts it (ib.rx.bytes)",
	[NET_SLINGSHOT] = "Ethernet over Slingshot: the port counts it (ib.rx.bytes)",
	[NET_OUTRANKED] = "virtual: what leaves the machine is counted where it leaves",
};

const char *net_reason_text(enum net_reason reason)
{
	return reason_text[reason];
}

/* A number of sysfs, "32" or "0x1003"; -1 when there is none. */
static long sys_number(const struct net_view *v, const char *name, const char *file)
{
	char path[PATH_SIZE], text[32], *end;
	long value;

	snprintf(path, sizeof(path), "%s/%s/%s", v->folder, name, file);
	if (value_get_text(v->env, path, text, sizeof(text)) < 0)
		return -1;
	value = strtol(text, &end, 0);
	return end == text ? -1 : value;
}

/* Names of interfaces can be almost anything: this one may not be usable in a path. */
static bool is_plain(const char *name)
{
	return !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

enum net_link net_link(const struct net_view *v, const char *name)
{
	char path[PATH_SIZE], target[256];
	ssize_t n;

	if (!is_plain(name))
		return NET_UNSEEN;
	snprintf(path, sizeof(path), "%s/%s", v->folder, name);
	n = env_readlink(v->env, path, target, sizeof(target) - 1);
	if (n < 0)
		return NET_UNSEEN;
	target[n] = 0;
	return strstr(target, "/virtual/") ? NET_VIRTUAL : NET_REAL;
}

/* The interface that this one is put into, or "". */
static void master_of(const struct net_view *v, const char *name, char out[IF_NAMESIZE])
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s/master", v->folder, name);
	if (value_get_link(v->env, path, out, IF_NAMESIZE) < 0)
		*out = 0;
}

struct folder { /* what is in an interface's folder that matters here */
	bool group, port, tap;
	char lower[IF_NAMESIZE];
};

static int on_folder_entry(void *arg, const char *entry)
{
	struct folder *f = arg;

	if (!strcmp(entry, "bridge") || !strcmp(entry, "bonding"))
		f->group = true;
	else if (!strcmp(entry, "brport"))
		f->port = true;
	else if (!strcmp(entry, "tun_flags"))
		f->tap = true;
	else if (!strncmp(entry, "lower_", 6))
		snprintf(f->lower, sizeof(f->lower), "%s", entry + 6);
	return 0;
}

static struct folder look_into(const struct net_view *v, const char *name)
{
	struct folder f = {0};
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", v->folder, name);
	env_list(v->env, path, on_folder_entry, &f);
	return f;
}

struct net_kind_found {
	char name[64];
};

static int on_first(void *arg, const char *entry)
{
	struct net_kind_found *first = arg;

	snprintf(first->name, sizeof(first->name), "%s", entry);
	return 1;
}

/* Is this IPoIB on a port whose own counters can be read? */
static bool port_counts(const struct net_view *v, const char *name)
{
	long port = sys_number(v, name, "dev_port");
	struct net_kind_found device = {0};
	char path[PATH_SIZE];
	int64_t data;

	snprintf(path, sizeof(path), "%s/%s/device/infiniband", v->folder, name);
	if (port < 0 || env_list(v->env, path, on_first, &device) <= 0)
		return false;
	snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/%ld/counters/port_rcv_data", device.name,
		port + 1);
	return value_get(v->env, path, &data) == 0;
}

/* The Ethernet side of Slingshot: the counters of the port are beside it, as ib.c has them. */
static bool is_slingshot(const struct net_view *v, const char *name)
{
	struct trouble ignored;
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s/device/telemetry/hni_sts_rx_ok_octets", v->folder, name);
	return probe_file(v->env, path, (struct trouble){0}, &ignored) == 0;
}

static bool is_representor(const struct net_view *v, const char *name)
{
	char path[PATH_SIZE], text[64];

	snprintf(path, sizeof(path), "%s/%s/phys_port_name", v->folder, name);
	if (value_get_text(v->env, path, text, sizeof(text)) < 0)
		return false;
	return strstr(text, "vf") || strstr(text, "sf"); /* "pf0vf3"; a real port is "p0" */
}

/* Hardware whose traffic another interface counts: members of a synthetic one (a virtual function behind
 * hv_netvsc or net_failover, both of which have a device of their own and add its traffic to theirs), ports
 * of a switch chip behind the interface that leads to it, representors, IPoIB. */
static enum net_reason why_not_hardware(const struct net_view *v, const char *name)
{
	struct folder f = look_into(v, name);
	char master[IF_NAMESIZE];

	master_of(v, name, master);
	if (*master && net_link(v, master) == NET_REAL)
		return NET_MEMBER;
	if (*f.lower) {
		master_of(v, f.lower, master);
		if (strcmp(master, name))
			return NET_STACKED;
	}
	if (is_representor(v, name))
		return NET_REPRESENTOR;
	if (sys_number(v, name, "type") == 32 && port_counts(v, name)) /* ARPHRD_INFINIBAND */
		return NET_IPOIB;
	return is_slingshot(v, name) ? NET_SLINGSHOT : NET_NONE;
}

struct net_kind net_kind_real(const struct net_view *v, const char *name)
{
	enum net_reason reason = why_not_hardware(v, name);

	return (struct net_kind){reason == NET_NONE ? NET_HARDWARE : NET_NEVER, reason};
}

struct net_kind net_kind_virtual(const struct net_view *v, const char *name)
{
	struct folder f = look_into(v, name);
	long flags = MAX(sys_number(v, name, "flags"), 0);

	if (flags & IFF_LOOPBACK)
		return (struct net_kind){NET_NEVER, NET_LOOPBACK};
	if (f.group || *f.lower)
		return (struct net_kind){NET_NEVER, NET_STACKED};
	if (f.port || f.tap || flags & IFF_NOARP) /* the last: tunnels, dummies, ifb */
		return (struct net_kind){NET_ATTACHED, NET_NONE};
	return (struct net_kind){NET_ALONE, NET_NONE};
}
