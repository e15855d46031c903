/* `tacho phase`: tells the recorder of this job that a phase begins or ends, or runs a command as one.
 *
 * The command is a child, and this process waits for it: the end of the phase is told before anything that
 * the script does next. Signals sent to us are passed on, but for those of the terminal, which the command
 * gets by itself. */
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/tell.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern const struct cmd cmd_phase;

struct phase_args {
	bool strict;
};

static const struct opt phase_opts[] = {
	{0, "strict", NULL, OPT_FLAG, offsetof(struct phase_args, strict), .not_from_env = true,
		.help = "end with 1 when no recorder was told",
		.detail = "With a COMMAND: it is not run then. And with 2 when a word is not KEY=VALUE."},
};

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};
static volatile pid_t child;

static void pass_on(int sig, siginfo_t *si, void *context)
{
	int e = errno;

	(void)context;
	if (si->si_code <= 0 && child > 0)
		kill(child, sig);
	errno = e;
}

/* As the command ended, so do we. */
static int end_as(int status)
{
	const struct rlimit none = {0, 0};

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none); /* one core file is enough */
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int run_command(char **argv)
{
	struct sigaction pass = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART},
			 fallback = {.sa_handler = SIG_DFL}, before[ARRAY_SIZE(passed_on)], end_before;
	sigset_t all, mask;
	int status = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	/* Where it is ignored, which is inherited, the kernel keeps no status of a child that has ended. */
	sigaction(SIGCHLD, &fallback, &end_before);
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++) {
		sigaction(passed_on[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(passed_on[i], &pass, NULL);
	}
	child = fork();
	if (child == 0) {
		for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
			sigaction(passed_on[i], &before[i], NULL);
		sigaction(SIGCHLD, &end_before, NULL);
		sigprocmask(SIG_SETMASK, &mask, NULL);
		execvp(argv[0], argv);
		cannot_run(argv[0], -errno);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (child < 0)
		die(EXIT_OWN, "cannot start a process: %s", strerror(errno));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	return status;
}

static void check_data(char **word, bool strict)
{
	for (char **w = word; strict && *w; w++)
		if (!is_data(*w))
			usage(&cmd_phase, "'%s' is not KEY=VALUE", *w);
	keep_data(word);
}

static int run_as_phase(const char *name, char **data, char **command, bool strict)
{
	char *none[] = {NULL};
	int r, status;

	check_data(data, strict);
	r = tell("begin ", name, data, false, strict);
	if (r != EXIT_OK)
		return r;
	status = run_command(command);
	tell("end ", name, none, false, false);
	return end_as(status);
}

static int phase(const void *args, int argc, char **argv)
{
	const struct phase_args *a = args;
	bool edge = argc >= 2 && (!strcmp(argv[0], "begin") || !strcmp(argv[0], "end"));
	int dashes = 1;

	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	if (dashes + 1 < argc) {
		argv[dashes] = NULL;
		if (edge && dashes >= 2 && !is_data(argv[1])) {
			warning("'%s' is left out: the phase lasts as long as the command", argv[0]);
			argv++;
			dashes--;
		}
		return run_as_phase(argv[0], argv + 1, argv + dashes + 1, a->strict);
	}
	if (!edge)
		usage(&cmd_phase,
			"write tacho phase begin NAME, tacho phase end NAME, or tacho phase NAME -- "
			"COMMAND [ARG…]");
	check_data(argv + 2, a->strict);
	return tell(*argv[0] == 'b' ? "begin " : "end ", argv[1], argv + 2, true, a->strict);
}

const struct cmd cmd_phase = {
	.name = "phase",
	.synopsis = "[OPTION…] begin|end NAME [KEY=VALUE…], or NAME [KEY=VALUE…] -- COMMAND [ARG…]",
	.help = "tell the recording of this job which phase it is in",
	.detail =
		"For scripts and programs that run under tacho run: a phase is drawn over the curves, "
		"and tacho compare says what it used. With a COMMAND, the phase lasts as long as that runs; "
		"the exit status is the command's. Phases may nest and overlap, and a name may come "
		"again. An end closes the youngest open phase of its name, first of those that the same "
		"shell "
		"or process began.\n\nData (KEY=VALUE) is recorded with the phase. Of a word that is no data "
		"a "
		"warning tells, and nothing else changes.\n\nThe recorder is found by "
		"TACHO_SOCKET. Without one nothing is told (the COMMAND runs), and the exit status is 0. "
		"It never waits for the recorder.",
	.examples = "$ tacho phase load -- ./load.sh\n"
		    "    A command as a phase.\n"
		    "$ tacho phase begin train; ./train; tacho phase end train\n"
		    "    The same in two steps.\n"
		    "$ tacho phase begin epoch lr=0.1\n"
		    "    With data.\n",
	.opt = phase_opts,
	.nr_opts = ARRAY_SIZE(phase_opts),
	.args_size = sizeof(struct phase_args),
	.stop_at_operand = true,
	.operands = "phase",
	.run = phase,
};
