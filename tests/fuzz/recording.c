#include "recording.h"

#include "block.h"

#include "base/pairs.h"
#include "metric/schema.h"
#include "store/schema_codec.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#define ROWS 6

/* clang-format off */
static const struct set {
	const char *domain, *metrics; /* "name:kind:unit" parted by blanks; c counter, g gauge, p peak */
} sets[] = {
	{"process", "proc.cpu.time:c:s proc.cpu.user:c:s proc.cpu.system:c:s proc.mem.rss:g:b proc.mem.pss:g:b "
	            "proc.smaps.rss:g:b proc.smaps.anon:g:b proc.mem.private_dirty:g:b proc.mem.hwm:p:b proc.threads:g:n "
	            "proc.io.read_chars:c:b proc.io.write_chars:c:b proc.faults.minor:c:n proc.cpu.children_user:c:s "
	            "proc.signals.ignored:g:n proc.state:g:n"},
	{"tree", "tree.gone.user:c:s tree.gone.read_chars:c:b tree.cgroup.cpu:c:s tree.cgroup.memory_peak:p:b tree.processes:g:n tree.joined:c:n"},
	{"group", "group.gone.user:c:s group.gone.read_chars:c:b group.processes:g:n"},
	{"cpu", "cpu.user:c:s cpu.system:c:s cpu.idle:c:s cpu.frequency:g:h"},
	{"node", "mem.total:g:b mem.available:g:b limit.cpus:g:n limit.memory:g:b"},
	{"net", "net.rx.bytes:c:b net.tx.bytes:c:b"},
	{"disk", "disk.read_bytes:c:b disk.write_bytes:c:b disk.busy:c:s"},
	{"energy", "energy.total:c:j"},
	{"gpu", "gpu.util:g:r gpu.mem.used:g:b gpu.power:g:w gpu.energy:c:j"},
	{"gpu_process", "gpuproc.mem:g:b gpuproc.util:g:r"},
	{"perf", "perf.instructions:c:n perf.instructions.running:c:s perf.cycles:c:n perf.cycles.running:c:s"},
	{"collector", "self.cpu:c:s self.rss:g:b self.ticks.missed:c:n"},
};
static const char *const keys[] = {"pid", "ppid", "uid", "name", "cmdline", "exe", "start_ns", "late", "groups", "apart", "how",
	"status", "cpu_ns", "max_rss_kib", "user_us", "system_us", "sampled", "kind", "target", "own", "vendor", "index", "model", "uuid", "job",
	"gpu", "process", "assumed", "counts", "ticks", "records", "since_ns", "metric", "availability", "why", "remedy", "step_ns", "every",
	"host", "command", "mode", "interval_ns", "start_wall_ns", "limits.cpus", "limits.memory_bytes", "limits.group.0", "scheduler.kind", "scheduler.nodes",
	"hw.cpu_model", "env.SLURM_JOB_ID", "derived.own", "asked", "ended", "exit_status", "end_ns", "missed", "peak_rss_bytes", "tag.a"};
static const char *const values[] = {"", "1", "2", "3", "0", "-1", "a", "b", "a\0b", "total", "reaped", "exit-record", "noticed", "left", "yes", "no",
	"exited", "signaled", "9223372036854775807", "-9223372036854775808", "1000000000", "100000000", "18446744073709551616", "1e308", "\xff\n\x1b[31m",
	"count\0" "1\0cpu\0rate(proc.cpu.time)/0\0help", "bytes\0" "0\0\0own+own\0", "attach", "run", "match", "gpu0", "node1,node2", "\xe2\x80\xae", "=1+1"};
static const char *const events[] = {"gap", "phase.begin", "phase.end", "mark", "stopped", "continued", "signal", "clock", "backoff", "unavailable", ""};
static const int64_t numbers[] = {0, 1, -1, 2, 100, 4096, 1000000, 1000000000, 10000000000, INT64_C(1) << 40, INT64_C(1) << 53, INT64_MAX, INT64_MIN, INT64_MAX / 2};
/* clang-format on */

#define NR_SETS ARRAY_SIZE(sets)

struct making {
	const uint8_t *p, *end;
	struct buf file, content, body;
	uint32_t sequence;
	bool begun; /* a segment is open: `content` is its next block */
	bool first;
	ZSTD_CCtx *zstd;
	uint32_t id[NR_SETS][ROWS], next_id[NR_SETS];
	unsigned nr_cols[NR_SETS];
	uint64_t tick;
	int64_t clock;
};

static unsigned next(struct making *m)
{
	return m->p < m->end ? *m->p++ : 0;
}

static int64_t number(struct making *m)
{
	unsigned choice = next(m);

	if (choice < 128)
		return numbers[choice % ARRAY_SIZE(numbers)];
	return (int64_t)((choice & 63) << 8 | next(m)) * (choice & 64 ? 1000000 : 1);
}

static void add_block(struct making *m, unsigned type, unsigned flags, const void *payload, size_t size)
{
	fuzz_add_block(&m->file, m->sequence++, type, flags, payload, size);
}

/* The records so far become a block of the segment. */
static void flush(struct making *m)
{
	size_t bound = ZSTD_compressBound(m->content.len) + 64;
	uint8_t *packed = malloc(bound);
	ZSTD_inBuffer in = {m->content.data, m->content.len, 0};
	ZSTD_outBuffer out = {packed, bound, 0};

	if (!packed || ZSTD_isError(ZSTD_compressStream2(m->zstd, &out, &in, ZSTD_e_flush)))
		abort();
	if (m->begun)
		add_block(m, BLOCK_SEGMENT, m->first ? BLOCK_FIRST : 0, packed, out.pos);
	m->first = false;
	buf_reset(&m->content);
	free(packed);
}

static void put_record(struct making *m, unsigned type)
{
	buf_add_varint(&m->content, type);
	buf_add_bytes(&m->content, m->body.data, m->body.len);
	buf_reset(&m->body);
}

static void put_signed(struct making *m, int64_t v)
{
	buf_add_varint(&m->body, zigzag(v));
}

static void put_pairs(struct making *m, struct buf *out)
{
	unsigned nr = next(m) % 8;

	buf_add_varint(out, nr);
	for (unsigned i = 0; i < nr; i++) {
		const char *key = keys[next(m) % ARRAY_SIZE(keys)];
		unsigned choice = next(m);

		buf_add_bytes(out, key, strlen(key));
		if (choice < 200) {
			const char *v = values[choice % ARRAY_SIZE(values)];
			size_t len = strlen(v);

			/* Those of several parts go on behind their first NUL. */
			buf_add_bytes(out, v,
				choice % ARRAY_SIZE(values) == 8	    ? 3
					: choice % ARRAY_SIZE(values) == 25 ? 38
									    : len);
		} else {
			size_t n = MIN((size_t)(choice - 200), (size_t)(m->end - m->p));

			buf_add_bytes(out, m->p, n);
			m->p += n;
		}
	}
}

static void put_place(struct making *m, unsigned set, unsigned row, uint32_t id)
{
	buf_add_varint(&m->body, set);
	buf_add_varint(&m->body, row < ROWS ? row + 1 : 0);
	buf_add_varint(&m->body, id);
}

static void begin_segment(struct making *m, unsigned how)
{
	if (m->begun)
		flush(m);
	ZSTD_CCtx_reset(m->zstd, ZSTD_reset_session_only);
	m->begun = m->first = true;
	buf_add_varint(&m->body, m->tick);
	put_signed(m, m->clock);
	put_signed(m, how & 1 ? INT64_C(1700000000000000000) : 0);
	put_record(m, RECORD_SEGMENT);
	for (unsigned set = 0; set < NR_SETS; set++)
		for (unsigned row = 0; row < ROWS; row++) {
			if (!m->id[set][row] || how & 2)
				continue;
			put_place(m, set, row, m->id[set][row]);
			buf_add_varint(&m->body, INSTANCE_AGAIN);
			put_signed(m, 0);
			put_pairs(m, &m->body);
			put_record(m, RECORD_INSTANCE);
		}
	if (how & 2)
		memset(m->id, 0, sizeof(m->id));
}

static void put_instance(struct making *m)
{
	unsigned set = next(m) % NR_SETS, where = next(m), row = where % (ROWS + 1);
	uint32_t id = where & 0x80 && row < ROWS ? m->id[set][row] : 0;

	if (!id)
		id = where & 0x40 ? 1 + next(m) % 8 : ++m->next_id[set] + 8;
	put_place(m, set, row, id);
	buf_add_varint(&m->body, next(m) % 4);
	put_signed(m, number(m));
	put_pairs(m, &m->body);
	put_record(m, RECORD_INSTANCE);
	if (row < ROWS)
		m->id[set][row] = id;
}

static void put_gone(struct making *m)
{
	unsigned set = next(m) % NR_SETS, where = next(m), row = where % (ROWS + 1);
	uint32_t id = row < ROWS && m->id[set][row] ? m->id[set][row] : 1 + where % 64;

	put_place(m, set, row, id);
	put_signed(m, number(m));
	put_pairs(m, &m->body);
	put_record(m, RECORD_GONE);
	if (row < ROWS)
		m->id[set][row] = 0;
}

static void put_event(struct making *m)
{
	const char *kind = events[next(m) % ARRAY_SIZE(events)];

	put_signed(m, number(m));
	buf_add_bytes(&m->body, kind, strlen(kind));
	put_pairs(m, &m->body);
	put_record(m, RECORD_EVENT);
}

/* All rows that live in a set, or those of a mask. */
static void put_cells(struct making *m)
{
	unsigned set = next(m) % NR_SETS, mask = next(m), columns = next(m) | next(m) << 8, nr = 0,
		 passed = 0;

	for (unsigned row = 0; row < ROWS; row++)
		if (!m->id[set][row])
			mask &= ~(1u << row);
	mask &= (1u << ROWS) - 1;
	nr = (unsigned)__builtin_popcount(mask);
	columns &= (1u << m->nr_cols[set]) - 1;
	buf_add_varint(&m->body, set);
	buf_add_varint(&m->body, CELLS_VALIDITY);
	buf_add_varint(&m->body, nr);
	for (unsigned row = 0; row < ROWS; row++) {
		if (mask >> row & 1)
			put_signed(m, passed);
		passed = mask >> row & 1 ? 0 : passed + 1;
	}
	for (unsigned i = 0; i < nr; i++)
		buf_add_varint(&m->body, (next(m) | next(m) << 8) & ((1u << m->nr_cols[set]) - 1));
	buf_add_varint(&m->body, columns);
	for (unsigned left = columns; left; left &= left - 1) {
		buf_add_varint(&m->body, 0);
		for (unsigned i = 0; i < nr; i++)
			put_signed(m, number(m));
	}
	put_record(m, RECORD_CELLS);
}

static void put_tick(struct making *m)
{
	unsigned choice = next(m);
	int64_t step = choice < 200 ? NSEC_PER_SEC / 10 : number(m);

	buf_add_varint(&m->body, choice == 255 ? (uint64_t)number(m) : 1);
	put_signed(m, step);
	put_record(m, RECORD_TICK);
	m->tick++;
	m->clock = (int64_t)((uint64_t)m->clock + (uint64_t)step);
}

/* Any bytes as the body of a record. */
static void put_any(struct making *m)
{
	unsigned type = next(m) % 8;
	size_t n = next(m);

	n = MIN(n, (size_t)(m->end - m->p));
	buf_add(&m->body, m->p, n);
	m->p += n;
	put_record(m, type);
}

static void put_block_of_pairs(struct making *m, unsigned type)
{
	struct buf pairs;

	flush(m);
	buf_init(&pairs, 1 << 16);
	put_pairs(m, &pairs);
	add_block(m, type, 0, pairs.data, pairs.len);
	buf_release(&pairs);
}

static void obey(struct making *m, unsigned order)
{
	if (!m->begun)
		begin_segment(m, 1);
	switch (order % 16) {
	case 0:
	case 1:
		put_instance(m);
		break;
	case 2:
		put_gone(m);
		break;
	case 3:
		put_event(m);
		break;
	case 4:
	case 5:
	case 6:
		put_cells(m);
		break;
	case 7:
	case 8:
	case 9:
		put_tick(m);
		break;
	case 10:
		begin_segment(m, next(m));
		break;
	case 11:
		put_block_of_pairs(m, BLOCK_META);
		break;
	case 12:
		put_any(m);
		break;
	case 13:
		flush(m);
		m->sequence += next(m) % 2;
		break;
	case 14:
		put_block_of_pairs(m, BLOCK_SUMMARY);
		break;
	default:
		flush(m);
		buf_add(&m->file, "junk", next(m) % 5);
	}
}

/* ---- the schema ---- */

static void add_metric(struct schema_set *set, const char *text, size_t len)
{
	static const struct {
		char letter;
		enum metric_unit unit;
	} unit[] = {{'s', UNIT_SECONDS}, {'b', UNIT_BYTES}, {'n', UNIT_COUNT}, {'j', UNIT_JOULES},
		{'w', UNIT_WATTS}, {'r', UNIT_RATIO}, {'h', UNIT_HERTZ}};
	char name[64];
	struct schema_metric *m;

	snprintf(name, sizeof(name), "%.*s", (int)(len - 4), text);
	m = schema_add_metric(set, name, "Help.", NULL);
	if (!m)
		abort();
	m->kind = text[len - 3] == 'c' ? KIND_COUNTER : text[len - 3] == 'p' ? KIND_PEAK : KIND_GAUGE;
	for (size_t i = 0; i < ARRAY_SIZE(unit); i++)
		if (unit[i].letter == text[len - 1])
			m->unit = unit[i].unit;
	m->scale = m->unit == UNIT_SECONDS ? 1e-9 : 1;
	m->availability = AVAILABLE;
}

/* Made once, since it is the same for all. */
static const struct buf *packed_schema(struct making *m)
{
	static struct buf packed;
	static unsigned nr_cols[NR_SETS];

	if (!packed.data) {
		struct schema *s = schema_new();
		struct buf content;

		buf_init(&packed, 1 << 20);
		buf_init(&content, 1 << 20);
		for (size_t i = 0; i < NR_SETS; i++) {
			struct schema_set *set = schema_add_set(s, sets[i].domain, "", sets[i].domain);

			for (const char *at = sets[i].metrics; *at; nr_cols[i]++) {
				size_t len = strcspn(at, " ");

				add_metric(set, at, len);
				at += len + (at[len] == ' ');
			}
		}
		schema_encode(s, &content);
		buf_reserve(&packed, ZSTD_compressBound(content.len));
		packed.len = ZSTD_compress(packed.data, packed.cap, content.data, content.len, 1);
		schema_free(s);
		buf_release(&content);
	}
	memcpy(m->nr_cols, nr_cols, sizeof(nr_cols));
	return &packed;
}

/* ---- the run ---- */

/* Two files in memory, each with the recording of the present input. */
static int descriptor[2] = {-1, -1};

static void make_recording(unsigned which, const uint8_t *data, size_t size)
{
	struct making m = {.p = data, .end = data + size};
	const struct buf *schema = packed_schema(&m);
	static ZSTD_CCtx *packer;

	buf_init(&m.file, (size_t)16 << 20);
	buf_init(&m.content, (size_t)16 << 20);
	buf_init(&m.body, (size_t)1 << 20);
	if (!packer)
		packer = ZSTD_createCCtx();
	if (descriptor[which] < 0)
		descriptor[which] = memfd_create("recording", MFD_CLOEXEC);
	if (!packer || descriptor[which] < 0)
		abort();
	m.zstd = packer;
	ZSTD_CCtx_reset(packer, ZSTD_reset_session_only);
	ZSTD_CCtx_setParameter(m.zstd, ZSTD_c_windowLog, 12);
	ZSTD_CCtx_setParameter(m.zstd, ZSTD_c_compressionLevel, 1);
	add_block(&m, BLOCK_START, 0, "\0\0\0\0fuzz fuzz fuzz ", 20);
	add_block(&m, BLOCK_SCHEMA, 0, schema->data, schema->len);
	while (m.p < m.end)
		obey(&m, next(&m));
	flush(&m);
	if (m.file.err || ftruncate(descriptor[which], (off_t)m.file.len) < 0 ||
		pwrite(descriptor[which], m.file.data, m.file.len, 0) != (ssize_t)m.file.len)
		abort();
	buf_release(&m.file);
	buf_release(&m.content);
	buf_release(&m.body);
}

const struct run *fuzz_run(const uint8_t *data, size_t size)
{
	static char path[2][40], *paths[] = {path[0], path[1]};
	static struct run run = {.path = paths};
	size_t half;

	if (!size)
		return NULL;
	run.nr = data[0] & 1 ? 2 : 1;
	half = run.nr == 2 ? 1 + (size - 1) / 2 : size;
	make_recording(0, data + 1, half - 1);
	if (run.nr == 2)
		make_recording(1, data + half, size - half);
	for (unsigned i = 0; i < run.nr; i++)
		snprintf(path[i], sizeof(path[i]), "/proc/self/fd/%d", descriptor[i]);
	return &run;
}
