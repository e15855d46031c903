/* HDF5: of each table of time a group for each node, /process/HOST; of the others one group, /events. In it
 *
 * 	table   the rows: a compound that h5py reads by column (f["process/n1/table"]["proc.mem.rss"]) and
 * 	        pandas as it is (pandas.read_hdf(path, "process/n1"))
 * 	valid   rows x columns, 1 where the value is known: an integer has no special value for "missing"
 *
 * both chunked, shuffled and deflated. What is missing is NaN, the least integer, -1 of a flag, or an empty
 * text. The attributes of the table's group say of each column its type, unit, kind and meaning. A table
 * without rows has an empty table in its own group, so that its columns can be seen.
 *
 * A dataset for each column was rejected: of a hundred nodes it makes very many datasets, each with kilobytes
 * of its own, and pandas would read none of it.
 *
 * Texts have a fixed width in the table, as pandas needs it, and the longest text is known only at the end:
 * when one is too long, the table of the node is copied into one with twice the room, which happens a few
 * times at most and early. (To look for the longest in a pass of its own was rejected: it costs every export
 * a second reading, and while a recording is being written the second finds more than the first.) Columns
 * with longer texts than LONG_TEXT stand beside the table under their own names, with as many rows. */
#include <hdf5.h> /* has a member called ctime */

#undef BASE_BANNED_H
#include "base/banned.h"

#include "export/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONG_TEXT 8192
#define CHUNK_BYTES ((size_t)256 << 10)
#define LONG_CHUNK 1024
#define NO_HOST UINT32_MAX
#define WIDTH_LEAST 16

struct hdf5_column {
	char *name;
	size_t at, width; /* in the record; LONG_TEXT < width: beside it */
	uint32_t nr_seen; /* texts */
	hid_t beside;	  /* of the open node */
};

struct hdf5_table {
	struct hdf5_column *column;
	size_t host; /* the field by which rows are divided; SIZE_MAX: they are not */
	hid_t data_table_group, type;
	size_t size; /* of a record; 0: not laid out yet */
	uint32_t chunk, nr_held;
	uint8_t *row, *known; /* those that wait for a whole chunk */
	/* the open node */
	bool is_open;
	uint32_t node;
	hid_t group, data, valid;
	hsize_t nr_rows;
};

struct hdf5 {
	const struct export_job *job;
	struct hdf5_table *table;
	hid_t file;
};

static int trouble(const struct hdf5 *h, const char *what)
{
	int err = errno;

	if (err == ENOSPC || err == EFBIG || err == EDQUOT || err == ENOMEM || err == EACCES)
		return -err;
	if (!h->job->reterr->len)
		buf_addf(h->job->reterr, "HDF5 could not %s%s%s", what, err ? ": " : "",
			err ? strerror(err) : "");
	return -EIO;
}

static void close_id(hid_t *id)
{
	if (*id > 0 && H5Iis_valid(*id) > 0)
		H5Idec_ref(*id);
	*id = -1;
}

/* ---- metadata of columns ---- */

static hid_t text_type(size_t width)
{
	hid_t type = H5Tcopy(H5T_C_S1);

	if (type >= 0 &&
		(H5Tset_size(type, width) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0 ||
			(width != H5T_VARIABLE && H5Tset_strpad(type, H5T_STR_NULLPAD) < 0)))
		close_id(&type);
	return type;
}

static int put_attribute(
	const struct hdf5 *h, hid_t to, const char *name, hid_t type, hid_t space, const void *data)
{
	hid_t a = type < 0 || space < 0 ? -1 : H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	int r = a >= 0 && H5Awrite(a, type, data) >= 0 ? 0 : trouble(h, "write an attribute");

	close_id(&a);
	return r;
}

static int put_text(const struct hdf5 *h, hid_t to, const char *name, const char *text)
{
	hid_t type = text_type(MAX(strlen(text), (size_t)1)), space = H5Screate(H5S_SCALAR);
	int r = put_attribute(h, to, name, type, space, text);

	close_id(&type);
	close_id(&space);
	return r;
}

/* One text a column. */
static int put_texts(const struct hdf5 *h, hid_t to, const char *name, const struct data_table *f,
	const char *(*word)(const struct field *, char *))
{
	char scratch[EXPORT_TEXT], *all;
	hsize_t nr = f->nr_fields;
	hid_t type, space;
	size_t width = 1;
	int r;

	for (size_t i = 0; i < f->nr_fields; i++)
		width = MAX(width, strlen(word(&f->field[i], scratch)));
	all = nr ? calloc(f->nr_fields, width) : NULL;
	if (!all)
		return nr ? -ENOMEM : 0;
	for (size_t i = 0; i < f->nr_fields; i++) {
		const char *text = word(&f->field[i], scratch);

		memcpy(all + i * width, text, strlen(text));
	}
	type = text_type(width);
	space = H5Screate_simple(1, &nr, NULL);
	r = put_attribute(h, to, name, type, space, all);
	close_id(&type);
	close_id(&space);
	free(all);
	return r;
}

static const char *word_name(const struct field *f, char *scratch)
{
	(void)scratch;
	return f->name;
}

static const char *word_type(const struct field *f, char *scratch)
{
	(void)scratch;
	return field_type_name(f->type);
}

static const char *word_unit(const struct field *f, char *scratch)
{
	return f->type == FIELD_TIME ? "ns since 1970" : field_unit(f, scratch);
}

static const char *word_kind(const struct field *f, char *scratch)
{
	(void)scratch;
	return f->is_metric ? kind_name(f->kind) : "";
}

static const char *word_help(const struct field *f, char *scratch)
{
	(void)scratch;
	return f->help ? f->help : "";
}

static int describe(const struct hdf5 *h, hid_t group, const struct data_table *f)
{
	int r = put_text(h, group, "help", f->help ? f->help : "");

	if (r >= 0)
		r = put_texts(h, group, "columns", f, word_name);
	if (r >= 0)
		r = put_texts(h, group, "types", f, word_type);
	if (r >= 0)
		r = put_texts(h, group, "units", f, word_unit);
	if (r >= 0)
		r = put_texts(h, group, "kinds", f, word_kind);
	if (r >= 0)
		r = put_texts(h, group, "helps", f, word_help);
	return r;
}

/* ---- the record ---- */

static hid_t field_hdf5_type(const struct field *f, size_t width)
{
	switch (f->type) {
	case FIELD_TIME:
	case FIELD_INT:
		return H5Tcopy(H5T_NATIVE_INT64);
	case FIELD_REAL:
		return H5Tcopy(H5T_NATIVE_DOUBLE);
	case FIELD_FLAG:
		return H5Tcopy(H5T_NATIVE_INT8);
	case FIELD_TEXT:
		return text_type(width);
	}
	return -1;
}

static size_t field_size(const struct field *f, size_t width)
{
	return f->type == FIELD_TEXT ? width : f->type == FIELD_FLAG ? 1 : 8;
}

/* Names once, as a compound demands it; a slash would be a path. */
static int name_column(struct hdf5_table *t, size_t i, const char *wish)
{
	bool taken = true;

	for (unsigned nr = 1; taken; nr++) {
		char *name = NULL;

		if ((nr == 1 ? asprintf(&name, "%s", *wish ? wish : "_")
			     : asprintf(&name, "%s_%u", wish, nr)) < 0)
			return -ENOMEM;
		for (char *p = name; (p = strchr(p, '/'));)
			*p = '_';
		taken = !strcmp(name, "table") || !strcmp(name, "valid");
		for (size_t k = 0; k < i; k++)
			taken |= !strcmp(name, t->column[k].name);
		free(t->column[i].name);
		t->column[i].name = name;
	}
	return 0;
}

static int lay_out(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f)
{
	bool well = true;

	t->size = 0;
	for (size_t i = 0; i < f->nr_fields; i++) {
		struct hdf5_column *c = &t->column[i];

		c->at = t->size;
		c->width = MAX(c->width, (size_t)WIDTH_LEAST);
		if (c->width <= LONG_TEXT)
			t->size += field_size(&f->field[i], c->width);
	}
	close_id(&t->type);
	if (!t->size && f->nr_fields)
		buf_addf(h->job->reterr, "%s has nothing but long texts", f->name);
	if (!t->size)
		return f->nr_fields ? -E2BIG : 0;
	t->type = H5Tcreate(H5T_COMPOUND, t->size);
	for (size_t i = 0; well && i < f->nr_fields; i++) {
		const struct hdf5_column *c = &t->column[i];
		hid_t type = c->width <= LONG_TEXT ? field_hdf5_type(&f->field[i], c->width) : -1;

		well = c->width > LONG_TEXT || H5Tinsert(t->type, c->name, c->at, type) >= 0;
		close_id(&type);
	}
	if (!well)
		return trouble(h, "make the columns of a table");
	t->chunk = (uint32_t)MIN(MAX(CHUNK_BYTES / t->size, (size_t)16), (size_t)DATA_TABLE_ROWS_MOST);
	free(t->row);
	free(t->known);
	t->row = calloc(t->chunk, t->size);
	t->known = calloc(t->chunk, f->nr_fields);
	return t->row && t->known ? 0 : -ENOMEM;
}

/* ---- rows of a dataset ---- */

static int write_rows(
	hid_t d, hid_t type, int rank, const hsize_t from[2], const hsize_t nr[2], const void *data)
{
	const hsize_t size[2] = {from[0] + nr[0], nr[1]};
	hid_t memory = -1, space = -1;
	int r = -1;

	errno = 0;
	if (H5Dset_extent(d, size) < 0)
		return -1;
	memory = H5Screate_simple(rank, nr, NULL);
	space = H5Dget_space(d);
	if (memory >= 0 && space >= 0 &&
		H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, nr, NULL) >= 0)
		r = H5Dwrite(d, type, memory, space, H5P_DEFAULT, data) < 0 ? -1 : 0;
	close_id(&memory);
	close_id(&space);
	return r;
}

static int read_rows(hid_t d, hid_t type, hsize_t from, hsize_t nr, void *data)
{
	hid_t memory = H5Screate_simple(1, &nr, NULL), space = H5Dget_space(d);
	int r = -1;

	errno = 0;
	if (memory >= 0 && space >= 0 &&
		H5Sselect_hyperslab(space, H5S_SELECT_SET, &from, NULL, &nr, NULL) >= 0)
		r = H5Dread(d, type, memory, space, H5P_DEFAULT, data) < 0 ? -1 : 0;
	close_id(&memory);
	close_id(&space);
	return r;
}

static hsize_t count_rows(hid_t d)
{
	hid_t space = H5Dget_space(d);
	hsize_t nr = 0;

	if (space < 0 || H5Sget_simple_extent_dims(space, &nr, NULL) != 1)
		nr = 0;
	close_id(&space);
	return nr;
}

/* ---- datasets ---- */

static hid_t make_dataset(const struct hdf5 *h, const struct hdf5_table *t, const char *name, hid_t type,
	hsize_t columns, hsize_t chunk_rows)
{
	const char *compression = h->job->compression;
	hsize_t now[2] = {0, columns}, most[2] = {H5S_UNLIMITED, columns}, chunk[2] = {chunk_rows, columns};
	int rank = columns ? 2 : 1;
	hid_t space = H5Screate_simple(rank, now, most), how = H5Pcreate(H5P_DATASET_CREATE), d = -1;
	bool packed = !compression || strcmp(compression, "none") != 0;

	if (space >= 0 && how >= 0 && H5Pset_chunk(how, rank, chunk) >= 0 &&
		(!packed || (H5Pset_shuffle(how) >= 0 && H5Pset_deflate(how, 4) >= 0)))
		d = H5Dcreate2(t->group, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
	close_id(&space);
	close_id(&how);
	return d;
}

/* Of columns that stand beside the table: as they are, or new. */
static int open_beside(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f)
{
	hid_t type = text_type(H5T_VARIABLE);
	bool well = type >= 0;

	for (size_t i = 0; well && i < f->nr_fields; i++) {
		struct hdf5_column *c = &t->column[i];

		if (c->width <= LONG_TEXT)
			continue;
		c->beside = H5Lexists(t->group, c->name, H5P_DEFAULT) > 0
			? H5Dopen2(t->group, c->name, H5P_DEFAULT)
			: make_dataset(h, t, c->name, type, 0, LONG_CHUNK);
		well = c->beside >= 0;
	}
	close_id(&type);
	return well ? 0 : trouble(h, "make a column of long texts");
}

static int make_table(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f)
{
	t->data = make_dataset(h, t, "table", t->type, 0, t->chunk);
	if (t->data < 0)
		return trouble(h, "make a table of so many columns");
	return put_texts(h, t->data, "units", f, word_unit);
}

static int node_make(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f)
{
	int r = make_table(h, t, f);

	if (r < 0)
		return r;
	t->valid = make_dataset(h, t, "valid", H5T_NATIVE_UINT8, f->nr_fields, t->chunk);
	if (t->valid < 0)
		return trouble(h, "make a table");
	r = put_texts(h, t->valid, "columns", f, word_name);
	return r < 0 ? r : open_beside(h, t, f);
}

/* A valid name of a link: a slash would divide it, a dot is the group itself. */
static void add_link_name(struct buf *out, const char *host)
{
	if (!host || !*host)
		buf_adds(out, host ? "%" : "%missing");
	else if (!strcmp(host, "."))
		buf_adds(out, "%2E");
	else
		for (; *host; host++)
			buf_addf(out, *host == '/' ? "%%2F" : *host == '%' ? "%%25" : "%c", *host);
}

/* ---- a table with more room ---- */

/* The library widens the texts, since the columns have the same names in both. */
static int copy_table(const struct hdf5 *h, struct hdf5_table *t, hid_t from, hsize_t nr)
{
	for (hsize_t at[2] = {0}, step[2] = {0}; at[0] < nr; at[0] += step[0]) {
		step[0] = MIN((hsize_t)t->chunk, nr - at[0]);
		if (read_rows(from, t->type, at[0], step[0], t->row) < 0 ||
			write_rows(t->data, t->type, 1, at, step, t->row) < 0)
			return trouble(h, "copy a table");
	}
	return 0;
}

/* A column of the table, each text of which ends within `width`, goes beside it. */
static int copy_column(
	const struct hdf5 *h, const struct hdf5_column *c, hid_t from, hsize_t nr, size_t width)
{
	hid_t text = text_type(width), record = H5Tcreate(H5T_COMPOUND, width),
	      type = text_type(H5T_VARIABLE);
	char *all = malloc(LONG_CHUNK * width);
	const char *each[LONG_CHUNK];
	int r = all ? 0 : -ENOMEM;

	if (r >= 0 && H5Tinsert(record, c->name, 0, text) < 0)
		r = trouble(h, "copy a column");
	for (hsize_t at[2] = {0}, step[2] = {0}; r >= 0 && at[0] < nr; at[0] += step[0]) {
		step[0] = MIN((hsize_t)LONG_CHUNK, nr - at[0]);
		for (size_t i = 0; i < step[0]; i++)
			each[i] = all + i * width;
		if (read_rows(from, record, at[0], step[0], all) < 0 ||
			write_rows(c->beside, type, 1, at, step, each) < 0)
			r = trouble(h, "copy a column");
	}
	close_id(&text);
	close_id(&record);
	close_id(&type);
	free(all);
	return r;
}

static int copy_all(
	const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f, hid_t from, hid_t type)
{
	hsize_t nr = count_rows(from);
	int r = copy_table(h, t, from, nr);

	for (size_t i = 0; r >= 0 && i < f->nr_fields; i++) {
		int member =
			t->column[i].width > LONG_TEXT ? H5Tget_member_index(type, t->column[i].name) : -1;
		hid_t had = member < 0 ? -1 : H5Tget_member_type(type, (unsigned)member);

		if (had >= 0)
			r = copy_column(h, &t->column[i], from, nr, H5Tget_size(had) + 1);
		close_id(&had);
	}
	return r;
}

/* The open node's table as it is laid out now. */
static int table_anew(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f, hid_t type)
{
	hid_t from = t->data;
	int r;

	t->data = -1;
	r = H5Ldelete(t->group, "table", H5P_DEFAULT) < 0 ? trouble(h, "copy a table") : make_table(h, t, f);
	if (r >= 0)
		r = copy_all(h, t, f, from, type);
	close_id(&from); /* it has no name any more: its place in the file is free */
	return r;
}

static int node_go_on(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f)
{
	hid_t type;
	int r;

	t->data = H5Dopen2(t->group, "table", H5P_DEFAULT);
	t->valid = H5Dopen2(t->group, "valid", H5P_DEFAULT);
	type = t->data < 0 ? -1 : H5Dget_type(t->data);
	if (t->valid < 0 || type < 0)
		r = trouble(h, "go on with a table");
	else
		r = open_beside(h, t, f);
	if (r >= 0 && H5Tequal(type, t->type) <= 0)
		r = table_anew(h, t, f, type);
	close_id(&type);
	t->nr_rows = r < 0 ? 0 : count_rows(t->data);
	return r;
}

/* ---- nodes ---- */

static int node_open_group(const struct hdf5 *h, struct hdf5_table *t, const char *host)
{
	struct buf name;
	int r;

	if (t->host == SIZE_MAX) {
		t->group = t->data_table_group;
		H5Iinc_ref(t->group);
		return 0;
	}
	buf_init(&name, 1 << 20);
	add_link_name(&name, host);
	if (!name.err)
		t->group = H5Lexists(t->data_table_group, (char *)name.data, H5P_DEFAULT) > 0
			? H5Gopen2(t->data_table_group, (char *)name.data, H5P_DEFAULT)
			: H5Gcreate2(t->data_table_group, (char *)name.data, H5P_DEFAULT, H5P_DEFAULT,
				  H5P_DEFAULT);
	r = name.err ? name.err : t->group < 0 ? trouble(h, "make a group") : 0;
	if (r >= 0 && host && !H5Aexists(t->group, "host"))
		r = put_text(h, t->group, "host", host);
	buf_release(&name);
	return r;
}

static int node_open(const struct hdf5 *h, struct hdf5_table *t, size_t table, uint32_t node)
{
	const struct data_table *f = &h->job->table[table];
	const char *host = NULL;
	int r;

	t->is_open = true;
	t->node = node;
	t->nr_rows = 0;
	if (t->host != SIZE_MAX && node != NO_HOST) {
		struct texts texts = export_texts(h->job, table + h->job->first_table, t->host);

		if (node >= texts.nr)
			return -EINVAL;
		host = texts.text[node];
	}
	r = node_open_group(h, t, host);
	if (r < 0)
		return r;
	return H5Lexists(t->group, "table", H5P_DEFAULT) > 0 ? node_go_on(h, t, f) : node_make(h, t, f);
}

/* ---- rows ---- */

static int flush_rows(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f)
{
	hsize_t from[2] = {t->nr_rows, 0}, nr[2] = {t->nr_held, f->nr_fields};

	if (!t->nr_held)
		return 0;
	if (write_rows(t->data, t->type, 1, from, nr, t->row) < 0 ||
		write_rows(t->valid, H5T_NATIVE_UINT8, 2, from, nr, t->known) < 0)
		return trouble(h, "write rows");
	t->nr_rows += t->nr_held;
	t->nr_held = 0;
	return 0;
}

static int node_close(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f)
{
	int r = t->is_open ? flush_rows(h, t, f) : 0;

	for (size_t i = 0; i < f->nr_fields; i++)
		close_id(&t->column[i].beside);
	close_id(&t->data);
	close_id(&t->valid);
	close_id(&t->group);
	t->is_open = false;
	return r;
}

static int put_cell(uint8_t *to, const struct field *f, const struct hdf5_column *c,
	const struct field_cells *cells, uint32_t row, const struct texts *texts)
{
	bool there = cell_valid(cells, row);
	int64_t integer = there && f->type <= FIELD_INT ? cells->integer[row] : INT64_MIN;
	double real = there && f->type == FIELD_REAL ? cells->real[row] : NAN;
	uint32_t number;

	switch (f->type) {
	case FIELD_TIME:
	case FIELD_INT:
		memcpy(to, &integer, sizeof(integer));
		return 0;
	case FIELD_REAL:
		memcpy(to, &real, sizeof(real));
		return 0;
	case FIELD_FLAG:
		*to = there ? cells->flag[row] != 0 : (uint8_t)-1;
		return 0;
	case FIELD_TEXT:
		memset(to, 0, c->width);
		if (!there)
			return 0;
		number = cells->text[row];
		if (number >= texts->nr || texts->len[number] > c->width)
			return -EINVAL;
		memcpy(to, texts->text[number], texts->len[number]);
		return 0;
	}
	return -EINVAL;
}

static int hold_column(const struct hdf5 *h, struct hdf5_table *t, const struct data_table_batch *b, size_t i,
	uint32_t from, uint32_t nr)
{
	const struct data_table *f = &h->job->table[b->table - h->job->first_table];
	const struct hdf5_column *c = &t->column[i];
	struct texts texts = {0};
	int r = 0;

	if (f->field[i].type == FIELD_TEXT)
		texts = export_texts(h->job, b->table, i);
	for (uint32_t k = 0; r >= 0 && k < nr; k++) {
		size_t row = t->nr_held + k;

		t->known[row * f->nr_fields + i] = cell_valid(&b->cell[i], from + k);
		if (c->width <= LONG_TEXT)
			r = put_cell(t->row + row * t->size + c->at, &f->field[i], c, &b->cell[i], from + k,
				&texts);
	}
	return r;
}

/* Long texts go out at once: they last no longer than the batch. */
static int write_beside(const struct hdf5 *h, struct hdf5_table *t, const struct data_table_batch *b,
	size_t i, uint32_t from, uint32_t nr)
{
	hsize_t at[2] = {t->nr_rows + t->nr_held, 0}, size[2] = {nr, 0};
	struct texts texts = export_texts(h->job, b->table, i);
	const char **text = calloc(nr, sizeof(*text));
	hid_t type = text_type(H5T_VARIABLE);
	int r = text ? 0 : -ENOMEM;

	for (uint32_t k = 0; text && k < nr; k++) {
		uint32_t number = cell_valid(&b->cell[i], from + k) ? b->cell[i].text[from + k] : NO_HOST;

		text[k] = number < texts.nr ? texts.text[number] : "";
	}
	if (r >= 0 && write_rows(t->column[i].beside, type, 1, at, size, text) < 0)
		r = trouble(h, "write long texts");
	close_id(&type);
	free(text);
	return r;
}

/* Rows of one node. */
static int add_rows(const struct hdf5 *h, struct hdf5_table *t, const struct data_table_batch *b,
	uint32_t from, uint32_t nr)
{
	const struct data_table *f = &h->job->table[b->table - h->job->first_table];
	int r = 0;

	while (r >= 0 && nr) {
		uint32_t step = MIN(nr, t->chunk - t->nr_held);

		for (size_t i = 0; r >= 0 && i < f->nr_fields; i++) {
			r = hold_column(h, t, b, i, from, step);
			if (r >= 0 && t->column[i].width > LONG_TEXT)
				r = write_beside(h, t, b, i, from, step);
		}
		t->nr_held += step;
		from += step;
		nr -= step;
		if (r >= 0 && t->nr_held == t->chunk)
			r = flush_rows(h, t, f);
	}
	return r;
}

/* ---- the exporter ---- */

static void hdf5_drop(void *e)
{
	struct hdf5 *h = e;

	for (size_t i = 0; h->table && i < h->job->nr_tables; i++) {
		struct hdf5_table *t = &h->table[i];

		t->nr_held = 0;
		if (t->column)
			node_close(h, t, &h->job->table[i]);
		for (size_t c = 0; t->column && c < h->job->table[i].nr_fields; c++)
			free(t->column[c].name);
		close_id(&t->type);
		close_id(&t->data_table_group);
		free(t->column);
		free(t->row);
		free(t->known);
	}
	free(h->table);
	if (h->file >= 0)
		H5Fclose(h->file);
	free(h);
}

static int table_init(struct hdf5_table *t, const struct data_table *f)
{
	int r = 0;

	t->data_table_group = t->type = t->group = t->data = t->valid = -1;
	t->host = SIZE_MAX;
	t->column = calloc(MAX(f->nr_fields, (size_t)1), sizeof(*t->column));
	if (!t->column)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr_fields; i++)
		t->column[i].beside = -1;
	for (size_t i = 0; r >= 0 && i < f->nr_fields; i++) {
		if (f->domain && f->field[i].type == FIELD_TEXT && !strcmp(f->field[i].name, "host"))
			t->host = i;
		r = name_column(t, i, f->field[i].name);
	}
	return r;
}

static int open_file(struct hdf5 *h)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);

	errno = 0;
	H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
	H5Pset_file_locking(
		access, false, true); /* no other program knows the file, and some disks cannot lock */
#endif
	h->file = H5Fcreate(h->job->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	close_id(&access);
	return h->file < 0 ? trouble(h, "make the file") : 0;
}

static int hdf5_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct hdf5 *h = calloc(1, sizeof(*h));
	int r;

	(void)reterr; /* is job->reterr */
	if (!h)
		return -ENOMEM;
	h->job = job;
	h->file = -1;
	H5dont_atexit();
	H5open();
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* it prints otherwise */
	h->table = calloc(MAX(job->nr_tables, (size_t)1), sizeof(*h->table));
	r = h->table ? 0 : -ENOMEM;
	for (size_t i = 0; h->table && i < job->nr_tables; i++)
		r = r < 0 ? r : table_init(&h->table[i], &job->table[i]);
	if (r >= 0)
		r = open_file(h);
	if (r >= 0)
		r = put_text(h, h->file, "made_by", "tacho " TACHO_VERSION);
	if (r < 0)
		hdf5_drop(h);
	else
		*ret = h;
	return r;
}

/* Is there room for all texts that are known so far? */
static bool make_room(const struct hdf5 *h, struct hdf5_table *t, const struct data_table *f, size_t table)
{
	bool fits = true;

	for (size_t i = 0; i < f->nr_fields; i++) {
		struct hdf5_column *c = &t->column[i];
		struct texts texts;

		if (f->field[i].type != FIELD_TEXT)
			continue;
		texts = export_texts(h->job, table, i);
		for (; c->nr_seen < texts.nr; c->nr_seen++) {
			size_t len = texts.len[c->nr_seen];

			for (; c->width < len; fits = false)
				c->width = MAX(2 * c->width, (size_t)WIDTH_LEAST);
		}
	}
	return fits;
}

static int table_ready(const struct hdf5 *h, size_t i)
{
	const struct data_table *f = &h->job->table[i];
	struct hdf5_table *t = &h->table[i];
	struct buf name;
	int r;

	if (t->data_table_group >= 0)
		return 0;
	buf_init(&name, 1 << 20);
	add_link_name(&name, f->name);
	if (!name.err && H5Lexists(h->file, (char *)name.data, H5P_DEFAULT) > 0)
		buf_addf(&name, "_%zu", i);
	if (!name.err)
		t->data_table_group =
			H5Gcreate2(h->file, (char *)name.data, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	r = name.err			  ? name.err
		: t->data_table_group < 0 ? trouble(h, "make a group")
					  : describe(h, t->data_table_group, f);
	buf_release(&name);
	return r < 0 ? r : lay_out(h, t, f);
}

static int table_fit(const struct hdf5 *h, size_t i)
{
	const struct data_table *f = &h->job->table[i];
	struct hdf5_table *t = &h->table[i];
	bool fits = make_room(h, t, f, i + h->job->first_table);
	int r = table_ready(h, i);

	if (r < 0 || fits || !t->size)
		return r;
	r = node_close(h, t, f);
	return r < 0 ? r : lay_out(h, t, f);
}

static int hdf5_add(void *e, const struct data_table_batch *b)
{
	struct hdf5 *h = e;
	size_t at = b->table - h->job->first_table;
	struct hdf5_table *t = &h->table[at];
	const struct field_cells *host = t->host == SIZE_MAX ? NULL : &b->cell[t->host];
	int r = table_fit(h, at);
	uint32_t row = 0;

	while (r >= 0 && t->size && row < b->nr_rows) {
		uint32_t node = host && cell_valid(host, row) ? host->text[row] : NO_HOST, end = row + 1;

		while (end < b->nr_rows &&
			(!host || (cell_valid(host, end) ? host->text[end] : NO_HOST) == node))
			end++;
		if (t->is_open && t->node != node)
			r = node_close(h, t, &h->job->table[at]);
		if (r >= 0 && !t->is_open)
			r = node_open(h, t, at, node);
		if (r >= 0)
			r = add_rows(h, t, b, row, end - row);
		row = end;
	}
	return r;
}

/* A table without rows is written, too. */
static int table_end(const struct hdf5 *h, size_t i)
{
	struct hdf5_table *t = &h->table[i];
	bool empty = t->data_table_group < 0;
	int r = table_ready(h, i);

	if (r >= 0 && empty && t->size) {
		t->host = SIZE_MAX;
		r = node_open(h, t, i, NO_HOST);
	}
	return r < 0 ? r : node_close(h, t, &h->job->table[i]);
}

static int hdf5_close(void *e)
{
	struct hdf5 *h = e;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < h->job->nr_tables; i++)
		r = table_end(h, i);
	errno = 0;
	if (r >= 0 && H5Fflush(h->file, H5F_SCOPE_GLOBAL) < 0)
		r = trouble(h, "write the file");
	hdf5_drop(h);
	return r;
}

const struct exporter exporter_hdf5 = {
	.name = "hdf5",
	.suffix = ".h5",
	.also = ".hdf5",
	.help = "HDF5: a group for each table and node, compressed, as pandas reads it",
	.compressions = "zlib,none",
	.shape = EXPORT_ONE_FILE,
	.by_path = true,
	.open = hdf5_open,
	.add = hdf5_add,
	.close = hdf5_close,
	.drop = hdf5_drop,
};
