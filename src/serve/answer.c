/* One request: who asks, whether they may, and what they get. All that takes time is done by others: a
 * request waits suspended for it, and is asked again when there is something to say. */
#include "serve/internal.h"

#include "base/units.h"
#include "document/document.h"
#include "serve/files.h"
#include "serve/stream.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE_NS (NSEC_PER_SEC * 7 / 10) /* then a page says what is being done */
#define WRONG_FREE 5			    /* wrong tokens that are answered at once */
#define WRONG_DELAY_NS (2 * NSEC_PER_SEC)

/* ---- answers ---- */

static void add_headers(struct MHD_Response *r)
{
	static const char *const row[][2] = {
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
		{"Cache-Control", "no-store"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Connection", "close"},
	};
	struct buf policy;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		MHD_add_response_header(r, row[i][0], row[i][1]);
	buf_init(&policy, 4096);
	page_served_policy(&policy, signin_hash());
	MHD_add_response_header(r, "Content-Security-Policy", (char *)policy.data);
	buf_release(&policy);
}

enum MHD_Result answer_send(
	struct serve_request *q, unsigned status, const char *type, struct MHD_Response *r)
{
	enum MHD_Result sent;

	if (!r)
		return MHD_NO;
	add_headers(r);
	MHD_add_response_header(r, "Content-Type", type);
	sent = MHD_queue_response(q->connection, status, r);
	MHD_destroy_response(r);
	return sent;
}

/* Takes the reference. */
static struct MHD_Response *response_of(struct shared *s)
{
	return s ? MHD_create_response_from_buffer_with_free_callback_cls(
			   s->bytes.len, s->bytes.data, shared_drop, s)
		 : NULL;
}

#define HTML "text/html; charset=utf-8"

static enum MHD_Result send_text(struct serve_request *q, unsigned status, const char *type, struct buf *text)
{
	return answer_send(q, status, type, response_of(shared_take(text)));
}

enum MHD_Result answer_say(struct serve_request *q, unsigned status, const char *title, const char *text)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	waiting_page(title, text, 0, &out);
	return send_text(q, status, HTML, &out);
}

/* It is asked again when something has changed, or at that time. Under the lock. Nothing may wait when the
 * server ends: libmicrohttpd aborts if it still finds a suspended connection then. */
enum MHD_Result answer_wait(struct serve_request *q, int64_t until_ns)
{
	if (q->serve->ends) {
		q->cut_off = true;
		return MHD_NO;
	}
	q->until_ns = until_ns;
	q->suspended = true;
	MHD_suspend_connection(q->connection);
	pthread_cond_signal(&q->serve->change);
	return MHD_YES;
}

/* ---- may they? ---- */

static const char *header_of(struct serve_request *q, const char *name)
{
	return MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}

static bool is_ours(const struct serve_request *q)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);

	return getsockopt(q->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		(peer.uid == geteuid() || peer.uid == 0);
}

/* A page of another site, or another program of this machine, made the browser ask. Following a link there is
 * no harm: nothing changes, and the other page does not see the answer. */
static bool is_foreign(struct serve_request *q)
{
	const char *site = header_of(q, "Sec-Fetch-Site"), *mode = header_of(q, "Sec-Fetch-Mode"),
		   *to = header_of(q, "Sec-Fetch-Dest");

	if (site && !strcmp(site, "same-site"))
		return !mode || strcmp(mode, "navigate") != 0 || !to || strcmp(to, "document") != 0;
	return (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) ||
		!serve_origin_is(header_of(q, "Origin"), header_of(q, "Host"));
}

static bool has_cookie(struct serve_request *q)
{
	const char *value;
	size_t len;

	return serve_cookie(header_of(q, "Cookie"), q->serve->cookie, &value, &len) &&
		serve_same_secret(value, len, q->serve->token);
}

static bool has_token(struct serve_request *q)
{
	const char *given = serve_bearer(header_of(q, "Authorization"));

	return given && serve_same_secret(given, strlen(given), q->serve->token);
}

static enum MHD_Result send_signin(struct serve_request *q)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	signin_page(q->address.depth, &out);
	return send_text(q, MHD_HTTP_FORBIDDEN, HTML, &out);
}

static enum MHD_Result refuse(struct serve_request *q)
{
	return answer_say(q, MHD_HTTP_FORBIDDEN, "Refused", "This address is not served to this request.");
}

static enum MHD_Result sign_in(struct serve_request *q)
{
	struct serve *s = q->serve;
	struct MHD_Response *r;
	char cookie[800];
	bool wait;

	if (!s->token || has_token(q)) {
		r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
		if (r && s->token) {
			snprintf(cookie, sizeof(cookie), "%s=%s; HttpOnly; SameSite=Strict", s->cookie,
				s->token);
			MHD_add_response_header(r, "Set-Cookie", cookie);
		}
		return answer_send(q, MHD_HTTP_NO_CONTENT, "text/plain", r);
	}
	pthread_mutex_lock(&s->lock);
	wait = !q->until_ns && ++s->wrong_tokens > WRONG_FREE;
	if (wait)
		answer_wait(q, serve_now() + WRONG_DELAY_NS);
	else if (q->until_ns && serve_now() < q->until_ns)
		wait = answer_wait(q, q->until_ns) == MHD_YES || q->cut_off;
	pthread_mutex_unlock(&s->lock);
	return wait ? MHD_YES : refuse(q);
}

/* ---- the list ---- */

static enum MHD_Result send_index(struct serve_request *q)
{
	const char *from = MHD_lookup_connection_value(q->connection, MHD_GET_ARGUMENT_KIND, "from");
	struct serve *s = q->serve;
	int64_t at = 0;
	struct buf out;
	bool waits;

	if (from && !serve_moment(from, &at))
		return answer_say(q, MHD_HTTP_NOT_FOUND, "Not found", "There is no such list.");
	pthread_mutex_lock(&s->lock);
	/* One that is a little old is better than none. */
	waits = !catalog_fresh(s) && serve_now() < q->began_ns + PATIENCE_NS;
	if (waits)
		answer_wait(q, q->began_ns + PATIENCE_NS);
	buf_init(&out, PAGE_MOST);
	if (!waits && s->catalog.made_ns)
		index_page(s, (size_t)at, &out);
	else if (!waits)
		waiting_page("Reading", "Looking for recordings.", 1, &out);
	pthread_mutex_unlock(&s->lock);
	if (!waits)
		return send_text(q, MHD_HTTP_OK, HTML, &out);
	buf_release(&out);
	return MHD_YES;
}

/* ---- a run ---- */

static void add_progress(const struct shown *h, struct buf *out)
{
	size_t nodes = __atomic_load_n(&h->nr_nodes, __ATOMIC_RELAXED);
	double done;

	__atomic_load(&h->progress, &done, __ATOMIC_RELAXED);
	if (nodes > 1)
		buf_addf(out, "Reading %s recordings: %.0f %%.", format_count(SHOWN, (double)nodes),
			done * 100);
	else
		buf_addf(out, "Reading the recording: %.0f %%.", done * 100);
}

static enum MHD_Result send_page(struct serve_request *q)
{
	struct shown *h = q->shown;
	struct shared *page = NULL;
	struct buf out, text;
	bool ready, failed, waits;

	buf_init(&out, 1 << 20);
	buf_init(&text, 1 << 16);
	pthread_mutex_lock(&q->serve->lock);
	ready = shown_ready(h);
	failed = ready && h->trouble;
	page = ready && !failed ? shared_ref(h->page) : NULL;
	waits = !ready && serve_now() < q->began_ns + PATIENCE_NS;
	if (waits)
		answer_wait(q, q->began_ns + PATIENCE_NS);
	if (failed)
		waiting_page("Not readable", h->trouble, 2, &out);
	if (!ready && !waits) {
		add_progress(h, &text);
		waiting_page("Reading", (char *)text.data, 1, &out);
	}
	pthread_mutex_unlock(&q->serve->lock);
	buf_release(&text);
	if (page || waits) {
		buf_release(&out);
		return waits ? MHD_YES : answer_send(q, MHD_HTTP_OK, HTML, response_of(page));
	}
	return send_text(q, MHD_HTTP_OK, HTML, &out);
}

static enum MHD_Result send_bare(struct serve_request *q)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
	char to[ID_DIGITS + 2];

	snprintf(to, sizeof(to), "%s/", q->address.id);
	if (r)
		MHD_add_response_header(r, "Location", to);
	return answer_send(q, MHD_HTTP_FOUND, "text/plain", r);
}

/* -EAGAIN: it waits for the list. */
static int find_run(struct serve_request *q)
{
	struct serve *s = q->serve;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (!q->shown)
		q->shown = shown_get(s, q->address.id);
	if (!q->shown && !catalog_fresh(s)) {
		answer_wait(q, q->began_ns + 60 * NSEC_PER_SEC);
		r = -EAGAIN;
	} else if (!q->shown) {
		r = -ENOENT;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static enum MHD_Result send_of_run(struct serve_request *q)
{
	int r = find_run(q);

	if (r == -EAGAIN)
		return MHD_YES;
	if (r < 0)
		return answer_say(q, MHD_HTTP_NOT_FOUND, "Not found", "There is no such recording here.");
	switch (q->address.place) {
	case PLACE_PAGE:
		return send_page(q);
	case PLACE_EVENTS:
		return stream_begin(q);
	case PLACE_BARE_RUN:
		return send_bare(q);
	default:
		return files_send(q);
	}
}

/* ---- all of them ---- */

static enum MHD_Result answer_by_place(struct serve_request *q)
{
	switch (q->address.place) {
	case PLACE_NONE:
		return answer_say(q, MHD_HTTP_NOT_FOUND, "Not found", "There is nothing at this address.");
	case PLACE_INDEX:
		return send_index(q);
	default:
		return send_of_run(q);
	}
}

static bool is_known(const char *method)
{
	return !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
}

static enum MHD_Result send_allowed(struct serve_request *q)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);

	if (r)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	return answer_send(q, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", r);
}

static bool has_body(struct serve_request *q)
{
	const char *length = header_of(q, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return header_of(q, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
		(length && length[strspn(length, "0")] != 0);
}

/* Before its body comes, which is not read: who announces one and sends nothing holds no connection. */
static enum MHD_Result refuse_body(struct serve_request *q, const char *method)
{
	if (q->serve->socket && !is_ours(q))
		return refuse(q);
	if (!is_known(method))
		return send_allowed(q);
	return answer_say(q, MHD_HTTP_BAD_REQUEST, "Not understood", "Requests have no body here.");
}

static enum MHD_Result answer(struct serve_request *q, const char *method)
{
	struct serve *s = q->serve;

	if (s->socket && !is_ours(q))
		return refuse(q);
	if (!is_known(method))
		return send_allowed(q);
	if (!serve_host_allowed(header_of(q, "Host"), s->host, s->nr_hosts) || is_foreign(q))
		return refuse(q);
	if (q->address.place == PLACE_LOGIN)
		return sign_in(q);
	if (s->token && !has_cookie(q))
		return send_signin(q);
	return answer_by_place(q);
}

static struct serve_request *request_new(
	struct serve *s, struct MHD_Connection *c, const char *url, const char *method)
{
	struct serve_request *q = calloc(1, sizeof(*q));
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD),
				       *socket =
					       MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct peer *peer = socket ? socket->socket_context : NULL;

	if (!q)
		return NULL;
	q->serve = s;
	q->connection = c;
	q->fd = info ? info->connect_fd : -1;
	q->began_ns = serve_now();
	q->address = serve_address(url);
	q->only_head = !strcmp(method, MHD_HTTP_METHOD_HEAD);
	pthread_mutex_lock(&s->lock);
	if (peer)
		peer->asked = true;
	q->next = s->request;
	q->link = &s->request;
	if (q->next)
		q->next->link = &q->next;
	s->request = q;
	pthread_mutex_unlock(&s->lock);
	return q;
}

enum MHD_Result serve_answer(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size, void **con_cls)
{
	struct serve_request *q = *con_cls;
	enum MHD_Result answered;

	(void)version, (void)upload;
	if (!q) {
		q = request_new(cls, connection, url, method);
		*con_cls = q;
		if (!q)
			return MHD_NO;
		return has_body(q) ? refuse_body(q, method) : MHD_YES;
	}
	*upload_size = 0;
	if (q->gone)
		return MHD_NO;
	answered = answer(q, method);
	return q->cut_off ? MHD_NO : answered;
}

void serve_completed(
	void *cls, struct MHD_Connection *c, void **con_cls, enum MHD_RequestTerminationCode code)
{
	struct serve *s = cls;
	struct serve_request *q = *con_cls;

	(void)c, (void)code;
	if (!q)
		return;
	*con_cls = NULL;
	pthread_mutex_lock(&s->lock);
	*q->link = q->next;
	if (q->next)
		q->next->link = q->link;
	stream_end(q);
	files_end(q);
	s->idle_since_ns = serve_now();
	pthread_cond_signal(&s->change);
	pthread_mutex_unlock(&s->lock);
	if (q->shown)
		shown_put(q->shown);
	shared_unref(q->out);
	free(q);
}

void serve_connection(
	void *cls, struct MHD_Connection *c, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct serve *s = cls;
	struct peer *p = *socket_context;

	pthread_mutex_lock(&s->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED && (p = calloc(1, sizeof(*p)))) {
		*p = (struct peer){.next = s->peer, .link = &s->peer, .opened_ns = serve_now()};
		p->fd = info ? info->connect_fd : -1;
		if (p->next)
			p->next->link = &p->next;
		s->peer = p;
		*socket_context = p;
		pthread_cond_signal(&s->change);
	} else if (code == MHD_CONNECTION_NOTIFY_CLOSED && p) {
		*p->link = p->next;
		if (p->next)
			p->next->link = p->link;
		free(p);
		*socket_context = NULL;
	}
	pthread_mutex_unlock(&s->lock);
}
