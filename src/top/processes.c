/* The table of processes: see processes.h. */
#include "top/processes.h"

#include "base/owned.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SORT_S 3.0    /* an order lasts at least so long */
#define DEPTH_MOST 60 /* deeper trees are drawn no deeper */

void processes_init(struct top_table *p)
{
	*p = (struct top_table){.tree = true, .by = BY_CPU, .sort_now = true, .full_commands = true};
}

void processes_release(struct top_table *p)
{
	free(p->line);
	free(p->shown);
	idmap_release(&p->tagged);
	idmap_release(&p->folded);
	idmap_release(&p->rank);
	process_table_free(p->all);
	*p = (struct top_table){0};
}

/* ---- lines ---- */

static double known_sum(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : a + b;
}

static void line_of(struct process_line *l, const struct top_process *p, double time_s)
{
	const double *v = p->value;
	const struct who *w = p->who;

	*l = (struct process_line){.id = w->id,
		.pid = w->pid,
		.ppid = w->ppid,
		.uid = w->uid,
		.name = w->name,
		.name_len = w->name_len,
		.command = w->command,
		.command_len = w->command_len,
		.user = w->user,
		.late = w->late,
		.status = -1,
		.estimated = !isnan(v[OF_PROCESS_PSS]) && v[OF_PROCESS_PSS] != v[OF_PROCESS_PSS_READ]};
	l->value[BY_PID] = (double)w->pid;
	l->value[BY_USER] = w->uid < 0 ? NAN : (double)w->uid;
	l->value[BY_STATE] = v[OF_PROCESS_STATE];
	l->value[BY_CPU] = v[OF_PROCESS_CORES];
	l->value[BY_TIME] = isnan(v[OF_PROCESS_TIME]) ? known_sum(v[OF_PROCESS_USER], v[OF_PROCESS_SYSTEM])
						      : v[OF_PROCESS_TIME];
	l->value[BY_MEMORY] = isnan(v[OF_PROCESS_PSS]) ? v[OF_PROCESS_RSS] : v[OF_PROCESS_PSS];
	l->value[BY_RSS] = v[OF_PROCESS_RSS];
	l->value[BY_USS] = v[OF_PROCESS_USS];
	l->value[BY_READ] = v[OF_PROCESS_READ];
	l->value[BY_WRITE] = v[OF_PROCESS_WRITE];
	l->value[BY_GPU] = v[OF_PROCESS_GPU];
	l->value[BY_GPU_MEMORY] = v[OF_PROCESS_GPU_MEMORY];
	l->value[BY_THREADS] = v[OF_PROCESS_THREADS];
	l->value[BY_AGE] = time_s - w->start_s;
	l->value[BY_COMMAND] = NAN;
}

/* The final account: amounts are totals, levels peaks. */
static void line_of_ended(struct process_line *l, const struct process_row *r)
{
	const double *v = r->value;

	*l = (struct process_line){.id = r->id,
		.pid = isnan(v[PROCESS_PID]) ? 0 : (int64_t)v[PROCESS_PID],
		.ppid = isnan(v[PROCESS_PPID]) ? 0 : (int64_t)v[PROCESS_PPID],
		.uid = isnan(v[PROCESS_UID]) ? -1 : (int64_t)v[PROCESS_UID],
		.name = r->name,
		.name_len = r->name_len,
		.command = r->command,
		.command_len = r->command_len,
		.late = r->late,
		.ended = true,
		.end_s = v[PROCESS_END],
		.status = r->status};
	for (unsigned i = 0; i < NR_BY; i++)
		l->value[i] = NAN;
	l->value[BY_PID] = v[PROCESS_PID];
	l->value[BY_USER] = v[PROCESS_UID];
	l->value[BY_TIME] = v[PROCESS_CPU];
	l->value[BY_MEMORY] = isnan(v[PROCESS_PSS]) ? v[PROCESS_RSS] : v[PROCESS_PSS];
	l->value[BY_RSS] = v[PROCESS_RSS];
	l->value[BY_USS] = v[PROCESS_USS];
	l->value[BY_READ] = v[PROCESS_READ_CHARS];
	l->value[BY_WRITE] = v[PROCESS_WRITE_CHARS];
	l->value[BY_THREADS] = v[PROCESS_THREADS];
	l->value[BY_AGE] = v[PROCESS_WALL];
}

static bool in_group(const struct process_row *r, const char *group)
{
	for (size_t at = 0; group && at < r->groups_len; at += strlen(r->groups + at) + 1)
		if (!strcmp(r->groups + at, group))
			return true;
	return !group;
}

int processes_set(
	struct top_table *p, const struct snapshot *now, double time_s, uint64_t groups, const char *group)
{
	uint32_t nr = now ? now->nr : 0, ended = 0;

	if (p->all)
		ended = (uint32_t)p->all->nr;
	if (ARRAY_ROOM(p->line, p->cap, nr + ended + 1) < 0)
		return -ENOMEM;
	p->nr = 0;
	for (uint32_t i = 0; i < nr; i++)
		if (!groups || now->process[i].groups & groups)
			line_of(&p->line[p->nr++], &now->process[i], time_s);
	for (uint32_t i = 0; i < ended; i++) {
		const struct process_row *r = &p->all->row[i];

		if (r->ended && r->value[PROCESS_END] <= time_s && in_group(r, group))
			line_of_ended(&p->line[p->nr++], r);
	}
	return 0;
}

/* ---- what is shown ---- */

static bool has_text(const char *bytes, size_t len, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; bytes && i + n <= len; i++) {
		size_t k = 0;

		while (k < n) {
			unsigned char c = (unsigned char)bytes[i + k], d = (unsigned char)text[k];

			c = c ? (c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c) : ' ';
			d = d >= 'A' && d <= 'Z' ? (unsigned char)(d + 32) : d;
			if (c != d)
				break;
			k++;
		}
		if (k == n)
			return true;
	}
	return false;
}

static bool matches(const struct process_line *l, const char *text)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%lld", (long long)l->pid);
	return has_text(l->command, l->command_len, text) || has_text(l->name, l->name_len, text) ||
		!strcmp(pid, text);
}

static bool is_wanted(const struct top_table *p, const struct process_line *l)
{
	char uid[24];

	if (*p->user) {
		snprintf(uid, sizeof(uid), "%lld", (long long)l->uid);
		if (strcmp(uid, p->user) && (!l->user || strcmp(l->user, p->user)))
			return false;
	}
	return !*p->filter || matches(l, p->filter);
}

/* ---- orders ---- */

static struct {
	const struct top_table *p;
} sorting;

static int by_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = a && b ? memcmp(a, b, MIN(a_len, b_len)) : 0;

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

static int by_value(const struct process_line *a, const struct process_line *b, enum process_order_by by)
{
	double x = a->value[by], y = b->value[by];
	bool small_first = by == BY_PID || by == BY_USER || by == BY_STATE;

	if (by == BY_COMMAND)
		return by_bytes(a->command_len ? a->command : a->name,
			a->command_len ? a->command_len : a->name_len, b->command_len ? b->command : b->name,
			b->command_len ? b->command_len : b->name_len);
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y); /* what is not known comes last */
	return x == y ? 0 : (x < y) == small_first ? -1 : 1;
}

static int compare(const void *left, const void *right)
{
	const struct top_table *p = sorting.p;
	const struct process_line *a = &p->line[*(const uint32_t *)left];
	const struct process_line *b = &p->line[*(const uint32_t *)right];
	bool by_rank = !p->sort_now;
	int r = 0;

	if (a->ended != b->ended && !p->tree)
		return a->ended ? 1 : -1;
	if (by_rank && (!p->tree || p->sorted)) {
		uint32_t x = idmap_get(&p->rank, a->id), y = idmap_get(&p->rank, b->id);

		r = (x > y) - (x < y); /* new ones behind */
		if (r)
			return r;
	}
	if (!p->tree || p->sorted) {
		r = by_value(a, b, p->by);
		if (r)
			return p->inverted ? -r : r;
	}
	/* In a tree the order never changes of itself: the older first. */
	if (p->tree && a->value[BY_AGE] + (a->ended ? 0 : 0) != b->value[BY_AGE] && !a->ended && !b->ended)
		return a->value[BY_AGE] > b->value[BY_AGE] ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* ---- trees ---- */

struct line_tree {
	struct top_table *p;
	uint32_t *order;	/* lines in their order */
	uint32_t *first, *next; /* index + 1 of the first child, of the next sibling */
	bool *wanted;
	uint32_t roots; /* index + 1 */
};

static void link_children(struct line_tree *t)
{
	struct top_table *p = t->p;
	struct idmap by_pid = {0};

	for (uint32_t i = 0; i < p->nr; i++) /* of one PID the living one */
		if (p->line[i].pid > 0 &&
			(!p->line[i].ended || idmap_get(&by_pid, (uint64_t)p->line[i].pid) == IDMAP_NONE))
			idmap_put(&by_pid, (uint64_t)p->line[i].pid, i);
	for (uint32_t k = p->nr; k--;) {
		uint32_t i = t->order[k];
		uint32_t parent =
			p->line[i].ppid > 0 ? idmap_get(&by_pid, (uint64_t)p->line[i].ppid) : IDMAP_NONE;
		uint32_t *list = &t->roots;

		if (parent != IDMAP_NONE && parent != i) {
			list = &t->first[parent];
			p->line[i].parent = parent + 1;
		}
		t->next[i] = *list;
		*list = i + 1;
	}
	idmap_release(&by_pid);
}

/* Its ancestors are shown with it. A circle of parents, which only a hostile recording has, ends. */
static void want_ancestors(struct line_tree *t)
{
	struct top_table *p = t->p;

	for (uint32_t i = 0; i < p->nr; i++) {
		uint32_t at = i;

		if (!is_wanted(p, &p->line[i]))
			continue;
		t->wanted[i] = true;
		for (unsigned n = 0; p->line[at].parent && n < 100000; n++) {
			at = p->line[at].parent - 1;
			if (t->wanted[at])
				break;
			t->wanted[at] = true;
			p->line[at].kin = true;
		}
	}
	for (uint32_t i = 0; i < p->nr; i++)
		if (t->wanted[i] && is_wanted(p, &p->line[i]))
			p->line[i].kin = false;
}

static bool shows(const struct line_tree *t, uint32_t from)
{
	for (uint32_t i = from; i; i = t->next[i - 1])
		if (t->wanted[i - 1])
			return true;
	return false;
}

/* Children behind their parents, without recursion: a tree may be as deep as there are processes. */
static void walk_tree(struct line_tree *t)
{
	struct top_table *p = t->p;
	uint32_t i = t->roots, depth = 0;
	uint64_t rails = 0;

	while (i && p->nr_shown < p->nr) {
		struct process_line *l = &p->line[i - 1];
		uint32_t next = t->next[i - 1];

		if (t->wanted[i - 1]) {
			l->depth = depth;
			l->rails = rails;
			l->last_child = !shows(t, next);
			l->has_children = shows(t, t->first[i - 1]);
			l->folded = idmap_get(&p->folded, l->id) != IDMAP_NONE;
			p->shown[p->nr_shown++] = i - 1;
			if (l->has_children && !l->folded) {
				if (!l->last_child && depth < DEPTH_MOST)
					rails |= UINT64_C(1) << depth;
				else if (depth < DEPTH_MOST)
					rails &= ~(UINT64_C(1) << depth);
				depth++;
				i = t->first[i - 1];
				continue;
			}
		}
		while (!next && p->line[i - 1].parent) {
			i = p->line[i - 1].parent;
			depth--;
			next = t->next[i - 1];
		}
		i = next;
	}
}

static int arrange_tree(struct top_table *p, uint32_t *order)
{
	struct line_tree t = {.p = p,
		.order = order,
		.first = calloc(p->nr + 1, sizeof(uint32_t)),
		.next = calloc(p->nr + 1, sizeof(uint32_t)),
		.wanted = calloc(p->nr + 1, sizeof(bool))};
	int r = t.first && t.next && t.wanted ? 0 : -ENOMEM;

	if (r >= 0) {
		link_children(&t);
		want_ancestors(&t);
		walk_tree(&t);
	}
	free(t.first);
	free(t.next);
	free(t.wanted);
	return r;
}

static void keep_ranks(struct top_table *p, const uint32_t *order, double time_s)
{
	idmap_clear(&p->rank);
	for (uint32_t i = 0; i < p->nr; i++)
		if (idmap_put(&p->rank, p->line[order[i]].id, i) < 0)
			break;
	p->sorted_s = time_s;
}

int processes_arrange(struct top_table *p, double time_s)
{
	uint32_t *order = malloc((p->nr + 1) * sizeof(*order));
	int r = order && ARRAY_ROOM(p->shown, p->cap_shown, p->nr + 1) >= 0 ? 0 : -ENOMEM;

	p->nr_shown = 0;
	if (r < 0) {
		free(order);
		return r;
	}
	p->sort_now |= fabs(time_s - p->sorted_s) >= SORT_S;
	for (uint32_t i = 0; i < p->nr; i++) {
		order[i] = i;
		p->line[i].parent = p->line[i].depth = 0;
		p->line[i].kin = p->line[i].folded = p->line[i].has_children = false;
	}
	sorting.p = p;
	qsort(order, p->nr, sizeof(*order), compare);
	if (p->sort_now)
		keep_ranks(p, order, time_s);
	p->sort_now = false;
	if (p->tree)
		r = arrange_tree(p, order);
	for (uint32_t i = 0; !p->tree && i < p->nr; i++)
		if (is_wanted(p, &p->line[order[i]]))
			p->shown[p->nr_shown++] = order[i];
	free(order);
	return r;
}

/* ---- by the user ---- */

uint32_t processes_find(const struct top_table *p, uint32_t id)
{
	for (uint32_t i = 0; i < p->nr_shown; i++)
		if (p->line[p->shown[i]].id == id)
			return i;
	return p->nr_shown;
}

uint32_t processes_search(const struct top_table *p, const char *text, uint32_t after)
{
	for (uint32_t k = 1; k <= p->nr_shown; k++) {
		uint32_t i = (after + k) % p->nr_shown;

		if (matches(&p->line[p->shown[i]], text))
			return i;
	}
	return p->nr_shown;
}

bool processes_is_tagged(const struct top_table *p, uint32_t id)
{
	return idmap_get(&p->tagged, id) != IDMAP_NONE;
}

void processes_tag(struct top_table *p, uint32_t id)
{
	if (processes_is_tagged(p, id))
		idmap_remove(&p->tagged, id);
	else
		idmap_put(&p->tagged, id, 1);
}

void processes_fold(struct top_table *p, uint32_t id, bool fold)
{
	if (fold)
		idmap_put(&p->folded, id, 1);
	else
		idmap_remove(&p->folded, id);
}
