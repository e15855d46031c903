/* The lines of an account: the whole, and each group. A piece of query/ledger. */
#ifndef QUERY_ACCOUNTS_H
#define QUERY_ACCOUNTS_H

#include "query/live_processes.h"

enum line_cell { /* what a recording says of a line as such: tree.* and group.* */
	ACCOUNT_GONE,
	ACCOUNT_PROCESSES = NR_USED,
	ACCOUNT_UNSAMPLED,
	ACCOUNT_MAX_RSS,
	NR_ACCOUNT_CELLS
};

struct account {
	char *kind, *target;
	struct counter_track cell[NR_ACCOUNT_CELLS];
	uint32_t seen;	       /* mask */
	int64_t base[NR_USED]; /* used before the recording began */
};

struct accounts {
	struct cell_column tree[NR_ACCOUNT_CELLS], group[NR_ACCOUNT_CELLS];
	int set;	    /* of the groups; -1: not recorded */
	struct idmap by_id; /* instance of that set -> line */
	struct account line[ACCOUNTS_MOST];
	struct amounts waiting[ACCOUNTS_MOST], given[ACCOUNTS_MOST]; /* read and not yet given; given last */
	struct amounts before[ACCOUNTS_MOST];			     /* given before that */
	uint64_t users;						     /* mask of groups */
	int command; /* the line of the command that `run` started; 0: all of it */
};

void accounts_init(struct accounts *s);
void accounts_release(struct accounts *s);
void accounts_bind(struct accounts *s, const struct schema *schema);
/* A group says what it is. */
int accounts_instance(struct accounts *s, const struct walk *walk, const struct store_record *record);
/* The values of this tick. */
void accounts_read(struct accounts *s, const struct walk *walk);

/* What the line has used and holds now; of the former, what ended processes left to no living one. */
int64_t account_gone(const struct accounts *s, unsigned line, enum used used);
bool account_used(const struct accounts *s, const struct live_processes *l, unsigned line, enum used used,
	int64_t *ret);
void account_levels(
	const struct accounts *s, const struct live_processes *l, unsigned line, struct amounts *ret);
/* Gives the waiting amounts, in the light of the ones after them (NULL: there are none). */
void account_settle(struct accounts *s, unsigned line, const struct amounts *next);
/* After all lines were settled: users together have not used more than the whole. */
void accounts_share(struct accounts *s, const struct live_processes *l);
int64_t account_cell_or(const struct account *s, enum line_cell which, int64_t otherwise);
/* Whether the processes of a job have used more CPU time than the control group made for it has counted: then
 * some were outside. While any of them lives, their times are read later than the group's. When all have
 * ended both are final, and those of the processes were never more where none had left. */
static inline bool group_lacks_cpu(int64_t counted_ns, int64_t added_ns, bool all_ended)
{
	int64_t slack_ns =
		all_ended ? counted_ns / 1000 + INT64_C(2000000) : counted_ns / 20 + INT64_C(200000000);

	return added_ns > counted_ns + slack_ns;
}
#endif
