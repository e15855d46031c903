/* Recordings are read one after the other, each once, and their lines put in the order of the questions. */
#include "query/sheet_internal.h"

#include <math.h>
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
	for (size_t i = 0; i < s->nr_columns; i++) {
		free((char *)s->column[i].name);
		free((char *)s->column[i].help);
		free((char *)s->column[i].panel);
		free(s->column[i].why);
	}
	free(s->line);
	free(s->node);
	free(s->column);
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

static int read_nodes(struct sheet *s, const struct sheet_question *q, struct buf *reterr)
{
	size_t nr = s->nr_nodes * q->nr;
	struct sheet_answer *answer = calloc(nr + 1, sizeof(*answer));
	int r = answer ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->nr_nodes && r >= 0; i++) {
		r = sheet_read_node(q, (uint32_t)i, s, answer + i * q->nr);
		if (r < 0)
			buf_addf(reterr, "%s: %s", q->run->path[i], strerror(-r));
	}
	if (r >= 0)
		r = sheet_gather(s, answer, q->nr);
	for (size_t i = 0; answer && i < nr; i++) {
		for (size_t j = 0; j < answer[i].nr; j++)
			sheet_line_release(&answer[i].line[j]);
		free(answer[i].line);
	}
	free(answer);
	return r;
}

int sheet_read(const struct run *run, const struct sheet_query *query, size_t nr,
	const struct sheet_options *options, struct sheet **ret, struct buf *reterr)
{
	static const struct sheet_options all = {.from_s = NAN, .to_s = NAN};
	const struct sheet_question q = {
		.run = run, .query = query, .nr = nr, .options = options ? options : &all};
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
