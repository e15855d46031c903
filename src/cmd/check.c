/* `tacho check`: is the recording whole, and if not, up to when can it be read and what was lost.
 *
 * It reads everything, as every reader does: what check calls readable is readable. Exit status: 0 all are
 * whole, 1 one is readable but unfinished, incomplete or damaged, 2 one is no recording. */
#include "cmd/cmd.h"

#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "query/meta.h"
#include "query/run.h"
#include "store/store.h"

#include <string.h>
#include <sys/stat.h>

#define LOSSES_MAX 100 /* reported one by one */

extern const struct cmd cmd_check;

struct check_args {
	bool json;
};

static const struct opt check_opts[] = {
	{0, "json", NULL, OPT_FLAG, offsetof(struct check_args, json), .help = "for programs: JSON"},
};

struct loss {
	int64_t after_ns;
	uint64_t bytes, at;
	char reason[100];
};

struct check_finding {
	const char *path;
	int error; /* it cannot be read at all */
	struct store_health health;
	uint32_t nr_gaps;
	uint64_t gap_ticks; /* not recorded before the end */
	const struct write_error *gap_error;
	uint64_t all_ticks;   /* that were taken, by the end mark */
	char write_error[32]; /* why the last ticks were not written; "": they were */
	uint32_t nr_losses;   /* of loss[] */
	struct loss loss[LOSSES_MAX];
};

/* ---- reading ---- */

static void note_ending(struct check_finding *f, const struct pairs *p)
{
	const struct pair *error = pairs_find(p, "write_error");
	int64_t ticks = 0;

	pairs_get_num(p, "ticks", &ticks);
	f->all_ticks = (uint64_t)MAX(ticks, 0);
	if (error)
		snprintf(f->write_error, sizeof(f->write_error), "%.*s", (int)MIN(error->len, (size_t)31),
			error->value);
}

static void note(struct check_finding *f, const struct store_record *rec)
{
	int64_t ticks = 0;

	if (rec->type == STORE_EVENT && !strcmp(rec->kind, "gap")) {
		pairs_get_num(rec->pairs, "ticks", &ticks);
		f->gap_ticks += (uint64_t)MAX(ticks, 0);
		f->nr_gaps++;
		f->gap_error = gap_error_of(rec->pairs);
	}
	if (rec->type == STORE_SUMMARY)
		note_ending(f, rec->pairs);
	if (rec->type != STORE_LOST || f->nr_losses == LOSSES_MAX)
		return;
	struct loss *l = &f->loss[f->nr_losses++];
	*l = (struct loss){.after_ns = rec->time_ns, .bytes = rec->lost_bytes, .at = rec->lost_at};
	snprintf(l->reason, sizeof(l->reason), "%s", rec->reason);
}

static void examine(struct check_finding *f, const char *path)
{
	struct store_reader *r = NULL;
	struct store_record rec;
	int e;

	*f = (struct check_finding){.path = path};
	e = store_open(path, &r);
	while (e >= 0 && (e = store_next(r, &rec)) > 0)
		note(f, &rec);
	f->error = e;
	if (r)
		store_health(r, &f->health);
	store_close(r);
}

/* The recorder noted that ticks are missing: that is no damage. */
static bool is_incomplete(const struct check_finding *f)
{
	return f->gap_ticks || *f->write_error;
}

static bool is_damaged(const struct check_finding *f)
{
	return f->health.damaged > f->nr_gaps || f->health.lost_bytes;
}

static int status_of(const struct check_finding *f)
{
	if (f->error < 0)
		return EXIT_USAGE;
	return f->health.complete && !is_damaged(f) && !is_incomplete(f) ? EXIT_OK : EXIT_TROUBLE;
}

static const char *state_of(const struct check_finding *f)
{
	if (f->error < 0)
		return "none";
	if (is_damaged(f))
		return "damaged";
	if (is_incomplete(f))
		return "incomplete";
	return f->health.complete ? "whole" : "unfinished";
}

/* ---- for people ---- */

static void print_ending(const struct check_finding *f, struct buf *out)
{
	const struct store_health *h = &f->health;
	char bytes[UNITS_SIZE], loss[WRITE_LOSS_SIZE];

	if (*f->write_error)
		buf_addf(out, "  %s\n  to avoid it, %s\n",
			write_loss(loss, f->write_error, h->last_ns,
				f->all_ticks - MIN(f->all_ticks, h->ticks), f->all_ticks),
			write_error_of(f->write_error)->remedy);
	if (h->complete)
		return;
	if (h->writing) {
		buf_adds(out, "  it is being written now\n");
		return;
	}
	buf_adds(out,
		"  its end is missing: the recorder was killed, the machine crashed, the file was cut off, "
		"or "
		"not even the end of the recording could be written\n");
	if (h->tail_bytes)
		buf_addf(out, "  the last block is incomplete: %s of it are in the file\n",
			format_bytes(bytes, (double)h->tail_bytes));
}

static void print_losses(const struct check_finding *f, struct buf *out)
{
	const struct store_health *h = &f->health;
	char a[UNITS_SIZE], b[UNITS_SIZE];

	if (h->lost_bytes)
		buf_addf(out, "  lost: %s of %s\n", format_bytes(a, (double)h->lost_bytes),
			format_bytes(b, (double)h->bytes));
	for (uint32_t i = 0; i < f->nr_losses; i++)
		buf_addf(out, "  after %s, at byte %llu: %s\n",
			format_duration(a, (double)f->loss[i].after_ns * 1e-9),
			(unsigned long long)f->loss[i].at, f->loss[i].reason);
	if (f->nr_losses == LOSSES_MAX)
		buf_adds(out, "  and more\n");
	if (f->gap_ticks)
		buf_addf(out, "  %s tick%s not recorded because %s; to avoid it, %s\n",
			format_count(a, (double)f->gap_ticks), f->gap_ticks == 1 ? " was" : "s were",
			f->gap_error->what, f->gap_error->remedy);
}

static void print_finding(const struct check_finding *f, struct buf *out)
{
	char ticks[UNITS_SIZE], until[UNITS_SIZE], bytes[UNITS_SIZE];
	const struct store_health *h = &f->health;

	escape_bytes(out, f->path, strlen(f->path));
	if (f->error < 0) {
		buf_addf(out, ": %s\n", f->error == -EBADMSG ? "no recording" : strerror(-f->error));
		return;
	}
	format_count(ticks, (double)h->ticks);
	format_duration(until, (double)h->last_ns * 1e-9);
	buf_addf(out, ": %s: %s tick%s up to %s, %s\n", state_of(f), ticks, h->ticks == 1 ? "" : "s", until,
		format_bytes(bytes, (double)h->bytes));
	if (!h->has_schema)
		buf_adds(out, "  no measurement can be read from it\n");
	print_losses(f, out);
	print_ending(f, out);
}

/* ---- for programs ---- */

static void json_finding(const struct check_finding *f, struct json *j)
{
	const struct store_health *h = &f->health;

	json_object(j, NULL);
	json_bytes(j, "file", f->path, strlen(f->path));
	json_str(j, "state", state_of(f));
	if (f->error < 0) {
		json_str(j, "error", f->error == -EBADMSG ? "no recording" : strerror(-f->error));
		json_end_object(j);
		return;
	}
	json_bool(j, "complete", h->complete);
	json_bool(j, "writing", h->writing);
	json_uint(j, "ticks", h->ticks);
	json_num(j, "until_s", (double)h->last_ns * 1e-9);
	json_uint(j, "bytes", h->bytes);
	json_uint(j, "good_bytes", h->good_bytes);
	json_uint(j, "lost_bytes", h->lost_bytes);
	json_uint(j, "tail_bytes", h->tail_bytes);
	json_uint(j, "damaged_places", h->damaged);
	json_uint(j, "gap_ticks", f->gap_ticks);
	json_str(j, "write_error", *f->write_error ? f->write_error : NULL);
	json_array(j, "losses");
	for (uint32_t i = 0; i < f->nr_losses; i++) {
		json_object(j, NULL);
		json_num(j, "after_s", (double)f->loss[i].after_ns * 1e-9);
		json_uint(j, "bytes", f->loss[i].bytes);
		json_uint(j, "at_byte", f->loss[i].at);
		json_str(j, "reason", f->loss[i].reason);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

/* ---- the command ---- */

struct check_report {
	bool as_json;
	struct buf out;
	struct json json;
	int status;
};

static void check_file(struct check_report *p, const char *path)
{
	static struct check_finding f;

	examine(&f, path);
	p->status = MAX(p->status, status_of(&f));
	if (p->as_json)
		json_finding(&f, &p->json);
	else
		print_finding(&f, &p->out);
}

static void check_path(struct check_report *p, const char *path)
{
	struct run *run = NULL;
	struct stat st;
	struct buf err;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		check_file(p, path);
		return;
	}
	buf_init(&err, 8192);
	if ((reading_job() ? run_open_job(&path, 1, reading_job(), &run, &err)
			   : run_open_all(&path, 1, &run, &err)) < 0) {
		error("%s", (char *)err.data);
		p->status = EXIT_USAGE;
	}
	for (size_t i = 0; run && i < run->nr; i++)
		check_file(p, run->path[i]);
	for (size_t i = 0; run && i < run->nr_skipped; i++)
		check_file(p, run->skipped[i]);
	run_close(run);
	buf_release(&err);
}

static int check(const void *args, int argc, char **argv)
{
	const struct check_args *a = args;
	struct check_report p = {.as_json = a->json};
	int printed;

	if (!argc)
		usage(&cmd_check, "no recording given: name a file or a directory");
	progress_show();
	buf_init(&p.out, 64 << 20);
	json_init(&p.json, &p.out, true);
	if (a->json) {
		json_object(&p.json, NULL);
		json_array(&p.json, "files");
	}
	for (int i = 0; i < argc; i++)
		check_path(&p, argv[i]);
	if (a->json) {
		json_end_array(&p.json);
		json_end_object(&p.json);
		buf_addch(&p.out, '\n');
	}
	printed = print(&p.out);
	buf_release(&p.out);
	return p.status ? p.status : printed;
}

const struct cmd cmd_check = {
	.name = "check",
	.synopsis = "[OPTION…] FILE|DIRECTORY…",
	.help = "tell whether a recording is complete, and what can be read",
	.detail = "Reads the recording from start to end and says whether it is whole; if not, up to "
		  "which time it can be read, how much was lost, and whether it is still being written or "
		  "was never finished. All commands can read what is before a damaged place, and what "
		  "follows from the next segment on.\n\nExit status: 0 when all are whole, 1 when one is "
		  "readable but unfinished, incomplete (the disk was full, for instance) or damaged, 2 when "
		  "one is no "
		  "recording.",
	.examples = "$ tacho check run.tacho\n"
		    "  says whether the recording is whole\n"
		    "$ tacho check --json runs/\n"
		    "  all recordings of a directory, for programs\n",
	.opt = check_opts,
	.nr_opts = ARRAY_SIZE(check_opts),
	.group = &reading,
	.args_size = sizeof(struct check_args),
	.operands = "file",
	.run = check,
};
