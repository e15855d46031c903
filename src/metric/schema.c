/* The sets and metrics of one recording, in memory: see schema.h. */
#include "metric/schema.h"

#include "base/owned.h"

#include <string.h>

static const char *const availability_names[NR_AVAILABILITY] = {"available", "absent", "forbidden", "failed"};

struct schema *schema_new(void)
{
	return calloc(1, sizeof(struct schema));
}

static void set_release(struct schema_set *set)
{
	for (uint32_t i = 0; i < set->nr_metrics + set->nr_spare; i++) {
		free(set->metric[i].name);
		free(set->metric[i].help);
		free(set->metric[i].panel);
		free(set->metric[i].why);
	}
	free(set->metric);
	free(set->name);
	free(set->summary);
	free(set->domain_name);
}

struct schema *schema_free(struct schema *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->nr_sets; i++)
		set_release(&s->set[i]);
	free(s->set);
	free(s);
	return NULL;
}

struct schema_set *schema_add_set(struct schema *s, const char *name, const char *summary, const char *domain)
{
	struct schema_set *set = reallocarray(s->set, s->nr_sets + 1, sizeof(*set));
	int d = domain_from_name(domain, strlen(domain));

	if (!set)
		return NULL;
	s->set = set;
	set += s->nr_sets;
	*set = (struct schema_set){
		.name = strdup(name),
		.summary = strdup(summary),
		.domain = d < 0 ? NR_DOMAINS : (enum domain)d,
		.domain_name = strdup(domain),
	};
	if (!set->name || !set->summary || !set->domain_name) {
		set_release(set);
		return NULL;
	}
	s->nr_sets++;
	return set;
}

struct schema_metric *schema_add_metric(
	struct schema_set *set, const char *name, const char *help, const char *panel)
{
	uint32_t nr = set->nr_metrics;
	struct schema_metric *m = array_double(set->metric, nr, sizeof(*m));

	if (!m)
		return NULL;
	set->metric = m;
	m += nr;
	*m = (struct schema_metric){
		.name = strdup(name),
		.help = strdup(help),
		.panel = panel ? strdup(panel) : NULL,
		.scale = 1,
	};
	if (!m->name || !m->help || (panel && !m->panel)) {
		free(m->name);
		free(m->help);
		free(m->panel);
		return NULL;
	}
	set->nr_metrics++;
	return m;
}

int schema_name_metric(struct schema_set *set, const char *name, const char *help, enum metric_unit unit)
{
	struct schema_metric *m = &set->metric[set->nr_metrics];
	char *names[2];

	if (!set->nr_spare)
		return -ENOSPC;
	names[0] = strdup(name);
	names[1] = strdup(help);
	if (!names[0] || !names[1]) {
		free(names[0]);
		free(names[1]);
		return -ENOMEM;
	}
	free(m->name);
	free(m->help);
	m->name = names[0];
	m->help = names[1];
	m->unit = unit;
	m->availability = AVAILABLE;
	set->nr_metrics++;
	set->nr_spare--;
	return 0;
}

struct scaling metric_scaling(const struct schema_metric *m)
{
	return m->real ? (struct scaling){1, 1, true} : scaling_of(m->scale);
}

int schema_metric_why(struct schema_metric *m, enum availability availability, const char *why)
{
	char *copy = why ? strdup(why) : NULL;

	if (why && !copy)
		return -ENOMEM;
	free(m->why);
	m->why = copy;
	m->availability = availability;
	return 0;
}

const char *availability_name(enum availability a)
{
	return (size_t)a < NR_AVAILABILITY ? availability_names[a] : NULL;
}

int availability_from_name(const char *name, size_t len)
{
	for (int i = 0; i < NR_AVAILABILITY; i++)
		if (strlen(availability_names[i]) == len && !memcmp(availability_names[i], name, len))
			return i;
	return -ENOENT;
}

bool schema_find(const struct schema *s, const char *metric, uint32_t *ret_set, uint32_t *ret_col)
{
	for (uint32_t i = 0; i < s->nr_sets; i++)
		for (uint32_t j = 0; j < s->set[i].nr_metrics; j++)
			if (!strcmp(s->set[i].metric[j].name, metric)) {
				*ret_set = i;
				*ret_col = j;
				return true;
			}
	return false;
}

int schema_find_domain(const struct schema *s, enum domain domain)
{
	for (uint32_t i = 0; i < s->nr_sets; i++)
		if (s->set[i].domain == domain)
			return (int)i;
	return -1;
}
