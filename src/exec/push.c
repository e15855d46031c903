/* `tacho push`: the words of the command line to what the driver takes (push/deliver.h), one process for each
 * sink, so that none waits for another. */
#include "exec/push.h"

#include "base/str.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/operands.h"
#include "cmd/reading.h"
#include "cmd/signals.h"
#include "push/deliver.h"
#include "query/sidecar.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const as_word[] = {NULL, "process", "system"};

struct target { /* of --to */
	const struct push_sink *sink;
	const char *url;
};

struct pushing {
	const struct push_args *args;
	struct target target;
	struct push_label label[OPT_LIST_MAX];
	char *label_text[OPT_LIST_MAX];
	const char *metric[OPT_LIST_MAX * 4];
	char *metric_text[OPT_LIST_MAX];
	struct push_options options;
	struct deliver_options deliver;
};

/* ---- what it says ---- */

static bool stop(void *arg)
{
	(void)arg;
	return signals_noted();
}

static void say(void *arg, bool problem, const char *text)
{
	(void)arg;
	if (problem)
		warning("%s", text);
	else
		error("%s", text);
}

static void show(void *arg, const struct buf *text)
{
	(void)arg;
	if (print_shown(text) != EXIT_OK)
		exit(EXIT_TROUBLE);
}

/* ---- words ---- */

static struct target parse_target(const char *word)
{
	size_t n = strcspn(word, "=");
	struct target t = {.sink = push_sink_find(word, n), .url = word[n] ? word + n + 1 : NULL};
	struct nearest near;
	char name[40], memory[100];
	struct buf ask;

	if (t.sink)
		return t;
	snprintf(name, sizeof(name), "%.*s", (int)n, word);
	near = nearest_slip(name);
	for (size_t i = 0; push_sinks[i]; i++)
		nearest_try(&near, push_sinks[i]->name);
	buf_init_fixed(&ask, memory, sizeof(memory));
	nearest_ask(&near, &ask);
	usage(&cmd_push, "there is no sink '%s' (--sinks lists them)%s", name, (const char *)ask.data);
}

static const char *server_of(const struct push_args *args, const struct push_sink *sink)
{
	size_t n = strlen(sink->name);

	for (unsigned i = 0; i < args->server.nr; i++)
		if (!strncmp(args->server.item[i], sink->name, n) && args->server.item[i][n] == '=')
			return args->server.item[i] + n + 1;
	return NULL;
}

/* Others can see command lines. */
static void refuse_password(const char *url)
{
	const char *host = strstr(url, "://"), *at;

	host = host ? host + 3 : url;
	at = memchr(host, '@', strcspn(host, "/?#"));
	if (at)
		usage(&cmd_push,
			"the address has a password in it, which others can see; the sink's own "
			"variables take it (tacho push --sinks)");
}

static void take_labels(struct pushing *p)
{
	const struct opt_list *l = &p->args->label;

	for (unsigned i = 0; i < l->nr; i++) {
		char *copy = strdup(l->item[i]), *equals = copy ? strchr(copy, '=') : NULL;

		if (!copy)
			die(EXIT_TROUBLE, "no memory");
		if (!equals || equals == copy || !equals[1])
			usage(&cmd_push, "--label takes KEY=VALUE, not '%s'", l->item[i]);
		*equals = 0;
		p->label_text[i] = copy;
		p->label[i] = (struct push_label){copy, equals + 1};
	}
	p->options.label = p->label;
	p->options.nr_labels = l->nr;
}

static void take_metrics(struct pushing *p)
{
	const struct opt_list *l = &p->args->metric;
	size_t nr = 0;

	for (unsigned i = 0; i < l->nr; i++) {
		char *copy = p->metric_text[i] = strdup(l->item[i]), *save = NULL;

		if (!copy)
			die(EXIT_TROUBLE, "no memory");
		for (char *w = strtok_r(copy, ",", &save); w && nr < ARRAY_SIZE(p->metric);
			w = strtok_r(NULL, ",", &save))
			p->metric[nr++] = w;
	}
	if (!l->nr)
		return;
	p->deliver.feed.metric = p->metric;
	p->deliver.feed.nr_metrics = nr;
}

static enum tables_per per_of(const struct push_args *args)
{
	switch (args->per) {
	case PUSH_PER_GROUP:
		return TABLES_GROUP;
	case PUSH_PER_PROCESS:
		return TABLES_PROCESS;
	case PUSH_PER_NODE: /* the usual choice folds by itself, and has each GPU */
		return args->metric.nr ? TABLES_NODE : TABLES_EACH;
	default:
		return TABLES_EACH;
	}
}

/* --samples is so many intervals of the recording. */
static int64_t window_of(const struct push_args *args, const struct run *run)
{
	struct meta meta = {0};
	int64_t interval = NSEC_PER_SEC;

	if (!args->samples)
		return args->every_ns;
	if (run->nr && sidecar_meta(run->path[0], &meta, NULL) >= 0)
		meta_num(&meta, "interval_ns", &interval);
	meta_release(&meta);
	return args->samples == 1 ? 0 : (int64_t)args->samples * interval;
}

static void take_options(struct pushing *p, const struct run *run)
{
	const struct push_args *a = p->args;

	p->options = (struct push_options){.url = p->target.url,
		.as = as_word[a->as],
		.prefix = a->prefix,
		.run_id = a->run_id,
		.run_name = a->run_name,
		.experiment = a->experiment,
		.semconv = a->semconv,
		.no_children = !a->children,
		.no_artifacts = !a->artifacts,
		.total_cpus = a->total_cpus,
		.every_ns = window_of(a, run),
		.timeout_ns = a->timeout_ns,
		.linger_ns = a->linger_ns,
		.dry_run = a->dry_run,
		.listen = a->listen,
		.token_file = a->token_file,
		.textfile = a->textfile};
	if (a->total_memory && parse_bytes(a->total_memory, &p->options.total_memory) < 0)
		usage(&cmd_push, "--total-memory takes a size such as 16GiB, not '%s'", a->total_memory);
	if (!p->options.url)
		p->options.url = server_of(a, p->target.sink);
	if (p->options.url && !p->target.sink->is_file)
		refuse_password(p->options.url);
	take_labels(p);
}

static void take_range(struct pushing *p, const struct run *run)
{
	const struct range_args range = {.from = p->args->from, .to = p->args->until, .to_name = "--until"};

	p->deliver.feed.from_s = p->deliver.feed.to_s = NAN;
	if (range.from || range.to)
		range_of(&cmd_push, run, &range, &p->deliver.feed.from_s, &p->deliver.feed.to_s);
}

/* ---- one sink ---- */

static int end_of(const struct pushing *p, const struct deliver_result *result, int r, const struct buf *err)
{
	const char *name = p->target.sink->name;

	if (r == -EINTR)
		return EXIT_TROUBLE;
	if (r == -EAGAIN) {
		error("%s: %s; what is left waits in the recording: the same command sends it", name,
			(const char *)err->data);
		return EXIT_TROUBLE;
	}
	if (r < 0) {
		error("%s: %s", name, (const char *)err->data);
		return r == -EINVAL || r == -ENOENT ? EXIT_USAGE : EXIT_TROUBLE;
	}
	if (p->args->dry_run)
		return EXIT_OK;
	if (result->before) {
		error("%s: all was sent before; to send it again, or other metrics and times of it, remove "
		      "the file "
		      ".push-%s that --status names",
			name, name);
		return EXIT_OK;
	}
	error("%s: %s values sent%s%s", name, format_count(SHOWN, (double)result->points),
		result->where[0] ? ": " : "", result->where);
	return result->dropped ? EXIT_TROUBLE : EXIT_OK;
}

static int push_one(struct pushing *p, const struct run *run, const char *const *operand, size_t nr)
{
	struct deliver_result result;
	struct buf err;
	int status;

	take_options(p, run);
	take_metrics(p);
	take_range(p, run);
	p->deliver.sink = p->target.sink;
	p->deliver.push = &p->options;
	p->deliver.feed.per = per_of(p->args);
	p->deliver.feed.every_ns = p->options.every_ns;
	p->deliver.operand = operand;
	p->deliver.nr_operands = nr;
	p->deliver.job = reading_job();
	p->deliver.follow = p->args->follow;
	p->deliver.retries = p->args->retries;
	p->deliver.linger_ns = p->args->linger_ns;
	p->deliver.stop = stop;
	p->deliver.say = say;
	p->deliver.show = show;
	buf_init(&err, 1 << 16);
	status = end_of(p, &result, deliver(&p->deliver, &result, &err), &err);
	buf_release(&err);
	for (size_t i = 0; i < ARRAY_SIZE(p->label_text); i++) {
		free(p->label_text[i]);
		free(p->metric_text[i]);
	}
	return status;
}

/* ---- all of them ---- */

static size_t take_targets(const struct push_args *args, struct target *ret)
{
	bool has_prometheus = false;
	size_t nr = 0;

	for (unsigned i = 0; i < args->to.nr; i++)
		ret[nr++] = parse_target(args->to.item[i]);
	for (size_t i = 0; i < nr; i++)
		has_prometheus |= !strcmp(ret[i].sink->name, "prometheus");
	if (!has_prometheus && nr < OPT_LIST_MAX && (args->listen || args->textfile))
		ret[nr++] = parse_target("prometheus");
	if (!nr)
		usage(&cmd_push, "no sink is given: --to SINK[=URL]; --sinks lists them");
	return nr;
}

/* In a process of its own, which ends with this one. */
static void begin_one(
	struct pushing *p, const struct run *run, const char *const *operand, size_t nr, pid_t parent)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_TROUBLE);
	status = push_one(p, run, operand, nr);
	signals_obey();
	_exit(finish_stdout(status));
}

/* Waits for them; a signal to this process is one to all. */
static int end_of_others(const pid_t *pid, size_t nr)
{
	int status = EXIT_OK, ended, passed_on = 0;

	for (size_t i = 0; i < nr;) {
		pid_t r = waitpid(pid[i], &ended, WNOHANG);

		if (r == pid[i])
			status = MAX(status, WIFEXITED(ended) ? WEXITSTATUS(ended) : EXIT_TROUBLE);
		if (r) {
			i++;
			continue;
		}
		if (signals_noted() && !passed_on) {
			passed_on = signals_noted();
			for (size_t j = i; j < nr; j++)
				kill(pid[j], passed_on);
		}
		nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_SEC / 20}, NULL);
	}
	return status;
}

/* The first of several in this process, each other in one of its own. */
static int push_all(const struct push_args *args, const struct target *target, size_t nr,
	const struct run *run, const char *const *operand, size_t nr_operands)
{
	struct pushing p = {.args = args};
	pid_t pid[OPT_LIST_MAX], self = getpid();
	int status, others;

	for (size_t i = 1; i < nr; i++) {
		p.target = target[i];
		pid[i] = fork();
		if (pid[i] < 0)
			die(EXIT_TROUBLE, "cannot start: %s", strerror(errno));
		if (pid[i] == 0)
			begin_one(&p, run, operand, nr_operands, self);
	}
	p.target = target[0];
	status = push_one(&p, run, operand, nr_operands);
	others = end_of_others(pid + 1, nr - 1);
	return MAX(status, others);
}

static void write_to_log(const char *path)
{
	int fd = open(
		path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) /* a pipe may have no reader, or a slow one */
		dup2(fd, STDERR_FILENO);
	close(fd);
}

int push_run(const void *arguments, int argc, char **argv)
{
	const struct push_args *args = arguments;
	struct target target[OPT_LIST_MAX];
	const char *const *operand = (const char *const *)argv;
	size_t nr_operands = (size_t)argc, nr;
	struct run *run;
	int status;

	if (args->sinks)
		return push_list_sinks();
	if (args->status)
		return push_show_status(argc, argv);
	if (args->log)
		write_to_log(args->log);
	nr = take_targets(args, target);
	run = operands_run("pushing", argc, argv);
	if (!argc) {
		operand = (const char *const *)run->path;
		nr_operands = run->nr;
	}
	umask(077);
	signals_note();
	status = push_all(args, target, nr, run, operand, nr_operands);
	run_close(run);
	signals_obey();
	return status;
}
