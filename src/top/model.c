/* The run that `top` looks at: see model.h. */
#include "top/model.h"

#include "base/owned.h"
#include "query/length.h"
#include "query/run_directory.h"
#include "store/glance.h"
#include "top/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define LOOK_NS (2 * NSEC_PER_SEC)	   /* between two looks for new recordings */
#define TRY_NS (NSEC_PER_SEC / 4)	   /* between two tries at a young one */
#define YOUNG_NS (5 * NSEC_PER_SEC)	   /* so long one that does not grow may be without a tick */
#define LOOK_ANYWAY_NS (60 * NSEC_PER_SEC) /* though no directory has changed */
#define LONG_BYTES ((off_t)4 << 20)	   /* of such a recording the end is read first */
#define FIT_NS (NSEC_PER_SEC / 4)	   /* reading for another look, before it is shown */
#define NODES_FEW ((size_t)16) /* of more nodes processes are read for the one that is looked at */
#define WINDOW_NS (300 * NSEC_PER_SEC)
#define WINDOW_LEAST_NS (10 * NSEC_PER_SEC)
#define WINDOW_LIVE_NS (60 * NSEC_PER_SEC)
#define POINTS_MOST ((size_t)16384) /* of all nodes together */
#define POINTS_LEAST ((size_t)700)  /* of a node */
#define BEFORE_TICKS 12		    /* tables that are kept for steps back */
#define AHEAD_TICKS 200		    /* so far another reading is rather read on than opened anew */

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* ---- nodes ---- */

static bool wants_tables(const struct model *m, size_t node)
{
	return m->nr <= NODES_FEW || m->focus == node;
}

static struct reading_options options_of(const struct model *m, const struct top_node *n)
{
	size_t node = (size_t)(n - m->node);

	return (struct reading_options){.group = m->focus == node ? m->group : NULL,
		.tables = wants_tables(m, node),
		.parts = true,
		.rests = m->few_files,
		.follow = true,
		.points = MAX(POINTS_MOST / MAX(m->nr, (size_t)1), POINTS_LEAST)};
}

#define FILES_OTHER 40 /* descriptors that are needed for other things */

/* Up to three readings of each: of the whole, of its end, of a moment in the past. */
static bool may_keep_open(size_t nr)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) < 0 || nr * 3 + FILES_OTHER < files.rlim_cur;
}

static size_t path_directory_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static void node_say(struct top_node *n, const char *why)
{
	free(n->why);
	n->why = strdup(why);
}

static void node_place(struct model *m, struct top_node *n, const struct top_reading *r)
{
	int64_t start = walk_start(r->walk);

	free(n->host);
	n->host = strdup(meta_text(&r->walk->meta, "host"));
	if (start && !m->start_wall_ns)
		m->start_wall_ns = start;
	if (start && start < m->start_wall_ns) { /* the run began earlier than was known */
		for (size_t i = 0; i < m->nr; i++)
			m->node[i].offset_ns += m->start_wall_ns - start;
		m->time_ns += m->start_wall_ns - start;
		m->start_wall_ns = start;
	}
	n->offset_ns = start ? start - m->start_wall_ns : 0;
}

/* Where its tables begin to be of interest, and whether it is so long that its end comes first. */
static int64_t end_of(const char *path)
{
	struct run *run = NULL;
	struct buf err;
	double length = 0;

	buf_init(&err, 4096);
	if (run_open_all(&path, 1, &run, &err) < 0 || run_length(run, &length, &err) < 0)
		length = 0;
	run_close(run);
	buf_release(&err);
	return round_i64(length * 1e9);
}

static int ignore(void *arg, enum store_type type, const struct pairs *pairs)
{
	(void)arg;
	(void)type;
	(void)pairs;
	return 0;
}

/* Neither schema nor recorder: nothing will come, unless it grows after all. */
static void see_whether_empty(struct model *m, struct top_node *n)
{
	int64_t now = monotonic_ns(), age;
	struct store_glance glance;
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	if (n->empty || store_glance(n->path, ignore, NULL, &glance) < 0)
		return;
	age = (int64_t)wall.tv_sec * NSEC_PER_SEC + wall.tv_nsec - glance.modified_ns;
	if (!n->young_ns || glance.writing)
		n->young_ns = now;
	/* That of another machine may be written though no lock is seen. */
	if (glance.writing || (age < YOUNG_NS && now - n->young_ns < YOUNG_NS))
		return;
	n->empty = n->gone = m->news = true;
	node_say(n, "no measurement can be read from it, and its recorder is gone");
}

static void no_longer_empty(struct top_node *n)
{
	free(n->why);
	n->why = NULL;
	n->empty = n->gone = false;
}

static int node_begin(struct model *m, struct top_node *n)
{
	struct reading_options o = options_of(m, n);
	struct stat st = {0};
	bool is_long = stat(n->path, &st) == 0 && st.st_size > LONG_BYTES;
	int64_t end = o.tables || is_long ? end_of(n->path) : 0;
	struct buf err;
	int r;

	n->tried_ns = monotonic_ns();
	n->tables = o.tables;
	buf_init(&err, 4096);
	o.tables_from_ns = end - 3 * NSEC_PER_SEC;
	r = reading_open(n->path, &o, &n->main, &err);
	if (r >= 0 && is_long && end > m->window_ns) {
		o.from_ns = end - m->window_ns;
		o.near = true;
		if (reading_open(n->path, &o, &n->tail, &err) < 0)
			n->tail = NULL;
	}
	if (r >= 0) {
		no_longer_empty(n);
		node_place(m, n, n->main);
	} else if (r == -ENODATA)
		see_whether_empty(m, n);
	else if (r != -ENOENT)
		node_say(n, err.len ? (char *)err.data : strerror(-r));
	buf_release(&err);
	return r;
}

static bool is_known(const struct model *m, const char *path)
{
	for (size_t i = 0; i < m->nr; i++)
		if (!strcmp(m->node[i].path, path))
			return true;
	return false;
}

static int node_add(struct model *m, const char *path)
{
	struct top_node *n = is_known(m, path) ? NULL : ARRAY_ADD(m->node, m->nr);

	if (!n)
		return is_known(m, path) ? 0 : -ENOMEM;
	n->path = strdup(path);
	m->news = true;
	return n->path ? 0 : -ENOMEM;
}

static int64_t modified_ns(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec : 0;
}

/* Other when anything has come into the directories: theirs, those of their runs, and where nodes are. */
static int64_t changed_at(const struct model *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->nr_named; i++) {
		char *nodes = run_directory_nodes(m->named[i]);

		sum += (uint64_t)modified_ns(m->named[i]) + 3 * (uint64_t)(nodes ? modified_ns(nodes) : 0);
		free(nodes);
	}
	if (m->nr) {
		char *parent = strndup(m->node[0].path, path_directory_len(m->node[0].path));

		sum += 7 * (uint64_t)(parent ? modified_ns(parent) : 0);
		free(parent);
	}
	return (int64_t)sum;
}

static int look_for_more(struct model *m, struct buf *reterr)
{
	struct run *run = NULL;
	int r = run_open_job((const char *const *)m->named, m->nr_named, m->job, &run, reterr);

	for (size_t i = 0; r >= 0 && i < run->nr; i++)
		r = node_add(m, run->path[i]);
	m->expects = r < 0 || run->nr_skipped;
	run_close(run);
	m->changed_ns = changed_at(m);
	m->few_files = !may_keep_open(m->nr);
	return r;
}

int model_open(
	struct model *m, const char *const *path, size_t nr, const char *job, bool wait, struct buf *reterr)
{
	int r = 0;

	*m = (struct model){.live = true, .job = job, .window_ns = WINDOW_NS, .share = 1, .news = true};
	for (size_t i = 0; i < nr && r >= 0; i++) {
		struct stat st;

		r = texts_take(&m->named, &m->nr_named, strdup(path[i]));
		m->grows |= stat(path[i], &st) == 0 && S_ISDIR(st.st_mode);
	}
	if (r >= 0)
		r = look_for_more(m, reterr);
	if (wait && (r == -ENOENT || r == -EBADMSG || r == -ENODATA)) {
		m->grows = true;
		buf_reset(reterr);
		r = 0;
	}
	m->looked_ns = monotonic_ns();
	m->focus = m->nr > 1 ? TOP_ALL : 0;
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "%s", strerror(-r));
	return r;
}

void model_close(struct model *m)
{
	for (size_t i = 0; i < m->nr; i++) {
		struct top_node *n = &m->node[i];

		reading_close(n->main);
		reading_close(n->tail);
		reading_close(n->past);
		free(n->path);
		free(n->host);
		free(n->why);
	}
	free(m->node);
	texts_free(m->named, m->nr_named);
	free(m->group);
	ghost_close(m->ghost);
	*m = (struct model){0};
}

/* ---- reading on ---- */

static const struct top_point *newest(const struct top_node *n)
{
	const struct top_reading *r = n->tail && n->tail->nr_points ? n->tail : n->main;

	return r ? reading_last(r) : NULL;
}

static void find_end(struct model *m)
{
	m->end_ns = 0;
	for (size_t i = 0; i < m->nr; i++) {
		const struct top_point *p = newest(&m->node[i]);

		if (p)
			m->end_ns = MAX(m->end_ns, p->time_ns + m->node[i].offset_ns);
	}
}

/* Up to the end, or until the time is over: true when there is more at once. */
static bool read_on(struct model *m, struct top_reading *r, int64_t until_ns)
{
	int e;

	while ((e = reading_step(r)) == 1) {
		m->news = true;
		m->fresh_ns = monotonic_ns();
		if (m->fresh_ns > until_ns)
			return true;
	}
	return false;
}

/* Main has come to the end: what is read from there on is of interest. */
static void caught_up(struct top_node *n)
{
	n->main->tables_from_ns = 0;
	n->tail = reading_close(n->tail);
}

static bool node_poll(struct model *m, struct top_node *n, int64_t until_ns)
{
	enum reading_state was;
	bool more = false;

	if (n->why && !n->empty)
		return false;
	if (!n->main && monotonic_ns() - n->tried_ns < TRY_NS)
		return false;
	if (!n->main && node_begin(m, n) < 0)
		return false;
	m->news |= !n->main->ticks;
	was = n->main->state;
	if (n->tail)
		more = read_on(m, n->tail, until_ns);
	more = more || read_on(m, n->main, until_ns);
	if (!more)
		caught_up(n);
	if (n->main->error < 0) {
		node_say(n,
			n->main->error == -ESTALE ? "the file was replaced or cut"
						  : strerror(-n->main->error));
		m->news = true;
	}
	n->gone = n->main->state == READING_ENDED && !n->main->complete;
	m->news |= was != n->main->state;
	if (n->past && n->past->error < 0)
		n->past = reading_close(n->past);
	return more;
}

/* Each in its turn, as long as there is time: the next look goes on with the one that was reached. */
static bool poll_nodes(struct model *m, int64_t until_ns)
{
	bool more = false;
	double share = 0;

	for (size_t k = 0; k < m->nr; k++) {
		size_t i = (m->turn + k) % m->nr;

		if (k && monotonic_ns() > until_ns) {
			m->turn = i;
			more = true;
			break;
		}
		more |= node_poll(m, &m->node[i], until_ns);
	}
	for (size_t i = 0; more && i < m->nr; i++)
		share += m->node[i].main ? reading_share(m->node[i].main) : m->node[i].why != NULL;
	m->share = more ? share / (double)m->nr : 1;
	return more;
}

static void look_again(struct model *m, int64_t now)
{
	bool due = now - m->looked_ns >= (m->nr ? LOOK_NS : TRY_NS);
	struct buf ignored;
	size_t had = m->nr;

	if (!m->grows || !due)
		return;
	if (!m->expects && now - m->looked_ns < LOOK_ANYWAY_NS && changed_at(m) == m->changed_ns)
		return;
	buf_init(&ignored, 4096);
	look_for_more(m, &ignored);
	buf_release(&ignored);
	m->looked_ns = monotonic_ns();
	if (had <= 1 && m->nr > 1 && !m->group)
		m->focus = TOP_ALL;
}

bool model_poll(struct model *m, int64_t budget_ns)
{
	int64_t now = monotonic_ns();
	bool more;

	look_again(m, now);
	more = poll_nodes(m, monotonic_ns() + budget_ns);
	find_end(m);
	if (!m->own_window && !more) {
		int64_t end = model_end(m);

		m->window_ns = model_is_over(m) ? WINDOW_LEAST_NS : WINDOW_LIVE_NS;
		while (m->window_ns < end && m->window_ns < WINDOW_NS)
			m->window_ns = MIN(m->window_ns * 2, WINDOW_NS);
	}
	return more;
}

#define SILENCE_LEAST_S 5.0
#define SILENCE_TICKS 5

unsigned model_silence(const struct model *m)
{
	const struct top_node *n = m->nr ? &m->node[model_main(m)] : NULL;
	double since = (double)(monotonic_ns() - m->fresh_ns) / 1e9, interval;

	if (!n || !n->main || !n->main->walk || !m->fresh_ns || model_is_over(m))
		return 0;
	interval = reading_interval(n->main);
	return since < MAX(SILENCE_LEAST_S, SILENCE_TICKS * interval) ? 0 : (unsigned)MIN(since, 1e9);
}

bool model_is_over(const struct model *m)
{
	for (size_t i = 0; i < m->nr; i++) {
		const struct top_node *n = &m->node[i];

		if (!n->why && (!n->main || n->main->state != READING_ENDED))
			return false;
	}
	return m->nr && !(m->grows && m->nr_named && !m->nr);
}

/* ---- moments ---- */

int64_t model_end(const struct model *m)
{
	return m->end_ns;
}

int64_t model_now(const struct model *m)
{
	return m->live ? model_end(m) : m->time_ns;
}

void model_go(struct model *m, int64_t time_ns)
{
	int64_t end = model_end(m);

	m->live = time_ns >= end;
	m->time_ns = MAX(MIN(time_ns, end), INT64_C(0));
	m->news = true;
}

size_t model_main(const struct model *m)
{
	if (m->focus != TOP_ALL)
		return MIN(m->focus, m->nr ? m->nr - 1 : 0);
	for (size_t i = 0; i < m->nr; i++)
		if (m->node[i].main)
			return i;
	return 0;
}

void model_step(struct model *m, int ticks)
{
	struct node_view v = m->nr ? model_view(m, model_main(m), false) : (struct node_view){0};
	int64_t offset = m->nr ? m->node[model_main(m)].offset_ns : 0, to = model_now(m);
	size_t at = v.reading ? reading_index(v.reading, v.time_ns) : 0;
	double interval = v.reading ? reading_interval(v.reading) : 1;
	const struct top_point *p = NULL;

	if (v.reading && at == v.reading->nr_points &&
		ticks > 0) /* before the first tick, as good as at it */
		at = 0;
	if (v.reading && at < v.reading->nr_points && (ticks > 0 || at >= (size_t)-ticks))
		p = reading_point(v.reading, ticks > 0 ? at + (size_t)ticks : at - (size_t)-ticks);
	to = p ? p->time_ns + offset : add_clamped(to, round_i64(ticks * interval * 1e9));
	/* At the first tick there is no other before. */
	if (ticks < 0 && !p && v.now && to < offset)
		to = MAX(to, INT64_C(0));
	model_go(m, to);
}

/* The moment is in what the reading keeps, with the window before it. */
static bool covers(const struct top_reading *r, int64_t time_ns, int64_t window_ns, bool table)
{
	const struct top_point *first = r ? reading_point(r, 0) : NULL, *at;
	int64_t begin = r ? MAX(r->from_ns, INT64_C(0)) : 0;

	if (!first)
		return false;
	at = reading_at(r, time_ns);
	if (!at)
		return !r->from_ns && r->ticks == r->nr_points; /* before its first tick */
	if (first->time_ns > MAX(time_ns - window_ns, INT64_C(0)) &&
		(r->ticks > r->nr_points || begin > MAX(time_ns - window_ns, INT64_C(0))))
		return false;
	if (at == reading_last(r) && at->time_ns < time_ns && r->state == READING_ON)
		return false; /* what comes may be nearer */
	return !table || reading_snapshot(r, at->time_ns);
}

/* Reads until the moment is passed. */
static void read_past(struct top_reading *r, int64_t time_ns)
{
	while (reading_step(r) == 1)
		if (reading_last(r)->time_ns > time_ns)
			return;
}

static const struct top_reading *reach(struct model *m, struct top_node *n, int64_t time_ns, bool table)
{
	struct reading_options o = options_of(m, n);
	const struct top_point *last;
	struct buf err;

	if (covers(n->main, time_ns, m->window_ns, table))
		return n->main;
	if (n->tail && covers(n->tail, time_ns, m->window_ns / 2, table))
		return n->tail;
	last = n->past ? reading_last(n->past) : NULL;
	if (last && time_ns > last->time_ns &&
		time_ns - last->time_ns < (int64_t)(reading_interval(n->past) * AHEAD_TICKS * 1e9))
		read_past(n->past, time_ns);
	if (covers(n->past, time_ns, m->window_ns, table))
		return n->past;
	reading_close(n->past);
	n->past = NULL;
	o.from_ns = MAX(time_ns - m->window_ns, INT64_C(0));
	o.tables_from_ns =
		time_ns - (int64_t)((n->main ? reading_interval(n->main) : 1) * BEFORE_TICKS * 1e9);
	o.points = MAX(o.points, (size_t)4096);
	buf_init(&err, 4096);
	if (reading_open(n->path, &o, &n->past, &err) >= 0)
		read_past(n->past, time_ns);
	buf_release(&err);
	return n->past ? n->past : n->main;
}

#define ENDED_TICKS 2.5 /* after the last tick: so long curves go on, too */

static bool has_ended(const struct top_node *n, const struct top_point *last, int64_t time_ns)
{
	const struct top_reading *r = n->tail && n->tail->nr_points ? n->tail : n->main;

	return (n->why || r->state == READING_ENDED) &&
		time_ns - last->time_ns > (int64_t)(ENDED_TICKS * 1e9 * reading_interval(r));
}

struct node_view model_view(struct model *m, size_t node, bool table)
{
	struct top_node *n = &m->node[node];
	struct node_view v = {.time_ns = model_now(m) - n->offset_ns};
	const struct top_point *last = newest(n);

	if (!n->main || !last)
		return v;
	if (m->live || v.time_ns >= last->time_ns)
		v.reading = n->tail && n->tail->nr_points ? n->tail : n->main;
	else
		v.reading = reach(m, n, v.time_ns, table);
	v.ended = has_ended(n, last, v.time_ns);
	v.now = v.reading ? reading_at(v.reading, v.time_ns) : NULL;
	if (v.now && table)
		v.table = reading_snapshot(v.reading, v.now->time_ns);
	return v;
}

/* ---- which part of the run ---- */

static void node_close(struct top_node *n)
{
	n->main = reading_close(n->main);
	n->tail = reading_close(n->tail);
	n->past = reading_close(n->past);
	n->tried_ns = 0;
}

/* What was read of the node is not what is wanted of it now: it is read again. */
static void node_fit(struct model *m, size_t node)
{
	struct top_node *n = &m->node[node];
	struct reading_options o = options_of(m, n);
	const char *has = n->main ? n->main->group : NULL;

	if (n->main && (n->tables || !o.tables) && !strcmp(has ? has : "", o.group ? o.group : ""))
		return;
	node_close(n);
	while (monotonic_ns() < m->fit_until_ns && node_poll(m, n, m->fit_until_ns))
		;
	find_end(m);
}

int model_focus(struct model *m, size_t node, const char *group)
{
	size_t was = m->focus;
	char *copy = group ? strdup(group) : NULL;

	if (group && !copy)
		return -ENOMEM;
	free(m->group);
	m->group = copy;
	m->focus = node;
	m->news = true;
	m->fit_until_ns = monotonic_ns() + FIT_NS;
	if (node < m->nr)
		node_fit(m, node);
	if (was < m->nr && was != node)
		node_fit(m, was);
	return 0;
}

static const struct top_parts *parts_of(const struct model *m, size_t node)
{
	return node < m->nr && m->node[node].main ? m->node[node].main->parts : NULL;
}

bool model_has_parts(const struct model *m)
{
	return m->nr > 1 || (m->nr && parts_nr(parts_of(m, 0)) > 1);
}

/* All, then each node with its groups. */
int model_next_focus(struct model *m)
{
	size_t node = m->focus == TOP_ALL ? 0 : m->focus;
	const struct top_parts *parts = parts_of(m, node);
	unsigned next = 0, nr = parts_nr(parts);

	if (!m->nr)
		return 0;
	if (m->focus == TOP_ALL)
		return model_focus(m, 0, NULL);
	for (unsigned i = 0; m->group && i < nr; i++)
		if (!strcmp(m->group, parts_name(parts, i)))
			next = i + 1;
	if (m->group && !next)
		return 0; /* it is read again, and its groups are not known yet */
	if (next < nr)
		return model_focus(m, node, parts_name(parts, next));
	node++;
	return model_focus(m, node < m->nr ? node : model_has_parts(m) ? TOP_ALL : 0, NULL);
}

/* ---- numbers ---- */

const struct run_events *model_events(const struct model *m, size_t node)
{
	const struct top_node *n = node < m->nr ? &m->node[node] : NULL;

	if (!n || !n->main)
		return NULL;
	return n->tail && n->tail->nr_points && m->live ? &n->tail->events : &n->main->events;
}

bool model_sum(struct model *m, double ret[static NR_TOP_VALUES])
{
	unsigned nr[NR_TOP_VALUES] = {0};

	for (unsigned v = 0; v < NR_TOP_VALUES; v++)
		ret[v] = NAN;
	for (size_t i = 0; i < m->nr; i++) {
		struct node_view view = model_view(m, i, false);

		for (unsigned v = 0; view.now && !view.ended && v < NR_TOP_VALUES; v++)
			if (!isnan(view.now->value[v])) {
				ret[v] = nr[v] ? ret[v] + view.now->value[v] : view.now->value[v];
				nr[v]++;
			}
	}
	for (unsigned v = 0; v < NR_TOP_VALUES; v++)
		if (nr[v] && top_value_row[v].combine == TOP_MEAN)
			ret[v] /= nr[v];
	return nr[TOP_CORES] || nr[TOP_RSS] || nr[TOP_PROCESSES];
}

#define SLOPE_S 30.0
#define SLOPE_SHORT_S 10.0
#define SLOPE_POINTS 5

/* A straight line through so many seconds, and some points at least. */
static double slope_over(const struct top_reading *r, size_t at, double seconds)
{
	double n = 0, st = 0, sm = 0, stt = 0, stm = 0, t0 = (double)reading_point(r, at)->time_ns / 1e9;

	for (size_t i = at + 1; i--;) {
		const struct top_point *p = reading_point(r, i);
		double t = (double)p->time_ns / 1e9 - t0, memory = point_memory(p);

		if (t < -seconds && (n >= SLOPE_POINTS || t < -SLOPE_S))
			break;
		if (isnan(memory))
			continue;
		n++;
		st += t;
		sm += memory;
		stt += t * t;
		stm += t * memory;
	}
	if (n < SLOPE_POINTS || n * stt - st * st <= 0)
		return NAN;
	return (n * stm - st * sm) / (n * stt - st * st);
}

/* Much was given back at once, as at the end of a job: a line through it says nothing. */
static bool has_dropped(const struct top_reading *r, size_t at)
{
	double before = NAN, t0 = (double)reading_point(r, at)->time_ns / 1e9;

	for (size_t i = at + 1; i--;) {
		const struct top_point *p = reading_point(r, i);
		double memory = point_memory(p);

		if (t0 - (double)p->time_ns / 1e9 > SLOPE_SHORT_S && at - i >= SLOPE_POINTS)
			break;
		if (before < memory / 2)
			return true;
		before = isnan(memory) ? before : memory;
	}
	return false;
}

/* What has grown in one step does not grow now: over the last half minute and over the end of it, the less.
 */
double memory_slope(const struct top_reading *r, int64_t time_ns)
{
	size_t at = reading_index(r, time_ns);
	double slope, now;

	if (at >= r->nr_points || has_dropped(r, at))
		return NAN;
	slope = slope_over(r, at, SLOPE_S);
	now = slope_over(r, at, SLOPE_SHORT_S);
	if (isnan(slope) || isnan(now))
		return NAN;
	if (slope > 0)
		return MIN(slope, MAX(now, 0.0));
	return MAX(slope, MIN(now, 0.0));
}

#define REACH_MOST_S 86400.0
#define SLOPE_LEAST 1024.0 /* bytes a second, and a share of what there is: less is no growth */
#define SLOPE_SHARE 1e-4

double memory_reach(double memory, double limit, double slope)
{
	double left;

	if (!(limit > 0) || !(memory > 0) || !(slope >= MAX(SLOPE_LEAST, memory * SLOPE_SHARE)))
		return NAN;
	left = MAX(limit - memory, 0.0) / slope;
	return left < REACH_MOST_S ? left : NAN;
}
