/* Work beside the ticks: in a thread where the env is live, at once where it is not; nobody waits for it. */
#include "collect/async_reader.h"

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
	struct async_reader b;
	struct env env;
	sem_t go;   /* a round waits for it */
	sem_t back; /* the other way round */
	/* Under the lock. */
	unsigned begun, done;
	bool elsewhere, hears_signals;
	int policy;
	pthread_t home;
};

static void note(void *arg)
{
	struct world *w = arg;
	sigset_t mask;
	bool hears = false;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < 32; i++)
		hears |= i != SIGKILL && i != SIGSTOP && !sigismember(&mask, i);
	async_reader_lock(&w->b);
	w->begun++;
	async_reader_unlock(&w->b);
	while (sem_wait(&w->go) < 0)
		;
	async_reader_lock(&w->b);
	w->done++;
	w->elsewhere = !pthread_equal(pthread_self(), w->home);
	w->hears_signals = hears;
	w->policy = sched_getscheduler(0);
	async_reader_unlock(&w->b);
}

static void start(struct world *w, bool live, unsigned free_rounds)
{
	*w = (struct world){.env = {.live = live}, .home = pthread_self()};
	sem_init(&w->go, 0, free_rounds);
	sem_init(&w->back, 0, 0);
	assert_int_equal(async_reader_start(&w->b, &w->env, note, w), 0);
}

static unsigned get(struct world *w, const unsigned *what)
{
	unsigned value;

	async_reader_lock(&w->b);
	value = *what;
	async_reader_unlock(&w->b);
	return value;
}

static bool has_ended(struct world *w)
{
	bool ended;

	async_reader_lock(&w->b);
	ended = w->b.ended;
	async_reader_unlock(&w->b);
	return ended;
}

static void wait_for(struct world *w, const unsigned *what, unsigned value)
{
	while (get(w, what) < value)
		usleep(1000);
}

/* Until nobody holds the lock and no round is under way. */
static void ask(struct world *w)
{
	while (!async_reader_ask(&w->b))
		usleep(1000);
}

static void test_at_once_on_a_film(void **state)
{
	static struct world w;

	(void)state;
	start(&w, false, 10);
	assert_false(w.b.threaded);
	assert_true(async_reader_ask(&w.b));
	assert_int_equal(w.done, 1);
	assert_true(async_reader_ask(&w.b));
	assert_int_equal(w.done, 2);
	assert_false(w.elsewhere);
	assert_true(async_reader_try_lock(&w.b));
	async_reader_unlock(&w.b);
	assert_true(async_reader_stop(&w.b));
}

static void test_in_a_thread(void **state)
{
	static struct world w;
	sigset_t before, after;
	int own = sched_getscheduler(0);

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	start(&w, true, 10);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
	assert_int_equal(get(&w, &w.begun), 0); /* nobody has asked */
	ask(&w);
	wait_for(&w, &w.done, 1);
	assert_true(w.elsewhere);
	assert_false(w.hears_signals);
	/* It gives way to the tick, unless somebody chose how we are scheduled. */
	assert_int_equal(sched_getscheduler(0), own);
	assert_int_equal(w.policy, own == SCHED_OTHER ? SCHED_BATCH : own);
	ask(&w);
	wait_for(&w, &w.done, 2);
	assert_true(async_reader_stop(&w.b));
	assert_int_equal(w.done, 2);
}

static void test_nobody_waits_for_a_round(void **state)
{
	static struct world w;

	(void)state;
	start(&w, true, 0);
	ask(&w);
	wait_for(&w, &w.begun, 1);
	/* It works, and does so without the lock: asking is refused, looking is not. */
	for (int i = 0; i < 100; i++) {
		assert_false(async_reader_ask(&w.b));
		assert_true(async_reader_try_lock(&w.b));
		async_reader_unlock(&w.b);
	}
	sem_post(&w.go);
	wait_for(&w, &w.done, 1);
	sem_post(&w.go);
	ask(&w);
	wait_for(&w, &w.done, 2);
	assert_int_equal(get(&w, &w.begun), 2); /* what was refused was not remembered */
	assert_true(async_reader_stop(&w.b));
}

static void *hold(void *arg)
{
	struct world *w = arg;

	async_reader_lock(&w->b);
	sem_post(&w->back);
	while (sem_wait(&w->go) < 0)
		;
	async_reader_unlock(&w->b);
	return NULL;
}

static void test_nobody_waits_for_the_lock(void **state)
{
	static struct world w;
	pthread_t other;

	(void)state;
	start(&w, true, 0);
	assert_int_equal(pthread_create(&other, NULL, hold, &w), 0);
	while (sem_wait(&w.back) < 0)
		;
	assert_false(async_reader_try_lock(&w.b));
	assert_false(async_reader_ask(&w.b));
	sem_post(&w.go);
	pthread_join(other, NULL);
	assert_true(async_reader_stop(&w.b));
}

static void test_what_was_begun_is_finished(void **state)
{
	static struct world w;

	(void)state;
	start(&w, true, 0);
	ask(&w);
	wait_for(&w, &w.begun, 1);
	sem_post(&w.go);
	assert_true(async_reader_stop(&w.b));
	assert_int_equal(w.done, 1);
}

static void test_who_is_stuck_is_given_up(void **state)
{
	static struct world w;

	(void)state;
	start(&w, true, 0);
	ask(&w);
	wait_for(&w, &w.begun, 1);
	assert_false(async_reader_stop(&w.b));
	assert_int_equal(get(&w, &w.done), 0);
	/* It may come back whenever it likes. */
	sem_post(&w.go);
	wait_for(&w, &w.done, 1);
	while (!has_ended(&w))
		usleep(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once_on_a_film),
		cmocka_unit_test(test_in_a_thread),
		cmocka_unit_test(test_nobody_waits_for_a_round),
		cmocka_unit_test(test_nobody_waits_for_the_lock),
		cmocka_unit_test(test_what_was_begun_is_finished),
		cmocka_unit_test(test_who_is_stuck_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
