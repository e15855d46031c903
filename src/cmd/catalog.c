/* Gathers rows, so that the printers of `tacho metrics` need not know where a row comes from. */
#include "cmd/catalog.h"

#include "cmd/self_test.h"
#include "collect/collector.h"
#include "query/derived.h"

#include <string.h>

struct catalog_filter {
	int nr;
	char **word;
};

static bool section_matches(const struct catalog_filter *f, const struct catalog_section *s)
{
	for (int i = 0; i < f->nr; i++)
		if (!strcmp(f->word[i], s->name) || (s->domain && !strcmp(f->word[i], s->domain)))
			return true;
	return !f->nr;
}

static bool name_matches(const struct catalog_filter *f, const char *name)
{
	for (int i = 0; i < f->nr; i++)
		if (strstr(name, f->word[i]))
			return true;
	return false;
}

/* Adds the section to the catalog unless nothing in it matches; its rows are taken in any case. */
static void keep_matching(struct catalog *c, struct catalog_section *s, const struct catalog_filter *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_rows; i++)
		if (section_matches(f, s) || name_matches(f, s->row[i].name))
			s->row[kept++] = s->row[i];
	s->nr_rows = kept;
	if (kept)
		c->section[c->nr_sections++] = *s;
	else
		free(s->row);
}

/* Why all of it is missing, when that is so. */
static const char *why_none(const struct self_test_source *here)
{
	enum availability state = self_test_state(here);

	return state == AVAILABLE || state == NR_AVAILABILITY ? NULL : here->metric[0].reason;
}

static const char *why_missing(const struct self_test_metric *here)
{
	return here->state == AVAILABLE ? NULL : here->reason;
}

/* `here` may be NULL: the machine was not looked at. */
static int add_collector(struct catalog *c, const struct collector *from, const struct self_test_source *here,
	const struct catalog_filter *f)
{
	struct catalog_section s = {
		.name = from->name, .summary = from->summary, .domain = domain_name(from->domain)};

	s.row = calloc(from->nr_metrics, sizeof(*s.row));
	if (!s.row)
		return -ENOMEM;
	s.why = here ? why_none(here) : NULL;
	s.nr_rows = from->nr_metrics;
	for (size_t i = 0; i < from->nr_metrics; i++) {
		const struct metric *m = &from->metric[i];

		s.row[i] = (struct catalog_row){.name = m->name,
			.help = m->help,
			.panel = m->panel,
			.unit = m->unit,
			.kind = m->kind,
			.fold = m->fold,
			.tier = m->tier,
			.on_request = m->on_request,
			.why = here ? why_missing(&here->metric[i]) : NULL};
	}
	keep_matching(c, &s, f);
	return 0;
}

static int add_derived(struct catalog *c, const struct catalog_filter *f)
{
	struct catalog_section s = {
		.name = "derived", .summary = "computed from the others when a recording is read"};

	s.row = calloc(nr_derived, sizeof(*s.row));
	if (!s.row)
		return -ENOMEM;
	s.nr_rows = nr_derived;
	for (size_t i = 0; i < nr_derived; i++)
		s.row[i] = (struct catalog_row){.name = derived[i].name,
			.help = derived[i].help,
			.panel = derived[i].panel,
			.unit = derived[i].unit,
			.per_second = derived[i].per_second,
			.kind = derived[i].kind,
			.fold = derived[i].fold,
			.expression = derived[i].expression};
	keep_matching(c, &s, f);
	return 0;
}

int catalog_init(struct catalog *c, int nr_words, char **word, bool with_derived, struct env *env)
{
	struct catalog_filter f = {.nr = nr_words, .word = word};
	size_t nr = 0;
	int r = 0;

	while (collectors[nr])
		nr++;
	*c = (struct catalog){.section = calloc(nr + 1, sizeof(*c->section))};
	if (!c->section)
		return -ENOMEM;
	if (env)
		r = self_test_look(env, &c->here);
	for (size_t i = 0; i < nr && r == 0; i++)
		r = add_collector(c, collectors[i], c->here ? &c->here->source[i] : NULL, &f);
	if (r == 0 && with_derived)
		r = add_derived(c, &f);
	if (r < 0)
		catalog_release(c);
	return r;
}

void catalog_release(struct catalog *c)
{
	for (size_t i = 0; i < c->nr_sections; i++)
		free(c->section[i].row);
	free(c->section);
	self_test_free(c->here);
	*c = (struct catalog){0};
}
