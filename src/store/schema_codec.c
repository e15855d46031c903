/* Encodes and decodes the schema block: see schema_codec.h. */
#include "store/schema_codec.h"

#include "base/pairs.h"
#include "metric/metric.h"
#include "store/format.h"

#include <string.h>
#include <zstd.h>

#define INFLATE_STEP ((size_t)64 << 10)
#define FIELDS 32 /* of a set or a metric; we write at most ten */

struct fields {
	struct pairs pairs;
	struct pair memory[FIELDS];
	char text[1024];
};

static void fields_init(struct fields *f)
{
	pairs_init(&f->pairs, f->memory, FIELDS, f->text, sizeof(f->text));
}

static void add(struct fields *f, const char *key, const char *value)
{
	if (value)
		pairs_str(&f->pairs, key, value);
}

/* To readers that do not know of names that come later such a column is one that could not be read. */
static void encode_metric(const struct schema_metric *m, bool named_later, struct buf *out)
{
	struct fields f;
	uint8_t scale[8];
	uint64_t bits;

	memcpy(&bits, &m->scale, sizeof(bits));
	put_u64(scale, bits);
	fields_init(&f);
	add(&f, "name", m->name);
	add(&f, "help", m->help);
	add(&f, "panel", m->panel);
	add(&f, "kind", kind_name(m->kind));
	add(&f, "fold", fold_name(m->fold));
	add(&f, "unit", unit_name(m->unit));
	add(&f, "tier", tier_name(m->tier));
	add(&f, "availability", availability_name(named_later ? ABSENT : m->availability));
	add(&f, "why", m->why);
	if (m->scale != 1)
		pairs_add(&f.pairs, "scale", scale, sizeof(scale));
	add(&f, "cells", m->real ? "double" : NULL);
	pairs_encode(&f.pairs, out);
}

void schema_encode(const struct schema *s, struct buf *out)
{
	buf_add_varint(out, s->nr_sets);
	for (uint32_t i = 0; i < s->nr_sets; i++) {
		const struct schema_set *set = &s->set[i];
		struct fields f;

		fields_init(&f);
		add(&f, "name", set->name);
		add(&f, "summary", set->summary);
		add(&f, "domain", set->domain_name);
		add(&f, "names", set->named_later ? "later" : NULL);
		pairs_encode(&f.pairs, out);
		buf_add_varint(out, set->nr_metrics);
		for (uint32_t j = 0; j < set->nr_metrics; j++)
			encode_metric(&set->metric[j], set->named_later, out);
	}
}

/* A copy with a terminator; an absent one is empty. */
static char *text_of(const struct fields *f, const char *key)
{
	const struct pair *p = pairs_find(&f->pairs, key);
	size_t len = p ? strnlen(p->value, p->len) : 0;
	char *text = malloc(len + 1);

	if (text) {
		memcpy(text, p ? p->value : "", len);
		text[len] = 0;
	}
	return text;
}

/* A word that a newer version may have added becomes the given default, the value that claims least. */
static int known(
	const struct fields *f, const char *key, int (*from_name)(const char *, size_t), int otherwise)
{
	const struct pair *p = pairs_find(&f->pairs, key);
	int v = p ? from_name(p->value, p->len) : -ENOENT;

	return v < 0 ? otherwise : v;
}

static bool has_word(const struct fields *f, const char *key, const char *word)
{
	const struct pair *p = pairs_find(&f->pairs, key);

	return p && p->len == strlen(word) && !memcmp(p->value, word, p->len);
}

static double scale_of(const struct fields *f)
{
	const struct pair *p = pairs_find(&f->pairs, "scale");
	double scale = 1;
	uint64_t bits;

	if (!p || p->len != 8)
		return 1;
	bits = get_u64((const uint8_t *)p->value);
	memcpy(&scale, &bits, sizeof(scale));
	return scale == scale ? scale : 1;
}

static int decode_metric(struct schema_set *set, struct view *v)
{
	_cleanup_(freep) char *name = NULL, *help = NULL, *panel = NULL, *why = NULL;
	struct schema_metric *m;
	struct fields f;

	fields_init(&f);
	if (pairs_decode(&f.pairs, v) < 0)
		return -EBADMSG;
	name = text_of(&f, "name");
	help = text_of(&f, "help");
	panel = text_of(&f, "panel");
	why = text_of(&f, "why");
	if (!name || !help || !panel || !why)
		return -ENOMEM;
	if (!*name || set->nr_metrics == METRICS_MAX)
		return -EBADMSG;
	m = schema_add_metric(set, name, help, *panel ? panel : NULL);
	if (!m)
		return -ENOMEM;
	m->kind = (enum metric_kind)known(&f, "kind", kind_from_name, KIND_GAUGE);
	m->fold = (enum metric_fold)known(&f, "fold", fold_from_name, FOLD_NONE);
	m->unit = (enum metric_unit)known(&f, "unit", unit_from_name, UNIT_CODE);
	m->tier = (enum metric_tier)known(&f, "tier", tier_from_name, TIER_SLOW);
	m->scale = scale_of(&f);
	m->real = has_word(&f, "cells", "double");
	return schema_metric_why(m,
		(enum availability)known(&f, "availability", availability_from_name, FAILED),
		*why ? why : NULL);
}

static int decode_set(struct schema *s, struct view *v)
{
	_cleanup_(freep) char *name = NULL, *summary = NULL, *domain = NULL;
	struct schema_set *set;
	struct fields f;
	uint64_t nr;
	int r = 0;

	fields_init(&f);
	if (pairs_decode(&f.pairs, v) < 0)
		return -EBADMSG;
	name = text_of(&f, "name");
	summary = text_of(&f, "summary");
	domain = text_of(&f, "domain");
	if (!name || !summary || !domain)
		return -ENOMEM;
	set = *name ? schema_add_set(s, name, summary, domain) : NULL;
	if (!set)
		return *name ? -ENOMEM : -EBADMSG;
	nr = view_varint(v);
	for (uint64_t i = 0; i < nr && r == 0; i++)
		r = decode_metric(set, v);
	set->named_later = has_word(&f, "names", "later");
	if (set->named_later) {
		set->nr_spare = set->nr_metrics;
		set->nr_metrics = 0;
	}
	return r;
}

int schema_decode(const void *data, size_t size, struct schema **ret)
{
	struct view v = view_of(data, size);
	struct schema *s = schema_new();
	uint64_t nr = view_varint(&v);
	int r = s ? 0 : -ENOMEM;

	if (nr > SETS_MAX)
		r = -EBADMSG;
	for (uint64_t i = 0; i < nr && r == 0; i++)
		r = decode_set(s, &v);
	if (r == 0 && v.bad)
		r = -EBADMSG;
	if (r < 0) {
		schema_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int schema_inflate(const uint8_t *p, size_t n, struct buf *out)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	ZSTD_inBuffer in = {p, n, 0};
	size_t left = 1;

	if (!zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	while (left && buf_reserve(out, MIN(INFLATE_STEP, SCHEMA_MAX - out->len))) {
		ZSTD_outBuffer o = {out->data + out->len, out->cap - out->len, 0};
		size_t before = in.pos;

		left = ZSTD_decompressStream(zstd, &o, &in);
		out->len += o.pos;
		if (ZSTD_isError(left) || (left && !o.pos && in.pos == before))
			break;
	}
	ZSTD_freeDCtx(zstd);
	return left ? -EBADMSG : 0;
}
