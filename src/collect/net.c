/* Traffic of every network interface (proc/net/dev), in the job's network namespace.
 *
 * Adding interfaces up is where others go wrong: a packet that leaves a container passes veth, bridge, bond
 * and Ethernet, and is in the counters of all four. Here an interface counts when it is one of the best that
 * the namespace has; the others are `apart`. Best are those with hardware behind them; in a namespace without
 * any (a container) virtual ones that stand alone; then ports of bridges, taps and tunnels. What is made of
 * other interfaces never counts. Telling by names (br-*, veth*, docker0) was rejected: names are anybody's
 * choice. Of a namespace that is not ours sysfs does not tell; there only loopback, bonds and VLANs are
 * known, as proc/net has them.
 *
 * The file is read whole, by position: its lines stay where they are as long as no interface comes or goes. A
 * new name in the place of an old one, with counters that go on, is the same interface renamed. */
#include "collect/keyed.h"
#include "collect/netns.h"
#include "read/value.h"

#include <net/if.h>
#include <string.h>

/* clang-format off */
#define COLUMN(n) {.col = n}

static const struct metric net_metric[] = {
	{"net.rx.bytes",      "Bytes received.", COLUMN(1), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"net.tx.bytes",      "Bytes sent.", COLUMN(9), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"net.rx.packets",    "Packets received.", COLUMN(2), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"net.tx.packets",    "Packets sent.", COLUMN(10), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"net.rx.errors",     "Packets that arrived damaged.", COLUMN(3), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "net.errors", TIER_TICK, false},
	{"net.tx.errors",     "Packets that could not be sent.", COLUMN(11), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "net.errors", TIER_TICK, false},
	{"net.rx.drops",      "Packets received and thrown away, for want of room or of anybody who wanted them.", COLUMN(4), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "net.errors", TIER_TICK, false},
	{"net.tx.drops",      "Packets thrown away before they were sent.", COLUMN(12), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "net.errors", TIER_TICK, false},
	{"net.rx.overruns",   "Packets lost because the interface's own buffer was full.", COLUMN(5), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"net.rx.multicast",  "Multicast packets received.", COLUMN(8), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"net.tx.carrier",    "Packets that were not sent because the link was lost.", COLUMN(15), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
};
/* clang-format on */

#define ROWS_MAX 256   /* interfaces that are recorded */
#define LINES_MAX 4096 /* interfaces that are known */
#define PARTING_MAX 16 /* interfaces renamed in one sample */
#define COLUMNS_MAX 16 /* of proc/net/dev */
#define HEADER_LINES 2

/* The less, the better. Of the least that is there interfaces count. */
enum rank { HARDWARE, ALONE, ATTACHED, NEVER };

enum reason { NONE, LOOPBACK, STACKED, MEMBER, REPRESENTOR, IPOIB, SLINGSHOT, OUTRANKED, NR_REASONS };

static const char *const reason_text[NR_REASONS] = {
	[LOOPBACK] = "loopback: it never leaves the machine",
	[STACKED] = "it is made of other interfaces, which count",
	[MEMBER] = "it belongs to another interface, which counts its traffic",
	[REPRESENTOR] = "it stands for a virtual function, whose traffic the port counts",
	[IPOIB] = "IP over InfiniBand: the port counts it (ib.rx.bytes)",
	[SLINGSHOT] = "Ethernet over Slingshot: the port counts it (ib.rx.bytes)",
	[OUTRANKED] = "virtual: what leaves the machine is counted where it leaves",
};

struct line { /* of proc/net/dev */
	char name[IF_NAMESIZE];
	uint16_t row_plus_1;	 /* 0: not recorded */
	uint16_t parting_plus_1; /* the row it had under its former name */
	uint8_t rank, reason;
	bool apart; /* as it was joined */
	bool known; /* its rank is */
	bool fresh; /* came since the medium tier was due; what it is may not have been settled */
	bool taken;
};

struct net {
	struct netns ns;
	struct textfile file;
	struct columns_reader reader;
	unsigned nr; /* lines */
	struct line memory[2][LINES_MAX], *line, *other;
	uint8_t best; /* rank */
	bool full, said_full;
	unsigned nr_parting;
	uint16_t parting[PARTING_MAX]; /* rows that leave at the next sample */
};

extern const struct collector collector_net;

struct entry { /* a line of the text */
	const char *name, *name_end, *values, *end;
};

/* The next line that is an interface's: "  eth0: 1 2 3...". */
static bool next_entry(const char **p, const char *end, struct entry *ret)
{
	const char *stop;

	for (; (stop = memchr(*p, '\n', (size_t)(end - *p))); *p = stop + 1) {
		const char *name = *p, *colon = memrchr(name, ':', (size_t)(stop - name));

		while (name < stop && *name == ' ')
			name++;
		if (!colon || colon <= name || colon - name >= IF_NAMESIZE)
			continue;
		*ret = (struct entry){name, colon, colon + 1, stop};
		*p = stop + 1;
		return true;
	}
	return false;
}

static const char *skip_header(const char *p, const char *end)
{
	for (int i = 0; i < HEADER_LINES; i++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));

		p = stop ? stop + 1 : end;
	}
	return p;
}

static bool has_name(const struct line *line, const struct entry *entry)
{
	size_t len = (size_t)(entry->name_end - entry->name);

	return !memcmp(line->name, entry->name, len) && !line->name[len];
}

/* Names that are no path of their own. */
static bool is_plain(const char *name)
{
	return !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static bool file_exists(struct env *env, const char *path)
{
	struct trouble ignored;

	return probe_file(env, path, (struct trouble){0}, &ignored) != -ENOENT;
}

/* A number of sysfs, "32" or "0x1003"; -1 when there is none. */
static long sys_number(struct env *env, const char *name, const char *file)
{
	char path[96], text[32], *end;
	long value;

	snprintf(path, sizeof(path), "sys/class/net/%s/%s", name, file);
	if (value_get_text(env, path, text, sizeof(text)) < 0)
		return -1;
	value = strtol(text, &end, 0);
	return end == text ? -1 : value;
}

enum link_kind { NO_LINK, VIRTUAL, REAL };

static enum link_kind link_kind(struct env *env, const char *name)
{
	char path[64], target[256];
	ssize_t n;

	snprintf(path, sizeof(path), "sys/class/net/%s", name);
	n = env_readlink(env, path, target, sizeof(target) - 1);
	if (n < 0)
		return NO_LINK;
	target[n] = 0;
	return strstr(target, "/virtual/") ? VIRTUAL : REAL;
}

/* The interface that this one is put into, or "". */
static void master_of(struct env *env, const char *name, char out[IF_NAMESIZE])
{
	char path[96];

	snprintf(path, sizeof(path), "sys/class/net/%s/master", name);
	if (value_get_link(env, path, out, IF_NAMESIZE) < 0)
		*out = 0;
}

struct folder { /* what is in sys/class/net/NAME that matters here */
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

static struct folder look_into(struct env *env, const char *name)
{
	struct folder f = {0};
	char path[64];

	snprintf(path, sizeof(path), "sys/class/net/%s", name);
	env_list(env, path, on_folder_entry, &f);
	return f;
}

struct found {
	char name[64];
};

static int on_first(void *arg, const char *entry)
{
	snprintf(((struct found *)arg)->name, sizeof(((struct found *)arg)->name), "%s", entry);
	return 1;
}

/* Is this the IP of a port whose own counters can be read? */
static bool port_counts(struct env *env, const char *name)
{
	long port = sys_number(env, name, "dev_port");
	struct found device = {0};
	char path[200];
	int64_t data;

	snprintf(path, sizeof(path), "sys/class/net/%s/device/infiniband", name);
	if (port < 0 || env_list(env, path, on_first, &device) <= 0)
		return false;
	snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/%ld/counters/port_rcv_data", device.name,
		port + 1);
	return value_get(env, path, &data) == 0;
}

/* The Ethernet side of Slingshot: the counters of the port are beside it, as ib.c has them. */
static bool is_slingshot(struct env *env, const char *name)
{
	char path[120];

	snprintf(path, sizeof(path), "sys/class/net/%s/device/telemetry/hni_sts_rx_ok_octets", name);
	return file_exists(env, path);
}

static bool is_representor(struct env *env, const char *name)
{
	char path[96], text[64];

	snprintf(path, sizeof(path), "sys/class/net/%s/phys_port_name", name);
	if (value_get_text(env, path, text, sizeof(text)) < 0)
		return false;
	return strstr(text, "vf") || strstr(text, "sf"); /* "pf0vf3"; a real port is "p0" */
}

/* Hardware whose traffic another interface counts: members of a synthetic one (a virtual function behind
 * hv_netvsc or net_failover, both of which have a device of their own and add its traffic to theirs), ports
 * of a switch chip behind the interface that leads to it, representors, IPoIB. */
static enum reason why_not_hardware(struct env *env, const char *name)
{
	struct folder f = look_into(env, name);
	char master[IF_NAMESIZE];

	master_of(env, name, master);
	if (*master && link_kind(env, master) == REAL)
		return MEMBER;
	if (*f.lower) {
		master_of(env, f.lower, master);
		if (strcmp(master, name))
			return STACKED;
	}
	if (is_representor(env, name))
		return REPRESENTOR;
	if (sys_number(env, name, "type") == 32 && port_counts(env, name)) /* ARPHRD_INFINIBAND */
		return IPOIB;
	return is_slingshot(env, name) ? SLINGSHOT : NONE;
}

static void rank_virtual(struct env *env, struct line *line)
{
	struct folder f = look_into(env, line->name);
	long flags = sys_number(env, line->name, "flags");

	line->rank = NEVER;
	if (flags >= 0 && flags & IFF_LOOPBACK)
		line->reason = LOOPBACK;
	else if (f.group || *f.lower)
		line->reason = STACKED;
	else if (f.port || f.tap || (flags >= 0 && flags & IFF_NOARP)) /* the last: tunnels, dummies, ifb */
		line->rank = ATTACHED;
	else
		line->rank = ALONE;
}

/* Known through proc/net of the job's own namespace. */
static void rank_unseen(const struct net *s, struct env *env, struct line *line)
{
	static const char *const folder[] = {"bonding", "vlan"};
	char file[32], path[96];

	line->rank = ALONE;
	for (size_t i = 0; i < ARRAY_SIZE(folder); i++) {
		snprintf(file, sizeof(file), "%s/%s", folder[i], line->name);
		netns_path(&s->ns, file, path, sizeof(path));
		if (!file_exists(env, path))
			continue;
		line->rank = NEVER;
		line->reason = STACKED;
	}
}

/* What the lines are that are not known. Hardware first: where there is some, nothing need be asked of the
 * others. */
static void rank_lines(struct net *s, struct env *env)
{
	for (unsigned i = 0; i < s->nr; i++) {
		struct line *line = s->line + i;
		enum link_kind kind;

		if (line->known)
			continue;
		line->reason = NONE;
		line->rank = NEVER;
		if (!strcmp(line->name, "lo")) {
			line->reason = LOOPBACK;
			line->known = true;
			continue;
		}
		kind = !s->ns.foreign && is_plain(line->name) ? link_kind(env, line->name) : NO_LINK;
		if (kind == VIRTUAL)
			continue;
		line->known = true;
		if (kind == NO_LINK) {
			rank_unseen(s, env, line);
			continue;
		}
		line->reason = (uint8_t)why_not_hardware(env, line->name);
		line->rank = line->reason == NONE ? HARDWARE : NEVER;
	}
	for (unsigned i = 0; i < s->nr; i++)
		s->best = (uint8_t)MIN(s->best, s->line[i].rank);
	for (unsigned i = 0; i < s->nr; i++) {
		struct line *line = s->line + i;

		if (line->known)
			continue;
		line->known = true;
		if (s->best == HARDWARE)
			line->rank = ALONE;
		else
			rank_virtual(env, line);
		s->best = (uint8_t)MIN(s->best, line->rank);
	}
}

static void leave(struct collect_context *ctx, struct line *line)
{
	if (line->row_plus_1)
		ctx->leave(ctx, line->row_plus_1 - 1u);
	line->row_plus_1 = 0;
}

static void join(struct net *s, struct collect_context *ctx, struct line *line)
{
	enum reason reason = line->reason == NONE ? OUTRANKED : (enum reason)line->reason;
	struct about about = {"apart", reason_text[reason]};
	int row;

	line->apart = line->rank != s->best || line->rank == NEVER;
	row = ctx->join_about(ctx, line->name, &about, line->apart);
	line->row_plus_1 = row < 0 ? 0 : (uint16_t)(row + 1);
	s->full = row < 0;
	if (!s->full || s->said_full)
		return;
	s->said_full = true;
	collect_tell(ctx, &collector_net, FAILED,
		"there are more than 256 interfaces; the others are left out", NULL);
}

/* Joins what is not yet, those that count first; what now counts otherwise than before comes anew. */
static void place(struct net *s, struct collect_context *ctx)
{
	for (int apart = 0; apart < 2; apart++)
		for (unsigned i = 0; i < s->nr; i++) {
			struct line *line = s->line + i;
			bool wanted = line->rank != s->best || line->rank == NEVER;

			if (wanted != apart || (line->row_plus_1 && line->apart == wanted))
				continue;
			s->full = s->full && !line->row_plus_1;
			leave(ctx, line);
			if (!s->full)
				join(s, ctx, line);
		}
}

/* Interfaces that came are asked again when they have had time to be put into a bridge. */
static void look_again(struct net *s, struct collect_context *ctx)
{
	bool any = false;

	for (unsigned i = 0; i < s->nr; i++) {
		struct line *line = s->line + i;

		if (!line->fresh || line->row_plus_1 == 0)
			continue;
		line->fresh = line->known = false;
		any = true;
	}
	if (!any)
		return;
	rank_lines(s, ctx->env);
	place(s, ctx);
}

static bool is_same_list(const struct net *s, const char *p, const char *end)
{
	struct entry entry;
	unsigned i = 0;

	for (; next_entry(&p, end, &entry) && i < LINES_MAX; i++)
		if (i >= s->nr || !has_name(s->line + i, &entry))
			return false;
	return i == s->nr;
}

/* Among nr lines, from `from` on and around. */
static struct line *find_line(struct line *line, unsigned nr, unsigned from, const struct entry *entry)
{
	for (unsigned i = 0; i < nr; i++) {
		struct line *at = line + (from + i) % nr;

		if (!at->taken && has_name(at, entry))
			return at;
	}
	return NULL;
}

/* The counters of the interface that stood here go on in this line. */
static bool goes_on(const struct collect_context *ctx, const struct line *old, const struct entry *entry)
{
	const char *p = entry->values;
	int64_t value[COLUMNS_MAX];
	uint32_t row = old->row_plus_1 - 1u;

	for (int i = 0; i < COLUMNS_MAX; i++) {
		while (p < entry->end && *p == ' ')
			p++;
		if (!read_number(&p, entry->end, &value[i]))
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(net_metric); i++) {
		int col = ctx->map.col[i];

		if (col >= 0 && ctx->table->valid[row] >> col & 1 &&
			value[net_metric[i].at.col - 1] < table_row(ctx->table, row)[col])
			return false;
	}
	return true;
}

/* The row under the old name is read once more with the new one's counters, so that nothing between two
 * samples is lost, and leaves then. */
static void find_renamed(struct net *s, const struct collect_context *ctx, const struct line *before,
	unsigned nr_before, const char *p, const char *end)
{
	struct entry entry;

	if (nr_before != s->nr)
		return;
	for (unsigned i = 0; i < s->nr && next_entry(&p, end, &entry);) {
		struct line *line = s->line + i;
		const struct line *old = before + i;

		if (!has_name(line, &entry)) /* the second of two lines */
			continue;
		i++;
		if (line->known || old->taken || !old->row_plus_1 || s->nr_parting == PARTING_MAX ||
			!goes_on(ctx, old, &entry))
			continue;
		line->parting_plus_1 = old->row_plus_1;
		s->parting[s->nr_parting++] = (uint16_t)(old->row_plus_1 - 1u);
	}
}

static bool is_parting(const struct net *s, const struct line *line)
{
	for (unsigned i = 0; i < s->nr_parting; i++)
		if (s->parting[i] + 1u == line->row_plus_1)
			return true;
	return false;
}

/* Interfaces came, went, or have other names. */
static void relearn(struct net *s, struct collect_context *ctx, const char *text, const char *end)
{
	struct line *before = s->line, *now = s->other;
	unsigned nr_before = s->nr, at = 0;
	const char *p = text;
	struct entry entry;

	s->line = now;
	s->other = before;
	for (s->nr = 0; s->nr < LINES_MAX && next_entry(&p, end, &entry); s->nr++) {
		struct line *old = nr_before ? find_line(before, nr_before, at, &entry) : NULL;

		now[s->nr] = (struct line){.fresh = true};
		memcpy(now[s->nr].name, entry.name, (size_t)(entry.name_end - entry.name));
		if (!old) {
			/* A long list comes in parts, between which it may shift: of two lines one counts. */
			if (find_line(now, s->nr, 0, &entry))
				s->nr--;
			continue;
		}
		now[s->nr] = *old;
		old->taken = true;
		at = (unsigned)(old - before) + 1;
	}
	find_renamed(s, ctx, before, nr_before, text, end);
	for (unsigned i = 0; i < nr_before; i++) {
		if (!before[i].taken && !is_parting(s, before + i))
			leave(ctx, before + i);
		s->full = s->full && before[i].taken;
	}
	rank_lines(s, ctx->env);
	place(s, ctx);
}

static void read_row(
	const struct net *s, struct table *t, uint32_t row, const struct entry *entry, bool in_tick)
{
	if (in_tick)
		table_touch(t, row);
	columns_read(&s->reader, entry->values, (size_t)(entry->end - entry->values), 1, t, row);
}

static void read_lines(struct net *s, struct collect_context *ctx, size_t len, bool in_tick)
{
	const char *end = s->file.text + len, *p = skip_header(s->file.text, end);
	struct entry entry;

	if (!is_same_list(s, p, end))
		relearn(s, ctx, p, end);
	else if (ctx->medium && in_tick)
		look_again(s, ctx);
	for (unsigned i = 0; i < s->nr && next_entry(&p, end, &entry);) {
		struct line *line = s->line + i;

		if (!has_name(line, &entry))
			continue;
		i++;
		if (line->parting_plus_1)
			read_row(s, ctx->table, line->parting_plus_1 - 1u, &entry, in_tick);
		line->parting_plus_1 = 0;
		if (line->row_plus_1)
			read_row(s, ctx->table, line->row_plus_1 - 1u, &entry, in_tick);
	}
}

static int net_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, "proc/net/dev",
		(struct trouble){"the kernel was built without networking", NULL}, reterr_why);
}

static void start_over(struct net *s)
{
	s->line = s->memory[0];
	s->other = s->memory[1];
	s->nr = 0;
	s->best = NEVER;
	s->full = false;
}

static int net_open(void *state, struct collect_context *ctx)
{
	struct net *s = state;
	int r;

	netns_find(&s->ns, ctx);
	r = netns_open(&s->ns, ctx, &s->file, "dev", false);
	if (r < 0)
		return r;
	columns_init(&s->reader, net_metric, ARRAY_SIZE(net_metric), 0, &ctx->map);
	start_over(s);
	read_lines(s, ctx, strlen(s->file.text), false);
	for (unsigned i = 0; i < s->nr; i++)
		s->line[i].fresh = false;
	if (s->nr && s->line[0].row_plus_1)
		collect_explain(ctx, &collector_net, 0, s->line[0].row_plus_1 - 1u);
	return 0;
}

/* Those that had another name in the sample before. */
static void part(struct net *s, struct collect_context *ctx)
{
	if (!s->nr_parting)
		return;
	while (s->nr_parting)
		ctx->leave(ctx, s->parting[--s->nr_parting]);
	s->full = false;
	place(s, ctx);
}

static int net_sample(void *state, struct collect_context *ctx)
{
	struct net *s = state;
	ssize_t n;

	part(s, ctx);
	if (netns_moved(&s->ns, ctx) && netns_open(&s->ns, ctx, &s->file, "dev", false) == 0) {
		for (unsigned i = 0; i < s->nr; i++)
			leave(ctx, s->line + i);
		start_over(s);
	}
	n = textfile_read(&s->file, ctx->env);
	if (n < 0) {
		for (unsigned i = 0; i < s->nr; i++)
			if (s->line[i].row_plus_1)
				collect_lost(ctx, s->line[i].row_plus_1 - 1u);
		return (int)n;
	}
	read_lines(s, ctx, (size_t)n, true);
	return 0;
}

static void net_close(void *state, struct collect_context *ctx)
{
	textfile_close(&((struct net *)state)->file, ctx->env);
}

const struct collector collector_net = {
	.name = "net",
	.summary = "traffic of the network interfaces, in the job's network namespace",
	.domain = DOMAIN_NET,
	.metric = net_metric,
	.nr_metrics = ARRAY_SIZE(net_metric),
	.state_size = sizeof(struct net),
	.tier = TIER_TICK,
	.max_rows = ROWS_MAX,
	.probe = net_probe,
	.open = net_open,
	.sample = net_sample,
	.close = net_close,
};
