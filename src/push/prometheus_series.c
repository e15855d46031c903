/* Names and labels of series: see prometheus_series.h. Labels of a series: `host`; what kind of thing it is
 * told of (gpu="nvidia-0", device="eth0"); of processes the name and `pid`; when the recording began, so that
 * two runs of one program differ, and so that a node's own pusher and one of the whole run send the same
 * series. Of all series: the name of the run, the job of the batch system, and what the user gave. */
#include "push/prometheus_series.h"

#include "base/owned.h"
#include "base/str.h"

#include <string.h>
#include <time.h>

#define JOB "tacho"
#define PURGE_LEAST 1000

/* Labels of the run, and those that no table has as its own. */
static const char *const ours[] = {"host", "pid", "run", "start", "tacho_job"};

/* The label that tells instances of a table apart. */
static const char *label_of_table(const char *table)
{
	static const struct {
		const char *table, *label;
	} other[] = {
		{"node", NULL}, /* there is one */
		{"tree", NULL},
		{"disk", "device"}, /* as node_exporter has them */
		{"net", "device"},
		{"ib", "device"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		if (!strcmp(other[i].table, table))
			return other[i].label;
	return table;
}

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (!strcmp(ours[i], name))
			return true;
	for (int i = 0; i < NR_DOMAINS; i++) {
		const char *label = label_of_table(domain_name((enum domain)i));

		if (label && !strcmp(label, name))
			return true;
	}
	return false;
}

/* UTF-8 as it is; else as exports have it. */
static char *value_text(const char *text)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
	struct buf out;

	while (p < end && utf8_length(p, end))
		p += utf8_length(p, end);
	if (p == end)
		return strdup(text);
	buf_init(&out, SIZE_MAX / 2);
	utf8_escape(&out, text, strlen(text));
	if (!out.err)
		return (char *)out.data;
	buf_release(&out);
	return NULL;
}

static void labels_free(struct prometheus_label *label, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free(label[i].name);
		free(label[i].value);
	}
	free(label);
}

/* Sorted by name. One without a value is no label; of two with one name the first stays. */
static int add_label(struct prometheus_label **list, size_t *nr, const char *name, const char *value)
{
	struct prometheus_label *more, made;
	size_t at = 0;

	while (at < *nr && strcmp((*list)[at].name, name) < 0)
		at++;
	if (!value || !*value || (at < *nr && !strcmp((*list)[at].name, name)))
		return 0;
	made = (struct prometheus_label){strdup(name), value_text(value)};
	more = made.name && made.value ? ARRAY_ADD(*list, *nr) : NULL;
	if (!more) {
		free(made.name);
		free(made.value);
		return -ENOMEM;
	}
	memmove(*list + at + 1, *list + at, (*nr - 1 - at) * sizeof(made));
	(*list)[at] = made;
	return 0;
}

static const char *label_value(const struct prometheus_label *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name))
			return list[i].value;
	return NULL;
}

static int add_user_label(struct prometheus_all *a, const struct push_label *l, struct buf *reterr)
{
	char *name = label_name(l->key, NULL, 0);
	int r = -ENOMEM;

	if (name && is_ours(name)) {
		buf_addf(reterr, "the label '%s' is one of those that tacho gives itself: take another name",
			name);
		r = -EINVAL;
	} else if (name && label_value(a->label, a->nr_labels, name)) {
		buf_addf(reterr, "two labels would have the name '%s': take another for one of them", name);
		r = -EINVAL;
	} else if (name) {
		r = add_label(&a->label, &a->nr_labels, name, l->value);
	}
	free(name);
	return r;
}

void prometheus_start_text(char *out, size_t size, int64_t ns)
{
	int64_t ms = ns / NSEC_PER_MSEC;
	time_t s = (time_t)(ms / 1000);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, size, "%s.%03dZ", text, (int)(ms % 1000));
}

int prometheus_all_init(struct prometheus_all *a, const struct push *p, bool target, struct buf *reterr)
{
	int r = 0;

	*a = (struct prometheus_all){.target = target, .purge_at = PURGE_LEAST};
	for (size_t i = 0; r >= 0 && i < p->options->nr_labels; i++)
		r = add_user_label(a, &p->options->label[i], reterr);
	a->own_instance = label_value(a->label, a->nr_labels, "instance");
	if (r >= 0)
		r = add_label(&a->label, &a->nr_labels, "run", p->run->name);
	if (r >= 0)
		r = add_label(&a->label, &a->nr_labels, "tacho_job", p->run->job);
	if (r >= 0 && target)
		r = add_label(&a->label, &a->nr_labels, "job", JOB); /* unless the user has one */
	if (r < 0)
		prometheus_all_release(a);
	return r;
}

static void series_free(struct prometheus_series *s)
{
	labels_free(s->label, s->nr_labels);
	free(s);
}

static void family_release(struct prometheus_family *f)
{
	free(f->table);
	free(f->metric);
	free(f->help);
	free(f->sample);
}

void prometheus_all_release(struct prometheus_all *a)
{
	for (size_t i = 0; i < a->nr; i++)
		if (a->series[i]->refs)
			a->series[i]->all = NULL; /* freed when it is forgotten */
		else
			series_free(a->series[i]);
	free(a->series);
	for (size_t i = 0; i < a->nr_families; i++)
		family_release(&a->family[i]);
	free(a->family);
	names_release(&a->names);
	labels_free(a->label, a->nr_labels);
	idmap_release(&a->by_hash);
	*a = (struct prometheus_all){0};
}

/* ---- families ---- */

static bool is_family(const struct prometheus_family *f, const struct push_series *s)
{
	return !strcmp(f->table, s->table) && !strcmp(f->metric, s->name) && f->unit == s->unit &&
		f->kind == s->kind && f->per_second == s->per_second;
}

static int make_family(struct prometheus_all *a, const struct push_series *s, struct prometheus_family *f)
{
	struct data_table table = {.name = s->table};
	struct field field = {.name = s->name,
		.help = s->help,
		.type = FIELD_REAL,
		.unit = s->unit,
		.per_second = s->per_second,
		.kind = s->kind,
		.is_metric = true,
		.scale = 1};

	f->unit = s->unit;
	f->kind = s->kind;
	f->per_second = s->per_second;
	f->counter = field_is_counter(&field);
	f->table = strdup(s->table);
	f->metric = strdup(s->name);
	f->help = value_text(s->help ? s->help : "");
	f->name = family_name(&a->names, &table, &field);
	if (!*openmetrics_unit(&field, f->unit_text))
		f->unit_text[0] = 0;
	if (f->name && asprintf(&f->sample, "%s%s", f->name, f->counter ? "_total" : "") < 0)
		f->sample = NULL;
	return f->table && f->metric && f->help && f->name && f->sample ? 0 : -ENOMEM;
}

static int family_of(struct prometheus_all *a, const struct push_series *s, size_t *ret)
{
	struct prometheus_family *f;

	for (*ret = 0; *ret < a->nr_families; ++*ret)
		if (is_family(&a->family[*ret], s))
			return 0;
	f = ARRAY_ADD(a->family, a->nr_families);
	if (!f)
		return -ENOMEM;
	if (make_family(a, s, f) == 0)
		return 0;
	family_release(f);
	a->nr_families--;
	return -ENOMEM;
}

/* ---- series ---- */

static int add_labels_of(
	struct prometheus_all *a, const struct push_series *s, struct prometheus_series *made)
{
	const char *kind = label_of_table(s->table);
	char pid[24], start[48] = "";
	int r = 0;

	for (size_t i = 0; r >= 0 && i < a->nr_labels; i++)
		r = add_label(&made->label, &made->nr_labels, a->label[i].name, a->label[i].value);
	if (s->start_ns > 0)
		prometheus_start_text(start, sizeof(start), s->start_ns);
	if (r >= 0)
		r = add_label(&made->label, &made->nr_labels, "host", s->host);
	if (r >= 0)
		r = add_label(&made->label, &made->nr_labels, "start", start);
	if (r >= 0 && a->target && !a->own_instance)
		r = add_label(&made->label, &made->nr_labels, "instance", s->host);
	if (r >= 0 && kind && s->instance)
		r = add_label(&made->label, &made->nr_labels, kind, s->instance);
	if (r >= 0 && s->pid) {
		snprintf(pid, sizeof(pid), "%lld", (long long)s->pid);
		r = add_label(&made->label, &made->nr_labels, "pid", pid);
	}
	return r;
}

static uint64_t hash_of(const struct prometheus_series *s)
{
	uint64_t h = s->family + 1;

	for (size_t i = 0; i < s->nr_labels; i++) {
		h = h * UINT64_C(0x100000001b3) ^ hash_bytes(s->label[i].name, strlen(s->label[i].name));
		h = h * UINT64_C(0x100000001b3) ^ hash_bytes(s->label[i].value, strlen(s->label[i].value));
	}
	return h;
}

static bool is_same(const struct prometheus_series *a, const struct prometheus_series *b)
{
	bool same = a->family == b->family && a->nr_labels == b->nr_labels;

	for (size_t i = 0; same && i < a->nr_labels; i++)
		same = !strcmp(a->label[i].name, b->label[i].name) &&
			!strcmp(a->label[i].value, b->label[i].value);
	return same;
}

/* Takes what was made, or frees it where the same is there already. */
static struct prometheus_series *keep(struct prometheus_all *a, struct prometheus_series *made)
{
	struct prometheus_series **more;
	uint64_t key = hash_of(made);
	uint32_t i;

	for (; (i = idmap_get(&a->by_hash, key)) != IDMAP_NONE; key++)
		if (is_same(a->series[i], made)) {
			series_free(made);
			return a->series[i];
		}
	if (a->nr >= IDMAP_NONE - 1 || idmap_put(&a->by_hash, key, (uint32_t)a->nr) < 0) {
		series_free(made);
		return NULL;
	}
	more = ARRAY_ADD(a->series, a->nr);
	if (!more) {
		idmap_remove(&a->by_hash, key);
		series_free(made);
		return NULL;
	}
	made->number = a->made++;
	return *more = made;
}

struct prometheus_series *prometheus_series_of(struct prometheus_all *a, struct push_series *s)
{
	struct prometheus_series *made;

	if (s->own)
		return s->own;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	made->all = a;
	made->last_ms = made->tried_ms = INT64_MIN;
	made->node = s->node;
	if (family_of(a, s, &made->family) < 0 || add_labels_of(a, s, made) < 0) {
		series_free(made);
		return NULL;
	}
	made = keep(a, made);
	if (made)
		made->refs++;
	return s->own = made;
}

void prometheus_series_forget(void *own)
{
	struct prometheus_series *s = own;

	if (s && s->refs && --s->refs == 0 && !s->all)
		series_free(s);
}

int prometheus_purge(struct prometheus_all *a, int64_t before_ms)
{
	size_t to = 0;
	int r = 0;

	if (a->nr < a->purge_at)
		return 0;
	for (size_t i = 0; i < a->nr; i++)
		if (a->series[i]->refs || (a->series[i]->there && a->series[i]->last_ms >= before_ms))
			a->series[to++] = a->series[i];
		else
			series_free(a->series[i]);
	a->nr = to;
	a->purge_at = MAX(2 * to, (size_t)PURGE_LEAST);
	idmap_clear(&a->by_hash);
	for (size_t i = 0; r >= 0 && i < a->nr; i++) {
		uint64_t key = hash_of(a->series[i]);

		while (idmap_get(&a->by_hash, key) != IDMAP_NONE)
			key++;
		r = idmap_put(&a->by_hash, key, (uint32_t)i);
	}
	return r;
}

void prometheus_series_text(
	struct buf *out, const struct prometheus_all *a, const struct prometheus_series *s)
{
	buf_adds(out, a->family[s->family].sample);
	for (size_t i = 0; i < s->nr_labels; i++) {
		buf_addf(out, "%c%s=\"", i ? ',' : '{', s->label[i].name);
		openmetrics_add_escaped(out, s->label[i].value, strlen(s->label[i].value));
		buf_addch(out, '"');
	}
	if (s->nr_labels)
		buf_addch(out, '}');
}
