/* What kind a network interface is, by sysfs, and so whether its traffic may be added to that of others. */
#ifndef COLLECT_NET_KIND_H
#define COLLECT_NET_KIND_H

#include "env/env.h"

/* The smaller, the better: the interfaces of the smallest rank in a namespace count. */
enum net_rank {
	NET_HARDWARE,
	NET_ALONE,    /* virtual, and not part of anything here: what a container has */
	NET_ATTACHED, /* ports of bridges, taps, tunnels: their traffic goes on to others */
	NET_NEVER,
};

enum net_reason { /* why it is not added up */
	NET_NONE,
	NET_LOOPBACK,
	NET_STACKED,
	NET_MEMBER,
	NET_REPRESENTOR,
	NET_IPOIB,
	NET_SLINGSHOT,
	NET_OUTRANKED,
	NR_NET_REASONS
};

struct net_kind {
	enum net_rank rank;
	enum net_reason reason; /* with NET_NEVER */
};

struct net_view { /* the sysfs that describes a namespace */
	struct env *env;
	char folder[48]; /* "sys/class/net" */
};

enum net_link { NET_UNSEEN, NET_VIRTUAL, NET_REAL };

/* One system call, which is enough in most cases. */
enum net_link net_link(const struct net_view *v, const char *name);
/* Of an interface with hardware behind it, and of one without. */
struct net_kind net_kind_real(const struct net_view *v, const char *name);
struct net_kind net_kind_virtual(const struct net_view *v, const char *name);
/* For people. */
const char *net_reason_text(enum net_reason reason);
#endif
