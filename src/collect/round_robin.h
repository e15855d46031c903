/* Reading many slow things in turn: each round reads on from where the last one stopped and ends when all had
 * their turn or some milliseconds are over. A hundred fast sensors are then read in every round; of slow ones
 * each keeps its last value until it is its turn again, and no tick waits for them all. */
#ifndef COLLECT_ROUND_ROBIN_H
#define COLLECT_ROUND_ROBIN_H

#include "env/env.h"

#define ROTA_ROUND_NS (3 * NSEC_PER_MSEC)

struct round_robin {
	uint32_t next; /* the first of the next round */
	uint32_t left; /* in this round */
	int64_t until_ns;
};

static inline void round_robin_begin(struct round_robin *r, struct env *env, uint32_t nr)
{
	r->left = nr;
	r->until_ns = env_now(env, ENV_MONOTONIC) + ROTA_ROUND_NS;
}

/* The next one to read; false when the round is over. At least one is read. */
static inline bool round_robin_turn(struct round_robin *r, struct env *env, uint32_t nr, uint32_t *ret)
{
	bool late = r->left < nr && env_now(env, ENV_MONOTONIC) > r->until_ns;

	if (!r->left || late)
		return false;
	if (r->next >= nr)
		r->next = 0;
	r->left--;
	*ret = r->next++;
	return true;
}
#endif
