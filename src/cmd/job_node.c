/* The recorder of one node of a job: an attachment that begins before there is anything to record and ends
 * when the launcher says so.
 *
 * It ends when the launcher says that the job is over, or is gone itself; when the file `control` says
 * FINISHED; or at a signal. A node without processes is recorded as empty: they may come with the next step.
 */
#include "cmd/job.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "query/meta.h"
#include "query/run_about.h"
#include "target/job_line.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Where the launcher speaks by files it is gone when it has said nothing for so long: it asks for the time
 * every minute. */
#define SILENCE_NS (300 * NSEC_PER_SEC)
#define LOCK_TRIES 30
#define LOCK_WAIT_NS (100 * NSEC_PER_MSEC)
/* Files are looked at at least so often, whatever the interval. */
#define LOOK_NS (500 * NSEC_PER_MSEC)

struct job_node {
	struct job_line line;
	char host[HOST_NAME_SIZE];
	const char *target;
	bool job_ended, said_over;
	int64_t heard_ns;
};

#define SAY(n, fmt, ...) job_line_say(&(n)->line, "tacho %s " fmt, (n)->host, ##__VA_ARGS__)

int job_node_fd(const struct recording *r)
{
	return r->node && !r->node->line.closed ? r->node->line.in : -1;
}

int64_t job_node_wait(const struct recording *r, int64_t until)
{
	return r->node && r->node->line.in_path ? MIN(until, env_now(r->env, ENV_MONOTONIC) + LOOK_NS)
						: until;
}

void job_node_hear(struct recording *r)
{
	struct job_node *n = r->node;
	const char *line;

	while ((line = job_line_next(&n->line))) {
		unsigned long long number;

		n->heard_ns = env_now(r->env, ENV_MONOTONIC);
		if (sscanf(line, "clock %llu", &number) == 1)
			SAY(n, "clock %llu %lld", number, (long long)env_now(r->env, ENV_REALTIME));
		else if (!strcmp(line, "end"))
			n->job_ended = true;
	}
	n->job_ended |= n->line.closed;
}

void job_node_began(struct recording *r)
{
	if (r->node)
		SAY(r->node, "recording");
}

const char *job_node_ended(struct recording *r, bool only_waits)
{
	struct job_node *n = r->node;

	if (n->line.in_path) {
		job_node_hear(r);
		n->job_ended |= env_now(r->env, ENV_MONOTONIC) - n->heard_ns > SILENCE_NS;
	}
	if (only_waits && !n->said_over) {
		n->said_over = true;
		SAY(n, "over");
	}
	return n->job_ended ? "attach-end" : NULL;
}

/* ---- beginning ---- */

static void add_tag(struct record_options *o, const char *key, const char *value, char *text, size_t size)
{
	if (!value || o->tag.nr == OPT_LIST_MAX)
		return;
	snprintf(text, size, "%s=%s", key, value);
	o->tag.item[o->tag.nr++] = text;
}

/* A recorder that was killed has left its recording: the next one is HOST-2.tacho. This node has one recorder
 * at a time. */
static void choose_number(const struct job_args *a, const struct job_node *n, char *ret, size_t size)
{
	char path[PATH_MAX + HOST_NAME_SIZE + 32];

	*ret = 0;
	for (unsigned i = 2; i < 1000; i++) {
		snprintf(path, sizeof(path), "%s/nodes/%s%s.tacho", a->on_node, n->host, ret);
		if (access(path, F_OK) < 0)
			return;
		snprintf(ret, size, "-%u", i);
	}
}

static void set_options(const struct job_args *a, const struct job_node *n, struct record_options *o)
{
	static char control[PATH_MAX + 32], tag[3][1024];
	static struct buf path;
	char number[16];

	*o = a->record;
	choose_number(a, n, number, sizeof(number));
	buf_init(&path, 4 * PATH_MAX);
	for (const char *p = a->on_node; *p; p++) /* a brace in the path stands for itself */
		buf_addf(&path, *p == '{' || *p == '}' ? "%c%c" : "%c", *p, *p);
	buf_addf(&path, "/nodes/%s%s.tacho", n->host, number);
	o->output = path.err ? "" : (char *)path.data;
	snprintf(control, sizeof(control), "%s/" JOB_CONTROL, a->on_node);
	o->until_file = control;
	o->quiet = true;
	o->summary = false;
	if (a->checkpoint_ns)
		o->flush_ns = a->checkpoint_ns;
	add_tag(o, "system", a->system, tag[0], sizeof(tag[0]));
	add_tag(o, "partition", a->partition, tag[1], sizeof(tag[1]));
	add_tag(o, "env", a->software, tag[2], sizeof(tag[2]));
}

/* Our own step was granted what we asked for: in its place stands what the job was granted. */
static void take_granted(const struct job_args *a)
{
	const char *name;

	for (size_t i = 0; (name = job_granted_variable(i)); i++) {
		size_t len = strlen(name);

		for (unsigned k = 0; k < a->granted.nr; k++) {
			const char *item = a->granted.item[k];

			if (!strncmp(item, name, len) && item[len] == '=')
				setenv(name, item + len + 1, true);
		}
	}
}

/* A list may have node1.site where the node calls itself node1, or the other way round: the name of the list,
 * where only one is meant. */
static void name_as_expected(const struct job_args *a, struct job_node *n)
{
	struct run_about *about = NULL;
	const char *found = NULL;
	size_t brief = strcspn(n->host, "."), nr = 0;

	if (about_read(a->on_node, &about, NULL) < 0)
		return;
	for (size_t i = 0; i < about->nr_nodes; i++) {
		const char *name = about->node[i];
		bool same = !strcmp(name, n->host);

		if (!same && (strcspn(name, ".") != brief || strncmp(name, n->host, brief) != 0))
			continue;
		found = name;
		nr = same ? 1 : nr + 1;
		if (same)
			break;
	}
	if (nr == 1 && host_name_valid(found, strlen(found)))
		snprintf(n->host, sizeof(n->host), "%s", found);
	about_free(about);
}

/* As the batch system calls it. mpirun may pass on the environment of the node that it was started on. */
static void set_host(const struct job_args *a, struct job_node *n)
{
	const char *slurm = a->by_files ? NULL : getenv("SLURMD_NODENAME");

	if (a->node_name)
		snprintf(n->host, sizeof(n->host), "%s", a->node_name);
	else if (slurm && host_name_valid(slurm, strlen(slurm)))
		snprintf(n->host, sizeof(n->host), "%s", slurm);
	else
		gethostname(n->host, sizeof(n->host) - 1);
	if (!a->node_name)
		name_as_expected(a, n);
}

static void open_line(const struct job_args *a, struct job_node *n)
{
	char in[PATH_MAX + 64], out[PATH_MAX + HOST_NAME_SIZE + 64];
	int e;

	if (!a->by_files) {
		/* Descriptors of their own: what else we print goes to the same place, and may wait. */
		job_line_open(&n->line, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
			fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
		return;
	}
	snprintf(in, sizeof(in), "%s/" JOB_LAUNCHER_LINES, a->on_node);
	snprintf(out, sizeof(out), "%s/clock/%s.lines", a->on_node, n->host);
	e = job_line_open_files(&n->line, in, out);
	if (e < 0)
		die(EXIT_OWN, "cannot make %s: %s", out, strerror(-e));
}

/* The recording is called after the job's command, if that is known. */
static void begin(
	struct recording *r, const struct job_args *a, const struct record_options *o, int argc, char **argv)
{
	static char target[192];
	static char *targets[] = {target, NULL};
	struct buf err;
	int e;

	snprintf(target, sizeof(target), a->job_id ? "job:%s" : "job", a->job_id);
	r->node->target = target;
	record_prepare(r, &cmd_job, o, true, argc ? argc : 1, argc ? argv : targets);
	buf_init(&err, 4096);
	r->scopes.expects = true;
	e = scopes_add(&r->scopes, target, &err);
	if (e == 0)
		e = scope_open(&r->scopes, 0, &err);
	if (e < 0)
		die(EXIT_OWN, "%s", err.len ? (char *)err.data : strerror(-e));
	buf_release(&err);
	r->until_file = o->until_file;
	record_open(r);
	command_privileges(&r->command);
	engine_scan(r->engine);
	record_start(r);
}

const char *job_node_target(const struct recording *r)
{
	return r->node ? r->node->target : NULL;
}

int job_node_run(const struct job_args *a, int argc, char **argv)
{
	static struct recording r; /* reachable to the end, as in attach.c */
	static struct job_node n;
	static struct record_options o;
	struct node_lock lock;
	int e = 0;
	char name[512];

	for (int i = 0; i < argc; i++)
		argv[i] = job_word_of_command(argv[i]);
	set_host(a, &n);
	take_granted(a);
	open_line(a, &n);
	n.heard_ns = job_now();
	SAY(&n, "hello");
	if (a->job_id)
		snprintf(name, sizeof(name), "job-%.150s-%.255s", a->job_id, n.host);
	else
		snprintf(name, sizeof(name), "job-%016llx-%.255s",
			(unsigned long long)hash_bytes(a->on_node, strlen(a->on_node)), n.host);
	/* One that was told to end, or killed, may be about to go. */
	for (unsigned i = 0; i < LOCK_TRIES && (e = node_lock_take(&lock, name)) == -EBUSY; i++)
		nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
	if (e == -EBUSY) {
		SAY(&n,
			"log warning this job is being recorded on this node already, by another tacho: this "
			"one ends");
		return EXIT_OK;
	}
	set_options(a, &n, &o);
	r.node = &n;
	begin(&r, a, &o, argc, argv);
	record_loop(&r);
	record_report(&r);
	if (r.sink.error)
		SAY(&n, "incomplete %s", write_error_of(strerrorname_np(-r.sink.error))->what);
	else
		SAY(&n, "ended");
	node_lock_release(&lock);
	return EXIT_OK;
}
