#include "store/guard.h"

#include "store/store.h"

#include <string.h>

#define PAGE_IDS 256

enum { ID_KNOWN = 1, ID_ENDED = 2 };

struct guard_page {
	uint32_t number;	     /* id / PAGE_IDS */
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
		for (uint32_t k = 0; g->set[i].page && k <= g->set[i].mask; k++)
			free(g->set[i].page[k]);
		free(g->set[i].page);
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

static uint32_t place_of(const struct guard_set *s, uint32_t number)
{
	uint32_t at = number * UINT32_C(0x9e3779b1);

	at ^= at >> 15;
	while (s->page[at & s->mask] && s->page[at & s->mask]->number != number)
		at++;
	return at & s->mask;
}

static int make_room(struct guard_set *s)
{
	struct guard_set bigger = {.nr = s->nr, .mask = s->page ? 2 * s->mask + 1 : 15};

	if (s->page && s->nr < s->mask / 2)
		return 0;
	bigger.page = calloc((size_t)bigger.mask + 1, sizeof(struct guard_page *));
	if (!bigger.page)
		return -ENOMEM;
	for (uint32_t i = 0; s->page && i <= s->mask; i++)
		if (s->page[i])
			bigger.page[place_of(&bigger, s->page[i]->number)] = s->page[i];
	free(s->page);
	*s = bigger;
	return 0;
}

static struct guard_page *page_of(struct guard_set *s, uint32_t number)
{
	uint32_t at;

	if (make_room(s) < 0)
		return NULL;
	at = place_of(s, number);
	if (!s->page[at]) {
		s->page[at] = calloc(1, sizeof(struct guard_page));
		if (!s->page[at])
			return NULL;
		s->page[at]->number = number;
		s->nr++;
	}
	return s->page[at];
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
