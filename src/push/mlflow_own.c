/* Finds the run of MLflow that belongs to a job: one that the job itself has started, which it told of by a
 * mark, or of which user, time and program agree; or the one that was made for this recording before. */
#include "push/mlflow.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/str.h"
#include "query/events.h"
#include "store/glance.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define YOUNG_NS (60 * NSEC_PER_SEC)
#define LOOK_AGAIN_NS (2 * NSEC_PER_SEC)
#define MARK_KEY "mlflow_run_id"
#define EXPERIMENTS_MOST 1000
#define RUNS_MOST 200

struct run *mlflow_run_open(const struct mlflow *m)
{
	const char *job = m->run->job && *m->run->job ? m->run->job : NULL;
	struct run *run = NULL;
	struct buf why;

	buf_init(&why, 4096);
	if (run_open(m->run->path, m->run->nr, &run, &why) < 0 && job)
		run_open_job(m->run->path, m->run->nr, job, &run, &why);
	buf_release(&why);
	return run;
}

static int take_end(void *arg, enum store_type type, const struct pairs *pairs)
{
	int64_t *end = arg;

	if (type == STORE_SUMMARY)
		pairs_get_num(pairs, "end_ns", end);
	return 0;
}

/* Of the wall clock; 0: it goes on. Where the recorder was killed, when it last wrote. */
static int64_t end_of(const struct mlflow *m, const struct run *run)
{
	int64_t last = 0;

	for (size_t i = 0; i < run->nr; i++) {
		struct store_glance glance;
		int64_t length = -1, end;

		if (store_glance(run->path[i], take_end, &length, &glance) < 0)
			continue;
		if (!glance.complete && glance.writing)
			return 0;
		end = length >= 0 ? add_clamped(m->run->start_ns, length) : glance.modified_ns;
		last = MAX(last, end);
	}
	return last;
}

/* As MLflow has them: letters, digits, '-' and '_', so that they need no quotation anywhere. */
static bool is_id(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'z') ||
			    (text[i] >= 'A' && text[i] <= 'Z') || (i && strchr("-_", text[i]))))
			return false;
	return len > 0 && len < 256;
}

static void keep_id(char ret[static MLFLOW_ID_SIZE], const char *text, size_t len)
{
	if (is_id(text, len))
		snprintf(ret, MLFLOW_ID_SIZE, "%.*s", (int)len, text);
}

/* ---- by a mark ---- */

static int take_mark(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	if (!strcmp(path, MARK_KEY) && (leaf == LEAF_TEXT || leaf == LEAF_NUMBER))
		keep_id(arg, text, len);
	return 0;
}

/* The first mark or phase of the job that has it. */
static bool by_mark(struct mlflow *m, const struct run *run)
{
	struct run_events *events = NULL;
	char id[MLFLOW_ID_SIZE] = "";
	struct buf why;

	buf_init(&why, 4096);
	if (run_events_read(run, &events, &why) >= 0) {
		for (size_t i = 0; i < events->nr_events && !*id; i++)
			if (events->event[i].data)
				json_read(
					events->event[i].data, strlen(events->event[i].data), take_mark, id);
		for (size_t i = 0; i < events->nr_phases && !*id; i++)
			if (events->phase[i].data)
				json_read(
					events->phase[i].data, strlen(events->phase[i].data), take_mark, id);
	}
	run_events_free(events);
	buf_release(&why);
	if (*id)
		snprintf(m->id, sizeof(m->id), "%s", id);
	return *id;
}

/* ---- by a search ---- */

struct found {
	struct mlflow *m;
	unsigned long item;
	char id[MLFLOW_ID_SIZE]; /* of the item at hand */
	char user[256], source[1024], job[256];
	bool made, ours,
		others; /* by tacho's tags: not the job's; values of this recording are in it; of another */
	char only[MLFLOW_ID_SIZE];
	size_t nr;
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The program of the run is a word of the command, maybe with another directory, maybe in a line for a shell.
 */
static bool is_in_command(const struct mlflow *m, const char *source)
{
	const struct meta_item *item = meta_find(m->run->meta, "command");
	const char *name = last_part(source);
	size_t len = strlen(name), from = 0;

	if (!item || !len)
		return false;
	for (size_t i = 0; i <= item->len; i++) {
		if (i < item->len && item->value[i] && !strchr(" \t\n/'\"=;&|()", item->value[i]))
			continue;
		if (i - from == len && !memcmp(item->value + from, name, len))
			return true;
		from = i + 1;
	}
	return false;
}

static void take_tag(void *arg, const struct mlflow_tag *t)
{
	struct found *f = arg;

	if (!strcmp(t->key, "mlflow.user"))
		snprintf(f->user, sizeof(f->user), "%s", t->value);
	else if (!strcmp(t->key, "mlflow.source.name"))
		snprintf(f->source, sizeof(f->source), "%s", t->value);
	else if (!strcmp(t->key, "tacho.job"))
		snprintf(f->job, sizeof(f->job), "%s", t->value);
	else if (!strcmp(t->key, "tacho.made"))
		f->made = true;
	else if (str_starts(t->key, "tacho.first_step."))
		*(strcmp(t->key + strlen("tacho.first_step."), f->m->recording) ? &f->others : &f->ours) =
			true;
}

static void item_end(struct found *f)
{
	const struct push_run *run = f->m->run;
	bool same_user = !*f->m->user || !strcmp(f->m->user, f->user);
	bool same_job = run->job && *run->job && !strcmp(run->job, f->job);

	if (*f->id && !f->made && same_user && (f->ours || !f->others || same_job) &&
		is_in_command(f->m, f->source)) {
		snprintf(f->only, sizeof(f->only), "%s", f->id);
		f->nr++;
	}
	*f->id = *f->user = *f->source = *f->job = 0;
	f->made = f->ours = f->others = false;
}

static int take_found(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct found *f = arg;
	char *name;
	unsigned long item = strtoul(path, &name, 10);

	if (item != f->item)
		item_end(f);
	f->item = item;
	if (!strcmp(name, ".info.run_id") && leaf == LEAF_TEXT)
		keep_id(f->id, text, len);
	else if (!strcmp(name, ".data.tags") && leaf == LEAF_LIST)
		mlflow_each(text, len, take_tag, f);
	return 0;
}

struct list { /* a list in an answer, wherever it stands there */
	const char *name;
	struct buf *out;
};

static int take_list(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct list *l = arg;

	if (leaf == LEAF_LIST && !strcmp(path, l->name))
		buf_add(l->out, text, len);
	return 0;
}

/* The list of that name in the answer; empty when there is none, as MLflow leaves out empty ones. */
static bool list_of(const struct http_answer *a, const char *name, struct buf *out)
{
	struct list l = {name, out};

	return json_read(a->body, a->len, take_list, &l) >= 0 && !out->err;
}

static int take_experiment(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct json *j = arg;
	const char *name = strchr(path, '.');

	if (leaf == LEAF_TEXT && name && !strcmp(name, ".experiment_id") && is_id(text, len))
		json_text(j, NULL, text, len);
	return 0;
}

static void ask_experiments(struct mlflow *m, struct buf *list, struct push_answer *ret)
{
	struct http_answer answer;
	struct json j;

	buf_reset(&m->body);
	json_init(&j, &m->body, false);
	json_object(&j, NULL);
	json_uint(&j, "max_results", EXPERIMENTS_MOST);
	json_end_object(&j);
	mlflow_call(m, "/mlflow/experiments/search", &m->body, &answer, ret);
	if (ret->outcome == PUSH_SENT && !list_of(&answer, "experiments", list))
		*ret = (struct push_answer){
			.outcome = PUSH_LATER, .why = "the server's list of experiments is not JSON"};
}

/* `experiment` NULL: in all of them. */
static void ask_runs(struct mlflow *m, const char *experiment, const char *filter, struct buf *list,
	struct push_answer *ret)
{
	struct http_answer answer;
	struct buf all;
	struct json j;

	buf_init(&all, HTTP_BODY_MOST);
	push_answer_sent(ret);
	if (!experiment)
		ask_experiments(m, &all, ret);
	if (ret->outcome == PUSH_SENT) {
		buf_reset(&m->body);
		json_init(&j, &m->body, false);
		json_object(&j, NULL);
		json_array(&j, "experiment_ids");
		if (experiment)
			json_str(&j, NULL, experiment);
		else if (all.len)
			json_read_list((const char *)all.data, all.len, take_experiment, &j);
		json_end_array(&j);
		json_str(&j, "filter", filter);
		json_uint(&j, "max_results", RUNS_MOST);
		json_end_object(&j);
		mlflow_call(m, "/mlflow/runs/search", &m->body, &answer, ret);
		if (ret->outcome == PUSH_SENT && !list_of(&answer, "runs", list))
			*ret = (struct push_answer){
				.outcome = PUSH_LATER, .why = "the server's list of runs is not JSON"};
	}
	buf_release(&all);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Started while the job ran. Of a job that goes on it must go on as well. */
static bool by_search(struct mlflow *m, bool ended, int64_t end_ns, struct push_answer *ret)
{
	struct found f = {.m = m};
	struct buf list;
	char filter[200];

	snprintf(filter, sizeof(filter), "attributes.start_time >= %lld AND attributes.start_time <= %lld%s",
		(long long)(m->run->start_ns / NSEC_PER_MSEC), (long long)(end_ns / NSEC_PER_MSEC + 1),
		ended ? "" : " AND attributes.status = 'RUNNING'");
	buf_init(&list, HTTP_BODY_MOST);
	ask_runs(m, NULL, filter, &list, ret);
	if (ret->outcome == PUSH_SENT && list.len) {
		json_read_list((const char *)list.data, list.len, take_found, &f);
		item_end(&f);
	}
	buf_release(&list);
	if (f.nr == 1)
		snprintf(m->id, sizeof(m->id), "%s", f.only);
	return f.nr == 1;
}

bool mlflow_find_own(struct mlflow *m, struct push_answer *ret)
{
	struct run *run = mlflow_run_open(m);
	int64_t end = run ? end_of(m, run) : 0, now = now_ns(), age = now - m->run->start_ns;
	bool marked = run && by_mark(m, run);

	run_close(run);
	push_answer_sent(ret);
	if (marked)
		return true;
	if (!end && m->run->follows && age >= 0 && age < YOUNG_NS) {
		if (!m->waits && m->push->say)
			m->push->say(m->push->say_arg,
				"mlflow: waits for a run that the job may start, until it is a minute old; "
				"nothing is lost");
		m->waits = true;
		*ret = (struct push_answer){
			.outcome = PUSH_LATER, .after_ns = MIN(LOOK_AGAIN_NS, YOUNG_NS - age)};
		return false;
	}
	if (by_search(m, end != 0, end ? end : now, ret))
		return true;
	if (ret->outcome == PUSH_REFUSED) /* a server that does not search so */
		push_answer_sent(ret);
	return false;
}

bool mlflow_find_made(struct mlflow *m, const char *experiment, struct push_answer *ret)
{
	struct buf list;
	char filter[100];
	bool found = false;

	snprintf(filter, sizeof(filter), "tags.\"tacho.made\" = '%s'", m->recording);
	buf_init(&list, HTTP_BODY_MOST);
	ask_runs(m, experiment, filter, &list, ret);
	if (ret->outcome == PUSH_SENT && list.len) {
		struct found f = {.m = m};

		json_read_list((const char *)list.data, list.len, take_found, &f);
		found = *f.id;
		if (found)
			snprintf(m->id, sizeof(m->id), "%s", f.id);
	}
	buf_release(&list);
	return found;
}
