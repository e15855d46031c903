/* The makers' readings, shared by the collectors `gpu` and `gpu_process`: the one that is opened first makes
 * the source and drives it, the other uses it too. Each works alone.
 *
 * A maker has one thread and three readings: one that is being made, one that is published and one that the
 * tick looks at. They change places, so that nothing is copied and the tick never waits. */
#ifndef COLLECT_GPU_SOURCE_H
#define COLLECT_GPU_SOURCE_H

#include "collect/async_reader.h"
#include "collect/gpu.h"
#include "node/gpus.h"

enum { GPU_MAKERS_MAX = 4 };

/* One maker that is here. */
struct gpu_part {
	const struct gpu_maker *maker;
	struct env *env;
	struct async_reader async;
	/* Of the thread. */
	void *state;
	bool opened;
	struct gpu_request current;
	struct gpu_reading *making;
	/* Under the lock. */
	struct gpu_request request; /* for the next round */
	struct gpu_reading *published;
	bool has_news;
	int error; /* its open() failed, and why; it is not asked any more */
	struct trouble trouble;
	/* Of the tick. */
	struct gpu_reading *latest;
	bool fresh; /* it came in this turn */
	bool stale; /* it is too old to be shown as the present */
	int failed; /* as error, with its trouble */
	int64_t asked_ns, answered_ns;
};

struct gpu_source {
	unsigned users;
	void *owner; /* the collector that drives it */
	uint64_t rows, process_rows;
	int64_t turned_ns, now_ns;
	struct gpu_claims *claims;
	unsigned nr;
	struct gpu_part *part[GPU_MAKERS_MAX];
};

/* The state of both collectors begins so. */
struct gpu_user {
	struct gpu_source *source;
	bool told_failed[GPU_MAKERS_MAX], told_silent[GPU_MAKERS_MAX];
};

enum gpu_news {
	GPU_NOTHING, /* new: the last reading still holds, or there will never be one */
	GPU_SILENT,  /* the last reading is too old to be shown as the present */
	GPU_FRESH,
};

/* For both: is any maker here? */
int gpu_probe(struct env *env, struct trouble *reterr_why);
/* Makes a source, or uses that of the other collector. `rows` are the collector's chosen ones. */
int gpu_source_join(struct gpu_user *user, struct collect_context *ctx, const char *sibling);
void gpu_source_leave(struct gpu_user *user);
/* A bit for every chosen row. */
uint64_t gpu_chosen(const struct collect_context *ctx, size_t nr_rows);
/* Asks every maker for a round and takes what the last one found. Does nothing when the other collector
 * drives it. */
void gpu_source_turn(struct gpu_user *user, struct collect_context *ctx);
/* What is new of a maker in this turn. If it could not be opened, or does not answer any more, that is
 * reported once, for all rows of the collector. */
enum gpu_news gpu_source_news(
	struct gpu_user *user, struct collect_context *ctx, const struct collector *c, unsigned part);
/* Is the device the job's? *ret_by as gpu_claims_ask() has it, NULL when it is not known. */
enum gpu_claim gpu_source_claim(struct gpu_source *s, struct collect_context *ctx,
	const struct gpu_part *part, const struct gpu_device *device, const char **ret_by);
#endif
