/* query/grid and base/parallel: sums of many recordings, in any order and on any number of threads. */
#include "base/parallel.h"
#include "query/grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define NODES 40

static const struct grid_shape shape = {
	.step_ns = SECOND, .most = 64, .nr_levels = 2, .nr_flows = 1, .nr_tops = 1};

static uint64_t seed;

static int64_t random_below(int64_t most)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int64_t)((seed >> 33) % (uint64_t)most);
}

/* A recording with a tick in each second, some of which are missing, after so many whole seconds. */
static void draw(struct grid_pen *pen, int node, int64_t *ret_used)
{
	int64_t used, level[2], top, offset = node % 5, nr;

	seed = (uint64_t)node + 1;
	nr = 1 + random_below(node % 7 ? 50 : 500);
	*ret_used = 0;
	assert_int_equal(grid_pen_init(pen, &shape, offset * SECOND, 0), 0);
	for (int64_t t = 0; t < nr; t++) {
		if (t && random_below(6) == 0)
			continue;
		level[0] = random_below(1000);
		level[1] = random_below(1000);
		top = level[0] + random_below(10);
		used = random_below(1000000);
		*ret_used += used;
		assert_int_equal(
			grid_pen_tick(pen, t * SECOND + random_below(SECOND / 3), level, 3, &used, &top), 0);
	}
	assert_int_equal(grid_pen_end(pen), 0);
}

static void sum_up(const int *order, unsigned nr_sums, struct grid_sum *ret, int64_t *ret_used)
{
	struct grid_sum part[4];

	*ret_used = 0;
	for (unsigned i = 0; i < nr_sums; i++)
		grid_sum_init(&part[i], &shape);
	for (int i = 0; i < NODES; i++) {
		struct grid_pen pen;
		int64_t used;

		draw(&pen, order[i], &used);
		*ret_used += used;
		assert_int_equal(grid_sum_add(&part[(unsigned)i % nr_sums], &pen.grid), 0);
		grid_pen_release(&pen);
	}
	*ret = part[0];
	for (unsigned i = 1; i < nr_sums; i++) {
		assert_int_equal(grid_sum_merge(ret, &part[i]), 0);
		grid_sum_release(&part[i]);
	}
}

static void test_the_sum_does_not_depend_on_the_order(void **state)
{
	int forth[NODES], back[NODES];
	struct grid_sum a, b;
	struct grid *x, *y;
	int64_t used, again, put = 0;

	(void)state;
	for (int i = 0; i < NODES; i++) {
		forth[i] = i;
		back[NODES - 1 - i] = i;
	}
	sum_up(forth, 1, &a, &used);
	sum_up(back, 3, &b, &again);
	assert_int_equal(used, again);
	assert_int_equal(grid_sum_whole(&a, &x), 0);
	assert_int_equal(grid_sum_whole(&b, &y), 0);
	assert_true(x->octave > 0); /* some are longer than the grid has steps */
	assert_int_equal(x->octave, y->octave);
	assert_int_equal(x->nr, y->nr);
	assert_memory_equal(x->cell, y->cell, x->nr * 6 * sizeof(int64_t));
	/* Nothing that was used gets lost. */
	for (size_t i = 0; i < x->nr; i++)
		put += *grid_flows(x, i);
	assert_int_equal(put, used);
	grid_sum_release(&a);
	grid_sum_release(&b);
}

/* Levels stand where their ticks are, late as these may be, hold over a tick that is missing, and end with
 * the last one. */
static void test_levels_hold(void **state)
{
	static const int64_t time[] = {0, 1100, 2001, 4400, 5000}, level[] = {10, 40, 20, 30, 5};
	static const int64_t wanted[] = {0, 0, 10, 40, 20, 20, 30, 5};
	struct grid_pen pen;
	int64_t used = 0;

	(void)state;
	assert_int_equal(grid_pen_init(&pen, &shape, 2 * SECOND + 300, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(time); i++) {
		int64_t both[2] = {level[i], 0}, top = level[i] + (i == 1);

		assert_int_equal(grid_pen_tick(&pen, time[i] * 1000000, both, 1, &used, &top), 0);
	}
	assert_int_equal(grid_pen_end(&pen), 0);
	assert_int_equal(pen.grid.nr, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < pen.grid.nr; i++) {
		assert_int_equal(grid_levels(&pen.grid, i)[0], wanted[i]);
		assert_int_equal(grid_counts(&pen.grid, i)[0], i >= 2);
		assert_int_equal(grid_counts(&pen.grid, i)[1], 0);
		assert_int_equal(grid_tops(&pen.grid, i)[0], i == 3);
	}
	grid_pen_release(&pen);
}

/* Of two ticks in one step the higher counts, and the later one holds. */
static void test_two_ticks_in_one_step(void **state)
{
	struct grid_pen pen;
	int64_t used = 0, high[2] = {9, 1}, low[2] = {4, 2}, top = 9, last[2] = {1, 1};

	(void)state;
	assert_int_equal(grid_pen_init(&pen, &shape, 0, 0), 0);
	assert_int_equal(grid_pen_tick(&pen, SECOND, high, 3, &used, &top), 0);
	assert_int_equal(grid_pen_tick(&pen, SECOND + SECOND / 4, low, 3, &used, NULL), 0);
	assert_int_equal(grid_pen_tick(&pen, 3 * SECOND, last, 3, &used, NULL), 0);
	assert_int_equal(grid_pen_end(&pen), 0);
	assert_int_equal(grid_levels(&pen.grid, 1)[0], 9);
	assert_int_equal(grid_levels(&pen.grid, 1)[1], 2);
	assert_int_equal(grid_levels(&pen.grid, 2)[0], 4);
	assert_int_equal(grid_levels(&pen.grid, 3)[0], 1);
	grid_pen_release(&pen);
}

/* What was used between two ticks is spread over the time between them. */
static void test_flows_are_spread(void **state)
{
	static const int64_t wanted[] = {0, 100, 200, 200, 100};
	int64_t level[2] = {0}, used = 100;
	struct grid_pen pen;

	(void)state;
	assert_int_equal(grid_pen_init(&pen, &shape, SECOND / 2, 0), 0);
	assert_int_equal(grid_pen_tick(&pen, SECOND / 2, level, 0, &used, NULL), 0); /* up to one second */
	used = 500;
	assert_int_equal(grid_pen_tick(&pen, 3 * SECOND, level, 0, &used, NULL), 0); /* up to 3.5 */
	assert_int_equal(pen.grid.nr, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < pen.grid.nr; i++)
		assert_int_equal(*grid_flows(&pen.grid, i), wanted[i]);
	grid_pen_release(&pen);
}

/* Times that nobody has ever measured cost no more than others. */
static void test_absurd_times(void **state)
{
	int64_t level[2] = {1, INT64_MAX}, used = INT64_MAX;
	struct grid_sum sum;
	struct grid_pen pen;
	struct grid *g;

	(void)state;
	assert_int_equal(grid_pen_init(&pen, &shape, INT64_MAX / 4, 0), 0);
	assert_int_equal(grid_pen_tick(&pen, 0, level, 3, &used, NULL), 0);
	assert_int_equal(grid_pen_tick(&pen, INT64_MAX / 4, level, 3, &used, NULL), 0);
	assert_int_equal(grid_pen_end(&pen), 0);
	assert_true(pen.grid.nr <= shape.most);
	grid_sum_init(&sum, &shape);
	assert_int_equal(grid_sum_add(&sum, &pen.grid), 0);
	assert_int_equal(grid_sum_add(&sum, &pen.grid), 0);
	assert_int_equal(grid_sum_whole(&sum, &g), 0);
	grid_sum_release(&sum);
	grid_pen_release(&pen);
}

struct counting {
	atomic_uint of[1000], workers[PARALLEL_MOST];
	size_t fails_at;
};

static int count(void *arg, unsigned worker, size_t i)
{
	struct counting *c = arg;

	c->of[i]++;
	c->workers[worker]++;
	return i >= c->fails_at ? -(int)i : 0;
}

static void test_each_is_worked_on_once(void **state)
{
	static struct counting c;

	(void)state;
	c.fails_at = SIZE_MAX;
	assert_int_equal(parallel_each(1000, count, &c, NULL), 0);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(c.of[i], 1);
	for (unsigned i = parallel_workers(1000); i < PARALLEL_MOST; i++)
		assert_int_equal(c.workers[i], 0);
	assert_int_equal(parallel_each(0, count, &c, NULL), 0);
	assert_int_equal(parallel_workers(0), 1);
}

static void test_the_first_error_counts(void **state)
{
	static struct counting c;
	size_t at = 0;

	(void)state;
	c.fails_at = 500;
	assert_int_equal(parallel_each(1000, count, &c, &at), -500);
	assert_int_equal(at, 500);
	for (size_t i = 0; i < 500; i++)
		assert_int_equal(c.of[i], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_sum_does_not_depend_on_the_order),
		cmocka_unit_test(test_levels_hold),
		cmocka_unit_test(test_two_ticks_in_one_step),
		cmocka_unit_test(test_flows_are_spread),
		cmocka_unit_test(test_absurd_times),
		cmocka_unit_test(test_each_is_worked_on_once),
		cmocka_unit_test(test_the_first_error_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
