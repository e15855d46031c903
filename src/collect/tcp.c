/* Counters of TCP and UDP (proc/net/snmp, proc/net/netstat), in the job's network namespace: above all the
 * segments that had to be sent again.
 *
 * Both files come in pairs of lines, "Tcp: InSegs OutSegs..." and "Tcp: 14443 9173...". Kernels have added
 * columns in all places, so each is found by its name, once: the first line of a pair does not change while
 * the kernel runs. netstat has some hundred columns summed over all CPUs for every reading, so it is read
 * only when asked for. */
#include "collect/keyed.h"
#include "collect/netns.h"

#include <string.h>

enum group { TCP, UDP, TCP_MORE, NR_GROUPS };

static const struct {
	const char *head;
	uint8_t file;
} group[NR_GROUPS] = {
	[TCP] = {"Tcp:", 0},
	[UDP] = {"Udp:", 0},
	[TCP_MORE] = {"TcpExt:", 1},
};

static const char *const file_name[] = {"snmp", "netstat"};
#define NR_FILES ARRAY_SIZE(file_name)

/* clang-format off */
#define FROM(g, k) {.key = k, .source = g}

static const struct metric tcp_metric[] = {
	{"tcp.retransmits",     "TCP segments sent again because no acknowledgement came.", FROM(TCP, "RetransSegs"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "tcp.troubles", TIER_TICK, false},
	{"tcp.rx.segments",     "TCP segments received.", FROM(TCP, "InSegs"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tcp.tx.segments",     "TCP segments sent, those sent again not counted.", FROM(TCP, "OutSegs"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tcp.errors",          "TCP segments that arrived damaged.", FROM(TCP, "InErrs"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "tcp.troubles", TIER_TICK, false},
	{"tcp.resets",          "TCP segments sent with the reset flag.", FROM(TCP, "OutRsts"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "tcp.troubles", TIER_TICK, false},
	{"tcp.broken",          "TCP connections that a reset ended.", FROM(TCP, "EstabResets"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tcp.failed",          "TCP connections that could not be made.", FROM(TCP, "AttemptFails"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tcp.opened",          "TCP connections begun from here.", FROM(TCP, "ActiveOpens"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tcp.accepted",        "TCP connections begun from elsewhere.", FROM(TCP, "PassiveOpens"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tcp.connections",     "TCP connections that are open.", FROM(TCP, "CurrEstab"), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "tcp.connections", TIER_TICK, false},
	{"udp.rx.datagrams",    "UDP datagrams received.", FROM(UDP, "InDatagrams"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"udp.tx.datagrams",    "UDP datagrams sent.", FROM(UDP, "OutDatagrams"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"udp.errors",          "UDP datagrams that could not be delivered, except those to ports without a receiver.", FROM(UDP, "InErrors"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"udp.overruns",        "UDP datagrams lost because the program's socket was full.", FROM(UDP, "RcvbufErrors"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tcp.timeouts",        "Times a TCP connection gave up waiting for an answer and sent again.", FROM(TCP_MORE, "TCPTimeouts"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, true},
	{"tcp.syn_retransmits", "Retransmits while a connection was being made.", FROM(TCP_MORE, "TCPSynRetrans"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, true},
	{"tcp.listen_drops",    "Connections refused because the program did not accept them fast enough.", FROM(TCP_MORE, "ListenDrops"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, true},
	{"tcp.memory_pressure", "Times the kernel ran short of memory for TCP.", FROM(TCP_MORE, "TCPMemoryPressures"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, true},
};
/* clang-format on */

extern const struct collector collector_tcp;

struct tcp {
	struct netns ns;
	struct textfile file[NR_FILES];
	struct columns_reader reader[NR_GROUPS];
	uint32_t row;
};

/* The nth line, from 0, that begins with the group's head; false when there is none. */
static bool find_line(
	const char *p, const char *end, const char *head, int nth, const char **ret, size_t *ret_len)
{
	size_t len = strlen(head);
	const char *stop;

	for (; (stop = memchr(p, '\n', (size_t)(end - p))); p = stop + 1) {
		if ((size_t)(stop - p) <= len || memcmp(p, head, len) || nth-- > 0)
			continue;
		*ret = p;
		*ret_len = (size_t)(stop - p);
		return true;
	}
	return false;
}

static int metric_named(int source, const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(tcp_metric); i++)
		if (tcp_metric[i].at.source == source && strlen(tcp_metric[i].at.key) == len &&
			!memcmp(tcp_metric[i].at.key, word, len))
			return (int)i;
	return -1;
}

/* Which words of the second line are wanted, by the names in the first. */
static void learn(struct tcp *s, const struct collect_context *ctx, int g, const char *text, const char *end)
{
	struct columns_reader *r = &s->reader[g];
	const char *p, *stop;
	size_t len;

	*r = (struct columns_reader){0};
	for (size_t i = 0; i < ARRAY_SIZE(tcp_metric); i++)
		if (tcp_metric[i].at.source == g && ctx->map.col[i] >= 0)
			r->mask |= UINT64_C(1) << ctx->map.col[i];
	if (!find_line(text, end, group[g].head, 0, &p, &len))
		return;
	for (int16_t word = 1; len && r->nr < METRICS_MAX && word < INT16_MAX; word++) {
		int metric;

		stop = memchr(p, ' ', len);
		stop = stop ? stop : p + len;
		metric = metric_named(g, p, (size_t)(stop - p));
		if (metric >= 0 && ctx->map.col[metric] >= 0) {
			r->pick[r->nr].from = word;
			r->pick[r->nr++].to = ctx->map.col[metric];
		}
		len -= (size_t)(stop - p);
		p = stop + (len > 0);
		len -= len > 0;
	}
}

static bool is_wanted(const struct collect_context *ctx, size_t file)
{
	for (size_t i = 0; i < ARRAY_SIZE(tcp_metric); i++)
		if (ctx->map.col[i] >= 0 && group[tcp_metric[i].at.source].file == file)
			return true;
	return false;
}

/* len < 0: there is no text, and so no values. */
static void fill(struct tcp *s, struct collect_context *ctx, size_t file, ssize_t len)
{
	const char *text = s->file[file].text, *line = "";

	for (int g = 0; g < NR_GROUPS; g++) {
		size_t line_len = 0;

		if (group[g].file != file)
			continue;
		if (len > 0)
			find_line(text, text + len, group[g].head, 1, &line, &line_len);
		columns_read(&s->reader[g], line, line_len, 1, ctx->table, s->row);
	}
}

/* Called again when the job is in another namespace. Without netstat, snmp is still read. */
static int open_files(struct tcp *s, struct collect_context *ctx)
{
	for (size_t f = 0; f < NR_FILES; f++) {
		int r = is_wanted(ctx, f) ? netns_open(&s->ns, ctx, &s->file[f], file_name[f], true)
					  : -ENODATA;

		if (r == -ENODATA || (r < 0 && f && is_wanted(ctx, 0)))
			continue;
		if (r < 0)
			return r;
		for (int g = 0; g < NR_GROUPS; g++)
			if (group[g].file == f)
				learn(s, ctx, g, s->file[f].text, s->file[f].text + strlen(s->file[f].text));
	}
	return 0;
}

static int tcp_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, "proc/net/snmp",
		(struct trouble){"the kernel was built without IP networking", NULL}, reterr_why);
}

static int tcp_open(void *state, struct collect_context *ctx)
{
	struct tcp *s = state;
	int row = ctx->join(ctx, "node"), r;

	if (row < 0)
		return row;
	s->row = (uint32_t)row;
	netns_find(&s->ns, ctx);
	r = open_files(s, ctx);
	if (r < 0)
		return r;
	for (size_t f = 0; f < NR_FILES; f++)
		if (s->file[f].text)
			fill(s, ctx, f, (ssize_t)strlen(s->file[f].text));
	for (int g = 0; g < NR_GROUPS; g++)
		collect_explain(ctx, &collector_tcp, g, s->row);
	return 0;
}

static int tcp_sample(void *state, struct collect_context *ctx)
{
	struct tcp *s = state;
	bool all = ctx->medium;
	int r = 0, row;

	if (netns_moved(&s->ns, ctx) && open_files(s, ctx) == 0) {
		/* The counters of another namespace: their first values are no growth. */
		ctx->leave(ctx, s->row);
		row = ctx->join(ctx, "node");
		if (row < 0)
			return row;
		s->row = (uint32_t)row;
		all = true;
	}
	table_touch(ctx->table, s->row);
	for (size_t f = 0; f < NR_FILES; f++) {
		ssize_t n;

		if (!s->file[f].text || (f && !all))
			continue;
		n = textfile_read(&s->file[f], ctx->env);
		fill(s, ctx, f, n);
		r = n < 0 ? (int)n : r;
	}
	return r;
}

static void tcp_close(void *state, struct collect_context *ctx)
{
	struct tcp *s = state;

	for (size_t f = 0; f < NR_FILES; f++)
		textfile_close(&s->file[f], ctx->env);
}

const struct collector collector_tcp = {
	.name = "tcp",
	.summary = "retransmits, connections and datagrams, in the job's network namespace",
	.domain = DOMAIN_NODE,
	.metric = tcp_metric,
	.nr_metrics = ARRAY_SIZE(tcp_metric),
	.state_size = sizeof(struct tcp),
	.tier = TIER_TICK,
	.probe = tcp_probe,
	.open = tcp_open,
	.sample = tcp_sample,
	.close = tcp_close,
};
