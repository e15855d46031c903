/* N threads (the first one counted), each of which burns SECONDS of CPU: threads N SECONDS [HOLD]. Where HOLD
 * is said, of which see hold(), none of them ends before it is over. */
#include "burner.h"

#include <pthread.h>

static double cpu_s;
static pthread_barrier_t end;

static void *work(void *holds)
{
	burn(cpu_s);
	if (holds)
		pthread_barrier_wait(&end);
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = (int)number(argc, argv, 1, 4);
	pthread_t *thread = calloc((size_t)nr, sizeof(*thread));
	void *holds = argc > 3 ? &end : NULL;

	cpu_s = number(argc, argv, 2, 0.5);
	pthread_barrier_init(&end, NULL, (unsigned)nr);
	for (int i = 1; i < nr; i++)
		if ((errno = pthread_create(&thread[i], NULL, work, holds)))
			fail("pthread_create");
	work(NULL);
	if (holds) {
		hold(argc, argv, 3, 0);
		pthread_barrier_wait(&end);
	}
	for (int i = 1; i < nr; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	tell_cpu();
	return 0;
}
