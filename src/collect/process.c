/* What one process does, from /proc/PID.
 *
 * The idea, from measuring what each file costs: the CPU clock of a process is one system call of a third of
 * a microsecond and needs no file. A process whose clock has not moved has done nothing, so its files are not
 * read (the engine forces a reading from time to time, since reclaim can shrink a sleeping process). Of those
 * that moved, the files of the tick tier are read through descriptors that stay open, which takes a half to a
 * quarter of the time and makes PID reuse harmless: after the process is reaped its files give ESRCH for
 * ever. `status` costs as much as all others together and is read every few seconds, and when page faults
 * tell of memory that came and went between two samples; smaps_rollup walks page tables and is read when the
 * engine's budget allows.
 *
 * Descriptors are kept up to a limit; beyond it files are opened for each reading, and the start time in
 * `stat` shows whether the PID is still the same process.
 *
 * Rejected: io_uring (slower than pread here), a scan of /proc per tick, `status` for context switches at
 * every tick. */
#include "collect/process.h"

#include "collect/process_rows.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* More than the libraries that all processes share anyway. */
#define MUCH_SHARED_KIB 4096

/* Of 4 KiB in one of 2 MiB. */
#define PAGES_IN_HUGE_ONE 512
/* Fresh memory is cleared by the kernel, no faster than this. */
#define CLEARED_BYTES_PER_NS 10
/* Above the known high-water mark: a smaller spike is no reason to read `status` early. */
#define SPIKE_OF_NO_INTEREST (INT64_C(8) << 20)

#define CLOSED (-1)
#define REFUSED (-2) /* not permitted: not tried again */

static const char *const source_file[NR_PROCESS_SOURCES] = {
	[FROM_STAT] = "stat",
	[FROM_STATM] = "statm",
	[FROM_IO] = "io",
	[FROM_SCHEDSTAT] = "schedstat",
	[FROM_FD] = "fd",
	[FROM_STATUS] = "status",
	[FROM_SMAPS] = "smaps_rollup",
};

struct process {
	pid_t pid;
	int file[NR_PROCESS_SOURCES];
	int64_t uid; /* real, as status had it; -1: that was not read yet */
	int64_t clock;
	uint64_t start_ticks;
	struct usage children; /* that it has waited for */
	int64_t faults;	       /* page faults, as last read */
	int64_t rss, anon;     /* pages, as last read */
	int64_t image;	       /* the same in a forked child, another after an exec; 0: not known */
	int64_t smaps_rss;     /* pages, at the last reading of smaps; -1: none */
	int64_t pss_kib;
	int64_t shared_kib; /* what others had too, copy-on-write included; before the first reading: what it
			       has from its parent */
	int64_t borne_kib;  /* its part of that */
	int64_t reshared_kib, doubt_kib;
	struct { /* at the last reading of it or of a child that it forked */
		int64_t shared_kib, borne_kib, reshared_kib;
	} family;
	bool seen, zombie;
	bool bare;     /* it has no memory any more */
	bool io_whole; /* its io was read when it had ended: it does not grow any more */
	bool spiked;   /* since status was read it may have had more memory than any sample saw */
};

struct processes {
	struct collect_context *ctx;
	struct process *process; /* [rows of the table], lazily mapped */
	size_t memory_size;
	unsigned nr_files, max_files;
	bool wanted[NR_PROCESS_SOURCES];
	bool explained[NR_PROCESS_SOURCES];
	bool fds_by_size; /* since Linux 6.2 the size of /proc/PID/fd is the number of descriptors */
	bool fds_known;	  /* whether it is */
	int clock_col, fd_col, hwm_col;
	/* KiB of large shared memory that processes took, extended or gave back so far, copy-on-write pages
	 * of a fork included. The PSS of all sharers changes then, by this much at most, while their RSS does
	 * not. */
	int64_t reshared_kib;
	bool is_wary;
	int smaps_rss_col, pss_col, private_col[2], doubt_col;
	struct columns_reader stat, statm, schedstat;
	struct kv_reader io, status, smaps;
	int own_io;	       /* our own file, when it was needed */
	char io_before[512];   /* of it, before a child was waited for */
	ssize_t io_before_len; /* 0: not read */
};

static int column_of(const struct processes *p, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(process_metric); i++)
		if (!strcmp(process_metric[i].name, name))
			return p->ctx->map.col[i];
	return -1;
}

static bool fd_size_counts(struct env *env)
{
	int handle = env_open(env, "proc/self/fd");
	bool counts = handle >= 0 && env_size(env, handle) > 0;

	env_close(env, handle);
	return counts || !env->live;
}

int processes_open(struct processes **ret, struct collect_context *ctx, unsigned max_files)
{
	struct processes *p = calloc(1, sizeof(*p));
	const struct metric *m = process_metric;
	size_t nr = ARRAY_SIZE(process_metric);

	if (!p)
		return -ENOMEM;
	p->memory_size = (size_t)ctx->table->cap * sizeof(struct process);
	p->process = mmap(NULL, p->memory_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->process == MAP_FAILED) {
		free(p);
		return -ENOMEM;
	}
	p->ctx = ctx;
	p->max_files = max_files;
	p->own_io = CLOSED;
	for (size_t i = 0; i < nr; i++)
		if (ctx->map.col[i] >= 0)
			p->wanted[m[i].at.source] = true;
	p->wanted[FROM_STAT] = true; /* the engine needs parent and start time */
	p->fds_by_size = true;	     /* assumed until a folder seems to be empty */
	p->clock_col = column_of(p, "proc.cpu.time");
	p->fd_col = column_of(p, "proc.fds");
	p->hwm_col = column_of(p, "proc.mem.hwm");
	p->smaps_rss_col = column_of(p, "proc.smaps.rss");
	p->pss_col = column_of(p, "proc.mem.pss");
	p->doubt_col = column_of(p, "proc.smaps.doubt");
	p->private_col[0] = column_of(p, "proc.mem.private_clean");
	p->private_col[1] = column_of(p, "proc.mem.private_dirty");
	columns_init(&p->stat, m, nr, FROM_STAT, &ctx->map);
	columns_init(&p->statm, m, nr, FROM_STATM, &ctx->map);
	columns_init(&p->schedstat, m, nr, FROM_SCHEDSTAT, &ctx->map);
	kv_init(&p->io, m, nr, FROM_IO, &ctx->map);
	kv_init(&p->status, m, nr, FROM_STATUS, &ctx->map);
	kv_init(&p->smaps, m, nr, FROM_SMAPS, &ctx->map);
	*ret = p;
	return 0;
}

struct processes *processes_close(struct processes *p)
{
	if (!p)
		return NULL;
	for (uint32_t row = 0; row < p->ctx->table->nr_rows; row++)
		if (p->ctx->table->id[row] != ROW_FREE)
			process_unbind(p, row);
	env_close(p->ctx->env, p->own_io);
	munmap(p->process, p->memory_size);
	free(p);
	return NULL;
}

unsigned processes_open_files(const struct processes *p)
{
	return p->nr_files;
}

void process_bind(struct processes *p, uint32_t row, pid_t pid)
{
	struct process *process = &p->process[row];

	*process =
		(struct process){.pid = pid, .uid = -1, .clock = -1, .smaps_rss = -1, .doubt_kib = INT64_MIN};
	for (int s = 0; s < NR_PROCESS_SOURCES; s++)
		process->file[s] = CLOSED;
}

static void file_close(struct processes *p, struct process *process, int source)
{
	if (process->file[source] >= 0) {
		env_close(p->ctx->env, process->file[source]);
		p->nr_files--;
	}
	process->file[source] = CLOSED;
}

/* Sets how much it shares now. */
static void reshare(struct processes *p, struct process *process, int64_t shared_kib)
{
	int64_t change = shared_kib - process->shared_kib;

	change = change < 0 ? -change : change;
	if (change > MUCH_SHARED_KIB)
		p->reshared_kib += change;
	process->shared_kib = shared_kib;
}

static int64_t kib_of(const struct processes *p, int64_t pages)
{
	return pages * (p->ctx->env->page_size / 1024);
}

static void put_doubt(struct processes *p, uint32_t row, int64_t kib)
{
	if (p->doubt_col < 0 || kib == p->process[row].doubt_kib)
		return;
	table_touch(p->ctx->table, row);
	table_set(p->ctx->table, row, (uint32_t)p->doubt_col, kib);
	p->process[row].doubt_kib = kib;
}

void process_unbind(struct processes *p, uint32_t row)
{
	if (p->process[row].shared_kib > MUCH_SHARED_KIB)
		p->reshared_kib += p->process[row].shared_kib;
	for (int s = 0; s < NR_PROCESS_SOURCES; s++)
		file_close(p, &p->process[row], s);
	p->process[row].pid = 0;
}

/* Reports why the metrics of a source have no values: once, the first time it happens. */
static void explain(struct processes *p, int source, int error)
{
	bool forbidden = is_refused(error);

	if (p->explained[source])
		return;
	p->explained[source] = true;
	for (size_t i = 0; i < ARRAY_SIZE(process_metric); i++)
		if (process_metric[i].at.source == source && p->ctx->map.col[i] >= 0)
			p->ctx->why(p->ctx, i, forbidden ? FORBIDDEN : ABSENT,
				forbidden ? "some processes belong to another user or are protected"
					  : "this kernel does not have the file",
				forbidden ? "run as that user or as root" : NULL);
}

/* The process's file, kept open while descriptors last. *ret_temporary: the caller closes it. */
static int file_open(struct processes *p, struct process *process, int source, bool *ret_temporary)
{
	char path[48];
	int handle = process->file[source];

	*ret_temporary = false;
	if (likely(handle >= 0))
		return handle;
	if (handle == REFUSED)
		return -EACCES;
	snprintf(path, sizeof(path), "proc/%d/%s", (int)process->pid, source_file[source]);
	handle = env_open(p->ctx->env, path);
	if (handle < 0)
		return handle;
	if (p->nr_files >= p->max_files) {
		*ret_temporary = true;
		return handle;
	}
	p->nr_files++;
	return process->file[source] = handle;
}

/* Whether it has ended since its stat was read: then a missing or unreadable file means nothing. */
static bool has_ended(struct processes *p, struct process *process)
{
	struct process_facts facts;
	int64_t fields[STAT_FIELDS];
	char text[1024];
	bool temporary;
	int handle = file_open(p, process, FROM_STAT, &temporary);
	ssize_t n = handle < 0 ? handle : env_read(p->ctx->env, handle, text, sizeof(text));

	if (temporary)
		env_close(p->ctx->env, handle);
	if (n == -ENOENT || n == -ESRCH)
		return true;
	return n > 0 && process_parse_stat(text, (size_t)n, fields, 23, &facts) &&
		(facts.state == 'Z' || facts.state == 'X' || (process->image && !fields[23]));
}

/* Reads one file of the process whole. -ESRCH and -ENOENT mean that it is gone. */
static ssize_t file_read(struct processes *p, struct process *process, int source, char *out, size_t size)
{
	bool temporary;
	int handle = file_open(p, process, source, &temporary);
	ssize_t n = handle < 0 ? handle : env_read(p->ctx->env, handle, out, size);

	if (temporary)
		env_close(p->ctx->env, handle);
	/* The files of an ended process are unreadable even for its own user. */
	if (is_refused(n) && process->file[source] != REFUSED && !process->zombie &&
		(handle < 0 || !p->explained[source]) && !has_ended(p, process)) {
		explain(p, source, -EACCES);
		if (handle < 0)
			process->file[source] = REFUSED;
	}
	return n == -ENOENT ? -ESRCH : n;
}

bool process_parse_stat(
	const char *text, size_t len, int64_t *fields, unsigned last, struct process_facts *facts)
{
	const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
	const char *end = text + len, *p;
	size_t n;

	/* The name may hold anything, parentheses and newlines too: it ends at the last ')'. */
	if (!open || !close || close < open || close + 2 >= end)
		return false;
	n = MIN((size_t)(close - open - 1), sizeof(facts->name) - 1);
	memcpy(facts->name, open + 1, n);
	facts->name[n] = 0;
	p = close + 2;
	facts->state = *p;
	fields[3] = *p++;
	for (unsigned i = 4; i <= last; i++) {
		if (p == end || *p++ != ' ' || !read_number(&p, end, &fields[i]))
			return false;
	}
	facts->ppid = (pid_t)fields[4];
	facts->start_ticks = last >= 22 ? (uint64_t)fields[22] : 0;
	/* A kernel thread ignores all signals, and has no children that count. */
	facts->ignores_sigchld =
		last >= 33 && fields[33] >> (SIGCHLD - 1) & 1 && !(fields[33] >> (SIGKILL - 1) & 1);
	facts->has_stat = true;
	return true;
}

/* Faults and CPU time of those it waited for. */
static void take_children(const struct processes *p, struct process *process, const int64_t *fields,
	struct process_facts *facts)
{
	int64_t tick_us = 1000000 / p->ctx->env->clock_tick;
	const struct usage *before = &process->children;
	struct usage now = {.used[USED_MINOR] = fields[11],
		.used[USED_MAJOR] = fields[13],
		.used[USED_USER] = fields[16] * tick_us,
		.used[USED_SYSTEM] = fields[17] * tick_us};

	facts->children =
		(struct usage){.used[USED_MINOR] = MAX(now.used[USED_MINOR] - before->used[USED_MINOR], 0),
			.used[USED_MAJOR] = MAX(now.used[USED_MAJOR] - before->used[USED_MAJOR], 0),
			.used[USED_USER] = MAX(now.used[USED_USER] - before->used[USED_USER], 0),
			.used[USED_SYSTEM] = MAX(now.used[USED_SYSTEM] - before->used[USED_SYSTEM], 0)};
	process->children = now;
	facts->children_grew = process->seen && !usage_is_none(&facts->children);
}

/* Where its code and its stack begin, which changes with every exec; during an exec they are 0. An ending
 * process frees its memory before it is a zombie. */
static void take_image(struct process *process, const int64_t *fields, struct process_facts *facts)
{
	int64_t image = fields[26] > 1 && fields[28] > 1 ? fields[26] ^ fields[28] << 1 : 0;

	process->bare = facts->bare = process->zombie || (process->image && !fields[23]);
	if (process->bare || image == process->image)
		return;
	facts->replaced = process->image;
	process->image = image;
}

static int read_stat(struct processes *p, uint32_t row, struct process_facts *facts)
{
	struct process *process = &p->process[row];
	/* Picks are in the order of the text; start time (22) and ignored signals (33) are always needed. */
	unsigned last = p->stat.nr ? MAX(33, (unsigned)p->stat.pick[p->stat.nr - 1].from) : 33;
	int64_t fields[STAT_FIELDS];
	char text[1024];
	ssize_t n = file_read(p, process, FROM_STAT, text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (!process_parse_stat(text, (size_t)n, fields, last, facts))
		return -EIO;
	if (process->seen && facts->start_ticks != process->start_ticks)
		return -ESRCH; /* the PID is another process now */
	process->start_ticks = facts->start_ticks;
	process->zombie = facts->state == 'Z';
	facts->ended = process->zombie && fields[20] <= 1; /* its main thread may end before the others */
	take_children(p, process, fields, facts);
	facts->faults = process->seen ? fields[10] + fields[12] - process->faults : 0;
	process->faults = fields[10] + fields[12];
	take_image(process, fields, facts);
	process->seen = true;
	for (unsigned i = 0; i < p->stat.nr; i++)
		table_set(p->ctx->table, row, (uint32_t)p->stat.pick[i].to, fields[p->stat.pick[i].from]);
	return 0;
}

/* A zombie has no memory: NR_PROCESS_SOURCES reads nothing, and the cells have no value rather than zero. */
static bool read_columns(struct processes *p, uint32_t row, int source, const struct columns_reader *reader)
{
	char text[256];
	ssize_t n = source != NR_PROCESS_SOURCES && p->wanted[source]
		? file_read(p, &p->process[row], source, text, sizeof(text))
		: -ENOENT;

	if (n <= 0) {
		for (unsigned i = 0; i < reader->nr; i++)
			table_unset(p->ctx->table, row, (uint32_t)reader->pick[i].to);
		return false;
	}
	columns_read(reader, text, (size_t)n, 1, p->ctx->table, row);
	if (source == FROM_STATM) {
		const char *at = text, *end = text + n;
		int64_t vms, backed;

		if (read_number(&at, end, &vms) && at++ < end &&
			read_number(&at, end, &p->process[row].rss) && at++ < end &&
			read_number(&at, end, &backed))
			p->process[row].anon = MAX(p->process[row].rss - backed, 0);
	}
	return true;
}

/* The real user in the text of a status file; -1: there is none. */
static int64_t uid_of(const char *text, size_t len)
{
	static const char key[] = "\nUid:\t";
	const char *at = memmem(text, len, key, strlen(key));
	int64_t uid;

	if (!at)
		return -1;
	at += strlen(key);
	return read_number(&at, text + len, &uid) ? uid : -1;
}

static bool read_keys(struct processes *p, uint32_t row, int source, struct kv_reader *reader)
{
	char text[4096];
	ssize_t n = p->wanted[source] ? file_read(p, &p->process[row], source, text, sizeof(text)) : -ENOENT;

	if (n > 0) {
		if (source == FROM_STATUS)
			p->process[row].uid = uid_of(text, (size_t)n);
		return kv_read(reader, text, (size_t)n, p->ctx->table, row) > 0;
	}
	/* The values of an ended process stay, though its files may be unreadable now. */
	for (unsigned i = 0; i < reader->nr_keys && !p->process[row].zombie; i++)
		table_unset(p->ctx->table, row, (uint32_t)reader->key[i].col);
	return false;
}

static int count_entry(void *arg, const char *name)
{
	(void)name;
	++*(int64_t *)arg;
	return 0;
}

static void read_fds(struct processes *p, uint32_t row, bool medium)
{
	struct process *process = &p->process[row];
	bool temporary;
	int64_t n = 0;
	int handle;

	if (p->fd_col < 0)
		return;
	if (process->bare) { /* its descriptors are closed already: how many it had is not known */
		table_unset(p->ctx->table, row, (uint32_t)p->fd_col);
		return;
	}
	if (!p->fds_by_size) { /* an older kernel: the folder must be listed, which is expensive */
		char path[48];

		if (!medium)
			return;
		snprintf(path, sizeof(path), "proc/%d/fd", (int)process->pid);
		n = env_list(p->ctx->env, path, count_entry, &n) < 0 ? -1 : n;
	} else {
		handle = file_open(p, process, FROM_FD, &temporary);
		n = handle < 0 ? handle : env_size(p->ctx->env, handle);
		if (temporary)
			env_close(p->ctx->env, handle);
		if (n == 0 && !p->fds_known) {
			p->fds_by_size = fd_size_counts(p->ctx->env);
			p->fds_known = true;
			if (!p->fds_by_size)
				return read_fds(p, row, medium);
		}
		p->fds_known |= n > 0;
		if (handle == -EACCES && process->file[FROM_FD] != REFUSED && !has_ended(p, process)) {
			explain(p, FROM_FD, handle);
			process->file[FROM_FD] = REFUSED;
		}
	}
	if (n < 0 || (n == 0 && has_ended(p, process)))
		table_unset(p->ctx->table, row, (uint32_t)p->fd_col);
	else
		table_set(p->ctx->table, row, (uint32_t)p->fd_col, n);
}

static void put_clock(struct processes *p, uint32_t row, int64_t clock)
{
	table_touch(p->ctx->table, row);
	if (p->clock_col >= 0)
		table_set(p->ctx->table, row, (uint32_t)p->clock_col, clock / 1000);
}

bool process_put_clock(struct processes *p, uint32_t row, int64_t clock)
{
	if (clock == p->process[row].clock)
		return false;
	put_clock(p, row, clock);
	return true;
}

/* Memory that came and went between two samples leaves page faults that the growth of RSS does not explain,
 * and CPU time, since it had to be cleared. One fault may bring a huge page. The most memory that these allow
 * matters only above the known high-water mark: a process that takes and gives back the same pages at every
 * tick is not read each time. `ran_ns`: its CPU time since the reading before; RSS in pages. */
static bool may_have_spiked(const struct processes *p, uint32_t row, const struct process_facts *facts,
	int64_t rss, int64_t ran_ns)
{
	const struct table *t = p->ctx->table;
	int64_t now = p->process[row].rss, faults = facts->faults - MAX(now - rss, 0) / PAGES_IN_HUGE_ONE;
	int64_t page = p->ctx->env->page_size, most;

	if (faults <= 0 || p->hwm_col < 0 || !(t->valid[row] >> p->hwm_col & 1))
		return false;
	most = MIN(faults * PAGES_IN_HUGE_ONE * page, ran_ns * CLEARED_BYTES_PER_NS);
	return MAX(rss, now) * page + most >
		t->cell[(size_t)row * t->nr_cols + (size_t)p->hwm_col] * 1024 + SPIKE_OF_NO_INTEREST;
}

int process_read(struct processes *p, uint32_t row, int64_t clock, bool medium, bool follow,
	enum process_effort effort, struct process_facts *facts)
{
	struct process *process = &p->process[row];
	int64_t rss = process->rss, ran_ns = clock - process->clock;
	bool slept = clock == process->clock && !(follow && process->spiked);
	int r;

	facts->has_stat = facts->has_status = facts->ended = false;
	facts->faults = facts->replaced = 0;
	if (clock < 0)
		return (int)clock;
	if (slept && effort == READ_IF_MOVED)
		return 0;
	r = read_stat(p, row, facts);
	if (r == -ESRCH)
		return r;
	process->clock = clock;
	put_clock(p, row, clock);
	read_columns(p, row, process->bare ? NR_PROCESS_SOURCES : FROM_STATM, &p->statm);
	process->spiked |= may_have_spiked(p, row, facts, rss, ran_ns);
	medium |= facts->replaced != 0; /* its high-water marks start again */
	if (slept && process->rss == rss && effort != READ_ALL && !facts->replaced)
		return 1;
	process->io_whole = read_keys(p, row, FROM_IO, &p->io) && facts->ended;
	if (effort == READ_ACCOUNT)
		return 1;
	read_columns(p, row, FROM_SCHEDSTAT, &p->schedstat);
	read_fds(p, row, medium);
	/* Without memory its status has no high-water marks any more: the known ones are kept. */
	facts->has_status = (medium || (follow && process->spiked)) && !process->bare;
	if (facts->has_status) {
		read_keys(p, row, FROM_STATUS, &p->status);
		process->spiked = false;
	}
	return 1;
}

static ssize_t read_own_io(struct processes *p, char *out, size_t size)
{
	if (p->own_io < 0)
		p->own_io = env_open(p->ctx->env, "proc/self/io");
	return p->own_io < 0 ? p->own_io : env_read(p->ctx->env, p->own_io, out, size);
}

bool process_io_is_whole(const struct processes *p, uint32_t row)
{
	return p->process[row].io_whole;
}

void process_before_wait(struct processes *p, uint32_t row)
{
	p->io_before_len = p->wanted[FROM_IO] && !p->process[row].io_whole
		? read_own_io(p, p->io_before, sizeof(p->io_before))
		: 0;
}

/* The kernel adds what the child and those that it waited for have read and written to our own counters. */
void process_after_wait(struct processes *p, uint32_t row)
{
	int chars = column_of(p, "proc.io.read_chars"), calls = column_of(p, "proc.io.read_calls");
	int64_t before[METRICS_MAX], *cell = table_row(p->ctx->table, row);
	char text[512];
	ssize_t n = p->io_before_len > 0 ? read_own_io(p, text, sizeof(text)) : 0;

	if (n <= 0 || !kv_read(&p->io, p->io_before, (size_t)p->io_before_len, p->ctx->table, row))
		return;
	for (unsigned i = 0; i < p->io.nr_keys; i++)
		before[i] = cell[p->io.key[i].col];
	kv_read(&p->io, text, (size_t)n, p->ctx->table, row);
	for (unsigned i = 0; i < p->io.nr_keys; i++)
		cell[p->io.key[i].col] -= before[i];
	/* The kernel counts a read after it was made: so our first reading is in the second. */
	if (chars >= 0)
		cell[chars] -= p->io_before_len;
	if (calls >= 0)
		cell[calls]--;
	p->process[row].io_whole = true;
}

bool processes_want_smaps(const struct processes *p)
{
	return p->wanted[FROM_SMAPS];
}

bool process_has_waited(const struct processes *p, uint32_t row)
{
	return !usage_is_none(&p->process[row].children);
}

int64_t process_image(const struct processes *p, uint32_t row)
{
	return p->process[row].image;
}

void process_forget_peak(struct processes *p, uint32_t row)
{
	if (p->hwm_col < 0)
		return;
	table_touch(p->ctx->table, row);
	table_unset(p->ctx->table, row, (uint32_t)p->hwm_col);
}

int64_t process_rss_pages(const struct processes *p, uint32_t row)
{
	return p->process[row].rss;
}

int64_t process_smaps_drift(const struct processes *p, uint32_t row)
{
	const struct process *process = &p->process[row];
	int64_t drift = process->rss - process->smaps_rss;

	if (process->file[FROM_SMAPS] == REFUSED)
		return 0;
	if (process->smaps_rss < 0) /* the sum of PSS lacks little of what it has from its parent */
		return process->shared_kib > MUCH_SHARED_KIB ? process->rss / 8 : INT64_MAX;
	return drift < 0 ? -drift : drift;
}

/* The shared part of what was just read, in KiB; 0 when the private part is not recorded. */
static int64_t shared_of(const struct processes *p, uint32_t row)
{
	const int64_t *cells = table_row(p->ctx->table, row);

	if (p->smaps_rss_col < 0 || p->private_col[0] < 0 || p->private_col[1] < 0)
		return 0;
	return MAX(cells[p->smaps_rss_col] - cells[p->private_col[0]] - cells[p->private_col[1]], 0);
}

bool process_is_outshared(const struct processes *p, uint32_t row)
{
	const struct process *process = &p->process[row];

	return process->smaps_rss >= 0 && process->reshared_kib != p->reshared_kib &&
		process->rss > MUCH_SHARED_KIB / 4 && process->file[FROM_SMAPS] != REFUSED;
}

int64_t processes_reshared(const struct processes *p)
{
	return p->reshared_kib;
}

/* The memory of a process comes from its own page faults, or from its parent. */
void process_inherit(struct processes *p, uint32_t row, uint32_t parent)
{
	struct process *process = &p->process[row];
	bool forked = process->image && process->image == p->process[parent].image;

	if (process->smaps_rss >= 0 || process->zombie)
		return;
	reshare(p, process, forked ? kib_of(p, MAX(process->anon - process->faults, 0)) : 0);
	if (!process->reshared_kib || !forked)
		process->reshared_kib = p->reshared_kib;
	put_doubt(p, row, process->shared_kib);
}

/* Where readings of its family are kept: for a forked child at its parent. */
static struct process *head_of(struct processes *p, uint32_t row, uint32_t parent)
{
	struct process *process = &p->process[row], *from = parent == NO_PARENT ? NULL : &p->process[parent];

	return from && process->image && from->image == process->image ? from : process;
}

/* In PSS all processes that share a page have the same part of it. As long as one of the family was not read
 * since others began to share, its part is taken from the last one that was read. If that is more than its
 * own reading, some have stopped sharing, and either may be right. */
void process_tell_doubt(struct processes *p, uint32_t row, uint32_t parent)
{
	struct process *process = &p->process[row], *head = head_of(p, row, parent);
	int64_t reshared = p->reshared_kib - process->reshared_kib, part = 0;
	bool known = head->family.shared_kib > 0 && head->family.reshared_kib >= process->reshared_kib;

	if (known)
		part = process->shared_kib * head->family.borne_kib / head->family.shared_kib;
	if (process->smaps_rss < 0) {
		if (known && head != process)
			put_doubt(p, row, process->shared_kib - part);
	} else if (!process_is_outshared(p, row)) {
		put_doubt(p, row, 0);
	} else if (known && part < process->borne_kib) {
		put_doubt(p, row, part - process->borne_kib);
	} else {
		put_doubt(p, row, MIN(kib_of(p, process->rss), reshared));
	}
}

void process_tell_family(struct processes *p, uint32_t row, uint32_t parent)
{
	struct process *process = &p->process[row], *head = head_of(p, row, parent);

	head->family.shared_kib = process->shared_kib;
	head->family.borne_kib = process->borne_kib;
	head->family.reshared_kib = process->reshared_kib;
}

bool processes_are_wary(struct processes *p)
{
	bool wary = p->is_wary;

	p->is_wary = false;
	return wary;
}

void process_recheck(struct processes *p, uint32_t row)
{
	struct process *process = &p->process[row];
	int64_t rss = process->rss;

	if (process->shared_kib <= MUCH_SHARED_KIB || process->zombie)
		return;
	table_touch(p->ctx->table, row);
	if (!read_columns(p, row, FROM_STATM, &p->statm) || !process->rss) {
		read_columns(p, row, NR_PROCESS_SOURCES, &p->statm);
		process->rss = process->anon = 0;
	}
	if (kib_of(p, rss - process->rss) > MUCH_SHARED_KIB)
		reshare(p, process, MAX(process->shared_kib - kib_of(p, rss - process->rss), 0));
}

static void take_smaps(struct processes *p, uint32_t row)
{
	struct process *process = &p->process[row];
	const int64_t *cells = table_row(p->ctx->table, row);
	int64_t pss_kib = p->pss_col < 0 ? 0 : cells[p->pss_col], shared_kib = shared_of(p, row);

	/* Its part of the same memory grew: another process that shared it has ended and may still be
	 * counted. */
	if (process->smaps_rss < 0 ||
		pss_kib - process->pss_kib >
			kib_of(p, process->rss - process->smaps_rss) + MUCH_SHARED_KIB / 4)
		p->is_wary = true;
	reshare(p, process, shared_kib);
	process->pss_kib = pss_kib;
	process->borne_kib =
		shared_kib ? MIN(MAX(pss_kib - (cells[p->smaps_rss_col] - shared_kib), 0), shared_kib) : 0;
	process->smaps_rss = process->rss;
	process->reshared_kib = p->reshared_kib;
	put_doubt(p, row, 0);
}

int process_read_smaps(struct processes *p, uint32_t row)
{
	struct process *process = &p->process[row];
	char text[4096], path[48];
	ssize_t n;
	int handle;

	/* Opened each time: after an exec a kept descriptor would give ESRCH, and the walk takes much longer
	 * than the open. */
	snprintf(path, sizeof(path), "proc/%d/smaps_rollup", (int)process->pid);
	handle = env_open(p->ctx->env, path);
	n = handle < 0 ? handle : env_read(p->ctx->env, handle, text, sizeof(text));
	env_close(p->ctx->env, handle);
	if (n <= 0) {
		if (is_refused(n) || n == -ENOENT) {
			if (n != -ENOENT)
				explain(p, FROM_SMAPS, -EACCES);
			process->file[FROM_SMAPS] = REFUSED;
		}
		table_touch(p->ctx->table, row);
		/* A process that has just ended has no memory any more: others may have its part already. */
		read_columns(p, row, n == -ESRCH ? NR_PROCESS_SOURCES : FROM_STATM, &p->statm);
		return n < 0 ? (int)n : -ESRCH;
	}
	table_touch(p->ctx->table, row);
	if (kv_read(&p->smaps, text, (size_t)n, p->ctx->table, row) == 0)
		return -EIO;
	/* RSS of the same moment. The RSS that this tick has read already is older: memory that was freed
	 * since then would look like new private memory. */
	read_columns(p, row, FROM_STATM, &p->statm);
	take_smaps(p, row);
	return 0;
}

bool process_cell(const struct processes *p, uint32_t row, const char *metric, int64_t *ret)
{
	struct table *t = p->ctx->table;
	int col = column_of(p, metric);

	if (col < 0 || !(t->valid[row] >> col & 1))
		return false;
	*ret = table_row(t, row)[col];
	return true;
}

ssize_t process_cmdline(struct env *env, pid_t pid, char *out, size_t size, bool *ret_cut)
{
	char path[48];
	ssize_t n;
	int handle;

	snprintf(path, sizeof(path), "proc/%d/cmdline", (int)pid);
	handle = env_open(env, path);
	n = handle < 0 ? handle : env_read(env, handle, out, size);
	env_close(env, handle);
	*ret_cut = n == (ssize_t)size;
	while (n > 0 && !out[n - 1])
		n--;
	return n;
}

ssize_t process_exe(struct env *env, pid_t pid, char *out, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "proc/%d/exe", (int)pid);
	return env_readlink(env, path, out, size);
}

int process_uid_now(struct env *env, pid_t pid, uint32_t *ret)
{
	char path[48], text[4096];
	int64_t uid;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/status", (int)pid);
	n = env_peek(env, path, text, sizeof(text));
	uid = n > 0 ? uid_of(text, (size_t)n) : -1;
	*ret = (uint32_t)uid;
	return uid < 0 ? -ENODATA : 0;
}

int process_uid(const struct processes *p, uint32_t row, pid_t pid, uint32_t *ret)
{
	if (p->process[row].pid != pid || p->process[row].uid < 0)
		return process_uid_now(p->ctx->env, pid, ret);
	*ret = (uint32_t)p->process[row].uid;
	return 0;
}

static int process_probe(struct env *env, struct trouble *reterr_why)
{
	static const struct trouble absent = {"/proc is not mounted", "mount -t proc proc /proc"},
				    other = {"/proc is of another PID namespace than ours",
					    "mount -t proc proc /proc (unshare --mount-proc does)"};
	int r = probe_file(env, "proc/self/stat", absent, reterr_why);

	if (!env->other_pids || r < 0)
		return r;
	*reterr_why = other;
	return -ENOENT;
}

/* Its rows are filled process by process, as the engine goes through the members: see process_read(). */
const struct collector collector_process = {
	.name = "process",
	.summary = "every process of the job: CPU, memory, I/O, faults, switches, threads, descriptors",
	.domain = DOMAIN_PROCESS,
	.metric = process_metric,
	.nr_metrics = ARRAY_SIZE(process_metric),
	.tier = TIER_TICK,
	.probe = process_probe,
};
