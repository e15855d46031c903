/* A small searcher for new inputs of a fuzz target, for machines without clang's fuzzer: gcc reports every
 * branch (-fsanitize-coverage=trace-pc), an input that reaches a new one is kept and changed further.
 *
 *	search SECONDS CORPUS…	keeps what is new in ./found, says at the end how many inputs were run
 *
 * A crash leaves the input in ./crash: it is written before it is run. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_cov_trace_pc(void);

#define MAP (1u << 18)
#define LENGTH_MAX 4096
#define KEPT_MAX 20000

static uint8_t hit[MAP], known[MAP];
static uint32_t touched[MAP], nr_touched;
static int sees; /* without coverage all inputs of the corpus are as good as new */

__attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc(void)
{
	uintptr_t pc = (uintptr_t)__builtin_return_address(0);
	uint32_t at = (uint32_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> 46);

	if (!hit[at])
		touched[nr_touched++] = at;
	if (hit[at] < 255)
		hit[at]++;
}

static struct kept {
	uint8_t *data;
	size_t size;
} kept[KEPT_MAX];
static unsigned nr_kept;
static uint64_t seed, runs;
static uint8_t *present; /* shared with the file ./crash */

static uint64_t any(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void keep(const uint8_t *data, size_t size)
{
	struct kept *k;

	if (nr_kept == KEPT_MAX)
		return;
	k = &kept[nr_kept++];
	k->data = malloc(size + 1);
	if (!k->data)
		abort();
	memcpy(k->data, data, size);
	k->size = size;
}

/* Classes of counts: 1, 2, 3-7, more. */
static uint8_t class_of(uint8_t n)
{
	return n == 1 ? 1 : n == 2 ? 2 : n < 8 ? 4 : 8;
}

static int run_one(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	int news = 0;

	if (!copy)
		abort();
	memcpy(copy, data, size);
	present[0] = (uint8_t)size;
	present[1] = (uint8_t)(size >> 8);
	memcpy(present + 2, data, size);
	nr_touched = 0;
	alarm(20); /* an input that takes so long is a finding, too */
	LLVMFuzzerTestOneInput(copy, size);
	runs++;
	sees |= nr_touched > 0;
	for (uint32_t i = 0; i < nr_touched; i++) {
		uint8_t c = class_of(hit[touched[i]]);

		news += !(known[touched[i]] & c);
		known[touched[i]] |= c;
		hit[touched[i]] = 0;
	}
	nr_touched = 0;
	free(copy);
	return news;
}

static size_t change(uint8_t *p, size_t n)
{
	static const uint8_t odd[] = {0, 1, 2, 0x40, 0x7f, 0x80, 0xc0, 0xff, 7, 4, 10, 13};
	size_t at = n ? any(n) : 0, len;

	switch (any(9)) {
	case 0:
		if (n)
			p[at] ^= (uint8_t)(1u << any(8));
		return n;
	case 1:
		if (n)
			p[at] = (uint8_t)any(256);
		return n;
	case 2:
		if (n)
			p[at] = odd[any(sizeof(odd))];
		return n;
	case 3: /* leave out */
		len = n ? 1 + any(n - at < 16 ? n - at : 16) : 0;
		memmove(p + at, p + at + len, n - at - len);
		return n - len;
	case 4: /* put in */
		len = 1 + any(16);
		if (n + len > LENGTH_MAX)
			return n;
		memmove(p + at + len, p + at, n - at);
		for (size_t i = 0; i < len; i++)
			p[at + i] = any(3) ? (uint8_t)any(256) : odd[any(sizeof(odd))];
		return n + len;
	case 5: /* say twice */
		len = n ? 1 + any(n - at < 64 ? n - at : 64) : 0;
		if (n + len > LENGTH_MAX)
			return n;
		memmove(p + at + len, p + at, n - at);
		return n + len;
	case 6: { /* a piece of another */
		const struct kept *o = &kept[any(nr_kept)];
		size_t from = o->size ? any(o->size) : 0;

		len = o->size ? 1 + any(o->size - from < 128 ? o->size - from : 128) : 0;
		if (n + len > LENGTH_MAX)
			return n;
		memmove(p + at + len, p + at, n - at);
		memcpy(p + at, o->data + from, len);
		return n + len;
	}
	case 7: /* over it */
	{
		const struct kept *o = &kept[any(nr_kept)];
		size_t from = o->size ? any(o->size) : 0;

		len = o->size ? 1 + any(o->size - from < 32 ? o->size - from : 32) : 0;
		len = len < n - at ? len : n - at;
		memcpy(p + at, o->data + from, len);
		return n;
	}
	default:
		if (n)
			p[at] = (uint8_t)(p[at] + (any(2) ? 1 : -1));
		return n;
	}
}

static void load(const char *folder)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		static uint8_t data[LENGTH_MAX];
		char path[4096];
		int fd;
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		fd = *e->d_name == '.' ? -1 : open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, data, sizeof(data));
		if (fd >= 0)
			close(fd);
		if (n >= 0 && (run_one(data, (size_t)n) || !sees))
			keep(data, (size_t)n);
	}
	if (d)
		closedir(d);
}

static void save(const uint8_t *data, size_t size)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "found/%u", nr_kept);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 10);
	static uint8_t data[LENGTH_MAX];
	int fd = open("crash", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	time_t told = 0;

	mkdir("found", 0700);
	if (fd < 0 || ftruncate(fd, LENGTH_MAX + 2) < 0)
		abort();
	present = mmap(NULL, LENGTH_MAX + 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	seed = (uint64_t)time(NULL) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (int i = 2; i < argc; i++)
		load(argv[i]);
	if (!nr_kept)
		keep((const uint8_t *)"\0\0", 2);
	while (time(NULL) < end) {
		const struct kept *from =
			any(4) ? &kept[any(nr_kept)] : &kept[nr_kept - 1 - any(nr_kept < 50 ? nr_kept : 50)];
		size_t n = from->size;

		memcpy(data, from->data, n);
		for (uint64_t i = 1 + any(1u << any(4)); i; i--)
			n = change(data, n);
		if (run_one(data, n)) {
			keep(data, n);
			save(data, n);
		}
		if (time(NULL) - told >= 20) {
			struct rusage u;

			told = time(NULL);
			getrusage(RUSAGE_SELF, &u);
			fprintf(stderr, "%llu runs, %u kept, %ld MB\n", (unsigned long long)runs, nr_kept,
				u.ru_maxrss >> 10);
			if (u.ru_maxrss > 1200 << 10) {
				fprintf(stderr, "memory\n");
				abort();
			}
		}
	}
	fprintf(stderr, "DONE %llu runs, %u kept\n", (unsigned long long)runs, nr_kept);
	return 0;
}
