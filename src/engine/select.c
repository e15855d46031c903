/* What is recorded: the rows chosen with -m, and among them those that this machine has.
 *
 * A word adds (`perf`, `+fds`) or removes (`-pss`) the rows it names: a whole metric name, a leading part of
 * it
 * ("proc.mem"), its last part ("fds"), a collector, or a family below that costs one reading. `all` and
 * `none` start over. What is not chosen gets no column, and a file that no chosen row needs is never opened.
 */
#include "engine/internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *word, *prefix; /* the family's rows have names that begin so */
} family[] = {
	{"pss", "proc.mem.pss"},
	{"pss", "proc.mem.private"},
	{"pss", "proc.mem.swap_pss"},
	{"pss", "proc.smaps"},
	{"uss", "proc.mem.private"},
	{"smaps", "proc.mem.pss"},
	{"smaps", "proc.mem.private"},
	{"smaps", "proc.mem.swap_pss"},
	{"smaps", "proc.smaps"},
	{"smaps", "proc.mem.locked"},
	{"smaps", "proc.mem.anon_huge"},
	{"io", "proc.io"},
	{"switches", "proc.switches"},
	{"faults", "proc.faults"},
};

static bool word_is(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(word, name, len);
}

static bool word_names(const char *word, size_t len, const struct collector *c, const struct metric *m)
{
	const char *last = strrchr(m->name, '.');

	if (word_is(word, len, "all") || word_is(word, len, c->name) || word_is(word, len, m->name))
		return true;
	if (last && word_is(word, len, last + 1))
		return true;
	if (!strncmp(m->name, word, len) && m->name[len] == '.')
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(family); i++)
		if (word_is(word, len, family[i].word) && str_starts(m->name, family[i].prefix))
			return true;
	return false;
}

/* Applies one signed word to the choice; returns how many rows it named. */
static unsigned apply(const char *word, size_t len, bool add, bool chosen[SETS_MAX][METRICS_MAX])
{
	unsigned named = 0;

	if (word_is(word, len, "none")) {
		memset(chosen, 0, sizeof(bool) * SETS_MAX * METRICS_MAX);
		return 1;
	}
	for (size_t c = 0; collectors[c]; c++)
		for (size_t i = 0; i < collectors[c]->nr_metrics; i++)
			if (word_names(word, len, collectors[c], &collectors[c]->metric[i])) {
				chosen[c][i] = add;
				named++;
			}
	return named;
}

static const char *nearest(const char *word)
{
	const char *best = "process";
	unsigned least = 64;

	for (size_t c = 0; collectors[c]; c++) {
		unsigned d = str_distance(word, collectors[c]->name);

		if (d < least) {
			least = d;
			best = collectors[c]->name;
		}
		for (size_t i = 0; i < collectors[c]->nr_metrics; i++) {
			const char *name = collectors[c]->metric[i].name, *last = strrchr(name, '.');

			d = MIN(str_distance(word, name), last ? str_distance(word, last + 1) : 64);
			if (d < least) {
				least = d;
				best = name;
			}
		}
	}
	return best;
}

static int choose(
	const struct engine_options *opt, bool chosen[SETS_MAX][METRICS_MAX], char *err, size_t err_size)
{
	for (size_t c = 0; collectors[c]; c++)
		for (size_t i = 0; i < collectors[c]->nr_metrics; i++)
			chosen[c][i] = !collectors[c]->metric[i].on_request;
	for (size_t w = 0; w < opt->nr_metrics; w++) {
		for (const char *p = opt->metrics[w]; *p;) {
			size_t len = strcspn(p, ",");
			bool sign = *p == '-' || *p == '+';

			if (len > sign && !apply(p + sign, len - sign, *p != '-', chosen)) {
				char word[64];

				snprintf(word, sizeof(word), "%.*s", (int)MIN(len - sign, 63), p + sign);
				snprintf(err, err_size,
					"there is no metric or group '%s'; did you mean '%s'? `tacho "
					"metrics` lists them",
					word, nearest(word));
				return -EINVAL;
			}
			p += len + (p[len] == ',');
		}
	}
	return 0;
}

/* With --children=no what waited-for children used is left out, where the kernel keeps it apart. */
static bool is_childrens(const struct metric *m)
{
	return strstr(m->name, ".children_") != NULL;
}

static int add_metric(struct engine *e, struct schema_set *set, const struct metric *m, int probe,
	const struct trouble *why)
{
	struct schema_metric *s = schema_add_metric(set, m->name, m->help, m->panel);
	char text[512];

	if (!s)
		return -ENOMEM;
	s->kind = m->kind;
	s->fold = m->fold;
	s->unit = m->unit;
	s->tier = m->tier;
	s->scale = scale_factor(m->scale, e->env->page_size, e->env->clock_tick);
	if (probe < 0)
		snprintf(text, sizeof(text), "%s%s%s", why->reason, why->remedy ? ": " : "",
			why->remedy ? why->remedy : "");
	if (probe < 0)
		return schema_metric_why(s, probe == -EACCES ? FORBIDDEN : ABSENT, text);
	return 0;
}

static int add_set(struct engine *e, const struct collector *c, const bool *chosen)
{
	struct schema_set *schema = schema_add_set(e->schema, c->name, c->summary, domain_name(c->domain));
	struct set *set = &e->set[e->nr_sets];
	struct trouble why = {0};
	int probe, col = 0;
	bool any = false;

	if (!schema)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr_metrics; i++)
		any |= chosen[i];
	*set = (struct set){.collector = c, .next_id = 1};
	/* Of what is not recorded nothing is opened, not even to see whether it is there. */
	probe = c->probe && (any || c->domain == DOMAIN_PROCESS) ? c->probe(e->env, &why) : 0;
	set->usable = probe == 0;
	for (size_t i = 0; i < c->nr_metrics; i++) {
		int r;

		set->ctx.map.col[i] = -1;
		if (!chosen[i] || (!e->opt.children && is_childrens(&c->metric[i])))
			continue;
		r = add_metric(e, schema, &c->metric[i], probe, &why);
		if (r < 0)
			return r;
		set->ctx.map.col[i] = (int8_t)col++;
	}
	e->nr_sets++;
	return 0;
}

int select_rows(struct engine *e, char *err, size_t err_size)
{
	bool chosen[SETS_MAX][METRICS_MAX];
	int r = choose(&e->opt, chosen, err, err_size);

	for (size_t c = 0; collectors[c] && r == 0; c++)
		r = add_set(e, collectors[c], chosen[c]);
	if (r == -ENOMEM)
		snprintf(err, err_size, "out of memory");
	return r;
}
