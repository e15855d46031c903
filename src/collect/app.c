/* The job's own numbers as metrics: see app.h. The columns are in the schema before the first number, since
 * the schema of a recording cannot grow; the one instance, `job`, says what they are called (`told`), and
 * says it again when there are more. Without a number nothing is written. */
#include "collect/app.h"

#include "collect/collector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct app_key *key_of(struct app_numbers *a, const char *name)
{
	for (uint32_t i = 0; i < a->nr; i++)
		if (!strcmp(a->key[i].name, name))
			return &a->key[i];
	return NULL;
}

static struct app_key *key_add(
	struct app_numbers *a, const char *name, enum metric_unit unit, const char *unit_text)
{
	struct app_key *key = &a->key[a->nr];
	int n;

	if (a->nr == APP_KEYS || strlen(name) >= sizeof(key->name))
		return NULL;
	n = snprintf(a->names + a->names_len, APP_LINE, "%s\t%s\t%s\n", name, unit_name(unit), unit_text);
	if (n < 0 || n >= APP_LINE) {
		a->names[a->names_len] = 0;
		return NULL;
	}
	a->names_len += (size_t)n;
	a->nr++;
	snprintf(key->name, sizeof(key->name), "%s", name);
	key->unit = unit;
	return key;
}

void app_tell(
	struct app_numbers *a, const char *name, enum metric_unit unit, const char *unit_text, double value)
{
	struct app_key *key = key_of(a, name);

	if (!key && isnan(value))
		return;
	if (!key)
		key = key_add(a, name, unit, unit_text);
	if (!key || (key->unit != unit && !isnan(value))) {
		a->left_out++;
		return;
	}
	key->value = value;
	a->told++;
}

/* ---- the collector ---- */

/* clang-format off */
#define ROW(name, help) {name, help, {0}, SCALE_REAL, KIND_GAUGE, FOLD_MEAN, UNIT_COUNT, NULL, TIER_TICK, false}
#define SPARE(n) ROW("app.key_" #n, "")
#define TEN(n) SPARE(n##0), SPARE(n##1), SPARE(n##2), SPARE(n##3), SPARE(n##4), SPARE(n##5), SPARE(n##6), SPARE(n##7), SPARE(n##8), SPARE(n##9)
/* The first stands for all in the list of metrics. */
static const struct metric app_metric[] = {
	ROW("app.key", "A number that the job tells of itself, as KEY=NUMBER of a mark: in the recording it is called app.KEY."),
	SPARE(1), SPARE(2), SPARE(3), SPARE(4), SPARE(5), SPARE(6), SPARE(7), SPARE(8), SPARE(9),
	TEN(1), TEN(2), TEN(3), TEN(4), TEN(5), SPARE(60), SPARE(61), SPARE(62), SPARE(63),
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(app_metric) == APP_KEYS, "a row for each");

struct app {
	bool joined;
	uint32_t row, nr;
	uint64_t told;
};

static int app_plan(struct env *env, struct plan *plan, char *err, size_t err_size)
{
	(void)env;
	(void)err;
	(void)err_size;
	if (!plan->chosen[0])
		return 0;
	plan->metric = (struct metric *)app_metric + 1; /* copied */
	plan->nr_metrics = APP_KEYS - 1;
	return 0;
}

static int app_open(void *state, struct collect_context *ctx)
{
	(void)state;
	(void)ctx;
	return 0;
}

static int say_names(struct app *s, struct collect_context *ctx)
{
	const struct app_numbers *a = &ctx->feed->app;
	const struct about about = {"told", a->names};
	int row = (int)s->row;

	if (s->joined)
		ctx->describe(ctx, s->row, "job", &about, 1);
	else
		row = ctx->join_about(ctx, "job", &about, 1);
	if (row < 0)
		return row;
	s->row = (uint32_t)row;
	s->joined = true;
	s->nr = a->nr;
	return 0;
}

static int app_sample(void *state, struct collect_context *ctx)
{
	const struct app_numbers *a = &ctx->feed->app;
	struct app *s = state;

	if (s->told == a->told)
		return 0;
	s->told = a->told;
	if (s->nr != a->nr && say_names(s, ctx) < 0)
		return -ENOSPC;
	table_touch(ctx->table, s->row);
	for (uint32_t i = 0; i < a->nr; i++)
		collect_put(ctx, s->row, i, !isnan(a->key[i].value), cell_of_real(a->key[i].value));
	return 0;
}

static void app_close(void *state, struct collect_context *ctx)
{
	(void)state;
	(void)ctx;
}

const struct collector collector_app = {
	.name = "app",
	.summary = "numbers that the job tells of itself (tacho mark KEY=NUMBER)",
	.domain = DOMAIN_APP,
	.metric = app_metric,
	.nr_metrics = 1,
	.state_size = sizeof(struct app),
	.tier = TIER_TICK,
	.named_later = true,
	.plan = app_plan,
	.open = app_open,
	.sample = app_sample,
	.close = app_close,
};
