/* A request of OTLP/HTTP as JSON: see otlp.h and opentelemetry.io/docs/specs/otlp (JSON Protobuf Encoding):
 * names in lowerCamelCase, 64-bit integers as texts, enums as numbers.
 *
 * A node is a resource; a metric is there once for each of them, with all its points. Counters are cumulative
 * monotonic sums. When they were zero is said where it is known: what the job uses is counted from its start,
 * what the kernel tells of a node from boot on. Levels are gauges; of OpenTelemetry's names those that its
 * conventions call UpDownCounters are sums that may fall. */
#include "push/otlp.h"

#include "base/iso_time.h"
#include "base/json.h"
#include "base/owned.h"
#include "base/text.h"
#include "push/variables.h"

#include <stdio.h>
#include <string.h>

enum { CUMULATIVE = 2 }; /* AggregationTemporality */

#define PREFIX "tacho."

/* ---- pairs ---- */

static struct otlp_pair *find_pair(const struct otlp_pairs *p, const char *key)
{
	for (size_t i = 0; i < p->nr; i++)
		if (!strcmp(p->pair[i].key, key))
			return &p->pair[i];
	return NULL;
}

const char *otlp_pairs_get(const struct otlp_pairs *p, const char *key)
{
	const struct otlp_pair *pair = find_pair(p, key);

	return pair ? pair->value : NULL;
}

static void remove_pair(struct otlp_pairs *p, struct otlp_pair *pair)
{
	free(pair->key);
	free(pair->value);
	*pair = p->pair[--p->nr];
}

int otlp_pairs_set(struct otlp_pairs *p, const char *key, const char *value)
{
	struct otlp_pair *pair = find_pair(p, key);
	char *copy;

	if (!value || !*value) {
		if (pair)
			remove_pair(p, pair);
		return 0;
	}
	copy = strdup(value);
	if (copy && !pair) {
		pair = ARRAY_ADD(p->pair, p->nr);
		if (pair && !(pair->key = strdup(key))) {
			p->nr--;
			pair = NULL;
		}
	}
	if (!copy || !pair) {
		free(copy);
		return -ENOMEM;
	}
	free(pair->value);
	pair->value = copy;
	return 0;
}

void otlp_pairs_release(struct otlp_pairs *p)
{
	while (p->nr)
		remove_pair(p, &p->pair[p->nr - 1]);
	free(p->pair);
	*p = (struct otlp_pairs){0};
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

static char *trimmed(struct text t, bool decode)
{
	char *out;
	size_t n = 0;

	while (t.len && (t.p[0] == ' ' || t.p[0] == '\t'))
		t = text_from(t, 1);
	while (t.len && (t.p[t.len - 1] == ' ' || t.p[t.len - 1] == '\t'))
		t.len--;
	out = malloc(t.len + 1);
	for (size_t i = 0; out && i < t.len; i++) {
		int high = decode && t.p[i] == '%' && i + 2 < t.len ? digit_of(t.p[i + 1]) : -1;
		int low = high >= 0 ? digit_of(t.p[i + 2]) : -1;

		out[n++] = low >= 0 && high + low ? (char)(high << 4 | low) : t.p[i];
		i += low >= 0 && high + low ? 2 : 0;
	}
	if (out)
		out[n] = 0;
	return out;
}

int otlp_pairs_read(struct otlp_pairs *p, const char *text)
{
	struct text rest = text_of(text);

	while (rest.len) {
		struct text word = text_cut(&rest, ','), before = word, left = text_cut(&word, '=');
		_cleanup_(freep) char *key = trimmed(left, false), *value = trimmed(word, true);
		int r = key && value ? 0 : -ENOMEM;

		if (r >= 0 && *key && left.len < before.len)
			r = otlp_pairs_set(p, key, value);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- what all requests have ---- */

/* A label counts for more than the variables, and these for more than what the recording says; but the host
 * is the one that was recorded: the variable may be of another machine. */
static int make_resource(struct otlp *o, const struct push *p)
{
	const struct push_run *run = p->run;
	const char *list = variable("OTEL_RESOURCE_ATTRIBUTES"), *service = variable("OTEL_SERVICE_NAME");
	const char *container = run->meta ? meta_text(run->meta, "hw.container") : "";
	int r = otlp_pairs_set(&o->resource, "service.name", run->name && *run->name ? run->name : "tacho");

	if (r >= 0)
		r = otlp_pairs_set(&o->resource, "tacho.job", run->job);
	if (r >= 0)
		r = otlp_pairs_set(&o->resource, "tacho.container", container);
	if (r >= 0 && list)
		r = otlp_pairs_read(&o->resource, list);
	if (r >= 0)
		r = otlp_pairs_set(&o->resource, "host.name", NULL);
	if (r >= 0 && service)
		r = otlp_pairs_set(&o->resource, "service.name", service);
	for (size_t i = 0; i < p->options->nr_labels && r >= 0; i++)
		r = otlp_pairs_set(&o->resource, p->options->label[i].key, p->options->label[i].value);
	o->own_host = !otlp_pairs_get(&o->resource, "host.name");
	return r;
}

int otlp_make(struct otlp *o, struct push *p, struct buf *reterr)
{
	const struct meta *meta = p->run->meta;
	const char *boot = meta ? meta_text(meta, "hw.boot_time") : "";
	bool attached = meta && !strcmp(meta_text(meta, "mode"), "attach");

	(void)reterr;
	*o = (struct otlp){.push = p, .start_ns = attached ? 0 : p->run->start_ns};
	buf_init(&o->url, 1 << 16);
	buf_init(&o->body, 64 << 20);
	buf_init(&o->packed, 80 << 20);
	parse_iso_time(boot, strlen(boot), &o->boot_ns);
	return make_resource(o, p);
}

void otlp_release(struct otlp *o)
{
	otlp_pairs_release(&o->resource);
	buf_release(&o->url);
	buf_release(&o->body);
	buf_release(&o->packed);
	free(o->order);
}

/* ---- attributes ---- */

static void add_attribute(struct json *j, const char *key, const char *value)
{
	json_object(j, NULL);
	json_name(j, "key", key);
	json_object(j, "value");
	json_name(j, "stringValue", value);
	json_end_object(j);
	json_end_object(j);
}

static void add_integer_attribute(struct json *j, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	json_object(j, NULL);
	json_str(j, "key", key);
	json_object(j, "value");
	json_str(j, "intValue", text);
	json_end_object(j);
	json_end_object(j);
}

/* What OpenTelemetry calls the instances of a table. */
static const struct {
	const char *table, *attribute;
} instance_name[] = {
	{"cpu", "cpu.logical_number"},
	{"disk", "system.device"},
	{"filesystem", "system.filesystem.mountpoint"},
	{"gpu", "hw.id"},
	{"ib", "network.interface.name"},
	{"net", "network.interface.name"},
	{"process", "process.executable.name"},
};

static const char *instance_attribute(const char *table)
{
	for (size_t i = 0; i < ARRAY_SIZE(instance_name); i++)
		if (!strcmp(instance_name[i].table, table))
			return instance_name[i].attribute;
	return "tacho.instance";
}

/* Those of a row of foreign names: "cpu.mode=user,…"; '+' in front is of the metric. */
static void add_fixed(struct json *j, const struct push_name *as)
{
	struct text rest = text_of(as && as->attribute ? as->attribute + (*as->attribute == '+') : "");

	while (rest.len) {
		struct text value = text_cut(&rest, ','), key = text_cut(&value, '=');

		json_object(j, NULL);
		json_text(j, "key", key.p, key.len);
		json_object(j, "value");
		json_text(j, "stringValue", value.p, value.len);
		json_end_object(j);
		json_end_object(j);
	}
}

static void add_attributes(struct json *j, const struct push_series *s)
{
	bool fixed = s->as && s->as->attribute && s->as->attribute[*s->as->attribute == '+'];

	if (!fixed && !s->instance && !s->pid)
		return;
	json_array(j, "attributes");
	add_fixed(j, s->as);
	if (s->instance && *s->instance)
		add_attribute(j, instance_attribute(s->table), s->instance);
	if (s->pid)
		add_integer_attribute(j, "process.pid", s->pid);
	json_end_array(j);
}

static void add_resource(struct json *j, const struct otlp *o, const char *host)
{
	json_object(j, "resource");
	json_array(j, "attributes");
	if (o->own_host && host && *host)
		add_attribute(j, "host.name", host);
	for (size_t i = 0; i < o->resource.nr; i++)
		add_attribute(j, o->resource.pair[i].key, o->resource.pair[i].value);
	json_end_array(j);
	json_end_object(j);
}

/* ---- metrics ---- */

/* Units as UCUM writes them. */
static void add_unit(struct json *j, const struct push_series *s)
{
	static const char *const unit[NR_UNITS] = {[UNIT_BYTES] = "By",
		[UNIT_SECONDS] = "s",
		[UNIT_JOULES] = "J",
		[UNIT_WATTS] = "W",
		[UNIT_CELSIUS] = "Cel",
		[UNIT_HERTZ] = "Hz",
		[UNIT_FLOP] = "{flop}"};
	const char *name = (size_t)s->unit < NR_UNITS && unit[s->unit] ? unit[s->unit] : "1";
	char text[32];

	snprintf(text, sizeof(text), "%s%s", name, s->per_second ? "/s" : "");
	json_str(j, "unit", s->as && s->as->unit ? s->as->unit : text);
}

/* Since when the counter counts; 0: it is not known. */
static int64_t counted_since(const struct otlp *o, const struct push_series *s)
{
	static const char *const of_job[] = {"tree", "group", "perf", "app", "collector"};
	static const char *const of_kernel[] = {"node", "cpu", "disk", "net", "ib"};

	for (size_t i = 0; i < ARRAY_SIZE(of_job); i++)
		if (!strcmp(s->table, of_job[i]))
			return s->node ? 0 : o->start_ns;
	for (size_t i = 0; i < ARRAY_SIZE(of_kernel); i++)
		if (!strcmp(s->table, of_kernel[i]))
			return s->node ? 0 : o->boot_ns;
	return 0;
}

static void add_time(struct json *j, const char *key, int64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)ns);
	json_str(j, key, text);
}

static void add_point(struct json *j, const struct push_point *p, int64_t since)
{
	json_object(j, NULL);
	add_attributes(j, p->series);
	if (since > 0 && since <= p->time_ns)
		add_time(j, "startTimeUnixNano", since);
	add_time(j, "timeUnixNano", p->time_ns);
	if (p->is_integer)
		add_time(j, "asInt", p->integer);
	else
		json_num(j, "asDouble", p->value);
	json_end_object(j);
}

static bool is_counter(const struct push_series *s)
{
	return s->kind == KIND_COUNTER && !s->per_second;
}

static bool is_sum(const struct push_series *s)
{
	return is_counter(s) || (s->as && s->as->attribute && *s->as->attribute == '+');
}

static bool same_metric(const struct push_series *a, const struct push_series *b)
{
	return a->node == b->node && is_sum(a) == is_sum(b) && is_counter(a) == is_counter(b) &&
		!strcmp(a->host, b->host) && !strcmp(a->name, b->name);
}

/* Points of one metric of one node; returns how many. */
static size_t add_metric(
	struct json *j, const struct otlp *o, const struct push_point *const *point, size_t nr)
{
	const struct push_series *s = point[0]->series;
	const char *prefix = o->push->options->prefix;
	char name[512];
	size_t n = 0;

	snprintf(name, sizeof(name), "%s%s", prefix ? prefix : s->as ? "" : PREFIX, s->name);
	json_object(j, NULL);
	json_name(j, "name", name);
	if (s->help && *s->help)
		json_name(j, "description", s->help);
	add_unit(j, s);
	json_object(j, is_sum(s) ? "sum" : "gauge");
	if (is_sum(s)) {
		json_int(j, "aggregationTemporality", CUMULATIVE);
		json_bool(j, "isMonotonic", is_counter(s));
	}
	json_array(j, "dataPoints");
	for (; n < nr && same_metric(point[n]->series, s); n++)
		add_point(j, point[n], is_counter(s) ? counted_since(o, point[n]->series) : 0);
	json_end_array(j);
	json_end_object(j);
	json_end_object(j);
	return n;
}

static int by_metric(const void *a, const void *b)
{
	const struct push_point *p = *(const struct push_point *const *)a,
				*q = *(const struct push_point *const *)b;
	const struct push_series *s = p->series, *t = q->series;
	int c = (s->node > t->node) - (s->node < t->node);

	if (!c)
		c = strcmp(s->host, t->host);
	if (!c)
		c = strcmp(s->name, t->name);
	if (!c)
		c = is_sum(s) - is_sum(t);
	if (!c)
		c = is_counter(s) - is_counter(t);
	return c ? c : (p > q) - (p < q); /* as they came: by time */
}

static int sort_points(struct otlp *o, const struct push_point *point, size_t nr)
{
	if (ARRAY_ROOM(o->order, o->order_cap, nr) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		o->order[i] = &point[i];
	if (nr)
		qsort(o->order, nr, sizeof(*o->order), by_metric);
	return 0;
}

static void add_scope(struct json *j)
{
	json_object(j, "scope");
	json_str(j, "name", "tacho");
	json_str(j, "version", TACHO_VERSION);
	json_end_object(j);
}

int otlp_body(struct otlp *o, const struct push_point *point, size_t nr, struct buf *out)
{
	int r = sort_points(o, point, nr);
	struct json j;

	if (r < 0)
		return r;
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_array(&j, "resourceMetrics");
	for (size_t i = 0; i < nr;) {
		const struct push_series *s = o->order[i]->series;

		json_object(&j, NULL);
		add_resource(&j, o, s->host);
		json_array(&j, "scopeMetrics");
		json_object(&j, NULL);
		add_scope(&j);
		json_array(&j, "metrics");
		while (i < nr && o->order[i]->series->node == s->node &&
			!strcmp(o->order[i]->series->host, s->host))
			i += add_metric(&j, o, o->order + i, nr - i);
		json_end_array(&j);
		json_end_object(&j);
		json_end_array(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	return out->err;
}
