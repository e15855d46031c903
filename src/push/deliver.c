/* From recordings to a sink: see deliver.h.
 *
 * One recording after the other is asked for rows; a batch is sent before the next row is read, so memory
 * does not grow however long a server is away. What could not be sent stays where it is, in the recording. */
#include "push/deliver.h"

#include "base/owned.h"
#include "base/str.h"
#include "push/names.h"
#include "query/sidecar.h"
#include "query/walk.h"
#include "store/glance.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define POINTS_MOST 5000
#define BYTES_A_POINT 200
#define LOOK_NS (NSEC_PER_SEC / 2)	 /* between two looks at a recording that grows */
#define NODES_NS (5 * NSEC_PER_SEC)	 /* between two looks for more of them */
#define FIRST_WAIT_NS (NSEC_PER_SEC / 2) /* after the first failure, then twice as long each time */
#define LONGEST_WAIT_NS (60 * NSEC_PER_SEC)
#define FATAL_WAIT_NS (30 * NSEC_PER_SEC)
#define REFUSALS_MOST 64 /* in a row, before a batch is given up as a whole */

struct sent { /* of a table, since the start of this pusher */
	char *table;
	int64_t time_ns;
	bool partial; /* the state says less */
};

struct push_recording { /* a recording */
	char *path;
	unsigned node;
	struct meta meta;
	struct push_feed *feed; /* NULL: it has nothing yet, or has ended */
	struct push_state *state;
	bool ended, complete;
	int64_t start_ns, last_ns; /* wall clock */
	struct sent *sent;
	size_t nr_sent;
};

struct deliver {
	const struct deliver_options *o;
	const struct push_sink *sink;
	void *open; /* the sink's */
	struct push push;
	struct push_run run;
	char address[512];
	struct push_recording *stream; /* room for all is made before their states are lent */
	size_t nr_streams;
	struct push_name *names; /* the usual and foreign ones together; NULL */
	struct push_point *point;
	size_t nr_points, most;
	struct push_recording *from; /* of these points */
	bool began, forgetful, told;
	bool forgets;	  /* it was said that the state cannot be written */
	bool directories; /* among the operands: more recordings may come */
	uint64_t tries;	  /* that failed in a row */
	unsigned refusals;
	int64_t over_ns; /* monotonic clock: when the run was seen to have ended; 0: not yet */
	int64_t looked_ns, nodes_ns;
	uint32_t random;
	char *user, *job, *command, *name, *host;
	char said[PUSH_WHY_SIZE];
	struct deliver_result *result;
	int error;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static void say(struct deliver *d, bool problem, const char *text)
{
	if (d->o->say)
		d->o->say(d->o->arg, problem, text);
}

static void say_note(void *arg, const char *text)
{
	say(arg, false, text);
}

/* ---- waiting ---- */

/* True: a signal came. */
static bool pause_for(struct deliver *d, int64_t ns)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + ns, left;

	while (!d->o->stop(d->o->arg) && (left = until - clock_ns(CLOCK_MONOTONIC)) > 0) {
		left = MIN(left, NSEC_PER_SEC);
		nanosleep(&(struct timespec){.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC},
			NULL);
	}
	return d->o->stop(d->o->arg);
}

static int take_nothing(void *arg, enum store_type type, const struct pairs *pairs)
{
	(void)arg, (void)type, (void)pairs;
	return 0;
}

static bool is_over(const struct push_recording *s)
{
	struct store_glance glance;

	return s->ended || store_glance(s->path, take_nothing, NULL, &glance) < 0 || glance.complete ||
		!glance.writing;
}

/* No more tries: after the end of the run they are limited. */
static bool is_given_up(struct deliver *d)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	bool over = true;

	for (size_t i = 0; i < d->nr_streams && over && !d->over_ns; i++)
		over = is_over(&d->stream[i]);
	if (!over)
		return false;
	if (!d->over_ns)
		d->over_ns = now;
	return d->o->follow ? now - d->over_ns >= d->o->linger_ns : d->tries > d->o->retries;
}

static int64_t backoff(struct deliver *d, const struct push_answer *a)
{
	int64_t wait = FIRST_WAIT_NS << MIN(d->tries, (uint64_t)8);

	wait = MIN(wait, LONGEST_WAIT_NS);
	if (a->outcome == PUSH_FATAL)
		wait = MAX(wait, FATAL_WAIT_NS);
	d->random = d->random * 1664525 + 1013904223;
	wait = wait / 4 * 3 + wait / 2 * (int64_t)(d->random >> 16) / 65536; /* 3/4 to 5/4 of it */
	return MAX(wait, MIN(a->after_ns, 600 * NSEC_PER_SEC));
}

/* It failed: says so once for each reason, and waits. 0: try again. */
static int wait_after(struct deliver *d, const struct push_answer *a)
{
	struct push_state *state = d->push.state;
	char text[2 * PUSH_WHY_SIZE];

	if (d->o->stop(d->o->arg)) /* that is why it failed */
		return -EINTR;
	if (!a->why[0])
		return pause_for(d, MAX(a->after_ns, NSEC_PER_SEC / 10)) ? -EINTR : 0;
	d->tries++;
	if (state) {
		push_state_why(state, a->why, clock_ns(CLOCK_REALTIME));
		if (!d->forgetful)
			push_state_save(state);
	}
	if (a->outcome == PUSH_FATAL && !d->o->follow) {
		snprintf(d->said, sizeof(d->said), "%s", a->why);
		return -EACCES;
	}
	if (is_given_up(d)) {
		snprintf(d->said, sizeof(d->said), "%s", a->why);
		return -EAGAIN;
	}
	if (strcmp(d->said, a->why) != 0) {
		snprintf(d->said, sizeof(d->said), "%s", a->why);
		snprintf(text, sizeof(text), "%s: %s; it is tried again, and nothing is lost", d->sink->name,
			a->why);
		say(d, true, text);
	}
	return pause_for(d, backoff(d, a)) ? -EINTR : 0;
}

static void goes_on(struct deliver *d)
{
	char text[200];

	if (d->said[0]) {
		snprintf(text, sizeof(text), "%s: it goes on", d->sink->name);
		say(d, false, text);
	}
	d->said[0] = 0;
	d->tries = 0;
	if (d->push.state)
		push_state_why(d->push.state, NULL, 0);
}

/* ---- sending ---- */

static void take_where(struct deliver *d)
{
	struct buf where;

	if (!d->sink->where || !d->open)
		return;
	buf_init_fixed(&where, d->result->where, sizeof(d->result->where));
	d->sink->where(d->open, &where);
	if (d->push.state && d->result->where[0]) {
		free(d->push.state->where);
		d->push.state->where = strdup(d->result->where);
	}
}

static int begin(struct deliver *d)
{
	struct push_answer a;
	int r = 0;

	if (d->began)
		return 0;
	while (d->sink->begin && r == 0) {
		push_answer_sent(&a);
		d->sink->begin(d->open, &a);
		d->result->requests++;
		if (a.outcome == PUSH_SENT)
			break;
		if (a.outcome == PUSH_REFUSED)
			a.outcome = PUSH_FATAL;
		r = wait_after(d, &a);
	}
	if (r < 0)
		return r;
	goes_on(d);
	take_where(d);
	d->began = true;
	return d->forgetful || !d->push.state ? 0 : push_state_save(d->push.state);
}

static void drop(struct deliver *d, size_t nr, const char *why)
{
	struct push_state *state = d->from->state;
	char text[2 * PUSH_WHY_SIZE];

	d->result->dropped += (int64_t)nr;
	if (state) {
		state->dropped += (int64_t)nr;
		push_state_refused(state, why);
	}
	if (d->told || !why[0])
		return;
	d->told = true;
	snprintf(text, sizeof(text), "%s: some values are not taken, the others go on: %s", d->sink->name,
		why);
	say(d, true, text);
}

static void took(struct deliver *d, size_t nr, const struct push_answer *a)
{
	struct push_state *state = d->from->state;
	size_t dropped = (size_t)MIN(a->dropped, (uint64_t)nr);

	goes_on(d);
	d->refusals = 0;
	d->result->points += (int64_t)(nr - dropped);
	if (state) {
		state->points += (int64_t)(nr - dropped);
		state->sent_ns = clock_ns(CLOCK_REALTIME);
	}
	if (dropped)
		drop(d, dropped, a->why);
}

/* What is refused is tried in halves, so that one value that cannot be taken holds up no other. */
static int send_points(struct deliver *d, struct push_point *point, size_t nr)
{
	struct push_answer a;
	int r;

	for (;;) {
		push_answer_sent(&a);
		d->sink->send(d->open, point, nr, &a);
		d->result->requests++;
		if (d->from->state)
			d->from->state->requests++;
		if (a.outcome == PUSH_SENT) {
			took(d, nr, &a);
			return 0;
		}
		if (a.outcome == PUSH_REFUSED)
			break;
		r = wait_after(d, &a);
		if (r < 0)
			return r;
	}
	if (nr == 1 || ++d->refusals > REFUSALS_MOST) {
		drop(d, nr, a.why);
		return 0;
	}
	r = send_points(d, point, nr / 2);
	return r < 0 ? r : send_points(d, point + nr / 2, nr - nr / 2);
}

static int show_points(struct deliver *d)
{
	struct buf text;

	buf_init(&text, (size_t)256 << 20);
	d->sink->show(d->open, d->point, d->nr_points, &text);
	d->o->show(d->o->arg, &text);
	buf_release(&text);
	d->result->points += (int64_t)d->nr_points;
	return d->o->stop(d->o->arg) ? -EINTR : 0;
}

/* `whole`: no row of the time of the last ones is still to come. 1: the state is another. */
static int remember(struct push_recording *s, bool whole)
{
	int changed = 0;

	for (size_t i = 0; i < s->nr_sent; i++) {
		struct sent *t = &s->sent[i];

		if (!t->partial)
			continue;
		if (push_position_set(s->state, t->table, t->time_ns - !whole) < 0)
			return -ENOMEM;
		t->partial = !whole;
		changed = 1;
	}
	return changed;
}

static int flush(struct deliver *d, bool whole)
{
	struct push_recording *s = d->from;
	int r;

	if (!s)
		return 0;
	d->push.from = s->state;
	if (d->nr_points) {
		if (d->o->push->dry_run)
			r = show_points(d);
		else
			r = (r = begin(d)) < 0 ? r : send_points(d, d->point, d->nr_points);
		if (r < 0)
			return r;
		d->nr_points = 0;
	}
	r = remember(s, whole);
	if (r <= 0 || d->o->push->dry_run || d->forgetful)
		return MIN(r, 0);
	if (push_state_save(s->state) >= 0 || d->forgets)
		return 0;
	d->forgets = true;
	say(d, true, "what was sent cannot be remembered: the next push may send some of it again");
	return 0;
}

static struct sent *sent_of(struct push_recording *s, const char *table)
{
	struct sent *t;

	for (size_t i = 0; i < s->nr_sent; i++)
		if (!strcmp(s->sent[i].table, table))
			return &s->sent[i];
	t = ARRAY_ADD(s->sent, s->nr_sent);
	if (!t || !(t->table = strdup(table))) {
		s->nr_sent -= t != NULL;
		return NULL;
	}
	return t;
}

static int take_row(struct deliver *d, struct push_recording *s, const struct feed_row *row)
{
	struct sent *t = sent_of(s, row->table);
	size_t at = 0;
	int r = 0;

	if (!t)
		return -ENOMEM;
	if (d->nr_points && d->nr_points + row->nr > d->most)
		r = flush(d, false);
	while (r >= 0 && at < row->nr) { /* a row may be longer than a request */
		size_t n = MIN(row->nr - at, d->most - d->nr_points);

		memcpy(d->point + d->nr_points, row->point + at, n * sizeof(*d->point));
		d->nr_points += n;
		at += n;
		t->time_ns = row->time_ns;
		t->partial = true;
		if (d->nr_points == d->most)
			r = flush(d, false);
	}
	s->last_ns = MAX(s->last_ns, row->time_ns);
	return r;
}

/* ---- recordings ---- */

static int64_t position(const void *arg, const char *table)
{
	return push_position(arg, table);
}

static bool has_schema(const char *path)
{
	struct walk *w = NULL;
	bool has = walk_open(path, NULL, &w) >= 0 && w->schema;

	walk_close(w);
	return has;
}

static int stream_open(struct deliver *d, struct push_recording *s, struct buf *reterr)
{
	struct feed_options o = d->o->feed;
	int r;

	if (!has_schema(s->path)) {
		s->ended = !d->o->follow || is_over(s);
		/* It may have got one meanwhile. */
		return s->ended && has_schema(s->path) ? stream_open(d, s, reterr) : 0;
	}
	o.follow = d->o->follow;
	o.rates = d->sink->rates;
	o.forget = d->sink->forget;
	if (!o.metric)
		o.names = d->names;
	if (s->state && !d->forgetful && !d->o->push->dry_run) {
		o.position = position;
		o.position_arg = s->state;
	}
	r = feed_open(s->path, s->node, &o, &s->feed, reterr);
	return r == -EAGAIN ? 0 : r;
}

static bool is_stream(const struct deliver *d, const char *path)
{
	for (size_t i = 0; i < d->nr_streams; i++)
		if (!strcmp(d->stream[i].path, path))
			return true;
	return false;
}

static int add_stream(struct deliver *d, const char *path, struct buf *reterr)
{
	struct push_recording *s = ARRAY_ADD(d->stream, d->nr_streams);
	int r;

	if (!s || !(s->path = strdup(path)))
		return -ENOMEM;
	s->node = (unsigned)d->nr_streams - 1;
	r = sidecar_meta(path, &s->meta, NULL);
	if (r < 0) {
		buf_addf(reterr, "%s: %s", path, strerror(-r));
		return r;
	}
	meta_num(&s->meta, "start_wall_ns", &s->start_ns);
	return push_state_open(path, &s->meta, d->sink->name, d->address, d->forgetful || d->o->push->dry_run,
		&s->state, reterr);
}

/* Those that the operands name now. */
static int find_streams(struct deliver *d, struct buf *reterr)
{
	struct run *run = NULL;
	int r = run_open_job(d->o->operand, d->o->nr_operands, d->o->job, &run, reterr);

	for (size_t i = 0; r >= 0 && i < run->nr; i++)
		if (!is_stream(d, run->path[i]))
			r = add_stream(d, run->path[i], reterr);
	run_close(run);
	return r;
}

static void look_for_more(struct deliver *d)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct buf err;

	if (!d->directories || now - d->nodes_ns < NODES_NS)
		return;
	d->nodes_ns = now;
	buf_init(&err, 4096);
	find_streams(d, &err); /* what is not there yet may come */
	d->push.state = d->stream[0].state;
	d->run.meta = &d->stream[0].meta; /* they have moved */
	buf_release(&err);
}

static void stream_end(struct push_recording *s)
{
	struct store_glance glance;

	s->ended = true;
	s->complete = store_glance(s->path, take_nothing, NULL, &glance) >= 0 && glance.complete;
}

/* What there is of it now. 1: it may have more later; 0: it has ended. */
static int stream_pump(struct deliver *d, struct push_recording *s, struct buf *reterr)
{
	struct feed_row row;
	int r = s->feed || s->ended ? 0 : stream_open(d, s, reterr);

	if (r < 0 || !s->feed)
		return r < 0 ? r : !s->ended;
	d->from = s;
	while ((r = feed_next(s->feed, &row)) == 1) {
		r = take_row(d, s, &row);
		if (r < 0)
			return r;
		if (d->o->stop(d->o->arg))
			return -EINTR;
	}
	if (r == -ESTALE)
		buf_addf(reterr, "%s was replaced or cut while it was followed", s->path);
	else if (r < 0)
		buf_addf(reterr, "%s: %s", s->path, strerror(-r));
	if (r < 0)
		return r;
	if (r == 0)
		stream_end(s);
	r = flush(d, true);
	d->from = NULL;
	return r < 0 ? r : !s->ended;
}

/* ---- the end ---- */

static void take_ending(const struct push_recording *s, struct push_end *end)
{
	struct meta ending = {0};
	int64_t status = -1;

	if (sidecar_meta(s->path, NULL, &ending) >= 0 && meta_num(&ending, "exit_status", &status) &&
		status >= 0 && status <= 0xffff) {
		int code = WIFSIGNALED((int)status) ? -1 : WEXITSTATUS((int)status);

		end->status = MAX(end->status, code);
		if (WIFSIGNALED((int)status))
			end->signal = WTERMSIG((int)status);
	}
	meta_release(&ending);
	end->complete &= s->complete;
	end->end_ns = MAX(end->end_ns, s->last_ns);
}

static int finish(struct deliver *d)
{
	struct push_end end = {.status = -1, .complete = true};
	struct push_answer a;
	int r = 0;

	for (size_t i = 0; i < d->nr_streams; i++)
		take_ending(&d->stream[i], &end);
	while (d->sink->finish && r == 0) {
		push_answer_sent(&a);
		d->sink->finish(d->open, &end, &a);
		d->result->requests++;
		if (a.outcome == PUSH_SENT) {
			if (a.why[0])
				say(d, true, a.why);
			break;
		}
		if (a.outcome == PUSH_REFUSED)
			a.outcome = PUSH_FATAL;
		r = wait_after(d, &a);
	}
	if (r < 0)
		return r;
	goes_on(d);
	return 0;
}

/* All is sent. What was done before need not be told again. */
static int complete(struct deliver *d)
{
	bool done = d->nr_streams > 0;
	int r = 0;

	for (size_t i = 0; i < d->nr_streams; i++)
		done &= d->stream[i].state && d->stream[i].state->done;
	d->result->before = done && !d->began && !d->forgetful;
	if (d->o->push->dry_run || d->result->before)
		return 0;
	r = begin(d);
	if (r >= 0)
		r = finish(d);
	take_where(d);
	for (size_t i = 0; i < d->nr_streams && r >= 0 && !d->forgetful; i++) {
		d->stream[i].state->all = d->stream[i].state->done = true;
		r = push_state_save(d->stream[i].state);
	}
	return r;
}

static int run_all(struct deliver *d, struct buf *reterr)
{
	bool more;

	do {
		more = false;
		for (size_t i = 0; i < d->nr_streams; i++) {
			int r = stream_pump(d, &d->stream[i], reterr);

			if (r < 0)
				return r;
			more |= r;
		}
		if (!d->o->follow)
			break;
		look_for_more(d);
		if (more && pause_for(d, LOOK_NS))
			return -EINTR;
	} while (more);
	return complete(d);
}

/* ---- beginning ---- */

static char *one_line(const struct meta *meta, const char *key)
{
	const struct meta_item *item = meta_find(meta, key);
	struct buf b;
	char *copy;

	buf_init(&b, 1 << 16);
	for (size_t i = 0; item && i < item->len; i++)
		buf_addch(&b, item->value[i] ? item->value[i] : ' ');
	copy = malloc(4 * b.len + 1);
	if (copy) {
		struct buf text;

		buf_init_fixed(&text, copy, 4 * b.len + 1);
		utf8_escape(&text, b.data, b.len);
	}
	buf_release(&b);
	return copy;
}

/* "train.py" of /opt/train.py; else the file's. */
static char *name_of_run(const struct deliver *d, const struct meta *meta)
{
	const char *given = meta_text(meta, "name"), *from = *given ? given : d->command, *slash;
	size_t n = *given ? strlen(given) : strcspn(from, " ");

	if (!n) {
		from = d->stream[0].path;
		n = strlen(from);
		n -= n > 6 && !strcmp(from + n - 6, RECORDING_SUFFIX) ? 6 : 0;
	}
	slash = *given ? NULL : memrchr(from, '/', n);
	if (slash)
		n -= (size_t)(slash + 1 - from);
	return strndup(slash ? slash + 1 : from, n);
}

static int tell_run(struct deliver *d)
{
	const struct meta *meta = &d->stream[0].meta;

	d->command = one_line(meta, "command");
	d->user = one_line(meta, "user");
	d->job = one_line(meta, "scheduler.job_id");
	d->host = one_line(meta, "host");
	d->name = d->command ? name_of_run(d, meta) : NULL;
	if (!d->command || !d->user || !d->job || !d->host || !d->name)
		return -ENOMEM;
	d->run = (struct push_run){.path = d->o->operand,
		.nr = d->o->nr_operands,
		.meta = meta,
		.host = d->host,
		.user = d->user,
		.job = d->job,
		.command = d->command,
		.name = d->name,
		.start_ns = d->stream[0].start_ns,
		.follows = d->o->follow};
	meta_num(meta, "interval_ns", &d->run.interval_ns);
	for (size_t i = 1; i < d->nr_streams; i++)
		d->run.start_ns = MIN(d->run.start_ns, d->stream[i].start_ns);
	return 0;
}

static size_t count_names(const struct push_name *n)
{
	size_t nr = 0;

	while (n && n[nr].name)
		nr++;
	return nr;
}

/* The sink's names, the usual ones, or both. */
static int choose_names(struct deliver *d)
{
	const struct push_name *own = d->sink->names ? d->sink->names(&d->push) : NULL;
	bool beside = d->sink->names_beside && d->sink->names_beside(&d->push);
	const struct push_name *usual = own && !beside ? NULL
		: d->o->feed.per == TABLES_PROCESS     ? push_usual_process
		: d->o->feed.per == TABLES_GROUP       ? push_usual_group
						       : push_usual;
	size_t nr = count_names(usual), nr_own = count_names(own);

	d->names = calloc(nr + nr_own + 1, sizeof(*d->names));
	if (!d->names)
		return -ENOMEM;
	if (nr)
		memcpy(d->names, usual, nr * sizeof(*usual));
	if (nr_own)
		memcpy(d->names + nr, own, nr_own * sizeof(*own));
	return 0;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int prepare(struct deliver *d, struct buf *reterr)
{
	const struct push_sink *sink = d->sink;
	int r = sink->address(&d->push, d->address, sizeof(d->address), reterr);

	if (r < 0)
		return r;
	d->forgetful = sink->forgetful && sink->forgetful(&d->push);
	if (!sink->is_file && !d->forgetful && !d->o->push->dry_run) {
		const struct http_options o = {.timeout_ns = d->o->push->timeout_ns};

		r = http_new(&o, &d->push.http, reterr);
		if (r >= 0)
			http_may_stop(d->push.http, d->o->stop, d->o->arg);
	}
	for (size_t i = 0; i < d->o->nr_operands; i++)
		d->directories |= is_directory(d->o->operand[i]);
	if (r >= 0)
		r = find_streams(d, reterr);
	if (r >= 0 && !d->nr_streams) {
		buf_adds(reterr, "there is no recording yet");
		r = -ENOENT;
	}
	if (r >= 0)
		r = tell_run(d);
	if (r < 0)
		return r;
	d->push.state = d->stream[0].state;
	d->most = sink->points_most ? sink->points_most : POINTS_MOST;
	if (sink->bytes_most)
		d->most = MAX(MIN(d->most, sink->bytes_most / BYTES_A_POINT), (size_t)1);
	d->point = calloc(d->most, sizeof(*d->point));
	r = d->point ? choose_names(d) : -ENOMEM;
	return r < 0 ? r : sink->open(&d->push, &d->open, reterr);
}

static void release(struct deliver *d)
{
	for (size_t i = 0; i < d->nr_streams; i++) {
		struct push_recording *s = &d->stream[i];

		feed_close(s->feed);
		push_state_close(s->state);
		meta_release(&s->meta);
		for (size_t j = 0; j < s->nr_sent; j++)
			free(s->sent[j].table);
		free(s->sent);
		free(s->path);
	}
	if (d->open)
		d->sink->close(d->open);
	http_free(d->push.http);
	free(d->stream);
	free(d->names);
	free(d->point);
	free(d->command);
	free(d->user);
	free(d->job);
	free(d->host);
	free(d->name);
}

int deliver(const struct deliver_options *o, struct deliver_result *ret, struct buf *reterr)
{
	struct deliver d = {.o = o, .sink = o->sink, .result = ret, .nodes_ns = clock_ns(CLOCK_MONOTONIC)};
	int r;

	*ret = (struct deliver_result){0};
	d.run = (struct push_run){.path = o->operand, .nr = o->nr_operands};
	d.push = (struct push){.run = &d.run, .options = o->push, .say = say_note, .say_arg = &d};
	if (getrandom(&d.random, sizeof(d.random), GRND_NONBLOCK) < 0)
		d.random = (uint32_t)clock_ns(CLOCK_MONOTONIC);
	r = prepare(&d, reterr);
	if (r >= 0)
		r = run_all(&d, reterr);
	ret->all = r >= 0;
	if (r < 0 && !reterr->len && d.said[0])
		buf_adds(reterr, d.said);
	else if (r < 0 && !reterr->len && r != -EINTR)
		buf_adds(reterr, strerror(-r));
	release(&d);
	return r;
}
