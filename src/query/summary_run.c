/* What is told of a run as a whole beside its numbers: what its launcher says (run.json), which nodes are not
 * as expected, and how far their clocks can be trusted. */
#include "query/nodes.h"

#include "base/str.h"
#include "base/units.h"
#include "query/attendance.h"

#include <math.h>
#include <string.h>

#define CORRECTED_S 0.01 /* a correction from here on is named */
#define TOGETHER_S 60.0	 /* nodes of one run that begin farther apart have strange clocks */
#define CORRECTED_NAMED 3

static const struct summary *recording_of(const struct summary *s, size_t i)
{
	return s->nr_nodes ? &s->node[i] : s;
}

static double length_of(const struct summary *s)
{
	return has_figure(s, FIG_WALL) ? s->figure[FIG_WALL].value : NAN;
}

/* ---- what the launcher says ---- */

static int take_text(struct summary *s, enum text_id id, const char *text)
{
	if (s->text[id] || !*text)
		return 0;
	s->text[id] = strdup(text);
	return s->text[id] ? 0 : -ENOMEM;
}

static int take_about(struct summary *s, const struct run_about *about)
{
	int r = take_text(s, TEXT_JOB, about->text[ABOUT_JOB]);

	if (r >= 0)
		r = take_text(s, TEXT_SCHEDULER, about->text[ABOUT_SCHEDULER]);
	if (r < 0)
		return r;
	if (about->command_len) {
		char *command = malloc(about->command_len + 1);

		if (!command)
			return -ENOMEM;
		memcpy(command, about->command, about->command_len + 1);
		free(s->command);
		s->command = command;
		s->command_len = about->command_len;
	}
	if (about->exit_status < 0 || about->exit_status > 255)
		return 0;
	figure_set(s, FIG_EXIT_CODE, (double)about->exit_status);
	figure_unset(s, FIG_EXIT_SIGNAL, "");
	return 0;
}

static int take_attendance(struct summary *s, const struct run *run, const struct run_node *node)
{
	_cleanup_(freep) struct attendance_seen *seen = calloc(run->nr, sizeof(*seen));
	struct buf words;
	int r = seen ? 0 : -ENOMEM;

	for (size_t i = 0; i < run->nr && r >= 0; i++) {
		const struct summary *one = recording_of(s, i);

		seen[i] = (struct attendance_seen){.host = node[i].host,
			.path = run->path[i],
			.start_ns = node[i].start_ns,
			.length_s = length_of(one),
			.complete = one->complete};
	}
	if (r >= 0)
		r = attendance_take(run->about, seen, run->nr, &s->attendance);
	for (enum absence i = 0; i < NR_ABSENCES && r >= 0; i++) {
		buf_init(&words, 1 << 16);
		if (attendance_words(s->attendance, i, &words))
			r = summary_note(s, "%s", (char *)words.data);
		buf_release(&words);
	}
	return r;
}

/* ---- clocks ---- */

/* What a list of nodes names, and how many there are of it. */
struct naming {
	struct buf *out;
	size_t nr, most;
};

static bool names(struct naming *n)
{
	n->nr++;
	if (n->nr > n->most)
		return false;
	buf_adds(n->out, n->nr > 1 ? ", " : "");
	return true;
}

static void name_rest(const struct naming *n)
{
	if (n->nr > n->most)
		buf_addf(n->out, " and %zu more", n->nr - n->most);
}

static bool same_host(const struct run_node *a, const struct run_node *b)
{
	return !strcmp(a->host, b->host);
}

static double gained_s(const struct run_node *n, double length_s)
{
	return isnan(n->clock.drift_ppm) || isnan(length_s) ? 0 : n->clock.drift_ppm * 1e-6 * length_s;
}

struct correction {
	const struct run_node *node;
	double offset_s, gained_s; /* at its start, and from then on */
};

static double size_of(const struct correction *c)
{
	return MAX(fabs(c->offset_s), fabs(c->offset_s + c->gained_s));
}

static int larger_first(const void *a, const void *b)
{
	double x = size_of(a), y = size_of(b);

	if (x != y)
		return x > y ? -1 : 1;
	return str_order(
		((const struct correction *)a)->node->host, ((const struct correction *)b)->node->host);
}

/* Those that are worth a word, each node once. */
static size_t find_corrections(
	const struct summary *s, const struct run *run, const struct run_node *node, struct correction *ret)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->nr; i++) {
		struct correction c = {.node = &node[i],
			.offset_s = node[i].clock.offset_s,
			.gained_s = gained_s(&node[i], length_of(recording_of(s, i)))};

		if (node[i].clock.measured && size_of(&c) >= CORRECTED_S &&
			(!nr || !same_host(ret[nr - 1].node, &node[i])))
			ret[nr++] = c;
	}
	qsort(ret, nr, sizeof(*ret), larger_first);
	return nr;
}

static void name_corrections(struct buf *out, const struct correction *c, size_t nr)
{
	struct naming named = {.out = out, .most = CORRECTED_NAMED};
	char text[UNITS_SIZE];

	for (size_t i = 0; i < nr; i++) {
		if (!names(&named))
			continue;
		buf_addf(out, "%s corrected by %s", c[i].node->host,
			format_duration(text, fabs(c[i].offset_s)));
		if (fabs(c[i].gained_s) >= CORRECTED_S)
			buf_addf(out, " and %s ppm", format_number(text, c[i].node->clock.drift_ppm));
	}
	name_rest(&named);
}

/* "clocks within ±0.4 ms (node7 corrected by 5.2s and 50 ppm)" */
static int note_measured(struct summary *s, const struct run *run, const struct run_node *node)
{
	_cleanup_(freep) struct correction *correction = calloc(run->nr, sizeof(*correction));
	char text[UNITS_SIZE];
	struct buf list;
	double bound = 0;
	int r;

	if (!correction)
		return -ENOMEM;
	buf_init(&list, 1 << 16);
	for (size_t i = 0; i < run->nr; i++)
		if (node[i].clock.measured)
			bound = MAX(bound, node[i].clock.bound_s);
	name_corrections(&list, correction, find_corrections(s, run, node, correction));
	r = bound < 0.0995 ? summary_note(s, "clocks within ±%s ms%s%s%s", format_number(text, bound * 1e3),
				     list.len ? " (" : "", (char *)list.data, list.len ? ")" : "")
			   : summary_note(s, "clocks within ±%s%s%s%s", format_duration(text, bound),
				     list.len ? " (" : "", (char *)list.data, list.len ? ")" : "");
	buf_release(&list);
	return r;
}

/* Of a run in which others were measured. */
static int note_unmeasured(struct summary *s, const struct run *run, const struct run_node *node)
{
	struct buf list;
	struct naming named = {.out = &list, .most = NAMES_MOST};
	int r = 0;

	buf_init(&list, 1 << 16);
	for (size_t i = 0; i < run->nr; i++)
		if (!node[i].clock.measured && names(&named)) {
			buf_adds(&list, node[i].host);
			if (*node[i].clock_why)
				buf_addf(&list, " (its file in " RUN_CLOCK "/ %s)", node[i].clock_why);
		}
	name_rest(&named);
	if (named.nr)
		r = summary_note(s, "clocks that were not measured: %s", (char *)list.data);
	buf_release(&list);
	return r;
}

static const char *fact_of(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_hardware; i++)
		if (!strcmp(s->hardware[i].name, name))
			return s->hardware[i].value;
	return "";
}

static int note_unsynchronized(struct summary *s, const struct run *run, const struct run_node *node)
{
	struct buf list;
	struct naming named = {.out = &list, .most = NAMES_MOST};
	int r = 0;

	buf_init(&list, 1 << 16);
	for (size_t i = 0; i < run->nr; i++)
		if (!strcmp(fact_of(recording_of(s, i), "clock_synchronized"), "no") && names(&named))
			buf_adds(&list, node[i].host);
	name_rest(&named);
	if (named.nr)
		r = summary_note(s,
			"clocks were not measured, and not synchronized on %s: sums over nodes may be of "
			"different moments",
			(char *)list.data);
	buf_release(&list);
	return r;
}

/* Two recordings of one job: the first that began when another had ended, or far from the run's beginning. */
static int note_strange(struct summary *s, const struct run *run, const struct run_node *node)
{
	int64_t first_end = INT64_MAX, wanted = run->about ? run->about->start_ns : 0;
	size_t ended = 0;
	char text[UNITS_SIZE];

	for (size_t i = 0; i < run->nr; i++) {
		double length = length_of(recording_of(s, i));
		int64_t end =
			isnan(length) ? INT64_MAX : add_clamped(node[i].start_ns, round_i64(length * 1e9));

		if (node[i].start_ns > 0 && end < first_end) {
			first_end = end;
			ended = i;
		}
	}
	for (size_t i = 0; i < run->nr; i++) {
		double off = ((double)node[i].start_ns - (double)wanted) / 1e9;

		if (node[i].start_ns > 0 && wanted && fabs(off) > TOGETHER_S)
			return summary_note(s,
				"the clock of %s is strange: it began %s %s the run, and clocks were not "
				"measured",
				node[i].host, format_duration(text, fabs(off)), off < 0 ? "before" : "after");
		if (node[i].start_ns > first_end && !same_host(&node[i], &node[ended]))
			return summary_note(s,
				"%s began %s after %s had ended, and clocks were not measured: if they ran "
				"together, sums over nodes are wrong",
				node[i].host,
				format_duration(text, ((double)node[i].start_ns - (double)first_end) / 1e9),
				node[ended].host);
	}
	return 0;
}

/* They are of one batch job or of one run, on several machines. */
static bool belong_together(const struct run *run, const struct run_node *node)
{
	bool several = false, one = true;

	for (size_t i = 1; i < run->nr; i++) {
		several |= !same_host(&node[0], &node[i]);
		one &= *node[i].job && !strcmp(node[0].job, node[i].job);
	}
	return several && (one || run->about);
}

static int judge_clocks(struct summary *s, const struct run *run, const struct run_node *node)
{
	size_t measured = 0;
	int r = 0;

	for (size_t i = 0; i < run->nr; i++) {
		struct summary *one = s->nr_nodes ? &s->node[i] : s;

		one->clock = node[i].clock;
		measured += node[i].clock.measured;
	}
	if (measured)
		r = note_measured(s, run, node);
	if (r >= 0 && measured)
		return note_unmeasured(s, run, node);
	if (r < 0 || !belong_together(run, node))
		return r;
	r = note_strange(s, run, node);
	return r < 0 ? r : note_unsynchronized(s, run, node);
}

int summary_of_run(struct summary *s, const struct run *run, const struct run_node *node)
{
	int r = 0;

	if (run->about) {
		r = take_about(s, run->about);
		if (r >= 0)
			r = take_attendance(s, run, node);
	}
	return r < 0 ? r : judge_clocks(s, run, node);
}
