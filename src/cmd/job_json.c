/* run.json: which nodes a run has, what was run and how it ended. docs/nodes.md describes it. */
#include "cmd/job.h"

#include "base/json.h"
#include "base/redact.h"
#include "base/units.h"

#include <string.h>

size_t job_command_words(const struct job_run *run, char *ret, size_t size)
{
	struct redact *redact = NULL;
	size_t len = 0;
	struct buf err;

	buf_init(&err, 4096);
	if (record_redact(&run->args->record, &redact, &err) < 0)
		redact = NULL;
	for (int i = 0; i < run->argc; i++) {
		size_t n = strlen(run->argv[i]) + 1;

		if (len + n > size / 2) /* stars may be longer than the secret */
			break;
		memcpy(ret + len, run->argv[i], n);
		len += n;
	}
	if (len)
		len = redact ? MIN(redact_line(redact, ret, len, size - 1), size - 1) : 0;
	ret[len] = 0;
	redact_free(redact);
	buf_release(&err);
	return len;
}

static void add_time(struct json *j, const char *key, const char *key_ns, int64_t wall_ns)
{
	char text[UNITS_SIZE];

	json_int(j, key_ns, wall_ns);
	json_str(j, key, format_iso8601(text, wall_ns));
}

static void add_labels(struct json *j, const struct job_args *a)
{
	json_object(j, "labels");
	if (a->system)
		json_name(j, "system", a->system);
	if (a->partition)
		json_name(j, "partition", a->partition);
	if (a->software)
		json_name(j, "env", a->software);
	json_end_object(j);
}

static bool add_variable(struct json *j, const struct job_run *run, const char *key, const char *variable)
{
	const char *value = env_getenv(run->env, variable);

	if (!value || !*value)
		return false;
	json_name(j, key, value);
	return true;
}

static void add_job(struct json *j, const struct job_run *run)
{
	if (run->name.id[0]) {
		json_str(j, "job", run->name.id);
		json_str(j, "scheduler", scheduler_name(run->name.kind));
	}
	add_variable(j, run, "array_job", "SLURM_ARRAY_JOB_ID");
	add_variable(j, run, "array_task", "SLURM_ARRAY_TASK_ID");
	if (!add_variable(j, run, "het_job", "SLURM_HET_JOB_ID"))
		add_variable(j, run, "het_job", "SLURM_JOB_ID_HET_GROUP_0"); /* in the job's script */
	if (run->args->record.name)
		json_name(j, "name", run->args->record.name);
	else
		add_variable(
			j, run, "name", run->name.kind == SCHEDULER_PBS ? "PBS_JOBNAME" : "SLURM_JOB_NAME");
	add_variable(j, run, "user", "USER");
}

static void add_missing(struct json *j, const struct job_run *run)
{
	json_array(j, "missing");
	for (size_t i = 0; i < run->hosts.nr; i++) {
		if (run->node[i].state == NODE_ENDED)
			continue;
		json_object(j, NULL);
		json_str(j, "node", run->node[i].name);
		json_str(j, "why",
			run->node[i].why ? run->node[i].why : "its recorder has not said that it ended");
		json_end_object(j);
	}
	json_end_array(j);
}

/* Without what is known to be a secret, as in recordings. */
static void add_command(struct json *j, const struct job_run *run)
{
	static char line[REDACT_LINE_MAX];
	size_t len = job_command_words(run, line, sizeof(line));

	json_array(j, "command");
	for (size_t at = 0; at < len; at += strlen(line + at) + 1)
		json_name(j, NULL, line + at);
	json_end_array(j);
}

int job_json_write(struct job_run *run, bool ended, int status)
{
	struct buf text;
	struct json j;
	int r;

	buf_init(&text, 64 << 20);
	json_init(&j, &text, true);
	json_object(&j, NULL);
	json_str(&j, "format", "tacho-run");
	json_int(&j, "version", 1);
	add_job(&j, run);
	json_array(&j, "nodes");
	for (size_t i = 0; i < run->hosts.nr; i++)
		json_str(&j, NULL, run->hosts.name[i]);
	json_end_array(&j);
	json_str(&j, "launcher", job_launcher_name_of(run));
	if (run->argc)
		add_command(&j, run);
	add_labels(&j, run->args);
	add_time(&j, "started", "start_wall_ns", run->start_wall_ns);
	if (ended) {
		add_time(&j, "ended", "end_wall_ns", job_wall());
		if (run->argc)
			json_int(&j, "exit_status", status);
		add_missing(&j, run);
	}
	json_end_object(&j);
	buf_addch(&text, '\n');
	r = job_directory_write(&run->directory, "run.json", &text);
	buf_release(&text);
	return r;
}
