/* Curves of recordings that grow: each stays open between two looks, so that a look costs what is new. Where
 * a recording cannot be entered in its midst (a sum over all that ever was), it is read from its beginning
 * once. */
#include "query/curves_internal.h"

#include "base/parallel.h"

#include <math.h>
#include <string.h>

#define WAITING_MOST 2048 /* ticks of one recording */
#define POINTS 4096u

struct live_row {
	struct curves_live *of;
	struct walk_observer events; /* sees whether there was one */
	struct walk *walk;
	struct walk_observer *curves;
	struct curves_node node;
	bool ended, event, whole;
};

struct curves_live {
	struct curves_question question;
	struct curves_options options;
	struct live_row *row;
	size_t nr;
	double upto_s;
};

static int see_event(struct walk_observer *o, const struct store_record *record)
{
	struct live_row *n = (struct live_row *)((char *)o - offsetof(struct live_row, events));

	n->event |= record->type == STORE_EVENT;
	return 0;
}

static void row_close(struct live_row *n)
{
	if (n->curves)
		(void)curves_node_close(n->curves, -ECANCELED, NULL, NULL);
	n->curves = NULL;
	n->walk = walk_close(n->walk);
}

static int row_open(struct live_row *n, uint32_t which)
{
	const struct curves_question *q = &n->of->question;
	struct curves_column *column = calloc(q->nr + 1, sizeof(*column));
	int r = column ? walk_open(q->run->path[which], NULL, &n->walk) : -ENOMEM;

	if (r >= 0)
		r = curves_node_open(q, which, &n->node, n->walk, column, &n->curves);
	if (r >= 0) {
		n->events.record = see_event;
		walk_observe(n->walk, n->curves);
		walk_observe(n->walk, &n->events);
		if (n->curves->from_ns > 0 && !n->whole)
			r = walk_seek(n->walk, n->curves->from_ns);
	}
	if (r >= 0)
		r = walk_follow(n->walk, q->run->path[which]);
	if (column)
		curves_columns_free(column, q->nr);
	return r;
}

/* Enough of it for that time, or for now. */
static bool has_enough(const struct live_row *n)
{
	size_t waiting;
	double settled = curves_node_settled(n->curves, &waiting);

	return n->ended || settled >= n->of->upto_s || waiting >= WAITING_MOST;
}

static int row_read(void *arg, unsigned worker, size_t i)
{
	struct curves_live *l = arg;
	struct live_row *n = &l->row[i];
	int r = 1;

	(void)worker;
	while (r == 1 && !has_enough(n)) {
		r = walk_next(n->walk);
		if (r == -EAGAIN && !n->whole) {
			row_close(n);
			n->whole = true;
			r = row_open(n, (uint32_t)i);
			r = r < 0 ? r : 1;
		}
		n->ended |= r == 0;
	}
	return MIN(r, 0);
}

int curves_live_open(const struct run *run, const struct curves_query *query, size_t nr,
	const struct curves_options *options, struct curves_live **ret, struct buf *reterr)
{
	struct curves_live *l = calloc(1, sizeof(*l));
	struct run_node *node = NULL;
	int r = l ? run_align(run, &node, reterr) : -ENOMEM;

	if (r < 0) {
		free(l);
		return r;
	}
	l->options = *options;
	l->options.points = POINTS;
	l->options.to_s = NAN;
	l->question = (struct curves_question){.run = run, .query = query, .nr = nr, .options = &l->options};
	l->row = calloc(run->nr + 1, sizeof(*l->row));
	r = l->row ? 0 : -ENOMEM;
	for (; r >= 0 && l->nr < run->nr; l->nr++) {
		struct live_row *n = &l->row[l->nr];

		n->of = l;
		n->node.host = TAKE_PTR(node[l->nr].host);
		n->node.offset_s = run_node_offset_s(&node[l->nr]);
		r = row_open(n, (uint32_t)l->nr);
	}
	run_align_free(node, run->nr);
	if (r < 0) {
		curves_live_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct curves_live *curves_live_close(struct curves_live *l)
{
	if (!l)
		return NULL;
	for (size_t i = 0; l->row && i < l->question.run->nr; i++) {
		row_close(&l->row[i]);
		free((char *)l->row[i].node.host);
	}
	free(l->row);
	free(l);
	return NULL;
}

int curves_live_read(struct curves_live *l, double upto_s, double *ret_read_s, bool *ret_events)
{
	int r;

	l->upto_s = upto_s;
	*ret_read_s = upto_s;
	*ret_events = false;
	r = parallel_each(l->nr, row_read, l, NULL);
	for (size_t i = 0; i < l->nr && r >= 0; i++) {
		size_t waiting;
		double settled = curves_node_settled(l->row[i].curves, &waiting);

		/* One that is silent does not hold the others. */
		if (waiting >= WAITING_MOST)
			*ret_read_s = MIN(*ret_read_s, settled);
		*ret_events |= l->row[i].event;
		l->row[i].event = false;
	}
	return r;
}

static int row_take(
	struct live_row *n, double upto_s, struct curves *s, struct curves_answer *answer, size_t nr)
{
	struct curves_column *column = calloc(nr + 1, sizeof(*column));
	struct curves_node *node = &s->node[s->nr_nodes];
	int r = column ? 0 : -ENOMEM;

	*node = (struct curves_node){.host = strdup(n->node.host), .offset_s = n->node.offset_s};
	while (node->same < s->nr_nodes &&
		(!*node->host || strcmp(s->node[node->same].host, node->host) != 0))
		node->same++;
	s->nr_nodes++;
	if (r >= 0)
		r = curves_node_take(n->curves, upto_s, n->ended, node, column, answer);
	for (size_t i = 0; i < nr && r >= 0; i++)
		curves_column_take(&s->column[i], &column[i]);
	if (column)
		curves_columns_free(column, nr);
	return r;
}

int curves_live_take(struct curves_live *l, double upto_s, struct curves **ret)
{
	size_t nr = l->question.nr;
	struct curves_answer *answer = calloc(l->nr * nr + 1, sizeof(*answer));
	struct curves *s = calloc(1, sizeof(*s));
	int r = answer && s ? curves_columns(s, &l->question) : -ENOMEM;

	if (r >= 0 && !(s->node = calloc(l->nr + 1, sizeof(*s->node))))
		r = -ENOMEM;
	for (size_t i = 0; i < l->nr && r >= 0; i++)
		r = row_take(&l->row[i], upto_s, s, answer + i * nr, nr);
	if (r >= 0)
		r = curves_gather(s, answer, nr);
	for (size_t i = 0; answer && i < l->nr * nr; i++)
		free(answer[i].line);
	free(answer);
	if (r < 0) {
		curves_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void curves_live_node(
	const struct curves_live *l, size_t i, double *ret_last_s, double *ret_settled_s, bool *ret_ended)
{
	const struct live_row *n = &l->row[i];
	size_t waiting;

	*ret_last_s = curves_node_last(n->curves);
	*ret_settled_s = n->ended ? *ret_last_s : curves_node_settled(n->curves, &waiting);
	*ret_ended = n->ended;
}
