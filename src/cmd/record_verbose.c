/* --verbose: what is recorded, what is not and why, a line for each source.
 *
 * Read from the finished recording, not from the recorder: what has a value in it was recorded, and the
 * reasons are those that a reader will find. */
#include "cmd/record.h"
#include "query/meta.h"
#include "text/words.h"

#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH 14

struct outcome {
	struct store_reader *reader;
	uint64_t *valued; /* [sets] columns that have a value somewhere */
	struct meta meta, why;
};

static const char *why_not(const struct outcome *o, const struct schema_metric *m)
{
	if (meta_find(&o->why, m->name))
		return meta_text(&o->why, m->name);
	if (m->why)
		return m->why;
	return meta_find(&o->meta, "unread") ? why_unread : "there was nothing of it";
}

static int keep_reason(struct outcome *o, const struct pairs *event)
{
	const struct pair *metric = pairs_find(event, "metric"), *why = pairs_find(event, "why");
	struct pair memory;
	struct pairs reason;
	char name[64], text[1];

	if (!metric || !why || metric->len >= sizeof(name))
		return 0;
	memcpy(name, metric->value, metric->len);
	name[metric->len] = 0;
	pairs_init(&reason, &memory, 1, text, sizeof(text));
	pairs_add(&reason, name, why->value, why->len);
	return meta_merge(&o->why, &reason);
}

static int take(struct outcome *o, const struct store_record *rec)
{
	const struct schema *schema = store_reader_schema(o->reader);

	if (rec->type == STORE_META)
		return meta_merge(&o->meta, rec->pairs);
	if (rec->type == STORE_EVENT && !strcmp(rec->kind, "unavailable"))
		return keep_reason(o, rec->pairs);
	if (rec->type != STORE_TICK || !schema)
		return 0;
	if (!o->valued)
		o->valued = calloc(schema->nr_sets, sizeof(*o->valued));
	for (uint32_t set = 0; o->valued && set < schema->nr_sets; set++) {
		const struct table *t = store_reader_table(o->reader, set);

		for (uint32_t i = 0; t && i < t->nr_touched; i++)
			o->valued[set] |= t->valid[t->touched[i]];
	}
	return o->valued ? 0 : -ENOMEM;
}

/* Metrics of the same reason together, by the first of them. */
static void add_reasons(
	const struct outcome *o, const struct schema_set *set, uint64_t valued, struct buf *out)
{
	for (uint32_t m = 0; m < set->nr_metrics; m++) {
		const char *why = why_not(o, &set->metric[m]);
		uint32_t nr = 0, before = 0;

		for (uint32_t i = 0; i < set->nr_metrics; i++)
			if (!(valued >> i & 1) && !strcmp(why_not(o, &set->metric[i]), why)) {
				nr++;
				before += i < m;
			}
		if (valued >> m & 1 || before)
			continue;
		if (nr == set->nr_metrics)
			buf_addf(out, "not recorded: %s", why);
		else
			buf_addf(out, "; %u not: %s", nr, why);
	}
}

static void add_set(const struct outcome *o, const struct schema_set *set, uint64_t valued, unsigned width,
	struct buf *out)
{
	uint32_t nr = 0;
	struct buf line;

	if (!set->nr_metrics)
		return;
	for (uint32_t m = 0; m < set->nr_metrics; m++)
		nr += valued >> m & 1;
	buf_init(&line, 8192);
	if (nr == set->nr_metrics)
		buf_addf(&line, "recorded: %u metric%s", nr, nr == 1 ? "" : "s");
	else if (nr)
		buf_addf(&line, "recorded: %u of %u metrics", nr, set->nr_metrics);
	add_reasons(o, set, valued, &line);
	buf_addf(out, "  %-*s ", NAME_WIDTH, set->name);
	add_wrapped(out, (char *)line.data, NAME_WIDTH + 3, width);
	buf_addch(out, '\n');
	buf_release(&line);
}

int record_verbose(const char *path, unsigned width, struct buf *out)
{
	struct outcome o = {0};
	struct store_record rec;
	int r = store_open(path, &o.reader);

	while (r >= 0 && (r = store_next(o.reader, &rec)) > 0)
		r = take(&o, &rec);
	for (uint32_t s = 0; r >= 0 && o.valued && s < store_reader_schema(o.reader)->nr_sets; s++)
		add_set(&o, &store_reader_schema(o.reader)->set[s], o.valued[s], width, out);
	if (r >= 0 && meta_find(&o.meta, "unread"))
		buf_addf(out, "  %-*s not recorded: %s\n", NAME_WIDTH, "all others", why_unread);
	meta_release(&o.meta);
	meta_release(&o.why);
	free(o.valued);
	store_close(o.reader);
	return r;
}
