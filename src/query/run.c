/* From operands to recordings.
 *
 * A file that the user named must be a recording. In a directory other files may lie about under our suffix
 * (a copy that broke off before its first byte): they are skipped, and the caller can say so. */
#include "query/run.h"

#include "base/owned.h"
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
static bool has_file(const struct run *run, const char *path)
{
	struct stat st, other;

	if (stat(path, &st) < 0)
		return false;
	for (size_t i = 0; i < run->nr; i++)
		if (stat(run->path[i], &other) == 0 && other.st_dev == st.st_dev && other.st_ino == st.st_ino)
			return true;
	return false;
}

static int recording_probe(const char *path)
{
	struct store_reader *reader = NULL;
	int r = store_open(path, &reader);

	if (r >= 0)
		store_close(reader);
	return r;
}

static int add_directory(struct run *run, const char *path, struct buf *reterr)
{
	struct dirent **entry = NULL;
	bool found = false;
	int n = scandir(path, &entry, is_recording, alphasort), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		char *full = NULL;

		if (r >= 0 && asprintf(&full, "%s/%s", path, entry[i]->d_name) < 0) {
			full = NULL;
			r = -ENOMEM;
		}
		if (r >= 0 && recording_probe(full) < 0) {
			r = texts_take(&run->skipped, &run->nr_skipped, strdup(full));
		} else if (r >= 0) {
			found = true;
			r = has_file(run, full) ? 0 : texts_take(&run->path, &run->nr, strdup(full));
		}
		free(full);
		free(entry[i]);
	}
	free(entry);
	if (r >= 0 && !found) {
		r = -ENOENT;
		buf_addf(reterr, "%s holds no recording (*%s)", path, RECORDING_SUFFIX);
	} else if (r < 0) {
		buf_addf(reterr, "%s: %s", path, strerror(-r));
	}
	return r;
}

static int add_path(struct run *run, const char *path, struct buf *reterr)
{
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : 0;

	if (r >= 0 && S_ISDIR(st.st_mode))
		return add_directory(run, path, reterr);
	/* A pipe or a device would block for ever. */
	if (r >= 0)
		r = S_ISREG(st.st_mode) ? recording_probe(path) : -EBADMSG;
	if (r >= 0 && !has_file(run, path))
		r = texts_take(&run->path, &run->nr, strdup(path));
	if (r == -EBADMSG)
		buf_addf(reterr, "%s is not a recording", path);
	else if (r < 0)
		buf_addf(reterr, "%s: %s", path, strerror(-r));
	return r;
}

int run_open(const char *const *path, size_t nr, struct run **ret, struct buf *reterr)
{
	struct run *run = calloc(1, sizeof(*run));
	int r = run ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = add_path(run, path[i], reterr);
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
	free(r);
	return NULL;
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
		return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
	return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

int run_newest(const char *directory, char **ret_path)
{
	DIR *dir = opendir(directory);
	struct stat best = {0};
	char *found = NULL;

	if (!dir)
		return -errno;
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;
		char *path;

		if (!is_recording(entry) || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		if (found && !is_newer(&st, &best))
			continue;
		/* "./" would only be noise. */
		if (asprintf(&path, "%s%s%s", strcmp(directory, ".") ? directory : "",
			    strcmp(directory, ".") ? "/" : "", entry->d_name) < 0)
			continue;
		if (recording_probe(path) < 0) {
			free(path);
			continue;
		}
		free(found);
		found = path;
		best = st;
	}
	closedir(dir);
	if (!found)
		return -ENOENT;
	*ret_path = found;
	return 0;
}
