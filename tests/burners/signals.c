/* Writes the name of every signal that arrives, as it arrives: signals LOG NAME... (LOG may be - for stdout).
 * Real-time signals have their number for a name. One that carries a value is NAME=VALUE.
 *
 * Says "ready" first; ends with status 7 after a TERM, and with the number of signals when its stdin ends or
 * a line comes. In C, because a script's interpreter takes two that come together for one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int out = 1;
static volatile sig_atomic_t count;

static void say(const char *word)
{
	char line[32];
	int length = snprintf(line, sizeof(line), "%s\n", word);

	if (write(out, line, (size_t)length) != length)
		_exit(99);
}

static void name_of(int number, char name[16])
{
	const char *known = sigabbrev_np(number);

	if (known)
		snprintf(name, 16, "%s", known);
	else
		snprintf(name, 16, "%d", number);
}

static void arrived(int number, siginfo_t *info, void *context)
{
	char name[16], word[32];

	(void)context;
	count++;
	name_of(number, name);
	snprintf(word, sizeof(word), info->si_code == SI_QUEUE ? "%s=%d" : "%s", name,
		info->si_value.sival_int);
	say(word);
	if (number == SIGTERM)
		_exit(7);
}

/* Whoever starts us may have blocked it, so that it waits until we can take it. */
static void take(const char *wanted)
{
	char name[16];
	sigset_t one;

	for (int number = 1; number <= SIGRTMAX; number++) {
		name_of(number, name);
		if (strcmp(name, wanted))
			continue;
		sigaction(number, &(struct sigaction){.sa_sigaction = arrived, .sa_flags = SA_SIGINFO}, NULL);
		sigemptyset(&one);
		sigaddset(&one, number);
		sigprocmask(SIG_UNBLOCK, &one, NULL);
	}
}

int main(int argc, char **argv)
{
	char byte;

	if (argc > 1 && strcmp(argv[1], "-"))
		out = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (out < 0)
		return 99;
	for (int i = 2; i < argc; i++)
		take(argv[i]);
	say("ready");
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	return count;
}
