/* The user's file of settings: lines `long-name = value`, `#` begins a comment line, quotes around a value
 * are removed.
 *
 * One flat list for all commands: an option means the same wherever it exists. Nothing is expanded, as it
 * would not be in the environment either. A line that fits no option of the command at hand may belong to
 * another, so that misspelt names are found by cli_check_user_file(), which knows all commands. */
#include "cli/words.h"

#include "base/rights.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX (64 * 1024)

static int user_file_path(char *out, size_t size)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (rights_borrowed()) /* the user chooses HOME */
		return -ENOENT;
	if (config && *config == '/') /* the XDG specification: relative paths are to be ignored */
		n = snprintf(out, size, "%s/tacho/config", config);
	else if (home && *home == '/')
		n = snprintf(out, size, "%s/.config/tacho/config", home);
	else
		return -ENOENT;
	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

static int read_whole(const char *path, char **ret)
{
	/* A FIFO in its place must not block the start of a job. */
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	text = malloc(FILE_MAX + 1);
	if (!text)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, text + len, FILE_MAX + 1 - len);

		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
		if (len > FILE_MAX)
			return -EFBIG;
	}
	text[len] = 0;
	*ret = TAKE_PTR(text);
	return 0;
}

void user_file_open(struct user_file *f)
{
	*f = (struct user_file){0};
	f->err = user_file_path(f->path, sizeof(f->path));
	if (!f->err)
		f->err = read_whole(f->path, &f->text);
	f->next = f->text;
}

static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t\r");
	end = s + strlen(s);
	while (end > s && strchr(" \t\r", end[-1]))
		end--;
	*end = 0;
	return s;
}

static char *unquote(char *s)
{
	size_t n = strlen(s);

	if (n < 2 || (*s != '"' && *s != '\'') || s[n - 1] != *s)
		return s;
	s[n - 1] = 0;
	return s + 1;
}

bool user_file_next(struct user_file *f, struct setting *ret)
{
	while (f->next) {
		char *line = f->next, *end = strchr(line, '\n'), *equals;

		f->next = end ? end + 1 : NULL;
		if (end)
			*end = 0;
		f->line++;
		line = trim(line);
		if (!*line || *line == '#')
			continue;
		equals = strchr(line, '=');
		if (equals)
			*equals = 0;
		*ret = (struct setting){.name = trim(line), .line = f->line};
		if (equals)
			ret->value = unquote(trim(equals + 1));
		return true;
	}
	return false;
}

/* The option of that name in any command; the nearest names are tried on the way. */
static const struct opt *find_anywhere(const struct cmd *const *cmds, const char *name, struct nearest *near)
{
	for (; *cmds; cmds++)
		for (size_t i = 0; i < cmd_nr_opts(*cmds); i++) {
			const struct opt *o = cmd_opt(*cmds, i);

			if (!strcmp(o->long_name, name))
				return o;
			if (!o->hidden && !o->not_from_env)
				typed_try(near, o->long_name);
		}
	return NULL;
}

static void check_setting(
	const struct cmd *const *cmds, const struct user_file *f, const struct setting *s, struct buf *err)
{
	struct nearest near = typed_nearest(s->name);
	const struct opt *o = find_anywhere(cmds, s->name, &near);

	if (o && o->not_from_env)
		buf_addf(err, "%s:%u: '%s' can only be given on the command line\n", f->path, s->line,
			s->name);
	if (o || !near.best)
		return;
	buf_addf(err, "%s:%u: there is no setting '", f->path, s->line);
	escape_bytes(err, s->name, strlen(s->name));
	buf_addf(err, "'; did you mean '%s'?\n", near.best);
}

void cli_check_user_file(const struct cmd *const *cmds, struct buf *err)
{
	struct user_file f;
	struct setting s;

	user_file_open(&f);
	if (f.err && f.err != -ENOENT && f.err != -ENOTDIR)
		buf_addf(err, "%s is not used: %s\n", f.path, strerror(-f.err));
	while (user_file_next(&f, &s))
		check_setting(cmds, &f, &s, err);
	free(f.text);
}
