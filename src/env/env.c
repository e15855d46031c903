/* What every env has in common: reading whole files. The rest is one file a kind: live.c, film.c, capture.c,
 * failing.c. */
#include "env/env.h"

/* Files of /proc come in parts: a read of a large buffer may return one page of smaps. Only a read of 0 bytes
 * is the end, so the last byte of `out`, which is for the terminator, is also used to try to read more. */
ssize_t env_read_all(struct env *env, int handle, char *out, size_t size)
{
	size_t len = 0;

	if (!size)
		return -EINVAL;
	for (;;) {
		ssize_t n =
			env_read_at(env, handle, out + len, len < size - 1 ? size - 1 - len : 1, (off_t)len);

		if (n < 0)
			return n;
		if (!n)
			break;
		if (len == size - 1) {
			out[len] = 0;
			return -EFBIG;
		}
		len += (size_t)n;
	}
	out[len] = 0;
	return (ssize_t)len;
}

ssize_t env_slurp(struct env *env, const char *path, char *out, size_t size)
{
	int handle = env_open(env, path);
	ssize_t n;

	if (handle < 0)
		return handle;
	n = env_read_all(env, handle, out, size);
	env_close(env, handle);
	return n;
}

ssize_t env_peek(struct env *env, const char *path, char *out, size_t size)
{
	int handle = env_open(env, path);
	ssize_t n;

	if (handle < 0)
		return handle;
	n = env_read(env, handle, out, size - 1);
	env_close(env, handle);
	if (n >= 0)
		out[n] = 0;
	return n;
}

int env_try(struct env *env, const char *path)
{
	int handle = env_open(env, path);

	env_close(env, handle);
	return MIN(handle, 0);
}

struct env *env_free(struct env *env)
{
	if (env)
		env->ops->free(env);
	return NULL;
}
