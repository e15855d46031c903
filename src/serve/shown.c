/* A run that is looked at: its page, made once for all viewers, and the news behind it, each made once, too.
 *
 * A page is made in a thread of its own and stays until it is old: of a finished run until its file changes,
 * of one in progress for ten seconds at least, or fifty times what it cost, and only while there are viewers.
 * News are made of what the page was made of (struct base), so that only what is new is read. Both are kept
 * within limits; a viewer that stands somewhere else gets news of its own from there, which is the same work
 * once more. */
#include "serve/internal.h"

#include "document/document.h"
#include "query/run_directory.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>

#define PAGE_OLD_NS (10 * NSEC_PER_SEC)
#define PAGE_COSTS 50
#define NEWS_COSTS 10
#define NEWS_LEAST_NS NSEC_PER_SEC
#define KEPT 32
#define KEPT_BYTES ((size_t)256 << 20)
#define NEWS_BYTES ((size_t)256 << 20)
#define NEWS_AT_ONCE 16
#define FORGET_NS (120 * NSEC_PER_SEC) /* what is only needed for viewers */

/* ---- what a page is made of ---- */

static struct base *base_unref(struct base *b)
{
	if (b && !__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL)) {
		analysis_free(b->analysis);
		run_close(b->run);
		free(b);
	}
	return NULL;
}

static struct base *base_ref(struct base *b)
{
	if (b)
		__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
	return b;
}

/* None of its recordings lies outside. */
static int check_run(const struct serve *s, const struct run *run, struct buf *reterr)
{
	struct stat st;

	for (size_t i = 0; i < run->nr; i++)
		if (!roots_has(&s->roots, run->path[i], &st)) {
			buf_adds(reterr, "a recording of this run lies outside of what is served");
			return -EXDEV;
		}
	return 0;
}

static int run_of(struct serve *s, const struct catalog_item *item, struct run **ret, struct buf *reterr)
{
	const char *path = item->about.path;
	struct stat st;
	int r;

	if (!roots_has(&s->roots, path, &st)) {
		buf_adds(reterr, "it is not there any more");
		return -ENOENT;
	}
	r = run_open(&path, 1, ret, reterr);
	if (r >= 0)
		r = check_run(s, *ret, reterr);
	return r;
}

/* ---- the page ---- */

struct page_job {
	struct shown *h;
	struct base *base;
	struct ticks_now now;
	struct stamp stamp;
	struct buf err;
	struct shared *page;
};

static void tell_progress(void *arg, const char *what, double done)
{
	struct shown *h = arg;

	(void)what;
	__atomic_store(&h->progress, &done, __ATOMIC_RELAXED);
}

static int write_page(struct page_job *j)
{
	const struct page_live live = {.after_ns = j->now.upto_ns,
		.state = j->now.state == TICKS_ENDED   ? "ended"
			: j->now.state == TICKS_SILENT ? "lost"
						       : "recording"};
	struct charts *charts = NULL;
	struct buf out;
	int r = charts_make(j->base->analysis, &charts);

	buf_init(&out, PAGE_MOST);
	if (r >= 0)
		r = page_html_live(j->base->analysis, charts, &live, &out);
	charts_free(charts);
	j->page = r < 0 ? NULL : shared_take(&out);
	if (!j->page)
		buf_release(&out);
	return r < 0 ? r : j->page ? 0 : -ENOMEM;
}

static int make_page(struct page_job *j)
{
	const struct progress progress = {.tell = tell_progress, .arg = j->h};
	struct analysis_options options = {.from_s = NAN, .to_s = NAN, .progress = &progress};
	struct ticks *ticks = NULL;
	int r = run_of(j->h->serve, j->h->item, &j->base->run, &j->err);

	if (r >= 0) {
		j->stamp = stamp_of(j->h->item->about.path);
		__atomic_store_n(&j->h->nr_nodes, j->base->run->nr, __ATOMIC_RELAXED);
		r = ticks_open(j->base->run, true, &ticks, &j->err);
	}
	if (r >= 0)
		r = ticks_look(ticks, &j->now);
	ticks_close(ticks);
	if (r >= 0 && j->now.upto_ns < 0 && j->now.state != TICKS_ENDED) {
		buf_adds(&j->err, "It has just begun: there is nothing to show yet.");
		return -EAGAIN;
	}
	if (r >= 0) {
		options.upto_ns = j->now.state == TICKS_ENDED ? 0 : j->now.upto_ns;
		r = analysis_read(j->base->run, &options, &j->base->analysis, &j->err);
	}
	if (r >= 0)
		r = write_page(j);
	return r;
}

static void close_live(struct shown *h)
{
	h->live = analysis_live_close(h->live);
	h->live_base = base_unref(h->live_base);
	h->ticks = ticks_close(h->ticks);
}

static void forget_news(struct shown *h)
{
	for (size_t i = 0; i < NEWS_KEPT; i++) {
		shared_unref(h->news[i].bytes);
		h->news[i] = (struct news){0};
	}
	h->nr_news = 0;
	h->head_ns = -1;
}

/* Nothing that was told, or is being read, is of what the page is of from now on. */
static void begin_era(struct shown *h)
{
	forget_news(h);
	close_live(h);
	h->now = (struct ticks_now){0};
	h->wanted_ns = -1;
	h->era++;
}

/* Under the lock. */
static void take_page(struct shown *h, struct page_job *j, int r)
{
	free(h->trouble);
	h->trouble = NULL;
	if (r < 0) {
		if (!j->err.len)
			buf_addf(&j->err, "%s", strerror(-r));
		h->trouble = strdup((char *)j->err.data);
		return;
	}
	/* Another node or another file: the zero of the run may be another, too. */
	if (h->page && h->stamp.files != j->stamp.files)
		begin_era(h);
	shared_unref(h->page);
	h->page = TAKE_PTR(j->page);
	base_unref(h->base);
	h->base = TAKE_PTR(j->base);
	h->after_ns = j->now.upto_ns;
	h->ended = j->now.state == TICKS_ENDED;
	h->lost = j->now.state == TICKS_SILENT;
	h->stamp = j->stamp;
	h->generation++;
	if (h->head_ns < 0 || (!h->viewers && h->head_ns < h->after_ns))
		h->head_ns = h->after_ns;
	if (h->ended)
		h->base = base_unref(h->base);
	if (h->ended)
		close_live(h);
}

static void page_work(void *arg)
{
	struct shown *h = arg;
	struct page_job j = {.h = h, .base = calloc(1, sizeof(*j.base))};
	int64_t begin = serve_now();
	int r = j.base ? 0 : -ENOMEM;

	buf_init(&j.err, 1 << 16);
	if (j.base) {
		j.base->refs = 1;
		r = make_page(&j);
	}
	pthread_mutex_lock(&h->serve->lock);
	take_page(h, &j, r);
	h->made_ns = serve_now();
	h->made_cost_ns = h->made_ns - begin;
	h->making = false;
	serve_wake(h->serve);
	pthread_mutex_unlock(&h->serve->lock);
	buf_release(&j.err);
	base_unref(j.base);
	shared_unref(j.page);
	shown_put(h);
}

static void begin_page(struct shown *h)
{
	if (h->making)
		return;
	h->refs++;
	h->progress = 0;
	h->making = work_add(h->serve->work, page_work, h);
	if (!h->making)
		h->refs--;
}

/* ---- news ---- */

struct news_job {
	struct shown *h;
	struct base *base;
	struct base *live_base; /* what `live` was opened with */
	struct ticks *ticks;
	struct ticks_now now;
	struct analysis_live *live;
	struct news news[NEWS_AT_ONCE];
	size_t nr;
	int64_t from_ns, head_ns;
	bool own; /* for viewers that stand elsewhere than at the head */
	uint64_t era;
};

static int write_news(struct news_job *j, struct analysis_live *live, int64_t from_ns, int64_t upto_ns)
{
	struct news *n = &j->news[j->nr];
	struct analysis *s = NULL;
	struct charts *charts = NULL;
	struct buf out, err;
	int r;

	buf_init(&err, 4096);
	buf_init(&out, NEWS_BYTES);
	r = analysis_live_read(live, j->base->analysis, upto_ns, &s, &upto_ns, &err);
	if (r >= 0)
		r = charts_make(s, &charts);
	buf_addf(&out, "id: %lld\nevent: data\ndata: ", (long long)upto_ns);
	if (r >= 0)
		r = page_news(s, charts, &out);
	buf_adds(&out, "\n\n");
	charts_free(charts);
	analysis_free(s);
	buf_release(&err);
	if (r < 0 || !(n->bytes = shared_take(&out))) {
		buf_release(&out);
		return r < 0 ? r : -ENOMEM;
	}
	n->from_ns = from_ns;
	n->to_ns = upto_ns;
	j->nr++;
	return 0;
}

/* What one event cannot tell the next ones do. */
static int write_all(struct news_job *j, struct analysis_live *live)
{
	int64_t at = j->from_ns, upto = j->own ? j->head_ns : j->now.upto_ns;
	int r = 0;

	while (r >= 0 && at < upto && j->nr < NEWS_AT_ONCE) {
		r = write_news(j, live, at, upto);
		if (r >= 0 && j->news[j->nr - 1].to_ns <= at)
			break;
		at = r >= 0 ? j->news[j->nr - 1].to_ns : at;
	}
	return r;
}

static void drop_live(struct news_job *j)
{
	j->live = analysis_live_close(j->live);
	j->live_base = base_unref(j->live_base);
}

static int read_own(struct news_job *j, struct buf *err)
{
	struct analysis_live *own = NULL;
	int r = analysis_live_open(j->base->analysis, j->from_ns, &own, err);

	if (r >= 0)
		r = write_all(j, own);
	analysis_live_close(own);
	return r;
}

/* A reading that was begun for an earlier page goes on where that has the same lines. */
static int keep_live(struct news_job *j, struct buf *err)
{
	int r = 0;

	if (j->live && !analysis_live_fits(j->live, j->base->analysis))
		drop_live(j);
	if (!j->ticks)
		r = ticks_open(j->base->run, false, &j->ticks, err);
	if (r >= 0 && !j->live) {
		r = analysis_live_open(j->base->analysis, j->from_ns, &j->live, err);
		if (r >= 0)
			j->live_base = base_ref(j->base);
	}
	return r;
}

static int look(struct news_job *j)
{
	int r = analysis_live_look(j->live);

	for (size_t i = 0; r >= 0 && i < j->base->run->nr; i++) {
		int64_t last_ns, settled_ns;
		bool ended;

		analysis_live_node(j->live, i, &last_ns, &settled_ns, &ended);
		ticks_told(j->ticks, i, last_ns, MAX(settled_ns, ended ? j->from_ns : -1), ended);
	}
	return r < 0 ? r : ticks_look(j->ticks, &j->now);
}

static int read_news(struct news_job *j)
{
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = j->own ? read_own(j, &err) : keep_live(j, &err);
	if (!j->own && r >= 0)
		r = look(j);
	if (!j->own && r >= 0 && j->now.upto_ns > j->from_ns)
		r = write_all(j, j->live);
	if (!j->own && r < 0)
		drop_live(j);
	buf_release(&err);
	return r;
}

static void drop_all(struct news_job *j)
{
	for (size_t i = 0; i < j->nr; i++)
		shared_unref(j->news[i].bytes);
	j->ticks = ticks_close(j->ticks);
	drop_live(j);
}

static void news_add(struct shown *h, const struct news *n)
{
	struct news *to = &h->news[h->nr_news++ % NEWS_KEPT];

	shared_unref(to->bytes);
	*to = *n;
}

/* Under the lock. */
static void take_news(struct shown *h, struct news_job *j, int r)
{
	if (!j->own && r >= 0) {
		h->now = j->now;
		h->lost = j->now.state == TICKS_SILENT;
		h->silent_s = j->now.silent_s;
	}
	if (j->from_ns == h->wanted_ns)
		h->wanted_ns = -1;
	if (r < 0) {
		/* The file was replaced or is damaged: the page says what of it can be read. */
		drop_all(j);
		begin_page(h);
		return;
	}
	for (size_t i = 0; i < j->nr; i++) {
		news_add(h, &j->news[i]);
		if (!j->own)
			h->head_ns = MAX(h->head_ns, j->news[i].to_ns);
	}
}

static void news_work(void *arg)
{
	struct shown *h = arg;
	struct news_job j = {.h = h};
	int64_t begin = serve_now();
	int r = 0;

	pthread_mutex_lock(&h->serve->lock);
	j.base = base_ref(h->base);
	j.era = h->era;
	j.own = h->wanted_ns >= 0 && h->wanted_ns != h->head_ns;
	j.from_ns = j.own ? h->wanted_ns : h->head_ns;
	j.head_ns = h->head_ns;
	j.ticks = TAKE_PTR(h->ticks);
	j.live = TAKE_PTR(h->live);
	j.live_base = TAKE_PTR(h->live_base);
	pthread_mutex_unlock(&h->serve->lock);
	if (j.base)
		r = read_news(&j);
	pthread_mutex_lock(&h->serve->lock);
	/* Other files came meanwhile, or the page of the whole run: nothing of this is needed any more. */
	if (j.era != h->era || !h->base)
		drop_all(&j);
	else if (j.base)
		take_news(h, &j, r);
	h->ticks = j.ticks;
	h->live = j.live;
	h->live_base = j.live_base;
	h->read_ns = serve_now();
	h->read_cost_ns = h->read_ns - begin;
	h->reading = false;
	serve_wake(h->serve);
	pthread_mutex_unlock(&h->serve->lock);
	base_unref(j.base);
	shown_put(h);
}

static void begin_news(struct shown *h)
{
	if (h->reading || !h->base)
		return;
	h->refs++;
	h->reading = work_add(h->serve->work, news_work, h);
	if (!h->reading)
		h->refs--;
}

const struct news *shown_news(struct shown *h, int64_t from_ns)
{
	const struct news *best = NULL;

	for (size_t i = 0; i < NEWS_KEPT; i++)
		if (h->news[i].bytes && h->news[i].from_ns == from_ns &&
			(!best || h->news[i].to_ns > best->to_ns))
			best = &h->news[i];
	if (!best && from_ns < h->head_ns && h->wanted_ns < 0) {
		h->wanted_ns = from_ns;
		begin_news(h);
	}
	return best;
}

/* ---- what is due ---- */

static bool is_changed(const struct shown *h)
{
	const struct stamp now = stamp_of(h->item->about.path);

	return !now.files || !stamp_same(&now, &h->stamp);
}

/* In the beginning there is something new at every look: the first processes, the first values. */
static int64_t page_every(const struct shown *h)
{
	int64_t least = h->after_ns < PAGE_OLD_NS ? NEWS_LEAST_NS : PAGE_OLD_NS;

	return MAX(least, PAGE_COSTS * h->made_cost_ns);
}

bool shown_ready(struct shown *h)
{
	int64_t age = serve_now() - h->made_ns;
	bool good = h->page && (h->ended ? !is_changed(h) : h->viewers || age < page_every(h));

	h->used_ns = serve_now();
	if (good)
		return true;
	if (h->trouble && !h->making && age < NSEC_PER_SEC)
		return true;
	begin_page(h);
	return false;
}

static int64_t news_every(const struct shown *h)
{
	return MAX(MAX(NEWS_LEAST_NS, h->now.interval_ns), NEWS_COSTS * h->read_cost_ns);
}

int64_t shown_tend(struct shown *h, int64_t now)
{
	bool over = h->now.state == TICKS_ENDED && h->base;

	if (!h->viewers) {
		if (!h->reading && h->used_ns && now - h->used_ns > FORGET_NS) {
			close_live(h);
			h->base = base_unref(h->base);
		}
		return h->ticks || h->base ? now + FORGET_NS : INT64_MAX;
	}
	h->used_ns = now;
	if (h->ended)
		return INT64_MAX;
	if (!h->base) {
		begin_page(h);
		return now + NSEC_PER_SEC;
	}
	if (over && h->head_ns >= h->now.upto_ns) {
		if (now - h->made_ns > NSEC_PER_SEC)
			begin_page(h);
		return now + NSEC_PER_SEC;
	}
	if (now - h->made_ns >= page_every(h) && h->head_ns > h->after_ns)
		begin_page(h);
	if (now - h->read_ns >= news_every(h) || h->wanted_ns >= 0)
		begin_news(h);
	return MIN(h->read_ns + news_every(h), h->made_ns + page_every(h));
}

/* ---- all of them ---- */

static void shown_free(struct shown *h)
{
	forget_news(h);
	shared_unref(h->page);
	close_live(h);
	base_unref(h->base);
	catalog_unref(h->item);
	free(h->trouble);
	free(h);
}

/* The longest unused go when there are too many. Under the lock. */
static void shown_trim(struct serve *s)
{
	for (;;) {
		struct shown **worst = NULL;
		size_t nr = 0, bytes = 0;

		for (struct shown **at = &s->shown; *at; at = &(*at)->next) {
			struct shown *h = *at;

			nr++;
			bytes += h->page ? h->page->bytes.cap : 0;
			if (!h->refs && !h->viewers && (!worst || h->used_ns < (*worst)->used_ns))
				worst = at;
		}
		if (!worst || (nr <= KEPT && bytes <= KEPT_BYTES))
			return;
		struct shown *old = *worst;

		*worst = old->next;
		shown_free(old);
	}
}

struct shown *shown_get(struct serve *s, const char *id)
{
	struct catalog_item *item;
	struct shown *h;

	for (h = s->shown; h; h = h->next)
		if (!strcmp(h->item->id, id)) {
			h->refs++;
			return h;
		}
	item = catalog_find(s, id);
	if (!item || !(h = calloc(1, sizeof(*h))))
		return NULL;
	h->serve = s;
	h->item = catalog_ref(item);
	h->refs = 1;
	h->head_ns = h->wanted_ns = -1;
	h->next = s->shown;
	s->shown = h;
	return h;
}

void shown_put(struct shown *h)
{
	struct serve *s = h->serve;

	pthread_mutex_lock(&s->lock);
	h->refs--;
	shown_trim(s);
	pthread_mutex_unlock(&s->lock);
}

void shown_free_all(struct serve *s)
{
	for (struct shown *h = s->shown, *next; h; h = next) {
		next = h->next;
		shown_free(h);
	}
	s->shown = NULL;
}
