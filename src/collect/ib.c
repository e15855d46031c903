/* Traffic of InfiniBand, Omni-Path, RoCE and Slingshot: every active port, read from sysfs.
 *
 * Counters of data are in units of 4 octets whatever the number of lanes, in flits of 8 where the driver is
 * hfi1, and in octets on Slingshot; cells here are octets. Packets are packets. Where the counters of a port
 * have 32 bits they do not wrap but stay at 4294967295, which takes seconds at today's speeds: then there is
 * no value, rather than a number that looks like no traffic. Older kernels have 64 bits beside them, in
 * counters_ext. RoCE is counted here and is in no counter of its Ethernet interface; IPoIB is in both, and
 * net.c leaves it out.
 *
 * For a counter the driver may have to ask the firmware: only those that change with the traffic are read at
 * every tick. */
#include "collect/keyed.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

/* What at.arg says of a counter. */
enum {
	DATA = 1,  /* in units, not octets */
	FULL = 2,  /* 32 bits, or 64 */
	SPEED = 4, /* "100 Gb/sec (4X EDR)" */
};

/* clang-format off */
#define COUNTER(f) {.file = "counters/" f}
#define HW(f) {.file = "hw_counters/" f}
#define WIDE(f, flags) {.file = "counters/" f, .key = "counters_ext/" f "_64", .arg = (flags) | FULL}

static const struct metric ib_metric[] = {
	{"ib.rx.bytes",         "Bytes received.", WIDE("port_rcv_data", DATA), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"ib.tx.bytes",         "Bytes sent.", WIDE("port_xmit_data", DATA), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"ib.rx.packets",       "Packets received.", WIDE("port_rcv_packets", 0), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"ib.tx.packets",       "Packets sent.", WIDE("port_xmit_packets", 0), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"ib.tx.wait",          "Ticks of the port's clock in which it had something to send and was not allowed to.", {.file = "counters/port_xmit_wait", .arg = FULL}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.wait", TIER_MEDIUM, false},
	{"ib.rx.errors",        "Packets that arrived damaged; the counter stops when it is full.", COUNTER("port_rcv_errors"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.errors", TIER_MEDIUM, false},
	{"ib.tx.discards",      "Packets thrown away because the link was down or crowded.", COUNTER("port_xmit_discards"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.errors", TIER_MEDIUM, false},
	{"ib.symbol_errors",    "Minor errors of the link.", COUNTER("symbol_error"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.errors", TIER_MEDIUM, false},
	{"ib.link_recoveries",  "Times the link recovered from an error.", COUNTER("link_error_recovery"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"ib.link_downed",      "Times the link was lost.", COUNTER("link_downed"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.errors", TIER_MEDIUM, false},
	{"ib.integrity_errors", "Times the link had more errors than it should.", COUNTER("local_link_integrity_errors"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"ib.rx.overruns",      "Times the port's buffer was full for long.", COUNTER("excessive_buffer_overrun_errors"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"ib.cnp_sent",         "Congestion notices sent to senders that are too fast (RoCE).", HW("np_cnp_sent"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.congestion", TIER_MEDIUM, false},
	{"ib.cnp_handled",      "Congestion notices received and obeyed (RoCE).", HW("rp_cnp_handled"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.congestion", TIER_MEDIUM, false},
	{"ib.out_of_sequence",  "Packets that arrived in the wrong order.", HW("out_of_sequence"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "ib.congestion", TIER_MEDIUM, false},
	{"ib.out_of_buffer",    "Packets lost because the program had given no buffer for them.", HW("out_of_buffer"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"ib.ack_timeouts",     "Times the other side did not answer.", HW("local_ack_timeout_err"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"ib.rate",             "Speed of the link in each direction, in bytes a second.", {.file = "rate", .arg = SPEED}, SCALE_ONE, KIND_CONSTANT, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
};
/* clang-format on */

#define NR_ROWS ARRAY_SIZE(ib_metric)
#define PORTS_MAX 64
#define SATURATED INT64_C(0xffffffff)

extern const struct collector collector_ib;

static const char ib_class[] = "sys/class/infiniband", cxi_class[] = "sys/class/cxi";

/* The counters of octets that Slingshot has beside a thousand others: "value@time". */
static const char *const cxi_file[] = {"hni_sts_rx_ok_octets", "hni_sts_tx_ok_octets"};

struct port {
	char name[80];	  /* "mlx5_0/1"; "": this place is free */
	char folder[128]; /* sys/class/infiniband/mlx5_0/ports/1 */
	bool cxi;
	bool seen;	    /* in this listing */
	uint8_t unit;	    /* octets */
	int state;	    /* handle; -1: always active */
	int row;	    /* -1: not active, or without counters */
	bool useless;	    /* active, and has no counters */
	uint64_t wide;	    /* rows whose counters have 64 bits */
	uint64_t explained; /* rows whose reason for having no value was reported */
	int handle[NR_ROWS];
};

struct ib {
	struct collect_context *ctx;
	struct port port[PORTS_MAX];
	bool said_full;
	bool partial; /* this listing was cut short by an error */
};

static bool is_recorded(const struct collect_context *ctx, size_t metric)
{
	return ctx->map.col[metric] >= 0;
}

static void tell(struct collect_context *ctx, struct port *p, size_t metric, enum availability availability,
	const char *what, const char *remedy)
{
	char text[200];

	if (p->explained >> metric & 1)
		return;
	p->explained |= UINT64_C(1) << metric;
	snprintf(text, sizeof(text), "port %s: %s", p->name, what);
	ctx->why(ctx, metric, availability, text, remedy);
}

static void tell_full(struct ib *s, struct collect_context *ctx)
{
	if (!s->said_full)
		collect_tell(ctx, &collector_ib, FAILED,
			"there are more than 64 ports; the others are left out", NULL);
	s->said_full = true;
}

/* Opens a counter where the port has it. -ENOENT when it has none. */
static int open_counter(struct env *env, struct port *p, size_t metric)
{
	const struct metric_at *at = &ib_metric[metric].at;
	char path[200];
	int r;

	if (p->cxi) {
		if (metric >= ARRAY_SIZE(cxi_file))
			return -ENOENT;
		snprintf(path, sizeof(path), "%s/%s", p->folder, cxi_file[metric]);
		return env_open(env, path);
	}
	if (at->key) {
		snprintf(path, sizeof(path), "%s/%s", p->folder, at->key);
		r = env_open(env, path);
		if (r >= 0) {
			p->wide |= UINT64_C(1) << metric;
			return r;
		}
	}
	snprintf(path, sizeof(path), "%s/%s", p->folder, at->file);
	return env_open(env, path);
}

static void close_counters(struct env *env, struct port *p)
{
	for (size_t i = 0; i < NR_ROWS; i++) {
		env_close(env, p->handle[i]);
		p->handle[i] = -1;
	}
}

/* "2.5 Gb/sec (1X SDR)" in bytes a second. */
static bool read_speed(const char **at, const char *end, int64_t *ret)
{
	int64_t centi;

	if (!read_centi(at, end, &centi) || end - *at < 3 || memcmp(*at, " Gb", 3))
		return false;
	*ret = centi * (10000000 / 8);
	return true;
}

static int read_cell(struct collect_context *ctx, struct port *p, size_t metric, int64_t *ret)
{
	int32_t flags = ib_metric[metric].at.arg;
	char text[64];
	const char *at = text;
	int n = value_read_text(ctx->env, p->handle[metric], text, sizeof(text));

	if (n < 0)
		return n;
	if (flags & SPEED)
		return read_speed(&at, text + n, ret) ? 0 : -EBADMSG;
	if (*text == '-' || !read_number(&at, text + n, ret)) { /* "N/A (no PMA)" */
		tell(ctx, p, metric, ABSENT, "its driver does not count this", NULL);
		return -ENODATA;
	}
	if ((uint64_t)*ret > (uint64_t)SATURATED)
		p->wide |= UINT64_C(1) << metric;
	if (flags & FULL && *ret == SATURATED && !(p->wide >> metric & 1)) {
		tell(ctx, p, metric, FAILED, "its 32-bit counter is full", "as root: perfquery -R");
		return -EOVERFLOW;
	}
	if (flags & DATA)
		*ret = (int64_t)((uint64_t)*ret * p->unit);
	return 0;
}

static void read_port(struct collect_context *ctx, struct port *p, bool medium)
{
	for (size_t i = 0; i < NR_ROWS; i++) {
		int64_t value = 0;
		int r;

		if (p->handle[i] < 0 || (ib_metric[i].tier != TIER_TICK && !medium))
			continue;
		r = read_cell(ctx, p, i, &value);
		collect_put(ctx, (uint32_t)p->row, i, r == 0, value);
	}
}

/* The port is active: it becomes an instance, if it has any counters. */
static void port_up(struct ib *s, struct collect_context *ctx, struct port *p)
{
	bool any = false;

	if (p->useless)
		return;
	for (size_t i = 0; i < NR_ROWS; i++) {
		if (!is_recorded(ctx, i))
			continue;
		p->handle[i] = open_counter(ctx->env, p, i);
		any = any || (p->handle[i] >= 0 && !(ib_metric[i].at.arg & SPEED));
		if (is_refused(p->handle[i]))
			tell(ctx, p, i, FORBIDDEN, "its counters are hidden from us", NULL);
		else if (p->handle[i] < 0 && p->handle[i] != -ENOENT && p->handle[i] != -ENODEV)
			tell(ctx, p, i, FAILED, strerror(-p->handle[i]), NULL);
	}
	p->row = any ? ctx->join(ctx, p->name) : -1;
	if (p->row >= 0)
		return;
	close_counters(ctx->env, p);
	p->useless = !any;
	for (size_t i = 0; i < NR_ROWS && !any; i++)
		if (is_recorded(ctx, i) && ib_metric[i].tier == TIER_TICK)
			tell(ctx, p, i, ABSENT, "it has no counters", NULL);
	if (any)
		tell_full(s, ctx);
}

static void port_down(struct collect_context *ctx, struct port *p)
{
	if (p->row >= 0)
		ctx->leave(ctx, (uint32_t)p->row);
	p->row = -1;
	p->useless = false;
	close_counters(ctx->env, p);
}

static void port_forget(struct collect_context *ctx, struct port *p)
{
	if (!p->name[0])
		return;
	port_down(ctx, p);
	env_close(ctx->env, p->state);
	p->name[0] = 0;
}

/* Negative: it is gone. */
static int port_is_active(struct env *env, const struct port *p)
{
	const char *at;
	char text[32];
	int64_t state;
	ssize_t n;

	if (p->state < 0)
		return true;
	n = env_read(env, p->state, text, sizeof(text) - 1);
	if (n < 0)
		return (int)n;
	at = text;
	/* "4: ACTIVE", "5: ACTIVE_DEFER" */
	return read_number(&at, text + n, &state) && (state == 4 || state == 5);
}

static bool device_has(struct env *env, const char *device, const char *file)
{
	struct trouble ignored;
	char path[200];

	snprintf(path, sizeof(path), "%s/%s/%s", ib_class, device, file);
	return probe_file(env, path, (struct trouble){0}, &ignored) == 0;
}

/* Omni-Path by its driver; where that link cannot be read, by the files that its driver has and lacks. */
static bool is_hfi1(struct env *env, const char *device)
{
	char path[160], driver[32];

	snprintf(path, sizeof(path), "%s/%s/device/driver", ib_class, device);
	if (value_get_link(env, path, driver, sizeof(driver)) < 0)
		return device_has(env, device, "boardversion") && !device_has(env, device, "hca_type");
	return !strcmp(driver, "hfi1");
}

static struct port *port_place(struct ib *s, const char *name)
{
	struct port *place = NULL;

	for (size_t i = 0; i < PORTS_MAX; i++) {
		struct port *p = &s->port[i];

		if (!strcmp(p->name, name))
			return p;
		if (!p->name[0] && !place)
			place = p;
	}
	return place;
}

static struct port *port_new(struct ib *s, const char *name)
{
	struct port *p = port_place(s, name);

	if (!p) {
		tell_full(s, s->ctx);
		return NULL;
	}
	if (p->name[0]) {
		p->seen = true;
		return NULL;
	}
	*p = (struct port){.seen = true, .row = -1, .state = -1, .unit = 1};
	for (size_t i = 0; i < NR_ROWS; i++)
		p->handle[i] = -1;
	return p;
}

static void list(struct ib *s, const char *path, env_list_fn *fn, void *arg)
{
	int r = env_list(s->ctx->env, path, fn, arg);

	s->partial = s->partial || (r < 0 && r != -ENOENT && r != -ENOTDIR);
}

struct ib_listing {
	struct ib *ib;
	const char *device;
};

static int on_port(void *arg, const char *number)
{
	struct ib_listing *l = arg;
	char name[sizeof(((struct port *)0)->name)], path[160];
	struct port *p;
	int n = snprintf(name, sizeof(name), "%s/%s", l->device, number);

	if (n >= (int)sizeof(name))
		return 0;
	p = port_new(l->ib, name);
	if (!p)
		return 0;
	snprintf(p->folder, sizeof(p->folder), "%s/%s/ports/%.16s", ib_class, l->device, number);
	snprintf(path, sizeof(path), "%s/state", p->folder);
	p->state = env_open(l->ib->ctx->env, path);
	if (p->state < 0) /* no port, or gone again; it is listed anew next time */
		return 0;
	p->unit = is_hfi1(l->ib->ctx->env, l->device) ? 8 : 4;
	memcpy(p->name, name, sizeof(name));
	return 0;
}

static int on_device(void *arg, const char *device)
{
	struct ib_listing l = {.ib = arg, .device = device};
	char path[128];

	if (snprintf(path, sizeof(path), "%s/%s/ports", ib_class, device) < (int)sizeof(path))
		list(l.ib, path, on_port, &l);
	return 0;
}

static int on_cxi(void *arg, const char *device)
{
	struct port *p;

	if (strlen(device) > 40)
		return 0;
	p = port_new(arg, device);
	if (!p)
		return 0;
	p->cxi = true;
	p->wide = UINT64_MAX;
	snprintf(p->folder, sizeof(p->folder), "%s/%.40s/device/telemetry", cxi_class, device);
	snprintf(p->name, sizeof(p->name), "%.40s", device);
	return 0;
}

/* Which ports are there, and which of them are active? */
static void find_ports(struct ib *s, struct collect_context *ctx)
{
	s->ctx = ctx;
	for (size_t i = 0; i < PORTS_MAX; i++) {
		/* After the driver was loaded again old handles do not work, though the name exists. */
		if (s->port[i].name[0] && port_is_active(ctx->env, &s->port[i]) < 0)
			port_forget(ctx, &s->port[i]);
		s->port[i].seen = false;
	}
	s->partial = false;
	list(s, ib_class, on_device, s);
	list(s, cxi_class, on_cxi, s);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		struct port *p = &s->port[i];

		if (!p->name[0])
			continue;
		if (!p->seen && !s->partial)
			port_forget(ctx, p);
		else if (port_is_active(ctx->env, p) <= 0)
			port_down(ctx, p);
		else if (p->row < 0)
			port_up(s, ctx, p);
	}
}

/* Of every recorded row that no port has. */
static void explain(const struct ib *s, struct collect_context *ctx)
{
	bool active = false;

	for (size_t i = 0; i < PORTS_MAX; i++)
		active = active || (s->port[i].name[0] && (s->port[i].row >= 0 || s->port[i].useless));
	for (size_t m = 0; m < NR_ROWS; m++) {
		bool has = false, explained = false;

		for (size_t i = 0; i < PORTS_MAX; i++) {
			const struct port *p = &s->port[i];

			if (!p->name[0])
				continue;
			has = has || p->handle[m] >= 0;
			explained = explained || p->explained >> m & 1;
		}
		if (!has && !explained && is_recorded(ctx, m))
			ctx->why(ctx, m, ABSENT,
				active ? "no active port here has this counter" : "no port is active", NULL);
	}
}

static int ib_probe(struct env *env, struct trouble *reterr_why)
{
	struct trouble absent = {"this machine has no InfiniBand, Omni-Path, RoCE or Slingshot", NULL};
	int r = probe_folder(env, ib_class, absent, reterr_why);

	return r == -ENOENT ? probe_folder(env, cxi_class, absent, reterr_why) : r;
}

static int ib_open(void *state, struct collect_context *ctx)
{
	struct ib *s = state;

	find_ports(s, ctx);
	for (size_t i = 0; i < PORTS_MAX; i++)
		if (s->port[i].name[0] && s->port[i].row >= 0)
			read_port(ctx, &s->port[i], true);
	explain(s, ctx);
	return 0;
}

static int ib_sample(void *state, struct collect_context *ctx)
{
	struct ib *s = state;

	if (ctx->medium)
		find_ports(s, ctx);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		struct port *p = &s->port[i];

		if (!p->name[0] || p->row < 0)
			continue;
		table_touch(ctx->table, (uint32_t)p->row);
		read_port(ctx, p, ctx->medium);
	}
	return 0;
}

static void ib_close(void *state, struct collect_context *ctx)
{
	struct ib *s = state;

	for (size_t i = 0; i < PORTS_MAX; i++) {
		if (!s->port[i].name[0])
			continue;
		close_counters(ctx->env, &s->port[i]);
		env_close(ctx->env, s->port[i].state);
	}
}

const struct collector collector_ib = {
	.name = "ib",
	.summary = "traffic of InfiniBand, Omni-Path, RoCE and Slingshot ports",
	.domain = DOMAIN_IB,
	.metric = ib_metric,
	.nr_metrics = ARRAY_SIZE(ib_metric),
	.state_size = sizeof(struct ib),
	.tier = TIER_TICK,
	.max_rows = PORTS_MAX,
	.probe = ib_probe,
	.open = ib_open,
	.sample = ib_sample,
	.close = ib_close,
};
