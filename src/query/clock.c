/* From exchanges to a correction: see clock.h.
 *
 * An exchange says: at time T of the launcher the node's clock was ahead by O, within B. The node's time
 * minus the offset is the launcher's; between two exchanges the offset goes in a straight line, so that drift
 * is corrected as well. Of many exchanges the best of each stretch of time is taken, and of these only as
 * many bends as are needed to stay within the bounds: a slow answer does not bend the line.
 *
 * Times of a recording are those of its monotonic clock, counted from what its wall clock showed at the
 * start. A step of the wall clock (by hand, or by the daemon that sets it) changes what is measured and not
 * these times: from one exchange to the next an offset cannot change by more than STEP_RATE of the time
 * between them in another way, and what is more is taken out.
 *
 * Beyond the first and the last exchange the drift goes on where it is known: where the offset has changed by
 * more than the bounds. Else the offset stays as it is. */
#include "query/clock.h"

#include "base/json_read.h"
#include "base/owned.h"
#include "base/str.h"
#include "base/whole_file.h"
#include "query/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILE_MOST ((size_t)16 << 20)
#define LINE_MOST 4096
#define STRETCHES 256
#define BURST_NS (2 * NSEC_PER_SEC) /* in so little time no clock drifts by more than answers differ */
#define WORST_TIMES 10
#define WORST_NS NSEC_PER_MSEC
#define STEP_RATE 0.01
#define STEP_LEAST_NS 1e6
#define KNOT_RATE 0.05			       /* between two bends: more is an error of measurement */
#define BOUND_MOST_NS (60 * NSEC_PER_SEC)      /* an exchange that took longer says nothing */
#define TIME_MOST INT64_C(4000000000000000000) /* sums of two fit */
#define DRIFT_KNOWN 1e-5

/* Values of pairs that are times. */
static const char *const instant[] = {"end_ns", "start_ns", "sent_ns", "since_ns"};
#define NUMBER_SIZE 24

struct exchange {
	int64_t run_ns, offset_ns, bound_ns;
};

struct node_clock {
	struct exchange *exchange; /* by time; when the start is known, the bends */
	size_t nr;
	bool begun;
	int64_t own_start_ns, start_ns; /* of the recording, by its clock and by that of the run */
	struct clock_found found;
	struct pairs pairs; /* of the last record that had times in them */
	struct pair pair[PAIRS_MAX];
	char number[(ARRAY_SIZE(instant) + 1) * NUMBER_SIZE];
};

/* ---- the file ---- */

char *clock_path(const char *recording)
{
	_cleanup_(freep) char *whole = strchr(recording, '/') ? strdup(recording) : realpath(recording, NULL);
	char *name = whole ? strrchr(whole, '/') : NULL, *path = NULL;
	size_t dir, n;

	if (!name)
		return NULL;
	*name++ = 0;
	dir = strlen(whole);
	n = strlen(name);
	if (dir < strlen(RUN_NODES) || strcmp(whole + dir - strlen(RUN_NODES), RUN_NODES) ||
		(dir > strlen(RUN_NODES) && whole[dir - strlen(RUN_NODES) - 1] != '/') ||
		!run_has_suffix(name))
		return NULL;
	dir -= strlen(RUN_NODES);
	n -= strlen(RECORDING_SUFFIX);
	return asprintf(&path, "%.*s%s/%.*s.jsonl", (int)dir, whole, RUN_CLOCK, (int)n, name) < 0 ? NULL
												  : path;
}

struct exchange_reading {
	struct exchange e;
	unsigned seen;
};

static int take_leaf(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct exchange_reading *x = arg;
	const struct {
		const char *name;
		int64_t *to;
	} number[] = {
		{"launcher_ns", &x->e.run_ns}, {"offset_ns", &x->e.offset_ns}, {"bound_ns", &x->e.bound_ns}};

	for (unsigned i = 0; i < ARRAY_SIZE(number); i++)
		if (leaf == LEAF_NUMBER && !strcmp(path, number[i].name) &&
			parse_i64n(text, len, number[i].to))
			x->seen |= 1U << i;
	return 0;
}

static bool is_sound(const struct exchange_reading *x)
{
	return x->seen == 7 && x->e.run_ns > 0 && x->e.run_ns < TIME_MOST && x->e.offset_ns > -TIME_MOST &&
		x->e.offset_ns < TIME_MOST && x->e.bound_ns >= 0 && x->e.bound_ns <= BOUND_MOST_NS;
}

/* Lines that say nothing are passed over: the last may be in the course of being written. */
static int take_lines(struct node_clock *c, const char *text, size_t len)
{
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		struct exchange_reading x = {0};
		struct exchange *more;
		int r = end && n <= LINE_MOST ? json_read(text, n, take_leaf, &x) : -EBADMSG;

		if (r == -ENOMEM)
			return r;
		if (r >= 0 && is_sound(&x)) {
			more = ARRAY_ADD(c->exchange, c->nr);
			if (!more)
				return -ENOMEM;
			*more = x.e;
		}
		text += MIN(n + 1, len);
		len -= MIN(n + 1, len);
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct exchange *x = a, *y = b;

	if (x->run_ns != y->run_ns)
		return x->run_ns < y->run_ns ? -1 : 1;
	return (x->bound_ns > y->bound_ns) - (x->bound_ns < y->bound_ns);
}

/* HOST-2.tacho is of a second recorder of HOST. */
static int read_of(const char *recording, char **ret, size_t *ret_len)
{
	_cleanup_(freep) char *path = clock_path(recording);
	char *dash;
	int r = path ? file_read(path, FILE_MOST, ret, ret_len) : -ENOENT;

	dash = path ? strrchr(path, '-') : NULL;
	if (r != -ENOENT || !dash || !dash[1] || strcmp(dash + 1 + strspn(dash + 1, "0123456789"), ".jsonl"))
		return r;
	memcpy(dash, ".jsonl", sizeof(".jsonl"));
	return file_read(path, FILE_MOST, ret, ret_len);
}

int clock_open(const char *recording, struct node_clock **ret, struct buf *why)
{
	_cleanup_(freep) char *text = NULL;
	struct node_clock *c;
	size_t len = 0;
	int r = read_of(recording, &text, &len);

	*ret = NULL;
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0) {
		if (why)
			file_read_why(why, r);
		return r == -ENOMEM ? r : 0;
	}
	c = calloc(1, sizeof(*c));
	r = c ? take_lines(c, text, len) : -ENOMEM;
	if (r < 0 || !c->nr) {
		if (r >= 0 && why)
			buf_adds(why, "has no measurements in it");
		clock_close(c);
		return r;
	}
	qsort(c->exchange, c->nr, sizeof(*c->exchange), by_time);
	*ret = c;
	return 0;
}

struct node_clock *clock_close(struct node_clock *c)
{
	if (c)
		free(c->exchange);
	free(c);
	return NULL;
}

/* ---- the line ---- */

static double ns_between(int64_t from, int64_t to)
{
	return (double)to - (double)from; /* exact enough: what is far apart */
}

/* Exact where both are near each other. */
static double difference(int64_t a, int64_t b)
{
	int64_t d;

	return __builtin_sub_overflow(a, b, &d) ? ns_between(b, a) : (double)d;
}

static int64_t node_time(const struct exchange *e)
{
	return e->run_ns + e->offset_ns;
}

static bool is_step(const struct exchange *a, const struct exchange *b)
{
	double change = difference(b->offset_ns, a->offset_ns), time = difference(b->run_ns, a->run_ns);

	return fabs(change) > time * STEP_RATE + (double)(a->bound_ns + b->bound_ns) + STEP_LEAST_NS;
}

/* All as the clock would have gone without steps since the start of the recording. */
static void take_out_steps(struct node_clock *c)
{
	struct exchange before;
	size_t at = 0, first;
	int64_t taken = 0;

	while (at + 1 < c->nr && node_time(&c->exchange[at + 1]) <= c->own_start_ns)
		at++;
	for (first = at; first && !is_step(&c->exchange[first - 1], &c->exchange[first]);)
		first--;
	before = c->exchange[at];
	for (size_t i = at + 1; i < c->nr; i++) {
		struct exchange now = c->exchange[i];

		if (is_step(&before, &now))
			taken = add_clamped(taken, add_clamped(now.offset_ns, -before.offset_ns));
		c->exchange[i].offset_ns = add_clamped(now.offset_ns, taken == INT64_MIN ? 0 : -taken);
		before = now;
	}
	for (at = 0; first < c->nr; first++) /* numbers of hostile files may be anything */
		if (c->exchange[first].offset_ns > -TIME_MOST && c->exchange[first].offset_ns < TIME_MOST)
			c->exchange[at++] = c->exchange[first];
	c->nr = at;
}

/* Of each stretch of time the exchange that knows best. */
static void take_best(struct node_clock *c)
{
	int64_t first = c->exchange[0].run_ns, span = c->exchange[c->nr - 1].run_ns - first;
	int64_t step = MAX(span / STRETCHES + 1, BURST_NS), last = -1;
	size_t nr = 0;

	for (size_t i = 0; i < c->nr; i++) {
		int64_t stretch = (c->exchange[i].run_ns - first) / step;

		if (stretch != last)
			c->exchange[nr++] = c->exchange[i];
		else if (c->exchange[i].bound_ns < c->exchange[nr - 1].bound_ns)
			c->exchange[nr - 1] = c->exchange[i];
		last = stretch;
	}
	c->nr = nr;
}

/* Those that know much less than the best say nothing beside it: an answer was late while the job started. */
static void drop_worst(struct node_clock *c)
{
	int64_t least = INT64_MAX, most;
	size_t nr = 0;

	for (size_t i = 0; i < c->nr; i++)
		least = MIN(least, c->exchange[i].bound_ns);
	most = MAX(least * WORST_TIMES, WORST_NS);
	for (size_t i = 0; i < c->nr; i++)
		if (c->exchange[i].bound_ns <= most)
			c->exchange[nr++] = c->exchange[i];
	c->nr = nr;
}

/* The clocks are the same as far as can be seen: what was measured is the error of the measurement. */
static void leave_same(struct node_clock *c)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->exchange[i].offset_ns > c->exchange[i].bound_ns ||
			c->exchange[i].offset_ns < -c->exchange[i].bound_ns)
			return;
	for (size_t i = 0; i < c->nr; i++) {
		struct exchange *e = &c->exchange[i];

		e->bound_ns += e->offset_ns < 0 ? -e->offset_ns : e->offset_ns;
		e->offset_ns = 0;
	}
}

/* How far the exchange is from the line between two others. */
static double distance(const struct exchange *e, const struct exchange *from, const struct exchange *to)
{
	double span = difference(to->run_ns, from->run_ns);
	double share = span > 0 ? difference(e->run_ns, from->run_ns) / span : 0;

	return fabs(difference(e->offset_ns, from->offset_ns) -
		share * difference(to->offset_ns, from->offset_ns));
}

/* Marks the bends between two that are marked: the exchange that is farthest beyond its bound, and so on. */
static void find_bends(const struct node_clock *c, size_t from, size_t to, bool bend[static STRETCHES + 1])
{
	double most = 0;
	size_t at = 0;

	for (size_t i = from + 1; i < to; i++) {
		const struct exchange *e = &c->exchange[i];
		double beyond = distance(e, &c->exchange[from], &c->exchange[to]) - (double)e->bound_ns;

		if (beyond > most) {
			most = beyond;
			at = i;
		}
	}
	if (!at)
		return;
	bend[at] = true;
	find_bends(c, from, at, bend);
	find_bends(c, at, to, bend);
}

static bool is_too_steep(const struct exchange *a, const struct exchange *b)
{
	return fabs(difference(b->offset_ns, a->offset_ns)) > KNOT_RATE * difference(b->run_ns, a->run_ns);
}

/* Keeps the bends alone, and notes how far the line is from what was measured. */
static void keep_bends(struct node_clock *c)
{
	bool bend[STRETCHES + 1] = {[0] = true};
	double bound = (double)c->exchange[0].bound_ns;
	size_t nr = 0, from = 0;

	bend[c->nr - 1] = true;
	find_bends(c, 0, c->nr - 1, bend);
	for (size_t i = 1; i < c->nr; i++) {
		if (!bend[i])
			continue;
		for (size_t k = from + 1; k <= i; k++)
			bound = MAX(bound,
				distance(&c->exchange[k], &c->exchange[from], &c->exchange[i]) +
					(double)c->exchange[k].bound_ns);
		from = i;
	}
	for (size_t i = 0; i < c->nr; i++)
		if (bend[i] && (!nr || !is_too_steep(&c->exchange[nr - 1], &c->exchange[i])))
			c->exchange[nr++] = c->exchange[i];
	c->nr = nr;
	c->found.bound_s = bound / 1e9;
}

static bool is_known_drift(const struct exchange *a, const struct exchange *b)
{
	return fabs(difference(b->offset_ns, a->offset_ns)) > (double)(a->bound_ns + b->bound_ns);
}

/* What the node's clock was ahead at this time of its own. */
static double offset_at(const struct node_clock *c, int64_t node_ns)
{
	const struct exchange *from = c->exchange, *to = &c->exchange[c->nr - 1];
	size_t low = 0, high = c->nr - 1;
	double span, share;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		*(node_time(&c->exchange[middle]) <= node_ns ? &low : &high) = middle;
	}
	if (c->nr > 1) {
		from = &c->exchange[low];
		to = &c->exchange[high];
	}
	span = difference(node_time(to), node_time(from));
	share = span > 0 ? difference(node_ns, node_time(from)) / span : 0;
	if ((share < 0 || share > 1) && !is_known_drift(from, to))
		share = share < 0 ? 0 : 1;
	return (double)from->offset_ns + share * difference(to->offset_ns, from->offset_ns);
}

static int64_t to_run(const struct node_clock *c, int64_t node_ns)
{
	int64_t offset = round_i64(offset_at(c, node_ns));

	return add_clamped(node_ns, offset == INT64_MIN ? INT64_MAX : -offset);
}

static void judge(struct node_clock *c)
{
	const struct exchange *first = c->exchange, *last = &c->exchange[c->nr - 1];
	double span = difference(last->run_ns, first->run_ns);
	bool known = span > 0 &&
		((double)(first->bound_ns + last->bound_ns) < span * DRIFT_KNOWN ||
			is_known_drift(first, last));

	c->found.measured = true;
	c->found.drift_ppm = known ? difference(last->offset_ns, first->offset_ns) / span * 1e6 : NAN;
	c->found.offset_s = offset_at(c, c->own_start_ns) / 1e9;
}

static void begin(struct node_clock *c, int64_t own_start_ns)
{
	c->own_start_ns = MIN(MAX(own_start_ns, -TIME_MOST), TIME_MOST);
	take_out_steps(c);
	take_best(c);
	drop_worst(c);
	leave_same(c);
	keep_bends(c);
	c->start_ns = MAX(to_run(c, c->own_start_ns), -INT64_MAX);
	c->begun = true;
	judge(c);
}

/* ---- use ---- */

int64_t clock_time(const struct node_clock *c, int64_t time_ns)
{
	if (!c || !c->begun)
		return time_ns;
	return add_clamped(to_run(c, add_clamped(c->own_start_ns, time_ns)), -c->start_ns);
}

int64_t clock_time_back(const struct node_clock *c, int64_t time_ns)
{
	int64_t back = time_ns;

	/* Offsets change slowly, so that the second guess is right within a microsecond. */
	for (unsigned i = 0; c && c->begun && i < 3; i++)
		back = add_clamped(back, add_clamped(time_ns, -MAX(clock_time(c, back), -INT64_MAX)));
	return back;
}

int64_t clock_own_start(const struct node_clock *c, int64_t start_wall_ns)
{
	return c && c->begun ? c->own_start_ns : start_wall_ns;
}

struct clock_found clock_found(const struct node_clock *c)
{
	return c && c->begun ? c->found : (struct clock_found){.drift_ppm = NAN};
}

static bool is_instant(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(instant); i++)
		if (!strcmp(key, instant[i]))
			return true;
	return false;
}

const struct pairs *clock_pairs(struct node_clock *c, const struct pairs *pairs)
{
	bool changed = false;
	int64_t value;

	if (!c || !pairs)
		return pairs;
	if (!c->begun && pairs_get_num(pairs, "start_wall_ns", &value) && value > 0)
		begin(c, value);
	if (!c->begun)
		return pairs;
	pairs_init(&c->pairs, c->pair, ARRAY_SIZE(c->pair), c->number, sizeof(c->number));
	for (uint32_t i = 0; i < pairs->nr; i++) {
		const struct pair *p = &pairs->pair[i];
		bool start = !strcmp(p->key, "start_wall_ns");

		if ((start || is_instant(p->key)) && parse_i64n(p->value, p->len, &value) &&
			!c->pairs.text.err) {
			pairs_num(&c->pairs, p->key, start ? c->start_ns : clock_time(c, value));
			changed = true;
		} else {
			pairs_add(&c->pairs, p->key, p->value, p->len);
		}
	}
	return changed && !c->pairs.text.err ? &c->pairs : pairs;
}

void clock_record(struct node_clock *c, struct store_record *record)
{
	if (!c)
		return;
	record->pairs = clock_pairs(c, record->pairs);
	record->time_ns = clock_time(c, record->time_ns);
}
