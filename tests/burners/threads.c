/* N threads (the first one counted), each of which burns SECONDS of CPU: threads N SECONDS */
#include "burner.h"

#include <pthread.h>

static double cpu_s;

static void *work(void *unused)
{
	burn(cpu_s);
	return unused;
}

int main(int argc, char **argv)
{
	int nr = (int)number(argc, argv, 1, 4);
	pthread_t *thread = calloc((size_t)nr, sizeof(*thread));

	cpu_s = number(argc, argv, 2, 0.5);
	for (int i = 1; i < nr; i++)
		if ((errno = pthread_create(&thread[i], NULL, work, NULL)))
			fail("pthread_create");
	work(NULL);
	for (int i = 1; i < nr; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	tell_cpu();
	return 0;
}
