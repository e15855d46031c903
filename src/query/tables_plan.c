/* Which tables there are, and which columns: the union over the recordings, cut down to what was asked for.
 *
 * Every recording is opened once and only its schema is looked at. Metrics that no recording could read are
 * no columns unless they are asked for by their names; table "metrics" has the reasons. */
#include "query/tables_internal.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/counters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const domain_help[NR_DOMAINS] = {
	[DOMAIN_NODE] = "The machine: a row for each tick.",
	[DOMAIN_CPU] = "CPUs; `total` is the kernel's own sum of them.",
	[DOMAIN_PROCESS] = "Processes of the job.",
	[DOMAIN_TREE] = "The job as a whole, what has ended included: a row for each tick.",
	[DOMAIN_COLLECTOR] = "What recording cost, by collector.",
	[DOMAIN_GROUP] = "Groups of processes: targets and tools.",
	[DOMAIN_NET] = "Network interfaces.",
	[DOMAIN_IB] = "Ports of the interconnect.",
	[DOMAIN_DISK] = "Disks.",
	[DOMAIN_FILESYSTEM] = "File systems.",
	[DOMAIN_ENERGY] = "Meters of energy and power.",
	[DOMAIN_SENSOR] = "Temperatures and fans.",
	[DOMAIN_CGROUP] = "Control groups that the job is in.",
	[DOMAIN_GPU] = "GPUs and their slices.",
	[DOMAIN_GPU_PROCESS] = "Processes on GPUs: one process on one GPU.",
	[DOMAIN_PERF] = "What the processor counted for the job.",
	[DOMAIN_SOCKET] = "Processor packages with their memory.",
	[DOMAIN_APP] = "Numbers that the job told of itself.",
};

/* clang-format off */
static const struct field key_field[] = {
	[KEY_TIME]     = {"time", "When: UTC.", FIELD_TIME, .scale = 1},
	[KEY_ELAPSED]  = {"elapsed", "Time after the start of the run.", FIELD_REAL, UNIT_SECONDS, .scale = 1},
	[KEY_HOST]     = {"host", "The node.", FIELD_TEXT, .scale = 1},
	[KEY_INSTANCE] = {"instance", "Of which instance: its name.", FIELD_TEXT, .scale = 1},
	[KEY_PID]      = {"pid", "The process's ID.", FIELD_INT, .scale = 1},
	[KEY_PROCESS]  = {"process", "The process's number in table \"processes\".", FIELD_INT, .scale = 1},
	[KEY_SINCE]    = {"phase_s", "Time since the phase began, and of one that is repeated its repetition.", FIELD_REAL, UNIT_SECONDS, .scale = 1},
};
/* clang-format on */

void column_own_release(struct column_own *c)
{
	free(c->metric);
	free(c->name);
	free(c->help);
	free(c->set);
	free(c->why);
	if (c->texts)
		dictionary_release(c->texts);
	free(c->texts);
	*c = (struct column_own){0};
}

/* ---- tables ---- */

/* Exporters make files of these names. */
static bool is_table_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	if (!len || name[len] || len > 40)
		return false;
	for (unsigned i = 0; i < NR_STILL; i++)
		if (!strcmp(name, still_tables[i].name))
			return false;
	return true;
}

static struct data_table_own *data_table_find(struct tables *f, const char *name)
{
	for (size_t i = 0; i < f->nr; i++)
		if (!strcmp(f->table[i].face.name, name))
			return &f->table[i];
	return NULL;
}

static struct data_table_own *data_table_new(struct tables *f, const char *name, const char *help)
{
	char *copy = strdup(name);
	struct data_table_own *fr = copy ? ARRAY_ADD(f->table, f->nr) : NULL;

	if (!fr) {
		free(copy);
		return NULL;
	}
	*fr = (struct data_table_own){
		.face = {.name = copy, .help = help}, .still = -1, .domain = NR_DOMAINS, .wanted = true};
	return fr;
}

/* NULL and 0: there can be none of that name. */
static int data_table_of(struct tables *f, const char *name, struct data_table_own **ret)
{
	int domain = domain_from_name(name, strlen(name));
	bool known = domain >= 0;
	struct data_table_own *fr;

	*ret = is_table_name(name) ? data_table_find(f, name) : NULL;
	if (*ret || !is_table_name(name))
		return 0;
	fr = *ret = data_table_new(f, name, known ? domain_help[domain] : "");
	if (!fr)
		return -ENOMEM;
	fr->face.domain = fr->face.name;
	fr->domain = known ? (enum domain)domain : NR_DOMAINS;
	fr->of_processes = fr->domain == DOMAIN_PROCESS || fr->domain == DOMAIN_GPU_PROCESS;
	fr->by_group = f->options.per == TABLES_GROUP && fr->of_processes;
	fr->folded = fr->by_group ||
		(f->options.per == TABLES_NODE && fr->domain != DOMAIN_NODE && fr->domain != DOMAIN_TREE);
	return 0;
}

/* ---- columns ---- */

static char *escaped(const char *text, const char *behind)
{
	struct buf b;
	char *copy;

	buf_init(&b, SIZE_MAX / 4);
	utf8_escape(&b, text, strlen(text));
	buf_adds(&b, behind);
	copy = b.err ? NULL : strdup((const char *)b.data);
	buf_release(&b);
	return copy;
}

static bool is_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(key_field); i++)
		if (!strcmp(name, key_field[i].name))
			return true;
	return false;
}

static enum resample resample_of(enum metric_kind kind, enum metric_unit unit, bool rate)
{
	if (rate)
		return RESAMPLE_MEAN;
	if (unit == UNIT_CODE)
		return RESAMPLE_LAST;
	return kind == KIND_PEAK ? RESAMPLE_MAX : kind == KIND_GAUGE ? RESAMPLE_MEAN : RESAMPLE_LAST;
}

/* The column of that name; made when it is new. NULL and 0: it cannot be one. Takes `like` but its texts. */
static int column_of(
	struct data_table_own *fr, const struct column_own *like, const char *help, struct column_own **ret)
{
	char *name = escaped(like->metric, like->rate ? ".rate" : "");
	struct column_own *c = NULL;

	*ret = NULL;
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < fr->nr_planned && !c; i++)
		if (!strcmp(fr->planned[i].name, name))
			c = &fr->planned[i];
	if (c || is_key(name)) {
		if (c && c->derived == like->derived && c->source == like->source && c->rate == like->rate)
			*ret = c;
		free(name);
		return 0;
	}
	c = *ret = ARRAY_ADD(fr->planned, fr->nr_planned);
	if (!c) {
		free(name);
		return -ENOMEM;
	}
	*c = *like;
	c->name = name;
	c->metric = strdup(like->metric);
	c->help = escaped(help, like->rate ? " As growth per second." : "");
	c->set = like->set ? strdup(like->set) : NULL;
	c->resample = resample_of(c->kind, c->unit, c->rate || c->per_second);
	return c->metric && c->help && (c->set || !like->set) ? 0 : -ENOMEM;
}

static bool is_counts(const struct schema_metric *m)
{
	bool whole = m->unit == UNIT_COUNT || m->unit == UNIT_BYTES || m->unit == UNIT_CODE;

	return whole && !m->real && m->scale >= 1 && m->scale <= 1e15 && m->scale == floor(m->scale);
}

static int why_not(struct column_own *c, const struct schema_metric *m)
{
	c->available |= m->availability == AVAILABLE;
	if (c->available || c->why)
		return 0;
	c->why = escaped(m->why ? m->why : availability_name(m->availability), "");
	return c->why ? 0 : -ENOMEM;
}

/* Its growth per second, where the recording can give it. */
static int plan_rate(struct data_table_own *fr, const struct walk *s, const struct schema_set *set,
	const struct schema_metric *m)
{
	struct column_own like = {.source = SOURCE_ROWS,
		.metric = m->name,
		.set = set->name,
		.unit = m->unit,
		.kind = KIND_GAUGE,
		.fold = m->fold,
		.per_second = true,
		.rate = true,
		.scale = 1};
	struct column_own *c;
	struct column bound;
	int r = column_try(&bound, s, m->name, true);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = column_of(fr, &like, m->help, &c);
	return r < 0 || !c ? r : why_not(c, m);
}

/* What the processor counted has columns in table "phases", too. */
static int plan_counted(struct tables *f, const char *metric, const char *help, enum metric_unit unit,
	bool per_second, bool event)
{
	struct field *c;

	for (size_t i = 0; i < f->nr_counted; i++)
		if (!strcmp(f->counted[i].name, metric))
			return 0;
	c = ARRAY_ADD(f->counted, f->nr_counted);
	if (!c)
		return -ENOMEM;
	*c = (struct field){.name = strdup(metric),
		.help = escaped(help, ""),
		.type = event && unit == UNIT_COUNT ? FIELD_INT : FIELD_REAL,
		.unit = unit,
		.per_second = per_second,
		.scale = 1};
	return c->name && c->help ? 0 : -ENOMEM;
}

static int plan_metric(struct tables *f, struct data_table_own *fr, const struct walk *s,
	const struct schema_set *set, const struct schema_metric *m)
{
	struct column_own like = {.source = SOURCE_CELL,
		.metric = m->name,
		.set = set->name,
		.unit = m->unit,
		.kind = m->kind,
		.fold = m->fold,
		.counts = is_counts(m),
		.scale = m->scale};
	struct column_own *c;
	int r = column_of(fr, &like, m->help, &c);

	if (r < 0 || !c)
		return r;
	if (fr->domain == DOMAIN_PERF && m->availability == AVAILABLE && counters_is_event(m->name)) {
		r = plan_counted(f, m->name, m->help, m->unit, false, true);
		if (r < 0)
			return r;
	}
	c->counts &= like.counts;
	c->real |= m->real;
	c->scales_differ |= c->scale != m->scale;
	r = why_not(c, m);
	return r < 0 || m->kind != KIND_COUNTER || f->options.raw ? r : plan_rate(fr, s, set, m);
}

static int plan_recorded(struct tables *f, const struct walk *s)
{
	int r = 0;

	for (uint32_t i = 0; i < s->nr_sets && r >= 0; i++) {
		const struct schema_set *set = &s->schema->set[i];
		struct data_table_own *fr;

		r = data_table_of(f, set->domain_name, &fr);
		for (uint32_t j = 0; r >= 0 && fr && j < set->nr_metrics; j++) {
			uint32_t in, col;

			/* Of two of one name only the first can be asked for. */
			if (schema_find(s->schema, set->metric[j].name, &in, &col) && in == i && col == j)
				r = plan_metric(f, fr, s, set, &set->metric[j]);
		}
	}
	return r;
}

/* ---- derived ones ---- */

const char *data_table_domain_of(const struct walk *s, const struct column *c)
{
	const struct column_use whole = {.per = PER_ALL}, group = {.per = PER_GROUP};
	const char *domain = NULL;
	struct buf ignored;

	if (c->at == AT_INSTANCE)
		return s->schema->set[c->set].domain_name;
	buf_init(&ignored, 1024);
	if (!column_agrees(s, c, &whole, &ignored))
		domain = domain_name(DOMAIN_TREE);
	else if (!column_agrees(s, c, &group, &ignored))
		domain = domain_name(DOMAIN_GROUP);
	buf_release(&ignored);
	return domain;
}

static bool can_be_known(const struct walk *s, const struct column *c)
{
	for (unsigned i = 0; i < c->expr.nr_names; i++)
		if (c->arg[i].set >= 0 &&
			s->schema->set[c->arg[i].set].metric[c->arg[i].col].availability == AVAILABLE)
			return true;
	return false;
}

/* All that it is made of was counted. */
static bool is_counted(const struct walk *s, const struct column *c)
{
	for (unsigned i = 0; i < c->expr.nr_names; i++)
		if (c->arg[i].set < 0 ||
			s->schema->set[c->arg[i].set].metric[c->arg[i].col].availability != AVAILABLE)
			return false;
	return true;
}

static int plan_derived(struct tables *f, const struct walk *s, const char *name)
{
	struct column_own like = {.scale = 1, .derived = true}, *c;
	struct data_table_own *fr = NULL;
	struct column bound;
	const char *domain;
	uint32_t set, col;
	int r;

	if (schema_find(s->schema, name, &set, &col))
		return 0;
	r = column_try(&bound, s, name, false);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	domain = data_table_domain_of(s, &bound);
	r = domain ? data_table_of(f, domain, &fr) : 0;
	if (r < 0 || !fr)
		return r;
	like.source = bound.at == AT_INSTANCE ? SOURCE_ROWS : SOURCE_WHOLE;
	like.metric = (char *)name;
	like.set = bound.at == AT_INSTANCE ? s->schema->set[bound.set].name : NULL;
	like.unit = bound.unit;
	like.kind = bound.kind;
	like.fold = bound.fold;
	like.per_second = bound.per_second;
	r = column_of(fr, &like, bound.help, &c);
	if (r >= 0 && c)
		c->available |= can_be_known(s, &bound);
	if (r >= 0 && str_starts(name, "perf.") && is_counted(s, &bound))
		r = plan_counted(f, name, bound.help, bound.unit, bound.per_second, false);
	return r;
}

static int plan_recording(struct tables *f, const struct walk *s)
{
	int r = plan_recorded(f, s);

	if (f->options.raw)
		return r;
	for (size_t i = 0; i < s->formulas.nr && r >= 0; i++)
		r = plan_derived(f, s, s->formulas.item[i].row.name);
	for (size_t i = 0; i < nr_derived && r >= 0; i++)
		if (!formulas_find(&s->formulas, derived[i].name))
			r = plan_derived(f, s, derived[i].name);
	return r;
}

/* ---- what was asked for ---- */

static bool is_set(const struct tables *f, const char *word)
{
	for (size_t i = 0; i < f->nr; i++)
		for (size_t j = 0; j < f->table[i].nr_planned; j++)
			if (!f->table[i].planned[j].derived && !strcmp(f->table[i].planned[j].set, word))
				return true;
	return false;
}

/* As -m takes words: a name, its last part, a leading part, the collector; and the table. */
static bool word_names(
	const struct tables *f, const struct data_table_own *fr, const struct column_own *c, const char *word)
{
	const char *last = strrchr(c->metric, '.');
	size_t len = strlen(word);

	if (!strcmp(word, c->name) || !strcmp(word, c->metric))
		return true;
	if (!strcmp(word, "all") || !strcmp(word, fr->face.name) || (c->set && !strcmp(word, c->set)))
		return true;
	if (last && !strcmp(word, last + 1) && !is_set(f, word))
		return true;
	return !strncmp(c->metric, word, len) &&
		(c->metric[len] == '.' || (len && word[len - 1] == '.' && c->metric[len]));
}

static int no_metric(const struct tables *f, const char *word, struct buf *reterr)
{
	struct nearest n = nearest_slip(word);
	struct buf own;

	buf_init(&own, 8192);
	for (size_t i = 0; i < f->nr; i++) {
		const struct data_table_own *fr = &f->table[i];

		nearest_try(&n, fr->face.name);
		for (size_t j = 0; j < fr->nr_planned; j++) {
			nearest_try(&n, fr->planned[j].name);
			metric_own(fr->planned[j].name, &own);
			if (!fr->planned[j].derived)
				nearest_try(&n, fr->planned[j].set);
		}
	}
	metric_unknown(&n, &own, reterr);
	buf_release(&own);
	if (f->options.raw)
		buf_adds(reterr, "; --raw has none that are computed");
	return -ENOENT;
}

static size_t want_word(struct tables *f, const char *word)
{
	size_t named = 0;

	for (size_t i = 0; i < f->nr; i++) {
		struct data_table_own *fr = &f->table[i];

		for (size_t j = 0; j < fr->nr_planned; j++) {
			struct column_own *c = &fr->planned[j];

			if (!word_names(f, fr, c, word))
				continue;
			c->wanted |= c->available || !strcmp(word, c->metric) || !strcmp(word, c->name);
			named++;
		}
	}
	return named;
}

static int choose_metrics(struct tables *f, struct buf *reterr)
{
	for (size_t i = 0; i < f->options.nr_metrics; i++)
		if (!want_word(f, f->options.metric[i]) && !f->options.if_there)
			return no_metric(f, f->options.metric[i], reterr);
	if (!f->options.nr_metrics)
		want_word(f, "all");
	return 0;
}

static int no_table(const struct tables *f, const char *word, struct buf *reterr)
{
	struct nearest n = nearest_slip(word);

	for (size_t i = 0; i < f->nr; i++)
		nearest_try(&n, f->table[i].face.name);
	buf_addf(reterr, "there is no domain '%s' in this recording", word);
	nearest_ask(&n, reterr);
	buf_adds(reterr, n.best ? " It has" : "; it has");
	for (size_t i = 0; i < f->nr; i++)
		buf_addf(reterr, "%s %s", i ? "," : "", f->table[i].face.name);
	return -ENOENT;
}

static bool agrees_with(const struct data_table_own *fr, enum tables_per per)
{
	if (per == TABLES_PROCESS)
		return fr->of_processes || fr->still == STILL_PROCESSES;
	if (per == TABLES_NODE)
		return fr->domain != DOMAIN_GROUP;
	return per != TABLES_GROUP || fr->still >= 0 || fr->of_processes || fr->domain == DOMAIN_GROUP;
}

static int no_such_fold(const struct data_table_own *fr, enum tables_per per, struct buf *reterr)
{
	if (per == TABLES_NODE)
		buf_addf(reterr, "a process may be in several groups: there is no table %s per node",
			fr->face.name);
	else
		buf_addf(reterr, "%s is not of processes: there is no table of it per %s", fr->face.name,
			per == TABLES_GROUP ? "group" : "process");
	return -ENOENT;
}

static int choose_tables(struct tables *f, struct buf *reterr)
{
	const struct tables_options *o = &f->options;

	for (size_t i = 0; i < f->nr; i++) {
		struct data_table_own *fr = &f->table[i];

		fr->usual = (fr->still < 0 || !o->nr_metrics) && agrees_with(fr, o->per);
		fr->wanted = !o->nr_domains && fr->usual;
	}
	for (size_t i = 0; i < o->nr_domains; i++) {
		struct data_table_own *fr = data_table_find(f, o->domain[i]);

		if (o->if_there) {
			if (fr)
				fr->wanted = fr->usual;
			continue;
		}
		if (!fr)
			return no_table(f, o->domain[i], reterr);
		if (fr->still < 0 && !agrees_with(fr, o->per))
			return no_such_fold(fr, o->per, reterr);
		fr->wanted = true;
		/* Asked for by name it is there, though nothing of it could be read. */
		for (size_t j = 0; !o->nr_metrics && j < fr->nr_planned; j++)
			fr->planned[j].wanted |= !fr->planned[j].derived;
	}
	return 0;
}

/* ---- fields ---- */

static const char *const resample_name[] = {"mean", "max", "last"};

static void field_make(const struct tables *f, const struct data_table_own *fr, const struct column_own *c,
	struct field *ret)
{
	bool raw = f->options.raw && c->source == SOURCE_CELL && !c->scales_differ;
	bool mean =
		(fr->folded && c->fold == FOLD_MEAN) || (f->options.every_ns && c->resample == RESAMPLE_MEAN);

	*ret = (struct field){.name = c->name,
		.help = c->help,
		.type = !mean && !c->real && c->source == SOURCE_CELL && (raw || c->counts) ? FIELD_INT
											    : FIELD_REAL,
		.unit = c->unit,
		.per_second = c->per_second,
		.kind = c->kind,
		.is_metric = true,
		.scale = raw ? c->scale : 1,
		.resample = resample_name[c->resample]};
}

/* The greatest of each window beside the mean, where it is wanted. -ENOMEM. */
static int add_greatest(const struct tables *f, struct data_table_own *fr)
{
	const struct tables_options *o = &f->options;
	struct column_own *c = &fr->own[fr->nr];
	size_t of = fr->nr - 1;

	if (!o->every_ns || !o->greatest || fr->own[of].resample != RESAMPLE_MEAN ||
		!o->greatest(o->greatest_arg, &fr->field[of]))
		return 0;
	*c = (struct column_own){.source = SOURCE_GREATEST,
		.of = of,
		.metric = strdup(fr->own[of].metric),
		.name = escaped(fr->own[of].name, ".max"),
		.help = escaped(fr->own[of].help, " The greatest."),
		.unit = fr->own[of].unit,
		.kind = fr->own[of].kind,
		.fold = fr->own[of].fold,
		.per_second = fr->own[of].per_second,
		.rate = fr->own[of].rate,
		.available = true,
		.scale = 1,
		.resample = RESAMPLE_MAX};
	field_make(f, fr, c, &fr->field[fr->nr++]);
	return c->metric && c->name && c->help ? 0 : -ENOMEM;
}

/* The planned columns that stay move to the end of `own`: those that were recorded, or the derived ones. */
static int take_columns(const struct tables *f, struct data_table_own *fr, bool formulas)
{
	int r = 0;

	for (size_t i = 0; i < fr->nr_planned && r >= 0; i++) {
		struct column_own *c = &fr->planned[i];

		if (!c->wanted || c->derived != formulas ||
			(fr->folded && (c->source == SOURCE_WHOLE || c->fold == FOLD_NONE)))
			continue;
		fr->own[fr->nr] = *c;
		*c = (struct column_own){0};
		field_make(f, fr, &fr->own[fr->nr], &fr->field[fr->nr]);
		fr->late |= fr->own[fr->nr].source == SOURCE_WHOLE;
		fr->nr++;
		r = add_greatest(f, fr);
	}
	return r;
}

static int give_dictionaries(struct data_table_own *fr)
{
	for (size_t i = 0; i < fr->nr; i++) {
		if (fr->field[i].type != FIELD_TEXT)
			continue;
		fr->own[i].texts = malloc(sizeof(*fr->own[i].texts));
		if (!fr->own[i].texts)
			return -ENOMEM;
		dictionary_init(fr->own[i].texts);
	}
	return 0;
}

static int make_fields(struct tables *f, struct data_table_own *fr)
{
	const struct field *key = fr->still < 0 ? key_field : still_tables[fr->still].field;
	size_t nr_keys = fr->still >= 0		    ? still_tables[fr->still].nr
		: fr->folded && !fr->by_group	    ? KEY_INSTANCE
		: fr->of_processes && !fr->by_group ? KEY_PROCESS + 1
						    : KEY_INSTANCE + 1;
	size_t nr_more = fr->still == STILL_PHASES ? f->nr_counted : 0;
	size_t most = nr_keys + nr_more + 1 + 2 * fr->nr_planned;
	int r;

	fr->field = calloc(most, sizeof(*fr->field));
	fr->own = calloc(most, sizeof(*fr->own));
	if (!fr->field || !fr->own)
		return -ENOMEM;
	memcpy(fr->field, key, nr_keys * sizeof(*key));
	if (nr_more)
		memcpy(fr->field + nr_keys, f->counted, nr_more * sizeof(*f->counted));
	nr_keys += nr_more;
	if (fr->still < 0 && f->options.phase) {
		fr->since = nr_keys;
		fr->field[nr_keys++] = key_field[KEY_SINCE];
	}
	fr->nr = fr->nr_keys = nr_keys;
	r = take_columns(f, fr, false);
	if (r >= 0)
		r = take_columns(f, fr, true);
	return r < 0 ? r : give_dictionaries(fr);
}

void data_table_own_release(struct data_table_own *fr)
{
	for (size_t i = 0; i < fr->nr; i++)
		column_own_release(&fr->own[i]);
	for (size_t i = 0; i < fr->nr_planned; i++)
		column_own_release(&fr->planned[i]);
	free(fr->own);
	free(fr->field);
	free(fr->planned);
	free((char *)fr->face.name);
	*fr = (struct data_table_own){0};
}

/* What no recording could read: for table "metrics", with the reasons. */
static int keep_absent(struct tables *f, struct data_table_own *fr)
{
	for (size_t i = 0; i < fr->nr_planned; i++) {
		struct column_own *c = &fr->planned[i];
		struct absent *more;

		if (!c->metric || c->derived || c->available || c->source != SOURCE_CELL)
			continue;
		more = ARRAY_ADD(f->absent, f->nr_absent);
		if (!more)
			return -ENOMEM;
		*more = (struct absent){.table = strdup(fr->face.name), .column = *c};
		*c = (struct column_own){0};
		if (!more->table)
			return -ENOMEM;
	}
	return 0;
}

static int order_of(const struct data_table_own *fr)
{
	return fr->still >= 0 ? NR_DOMAINS + 1 + fr->still : (int)fr->domain;
}

/* Tables of domains in the order of the domains, the others behind them; those of one place as they came. */
static void sort_tables(struct tables *f)
{
	for (size_t i = 1; i < f->nr; i++)
		for (size_t j = i; j && order_of(&f->table[j - 1]) > order_of(&f->table[j]); j--) {
			struct data_table_own swap = f->table[j];

			f->table[j] = f->table[j - 1];
			f->table[j - 1] = swap;
		}
}

/* Table "metrics" is the same whatever stands beside it: it tells of tables that were not asked for as well.
 */
static bool is_told(const struct data_table_own *fr)
{
	return fr->still < 0 && fr->usual && !fr->wanted;
}

static int make_tables(struct tables *f)
{
	bool tells = data_table_find(f, still_tables[STILL_METRICS].name)->wanted;
	int r = 0;

	for (size_t i = 0; i < f->nr && r >= 0; i++) {
		struct data_table_own *fr = &f->table[i];
		bool made = fr->wanted || (tells && is_told(fr));

		if (made)
			r = make_fields(f, fr);
		if (r >= 0 && tells && !f->options.nr_metrics)
			r = keep_absent(f, fr);
		if (!made || (fr->still < 0 && fr->nr == fr->nr_keys && fr->nr))
			data_table_own_release(fr);
	}
	return r;
}

static int finish_tables(struct tables *f)
{
	size_t kept = 0;
	int r = make_tables(f);

	if (r < 0)
		return r;
	f->told = calloc(f->nr, sizeof(*f->told));
	if (!f->told)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr; i++) {
		if (!f->table[i].face.name)
			continue;
		if (is_told(&f->table[i]))
			f->told[f->nr_told++] = f->table[i];
		else
			f->table[kept++] = f->table[i];
	}
	f->nr = kept;
	f->face = calloc(MAX(f->nr, 1u), sizeof(*f->face));
	if (!f->face)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr; i++) {
		f->table[i].face.field = f->table[i].field;
		f->table[i].face.nr_fields = f->table[i].nr;
		f->face[i] = f->table[i].face;
	}
	return 0;
}

/* ---- all of it ---- */

uint32_t schema_spare(const struct schema *schema)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; schema && i < schema->nr_sets; i++)
		nr += schema->set[i].nr_spare;
	return nr;
}

static int plan_open(struct tables *f, size_t which, struct buf *reterr)
{
	struct walk *s = NULL;
	int r = walk_open(f->run->path[which], NULL, &s);

	if (r >= 0) {
		f->start_ns[which] = walk_start(s);
		f->host[which] = strdup(meta_text(&s->meta, "host"));
		r = !f->host[which] ? -ENOMEM : s->schema ? plan_recording(f, s) : 0;
		f->nr_spare += schema_spare(s->schema);
		f->bare_groups |= s->schema && schema_find_domain(s->schema, DOMAIN_GROUP) < 0;
	}
	walk_close(s);
	if (r < 0)
		buf_addf(reterr, "%s: %s", f->run->path[which], strerror(-r));
	return r;
}

static int plan_still(struct tables *f)
{
	for (int i = 0; i < NR_STILL; i++) {
		struct data_table_own *fr = data_table_new(f, still_tables[i].name, still_tables[i].help);

		if (!fr)
			return -ENOMEM;
		fr->still = i;
	}
	return 0;
}

int tables_plan(struct tables *f, struct buf *reterr)
{
	int r = 0;

	f->start_ns = calloc(f->run->nr + 1, sizeof(*f->start_ns));
	f->host = calloc(f->run->nr + 1, sizeof(char *));
	if (!f->start_ns || !f->host)
		return -ENOMEM;
	f->first_ns = INT64_MAX;
	for (size_t i = 0; i < f->run->nr && r >= 0; i++) {
		r = plan_open(f, i, reterr);
		if (r >= 0 && f->start_ns[i] > 0)
			f->first_ns = MIN(f->first_ns, f->start_ns[i]);
	}
	if (r >= 0)
		r = plan_still(f);
	if (r >= 0)
		sort_tables(f);
	if (r >= 0)
		r = choose_metrics(f, reterr);
	if (r >= 0)
		r = choose_tables(f, reterr);
	return r < 0 ? r : finish_tables(f);
}
