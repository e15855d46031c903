/* Rounds of the makers, beside the ticks. See gpu_source.h.
 *
 * A round is asked for at most ten times a second: the drivers' own windows are longer than that. Without an
 * answer for a few intervals the reading is stale: an old value must not be shown as a measured one. */
#include "collect/gpu_source.h"
#include "collect/keyed.h"

#include <stdio.h>
#include <string.h>

#define ROUND_NS (100 * NSEC_PER_MSEC)
#define STALE_NS (3 * NSEC_PER_SEC)
#define STALE_TURNS 3

/* Beside the ticks. */
static void work(void *arg)
{
	struct gpu_part *part = arg;
	struct trouble trouble = {0};
	struct gpu_reading *made = part->making;
	int r;

	async_reader_lock(&part->async);
	part->current = part->request;
	part->request.medium = false;
	r = part->error;
	async_reader_unlock(&part->async);
	if (r < 0)
		return;
	if (!part->opened) {
		r = part->maker->open(part->state, part->env, &trouble);
		part->opened = r >= 0;
	}
	if (part->opened) {
		memset(made, 0, sizeof(*made));
		part->maker->read(part->state, part->env, &part->current, made);
		made->medium = part->current.medium;
	}
	async_reader_lock(&part->async);
	if (r < 0) {
		part->error = r;
		part->trouble = trouble;
	} else {
		part->making = part->published;
		part->published = made;
	}
	part->has_news = true;
	async_reader_unlock(&part->async);
}

static struct gpu_part *part_free(struct gpu_part *part)
{
	if (!part)
		return NULL;
	if (part->state && part->opened && part->maker->close)
		part->maker->close(part->state, part->env);
	free(part->state);
	free(part->making);
	free(part->published);
	free(part->latest);
	free(part);
	return NULL;
}

static struct gpu_part *part_new(const struct gpu_maker *maker, struct env *env)
{
	struct gpu_part *part = calloc(1, sizeof(*part));

	if (!part)
		return NULL;
	part->maker = maker;
	part->env = env;
	part->state = calloc(1, maker->state_size + 1);
	part->making = calloc(1, sizeof(*part->making));
	part->published = calloc(1, sizeof(*part->published));
	part->latest = calloc(1, sizeof(*part->latest));
	part->answered_ns = env_now(env, ENV_MONOTONIC);
	part->request.medium = true; /* the first round reads everything */
	if (!part->state || !part->making || !part->published || !part->latest ||
		async_reader_start(&part->async, env, work, part) < 0)
		return part_free(part);
	return part;
}

/* The memory of a part whose thread is stuck in a driver is not freed. */
static void part_stop(struct gpu_part *part)
{
	if (async_reader_stop(&part->async))
		part_free(part);
}

int gpu_probe(struct env *env, struct trouble *reterr_why)
{
	static char reason[400], remedy[400];
	bool hidden = false;
	size_t at = 0, len = 0;

	reason[0] = remedy[0] = 0;
	for (size_t i = 0; gpu_makers[i]; i++) {
		struct trouble why = {0};
		int r = gpu_makers[i]->probe(env, &why);

		if (r == 0)
			return 0;
		hidden |= r == -EACCES;
		if (why.reason && at < sizeof(reason))
			at += (size_t)snprintf(
				reason + at, sizeof(reason) - at, "%s%s", at ? ", " : "no GPU: ", why.reason);
		if (why.remedy && len < sizeof(remedy))
			len += (size_t)snprintf(
				remedy + len, sizeof(remedy) - len, "%s%s", len ? "; " : "", why.remedy);
	}
	*reterr_why = (struct trouble){reason, len ? remedy : NULL};
	return hidden ? -EACCES : -ENOENT;
}

static struct gpu_source *source_new(struct collect_context *ctx)
{
	struct gpu_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	for (size_t i = 0; gpu_makers[i] && s->nr < GPU_MAKERS_MAX; i++) {
		struct trouble ignored;

		if (gpu_makers[i]->probe(ctx->env, &ignored) < 0)
			continue;
		s->part[s->nr] = part_new(gpu_makers[i], ctx->env);
		s->nr += s->part[s->nr] != NULL;
	}
	if (s->nr)
		return s;
	free(s);
	return NULL;
}

int gpu_source_join(struct gpu_user *user, struct collect_context *ctx, const char *sibling)
{
	struct gpu_user *other = ctx->sibling ? ctx->sibling(ctx, sibling) : NULL;

	if (other && other->source) {
		user->source = other->source;
	} else {
		user->source = source_new(ctx);
		if (!user->source)
			return -ENODEV;
		user->source->owner = user;
	}
	user->source->users++;
	return 0;
}

void gpu_source_leave(struct gpu_user *user)
{
	struct gpu_source *s = user->source;

	user->source = NULL;
	if (!s || --s->users)
		return;
	for (unsigned i = 0; i < s->nr; i++)
		part_stop(s->part[i]);
	gpu_claims_free(s->claims);
	free(s);
}

uint64_t gpu_chosen(const struct collect_context *ctx, size_t nr_rows)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < nr_rows; i++)
		rows |= (uint64_t)(ctx->map.col[i] >= 0) << i;
	return rows;
}

static int add_member(void *arg, const struct collect_member *m)
{
	struct gpu_request *request = arg;

	if (request->nr_members == GPU_MEMBERS_MAX)
		return 1;
	request->member[request->nr_members++] = m->pid;
	return 0;
}

/* With the lock held. */
static void take(struct gpu_source *s, struct gpu_part *part)
{
	struct gpu_reading *news = part->published;

	if (!part->has_news)
		return;
	part->has_news = false;
	part->answered_ns = s->now_ns;
	part->failed = part->error;
	if (part->failed)
		return;
	part->published = part->latest;
	part->latest = news;
	part->fresh = true;
}

static void wish(const struct gpu_source *s, struct gpu_request *request, struct collect_context *ctx)
{
	request->rows = s->rows;
	request->process_rows = s->process_rows;
	request->medium |= ctx->medium;
	request->nr_members = 0;
	if (s->process_rows)
		ctx->members(ctx, add_member, request);
}

static void turn(struct gpu_source *s, struct gpu_part *part, struct collect_context *ctx)
{
	bool due = s->now_ns - part->asked_ns >= ROUND_NS || ctx->medium;
	int64_t limit = MAX(STALE_NS, STALE_TURNS * (s->now_ns - s->turned_ns));

	part->fresh = false;
	if (part->failed)
		return;
	/* New results are taken before more are asked for, so that none is overwritten unread. */
	if (!async_reader_try_lock(&part->async))
		return;
	take(s, part);
	if (due)
		wish(s, &part->request, ctx);
	async_reader_unlock(&part->async);
	if (due && async_reader_ask(&part->async))
		part->asked_ns = s->now_ns;
	if (!part->async.threaded)
		take(s, part);
	part->stale = s->turned_ns && s->now_ns - part->answered_ns > limit;
}

void gpu_source_turn(struct gpu_user *user, struct collect_context *ctx)
{
	struct gpu_source *s = user->source;

	if (s->owner != user)
		return;
	s->now_ns = env_now(ctx->env, ENV_MONOTONIC);
	for (unsigned i = 0; i < s->nr; i++)
		turn(s, s->part[i], ctx);
	s->turned_ns = s->now_ns;
}

static void tell_failed(struct collect_context *ctx, const struct collector *c, const struct gpu_part *part)
{
	enum availability availability = part->failed == -EACCES ? FORBIDDEN
		: part->failed == -ENOENT			 ? ABSENT
								 : FAILED;

	collect_tell(ctx, c, availability,
		part->trouble.reason ? part->trouble.reason : "the driver could not be opened",
		part->trouble.remedy);
}

static void tell_silent(struct collect_context *ctx, const struct collector *c, const struct gpu_source *s,
	const struct gpu_part *part)
{
	char text[120];

	snprintf(text, sizeof(text), "%s: the driver has not answered for %lld s", part->maker->name,
		(long long)((s->now_ns - part->answered_ns) / NSEC_PER_SEC));
	collect_tell(ctx, c, FAILED, text, NULL);
}

enum gpu_news gpu_source_news(
	struct gpu_user *user, struct collect_context *ctx, const struct collector *c, unsigned part)
{
	const struct gpu_part *p = user->source->part[part];

	if (p->failed) {
		if (!user->told_failed[part])
			tell_failed(ctx, c, p);
		user->told_failed[part] = true;
		return GPU_NOTHING;
	}
	if (p->stale) {
		if (!user->told_silent[part])
			tell_silent(ctx, c, user->source, p);
		user->told_silent[part] = true;
		return GPU_SILENT;
	}
	if (!p->fresh)
		return GPU_NOTHING;
	user->told_silent[part] = false;
	return GPU_FRESH;
}

enum gpu_claim gpu_source_claim(struct gpu_source *s, struct collect_context *ctx,
	const struct gpu_part *part, const struct gpu_device *device, const char **ret_by)
{
	struct gpu_identity identity = {.vendor = part->maker->name,
		.index = device->index,
		.minor = device->minor,
		.uuid = device->uuid,
		.pci = device->pci};

	enum gpu_claim claim = GPU_UNCLAIMED;

	*ret_by = NULL;
	if (!s->claims) /* read when the first device is there: by then the job has done its exec */
		s->claims = gpu_claims_read(ctx->env, ctx->feed->root);
	if (s->claims)
		claim = gpu_claims_ask(s->claims, &identity, ret_by);
	if (*ret_by && !**ret_by)
		*ret_by = NULL;
	return claim;
}
