/* From a log that the job wrote to notes of its recording: phases and events, with the fields of pytyche's
 * RunLog or explicit times. */
#include "query/sidecar.h"

#include "base/iso_time.h"
#include "base/json_read.h"
#include "base/owned.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MOST 4096
#define DATA_MOST 4096
#define NEAR_NS NSEC_PER_SEC /* clocks and digits of logs: so far outside it still counts as at the edge */
#define MARK_OF_ORDER "\xef\xbb\xbf" /* editors put this byte order mark before UTF-8 */
#define OVERLAP_NS (50 * NSEC_PER_MSEC)

struct log_line {
	bool is_phase, is_event, bad_time, of_recorder;
	bool has_ts, has_start, has_end, has_seconds;
	int64_t ts, start, end, seconds; /* wall clock, ns; seconds: ns, too */
	bool has_name[2];
	struct buf name[2]; /* `name` of a phase, `event` of an event; the other one is data */
	struct buf host, data;
};

static void take_time(
	struct log_line *l, enum json_leaf leaf, const char *text, size_t len, bool *has, int64_t *to)
{
	*has = leaf == LEAF_TEXT ? parse_iso_time(text, len, to) || parse_epoch_time(text, len, to)
				 : leaf == LEAF_NUMBER && parse_epoch_time(text, len, to);
	l->bad_time |= !*has;
}

/* Keys as marks have them. */
static void add_data(struct log_line *l, const char *key, const char *text, size_t len)
{
	size_t before = l->data.len;

	if (memchr(text, 0, len))
		return;
	for (const char *p = key; *p; p++) {
		bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
			(*p >= 'A' && *p <= 'Z') || *p == '.' || *p == '-';

		buf_addch(&l->data, plain ? *p : '_');
	}
	buf_addch(&l->data, '=');
	buf_add(&l->data, text, len);
	buf_addch(&l->data, 0);
	if (l->data.err) { /* what has no room is left out */
		l->data.len = before;
		l->data.err = 0;
	}
}

static int take_leaf(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct log_line *l = arg;
	bool is_text = leaf == LEAF_TEXT, is_event = !strcmp(path, "event");

	if (leaf == LEAF_NULL) /* as if it were not there */
		return 0;
	if (!strcmp(path, "type")) {
		l->is_phase = is_text && !strcmp(text, "phase");
		l->is_event = is_text && !strcmp(text, "event");
	} else if (is_event || !strcmp(path, "name")) {
		buf_reset(&l->name[is_event]);
		buf_add(&l->name[is_event], text, MIN(len, (size_t)NAME_MOST));
		l->has_name[is_event] = is_text;
	} else if (!strcmp(path, "host")) {
		buf_reset(&l->host);
		buf_add(&l->host, text, MIN(len, (size_t)NAME_MOST));
	} else if (!strcmp(path, "ts")) {
		take_time(l, leaf, text, len, &l->has_ts, &l->ts);
	} else if (!strcmp(path, "start") || !strcmp(path, "begin")) {
		take_time(l, leaf, text, len, &l->has_start, &l->start);
	} else if (!strcmp(path, "end")) {
		take_time(l, leaf, text, len, &l->has_end, &l->end);
	} else if (!strcmp(path, "seconds")) {
		l->has_seconds = leaf == LEAF_NUMBER && parse_seconds(text, len, &l->seconds);
		l->bad_time |= !l->has_seconds;
	} else if (strcmp(path, "unfinished") != 0) {
		l->of_recorder |= !strcmp(path, "data.tacho");
		add_data(l, str_starts(path, "data.") ? path + strlen("data.") : path, text, len);
	}
	return 0;
}

/* When it began and ended; of an event both are the same. NULL, or what is wrong. */
static const char *find_times(struct log_line *l)
{
	if (!l->has_end && l->has_ts) {
		l->end = l->ts;
		l->has_end = true;
	}
	if (l->is_event) {
		if (!l->has_end && l->has_start)
			l->end = l->start;
		l->start = l->end;
		return l->has_end || l->has_start ? NULL : "has no time";
	}
	if (!l->has_start && l->has_end && l->has_seconds) {
		l->start = add_clamped(l->end, -l->seconds);
		l->has_start = true;
	}
	if (l->has_start && l->has_seconds && !l->has_end) {
		l->end = add_clamped(l->start, l->seconds);
		l->has_end = true;
	}
	if (!l->has_start || !l->has_end)
		return "has no times: ts and seconds, or start and end";
	return l->end < l->start ? "ends before it begins" : NULL;
}

/* To the recording's clock. False: it lies outside. */
static bool place(const struct sidecar *s, struct log_line *l, int64_t end_ns)
{
	l->start = add_clamped(l->start, -MAX(s->start_wall_ns, -INT64_MAX));
	l->end = add_clamped(l->end, -MAX(s->start_wall_ns, -INT64_MAX));
	if (l->end < -NEAR_NS || (end_ns < INT64_MAX - NEAR_NS && l->start > end_ns + NEAR_NS))
		return false;
	l->start = MIN(MAX(l->start, INT64_C(0)), end_ns);
	l->end = MIN(MAX(l->end, INT64_C(0)), end_ns);
	return true;
}

static int add_notes(struct sidecar *s, struct log_line *l)
{
	const struct buf *name = &l->name[l->is_event], *other = &l->name[l->is_phase];
	const char *other_key = l->is_phase ? "event" : "name";
	struct sidecar_note n = {.kind = l->is_phase ? NOTE_BEGIN : NOTE_MARK,
		.time_ns = l->start,
		.name = (char *)name->data,
		.name_len = name->len,
		.phase = (uint32_t)s->nr + 1};
	int r;

	if (other->len)
		add_data(l, other_key, (char *)other->data, other->len);
	n.data = (char *)l->data.data;
	n.data_len = l->data.len ? l->data.len - 1 : 0;
	r = sidecar_add(s, &n);
	if (r < 0 || !l->is_phase)
		return r;
	n.kind = NOTE_END;
	n.time_ns = l->end;
	n.data_len = 0;
	return sidecar_add(s, &n);
}

/* NULL: it was taken, or is of another host; else why not. */
static const char *take_line(struct sidecar *s, const char *text, size_t len, struct log_line *l,
	int64_t end_ns, struct annotate_counts *counts, int *ret)
{
	const char *why;

	if (json_read(text, len, take_leaf, l) < 0)
		return "is not a JSON object, or nested too deep";
	if (!l->is_phase && !l->is_event)
		return "is neither a phase nor an event";
	if (l->of_recorder && l->is_event)
		return NULL; /* the start and the end of a recording, in a run log of ours */
	if (!l->has_name[l->is_event])
		return "has no name";
	if (l->bad_time)
		return "has a time that is none";
	if (l->host.len && strcmp((char *)l->host.data, s->host) != 0) {
		counts->other_hosts++;
		return NULL;
	}
	why = find_times(l);
	if (why)
		return why;
	if (!place(s, l, end_ns))
		return "lies outside the time of the recording";
	*ret = add_notes(s, l);
	counts->phases += l->is_phase;
	counts->events += l->is_event;
	return NULL;
}

static void line_init(struct log_line *l)
{
	*l = (struct log_line){0};
	buf_init(&l->name[0], NAME_MOST);
	buf_init(&l->name[1], NAME_MOST);
	buf_init(&l->host, NAME_MOST);
	buf_init(&l->data, DATA_MOST);
}

static void line_release(struct log_line *l)
{
	buf_release(&l->name[0]);
	buf_release(&l->name[1]);
	buf_release(&l->host);
	buf_release(&l->data);
}

/* ---- phases that follow one another ---- */

struct noted_phase {
	struct sidecar_note *begin, *end;
};

static int by_name(const void *a, const void *b)
{
	const struct noted_phase *x = a, *y = b;
	size_t len = MIN(x->begin->name_len, y->begin->name_len);
	int r = memcmp(x->begin->name, y->begin->name, len);

	if (r)
		return r;
	if (x->begin->name_len != y->begin->name_len)
		return x->begin->name_len < y->begin->name_len ? -1 : 1;
	return (x->begin->time_ns > y->begin->time_ns) - (x->begin->time_ns < y->begin->time_ns);
}

/* Logs round: a repetition may begin a little before the one before it has ended, and then that one's end
 * would be taken for its own. */
static int part_repetitions(struct sidecar *s, size_t from)
{
	struct noted_phase *span = calloc((s->nr - from) / 2 + 1, sizeof(*span));
	size_t nr = 0;

	if (!span)
		return -ENOMEM;
	for (size_t i = from; i + 1 < s->nr; i++)
		if (s->note[i].kind == NOTE_BEGIN && s->note[i + 1].kind == NOTE_END)
			span[nr++] = (struct noted_phase){&s->note[i], &s->note[i + 1]};
	if (nr)
		qsort(span, nr, sizeof(*span), by_name);
	for (size_t i = 1; i < nr; i++) {
		int64_t before = span[i - 1].end->time_ns;
		const struct sidecar_note *begin = span[i].begin, *end = span[i].end;

		if (begin->name_len == span[i - 1].begin->name_len &&
			!memcmp(begin->name, span[i - 1].begin->name, begin->name_len) &&
			begin->time_ns < before && before <= end->time_ns &&
			before - begin->time_ns <= OVERLAP_NS)
			span[i].begin->time_ns = before;
	}
	free(span);
	return 0;
}

int sidecar_annotate(
	struct sidecar *s, const char *text, size_t len, int64_t end_ns, struct annotate_counts *ret)
{
	size_t from = s->nr, number = 0;
	int r = 0;

	*ret = (struct annotate_counts){0};
	if (len >= strlen(MARK_OF_ORDER) && !memcmp(text, MARK_OF_ORDER, strlen(MARK_OF_ORDER))) {
		text += strlen(MARK_OF_ORDER);
		len -= strlen(MARK_OF_ORDER);
	}
	while (len && r >= 0) {
		const char *end = memchr(text, '\n', len), *why = NULL;
		size_t n = end ? (size_t)(end - text) : len;
		struct log_line l;

		number++;
		line_init(&l);
		if (strspn(text, " \t\r") < n) /* blank lines are nothing */
			why = take_line(s, text, n, &l, end_ns, ret, &r);
		line_release(&l);
		if (why && !ret->left_out++) {
			ret->first_line = number;
			ret->first_why = why;
		}
		text += MIN(n + 1, len);
		len -= MIN(n + 1, len);
	}
	if (r >= 0)
		r = part_repetitions(s, from);
	return r;
}
