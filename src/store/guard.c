/* Limits on what a recording may cost its readers, and the state of every instance id: see guard.h. */
#include "store/guard.h"

#include "base/owned.h"
#include "store/store.h"

#include <string.h>

#define PAGE_IDS 256

enum { ID_KNOWN = 1, ID_ENDED = 2 };

struct guard_page {		     /* by the number id / PAGE_IDS */
	uint8_t state[PAGE_IDS / 4]; /* two bits for each id */
};

/* Each limit is free + bytes of the file * factor / per. With the factor of STORE_EXPANSION: 1024 bytes of
 * content for each byte, 64 ticks, one instance or event for every two bytes. */
/* clang-format off */
static const struct {
	uint64_t free;
	uint32_t per;
	const char *reason;
} limit[NR_GUARD_ITEMS] = {
	[GUARD_CONTENT]   = {UINT64_C(16) << 20, 1, "it unpacks to far more than a recorder writes (--max-expansion allows more)"},
	[GUARD_TABLES]    = {UINT64_C(64) << 20, 1, "its rows are more than its size can explain (--max-expansion allows more)"},
	[GUARD_INSTANCES] = {1 << 16, 2048, "its instances are more than its size can explain (--max-expansion allows more)"},
	[GUARD_EVENTS]    = {1 << 16, 2048, "its events are more than its size can explain (--max-expansion allows more)"},
	[GUARD_TICKS]     = {1 << 16, 16, "its ticks are more than its size can explain (--max-expansion allows more)"},
};
/* clang-format on */

static uint64_t expansion = STORE_EXPANSION;

void store_set_expansion(uint64_t times)
{
	expansion = times;
}

int guard_init(struct guard *g, uint32_t nr_sets)
{
	g->set = calloc(nr_sets + 1, sizeof(*g->set));
	g->nr_sets = g->set ? nr_sets : 0;
	return g->set ? 0 : -ENOMEM;
}

void guard_release(struct guard *g)
{
	for (uint32_t i = 0; i < g->nr_sets; i++) {
		free(g->set[i].page);
		idmap_release(&g->set[i].by_number);
	}
	free(g->set);
	*g = (struct guard){0};
}

int guard_count(struct guard *g, enum guard_item item, uint64_t n, uint64_t file_bytes)
{
	uint64_t more;

	g->nr[item] += n;
	if (!expansion || g->nr[item] <= limit[item].free)
		return 0;
	if (__builtin_mul_overflow(file_bytes, expansion, &more))
		return 0;
	return g->nr[item] - limit[item].free > more / limit[item].per ? -EDQUOT : 0;
}

const char *guard_reason(enum guard_item item)
{
	return limit[item].reason;
}

/* ---- ids ---- */

static struct guard_page *page_of(struct guard_set *s, uint32_t number)
{
	uint32_t at = idmap_get(&s->by_number, number);

	if (at != IDMAP_NONE)
		return &s->page[at];
	if (ARRAY_ROOM(s->page, s->cap, s->nr + 1) < 0 || idmap_put(&s->by_number, number, s->nr) < 0)
		return NULL;
	s->page[s->nr] = (struct guard_page){0};
	return &s->page[s->nr++];
}

int guard_instance(struct guard *g, uint32_t set, uint32_t id, bool ends, uint64_t file_bytes)
{
	struct guard_page *page = page_of(&g->set[set], id / PAGE_IDS);
	unsigned at = id % PAGE_IDS, shift = at % 4 * 2;
	uint8_t *state;
	bool is_new;

	if (!page)
		return -ENOMEM;
	state = &page->state[at / 4];
	if (*state >> shift & ID_ENDED)
		return -EBADMSG;
	is_new = !(*state >> shift & ID_KNOWN);
	*state |= (uint8_t)((ends ? ID_KNOWN | ID_ENDED : ID_KNOWN) << shift);
	return is_new ? guard_count(g, GUARD_INSTANCES, 1, file_bytes) : 0;
}
