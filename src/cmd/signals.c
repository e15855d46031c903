/* Notes signals that would end the program: see signals.h. */
#include "cmd/signals.h"

#include "base/base.h"

#include <signal.h>

static volatile sig_atomic_t noted;

static void note(int number)
{
	noted = number;
}

void signals_note(void)
{
	static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
	struct sigaction action = {.sa_handler = note}, had;

	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		if (!sigaction(ending[i], NULL, &had) && had.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
}

int signals_noted(void)
{
	return noted;
}

void signals_obey(void)
{
	if (!noted)
		return;
	signal(noted, SIG_DFL);
	raise(noted);
}
