/* Tries a collector out: probes it and, where that needs no job to look at, opens it and takes in its
 * reasons.
 *
 * Opening is what the recorder does at the start of every recording, so that the answer cannot differ from
 * what a recording would hold. Collectors of processes learn what a process hides only from that process: for
 * them the probe has to do. */
#include "cmd/here.h"

#include <string.h>
#include <unistd.h>

struct trial {
	struct collect_context ctx;
	struct table table;
	struct here *here;
	uint32_t next_id;
};

static int trial_join_about(
	struct collect_context *ctx, const char *name, const struct about *about, size_t nr)
{
	struct trial *t = (struct trial *)((char *)ctx - offsetof(struct trial, ctx));
	uint32_t row = t->next_id;

	(void)name;
	(void)about;
	(void)nr;
	if (row == t->table.cap)
		return -ENOSPC;
	table_bind(&t->table, row, ++t->next_id);
	return (int)row;
}

static int trial_join(struct collect_context *ctx, const char *name)
{
	return trial_join_about(ctx, name, NULL, 0);
}

static int trial_members(struct collect_context *ctx, int (*fn)(void *arg, pid_t pid), void *arg)
{
	(void)ctx;
	return fn(arg, getpid());
}

static void trial_leave(struct collect_context *ctx, uint32_t row)
{
	table_unbind(ctx->table, row);
}

static void trial_why(struct collect_context *ctx, size_t metric, enum availability availability,
	const char *reason, const char *remedy)
{
	struct trial *t = (struct trial *)((char *)ctx - offsetof(struct trial, ctx));

	t->here->metric_state[metric] = availability;
	t->here->metric_why[metric] = (struct trouble){reason, remedy};
}

static void open_and_close(const struct collector *c, struct env *env, struct here *here)
{
	struct feed feed = {.root = getpid()};
	struct trial t = {.here = here,
		.ctx = {.env = env,
			.feed = &feed,
			.join = trial_join,
			.join_about = trial_join_about,
			.members = trial_members,
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
		here->state = FAILED;
		here->why.reason = strerror(-r);
	}
	c->close(state, &t.ctx);
	table_release(&t.table);
}

void here_try(const struct collector *c, struct env *env, struct here *ret)
{
	int r;

	*ret = (struct here){0};
	r = c->probe ? c->probe(env, &ret->why) : 0;
	ret->state = r == 0 ? AVAILABLE : r == -EACCES ? FORBIDDEN : ABSENT;
	if (r < 0 && !ret->why.reason)
		ret->why.reason = strerror(-r);
	if (r == 0 && c->open && c->domain != DOMAIN_PROCESS && c->domain != DOMAIN_TREE &&
		c->domain != DOMAIN_GROUP)
		open_and_close(c, env, ret);
}
