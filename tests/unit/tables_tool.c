/* A run as tables, for people and for measuring.
 *
 *	tables_tool [-r] [-n|-g|-p] [-e SECONDS] [-d DOMAIN]… [-m METRIC]… count|rows|fields RUN…
 *
 * count: rows and cells of each table; fields: their columns; rows: every row as a line of JSON. */
#include "base/json.h"
#include "base/str.h"
#include "query/tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_cell(struct json *j, const struct tables *f, const struct data_table_batch *b, size_t i,
	const struct field *field, uint32_t row)
{
	const struct field_cells *c = &b->cell[i];
	struct texts texts = tables_texts(f, b->table, i);

	if (c->valid && !(c->valid[row / 8] >> (row % 8) & 1))
		json_null(j, field->name);
	else if (field->type == FIELD_REAL)
		json_num(j, field->name, c->real[row]);
	else if (field->type == FIELD_TEXT)
		json_bytes(j, field->name, texts.text[c->text[row]], texts.len[c->text[row]]);
	else if (field->type == FIELD_FLAG)
		json_bool(j, field->name, c->flag[row]);
	else
		json_int(j, field->name, c->integer[row]);
}

static void print_rows(
	const struct tables *f, const struct data_table *table, const struct data_table_batch *b)
{
	struct buf out;
	struct json j;

	buf_init(&out, 1 << 28);
	for (uint32_t row = 0; row < b->nr_rows; row++) {
		json_init(&j, &out, false);
		json_object(&j, NULL);
		json_str(&j, "frame", table->name);
		for (size_t i = 0; i < table->nr_fields; i++)
			add_cell(&j, f, b, i, &table->field[i], row);
		json_end_object(&j);
		buf_addch(&out, '\n');
		fwrite(out.data, 1, out.len, stdout);
		buf_reset(&out);
	}
	buf_release(&out);
}

static void print_fields(const struct data_table *table, size_t nr)
{
	static const char *const type[] = {"time", "int", "real", "text", "flag"};

	for (size_t i = 0; i < nr; i++)
		for (size_t j = 0; j < table[i].nr_fields; j++) {
			const struct field *c = &table[i].field[j];

			printf("%-12s %-5s %-8s%s %-5s %-8s %g %s\n", table[i].name, type[c->type],
				unit_name(c->unit), c->per_second ? "/s" : "  ",
				c->resample ? c->resample : "-", c->is_metric ? kind_name(c->kind) : "key",
				c->scale, c->name);
		}
}

static int walk(const struct run *run, const struct tables_options *o, const char *verb)
{
	struct tables *f = NULL;
	const struct data_table *table;
	struct data_table_batch b;
	uint64_t *rows, cells = 0, missing = 0;
	struct buf why;
	size_t nr;
	int r;

	buf_init(&why, 4096);
	r = tables_open(run, o, &f, &why);
	if (r < 0) {
		fprintf(stderr, "%s\n", (char *)why.data);
		buf_release(&why);
		return 1;
	}
	nr = tables_list(f, &table);
	rows = calloc(nr + 1, sizeof(*rows));
	if (!strcmp(verb, "fields"))
		print_fields(table, nr);
	while (strcmp(verb, "fields") != 0 && (r = tables_next(f, &b)) > 0) {
		rows[b.table] += b.nr_rows;
		cells += b.nr_rows * table[b.table].nr_fields;
		for (size_t i = 0; i < table[b.table].nr_fields; i++)
			missing += b.cell[i].nr_missing;
		if (!strcmp(verb, "rows"))
			print_rows(f, &table[b.table], &b);
	}
	for (size_t i = 0; i < nr && !strcmp(verb, "count"); i++)
		printf("%-12s %8llu rows of %zu\n", table[i].name, (unsigned long long)rows[i],
			table[i].nr_fields);
	if (!strcmp(verb, "count"))
		printf("%llu cells, %llu missing\n", (unsigned long long)cells, (unsigned long long)missing);
	free(rows);
	tables_close(f);
	buf_release(&why);
	if (r < 0)
		fprintf(stderr, "cannot read on: %s\n", strerror(-r));
	return r < 0;
}

int main(int argc, char **argv)
{
	const char *domain[16], *metric[16];
	struct tables_options o = {.from_s = NAN, .to_s = NAN, .domain = domain, .metric = metric};
	struct run *run = NULL;
	double every = 0;
	struct buf why;
	int c, r;

	while ((c = getopt(argc, argv, "rngpe:d:m:f:t:")) != -1) {
		o.raw |= c == 'r';
		o.per = c == 'n' ? TABLES_NODE : c == 'g' ? TABLES_GROUP : c == 'p' ? TABLES_PROCESS : o.per;
		if (c == 'e' && parse_decimal(optarg, &every))
			o.every_ns = (int64_t)(every * 1e9);
		if (c == 'd' && o.nr_domains < 16)
			domain[o.nr_domains++] = optarg;
		if (c == 'm' && o.nr_metrics < 16)
			metric[o.nr_metrics++] = optarg;
		if (c == 'f')
			parse_decimal(optarg, &o.from_s);
		if (c == 't')
			parse_decimal(optarg, &o.to_s);
		if (c == '?')
			return 2;
	}
	if (argc < optind + 2)
		return 2;
	buf_init(&why, 4096);
	r = run_open((const char *const *)argv + optind + 1, (size_t)(argc - optind - 1), &run, &why);
	if (r < 0)
		fprintf(stderr, "%s\n", (char *)why.data);
	buf_release(&why);
	r = r < 0 ? 1 : walk(run, &o, argv[optind]);
	run_close(run);
	return r;
}
