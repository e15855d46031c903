/* Where MLflow's server is and who we are to it, as MLflow's own clients have it: MLFLOW_TRACKING_URI and its
 * like, and ~/.mlflow/credentials. */
#include "push/mlflow.h"

#include "base/str.h"
#include "base/text.h"
#include "base/whole_file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CREDENTIALS_MOST 65536
#define SERVER "start a server (mlflow server --port 5000"

const char *mlflow_variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static bool is_true(const char *name)
{
	const char *value = mlflow_variable(name);

	return value && (!strcasecmp(value, "true") || !strcmp(value, "1"));
}

/* ---- the address ---- */

/* Of stores that only MLflow itself can open. */
/* "localhost:5000". */
static bool is_bare_host(const char *uri)
{
	const char *colon = strchr(uri, ':');
	size_t n = colon ? strspn(colon + 1, "0123456789") : 0;

	return n && colon > uri && !memchr(uri, '/', (size_t)(colon - uri)) &&
		(!colon[1 + n] || colon[1 + n] == '/');
}

static void say_store(const char *uri, struct buf *reterr)
{
	static const char *const databases[] = {"sqlite:", "mysql", "postgresql", "mssql"};
	const char *path = str_starts(uri, "file:") ? uri + 5 : uri;
	char shown[200];

	http_address(shown, sizeof(shown), uri);
	for (size_t i = 0; i < ARRAY_SIZE(databases); i++)
		if (str_starts(uri, databases[i])) {
			buf_addf(reterr,
				"%s is a database that only MLflow itself opens: " SERVER
				" --backend-store-uri %s), and set MLFLOW_TRACKING_URI=http://localhost:5000",
				shown, i ? "with its address" : shown);
			return;
		}
	if (str_starts(uri, "databricks") || str_starts(uri, "uc:"))
		buf_addf(reterr,
			"%s has a login of its own, which is not supported: give the workspace's address as "
			"MLFLOW_TRACKING_URI=https://HOST and a token as MLFLOW_TRACKING_TOKEN",
			shown);
	else if (strstr(uri, "://") && !str_starts(uri, "file:"))
		buf_addf(reterr, "%s is no address of an MLflow server: http://HOST:PORT or https://HOST",
			shown);
	else if (is_bare_host(uri))
		buf_addf(reterr, "%s is no address: did you mean http://%s?", shown, shown);
	else
		buf_addf(reterr,
			"%s is a directory, into which only MLflow itself writes: " SERVER
			" --backend-store-uri %s), and set MLFLOW_TRACKING_URI=http://localhost:5000",
			uri, path);
}

/* Where "USER:PASSWORD@" ends in the address; NULL: there is none. */
static const char *after_user(const char *uri)
{
	const char *host = strstr(uri, "://") + 3, *end = host + strcspn(host, "/?#"), *at = NULL;

	for (const char *p = host; p < end; p++)
		if (*p == '@')
			at = p + 1;
	return at;
}

static const char *address_given(const struct push *p)
{
	return p->options->url && *p->options->url ? p->options->url : mlflow_variable("MLFLOW_TRACKING_URI");
}

int mlflow_base(const struct push *p, char **ret, struct buf *reterr)
{
	const char *uri = address_given(p), *at;
	size_t scheme, len;

	if (!uri) {
		buf_adds(reterr,
			"no address of MLflow's server: set MLFLOW_TRACKING_URI=http://HOST:PORT, "
			"or "
			"--to mlflow=http://HOST:PORT; without a server, " SERVER ")");
		return -EINVAL;
	}
	if (!http_is_url(uri)) {
		say_store(uri, reterr);
		return -EINVAL;
	}
	if (strpbrk(uri, "?#")) {
		buf_adds(reterr, "an address of MLflow's server has no '?' and no '#'");
		return -EINVAL;
	}
	at = after_user(uri);
	if (at && p->options->url && *p->options->url) {
		buf_adds(reterr,
			"no password belongs on a command line, where others can see it: set "
			"MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD");
		return -EINVAL;
	}
	scheme = (size_t)(strstr(uri, "://") + 3 - uri);
	at = at ? at : uri + scheme;
	len = strlen(at);
	while (len && at[len - 1] == '/')
		len--;
	return asprintf(ret, "%.*s%.*s", (int)scheme, uri, (int)len, at) < 0 ? -ENOMEM : 0;
}

/* ---- user and password ---- */

struct login {
	char *user, *password;
};

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

static char *decoded(const char *text, size_t len)
{
	char *out = malloc(len + 1), *to = out;

	for (size_t i = 0; out && i < len; i++) {
		int high = text[i] == '%' && i + 2 < len ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

		*to++ = low >= 0 ? (char)(high << 4 | low) : text[i];
		i += low >= 0 ? 2 : 0;
	}
	if (out)
		*to = 0;
	return out;
}

/* Those of the address come before all others. */
static void login_of_address(const struct push *p, struct login *l)
{
	const char *uri = address_given(p), *at = uri && http_is_url(uri) ? after_user(uri) : NULL, *host,
		   *colon;

	if (!at)
		return;
	host = strstr(uri, "://") + 3;
	colon = memchr(host, ':', (size_t)(at - 1 - host));
	l->user = decoded(host, (size_t)((colon ? colon : at - 1) - host));
	l->password = colon ? decoded(colon + 1, (size_t)(at - 2 - colon)) : strdup("");
}

static bool is_key(struct text key, const char *name)
{
	return key.len == strlen(name) && !strncasecmp(key.p, name, key.len);
}

/* "[mlflow]", then KEY = VALUE or KEY: VALUE; lines with # or ; are comments. */
static void login_of_file(struct login *l)
{
	const char *home = getenv("HOME");
	_cleanup_(freep) char *path = NULL, *content = NULL;
	struct text rest;
	bool inside = false;

	if (!home || asprintf(&path, "%s/.mlflow/credentials", home) < 0)
		return;
	if (file_read(path, CREDENTIALS_MOST, &content, &rest.len) < 0)
		return;
	rest.p = content;
	while (rest.len) {
		struct text line = text_strip(text_cut(&rest, '\n')), key, value;
		size_t n = 0;
		char **to;

		if (line.len && *line.p == '[')
			inside = text_is(line, "[mlflow]");
		if (!inside || !line.len || strchr("[#;", *line.p))
			continue;
		while (n < line.len && line.p[n] != '=' && line.p[n] != ':')
			n++;
		key = text_strip((struct text){line.p, n});
		value = text_strip(text_from(line, n + 1));
		to = is_key(key, "mlflow_tracking_username")	  ? &l->user
			: is_key(key, "mlflow_tracking_password") ? &l->password
								  : NULL;
		if (!to)
			continue;
		free(*to);
		*to = strndup(value.p, value.len);
	}
	explicit_bzero(content, strlen(content));
}

static void login_replace(char **to, const char *name)
{
	const char *value = mlflow_variable(name);

	if (!value)
		return;
	free(*to);
	*to = strdup(value);
}

static void login_release(struct login *l)
{
	if (l->password)
		explicit_bzero(l->password, strlen(l->password));
	free(l->user);
	free(l->password);
}

static int check_supported(struct buf *reterr)
{
	static const char *const other[] = {"MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4"};

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		if (mlflow_variable(other[i]) && (!i || is_true(other[i]))) {
			buf_addf(reterr,
				"%s asks for a login that is not supported: unset it, and use "
				"MLFLOW_TRACKING_TOKEN or "
				"MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
				other[i]);
			return -EINVAL;
		}
	if (is_true("MLFLOW_TRACKING_INSECURE_TLS") && mlflow_variable("MLFLOW_TRACKING_SERVER_CERT_PATH")) {
		buf_adds(reterr,
			"MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH contradict each "
			"other: unset one");
		return -EINVAL;
	}
	return 0;
}

/* MLflow's own limit of time holds unless --timeout says another. */
static int64_t timeout_of(const struct push *p)
{
	const char *text = mlflow_variable("MLFLOW_HTTP_REQUEST_TIMEOUT");
	double seconds;

	if (p->options->timeout_ns != 30 * NSEC_PER_SEC || !text || !parse_decimal(text, &seconds) ||
		!(seconds > 0))
		return p->options->timeout_ns;
	return (int64_t)(MIN(seconds, 86400.0) * (double)NSEC_PER_SEC);
}

int mlflow_login(const struct push *p, struct buf *reterr)
{
	const char *workspace = mlflow_variable("MLFLOW_WORKSPACE"), *header[2] = {NULL, NULL};
	_cleanup_(freep) char *line = NULL;
	struct http_options o = {.timeout_ns = timeout_of(p),
		.insecure = is_true("MLFLOW_TRACKING_INSECURE_TLS"),
		.ca_file = mlflow_variable("MLFLOW_TRACKING_SERVER_CERT_PATH"),
		.client_cert = mlflow_variable("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
		.header = header};
	struct login l = {0};
	int r = check_supported(reterr);

	if (r < 0 || !p->http)
		return r;
	if (workspace && asprintf(&line, "X-MLFLOW-WORKSPACE: %s", workspace) < 0)
		return -ENOMEM;
	header[0] = line;
	login_of_file(&l);
	login_replace(&l.user, "MLFLOW_TRACKING_USERNAME");
	login_replace(&l.password, "MLFLOW_TRACKING_PASSWORD");
	login_of_address(p, &l);
	if (l.user && *l.user && l.password && *l.password) {
		o.user = l.user;
		o.password = l.password;
	} else {
		o.bearer = mlflow_variable("MLFLOW_TRACKING_TOKEN");
	}
	r = http_set(p->http, &o, reterr);
	login_release(&l);
	return r;
}
