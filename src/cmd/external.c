/* Commands beyond the table: executables named tacho-NAME, as git has them, so that commands with heavy
 * libraries (and those of users) need no entry here.
 *
 * Beside the executable first: an installation finds its own parts whatever PATH says. PATH is searched by
 * hand rather than by execvp(), which reports EACCES for a directory that cannot be searched although the
 * command exists nowhere.
 *
 * The program is started with the user's rights only: those of our file are given up before. If our file has
 * any, a program found in PATH must still be one that only root can change. */
#include "cmd/external.h"

#include "base/rights.h"
#include "cmd/cmd.h"
#include "cmd/start.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

bool external_self(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	out[MAX(n, 0)] = 0;
	return n > 0;
}

/* The file in the directory of this executable. */
static bool find_beside(const char *file, char *out, size_t size)
{
	char *slash;

	if (!external_self(out, size))
		return false;
	slash = strrchr(out, '/');
	if (!slash || (size_t)(slash + 1 - out) + strlen(file) >= size)
		return false;
	memcpy(slash + 1, file, strlen(file) + 1);
	return is_program(out);
}

static bool find_in_path(const char *file, char *out, size_t size)
{
	const char *path = getenv("PATH");
	char real[PATH_MAX];

	while (path) {
		size_t n = strcspn(path, ":");

		/* An empty part means the current directory: not a place to pick up commands by accident. */
		if (n &&
			snprintf(out, size, "%.*s/%s", (int)MIN(n, (size_t)PATH_MAX), path, file) <
				(int)size &&
			is_program(out) && (!rights_borrowed() || rights_trusted(out, real)))
			return true;
		path = path[n] ? path + n + 1 : NULL;
	}
	return false;
}

static bool find_program(const char *file, char *out, size_t size)
{
	return find_beside(file, out, size) || find_in_path(file, out, size);
}

bool external_has(const char *file)
{
	char path[PATH_MAX];

	return find_program(file, path, sizeof(path));
}

static bool name_valid(const char *name)
{
	return *name && *name != '-' &&
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name) && strlen(name) < 64;
}

void external_run(char **argv)
{
	char file[80], path[PATH_MAX];

	if (!name_valid(argv[0]))
		return;
	snprintf(file, sizeof(file), "tacho-%s", argv[0]);
	if (!find_program(file, path, sizeof(path)))
		return;
	argv[0] = file;
	rights_drop();
	execve(path, argv, rights_environment());
	die(EXIT_CANNOT, "cannot run %s: %s", path, strerror(errno));
}

static const char *how_to_build(const char *file)
{
	static const char *const how[][2] = {
		{"tacho-report",
			"`./dev build` makes it and installs the libraries that it needs (libcairo2-dev, "
			"libpango1.0-dev)"},
		{"tacho-push",
			"`./dev build` makes it and installs the library that it needs "
			"(libcurl4-openssl-dev)"},
		{"tacho-serve",
			"`./dev build` makes it and installs the library that it needs "
			"(libmicrohttpd-dev)"},
		{"tacho-export", "`./dev build` makes it"},
	};
	size_t i = 0;

	while (i < ARRAY_SIZE(how) - 1 && strcmp(how[i][0], file) != 0)
		i++;
	return how[i][1];
}

int external_become(const char *file)
{
	const struct start_words *given = start_words();
	char name[80], path[PATH_MAX];

	if (!find_program(file, path, sizeof(path))) {
		error("`tacho %s` needs %s for this, which is not installed here: install the package %s; "
		      "where tacho was built from source, %s",
			given->cmd->name, file, file, how_to_build(file));
		return EXIT_NOTFOUND;
	}
	snprintf(name, sizeof(name), "tacho-%s", given->cmd->name);
	given->word[0] = name;
	rights_drop();
	execve(path, given->word, rights_environment());
	error("cannot run %s: %s", path, strerror(errno));
	return EXIT_CANNOT;
}

/* Words that other tools have for what a command does. They are no commands: `tacho diff` may be about a
 * program. */
static const char *command_for(const char *word)
{
	static const char *const other[][2] = {{"version", "--version"}, {"stats", "show --stats"},
		{"statistics", "show --stats"}, {"stat", "show --stats"}, {"info", "show"},
		{"summary", "show"}, {"view", "show"}, {"print", "show"}, {"record", "run"}, {"rec", "run"},
		{"trace", "run"}, {"start", "run"}, {"exec", "run"}, {"watch", "top"}, {"monitor", "top"},
		{"list", "ls"}, {"graph", "plot"}, {"chart", "plot"}, {"diff", "compare"}, {"html", "report"},
		{"convert", "export"}, {"dump", "export"}, {"verify", "check"}, {"tail", "log"}};

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		if (!strcmp(other[i][0], word))
			return other[i][1];
	return NULL;
}

int unknown_command(const char *name)
{
	const char *near = cli_nearest(commands, name), *meant = command_for(name);
	char path[PATH_MAX];
	bool program = find_in_path(name, path, sizeof(path)) || (strchr(name, '/') && is_program(name));

	if (meant && program)
		error("there is no command '%s'; did you mean `tacho %s`? To record the program %s: tacho "
		      "run -- %s",
			name, meant, name, name);
	else if (meant)
		error("there is no command '%s'; did you mean `tacho %s`?", name, meant);
	else if (program)
		error("there is no command '%s'; to record that program: tacho run -- %s", name, name);
	else if (near)
		error("there is no command '%s'; did you mean '%s'?", name, near);
	else
		error("there is no command '%s'; `tacho help` lists them", name);
	return EXIT_USAGE;
}
