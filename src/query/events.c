/* What happened when. Events are told by the recording; that processes were killed because memory ran out is
 * seen in the kernel's counters, at the tick where they rise (query/counter_watch). */
#include "query/events.h"

#include "base/json.h"
#include "base/owned.h"
#include "base/str.h"
#include "base/units.h"
#include "query/counter_watch.h"
#include "query/event_words.h"
#include "query/speaker.h"
#include "query/walk.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define OPEN_MOST 256
/* A process that the kernel killed may be seen to end so long after its counter rose. */
#define SAME_MOMENT_S 1.0

struct victim { /* the largest process that ended by SIGKILL */
	bool any;
	double time_s;
	int64_t pid, kib; /* pid 0: not known */
	char name[40];	  /* escaped; "": not known */
};

struct gathering {
	struct walk_observer observer;
	struct run_events *m;
	struct walk *walk;
	uint32_t node;
	double offset_s;
	double until_s; /* it needs no more after that; NAN: it needs all */
	struct {
		size_t at; /* index */
		struct speaker speaker;
	} open[OPEN_MOST]; /* phases that have not ended */
	unsigned nr_open;
	size_t stopped, lost; /* index + 1 of the event that goes on; 0: none */
	struct kills kills;
	struct victim victim; /* since the tick before */
	size_t unnamed;	      /* index + 1 of the last kill whose victim is not known yet; 0: none */
};

/* ---- lists ---- */

static double seconds(const struct gathering *g, int64_t time_ns)
{
	return g->offset_s + (double)time_ns / 1e9;
}

static char *escaped(const char *text, size_t len)
{
	struct buf b;
	char *copy;

	buf_init(&b, 4096);
	escape_bytes(&b, text, MIN(len, (size_t)500));
	copy = strdup((const char *)b.data);
	buf_release(&b);
	return copy;
}

/* Its index, or -ENOSPC beyond the most, or -ENOMEM. The label is taken, also when it fails. */
static long run_event_add(struct gathering *g, bool phase, double time_s, const char *kind, char *label)
{
	struct run_event **list = phase ? &g->m->phase : &g->m->event;
	size_t *nr = phase ? &g->m->nr_phases : &g->m->nr_events;
	bool mark = !strcmp(kind, "mark");
	char *copy;

	/* The job's marks leave room for what the recorder tells. */
	if (phase ? *nr >= MOMENTS_MOST
		  : (mark ? g->m->nr_marks - g->m->nr_numbers : *nr - g->m->nr_marks) >= MOMENTS_MOST) {
		g->m->left_out++;
		free(label);
		return label ? -ENOSPC : -ENOMEM;
	}
	copy = escaped(kind, strlen(kind));
	if (!copy || !label || ARRAY_RESIZE(*list, *nr + 1) < 0) {
		free(copy);
		free(label);
		return -ENOMEM;
	}
	(*list)[*nr] = (struct run_event){
		.time_s = time_s, .end_s = NAN, .node = g->node, .kind = copy, .label = label};
	g->m->nr_marks += mark;
	return (long)(*nr)++;
}

static int event_add(struct gathering *g, double time_s, const char *kind, const char *fmt, ...)
	_printf_(4, 5);
static int event_add(struct gathering *g, double time_s, const char *kind, const char *fmt, ...)
{
	char *label = NULL;
	va_list ap;
	long at;

	va_start(ap, fmt);
	if (vasprintf(&label, fmt, ap) < 0)
		label = NULL;
	va_end(ap);
	at = run_event_add(g, false, time_s, kind, label);
	return at == -ENOMEM ? -ENOMEM : 0;
}

/* ---- phases ---- */

static double told_at(const struct gathering *g, const struct store_record *record)
{
	return seconds(g, told_ns(record->time_ns, record->pairs));
}

static char *name_in(const struct pairs *pairs)
{
	const struct pair *name = pairs_find(pairs, "name");

	return name ? escaped(name->value, name->len) : strdup("");
}

/* KEY=VALUE, parted by NULs, as {"KEY": "VALUE"}. *ret is NULL where there is none. */
static int told_data(const struct pairs *pairs, char **ret)
{
	const struct pair *data = pairs_find(pairs, "data");
	struct buf text, key;
	struct json j;

	if (!data || !data->len)
		return 0;
	buf_init(&text, SIZE_MAX / 4);
	buf_init(&key, SIZE_MAX / 4);
	json_init(&j, &text, false);
	json_object(&j, NULL);
	for (size_t at = 0; at < data->len;) {
		size_t len = strnlen(data->value + at, data->len - at);
		const char *sign = memchr(data->value + at, '=', len);
		size_t name = sign ? (size_t)(sign - data->value) - at : len, from = name + (sign != NULL);
		size_t next = MIN(at + len + 1, data->len);

		buf_reset(&key);
		utf8_escape(&key, data->value + at, name);
		if (!sign || !words_have(data->value + next, data->len - next, data->value + at, name))
			json_bytes(&j, (char *)key.data, data->value + at + from,
				len - from); /* the last counts */
		at = next;
	}
	json_end_object(&j);
	*ret = text.err || key.err ? NULL : strndup((char *)text.data, text.len);
	buf_release(&text);
	buf_release(&key);
	return *ret ? 0 : -ENOMEM;
}

static int phase_begin(struct gathering *g, const struct store_record *record)
{
	long at = run_event_add(g, true, told_at(g, record), "phase", name_in(record->pairs));

	if (at < 0)
		return at == -ENOMEM ? -ENOMEM : 0;
	if (g->nr_open == OPEN_MOST) { /* the oldest lasts to the end */
		memmove(g->open, g->open + 1, (OPEN_MOST - 1) * sizeof(g->open[0]));
		g->nr_open--;
	}
	g->open[g->nr_open].speaker = speaker_in(record->pairs);
	g->open[g->nr_open++].at = (size_t)at;
	return told_data(record->pairs, &g->m->phase[at].data);
}

static int phase_end(struct gathering *g, const struct store_record *record)
{
	struct speaker speaker = speaker_in(record->pairs);
	char *name = name_in(record->pairs);
	unsigned i = 0, best = 0;

	if (!name)
		return -ENOMEM;
	for (unsigned k = g->nr_open; k--;) {
		unsigned match = speaker_match(&g->open[k].speaker, &speaker);

		if (match > best && !strcmp(g->m->phase[g->open[k].at].label, name)) {
			best = match;
			i = k + 1;
		}
	}
	if (i--) { /* one that never began is nothing */
		struct run_event *phase = &g->m->phase[g->open[i].at];

		phase->end_s = MAX(told_at(g, record), phase->time_s);
		memmove(g->open + i, g->open + i + 1, (g->nr_open - i - 1) * sizeof(g->open[0]));
		g->nr_open--;
	}
	free(name);
	return 0;
}

/* "checkpoint written (size=3.1G)"; without a text the data alone. */
static char *mark_label(const struct pairs *pairs)
{
	const struct pair *name = pairs_find(pairs, "name"), *data = pairs_find(pairs, "data");
	bool named = name && name->len;
	struct buf b;
	char *copy;

	buf_init(&b, 8192);
	if (named)
		escape_bytes(&b, name->value, MIN(name->len, (size_t)500));
	if (data && named)
		buf_adds(&b, " (");
	for (size_t at = 0; data && at < data->len && at < 500;) {
		size_t len = strnlen(data->value + at, data->len - at);

		buf_adds(&b, at ? ", " : "");
		escape_bytes(&b, data->value + at, len);
		at += len + 1;
	}
	if (data && named)
		buf_addch(&b, ')');
	copy = strdup((const char *)b.data);
	buf_release(&b);
	return copy;
}

/* KEY=NUMBER, perhaps with a unit behind it, or unit=TEXT. */
static bool is_number(const char *word, size_t len)
{
	const char *value = memchr(word, '=', len);
	char text[40], *end;

	if (len > 5 && !memcmp(word, "unit=", 5))
		return true;
	if (!value || len - (size_t)(value - word) > sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(len - (size_t)(value - word) - 1), value + 1);
	strtod(text, &end);
	return end > text && strlen(end) <= 4;
}

/* A mark of nothing but numbers. */
static bool is_numbers(const struct pairs *pairs)
{
	const struct pair *name = pairs_find(pairs, "name"), *data = pairs_find(pairs, "data");
	bool numbers = data && data->len && !(name && name->len);

	for (size_t at = 0; numbers && at < data->len;) {
		size_t len = strnlen(data->value + at, data->len - at);

		numbers = is_number(data->value + at, len);
		at += len + 1;
	}
	return numbers;
}

static int mark(struct gathering *g, const struct store_record *record)
{
	bool numbers = is_numbers(record->pairs);
	long at;

	if (numbers && g->m->nr_numbers >= MOMENTS_MOST) {
		g->m->left_out++;
		return 0;
	}
	at = run_event_add(g, false, told_at(g, record), "mark", mark_label(record->pairs));
	if (at >= 0) {
		g->m->event[at].numbers = numbers;
		g->m->nr_numbers += numbers;
		return told_data(record->pairs, &g->m->event[at].data);
	}
	return at == -ENOMEM ? -ENOMEM : 0;
}

/* ---- the recorder's ---- */

static int stopped(struct gathering *g, const struct store_record *record)
{
	size_t before = g->m->nr_events;
	int r = event_add(g, seconds(g, record->time_ns), "stopped", "stopped");

	g->stopped = g->m->nr_events > before ? g->m->nr_events : 0;
	return r;
}

static int continued(struct gathering *g, const struct store_record *record)
{
	if (g->stopped)
		g->m->event[g->stopped - 1].end_s = seconds(g, record->time_ns);
	g->stopped = 0;
	return 0;
}

/* What the recorder tells in words of its own. */
static int told(struct gathering *g, const struct store_record *record, const char *kind)
{
	struct buf words;
	int r;

	buf_init(&words, 8192);
	event_words(&words, record->kind, record->pairs);
	r = event_add(g, seconds(g, record->time_ns), kind, "%s", (const char *)words.data);
	buf_release(&words);
	return r;
}

/* Damage is met before the time at which the recording goes on is known: the next tick ends it. */
static int lost(struct gathering *g, const struct store_record *record)
{
	size_t before = g->m->nr_events;
	int r;

	if (g->lost)
		return 0;
	r = event_add(g, seconds(g, g->walk->has_last ? g->walk->last_ns : 0), "lost", "lost: %s",
		record->reason ? record->reason : "damaged");
	g->lost = g->m->nr_events > before ? g->m->nr_events : 0;
	return r;
}

/* The writer says why something is missing that the reader has met as lost. */
static int gap(struct gathering *g, const struct store_record *record)
{
	int64_t since = record->time_ns;
	struct run_event *event;
	char *label = NULL;
	int r = g->lost ? 0 : lost(g, record);

	if (r < 0 || !g->lost)
		return r;
	pairs_get_num(record->pairs, "since_ns", &since);
	event = &g->m->event[g->lost - 1];
	if (asprintf(&label, "not recorded: %s", gap_error_of(record->pairs)->what) < 0)
		return -ENOMEM;
	free(event->label);
	event->label = label;
	event->time_s = seconds(g, MIN(since, record->time_ns));
	return 0;
}

static int hear(struct gathering *g, const struct store_record *record)
{
	static const struct {
		const char *kind;
		int (*take)(struct gathering *g, const struct store_record *record);
	} row[] = {{"phase.begin", phase_begin}, {"phase.end", phase_end}, {"mark", mark},
		{"stopped", stopped}, {"continued", continued}, {"gap", gap}};
	/* As what they are shown. */
	static const char *const in_words[][2] = {{"signal", "signal"}, {"clock", "clock"},
		{"backoff", "backoff"}, {"turns", "backoff"}, {"marks.dropped", "lost"},
		{"marks.refused", "lost"}, {"marks.within", "left-out"}, {"numbers.dropped", "left-out"},
		{"watch.skipped", "left-out"}, {"watch.given-up", "left-out"}, {"watch.absent", "left-out"},
		{"watch.unmatched", "left-out"}};

	if (record->type == STORE_LOST)
		return lost(g, record);
	if (!strcmp(record->kind, "unavailable"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(record->kind, row[i].kind))
			return row[i].take(g, record);
	for (size_t i = 0; i < ARRAY_SIZE(in_words); i++)
		if (!strcmp(record->kind, in_words[i][0]))
			return told(g, record, in_words[i][1]);
	return told(g, record, record->kind);
}

/* ---- killed because memory ran out ---- */

/* A counter is read at ticks: the kill was when the process ended. */
static int event_kills(struct gathering *g, int64_t kills, const char *where)
{
	const struct victim *v = &g->victim;
	double at = v->any ? MIN(v->time_s, seconds(g, g->walk->time_ns)) : seconds(g, g->walk->time_ns);
	size_t before = g->m->nr_events;
	int r;

	if (kills == 1 && v->any && *v->name)
		r = event_add(g, at, "oom", "out of memory: %s (PID %lld) was killed in %s", v->name,
			(long long)v->pid, where);
	else if (kills == 1)
		r = event_add(g, at, "oom", "out of memory: a process was killed in %s", where);
	else
		r = event_add(g, at, "oom", "out of memory: %lld processes were killed in %s",
			(long long)kills, where);
	g->unnamed = !v->any && g->m->nr_events > before ? g->m->nr_events : 0;
	return r;
}

static bool is_sigkill(int64_t status)
{
	return status >= 0 && status <= 0xffff && WIFSIGNALED((int)status) &&
		WTERMSIG((int)status) == SIGKILL;
}

static void name_victim(struct gathering *g, const struct store_record *record, struct victim *ret)
{
	const struct occupant *in = walk_occupant(g->walk, record->set, record->row, record->id);
	char *name = in && in->name ? escaped(in->name, in->name_len) : NULL;

	if (!name)
		return;
	ret->pid = in->pid;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	free(name);
}

static void process_gone(struct gathering *g, const struct store_record *record)
{
	struct victim v = {.any = true, .time_s = seconds(g, record->time_ns)};
	int64_t status = -1;

	if ((int)record->set != g->walk->process_set || !pairs_get_num(record->pairs, "status", &status) ||
		!is_sigkill(status))
		return;
	pairs_get_num(record->pairs, "max_rss_kib", &v.kib);
	if (g->victim.any && v.kib < g->victim.kib)
		return;
	name_victim(g, record, &v);
	g->victim = v;
	if (g->unnamed && v.time_s < g->m->event[g->unnamed - 1].time_s + SAME_MOMENT_S)
		g->m->event[g->unnamed - 1].time_s = MIN(v.time_s, g->m->event[g->unnamed - 1].time_s);
	g->unnamed = 0;
}

static int event_group_kills(struct gathering *g, const struct counter_rise *kills)
{
	char *where = kills->name ? escaped(kills->name, kills->name_len) : strdup("a control group");
	int r = where ? event_kills(g, kills->by, where) : -ENOMEM;

	free(where);
	return r;
}

static int take_kills(struct gathering *g)
{
	struct tick_view view = walk_view(g->walk);
	struct counter_rise in_group;
	int64_t in_node;
	int r = kills_tick(&g->kills, &view, g->walk->time_ns, &in_group, &in_node);

	if (r >= 0 && in_group.by)
		r = event_group_kills(g, &in_group);
	if (r >= 0 && in_node)
		r = event_kills(g, in_node, "this node, outside the groups that are watched");
	return r;
}

/* ---- one recording ---- */

static void end_moments(struct gathering *g)
{
	const struct walk *s = g->walk;
	double end = seconds(g, s->in_tick ? s->time_ns : s->has_last ? s->last_ns : 0);

	for (unsigned i = 0; i < g->nr_open; i++) {
		struct run_event *phase = &g->m->phase[g->open[i].at];

		phase->end_s = MAX(end, phase->time_s);
	}
	if (g->lost)
		g->m->event[g->lost - 1].end_s = NAN; /* nothing came after it */
}

static int on_tick(struct gathering *g)
{
	int r;

	if (g->lost)
		g->m->event[g->lost - 1].end_s = seconds(g, g->walk->time_ns);
	g->lost = 0;
	g->observer.done |= seconds(g, g->walk->time_ns) > g->until_s;
	r = take_kills(g);
	g->victim = (struct victim){0};
	return r;
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct gathering *g = (struct gathering *)o;

	if (record->type == STORE_TICK)
		return on_tick(g);
	if (record->type == STORE_GONE)
		process_gone(g, record);
	return record->type == STORE_EVENT || record->type == STORE_LOST ? hear(g, record) : 0;
}

struct gathering *run_events_begin(struct run_events *m, struct walk *walk, uint32_t node, double offset_s)
{
	struct gathering *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct gathering){.m = m, .walk = walk, .node = node, .offset_s = offset_s, .until_s = NAN};
	kills_bind(&g->kills, walk->schema);
	g->observer.record = observe;
	return g;
}

struct gathering *run_events_end(struct gathering *g)
{
	if (!g)
		return NULL;
	end_moments(g);
	kills_release(&g->kills);
	free(g);
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct run_event *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s < y->time_s ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* ---- the run ---- */

void run_events_sort(struct run_events *m)
{
	if (m->nr_phases)
		qsort(m->phase, m->nr_phases, sizeof(*m->phase), by_time);
	if (m->nr_events)
		qsort(m->event, m->nr_events, sizeof(*m->event), by_time);
}

void run_event_release(struct run_event *e)
{
	free(e->kind);
	free(e->label);
	free(e->data);
}

static void list_free(struct run_event *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		run_event_release(&list[i]);
	free(list);
}

static void lists_free(struct run_events *m)
{
	list_free(m->phase, m->nr_phases);
	list_free(m->event, m->nr_events);
	*m = (struct run_events){0};
}

/* A group's counter may be told of after the node's: so much is read behind a range. */
#define BEHIND_S 20.0

struct run_events_reading {
	struct run_events *of; /* by recording */
	struct run_node *node;
	size_t nr;
	double from_s, to_s; /* NAN: from the start, to the end */
};

static int64_t needed_from(const struct walk *s, double from_s)
{
	if (!(from_s > 0) || from_s > 9e9 || !s->schema || !store_reader_restates(s->reader))
		return 0;
	return round_i64(from_s * 1e9);
}

static int guest_open(void *arg, uint32_t node, struct walk *s, struct walk_observer **ret)
{
	struct run_events_reading *r = arg;
	double offset_s = run_node_offset_s(&r->node[node]);
	struct gathering *g;

	lists_free(&r->of[node]);
	g = run_events_begin(&r->of[node], s, node, offset_s);
	if (!g)
		return -ENOMEM;
	g->observer.from_ns = needed_from(s, r->from_s - offset_s);
	g->until_s = r->to_s + BEHIND_S;
	*ret = &g->observer;
	return 0;
}

static int guest_close(void *arg, unsigned worker, struct walk_observer *o, int r)
{
	(void)arg;
	(void)worker;
	run_events_end((struct gathering *)o);
	return r;
}

int run_events_guest(const struct run *run, double from_s, double to_s, struct run_events_reading **ret,
	struct tour_guest *ret_guest, struct buf *reterr)
{
	struct run_events_reading *all = calloc(1, sizeof(*all));
	int r = all ? run_align(run, &all->node, reterr) : -ENOMEM;

	if (r >= 0) {
		all->nr = run->nr;
		all->from_s = from_s;
		all->to_s = to_s;
		all->of = calloc(run->nr + 1, sizeof(*all->of));
		r = all->of ? 0 : -ENOMEM;
	}
	if (r < 0) {
		run_events_reading_free(all);
		return r;
	}
	*ret_guest = (struct tour_guest){guest_open, guest_close, all};
	*ret = all;
	return 0;
}

/* Those of one recording go behind those of the ones before it, as far as there is room. */
static int list_take(struct run_event **list, size_t *nr, size_t most, struct run_event *from, size_t nr_from,
	size_t *left_out)
{
	size_t room = MIN(most - MIN(*nr, most), nr_from);
	struct run_event *more = reallocarray(*list, *nr + nr_from + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*list = more;
	for (size_t i = 0; i < nr_from; i++) {
		if (i < room)
			more[(*nr)++] = from[i];
		else {
			run_event_release(&from[i]);
			(*left_out)++;
		}
		from[i] = (struct run_event){0};
	}
	return 0;
}

int run_events_finish(struct run_events_reading *all, struct run_events **ret)
{
	struct run_events *m = calloc(1, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	for (size_t i = 0; i < all->nr && r >= 0; i++) {
		struct run_events *of = &all->of[i];

		m->left_out += of->left_out;
		r = list_take(&m->phase, &m->nr_phases, MOMENTS_MOST, of->phase, of->nr_phases, &m->left_out);
		if (r >= 0)
			r = list_take(&m->event, &m->nr_events, 2 * MOMENTS_MOST, of->event, of->nr_events,
				&m->left_out);
	}
	if (r < 0) {
		run_events_free(m);
		return r;
	}
	run_events_sort(m);
	*ret = m;
	return 0;
}

int run_events_read(const struct run *run, struct run_events **ret, struct buf *reterr)
{
	return run_events_read_range(run, NAN, NAN, ret, reterr);
}

int run_events_read_range(
	const struct run *run, double from_s, double to_s, struct run_events **ret, struct buf *reterr)
{
	struct run_events_reading *all = NULL;
	struct tour_guest guest;
	int r = run_events_guest(run, from_s, to_s, &all, &guest, reterr);

	if (r >= 0)
		r = tour(run, &guest, 1, NULL, NULL, reterr);
	if (r >= 0)
		r = run_events_finish(all, ret);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "cannot read: %s", strerror(-r));
	run_events_reading_free(all);
	return r;
}

struct run_events *run_events_free(struct run_events *m)
{
	if (!m)
		return NULL;
	lists_free(m);
	free(m);
	return NULL;
}

struct run_events_reading *run_events_reading_free(struct run_events_reading *all)
{
	if (!all)
		return NULL;
	for (size_t i = 0; all->of && i < all->nr; i++)
		lists_free(&all->of[i]);
	run_align_free(all->node, all->nr);
	free(all->of);
	free(all);
	return NULL;
}
