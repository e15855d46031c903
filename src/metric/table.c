/* Rows, cells and validity of one set: see table.h. */
#include "metric/table.h"

#include "metric/metric.h"

#include <string.h>
#include <sys/mman.h>

/* One lazily filled mapping holds all arrays, each starting on its own cache line. */
static size_t carve(size_t *at, size_t size)
{
	size_t start = *at;

	*at += (size + 63) & ~(size_t)63;
	return start;
}

int table_init(struct table *t, uint32_t nr_cols, uint32_t cap)
{
	size_t at = 0, rows = cap, cells = rows * nr_cols * sizeof(int64_t);
	size_t cell = carve(&at, cells), before = carve(&at, cells);
	size_t valid = carve(&at, rows * 8), valid_before = carve(&at, rows * 8);
	size_t changed = carve(&at, rows * 8);
	size_t id = carve(&at, rows * 4), touched = carve(&at, rows * 4), is_touched = carve(&at, rows);
	char *m;

	if (nr_cols > METRICS_MAX)
		return -E2BIG;
	m = mmap(NULL, at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		return -errno;
	*t = (struct table){
		.nr_cols = nr_cols,
		.cap = cap,
		.cell = (void *)(m + cell),
		.before = (void *)(m + before),
		.valid = (void *)(m + valid),
		.valid_before = (void *)(m + valid_before),
		.changed = (void *)(m + changed),
		.id = (void *)(m + id),
		.touched = (void *)(m + touched),
		.is_touched = (void *)(m + is_touched),
		.memory = m,
		.memory_size = at,
	};
	return 0;
}

void table_release(struct table *t)
{
	if (t->memory)
		munmap(t->memory, t->memory_size);
	*t = (struct table){0};
}

void table_bind(struct table *t, uint32_t row, uint32_t id)
{
	size_t size = t->nr_cols * sizeof(int64_t);

	memset(table_row(t, row), 0, size);
	memset(t->before + (size_t)row * t->nr_cols, 0, size);
	t->valid[row] = t->valid_before[row] = 0;
	t->id[row] = id;
	t->occupancy++;
	if (row >= t->nr_rows)
		t->nr_rows = row + 1;
}

void table_unbind(struct table *t, uint32_t row)
{
	t->id[row] = ROW_FREE;
	t->occupancy++;
	t->valid[row] = t->valid_before[row] = 0;
	while (t->nr_rows && t->id[t->nr_rows - 1] == ROW_FREE)
		t->nr_rows--;
}

void table_settle(struct table *t)
{
	size_t size = t->nr_cols * sizeof(int64_t);

	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t row = t->touched[i];

		memcpy(t->before + (size_t)row * t->nr_cols, table_row(t, row), size);
		t->valid_before[row] = t->valid[row];
		t->is_touched[row] = 0;
	}
	t->nr_touched = 0;
	t->delay_ns = 0;
}
