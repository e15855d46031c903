/* Traffic of every network interface (proc/net/dev), in the job's network namespace.
 *
 * Interfaces cannot simply be added up: a packet that leaves a container passes veth, bridge, bond and
 * Ethernet, and is in the counters of all four. Here an interface counts when it is one of the best that the
 * namespace has; the others are `apart`. Best are those with hardware behind them; in a namespace without any
 * (a container) virtual ones that are connected to no other; then ports of bridges, taps and tunnels. What is
 * made of other interfaces never counts. Telling by names (br-*, veth*, docker0) was rejected: names can be
 * chosen freely. In a namespace that is not ours and has no sysfs of its own only loopback, bonds and VLANs
 * are known, as proc/net has them.
 *
 * The file is read whole, by position: its lines stay where they are as long as no interface comes or goes. A
 * new name in the place of an old one, with counters that go on, is the same interface renamed. */
#include "collect/keyed.h"
#include "collect/net_kind.h"
#include "collect/netns.h"

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
	{"net.rx.drops",      "Packets received and dropped: no buffer space, or no protocol or program for them.", COLUMN(4), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "net.errors", TIER_TICK, false},
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

struct net_line { /* of proc/net/dev */
	char name[IF_NAMESIZE];
	uint16_t row_plus_1;	 /* 0: not recorded */
	uint16_t parting_plus_1; /* the row it had under its former name */
	struct net_kind kind;
	bool counted_elsewhere; /* as it was recorded */
	bool known;		/* its rank is known */
	bool fresh;		/* new since the medium tier was last due; its kind may still change */
	bool taken;
};

struct net {
	struct netns ns;
	struct textfile file;
	struct columns_reader reader;
	unsigned nr; /* lines */
	struct net_line memory[2][LINES_MAX], *line, *other;
	enum net_rank best; /* that was seen */
	bool full, said_full;
	unsigned nr_parting;
	uint16_t parting[PARTING_MAX]; /* rows that leave at the next sample */
};

extern const struct collector collector_net;

struct net_entry { /* a line of the text */
	const char *name, *name_end, *values, *end;
};

/* The next line that is an interface's: "  eth0: 1 2 3...". The two above them have no colon. */
static bool next_entry(const char **p, const char *end, struct net_entry *ret)
{
	const char *stop;

	for (; (stop = memchr(*p, '\n', (size_t)(end - *p))); *p = stop + 1) {
		const char *name = *p, *colon = memrchr(name, ':', (size_t)(stop - name));

		while (name < stop && *name == ' ')
			name++;
		if (!colon || colon <= name || colon - name >= IF_NAMESIZE)
			continue;
		*ret = (struct net_entry){name, colon, colon + 1, stop};
		*p = stop + 1;
		return true;
	}
	return false;
}

static bool has_name(const struct net_line *line, const struct net_entry *entry)
{
	size_t len = (size_t)(entry->name_end - entry->name);

	return !memcmp(line->name, entry->name, len) && !line->name[len];
}

/* proc/net knows bonds and VLANs, also in a namespace whose sysfs is not available. */
static struct net_kind kind_unseen(const struct net *s, struct env *env, const char *name)
{
	static const char *const folder[] = {"bonding", "vlan"};
	char file[32], path[96];

	for (size_t i = 0; i < ARRAY_SIZE(folder) && !strchr(name, '/'); i++) {
		struct trouble ignored;

		snprintf(file, sizeof(file), "%s/%s", folder[i], name);
		netns_path(&s->ns, file, path, sizeof(path));
		if (probe_file(env, path, (struct trouble){0}, &ignored) != -ENOENT)
			return (struct net_kind){NET_NEVER, NET_STACKED};
	}
	return (struct net_kind){NET_ALONE, NET_NONE};
}

static int on_interface(void *arg, const char *name)
{
	const struct net *s = arg;

	if (!strcmp(name, "bonding_masters")) /* the one file among the interfaces */
		return 0;
	for (unsigned i = 0; i < s->nr; i++)
		if (!strcmp(s->line[i].name, name))
			return 0;
	return -ENODEV;
}

/* Where the interfaces are described. For a namespace that is not ours this may be the job's own sysfs:
 * containers mount it, and so does `ip netns exec`. But it may also still be our sysfs, which has other
 * interfaces. */
static bool find_view(struct net *s, struct env *env, struct net_view *ret)
{
	*ret = (struct net_view){.env = env, .folder = "sys/class/net"};
	if (!s->ns.foreign)
		return true;
	snprintf(ret->folder, sizeof(ret->folder), "proc/%d/root/sys/class/net", (int)s->ns.root);
	return env_list(env, ret->folder, on_interface, s) == 0;
}

static bool all_known(const struct net *s)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (!s->line[i].known)
			return false;
	return true;
}

static void learn(struct net *s, struct net_line *line, struct net_kind kind)
{
	line->kind = kind;
	line->known = true;
	s->best = MIN(s->best, kind.rank);
}

/* Finds the kind of new lines. Hardware first: where there is some, the others need no check. */
static void rank_lines(struct net *s, struct env *env)
{
	struct net_view view;
	bool seen;

	if (all_known(s))
		return;
	seen = find_view(s, env, &view);
	for (unsigned i = 0; i < s->nr; i++) {
		struct net_line *line = s->line + i;
		enum net_link link = NET_UNSEEN;

		if (line->known)
			continue;
		if (!strcmp(line->name, "lo")) {
			learn(s, line, (struct net_kind){NET_NEVER, NET_LOOPBACK});
			continue;
		}
		if (seen)
			link = net_link(&view, line->name);
		if (link == NET_REAL)
			learn(s, line, net_kind_real(&view, line->name));
		else if (link == NET_UNSEEN)
			learn(s, line, kind_unseen(s, env, line->name));
	}
	for (unsigned i = 0; i < s->nr; i++) {
		struct net_line *line = s->line + i;

		if (!line->known)
			learn(s, line,
				s->best == NET_HARDWARE ? (struct net_kind){NET_ALONE, NET_NONE}
							: net_kind_virtual(&view, line->name));
	}
}

static void leave(struct collect_context *ctx, struct net_line *line)
{
	if (line->row_plus_1)
		ctx->leave(ctx, line->row_plus_1 - 1u);
	line->row_plus_1 = 0;
}

static bool is_counted_elsewhere(const struct net *s, const struct net_line *line)
{
	return line->kind.rank != s->best || line->kind.rank == NET_NEVER;
}

static void join(struct net *s, struct collect_context *ctx, struct net_line *line)
{
	enum net_reason reason = line->kind.reason == NET_NONE ? NET_OUTRANKED : line->kind.reason;
	struct about about = {"apart", net_reason_text(reason)};
	int row;

	line->counted_elsewhere = is_counted_elsewhere(s, line);
	row = ctx->join_about(ctx, line->name, &about, line->counted_elsewhere);
	line->row_plus_1 = row < 0 ? 0 : (uint16_t)(row + 1);
	s->full = row < 0;
	if (!s->full || s->said_full)
		return;
	s->said_full = true;
	collect_tell(ctx, &collector_net, FAILED,
		"there are more than 256 interfaces; the others are left out", NULL);
}

/* Joins the interfaces that have no row yet, those that count first. One that counts now and did not before,
 * or the other way round, leaves and joins again. */
static void place(struct net *s, struct collect_context *ctx)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (s->line[i].row_plus_1 &&
			s->line[i].counted_elsewhere != is_counted_elsewhere(s, s->line + i)) {
			leave(ctx, s->line + i);
			s->full = false;
		}
	for (int counted_elsewhere = 0; counted_elsewhere < 2; counted_elsewhere++)
		for (unsigned i = 0; i < s->nr && !s->full; i++)
			if (!s->line[i].row_plus_1 &&
				is_counted_elsewhere(s, s->line + i) == counted_elsewhere)
				join(s, ctx, s->line + i);
}

/* New interfaces are checked again when they have had time to be put into a bridge. */
static void look_again(struct net *s, struct collect_context *ctx)
{
	bool any = false;

	for (unsigned i = 0; i < s->nr; i++) {
		struct net_line *line = s->line + i;

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
	struct net_entry entry;
	unsigned i = 0;

	for (; next_entry(&p, end, &entry) && i < LINES_MAX; i++)
		if (i >= s->nr || !has_name(s->line + i, &entry))
			return false;
	return i == s->nr;
}

/* Among nr lines, from `from` on and around. */
static struct net_line *find_line(
	struct net_line *line, unsigned nr, unsigned from, const struct net_entry *entry)
{
	for (unsigned i = 0; i < nr; i++) {
		struct net_line *at = line + (from + i) % nr;

		if (!at->taken && has_name(at, entry))
			return at;
	}
	return NULL;
}

/* The counters of this line continue those of the interface that was at this place. */
static bool goes_on(
	const struct collect_context *ctx, const struct net_line *old, const struct net_entry *entry)
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
 * samples is lost, and is freed then. */
static void find_renamed(struct net *s, const struct collect_context *ctx, const struct net_line *before,
	unsigned nr_before, const char *p, const char *end)
{
	struct net_entry entry;

	if (nr_before != s->nr)
		return;
	for (unsigned i = 0; i < s->nr && next_entry(&p, end, &entry);) {
		struct net_line *line = s->line + i;
		const struct net_line *old = before + i;

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

static bool is_parting(const struct net *s, const struct net_line *line)
{
	for (unsigned i = 0; i < s->nr_parting; i++)
		if (s->parting[i] + 1u == line->row_plus_1)
			return true;
	return false;
}

/* Takes the lines of the text, with what is known of each name. False when names have changed their order,
 * which interfaces never do. */
static bool match_names(
	struct net *s, struct net_line *before, unsigned nr_before, const char *p, const char *end)
{
	struct net_line *now = s->line;
	bool in_order = true;
	struct net_entry entry;
	unsigned at = 0;

	for (s->nr = 0; s->nr < LINES_MAX && next_entry(&p, end, &entry); s->nr++) {
		struct net_line *old = nr_before ? find_line(before, nr_before, at, &entry) : NULL;

		now[s->nr] = (struct net_line){.fresh = true};
		memcpy(now[s->nr].name, entry.name, (size_t)(entry.name_end - entry.name));
		if (!old) {
			/* A long list comes in parts, between which it may shift: of two lines one counts. */
			if (find_line(now, s->nr, 0, &entry))
				s->nr--;
			continue;
		}
		now[s->nr] = *old;
		old->taken = true;
		in_order = in_order && (unsigned)(old - before) >= at;
		at = (unsigned)(old - before) + 1;
	}
	return in_order;
}

/* Names were exchanged: the kind of a line whose place another interface had before is not known any more. */
static void distrust_names(struct net *s, struct net_line *before)
{
	for (unsigned i = 0; i < s->nr; i++) {
		struct net_line anew = {.fresh = true};

		before[i].taken = !strcmp(before[i].name, s->line[i].name);
		if (before[i].taken)
			continue;
		memcpy(anew.name, s->line[i].name, sizeof(anew.name));
		s->line[i] = anew;
	}
}

/* Interfaces came, went, or have other names. */
static void relearn(struct net *s, struct collect_context *ctx, const char *text, const char *end)
{
	struct net_line *before = s->line;
	unsigned nr_before = s->nr;

	s->line = s->other;
	s->other = before;
	if (!match_names(s, before, nr_before, text, end) && s->nr == nr_before)
		distrust_names(s, before);
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
	const struct net *s, struct table *t, uint32_t row, const struct net_entry *entry, bool in_tick)
{
	if (in_tick)
		table_touch(t, row);
	columns_read(&s->reader, entry->values, (size_t)(entry->end - entry->values), 1, t, row);
}

static void read_lines(struct net *s, struct collect_context *ctx, size_t len, bool in_tick)
{
	const char *end = s->file.text + len, *p = s->file.text;
	struct net_entry entry;

	if (!is_same_list(s, p, end))
		relearn(s, ctx, p, end);
	else if (ctx->medium && in_tick)
		look_again(s, ctx);
	for (unsigned i = 0; i < s->nr && next_entry(&p, end, &entry);) {
		struct net_line *line = s->line + i;

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
	s->best = NET_NEVER;
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
		s->line[i].fresh = s->ns.foreign;
	if (s->nr && s->line[0].row_plus_1)
		collect_explain(ctx, &collector_net, 0, s->line[0].row_plus_1 - 1u);
	return 0;
}

/* Frees the rows of interfaces that had another name in the sample before. */
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
