/* From operands to recordings.
 *
 * A file that the user named must be a recording. In a directory other files may lie about under our suffix
 * (a copy that broke off before its first byte): they are skipped, and the caller can say so.
 *
 * A directory may be that of a run, hold one, or hold recordings. What belongs to several jobs is not added:
 * the user is told which there are. */
#include "query/run.h"

#include "base/idmap.h"
#include "base/owned.h"
#include "query/align.h"
#include "query/run_about.h"
#include "query/run_directory.h"
#include "store/store.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool run_has_suffix(const char *name)
{
	size_t n = strlen(name), suffix = strlen(RECORDING_SUFFIX);

	return n > suffix && *name != '.' && !strcmp(name + n - suffix, RECORDING_SUFFIX);
}

static int is_recording(const struct dirent *entry)
{
	return run_has_suffix(entry->d_name);
}

/* A file named twice, or by itself and by its directory, is still one recording. */
struct run_files {
	struct file {
		dev_t device;
		ino_t inode;
	} * file;
	size_t nr;
	struct idmap by_hash;
};

static void files_release(struct run_files *f)
{
	free(f->file);
	idmap_release(&f->by_hash);
}

/* 1: it is new, 0: it was there. */
static int files_add(struct run_files *f, const struct stat *st)
{
	uint64_t key = st->st_ino ^ st->st_dev << 40;
	struct file *file;
	uint32_t i;

	for (; (i = idmap_get(&f->by_hash, key)) != IDMAP_NONE; key++)
		if (f->file[i].device == st->st_dev && f->file[i].inode == st->st_ino)
			return 0;
	if (idmap_put(&f->by_hash, key, (uint32_t)f->nr) < 0)
		return -ENOMEM;
	file = ARRAY_ADD(f->file, f->nr);
	if (!file)
		return -ENOMEM;
	*file = (struct file){st->st_dev, st->st_ino};
	return 1;
}

static int take_file(struct run *run, struct run_files *files, const char *path)
{
	struct stat st;
	int r = stat(path, &st) < 0 ? 1 : files_add(files, &st);

	return r > 0 ? texts_take(&run->path, &run->nr, strdup(path)) : r;
}

int recording_probe(const char *path)
{
	struct store_reader *reader = NULL;
	int r = store_open(path, &reader);

	if (r >= 0)
		store_close(reader);
	return r;
}

#define NAMED_MAX 3 /* of those that cannot be opened: beyond it, how many */

static void add_why(struct buf *out, int error)
{
	if (error == -EBADMSG)
		buf_adds(out, "is not a recording");
	else
		buf_addf(out, "cannot be opened: %s", strerror(-error));
}

static int skip_for(struct run *run, const char *path, const char *why)
{
	int r = texts_take(&run->skipped, &run->nr_skipped, strdup(path));

	return r < 0 ? r : texts_take(&run->skipped_why, &run->nr_skipped_why, strdup(why));
}

static int skip(struct run *run, const char *path, int error)
{
	struct buf why;
	int r;

	buf_init(&why, 1024);
	add_why(&why, error);
	r = skip_for(run, path, (char *)why.data);
	buf_release(&why);
	return r;
}

/* Why the directory has nothing to show: of those from `first` on, none can be opened. */
static void add_nothing(struct buf *out, const struct run *run, size_t first, const char *directory)
{
	size_t nr = run->nr_skipped - first;

	if (!nr) {
		buf_addf(out, "there is no recording (*%s) in %s", RECORDING_SUFFIX,
			strcmp(directory, ".") ? directory : "this directory");
		return;
	}
	buf_addf(out, "none of the files *%s in %s can be read: ", RECORDING_SUFFIX,
		strcmp(directory, ".") ? directory : "this directory");
	for (size_t i = first; i < run->nr_skipped && i < first + NAMED_MAX; i++)
		buf_addf(out, "%s%s %s", i > first ? "; " : "", run->skipped[i], run->skipped_why[i]);
	if (nr > NAMED_MAX)
		buf_addf(out, "; and %zu more", nr - NAMED_MAX);
}

/* Recordings of a directory that is not a run's own: they may be of several jobs. */
struct flat_directory {
	const char *path;
	size_t from, to; /* of run->path */
};

struct run_opening {
	struct run *run;
	struct run_files files;
	const char *job; /* NULL: any */
	bool all;	 /* of whatever jobs */
	struct flat_directory *flat;
	size_t nr_flat;
	struct buf *reterr;
};

static int add_recordings(struct run_opening *o, const char *path, char *const *name, size_t nr)
{
	size_t skipped = o->run->nr_skipped;
	bool found = false;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		_cleanup_(freep) char *full = NULL;
		int error;

		if (asprintf(&full, "%s/%s", path, name[i]) < 0) {
			full = NULL;
			return -ENOMEM;
		}
		error = recording_probe(full);
		if (error < 0) {
			r = skip(o->run, full, error);
		} else {
			found = true;
			r = take_file(o->run, &o->files, full);
		}
	}
	if (r >= 0 && !found) {
		r = -ENOENT;
		add_nothing(o->reterr, o->run, skipped, path);
	}
	return r;
}

/* What is wrong with run.json is told with what else was left out. */
static int add_about(struct run_opening *o, const char *path)
{
	struct buf why;
	char *file = NULL;
	int r;

	about_free(o->run->about);
	o->run->about = NULL;
	buf_init(&why, 1024);
	r = about_read(path, &o->run->about, &why);
	if (r != -ENOMEM)
		r = 0;
	if (why.len && r >= 0 && asprintf(&file, "%s/" RUN_FILE, path) < 0)
		r = -ENOMEM;
	if (why.len && r >= 0)
		r = skip_for(o->run, file, (char *)why.data);
	free(file);
	buf_release(&why);
	return r;
}

static int add_run(struct run_opening *o, const char *path)
{
	_cleanup_(freep) char *nodes = run_directory_nodes(path);
	char **name = NULL;
	size_t nr = 0;
	int r = nodes ? add_about(o, path) : -ENOMEM;

	if (r >= 0)
		r = recordings_in(nodes, &name, &nr);
	if (r == -ENOENT) /* none began yet */
		r = 0;
	if (r >= 0)
		r = add_recordings(o, nodes, name, nr);
	else
		buf_addf(o->reterr, "%s: %s", nodes ? nodes : path, strerror(-r));
	texts_free(name, nr);
	return r;
}

static int add_flat(struct run_opening *o, const char *path, char *const *name, size_t nr)
{
	struct flat_directory *flat = ARRAY_ADD(o->flat, o->nr_flat);
	size_t from = o->run->nr;
	int r = flat ? add_recordings(o, path, name, nr) : -ENOMEM;

	if (r >= 0)
		*flat = (struct flat_directory){path, from, o->run->nr};
	return r;
}

static int add_runs_in(struct run_opening *o, const char *path)
{
	char **run = NULL;
	size_t nr = 0;
	int r = run_directories_in(path, &run, &nr);

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = add_run(o, run[i]);
	texts_free(run, nr);
	return r;
}

static int add_directory(struct run_opening *o, const char *path)
{
	_cleanup_(freep) char *directory = NULL;
	char **name = NULL;
	size_t nr = 0;
	int r = recordings_in(path, &name, &nr);

	if (r < 0)
		buf_addf(o->reterr, "%s: %s", path, strerror(-r));
	if (r >= 0 && o->all && !is_run_directory(path)) {
		size_t before = o->run->nr;

		r = add_runs_in(o, path);
		if (r >= 0 && (nr || o->run->nr == before))
			r = add_flat(o, path, name, nr);
		texts_free(name, nr);
		return r;
	}
	if (r >= 0)
		r = run_directory_find(path, o->job, nr, &directory, o->reterr);
	if (r >= 0)
		r = directory ? add_run(o, directory) : add_flat(o, path, name, nr);
	texts_free(name, nr);
	return r;
}

static int add_path(struct run_opening *o, const char *path)
{
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : 0;

	if (r >= 0 && S_ISDIR(st.st_mode))
		return add_directory(o, path);
	/* A pipe or a device would block for ever. */
	if (r >= 0)
		r = S_ISREG(st.st_mode) ? recording_probe(path) : -EBADMSG;
	if (r >= 0)
		r = take_file(o->run, &o->files, path);
	if (r == -EBADMSG)
		buf_addf(o->reterr, "%s is not a recording", path);
	else if (r < 0)
		buf_addf(o->reterr, "%s: %s", path, strerror(-r));
	return r;
}

/* ---- jobs ---- */

static bool same_job(const struct run_node *a, const struct run_node *b)
{
	return !strcmp(a->job, b->job) && !strcmp(a->scheduler, b->scheduler);
}

/* The jobs of a directory, each once: what has none goes with any. */
static int jobs_of(
	const struct flat_directory *flat, const struct run_node *node, char ***ret, size_t *ret_nr)
{
	const struct run_node *last = NULL;
	int r = 0;

	for (size_t i = flat->from; i < flat->to && r >= 0; i++) {
		bool known = !*node[i].job || (last && same_job(last, &node[i]));

		for (size_t k = flat->from; k < i && !known; k++)
			known = same_job(&node[k], &node[i]);
		if (!known)
			r = texts_take(ret, ret_nr, strdup(node[i].job));
		last = *node[i].job ? &node[i] : last;
	}
	return r;
}

/* Keeps those of the job that was asked for; without one there may be only one. */
static int judge_flat(
	struct run_opening *o, const struct flat_directory *flat, const struct run_node *node, bool *drop)
{
	bool found = false;
	char **job = NULL;
	size_t nr = 0;
	int r = 0;

	for (size_t i = flat->from; o->job && i < flat->to; i++) {
		drop[i] = strcmp(node[i].job, o->job) != 0;
		found |= !drop[i];
	}
	if (o->job && found)
		return 0;
	if (o->job) {
		buf_addf(o->reterr, "there is no job %s in %s", o->job, flat->path);
		return -ENOENT;
	}
	r = jobs_of(flat, node, &job, &nr);
	if (r >= 0 && nr > 1) {
		add_jobs(o->reterr, flat->path, job, nr);
		r = -ENOTUNIQ;
	}
	texts_free(job, nr);
	return r;
}

/* What was found of the beginnings is of no use when some are dropped: the earliest may be among them. */
static void drop_paths(struct run *run, const bool *drop)
{
	size_t kept = 0, nr = run->nr;

	run_align_free(*run->aligned, nr);
	*run->aligned = NULL;
	for (size_t i = 0; i < nr; i++)
		if (drop[i])
			free(run->path[i]);
		else
			run->path[kept++] = run->path[i];
	run->nr = kept;
}

static int judge_jobs(struct run_opening *o)
{
	_cleanup_(freep) bool *drop = calloc(o->run->nr + 1, sizeof(*drop));
	struct run_node *node = NULL;
	bool needed = false, dropped = false;
	int r = drop ? 0 : -ENOMEM;

	for (size_t i = 0; i < o->nr_flat; i++)
		needed |= o->job || o->flat[i].to - o->flat[i].from > 1;
	if (r < 0 || !needed)
		return r;
	r = run_align(o->run, &node, o->reterr);
	for (size_t i = 0; i < o->nr_flat && r >= 0; i++)
		r = judge_flat(o, &o->flat[i], node, drop);
	run_align_free(node, o->run->nr);
	for (size_t i = 0; i < o->run->nr; i++)
		dropped |= drop[i];
	if (r >= 0 && dropped)
		drop_paths(o->run, drop);
	return r;
}

static int open_paths(struct run_opening *o, const char *const *path, size_t nr, struct run **ret)
{
	struct run *run = o->run = calloc(1, sizeof(*run));
	int r = run && (run->aligned = calloc(1, sizeof(*run->aligned))) ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = add_path(o, path[i]);
	if (r >= 0 && !o->all)
		r = judge_jobs(o);
	files_release(&o->files);
	free(o->flat);
	if (r < 0) {
		run_close(run);
		return r;
	}
	if (nr != 1)
		run->about = about_free(run->about);
	*ret = run;
	return 0;
}

int run_open_job(const char *const *path, size_t nr, const char *job, struct run **ret, struct buf *reterr)
{
	struct run_opening o = {.job = job, .reterr = reterr};

	return open_paths(&o, path, nr, ret);
}

int run_open_all(const char *const *path, size_t nr, struct run **ret, struct buf *reterr)
{
	struct run_opening o = {.all = true, .reterr = reterr};

	return open_paths(&o, path, nr, ret);
}

int run_open(const char *const *path, size_t nr, struct run **ret, struct buf *reterr)
{
	return run_open_job(path, nr, NULL, ret, reterr);
}

struct run *run_close(struct run *r)
{
	if (!r)
		return NULL;
	texts_free(r->path, r->nr);
	texts_free(r->skipped, r->nr_skipped);
	texts_free(r->skipped_why, r->nr_skipped_why);
	if (r->aligned)
		run_align_free(*r->aligned, r->nr);
	free(r->aligned);
	about_free(r->about);
	free(r);
	return NULL;
}

uint64_t run_bytes(const struct run *r)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < r->nr; i++)
		bytes += stat(r->path[i], &st) < 0 ? 0 : (uint64_t)st.st_size;
	return bytes;
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
		return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
	return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* By time; the same file may be the newest that can be opened and the newest of all. */
struct newest {
	char *path;
	struct stat st;
};

static void take_newer(struct newest *n, char *path, const struct stat *st)
{
	if (n->path && !is_newer(st, &n->st)) {
		free(path);
		return;
	}
	free(n->path);
	*n = (struct newest){path, *st};
}

static int look_for_newest(
	DIR *dir, const char *directory, struct run *refused, struct newest *ret_good, struct newest *ret_bad)
{
	bool here = !strcmp(directory, "."); /* "./" would only be noise */
	int r = 0;

	for (struct dirent *entry; r >= 0 && (entry = readdir(dir));) {
		struct stat st;
		char *path;
		int error;

		if (!is_recording(entry) || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		if (asprintf(&path, "%s%s%s", here ? "" : directory, here ? "" : "/", entry->d_name) < 0)
			return -ENOMEM;
		error = recording_probe(path);
		if (error < 0)
			r = skip(refused, path, error);
		take_newer(error < 0 ? ret_bad : ret_good, path, &st);
	}
	return r;
}

/* Runs of many nodes count with the time at which their launcher last wrote. */
static int look_for_runs(const char *directory, struct newest *ret)
{
	char **run = NULL;
	size_t nr = 0;
	int r = run_directories_in(directory, &run, &nr);

	for (size_t i = 0; i < nr && r >= 0; i++) {
		_cleanup_(freep) char *file = NULL;
		struct stat st;

		if (asprintf(&file, "%s/" RUN_FILE, run[i]) < 0) {
			file = NULL;
			r = -ENOMEM;
		} else if (stat(file, &st) == 0 && run_has_recordings(run[i])) {
			take_newer(ret, strdup(!strncmp(run[i], "./", 2) ? run[i] + 2 : run[i]), &st);
		}
	}
	texts_free(run, nr);
	return r == -ENOMEM ? r : 0;
}

int run_newest(const char *directory, char **ret_path, struct buf *reterr)
{
	struct newest good = {0}, bad = {0};
	struct run refused = {0};
	DIR *dir = opendir(directory);
	int r = dir ? look_for_newest(dir, directory, &refused, &good, &bad) : -errno;

	if (r >= 0)
		r = look_for_runs(directory, &good);

	if (r < 0) {
		buf_addf(reterr, "%s: %s", strcmp(directory, ".") ? directory : "this directory",
			strerror(-r));
	} else if (!good.path) {
		add_nothing(reterr, &refused, 0, directory);
		r = -ENOENT;
	} else if (bad.path && is_newer(&bad.st, &good.st)) {
		buf_addf(reterr, "%s is newer, but ", bad.path);
		add_why(reterr, recording_probe(bad.path));
	}
	if (dir)
		closedir(dir);
	if (r >= 0)
		*ret_path = TAKE_PTR(good.path);
	free(good.path);
	free(bad.path);
	texts_free(refused.skipped, refused.nr_skipped);
	texts_free(refused.skipped_why, refused.nr_skipped_why);
	return r;
}
