/* The parts of the MLflow sink. It speaks the REST API of MLflow's tracking server, version 2.0.
 *
 * What it finds out it asks for again after a restart, or keeps on the server: which run is the job's stands
 * in the state and in a tag of the run, so that a second pusher, and one whose state is gone, send the same
 * again and not the same a second time. */
#ifndef PUSH_MLFLOW_H
#define PUSH_MLFLOW_H

#include "push/sink.h"

enum mlflow_as { MLFLOW_AS_TACHO, MLFLOW_AS_PROCESS, MLFLOW_AS_SYSTEM };

#define MLFLOW_KEY_MOST 250   /* of metrics, params and tags */
#define MLFLOW_ID_SIZE 260    /* of runs; those of experiments are shorter */
#define MLFLOW_PARAM_MOST 500 /* what older servers take; newer ones 6000 */
#define MLFLOW_TAG_MOST 5000
#define MLFLOW_PER_REQUEST 100 /* params, tags */
#define MLFLOW_METRICS_MOST 1000
#define MLFLOW_BYTES_MOST 1000000
#define MLFLOW_REQUEST_MOST ((size_t)4 << 20) /* of ours: more is a mistake */
#define MLFLOW_REPORT_MOST ((size_t)1 << 30)

struct mlflow {
	struct push *push;
	const struct push_options *options;
	const struct push_run *run;
	enum mlflow_as as;
	const char *user;   /* "" when it is not known */
	char *base;	    /* "https://host/prefix" */
	const char *prefix; /* of names: "tacho/" */
	char *node;	    /* "node_0/" when this one has a name of its own; NULL */
	bool nodes;	    /* several: each has its number */
	char recording[20]; /* which one it is, for tags */
	char id[MLFLOW_ID_SIZE], experiment[MLFLOW_ID_SIZE];
	bool chosen, made;   /* there is a run; it is ours to end */
	bool looked;	     /* what is in it is known */
	bool described;	     /* tags and params were sent */
	bool foreign_system; /* its system/ keys are of another */
	bool has_note;
	int64_t first_step;
	char *artifact_uri; /* NULL: not said */
	int64_t first_pid;  /* of --no-children */
	struct buf body;    /* of the request */
	/* Of the end. */
	unsigned done;	   /* mask of steps */
	struct buf report; /* the page; made once */
	char *note;
	bool read;
	bool waits; /* for the job's own run: said */
};

/* ---- mlflow_settings.c: what the variables of MLflow's clients say ---- */

/* NULL when it is not set, or empty. */
const char *mlflow_variable(const char *name);
/* The server's address without user and password. -EINVAL, and reterr says what to do. */
int mlflow_base(const struct push *p, char **ret, struct buf *reterr);
/* Gives user, password, tokens, certificates to the push's requests. */
int mlflow_login(const struct push *p, struct buf *reterr);

/* ---- mlflow_names.c: names of metrics ---- */

enum mlflow_as mlflow_as_of(const struct push_options *o);
const char *mlflow_prefix(const struct push_options *o);
const struct push_name *mlflow_names(const struct push *p);
/* The key of a series, as MLflow allows them; "" when it is not sent. */
void mlflow_key(
	const struct mlflow *m, const struct push_series *series, char ret[static MLFLOW_KEY_MOST + 1]);
/* Makes a key of any text: of what MLflow does not allow '_', and then a number that tells such texts apart.
 */
void mlflow_allowed(const char *text, size_t most, char *ret);
/* Cuts UTF-8 text to so many bytes, between characters. */
size_t mlflow_cut(const char *text, size_t len, size_t most);

/* ---- mlflow_call.c: requests and answers ---- */

/* A path of the API ("/mlflow/runs/get?run_id=…"); `body` NULL: GET. The answer's body stays until the next.
 */
void mlflow_call(struct mlflow *m, const char *path, const struct buf *body, struct http_answer *answer,
	struct push_answer *ret);
/* What an answer means, in the server's words and with what to do about it. */
void mlflow_judge(const struct http_answer *a, struct push_answer *ret);
/* The server says that there is no such thing. */
bool mlflow_is_missing(const struct http_answer *a);
bool mlflow_error_is(const struct http_answer *a, const char *code);

struct mlflow_tag { /* key and value, valid during the call */
	const char *key, *value;
	size_t key_len, value_len;
	int64_t step; /* of a metric; -1 */
};

/* Each item of a list of {"key":…,"value":…}; false: it is none. */
bool mlflow_each(
	const char *list, size_t len, void (*take)(void *arg, const struct mlflow_tag *t), void *arg);

/* ---- mlflow_own.c: the job's own run ---- */

/* True, and m->id; else it is not known yet (PUSH_LATER), or there is none. */
bool mlflow_find_own(struct mlflow *m, struct push_answer *ret);
/* The recordings, as many as there are now; NULL: they cannot be opened. */
struct run *mlflow_run_open(const struct mlflow *m);
/* A run that was made for this recording before. */
bool mlflow_find_made(struct mlflow *m, const char *experiment, struct push_answer *ret);

/* ---- mlflow_run.c: which run; what it is told at the beginning ---- */

void mlflow_begin(void *s, struct push_answer *ret);
/* What the recording says of itself now. */
int mlflow_meta(const struct mlflow *m, struct meta *ret);
/* Params and tags of the recordings; `meta` may say more than at the beginning. */
void mlflow_describe(struct mlflow *m, const struct meta *meta, struct push_answer *ret);
/* Adds {"key":…,"value":…}, the value cut. */
struct json;
void mlflow_add_pair(struct json *j, const char *key, const char *value, size_t len, size_t most);

/* ---- mlflow_finish.c ---- */

void mlflow_finish(void *s, const struct push_end *end, struct push_answer *ret);
#endif
