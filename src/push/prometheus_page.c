/* The last values as text: see prometheus_page.h. */
#include "push/prometheus_page.h"

#include "base/owned.h"
#include "base/str.h"

#include <string.h>

#define KEPT_MS INT64_C(300000) /* of what is gone */

int prometheus_keep(struct prometheus_all *a, const struct push_point *point, size_t nr)
{
	int64_t newest = INT64_MIN;

	for (size_t i = 0; i < nr; i++) {
		struct prometheus_series *s = prometheus_series_of(a, point[i].series);

		if (!s)
			return -ENOMEM;
		newest = MAX(newest, point[i].time_ns / NSEC_PER_MSEC);
		if (s->there && point[i].time_ns < s->last.time_ns)
			continue;
		s->there = true;
		s->step = point[i].step;
		s->last_ms = point[i].time_ns / NSEC_PER_MSEC;
		s->last = point[i];
		s->last.series = NULL; /* it may be gone before the value is shown */
	}
	return nr ? prometheus_purge(a, add_clamped(newest, -KEPT_MS)) : 0;
}

static int by_family(const void *a, const void *b)
{
	const struct prometheus_series *x = *(struct prometheus_series *const *)a;
	const struct prometheus_series *y = *(struct prometheus_series *const *)b;

	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Those that have a value in one of the last two steps of their node (of the last one a part may be still to
 * come), by family. */
static struct prometheus_series **choose(const struct prometheus_all *a, size_t *ret_nr)
{
	struct prometheus_series **list = calloc(a->nr + 1, sizeof(struct prometheus_series *));
	int64_t *newest = NULL;
	uint32_t nodes = 0;

	*ret_nr = 0;
	for (size_t i = 0; list && i < a->nr; i++) {
		const struct prometheus_series *s = a->series[i];
		int64_t *more = array_reach(newest, &nodes, s->node, sizeof(*newest));

		if (!more)
			break;
		newest = more;
		if (s->there && s->step > newest[s->node])
			newest[s->node] = s->step;
	}
	for (size_t i = 0; list && i < a->nr; i++) {
		struct prometheus_series *s = a->series[i];
		bool fits = !a->family[s->family].counter || s->last.value >= 0;

		if (s->there && fits && s->node < nodes && s->step + 1 >= newest[s->node])
			list[(*ret_nr)++] = s;
	}
	free(newest);
	if (list)
		qsort(list, *ret_nr, sizeof(struct prometheus_series *), by_family);
	return list;
}

/* Behind # HELP the older format knows no quotation marks. */
static void add_help(struct buf *out, const char *help, bool openmetrics)
{
	for (const char *p = help; *p && !openmetrics; p++)
		if (*p == '\n')
			buf_adds(out, "\\n");
		else
			buf_addf(out, "%s%c", *p == '\\' ? "\\" : "", *p);
	if (openmetrics)
		openmetrics_add_escaped(out, help, strlen(help));
	buf_addch(out, '\n');
}

static void add_heading(struct buf *out, const struct prometheus_family *f, bool openmetrics)
{
	const char *name = openmetrics ? f->name : f->sample;

	buf_addf(out, "# TYPE %s %s\n", name, f->counter ? "counter" : "gauge");
	if (openmetrics && *f->unit_text)
		buf_addf(out, "# UNIT %s %s\n", name, f->unit_text);
	buf_addf(out, "# HELP %s ", name);
	add_help(out, f->help, openmetrics);
}

void prometheus_page(struct buf *out, const struct prometheus_all *a, bool openmetrics)
{
	struct prometheus_series **list;
	size_t nr, family = SIZE_MAX;

	list = choose(a, &nr);
	if (!list)
		out->err = -ENOMEM;
	for (size_t i = 0; list && i < nr; i++) {
		const struct prometheus_series *s = list[i];

		if (s->family != family)
			add_heading(out, &a->family[s->family], openmetrics);
		family = s->family;
		prometheus_series_text(out, a, s);
		if (s->last.is_integer)
			buf_addf(out, " %lld", (long long)s->last.integer);
		else
			buf_addch(out, ' '), openmetrics_add_real(out, s->last.value);
		buf_addch(out, '\n');
	}
	free(list);
	if (openmetrics)
		buf_adds(out, "# EOF\n");
}
