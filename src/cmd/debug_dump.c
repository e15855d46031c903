/* `tacho debug dump FILE`: every record as the reader delivers it, one line of JSON each.
 *
 * tests/decoder.py, which knows nothing of this program, prints the same lines; the tests compare them. Rows
 * of a tick are sorted, since their order has no meaning. */
#include "cmd/debug.h"

#include "base/json.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "store/store.h"

#include <string.h>

#define LINES_AT_ONCE ((size_t)1 << 20)

static const char *const type_name[] = {
	[STORE_META] = "meta",
	[STORE_SCHEMA] = "schema",
	[STORE_INSTANCE] = "instance",
	[STORE_GONE] = "gone",
	[STORE_EVENT] = "event",
	[STORE_TICK] = "tick",
	[STORE_LOST] = "lost",
	[STORE_SUMMARY] = "summary",
};

/* Dumps are compared with stored ones, so they keep the escapes of the first version: in a text that is not
 * UTF-8 all special characters are escaped. */
static void dump_bytes(struct json *j, const void *value, size_t len)
{
	struct buf text;

	for (const uint8_t *p = value, *end = p + len; p < end; p += utf8_length(p, end))
		if (!utf8_length(p, end)) {
			buf_init(&text, len * 4 + 1);
			escape_bytes(&text, value, len);
			json_text(j, NULL, text.data, text.len);
			buf_release(&text);
			return;
		}
	json_text(j, NULL, value, len);
}

static void add_pairs(struct json *j, const struct pairs *p)
{
	json_array(j, "pairs");
	for (uint32_t i = 0; i < p->nr; i++) {
		json_array(j, NULL);
		json_str(j, NULL, p->pair[i].key);
		dump_bytes(j, p->pair[i].value, p->pair[i].len);
		json_end_array(j);
	}
	json_end_array(j);
}

static void add_metric(struct json *j, const struct schema_metric *m)
{
	json_object(j, NULL);
	json_str(j, "name", m->name);
	json_str(j, "help", m->help);
	json_str(j, "panel", m->panel);
	json_str(j, "kind", kind_name(m->kind));
	json_str(j, "fold", fold_name(m->fold));
	json_str(j, "unit", unit_name(m->unit));
	json_str(j, "tier", tier_name(m->tier));
	json_num(j, "scale", m->scale);
	json_str(j, "availability", availability_name(m->availability));
	json_str(j, "why", m->why);
	json_end_object(j);
}

static void add_schema(struct json *j, const struct schema *s)
{
	json_array(j, "sets");
	for (uint32_t i = 0; i < s->nr_sets; i++) {
		json_object(j, NULL);
		json_str(j, "name", s->set[i].name);
		json_str(j, "summary", s->set[i].summary);
		json_str(j, "domain", s->set[i].domain_name);
		if (s->set[i].named_later)
			json_str(j, "names", "later");
		json_array(j, "metrics");
		for (uint32_t k = 0; k < s->set[i].nr_metrics + s->set[i].nr_spare; k++)
			add_metric(j, &s->set[i].metric[k]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void add_place(struct json *j, const struct store_record *rec)
{
	json_int(j, "time", rec->time_ns);
	json_uint(j, "set", rec->set);
	if (rec->row == STORE_NO_ROW)
		json_null(j, "row");
	else
		json_uint(j, "row", rec->row);
	json_uint(j, "id", rec->id);
	if (rec->type == STORE_INSTANCE)
		json_bool(j, "again", rec->again);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void add_rows(struct json *j, uint32_t set, struct table *t)
{
	qsort(t->touched, t->nr_touched, sizeof(*t->touched), by_number);
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t row = t->touched[i];
		const int64_t *cell = table_row(t, row);

		json_object(j, NULL);
		json_uint(j, "set", set);
		json_uint(j, "row", row);
		json_uint(j, "id", t->id[row]);
		json_uint(j, "valid", t->valid[row]);
		json_array(j, "cells");
		for (uint32_t c = 0; c < t->nr_cols; c++)
			json_int(j, NULL, cell[c]);
		json_end_array(j);
		json_end_object(j);
	}
}

/* Sets that were read later than the tick's time, where there are any: set and ns. */
static void add_delays(struct json *j, const struct schema *schema, struct store_reader *r)
{
	bool any = false;

	for (uint32_t i = 0; schema && i < schema->nr_sets; i++) {
		int64_t delay = store_reader_table(r, i)->delay_ns;

		if (!delay)
			continue;
		if (!any)
			json_array(j, "later");
		any = true;
		json_array(j, NULL);
		json_uint(j, NULL, i);
		json_int(j, NULL, delay);
		json_end_array(j);
	}
	if (any)
		json_end_array(j);
}

static void add_tick(struct json *j, const struct store_record *rec, struct store_reader *r)
{
	const struct schema *schema = store_reader_schema(r);

	json_int(j, "time", rec->time_ns);
	json_uint(j, "number", rec->tick);
	add_delays(j, schema, r);
	if (rec->at)
		json_uint(j, "at", rec->at);
	json_array(j, "rows");
	for (uint32_t i = 0; schema && i < schema->nr_sets; i++)
		add_rows(j, i, store_reader_table(r, i));
	json_end_array(j);
}

static void add_record(struct buf *out, const struct store_record *rec, struct store_reader *r)
{
	struct json j;

	json_init(&j, out, false);
	json_object(&j, NULL);
	json_str(&j, "type", type_name[rec->type]);
	if (rec->type == STORE_INSTANCE || rec->type == STORE_GONE)
		add_place(&j, rec);
	if (rec->type == STORE_EVENT) {
		json_int(&j, "time", rec->time_ns);
		json_str(&j, "kind", rec->kind);
	}
	if (rec->type == STORE_SCHEMA)
		add_schema(&j, store_reader_schema(r));
	if (rec->type == STORE_TICK)
		add_tick(&j, rec, r);
	if (rec->type == STORE_LOST)
		json_str(&j, "reason", rec->reason);
	if (rec->pairs)
		add_pairs(&j, rec->pairs);
	json_end_object(&j);
	buf_addch(out, '\n');
}

int debug_dump(int argc, char **argv)
{
	struct store_reader *r = NULL;
	struct store_record rec;
	struct buf out;
	int e, status = EXIT_OK;

	if (argc != 1)
		die(EXIT_USAGE, "debug dump: one recording is needed");
	e = store_open(argv[0], &r);
	if (e < 0)
		die(EXIT_USAGE, "%s: %s", argv[0], e == -EBADMSG ? "no recording" : strerror(-e));
	buf_init(&out, (size_t)1 << 30);
	while (status == EXIT_OK && (e = store_next(r, &rec)) > 0) {
		add_record(&out, &rec, r);
		if (out.len < LINES_AT_ONCE)
			continue;
		status = print(&out);
		buf_reset(&out);
	}
	if (status == EXIT_OK)
		status = print(&out);
	if (e < 0)
		die(EXIT_TROUBLE, "%s: %s", argv[0], strerror(-e));
	buf_release(&out);
	store_close(r);
	return status;
}
