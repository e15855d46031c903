/* Pages of programs and libraries that only our start needed are given back.
 *
 * Each page fault on a file maps sixteen pages around it, and starting touches code that ticks never run:
 * relocations, options, the schema, facts about the machine. That was half of what a recorder had resident.
 * What is needed again comes back with a fault, from the page cache.
 *
 * Only unchanged pages are given back. A modified page (a breakpoint, a library that patches functions) would
 * lose its changes: a segment with such a page is left alone. */
#include "base/resident.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bits of /proc/self/pagemap, see the kernel's admin-guide/mm/pagemap. */
#define PAGE_OF_FILE (UINT64_C(1) << 61)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_PRESENT (UINT64_C(1) << 63)

struct pagemap {
	int fd;
	uintptr_t page;
};

static bool is_the_files(const struct pagemap *map, uintptr_t from, uintptr_t to)
{
	uint64_t entry[256];

	while (from < to) {
		size_t nr = MIN((to - from) / map->page, ARRAY_SIZE(entry));
		ssize_t n = pread(
			map->fd, entry, nr * sizeof(*entry), (off_t)(from / map->page * sizeof(*entry)));

		if (n != (ssize_t)(nr * sizeof(*entry)))
			return false;
		for (size_t i = 0; i < nr; i++)
			if (entry[i] & PAGE_SWAPPED ||
				(entry[i] & PAGE_PRESENT && !(entry[i] & PAGE_OF_FILE)))
				return false;
		from += nr * map->page;
	}
	return true;
}

static int give_back(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct pagemap *map = arg;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + p->p_vaddr) / map->page * map->page,
			  to = (info->dlpi_addr + p->p_vaddr + p->p_filesz + map->page - 1) / map->page *
			map->page;

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && is_the_files(map, from, to))
			madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

void resident_give_back(void)
{
	struct pagemap map = {
		.fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
		.page = (uintptr_t)sysconf(_SC_PAGESIZE),
	};

	if (map.fd < 0)
		return;
	dl_iterate_phdr(give_back, &map);
	close(map.fd);
}
