/* Memory bandwidth: what the memory controllers of each package read and wrote, counted by their own PMUs
 * (uncore: one box a channel or controller) as the processor's event file says (perf/groups.h, group MEM).
 *
 * The boxes count for the whole node, never for a process, and so a row is a package. Counting needs more
 * rights than counting one's own processes. Boxes have few counters: where there are more events than that,
 * they take turns and each is scaled by its share of the time.
 *
 * A processor that we do not know is still counted where its kernel gives its events the usual names. The
 * kernel's own scales of these events are not used: those of some kernels are wrong, and a line of the cache
 * has 64 bytes. */
#include "collect/collector.h"
#include "collect/online.h"

#include "perf/counter.h"
#include "perf/groups.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

enum { ROW_READ, ROW_WRITE, ROW_BOTH, NR_ROWS };

/* clang-format off */
static const struct metric membw_metric[NR_ROWS] = {
	{"membw.read",  "Bytes that a package's memory controllers read, for all programs.", {.key = "read"}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, true},
	{"membw.write", "Bytes that a package's memory controllers wrote, for all programs.", {.key = "write"}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, true},
	{"membw.both",  "Bytes that a package's memory controllers moved, where they do not count reading and writing separately.", {.key = "both"}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, true},
};
/* clang-format on */

#define SOCKETS_MAX 32
#define BOXES_MAX 1024	    /* open counters in all */
#define EVENT_BOXES_MAX 256 /* boxes of one event */
#define DEVICES "sys/bus/event_source/devices"

struct membw {
	uint32_t nr_boxes, nr_sockets;
	struct box {
		struct counter counter;
		uint64_t bytes; /* that a count moves */
		uint8_t metric, socket;
	} box[BOXES_MAX];
	struct socket {
		int64_t package;
		uint32_t row;
		unsigned opened[NR_ROWS], failed[NR_ROWS];
		uint64_t sum[NR_ROWS];
		bool known[NR_ROWS];
	} socket[SOCKETS_MAX];
};

/* While boxes are looked for. */
struct membw_search {
	struct membw *m;
	struct collect_context *ctx;
	struct event_file file;
	const struct event_group *group;
	struct perf_event found[EVENT_BOXES_MAX];
	char no_file[400];	/* why there is none for this processor; "": there is */
	char err[NR_ROWS][256]; /* why a row's events are not available here */
	bool broken;		/* the user's own file is wrong: no_file says how */
	/* Of the counters that could not be opened, the last; 0: none. */
	int error[NR_ROWS];
	struct perf_event refused;
	bool asked[NR_ROWS]; /* the processor has events for the row */
	bool full;
};

static int find_socket(struct membw *m, struct env *env, int cpu)
{
	char path[CPU_PATH_SIZE];
	int64_t package = 0;

	snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/topology/physical_package_id", cpu);
	if (value_get(env, path, &package) < 0 || package < 0)
		package = 0;
	for (uint32_t i = 0; i < m->nr_sockets; i++)
		if (m->socket[i].package == package)
			return (int)i;
	if (m->nr_sockets == SOCKETS_MAX)
		return -ENOSPC;
	m->socket[m->nr_sockets] = (struct socket){.package = package};
	return (int)m->nr_sockets++;
}

static void open_box(struct membw_search *s, const struct perf_event *e, int cpu, int metric, uint64_t bytes)
{
	struct membw *m = s->m;
	int socket = find_socket(m, s->ctx->env, cpu), r;
	struct box *box = &m->box[m->nr_boxes];
	bool user_only;

	if (socket < 0 || m->nr_boxes == BOXES_MAX) {
		s->full = true;
		return;
	}
	r = counter_open(s->ctx->env, e, -1, cpu, INHERIT_NONE, false, &box->counter, &user_only);
	if (r < 0) {
		s->error[metric] = r;
		s->refused = *e;
		m->socket[socket].failed[metric]++;
		return;
	}
	box->bytes = bytes;
	box->metric = (uint8_t)metric;
	box->socket = (uint8_t)socket;
	m->socket[socket].opened[metric]++;
	m->nr_boxes++;
}

/* A box has a CPU of each package in its list, and counts for all of them. */
static void open_boxes(struct membw_search *s, const struct perf_event *e, int metric, uint64_t bytes)
{
	struct cpu_bits cpus;
	int r = counter_cpus(s->ctx->env, e, &cpus);

	if (r < 0) {
		s->error[metric] = r;
		s->refused = *e;
		return;
	}
	for (int cpu = -1; (cpu = cpu_bits_next(&cpus, cpu + 1)) >= 0;)
		open_box(s, e, cpu, metric, bytes);
}

static int metric_of(const char *role)
{
	for (int i = 0; i < NR_ROWS; i++)
		if (!strcmp(membw_metric[i].at.key, role))
			return i;
	return -ENOENT;
}

static void open_event(struct membw_search *s, const struct group_event *e)
{
	int metric = metric_of(e->role), nr;

	if (!e->of_package || metric < 0)
		return;
	s->asked[metric] = true;
	if (s->ctx->map.col[metric] < 0)
		return;
	nr = group_event_resolve(
		s->ctx->env, e, s->found, ARRAY_SIZE(s->found), s->err[metric], sizeof(s->err[metric]));
	for (int i = 0; i < nr; i++)
		open_boxes(s, &s->found[i], metric, (uint64_t)e->bytes);
}

/* The group MEM of the processor's file; for a processor without one, the usual names of the kernel's
 * events. */
static int find_group(struct membw_search *s)
{
	int r = event_file_find(s->ctx->env, &s->file, s->no_file, sizeof(s->no_file));

	s->broken = r < 0 && r != -ENOENT;
	if (r == -ENOENT)
		r = event_file_unknown(&s->file);
	if (r < 0)
		return r;
	s->group = event_group_find(&s->file, "MEM");
	return s->group ? 0 : -ENOENT;
}

static void join_sockets(struct membw_search *s)
{
	struct membw *m = s->m;

	for (uint32_t i = 0; i < m->nr_sockets; i++) {
		struct socket *socket = &m->socket[i];
		unsigned opened = 0, failed = 0;
		struct about about[] = {{"events", s->file.source}, {"incomplete", NULL}};
		char name[40], text[120];
		int row;

		for (int k = 0; k < NR_ROWS; k++) {
			opened += socket->opened[k];
			failed += socket->failed[k];
		}
		snprintf(text, sizeof(text), "%u of %u counters of memory channels could not be opened%s",
			failed, opened + failed, s->full ? ", and there was no room for more" : "");
		about[1].value = text;
		snprintf(name, sizeof(name), "socket-%lld", (long long)socket->package);
		row = opened ? s->ctx->join_about(s->ctx, name, about, failed || s->full ? 2 : 1) : -ENOENT;
		socket->row = row < 0 ? UINT32_MAX : (uint32_t)row;
	}
}

static bool is_opened(const struct membw *m, int metric)
{
	for (uint32_t i = 0; i < m->nr_boxes; i++)
		if (m->box[i].metric == metric)
			return true;
	return false;
}

static void explain_refusal(struct membw_search *s, int metric)
{
	int error = s->error[metric];
	enum availability availability = FAILED;
	const char *reason, *remedy;

	counter_trouble(&s->refused, error, &reason, &remedy);
	if (is_refused(error))
		availability = FORBIDDEN;
	if (error == -ENOENT || error == -ENODEV || error == -EOPNOTSUPP)
		availability = ABSENT;
	s->ctx->why(s->ctx, (size_t)metric, availability, reason, remedy);
}

/* Of a row that this processor does not have: it counts the same traffic as another, if that can be counted.
 */
static void explain_other(struct membw_search *s, int metric)
{
	int other = metric == ROW_BOTH ? ROW_READ : ROW_BOTH;
	const char *together = metric == ROW_BOTH
		? "reading and writing are counted apart here: membw.read, membw.write"
		: "reading and writing are counted together here: membw.both";
	const char *reason = NULL, *remedy = NULL;
	char text[400];

	if (s->error[other])
		counter_trouble(&s->refused, s->error[other], &reason, &remedy);
	snprintf(text, sizeof(text), "%s; %s", together, reason ? reason : "");
	s->ctx->why(s->ctx, (size_t)metric, ABSENT, reason ? text : together, remedy);
}

static void explain_row(struct membw_search *s, int metric)
{
	int other = metric == ROW_BOTH ? ROW_READ : ROW_BOTH;
	/* The kernel shows none of those that the processor has for this traffic. */
	bool none = s->err[other][0] && !s->error[other] && !is_opened(s->m, other);
	const char *reason = NULL;
	char text[400];

	if (s->error[metric]) {
		explain_refusal(s, metric);
		return;
	}
	if (s->group && !s->group->missing[0] && !s->asked[metric] && !none) {
		explain_other(s, metric);
		return;
	}
	if (s->group && s->group->missing[0])
		reason = s->group->missing;
	else if (s->no_file[0])
		reason = s->no_file;
	else
		snprintf(text, sizeof(text),
			"the kernel shows no counters of the memory controllers, as in a virtual machine: %s",
			s->err[s->asked[metric] ? metric : other]);
	s->ctx->why(s->ctx, (size_t)metric, s->broken ? FAILED : ABSENT, reason ? reason : text, NULL);
}

static int membw_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_folder(
		env, DEVICES, (struct trouble){"this kernel has no performance counters", NULL}, reterr_why);
}

static int membw_open(void *state, struct collect_context *ctx)
{
	_cleanup_(freep) struct membw_search *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->m = state;
	s->ctx = ctx;
	if (find_group(s) == 0)
		for (unsigned i = 0; i < s->group->nr_events; i++)
			open_event(s, &s->group->event[i]);
	join_sockets(s);
	for (int i = 0; i < NR_ROWS; i++)
		if (ctx->map.col[i] >= 0 && !is_opened(s->m, i))
			explain_row(s, i);
	event_file_release(&s->file);
	return 0;
}

static int membw_sample(void *state, struct collect_context *ctx)
{
	struct membw *m = state;

	for (uint32_t i = 0; i < m->nr_sockets; i++)
		for (int k = 0; k < NR_ROWS; k++) {
			m->socket[i].sum[k] = 0;
			m->socket[i].known[k] = m->socket[i].opened[k] > 0;
		}
	for (uint32_t i = 0; i < m->nr_boxes; i++) {
		struct box *box = &m->box[i];
		struct socket *socket = &m->socket[box->socket];

		/* A sum without one of its parts would fall and rise again: then there is no value. */
		if (counter_read(ctx->env, &box->counter) < 0)
			socket->known[box->metric] = false;
		socket->sum[box->metric] += box->counter.count.value * box->bytes;
	}
	for (uint32_t i = 0; i < m->nr_sockets; i++) {
		const struct socket *socket = &m->socket[i];

		if (socket->row == UINT32_MAX)
			continue;
		table_touch(ctx->table, socket->row);
		for (size_t k = 0; k < NR_ROWS; k++)
			collect_put(ctx, socket->row, k, socket->known[k], (int64_t)socket->sum[k]);
	}
	return 0;
}

static void membw_close(void *state, struct collect_context *ctx)
{
	struct membw *m = state;

	while (m->nr_boxes)
		counter_close(ctx->env, &m->box[--m->nr_boxes].counter);
}

const struct collector collector_membw = {
	.name = "membw",
	.summary = "memory bandwidth of the packages",
	.domain = DOMAIN_SOCKET,
	.metric = membw_metric,
	.nr_metrics = ARRAY_SIZE(membw_metric),
	.state_size = sizeof(struct membw),
	.tier = TIER_TICK,
	.max_rows = SOCKETS_MAX,
	.probe = membw_probe,
	.open = membw_open,
	.sample = membw_sample,
	.close = membw_close,
};
