/* Parquet: row groups of column chunks, and a footer that says where everything is and what it means.
 *
 * Pages are of the first version, which every reader has, and whose levels are compressed with the values.
 * Rows come in order of time, so a row group is a span of time, and its statistics let readers skip it.
 *
 * Encoding takes about as long as reading a recording does, so it is done beside it: batches are handed to
 * workers, each of which has some of the columns, gathers their values into pages and makes chunks of them.
 * Only texts are gathered in the main thread, since their dictionaries grow while the run is read. The main
 * thread decides where row groups end, so that a file is the same however fast the workers are. There are two
 * of them: on two CPUs that others use as well that took a tenth less time than one. */
#include "export/parquet_chunk.h"
#include "export/parquet_footer.h"
#include "export/worker.h"

#include <string.h>

#define GROUP_ROWS (128 * 1024)
#define GROUP_BYTES (64u << 20) /* of values and texts before they are compressed */

#define HANDS 2

struct parquet_worker { /* has each HANDS-th field */
	struct parquet *p;
	size_t first;
	struct worker worker;
	struct press press;
	bool has_press; /* else it uses that of the first, which is idle then */
};

struct parquet {
	const struct export_job *job;
	struct text_numbers *numbers; /* one for each field, as pages and chunks */
	uint64_t group_rows, group_bytes;
	struct footer footer;
	struct parquet_worker hand[HANDS];
	struct parquet_page *page; /* those of texts belong to the main thread, the others to their worker */
	struct chunk *chunk;	   /* of its worker, while it is working */
	int err;		   /* the first one */
};

enum work_type { WORK_BATCH, WORK_PAGE, WORK_TEXTS, WORK_GROUP };

struct parquet_work {
	enum work_type type;
	size_t field;
	union { /* pages and texts belong to the worker from now on */
		struct {
			const struct field_cells *cell;
			uint32_t nr_rows, *held;
		} batch;
		struct parquet_page page;
		struct text_page texts;
	};
};

static bool is_text(const struct parquet *p, size_t field)
{
	return p->job->table->field[field].type == FIELD_TEXT;
}

/* ---- the workers' side ---- */

static struct press *press_of(struct parquet_worker *h)
{
	return h->has_press ? &h->press : &h->p->hand[0].press;
}

static int end_page(struct parquet_worker *h, size_t field)
{
	struct parquet_page *page = &h->p->page[field];
	int r = page->nr_rows ? chunk_add(&h->p->chunk[field], press_of(h), page) : 0;

	page_clear(page);
	return r;
}

static int add_numbers(struct parquet_worker *h, const struct field_cells *cell, uint32_t nr_rows)
{
	struct parquet *p = h->p;
	int r = 0;

	for (size_t i = h->first; r >= 0 && i < p->job->table->nr_fields; i += HANDS) {
		if (is_text(p, i))
			continue;
		if (!page_has_room(&p->page[i], nr_rows))
			r = end_page(h, i);
		if (r >= 0)
			r = page_add(&p->page[i], &cell[i], nr_rows, NULL, NULL);
	}
	return r;
}

static int end_chunks(struct parquet_worker *h)
{
	struct parquet *p = h->p;
	int r = 0;

	for (size_t i = h->first; r >= 0 && i < p->job->table->nr_fields; i += HANDS) {
		r = is_text(p, i) ? 0 : end_page(h, i);
		if (r >= 0)
			r = chunk_end(&p->chunk[i], press_of(h));
	}
	return r;
}

static int error_of(const struct parquet *p)
{
	return __atomic_load_n(&p->err, __ATOMIC_ACQUIRE);
}

/* After an error no work is done any more, but what was passed on is still freed. */
static void work(void *arg, void *job)
{
	struct parquet_worker *h = arg;
	struct parquet *p = h->p;
	struct parquet_work *w = job;
	struct chunk *c = &p->chunk[w->field];
	int r = error_of(p), none = 0;

	switch (w->type) {
	case WORK_BATCH:
		if (r >= 0)
			r = add_numbers(h, w->batch.cell, w->batch.nr_rows);
		if (w->batch.held)
			data_table_batch_let_go(w->batch.held);
		break;
	case WORK_PAGE:
		if (r >= 0)
			r = chunk_add(c, press_of(h), &w->page);
		page_release(&w->page);
		break;
	case WORK_TEXTS:
		buf_release(&c->texts.plain);
		c->texts = w->texts;
		break;
	case WORK_GROUP:
		if (r >= 0)
			r = end_chunks(h);
		break;
	}
	if (r < 0)
		__atomic_compare_exchange_n(&p->err, &none, r, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* ---- the main thread ---- */

static void give(struct parquet *p, const struct parquet_work *w)
{
	worker_give(&p->hand[w->field % HANDS].worker, w);
}

static void wait_for_hands(struct parquet *p)
{
	for (size_t i = 0; i < HANDS; i++)
		worker_wait(&p->hand[i].worker);
}

static int start_hands(struct parquet *p)
{
	for (size_t i = 0; i < HANDS; i++) {
		struct parquet_worker *h = &p->hand[i];
		int r = h->has_press ? 0 : press_init(&h->press, p->footer.compressed);

		h->has_press = true;
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < HANDS; i++)
		worker_start(&p->hand[i].worker);
	return 0;
}

static void give_page(struct parquet *p, size_t field)
{
	struct parquet_page *page = &p->page[field];
	struct parquet_work w = {.type = WORK_PAGE, .field = field, .page = *page};

	if (!page->nr_rows)
		return;
	*page = (struct parquet_page){.type = page->type};
	give(p, &w);
}

static int give_texts(struct parquet *p, size_t field)
{
	const struct texts texts = export_texts(p->job, p->job->first_table, field);
	struct parquet_work w = {.type = WORK_TEXTS, .field = field};
	int r = text_page_make(&w.texts, &p->numbers[field], &texts);

	text_numbers_clear(&p->numbers[field]);
	if (r < 0)
		buf_release(&w.texts.plain);
	else
		give(p, &w);
	return r;
}

static int write_chunks(struct parquet *p)
{
	int r = footer_add_group(&p->footer, p->chunk, p->group_rows, outlet_at(p->job->out));

	for (size_t i = 0; r >= 0 && i < p->job->table->nr_fields; i++) {
		const struct chunk *c = &p->chunk[i];

		r = outlet_add(p->job->out, c->first.data, c->first.len);
		if (r >= 0)
			r = outlet_add(p->job->out, c->pages.data, c->pages.len);
	}
	return r;
}

static int end_group(struct parquet *p)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->job->table->nr_fields; i++)
		if (is_text(p, i)) {
			give_page(p, i);
			r = give_texts(p, i);
		}
	for (size_t i = 0; i < HANDS; i++)
		give(p, &(struct parquet_work){.type = WORK_GROUP, .field = i});
	wait_for_hands(p);
	if (r >= 0)
		r = error_of(p);
	if (r >= 0)
		r = write_chunks(p);
	for (size_t i = 0; i < p->job->table->nr_fields; i++)
		chunk_clear(&p->chunk[i]);
	p->group_rows = p->group_bytes = 0;
	return r;
}

static int add_texts(struct parquet *p, size_t field, const struct field_cells *cells, uint32_t nr_rows)
{
	const struct texts texts = export_texts(p->job, p->job->first_table, field);
	struct text_numbers *numbers = &p->numbers[field];
	uint32_t known = numbers->nr;
	int r;

	if (!page_has_room(&p->page[field], nr_rows))
		give_page(p, field);
	r = page_add(&p->page[field], cells, nr_rows, numbers, &texts);
	for (; r >= 0 && known < numbers->nr; known++)
		p->group_bytes += texts.len[numbers->text[known]];
	return r;
}

static void give_batch(struct parquet *p, const struct data_table_batch *batch)
{
	for (size_t i = 0; i < HANDS; i++) {
		if (batch->held)
			data_table_batch_hold(batch);
		give(p,
			&(struct parquet_work){.type = WORK_BATCH,
				.field = i,
				.batch = {batch->cell, batch->nr_rows, batch->held}});
	}
	if (!batch->held)
		wait_for_hands(p);
}

static int parquet_add(void *e, const struct data_table_batch *batch)
{
	struct parquet *p = e;
	int r = error_of(p);

	if (r >= 0 && batch->nr_rows >= PAGE_VALUES / 2)
		r = start_hands(p); /* there may be more batches */
	for (size_t i = 0; r >= 0 && i < p->job->table->nr_fields; i++) {
		if (is_text(p, i))
			r = add_texts(p, i, &batch->cell[i], batch->nr_rows);
		p->group_bytes += (batch->nr_rows - batch->cell[i].nr_missing) * sizeof(uint64_t);
	}
	if (r < 0)
		return r;
	give_batch(p, batch);
	p->group_rows += batch->nr_rows;
	return p->group_rows >= GROUP_ROWS || p->group_bytes >= GROUP_BYTES ? end_group(p) : error_of(p);
}

static void parquet_drop(void *e)
{
	struct parquet *p = e;

	__atomic_store_n(&p->err, -ECANCELED, __ATOMIC_RELEASE); /* what is waiting is dropped */
	for (size_t i = 0; i < HANDS; i++)
		worker_release(&p->hand[i].worker);
	for (size_t i = 0; p->page && p->numbers && p->chunk && i < p->job->table->nr_fields; i++) {
		page_release(&p->page[i]);
		text_numbers_release(&p->numbers[i]);
		chunk_release(&p->chunk[i]);
	}
	free(p->page);
	free(p->numbers);
	free(p->chunk);
	for (size_t i = 0; i < HANDS; i++)
		if (p->hand[i].has_press)
			press_release(&p->hand[i].press);
	buf_release(&p->footer.groups);
	free(p);
}

static int set_up(struct parquet *p)
{
	const struct data_table *f = p->job->table;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < HANDS; i++) {
		p->hand[i].p = p;
		p->hand[i].first = i;
		r = worker_init(&p->hand[i].worker, work, &p->hand[i], sizeof(struct parquet_work));
	}
	if (r < 0)
		return r;
	p->hand[0].has_press = true;
	r = press_init(&p->hand[0].press, p->footer.compressed);
	if (r < 0)
		return r;
	p->page = calloc(f->nr_fields + 1, sizeof(*p->page));
	p->numbers = calloc(f->nr_fields + 1, sizeof(*p->numbers));
	p->chunk = calloc(f->nr_fields + 1, sizeof(*p->chunk));
	if (!p->page || !p->numbers || !p->chunk)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr_fields; i++) {
		p->page[i].type = f->field[i].type;
		chunk_init(&p->chunk[i], f->field[i].type);
	}
	return outlet_add(p->job->out, "PAR1", 4);
}

static int parquet_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct parquet *p = calloc(1, sizeof(*p));
	int r;

	(void)reterr;
	if (!p)
		return -ENOMEM;
	p->job = p->footer.job = job;
	p->footer.compressed = !job->compression || strcmp(job->compression, "none") != 0;
	buf_init(&p->footer.groups, INT32_MAX);
	r = set_up(p);
	if (r < 0)
		parquet_drop(p);
	else
		*ret = p;
	return r;
}

static int parquet_close(void *e)
{
	struct parquet *p = e;
	struct buf footer;
	int r = p->group_rows ? end_group(p) : error_of(p);

	buf_init(&footer, INT32_MAX);
	if (r >= 0)
		r = footer_put(&footer, &p->footer);
	if (r >= 0)
		r = outlet_add(p->job->out, footer.data, footer.len);
	buf_release(&footer);
	parquet_drop(p);
	return r;
}

const struct exporter exporter_parquet = {
	.name = "parquet",
	.suffix = ".parquet",
	.help = "Apache Parquet: typed, compressed columns with statistics",
	.compressions = "zstd,none",
	.shape = EXPORT_FILE_EACH,
	.streams = true,
	.wants_summary = true,
	.takes_same = true,
	.open = parquet_open,
	.add = parquet_add,
	.close = parquet_close,
	.drop = parquet_drop,
};
