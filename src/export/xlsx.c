/* xlsx, for people with a spreadsheet: a sheet for each table, the summary first, headings that stay in sight
 * with units and filters, numbers formatted by what they are.
 *
 * Only what a spreadsheet cannot hold is written differently: integers beyond 2^53 and infinities are texts,
 * times are exact to the millisecond (`elapsed` is exact), texts are cut behind 32,767 characters and end
 * with "…", an empty text is an empty cell. Control characters are _xHHHH_, as the format has it. Rows beyond
 * 1,048,575 go on in the sheet "process (2)".
 *
 * The library keeps the rows of each sheet in a file without a name until the end (constant_memory); it does
 * not check whether writing there failed, so that is done here. */
#include "export/text.h"

#include "base/str.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <xlsxwriter.h>

#define ROWS_MOST 1048576u /* with the heading */
#define COLUMNS_MOST 16384u
#define TEXT_MOST 32767u
#define SHEET_NAME_MOST 31
#define EXACT (INT64_C(1) << 53)
#define DAYS_TO_1970 25569
#define WIDTH_MOST 50		  /* characters of a column */
#define ZIP_MOST ((off_t)3 << 30) /* bytes; for more there is another form of zip */

enum xlsx_format { FORMAT_GENERAL, FORMAT_HEADING, FORMAT_TIME, FORMAT_GROUPED, FORMAT_PERCENT, NR_FORMATS };

struct xlsx_sheet { /* of a table: the one that is being written */
	lxw_worksheet *sheet;
	unsigned number;
	uint32_t nr_rows;
	uint8_t *width; /* of the widest text in each column */
};

struct xlsx {
	const struct export_job *job;
	lxw_workbook *book;
	lxw_format *format[NR_FORMATS];
	struct xlsx_sheet *sheet;
	struct buf text;
	char *directory;
	off_t size; /* of the sheets that are whole */
};

static int xlsx_errno(const struct xlsx *x, lxw_error error)
{
	int err = errno;

	if (error == LXW_ERROR_MEMORY_MALLOC_FAILED)
		return -ENOMEM;
	if (err == ENOSPC || err == EFBIG || err == EDQUOT)
		return -err;
	if (!x->job->reterr->len)
		buf_addf(x->job->reterr, "libxlsxwriter says: %s", lxw_strerror(error));
	return -EIO;
}

/* ---- texts ---- */

static bool is_escape(const char *s) /* looks like one: _xHHHH_ */
{
	return s[0] == '_' && s[1] == 'x' && strspn(s + 2, "0123456789abcdefABCDEF") >= 4 && s[6] == '_';
}

static bool is_noncharacter(const unsigned char *s) /* U+FFFE, U+FFFF: not in XML */
{
	return s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe;
}

/* As a cell has it. Control characters are escaped, and what looks like that; the length counts UTF-16. */
static const char *cell_text(struct xlsx *x, const char *text)
{
	size_t nr = 0, cut = 0; /* where to cut if it is too long */

	buf_reset(&x->text);
	if (x->job->safe_cells && is_formula(text, strlen(text))) {
		buf_addch(&x->text, '\'');
		nr++;
	}
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t len = *s < 0x80 ? 1 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
		bool control = (*s < 0x20 && *s != '\t' && *s != '\n') || is_noncharacter(s);
		size_t width = control ? 7 : is_escape((const char *)s) ? 8 : len == 4 ? 2 : 1;

		if (nr < TEXT_MOST)
			cut = x->text.len;
		if (nr + width > TEXT_MOST) {
			x->text.len = cut;
			buf_adds(&x->text, "\xe2\x80\xa6");
			break;
		}
		if (control)
			buf_addf(&x->text, "_x%04X_", len == 3 ? 0xff00u | (s[2] + 0x40u) : *s);
		else if (width == 8)
			buf_adds(&x->text, "_x005F_");
		if (!control)
			buf_add(&x->text, s, strnlen((const char *)s, len));
		s += strnlen((const char *)s, len);
		nr += width;
	}
	return (char *)x->text.data;
}

/* ---- sheets ---- */

/* Names of sheets are short, and some characters mean something in formulas. */
static int sheet_name(struct xlsx *x, const char *wish, unsigned number, char out[static SHEET_NAME_MOST + 1])
{
	const size_t size = SHEET_NAME_MOST + 1;
	size_t len = 0;

	for (; *wish && len < 20; wish++)
		out[len++] = *wish > 0x1f && *wish < 0x7f && !strchr("[]:*?/\\'", *wish) ? *wish : '_';
	out[len] = 0;
	for (unsigned clash = strcasecmp(out, "history") ? 1 : 2; clash < 1000; clash++) {
		int n = clash > 1 ? snprintf(out + len, size - len, "_%u", clash) : 0;

		if (number > 1)
			snprintf(out + len + n, size - len - (size_t)n, " (%u)", number);
		if (workbook_validate_sheet_name(x->book, out) == LXW_NO_ERROR)
			return 0;
	}
	return -EEXIST;
}

static enum xlsx_format format_of(const struct field *f)
{
	if (f->type == FIELD_TIME)
		return FORMAT_TIME;
	if (f->type == FIELD_INT && (f->is_metric || f->unit == UNIT_BYTES) && f->unit != UNIT_CODE)
		return FORMAT_GROUPED;
	return f->type == FIELD_REAL && f->unit == UNIT_RATIO && f->scale == 1 ? FORMAT_PERCENT
									       : FORMAT_GENERAL;
}

static int add_heading(
	struct xlsx *x, lxw_worksheet *sheet, lxw_col_t column, const struct field *f, uint8_t *width)
{
	char unit[EXPORT_TEXT];
	const char *word = field_unit(f, unit), *text;
	size_t least = f->type == FIELD_TIME ? 23 : 12;
	struct buf name;
	lxw_error error;

	buf_init(&name, 1 << 16);
	buf_addf(&name, *word ? "%s [%s]" : "%s", f->name, word);
	text = cell_text(x, (char *)name.data);
	error = worksheet_write_string(sheet, 0, column, text, x->format[FORMAT_HEADING]);
	/* With room for the arrow of the filter. */
	*width = (uint8_t)MIN(MAX(least, name.len + 4), (size_t)WIDTH_MOST);
	buf_release(&name);
	return error == LXW_NO_ERROR ? 0 : xlsx_errno(x, error);
}

static int sheet_begin(struct xlsx *x, size_t i)
{
	const struct data_table *f = &x->job->table[i];
	struct xlsx_sheet *s = &x->sheet[i];
	char name[SHEET_NAME_MOST + 1];
	int r = sheet_name(x, f->name, ++s->number, name);

	if (!s->width)
		s->width = calloc(MAX(f->nr_fields, (size_t)1), sizeof(*s->width));
	if (!s->width)
		return -ENOMEM;
	errno = 0;
	s->nr_rows = 1;
	s->sheet = r < 0 ? NULL : workbook_add_worksheet(x->book, name);
	if (!s->sheet)
		return r < 0 ? r : xlsx_errno(x, LXW_ERROR_CREATING_TMPFILE);
	if (f->nr_fields > COLUMNS_MOST) {
		buf_addf(x->job->reterr, "%s has %zu columns, a spreadsheet has %u at most", f->name,
			f->nr_fields, COLUMNS_MOST);
		return -E2BIG;
	}
	for (size_t c = 0; r >= 0 && c < f->nr_fields; c++)
		r = add_heading(x, s->sheet, (lxw_col_t)c, &f->field[c], &s->width[c]);
	worksheet_freeze_panes(s->sheet, 1, 0);
	return r;
}

static int sheet_end(struct xlsx *x, size_t i)
{
	struct xlsx_sheet *s = &x->sheet[i];
	size_t nr = x->job->table[i].nr_fields;
	off_t size;

	if (nr)
		worksheet_autofilter(s->sheet, 0, 0, s->nr_rows - 1, (lxw_col_t)(nr - 1));
	for (size_t c = 0; c < nr; c++)
		worksheet_set_column(s->sheet, (lxw_col_t)c, (lxw_col_t)c, s->width[c], NULL);
	errno = 0;
	if (fflush(s->sheet->file) != 0 || ferror(s->sheet->file))
		return xlsx_errno(x, LXW_ERROR_CREATING_TMPFILE);
	size = ftello(s->sheet->file);
	x->size += size;
	/* Compressed it is a third at most. Not always, since some programs cannot read it. */
	if (size > ZIP_MOST || x->size / 3 > ZIP_MOST)
		x->book->options.use_zip64 = true;
	return 0;
}

/* ---- cells ---- */

static lxw_error write_text(
	struct xlsx *x, lxw_worksheet *s, lxw_row_t row, lxw_col_t column, const char *text)
{
	return *text ? worksheet_write_string(s, row, column, cell_text(x, text), NULL) : LXW_NO_ERROR;
}

static lxw_error write_integer(
	struct xlsx *x, lxw_worksheet *s, lxw_row_t row, lxw_col_t column, int64_t v, lxw_format *format)
{
	char text[EXPORT_TEXT];

	if (v >= -EXACT && v <= EXACT)
		return worksheet_write_number(s, row, column, (double)v, format);
	text[format_i64(text, v)] = 0;
	return write_text(x, s, row, column, text);
}

/* Days since the end of 1899; spreadsheets have no times before 1900. */
static lxw_error write_time(struct xlsx *x, lxw_worksheet *s, lxw_row_t row, lxw_col_t column, int64_t ns)
{
	const int64_t day = INT64_C(86400) * NSEC_PER_SEC;
	char text[EXPORT_TEXT];

	if (ns / day > 1 - DAYS_TO_1970)
		return worksheet_write_number(s, row, column,
			(double)(ns / day + DAYS_TO_1970) + (double)(ns % day) / (double)day,
			x->format[FORMAT_TIME]);
	text[format_time(text, ns)] = 0;
	return write_text(x, s, row, column, text);
}

static lxw_error write_cell(
	struct xlsx *x, lxw_row_t row, const struct data_table_batch *b, size_t i, uint32_t at)
{
	size_t table = b->table - x->job->first_table;
	const struct field *f = &x->job->table[table].field[i];
	const struct field_cells *c = &b->cell[i];
	lxw_worksheet *s = x->sheet[table].sheet;
	lxw_col_t column = (lxw_col_t)i;
	lxw_format *format = x->format[format_of(f)];
	uint8_t *width = &x->sheet[table].width[i];
	struct texts texts;

	if (!cell_valid(c, at))
		return LXW_NO_ERROR;
	switch (f->type) {
	case FIELD_TIME:
		return write_time(x, s, row, column, c->integer[at]);
	case FIELD_INT:
		return write_integer(x, s, row, column, c->integer[at], format);
	case FIELD_REAL:
		/* In a column of many units, as in the summary: counts and bytes. */
		if (!f->is_metric && fabs(c->real[at]) >= 10000 && c->real[at] == trunc(c->real[at]))
			format = x->format[FORMAT_GROUPED];
		if (isfinite(c->real[at]))
			return worksheet_write_number(s, row, column, c->real[at], format);
		return isnan(c->real[at]) ? LXW_NO_ERROR
					  : write_text(x, s, row, column, c->real[at] > 0 ? "inf" : "-inf");
	case FIELD_FLAG:
		return worksheet_write_boolean(s, row, column, c->flag[at], NULL);
	case FIELD_TEXT:
		texts = export_texts(x->job, b->table, i);
		if (c->text[at] >= texts.nr)
			return LXW_ERROR_PARAMETER_VALIDATION;
		*width = (uint8_t)MAX(*width, MIN(texts.len[c->text[at]] + 2, (uint32_t)WIDTH_MOST));
		return write_text(x, s, row, column, texts.text[c->text[at]]);
	}
	return LXW_ERROR_PARAMETER_VALIDATION;
}

/* ---- the exporter ---- */

static void xlsx_drop(void *e)
{
	struct xlsx *x = e;

	if (x->book)
		lxw_workbook_free(x->book);
	for (size_t i = 0; x->sheet && i < x->job->nr_tables; i++)
		free(x->sheet[i].width);
	free(x->sheet);
	free(x->directory);
	buf_release(&x->text);
	free(x);
}

static int add_formats(struct xlsx *x)
{
	static const char *const number[NR_FORMATS] = {[FORMAT_TIME] = "yyyy-mm-dd hh:mm:ss.000",
		[FORMAT_GROUPED] = "#,##0",
		[FORMAT_PERCENT] = "0.0%"};

	for (size_t i = FORMAT_HEADING; i < NR_FORMATS; i++) {
		x->format[i] = workbook_add_format(x->book);
		if (!x->format[i])
			return -ENOMEM;
		if (number[i])
			format_set_num_format(x->format[i], number[i]);
	}
	format_set_bold(x->format[FORMAT_HEADING]);
	format_set_bottom(x->format[FORMAT_HEADING], LXW_BORDER_THIN);
	return 0;
}

static int begin(struct xlsx *x)
{
	lxw_workbook_options options = {.constant_memory = true};
	int r;

	/* Beside the file, where there should be room for it. */
	x->directory = strdup(x->job->path);
	if (!x->directory)
		return -ENOMEM;
	*(strrchr(x->directory, '/') ? strrchr(x->directory, '/') : x->directory) = 0;
	options.tmpdir = *x->directory ? x->directory : NULL;
	x->book = workbook_new_opt(x->job->path, &options);
	if (!x->book)
		return -ENOMEM;
	r = add_formats(x);
	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; r >= 0 && i < x->job->nr_tables; i++)
			if (!strcmp(x->job->table[i].name, "summary") == !pass)
				r = sheet_begin(x, i);
	return r;
}

static int xlsx_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct xlsx *x = calloc(1, sizeof(*x));
	int r;

	(void)reterr; /* is job->reterr */
	if (!x)
		return -ENOMEM;
	x->job = job;
	buf_init(&x->text, 1 << 20);
	x->sheet = calloc(MAX(job->nr_tables, (size_t)1), sizeof(*x->sheet));
	r = x->sheet ? begin(x) : -ENOMEM;
	if (r < 0)
		xlsx_drop(x);
	else
		*ret = x;
	return r;
}

static int written_well(const struct xlsx *x, const struct xlsx_sheet *s)
{
	errno = 0;
	if (fflush(s->sheet->file) != 0 || ferror(s->sheet->file))
		return xlsx_errno(x, LXW_ERROR_CREATING_TMPFILE);
	return 0;
}

static int xlsx_add(void *e, const struct data_table_batch *b)
{
	struct xlsx *x = e;
	size_t table = b->table - x->job->first_table, nr = x->job->table[table].nr_fields;
	struct xlsx_sheet *s = &x->sheet[table];
	int r = 0;

	for (uint32_t row = 0; r >= 0 && row < b->nr_rows; row++) {
		if (s->nr_rows == ROWS_MOST) {
			r = sheet_end(x, table);
			if (r >= 0)
				r = sheet_begin(x, table);
		}
		for (size_t i = 0; r >= 0 && i < nr; i++) {
			lxw_error error = write_cell(x, s->nr_rows, b, i, row);

			if (error != LXW_NO_ERROR)
				r = xlsx_errno(x, error);
		}
		s->nr_rows++;
	}
	return r < 0 ? r : written_well(x, s);
}

/* The library prints its errors itself; here the caller reports them. */
static lxw_error close_quietly(lxw_workbook *book)
{
	int had = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC),
	    err;
	lxw_error error;

	if (had >= 0 && nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
	errno = 0;
	error = workbook_close(book); /* frees it, well or not */
	err = errno;
	if (had >= 0)
		dup2(had, STDERR_FILENO);
	if (had >= 0)
		close(had);
	if (nowhere >= 0)
		close(nowhere);
	errno = err;
	return error;
}

static int xlsx_close(void *e)
{
	struct xlsx *x = e;
	lxw_error error;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < x->job->nr_tables; i++) {
		r = sheet_end(x, i);
	}
	if (r >= 0) {
		error = close_quietly(x->book);
		x->book = NULL;
		r = error == LXW_NO_ERROR ? 0 : xlsx_errno(x, error);
	}
	xlsx_drop(x);
	return r;
}

const struct exporter exporter_xlsx = {
	.name = "xlsx",
	.suffix = ".xlsx",
	.help = "a spreadsheet: the summary and the tables",
	.shape = EXPORT_ONE_FILE,
	.by_path = true,
	.is_cells = true,
	.open = xlsx_open,
	.add = xlsx_add,
	.close = xlsx_close,
	.drop = xlsx_drop,
};
