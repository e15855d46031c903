/* Recordings come from anywhere, so that readers have limits: what a file may unpack to (store/guard.h), and
 * the memory of the whole program. The kernel enforces the second (RLIMIT_DATA), because then it holds for
 * everything that any part of the program builds from a recording: tables, curves, documents. An allocation
 * that fails is an error like any other, and the message says which option allows more (cmd.c). */
#include "cmd/reading.h"

#include "base/str.h"
#include "store/store.h"

#include <sys/resource.h>
#include <unistd.h>

#define MEMORY_LEAST ((double)(64 << 20)) /* less is not enough for any command */

static struct reading_args {
	const char *job;
	uint64_t expansion;
	const char *memory;
} args;

static double memory;

#define INTO(field) offsetof(struct reading_args, field)

static const struct opt opts[] = {
	{0, "job", "ID", OPT_TEXT, INTO(job), .not_from_env = true,
		.help = "of directories that hold several jobs: this one",
		.detail = "The number of the batch job, or the name of a run's directory. Recordings of "
			  "several jobs are never added up to one run."},
	{0, "max-expansion", "N", OPT_COUNT, INTO(expansion), .preset = "1024",
		.help = "how large a recording may unpack, as a multiple of its size",
		.detail = "Protects against small files that would need much memory or time. Beyond N "
			  "times its size, or with more ticks, instances, events or rows than its size "
			  "can explain, a recording is treated as damaged: 'tacho check' says where and "
			  "why. Real recordings reach 260 at most. 0 means no limit. docs/format.md has "
			  "the numbers."},
	{0, "max-memory", "SIZE", OPT_TEXT, INTO(memory),
		.help = "memory that reading may use: 512M, 4G; default: that of the machine",
		.detail = "A run that needs more ends with an error. 0 means no limit."},
};

static double machine_memory(void)
{
	return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Sanitizers reserve more than any machine has, before main(). */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static int apply(struct buf *err)
{
	struct rlimit limit;

	store_set_expansion(args.expansion);
	memory = machine_memory();
	if (args.memory && (parse_bytes(args.memory, &memory) < 0 || (memory && memory < MEMORY_LEAST))) {
		buf_addf(err, "--max-memory: '%s' is no size from 64M on, such as 512M or 4G, nor 0",
			args.memory);
		return -EINVAL;
	}
	if (SANITIZED || !(memory > 0) || memory > (double)(INT64_MAX / 2) ||
		getrlimit(RLIMIT_DATA, &limit) < 0)
		return 0;
	/* Never more than the limit that is set already. */
	limit.rlim_cur = MIN(limit.rlim_cur, (rlim_t)memory);
	limit.rlim_cur = MIN(limit.rlim_cur, limit.rlim_max);
	(void)setrlimit(RLIMIT_DATA, &limit);
	return 0;
}

const char *reading_job(void)
{
	return args.job;
}

double reading_memory(void)
{
	return memory;
}

const struct opt_group reading = {
	.opt = opts,
	.nr = ARRAY_SIZE(opts),
	.args = &args,
	.args_size = sizeof(args),
	.apply = apply,
};
