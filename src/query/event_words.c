/* Events of the recorder in words: see event_words.h. */
#include "query/event_words.h"

#include "base/str.h"
#include "base/units.h"
#include "query/meta.h"

#include <math.h>
#include <string.h>

static void add_pair(struct buf *out, const struct pairs *pairs, const char *key)
{
	const struct pair *p = pairs_find(pairs, key);

	if (p)
		escape_bytes(out, p->value, MIN(p->len, (size_t)500));
}

static long long number(const struct pairs *pairs, const char *key, int64_t otherwise)
{
	pairs_get_num(pairs, key, &otherwise);
	return otherwise;
}

static void signalled(struct buf *out, const struct pairs *pairs)
{
	buf_adds(out, "SIG");
	add_pair(out, pairs, "name");
}

static void clock_set(struct buf *out, const struct pairs *pairs)
{
	double step = (double)number(pairs, "step_ns", 0);
	char by[UNITS_SIZE];

	buf_addf(out, "the clock was set %s by %s", step < 0 ? "back" : "forward",
		format_duration(by, fabs(step) / 1e9));
}

static void backed_off(struct buf *out, const struct pairs *pairs)
{
	long long every = number(pairs, "every", 1);

	if (every <= 1)
		buf_adds(out, "sampled as often as asked again");
	else
		buf_addf(out, "sampled %lld times less often, to stay within the budget", every);
}

static void taking_turns(struct buf *out, const struct pairs *pairs)
{
	int64_t every = 1;

	if (pairs_get_num(pairs, "clocks_every", &every))
		buf_addf(out,
			"CPU time of processes that sleep read at one of %lld samples, to stay within the "
			"budget",
			(long long)every);
	else
		buf_adds(out, "details of processes read in turns, to stay within the budget");
}

static void dropped(struct buf *out, const struct pairs *pairs)
{
	long long nr = number(pairs, "number", 0);

	if (nr == 1)
		buf_adds(out, "1 phase or mark of the job was dropped: it came too fast");
	else
		buf_addf(out, "%lld phases and marks of the job were dropped: they came too fast", nr);
}

static void refused(struct buf *out, const struct pairs *pairs)
{
	long long nr = number(pairs, "number", 0);

	buf_addf(out, "%lld message%s to the recorder %s refused: not the job's, or not understood", nr,
		nr == 1 ? "" : "s", nr == 1 ? "was" : "were");
}

static void within(struct buf *out, const struct pairs *pairs)
{
	long long nr = number(pairs, "number", 0);

	buf_addf(out, "%lld NVTX range%s not recorded: %s within two others", nr, nr == 1 ? " was" : "s were",
		nr == 1 ? "it lies" : "they lie");
}

static void no_curve(struct buf *out, const struct pairs *pairs)
{
	buf_addf(out,
		"%lld numbers of the job have no curve: there are too many names, or one has several units",
		number(pairs, "number", 0));
}

static void skipped(struct buf *out, const struct pairs *pairs)
{
	buf_addf(out, "%lld bytes of the job's logs were not looked at: they grew too fast",
		number(pairs, "number", 0));
}

static void given_up(struct buf *out, const struct pairs *pairs)
{
	add_pair(out, pairs, "option");
	buf_adds(out, " '");
	add_pair(out, pairs, "expression");
	buf_adds(out, "' was not applied any longer: it took too much time for a line");
}

static void not_read(struct buf *out, const struct pairs *pairs)
{
	const struct pair *reason = pairs_find(pairs, "reason");

	buf_adds(out, "the log ");
	add_pair(out, pairs, "name");
	if (reason) {
		buf_adds(out, " could not be read: ");
		add_pair(out, pairs, "reason");
	} else {
		buf_adds(out, " did not appear");
	}
}

static void not_matched(struct buf *out, const struct pairs *pairs)
{
	buf_adds(out, "no line of ");
	if (pairs_find(pairs, "name"))
		add_pair(out, pairs, "name");
	else
		buf_adds(out, "the logs");
	buf_adds(out, " matched --");
	add_pair(out, pairs, "option");
	buf_adds(out, " '");
	add_pair(out, pairs, "expression");
	buf_adds(out, "'");
}

static void not_recorded(struct buf *out, const struct pairs *pairs)
{
	buf_addf(out, "not recorded: %s", gap_error_of(pairs)->what);
}

void event_words(struct buf *out, const char *kind, const struct pairs *pairs)
{
	static const struct {
		const char *kind;
		void (*say)(struct buf *out, const struct pairs *pairs);
	} row[] = {{"signal", signalled}, {"clock", clock_set}, {"backoff", backed_off},
		{"turns", taking_turns}, {"marks.dropped", dropped}, {"marks.refused", refused},
		{"marks.within", within}, {"numbers.dropped", no_curve}, {"watch.skipped", skipped},
		{"watch.given-up", given_up}, {"watch.absent", not_read}, {"watch.unmatched", not_matched},
		{"gap", not_recorded}};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(kind, row[i].kind)) {
			row[i].say(out, pairs);
			return;
		}
	escape_bytes(out, kind, MIN(strlen(kind), (size_t)500));
}

bool is_left_out(const char *kind)
{
	static const char *const row[] = {"marks.dropped", "marks.refused", "marks.within", "numbers.dropped",
		"watch.skipped", "watch.given-up", "watch.absent", "watch.unmatched"};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(kind, row[i]))
			return true;
	return false;
}
