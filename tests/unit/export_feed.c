/* Pushes a table through an exporter, batch by batch as a file says: for tests in Python that make up tables
 *of any size (tests/e2e/feed.py writes such files).
 *
 *	export_feed FORMAT INPUT OUTPUT [COMPRESSION [TABLE]]
 *
 * With its name the table is one that is not of time, such as "events".
 *
 * All is little-endian: u32 fields; of each u8 type, u16 length and name, and of texts u32 how many, each u32
 * length and text. Then batches until the end: u32 rows; of each field u8 whether some are missing, then the
 * bits of those that are there, and values: 8 bytes, 4 for the number of a text, 1 for a flag. Each batch is
 * in memory of its own and of its exact size, and texts are given out only when they have occurred, so that a
 * sanitizer sees who looks further than he may. */
#include "export/outlet.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MOST 512

static struct {
	struct field field[FIELDS_MOST];
	struct data_table table;
	const char **text[FIELDS_MOST];
	uint32_t *len[FIELDS_MOST];
	uint32_t nr_texts[FIELDS_MOST], given[FIELDS_MOST];
	struct field_cells cell[FIELDS_MOST];
} in;

static FILE *input;

static void die(const char *what)
{
	fprintf(stderr, "export_feed: %s\n", what);
	exit(2);
}

/* NULL for nothing, so that reading it is seen. */
static void *take(size_t len)
{
	uint8_t *p = len ? malloc(len) : NULL;

	if (len && (!p || fread(p, len, 1, input) != 1))
		die("the input is too short");
	return p;
}

static uint64_t take_number(size_t size)
{
	uint64_t v = 0;

	if (fread(&v, size, 1, input) != 1)
		die("the input is too short");
	return v;
}

static char *take_text(size_t len)
{
	char *text = calloc(1, len + 1);

	if (!text || (len && fread(text, len, 1, input) != 1))
		die("the input is too short");
	return text;
}

static void take_fields(void)
{
	in.table = (struct data_table){.name = "fed", .help = "Fed.", .domain = "fed", .field = in.field};
	in.table.nr_fields = take_number(4);
	if (in.table.nr_fields > FIELDS_MOST)
		die("too many fields");
	for (size_t i = 0; i < in.table.nr_fields; i++) {
		struct field *f = &in.field[i];

		f->type = (enum field_type)take_number(1);
		f->name = take_text(take_number(2));
		f->help = "A field.";
		f->scale = 1;
		if (f->type != FIELD_TEXT)
			continue;
		in.nr_texts[i] = (uint32_t)take_number(4);
		in.text[i] = calloc(in.nr_texts[i] + 1, sizeof(*in.text[i]));
		in.len[i] = calloc(in.nr_texts[i] + 1, sizeof(*in.len[i]));
		for (uint32_t k = 0; k < in.nr_texts[i]; k++) {
			in.len[i][k] = (uint32_t)take_number(4);
			in.text[i][k] = take_text(in.len[i][k]);
		}
	}
}

static struct texts texts(const void *arg, size_t table, size_t field)
{
	(void)arg, (void)table;
	return (struct texts){.text = in.text[field], .len = in.len[field], .nr = in.given[field]};
}

static void take_cells(size_t field, uint32_t nr_rows)
{
	struct field_cells *c = &in.cell[field];
	enum field_type type = in.field[field].type;

	*c = (struct field_cells){0};
	if (take_number(1))
		c->valid = take((nr_rows + 7) / 8);
	c->integer = take(nr_rows * (type == FIELD_TEXT ? 4ul : type == FIELD_FLAG ? 1ul : 8ul));
	for (uint32_t row = 0; row < nr_rows; row++) {
		if (!cell_valid(c, row))
			c->nr_missing++;
		else if (type == FIELD_TEXT)
			in.given[field] = MAX(in.given[field], c->text[row] + 1);
	}
}

/* False at the end. */
static bool take_batch(struct data_table_batch *b)
{
	uint32_t nr_rows;

	if (fread(&nr_rows, sizeof(nr_rows), 1, input) != 1)
		return false;
	if (!nr_rows || nr_rows > DATA_TABLE_ROWS_MOST)
		die("a batch has 1 to 8192 rows");
	for (size_t i = 0; i < in.table.nr_fields; i++)
		take_cells(i, nr_rows);
	*b = (struct data_table_batch){.nr_rows = nr_rows, .cell = in.cell};
	return true;
}

static void drop_batch(void)
{
	for (size_t i = 0; i < in.table.nr_fields; i++) {
		free((void *)in.cell[i].valid);
		free((void *)in.cell[i].integer);
	}
}

static void drop_fields(void)
{
	for (size_t i = 0; i < in.table.nr_fields; i++) {
		free((void *)in.field[i].name);
		for (uint32_t k = 0; k < in.nr_texts[i]; k++)
			free((void *)in.text[i][k]);
		free(in.text[i]);
		free(in.len[i]);
	}
}

static int feed(const struct exporter *x, const struct export_job *job)
{
	struct data_table_batch b;
	void *e;
	int r = x->open(job, &e, job->reterr);

	if (r < 0)
		return r;
	while (r >= 0 && take_batch(&b)) {
		r = x->add(e, &b);
		drop_batch();
	}
	if (r >= 0)
		return x->close(e);
	x->drop(e);
	return r;
}

int main(int argc, char **argv)
{
	const struct exporter *x = argc > 3 ? exporter_find(argv[1]) : NULL;
	struct outlet out;
	struct buf err;
	int fd, r;

	if (x && x->missing)
		return 77; /* not in this build */
	if (!x || x->shape == EXPORT_OWN_FILES)
		die("export_feed FORMAT INPUT OUTPUT [COMPRESSION [TABLE]]");
	input = fopen(argv[2], "re");
	fd = open(x->by_path ? "/dev/null" : argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (!input || fd < 0 || outlet_open(&out, fd) < 0)
		die("cannot open the files");
	buf_init(&err, 1 << 16);
	take_fields();
	if (argc > 5)
		in.table = (struct data_table){
			argv[5], "Fed.", .field = in.field, .nr_fields = in.table.nr_fields};
	r = feed(x,
		&(struct export_job){.table = &in.table,
			.nr_tables = 1,
			.out = x->by_path ? NULL : &out,
			.path = argv[3],
			.texts = texts,
			.compression = argc > 4 ? argv[4] : NULL,
			.summary_json = "{}",
			.reterr = &err});
	if (r >= 0)
		r = outlet_flush(&out);
	if (r < 0)
		fprintf(stderr, "export_feed: %s %s\n", strerror(-r), err.len ? (char *)err.data : "");
	drop_fields();
	buf_release(&err);
	outlet_release(&out);
	close(fd);
	fclose(input);
	return r < 0;
}
