/* CSV as RFC 4180 has it: lines end with CR LF, a text with a comma, a quotation mark or a line break stands
 * in quotation marks. One table a frame; the heading has the unit: "proc.mem.rss [bytes]".
 *
 * What is missing is an empty field, and an empty text is "": readers that care can tell them apart. */
#include "base/str.h"
#include "export/text.h"

#include <string.h>

struct csv {
	const struct export_job *job;
	struct buf line; /* of a batch */
};

static void add_csv_text(struct buf *out, const char *text, size_t len)
{
	if (len && !memchr(text, '"', len) && strcspn(text, ",\r\n") == len && text[0] != ' ' &&
		text[len - 1] != ' ') {
		buf_add(out, text, len);
		return;
	}
	buf_addch(out, '"');
	for (const char *end = text + len, *quote; text <= end; text = quote + 1) {
		quote = memchr(text, '"', (size_t)(end - text));
		if (!quote) {
			buf_add(out, text, (size_t)(end - text));
			break;
		}
		buf_add(out, text, (size_t)(quote - text));
		buf_adds(out, "\"\"");
	}
	buf_addch(out, '"');
}

static void add_heading(struct buf *out, const struct field *f)
{
	char unit[EXPORT_TEXT];
	const char *word = field_unit(f, unit);
	struct buf name;

	buf_init(&name, 4096);
	buf_adds(&name, f->name);
	if (*word)
		buf_addf(&name, " [%s]", word);
	add_csv_text(out, (char *)name.data, name.len);
	buf_release(&name);
}

static void add_cell(const struct csv *c, const struct frame_batch *b, size_t field, uint32_t row)
{
	const struct field_cells *cell = &b->cell[field];
	const struct field *f = &c->job->frame[b->frame - c->job->first_frame].field[field];
	struct buf *out = (struct buf *)&c->line;
	char text[EXPORT_TEXT];
	struct texts t;

	if (!cell_valid(cell, row))
		return;
	switch (f->type) {
	case FIELD_TIME:
		buf_add(out, text, format_time(text, cell->integer[row]));
		break;
	case FIELD_INT:
		buf_add(out, text, format_i64(text, cell->integer[row]));
		break;
	case FIELD_REAL:
		buf_add(out, text, format_real(text, cell->real[row]));
		break;
	case FIELD_TEXT:
		t = export_texts(c->job, b->frame, field);
		add_csv_text(out, t.text[cell->text[row]], t.len[cell->text[row]]);
		break;
	case FIELD_FLAG:
		buf_adds(out, cell->flag[row] ? "true" : "false");
		break;
	}
}

static int hand_over(struct csv *c)
{
	int r = c->line.err ? c->line.err : outlet_add(c->job->out, c->line.data, c->line.len);

	buf_reset(&c->line);
	return r;
}

static void csv_drop(void *e)
{
	struct csv *c = e;

	buf_release(&c->line);
	free(c);
}

static int csv_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct csv *c = calloc(1, sizeof(*c));
	int r;

	(void)reterr;
	if (!c)
		return -ENOMEM;
	c->job = job;
	buf_init(&c->line, SIZE_MAX / 2);
	for (size_t i = 0; i < job->frame->nr_fields; i++) {
		buf_adds(&c->line, i ? "," : "");
		add_heading(&c->line, &job->frame->field[i]);
	}
	buf_adds(&c->line, "\r\n");
	r = hand_over(c);
	if (r < 0)
		csv_drop(c);
	else
		*ret = c;
	return r;
}

static int csv_add(void *e, const struct frame_batch *b)
{
	struct csv *c = e;

	for (uint32_t row = 0; row < b->nr_rows; row++) {
		for (size_t i = 0; i < c->job->frame->nr_fields; i++) {
			if (i)
				buf_addch(&c->line, ',');
			add_cell(c, b, i, row);
		}
		buf_adds(&c->line, "\r\n");
	}
	return hand_over(c);
}

static int csv_close(void *e)
{
	csv_drop(e);
	return 0;
}

const struct exporter exporter_csv = {
	.name = "csv",
	.suffix = ".csv",
	.help = "a table for each domain, as RFC 4180 has it",
	.shape = EXPORT_FILE_EACH,
	.streams = true,
	.layouts = true,
	.open = csv_open,
	.add = csv_add,
	.close = csv_close,
	.drop = csv_drop,
};
