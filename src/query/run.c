/* From operands to recordings.
 *
 * A file that the user named must be a recording. In a directory other files may lie about under our suffix
 * (a copy that broke off before its first byte): they are skipped, and the caller can say so. */
#include "query/run.h"

#include "base/idmap.h"
#include "base/owned.h"
#include "query/align.h"
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

static int recording_probe(const char *path)
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

static int skip(struct run *run, const char *path, int error)
{
	struct buf why;
	int r;

	buf_init(&why, 1024);
	add_why(&why, error);
	r = texts_take(&run->skipped, &run->nr_skipped, strdup(path));
	if (r >= 0)
		r = texts_take(&run->skipped_why, &run->nr_skipped_why, strdup((char *)why.data));
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

static int add_directory(struct run *run, struct run_files *files, const char *path, struct buf *reterr)
{
	struct dirent **entry = NULL;
	size_t skipped = run->nr_skipped;
	bool found = false;
	int n = scandir(path, &entry, is_recording, alphasort), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		char *full = NULL;

		if (r >= 0 && asprintf(&full, "%s/%s", path, entry[i]->d_name) < 0) {
			full = NULL;
			r = -ENOMEM;
		}
		int error = r >= 0 ? recording_probe(full) : 0;

		if (error < 0) {
			r = skip(run, full, error);
		} else if (r >= 0) {
			found = true;
			r = take_file(run, files, full);
		}
		free(full);
		free(entry[i]);
	}
	free(entry);
	if (r >= 0 && !found) {
		r = -ENOENT;
		add_nothing(reterr, run, skipped, path);
	} else if (r < 0) {
		buf_addf(reterr, "%s: %s", path, strerror(-r));
	}
	return r;
}

static int add_path(struct run *run, struct run_files *files, const char *path, struct buf *reterr)
{
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : 0;

	if (r >= 0 && S_ISDIR(st.st_mode))
		return add_directory(run, files, path, reterr);
	/* A pipe or a device would block for ever. */
	if (r >= 0)
		r = S_ISREG(st.st_mode) ? recording_probe(path) : -EBADMSG;
	if (r >= 0)
		r = take_file(run, files, path);
	if (r == -EBADMSG)
		buf_addf(reterr, "%s is not a recording", path);
	else if (r < 0)
		buf_addf(reterr, "%s: %s", path, strerror(-r));
	return r;
}

int run_open(const char *const *path, size_t nr, struct run **ret, struct buf *reterr)
{
	struct run *run = calloc(1, sizeof(*run));
	struct run_files files = {0};
	int r = run && (run->aligned = calloc(1, sizeof(*run->aligned))) ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = add_path(run, &files, path[i], reterr);
	files_release(&files);
	if (r < 0) {
		run_close(run);
		return r;
	}
	*ret = run;
	return 0;
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

int run_newest(const char *directory, char **ret_path, struct buf *reterr)
{
	struct newest good = {0}, bad = {0};
	struct run refused = {0};
	DIR *dir = opendir(directory);
	int r = dir ? look_for_newest(dir, directory, &refused, &good, &bad) : -errno;

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
