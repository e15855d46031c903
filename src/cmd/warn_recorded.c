/* A process that `tacho run` started has the name of its recording in its environment. An attached process
 * does not: for it the running recorders are searched, and the beginning of their recordings is read.
 *
 * A recording is under way when its writer holds the lock on the file, so an inherited name of a recording
 * that has ended gives no warning. */
#include "cmd/warn_recorded.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "query/run.h"
#include "store/glance.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define VARIABLE "TACHO_RECORDING"
#define ENVIRON_MAX (256 << 10)

/* The value of the variable in NAME=VALUE texts separated by NULs. */
static const char *find_variable(const char *text, size_t len)
{
	const size_t n = strlen(VARIABLE "=");

	for (const char *p = text; p < text + len; p += strlen(p) + 1)
		if (!strncmp(p, VARIABLE "=", n))
			return p + n;
	return NULL;
}

static bool is_written(const char *path)
{
	struct store_reader *r = NULL;
	struct store_health health = {0};

	if (store_open(path, &r) < 0)
		return false;
	store_health(r, &health);
	store_close(r);
	return health.writing;
}

/* The recording that a process belongs to, by TACHO_RECORDING in its environment, when that is being written
 * now. False when there is none, or its environment is hidden from us. */
static bool warn_recorded(struct env *env, pid_t pid, char *ret_path, size_t size)
{
	_cleanup_(freep) char *text = NULL;
	const char *path = NULL;
	char file[40];
	ssize_t n;

	if (!pid) {
		path = env_getenv(env, VARIABLE);
	} else {
		text = malloc(ENVIRON_MAX);
		snprintf(file, sizeof(file), "proc/%d/environ", (int)pid);
		n = text ? env_slurp(env, file, text, ENVIRON_MAX) : -ENOMEM;
		path = n > 0 ? find_variable(text, (size_t)n) : NULL;
	}
	if (!path || !is_written(path))
		return false;
	snprintf(ret_path, size, "%s", path);
	return true;
}

/* ---- recorders that were attached ---- */

#define ANCESTORS_MAX 64
#define PATH_SIZE 1024
#define JOB_SIZE 128

struct warn_recorded_search {
	struct env *env;
	const char *job;	  /* its id; NULL: a process is looked for */
	pid_t pid[ANCESTORS_MAX]; /* the process and those above it */
	unsigned nr_pids;
	pid_t recorder;	      /* that is being looked at */
	bool right, attached; /* as in its recording */
	bool of_job;
	char said_job[JOB_SIZE];
	char path[PATH_SIZE];
};

static pid_t parent_of(struct env *env, pid_t pid)
{
	char file[40], text[512];
	const char *at;
	ssize_t n;

	snprintf(file, sizeof(file), "proc/%d/stat", (int)pid);
	n = env_slurp(env, file, text, sizeof(text));
	at = n > 0 ? strrchr(text, ')') : NULL;
	return at && strlen(at) > 4 ? (pid_t)strtol(at + 4, NULL, 10) : 0;
}

static bool is_searched(const struct warn_recorded_search *s, const char *word)
{
	uint64_t pid;

	if (!parse_u64(word, &pid))
		return false;
	for (unsigned i = 0; i < s->nr_pids; i++)
		if (pid == (uint64_t)s->pid[i])
			return true;
	return false;
}

/* Its targets, separated by NULs: "4242", "NAME=4242", "job", "job:17". */
static void take_targets(struct warn_recorded_search *s, const struct pair *targets)
{
	for (size_t from = 0; from < targets->len;) {
		char word[256];
		size_t len = strnlen(targets->value + from, targets->len - from);
		const char *equals;

		snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), targets->value + from);
		equals = strchr(word, '=');
		s->right |= is_searched(s, equals ? equals + 1 : word);
		s->of_job |= str_starts(equals ? equals + 1 : word, "job");
		from += len + 1;
	}
}

static int take_meta(void *arg, enum store_type type, const struct pairs *pairs)
{
	const struct pair *mode = pairs_find(pairs, "mode"), *target = pairs_find(pairs, "target"),
			  *targets = target ? target : pairs_find(pairs, "command"),
			  *job = pairs_find(pairs, "scheduler.job_id");
	struct warn_recorded_search *s = arg;

	if (type != STORE_META)
		return 0;
	if (mode && mode->len == strlen("attach") && !memcmp(mode->value, "attach", mode->len))
		s->attached = true;
	if (targets)
		take_targets(s, targets);
	if (job)
		snprintf(s->said_job, sizeof(s->said_job), "%.*s", (int)MIN(job->len, (size_t)JOB_SIZE - 1),
			job->value);
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

/* A recording begins without a name, and its link goes on to say so ("/runs/#4711 (deleted)"): the name is
 * that of the same file in the same directory. */
static void find_name(struct warn_recorded_search *s, const char *link)
{
	char *slash = strrchr(s->path, '/');
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (!slash || !ends_with(s->path, " (deleted)") || stat(link, &st) < 0)
		return;
	*slash = 0;
	dir = opendir(*s->path ? s->path : "/");
	while (dir && (entry = readdir(dir)))
		if (entry->d_ino == st.st_ino)
			snprintf(slash, sizeof(s->path) - (size_t)(slash - s->path), "/%s", entry->d_name);
	if (dir)
		closedir(dir);
}

/* 1 ends the search: this file is the one. */
static int look_at_file(void *arg, const char *name)
{
	struct warn_recorded_search *s = arg;
	struct store_glance glance;
	char link[60];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%.20s", (int)s->recorder, name);
	n = env_readlink(s->env, link + 1, s->path, sizeof(s->path));
	if (n <= 0 || n >= (ssize_t)sizeof(s->path))
		return 0;
	s->path[n] = 0;
	if (!ends_with(s->path, RECORDING_SUFFIX) && !ends_with(s->path, " (deleted)"))
		return 0;
	s->right = s->attached = s->of_job = false;
	s->said_job[0] = 0;
	if (store_glance(link, take_meta, s, &glance) < 0 || !glance.writing || !s->attached ||
		!(s->job ? s->of_job && !strcmp(s->said_job, s->job) : s->right))
		return 0;
	find_name(s, link);
	return 1;
}

static int look_at_process(void *arg, const char *name)
{
	struct warn_recorded_search *s = arg;
	char file[40], comm[32];
	uint64_t pid;

	if (!parse_u64(name, &pid) || pid > INT32_MAX || (pid_t)pid == getpid())
		return 0;
	snprintf(file, sizeof(file), "proc/%d/comm", (int)pid);
	if (env_slurp(s->env, file, comm, sizeof(comm)) <= 0 || strcmp(comm, "tacho\n") != 0)
		return 0;
	s->recorder = (pid_t)pid;
	snprintf(file, sizeof(file), "proc/%d/fd", (int)pid);
	return env_list(s->env, file, look_at_file, s) == 1;
}

void warn_if_attached(struct env *env, pid_t pid, const char *job)
{
	static struct warn_recorded_search s;

	s = (struct warn_recorded_search){.env = env, .job = job};
	for (pid_t at = pid; at > 0 && s.nr_pids < ANCESTORS_MAX; at = parent_of(env, at))
		s.pid[s.nr_pids++] = at;
	if (env_list(env, "proc", look_at_process, &s) != 1)
		return;
	if (job)
		warning("job %s is already being recorded in %s: it will be in both recordings", job, s.path);
	else
		warning("process %d is already being recorded in %s: it will be in both recordings", (int)pid,
			s.path);
}

void warn_if_recorded(struct env *env, pid_t pid)
{
	char path[1024];

	if (!warn_recorded(env, pid, path, sizeof(path))) {
		if (pid)
			warn_if_attached(env, pid, NULL);
		return;
	}
	if (pid)
		warning("process %d is already being recorded in %s: it will be in both recordings", (int)pid,
			path);
	else
		warning("tacho runs inside a job that is already being recorded in %s: the processes will "
			"be in both recordings",
			path);
}
