/* Names of files beside recordings: see paths.h. */
#include "exec/paths.h"

#include "cmd/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

char *text_made(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		die(EXIT_TROUBLE, "no memory");
	return text;
}

bool path_is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

char *path_prefix(const char *directory)
{
	size_t len = strlen(directory);

	while (len > 1 && directory[len - 1] == '/')
		len--;
	return text_made("%.*s%s", (int)len, directory, len == 1 && directory[0] == '/' ? "" : "/");
}

char *path_in(const char *directory, const char *name, const char *suffix)
{
	_cleanup_(freep) char *prefix = path_prefix(directory);

	return text_made("%s%s%s", prefix, name, suffix);
}

bool path_has_suffix(const char *path, const char *suffix)
{
	size_t len = strlen(path), end = strlen(suffix);

	return end && len > end && !strcasecmp(path + len - end, suffix) && path[len - end - 1] != '/';
}

char *path_without_suffix(const char *path, const char *suffix)
{
	size_t end = path_has_suffix(path, suffix) ? strlen(suffix) : 0;

	return text_made("%.*s", (int)(strlen(path) - end), path);
}

char *path_directory(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return text_made(".");
	return slash == path ? text_made("/") : text_made("%.*s", (int)(slash - path), path);
}

char *path_beside(int argc, char **argv, const struct run *run, const char *name)
{
	_cleanup_(freep) char *directory = NULL;

	if (argc == 1 && path_is_directory(argv[0]))
		return path_in(argv[0], name, "");
	if (run->nr == 1)
		return path_without_suffix(run->path[0], RECORDING_SUFFIX);
	directory = path_directory(run->path[0]);
	return path_in(directory, name, "");
}
