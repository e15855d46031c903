/* Recordings are read by several threads, each once, and their lines put in the order of the questions. What
 * they say of the columns is taken in the order of the recordings. */
#include "query/sheet_internal.h"

#include "base/parallel.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static void sheet_line_release(struct sheet_line *line)
{
	if (line->low != line->mean)
		free(line->low);
	if (line->high != line->mean)
		free(line->high);
	free(line->mean);
	free(line->name);
	spread_free(line->spread);
	*line = (struct sheet_line){0};
}

static void columns_free(struct sheet_column *column, size_t nr)
{
	for (size_t i = 0; column && i < nr; i++) {
		free((char *)column[i].name);
		free((char *)column[i].help);
		free((char *)column[i].panel);
		free(column[i].why);
	}
	free(column);
}

struct sheet *sheet_free(struct sheet *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->nr_lines; i++)
		sheet_line_release(&s->line[i]);
	for (size_t i = 0; i < s->nr_nodes; i++) {
		free((char *)s->node[i].host);
		free(s->node[i].time_s);
		free(s->node[i].lost);
	}
	free(s->line);
	free(s->node);
	columns_free(s->column, s->nr_columns);
	free(s);
	return NULL;
}

static int sheet_columns(struct sheet *s, const struct sheet_question *q)
{
	s->column = calloc(q->nr + 1, sizeof(*s->column));
	if (!s->column)
		return -ENOMEM;
	for (; s->nr_columns < q->nr; s->nr_columns++) {
		struct sheet_column *c = &s->column[s->nr_columns];

		c->per = q->query[s->nr_columns].per;
		c->name = strdup(q->query[s->nr_columns].metric);
		c->help = strdup("");
		c->panel = strdup("");
		if (!c->name || !c->help || !c->panel)
			return -ENOMEM;
	}
	return 0;
}

static int sheet_nodes(struct sheet *s, const struct sheet_question *q, struct buf *reterr)
{
	double *offset_s = calloc(q->run->nr + 1, sizeof(*offset_s));
	char **host = calloc(q->run->nr + 1, sizeof(char *));
	int r = -ENOMEM;

	s->node = calloc(q->run->nr + 1, sizeof(*s->node));
	if (offset_s && host && s->node)
		r = scenes_align(q->run, offset_s, host, reterr);
	for (; r != -ENOMEM && s->nr_nodes < q->run->nr; s->nr_nodes++) {
		s->node[s->nr_nodes].host = TAKE_PTR(host[s->nr_nodes]);
		s->node[s->nr_nodes].offset_s = offset_s[s->nr_nodes];
	}
	for (size_t i = 0; host && i < q->run->nr; i++)
		free(host[i]);
	free(offset_s);
	free(host);
	return r;
}

/* From [node][query] to lines by query, then node. */
static int sheet_gather(struct sheet *s, struct sheet_answer *answer, size_t nr_queries)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_nodes * nr_queries; i++)
		nr += answer[i].nr;
	s->line = calloc(nr + 1, sizeof(*s->line));
	if (!s->line)
		return -ENOMEM;
	for (size_t query = 0; query < nr_queries; query++)
		for (size_t node = 0; node < s->nr_nodes; node++) {
			struct sheet_answer *from = &answer[node * nr_queries + query];

			if (from->nr)
				memcpy(s->line + s->nr_lines, from->line, from->nr * sizeof(*s->line));
			s->nr_lines += from->nr;
			from->nr = 0;
		}
	return 0;
}

/* All recordings while they are read. */
struct reading_all {
	struct sheet *sheet;
	const struct sheet_question *question;
	struct sheet_answer *answer;  /* [node][query] */
	struct sheet_column **column; /* by node: of those that were read and not yet taken */
	size_t nr_taken;
	double *done; /* by node, of 1 */
	pthread_mutex_t lock;
};

static void swap_text(const char **a, const char **b)
{
	const char *kept = *a;

	*a = *b;
	*b = kept;
}

/* What one recording says of a column is added to what the ones before it said. */
static void take_column(struct sheet_column *to, struct sheet_column *from)
{
	if (from->help && !*to->help) { /* the query's name stood for it */
		swap_text(&to->name, &from->name);
		swap_text(&to->help, &from->help);
		swap_text(&to->panel, &from->panel);
		to->unit = from->unit;
		to->kind = from->kind;
		to->fold = from->fold;
		to->per_second = from->per_second;
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
static void take_columns(struct reading_all *all)
{
	size_t nr = all->question->nr;

	for (; all->nr_taken < all->sheet->nr_nodes && all->column[all->nr_taken]; all->nr_taken++) {
		struct sheet_column *column = all->column[all->nr_taken];

		for (size_t i = 0; i < nr; i++)
			take_column(&all->sheet->column[i], &column[i]);
		columns_free(column, nr);
		all->column[all->nr_taken] = NULL;
	}
}

static void tell(void *arg, uint32_t which, double done)
{
	struct reading_all *all = arg;
	double sum = 0;

	pthread_mutex_lock(&all->lock);
	all->done[which] = done;
	for (size_t i = 0; i < all->sheet->nr_nodes; i++)
		sum += all->done[i];
	progress_tell(all->question->options->progress, "reading", sum / (double)all->sheet->nr_nodes);
	pthread_mutex_unlock(&all->lock);
}

static int read_node(void *arg, unsigned worker, size_t i)
{
	struct reading_all *all = arg;
	const struct sheet_question *q = all->question;
	struct sheet_column *column = calloc(q->nr + 1, sizeof(*column));
	int r = column
		? sheet_read_node(q, (uint32_t)i, &all->sheet->node[i], column, all->answer + i * q->nr)
		: -ENOMEM;

	(void)worker;
	if (r < 0) {
		columns_free(column, q->nr);
		return r;
	}
	pthread_mutex_lock(&all->lock);
	all->column[i] = column;
	take_columns(all);
	pthread_mutex_unlock(&all->lock);
	return 0;
}

static int read_nodes(struct sheet *s, struct sheet_question *q, struct buf *reterr)
{
	size_t nr = s->nr_nodes * q->nr, at = 0;
	struct reading_all all = {.sheet = s,
		.question = q,
		.answer = calloc(nr + 1, sizeof(*all.answer)),
		.column = calloc(s->nr_nodes + 1, sizeof(*all.column)),
		.done = calloc(s->nr_nodes + 1, sizeof(*all.done)),
		.lock = PTHREAD_MUTEX_INITIALIZER};
	int r = -ENOMEM;

	q->tell = tell;
	q->tell_arg = &all;
	if (all.answer && all.column && all.done) {
		r = parallel_each(s->nr_nodes, read_node, &all, &at);
		if (r < 0)
			buf_addf(reterr, "%s: %s", q->run->path[at], strerror(-r));
	}
	if (r >= 0)
		r = sheet_gather(s, all.answer, q->nr);
	for (size_t i = 0; all.answer && i < nr; i++) {
		for (size_t j = 0; j < all.answer[i].nr; j++)
			sheet_line_release(&all.answer[i].line[j]);
		free(all.answer[i].line);
	}
	for (size_t i = 0; all.column && i < s->nr_nodes; i++)
		columns_free(all.column[i], q->nr);
	free(all.answer);
	free(all.column);
	free(all.done);
	return r;
}

int sheet_read(const struct run *run, const struct sheet_query *query, size_t nr,
	const struct sheet_options *options, struct sheet **ret, struct buf *reterr)
{
	static const struct sheet_options all = {.from_s = NAN, .to_s = NAN};
	struct sheet_question q = {.run = run, .query = query, .nr = nr, .options = options ? options : &all};
	struct sheet *s = calloc(1, sizeof(*s));
	int r = s ? sheet_columns(s, &q) : -ENOMEM;

	if (r >= 0)
		r = sheet_nodes(s, &q, reterr);
	if (r >= 0)
		r = read_nodes(s, &q, reterr);
	if (r < 0) {
		if (!reterr->len)
			buf_addf(reterr, "cannot read: %s", strerror(-r));
		sheet_free(s);
		return r;
	}
	*ret = s;
	return 0;
}
