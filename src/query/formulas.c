/* The value of a key `derived.NAME` is five texts parted by NULs: unit, "1" when it is per second, panel,
 * expression, help. What follows them is of newer versions. A formula that cannot be used keeps its place
 * with the reason, so that the answer can name it. Formulas name recorded metrics only, never one
 * another: there are no circles to be found. */
#include "query/formulas.h"

#include "base/owned.h"
#include "base/str.h"
#include "base/expr.h"

#include <string.h>

static const char prefix[] = "derived.";

enum { PART_UNIT, PART_PER_SECOND, PART_PANEL, PART_EXPRESSION, PART_HELP, NR_PARTS_ALL };

static bool is_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.");

	return len && !name[len] && len < EXPR_NAME_SIZE && name[0] >= 'a' && name[0] <= 'z';
}

/* The texts of the value; those that are missing are empty. Returns how many are there. */
static unsigned split(const char *value, size_t len, const char *part[NR_PARTS_ALL])
{
	const char *end = value + len;
	unsigned nr = 0;

	for (unsigned i = 0; i < NR_PARTS_ALL; i++)
		part[i] = "";
	while (nr < NR_PARTS_ALL && value <= end) {
		part[nr++] = value;
		value += strlen(value) + 1;
	}
	return nr;
}

static const char *trouble_of(unsigned nr_parts, const char *expression)
{
	const char *why = NULL;
	struct expr parsed;
	size_t at;

	if (nr_parts <= PART_EXPRESSION)
		return "it is incomplete";
	return expr_parse(&parsed, expression, &why, &at) < 0 ? why : NULL;
}

static int formula_make(struct formula *ret, const char *name, const struct meta_item *item)
{
	size_t name_size = strlen(name) + 1;
	const char *part[NR_PARTS_ALL];
	unsigned nr;
	int unit;

	*ret = (struct formula){.own = malloc(name_size + item->len + 1)};
	if (!ret->own)
		return -ENOMEM;
	memcpy(ret->own, name, name_size);
	memcpy(ret->own + name_size, item->value, item->len + 1);
	nr = split(ret->own + name_size, item->len, part);
	unit = unit_from_name(part[PART_UNIT], strlen(part[PART_UNIT]));
	ret->row = (struct derived){.name = ret->own,
		.help = part[PART_HELP],
		.expression = part[PART_EXPRESSION],
		.at = AT_FOLD,
		.kind = KIND_GAUGE,
		.fold = FOLD_SUM,
		.unit = unit < 0 ? UNIT_CODE : (enum metric_unit)unit, /* as in a schema */
		.per_second = !strcmp(part[PART_PER_SECOND], "1"),
		.panel = *part[PART_PANEL] ? part[PART_PANEL] : NULL};
	ret->why = trouble_of(nr, part[PART_EXPRESSION]);
	return 0;
}

int formulas_read(struct formulas *f, const struct meta *meta)
{
	for (uint32_t i = 0; i < meta->nr; i++) {
		const char *key = meta->item[i].key, *name = key + sizeof(prefix) - 1;
		struct formula *more;
		int r;

		if (!str_starts(key, prefix))
			continue;
		if (!is_name(name) || f->nr == FORMULAS_MAX) {
			f->left_out++;
			continue;
		}
		more = ARRAY_ADD(f->item, f->nr);
		r = more ? formula_make(more, name, &meta->item[i]) : -ENOMEM;
		if (r < 0) {
			f->nr -= more != NULL;
			return r;
		}
	}
	return 0;
}

void formulas_release(struct formulas *f)
{
	for (size_t i = 0; i < f->nr; i++)
		free(f->item[i].own);
	free(f->item);
	*f = (struct formulas){0};
}

const struct formula *formulas_find(const struct formulas *f, const char *name)
{
	for (size_t i = 0; i < f->nr; i++)
		if (!strcmp(f->item[i].row.name, name))
			return &f->item[i];
	return NULL;
}
