/* Recordings are read by several threads, each once, and their lines put in the order of the questions. What
 * they say of the columns is taken in the order of the recordings. */
#include "query/curves_internal.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static void curves_line_release(struct curves_line *line)
{
	free(line->name);
	spread_free(line->spread);
	*line = (struct curves_line){0};
}

void curves_columns_free(struct curves_column *column, size_t nr)
{
	for (size_t i = 0; column && i < nr; i++) {
		free((char *)column[i].name);
		free((char *)column[i].help);
		free((char *)column[i].panel);
		free(column[i].why);
	}
	free(column);
}

struct curves *curves_free(struct curves *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->nr_lines; i++)
		curves_line_release(&s->line[i]);
	for (size_t i = 0; i < s->nr_nodes; i++) {
		free((char *)s->node[i].host);
		free(s->node[i].time_s);
		free(s->node[i].lost);
		owned_free(&s->node[i].points);
	}
	free(s->line);
	free(s->node);
	curves_columns_free(s->column, s->nr_columns);
	free(s);
	return NULL;
}

int curves_columns(struct curves *s, const struct curves_question *q)
{
	s->column = calloc(q->nr + 1, sizeof(*s->column));
	if (!s->column)
		return -ENOMEM;
	for (; s->nr_columns < q->nr; s->nr_columns++) {
		struct curves_column *c = &s->column[s->nr_columns];

		c->per = q->query[s->nr_columns].per;
		c->name = strdup(q->query[s->nr_columns].metric);
		c->help = strdup("");
		c->panel = strdup("");
		if (!c->name || !c->help || !c->panel)
			return -ENOMEM;
	}
	return 0;
}

int curves_nodes(struct curves *s, const struct run *run, struct buf *reterr)
{
	struct run_node *node = NULL;
	int r = run_align(run, &node, reterr);

	if (r < 0)
		return r;
	s->node = calloc(run->nr + 1, sizeof(*s->node));
	for (; s->node && s->nr_nodes < run->nr; s->nr_nodes++) {
		struct curves_node *n = &s->node[s->nr_nodes];

		n->host = TAKE_PTR(node[s->nr_nodes].host);
		n->offset_s = run_node_offset_s(&node[s->nr_nodes]);
		while (n->same < s->nr_nodes && (!*n->host || strcmp(s->node[n->same].host, n->host)))
			n->same++;
	}
	run_align_free(node, run->nr);
	return s->node ? 0 : -ENOMEM;
}

/* From [node][query] to lines by query, then node. */
int curves_gather(struct curves *s, struct curves_answer *answer, size_t nr_queries)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_nodes * nr_queries; i++)
		nr += answer[i].nr;
	s->line = calloc(nr + 1, sizeof(*s->line));
	if (!s->line)
		return -ENOMEM;
	for (size_t query = 0; query < nr_queries; query++)
		for (size_t node = 0; node < s->nr_nodes; node++) {
			struct curves_answer *from = &answer[node * nr_queries + query];

			if (from->nr)
				memcpy(s->line + s->nr_lines, from->line, from->nr * sizeof(*s->line));
			s->nr_lines += from->nr;
			from->nr = 0;
		}
	s->nr_read = s->nr_lines;
	return 0;
}

size_t curves_first_line(const struct curves *s, unsigned query, uint32_t node)
{
	size_t low = 0, high = s->nr_read;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct curves_line *line = &s->line[middle];

		if (line->query < query || (line->query == query && line->node < node))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct curves_reading {
	struct curves *curves;
	struct curves_question question;
	struct curves_options options;
	struct curves_answer *answer;  /* [node][query] */
	struct curves_column **column; /* by node: of those that are read, or were and are not yet taken */
	bool *is_read;		       /* by node */
	size_t nr_taken;
	pthread_mutex_t lock;
};

static void swap_text(const char **a, const char **b)
{
	const char *kept = *a;

	*a = *b;
	*b = kept;
}

/* What one recording says of a column is added to what the ones before it said. */
void curves_column_take(struct curves_column *to, struct curves_column *from)
{
	if (from->help && !*to->help) { /* the query's name stood for it */
		swap_text(&to->name, &from->name);
		swap_text(&to->help, &from->help);
		swap_text(&to->panel, &from->panel);
		to->unit = from->unit;
		to->kind = from->kind;
		to->fold = from->fold;
		to->per_second = from->per_second;
		to->rates = from->rates;
		to->of_machine = from->of_machine;
	}
	to->left_out += from->left_out;
	to->known |= from->known;
	if (to->known) {
		free(to->why);
		to->why = NULL;
	} else if (!to->why) {
		to->why = TAKE_PTR(from->why);
	}
}

/* In the order of the recordings, whichever is done first. */
static void take_columns(struct curves_reading *all)
{
	size_t nr = all->question.nr;

	for (; all->nr_taken < all->curves->nr_nodes && all->is_read[all->nr_taken]; all->nr_taken++) {
		struct curves_column *column = TAKE_PTR(all->column[all->nr_taken]);

		for (size_t i = 0; i < nr; i++)
			curves_column_take(&all->curves->column[i], &column[i]);
		curves_columns_free(column, nr);
	}
}

static int guest_open(void *arg, uint32_t node, struct walk *s, struct walk_observer **ret)
{
	struct curves_reading *all = arg;

	curves_columns_free(all->column[node], all->question.nr);
	all->column[node] = calloc(all->question.nr + 1, sizeof(**all->column));
	if (!all->column[node])
		return -ENOMEM;
	return curves_node_open(&all->question, node, &all->curves->node[node], s, all->column[node], ret);
}

static int guest_close(void *arg, unsigned worker, struct walk_observer *o, int r)
{
	struct curves_reading *all = arg;
	uint32_t node = curves_node_which(o);

	(void)worker;
	r = curves_node_close(o, r, all->column[node], all->answer + node * all->question.nr);
	if (r < 0)
		return r;
	pthread_mutex_lock(&all->lock);
	all->is_read[node] = true;
	take_columns(all);
	pthread_mutex_unlock(&all->lock);
	return 0;
}

int curves_guest(const struct run *run, const struct curves_query *query, size_t nr,
	const struct curves_options *options, struct curves_reading **ret, struct tour_guest *ret_guest,
	struct buf *reterr)
{
	struct curves_reading *all = calloc(1, sizeof(*all));
	int r = -ENOMEM;

	if (!all)
		return r;
	all->options = options ? *options : (struct curves_options){.from_s = NAN, .to_s = NAN};
	all->question =
		(struct curves_question){.run = run, .query = query, .nr = nr, .options = &all->options};
	pthread_mutex_init(&all->lock, NULL);
	all->curves = calloc(1, sizeof(*all->curves));
	if (all->curves)
		r = curves_columns(all->curves, &all->question);
	if (r >= 0)
		r = curves_nodes(all->curves, run, reterr);
	if (r >= 0) {
		all->answer = calloc(run->nr * nr + 1, sizeof(*all->answer));
		all->column = calloc(run->nr + 1, sizeof(*all->column));
		all->is_read = calloc(run->nr + 1, sizeof(*all->is_read));
		r = all->answer && all->column && all->is_read ? 0 : -ENOMEM;
	}
	if (r < 0) {
		curves_reading_free(all);
		return r;
	}
	*ret_guest = (struct tour_guest){guest_open, guest_close, all};
	*ret = all;
	return 0;
}

int curves_finish(struct curves_reading *all, struct curves **ret)
{
	int r = curves_gather(all->curves, all->answer, all->question.nr);

	if (r >= 0)
		*ret = TAKE_PTR(all->curves);
	return r;
}

struct curves_reading *curves_reading_free(struct curves_reading *all)
{
	size_t nr;

	if (!all)
		return NULL;
	nr = all->question.run->nr;
	for (size_t i = 0; all->answer && i < nr * all->question.nr; i++) {
		for (size_t j = 0; j < all->answer[i].nr; j++)
			curves_line_release(&all->answer[i].line[j]);
		free(all->answer[i].line);
	}
	for (size_t i = 0; all->column && i < nr; i++)
		curves_columns_free(all->column[i], all->question.nr);
	free(all->answer);
	free(all->column);
	free(all->is_read);
	curves_free(all->curves);
	free(all);
	return NULL;
}

int curves_read(const struct run *run, const struct curves_query *query, size_t nr,
	const struct curves_options *options, struct curves **ret, struct buf *reterr)
{
	struct curves_reading *all = NULL;
	struct tour_guest guest;
	int r = curves_guest(run, query, nr, options, &all, &guest, reterr);

	if (r >= 0)
		r = tour(run, &guest, 1, all->options.progress, "reading", reterr);
	if (r >= 0)
		r = curves_finish(all, ret);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "cannot read: %s", strerror(-r));
	curves_reading_free(all);
	return r;
}
