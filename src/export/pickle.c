/* A table as Python pickles it, protocol 4: one dict, from the name of a column to the list of its values, as
 * pandas.DataFrame() takes it. Times are integers, ns since 1970.
 *
 * There are only dicts, lists, texts, numbers, booleans and None in it: nothing that names a function or a
 * class, so that loading it runs nothing (pickletools.dis shows it). NumPy arrays would load faster, but need
 * names of functions.
 *
 * Columns stand one after the other while rows come by time, so each waits in a spool. A text that comes
 * again is taken from the memo: its number there is given out over all columns as texts come, which
 * LONG_BINPUT allows and MEMOIZE, which counts by itself, does not. */
#include "base/owned.h"
#include "export/spool.h"

#include <endian.h>
#include <string.h>

/* The opcodes that are used, by their names in pickle. */
enum {
	PROTO = 0x80,
	STOP = '.',
	MARK = '(',
	EMPTY_DICT = '}',
	SETITEM = 's',
	EMPTY_LIST = ']',
	APPENDS = 'e',
	NONE = 'N',
	TRUE = 0x88,
	FALSE = 0x89,
	BININT = 'J',
	BININT1 = 'K',
	BININT2 = 'M',
	LONG1 = 0x8a,
	BINFLOAT = 'G',
	SHORT_BINUNICODE = 0x8c,
	BINUNICODE = 'X',
	LONG_BINPUT = 'r',
	BINGET = 'h',
	LONG_BINGET = 'j',
};

#define APPEND_MOST 1000 /* values that wait on the reader's stack */

struct pickle_column {
	struct spool spool;
	uint32_t waiting; /* behind the last MARK */
	uint32_t *memo;	  /* number + 1 of each text; 0: not there yet */
	uint32_t nr_memo;
};

struct pickle {
	const struct export_job *job;
	struct spool_file file;
	struct pickle_column *column;
	size_t nr_columns;
	uint32_t next_memo;
};

static void add_text(struct buf *out, const char *text, size_t len)
{
	uint32_t n = htole32((uint32_t)len);

	if (len < 256) {
		buf_addch(out, SHORT_BINUNICODE);
		buf_addch(out, (int)len);
	} else {
		buf_addch(out, BINUNICODE);
		buf_add(out, &n, sizeof(n));
	}
	buf_add(out, text, len);
}

static void add_integer(struct buf *out, int64_t v)
{
	uint64_t n = htole64((uint64_t)v);

	if (v >= 0 && v < 256) {
		buf_addch(out, BININT1);
		buf_add(out, &n, 1);
	} else if (v >= 0 && v < 65536) {
		buf_addch(out, BININT2);
		buf_add(out, &n, 2);
	} else if (v >= INT32_MIN && v <= INT32_MAX) {
		buf_addch(out, BININT);
		buf_add(out, &n, 4);
	} else {
		buf_addch(out, LONG1);
		buf_addch(out, sizeof(n));
		buf_add(out, &n, sizeof(n));
	}
}

static void add_real(struct buf *out, double v)
{
	uint64_t n;

	memcpy(&n, &v, sizeof(n));
	n = htobe64(n);
	buf_addch(out, BINFLOAT);
	buf_add(out, &n, sizeof(n));
}

static int memo_reach(struct pickle_column *c, uint32_t nr)
{
	uint32_t *more;

	if (nr <= c->nr_memo)
		return 0;
	more = array_reach(c->memo, &c->nr_memo, nr - 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->memo = more;
	return 0;
}

/* A text of the dictionary: in full for the first time, then by its number. */
static void add_known_text(struct pickle *p, struct pickle_column *c, const struct texts *t, uint32_t text)
{
	struct buf *out = &c->spool.held;
	uint32_t number = c->memo[text] ? c->memo[text] - 1 : p->next_memo, n = htole32(number);

	if (!c->memo[text]) {
		add_text(out, t->text[text], t->len[text]);
		buf_addch(out, LONG_BINPUT);
		buf_add(out, &n, sizeof(n));
		c->memo[text] = ++p->next_memo;
	} else if (number < 256) {
		buf_addch(out, BINGET);
		buf_addch(out, (int)number);
	} else {
		buf_addch(out, LONG_BINGET);
		buf_add(out, &n, sizeof(n));
	}
}

static int column_add(struct pickle *p, size_t field, const struct data_table_batch *b)
{
	const struct field_cells *cell = &b->cell[field];
	struct pickle_column *c = &p->column[field];
	struct buf *out = &c->spool.held;
	enum field_type type = p->job->table->field[field].type;
	struct texts t = {0};
	int r = 0;

	if (type == FIELD_TEXT) {
		t = export_texts(p->job, b->table, field);
		r = memo_reach(c, t.nr);
	}
	for (uint32_t row = 0; r >= 0 && row < b->nr_rows; row++) {
		if (!c->waiting)
			buf_addch(out, MARK);
		if (!cell_valid(cell, row))
			buf_addch(out, NONE);
		else if (type == FIELD_REAL)
			add_real(out, cell->real[row]);
		else if (type == FIELD_FLAG)
			buf_addch(out, cell->flag[row] ? TRUE : FALSE);
		else if (type != FIELD_TEXT)
			add_integer(out, cell->integer[row]);
		else if (cell->text[row] < t.nr)
			add_known_text(p, c, &t, cell->text[row]);
		else
			return -EINVAL;
		if (++c->waiting == APPEND_MOST) {
			buf_addch(out, APPENDS);
			c->waiting = 0;
		}
	}
	return r < 0 ? r : spool_settle(&c->spool, &p->file);
}

static void pickle_drop(void *e)
{
	struct pickle *p = e;

	for (size_t i = 0; i < p->nr_columns; i++) {
		spool_release(&p->column[i].spool);
		free(p->column[i].memo);
	}
	free(p->column);
	spool_file_release(&p->file);
	free(p);
}

static int pickle_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct pickle *p = calloc(1, sizeof(*p));

	(void)reterr;
	if (!p)
		return -ENOMEM;
	p->job = job;
	spool_file_init(&p->file, job->path);
	p->column = calloc(MAX(job->table->nr_fields, (size_t)1), sizeof(*p->column));
	if (!p->column) {
		pickle_drop(p);
		return -ENOMEM;
	}
	for (; p->nr_columns < job->table->nr_fields; p->nr_columns++)
		spool_init(&p->column[p->nr_columns].spool);
	*ret = p;
	return 0;
}

static int pickle_add(void *e, const struct data_table_batch *b)
{
	struct pickle *p = e;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->nr_columns; i++)
		r = column_add(p, i, b);
	return r;
}

static int add_buf(struct outlet *out, struct buf *b)
{
	int r = b->err ? b->err : outlet_add(out, b->data, b->len);

	buf_reset(b);
	return r;
}

static int pickle_close(void *e)
{
	struct pickle *p = e;
	struct buf words;
	int r;

	buf_init(&words, INT32_MAX);
	buf_addch(&words, PROTO);
	buf_addch(&words, 4);
	buf_addch(&words, EMPTY_DICT);
	r = add_buf(p->job->out, &words);
	for (size_t i = 0; r >= 0 && i < p->nr_columns; i++) {
		const char *name = p->job->table->field[i].name;

		add_text(&words, name, strlen(name));
		buf_addch(&words, EMPTY_LIST);
		r = add_buf(p->job->out, &words);
		if (r >= 0)
			r = spool_pour(&p->column[i].spool, &p->file, p->job->out);
		if (p->column[i].waiting)
			buf_addch(&words, APPENDS);
		buf_addch(&words, SETITEM);
	}
	buf_addch(&words, STOP);
	if (r >= 0)
		r = add_buf(p->job->out, &words);
	buf_release(&words);
	pickle_drop(p);
	return r;
}

const struct exporter exporter_pickle = {
	.name = "pickle",
	.suffix = ".pickle",
	.also = ".pkl",
	.help = "a Python dict of lists, as pandas.DataFrame() takes it; nothing in it can run",
	.shape = EXPORT_FILE_EACH,
	.streams = true,
	.open = pickle_open,
	.add = pickle_add,
	.close = pickle_close,
	.drop = pickle_drop,
};
