/* Writes the name of every signal that arrives, as it arrives: signals LOG NAME... (LOG may be - for stdout).
 *
 * Says "ready" first; ends with status 7 after a TERM, and with the number of signals when its stdin ends or
 * a line comes. In C, because a script's interpreter takes two that come together for one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int number;
} known[] = {
	{"HUP", SIGHUP},
	{"INT", SIGINT},
	{"QUIT", SIGQUIT},
	{"USR1", SIGUSR1},
	{"USR2", SIGUSR2},
	{"TERM", SIGTERM},
	{"CONT", SIGCONT},
	{"TSTP", SIGTSTP},
	{"WINCH", SIGWINCH},
};

static int out = 1;
static volatile sig_atomic_t count;

static void say(const char *word)
{
	char line[32];
	int length = snprintf(line, sizeof(line), "%s\n", word);

	if (write(out, line, (size_t)length) != length)
		_exit(99);
}

static void arrived(int number)
{
	count++;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].number == number)
			say(known[i].name);
	if (number == SIGTERM)
		_exit(7);
}

int main(int argc, char **argv)
{
	char byte;

	if (argc > 1 && strcmp(argv[1], "-"))
		out = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (out < 0)
		return 99;
	for (int i = 2; i < argc; i++)
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (!strcmp(argv[i], known[k].name))
				sigaction(known[k].number, &(struct sigaction){.sa_handler = arrived}, NULL);
	say("ready");
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	return count;
}
