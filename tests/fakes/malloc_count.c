/* Makes allocations visible in a trace of system calls: preloaded, it writes a word to descriptor -1, which
 * does nothing but appear in strace's output, in order with the reads of each tick. No counter has to be
 * carried out of the process, and an allocation can be placed between two ticks.
 *
 * glibc's own entry points do the work, so there is no bootstrap problem as with dlsym(RTLD_NEXT). */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size);
void *calloc(size_t nr, size_t size);
void *realloc(void *old, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **ret, size_t alignment, size_t size);

static void mark(void)
{
	static const char word[] = "allocation";
	int before = errno;

	(void)syscall(SYS_write, -1, word, sizeof(word) - 1);
	errno = before;
}

void *malloc(size_t size)
{
	mark();
	return __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	mark();
	return __libc_calloc(nr, size);
}

void *realloc(void *old, size_t size)
{
	mark();
	return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
	mark();
	return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	mark();
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *block;

	mark();
	block = __libc_memalign(alignment, size);
	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}
