/* Reports and exports, made by the programs that make them for everybody: `tacho report`, `tacho export`,
 * with words that no shell sees, a few at once, at low priority, and killed when the viewer left. */
#include "serve/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define PARTS_MOST 256
#define DEPTH_MOST 4
#define LOOK_NS (20 * NSEC_PER_MSEC)
#define USAGE 2				       /* the exit status of wrong words */
#define NO_FORMAT "tacho: there is no format " /* what it says then, of the format in the address */

static void made_free(struct made *m)
{
	if (m->fd >= 0)
		close(m->fd);
	for (size_t i = 0; i < m->nr_parts; i++)
		close(m->part[i]);
	tar_free(m->tar);
	free(m->part);
	free(m->name);
	free(m->path);
	free(m->trouble);
	free(m);
}

void make_drop(struct made *m)
{
	__atomic_store_n(&m->abandoned, true, __ATOMIC_RELAXED);
	if (!--m->refs)
		made_free(m);
}

/* ---- the program ---- */

static int spawn(struct made *m, const char *directory, int log, pid_t *ret)
{
	char out[PATH_MAX];
	const char *word[] = {"tacho", NULL, NULL, NULL, "-o", out, "--", m->path, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	word[1] = m->what == PLACE_EXPORT ? "export" : "report";
	word[2] = m->what == PLACE_EXPORT ? "--to" : "--format";
	word[3] = m->what == PLACE_EXPORT ? m->format : m->what == PLACE_REPORT_PDF ? "pdf" : "html";
	snprintf(out, sizeof(out), "%.2000s/%s", directory,
		m->what == PLACE_EXPORT		      ? ""
			: m->what == PLACE_REPORT_PDF ? "report.pdf"
						      : "report.html");
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, log, 2);
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	r = posix_spawn(ret, m->serve->o.program, &files, &attr, (char *const *)word, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -r;
}

static bool is_unwanted(const struct made *m)
{
	return __atomic_load_n(&m->abandoned, __ATOMIC_RELAXED) ||
		__atomic_load_n(&m->serve->ends, __ATOMIC_RELAXED);
}

/* The exit status; -1: it was killed. */
static int wait_for(const struct made *m, pid_t pid)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	int status;

	setpriority(PRIO_PROCESS, (id_t)pid, 10);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (is_unwanted(m)) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- what it made ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int take_part(struct made *m, const char *directory, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%.2000s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	m->part[m->nr_parts++] = fd;
	free(m->name);
	m->name = strdup(name);
	return m->name ? 0 : -ENOMEM;
}

static int open_part(void *arg, const char *path)
{
	struct made *m = arg;
	int64_t at = strtol(path, NULL, 10);
	int fd = at >= 0 && (size_t)at < m->nr_parts ? fcntl(m->part[at], F_DUPFD_CLOEXEC, 3) : -1;

	return fd < 0 ? -errno : fd;
}

static int tar_parts(struct made *m, struct dirent **entry, int nr)
{
	int r = tar_new(open_part, m, &m->tar);
	size_t at = 0;

	for (int i = 0; i < nr && r >= 0; i++) {
		char number[24];
		struct stat st;

		if (entry[i]->d_name[0] == '.')
			continue;
		snprintf(number, sizeof(number), "%zu", at);
		r = fstat(m->part[at++], &st) < 0 ? -errno : 0;
		if (r >= 0)
			r = tar_add(
				m->tar, entry[i]->d_name, number, (uint64_t)st.st_size, st.st_mtim.tv_sec);
	}
	return r;
}

/* One file, or all of them in a tar. */
static int take_all(struct made *m, const char *directory)
{
	struct dirent **entry = NULL;
	int n = scandir(directory, &entry, NULL, by_name), r = n < 0 ? -errno : 0;

	m->part = calloc((size_t)MAX(n, 0) + 1, sizeof(*m->part));
	if (!m->part)
		r = -ENOMEM;
	for (int i = 0; i < n && r >= 0; i++)
		if (entry[i]->d_name[0] != '.')
			r = m->nr_parts < PARTS_MOST ? take_part(m, directory, entry[i]->d_name) : -E2BIG;
	if (r >= 0 && m->nr_parts == 1) {
		m->fd = m->part[0];
		m->nr_parts = 0;
	} else if (r >= 0 && m->nr_parts) {
		r = tar_parts(m, entry, n);
	} else if (r >= 0) {
		r = -ENODATA;
	}
	for (int i = 0; i < n; i++)
		free(entry[i]);
	free(entry);
	return r;
}

/* Exports that were killed leave a directory in it. No link is followed. */
static void remove_all(int at, const char *name, unsigned depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (fd >= 0 && !dir)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno == EISDIR && depth < DEPTH_MOST)
			remove_all(dirfd(dir), entry->d_name, depth + 1);
	}
	if (dir)
		closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* What the program said; else what the system said. */
static void say_trouble(struct made *m, int status, int err, int log)
{
	char text[4096];
	ssize_t n = pread(log, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = 0;
	m->status = status == USAGE && !strncmp(text, NO_FORMAT, strlen(NO_FORMAT))
		? MHD_HTTP_NOT_FOUND
		: MHD_HTTP_INTERNAL_SERVER_ERROR;
	if (n > 0)
		m->trouble = strdup(text);
	else if (err == -E2BIG)
		m->trouble = strdup("It has too many files for a download: `tacho export` makes them.");
	else if (err < 0 && asprintf(&m->trouble, "It could not be made: %s.", strerror(-err)) < 0)
		m->trouble = NULL;
}

/* The program opens the path by itself: what it made is given away only if the same file is there still, and
 * no link that leads out. */
static bool is_same(const struct made *m, const struct stat *had)
{
	struct stat has;

	return roots_has(&m->serve->roots, m->path, &has) && has.st_dev == had->st_dev &&
		has.st_ino == had->st_ino;
}

static void make_in(struct made *m, const char *directory, int log)
{
	struct stat had;
	pid_t pid;
	int status = -1, r;

	if (is_unwanted(m))
		return;
	r = roots_has(&m->serve->roots, m->path, &had) ? spawn(m, directory, log, &pid) : -ENOENT;
	if (r >= 0)
		status = wait_for(m, pid);
	if (status >= 0 && !is_same(m, &had)) {
		m->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		m->trouble = strdup("Another file has the name of this recording now: ask again.");
		return;
	}
	if (status == 0)
		r = take_all(m, directory);
	if (status != 0 || r < 0)
		say_trouble(m, status, r, log);
}

static void say_no_directory(struct made *m, const char *directory, int err)
{
	m->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	if (asprintf(&m->trouble,
		    "A directory for it (%s) could not be made: %s. TMPDIR names another place.", directory,
		    strerror(err)) < 0)
		m->trouble = NULL;
}

/* What the program says is kept in memory: the place for files may be full. */
static void make_work(void *arg)
{
	struct made *m = arg;
	struct serve *s = m->serve;
	const char *tmp = getenv("TMPDIR");
	char directory[PATH_MAX];
	int log = memfd_create("tacho-serve", MFD_CLOEXEC);

	snprintf(directory, sizeof(directory), "%.1900s/tacho-serve-XXXXXX",
		tmp && *tmp == '/' ? tmp : "/tmp");
	if (log < 0) {
		say_trouble(m, -1, -errno, log);
	} else if (mkdtemp(directory)) { /* mode 0700 */
		make_in(m, directory, log);
		remove_all(AT_FDCWD, directory, 0);
	} else {
		say_no_directory(m, directory, errno);
	}
	if (log >= 0)
		close(log);
	pthread_mutex_lock(&s->lock);
	m->done = true;
	serve_wake(s);
	if (!--m->refs)
		made_free(m);
	pthread_mutex_unlock(&s->lock);
}

struct made *make_begin(struct serve *s, const char *path, enum serve_place what, const char *format)
{
	struct made *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	*m = (struct made){.serve = s, .path = strdup(path), .what = what, .refs = 2, .fd = -1};
	snprintf(m->format, sizeof(m->format), "%s", format);
	if (m->path && work_add(s->makers, make_work, m))
		return m;
	made_free(m);
	return NULL;
}
