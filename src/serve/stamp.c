/* What of a run's files is looked at to know that it must be read anew: see stamp.h. Sums of hashes, so that
 * the order in which a directory tells its files does not matter. */
#include "serve/stamp.h"

#include "base/str.h"
#include "query/run_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static void add_file(struct stamp *s, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0)
		return;
	const int64_t is[] = {(int64_t)st.st_dev, (int64_t)st.st_ino};
	const int64_t has[] = {is[0], is[1], st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};

	s->files += hash_bytes(is, sizeof(is)) | 1;
	s->state += hash_bytes(has, sizeof(has));
}

static void add_directory(struct stamp *s, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (dot && !strcmp(dot, ".tacho"))
			add_file(s, dirfd(dir), entry->d_name);
	}
	if (dir)
		closedir(dir);
}

struct stamp stamp_of(const char *path)
{
	_cleanup_(freep) char *nodes = NULL;
	struct stamp s = {0};
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		add_file(&s, AT_FDCWD, path);
		return s;
	}
	add_directory(&s, path);
	nodes = run_directory_nodes(path);
	if (nodes && strcmp(nodes, path) != 0)
		add_directory(&s, nodes);
	return s;
}
