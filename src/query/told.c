/* Names of the job's numbers: see told.h. A finished recording has them in its end mark, any other where its
 * last segment states again what is alive. */
#include "query/told.h"

#include "base/expr.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "app.";

bool told_is(const char *metric)
{
	return str_starts(metric, prefix);
}

void told_release(struct told_names *t)
{
	free(t->list);
	*t = (struct told_names){0};
}

int told_take(struct told_names *t, const struct store_record *record)
{
	const struct pair *p = NULL;
	char *copy;

	if (record->type == STORE_INSTANCE || record->type == STORE_SUMMARY)
		p = pairs_find(record->pairs, "told");
	if (!p)
		return 0;
	copy = malloc(p->len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, p->value, p->len);
	copy[p->len] = 0;
	free(t->list);
	*t = (struct told_names){.list = copy, .len = p->len};
	return 0;
}

static bool has_unnamed(const struct schema *schema)
{
	for (uint32_t i = 0; schema && i < schema->nr_sets; i++)
		if (schema->set[i].nr_spare)
			return true;
	return false;
}

int told_find(struct told_names *t, struct store_reader *reader)
{
	struct store_record record;
	int r;

	if (!has_unnamed(store_reader_schema(reader)))
		return 0;
	r = store_seek_end(reader);
	if (r == 0)
		r = store_seek(reader, INT64_MAX);
	while (r >= 0 && (r = store_next(reader, &record)) > 0)
		r = told_take(t, &record);
	return r;
}

static bool is_metric_name(const char *name, const struct schema *schema)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.");
	uint32_t set, col;

	return str_starts(name, prefix) && !name[len] && len > sizeof(prefix) - 1 && len < EXPR_NAME_SIZE &&
		!schema_find(schema, name, &set, &col);
}

/* The next field of the line, cut to the room; `at` moves behind it. */
static void take_field(const char **at, const char *end, char *to, size_t size)
{
	const char *tab = memchr(*at, '\t', (size_t)(end - *at)), *stop = tab ? tab : end;
	size_t n = MIN((size_t)(stop - *at), size - 1);

	memcpy(to, *at, n);
	to[n] = 0;
	*at = tab ? tab + 1 : end;
}

/* A column keeps its place, whatever it is called. */
static int name_column(const char *line, const char *end, struct store_reader *reader, uint32_t set)
{
	const struct schema *schema = store_reader_schema(reader);
	char name[EXPR_NAME_SIZE + 1], unit[16], text[64], help[160];
	int u;

	take_field(&line, end, name, sizeof(name));
	take_field(&line, end, unit, sizeof(unit));
	take_field(&line, end, text, sizeof(text));
	if (!is_metric_name(name, schema))
		snprintf(name, sizeof(name), "app.column_%u", schema->set[set].nr_metrics);
	u = unit_from_name(unit, strlen(unit));
	snprintf(help, sizeof(help), "Told by the job: %s%s%s.", name + sizeof(prefix) - 1,
		*text ? ", in " : "", text);
	return store_reader_name(reader, set, name, help, u < 0 ? UNIT_CODE : (enum metric_unit)u);
}

int told_apply(const char *list, size_t len, struct store_reader *reader, uint32_t set)
{
	const struct schema_set *of = &store_reader_schema(reader)->set[set];
	const char *at = list, *end = list + len;

	for (uint32_t i = 0; at < end && of->nr_spare; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		if (i >= of->nr_metrics && name_column(at, stop, reader, set) == -ENOMEM)
			return -ENOMEM;
		at = stop + (stop < end);
	}
	return 0;
}
