/* A table's columns as an ArrowSchema. Every node owns its texts and its children, so that a consumer may
 * take one out of the tree (and set its release to NULL, as Arrow has it) and free it on its own. */
#include "lib/internal.h"

#include <string.h>

static void schema_release(struct ArrowSchema *s)
{
	for (int64_t i = 0; i < s->n_children; i++) {
		if (s->children[i]->release)
			s->children[i]->release(s->children[i]);
		free(s->children[i]);
	}
	free(s->children);
	if (s->dictionary && s->dictionary->release)
		s->dictionary->release(s->dictionary);
	free(s->dictionary);
	free((char *)s->name);
	free((char *)s->metadata);
	s->release = NULL;
}

/* How many, then for each the length and bytes of key and value: in the machine's own order. */
static char *metadata_of(const struct arrow_pairs *p)
{
	int32_t nr = (int32_t)p->nr;
	struct buf b;

	buf_init(&b, INT32_MAX);
	buf_add(&b, &nr, sizeof(nr));
	for (size_t i = 0; i < p->nr; i++) {
		const char *both[2] = {p->pair[i].key, p->pair[i].value};

		for (size_t k = 0; k < 2; k++) {
			int32_t len = (int32_t)strlen(both[k]);

			buf_add(&b, &len, sizeof(len));
			buf_adds(&b, both[k]);
		}
	}
	if (!b.err)
		return (char *)b.data; /* memory of its own: there are four bytes at least */
	buf_release(&b);
	return NULL;
}

/* On failure the part that was filled can be released. */
static int schema_fill(
	struct ArrowSchema *s, const char *format, const char *name, const struct arrow_pairs *about)
{
	*s = (struct ArrowSchema){.format = format, .flags = ARROW_FLAG_NULLABLE, .release = schema_release};
	s->name = strdup(name);
	s->metadata = about ? metadata_of(about) : NULL;
	return s->name && (!about || s->metadata) ? 0 : -ENOMEM;
}

static int schema_of_field(struct ArrowSchema *s, const struct field *f)
{
	/* clang-format off */
	static const char *const format[] = {[FIELD_TIME] = "tsn:UTC", [FIELD_INT] = "l", [FIELD_REAL] = "g",
		[FIELD_TEXT] = "i", [FIELD_FLAG] = "b"};
	/* clang-format on */
	struct arrow_pairs about;
	int r;

	arrow_field_pairs(&about, f);
	r = schema_fill(s, format[f->type], f->name, &about);
	if (r < 0 || f->type != FIELD_TEXT)
		return r;
	s->dictionary = calloc(1, sizeof(*s->dictionary));
	return s->dictionary ? schema_fill(s->dictionary, "u", "", NULL) : -ENOMEM;
}

int lib_schema(const struct data_table *table, struct ArrowSchema *ret)
{
	struct arrow_pairs about;
	struct ArrowSchema s;
	int r;

	arrow_table_pairs(&about, table);
	r = schema_fill(&s, "+s", "", &about);
	s.flags = 0; /* a row is never missing as a whole */
	s.children = calloc(MAX(table->nr_fields, (size_t)1), sizeof(struct ArrowSchema *));
	if (!s.children)
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < table->nr_fields; i++) {
		s.children[i] = calloc(1, sizeof(struct ArrowSchema));
		if (!s.children[i]) {
			r = -ENOMEM;
			break;
		}
		s.n_children++;
		r = schema_of_field(s.children[i], &table->field[i]);
	}
	if (r < 0)
		schema_release(&s);
	else
		*ret = s;
	return r;
}
