/* tacho attach: records processes that run already, or will, chosen by targets. */
#include "cmd/background.h"
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/warn_recorded.h"

#include "base/str.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

extern const struct cmd cmd_attach;

/* So long a batch job that has no processes yet is waited for. What is not there is tried so often again, but
 * at this interval at least. */
#define JOB_WAIT_NS (20 * NSEC_PER_SEC)
#define TRIES_LEAST 4
#define TRY_NS NSEC_PER_SEC

struct attach_args {
	struct record_options record;
	struct opt_list pid;
	const char *wait; /* as given; NULL: as the target needs */
	bool background, until_exit;
};

static const struct opt attach_opts[] = {
	{'p', "pid", "PID", OPT_LIST, offsetof(struct attach_args, pid), .not_from_env = true,
		.help = "a process and its descendants, as the target PID; may be repeated"},
	{0, "wait", "TIME", OPT_TEXT, offsetof(struct attach_args, wait), .not_from_env = true,
		.help = "how long to wait for a target that does not exist yet",
		.detail = "Default: match: waits without limit, a job for 20 s, the "
			  "others not at all. 0 means not at all."},
	{0, "until-exit", NULL, OPT_FLAG, offsetof(struct attach_args, until_exit), .not_from_env = true,
		.help = "stop when the processes named by PID have ended",
		.detail = "Without it the recording goes on until the last of their descendants has ended."},
	{0, "background", NULL, OPT_FLAG, offsetof(struct attach_args, background), .not_from_env = true,
		.help = "return when recording has begun, which goes on",
		.detail = "The recorder goes on in a session of its own, without summary and messages, until "
			  "it ends as above. Three lines on standard output say which it is: "
			  "TACHO_RECORDING=FILE; TACHO_SOCKET=PATH, where it hears phases and marks of the "
			  "processes once they have that in their environment (docs/marks.md); and "
			  "TACHO_RECORDER=PID, which SIGTERM ends. The exit status is 0 when it records."},
};

static int64_t wait_ns(const struct attach_args *a, int64_t preset)
{
	int64_t ns = preset;

	if (!a->wait)
		return preset;
	if (!strcmp(a->wait, "0"))
		return 0;
	if (parse_interval(a->wait, &ns) < 0)
		usage(&cmd_attach, "--wait takes a time as 30s or 5m, not '%s'", a->wait);
	return ns;
}

static int status_of(int e)
{
	return is_refused(e) ? EXIT_DENIED : e == -ENODATA ? EXIT_ENDED : EXIT_TROUBLE;
}

/* A word that is no target is the name of a program: its processes that run now, together in one group. */
static bool is_program_name(const char *word)
{
	return strlen(word) <= 64 && (isalpha((unsigned char)*word) || *word == '_') &&
		strcmp(word, "job") != 0 && strcmp(word, "system") != 0 && !strpbrk(word, ":=/ \t\n");
}

/* Of the process: what the kernel has as its name, cut to 15 bytes. */
static bool has_name(const char *pid, const char *name)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		*text = 0;
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	return *text && !strncmp(text, name, 15) && strlen(text) == MIN(strlen(name), (size_t)15);
}

/* How many were added. */
static unsigned add_by_name(struct recording *r, const char *name)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	unsigned nr = 0;
	struct buf err;

	buf_init(&err, 4096);
	while (proc && (entry = readdir(proc))) {
		char target[100];
		uint64_t pid;

		if (!parse_u64(entry->d_name, &pid) || pid == (uint64_t)getpid() ||
			!has_name(entry->d_name, name))
			continue;
		snprintf(target, sizeof(target), "%.64s=%.20s", name, entry->d_name);
		if (scopes_add(&r->scopes, target, &err) < 0)
			usage(&cmd_attach, "%s: more processes than can be watched one by one; try match:%s",
				name, name);
		nr++;
	}
	if (proc)
		closedir(proc);
	buf_release(&err);
	return nr;
}

static void add_scopes(struct recording *r, int argc, char **argv)
{
	struct buf err;

	buf_init(&err, 4096);
	for (int i = 0; i < argc; i++) {
		int e;

		if (is_program_name(argv[i])) {
			if (!add_by_name(r, argv[i]))
				die(EXIT_TROUBLE,
					"no process is called '%s'; targets are a process id, the name of a "
					"program "
					"that runs, match:REGEX, user:NAME, cgroup:PATH, container:ID, "
					"job[:ID] and system",
					argv[i]);
			continue;
		}
		e = scopes_add(&r->scopes, argv[i], &err);

		if (e == -ENOENT)
			die(EXIT_TROUBLE, "%s", (char *)err.data);
		if (e < 0)
			usage(&cmd_attach, "%s", (char *)err.data);
	}
	buf_release(&err);
}

/* Finds what the scope names; waits for it if that is useful. */
static void open_scope(struct recording *r, const struct attach_args *a, unsigned i)
{
	bool is_job = r->scopes.scope[i].kind == SCOPE_JOB;
	int64_t wait = wait_ns(a, is_job ? JOB_WAIT_NS : 0);
	int64_t now = env_now(r->env, ENV_MONOTONIC), until = now + wait;
	int64_t step = MIN(TRY_NS, MAX(wait / TRIES_LEAST, 1));
	bool told = false;
	struct buf err;
	int e;

	/* Tries are counted from the first one's beginning, and the last is when the time is over. */
	for (;; now = MIN(now + step, until)) {
		buf_init(&err, 4096);
		env_sleep_until(r->env, now);
		e = scope_open(&r->scopes, i, &err);
		/* With --wait, being in no job may change too, when a launcher is about to start. */
		if ((e != -ESRCH && !(e == -ENOENT && a->wait)) || now >= until)
			break;
		if (!r->opt->quiet && !told)
			warning("%s; trying again for %.3g s", (char *)err.data, (double)wait / 1e9);
		told = true;
		buf_release(&err);
	}
	if (e < 0)
		die(status_of(e), "%s", err.len ? (char *)err.data : strerror(-e));
	buf_release(&err);
}

/* For a batch job: the file that its script makes when it has finished. */
static void choose_until_file(struct recording *r)
{
	static char path[160];

	r->until_file = r->opt->until_file;
	for (unsigned i = 0; i < r->scopes.nr && !r->until_file; i++) {
		const struct scope *scope = &r->scopes.scope[i];

		if (!scope->job || strchr(job_name(scope->job)->id, '/'))
			continue;
		snprintf(path, sizeof(path), ".ipc-%s", job_name(scope->job)->id);
		r->until_file = path;
	}
}

static void find_members(struct recording *r, const struct attach_args *a)
{
	int64_t wait = wait_ns(a, r->scopes.by_cmdline ? INT64_MAX / 2 : 0);
	int64_t now = env_now(r->env, ENV_MONOTONIC), until = MIN(now + wait, INT64_MAX / 2);

	for (unsigned i = 0; i < r->scopes.nr; i++)
		if (r->scopes.scope[i].kind == SCOPE_PID)
			record_attach(r, r->scopes.scope[i].pid, r->scopes.scope[i].group);
	engine_scan(r->engine);
	if (r->opt->duration_ns)
		until = MIN(until, now + r->opt->duration_ns);
	if (record_wait_for_members(r, until))
		return;
	if (r->others_hidden)
		die(EXIT_DENIED,
			"nothing was recorded: no process matched. Processes of other users are hidden "
			"from this user");
	if (!scopes_end(&r->scopes))
		die(EXIT_TROUBLE, "nothing was recorded: no process matched");
	die(EXIT_ENDED, "%s ended before anything could be recorded",
		r->scopes.nr > 1 ? "the targets" : r->targets[0]);
}

/* Those of -p, then the operands. */
static char **all_targets(const struct attach_args *a, int *argc, char **argv)
{
	char **all = calloc((size_t)*argc + a->pid.nr + 1, sizeof(*all));
	int nr = 0;

	if (!all)
		die(EXIT_OWN, "no memory");
	for (unsigned i = 0; i < a->pid.nr; i++) {
		if (!*a->pid.item[i] || a->pid.item[i][strspn(a->pid.item[i], "0123456789")])
			usage(&cmd_attach, "--pid takes the number of a process, not '%s'", a->pid.item[i]);
		all[nr++] = (char *)a->pid.item[i];
	}
	for (int i = 0; i < *argc; i++)
		all[nr++] = argv[i];
	*argc = nr;
	return all;
}

static int attach(const void *args, int argc, char **argv)
{
	const struct attach_args *a = args;
	static struct recording r; /* reachable to the end, and released by the kernel, as in run.c */
	pid_t caller = 0;

	argv = all_targets(a, &argc, argv);
	if (!argc)
		usage(&cmd_attach,
			"no target given: name a process id, a program that runs, match:REGEX, user:NAME, "
			"cgroup:PATH, container:ID, job[:ID] or system");
	if (a->background)
		caller = background_enter();
	record_prepare(&r, &cmd_attach, &a->record, true, argc, argv);
	wait_ns(a, 0);
	add_scopes(&r, argc, argv);
	for (unsigned i = 0; i < r.scopes.nr; i++)
		open_scope(&r, a, i);
	choose_until_file(&r);
	for (unsigned i = 0; i < r.scopes.nr && !a->record.quiet; i++) {
		const struct scope *scope = &r.scopes.scope[i];

		if (scope->kind == SCOPE_PID)
			warn_if_recorded(r.env, scope->pid);
		else if (scope->job)
			warn_if_attached(r.env, 0, job_name(scope->job)->id);
	}
	record_open(&r);
	command_privileges(&r.command);
	if (a->background) {
		engine_leave_out(r.engine, caller);
		r.began = background_announce;
	}
	r.until_exit = a->until_exit;
	find_members(&r, a);
	record_start(&r);
	if (a->background)
		record_listen(&r);
	record_loop(&r);
	if (!a->background)
		record_report(&r);
	return EXIT_OK;
}

const struct cmd cmd_attach = {
	.name = "attach",
	.synopsis = "[OPTION…] TARGET…",
	.help = "record processes that are running, or start later",
	.detail = "Samples the processes that each TARGET names, from now on, without changing them. Each "
		  "target is a separate group in the recording, and a process belongs to every group it "
		  "matches.\n\nPID: that process and its descendants.\n\nNAME: the processes of that "
		  "program that run now, each with its descendants.\n\nmatch:REGEX: processes by their "
		  "command line, also those that start later. The part in the first parentheses, or else "
		  "the whole match, is the name of the tool, and each tool is a group. Nothing is written "
		  "before the first match.\n\nuser:NAME: the processes of a user; user: without a name "
		  "means your own.\n\ncgroup:PATH: those of a control group and the groups below it.\n\n"
		  "container:ID: those of a container, found by the path of its control group.\n\njob: "
		  "those of the SLURM, PBS or OAR job in which tacho runs, on this node; job:ID: those of "
		  "another job.\n\nsystem: all processes.\n\nNAME=TARGET: any of these; NAME becomes the "
		  "name of its group. Targets with the same name are one group.\n\nThe recording ends when "
		  "the last of the processes ends, after --duration, by --until-file, or at a signal "
		  "(Ctrl-C). Targets that may find new processes at any time (match:, user:, system) never "
		  "end by themselves. What a process used before that is not counted.\n\nThe exit status is "
		  "0 when something was recorded, 1 when there is no such target, 3 when it is hidden from "
		  "this user, 4 when it ended before anything could be recorded, 125 when tacho itself "
		  "failed.",
	.examples =
		"$ tacho attach 4242\n    Watch a running job until it ends.\n$ tacho attach python3\n    "
		"The Python programs that run now.\n$ tacho attach "
		"--duration 1m -i 10Hz 4242 4250\n    Two processes for one minute, ten samples a "
		"second.\n$ tacho attach 'match:(gcc|cc1|ld|make)'\n    What each of these tools "
		"uses, until Ctrl-C.\n$ tacho attach job &\n    In a job script: "
		"the job's processes on this node; see tacho job.\n",
	.opt = attach_opts,
	.nr_opts = ARRAY_SIZE(attach_opts),
	.shared = record_opts,
	.nr_shared = NR_RECORD_OPTS,
	.args_size = sizeof(struct attach_args),
	.usage_status = EXIT_OWN,
	.measures = true,
	.operands = "pid",
	.run = attach,
};
