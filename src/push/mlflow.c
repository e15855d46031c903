/* MLflow: values as metrics of a run, by the REST API of its tracking server. See mlflow.h. */
#include "push/mlflow.h"

#include "base/json.h"
#include "base/str.h"
#include "query/run_about.h"

#include <stdio.h>
#include <string.h>

/* ---- address ---- */

static void add_part(struct buf *out, const char *word, const char *value)
{
	if (!value || !*value)
		return;
	buf_addf(out, " %s ", word);
	escape_bytes(out, value, MIN(strlen(value), (size_t)80));
}

/* With what makes it another target: the same server may get a recording into several runs. */
static int mlflow_address(const struct push *p, char *ret, size_t size, struct buf *reterr)
{
	const struct push_options *o = p->options;
	_cleanup_(freep) char *base = NULL;
	struct buf out;
	int r = mlflow_base(p, &base, reterr);

	if (r < 0)
		return r;
	buf_init(&out, 4096);
	http_address(ret, size, base);
	buf_adds(&out, ret);
	if (o->run_id && *o->run_id)
		add_part(&out, "run", o->run_id);
	else
		add_part(&out, "run", mlflow_variable("MLFLOW_RUN_ID"));
	add_part(&out, "experiment",
		o->experiment ? o->experiment : mlflow_variable("MLFLOW_EXPERIMENT_NAME"));
	add_part(&out, "named", o->run_name);
	if (mlflow_as_of(o) != MLFLOW_AS_TACHO)
		add_part(&out, "as", o->as);
	add_part(&out, "prefix", o->prefix);
	if (!out.err)
		snprintf(ret, size, "%.*s", (int)mlflow_cut((const char *)out.data, out.len, size - 1),
			(const char *)out.data);
	buf_release(&out);
	return out.err;
}

/* ---- one series ---- */

struct mlflow_series {
	char key[MLFLOW_KEY_MOST + 1]; /* "": it is not sent */
	bool growth, has_origin;
	double origin; /* of growth: what counts as 0 */
};

static void find_origin(struct mlflow *m, struct mlflow_series *s, double value)
{
	char key[MLFLOW_KEY_MOST + 20], text[32];
	const char *noted;

	if (s->has_origin)
		return;
	s->has_origin = true;
	s->origin = value;
	if (!m->push->state)
		return;
	snprintf(key, sizeof(key), "origin %s", s->key);
	noted = push_note(m->push->state, key);
	if (noted) {
		s->origin = strtod(noted, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%.17g", value);
	push_note_set(m->push->state, key, text);
}

static struct mlflow_series *series_of(struct mlflow *m, struct push_series *series)
{
	const char *attribute = series->as ? series->as->attribute : NULL;
	struct mlflow_series *s = series->own;

	if (s)
		return s;
	s = series->own = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	mlflow_key(m, series, s->key);
	s->growth = attribute && !strcmp(attribute, "growth");
	return s;
}

/* ---- requests ---- */

static void encode(struct mlflow *m, struct push_point *point, size_t nr, struct buf *out, size_t *ret_nr)
{
	struct json j;

	*ret_nr = 0;
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_str(&j, "run_id", *m->id ? m->id : "RUN");
	json_array(&j, "metrics");
	for (size_t i = 0; i < nr; i++) {
		struct mlflow_series *s = series_of(m, point[i].series);

		if (!s) {
			out->err = -ENOMEM;
			return;
		}
		if (!*s->key)
			continue;
		if (s->growth)
			find_origin(m, s, point[i].value);
		json_object(&j, NULL);
		json_str(&j, "key", s->key);
		if (point[i].is_integer && !s->growth)
			json_int(&j, "value", point[i].integer);
		else
			json_num(&j, "value", point[i].value - (s->growth ? s->origin : 0));
		json_int(&j, "timestamp", point[i].time_ns / NSEC_PER_MSEC);
		json_int(&j, "step", m->first_step + point[i].step);
		json_end_object(&j);
		++*ret_nr;
	}
	json_end_array(&j);
	json_end_object(&j);
}

static void mlflow_send(void *arg, struct push_point *point, size_t nr, struct push_answer *ret)
{
	struct mlflow *m = arg;
	struct http_answer answer = {.body = ""};
	size_t sent;

	buf_reset(&m->body);
	encode(m, point, nr, &m->body, &sent);
	push_answer_sent(ret);
	if (m->body.err)
		*ret = (struct push_answer){.outcome = PUSH_LATER, .why = "there is no memory for a request"};
	else if (m->body.len > MLFLOW_BYTES_MOST)
		*ret = (struct push_answer){
			.outcome = PUSH_REFUSED, .why = "a request would be longer than MLflow takes"};
	else if (sent)
		mlflow_call(m, "/mlflow/runs/log-batch", &m->body, &answer, ret);
	else
		return;
	if (ret->outcome != PUSH_SENT && mlflow_is_missing(&answer))
		ret->outcome = PUSH_FATAL;
}

static void mlflow_show(void *arg, struct push_point *point, size_t nr, struct buf *out)
{
	size_t sent;

	encode(arg, point, nr, out, &sent);
	buf_addch(out, '\n');
}

/* ---- */

static void mlflow_close(void *arg)
{
	struct mlflow *m = arg;

	if (!m)
		return;
	free(m->base);
	free(m->node);
	free(m->artifact_uri);
	free(m->note);
	buf_release(&m->report);
	buf_release(&m->body);
	free(m);
}

/* Several recordings are nodes by their number. One alone may be of several that are pushed each by itself:
 * MLflow's own variable, or SLURM, says which. */
static int choose_node(struct mlflow *m)
{
	const char *given = mlflow_variable("MLFLOW_SYSTEM_METRICS_NODE_ID");
	const struct meta *meta = m->run->meta;
	struct run *run = mlflow_run_open(m);
	int64_t nodes = 0;
	int r = 0;

	m->nodes = run && (run->nr > 1 || (run->about && run->about->nr_nodes > 1));
	run_close(run);
	if (m->nodes)
		return 0;
	if (given)
		r = asprintf(&m->node, "%s/", given);
	else if (meta_num(meta, "env.SLURM_JOB_NUM_NODES", &nodes) && nodes > 1 &&
		*meta_text(meta, "env.SLURM_NODEID"))
		r = asprintf(&m->node, "node_%s/", meta_text(meta, "env.SLURM_NODEID"));
	return r < 0 ? -ENOMEM : 0;
}

static int check_options(const struct mlflow *m, struct buf *reterr)
{
	const char *id = m->options->run_id;

	if (m->options->no_children && m->as != MLFLOW_AS_PROCESS) {
		buf_adds(reterr, "--no-children goes with --as process");
		return -EINVAL;
	}
	if (m->options->no_children && m->nodes) {
		buf_adds(reterr, "--no-children is of one node: push its recording alone");
		return -EINVAL;
	}
	if (id &&
		strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
			strlen(id)) {
		buf_adds(reterr, "--run-id: a run of MLflow is called by letters, digits, '-' and '_'");
		return -EINVAL;
	}
	return 0;
}

/* Whose job it is; recordings of jobs without USER have the name by its number. */
static const char *user_of(const struct push_run *run)
{
	const struct meta_item *item = NULL;
	int64_t uid;

	if (!(run->user && *run->user) && meta_num(run->meta, "uid", &uid))
		item = meta_user(run->meta, uid);
	return item ? item->value : run->user ? run->user : "";
}

static void name_recording(struct mlflow *m)
{
	char text[600];

	snprintf(text, sizeof(text), "%.250s %lld %.250s", m->run->host, (long long)m->run->start_ns,
		m->options->run_name ? m->options->run_name : "");
	snprintf(m->recording, sizeof(m->recording), "%016llx",
		(unsigned long long)hash_bytes(text, strlen(text)));
}

/* MLflow's own names are of the node: what the job does is told beside them. */
static bool names_beside(const struct push *p)
{
	return mlflow_as_of(p->options) == MLFLOW_AS_SYSTEM;
}

static int mlflow_open(struct push *p, void **ret, struct buf *reterr)
{
	struct mlflow *m = calloc(1, sizeof(*m));
	const char *done = p->state ? push_note(p->state, "done") : NULL;
	uint64_t mask;
	int r;

	if (!m)
		return -ENOMEM;
	m->push = p;
	m->options = p->options;
	m->run = p->run;
	m->user = user_of(p->run);
	m->as = mlflow_as_of(p->options);
	m->prefix = mlflow_prefix(p->options);
	if (done && parse_u64(done, &mask))
		m->done = (unsigned)mask;
	buf_init(&m->body, MLFLOW_REQUEST_MOST);
	buf_init(&m->report, MLFLOW_REPORT_MOST);
	name_recording(m);
	r = mlflow_base(p, &m->base, reterr);
	if (r >= 0)
		r = choose_node(m);
	if (r >= 0)
		r = check_options(m, reterr);
	if (r >= 0)
		r = mlflow_login(p, reterr);
	if (r < 0) {
		mlflow_close(m);
		return r;
	}
	*ret = m;
	return 0;
}

static void mlflow_where(void *arg, struct buf *out)
{
	const struct mlflow *m = arg;

	if (*m->id)
		buf_addf(out, "%s/#/experiments/%s/runs/%s", m->base, *m->experiment ? m->experiment : "0",
			m->id);
}

const struct push_sink push_mlflow = {
	.name = "mlflow",
	.help = "metrics of a run in MLflow: the job's own run, or a new one",
	.url_help = "http://HOST:PORT of the tracking server; else MLFLOW_TRACKING_URI",
	.points_most = MLFLOW_METRICS_MOST,
	.bytes_most = MLFLOW_BYTES_MOST,
	.names_beside = names_beside,
	.address = mlflow_address,
	.names = mlflow_names,
	.open = mlflow_open,
	.begin = mlflow_begin,
	.send = mlflow_send,
	.show = mlflow_show,
	.finish = mlflow_finish,
	.close = mlflow_close,
	.where = mlflow_where,
};
