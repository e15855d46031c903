/* A file of that tool: hosts, and under each of them its lists. A list that one host has is written for all
 * hosts, with nulls: the reader matches values by their place. A list that no host has is left out. */
#include "export/perfmon.h"

#include "base/json.h"
#include "base/owned.h"
#include "base/str.h"
#include "export/text.h"

#include <math.h>
#include <string.h>

struct face { /* what has a key of its own: a host, or a GPU of it */
	char *key;
	size_t host;
	const struct perfmon_series *ticks; /* the series whose ticks are the time stamps */
	const struct perfmon_origin *whole; /* of a GPU: all its lists are of that series; NULL: a host */
};

struct perfmon_output {
	struct perfmon *p;
	enum perfmon_file file;
	const char *const *always;
	bool *known; /* of each list: there is a value */
	struct face *face;
	size_t nr_faces;
	struct json json;
	struct outlet out;
};

/* ---- values ---- */

struct perfmon_cursor { /* reads a column of a series along the ticks of another */
	struct spool_reader ticks, cells;
	struct perfmon_tick tick;
	uint64_t cell;
	bool there, exact;
};

static int cursor_next(struct perfmon_cursor *c)
{
	int r = spool_reader_next(&c->ticks, &c->tick, sizeof(c->tick));

	c->there = r > 0;
	if (r > 0)
		r = spool_reader_next(&c->cells, &c->cell, sizeof(c->cell));
	return r;
}

static int cursor_open(struct perfmon_cursor *c, const struct perfmon *p, const struct perfmon_series *s,
	const struct perfmon_cells *cells, bool exact)
{
	c->there = false;
	c->exact = exact;
	if (!s)
		return 0;
	spool_reader_init(&c->ticks, &s->tick, &p->file);
	spool_reader_init(&c->cells, &cells->spool, &p->file);
	return cursor_next(c);
}

static int tick_compare(const struct perfmon_tick *a, const struct perfmon_tick *b)
{
	if (a->lap != b->lap)
		return a->lap < b->lap ? -1 : 1;
	return (a->elapsed > b->elapsed) - (a->elapsed < b->elapsed);
}

/* False: it has nothing there. */
static bool cursor_at(struct perfmon_cursor *c, const struct perfmon_tick *t, uint64_t *ret, int *err)
{
	while (*err >= 0 && c->there && tick_compare(&c->tick, t) < 0)
		*err = cursor_next(c);
	*ret = c->cell;
	return *err >= 0 && c->there && !tick_compare(&c->tick, t);
}

static bool as_whole(const struct perfmon_cursor *c, uint64_t cell, int64_t *ret)
{
	memcpy(ret, &cell, sizeof(cell));
	return c->exact && *ret != INT64_MIN;
}

static double as_real(const struct perfmon_cursor *c, uint64_t cell)
{
	int64_t whole;
	double real;

	memcpy(&real, &cell, sizeof(cell));
	if (!c->exact)
		return real;
	return as_whole(c, cell, &whole) ? (double)whole : NAN;
}

static void put_real(struct json *j, double v, bool whole)
{
	char text[EXPORT_TEXT];

	if (whole)
		v = round(v);
	if (!isfinite(v))
		json_null(j, NULL);
	else if (whole && fabs(v) < 9e18)
		json_int(j, NULL, (int64_t)v);
	else
		json_raw(j, NULL, text, format_real(text, v));
}

/* A value, with what is added to it; both must be known. */
static int put_value(
	struct json *j, struct perfmon_cursor *c, size_t nr, const struct perfmon_tick *t, bool whole)
{
	uint64_t cell[2] = {0};
	int64_t a = 0, b = 0, sum;
	bool there = true;
	int err = 0;

	for (size_t i = 0; i < nr; i++)
		there &= cursor_at(&c[i], t, &cell[i], &err);
	if (err < 0)
		return err;
	if (!there)
		json_null(j, NULL);
	else if (as_whole(&c[0], cell[0], &a) && (nr == 1 || as_whole(&c[1], cell[1], &b)) &&
		!__builtin_add_overflow(a, b, &sum))
		json_int(j, NULL, sum);
	else
		put_real(j, as_real(&c[0], cell[0]) + (nr > 1 ? as_real(&c[1], cell[1]) : 0), whole);
	return 0;
}

/* ---- series and columns ---- */

static const struct perfmon_origin *find_column(
	const struct perfmon *p, size_t list, bool second, size_t *ret_column)
{
	*ret_column = 0;
	for (size_t i = 0; i < p->nr_origins; i++)
		for (*ret_column = 0; *ret_column < p->origin[i].nr_columns; ++*ret_column) {
			const struct perfmon_column *c = &p->origin[i].column[*ret_column];

			if (c->list == list && c->second == second)
				return &p->origin[i];
		}
	return NULL;
}

/* NULL: there is none. `instance` NULL: any. */
static const struct perfmon_series *find_series(
	const struct perfmon_origin *o, size_t host, const char *instance)
{
	for (size_t i = 0; i < o->nr_series; i++) {
		const struct perfmon_series *s =
			o->series[(i + host) % o->nr_series]; /* mostly the first one */

		if (s->host == host && (!instance || !strcmp(s->instance, instance)))
			return s;
	}
	return NULL;
}

static bool is_known(const struct perfmon *p, size_t list, bool second)
{
	size_t column;
	const struct perfmon_origin *o = find_column(p, list, second, &column);

	for (size_t i = 0; o && i < o->nr_series; i++)
		if (o->series[i]->cells[column].known)
			return true;
	return false;
}

/* ---- lists ---- */

static int hand_over(struct perfmon_output *w, size_t least)
{
	struct buf *text = &w->p->text;
	int r = text->err;

	if (r < 0 || text->len < least)
		return r;
	r = outlet_add(&w->out, text->data, text->len);
	buf_reset(text);
	return r;
}

static int cursors_open(struct perfmon_output *w, const struct face *face, size_t list, const char *instance,
	struct perfmon_cursor c[static 2], size_t nr)
{
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		size_t column;
		const struct perfmon_origin *o = find_column(w->p, list, i > 0, &column);
		const struct perfmon_series *s =
			o == face->whole ? face->ticks : find_series(o, face->host, instance);

		r = cursor_open(&c[i], w->p, s, s ? &s->cells[column] : NULL, o->column[column].exact);
	}
	return r;
}

static int put_list(struct perfmon_output *w, const struct face *face, size_t list, const char *instance)
{
	const struct perfmon_list *l = &w->p->list[list];
	struct spool_reader ticks;
	struct perfmon_tick tick;
	struct perfmon_cursor c[2];
	size_t nr = l->table2 ? 2 : 1;
	int r = cursors_open(w, face, list, instance, c, nr);

	json_array(&w->json, instance ? instance : l->name);
	spool_reader_init(&ticks, &face->ticks->tick, &w->p->file);
	while (r >= 0 && (r = spool_reader_next(&ticks, &tick, sizeof(tick))) > 0) {
		r = put_value(&w->json, c, nr, &tick, l->look == PERFMON_WHOLE);
		if (r >= 0)
			r = hand_over(w, OUTLET_BUFFER);
	}
	json_end_array(&w->json);
	return r;
}

/* One list, or one for each instance that a host has. */
static int put_lists(struct perfmon_output *w, const struct face *face, size_t list)
{
	size_t column;
	const struct perfmon_origin *o = find_column(w->p, list, false, &column);
	int r = 0;

	if (w->p->list[list].name)
		return put_list(w, face, list, NULL);
	for (size_t i = 0; i < o->nr_series && r >= 0; i++) {
		bool again = !o->series[i]->cells[column].known;

		for (size_t before = 0; before < i && !again; before++)
			again = o->series[before]->cells[column].known &&
				!strcmp(o->series[before]->instance, o->series[i]->instance);
		if (!again)
			r = put_list(w, face, list, o->series[i]->instance);
	}
	return r;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static int put_group(struct perfmon_output *w, const struct face *face, const char *group)
{
	const struct perfmon *p = w->p;
	int r = 0;

	if (group)
		json_object(&w->json, group);
	for (size_t i = 0; i < p->nr_lists && r >= 0; i++)
		if (p->list[i].file == w->file && is_same(p->list[i].group, group) && w->known[i])
			r = put_lists(w, face, i);
	if (group)
		json_end_object(&w->json);
	return r;
}

static bool is_always(const struct perfmon_output *w, const char *group)
{
	for (size_t i = 0; w->always && w->always[i]; i++)
		if (is_same(w->always[i], group))
			return true;
	return false;
}

/* Each once, in the order of the table. */
static int put_groups(struct perfmon_output *w, const struct face *face)
{
	const struct perfmon *p = w->p;
	int r = put_group(w, face, NULL);

	for (size_t i = 0; w->always && w->always[i] && r >= 0; i++)
		r = put_group(w, face, w->always[i]);
	for (size_t i = 0; i < p->nr_lists && r >= 0; i++) {
		const char *group = p->list[i].group;
		bool again = !group || p->list[i].file != w->file || is_always(w, group) || !w->known[i];

		for (size_t before = 0; before < i && !again; before++)
			again = p->list[before].file == w->file && is_same(p->list[before].group, group) &&
				w->known[before];
		if (!again)
			r = put_group(w, face, group);
	}
	return r;
}

/* ---- hosts ---- */

static int put_times(struct perfmon_output *w, const struct face *face)
{
	struct spool_reader ticks;
	struct perfmon_tick tick;
	int r = 0;

	json_array(&w->json, "time_stamps");
	spool_reader_init(&ticks, &face->ticks->tick, &w->p->file);
	while (r >= 0 && (r = spool_reader_next(&ticks, &tick, sizeof(tick))) > 0) {
		int64_t s = tick.time / NSEC_PER_SEC - (tick.time % NSEC_PER_SEC < 0);
		int64_t part = tick.time - s * NSEC_PER_SEC;
		char text[48];
		int len = snprintf(text, sizeof(text), "%lld.%09lld", (long long)s, (long long)part);

		while (text[len - 1] == '0')
			len--;
		json_raw(&w->json, NULL, text, (size_t)(text[len - 1] == '.' ? len - 1 : len));
		r = hand_over(w, OUTLET_BUFFER);
	}
	json_end_array(&w->json);
	return r;
}

static int put_spool(struct perfmon_output *w, const struct spool *s)
{
	int r = hand_over(w, 0);

	return r < 0 ? r : spool_pour(s, &w->p->file, &w->out);
}

static int put_processes(struct perfmon_output *w, const struct perfmon_host *host)
{
	int r;

	json_object(&w->json, "parent_proc_md");
	r = put_spool(w, &host->parents);
	json_end_object(&w->json);
	json_array(&w->json, "child_proc_md");
	if (r >= 0)
		r = put_spool(w, &host->children);
	json_end_array(&w->json);
	return r;
}

static int put_file(struct perfmon_output *w)
{
	struct json *j = &w->json;
	int r = 0;

	json_object(j, NULL);
	json_array(j, "host_names");
	for (size_t i = 0; i < w->nr_faces; i++)
		json_str(j, NULL, w->face[i].key);
	json_end_array(j);
	json_num(j, "sampling_frequency", w->p->interval);
	for (size_t i = 0; i < w->nr_faces && r >= 0; i++) {
		const struct face *face = &w->face[i];

		json_object(j, face->key);
		r = put_times(w, face);
		if (r >= 0)
			r = put_groups(w, face);
		if (r >= 0 && w->file == PERFMON_CPU)
			r = put_processes(w, &w->p->host[face->host]);
		json_end_object(j);
	}
	json_end_object(j);
	buf_addch(&w->p->text, '\n');
	return r < 0 ? r : hand_over(w, 0);
}

/* ---- what is in the file ---- */

static int add_face(struct perfmon_output *w, size_t host, const struct perfmon_series *ticks,
	const struct perfmon_origin *whole)
{
	struct face *more = ARRAY_ADD(w->face, w->nr_faces);
	const char *key = w->p->host[host].key, *gpu = whole ? ticks->instance : NULL;
	int n;

	if (!more)
		return -ENOMEM;
	*more = (struct face){.host = host, .ticks = ticks, .whole = whole};
	/* "nvidia-0" of node1 is gpu-0.node1 */
	n = gpu ? asprintf(&more->key, "gpu-%s.%s", gpu + strcspn(gpu, "0123456789"), key)
		: asprintf(&more->key, "%s", key);
	if (n < 0)
		more->key = NULL;
	return n < 0 ? -ENOMEM : 0;
}

/* Whether it has columns of this file; *ret_known: with some value in the series. */
static bool has_columns(const struct perfmon_output *w, const struct perfmon_origin *o,
	const struct perfmon_series *s, bool *ret_known)
{
	bool has = false;

	for (size_t i = 0; i < o->nr_columns; i++) {
		if (w->p->list[o->column[i].list].file != w->file)
			continue;
		has = true;
		*ret_known |= s && s->cells[i].known;
	}
	return has;
}

/* The longest series has every tick. */
static int add_host(struct perfmon_output *w, size_t host)
{
	const struct perfmon_series *ticks = NULL;
	bool known = w->file == PERFMON_CPU;

	for (size_t i = 0; i < w->p->nr_origins; i++) {
		const struct perfmon_origin *o = &w->p->origin[i];

		for (size_t j = 0; j < o->nr_series; j++) {
			const struct perfmon_series *s = o->series[j];

			if (s->host == host && has_columns(w, o, s, &known) && (!ticks || s->nr > ticks->nr))
				ticks = s;
		}
	}
	return ticks && known ? add_face(w, host, ticks, NULL) : 0;
}

static int add_gpus(struct perfmon_output *w, size_t host)
{
	int r = 0;

	for (size_t i = 0; i < w->p->nr_origins; i++) {
		const struct perfmon_origin *o = &w->p->origin[i];

		for (size_t s = 0; s < o->nr_series && r >= 0; s++) {
			bool known = false;

			if (o->series[s]->host == host && has_columns(w, o, o->series[s], &known) && known)
				r = add_face(w, host, o->series[s], o);
		}
	}
	return r;
}

static int writing_begin(struct perfmon_output *w)
{
	int r = 0;

	w->known = calloc(MAX(w->p->nr_lists, (size_t)1), sizeof(*w->known));
	if (!w->known)
		return -ENOMEM;
	for (size_t i = 0; i < w->p->nr_lists; i++)
		w->known[i] = is_known(w->p, i, false) && (!w->p->list[i].table2 || is_known(w->p, i, true));
	for (size_t i = 0; i < w->p->nr_hosts && r >= 0; i++)
		r = w->file == PERFMON_GPU ? add_gpus(w, i) : add_host(w, i);
	return r;
}

static void writing_end(struct perfmon_output *w, int fd, int *r)
{
	outlet_release(&w->out);
	if (fd >= 0 && close(fd) < 0 && *r >= 0)
		*r = -errno;
	for (size_t i = 0; i < w->nr_faces; i++)
		free(w->face[i].key);
	free(w->face);
	free(w->known);
}

int perfmon_write(struct perfmon *p, enum perfmon_file file, const char *name, const char *const *always,
	bool without_hosts)
{
	struct perfmon_output w = {.p = p, .file = file, .always = always};
	int r = writing_begin(&w), fd = -1;

	if (r >= 0 && (w.nr_faces || without_hosts)) {
		buf_reset(&p->text);
		json_init(&w.json, &p->text, false);
		r = fd = legacy_csv_create(p->job, name);
		if (r >= 0)
			r = outlet_open(&w.out, fd);
		if (r >= 0)
			r = put_file(&w);
		if (r >= 0)
			r = outlet_flush(&w.out);
	}
	writing_end(&w, fd, &r);
	return r;
}

static void put_events(struct perfmon_output *w, const char *group)
{
	const struct perfmon *p = w->p;

	json_object(&w->json, group);
	for (size_t i = 0; i < p->nr_lists; i++)
		if (p->list[i].file == w->file && is_same(p->list[i].group, group) && w->known[i] &&
			p->list[i].name)
			json_str(&w->json, p->list[i].name, p->list[i].name);
	json_end_object(&w->json);
}

int perfmon_write_events(struct perfmon *p, const char *const *groups)
{
	struct perfmon_output w = {.p = p, .file = PERFMON_PERF};
	int r = writing_begin(&w), fd = -1;

	buf_reset(&p->text);
	json_init(&w.json, &p->text, false);
	json_object(&w.json, NULL);
	for (size_t i = 0; groups[i] && r >= 0; i++)
		put_events(&w, groups[i]);
	json_end_object(&w.json);
	buf_addch(&p->text, '\n');
	if (r >= 0)
		r = fd = legacy_csv_create(p->job, ".perf_event_list.json");
	if (r >= 0)
		r = outlet_open(&w.out, fd);
	if (r >= 0)
		r = hand_over(&w, 0);
	if (r >= 0)
		r = outlet_flush(&w.out);
	writing_end(&w, fd, &r);
	return r;
}
