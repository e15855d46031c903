/* Compares the nodes that were expected with the recordings that there are: see attendance.h. */
#include "query/attendance.h"

#include "base/idmap.h"
#include "base/owned.h"
#include "base/str.h"
#include "base/units.h"
#include "query/run.h"

#include <math.h>
#include <string.h>

#define LATE_S 5.0
#define EARLY_S 10.0

/* A node: all recordings of it. */
struct node_seen {
	int64_t start_ns, end_ns; /* INT64_MAX, INT64_MIN: not known */
	bool seen, complete, writing;
};

struct attendance_taking {
	const struct run_about *about;
	struct node_seen *node;	   /* as about->node */
	struct idmap by_name, why; /* why: numbers of about->missing */
	int64_t last_ns;	   /* when the last of them ended */
};

/* "node3.cluster.org" is node3. */
static size_t short_length(const char *host)
{
	return strcspn(host, ".");
}

static uint32_t find_name(const struct attendance_taking *t, const char *name, size_t len)
{
	return idmap_get(&t->by_name, hash_bytes(name, len));
}

/* By its file, HOST.tacho or HOST-2.tacho, or by what it calls itself. */
static uint32_t find_node(const struct attendance_taking *t, const struct attendance_seen *s)
{
	const char *slash = strrchr(s->path, '/'), *file = slash ? slash + 1 : s->path;
	size_t len = strlen(file), number;
	uint32_t at;

	len -= run_has_suffix(file) ? strlen(RECORDING_SUFFIX) : 0;
	at = find_name(t, file, len);
	for (number = len; number && file[number - 1] >= '0' && file[number - 1] <= '9';)
		number--;
	if (at == IDMAP_NONE && number > 1 && number < len && file[number - 1] == '-')
		at = find_name(t, file, number - 1);
	if (at == IDMAP_NONE)
		at = find_name(t, s->host, strlen(s->host));
	return at == IDMAP_NONE ? find_name(t, s->host, short_length(s->host)) : at;
}

static int take_expected(struct attendance_taking *t)
{
	int r = 0;

	for (size_t i = 0; i < t->about->nr_missing && r >= 0; i++)
		r = idmap_put(&t->why,
			hash_bytes(t->about->missing[i].node, strlen(t->about->missing[i].node)),
			(uint32_t)i);
	for (size_t i = 0; i < t->about->nr_nodes && r >= 0; i++) {
		const char *name = t->about->node[i];
		size_t brief = short_length(name);

		t->node[i] = (struct node_seen){.start_ns = INT64_MAX, .end_ns = INT64_MIN};
		r = idmap_put(&t->by_name, hash_bytes(name, strlen(name)), (uint32_t)i);
		if (r >= 0 && name[brief] && find_name(t, name, brief) == IDMAP_NONE)
			r = idmap_put(&t->by_name, hash_bytes(name, brief), (uint32_t)i);
	}
	return r < 0 ? -ENOMEM : 0;
}

static void take_seen(struct attendance_taking *t, const struct attendance_seen *s)
{
	uint32_t at = find_node(t, s);
	int64_t end = s->start_ns > 0 && !isnan(s->length_s)
		? add_clamped(s->start_ns, round_i64(s->length_s * 1e9))
		: INT64_MIN;
	struct node_seen *n;

	t->last_ns = MAX(t->last_ns, end);
	if (at == IDMAP_NONE)
		return;
	n = &t->node[at];
	n->seen = true;
	n->start_ns = s->start_ns > 0 ? MIN(n->start_ns, s->start_ns) : n->start_ns;
	if (end >= n->end_ns) { /* the last recorder of the node tells of its end */
		n->complete = s->complete;
		n->writing = s->writing;
	}
	n->end_ns = MAX(n->end_ns, end);
}

static int add(struct attendance *a, enum absence what, const char *node, const char *why, double seconds)
{
	struct absent_node *more = ARRAY_ADD(a->absent[what], a->nr[what]);

	if (!more)
		return -ENOMEM;
	*more = (struct absent_node){
		.node = strdup(node), .why = why ? strdup(why) : NULL, .seconds = seconds};
	return more->node && (!why || more->why) ? 0 : -ENOMEM;
}

static const char *why_missing(const struct attendance_taking *t, const char *node)
{
	uint32_t at = idmap_get(&t->why, hash_bytes(node, strlen(node)));

	return at == IDMAP_NONE ? "" : t->about->missing[at].why;
}

static double seconds_between(int64_t from, int64_t to)
{
	return ((double)to - (double)from) / 1e9;
}

/* Without an end mark it has ended early when the run is over, or when others went on without it. */
static int judge_end(struct attendance *a, const struct attendance_taking *t, size_t i)
{
	const struct node_seen *n = &t->node[i];
	bool known = n->end_ns != INT64_MIN && t->last_ns != INT64_MIN;
	double before = known ? seconds_between(n->end_ns, t->last_ns) : NAN;
	bool cut = !n->complete && t->about->end_ns && !n->writing;
	const char *why = why_missing(t, t->about->node[i]);

	if (!cut && !(before > EARLY_S))
		return 0;
	if (!*why && !n->complete)
		why = "its recording has no end mark";
	return add(a, NODES_EARLY, t->about->node[i], why, before > EARLY_S ? before : NAN);
}

static int judge(struct attendance *a, const struct attendance_taking *t, size_t i)
{
	const char *name = t->about->node[i];
	const struct node_seen *n = &t->node[i];
	double after;
	int r = 0;

	if (!n->seen)
		return add(a, NODES_MISSING, name, why_missing(t, name), NAN);
	after = t->about->start_ns && n->start_ns != INT64_MAX
		? seconds_between(t->about->start_ns, n->start_ns)
		: NAN;
	if (after > LATE_S)
		r = add(a, NODES_LATE, name, NULL, after);
	return r < 0 ? r : judge_end(a, t, i);
}

static int by_name(const void *a, const void *b)
{
	return str_order(((const struct absent_node *)a)->node, ((const struct absent_node *)b)->node);
}

int attendance_take(
	const struct run_about *about, const struct attendance_seen *seen, size_t nr, struct attendance **ret)
{
	struct attendance_taking t = {.about = about, .last_ns = INT64_MIN};
	struct attendance *a;
	int r;

	*ret = NULL;
	if (!about || !about->nr_nodes)
		return 0;
	a = calloc(1, sizeof(*a));
	t.node = calloc(about->nr_nodes, sizeof(*t.node));
	r = a && t.node ? take_expected(&t) : -ENOMEM;
	for (size_t i = 0; i < nr && r >= 0; i++)
		take_seen(&t, &seen[i]);
	for (size_t i = 0; i < about->nr_nodes && r >= 0; i++)
		r = judge(a, &t, i);
	free(t.node);
	idmap_release(&t.by_name);
	idmap_release(&t.why);
	if (r < 0) {
		attendance_free(a);
		return r;
	}
	a->expected = about->nr_nodes;
	for (unsigned i = 0; i < NR_ABSENCES; i++)
		if (a->nr[i])
			qsort(a->absent[i], a->nr[i], sizeof(*a->absent[i]), by_name);
	*ret = a;
	return 0;
}

struct attendance *attendance_free(struct attendance *a)
{
	for (unsigned k = 0; a && k < NR_ABSENCES; k++) {
		for (size_t i = 0; i < a->nr[k]; i++) {
			free(a->absent[k][i].node);
			free(a->absent[k][i].why);
		}
		free(a->absent[k]);
	}
	free(a);
	return NULL;
}

/* ---- words ---- */

static void add_one(struct buf *out, enum absence what, const struct absent_node *n)
{
	char text[UNITS_SIZE];

	buf_adds(out, n->node);
	if (what == NODES_LATE) {
		buf_addf(out, " after %s", format_duration(text, n->seconds));
		return;
	}
	if (!isnan(n->seconds))
		buf_addf(out, " %s before the last", format_duration(text, n->seconds));
	if (*n->why)
		buf_addf(out, " (%s)", n->why);
}

bool attendance_words(const struct attendance *a, enum absence what, struct buf *out)
{
	static const char *const word[NR_ABSENCES][2] = {
		{"is missing", "are missing"}, {"began late", "began late"}, {"ended early", "ended early"}};
	char number[UNITS_SIZE], all[UNITS_SIZE];
	size_t nr = a ? a->nr[what] : 0;

	if (!nr)
		return false;
	buf_addf(out, "%s of %s node%s %s: ", format_count(number, (double)nr),
		format_count(all, (double)a->expected), a->expected == 1 ? "" : "s", word[what][nr > 1]);
	for (size_t i = 0; i < MIN(nr, (size_t)NAMES_MOST); i++) {
		buf_adds(out, i ? ", " : "");
		add_one(out, what, &a->absent[what][i]);
	}
	if (nr > NAMES_MOST)
		buf_addf(out, " and %s more", format_count(number, (double)(nr - NAMES_MOST)));
	return true;
}
