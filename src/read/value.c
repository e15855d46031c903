/* One value a file. A value fits into a few bytes, so one read on the stack is all there is: no buffer is
 * kept, and a machine with hundreds of sensors costs as many descriptors and nothing more. */
#include "read/value.h"

#include "read/read.h"

#include <string.h>

#define NUMBER_SIZE 64

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

int value_read(struct env *env, int handle, int64_t *ret)
{
	char text[NUMBER_SIZE];
	ssize_t n = env_read(env, handle, text, sizeof(text));
	const char *at = text, *end = text + MAX(n, 0);
	int64_t value;

	if (n < 0)
		return (int)n;
	while (at < end && is_blank(*at))
		at++;
	if (!read_number(&at, end, &value) || (at < end && *at && !is_blank(*at)))
		return -EBADMSG;
	*ret = value;
	return 0;
}

int value_get(struct env *env, const char *path, int64_t *ret)
{
	int handle = env_open(env, path), r;

	if (handle < 0)
		return handle;
	r = value_read(env, handle, ret);
	env_close(env, handle);
	return r;
}

/* Leaves the first line, without blanks around it. */
static int tidy(char *out)
{
	size_t start = 0, len;

	while (is_blank(out[start]))
		start++;
	len = strcspn(out + start, "\n");
	while (len && is_blank(out[start + len - 1]))
		len--;
	memmove(out, out + start, len);
	out[len] = 0;
	return (int)len;
}

int value_read_text(struct env *env, int handle, char *out, size_t size)
{
	ssize_t n = env_read(env, handle, out, size - 1);

	if (n < 0)
		return (int)n;
	out[n] = 0;
	return tidy(out);
}

int value_get_text(struct env *env, const char *path, char *out, size_t size)
{
	ssize_t n = env_peek(env, path, out, size);

	return n < 0 ? (int)n : tidy(out);
}

int value_get_link(struct env *env, const char *path, char *out, size_t size)
{
	char target[1024];
	ssize_t n = env_readlink(env, path, target, sizeof(target) - 1);
	const char *last;

	if (n < 0)
		return (int)n;
	target[n] = 0;
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	snprintf(out, size, "%s", last);
	return (int)MIN(strlen(last), size - 1);
}
