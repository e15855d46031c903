/* The run log of a whole run: the lines of its recordings, in the order of time. */
#include "text/runlog.h"

#include "base/owned.h"
#include "query/align.h"

#include <stdlib.h>
#include <string.h>

#define LINE_MOST ((size_t)1 << 24)

struct runlog_line {
	int64_t time_ns; /* of the run */
	size_t number;	 /* those of one time stay as they came */
	char *text;
	size_t len;
};

struct runlog_lines {
	const struct runlog_page *page; /* NULL: JSON */
	struct runlog_page here;
	const struct run_node *node; /* the recording that is read */
	bool several;
	int (*put)(void *arg, const void *line, size_t len);
	void *arg;
	struct buf line;
	struct runlog_line *kept;
	size_t nr;
};

static int keep(struct runlog_lines *all, int64_t time_ns)
{
	struct runlog_line *line = ARRAY_ADD(all->kept, all->nr);

	if (!line)
		return -ENOMEM;
	if (__builtin_add_overflow(all->node->offset_ns, time_ns, &line->time_ns))
		line->time_ns = time_ns;
	line->number = all->nr;
	line->len = all->line.len;
	line->text = malloc(all->line.len + 1);
	if (!line->text)
		return -ENOMEM;
	memcpy(line->text, all->line.data, all->line.len);
	return 0;
}

static int take(void *arg, const struct runlog *log, const struct runlog_entry *e)
{
	struct runlog_lines *all = arg;

	buf_reset(&all->line);
	if (all->page)
		runlog_print(log, e, &all->here, &all->line);
	else
		runlog_json(log, e, all->several ? all->node->host : NULL, &all->line);
	if (all->line.err)
		return all->line.err;
	return all->several ? keep(all, e->time_ns) : all->put(all->arg, all->line.data, all->line.len);
}

static int by_time(const void *a, const void *b)
{
	const struct runlog_line *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int read_one(struct runlog_lines *all, const char *path)
{
	struct runlog_reading *reading = NULL;
	int r = runlog_open(path, take, all, &reading);

	if (r >= 0)
		r = runlog_read(reading);
	runlog_close(reading);
	return r;
}

int runlog_lines(const struct run *run, const struct runlog_page *page,
	int (*put)(void *arg, const void *line, size_t len), void *arg, struct buf *reterr)
{
	struct runlog_lines all = {.page = page, .several = run->nr > 1, .put = put, .arg = arg};
	struct run_node *node = NULL;
	int r = run_align(run, &node, reterr);

	buf_init(&all.line, LINE_MOST);
	for (size_t i = 0; i < run->nr && r >= 0; i++) {
		all.node = &node[i];
		all.here = page ? *page : (struct runlog_page){0};
		all.here.several = all.several;
		all.here.offset_s = run_node_offset_s(&node[i]);
		r = read_one(&all, run->path[i]);
		if (r < 0 && !reterr->len)
			buf_addf(reterr, "%s: %s", run->path[i], strerror(-r));
	}
	if (all.nr)
		qsort(all.kept, all.nr, sizeof(*all.kept), by_time);
	for (size_t i = 0; i < all.nr && r >= 0; i++)
		r = put(arg, all.kept[i].text, all.kept[i].len);
	for (size_t i = 0; i < all.nr; i++)
		free(all.kept[i].text);
	free(all.kept);
	buf_release(&all.line);
	run_align_free(node, run->nr);
	return MIN(r, 0);
}
