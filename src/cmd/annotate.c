/* `tacho annotate`: adds phases and events of a log that the job wrote to its recording, in a file beside it.
 */
#include "cmd/cmd.h"

#include "cmd/operands.h"
#include "cmd/reading.h"
#include "query/sidecar.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern const struct cmd cmd_annotate;

#define LOG_MOST ((size_t)256 << 20)

struct annotate_args {
	bool add, remove;
};

static const struct opt annotate_opts[] = {
	{0, "add", NULL, OPT_FLAG, offsetof(struct annotate_args, add), .not_from_env = true,
		.help = "keep what earlier calls added",
		.detail = "Without it the phases and events of FILE take the place of those that an earlier "
			  "call added."},
	{0, "remove", NULL, OPT_FLAG, offsetof(struct annotate_args, remove), .not_from_env = true,
		.help = "remove all that was added; there is no FILE then"},
};

static int read_log(const char *path, struct buf *ret)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n = 1;
	int r = fd < 0 ? -errno : 0;

	if (r >= 0 && !is_stdin && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		r = -EINVAL;
	while (r >= 0 && n > 0) {
		if (!buf_reserve(ret, 1 << 16)) {
			r = ret->err == -ENOMEM ? -ENOMEM : -EFBIG;
			break;
		}
		n = read(fd, ret->data + ret->len, 1 << 16);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			r = -errno;
		else
			ret->len += (size_t)n;
	}
	if (r >= 0)
		ret->data[ret->len] = 0;
	if (!is_stdin && fd >= 0)
		close(fd);
	return r;
}

/* ---- one recording ---- */

static int trouble(const char *recording, int r)
{
	char *path = sidecar_path(recording);

	if (r == -E2BIG || r == -ENOBUFS)
		error("%s: these are more phases and events than a recording can take: %d phases, twice as "
		      "many events, or %d MB in all",
			recording, SIDECAR_NOTES_MOST / 2, (int)(SIDECAR_BYTES_MOST >> 20));
	else if (r == -EEXIST)
		error("%s was not made by tacho annotate, and is left as it is: give it another name",
			path ? path : recording);
	else if (r == -EACCES || r == -EROFS || r == -EPERM)
		error("cannot write %s: %s; the notes stand beside the recording: copy that to a directory "
		      "where you may write",
			path ? path : recording, strerror(-r));
	else
		error("cannot write %s: %s", path ? path : recording, why_not_written(-r));
	free(path);
	return EXIT_TROUBLE;
}

static int remove_notes(const char *recording)
{
	char *path = sidecar_path(recording);
	int r = !path ? -ENOMEM : sidecar_is_foreign(recording) ? -EEXIST : 0;

	if (r >= 0 && unlink(path) < 0 && errno != ENOENT)
		r = -errno;
	free(path);
	return r < 0 ? trouble(recording, r) : EXIT_OK;
}

/* What earlier calls added, where it is kept. */
static int begin_notes(const char *recording, const struct meta *meta, bool add, struct sidecar **ret)
{
	struct buf why;
	int64_t start = 0;
	int r;

	*ret = NULL;
	meta_num(meta, "start_wall_ns", &start);
	buf_init(&why, 4096);
	r = add ? sidecar_read(recording, ret, &why) : 0;
	if (r >= 0 && *ret && !sidecar_is_of(*ret, meta, start)) {
		buf_adds(&why, "belongs to another recording");
		*ret = sidecar_free(*ret);
		r = -EBADMSG;
	}
	if (r < 0 && sidecar_is_foreign(recording)) {
		trouble(recording, -EEXIST);
	} else if (r < 0) {
		char *path = sidecar_path(recording);

		error("%s %s: without --add it is replaced", path ? path : "", (char *)why.data);
		free(path);
	}
	buf_release(&why);
	return r < 0 ? r : *ret ? 0 : sidecar_new(meta, ret);
}

static void tell(const char *recording, const char *log, const struct annotate_counts *c, struct buf *out)
{
	char *path = sidecar_path(recording);

	if (c->left_out == 1)
		warning("%s: line %zu %s: it was left out", log, c->first_line, c->first_why);
	else if (c->left_out)
		warning("%s: %zu lines were left out; the first of them, line %zu, %s", log, c->left_out,
			c->first_line, c->first_why);
	if (c->phases || c->events)
		buf_addf(out, "%s: %zu phase%s and %zu event%s of %s\n", path ? path : "", c->phases,
			c->phases == 1 ? "" : "s", c->events, c->events == 1 ? "" : "s", log);
	free(path);
}

/* `taken` and `other_hosts` are added to. */
static int annotate_one(const char *recording, const char *log, const struct buf *text, bool add,
	size_t *taken, size_t *other_hosts, struct buf *out)
{
	struct meta meta = {0}, ending = {0};
	struct annotate_counts counts;
	struct sidecar *s = NULL;
	int64_t end_ns = INT64_MAX;
	int r = sidecar_meta(recording, &meta, &ending), status = EXIT_OK;

	if (r < 0)
		error("%s: %s", recording, strerror(-r));
	meta_num(&ending, "end_ns", &end_ns);
	if (r >= 0)
		r = begin_notes(recording, &meta, add, &s);
	status = r < 0 ? EXIT_TROUBLE : EXIT_OK;
	if (r >= 0) {
		r = sidecar_annotate(s, (char *)text->data, text->len, end_ns, &counts);
		sidecar_sort(s);
		if (r >= 0 && (counts.phases || counts.events))
			r = sidecar_write(recording, s);
		if (r < 0)
			status = trouble(recording, r);
		else
			tell(recording, log, &counts, out);
		*taken += counts.phases + counts.events;
		*other_hosts += counts.other_hosts;
	}
	sidecar_free(s);
	meta_release(&meta);
	meta_release(&ending);
	return status;
}

/* ---- all ---- */

static struct run *run_named(const char *path)
{
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 8192);
	if (run_open_job(&path, 1, reading_job(), &run, &err) < 0)
		die(EXIT_USAGE, "%s", (char *)err.data);
	buf_release(&err);
	return run;
}

static int annotate_run(const struct run *run, const char *log, bool add)
{
	struct buf text, out;
	size_t taken = 0, other_hosts = 0;
	int r, status = EXIT_OK;

	buf_init(&text, LOG_MOST);
	buf_init(&out, 1 << 24);
	r = read_log(log, &text);
	if (r == -EINVAL)
		die(EXIT_USAGE, "%s is not a regular file; a pipe is read as standard input: -", log);
	if (r < 0)
		die(EXIT_USAGE, "%s: %s", log, strerror(-r));
	for (size_t i = 0; i < run->nr && !status; i++)
		status = annotate_one(run->path[i], log, &text, add, &taken, &other_hosts, &out);
	if (!status && !taken) {
		error("%s has no phases or events of this run%s: nothing was changed", log,
			other_hosts ? " (there are some of other hosts)" : "");
		status = EXIT_TROUBLE;
	}
	r = print_shown(&out);
	buf_release(&text);
	buf_release(&out);
	return status ? status : r;
}

static int annotate(const void *args, int argc, char **argv)
{
	const struct annotate_args *a = args;
	struct run *run;
	int status = EXIT_OK;

	if (a->remove && (a->add || argc != 1))
		usage(&cmd_annotate, "--remove takes a recording and nothing else");
	if (!a->remove && argc != 2)
		usage(&cmd_annotate,
			"name a recording and a log of its job: tacho annotate job.tacho log.jsonl");
	run = run_named(argv[0]);
	for (size_t i = 0; a->remove && i < run->nr && !status; i++)
		status = remove_notes(run->path[i]);
	if (!a->remove)
		status = annotate_run(run, argv[1], a->add);
	run_close(run);
	return status;
}

const struct cmd cmd_annotate = {
	.name = "annotate",
	.synopsis = "[OPTION…] FILE|DIRECTORY LOG.jsonl",
	.help = "add phases and events of a log that the job wrote",
	.detail = "LOG.jsonl (- is standard input) has a JSON object a line: {\"type\": \"phase\", \"name\", "
		  "\"ts\", \"seconds\"}, where ts is the end, or \"start\" and \"end\" (also \"begin\") "
		  "instead; "
		  "{\"type\": \"event\", \"event\", \"ts\", \"data\"}. Times are ISO-8601 (UTC where no zone "
		  "is "
		  "given) or seconds since 1970. Other keys become data.\n\nThe recording itself is not "
		  "changed: "
		  "job.notes.jsonl beside job.tacho has what was added, and every command that reads the "
		  "recording shows it like phases and marks that were recorded. Of a run on several nodes a "
		  "line "
		  "with \"host\" goes to that node, any other to all.",
	.examples = "$ tacho annotate job.tacho train-log.jsonl\n    Phases of the job's own log.\n"
		    "$ tacho annotate --remove job.tacho\n    As it was recorded.\n",
	.opt = annotate_opts,
	.nr_opts = ARRAY_SIZE(annotate_opts),
	.group = &reading,
	.args_size = sizeof(struct annotate_args),
	.operands = "file",
	.run = annotate,
};
