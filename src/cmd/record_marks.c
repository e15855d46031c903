/* What the job tells of itself while it is recorded: phases and marks become events of the recording. */
#include "cmd/record.h"

#include "base/owned.h"
#include "cmd/cmd.h"
#include "target/job_number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sender's clock may be that of another time namespace. What it says is taken when it is before now, and
 * not by more than a message can wait. */
#define WAITS_MOST_NS (10 * NSEC_PER_SEC)

/* Trouble of ours is no reason to spoil the job: then it finds no socket. */
void record_listen(struct recording *r)
{
	job_socket_open(&r->socket, NULL);
}

/* Empty where we have no socket: that of an outer recorder is not ours. */
void record_variables(const struct recording *r, char *ret[static 3])
{
	_cleanup_(freep) char *path = realpath((char *)r->path.data, NULL);
	unsigned nr = 0;

	ret[0] = ret[1] = ret[2] = NULL;
	if (path && asprintf(&ret[nr], "TACHO_RECORDING=%s", path) >= 0)
		nr++;
	if (asprintf(&ret[nr], "TACHO_SOCKET=%s", r->socket.fd < 0 ? "" : r->socket.address.sun_path) < 0)
		ret[nr] = NULL;
}

static bool is_member(void *arg, pid_t pid)
{
	const struct recording *r = arg;

	return engine_is_member(r->engine, pid);
}

/* The words of the data, one after the other. */
#define for_each_word(m, word, len)                                                                 \
	for (const char *word = (m)->data, *end_ = word + (m)->data_len;                            \
		(m)->data_len && word <= end_ && ((len) = strnlen(word, (size_t)(end_ - word)), 1); \
		word += (len) + 1)

/* Numbers among the data become metrics; a word `unit=` is of all of them. True when there is nothing else.
 */
static bool take_numbers(struct recording *r, const struct job_message *m)
{
	size_t len, unit_len = 0, nr = 0;
	const char *unit = NULL;
	bool all = !m->text_len;
	struct job_number n;

	for_each_word(m, word, len) if (len > 5 && !memcmp(word, "unit=", 5))
	{
		unit = word + 5;
		unit_len = len - 5;
	}
	for_each_word(m, word, len) if (job_number_parse(word, len, unit, unit_len, &n))
	{
		engine_number(r->engine, &n);
		nr++;
	}
	else
	{
		all = all && word + 5 == unit;
	}
	return all && nr;
}

static void take(void *arg, const struct job_message *m, pid_t pid)
{
	struct recording *r = arg;
	int64_t elapsed = engine_elapsed(r->engine);
	/* Not by the time that it waited: the distances of a burst stay as they were. */
	int64_t sent = m->time_ns < 0 ? -1 : engine_when(r->engine, m->time_ns);
	struct pair memory[7];
	char numbers[128];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_add(&p, "name", m->text, m->text_len);
	if (m->data_len)
		pairs_add(&p, "data", m->data, m->data_len);
	if (pid)
		pairs_num(&p, "pid", pid);
	if (m->thread)
		pairs_num(&p, "thread", m->thread);
	if (m->parent)
		pairs_num(&p, "parent", m->parent);
	if (sent >= 0 && sent <= elapsed && elapsed - sent <= WAITS_MOST_NS)
		pairs_num(&p, "sent_ns", sent);
	if (take_numbers(r, m))
		pairs_num(&p, "numbers", 1);
	engine_tell(r->engine, m->kind, &p);
	r->at_edge |= strcmp(m->kind, "mark") != 0;
}

/* A sample at the edge of a phase, for all edges that came at once. */
static void sample_edge(struct recording *r)
{
	if (r->at_edge)
		engine_edge(r->engine);
	r->at_edge = false;
}

/* In a flood messages are read several at once: each time the recorder wakes up it may take a CPU from the
 * job. The kernel keeps ten of them, on most machines, so that most still find room. */
#define FLOOD_MESSAGES 1000 /* in a second */
#define FLOOD_PAUSE_NS (50 * NSEC_PER_USEC)

void record_hear(struct recording *r)
{
	int64_t now = env_now(r->env, ENV_MONOTONIC);

	job_socket_read(&r->socket, now, is_member, take, r);
	if (r->socket.read > FLOOD_MESSAGES)
		r->deaf_ns = now + FLOOD_PAUSE_NS;
	engine_heard(r->engine);
	sample_edge(r);
}

static void tell_number(struct recording *r, const char *kind, uint64_t number)
{
	struct pair memory[1];
	char text[32];
	struct pairs p;

	if (!number)
		return;
	pairs_init(&p, memory, ARRAY_SIZE(memory), text, sizeof(text));
	pairs_num(&p, "number", (int64_t)MIN(number, (uint64_t)INT64_MAX));
	engine_tell(r->engine, kind, &p);
}

/* ---- logs ---- */

/* So many bytes of a log are read in a second, at least so many at a look; looks are not closer than this. */
#define LOG_BYTES_A_SECOND (1 << 20)
#define LOG_BYTES_LEAST 16384
#define LOG_LOOKS_NS (10 * NSEC_PER_MSEC)
/* CPU time of a look; of the time between two looks at most a 20th. */
#define LOG_LOOK_MOST_NS (5 * NSEC_PER_MSEC)

void record_watch_open(struct recording *r)
{
	const struct record_options *o = r->opt;
	struct buf err;
	int e;

	buf_init(&err, 4096);
	if (o->watch.nr && !o->phase.nr && !o->mark.nr)
		die(EXIT_OWN, "--watch needs --phase or --mark: which lines of %s count?", o->watch.item[0]);
	if (!o->watch.nr && (o->phase.nr || o->mark.nr))
		die(EXIT_OWN, "--%s needs --watch FILE: the log whose lines it is applied to",
			o->phase.nr ? "phase" : "mark");
	e = log_watch_open(&r->watch, o->watch.item, o->watch.nr, o->phase.item, o->phase.nr, o->mark.item,
		o->mark.nr, &err);
	if (e < 0)
		die(EXIT_OWN, "%s", err.len ? (char *)err.data : "no memory");
	buf_release(&err);
}

/* Our own files are no logs of the job. */
void record_watch_avoid(struct recording *r, const char *ours, const char *what)
{
	const char *path;
	struct stat st;

	if (stat(ours, &st) < 0)
		return;
	path = log_watch_avoid(&r->watch, &st);
	if (!path)
		return;
	record_discard(r);
	die(EXIT_OWN, "--watch %s is the %s that tacho writes itself: name a log that the job writes", path,
		what);
}

static void take_line(void *arg, const struct job_message *m)
{
	struct recording *r = arg;

	if (job_socket_room(&r->socket, env_now(r->env, ENV_MONOTONIC), m->text_len + m->data_len))
		take(arg, m, 0);
}

/* Expressions that took too long for a line. */
static void tell_given_up(struct recording *r)
{
	for (unsigned i = 0; i < r->watch.nr_patterns; i++) {
		struct log_pattern *pattern = &r->watch.file[0].pattern[i];
		struct pair memory[2];
		char text[8];
		struct pairs p;

		if (!pattern->given_up || pattern->told)
			continue;
		pairs_init(&p, memory, ARRAY_SIZE(memory), text, sizeof(text));
		pairs_str(&p, "option", pattern->phase ? "--phase" : "--mark");
		pairs_str(&p, "expression", pattern->text);
		engine_tell(r->engine, "watch.given-up", &p);
		pattern->told = true;
	}
}

void record_watch(struct recording *r)
{
	int64_t now = env_now(r->env, ENV_MONOTONIC), pause = MAX(r->opt->interval_ns / 2, LOG_LOOKS_NS);
	double share = (double)MIN(2 * pause, NSEC_PER_SEC) / NSEC_PER_SEC;

	if (!r->watch.nr_files || now < r->watch_ns)
		return;
	r->watch_ns = now + pause;
	log_watch_look(&r->watch, MAX((size_t)(share * LOG_BYTES_A_SECOND), LOG_BYTES_LEAST),
		MIN(pause / 20, LOG_LOOK_MOST_NS), take_line, r);
	tell_given_up(r);
	engine_heard(r->engine);
	r->at_edge = false; /* its time is not known better than by the next sample */
}

static void tell_unread(struct recording *r, const struct log_file *f, const char *why)
{
	struct pair memory[2];
	char numbers[8];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_str(&p, "name", f->path);
	if (*why)
		pairs_str(&p, "reason", why);
	engine_tell(r->engine, "watch.absent", &p);
}

static void tell_unmatched(struct recording *r, const struct log_pattern *pattern, const char *only)
{
	struct pair memory[3];
	char numbers[8];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	if (only)
		pairs_str(&p, "name", only);
	pairs_str(&p, "option", pattern->phase ? "phase" : "mark");
	pairs_str(&p, "expression", pattern->text);
	engine_tell(r->engine, "watch.unmatched", &p);
}

/* A name or an expression that is wrong is told of: nothing else would show it. */
static void tell_silent_logs(struct recording *r)
{
	const struct log_watch *w = &r->watch;
	const char *only = NULL;
	unsigned nr_read = 0;

	for (unsigned i = 0; i < w->nr_files; i++) {
		const char *why = log_watch_unread(&w->file[i]);

		if (why)
			tell_unread(r, &w->file[i], why);
		nr_read += !why;
		only = why ? only : w->file[i].path;
	}
	for (unsigned i = 0; i < w->nr_patterns && nr_read; i++)
		if (!log_watch_matched(w, i))
			tell_unmatched(r, &w->file[0].pattern[i], nr_read == 1 ? only : NULL);
}

static void watch_end(struct recording *r)
{
	uint64_t left_out;

	log_watch_finish(&r->watch, take_line, r);
	tell_given_up(r);
	tell_silent_logs(r);
	tell_number(r, "watch.skipped", r->watch.skipped);
	log_watch_close(&r->watch);
	engine_told(r->engine, &left_out);
	tell_number(r, "numbers.dropped", left_out);
}

void record_listen_end(struct recording *r)
{
	if (r->socket.fd >= 0)
		job_socket_read(&r->socket, env_now(r->env, ENV_MONOTONIC), is_member, take,
			r); /* a sample follows */
	watch_end(r);
	tell_number(r, "marks.dropped", r->socket.dropped);
	tell_number(r, "marks.refused", r->socket.refused);
	tell_number(r, "marks.within", r->socket.within);
	job_socket_close(&r->socket);
}
