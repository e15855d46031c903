/* The line protocol: measurement,tags fields time. See influx.h.
 *
 * A line has the values of one row of a table, so that what belongs together is one row for the reader, too:
 *
 * 	tacho_disk,host=n1,instance=sda,run=train disk.read.rate=5.5,disk.busy_ratio=0.25 1700000000000000000
 *
 * Fields are called as the metrics are everywhere else. The type of a field is that of its first value in
 * the database for ever, and a line with another one is refused. So only counters of things and bytes,
 * which are integers however they are pushed, are written as such (5i); all else is real, since a mean over
 * a window is. Backslashes cannot stand before what they would escape, nor at the end: they are \x5c there,
 * and control characters are \xNN. */
#include "push/influx.h"

#include "base/owned.h"
#include "base/str.h"
#include "export/text.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "tacho_"

static bool is_special(char c, const char *special)
{
	return c && strchr(special, c);
}

static void add_escaped(struct buf *out, const char *text, const char *special)
{
	for (const char *p = text; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 127 ||
			(*p == '\\' && (!p[1] || p[1] == '\\' || is_special(p[1], special))))
			buf_addf(out, "\\x%02x", (unsigned char)*p);
		else if (is_special(*p, special))
			buf_addf(out, "\\%c", *p);
		else
			buf_addch(out, *p);
	}
}

static void add_tag_text(struct buf *out, const char *text)
{
	add_escaped(out, text, ",= ");
}

static char *escaped(const char *text, const char *special)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_reserve(&b, 1); /* allocates even for an empty text */
	add_escaped(&b, text, special);
	if (!b.err)
		return (char *)b.data;
	buf_release(&b);
	return NULL;
}

/* ---- tags ---- */

static const char of_host[] = "host", of_instance[] = "instance", of_pid[] = "pid";

static bool has_tag(const struct influx_lines *l, const char *key)
{
	for (size_t i = 0; i < l->nr; i++)
		if (!strcmp(l->tag[i].key, key))
			return true;
	return false;
}

/* A value that is empty is none: InfluxDB does not take it. */
static int add_tag(struct influx_lines *l, const char *key, const char *value)
{
	char *name = escaped(key, ",= ");
	struct influx_tag *t;

	if (name && ((value && !*value) || has_tag(l, name))) {
		free(name);
		return 0;
	}
	t = name ? ARRAY_ADD(l->tag, l->nr) : NULL;
	if (!t) {
		free(name);
		return -ENOMEM;
	}
	t->key = name;
	t->value = value ? escaped(value, ",= ") : NULL;
	return value && !t->value ? -ENOMEM : 0;
}

static int compare_tags(const void *a, const void *b)
{
	return strcmp(((const struct influx_tag *)a)->key, ((const struct influx_tag *)b)->key);
}

static int check_label(const char *key, struct buf *reterr)
{
	static const char *const taken[] = {"time", "_measurement", "_field", "_time", "_value"};

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (!strcmp(key, taken[i])) {
			buf_addf(reterr,
				"InfluxDB has another use for the tag '%s': give the label another name",
				key);
			return -EINVAL;
		}
	return 0;
}

int influx_lines_make(struct influx_lines *l, const struct push *p, struct buf *reterr)
{
	const struct push_options *o = p->options;
	int r = 0;

	*l = (struct influx_lines){.measurement = escaped(o->prefix ? o->prefix : PREFIX, ", ")};
	if (!l->measurement)
		return -ENOMEM;
	for (size_t i = 0; i < o->nr_labels && r >= 0; i++) {
		r = check_label(o->label[i].key, reterr);
		if (r >= 0)
			r = add_tag(l, o->label[i].key, o->label[i].value);
	}
	if (r >= 0)
		r = add_tag(l, of_host, NULL);
	if (r >= 0)
		r = add_tag(l, of_instance, NULL);
	if (r >= 0)
		r = add_tag(l, of_pid, NULL);
	if (r >= 0)
		r = add_tag(l, "run", p->run->name ? p->run->name : "");
	if (r >= 0)
		r = add_tag(l, "job", p->run->job ? p->run->job : "");
	if (r >= 0)
		qsort(l->tag, l->nr, sizeof(*l->tag), compare_tags);
	return r;
}

void influx_lines_release(struct influx_lines *l)
{
	for (size_t i = 0; i < l->nr; i++) {
		free(l->tag[i].key);
		free(l->tag[i].value);
	}
	free(l->tag);
	free(l->measurement);
	*l = (struct influx_lines){0};
}

/* ---- lines ---- */

static void add_row_tag(struct buf *out, const char *key, const struct push_series *s)
{
	const char *text = !strcmp(key, of_host) ? s->host : !strcmp(key, of_instance) ? s->instance : NULL;

	if (!strcmp(key, of_pid) && s->pid)
		buf_addf(out, ",%s=%lld", key, (long long)s->pid);
	if (!text || !*text)
		return;
	buf_addf(out, ",%s=", key);
	add_tag_text(out, text);
}

static void add_head(const struct influx_lines *l, const struct push_series *s, struct buf *out)
{
	buf_adds(out, l->measurement);
	add_escaped(out, s->table, ", ");
	for (size_t i = 0; i < l->nr; i++) {
		if (l->tag[i].value)
			buf_addf(out, ",%s=%s", l->tag[i].key, l->tag[i].value);
		else
			add_row_tag(out, l->tag[i].key, s);
	}
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_row(const struct push_point *a, const struct push_point *b)
{
	const struct push_series *s = a->series, *t = b->series;

	return a->time_ns == b->time_ns && s->node == t->node && s->pid == t->pid &&
		same_text(s->table, t->table) && same_text(s->instance, t->instance) &&
		same_text(s->host, t->host);
}

static bool is_whole(const struct push_series *s)
{
	return s->kind == KIND_COUNTER && !s->per_second &&
		(s->unit == UNIT_COUNT || s->unit == UNIT_BYTES || s->unit == UNIT_FLOP);
}

static void add_value(const struct push_point *p, struct buf *out)
{
	char text[EXPORT_TEXT];

	if (p->is_integer)
		buf_addf(out, is_whole(p->series) ? "%lldi" : "%lld", (long long)p->integer);
	else
		buf_add(out, text, format_real(text, p->value));
}

size_t influx_lines_add(
	const struct influx_lines *l, const struct push_point *point, size_t nr, struct buf *out)
{
	size_t lines = 0;

	for (size_t i = 0; i < nr; i++) {
		bool begins = !i || !same_row(&point[i - 1], &point[i]);

		if (begins && i)
			buf_addf(out, " %lld\n", (long long)point[i - 1].time_ns);
		if (begins)
			add_head(l, point[i].series, out);
		buf_addch(out, begins ? ' ' : ',');
		add_tag_text(out, point[i].series->name);
		buf_addch(out, '=');
		add_value(&point[i], out);
		lines += begins;
	}
	if (nr)
		buf_addf(out, " %lld\n", (long long)point[nr - 1].time_ns);
	return lines;
}
