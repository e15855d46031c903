/* The end of a run in MLflow: how it ended, what is found in it, the report and the recording.
 *
 * Each step is done once, also when the pusher is started again; one that the server refuses is said and left
 * out, since all values are there already. */
#include "push/mlflow.h"

#include "analysis/analysis.h"
#include "base/json.h"
#include "base/str.h"
#include "document/document.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NOTE_MOST 100000
#define PROXY "/api/2.0/mlflow-artifacts/artifacts"

enum step { /* in the state by their numbers */
	STEP_FACTS = 1,
	STEP_STATUS = 2,
	STEP_NOTE = 4,
	STEP_REPORT = 8,
	STEP_RECORDING = 16,
};

/* ---- how it ended ---- */

static const char *status_of(const struct push_end *end)
{
	switch (end->signal) {
	case 0:
		break;
	case SIGINT:
	case SIGTERM:
	case SIGKILL:
	case SIGHUP:
	case SIGXCPU:
		return "KILLED";
	default:
		return "FAILED";
	}
	if (end->status > 0)
		return "FAILED";
	return end->complete ? "FINISHED" : "KILLED"; /* with its recorder */
}

static void end_run(struct mlflow *m, const struct push_end *end, struct push_answer *ret)
{
	struct http_answer answer;
	struct json j;

	push_answer_sent(ret);
	if (!m->made)
		return;
	buf_reset(&m->body);
	json_init(&j, &m->body, false);
	json_object(&j, NULL);
	json_str(&j, "run_id", m->id);
	json_str(&j, "status", status_of(end));
	json_int(&j, "end_time", end->end_ns / NSEC_PER_MSEC);
	json_end_object(&j);
	mlflow_call(m, "/mlflow/runs/update", &m->body, &answer, ret);
}

static void tell_facts(struct mlflow *m, struct push_answer *ret)
{
	struct meta meta = {0};

	push_answer_sent(ret);
	if (mlflow_meta(m, &meta) >= 0)
		mlflow_describe(m, &meta, ret);
	meta_release(&meta);
}

/* ---- what is found in it ---- */

static int make_page(struct mlflow *m, const struct analysis *s)
{
	struct charts *charts = NULL;
	int r;

	if (!page_is_live())
		return -ENOSYS;
	r = charts_make(s, &charts);
	if (r >= 0)
		r = page_html(s, charts, NULL, false, &m->report);
	charts_free(charts);
	return r;
}

static void say(const struct mlflow *m, const char *fmt, const char *text)
{
	char line[PUSH_WHY_SIZE + 100];

	snprintf(line, sizeof(line), fmt, text);
	if (m->push->say)
		m->push->say(m->push->say_arg, line);
}

/* Once: reading a long run takes a while. */
static void read_run(struct mlflow *m)
{
	struct analysis_options options = {.from_s = NAN, .to_s = NAN};
	struct run *run = m->read ? NULL : mlflow_run_open(m);
	struct analysis *s = NULL;
	struct buf why, note;

	m->read = true;
	if (!run)
		return;
	buf_init(&why, 8192);
	buf_init(&note, NOTE_MOST);
	if (analysis_read(run, &options, &s, &why) >= 0) {
		if (!m->has_note && markdown_note(s, &note) >= 0)
			m->note = strndup((const char *)note.data,
				mlflow_cut((const char *)note.data, note.len, MLFLOW_TAG_MOST));
		if (!m->options->no_artifacts && make_page(m, s) < 0)
			buf_reset(&m->report);
		if (!m->options->no_artifacts && !page_is_live())
			say(m, "mlflow: %s",
				"no report is sent, since this tacho was built without npm: tacho report "
				"makes one");
	} else {
		say(m, "mlflow: no findings and no report: %s",
			why.len ? (const char *)why.data : "the recording cannot be read");
	}
	analysis_free(s);
	run_close(run);
	buf_release(&note);
	buf_release(&why);
}

static void send_note(struct mlflow *m, struct push_answer *ret)
{
	struct http_answer answer;
	struct json j;

	push_answer_sent(ret);
	if (!m->has_note)
		read_run(m);
	if (m->has_note || !m->note)
		return;
	buf_reset(&m->body);
	json_init(&j, &m->body, false);
	json_object(&j, NULL);
	json_str(&j, "run_id", m->id);
	json_array(&j, "tags");
	mlflow_add_pair(&j, "mlflow.note.content", m->note, strlen(m->note), MLFLOW_TAG_MOST);
	json_end_array(&j);
	json_end_object(&j);
	mlflow_call(m, "/mlflow/runs/log-batch", &m->body, &answer, ret);
}

/* ---- files ---- */

/* Whether the server itself takes files: "mlflow-artifacts:/1/RUN/artifacts", also with its own name in it.
 * Nothing is sent to other servers, whatever the answer says. */
static const char *path_at_server(const struct mlflow *m)
{
	static const char scheme[] = "mlflow-artifacts:";
	const char *uri = m->artifact_uri ? m->artifact_uri : "", *host = strstr(m->base, "://") + 3;
	size_t base = strlen(m->base), len = strcspn(host, "/");

	if (str_starts(uri, m->base) && str_starts(uri + base, PROXY "/"))
		return uri + base + strlen(PROXY);
	if (!str_starts(uri, scheme))
		return NULL;
	uri += strlen(scheme);
	if (str_starts(uri, "//") && uri[2] != '/') {
		uri += 2;
		if (strncmp(uri, host, len) != 0 || uri[len] != '/')
			return NULL;
		uri += len;
	}
	while (uri[0] == '/' && uri[1] == '/')
		uri++;
	return *uri == '/' ? uri : NULL;
}

/* False: no place that one should write to. */
static bool add_path(struct buf *url, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");
		char *part = strndup(path, n);

		if (!part || !strcmp(part, "..")) {
			free(part);
			return false;
		}
		if (n) {
			buf_addch(url, '/');
			http_escape(url, part);
		}
		free(part);
		path += n + (path[n] == '/');
	}
	return !url->err;
}

/* `file` or `content`. */
static void put(struct mlflow *m, const char *name, const char *file, const struct buf *content,
	struct push_answer *ret)
{
	struct http_request q = {.method = "PUT", .file = file};
	struct http_answer answer;
	const char *place = path_at_server(m);
	struct buf url;

	push_answer_sent(ret);
	buf_init(&url, 1 << 16);
	buf_addf(&url, "%s%s", m->base, PROXY);
	if (place && add_path(&url, place) && add_path(&url, "tacho") && add_path(&url, name)) {
		q.url = (const char *)url.data;
		q.content_type = content ? "text/html" : "application/octet-stream";
		if (content) {
			q.body = content->data;
			q.len = content->len;
		}
		http_send(m->push->http, &q, &answer);
		mlflow_judge(&answer, ret);
	}
	buf_release(&url);
}

static void send_report(struct mlflow *m, struct push_answer *ret)
{
	push_answer_sent(ret);
	if (m->options->no_artifacts || !path_at_server(m))
		return;
	read_run(m);
	if (m->report.len && !m->report.err)
		put(m, "report.html", NULL, &m->report, ret);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Of two that have one name the second gets its number before it. */
static void send_recording(struct mlflow *m, struct push_answer *ret)
{
	struct run *run = m->options->no_artifacts || !path_at_server(m) ? NULL : mlflow_run_open(m);

	push_answer_sent(ret);
	for (size_t i = 0; run && i < run->nr && ret->outcome == PUSH_SENT; i++) {
		_cleanup_(freep) char *name = NULL;
		bool twice = false;

		for (size_t j = 0; j < i; j++)
			twice |= !strcmp(file_name(run->path[i]), file_name(run->path[j]));
		if (asprintf(&name, twice ? "%2$zu-%1$s" : "%1$s", file_name(run->path[i]), i) < 0)
			name = NULL;
		if (name)
			put(m, name, run->path[i], NULL, ret);
	}
	run_close(run);
}

static void say_store(const struct mlflow *m)
{
	char text[500], uri[160];
	struct buf shown;

	if (m->options->no_artifacts || path_at_server(m))
		return;
	buf_init_fixed(&shown, uri, sizeof(uri));
	escape_bytes(&shown, m->artifact_uri ? m->artifact_uri : "",
		MIN(strlen(m->artifact_uri ? m->artifact_uri : ""), (size_t)39));
	snprintf(text, sizeof(text),
		"%s is a store that only MLflow itself writes to: mlflow artifacts log-artifact --run-id "
		"%.64s --local-file FILE "
		"sends the recording there, --no-artifacts silences this",
		*uri ? uri : "what the server does not name", m->id);
	say(m, "mlflow: no report and no recording: %s", text);
}

/* ---- */

static bool is_done(const struct mlflow *m, enum step step)
{
	return m->done & step;
}

static void set_done(struct mlflow *m, enum step step)
{
	char text[16];

	m->done |= step;
	snprintf(text, sizeof(text), "%u", m->done);
	if (m->push->state)
		push_note_set(m->push->state, "done", text);
}

void mlflow_finish(void *s, const struct push_end *end, struct push_answer *ret)
{
	static const struct {
		enum step step;
		void (*run)(struct mlflow *m, struct push_answer *ret);
	} steps[] = {{STEP_FACTS, tell_facts}, {STEP_NOTE, send_note}, {STEP_REPORT, send_report},
		{STEP_RECORDING, send_recording}};
	struct mlflow *m = s;

	push_answer_sent(ret);
	if (!is_done(m, STEP_STATUS)) {
		end_run(m, end, ret);
		if (ret->outcome == PUSH_LATER)
			return;
		if (ret->outcome != PUSH_SENT)
			say(m, "mlflow: the end of the run cannot be told: %s", ret->why);
		set_done(m, STEP_STATUS);
		m->looked = false; /* the job may have written a note since */
	}
	if (!m->looked)
		mlflow_begin(m, ret);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && ret->outcome == PUSH_SENT; i++) {
		if (is_done(m, steps[i].step))
			continue;
		steps[i].run(m, ret);
		if (ret->outcome == PUSH_LATER)
			return;
		if (ret->outcome != PUSH_SENT)
			say(m, "mlflow: something is left out at the end: %s", ret->why);
		if (steps[i].step == STEP_REPORT)
			say_store(m);
		set_done(m, steps[i].step);
		push_answer_sent(ret);
	}
}
