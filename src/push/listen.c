/* A server of one page: see listen.h. */
#include "push/listen.h"

#include "base/sigmask.h"
#include "base/token_file.h"
#include "push/listen_request.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

#define CLIENTS_MOST 32
#define WAITING_MOST 16		     /* of those that were not accepted yet */
#define IDLE_NS (150 * NSEC_PER_SEC) /* between two requests: longer than people let Prometheus wait */
#define DRAIN_NS NSEC_PER_SEC
#define PAUSE_NS (100 * NSEC_PER_MSEC) /* when no descriptor is left */

struct listen_page {
	size_t refs;
	struct buf text;
};

enum phase { READING, WRITING, DRAINING };

struct client {
	int fd; /* -1: free */
	enum phase phase;
	int64_t since_ns, until_ns;
	char in[LISTEN_HEAD_MOST];
	size_t in_len;
	bool begun; /* part of a request has come */
	bool last, counts;
	char head[512]; /* of the answer, and its own text when it has no page */
	size_t head_len;
	struct listen_page *page;
	size_t sent;
};

struct listen {
	int fd, wake;
	char url[320], *token, *content_type;
	int64_t head_ns, answer_ns, pause_ns;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock; /* of what follows */
	struct listen_page *page;
	uint64_t taken;
	int64_t taken_ns, longest_ns;
	struct client client[CLIENTS_MOST]; /* of the thread */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static struct listen_page *page_let_go(struct listen *l, struct listen_page *page)
{
	size_t left = 1;

	pthread_mutex_lock(&l->lock);
	if (page)
		left = --page->refs;
	pthread_mutex_unlock(&l->lock);
	if (!left) {
		buf_release(&page->text);
		free(page);
	}
	return NULL;
}

static void client_close(struct listen *l, struct client *c)
{
	close(c->fd);
	c->page = page_let_go(l, c->page);
	c->fd = -1;
}

static void client_reads(struct client *c, int64_t now, int64_t most)
{
	c->phase = READING;
	c->begun = c->in_len;
	c->until_ns = now + most;
}

/* ---- answers ---- */

static void answer(struct listen *l, struct client *c, struct listen_request q, int64_t now)
{
	static const char more_401[] = "WWW-Authenticate: Bearer\r\n", more_405[] = "Allow: GET, HEAD\r\n",
			  more_503[] = "Retry-After: 5\r\n";
	const char *type = "text/plain; charset=utf-8", *text = "";
	size_t len;
	int n;

	if (q.status == 200) {
		pthread_mutex_lock(&l->lock);
		c->page = l->page;
		if (c->page)
			c->page->refs++;
		pthread_mutex_unlock(&l->lock);
		if (!c->page)
			q.status = 503;
	}
	c->counts = q.status == 200 && !q.head;
	c->last = !q.keep_alive;
	if (c->page)
		type = l->content_type;
	else
		text = q.status == 503 ? "no values yet\n" : listen_reason(q.status);
	len = c->page ? c->page->text.len : strlen(text);
	n = snprintf(c->head, sizeof(c->head),
		"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nConnection: %s\r\n\r\n%s",
		q.status, listen_reason(q.status), type, len,
		q.status == 401		  ? more_401
			: q.status == 405 ? more_405
			: q.status == 503 ? more_503
					  : "",
		c->last ? "close" : "keep-alive", q.head ? "" : text);
	c->head_len = MIN((size_t)MAX(n, 0), sizeof(c->head) - 1);
	if (q.head)
		c->page = page_let_go(l, c->page);
	c->sent = 0;
	c->phase = WRITING;
	c->until_ns = now + l->answer_ns;
}

/* A request that is there is answered; else more of it must come. */
static void look(struct listen *l, struct client *c, int64_t now)
{
	struct listen_request q;

	while (c->in_len >= 2 && !memcmp(c->in, "\r\n", 2)) { /* allowed between two requests */
		c->in_len -= 2;
		memmove(c->in, c->in + 2, c->in_len);
	}
	q = listen_request(c->in, c->in_len, l->token);
	if (!q.len) {
		if (!c->begun && c->in_len)
			client_reads(c, now, l->head_ns);
		return;
	}
	c->in_len -= q.len;
	memmove(c->in, c->in + q.len, c->in_len);
	answer(l, c, q, now);
}

static void took(struct listen *l, int64_t now)
{
	pthread_mutex_lock(&l->lock);
	if (l->taken)
		l->longest_ns = MAX(l->longest_ns, now - l->taken_ns);
	l->taken++;
	l->taken_ns = now;
	pthread_mutex_unlock(&l->lock);
}

static void answered(struct listen *l, struct client *c, int64_t now)
{
	if (c->counts) {
		took(l, now);
		c->since_ns = now;
	}
	c->page = page_let_go(l, c->page);
	if (c->last) { /* what is still coming is read, or the answer would be lost with a reset */
		shutdown(c->fd, SHUT_WR);
		c->phase = DRAINING;
		c->until_ns = now + DRAIN_NS;
		return;
	}
	client_reads(c, now, c->in_len ? l->head_ns : IDLE_NS);
	look(l, c, now);
}

/* ---- connections ---- */

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static void client_write(struct listen *l, struct client *c, int64_t now)
{
	while (c->phase == WRITING) {
		size_t body = c->page ? c->page->text.len : 0;
		bool head = c->sent < c->head_len;
		const char *from =
			head ? c->head + c->sent : (const char *)c->page->text.data + (c->sent - c->head_len);
		size_t left = head ? c->head_len - c->sent : body - (c->sent - c->head_len);
		ssize_t n = send(c->fd, from, left, MSG_NOSIGNAL | (head && body ? MSG_MORE : 0));

		if (n < 0) {
			if (!would_wait())
				client_close(l, c);
			return;
		}
		c->sent += (size_t)n;
		if (c->sent == c->head_len + body) {
			answered(l, c, now);
			return; /* the next of a pipeline in its turn */
		}
	}
}

static void client_read(struct listen *l, struct client *c, int64_t now)
{
	char away[4096];
	bool drain = c->phase == DRAINING;
	ssize_t n = recv(
		c->fd, drain ? away : c->in + c->in_len, drain ? sizeof(away) : sizeof(c->in) - c->in_len, 0);

	if (n == 0 || (n < 0 && !would_wait())) {
		client_close(l, c);
		return;
	}
	if (n < 0 || drain)
		return;
	c->in_len += (size_t)n;
	look(l, c, now);
	if (c->phase == WRITING)
		client_write(l, c, now);
}

static void client_expired(struct listen *l, struct client *c, int64_t now)
{
	if (c->phase == READING && c->begun)
		answer(l, c, (struct listen_request){.status = 408}, now);
	else
		client_close(l, c);
}

/* A free place; of those who take their time with a request the one that does so for longest gives its up. */
static struct client *place(struct listen *l)
{
	struct client *oldest = NULL;

	for (size_t i = 0; i < CLIENTS_MOST; i++) {
		struct client *c = &l->client[i];

		if (c->fd < 0)
			return c;
		if (c->phase != WRITING && (!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	if (oldest)
		client_close(l, oldest);
	return oldest;
}

static void take_client(struct listen *l, int64_t now)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *c;

	if (fd < 0) {
		if (!would_wait() && errno != ECONNABORTED)
			l->pause_ns = now + PAUSE_NS;
		return;
	}
	c = place(l);
	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->in_len = 0;
	c->page = NULL;
	c->since_ns = now;
	client_reads(c, now, l->head_ns);
}

static void *serve(void *arg)
{
	struct pollfd p[CLIENTS_MOST + 2];
	struct listen *l = arg;

	for (;;) {
		int64_t now = now_ns(), next = now + 60 * NSEC_PER_SEC;

		p[0] = (struct pollfd){.fd = l->wake, .events = POLLIN};
		p[1] = (struct pollfd){.fd = now < l->pause_ns ? -1 : l->fd, .events = POLLIN};
		if (now < l->pause_ns)
			next = l->pause_ns;
		for (size_t i = 0; i < CLIENTS_MOST; i++) {
			struct client *c = &l->client[i];

			if (c->fd >= 0 && c->until_ns <= now)
				client_expired(l, c, now);
			p[2 + i] = (struct pollfd){
				.fd = c->fd, .events = c->phase == WRITING ? POLLOUT : POLLIN};
			if (c->fd >= 0)
				next = MIN(next, c->until_ns);
		}
		if (poll(p, ARRAY_SIZE(p), (int)((next - now) / NSEC_PER_MSEC + 1)) <= 0)
			continue;
		if (p[0].revents)
			return NULL;
		now = now_ns();
		for (size_t i = 0; i < CLIENTS_MOST; i++) {
			struct client *c = &l->client[i];

			if (c->fd < 0 || c->fd != p[2 + i].fd || !p[2 + i].revents)
				continue;
			if (c->phase == WRITING)
				client_write(l, c, now);
			else
				client_read(l, c, now);
		}
		if (p[1].revents)
			take_client(l, now);
	}
}

/* ---- the address ---- */

int listen_parse(const char *text, char **ret_host, char **ret_port, struct buf *reterr)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t host = colon ? (size_t)(colon - text) : 0;
	bool bracket = host >= 2 && text[0] == '[' && text[host - 1] == ']';
	bool digits = *port && strlen(port) <= 5 && strspn(port, "0123456789") == strlen(port);

	*ret_host = *ret_port = NULL;
	if (!digits || strtol(port, NULL, 10) > 65535 || (colon && !host) ||
		(!bracket && memchr(text, ':', host))) {
		buf_addf(reterr, "'%s' is no address to listen on: 9464, 0.0.0.0:9464 or [::1]:9464 would be",
			text);
		return -EINVAL;
	}
	*ret_port = strdup(port);
	*ret_host = colon ? strndup(text + bracket, host - 2 * bracket) : NULL;
	if (*ret_port && (*ret_host || !colon))
		return 0;
	free(*ret_port);
	free(*ret_host);
	*ret_host = *ret_port = NULL;
	return -ENOMEM;
}

static int bind_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol), yes = 1;
	int r = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, WAITING_MOST) < 0) {
		r = -errno;
		close(fd);
	}
	return r < 0 ? r : fd;
}

static int set_url(struct listen *l)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	char host[128], port[16];

	if (getsockname(l->fd, (struct sockaddr *)&address, &len) < 0 ||
		getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return -EIO;
	snprintf(l->url, sizeof(l->url),
		address.ss_family == AF_INET6 ? "http://[%s]:%s/metrics" : "http://%s:%s/metrics", host,
		port);
	return 0;
}

static int open_socket(struct listen *l, const char *text, struct buf *reterr)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
	_cleanup_(freep) char *host = NULL, *port = NULL;
	int r = listen_parse(text, &host, &port, reterr);

	if (r < 0)
		return r;
	r = getaddrinfo(host ? host : "127.0.0.1", port, &hints, &list);
	if (r != 0) {
		buf_addf(reterr, "cannot listen on %s: %s", text, gai_strerror(r));
		return -EINVAL;
	}
	l->fd = -EADDRNOTAVAIL;
	for (const struct addrinfo *a = list; a && l->fd < 0; a = a->ai_next)
		l->fd = bind_one(a);
	freeaddrinfo(list);
	r = l->fd < 0 ? l->fd : set_url(l);
	if (r < 0)
		buf_addf(reterr, "cannot listen on %s: %s%s", text, strerror(-r),
			r == -EADDRINUSE ? ": another program does; take another port" : "");
	return r;
}

/* ---- beginning and end ---- */

static int begin(struct listen *l)
{
	sigset_t all, before;
	int r;

	sigmask_fill(&all);
	r = sigmask_change(SIG_SETMASK, &all, &before);
	if (r < 0)
		return r;
	r = -pthread_create(&l->thread, NULL, serve, l);
	sigmask_change(SIG_SETMASK, &before, NULL);
	l->runs = r == 0;
	return r;
}

int listen_new(const struct listen_options *o, struct listen **ret, struct buf *reterr)
{
	struct listen *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	l->fd = -1;
	for (size_t i = 0; i < CLIENTS_MOST; i++)
		l->client[i].fd = -1;
	l->head_ns = o->head_ns ? o->head_ns : 10 * NSEC_PER_SEC;
	l->answer_ns = o->answer_ns ? o->answer_ns : 30 * NSEC_PER_SEC;
	l->content_type = strdup(o->content_type);
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = !l->content_type  ? -ENOMEM
		: l->wake < 0 ? -errno
			      : token_of_file(o->token_file, &l->token, reterr);
	if (r >= 0)
		r = open_socket(l, o->address, reterr);
	if (r >= 0)
		r = begin(l);
	if (r < 0)
		listen_free(l);
	else
		*ret = l;
	return r;
}

struct listen *listen_free(struct listen *l)
{
	uint64_t one = 1;

	if (!l)
		return NULL;
	if (l->runs && write(l->wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(l->thread, NULL);
	for (size_t i = 0; i < CLIENTS_MOST; i++)
		if (l->client[i].fd >= 0)
			client_close(l, &l->client[i]);
	page_let_go(l, l->page);
	if (l->fd >= 0)
		close(l->fd);
	if (l->wake >= 0)
		close(l->wake);
	if (l->token)
		explicit_bzero(l->token, strlen(l->token));
	free(l->token);
	free(l->content_type);
	pthread_mutex_destroy(&l->lock);
	free(l);
	return NULL;
}

int listen_put(struct listen *l, const struct buf *page)
{
	struct listen_page *made = calloc(1, sizeof(*made)), *before;

	if (!made)
		return -ENOMEM;
	made->refs = 1;
	buf_init(&made->text, SIZE_MAX / 2);
	buf_add(&made->text, page->data, page->len);
	if (page->err || made->text.err) {
		int r = page->err ? page->err : made->text.err;

		buf_release(&made->text);
		free(made);
		return r;
	}
	pthread_mutex_lock(&l->lock);
	before = l->page;
	l->page = made;
	pthread_mutex_unlock(&l->lock);
	page_let_go(l, before);
	return 0;
}

const char *listen_url(const struct listen *l)
{
	return l->url;
}

uint64_t listen_taken(struct listen *l, int64_t *ret_longest_ns)
{
	uint64_t taken;

	pthread_mutex_lock(&l->lock);
	taken = l->taken;
	*ret_longest_ns = l->longest_ns;
	pthread_mutex_unlock(&l->lock);
	return taken;
}
