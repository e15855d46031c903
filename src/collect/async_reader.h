/* Work that may block, done by a thread beside the ticks: drivers that sleep, libraries of vendors.
 *
 * The tick asks for a round and takes the results of the last one; it never waits. On an env that is not live
 * there is no thread: the round is done when it is asked for, so that films are the same every time. */
#ifndef COLLECT_ASYNC_READER_H
#define COLLECT_ASYNC_READER_H

#include "env/env.h"

#include <pthread.h>

struct async_reader {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below and of what is published: held for a copy, never for work */
	pthread_cond_t change;
	bool threaded, asked, busy, stop, ended;
	void (*work)(void *arg);
	void *arg;
};

/* All signals are blocked in the thread: they belong to the loop. */
int async_reader_start(struct async_reader *b, struct env *env, void (*work)(void *arg), void *arg);
/* Asks for another round. False when one is still running, or just ending: the tick goes on without and asks
 * again later. */
bool async_reader_ask(struct async_reader *b);
/* Around the copy of what is published. From the tick: false when the thread holds the lock; then the tick
 * goes on without. */
bool async_reader_try_lock(struct async_reader *b);
void async_reader_lock(struct async_reader *b);
void async_reader_unlock(struct async_reader *b);
/* Ends the thread; one that is stuck in a driver is given up after a second (false): what it uses, b
 * included, must then stay as it is. */
bool async_reader_stop(struct async_reader *b);
#endif
