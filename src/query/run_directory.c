/* Directories of runs: see run_directory.h. */
#include "query/run_directory.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/run.h"
#include "query/run_about.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define JOBS_NAMED 8 /* in a message */

char *run_directory_nodes(const char *path)
{
	char *nodes = NULL;

	return asprintf(&nodes, "%s/" RUN_NODES, path) < 0 ? NULL : nodes;
}

static int is_recording(const struct dirent *entry)
{
	return run_has_suffix(entry->d_name);
}

/* Without the suffix: '.' would come after '-'. */
static int by_stem(const struct dirent **a, const struct dirent **b)
{
	char x[sizeof((*a)->d_name)], y[sizeof((*b)->d_name)];

	snprintf(x, sizeof(x), "%.*s", (int)(strlen((*a)->d_name) - strlen(RECORDING_SUFFIX)), (*a)->d_name);
	snprintf(y, sizeof(y), "%.*s", (int)(strlen((*b)->d_name) - strlen(RECORDING_SUFFIX)), (*b)->d_name);
	return str_order(x, y);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return str_order((*a)->d_name, (*b)->d_name);
}

/* Takes the entries. */
static int take_names(struct dirent **entry, int n, char ***ret, size_t *ret_nr)
{
	int r = 0;

	for (int i = 0; i < n; i++) {
		if (r >= 0)
			r = texts_take(ret, ret_nr, strdup(entry[i]->d_name));
		free(entry[i]);
	}
	free(entry);
	return r;
}

int recordings_in(const char *path, char ***ret, size_t *ret_nr)
{
	struct dirent **entry = NULL;
	int n = scandir(path, &entry, is_recording, by_stem);

	return n < 0 ? -errno : take_names(entry, n, ret, ret_nr);
}

bool run_has_recordings(const char *path)
{
	_cleanup_(freep) char *nodes = run_directory_nodes(path);
	DIR *dir = nodes ? opendir(nodes) : NULL;
	bool found = false;

	for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
		found = run_has_suffix(entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

bool is_run_directory(const char *path)
{
	_cleanup_(freep) char *file = NULL;
	struct stat st;

	if (asprintf(&file, "%s/" RUN_FILE, path) < 0) {
		file = NULL;
		return false;
	}
	return (stat(file, &st) == 0 && S_ISREG(st.st_mode)) || run_has_recordings(path);
}

static int may_be_directory(const struct dirent *entry)
{
	return *entry->d_name != '.' &&
		(entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
}

int run_directories_in(const char *path, char ***ret, size_t *ret_nr)
{
	struct dirent **entry = NULL;
	int n = scandir(path, &entry, may_be_directory, by_name), r = 0;

	for (int i = 0; i < n; i++) {
		char *full = NULL;

		if (r >= 0 && asprintf(&full, "%s/%s", path, entry[i]->d_name) < 0) {
			full = NULL;
			r = -ENOMEM;
		}
		if (full && is_run_directory(full))
			r = texts_take(ret, ret_nr, TAKE_PTR(full));
		free(full);
		free(entry[i]);
	}
	free(entry);
	return n < 0 ? -errno : r;
}

void add_jobs(struct buf *out, const char *path, char *const *job, size_t nr)
{
	buf_addf(out, "%s holds %zu jobs: ", strcmp(path, ".") ? path : "this directory", nr);
	for (size_t i = 0; i < MIN(nr, (size_t)JOBS_NAMED); i++) {
		buf_adds(out, i ? ", " : "");
		escape_bytes(out, job[i], strlen(job[i]));
	}
	if (nr > JOBS_NAMED)
		buf_addf(out, " and %zu more", nr - JOBS_NAMED);
	buf_adds(out, "; choose one with --job ID");
}

/* By its number, or the name of its directory. */
static bool is_of_job(const char *path, const char *job)
{
	const char *name = strrchr(path, '/');
	struct run_about *about = NULL;
	bool is = !strcmp(name ? name + 1 : path, job);

	if (!is && about_read(path, &about, NULL) >= 0)
		is = about_is_job(about, job);
	about_free(about);
	return is;
}

static int choose(const char *path, const char *job, char **run, size_t nr, char **ret, struct buf *reterr)
{
	size_t found = 0, at = 0;

	for (size_t i = 0; i < nr; i++)
		if (!job || is_of_job(run[i], job)) {
			at = i;
			found++;
		}
	if (found == 1) {
		*ret = strdup(run[at]);
		return *ret ? 0 : -ENOMEM;
	}
	if (!found)
		return 0;
	if (job) {
		buf_addf(reterr, "%s has %zu runs of a job %s: name the directory of one", path, found, job);
	} else {
		for (size_t i = 0; i < nr; i++)
			memmove(run[i], strrchr(run[i], '/') + 1, strlen(strrchr(run[i], '/')));
		add_jobs(reterr, path, run, nr);
	}
	return -ENOTUNIQ;
}

int run_directory_find(const char *path, const char *job, bool beside, char **ret, struct buf *reterr)
{
	char **run = NULL;
	size_t nr = 0;
	int r;

	*ret = NULL;
	if (is_run_directory(path)) {
		*ret = strdup(path);
		return *ret ? 0 : -ENOMEM;
	}
	r = run_directories_in(path, &run, &nr);
	if (r == -ENOMEM || (nr == 1 && !job && beside)) {
		if (r >= 0)
			buf_addf(reterr,
				"%s holds recordings and the run %s: choose that with --job ID, or name the "
				"recordings",
				path, run[0]);
		r = r < 0 ? r : -ENOTUNIQ;
	} else {
		r = choose(path, job, run, nr, ret, reterr);
	}
	texts_free(run, nr);
	return r;
}
