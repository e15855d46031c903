/* The finding that matters most, for the summary in the terminal.
 *
 * It is the first one of the report: the same rules, the same evidence. The summary is read together with the
 * table of processes, and the curves that the rules ask for in a second pass; no panel, no statistics. A run
 * of a few seconds, in which no process was killed for lack of memory, has none and is read once. Of a large
 * recording only what the summary shows is looked at, so that the summary never waits for long. */
#include "analysis/top_finding.h"

#include "analysis/finding.h"
#include "analysis/rule.h"
#include "base/str.h"

#include <string.h>
#include <sys/stat.h>

/* Bytes of recordings that are read a second time: some ten thousand ticks of a job of a few processes, a
 * tenth of a second. */
#define SECOND_PASS_MOST (2 << 20)
/* Of each curve: rules need no more, and a long run is reduced. */
#define POINTS 1000

static bool is_small(const struct run *run)
{
	off_t sum = 0;

	for (size_t i = 0; i < run->nr; i++) {
		struct stat st;

		if (stat(run->path[i], &st) == 0)
			sum += st.st_size;
	}
	return sum <= SECOND_PASS_MOST;
}

static bool may_show_something(const struct summary *s)
{
	return figure_of(s, FIG_WALL) >= USE_LEAST_S || figure_of(s, FIG_OOM_KILLS) > 0 ||
		figure_of(s, FIG_EXIT_SIGNAL) == 9;
}

/* How it ended and how many cores it used stand in the summary's own lines; that all is well is not worth
 * one. */
static bool is_worth_a_line(const struct finding *f)
{
	static const char *const told[] = {"failed", "signal", "killed"};

	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		if (!strcmp(f->id, told[i]))
			return false;
	if (!strcmp(f->id, "unused-cores") && f->weight < FINDING_WARNING)
		return false;
	return f->weight > FINDING_FINE && f->title;
}

/* "Out of memory: …" is also what the alarm says; it has the name of the process and the limit, which the
 * kernel's counter does not tell. */
static int name_alarm(struct summary *s, const struct finding *oom)
{
	static const char counted[] = "out of memory: the kernel killed ";

	for (size_t i = 0; i < s->nr_alarms; i++) {
		char *text;

		if (strncmp(s->note[i], counted, strlen(counted)) != 0)
			continue;
		text = strdup(oom->title);
		if (!text)
			return -ENOMEM;
		*text = 'o';
		free(s->note[i]);
		s->note[i] = text;
		return 0;
	}
	return 0;
}

static int choose(struct summary *s, const struct findings *f, char **ret)
{
	int r = 0;

	for (size_t i = 0; i < f->nr && r >= 0; i++)
		if (!strcmp(f->item[i].id, "oom") && f->item[i].evidence && f->item[i].title)
			r = name_alarm(s, &f->item[i]);
	for (size_t i = 0; i < f->nr && r >= 0 && !*ret; i++)
		if (is_worth_a_line(&f->item[i])) {
			*ret = strdup(f->item[i].title);
			r = *ret ? 0 : -ENOMEM;
		}
	return r;
}

int summary_read_with_finding(
	const struct run *run, struct summary **ret, char **ret_finding, struct buf *reterr)
{
	const struct curves_options options = {.from_s = NAN, .to_s = NAN, .points = POINTS};
	struct analysis s = {.run = run, .nr_nodes = run->nr};
	struct findings *found = NULL;
	bool small = is_small(run);
	int r = small ? summary_read_with_processes(run, &s.summary, &s.processes, reterr)
		      : summary_read(run, &s.summary, reterr);

	*ret_finding = NULL;
	if (r >= 0 && may_show_something(s.summary)) {
		if (small)
			r = curves_read(run, finding_query, nr_finding_queries, &options, &s.curves, reterr);
		if (r >= 0)
			r = findings_make(&s, &found);
		if (r >= 0)
			r = choose(s.summary, found, ret_finding);
	}
	findings_free(found);
	curves_free(s.curves);
	process_table_free(s.processes);
	if (r < 0)
		s.summary = summary_free(s.summary);
	*ret = s.summary;
	return r;
}
