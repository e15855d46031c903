/* Server-sent events. A viewer has no queue: it has a place in the run, and holds the one event that it is
 * being sent. libmicrohttpd asks for more when its socket takes more; so one that is slow is asked rarely,
 * gets events that tell more each, and one that takes nothing is cut off by the timeout of its connection. */
#include "serve/stream.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

#define SILENCE_NS (15 * NSEC_PER_SEC)

static bool is_at_end(const struct shown *h, const struct serve_request *q)
{
	return h->ended && (q->at_ns >= h->after_ns || !h->base);
}

static struct shared *own_event(struct buf *text)
{
	return shared_take(text);
}

static struct shared *page_event(struct serve_request *q, bool ended)
{
	struct buf out;

	buf_init(&out, 4096);
	buf_addf(&out, "id: %lld\nevent: page\ndata: {\"ended\":%s}\n\n", (long long)q->at_ns,
		ended ? "true" : "false");
	return own_event(&out);
}

static struct shared *lost_event(const struct shown *h)
{
	struct buf out;

	buf_init(&out, 4096);
	buf_addf(&out, "event: lost\ndata: {\"silent_s\":%.1f}\n\n", h->silent_s);
	return own_event(&out);
}

static struct shared *plain_event(const char *text)
{
	struct buf out;

	buf_init(&out, 4096);
	buf_addf(&out, "%s\n\n", text);
	return own_event(&out);
}

/* The next thing to say; NULL: nothing now. Under the lock. */
static struct shared *next_event(struct serve_request *q, int64_t now)
{
	struct shown *h = q->shown;
	const struct news *n;

	if (q->era != h->era) {
		q->era = h->era;
		q->at_ns = MIN(q->at_ns, MAX(h->head_ns, h->after_ns));
	}
	n = h->base || h->ended ? shown_news(h, q->at_ns) : NULL;

	if (n) {
		q->at_ns = n->to_ns;
		q->told_lost = false;
		return shared_ref(n->bytes);
	}
	if (h->page && q->generation != h->generation && (!h->ended || is_at_end(h, q))) {
		q->generation = h->generation;
		q->told_end = h->ended;
		if (h->ended)
			q->at_ns = MAX(q->at_ns, h->after_ns);
		return page_event(q, h->ended);
	}
	if (h->lost && !q->told_lost) {
		q->told_lost = true;
		return lost_event(h);
	}
	/* Scripts hear no comments. */
	return now - q->spoke_ns >= SILENCE_NS ? plain_event("event: alive\ndata: {}") : NULL;
}

bool stream_has_news(struct serve_request *q, int64_t now)
{
	struct shown *h = q->shown;

	if (q->out || q->gone || now - q->spoke_ns >= SILENCE_NS || (h->lost && !q->told_lost))
		return true;
	if (h->page && q->generation != h->generation)
		return true;
	for (size_t i = 0; i < NEWS_KEPT; i++)
		if (h->news[i].bytes && h->news[i].from_ns == q->at_ns)
			return true;
	return q->told_end || (q->at_ns < h->head_ns && h->wanted_ns < 0 && h->base);
}

static ssize_t stream_read(void *cls, uint64_t pos, char *to, size_t most)
{
	struct serve_request *q = cls;
	struct serve *s = q->serve;
	int64_t now = serve_now();
	ssize_t n = 0;

	(void)pos;
	pthread_mutex_lock(&s->lock);
	if (!q->out && !q->told_end) {
		q->out = next_event(q, now);
		q->out_at = 0;
	}
	if (q->gone) {
		n = MHD_CONTENT_READER_END_WITH_ERROR;
	} else if (q->out) {
		n = (ssize_t)MIN(most, q->out->bytes.len - q->out_at);
		memcpy(to, q->out->bytes.data + q->out_at, (size_t)n);
		q->out_at += (size_t)n;
		q->spoke_ns = now;
		if (q->out_at == q->out->bytes.len)
			q->out = shared_unref(q->out);
	} else if (q->told_end) {
		n = MHD_CONTENT_READER_END_OF_STREAM;
	} else if (answer_wait(q, q->spoke_ns + SILENCE_NS) == MHD_NO) {
		n = MHD_CONTENT_READER_END_WITH_ERROR;
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* Where the viewer stands; false: nowhere. */
static bool find_place(struct serve_request *q, int64_t *ret_page)
{
	const char *last = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Last-Event-ID"),
		   *after = MHD_lookup_connection_value(q->connection, MHD_GET_ARGUMENT_KIND, "after");

	*ret_page = -1;
	if (after && !serve_moment(after, ret_page))
		return false;
	if (last && *last)
		return serve_moment(last, &q->at_ns);
	q->at_ns = *ret_page;
	return after != NULL;
}

enum MHD_Result stream_begin(struct serve_request *q)
{
	struct shown *h = q->shown;
	struct MHD_Response *r;
	int64_t page;
	bool waits = false, over;

	if (!find_place(q, &page))
		return answer_say(q, MHD_HTTP_BAD_REQUEST, "Not understood", "after=ID says from where.");
	pthread_mutex_lock(&q->serve->lock);
	if (!h->page || (!h->base && !h->ended)) {
		waits = !shown_ready(h) || !h->trouble;
		if (waits)
			answer_wait(q, serve_now() + NSEC_PER_SEC);
	}
	over = !waits && h->ended && q->at_ns >= h->after_ns && page == h->after_ns;
	if (!waits && !over && h->page) {
		q->streams = true;
		q->spoke_ns = serve_now();
		q->generation = page == h->after_ns ? h->generation : 0;
		q->era = h->era;
		q->at_ns = h->ended ? q->at_ns : MIN(q->at_ns, MAX(h->head_ns, h->after_ns));
		q->out = plain_event("retry: 2000\n:");
		h->viewers++;
		q->serve->had_viewers = true;
	}
	pthread_mutex_unlock(&q->serve->lock);
	if (waits)
		return MHD_YES;
	if (over)
		return answer_send(q, MHD_HTTP_NO_CONTENT, "text/plain",
			MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
	if (!q->streams)
		return answer_say(
			q, MHD_HTTP_NOT_FOUND, "Not readable", "There is no page of this recording.");
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, stream_read, q, NULL);
	if (r)
		MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* of nginx */
	/* Else libmicrohttpd sends the end of a chunked body behind a head that has none. */
	if (r && q->only_head)
		MHD_set_response_options(r, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
	return answer_send(q, MHD_HTTP_OK, "text/event-stream", r);
}

void stream_end(struct serve_request *q)
{
	if (q->streams)
		q->shown->viewers--;
	q->streams = false;
}
