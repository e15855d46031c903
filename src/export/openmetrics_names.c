/* The names of families, samples and labels: see openmetrics_names.h. */
#include "export/openmetrics_names.h"

#include "base/buf.h"
#include "base/owned.h"
#include "export/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "tacho_"

void names_release(struct names *n)
{
	texts_free(n->name, n->nr);
}

bool field_is_counter(const struct field *f)
{
	return f->kind == KIND_COUNTER && !f->per_second && f->type != FIELD_FLAG;
}

const char *openmetrics_unit(const struct field *f, char out[static 48])
{
	static const char *const unit[NR_UNITS] = {
		[UNIT_BYTES] = "bytes",
		[UNIT_SECONDS] = "seconds",
		[UNIT_RATIO] = "ratio",
		[UNIT_JOULES] = "joules",
		[UNIT_WATTS] = "watts",
		[UNIT_CELSIUS] = "celsius",
		[UNIT_HERTZ] = "hertz",
		[UNIT_FLOP] = "flop",
	};
	const char *name = (size_t)f->unit < NR_UNITS && unit[f->unit] ? unit[f->unit] : "";

	if (f->scale != 1 || f->type == FIELD_FLAG)
		return "";
	snprintf(out, 48, "%s%s%s", name, f->per_second && *name ? "_" : "",
		f->per_second ? "per_second" : "");
	return out;
}

static void add_name(struct buf *out, const char *name)
{
	for (; *name; name++) {
		bool fits = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
			(*name >= '0' && *name <= '9');

		buf_addch(out, fits ? *name : '_');
	}
}

static bool ends_with(const struct buf *b, const char *word)
{
	size_t len = strlen(word);

	return b->len > len && !memcmp(b->data + b->len - len, word, len);
}

static bool is_taken(const struct names *n, const char *name)
{
	for (size_t i = 0; i < n->nr; i++)
		if (!strcmp(n->name[i], name))
			return true;
	return false;
}

static const char *const suffix[] = {
	"", "_total", "_created"}; /* of samples: all but the first of counters */

static bool is_free(const struct names *n, const char *family, bool counter)
{
	for (size_t i = 0; i < (counter ? ARRAY_SIZE(suffix) : 1); i++) {
		char name[512];

		if (snprintf(name, sizeof(name), "%s%s", family, suffix[i]) >= (int)sizeof(name) ||
			is_taken(n, name))
			return false;
	}
	return true;
}

static const char *claim(struct names *n, const char *family, bool counter)
{
	size_t first = n->nr;

	for (size_t i = 0; i < (counter ? ARRAY_SIZE(suffix) : 1); i++) {
		char *name = NULL;

		if (asprintf(&name, "%s%s", family, suffix[i]) < 0 || texts_take(&n->name, &n->nr, name) < 0)
			return NULL;
	}
	return n->name[first];
}

/* Two metrics may get the same name: then the table's name is added, and at last a number. */
static void put_family(struct buf *out, const struct data_table *table, const struct field *f,
	const char *unit, unsigned attempt)
{
	buf_reset(out);
	buf_adds(out, PREFIX);
	if (attempt) {
		add_name(out, table->name);
		buf_addch(out, '_');
	}
	if (attempt > 1)
		buf_addf(out, "%u_", attempt);
	add_name(out, f->name);
	if (out->len > 400) /* a limit, so that no name is too long */
		out->len = 400;
	if (field_is_counter(f) && ends_with(out, "_total"))
		out->len -= strlen("_total");
	out->data[out->len] = 0;
	if (!*unit)
		return;
	if (ends_with(out, unit) && out->data[out->len - strlen(unit) - 1] == '_')
		return;
	buf_addch(out, '_');
	buf_adds(out, unit);
}

const char *family_name(struct names *n, const struct data_table *table, const struct field *f)
{
	char unit_text[48];
	const char *unit = openmetrics_unit(f, unit_text), *name;
	unsigned attempt = 0;
	struct buf out;

	buf_init(&out, 1 << 20);
	do
		put_family(&out, table, f, unit, attempt);
	while (!out.err && !is_free(n, (char *)out.data, field_is_counter(f)) && ++attempt < 100000);
	name = out.err ? NULL : claim(n, (char *)out.data, field_is_counter(f));
	buf_release(&out);
	return name;
}

char *label_name(const char *field, char *const *other, size_t nr)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	buf_reserve(&out, 1); /* allocates even for an empty text */
	add_name(&out, field);
	/* Names with two underscores in front are reserved, and a name must not begin with a digit. */
	if (!out.len || out.data[0] == '_' || (out.data[0] >= '0' && out.data[0] <= '9')) {
		buf_reset(&out);
		buf_adds(&out, "label_");
		add_name(&out, field);
	}
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(other[i], (char *)out.data)) {
			buf_addf(&out, "_%zu", nr);
			break;
		}
	if (!out.err)
		return (char *)out.data;
	buf_release(&out);
	return NULL;
}

void openmetrics_add_escaped(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n') {
			buf_adds(out, "\\n");
			continue;
		}
		if (text[i] == '\\' || text[i] == '"')
			buf_addch(out, '\\');
		buf_addch(out, text[i]);
	}
}

void openmetrics_add_real(struct buf *out, double v)
{
	char text[EXPORT_TEXT];

	if (isfinite(v))
		buf_add(out, text, format_real(text, v));
	else
		buf_adds(out, v != v ? "NaN" : v > 0 ? "+Inf" : "-Inf");
}
