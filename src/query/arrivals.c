/* Looks for recordings as they appear: see arrivals.h. */
#include "query/arrivals.h"

#include "base/idmap.h"
#include "base/owned.h"
#include "base/str.h"
#include "query/run_directory.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LOOK_NS NSEC_PER_SEC	      /* between two looks at a directory */
#define LOOK_ANYWAY_NS (10 * LOOK_NS) /* though its time did not change, which may be coarse */

struct directory {
	char *path; /* where recordings are looked for */
	bool flat;  /* not that of a run */
	struct timespec modified;
	int64_t looked_ns, read_ns;
};

struct arrivals {
	const char *job;
	arrival_found *found;
	void *arg;
	char **known;
	size_t nr_known;
	struct idmap by_hash; /* of known paths */
	struct directory *dir;
	size_t nr_dirs;
};

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

struct arrivals *arrivals_new(const char *job, arrival_found *found, void *arg)
{
	struct arrivals *a = calloc(1, sizeof(*a));

	if (a)
		*a = (struct arrivals){.job = job, .found = found, .arg = arg};
	return a;
}

struct arrivals *arrivals_free(struct arrivals *a)
{
	if (!a)
		return NULL;
	for (size_t i = 0; i < a->nr_dirs; i++)
		free(a->dir[i].path);
	free(a->dir);
	texts_free(a->known, a->nr_known);
	idmap_release(&a->by_hash);
	free(a);
	return NULL;
}

int arrivals_trouble(const char *path, int error, struct buf *reterr)
{
	buf_reset(reterr);
	buf_addf(reterr, "%s: %s%s", path, strerror(-error),
		error == -EMFILE ? ": every recording that is followed stays open (ulimit -n)" : "");
	return error;
}

/* ---- which are known ---- */

static bool is_known(const struct arrivals *a, const char *path, uint64_t *ret_key)
{
	uint64_t key = hash_bytes(path, strlen(path));
	uint32_t i;

	while ((i = idmap_get(&a->by_hash, key)) != IDMAP_NONE && strcmp(a->known[i], path) != 0)
		key++;
	*ret_key = key;
	return i != IDMAP_NONE;
}

static int know(struct arrivals *a, const char *path, uint64_t key)
{
	char *copy = strdup(path), **more = copy ? ARRAY_ADD(a->known, a->nr_known) : NULL;

	if (!more) {
		free(copy);
		return -ENOMEM;
	}
	*more = copy;
	return idmap_put(&a->by_hash, key, (uint32_t)a->nr_known - 1);
}

/* Takes the reader. */
static int arrive(struct arrivals *a, const char *path, struct store_reader *reader, bool flat, bool later)
{
	struct arrival new = {.path = strdup(path), .reader = reader, .flat = flat, .later = later};
	uint64_t key;
	int r;

	is_known(a, path, &key);
	r = new.path ? know(a, path, key) : -ENOMEM;
	if (r >= 0)
		return a->found(a->arg, &new);
	free(new.path);
	store_close(reader);
	return r;
}

/* ---- directories ---- */

static bool is_empty(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !st.st_size;
}

/* What is no recording may become one: it is tried again, soon if it was just made. */
static int try_path(struct arrivals *a, struct directory *d, const char *name, bool later)
{
	_cleanup_(freep) char *path = NULL;
	struct store_reader *reader = NULL;
	uint64_t key;
	int r;

	if (asprintf(&path, "%s/%s", d->path, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (is_known(a, path, &key))
		return 0;
	r = store_open(path, &reader);
	if (r < 0 && is_empty(path))
		d->modified = (struct timespec){0};
	if (r < 0)
		return r == -EMFILE || r == -ENFILE || r == -ENOMEM ? r : 0;
	return arrive(a, path, reader, d->flat, later);
}

static int directory_read(struct arrivals *a, struct directory *d, bool later)
{
	char **name = NULL;
	size_t nr = 0;
	int r = recordings_in(d->path, &name, &nr);

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = try_path(a, d, name[i], later);
	texts_free(name, nr);
	return r;
}

static int directory_look(struct arrivals *a, struct directory *d)
{
	int64_t now = monotonic_ns();
	struct stat st;
	bool later;

	if (d->looked_ns && now - d->looked_ns < LOOK_NS)
		return 0;
	d->looked_ns = now;
	if (stat(d->path, &st) < 0)
		return 0; /* it is gone: what is open is read on */
	if (d->read_ns && now - d->read_ns < LOOK_ANYWAY_NS && st.st_mtim.tv_sec == d->modified.tv_sec &&
		st.st_mtim.tv_nsec == d->modified.tv_nsec)
		return 0;
	d->modified = st.st_mtim;
	later = d->read_ns;
	d->read_ns = now;
	return directory_read(a, d, later);
}

/* Of a run its nodes, whose directory may come later. Recordings of several jobs are followed together where
 * no job was asked for: which they are is not known before they are there. */
static int add_directory(struct arrivals *a, const char *path, struct buf *reterr)
{
	_cleanup_(freep) char *run = NULL;
	struct directory *more;
	char **name = NULL;
	size_t nr = 0;
	int r = recordings_in(path, &name, &nr);

	texts_free(name, nr);
	if (r >= 0)
		r = run_directory_find(path, a->job, nr, &run, reterr);
	if (r < 0)
		return r;
	more = ARRAY_ADD(a->dir, a->nr_dirs);
	if (!more)
		return -ENOMEM;
	*more = (struct directory){.path = run ? run_directory_nodes(run) : strdup(path), .flat = !run};
	return more->path ? directory_look(a, more) : -ENOMEM;
}

/* ---- all ---- */

static int add_path(struct arrivals *a, const char *path, struct buf *reterr)
{
	struct store_reader *reader = NULL;
	struct stat st;
	uint64_t key;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return add_directory(a, path, reterr);
	if (is_known(a, path, &key))
		return 0;
	r = S_ISREG(st.st_mode) ? store_open(path, &reader) : -EBADMSG;
	return r < 0 ? r : arrive(a, path, reader, false, false);
}

int arrivals_add(struct arrivals *a, const char *path, struct buf *reterr)
{
	int r = add_path(a, path, reterr);

	if (r >= 0 || reterr->len)
		return r;
	if (r != -EBADMSG)
		return arrivals_trouble(path, r, reterr);
	buf_addf(reterr, "%s is not a recording", path);
	return r;
}

int arrivals_look(struct arrivals *a, struct buf *reterr)
{
	for (size_t i = 0; i < a->nr_dirs; i++) {
		int r = directory_look(a, &a->dir[i]);

		if (r < 0)
			return reterr->len ? r : arrivals_trouble(a->dir[i].path, r, reterr);
	}
	return 0;
}
