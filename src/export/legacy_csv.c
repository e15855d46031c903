/* Writes what legacy_csv.h describes. Unknown values are written as the reader expects them, never as
 * zero. */
#include "export/legacy_csv.h"

#include "base/str.h"
#include "export/csv.h"
#include "export/outlet.h"
#include "export/text.h"
#include "query/process_table.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>

#define COLUMNS_MOST 16

struct legacy_csv_out {
	const struct legacy_csv_file *file;
	size_t table;		    /* index in the job */
	size_t field[COLUMNS_MOST]; /* of each column; NO_FIELD: it is not exported */
	size_t instance;
	struct outlet out;
	int fd;
};

struct legacy_csv {
	const struct export_job *job;
	struct process_table *processes; /* NULL: tools are not needed, or there are no groups */
	struct buf lines;
	size_t nr;
	struct legacy_csv_out out[];
};

/* ---- values ---- */

size_t legacy_csv_field(const struct data_table *f, const char *name)
{
	for (size_t i = 0; i < f->nr_fields; i++)
		if (!strcmp(f->field[i].name, name))
			return i;
	return NO_FIELD;
}

static void add_time(struct buf *out, enum legacy_csv_look look, int64_t ns)
{
	char text[EXPORT_TEXT];

	if (look == LEGACY_CSV_EPOCH) {
		int64_t s = ns / 1000000000 - (ns % 1000000000 < 0);

		buf_addf(out, "%lld.%09lld", (long long)s, (long long)(ns - s * 1000000000));
		return;
	}
	format_time(text, ns);
	if (look == LEGACY_CSV_SLASH) {
		text[4] = text[7] = '/';
		text[10] = ' ';
	}
	buf_add(out, text, strlen("2026-11-15T19:30:00.123"));
	if (look == LEGACY_CSV_ISO)
		buf_adds(out, "+00:00");
}

static void add_number(struct buf *out, const struct legacy_csv_column *c, const struct field *f, double v)
{
	v *= f->scale * c->factor;
	buf_addf(out, "%.*f", c->look == LEGACY_CSV_WHOLE ? 0 : c->digits,
		c->look == LEGACY_CSV_WHOLE ? floor(v) : v);
}

/* The last of its groups; NULL: it is in none. */
static const char *group_of(const struct legacy_csv *o, int64_t number)
{
	const struct process_row *row;
	const char *before;

	if (number < 0 || (uint64_t)number >= o->processes->nr)
		return NULL;
	row = &o->processes->row[number];
	if (!row->groups_len)
		return NULL;
	before = memrchr(row->groups, 0, row->groups_len);
	return before ? before + 1 : row->groups;
}

static void add_group(struct buf *out, const char *name)
{
	struct buf text;

	buf_init(&text, SIZE_MAX / 2);
	utf8_escape(&text, name, strlen(name));
	add_csv_field(out, (char *)text.data, text.len);
	out->err = out->err ? out->err : text.err;
	buf_release(&text);
}

static void add_cell(struct legacy_csv *o, const struct legacy_csv_out *to, const struct legacy_csv_column *c,
	size_t at, const struct data_table_batch *b, uint32_t row)
{
	const struct field *f = at == NO_FIELD ? NULL : &o->job->table[to->table].field[at];
	const struct field_cells *cell = f ? &b->cell[at] : NULL;

	if (!f || !cell_valid(cell, row)) {
		buf_adds(&o->lines, c->missing ? c->missing : to->file->missing);
		return;
	}
	switch (f->type) {
	case FIELD_TIME:
		add_time(&o->lines, c->look, cell->integer[row]);
		break;
	case FIELD_INT:
		if (c->look == LEGACY_CSV_TOOL)
			add_group(&o->lines, group_of(o, cell->integer[row]));
		else
			add_number(&o->lines, c, f, (double)cell->integer[row]);
		break;
	case FIELD_REAL:
		add_number(&o->lines, c, f, cell->real[row]);
		break;
	case FIELD_TEXT:
		if (c->look == LEGACY_CSV_NUMBER)
			buf_addf(&o->lines, "%u", cell->text[row]);
		else
			csv_add_cell(&o->lines, o->job, b, at, row);
		break;
	case FIELD_FLAG:
		buf_adds(&o->lines, cell->flag[row] ? "1" : "0");
		break;
	}
}

/* ---- lines ---- */

static bool is_wanted(const struct legacy_csv *o, const struct legacy_csv_out *to,
	const struct data_table_batch *b, uint32_t row)
{
	if (to->file->only) {
		const struct field_cells *cell = &b->cell[to->instance];

		if (!cell_valid(cell, row))
			return false;
		if (strcmp(export_texts(o->job, b->table, to->instance).text[cell->text[row]],
			    to->file->only) != 0)
			return false;
	}
	for (size_t i = 0; o->processes && to->file->column[i].name; i++) {
		const struct field_cells *cell;

		if (to->file->column[i].look != LEGACY_CSV_TOOL || to->field[i] == to->instance)
			continue;
		cell = &b->cell[to->field[i]];
		if (!cell_valid(cell, row) || !group_of(o, cell->integer[row]))
			return false;
	}
	return true;
}

static int hand_over(struct legacy_csv *o, struct legacy_csv_out *to)
{
	int r = o->lines.err ? o->lines.err : outlet_add(&to->out, o->lines.data, o->lines.len);

	buf_reset(&o->lines);
	return r;
}

static int add_heading(struct legacy_csv *o, struct legacy_csv_out *to)
{
	const struct legacy_csv_file *f = to->file;

	if (!f->heading)
		return 0;
	buf_adds(&o->lines, f->heading);
	for (size_t i = 0; f->column[i].name; i++)
		buf_addf(&o->lines, "%s%s", i ? f->between : "", f->column[i].name);
	buf_adds(&o->lines, f->end);
	if (f->second)
		buf_addf(&o->lines, "%s%s", f->second, f->end);
	return hand_over(o, to);
}

static int add_rows(struct legacy_csv *o, struct legacy_csv_out *to, const struct data_table_batch *b)
{
	const struct legacy_csv_file *f = to->file;
	int r = 0;

	for (uint32_t row = 0; row < b->nr_rows && r >= 0; row++) {
		if (!is_wanted(o, to, b, row))
			continue;
		for (size_t i = 0; f->column[i].name; i++) {
			buf_adds(&o->lines, i ? f->between : "");
			add_cell(o, to, &f->column[i], to->field[i], b, row);
		}
		buf_adds(&o->lines, f->end);
		if (o->lines.len >= OUTLET_BUFFER)
			r = hand_over(o, to);
	}
	return r < 0 ? r : hand_over(o, to);
}

int legacy_csv_add(void *e, const struct data_table_batch *b)
{
	struct legacy_csv *o = e;
	int r = 0;

	for (size_t i = 0; i < o->nr && r >= 0; i++)
		if (o->out[i].table == b->table - o->job->first_table)
			r = add_rows(o, &o->out[i], b);
	return r;
}

/* ---- files ---- */

int legacy_csv_create(const struct export_job *job, const char *name)
{
	_cleanup_(freep) char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/%s", job->path, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int out_open(struct legacy_csv *o, struct legacy_csv_out *to)
{
	int r = to->fd = legacy_csv_create(o->job, to->file->name);

	if (r >= 0)
		r = outlet_open(&to->out, to->fd);
	return r < 0 ? r : add_heading(o, to);
}

/* False: its table is not exported, or not by instance where it needs one of them. */
static bool out_bind(const struct legacy_csv *o, const struct legacy_csv_file *f, struct legacy_csv_out *to)
{
	const struct data_table *table = o->job->table;
	size_t at = 0;

	while (at < o->job->nr_tables && strcmp(table[at].name, f->table) != 0)
		at++;
	if (at == o->job->nr_tables)
		return false;
	*to = (struct legacy_csv_out){
		.file = f, .table = at, .fd = -1, .instance = legacy_csv_field(&table[at], "instance")};
	if (f->only && to->instance == NO_FIELD)
		return false;
	for (size_t i = 0; f->column[i].name; i++) {
		bool tool = f->column[i].look == LEGACY_CSV_TOOL;

		assert(i < COLUMNS_MOST);
		to->field[i] =
			tool && !o->processes ? NO_FIELD : legacy_csv_field(&table[at], f->column[i].field);
		if (tool && to->field[i] == NO_FIELD) /* with --per group that is a group's name */
			to->field[i] = to->instance;
	}
	return true;
}

static int read_groups(
	struct legacy_csv *o, const struct legacy_csv_file *file, size_t nr, struct buf *reterr)
{
	bool asked = false;
	int r;

	for (size_t i = 0; i < nr; i++)
		for (const struct legacy_csv_column *c = file[i].column; c->name; c++)
			asked |= c->look == LEGACY_CSV_TOOL;
	if (!asked)
		return 0;
	r = process_table_read(o->job->run, &o->processes, reterr);
	if (r >= 0 && !o->processes->has_groups)
		o->processes = process_table_free(o->processes);
	return r;
}

int legacy_csv_open(const struct legacy_csv_file *file, size_t nr_files, const struct export_job *job,
	void **ret, struct buf *reterr)
{
	struct legacy_csv *o = calloc(1, sizeof(*o) + nr_files * sizeof(o->out[0]));
	int r;

	if (!o)
		return -ENOMEM;
	o->job = job;
	buf_init(&o->lines, SIZE_MAX / 2);
	r = read_groups(o, file, nr_files, reterr);
	for (size_t i = 0; i < nr_files && r >= 0; i++)
		if (out_bind(o, &file[i], &o->out[o->nr]))
			r = out_open(o, &o->out[o->nr++]);
	if (r >= 0 && !o->nr) {
		buf_addf(reterr, "it is made of tables that are not there, or not chosen:");
		for (size_t i = 0; i < nr_files; i++)
			if (!i || strcmp(file[i].table, file[i - 1].table) != 0)
				buf_addf(reterr, "%s %s", i ? "," : "", file[i].table);
		r = -ENODATA;
	}
	if (r < 0)
		legacy_csv_drop(o);
	else
		*ret = o;
	return r;
}

int legacy_csv_close(void *e)
{
	struct legacy_csv *o = e;
	int r = 0;

	for (size_t i = 0; i < o->nr; i++) {
		int done = outlet_flush(&o->out[i].out);

		if (close(o->out[i].fd) < 0 && done >= 0)
			done = -errno;
		o->out[i].fd = -1;
		r = r < 0 ? r : done;
	}
	legacy_csv_drop(o);
	return r;
}

void legacy_csv_drop(void *e)
{
	struct legacy_csv *o = e;

	for (size_t i = 0; i < o->nr; i++) {
		outlet_release(&o->out[i].out);
		if (o->out[i].fd >= 0)
			close(o->out[i].fd);
	}
	process_table_free(o->processes);
	buf_release(&o->lines);
	free(o);
}
