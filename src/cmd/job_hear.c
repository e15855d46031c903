/* What the recorders of the nodes say to the launcher: who records, what their clocks show, messages for the
 * log.
 *
 * Clocks: we ask all nodes at once, with a number; a node answers with its wall clock. Its clock showed that
 * between our question and the answer, so that it is ahead of ours by what it said minus the middle of both,
 * give or take half the time between them. Of questions that follow each other closely the answer that was
 * the fastest counts most, and readers take it; all are written. */
#include "cmd/job.h"

#include "base/str.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUND_APART_NS (20 * NSEC_PER_MSEC)
#define ROUNDS_EARLY_NS (2 * NSEC_PER_SEC)
#define ROUNDS_EVERY_NS (60 * NSEC_PER_SEC)
#define ROUNDS_AT_ONCE 3
#define LINES_AT_ONCE 1000
/* An answer that took longer says nothing. */
#define ANSWER_MOST_NS (20 * NSEC_PER_SEC)

static int64_t clock_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

int64_t job_now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

int64_t job_wall(void)
{
	return clock_of(CLOCK_REALTIME);
}

size_t job_nodes_in(const struct job_run *run, enum recorder_state state)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->hosts.nr; i++)
		nr += run->node[i].state == state;
	return nr;
}

void job_node_lost(struct job_run *run, size_t i, const char *why)
{
	struct node_of_run *node = &run->node[i];

	if (node->state == NODE_ENDED || node->state == NODE_LOST)
		return;
	node->state = NODE_LOST;
	free(node->why);
	node->why = strdup(why);
	job_log(&run->directory, "warning", node->name, "%s", why);
}

/* ---- clocks ---- */

static void take_time(struct job_run *run, struct node_of_run *node, const char *words)
{
	int64_t now = job_wall(), asked, took, middle, offset;
	unsigned long long number;
	long long time;
	char line[160];
	int fd, n;

	node->answered_ns = job_now();
	if (sscanf(words, "%llu %lld", &number, &time) < 2 || number > run->round ||
		run->round - number >= CLOCK_ROUNDS_KEPT)
		return;
	asked = run->asked_ns[number % CLOCK_ROUNDS_KEPT];
	took = now - asked;
	if (took < 0 || took > ANSWER_MOST_NS)
		return;
	middle = asked + took / 2;
	if (time < 0 || __builtin_sub_overflow((int64_t)time, middle, &offset))
		return;
	n = snprintf(line, sizeof(line), "{\"launcher_ns\":%lld,\"offset_ns\":%lld,\"bound_ns\":%lld}\n",
		(long long)middle, (long long)offset, (long long)(took / 2 + 1));
	fd = open(job_directory_file(&run->directory, "clock/%s.jsonl", node->name),
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && write(fd, line, (size_t)n) < 0)
		job_log(&run->directory, "warning", node->name, "its clock cannot be written down: %s",
			strerror(errno));
	closep(&fd);
}

void job_nodes_ask_clocks(struct job_run *run, unsigned times)
{
	run->rounds_left = times;
	run->next_round_ns = job_now();
}

int64_t job_nodes_tend(struct job_run *run)
{
	int64_t now = job_now();

	if (now < run->next_round_ns)
		return run->next_round_ns;
	if (!run->rounds_left)
		run->rounds_left = ROUNDS_AT_ONCE;
	run->round++;
	run->asked_ns[run->round % CLOCK_ROUNDS_KEPT] = job_wall();
	job_nodes_say(run, "clock %llu", (unsigned long long)run->round);
	run->next_round_ns = now + ROUND_APART_NS;
	if (--run->rounds_left)
		return run->next_round_ns;
	/* At the beginning the nodes are busy with the job's own start. */
	run->next_round_ns = now + (run->asked_early ? ROUNDS_EVERY_NS : ROUNDS_EARLY_NS);
	run->asked_early = true;
	return run->next_round_ns;
}

/* ---- lines ---- */

static void take_log(struct job_run *run, const char *host, const char *words)
{
	static const char *const levels[] = {"info", "warning", "error"};

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		size_t n = strlen(levels[i]);

		if (!strncmp(words, levels[i], n) && words[n] == ' ')
			return job_log(&run->directory, levels[i], host, "%s", words + n + 1);
	}
}

static void take_state(struct job_run *run, struct node_of_run *node, const char *words)
{
	static const struct {
		const char *word;
		enum recorder_state state;
		const char *message;
	} said[] = {
		{"hello", NODE_HELLO, "the recorder has started"},
		{"recording", NODE_RECORDING, "records"},
		{"ended", NODE_ENDED, "has ended its recording"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(said); i++)
		if (!strcmp(words, said[i].word) &&
			(node->state < said[i].state || node->state == NODE_LOST)) {
			node->state = said[i].state;
			job_log(&run->directory, "info", node->name, "%s", said[i].message);
		}
}

/* What srun, ssh or a recorder that cannot record says. Of which node it is, is known where each is started
 * alone. */
static void take_words(struct job_run *run, const struct job_launch *launch, const char *line)
{
	struct node_of_run *node = launch->nr == 1 ? &run->node[launch->first] : NULL;

	if (!*line)
		return;
	job_log(&run->directory, "warning", node ? node->name : "launcher", "%s", line);
	if (!node)
		return;
	free(node->said);
	node->said = strdup(line);
}

static void take_line(struct job_run *run, const struct job_launch *launch, const char *line)
{
	char host[HOST_NAME_SIZE], why[JOB_LINE_SIZE + 64];
	ssize_t at;
	int n = 0;

	if (sscanf(line, "tacho %255s %n", host, &n) < 1 || !n ||
		(at = host_list_find(&run->hosts, host)) < 0)
		return take_words(run, launch, line);
	line += n;
	if (str_starts(line, "clock "))
		take_time(run, &run->node[at], line + strlen("clock "));
	else if (str_starts(line, "log "))
		take_log(run, host, line + strlen("log "));
	else if (!strcmp(line, "over"))
		run->over = true;
	else if (str_starts(line, "incomplete ")) {
		snprintf(why, sizeof(why), "its recording is incomplete: %s", line + strlen("incomplete "));
		job_node_lost(run, (size_t)at, why);
	} else
		take_state(run, &run->node[at], line);
}

static void hear(struct job_run *run, const struct job_launch *launch, struct job_line *line)
{
	const char *text;

	/* There is other work than a node that floods us. */
	for (unsigned i = 0; i < LINES_AT_ONCE && (text = job_line_next(line)); i++)
		take_line(run, launch, text);
}

void job_nodes_hear(struct job_run *run)
{
	for (size_t i = 0; i < run->nr_started; i++) {
		struct job_launch *launch = &run->launch[i];

		hear(run, launch, &launch->line);
		for (size_t n = 0; launch->files && n < launch->nr; n++)
			hear(run, launch, &launch->files[n]);
	}
}

void job_nodes_say(struct job_run *run, const char *fmt, ...)
{
	struct job_line files = {.in = -1, .out = run->lines};
	char text[JOB_LINE_SIZE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < run->nr_started; i++)
		if (run->launch[i].pid)
			job_line_say(&run->launch[i].line, "%s", text);
	job_line_say(&files, "%s", text);
}
