/* run --push: a pusher beside the job for each sink, which follows the recording and goes on after its end.
 * It reads the file as all readers do: the recorder only starts it, when the job runs. */
#include "cmd/record.h"

#include "base/owned.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/push.h"
#include "query/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* The sink of "mlflow --experiment demo" or "influx=URL". */
static bool is_sink(const char *spec)
{
	size_t n = strcspn(spec, "= \t");

	for (size_t i = 0; push_sink_names[i]; i++)
		if (strlen(push_sink_names[i]) == n && !strncmp(push_sink_names[i], spec, n))
			return true;
	return false;
}

static void warn_of(const char *spec)
{
	struct nearest near;
	char name[40];
	struct buf ask;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, "= \t"), spec);
	near = nearest_slip(name);
	for (size_t i = 0; push_sink_names[i]; i++)
		nearest_try(&near, push_sink_names[i]);
	buf_init(&ask, 200);
	nearest_ask(&near, &ask);
	warning("--push: there is no sink '%s', so nothing is sent (tacho push --sinks lists them)%s", name,
		(const char *)ask.data);
	buf_release(&ask);
}

void record_push_check(struct recording *r)
{
	const struct opt_list *list = &r->opt->push;

	for (unsigned i = 0; i < list->nr; i++)
		if (!is_sink(list->item[i] + strspn(list->item[i], " \t")))
			warn_of(list->item[i] + strspn(list->item[i], " \t"));
	if (list->nr && !external_has("tacho-push"))
		warning("--push needs tacho-push, which is not installed here: nothing is pushed; "
			"`tacho push` can send the recording later");
}

/* NAME.push.log */
static char *log_of(const char *recording)
{
	size_t n = strlen(recording), suffix = strlen(RECORDING_SUFFIX);
	char *path;

	if (n > suffix && !strcmp(recording + n - suffix, RECORDING_SUFFIX))
		n -= suffix;
	return asprintf(&path, "%.*s.push.log", (int)n, recording) < 0 ? NULL : path;
}

static pid_t start_pusher(struct recording *r, const char *recording, const char *log, char *spec)
{
	char *word[BESIDE_WORDS_MOST + 8];
	size_t nr = 0;

	word[nr++] = (char *)"tacho";
	word[nr++] = (char *)"push";
	word[nr++] = (char *)"--follow";
	word[nr++] = (char *)"--log";
	word[nr++] = (char *)log;
	word[nr++] = (char *)"--to";
	nr += beside_words(spec, word + nr, BESIDE_WORDS_MOST);
	word[nr++] = (char *)recording;
	word[nr] = NULL;
	return beside_start(r, word, false);
}

void record_push(struct recording *r)
{
	const struct opt_list *list = &r->opt->push;
	const char *path = (char *)r->path.data;

	if (r->pushes || !list->nr || !r->sink.store || !external_has("tacho-push"))
		return;
	r->pushes = true;
	for (unsigned i = 0; i < list->nr; i++) {
		_cleanup_(freep) char *log = log_of(path), *spec = strdup(list->item[i]);
		pid_t pid;

		if (!is_sink(list->item[i] + strspn(list->item[i], " \t")))
			continue;
		pid = log && spec ? start_pusher(r, path, log, spec) : -1;
		if (pid > 0)
			r->pusher[r->nr_pushers++] = pid;
	}
}

/* The engine has waited for those that ended while the job ran. */
static bool has_ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == pid || (kill(pid, 0) < 0 && errno == ESRCH);
}

void record_push_report(const struct recording *r)
{
	const char *path = (char *)r->path.data;
	_cleanup_(freep) char *log = log_of(path);
	unsigned ended = 0;

	if (!r->nr_pushers || r->opt->quiet || r->opt->json)
		return;
	for (unsigned i = 0; i < r->nr_pushers; i++)
		ended += has_ended(r->pusher[i]);
	if (ended < r->nr_pushers)
		fprintf(stderr, "  push     goes on until all is sent   (tacho push --status %s)\n", path);
	if (ended)
		fprintf(stderr, "  push     %s ended already; %s says why\n",
			ended < r->nr_pushers ? "one" : "has", log ? log : "its log");
}
