/* Kept-open text files. The buffer is far larger than the first text, for CPUs and interrupts that are
 * plugged in later; it is mapped, so that only what texts have filled is memory. */
#include "read/textfile.h"

#include <sys/mman.h>

#define SIZE_MIN ((size_t)256 << 10)
#define SIZE_LIMIT ((size_t)64 << 20)
#define GROWTH 4

static int map_text(struct textfile *f, size_t size)
{
	void *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	if (f->text)
		munmap(f->text, f->size);
	f->text = memory;
	f->size = size;
	return 0;
}

/* The first reading, in a buffer with room for the text to grow. */
static ssize_t read_first(struct textfile *f, struct env *env)
{
	ssize_t n = -EFBIG;

	for (size_t size = SIZE_MIN; n == -EFBIG && size <= SIZE_LIMIT; size *= GROWTH) {
		int r = map_text(f, size);

		if (r < 0)
			return r;
		n = textfile_read(f, env);
		if (n > (ssize_t)(size / GROWTH))
			n = -EFBIG;
	}
	return n;
}

int textfile_open(struct textfile *f, struct env *env, const char *path, bool in_one)
{
	ssize_t n;

	*f = (struct textfile){.handle = env_open(env, path), .in_one = in_one};
	if (f->handle < 0)
		return f->handle;
	n = read_first(f, env);
	if (n >= 0)
		return 0;
	if (f->text)
		textfile_close(f, env);
	else
		env_close(env, f->handle);
	return (int)n;
}

ssize_t textfile_read(struct textfile *f, struct env *env)
{
	ssize_t n;

	if (!f->in_one)
		return env_read_all(env, f->handle, f->text, f->size);
	n = env_read(env, f->handle, f->text, f->size - 1);
	if (n < 0)
		return n;
	f->text[n] = 0;
	return n == (ssize_t)f->size - 1 ? -EFBIG : n;
}

void textfile_close(struct textfile *f, struct env *env)
{
	if (!f->text)
		return;
	munmap(f->text, f->size);
	f->text = NULL;
	env_close(env, f->handle);
}
