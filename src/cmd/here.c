/* Tries a collector out: probes it and, where that needs no job to look at, opens it and takes in its
 * reasons.
 *
 * Opening is what the recorder does at the start of every recording, so that the answer cannot differ from
 * what a recording would hold. Collectors of processes learn what a process hides only from that process: for
 * them the probe has to do. */
#include "cmd/here.h"

#include <string.h>

struct trial {
	struct collect_context ctx;
	struct table table;
	struct here *here;
	uint32_t next_id;
};

static int trial_join(struct collect_context *ctx, const char *name)
{
	struct trial *t = (struct trial *)((char *)ctx - offsetof(struct trial, ctx));
	uint32_t row = t->next_id;

	(void)name;
	if (row == t->table.cap)
		return -ENOSPC;
	table_bind(&t->table, row, ++t->next_id);
	return (int)row;
}

static void trial_leave(struct collect_context *ctx, uint32_t row)
{
	table_unbind(ctx->table, row);
}

static void trial_why(
	struct collect_context *ctx, size_t metric, enum availability availability, const char *reason)
{
	struct trial *t = (struct trial *)((char *)ctx - offsetof(struct trial, ctx));

	(void)availability;
	t->here->metric_why[metric] = reason;
}

static void open_and_close(const struct collector *c, struct env *env, struct here *here)
{
	static const struct feed no_feed;
	struct trial t = {.here = here,
		.ctx = {.env = env,
			.feed = &no_feed,
			.join = trial_join,
			.leave = trial_leave,
			.why = trial_why}};
	_cleanup_(freep) void *state = calloc(1, MAX(c->state_size, 1));
	int r;

	if (!state || table_init(&t.table, (uint32_t)c->nr_metrics, MAX(c->max_rows, 1)) < 0)
		return;
	t.ctx.table = &t.table;
	for (size_t i = 0; i < METRICS_MAX; i++)
		t.ctx.map.col[i] = (int8_t)(i < c->nr_metrics ? (int)i : -1);
	r = c->open(state, &t.ctx);
	if (r < 0) {
		here->available = false;
		here->why = strerror(-r);
	}
	c->close(state, &t.ctx);
	table_release(&t.table);
}

void here_try(const struct collector *c, struct env *env, struct here *ret)
{
	int r;

	*ret = (struct here){0};
	r = c->probe ? c->probe(env, &ret->why) : 0;
	ret->available = r == 0;
	if (r < 0 && !ret->why)
		ret->why = strerror(-r);
	if (ret->available && c->open && (c->domain == DOMAIN_NODE || c->domain == DOMAIN_CPU))
		open_and_close(c, env, ret);
}
