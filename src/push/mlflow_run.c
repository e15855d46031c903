/* Into which run it goes, and what that run is told at the beginning: see mlflow.h. */
#include "push/mlflow.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/str.h"
#include "query/run.h"
#include "store/glance.h"

#include <stdio.h>
#include <string.h>

/* ---- answers ---- */

struct looked { /* runs/get, runs/create */
	struct mlflow *m;
	char id[MLFLOW_ID_SIZE], experiment[MLFLOW_ID_SIZE], stage[40];
	int64_t last_step, first_step; /* of our names in it; -1. As an earlier pusher has it; -1 */
	bool made, our_system, system; /* tacho writes system/ keys into it; there are such keys */
};

static void take_tag(void *arg, const struct mlflow_tag *t)
{
	struct looked *l = arg;

	if (!strcmp(t->key, "mlflow.note.content"))
		l->m->has_note |= t->value_len > 0;
	else if (!strcmp(t->key, "tacho.system"))
		l->our_system = true;
	else if (!strcmp(t->key, "tacho.made"))
		l->made |= !strcmp(t->value, l->m->recording);
	else if (str_starts(t->key, "tacho.first_step.") &&
		!strcmp(t->key + strlen("tacho.first_step."), l->m->recording))
		parse_i64n(t->value, t->value_len, &l->first_step);
}

static void take_metric(void *arg, const struct mlflow_tag *t)
{
	struct looked *l = arg;

	if (str_starts(t->key, l->m->prefix))
		l->last_step = MAX(l->last_step, t->step);
	l->system |= str_starts(t->key, "system/");
}

/* One that is too long is none. */
static void keep(char ret[static MLFLOW_ID_SIZE], const char *text, size_t len)
{
	snprintf(ret, MLFLOW_ID_SIZE, "%.*s", len < MLFLOW_ID_SIZE ? (int)len : 0, text);
}

static int take_run(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct looked *l = arg;

	if (leaf == LEAF_TEXT && !strcmp(path, "run.info.run_id"))
		keep(l->id, text, len);
	else if (leaf == LEAF_TEXT && !strcmp(path, "run.info.experiment_id"))
		keep(l->experiment, text, len);
	else if (leaf == LEAF_TEXT && !strcmp(path, "run.info.lifecycle_stage"))
		snprintf(l->stage, sizeof(l->stage), "%.*s", (int)MIN(len, sizeof(l->stage) - 1), text);
	else if (leaf == LEAF_TEXT && !strcmp(path, "run.info.artifact_uri")) {
		free(l->m->artifact_uri);
		l->m->artifact_uri = strndup(text, len);
	} else if (leaf == LEAF_LIST && !strcmp(path, "run.data.tags"))
		mlflow_each(text, len, take_tag, l);
	else if (leaf == LEAF_LIST && !strcmp(path, "run.data.metrics"))
		mlflow_each(text, len, take_metric, l);
	return 0;
}

static void say_strange(struct push_answer *ret, const char *what)
{
	*ret = (struct push_answer){.outcome = PUSH_LATER};
	snprintf(ret->why, sizeof(ret->why),
		"the server's answer about %s is none of MLflow's: is that the address of an MLflow server?",
		what);
}

/* ---- what is in the run ---- */

static void note_number(struct push_state *state, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	push_note_set(state, key, text);
}

static bool noted_number(const struct push_state *state, const char *key, int64_t *ret)
{
	const char *text = state ? push_note(state, key) : NULL;

	return text && parse_i64n(text, strlen(text), ret);
}

/* Those of servers and files may be any: ours are added to it. */
static int64_t sane_step(int64_t step)
{
	return MAX(MIN(step, INT64_MAX / 2), 0);
}

/* Where our steps begin: as noted, as an earlier pusher of this recording said, or behind what is there. */
static void settle(struct mlflow *m, const struct looked *l)
{
	struct push_state *state = m->push->state;
	bool before = noted_number(state, "first_step", &m->first_step);

	if (!before && l->first_step >= 0) {
		m->first_step = l->first_step;
		before = true;
	}
	if (!before)
		m->first_step = l->made ? 0 : sane_step(l->last_step) + (l->last_step >= 0);
	m->first_step = sane_step(m->first_step);
	m->foreign_system = l->system && !l->our_system;
	m->made |= l->made;
	keep(m->experiment, l->experiment, strlen(l->experiment));
	if (!state)
		return;
	push_note_set(state, "run_id", m->id);
	push_note_set(state, "made", m->made ? "yes" : "no");
	note_number(state, "first_step", m->first_step);
}

/* One that is noted was there: the note is in the way of another. */
static void say_missing(const struct mlflow *m, struct push_answer *ret, const char *what)
{
	bool noted = m->push->state && push_note(m->push->state, "run_id");

	*ret = (struct push_answer){.outcome = PUSH_FATAL};
	snprintf(ret->why, sizeof(ret->why), "%.200s has no run %.64s%s: %s", m->base, m->id, what,
		noted ? "to begin anew with another, remove the file .push-mlflow beside the recording"
		      : "give another with --run-id (or MLFLOW_RUN_ID), or none for a new one");
}

static void look(struct mlflow *m, struct push_answer *ret)
{
	struct looked l = {.m = m, .last_step = -1, .first_step = -1};
	struct http_answer answer;
	struct buf path;

	buf_init(&path, 1024);
	buf_adds(&path, "/mlflow/runs/get?run_id=");
	http_escape(&path, m->id);
	mlflow_call(m, (const char *)path.data, NULL, &answer, ret);
	buf_release(&path);
	if (mlflow_is_missing(&answer))
		say_missing(m, ret, "");
	if (ret->outcome == PUSH_REFUSED)
		ret->outcome = PUSH_FATAL;
	if (ret->outcome != PUSH_SENT)
		return;
	m->has_note = false;
	if (json_read(answer.body, answer.len, take_run, &l) < 0 || !*l.id) {
		say_strange(ret, "the run");
		return;
	}
	if (*l.stage && strcmp(l.stage, "active") != 0) {
		say_missing(m, ret, " (it was deleted)");
		return;
	}
	settle(m, &l);
	m->looked = true;
	if (m->foreign_system && m->as == MLFLOW_AS_SYSTEM && m->push->say)
		m->push->say(m->push->say_arg,
			"mlflow: the run has system/ metrics of its own already: ours are tacho/ alone");
}

/* ---- a new run ---- */

void mlflow_add_pair(struct json *j, const char *key, const char *value, size_t len, size_t most)
{
	struct buf text;

	buf_init(&text, 4 * len + 16);
	utf8_escape(&text, value, len);
	json_object(j, NULL);
	json_str(j, "key", key);
	json_text(j, "value", text.data, mlflow_cut((const char *)text.data, text.len, most));
	json_end_object(j);
	buf_release(&text);
}

static void add_tag(struct json *j, const char *key, const char *value)
{
	if (value && *value)
		mlflow_add_pair(j, key, value, strlen(value), MLFLOW_TAG_MOST);
}

static int take_experiment(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct looked *l = arg;

	if (leaf != LEAF_TEXT)
		return 0;
	if (!strcmp(path, "experiment.experiment_id") || !strcmp(path, "experiment_id"))
		keep(l->experiment, text, len);
	else if (!strcmp(path, "experiment.lifecycle_stage"))
		snprintf(l->stage, sizeof(l->stage), "%.*s", (int)MIN(len, sizeof(l->stage) - 1), text);
	return 0;
}

static void take_experiment_answer(
	struct mlflow *m, const struct http_answer *a, const char *name, struct push_answer *ret)
{
	struct looked l = {.m = m};

	if (json_read(a->body, a->len, take_experiment, &l) < 0 || !*l.experiment) {
		say_strange(ret, "the experiment");
	} else if (*l.stage && strcmp(l.stage, "active") != 0) {
		*ret = (struct push_answer){.outcome = PUSH_FATAL};
		snprintf(ret->why, sizeof(ret->why),
			"the experiment %.80s was deleted: restore it (mlflow experiments restore -x %.64s), "
			"or give another with --experiment",
			name, l.experiment);
	} else {
		keep(m->experiment, l.experiment, strlen(l.experiment));
	}
}

static void create_experiment(
	struct mlflow *m, const char *name, struct http_answer *answer, struct push_answer *ret)
{
	struct json j;

	buf_reset(&m->body);
	json_init(&j, &m->body, false);
	json_object(&j, NULL);
	json_name(&j, "name", name);
	json_end_object(&j);
	mlflow_call(m, "/mlflow/experiments/create", &m->body, answer, ret);
}

/* Of a name; another pusher may make it at the same time. */
static void find_experiment(struct mlflow *m, const char *name, struct push_answer *ret)
{
	struct http_answer answer;
	struct buf path;

	buf_init(&path, 1 << 16);
	buf_adds(&path, "/mlflow/experiments/get-by-name?experiment_name=");
	http_escape(&path, name);
	for (int tries = 0; tries < 2; tries++) {
		mlflow_call(m, (const char *)path.data, NULL, &answer, ret);
		if (!mlflow_is_missing(&answer))
			break;
		create_experiment(m, name, &answer, ret);
		if (!mlflow_error_is(&answer, "RESOURCE_ALREADY_EXISTS"))
			break;
	}
	buf_release(&path);
	if (ret->outcome == PUSH_SENT)
		take_experiment_answer(m, &answer, name, ret);
}

static void choose_experiment(struct mlflow *m, struct push_answer *ret)
{
	const char *name = m->options->experiment && *m->options->experiment
		? m->options->experiment
		: mlflow_variable("MLFLOW_EXPERIMENT_NAME");
	const char *id = mlflow_variable("MLFLOW_EXPERIMENT_ID");

	push_answer_sent(ret);
	if (name)
		find_experiment(m, name, ret);
	else
		keep(m->experiment, id ? id : "0", strlen(id ? id : "0"));
}

static void create_run(struct mlflow *m, struct push_answer *ret)
{
	const struct push_run *run = m->run;
	struct looked l = {.m = m};
	struct http_answer answer;
	struct json j;

	buf_reset(&m->body);
	json_init(&j, &m->body, false);
	json_object(&j, NULL);
	json_str(&j, "experiment_id", m->experiment);
	json_name(&j, "run_name", m->options->run_name ? m->options->run_name : run->name);
	json_int(&j, "start_time", run->start_ns / NSEC_PER_MSEC);
	json_array(&j, "tags");
	add_tag(&j, "mlflow.user", m->user);
	add_tag(&j, "mlflow.source.name", run->name);
	add_tag(&j, "mlflow.source.type", "LOCAL");
	add_tag(&j, "tacho.made", m->recording);
	json_end_array(&j);
	json_end_object(&j);
	mlflow_call(m, "/mlflow/runs/create", &m->body, &answer, ret);
	if (mlflow_is_missing(&answer))
		snprintf(ret->why, sizeof(ret->why),
			"%s has no experiment %.64s: --experiment NAME makes one", m->base, m->experiment);
	if (ret->outcome == PUSH_REFUSED || mlflow_is_missing(&answer))
		ret->outcome = PUSH_FATAL;
	if (ret->outcome != PUSH_SENT)
		return;
	if (json_read(answer.body, answer.len, take_run, &l) < 0 || !*l.id)
		say_strange(ret, "a new run");
	else
		keep(m->id, l.id, strlen(l.id));
}

static void make_run(struct mlflow *m, struct push_answer *ret)
{
	choose_experiment(m, ret);
	if (ret->outcome != PUSH_SENT)
		return;
	m->chosen = mlflow_find_made(m, m->experiment, ret);
	if (ret->outcome == PUSH_REFUSED)
		push_answer_sent(ret);
	if (!m->chosen && ret->outcome == PUSH_SENT)
		create_run(m, ret);
	m->chosen = m->made = ret->outcome == PUSH_SENT && *m->id;
}

static void choose(struct mlflow *m, struct push_answer *ret)
{
	const char *noted = m->push->state ? push_note(m->push->state, "run_id") : NULL;
	const char *given = m->options->run_id && *m->options->run_id ? m->options->run_id
								      : mlflow_variable("MLFLOW_RUN_ID");

	push_answer_sent(ret);
	if (noted || given) {
		const char *made = noted ? push_note(m->push->state, "made") : NULL;

		keep(m->id, noted ? noted : given, strlen(noted ? noted : given));
		m->made = made && !strcmp(made, "yes");
		m->chosen = true;
	} else if (mlflow_find_own(m, ret)) {
		m->chosen = true;
	} else if (ret->outcome == PUSH_SENT) {
		make_run(m, ret);
	}
}

/* ---- what it is told ---- */

static void begin_batch(struct mlflow *m, struct json *j)
{
	buf_reset(&m->body);
	json_init(j, &m->body, false);
	json_object(j, NULL);
	json_str(j, "run_id", m->id);
}

static void log_batch(struct mlflow *m, struct push_answer *ret)
{
	struct http_answer answer;

	mlflow_call(m, "/mlflow/runs/log-batch", &m->body, &answer, ret);
}

static void send_tags(struct mlflow *m, struct push_answer *ret)
{
	const struct push_run *run = m->run;
	char key[MLFLOW_KEY_MOST + 1], step[32];
	struct json j;

	begin_batch(m, &j);
	json_array(&j, "tags");
	snprintf(key, sizeof(key), "tacho.first_step.%s", m->recording);
	snprintf(step, sizeof(step), "%lld", (long long)m->first_step);
	add_tag(&j, key, step);
	add_tag(&j, "tacho.host", run->host);
	add_tag(&j, "tacho.job", run->job);
	add_tag(&j, "tacho.command", run->command);
	if (m->as == MLFLOW_AS_SYSTEM && !m->foreign_system)
		add_tag(&j, "tacho.system", "yes");
	for (size_t i = 0; i < m->options->nr_labels && i < MLFLOW_PER_REQUEST - 10; i++) {
		mlflow_allowed(m->options->label[i].key, MLFLOW_KEY_MOST, key);
		add_tag(&j, key, m->options->label[i].value);
	}
	json_end_array(&j);
	json_end_object(&j);
	log_batch(m, ret);
}

/* Facts of the machine, and what the job may use; not what is long and of no use to people. */
static bool is_fact(const char *key)
{
	static const char *const left_out[] = {"hw.cpu_all_flags", "hw.cpu_vulnerabilities", "hw.boot_time"};

	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		if (!strcmp(key, left_out[i]))
			return false;
	return str_starts(key, "hw.") || !strcmp(key, "limits.cpus") || !strcmp(key, "limits.memory_bytes");
}

static void add_param(struct json *j, const char *name, const char *value, size_t len)
{
	char key[MLFLOW_KEY_MOST + 1], text[MLFLOW_KEY_MOST + 20];

	if (!len)
		return;
	snprintf(text, sizeof(text), "tacho/%.*s", MLFLOW_KEY_MOST, name);
	mlflow_allowed(text, MLFLOW_KEY_MOST, key);
	mlflow_add_pair(j, key, value, len, MLFLOW_PARAM_MOST);
}

/* Those that a run has already cannot be changed, so a server refuses others: that is nothing to stop at. */
static void send_params(struct mlflow *m, const struct meta *meta, struct push_answer *ret)
{
	uint32_t at = 0;

	push_answer_sent(ret);
	while (at < meta->nr && ret->outcome == PUSH_SENT) {
		unsigned nr = 1;
		struct json j;

		begin_batch(m, &j);
		json_array(&j, "params");
		add_param(&j, "command", m->run->command, strlen(m->run->command));
		for (; at < meta->nr && nr < MLFLOW_PER_REQUEST; at++)
			if (is_fact(meta->item[at].key)) {
				add_param(&j, meta->item[at].key, meta->item[at].value, meta->item[at].len);
				nr++;
			}
		json_end_array(&j);
		json_end_object(&j);
		log_batch(m, ret);
		if (ret->outcome == PUSH_REFUSED) {
			if (m->push->say)
				m->push->say(m->push->say_arg, ret->why);
			push_answer_sent(ret);
		}
	}
}

void mlflow_describe(struct mlflow *m, const struct meta *meta, struct push_answer *ret)
{
	send_tags(m, ret);
	if (ret->outcome == PUSH_SENT)
		send_params(m, meta, ret);
	if (ret->outcome == PUSH_REFUSED)
		ret->outcome = PUSH_FATAL;
	m->described = ret->outcome == PUSH_SENT;
}

/* ---- --no-children ---- */

static int take_meta(void *arg, enum store_type type, const struct pairs *pairs)
{
	return type == STORE_META ? meta_merge(arg, pairs) : 0;
}

/* Its first facts are older than those of the hardware. */
int mlflow_meta(const struct mlflow *m, struct meta *ret)
{
	struct run *run = mlflow_run_open(m);
	struct store_glance glance;
	int r = run && run->nr ? store_glance(run->path[0], take_meta, ret, &glance) : -ENOENT;

	run_close(run);
	return r;
}

static void find_first(struct mlflow *m, struct push_answer *ret)
{
	struct meta meta = {0};

	if (mlflow_meta(m, &meta) >= 0)
		meta_num(&meta, "pid", &m->first_pid);
	meta_release(&meta);
	if (!m->first_pid)
		*ret = (struct push_answer){.outcome = PUSH_FATAL,
			.why = "the recording does not say which process was the first: push without "
			       "--no-children"};
}

/* ---- */

void mlflow_begin(void *s, struct push_answer *ret)
{
	struct mlflow *m = s;

	push_answer_sent(ret);
	if (m->options->no_children && !m->first_pid)
		find_first(m, ret);
	if (!m->chosen && ret->outcome == PUSH_SENT)
		choose(m, ret);
	if (!m->looked && ret->outcome == PUSH_SENT)
		look(m, ret);
	if (!m->described && ret->outcome == PUSH_SENT) {
		struct meta meta = {0};

		if (mlflow_meta(m, &meta) >= 0)
			mlflow_describe(m, &meta, ret);
		else
			mlflow_describe(m, m->run->meta, ret);
		meta_release(&meta);
	}
}
