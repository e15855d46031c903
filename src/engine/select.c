/* What is recorded: the rows chosen with -m, and among them those that this machine has.
 *
 * A word adds (`perf`, `+fds`) or removes (`-pss`) the rows it names: a whole metric name, a leading part of
 * it ("proc.mem"), its last part ("fds") unless that is a collector's name, a collector, or a family below
 * that costs one reading. `all` and `none` start over. What is not chosen gets no column, and a file that no
 * chosen row needs is never opened.
 *
 * Words that name no row are offered to the collectors that make rows of words (plan()), together with the
 * events of -e; what none of them takes is a mistake. */
#include "engine/internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *word, *prefix; /* the family's rows have names that begin so */
} family[] = {
	{"pss", "proc.mem.pss"}, {"pss", "proc.mem.private"}, {"pss", "proc.mem.swap_pss"},
	{"pss", "proc.smaps"}, {"uss", "proc.mem.private"}, {"smaps", "proc.mem.pss"},
	{"smaps", "proc.mem.private"}, {"smaps", "proc.mem.swap_pss"}, {"smaps", "proc.smaps"},
	{"smaps", "proc.mem.locked"}, {"smaps", "proc.mem.anon_huge"}, {"io", "proc.io"},
	{"switches", "proc.switches"}, {"faults", "proc.faults"},
	{"MEM", "membw."}, /* the group of events by which it is counted */
};

/* Words that add, as they stand when all were read. */
#define WORDS_MAX 256
struct choice {
	bool row[SETS_MAX][CHOICES_MAX];
	char *word[WORDS_MAX];
	bool taken[WORDS_MAX]; /* it names rows */
	size_t nr;
	bool asked[SETS_MAX]; /* a word other than `all` names rows of it */
};

static bool word_is(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(word, name, len);
}

static bool names_collector(const char *word, size_t len)
{
	for (size_t c = 0; collectors[c]; c++)
		if (word_is(word, len, collectors[c]->name))
			return true;
	return false;
}

static bool word_names(const char *word, size_t len, const struct collector *c, const struct metric *m)
{
	const char *last = strrchr(m->name, '.');

	if (word_is(word, len, "all") || word_is(word, len, c->name) || word_is(word, len, m->name))
		return true;
	/* `memory` is the collector, not whatever else has a memory. */
	if (last && word_is(word, len, last + 1) && !names_collector(word, len))
		return true;
	if (!strncmp(m->name, word, len) && m->name[len] == '.')
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(family); i++)
		if (word_is(word, len, family[i].word) && str_starts(m->name, family[i].prefix))
			return true;
	return false;
}

static void forget_words(struct choice *choice)
{
	while (choice->nr)
		free(choice->word[--choice->nr]);
}

/* Applies one signed word to the rows there are; returns how many it named. */
static unsigned apply(const char *word, size_t len, bool add, struct choice *choice)
{
	unsigned named = 0;

	if (word_is(word, len, "none")) {
		memset(choice->row, 0, sizeof(choice->row));
		memset(choice->asked, 0, sizeof(choice->asked));
		forget_words(choice);
		return 1;
	}
	for (size_t c = 0; collectors[c]; c++)
		for (size_t i = 0; i < collectors[c]->nr_metrics; i++)
			if (word_names(word, len, collectors[c], &collectors[c]->metric[i])) {
				choice->row[c][i] = add;
				choice->asked[c] |= add && !word_is(word, len, "all");
				named++;
			}
	return named;
}

static int remember(const char *word, size_t len, bool taken, struct choice *choice)
{
	if (choice->nr == WORDS_MAX)
		return -E2BIG;
	choice->word[choice->nr] = strndup(word, len);
	choice->taken[choice->nr] = taken;
	return choice->word[choice->nr] ? (int)choice->nr++ : -ENOMEM;
}

/* Takes a word back, however often it was given; false when it never was. */
static bool take_back(const char *word, size_t len, struct choice *choice)
{
	size_t nr = 0;

	for (size_t i = 0; i < choice->nr; i++) {
		if (word_is(word, len, choice->word[i])) {
			free(choice->word[i]);
			continue;
		}
		choice->taken[nr] = choice->taken[i];
		choice->word[nr++] = choice->word[i];
	}
	if (nr == choice->nr)
		return false;
	choice->nr = nr;
	return true;
}

/* Calls fn for every name that a word may be. */
static void for_each_name(void (*fn)(void *arg, const char *name), void *arg)
{
	for (size_t c = 0; collectors[c]; c++) {
		fn(arg, collectors[c]->name);
		for (size_t i = 0; collectors[c]->words && collectors[c]->words[i]; i++)
			fn(arg, collectors[c]->words[i]);
		for (size_t i = 0; i < collectors[c]->nr_metrics; i++)
			fn(arg, collectors[c]->metric[i].name);
	}
}

static void compare(void *arg, const char *name)
{
	struct nearest *n = arg;
	const char *last = strrchr(name, '.');

	nearest_try(n, name);
	if (last)
		nearest_offer(n, name, str_distance(n->word, last + 1));
}

static int refuse(const char *text, size_t len, char *err, size_t err_size)
{
	char word[64];
	struct nearest n;

	snprintf(word, sizeof(word), "%.*s", (int)MIN(len, 63), text);
	n = nearest_slip(word);
	for_each_name(compare, &n);
	snprintf(err, err_size, "there is no metric or group '%s'%s%s%s `tacho metrics` lists them", word,
		n.best ? "; did you mean '" : ":", n.best ? n.best : "", n.best ? "'?" : "");
	return -EINVAL;
}

static int choose_word(const char *word, size_t len, bool add, struct choice *choice, char *err, size_t size)
{
	unsigned named = apply(word, len, add, choice);
	struct nearest known;
	char copy[64];
	int r;

	if (add) {
		r = word_is(word, len, "none") ? 0 : remember(word, len, named > 0, choice);
		if (r == -E2BIG)
			snprintf(err, size, "-m takes at most %d words", WORDS_MAX);
		return MIN(r, 0);
	}
	if (take_back(word, len, choice) || named)
		return 0;
	/* A word that was not given can still be removed. */
	snprintf(copy, sizeof(copy), "%.*s", (int)MIN(len, 63), word);
	known = nearest_to(copy, 1);
	for_each_name(compare, &known);
	return known.best ? 0 : refuse(word, len, err, size);
}

static int choose(const struct engine_options *opt, struct choice *choice, char *err, size_t err_size)
{
	int r = 0;

	for (size_t c = 0; collectors[c]; c++)
		for (size_t i = 0; i < collectors[c]->nr_metrics; i++)
			choice->row[c][i] = !collectors[c]->metric[i].on_request;
	for (size_t w = 0; w < opt->nr_metrics; w++) {
		for (const char *p = opt->metrics[w]; *p && r == 0;) {
			size_t len = strcspn(p, ",");
			bool sign = *p == '-' || *p == '+';

			if (len > sign)
				r = choose_word(p + sign, len - sign, *p != '-', choice, err, err_size);
			p += len + (p[len] == ',');
		}
	}
	return r;
}

/* The rows that the words and events make, behind the collector's own. */
static int plan_rows(struct engine *e, size_t nr, struct choice *choice, char *err, size_t err_size)
{
	const struct collector *c = collectors[nr];
	struct set *set = &e->set[nr];
	struct plan *p = &set->plan;
	int r;

	set->metric = c->metric;
	set->nr_metrics = c->nr_metrics;
	if (!c->plan)
		return 0;
	*p = (struct plan){.word = (const char *const *)choice->word,
		.nr_words = choice->nr,
		.taken = choice->taken,
		.event = e->opt.events,
		.nr_events = e->opt.nr_events,
		.chosen = choice->row[nr]};
	r = c->plan(e->env, p, err, err_size);
	p->word = NULL;
	p->taken = p->chosen = NULL;
	if (r < 0 || !p->nr_metrics)
		return r;
	if (c->nr_metrics + p->nr_metrics > CHOICES_MAX) {
		snprintf(err, err_size, "more events are asked for than can be recorded together: %zu",
			p->nr_metrics);
		return -EINVAL;
	}
	set->rows = calloc(c->nr_metrics + p->nr_metrics, sizeof(*set->rows));
	if (!set->rows)
		return -ENOMEM;
	memcpy(set->rows, c->metric, c->nr_metrics * sizeof(*set->rows));
	memcpy(set->rows + c->nr_metrics, p->metric, p->nr_metrics * sizeof(*set->rows));
	memset(choice->row[nr] + c->nr_metrics, true, p->nr_metrics);
	set->metric = set->rows;
	set->nr_metrics += p->nr_metrics;
	return 0;
}

static int plan_all(struct engine *e, struct choice *choice, char *err, size_t err_size)
{
	int r = 0;

	for (size_t c = 0; collectors[c] && r >= 0; c++)
		r = plan_rows(e, c, choice, err, err_size);
	for (size_t i = 0; i < choice->nr && r >= 0; i++)
		if (!choice->taken[i])
			return refuse(choice->word[i], strlen(choice->word[i]), err, err_size);
	return r;
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
	s->real = m->scale == SCALE_REAL;
	s->scale = scale_factor(m->scale, e->env->page_size, e->env->clock_tick);
	if (probe < 0)
		snprintf(text, sizeof(text), "%s%s%s", why->reason, why->remedy ? ": " : "",
			why->remedy ? why->remedy : "");
	if (probe < 0)
		return schema_metric_why(s, probe == -EACCES ? FORBIDDEN : ABSENT, text);
	return 0;
}

static int add_set(struct engine *e, const struct collector *c, const bool *chosen, char *err, size_t size)
{
	struct schema_set *schema = schema_add_set(e->schema, c->name, c->summary, domain_name(c->domain));
	struct set *set = &e->set[e->nr_sets];
	struct trouble why = {0};
	int probe, col = 0;
	bool any = false;

	if (!schema)
		return -ENOMEM;
	for (size_t i = 0; i < set->nr_metrics; i++)
		any |= chosen[i];
	schema->named_later = c->named_later;
	set->collector = c;
	set->next_id = 1;
	/* Of what is not recorded nothing is opened, not even to see whether it is there. */
	probe = c->probe && (any || c->domain == DOMAIN_PROCESS) ? c->probe(e->env, &why) : 0;
	set->usable = probe == 0;
	for (size_t i = 0; i < set->nr_metrics; i++) {
		int r;

		set->ctx.map.col[i] = -1;
		if (!chosen[i] || (!e->opt.children && is_childrens(&set->metric[i])))
			continue;
		if (col == METRICS_MAX) {
			snprintf(err, size, "'%s' can record %d numbers at once, and more are asked for",
				c->name, METRICS_MAX);
			return -EINVAL;
		}
		r = add_metric(e, schema, &set->metric[i], probe, &why);
		if (r < 0)
			return r;
		set->ctx.map.col[i] = (int8_t)col++;
	}
	e->nr_sets++;
	return 0;
}

bool choice_has(const struct choice *choice, size_t collector)
{
	return memchr(choice->row[collector], true, sizeof(choice->row[collector])) != NULL;
}

void choice_drop(struct engine *e)
{
	if (e->choice)
		forget_words(e->choice);
	free(e->choice);
	e->choice = NULL;
}

static int add_sets(struct engine *e, bool all, char *err, size_t err_size)
{
	int r = 0;

	for (size_t c = e->nr_sets; collectors[c] && (all || c < collectors_of_job) && r == 0; c++) {
		e->set[c].asked = e->choice->asked[c];
		r = add_set(e, collectors[c], e->choice->row[c], err, err_size);
	}
	return r;
}

int select_rest(struct engine *e, char *err, size_t err_size)
{
	int r = add_sets(e, true, err, err_size);

	choice_drop(e);
	return r;
}

/* A set of the rest was asked for by name: it is wanted also of a job that ends at once. */
static bool rest_is_asked(const struct choice *choice)
{
	for (size_t c = collectors_of_job; collectors[c]; c++)
		if (choice->asked[c])
			return true;
	return false;
}

int select_rows(struct engine *e, char *err, size_t err_size)
{
	int r;

	e->choice = calloc(1, sizeof(*e->choice));
	r = e->choice ? choose(&e->opt, e->choice, err, err_size) : -ENOMEM;
	if (r == 0)
		r = plan_all(e, e->choice, err, err_size);
	if (r == 0 && e->opt.rest_ns && !rest_is_asked(e->choice))
		r = add_sets(e, false, err, err_size);
	else if (r == 0)
		r = select_rest(e, err, err_size);
	if (r == -ENOMEM)
		snprintf(err, err_size, "out of memory");
	if (r < 0)
		choice_drop(e);
	return r;
}
