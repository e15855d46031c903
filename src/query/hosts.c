/* Recordings sorted by host once, so that thousands take no longer than they must. */
#include "query/hosts.h"

#include <math.h>
#include <string.h>

struct named {
	const char *name;
	size_t part;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->part < y->part ? -1 : x->part > y->part;
}

static void add_figure(double *to, const struct summary *s, enum figure_id id)
{
	if (has_figure(s, id))
		*to = (isnan(*to) ? 0 : *to) + s->figure[id].value;
}

int hosts_make(const struct summary *s, struct hosts *ret)
{
	size_t nr = MAX(s->nr_nodes, (size_t)1);
	_cleanup_(freep) struct named *all = calloc(nr, sizeof(*all));

	*ret = (struct hosts){
		.host = calloc(nr, sizeof(*ret->host)), .of = calloc(nr, sizeof(*ret->of)), .nr_parts = nr};
	if (!all || !ret->host || !ret->of) {
		hosts_release(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++) {
		const char *name = hosts_part(s, i)->host;

		all[i] = (struct named){name ? name : "", i};
	}
	qsort(all, nr, sizeof(*all), by_name);
	/* First the first recording of each host, then the numbers of these in order. */
	for (size_t i = 0; i < nr; i++)
		ret->of[all[i].part] =
			i && !strcmp(all[i].name, all[i - 1].name) ? ret->of[all[i - 1].part] : all[i].part;
	for (size_t i = 0; i < nr; i++) {
		if (ret->of[i] == i) {
			const char *name = hosts_part(s, i)->host;

			ret->host[ret->nr] = (struct host){name ? name : "", i, NAN, NAN};
			ret->of[i] = ret->nr++;
		} else {
			ret->of[i] = ret->of[ret->of[i]];
		}
	}
	for (size_t i = 0; i < nr; i++) {
		struct host *host = &ret->host[ret->of[i]];

		add_figure(&host->cpu_s, hosts_part(s, i), FIG_CPU);
		add_figure(&host->memory_bytes, hosts_part(s, i), FIG_MEMORY);
	}
	return 0;
}

void hosts_release(struct hosts *h)
{
	free(h->host);
	free(h->of);
	*h = (struct hosts){0};
}
