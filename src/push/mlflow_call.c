/* Requests of MLflow's API, and what its answers say. */
#include "push/mlflow.h"

#include "base/json_read.h"
#include "base/owned.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

void mlflow_call(struct mlflow *m, const char *path, const struct buf *body, struct http_answer *answer,
	struct push_answer *ret)
{
	_cleanup_(freep) char *url = NULL;
	struct http_request q = {.method = body ? "POST" : "GET"};

	*answer = (struct http_answer){.body = ""};
	if (asprintf(&url, "%s/api/2.0%s", m->base, path) < 0 || (body && body->err)) {
		*ret = (struct push_answer){.outcome = PUSH_LATER, .why = "there is no memory for a request"};
		return;
	}
	q.url = url;
	if (body) {
		q.content_type = "application/json";
		q.body = body->data;
		q.len = body->len;
	}
	http_send(m->push->http, &q, answer);
	mlflow_judge(answer, ret);
}

/* ---- {"error_code": …, "message": …} ---- */

struct mlflow_error {
	char code[256], message[1600]; /* escaped, so four bytes for each */
};

static int take_error(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct mlflow_error *e = arg;
	struct buf out;

	if (leaf != LEAF_TEXT)
		return 0;
	if (!strcmp(path, "error_code"))
		buf_init_fixed(&out, e->code, sizeof(e->code));
	else if (!strcmp(path, "message"))
		buf_init_fixed(&out, e->message, sizeof(e->message));
	else
		return 0;
	escape_bytes(&out, text, MIN(len, out.max / 4 - 1)); /* of each byte four at most */
	return 0;
}

static bool read_error(const struct http_answer *a, struct mlflow_error *ret)
{
	*ret = (struct mlflow_error){0};
	return json_read(a->body, a->len, take_error, ret) >= 0 && *ret->code;
}

bool mlflow_error_is(const struct http_answer *a, const char *code)
{
	struct mlflow_error e;

	return a->status / 100 == 4 && read_error(a, &e) && !strcmp(e.code, code);
}

bool mlflow_is_missing(const struct http_answer *a)
{
	return mlflow_error_is(a, "RESOURCE_DOES_NOT_EXIST");
}

static const char *what_to_do(long status, const struct mlflow_error *e, bool known, const char *body)
{
	if (status == 401)
		return "; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
		       "MLFLOW_TRACKING_TOKEN";
	if (status == 403 && strstr(body, "nvalid Host header"))
		return "; start the server with --allowed-hosts";
	if (status == 403)
		return "; ask who runs the server for the right to write there";
	if ((status == 404 || status == 405) && !known)
		return "; is that the address of an MLflow server?";
	if (known && strstr(e->message, "lifecycle_stage"))
		return "; restore the run (mlflow runs restore), or give another with --run-id";
	return "";
}

void mlflow_judge(const struct http_answer *a, struct push_answer *ret)
{
	struct mlflow_error e;
	bool known = a->status / 100 != 2 && read_error(a, &e);
	const char *todo;
	struct buf why;
	size_t n;

	http_judge(a, ret);
	if (a->status / 100 == 2 || !a->status)
		return;
	todo = what_to_do(a->status, &e, known, a->body);
	if (known && strstr(e.message, "lifecycle_stage"))
		ret->outcome = PUSH_FATAL;
	buf_init(&why, sizeof(e) + sizeof(ret->why));
	if (known)
		buf_addf(&why, "the server answers %ld: %s: %s", a->status, e.code, e.message);
	else
		buf_adds(&why, ret->why);
	n = mlflow_cut((const char *)why.data, why.len, sizeof(ret->why) - strlen(todo) - 1);
	snprintf(ret->why, sizeof(ret->why), "%.*s%s", (int)n, (const char *)why.data, todo);
	buf_release(&why);
}

/* ---- lists of {"key": …, "value": …} ---- */

struct each {
	void (*take)(void *arg, const struct mlflow_tag *t);
	void *arg;
	unsigned long item;
	bool open;
	struct buf key, value;
	int64_t step;
};

static void each_end(struct each *e)
{
	struct mlflow_tag t = {
		(const char *)e->key.data, (const char *)e->value.data, e->key.len, e->value.len, e->step};

	if (e->open && !e->key.err && !e->value.err)
		e->take(e->arg, &t);
	buf_reset(&e->key);
	buf_reset(&e->value);
	e->step = -1;
	e->open = false;
}

static int each_leaf(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct each *e = arg;
	char *name;
	unsigned long item = strtoul(path, &name, 10);

	if (item != e->item)
		each_end(e);
	e->item = item;
	e->open = true;
	if (!strcmp(name, ".key"))
		buf_add(&e->key, text, len);
	else if (!strcmp(name, ".value"))
		buf_add(&e->value, text, len);
	else if (!strcmp(name, ".step") && (leaf == LEAF_NUMBER || leaf == LEAF_TEXT))
		parse_i64n(text, len, &e->step);
	return 0;
}

bool mlflow_each(const char *list, size_t len, void (*take)(void *arg, const struct mlflow_tag *t), void *arg)
{
	struct each e = {.take = take, .arg = arg, .step = -1};
	int r;

	buf_init(&e.key, HTTP_BODY_MOST);
	buf_init(&e.value, HTTP_BODY_MOST);
	r = json_read_list(list, len, each_leaf, &e);
	if (r >= 0)
		each_end(&e);
	buf_release(&e.key);
	buf_release(&e.value);
	return r >= 0;
}
